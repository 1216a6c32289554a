"""For which jobs victims are searched, one after the other.

Queues have their turns in the order in which their jobs failed; within a queue the
first in job order is next, whatever line it stands in. When victims were found for it,
the same turn goes on with the next.
"""

from collections import deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from ringleaf.framework.pending_queue import EquivalenceClass, JobKey

_Entry = tuple[JobKey, int, EquivalenceClass]


class SearchOrder:
    """Lines to search for, as far as they are not done.

    Args:
        lines: Lines whose first jobs failed, in that order; none of them is empty.

    """

    def __init__(self, lines: Iterable[EquivalenceClass]) -> None:
        self._turns: deque[str] = deque()
        self._heaps: dict[str, list[_Entry]] = {}
        self._number = 0
        self._in: dict[EquivalenceClass, int] = {}
        """Every line with the number of its entry; an older entry is void."""
        for line in lines:
            queue = line.scheduling_key.queue
            self._turns.append(queue)
            self._heaps.setdefault(queue, []).append(self._entry(line))
        for heap in self._heaps.values():
            heapify(heap)

    def _entry(self, line: EquivalenceClass) -> _Entry:
        self._number += 1
        self._in[line] = self._number
        return line.front[0], self._number, line

    def pop(self) -> EquivalenceClass | None:
        """The line whose first job is next; None when none is left."""
        while self._turns:
            queue = self._turns.popleft()
            line = self._first(queue)
            if line is not None:
                heappop(self._heaps[queue])
                del self._in[line]
                return line
        return None

    def _first(self, queue: str) -> EquivalenceClass | None:
        """The line of *queue* that is next, by the jobs that are in front now."""
        heap = self._heaps[queue]
        while heap:
            key, number, line = heap[0]
            is_valid = self._in.get(line) == number
            if is_valid and line and line.front[0] == key:
                return line
            heappop(heap)
            if is_valid and line:
                heappush(heap, (line.front[0], number, line))
            elif is_valid:
                del self._in[line]
        return None

    def push_first(self, line: EquivalenceClass) -> None:
        """*line* is not done: its queue goes on with its turn.

        One that is left already is next in its queue, in the turn that it has.
        """
        queue = line.scheduling_key.queue
        if line not in self._in:
            self._turns.appendleft(queue)
        heappush(self._heaps[queue], self._entry(line))

    def __contains__(self, line: EquivalenceClass) -> bool:
        return line in self._in

    def precedes(self, line: EquivalenceClass) -> bool:
        """Whether its first job is now before all others that are left of its queue."""
        queue = line.scheduling_key.queue
        if queue not in self._heaps:
            return False
        first = self._first(queue)
        return first is not None and line.front[0] < first.front[0]
