"""What each key of a scenario wants, for the message when it does not get it."""

from collections.abc import Iterable, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from msgspec import Struct, UnsetType
from msgspec.structs import fields

from ringleaf.framework.idle_budget import Outcome
from ringleaf.model.fault import Cause
from ringleaf.model.run_time import Similarity
from ringleaf.simulator.fault import read
from ringleaf.simulator.format import (
    OF_PODS,
    AilmentEntry,
    EventEntry,
    FaultEntry,
    NodeEntry,
    PlacementEntry,
    PodsEndEntry,
    PodsEntry,
    PodsRefusedEntry,
    RunSeriesEntry,
    ScenarioEntry,
    ThenEntry,
)

_FROM_0: Final = "a whole number from 0 to 1000000"
_FROM_1: Final = "a whole number from 1 to 1000000"

# What keys want of which the type does not say it.
WANTED: Final[Mapping[str, str]] = {
    "settings": "a mapping of settings",
    "nslb-version": '"1.0" or "2.0"',
    "nodes": "a list of nodes",
    "product": "a product of the catalogue",
    "free": "a list of chip numbers",
    "faulty": "a list of chip numbers",
    "network-faulty": "a list of chip numbers",
    "unhealthy": "a list of chip numbers",
    "weak": "a list of chip numbers",
    "offers": "a list of chip numbers",
    "framework": "the name of a framework, such as pytorch",
    "recover-policy-path": "pod, 'pod,job' or job",
    "master": f"{_FROM_0}, or null",
    "leaf": "the name of a leaf switch",
    "taints": "a list of taints",
    "resources": "a mapping of resources to amounts",
    "leaves": "a mapping of leaf names to their state",
    "cross-leaf-jobs": "a list of large-model-schema and normal-schema",
    "running": "a list of jobs with placements",
    "jobs": "a list of jobs",
    "replicas": _FROM_1,
    "chips": f"{_FROM_0}, per pod",
    "vnpu": "the template of a virtual NPU",
    "node-affinity": "a list of terms",
    "match-expressions": "a list of requirements",
    "operator": "an operator of Kubernetes",
    "values": "a list of texts",
    "tolerations": "a list of tolerations",
    "previous": "a mapping with placements",
    "placements": "a list of placements",
    "node": "the name of a node",
    "failed-nodes": "a list of node names",
    "roles": "a list of roles",
    "rank-index": "a list of ranks",
    "finished": "a list of ranks of pods",
    "queue": "the name of a queue",
    "run-time": "a mapping with median-seconds and most-seconds",
    "by": f"one of {', '.join(Similarity)}",
    "steps": "a list of whole numbers from 0",
    "ending": "a list of ranks of pods",
    "host-ports": "a list of ports",
    "pod-affinity": "a list of terms",
    "pod-anti-affinity": "a list of terms",
    "spread": "a list of wishes",
    "preferred-node-affinity": "a list of terms with a weight",
    "preferred-pod-affinity": "a list of terms with a weight",
    "preferred-pod-anti-affinity": "a list of terms with a weight",
    "topology-key": "a label of nodes",
    "selector": "a mapping with match-labels or match-expressions",
    "namespaces": "a list of texts",
    "queues": "a list of queues",
    "capability": "a mapping of resources to amounts",
    "guarantee": "a mapping of resources to amounts",
    "configuration": "a mapping with actions, tiers, or text with it",
    "then": "a list of what happens later",
    "arrives": "a mapping: a job",
    "ends": "the name of a job, or a mapping with job and returns",
    "pods-end": "a mapping with job and replicas",
    "pods-ending": "a mapping with job and replicas",
    "bind-fails": "a mapping with job and replicas",
    "pods-ail": "a mapping with job and ailments",
    "pods-run": "a mapping with job and replicas",
    "pods-refused": "a mapping with job and replicas",
    "repair-known": "a mapping with job and record",
    "faults-known": "a list of faults",
    "deletions-known": "a list of jobs and how many of their pods were deleted",
    "run-times-known": "a list of running times of similar jobs",
    "idle-time-known": "a mapping: what reservations kept idle",
    "kept-idle": "a list of times and chip-seconds",
    "reservations": "a list of reservations that have ended",
    "outcome": f"one of {', '.join(Outcome)}",
    "ailments": "a list of pods and what is wrong with them",
    "cause": f"one of {', '.join(Cause)}",
    "record": "a mapping with since",
    "deleted": "a list of ranks of pods",
    "moved-for": "the name of a job",
    "where": "a node or a job",
    "nodes-gone": "a list of node names",
    "queue-gone": "the name of a queue",
    "wakes": "true",
    "job": "the name of a job",
    "events": "a list of what happened",
    "instructions": "a list of what was said",
}

