"""Admits jobs up to a multiple of what the cluster has.

A job is admitted while what jobs use, what admitted jobs still need, and what it
needs itself is at most the cluster times the factor, in every resource that it needs.

Source: Volcano ``pkg/scheduler/plugins/overcommit``.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar

from msgspec import field

from ringleaf.config.arguments import Value
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin, PluginSettings, Vote
from ringleaf.framework.state import SchedulerState


class OvercommitSettings(
    PluginSettings,
    frozen=True,
    rename={"factor": "overcommit-factor", "factor_of": "overcommit-factor.<resource>"},
):
    """How much may be admitted, as a multiple of what the cluster has."""

    factor: float = 1.2
    factor_of: dict[str, float] = field(default_factory=dict)


class Overcommit(Plugin):
    """Votes by what the whole cluster has been promised to."""

    Settings: ClassVar[type[PluginSettings]] = OvercommitSettings
    settings: OvercommitSettings

    def __init__(self, view: SchedulerState, arguments: Mapping[str, Value]) -> None:
        super().__init__(view, arguments)
        self._seen: dict[str, int] = {}
        self._most: dict[str, int] = {}

    def job_enqueueable(self, job_state: JobState) -> Vote:
        """Permit while the cluster times the factor holds, else reject."""
        if self._seen != self.view.total:
            self._seen = dict(self.view.total)
            self._most = {
                name: int(total * self._factor(name))
                for name, total in self._seen.items()
            }
        # Of pods that are not made yet, quotas are named besides what nodes have.
        rest = None if job_state.job.podless else self.view.unnamed
        for name, amount in job_state.facts.min_resources.items():
            most = self._most.get(name, rest)
            if most is not None and amount and amount + self._taken(name) > most:
                return Vote.REJECT
        return Vote.PERMIT

    def _taken(self, name: str) -> int:
        """What jobs use of a resource, and what admitted ones still need."""
        return sum(
            account.allocated.get(name, 0) + account.inqueue.get(name, 0)
            for account in self.view.queue_usage.values()
        )

    def _factor(self, name: str) -> Fraction:
        """The factor for a resource, exactly as it is written."""
        own = self.settings.factor_of.get(name, self.settings.factor)
        return Fraction(str(own))
