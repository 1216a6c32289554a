"""All nodes at once: which fit one replica of a request, how well, and why not.

The rank of a node, lower is better: sub-healthy nodes last, then fewer faulty chips,
then the row's own terms (fewer fragments), then the node's name (decisions D2, D16 and
D37).
Everything but the name is packed into one integer; names are the order of the arrays.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ringleaf.model.cache import Cache
from ringleaf.model.cluster import Cluster, Masks
from ringleaf.model.decision import Reason
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.fault import SubHealth
from ringleaf.model.job import Job, Network, Role
from ringleaf.model.mask import MAX_CHIPS, full_mask
from ringleaf.model.product import Product, Row
from ringleaf.model.spine import NOWHERE
from ringleaf.policies.chips import (
    MAX_RANK,
    NEVER,
    Ints,
    RowTable,
    table_of,
)
from ringleaf.policies.products import rule_for

REASONS: Final = tuple(Reason)
FITS: Final = -1

Barred = Mapping[Reason, Sequence[int] | NDArray[np.intp]]
"""Nodes that one job may not use, whatever they have free, and why."""

NOBODY: Final[Barred] = MappingProxyType({})

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

    def taken(self, _usable: int) -> int:
        """Nothing is taken."""
        return 0

    def pods(self, usable: Masks) -> Ints:
        """Any number of pods fits."""
        return np.full(len(usable), BOUNDLESS, np.int64)


_NOTHING_TAKEN: Final = _NoChips()


class Request(Struct, frozen=True, cache_hash=True):
    """What one replica of a legal job asks of a node.

    A pod without chips asks for no product and follows no network rule.
    """

    product: Product
    row: Row
    heeds_network: bool
    network: Network = Network.NONE
    demand: Demand = NOTHING
    well_only: bool = False
    """Whether nodes that work, but not well, are not for it."""

    @property
    def table(self) -> RowTable:
        """The row's ranks and chips for every mask."""
        if self.row is NO_CHIPS:
            return _NOTHING_TAKEN
        return table_of(self.row, self.product.chips)


_requests: Final[Cache[tuple[object, ...], Request]] = Cache(1024, 8 << 20)


def _request(  # noqa: PLR0917 - a Request, once
    product: Product,
    row: Row,
    heeds_network: bool,  # noqa: FBT001
    network: Network,
    demand: Demand,
    well_only: bool = False,  # noqa: FBT001, FBT002
) -> Request:
    key = product, row, heeds_network, network, demand, well_only
    found = _requests.get(key)
    if found is None:
        found = Request(*key)
        _requests.put(key, found, demand.weight)
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
        return _request(job.product, NO_CHIPS, False, Network.NONE, demand)  # noqa: FBT003
    row = rule_for(job)[chips]
    well_only = job.recovery.sub_health is not SubHealth.IGNORE
    network = heeds_network(job)
    return _request(job.product, row, network, job.network, demand, well_only)


def has_request(job: Job) -> bool:
    """Whether its product gives as many chips to a pod as each pod of *job* asks."""
    asked = {role.chips for role, _own in job.crew if role.chips}
    return not asked or asked <= rule_for(job).keys()


def _together(job: Job) -> Role:
    """A role that asks what any pod with chips asks; of a job without any, any pod."""
    first = job.crew[0][0]
    most: dict[str, int] = {}
    for role in job.roles:
        if bool(role.chips) == bool(first.chips):
            for name, amount in role.demand.resources:
                most[name] = max(amount, most.get(name, 0))
    resources = tuple(sorted(most.items()))
    return replace(first, demand=replace(first.demand, resources=resources))


def heeds_network(job: Job) -> bool:
    """Whether *job* avoids network-faulty chips: it speaks over the network.

    Inside one logical SuperPoD pods speak over the faster one.
    """
    blocks = job.network is Network.SUPERPODS
    speaks = job.n_blocks > 1 if blocks else job.replicas > 1
    return job.product.heeds_network and speaks


def reach(cluster: Cluster, request: Request) -> Masks:
    """The chips of every node that the request may use when they are free."""
    return cluster.sound if request.heeds_network else cluster.healthy


