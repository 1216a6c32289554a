"""Every baseline in a loss system: what is allocated, what is refused, what conflicts.

``python benchmarks/baselines.py`` prints two tables in Markdown; docs/baselines.md has
them. Jobs arrive at random times and stay for a random while; a job that finds no place
at once is lost, so there is no queue and what is measured is the choice of nodes alone.
The load is 1.1 times what there is.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from statistics import mean
from time import perf_counter
from typing import NamedTuple

import numpy as np

from ringleaf import PRODUCTS, Cluster, Job, Node, Placed, Settings, Statement
from ringleaf.baselines.engine import BaselineSession
from ringleaf.baselines.registry import BASELINES, DEPLOYED
from ringleaf.framework.session import Session
from ringleaf.model.job_labels import Schema

LOAD = 1.1
WARM_UP = 0.2
OLD, A2 = PRODUCTS["atlas-800-9000"], PRODUCTS["atlas-800t-a2"]
CHIP_NODES, LEAF_NODES = 256, 512
SMALL = (1, 2, 4, 8)
"""Chips of jobs, each as frequent as the others."""
GANGS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Chips of jobs; every size asks for the same share of all chips."""
WIDE = (1, 2, 4, 8, 16, 32, 64)
"""Nodes of gangs under leaves; every size asks for the same share of all nodes."""
LEAF_SIZES = (4, 8, 16)

CHIP_POLICIES = [name for name in BASELINES if name not in ("cp-sat", *DEPLOYED)]
LEAF_POLICIES = [
    *("random", "best-fit", "volcano-hypernode", "kueue-tas", "hived"),
    *("vendor-2.0", "vendor-1.0", "ringleaf", "jigsaw", "whole-leaves"),
]


class Outcome(NamedTuple):
    """One run."""

    allocated: float
    accepted: float
    """Of the large jobs, by number."""
    torn: float
    """Pods that cross rings, of 1,000."""
    conflicts: float
    """Jobs across leaves that share one with another when they start."""
    decision_ms: float


