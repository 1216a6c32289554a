"""Neighbours, against plain loops written from Kubernetes' documentation."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.framework.state import SchedulerState
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Flags
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import (
    Demand,
    Operator,
    PodTerm,
    PreferredPods,
    Requirement,
    Selector,
    Spread,
)
from ringleaf.model.job import Job, Role
from ringleaf.model.neighbours import Neighbours, neighbours_of
from ringleaf.model.pod_terms import HOSTNAME
from ringleaf.model.settings import Settings
from ringleaf.plugins.predicates import Predicates
from ringleaf.policies.products import PRODUCTS
from tests.effort import assert_reached, examples

A2 = PRODUCTS["atlas-800t-a2"]
Labels = dict[str, str]
Pods = Sequence[tuple[int, Demand]]

# Generators: few words, so that pods do mean each other.

APPS = st.sampled_from(["web", "db"])
KEYS = st.sampled_from(["zone", "zone", "rack", HOSTNAME])
NAMESPACES = st.sampled_from([(), (), ("far",), ("default", "far"), ("*",)])
REQUIREMENTS = st.one_of(
    st.builds(Requirement, st.just("app"), st.just(Operator.IN), st.tuples(APPS)),
    st.builds(Requirement, st.just("app"), st.just(Operator.NOT_IN), st.tuples(APPS)),
    st.builds(
        Requirement,
        st.sampled_from(["app", "tier"]),
        st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST]),
    ),
)
SELECTORS = st.one_of(
    st.lists(REQUIREMENTS, min_size=1, max_size=2).map(tuple),
    st.sampled_from([(), None]),
)
TERMS = st.builds(PodTerm, KEYS, SELECTORS, NAMESPACES)
PREFERRED = st.builds(PreferredPods, st.integers(1, 5), TERMS)
SPREADS = st.builds(
    Spread,
    KEYS,
    st.integers(1, 2),
    SELECTORS,
    st.booleans(),
    st.sampled_from([None, None, 2, 4]),
)
NEAR_WEB = PodTerm("zone", (Requirement("app", Operator.IN, ("web",)),))
NEAR_ANY = PodTerm(HOSTNAME, ())
NEAR_SELF = PodTerm(HOSTNAME, (Requirement("tier", Operator.EXISTS),))
ZONED = Requirement("zone", Operator.IN, ("a", "b"))


def some(what: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    """One or two of them."""
    return st.lists(what, min_size=1, max_size=2).map(tuple)


def few(what: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    """Mostly none of them."""
    return st.one_of(st.just(()), st.just(()), some(what))


FIELDS: dict[str, st.SearchStrategy[object]] = {
    "required": st.sampled_from([(), (), (ZONED,)]),
    "ports": st.sampled_from([(), (), ("TCP/80",), ("TCP/80", "UDP/80")]),
    "labels": st.sampled_from(
        [(), (("app", "web"),), (("app", "db"),), (("app", "web"), ("tier", "1"))]
    ),
    "namespace": st.sampled_from(["default", "default", "far"]),
    "near": few(TERMS) | st.sampled_from([(NEAR_WEB,), (NEAR_ANY,)]),
    "apart": few(TERMS),
    "spread": few(SPREADS),
    "prefers_near": few(PREFERRED),
    "prefers_apart": few(PREFERRED),
}
ASKED: dict[str, st.SearchStrategy[object]] = {
    "ports": st.sampled_from([("TCP/80",), ("TCP/80", "UDP/80")]),
    "near": some(TERMS) | st.sampled_from([(NEAR_WEB,), (NEAR_ANY,), (NEAR_SELF,)]),
    "apart": some(TERMS),
    "spread": some(SPREADS),
    "prefers_near": some(PREFERRED),
}
DEMANDS = st.builds(Demand, **FIELDS)
NODE = st.fixed_dictionaries(
    {},
    optional={
        "zone": st.sampled_from(["a", "b", "c"]),
        "rack": st.sampled_from(["1", "2"]),
    },
)
NODES = st.lists(NODE, min_size=1, max_size=5)
CASES = st.tuples(
    NODES, st.lists(st.tuples(st.integers(0, 4), DEMANDS), max_size=5), DEMANDS
)
Case = tuple[list[Labels], list[tuple[int, Demand]], Demand]


def asking(
    field: str, nodes: st.SearchStrategy[list[Labels]] = NODES
) -> st.SearchStrategy[Case]:
    """Cases in which pods run and the new pod asks for something in *field*."""
    running = st.lists(st.tuples(st.integers(0, 4), DEMANDS), min_size=2, max_size=5)
    new = st.builds(Demand, **FIELDS | {field: ASKED[field]})
    return st.tuples(nodes, running, new)


def cluster_of(labels: Sequence[Labels]) -> Cluster:
    return Cluster(
        Node(f"n{i}", A2, 8, 0xFF, labels=own) for i, own in enumerate(labels)
    )


def set_up(case: Case) -> tuple[Cluster, list[Labels], list[tuple[int, Demand]]]:
    """A cluster with the pods of *case*; its nodes' labels; where the pods are."""
    labels, pods, _pod = case
    where = cluster_of(labels)
    placed = [(node % len(labels), pod) for node, pod in pods]
    with Statement(where) as statement:
        for i, (node, pod) in enumerate(placed):
            statement.hold(f"running-{i}", node, 0, demand=pod)
        statement.commit()
    return where, [own | {HOSTNAME: f"n{i}"} for i, own in enumerate(labels)], placed


