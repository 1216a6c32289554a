"""The format of scenario files: what each mapping may have, and what each key wants.

The structs are the format; docs/scenario.md describes it for people. ``read_entry``
turns a document's plain values into them, or says in one line what, where, found and
wanted. msgspec finds the fault; its message is only read for the place.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, NoReturn

import msgspec
from msgspec import Meta, Struct, field

from ringleaf.model.demand import Effect, Match, Operator
from ringleaf.model.job import Firmness, Keep, Schema, Strategy
from ringleaf.model.settings import JobRequests
from ringleaf.simulator.source import BadInput, brief

MAX_NODES: Final = 100_000

Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Chips = Annotated[int, Meta(ge=0, le=1_000_000)]
Index = Annotated[int, Meta(ge=0, le=1_000_000)]


class _Entry(Struct, forbid_unknown_fields=True, rename="kebab", frozen=True):
    """A mapping of the file; unknown keys are errors."""


class SettingsEntry(_Entry, frozen=True):
    """``settings``: names and defaults as in the scheduler's init-params."""

    nslb_version: Literal["1.0", "2.0"] | float = "1.0"
    shared_tor_num: Literal[1, 2] = 2
    tor_level: Literal["double_layer", "single_layer"] = "double_layer"
    super_pod_size: Count = 48
    reserve_nodes: Index = 2
    nodes_per_leaf: Count | None = None
    job_requests: JobRequests = JobRequests.STRICT
    share_common_leaves: bool = False


class TaintEntry(_Entry, frozen=True):
    """One of a node's ``taints``."""

    key: str
    effect: Effect
    value: str | None = None


class NodeEntry(_Entry, frozen=True):
    """One of ``nodes``, or ``count`` alike."""

    name: str
    product: str
    count: Annotated[int, Meta(ge=1, le=MAX_NODES)] | None = None
    free: list[Index] | None = None
    faulty: list[Index] = field(default_factory=list)
    network_faulty: list[Index] = field(default_factory=list)
    sub_healthy: bool = False
    chips: Count | None = None
    leaf: str | None = None
    slot: Index | None = None
    superpod: Index | None = None
    ready: bool = True
    unschedulable: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[TaintEntry] = field(default_factory=list)
    resources: dict[str, int | float | str] = field(default_factory=dict)


class LeafEntry(_Entry, frozen=True):
    """One of ``leaves``: switch state that ``running`` does not already imply."""

    state: Literal["idle", "shared", "exclusive"] | None = None
    healthy: bool | None = None
    address: str | None = None
    cross_leaf_jobs: list[Schema] = field(default_factory=list)


class PlacementEntry(_Entry, frozen=True):
    """Where one replica is or was."""

    replica: Index
    node: str
    chips: list[Index]
    annotations: dict[str, str] = field(default_factory=dict)


class PreviousEntry(_Entry, frozen=True):
    """Where a job ran before a fault."""

    placements: list[PlacementEntry]
    failed_nodes: list[str] = field(default_factory=list)
    keep: Keep = Keep.PODS


class RequirementEntry(_Entry, frozen=True):
    """One of a term's ``match-expressions``."""

    key: str
    operator: Operator
    values: list[str] = field(default_factory=list)


class TermEntry(_Entry, frozen=True):
    """One of a job's ``node-affinity``."""

    match_expressions: list[RequirementEntry]


class TolerationEntry(_Entry, frozen=True):
    """One of a job's ``tolerations``."""

    key: str | None = None
    operator: Match = Match.EQUAL
    value: str | None = None
    effect: Effect | None = None


class JobEntry(_Entry, frozen=True):
    """One of ``jobs``."""

    name: str
    chips: Chips
    replicas: Count = 1
    product: str | None = None
    tor_affinity: Literal["large-model-schema", "normal-schema", "null"] | None = None
    sp_block: Index | None = None
    super_pod_affinity: Firmness | None = None
    strategy: Strategy | None = None
    distributed: bool = False
    vnpu: str | None = None
    resources: dict[str, int | float | str] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    node_affinity: list[TermEntry] = field(default_factory=list)
    tolerations: list[TolerationEntry] = field(default_factory=list)
    previous: PreviousEntry | None = None


