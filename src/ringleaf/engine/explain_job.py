"""Where a job is, or why it is pending, with what would help."""

from typing import Final

from msgspec.structs import replace

from ringleaf.framework.cycle import Cycle
from ringleaf.framework.explain_pending import beyond_quota
from ringleaf.framework.job_state import JobState
from ringleaf.framework.placer import short_of_pods
from ringleaf.framework.reasons import NOT_ADMITTED, PendingCause, QueueReason
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Placed, Waiting
from ringleaf.policies.counting import some_of
from ringleaf.policies.validation import warnings_of

MAX_QUEUES: Final = 4
"""Queues that are named where the queue of a job does not exist."""


def explain_job(
    cycle: Cycle, job_state: JobState, *, hints: bool = True
) -> Placed | Waiting:
    """Where a job is, or why it is pending.

    Without *hints* a running job that lacks pods gets fewer reasons, in less time.
    """
    if not job_state.placements:
        found = _pending(cycle, job_state)
    elif job_state.below_min_available:
        found = _lacks_pods(cycle, job_state, hints=hints)
    else:
        warnings = warnings_of(job_state.job, cycle.view.settings)
        return Placed(job_state.job, tuple(job_state.placements.values()), warnings)
    return cycle.placer.with_reserved(job_state, found)


def _lacks_pods(cycle: Cycle, job_state: JobState, *, hints: bool) -> Waiting:
    """Why a running job lacks pods that it cannot do without."""
    name = job_state.job.name
    if name in cycle.pending.backoff:
        found = short_of_pods(job_state)
        assert job_state.history.why is not None, "a job that backs off has a reason"
        return replace(found, because=f"{found.because}; {job_state.history.why.words}")
    with Statement(cycle.view.cluster) as statement:
        cycle.failures.repairs.let_go(name, statement)
        return cycle.placer.why_short(job_state, hints=hints)


def _pending(cycle: Cycle, job_state: JobState) -> Waiting:
    """Why a job without pods is pending: its queue, or what it finds of the nodes."""
    job, session = job_state.job, cycle.framework.session
    why = job_state.history.why
    if why is not None and why.cause is PendingCause.IMPOSSIBLE:
        why = None  # nodes may have come since
    if why is not None:
        why = cycle.quota.up_to_date(why, job_state)
    hint = _queue_hint(cycle, job.queue, why)
    with Statement(cycle.view.cluster) as statement:
        reservation = cycle.reservations.get(job.name)
        if reservation is not None:
            statement.drop(reservation.owner)
        cycle.failures.repairs.let_go(job.name, statement)
        with Statement(cycle.view.cluster):
            fits = session.place(job) is not None
        if fits:
            because = "" if why is None else why.words
            held_back = beyond_quota(session, job, 0)
            return replace(held_back, because=because, hint=hint)
        waiting = session.explain_pending(job)
    is_open = cycle.quota.closed(job.queue) is None
    if why is None or (waiting.impossible and is_open):
        return waiting
    return replace(waiting, because=why.words, hint=hint or waiting.hint)


def _queue_hint(cycle: Cycle, name: str, why: QueueReason | None) -> str:
    """What helps a job that its queue holds back; empty if that is not why."""
    if name not in cycle.view.queues:
        there = some_of(sorted(cycle.view.queues), MAX_QUEUES) or "none"
        return f"create queue {name!r}, or use one that exists: {there}"
    if cycle.quota.closed(name) is not None:
        return f"open queue {name!r}, or use another one"
    if why is not None and why.cause in NOT_ADMITTED:
        return f"admitted jobs of queue {name!r} must end first"
    return ""
