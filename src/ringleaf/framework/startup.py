"""Jobs on their way from bound to running, and those that are tried again later.

A job is *whole* once the pods it cannot do without have all run. One that is not whole
in time is released and tried again, later each time. Nothing is supposed of a job of
which no pod was ever reported to run: it may be one of a scenario, where pods run as
soon as they are bound.
"""

from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from ringleaf.framework.job_state import NONE_OF_THEM, JobState, with_pods

SPARE_CLOCKS: Final = 64
"""Times of jobs that count no more that are worth no tidying up."""
FIRST_S, MOST_S = 10.0, 600.0
"""How long a job rests after its first release, then twice so long; and at most."""


class Startup:
    """How far one job has come since it was bound."""

    __slots__ = (
        "again",
        "is_watched",
        "not_before",
        "refusals",
        "runs",
        "since",
        "tries",
        "was_whole",
    )

    def __init__(self, since: float | None) -> None:
        self.since = since
        """From when on its time is counted; None while that is not known."""
        self.runs: frozenset[int] = NONE_OF_THEM
        """Pods that have run."""
        self.is_watched = False
        """Whether it was ever said which pods run."""
        self.was_whole = False
        self.again: frozenset[int] = NONE_OF_THEM
        """Pods that were sent and came back: they get no new time."""
        self.tries = 0
        """How often it was released since it was last whole."""
        self.refusals = 0
        """How often pods of it were refused since."""
        self.not_before = 0.0
        """When it may be placed again."""

    def rest(self, now: float, times: int) -> None:
        """It is not placed for a while, the *times*-th time, from 1."""
        self.not_before = now + min(FIRST_S * 2 ** min(times - 1, 30), MOST_S)


class StartupWatch:
    """All jobs that were bound, by name."""

    def __init__(self) -> None:
        self._of: dict[str, Startup] = {}
        self.clocks: list[tuple[float, str]] = []
        """Since when, as a heap; some are whole by now, or have another time."""

    def __getitem__(self, job: str) -> Startup:
        return self._of[job]

    def runs_of(self, job: str) -> Collection[int]:
        """The pods of *job* that are known to have run."""
        start = self._of.get(job)
        return () if start is None else start.runs

    def begin(self, job: str, now: float) -> None:
        """All pods of *job* are new; how often it was tried is not forgotten."""
        last, new = self._of.get(job), Startup(now)
        if last is not None:
            new.tries, new.refusals = last.tries, last.refusals
            new.not_before = last.not_before
        self._of[job] = new

    def found(self, job: str) -> None:
        """Pods of *job* are there that others bound; or it is heard of anew."""
        if job not in self._of:
            self._of[job] = Startup(None)

    def join(self, job: str, replicas: Collection[int], now: float) -> None:
        """Pods are bound to join *job*; they have their time, unless they had it."""
        start = self._of[job]
        fresh = {*replicas} - start.again
        start.again -= {*replicas}
        start.runs -= {*replicas}
        if fresh and start.since is not None:
            self._count_from(job, now)

    def came_back(self, job: str, replicas: Iterable[int]) -> None:
        """Pods of *job* were sent, and not taken."""
        start = self._of.get(job)
        if start is not None:
            start.again |= {*replicas}

    def refused(self, job: str, now: float) -> None:
        """Nodes refused pods of *job*: it goes elsewhere at once, and then rests."""
        start = self._of.setdefault(job, Startup(None))
        start.refusals += 1
        if start.refusals > 1:
            start.rest(now, start.refusals - 1)

    def run(
        self, job: str, replicas: Iterable[int], since: float | None, now: float
    ) -> Startup:
        """Pods of *job* run; since when others are bound, if that is known."""
        start = self._of.setdefault(job, Startup(None))
        start.runs = with_pods(start.runs, replicas)
        if not start.is_watched or start.since is None:
            start.is_watched = True
            if start.since is None:
                start.since = now if since is None else min(since, now)
            self._count_from(job, start.since)
        return start

    def note_whole(self, job_state: JobState) -> bool:
        """Whether all pods have run that a job cannot do without, once they have."""
        start = self[job_state.job.name]
        if not start.was_whole:
            ran = start.runs & job_state.placements.keys() | job_state.finished
            if len(ran) >= job_state.facts.min_pods:
                self.is_whole(job_state.job.name)
        return start.was_whole

    def is_whole(self, job: str) -> None:
        """All pods that *job* cannot do without have run; it is as if never tried."""
        start = self._of[job]
        start.was_whole = True
        start.tries = start.refusals = 0
        start.not_before = 0.0

    def forget(self, job: str) -> None:
        """*job* is gone for good."""
        self._of.pop(job, None)

    def not_before(self, job: str) -> float:
        """When *job* may be placed; at any time, unless it was released."""
        start = self._of.get(job)
        return 0.0 if start is None else start.not_before

    def due(self, now: float, within_s: float) -> list[str]:
        """The jobs that are not whole *within_s* after they were bound.

        They have as much time again from now on.
        """
        found = []
        while (first := self._first()) is not None and first[0] + within_s <= now:
            found.append(first[1])
            self._count_from(first[1], now)
        return found

    def next_at(self, within_s: float) -> float:
        """When the next one is due; never, if all are whole."""
        first = self._first()
        return inf if first is None else first[0] + within_s

    def _count_from(self, job: str, since: float) -> None:
        start = self._of[job]
        start.since = since
        if start.is_watched and not start.was_whole:
            heappush(self.clocks, (since, job))
        if len(self.clocks) > 2 * len(self._of) + SPARE_CLOCKS:
            # A standby never asks for the first of them, nor does anything else where
            # there is no limit.
            self.clocks = [each for each in {*self.clocks} if self._counts(*each)]
            heapify(self.clocks)

    def _first(self) -> tuple[float, str] | None:
        """The job whose time is over first, of those that are not whole."""
        while self.clocks and not self._counts(*self.clocks[0]):
            heappop(self.clocks)
        return self.clocks[0] if self.clocks else None

    def _counts(self, since: float, job: str) -> bool:
        start = self._of.get(job)
        watched = start is not None and start.is_watched and not start.was_whole
        return watched and start is not None and start.since == since
