"""The nodes that fit one request, best first, kept up to date as the cluster changes.

A heap of ``rank << NODE_BITS | node``. Each change of the cluster pushes the node with
its new rank; entries whose rank is no longer the node's are dropped when they reach
the top. Finding the best node therefore does not depend on the number of nodes, and
a request nobody makes costs nothing.
"""

from heapq import heappop, heappush
from typing import Final

import numpy as np

from ringleaf.model.cluster import Cluster
from ringleaf.policies.chips import MAX_RANK, NEVER
from ringleaf.policies.fit import Request, eligible, node_ranks, reach

NODE_BITS: Final = 24
_NODE: Final = (1 << NODE_BITS) - 1


class Preference:
    """The order in which one request likes the nodes of one cluster."""

    def __init__(self, cluster: Cluster, request: Request) -> None:
        assert len(cluster) <= _NODE, "more nodes than an entry can name"
        self._cluster = cluster
        self._table = request.table
        self._request = request
        self._reach = reach(cluster, request)
        handicap = cluster.handicap * MAX_RANK
        self._base = np.where(eligible(cluster, request), handicap, NEVER)
        self._start_over()

    def _start_over(self) -> None:
        cluster = self._cluster
        ranks = node_ranks(cluster, self._request)
        (nodes,) = (ranks != NEVER).nonzero()
        entries = ranks[nodes] << NODE_BITS | nodes
        entries.sort()
        self._ranks = ranks
        self._heap: list[int] = entries.tolist()
        self._epoch = cluster.epoch
        self._seen = len(cluster.changes)

    def best(self) -> int | None:
        """The node with the lowest rank now, the lowest name among equals."""
        self._catch_up()
        heap, ranks = self._heap, self._ranks
        while heap:
            rank, node = heap[0] >> NODE_BITS, heap[0] & _NODE
            if ranks.item(node) == rank:
                return node
            heappop(heap)
        return None

    def _catch_up(self) -> None:
        cluster, changes = self._cluster, self._cluster.changes
        behind = len(changes) - self._seen
        stale = len(self._heap) > 2 * len(cluster) + 1024
        if self._epoch != cluster.epoch or behind > len(cluster) or stale:
            self._start_over()
            return
        for node in changes[self._seen :]:
            self._refresh(node)
        self._seen = len(changes)

    def _has_room(self, node: int) -> bool:
        demand = self._request.demand
        return not demand.resources or self._cluster.fleet.has_room(node, demand)

    def _refresh(self, node: int) -> None:
        rank = base = self._base.item(node)
        if base != NEVER and self._has_room(node):
            usable = self._cluster.free.item(node) & self._reach.item(node)
            own = self._table.rank(usable)
            rank = NEVER if own == NEVER else base + own
        elif base != NEVER:
            rank = NEVER
        if rank != self._ranks.item(node):
            self._ranks[node] = rank
            if rank != NEVER:
                heappush(self._heap, rank << NODE_BITS | node)
