"""A job starts, with a reservation or without: its pods are bound."""

from collections.abc import Iterable

from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.idle_budget import Outcome
from ringleaf.framework.instruction import Bind
from ringleaf.framework.job_state import NONE_OF_THEM, JobState, Phase
from ringleaf.framework.repair import Repair
from ringleaf.framework.reservation import Reservation
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Placed
from ringleaf.model.fault import RestartScope
from ringleaf.model.placement import Placement
from ringleaf.policies.annotations import pod_annotations
from ringleaf.policies.validation import warnings_of


def start(ctx: Context, job_state: JobState, placements: tuple[Placement, ...]) -> None:
    """Pods were placed: bind them; the job waits only for pods it still lacks."""
    job, starts = job_state.job, ctx.pods_ready
    ctx.pending.remove(job.name)
    job_state.placements |= {p.replica: p for p in placements}
    repairs, cluster = ctx.repairs, ctx.state.cluster
    repair = repairs.open.get(job.name)
    written = tuple(pod_annotations(cluster, Placed(job, placements)))
    warnings = warnings_of(job, ctx.state.settings)
    ctx.reports.emit(Bind(job.name, placements, written, warnings))
    ctx.budget.bound.add(job.name)
    if repair is None:
        ctx.wakeups.pods_started()
    else:
        _mark_returned(repair, placements, written)
        ctx.wakeups.victims_appeared(job)  # no other job could use what was held for it
    job_state.history.reported = job_state.history.reported_before = ""
    job_state.history.why, job_state.history.bound_at = None, ctx.state.now
    job_state.pipelined = NONE_OF_THEM
    if job_state.phase is Phase.RUNNING:
        starts.join(job.name, [p.replica for p in placements], ctx.state.now)
    else:
        job_state.started, job_state.history.interrupted = ctx.state.now, False
        starts.begin(job.name, ctx.state.now)
        ctx.state.set_phase(job_state, Phase.RUNNING)
    if job_state.missing:
        ctx.pending.add(job_state)
    if repair is not None or job.name in repairs.pod_faults:
        _note_replaced(ctx, job_state, {p.replica for p in placements})


def _note_replaced(ctx: Context, job_state: JobState, new: set[int]) -> None:
    """Pods of a job found a place; less is held for its repair."""
    name, cluster = job_state.job.name, ctx.state.cluster
    ctx.repairs.clear_replaced(name, new)
    repair = ctx.repairs.open.get(name)
    if repair is None:
        return
    repair.deletion.unschedulable_since = None
    repair.deletion.awaiting_replacement -= new
    repair.deletion.forced -= new
    nodes = repair.held.nodes
    repair.hold_places(cluster, job_state)
    if nodes - repair.held.nodes:
        ctx.wakeups.capacity_freed(cluster.products, nodes)
    ctx.wakeups.note(Change.REPAIR_PROGRESSED)


def _mark_returned(
    repair: Repair, placements: Iterable[Placement], written: Iterable[dict[str, str]]
) -> None:
    """Annotate pods that return to their node while others of the job ran on."""
    if repair.scope is RestartScope.JOB:
        return
    for placement, found in zip(placements, written, strict=True):
        before = repair.placements.get(placement.replica)
        if found and before is not None and before.node == placement.node:
            found["reschedule-in-place"] = "true"


def reserve_for(ctx: Context, job_state: JobState, reservation: Reservation) -> None:
    """Make a reservation; its job waits for it and in no class.

    As long as it does, its queue keeps no room for it besides.
    """
    ctx.pending.remove(job_state.job.name)
    if not job_state.placements:
        ctx.state.set_phase(job_state, Phase.PENDING)
    ctx.wakeups.note(Change.USAGE_CHANGED)
    ctx.reservations.add(job_state, reservation)


def start_reserved(ctx: Context) -> None:
    """Start jobs that have a reservation, as far as something is free since."""
    reservations = ctx.reservations
    for reservation in reservations:
        if ctx.budget.stop_binding():
            return
        tried, over_quota = reservations.tried, reservations.over_quota
        if reservation not in tried and reservation not in over_quota:
            start_with(ctx, reservation)


def start_with(ctx: Context, reservation: Reservation) -> bool:
    """Try a job with its reservation and everything else that is free.

    A reservation that is all free, and does not help, is given up.
    """
    job_state = ctx.state.job_states[reservation.job.name]
    found = _placed_with(ctx, reservation, job_state)
    if found is not None:
        ctx.reservations.remove(reservation, Outcome.STARTED)
        start(ctx, job_state, found)
        ctx.wakeups.capacity_freed(ctx.state.cluster.products, reservation.nodes)
        return True
    if not reservation.blockers:
        give_up(ctx, reservation)
        ctx.pending.add(job_state)
    return False


def _placed_with(
    ctx: Context, reservation: Reservation, job_state: JobState
) -> tuple[Placement, ...] | None:
    """Places for a job with what it reserved, which then holds nothing."""
    reservations, placer = ctx.reservations, ctx.placer
    if placer.lacks_room_with(reservation, job_state):
        reservations.tried.add(reservation)
        return None
    limit = ctx.quota.limit(job_state, ignore_share=reservation.beyond)
    if limit is None:
        reservations.over_quota.add(reservation)
        return None
    with Statement(ctx.state.cluster) as statement:
        statement.drop(reservation.owner)
        found = placer.place_beside_reservations(job_state, limit, reasons=False)
        if not isinstance(found, tuple):
            reservations.tried.add(reservation)
            return None
        statement.commit()
        return found


def give_up(
    ctx: Context, reservation: Reservation, outcome: Outcome = Outcome.RELEASED
) -> None:
    """A reservation is no more; what it held is free."""
    ctx.reservations.release(reservation, outcome)
    ctx.wakeups.capacity_freed(ctx.state.cluster.products, reservation.nodes)