# The rules, node by node and pod by pod.


def holds(requirement: Requirement, labels: Labels) -> bool:
    has = requirement.key in labels
    inside = has and labels[requirement.key] in requirement.values
    return {
        Operator.IN: inside,
        Operator.NOT_IN: not inside,
        Operator.EXISTS: has,
        Operator.DOES_NOT_EXIST: not has,
    }[requirement.operator]


def selected(selector: Selector, labels: Labels) -> bool:
    if selector is None:
        return False
    return all(holds(requirement, labels) for requirement in selector)


def meant(term: PodTerm, by: Demand, pod: Demand) -> bool:
    """Whether *term* of the pod *by* means *pod*."""
    where = term.namespaces or (by.namespace,)
    if "*" not in where and pod.namespace not in where:
        return False
    return selected(term.selector, dict(pod.labels))


def neighbours(key: str, one: Labels, other: Labels) -> bool:
    return key in one and key in other and one[key] == other[key]


def near_holds(nodes: list[Labels], pods: Pods, pod: Demand, node: int) -> bool:
    if not pod.near:
        return True
    if any(term.key not in nodes[node] for term in pod.near):
        return False
    kin = [i for i, other in pods if all(meant(t, pod, other) for t in pod.near)]
    if all(
        any(neighbours(t.key, nodes[node], nodes[i]) for i in kin) for t in pod.near
    ):
        return True
    anywhere = any(term.key in nodes[i] for i in kin for term in pod.near)
    return not anywhere and all(meant(term, pod, pod) for term in pod.near)


def apart_holds(nodes: list[Labels], pods: Pods, pod: Demand, node: int) -> bool:
    for i, other in pods:
        for mine in pod.apart:
            if neighbours(mine.key, nodes[node], nodes[i]) and meant(mine, pod, other):
                return False
        for its in other.apart:
            if neighbours(its.key, nodes[node], nodes[i]) and meant(its, other, pod):
                return False
    return True


def counts_for(spread: Spread, by: Demand, pod: Demand) -> bool:
    same = pod.namespace == by.namespace
    return same and selected(spread.selector, dict(pod.labels))


def eligible_for(nodes: list[Labels], pod: Demand, *, hard: bool) -> list[int]:
    keys = [each.key for each in pod.spread if each.hard is hard]
    return [
        i
        for i, labels in enumerate(nodes)
        if all(holds(requirement, labels) for requirement in pod.required)
        and all(key in labels for key in keys)
    ]


