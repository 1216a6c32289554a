"""Place jobs that ask for something: all the pods they cannot do without, or none.

First those with a reservation, then queue by queue, job by job, then rejected jobs
that fit. A job that has waited too long gets a reservation (``reserve``).
"""

from ringleaf.actions.admit_fitting import admit_fitting
from ringleaf.actions.attempt import attempt
from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.actions.reserve import heed_ends, reserve, reserve_terminating
from ringleaf.actions.reserved import heed_budget, start_reserved
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState
from ringleaf.framework.reasons import QueueReason
from ringleaf.model.job import Job


def allocate(cycle: Cycle) -> None:
    """Place jobs, in the order of queues and jobs."""
    heed_ends(cycle)
    start_reserved(cycle)
    heed_budget(cycle)
    pending, votes = cycle.pending, cycle.framework.votes
    turns = QueueIterator(cycle, pending.waiting)
    endings: list[JobState] | None = None
    refused: dict[Job, QueueReason] = {}
    while (line := turns.next()) is not None:
        if cycle.slice.cut_short():
            return
        queue = cycle.view.queues.get(turns.queue)
        broken = pending.lost_min_available(line.front[1])
        if queue is not None and not broken and votes.overused(queue):
            pending.pass_over(turns.queue)
            turns.drop()
        elif attempt(cycle, line, refused):
            endings, refused = None, {}
        else:
            if endings is None:
                endings = cycle.reservations.unclaimed(cycle.victim_search.ending)
            if reserve_terminating(cycle, line, endings):
                endings, refused = None, {}
    if admit_fitting(cycle):
        pending.report_rejected()
        if turns.is_done:
            reserve(cycle)
