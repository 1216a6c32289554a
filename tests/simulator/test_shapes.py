"""How many chips somebody wants, made into pods that a cluster takes."""

from collections import Counter

import numpy as np
import pytest
from msgspec.structs import replace

from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.batch import by_day, straight
from ringleaf.simulator.shapes import JobShaper, ProductNodes, product_nodes
from ringleaf.simulator.sites import site
from ringleaf.simulator.source import BadInput

RINGS = ProductNodes(PRODUCTS["atlas-800-9000"], 8, 64, 4, has_leaves=True)
PODS = ProductNodes(
    PRODUCTS["atlas-900-a3"], 16, 96, 16, has_leaves=False, superpods=(48, 48)
)


@pytest.mark.parametrize(
    ("ground", "wanted", "pods"),
    [
        (RINGS, 1, (1, 1)),
        (RINGS, 3, (1, 4)),
        (RINGS, 5, (1, 8)),
        (RINGS, 9, (2, 8)),
        (RINGS, 512, (64, 8)),
        (RINGS, 513, (64, 8)),
        (PODS, 9, (1, 16)),
        (PODS, 256, (16, 16)),
        (PODS, 257, (32, 16)),
        (PODS, 9999, (96, 16)),
    ],
)
def test_sizes_are_rounded_up_to_what_is_taken(
    ground: ProductNodes, wanted: int, pods: tuple[int, int]
) -> None:
    shape = ground.shape(wanted)

    assert (shape.replicas, shape.chips) == pods
    assert shape.cut == (wanted > ground.chips)


@pytest.mark.parametrize(
    ("wanted", "block", "nodes", "chips"),
    [
        (512, 16, 32, 256),
        (512, 32, 32, None),
        (1024, 32, 64, 512),
        (1024, 48, 96, 768),
        (1024, 99, 96, 768),
        (1537, 32, 64, 512),
    ],
)
def test_blocks_are_those_that_are_asked_for(
    wanted: int, block: int, nodes: int, chips: int | None
) -> None:
    shape = PODS.shape(wanted, block)

    assert (shape.replicas, shape.sp_block) == (nodes, chips)


def test_a_job_goes_to_a_product_of_which_it_takes_half_at_most() -> None:
    crowd = JobShaper(product_nodes(site("mixed")))
    draw = np.linspace(0, 1, 1200, endpoint=False)

    found = {
        chips: Counter(
            crowd.grounds[i].product.key
            for i in crowd.chosen(np.full(1200, chips), draw).tolist()
        )
        for chips in (512, 513, 1025, 1537, 99999)
    }

    pods, mesh, ring = "atlas-900-a3", "atlas-800t-a2", "atlas-800-9000"
    assert found == {
        512: {pods: 600, mesh: 400, ring: 200},
        513: {pods: 720, mesh: 480},
        1025: {pods: 1200},
        1537: {pods: 1200},
        99999: {pods: 1200},
    }


def test_nodes_that_are_not_in_order_do_not_count() -> None:
    made = site("leaf-spine-512:nodes=4")
    a, b, c, d = made.nodes
    ill = (a, replace(b, ready=False), replace(c, cordoned=True), replace(d, faulty=1))

    assert [ground.n_nodes for ground in product_nodes(replace(made, nodes=ill))] == [1]
    with pytest.raises(BadInput, match="has no node in order, want at least one"):
        product_nodes(replace(made, nodes=ill[1:]))


def test_arrivals_in_proportion_begin_at_zero() -> None:
    clock = straight(10.0, 30.0, 200.0)

    assert clock(np.array([10.0, 15.0, 30.0])).tolist() == [0.0, 50.0, 200.0]


def test_the_rate_of_a_day_is_a_sine() -> None:
    days = 3 * 86400.0
    clock = by_day(0.0, 1.0, days, 0.6)
    at = clock(np.linspace(0.0, 1.0, 300_001))

    # Between midnight and t come t + 0.6 (1 - cos 2 pi t) / 2 pi of a day's jobs.
    counts, _edges = np.histogram(at, bins=12, range=(0.0, days))
    turn = 2 * np.pi
    wanted = [
        (0.25 + 0.6 * (np.cos(turn * t) - np.cos(turn * (t + 0.25))) / turn) * 100_000
        for t in (0.0, 0.25, 0.5, 0.75)
    ]

    assert at[0] == 0.0
    assert at[-1] == pytest.approx(days)
    assert counts.tolist() == pytest.approx(wanted * 3, abs=3)
