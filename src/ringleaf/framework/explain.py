"""Why a job went where it went, or why it waits: the decision taken apart.

Everything here reads the same ranks and reasons as ``Session.decide``; nothing is
decided a second time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Reason
from ringleaf.model.job import Job, Network
from ringleaf.model.placement import LeafState
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.policies.chips import NEVER, written_order
from ringleaf.policies.fit import (
    FITS,
    REASONS,
    Request,
    node_ranks,
    reach,
    request_of,
)
from ringleaf.policies.gang import Seat, cut_of
from ringleaf.policies.obstacles import closed_leaves, job_reasons
from ringleaf.policies.superpods import (
    queue_of,
    superpod_order,
    superpods_of,
    visit_order,
    visits,
)
from ringleaf.policies.switches import Ground, ground_of
from ringleaf.policies.words import rank_words, refusal_words

MAX_ENDINGS: Final = 200
"""How many jobs are tried as the one whose end would be enough."""


class Candidate(Struct, frozen=True):
    """A node that fits: its place in the order, why, and the chips it would give."""

    place: int
    node: str
    rank: tuple[str, ...]
    chips: tuple[int, ...]


class Refused(Struct, frozen=True):
    """A node that does not fit, and the one rule that refuses it."""

    node: str
    reason: Reason
    rule: str


class LeafView(Struct, frozen=True, rename="kebab"):
    """A leaf as the job finds it: fitting nodes, state, and who crosses it."""

    leaf: str
    fitting: int
    state: str
    crossed_by: tuple[str, ...]
    closed: bool


class SuperpodView(Struct, frozen=True, rename="kebab"):
    """A SuperPoD as the job finds it, and when it was looked at, from 1."""

    superpod: int
    fitting: int
    queue: int
    visited: int | None = None


class Survey(Struct, frozen=True, rename="kebab"):
    """What a legal job finds in the cluster before it is decided."""

    fitting: int
    best: tuple[Candidate, ...]
    refused: Mapping[Reason, tuple[str, ...]]
    enough_to_end: tuple[str, ...] = ()
    leaves: tuple[LeafView, ...] = ()
    superpods: tuple[SuperpodView, ...] = ()


def survey(session: Session, job: Job, most: int) -> Survey:
    """The best *most* nodes in rank order, the refused ones by reason."""
    cluster, request = session.cluster, request_of(job)
    with session.as_found_by(job) as kept:
        reasons = job_reasons(
            cluster, request, job, session.settings, session.barred(job, kept)
        )
        order = _order(session, job, reasons)
        leaf = session.leaf_for(job)
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
            leaves=tuple(_leaves(session, job, kept)),
            superpods=tuple(_superpods(session, job, kept)),
        )


def _leaves(session: Session, job: Job, kept: Sequence[Seat]) -> Iterator[LeafView]:
    """Every leaf, if the job is placed by them."""
    if job.network is not Network.SWITCHES:
        return
    cluster, settings = session.cluster, session.settings
    barred = session.barred(job, kept)
    ranks = node_ranks(cluster, request_of(job), barred)
    ground = ground_of(cluster, ranks, settings)
    closed = closed_leaves(ground, job, settings)
    crossings = cluster.spine.crossings()
    for i, leaf in enumerate(cluster.leaves):
        yield LeafView(
            leaf=leaf.name,
            fitting=ground.free.item(i),
            state=_state(ground, i, settings),
            crossed_by=tuple(crossings.get(i, ())),
            closed=closed.item(i),
        )


def _state(ground: Ground, leaf: int, settings: Settings) -> str:
    """What is known of a leaf's links to the spine."""
    if settings.switch_mode is not SwitchMode.SPINE_LEAF_2:
        return "busy" if ground.crossed.item(leaf) else "idle"
    state = LeafState(ground.state.item(leaf)).name.lower()
    return f"{state}, unhealthy" if ground.sick.item(leaf) else state


def _superpods(
    session: Session, job: Job, kept: Sequence[Seat]
) -> Iterator[SuperpodView]:
    """Every SuperPoD with fitting nodes, if several pods are placed in them anew.

    In the order in which they are looked at: those that hold the whole job and keep
    their reserve, else block by block. Repairs look at the SuperPoD of the block.
    """
    if job.network is not Network.SUPERPODS or job.replicas == 1:
        return
    cluster = session.cluster
    barred = session.barred(job, kept)
    found = superpods_of(cluster, node_ranks(cluster, request_of(job), barred))
    free, price = found.free, found.price
    cut = cut_of(job, session.settings)
    order = []
    if not kept:
        order = visit_order(free, cut, price)
        order = order or [v.superpod for v in visits(free, cut, price)]
    place = {superpod: i for i, superpod in enumerate(dict.fromkeys(order), 1)}
    for superpod in sorted(free, key=lambda s: (place.get(s, len(free) + 1), s)):
        nodes = free[superpod]
        yield SuperpodView(superpod, nodes, queue_of(nodes, cut), place.get(superpod))


def look_at(session: Session, job: Job, name: str) -> Candidate | Refused:
    """What the job finds on one node."""
    cluster, request = session.cluster, request_of(job)
    node = cluster.index[name]
    with session.as_found_by(job) as kept:
        reasons = job_reasons(
            cluster, request, job, session.settings, session.barred(job, kept)
        )
        reason = reasons.item(node)
        if reason == FITS:
            order = _order(session, job, reasons).tolist()
            place, leaf = order.index(node) + 1, session.leaf_for(job)
            return _candidate(session, request, node, place, leaf)
        why = REASONS[reason]
        return Refused(name, why, refusal_words(cluster, request, node, why))


def enough_to_end(session: Session, job: Job) -> tuple[str, ...]:
    """The jobs of which the end of any one would let the waiting *job* be placed."""
    cluster = session.cluster
    enough = []
    for other in sorted(cluster.holdings.keys() - {job.name})[:MAX_ENDINGS]:
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
    return np.take(nodes, session.order(job, nodes, ranks[nodes]))


def _candidate(
    session: Session, request: Request, node: int, place: int, leaf: int | None
) -> Candidate:
    """A fitting node; a job without a network rule prefers those under *leaf* (D38)."""
    cluster = session.cluster
    usable = cluster.free.item(node) & reach(cluster, request).item(node)
    rank = request.table.rank(usable)
    own = cluster.leaf.item(node)
    words = rank_words(cluster, request, node, rank)
    if own == leaf:
        words.append(f"under {cluster.leaves[own].name}, which holds the whole job")
    return Candidate(
        place=place,
        node=cluster.names[node],
        rank=tuple(words),
        chips=written_order(request.row, request.table.taken(usable)),
    )