ELEMENT_WANTED: Final[Mapping[str, str]] = {
    "free": "a chip number",
    "faulty": "a chip number",
    "network-faulty": "a chip number",
    "unhealthy": "a chip number",
    "weak": "a chip number",
    "offers": "a chip number",
    "deleted": "the rank of a pod",
    "cross-leaf-jobs": "large-model-schema or normal-schema",
    "failed-nodes": "the name of a node",
    "labels": "text",
    "annotations": "text",
    "resources": "an amount such as 4, 500m or 64Gi",
    "node-selector": "text",
    "values": "text",
    "rank-index": _FROM_0,
    "finished": _FROM_0,
    "host-ports": "a port from 1 to 65535, as 8080 or UDP/8080",
    "pod-labels": "text",
    "match-labels": "text",
    "namespaces": "text",
    "capability": "an amount such as 4, 500m or 64Gi",
    "guarantee": "an amount such as 4, 500m or 64Gi",
    "nodes-gone": "the name of a node",
    "replicas": "the rank of a pod",
    "ending": "the rank of a pod",
    "chips": "a chip number",
}

# Keys that want something else in these mappings.
OWN_WANTED: Final[Mapping[tuple[type[Struct], str], str]] = {
    (NodeEntry, "chips"): f"{_FROM_1}, of the node",
    (PlacementEntry, "chips"): "a list of chip numbers",
    (PodsEntry, "replicas"): "a list of ranks of pods",
    (PodsEndEntry, "replicas"): "a list of ranks of pods",
    (PodsRefusedEntry, "replicas"): "a list of ranks of pods",
    (FaultEntry, "jobs"): "a list of names of jobs",
    (AilmentEntry, "node"): "the name of a node",
    (AilmentEntry, "cause"): f"one of {', '.join(OF_PODS)}",
    (EventEntry, "queue"): "a mapping: a queue",
    (ThenEntry, "queue"): "a mapping: a queue",
}


# Keys of which an element is something else in these mappings.
OWN_ELEMENT_WANTED: Final[Mapping[tuple[type[Struct], str], str]] = {
    (FaultEntry, "jobs"): "the name of a job",
    (RunSeriesEntry, "steps"): "a step of the grid, a whole number from 0",
}


def wanted_at(entry: type[Struct], key: str, element: bool) -> str:  # noqa: FBT001
    """What *key* of *entry* wants; inside a list or mapping, what one element does."""
    if element:
        usual = ELEMENT_WANTED.get(key, "a mapping")
        return OWN_ELEMENT_WANTED.get((entry, key), usual)
    found = OWN_WANTED.get((entry, key), WANTED.get(key))
    if found is None:
        found = _by_type(next(f.type for f in fields(entry) if f.encode_name == key))
    return found


def _by_type(kind: Any) -> str:  # noqa: ANN401 - what ``typing`` makes
    """What a value of this type is, in words.

    >>> from ringleaf.simulator.format import Weight
    >>> _by_type(Literal["a", "b"] | None), _by_type(Weight)
    ('a or b', 'a whole number from 1 to 100')
    """
    origin, several = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _by_type(next(k for k in several if k not in (UnsetType, NoneType)))
    if origin is Annotated:
        (limits,) = several[1:]
        least = limits.ge if limits.gt is None else limits.gt + 1
        usual = f"a whole number from {least} to {limits.le}"
        return str(limits.description or usual)
    if origin is Literal:
        return _either(map(str, several))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _either(str(each.value) for each in kind)
    return _PLAIN[kind]


def _either(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


_PLAIN: Final[Mapping[Any, str]] = {
    bool: "true or false",
    str: "text",
    dict[str, str]: "a mapping of text to text",
}


def read_entry(document: object) -> ScenarioEntry:
    """The document in the format's structs, or one ``BadInput``."""
    whole = "a mapping with the key 'nodes'"
    return read(document, ScenarioEntry, whole, wanted_at)
