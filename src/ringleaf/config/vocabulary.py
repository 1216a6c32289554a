"""What a configuration may say: actions, votes, flags, plugins.

Names, defaults and spellings are Volcano's, so that its configurations load as they
are; docs/configuration.md is made from these tables.

Source: Volcano ``pkg/scheduler/conf``, ``plugins/*``, ``actions/*``.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from ringleaf.config.arguments import (
    Action,
    Argument,
    ArgumentKind,
    Flag,
    Question,
    Voter,
    idle,
    keyed,
    named,
    switch,
    whole,
)

_CACHE: Final = replace(
    switch(
        "predicateErrorCacheEnable",
        "Whether a node that refused a pod is skipped for identical pods in a cycle.",
        default=True,
    ),
    idle="identical pods are always judged together",
)
_EVICTING: Final = (
    whole(
        "min-run-seconds",
        0,
        "Seconds that a job must have run before its pods may be evicted.",
    ),
    switch(
        "preview",
        "Whether victims are only reported, not evicted.",
        default=False,
    ),
)

ACTIONS: Final = named(
    Action("enqueue", "Admits pending jobs, queue by queue, while no plugin objects.",
           keyed()),
    Action("allocate", "Places jobs whose pods request something, all pods or none.",
           keyed(
               _CACHE,
               Argument("reservation", ArgumentKind.CHOICE, "fair",
                        "Which overdue jobs get a reservation: one of each queue "
                        "(fair), one in the cluster (strict), none (off).",
                        choices=("off", "fair", "strict")),
               whole("reservation-after-seconds", 300,
                      "Seconds of waiting after which a job is overdue."),
               Argument("reservation-idle-budget", ArgumentKind.NUMBER, 0.05,
                        "Share of the chip-time of the last 24 hours that reservations "
                        "may keep idle; 1 is no limit.", low=0, high=1),
               switch("learn-run-times",
                       "Whether running times that jobs do not state are predicted "
                       "from similar jobs that ended.", default=False),
           )),
    Action("backfill", "Places pods that request nothing.",
           keyed(_CACHE)),
    Action("preempt", "Evicts pods of the same queue for a starving job that outranks "
                      "them.",
           keyed(
               _CACHE,
               *_EVICTING,
               *idle("evictions are always simulated under all rules",
                   switch("enableTopologyAwarePreemption",
                           "Whether evictions are simulated under pod affinity and "
                           "spreading; the network does not count.", default=False),
                   whole("topologyAwarePreemptWorkerNum", 16,
                          "Number of workers that simulate evictions.", low=1),
               ),
               *idle("all nodes are candidates",
                   whole("minCandidateNodesPercentage", 10,
                          "Smallest share of the nodes to try, in percent.", high=100),
                   whole("minCandidateNodesAbsolute", 1,
                          "Smallest number of nodes to try."),
                   whole("maxCandidateNodesAbsolute", 100,
                          "Largest number of nodes to try."),
               ),
           )),
    Action("reclaim", "Evicts pods of queues above their fair share for a starving job "
                      "of a queue below its own.",
           keyed(_CACHE, *_EVICTING)),
    Action("rearrange", "Moves running jobs that are movable, so that a pending job "
                        "starts.",
           keyed(
               whole("moves-per-hour", 10,
                     "Most jobs that are moved in an hour."),
               Argument("least-benefit", ArgumentKind.NUMBER, 10,
                        "How many times its cost a rearrangement must gain; 1 is at "
                        "least its cost.", low=1),
               whole("wait-seconds", 300,
                     "Seconds that a job must have waited before jobs are moved for "
                     "it."),
               whole("look-every-seconds", 60,
                     "Seconds between two searches for moves.", low=1),
               switch("preview",
                      "Whether moves are only reported, not carried out.",
                      default=False),
           )),
)  # fmt: skip
"""The actions, in the order in which they are usually run."""

REFUSED_ACTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gangpreempt": "'preempt' evicts inside a queue",
        "gangreclaim": "'reclaim' evicts across queues",
        "shuffle": "remove it: only Volcano's plugins rescheduling and tdm use it",
    }
)
"""Actions of Volcano that Ringleaf does not have, and what to do.

