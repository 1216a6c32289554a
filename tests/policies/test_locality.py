"""The leaf inside which a job without a network rule stays (decision D38).

The expected leaf is found by brute force: a leaf is good when the pods find there, one
after the other, nodes of exactly the ranks that they find in the whole cluster.
"""

from collections.abc import Sequence
from heapq import heappop
from random import Random

import pytest

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Reason
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job
from ringleaf.model.product import Product
from ringleaf.model.settings import JobRequests, Settings
from ringleaf.policies import locality
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import NOT_EXCLUDED, node_ranks, request_of
from ringleaf.policies.locality import leaf_for
from ringleaf.policies.products import PRODUCTS
from tests.effort import examples

A2, RINGS = PRODUCTS["atlas-800t-a2"], PRODUCTS["atlas-800-9000"]
FULL, HALF, NONE = 0xFF, 0x0F, 0


def leaves(
    *frees: Sequence[int], outside: Sequence[int] = (), product: Product = A2
) -> Cluster:
    """Leaves A, B, ... of nodes with these free chips, and nodes under no leaf."""
    under = [
        Node(f"{leaf}{slot}", product, 8, free, leaf=leaf, slot=slot)
        for leaf, own in zip("ABCDEFGH", frees, strict=False)
        for slot, free in enumerate(own)
    ]
    alone = [Node(f"z{i}", product, 8, free) for i, free in enumerate(outside)]
    return Cluster([*under, *alone])


def found(cluster: Cluster, chips: int, pods: int) -> str | None:
    leaf = leaf_for(cluster, request_of(Job("j", A2, chips, pods)), pods, NOT_EXCLUDED)
    return None if leaf is None else cluster.leaves[leaf].name


@pytest.mark.parametrize(
    ("cluster", "chips", "pods", "leaf"),
    [
        pytest.param(leaves([FULL], [FULL] * 2), 8, 2, "B", id="one leaf holds it"),
        pytest.param(
            leaves([FULL] * 3, [FULL] * 2), 8, 2, "B", id="the tightest of several"
        ),
        pytest.param(
            leaves([FULL] * 2, [FULL] * 2), 8, 2, "A", id="the first of equal"
        ),
        pytest.param(leaves([FULL], [FULL]), 8, 2, None, id="no leaf holds it"),
        pytest.param(leaves([FULL], [NONE]), 8, 2, None, id="nothing holds it"),
        pytest.param(leaves([NONE], [NONE]), 8, 2, None, id="no node fits"),
        pytest.param(leaves([FULL] * 2), 4, 2, None, id="one node holds it"),
        pytest.param(
            leaves([HALF, FULL], [FULL, FULL]),
            *(4, 3),
            "A",
            id="the better rank is under the leaf",
        ),
        pytest.param(
            leaves([HALF], [FULL, FULL]), 4, 3, None, id="the better rank is elsewhere"
        ),
        pytest.param(
            leaves([HALF], [HALF, FULL]),
            *(4, 3),
            None,
            id="better ranks are under two leaves",
        ),
        pytest.param(
            leaves([FULL, FULL], outside=[HALF]),
            *(4, 3),
            None,
            id="the better rank is under no leaf",
        ),
        pytest.param(
            leaves([HALF, NONE], [FULL, FULL]),
            *(4, 2),
            None,
            id="too few places under the leaf of the better rank",
        ),
        pytest.param(
            leaves([FULL], outside=[FULL] * 4), 8, 2, None, id="nodes under no leaf"
        ),
    ],
)
def test_d38_the_leaf_of_a_job_without_a_label(
    cluster: Cluster, chips: int, pods: int, leaf: str | None
) -> None:
    assert found(cluster, chips, pods) == leaf


def test_d38_room_for_other_resources_counts() -> None:
    """A node has two cores, so no leaf of one node holds three pods of one each."""
    nodes = [
        Node(f"{leaf}{i}", A2, 8, FULL, leaf=leaf, slot=i, resources={"cpu": 2000})
        for leaf, size in (("A", 1), ("B", 2))
        for i in range(size)
    ]
    demand = Demand(resources=(("cpu", 1000),))
    request = request_of(Job("j", A2, 2, 3, demand=demand))

    assert leaf_for(Cluster(nodes), request, 3, NOT_EXCLUDED) == 1


