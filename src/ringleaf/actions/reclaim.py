"""Evict pods of queues above their share for a job of a queue below its own."""

from ringleaf.actions.evict import evict_for, fresh, hunt_of
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.standing import Standing


def reclaim(cycle: Cycle) -> None:
    """For every job tried in vain whose queue may, as the plugins allow."""
    hunt = hunt_of(cycle, "reclaim", cycle.votes.reclaimable)
    for standing in fresh(cycle, hunt.action):
        if _may_reclaim(cycle, standing):
            evict_for(cycle, standing, _others(cycle, standing), hunt)


def _may_reclaim(cycle: Cycle, standing: Standing) -> bool:
    queue = cycle.view.queues.get(standing.job.queue)
    return (
        queue is not None
        and cycle.votes.job_starving(standing)
        and not cycle.votes.overused(queue)
        and cycle.votes.preemptive(queue, standing.least)
    )


def _others(cycle: Cycle, standing: Standing) -> list[Standing]:
    """Jobs of the other queues that give back what they have beyond their share."""
    queues = cycle.view.queues
    return [
        other
        for name, account in cycle.view.accounts.items()
        if name != standing.job.queue and name in queues and queues[name].reclaimable
        for other in account.jobs.values()
    ]
