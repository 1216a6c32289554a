"""Whose turn it is: the next queue, and in it the next job.

After every turn both are asked anew, because shares have changed.
"""

from heapq import heappop, heappush

from ringleaf.framework.cycle import Cycle
from ringleaf.framework.waitlist import Key, Line, Waitlist
from ringleaf.model.queue import Queue


class Turns:
    """The open lines of a waitlist, one after the other."""

    def __init__(self, cycle: Cycle, waitlist: Waitlist) -> None:
        self._cycle, self._waitlist = cycle, waitlist
        self._queues: dict[str, Queue] = {}
        self._unknown: dict[str, None] = {}
        """Queues that do not exist: jobs may name any number of them.

        Nothing of theirs starts, so they are looked at first, in any order.
        """
        for name in waitlist.queues:
            if waitlist is cycle.pending or not cycle.is_passed(name):
                known = cycle.view.queues.get(name)
                if known is None:
                    self._unknown[name] = None
                else:
                    self._queues[name] = known
        self._heaps: dict[str, list[tuple[Key, int, Line]]] = {}
        self._number = 0
        self.queue = ""
        self._last: Line | None = None

    def next(self) -> Line | None:
        """The line whose first job is next; None when nobody is left.

        The line of the turn before is still there if it is open and not empty.
        """
        self._return()
        while self._queues or self._unknown:
            self.queue = self._first()
            heap = self._heap(self.queue)
            if heap:
                _key, _number, self._last = heappop(heap)
                return self._last
            self.drop()
        return None

    def drop(self) -> None:
        """Nobody else of the present queue gets a turn."""
        if self.queue in self._unknown:
            del self._unknown[self.queue]
        else:
            del self._queues[self.queue]

    def _first(self) -> str:
        if self._unknown:
            return next(iter(self._unknown))
        if len(self._queues) == 1:
            return next(iter(self._queues))
        return min(
            self._queues, key=lambda n: self._cycle.votes.queue_key(self._queues[n])
        )

    def _heap(self, queue: str) -> list[tuple[Key, int, Line]]:
        if queue not in self._heaps:
            heap = self._waitlist.open_lines(queue)
            self._heaps[queue], self._number = heap, self._number + len(heap)
        return self._heaps[queue]

    def _return(self) -> None:
        """Put the last line back if more of it can have a turn."""
        line, self._last = self._last, None
        if line is not None and self._waitlist.is_open(line):
            self._number += 1
            heappush(self._heaps[self.queue], (line.front[0], self._number, line))
