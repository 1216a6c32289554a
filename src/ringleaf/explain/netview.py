"""What a job finds in the network: the rule, leaves by slots, SuperPoDs by nodes.

These are the facts behind the answer of a network rule, as values; ``ringleaf explain``
draws them. They come from the same ranks, reasons and counts as the rules.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Reason
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Firmness
from ringleaf.model.placement import JobType, LeafState
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.fit import FITS, REASONS, Request, allowed_chips
from ringleaf.policies.gang import block_layout
from ringleaf.policies.obstacles import (
    closed_leaves,
    complete_leaves,
    slot_needs,
    stays_inside,
)
from ringleaf.policies.superpods import Superpods, queue_of, visit_order, visits
from ringleaf.policies.switches import LeafTable


class NodeState(StrEnum):
    """A node as one pod of the job finds it."""

    FREE = "free"
    PARTLY_FREE = "partly-free"
    TAKEN = "taken"
    FAULTY = "faulty"
    EXCLUDED = "excluded"


_FAULTS: Final = (
    Reason.NOT_READY,
    Reason.QUARANTINED,
    Reason.NOT_WELL,
    Reason.FAULTY_CHIPS,
    Reason.NETWORK_FAULTY,
)
_HELD: Final = (
    Reason.OWN_POD,
    Reason.TOO_FEW_CHIPS,
    Reason.NOT_WIRED_TOGETHER,
    Reason.TOO_FEW_RESOURCES,
)
_STATES: Final[Mapping[int, NodeState]] = {
    FITS: NodeState.FREE,
    REASONS.index(Reason.LEAF_CLOSED): NodeState.FREE,
    **{REASONS.index(reason): NodeState.FAULTY for reason in _FAULTS},
    **{REASONS.index(reason): NodeState.TAKEN for reason in _HELD},
}
"""The index of a reason -> the state; any other reason excludes the node."""


class SlotView(Struct, frozen=True, omit_defaults=True):
    """The node at one slot of a leaf, and the cross-leaf job that holds chips of it."""

    slot: int
    node: str
    state: NodeState
    job: str = ""


class LeafView(Struct, frozen=True, rename="kebab"):
    """A leaf as the job finds it: fitting nodes, state, the jobs that cross it."""

    leaf: str
    fitting: int
    state: str
    crossed_by: tuple[str, ...]
    closed: bool
    complete: bool
    slots: tuple[SlotView, ...]


class SlotNeed(Struct, frozen=True):
    """Fitting nodes at one slot under the open leaves, and how many the job needs."""

    slot: int
    free: int
    needed: int


class LeafRule(Struct, frozen=True, rename="kebab", tag_field="rule", tag="leaf"):
    """Switch affinity as it applies to one job.

    ``slots`` are there where a job may spread evenly over slots: foundation jobs in
    1.0.
    """

    mode: SwitchMode
    job_type: JobType
    needed: int
    leaf_size: int
    one_leaf: bool
    fitting_in_open_leaves: int
    complete_leaves: int
    slots: tuple[SlotNeed, ...] = ()


class SuperpodRule(
    Struct, frozen=True, rename="kebab", tag_field="rule", tag="superpod"
):
    """How a job is cut into blocks, and how many whole blocks there is room for."""

    affinity: Firmness
    needed: int
    blocks: int
    block_nodes: int
    reserve: int
    room: int


class SuperpodView(Struct, frozen=True, rename="kebab"):
    """A SuperPoD as the job finds it.

    ``blocks`` is how many whole blocks its fitting nodes hold. ``queue`` and
    ``visited`` say how the rule looks at it: in which queue, and as which one, from 1.
    """

    superpod: int
    fitting: int
    queue: int
    visited: int | None
    blocks: int
    nodes: Mapping[NodeState, int]


class Asked(Struct, frozen=True):
    """A job with what it finds: the reason of every node against one of its pods."""

    cluster: Cluster
    request: Request
    job: Job
    settings: Settings
    reasons: NDArray[np.int8]

    def states(self, nodes: NDArray[np.intp]) -> list[NodeState]:
        """The state of each of *nodes*."""
        cluster = self.cluster
        usable = cluster.free[nodes] & allowed_chips(cluster, self.request)[nodes]
        pairs = zip(self.reasons[nodes].tolist(), usable.tolist(), strict=True)
        return [_state(reason, chips) for reason, chips in pairs]


def _state(reason: int, usable: int) -> NodeState:
    state = _STATES.get(reason, NodeState.EXCLUDED)
    return NodeState.PARTLY_FREE if state is NodeState.TAKEN and usable else state


def leaf_rule(table: LeafTable, job: Job, settings: Settings, *, new: bool) -> LeafRule:
    """The rule for *job*; slots only where all its pods are placed *new*."""
    assert job.job_type is not None
    closed = closed_leaves(table, job, settings)
    first = settings.switch_mode is SwitchMode.SPINE_LEAF_1
    inside = stays_inside(job, settings)
    spread = first and new and not inside and job.job_type is JobType.FOUNDATION
    return LeafRule(
        mode=settings.switch_mode,
        job_type=job.job_type,
        needed=job.min_chip_pods,
        leaf_size=table.leaf_size,
        one_leaf=inside,
        fitting_in_open_leaves=int(table.fitting[~closed].sum()),
        complete_leaves=int((complete_leaves(table, settings) & ~closed).sum()),
        slots=tuple(SlotNeed(*each) for each in slot_needs(table, job, ~closed))
        if spread
        else (),
    )


def leaf_views(job_request: Asked, table: LeafTable) -> Iterator[LeafView]:
    """Every leaf, in the order of the cluster."""
    cluster, settings = job_request.cluster, job_request.settings
    closed = closed_leaves(table, job_request.job, settings)
    complete = complete_leaves(table, settings)
    crossings = cluster.uplinks.crossings()
    owners = _crossing_owners(cluster, crossings)
    nodes = cluster.by_leaf
    states = job_request.states(nodes)
    views = [
        SlotView(slot, cluster.names[node], state, owners.get(node, ""))
        for node, slot, state in zip(
            nodes.tolist(), cluster.slot[nodes].tolist(), states, strict=True
        )
    ]
    start = 0
    for i, leaf in enumerate(cluster.leaves):
        end = start + cluster.leaf_sizes.item(i)
        yield LeafView(
            leaf=leaf.name,
            fitting=table.fitting.item(i),
            state=leaf_state(table, i, settings),
            crossed_by=tuple(crossings.get(i, ())),
            closed=closed.item(i),
            complete=complete.item(i),
            slots=tuple(views[start:end]),
        )
        start = end


def _crossing_owners(
    cluster: Cluster, crossings: Mapping[int, list[str]]
) -> dict[int, str]:
    """Node -> the cross-leaf job that holds chips of it, the first of several."""
    names = {name for jobs in crossings.values() for name in jobs}
    owners = {str(owner): owner for owner in cluster.holdings}
    return {
        held.node: name
        for name in sorted(names, reverse=True)
        for held in cluster.holdings[owners[name]]
    }


def leaf_state(table: LeafTable, leaf: int, settings: Settings) -> str:
    """What is known of a leaf's links to the spine."""
    if settings.switch_mode is not SwitchMode.SPINE_LEAF_2:
        return "busy" if table.crossed.item(leaf) else "idle"
    state = LeafState(table.state.item(leaf)).name.lower()
    return f"{state}, unhealthy" if table.unhealthy.item(leaf) else state


