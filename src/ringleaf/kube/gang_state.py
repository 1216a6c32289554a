"""The state of a gang: a PodGroup with its pods, or a pod that has none.

``GangState`` has the objects; what the engine was told, the repair, the binding and the
status are values of their own. A gang of which there is nothing special to know shares
them with others.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.framework.job_state import NO_NAMES, NONE_OF_THEM
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.records import mark_of
from ringleaf.model.fault import PodFault, Record
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement

UNSTARTED: Final = ("", "Pending", "Inqueue")
"""Phases of a PodGroup whose pods may not be made yet."""
ALONE: Final = "pod "
"""What the name of a gang begins with that is one pod without a PodGroup."""


class ReportedJob(Struct):
    """What the engine was told of a gang.

    Args:
        job: The job; None where the engine has none.
        placed: Number of a pod -> where the engine knows it to be.
        ending: Numbers of pods that the engine knows to be asked to end.
        running: Numbers of pods that the engine knows to run.
        runs_known: Whether the engine was told which pods run.
        pod_faults: What the engine knows to be wrong with the pods themselves.
        is_retained: Whether the engine knows something of it, though not as a job.
        is_stale: Whether the job is to be reported anew.
        is_admitted: Whether the engine has admitted the job.

    """

    job: Job | None = None
    placed: dict[int, Placement] = {}
    ending: frozenset[int] = NONE_OF_THEM
    running: frozenset[int] = NONE_OF_THEM
    runs_known: bool = False
    pod_faults: tuple[PodFault, ...] = ()
    is_retained: bool = False
    is_stale: bool = False
    is_admitted: bool = False


class RepairState(Struct, frozen=True):
    """What is known of the repair of a gang; ``RepairCheckpoints`` writes it.

    Args:
        record: What is remembered of it; the engine or the previous leader wrote it.
        deleting: Marks of the pods that the previous leader was about to delete.
        is_resumed: Whether those were deleted again.
        own_deletions: Uids of the pods that this leader deletes for it.

    """

    record: Record | None = None
    deleting: frozenset[str] = NO_NAMES
    is_resumed: bool = False
    own_deletions: frozenset[str] = NO_NAMES


class BindingState(Struct, frozen=True):
    """How far binding and evicting the pods of a gang is.

    Args:
        sent_at: When pods were sent to their nodes last; 0 once all have arrived.
        complete_since: Since when the engine knows of pods that wait; 0 when none do.
        n_failed: How often binding has failed in a row; several at once count once.
        was_complete: Whether enough pods were bound at one time, and some still are.
        evicting: Uids of pods that were asked to end for others.
        protected_until: Until when its pods are not asked to end.

    """

    sent_at: float = 0.0
    complete_since: float = 0.0
    n_failed: int = 0
    was_complete: bool = False
    evicting: frozenset[str] = NO_NAMES
    protected_until: float = 0.0


class GangStatus(Struct, frozen=True):
    """What users are told of a gang.

    Args:
        not_ready: Why the engine is not told of pods that wait.
        invalid: Why its pods are no job, if they are none.
        outside_canary: Whether there is a canary that does not have it.
        pending_reason: Why it is pending, in words; empty if it is not.
        written_reason: The last reason that was written while it had no pods.
        written_warning: The last warning that was written about it.

    """

    not_ready: str = ""
    invalid: str = ""
    outside_canary: bool = False
    pending_reason: str = ""
    written_reason: str = ""
    written_warning: str = ""


NO_REPAIR: Final = RepairState()
NOT_SENT: Final = BindingState()
NO_STATUS: Final = GangStatus()


class GangState:
    """Pods that start together."""

    __slots__ = (
        "binding",
        "is_alone",
        "name",
        "numbers",
        "podgroup",
        "pods",
        "repair",
        "reported",
        "status",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        """``namespace/name`` of its PodGroup, or ``pod namespace/name`` alone."""
        self.is_alone = name.startswith(ALONE)
        """Whether it is a pod without a PodGroup."""
        self.podgroup: PodGroup | None = None
        self.pods: dict[str, PodState] = {}
        """By uid."""
        self.numbers: dict[str, int] = {}
        """Name of a pod -> the number that it had."""
        self.reported = ReportedJob()
        self.repair = NO_REPAIR
        self.binding = NOT_SENT
        self.status = NO_STATUS

    def was_deleting(self, pod: PodState) -> bool:
        """Whether the previous leader was about to delete a pod."""
        marks = self.repair.deleting
        return bool(marks) and mark_of(pod.uid) in marks

    def is_ending(self, pod: PodState) -> bool:
        """Whether a pod is asked to end, or is about to be."""
        evicting = self.binding.evicting
        return pod.deleting or pod.uid in evicting or self.was_deleting(pod)

    @property
    def has_arrived(self) -> bool:
        """Whether no pod of it is on its way, and enough are on their nodes."""
        if any(pod.assumed is not None for pod in self.pods.values()):
            return False
        there = sum(pod.holds or pod.succeeded for pod in self.pods.values())
        return there >= self.need

    @property
    def need(self) -> int:
        """Pods that must start together."""
        return 1 if self.podgroup is None else self.podgroup.spec.min_member

    @property
    def is_half_bound(self) -> bool:
        """Whether too few of its pods are bound, and never enough of them were.

        The phase of the PodGroup may not be written yet, and another scheduler may have
        bound the pods. All that must start together were made before the first was
        bound: a pod that waits and was made later is in the place of one that is lost.
        """
        if self.podgroup is None or self.podgroup.status.phase not in UNSTARTED:
            return False
        alive = done = 0
        for pod in self.pods.values():
            alive += pod.assumed is not None or (pod.holds and not pod.deleting)
            done += pod.succeeded
        if self.binding.was_complete or not 0 < alive < self.need - done:
            return False
        times = [pod.bound_at or pod.started for pod in self.pods.values() if pod.holds]
        first = min(filter(None, times), default=None)
        if first is None:
            return not any(pod.runs for pod in self.pods.values())
        waiting = (
            pod for pod in self.pods.values() if pod.is_pending and not pod.deleting
        )
        return any(pod.created <= first for pod in waiting)

    def by_number(self) -> dict[int, PodState]:
        """Its pods by number, of those that have one."""
        return {p.number: p for p in self.pods.values() if p.number is not None}


def set_status(gang: GangState, **changes: str | bool) -> None:
    """Change the status of a gang where it differs."""
    status = gang.status
    if any(getattr(status, name) != value for name, value in changes.items()):
        gang.status = replace(status, **changes)


def problem_of(gang: GangState) -> str:
    """Why the pods of a gang cannot be placed as they are; empty if they can."""
    own = (pod.problem for pod in gang.pods.values() if pod.problem)
    return gang.status.invalid or next(own, "")
