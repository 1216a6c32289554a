"""Before the actions: what did not come to run is taken back, what rested goes on.

A job whose pods do not all run in time is released: all its pods are deleted, so that
others can use the chips, and it is placed again after a while. A node that refused a
pod is set aside, and takes pods again when its time is over.
"""

from math import inf
from typing import Final

from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Delete, Report, Verdict
from ringleaf.framework.standing import Standing
from ringleaf.policies.fit import counted, some_of

NEVER_RAN: Final = "NeverRan"
"""The cause of the deletion of pods that did not run in time."""
MAX_NAMES: Final = 3
"""Nodes that are named to whoever looks for what keeps pods from running."""


def take_back_nodes(cycle: Cycle) -> None:
    """Nodes that were set aside long enough take pods again."""
    for node in cycle.asides.due(cycle.now):
        cycle.take_back(node)


def next_look(cycle: Cycle) -> float:
    """When something of all this changes by itself."""
    if not cycle.conf.actions:
        return inf
    within_s = cycle.view.settings.repairs.run_within_s
    rests = (cycle.starts.not_before(name) for name in cycle.resting)
    late = cycle.starts.next_at(within_s) if within_s else inf
    return min(late, cycle.asides.next_at, *rests)


def release_unstarted(cycle: Cycle) -> None:
    """Delete the pods of jobs that did not come to run, and end the rest of others."""
    if not cycle.conf.actions:
        return
    for name, standing in list(cycle.resting.items()):
        if cycle.starts.not_before(name) <= cycle.now:
            del cycle.resting[name]
            standing.told = standing.why = ""
            cycle.relief = True
            cycle.wait(standing)
    within_s = cycle.view.settings.repairs.run_within_s
    if within_s:
        for name in cycle.starts.due(cycle.now, within_s):
            late = cycle.view.standings.get(name)
            if late is not None and _is_late(cycle, late):
                _release(cycle, late, within_s)


def _is_late(cycle: Cycle, standing: Standing) -> bool:
    """Whether a job whose time is over is to be released.

    While pods of it end or are repaired, it is not known yet what it will be.
    """
    ends = standing.terminating or not standing.placements
    ends = ends or standing.job.name in cycle.repairs
    return not ends and not cycle.note_whole(standing)


def _release(cycle: Cycle, standing: Standing, within_s: int) -> None:
    name = standing.job.name
    start = cycle.starts[name]
    start.tries += 1
    start.rest(cycle.now, start.tries)
    late = sorted(standing.placements.keys() - start.runs)
    n_pods = counted(len(standing.placements), "pod")
    why = f"{len(late)} of {n_pods} did not run within {within_s} s"
    pods = tuple(sorted(standing.placements))
    cycle.out.append(Delete(name, pods, NEVER_RAN, why))
    again_s = start.not_before - cycle.now
    told = f"job {name!r} is released: {why}; it is placed again in {again_s:g} s"
    nodes = dict.fromkeys(standing.placements[replica].node for replica in late)
    where = some_of(map(repr, nodes), MAX_NAMES)
    hint = f"check the events of its pods on {where}" if late else ""
    cycle.out.append(Report(name, Verdict.RELEASED, told, hint))
