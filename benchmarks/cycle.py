"""How fast the engine is: jobs that come one by one, jobs that wait, nothing at all.

Run by ``make bench``. Every event goes through ``Engine.handle`` on its own, with the
default configuration. Each figure is preceded by a check of what was decided.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from time import perf_counter

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from ringleaf import PRODUCTS, Job, Node
from ringleaf.cli.main import COLLECT_AFTER
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived, NodesChanged, TimerFired
from ringleaf.framework.instruction import Bind
from ringleaf.model.demand import Demand

SIZES = (1_000, 10_000)
IDLE_SIZES = (1_000, 10_000, 100_000)
N_SINGLE, N_GANGS, GANG = 10_000, 500, 20
BATCHES = 20
N_WAITING, CHANGES, IDLE = 10_000, 31, 201
GOAL_PODS_PER_S, GOAL_IDLE_MS = 5_000, 0.1
BOX = PRODUCTS["atlas-200t-a2-box16"]
COUNTED: Mapping[str, int] = {"cpu": 320_000, "memory": 2 << 50}
ASKED = Demand(resources=(("cpu", 8_000), ("memory", 32 << 40)))

Gauge = tuple[str, float, bool]
"""What was measured, the figure, whether the goal is met."""


def nodes(n_nodes: int, resources: Mapping[str, int] | None = None) -> Iterator[Node]:
    """Empty nodes of 16 chips."""
    for i in range(n_nodes):
        yield Node(f"node-{i:06}", BOX, 16, 0xFFFF, resources=resources or {})


def pods_per_second(engine: Engine, jobs: Sequence[Job]) -> float:
    """Pods bound in a second while *jobs* arrive one by one; all of them are placed.

    The median of twenty batches of them.
    """
    engine.handle(JobArrived(replace(jobs[0], name="first")), 0.0)
    rates = []
    step = len(jobs) // BATCHES
    for first in range(0, len(jobs), step):
        pods = 0
        start = perf_counter()
        for job in jobs[first : first + step]:
            for said in engine.handle(JobArrived(job), float(first)):
                pods += len(said.placements) if isinstance(said, Bind) else 0
        rates.append(pods / (perf_counter() - start))
        assert pods == step * jobs[0].replicas, "a job was not placed"
    return median(rates)


def bench_arrivals(console: Console) -> float:
    """One row a kind of job and what nodes count; the slowest of both together."""
    table = Table("jobs", "nodes count", *(f"{n:,} nodes" for n in SIZES))
    slowest = float("inf")
    for resources, demand, counts in (
        (None, Demand(), "chips"),
        (COUNTED, ASKED, "chips, CPU, memory"),
    ):
        singles = [Job(f"j{i}", BOX, 1, demand=demand) for i in range(N_SINGLE)]
        gangs = [Job(f"g{i}", BOX, 1, GANG, demand=demand) for i in range(N_GANGS)]
        both = dict.fromkeys(SIZES, 0.0)
        for words, jobs in (
            (f"{N_SINGLE:,} of one pod", singles),
            (f"{N_GANGS:,} gangs of {GANG}", gangs),
        ):
            rates = [pods_per_second(Engine(nodes(n, resources)), jobs) for n in SIZES]
            table.add_row(words, counts, *(f"{rate:,.0f} pods/s" for rate in rates))
            for size, rate in zip(SIZES, rates, strict=True):
                both[size] += sum(job.replicas for job in jobs) / rate
        pods = N_SINGLE + N_GANGS * GANG
        together = [pods / seconds for seconds in both.values()]
        table.add_row("together", counts, *(f"{r:,.0f} pods/s" for r in together))
        slowest = min(slowest, *together)
    console.print(table)
    return slowest


def timed(call: Callable[[], object], times: int) -> float:
    """The median time of a call, in milliseconds."""
    spent = []
    for _time in range(times):
        start = perf_counter()
        call()
        spent.append((perf_counter() - start) * 1e3)
    return median(spent)


def bench_waiting(console: Console) -> None:
    """One node changes while very many jobs wait that do not fit."""
    table = Table("waiting jobs", "that differ", *(f"{n:,} nodes" for n in SIZES))
    for kinds in (1, 10, 1_000):
        cells = []
        for n_nodes in SIZES:
            engine = full(n_nodes)
            for i in range(N_WAITING):
                kind = float(i % kinds)
                job = Job(f"w{i}", BOX, 16, 2 + i % 8, estimate_s=1e6 + kind)
                said = engine.handle(JobArrived(job), 0.0)
                assert not any(isinstance(each, Bind) for each in said)
            node = next(nodes(1))
            turns = iter(range(10 * CHANGES))

            def change(engine: Engine = engine, node: Node = node) -> None:
                free = 0xFFFF if next(turns) % 2 else 0xFFF0  # noqa: B023
                engine.handle(NodesChanged((replace(node, free=free),)), 1.0)

            cells.append(f"{timed(change, CHANGES):.2f} ms")
        table.add_row(f"{N_WAITING:,}", f"{kinds:,}", *cells)
    console.print(table)


def full(n_nodes: int) -> Engine:
    """An engine whose nodes are all taken but for the first."""
    taken = [replace(node, free=0) for node in nodes(n_nodes)]
    return Engine([replace(taken[0], free=0xFFFF), *taken[1:]])


def bench_idle(console: Console) -> float:
    """What a call costs when nothing has happened; the slowest comes back."""
    table = Table("", *(f"{n:,} nodes" for n in IDLE_SIZES))
    costs = []
    for n_nodes in IDLE_SIZES:
        engine = full(n_nodes)
        for i in range(100):
            engine.handle(JobArrived(Job(f"w{i}", BOX, 16, 2)), 0.0)
        costs.append(timed(lambda: engine.handle(TimerFired(), 1.0), IDLE))  # noqa: B023
    table.add_row("idle cycle, 100 jobs wait", *(f"{c * 1e3:.0f} µs" for c in costs))
    console.print(table)
    return max(costs)


def main() -> int:
    """Print the tables, then whether the goals are met."""
    console = Console(highlight=False, width=88)
    gc.set_threshold(COLLECT_AFTER)  # as the commands do
    rate = bench_arrivals(console)
    bench_waiting(console)
    idle = bench_idle(console)
    met = {
        f"at least {GOAL_PODS_PER_S:,} pods a second together": rate >= GOAL_PODS_PER_S,
        f"an idle cycle under {GOAL_IDLE_MS} ms": idle < GOAL_IDLE_MS,
    }
    for goal, good in met.items():
        console.print(f"{'met   ' if good else 'MISSED'} {goal}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
