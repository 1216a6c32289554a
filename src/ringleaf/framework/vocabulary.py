"""What a configuration may say: actions, votes, flags, plugins, arguments.

Names, defaults and spellings are Volcano's, so that its configurations load as they
are; docs/configuration.md is made from these tables.

Source: Volcano ``pkg/scheduler/conf``, ``plugins/*``, ``actions/*``; the vendor's
``plugin/factory.go`` for init-params.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.fault import Mode as FaultMode
from ringleaf.model.settings import DefaultAffinity, JobRequests, LeafChoice

Value = bool | int | float | str | tuple[Any, ...] | None
"""What an argument can be once it is read."""


MAX_NUMBER: Final = 1_000_000
"""The greatest number that any argument takes."""


class Kind(StrEnum):
    """What an argument wants; the value is the words for people."""

    WHOLE = "a whole number"
    NUMBER = "a number"
    SWITCH = "true or false"
    CHOICE = "one of"
    TEXT = "text"
    NAMES = "names, separated by commas"
    POINTS = "a list of {utilization, score}"


class Argument(Struct, frozen=True):
    """One argument; a key that ends in ``<resource>`` stands for any resource.

    Args:
        key: As it is written.
        kind: What it wants.
        default: What counts without it.
        meaning: One sentence.
        low: The least legal number.
        high: The greatest legal number.
        choices: The legal texts.
        without: What counts without it, in words, where the default is None.
        idle: Why Ringleaf does not heed it, if so; setting it is then a warning.

    """

    key: str
    kind: Kind
    default: Value
    meaning: str
    low: int = 0
    high: int = MAX_NUMBER
    choices: tuple[str, ...] = ()
    without: str = "none"
    idle: str = ""

    @property
    def has_effect(self) -> bool:
        """Whether Ringleaf heeds it."""
        return not self.idle

    @property
    def wanted(self) -> str:
        """What it wants, for messages.

        >>> ACTIONS["preempt"].arguments["minCandidateNodesPercentage"].wanted
        'a whole number from 0 to 100'
        """
        if self.choices:
            return " or ".join(f'"{choice}"' for choice in self.choices)
        if self.kind in (Kind.WHOLE, Kind.NUMBER):
            return f"{self.kind} from {self.low} to {self.high}"
        return self.kind


class Action(Struct, frozen=True):
    """One verb of the cycle."""

    name: str
    meaning: str
    arguments: Mapping[str, Argument]


class Question(Struct, frozen=True):
    """What plugins vote on, and how their answers combine."""

    name: str
    meaning: str
    combined: str


class Flag(Struct, frozen=True):
    """A switch of a plugin's votes; Volcano spells some *enable* and some *enabled*."""

    key: str
    default: bool
    votes: tuple[str, ...]


class Voter(Struct, frozen=True):
    """A plugin as it is described: where it votes, which arguments it takes."""

    name: str
    meaning: str
    votes: tuple[str, ...]
    arguments: Mapping[str, Argument]


_Row = TypeVar("_Row", Action, Question, Voter)


def _keyed(*arguments: Argument) -> Mapping[str, Argument]:
    return MappingProxyType({argument.key: argument for argument in arguments})


def _named(*rows: _Row) -> Mapping[str, _Row]:
    return MappingProxyType({row.name: row for row in rows})


def _whole(
    key: str, default: int | None, meaning: str, low: int = 0, high: int = MAX_NUMBER
) -> Argument:
    return Argument(key, Kind.WHOLE, default, meaning, low, high)


def _switch(key: str, meaning: str, *, default: bool) -> Argument:
    return Argument(key, Kind.SWITCH, default, meaning)


def _idle(why: str, *arguments: Argument) -> Iterator[Argument]:
    """The same arguments, accepted without effect."""
    return (replace(argument, idle=why) for argument in arguments)


_CACHE: Final = replace(
    _switch(
        "predicateErrorCacheEnable",
        "Whether a refusal of a node counts for all pods alike until the cycle ends.",
        default=True,
    ),
    idle="pods that are alike are always judged together",
)
_EVICTING: Final = (
    _whole(
        "min-run-seconds",
        0,
        "Seconds that a job runs at least before its pods may be evicted.",
    ),
    _switch(
        "preview",
        "Whether victims are only reported, and none is evicted.",
        default=False,
    ),
)

