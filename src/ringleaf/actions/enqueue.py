"""Let waiting jobs in, queue by queue, while no plugin objects.

A job that is let in may be placed; one that is not costs its queue nothing. It may
still evict others, and get a reservation: a full queue is no reason to starve in it.

Where we differ from Volcano: what jobs that were let in will use keeps nobody out who
can start at once. Else one gang that waits for its last node keeps all others from
chips that are free.
"""

from ringleaf.actions.turns import Turns
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.standing import Standing
from ringleaf.framework.view import free_chips
from ringleaf.model.amounts import plus


def enqueue(cycle: Cycle) -> None:
    """Let in whoever may be, in the order of queues and jobs."""
    _welcome(cycle)
    if not cycle.pending.has_open:
        return
    turns = Turns(cycle, cycle.pending)
    while (line := turns.next()) is not None:
        _key, standing = line.front
        job = standing.job
        if _may_come_in(cycle, standing):
            cycle.pending.remove(job.name)
            _let_in(cycle, standing)
            continue
        why = cycle.door_words(job.queue) or cycle.full_words(job.queue)
        cycle.turn_away(line, why)


def let_in_who_fits(cycle: Cycle) -> bool:
    """Start those who were turned away and find room all the same, in their order.

    Whether all of them were looked at in this cycle.
    """
    for line in cycle.turned_away:
        while line and (cycle.cut_short() or _comes_in(cycle, line.front[1])):
            if cycle.is_cut_short:
                cycle.relief = True  # they are looked at again
                return False
        if not line:
            cycle.failed.remove(line)
    return True


def _welcome(cycle: Cycle) -> None:
    """Who has just arrived joins a line, unless nobody else is at the door."""
    newcomers, cycle.newcomers = list(cycle.newcomers.values()), {}
    alone = len(newcomers) == 1 and not cycle.pending
    if alone and _may_come_in(cycle, newcomers[0]):
        _let_in(cycle, newcomers[0])
        return
    for standing in newcomers:
        cycle.wait(standing)


def _may_come_in(cycle: Cycle, standing: Standing) -> bool:
    closed = cycle.door_words(standing.job.queue)
    return not closed and cycle.votes.job_enqueueable(standing)


def _comes_in(cycle: Cycle, standing: Standing) -> bool:
    """Whether a job that was turned away was let in all the same."""
    if standing.job.podless:
        return _is_awaited(cycle, standing)
    return _starts(cycle, standing)


def _starts(cycle: Cycle, standing: Standing) -> bool:
    """Whether a job was let in and placed.

    Of those who were let in all have been tried but those whose pods are being made.
    """
    if not cycle.may_fit(standing):
        return False
    standings = cycle.view.standings
    with cycle.view.promises(lambda name: standings[name].job.podless):
        if not _may_come_in(cycle, standing):
            return False
    queue = cycle.view.queues[standing.job.queue]
    if cycle.votes.overused(queue) or cycle.votes.job_valid(standing) is not None:
        return False
    limit = cycle.quota(standing)
    found = None if limit is None else cycle.place_if_any(standing, limit)
    if found is None:
        return False
    cycle.votes.job_enqueued(standing)
    cycle.admit(standing)
    cycle.start(standing, found)
    return True


def _is_awaited(cycle: Cycle, standing: Standing) -> bool:
    """Whether a job was let in whose pods are made only then.

    So many chips must be free, beside what others need who may yet use them: all but
    those who were let in at their turn, and were tried in vain.
    """
    free = free_chips(cycle.view.cluster)
    with cycle.view.promises(lambda name: _may_use_more(cycle, name)) as promised:
        may = _may_come_in(cycle, standing)
    need = plus(standing.least, promised)
    if not may or any(need.get(name, 0) > left for name, left in free.items()):
        return False
    cycle.pending.remove(standing.job.name)
    _let_in(cycle, standing)
    standing.let_in_early = True
    return True


def _may_use_more(cycle: Cycle, name: str) -> bool:
    """Whether a job that was let in may take some of what is free now."""
    standing = cycle.view.standings[name]
    stuck = name in cycle.waiting and not cycle.waiting.is_open(
        cycle.waiting.line_of(name)
    )
    return standing.let_in_early or not stuck


def _let_in(cycle: Cycle, standing: Standing) -> None:
    cycle.votes.job_enqueued(standing)
    cycle.admit(standing)
    cycle.wait(standing)
