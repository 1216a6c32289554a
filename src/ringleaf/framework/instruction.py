"""What the engine wants done: bind, evict, report, wake. Edges carry it out."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from ringleaf.model.decision import Reason
from ringleaf.model.placement import Placement


class Verdict(StrEnum):
    """What a report says of a job."""

    WAITING = "waiting"
    INVALID = "invalid"
    RESERVED = "reserved"
    EVICTS = "evicts"
    WOULD_EVICT = "would-evict"
    CONFLICT = "conflict"


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


class Report(Struct, frozen=True, tag="report"):
    """What a job's owner should know."""

    job: str
    verdict: Verdict
    message: str
    hint: str = ""
    missing: int = 0
    reasons: Mapping[Reason, int] = field(default_factory=dict)


class WakeAt(Struct, frozen=True, tag="wake-at"):
    """Call the engine again at that time, even if nothing happens before."""

    at: float


Instruction = Bind | Evict | Report | WakeAt
