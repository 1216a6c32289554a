"""The heap of one request against a scan of all nodes, through random histories."""

from collections.abc import Iterator

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec.structs import replace
from numpy.typing import NDArray
from tests.effort import examples

from ringleaf.framework.node_ranking import NodeRanking, Score, best_by_scan
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.placement import NO_MARK
from ringleaf.policies.chips import MAX_RANK, NEVER, rank_terms
from ringleaf.policies.fit import Request, node_ranks, request_of
from ringleaf.policies.products import PRODUCTS

KEYS = ("atlas-800-9000", "atlas-800t-a2", "atlas-300i-duo")
LEAF_OF = ("L0", "L1", None)


def lowest(cluster: Cluster, job: Job) -> int | None:
    ranks = node_ranks(cluster, request_of(job))
    (nodes,) = (ranks != NEVER).nonzero()
    return int(nodes[ranks[nodes].argmin()]) if len(nodes) else None


def emptier(cluster: Cluster) -> Score:
    """Nodes with more free chips are better, in steps that are no whole numbers."""
    return lambda nodes: np.bitwise_count(cluster.free[nodes]) // 2 * 120.25


def liked(
    cluster: Cluster, request: Request, *, summed: bool
) -> Iterator[tuple[int, float, int]]:
    """Every fitting node with what decides, the name last; counted by hand."""
    for node, rank in enumerate(node_ranks(cluster, request).tolist()):
        if rank == NEVER:
            continue
        score = cluster.free.item(node).bit_count() // 2 * 120.25
        if summed:
            terms = rank_terms(request.row, rank % MAX_RANK)
            first, *further = [terms[term] for term in request.row.rank_by]
            yield rank // MAX_RANK, -score + 800 * first + 100 * sum(further), node
        else:
            yield rank, -score, node


