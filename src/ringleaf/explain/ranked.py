"""How much fitting nodes suit a pod, as a session weighs them."""

import numpy as np
from numpy.typing import NDArray

from ringleaf.framework.node_ranking import weighed
from ringleaf.framework.session import Session
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Network
from ringleaf.policies.fit import request_of
from ringleaf.policies.superpods import superpod_weights

Weight = tuple[int, ...]
"""Numbers that are compared one after the other; lower is better."""


def order_of(session: Session, job: Job, nodes: Ints, ranks: Ints) -> NDArray[np.intp]:
    """How fitting *nodes* of these ranks suit the next pod with chips, best first.

    Under a network rule scores play no part.
    """
    score = None
    if job.network is Network.NONE:
        score = session.score(job, job.role_ranks[0][0])
    away = _away(session.cluster, nodes, session.leaf_for(job))
    if score is None:
        return np.lexsort((away, ranks))
    summed, request = session.sums_scores, request_of(job)
    first, then = weighed(request, ranks, score(nodes), summed=summed)
    return np.lexsort((then, away, first))


def weights_of(  # noqa: PLR0917 - a pod, its nodes, their ranks
    session: Session,
    job: Job,
    role: Role,
    nodes: Ints,
    ranks: Ints,
    leaf: int | None = None,
) -> list[Weight]:
    """How much some fitting *nodes* suit the next pod of *role*, lower is better.

    For each the rank, or with summed scores what stays first of it, whether it is away
    from *leaf*, and the score upside down; of equal ones the lower name goes first.
    """
    request, cluster = request_of(job, role), session.cluster
    if request.network is Network.SUPERPODS:
        where, reserve = cluster.superpod[nodes], session.settings.reserve_nodes
        return superpod_weights(ranks, where, reserve)
    score = session.score(job, role)
    away = _away(cluster, nodes, leaf).tolist()
    if score is None:
        return [(*pair, 0) for pair in zip(ranks.tolist(), away, strict=True)]
    first, then = weighed(request, ranks, score(nodes), summed=session.sums_scores)
    return list(zip(first.tolist(), away, then.tolist(), strict=True))


def _away(cluster: Cluster, nodes: Ints, leaf: int | None) -> NDArray[np.bool_]:
    """Which of some *nodes* are not under *leaf*; none of them without one."""
    if leaf is None:
        return np.zeros(len(nodes), np.bool_)
    return np.not_equal(cluster.leaf[nodes], leaf)
