"""Rows of nodes under leaves: which leaves, and which of leaves that are equal."""

import numpy as np
import pytest
from msgspec.structs import replace

from ringleaf.model.cluster import Cluster
from ringleaf.model.job import Job
from ringleaf.model.placement import JobType, LeafState
from ringleaf.model.settings import LeafChoice, Settings
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.switches import choose_slices, leaf_table
from tests.engine.story import node
from tests.leaves import SINGLE, TWO, common, large, leaves, nodes_of

COMPACT, GUIDE = Settings(), Settings(leaf_choice=LeafChoice.GUIDE)


def shared(names: str) -> tuple[Leaf, ...]:
    """Leaves that cross-leaf jobs share (2.0)."""
    return tuple(Leaf(name, state=LeafState.SHARED) for name in names)


@pytest.mark.parametrize("job_type", [JobType.PADDING, JobType.FOUNDATION])
def test_where_no_leaf_is_known_there_is_no_row(job_type: JobType) -> None:
    cluster = Cluster([node("a"), node("b")])
    table = leaf_table(cluster, np.zeros(len(cluster), np.int64), Settings())

    assert choose_slices(table, 2, job_type, Settings()) is None


@pytest.mark.parametrize(
    ("nodes_per_leaf", "pods", "nodes"),
    [
        pytest.param(None, 4, "A0 A1 A2 A3", id="as many pods as the leaf has nodes"),
        pytest.param(None, 5, None, id="more pods than a leaf has nodes"),
        pytest.param(3, 3, "A0 A1 A2", id="as many pods as a leaf is said to have"),
        pytest.param(3, 4, None, id="more pods than a leaf is said to have"),
    ],
)
def test_a_job_in_a_single_layer_network_is_no_larger_than_a_leaf(
    nodes_per_leaf: int | None, pods: int, nodes: str | None
) -> None:
    settings = replace(SINGLE, nodes_per_leaf=nodes_per_leaf)

    assert nodes_of(leaves("A ####", "B ##"), common(pods), settings) == nodes


@pytest.mark.parametrize(
    ("settings", "nodes"),
    [
        pytest.param(COMPACT, "A0 A1 A2 A3 C1 C2", id="compact: the tightest leaf"),
        pytest.param(GUIDE, "A0 A1 A2 A3 B0 B1", id="guide: the next complete leaf"),
    ],
)
def test_d36_leaf_choice_says_where_the_rest_of_a_job_goes(
    settings: Settings, nodes: str
) -> None:
    cluster = leaves("A ####", "B ####", "C .##.")

    assert nodes_of(cluster, large(6), settings) == nodes


@pytest.mark.parametrize(
    ("settings", "nodes"),
    [
        pytest.param(COMPACT, "A0 A1 A2 A3 B0 B1 C0", id="compact: its own nodes fit"),
        pytest.param(GUIDE, None, id="guide: as many nodes fit as the largest has"),
    ],
)
def test_d36_leaf_choice_says_when_a_smaller_leaf_is_complete(
    settings: Settings, nodes: str | None
) -> None:
    """Seven of slots 0 to 3 would be 2, 2, 2 and 1: there are 3, 3, 1 and 1."""
    cluster = leaves("A ####", "B ##", "C ##")

    assert nodes_of(cluster, large(7), settings) == nodes


@pytest.mark.parametrize(
    ("choice", "nodes"),
    [
        pytest.param(
            LeafChoice.COMPACT, "A0 A1 A2 A3", id="compact: a job of any size"
        ),
        pytest.param(LeafChoice.GUIDE, "B0 B1 B2 C0", id="guide: fewer pods than M"),
    ],
)
def test_d36_leaf_choice_says_which_jobs_look_for_one_leaf(
    choice: LeafChoice, nodes: str
) -> None:
    """A leaf is said to have three nodes; A has one more."""
    settings = Settings(leaf_choice=choice, nodes_per_leaf=3)

    assert nodes_of(leaves("A ####", "B ###", "C ###"), large(4), settings) == nodes


