"""Evict pods of queues above their share for a job of a queue below its own."""

from functools import partial

from ringleaf.actions.evict import VictimSearch, evictors
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState


def reclaim(cycle: Cycle) -> None:
    """For every unschedulable job whose queue may, as the plugins allow."""
    others = partial(_others, cycle)
    search = VictimSearch(cycle, "reclaim", cycle.framework.votes.reclaimable, others)
    for job_state in evictors(cycle, search.action):
        if _may_reclaim(cycle, job_state):
            search.evict_for(job_state)


def _may_reclaim(cycle: Cycle, job_state: JobState) -> bool:
    queue = cycle.view.queues.get(job_state.job.queue)
    return (
        queue is not None
        and cycle.framework.votes.job_starving(job_state)
        and not cycle.framework.votes.overused(queue)
        and cycle.framework.votes.preemptive(queue, job_state.facts.min_resources)
    )


def _others(cycle: Cycle, queue: str) -> list[JobState]:
    """Jobs of other queues, which give back what they have beyond their share."""
    queues = cycle.view.queues
    return [
        other
        for name, account in cycle.view.accounts.items()
        if name != queue and name in queues and queues[name].reclaimable
        for other in account.jobs.values()
    ]
