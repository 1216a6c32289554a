"""Place jobs whose pods ask for nothing; queues and their shares do not matter."""

from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.actions.start import start
from ringleaf.framework.budget import COST_TRIED
from ringleaf.framework.cycle import Cycle


def backfill(cycle: Cycle) -> None:
    """Place jobs that request nothing."""
    best_effort = cycle.pending.best_effort
    if not best_effort.by_job:
        return
    turns = QueueIterator(cycle, best_effort)
    while (job_class := turns.next()) is not None:
        _key, job_state = job_class.front
        if (why := cycle.quota.closed(job_state.job.queue)) is not None:
            best_effort.hold_back(job_class, why)
            cycle.reports.report_pending(job_state, why)
            continue
        cycle.slice.cost += COST_TRIED + job_state.facts.selecting
        found = cycle.placer.place(job_state, job_state.facts.n_pods)
        if isinstance(found, tuple):
            start(cycle, job_state, found)
        else:
            best_effort.close(job_class, found)
            cycle.reports.report_pending(job_state, found)
