"""What simulating costs a job, and whether that grows with the number of jobs.

Run by ``make bench``, on a workload whose queues are stable. One run tells all: what a
job costs among the first, and among ten times as many. Costs are seconds of the
processor, taken job by thousand jobs; a figure is the median of these, so that other
work on the machine disturbs it little. With ``--jobs 1000000`` the run takes ten
minutes and more; with ``--philly FILE`` the whole trace is played, too.
"""

import argparse
import gc
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import process_time
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.table import Table

from ringleaf.baselines.registry import baseline
from ringleaf.cli.main import COLLECT_AFTER
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.metrics.cost import peak_memory_bytes
from ringleaf.simulator.sites import site
from ringleaf.simulator.traces import read_trace
from ringleaf.simulator.trial import Site, Trial, Workload
from ringleaf.simulator.workloads import workload

CLUSTER: Final = "leaf-spine-512"
PHILLY: Final = "leaf-spine-512:nodes=313"
"""As many nodes as the cluster had on which the trace was recorded."""
JOBS: Final = 50_000
LOAD: Final = 0.6
WINDOW: Final = 1_000
"""Jobs that are timed together."""
FEWEST: Final = 5_000
"""Jobs from which on a figure counts."""
GOAL_GROWTH, GOAL_BYTES, GOAL_PHILLY_S = 1.25, 1 << 30, 60.0


class Mark(Struct, frozen=True):
    """How far a run is: jobs that are over, seconds of the processor, memory."""

    jobs: int
    spent_s: float
    bytes: int


def play(place: Site, jobs: Workload) -> list[Mark]:
    """Marks along a run in which all jobs come to their end."""
    trial = Trial(site=place, workload=jobs)
    make = baseline("ringleaf")
    gc.collect()
    begun = process_time()
    engine = make(place.nodes, place.leaves, place.queues, trial.conf)
    clock = Clock(trial, engine, [RunMetrics()])
    marks = [Mark(0, 0.0, peak_memory_bytes())]
    while clock.step():
        if clock.tally.over >= marks[-1].jobs + WINDOW:
            spent = process_time() - begun
            marks.append(Mark(clock.tally.over, spent, peak_memory_bytes()))
    over = clock.finish().over
    assert over == jobs.n_jobs, f"{jobs.n_jobs - over} jobs are not over"
    return [*marks, Mark(over, process_time() - begun, peak_memory_bytes())]


def cost_ms(marks: list[Mark], after: int, until: int) -> float:
    """What a job costs beyond the first *after* up to *until*, in milliseconds."""
    inside = [each for each in marks if after <= each.jobs <= until]
    spans = [
        (b.spent_s - a.spent_s) / (b.jobs - a.jobs)
        for a, b in pairwise(inside)
        if b.jobs - a.jobs >= WINDOW
    ]
    return 1e3 * median(spans)


def sizes_up_to(jobs: int) -> list[int]:
    """Numbers of jobs, each ten times the one before.

    >>> sizes_up_to(1_000_000)
    [10000, 100000, 1000000]
    """
    sizes = [jobs]
    while sizes[0] // 10 >= FEWEST:
        sizes.insert(0, sizes[0] // 10)
    return sizes


def bench_growth(
    console: Console, jobs: int, name: str, load: float
) -> dict[str, bool]:
    """What a job costs among the first, and among ten times as many."""
    place = site(CLUSTER)
    marks = play(place, workload(name, place, seed=0, load=load, jobs=jobs))
    table = Table("jobs", "a job costs", "growth", "memory at most")
    costs: list[float] = []
    for after, until in pairwise([0, *sizes_up_to(jobs)]):
        costs.append(cost_ms(marks, after, until))
        peak = max(each.bytes for each in marks if each.jobs <= until)
        table.add_row(
            f"{after + 1:,} to {until:,}",
            f"{costs[-1]:.3f} ms",
            f"{costs[-1] / costs[0]:.2f}x",
            f"{peak >> 20} MiB",
        )
    console.print(f"{name} on {CLUSTER}, load {load}, {marks[-1].spent_s:.0f} s in all")
    console.print(table)
    return {
        f"a job costs at most {GOAL_GROWTH} times as much among many": max(costs)
        <= GOAL_GROWTH * costs[0],
        f"under {GOAL_BYTES >> 20:,} MiB": marks[-1].bytes < GOAL_BYTES,
    }


def bench_philly(console: Console, file: Path) -> dict[str, bool]:
    """The whole trace as it came, and moved together to a load of 0.9."""
    place, slowest = site(PHILLY), 0.0
    table = Table("Philly trace", "jobs", "in all", "a job costs", "memory at most")
    for load in (None, 0.9):
        begun = process_time()
        jobs = read_trace(str(file), place, "philly", load=load)
        last = play(place, jobs)[-1]
        spent = process_time() - begun
        slowest = max(slowest, spent)
        table.add_row(
            "as it came" if load is None else f"load {load}",
            f"{last.jobs:,}",
            f"{spent:.1f} s",
            f"{1e3 * spent / last.jobs:.3f} ms",
            f"{last.bytes >> 20} MiB",
        )
    console.print(table)
    return {f"the Philly trace in under {GOAL_PHILLY_S:g} s": slowest < GOAL_PHILLY_S}


def main() -> int:
    """Print the tables, then whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=JOBS, help="0 for none")
    parser.add_argument("--workload", default="kalos")
    parser.add_argument("--load", type=float, default=LOAD)
    parser.add_argument("--philly", type=Path, help="where the trace of Philly is")
    asked = parser.parse_args()
    console = Console(highlight=False, width=88)
    gc.set_threshold(COLLECT_AFTER)  # as the commands do
    met: dict[str, bool] = {}
    if asked.jobs:
        met |= bench_growth(console, asked.jobs, asked.workload, asked.load)
    if asked.philly:
        met |= bench_philly(console, asked.philly)
    for goal, good in met.items():
        console.print(f"{'met   ' if good else 'MISSED'} {goal}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
