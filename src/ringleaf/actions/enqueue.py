"""Admit pending jobs, queue by queue, while no plugin objects.

A job that is admitted may be placed; one that is not costs its queue nothing. It may
still evict others, and get a reservation: a full queue is no reason to starve in it.

Where we differ from Volcano: a job that was rejected for what admitted jobs will use is
still admitted if it can start at once (``admit_fitting``). An admitted job that found
no places cannot use what is free now: one gang that waits for its last node would keep
all jobs from all other chips.
"""

from functools import cached_property, partial
from heapq import heapify, heappop, heappush
from math import inf

from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.actions.start import start
from ringleaf.framework.budget import COST_REFUSED, COST_TRIED
from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState
from ringleaf.framework.pending_queue import EquivalenceClass, JobKey
from ringleaf.framework.reservation import longest_run
from ringleaf.framework.state import free_chips
from ringleaf.model.job import Job


def enqueue(ctx: Context) -> None:
    """Admit jobs, in the order of queues and jobs."""
    _queue_new_jobs(ctx)
    if not ctx.pending.unadmitted.by_job:
        return
    turns = QueueIterator(ctx, ctx.pending.unadmitted)
    while (job_class := turns.next()) is not None:
        job_state = job_class.first_job
        job = job_state.job
        ctx.budget.cost += COST_REFUSED
        if may_admit(ctx, job_state):
            ctx.pending.unadmitted.remove(job.name)
            admit_job(ctx, job_state)
            continue
        ctx.pending.reject(job_class, ctx.quota.why_not_admitted(job_state))


def _queue_new_jobs(ctx: Context) -> None:
    """Queue new jobs by class; a single one that is admissible is admitted at once."""
    pending = ctx.pending
    just_arrived, pending.just_arrived = list(pending.just_arrived.values()), {}
    alone = len(just_arrived) == 1 and not pending.unadmitted.by_job
    if alone and may_admit(ctx, just_arrived[0]):
        admit_job(ctx, just_arrived[0])
        return
    for job_state in just_arrived:
        pending.add(job_state)


def may_admit(ctx: Context, job_state: JobState) -> bool:
    """Whether the queue of a job is open, and no plugin objects to it."""
    closed = ctx.quota.why_closed(job_state.job.queue)
    return closed is None and ctx.framework.votes.job_enqueueable(job_state)


def admit_job(ctx: Context, job_state: JobState) -> None:
    """A job is admitted, and waits for chips."""
    ctx.framework.votes.job_enqueued(job_state)
    ctx.pending.admit(job_state)
    ctx.pending.add(job_state)


def admit_fitting(ctx: Context) -> bool:
    """Admit rejected jobs that fit, queue by queue, in the order of jobs.

    Whether all of them were looked at in this cycle.
    """
    pending = ctx.pending
    admission, began = FittingAdmission(ctx), ctx.budget.cost
    queues: dict[str, list[EquivalenceClass]] = {}
    for job_class in filter(None, pending.rejected):
        queues.setdefault(job_class.scheduling_key.queue, []).append(job_class)
    for classes in queues.values():
        heap = [
            (job_class.first_key, number, job_class, job_class.first_job, inf)
            for number, job_class in enumerate(classes)
        ]
        heapify(heap)
        while heap:
            if ctx.budget.stop_binding():
                return False
            if not ctx.budget.allows_tries(ctx.budget.cost - began):
                ctx.budget.tries_exhausted = True
                ctx.wakeups.note(Change.USAGE_CHANGED)  # the others come next
                return False
            key, number, job_class, job_state, most_s = heappop(heap)
            if not admission.admits(job_class, job_state):
                most_s = ctx.reservations.longest_backfill(job_state)
            following = _next_in(job_class, key, most_s)
            if following is not None:
                heappush(heap, (following[0], number, job_class, following[1], most_s))
    ctx.victim_search.failed = {
        job_class: None for job_class in ctx.victim_search.failed if job_class
    }
    return True


def _next_in(
    job_class: EquivalenceClass, key: JobKey, most_s: float
) -> tuple[JobKey, JobState] | None:
    """The next job of *job_class* behind *key* that runs no longer than *most_s*.

    If no job of it failed, that is the first.
    """
    if not job_class or most_s == -inf:
        return None
    if most_s == inf:
        return job_class.first_key, job_class.first_job
    return job_class.first_after(key, partial(_ends_within, most_s))