def spread_holds(nodes: list[Labels], pods: Pods, pod: Demand, node: int) -> bool:
    eligible = eligible_for(nodes, pod, hard=True)
    for each in pod.spread:
        if not each.hard:
            continue
        if each.key not in nodes[node]:
            return False
        count: Counter[str] = Counter({nodes[i][each.key]: 0 for i in eligible})
        for i, other in pods:
            if i in eligible and counts_for(each, pod, other):
                count[nodes[i][each.key]] += 1
        fewest = min(count.values(), default=0)
        if each.min_domains is not None and len(count) < each.min_domains:
            fewest = 0
        mine = count[nodes[node][each.key]] + counts_for(each, pod, pod)
        if mine - fewest > each.max_skew:
            return False
    return True


def ports_hold(pods: Pods, pod: Demand, node: int) -> bool:
    return not any(i == node and set(other.ports) & set(pod.ports) for i, other in pods)


def liking_of(nodes: list[Labels], pods: Pods, pod: Demand, node: int) -> int:
    total = 0
    for i, other in pods:
        for one, two in ((pod, other), (other, pod)):
            for sign, terms in ((1, one.prefers_near), (-1, one.prefers_apart)):
                total += sum(
                    sign * each.weight
                    for each in terms
                    if neighbours(each.term.key, nodes[node], nodes[i])
                    and meant(each.term, one, two)
                )
    return total


def verdict(nodes: list[Labels], pods: Pods, pod: Demand, node: int) -> bool:
    return (
        ports_hold(pods, pod, node)
        and near_holds(nodes, pods, pod, node)
        and apart_holds(nodes, pods, pod, node)
        and spread_holds(nodes, pods, pod, node)
    )


def fine(refused: Flags | None, size: int) -> list[bool]:
    return [True] * size if refused is None else (~refused).tolist()


@settings(max_examples=examples(150))
@given(CASES)
def test_a_pod_may_go_where_every_rule_holds(case: Case) -> None:
    where, nodes, pods = set_up(case)
    plugin, pod = Predicates(SchedulerState(where, Settings()), {}), case[2]

    allowed = plugin.predicate(Job("new", A2, 0), Role("", 0, demand=pod))

    expected = [verdict(nodes, pods, pod, node) for node in range(len(nodes))]
    assert (allowed is None) == all(expected)
    if allowed is not None:
        assert allowed.tolist() == expected


@pytest.mark.parametrize("asked", ["ports", "near", "apart", "spread"])
def test_each_rule_refuses_what_a_loop_over_pods_refuses(asked: str) -> None:
    """A pod that asks for something often gets all nodes, and often some of them."""
    seen: Counter[str] = Counter()

    def check(case: Case) -> None:
        where, nodes, pods = set_up(case)
        index, pod, every = neighbours_of(where), case[2], range(len(nodes))
        ports = [ports_hold(pods, pod, node) for node in every]
        near = [near_holds(nodes, pods, pod, node) for node in every]
        apart = [apart_holds(nodes, pods, pod, node) for node in every]
        even = [spread_holds(nodes, pods, pod, node) for node in every]
        assert fine(index.port_taken(pod), len(nodes)) == ports
        assert fine(index.affinity_unmet(pod), len(nodes)) == near
        assert fine(index.repelled(pod), len(nodes)) == apart
        assert fine(index.skew_exceeded(pod), len(nodes)) == even
        found = {"ports": ports, "near": near, "apart": apart, "spread": even}[asked]
        seen["all nodes"] += all(found)
        seen["some nodes"] += any(found) and not all(found)

    for nodes in (st.lists(NODE, min_size=1, max_size=2), NODES):
        settings(max_examples=examples(140))(given(asking(asked, nodes))(check))()
    assert_reached(seen, "all nodes", "some nodes", times=3)


def test_neighbours_are_liked_as_a_loop_over_pods_says() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(150))
    @given(st.one_of(CASES, asking("prefers_near")))
    def check(case: Case) -> None:
        where, nodes, pods = set_up(case)

        found = neighbours_of(where).liking(case[2])

        liking = [liking_of(nodes, pods, case[2], node) for node in range(len(nodes))]
        assert (found is None) == (not any(liking))
        assert found is None or found.tolist() == liking
        seen["liked"] += found is not None

    check()
    assert_reached(seen, "liked", times=5)


