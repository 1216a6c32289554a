"""The measures that reports tell, in words and units that a stranger understands."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import isfinite
from typing import Any, Final

from msgspec import Struct

from ringleaf.report.duration import format_duration
from ringleaf.report.results import Estimate, Results

LARGE: Final = ">64"
"""A size that is told besides the buckets: gangs of more than 64 chips."""
_LARGE: Final = ("65-256", ">256")
NONE: Final = "\N{EN DASH}"
SMALL, MANY = 1.0, 1000
"""Below and above which numbers have other digits."""


class Better(StrEnum):
    """Which way a measure is better."""

    UP = "more"
    DOWN = "less"
    NEITHER = ""


def share(value: float) -> str:
    """A share in percent.

    >>> share(0.8764), share(0.002), share(0.00012), share(0.0)
    ('87.6 %', '0.20 %', '0.012 %', '0 %')
    """
    percent = 100 * value
    if percent == 0:
        return "0 %"
    if abs(percent) >= SMALL:
        return f"{percent:.1f} %"
    return f"{percent:.2f} %" if abs(percent) >= SMALL / 10 else f"{percent:.2g} %"


def number(value: float) -> str:
    """A number with three digits or more that matter.

    >>> number(0.0), number(0.1234), number(12.345), number(12345.6)
    ('0', '0.123', '12.3', '12,346')
    """
    if abs(value) >= MANY:
        return f"{value:,.0f}"
    return f"{value:.3g}"


NEAR_ZERO: Final = {share: 0.0005, number: 0.005, format_duration: 0.1}
"""Smaller values say nothing but that there is hardly anything."""


def brief(value: float, written: Callable[[float], str]) -> str:
    """A value on a card, where only its size matters.

    >>> brief(0.00012, share), brief(0.0042, number)
    ('about 0 %', 'about 0')
    >>> brief(0.02, format_duration)
    'about 0 s'
    >>> brief(0.0, number), brief(0.208, number)
    ('0', '0.208')
    """
    if value and abs(value) < NEAR_ZERO.get(written, 0.0):
        return f"about {written(0.0)}"
    return written(value)


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
        title: Its usual name.
        about: What it means, in a sentence.
        better: Which way it is better.
        written: How its values are written.
        noun: Its name in the middle of a sentence.
        short: Its name over a narrow column, in lines; empty is the title.
        least: The lowest value that is possible.

    """

    key: str
    title: str
    about: str
    better: Better
    written: Callable[[float], str] = number
    noun: str = ""
    short: str = ""
    least: float = 0.0

    def cut(self, low: float, high: float) -> tuple[float, float]:
        """An interval without what is not possible; no share is above 1.

        >>> measure_of("bounded_slowdown.all.mean").cut(-0.5, 7.5)
        (1.0, 7.5)
        >>> measure_of("use.utilisation").cut(-0.5, 7.5)
        (0.0, 1.0)
        """
        most = 1.0 if self.written is share else float("inf")
        return max(self.least, low), min(most, high)

    @property
    def head(self) -> str:
        """Its name over a column, broken into lines."""
        return self.short or self.title.replace(" ", "\n")


UP, DOWN, NEITHER = Better.UP, Better.DOWN, Better.NEITHER

