"""Place pending jobs: ``allocate`` if they request something, else ``backfill``.

``allocate`` starts jobs with a reservation first, then jobs queue by queue, all pods
that a job cannot do without or none, then rejected jobs that fit. A job that has waited
too long gets a reservation (``reserve``).
"""

from ringleaf.actions.enqueue import admit_fitting
from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.actions.reserve import reserve, reserve_terminating, tend_reservations
from ringleaf.actions.start import start
from ringleaf.framework.budget import COST_REFUSED, COST_TRIED
from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.reasons import PendingCause, QueueReason
from ringleaf.model.decision import Waiting
from ringleaf.model.job import Job


def allocate(ctx: Context) -> None:
    """Place jobs, in the order of queues and jobs."""
    tend_reservations(ctx)
    pending, votes = ctx.pending, ctx.framework.votes
    turns = QueueIterator(ctx, pending.admitted)
    endings: list[JobState] | None = None
    quota_refusals: dict[Job, QueueReason] = {}
    while (job_class := turns.next()) is not None:
        if ctx.budget.stop_binding():
            return
        queue = ctx.state.queues.get(turns.queue)
        goes_first = pending.goes_first(job_class.first_job)
        if queue is not None and not goes_first and votes.overused(queue):
            pending.pass_over(turns.queue)
            turns.skip_queue()
        elif attempt(ctx, job_class, quota_refusals):
            endings, quota_refusals = None, {}
        else:
            if endings is None:
                endings = ctx.reservations.unclaimed(ctx.victim_search.ending)
            if reserve_terminating(ctx, job_class, endings):
                endings, quota_refusals = None, {}
    if pending.rejected:
        if not admit_fitting(ctx):
            return
        pending.report_rejected()
    if turns.is_done:
        reserve(ctx)


def attempt(
    ctx: Context,
    job_class: EquivalenceClass,
    quota_refusals: dict[Job, QueueReason],
) -> bool:
    """Try the first job of *job_class*; whether it was placed, or left the class.

    *quota_refusals* keeps which requests the quota of a queue refused, and why; as long
    as no job starts or reserves, the quota gives the same answer to the same request.
    """
    job_state = job_class.first_job
    waiting, reports = ctx.pending.admitted, ctx.reports
    if job_state.phase is not Phase.RUNNING:
        refusal = ctx.framework.votes.job_valid(job_state)
        if refusal is not None:
            why = QueueReason(PendingCause.REFUSED, detail=refusal)
            reports.report_pending(job_state, why)
            ctx.pending.remove(job_state.job.name)
            return True
    goes_first = ctx.pending.goes_first(job_state)
    refusal_is_reusable = not (
        goes_first
        or job_state.placements
        or job_state.facts.finished
        or job_state.job.name in ctx.reservations.by_job
        or (ctx.reservations.by_job and ctx.reservations.aged)
    )
    ctx.budget.cost += COST_REFUSED
    known = (
        quota_refusals.get(job_state.facts.key_without_run_time)
        if refusal_is_reusable
        else None
    )
    limit = None if known else ctx.quota.limit(job_state, ignore_share=goes_first)
    if limit is None:
        why = known or ctx.quota.why_no_room(job_state)
        if refusal_is_reusable:
            quota_refusals[job_state.facts.key_without_run_time] = why
        waiting.close_for_quota(job_class, why)
        ctx.victim_search.fail(job_class)
        reports.report_pending(job_state, why)
        return False
    if isinstance(job_class.why, Waiting) and ctx.placer.lacks_room(job_state):
        waiting.close_for_capacity(
            job_class, job_class.why
        )  # what was reported still holds
        ctx.victim_search.fail(job_class)
        return False
    ctx.budget.cost += COST_TRIED + job_state.facts.filter_cost
    found = ctx.placer.place(job_state, limit)
    if isinstance(found, tuple):
        start(ctx, job_state, found)
        return True
    found = ctx.placer.with_reserved(job_state, found)
    _note_unschedulable(ctx, job_state)
    waiting.close_for_capacity(job_class, found)
    ctx.victim_search.fail(job_class)
    reports.report_pending(job_state, found)
    return False


def _note_unschedulable(ctx: Context, job_state: JobState) -> None:
    """Pods of a job that is repaired find no place."""
    repair = ctx.repairs.open.get(job_state.job.name)
    if repair is not None and repair.deletion.unschedulable_since is None:
        repair.deletion.unschedulable_since = ctx.state.now
        ctx.wakeups.note(Change.REPAIR_PROGRESSED)


def backfill(ctx: Context) -> None:
    """Place jobs that request nothing."""
    best_effort = ctx.pending.best_effort
    if not best_effort.by_job:
        return
    turns = QueueIterator(ctx, best_effort)
    while (job_class := turns.next()) is not None:
        job_state = job_class.first_job
        if (why := ctx.quota.why_closed(job_state.job.queue)) is not None:
            best_effort.close_for_quota(job_class, why)
            ctx.reports.report_pending(job_state, why)
            continue
        ctx.budget.cost += COST_TRIED + job_state.facts.filter_cost
        found = ctx.placer.place(job_state, job_state.facts.n_pods)
        if isinstance(found, tuple):
            start(ctx, job_state, found)
        else:
            best_effort.close_for_capacity(job_class, found)
            ctx.reports.report_pending(job_state, found)
