"""Move running jobs so that a pending job starts, where that gains more than it costs.

The places of all moved jobs are held before the first of them is asked to end. A moved
job is then like one that is repaired: what is held for it was written down before, and
the next leader holds it too. The place of the pending job is reserved.
"""

from typing import Final

from ringleaf.actions.end_pods import end_for_repair
from ringleaf.actions.moves import Move, MovePlan, cost_words
from ringleaf.actions.propose import propose, waiting_jobs
from ringleaf.actions.reserve import report_reservation
from ringleaf.actions.reserved import give_up, reserve_for
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Evict, PersistRepair, Report, Verdict
from ringleaf.framework.job_state import JobState
from ringleaf.framework.repair import Repair
from ringleaf.framework.reservation import Reservation
from ringleaf.model.decision import Placed
from ringleaf.model.fault import RestartScope
from ringleaf.policies.counting import some_of

ACTION: Final = "rearrange"
MOST_NAMED: Final = 3
MAX_SEARCHES: Final = 4
"""Jobs for which moves are searched at one time."""


def rearrange(cycle: Cycle) -> None:
    """Look for moves for pending jobs that have waited long enough, one plan at a time.

    No job is looked at again before something has changed.
    """
    settings, moved = cycle.framework.conf.rearrangement, cycle.moved
    left = moved.left(settings.moves_per_hour, cycle.view.now)
    candidates = _candidates(cycle, settings.after_s)
    if not candidates or any(
        each.moved_for for each in cycle.failures.repairs.open.values()
    ):
        return
    again_at = moved.look_at if left else moved.next_at()
    if again_at > cycle.view.now:
        cycle.wake_at(again_at)
        return
    moved.look_at = cycle.view.now + settings.every_s
    for job_state in candidates[:MAX_SEARCHES]:
        found = propose(cycle, job_state, left, ratio=settings.least_ratio)
        if isinstance(found, MovePlan):
            if settings.dry_run:
                _preview(cycle, job_state, found)
            elif carry_out(cycle, job_state, found):
                return
        moved.in_vain.add(job_state.job.name)
    if candidates[MAX_SEARCHES:]:
        cycle.wake_at(moved.look_at)


def _candidates(cycle: Cycle, after_s: float) -> list[JobState]:
    """Jobs that wait long enough for a place, of each class the first, in order."""
    due = []
    for job_state in waiting_jobs(cycle):
        if job_state.waiting_since + after_s > cycle.view.now:
            cycle.wake_at(job_state.waiting_since + after_s)
        elif job_state.job.name not in cycle.moved.in_vain:
            due.append(job_state)
    return due


def carry_out(cycle: Cycle, job_state: JobState, plan: MovePlan) -> bool:
    """Hold the new places, reserve that of the pending job, ask moved jobs to end."""
    job, placed = job_state.remaining, Placed(job_state.remaining, plan.places)
    if not cycle.placer.is_promised(job_state, placed):
        return False
    own = cycle.reservations.get(job.name)
    if own is not None:
        give_up(cycle, own)
    for move in plan.moves:
        _hold(cycle, move, plan.job)
    reservation = Reservation(
        job, plan.places, since=cycle.view.now, why="jobs are moved", aged=False
    )
    for move in plan.moves:
        reservation.blocked_elsewhere(cycle.view.job_states[move.job])
    reserve_for(cycle, job_state, reservation)
    cycle.moved.count(cycle.view.now, len(plan.moves))
    _tell(cycle, job_state, plan)
    report_reservation(cycle, job_state, reservation)
    for move in plan.moves:
        pods = tuple(place.replica for place in move.after)
        cycle.reports.out.append(Evict(move.job, pods, job.name, ACTION))
    return True


def _hold(cycle: Cycle, move: Move, gains: str) -> None:
    """Hold the new place of a job, and write down that it is moved there."""
    name, after = move.job, move.after
    job_state = cycle.view.job_states[name]
    repair = cycle.failures.repairs.open[name] = Repair(
        name, cycle.view.now, job_state.job
    )
    repair.deletion.moved_for = gains
    repair.scope = RestartScope.JOB
    repair.placements = {place.replica: place for place in after}
    repair.deletion.pods = {*repair.placements}
    repair.deletion.ever = {*repair.placements}
    repair.deletion.at = cycle.view.now
    job_state.history.interrupted = True
    cycle.reports.out.append(PersistRepair(name, repair.record))
    end_for_repair(cycle, job_state, [*repair.placements], repair)
    held = cycle.view.cluster.holdings[repair.held.owner]
    assert len(held) == len(after), "all of its new place is held before it is stopped"


def _tell(cycle: Cycle, job_state: JobState, plan: MovePlan) -> None:
    """Say which jobs are moved for which, and what that costs and gains."""
    for move in plan.moves:
        nodes = some_of(dict.fromkeys(p.node for p in move.after), MOST_NAMED)
        told = f"job {move.job!r} is moved to {nodes} so that {plan.job!r} starts"
        moved = cycle.view.job_states[move.job]
        cycle.reports.report(moved, Verdict.MOVES, told)
    told = _plan_words(plan, "are" if plan.moves[1:] else "is")
    cycle.reports.report(job_state, Verdict.REARRANGES, told)


def _plan_words(plan: MovePlan, verb: str) -> str:
    jobs = some_of((repr(move.job) for move in plan.moves), MOST_NAMED)
    return f"{jobs} {verb} moved so that job {plan.job!r} starts; {cost_words(plan)}"


def _preview(cycle: Cycle, job_state: JobState, plan: MovePlan) -> None:
    """Say what would be moved, if that is news: what it costs changes with time."""
    jobs = [move.job for move in plan.moves]
    if job_state.history.previewed != jobs:
        job_state.history.previewed = jobs
        told = _plan_words(plan, "would be")
        cycle.reports.out.append(Report(job_state.job.name, Verdict.WOULD_MOVE, told))