MEASURES: Final = (
    Measure("use.utilisation", "Utilization",
            "Share of all chips that jobs hold, mean over time, also while they wait "
            "for links: effective utilization compares policies.", NEITHER, share,
            "utilization"),
    Measure("use.effective_utilisation", "Effective utilization",
            "Utilization, with jobs that share links to the spine counted as slower.",
            UP, share, "effective utilization"),
    Measure("chips.fragmentation", "Stranded chips",
            "Free chips that no usual pod can use, as a share of all chips.", DOWN,
            share, "stranded chips"),
    Measure("leaves.conflicts", "Spine conflicts",
            "Over all leaves, jobs beyond the first that use its links to the spine, "
            "mean over time.", DOWN, number, "spine conflicts"),
    Measure("leaves.at_risk_share_of_crossing", "Gangs that shared a leaf's links",
            "Share of the gangs across leaves that ever shared a leaf with another.",
            DOWN, share, "gangs that shared a leaf's links", "Gangs\nsharing\nlinks"),
    Measure("wait_s.all.mean", "Wait time (mean)",
            "From the submission of a job to its start, mean over jobs.", DOWN,
            format_duration, "mean wait time", "Wait\nmean"),
    Measure("wait_s.all.p50", "Wait time (p50)",
            "Half of the jobs wait longer than this.", DOWN, format_duration,
            "median wait time", "Wait\np50"),
    Measure("wait_s.all.p95", "Wait time (p95)",
            "One job in twenty waits longer than this.", DOWN, format_duration,
            "p95 wait time", "Wait\np95"),
    Measure("wait_s.all.p99", "Wait time (p99)",
            "One job in a hundred waits longer than this.", DOWN, format_duration,
            "p99 wait time", "Wait\np99"),
    Measure("wait_s.by_size.>64.mean", "Wait time, gangs > 64 chips (mean)",
            "From submission to start, mean over jobs of more than 64 chips.", DOWN,
            format_duration, "mean wait time of gangs > 64 chips", "Wait\n> 64 chips"),
    Measure("wait_s.by_size.>256.mean", "Wait time, gangs > 256 chips (mean)",
            "From submission to start, mean over jobs of more than 256 chips.", DOWN,
            format_duration, "mean wait time of gangs > 256 chips",
            "Wait\n> 256 chips"),
    Measure("wait_s.by_size.1.mean", "Wait time, 1-chip jobs (mean)",
            "From submission to start, mean over jobs of one chip.", DOWN,
            format_duration,
            "mean wait time of 1-chip jobs", "Wait\n1 chip"),
    Measure("pending_s.all.mean", "Wait time of all jobs (mean)",
            "As the mean wait time; jobs that never start count as pending until the "
            "last job ends.", DOWN, format_duration, "mean wait time of all jobs",
            "Wait\nall jobs"),
    Measure("pending_s.by_size.>64.mean", "Wait time of all gangs > 64 chips (mean)",
            "The same, mean over jobs of more than 64 chips.", DOWN, format_duration,
            "mean wait time of all gangs > 64 chips", "Wait, all\n> 64 chips"),
    Measure("starvation.max_wait_s", "Wait time, largest gangs (max)",
            "The longest wait of a job of more than a quarter of the cluster.", DOWN,
            format_duration, "longest wait time of the largest gangs", "Longest\nwait"),
    Measure("bounded_slowdown.all.mean", "Slowdown",
            "Time from submission to end over the time a job runs alone; 1 is ideal.",
            DOWN, number, "slowdown", least=1.0),
    Measure("jct_s.all.mean", "Job completion time (mean)",
            "From submission to end, mean over jobs.", DOWN, format_duration,
            "mean job completion time", "JCT\nmean"),
    Measure("work.makespan_s", "Makespan",
            "From the first submission to the last end.", DOWN, format_duration,
            "makespan"),
    Measure("leaves.share_of_gangs", "Gangs across leaves",
            "Share of the jobs on several nodes that are under several leaves.", DOWN,
            share, "gangs across leaves"),
    Measure("leaves.avoidable", "Gangs across leaves, avoidable",
            "Jobs under several leaves that would fit under one.", DOWN, number,
            "avoidable gangs across leaves"),
    Measure("superpods.split_blocks", "Split blocks",
            "Blocks that should be in one SuperPoD and are not.", DOWN, number,
            "split blocks"),
    Measure("chips.ring_violations_per_1000_pods", "Pods across rings, per 1,000",
            "Pods that would fit into one ring of chips, and are not in one.", DOWN,
            number, "pods across rings", "Across\nrings per\n1,000 pods"),
    Measure("nodes.largest_gang_of_free.1.0", "Largest schedulable gang",
            "The largest gang that the network rules allow to start, as a share of "
            "the free nodes.", UP, share, "largest schedulable gang"),
    Measure("why.frag_wait_share", "Head of queue blocked by fragmentation",
            "Share of the time in which the oldest pending job waits although as many "
            "chips as it requests are free.", DOWN, share,
            "time in which fragmentation blocks the head of the queue"),
    Measure("regret.mean", "Regret",
            "Additional chips that an exact solver would allocate to pending jobs, as "
            "a share of its allocation.", DOWN, share, "regret"),
    Measure("faults.chip_hours_lost_to_faults", "Chip-hours lost to faults",
            "Work that is done again after a fault.", DOWN, number,
            "chip-hours lost to faults"),
    Measure("faults.recovery_s.mean", "Recovery time (mean)",
            "From a fault to when the job has all its pods again.", DOWN,
            format_duration,
            "mean recovery time"),
    Measure("faults.share_in_place", "Pods restored in place",
            "Share of the pods lost to faults that returned to their node.", UP,
            share, "pods restored in place"),
    Measure("faults.evictions", "Evictions",
            "Jobs that were evicted for other jobs.", DOWN, number, "evictions"),
    Measure("jobs.unstarted", "Jobs never started",
            "Jobs that are still pending at the end.", DOWN, number,
            "jobs never started", "Never\nstarted"),
)  # fmt: skip
"""What tables tell, in this order; docs/measures.md defines each."""

