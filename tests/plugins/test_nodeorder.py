"""Kubernetes' scores, worked by hand from its documentation."""

import copy
from collections.abc import Mapping
from fractions import Fraction
from math import floor
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from ringleaf.config.arguments import Value
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import (
    NOTHING,
    Demand,
    Effect,
    Operator,
    PodTerm,
    Preferred,
    PreferredPods,
    Requirement,
    Spread,
    Taint,
    Toleration,
)
from ringleaf.model.job import Job, Role
from ringleaf.model.settings import Settings
from ringleaf.plugins import nodeorder
from ringleaf.plugins.nodeorder import FEW_SCORED, NodeOrder, NodeOrderSettings
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]
GI = 2**30 * 1000
OFF: dict[str, Value] = {each.encode_name: 0 for each in fields(NodeOrderSettings)}


def view(*nodes: Node) -> SchedulerState:
    return SchedulerState(Cluster(nodes), Settings())


def sized(*have: Mapping[str, int]) -> SchedulerState:
    """Nodes n00, n01, ... with these resources."""
    return view(
        *(Node(f"n{i:02}", A2, 8, 0xFF, resources=own) for i, own in enumerate(have))
    )


def zoned(zones: str) -> SchedulerState:
    """Nodes with zones of one letter, ``.`` for none."""
    labels: list[dict[str, str]] = [{} if z == "." else {"zone": z} for z in zones]
    return view(
        *(Node(f"n{i}", A2, 8, 0xFF, labels=own) for i, own in enumerate(labels))
    )


def asks(**resources: int) -> Demand:
    return Demand(resources=tuple(resources.items()))


def hold(where: SchedulerState, node: int, demand: Demand) -> None:
    with Statement(where.cluster) as statement:
        statement.hold("running", node, 0, demand=demand)
        statement.commit()


def scores(
    where: SchedulerState, pod: Demand, arguments: Mapping[str, Value] = OFF
) -> list[float] | None:
    plugin, job = NodeOrder(where, arguments), Job("new", A2, 0)
    nodes = np.arange(len(where.cluster))
    found = plugin.node_order(job, Role("", 0, demand=pod), nodes)
    return None if found is None else found.tolist()


def only(name: str, weight: int = 1) -> dict[str, Value]:
    return {**OFF, f"{name}.weight": weight}


@pytest.mark.parametrize(
    ("scorer", "pod", "score"),
    [
        # The node has 10 CPU and 100Gi; 2 CPU and 50Gi are in use.
        pytest.param(
            "leastrequested",
            asks(cpu=3_000, memory=10 * GI),
            (50 + 40) // 2,
            id="what is left, in percent",
        ),
        pytest.param(
            "leastrequested",
            asks(cpu=3_050, memory=10 * GI),
            (49 + 40) // 2,
            id="whole numbers only",
        ),
        pytest.param(
            "leastrequested",
            asks(cpu=9_000, memory=10 * GI),
            (0 + 40) // 2,
            id="nothing is left: 0",
        ),
        pytest.param(
            "leastrequested",
            asks(memory=10 * GI),
            (79 + 40) // 2,
            id="a pod without CPU counts as 100m",
        ),
        pytest.param(
            "leastrequested",
            asks(cpu=3_000, memory=0),
            (50 + 49) // 2,
            id="a pod without memory counts as 200Mi",
        ),
        pytest.param(
            "mostrequested",
            asks(cpu=3_000, memory=10 * GI),
            (50 + 60) // 2,
            id="what is in use, in percent",
        ),
        pytest.param(
            "mostrequested",
            asks(cpu=9_000, memory=10 * GI),
            (100 + 60) // 2,
            id="more than all in use: 100",
        ),
        pytest.param(
            "balancedresource",
            asks(cpu=3_000, memory=10 * GI),
            95,
            id="0.5 and 0.6 deviate by 0.05",
        ),
        pytest.param(
            "balancedresource",
            asks(cpu=98_000, memory=10 * GI),
            80,
            id="shares end at 1",
        ),
        pytest.param(
            "balancedresource",
            asks(memory=10 * GI),
            80,
            id="0.2 and 0.6: what a pod does not ask counts as nothing",
        ),
        pytest.param("balancedresource", NOTHING, 0, id="not for pods without either"),
    ],
)
def test_scores_for_cpu_and_memory(scorer: str, pod: Demand, score: int) -> None:
    where = sized({"cpu": 10_000, "memory": 100 * GI})
    hold(where, 0, asks(cpu=2_000, memory=50 * GI))

    assert scores(where, pod, only(scorer)) == [score]
    assert scores(where, pod, only(scorer, 3)) == [3 * score]