def _ends_within(most_s: float, job_state: JobState) -> bool:
    lasts_s = longest_run(job_state.job)
    return lasts_s is not None and lasts_s <= most_s


class FittingAdmission:
    """One look at rejected jobs."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._vain: set[Job] = set()
        """What was asked in this look, and found no places."""
        self._free: dict[str, int] | None = None
        """The chips that are free, until a job starts."""
        waiting = ctx.pending.admitted
        self._stuck = {
            job_class for job_class in waiting.classes if not waiting.is_open(job_class)
        }
        """The classes of admitted jobs whose first job found no places."""

    def admits(self, job_class: EquivalenceClass, job_state: JobState) -> bool:
        """Whether a job of *job_class* was admitted."""
        self._ctx.budget.cost += COST_REFUSED
        if self._ctx.quota.why_closed(job_state.job.queue) is not None:
            return False
        if job_state.job.podless:
            return self._awaits(job_state)
        return self._starts(job_state, job_class)

    def _starts(self, job_state: JobState, job_class: EquivalenceClass) -> bool:
        """Whether a job was admitted and placed.

        All admitted jobs have been tried but those whose pods are being created: room
        is kept for these only.
        """
        ctx, job_states = self._ctx, self._ctx.state.job_states
        if not ctx.placer.may_fit(job_state) or self._is_vain(job_state):
            return False
        with ctx.state.counting_inqueue_of(lambda name: job_states[name].job.podless):
            if not may_admit(ctx, job_state):
                return False
        if (
            self._has_its_share(job_state)
            or ctx.framework.votes.job_valid(job_state) is not None
        ):
            return False
        limit = ctx.quota.limit(job_state)
        ctx.budget.cost += COST_TRIED + job_state.facts.filter_cost
        found = (
            None if limit is None else ctx.placer.place(job_state, limit, reasons=False)
        )
        if not isinstance(found, tuple):
            if limit is not None and not job_class.has_pod_affinity:
                self._vain.add(job_state.facts.key_without_run_time)
            return False
        ctx.framework.votes.job_enqueued(job_state)
        ctx.pending.admit(job_state)
        start(ctx, job_state, found)
        self._free = None
        return True

    def _is_vain(self, job_state: JobState) -> bool:
        """Whether a job with the same request, but for its time, found no places."""
        known = job_state.facts.key_without_run_time in self._vain
        return known and not self._ctx.reservations.lent_to(job_state)

    def _awaits(self, job_state: JobState) -> bool:
        """Whether a job was admitted whose pods are created only after that.

        Its chips must be free beside those that other admitted jobs may still use.
        """
        ctx, least = self._ctx, job_state.facts.min_resources
        if self._free is None:
            self._free = free_chips(ctx.state.cluster)
        free = self._free
        asked = [name for name, amount in least.items() if amount and name in free]
        if any(least[name] > free[name] for name in asked):
            return False
        with ctx.state.counting_inqueue_of(self._may_use_more) as promised:
            if not may_admit(ctx, job_state):
                return False
        if any(least[name] + promised.get(name, 0) > free[name] for name in asked):
            return False
        if self._has_its_share(job_state) or ctx.quota.limit(job_state) is None:
            return False
        ctx.pending.unadmitted.remove(job_state.job.name)
        admit_job(ctx, job_state)
        job_state.history.admitted_early = True
        return True

    def _has_its_share(self, job_state: JobState) -> bool:
        queue = self._ctx.state.queues[job_state.job.queue]
        return self._ctx.framework.votes.overused(queue)

    def _may_use_more(self, name: str) -> bool:
        """Whether an admitted job may take some of what is free now.

        Not a job that was admitted in its turn and found no places, or whose queue has
        its share.
        """
        waiting = self._ctx.pending.admitted
        job_state = self._ctx.state.job_states[name]
        if job_state.job.queue in self._satisfied:
            return False
        stuck = name in waiting and waiting.by_job[name] in self._stuck
        return job_state.history.admitted_early or not stuck

    @cached_property
    def _satisfied(self) -> set[str]:
        """The queues that have their share."""
        queues, votes = self._ctx.state.queues.values(), self._ctx.framework.votes
        return {queue.name for queue in queues if votes.overused(queue)}
