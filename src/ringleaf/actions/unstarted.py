"""Before the actions: what did not come to run is taken back, what rested goes on.

A job whose pods do not all run in time is released: all its pods are deleted, so that
others can use the chips, and it is placed again after a while. A node that refused a
pod is quarantined, and takes pods again when its time is over.
"""

from math import inf
from typing import Final

from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Delete, Report, Verdict
from ringleaf.framework.job_state import JobState
from ringleaf.policies.counting import counted, some_of

NEVER_RAN: Final = "NeverRan"
"""The cause of the deletion of pods that did not run in time."""
MAX_NODES_NAMED: Final = 3
"""Nodes that are named in a hint on what keeps pods from running."""


def end_due_quarantines(cycle: Cycle) -> None:
    """Nodes that were quarantined long enough take pods again."""
    quarantine = cycle.failures.quarantine
    for node in quarantine.due(cycle.view.now) if quarantine.nodes else ():
        quarantine.release(node, cycle.view.now)
        end_quarantine(cycle, node)


def end_quarantine(cycle: Cycle, node: str) -> None:
    """A node is not quarantined any longer."""
    cluster = cycle.view.cluster
    at = cluster.index[node]
    cluster.set_quarantined(at, on=False)
    cycle.failures.repairs.fault_log.quarantine_ended(node, cycle.view.now)
    cycle.changes.note(Change.NODES_CHANGED)
    cycle.wakeups.capacity_freed([cluster.product_of(at)])


def next_look(cycle: Cycle) -> float:
    """When something of all this changes by itself."""
    if not cycle.framework.decides:
        return inf
    within_s = cycle.view.settings.repairs.run_within_s
    starts = cycle.failures.starts
    rests = (starts.not_before(name) for name in cycle.pending.backoff)
    late = starts.next_at(within_s) if within_s and starts.clocks else inf
    quarantine = cycle.failures.quarantine
    return min(late, quarantine.next_at if quarantine.nodes else inf, *rests)


def release_unstarted(cycle: Cycle) -> None:
    """Delete the pods of jobs that did not come to run, and end the rest of others."""
    if not cycle.framework.decides:
        return
    for name, job_state in list(cycle.pending.backoff.items()):
        if cycle.failures.starts.not_before(name) <= cycle.view.now:
            del cycle.pending.backoff[name]
            job_state.history.reported, job_state.history.why = "", None
            cycle.changes.note(Change.USAGE_CHANGED)
            cycle.pending.add(job_state)
    within_s = cycle.view.settings.repairs.run_within_s
    if within_s and cycle.failures.starts.clocks:
        for name in cycle.failures.starts.due(cycle.view.now, within_s):
            late = cycle.view.job_states.get(name)
            if late is not None and _is_late(cycle, late):
                _release(cycle, late, within_s)


def _is_late(cycle: Cycle, job_state: JobState) -> bool:
    """Whether a job whose time is over is to be released.

    While pods of it end or are repaired, it is not known yet what it will be.
    """
    ends = job_state.terminating or not job_state.placements
    ends = ends or job_state.job.name in cycle.failures.repairs.open
    return not ends and not cycle.failures.starts.note_whole(job_state)


def _release(cycle: Cycle, job_state: JobState, within_s: int) -> None:
    name = job_state.job.name
    start = cycle.failures.starts[name]
    start.tries += 1
    start.rest(cycle.view.now, start.tries)
    job_state.history.interrupted = True
    late = sorted(job_state.placements.keys() - start.runs)
    n_pods = counted(len(job_state.placements), "pod")
    why = f"{len(late)} of {n_pods} did not run within {within_s} s"
    pods = tuple(sorted(job_state.placements))
    cycle.reports.out.append(Delete(name, pods, NEVER_RAN, why))
    again_s = start.not_before - cycle.view.now
    told = f"job {name!r} is released: {why}; it is placed again in {again_s:g} s"
    nodes = dict.fromkeys(job_state.placements[replica].node for replica in late)
    where = some_of(map(repr, nodes), MAX_NODES_NAMED)
    hint = f"check the events of its pods on {where}" if late else ""
    cycle.reports.out.append(Report(name, Verdict.RELEASED, told, hint))
