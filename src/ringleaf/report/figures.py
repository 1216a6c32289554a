"""What the page's charts show, as plain values for its script.

``web/linechart.js``, ``web/rangechart.js`` and ``web/barchart.js`` say which keys they
read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ringleaf.report import chart
from ringleaf.report.contest import Contest
from ringleaf.report.duration import format_duration
from ringleaf.report.measures import Measure, MeasureTable, number, share, value_of
from ringleaf.report.results import Estimate, Results, RunResult
from ringleaf.simulator.metrics import SERIES

SIZES: Final = ("1", "2-4", "5-8", "9-64", "65-256", ">256")
KINDS: Final[Mapping[object, str]] = {
    share: "share",
    number: "number",
    format_duration: "duration",
}
"""How values are written -> what the script calls that."""

BLAMES: Final = {
    "capacity": "not enough chips free",
    "fragmentation": "enough free, but scattered",
    "rule": "a wiring or network rule",
    "quota": "the quota of the queue",
    "order": "behind other jobs",
}
"""Why jobs wait, in words; docs/measures.md defines each."""


class TimeSeries(NamedTuple):
    """A chart over time.

    Args:
        key: The column of the rows over time.
        title: Its name.
        unit: What the upright axis tells.
        about: What it means, and which way it is better.
        kind: How values are written.
        top: The top of the axis; None is what the lines need.

    """

    key: str
    title: str
    unit: str
    about: str
    kind: str = "number"
    top: float | None = None


LINES: Final = (
    TimeSeries("utilisation", "Utilization", "share of all chips",
         "Chips that jobs hold, also while they wait for links. Effective utilization "
         "in the table leaves that out.", "share", 1.0),
    TimeSeries("queue_length", "Queue length", "pending jobs", "Lower is better."),
    TimeSeries("conflicts", "Spine conflicts", "jobs, over all leaves",
         "Jobs beyond the first on a leaf's links to the spine: they slow each other "
         "down. Lower is better; switch affinity 1.0 promises 0."),
    TimeSeries("waiting_chips", "Queued demand (chips)",
         "chips that pending jobs ask for",
         "One gang of 1,024 chips weighs as much as 1,024 small jobs. Lower is "
         "better."),
    TimeSeries("fragmentation", "Stranded chips", "share of all chips",
         "Free chips where no usual pod fits. Lower is better.", "share"),
    TimeSeries("largest_gang_nodes", "Largest schedulable gang", "nodes",
         "The largest gang that would start at once under the network rules. Higher is "
         "better."),
)  # fmt: skip


def lines_of(results: Results, axis: chart.Axis) -> list[dict[str, Any]]:
    """Every chart over time that shows anything, of the lowest seed."""
    runs = [results.of(policy)[0] for policy in results.policies]
    found = []
    for line in LINES:
        column = SERIES.index(line.key)
        values = [chart.binned(run.series, column, axis.end) for run in runs]
        if any(np.nansum(each) for each in values):
            lines = [_rounded(each) for each in values]
            found.append(line._asdict() | {"lines": lines})
    return found


def _rounded(values: chart.Floats) -> list[float | None]:
    return [float(f"{v:.4g}") if np.isfinite(v) else None for v in values.tolist()]


# Wait time by size.


class WaitTimes(NamedTuple):
    """Wait times of jobs of one size under one policy."""

    n: float
    p50: float
    mean: float
    p95: float


def mean_of(runs: Iterable[RunResult], key: str) -> float | None:
    """The mean over runs of a value of their metrics."""
    found = [value_of(run.metrics, key) for run in runs]
    values = [value for value in found if value is not None]
    return sum(values) / len(values) if values else None


def spreads(results: Results) -> dict[tuple[str, str], WaitTimes]:
    """Size and policy -> how long such jobs wait, means over seeds."""
    found = {}
    for policy in results.policies:
        runs = results.of(policy)
        for size in SIZES:
            n, p50, mean, p95 = (
                mean_of(runs, f"wait_s.by_size.{size}.{key}")
                for key in ("n", "p50", "mean", "p95")
            )
            if n and p50 is not None and mean is not None and p95 is not None:
                found[size, policy] = WaitTimes(n, p50, mean, p95)
    return found


def waits_of(results: Results) -> dict[str, Any]:
    """Wait time by size of job: the mean, and p50 to p95."""
    found, policies = spreads(results), results.policies
    groups, rows = [], []
    for size in SIZES:
        own = [found.get((size, policy)) for policy in policies]
        known = [each for each in own if each is not None]
        if known:
            jobs = f"{max(each.n for each in known):,.0f} jobs"
            groups.append(
                {"title": size, "note": jobs, "values": [_range(each) for each in own]}
            )
        for policy, each in zip(policies, own, strict=True):
            if each is not None:
                rows.append([size, policy, *each])
    head = ["chips", "policy", "jobs", "wait_p50_s", "wait_mean_s", "wait_p95_s"]
    return {
        "key": "wait-time-by-size",
        "title": "Wait time by size of job",
        "kind": "duration",
        "groups": groups,
        "csv": [head, *rows],
    }


def _range(own: WaitTimes | None) -> dict[str, Any] | None:
    if own is None:
        return None
    told = [
        f"{key} {format_duration(getattr(own, key))}" for key in ("p50", "mean", "p95")
    ]
    return {"dot": own.mean, "low": own.p50, "high": own.p95, "tell": told}


# Why jobs wait.


def blames(results: Results) -> dict[str, list[float]]:
    """Policy -> jobs that wait on average, by cause, means over seeds."""
    return {
        policy: [_blamed(results.of(policy), blame) for blame in BLAMES]
        for policy in results.policies
    }


def _blamed(runs: Sequence[RunResult], blame: str) -> float:
    values = []
    for run in runs:
        window = run.metrics.get("window", {})
        span = window.get("to_s", 0.0) - window.get("from_s", 0.0)
        seconds = value_of(run.metrics, f"why.jobs.{blame}.seconds") or 0.0
        values.append(seconds / span if span > 0 else 0.0)
    return sum(values) / len(values)


def causes_of(results: Results) -> dict[str, Any]:
    """Pending jobs by what holds them back."""
    return {
        "key": "pending-jobs-by-cause",
        "title": "Pending jobs by cause, mean over time",
        "kind": "number",
        "parts": [*BLAMES.values()],
        "values": [*blames(results).values()],
    }


# The verdict.


def contest_plain(table: MeasureTable, contest: Contest) -> dict[str, Any]:
    """Every policy by one measure: its mean, and the interval of the difference."""
    measure, policies = contest.measure, table.results.policies
    own = [_placed(table, contest, policy) for policy in policies]
    rows = [
        [measure.key, policy, each["dot"], each["low"], each["high"]]
        for policy, each in zip(policies, own, strict=True)
        if each is not None
    ]
    return {
        "key": measure.key,
        "title": f"{measure.title}, all policies",
        "kind": KINDS.get(measure.written, "number"),
        "groups": [{"title": measure.title, "note": "", "values": own}],
        "csv": [["measure", "policy", "mean", "low", "high"], *rows],
    }


def _placed(
    table: MeasureTable, contest: Contest, policy: str
) -> dict[str, Any] | None:
    value = table.value(contest.measure.key, policy)
    if value is None:
        return None
    gap = table.difference(contest.measure.key, policy)
    low, high = _interval(contest.measure, contest.own, gap)
    told = [f"{contest.measure.title}: {contest.measure.written(value.mean)}"]
    if low is not None and high is not None:
        ends = " to ".join(map(contest.measure.written, (low, high)))
        told.append(f"difference to {table.results.reference}: ends at {ends}")
    return {"dot": value.mean, "low": low, "high": high, "tell": told}


def _interval(
    measure: Measure, own: float, gap: Estimate | None
) -> tuple[float | None, float | None]:
    """The interval of the difference, from the reference's value on, as possible."""
    if gap is None or gap.low is None or gap.high is None:
        return None, None
    return measure.cut(own + gap.low, own + gap.high)
