"""Place jobs whose pods ask for nothing; queues and their shares do not matter."""

from ringleaf.actions.turns import Turns
from ringleaf.framework.cycle import Cycle


def backfill(cycle: Cycle) -> None:
    """Place whoever can be."""
    if not cycle.modest.has_open:
        return
    turns = Turns(cycle, cycle.modest)
    while (line := turns.next()) is not None:
        _key, standing = line.front
        if why := cycle.door_words(standing.job.queue):
            cycle.modest.hold_back(line, why)
            cycle.tell_waits(standing, why)
            continue
        found = cycle.place(standing, standing.n_pods)
        if isinstance(found, tuple):
            cycle.start(standing, found)
        else:
            cycle.modest.close(line, found)
            cycle.tell_waits(standing, found)
