"""Jobs without a network rule: one leaf where chip ranks leave the choice (D38).

A job of several nodes that has no ``tor-affinity`` is placed by chip rank. Where it
crosses leaves it loads the spine and closes its leaves to labelled jobs. Often several
nodes have the same rank, and then the job can stay inside one leaf at no cost: no pod
gets a worse node for it.

The job takes the nodes with the lowest ranks. Those below the rank of its last pod are
taken in any case, so they must be under the leaf; those of that last rank are
interchangeable, and the leaf must have enough of them.
"""

import numpy as np
from numpy.typing import NDArray

from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import Excluded, Request, allowed_chips, node_ranks


def leaf_for(
    cluster: Cluster, request: Request, pods: int, excluded: Excluded
) -> int | None:
    """The leaf inside which *pods* pods find nodes of the ranks they get anyway.

    Of several leaves the one with the fewest such places, then the first listed. None
    where no leaf will do, and where one of the best nodes holds the whole job.
    """
    ranks = node_ranks(cluster, request, excluded)
    (nodes,) = (ranks != NEVER).nonzero()
    ranks, leaf = ranks[nodes], cluster.leaf[nodes]
    room = _room(cluster, request, nodes)
    last = _last_rank(ranks, room, pods)
    if last is None:
        return None
    sure, tied = ranks < last, (ranks == last) & (leaf != NOWHERE)
    places = np.bincount(leaf[tied], room[tied], len(cluster.leaves))
    fits = places >= pods - room[sure].sum()
    if sure.any():
        under = leaf[sure]
        fits &= (under == under[0]).all() & (np.arange(len(fits)) == under[0])
    return tightest_leaf(places, 1, fits)


def tightest_leaf(
    places: NDArray[np.int64 | np.float64],
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


def _room(cluster: Cluster, request: Request, nodes: Ints) -> Ints:
    """How many pods each of some fitting nodes holds."""
    if one_pod_a_node(request):
        return np.ones(len(nodes), np.int64)
    usable = cluster.free[nodes] & allowed_chips(cluster, request)[nodes]
    room = request.table.pods(usable)
    if request.demand.resources:
        most = cluster.node_table.resources.pods_that_fit(request.demand)[nodes]
        room = np.minimum(room, most)
    return room


def _last_rank(ranks: Ints, room: Ints, pods: int) -> int | None:
    """The rank of the node of the last pod; None where a job is not of several nodes.

    Nor is one that finds too little room.
    """
    if not len(ranks):
        return None
    low = ranks.min()
    best = room[ranks == low]
    if best.max() >= pods:
        return None
    if best.sum() >= pods:
        return int(low)
    levels, which = np.unique(ranks, return_inverse=True)
    filled = np.bincount(which, room).cumsum()
    at = int(np.searchsorted(filled, pods))
    return int(levels[at]) if at < len(levels) else None