def superpod_rule(found: Superpods, job: Job, settings: Settings) -> SuperpodRule:
    """How *job* is cut, and how many of its whole blocks fit."""
    cut = block_layout(job, settings, job.ranks[: job.min_chip_pods])
    return SuperpodRule(
        affinity=Firmness.SOFT if cut.soft else Firmness.HARD,
        needed=cut.nodes,
        blocks=cut.blocks,
        block_nodes=cut.size,
        reserve=cut.reserve,
        room=sum(nodes // cut.size for nodes in found.free.values()),
    )


def superpod_views(
    job_request: Asked, found: Superpods, *, new: bool
) -> Iterator[SuperpodView]:
    """Every SuperPoD, in the order in which the rule looks at them.

    First those that hold the whole job and keep their reserve, else block by block.
    Where not all pods are placed *new*, the block of a pod says which SuperPoD counts.
    """
    cut = block_layout(job_request.job, job_request.settings)
    free, price = found.free, found.price
    order: list[int] = []
    if new:
        order = visit_order(free, cut, price)
        order = order or [v.superpod for v in visits(free, cut, price)]
    place = {superpod: i for i, superpod in enumerate(dict.fromkeys(order), 1)}
    counts = _superpod_counts(job_request)
    for superpod in sorted(counts, key=lambda s: (place.get(s, len(counts) + 1), s)):
        nodes = free.get(superpod, 0)
        yield SuperpodView(
            superpod=superpod,
            fitting=nodes,
            queue=queue_of(nodes, cut),
            visited=place.get(superpod),
            blocks=nodes // cut.size,
            nodes=counts[superpod],
        )


def _superpod_counts(job_request: Asked) -> dict[int, dict[NodeState, int]]:
    """SuperPoD -> how many nodes of the job's product are in each state."""
    where = job_request.cluster.superpod
    other = REASONS.index(Reason.OTHER_PRODUCT)
    (nodes,) = ((where != NOWHERE) & (job_request.reasons != other)).nonzero()
    found: dict[int, dict[NodeState, int]] = {}
    for superpod, state in zip(
        where[nodes].tolist(), job_request.states(nodes), strict=True
    ):
        counts = found.setdefault(superpod, {})
        counts[state] = counts.get(state, 0) + 1
    return found