class History(RuleBasedStateMachine):
    """Jobs come and go, are taken back, pile up; the heap always knows the best."""

    @initialize(frees=st.lists(st.integers(0, 255), min_size=1, max_size=6))
    def start(self, frees: list[int]) -> None:
        products = [PRODUCTS[key] for key in KEYS]
        self.cluster = Cluster(
            Node(f"{product.key}-{i}", product, 8, free, i & 1, leaf=LEAF_OF[i % 3])
            for product in products
            for i, free in enumerate(frees)
        )
        self.session = Session(self.cluster)
        self.probes = [
            Job("probe", product, chips) for product in products for chips in (1, 2, 8)
        ]
        self.preferences = {
            request_of(job): NodeRanking(self.cluster, request_of(job))
            for job in self.probes[::2]
        }
        self.scored = {
            (request_of(job), summed): NodeRanking(
                self.cluster,
                request_of(job),
                emptier(self.cluster),
                summed=summed,
            )
            for job in self.probes[1::2]
            for summed in (False, True)
        }
        self.n_jobs = 0

    @rule(key=st.sampled_from(KEYS), chips=st.sampled_from([1, 2, 4, 8]))
    def place(self, key: str, chips: int) -> None:
        self.n_jobs += 1
        job = Job(f"job-{self.n_jobs}", PRODUCTS[key], chips)
        expected = lowest(self.cluster, job)

        decision = self.session.decide(job)

        placed = isinstance(decision, Placed)
        assert placed == (expected is not None)
        if isinstance(decision, Placed) and expected is not None:
            assert decision.placements[0].node == self.cluster.names[expected]

    @precondition(lambda self: self.cluster.holdings)
    @rule(data=st.data(), keep=st.booleans())
    def release(self, data: st.DataObject, *, keep: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.cluster.holdings, key=str)))
        with Statement(self.cluster) as statement:
            statement.release(name)
            if keep:
                statement.commit()

    @precondition(lambda self: self.cluster.holdings)
    @rule(times=st.sampled_from([1, 30, 3000]))
    def churn(self, times: int) -> None:
        """Many changes that change nothing: a long journal, and new epochs."""
        name = min(self.cluster.holdings, key=str)
        for _time in range(times):
            with Statement(self.cluster) as statement:
                statement.release(name)

    @invariant()
    def every_heap_agrees_with_a_scan(self) -> None:
        for job in self.probes:
            request = request_of(job)
            if request not in self.preferences:
                continue
            assert self.preferences[request].best() == lowest(self.cluster, job)

    @invariant()
    def every_heap_with_scores_agrees_with_a_scan(self) -> None:
        for (request, summed), preference in self.scored.items():
            expected = min(
                liked(self.cluster, request, summed=summed), default=(0, 0.0, None)
            )

            assert preference.best() == expected[-1]
            assert expected[-1] == best_by_scan(
                self.cluster, request, score=emptier(self.cluster), summed=summed
            )

    @invariant()
    def every_heap_prefers_a_leaf_as_a_scan_does(self) -> None:
        """Now one leaf, now the other, now one for long."""
        leaf = self.n_jobs // 3 % len(self.cluster.leaves)
        away = self.cluster.leaf != leaf
        for request, preference in self.preferences.items():
            ranks = node_ranks(self.cluster, request).tolist()
            fitting = [node for node, rank in enumerate(ranks) if rank != NEVER]
            expected = min(
                fitting, key=lambda n: (ranks[n], away.item(n), n), default=None
            )

            assert preference.best(leaf) == expected
            assert best_by_scan(self.cluster, request, leaf=leaf) == expected
        for (request, summed), preference in self.scored.items():
            if not summed:
                order = liked(self.cluster, request, summed=False)
                first = min(
                    ((rank, away.item(n), score, n) for rank, score, n in order),
                    default=(0, 0, 0.0, None),
                )
                score = emptier(self.cluster)

                assert preference.best(leaf) == first[-1]
                assert first[-1] == best_by_scan(
                    self.cluster, request, score=score, leaf=leaf
                )

    @invariant()
    def every_heap_counts_the_best_nodes_of_every_leaf(self) -> None:
        n_leaves = len(self.cluster.leaves)
        orders = [*self.preferences.items()]
        orders += [(each, own) for (each, s), own in self.scored.items() if not s]
        for request, preference in orders:
            ranks = node_ranks(self.cluster, request).tolist()
            low = min((rank for rank in ranks if rank != NEVER), default=None)
            under = [self.cluster.leaf.item(n) for n, r in enumerate(ranks) if r == low]
            counted = [under.count(leaf) for leaf in (*range(n_leaves), -1)]

            assert preference.best_nodes_per_leaf().tolist() == counted

    @invariant()
    def chips_are_free_or_held_by_one(self) -> None:
        held = np.zeros(len(self.cluster), np.uint64)
        for holdings in self.cluster.holdings.values():
            for holding in holdings:
                chips = np.uint64(holding.chips)
                assert not held[holding.node] & chips
                held[holding.node] |= chips
        assert not (held & self.cluster.free).any()


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=examples(60), stateful_step_count=25)


def test_a_heap_that_is_never_asked_is_rebuilt_when_it_has_grown_stale() -> None:
    a2 = PRODUCTS["atlas-800t-a2"]
    cluster = Cluster([Node("a", a2, 8, 0xFF), Node("b", a2, 8, 0xFF)])
    job = Job("probe", a2, 1)
    preference = NodeRanking(cluster, request_of(job))

    for time in range(3000):
        with Statement(cluster) as statement:
            statement.allocate("x", 1, 1 << (time % 8))
            assert preference.best() == 1
        assert preference.best() == 0


def test_the_heap_of_a_leaf_is_rebuilt_when_it_has_grown_stale() -> None:
    a2 = PRODUCTS["atlas-800t-a2"]
    cluster = Cluster(
        Node(name, a2, 8, 0xFF, leaf=leaf) for name, leaf in ("aA", "bB", "cB")
    )
    preference = NodeRanking(cluster, request_of(Job("probe", a2, 1)))

    for time in range(1500):
        with Statement(cluster) as statement:
            statement.allocate("x", 2, 1 << (time % 8))
            assert preference.best(1) == 2
        assert preference.best(1) == 1


