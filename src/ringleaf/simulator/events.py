"""What happens later in a scenario: entries of ``then`` as events of the engine.

The log of a scheduler has the same forms. There nothing is checked but the form: what
was heard was heard.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    DeletionsKnown,
    Event,
    FaultsKnown,
    IdleAccountKnown,
    JobArrived,
    JobGone,
    LeavesChanged,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
    QueueChanged,
    QueueGone,
    RepairKnown,
    RunTimesKnown,
    TimerFired,
)
from ringleaf.framework.idle_budget import IdleAccount
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, Deletion, PodFault, RestartScope
from ringleaf.model.job import Job, Previous
from ringleaf.model.placement import LeafAnnotation, Placement
from ringleaf.simulator.checks import good_chips, good_name, rank_words, unknown_node
from ringleaf.simulator.event_context import EventContext
from ringleaf.simulator.format import (
    OF_PODS,
    AilmentEntry,
    ArrivalEntry,
    DeletionEntry,
    EventEntry,
    FaultEntry,
    IdleTimeEntry,
    JobEndEntry,
    LeafEntry,
    NodeEntry,
    PlacementEntry,
    PodsAilEntry,
    PodsEndEntry,
    PodsEntry,
    PodsRefusedEntry,
    PodsRunEntry,
    QueueEntry,
    RepairEntry,
    RunSeriesEntry,
    ThenEntry,
)
from ringleaf.simulator.jobs import job_of
from ringleaf.simulator.nodes import leaves_of, node_groups, nodes_of
from ringleaf.simulator.records import struct_of
from ringleaf.simulator.rules import conf_of, queue_of
from ringleaf.simulator.running_jobs import placed_at
from ringleaf.simulator.source import BadInput, brief
from ringleaf.simulator.trial import TimedEvent
from ringleaf.simulator.wanted import wanted_at


def read_then(
    context: EventContext, entries: Iterable[ThenEntry], warnings: list[str]
) -> Iterator[TimedEvent]:
    """Everything that happens, in the order of the file."""
    before = 0.0
    for i, entry in enumerate(entries):
        path = f"then[{i}]"
        if entry.at < before:
            raise BadInput(
                f"{path}.at is {entry.at:g}, want {before:g} or later",
                "entries are in the order of time",
            )
        before = entry.at
        event = EventReader(context, path, entry, entry.at, warnings).read()
        yield TimedEvent(entry.at, event)


def _value(entry: EventEntry, key: str) -> Any:  # noqa: ANN401
    return getattr(entry, key.replace("-", "_"))


class EventReader(Struct, frozen=True):
    """Reads one entry, of something that happens *at* a time."""

    context: EventContext
    where: str
    entry: EventEntry
    at: float
    warnings: list[str]

    def read(self) -> Event:
        """The one thing that the entry says."""
        given = [key for key in FORMS if _value(self.entry, key) is not UNSET]
        if len(given) != 1:
            found = " and ".join(given[:3]) or "nothing that happens"
            raise BadInput(
                f"{self.where} has {found}, want one thing that happens",
                f"one of {', '.join(FORMS)}",
            )
        if self.entry.settings is not UNSET and given != ["configuration"]:
            raise BadInput(f"{self.where}.settings is without configuration")
        (key,) = given
        read: Callable[[str, Any], Event] = getattr(self, f"_{key.replace('-', '_')}")
        return read(f"{self.where}.{key}", _value(self.entry, key))

    def _arrives(self, path: str, entry: ArrivalEntry) -> Event:
        good_name(f"{path}.name", entry.name)
        context, at = self.context, self.at
        job = job_of(path, entry, context.products(), at=at)
        job = replace(job, previous=self._previous(path, entry, job))
        placements = self._placements(f"{path}.placements", entry.placements, job)
        context.enter(job)
        return JobArrived(job, placements, entry.started, entry.waiting_since)

    def _previous(self, path: str, entry: ArrivalEntry, job: Job) -> Previous | None:
        before = entry.previous
        if before is None:
            return None
        path = f"{path}.previous"
        for i, name in enumerate(before.failed_nodes):
            self._known_node(f"{path}.failed-nodes[{i}]", name)
        placements = self._placements(f"{path}.placements", before.placements, job)
        return Previous(
            placements, tuple(before.failed_nodes), RestartScope(before.keep)
        )

    def _placements(
        self, path: str, entries: Iterable[PlacementEntry], job: Job
    ) -> tuple[Placement, ...]:
        found = []
        for i, entry in enumerate(entries):
            own = f"{path}[{i}]"
            self._known_node(f"{own}.node", entry.node)
            if entry.node in self.context.nodes:
                n_chips = self.context.nodes[entry.node].chips
                good_chips(f"{own}.chips", entry.chips, n_chips)
            placement = placed_at(own, entry)
            if job.job_type is not None or placement.mark is not None:
                mark = replace(
                    placement.mark or LeafAnnotation(), job_type=job.job_type
                )
                placement = replace(placement, mark=mark)
            found.append(placement)
        return tuple(found)

    def _known_node(self, path: str, name: str) -> None:
        if self.context.strict and name not in self.context.nodes:
            unknown_node(path, name, self.context.nodes)

    def _known_job(self, path: str, name: str) -> str:
        if self.context.strict and name not in self.context.jobs:
            raise BadInput(
                f"{path} is {brief(name)}, want the name of a job",
                "it arrives earlier, or is under jobs or running",
            )
        return name

    def _known_pods(
        self,
        path: str,
        entry: PodsEntry | PodsEndEntry | PodsRunEntry | PodsRefusedEntry,
    ) -> tuple[str, tuple[int, ...]]:
        """The job and the pods that an entry names."""
        job = self._known_job(f"{path}.job", entry.job)
        for i, replica in enumerate(entry.replicas):
            self._known_pod(f"{path}.replicas[{i}]", job, replica)
        return job, tuple(entry.replicas)

    def _known_pod(self, path: str, name: str, replica: int) -> None:
        if not self.context.strict:
            return
        told = self.context.jobs[name]
        if not any(replica in job.numbers for job in told):
            raise BadInput(
                f"{path} is {replica}, want the rank of a pod of {brief(name)}, "
                f"{rank_words(told[-1].numbers)}"
            )

    def _ends(self, path: str, entry: str | JobEndEntry) -> Event:
        if isinstance(entry, str):
            return JobGone(self._known_job(path, entry))
        job = self._known_job(f"{path}.job", entry.job)
        return JobGone(job, entry.returns, entry.ends_run)

    def _pods_end(self, path: str, entry: PodsEndEntry) -> Event:
        pods = self._known_pods(path, entry)
        return PodsGone(*pods, entry.succeeded, entry.ends_run)

    def _pods_ending(self, path: str, entry: PodsEntry) -> Event:
        return PodsEnding(*self._known_pods(path, entry))

    def _bind_fails(self, path: str, entry: PodsEntry) -> Event:
        return BindFailed(*self._known_pods(path, entry))

    def _pods_ail(self, path: str, entry: PodsAilEntry) -> Event:
        job = self._known_job(f"{path}.job", entry.job)
        for i, each in enumerate(entry.ailments):
            own = f"{path}.ailments[{i}]"
            self._known_pod(f"{own}.replica", job, each.replica)
            if each.node and each.node not in self.context.gone:
                self._known_node(f"{own}.node", each.node)
            if self.context.strict and each.cause is Cause.CHIP:
                raise BadInput(
                    f"{own}.cause is {brief(str(each.cause))}, want what is wrong "
                    "with the pod itself",
                    "unhealthy chips are listed on nodes, as faulty",
                )
        return PodFaultsReported(
            job, self._ailments(f"{path}.ailments", entry.ailments)
        )

    def _ailments(
        self, path: str, entries: Sequence[AilmentEntry]
    ) -> tuple[PodFault, ...]:
        for i, each in enumerate(entries):
            if self.context.strict and each.cause not in OF_PODS:
                want = wanted_at(AilmentEntry, "cause", element=False)
                found = brief(str(each.cause))
                raise BadInput(f"{path}[{i}].cause is {found}, want {want}")
        return tuple(map(struct_of, entries))

    def _pods_run(self, path: str, entry: PodsRunEntry) -> Event:
        return PodsRun(*self._known_pods(path, entry), entry.since)

    def _pods_refused(self, path: str, entry: PodsRefusedEntry) -> Event:
        return PodsRefused(*self._known_pods(path, entry), entry.why)

    def _repair_known(self, path: str, entry: RepairEntry) -> Event:
        given = entry.record
        placements = (
            placed_at(f"{path}.record.placements[{i}]", each)
            for i, each in enumerate(given.placements)
        )
        record = struct_of(
            given,
            pod_faults=self._ailments(f"{path}.record.ailments", given.ailments),
            placements=tuple(placements),
        )
        return RepairKnown(entry.job, record)

    def _faults_known(self, _path: str, entries: list[FaultEntry]) -> Event:
        return FaultsKnown(tuple(map(struct_of, entries)))

    def _run_times_known(self, _path: str, entries: list[RunSeriesEntry]) -> Event:
        return RunTimesKnown(tuple(map(struct_of, entries)))

    def _idle_time_known(self, _path: str, entry: IdleTimeEntry) -> Event:
        return IdleAccountKnown(
            IdleAccount(
                tuple((each.until, each.chip_seconds) for each in entry.kept_idle),
                entry.budget_spent,
                tuple(map(struct_of, entry.reservations)),
            )
        )

    def _deletions_known(self, _path: str, entries: list[DeletionEntry]) -> Event:
        return DeletionsKnown(
            tuple(Deletion(each.deleted_at, each.job, each.pods) for each in entries)
        )

    def _nodes(self, path: str, entries: list[NodeEntry]) -> Event:
        nodes: list[Node] = []
        for group in node_groups(path, entries):
            for node in nodes_of(group, {}, {}):
                seated = self._seated(group.path, group.entry, node)
                self.context.nodes[node.name] = seated
                nodes.append(seated)
        return NodesChanged(tuple(nodes))

    def _seated(self, path: str, entry: NodeEntry, node: Node) -> Node:
        """*node* in its slot: the one it names, the one it had, or the next free."""
        if node.leaf is None:
            return node
        others = self.context.nodes.values()
        under = {n.slot: n for n in others if n.leaf == node.leaf}
        before = self.context.nodes.get(node.name)
        slot = entry.slot
        if slot is None and before is not None and before.leaf == node.leaf:
            slot = before.slot
        elif slot is None:
            slot = next(i for i in range(len(under) + 1) if i not in under)
        if self.context.strict and under.get(slot, node).name != node.name:
            raise BadInput(
                f"{path}.slot is {slot} under leaf {brief(node.leaf)}, "
                f"already the slot of node {brief(under[slot].name)}"
            )
        return replace(node, slot=slot)

    def _nodes_gone(self, path: str, names: list[str]) -> Event:
        for i, name in enumerate(names):
            self._known_node(f"{path}[{i}]", name)
        self.context.products()
        self.context.gone.update(names)
        for name in names:
            self.context.nodes.pop(name, None)
        return NodesGone(tuple(names))

    def _leaves(self, _path: str, entries: Mapping[str, LeafEntry]) -> Event:
        return LeavesChanged(tuple(leaves_of(entries)))

    def _queue(self, path: str, entry: QueueEntry) -> Event:
        return QueueChanged(queue_of(path, entry))

    def _queue_gone(self, path: str, name: str) -> Event:
        return QueueGone(good_name(path, name))

    def _configuration(self, path: str, given: Mapping[str, object] | str) -> Event:
        settings = [("settings", self.context.settings)]
        if not isinstance(self.entry.settings, UnsetType):
            settings.append((f"{self.where}.settings", self.entry.settings))
        others = self.context.others
        return ConfChanged(conf_of(path, given, settings, self.warnings, others))

    def _wakes(self, path: str, given: bool) -> Event:  # noqa: FBT001
        if not given:
            raise BadInput(f"{path} is false, want true")
        return TimerFired()


FORMS: Final[Mapping[str, type[Struct]]] = MappingProxyType(
    {
        "arrives": JobArrived,
        "ends": JobGone,
        "pods-end": PodsGone,
        "pods-ending": PodsEnding,
        "bind-fails": BindFailed,
        "pods-ail": PodFaultsReported,
        "pods-run": PodsRun,
        "pods-refused": PodsRefused,
        "repair-known": RepairKnown,
        "faults-known": FaultsKnown,
        "deletions-known": DeletionsKnown,
        "run-times-known": RunTimesKnown,
        "idle-time-known": IdleAccountKnown,
        "nodes": NodesChanged,
        "nodes-gone": NodesGone,
        "leaves": LeavesChanged,
        "queue": QueueChanged,
        "queue-gone": QueueGone,
        "configuration": ConfChanged,
        "wakes": TimerFired,
    }
)
"""Key of an entry -> the event that it is; one for every kind of event."""
