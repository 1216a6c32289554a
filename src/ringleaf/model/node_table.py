"""What nodes have besides chips: labels, taints, and resources that pods use up."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy

import numpy as np

from ringleaf.model.arrays import SPARE_ROWS, Flags, Ints
from ringleaf.model.demand import Taint, Toleration
from ringleaf.model.node_labels import NodeLabels
from ringleaf.model.node_resources import NodeResources


def _repelling(
    taints: Iterable[Taint], tolerations: Sequence[Toleration]
) -> list[Taint]:
    """The taints that keep a pod away that tolerates others only."""
    return [
        taint
        for taint in taints
        if taint.repels and not any(each.covers(taint) for each in tolerations)
    ]


def _disliked(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many taints ask a pod to go elsewhere, and it does not tolerate them."""
    return sum(
        not taint.repels and not any(each.covers(taint) for each in tolerations)
        for taint in taints
    )


class NodeTaints:
    """The taints of every node, in the order of the cluster."""

    def __init__(self, taints: Sequence[tuple[Taint, ...]]) -> None:
        self._kinds: dict[tuple[Taint, ...], int] = {}
        self._taint_kind = np.array([self._kind(own) for own in taints], np.int64)
        self._n_tainted = sum(map(bool, taints))

    def _kind(self, taints: tuple[Taint, ...]) -> int:
        return self._kinds.setdefault(taints, len(self._kinds))

    @property
    def tainted(self) -> bool:
        """Whether any node has a taint."""
        return self._n_tainted > 0

    def emptied(self) -> "NodeTaints":
        """The same nodes without taints."""
        return NodeTaints([()] * len(self._taint_kind))

    def change(self, node: int, taints: tuple[Taint, ...]) -> None:
        """*node* has these taints from now on."""
        self._n_tainted += bool(taints) - bool(self._taints_of(node))
        self._taint_kind[node] = self._kind(taints)
        if len(self._kinds) > 2 * len(self._taint_kind) + SPARE_ROWS:
            self._forget_kinds()

    def _forget_kinds(self) -> None:
        """Keep the kinds of taints that some node has."""
        kinds = list(self._kinds)
        left, codes = np.unique(self._taint_kind, return_inverse=True)
        self._kinds = {kinds[old]: new for new, old in enumerate(left.tolist())}
        self._taint_kind = codes.astype(np.int64)

    def disliked(self, tolerations: Sequence[Toleration]) -> Ints:
        """How many taints of each node ask such a pod to go elsewhere."""
        counts = [_disliked(kind, tolerations) for kind in self._kinds]
        return np.array(counts, np.int64)[self._taint_kind]

    def tolerated(self, tolerations: Sequence[Toleration]) -> Flags:
        """The nodes whose taints keep no such pod away."""
        fine = [not _repelling(kind, tolerations) for kind in self._kinds]
        return np.array(fine, np.bool_)[self._taint_kind]

    def worst_taint(self, node: int, tolerations: Sequence[Toleration]) -> Taint:
        """The first taint of *node* that keeps such a pod away."""
        return _repelling(self._taints_of(node), tolerations)[0]

    def _taints_of(self, node: int) -> tuple[Taint, ...]:
        return list(self._kinds)[self._taint_kind.item(node)]


class NodeTable:
    """Labels, taints and resources of every node, in the order of the cluster.

    ``version`` moves when a node changes.
    """

    def __init__(
        self,
        labels: Sequence[Mapping[str, str]],
        taints: Sequence[tuple[Taint, ...]],
        resources: Sequence[Mapping[str, int]],
        lists_all: Sequence[bool] = (),
    ) -> None:
        self.version = 0
        self.labels = NodeLabels(labels)
        self.taints = NodeTaints(taints)
        self.resources = NodeResources(resources, lists_all)

    def emptied(self) -> "NodeTable":
        """The same nodes without taints, and with all of their resources left."""
        found = copy(self)
        found.taints = self.taints.emptied()
        found.resources = self.resources.emptied()
        return found

    def change(
        self,
        node: int,
        labels: Mapping[str, str],
        taints: tuple[Taint, ...],
        resources: Mapping[str, int],
        *,
        lists_all: bool = False,
    ) -> None:
        """*node* has these labels, taints and resources from now on."""
        self.version += 1
        self.labels.change(node, labels)
        self.taints.change(node, taints)
        self.resources.change(node, resources, lists_all=lists_all)
