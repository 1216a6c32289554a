"""Try one pending job: its plugins, its quota, its place."""

from ringleaf.actions.start import start
from ringleaf.framework.budget import REFUSED, tried
from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.reasons import PendingCause, QueueReason
from ringleaf.model.decision import Waiting
from ringleaf.model.job import Job


def attempt(
    cycle: Cycle,
    line: EquivalenceClass,
    refused: dict[Job, QueueReason] | None = None,
) -> bool:
    """Try the first job of *line*; whether it was placed, or left the line.

    What was *refused* by the quota of a queue, and why, is kept there; as long as no
    job starts or reserves, the quota gives the same answer to the same request.
    """
    refused = {} if refused is None else refused
    _key, job_state = line.front
    waiting, reports = cycle.pending.waiting, cycle.reports
    if job_state.phase is not Phase.RUNNING:
        refusal = cycle.framework.votes.job_valid(job_state)
        if refusal is not None:
            why = QueueReason(PendingCause.REFUSED, detail=refusal)
            reports.report_pending(job_state, why)
            cycle.pending.remove(job_state.job.name)
            return True
    overdue = cycle.pending.lost_min_available(job_state)
    is_like_others = not (
        overdue
        or job_state.placements
        or job_state.finished
        or cycle.reservations.aged
        or job_state.job.name in cycle.reservations
    )
    cycle.slice.cost += REFUSED
    known = refused.get(job_state.untimed_key) if is_like_others else None
    limit = None if known else cycle.quota.limit(job_state, overdue=overdue)
    if limit is None:
        why = known or cycle.quota.no_room(job_state)
        if is_like_others:
            refused[job_state.untimed_key] = why
        waiting.hold_back(line, why)
        cycle.victim_search.fail(line)
        reports.report_pending(job_state, why)
        return False
    if isinstance(line.why, Waiting) and cycle.placer.lacks_room(job_state):
        waiting.close(line, line.why)  # what was reported still holds
        cycle.victim_search.fail(line)
        return False
    cycle.slice.cost += tried(job_state.job)
    found = cycle.placer.place(job_state, limit)
    if isinstance(found, tuple):
        start(cycle, job_state, found)
        return True
    found = cycle.placer.with_reserved(job_state, found)
    _note_stuck(cycle, job_state)
    waiting.close(line, found)
    cycle.victim_search.fail(line)
    reports.report_pending(job_state, found)
    return False


def _note_stuck(cycle: Cycle, job_state: JobState) -> None:
    """Pods of a job that is repaired find no place."""
    repair = cycle.repairs.get(job_state.job.name)
    if repair is not None and repair.stuck_at is None:
        repair.stuck_at = cycle.now
        cycle.changes.note(Change.REPAIR_MOVED)
