"""Why a job went where it went, or why it waits: the decision taken apart.

Everything here reads the same ranks and reasons as ``Session.decide``; nothing is
decided a second time.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.explain.netview import (
    Asked,
    LeafRule,
    LeafView,
    SuperpodRule,
    SuperpodView,
    leaf_rule,
    leaf_views,
    superpod_rule,
    superpod_views,
)
from ringleaf.framework.node_ranking import weighed
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Reason
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Network
from ringleaf.policies.chips import NEVER, written_order
from ringleaf.policies.fit import (
    FITS,
    REASONS,
    Request,
    allowed_chips,
    node_ranks,
    request_of,
)
from ringleaf.policies.gang import NodeAssignment
from ringleaf.policies.obstacles import job_reasons
from ringleaf.policies.superpods import superpod_order, superpod_weights, superpods_of
from ringleaf.policies.switches import leaf_table
from ringleaf.policies.words import rank_words, refusal_words

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


MAX_ENDED: Final = 200
"""How many jobs are tried as the one whose end would be enough."""


class Candidate(Struct, frozen=True):
    """A node that fits: its place in the order, why, and the chips it would give."""

    place: int
    node: str
    rank: tuple[str, ...]
    chips: tuple[int, ...]


class RefusedNode(Struct, frozen=True):
    """A node that does not fit, and the one rule that refuses it."""

    node: str
    reason: Reason
    rule: str


NetworkRule = LeafRule | SuperpodRule


class NetworkView(Struct, frozen=True):
    """The network rule of a job, and what it finds; empty for a job without one."""

    rule: NetworkRule | None = None
    leaves: tuple[LeafView, ...] = ()
    superpods: tuple[SuperpodView, ...] = ()


class Survey(Struct, frozen=True, rename="kebab"):
    """What a legal job finds in the cluster before it is decided."""

    fitting: int
    best: tuple[Candidate, ...]
    refused: Mapping[Reason, tuple[str, ...]]
    enough_to_end: tuple[str, ...] = ()
    network_rule: NetworkRule | None = None
    leaves: tuple[LeafView, ...] = ()
    superpods: tuple[SuperpodView, ...] = ()

    @property
    def network(self) -> NetworkView:
        """The network rule, and the leaves or SuperPoDs."""
        return NetworkView(self.network_rule, self.leaves, self.superpods)


def survey(session: Session, job: Job, most: int) -> Survey:
    """The best *most* nodes in rank order, the refused ones by reason."""
    cluster, request = session.cluster, request_of(job)
    with session.as_found_by(job) as kept:
        reasons = job_reasons(
            cluster, request, job, session.settings, session.excluded(job, kept)
        )
        order = _order(session, job, reasons)
        leaf = session.leaf_for(job)
        found = _network(session, job, kept, reasons)
        return Survey(
            fitting=len(order),
            best=tuple(
                _candidate(session, request, node, place, leaf)
                for place, node in enumerate(order[:most].tolist(), 1)
            ),
            refused={
                reason: tuple(cluster.names[n] for n in (reasons == i).nonzero()[0])
                for i, reason in enumerate(REASONS)
                if (reasons == i).any()
            },
            network_rule=found.rule,
            leaves=found.leaves,
            superpods=found.superpods,
        )


def network_view(session: Session, job: Job) -> NetworkView:
    """The network rule of *job*, and the leaves or SuperPoDs as it finds them."""
    request = request_of(job)
    with session.as_found_by(job) as kept:
        excluded = session.excluded(job, kept)
        settings = session.settings
        reasons = job_reasons(session.cluster, request, job, settings, excluded)
        return _network(session, job, kept, reasons)


def _network(
    session: Session,
    job: Job,
    kept: Sequence[NodeAssignment],
    reasons: NDArray[np.int8],
) -> NetworkView:
    """The same, with the *reasons* of all nodes, beside pods that are *kept*."""
    cluster, settings, request = session.cluster, session.settings, request_of(job)
    leaves = job.network is Network.SWITCHES and bool(cluster.leaves)
    if not leaves and (job.network is not Network.SUPERPODS or job.replicas == 1):
        return NetworkView()
    ranks = node_ranks(cluster, request, session.excluded(job, kept))
    job_request = Asked(cluster, request, job, settings, reasons)
    if leaves:
        table = leaf_table(cluster, ranks, settings)
        views = leaf_views(job_request, table)
        rule = leaf_rule(table, job, settings, new=not kept)
        return NetworkView(rule, leaves=tuple(views))
    found = superpods_of(cluster, ranks)
    each = superpod_views(job_request, found, new=not kept)
    return NetworkView(superpod_rule(found, job, settings), superpods=tuple(each))


def look_at(session: Session, job: Job, name: str) -> Candidate | RefusedNode:
    """What the job finds on one node."""
    cluster, request = session.cluster, request_of(job)
    node = cluster.index[name]
    with session.as_found_by(job) as kept:
        reasons = job_reasons(
            cluster, request, job, session.settings, session.excluded(job, kept)
        )
        reason = reasons.item(node)
        if reason == FITS:
            order = _order(session, job, reasons).tolist()
            place, leaf = order.index(node) + 1, session.leaf_for(job)
            return _candidate(session, request, node, place, leaf)
        why = REASONS[reason]
        return RefusedNode(name, why, refusal_words(cluster, request, node, why))


def enough_to_end(session: Session, job: Job) -> tuple[str, ...]:
    """The jobs of which the end of any one would let the waiting *job* be placed."""
    cluster = session.cluster
    enough = []
    jobs = {owner for owner in cluster.holdings if isinstance(owner, str)}
    for other in sorted(jobs - {job.name})[:MAX_ENDED]:
        with Statement(cluster) as statement:
            statement.release(other)
            if _placeable(session, job):
                enough.append(other)
    return tuple(enough)


def _placeable(session: Session, job: Job) -> bool:
    if job.previous is None:
        return session.fits_now(job)
    return session.would_place(job)


def _order(session: Session, job: Job, reasons: NDArray[np.int8]) -> NDArray[np.intp]:
    """The fitting nodes, best first."""
    cluster, request = session.cluster, request_of(job)
    ranks = node_ranks(cluster, request)
    (nodes,) = ((ranks != NEVER) & (reasons == FITS)).nonzero()
    if request.network is Network.SUPERPODS:
        reserve = session.settings.reserve_nodes
        where = cluster.superpod[nodes]
        return np.take(nodes, superpod_order(ranks[nodes], where, reserve))
    return np.take(nodes, order_of(session, job, nodes, ranks[nodes]))


def _candidate(
    session: Session, request: Request, node: int, place: int, leaf: int | None
) -> Candidate:
    """A fitting node; a job without a network rule prefers those under *leaf* (D38)."""
    cluster = session.cluster
    usable = cluster.free.item(node) & allowed_chips(cluster, request).item(node)
    rank = request.table.rank(usable)
    own = cluster.leaf.item(node)
    words = rank_words(cluster, request, node, rank)
    if own == leaf:
        words.append(f"under {cluster.leaves[own].name}, which holds the whole job")
    return Candidate(
        place=place,
        node=cluster.names[node],
        rank=tuple(words),
        chips=written_order(request.row, request.table.choose(usable)),
    )
