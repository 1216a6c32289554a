"""Reservations: big jobs do not starve.

A job that has waited too long gets the place where it can start soonest, in the shape
of its topology. Others may use it in the meantime only if they are sure to end in time.
"""

from collections.abc import Iterable
from itertools import chain
from math import inf
from operator import attrgetter, itemgetter
from typing import Final

from ringleaf.framework.booking import Booking, ends_at, place_words
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Verdict
from ringleaf.framework.standing import NONE_OF_THEM, Phase, Standing
from ringleaf.framework.statement import Statement
from ringleaf.framework.waitlist import SPARE, Key, Line
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.policies.fit import some_of

FAIR: Final = "fair"
STRICT: Final = "strict"
OFF: Final = "off"
TRIALS: Final = 2
"""How often the pods that may end do so while a reservation is planned, about."""


def reserve(cycle: Cycle) -> None:
    """Give a reservation to who has waited too long, one a queue or one in all."""
    arguments = cycle.arguments("allocate")
    mode, after = arguments["reservation"], arguments["reservation-after-seconds"]
    if mode == OFF or not (cycle.waiting or cycle.pending):
        return
    first, again_at = cycle.plan_from
    if cycle.now < again_at:
        cycle.wake_at(again_at)
        return
    assert isinstance(after, int)
    aged = [booking for booking in cycle.bookings.values() if booking.aged]
    if mode == STRICT:
        if not aged:
            _reserve_one(cycle, cycle.view.accounts, after)
        return
    taken = {booking.job.queue for booking in aged}
    queues = [*cycle.view.accounts]
    start = queues.index(first) if first in queues else 0
    for queue in queues[start:] + queues[:start]:
        if queue not in taken:
            _reserve_one(cycle, [queue], after)


def _reserve_one(cycle: Cycle, queues: Iterable[str], after: int) -> None:
    """A reservation for the first in order of those of *queues* who are overdue."""
    listed = [queue for queue in queues if _is_due(cycle, queue, after)]
    overdue = [one for queue in listed for one in _overdue(cycle, queue, after)]
    for _key, standing in sorted(overdue, key=lambda each: each[0]):
        known = cycle.hopeless.get(standing.ask) == cycle.structure
        known |= standing.job.queue not in cycle.view.queues
        if not (known or cycle.may_plan(standing.job.queue)):
            return
        booking = None if known else _plan(cycle, standing)
        if booking is None:
            _note_hopeless(cycle, standing.ask)
            continue
        cycle.book(standing, booking)
        if booking.blockers:
            tell_booking(cycle, standing, booking)
        elif not cycle.redeem(booking):
            _note_hopeless(cycle, standing.ask)
        return


def _note_hopeless(cycle: Cycle, ask: Job) -> None:
    """No reservation can be made for jobs that ask so, until something changes."""
    cycle.hopeless.put(ask, cycle.structure, ask.weight)


def _is_due(cycle: Cycle, queue: str, after: int) -> bool:
    """Whether somebody of *queue* may be overdue; else it is noted when."""
    lists = (cycle.waiting.oldest(queue), cycle.pending.oldest(queue))
    since = min((one.waiting_since for one in lists if one), default=inf)
    cycle.wake_at(since + after)
    if since + after > cycle.now:
        return False
    structure, until = cycle.barren.get(queue, (-1, inf))
    if structure != cycle.structure or until <= cycle.now:
        return True
    cycle.wake_at(until)
    return False


def _overdue(cycle: Cycle, queue: str, after: int) -> list[tuple[Key, Standing]]:
    """Who of *queue* has waited too long, also to be let in; of a line the first.

    When nobody has, or none of them can be helped, it is noted until when that is so.
    """
    found = []
    lists = cycle.waiting, cycle.pending
    for line in chain.from_iterable(each.lines_in(queue) for each in lists):
        ask = line.front[1].ask
        if ask.podless or cycle.hopeless.get(ask) == cycle.structure:
            continue
        first = _first_overdue(line, after, cycle.now)
        if first is not None:
            found.append(first)
    until = min(each.next_due(queue, after, cycle.now) for each in lists)
    cycle.wake_at(until)
    if not found:
        cycle.barren[queue] = cycle.structure, until
        if len(cycle.barren) > 2 * len(cycle.view.accounts) + SPARE:
            there = cycle.view.accounts  # jobs may name any number of queues
            cycle.barren = {q: v for q, v in cycle.barren.items() if q in there}
    return found


def _first_overdue(line: Line, after: int, now: float) -> tuple[Key, Standing] | None:
    """The first of *line* who has waited too long: mostly who is in front."""
    front = line.front
    if _is_overdue(front[1], after, now):
        return front
    entries = line.entries()
    overdue = [each for each in entries if _is_overdue(each[1], after, now)]
    return min(overdue, key=itemgetter(0), default=None)


def _is_overdue(standing: Standing, after: int, now: float) -> bool:
    """Whether a job cannot do with what it has, and has waited too long."""
    short = standing.phase is not Phase.RUNNING or standing.is_broken
    return short and standing.waiting_since + after <= now


