"""The engine of a scheduler, and the one after it when it fails.

The engine is a pure function of what it hears. If it fails, its state may be half
written: what it failed at is set aside, and a new engine hears everything that the
cache knows besides. That takes seconds where there are many pods, so it is done in
parts between which others have their turn, and not too often for one namespace.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from math import inf
from typing import Final, Protocol

from ringleaf.config.conf import Conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    ConfChanged,
    Event,
    IdleAccountKnown,
    RunTimesKnown,
)
from ringleaf.framework.idle_budget import IdleAccount
from ringleaf.framework.instruction import Instruction
from ringleaf.framework.run_times import RunTimes
from ringleaf.framework.state import SchedulerState
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.quarantine import Culprit
from ringleaf.model.decision import Decision

HANDED: Final = 1000
"""Events that a new engine hears before others have their turn."""


class EngineInterface(Protocol):
    """What decides: an engine, or one that is being recorded."""

    @property
    def view(self) -> SchedulerState:
        """What it knows."""

    @property
    def has_more(self) -> bool:
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
    """Decides for a cache.

    Args:
        cache: What there is.
        conf: The configuration that counts now.
        mind: Makes of an engine what decides.

    """

    def __init__(
        self,
        cache: ClusterCache,
        conf: Callable[[], Conf],
        mind: Callable[[Engine], EngineInterface] = lambda engine: engine,
    ) -> None:
        self.cache, self._conf, self._make = cache, conf, mind
        self.engine = Engine((), conf=conf())
        self.mind = mind(self.engine)
        self._coming: tuple[Engine, EngineInterface] | None = None
        """The next engine, which has not heard yet what the cache reported before."""
        self._last: list[Event] = []
        """What an engine that was handed everything hears with the news."""

    @property
    def begins_anew(self) -> bool:
        """Whether another engine is about to decide; until then none does."""
        return self._coming is not None

    @property
    def may_be_compared(self) -> bool:
        """Whether the engine has heard of all that its state has to agree with.

        It need not have decided everything: what it says is carried out after each
        call, so its state is as the objects are between two slices of a search as well.
        """
        return not (self.begins_anew or self.cache.has_changes)

    @property
    def run_times(self) -> RunTimes | None:
        """How long jobs ran; None until the engine has heard what was written down."""
        return self.engine.run_times if self._has_heard(RunTimesKnown) else None

    def idle_account(self, now: float) -> IdleAccount | None:
        """What reservations kept idle; None until the engine has heard what it was."""
        if not self._has_heard(IdleAccountKnown):
            return None
        return self.engine.context.reservations.idle.account(now)

    def _has_heard(self, kind: type[Event]) -> bool:
        return not (self.begins_anew or self.cache.handover.is_unreported(kind))

    def rate_limited(self) -> list[str]:
        """The jobs whose repair waits for the rate limit."""
        repairs = self.engine.repairs
        return [name for name, each in repairs.items() if each.rate_limited]

    def news(self, now: float) -> list[Event]:
        """What the engine has not heard yet."""
        if self._coming is None:
            last, self._last = self._last, []
            return [*last, *self.cache.events(now)]
        self._begin()
        return self.cache.everything(now)

    def recover(self, error: Exception, now: float) -> list[Culprit]:
        """Set aside what *error* is about, and begin anew; what that is."""
        try:
            quarantine = self.cache.isolation.quarantine
            found = quarantine.spread(quarantine.blame(error, now), now)
            self.cache.isolation.set_aside(found, error)
        finally:
            self.begin_anew()
        return found

    def begin_anew(self) -> None:
        """A new engine hears everything; of faults and runs, what the last one knew.

        Until it has, the last one is there to be read.
        """
        if self._coming is None:  # else the last one has heard too little
            with suppress(Exception):  # the last one may know nothing any more
                self.cache.handover.carry_over(
                    self.engine.fault_log.everything,
                    self.engine.deletions,
                    self._notes(),
                )
        engine = Engine((), conf=self._conf())
        self._coming, self._last = (engine, self._make(engine)), []

    def _notes(self) -> Iterator[Event]:
        """What the last engine knew; one that failed at once had heard of nothing."""
        if series := self.engine.run_times.series:
            yield RunTimesKnown(series)
        account = self.engine.context.reservations.idle.budget.account
        if account != IdleAccount():
            yield IdleAccountKnown(account)

    def hand_over(self, now: float) -> Iterator[tuple[list[Event], list[Instruction]]]:
        """Have the engine that comes hear everything, some events at a time.

        For each time, what it heard and said. It decides nothing before it has heard
        the last event, with the news that comes next. Another engine may come meanwhile
        in its place.
        """
        coming = self._coming
        assert coming is not None
        events = self.cache.everything(now)
        conf = next(each for each in events if isinstance(each, ConfChanged))
        events.remove(conf)
        events.insert(0, ConfChanged(conf.conf.quiet))
        for start in range(0, len(events), HANDED):
            part = events[start : start + HANDED]
            yield part, coming[1].handle_all(part, now, inf)
            if self._coming is not coming:
                return
        self._begin()
        self._last = [conf]

    def _begin(self) -> None:
        """The engine that comes is there."""
        assert self._coming is not None
        (self.engine, self.mind), self._coming = self._coming, None
