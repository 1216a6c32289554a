"""Evict pods of the same queue for a job that outranks them."""

from ringleaf.actions.evict import evict_for, fresh, hunt_of
from ringleaf.framework.cycle import Cycle


def preempt(cycle: Cycle) -> None:
    """For every job tried in vain, as the plugins allow."""
    hunt = hunt_of(cycle, "preempt", cycle.votes.preemptable)
    for standing in fresh(cycle, hunt.action):
        if standing.job.preempts and cycle.votes.job_starving(standing):
            candidates = list(cycle.view.account(standing.job.queue).jobs.values())
            evict_for(cycle, standing, candidates, hunt)
