"""Before the actions: what did not come to run is taken back, what rested goes on.

A job whose pods do not all run in time is released: all its pods are deleted, so that
others can use the chips, and it is placed again after a while. A node that refused a
pod is quarantined, and takes pods again when its time is over.
"""

from math import inf
from typing import Final

from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.instruction import Delete, Report, Verdict
from ringleaf.framework.job_state import JobState
from ringleaf.policies.words import counted, some_of

NEVER_RAN: Final = "NeverRan"
"""The cause of the deletion of pods that did not run in time."""
MAX_NODES_NAMED: Final = 3
"""Nodes that are named in a hint on what keeps pods from running."""


def end_due_quarantines(ctx: Context) -> None:
    """Nodes that were quarantined long enough take pods again."""
    quarantine = ctx.pods_ready.quarantine
    for node in quarantine.due(ctx.state.now) if quarantine.nodes else ():
        quarantine.release(node, ctx.state.now)
        end_quarantine(ctx, node)


def end_quarantine(ctx: Context, node: str) -> None:
    """A node is not quarantined any longer."""
    cluster = ctx.state.cluster
    at = cluster.index[node]
    cluster.set_quarantined(at, on=False)
    ctx.repairs.fault_log.quarantine_ended(node, ctx.state.now)
    ctx.wakeups.note(Change.NODES_CHANGED)
    ctx.wakeups.capacity_freed([cluster.product_of(at)])


def next_startup_deadline(ctx: Context) -> float:
    """When something of all this changes by itself."""
    if not ctx.framework.has_actions:
        return inf
    within_s = ctx.state.settings.repairs.run_within_s
    starts = ctx.pods_ready
    rests = (starts.not_before(name) for name in ctx.pods_ready.backoff)
    late = starts.next_at(within_s) if within_s and starts.clocks else inf
    quarantine = ctx.pods_ready.quarantine
    return min(late, quarantine.next_at if quarantine.nodes else inf, *rests)


def release_unstarted(ctx: Context) -> None:
    """Delete the pods of jobs that did not come to run, and end the rest of others."""
    if not ctx.framework.has_actions:
        return
    for name, job_state in list(ctx.pods_ready.backoff.items()):
        if ctx.pods_ready.not_before(name) <= ctx.state.now:
            del ctx.pods_ready.backoff[name]
            job_state.history.reported, job_state.history.why = "", None
            ctx.wakeups.note(Change.USAGE_CHANGED)
            ctx.pending.add(job_state)
    within_s = ctx.state.settings.repairs.run_within_s
    if within_s and ctx.pods_ready.clocks:
        for name in ctx.pods_ready.due(ctx.state.now, within_s):
            late = ctx.state.job_states.get(name)
            if late is not None and _is_late(ctx, late):
                _release(ctx, late, within_s)


def _is_late(ctx: Context, job_state: JobState) -> bool:
    """Whether a job whose time is over is to be released.

    While pods of it end or are repaired, it is not known yet what it will be.
    """
    ends = job_state.terminating or not job_state.placements
    ends = ends or job_state.job.name in ctx.repairs.open
    return not ends and not ctx.pods_ready.is_whole(job_state)


def _release(ctx: Context, job_state: JobState, within_s: int) -> None:
    name = job_state.job.name
    start = ctx.pods_ready[name]
    start.tries += 1
    start.rest(ctx.state.now, start.tries)
    job_state.history.interrupted = True
    late = sorted(job_state.placements.keys() - start.runs)
    n_pods = counted(len(job_state.placements), "pod")
    why = f"{len(late)} of {n_pods} did not run within {within_s} s"
    pods = tuple(sorted(job_state.placements))
    ctx.reports.emit(Delete(name, pods, NEVER_RAN, why))
    again_s = start.not_before - ctx.state.now
    message = f"job {name!r} is released: {why}; it is placed again in {again_s:g} s"
    nodes = dict.fromkeys(job_state.placements[replica].node for replica in late)
    where = some_of(map(repr, nodes), MAX_NODES_NAMED)
    hint = f"check the events of its pods on {where}" if late else ""
    ctx.reports.emit(Report(name, Verdict.RELEASED, message, hint))
