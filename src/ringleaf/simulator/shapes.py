"""Shapes a number of chips into pods that a cluster takes.

Ascend takes 1, 2, 4 or 8 chips in one pod, and whole nodes above (16 chips on A3): what
is wanted is rounded up. In SuperPoDs a job of more than a block of nodes is whole
blocks. Nothing is larger than the cluster.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.model.product import Product
from ringleaf.policies.products import rule_for
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import Site

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

BLOCK_NODES: Final = 16
"""Nodes of a logical SuperPoD, for jobs that have no wish."""


class Shape(Struct, frozen=True):
    """Pods of a job; *cut* says that it wanted more than there is."""

    chips: int
    replicas: int
    sp_block: int | None = None
    cut: bool = False

    @property
    def total(self) -> int:
        """Chips of all pods."""
        return self.chips * self.replicas


class ProductNodes(Struct, frozen=True):
    """The nodes of one product.

    Args:
        product: The product.
        size: Chips of a node.
        n_nodes: Nodes that are in order.
        group: Nodes that belong together: under the largest leaf, or in a block.
        has_leaves: Whether its jobs are told from which leaves they come.
        superpods: Nodes of every SuperPoD.

    """

    product: Product
    size: int
    n_nodes: int
    group: int
    has_leaves: bool
    superpods: tuple[int, ...] = ()

    @property
    def chips(self) -> int:
        """Chips of its nodes."""
        return self.size * self.n_nodes

    @property
    def largest_block(self) -> int:
        """Nodes of the largest block that any SuperPoD has room for."""
        return max(self.superpods, default=0)

    def shape(self, chips: int, block: int = 0) -> Shape:
        """The pods of a job that wants *chips* chips, in blocks of *block* nodes.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> ground = ProductNodes(PRODUCTS["atlas-800-9000"], 8, 64, 4, has_leaves=True)
        >>> [(s.replicas, s.chips) for s in map(ground.shape, (1, 3, 8, 20))]
        [(1, 1), (1, 4), (1, 8), (3, 8)]
        """
        if chips <= self.size:
            return Shape(self._pod(chips), 1)
        wanted = -(-chips // self.size)
        if not self.superpods:
            return Shape(
                self.size, min(wanted, self.n_nodes), cut=wanted > self.n_nodes
            )
        block = min(block or BLOCK_NODES, self.largest_block)
        if wanted <= block:
            return Shape(self.size, wanted)
        room = sum(nodes // block for nodes in self.superpods) * block
        rounded = wanted + -wanted % block
        return Shape(self.size, min(rounded, room), block * self.size, rounded > room)

    def _pod(self, chips: int) -> int:
        rule = rule_for(Job("", self.product, 1))
        takes = (n for n in sorted(rule) if n.bit_count() == 1 and n <= self.size)
        return next((n for n in takes if n >= chips), self.size)

    def label(self, shape: Shape, *, common: bool) -> Schema | None:
        """The label for leaf switches; jobs of a part of a node have none."""
        if not self.has_leaves or shape.chips < self.size:
            return None
        return Schema.NORMAL if common else Schema.LARGE_MODEL


def product_nodes(site: Site) -> tuple[ProductNodes, ...]:
    """The products of *site* that jobs can go to, the one with most chips first."""
    by_product: dict[Product, list[Node]] = {}
    for node in site.nodes:
        whole = node.free.bit_count() == node.chips and not node.faulty
        if node.chips and whole and node.ready and not node.cordoned:
            by_product.setdefault(node.product, []).append(node)
    grounds = [_ground(product, nodes) for product, nodes in by_product.items()]
    if not grounds:
        raise BadInput(f"cluster {site.name!r} has no node in order, want at least one")
    return tuple(sorted(grounds, key=lambda each: (-each.chips, each.product.key)))


def _ground(product: Product, nodes: Iterable[Node]) -> ProductNodes:
    sizes = Counter(node.chips for node in nodes)
    size = min(sizes, key=lambda n: (-sizes[n] * n, n))
    fit = [node for node in nodes if node.chips >= size]
    leaves = Counter(node.leaf for node in fit if node.leaf is not None)
    pods = Counter(node.superpod for node in fit if node.superpod is not None)
    superpods = (
        tuple(n for _name, n in sorted(pods.items())) if product.superpod else ()
    )
    group = max(leaves.values(), default=min(BLOCK_NODES, max(superpods, default=4)))
    has_leaves = bool(leaves) and bool(product.switch_modes)
    return ProductNodes(product, size, len(fit), group, has_leaves, superpods)


class JobShaper:
    """The shapes of many jobs on one cluster."""

    def __init__(self, grounds: tuple[ProductNodes, ...]) -> None:
        self.grounds = grounds
        self._known: dict[tuple[int, int, int], Shape] = {}
        # Row i is for jobs that are too large for the i smallest products.
        by_room = np.argsort([ground.chips for ground in grounds], kind="stable")
        self._rooms = np.array([grounds[i].chips // 2 for i in by_room])
        weights = np.array([float(ground.chips) for ground in grounds])
        rows = []
        for n in range(len(grounds)):
            left = weights.copy()
            left[by_room[:n]] = 0.0
            rows.append(np.cumsum(left) / left.sum())
        self._up_to = np.array([*rows, rows[-1]])

    def shape(self, ground: int, chips: int, block: int) -> Shape:
        """The pods of one job."""
        key = ground, chips, block
        if (known := self._known.get(key)) is None:
            known = self._known[key] = self.grounds[ground].shape(chips, block)
        return known

    def chosen(self, chips: Ints, draw: Reals) -> Ints:
        """The ground of every job: by chance, as many as there are chips.

        A job goes to a product of which it takes half at most, if there is one; else
        to the largest.
        """
        too_small = np.searchsorted(self._rooms, chips, side="left")
        rows = self._up_to[too_small]
        found = (draw[:, None] >= rows).sum(1)
        return np.asarray(np.minimum(found, len(self.grounds) - 1))

    def taken(self, ground: Ints, chips: Ints, block: Ints) -> tuple[Ints, int]:
        """Chips that every job takes, and how many were cut to the cluster."""
        codes = (ground << 48) | (block << 32) | chips
        keys, inverse, counts = np.unique(
            codes, return_inverse=True, return_counts=True
        )
        shapes = [
            self.shape(key >> 48, key & 0xFFFFFFFF, key >> 32 & 0xFFFF)
            for key in keys.tolist()
        ]
        totals = np.array([shape.total for shape in shapes], np.int64)
        n_cut = int(counts[[shape.cut for shape in shapes]].sum())
        return totals[inverse], n_cut
