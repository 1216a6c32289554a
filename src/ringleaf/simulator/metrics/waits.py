"""How long jobs wait and take, by size, queue and kind (metrics 10 and 12)."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from ringleaf.simulator.metrics.job_record import JobRecord
from ringleaf.simulator.metrics.tally import spread_of
from ringleaf.simulator.metrics.wait_causes import WAIT_CAUSES, WaitCause

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

    def add(self, record: JobRecord, *values: float) -> None:
        """The numbers of one job."""
        job, codes = record.job, self._codes
        key = bucket_of(record.chips), job.queue, record.spec.kind
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
        self._unstarted_chips: list[int] = []
        """Chips of each of those jobs."""
        self._causes: Counter[WaitCause] = Counter()
        """What holds each of them back at the end."""
        self._unstarted: dict[str, list[float]] = {}
        """Size -> when each of them arrived that counts."""
        self.first_arrival: float | None = None
        self.last_arrival: float | None = None
        self.last_end: float | None = None
        self.work_done = 0.0
        """Chip-seconds of the work of jobs that ended."""
        self.endings: dict[str, int] = {}

    def arrives(self, record: JobRecord) -> None:
        """A job is submitted."""
        if self.first_arrival is None:
            self.first_arrival = record.arrived
        self.last_arrival = record.arrived
        self.arrived += 1
        self.counted += record.counted
        self.large += record.chips > self._large

    def starts(self, record: JobRecord, now: float) -> None:
        """A job starts for the first time."""
        wait = now - record.arrived
        self.started += 1
        if record.counted:
            self._starts.add(record, wait)
        if record.chips > self._large:
            self.starving = max(self.starving, wait)

    def ends(self, record: JobRecord, now: float) -> None:
        """A job is over."""
        spec = record.spec
        self.endings[spec.ending.value] = self.endings.get(spec.ending.value, 0) + 1
        self.last_end = now
        if record.started is None:
            return
        self.ended += 1
        self.work_done += record.chips * spec.runs_s
        if record.counted:
            took = now - record.arrived
            slow = max(1.0, took / max(spec.runs_s, SHORTEST_S))
            self._ends.add(record, took, slow)

    def finish(
        self,
        left: Iterable[JobRecord],
        now: float,
        causes: Callable[[Iterable[JobRecord]], Counter[WaitCause]],
    ) -> None:
        """Nothing more happens; *left* are jobs that are still there."""
        never = [record for record in left if record.started is None]
        self._causes = causes(never)
        for record in never:
            wait = now - record.arrived
            self.unstarted += 1
            self.longest_unstarted = max(self.longest_unstarted, wait)
            self._unstarted_chips.append(record.chips)
            if record.counted:
                size = bucket_of(record.chips)
                self._unstarted.setdefault(size, []).append(record.arrived)
            if record.chips > self._large:
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
            "smallest_unstarted_chips": min(self._unstarted_chips, default=None),
            "largest_unstarted_chips": max(self._unstarted_chips, default=None),
            "unstarted_causes": {
                cause.value: self._causes[cause] for cause in WAIT_CAUSES
            },
        }

    def plain(self) -> dict[str, Any]:
        """Metric 10."""
        waits = self._starts.plain("wait_s")
        return {
            "wait_s": waits,
            "pending_s": self._pending(waits),
            "jct_s": self._ends.plain("jct_s"),
            "bounded_slowdown": self._ends.plain("bounded_slowdown"),
            "starvation": {
                "gangs": self.large,
                "max_wait_s": self.starving if self.large else None,
            },
        }

    def _pending(self, waits: dict[str, Any]) -> dict[str, Any]:
        """How long all jobs wait: those that never start until the last job ends.

        The run itself may go on after that, for as long as a scheduler wakes up, and
        that says nothing about the jobs.
        """
        times = [t for t in (self.last_arrival, self.last_end) if t is not None]
        until = max(times, default=0.0)
        sizes = [*(name for name, _most in BUCKETS), ABOVE]
        started, left = waits["by_size"], self._unstarted
        every = [arrival for size in sizes for arrival in left.get(size, ())]
        return {
            "until_s": until,
            "all": _with_unstarted(waits["all"], every, until),
            "by_size": {
                size: _with_unstarted(
                    started.get(size, _NONE), left.get(size, ()), until
                )
                for size in sizes
                if size in started or size in left
            },
        }


_NONE: Final = {"n": 0, "mean": None}


def _with_unstarted(
    waits: dict[str, Any], arrivals: Sequence[float], until: float
) -> dict[str, Any]:
    """The mean wait, with jobs that arrived at *arrivals* and wait *until* a time.

    >>> _with_unstarted({"n": 3, "mean": 10.0}, [20.0], 90.0)
    {'n': 4, 'unstarted': 1, 'mean': 25.0}
    """
    n = waits["n"] + len(arrivals)
    if not arrivals:
        return {"n": n, "unstarted": 0, "mean": waits["mean"]}
    total = waits["n"] * (waits["mean"] or 0.0) + sum(until - a for a in arrivals)
    return {"n": n, "unstarted": len(arrivals), "mean": total / n}