@pytest.mark.parametrize(
    ("settings", "nodes"),
    [
        pytest.param(COMPACT, "C0 C1 C2 C3", id="compact: the last listed"),
        pytest.param(GUIDE, "A0 A1 A2 A3", id="guide: from the beginning"),
    ],
)
def test_d36_leaf_choice_says_which_of_equal_leaves_a_whole_one_is(
    settings: Settings, nodes: str
) -> None:
    assert nodes_of(leaves("A ####", "B ####", "C ####"), large(4), settings) == nodes


def test_d36_leaf_choice_guide_takes_complete_leaves_in_their_order() -> None:
    cluster = leaves("A ###.", "B ####", "C ####", "D ####")

    nodes = nodes_of(cluster, large(8), GUIDE)

    assert nodes == "B0 B1 B2 B3 C0 C1 C2 C3"


EVERY_MODE = [
    pytest.param(COMPACT, id="compact"),
    pytest.param(GUIDE, id="guide"),
    pytest.param(TWO, id="2.0"),
]


@pytest.mark.parametrize("settings", EVERY_MODE)
def test_d35_a_leaf_with_a_sub_healthy_node_is_taken_in_part_and_another_whole(
    settings: Settings,
) -> None:
    cluster = leaves("A ###s", "B ####")

    assert nodes_of(cluster, large(6), settings) == "B0 B1 B2 B3 A0 A1"


@pytest.mark.parametrize("settings", EVERY_MODE)
def test_d35_leaves_that_cost_the_same_are_taken_in_their_order(
    settings: Settings,
) -> None:
    cluster = leaves("A ###s", "B ###s", "C ###s")

    assert nodes_of(cluster, large(6), settings) == "A0 A1 A2 A3 B0 B1"


@pytest.mark.parametrize("settings", EVERY_MODE)
def test_d35_the_leaf_that_is_taken_in_part_may_be_the_cheapest_as_a_whole(
    settings: Settings,
) -> None:
    """Pods of two chips leave 0 and 6 under A, 4 and 4 under B.

    A whole and a node of B leave 6 + 4, B whole and a node of A 8 + 0.
    """
    free = {"A0": 2, "A1": 8, "B0": 6, "B1": 6}
    cluster = Cluster(
        node(name, range(chips), leaf=name[0], slot=int(name[1]))
        for name, chips in free.items()
    )

    assert nodes_of(cluster, common(3, chips=2), settings) == "B0 B1 A0"


REMAINDER = [
    pytest.param(
        ("A ####", "B ##", "C .ss."), large(5), "A0 A1 A2 A3 B0", id="health first"
    ),
    pytest.param(
        ("A ####", "B #-", "C .##."),
        large(5, chips=4),
        "A0 A1 A2 A3 B1",
        id="then fragments",
    ),
    pytest.param(
        ("A ####", "B ##", "C .##."),
        large(5),
        "A0 A1 A2 A3 C1",
        id="then the leaf that is not complete",
    ),
    pytest.param(
        ("A ##ss", "B ####", "C sss#."),
        large(6),
        "B0 B1 B2 B3 A0 A1",
        id="of leaves of one size, one whole and one in part count together",
    ),
    pytest.param(
        ("A ##ss", "B ####", "C ss##."),
        large(6),
        "B0 B1 B2 B3 C2 C3",
        id="and where both are as good, the leaf that is not complete",
    ),
]


@pytest.mark.parametrize(("drawn", "job", "nodes"), REMAINDER)
def test_d35_the_remainder_of_a_job_goes_to_the_better_nodes_first(
    drawn: tuple[str, ...], job: Job, nodes: str
) -> None:
    """As many nodes are free under a complete leaf and under one that is not."""
    assert nodes_of(leaves(*drawn), job) == nodes


@pytest.mark.parametrize("settings", EVERY_MODE)
def test_d35_of_equal_leaves_those_without_a_sub_healthy_node_are_filled(
    settings: Settings,
) -> None:
    cluster = leaves("A ###s", "B ####", "C ####")

    assert nodes_of(cluster, large(8), settings) == "B0 B1 B2 B3 C0 C1 C2 C3"