def eligible(cluster: Cluster, request: Request) -> NDArray[np.bool_]:
    """The nodes of the right product that take such pods at all."""
    right = of_right_product(cluster, request) & cluster.ready
    right &= ~(cluster.cordoned | cluster.aside)
    demand = request.demand
    if request.well_only:
        right &= ~cluster.sub_healthy
    if demand.required or demand.terms:
        right &= cluster.fleet.selected(demand)
    if cluster.fleet.tainted:
        right &= cluster.fleet.tolerated(demand.tolerations)
    if request.network is Network.SUPERPODS:
        right &= cluster.superpod != NOWHERE
    if request.network is Network.SWITCHES:
        right &= cluster.leaf != NOWHERE
    return right


def of_product(cluster: Cluster, product: Product) -> NDArray[np.bool_]:
    """The nodes of one product."""
    known = product in cluster.products
    own = cluster.products.index(product) if known else len(cluster.products)
    return np.equal(cluster.product, own)


def of_right_product(cluster: Cluster, request: Request) -> NDArray[np.bool_]:
    """The nodes of the product that the request wants; all where it wants none."""
    if request.row is NO_CHIPS:
        return np.ones(len(cluster), np.bool_)
    return of_product(cluster, request.product)


def health_ranks(cluster: Cluster, request: Request) -> Ints:
    """What the health of every node adds to its rank; nothing without chips."""
    if request.row is NO_CHIPS:
        return np.zeros(len(cluster), np.int64)
    ranks: Ints = cluster.handicap * MAX_RANK
    return ranks


class Basis(Struct, frozen=True):
    """What one request finds of the nodes, whoever holds their chips."""

    nodes: NDArray[np.intp]
    """The eligible nodes."""
    within: Masks
    """The chips of each that the request may use when they are free."""
    health: Ints
    """What the health of each adds to its rank."""


def _basis_of(cluster: Cluster, request: Request) -> Basis:
    """The basis of *request*, found once in an epoch."""
    known = cluster.worked_out
    epoch, basis = known.get(request, (-1, None))
    if epoch != cluster.epoch:
        (nodes,) = eligible(cluster, request).nonzero()
        within = reach(cluster, request)[nodes]
        basis = Basis(nodes, within, health_ranks(cluster, request)[nodes])
        if len(known) >= MAX_KNOWN:
            del known[next(iter(known))]
        known[request] = cluster.epoch, basis
    found: Basis = basis
    return found


def node_ranks(cluster: Cluster, request: Request, barred: Barred = NOBODY) -> Ints:
    """The rank of every node, ``NEVER`` where it cannot hold a replica."""
    ranks = np.full(len(cluster), NEVER, np.int64)
    basis = _basis_of(cluster, request)
    own = request.table.ranks(cluster.free[basis.nodes] & basis.within)
    ranks[basis.nodes] = np.where(own == NEVER, NEVER, basis.health + own)
    if request.demand.resources:
        ranks[~cluster.fleet.roomy(request.demand)] = NEVER
    for nodes_barred in barred.values():
        ranks[nodes_barred] = NEVER
    return ranks


def node_reasons(
    cluster: Cluster, request: Request, barred: Barred = NOBODY
) -> NDArray[np.int8]:
    """For every node ``FITS`` or the index in ``REASONS`` of the first that applies."""
    reasons = np.full(len(cluster), FITS, np.int8)
    open_ = np.ones(len(cluster), np.bool_)

    def rule_out(reason: Reason, where: NDArray[np.bool_]) -> None:
        reasons[open_ & where] = REASONS.index(reason)
        open_[where] = False

    def rule_out_barred(reason: Reason) -> None:
        where = np.zeros(len(cluster), np.bool_)
        where[barred.get(reason, [])] = True
        rule_out(reason, where)

    rule_out(Reason.OTHER_PRODUCT, ~of_right_product(cluster, request))
    rule_out(Reason.NOT_READY, ~cluster.ready)
    rule_out(Reason.CORDONED, cluster.cordoned)
    rule_out(Reason.SET_ASIDE, cluster.aside)
    if request.well_only:
        rule_out(Reason.NOT_WELL, cluster.sub_healthy)
    rule_out(Reason.NOT_SELECTED, ~cluster.fleet.selected(request.demand))
    rule_out(Reason.TAINTED, ~cluster.fleet.tolerated(request.demand.tolerations))
    rule_out_barred(Reason.REFUSED)
    if request.network is Network.SUPERPODS:
        rule_out(Reason.NO_SUPERPOD, cluster.superpod == NOWHERE)
    if request.network is Network.SWITCHES:
        rule_out(Reason.NO_TOPOLOGY, cluster.leaf == NOWHERE)
    rule_out_barred(Reason.FAILED_BEFORE)
    rule_out_barred(Reason.OWN_POD)
    (nodes,) = open_.nonzero()
    free, within = cluster.free[nodes], reach(cluster, request)[nodes]
    healthy = cluster.healthy[nodes]
    sizes = _full_masks()[cluster.size[nodes]]

    def refused(masks: Masks) -> NDArray[np.bool_]:
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
    rule_out(Reason.TOO_FEW_RESOURCES, ~cluster.fleet.roomy(request.demand))
    return reasons


