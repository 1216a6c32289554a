"""Admit pending jobs, queue by queue, while no plugin objects.

A job that is admitted may be placed; one that is not costs its queue nothing. It may
still evict others, and get a reservation: a full queue is no reason to starve in it.

Where we differ from Volcano: what admitted jobs will use rejects no job that can start
at once (``admit_fitting``).
"""

from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.framework.budget import COST_REFUSED
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState


def enqueue(cycle: Cycle) -> None:
    """Admit jobs, in the order of queues and jobs."""
    _queue_new_jobs(cycle)
    if not cycle.pending.unadmitted.by_job:
        return
    turns = QueueIterator(cycle, cycle.pending.unadmitted)
    while (job_class := turns.next()) is not None:
        _key, job_state = job_class.front
        job = job_state.job
        cycle.slice.cost += COST_REFUSED
        if may_admit(cycle, job_state):
            cycle.pending.unadmitted.remove(job.name)
            admit_job(cycle, job_state)
            continue
        cycle.pending.reject(job_class, cycle.quota.not_admitted(job_state))


def _queue_new_jobs(cycle: Cycle) -> None:
    """Jobs that have just arrived join a class, unless one is the only job to admit."""
    pending = cycle.pending
    just_arrived, pending.just_arrived = list(pending.just_arrived.values()), {}
    alone = len(just_arrived) == 1 and not pending.unadmitted.by_job
    if alone and may_admit(cycle, just_arrived[0]):
        admit_job(cycle, just_arrived[0])
        return
    for job_state in just_arrived:
        pending.add(job_state)


def may_admit(cycle: Cycle, job_state: JobState) -> bool:
    """Whether the queue of a job is open, and no plugin objects to it."""
    closed = cycle.quota.closed(job_state.job.queue)
    return closed is None and cycle.framework.votes.job_enqueueable(job_state)


def admit_job(cycle: Cycle, job_state: JobState) -> None:
    """A job is admitted, and waits for chips."""
    cycle.framework.votes.job_enqueued(job_state)
    cycle.pending.admit(job_state)
    cycle.pending.add(job_state)
