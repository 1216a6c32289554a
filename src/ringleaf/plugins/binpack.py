"""Fill nodes that are in use before others.

A pod's score of a node: of every resource that it asks for and that is configured, the
share of the node that would be in use with it, weighted. A node where one of them would
overflow scores 0. CPU and memory are configured unless their weight is 0; chips only if
their resource is listed (``binpack.resources: huawei.com/Ascend910``), and then they
are counted from the cluster: chips that are not free, of the chips of the node.

Source: Volcano ``pkg/scheduler/plugins/binpack``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import field

from ringleaf.config.arguments import Value
from ringleaf.framework.plugin import Nodes, Plugin, PluginSettings, Scores
from ringleaf.framework.state import SchedulerState
from ringleaf.model.amounts import Amounts
from ringleaf.model.arrays import Ints
from ringleaf.model.cache import Cache
from ringleaf.model.cluster import Cluster
from ringleaf.model.demand import WEIGHT, Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.node_table import NodeTable

FULL_SCORE: Final = 100
"""The score of a node that the pod would fill to the brim."""

FEW_NODES: Final = 8
"""Up to so many nodes, plain numbers are faster than arrays."""

_Number: TypeAlias = Any
"""A number of one node, or an array of those of many: the formula is the same."""


class _Counted:
    """A resource that nodes count."""

    def __init__(self, table: NodeTable, name: str, have: Ints) -> None:
        self._table = table
        self._name = name
        self.have = have

    def used(self, nodes: Nodes) -> Ints:
        return self._table.resources.used(self._name, nodes)

    def used_on(self, node: int) -> int:
        return self._table.resources.used_on(self._name, node)


class _Chips:
    """The chips of nodes whose product counts them by one name."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        own = [product.resource == name for product in cluster.products]
        self.have: Ints = cluster.size * np.array(own, np.int64)[cluster.product]
        self._cluster = cluster

    def used(self, nodes: Nodes) -> Ints:
        have = self.have[nodes]
        return np.where(have, have - np.bitwise_count(self._cluster.free[nodes]), 0)

    def used_on(self, node: int) -> int:
        have = self.have.item(node)
        return have and have - self._cluster.free.item(node).bit_count()


class _Part(NamedTuple):
    """One resource that counts for a pod."""

    meter: _Counted | _Chips
    amount: int
    weight: int


class _Pod(NamedTuple):
    """What counts for a pod: resources, and by what their sum is multiplied."""

    parts: tuple[_Part, ...]
    scale: float


class BinpackSettings(
    PluginSettings,
    frozen=True,
    rename={
        "weight": "binpack.weight",
        "cpu": "binpack.cpu",
        "memory": "binpack.memory",
        "resources": "binpack.resources",
        "weight_of": "binpack.resources.<resource>",
    },
):
    """The weight of the plugin and of resources; *resources* are further ones."""

    weight: int = 1
    cpu: int = 1
    memory: int = 1
    resources: tuple[str, ...] = ()
    weight_of: dict[str, int] = field(default_factory=dict)


class Binpack(Plugin):
    """Likes nodes that a pod would fill."""

    Settings: ClassVar[type[PluginSettings]] = BinpackSettings
    settings: BinpackSettings

    def __init__(self, view: SchedulerState, arguments: Mapping[str, Value]) -> None:
        super().__init__(view, arguments)
        settings = self.settings
        self._weights = {n: settings.weight_of.get(n, 1) for n in settings.resources}
        self._weights |= {"cpu": settings.cpu, "memory": settings.memory}
        self._read = (view.cluster, view.cluster.node_table.version)
        self._pods: Cache[tuple[object, ...], _Pod] = Cache(1024, 4 << 20)

    def node_order(self, job: Job, role: Role, nodes: Nodes) -> Scores | None:
        """How full *nodes* would be with a pod of *role*; None where nothing counts."""
        if not self.settings.weight:
            return None
        cluster = self.view.cluster
        if self._read != (cluster, cluster.node_table.version):
            self._read = (cluster, cluster.node_table.version)
            self._pods.clear()
        pod = self._pod(job.product.resource, role.chips, role.demand)
        if not pod.parts:
            return None
        if len(nodes) > FEW_NODES:
            found: Scores = _score(pod, _many(pod, nodes), np.minimum, np.maximum)
            return found
        scores = [_score(pod, _one(pod, node), min, max) for node in nodes.tolist()]
        return np.array(scores, np.float64)

    def _pod(self, chip: str, chips: int, demand: Demand) -> _Pod:
        """What counts for such a pod on the cluster as its nodes are, found once."""
        key = chip, chips, demand.resources
        found = self._pods.get(key)
        if found is None:
            found = self._read_pod(chip, {**dict(demand.resources), chip: chips})
            self._pods.put(key, found, WEIGHT * len(demand.resources))
        return found

    def _read_pod(self, chip: str, amounts: Amounts) -> _Pod:
        asked = [
            (name, amount, self._weights[name])
            for name, amount in amounts.items()
            if amount and self._weights.get(name)
        ]
        parts = [
            _Part(meter, amount, weight)
            for name, amount, weight in asked
            if (meter := self._meter(name, chip)) is not None
        ]
        weights = sum(weight for _name, _amount, weight in asked)
        return _Pod(tuple(parts), FULL_SCORE * self.settings.weight / max(weights, 1))

    def _meter(self, name: str, chip: str) -> _Counted | _Chips | None:
        """How much nodes have of a resource; None where no node says."""
        cluster = self.view.cluster
        if name == chip:
            return _Chips(cluster, name)
        have = cluster.node_table.resources.have(name)
        return None if have is None else _Counted(cluster.node_table, name, have)


def _score(
    pod: _Pod,
    lines: Iterable[tuple[_Number, _Number]],
    lesser: Callable[[_Number, _Number], _Number],
    greater: Callable[[_Number, _Number], _Number],
) -> _Number:
    """The score of nodes that have, and use, so much of each resource."""
    total, fits = 0.0, True
    for part, (have, used) in zip(pod.parts, lines, strict=True):
        filled = used + part.amount
        total = total + part.weight * lesser(filled, have) / greater(have, 1)
        fits = fits & ((filled <= have) | (have == 0))
    return total * fits * pod.scale


def _many(pod: _Pod, nodes: Nodes) -> list[tuple[_Number, _Number]]:
    return [(part.meter.have[nodes], part.meter.used(nodes)) for part in pod.parts]


def _one(pod: _Pod, node: int) -> list[tuple[_Number, _Number]]:
    return [
        (part.meter.have.item(node), part.meter.used_on(node)) for part in pod.parts
    ]
