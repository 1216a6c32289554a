"""What the engine wants done: bind, evict, delete, report, wake. Edges carry it out."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from ringleaf.model.decision import Reason
from ringleaf.model.fault import PodFault, Record
from ringleaf.model.placement import Placement


class Verdict(StrEnum):
    """What a report says of a job."""

    WAITING = "waiting"
    INVALID = "invalid"
    RESERVED = "reserved"
    EVICTS = "evicts"
    WOULD_EVICT = "would-evict"
    REARRANGES = "rearranges"
    WOULD_MOVE = "would-move"
    MOVES = "moves"
    CONFLICT = "conflict"
    REPAIRING = "repairing"
    RATE_LIMITED = "rate-limited"
    RELEASED = "released"
    QUARANTINED = "quarantined"


class Bind(Struct, frozen=True, tag="bind"):
    """Pods of *job* go where they were placed, with what is written on each."""

    job: str
    placements: tuple[Placement, ...]
    annotations: tuple[Mapping[str, str], ...]
    warnings: tuple[str, ...] = ()


class Evict(Struct, frozen=True, tag="evict"):
    """Pods of *job* are asked to end, because another job needs what they hold."""

    job: str
    replicas: tuple[int, ...]
    by: str
    action: str


class Delete(Struct, frozen=True, tag="delete"):
    """The scheduler deletes pods of *job* for the sake of that job.

    They are faulty, restart with faulty ones, were refused by their node, or never ran.

    Args:
        job: The job of the pods.
        replicas: Which of them.
        cause: The word for it: a ``Cause``, or ``NeverRan``.
        why: For people.
        force: At once, without their grace period.

    """

    job: str
    replicas: tuple[int, ...]
    cause: str
    why: str
    force: bool = False


class ReportFaultyPods(Struct, frozen=True, tag="point"):
    """Others delete the pods of *job*; this says which are faulty."""

    job: str
    pod_faults: tuple[PodFault, ...]


class PersistRepair(Struct, frozen=True, tag="remember"):
    """What is to be written down of the repair of *job*, before its pods are deleted.

    None when there is nothing to remember any more.
    """

    job: str
    record: Record | None


class AskToExit(Struct, frozen=True, tag="ask-to-exit"):
    """The processes of *job* are asked to end by themselves, or no longer."""

    job: str
    exits: bool


class Repaired(Struct, frozen=True, tag="repaired"):
    """All pods of *job* are placed again; *record* says what had been deleted.

    The *message* says where they are now, for people.
    """

    job: str
    record: Record
    message: str = ""


class Report(Struct, frozen=True, tag="report"):
    """What a job's owner should know."""

    job: str
    verdict: Verdict
    message: str
    hint: str = ""
    missing: int = 0
    reasons: Mapping[Reason, int] = field(default_factory=dict)
    node: str = ""
    """The node that is quarantined, where one is."""
    behind: bool = False
    """Whether others stand before the job: it was not looked at, or not admitted."""
    warnings: tuple[str, ...] = ()
    """What has no effect, or is not as the vendor names it."""


class WakeAt(Struct, frozen=True, tag="wake-at"):
    """Call the engine again at that time, even if nothing happens before."""

    at: float


Instruction = (
    Bind
    | Evict
    | Delete
    | ReportFaultyPods
    | PersistRepair
    | AskToExit
    | Repaired
    | Report
    | WakeAt
)
