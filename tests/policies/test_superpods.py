"""The SuperPoDs of jobs of one pod, and of blocks that are split."""

from typing import Any

import pytest

from ringleaf.explain.survey import survey
from ringleaf.framework.session import Session
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed, Waiting
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.job_labels import Firmness
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import Placement
from ringleaf.model.settings import Settings
from ringleaf.policies.products import PRODUCTS
from ringleaf.policies.superpods import BlockLayout, BlockShare, choose_parts
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


def left_of(pods: int, block: int, *ended: int, **changes: Any) -> Job:  # noqa: ANN401
    """What is left of a job in blocks of *block* nodes when these pods ended well."""
    ranks = tuple(rank for rank in range(pods) if rank not in ended)
    role = Role("", 16, len(ranks), ranks=ranks)
    given: dict[str, Any] = {"sp_block": 16 * block, "roles": (role,), **changes}
    return Job("job", A3, 16, len(ranks), finished=ended, **given)


def blocks_in(cluster: Cluster, job: Job, reserve: int = 0) -> dict[str, str] | None:
    """SuperPoD -> the pods there, each as its rank and its block."""
    decision = Session(cluster, Settings(reserve_nodes=reserve)).decide(job)
    if not isinstance(decision, Placed):
        return None
    found: dict[str, list[str]] = {}
    for each in decision.placements:
        pods = found.setdefault(each.node.partition("-")[0], [])
        pods.append(f"{each.replica}/{each.block}")
    return {superpod: " ".join(found[superpod]) for superpod in sorted(found)}


@pytest.mark.parametrize(
    ("sizes", "job", "reserve", "places"),
    [
        pytest.param(
            (1, 2), left_of(4, 2, 0), 0, {"p0": "1/0", "p1": "2/1 3/1"}, id="hard"
        ),
        pytest.param(
            (2, 1), left_of(4, 2, 3), 0, {"p0": "0/0 1/0", "p1": "2/1"}, id="last block"
        ),
        pytest.param(
            (3,), left_of(4, 2, 0), 0, {"p0": "1/0 2/1 3/1"}, id="one holds all of it"
        ),
        pytest.param((1, 1, 1), left_of(4, 2, 0), 0, None, id="no whole block"),
        pytest.param((2,), left_of(4, 2, 0), 0, None, id="no room for what is left"),
        pytest.param(
            (1, 1), left_of(4, 2, 0, 2), 0, {"p0": "1/0", "p1": "3/1"}, id="two halves"
        ),
        pytest.param(
            (2, 3),
            left_of(8, 4, 0, 4, 5),
            0,
            {"p0": "6/1 7/1", "p1": "1/0 2/0 3/0"},
            id="the largest first, where it fits most tightly",
        ),
        pytest.param(
            (4, 3), left_of(6, 3, 0, 4, 5), 0, {"p1": "1/0 2/0 3/1"}, id="all in one"
        ),
        pytest.param(
            (2, 3, 3),
            left_of(6, 3, 0, 1, 5),
            1,
            {"p0": "2/0", "p1": "3/1 4/1"},
            id="those that keep their reserve",
        ),
        pytest.param(
            (1, 2), left_of(4, 2, 0, 1, 2), 0, {"p0": "3/1"}, id="one pod is left"
        ),
        pytest.param(
            (1, 1, 1),
            left_of(4, 2, 0, superpod_affinity=Firmness.SOFT),
            0,
            {"p0": "1/0", "p1": "2/1", "p2": "3/2"},
            id="soft",
        ),
        pytest.param(
            (2, 2),
            left_of(4, 4, 0, superpod_affinity=Firmness.SOFT),
            0,
            {"p0": "1/0 2/0", "p1": "3/1"},
            id="soft, one block",
        ),
        pytest.param(
            (2, 3),
            left_of(4, 4, 0, superpod_affinity=Firmness.SOFT),
            0,
            {"p1": "1/0 2/0 3/0"},
            id="soft, and its block is whole",
        ),
        pytest.param(
            (1, 2),
            left_of(4, 2, 0, min_available=1),
            0,
            {"p0": "1/0", "p1": "2/1 3/1"},
            id="elastic",
        ),
    ],
)
def test_what_is_left_of_blocks_lies_in_superpods(
    sizes: tuple[int, ...], job: Job, reserve: int, places: dict[str, str] | None
) -> None:
    assert blocks_in(superpods(*sizes), job, reserve) == places


