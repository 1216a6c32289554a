"""Move running jobs so that a pending job starts, where that gains more than it costs.

The places of all moved jobs are held before the first of them is asked to end. A moved
job is then like one that is repaired: what is held for it was written down before, and
the next leader holds it too. The place of the pending job is reserved.
"""

from typing import Final

from ringleaf.actions.end_pods import end_pods_for_repair
from ringleaf.actions.moves import Move, MovePlan, cost_words
from ringleaf.actions.propose import propose, waiting_jobs
from ringleaf.actions.reserve import report_reservation
from ringleaf.actions.start import give_up, reserve_for
from ringleaf.framework.context import Context
from ringleaf.framework.instruction import Evict, PersistRepair, Report, Verdict
from ringleaf.framework.job_state import JobState
from ringleaf.framework.repair import Repair
from ringleaf.framework.reservation import Reservation
from ringleaf.model.decision import Placed
from ringleaf.model.fault import RestartScope
from ringleaf.policies.words import some_of

ACTION: Final = "rearrange"
MOST_NAMED: Final = 3
MAX_SEARCHES: Final = 4
"""Jobs for which moves are searched at one time."""


def rearrange(ctx: Context) -> None:
    """Look for moves for pending jobs that have waited long enough, one plan at a time.

    No job is looked at again before something has changed.
    """
    settings, moved = ctx.framework.conf.rearrangement, ctx.wakeups.moved
    left = moved.left(settings.moves_per_hour, ctx.state.now)
    candidates = _candidates(ctx, settings.after_s)
    if not candidates or any(each.moved_for for each in ctx.repairs.open.values()):
        return
    again_at = moved.look_at if left else moved.next_at()
    if again_at > ctx.state.now:
        ctx.wake_at(again_at)
        return
    moved.look_at = ctx.state.now + settings.every_s
    for job_state in candidates[:MAX_SEARCHES]:
        found = propose(ctx, job_state, left, ratio=settings.least_ratio)
        if isinstance(found, MovePlan):
            if settings.dry_run:
                _preview(ctx, job_state, found)
            elif carry_out(ctx, job_state, found):
                return
        moved.in_vain.add(job_state.job.name)
    if candidates[MAX_SEARCHES:]:
        ctx.wake_at(moved.look_at)


def _candidates(ctx: Context, after_s: float) -> list[JobState]:
    """Jobs that wait long enough for a place, of each class the first, in order."""
    due = []
    for job_state in waiting_jobs(ctx):
        if job_state.waiting_since + after_s > ctx.state.now:
            ctx.wake_at(job_state.waiting_since + after_s)
        elif job_state.job.name not in ctx.wakeups.moved.in_vain:
            due.append(job_state)
    return due


def carry_out(ctx: Context, job_state: JobState, plan: MovePlan) -> bool:
    """Hold the new places, reserve that of the pending job, ask moved jobs to end."""
    job, placed = job_state.remaining, Placed(job_state.remaining, plan.places)
    if not ctx.placer.pipeline(job_state, placed):
        return False
    own = ctx.reservations.get(job.name)
    if own is not None:
        give_up(ctx, own)
    for move in plan.moves:
        _hold_new_place(ctx, move, plan.job)
    reservation = Reservation(
        job, plan.places, since=ctx.state.now, why="jobs are moved", aged=False
    )
    for move in plan.moves:
        reservation.blocked_elsewhere(ctx.state.job_states[move.job])
    reserve_for(ctx, job_state, reservation)
    ctx.wakeups.moved.count(ctx.state.now, len(plan.moves))
    _report_moves(ctx, job_state, plan)
    report_reservation(ctx, job_state, reservation)
    for move in plan.moves:
        pods = tuple(place.replica for place in move.after)
        ctx.reports.emit(Evict(move.job, pods, job.name, ACTION))
    return True


def _hold_new_place(ctx: Context, move: Move, gains: str) -> None:
    """Hold the new place of a job, and write down that it is moved there."""
    name, after = move.job, move.after
    job_state = ctx.state.job_states[name]
    repair = ctx.repairs.open[name] = Repair(name, ctx.state.now, job_state.job)
    repair.moved_for = gains
    repair.scope = RestartScope.JOB
    repair.placements = {place.replica: place for place in after}
    repair.deletion.awaiting_replacement = {*repair.placements}
    repair.deletion.deleted = {*repair.placements}
    repair.deletion.at = ctx.state.now
    job_state.history.interrupted = True
    ctx.reports.emit(PersistRepair(name, repair.record))
    end_pods_for_repair(ctx, job_state, [*repair.placements], repair)
    held = ctx.state.cluster.holdings[repair.held.owner]
    assert len(held) == len(after), "all of its new place is held before it is stopped"


def _report_moves(ctx: Context, job_state: JobState, plan: MovePlan) -> None:
    """Say which jobs are moved for which, and what that costs and gains."""
    for move in plan.moves:
        nodes = some_of(dict.fromkeys(p.node for p in move.after), MOST_NAMED)
        message = f"job {move.job!r} is moved to {nodes} so that {plan.job!r} starts"
        moved = ctx.state.job_states[move.job]
        ctx.reports.report(moved, Verdict.MOVES, message)
    message = _plan_words(plan, "are" if plan.moves[1:] else "is")
    ctx.reports.report(job_state, Verdict.REARRANGES, message)


def _plan_words(plan: MovePlan, verb: str) -> str:
    jobs = some_of((repr(move.job) for move in plan.moves), MOST_NAMED)
    return f"{jobs} {verb} moved so that job {plan.job!r} starts; {cost_words(plan)}"


def _preview(ctx: Context, job_state: JobState, plan: MovePlan) -> None:
    """Say what would be moved, if that is news: what it costs changes with time."""
    jobs = [move.job for move in plan.moves]
    if job_state.history.previewed != jobs:
        job_state.history.previewed = jobs
        message = _plan_words(plan, "would be")
        ctx.reports.emit(Report(job_state.job.name, Verdict.WOULD_MOVE, message))
