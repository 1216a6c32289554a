"""What is written to the API server: bindings, evictions, conditions, events.

Bodies are bytes, ready to be sent. What a Binding carries in its annotations arrives on
the pod in the same write as its node (D19).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from ringleaf.kube import names
from ringleaf.kube.node_info import NodeInfo
from ringleaf.kube.pod_state import PodState
from ringleaf.model.placement import Placement

Plain = dict[str, Any]
encode: Final = msgspec.json.Encoder().encode

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
COMPONENT: Final = "ringleaf"
MAX_MESSAGE: Final = 1024
"""Characters of the message of an event that the API server takes."""
MAX_CONDITION: Final = 4096


def written(
    pod: PodState,
    placement: Placement,
    given: Mapping[str, str],
    facts: NodeInfo,
    stamp: int,
) -> dict[str, str]:
    """The annotations that go into a pod's Binding.

    *given* are those that follow from the decision. ``predicate-time`` tells pods of
    one node apart that ask for equally many chips: the device plugin serves the
    smallest first. A pod that takes every chip of its node, or is an operator's, is
    told its chips for good, with its part of the rank table. So is one that came with
    the chips of another pod, of which it is a copy: they would count before ours.
    """
    if not placement.chips:
        return dict(given)
    found = {**given, names.PREDICATE_TIME: str(stamp)}
    if names.RANK in pod.annotations:
        found.pop(names.RANK, None)
    elif names.RANK not in found:
        found[names.RANK] = str(placement.replica)
    whole = len(placement.chips) == len(facts.devices) == facts.allocatable
    if pod.operated or whole or pod.chip_text:
        found[names.REAL] = found[pod.resource]
        key = names.CONFIGURATION_910
        if pod.resource == "huawei.com/npu":
            key = names.CONFIGURATION_NPU
        found[key] = rank_table(pod, placement, facts)
    return found


def rank_table(pod: PodState, placement: Placement, facts: NodeInfo) -> str:
    """A pod's part of the rank table, as the device plugin writes it."""
    devices = [
        {
            "device_id": str(chip),
            "device_ip": facts.devices[chip].ip,
            "super_device_id": str(facts.devices[chip].super_device_id),
        }
        for chip in sorted(placement.chips)
        if chip in facts.devices
    ]
    plain = {
        "pod_name": pod.name,
        "server_id": pod.uid,
        "server_ip": facts.address,
        "host_ip": facts.address,
        "super_pod_id": facts.superpod_id,
        "rack_id": facts.rack_id,
        "devices": devices,
        "server_index": facts.server_index,
    }
    return encode(plain).decode()


def binding(pod: PodState, node: str, annotations: Mapping[str, str]) -> bytes:
    """The body of ``POST .../pods/<name>/binding``; it is for this very pod."""
    return encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": pod.name,
                "namespace": pod.namespace,
                "uid": pod.uid,
                "annotations": annotations,
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
    )


def eviction(pod: PodState) -> bytes:
    """The body of ``POST .../pods/<name>/eviction``; budgets are heeded."""
    return encode(
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
    )


def deletion(pod: PodState, *, force: bool) -> bytes:
    """The body of ``DELETE .../pods/<name>``; it is for this very pod."""
    options: Plain = {"apiVersion": "v1", "kind": "DeleteOptions"}
    options["preconditions"] = {"uid": pod.uid}
    if force:
        options["gracePeriodSeconds"] = 0
    return encode(options)


def annotated(uid: str, annotations: Mapping[str, str | None]) -> bytes:
    """A merge patch of the annotations of an object; it is for this very one."""
    return encode({"metadata": {"uid": uid, "annotations": annotations}})


def pod_path(pod: PodState, what: str = "") -> str:
    """The path of a pod, or of a part of it."""
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    return f"{path}/{what}" if what else path


def condition(
    kind: str, status: str, reason: str, message: str, now: float
) -> dict[str, str | None]:
    """A condition of a pod."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message[:MAX_CONDITION],
        "lastProbeTime": None,
        "lastTransitionTime": moment(now),
    }


def pod_conditions(conditions: Sequence[Mapping[str, object]], uid: str) -> bytes:
    """A strategic merge patch of a pod's status; it is for this very pod."""
    return encode({"metadata": {"uid": uid}, "status": {"conditions": conditions}})


def event(
    regarding: Mapping[str, str],
    reason: str,
    message: str,
    now: float,
    *,
    number: int,
    is_warning: bool,
    reporter: str,
) -> bytes:
    """An event on an object; *number* makes its name one of its own."""
    namespace = regarding.get("namespace") or "default"
    at = moment(now)
    return encode(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{regarding['name'][:200]}.{number:x}",
                "namespace": namespace,
            },
            "involvedObject": regarding,
            "reason": reason,
            "message": message[:MAX_MESSAGE],
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": reporter,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
    )


def moment(now: float) -> str:
    """A time as Kubernetes writes it.

    >>> moment(60.5)
    '1970-01-01T00:01:00Z'
    """
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
