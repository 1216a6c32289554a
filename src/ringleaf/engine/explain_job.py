"""Where a job is, or why it is pending, with what would help."""

from typing import Final

from msgspec.structs import replace

from ringleaf.framework.context import Context
from ringleaf.framework.explain_pending import beyond_quota
from ringleaf.framework.job_state import JobState
from ringleaf.framework.placer import waiting_for_missing_pods
from ringleaf.framework.reasons import NOT_ADMITTED, PendingCause, QueueReason
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Placed, Waiting
from ringleaf.policies.validation import warnings_of
from ringleaf.policies.words import some_of

MAX_QUEUES: Final = 4
"""Queues that are named where the queue of a job does not exist."""


def explain_job(
    ctx: Context, job_state: JobState, *, hints: bool = True
) -> Placed | Waiting:
    """Where a job is, or why it is pending.

    Without *hints* a running job that lacks pods gets fewer reasons, in less time.
    """
    if not job_state.placements:
        found = _pending(ctx, job_state)
    elif job_state.below_min_available:
        found = _lacks_pods(ctx, job_state, hints=hints)
    else:
        warnings = warnings_of(job_state.job, ctx.state.settings)
        return Placed(job_state.job, tuple(job_state.placements.values()), warnings)
    return ctx.placer.with_reserved(job_state, found)


def _lacks_pods(ctx: Context, job_state: JobState, *, hints: bool) -> Waiting:
    """Why a running job lacks pods that it cannot do without."""
    name = job_state.job.name
    if name in ctx.pods_ready.backoff:
        found = waiting_for_missing_pods(job_state)
        assert job_state.history.why is not None, "a job that backs off has a reason"
        return replace(found, because=f"{found.because}; {job_state.history.why.words}")
    with Statement(ctx.state.cluster) as statement:
        ctx.repairs.drop_hold(name, statement)
        return ctx.placer.why_short(job_state, hints=hints)


def _pending(ctx: Context, job_state: JobState) -> Waiting:
    """Why a job without pods is pending: its queue, or what it finds of the nodes."""
    job, session = job_state.job, ctx.framework.session
    why = job_state.history.why
    if why is not None and why.cause is PendingCause.IMPOSSIBLE:
        why = None  # nodes may have come since
    if why is not None:
        why = ctx.quota.up_to_date(why, job_state)
    hint = _queue_hint(ctx, job.queue, why)
    with Statement(ctx.state.cluster) as statement:
        reservation = ctx.reservations.get(job.name)
        if reservation is not None:
            statement.drop(reservation.owner)
        ctx.repairs.drop_hold(job.name, statement)
        with Statement(ctx.state.cluster):
            fits = session.place(job) is not None
        if fits:
            because = "" if why is None else why.words
            held_back = beyond_quota(session, job, 0)
            return replace(held_back, because=because, hint=hint)
        waiting = session.explain_pending(job)
    is_open = ctx.quota.why_closed(job.queue) is None
    if why is None or (waiting.impossible and is_open):
        return waiting
    return replace(waiting, because=why.words, hint=hint or waiting.hint)


def _queue_hint(ctx: Context, name: str, why: QueueReason | None) -> str:
    """What helps a job that its queue holds back; empty if that is not why."""
    if name not in ctx.state.queues:
        there = some_of(sorted(ctx.state.queues), MAX_QUEUES) or "none"
        return f"create queue {name!r}, or use one that exists: {there}"
    if ctx.quota.why_closed(name) is not None:
        return f"open queue {name!r}, or use another one"
    if why is not None and why.cause in NOT_ADMITTED:
        return f"admitted jobs of queue {name!r} must end first"
    return ""
