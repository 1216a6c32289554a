"""Pods are asked to end: evicted for another job, or deleted because of faults."""

from collections.abc import Collection

from msgspec.structs import replace

from ringleaf.actions.reserved import give_up
from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Evict
from ringleaf.framework.job_state import JobState
from ringleaf.framework.repair import Repair
from ringleaf.model.fault import RestartScope


def evict(
    cycle: Cycle, victim: JobState, replicas: tuple[int, ...], by: str, action: str
) -> None:
    """Ask pods to end, for the job *by*."""
    name = victim.job.name
    cycle.view.end(victim, replicas)
    cycle.changes.note(Change.USAGE_CHANGED)
    victim.history.evicted_by |= {by}
    victim.history.interrupted = True
    victim.history.evicted_in = cycle.victim_search.arrivals
    cycle.victim_search.ending[name] = victim
    cycle.pending.remove(name)
    cycle.reports.out.append(Evict(name, tuple(sorted(replicas)), by, action))


def end_for_repair(
    cycle: Cycle, job_state: JobState, replicas: Collection[int], repair: Repair
) -> None:
    """Pods are deleted because of faults; no other job waits for what they hold."""
    reservation = cycle.reservations.get(job_state.job.name)
    if reservation is not None:
        give_up(cycle, reservation)
    cycle.view.end(job_state, replicas)
    cycle.pending.remove(job_state.job.name)
    cycle.changes.note(Change.USAGE_CHANGED)
    if repair.scope is RestartScope.JOB:
        job = replace(job_state.job, previous=repair.previous)
        cycle.wakeups.spec_changed(job_state, job)
    repair.held.spare = cycle.placer.plan_replacements(job_state, repair)
    repair.hold(cycle.view.cluster, job_state)
    if job_state.missing and not job_state.terminating and not repair.deletion.awaited:
        cycle.pending.add(job_state)
