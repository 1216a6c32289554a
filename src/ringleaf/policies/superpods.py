"""SuperPoDs: which one a pod that fits several equally well goes to.

A SuperPoD keeps nodes in reserve for repairs and is worth more the more of it is free
in one piece. So among nodes of equal rank, the pod goes to the SuperPoD with the fewest
such nodes that keeps the reserve; where none keeps it, to the one with the most.

Source: "Affinity Scheduling of Logical SuperPoDs", steps 1 to 3, for one block of one
node (decisions D15 and D16).
"""

import numpy as np
from numpy.typing import NDArray

from ringleaf.model.cluster import Cluster
from ringleaf.policies.chips import NEVER, Ints
from ringleaf.policies.fit import Request, node_ranks


def best_in_superpods(cluster: Cluster, request: Request, reserve: int) -> int | None:
    """The node with the best rank, in the SuperPoD that suits best."""
    ranks = node_ranks(cluster, request)
    (fitting,) = (ranks != NEVER).nonzero()
    if not len(fitting):
        return None
    tied = fitting[ranks[fitting] == ranks[fitting].min()]
    return int(tied[superpod_order(ranks[tied], cluster.superpod[tied], reserve)[0]])


def superpod_order(ranks: Ints, superpods: Ints, reserve: int) -> NDArray[np.intp]:
    """The order of nodes by rank, then SuperPoD, then name (their own order).

    >>> ranks = np.zeros(9, np.int64)
    >>> superpods = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2])
    >>> superpods[superpod_order(ranks, superpods, reserve=2)].tolist()
    [1, 1, 1, 0, 0, 0, 0, 0, 2]
    """
    pairs = np.stack([ranks, superpods], axis=1)
    _pairs, which, sizes = np.unique(
        pairs, axis=0, return_inverse=True, return_counts=True
    )
    count = sizes[which.ravel()]
    keeps = count > reserve
    return np.lexsort((superpods, np.where(keeps, count, -count), ~keeps, ranks))
