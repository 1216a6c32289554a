"""Pods that were bound: whether they run, and whether their node refused them.

A kubelet that refuses a pod makes it fail and says why. Some refusals are about the
pod, which any node would refuse; only those that are about the node are of interest
here, so that the pod can go elsewhere.
"""

from collections.abc import Iterable
from typing import Final

from ringleaf.kube.objects import ContainerStatus, Pod

REFUSALS: Final = frozenset(
    {
        "UnexpectedAdmissionError",
        "TopologyAffinityError",
        "SMTAlignmentError",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "TaintToleration",
        "UnexpectedPredicateFailureType",
        "UnknownReason",
    }
)
"""Why a kubelet refuses a pod that another may take.

Not among them are what is wrong with the pod itself (``SysctlForbidden``, ``AppArmor``,
``PodOSNotSupported`` and others), and what ends pods that ran (``Evicted``,
``Preempting``, ``NodeShutdown``, ``Terminated``).
"""
OUT_OF: Final = "OutOf"
"""How the reason begins where the node lacks a resource: ``OutOfcpu``."""
MAX_WORDS: Final = 200


def refusal_of(pod: Pod) -> str:
    """Why its node refused a pod, for people; empty if it did not."""
    status = pod.status
    reason = status.reason
    if status.phase != "Failed" or not pod.spec.node_name:
        return ""
    if reason not in REFUSALS and not reason.startswith(OUT_OF):
        return ""
    words = " ".join(status.message.split())[:MAX_WORDS]
    return f"{reason}: {words}" if words else reason


def runs(pod: Pod) -> bool:
    """Whether the kubelet has started a container of a pod, or had.

    One that takes long to prepare itself is at work.
    """
    status = pod.status
    if status.phase != "Pending":
        return True
    return _has_started(status.container_statuses or ()) or _has_started(
        status.init_container_statuses or ()
    )


def _has_started(containers: Iterable[ContainerStatus]) -> bool:
    return any(
        state is not None
        and (state.running is not None or state.terminated is not None)
        for each in containers
        for state in (each.state, each.last_state)
    )
