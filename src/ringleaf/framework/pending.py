"""Pending jobs: to be admitted, waiting for chips, or backing off."""

from math import ceil

from ringleaf.framework.budget import VictimSearchState
from ringleaf.framework.changes import PLANNING, Change, Changes, Memo
from ringleaf.framework.framework import Framework
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.pending_queue import (
    EquivalenceClass,
    JobKey,
    PendingQueue,
    UnadmittedQueue,
)
from ringleaf.framework.pods_ready import PodsReadyWatch
from ringleaf.framework.reasons import PendingCause, QueueReason
from ringleaf.framework.repairs import Repairs
from ringleaf.framework.reports import Reports
from ringleaf.framework.state import SchedulerState


class PendingJobs:
    """Every job that lacks pods, in the queue where it waits."""

    def __init__(
        self,
        framework: Framework,
        changes: Changes,
        repairs: Repairs,
        pods_ready: PodsReadyWatch,
        *,
        reports: Reports,
        victim_search: VictimSearchState,
    ) -> None:
        self._framework, self._repairs, self._pods_ready = (
            framework,
            repairs,
            pods_ready,
        )
        self._reports, self._victim_search = reports, victim_search
        self.unadmitted = UnadmittedQueue()
        """Jobs that are not admitted yet."""
        self.just_arrived: dict[str, JobState] = {}
        """Of those, the ones that have just arrived and are in no class yet."""
        self.admitted = PendingQueue()
        """Jobs that are admitted and wait for chips, and running ones short of pods."""
        self.best_effort = PendingQueue()
        """Jobs that are admitted and request nothing, neither chips nor resources."""
        self.rejected: list[EquivalenceClass] = []
        """Classes whose first job was not admitted in this cycle."""
        self.none_overdue: Memo[str] = Memo(changes, *PLANNING)
        """Queues without a job to reserve for, and until when."""
        self._satisfied = SatisfiedQueues(framework.state, changes, self.admitted)

    @property
    def lists(self) -> tuple[PendingQueue, PendingQueue, PendingQueue]:
        """All lists of classes."""
        return self.unadmitted, self.admitted, self.best_effort

    def add(self, job_state: JobState) -> None:
        """A job is pending: it waits to be admitted, or for chips."""
        framework = self._framework
        needs_admission = framework.has_enqueue or not framework.has_actions
        if job_state.phase is Phase.PENDING and not needs_admission:
            self.admit(job_state)
        if job_state.job.podless and job_state.phase is not Phase.PENDING:
            return
        not_before = self._pods_ready.not_before(job_state.job.name)
        if framework.has_actions and not_before > self._framework.state.now:
            self._back_off(job_state, not_before)
            return
        self._list_of(job_state).add(job_state, self.key_of(job_state))
        due = job_state.waiting_since + framework.conf.reservation.after_s
        self.none_overdue.shorten(job_state.job.queue, due)
        if not job_state.history.reported and not job_state.placements:
            self._reports.unreported[job_state.job.name] = job_state

    def _back_off(self, job_state: JobState, not_before: float) -> None:
        """A job that did not run waits for its time to come."""
        self._pods_ready.backoff[job_state.job.name] = job_state
        again_s = ceil(not_before - self._framework.state.now)
        why = QueueReason(PendingCause.BACKOFF, retry_s=again_s)
        self._reports.report_pending(job_state, why)

    def admit(self, job_state: JobState) -> None:
        """A job is admitted."""
        job_state.history.admitted_early = False
        self._framework.state.set_phase(job_state, Phase.INQUEUE)
        self._reports.admitted.append(job_state.job.name)

    def remove(self, name: str) -> None:
        """A job is not pending any more."""
        self.just_arrived.pop(name, None)
        self._pods_ready.backoff.pop(name, None)
        self.leave_class(name)

    def leave_class(self, name: str) -> bool:
        """A job leaves its class, if it is in one; whether it was."""
        return True in [pending_queue.remove(name) for pending_queue in self.lists]

    def key_of(self, job_state: JobState) -> JobKey:
        """Its place in its queue: first jobs that lost pods they cannot do without."""
        return (
            not self.goes_first(job_state),
            *self._framework.votes.job_key(job_state),
        )

    def goes_first(self, job_state: JobState) -> bool:
        """Whether a job that ran lacks pods it cannot do without."""
        if job_state.placements and job_state.below_min_available:
            return True
        return job_state.job.name in self._repairs.open

    def _list_of(self, job_state: JobState) -> PendingQueue:
        if job_state.phase is Phase.PENDING:
            return self.unadmitted
        return self.best_effort if not job_state.facts.total else self.admitted

    # Jobs that were tried and found no place.

    def pass_over(self, queue: str) -> None:
        """*queue* has its share; no job in it is tried, and the first may evict.

        A job in it that has just lost pods is tried in the next cycle.
        """
        job_class = self.admitted.first_open(queue)
        if job_class is None or self.goes_first(job_class.first_job):
            return
        self._satisfied.add(queue, job_class)
        self._victim_search.pass_over(job_class)
        why = QueueReason(PendingCause.SHARE_USED, queue)
        self._reports.report_pending(job_class.first_job, why)

    def is_satisfied(self, queue: str) -> bool:
        """Whether *queue* had its share, and nothing has changed since.

        Then it is passed over again: its first job may still find victims.
        """
        job_class = self._satisfied.job_class(queue)
        if job_class is None:
            return False
        self._victim_search.pass_over(job_class)
        return True

    def reject(self, job_class: EquivalenceClass, why: QueueReason) -> None:
        """No job of *job_class* is admitted; the first may still fit."""
        self.unadmitted.close_for_quota(job_class, why)
        self.rejected.append(job_class)
        self._victim_search.fail(job_class)

    def report_rejected(self) -> None:
        """Report why rejected jobs are pending."""
        for job_class in self.rejected:
            if job_class and job_class.why is not None:
                self._reports.report_pending(job_class.first_job, job_class.why)
        self.rejected = []

    def report_unreported(self) -> None:
        """Report why jobs are pending that wait behind others."""
        for name, job_state in self._reports.unreported.items():
            if job_state.history.reported or job_state.placements:
                continue
            pending_queue = self._list_of(job_state)
            if name not in pending_queue:
                continue
            why = pending_queue.by_job[name].why
            others = QueueReason(PendingCause.BEHIND, job_state.job.queue)
            self._reports.report_pending(job_state, why or others, behind=not why)
        self._reports.unreported = {}


class SatisfiedQueues:
    """Queues that had their share, until usage changes, each with its first class."""

    def __init__(
        self, state: SchedulerState, changes: Changes, waiting: PendingQueue
    ) -> None:
        self._state, self._changes, self._waiting = state, changes, waiting
        self._known: dict[str, EquivalenceClass] = {}
        self._known_at: tuple[int, ...] = ()

    @property
    def _up_to_date(self) -> dict[str, EquivalenceClass]:
        rules = self._changes.generation(Change.RULES_CHANGED)
        now = self._state.version, rules, self._waiting.n_opened
        if self._known_at != now:
            self._known_at, self._known = now, {}
        return self._known

    def add(self, queue: str, job_class: EquivalenceClass) -> None:
        """*queue* has its share now; *job_class* would be next."""
        self._up_to_date[queue] = job_class

    def job_class(self, queue: str) -> EquivalenceClass | None:
        """The class that is passed over because *queue* has its share; None if not."""
        return self._up_to_date.get(queue) if queue in self._known else None