def test_where_the_leaf_has_no_node_of_the_best_rank_another_is_taken() -> None:
    a2 = PRODUCTS["atlas-800t-a2"]
    nodes = (("a", 0x0F, "A"), ("b", 0xFF, "B"), ("c", 0, "C"))
    cluster = Cluster(Node(name, a2, 8, free, leaf=leaf) for name, free, leaf in nodes)
    preference = NodeRanking(cluster, request_of(Job("probe", a2, 4)))

    assert [preference.best(leaf) for leaf in (0, 1, 2)] == [0, 0, 0]


def test_only_changed_nodes_are_scored_again_and_all_in_one_go() -> None:
    a2 = PRODUCTS["atlas-800t-a2"]
    cluster = Cluster(Node(f"n{i}", a2, 8, 0xFF) for i in range(5))
    asked: list[list[int]] = []

    def score(nodes: Ints) -> NDArray[np.float64]:
        asked.append(nodes.tolist())
        return nodes.astype(np.float64)

    preference = NodeRanking(cluster, request_of(Job("probe", a2, 1)), score)
    assert preference.best() == 4
    with Statement(cluster) as statement:
        for node, chips in ((3, 0x1), (1, 0x1), (3, 0x2), (4, 0x1)):
            statement.allocate("x", node, chips)
        assert preference.best() == 3

    assert asked == [[0, 1, 2, 3, 4], [1, 3, 4]]


def test_scores_beyond_all_measure_are_compared_still() -> None:
    a2 = PRODUCTS["atlas-800t-a2"]
    cluster = Cluster(Node(f"n{i}", a2, 8, 0xFF) for i in range(3))
    scores = np.array([-1e30, 1e30, 1.0])
    request = request_of(Job("probe", a2, 1))

    assert NodeRanking(cluster, request, lambda nodes: scores[nodes]).best() == 1
    assert best_by_scan(cluster, request, score=lambda nodes: scores[nodes]) == 1


def test_pods_without_chips_go_on_to_the_next_node_when_one_is_full() -> None:
    a2 = PRODUCTS["atlas-800t-a2"]
    cluster = Cluster(Node(f"n{i}", a2, 8, 0, resources={"cpu": 2}) for i in range(3))
    role = Role("driver", 0, demand=Demand(resources=(("cpu", 1),)))
    preference = NodeRanking(cluster, request_of(Job("probe", a2, 8), role))

    found = []
    with Statement(cluster) as statement:
        while (node := preference.best()) is not None:
            statement.allocate("x", node, 0, demand=role.demand)
            found.append(node)

    assert found == [0, 0, 1, 1, 2, 2]
    assert preference.best() == 0


def test_a_node_that_changes_is_looked_at_anew() -> None:
    a2 = PRODUCTS["atlas-800t-a2"]
    node = Node("a", a2, 8, 0xFF)
    cluster = Cluster([node, Node("b", a2, 8, 0xFF)])
    preference = NodeRanking(cluster, request_of(Job("probe", a2, 1)))
    assert preference.best() == 0

    cluster.change(0, replace(node, cordoned=True))

    assert preference.best() == 1


def test_the_best_nodes_per_leaf_are_counted_for_the_last_ranks_only() -> None:
    """A node that fills has one rank after the other; of few it is remembered."""
    cluster = Cluster([Node("a", PRODUCTS["atlas-800t-a2"], 8, 0xFF, leaf="L0")])
    job = Job("one", PRODUCTS["atlas-800t-a2"], 1)
    preference = NodeRanking(cluster, request_of(job))

    for chip in range(8):
        assert preference.best_nodes_per_leaf().tolist() == [1, 0]
        with Statement(cluster) as statement:
            statement.hold(f"job-{chip}", 0, 1 << chip, 0, NO_MARK)
            statement.commit()
    assert preference.best_nodes_per_leaf().tolist() == [0, 0]
