"""Chips, nodes and leaf switches that fail at random and are repaired after a while.

Every part fails by itself, after times without memory (exponential), and takes a time
to repair that is drawn the same way. A part that is broken does not fail. Everything
follows from the seed; nothing is drawn before it is needed, and it never ends.
"""

from collections.abc import Iterator
from functools import partial
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.engine.event import NodesChanged
from ringleaf.model.cluster import Node
from ringleaf.model.fault import NO_RECOVERY, Down, Recovery
from ringleaf.simulator.preset import stream
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import JobSpec, Site, TimedEvent, Workload

HOUR_S: Final = 3600.0


class Rates(Struct, frozen=True):
    """How often parts fail, and how long they stay so; all in hours, 0 is never.

    A part whose repair takes 0 hours is never repaired.

    What is usual is of the order of what is known of 16,384 chips in 54 days (Llama 3,
    arXiv 2407.21783, table 5): 256 failures of chips, 35 of switches and cables, 128
    others. How long repairs take is not known from there.
    """

    chip: float = 80_000
    node: float = 20_000
    leaf: float = 40_000
    chip_repair: float = 12
    node_repair: float = 4
    leaf_repair: float = 2

    def of(self, part: str) -> tuple[float, float]:
        """Hours between two faults of one such part, and until it is repaired."""
        return getattr(self, part), getattr(self, f"{part}_repair")

    @property
    def is_never(self) -> bool:
        """Whether nothing ever fails."""
        return not (self.chip or self.node or self.leaf)


USUAL: Final = Rates()
NEVER: Final = Rates(0, 0, 0)
PARTS = _CHIP, _NODE, _LEAF = "chip", "node", "leaf"
LEAST_H: Final = 4.0
"""Hours between two faults of a part, at least: more often nothing gets done."""
_KEYS: Final = {name.replace("_", "-"): name for name in Rates.__struct_fields__}


def read_rates(text: str) -> Rates:
    """The rates that people write: ``usual``, or hours for some parts.

    >>> read_rates("chip=1000,chip-repair=2")
    Rates(chip=1000.0, node=0, leaf=0, chip_repair=2.0, node_repair=4, leaf_repair=2)
    >>> read_rates("usual,node=100").node
    100.0
    """
    words = [word.strip() for word in text.split(",")]
    found = NEVER
    if words[0] in ("usual", "none"):
        found = USUAL if words.pop(0) == "usual" else NEVER
    for word in words:
        key, _, value = word.partition("=")
        try:
            hours = float(value)
        except ValueError:
            hours = -1.0
        if key not in _KEYS or not 0 <= hours < float("inf"):
            raise BadInput(
                f"{word!r} is no rate, want usual, none, or hours such as chip=80000",
                f"there are {', '.join(_KEYS)}",
            )
        found = replace(found, **{_KEYS[key]: hours})
    _refuse_too_often(found)
    return found


def _refuse_too_often(rates: Rates) -> None:
    """Refuse parts that break before a job could use them."""
    for part in PARTS:
        hours, repair = rates.of(part)
        if hours and hours < max(LEAST_H, repair):
            least, why = LEAST_H, ""
            if repair > LEAST_H:
                least, why = repair, ", as long as a repair takes,"
            raise BadInput(
                f"{part}={hours:g} is too often for work to get done, want "
                f"{least:g} hours{why} or more between two faults of one",
                f"{part}={getattr(USUAL, part):g} is usual, {part}=0 is never",
            )


class FailureGenerator:
    """Faults and repairs of a site in the order of time, made anew for each run."""

    def __init__(self, site: Site, rates: Rates, seed: int) -> None:
        self._site, self._rates, self._seed = site, rates, seed

    def __iter__(self) -> Iterator[TimedEvent]:
        return _Course(self._site, self._rates, self._seed).timed_events()


