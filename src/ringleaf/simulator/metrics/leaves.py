"""Leaves and spine: room for gangs, jobs that cross leaves, conflicts on links.

Room is counted in wholly free nodes of the product that most nodes are. ``X_k`` of the
definitions needs a rule; three are counted here:

- ``free``: any *k* nodes, wherever they stand;
- ``one-leaf``: gangs of up to a leaf's size inside one leaf, larger ones on wholly free
  leaves, as whole-leaf schedulers do;
- ``1.0``: what switch affinity 1.0 lets a foundation job have. Of the largest gang this
  is exact, slots included; of the disjoint gangs for ``X_k`` the better of two greedy
  packings is taken, at sampled times, which is a lower bound of their number.
"""

from array import array
from collections import Counter
from math import ceil
from typing import Any, Final

import numpy as np

from ringleaf.model.job_labels import FOUNDATION_FROM
from ringleaf.model.settings import LeafChoice, Settings, SwitchMode
from ringleaf.simulator.metrics.chip_usage import ChipUsage
from ringleaf.simulator.metrics.job_record import JobRecord
from ringleaf.simulator.metrics.tally import Floats, share, spread_of
from ringleaf.simulator.uplinks import Uplinks

GANGS: Final = (1, 2, 4, 8, 16, 32, 64)
"""Nodes of the gangs for which external fragmentation is told."""
_GANGS: Final = np.array(GANGS)