@pytest.mark.parametrize("settings", [COMPACT, GUIDE], ids=["compact", "guide"])
def test_leaves_that_a_job_fills_are_taken_in_their_order_whatever_they_cost(
    settings: Settings,
) -> None:
    """Half-free nodes are better for pods of four chips; C has none and is left."""
    cluster = leaves("A -#", "B --", "C ##")

    assert nodes_of(cluster, large(4, chips=4), settings) == "A0 A1 B0 B1"


@pytest.mark.parametrize("settings", EVERY_MODE)
def test_a_job_that_needs_every_leaf_takes_them_in_their_order(
    settings: Settings,
) -> None:
    cluster = leaves("A ###s", "B ####")

    assert nodes_of(cluster, large(8), settings) == "A0 A1 A2 A3 B0 B1 B2 B3"


@pytest.mark.parametrize("settings", [COMPACT, GUIDE], ids=["compact", "guide"])
def test_d35_a_common_job_without_a_rule_leaves_a_sub_healthy_node_alone(
    settings: Settings,
) -> None:
    """No leaf has three nodes, and there are two slots only; larger leaves go first."""
    cluster = leaves("A #...", "B ##..", "C ss..", "D ##..")

    assert nodes_of(cluster, common(3), settings) == "B0 B1 D0"


LOGICAL = [
    pytest.param(
        ("A .###", "B #.##", "C ##.#", "D ###."),
        "B0 A1 A2 A3 C0 C1",
        id="equal nodes go by their leaves",
    ),
    pytest.param(
        ("A .###", "B s.##", "C ##.#", "D ###."),
        "C0 A1 A2 A3 D0 C1",
        id="the better node of a slot goes first",
    ),
    pytest.param(
        ("A .s##", "B #.##", "C ###.", "D ...."),
        "B0 C1 A2 A3 C0 B2",
        id="and the best of the last row, whatever their slots",
    ),
    pytest.param(
        ("A .s##", "B ##..", "C #.##"),
        "C0 A1 A2 A3 B0 B1",
        id="but a leaf with more free nodes before it",
    ),
]


@pytest.mark.parametrize(("drawn", "nodes"), LOGICAL)
def test_d29_d35_a_foundation_job_loads_every_slot_alike(
    drawn: tuple[str, ...], nodes: str
) -> None:
    """Six nodes: one at each slot, and one more at two of them."""
    assert nodes_of(leaves(*drawn), large(6)) == nodes


ONE_LOGICAL = [
    pytest.param(
        ("A ##..", "B ##..", "C ..#."), "A0 A1 C2", id="leaves in their order"
    ),
    pytest.param(("A s#..", "B ##..", "C ..#."), "B0 A1 C2", id="the better node"),
    pytest.param(
        ("A s#..", "B #...", "C ..#."),
        "A0 A1 C2",
        id="not one whose leaf has fewer free nodes",
    ),
]


@pytest.mark.parametrize(("drawn", "nodes"), ONE_LOGICAL)
def test_d35_a_logical_leaf_takes_the_better_node_at_a_slot(
    drawn: tuple[str, ...], nodes: str
) -> None:
    assert nodes_of(leaves(*drawn), common(3)) == nodes


def test_2_0_the_rest_goes_to_the_tightest_idle_leaf_with_the_better_nodes() -> None:
    """A is filled; of the leaves with three nodes B has one good one only."""
    cluster = leaves("A ####", "B ss#.", "C ###.")

    assert nodes_of(cluster, large(6), TWO) == "A0 A1 A2 A3 C0 C1"


def test_2_0_of_shared_leaves_that_suffice_alone_the_better_nodes_are_taken() -> None:
    cluster = leaves("A ss..", "B ##..", "C ####", known=shared("AB"))

    assert nodes_of(cluster, large(5), TWO) == "C0 C1 C2 C3 B0"


def test_2_0_of_pairs_of_shared_leaves_with_one_sum_the_better_nodes_are_taken() -> (
    None
):
    """Three nodes are left: one of A or B, and two of C or D."""
    drawn = ("A s...", "B #...", "C s#..", "D ##..", "E ####")

    nodes = nodes_of(leaves(*drawn, known=shared("ABCD")), large(7), TWO)

    assert nodes == "E0 E1 E2 E3 B0 D0 D1"