class _Course:
    """How it comes about, once."""

    def __init__(self, site: Site, rates: Rates, seed: int) -> None:
        self._nodes = site.nodes
        self._broken: set[tuple[str, int]] = set()
        self._bad = [0] * len(site.nodes)
        """Of every node its chips that are broken."""
        self._down: list[set[str]] = [set() for _ in site.nodes]
        """Of every node why it is down."""
        leaves: dict[str, list[int]] = {}
        for number, node in enumerate(site.nodes):
            if node.leaf is not None:
                leaves.setdefault(node.leaf, []).append(number)
        self._leaves = list(leaves.values())
        self._chips = [
            (number, chip)
            for number, node in enumerate(site.nodes)
            for chip in range(node.chips)
        ]
        self._kinds = [
            (_CHIP, len(self._chips), rates.chip, rates.chip_repair),
            (_NODE, len(site.nodes), rates.node, rates.node_repair),
            (_LEAF, len(self._leaves), rates.leaf, rates.leaf_repair),
        ]
        self._dice = {
            kind: stream(seed, f"failures {kind}") for kind, *_ in self._kinds
        }
        self._whole = {kind: parts for kind, parts, *_ in self._kinds}
        """Of every kind the parts that are whole, if none is repaired."""
        self._heap: list[tuple[float, int, int]] = []
        """Time, kind and part of a repair; a failure has part -1, drawn later."""

    def timed_events(self) -> Iterator[TimedEvent]:
        for index in range(len(self._kinds)):
            self._plan(index, 0.0)
        while self._heap:
            at, index, part = heappop(self._heap)
            if part < 0:
                part = self._fails(index, at)
                if part < 0:
                    continue
            else:
                self._broken.discard((self._kinds[index][0], part))
            nodes = self._touched(index, part)
            yield TimedEvent(at, NodesChanged(tuple(map(self._as_it_is, nodes))))

    def _plan(self, index: int, now: float) -> None:
        """When any part of a kind fails next, if there is one left to fail."""
        kind, parts, every_h, repair_h = self._kinds[index]
        if parts and every_h and (repair_h or self._whole[kind]):
            after = self._dice[kind].exponential(every_h * HOUR_S / parts)
            heappush(self._heap, (now + after, index, -1))

    def _fails(self, index: int, now: float) -> int:
        """Which part fails; -1, if it is broken already."""
        kind, parts, _every_h, repair_h = self._kinds[index]
        dice = self._dice[kind]
        part = int(dice.integers(parts))
        lasts = dice.exponential(repair_h * HOUR_S) if repair_h else 0.0
        is_new = (kind, part) not in self._broken
        self._whole[kind] -= is_new
        self._plan(index, now)
        if not is_new:
            return -1
        self._broken.add((kind, part))
        if repair_h:
            heappush(self._heap, (now + lasts, index, part))
        return part

    def _touched(self, index: int, part: int) -> list[int]:
        """The nodes that are others now, because of a part that is."""
        kind = self._kinds[index][0]
        broken = (kind, part) in self._broken
        if kind == _CHIP:
            number, chip = self._chips[part]
            self._bad[number] = self._bad[number] & ~(1 << chip) | broken << chip
            return [number]
        numbers = [part] if kind == _NODE else self._leaves[part]
        for number in numbers:
            (self._down[number].add if broken else self._down[number].discard)(kind)
        return numbers

    def _as_it_is(self, number: int) -> Node:
        node, bad, down = self._nodes[number], self._bad[number], self._down[number]
        if not bad and not down:
            return node
        why = Down.SWITCH if _LEAF in down else Down.NOT_READY
        return replace(
            node,
            faulty=node.faulty | bad,
            unhealthy=node.unhealthy | bad,
            ready=node.ready and not down,
            down=why if down else node.down,
        )


def recovering(workload: Workload, recovery: Recovery) -> Workload:
    """*workload*, of which every job that says nothing wants *recovery*."""
    return replace(workload, job_specs=partial(_recovering, workload, recovery))


def _recovering(workload: Workload, recovery: Recovery) -> Iterator[JobSpec]:
    for spec in workload.job_specs():
        if spec.job.recovery == NO_RECOVERY:
            yield replace(spec, job=replace(spec.job, recovery=recovery))
        else:
            yield spec