class Room:
    """Wholly free nodes under each leaf, and the gangs that they could hold."""

    def __init__(self, usage: ChipUsage, settings: Settings) -> None:
        nodes = usage.nodes
        usual = Counter(node.product for node in nodes if node.chips).most_common(1)
        self.product = usual[0][0] if usual else None
        named = dict.fromkeys(node.leaf for node in nodes if node.leaf is not None)
        number = {name: i for i, name in enumerate(named)}
        self.names = list(named)
        """The leaves, as they are counted here."""
        self.leaf = [-1 if n.leaf is None else number[n.leaf] for n in nodes]
        self._slot = [node.slot for node in nodes]
        self._own = [node.product == self.product for node in nodes]
        self._under: list[list[int]] = [[] for _leaf in number]
        for i, leaf in enumerate(self.leaf):
            if leaf >= 0 and self._own[i]:
                self._under[leaf].append(i)
        sizes = [len(under) for under in self._under]
        slots = [self._slot[i] + 1 for under in self._under for i in under]
        self.size = settings.nodes_per_leaf or max([*sizes, *slots], default=0)
        """M: nodes of a leaf."""
        self._sizes = [0] * len(number)
        """Nodes of each leaf, of any product."""
        for leaf in self.leaf:
            if leaf >= 0:
                self._sizes[leaf] += 1
        compact = settings.leaf_choice is LeafChoice.COMPACT
        self._uneven = compact and len({*self._sizes}) > 1
        """Whether leaves that are smaller than M may be complete (D36)."""
        self._usage = usage
        self.version = 0
        """Moves whenever there is another room for gangs."""
        self.nodes = 0
        """Wholly free nodes."""
        self.under = [0] * len(number)
        """Of them, those under each leaf."""
        self._by_count = [0] * (self.size + 1)
        """Free nodes -> leaves with as many."""
        self._by_count[0] = len(number)
        self._gangs = [(at, n) for at, n in enumerate(GANGS) if n <= self.size]
        self._inside = [0] * len(GANGS)
        """For each gang, how many find a place inside one leaf each."""
        self.crossing = [0] * len(number)
        """Jobs that cross each leaf: x of metric 7."""
        self._at_slot = [0] * max(self.size, 1)
        """Free nodes at each slot under leaves that no job crosses."""
        self._complete = 0
        """Wholly free leaves that no job crosses."""
        for i in range(len(nodes)):
            if usage.is_whole(i):
                self.turned(i, 1)
        usage.watchers.append(self.turned)

    def turned(self, node: int, by: int) -> None:
        """A node is wholly free now, or no longer."""
        if not self._own[node]:
            return
        self.version += 1
        self.nodes += by
        leaf = self.leaf[node]
        if leaf < 0:
            return
        before = self.under[leaf]
        after = self.under[leaf] = before + by
        self._by_count[before] -= 1
        self._by_count[after] += 1
        inside = self._inside
        for at, gang in self._gangs:
            inside[at] += after // gang - before // gang
        if not self.crossing[leaf]:
            self._at_slot[self._slot[node]] += by
            self._complete += (after == self.size) - (before == self.size)

    def cross(self, leaf: int, by: int) -> None:
        """A job crosses *leaf* from now on, or no longer."""
        before = self.crossing[leaf]
        self.crossing[leaf] = before + by
        if (before == 0) == (before + by == 0):
            return
        self.version += 1
        sign = -1 if before == 0 else 1
        for node in self._under[leaf]:
            if self._usage.is_whole(node):
                self._at_slot[self._slot[node]] += sign
        self._complete += sign * (self.under[leaf] == self.size)

    @property
    def partial(self) -> list[int]:
        """What is free of the nodes that are not wholly free."""
        usage = self._usage
        pairs = zip(usage.free, self._own, strict=True)
        return [
            free
            for at, (free, own) in enumerate(pairs)
            if own and free and not usage.is_whole(at)
        ]

    @property
    def most_under_one(self) -> int:
        """The most free nodes under one leaf."""
        for count in range(self.size, 0, -1):
            if self._by_count[count]:
                return count
        return 0

    @property
    def whole_leaves(self) -> int:
        """Leaves that are wholly free."""
        return self._by_count[self.size] if self.size else 0

    @property
    def largest_gang(self) -> int:
        """The largest foundation job that 1.0 would place now, in nodes.

        Inside a leaf, on complete leaves, or on logical leaves: the same number of
        nodes at every slot, and one more at some. Where leaves of different sizes may
        be complete, on all of those and under one more. Without leaves any nodes will
        do.
        """
        if not self.under:
            return self.nodes
        fewest = min(self._at_slot)
        more = sum(count > fewest for count in self._at_slot)
        logical = self.size * fewest + more
        whole = self.size * self._complete
        if self._uneven:
            whole = self._on_leaves_of_any_size
        return max(self.most_under_one, whole, logical)

    @property
    def _on_leaves_of_any_size(self) -> int:
        """Nodes of all complete leaves, and the most of one more that is open."""
        pairs = zip(self.under, self._sizes, self.crossing, strict=True)
        open_ = [(free, free == size) for free, size, crossed in pairs if not crossed]
        whole = sum(free for free, complete in open_ if complete)
        parts = [free for free, complete in open_ if not complete]
        return whole + max(parts, default=0)

    @property
    def largest_on_whole_leaves(self) -> int:
        """The largest gang inside one leaf or on wholly free leaves, in nodes."""
        if not self.under:
            return self.nodes
        return max(self.most_under_one, self.size * self.whole_leaves)

    def fragmented(self) -> tuple[Floats, Floats]:
        """X_k for every gang, with any nodes and with gangs under one leaf each."""
        free = self.nodes
        if not free:
            return np.zeros(len(GANGS)), np.zeros(len(GANGS))
        anywhere = 1 - _GANGS * (free // _GANGS) / free
        if not self.under:
            return anywhere, anywhere
        one_leaf = [
            self._inside[at]
            if gang <= self.size
            else self.whole_leaves // ceil(gang / self.size)
            for at, gang in enumerate(GANGS)
        ]
        return anywhere, 1 - _GANGS * np.array(one_leaf) / free

    def fragmented_by_rule(self) -> Floats:
        """X_k for every gang under 1.0: a greedy packing of disjoint gangs."""
        if not self.nodes:
            return np.zeros(len(GANGS))
        if not self.under:
            return self.fragmented()[0]
        fits = np.array([self.gangs_by_rule(gang) for gang in GANGS])
        found: Floats = 1 - _GANGS * fits / self.nodes
        return found

    def gangs_by_rule(self, gang: int) -> int:
        """How many disjoint gangs find a place under 1.0, at least.

        First as many as fit inside leaves; of foundation jobs then more over what is
        left under leaves that no job crosses, each leaf for one of them.
        """
        inside = sum(count // gang for count in self.under)
        if gang < FOUNDATION_FROM:
            return inside
        pairs = zip(self.under, self.crossing, strict=True)
        rests = sorted(n % gang for n, crossed in pairs if not crossed and n % gang)
        return inside + max(_large_first(rests, gang), _large_with_small(rests, gang))


def _large_first(rests: list[int], gang: int) -> int:
    """How many times the largest of what is left make up a gang.

    >>> _large_first([1, 1, 2, 2, 3], gang=4)
    2
    """
    found = held = 0
    for rest in reversed(rests):
        held += rest
        if held >= gang:
            found, held = found + 1, 0
    return found


def _large_with_small(rests: list[int], gang: int) -> int:
    """How many times the largest, and the smallest of the others, make up a gang.

    >>> _large_with_small([1, 1, 3, 3], gang=4), _large_first([1, 1, 3, 3], gang=4)
    (2, 1)
    """
    found, low, high = 0, 0, len(rests) - 1
    while low <= high:
        held = rests[high]
        high -= 1
        while held < gang and low <= high:
            held += rests[low]
            low += 1
        found += held >= gang
    return found


class Spine:
    """Jobs that cross leaves, and where they meet."""

    def __init__(
        self, usage: ChipUsage, room: Room, uplinks: Uplinks, cap: int
    ) -> None:
        self._usage, self._room, self.uplinks, self.cap = usage, room, uplinks, cap
        self._on: list[dict[str, JobRecord]] = [{} for _leaf in room.under]
        """The jobs that cross each leaf."""
        self.over_one = 0
        """Over all leaves, jobs that cross it beyond the first."""
        self.over_cap = 0
        """Over all leaves, jobs that cross it beyond the limit in force."""
        self.slow: dict[int, int] = {}
        """Degree of contention -> chips of the jobs that suffer it; above 1 only."""
        self._degree: dict[str, tuple[int, int]] = {}
        self.jobs = self.gangs = self.crossed = self.avoidable = self.at_risk = 0
        self.chips = self.chips_at_risk = 0
        self.ever = self.chips_ever = 0
        """Jobs that count and ever crossed leaves, also after a repair only."""
        self._ratios = array("d")
        self.worst_degree = 1

    def began(self, record: JobRecord) -> None:
        """A job that counts has started for the first time."""
        self.jobs += 1
        self.chips += record.chips
        if len(record.places) == 1:
            return
        nodes = record.nodes
        if len(nodes) == 1:
            return
        self.gangs += 1
        leaf = self._room.leaf
        leaves = {leaf[node] for node in nodes}
        if -1 in leaves:
            return
        self._ratios.append(len(leaves) / ceil(len(nodes) / self._room.size))
        if len(leaves) > 1:
            self.crossed += 1
            self.avoidable += len(nodes) <= self._room.size

    def moved(self, record: JobRecord, records: dict[str, JobRecord]) -> None:
        """Pods of a job of several came or went."""
        nodes = record.nodes
        leaf = self._room.leaf
        under = Counter(leaf[node] for node in nodes if leaf[node] >= 0)
        now = dict(under) if len(under) > 1 else {}
        before = record.leaves
        if not now and not before:
            return
        if not record.crossed:
            record.crossed = True
            self.ever += record.counted
            self.chips_ever += record.counted * record.chips
        for gone in before.keys() - now.keys():
            self._leave(record, gone)
        for new in sorted(now.keys() - before.keys()):
            self._enter(record, new)
        record.leaves = now
        names = [self._usage.nodes[node].name for node in nodes]
        changed = (
            self.uplinks.come(record.name, names)
            if now
            else self.uplinks.go(record.name)
        )
        self._weigh(changed | {record.name}, records)

    def _enter(self, record: JobRecord, leaf: int) -> None:
        on = self._on[leaf]
        n = len(on)
        self.over_one += n >= 1
        self.over_cap += n >= self.cap
        if n == 1:
            self._risk(next(iter(on.values())))
        if n:
            self._risk(record)
        on[record.name] = record
        self._room.cross(leaf, 1)

    def _leave(self, record: JobRecord, leaf: int) -> None:
        on = self._on[leaf]
        del on[record.name]
        self.over_one -= len(on) >= 1
        self.over_cap -= len(on) >= self.cap
        self._room.cross(leaf, -1)

    def _risk(self, record: JobRecord) -> None:
        if not record.at_risk:
            record.at_risk = True
            if record.counted:
                self.at_risk += 1
                self.chips_at_risk += record.chips

    def _weigh(self, jobs: set[str], records: dict[str, JobRecord]) -> None:
        """Recount the chips of *jobs* by their degree of contention."""
        for job in jobs:
            if job in self._degree:
                degree, chips = self._degree.pop(job)
                self.slow[degree] -= chips
                if not self.slow[degree]:
                    del self.slow[degree]
            degree, chips = self.uplinks.degree(job), records[job].held
            if degree > 1 and chips:
                self._degree[job] = degree, chips
                self.slow[degree] = self.slow.get(degree, 0) + chips
                self.worst_degree = max(self.worst_degree, degree)

    def slowed(self, communication: float) -> float:
        """Chips that stand still on average because jobs share links."""
        if not self.slow:
            return 0.0
        return sum(
            chips * (1 - 1 / (1 - communication + communication * degree))
            for degree, chips in sorted(self.slow.items())
        )

    def plain(self) -> dict[str, Any]:
        """Metrics 6 and 7 (b), of the jobs that count."""
        ratios = spread_of(self._ratios)
        return {
            "gangs": self.gangs,
            "jobs": self.crossed,
            "share_of_jobs": share(self.crossed, self.jobs),
            "share_of_gangs": share(self.crossed, self.gangs),
            "avoidable": self.avoidable,
            "span_ratio": {key: ratios[key] for key in ("n", "mean", "p95", "max")},
            "ever_crossed": self.ever,
            "at_risk": self.at_risk,
            "at_risk_share_of_crossing": share(self.at_risk, self.ever),
            "at_risk_share_of_jobs": share(self.at_risk, self.jobs),
            "at_risk_share_of_chips": share(self.chips_at_risk, self.chips),
            "at_risk_share_of_crossing_chips": share(
                self.chips_at_risk, self.chips_ever
            ),
            "worst_degree": self.worst_degree,
        }


def cap_of(settings: Settings) -> int:
    """How many jobs may cross one leaf by the rule in force (metric 7 a)."""
    second = settings.switch_mode is SwitchMode.SPINE_LEAF_2
    return settings.shared_leaves if second else 1