class RunningEntry(JobEntry, frozen=True, kw_only=True):
    """One of ``running``: a job that already holds chips."""

    placements: list[PlacementEntry]


class ScenarioEntry(_Entry, frozen=True):
    """One document."""

    nodes: Annotated[list[NodeEntry], Meta(max_length=MAX_NODES)]
    about: str | None = None
    settings: SettingsEntry = field(default_factory=SettingsEntry)
    leaves: dict[str, LeafEntry] = field(default_factory=dict)
    running: list[RunningEntry] = field(default_factory=list)
    jobs: list[JobEntry] = field(default_factory=list)


_FROM_0: Final = "a whole number from 0 to 1000000"
_FROM_1: Final = "a whole number from 1 to 1000000"

# What each key wants, for the message when it does not get it.
WANTED: Final[Mapping[str, str]] = {
    "about": "text",
    "settings": "a mapping of settings",
    "nslb-version": '"1.0" or "2.0"',
    "shared-tor-num": "1 or 2",
    "tor-level": "double_layer or single_layer",
    "super-pod-size": _FROM_1,
    "reserve-nodes": _FROM_0,
    "nodes-per-leaf": _FROM_1,
    "job-requests": "strict or per-pod",
    "share-common-leaves": "true or false",
    "nodes": "a list of nodes",
    "name": "text",
    "product": "a product of the catalogue",
    "count": f"a whole number from 1 to {MAX_NODES}",
    "free": "a list of chip numbers",
    "faulty": "a list of chip numbers",
    "network-faulty": "a list of chip numbers",
    "sub-healthy": "true or false",
    "leaf": "the name of a leaf switch",
    "slot": _FROM_0,
    "superpod": _FROM_0,
    "ready": "true or false",
    "unschedulable": "true or false",
    "labels": "a mapping of text to text",
    "taints": "a list of taints",
    "resources": "a mapping of resources to amounts",
    "key": "text",
    "effect": "NoSchedule, PreferNoSchedule or NoExecute",
    "value": "text",
    "leaves": "a mapping of leaf names to their state",
    "state": "idle, shared or exclusive",
    "healthy": "true or false",
    "address": "text",
    "cross-leaf-jobs": "a list of large-model-schema and normal-schema",
    "running": "a list of jobs with placements",
    "jobs": "a list of jobs",
    "replicas": _FROM_1,
    "tor-affinity": "large-model-schema, normal-schema or null",
    "sp-block": _FROM_0,
    "super-pod-affinity": "hard or soft",
    "strategy": "card or chip",
    "distributed": "true or false",
    "vnpu": "the template of a virtual NPU",
    "node-selector": "a mapping of text to text",
    "node-affinity": "a list of terms",
    "match-expressions": "a list of requirements",
    "operator": "an operator of Kubernetes",
    "values": "a list of texts",
    "tolerations": "a list of tolerations",
    "previous": "a mapping with placements",
    "placements": "a list of placements",
    "replica": _FROM_0,
    "node": "the name of a node",
    "annotations": "a mapping of text to text",
    "failed-nodes": "a list of node names",
    "keep": "pods or job",
}

ELEMENT_WANTED: Final[Mapping[str, str]] = {
    "free": "a chip number",
    "faulty": "a chip number",
    "network-faulty": "a chip number",
    "cross-leaf-jobs": "large-model-schema or normal-schema",
    "failed-nodes": "the name of a node",
    "labels": "text",
    "annotations": "text",
    "resources": "an amount such as 4, 500m or 64Gi",
    "node-selector": "text",
    "values": "text",
}


_AT = re.compile(r" - at `(?:key` in `)?\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.([a-z-]+)|\[(\d+)\]|\[\.\.\.\]")
_MISSING = re.compile(r"Object missing required field `([a-z-]+)`")


class _Named(str):
    """A step of a path that the file names: a leaf, a label, an annotation."""

    __slots__ = ()


_Path = tuple[str | int, ...]


def read_entry(document: object) -> ScenarioEntry:
    """The document in the format's structs, or one ``BadInput``."""
    try:
        return msgspec.convert(document, ScenarioEntry)
    except msgspec.ValidationError as error:
        _explain(document, str(error))