ACTIONS: Final = _named(
    Action("enqueue", "Admits pending jobs, queue by queue, while no plugin objects.",
           _keyed()),
    Action("allocate", "Places jobs whose pods request something, all pods or none.",
           _keyed(
               _CACHE,
               Argument("reservation", Kind.CHOICE, "fair",
                        "Which jobs that have waited too long get a reservation: one "
                        "of each queue (fair), one in all (strict), none (off).",
                        choices=("off", "fair", "strict")),
               _whole("reservation-after-seconds", 300,
                      "Seconds of waiting that are too long."),
           )),
    Action("backfill", "Places pods that request nothing.",
           _keyed(_CACHE)),
    Action("preempt", "Evicts pods of the same queue for a starving job that outranks "
                      "them.",
           _keyed(
               _CACHE,
               *_EVICTING,
               *_idle("evictions are always tried out against all rules",
                   _switch("enableTopologyAwarePreemption",
                           "Whether evictions are tried out against pod affinity and "
                           "spreading; it knows no network.", default=False),
                   _whole("topologyAwarePreemptWorkerNum", 16,
                          "Workers that try evictions out at once.", low=1),
               ),
               *_idle("all nodes are looked at",
                   _whole("minCandidateNodesPercentage", 10,
                          "Share of the nodes to try at least.", high=100),
                   _whole("minCandidateNodesAbsolute", 1, "Nodes to try at least."),
                   _whole("maxCandidateNodesAbsolute", 100, "Nodes to try at most."),
               ),
           )),
    Action("reclaim", "Evicts pods of queues above their share for a starving job of a "
                      "queue below its own.",
           _keyed(_CACHE, *_EVICTING)),
)  # fmt: skip
"""The actions, in the order in which they are usually run."""