def test_running_pods_without_cpu_or_memory_count_as_100m_and_200mi() -> None:
    where = sized({"cpu": 1_000, "memory": 2_000 * 2**20 * 1000})
    pod = asks(cpu=100, memory=200 * 2**20 * 1000)
    before = scores(where, pod, only("leastrequested"))
    hold(where, 0, NOTHING)

    assert before == [90]
    assert scores(where, pod, only("leastrequested")) == [80]
    assert scores(where, pod, only("balancedresource")) == [100]


@pytest.mark.parametrize(
    ("scorer", "expected"),
    [
        pytest.param("leastrequested", [70, 80, 75, 0], id="the mean of what counts"),
        pytest.param("mostrequested", [30, 20, 25, 0], id="in use likewise"),
        pytest.param("balancedresource", [100, 100, 95, 100], id="one alone is even"),
    ],
)
def test_a_resource_of_which_a_node_does_not_say_how_much_does_not_count(
    scorer: str, expected: list[int]
) -> None:
    cpu, memory = {"cpu": 10_000}, {"memory": 100 * GI}
    where = sized(cpu, memory, cpu | memory, {})

    assert scores(where, asks(cpu=3_000, memory=20 * GI), only(scorer)) == expected


def test_no_node_counts_anything_and_nothing_is_preferred() -> None:
    assert scores(sized({}, {"disk": 5}), asks(cpu=1_000), {}) is None


EAST = (Requirement("zone", Operator.IN, ("e",)),)
WEST = (Requirement("zone", Operator.IN, ("w",)),)


@pytest.mark.parametrize(
    ("prefers", "expected"),
    [
        pytest.param([Preferred(7, EAST)], [100, 0, 0], id="the most is 100"),
        pytest.param(
            [Preferred(30, EAST), Preferred(10, WEST)],
            [100, 33, 0],
            id="others are a part of it",
        ),
        pytest.param([], None, id="nothing preferred"),
        pytest.param(
            [Preferred(7, (Requirement("rack", Operator.EXISTS),))],
            None,
            id="no node is liked",
        ),
    ],
)
def test_preferred_node_affinity(
    prefers: list[Preferred], expected: list[int] | None
) -> None:
    pod = Demand(prefers=tuple(prefers))

    assert scores(zoned("ew."), pod, only("nodeaffinity")) == expected


SOFT = Taint("busy", Effect.PREFER_NO_SCHEDULE)
LOUD = Taint("loud", Effect.PREFER_NO_SCHEDULE)
HARD = Taint("train", Effect.NO_SCHEDULE)


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param((), [100, 50, 0, 100], id="few such taints, of the most"),
        pytest.param(
            (Toleration("busy"),), [100, 100, 0, 100], id="tolerated: not counted"
        ),
        pytest.param((Toleration("busy"), Toleration("loud")), None, id="all alike"),
    ],
)
def test_taints_that_only_ask(
    tolerations: tuple[Toleration, ...], expected: list[int] | None
) -> None:
    lists = [(), (SOFT,), (LOUD, SOFT), (HARD,)]
    where = view(
        *(Node(f"n{i}", A2, 8, 0xFF, taints=own) for i, own in enumerate(lists))
    )
    pod = Demand(tolerations=tolerations)

    assert scores(where, pod, only("tainttoleration")) == expected


def test_without_taints_nothing_is_said_of_them() -> None:
    assert scores(zoned("ab"), NOTHING, only("tainttoleration")) is None


WEB = Demand(labels=(("app", "web"),))
IS_WEB = (Requirement("app", Operator.IN, ("web",)),)
BY_ZONE = PodTerm("zone", IS_WEB)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        # Two pods in zone a, one in b.
        pytest.param(
            Demand(prefers_near=(PreferredPods(5, BY_ZONE),)),
            [100, 50, 0],
            id="many neighbours that are liked",
        ),
        pytest.param(
            Demand(prefers_apart=(PreferredPods(5, BY_ZONE),)),
            [0, 50, 100],
            id="few neighbours that are not",
        ),
        pytest.param(
            Demand(prefers_near=(PreferredPods(5, PodTerm("rack", IS_WEB)),)),
            [0, 0, 0],
            id="none anywhere so far",
        ),
        pytest.param(NOTHING, None, id="nothing preferred"),
    ],
)
def test_preferred_pod_affinity(pod: Demand, expected: list[int] | None) -> None:
    where = zoned("ab.")
    for node in (0, 0, 1):
        hold(where, node, WEB)

    assert scores(where, pod, only("podaffinity")) == expected