@settings(max_examples=examples(150))
@given(CASES)
def test_nodes_are_as_crowded_as_a_loop_over_pods_says(case: Case) -> None:
    where, nodes, pods = set_up(case)
    pod = case[2]
    soft = [each for each in pod.spread if not each.hard]

    found = neighbours_of(where).crowding(pod)

    if not soft:
        assert found is None
        return
    counted = eligible_for(nodes, pod, hard=False)
    assert found is not None
    assert np.flatnonzero(found[1]).tolist() == counted
    for node in counted:
        crowd = 0.0
        for each in soft:
            value = nodes[node][each.key]
            size = len({nodes[i][each.key] for i in counted})
            n_pods = sum(
                i in counted
                and nodes[i][each.key] == value
                and counts_for(each, pod, other)
                for i, other in pods
            )
            crowd += n_pods * float(np.log(size + 2)) + each.max_skew - 1
        assert found[0].item(node) == int(crowd + 0.5)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["try", "come", "come", "go", "some go", "ask"]),
        st.integers(0, 4),
        DEMANDS,
    ),
    max_size=10,
)


def answers(index: Neighbours, pods: Iterable[Demand]) -> list[object]:
    """Everything an index can be asked, for each of *pods*."""
    found: list[object] = []
    for pod in pods:
        crowd = index.crowding(pod)
        arrays = [
            index.port_taken(pod),
            index.affinity_unmet(pod),
            index.repelled(pod),
            index.skew_exceeded(pod),
            index.liking(pod),
            *(crowd or ()),
            index.bare("cpu").counts,
        ]
        found += [None if each is None else each.tolist() for each in arrays]
        found.append(index.heeds_others(pod))
    return found


@settings(max_examples=examples(100))
@given(NODES, STEPS)
def test_an_index_that_followed_is_one_that_was_made_just_now(
    labels: list[Labels], steps: list[tuple[str, int, Demand]]
) -> None:
    """Whatever came, went, was tried and taken back, and was asked in between."""
    where = cluster_of(labels)
    index = neighbours_of(where)
    for number, (step, node, pod) in enumerate(steps):
        running = sorted(where.holdings, key=str)
        with Statement(where) as statement:
            if step == "ask":
                answers(index, [pod])
            if step in ("try", "come"):
                for replica in range(2):
                    at = (node + replica) % len(labels)
                    statement.hold(f"job-{number}", at, 0, replica, demand=pod)
            if step == "try":
                answers(index, [pod])
                for job in running:
                    statement.release(job)
                answers(index, [pod])
                continue
            if step == "go" and running:
                statement.release(running[node % len(running)])
            if step == "some go" and running:
                statement.release_pods(running[node % len(running)], {1})
            statement.commit()
    pods = [pod for _step, _node, pod in steps]

    assert answers(index, pods) == answers(Neighbours(where), pods)


@settings(max_examples=examples(100))
@given(NODES, STEPS)
def test_while_the_version_stays_so_do_the_answers(
    labels: list[Labels], steps: list[tuple[str, int, Demand]]
) -> None:
    where = cluster_of(labels)
    index = neighbours_of(where)
    pods = [pod for _step, _node, pod in steps]
    for number, (_step, node, pod) in enumerate(steps):
        before, version = answers_of_pods(index, pods), index.version
        with Statement(where) as statement:
            statement.hold(f"job-{number}", node % len(labels), 0, demand=pod)
            statement.commit()
        if index.version == version:
            assert answers_of_pods(index, pods) == before


def answers_of_pods(index: Neighbours, pods: Iterable[Demand]) -> list[object]:
    """The answers but for pods without requests, which no wish is about."""
    return [
        answer
        for pod in pods
        for number, answer in enumerate(reversed(answers(index, [pod])))
        if number != 1
    ]
