"""Rules that know rings: FGD and HiveD's cells."""

import pytest

from ringleaf.baselines.fragmentation import fragments
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.mask import full_mask
from ringleaf.policies.products import PRODUCTS
from tests.baselines.stage import A2, A3, OLD, Stage, drawn, free_of, under_leaves


@pytest.mark.parametrize(
    ("drawing", "pieces"),
    [
        # One chip can be used by pods of 1; pods of 2, 4 and 8 cannot: 3 of 4 sizes.
        ("#...|....", 0.75),
        ("####|####", 0.0),
        # 3 + 1: a pod of 2 leaves two, a pod of 4 or 8 leaves all four.
        ("###.|#...", (2 + 4 + 4) / 4),
        ("####|....", 4 / 4),
        ("##..|##..", (4 + 4) / 4),
        ("....|....", 0.0),
    ],
)
def test_fragmentation_is_what_typical_pods_cannot_use(
    drawing: str, pieces: float
) -> None:
    assert fragments(OLD)[free_of(drawing)] == pytest.approx(pieces)


def test_fgd_takes_the_node_and_ring_that_leaves_least_in_pieces() -> None:
    """One chip of the ring of one; splitting the ring of four or two costs more."""
    stage = Stage("fgd", drawn("####|####", "##..|#...", "##..|...."))

    assert stage.comes(Job("j", OLD, 1)) == ["n01"]
    assert stage.chips_of("j") == [(4,)]


def test_fgd_never_splits_a_pod_over_rings() -> None:
    stage = Stage("fgd", drawn("###.|#..."))

    assert stage.comes(Job("j", OLD, 4)) is None


def test_fgd_keeps_whole_rings_for_those_who_need_them() -> None:
    """Two chips of a whole node add two; out of a ring of three they take one away."""
    stage = Stage("fgd", drawn("####|####", "###.|...."))

    assert stage.comes(Job("j", OLD, 2)) == ["n01"]


def test_hived_takes_from_the_ring_that_is_split_and_tightest() -> None:
    stage = Stage("hived", drawn("####|####", "####|.###", "####|..##"))

    assert stage.comes(Job("j", OLD, 2)) == ["n02"]
    assert stage.chips_of("j") == [(6, 7)]


def test_hived_splits_a_ring_of_a_split_node_before_a_whole_node() -> None:
    taken = Job("before", OLD, 4)
    stage = Stage("hived", drawn("####|####", "####|####"))
    stage.comes(taken)

    assert stage.comes(Job("j", OLD, 1)) == ["n00"]
    assert stage.chips_of("j") == [(4,)]


def test_hived_splits_a_node_of_a_split_leaf_before_a_whole_leaf() -> None:
    stage = Stage("hived", under_leaves("A ####", "B ####", "C ####"))
    stage.comes(Job("filler", A2, 8, 4))
    stage.goes("filler")
    stage.comes(Job("first", A2, 8))

    assert stage.nodes_of("first") == ["A0"]
    assert stage.comes(Job("second", A2, 4)) == ["A1"]
    assert stage.comes(Job("third", A2, 8)) == ["A2"]


def test_hived_gives_large_jobs_leaves_that_are_whole() -> None:
    stage = Stage("hived", under_leaves("A ####", "B ####", "C ####"))
    stage.comes(Job("small", A2, 8, 2))

    assert stage.comes(Job("large", A2, 8, 6)) == [
        *("B0", "B1", "B2", "B3"),
        *("A2", "A3"),
    ]


@pytest.mark.parametrize("name", ["fgd", "hived"])
def test_modules_of_two_go_whole(name: str) -> None:
    half = Node("n0", A3, 16, 0b1111_0111, superpod=0)
    stage = Stage(name, [half])

    stage.comes(Job("one", A3, 1))
    stage.comes(Job("two", A3, 2))

    assert stage.chips_of("one") == [(2,)]
    assert stage.chips_of("two")[0] in {(0, 1), (4, 5), (6, 7)}


@pytest.mark.parametrize("name", ["fgd", "hived"])
def test_nodes_too_large_for_a_table_are_served_too(name: str) -> None:
    large = next(p for p in PRODUCTS.values() if p.chips > 16)
    chips = large.chips
    nodes = [Node(f"n{i}", large, chips, full_mask(chips)) for i in range(2)]

    assert Stage(name, nodes).comes(Job("j", large, 1)) is not None
