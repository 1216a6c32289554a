"""Small fragmented clusters, and the fewest moves by a solver that knows no search.

On the nodes of a case any chips go together, so that places are numbers of chips. A
gang without a label takes any nodes; one with ``large-model-schema`` of fewer than four
pods stays under one leaf, a pod a node.
"""

from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.model.moving import Moving
from ringleaf.model.placement import Placement
from tests.engine.story import A2, conf

cp_model: Any = pytest.importorskip("ortools.sat.python.cp_model")

CHIPS = 8
PADDING_PODS = 3
"""Pods of the largest job that may not cross leaves."""


class Tenant(NamedTuple):
    """A running job: chips of each pod, the nodes of its pods, whether it may move."""

    chips: int
    nodes: tuple[int, ...]
    movable: bool
    restart_s: int

    def held(self, node: int) -> int:
        return self.chips * self.nodes.count(node)

    @property
    def cost(self) -> int:
        return self.chips * len(self.nodes) * self.restart_s


class Fragmented(NamedTuple):
    """A cluster, the jobs that run there, and the gang that waits."""

    n_nodes: int
    per_leaf: int
    tenants: tuple[Tenant, ...]
    chips: int
    pods: int
    labelled: bool

    def free(self, node: int) -> int:
        return CHIPS - sum(tenant.held(node) for tenant in self.tenants)

    def leaf(self, node: int) -> int:
        return node // self.per_leaf

    @property
    def gang(self) -> Job:
        schema = Schema.LARGE_MODEL if self.labelled else None
        return Job("gang", A2, self.chips, self.pods, tor_affinity=schema)

    @property
    def engine(self) -> Engine:
        """An engine that knows of all this and does not start the gang by itself."""
        nodes = [
            Node(
                f"n{i}",
                A2,
                CHIPS,
                255,
                leaf=f"leaf{self.leaf(i)}",
                slot=i % self.per_leaf,
            )
            for i in range(self.n_nodes)
        ]
        used = [0] * self.n_nodes
        events = []
        for i, tenant in enumerate(self.tenants):
            placements = []
            for replica, node in enumerate(tenant.nodes):
                chips = tuple(range(used[node], used[node] + tenant.chips))
                used[node] += tenant.chips
                placements.append(Placement(replica, f"n{node}", chips))
            moving = Moving(float(tenant.restart_s), checkpoint_s=0.0)
            job = Job(
                f"j{i}",
                A2,
                tenant.chips,
                len(tenant.nodes),
                moving=moving if tenant.movable else None,
            )
            events.append(JobArrived(job, tuple(placements), started=-1e6))
        engine = Engine(nodes, conf=conf())
        engine.handle_all([*events, JobArrived(self.gang)], 0.0)
        return engine


@st.composite
def fragmented(draw: st.DrawFn) -> Fragmented:
    n_nodes = draw(st.integers(2, 5))
    left = [CHIPS] * n_nodes
    tenants = []
    for first in (*range(n_nodes), *draw(st.lists(st.integers(0, n_nodes - 1)))):
        chips = draw(st.sampled_from([1, 1, 2, 2, 3, 4, 5]))
        able = [
            node for node in range(n_nodes) if left[node] >= chips and node != first
        ]
        if left[first] < chips:
            continue
        others = draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
        nodes = (first, *draw(st.permutations(able))[:others])
        for node in nodes:
            left[node] -= chips
        movable = draw(st.sampled_from([True] * 7 + [False]))
        tenants.append(Tenant(chips, nodes, movable, draw(st.integers(1, 9))))
    labelled = draw(st.booleans())
    most = min(PADDING_PODS if labelled else 4, sum(left) // CHIPS)
    chips = (
        CHIPS if most else draw(st.integers(min(sum(left), max(left) + 1), sum(left)))
    )
    chips = min(chips, CHIPS) or 1
    pods = draw(st.integers(min(2, most) if labelled and most else 1, max(1, most)))
    per_leaf = draw(st.sampled_from([2, 3, 3, 8]))
    return Fragmented(n_nodes, per_leaf, tuple(tenants), chips, pods, labelled)


def fewest_moves(case: Fragmented, most_cost: int = 100_000) -> tuple[int, int] | None:
    """The fewest moves and what the cheapest of so many cost; None if none are enough.

    A moved job goes to chips that were free before, all moves taken together.
    """
    model = cp_model.CpModel()
    nodes = range(case.n_nodes)
    moved, into = [], []
    for i, tenant in enumerate(case.tenants):
        goes = model.new_bool_var(f"moved{i}")
        pods = [model.new_int_var(0, len(tenant.nodes), f"j{i}n{n}") for n in nodes]
        model.add(sum(pods) == len(tenant.nodes) * goes)
        if not tenant.movable:
            model.add(goes == 0)
        moved.append(goes)
        into.append(pods)
    gang = [model.new_int_var(0, case.pods, f"g{n}") for n in nodes]
    model.add(sum(gang) == case.pods)
    if case.labelled:
        under = [model.new_bool_var(f"leaf{n}") for n in nodes]
        model.add(sum(under) == 1)
        for node in nodes:
            model.add(gang[node] <= 1)
            model.add(gang[node] <= under[case.leaf(node)])
    for node in nodes:
        comes = sum(t.chips * into[i][node] for i, t in enumerate(case.tenants))
        goes = sum(t.held(node) * moved[i] for i, t in enumerate(case.tenants))
        model.add(comes <= case.free(node))
        model.add(comes + case.chips * gang[node] <= case.free(node) + goes)
    cost = sum(t.cost * moved[i] for i, t in enumerate(case.tenants))
    model.minimize(most_cost * sum(moved) + cost)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    if status == cp_model.INFEASIBLE:
        return None
    n_moves, cheapest = divmod(round(solver.objective_value), most_cost)
    return n_moves, cheapest
