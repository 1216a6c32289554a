"""Pending jobs by equivalence class.

Jobs of one queue that request the same are one *class*, the first in job order in
front. When the job in front finds no room, none behind it does: the class is closed. It
opens again when something is free that its jobs could use. So nothing is looked at
again for no reason.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, Final

from msgspec.structs import replace

from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.reasons import QueueReason
from ringleaf.framework.reservation import longest_run
from ringleaf.model.decision import Waiting
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network
from ringleaf.model.product import Product

JobKey = tuple[Any, ...]
SPARE_ENTRIES: Final = 64
"""Entries of jobs that are no longer pending that are worth no tidying up."""


class EquivalenceClass:
    """Jobs of one queue that request the same, the first in job order in front."""

    def __init__(self, scheduling_key: Job) -> None:
        self.scheduling_key = scheduling_key
        roles = [role for role, _own in scheduling_key.role_ranks]
        demands = [role.demand for role in roles]
        self.has_pod_affinity = any(d.near or d.spread for d in demands)
        """Whether pods that come may be what its jobs wait for."""
        minds = self.has_pod_affinity or any(d.apart for d in demands)
        without_chips = not all(role.chips for role in roles)
        anything = minds or without_chips or scheduling_key.network is not Network.NONE
        self.product = None if anything else scheduling_key.product
        """What must be free for its jobs; None if it may be anything."""
        self.why: Waiting | QueueReason | None = None
        """Why it is closed: what its first job found, or what its queue says."""
        self.searched: dict[str, int] = {}
        """Action -> the changes at which a search for victims last found none."""
        self.first_job: JobState
        """The first of its jobs; there is none while the class is empty."""
        self.first_key: JobKey
        self._heap: list[tuple[JobKey, int, JobState]] = []
        self._serial: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._serial)

    def __iter__(self) -> Iterator[JobState]:
        """Its jobs, in no particular order."""
        return (entry[2] for entry in self._heap if self._alive(entry))

    def entries(self) -> list[tuple[JobKey, JobState]]:
        """Its jobs with their keys, in no particular order."""
        serials = self._serial
        return [
            (key, job_state)
            for key, serial, job_state in self._heap
            if serials.get(job_state.job.name) == serial
        ]

    def push(self, key: JobKey, serial: int, job_state: JobState) -> None:
        """A job joins the class."""
        self._serial[job_state.job.name] = serial
        heappush(self._heap, (key, serial, job_state))
        self._find_first()

    def remove(self, name: str) -> bool:
        """A job leaves the class; whether it was the last.

        Its entry goes when it comes to the front, or when most entries are of jobs
        that have left: behind a job that stays in front any number come and go.
        """
        del self._serial[name]
        if not self._serial:
            self._heap.clear()  # whatever knows the class still
            del self.first_key, self.first_job
            return True
        if len(self._heap) > 2 * len(self._serial) + SPARE_ENTRIES:
            self._heap = [*filter(self._alive, self._heap)]
            heapify(self._heap)
        if self.first_job.job.name == name:
            self._find_first()
        return False

    def first_after(
        self, key: JobKey, accepts: Callable[[JobState], bool]
    ) -> tuple[JobKey, JobState] | None:
        """The first job behind *key* that *accepts* is true of, with its own key."""
        found = min(
            (
                entry
                for entry in self._heap
                if entry[0] > key and self._alive(entry) and accepts(entry[2])
            ),
            default=None,
        )
        return None if found is None else (found[0], found[2])

    def _find_first(self) -> None:
        """Drop entries of jobs that have left, down to one of a job that has not."""
        heap = self._heap
        while not self._alive(heap[0]):
            heappop(heap)
        self.first_key, _serial, self.first_job = heap[0]

    def _alive(self, entry: tuple[JobKey, int, JobState]) -> bool:
        return self._serial.get(entry[2].job.name) == entry[1]


class WaitingSince:
    """Since when jobs have waited, queue by queue, the longest first.

    Args:
        pending: The jobs that wait, by name.

    """

    def __init__(self, pending: Mapping[str, object]) -> None:
        self._pending = pending
        self._since: dict[str, list[tuple[float, int, JobState]]] = {}

    def add(self, job_state: JobState, serial: int) -> None:
        """A job begins to wait."""
        since = self._since.setdefault(job_state.job.queue, [])
        insort(since, (job_state.waiting_since, serial, job_state))
        if len(since) > 2 * len(self._pending) + SPARE_ENTRIES:
            self._tidy(since)

    def forget(self, queue: str) -> None:
        """No job of *queue* waits."""
        self._since.pop(queue, None)

    def oldest(self, queue: str) -> JobState | None:
        """The job of *queue* that has been pending longest."""
        since = self._since.get(queue, [])
        gone = 0
        while gone < len(since) and not self._still_waits(since[gone]):
            gone += 1
        del since[:gone]
        return since[0][2] if since else None

    def next_due(self, queue: str, after: float, now: float) -> float:
        """When the next of *queue* has waited *after* seconds that has not yet."""
        since = self._since.get(queue, [])
        at = bisect_right(since, now, key=lambda entry: entry[0] + after)
        while at < len(since):
            if not self._still_waits(since[at]):
                del since[at]
            elif since[at][2].job.podless:
                at += 1  # nothing is reserved for pods that are not made yet
            else:
                return since[at][0] + after
        return inf

    def _still_waits(self, entry: tuple[float, int, JobState]) -> bool:
        since, _serial, job_state = entry
        whole = job_state.phase is Phase.RUNNING and not job_state.below_min_available
        waits = job_state.job.name in self._pending and not whole
        return waits and since == job_state.waiting_since

    def _tidy(self, since: list[tuple[float, int, JobState]]) -> None:
        """Leave one entry for each job: the oldest may not be asked for, for long.

        A standby, which decides nothing, never asks.
        """
        last = {each[2].job.name: each for each in sorted(since, key=lambda e: e[1])}
        since[:] = sorted(filter(self._still_waits, last.values()))


class PendingQueue:
    """All classes, queue by queue, the open ones apart."""

    by_run_time = True
    """Whether jobs with different running times are in different classes."""

    def __init__(self) -> None:
        self._classes: dict[Job, EquivalenceClass] = {}
        self._in_queue: dict[str, dict[EquivalenceClass, None]] = {}
        self.by_job: dict[str, EquivalenceClass] = {}
        """The class of every pending job."""
        self._open: dict[str, dict[EquivalenceClass, None]] = {}
        self._closed_for_capacity: dict[
            Product | None, dict[EquivalenceClass, None]
        ] = {}
        self._closed_for_quota: dict[EquivalenceClass, None] = {}
        self.awaiting_pods: dict[EquivalenceClass, None] = {}
        """Classes that are not open, whose jobs may wait for pods that come."""
        self._top: dict[str, int] = {}
        """No job of a queue has a higher priority."""
        self.tried: dict[str, set[EquivalenceClass]] = {}
        """Classes of a queue that were tried since all open ones were."""
        self._serial = 0
        self.n_opened = 0
        """How often a class was opened."""
        self.since = WaitingSince(self.by_job)
        """Since when jobs have waited."""

    def __len__(self) -> int:
        return len(self.by_job)

    def __contains__(self, name: str) -> bool:
        return name in self.by_job

    def __iter__(self) -> Iterator[JobState]:
        """Every pending job, class by class."""
        return (
            job_state for job_class in self._classes.values() for job_state in job_class
        )

    def classes_in(self, queue: str) -> list[EquivalenceClass]:
        """The classes of *queue*."""
        return list(self._in_queue.get(queue, ()))

    def add(self, job_state: JobState, key: JobKey) -> EquivalenceClass:
        """A job begins to wait; a new class is open."""
        job = job_state.job
        alone = job_state.placements or job.previous is not None
        facts = job_state.facts
        scheduling_key = (
            facts.scheduling_key if self.by_run_time else facts.key_without_run_time
        )
        if alone:
            scheduling_key = replace(scheduling_key, name=job.name)
        job_class = self._classes.get(scheduling_key)
        is_new = job_class is None
        if job_class is None:
            job_class = self._classes[scheduling_key] = EquivalenceClass(scheduling_key)
            self._in_queue.setdefault(job.queue, {})[job_class] = None
            self._reopen([job_class])
        self._serial += 1
        job_class.push(key, self._serial, job_state)
        self.by_job[job.name] = job_class
        top = self._top.get(job.queue, job.priority)
        self._top[job.queue] = max(job.priority, top)
        if job_state.phase is not Phase.RUNNING or job_state.below_min_available:
            self.since.add(job_state, self._serial)
        if not (is_new or self.is_open(job_class)):
            may_backfill = not self.by_run_time and longest_run(job) is not None
            if may_backfill or job_class.first_job is job_state:
                self._remove_from_closed(job_class)
                self._reopen([job_class])  # others may give way to it
        return job_class

    def remove(self, name: str) -> bool:
        """A job waits no longer; whether it did."""
        job_class = self.by_job.pop(name, None)
        if job_class is None:
            return False
        if job_class.remove(name):
            del self._classes[job_class.scheduling_key]
            self._remove_from_open(job_class)
            self._remove_from_closed(job_class)
            self._leave_queue(job_class)
        return True

    def _leave_queue(self, job_class: EquivalenceClass) -> None:
        """*job_class* is empty; a queue without classes is not kept."""
        queue = job_class.scheduling_key.queue
        self.tried.get(queue, set()).discard(job_class)
        del self._in_queue[queue][job_class]
        if not self._in_queue[queue]:
            del self._in_queue[queue]
            self._open.pop(queue, None)
            self.since.forget(queue)
            self._top.pop(queue, None)
            self.tried.pop(queue, None)

    def _remove_from_closed(self, job_class: EquivalenceClass) -> None:
        """*job_class* is not closed."""
        for closed in self._closed_for_capacity.values():
            closed.pop(job_class, None)
        self._closed_for_quota.pop(job_class, None)
        self.awaiting_pods.pop(job_class, None)
        job_class.searched.clear()

    @property
    def classes(self) -> Iterable[EquivalenceClass]:
        """Every class, open or not."""
        return self._classes.values()

    @property
    def queues(self) -> list[str]:
        """The queues with open classes."""
        return [name for name, classes in self._open.items() if classes]

    def is_open(self, job_class: EquivalenceClass) -> bool:
        """Whether *job_class* is open; an empty one is not."""
        return job_class in self._open.get(job_class.scheduling_key.queue, ())

    def open_classes(self, queue: str) -> list[tuple[JobKey, int, EquivalenceClass]]:
        """The open classes of *queue* as a heap by the job in front."""
        return heap_of(self._open.get(queue, ()))

    def first_open(self, queue: str) -> EquivalenceClass | None:
        """The open class of *queue* whose first job is next."""
        classes = self._open.get(queue, ())
        return min(classes, key=lambda job_class: job_class.first_key, default=None)

    def close_for_capacity(
        self, job_class: EquivalenceClass, why: Waiting | None = None
    ) -> None:
        """No job in *job_class* finds room until something of its product is free."""
        self._remove_from_open(job_class)
        job_class.why = why
        self._closed_for_capacity.setdefault(job_class.product, {})[job_class] = None
        if job_class.has_pod_affinity:
            self.awaiting_pods[job_class] = None

    def close_for_quota(self, job_class: EquivalenceClass, why: QueueReason) -> None:
        """No job in *job_class* may start until the usage of queues has changed."""
        self._remove_from_open(job_class)
        job_class.why = why
        self._closed_for_quota[job_class] = None
        if job_class.has_pod_affinity:
            self.awaiting_pods[job_class] = None

    def _remove_from_open(self, job_class: EquivalenceClass) -> None:
        self._open.get(job_class.scheduling_key.queue, {}).pop(job_class, None)

    def capacity_freed(self, products: Iterable[Product]) -> None:
        """Something of *products* is free that was not."""
        for product in (None, *products):
            self._reopen(self._closed_for_capacity.pop(product, {}))

    def pods_started(self) -> None:
        """Pods started, which jobs with unmet pod affinity may have waited for."""
        waiting, self.awaiting_pods = self.awaiting_pods, {}
        for job_class in waiting:
            self._remove_from_closed(job_class)
        self._reopen(waiting)

    def retry_other_queues(self, queues: Collection[str]) -> None:
        """More is requested in *queues*: jobs of others may take back from them."""
        only = next(iter(queues)) if len(queues) == 1 else None
        for job_class in [
            job_class
            for classes in self._closed_for_capacity.values()
            for job_class in classes
        ]:
            if job_class.scheduling_key.queue != only:
                self._remove_from_closed(job_class)
                self._reopen([job_class])

    def closed_above(self, queue: str, priority: int) -> list[EquivalenceClass]:
        """The classes of *queue* that are not open, of jobs of a higher *priority*."""
        if self._top.get(queue, priority) <= priority:
            return []
        return [
            job_class
            for job_class in self._in_queue[queue]
            if not self.is_open(job_class)
            and job_class.first_job.job.priority > priority
        ]

    def usage_changed(self) -> None:
        """Queues use more or less than before."""
        closed, self._closed_for_quota = self._closed_for_quota, {}
        self._reopen(closed)

    def everything_changed(self) -> None:
        """Look at every class again."""
        closed, self._closed_for_capacity = self._closed_for_capacity, {}
        for classes in closed.values():
            self._reopen(classes)
        self.usage_changed()

    def _reopen(self, classes: Iterable[EquivalenceClass]) -> None:
        for job_class in classes:
            self._open.setdefault(job_class.scheduling_key.queue, {})[job_class] = None
            self.n_opened += 1


class UnadmittedQueue(PendingQueue):
    """Jobs that are not admitted: their running times decide nothing about that."""

    by_run_time = False


def heap_of(
    classes: Iterable[EquivalenceClass],
) -> list[tuple[JobKey, int, EquivalenceClass]]:
    """Classes that are not empty as a heap by the job in front."""
    heap = [
        (job_class.first_key, number, job_class)
        for number, job_class in enumerate(classes)
    ]
    heapify(heap)
    return heap
