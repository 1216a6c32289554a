"""How many pods of a job its queue lets run, and why it lets fewer.

What other jobs of the queue have reserved, and what those need that are repaired, is
left to them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from math import inf

from ringleaf.framework.framework import Framework
from ringleaf.framework.job_state import JobState, pod_amounts
from ringleaf.framework.reasons import PendingCause, QueueReason, Shortage
from ringleaf.framework.repairs import Repairs
from ringleaf.framework.reservations import Reservations
from ringleaf.framework.state import SchedulerState
from ringleaf.model.amounts import Amounts, add, plus, scaled
from ringleaf.model.job import Job
from ringleaf.model.queue import Queue


class Quota:
    """What queues let their jobs use."""

    def __init__(
        self,
        state: SchedulerState,
        framework: Framework,
        reservations: Reservations,
        repairs: Repairs,
    ) -> None:
        self._state, self._framework = state, framework
        self._reservations, self._repairs = reservations, repairs
        self._everywhere: tuple[int, dict[str, int], dict[str, int]] = (-1, {}, {})
        """What all queues use and keep for admitted jobs, and of which state."""

    def limit(self, job_state: JobState, *, ignore_share: bool = False) -> int | None:
        """How many pods of a job may run; None when too few to start.

        With *ignore_share* the job is limited by the queue's capability, not by its
        current share: two queues that each wait for the whole cluster would wait
        forever. Set for jobs that lost pods they need, and for reservations beyond the
        share of a queue.
        """
        job = job_state.job
        queue = self._state.queues.get(job.queue)
        if queue is None or not queue.is_open:
            return None
        allowed = self._allowance(job_state, queue, ignore_share=ignore_share)
        held = len(job_state.placements)
        if not held and allowed(job_state.facts.total):
            return job_state.facts.n_pods - len(job_state.facts.finished)
        asks = list(_asks_of(job, {*job_state.missing}))
        if held and allowed(_sum(asks)):
            return held + len(asks)
        low, high = max(1, job_state.facts.effective_min - job_state.ready), len(asks)
        if low >= high or not allowed(_sum(asks[:low])):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if allowed(_sum(asks[:middle])):
                low = middle
            else:
                high = middle
        return held + low

    def _allowance(
        self, job_state: JobState, queue: Queue, *, ignore_share: bool
    ) -> Callable[[Amounts], bool]:
        """Whether a job may use so much more.

        What is promised to jobs for which pods are terminating counts against the share
        of the queue, and everything that other jobs need against its capability.
        """
        promised, reserved = self._kept_for_others(job_state)

        def allowed(amounts: Amounts) -> bool:
            if reserved and not _below(
                queue.capability,
                self._state.queue_usage[queue.name].allocated,
                plus(amounts, reserved),
            ):
                return False
            if ignore_share:
                return self._is_capable(queue, amounts)
            asked = plus(amounts, promised) if promised else amounts
            return self._framework.votes.allocatable(queue, asked)

        return allowed

    def _kept_for_others(
        self, job_state: JobState
    ) -> tuple[dict[str, int], dict[str, int]]:
        """What other jobs of the queue were promised, and what they need in all.

        What blockers of the same queue will release is subtracted.
        """
        if not (self._reservations.by_job or self._repairs.open):
            return {}, {}
        promised = self._reservations.promised_to_others(job_state)
        reserved = dict(promised)
        if self._state.queues[job_state.job.queue].capability:
            for reservation in self._reservations.aged_of_others(job_state):
                add(reserved, reservation.lacks)
        for name, repair in self._repairs.open.items():
            if name == job_state.job.name or repair.job is None:
                continue
            if repair.job.queue == job_state.job.queue:
                lacks = repair.missing_pods(self._state.job_states.get(name))
                add(reserved, _sum(_asks_of(repair.job, lacks)))
        return promised, reserved

    def _is_capable(self, queue: Queue, amounts: Amounts) -> bool:
        """Whether *queue* may ever use *amounts* more than it does."""
        state = self._state
        used = state.queue_usage[queue.name].allocated
        kept: dict[str, int] = {}
        for other in state.queues.values():
            if other.name != queue.name:
                add(kept, other.guarantee)
        total, most = state.total, queue.capability
        rest = inf if state.unnamed is None else state.unnamed
        return all(
            used.get(name, 0) + amount <= most.get(name, inf)
            and used.get(name, 0) + amount <= total.get(name, rest) - kept.get(name, 0)
            for name, amount in amounts.items()
        )

    # Why a job may not.

    def why_closed(self, name: str) -> QueueReason | None:
        """Why no job of the queue *name* starts; None if some do."""
        queue = self._state.queues.get(name)
        if queue is None:
            return QueueReason(PendingCause.NO_QUEUE, name)
        return None if queue.is_open else QueueReason(PendingCause.QUEUE_CLOSED, name)

    def why_no_room(self, job_state: JobState) -> QueueReason:
        """Why a job may not start now: its queue is closed, or has no room."""
        name = job_state.job.queue
        if (closed := self.why_closed(name)) is not None:
            return closed
        queue, account = self._state.queues[name], self._state.queue_usage[name]
        low = max(1, job_state.facts.effective_min - job_state.ready)
        wanted = _sum([*_asks_of(job_state.job, {*job_state.missing})][:low])
        promised, reserved = self._kept_for_others(job_state)
        limits = self._framework.votes.queue_limits(queue)
        found = _shortage(job_state.job, account.allocated, promised, limits, wanted)
        if found is None:
            most, used = queue.capability, account.allocated
            found = _shortage(job_state.job, used, reserved, most, wanted)
        return QueueReason(PendingCause.NO_ROOM, name, found)

    def why_not_admitted(self, job_state: JobState) -> QueueReason:
        """Why a job is not admitted: its queue is closed or full, or the cluster is.

        A queue that may use all there is, is full when the cluster is: by what runs,
        and by what jobs that were admitted before will use.
        """
        name = job_state.job.queue
        if (closed := self.why_closed(name)) is not None:
            return closed
        queues, account = self._state.queues, self._state.queue_usage[name]
        limited = queues[name].capability or any(
            queue.guarantee for queue in queues.values() if queue.name != name
        )
        if not limited:
            found = self._cluster_shortage(job_state)
            return QueueReason(PendingCause.CLUSTER_FULL, name, found)
        kept = plus(account.inqueue, scaled(account.elastic, -1))
        limits = self._framework.votes.admission_limits(queues[name])
        used, wanted = account.allocated, job_state.facts.min_resources
        found = _shortage(job_state.job, used, kept, limits, wanted)
        return QueueReason(PendingCause.NOT_ADMITTED, name, found)

    def _cluster_shortage(self, job_state: JobState) -> Shortage | None:
        """The first resource of which all other jobs leave less than a job needs."""
        state = self._state
        if self._everywhere[0] != state.version:
            used: dict[str, int] = {}
            kept: dict[str, int] = {}
            for account in state.queue_usage.values():
                add(used, account.allocated)
                add(kept, account.inqueue)
            self._everywhere = state.version, used, kept
        _version, used, kept = self._everywhere
        job, wanted = job_state.job, job_state.facts.min_resources
        return _shortage(job, used, kept, state.total, wanted)

    def up_to_date(self, why: QueueReason, job_state: JobState) -> QueueReason:
        """*why* a job is pending, with the figures of now."""
        ways = {
            PendingCause.NO_ROOM: self.why_no_room,
            PendingCause.NOT_ADMITTED: self.why_not_admitted,
            PendingCause.CLUSTER_FULL: self.why_not_admitted,
        }
        now = ways[why.cause](job_state) if why.cause in ways else why
        return now if now.cause is why.cause else why


def _shortage(
    job: Job, used: Amounts, kept: Amounts, limits: Amounts, wanted: Amounts
) -> Shortage | None:
    """The first resource of which *limits* leave less than is *wanted*."""
    for name, amount in wanted.items():
        limit, taken = limits.get(name, inf), used.get(name, 0) + kept.get(name, 0)
        if amount and taken + amount > limit:
            own, others = used.get(name, 0), kept.get(name, 0)
            if name != job.product.resource:
                return Shortage(name, own, others, int(limit), amount)
            whole = int(limit) // 1000 * 1000
            return Shortage("chips", own, others, whole, amount)
    return None


def _below(most: Amounts, used: Amounts, amounts: Amounts) -> bool:
    """Whether *amounts* fit between what is *used* and the *most*."""
    return all(
        used.get(name, 0) + amounts.get(name, 0) <= limit
        for name, limit in most.items()
        if amounts.get(name, 0)
    )


def _asks_of(job: Job, replicas: Collection[int]) -> Iterator[dict[str, int]]:
    """What each of these pods requests."""
    for role, own in job.role_ranks:
        for replica in own:
            if replica in replicas:
                yield pod_amounts(job, role)


def _sum(asks: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for ask in asks:
        add(total, ask)
    return total
