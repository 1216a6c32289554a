"""The measures that reports tell, in words and units that a stranger understands."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import isfinite
from typing import Any, Final

from msgspec import Struct

from ringleaf.report.results import Estimate, Results

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
LARGE: Final = ">64"
"""A size that is told besides the buckets: gangs of more than 64 chips."""
_LARGE: Final = ("65-256", ">256")
NONE: Final = "\N{EN DASH}"
SMALL, MANY = 0.1, 1000
"""Below and above which numbers have other digits."""


class Better(StrEnum):
    """Which way a measure is better."""

    UP = "more"
    DOWN = "less"
    NEITHER = ""


def share(value: float) -> str:
    """A share in percent.

    >>> share(0.8764), share(0.00012), share(0.0)
    ('87.6 %', '0.012 %', '0 %')
    """
    percent = 100 * value
    if percent == 0:
        return "0 %"
    return f"{percent:.1f} %" if abs(percent) >= SMALL else f"{percent:.2g} %"


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> [duration(s) for s in (0.0, 0.25, 42.0, 600.0, 5400.0, 200000.0)]
    ['0 s', '0.25 s', '42 s', '10.0 min', '1.5 h', '2.3 d']
    """
    size = abs(seconds)
    if size >= 2 * DAY_S:
        return f"{seconds / DAY_S:,.1f} d"
    if size >= HOUR_S:
        return f"{seconds / HOUR_S:.1f} h"
    if size >= 2 * MINUTE_S:
        return f"{seconds / MINUTE_S:.1f} min"
    return f"{seconds:.3g} s"


def number(value: float) -> str:
    """A number with three digits or more that matter.

    >>> number(0.0), number(0.1234), number(12.345), number(12345.6)
    ('0', '0.123', '12.3', '12,346')
    """
    if abs(value) >= MANY:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def tick(value: float) -> str:
    """A share on an axis, without digits that say nothing.

    >>> tick(1.0), tick(0.005)
    ('100 %', '0.5 %')
    """
    return f"{100 * value:.6g} %"


class Measure(Struct, frozen=True):
    """A row of the table.

    Args:
        key: Where ``Metrics.plain`` has it, with dots.
        title: What people call it.
        about: What it means, in a sentence.
        better: Which way it is better.
        written: How its values are written.
        noun: What it is in the middle of a sentence.

    """

    key: str
    title: str
    about: str
    better: Better
    written: Callable[[float], str] = number
    noun: str = ""


UP, DOWN, NEITHER = Better.UP, Better.DOWN, Better.NEITHER

MEASURES: Final = (
    Measure("use.utilisation", "Chips in use",
            "Share of all chips that jobs hold, on average over time.", UP, share,
            "chips in use"),
    Measure("use.effective_utilisation", "Chips in use, less what contention costs",
            "Chips in use, with jobs that share links to the spine counted as slower.",
            UP, share, "chips in use after contention"),
    Measure("wait_s.all.mean", "Waiting, all jobs",
            "From the submission of a job to its start, mean over jobs.", DOWN,
            duration, "waiting of all jobs"),
    Measure("wait_s.by_size.>64.mean", "Waiting, gangs above 64 chips",
            "Submission to start, mean over jobs above 64 chips.", DOWN, duration,
            "waiting of gangs above 64 chips"),
    Measure("wait_s.by_size.>256.mean", "Waiting, gangs above 256 chips",
            "Submission to start, mean over jobs above 256 chips.", DOWN, duration,
            "waiting of gangs above 256 chips"),
    Measure("wait_s.by_size.1.mean", "Waiting, jobs of one chip",
            "Submission to start, mean over jobs of one chip.", DOWN, duration,
            "waiting of jobs of one chip"),
    Measure("wait_s.all.p99", "Waiting, the 99th percentile",
            "One job in a hundred waits longer than this.", DOWN, duration,
            "the longest waits"),
    Measure("starvation.max_wait_s", "Longest wait of a very large gang",
            "The longest wait of a job of more than a quarter of the cluster.", DOWN,
            duration, "the longest wait of a very large gang"),
    Measure("bounded_slowdown.all.mean", "Slowdown",
            "Time from submission to end by the time a job runs alone; 1 is ideal.",
            DOWN, number, "slowdown"),
    Measure("jct_s.all.mean", "Submission to end, all jobs",
            "Waiting and running, mean over jobs.", DOWN, duration,
            "time from submission to end"),
    Measure("work.makespan_s", "Whole run",
            "From the first submission to the last end.", DOWN, duration,
            "length of the whole run"),
    Measure("leaves.conflicts", "Spine conflicts",
            "Over all leaves, jobs that use its links to the spine beyond the first, "
            "on average over time.", DOWN, number, "spine conflicts"),
    Measure("leaves.at_risk_share_of_crossing", "Gangs that ever shared a leaf's links",
            "Share of the gangs across leaves that met another one on a leaf.", DOWN,
            share, "gangs that meet others on a leaf"),
    Measure("leaves.share_of_gangs", "Gangs across leaves",
            "Share of the jobs on several nodes that stand under several leaves.", DOWN,
            share, "gangs across leaves"),
    Measure("leaves.avoidable", "Gangs across leaves without need",
            "Jobs under several leaves that would fit under one.", DOWN, number,
            "gangs across leaves without need"),
    Measure("superpods.split_blocks", "Blocks split over SuperPoDs",
            "Blocks that asked to be in one SuperPoD and are not.", DOWN, number,
            "split blocks"),
    Measure("chips.fragmentation", "Chips that are free in vain",
            "Free chips that the usual pods cannot use, by all chips.", DOWN, share,
            "chips that are free in vain"),
    Measure("chips.ring_violations_per_1000_pods", "Pods across rings, of 1,000",
            "Pods that would fit into one ring of chips, and are not in one.", DOWN,
            number, "pods across rings"),
    Measure("nodes.largest_gang_of_free.1.0", "Largest gang, of the free nodes",
            "Share of the free nodes that one gang could have under the network "
            "rules.", UP, share, "the largest gang that could start"),
    Measure("why.frag_wait_share", "Time in which enough was free for the first",
            "Share of the time in which the job that came first waits though as many "
            "chips as it asks for are free.", DOWN, share,
            "time in which enough was free for the first job"),
    Measure("regret.mean", "Less than could be held",
            "What is held at moments at which somebody waits, by what an exact solver "
            "would hold with the jobs that wait.", DOWN, share,
            "what could be held besides"),
    Measure("faults.chip_hours_lost_to_faults", "Chip-hours lost to faults",
            "Work that had to be done again because something broke.", DOWN, number,
            "chip-hours lost to faults"),
    Measure("faults.recovery_s.mean", "Time to recover",
            "From a fault to when the job is whole again.", DOWN, duration,
            "time to recover"),
    Measure("faults.share_in_place", "Pods restored in place",
            "Share of the pods that a fault took that returned to their node.", UP,
            share, "pods restored in place"),
    Measure("faults.evictions", "Evictions",
            "Jobs that were asked to end for others.", DOWN, number, "evictions"),
    Measure("jobs.unstarted", "Jobs that never started",
            "Jobs that still wait at the end.", DOWN, number,
            "jobs that never started"),
)  # fmt: skip
"""What tables tell, in this order; docs/measures.md defines each."""