def test_neighbours_that_are_liked_alike_everywhere_make_no_difference() -> None:
    where = zoned("aa")
    hold(where, 0, WEB)
    pod = Demand(prefers_apart=(PreferredPods(5, BY_ZONE),))

    assert scores(where, pod, only("podaffinity")) == [0, 0]
    assert scores(where, pod, OFF) is None


SOFTLY = Spread("zone", 1, IS_WEB, hard=False)


@pytest.mark.parametrize(
    ("pods", "pod", "expected"),
    [
        # Two domains: the logarithm of 4 is 1.386; 3 pods weigh 4, 1 pod weighs 1.
        pytest.param(
            [0, 0, 0, 1],
            Demand(spread=(SOFTLY,)),
            [25, 100, 0],
            id="where the fewest are, 100",
        ),
        pytest.param([], Demand(spread=(SOFTLY,)), [100, 100, 0], id="none so far"),
        pytest.param([0], WEB, None, id="nothing asked"),
        pytest.param(
            [0],
            Demand(spread=(Spread("rack", 1, IS_WEB, hard=False),)),
            [0, 0, 0],
            id="no node has the label",
        ),
        pytest.param(
            [0], Demand(spread=(Spread("zone", 1, IS_WEB),)), None, id="a hard one"
        ),
    ],
)
def test_soft_spreading(
    pods: list[int], pod: Demand, expected: list[int] | None
) -> None:
    where = zoned("ab.")
    for node in pods:
        hold(where, node, WEB)

    assert scores(where, pod, only("podtopologyspread")) == expected


def test_all_scores_are_added_up_by_the_weights_of_volcano() -> None:
    where = view(
        Node("a", A2, 8, 0xFF, labels={"zone": "e"}, resources={"cpu": 10_000}),
        Node("b", A2, 8, 0xFF, taints=(SOFT,), resources={"cpu": 20_000}),
        Node("c", A2, 8, 0xFF, labels={"zone": "w"}, resources={"cpu": 20_000}),
    )
    hold(where, 2, WEB)
    pod = Demand(
        resources=(("cpu", 1_000),),
        prefers=(Preferred(1, EAST),),
        prefers_near=(PreferredPods(1, BY_ZONE),),
        spread=(SOFTLY,),
    )

    least, balanced = [90, 95, 94], [100, 100, 100]
    nodes, taints = [100, 0, 0], [100, 0, 100]
    pods, spread = [0, 0, 100], [100, 0, 0]
    assert scores(where, pod, {}) == [
        1 * a + 1 * b + 2 * c + 3 * d + 2 * e + 2 * f
        for a, b, c, d, e, f in zip(
            least, balanced, nodes, taints, pods, spread, strict=True
        )
    ]


def test_scores_do_not_depend_on_the_other_nodes() -> None:
    where = zoned("eww.")
    plugin, job = NodeOrder(where, {}), Job("new", A2, 0)
    role = Role("", 0, demand=Demand(prefers=(Preferred(3, EAST), Preferred(1, WEST))))

    alone = plugin.node_order(job, role, np.array([1]))

    assert alone is not None
    assert alone.tolist() == [2 * 33]


def test_scores_follow_pods_nodes_and_clusters() -> None:
    where = zoned("ab")
    plugin, job = NodeOrder(where, only("podaffinity")), Job("new", A2, 0)
    role = Role("", 0, demand=Demand(prefers_near=(PreferredPods(5, BY_ZONE),)))
    nodes, seen = np.arange(2), []

    def look() -> None:
        found = plugin.node_order(job, role, nodes)
        seen.append(None if found is None else found.tolist())

    look()
    hold(where, 0, WEB)
    look()
    look()
    where.cluster.node_table.change(1, {"zone": "a"}, (), {})
    look()
    where.cluster.node_table.change(0, {}, (), {})
    look()
    other = zoned("ab")
    hold(other, 1, WEB)
    where.use_cluster(other.cluster)
    look()

    assert seen == [[0, 0], [100, 0], [100, 0], [0, 0], [0, 0], [0, 100]]


def test_scores_of_another_cluster_are_its_own_from_the_start() -> None:
    where = zoned("ew")
    plugin, job = NodeOrder(where, {}), Job("new", A2, 0)
    role, nodes = (
        Role("", 0, demand=Demand(prefers=(Preferred(1, EAST),))),
        np.arange(2),
    )
    one = plugin.node_order(job, role, nodes)
    where.use_cluster(zoned("we").cluster)
    other = plugin.node_order(job, role, nodes)

    assert one is not None
    assert other is not None
    assert (one.tolist(), other.tolist()) == ([200, 0], [0, 200])