REFUSED_ACTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gangpreempt": "'preempt' evicts inside a queue",
        "gangreclaim": "'reclaim' evicts across queues",
        "shuffle": "leave it out: only Volcano's plugins rescheduling and tdm feed it",
    }
)
"""Actions of Volcano that Ringleaf does not have, and what to do.

They are refused rather than accepted without effect: who configures an eviction counts
on it.
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
_TOLD: Final = "every plugin is told"
_ANSWER: Final = "the first plugin that answers"

VOTES: Final = _named(
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
    Question("Overused", "whether the queue has more than its share", _ANY),
    Question("Victim", "what to evict without a successor", _ANY),
    Question("Preemptable", "what to evict in the same queue", _VICTIMS),
    Question("Reclaimable", "what to evict in other queues", _VICTIMS),
    Question("JobPipelined", "whether enough pods have or await a place", _PERMIT),
    Question("SubJobPipelined", "the same for a group of pods", _PERMIT),
    Question("JobEnqueueable", "whether to admit a job", _PERMIT),
    Question("JobEnqueued", "that a job was admitted", _TOLD),
    Question("JobStarving", "whether a job may evict", _TIER),
    Question("NodeOrder", "how well a node suits", _SUM),
    Question("HyperNodeOrder", "how well a part of the network suits", _SUM),
    Question("BestNode", "which of the nodes is taken", _ANSWER),
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
        meaning = f"Whether {what} count."
        yield _switch(f"predicate.{name}Enable", meaning, default=True)


def _weights(*rows: tuple[str, int, str]) -> Iterator[Argument]:
    for name, default, what in rows:
        yield _whole(f"{name}.weight", default, f"Weight of {what}; 0 leaves it out.")


PLUGINS: Final = _named(
    Voter("priority", "Higher priority first; it may evict lower priority.",
           ("JobOrder", "Preemptable", "JobStarving"), _keyed()),
    Voter("gang", "All pods of a job or none.",
           ("JobValid", "JobOrder", "JobReady", "JobPipelined", "Preemptable",
            "Reclaimable", "JobStarving"), _keyed()),
    Voter("conformance", "Pods of the system are never evicted.",
           ("Preemptable", "Reclaimable"), _keyed()),
    Voter("affinity", "Chips that are wired together, nodes under one leaf, blocks in "
                       "one SuperPoD.",
           ("JobValid", "Predicate", "NodeOrder"),
           _keyed(
               _switch("sum-scores",
                       "Whether the affinity is added to the scores of other plugins, "
                       "as in Volcano, instead of counting first.", default=False),
           )),
    Voter("drf", "The job with the smallest dominant share first.",
           ("JobOrder", "Preemptable"), _keyed()),
    Voter("overcommit", "Admits jobs up to a multiple of what the cluster has.",
           ("JobEnqueueable",),
           _keyed(
               Argument("overcommit-factor", Kind.NUMBER, 1.2,
                        "Multiple of the cluster that may be admitted.", 1),
               Argument("overcommit-factor.<resource>", Kind.NUMBER, None,
                        "The same for one resource.", 1, without="overcommit-factor"),
           )),
    Voter("predicates", "Kubernetes' own conditions: selectors, taints, ports, "
                        "neighbours.",
           ("Predicate",),
           _keyed(
               *_filters(
                   "NodeAffinity: node selectors and node affinity",
                   "NodePorts: host ports",
                   "TaintToleration: taints",
                   "PodAffinity: affinity and anti-affinity to other pods",
                   "PodTopologySpread: spreading constraints",
               ),
               *_idle("pods that are alike are always judged together",
                   _switch("predicate.CacheEnable",
                           "Whether a verdict counts for pods alike.", default=False),
               ),
               *_idle("volumes are not looked at",
                   *_filters(
                       "NodeVolumeLimits: limits on the volumes of a node",
                       "VolumeZone: zones of volumes",
                       "VolumeBinding: volumes that are not bound yet",
                   ),
                   _whole("volumebinding.weight", 1, "Weight of the fit of volumes."),
                   _whole("volumebinding.bindTimeoutSeconds", 600,
                          "Seconds to wait for a volume to be bound."),
                   Argument("volumebinding.shape", Kind.POINTS, None,
                            "How full volumes score, point by point.",
                            without="Kubernetes' own"),
               ),
               *_idle("resource claims are not looked at",
                   *_filters("DynamicResourceAllocation: resource claims"),
                   _whole("dynamicresources.filterTimeoutSeconds", 10,
                          "Seconds that looking for devices may take; 0 is no limit."),
               ),
           )),
    Voter("proportion", "Queues share the cluster by weight, within guarantee and "
                         "capability.",
           ("QueueOrder", "Overused", "Allocatable", "Preemptive", "JobEnqueueable",
            "Reclaimable"), _keyed()),
    Voter("nodeorder", "Kubernetes' own preferences: balance, affinity, spreading.",
           ("NodeOrder",),
           _keyed(
               *_weights(
                   ("leastrequested", 1, "nodes with the most left"),
                   ("mostrequested", 0, "nodes with the least left"),
                   ("nodeaffinity", 2, "preferred node affinity"),
                   ("podaffinity", 2, "preferred affinity to other pods"),
                   ("balancedresource", 1, "even use of CPU and memory"),
                   ("tainttoleration", 3, "nodes with few taints to tolerate"),
                   ("podtopologyspread", 2, "spreading constraints"),
               ),
               *_idle("nodes do not tell which images they have",
                   *_weights(("imagelocality", 1, "nodes that have the images"))),
           )),
    Voter("binpack", "Fills nodes that are in use before others.",
           ("NodeOrder",),
           _keyed(
               _whole("binpack.weight", 1,
                      "Weight of the whole plugin; 0 turns it off."),
               _whole("binpack.cpu", 1, "Weight of CPU."),
               _whole("binpack.memory", 1, "Weight of memory."),
               Argument("binpack.resources", Kind.NAMES, (),
                        "Further resources to pack by; chips only if they are listed."),
               Argument("binpack.resources.<resource>", Kind.WHOLE, None,
                        "Weight of one of them.", 0, without="1"),
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
        "cdp": "leave it out: pods are not kept from eviction for a time",
        "deviceshare": "leave it out: chips are given whole, by 'affinity'",
        "extender": "leave it out: no other scheduler is asked",
        "network-topology-aware": "'affinity' knows leaf switches and SuperPoDs",
        "nodegroup": "leave it out: node selectors keep queues apart",
        "numaaware": "leave it out: cores of a node are the kubelet's business",
        "pdb": "leave it out: disruption budgets are not read",
        "rescheduling": "leave it out: running pods are not moved for balance",
        "resource-strategy-fit": "'binpack' and 'nodeorder' weigh resources",
        "resourcequota": "'proportion' limits queues by their capability",
        "sla": "leave it out: waiting times do not change the order",
        "task-topology": "leave it out: pods of a job are placed by 'affinity'",
        "tdm": "leave it out: nodes are not shared by time of day",
        "usage": "leave it out: measured load is not read",
    }
)
"""Plugins of Volcano that Ringleaf does not have, and what to do."""


PARAMETERS: Final = _keyed(
    Argument("nslb-version", Kind.CHOICE, "1.0", "Version of switch affinity.",
             choices=("1.0", "2.0")),
    _whole("shared-tor-num", 2,
           "Shared leaves that one foundation job may use in 2.0.", low=1, high=2),
    Argument("nodes-per-leaf", Kind.WHOLE, None, "Nodes that one leaf connects.", 1,
             without="the size of the largest leaf"),
    Argument("leaf-choice", Kind.CHOICE, LeafChoice.COMPACT.value,
             "Which leaves a job takes in 1.0 (D36).",
             choices=tuple(LeafChoice)),
    _switch("share-common-leaves",
            "Whether common jobs may cross leaves that carry common jobs only (D12).",
            default=False),
    _whole("super-pod-size", 48, "Nodes of a SuperPoD.", low=1),
    _whole("reserve-nodes", 2, "Nodes of a SuperPoD that are kept back for repairs."),
    Argument("job-requests", Kind.CHOICE, JobRequests.STRICT.value,
             "How atlas-800-9000 reads the rule for jobs of several pods (D1).",
             choices=tuple(JobRequests)),
    Argument("default-tor-affinity", Kind.CHOICE, DefaultAffinity.NONE.value,
             "What jobs of several nodes without the label tor-affinity count as "
             "(D38).",
             choices=tuple(DefaultAffinity)),
    Argument("default-fault-scheduling", Kind.CHOICE, FaultMode.OFF.value,
             "What counts for jobs without the label fault-scheduling (D39).",
             choices=(FaultMode.OFF, FaultMode.GRACE, FaultMode.FORCE)),
    _switch("useClusterInfoManager",
            "Whether reports of the cluster daemon count first.", default=True),
    _whole("grace-over-time", 900,
           "Seconds that pods of a faulty job have to end by themselves.",
           low=2, high=3600),
    _whole("superpod-escalation-seconds", 6,
           "Seconds that faulty pods find no place before their logical SuperPoD is "
           "deleted."),
    _whole("job-escalation-seconds", 12,
           "Seconds that faulty pods find no place before all of their job is deleted."
           ),
    _whole("repair-hold-seconds", 300,
           "Seconds that its places are held for a job whose faulty pods were deleted."
           ),
    _whole("fault-brake-percent", 5,
           "Percent of all pods that may be deleted because of faults at once.",
           high=100),
    _whole("fault-brake-seconds", 60, "Seconds that count as at once.", low=1),
    _whole("run-within-seconds", 600,
           "Seconds in which all pods of a job that was bound must run; 0: any time."),
    _whole("set-aside-seconds", 300,
           "Seconds that a node is set aside that refused a pod; 0: never."),
    *_idle("there is no such choice in Ringleaf",
        _switch("presetVirtualDevice",
                "Whether virtual NPUs are made beforehand only.", default=False),
        _switch("self-maintain-available-card",
                "Whether the scheduler counts free chips itself.", default=True),
        _switch("forceEnqueue",
                "Whether jobs with chips are always admitted.", default=True),
        _switch("prefer-previous-node",
                "Whether a job that comes back prefers its old nodes.", default=False),
        Argument("resource-level-config", Kind.TEXT, None,
                 "Levels of the network for multi-level scheduling."),
    ),
)  # fmt: skip
"""``init-params``. Source: the vendor's factory.go; what is not there
(nodes-per-leaf, leaf-choice, share-common-leaves, job-requests, and how faults are
dealt with except grace-over-time) is Ringleaf's own. Numbers may stand in quotes, as
the vendor's do.
"""

INIT_PARAMS: Final = "init-params"
ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tor-level": "tor_level stands in the ConfigMap basic-tor-node-cm",
        "tor_level": "it stands in the ConfigMap basic-tor-node-cm",
        "sum-scores": "it is an argument of the plugin 'affinity'",
    }
)
"""Names that are no init-params, and where they belong."""

ANY_RESOURCE: Final = "<resource>"
"""How the key of an argument ends that stands for any resource."""

DEFAULT_ACTIONS: Final = ("enqueue", "allocate", "backfill")
DEFAULT_TIERS: Final = (
    ("priority", "gang", "conformance", "affinity"),
    ("drf", "predicates", "proportion", "nodeorder", "binpack"),
)
"""What counts without a file, and for what a file leaves out (D34)."""


def find_argument(known: Mapping[str, Argument], key: object) -> Argument | None:
    """The row for *key*, also where one row stands for any resource.

    >>> find_argument(PLUGINS["binpack"].arguments, "binpack.resources.a/b").meaning
    'Weight of one of them.'
    """
    if not isinstance(key, str) or not key.isprintable():
        return None
    if key.endswith((ANY_RESOURCE, ".")):
        return None
    of_any = (
        argument
        for pattern, argument in known.items()
        if pattern.endswith(ANY_RESOURCE)
        and key.startswith(pattern.removesuffix(ANY_RESOURCE))
    )
    return known.get(key) or next(of_any, None)