BY_KEY: Final = {measure.key: measure for measure in MEASURES}


def value_of(metrics: Mapping[str, Any], key: str) -> float | None:
    """The value at *key* of what ``Metrics.plain`` gives; None where there is none.

    >>> value_of({"nodes": {"largest_gang": {"1.0": 4}}}, "nodes.largest_gang.1.0")
    4.0
    >>> sizes = {"65-256": {"n": 1, "mean": 2.0}, ">256": {"n": 3, "mean": 6.0}}
    >>> value_of({"wait_s": {"by_size": sizes}}, "wait_s.by_size.>64.mean")
    5.0
    """
    head, large, name = key.partition(f".by_size.{LARGE}.")
    if large:
        return _mean_of_large(metrics, head) if name == "mean" else None
    found: Any = metrics
    parts = key.split(".")
    while parts:
        if not isinstance(found, Mapping):
            return None
        for n in range(len(parts), 0, -1):
            if (name := ".".join(parts[:n])) in found:
                found, parts = found[name], parts[n:]
                break
        else:
            return None
    is_number = isinstance(found, int | float) and isfinite(found)
    return float(found) if is_number else None


def _mean_of_large(metrics: Mapping[str, Any], key: str) -> float | None:
    total, n = 0.0, 0
    for size in _LARGE:
        mean = value_of(metrics, f"{key}.by_size.{size}.mean")
        if mean is not None:
            own = int(metrics[key]["by_size"][size]["n"])
            total, n = total + own * mean, n + own
    return total / n if n else None


def measure_of(key: str) -> Measure:
    """The measure of *key*; if it is none of ours, one that is told by its key."""
    known = BY_KEY.get(key)
    return known or Measure(key, key, "See docs/measures.md.", NEITHER, noun=key)


class Table:
    """Every policy by every measure, from the comparison, or from the runs alone."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self._values: dict[tuple[str, str], Estimate] = {}
        self._differences: dict[tuple[str, str], Estimate] = {}
        for each in results.comparison:
            self._values[each.measure, each.policy] = each.value
            if each.difference is not None:
                self._differences[each.measure, each.policy] = each.difference
        if not results.comparison:
            self._read_runs()
        others = [key for key, _policy in self._values if key not in BY_KEY]
        listed = [*BY_KEY, *dict.fromkeys(others)]
        known = {key for key, _policy in self._values}
        self.measures = [measure_of(key) for key in listed if key in known]

    def _read_runs(self) -> None:
        for policy in self.results.policies:
            runs = self.results.of(policy)
            for key in BY_KEY:
                found = [value_of(run.metrics, key) for run in runs]
                values = [value for value in found if value is not None]
                if values:
                    mean = sum(values) / len(values)
                    self._values[key, policy] = Estimate(mean, n=len(values))

    def value(self, key: str, policy: str) -> Estimate | None:
        """What *policy* comes to."""
        return self._values.get((key, policy))

    def difference(self, key: str, policy: str) -> Estimate | None:
        """*policy* minus the reference, over the seeds that both have."""
        return self._differences.get((key, policy))

    def tells(self, measure: Measure) -> bool:
        """Whether a measure says anything here: not if it is 0 for everybody."""
        values = [self.value(measure.key, p) for p in self.results.policies]
        return any(value is not None and value.mean for value in values)


def listed(words: Sequence[str]) -> str:
    """Words as a sentence has them.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
