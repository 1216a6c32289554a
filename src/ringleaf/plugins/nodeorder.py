"""Kubernetes' own preferences among nodes, each from 0 to 100 times its weight.

- ``leastrequested``: what would be left of CPU and memory with the pod, in percent;
  ``mostrequested``: what would be in use. The mean of both resources. A pod that asks
  for no CPU or memory counts as one that asks for 100m and 200Mi.
- ``balancedresource``: 100, less the standard deviation of the shares in use of CPU
  and memory, in percent. Not for pods that ask for neither.
- ``nodeaffinity``: the weights of the pod's preferences that hold, as a part of the
  most that any node has.
- ``tainttoleration``: 100, less the taints that ask such pods to go elsewhere, as a
  part of the most that any node has.
- ``podaffinity``: the weights of neighbours that the pod likes or that like it, less
  those that dislike each other, between the least (0) and the most (100) of any node.
- ``podtopologyspread``: 100 where the fewest pods like it are, less elsewhere.
- ``imagelocality`` is 0 everywhere: nodes do not tell which images they have.

Scores are whole numbers, as Kubernetes' are. A resource of which a node does not say
how much it has does not count on it.

Where we differ, on purpose: what Kubernetes measures against the other candidates of
this moment, we measure against all nodes of the cluster, so that a score does not
depend on the other candidates. What is the same for all nodes is left out.

Source: Kubernetes ``pkg/scheduler/framework/plugins/{noderesources,nodeaffinity,
tainttoleration,interpodaffinity,podtopologyspread}``; defaults and keys: Volcano
``pkg/scheduler/plugins/nodeorder``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias
from weakref import ref

import numpy as np
from msgspec import Struct

from ringleaf.config.arguments import Value
from ringleaf.framework.plugin import Nodes, Plugin, PluginSettings, Scores
from ringleaf.framework.state import SchedulerState
from ringleaf.model.arrays import Ints
from ringleaf.model.cache import Cache
from ringleaf.model.demand import WEIGHT, Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.neighbours import Neighbours, neighbours_of
from ringleaf.model.node_table import NodeTable
from ringleaf.model.pod_terms import Tally

BEST_SCORE: Final = 100
"""The best score."""

RESOURCES: Final = {"cpu": 100, "memory": 200 * 2**20 * 1000}
"""The resources that count → what a pod counts for that asks for none of it."""


class NodeOrderSettings(
    PluginSettings,
    frozen=True,
    rename={
        "least": "leastrequested.weight",
        "most": "mostrequested.weight",
        "balanced": "balancedresource.weight",
        "node_affinity": "nodeaffinity.weight",
        "taints": "tainttoleration.weight",
        "pod_affinity": "podaffinity.weight",
        "spread": "podtopologyspread.weight",
    },
):
    """The weights of the scores."""

    least: int = 1
    most: int = 0
    balanced: int = 1
    node_affinity: int = 2
    taints: int = 3
    pod_affinity: int = 2
    spread: int = 2


FEW_SCORED: Final = 8
"""Up to so many nodes, plain numbers are faster than arrays."""

MOST_KEPT: Final = 64
"""Kinds of pods whose preferences are kept."""


_Number: TypeAlias = Any
"""A number of one node, or an array of those of many: the formulas are the same."""


class _Line(NamedTuple):
    """One resource of one node or many."""

    have: _Number
    some: _Number
    """What nodes have, or 1 where it is nothing: to divide by."""
    used: _Number
    padding: _Number
    """What pods count for there that ask nothing."""


class _Arithmetic(NamedTuple):
    """What differs between numbers and arrays."""

    lesser: Callable[[_Number, _Number], _Number]
    floor: Callable[[_Number], _Number]


_ONE: Final = _Arithmetic(min, math.floor)
_MANY: Final = _Arithmetic(np.minimum, np.floor)


class _Gauge(Struct, frozen=True):
    """CPU and memory of all nodes, as far as they are counted."""

    table: NodeTable
    version: int
    have: dict[str, Ints]
    n_counted: Ints
    """How many of the resources each node counts, at least 1."""
    half: Scores
    """One half where a node counts both, else 0."""


class _Asked(Struct, frozen=True):
    """What a pod asks, resource by resource."""

    plain: tuple[int, ...]
    padded: tuple[int, ...]
    """The same, with what counts for a pod that asks nothing."""
    any: bool
    """Whether the pod asks for CPU or memory at all."""


class _Kept(Struct, frozen=True):
    """Scores of all nodes, and of what state of the cluster they are."""

    version: tuple[int, int]
    scores: Ints | None


class NodeOrder(Plugin):
    """Likes nodes as Kubernetes' own scheduler does."""

    Settings: ClassVar[type[PluginSettings]] = NodeOrderSettings
    settings: NodeOrderSettings

    def __init__(self, view: SchedulerState, arguments: Mapping[str, Value]) -> None:
        super().__init__(view, arguments)
        self._gauge: _Gauge | None = None
        self._kept: dict[Demand, _Kept] = {}
        self._kept_of: ref[Neighbours] | None = None
        """The index of which they are. It keeps a whole cluster alive, and another
        one takes its place whenever a node comes or goes."""

    def __getstate__(self) -> dict[str, Any]:
        """Itself for a run that goes on later, which finds its scores again."""
        return {**vars(self), "_kept": {}, "_kept_of": None}

    def node_order(self, job: Job, role: Role, nodes: Nodes) -> Scores | None:
        """How well *nodes* suit a pod of *role*; None where all suit alike.

        A pod that may like nodes less once others of its kind are there gets scores.
        """
        del job
        pod = role.demand
        index = neighbours_of(self.view.cluster)
        resources = self._resources(pod, nodes, index)
        preferences = self._preferences(pod, index)
        if preferences is None:
            undecided = resources is None and self._minds_neighbours(pod)
            return np.zeros(len(nodes)) if undecided else resources
        own = preferences[nodes].astype(np.float64)
        return own if resources is None else own + resources

    def _minds_neighbours(self, pod: Demand) -> bool:
        """Whether a pod that comes can make a difference between nodes."""
        likes = self.settings.pod_affinity and (pod.prefers_near or pod.prefers_apart)
        return bool(likes) or bool(
            self.settings.spread and any(not x.hard for x in pod.spread)
        )

    def _resources(self, pod: Demand, nodes: Nodes, index: Neighbours) -> Scores | None:
        """The scores for CPU and memory; None where no node counts them."""
        gauge = self._read_gauge()
        if not gauge.have:
            return None
        asked = _asked(pod.resources, tuple(gauge.have))
        if len(nodes) > FEW_SCORED:
            lines = [_many(gauge, name, nodes, index.bare(name)) for name in gauge.have]
            n_counted, half = gauge.n_counted[nodes], gauge.half[nodes]
            found: Scores = self._rate(asked, lines, n_counted, half, _MANY)
            return found
        return np.array(
            [
                self._rate(
                    asked,
                    [_one(gauge, name, node, index.bare(name)) for name in gauge.have],
                    gauge.n_counted.item(node),
                    gauge.half.item(node),
                    _ONE,
                )
                for node in nodes.tolist()
            ],
            np.float64,
        )

    def _rate(
        self,
        asked: _Asked,
        lines: Sequence[_Line],
        n_counted: _Number,
        half: _Number,
        of: _Arithmetic,
    ) -> _Number:
        """The scores of nodes with these *lines*, one for each resource."""
        weights = self.settings
        left, taken, shares = 0, 0, []
        for line, plain, padded in zip(lines, asked.plain, asked.padded, strict=True):
            load = of.lesser(line.used + line.padding + padded, line.have)
            if weights.least:
                left += (line.have - load) * BEST_SCORE // line.some
            if weights.most:
                taken += load * BEST_SCORE // line.some
            shares.append(of.lesser((line.used + plain) / line.some, 1.0))
        total = weights.least * (left // n_counted) + weights.most * (
            taken // n_counted
        )
        if weights.balanced and asked.any:
            apart = abs(shares[0] - shares[-1]) * half
            total = total + weights.balanced * of.floor((1 - apart) * BEST_SCORE)
        return total * 1.0

    def _read_gauge(self) -> _Gauge:
        """The gauge of the cluster as its nodes are."""
        table, gauge = self.view.cluster.node_table, self._gauge
        if gauge is None or gauge.table is not table or gauge.version != table.version:
            gauge = self._gauge = _gauge_of(table)
        return gauge

    def _preferences(self, pod: Demand, index: Neighbours) -> Ints | None:
        """The scores of all nodes for what *pod* prefers; None where they are equal."""
        version = self.view.cluster.node_table.version, index.version
        if self._kept_of is None or self._kept_of() is not index:
            self._kept_of = ref(index)
            self._kept.clear()
        kept = self._kept.get(pod)
        if kept is None or kept.version != version:
            scores = self._read_preferences(pod, index)
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            kept = self._kept[pod] = _Kept(version, scores)
        return kept.scores

    def _read_preferences(self, pod: Demand, index: Neighbours) -> Ints | None:
        table = self.view.cluster.node_table
        weighed = (
            (self.settings.node_affinity, node_affinity),
            (self.settings.taints, taint_toleration),
            (self.settings.pod_affinity, pod_affinity),
            (self.settings.spread, topology_spread),
        )
        found = [
            weight * scores
            for weight, scorer in weighed
            if weight and (scores := scorer(pod, table, index)) is not None
        ]
        return np.add.reduce(found) if found else None


