"""Evict pods of the same queue for a job that outranks them."""

from ringleaf.actions.evict import evict_for, fresh, hunt_of
from ringleaf.framework.cycle import Cycle


def preempt(cycle: Cycle) -> None:
    """For every job tried in vain, as the plugins allow."""
    hunt = hunt_of(cycle, "preempt", cycle.votes.preemptable)
    for line in fresh(cycle, hunt.action):
        while line:
            _key, standing = line.front
            if not standing.job.preempts or not cycle.votes.job_starving(standing):
                break
            candidates = list(cycle.view.account(standing.job.queue).jobs.values())
            if not evict_for(cycle, standing, candidates, hunt):
                break
