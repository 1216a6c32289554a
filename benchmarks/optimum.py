"""How much of a saturated cluster is allocated, against the optimum.

Run by ``make bench``. Jobs for 130 % of an empty cluster come in a random order.
Ringleaf places them in that order under switch affinity 1.0 and passes over those that
do not fit. CP-SAT knows all of them at once and chooses which to place and where, under
the same rule: a padding job under one leaf, a leaf crossed by at most one job. It may
ignore slots, so its optimum is an upper bound. Where it does not finish in time, its
proven bound counts as the optimum.

Two more figures tell where the difference comes from. ``order`` is what the same order
would allocate if there were no switches at all: no placement can do better without
knowing what comes. ``largest`` is the most that any subset of the jobs could take
without switches: what separates it from the optimum is what the rule itself costs.
"""

import sys
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from ortools.sat.python import cp_model
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ringleaf import Cluster, Job, Node, Placed, Session, Settings
from ringleaf.model.job_labels import FOUNDATION_FROM, Schema
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


SIZES = range(1, LARGEST_GANG + 1)
WORKLOADS = {
    "doublings": [n for n in SIZES if n & (n - 1) == 0],
    "any size": list(SIZES),
}
"""Sizes of gangs; each size has the same share of the nodes that are asked for."""


class Case(NamedTuple):
    """An empty cluster, and the sizes of the jobs that come."""

    workload: str
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
    order: int
    largest: int
    proven: bool

    @property
    def ratio(self) -> float:
        """Ringleaf against the optimum."""
        return self.ringleaf / self.optimum


def case_of(workload: str, number: int) -> Case:
    """Case *number* of a workload."""
    random = np.random.default_rng(SEED + number)
    leaves = int(random.integers(*LEAVES, endpoint=True))
    leaf_size = LEAF_SIZES[number % len(LEAF_SIZES)]
    sizes = np.array(WORKLOADS[workload])
    shares = 1 / sizes / (1 / sizes).sum()
    gangs: list[int] = []
    while sum(gangs) < DEMAND * leaves * leaf_size:
        gangs.append(int(random.choice(sizes, p=shares)))
    random.shuffle(gangs)
    return Case(workload, leaves, leaf_size, gangs)


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


class Model:
    """A set of jobs to place under the rule, for CP-SAT."""

    def __init__(self, case: Case, at_least: int, at_most: int) -> None:
        self.case, self.model, self.at_most = case, cp_model.CpModel(), at_most
        self.placed = [self.model.new_bool_var("") for _gang in case.gangs]
        pairs = zip(case.gangs, self.placed, strict=True)
        self.total = sum(n * on for n, on in pairs)
        self.model.add(self.total >= at_least)
        self.model.add(self.total <= at_most)
        self.model.maximize(self.total)

    def by_leaf(self) -> None:
        """Any job of four nodes or more may be cut over leaves in any way."""
        case, model = self.case, self.model
        here: list[list[tuple[int, cp_model.IntVar]]] = [[] for _ in range(case.leaves)]
        crossed: list[list[cp_model.IntVar]] = [[] for _ in range(case.leaves)]
        for n, on in zip(case.gangs, self.placed, strict=True):
            taken: list[tuple[int, cp_model.IntVar]] = []
            for leaf in range(case.leaves):
                if n <= case.leaf_size:
                    taken.append((n, model.new_bool_var("")))
                    here[leaf].append(taken[-1])
                if n >= FOUNDATION_FROM:
                    uses = model.new_bool_var("")
                    taken.append((1, model.new_int_var(0, min(n, case.leaf_size), "")))
                    model.add(taken[-1][1] <= case.leaf_size * uses)
                    here[leaf].append(taken[-1])
                    crossed[leaf].append(uses)
            model.add(sum(size * count for size, count in taken) == n * on)
        for leaf in range(case.leaves):
            model.add(sum(n * var for n, var in here[leaf]) <= case.leaf_size)
            model.add_at_most_one(crossed[leaf])

    def by_rest(self) -> None:
        """Jobs take whole leaves and one rest: not all there is, but fast."""
        case, model = self.case, self.model
        whole: Any = 0
        bins: list[list[tuple[int, cp_model.IntVar]]] = [[] for _ in range(case.leaves)]
        rests: list[list[cp_model.IntVar]] = [[] for _ in range(case.leaves)]
        for n, on in zip(case.gangs, self.placed, strict=True):
            full, rest = divmod(n, case.leaf_size)
            whole += full * on
            if rest:
                choice = [model.new_bool_var("") for _leaf in range(case.leaves)]
                model.add(sum(choice) == on)
                for leaf, chosen in enumerate(choice):
                    bins[leaf].append((rest, chosen))
                    if full:
                        rests[leaf].append(chosen)
        used = [model.new_bool_var("") for _leaf in range(case.leaves)]
        for leaf, on in enumerate(used):
            model.add(sum(n * x for n, x in bins[leaf]) <= case.leaf_size * on)
            model.add_at_most_one(rests[leaf])
            if leaf:
                model.add_implication(on, used[leaf - 1])
        model.add(whole + sum(used) <= case.leaves)

    def solve(self, *, in_steps: bool) -> tuple[int | None, int]:
        """The most nodes that were found, and the most that there can be.

        A limit that the solver counts in its own steps, which are about seconds, gives
        the same answer on every machine.
        """
        solver = cp_model.CpSolver()
        if in_steps:
            solver.parameters.max_deterministic_time = LIMIT_S / 2
        else:
            solver.parameters.max_time_in_seconds = LIMIT_S / 2
        solver.parameters.num_workers = 1 if in_steps else 2
        solver.parameters.random_seed = SEED
        status = solver.solve(self.model)
        found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        value = round(solver.objective_value) if found else None
        return value, min(int(solver.best_objective_bound), self.at_most)


