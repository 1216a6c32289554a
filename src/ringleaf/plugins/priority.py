"""Higher priority first; it may evict lower priority.

Where we differ from Volcano: all pods of a job have the job's priority, so there is no
order of pods by priority, and no eviction inside a job.

Source: Volcano ``pkg/scheduler/plugins/priority``.
"""

from collections.abc import Sequence
from typing import ClassVar

from ringleaf.framework.plugin import Plugin, Victim, occupied
from ringleaf.framework.standing import Standing


class Priority(Plugin):
    """Votes by ``Job.priority``."""

    per_job: ClassVar[frozenset[str]] = frozenset({"Preemptable"})
    by_rank: ClassVar[frozenset[str]] = per_job

    def job_order(self, standing: Standing) -> int:
        """Higher priority first."""
        return -standing.job.priority

    def preemptable(self, evictor: Standing, victims: Sequence[Victim]) -> list[Victim]:
        """Pods of jobs with a lower priority."""
        standings, bar = self.view.standings, evictor.job.priority
        return [each for each in victims if standings[each.job].job.priority < bar]

    def job_starving(self, standing: Standing) -> bool:
        """Some pod has no place and awaits none."""
        return occupied(standing) < standing.job.n_pods
