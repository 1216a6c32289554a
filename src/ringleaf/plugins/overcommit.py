"""Lets jobs in up to a multiple of what the cluster has.

A job comes in while what jobs use, what jobs that were let in still need, and what it
needs itself is at most the cluster times the factor, in every resource that it needs.

Source: Volcano ``pkg/scheduler/plugins/overcommit``.
"""

from collections.abc import Mapping
from fractions import Fraction

from ringleaf.framework.plugin import Plugin, Vote
from ringleaf.framework.standing import Standing
from ringleaf.framework.view import View
from ringleaf.framework.vocabulary import Value


class Overcommit(Plugin):
    """Votes by what the whole cluster has been promised to."""

    def __init__(self, view: View, arguments: Mapping[str, Value]) -> None:
        super().__init__(view, arguments)
        self._seen: dict[str, int] = {}
        self._most: dict[str, int] = {}

    def job_enqueueable(self, standing: Standing) -> Vote:
        """Permit while the cluster times the factor holds, else reject."""
        if self._seen != self.view.total:
            self._seen = dict(self.view.total)
            self._most = {
                name: int(total * self._factor(name))
                for name, total in self._seen.items()
            }
        # Of pods that are not made yet, quotas are named besides what nodes have.
        rest = None if standing.job.podless else self.view.unnamed
        for name, amount in standing.least.items():
            most = self._most.get(name, rest)
            if most is not None and amount and amount + self._taken(name) > most:
                return Vote.REJECT
        return Vote.PERMIT

    def _taken(self, name: str) -> int:
        """What jobs use of a resource, and what those let in still need."""
        return sum(
            account.allocated.get(name, 0) + account.inqueue.get(name, 0)
            for account in self.view.accounts.values()
        )

    def _factor(self, name: str) -> Fraction:
        """The factor for a resource, exactly as it is written."""
        usual = self.values["overcommit-factor"]
        return Fraction(str(self.values.get(f"overcommit-factor.{name}", usual)))
