"""Jobs that hold chips, or held them before a fault: ``running`` and ``previous``.

What their pods say of the leaf switches is read from their annotations; where there are
none it follows from the placements; an entry under ``leaves`` wins.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Previous
from ringleaf.model.job_labels import Schema, type_of
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState, Placement
from ringleaf.model.settings import Settings
from ringleaf.policies.marks import LeavesOfJob, implied_marks
from ringleaf.simulator.checks import good_chips, known_product, new_name, unknown_node
from ringleaf.simulator.format import (
    JobEntry,
    LeafEntry,
    PlacementEntry,
    PreviousEntry,
    ScenarioEntry,
)
from ringleaf.simulator.source import BadInput, brief

RANK: Final = "hccl/rankIndex"
BLOCK: Final = "super-pod-rank"
STATE: Final = "isSharedTor"
HEALTH: Final = "isHealthy"

MAX_RANK: Final = 1_000_000

CROSSED_BY: Final[Mapping[Schema, JobType]] = MappingProxyType(
    {Schema.LARGE_MODEL: JobType.FOUNDATION, Schema.NORMAL: JobType.COMMON}
)
"""What a job that crosses leaves must be: padding jobs never do."""


class Stands(Struct, frozen=True):
    """Node -> its number of chips, its leaf if any, the chips no pod can keep."""

    sizes: Mapping[str, int]
    leaf: Mapping[str, str]
    lost: Mapping[str, frozenset[int]]

    def leaves(self, placements: Iterable[Placement]) -> LeavesOfJob:
        """The leaves under which *placements* stand."""
        return frozenset(self.leaf.get(placement.node) for placement in placements)


class Tenants(Struct, frozen=True):
    """What running jobs hold, and what other jobs held before a fault."""

    running: Mapping[str, tuple[Placement, ...]]
    previous: Mapping[str, Previous]


def read_tenants(
    entry: ScenarioEntry,
    stands: Stands,
    settings: Settings,
    assumed: Mapping[str, Schema],
) -> Tenants:
    """Read which chips jobs hold, each chip at most once.

    *assumed* is what jobs without ``tor-affinity`` count as.
    """
    reader = _Reader(stands)
    names: dict[str, JobEntry] = {}
    running = {}
    for i, job in enumerate(entry.running):
        new_name(f"running[{i}]", job.name, names)
        names[job.name] = job
        if job.product is not None:
            known_product(f"running[{i}].product", job.product)
        path = f"running[{i}].placements"
        running[job.name] = tuple(reader.placements(path, job.placements))
    previous = {}
    for i, later in enumerate(entry.jobs):
        new_name(f"jobs[{i}]", later.name, names)
        names[later.name] = later
        if later.previous is not None:
            before = reader.previous(f"jobs[{i}].previous", later, later.previous)
            previous[later.name] = before
    alive = running | {
        name: before.placements
        for name, before in previous.items()
        if before.scope is RestartScope.POD
    }
    schemas = {name: schema_of(job) for name, job in names.items()} | dict(assumed)
    sizes = {name: job.n_replicas + len(job.finished) for name, job in names.items()}
    types = {name: type_of(schemas[name], sizes[name]) for name in names}
    marks = _Marks(types, stands, settings, entry.leaves, alive)
    return Tenants(
        running={
            name: tuple(marks.running(name, held)) for name, held in running.items()
        },
        previous={
            name: replace(before, placements=tuple(marks.previous(name, before)))
            for name, before in previous.items()
        },
    )


class _Reader:
    """Reads placements; remembers the job that holds each chip."""

    def __init__(self, stands: Stands) -> None:
        self._sizes, self._lost = stands.sizes, stands.lost
        self._holder: dict[tuple[str, int], str] = {}

    def previous(self, path: str, job: JobEntry, entry: PreviousEntry) -> Previous:
        """Where a job ran before a fault; pods that still run hold their chips."""
        for i, name in enumerate(entry.failed_nodes):
            if name not in self._sizes:
                unknown_node(f"{path}.failed-nodes[{i}]", name, self._sizes)
        failed = set(entry.failed_nodes)
        if entry.keep == "job":
            failed |= set(self._sizes)  # nothing of it holds chips any more
        placements = tuple(
            self.placements(f"{path}.placements", entry.placements, failed)
        )
        most = MAX_RANK if job.roles or job.rank_index else job.n_replicas
        self._check_replicas(f"{path}.placements", placements, most)
        return Previous(placements, tuple(entry.failed_nodes), RestartScope(entry.keep))

    def _check_replicas(
        self, path: str, placements: Iterable[Placement], replicas: int
    ) -> None:
        seen: dict[int, str] = {}
        for i, placement in enumerate(placements):
            own = f"{path}[{i}]"
            if placement.replica >= replicas:
                raise BadInput(
                    f"{own} has rank {placement.replica}, want 0 to {replicas - 1}"
                )
            if seen.setdefault(placement.replica, own) != own:
                raise BadInput(
                    f"{own} has rank {placement.replica}, "
                    f"already that of {seen[placement.replica]}"
                )

    def placements(
        self,
        path: str,
        entries: Iterable[PlacementEntry],
        free: set[str] | None = None,
    ) -> Iterator[Placement]:
        """The placements of one job.

        Of a job of before, pods on the *free* nodes hold nothing any more, nor do
        those that lost a chip.
        """
        for i, entry in enumerate(entries):
            own = f"{path}[{i}]"
            if entry.node not in self._sizes:
                unknown_node(f"{own}.node", entry.node, self._sizes)
            good_chips(f"{own}.chips", entry.chips, self._sizes[entry.node])
            gone = free is not None and (
                entry.node in free or self._lost[entry.node] & {*entry.chips}
            )
            if not gone:
                self._claim(own, entry)
            yield placed_at(own, entry)

    def _claim(self, path: str, entry: PlacementEntry) -> None:
        for k, chip in enumerate(entry.chips):
            own = f"{path}.chips[{k}]"
            other = self._holder.setdefault((entry.node, chip), own)
            if other != own:
                raise BadInput(
                    f"{own} is {chip} of node {brief(entry.node)}, "
                    f"already held by {other}"
                )


def placed_at(path: str, entry: PlacementEntry) -> Placement:
    """Where a pod is, with what its annotations say."""
    rank = _number(path, entry, RANK, range(MAX_RANK))
    return Placement(
        replica=entry.replica if rank is None else rank,
        node=entry.node,
        chips=tuple(entry.chips),
        block=_number(path, entry, BLOCK, range(MAX_RANK)),
        mark=_mark(path, entry),
    )


def _number(path: str, entry: PlacementEntry, key: str, among: range) -> int | None:
    """The number in an annotation, if it is there."""
    text = entry.annotations.get(key)
    if text is None:
        return None
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else -1  # noqa: PLR2004
    if number not in among:
        raise BadInput(
            f"{path}.annotations['{key}'] is {brief(text)}, "
            f'want "{among[0]}" to "{among[-1]}"'
        )
    return number


def _mark(path: str, entry: PlacementEntry) -> LeafAnnotation | None:
    """What the annotations say of the leaf, if they say anything."""
    state = _number(path, entry, STATE, range(3))
    health = _number(path, entry, HEALTH, range(2))
    if state is None and health is None:
        return None
    return LeafAnnotation(state=LeafState(state or 0), healthy=health != 1)


class _Marks:
    """What the pods of jobs say of their leaves, among the jobs *alive*."""

    def __init__(
        self,
        types: Mapping[str, JobType | None],
        stands: Stands,
        settings: Settings,
        leaves: Mapping[str, LeafEntry],
        alive: Mapping[str, tuple[Placement, ...]],
    ) -> None:
        self._types, self._stands = types, stands
        self._settings, self._leaves = settings, leaves
        self._crossing = {
            name: where
            for name, held in alive.items()
            if types[name] and len(where := stands.leaves(held)) > 1
        }
        self._implied = implied_marks(self._crossing, settings)

    def running(self, name: str, held: Iterable[Placement]) -> Iterator[Placement]:
        """Placements of a running job, without what ``leaves`` says better."""
        implied = self._implied if name in self._crossing else {}
        for placement in held:
            mark = self._own(placement, implied)
            if (known := self._known(placement)) is not None:
                mark = _stripped(mark, known)
            yield self._typed(name, placement, mark)

    def previous(self, name: str, before: Previous) -> Iterator[Placement]:
        """Placements of before, as if the job were still there."""
        implied = self._implied if name in self._crossing else {}
        where = self._stands.leaves(before.placements)
        if before.scope is RestartScope.JOB and self._types[name] and len(where) > 1:
            crossing = {**self._crossing, name: where}
            implied = implied_marks(crossing, self._settings)
        for placement in before.placements:
            mark = self._own(placement, implied)
            known = self._known(placement)
            if known is not None and placement.mark is None:
                mark = _overruled(mark, known)
            yield self._typed(name, placement, mark)

    def _own(
        self, placement: Placement, implied: Mapping[str | None, LeafAnnotation]
    ) -> LeafAnnotation:
        leaf = self._stands.leaf.get(placement.node)
        return placement.mark or implied.get(leaf) or LeafAnnotation()

    def _known(self, placement: Placement) -> LeafEntry | None:
        leaf = self._stands.leaf.get(placement.node)
        return None if leaf is None else self._leaves.get(leaf)

    def _typed(
        self, name: str, placement: Placement, mark: LeafAnnotation
    ) -> Placement:
        return replace(placement, mark=replace(mark, job_type=self._types[name]))


def schema_of(job: JobEntry) -> Schema | None:
    """The label ``tor-affinity``; the word null means none."""
    label = job.tor_affinity
    return None if label in (None, "null") else Schema(label)


def _stripped(mark: LeafAnnotation, leaf: LeafEntry) -> LeafAnnotation:
    """*mark* without what an entry under ``leaves`` says itself."""
    return replace(
        mark,
        state=mark.state if leaf.state is None else LeafState.IDLE,
        healthy=mark.healthy if leaf.healthy is None else True,
    )


def _overruled(mark: LeafAnnotation, leaf: LeafEntry) -> LeafAnnotation:
    """What pods of a job that crosses the leaf say, where an entry knows better."""
    if mark.state is LeafState.IDLE or leaf.state in (None, "idle"):
        return mark
    return LeafAnnotation(
        state=LeafState[leaf.state.upper()], healthy=leaf.healthy is not False
    )