@lru_cache(maxsize=1)
def _full_masks() -> Masks:
    return np.array([full_mask(size) for size in range(MAX_CHIPS + 1)], np.uint64)


def reason_counts(reasons: NDArray[np.int8]) -> dict[Reason, int]:
    """How many nodes each reason rules out, in the order of reasons."""
    counts = np.bincount(reasons[reasons != FITS], minlength=len(REASONS))
    return {r: n for r, n in zip(REASONS, counts.tolist(), strict=True) if n}


def capacity(cluster: Cluster, request: Request, barred: Barred = NOBODY) -> int:
    """How many replicas the cluster can hold now, by the chips alone.

    Replicas of one job are alike and never compete for different groups, so taking
    them one after the other from each node is as many as there can be. Under a network
    rule a node holds one replica of a job.
    """
    basis = _basis_of(cluster, request)
    usable = cluster.free[basis.nodes] & basis.within
    if request.network is Network.NONE:
        pods = request.table.pods(usable)
    else:
        pods = (request.table.ranks(usable) != NEVER).astype(np.int64)
    if request.demand.resources:
        most = cluster.fleet.pods_that_fit(request.demand)[basis.nodes]
        pods = np.minimum(pods, most)
    if barred:
        taken = np.zeros(len(cluster), np.bool_)
        for nodes_barred in barred.values():
            taken[nodes_barred] = True
        pods = np.where(taken[basis.nodes], 0, pods)
    return int(pods.sum())


def need_words(request: Request) -> str:
    """What a node must have free for one replica.

    >>> from ringleaf.policies.products import PRODUCTS
    >>> job = Job("j", PRODUCTS["atlas-800-9000"], 2)
    >>> need_words(request_of(job))
    '2 free chips in one ring'
    """
    row, group = request.row, request.product.group
    if row is NO_CHIPS:
        return "a node that takes pods"
    chips = counted(row.asked, "free chip")
    if row.halves:
        return f"{row.asked // 2} free chips in each {group} of one node"
    across = set(row.rest) >= set(range(1, row.width + 1))
    if row.asked == 1 or across or row.width >= request.product.chips:
        return f"{chips} on one node"
    if row.asked <= row.width:
        return f"{chips} in one {group}"
    n_groups, odd = divmod(row.asked, row.width)
    whole = counted(n_groups, f"completely free {group}")
    return f"{whole}{' and 1 free chip' * odd} of one node"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(0, "chip"), counted(1, "chip"), counted(2, "other mesh")
    ('no chips', '1 chip', '2 other meshes')
    >>> counted(3, "leaf")
    '3 leaves'
    """
    return f"{number or 'no'} {noun if number == 1 else plural(noun)}"


def some_of(items: Iterable[str], most: int) -> str:
    """The first *most* of some things, and how many more there are.

    >>> some_of("abc", 3), some_of("abcde", 3)
    ('a, b, c', 'a, b, c and 2 more')
    """
    listed = list(items)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def plural(noun: str) -> str:
    """More than one of them."""
    if noun.endswith("leaf"):
        return f"{noun[:-1]}ves"
    return noun + ("es" if noun.endswith("sh") else "s")
