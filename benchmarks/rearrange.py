"""What a rearrangement costs and gains, and how long it takes to plan.

Run by ``make bench``. A cluster of 1,024 nodes under leaves of 32 is fragmented by a
churn: for three days jobs come and go, most of them smaller than a node, and nearly all
chips are in use. Then fewer come, and in the gaps that the others leave a gang of 256
nodes finds no place: it crosses leaves under the rules of foundation jobs only. The
same trial is played with the action ``rearrange`` and without it; jobs save their work
every half an hour and restart within a minute. Each figure is preceded by a check of
what was decided.
"""

import gc
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from time import perf_counter
from typing import Final, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from ringleaf import PRODUCTS, Job, Node
from ringleaf.actions.moves import MovePlan, NoMoves
from ringleaf.actions.propose import propose
from ringleaf.baselines.registry import baseline
from ringleaf.cli.main import COLLECT_AFTER
from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine.engine import Engine
from ringleaf.framework.instruction import Evict, Instruction, Report, Verdict
from ringleaf.model.job_labels import Schema
from ringleaf.model.moving import Moving
from ringleaf.model.placement import Placement
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.trial import JobSpec, SchedulingEngine, Site, Trial, Workload

A2: Final = PRODUCTS["atlas-800t-a2"]
NODES, PER_LEAF, GANG = 1024, 32, 256
CHIPS: Final = 8
HOUR_S, DAY_S = 3600.0, 86400.0
BUSY_S: Final = 3 * DAY_S
"""How long nearly all chips are in use."""
CHURN_S: Final = BUSY_S + 8 * HOUR_S
"""When the gang arrives."""
WATCHED_S: Final = 3 * DAY_S
"""How long is looked on afterwards; jobs go on coming."""
BUSY: Final = 0.95
"""The load before fewer jobs come."""
GANG_S: Final = 8 * HOUR_S
LOADS: Final = (0.66, 0.7)
SEEDS: Final = (0, 1, 2, 3)
PLAYED: Final = (0, 2)
"""Seeds of which the whole trial is played, with the action and without it."""
SIZES: Final = ((1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 4))
"""Chips of a pod, and pods."""
WEIGHTS: Final = (0.3, 0.2, 0.2, 0.15, 0.1, 0.05)
MOVING: Final = Moving(60.0, checkpoint_s=1800.0)
GOAL_PLAN_S, GOAL_SHARE = 2.0, 0.1


def configured(actions: str = "enqueue, allocate, backfill") -> Conf:
    """A configuration with these *actions*."""
    moves = {"name": "rearrange", "arguments": {"moves-per-hour": 100}}
    given: dict[str, object] = {"actions": actions}
    if "rearrange" in actions:
        given["configurations"] = [moves]
    found = read_conf(given)
    assert isinstance(found, Conf)
    return found


def site() -> Site:
    """The cluster, empty."""
    full = (1 << CHIPS) - 1
    nodes = (
        Node(
            f"n{i:04}",
            A2,
            CHIPS,
            full,
            leaf=f"leaf{i // PER_LEAF:02}",
            slot=i % PER_LEAF,
        )
        for i in range(NODES)
    )
    return Site("churned", tuple(nodes))


def job_specs(load: float, seed: int) -> Iterator[JobSpec]:
    """The jobs of the churn, and the gang."""
    draw = np.random.default_rng([seed, 7])
    mean_chips = sum(w * c * n for w, (c, n) in zip(WEIGHTS, SIZES, strict=True))
    median_s, spread = 4 * HOUR_S, 1.5
    mean_s = median_s * float(np.exp(spread**2 / 2))
    gap_s = mean_chips * mean_s / (NODES * CHIPS)
    at, number, gang_at = 0.0, 0, CHURN_S
    while at < CHURN_S + WATCHED_S:
        chips, pods = SIZES[int(draw.choice(len(SIZES), p=WEIGHTS))]
        runs_s = float(np.clip(draw.lognormal(np.log(median_s), spread), 60, 7 * DAY_S))
        if gang_at is not None and at >= gang_at:
            large = Schema.LARGE_MODEL
            gang = Job("gang", A2, CHIPS, GANG, tor_affinity=large, created=at)
            yield JobSpec(gang, at, GANG_S)
            gang_at = float("inf")
        job = Job(
            f"job-{number:06}",
            A2,
            chips,
            pods,
            tor_affinity=Schema.LARGE_MODEL if pods > 1 else None,
            created=at,
            moving=MOVING,
        )
        yield JobSpec(job, at, runs_s)
        number += 1
        at += float(draw.exponential(gap_s / (BUSY if at < BUSY_S else load)))


def trial(load: float, seed: int, conf: Conf) -> Trial:
    """The churn and the gang, under *conf*."""
    jobs = Workload("churn", "made up", partial(job_specs, load, seed), 0, CHURN_S)
    return Trial(site(), jobs, conf, seed=seed)


