"""The SuperPoDs of jobs of one pod, and of blocks that are split."""

import pytest

from ringleaf.framework.explain import survey
from ringleaf.framework.session import Session
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.job import Firmness, Job
from ringleaf.model.mask import mask_of
from ringleaf.model.settings import Settings
from ringleaf.policies.products import PRODUCTS
from tests.leaves import nodes_of, superpods

A3 = PRODUCTS["atlas-900-a3"]
WHOLE = range(16)


def node(name: str, superpod: int, free: object = WHOLE) -> Node:
    assert isinstance(free, list | range)
    return Node(name, A3, 16, mask_of(free), superpod=superpod)


def cluster_of(sizes: dict[int, int]) -> Cluster:
    """Free nodes per SuperPoD; names run against the ids, so that they never help."""
    return Cluster(
        node(f"n{9 - superpod}-{i}", superpod)
        for superpod, size in sizes.items()
        for i in range(size)
    )


def chosen(cluster: Cluster, chips: int, reserve: int) -> str:
    session = Session(cluster, Settings(reserve_nodes=reserve))
    job = Job("job", A3, chips)
    found = survey(session, job, most=99)
    decision = session.decide(job)
    assert isinstance(decision, Placed)
    assert found.best[0].node == decision.placements[0].node
    return decision.placements[0].node


@pytest.mark.parametrize(
    ("sizes", "reserve", "superpod"),
    [
        pytest.param({0: 5, 1: 3}, 2, 1, id="the fewest nodes that keep the reserve"),
        pytest.param({0: 5, 1: 2}, 2, 0, id="too few to keep the reserve come later"),
        pytest.param({0: 1, 1: 2}, 2, 1, id="none keeps it: the most nodes"),
        pytest.param({0: 2, 1: 1}, 0, 1, id="no reserve: the fewest nodes"),
        pytest.param({5: 3, 2: 3, 7: 3}, 2, 2, id="equal: the lowest id"),
        pytest.param({5: 2, 2: 2}, 4, 2, id="equal, none keeps it: the lowest id"),
    ],
)
def test_d15_one_pod_finds_its_superpod(
    sizes: dict[int, int], reserve: int, superpod: int
) -> None:
    name = chosen(cluster_of(sizes), 16, reserve)

    assert name == f"n{9 - superpod}-0"


def test_d15_only_nodes_that_tie_for_best_are_counted() -> None:
    """SuperPoD 0 has more nodes, but fewer that leave as little behind."""
    nodes = [
        node("a", 0, range(4)),
        *(node(f"b{i}", 0) for i in range(9)),
        *(node(f"c{i}", 1, range(4)) for i in range(2)),
    ]

    assert chosen(Cluster(nodes), 2, reserve=0) == "a"
    assert chosen(Cluster(nodes), 2, reserve=1) == "c0"


def test_d16_in_a_superpod_the_lowest_name_and_sub_healthy_last() -> None:
    sick = Node("a", A3, 16, mask_of(WHOLE), sub_healthy=True, superpod=0)
    cluster = Cluster([sick, node("c", 0), node("b", 0)])

    assert chosen(cluster, 16, reserve=2) == "b"


@pytest.mark.parametrize(
    ("pods", "nodes"),
    [
        pytest.param(2, "b c", id="enough nodes are healthy"),
        pytest.param(3, "a b c", id="the sub-healthy node is needed"),
    ],
)
def test_d16_a_block_takes_a_sub_healthy_node_last(pods: int, nodes: str) -> None:
    sick = Node("a", A3, 16, mask_of(WHOLE), sub_healthy=True, superpod=0)
    cluster = Cluster([sick, node("c", 0), node("b", 0)])

    assert nodes_of(cluster, Job("job", A3, 16, pods)) == nodes


def test_the_order_of_an_explanation_is_by_rank_and_then_by_superpod() -> None:
    cluster = Cluster(
        [
            *(node(f"a{i}", 0) for i in range(4)),
            *(node(f"b{i}", 1) for i in range(3)),
            node("z", 2, range(2)),
        ]
    )
    session = Session(cluster, Settings(reserve_nodes=2))

    best = survey(session, Job("job", A3, 2), most=99).best

    order = [candidate.node for candidate in best]
    assert order == ["z", "b0", "b1", "b2", "a0", "a1", "a2", "a3"]


def test_the_last_block_goes_to_the_superpod_where_it_leaves_the_least_over() -> None:
    """Of three blocks of three nodes SuperPoD 0 takes two; the others hold two each."""
    job = Job("job", A3, 16, 9, sp_block=48)

    nodes = nodes_of(superpods(6, 8, 7), job, Settings(reserve_nodes=0))

    assert nodes is not None
    assert [name.partition("-")[0] for name in nodes.split()] == ["p0"] * 6 + ["p2"] * 3


def test_a_split_block_leaves_superpods_alone_once_all_its_nodes_are_found() -> None:
    """SuperPoD 0 takes a whole block; the other block is split."""
    cluster, settings = superpods(3, 2, 1, 1), Settings(reserve_nodes=0)
    job = Job("job", A3, 16, 6, sp_block=48, superpod_affinity=Firmness.SOFT)

    found = survey(Session(cluster, settings), job, most=1)

    assert [view.visited for view in found.superpods] == [1, 2, 3, None]
    assert nodes_of(cluster, job, settings) == "p0-00 p0-01 p0-02 p1-00 p1-01 p2-00"


def test_a_split_block_avoids_chips_whose_network_is_faulty() -> None:
    """Its parts speak over the network; a whole block does not."""
    nodes = [
        Node(f"p{superpod}-{i}", A3, 16, 0xFFFF, network_faulty=bad, superpod=superpod)
        for superpod, bad in ((0, 1), (1, 0), (2, 0))
        for i in range(2)
    ]
    soft = Job("j", A3, 16, 2, superpod_affinity=Firmness.SOFT)
    reserve = Settings(reserve_nodes=0)

    whole = nodes_of(Cluster(nodes[:2]), soft, reserve)
    split = nodes_of(Cluster([nodes[0], nodes[2], nodes[4]]), soft, reserve)
    waits = nodes_of(Cluster([nodes[0], nodes[2]]), soft, reserve)

    assert whole == "p0-0 p0-1"
    assert split == "p1-0 p2-0"
    assert waits is None
