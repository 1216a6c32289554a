"""What to say of runs whose figures may mislead, each with a hint."""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, Final

from ringleaf.cli.simulation_request import SimulationRequest
from ringleaf.report.duration import format_duration
from ringleaf.report.measures import value_of
from ringleaf.simulator.workloads import SUITS, USUAL_LOAD, suited

LEAST_COUNTED: Final = 0.2
"""Share of the time in which jobs come that is counted, at least, without a warning."""


LONG_S: Final = 86400.0
"""Where jobs wait longer on average, the workload does not suit the cluster."""
FEW: Final = 3
"""A size class is judged by at least this many jobs, the mean over runs."""
CLASSES: Final = {
    (">64", (">256", "65-256")): "gangs > 64 chips",
    ("9-64", ("9-64",)): "jobs of 9 to 64 chips",
    ("5-8", ("5-8",)): "jobs of 5 to 8 chips",
    ("2-4", ("2-4",)): "jobs of 2 to 4 chips",
}
"""Sizes of jobs and their buckets, the largest first, and what they are called."""


def warnings_on(
    measured: Sequence[Sequence[dict[str, Any]]],
    load: float,
    chips: int,
    wanted: SimulationRequest,
) -> list[str]:
    """Why the figures of runs may mislead, a sentence each with a hint.

    Args:
        measured: What the runs of every policy come to.
        load: The offered load.
        chips: Those of the cluster.
        wanted: What was asked for.

    """
    every = [each for runs in measured for each in runs]
    found = (
        on_window(every[0]["window"]),
        on_idle(every, load),
        on_long(measured, load, chips, wanted),
    )
    return [text for text in found if text]


def on_window(window: dict[str, float]) -> str:
    """What to say where little of the time in which jobs come is counted."""
    counted, comes = window["to_s"] - window["from_s"], window["to_s"]
    if counted >= LEAST_COUNTED * comes:
        return ""
    return (
        f"only {format_duration(counted)} of the {format_duration(comes)} in which "
        "jobs arrive are "
        "counted, as few of them arrive early; hint: more --jobs, or --load"
    )


def on_idle(measured: Sequence[dict[str, Any]], load: float) -> str:
    """What to say where no job ever waited: the run says nothing about scheduling."""
    if any(
        each["wait_s"]["all"]["max"] or each["jobs"]["unstarted"] for each in measured
    ):
        return ""
    return (
        f"no job waited, so wait time and utilization say nothing about the "
        f"policy; hint: a higher load, as --load {_higher(load)}, or a smaller "
        "--cluster"
    )


def on_long(
    measured: Iterable[Sequence[dict[str, Any]]],
    load: float,
    chips: int,
    wanted: SimulationRequest,
) -> str:
    """What to say where jobs, or those of the largest size, wait for days.

    They do so under every policy.
    Jobs that never start count as pending until the last job ends, as in the tables,
    where another policy starts all jobs. Elsewhere they may be a few that no policy can
    start, and are not counted.

    Args:
        measured: What the runs of every policy come to.
        load: The offered load.
        chips: Those of the cluster.
        wanted: What was asked for.

    """
    every = [[*runs] for runs in measured]
    never = [any(each["jobs"]["unstarted"] for each in runs) for runs in every]
    waits = "wait_s" if all(never) or not any(never) else "pending_s"
    which, wait_s = "jobs", min(_mean_wait(runs, waits) for runs in every)
    if wait_s <= LONG_S:
        which, wait_s = _largest_wait(every, waits)
    if wait_s <= LONG_S:
        return ""
    several = len(every) > 1
    told = f"{format_duration(wait_s)} or more" if several else format_duration(wait_s)
    under = " with every policy" if several else ""
    hints = _suiting(load, chips, wanted)
    return (
        f"{which} wait {told} on average{under}, so the workload does not suit "
        "the cluster: the queue grows throughout the run, or single jobs request most "
        f"of the chips; hint: {', '.join(hints)}"
    )


def _suiting(load: float, chips: int, wanted: SimulationRequest) -> list[str]:
    """What would suit a cluster of so many chips better.

    A lower load does not help where single jobs request a good part of the chips.
    """
    found, own = [], "your own jobs with --trace"
    lower = min(round(load - 0.3, 1), USUAL_LOAD)
    is_preset = wanted.trace is None
    suits = SUITS.get(wanted.workload)
    if is_preset and (suits is None or suits.chips > chips):
        found.append(f"--workload {suited(chips)}, which suits {chips:,} chips")
    elif lower > 0:
        found.append(f"a lower load, as --load {lower}")
        own = f"another --workload, or {own}"
    found.append("a larger --cluster")
    return [*found, own] if is_preset else found


def _mean_wait(runs: Iterable[dict[str, Any]], waits: str) -> float:
    return fmean(each[waits]["all"]["mean"] or 0.0 for each in runs)


def _largest_wait(
    measured: Iterable[Sequence[dict[str, Any]]], waits: str
) -> tuple[str, float]:
    """The largest size of which there are a few jobs, and their shortest mean wait."""
    for (size, buckets), which in CLASSES.items():
        counts, means = [], []
        for runs in measured:
            sizes = [each[waits]["by_size"] for each in runs]
            counts.append(fmean(_jobs_of(each, buckets) for each in sizes))
            known = [value_of(e, f"{waits}.by_size.{size}.mean") for e in runs]
            means.append(fmean([each for each in known if each is not None] or [0.0]))
        if min(counts) >= FEW:
            return which, min(means)
    return "jobs", 0.0


def _jobs_of(by_size: dict[str, Any], buckets: Sequence[str]) -> int:
    return sum(by_size[each]["n"] for each in buckets if each in by_size)


def _higher(load: float) -> str:
    """A load at which jobs are likely to wait.

    >>> _higher(0.3), _higher(0.9), _higher(1.4)
    ('0.9', '1.2', '1.7')
    """
    return f"{0.9 if load < 0.6 else load + 0.3:.1f}"  # noqa: PLR2004
