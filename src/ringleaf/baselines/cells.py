"""HiveD: cells that are split only when no smaller one is free.

The cells are chips, rings (or modules, cards), nodes, leaves and SuperPoDs. A pod takes
its chips from the smallest cell that is split already, and splits a larger one only if
it must, as a buddy allocator does; a job goes to the smallest cell that holds it.

One tenant owns all cells. HiveD's virtual clusters, which guarantee cells to each
tenant, and its opportunistic jobs are left out.

Source: Zhao et al.: HiveD, OSDI 2020.
"""

from functools import lru_cache
from typing import Final

import numpy as np

from ringleaf.baselines.fitting import (
    TIGHT,
    Costs,
    FittingNodes,
    Spot,
    Spots,
    Wiring,
    cheapest,
)
from ringleaf.baselines.fragmentation import by_group
from ringleaf.baselines.tiers import fewest, parts, smallest_domain, tiers_of
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Masks
from ringleaf.model.job import Job
from ringleaf.model.product import Product, Row
from ringleaf.policies.chips import TABLE_CHIPS
from ringleaf.policies.fit import Request

LEVEL: Final = 1 << 16
"""What one level of cells costs more than anything inside the level below."""
NONE: Final = 1 << 8
"""More chips than a ring has."""


class Split:
    """Chips of the ring that is split already and has fewest to spare."""

    def room(self, request: Request, usable: Masks) -> Ints:
        """The number of pods that the rule can serve."""
        return TIGHT.room(request, usable)

    def taken(self, request: Request, usable: int) -> int:
        """Chips of a split ring; where none has enough, what the rule takes."""
        product = request.product
        if product.chips <= TABLE_CHIPS:
            taken = split_ring(request.row, product)[0].item(usable)
            if taken:
                return taken
        return TIGHT.taken(request, usable)


@lru_cache(maxsize=64)
def split_ring(row: Row, product: Product) -> tuple[Masks, Ints]:
    """For every mask the chips of the tightest split ring, and its free chips.

    No chips, and ``NONE``, where no ring that is split has enough.
    """
    ways = by_group(row, product)
    size = 1 << product.chips
    best = np.zeros(size, np.uint64)
    free = np.full(size, NONE, np.int64)
    masks = np.arange(size, dtype=np.uint64)
    for number, taken in enumerate(ways):
        start = number * row.width
        ring = np.uint64(((1 << row.width) - 1) << start)
        here = np.bitwise_count(masks & ring).astype(np.int64)
        better = (taken > 0) & (here < row.width) & (here < free)
        best[better], free[better] = taken[better], here[better]
    return best, free


class Cells:
    """Buddy cells."""

    wiring: Wiring = Split()
    shape = ""

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*."""
        del job
        if fitting.room.sum() < pods:
            return None
        if pods == 1:
            return _split_least(fitting, 1)
        found: list[Spot] = []
        for part, count in parts(*smallest_domain(fitting, pods), pods, fewest):
            found += _split_least(part, count) or ()
        return found


def _split_least(fitting: FittingNodes, pods: int) -> list[Spot] | None:
    """Pods where they split the smallest cells."""
    above = _above(fitting, tiers_of(fitting.cluster))

    def costs(at: Ints, usable: Masks) -> Costs:
        return _costs(fitting, above, at, usable)

    return cheapest(fitting, pods, costs)


def _above(fitting: FittingNodes, tiers: tuple[Ints, ...]) -> Ints:
    """The costs of a node that is whole, by the cells above it.

    A level for each of them that is whole too; then the whole nodes of the one that is
    not, so that the cell goes on that has least left.
    """
    cluster = fitting.cluster
    used = (cluster.free & cluster.healthy) != cluster.healthy
    cost = np.zeros(len(fitting.nodes), np.int64)
    whole = np.ones(len(fitting.nodes), np.bool_)
    for domain in tiers:
        here = domain[fitting.nodes]
        split = np.bincount(domain, used)[here] > 0
        left = np.bincount(domain, ~used)[here].astype(np.int64)
        cost += np.where(whole, np.where(split, left, LEVEL), 0)
        whole &= ~split
    return cost


def _costs(fitting: FittingNodes, above: Ints, at: Ints, usable: Masks) -> Costs:
    """What it costs to take a pod's chips from nodes: the largest cell it splits."""
    free = np.bitwise_count(usable).astype(np.int64)
    whole = free == fitting.healthy[at]
    cost = np.where(whole, 2 * LEVEL + above[at], LEVEL + free)
    product = fitting.request.product
    if product.chips <= TABLE_CHIPS:
        ring = split_ring(fitting.request.row, product)[1][usable]
        cost = np.where(ring < NONE, ring, cost)
    return cost.astype(np.float64)