They are refused rather than accepted without effect: users count on an eviction that
they configure.
"""

_FIRST: Final = "the first plugin with a preference decides"
_ALL: Final = "every plugin must agree"
_ANY: Final = "one plugin suffices"
_VICTIMS: Final = (
    "victims that a tier's plugins agree on; the first tier that names some decides"
)
_PERMIT: Final = "one objection refuses; a permit ends the round after its tier"
_TIER: Final = "all plugins of the first tier that has an opinion must agree"
_SUM: Final = "scores are added up"
_TOLD: Final = "every plugin is notified"
_ANSWER: Final = "the first plugin that answers"

VOTES: Final = named(
    Question("JobOrder", "which job is next", _FIRST),
    Question("QueueOrder", "which queue is next", _FIRST),
    Question("TaskOrder", "which pod of a job is next", _FIRST),
    Question("SubJobOrder", "which group of pods is next", _FIRST),
    Question("ClusterOrder", "which cluster is next", _FIRST),
    Question("JobValid", "whether a job can be placed at all", _ALL),
    Question("PrePredicate", "whether to look for a node for this pod", _ALL),
    Question("Predicate", "whether a node may take this pod", _ALL),
    Question("JobReady", "whether enough pods have a place", _ALL),
    Question("SubJobReady", "whether enough pods of a group have a place", _ALL),
    Question("Allocatable", "whether the queue may take this pod", _ALL),
    Question("Preemptive", "whether the queue may evict for this pod", _ALL),
    Question("Overused", "whether the queue uses its fair share or more", _ANY),
    Question("Victim", "which pods to evict, for no other pod", _ANY),
    Question("Preemptable", "which pods to evict in the same queue", _VICTIMS),
    Question("Reclaimable", "which pods to evict in other queues", _VICTIMS),
    Question("JobPipelined", "whether enough pods have or await a place", _PERMIT),
    Question("SubJobPipelined", "the same for a group of pods", _PERMIT),
    Question("JobEnqueueable", "whether to admit a job", _PERMIT),
    Question("JobEnqueued", "that a job was admitted", _TOLD),
    Question("JobStarving", "whether a job may evict", _TIER),
    Question("NodeOrder", "how well a node suits a pod", _SUM),
    Question("HyperNodeOrder", "how well a part of the network suits a job", _SUM),
    Question("BestNode", "which node is taken", _ANSWER),
    Question(
        "HyperNodeGradient", "in which order parts of the network are tried", _ANSWER
    ),
    Question("TargetJob", "for which job nodes are reserved", _ANSWER),
    Question("ReservedNodes", "which nodes are reserved", _ANSWER),
)

FLAGS: Final[Mapping[str, Flag]] = MappingProxyType(
    {
        key: Flag(key, default, tuple(votes.split()))
        for key, default, votes in (
            ("enableJobOrder", True, "JobOrder"),
            ("enableHierarchy", False, ""),
            ("enableJobReady", True, "JobReady"),
            ("enableJobPipelined", True, "JobPipelined"),
            ("enableTaskOrder", True, "TaskOrder"),
            ("enablePreemptable", True, "Preemptable"),
            ("enableReclaimable", True, "Reclaimable"),
            ("enablePreemptive", True, "Preemptive"),
            ("enableQueueOrder", True, "QueueOrder"),
            ("enabledClusterOrder", False, "ClusterOrder"),
            ("enablePredicate", True, "Predicate PrePredicate"),
            ("enableBestNode", True, "BestNode"),
            ("enableNodeOrder", True, "NodeOrder"),
            ("enableTargetJob", True, "TargetJob"),
            ("enableReservedNodes", True, "ReservedNodes"),
            ("enableJobEnqueued", True, "JobEnqueueable JobEnqueued"),
            ("enabledVictim", True, "Victim"),
            ("enableJobStarving", True, "JobStarving"),
            ("enabledOverused", True, "Overused"),
            ("enabledAllocatable", True, "Allocatable"),
            ("enabledHyperNodeOrder", True, "HyperNodeOrder"),
            ("enabledSubJobReady", True, "SubJobReady"),
            ("enabledSubJobPipelined", True, "SubJobPipelined"),
            ("enabledSubJobOrder", True, "SubJobOrder"),
            ("enabledHyperNodeGradient", True, "HyperNodeGradient"),
        )
    }
)
"""JobValid has no flag; ``enableHierarchy`` is not about a vote but about drf."""

HIERARCHY: Final = "enableHierarchy"
DEFAULT_FLAGS: Final = frozenset(flag.key for flag in FLAGS.values() if flag.default)
FLAG_OF: Final = {vote: flag.key for flag in FLAGS.values() for vote in flag.votes}


def _filters(*names: str) -> Iterator[Argument]:
    for name, what in (each.split(": ") for each in names):
        meaning = f"Whether {what} are checked."
        yield switch(f"predicate.{name}Enable", meaning, default=True)


def _weights(*rows: tuple[str, int, str]) -> Iterator[Argument]:
    for name, default, what in rows:
        yield whole(f"{name}.weight", default, f"Weight of {what}; 0 leaves it out.")


KNOWN_PLUGINS: Final = named(
    Voter("priority", "Jobs of higher priority come first, and may evict others.",
           ("JobOrder", "Preemptable", "JobStarving"), keyed()),
    Voter("gang", "Starts all required pods of a job, or none.",
           ("JobValid", "JobOrder", "JobReady", "JobPipelined", "Preemptable",
            "Reclaimable", "JobStarving"), keyed()),
    Voter("conformance", "Keeps system pods from being evicted.",
           ("Preemptable", "Reclaimable"), keyed()),
    Voter("affinity", "Places pods on chips that are wired together, gangs under "
                       "leaf switches, blocks in SuperPoDs.",
           ("JobValid", "Predicate", "NodeOrder"),
           keyed(
               switch("sum-scores",
                       "Whether affinity is added to the scores of other plugins, as "
                       "in Volcano, instead of coming first.", default=False),
           )),
    Voter("drf", "Orders jobs by their dominant share, the smallest first.",
           ("JobOrder", "Preemptable"), keyed()),
    Voter("overcommit", "Admits jobs up to a multiple of the cluster's resources.",
           ("JobEnqueueable",),
           keyed(
               Argument("overcommit-factor", ArgumentKind.NUMBER, 1.2,
                        "Multiple of the cluster's resources that may be admitted.", 1),
               Argument("overcommit-factor.<resource>", ArgumentKind.NUMBER, None,
                        "Multiple of one resource.", 1, without="overcommit-factor"),
           )),
    Voter("predicates", "Filters nodes as Kubernetes does: selectors, taints, ports, "
                        "pod affinity.",
           ("Predicate",),
           keyed(
               *_filters(
                   "NodeAffinity: node selectors and node affinity",
                   "NodePorts: host ports",
                   "TaintToleration: taints",
                   "PodAffinity: affinity and anti-affinity to other pods",
                   "PodTopologySpread: spreading constraints",
               ),
               *idle("identical pods are always judged together",
                   switch("predicate.CacheEnable",
                           "Whether identical pods share a verdict.", default=False),
               ),
               *idle("volumes are not considered",
                   *_filters(
                       "NodeVolumeLimits: limits on the volumes of a node",
                       "VolumeZone: zones of volumes",
                       "VolumeBinding: volumes that are not bound yet",
                   ),
                   whole("volumebinding.weight", 1, "Weight of how well volumes fit."),
                   whole("volumebinding.bindTimeoutSeconds", 600,
                          "Seconds to wait for a volume to be bound."),
                   Argument("volumebinding.shape", ArgumentKind.POINTS, None,
                            "Points of a curve: the score by utilization.",
                            without="Kubernetes' own"),
               ),
               *idle("resource claims are not considered",
                   *_filters("DynamicResourceAllocation: resource claims"),
                   whole("dynamicresources.filterTimeoutSeconds", 10,
                          "Seconds that a search for devices may take; 0 is no limit."),
               ),
           )),
    Voter("proportion", "Shares the cluster between queues by weight, within guarantee "
                         "and capability.",
           ("QueueOrder", "Overused", "Allocatable", "Preemptive", "JobEnqueueable",
            "Reclaimable"), keyed()),
    Voter("nodeorder", "Scores nodes as Kubernetes does: balance, affinity, spreading.",
           ("NodeOrder",),
           keyed(
               *_weights(
                   ("leastrequested", 1, "nodes with the most free resources"),
                   ("mostrequested", 0, "nodes with the least free resources"),
                   ("nodeaffinity", 2, "preferred node affinity"),
                   ("podaffinity", 2, "preferred pod affinity"),
                   ("balancedresource", 1, "even use of CPU and memory"),
                   ("tainttoleration", 3, "nodes with few taints to tolerate"),
                   ("podtopologyspread", 2, "spreading constraints"),
               ),
               *idle("images on nodes are not considered",
                   *_weights(("imagelocality", 1, "nodes that have the images"))),
           )),
    Voter("binpack", "Fills nodes in use before empty ones.",
           ("NodeOrder",),
           keyed(
               whole("binpack.weight", 1,
                      "Weight of the whole plugin; 0 turns it off."),
               whole("binpack.cpu", 1, "Weight of CPU."),
               whole("binpack.memory", 1, "Weight of memory."),
               Argument("binpack.resources", ArgumentKind.NAMES, (),
                        "Further resources to pack by; chips count only if listed."),
               Argument("binpack.resources.<resource>", ArgumentKind.WHOLE, None,
                        "Weight of one of these resources.", 0, without="1"),
           )),
)  # fmt: skip
"""The plugins; each votes only where its flags let it."""

AFFINITY: Final = "affinity"
AFFINITY_ALIAS: Final = re.compile(r"topology910|npu|volcano-npu(_v\S+)?")
HIERARCHY_VOTES: Final = ("QueueOrder", "Reclaimable")
"""Where drf votes too once ``enableHierarchy`` is true."""

REFUSED_PLUGINS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "capacity": "'proportion' shares the cluster between queues",
        "cdp": "remove it: pods are not kept from eviction for a time",
        "deviceshare": "remove it: 'affinity' assigns whole chips",
        "extender": "remove it: HTTP extenders are not called",
        "network-topology-aware": "'affinity' knows leaf switches and SuperPoDs",
        "nodegroup": "remove it: use node selectors to keep queues apart",
        "numaaware": "remove it: the kubelet assigns the cores of a node",
        "pdb": "remove it: evictions always respect disruption budgets",
        "rescheduling": "remove it: running pods are not moved for balance",
        "resource-strategy-fit": "'binpack' and 'nodeorder' weigh resources",
        "resourcequota": "'proportion' limits queues by their capability",
        "sla": "remove it: wait times do not change the order",
        "task-topology": "remove it: 'affinity' places the pods of a job",
        "tdm": "remove it: nodes are not shared by time of day",
        "usage": "remove it: measured load is not read",
    }
)
"""Plugins of Volcano that Ringleaf does not have, and what to do."""

DEFAULT_ACTIONS: Final = ("enqueue", "allocate", "backfill")
DEFAULT_TIERS: Final = (
    ("priority", "gang", "conformance", "affinity"),
    ("drf", "predicates", "proportion", "nodeorder", "binpack"),
)
"""What counts without a file, and for what a file leaves out (D34)."""
