"""Pods are asked to end: evicted for another job, or deleted because of faults."""

from collections.abc import Collection

from msgspec.structs import replace

from ringleaf.actions.start import give_up
from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.instruction import Evict
from ringleaf.framework.job_state import JobState
from ringleaf.framework.repair import Repair
from ringleaf.model.fault import RestartScope


def evict(
    ctx: Context, victim: JobState, replicas: tuple[int, ...], by: str, action: str
) -> None:
    """Ask pods to end, for the job *by*."""
    name = victim.job.name
    ctx.state.mark_terminating(victim, replicas)
    ctx.wakeups.note(Change.USAGE_CHANGED)
    victim.history.evicted_by |= {by}
    victim.history.interrupted = True
    victim.history.evicted_in = ctx.victim_search.arrivals
    ctx.victim_search.ending[name] = victim
    ctx.pending.remove(name)
    ctx.reports.emit(Evict(name, tuple(sorted(replicas)), by, action))


def end_pods_for_repair(
    ctx: Context, job_state: JobState, replicas: Collection[int], repair: Repair
) -> None:
    """Pods are deleted because of faults; no other job waits for what they hold."""
    reservation = ctx.reservations.get(job_state.job.name)
    if reservation is not None:
        give_up(ctx, reservation)
    ctx.state.mark_terminating(job_state, replicas)
    ctx.pending.remove(job_state.job.name)
    ctx.wakeups.note(Change.USAGE_CHANGED)
    if repair.scope is RestartScope.JOB:
        job = replace(job_state.job, previous=repair.previous)
        ctx.wakeups.replace_spec(job_state, job)
    repair.held.planned = ctx.placer.plan_replacements(job_state, repair)
    repair.hold_places(ctx.state.cluster, job_state)
    if (
        job_state.missing
        and not job_state.terminating
        and not repair.deletion.deletion_unobserved
    ):
        ctx.pending.add(job_state)
