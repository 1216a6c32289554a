"""What is reported of jobs, each thing once."""

from msgspec.structs import replace

from ringleaf.framework.framework import Framework
from ringleaf.framework.instruction import Instruction, Report, Verdict
from ringleaf.framework.job_state import JobState
from ringleaf.framework.reasons import PASSING, PendingCause, QueueReason
from ringleaf.framework.state import SchedulerState
from ringleaf.model.decision import Waiting
from ringleaf.policies.validation import warnings_of


class Reports:
    """The instructions of a cycle, and which reports of jobs are news."""

    def __init__(self, state: SchedulerState, framework: Framework) -> None:
        self._state, self._framework = state, framework
        self.instructions: list[Instruction] = []
        """What is to be done, in order."""
        self.unreported: dict[str, JobState] = {}
        """Pending jobs of which no reason was reported yet."""
        self.admitted: list[str] = []
        """Jobs that were admitted in this cycle."""

    def emit(self, instruction: Instruction) -> None:
        """Add *instruction* to what the engine returns."""
        self.instructions.append(instruction)

    def report(
        self,
        job_state: JobState,
        verdict: Verdict,
        message: str,
        hint: str = "",
        *,
        behind: bool = False,
        key: str = "",
    ) -> None:
        """Report something of a job, if it is news; *key* is what makes it so."""
        if job_state.history.is_news(key or message):
            job_state.history.why = None
            waits = verdict is Verdict.WAITING
            self.emit(
                Report(
                    job_state.job.name,
                    verdict,
                    message,
                    hint,
                    behind=behind,
                    warnings=self._warnings(job_state) if waits else (),
                )
            )

    def report_pending(
        self, job_state: JobState, why: Waiting | QueueReason, *, behind: bool = False
    ) -> None:
        """Report why a job is pending, unless only figures have changed."""
        job = job_state.job
        if isinstance(why, QueueReason):
            why = self._or_impossible(job_state, why)
            if why.is_like(job_state.history.why):
                return
            begin = f"job {job.name!r} waits: needs {job.wanted}; "
            behind = behind or why.cause is PendingCause.CLUSTER_FULL
            message, key = begin + why.words, begin + why.plain.words
            self.report(job_state, Verdict.WAITING, message, behind=behind, key=key)
            job_state.history.why = why
            return
        found = replace(why, job=job)
        job_state.history.why = None
        if job_state.history.is_news(found.message):
            self.emit(
                Report(
                    job.name,
                    Verdict.WAITING,
                    found.message,
                    found.hint,
                    found.missing,
                    found.reasons,
                    warnings=self._warnings(job_state),
                )
            )

    def _or_impossible(self, job_state: JobState, why: QueueReason) -> QueueReason:
        """*why* a job is pending, or that it could not start on an empty cluster."""
        if why.cause not in PASSING or job_state.placements:
            return why
        key = job_state.facts.key_without_run_time
        never = self._framework.session.impossible(job_state.job, key)
        if never is None:
            return why
        return QueueReason(PendingCause.IMPOSSIBLE, why.queue, detail=never.words)

    def _warnings(self, job_state: JobState) -> tuple[str, ...]:
        return warnings_of(job_state.job, self._state.settings)
