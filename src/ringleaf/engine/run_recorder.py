"""Running times: which runs count, and which jobs get a prediction."""

from msgspec.structs import replace

from ringleaf.engine.event import RunTimesKnown
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState
from ringleaf.framework.run_times import RunTimes
from ringleaf.model.fault import Cause
from ringleaf.model.job import Job


class RunRecorder:
    """Counts runs that ended by themselves, once each."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.run_times = RunTimes()

    def ended(self, job_state: JobState) -> None:
        """Count a run that ends now, from when the job started last.

        Its pods succeeded, failed or were deleted by others. One whose pods the
        scheduler asked to end since then, and one that is repaired, did not end by
        itself: it says nothing of how long such jobs occupy chips.
        """
        started, job = job_state.started, job_state.job
        if started is None or not self._learns or job_state.history.interrupted:
            return
        if not self._is_repaired(job):
            self.run_times.ended(job, max(0.0, self._ctx.state.now - started))

    def _is_repaired(self, job: Job) -> bool:
        """Whether a job is being repaired, or will be because of its faulty pods."""
        repairs = self._ctx.repairs
        left = job.recovery.retries - repairs.retries_used.get(job.name, 0)
        return job.name in repairs.open or any(
            each.cause is not Cause.POD or left > 0
            for each in repairs.pod_faults.get(job.name, {}).values()
        )

    def with_run_time(self, job: Job) -> Job:
        """*job* with a prediction, if it states no running time.

        A prediction stays while the engine knows the job, whatever ends in the
        meantime. A job that arrives again after it was gone, and any job after a
        restart, gets another one.
        """
        if not self._ctx.framework.conf.reservation.learns:
            return job if job.run_time is None else replace(job, run_time=None)
        if job.estimate_s is not None or job.run_time is not None:
            return job
        known = self._ctx.state.job_states.get(job.name)
        found = None if known is None else known.job.run_time
        found = found or self.run_times.predict(job)
        return job if found is None else replace(job, run_time=found)

    @property
    def _learns(self) -> bool:
        return self._ctx.framework.conf.reservation.learns

    def run_times_known(self, event: RunTimesKnown) -> None:
        """Predict the running times of jobs that arrived before this was known.

        It is kept while nothing is learnt, too: that may be turned on later.
        """
        self.run_times.restore(event.series)
        if not self._learns:
            return
        for job_state in [*self._ctx.state.job_states.values()]:
            job = self.with_run_time(job_state.job)
            if job is not job_state.job:
                self._ctx.wakeups.replace_spec(job_state, job)
