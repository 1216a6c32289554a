"""Place jobs that ask for something: all the pods they cannot do without, or none.

First those with a reservation, then queue by queue, job by job, then who was not let in
and fits. A job that has waited too long gets a reservation (``reserve``).
"""

from ringleaf.actions.reserve import book_what_ends, reserve
from ringleaf.actions.sidedoor import let_in_who_fits
from ringleaf.actions.turns import Turns
from ringleaf.framework.cycle import Cycle


def allocate(cycle: Cycle) -> None:
    """Place whoever can be, in the order of queues and jobs."""
    cycle.redeem_all()
    turns = Turns(cycle, cycle.waiting)
    while (line := turns.next()) is not None:
        if cycle.cut_short():
            return
        queue = cycle.view.queues.get(turns.queue)
        broken = cycle.is_stranded(line.front[1])
        if queue is not None and not broken and cycle.votes.overused(queue):
            cycle.pass_over(line)
            turns.drop()
        elif not cycle.attempt(line):
            book_what_ends(cycle, line)
    if let_in_who_fits(cycle):
        cycle.tell_turned_away()
        reserve(cycle)
