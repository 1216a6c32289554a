"""Pods of the system are never evicted.

Source: Volcano ``pkg/scheduler/plugins/conformance``: pods of kube-system and those
with a priority class of the system.
"""

from collections.abc import Sequence
from typing import ClassVar

from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin, Victim


class Conformance(Plugin):
    """Votes by ``Job.critical``."""

    per_job: ClassVar[frozenset[str]] = frozenset({"Preemptable", "Reclaimable"})
    by_rank: ClassVar[frozenset[str]] = per_job

    def preemptable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """All pods but those of the system."""
        del evictor
        job_states = self.view.job_states
        return [each for each in victims if not job_states[each.job].job.critical]

    def reclaimable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """All pods but those of the system."""
        return self.preemptable(evictor, victims)
