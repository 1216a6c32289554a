"""Place jobs that ask for something: all the pods they cannot do without, or none.

First those with a reservation, then queue by queue, job by job, then rejected jobs
that fit. A job that has waited too long gets a reservation (``reserve``).
"""

from ringleaf.actions.admit_fitting import admit_fitting
from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.actions.reserve import reserve, reserve_terminating, tend_reservations
from ringleaf.actions.start import start
from ringleaf.framework.budget import COST_REFUSED, COST_TRIED
from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.reasons import PendingCause, QueueReason
from ringleaf.model.decision import Waiting
from ringleaf.model.job import Job


def allocate(cycle: Cycle) -> None:
    """Place jobs, in the order of queues and jobs."""
    tend_reservations(cycle)
    pending, votes = cycle.pending, cycle.framework.votes
    turns = QueueIterator(cycle, pending.waiting)
    endings: list[JobState] | None = None
    quota_refusals: dict[Job, QueueReason] = {}
    while (job_class := turns.next()) is not None:
        if cycle.slice.cut_short():
            return
        queue = cycle.view.queues.get(turns.queue)
        lost_pods = pending.lost_min_available(job_class.front[1])
        if queue is not None and not lost_pods and votes.overused(queue):
            pending.pass_over(turns.queue)
            turns.skip_queue()
        elif attempt(cycle, job_class, quota_refusals, lost_pods=lost_pods):
            endings, quota_refusals = None, {}
        else:
            if endings is None:
                endings = cycle.reservations.unclaimed(cycle.victim_search.ending)
            if reserve_terminating(cycle, job_class, endings):
                endings, quota_refusals = None, {}
    if pending.rejected:
        if not admit_fitting(cycle):
            return
        pending.report_rejected()
    if turns.is_done:
        reserve(cycle)


def attempt(
    cycle: Cycle,
    job_class: EquivalenceClass,
    quota_refusals: dict[Job, QueueReason] | None = None,
    *,
    lost_pods: bool | None = None,
) -> bool:
    """Try the first job of *job_class*; whether it was placed, or left the class.

    *quota_refusals* keeps which requests the quota of a queue refused, and why; as long
    as no job starts or reserves, the quota gives the same answer to the same request.
    *lost_pods* says whether the job lost pods that it cannot do without.
    """
    quota_refusals = {} if quota_refusals is None else quota_refusals
    _key, job_state = job_class.front
    waiting, reports = cycle.pending.waiting, cycle.reports
    if job_state.phase is not Phase.RUNNING:
        refusal = cycle.framework.votes.job_valid(job_state)
        if refusal is not None:
            why = QueueReason(PendingCause.REFUSED, detail=refusal)
            reports.report_pending(job_state, why)
            cycle.pending.remove(job_state.job.name)
            return True
    if lost_pods is None:
        lost_pods = cycle.pending.lost_min_available(job_state)
    is_shareable = not (
        lost_pods
        or job_state.placements
        or job_state.facts.finished
        or job_state.job.name in cycle.reservations.by_job
        or (cycle.reservations.by_job and cycle.reservations.aged)
    )
    cycle.slice.cost += COST_REFUSED
    known = (
        quota_refusals.get(job_state.facts.key_without_run_time)
        if is_shareable
        else None
    )
    limit = None if known else cycle.quota.limit(job_state, ignore_share=lost_pods)
    if limit is None:
        why = known or cycle.quota.no_room(job_state)
        if is_shareable:
            quota_refusals[job_state.facts.key_without_run_time] = why
        waiting.hold_back(job_class, why)
        cycle.victim_search.fail(job_class)
        reports.report_pending(job_state, why)
        return False
    if isinstance(job_class.why, Waiting) and cycle.placer.lacks_room(job_state):
        waiting.close(job_class, job_class.why)  # what was reported still holds
        cycle.victim_search.fail(job_class)
        return False
    cycle.slice.cost += COST_TRIED + job_state.facts.selecting
    found = cycle.placer.place(job_state, limit)
    if isinstance(found, tuple):
        start(cycle, job_state, found)
        return True
    found = cycle.placer.with_reserved(job_state, found)
    _note_stuck(cycle, job_state)
    waiting.close(job_class, found)
    cycle.victim_search.fail(job_class)
    reports.report_pending(job_state, found)
    return False


def _note_stuck(cycle: Cycle, job_state: JobState) -> None:
    """Pods of a job that is repaired find no place."""
    repair = cycle.failures.repairs.open.get(job_state.job.name)
    if repair is not None and repair.stuck_at is None:
        repair.stuck_at = cycle.view.now
        cycle.changes.note(Change.REPAIR_MOVED)
