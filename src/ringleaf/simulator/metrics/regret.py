"""How far what is held is from the best that could be, now and then."""

from array import array
from typing import Any, Final

from ringleaf.simulator.metrics.metrics import RunMetrics
from ringleaf.simulator.metrics.tally import spread_of
from ringleaf.simulator.trial import SchedulingEngine, Trial

EVERY: Final = 100
"""Look at one in so many of the moments at which a job is pending."""
MOST: Final = 60
"""Jobs that wait of which the best are chosen, at most."""


class Regret(RunMetrics):
    """All measures, and what was left lying; needs the extra ``optimum``.

    Args:
        every: Look at one in so many of the moments at which a job is pending.

    """

    def __init__(self, every: int = EVERY) -> None:
        super().__init__()
        self._every = every

    def begin(self, trial: Trial, scheduler: SchedulingEngine) -> None:
        """A run begins."""
        super().begin(trial, scheduler)
        self._moments = 0
        self._regrets = array("d")

    def passes(self, since: float, now: float) -> None:
        """From *since* to *now* everything was as it still is."""
        super().passes(since, now)
        if self.is_counting and self._why.jobs:
            if self._moments % self._every == 0:
                held, could = self.could_hold(MOST)
                self._regrets.append(1 - held / could if could else 0.0)
            self._moments += 1

    def plain(self) -> dict[str, Any]:
        """All measures as plain values, and the regret."""
        return {**super().plain(), "regret": spread_of(self._regrets)}
