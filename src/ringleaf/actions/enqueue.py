"""Let waiting jobs in, queue by queue, while no plugin objects.

A job that is let in may be placed; one that is not costs its queue nothing. It may
still evict others, and get a reservation: a full queue is no reason to starve in it.

Where we differ from Volcano: what jobs that were let in will use keeps nobody out who
can start at once (``sidedoor``).
"""

from ringleaf.actions.turns import Turns
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.standing import Standing


def enqueue(cycle: Cycle) -> None:
    """Let in whoever may be, in the order of queues and jobs."""
    _welcome(cycle)
    if not cycle.pending.has_open:
        return
    turns = Turns(cycle, cycle.pending)
    while (line := turns.next()) is not None:
        _key, standing = line.front
        job = standing.job
        if may_come_in(cycle, standing):
            cycle.pending.remove(job.name)
            let_in(cycle, standing)
            continue
        why = cycle.door_words(job.queue) or cycle.full_words(job.queue)
        cycle.turn_away(line, why)


def _welcome(cycle: Cycle) -> None:
    """Who has just arrived joins a line, unless nobody else is at the door."""
    newcomers, cycle.newcomers = list(cycle.newcomers.values()), {}
    alone = len(newcomers) == 1 and not cycle.pending
    if alone and may_come_in(cycle, newcomers[0]):
        let_in(cycle, newcomers[0])
        return
    for standing in newcomers:
        cycle.wait(standing)


def may_come_in(cycle: Cycle, standing: Standing) -> bool:
    """Whether the queue of a job is open, and nobody objects to it."""
    closed = cycle.door_words(standing.job.queue)
    return not closed and cycle.votes.job_enqueueable(standing)


def let_in(cycle: Cycle, standing: Standing) -> None:
    """A job is let in, and waits for chips."""
    cycle.votes.job_enqueued(standing)
    cycle.admit(standing)
    cycle.wait(standing)
