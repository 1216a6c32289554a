"""What was heard and said of faults, from the first event to the last.

It listens to the events and the instructions of an engine, of a run or of a look at a
live cluster, and keeps what is asked for: the lives of faults, and repairs.
"""

from collections.abc import Iterable

from ringleaf.engine.event import (
    Event,
    FaultsKnown,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodsAil,
    RepairKnown,
)
from ringleaf.framework.faultbook import FaultBook
from ringleaf.framework.instruction import (
    Delete,
    Instruction,
    Remember,
    Report,
    Verdict,
)
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Fault, Record


class Chronicle:
    """Faults and repairs, as events and instructions tell of them."""

    def __init__(self, nodes: Iterable[Node] = (), now: float = 0.0) -> None:
        self.book = FaultBook()
        self.records: dict[str, Record] = {}
        """Job -> what is remembered of its repair, also of one that is over."""
        self.braked: set[str] = set()
        """Jobs that the brake holds back."""
        self._nodes: dict[str, Node] = {}
        for node in nodes:
            self._node(node, now)

    @property
    def used(self) -> dict[str, int]:
        """Job -> how often its pods failed by themselves and were tried again."""
        return {job: record.retries_used for job, record in self.records.items()}

    def _node(self, node: Node, now: float) -> None:
        self.book.nodes_changed(self._nodes.get(node.name), node, now)
        self._nodes[node.name] = node

    def hear(self, events: Iterable[Event], now: float) -> None:
        """Something happened."""
        for event in events:
            match event:
                case NodesChanged(nodes):
                    for node in nodes:
                        self._node(node, now)
                case NodesGone(names):
                    for name in names:
                        self.book.nodes_changed(self._nodes.pop(name, None), None, now)
                case PodsAil(job, ailments):
                    self.book.pods_ail(job, ailments, now)
                case JobGone(job, returns):
                    self._gone(job, now, returns=returns)
                case RepairKnown(job, record):
                    self.records[job] = record
                case FaultsKnown(faults):
                    self.book.known(faults, now)

    def _gone(self, job: str, now: float, *, returns: bool) -> None:
        self.book.job_gone(job, now)
        if not returns:
            self.records.pop(job, None)
            self.braked.discard(job)

    def note(self, said: Iterable[Instruction], now: float) -> None:
        """An engine said something."""
        for each in said:
            match each:
                case Remember(job, record):
                    self._remember(job, record)
                case Delete(job):
                    self.braked.discard(job)
                    self._acted(job, now)
                case Report(job=job, verdict=Verdict.BRAKED):
                    self.braked.add(job)

    def _remember(self, job: str, record: Record | None) -> None:
        if record is None:
            self.records.pop(job, None)
            self.braked.discard(job)
        else:
            self.records[job] = record

    def _acted(self, job: str, now: float) -> None:
        """Pods of *job* are deleted: for the faults that its record names."""
        record = self.records.get(job)
        if record is None:
            return
        chips = {each.replica: each.chips for each in record.placements}
        for ailment in record.ailments:
            keys = self.book.keys_about(job, ailment, chips.get(ailment.replica))
            self.book.acted(keys, job, now)


def looked_at(
    events: Iterable[Event], written: Iterable[Fault], now: float
) -> Chronicle:
    """What a look at a cluster tells; *written* are the lives that were written down.

    Everything is known at once: a fault that nothing tells of has recovered.
    """
    found, heard, known = Chronicle(), [*events], [*written]
    for event in heard:
        if isinstance(event, JobArrived):
            found.book.pods_ail(event.job.name, (), now)
    for fault in known:
        if fault.part.startswith("pod "):
            found.book.pods_ail(fault.where, (), now)
    found.hear(heard, now)
    found.book.known(known, now)
    return found