def test_d38_nodes_that_are_barred_do_not_count() -> None:
    cluster = leaves([FULL] * 2, [FULL] * 3)
    request = request_of(Job("j", A2, 8, 2))

    assert leaf_for(cluster, request, 2, {Reason.FAILED_BEFORE: [0]}) == 1


def test_d38_a_leaf_is_left_at_the_first_rank_that_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    popped = 0

    def count(heap: list[tuple[int, int]]) -> tuple[int, int]:
        nonlocal popped
        popped += 1
        return heappop(heap)

    monkeypatch.setattr(locality, "heappop", count)
    pods, halves = 40, [HALF] * 5
    cluster = leaves(*[[HALF] + [FULL] * 20] * 8, outside=halves)

    assert found(cluster, 2, pods) is None

    assert popped <= pods + 8 * 3, "two pods find the half node, the third does not"


def ranks_under(cluster: Cluster, job: Job, leaf: int | None) -> list[int] | None:
    """The rank of every pod's node, pod by pod, in the cluster or under one leaf."""
    request, got = request_of(job), []
    with Statement(cluster) as statement:
        for replica in range(job.replicas):
            ranks = node_ranks(cluster, request)
            nodes = [
                node
                for node, rank in enumerate(ranks.tolist())
                if rank != NEVER and leaf in (None, cluster.leaf.item(node))
            ]
            if not nodes:
                return None
            best = min(nodes, key=lambda node: (ranks.item(node), node))
            got.append(ranks.item(best))
            taken = request.table.choose(cluster.free.item(best))
            statement.allocate("j", best, taken, replica)
    return got


def random_cluster(random: Random, product: Product) -> Cluster:
    masks = [NONE, HALF, 0x03, 0x3F, FULL, FULL]
    if product is RINGS:
        masks = [FULL, *(random.getrandbits(8) for _ in range(3))]
    return leaves(
        *(
            [random.choice(masks) for _ in range(random.randint(1, 4))]
            for _ in range(3)
        ),
        outside=[random.choice(masks)] * random.randint(0, 1),
        product=product,
    )


@pytest.mark.parametrize(
    ("product", "sizes"),
    [
        pytest.param(A2, (2, 4, 6, 8), id="a node's rank rises with every pod"),
        pytest.param(RINGS, (1, 1, 2, 4), id="a ring of four becomes one of three"),
    ],
)
def test_d38_no_pod_gets_a_worse_node_and_the_job_stays_in_one_leaf_if_it_can(
    product: Product, sizes: tuple[int, ...]
) -> None:
    """Against brute force over all leaves, on random clusters."""
    seen = {"inside": 0, "across": 0, "waiting": 0}
    per_pod = Settings(job_requests=JobRequests.PER_POD)
    for seed in range(examples(2000)):
        random = Random(seed)  # noqa: S311 - cases, not secrets
        cluster = random_cluster(random, product)
        job = Job("j", product, random.choice(sizes), random.randint(2, 5))
        free = ranks_under(cluster, job, None)
        under = {
            leaf: ranks_under(cluster, job, leaf) for leaf in range(len(cluster.leaves))
        }
        possible = [leaf for leaf, ranks in under.items() if ranks == free]

        with Statement(cluster):
            placed = Session(cluster, per_pod).place(job)

        if free is None:
            assert placed is None
            seen["waiting"] += 1
            continue
        assert placed is not None
        nodes = [cluster.index[each.node] for each in placed.placements]
        used = {cluster.leaf.item(node) for node in nodes}
        if possible:
            assert len(set(nodes)) == 1 or used <= {*possible}, seed
            seen["inside"] += 1
        else:
            seen["across"] += 1
        with Statement(cluster) as statement:
            got = []
            for each in placed.placements:
                node = cluster.index[each.node]
                got.append(node_ranks(cluster, request_of(job)).item(node))
                statement.allocate(
                    "j", node, sum(1 << c for c in each.chips), each.replica
                )
        assert got == free, seed
    assert min(seen.values()) > examples(2000) // 50, seen
