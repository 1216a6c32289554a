"""How much of a saturated cluster is allocated, against the optimum.

Run by ``make bench``. Jobs for 130 % of an empty cluster come in a random order.
Ringleaf places them in that order under switch affinity 1.0 and passes over those that
do not fit. CP-SAT knows all of them at once and chooses which to place and where, under
the same rule: a padding job under one leaf, a leaf crossed by at most one job. It may
ignore slots, so its optimum is an upper bound. Where it does not finish in time, its
proven bound counts as the optimum.

``largest`` is the most that any subset of the jobs could take if there were no
switches at all: what separates it from the optimum is what the rule costs.
"""

import sys
from statistics import mean
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ringleaf import Cluster, Job, Node, Placed, Session, Settings
from ringleaf.model.job import FOUNDATION_FROM, Schema
from ringleaf.policies.products import PRODUCTS

CLUSTERS = 200
LEAVES = (16, 64)
LEAF_SIZES = (4, 8)
LARGEST_GANG = 64
DEMAND = 1.3
LIMIT_S = 5.0
GOAL_MEAN, GOAL_WORST, GOAL_FROM = 0.99, 0.95, 32
SEED = 910

A2 = PRODUCTS["atlas-800t-a2"]


class Case(NamedTuple):
    """An empty cluster, and the sizes of the jobs that come."""

    leaves: int
    leaf_size: int
    gangs: list[int]

    @property
    def nodes(self) -> int:
        """Nodes of the cluster."""
        return self.leaves * self.leaf_size


class Outcome(NamedTuple):
    """Nodes allocated by Ringleaf, by the optimum, and without switches."""

    case: Case
    ringleaf: int
    optimum: int
    largest: int
    proven: bool

    @property
    def ratio(self) -> float:
        """Ringleaf against the optimum."""
        return self.ringleaf / self.optimum


def case_of(number: int) -> Case:
    """Case *number*; gangs of 1 to 64 nodes, every doubling as likely."""
    random = np.random.default_rng(SEED + number)
    leaves = int(random.integers(*LEAVES, endpoint=True))
    leaf_size = LEAF_SIZES[number % len(LEAF_SIZES)]
    gangs: list[int] = []
    while sum(gangs) < DEMAND * leaves * leaf_size:
        gangs.append(round(LARGEST_GANG ** random.random()))
    return Case(leaves, leaf_size, gangs)


def allocated(case: Case) -> list[bool]:
    """Which gangs Ringleaf places, in the order in which they come."""
    cluster = Cluster(
        Node(f"n{leaf:03}-{slot}", A2, 8, 0xFF, leaf=f"L{leaf}", slot=slot)
        for leaf in range(case.leaves)
        for slot in range(case.leaf_size)
    )
    session = Session(cluster, Settings())
    jobs = (
        Job(f"job-{i}", A2, 8, nodes, tor_affinity=Schema.LARGE_MODEL)
        for i, nodes in enumerate(case.gangs)
    )
    return [isinstance(session.decide(job), Placed) for job in jobs]


def optimum(case: Case, at_least: int, at_most: int) -> tuple[int, bool]:
    """The most nodes that jobs can take under the rule, and whether that is proven."""
    model = cp_model.CpModel()
    placed = [model.new_bool_var("") for _gang in case.gangs]
    inside: list[list[cp_model.IntVar]] = []
    crossing: list[list[tuple[cp_model.IntVar, cp_model.IntVar]]] = []
    for n, on in zip(case.gangs, placed, strict=True):
        wholes = [model.new_bool_var("") for _leaf in range(case.leaves)]
        parts = []
        if n >= FOUNDATION_FROM:
            for _leaf in range(case.leaves):
                part = model.new_int_var(0, min(n, case.leaf_size), "")
                uses = model.new_bool_var("")
                model.add(part <= case.leaf_size * uses)
                parts.append((part, uses))
        if n > case.leaf_size:
            model.add(sum(wholes) == 0)
        taken = sum(part for part, _uses in parts)
        model.add(n * sum(wholes) + taken == n * on)
        inside.append(wholes)
        crossing.append(parts)
    for leaf in range(case.leaves):
        whole = sum(n * w[leaf] for n, w in zip(case.gangs, inside, strict=True))
        parts_here = [parts[leaf] for parts in crossing if parts]
        model.add(whole + sum(part for part, _uses in parts_here) <= case.leaf_size)
        model.add_at_most_one(uses for _part, uses in parts_here)
    total = sum(n * on for n, on in zip(case.gangs, placed, strict=True))
    model.add(total >= at_least)
    model.add(total <= at_most)
    model.maximize(total)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = LIMIT_S
    solver.parameters.num_workers = 2
    solver.parameters.random_seed = SEED
    status = solver.solve(model)
    return int(solver.best_objective_bound), status == cp_model.OPTIMAL


def largest(case: Case) -> int:
    """The largest sum of gangs that the nodes can hold, wherever they stand."""
    reached = 1
    for n in case.gangs:
        reached |= reached << n
    reached &= (1 << case.nodes + 1) - 1
    return reached.bit_length() - 1


def outcome(case: Case) -> Outcome:
    """What Ringleaf and the optimum allocate of one case."""
    taken = allocated(case)
    ours = sum(n for n, on in zip(case.gangs, taken, strict=True) if on)
    most = largest(case)
    best, proven = (most, True) if ours == most else optimum(case, ours, most)
    assert ours <= best <= most
    return Outcome(case, ours, best, most, proven)


def row(name: str, found: list[Outcome]) -> tuple[str, ...]:
    """Means and the worst of a group of cases."""
    ratios = [each.ratio for each in found]
    rule = mean(each.optimum / each.largest for each in found)
    used = mean(each.ringleaf / each.case.nodes for each in found)
    proven = sum(each.proven for each in found)
    return (
        name,
        str(len(found)),
        f"{mean(ratios):.4f}",
        f"{min(ratios):.4f}",
        f"{used:.4f}",
        f"{rule:.4f}",
        f"{proven}",
    )


def main() -> int:
    """Print the ratios by size, then whether the goals are met."""
    console = Console(highlight=False, width=88)
    cases = (case_of(number) for number in range(CLUSTERS))
    watched = track(cases, "solving", CLUSTERS, transient=True, console=console)
    found = [outcome(case) for case in watched]
    table = Table(
        "leaves", "cases", "mean", "worst", "allocated", "rule keeps", "proven"
    )
    large = [each for each in found if each.case.leaves >= GOAL_FROM]
    for size in LEAF_SIZES:
        own = [each for each in found if each.case.leaf_size == size]
        small = [each for each in own if each.case.leaves < GOAL_FROM]
        table.add_row(*row(f"16 to 31 of {size}", small))
        table.add_row(
            *row(f"32 to 64 of {size}", [each for each in own if each in large])
        )
    table.add_row(*row("all", found))
    console.print(table)
    everywhere = mean(each.ratio for each in found)
    met = {
        f"mean of at least {GOAL_MEAN}": everywhere >= GOAL_MEAN,
        f"worst of at least {GOAL_WORST} from {GOAL_FROM} leaves up": min(
            each.ratio for each in large
        )
        >= GOAL_WORST,
    }
    for goal, good in met.items():
        console.print(f"{'met   ' if good else 'MISSED'} {goal}")
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
