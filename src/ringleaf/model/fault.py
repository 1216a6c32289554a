"""Faults: what is wrong with nodes, chips and pods, and what a job wants done then.

The words of causes and of ``fault-scheduling`` are the vendor's: other components read
and write them.
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from ringleaf.model.placement import Placement


class Cause(StrEnum):
    """What is wrong.

    What counts of a pod is the first that applies in ``policies.faults.cause_of``,
    of several pods the first here.
    """

    NODE = "NodeUnhealthy"
    """Its node is reported unhealthy, is not ready, or is gone."""
    CHIP = "CardUnhealthy"
    """One of its chips is reported unhealthy."""
    POD = "pod-failed"
    """It failed, or one of its containers did, and its job may be tried again."""
    RELATION = "RelationFaultSeparate"
    """Another component found that it must be separated (label ``fault-type``)."""
    SUB_HEALTH = "SubHealthFault"
    """A chip of it or the switch of its node works, but not well."""
    NETWORK = "CardNetworkUnhealthy"
    """The network of a chip is unhealthy: it is seen, and no pod is moved for it."""
    REFUSAL = "PodRefused"
    """A node refuses pods that were sent to it."""


class Down(StrEnum):
    """Why a node that is not ready is not."""

    DAEMON = "node-daemon"
    SWITCH = "switch"
    NOT_READY = "not-ready"


class FaultMode(StrEnum):
    """What deletes the pods of a faulty job, and how (label ``fault-scheduling``)."""

    OFF = "off"
    GRACE = "grace"
    FORCE = "force"
    EXTERNAL_GRACE = "external-grace"
    EXTERNAL_FORCE = "external-force"

    @property
    def scheduler_deletes(self) -> bool:
        """Whether the scheduler deletes the pods."""
        return self in (FaultMode.GRACE, FaultMode.FORCE)

    @property
    def is_external(self) -> bool:
        """Whether others delete the pods; the scheduler reports which are faulty."""
        return self in (FaultMode.EXTERNAL_GRACE, FaultMode.EXTERNAL_FORCE)


class SubHealth(StrEnum):
    """What becomes of pods on what works, but not well (``subHealthyStrategy``)."""

    IGNORE = "ignore"
    GRACE_EXIT = "graceExit"
    FORCE_EXIT = "forceExit"
    HOT_SWITCH = "hotSwitch"


class Recovery(Struct, frozen=True):
    """What a job wants done when some of its pods are faulty.

    Args:
        mode: What deletes its pods, and how.
        retries: How often pods may fail by themselves and be tried again.
        pods_only: Only faulty pods are deleted, not all of the job.
        process: Its processes recover by themselves (``process-recover-enable``).
        escalates: Whether more is deleted when faulty pods find no place.
        sub_health: What becomes of pods on what works, but not well.
        master: The pod without which no other goes on, if there is one.

    """

    mode: FaultMode = FaultMode.OFF
    retries: int = 0
    pods_only: bool = False
    process: bool = False
    escalates: bool = True
    sub_health: SubHealth = SubHealth.IGNORE
    master: int | None = 0


NO_RECOVERY = Recovery()


class PodFault(Struct, frozen=True):
    """What is wrong with one pod of a job."""

    replica: int
    cause: Cause
    node: str = ""


class RestartScope(StrEnum):
    """How much of a job restarts after a fault: pods, whole blocks, or all of it.

    It says how much was deleted, and how much may move.
    """

    POD = "pods"
    BLOCK = "block"
    JOB = "job"

    @property
    def is_wide(self) -> bool:
        """Whether pods were deleted with which nothing was wrong."""
        return self is not RestartScope.POD


class Record(Struct, frozen=True):
    """What must not be forgotten of a job while it is repaired, and after.

    Args:
        since: When its fault was found.
        scope: How much of it was deleted.
        pod_faults: The pods that were faulty, and why.
        placements: Where its pods were.
        deleted: The deleted pods that are not placed again; once it is over, all.
        deleted_at: When the last of them were.
        stuck_at: Since when the successors of deleted pods find no place.
        retries_used: How often its pods failed by themselves and were tried again.
        is_over: Whether it is whole again.
        moved_for: The job that starts where it was, if it is moved and not faulty;
            *placements* are then where its pods go.

    """

    since: float
    scope: RestartScope = RestartScope.POD
    pod_faults: tuple[PodFault, ...] = ()
    placements: tuple[Placement, ...] = ()
    deleted: tuple[int, ...] = ()
    deleted_at: float | None = None
    stuck_at: float | None = None
    retries_used: int = 0
    is_over: bool = False
    moved_for: str = ""


class Deletion(Struct, frozen=True, order=True):
    """So many *pods* of a *job* were deleted because of faults."""

    at: float
    job: str
    pods: int


class PartKind(StrEnum):
    """What of a node or of a job is faulty."""

    WHOLE = ""
    CHIP = "chip"
    DAEMON = "daemon"
    SWITCH = "switch"
    POD = "pod"


_NUMBERED: Final = re.compile(r"(chip|pod) (\d{1,9})")
_ALONE: Final = {
    str(each): each for each in (PartKind.WHOLE, PartKind.DAEMON, PartKind.SWITCH)
}
"""The parts of which a node has no more than one, by their words."""


class Part(Struct, frozen=True):
    """One part of a node or of a job, by its kind and its number."""

    kind: PartKind = PartKind.WHOLE
    number: int = 0

    @classmethod
    def read(cls, text: str) -> "Part":
        """The part of which *text* was written; the whole of what has no such part.

        >>> Part.read("chip 3"), str(Part.read("pod 12")), Part.read("lid").kind.name
        (Part(kind=<PartKind.CHIP: 'chip'>, number=3), 'pod 12', 'WHOLE')
        """
        if numbered := _NUMBERED.fullmatch(text):
            return cls(PartKind(numbered[1]), int(numbered[2]))
        return cls(_ALONE.get(text, PartKind.WHOLE))

    def __str__(self) -> str:
        alone = self.kind in _ALONE
        return str(self.kind) if alone else f"{self.kind} {self.number}"

    def __lt__(self, other: "Part") -> bool:
        return str(self) < str(other)


class FaultKey(NamedTuple):
    """What a fault is: the node or the job, the cause, and the part of it."""

    where: str
    cause: Cause
    part: Part = Part()

    @property
    def is_of_pod(self) -> bool:
        """Whether a pod has the fault, and not its node."""
        return self.part.kind is PartKind.POD


class Fault(Struct, frozen=True):
    """The life of one fault: seen, acted on, recovered.

    Args:
        where: The node, or of a pod its job.
        cause: What is wrong.
        part: What of it, as it is written: ``chip 3``, ``switch``, ``pod 2``; empty for
            a whole node.
        seen: When it was first seen.
        acted: When pods were first deleted because of it.
        recovered: When it was no longer so.
        jobs: The jobs of which pods were deleted because of it.
        why: More about it, for people.
        until: Of a node that is quarantined, until when.

    """

    where: str
    cause: Cause
    part: str = ""
    seen: float = 0.0
    acted: float | None = None
    recovered: float | None = None
    jobs: tuple[str, ...] = ()
    why: str = ""
    until: float | None = None

    @property
    def key(self) -> FaultKey:
        """What it is; one that comes back after it recovered is another."""
        return FaultKey(self.where, self.cause, Part.read(self.part))
