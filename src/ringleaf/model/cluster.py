"""The cluster: nodes, their chips and what pods hold of them, a structure of arrays.

Node index order is node name order (code point by code point), so wherever nodes tie
the lowest index is the lowest name. Chips are masks: ``free`` are the chips that a node
offers and no pod holds, ``healthy`` the chips that are not faulty, ``sound`` the
healthy chips whose network is healthy too. A chip is usable when it is free and
healthy, or free and sound for a job that heeds the network.

Chips and holdings are written by a ``Statement`` (``ringleaf.framework.statement``)
only; health, labels and quarantine by ``change`` and ``set_quarantined``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from math import inf
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from ringleaf.model.demand import NOTHING, Demand, Taint
from ringleaf.model.fault import Down
from ringleaf.model.mask import MAX_CHIPS, full_mask
from ringleaf.model.node_table import NodeTable
from ringleaf.model.owner import Owner
from ringleaf.model.placement import NO_MARK, LeafAnnotation
from ringleaf.model.product import Product
from ringleaf.model.uplinks import NOWHERE, Leaf, UplinkUsage

Masks = NDArray[np.uint64]
_T = TypeVar("_T", bound=np.generic)


class Node(Struct, frozen=True):
    """One node as it is described to the cluster; chips as masks.

    ``free`` are the chips that no pod holds, of those that the node ``offers`` (None:
    all of them). ``faulty`` chips are not allocated; a pod on an ``unhealthy`` one of
    them is faulty, and may be deleted. ``weak`` chips and a ``weak_switch`` are
    sub-healthy: they work, but not well; either makes the node ``sub_healthy``.
    ``down`` says why it is not ready. A node that ``lists_all`` its resources has
    nothing of those that it does not name; any other node has any amount of them.
    ``allocatable`` chips count in what all nodes have together (None: all of them).
    """

    name: str
    product: Product
    chips: int
    free: int
    faulty: int = 0
    network_faulty: int = 0
    ready: bool = True
    sub_healthy: bool = False
    superpod: int | None = None
    leaf: str | None = None
    slot: int = 0
    cordoned: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    resources: Mapping[str, int] = field(default_factory=dict)
    unhealthy: int = 0
    weak: int = 0
    weak_switch: bool = False
    down: Down | None = None
    offers: int | None = None
    lists_all: bool = False
    allocatable: int | None = None


class Holding(Struct, frozen=True):
    """Chips of one node that one replica holds.

    Its queue is charged for ``charged``, or for what it holds (None).
    """

    node: int
    chips: int
    replica: int = 0
    mark: LeafAnnotation = NO_MARK
    demand: Demand = NOTHING
    charged: tuple[tuple[str, int], ...] | None = None


Watcher = Callable[[Owner, Holding, int], None]
"""Called for every pod that comes (1) or goes (-1): owner, holding, which of both."""


class Cluster:
    """Every node's chips, and which job holds which of them.

    Leaves come in the order that *leaves* gives them, or in which *nodes* first name
    them; *leaves* says what is known of them besides.

    ``version`` moves with every committed statement, ``change`` and
    ``set_quarantined``. ``changes`` lists the nodes whose free chips changed since
    ``epoch`` began, for indexes that follow the cluster; a new epoch has them
    start over. ``watchers`` hear of every pod at once, also of those that are tried and
    rolled back. ``eligibility_cache`` is what others found out about nodes whatever job
    holds their chips, and in which epoch. ``taken`` are the chips that pods hold,
    ``pool`` those that no pod or a known pod holds, ``offered`` those that nodes offer
    now: ``free`` follows from the three, in ``take``. Nodes that are ``quarantined``
    take no new pods.
    """

    def __init__(self, nodes: Iterable[Node], leaves: Iterable[Leaf] = ()) -> None:
        given = list(nodes)
        listed = sorted(given, key=lambda node: node.name)
        self.names = [node.name for node in listed]
        self.index: Mapping[str, int] = {n: i for i, n in enumerate(self.names)}
        if len(self.index) != len(self.names):
            raise ValueError("two nodes have the same name")
        self.products = sorted({n.product for n in listed}, key=lambda p: p.key)
        self.product = _array(
            (self.products.index(node.product) for node in listed), np.int16
        )
        self.size = _array((node.chips for node in listed), np.uint8)
        self.allocatable = _array(map(_allocatable, listed), np.int64)
        self.pool = _array((node.free for node in listed), np.uint64)
        self.offered = _array(map(_offered, listed), np.uint64)
        self.free = self.pool & self.offered
        faulty = _array((node.faulty for node in listed), np.uint64)
        network_faulty = _array((node.network_faulty for node in listed), np.uint64)
        everything = _array((full_mask(node.chips) for node in listed), np.uint64)
        self.healthy = everything & ~faulty
        self.sound = self.healthy & ~network_faulty
        self.ready = _array((node.ready for node in listed), np.bool_)
        self.cordoned = _array((node.cordoned for node in listed), np.bool_)
        self.quarantined = np.zeros(len(listed), np.bool_)
        self.node_table = NodeTable(
            [node.labels for node in listed],
            [node.taints for node in listed],
            [node.resources for node in listed],
            [node.lists_all for node in listed],
        )
        self.sub_healthy = _array((node.sub_healthy for node in listed), np.bool_)
        self.superpod = _array(
            (NOWHERE if n.superpod is None else n.superpod for n in listed), np.int64
        )
        named = dict.fromkeys(node.leaf for node in given if node.leaf is not None)
        known = {leaf.name: leaf for leaf in leaves}
        self.leaves = [known.get(name, Leaf(name)) for name in named]
        self.leaves.sort(key=lambda leaf: inf if leaf.order is None else leaf.order)
        number = {leaf.name: i for i, leaf in enumerate(self.leaves)}
        self.leaf = _array(
            (NOWHERE if n.leaf is None else number[n.leaf] for n in listed), np.int64
        )
        self.slot = _array((node.slot for node in listed), np.int64)
        self.uplinks = UplinkUsage(self.leaves)
        (under,) = (self.leaf != NOWHERE).nonzero()
        self.by_leaf = under[np.lexsort((self.slot[under], self.leaf[under]))]
        self.slots_by_leaf = self.slot[self.by_leaf]
        self.leaf_sizes = np.bincount(
            self.leaf[self.by_leaf], minlength=len(self.leaves)
        )
        # Lower is better: sub-healthy nodes last, then fewer faulty chips (D2, D37).
        self.health_penalty = self.sub_healthy * np.int64(
            MAX_CHIPS + 1
        ) + np.bitwise_count(everything & faulty)
        self.taken = np.zeros(len(listed), np.uint64)
        self.holdings: dict[Owner, list[Holding]] = {}
        self.watchers: list[Watcher] = []
        self.open_statement: list[Callable[[], object]] | None = None
        self.version = 0
        self.epoch = 0
        self.changes: list[int] = []
        self.most_changes = 4 * len(listed) + 4096
        self.eligibility_cache: dict[Any, tuple[int, Any]] = {}

    def __len__(self) -> int:
        return len(self.names)

    def product_of(self, node: int) -> Product:
        """The product of the node at index *node*."""
        return self.products[self.product.item(node)]

    def leaf_of(self, node: int) -> Leaf | None:
        """The leaf of the node at index *node*."""
        leaf = self.leaf.item(node)
        return None if leaf == NOWHERE else self.leaves[leaf]

    def emptied(self) -> "Cluster":
        """The same nodes with nothing on them and nothing wrong; to be read only."""
        found, n_nodes = copy(self), len(self)
        whole = np.array([full_mask(size) for size in range(MAX_CHIPS + 1)], np.uint64)
        found.pool = found.offered = found.free = whole[self.size]
        found.healthy = found.sound = found.free
        found.ready = np.ones(n_nodes, np.bool_)
        found.cordoned = found.quarantined = np.zeros(n_nodes, np.bool_)
        found.sub_healthy = found.cordoned
        found.node_table = self.node_table.emptied()
        found.uplinks = UplinkUsage([Leaf(leaf.name) for leaf in self.leaves])
        found.holdings, found.watchers, found.eligibility_cache = {}, [], {}
        return found

    @property
    def largest_leaf(self) -> int:
        """The nodes of the largest leaf; no slot lies outside it.

        A leaf that has lost nodes is as large as it was.
        """
        last = self.slots_by_leaf.max(initial=-1)
        return max(int(self.leaf_sizes.max(initial=0)), int(last) + 1)

    def change(self, at: int, node: Node) -> None:
        """The node at index *at* is as *node* says from now on.

        It stands where it stood and is the same product; chips that pods hold stay
        taken, whatever *node* says is free.
        """
        healthy = full_mask(node.chips) & ~node.faulty
        self.healthy[at] = healthy
        self.sound[at] = healthy & ~node.network_faulty
        self.ready[at] = node.ready
        self.cordoned[at] = node.cordoned
        self.sub_healthy[at] = node.sub_healthy
        faulty = (full_mask(node.chips) & node.faulty).bit_count()
        self.health_penalty[at] = node.sub_healthy * (MAX_CHIPS + 1) + faulty
        self.node_table.change(
            at, node.labels, node.taints, node.resources, lists_all=node.lists_all
        )
        self.pool[at] = node.free | self.taken.item(at)
        self.offered[at] = _offered(node)
        self.allocatable[at] = _allocatable(node)
        self.free[at] = self.pool[at] & self.offered[at] & ~self.taken[at]
        self.version += 1
        self.epoch += 1

    def set_quarantined(self, at: int, *, on: bool) -> None:
        """The node at index *at* takes no new pods from now on, or takes them again."""
        self.quarantined[at] = on
        self.version += 1
        self.epoch += 1

    def take(self, node: int, chips: int) -> None:
        """Pods hold exactly *chips* of *node* from now on; note what that changes."""
        self.taken[node] = chips
        self.pool[node] = pool = self.pool.item(node) | chips
        self.free[node] = pool & self.offered.item(node) & ~chips
        self.changes.append(node)
        if len(self.changes) > self.most_changes:
            self._forget_changes()

    def take_many(self, nodes: Sequence[int], chips: Sequence[int]) -> None:
        """Pods hold *chips* of *nodes* besides what they hold; a node may come twice.

        Like ``take`` for each.
        """
        at = np.array(nodes, np.intp)
        np.bitwise_or.at(self.taken, at, np.array(chips, np.uint64))
        taken = self.taken[at]
        self.pool[at] |= taken
        self.free[at] = self.pool[at] & self.offered[at] & ~taken
        self.changes += nodes
        if len(self.changes) > self.most_changes:
            self._forget_changes()

    def _forget_changes(self) -> None:
        """Begin a new epoch: the log of changes has become too long."""
        self.changes.clear()
        self.epoch += 1


def _offered(node: Node) -> int:
    return full_mask(node.chips) if node.offers is None else node.offers


def _allocatable(node: Node) -> int:
    return node.chips if node.allocatable is None else node.allocatable


def _array(values: Iterable[Any], dtype: type[_T]) -> NDArray[_T]:
    return np.fromiter(values, dtype=dtype)
