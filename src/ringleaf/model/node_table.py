"""What nodes have besides chips: labels, taints, and resources that pods use up."""

from collections.abc import Mapping, Sequence
from copy import copy

from ringleaf.model.demand import Taint
from ringleaf.model.node_labels import NodeLabels
from ringleaf.model.node_resources import NodeResources
from ringleaf.model.node_taints import NodeTaints


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
