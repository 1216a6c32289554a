"""Deciding jobs one after the other."""

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from ringleaf.framework.preference import Score
from ringleaf.framework.session import MANY, Session
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed, Waiting
from ringleaf.model.fleet import Flags
from ringleaf.model.job import Job, Role
from ringleaf.model.mask import mask_of
from ringleaf.model.product import Product
from ringleaf.policies.chips import Ints
from ringleaf.policies.products import PRODUCTS

# Product, chips asked, and two nodes of the same network status: the groups the pod
# would take from look alike, but the second node is left with fewer free chips.
SAME_STATUS = [
    ("atlas-800-9000", 1, [0, 4, 5], [0, 4]),
    ("atlas-800-9000", 2, [0, 1, 4, 5, 6], [0, 1, 4]),
    ("atlas-800-9000", 4, [0, 1, 2, 3, 4], [0, 1, 2, 3]),
    ("atlas-800t-a2", 2, [0, 1, 2, 3], [5, 6, 7]),
    ("atlas-200t-a2-box16", 3, [0, 1, 2, 8], [0, 1, 2]),
    (
        "atlas-200t-a2-box16",
        10,
        [0, 1, 2, 3, 4, 5, *range(8, 13)],
        [*range(5), *range(8, 13)],
    ),
    ("atlas-800t-a3", 2, [0, 1, 2], [4, 5]),
    ("atlas-300i", 2, [0, 1, 4], [4, 5]),
    ("atlas-300i-duo", 1, [0, 2, 3], [0, 2]),
    ("atlas-310p", 2, [0, 1, 2, 3], [1, 2, 3]),
    ("atlas-350-4p-8", 2, [0, 1, 4], [4, 5]),
]


def node(name: str, product: Product, free: list[int]) -> Node:
    chips = min(product.chips, 16)
    return Node(name, product, chips, mask_of(free), superpod=0)


@pytest.mark.parametrize(("key", "asked", "more", "fewer"), SAME_STATUS)
def test_d31_same_network_status_fewer_fragments(
    key: str, asked: int, more: list[int], fewer: list[int]
) -> None:
    product = PRODUCTS[key]
    cluster = Cluster([node("a", product, more), node("b", product, fewer)])

    decision = Session(cluster).decide(Job("job", product, asked))

    assert isinstance(decision, Placed)
    assert decision.placements[0].node == "b"


def test_a_job_is_decided_once() -> None:
    product = PRODUCTS["atlas-800t-a2"]
    session = Session(Cluster([node("a", product, [0, 1])]))
    session.decide(Job("job", product, 1))

    with pytest.raises(ValueError, match="'job' holds chips already"):
        session.decide(Job("job", product, 1))


def test_a_large_gang_that_does_not_fit_waits_without_touching_the_cluster() -> None:
    product = PRODUCTS["atlas-800t-a2"]
    session = Session(Cluster([node(f"n{i:02}", product, [0, 1]) for i in range(40)]))

    large = session.decide(Job("large", product, 1, replicas=MANY + 17))

    assert isinstance(large, Waiting)
    assert (large.missing, large.fitting) == (1, 40)
    assert not session.cluster.changes
    assert isinstance(session.decide(Job("fits", product, 1, MANY + 16)), Placed)


A2 = PRODUCTS["atlas-800t-a2"]


def whole(*names: str) -> Cluster:
    return Cluster(node(name, A2, [*range(8)]) for name in names)


def nodes_of(session: Session, job: Job) -> list[str]:
    decision = session.decide(job)
    assert isinstance(decision, Placed)
    return [placement.node for placement in decision.placements]


def later(nodes: Ints) -> NDArray[np.float64]:
    """The later name is better."""
    return nodes.astype(np.float64)


def test_d26_scores_decide_where_ranks_tie() -> None:
    cluster = Cluster(
        [node("a", A2, [0, 1]), node("b", A2, [0, 1]), node("c", A2, [0])]
    )
    session = Session(cluster, scorer=lambda _job, _role: later)

    assert nodes_of(session, Job("one", A2, 1, 3)) == ["c", "b", "b"]


def test_d26_summed_scores_outweigh_the_rank_but_not_health() -> None:
    cluster = Cluster(
        [
            node("a", A2, [0]),
            node("b", A2, [0, 1]),
            replace(node("c", A2, [0, 1, 2]), faulty=0x80),
        ]
    )
    session = Session(
        cluster,
        scorer=lambda _job, _role: lambda nodes: 801 * later(nodes),
        sum_scores=True,
    )

    assert nodes_of(session, Job("one", A2, 1, 3)) == ["b", "b", "a"]


def test_pods_that_ask_the_same_share_one_score() -> None:
    asked = []

    def scorer(job: Job, role: Role) -> Score:
        asked.append((job.name, role.chips))
        return later

    session = Session(whole("a", "b"), scorer=scorer)

    assert nodes_of(session, Job("one", A2, 4, 2)) == ["b", "b"]
    assert nodes_of(session, Job("two", A2, 4, 2)) == ["a", "a"]
    assert asked == [("one", 4)]


def test_nodes_that_a_plugin_refuses_are_asked_before_every_pod() -> None:
    """No two pods on one node, as pod anti-affinity would have it."""
    cluster = whole("a", "b", "c")

    def bars(job: Job, _role: Role) -> Flags:
        own = [holding.node for holding in cluster.holdings.get(job.name, ())]
        return ~np.isin(np.arange(3), own)

    session = Session(cluster, scorer=lambda _job, _role: later, bars=bars)

    assert nodes_of(session, Job("apart", A2, 1, 3)) == ["c", "b", "a"]
    assert isinstance(session.decide(Job("many", A2, 1, 4)), Waiting)


def test_bars_that_allow_everything_change_nothing() -> None:
    session = Session(whole("a", "b"), bars=lambda _job, _role: None)

    assert nodes_of(session, Job("one", A2, 8, 2)) == ["a", "b"]
