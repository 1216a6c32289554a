"""Queues, the configuration and the idle budget, when they change."""

from ringleaf.actions.start import give_up
from ringleaf.engine.event import (
    ConfChanged,
    IdleAccountKnown,
    JobArrived,
    QueueChanged,
    QueueGone,
)
from ringleaf.engine.job_events import JobEvents
from ringleaf.engine.lifecycle import JobLifecycle
from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.policies.validation import validate


class RuleEvents:
    """What is done after a change of rules."""

    def __init__(self, ctx: Context, lifecycle: JobLifecycle, jobs: JobEvents) -> None:
        self._ctx, self._state = ctx, ctx.state
        self._lifecycle, self._jobs = lifecycle, jobs

    def queue_changed(self, event: QueueChanged) -> None:
        """A queue is new or changed."""
        self._state.put_queue(event.queue)
        self._accounts_are_new()

    def queue_gone(self, event: QueueGone) -> None:
        """A queue is gone; its jobs stay pending."""
        self._state.remove_queue(event.name)
        self._accounts_are_new()

    def idle_account_known(self, event: IdleAccountKnown) -> None:
        """Restore what reservations kept idle."""
        self._ctx.reservations.idle.budget.restore(event.account)

    def _accounts_are_new(self) -> None:
        self._ctx.wakeups.victims_changed()
        self._ctx.wakeups.note(Change.RULES_CHANGED)

    def conf_changed(self, event: ConfChanged) -> None:
        """Use a new configuration; jobs get its defaults, and are queued again."""
        ctx, conf = self._ctx, event.conf
        before = ctx.framework.conf
        same_rules = (conf.settings, conf.tiers) == (before.settings, before.tiers)
        same_rules &= conf.reservation.learns == before.reservation.learns
        invalid = list(self._jobs.invalid)
        if not ctx.framework.has_actions:
            self._jobs.invalid.clear()  # a standby reported nothing
        ctx.victim_search.resume = None
        ctx.victim_search.begin(resumes=False)
        ctx.framework.configure(conf)
        ctx.wakeups.note(Change.RULES_CHANGED)
        for reservation in ctx.reservations:
            give_up(ctx, reservation)
        for job_state in list(self._state.job_states.values()):
            if same_rules and self._is_complete(job_state):
                continue
            held = job_state.placements.values()
            job = self._jobs.effective_job(
                self._jobs.submitted[job_state.job.name], held
            )
            ctx.pending.remove(job.name)
            never = None if job_state.placements else validate(job, conf.settings)
            if never is not None:
                self._jobs.reject_invalid(job_state, never)
                continue
            if job.recovery != job_state.job.recovery:
                ctx.repairs.suspects[job.name] = None
            if job != job_state.job:
                self._state.respec(job_state, job)
            self._lifecycle.requeue_if_incomplete(job_state)
        for name in invalid:
            self._jobs.job_arrived(JobArrived(self._jobs.submitted.pop(name)))
        ctx.wakeups.note(Change.RULES_CHANGED)

    def _is_complete(self, job_state: JobState) -> bool:
        """Whether a job runs with all its pods, and nothing is wrong with it."""
        repaired = job_state.job.name in self._ctx.repairs.open
        runs = job_state.phase is Phase.RUNNING and not job_state.terminating
        return runs and not repaired and not job_state.missing
