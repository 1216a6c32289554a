"""Evict pods of the same queue for a job that outranks them."""

from collections.abc import Iterable

from ringleaf.actions.evict import VictimSearch, evictors
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.standing import Standing


def preempt(cycle: Cycle) -> None:
    """For every job tried in vain, as the plugins allow."""

    def same_queue(queue: str) -> Iterable[Standing]:
        return cycle.view.account(queue).jobs.values()

    search = VictimSearch(cycle, "preempt", cycle.votes.preemptable, same_queue)
    for standing in evictors(cycle, search.action):
        if standing.job.preempts and cycle.votes.job_starving(standing):
            search.evict_for(standing)
