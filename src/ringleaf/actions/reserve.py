"""Reservations: big jobs do not starve.

A job that has waited too long gets the place where it can start soonest, in the shape
of its topology. Others may use it in the meantime only if they are sure to end in time.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from math import inf
from operator import attrgetter, itemgetter
from typing import Final

from ringleaf.actions.start import give_up, reserve_for, start_reserved, start_with
from ringleaf.config.conf import OFF
from ringleaf.framework.context import Context
from ringleaf.framework.idle_budget import WINDOW_S, Outcome
from ringleaf.framework.instruction import Verdict
from ringleaf.framework.job_state import NONE_OF_THEM, JobState, Phase
from ringleaf.framework.pending_queue import SPARE_ENTRIES, EquivalenceClass, JobKey
from ringleaf.framework.reservation import (
    Reservation,
    ends_at,
    expected_end,
    place_words,
)
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Placed
from ringleaf.policies.words import some_of

LOOK_AGAIN_S: Final = 60
"""How soon a reservation that would cost too much is planned again, at the earliest."""
TRIALS: Final = 2
"""How often the pods that may end do so while a reservation is planned, about."""


def tend_reservations(ctx: Context) -> None:
    """Start jobs with a reservation; some reservations are lent, or end."""
    if ctx.reservations.by_job:
        update_begin_times(ctx)
        start_reserved(ctx)
    apply_idle_budget(ctx)


def apply_idle_budget(ctx: Context) -> bool:
    """Whether reservations may be made; they end once their budget is used up."""
    reservations = ctx.reservations
    budget = reservations.idle.budget
    idle = reservations.idle.chips if reservations.by_job else 0
    if ctx.framework.conf.reservation.idle_budget and not (idle or budget.used):
        return True
    ctx.wake_at(budget.update(reservations.idle.limit, idle))
    for reservation in reservations.aged if budget.is_spent else ():
        give_up(ctx, reservation, Outcome.SPENT)
        ctx.pending.add(ctx.state.job_states[reservation.job.name])
    return not budget.is_spent


def update_begin_times(ctx: Context) -> None:
    """Let more jobs use reservations that begin later than was predicted."""
    for reservation in ctx.reservations.aged:
        if reservation.begins_later(ctx.state.now):
            ctx.wakeups.capacity_freed(ctx.state.cluster.products, reservation.nodes)
        ctx.wake_at(reservation.check_at)


def reserve(ctx: Context) -> None:
    """Give a reservation to an overdue job, one a queue or one in all."""
    settings, planning = ctx.framework.conf.reservation, ctx.reservations.planning
    pending = ctx.pending.admitted.by_job or ctx.pending.unadmitted.by_job
    if settings.mode == OFF or not pending:
        return
    if not apply_idle_budget(ctx):
        return
    if ctx.state.now < planning.not_before:
        ctx.wake_at(planning.not_before)
        return
    after = settings.after_s
    aged = ctx.reservations.aged
    if settings.is_strict:
        if not aged:
            _reserve_one(ctx, ctx.state.queue_usage, after)
        return
    taken = {reservation.job.queue for reservation in aged}
    queues, first = [*ctx.state.queue_usage], planning.first_queue
    start = queues.index(first) if first in queues else 0
    for queue in queues[start:] + queues[:start]:
        if queue not in taken:
            _reserve_one(ctx, [queue], after)


def _reserve_one(ctx: Context, queues: Iterable[str], after: int) -> None:
    """A reservation for the first overdue job of *queues*."""
    planning = ctx.reservations.planning
    listed = [queue for queue in queues if _is_due(ctx, queue, after)]
    overdue = [one for queue in listed for one in _overdue(ctx, queue, after)]
    again = inf
    for _key, job_state in sorted(overdue, key=lambda each: each[0]):
        known = planning.is_hopeless(job_state.facts.scheduling_key)
        known |= job_state.job.queue not in ctx.state.queues
        if not (known or ctx.budget.allows_search(planning.cost)):
            ctx.wake_at(planning.pause(job_state.job.queue, ctx.state.now))
            return
        reservation = None if known else _plan(ctx, job_state)
        if reservation is None:
            planning.note_hopeless(job_state.facts.scheduling_key)
            continue
        if _is_too_costly(ctx, job_state, reservation):
            again = ctx.state.now + max(after, LOOK_AGAIN_S)
            continue
        reserve_for(ctx, job_state, reservation)
        if reservation.blockers:
            report_reservation(ctx, job_state, reservation)
        elif not start_with(ctx, reservation):
            planning.note_hopeless(job_state.facts.scheduling_key)
        return
    for queue in listed if again < inf else ():
        ctx.pending.none_overdue.add(queue, again)
    ctx.wake_at(again)


def _is_too_costly(ctx: Context, job_state: JobState, reservation: Reservation) -> bool:
    """Whether a reservation is expected to keep more idle than the budget has left.

    A job that has waited for a day gets the reservation anyway: the budget may turn
    out to be enough, and ends the reservation if it is not.
    """
    if ctx.state.now - job_state.waiting_since >= WINDOW_S or not reservation.blockers:
        return False
    return drain_cost(reservation, ctx.state.now) > ctx.reservations.idle.left


def _is_due(ctx: Context, queue: str, after: int) -> bool:
    """Whether a job of *queue* may be overdue; else it is noted when."""
    pending = ctx.pending
    lists = (
        pending.admitted.since.oldest(queue),
        pending.unadmitted.since.oldest(queue),
    )
    since = min((one.waiting_since for one in lists if one), default=inf)
    ctx.wake_at(since + after)
    if since + after > ctx.state.now:
        return False
    until = pending.none_overdue.until(queue)
    if until <= ctx.state.now:
        return True
    ctx.wake_at(until)
    return False


def _overdue(ctx: Context, queue: str, after: int) -> list[tuple[JobKey, JobState]]:
    """The overdue jobs of *queue*, also rejected ones; of a class the first.

    When no job is, or none of them can be helped, it is noted until when that is so.
    """
    found = []
    lists = ctx.pending.admitted, ctx.pending.unadmitted
    for job_class in chain.from_iterable(each.classes_in(queue) for each in lists):
        ask = job_class.first_job.facts.scheduling_key
        if ask.podless or ctx.reservations.planning.is_hopeless(ask):
            continue
        first = _first_overdue(job_class, after, ctx.state.now)
        if first is not None:
            found.append(first)
    until = min(each.since.next_due(queue, after, ctx.state.now) for each in lists)
    ctx.wake_at(until)
    if not found:
        known, there = ctx.pending.none_overdue, ctx.state.queue_usage
        known.add(queue, until)
        if len(known) > 2 * len(there) + SPARE_ENTRIES:
            known.keep(there)  # jobs may name any number of queues
    return found


def _first_overdue(
    job_class: EquivalenceClass, after: int, now: float
) -> tuple[JobKey, JobState] | None:
    """The first overdue job of *job_class*: mostly the one in front."""
    if _is_overdue(job_class.first_job, after, now):
        return job_class.first_key, job_class.first_job
    entries = job_class.entries()
    overdue = [each for each in entries if _is_overdue(each[1], after, now)]
    return min(overdue, key=itemgetter(0), default=None)


def _is_overdue(job_state: JobState, after: int, now: float) -> bool:
    """Whether a job cannot do with what it has, and has waited too long."""
    short = job_state.phase is not Phase.RUNNING or job_state.below_min_available
    return short and job_state.waiting_since + after <= now


def _plan(ctx: Context, job_state: JobState) -> Reservation | None:
    """Where *job_state* can start soonest, as others end one after the other.

    A job in the way of another reservation ends for that one.
    """
    completing = _completing(ctx, job_state)
    n_pods = sum(len(each.placements) for each in completing)
    ctx.reservations.planning.cost += TRIALS * (1 + n_pods)
    beyond = False
    found = (
        None if job_state.below_min_available else _soonest(ctx, job_state, completing)
    )
    if found is None:
        more = _needs_more(ctx, job_state, completing)
        if more is None:
            return None
        beyond = more
        found = _soonest(ctx, job_state, completing, beyond=beyond)
        assert found is not None, "it fits when no job runs"
    count, placed = found
    if not ctx.placer.pipeline(job_state, placed):
        return None
    since = job_state.waiting_since
    reservation = Reservation(
        job_state.remaining,
        placed.placements,
        since=ctx.state.now,
        why=f"waiting since {since:g} s",
        aged=True,
    )
    reservation.beyond = beyond
    reservation.blocked_by(completing[:count])
    limited = _is_limited(ctx, job_state, beyond=beyond)
    for other in completing[:count]:
        same = other.job.queue == job_state.job.queue
        if other is completing[count - 1] or (limited and same):
            reservation.blocked_elsewhere(other)
    return reservation


def drain_cost(reservation: Reservation, now: float) -> float:
    """The chip-seconds that a reservation is expected to keep idle from *now* on.

    A job of which no running time is known is expected to run for as long as it has
    run already: running times of AI jobs are spread over many orders of magnitude.
    """
    ends = {
        name: expected_end(other, now) for name, other in reservation.blockers.items()
    }
    start = max(ends.values(), default=now)
    cost = sum(len(p.chips) for p in reservation.placements) * (start - now)
    for name, other in reservation.blockers.items():
        cost -= reservation.shared_chips(other) * (ends[name] - now)
    return cost


def _completing(ctx: Context, job_state: JobState) -> list[JobState]:
    """The jobs that *job_state* may wait for, in the order of their ends."""
    known, apart = ctx.state.job_states, {job_state.job.name}
    for reservation in ctx.reservations:
        apart |= reservation.blockers.keys()
    holders = ctx.state.cluster.holdings
    others = [known[n] for n in holders if n in known and n not in apart]
    others.sort(key=attrgetter("number"))
    others.sort(key=lambda each: ends_at(each, ctx.state.now))  # stable
    return others


def soonest_start(ctx: Context, job_state: JobState) -> Reservation | None:
    """Where a waiting job could start soonest, and which jobs are there still.

    Nothing is reserved; None where the end of no job would help.
    """
    found = _plan(ctx, job_state)
    job_state.pipelined = NONE_OF_THEM
    return found


def _is_limited(ctx: Context, job_state: JobState, *, beyond: bool) -> bool:
    """Whether the job waits for its queue, and not only for chips."""
    own = job_state.job.queue
    shared = ctx.state.queues[own].capability or any(
        any(account.requested.values())
        for name, account in ctx.state.queue_usage.items()
        if name != own
    )
    return bool(shared) and ctx.quota.limit(job_state, ignore_share=beyond) is None


def _needs_more(
    ctx: Context, job_state: JobState, completing: list[JobState]
) -> bool | None:
    """Whether the job is larger than the share of its queue, even if no job runs.

    Then it may use what its queue may ever use: two queues that each wait for all of
    the cluster would wait forever. Others wait for their share. None where it would
    not fit even then.
    """
    with Statement(ctx.state.cluster) as statement:
        for other in completing:
            statement.release(other.job.name)
        beyond = job_state.below_min_available or ctx.quota.limit(job_state) is None
        return None if _fits(ctx, job_state, beyond=beyond) is None else beyond


def _soonest(
    ctx: Context,
    job_state: JobState,
    completing: list[JobState],
    *,
    beyond: bool = False,
) -> tuple[int, Placed] | None:
    """The fewest of *completing*, in their order, after which the job fits, and where.

    Ever larger steps until it fits; then halves of the last step. None where it does
    not fit after all of them.
    """
    ended, step = 0, 1
    with Statement(ctx.state.cluster) as statement:
        while (placed := _fits(ctx, job_state, beyond=beyond)) is None:
            more = completing[ended : ended + step]
            if not more:
                return None
            if (found := _within(ctx, job_state, more, beyond=beyond)) is not None:
                count, placed = found
                return ended + count, placed
            for other in more:
                statement.release(other.job.name)
            ended += len(more)
            step *= 2
        return ended, placed


def _within(
    ctx: Context, job_state: JobState, completing: list[JobState], *, beyond: bool
) -> tuple[int, Placed] | None:
    """The fewest of the first *completing* that are enough, if all of them are."""
    found = None
    low, high = 0, len(completing)
    while low < high or found is None:
        middle = high if found is None else (low + high) // 2
        with Statement(ctx.state.cluster) as statement:
            for other in completing[:middle]:
                statement.release(other.job.name)
            placed = _fits(ctx, job_state, beyond=beyond)
        if placed is not None:
            found, high = (middle, placed), middle
        elif found is None:
            return None
        else:
            low = middle + 1
    return found


def _fits(ctx: Context, job_state: JobState, *, beyond: bool) -> Placed | None:
    """Where the job would be placed now, within its quota."""
    limit = ctx.quota.limit(job_state, ignore_share=beyond)
    return None if limit is None else ctx.placer.would_place(job_state, limit)


def reserve_terminating(
    ctx: Context, job_class: EquivalenceClass, completing: Sequence[JobState]
) -> bool:
    """Reserve what pods of *completing* hold that are asked to end, if that is enough.

    Otherwise it would go to any job that asks first once they are gone. Returns
    whether something was reserved.
    """
    job_state = job_class.first_job
    if not completing or job_state.phase is Phase.RUNNING:
        return False
    with Statement(ctx.state.cluster) as statement:
        for other in completing:
            statement.release_pods(other.job.name, other.terminating)
        placed = _fits(ctx, job_state, beyond=False)
    if placed is None or not ctx.placer.pipeline(job_state, placed):
        return False
    reservation = Reservation(
        job_state.remaining,
        placed.placements,
        since=ctx.state.now,
        why="ending pods leave room",
        aged=False,
    )
    reservation.blocked_by(completing)
    reserve_for(ctx, job_state, reservation)
    report_reservation(ctx, job_state, reservation)
    return True


def report_reservation(
    ctx: Context, job_state: JobState, reservation: Reservation
) -> None:
    """Report where a job will start, and which jobs are there still."""
    where = place_words(ctx.state.cluster, reservation.job, reservation.placements)
    jobs = some_of(map(repr, reservation.blockers), 3)
    wait = f"; it waits for {jobs} to end" if jobs else ""
    ctx.reports.report(
        job_state,
        Verdict.RESERVED,
        f"job {job_state.job.name!r} has a reservation: {where}{wait}",
    )
