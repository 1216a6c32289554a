"""Why a job waits: counts of nodes, the rule that binds, and what would help.

Hints are decisions that are tried and taken back.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Reason, Waiting
from ringleaf.model.demand import amount_words
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Network
from ringleaf.policies.fit import (
    FITS,
    Request,
    capacity,
    node_ranks,
    node_reasons,
    reason_counts,
    request_of,
)
from ringleaf.policies.gang import NodeAssignment
from ringleaf.policies.obstacles import Obstacle, job_reasons, switch_obstacle
from ringleaf.policies.repair import scopes_of, without_pods
from ringleaf.policies.room import Impossible
from ringleaf.policies.superpod_obstacles import repair_obstacle, superpod_obstacle
from ringleaf.policies.validation import is_legal, warnings_of
from ringleaf.policies.words import counted, need_words

if TYPE_CHECKING:
    from ringleaf.framework.session import Session

ONE_POD: Final = ("pods", 1000)
ASK_FOR_LESS: Final = "add nodes, or submit a smaller job"
MAX_ENDINGS: Final = 8
"""Jobs in the way that are tried, for the hint, as the one whose end is enough."""


def explain_pending(
    session: "Session",
    job: Job,
    request: Request,
    *,
    hints: bool = True,
    runs: bool = False,
) -> Waiting:
    """The decision on a job that cannot be placed now, with what would help.

    One that *runs* keeps its pods, and lacks others.
    """
    never = None if runs else session.impossible(job)
    if job.roles and (found := _role_waits(session, job, runs=runs)) is not None:
        if never is not None:
            return _never(found, never, never.hint * hints)
        return found if hints else replace(found, hint="")
    cluster, settings = session.cluster, session.settings
    with session.as_found_by(job, runs=runs) as kept:
        excluded = session.excluded(job, kept)
        reasons = job_reasons(cluster, request, job, settings, excluded)
        obstacle = _obstacle(session, job, request, kept, hints=hints)
        fitting = int((reasons == FITS).sum())
        room = fitting
        if request.network is Network.NONE:
            room = capacity(cluster, request, session.excluded(job))
        missing = max(1, job.min_chip_pods - len(kept) - room)
        counts = reason_counts(reasons)
        ways: list[str] = []
        if hints:
            ways += (
                _ways(session, job, obstacle, missing, counts)
                if never is None
                else _ways_if_impossible(session, job, obstacle, missing, never)
            )
    found = Waiting(
        job=job,
        missing=missing,
        fitting=fitting,
        reasons=counts,
        hint="; ".join(ways),
        because=obstacle.because,
        warnings=warnings_of(job, settings),
    )
    return found if never is None else _never(found, never, found.hint)


def _never(found: Waiting, never: Impossible, hint: str) -> Waiting:
    """The decision on a job that could not start if the cluster were empty."""
    return replace(found, impossible=never.words, hint=hint)


def beyond_quota(session: "Session", job: Job, limit: int) -> Waiting:
    """The decision on a job that may have too few pods to start."""
    cluster = session.cluster
    reasons = node_reasons(cluster, request_of(job), session.excluded(job))
    allows = f"its queue allows {counted(limit, 'pod')}"
    return Waiting(
        job=job,
        missing=job.effective_min - limit,
        fitting=int((reasons == FITS).sum()),
        reasons=reason_counts(reasons),
        hint="",
        because=f"{allows}, it needs {job.effective_min} to start",
        warnings=warnings_of(job, session.settings),
    )


def _role_waits(session: "Session", job: Job, *, runs: bool) -> Waiting | None:
    """The decision where a role is short that is placed on its own.

    Nodes are as the first pod found them that had to be left out.
    """
    cluster = session.cluster
    with Statement(cluster) as statement:
        role, placed = session.stuck(statement, job, runs=runs)
        if role is None:
            return None
        request = request_of(job, role)
        excluded = session.excluded_for(job, role)
        reasons = node_reasons(cluster, request, excluded)
    more = counted(max(1, job.min_pods - placed), "more pod")
    return Waiting(
        job=job,
        missing=max(1, job.min_pods - placed),
        fitting=int((reasons == FITS).sum()),
        reasons=reason_counts(reasons),
        hint=f"needs room for {more}: {need_words(request)}{_used(role)}",
        because=f"a pod of role {role.name!r} finds no node",
        warnings=warnings_of(job, session.settings),
    )


def _used(asking: Job | Role) -> str:
    """The resources of one pod, as they read after its chips; not that it is one."""
    return "".join(
        f" and {amount_words(amount)} {name}"
        for name, amount in asking.demand.resources
        if (name, amount) != ONE_POD
    )


def _ways(
    session: "Session",
    job: Job,
    obstacle: Obstacle,
    missing: int,
    counts: Mapping[Reason, int],
) -> list[str]:
    """What would help, in the order in which it is said."""
    ways = [*_endings(session, job, obstacle)]
    ways += [obstacle.needs] * bool(obstacle.needs)
    ways += [*obstacle.ways, *_others(session, obstacle)]
    return ways or [*_ways_out(session, job, missing, counts)]


def _ways_if_impossible(
    session: "Session", job: Job, obstacle: Obstacle, missing: int, never: Impossible
) -> list[str]:
    """The same of a job that could not start if the cluster were empty."""
    ways = [*obstacle.ways, *_others(session, obstacle)]
    ways = ways or [*_smaller(session, job, missing)]
    return [*filter(None, (never.hint,)), *ways] or [ASK_FOR_LESS]


def _obstacle(
    session: "Session",
    job: Job,
    request: Request,
    kept: Sequence[NodeAssignment],
    *,
    hints: bool,
) -> Obstacle:
    """What in the network, or in the repair, holds *job* back."""
    cluster, settings = session.cluster, session.settings
    ranks = node_ranks(cluster, request, session.excluded(job, kept))
    if kept:
        found = repair_obstacle(cluster, request, job, settings, ranks, kept=kept)
        ways = tuple(_wider_restart(session, job)) if hints else ()
        return replace(found, ways=ways)
    if request.network is Network.SWITCHES:
        return switch_obstacle(cluster, request, job, settings, ranks, hints=hints)
    if request.network is Network.SUPERPODS and job.replicas > 1:
        return superpod_obstacle(cluster, request, job, settings, ranks, hints=hints)
    return Obstacle()


def _endings(session: "Session", job: Job, obstacle: Obstacle) -> Iterator[str]:
    """The first job in the way whose end would be enough; there may be others."""
    holdings = session.cluster.holdings
    jobs = [name for name in obstacle.jobs if name in holdings]
    for other in jobs[:MAX_ENDINGS]:
        with Statement(session.cluster) as statement:
            statement.release(other)
            if session.fits_now(job):
                example = ", for example," if len(jobs) > 1 else ""
                yield f"would start if{example} job {other!r} ended"
                return


def _others(session: "Session", obstacle: Obstacle) -> Iterator[str]:
    """The first other job that would be placed now."""
    for words, other in obstacle.others:
        if is_legal(other, session.settings) and session.fits_now(other):
            yield f"{words} would be placed now"
            return


def _wider_restart(session: "Session", job: Job) -> Iterator[str]:
    """What restarting more of the job would bring."""
    assert job.previous is not None
    whole = replace(job, previous=replace(job.previous, scope=RestartScope.JOB))
    for scope in scopes_of(whole)[1:]:
        if session.would_place(whole, scope):
            what = "its block" if scope is RestartScope.BLOCK else "the whole job"
            yield f"restarting {what} would place it now"
            return
    yield "restarting the whole job would not place it now either"


def _ways_out(
    session: "Session", job: Job, missing: int, reasons: Mapping[Reason, int]
) -> Iterator[str]:
    """What would have been enough, and what fits now instead."""
    request = request_of(job)
    if request.network is not Network.NONE and job.replicas > 1:
        yield "no smaller job would be placed now; other jobs must end first"
        return
    room = f"room for {counted(missing, 'more pod')}: " if job.replicas > 1 else ""
    network = " with a healthy network" if Reason.NETWORK_FAULTY in reasons else ""
    yield f"needs {room}{need_words(request)}{_used(job)}{network}"
    yield from _smaller(session, job, missing)


def _smaller(session: "Session", job: Job, missing: int) -> Iterator[str]:
    """What fits now instead, of fewer chips or pods without a network rule."""
    if job.network is not Network.NONE and job.replicas > 1:
        return
    anew = replace(job, previous=without_pods(job), sp_block=None, min_available=None)
    anew = replace(anew, replicas=job.min_chip_pods, finished=())
    smaller = (replace(anew, chips=n) for n in reversed(range(1, job.chips)))
    fewer = replace(anew, replicas=max(1, job.min_chip_pods - missing))
    for other in (*smaller, fewer):
        if is_legal(other, session.settings) and session.fits_now(other):
            yield f"{other.wanted} would be placed now"
            return
