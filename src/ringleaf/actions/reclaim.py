"""Evict pods of queues above their share for a job of a queue below its own."""

from functools import partial

from ringleaf.actions.evict import VictimSearch, evictors
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.standing import Standing


def reclaim(cycle: Cycle) -> None:
    """For every job tried in vain whose queue may, as the plugins allow."""
    others = partial(_others, cycle)
    search = VictimSearch(cycle, "reclaim", cycle.votes.reclaimable, others)
    for standing in evictors(cycle, search.action):
        if _may_reclaim(cycle, standing):
            search.evict_for(standing)


def _may_reclaim(cycle: Cycle, standing: Standing) -> bool:
    queue = cycle.view.queues.get(standing.job.queue)
    return (
        queue is not None
        and cycle.votes.job_starving(standing)
        and not cycle.votes.overused(queue)
        and cycle.votes.preemptive(queue, standing.least)
    )


def _others(cycle: Cycle, queue: str) -> list[Standing]:
    """Jobs of other queues, which give back what they have beyond their share."""
    queues = cycle.view.queues
    return [
        other
        for name, account in cycle.view.accounts.items()
        if name != queue and name in queues and queues[name].reclaimable
        for other in account.jobs.values()
    ]