class Watch:
    """Notes when the gang arrives and starts, and what is moved for it."""

    def __init__(self) -> None:
        self.arrived = self.started = -1.0
        self.moves = 0
        self.told = ""
        self.lost_chip_s = 0.0

    def begin(self, trial: Trial, scheduler: SchedulingEngine) -> None:
        """A run begins."""

    def passes(self, since: float, now: float) -> None:
        """Time passes."""

    def arrives(self, spec: JobSpec, now: float) -> None:
        """A job arrives."""
        if spec.job.name == "gang":
            self.arrived = now

    def starts(
        self, spec: JobSpec, _placements: Sequence[Placement], now: float
    ) -> None:
        """Pods start."""
        if spec.job.name == "gang" and self.started < 0:
            self.started = now

    def stops(self, spec: JobSpec, pods: Sequence[int], why: str, now: float) -> None:
        """Pods are gone."""

    def loses(self, spec: JobSpec, seconds: float, _now: float) -> None:
        """Work of a moved job is lost: nothing else ends jobs here."""
        self.lost_chip_s += seconds * spec.job.chips * spec.job.replicas

    def ends(self, spec: JobSpec, now: float) -> None:
        """A job is over."""

    def says(self, said: Instruction, _now: float) -> None:
        """The engine has spoken."""
        if isinstance(said, Evict):
            self.moves += 1
        elif isinstance(said, Report) and said.verdict is Verdict.REARRANGES:
            self.told = said.message

    def finish(self, now: float) -> None:
        """Nothing more happens."""


class Outcome(NamedTuple):
    """What became of the gang."""

    wait_s: float
    moves: int
    lost_chip_s: float


def played(load: float, seed: int, conf: Conf) -> Outcome:
    """The trial, until the gang has started or the end."""
    watch, given = Watch(), trial(load, seed, conf)
    make = baseline("ringleaf")
    engine = make(given.site.nodes, given.site.leaves, given.site.queues, conf)
    clock = Clock(given, engine, [watch])
    until = CHURN_S + WATCHED_S
    while watch.started < 0 and clock.step(until):
        pass
    ended = watch.started if watch.started >= 0 else until
    return Outcome(ended - watch.arrived, watch.moves, watch.lost_chip_s)


def planned(load: float, seed: int) -> tuple[float, MovePlan | NoMoves]:
    """How long a plan takes at the arrival of the gang, and the plan, if any."""
    watch, given = Watch(), trial(load, seed, configured())
    engine = Engine(given.site.nodes, given.site.leaves, given.site.queues, given.conf)
    clock = Clock(given, engine, [watch])
    while watch.arrived < 0 and clock.step():
        pass
    job_state = engine.view.job_states["gang"]
    assert not job_state.placements, "the gang fits as the cluster is"
    gc.collect()
    begun = perf_counter()
    found = propose(engine.context, job_state, 1000)
    took = perf_counter() - begun
    return took, found


def main() -> int:
    """Print a table for each load; the exit status."""
    gc.set_threshold(COLLECT_AFTER)
    console, good = Console(width=140), True
    table = Table(title=f"a gang of {GANG} of {NODES} nodes after a churn", box=None)
    for column in (
        "load",
        "seed",
        "plan s",
        "moves",
        "cost",
        "benefit",
        "cost/benefit",
    ):
        table.add_column(column, justify="right")
    for column in ("wait without", "wait with", "moved", "lost chip-h"):
        table.add_column(column, justify="right")
    for load, seed in product(LOADS, SEEDS):
        took, plan = planned(load, seed)
        good &= took <= GOAL_PLAN_S
        row = [f"{load:.2f}", str(seed), f"{took:.2f}"]
        if isinstance(plan, MovePlan):
            good &= plan.cost <= GOAL_SHARE * plan.benefit
            row += [str(len(plan.moves)), f"{plan.cost:,.0f}", f"{plan.benefit:,.0f}"]
            row.append(f"{plan.cost / plan.benefit:.5f}")
        else:
            row += [plan.why, "", "", ""]
        if seed in PLAYED:
            without = played(load, seed, configured())
            actions = "enqueue, allocate, backfill, rearrange"
            moved = played(load, seed, configured(actions))
            row += [f"{without.wait_s / 60:.1f} min", f"{moved.wait_s / 60:.1f} min"]
            row += [str(moved.moves), f"{moved.lost_chip_s / HOUR_S:,.1f}"]
        table.add_row(*row)
    console.print(table)
    console.print(
        f"goals: planned within {GOAL_PLAN_S:g} s, cost at most {GOAL_SHARE:g} of the "
        f"benefit: {'kept' if good else 'missed'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