class Loss:
    """A cluster to which jobs come that do not wait."""

    def __init__(self, name: str, nodes: Iterable[Node], seed: int) -> None:
        self.cluster = Cluster(nodes)
        chooser = BASELINES[name].chooser
        self.session = Session(self.cluster, Settings())
        if chooser is not None:
            self.session = BaselineSession(self.cluster, Settings(), chooser(seed))
        self.pods = self.torn = self.crossing = self.conflicts = 0
        self.seconds: list[float] = []

    def comes(self, job: Job) -> bool:
        """Whether *job* finds a place."""
        began = perf_counter()
        found = self.session.decide(job, hints=False)
        self.seconds.append(perf_counter() - began)
        if not isinstance(found, Placed):
            return False
        width = job.product.width
        for pod in found.placements:
            self.pods += 1
            rings = {chip // width for chip in pod.chips}
            self.torn += len(pod.chips) <= width and len(rings) > 1
        at = [self.cluster.index[pod.node] for pod in found.placements]
        leaves = np.unique(self.cluster.leaf[at])
        if len(leaves) > 1:
            self.crossing += 1
            self.conflicts += bool((self.cluster.uplinks.crossing[leaves] > 1).any())
        return True

    def goes(self, name: str) -> None:
        """A job ends."""
        with Statement(self.cluster) as statement:
            statement.release(name)
            statement.commit()

    @property
    def used(self) -> int:
        """Chips that are held."""
        return int(np.bitwise_count(self.cluster.taken).sum())


def played(
    loss: Loss, jobs: Sequence[Job], gaps: Sequence[float], stays: Sequence[float]
) -> Iterator[tuple[float, int, bool, Job]]:
    """Jobs as they come: when, what is used before, whether they stay, which."""
    now, ends = 0.0, list[tuple[float, str]]()
    for job, gap, stay in zip(jobs, gaps, stays, strict=True):
        now += gap
        while ends and ends[0][0] <= now:
            loss.goes(heappop(ends)[1])
        used = loss.used
        placed = loss.comes(job)
        if placed:
            heappush(ends, (now + stay, job.name))
        yield now, used, placed, job


def run(  # noqa: PLR0917 - what a run depends on
    name: str,
    nodes: Callable[[], list[Node]],
    make: Callable[[str, int], Job],
    sizes: Sequence[int],
    large: int,
    arrivals: int,
    seed: int,
) -> Outcome:
    """One policy on one stream of jobs; the stream is the same for all policies."""
    draw = np.random.default_rng(np.random.SeedSequence((seed, len(sizes))))
    weights = np.ones(len(sizes)) if sizes is SMALL else 1 / np.array(sizes)
    drawn = draw.choice(sizes, arrivals, p=weights / weights.sum())
    jobs = [make(f"j{i:06}", int(size)) for i, size in enumerate(drawn)]
    chips = sum(node.chips for node in nodes())
    asked = mean(job.chips * job.replicas for job in jobs)
    gaps = draw.exponential(asked / (LOAD * chips), arrivals)
    stays = draw.exponential(1.0, arrivals)
    loss = Loss(name, nodes(), seed)
    skip = int(WARM_UP * arrivals)
    area = span = last = 0.0
    came = stayed = 0
    steps = played(loss, jobs, gaps.tolist(), stays.tolist())
    for number, (now, used, placed, job) in enumerate(steps):
        if number > skip:
            area += used * (now - last)
            span += now - last
            big = job.chips * job.replicas >= large
            came += big
            stayed += big and placed
        last = now
    assert loss.pods, name
    return Outcome(
        area / span / chips,
        stayed / max(1, came),
        1000 * loss.torn / loss.pods,
        loss.conflicts / max(1, loss.crossing),
        1000 * mean(loss.seconds),
    )


def flat() -> list[Node]:
    """Nodes of two rings, under no leaf."""
    return [Node(f"n{i:04}", OLD, 8, 0xFF) for i in range(CHIP_NODES)]


def of_chips(name: str, chips: int) -> Job:
    """A job of so many chips, in whole nodes above eight."""
    return Job(name, OLD, min(chips, 8), max(1, chips // 8))


def of_nodes(name: str, nodes: int) -> Job:
    """A gang of so many nodes that asks for leaves."""
    return Job(name, A2, 8, nodes, tor_affinity=Schema.LARGE_MODEL)


def under(leaf_size: int) -> Callable[[], list[Node]]:
    """Nodes under leaves."""

    def made() -> list[Node]:
        return [
            Node(
                f"n{i:04}",
                A2,
                8,
                0xFF,
                leaf=f"L{i // leaf_size:03}",
                slot=i % leaf_size,
            )
            for i in range(LEAF_NODES)
        ]

    return made


def over_seeds(outcomes: Iterable[Outcome]) -> Outcome:
    """The means."""
    return Outcome(*map(mean, zip(*outcomes, strict=True)))


def chip_table(names: Iterable[str], arrivals: int, seeds: Iterable[int]) -> None:
    """Print how packers do inside nodes."""
    print(
        "| policy | 1 to 8 chips: allocated (of 8 accepted) | to 128 chips: "
        "allocated (above 8 accepted) | pods across rings, of 1,000 | ms |"
    )
    print("|---|---|---|---|---|")
    for name in names:
        small, gangs = (
            over_seeds(
                run(name, flat, of_chips, sizes, large, arrivals, seed)
                for seed in seeds
            )
            for sizes, large in ((SMALL, 8), (GANGS, 9))
        )
        print(
            f"| `{name}` | {small.allocated:.3f} ({small.accepted:.3f}) "
            f"| {gangs.allocated:.3f} ({gangs.accepted:.3f}) "
            f"| {small.torn:.0f} | {small.decision_ms:.2f} |",
            flush=True,
        )


def leaf_table(names: Iterable[str], arrivals: int, seeds: Iterable[int]) -> None:
    """Print how rules do under leaves."""
    print("\n| policy | leaves of 4: allocated / conflicts | of 8 | of 16 | ms |")
    print("|---|---|---|---|---|")
    for name in names:
        found = [
            over_seeds(
                run(name, under(size), of_nodes, WIDE, 9, arrivals, seed)
                for seed in seeds
            )
            for size in LEAF_SIZES
        ]
        each = (f"{one.allocated:.3f} / {one.conflicts:.3f}" for one in found)
        cells = " | ".join(each)
        print(f"| `{name}` | {cells} | {found[0].decision_ms:.2f} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arrivals", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--table", choices=("chips", "leaves"))
    parser.add_argument("policies", nargs="*", help="all of them unless some are named")
    given = parser.parse_args()
    seeds = range(given.seeds)
    print(f"{given.arrivals} arrivals, {given.seeds} seeds, load {LOAD}\n")
    if given.table != "leaves":
        chip_table(given.policies or CHIP_POLICIES, given.arrivals, seeds)
    if given.table != "chips":
        leaf_table(given.policies or LEAF_POLICIES, given.arrivals, seeds)


if __name__ == "__main__":
    main()
