"""The nodes that fit one request, best first, kept up to date as the cluster changes.

A heap of ``key << NODE_BITS | node``. The key is the rank; where other plugins score
nodes, it is the rank and then the score upside down (D26). Each change of the cluster
pushes the node with its new key; entries whose key is no longer the node's are dropped
when they reach the top. Finding the best node therefore does not depend on the number
of nodes, and a request that no job makes costs nothing.

A gang without a network rule that stays inside one leaf (D38) asks for the best node
under that leaf: it gets one where its rank is the best of all. The nodes of that leaf
have a heap of their own, made when the leaf is asked for.

Where scores are summed up as in Volcano, a rank counts as a score: a step of its first
term costs 8 of the vendor's raw points, a step of any further term 1, and a raw point
is 100. Health stays first.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.policies.chips import BASE, MAX_RANK, NEVER
from ringleaf.policies.fit import (
    NOT_EXCLUDED,
    Excluded,
    Request,
    allowed_chips,
    eligible,
    health_ranks,
    node_ranks,
)

Floats = NDArray[np.float64]
Score = Callable[[Ints], Floats]
"""How well some nodes suit a pod as they are now; higher is better."""

NODE_BITS: Final = 24
_NODE: Final = (1 << NODE_BITS) - 1

SCORE_BITS: Final = 48
FINEST: Final = 1 << 16
"""Scores that differ by less than one of so many parts are equal."""
_MIDDLE: Final = 1 << SCORE_BITS - 1

MAX_PLACES: Final = 4
"""Ranks of which it is kept how many nodes have them under each leaf."""

RAW_POINT: Final = 100
FIRST_TERM: Final = 8


def points_of(request: Request, ranks: Ints) -> Ints:
    """The ranks of fitting nodes as a score, without their health.

    >>> from ringleaf.model.job import Job
    >>> from ringleaf.policies.fit import request_of
    >>> from ringleaf.policies.products import PRODUCTS
    >>> request = request_of(Job("j", PRODUCTS["atlas-800t-a2"], 2))
    >>> points_of(request, np.array([0, 1, 2])).tolist()
    [0, -800, -1600]
    """
    points = np.zeros(len(ranks), np.int64)
    left = ranks % MAX_RANK
    for place in reversed(range(len(request.row.rank_by))):
        left, term = np.divmod(left, BASE)
        points -= term * (RAW_POINT * (1 if place else FIRST_TERM))
    return points


def weighed(
    request: Request, ranks: Ints, scores: Floats, *, summed: bool
) -> tuple[Ints, Ints]:
    """Two numbers for each of some fitting nodes, lower is better, the first first."""
    if summed:
        scores = scores + points_of(request, ranks)
        ranks = ranks // MAX_RANK
    steps = np.clip(np.rint(scores * FINEST), 1 - _MIDDLE, _MIDDLE - 1)
    return ranks, _MIDDLE - steps.astype(np.int64)


def score_of(then: int) -> float:
    """The score of which ``weighed`` made its second number.

    >>> score_of(_MIDDLE - 5 * FINEST // 2)
    2.5
    """
    return (_MIDDLE - then) / FINEST


def best_by_scan(
    cluster: Cluster,
    request: Request,
    excluded: Excluded = NOT_EXCLUDED,
    score: Score | None = None,
    *,
    summed: bool = False,
    leaf: int | None = None,
) -> int | None:
    """The best node now, found by looking at all of them.

    Of nodes of equal rank, one under *leaf*.
    """
    ranks = node_ranks(cluster, request, excluded)
    (nodes,) = (ranks != NEVER).nonzero()
    if not len(nodes):
        return None
    own = ranks[nodes]
    if leaf is not None:
        own = own * 2 + (cluster.leaf[nodes] != leaf)
    if score is None:
        return int(nodes[own.argmin()])
    first, then = weighed(request, own, score(nodes), summed=summed)
    return int(nodes[np.lexsort((then, first))[0]])


class NodeRanking:
    """The order in which one request likes the nodes of one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        request: Request,
        score: Score | None = None,
        *,
        summed: bool = False,
    ) -> None:
        assert len(cluster) <= _NODE, "more nodes than an entry can name"
        self._cluster = cluster
        self._request = request
        self._score, self._summed = score, summed
        self._start_over()

    def _start_over(self) -> None:
        cluster, request = self._cluster, self._request
        self._reach = allowed_chips(cluster, request)
        health = health_ranks(cluster, request)
        self._base = np.where(eligible(cluster, request), health, NEVER)
        ranks = node_ranks(cluster, request)
        (nodes,) = (ranks != NEVER).nonzero()
        self._keys: list[int] = ranks.tolist()
        self._heap: list[int]
        if self._score is None:
            entries = ranks[nodes] << NODE_BITS | nodes
            entries.sort()
            self._heap = entries.tolist()
        else:
            self._heap = []
            listed = nodes.tolist()
            keys = self._keys_of(nodes, ranks[nodes])
            for node, key in zip(listed, keys, strict=True):
                self._keys[node] = key
                self._heap.append(key << NODE_BITS | node)
            self._heap.sort()
        self._epoch = cluster.epoch
        self._seen = len(cluster.changes)
        self._under: tuple[int | None, list[int]] = None, []
        """A leaf that was asked for, and the heap of its nodes."""
        self._places: dict[int, Ints] = {}

    def _keys_of(self, nodes: Ints, ranks: Ints) -> list[int]:
        """The keys of some fitting nodes, from their ranks and scores."""
        assert self._score is not None
        scores = self._score(nodes)
        first, then = weighed(self._request, ranks, scores, summed=self._summed)
        pairs = zip(first.tolist(), then.tolist(), strict=True)
        return [rank << SCORE_BITS | step for rank, step in pairs]

    def best(self, leaf: int | None = None) -> int | None:
        """The node with the lowest key now, the lowest name among equals.

        Of the nodes of the best rank one under *leaf*, if there is one.
        """
        cluster = self._cluster
        if self._seen != len(cluster.changes) or self._epoch != cluster.epoch:
            self._catch_up()
        gathered, under = self._under
        if leaf is not None and (
            leaf != gathered or len(under) > len(cluster.names) + 1024
        ):
            under = self._gather(leaf)
        heap, keys = self._heap, self._keys
        for each in (heap,) if leaf is None else (heap, under):
            while each and keys[each[0] & _NODE] != each[0] >> NODE_BITS:
                heappop(each)
        if leaf is None or not under:
            return heap[0] & _NODE if heap else None
        to_rank = NODE_BITS + (0 if self._score is None else SCORE_BITS)
        is_best = under[0] >> to_rank == heap[0] >> to_rank
        return (under[0] if is_best else heap[0]) & _NODE

    def best_nodes_per_leaf(self) -> Ints:
        """How many nodes of the best rank are under each leaf, at last under none.

        Counted when a rank is asked for, and kept up to date from then on.
        """
        best = self.best()
        if best is None:
            return np.zeros(len(self._cluster.leaves) + 1, np.int64)
        rank = self._keys[best] >> (0 if self._score is None else SCORE_BITS)
        if rank not in self._places:
            if len(self._places) == MAX_PLACES:
                del self._places[next(iter(self._places))]
            where = node_ranks(self._cluster, self._request) == rank
            leaf, n_leaves = self._cluster.leaf[where], len(self._cluster.leaves)
            self._places[rank] = np.bincount(leaf % (n_leaves + 1), None, n_leaves + 1)
        return self._places[rank]

    def _gather(self, leaf: int) -> list[int]:
        """A heap of the nodes under *leaf*."""
        (under,) = (self._cluster.leaf == leaf).nonzero()
        keys = ((self._keys[node], node) for node in under.tolist())
        heap = sorted(key << NODE_BITS | n for key, n in keys if key != NEVER)
        self._under = leaf, heap
        return heap

    def _catch_up(self) -> None:
        cluster, changes = self._cluster, self._cluster.changes
        behind = len(changes) - self._seen
        stale = len(self._heap) > 2 * len(cluster.names) + 1024
        if self._epoch != cluster.epoch or behind > len(cluster.names) or stale:
            self._start_over()
            return
        if self._score is None:
            for node in changes[self._seen :]:
                self._write(node, self._rank(node))
        else:
            self._score_again(sorted(set(changes[self._seen :])))
        self._seen = len(changes)

    def _score_again(self, changed: list[int]) -> None:
        """Give *changed* nodes new keys; those that fit are scored in one go."""
        if len(changed) == 1:
            self._write(changed[0], self._key(changed[0]))
            return
        ranks = np.array([self._rank(node) for node in changed], np.int64)
        fits = ranks != NEVER
        nodes = np.array(changed, np.int64)[fits]
        keys = dict.fromkeys(changed, NEVER)
        keys |= zip(nodes.tolist(), self._keys_of(nodes, ranks[fits]), strict=True)
        for node, key in keys.items():
            self._write(node, key)

    def _key(self, node: int) -> int:
        """The key of one node, as ``_keys_of`` gives it."""
        assert self._score is not None
        rank = self._rank(node)
        if rank == NEVER:
            return NEVER
        if self._summed:
            return self._keys_of(np.array([node]), np.array([rank]))[0]
        steps = round(self._score(np.array([node])).item(0) * FINEST)
        return rank << SCORE_BITS | _MIDDLE - min(max(steps, 1 - _MIDDLE), _MIDDLE - 1)

    def _rank(self, node: int) -> int:
        cluster, demand, base = self._cluster, self._request.demand, self._base
        health = base.item(node)
        if health == NEVER:
            return NEVER
        if demand.resources and not cluster.node_table.resources.has_room(node, demand):
            return NEVER
        own = self._request.table.rank(cluster.free.item(node) & self._reach.item(node))
        return NEVER if own == NEVER else health + own

    def _write(self, node: int, key: int) -> None:
        before = self._keys[node]
        if key == before:
            return
        under = self._cluster.leaf.item(node)
        to_rank = 0 if self._score is None else SCORE_BITS
        for each, by in ((before, -1), (key, 1)) if self._places else ():
            places = self._places.get(each >> to_rank)
            if places is not None:
                places[under] += by
        self._keys[node] = key
        if key != NEVER:
            heappush(self._heap, key << NODE_BITS | node)
            leaf, heap = self._under
            if under == leaf:
                heappush(heap, key << NODE_BITS | node)
