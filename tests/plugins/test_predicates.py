"""Kubernetes' conditions, what switches them off, and the nodes they refuse."""

import numpy as np
import pytest

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
from ringleaf.plugins.predicates import Predicates, without_predicates
from ringleaf.policies.fit import eligible, request_of
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]
WEB = Demand(labels=(("app", "web"),))
IS_WEB = (Requirement("app", Operator.IN, ("web",)),)
BY_ZONE = PodTerm("zone", IS_WEB)
HARDLY = Spread("zone", 1, IS_WEB)
SOFTLY = Spread("zone", 1, IS_WEB, hard=False)
IN_A = (Requirement("zone", Operator.IN, ("a",)),)
TRAIN = Taint("train", Effect.NO_SCHEDULE)
EVERYTHING = Demand(
    resources=(("cpu", 1_000),),
    required=IN_A,
    terms=(IN_A,),
    tolerations=(Toleration("gone"),),
    ports=("TCP/80",),
    labels=(("app", "web"),),
    namespace="far",
    near=(BY_ZONE,),
    apart=(BY_ZONE,),
    spread=(HARDLY, SOFTLY),
    prefers=(Preferred(1, IN_A),),
    prefers_near=(PreferredPods(1, BY_ZONE),),
    prefers_apart=(PreferredPods(2, BY_ZONE),),
)
FIELDS = Demand.__struct_fields__


def view(zones: str) -> SchedulerState:
    """Nodes with zones of one letter; those of zone t are tainted."""
    return SchedulerState(
        Cluster(
            Node(
                f"n{i}",
                A2,
                8,
                0xFF,
                labels={"zone": zone},
                taints=(TRAIN,) if zone == "t" else (),
            )
            for i, zone in enumerate(zones)
        ),
        Settings(),
    )


def hold(where: SchedulerState, node: int, demand: Demand) -> None:
    with Statement(where.cluster) as statement:
        statement.hold("running", node, 0, demand=demand)
        statement.commit()


def allowed(where: SchedulerState, pod: Demand, *off: str) -> list[int] | None:
    """The nodes that may take *pod*, with some conditions off."""
    plugin = Predicates(where, {f"predicate.{name}Enable": False for name in off})
    found = plugin.predicate(Job("new", A2, 1), Role("", 1, demand=pod))
    return None if found is None else np.flatnonzero(found).tolist()


@pytest.mark.parametrize(
    ("running", "pod", "switch", "nodes"),
    [
        # Zones a, a, b; the running pod is on the first node.
        pytest.param(
            Demand(ports=("TCP/80",)),
            Demand(ports=("TCP/80",)),
            "NodePorts",
            [1, 2],
            id="ports in use",
        ),
        pytest.param(
            WEB, Demand(near=(BY_ZONE,)), "PodAffinity", [0, 1], id="affinity"
        ),
        pytest.param(
            WEB, Demand(apart=(BY_ZONE,)), "PodAffinity", [2], id="anti-affinity"
        ),
        pytest.param(
            Demand(apart=(BY_ZONE,)),
            WEB,
            "PodAffinity",
            [2],
            id="anti-affinity of a running pod",
        ),
        pytest.param(
            WEB,
            Demand(spread=(HARDLY,), labels=WEB.labels),
            "PodTopologySpread",
            [2],
            id="spread",
        ),
    ],
)
def test_neighbours_refuse_nodes_unless_switched_off(
    running: Demand, pod: Demand, switch: str, nodes: list[int]
) -> None:
    where = view("aab")
    hold(where, 0, running)

    others = {"NodePorts", "PodAffinity", "PodTopologySpread"} - {switch}
    assert allowed(where, pod) == nodes
    assert allowed(where, pod, *others) == nodes
    assert allowed(where, pod, switch) is None


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(NOTHING, id="nothing asked"),
        pytest.param(WEB, id="no running pod minds"),
        pytest.param(Demand(ports=("TCP/80",)), id="no such port in use"),
        pytest.param(Demand(apart=(BY_ZONE,)), id="no such neighbour"),
        pytest.param(Demand(required=IN_A), id="labels are looked at elsewhere"),
        pytest.param(Demand(spread=(SOFTLY,)), id="a soft constraint"),
    ],
)
def test_it_has_nothing_to_say(pod: Demand) -> None:
    where = view("ab")
    hold(where, 0, Demand(ports=("TCP/81",), apart=(PodTerm("zone", None),)))

    assert allowed(where, pod) is None


def test_every_condition_must_hold() -> None:
    where = view("aabb")
    hold(where, 0, Demand(ports=("TCP/80",), labels=WEB.labels))

    assert allowed(where, Demand(ports=("TCP/80",), near=(BY_ZONE,))) == [1]


def test_the_second_pod_of_a_job_sees_the_first() -> None:
    where = view("aab")
    pod = Demand(apart=(PodTerm("zone", IS_WEB),), labels=WEB.labels)
    first = allowed(where, pod)
    with Statement(where.cluster) as statement:
        statement.hold("new", 0, 0, demand=pod)
        second = allowed(where, pod)

    assert (first, second, allowed(where, pod)) == (None, [2], None)


@pytest.mark.parametrize(
    ("switch", "stripped"),
    [
        ("NodeAffinity", ("required", "terms")),
        ("NodePorts", ("ports",)),
        ("PodAffinity", ("near", "apart")),
    ],
)
def test_what_is_switched_off_is_stripped_and_nothing_else(
    switch: str, stripped: tuple[str, ...]
) -> None:
    plugin = Predicates(view("a"), {f"predicate.{switch}Enable": False})

    found = plugin.effective_demand(EVERYTHING)

    for name in FIELDS:
        kept = getattr(EVERYTHING, name)
        assert getattr(found, name) == (() if name in stripped else kept)


def test_without_spreading_only_soft_constraints_are_left() -> None:
    plugin = Predicates(view("a"), {"predicate.PodTopologySpreadEnable": False})

    found = plugin.effective_demand(EVERYTHING)

    assert found.spread == (SOFTLY,)
    assert found.near == EVERYTHING.near


def test_without_taints_pods_go_to_any_node() -> None:
    where = view("at")
    plugin = Predicates(where, {"predicate.TaintTolerationEnable": False})

    def nodes(demand: Demand) -> list[int]:
        job = Job("new", A2, 1, demand=demand)
        return np.flatnonzero(eligible(where.cluster, request_of(job))).tolist()

    assert nodes(NOTHING) == [0]
    assert nodes(plugin.effective_demand(NOTHING)) == [0, 1]
    assert plugin.effective_demand(EVERYTHING).required == EVERYTHING.required


@pytest.mark.parametrize(
    "arguments", [{}, {"predicate.NodeAffinityEnable": True}], ids=["default", "true"]
)
def test_all_counts_unless_it_is_switched_off(arguments: dict[str, bool]) -> None:
    assert (
        Predicates(view("a"), {**arguments}).effective_demand(EVERYTHING) == EVERYTHING
    )


def test_without_the_plugin_only_resources_and_preferences_count() -> None:
    found = without_predicates(EVERYTHING)

    assert found == Demand(
        resources=EVERYTHING.resources,
        tolerations=found.tolerations,
        labels=EVERYTHING.labels,
        namespace=EVERYTHING.namespace,
        spread=(SOFTLY,),
        prefers=EVERYTHING.prefers,
        prefers_near=EVERYTHING.prefers_near,
        prefers_apart=EVERYTHING.prefers_apart,
    )
    assert any(each.covers(TRAIN) for each in found.tolerations)
