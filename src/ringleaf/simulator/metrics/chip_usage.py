"""The cluster as observers see it: the chips of each job, what is free and usable.

Only nodes that change are counted again. Everything is whole numbers, so coming and
going leaves exactly nothing behind.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.mask import full_mask
from ringleaf.model.product import Product
from ringleaf.simulator.metrics.wiring import Mix, PodWirings, Waste

Turned = Callable[[int, int], None]
"""Told of every node that is wholly free now (1), or no longer (-1)."""


class Stock:
    """What is free on the nodes of one product."""

    def __init__(self, product: Product, mix: Mix) -> None:
        self.product = product
        self.table = Waste(product, mix)
        self.holds = PodWirings(product)
        self.idle = 0
        """Free chips that work."""
        self.waste = 0
        """Chips of them that the mix cannot use, times the pods of the mix."""

    @property
    def fragments(self) -> float:
        """Free chips that the typical mix cannot use: F of metric 3."""
        return self.waste / self.table.pods


class ChipUsage:
    """Every node's chips: held, working, free.

    Args:
        nodes: The nodes at the beginning.
        mixes: Product -> the typical pods of its jobs.

    """

    def __init__(
        self, nodes: Sequence[Node], mixes: Mapping[Product, Mix] | None = None
    ) -> None:
        listed = sorted(nodes, key=lambda node: node.name)
        self.nodes = listed
        self.index = {node.name: i for i, node in enumerate(listed)}
        mixes = mixes or {}
        self.stocks = {
            product: Stock(product, mixes.get(product, {}))
            for product in dict.fromkeys(node.product for node in listed)
        }
        self.stock = [self.stocks[node.product] for node in listed]
        self.full = [full_mask(node.chips) for node in listed]
        self.working = [
            full_mask(node.chips) & ~node.faulty if node.ready else 0 for node in listed
        ]
        self.taken = [full_mask(node.chips) & ~node.free for node in listed]
        """Chips that are not free: held by jobs, or taken before the first job."""
        self.free = [0] * len(listed)
        self.chips = sum(node.chips for node in listed)
        self.used = 0
        """Chips that jobs hold."""
        self.healthy = sum(mask.bit_count() for mask in self.working)
        """Chips that work, on nodes that are ready."""
        self.watchers: list[Turned] = []
        self._known = np.array(self.working, np.uint64)
        self._seen: tuple[Cluster | None, int] = (None, -1)
        for i in range(len(listed)):
            self._write(i)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_seen": (None, -1)}  # the scheduler keeps its cluster

    def take(self, node: int, mask: int) -> None:
        """A pod is placed on *node* and holds *mask*."""
        self.used += mask.bit_count()
        self.taken[node] |= mask
        self._write(node)

    def give(self, node: int, mask: int) -> None:
        """A pod of *node* is gone that held *mask*."""
        self.used -= mask.bit_count()
        self.taken[node] &= ~mask
        self._write(node)

    def is_whole(self, node: int) -> bool:
        """Whether all of *node* works and is free."""
        return self.free[node] == self.full[node]

    def look(self, cluster: Cluster) -> bool:
        """See which chips work now; whether that is news."""
        if self._seen[0] is cluster and self._seen[1] == cluster.epoch:
            return False
        self._seen = cluster, cluster.epoch
        working = np.where(cluster.ready, cluster.healthy, np.uint64(0))
        if len(cluster) != len(self.nodes):
            working = self._by_name(cluster, working.tolist())
        (changed,) = (working != self._known).nonzero()
        self._known = working
        for node in changed.tolist():
            mask = working.item(node)
            self.healthy += mask.bit_count() - self.working[node].bit_count()
            self.working[node] = mask
            self._write(node)
        return bool(len(changed))

    def _by_name(
        self, cluster: Cluster, working: list[int]
    ) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Which chips of our nodes work; of nodes that are gone, none."""
        at = cluster.index
        found = [working[at[n.name]] if n.name in at else 0 for n in self.nodes]
        return np.array(found, np.uint64)

    def _write(self, node: int) -> None:
        before = self.free[node]
        after = self.working[node] & ~self.taken[node]
        if before == after:
            return
        self.free[node] = after
        stock = self.stock[node]
        stock.idle += after.bit_count() - before.bit_count()
        stock.waste += stock.table[after] - stock.table[before]
        full = self.full[node]
        if (before == full) != (after == full):
            by = 1 if after == full else -1
            for watcher in self.watchers:
                watcher(node, by)