BY_KEY: Final = {measure.key: measure for measure in MEASURES}

ALL_JOBS: Final = {
    "wait_s.all.mean": "pending_s.all.mean",
    "wait_s.by_size.>64.mean": "pending_s.by_size.>64.mean",
}
"""Measures of jobs that start -> the same of all jobs, for comparisons."""
OF_STARTED: Final = (
    *("wait_s.", "jct_s.", "bounded_slowdown.", "work.makespan_s"),
    "starvation.",
)
"""Measures that leave out jobs that never start, or count them to an end of their own,
begin so."""


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
    """The measure of *key*; for an unknown key, one that is named by its key."""
    known = BY_KEY.get(key)
    return known or Measure(key, key, "See docs/measures.md.", NEITHER, noun=key)


class MeasureTable:
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
        self.unstarted = {
            policy: value.mean
            for policy in results.policies
            if (value := self.value("jobs.unstarted", policy)) is not None
            and value.mean
        }
        """Policy -> jobs that never start under it, where there are some."""
        if not self.unstarted:  # then they repeat others
            for key in ALL_JOBS.values():
                for policy in results.policies:
                    self._values.pop((key, policy), None)
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
        """The value of *policy*."""
        return self._values.get((key, policy))

    def difference(self, key: str, policy: str) -> Estimate | None:
        """*policy* minus the reference, over the seeds that both have."""
        return self._differences.get((key, policy))

    def compared(self, key: str) -> str:
        """The measure to compare policies by instead of *key*, if all jobs count."""
        other = ALL_JOBS.get(key, key)
        known = self.value(other, self.results.reference) is not None
        return other if known else key

    def of_same_jobs(self, key: str, policy: str) -> bool:
        """Whether the values of *policy* and the reference count the same jobs.

        They do not, where one of them leaves out jobs that never start. A measure that
        another one stands for is no comparison then either.
        """
        if not self.unstarted or not key.startswith(OF_STARTED):
            return True
        own = self.results.reference in self.unstarted
        return not own and policy not in self.unstarted and self.compared(key) == key

    def tells(self, measure: Measure) -> bool:
        """Whether a measure says anything here: not if it is 0 for every policy."""
        values = [self.value(measure.key, p) for p in self.results.policies]
        return any(value is not None and value.mean for value in values)


def listed(words: Sequence[str]) -> str:
    """Words as a sentence has them.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
