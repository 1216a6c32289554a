"""FGD: the node, and the chips of it, after which least is left in pieces.

What is left on a node is useless to those pods that it can no longer serve. For pods of
every size that are typical, count the free chips that such pods cannot use; the sum,
weighed by how typical they are, is the fragmentation of the node. A pod goes where it
adds least.

Source: Weng et al.: Beware of Fragmentation, ATC 2023, with the ring-aware form of
Ringleaf's measures: what a node can serve is what the product's rule serves.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ringleaf.baselines.fitting import (
    TIGHT,
    Costs,
    FittingNodes,
    Spots,
    Wiring,
    cheapest,
)
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Masks
from ringleaf.model.job import Job
from ringleaf.model.product import Product, ProductMode, Row
from ringleaf.policies.chips import TABLE_CHIPS, read
from ringleaf.policies.fit import Request

SIZES: Final = (1, 2, 4, 8, 16)
"""Chips of typical pods, each as typical as the others; those the product takes."""


def everything(product: Product) -> Masks:
    """Every mask of a node."""
    return np.arange(1 << product.chips, dtype=np.uint64)


@lru_cache(maxsize=64)
def fragments(product: Product) -> NDArray[np.float64]:
    """The fragmentation of a node for every mask of free chips."""
    masks = everything(product)
    free = np.bitwise_count(masks).astype(np.float64)
    rule = rule_of(product)
    sizes = [size for size in SIZES if size in rule]
    total = np.zeros(len(masks))
    for size in sizes:
        request = Request(product, rule[size], avoids_network_faults=False)
        total += free - size * TIGHT.room(request, masks)
    return total / max(1, len(sizes))


def rule_of(product: Product) -> Mapping[int, Row]:
    """The rule of most jobs on *product*."""
    return product.rules.get(ProductMode.ANY) or next(iter(product.rules.values()))


def by_group(row: Row, product: Product) -> list[Masks]:
    """For every group the chips it would give, for every mask; 0 where it may not.

    Which groups may give chips the row says; a request larger than a group has no
    choice but the row's own.
    """
    masks = everything(product)
    if row.halves or row.asked > row.width:
        return []
    found = []
    for start in range(0, product.chips, row.width):
        group = np.uint64(((1 << row.width) - 1) << start)
        inside = masks & group
        taken = read(replace(row, rest=()), product.chips, inside).taken
        may = np.isin(np.bitwise_count(inside), row.first)
        found.append(np.where(may, taken, np.uint64(0)))
    return found


class Careful:
    """The chips of a node after which least is left in pieces."""

    def __init__(self) -> None:
        self._tables: dict[Row, tuple[Masks, NDArray[np.float64]]] = {}

    def room(self, request: Request, usable: Masks) -> Ints:
        """The number of pods that the rule can serve."""
        return TIGHT.room(request, usable)

    def taken(self, request: Request, usable: int) -> int:
        """The chips that leave least in pieces."""
        if request.product.chips > TABLE_CHIPS:
            return TIGHT.taken(request, usable)
        return self._table(request)[0].item(usable)

    def added(self, request: Request, usable: Masks) -> Costs:
        """How much more is in pieces after a pod, for many masks.

        Nodes too large for a table count what is free: the fullest first.
        """
        if request.product.chips > TABLE_CHIPS:
            return np.bitwise_count(usable).astype(np.float64)
        return self._table(request)[1][usable]

    def _table(self, request: Request) -> tuple[Masks, NDArray[np.float64]]:
        """Every mask with the chips to take and what that adds."""
        row, product = request.row, request.product
        if row not in self._tables:
            masks, pieces = everything(product), fragments(product)
            own = read(row, product.chips, masks).taken
            ways = np.array([own, *by_group(row, product)])
            after = np.where(ways > 0, pieces[masks & ~ways], np.inf)
            best = after.argmin(axis=0)
            column = np.arange(len(masks))
            added = after[best, column] - pieces
            self._tables[row] = ways[best, column], added
        return self._tables[row]


class Fgd:
    """Fragmentation gradient descent, pod by pod."""

    shape = ""

    def __init__(self) -> None:
        self._careful = Careful()
        self.wiring: Wiring = self._careful

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*."""
        del job

        def costs(_at: Ints, usable: Masks) -> Costs:
            return self._careful.added(fitting.request, usable)

        return cheapest(fitting, pods, costs)
