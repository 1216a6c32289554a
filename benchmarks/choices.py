"""The churn of docs/results.md in a model, to try other choices of leaves.

Leaves are masks of free slots, gangs take whole nodes. ``LISTED`` decides as Ringleaf
does with ``leaf-choice: compact``, gang by gang: tests compare the two. The others
break the same ties in another way, one of them with knowledge of the future, or (which
``compact`` does not allow) put small gangs under leaves that are crossed before others.
``moved`` packs all jobs anew whenever one comes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple

import numpy as np

from ringleaf.model.job_labels import FOUNDATION_FROM
from ringleaf.simulator.bounds import WARM_UP
from ringleaf.simulator.saturation import LOAD

Takes = dict[int, int]
"""The slots that a gang takes, as a mask, by leaf."""


class Gang(NamedTuple):
    """So many nodes, from a time on, for a time."""

    nodes: int
    at: float
    runs: float


class Tie(NamedTuple):
    """How equal leaves are told apart: the one with the largest key is taken.

    ``small`` is for gangs inside one leaf, ``rest`` for what a gang leaves over.
    ``crossed_first``: small gangs go to leaves that are crossed, tight or not.
    """

    small: Callable[["Leaves", int], float]
    rest: Callable[["Leaves", int], float]
    crossed_first: bool = False


class Leaves:
    """Leaves of one size, and what runs under them."""

    def __init__(self, count: int, size: int) -> None:
        self.size, self.whole = size, (1 << size) - 1
        self.open = [self.whole] * count
        self.free = [size] * count
        self.crossed = [False] * count
        self.ends: list[Counter[float]] = [Counter() for _leaf in range(count)]

    def jobs(self, leaf: int) -> int:
        """Jobs under a leaf."""
        return self.ends[leaf].total()

    def last_end(self, leaf: int) -> float:
        """When the last job that is there now ends."""
        return max(self.ends[leaf], default=0.0)

    def take(self, takes: Takes, end: float) -> None:
        """A gang begins."""
        for leaf, mask in takes.items():
            self.open[leaf] &= ~mask
            self.free[leaf] -= mask.bit_count()
            self.crossed[leaf] |= len(takes) > 1
            self.ends[leaf][end] += 1

    def give(self, takes: Takes, end: float) -> None:
        """A gang ends."""
        for leaf, mask in takes.items():
            self.open[leaf] |= mask
            self.free[leaf] += mask.bit_count()
            self.crossed[leaf] &= len(takes) == 1
            self.ends[leaf] -= Counter({end: 1})

    def lowest(self, leaf: int, n: int) -> int:
        """The *n* lowest free slots of a leaf (D31)."""
        left = self.open[leaf]
        for _node in range(n):
            left &= left - 1
        return self.open[leaf] & ~left


LISTED: Final = Tie(lambda _leaves, leaf: leaf, lambda _leaves, leaf: -leaf)
TIES: Final = {
    "as Ringleaf": LISTED,
    "first listed": Tie(lambda _all, leaf: -leaf, lambda _all, leaf: leaf),
    "most jobs": Tie(Leaves.jobs, Leaves.jobs),
    "fewest jobs": Tie(
        lambda leaves, leaf: -leaves.jobs(leaf), lambda leaves, leaf: -leaves.jobs(leaf)
    ),
    "latest end, known before": Tie(Leaves.last_end, Leaves.last_end),
    "crossed leaves first": LISTED._replace(crossed_first=True),
}
"""Each breaks ties in a way of its own."""


def place(leaves: Leaves, n: int, tie: Tie) -> Takes | None:
    """Where a gang goes under 1.0 with ``leaf-choice: compact``."""
    if (leaf := one_leaf(leaves, n, tie)) is not None:
        return {leaf: leaves.lowest(leaf, n)}
    if n < FOUNDATION_FROM:
        return None
    return whole_leaves(leaves, n, tie) or logical_leaves(leaves, n)


def one_leaf(leaves: Leaves, n: int, tie: Tie) -> int | None:
    """The tightest leaf that holds all, among equals one that is crossed."""
    enough = [leaf for leaf, free in enumerate(leaves.free) if free >= n]
    if tie.crossed_first and any(leaves.crossed[leaf] for leaf in enough):
        enough = [leaf for leaf in enough if leaves.crossed[leaf]]
    fewest = min((leaves.free[leaf] for leaf in enough), default=0)
    tied = [leaf for leaf in enough if leaves.free[leaf] == fewest]
    if any(leaves.crossed[leaf] for leaf in tied):
        tied = [leaf for leaf in tied if leaves.crossed[leaf]]
    return max(tied, key=lambda leaf: tie.small(leaves, leaf), default=None)


def whole_leaves(leaves: Leaves, n: int, tie: Tie) -> Takes | None:
    """Complete leaves, the rest under the tightest leaf that no job crosses."""
    uncrossed = [leaf for leaf, crossed in enumerate(leaves.crossed) if not crossed]
    complete = [leaf for leaf in uncrossed if leaves.free[leaf] == leaves.size]
    takes = dict.fromkeys(complete[: n // leaves.size], leaves.whole)
    rest = n - leaves.size * len(takes)
    if not rest:
        return takes
    enough = [s for s in uncrossed if s not in takes and leaves.free[s] >= rest]
    fewest = min((leaves.free[leaf] for leaf in enough), default=0)
    tied = [leaf for leaf in enough if leaves.free[leaf] == fewest]
    if not tied:
        return None
    key = LISTED.rest if fewest == leaves.size else tie.rest
    last = max(tied, key=lambda leaf: key(leaves, leaf))
    return {**takes, last: leaves.lowest(last, rest)}


def logical_leaves(leaves: Leaves, n: int) -> Takes | None:
    """One node at each slot, again and again, under leaves that no job crosses."""
    order = [leaf for leaf, crossed in enumerate(leaves.crossed) if not crossed]
    order.sort(key=lambda leaf: -leaves.free[leaf])
    under = [[s for s in order if leaves.open[s] >> x & 1] for x in range(leaves.size)]
    slots = sorted(range(leaves.size), key=lambda slot: -len(under[slot]))
    if n < leaves.size:
        first = len(under[slots[n - 1]]) - 1
        if first < 0:
            return None
        chosen = [(slot, [first]) for slot in slots if len(under[slot]) > first][:n]
    else:
        full, rest = (n - 1) // leaves.size, (n - 1) % leaves.size + 1
        if len(under[slots[rest - 1]]) <= full or len(under[slots[-1]]) < full:
            return None
        chosen = [
            (slot, [*range(full + (number < rest))])
            for number, slot in enumerate(slots)
        ]
    takes: Takes = {}
    for slot, numbers in chosen:
        for number in numbers:
            leaf = under[slot][number]
            takes[leaf] = takes.get(leaf, 0) | 1 << slot
    return takes


def can_stand(counts: Counter[int], n_leaves: int, size: int) -> bool:
    """Whether jobs find places if all are placed anew, the largest first."""
    rooms = [0] * (size + 1)
    for n, count in counts.items():
        if n > size:
            n_leaves -= count * -(-n // size)
            rooms[-n % size] += count
    rooms[size] += n_leaves
    if n_leaves < 0:
        return False
    small = sorted((n for n in counts.elements() if n <= size), reverse=True)
    for n in small:
        room = next((r for r in range(n, size + 1) if rooms[r]), None)
        if room is None:
            return False
        rooms[room] -= 1
        rooms[room - n] += 1
    return True


# What comes of it.


def came(sizes: Sequence[int], runs: Sequence[float], *, nodes: int, seed: int,
         jobs: int) -> list[Gang]:  # fmt: skip
    """The gangs of a churn, as ``churn_fill`` draws them."""
    draws = np.random.default_rng(np.random.SeedSequence([seed, *b"churn"]))
    asked, times = np.array(sizes), np.array(runs)
    every = float((asked * times).mean()) / (LOAD * nodes)
    which = draws.integers(0, len(asked), jobs)
    at = np.cumsum(draws.exponential(every, jobs))
    return [
        Gang(*each)
        for each in zip(
            asked[which].tolist(), at.tolist(), times[which].tolist(), strict=True
        )
    ]


Begin = Callable[[Gang], Callable[[], object] | None]
"""Lets a gang begin, if it can; what comes back lets it end."""


def allocated(gangs: Sequence[Gang], nodes: int, begin: Begin) -> float:
    """The part of all nodes that gangs hold on average, after a fifth has come."""
    running: list[tuple[float, int, int, Callable[[], object]]] = []
    held, node_s, now, since = 0, 0.0, 0.0, 0.0
    for number, gang in enumerate(gangs):
        while running and running[0][0] <= gang.at:
            end, _number, n, finish = heappop(running)
            node_s, now, held = node_s + held * (end - now), end, held - n
            finish()
        node_s, now = node_s + held * (gang.at - now), gang.at
        if number == int(WARM_UP * len(gangs)):
            node_s, since = 0.0, now
        if (finish_ := begin(gang)) is not None:
            held += gang.nodes
            heappush(running, (gang.at + gang.runs, number, gang.nodes, finish_))
    return node_s / (nodes * (now - since))


def under_rule(n_leaves: int, size: int, tie: Tie) -> Begin:
    """Gangs go where the rule and *tie* say."""
    leaves = Leaves(n_leaves, size)

    def begin(gang: Gang) -> Callable[[], object] | None:
        takes = place(leaves, gang.nodes, tie)
        if takes is None:
            return None
        end = gang.at + gang.runs
        leaves.take(takes, end)
        return lambda: leaves.give(takes, end)

    return begin


def of_sets(allowed: Callable[[Counter[int]], bool]) -> Begin:
    """Gangs begin where all that run then are allowed together."""
    running: Counter[int] = Counter()

    def begin(gang: Gang) -> Callable[[], object] | None:
        running[gang.nodes] += 1
        if allowed(running):
            return lambda: running.subtract([gang.nodes])
        running[gang.nodes] -= 1
        return None

    return begin


def total(counts: Counter[int]) -> int:
    """Nodes of all jobs."""
    return sum(n * count for n, count in counts.items())


def below_free(gangs: Sequence[Gang], n_leaves: int, size: int) -> dict[str, float]:
    """How far below free packing each choice ends, and that of jobs that move."""
    nodes = n_leaves * size

    def played(begin: Begin) -> float:
        return allocated(gangs, nodes, begin)

    free = played(of_sets(lambda counts: total(counts) <= nodes))
    ways: Iterable[tuple[str, Begin]] = (
        *((name, under_rule(n_leaves, size, tie)) for name, tie in TIES.items()),
        ("moved", of_sets(lambda counts: can_stand(counts, n_leaves, size))),
    )
    return {name: free - played(begin) for name, begin in ways}
