"""The score of a node that a pod would fill, worked by hand."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.config.arguments import Value
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.settings import Settings
from ringleaf.plugins.binpack import FEW_NODES, Binpack
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]
DUO = PRODUCTS["atlas-300i-duo"]
NPU = A2.resource


def view(*have: Mapping[str, int]) -> SchedulerState:
    """Nodes n0, n1, ... with these resources and 8 chips."""
    nodes = (Node(f"n{i:02}", A2, 8, 0xFF, resources=own) for i, own in enumerate(have))
    return SchedulerState(Cluster(nodes), Settings())


def hold(where: Cluster, node: int, chips: int = 0, **used: int) -> None:
    with Statement(where) as statement:
        demand = Demand(resources=tuple(used.items()))
        statement.hold("running", node, chips, demand=demand)
        statement.commit()


def scores(
    where: SchedulerState, arguments: Mapping[str, Value], chips: int = 0, **asked: int
) -> list[float] | None:
    """The scores of all nodes for a pod; those of each node alone are the same."""
    demand = Demand(resources=tuple(asked.items()))
    role, job = Role("", chips, demand=demand), Job("new", A2, chips, demand=demand)
    plugin = Binpack(where, arguments)
    found = plugin.node_order(job, role, np.arange(len(where.cluster)))
    return None if found is None else found.tolist()


@pytest.mark.parametrize(
    ("arguments", "asked", "score"),
    [
        # The node has 100 of each, 20 CPU and 50 memory are in use.
        pytest.param({}, {"cpu": 20}, 40, id="used and asked, of what it has"),
        pytest.param({}, {"cpu": 20, "memory": 10}, 50, id="the mean of both"),
        pytest.param({}, {"cpu": 20, "memory": 0}, 40, id="asked for 0: not asked"),
        pytest.param({}, {"cpu": 80}, 100, id="full to the brim"),
        pytest.param({}, {"cpu": 81, "memory": 10}, 0, id="one overflows: 0"),
        pytest.param(
            {"binpack.cpu": 3}, {"cpu": 20, "memory": 10}, 45, id="weight of CPU"
        ),
        pytest.param(
            {"binpack.memory": 3}, {"cpu": 20, "memory": 10}, 55, id="weight of memory"
        ),
        pytest.param(
            {"binpack.cpu": 0}, {"cpu": 99, "memory": 10}, 60, id="weight 0: left out"
        ),
        pytest.param({"binpack.weight": 5}, {"cpu": 20}, 200, id="weight of the whole"),
        pytest.param({}, {"cpu": 20, "disk": 10}, 40, id="not configured: left out"),
        pytest.param(
            {"binpack.resources": ("disk",)},
            {"cpu": 20, "disk": 10},
            25,
            id="configured",
        ),
        pytest.param(
            {"binpack.resources": ("disk",), "binpack.resources.disk": 3},
            {"cpu": 20, "disk": 10},
            17.5,
            id="configured with a weight",
        ),
        pytest.param(
            {"binpack.resources": ("tape",)},
            {"cpu": 20, "tape": 10},
            20,
            id="the node has none: nothing, but its weight counts",
        ),
        pytest.param(
            {"binpack.resources": ("cpu",), "binpack.resources.cpu": 3},
            {"cpu": 20, "memory": 10},
            50,
            id="CPU has its own key",
        ),
    ],
)
def test_a_node_scores_by_what_would_be_in_use(
    arguments: Mapping[str, Value], asked: dict[str, int], score: float
) -> None:
    where = view({"cpu": 100, "memory": 100, "disk": 100})
    hold(where.cluster, 0, cpu=20, memory=50)

    assert scores(where, arguments, **asked) == pytest.approx([score])


def test_a_resource_that_only_other_nodes_have_adds_nothing() -> None:
    where = view({"cpu": 100}, {"cpu": 100, "memory": 100}, {"memory": 100})

    assert scores(where, {}, cpu=20, memory=60) == [10, 40, 30]


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        pytest.param({"binpack.weight": 0}, {"cpu": 1}, id="weight 0"),
        pytest.param({}, {}, id="nothing asked"),
        pytest.param({}, {"disk": 1}, id="nothing configured is asked"),
        pytest.param({}, {"memory": 1}, id="no node has it"),
    ],
)
def test_it_has_nothing_to_say(
    arguments: Mapping[str, Value], asked: dict[str, int]
) -> None:
    assert scores(view({"cpu": 100}), arguments, **asked) is None


def test_chips_count_only_if_listed() -> None:
    where = view({"cpu": 100})
    hold(where.cluster, 0, 0b11)

    assert scores(where, {}, 2) is None
    assert scores(where, {"binpack.resources": (NPU,)}, 2) == [50]
    assert scores(where, {"binpack.resources": (NPU,)}, 2, cpu=10) == [30]
    assert scores(where, {"binpack.resources": (NPU,)}, 7) == [0]


@pytest.mark.parametrize("n_pairs", [1, FEW_NODES], ids=["few nodes", "many nodes"])
def test_chips_of_another_name_add_nothing(n_pairs: int) -> None:
    nodes = [
        Node(f"n{2 * i + k:02}", (DUO, A2)[k], 8, (0xFF, 0x0F)[k])
        for i in range(n_pairs)
        for k in range(2)
    ]
    where = SchedulerState(Cluster(nodes), Settings())

    assert DUO.resource != NPU
    assert scores(where, {"binpack.resources": (NPU,)}, 2) == [0, 75] * n_pairs


def test_an_overdrawn_node_scores_0() -> None:
    where = view({"cpu": 100})
    hold(where.cluster, 0, cpu=120)

    assert scores(where, {}, cpu=1) == [0]


def test_it_follows_nodes_that_change_and_other_clusters() -> None:
    where = view({"cpu": 100})
    plugin, role = Binpack(where, {}), Role("", 0, demand=Demand((("cpu", 20),)))
    job, node = Job("new", A2, 0), np.array([0])
    first = plugin.node_order(job, role, node)
    where.cluster.node_table.change(0, {}, (), {"cpu": 200})
    second = plugin.node_order(job, role, node)
    where.use_cluster(view({"cpu": 400}).cluster)
    third = plugin.node_order(job, role, node)

    assert [each.tolist() for each in (first, second, third) if each is not None] == [
        [20],
        [10],
        [5],
    ]


AMOUNT = st.integers(0, 30)
NODES = st.lists(
    st.tuples(AMOUNT, AMOUNT, AMOUNT, st.integers(0, 8)),
    min_size=FEW_NODES + 1,
    max_size=FEW_NODES + 4,
)


def by_hand(
    have: list[int], used: list[int], asked: list[int], weights: list[int]
) -> float:
    """The formula of one node, resource by resource."""
    total, weight_sum = 0.0, 0
    for own, busy, more, weight in zip(have, used, asked, weights, strict=True):
        if more == 0 or weight == 0:
            continue
        weight_sum += weight
        if own == 0:
            continue
        if busy + more > own:
            return 0.0
        total += weight * (busy + more) / own
    return 100 * 2 * total / weight_sum if weight_sum else 0.0


@given(
    NODES,
    st.tuples(AMOUNT, AMOUNT, st.integers(0, 8)),
    st.tuples(*[st.integers(0, 3)] * 3),
)
def test_many_nodes_score_as_each_alone_and_as_by_hand(
    nodes: list[tuple[int, int, int, int]],
    asked: tuple[int, int, int],
    weights: tuple[int, int, int],
) -> None:
    cpu, memory, chips = asked
    where = view(*({"cpu": n[0], "memory": n[1]} for n in nodes))
    for i, (_cpu, _memory, busy, held) in enumerate(nodes):
        hold(where.cluster, i, (1 << held) - 1, cpu=busy, memory=busy // 2)
    keys = ("binpack.cpu", "binpack.memory", f"binpack.resources.{NPU}")
    arguments: dict[str, Value] = dict(zip(keys, weights, strict=True))
    arguments |= {"binpack.weight": 2, "binpack.resources": (NPU,)}
    demand = Demand(resources=(("cpu", cpu), ("memory", memory)))
    role, job = Role("", chips, demand=demand), Job("new", A2, chips)
    plugin = Binpack(where, arguments)

    together = plugin.node_order(job, role, np.arange(len(nodes)))
    alone = [plugin.node_order(job, role, np.array([i])) for i in range(len(nodes))]

    expected = [
        by_hand([n[0], n[1], 8], [n[2], n[2] // 2, n[3]], list(asked), list(weights))
        for n in nodes
    ]
    if together is None:
        assert alone == [None] * len(nodes)
        assert not any(expected)
        return
    assert together.tolist() == [each.item() for each in alone if each is not None]
    assert together.tolist() == pytest.approx(expected)
