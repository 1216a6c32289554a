"""``init-params``: what an operator may set for all jobs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ringleaf.config.arguments import Argument, ArgumentKind, idle, keyed, switch, whole
from ringleaf.model.fault import FaultMode
from ringleaf.model.settings import DefaultAffinity, JobRequests, LeafChoice

PARAMETERS: Final = keyed(
    Argument("nslb-version", ArgumentKind.CHOICE, "1.0", "Version of switch affinity.",
             choices=("1.0", "2.0")),
    whole("shared-tor-num", 2,
           "Shared leaves that one foundation job may use in 2.0.", low=1, high=2),
    Argument("nodes-per-leaf", ArgumentKind.WHOLE, None, "Nodes per leaf.", 1,
             without="the size of the largest leaf"),
    Argument("leaf-choice", ArgumentKind.CHOICE, LeafChoice.COMPACT.value,
             "How leaves are chosen for a job in 1.0; in 2.0, whether a job of as "
             "many pods as a leaf has nodes may go under a leaf that other jobs "
             "cross (D36).",
             choices=tuple(LeafChoice)),
    switch("share-common-leaves",
            "Whether common jobs may cross leaves that carry common jobs only (D12).",
            default=False),
    whole("super-pod-size", 48, "Nodes per SuperPoD.", low=1),
    whole("reserve-nodes", 2, "Nodes per SuperPoD in reserve for repairs."),
    Argument("job-requests", ArgumentKind.CHOICE, JobRequests.STRICT.value,
             "Which requests jobs of several pods may make on atlas-800-9000 (D1).",
             choices=tuple(JobRequests)),
    Argument("default-tor-affinity", ArgumentKind.CHOICE, DefaultAffinity.NONE.value,
             "Switch affinity of jobs of several nodes without the label "
             "tor-affinity (D38).",
             choices=tuple(DefaultAffinity)),
    Argument("default-fault-scheduling", ArgumentKind.CHOICE, FaultMode.OFF.value,
             "Fault handling of jobs without the label fault-scheduling (D39).",
             choices=(FaultMode.OFF, FaultMode.GRACE, FaultMode.FORCE)),
    switch("useClusterInfoManager",
            "Whether reports of the cluster daemon take precedence.", default=True),
    whole("grace-over-time", 900,
           "Seconds after which deleted pods of a faulty job are killed if they still "
           "run.",
           low=2, high=3600),
    whole("superpod-escalation-seconds", 6,
           "Seconds after which a logical SuperPoD is deleted if its faulty pods find "
           "no node."),
    whole("job-escalation-seconds", 12,
           "Seconds after which a job is deleted if its faulty pods find no node."),
    whole("repair-hold-seconds", 300,
           "Seconds for which the nodes and chips of a job are held while its faulty "
           "pods are replaced."),
    whole("fault-brake-percent", 5,
           "Eviction rate limit: percent of all pods that may be deleted for faults in "
           "fault-brake-seconds.",
           high=100),
    whole("fault-brake-seconds", 60, "Window of the eviction rate limit, in seconds.",
           low=1),
    whole("run-within-seconds", 600,
           "Seconds within which all pods of a bound job must run; 0 is no limit."),
    whole("set-aside-seconds", 300,
           "Seconds for which a node that refused a pod is quarantined; 0 is never."),
    *idle("Ringleaf has no such option",
        switch("presetVirtualDevice",
                "Whether virtual NPUs are created statically.", default=False),
        switch("self-maintain-available-card",
                "Whether the scheduler counts free chips itself.", default=True),
    ),
    *idle("jobs are admitted by the quota of their queue, or if they fit now",
        switch("forceEnqueue",
                "Whether jobs with chips are always admitted.", default=True),
    ),
    *idle("Ringleaf has no such option",
        switch("prefer-previous-node",
                "Whether a restarted job prefers its previous nodes.", default=False),
        Argument("resource-level-config", ArgumentKind.TEXT, None,
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
        "tor-level": "tor_level is a key of the ConfigMap basic-tor-node-cm",
        "tor_level": "it is a key of the ConfigMap basic-tor-node-cm",
        "sum-scores": "it is an argument of the plugin 'affinity'",
    }
)
"""Names that are no init-params, and where they belong."""
