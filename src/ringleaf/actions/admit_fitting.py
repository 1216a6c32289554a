"""Rejected jobs that can start at once are admitted.

``enqueue`` rejects jobs for what admitted jobs will use. But an admitted job that
found no places cannot use what is free now: one gang that waits for its last node would
keep all jobs from all other chips.
"""

from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from math import inf

from ringleaf.actions.enqueue import admit_job, may_admit
from ringleaf.actions.start import start
from ringleaf.framework.budget import COST_REFUSED, COST_TRIED
from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState
from ringleaf.framework.pending_queue import EquivalenceClass, JobKey
from ringleaf.framework.reservation import longest_run
from ringleaf.framework.state import free_chips
from ringleaf.model.job import Job


def admit_fitting(cycle: Cycle) -> bool:
    """Admit rejected jobs that fit, queue by queue, in the order of jobs.

    Whether all of them were looked at in this cycle.
    """
    pending = cycle.pending
    admission, began = FittingAdmission(cycle), cycle.slice.cost
    queues: dict[str, list[EquivalenceClass]] = {}
    for job_class in filter(None, pending.rejected):
        queues.setdefault(job_class.scheduling_key.queue, []).append(job_class)
    for classes in queues.values():
        heap = [
            (job_class.front[0], number, job_class, job_class.front[1], inf)
            for number, job_class in enumerate(classes)
        ]
        heapify(heap)
        while heap:
            if cycle.slice.cut_short():
                return False
            if not cycle.slice.allows_tries(cycle.slice.cost - began):
                cycle.slice.is_spent = True
                cycle.changes.note(Change.USAGE_CHANGED)  # the others come next
                return False
            key, number, job_class, job_state, most_s = heappop(heap)
            if not admission.admits(job_class, job_state):
                most_s = cycle.reservations.longest_backfill(job_state)
            following = _next_in(job_class, key, most_s)
            if following is not None:
                heappush(heap, (following[0], number, job_class, following[1], most_s))
    cycle.victim_search.failed = {
        job_class: None for job_class in cycle.victim_search.failed if job_class
    }
    return True


def _next_in(
    job_class: EquivalenceClass, key: JobKey, most_s: float
) -> tuple[JobKey, JobState] | None:
    """The next job of *job_class* behind *key* that runs no longer than *most_s*.

    Where no job of it was tried in vain, that is the first.
    """
    if not job_class or most_s == -inf:
        return None
    if most_s == inf:
        return job_class.front
    return job_class.first_after(key, partial(_ends_within, most_s))


def _ends_within(most_s: float, job_state: JobState) -> bool:
    lasts_s = longest_run(job_state.job)
    return lasts_s is not None and lasts_s <= most_s


class FittingAdmission:
    """One look at rejected jobs."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._vain: set[Job] = set()
        """What was asked in this look, and found no places."""
        self._free: dict[str, int] | None = None
        """The chips that are free, until a job starts."""
        waiting = cycle.pending.waiting
        self._stuck = {
            job_class for job_class in waiting.classes if not waiting.is_open(job_class)
        }
        """The classes of admitted jobs whose first job found no places."""

    def admits(self, job_class: EquivalenceClass, job_state: JobState) -> bool:
        """Whether a job of *job_class* was admitted."""
        self._cycle.slice.cost += COST_REFUSED
        if self._cycle.quota.closed(job_state.job.queue) is not None:
            return False
        if job_state.job.podless:
            return self._awaits(job_state)
        return self._starts(job_state, job_class)

    def _starts(self, job_state: JobState, job_class: EquivalenceClass) -> bool:
        """Whether a job was admitted and placed.

        All admitted jobs have been tried but those whose pods are being created: room
        is kept for these only.
        """
        cycle, job_states = self._cycle, self._cycle.view.job_states
        if not cycle.placer.may_fit(job_state) or self._is_vain(job_state):
            return False
        with cycle.view.promises(lambda name: job_states[name].job.podless):
            if not may_admit(cycle, job_state):
                return False
        if (
            self._has_its_share(job_state)
            or cycle.framework.votes.job_valid(job_state) is not None
        ):
            return False
        limit = cycle.quota.limit(job_state)
        cycle.slice.cost += COST_TRIED + job_state.facts.selecting
        found = (
            None
            if limit is None
            else cycle.placer.place(job_state, limit, reasons=False)
        )
        if not isinstance(found, tuple):
            if limit is not None and not job_class.has_pod_affinity:
                self._vain.add(job_state.facts.key_without_run_time)
            return False
        cycle.framework.votes.job_enqueued(job_state)
        cycle.pending.admit(job_state)
        start(cycle, job_state, found)
        self._free = None
        return True

    def _is_vain(self, job_state: JobState) -> bool:
        """Whether a job with the same request, but for its time, found no places."""
        known = job_state.facts.key_without_run_time in self._vain
        return known and not self._cycle.reservations.lent_to(job_state)

    def _awaits(self, job_state: JobState) -> bool:
        """Whether a job was admitted whose pods are created only after that.

        Its chips must be free beside those that other admitted jobs may still use.
        """
        cycle, least = self._cycle, job_state.facts.min_resources
        if self._free is None:
            self._free = free_chips(cycle.view.cluster)
        free = self._free
        asked = [name for name, amount in least.items() if amount and name in free]
        if any(least[name] > free[name] for name in asked):
            return False
        with cycle.view.promises(self._may_use_more) as promised:
            if not may_admit(cycle, job_state):
                return False
        if any(least[name] + promised.get(name, 0) > free[name] for name in asked):
            return False
        if self._has_its_share(job_state) or cycle.quota.limit(job_state) is None:
            return False
        cycle.pending.unadmitted.remove(job_state.job.name)
        admit_job(cycle, job_state)
        job_state.history.admitted_early = True
        return True

    def _has_its_share(self, job_state: JobState) -> bool:
        queue = self._cycle.view.queues[job_state.job.queue]
        return self._cycle.framework.votes.overused(queue)

    def _may_use_more(self, name: str) -> bool:
        """Whether an admitted job may take some of what is free now.

        Not a job that was admitted in its turn and found no places, or whose queue has
        its share.
        """
        waiting, job_state = (
            self._cycle.pending.waiting,
            self._cycle.view.job_states[name],
        )
        if job_state.job.queue in self._satisfied:
            return False
        stuck = name in waiting and waiting.class_of(name) in self._stuck
        return job_state.history.admitted_early or not stuck

    @cached_property
    def _satisfied(self) -> set[str]:
        """The queues that have their share."""
        queues, votes = self._cycle.view.queues.values(), self._cycle.framework.votes
        return {queue.name for queue in queues if votes.overused(queue)}
