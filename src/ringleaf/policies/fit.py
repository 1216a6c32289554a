"""All nodes at once: which fit one replica of a request, how well, and why not.

The rank of a node, lower is better: sub-healthy nodes last, then fewer faulty chips,
then the row's own terms (fewer fragments), then the node's name (decisions D2, D16 and
D37).
Everything but the name is packed into one integer; names are the order of the arrays.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ringleaf.model.arrays import Flags, Ints
from ringleaf.model.cache import Cache
from ringleaf.model.cluster import Cluster, Masks
from ringleaf.model.decision import Reason
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.fault import SubHealth
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Network
from ringleaf.model.mask import MAX_CHIPS, full_mask
from ringleaf.model.product import Product, Row
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.chips import MAX_RANK, NEVER, RowTable, table_of
from ringleaf.policies.products import rule_for

REASONS: Final = tuple(Reason)
FITS: Final = -1

Excluded = Mapping[Reason, Sequence[int] | NDArray[np.intp]]
"""Nodes that one job may not use, whatever they have free, and why."""

NOT_EXCLUDED: Final[Excluded] = MappingProxyType({})

NO_CHIPS: Final = Row(asked=0, width=1, first=(), rest=(), rank_by=())
"""The row of pods that only help: nothing is taken, all nodes are alike."""

MAX_KNOWN: Final = 32
"""Requests of which is kept what they find of the nodes."""

BOUNDLESS: Final = 1 << 31
"""Pods that fit a node which nothing limits."""


class _NoChips:
    """Every mask serves a pod without chips equally well."""

    def ranks(self, usable: Masks) -> Ints:
        """No mask is better than another."""
        return np.zeros(len(usable), np.int64)

    def rank(self, _usable: int) -> int:
        """No mask is better than another."""
        return 0

    def choose(self, _usable: int) -> int:
        """Nothing is taken."""
        return 0

    def pods(self, usable: Masks) -> Ints:
        """Any number of pods fits."""
        return np.full(len(usable), BOUNDLESS, np.int64)


_NOTHING_TAKEN: Final = _NoChips()


class Request(Struct, frozen=True, cache_hash=True, dict=True):
    """What one replica of a legal job asks of a node.

    A pod without chips asks for no product and follows no network rule.
    """

    product: Product
    row: Row
    avoids_network_faults: bool
    network: Network = Network.NONE
    demand: Demand = NOTHING
    avoids_sub_healthy: bool = False
    """Whether nodes that work, but not well, are not for it."""

    @cached_property
    def table(self) -> RowTable:
        """The row's ranks and chips for every mask."""
        if self.row is NO_CHIPS:
            return _NOTHING_TAKEN
        return table_of(self.row, self.product.chips)

    @cached_property
    def node_filter_key(self) -> "Request":
        """What it asks that does not depend on other pods, and no resources.

        Requests that differ in nothing else are eligible for the same nodes.
        """
        asks = self.demand
        demand = Demand(
            required=asks.required, terms=asks.terms, tolerations=asks.tolerations
        )
        if demand == asks:
            return self
        avoids = (
            self.avoids_network_faults,
            self.network,
            demand,
            self.avoids_sub_healthy,
        )
        return _shared(self.product, self.row, *avoids)


_requests: Final[Cache[tuple[Any, ...], Request]] = Cache(1024, 8 << 20)


def _shared(*fields: Any) -> Request:  # noqa: ANN401 - those of a request
    """The one request with these *fields*."""
    found = _requests.get(fields)
    if found is None:
        found = Request(*fields)
        _requests.put(fields, found, found.demand.weight)
    return found


def request_of(job: Job, role: Role | None = None) -> Request:
    """The request of one of a legal job's roles, or of all its pods with chips.

    Jobs that ask the same share one. Pods with chips that differ in their resources
    ask together for the most of each.
    """
    if role is None and job.roles:
        role = _together(job)
    chips, demand = (role or job).chips, (role or job).demand
    if not chips:
        no = False
        return _shared(job.product, NO_CHIPS, no, Network.NONE, demand, no)
    row, network = rule_for(job)[chips], job.network
    well = job.recovery.sub_health is not SubHealth.IGNORE
    avoids = avoids_network_faults(job, network)
    return _shared(job.product, row, avoids, network, demand, well)


def has_request(job: Job) -> bool:
    """Whether its product gives as many chips to a pod as each pod of *job* asks."""
    asked = {role.chips for role, _own in job.role_ranks if role.chips}
    return not asked or asked <= rule_for(job).keys()


