"""The phase and the conditions of a PodGroup, as Volcano writes them."""

from collections.abc import Callable
from typing import Any, Final

from ringleaf.kube import encode
from ringleaf.kube.gang_state import UNSTARTED, GangState
from ringleaf.kube.objects import PodGroupCondition
from ringleaf.kube.pod_state import PodPhase

SCHEDULED: Final = "tasks in gang are ready to be scheduled"
"""The reason that Volcano gives."""


def status_of(group: GangState) -> dict[str, Any]:
    """The phase of a PodGroup, and how many of its pods run and have ended."""
    assert group.podgroup is not None
    # Others are made in the place of those that were refused.
    pods = [p for p in group.pods.values() if not (p.refused and p.owned)]
    # Not pods on their way: a gang that is called running is never released.
    alive = sum(pod.holds for pod in pods)
    done = sum(pod.succeeded for pod in pods)
    failed = sum(pod.phase is PodPhase.FAILED for pod in pods)
    before = group.podgroup.status.phase
    if pods and done + failed == len(pods):
        phase = "Completed"
    elif alive and alive + done >= group.need:
        phase = "Running"
    elif before not in UNSTARTED and (alive or done):
        phase = "Unknown" if alive else before
    else:
        phase = (
            "Inqueue"
            if group.reported.is_admitted or before == "Inqueue"
            else "Pending"
        )
    return {
        "phase": phase,
        "running": alive,
        "succeeded": done,
        "failed": failed,
    }


def conditions_of(
    group: GangState, phase: str, now: float, number: Callable[[], int]
) -> list[PodGroupCondition] | None:
    """The conditions of a PodGroup, if one of ours is new.

    *number* counts transitions.
    """
    assert group.podgroup is not None
    known = group.podgroup.status.conditions or []
    if phase == "Running":
        new = PodGroupCondition("Scheduled", "True", reason=SCHEDULED)
    elif group.status.pending_reason:
        new = PodGroupCondition(
            "Unschedulable",
            "True",
            reason="NotEnoughResources",
            message=group.status.pending_reason[: encode.MAX_CONDITION],
        )
    else:
        return None
    same = [
        each
        for each in known
        if (each.type, each.status, each.reason, each.message)
        == (new.type, new.status, new.reason, new.message)
    ]
    if same:
        return None
    new.transition_id = f"ringleaf-{number():x}"
    new.last_transition_time = encode.moment(now)
    others = {"Scheduled", "Unschedulable"}
    return [each for each in known if each.type not in others] + [new]
