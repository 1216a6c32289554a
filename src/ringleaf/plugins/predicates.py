"""Kubernetes' own conditions on nodes and neighbours.

Node selectors, node affinity, taints, cordons and resources are looked at wherever
nodes are (``ringleaf.policies.fit``), from the demand of the pods; this plugin says
which of them count. Ports, pod affinity and hard spreading constraints it answers
itself, from the index of neighbours.

Volumes and resource claims are not looked at: nodes do not tell of them.

Source: Volcano ``pkg/scheduler/plugins/predicates``, which wraps Kubernetes' filters.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
from msgspec.structs import asdict, replace

from ringleaf.config.arguments import Value
from ringleaf.framework.plugin import Plugin, PluginSettings
from ringleaf.framework.state import SchedulerState
from ringleaf.model.arrays import Flags
from ringleaf.model.demand import Demand, Match, Toleration
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


class PredicateSettings(
    PluginSettings,
    frozen=True,
    rename={
        "node_affinity": "predicate.NodeAffinityEnable",
        "taints": "predicate.TaintTolerationEnable",
        "ports": "predicate.NodePortsEnable",
        "pod_affinity": "predicate.PodAffinityEnable",
        "spread": "predicate.PodTopologySpreadEnable",
    },
):
    """Which conditions count; as in Kubernetes all of them, unless switched off."""

    node_affinity: bool = True
    taints: bool = True
    ports: bool = True
    pod_affinity: bool = True
    spread: bool = True


FILTERS: Final = {
    "node_affinity": without_node_affinity,
    "taints": without_taints,
    "ports": without_ports,
    "pod_affinity": without_pod_affinity,
    "spread": without_spread,
}
"""Setting → what is left of a demand when it is false."""


def without_predicates(demand: Demand) -> Demand:
    """What counts of *demand* where the plugin is not configured: resources.

    Preferences stay; they are another plugin's.
    """
    for strip in FILTERS.values():
        demand = strip(demand)
    return demand


RULES: Final = (
    ("ports", Neighbours.port_taken),
    ("pod_affinity", Neighbours.affinity_unmet),
    ("pod_affinity", Neighbours.repelled),
    ("spread", Neighbours.skew_exceeded),
)
"""Setting, and the nodes it refuses."""


class Predicates(Plugin):
    """Keeps pods off nodes whose ports, pods or labels do not suit them."""

    Settings: ClassVar[type[PluginSettings]] = PredicateSettings
    per_role: ClassVar[frozenset[str]] = frozenset({"Predicate"})
    settings: PredicateSettings

    def __init__(self, view: SchedulerState, arguments: Mapping[str, Value]) -> None:
        super().__init__(view, arguments)
        counts = asdict(self.settings)
        self._rules = [rule for key, rule in RULES if counts[key]]
        self._stripped = [strip for key, strip in FILTERS.items() if not counts[key]]

    def effective_demand(self, demand: Demand) -> Demand:
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
