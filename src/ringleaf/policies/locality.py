"""Jobs without a network rule: one leaf where chip ranks leave the choice (D38).

A job of several nodes that has no ``tor-affinity`` is placed by chip rank. Where it
crosses leaves it loads the spine and closes its leaves to labelled jobs. Often several
nodes have the same rank, and then the job can stay inside one leaf at no cost: no pod
gets a worse node for it.

Where a node holds one pod, the job takes the nodes with the lowest ranks. Those below
the rank of its last pod are taken in any case, so they must be under the leaf; those of
that last rank are interchangeable, and the leaf must have enough of them.

A node that holds several pods has another rank after each of them, a lower one too: a
ring of four becomes a ring of three. Then a leaf will do if the pods, one after the
other, find nodes of the same ranks there as in the whole cluster.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster, Masks
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import Excluded, Request, allowed_chips, node_ranks

MOST_LEAVES: Final = 64
"""Leaves that are tried pod by pod, those with the fewest places first."""


def leaf_for(
    cluster: Cluster, request: Request, pods: int, excluded: Excluded
) -> int | None:
    """The leaf inside which *pods* pods find nodes of the ranks they get anyway.

    Of several leaves the one with the fewest such places, then the first listed. None
    where no leaf will do, and where one node holds the whole job.
    """
    ranks = node_ranks(cluster, request, excluded)
    (nodes,) = (ranks != NEVER).nonzero()
    if pods <= 1 or not len(nodes):
        return None
    ranks, leaf = ranks[nodes], cluster.leaf[nodes]
    if not one_pod_a_node(request):
        return _leaf_in_turn(cluster, request, pods, nodes, ranks)
    if len(nodes) < pods:
        return None
    last = np.partition(ranks, pods - 1)[pods - 1]
    sure, tied = ranks < last, (ranks == last) & (leaf != NOWHERE)
    places = np.bincount(leaf[tied], minlength=len(cluster.leaves))
    fits = places >= pods - sure.sum()
    if sure.any():
        under = leaf[sure]
        fits &= (under == under[0]).all() & (np.arange(len(fits)) == under[0])
    return tightest_leaf(places, 1, fits)


def tightest_leaf(
    places: NDArray[np.int64 | np.float64 | np.intp],
    pods: int,
    fits: NDArray[np.bool_] | None = None,
) -> int | None:
    """The leaf with the fewest *places* of those that hold *pods*, or that fit.

    >>> tightest_leaf(np.array([4, 2, 3, 2]), 2), tightest_leaf(np.array([1]), 2)
    (1, None)
    """
    fits = places >= pods if fits is None else fits
    if not fits.any():
        return None
    return int(np.where(fits, places, np.inf).argmin())


def one_pod_a_node(request: Request) -> bool:
    """Whether no node holds two pods, by their chips."""
    return 2 * request.row.asked > request.product.chips


class _Taken(NamedTuple):
    """The node that a pod takes, and the rank that it finds."""

    node: int
    rank: int


def _leaf_in_turn(
    cluster: Cluster, request: Request, pods: int, nodes: Ints, ranks: Ints
) -> int | None:
    """The leaf inside which pods find, one after the other, the ranks they get anyway.

    Args:
        cluster: Where they are placed.
        request: What each of them asks.
        pods: How many they are.
        nodes: The nodes that fit.
        ranks: The rank of each of these.

    """
    usable = cluster.free[nodes] & allowed_chips(cluster, request)[nodes]
    room = _room(cluster, request, nodes, usable)
    leaf, n_leaves = cluster.leaf[nodes], len(cluster.leaves)
    under = leaf != NOWHERE
    holds = np.bincount(leaf[under], room[under], n_leaves) >= pods
    if not holds.any():
        return None
    anywhere = [*islice(_in_turn(request, pods, usable, ranks, room), pods)]
    taken = {each.node for each in anywhere}
    if len(taken) == 1:
        return None
    tied = under & (ranks == ranks[[*taken]].max())
    places = np.bincount(leaf[tied], room[tied], n_leaves)
    able = np.unique(leaf[under & (ranks == anywhere[0].rank)])
    able = able[holds[able]]
    for each in able[np.argsort(places[able], kind="stable")][:MOST_LEAVES].tolist():
        here = leaf == each
        found = _in_turn(request, pods, usable[here], ranks[here], room[here])
        pairs = zip(anywhere, found, strict=False)  # it is left where ranks differ
        if all(there.rank == own.rank for there, own in pairs):
            return int(each)
    return None


def _in_turn(
    request: Request, pods: int, usable: Masks, ranks: Ints, room: Ints
) -> Iterator[_Taken]:
    """What *pods* pods take in turn, each the best node; there must be room."""
    first = np.arange(len(ranks))
    if len(ranks) > pods:  # no more of them are taken
        last = np.partition(ranks, pods - 1)[pods - 1]
        (below,), (tied,) = (ranks < last).nonzero(), (ranks == last).nonzero()
        first = np.concatenate([below, tied[: pods - len(below)]])
    table = request.table
    masks = dict(zip(first.tolist(), usable[first].tolist(), strict=True))
    heap = [(ranks.item(node), node) for node in masks]
    heapify(heap)
    left = dict(zip(first.tolist(), room[first].tolist(), strict=True))
    while True:
        rank, node = heappop(heap)
        yield _Taken(node, rank)
        left[node] -= 1
        if left[node]:
            health = rank - table.rank(masks[node])
            masks[node] &= ~table.choose(masks[node])
            heappush(heap, (health + table.rank(masks[node]), node))


def _room(cluster: Cluster, request: Request, nodes: Ints, usable: Masks) -> Ints:
    """How many pods each of some fitting nodes holds."""
    room = request.table.pods(usable)
    if request.demand.resources:
        most = cluster.node_table.resources.pods_that_fit(request.demand)[nodes]
        room = np.minimum(room, most)
    return room