def optimum(
    case: Case, at_least: int, at_most: int, *, in_steps: bool = False
) -> tuple[int, bool]:
    """The most nodes that jobs can take under the rule, and whether that is proven."""
    quick = Model(case, at_least, at_most)
    quick.by_rest()
    value, _bound = quick.solve(in_steps=in_steps)
    if value == at_most:
        return value, True
    full = Model(case, max(at_least, value or 0), at_most)
    full.by_leaf()
    value, bound = full.solve(in_steps=in_steps)
    return bound, value == bound


def in_order(case: Case) -> int:
    """What the order of the jobs allocates where any nodes will do."""
    left = case.nodes
    for n in case.gangs:
        left -= n * (n <= left)
    return case.nodes - left


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
    return Outcome(case, ours, best, in_order(case), most, proven)


def row(name: str, found: list[Outcome]) -> tuple[str, ...]:
    """Means and the worst of a group of cases."""
    ratios = [each.ratio for each in found]
    order = [each.order / each.optimum for each in found]
    rule = mean(each.optimum / each.largest for each in found)
    return (
        name,
        str(len(found)),
        f"{mean(ratios):.4f}",
        f"{min(ratios):.4f}",
        f"{mean(order):.4f}",
        f"{min(order):.4f}",
        f"{rule:.4f}",
        f"{sum(each.proven for each in found)}",
    )


def main() -> int:
    """Print the ratios by workload and size, then whether the goals are met."""
    console = Console(highlight=False, width=88)
    table = Table(
        "gangs, leaves", "cases", "mean", "worst", "order", "worst", "rule", "proven"
    )
    met: dict[str, bool] = {}
    for workload in WORKLOADS:
        cases = (case_of(workload, number) for number in range(CLUSTERS))
        watched = track(cases, f"solving {workload}", CLUSTERS, transient=True)
        found = [outcome(case) for case in watched]
        for size in LEAF_SIZES:
            own = [each for each in found if each.case.leaf_size == size]
            small = [each for each in own if each.case.leaves < GOAL_FROM]
            large = [each for each in own if each.case.leaves >= GOAL_FROM]
            table.add_row(*row(f"{workload}, 16-31 of {size}", small))
            table.add_row(*row(f"{workload}, 32-64 of {size}", large))
        table.add_row(*row(f"{workload}, all", found), end_section=True)
        average = mean(each.ratio for each in found)
        worst = min(each.ratio for each in found if each.case.leaves >= GOAL_FROM)
        met[f"{workload}: mean of at least {GOAL_MEAN}"] = average >= GOAL_MEAN
        met[f"{workload}: worst of at least {GOAL_WORST} from {GOAL_FROM} leaves"] = (
            worst >= GOAL_WORST
        )
    console.print(table)
    for goal, good in met.items():
        console.print(f"{'met   ' if good else 'MISSED'} {goal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