def _together(job: Job) -> Role:
    """A role that asks what any pod with chips asks; of a job without any, any pod."""
    first = job.role_ranks[0][0]
    most: dict[str, int] = {}
    for role in job.roles:
        if bool(role.chips) == bool(first.chips):
            for name, amount in role.demand.resources:
                most[name] = max(amount, most.get(name, 0))
    resources = tuple(sorted(most.items()))
    return replace(first, demand=replace(first.demand, resources=resources))


def avoids_network_faults(job: Job, network: Network) -> bool:
    """Whether *job* avoids network-faulty chips: it speaks over the network.

    Inside one logical SuperPoD pods speak over the faster one.
    """
    blocks = network is Network.SUPERPODS
    speaks = job.n_blocks > 1 if blocks else job.replicas > 1
    return job.product.heeds_network and speaks


def allowed_chips(cluster: Cluster, request: Request) -> Masks:
    """The chips of every node that the request may use when they are free."""
    return cluster.sound if request.avoids_network_faults else cluster.healthy


Exclusion = Callable[[Cluster, Request], Flags | None]
"""The nodes that a rule keeps from a request; None where it concerns none."""

EXCLUSIONS: Final[tuple[tuple[Reason, Exclusion], ...]] = (
    (Reason.OTHER_PRODUCT, lambda c, r: ~of_right_product(c, r)),
    (Reason.NOT_READY, lambda c, _r: ~c.ready),
    (Reason.CORDONED, lambda c, _r: c.cordoned),
    (Reason.QUARANTINED, lambda c, _r: c.quarantined),
    (Reason.NOT_WELL, lambda c, r: c.sub_healthy if r.avoids_sub_healthy else None),
    (Reason.NOT_SELECTED, lambda c, r: _not_selected(c, r.demand)),
    (Reason.TAINTED, lambda c, r: _tainted(c, r.demand)),
    (Reason.NO_SUPERPOD, lambda c, r: _outside(c.superpod, r, Network.SUPERPODS)),
    (Reason.NO_TOPOLOGY, lambda c, r: _outside(c.leaf, r, Network.SWITCHES)),
)
"""Why a node is not eligible, whatever it has free; eligible if no rule applies."""


def _not_selected(cluster: Cluster, demand: Demand) -> Flags | None:
    selects = demand.required or demand.terms
    return ~cluster.node_table.labels.selected(demand) if selects else None


def _tainted(cluster: Cluster, demand: Demand) -> Flags | None:
    table = cluster.node_table
    return ~table.taints.tolerated(demand.tolerations) if table.taints.tainted else None


def _outside(where: Ints, request: Request, network: Network) -> Flags | None:
    return np.equal(where, NOWHERE) if request.network is network else None


def exclusions(cluster: Cluster, request: Request) -> dict[Reason, Flags]:
    """The nodes that are not eligible, by reason."""
    found = ((reason, rule(cluster, request)) for reason, rule in EXCLUSIONS)
    return {reason: mask for reason, mask in found if mask is not None}


def eligible(cluster: Cluster, request: Request) -> Flags:
    """The nodes of the right product that take such pods at all."""
    found: Flags = np.logical_or.reduce([*exclusions(cluster, request).values()])
    return ~found


def takes_pods(cluster: Cluster) -> Flags:
    """The nodes that take pods at all, whatever the pods request."""
    return cluster.ready & ~(cluster.cordoned | cluster.quarantined)


def of_product(cluster: Cluster, product: Product) -> Flags:
    """The nodes of one product."""
    known = product in cluster.products
    own = cluster.products.index(product) if known else len(cluster.products)
    return np.equal(cluster.product, own)


def of_right_product(cluster: Cluster, request: Request) -> Flags:
    """The nodes of the product that the request wants; all where it wants none."""
    if request.row is NO_CHIPS:
        return np.ones(len(cluster), np.bool_)
    return of_product(cluster, request.product)


def health_ranks(cluster: Cluster, request: Request) -> Ints:
    """What the health of every node adds to its rank; nothing without chips."""
    if request.row is NO_CHIPS:
        return np.zeros(len(cluster), np.int64)
    ranks: Ints = cluster.health_penalty * MAX_RANK
    return ranks


class EligibleNodes(Struct, frozen=True):
    """What one request finds of the nodes, whichever job holds their chips."""

    nodes: NDArray[np.intp]
    """The eligible nodes."""
    within: Masks
    """The chips of each that the request may use when they are free."""
    health: Ints
    """What the health of each adds to its rank."""


