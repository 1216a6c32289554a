"""How fast single jobs are decided, and what a cluster costs in memory.

Run by ``make bench``. Every figure is preceded by a check that the decisions are right:
all jobs placed. Growth is compared inside one run; goals are printed beside it.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from ringleaf import Cluster, Job, Node, Placed, Product, Session, Settings, Statement
from ringleaf.model.settings import JobRequests
from ringleaf.policies.products import PRODUCTS

SIZES = (1_000, 10_000, 100_000)
REQUESTS = (1, 2, 4, 8)
BATCH, ROUNDS, ALIVE = 40, 51, 3
GOAL_RATE, GOAL_GROWTH, GOAL_MIB, GOAL_START_S = 20_000, 2.0, 300, 0.3
SEED = 910


def half_full(product: Product, n_nodes: int) -> Cluster:
    """A quarter of the nodes free, a quarter taken, half with any chips free."""
    random = np.random.default_rng(SEED)
    full = (1 << product.chips) - 1
    masks = random.integers(0, full, n_nodes, dtype=np.uint64, endpoint=True)
    kinds = random.integers(0, 4, n_nodes)
    frees = np.where(kinds == 0, full, np.where(kinds == 1, 0, masks)).tolist()
    return Cluster(
        Node(f"node-{i:06}", product, product.chips, free)
        for i, free in enumerate(frees)
    )


class Load:
    """Jobs that come to one cluster in rounds, while others, picked at random, end.

    Only the decisions are timed, including what they must learn of the jobs that
    ended. Jobs of the last few rounds stay, so that no round repeats another.
    """

    def __init__(self, session: Session, wanted: Sequence[Job]) -> None:
        self._session, self._wanted = session, wanted
        self._random = np.random.default_rng(SEED)
        self._alive = list[str]()
        self._seconds = list[float]()

    def round(self) -> None:
        """Decide one batch of jobs, then end as many as are too many."""
        number = len(self._seconds)
        jobs = [replace(job, name=f"{job.name}-{number}") for job in self._wanted]
        start = perf_counter()
        decisions = [self._session.decide(job) for job in jobs]
        self._seconds.append((perf_counter() - start) / len(jobs))
        assert all(isinstance(decision, Placed) for decision in decisions)
        self._alive += [job.name for job in jobs]
        self.end(keep=len(jobs) * ALIVE)

    def end(self, keep: int) -> None:
        """End all jobs but *keep* of them."""
        self._random.shuffle(self._alive)
        with Statement(self._session.cluster) as statement:
            for name in self._alive[keep:]:
                statement.release(name)
            statement.commit()
        del self._alive[keep:]

    def seconds_per_job(self) -> float:
        """The median of the rounds."""
        return median(self._seconds)


def seconds_per_job(sessions: Sequence[Session], wanted: Sequence[Job]) -> list[float]:
    """One cost a session; rounds take turns, so that noise hits all alike."""
    loads = [Load(session, wanted) for session in sessions]
    for _round in range(ROUNDS):
        for load in loads:
            load.round()
    for load in loads:
        load.end(keep=0)
    return [load.seconds_per_job() for load in loads]


def jobs_of(product: Product, requests: Sequence[int]) -> list[Job]:
    """A batch of jobs that ask for *requests* in turn."""
    return [Job(f"job-{i}", product, requests[i % len(requests)]) for i in range(BATCH)]


def bench_decisions(console: Console, key: str, sizes: Sequence[int]) -> bool:
    """One row a request; the last asks for all of them in turn."""
    product = PRODUCTS[key]
    table = Table("request", *(f"{n:,} nodes" for n in sizes), "growth", title=key)
    sessions = [Session(half_full(product, n)) for n in sizes]
    good = True
    for requests in [*((request,) for request in REQUESTS), REQUESTS]:
        jobs = jobs_of(product, requests)
        costs = seconds_per_job(sessions, jobs)
        growth = costs[-1] / costs[0]
        good &= 1 / costs[0] >= GOAL_RATE and growth <= GOAL_GROWTH
        name = ", ".join(map(str, requests))
        table.add_row(name, *(f"{1 / cost:,.0f}/s" for cost in costs), f"{growth:.2f}x")
    console.print(table)
    return good


def bench_gang(console: Console) -> None:
    """A gang of whole nodes, decided replica by replica."""
    settings = Settings(job_requests=JobRequests.PER_POD)
    session = Session(half_full(PRODUCTS["atlas-800t-a2"], SIZES[-1]), settings)
    table = Table("gang", "time", title=f"whole nodes of {SIZES[-1]:,}")
    for replicas in (16, 128, 1024):
        job = Job("gang", PRODUCTS["atlas-800t-a2"], 8, replicas)
        (seconds,) = seconds_per_job([session], [job])
        table.add_row(f"{replicas:,} x 8 chips", f"{seconds * 1e3:.1f} ms")
    console.print(table)


def peak_mib() -> int:
    """The peak memory of this process (getrusage would count its parent's too)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kib) // 1024


def memory() -> None:
    """In a process of its own: a large cluster, used by every request."""
    before = peak_mib()
    product = PRODUCTS["atlas-800-9000"]
    session = Session(half_full(product, SIZES[-1]))
    decisions = [session.decide(job) for job in jobs_of(product, REQUESTS)]
    assert all(isinstance(decision, Placed) for decision in decisions)
    print(before, peak_mib())


def bench_memory(console: Console) -> bool:
    """Whether a large cluster stays below its goal."""
    command = [sys.executable, __file__, "memory"]
    said = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    before, peak = map(int, said.stdout.split())
    console.print(
        f"{SIZES[-1]:,} nodes, four kinds of request: {peak} MiB at the peak, "
        f"{before} MiB of them the interpreter and its libraries"
    )
    return peak < GOAL_MIB


def bench_start(console: Console) -> bool:
    """Whether the command line starts fast enough."""
    command = [str(Path(sys.executable).with_name("ringleaf")), "--help"]
    times = []
    for _time in range(11):
        start = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        times.append(perf_counter() - start)
    console.print(f"ringleaf --help: {median(times):.2f} s, the median of {len(times)}")
    return median(times) < GOAL_START_S


def main() -> int:
    """Print every table, then whether the goals are met."""
    console = Console(highlight=False, width=88)
    met = {
        f"at least {GOAL_RATE:,} decisions/s at {SIZES[0]:,} nodes and growth of at "
        f"most {GOAL_GROWTH:g}x to {SIZES[-1]:,}": bench_decisions(
            console, "atlas-800-9000", SIZES
        )
    }
    for key in ("atlas-800t-a2", "atlas-800t-a3", "atlas-200t-a2-box16", "atlas-300i"):
        bench_decisions(console, key, SIZES)
    bench_gang(console)
    met[f"under {GOAL_MIB} MiB"] = bench_memory(console)
    met[f"start under {GOAL_START_S} s"] = bench_start(console)
    for goal, good in met.items():
        console.print(f"{'met   ' if good else 'MISSED'} {goal}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        memory()
    else:
        sys.exit(main())
