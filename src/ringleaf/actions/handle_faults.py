"""Faults: which pods are deleted because of them, and when more of them are.

``handle_faults`` runs before the actions of a cycle, ``reconcile_if_changed`` after
each round of them. It looks at jobs of which pods may have become faulty, and at those
that are being repaired; where neither are, it does nothing.
"""

from ringleaf.actions.delete_faulty import inspect_job, limit_allows
from ringleaf.actions.reconcile_repairs import reconcile_repairs
from ringleaf.framework.cycle import Cycle


def handle_faults(cycle: Cycle) -> None:
    """Delete what is to be deleted because of faults, and no more than may be."""
    repairs = cycle.failures.repairs
    repairs.rate_limit.n_pods = None
    if repairs.rate_limit.waiting and limit_allows(cycle, 1):
        repairs.suspects |= repairs.rate_limit.waiting
    suspects, repairs.suspects = repairs.suspects, {}
    for name in suspects:
        job_state = cycle.view.job_states.get(name)
        if job_state is not None and (job_state.placements or repairs.knows(name)):
            inspect_job(cycle, job_state)
    if repairs.open:
        reconcile_repairs(cycle)
    if repairs.rate_limit.waiting:
        rules = cycle.view.settings.repairs
        recent = repairs.rate_limit.recent(cycle.view.now, rules)
        soon = repairs.rate_limit.next_at(rules) if recent else cycle.view.now + 1
        cycle.wake_at(soon)
