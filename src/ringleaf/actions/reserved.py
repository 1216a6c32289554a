"""Jobs with a reservation: they wait for it, start with it, or lose it."""

from ringleaf.actions.start import start
from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.idle_budget import Outcome
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.reservation import Reservation
from ringleaf.framework.statement import Statement
from ringleaf.model.placement import Placement


def reserve_for(cycle: Cycle, job_state: JobState, reservation: Reservation) -> None:
    """Make a reservation; its job waits for it and in no class.

    As long as it does, its queue keeps no room for it besides.
    """
    cycle.pending.remove(job_state.job.name)
    if not job_state.placements:
        cycle.view.move(job_state, Phase.PENDING)
    cycle.changes.note(Change.USAGE_CHANGED)
    cycle.reservations.add(job_state, reservation)


def start_reserved(cycle: Cycle) -> None:
    """Start jobs that have a reservation, as far as something is free since."""
    reservations = cycle.reservations
    for reservation in reservations:
        if cycle.slice.cut_short():
            return
        tried, over_quota = reservations.tried, reservations.over_quota
        if reservation not in tried and reservation not in over_quota:
            start_with(cycle, reservation)


def start_with(cycle: Cycle, reservation: Reservation) -> bool:
    """Try a job with its reservation and everything else that is free.

    A reservation that is all free, and does not help, is given up.
    """
    job_state = cycle.view.job_states[reservation.job.name]
    found = _placed_with(cycle, reservation, job_state)
    if found is not None:
        cycle.reservations.remove(reservation, Outcome.STARTED)
        start(cycle, job_state, found)
        cycle.wakeups.capacity_freed(cycle.view.cluster.products, reservation.nodes)
        return True
    if not reservation.blockers:
        give_up(cycle, reservation)
        cycle.pending.add(job_state)
    return False


def _placed_with(
    cycle: Cycle, reservation: Reservation, job_state: JobState
) -> tuple[Placement, ...] | None:
    """Places for a job with what it reserved, which then holds nothing."""
    reservations, placer = cycle.reservations, cycle.placer
    if placer.lacks_room_with(reservation, job_state):
        reservations.tried.add(reservation)
        return None
    limit = cycle.quota.limit(job_state, ignore_share=reservation.beyond)
    if limit is None:
        reservations.over_quota.add(reservation)
        return None
    with Statement(cycle.view.cluster) as statement:
        statement.drop(reservation.owner)
        found = placer.place_beside_reservations(job_state, limit, reasons=False)
        if not isinstance(found, tuple):
            reservations.tried.add(reservation)
            return None
        statement.commit()
        return found


def give_up(
    cycle: Cycle, reservation: Reservation, outcome: Outcome = Outcome.RELEASED
) -> None:
    """A reservation is no more; what it held is free."""
    cycle.reservations.release(reservation, outcome)
    cycle.wakeups.capacity_freed(cycle.view.cluster.products, reservation.nodes)
