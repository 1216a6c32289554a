"""A job starts: its pods are bound where they were placed."""

from collections.abc import Iterable

from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Bind
from ringleaf.framework.job_state import NONE_OF_THEM, JobState, Phase
from ringleaf.framework.repair import Repair
from ringleaf.model.decision import Placed
from ringleaf.model.fault import RestartScope
from ringleaf.model.placement import Placement
from ringleaf.policies.annotations import pod_annotations
from ringleaf.policies.validation import warnings_of


def start(cycle: Cycle, job_state: JobState, placements: tuple[Placement, ...]) -> None:
    """Pods were placed: bind them; the job waits only for pods it still lacks."""
    job, starts = job_state.job, cycle.failures.starts
    cycle.pending.remove(job.name)
    job_state.placements |= {p.replica: p for p in placements}
    repairs, cluster = cycle.failures.repairs, cycle.view.cluster
    repair = repairs.open.get(job.name)
    written = tuple(pod_annotations(cluster, Placed(job, placements)))
    warnings = warnings_of(job, cycle.view.settings)
    cycle.reports.out.append(Bind(job.name, placements, written, warnings))
    cycle.slice.bound.add(job.name)
    if repair is None:
        cycle.wakeups.pods_started()
    else:
        _mark_returned(repair, placements, written)
        cycle.wakeups.pods_found(job)  # no other job could use what was held for it
    job_state.history.reported = job_state.history.reported_before = ""
    job_state.history.why, job_state.history.bound_at = None, cycle.view.now
    job_state.promised = NONE_OF_THEM
    if job_state.phase is Phase.RUNNING:
        starts.join(job.name, [p.replica for p in placements], cycle.view.now)
    else:
        job_state.started, job_state.history.interrupted = cycle.view.now, False
        starts.begin(job.name, cycle.view.now)
        cycle.view.move(job_state, Phase.RUNNING)
    if job_state.missing:
        cycle.pending.add(job_state)
    if repair is not None or job.name in repairs.pod_faults:
        _repaired_pods(cycle, job_state, {p.replica for p in placements})


def _repaired_pods(cycle: Cycle, job_state: JobState, new: set[int]) -> None:
    """Pods of a job found a place; less is held for its repair."""
    name, cluster = job_state.job.name, cycle.view.cluster
    cycle.failures.repairs.placed(name, new)
    repair = cycle.failures.repairs.open.get(name)
    if repair is None:
        return
    repair.stuck_at = None
    repair.deletion.pods -= new
    repair.deletion.forced -= new
    nodes = repair.held.nodes
    repair.hold(cluster, job_state)
    if nodes - repair.held.nodes:
        cycle.wakeups.capacity_freed(cluster.products, nodes)
    cycle.changes.note(Change.REPAIR_MOVED)


def _mark_returned(
    repair: Repair, placements: Iterable[Placement], written: Iterable[dict[str, str]]
) -> None:
    """Write on pods with chips whose job ran on that they are where they were."""
    if repair.scope is RestartScope.JOB:
        return
    for placement, found in zip(placements, written, strict=True):
        before = repair.placements.get(placement.replica)
        if found and before is not None and before.node == placement.node:
            found["reschedule-in-place"] = "true"
