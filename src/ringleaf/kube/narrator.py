"""The log of the scheduler: jobs that arrive and end, problems, and failures inside."""

from collections.abc import Callable, Iterable
from typing import Any

from ringleaf.engine.event import Event, JobArrived, JobGone
from ringleaf.framework.instruction import Bind, Instruction
from ringleaf.kube.decider import Decider
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.quarantine import told, trace_of
from ringleaf.kube.special_jobs import OUTSIDE
from ringleaf.kube.status_writer import StatusWriter

JobNews = dict[str, dict[str, Any]]
"""Job -> what is to be logged of it."""


class Narrator:
    """Logs and counts what happens.

    Args:
        decider: Decides, over the cache of the objects.
        metrics: Counts.
        say: Writes a line of the log.
        clock: Seconds since 1970.

    """

    def __init__(
        self,
        decider: Decider,
        metrics: Metrics,
        say: Callable[..., None],
        clock: Callable[[], float],
    ) -> None:
        self._decider, self._metrics = decider, metrics
        self._say, self._clock = say, clock

    def news_of(self, events: Iterable[Event]) -> JobNews:
        """Jobs of ours that arrive or end, with what is to be logged of each."""
        known, news = self._decider.mind.view.job_states, JobNews()
        for event in events:
            if isinstance(event, JobArrived):
                job = event.job
                news.pop(job.name, None)  # it has changed, and has not ended
                if job.name not in known and not event.placements:
                    facts = {"queue": job.queue, "pods": job.replicas or None}
                    news[job.name] = {"event": "arrived", **facts}
            elif isinstance(event, JobGone):
                job_state = known.get(event.job)
                if job_state is not None and job_state.job.queue != OUTSIDE:
                    began = job_state.started if job_state.placements else None
                    ran = None if began is None else round(self._clock() - began, 1)
                    news[event.job] = {"event": "ended", "ran": ran}
        return news

    def log_jobs(self, news: JobNews, found: Iterable[Instruction]) -> None:
        """Log that jobs arrived or ended; of those bound at once, that only."""
        at_once = {each.job for each in found if isinstance(each, Bind)}
        for job, facts in news.items():
            what = str(facts.pop("event"))
            if what == "ended" or job not in at_once:
                self._say(what, job=job, **facts)

    def report_problems(self, status_writer: StatusWriter | None) -> None:
        """Log what is wrong with objects; *status_writer* writes it on them."""
        cache = self._decider.cache
        for problem in cache.problems.unreported:
            where = f"{problem.namespace}/{problem.name}".lstrip("/")
            pod = cache.pods.get(problem.uid)
            self._say(
                "problem",
                kind=problem.kind,
                object=where,
                job=pod and pod.job,
                message=problem.message,
            )
            self._metrics.problems[problem.kind] += 1
            if status_writer is not None:
                status_writer.problem(problem)
        cache.problems.unreported.clear()

    def log_failures(self) -> None:
        """Log and count what failed while objects were read, leader or standby."""
        failures = self._decider.cache.isolation.failures
        for failure in failures:
            where = f"{failure.culprit.kind} {failure.culprit.key}"
            self._say(
                "quarantined", culprit=where, why=failure.why, trace=failure.trace
            )
            self._metrics.failures += 1
        failures.clear()

    def log_rebuilt(self, n_events: int, seconds: float) -> None:
        """Log that another engine has heard everything."""
        self._say("rebuilt", events=n_events, seconds=round(seconds, 3))

    def log_failed(self, culprit: str, error: BaseException) -> None:
        """Log and count a failure inside."""
        self._say("failed", culprit=culprit, why=told(error), trace=trace_of(error))
        self._metrics.failures += 1
