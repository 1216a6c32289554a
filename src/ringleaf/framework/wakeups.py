"""Which pending jobs are tried again, after what has changed.

A pending job is not tried before something has changed for it. Every method says what
has; the change is noted, so that memos that depend on it are forgotten, and the classes
are opened whose jobs may do better now.
"""

from collections.abc import Collection, Iterable

from ringleaf.framework.budget import MovedLately, VictimSearchState
from ringleaf.framework.changes import Change, Changes
from ringleaf.framework.framework import Framework
from ringleaf.framework.job_state import JobState
from ringleaf.framework.pending import PendingJobs
from ringleaf.framework.reservations import Reservations
from ringleaf.model.job import Job
from ringleaf.model.product import Product


class Wakeups:
    """What changes mean for pending jobs."""

    def __init__(
        self,
        framework: Framework,
        changes: Changes,
        pending: PendingJobs,
        reservations: Reservations,
        victim_search: VictimSearchState,
    ) -> None:
        self._framework, self.changes = framework, changes
        self._pending, self._reservations = pending, reservations
        self._lists = pending.lists
        self._victim_search = victim_search
        self._requested_more: set[str] = set()
        """Queues in which more is requested than in the last cycle."""
        self.moved = MovedLately(changes)
        """The moves of the last hour, and when to look for others."""
        self._retried_at = 0
        """How many changes had happened when queues were last retried."""

    def note(self, *changes: Change) -> None:
        """These changes happen now."""
        self.changes.note(*changes)

    def capacity_freed(
        self,
        products: Iterable[Product],
        nodes: Collection[str] | None = None,
        job: str = "",
    ) -> None:
        """Something is free that was not, on *nodes* or anywhere; *job* held it."""
        self.changes.note(Change.CAPACITY_FREED)
        listed = list(products)
        self._pending.admitted.capacity_freed(listed)
        self._pending.best_effort.capacity_freed(listed)
        self._reservations.capacity_freed(nodes, job)

    def pods_started(self) -> None:
        """Pods are there that were not: wake jobs with pod affinity."""
        for pending_queue in self._lists:
            if pending_queue.awaiting_pods:
                pending_queue.pods_started()
                self.changes.note(Change.USAGE_CHANGED)
        self.changes.note(Change.PODS_STARTED)

    def victims_appeared(self, job: Job) -> None:
        """Pods of *job* run where no pending job could start; jobs may evict them.

        Not called for pods that start on free chips: a job that found too few victims
        beside those chips finds too few beside these pods.
        """
        self.pods_started()
        if self._framework.preempts:
            self._victim_search.outranked_now(job)

    def victims_changed(self) -> None:
        """Jobs may be evicted that could not be: search again for every job."""
        if self._framework.evicts:
            self.changes.note(Change.VICTIMS_CHANGED)
            self._pending.admitted.everything_changed()
            self._pending.unadmitted.everything_changed()

    def shares_changed(self, queue: str) -> None:
        """More or less is requested in *queue*: others may exceed their shares now."""
        if self._framework.reclaims:
            self.changes.note(Change.VICTIMS_CHANGED)
            self._requested_more.add(queue)

    def retry_other_queues(self) -> None:
        """Jobs may take back from other queues in which more is requested."""
        if self._requested_more:
            for pending_queue in (self._pending.admitted, self._pending.unadmitted):
                pending_queue.retry_other_queues(self._requested_more)
            self._requested_more.clear()

    def replace_spec(self, job_state: JobState, job: Job) -> None:
        """Replace the spec of a job; it waits as before, in its class or in none."""
        waits = self._pending.leave_class(job.name)
        self._framework.state.respec(job_state, job)
        self._reservations.job_changed(job_state)
        if waits:
            self._pending.add(job_state)

    @property
    def admission_changed(self) -> bool:
        """Whether queues may admit or start more than when they were last retried."""
        return self._retried_at != self.changes.n_admission

    def retry_queues(self) -> None:
        """Retry the jobs that their queues could not admit or start."""
        self._retried_at = self.changes.n_admission
        for pending_queue in self._lists:
            pending_queue.usage_changed()
