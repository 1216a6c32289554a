"""Higher priority first; it may evict lower priority.

Where we differ from Volcano: all pods of a job have the job's priority, so there is no
order of pods by priority, and no eviction inside a job.

Source: Volcano ``pkg/scheduler/plugins/priority``.
"""

from collections.abc import Sequence
from typing import ClassVar

from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin, Victim, occupied


class Priority(Plugin):
    """Votes by ``Job.priority``."""

    per_job: ClassVar[frozenset[str]] = frozenset({"Preemptable"})
    by_rank: ClassVar[frozenset[str]] = per_job

    def job_order(self, job_state: JobState) -> int:
        """Higher priority first."""
        return -job_state.job.priority

    def preemptable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """Pods of jobs with a lower priority."""
        job_states, bar = self.view.job_states, evictor.job.priority
        return [each for each in victims if job_states[each.job].job.priority < bar]

    def job_starving(self, job_state: JobState) -> bool:
        """Some pod has no place and awaits none."""
        return occupied(job_state) < job_state.job.n_pods
