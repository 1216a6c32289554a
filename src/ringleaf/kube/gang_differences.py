"""Whether a gang is something else than the engine knows."""

from collections.abc import Mapping

from ringleaf.kube.gang_state import ReportedJob
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement


def must_be_reported_anew(
    reported: ReportedJob, job: Job, known: Mapping[int, Placement]
) -> bool:
    """Whether pods are elsewhere, or something else, than the engine knows."""
    assert reported.job is not None
    placed = reported.placed
    return (
        reported.is_stale
        or any(
            n not in placed or not _same_place(placed[n], place)
            for n, place in known.items()
        )
        or (bool(known) and _requests_differ(reported.job, job))
    )


def _same_place(one: Placement, other: Placement) -> bool:
    return one.node == other.node and {*one.chips} == {*other.chips}


def _requests_differ(one: Job, other: Job) -> bool:
    """Whether pods are something else to their nodes."""
    if one.demand is other.demand and one.roles == other.roles:
        return False
    known = {n: role.demand for role, own in one.role_ranks for n in own}
    return any(
        not known.get(n, role.demand).is_like(role.demand)
        for role, own in other.role_ranks
        for n in own
    )
