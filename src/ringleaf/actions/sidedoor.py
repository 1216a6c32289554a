"""Who was not let in and can start at once is let in all the same.

``enqueue`` keeps jobs out for what those who were let in will use. But who of those was
tried in vain cannot use what is free now: one gang that waits for its last node would
keep everybody from all other chips.
"""

from functools import cached_property
from heapq import heappop, heappush

from msgspec.structs import replace

from ringleaf.actions.enqueue import let_in, may_come_in
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.standing import Standing
from ringleaf.framework.view import free_chips
from ringleaf.framework.waitlist import Line, heap_of
from ringleaf.model.job import Job


def let_in_who_fits(cycle: Cycle) -> bool:
    """Let in who was turned away and fits, queue by queue, in the order of jobs.

    Whether all of them were looked at in this cycle.
    """
    if not cycle.turned_away:
        return True
    side_door = SideDoor(cycle)
    queues: dict[str, list[Line]] = {}
    for line in filter(None, cycle.turned_away):
        queues.setdefault(line.ask.queue, []).append(line)
    for lines in queues.values():
        heap = heap_of(lines)
        while heap:
            if cycle.cut_short():
                return False
            _key, number, line = heappop(heap)
            if side_door.lets_in(line) and line:
                heappush(heap, (line.front[0], number, line))
    cycle.failed = [line for line in cycle.failed if line]
    return True


class SideDoor:
    """One look at those who were turned away."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._vain: set[Job] = set()
        """What was asked in this look, and found no places."""
        waiting = cycle.waiting
        self._stuck = {line for line in waiting.lines if not waiting.is_open(line)}
        """The lines of those who were let in whose first was tried in vain."""

    def lets_in(self, line: Line) -> bool:
        """Whether the first of *line* was let in."""
        _key, standing = line.front
        if self._cycle.door_words(standing.job.queue):
            return False
        if standing.job.podless:
            return self._awaits(standing)
        return self._starts(standing, line)

    def _starts(self, standing: Standing, line: Line) -> bool:
        """Whether a job was let in and placed.

        Of those who were let in all have been tried but those whose pods are being
        made: only for these room is kept.
        """
        cycle, standings = self._cycle, self._cycle.view.standings
        if not cycle.may_fit(standing) or self._is_vain(standing):
            return False
        with cycle.view.promises(lambda name: standings[name].job.podless):
            if not may_come_in(cycle, standing):
                return False
        if self._has_its_share(standing) or cycle.votes.job_valid(standing) is not None:
            return False
        limit = cycle.quota(standing)
        found = None if limit is None else cycle.place_if_any(standing, limit)
        if found is None:
            if limit is not None and not line.likes_company:
                self._vain.add(_untimed(standing))
            return False
        cycle.votes.job_enqueued(standing)
        cycle.admit(standing)
        cycle.start(standing, found)
        self.__dict__.pop("_free", None)
        return True

    def _is_vain(self, standing: Standing) -> bool:
        """Whether somebody who asks the same, but for its time, found no places."""
        return _untimed(standing) in self._vain and not self._cycle.yielding(standing)

    def _awaits(self, standing: Standing) -> bool:
        """Whether a job was let in whose pods are made only then.

        So many chips must be free, beside what others need who may yet use them.
        """
        cycle, free, least = self._cycle, self._free, standing.least
        asked = [name for name, amount in least.items() if amount and name in free]
        if any(least[name] > free[name] for name in asked):
            return False
        with cycle.view.promises(self._may_use_more) as promised:
            if not may_come_in(cycle, standing):
                return False
        if any(least[name] + promised.get(name, 0) > free[name] for name in asked):
            return False
        if self._has_its_share(standing) or cycle.quota(standing) is None:
            return False
        cycle.pending.remove(standing.job.name)
        let_in(cycle, standing)
        standing.let_in_early = True
        return True

    def _has_its_share(self, standing: Standing) -> bool:
        queue = self._cycle.view.queues[standing.job.queue]
        return self._cycle.votes.overused(queue)

    def _may_use_more(self, name: str) -> bool:
        """Whether a job that was let in may take some of what is free now.

        Not who was let in at his turn, and tried in vain, or whose queue has its share.
        """
        waiting, standing = self._cycle.waiting, self._cycle.view.standings[name]
        if standing.job.queue in self._satisfied:
            return False
        stuck = name in waiting and waiting.line_of(name) in self._stuck
        return standing.let_in_early or not stuck

    @cached_property
    def _free(self) -> dict[str, int]:
        """The chips that are free, until somebody starts."""
        return free_chips(self._cycle.view.cluster)

    @cached_property
    def _satisfied(self) -> set[str]:
        """The queues that have their share."""
        queues, votes = self._cycle.view.queues.values(), self._cycle.votes
        return {queue.name for queue in queues if votes.overused(queue)}


def _untimed(standing: Standing) -> Job:
    """What a job asks for, however long."""
    return replace(standing.ask, estimate_s=None)
