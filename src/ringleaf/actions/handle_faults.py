"""Faults: which pods are deleted because of them, and when more of them are.

This comes before the actions of a cycle. It looks at jobs of which pods may have become
faulty, and at those that are being repaired; where neither are, it does nothing.
"""

from ringleaf.actions.delete_faulty import inspect_job, limit_allows
from ringleaf.actions.reconcile_repairs import reconcile_repairs
from ringleaf.framework.cycle import Cycle


def handle_faults(cycle: Cycle) -> None:
    """Delete what is to be deleted because of faults, and no more than may be."""
    repairs = cycle.repairs
    repairs.rate_limit.n_pods = None
    if repairs.rate_limit.waiting and limit_allows(cycle, 1):
        repairs.suspects |= repairs.rate_limit.waiting
    suspects, repairs.suspects = repairs.suspects, {}
    for name in suspects:
        if name in cycle.view.job_states:
            inspect_job(cycle, cycle.view.job_states[name])
    reconcile_repairs(cycle)
    if repairs.rate_limit.waiting:
        rules = cycle.view.settings.repairs
        recent = repairs.rate_limit.recent(cycle.now, rules)
        soon = repairs.rate_limit.next_at(rules) if recent else cycle.now + 1
        cycle.wake_at(soon)
