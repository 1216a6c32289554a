"""Fragments, against the formula by rings and against what can be placed."""

import numpy as np
import pytest

from ringleaf.model.cluster import Cluster, Node
from ringleaf.policies.fragments import fragments
from ringleaf.policies.products import PRODUCTS
from tests.chips import a_cluster

RINGS = PRODUCTS["atlas-800-9000"]


def usable(left: int, right: int, asked: int) -> int:
    """Chips of two rings of four that pods of so many chips can use."""
    if asked == 8:
        return 8 * (left == right == 4)
    return asked * (left // asked + right // asked)


@pytest.mark.parametrize("asked", [1, 2, 4, 8])
def test_rings_of_four_lose_what_the_formula_says(asked: int) -> None:
    for mask in range(256):
        left, right = (mask & 0xF).bit_count(), (mask >> 4).bit_count()
        cluster = Cluster([Node("n", RINGS, 8, mask)])

        lost = fragments(cluster, RINGS)[asked]

        assert lost == left + right - usable(left, right, asked), f"{mask:08b}"


@pytest.mark.parametrize(
    ("product", "drawing", "lost"),
    [
        ("atlas-800t-a2", "012....7", {1: 0, 2: 0, 4: 0, 8: 4}),
        ("atlas-900-a3", "0.|2.|45|67|..|..|..|..", {1: 0, 2: 2, 4: 2, 8: 6, 16: 6}),
        ("atlas-200t-a2-box16", "01234567|89......", {1: 0, 2: 0, 4: 2, 8: 2, 16: 10}),
        ("atlas-800-9000", "01x.|4...", {1: 0, 2: 1, 4: 3, 8: 3}),
    ],
)
def test_what_each_request_cannot_use(
    product: str, drawing: str, lost: dict[int, int]
) -> None:
    cluster = a_cluster(product, [drawing])

    assert fragments(cluster, PRODUCTS[product]) == lost


def test_nodes_that_take_no_pods_do_not_count() -> None:
    nodes = [
        Node("a", RINGS, 8, 0xFF, ready=False),
        Node("b", RINGS, 8, 0xFF, cordoned=True),
        Node("c", PRODUCTS["atlas-800t-a2"], 8, 0x01),
    ]

    assert fragments(Cluster(nodes), RINGS) == {1: 0, 2: 0, 4: 0, 8: 0}


def test_all_chips_of_an_empty_cluster_are_of_use() -> None:
    nodes = [Node(f"n{i}", RINGS, 8, 0xFF) for i in range(4)]

    assert not np.any([*fragments(Cluster(nodes), RINGS).values()])
