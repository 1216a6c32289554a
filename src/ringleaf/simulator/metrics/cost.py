"""What deciding costs, in real seconds: never part of a result that must be the same.

``TimedEngine`` wraps an engine and passes everything on. Seconds are processor time: an
engine waits for nothing while it decides, and other programs do not count.
"""

import resource
import sys
from array import array
from collections.abc import Iterable
from math import log2
from time import thread_time_ns
from typing import Any, Final

import numpy as np

from ringleaf.engine.event import Event
from ringleaf.framework.instruction import Bind, Instruction
from ringleaf.framework.state import SchedulerState
from ringleaf.simulator.trial import SchedulingEngine

PER_DOUBLING: Final = 32
"""Classes of durations for every doubling: a quantile is right to about 2 %."""
CLASSES: Final = 64 * PER_DOUBLING
NANOSECONDS: Final = 1e9


class Durations:
    """Durations by class, so that any number of them takes the same room."""

    def __init__(self) -> None:
        self._counts = array("q", bytes(8 * CLASSES))
        self.n = self.total = self.longest = 0

    def add(self, nanoseconds: int, times: int = 1) -> None:
        """Something took so long, *times* times."""
        self.n += times
        self.total += nanoseconds * times
        self.longest = max(self.longest, nanoseconds)
        self._counts[_class_of(nanoseconds)] += times

    def quantile(self, part: float) -> float | None:
        """The duration in seconds that *part* of them do not exceed, nearly."""
        if not self.n:
            return None
        reached = np.cumsum(np.array(self._counts))
        at = int(np.searchsorted(reached, part * self.n))
        return min(2 ** ((at + 1) / PER_DOUBLING), self.longest) / NANOSECONDS

    def plain(self) -> dict[str, Any]:
        """How many, and how long."""
        return {
            "n": self.n,
            "mean_s": self.total / self.n / NANOSECONDS if self.n else None,
            "p50_s": self.quantile(0.5),
            "p99_s": self.quantile(0.99),
            "max_s": self.longest / NANOSECONDS if self.n else None,
        }


def _class_of(nanoseconds: int) -> int:
    return int(log2(max(1, nanoseconds)) * PER_DOUBLING)


class TimedEngine:
    """A scheduler whose decisions are timed (metric 13)."""

    def __init__(self, scheduler: SchedulingEngine) -> None:
        self._scheduler = scheduler
        self._calls, self._gangs, self._pods = Durations(), Durations(), Durations()

    @property
    def view(self) -> SchedulerState:
        """What it knows."""
        return self._scheduler.view

    def handle_all(self, events: Iterable[Event], now: float) -> list[Instruction]:
        """What the scheduler says, and how long that took."""
        before = thread_time_ns()
        said = self._scheduler.handle_all(events, now)
        took = thread_time_ns() - before
        self._calls.add(took)
        bound = [len(each.placements) for each in said if isinstance(each, Bind)]
        if bound:
            self._gangs.add(took // len(bound), len(bound))
            self._pods.add(took // sum(bound), sum(bound))
        return said

    def plain(self) -> dict[str, Any]:
        """Seconds per call, per gang and per pod that was bound, and pods a second."""
        pods, spent = self._pods.n, self._calls.total / NANOSECONDS
        return {
            "per_call": self._calls.plain(),
            "per_gang": self._gangs.plain(),
            "per_pod": self._pods.plain(),
            "pods_per_second": pods / spent if spent else None,
            "deciding_s": spent,
            "peak_memory_bytes": peak_memory_bytes(),
        }


def peak_memory_bytes() -> int:
    """The most memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