def test_resources_follow_nodes_and_clusters() -> None:
    where = sized({"cpu": 10_000})
    plugin, job = NodeOrder(where, only("leastrequested")), Job("new", A2, 0)
    role, nodes, seen = Role("", 0, demand=asks(cpu=1_000)), np.arange(1), []
    for step in range(3):
        if step == 1:
            where.cluster.node_table.change(0, {}, (), {"cpu": 2_000})
        if step == 2:
            where.use_cluster(sized({"cpu": 4_000}).cluster)
        found = plugin.node_order(job, role, nodes)
        assert found is not None
        seen += found.tolist()

    assert seen == [90, 50, 75]


def test_preferences_of_many_kinds_of_pods_are_kept_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nodeorder, "MOST_KEPT", 2)
    where = zoned("ew")
    plugin, job, nodes = NodeOrder(where, {}), Job("new", A2, 0), np.arange(2)
    pods = [Demand(prefers=(Preferred(n, EAST),)) for n in range(1, 6)]

    found = [plugin.node_order(job, Role("", 0, demand=pod), nodes) for pod in pods * 2]

    assert [each.tolist() for each in found if each is not None] == [[200, 0]] * 10


AMOUNT = st.integers(0, 3_000)
SIZES = st.lists(
    st.tuples(AMOUNT, AMOUNT, st.lists(st.tuples(AMOUNT, AMOUNT), max_size=2)),
    min_size=FEW_SCORED + 1,
    max_size=FEW_SCORED + 3,
)


def by_hand(
    have: tuple[int, int], pods: list[tuple[int, int]], pod: tuple[int, int]
) -> tuple[int, int, int]:
    """Least, most and balanced of one node, in exact fractions."""
    least, most, shares = [], [], []
    for line, none in enumerate((100, 200 * 2**20 * 1000)):
        if not have[line]:
            continue
        load = sum(each[line] or none for each in [*pods, pod])
        plain = sum(each[line] for each in [*pods, pod])
        part = min(Fraction(load, have[line]), Fraction(1))
        least.append(floor(100 * (1 - part)))
        most.append(floor(100 * part))
        shares.append(min(plain / have[line], 1.0))
    apart = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
    balanced = int((1 - apart) * 100) if any(pod) else 0
    count = max(len(least), 1)
    return sum(least) // count, sum(most) // count, balanced


@given(SIZES, st.tuples(AMOUNT, AMOUNT))
def test_many_nodes_score_as_each_alone_and_as_by_hand(
    nodes: list[tuple[int, int, list[tuple[int, int]]]], pod: tuple[int, int]
) -> None:
    where = sized(*({"cpu": cpu, "memory": memory} for cpu, memory, _pods in nodes))
    for i, (_cpu, _memory, pods) in enumerate(nodes):
        for cpu, memory in pods:
            hold(where, i, asks(cpu=cpu, memory=memory))
    weights: dict[str, Value] = {"leastrequested.weight": 10**6}
    weights |= {"mostrequested.weight": 10**3, "balancedresource.weight": 1}
    plugin, job = NodeOrder(where, weights), Job("new", A2, 0)
    role = Role("", 0, demand=asks(cpu=pod[0], memory=pod[1]))

    together = plugin.node_order(job, role, np.arange(len(nodes)))
    alone = [plugin.node_order(job, role, np.array([i])) for i in range(len(nodes))]

    if together is None:
        assert not any(cpu or memory for cpu, memory, _pods in nodes)
        return
    expected = [by_hand((n[0], n[1]), n[2], pod) for n in nodes]
    assert together.tolist() == [10**6 * a + 10**3 * b + c for a, b, c in expected]
    assert together.tolist() == [each.item() for each in alone if each is not None]


def test_an_interrupted_run_keeps_the_plugin_and_finds_its_scores_again() -> None:
    where = zoned("ab")
    wants = Preferred(7, (Requirement("zone", Operator.IN, ("b",)),))
    role = Role("", 0, demand=Demand(prefers=(wants,)))
    plugin, job = NodeOrder(where, only("nodeaffinity")), Job("new", A2, 0)
    nodes = np.arange(2)
    before = plugin.node_order(job, role, nodes)

    later = copy.copy(plugin)  # of what it keeps for a run that goes on later

    assert not any(isinstance(value, ref) for value in vars(later).values())
    assert before is not None
    again = later.node_order(job, role, nodes)
    assert again is not None
    assert again.tolist() == before.tolist() == [0, 100]
