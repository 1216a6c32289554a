"""Which job is next: the next queue, and in it the next job.

After every turn both are asked anew, because shares have changed.

In one call of the engine the turns of a queue end when they have cost its part of what
all may cost. Half of that is for its first jobs, also those that were tried before; the
other half for those that were not, so that every job gets a turn however many are
before it.
"""

from heapq import heappop, heappush

from ringleaf.framework.context import Context
from ringleaf.framework.pending_queue import EquivalenceClass, JobKey, PendingQueue
from ringleaf.model.queue import Queue


class QueueIterator:
    """The open classes of a pending queue, one after the other."""

    def __init__(self, ctx: Context, pending_queue: PendingQueue) -> None:
        self._ctx, self._pending_queue = ctx, pending_queue
        self._queues: dict[str, Queue] = {}
        self._unknown: dict[str, None] = {}
        """Queues that do not exist: jobs may name any number of them.

        Nothing of theirs starts, so they are looked at first, in any order.
        """
        pending = ctx.pending
        for name in pending_queue.queues:
            if pending_queue is pending.unadmitted or not pending.is_satisfied(name):
                known = ctx.state.queues.get(name)
                if known is None:
                    self._unknown[name] = None
                else:
                    self._queues[name] = known
        self._heaps: dict[str, list[tuple[JobKey, int, EquivalenceClass]]] = {}
        self._number = 0
        self.queue = ""
        self._last: EquivalenceClass | None = None
        self._parts = max(1, len(self._queues) + bool(self._unknown))
        """Among how many queues the cost is shared; unknown ones are as one."""
        self._spent: dict[str, int] = {}
        self._before = 0
        """What all had cost before the last turn."""
        self.is_done = True
        """Whether no turn ended because it would cost too much."""

    def next(self) -> EquivalenceClass | None:
        """The class whose first job is next; None when no job is left.

        The class of the turn before is still there if it is open and not empty.
        """
        if self._last is not None:
            self._return(self._last)
        while self._queues or self._unknown:
            self.queue = self._first()
            self._last = self._pop(self._heap(self.queue))
            if self._last is not None:
                self._before = self._ctx.budget.cost
                return self._last
            self.skip_queue()
        return None

    def _pop(
        self, heap: list[tuple[JobKey, int, EquivalenceClass]]
    ) -> EquivalenceClass | None:
        """The first class of the present queue whose turn it is, if any is left."""
        every, budget = self._pending_queue.tried, self._ctx.budget
        tried = every.get(self.queue, ())
        while heap:
            if self._costs_more_than(1):
                budget.tries_exhausted, self.is_done = True, False
                return None
            _key, _number, job_class = heappop(heap)
            if job_class not in tried or not self._costs_more_than(0.5):
                return job_class
            budget.tries_exhausted = True  # its turn comes in the next call
        every.pop(self.queue, None)
        return None

    def _costs_more_than(self, share: float) -> bool:
        """Whether a queue has cost more than this *share* of its part."""
        spent = self._spent.get(self._account, 0) * self._parts / share
        return not self._ctx.budget.allows_tries(spent)

    @property
    def _account(self) -> str:
        return "" if self.queue in self._unknown else self.queue

    def skip_queue(self) -> None:
        """No other job of the present queue gets a turn."""
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
            self._queues,
            key=lambda n: self._ctx.framework.votes.queue_key(self._queues[n]),
        )

    def _heap(self, queue: str) -> list[tuple[JobKey, int, EquivalenceClass]]:
        if queue not in self._heaps:
            heap = self._pending_queue.open_classes(queue)
            self._heaps[queue], self._number = heap, self._number + len(heap)
        return self._heaps[queue]

    def _return(self, job_class: EquivalenceClass) -> None:
        """Put the last class back if more of it can have a turn."""
        self._last, account = None, self._account
        cost = self._ctx.budget.cost - self._before
        self._spent[account] = self._spent.get(account, 0) + cost
        if self._pending_queue.is_open(job_class):
            self._number += 1
            heappush(
                self._heaps[self.queue], (job_class.first_key, self._number, job_class)
            )
        elif job_class:
            self._pending_queue.tried.setdefault(self.queue, set()).add(job_class)
