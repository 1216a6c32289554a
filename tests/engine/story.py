"""Small clusters and what the engine says of them, in one line an instruction.

``story.hears(JobArrived(job("j")))`` gives lines such as ``bind j: 0 on a 01234567``.
A story keeps its own state (``ledger``) and compares it with the engine's after
every event.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import inf
from typing import Any

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT, read_conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event, JobArrived, PodsGone, TimerFired
from ringleaf.framework.instruction import (
    AskToExit,
    Bind,
    Delete,
    Evict,
    Instruction,
    PersistRepair,
    Repaired,
    Report,
    ReportFaultyPods,
    WakeAt,
)
from ringleaf.framework.job_state import Phase
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Record
from ringleaf.model.job import Job
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import Placement
from ringleaf.model.queue import Queue
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import PRODUCTS
from tests.engine.ledger import Ledger

A2 = PRODUCTS["atlas-800t-a2"]
NPU = A2.resource
TIERS = (
    ("priority", "gang", "conformance", "affinity"),
    ("drf", "predicates", "proportion", "nodeorder", "binpack"),
)
PREEMPT = "enqueue, allocate, backfill, preempt"
RECLAIM = "enqueue, allocate, backfill, reclaim"
BOTH = "enqueue, allocate, backfill, preempt, reclaim"
PLAIN = (("priority", "gang", "conformance"), ("predicates", "proportion"))
"""Tiers in which priority alone chooses victims in the same queue."""


def conf(
    actions: str = "enqueue, allocate, backfill",
    tiers: Sequence[Sequence[str | Mapping[str, Any]]] = PLAIN,
    **arguments: Mapping[str, Any],
) -> Conf:
    """A configuration; *arguments* by action."""
    found = read_conf(
        {
            "actions": actions,
            "tiers": [
                {"plugins": [{"name": p} if isinstance(p, str) else p for p in tier]}
                for tier in tiers
            ],
            "configurations": [
                {"name": name, "arguments": dict(given)}
                for name, given in arguments.items()
            ],
        }
    )
    assert isinstance(found, Conf), found
    return found


def node(name: str, chips: Sequence[int] = range(8), **changes: Any) -> Node:  # noqa: ANN401
    """A node of eight chips, of which *chips* are free."""
    return Node(name, A2, 8, mask_of(chips), **changes)


def job(name: str, chips: int = 8, pods: int = 1, **changes: Any) -> Job:  # noqa: ANN401
    """A job of *pods* pods."""
    return Job(name, A2, chips, pods, **changes)


def queue(name: str, chips: int | None = None, **changes: Any) -> Queue:  # noqa: ANN401
    """A queue that may use *chips* at most."""
    most = {} if chips is None else {NPU: 1000 * chips}
    return Queue(name, capability=most, **changes)


def at(*places: str) -> tuple[Placement, ...]:
    """Pods that run: ``at("a 0123", "b 4567")``."""
    found = []
    for replica, place in enumerate(places):
        name, _space, chips = place.partition(" ")
        found.append(Placement(replica, name, tuple(int(c, 16) for c in chips)))
    return tuple(found)


def words(said: Instruction) -> str:
    """An instruction in one line, without the words of a report."""
    match said:
        case Bind():
            pods = ", ".join(
                f"{p.replica} on {p.node} {''.join(f'{c:x}' for c in p.chips)}".rstrip()
                for p in said.placements
            )
            return f"bind {said.job}: {pods}"
        case Evict():
            pods = ",".join(map(str, said.replicas))
            return f"evict {said.job}: {pods} for {said.by} ({said.action})"
        case Report():
            return f"{said.verdict.value} {said.job}"
        case WakeAt():
            return f"wake {said.at:g}"
        case _:
            return words_of_faults(said)


def words_of_faults(
    said: Delete | ReportFaultyPods | PersistRepair | AskToExit | Repaired,
) -> str:
    """What is said of faults, in one line."""
    match said:
        case Delete():
            pods = ",".join(map(str, said.replicas))
            how = " at once" if said.force else ""
            return f"delete {said.job}: {pods}{how} ({said.cause})"
        case ReportFaultyPods():
            pods = ", ".join(f"{each.replica} {each.cause}" for each in said.pod_faults)
            return f"point {said.job}: {pods}".rstrip()
        case PersistRepair():
            return words_of_record(said.job, said.record)
        case AskToExit():
            return f"{'ask' if said.exits else 'unask'} {said.job}"
        case Repaired():
            return f"repaired {said.job}"


def words_of_record(name: str, record: Record | None) -> str:
    """What is written down of a repair, in one line."""
    if record is None:
        return f"forget {name}"
    used = f", {record.retries_used} used" if record.retries_used else ""
    if record.is_over:
        return f"remember {name}: over{used}"
    pods = ",".join(map(str, record.deleted)) or "none"
    return f"remember {name}: {record.scope} {pods}{used}"


class Story:
    """An engine, what it said, and a ledger beside it."""

    def __init__(
        self,
        nodes: Iterable[Node] | str = "a",
        *,
        leaves: Iterable[Leaf] = (),
        queues: Iterable[Queue] = (),
        conf: Conf = DEFAULT,
    ) -> None:
        given = [node(n) for n in nodes.split()] if isinstance(nodes, str) else [*nodes]
        listed = [*queues]
        self.engine = Engine(given, leaves, listed, conf)
        self.ledger = Ledger(given, listed, conf)
        self.now = 0.0
        self.said: list[Instruction] = []

    def hears(
        self, *events: Event, now: float | None = None, most: float = inf
    ) -> list[str]:
        """What is said to *events*, which happened together; by default at once.

        It may stop after *most* jobs, and the search for victims as soon.
        """
        self.now = self.now if now is None else now
        self.ledger.wards.now = self.now
        self.said = self.engine.handle_all(events, self.now, most)
        for event in events:
            self.ledger.hear(event)
        for said in self.said:
            self.ledger.heed(said)
        self.ledger.compare(self.engine)
        return [words(said) for said in self.said]

    def arrives(self, *jobs: Job, now: float | None = None) -> list[str]:
        """What is said when *jobs* come together."""
        return self.hears(*(JobArrived(each) for each in jobs), now=now)

    def wakes(self, now: float) -> list[str]:
        """What is said when time has passed."""
        return self.hears(TimerFired(), now=now)

    def carry_out(self, now: float | None = None) -> list[str]:
        """What is said when the pods that were just asked to end are gone."""
        ends = [s for s in self.said if isinstance(s, Evict | Delete)]
        gone = [PodsGone(each.job, each.replicas) for each in ends]
        return self.hears(*gone, now=now)

    @property
    def messages(self) -> list[str]:
        """The messages of the last reports."""
        return [said.message for said in self.said if isinstance(said, Report)]

    def phase(self, name: str) -> Phase:
        """How far a job has come."""
        return self.engine.view.job_states[name].phase

    @property
    def running(self) -> dict[str, list[int]]:
        """Job -> pods that hold something."""
        pods = sorted(self.ledger.pods)
        return {
            name: [replica for _name, replica in own]
            for name, own in groupby(pods, key=lambda pod: pod[0])
        }
