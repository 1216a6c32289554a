"""For which jobs victims are searched, one after the other.

Queues have their turns in the order in which their jobs failed; within a queue the
first in job order is next, whatever class it stands in. When victims were found for it,
the same turn goes on with the next.
"""

from collections import deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from ringleaf.framework.pending_queue import EquivalenceClass, JobKey

_Entry = tuple[JobKey, int, EquivalenceClass]


class SearchOrder:
    """Classes to search for, as far as they are not done.

    Args:
        classes: Classes whose first jobs failed, in that order; none of them is empty.

    """

    def __init__(self, classes: Iterable[EquivalenceClass]) -> None:
        self._turns: deque[str] = deque()
        self._heaps: dict[str, list[_Entry]] = {}
        self._number = 0
        self._in: dict[EquivalenceClass, int] = {}
        """Every class with the number of its entry; an older entry is void."""
        for job_class in classes:
            queue = job_class.scheduling_key.queue
            self._turns.append(queue)
            self._heaps.setdefault(queue, []).append(self._entry(job_class))
        for heap in self._heaps.values():
            heapify(heap)

    def _entry(self, job_class: EquivalenceClass) -> _Entry:
        self._number += 1
        self._in[job_class] = self._number
        return job_class.first_key, self._number, job_class

    def pop(self) -> EquivalenceClass | None:
        """The class whose first job is next; None when none is left."""
        while self._turns:
            queue = self._turns.popleft()
            job_class = self._first(queue)
            if job_class is not None:
                heappop(self._heaps[queue])
                del self._in[job_class]
                return job_class
        return None

    def _first(self, queue: str) -> EquivalenceClass | None:
        """The class of *queue* that is next, by the jobs that are in front now."""
        heap = self._heaps[queue]
        while heap:
            key, number, job_class = heap[0]
            is_valid = self._in.get(job_class) == number
            if is_valid and job_class and job_class.first_key == key:
                return job_class
            heappop(heap)
            if is_valid and job_class:
                heappush(heap, (job_class.first_key, number, job_class))
            elif is_valid:
                del self._in[job_class]
        return None

    def push_first(self, job_class: EquivalenceClass) -> None:
        """*job_class* is not done: its queue goes on with its turn.

        One that is left already is next in its queue, in the turn that it has.
        """
        queue = job_class.scheduling_key.queue
        if job_class not in self._in:
            self._turns.appendleft(queue)
        heappush(self._heaps[queue], self._entry(job_class))

    def __contains__(self, job_class: EquivalenceClass) -> bool:
        return job_class in self._in

    def first_keys(self) -> dict[str, JobKey]:
        """The job order key of the job that is next in each queue."""
        firsts = {queue: self._first(queue) for queue in self._heaps}
        return {queue: first.first_key for queue, first in firsts.items() if first}
