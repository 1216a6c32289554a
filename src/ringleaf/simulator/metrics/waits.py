"""How long jobs wait and take, by size, queue and kind (metrics 10 and 12)."""

from array import array
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from ringleaf.simulator.metrics.life import Life
from ringleaf.simulator.metrics.tally import spread_of

BUCKETS: Final = (
    ("1", 1),
    ("2-4", 4),
    ("5-8", 8),
    ("9-64", 64),
    ("65-256", 256),
)
"""Sizes of jobs in chips, by the most of each; more than the last is ``>256``."""
ABOVE: Final = ">256"
SHORTEST_S: Final = 10.0
"""Jobs shorter than this count as so long in the bounded slowdown."""
STARVING: Final = 0.25
"""Gangs of more than this part of the cluster are those that starve first."""


def bucket_of(chips: int) -> str:
    """The size of a job of *chips*, as tables call it.

    >>> [bucket_of(n) for n in (1, 3, 8, 64, 65, 512)]
    ['1', '2-4', '5-8', '9-64', '65-256', '>256']
    """
    for name, most in BUCKETS:
        if chips <= most:
            return name
    return ABOVE


class Groups:
    """Numbers, each with its size, queue and kind, for tables."""

    def __init__(self, *columns: str) -> None:
        self.columns = {name: array("d") for name in columns}
        self._codes: dict[tuple[str, str, str], int] = {}
        self._code = array("H")

    def add(self, life: Life, *values: float) -> None:
        """The numbers of one job."""
        job, codes = life.job, self._codes
        key = bucket_of(life.chips), job.queue, life.work.kind
        code = codes.get(key)
        if code is None:
            code = codes[key] = len(codes)
        self._code.append(code)
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)

    def plain(self, column: str) -> dict[str, Any]:
        """One column: all of it, by size, by queue and by kind."""
        values = np.array(self.columns[column])
        codes = np.array(self._code)
        by_size, by_queue, by_kind = (
            {
                name: spread_of(values[np.isin(codes, own)])
                for name, own in self._parts(part)
            }
            for part in range(3)
        )
        return {
            "all": spread_of(values),
            "by_size": by_size,
            "by_queue": by_queue,
            "by_kind": by_kind,
        }

    def _parts(self, part: int) -> Iterable[tuple[str, list[int]]]:
        names = sorted({key[part] for key in self._codes})
        if part == 0:
            order = [*(name for name, _most in BUCKETS), ABOVE]
            names = [name for name in order if name in names]
        return (
            (name, [code for key, code in self._codes.items() if key[part] == name])
            for name in names
        )


class Waits:
    """When jobs started and ended, against when they came."""

    def __init__(self, chips: int) -> None:
        self._large = STARVING * chips
        self._starts = Groups("wait_s")
        self._ends = Groups("jct_s", "bounded_slowdown")
        self.starving = 0.0
        """The longest wait of a gang of more than a quarter of the cluster."""
        self.large = 0
        """How many such gangs there were."""
        self.arrived = self.counted = self.started = self.ended = 0
        self.unstarted = 0
        self.longest_unstarted = 0.0
        self.first_arrival: float | None = None
        self.last_end: float | None = None
        self.work_done = 0.0
        """Chip-seconds of the work of jobs that ended."""
        self.endings: dict[str, int] = {}

    def arrives(self, life: Life) -> None:
        """A job is submitted."""
        if self.first_arrival is None:
            self.first_arrival = life.arrived
        self.arrived += 1
        self.counted += life.counted
        self.large += life.chips > self._large

    def starts(self, life: Life, now: float) -> None:
        """A job starts for the first time."""
        wait = now - life.arrived
        self.started += 1
        if life.counted:
            self._starts.add(life, wait)
        if life.chips > self._large:
            self.starving = max(self.starving, wait)

    def ends(self, life: Life, now: float) -> None:
        """A job is over."""
        work = life.work
        self.endings[work.ending.value] = self.endings.get(work.ending.value, 0) + 1
        self.last_end = now
        if life.started is None:
            return
        self.ended += 1
        self.work_done += life.chips * work.runs_s
        if life.counted:
            took = now - life.arrived
            slow = max(1.0, took / max(work.runs_s, SHORTEST_S))
            self._ends.add(life, took, slow)

    def finish(self, left: Iterable[Life], now: float) -> None:
        """Nothing more happens; *left* are jobs that are still there."""
        for life in left:
            if life.started is None:
                wait = now - life.arrived
                self.unstarted += 1
                self.longest_unstarted = max(self.longest_unstarted, wait)
                if life.chips > self._large:
                    self.starving = max(self.starving, wait)

    def jobs(self) -> dict[str, Any]:
        """How many jobs there were, and what became of them."""
        return {
            "arrived": self.arrived,
            "counted": self.counted,
            "started": self.started,
            "ended": self.ended,
            "endings": dict(sorted(self.endings.items())),
            "unstarted": self.unstarted,
            "longest_unstarted_s": self.longest_unstarted if self.unstarted else None,
        }

    def plain(self) -> dict[str, Any]:
        """Metric 10."""
        return {
            "wait_s": self._starts.plain("wait_s"),
            "jct_s": self._ends.plain("jct_s"),
            "bounded_slowdown": self._ends.plain("bounded_slowdown"),
            "starvation": {
                "gangs": self.large,
                "max_wait_s": self.starving if self.large else None,
            },
        }
