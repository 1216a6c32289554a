"""The engine of a scheduler, and the one after it when it fails.

The engine is a pure function of what it hears. If it fails, its books may be half
written: what it failed at is set aside, and a new engine hears everything that the
world knows besides.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from ringleaf.config.conf import Conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event
from ringleaf.framework.instruction import Instruction
from ringleaf.framework.run_times import RunTimes
from ringleaf.framework.state import SchedulerState
from ringleaf.kube.quarantine import Culprit
from ringleaf.kube.world import World
from ringleaf.model.decision import Decision


class Mind(Protocol):
    """What decides: an engine, or one that is being recorded."""

    @property
    def view(self) -> SchedulerState:
        """What it knows."""

    @property
    def is_cut_short(self) -> bool:
        """Whether there is more to decide."""

    @property
    def admitted(self) -> Iterable[str]:
        """The jobs that were just admitted."""

    def handle_all(
        self, events: Iterable[Event], now: float, most: float
    ) -> list[Instruction]:
        """What is to be done after *events*."""

    def explain(self, name: str, *, hints: bool = True) -> Decision:
        """Where a job is, or why it waits."""


class Decider:
    """Decides for a world.

    Args:
        world: What there is.
        conf: The configuration that counts now.
        mind: Makes of an engine what decides.

    """

    def __init__(
        self,
        world: World,
        conf: Callable[[], Conf],
        mind: Callable[[Engine], Mind] = lambda engine: engine,
    ) -> None:
        self._world, self._conf, self._make = world, conf, mind
        self.engine = Engine((), conf=conf())
        self.mind = mind(self.engine)
        self._is_new = False
        """Whether the engine has heard nothing yet that the world told before."""

    @property
    def may_be_compared(self) -> bool:
        """Whether the engine has heard of all that its state has to agree with.

        It need not have decided everything: what it says is carried out after each
        call, so its state is as the objects are between two slices of a search as well.
        """
        return not (self._is_new or self._world.has_changes)

    @property
    def run_times(self) -> RunTimes | None:
        """How long jobs ran; None until the engine has heard what was written down."""
        unheard = self._is_new or self._world.has_run_times
        return None if unheard else self.engine.run_times

    def news(self, now: float) -> list[Event]:
        """What the engine has not heard yet."""
        if not self._is_new:
            return self._world.events(now)
        self._is_new = False
        return self._world.everything(now)

    def recover(self, error: Exception, now: float) -> list[Culprit]:
        """Set aside what *error* is about, and begin anew; what that is."""
        try:
            found = self._world.quarantine.blame(error, now)
            self._world.set_aside(found, error)
        finally:
            self.begin_anew()
        return found

    def begin_anew(self) -> None:
        """A new engine hears everything; of faults and runs, what the last one knew."""
        with suppress(Exception):  # the last one may know nothing any more
            self._world.carry_over(
                self.engine.fault_log.everything,
                self.engine.deletions,
                self.engine.run_times.series,
            )
        self.engine = Engine((), conf=self._conf())
        self.mind = self._make(self.engine)
        self._is_new = True
