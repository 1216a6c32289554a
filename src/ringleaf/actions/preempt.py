"""Evict pods of the same queue for a job that outranks them."""

from collections.abc import Iterable

from ringleaf.actions.evict import VictimSearch, add_outranking, evictors
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState


def preempt(cycle: Cycle) -> None:
    """For every unschedulable job, as the plugins allow."""

    def same_queue(queue: str) -> Iterable[JobState]:
        return cycle.view.accounts[queue].jobs.values()

    search = VictimSearch(
        cycle, "preempt", cycle.framework.votes.preemptable, same_queue
    )
    add_outranking(cycle)
    for job_state in evictors(cycle, search.action):
        if job_state.job.preempts and cycle.framework.votes.job_starving(job_state):
            search.evict_for(job_state)