def _explain(document: object, message: str) -> NoReturn:
    """Turn msgspec's message into what, where, found and wanted."""
    at = _AT.search(message)
    unknown = message.startswith("Object contains unknown field")
    if unknown and _unknown_keys(document, ScenarioEntry):
        at = None  # the key is quoted in the message and may look like a place
    path = _path_of(document, at["path"]) if at else ()
    found = _value_at(document, path)
    place = _written(path) or "the document"
    if isinstance(found, dict) and not all(isinstance(key, str) for key in found):
        raise BadInput(f"{place} has a key that is not text, want text keys")
    if unknown:
        _refuse_key(place, _entry_at(path), found)
    if missing := _MISSING.match(message):
        path = (*path, missing[1])
        raise BadInput(f"{_written(path)} is missing, want {_wanted(path)}")
    if isinstance(found, list) and len(found) > MAX_NODES:
        raise BadInput(f"{place} are {len(found)}, want at most {MAX_NODES}")
    raise BadInput(f"{place} is {brief(found)}, want {_wanted(path)}")


def _unknown_keys(found: Any, entry: type[Struct]) -> list[str]:  # noqa: ANN401
    known = {f.encode_name for f in msgspec.structs.fields(entry)}
    return [key for key in found if key not in known]


def _refuse_key(place: str, entry: type[Struct], found: object) -> NoReturn:
    keys = [f.encode_name for f in msgspec.structs.fields(entry)]
    key = _unknown_keys(found, entry)[0]
    close = get_close_matches(key, keys, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it may have {', '.join(keys)}"
    raise BadInput(f"{place} has the unknown key {brief(key)}", hint)


_ENTRIES: Final[Mapping[str, type[Struct]]] = {
    "settings": SettingsEntry,
    "nodes": NodeEntry,
    "leaves": LeafEntry,
    "running": RunningEntry,
    "jobs": JobEntry,
    "placements": PlacementEntry,
    "previous": PreviousEntry,
    "taints": TaintEntry,
    "node-affinity": TermEntry,
    "match-expressions": RequirementEntry,
    "tolerations": TolerationEntry,
}


def _path_of(document: object, path: str) -> _Path:
    """The steps of msgspec's path, ``[...]`` replaced by the key that is at fault."""
    steps: _Path = ()
    for key, index in _STEP.findall(path):
        if key:
            steps = (*steps, key)
        elif index:
            steps = (*steps, int(index))
        else:
            steps = (*steps, _key_at_fault(steps, _value_at(document, steps)))
    return steps


def _key_at_fault(path: _Path, mapping: Mapping[str, object]) -> _Named:
    wanted = LeafEntry if path == ("leaves",) else str
    for key, value in mapping.items():
        try:
            msgspec.convert(value, wanted)
        except msgspec.ValidationError:
            return _Named(key)
    raise AssertionError("every value is as wanted")


def _value_at(document: Any, path: _Path) -> Any:  # noqa: ANN401
    for step in path:
        document = document[step]
    return document


def _written(path: _Path) -> str:
    """*path* as people write it.

    >>> _written(("nodes", 0, "labels", _Named("a.b")))
    "nodes[0].labels['a.b']"
    """
    return "".join(map(_step, path)).removeprefix(".")


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    plain = re.fullmatch(r"[A-Za-z0-9_-]{1,60}", step)
    return f".{step}" if plain else f"[{brief(str(step))}]"


def _fields(path: _Path) -> list[str]:
    return [s for s in path if isinstance(s, str) and not isinstance(s, _Named)]


def _entry_at(path: _Path) -> type[Struct]:
    keys = [step for step in _fields(path) if step in _ENTRIES]
    return _ENTRIES[keys[-1]] if keys else ScenarioEntry


def _wanted(path: _Path) -> str:
    """What the key at *path* wants; inside a list, what one element wants."""
    keys = _fields(path)
    if not keys:
        return "a mapping with the key 'nodes'"
    element = path[-1] is not keys[-1]
    if keys[-1] == "chips":
        if "placements" in keys:
            return "a chip number" if element else "a list of chip numbers"
        per_node = keys[0] == "nodes"
        return f"{_FROM_1}, of the node" if per_node else f"{_FROM_0}, per pod"
    return ELEMENT_WANTED.get(keys[-1], "a mapping") if element else WANTED[keys[-1]]