def _plan(cycle: Cycle, standing: Standing) -> Booking | None:
    """Where *standing* can start soonest, as others end one after the other.

    Who is in the way of another reservation ends for that one.
    """
    enders = _enders(cycle, standing)
    cycle.plan_cost += TRIALS * (1 + sum(len(each.placements) for each in enders))
    beyond = False
    found = None if standing.is_broken else _soonest(cycle, standing, enders)
    if found is None:
        more = _needs_more(cycle, standing, enders)
        if more is None:
            return None
        beyond = more
        found = _soonest(cycle, standing, enders, beyond=beyond)
        assert found is not None, "it fits when nobody runs"
    count, placed = found
    if not cycle.is_promised(standing, placed):
        return None
    since = standing.waiting_since
    booking = Booking(
        standing.rest,
        placed.placements,
        since=cycle.now,
        why=f"it waits since {since:g} s",
        aged=True,
    )
    booking.beyond = beyond
    booking.blocked_by(enders[:count])
    limited = _is_limited(cycle, standing, beyond=beyond)
    for other in enders[:count]:
        same = other.job.queue == standing.job.queue
        if other is enders[count - 1] or (limited and same):
            booking.blocked_elsewhere(other)
    return booking


def _enders(cycle: Cycle, standing: Standing) -> list[Standing]:
    """Who holds something that *standing* may wait for, in the order of their ends."""
    known, apart = cycle.view.standings, {standing.job.name}
    for booking in cycle.bookings.values():
        apart |= booking.blockers.keys()
    holders = cycle.view.cluster.holdings
    others = [known[n] for n in holders if n in known and n not in apart]
    others.sort(key=attrgetter("number"))
    others.sort(key=ends_at)  # stable
    return others


def soonest_start(cycle: Cycle, standing: Standing) -> Booking | None:
    """Where a waiting job could start soonest, and who is there still.

    Nothing is reserved; None where the end of nobody would help.
    """
    found = _plan(cycle, standing)
    standing.promised = NONE_OF_THEM
    return found


def _is_limited(cycle: Cycle, standing: Standing, *, beyond: bool) -> bool:
    """Whether the job waits for its queue, and not only for chips."""
    own = standing.job.queue
    shared = cycle.view.queues[own].capability or any(
        any(account.requested.values())
        for name, account in cycle.view.accounts.items()
        if name != own
    )
    return bool(shared) and cycle.quota(standing, overdue=beyond) is None


def _needs_more(
    cycle: Cycle, standing: Standing, enders: list[Standing]
) -> bool | None:
    """Whether the job is larger than the share of its queue, even if nobody runs.

    Then it may use what its queue may ever use: two queues that each wait for all of
    the cluster would wait forever. Others wait for their share. None where it would
    not fit even then.
    """
    with Statement(cycle.view.cluster) as statement:
        for other in enders:
            statement.release(other.job.name)
        beyond = standing.is_broken or cycle.quota(standing) is None
        return None if _fits(cycle, standing, beyond=beyond) is None else beyond


def _soonest(
    cycle: Cycle, standing: Standing, enders: list[Standing], *, beyond: bool = False
) -> tuple[int, Placed] | None:
    """The fewest of *enders*, in their order, after which the job fits, and where.

    Ever larger steps until it fits; then halves of the last step. None where it does
    not fit after all of them.
    """
    ended, step = 0, 1
    with Statement(cycle.view.cluster) as statement:
        while (placed := _fits(cycle, standing, beyond=beyond)) is None:
            more = enders[ended : ended + step]
            if not more:
                return None
            if (found := _within(cycle, standing, more, beyond=beyond)) is not None:
                count, placed = found
                return ended + count, placed
            for other in more:
                statement.release(other.job.name)
            ended += len(more)
            step *= 2
        return ended, placed


def _within(
    cycle: Cycle, standing: Standing, enders: list[Standing], *, beyond: bool
) -> tuple[int, Placed] | None:
    """The fewest of the first *enders* that are enough, if all of them are."""
    found = None
    low, high = 0, len(enders)
    while low < high or found is None:
        middle = high if found is None else (low + high) // 2
        with Statement(cycle.view.cluster) as statement:
            for other in enders[:middle]:
                statement.release(other.job.name)
            placed = _fits(cycle, standing, beyond=beyond)
        if placed is not None:
            found, high = (middle, placed), middle
        elif found is None:
            return None
        else:
            low = middle + 1
    return found


def _fits(cycle: Cycle, standing: Standing, *, beyond: bool) -> Placed | None:
    """Where the job would be placed now, within its quota."""
    limit = cycle.quota(standing, overdue=beyond)
    return None if limit is None else cycle.preview(standing, limit)


def book_what_ends(cycle: Cycle, line: Line) -> None:
    """Reserve what pods hold that are asked to end, if that is enough for a job.

    Otherwise it would go to whoever asks first once they are gone.
    """
    enders = cycle.free_enders
    _key, standing = line.front
    if not enders or standing.phase is Phase.RUNNING:
        return
    with Statement(cycle.view.cluster) as statement:
        for other in enders:
            statement.release_pods(other.job.name, other.terminating)
        placed = _fits(cycle, standing, beyond=False)
    if placed is None or not cycle.is_promised(standing, placed):
        return
    booking = Booking(
        standing.rest,
        placed.placements,
        since=cycle.now,
        why="pods that end leave room",
        aged=False,
    )
    booking.blocked_by(enders)
    cycle.book(standing, booking)
    tell_booking(cycle, standing, booking)


def tell_booking(cycle: Cycle, standing: Standing, booking: Booking) -> None:
    """Say where a job will start, and who is there still."""
    where = place_words(cycle.view.cluster, booking.job, booking.placements)
    jobs = some_of(map(repr, booking.blockers), 3)
    wait = f"; it waits for {jobs} to end" if jobs else ""
    cycle.tell(
        standing,
        Verdict.RESERVED,
        f"job {standing.job.name!r} has a reservation: {where}{wait}",
    )
