"""Queues, the configuration and the idle budget, when they change."""

from ringleaf.actions.reserved import give_up
from ringleaf.engine.event import (
    ConfChanged,
    Handlers,
    IdleAccountKnown,
    JobArrived,
    QueueChanged,
    QueueGone,
)
from ringleaf.engine.job_events import JobEvents
from ringleaf.engine.lifecycle import JobLifecycle
from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.policies.validation import validate


class RuleEvents:
    """What is done after a change of rules."""

    def __init__(self, cycle: Cycle, lifecycle: JobLifecycle, jobs: JobEvents) -> None:
        self._cycle, self._state = cycle, cycle.view
        self._lifecycle, self._jobs = lifecycle, jobs

    @property
    def handlers(self) -> Handlers:
        """What is done after each kind of event."""
        return {
            QueueChanged: self._queue_changed,
            QueueGone: self._queue_gone,
            ConfChanged: self._conf_changed,
            IdleAccountKnown: self._idle_account_known,
        }

    def _queue_changed(self, event: QueueChanged) -> None:
        self._state.put_queue(event.queue)
        self._accounts_are_new()

    def _queue_gone(self, event: QueueGone) -> None:
        self._state.remove_queue(event.name)
        self._accounts_are_new()

    def _idle_account_known(self, event: IdleAccountKnown) -> None:
        self._cycle.reservations.idle.budget.restore(event.account)

    def _accounts_are_new(self) -> None:
        self._cycle.wakeups.victims_changed()
        self._cycle.changes.note(Change.RULES_CHANGED)

    def _conf_changed(self, event: ConfChanged) -> None:
        cycle, conf = self._cycle, event.conf
        before = cycle.framework.conf
        same_rules = (conf.settings, conf.tiers) == (before.settings, before.tiers)
        same_rules &= conf.reservation.learns == before.reservation.learns
        invalid = list(self._jobs.invalid)
        if not cycle.framework.decides:
            self._jobs.invalid.clear()  # a standby reported nothing
        cycle.victim_search.resume = None
        cycle.victim_search.begin(resumes=False)
        cycle.framework.configure(conf)
        cycle.changes.note(Change.RULES_CHANGED)
        for reservation in cycle.reservations:
            give_up(cycle, reservation)
        for job_state in list(self._state.job_states.values()):
            if same_rules and self._is_complete(job_state):
                continue
            held = job_state.placements.values()
            job = self._jobs.effective_job(
                self._jobs.submitted[job_state.job.name], held
            )
            cycle.pending.remove(job.name)
            never = None if job_state.placements else validate(job, conf.settings)
            if never is not None:
                self._jobs.reject_invalid(job_state, never)
                continue
            if job.recovery != job_state.job.recovery:
                cycle.failures.repairs.suspects[job.name] = None
            if job != job_state.job:
                self._state.respec(job_state, job)
            self._lifecycle.requeue_if_incomplete(job_state)
        for name in invalid:
            self._jobs.job_arrived(JobArrived(self._jobs.submitted.pop(name)))
        cycle.changes.note(Change.RULES_CHANGED)

    def _is_complete(self, job_state: JobState) -> bool:
        """Whether a job runs with all its pods, and nothing is wrong with it."""
        repaired = job_state.job.name in self._cycle.failures.repairs.open
        runs = job_state.phase is Phase.RUNNING and not job_state.terminating
        return runs and not repaired and not job_state.missing