def node_affinity(pod: Demand, table: NodeTable, _index: Neighbours) -> Ints | None:
    """The weights of preferences that hold, against the most of any node."""
    liked = table.labels.liked(pod) if pod.prefers else _NOTHING
    most = liked.max(initial=0)
    return liked * BEST_SCORE // most if most else None


def taint_toleration(pod: Demand, table: NodeTable, _index: Neighbours) -> Ints | None:
    """Few taints that ask such a pod to go elsewhere, against the most of any node."""
    disliked = (
        table.taints.disliked(pod.tolerations) if table.taints.tainted else _NOTHING
    )
    most = disliked.max(initial=0)
    return BEST_SCORE - disliked * BEST_SCORE // most if most else None


def pod_affinity(pod: Demand, _table: NodeTable, index: Neighbours) -> Ints | None:
    """The weights of neighbours, between the least and the most of any node.

    What a running pod requires of its neighbours adds nothing, as in Volcano.
    """
    liking = index.liking(pod)
    if liking is None:
        return None
    least, most = liking.min(), liking.max()
    return (liking - least) * BEST_SCORE // (most - least) if most > least else None


def topology_spread(pod: Demand, _table: NodeTable, index: Neighbours) -> Ints | None:
    """Few pods like it, between those of the emptiest and the fullest node.

    Nodes that lack a label of a soft constraint, or that the pod does not select,
    score 0.
    """
    found = index.crowding(pod)
    if found is None or not found[1].any():
        return None
    crowd, counted = found
    least, most = crowd[counted].min(), crowd[counted].max()
    score = (
        (most + least - crowd) * BEST_SCORE // most
        if most
        else np.full(len(crowd), BEST_SCORE)
    )
    return np.where(counted, score, 0)


