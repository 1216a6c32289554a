"""Which jobs cross which leaf, and what pods say of it."""

import numpy as np
import pytest

from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.placement import NO_MARK, JobType, LeafAnnotation, LeafState
from ringleaf.model.uplinks import NOWHERE, Leaf, UplinkUsage
from ringleaf.policies.products import PRODUCTS

FOUNDATION = LeafAnnotation(JobType.FOUNDATION, LeafState.EXCLUSIVE)
COMMON = LeafAnnotation(JobType.COMMON, LeafState.SHARED)
SICK = LeafAnnotation(JobType.COMMON, LeafState.SHARED, healthy=False)


def three() -> UplinkUsage:
    return UplinkUsage([Leaf("A"), Leaf("B"), Leaf("C")])


def counts(spine: UplinkUsage) -> list[list[int]]:
    arrays = (
        spine.crossing,
        spine.foundation,
        spine.uncommon,
        spine.state,
        spine.unhealthy,
    )
    return [np.asarray(array).astype(int).tolist() for array in arrays]


def test_a_job_under_one_leaf_crosses_nothing() -> None:
    spine = three()

    spine.count("j", 0, 1, NO_MARK, 1)
    spine.count("j", 0, 1, NO_MARK, 1)

    assert spine.crossing.tolist() == [0, 0, 0]
    assert spine.uncommon.tolist() == [1, 0, 0]
    assert spine.jobs_crossing(0) == []


def test_a_second_leaf_makes_the_job_cross_both() -> None:
    spine = three()

    spine.count("j", 0, 1, FOUNDATION, 1)
    spine.count("j", 2, 1, FOUNDATION, 1)
    spine.count("j", 2, 1, FOUNDATION, 1)

    assert spine.crossing.tolist() == [1, 0, 1]
    assert spine.foundation.tolist() == [1, 0, 1]
    assert spine.state.tolist() == [2, 0, 2]
    assert spine.jobs_crossing(2) == ["j"]


def test_a_third_leaf_is_counted_once() -> None:
    spine = three()

    for leaf in (0, 1, 2):
        spine.count("j", leaf, 1, COMMON, 1)

    assert spine.crossing.tolist() == [1, 1, 1]
    assert spine.foundation.tolist() == [0, 0, 0]
    assert spine.uncommon.tolist() == [0, 0, 0]


def test_a_pod_outside_every_leaf_makes_the_job_cross_too() -> None:
    spine = three()

    spine.count("j", NOWHERE, 1, NO_MARK, 1)
    spine.count("j", 1, 1, NO_MARK, 1)

    assert spine.crossing.tolist() == [0, 1, 0]


def test_shared_is_said_before_exclusive_before_idle() -> None:
    spine = three()

    spine.count("a", 0, 1, FOUNDATION, 1)
    spine.count("b", 0, 1, COMMON, 1)
    spine.count("c", 1, 1, FOUNDATION, 1)

    assert spine.state.tolist() == [1, 2, 0]


def test_a_leaf_is_sick_while_one_pod_says_so() -> None:
    spine = three()
    spine.count("a", 1, 1, SICK, 1)
    spine.count("b", 1, 1, COMMON, 1)

    before = spine.unhealthy.tolist()
    spine.count("a", 1, 1, SICK, -1)

    assert before == [False, True, False]
    assert spine.unhealthy.tolist() == [False, False, False]


def test_what_is_known_besides_the_pods_counts() -> None:
    spine = UplinkUsage(
        [
            Leaf("A", crossed_by=(JobType.FOUNDATION, JobType.COMMON)),
            Leaf("B", state=LeafState.SHARED, healthy=False),
        ]
    )

    assert counts(spine) == [[2, 0], [1, 0], [1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_going_takes_back_what_coming_did(order: tuple[int, ...]) -> None:
    spine = three()
    spine.count("other", 1, 1, COMMON, 1)
    before = counts(spine)
    pods = [(0, FOUNDATION), (0, FOUNDATION), (1, FOUNDATION), (NOWHERE, FOUNDATION)]

    for leaf, mark in pods:
        spine.count("j", leaf, 1, mark, 1)
    during = counts(spine)
    for i in order:
        leaf, mark = pods[i]
        spine.count("j", leaf, 1, mark, -1)

    assert during != before
    assert counts(spine) == before


def test_leaves_stand_in_the_order_they_are_given_then_as_nodes_name_them() -> None:
    product = PRODUCTS["atlas-800t-a2"]
    nodes = [Node(n, product, 8, 255, leaf=n.upper()) for n in "abcd"]
    leaves = [Leaf("D", order=0), Leaf("B", order=1), Leaf("C")]

    assert [leaf.name for leaf in Cluster(nodes, leaves).leaves] == [*"DBAC"]