def _eligible_nodes(cluster: Cluster, request: Request) -> EligibleNodes:
    """The basis of *request*, found once in an epoch."""
    known, request = cluster.eligibility_cache, request.node_filter_key
    epoch, nodes_ = known.get(request, (-1, None))
    if epoch != cluster.epoch:
        (nodes,) = eligible(cluster, request).nonzero()
        within = allowed_chips(cluster, request)[nodes]
        nodes_ = EligibleNodes(nodes, within, health_ranks(cluster, request)[nodes])
        if len(known) >= MAX_KNOWN:
            del known[next(iter(known))]
        known[request] = cluster.epoch, nodes_
    found: EligibleNodes = nodes_
    return found


def node_ranks(
    cluster: Cluster, request: Request, excluded: Excluded = NOT_EXCLUDED
) -> Ints:
    """The rank of every node, ``NEVER`` where it cannot hold a replica."""
    ranks = np.full(len(cluster), NEVER, np.int64)
    nodes_ = _eligible_nodes(cluster, request)
    own = request.table.ranks(cluster.free[nodes_.nodes] & nodes_.within)
    ranks[nodes_.nodes] = np.where(own == NEVER, NEVER, nodes_.health + own)
    if request.demand.resources:
        ranks[~cluster.node_table.resources.roomy(request.demand)] = NEVER
    for nodes_barred in excluded.values():
        ranks[nodes_barred] = NEVER
    return ranks


def node_reasons(
    cluster: Cluster, request: Request, excluded: Excluded = NOT_EXCLUDED
) -> NDArray[np.int8]:
    """For every node ``FITS`` or the index in ``REASONS`` of the first that applies."""
    reasons = np.full(len(cluster), FITS, np.int8)
    open_ = np.ones(len(cluster), np.bool_)

    def rule_out(reason: Reason, where: Flags) -> None:
        reasons[open_ & where] = REASONS.index(reason)
        open_[where] = False

    masks = exclusions(cluster, request)
    for reason, where in excluded.items():
        masks[reason] = np.zeros(len(cluster), np.bool_)
        masks[reason][where] = True
    for reason in sorted(masks, key=REASONS.index):
        rule_out(reason, masks[reason])
    (nodes,) = open_.nonzero()
    free, within = cluster.free[nodes], allowed_chips(cluster, request)[nodes]
    healthy = cluster.healthy[nodes]
    sizes = _full_masks()[cluster.size[nodes]]

    def refused(masks: Masks) -> Flags:
        where = np.zeros(len(cluster), np.bool_)
        where[nodes] = request.table.ranks(masks) == NEVER
        return where

    rule_out(Reason.TOO_SMALL, refused(sizes))
    rule_out(Reason.FAULTY_CHIPS, refused(healthy))
    rule_out(Reason.NETWORK_FAULTY, refused(within))
    rule_out(Reason.NETWORK_FAULTY, refused(free & within) & ~refused(free & healthy))
    few = np.zeros(len(cluster), np.bool_)
    few[nodes] = np.bitwise_count(free & within) < request.row.asked
    rule_out(Reason.TOO_FEW_CHIPS, few)
    rule_out(Reason.NOT_WIRED_TOGETHER, refused(free & within))
    rule_out(
        Reason.TOO_FEW_RESOURCES, ~cluster.node_table.resources.roomy(request.demand)
    )
    return reasons


@lru_cache(maxsize=1)
def _full_masks() -> Masks:
    return np.array([full_mask(size) for size in range(MAX_CHIPS + 1)], np.uint64)


def reason_counts(reasons: NDArray[np.int8]) -> dict[Reason, int]:
    """How many nodes each reason rules out, in the order of reasons."""
    counts = np.bincount(reasons[reasons != FITS], minlength=len(REASONS))
    return {r: n for r, n in zip(REASONS, counts.tolist(), strict=True) if n}


def capacity(
    cluster: Cluster, request: Request, excluded: Excluded = NOT_EXCLUDED
) -> int:
    """How many replicas the cluster can hold now, by the chips alone.

    Replicas of one job are alike and never compete for different groups, so taking
    them one after the other from each node is as many as there can be. Under a network
    rule a node holds one replica of a job.
    """
    nodes_ = _eligible_nodes(cluster, request)
    usable = cluster.free[nodes_.nodes] & nodes_.within
    if request.network is Network.NONE:
        pods = request.table.pods(usable)
    else:
        pods = (request.table.ranks(usable) != NEVER).astype(np.int64)
    if request.demand.resources:
        most = cluster.node_table.resources.pods_that_fit(request.demand)[nodes_.nodes]
        pods = np.minimum(pods, most)
    if excluded:
        taken = np.zeros(len(cluster), np.bool_)
        for nodes_barred in excluded.values():
            taken[nodes_barred] = True
        pods = np.where(taken[nodes_.nodes], 0, pods)
    return int(pods.sum())