_NOTHING: Final = np.zeros(0, np.int64)


def _gauge_of(table: NodeTable) -> _Gauge:
    found = {
        name: have
        for name in RESOURCES
        if (have := table.resources.have(name)) is not None
    }
    counted = [have > 0 for have in found.values()]
    n_counted = np.maximum(np.add.reduce(counted, dtype=np.int64), 1)
    half = np.where(np.logical_and.reduce(counted), 0.5, 0.0)
    return _Gauge(table, table.version, found, n_counted, half)


def _many(gauge: _Gauge, name: str, nodes: Nodes, bare: Tally) -> _Line:
    have = gauge.have[name][nodes]
    used = gauge.table.resources.used(name, nodes)
    return _Line(have, np.maximum(have, 1), used, RESOURCES[name] * bare.counts[nodes])


def _one(gauge: _Gauge, name: str, node: int, bare: Tally) -> _Line:
    have = gauge.have[name].item(node)
    used = gauge.table.resources.used_on(name, node)
    return _Line(have, have or 1, used, RESOURCES[name] * bare.counts.item(node))


_known: Final[Cache[tuple[object, ...], _Asked]] = Cache(1024, 4 << 20)


def _asked(resources: tuple[tuple[str, int], ...], names: tuple[str, ...]) -> _Asked:
    found = _known.get((resources, names))
    if found is None:
        given = dict(resources)
        plain = tuple(given.get(name, 0) for name in names)
        padded = tuple(given.get(name, 0) or RESOURCES[name] for name in names)
        found = _Asked(plain, padded, any(given.get(name) for name in RESOURCES))
        _known.put((resources, names), found, WEIGHT * len(resources))
    return found
