"""Kubernetes' own conditions on nodes and neighbours.

Node selectors, node affinity, taints, cordons and resources are looked at wherever
nodes are (``ringleaf.policies.fit``), from the demand of the pods; this plugin says
which of them count. Ports, pod affinity and hard spreading constraints it answers
itself, from the index of neighbours.

Volumes and resource claims are not looked at: nodes do not tell of them.

Source: Volcano ``pkg/scheduler/plugins/predicates``, which wraps Kubernetes' filters.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec.structs import replace

from ringleaf.framework.plugin import Plugin
from ringleaf.framework.view import View
from ringleaf.framework.vocabulary import Value
from ringleaf.model.demand import Demand, Match, Toleration
from ringleaf.model.fleet import Flags
from ringleaf.model.job import Job, Role
from ringleaf.model.neighbours import Neighbours, neighbours_of

EVERY_TAINT: Final = (Toleration(None, Match.EXISTS),)


def without_node_affinity(demand: Demand) -> Demand:
    """The same pods on any node, whatever its labels."""
    return replace(demand, required=(), terms=())


def without_taints(demand: Demand) -> Demand:
    """The same pods with every taint tolerated."""
    return replace(demand, tolerations=EVERY_TAINT)


def without_ports(demand: Demand) -> Demand:
    """The same pods without ports of the node."""
    return replace(demand, ports=())


def without_pod_affinity(demand: Demand) -> Demand:
    """The same pods with no neighbour required or forbidden."""
    return replace(demand, near=(), apart=())


def without_spread(demand: Demand) -> Demand:
    """The same pods spread only as far as it suits."""
    soft = tuple(each for each in demand.spread if not each.hard)
    return replace(demand, spread=soft)


FILTERS: Final = {
    "predicate.NodeAffinityEnable": without_node_affinity,
    "predicate.TaintTolerationEnable": without_taints,
    "predicate.NodePortsEnable": without_ports,
    "predicate.PodAffinityEnable": without_pod_affinity,
    "predicate.PodTopologySpreadEnable": without_spread,
}
"""Argument → what is left of a demand when it is false."""


def without_predicates(demand: Demand) -> Demand:
    """What counts of *demand* where the plugin is not configured: resources.

    Preferences stay; they are another plugin's.
    """
    for strip in FILTERS.values():
        demand = strip(demand)
    return demand


RULES: Final = (
    ("predicate.NodePortsEnable", Neighbours.port_taken),
    ("predicate.PodAffinityEnable", Neighbours.lonely),
    ("predicate.PodAffinityEnable", Neighbours.repelled),
    ("predicate.PodTopologySpreadEnable", Neighbours.lopsided),
)
"""Argument, and the nodes it refuses."""


class Predicates(Plugin):
    """Keeps pods off nodes whose ports, pods or labels do not suit them."""

    def __init__(self, view: View, arguments: Mapping[str, Value]) -> None:
        super().__init__(view, arguments)
        self._rules = [rule for key, rule in RULES if self._counts(key)]
        self._stripped = [
            strip for key, strip in FILTERS.items() if not self._counts(key)
        ]

    def _counts(self, key: str) -> bool:
        return self.values.get(key) is not False

    def effective(self, demand: Demand) -> Demand:
        """What counts of *demand*: all but what the configuration switches off."""
        for strip in self._stripped:
            demand = strip(demand)
        return demand

    def predicate(self, job: Job, role: Role) -> Flags | None:
        """The nodes whose ports and pods suit a pod of *role*; None where all do."""
        del job
        index = neighbours_of(self.view.cluster)
        if index.is_indifferent(role.demand):
            return None
        refused = [
            flags
            for rule in self._rules
            if (flags := rule(index, role.demand)) is not None
        ]
        return ~np.logical_or.reduce(refused) if refused else None