def test_what_is_left_of_a_block_takes_the_healthier_nodes_of_equal_superpods() -> None:
    sick = Node("p0-0", A3, 16, mask_of(WHOLE), sub_healthy=True, superpod=0)
    pods = [node("p1-0", 1), node("p2-0", 2), node("p2-1", 2)]

    assert blocks_in(Cluster([sick, *pods]), left_of(4, 2, 0)) == {
        "p1": "1/0",
        "p2": "2/1 3/1",
    }


def test_the_reason_of_a_pending_job_names_what_is_left_of_its_blocks() -> None:
    session = Session(superpods(2, 0), Settings(reserve_nodes=0))

    decision = session.decide(left_of(4, 2, 0))

    assert isinstance(decision, Waiting)
    assert decision.because == (
        "SuperPoD rule: needs 1 whole block of 2 nodes and, of blocks with pods that "
        "have succeeded, 1 node, each block in one SuperPoD; SuperPoD 0 has 2 free"
    )


@pytest.mark.parametrize(
    ("sizes", "kept", "places"),
    [
        pytest.param((2, 2), 1, {"p0": "1/0", "p1": "2/1 3/1"}, id="its block is done"),
        pytest.param(
            (2, 1), 2, {"p0": "2/1 3/1", "p1": "1/0"}, id="its block is filled"
        ),
        pytest.param((2, 0), 2, None, id="no room for what is left"),
    ],
)
def test_a_job_that_runs_in_part_is_completed_block_by_block(
    sizes: tuple[int, ...], kept: int, places: dict[str, str] | None
) -> None:
    there = Placement(kept, "p0-00", tuple(WHOLE), kept // 2)
    job = left_of(4, 2, 0, previous=Previous((there,)))

    assert blocks_in(superpods(*sizes), job) == places


def drawn(*marks: str) -> Cluster:
    """SuperPoD 0 has the nodes of the first string, and so on; ``s`` is sub-healthy."""
    return Cluster(
        Node(f"p{i}-{n}", A3, 16, mask_of(WHOLE), sub_healthy=mark == "s", superpod=i)
        for i, row in enumerate(marks)
        for n, mark in enumerate(row)
    )


def test_d35_of_superpods_that_hold_the_job_alike_the_healthier_is_taken() -> None:
    cluster, reserve = drawn("s#", "##", "##"), Settings(reserve_nodes=0)

    assert nodes_of(cluster, Job("j", A3, 16, 2), reserve) == "p1-0 p1-1"


@pytest.mark.parametrize(
    ("marks", "nodes"),
    [
        pytest.param(("##", "##"), "p0-0 p0-1 p1-0", id="all cost the same"),
        pytest.param(("s#", "##"), "p1-0 p1-1 p0-1", id="the sub-healthy node is left"),
        pytest.param(("s#", "s#"), "p0-1 p0-0 p1-1", id="one of two is left"),
    ],
)
def test_d35_the_superpod_that_gives_fewer_blocks_is_the_one_that_is_less_healthy(
    marks: tuple[str, ...], nodes: str
) -> None:
    """Three blocks of one node: two of one SuperPoD and one of the other.

    The first block of a SuperPoD takes its best node.
    """
    job, reserve = Job("j", A3, 16, 3, sp_block=16), Settings(reserve_nodes=0)

    assert nodes_of(drawn(*marks), job, reserve) == nodes


def test_d35_the_superpod_that_gives_fewer_blocks_may_be_the_cheapest_in_all() -> None:
    """All of 0 and a node of 1 cost 5 + 3, all of 1 and a node of 0 cost 6 + 0."""
    costs = {0: [0, 5], 1: [3, 3]}

    def price(superpod: int, start: int, count: int) -> tuple[int, int]:
        return 0, sum(costs[superpod][start : start + count])

    parts = choose_parts({0: 2, 1: 2}, BlockLayout(blocks=3, size=1, reserve=0), price)

    assert parts == [BlockShare(1, 1), BlockShare(1, 1), BlockShare(0, 1)]
