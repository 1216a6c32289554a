"""The ConfigMap ``basic-tor-node-cm``: which node is under which leaf switch.

Its key ``tor_info`` is JSON in a string; ``tor_count`` in there is, against its name,
the number of nodes per leaf. Keys that the vendor's scheduler does not know are passed
over, as it does. docs/topology.md describes the file for people.
"""

import json
import re
from collections import Counter
from itertools import islice
from typing import Annotated, Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from ringleaf.model.placement import LeafState
from ringleaf.model.topology import Server, Switch, Topology, quoted

NAME: Final = "basic-tor-node-cm"
NAMESPACE: Final = "kube-system"
VERSION: Final = "1.0"
SINGLE, DOUBLE = "single_layer", "double_layer"
MAX_NAME: Final = 253
MAX_BYTES: Final = 1 << 20
"""Bytes of data that a ConfigMap may have."""

Text = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Whole = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Bit = Annotated[int, Meta(ge=0, le=1)]
State = Annotated[int, Meta(ge=0, le=2)]


class BadTopology(ValueError):  # noqa: N818 - it reads as what happened
    """No topology: one line that says what was found and what is wanted."""

    def __init__(self, line: str, hint: str | None = None) -> None:
        super().__init__(f"{line}; hint: {hint}" if hint else line)


class _ServerEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    server_ip: Text
    npu_count: Whole | None = None
    slice_id: Whole


class _LeafEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    tor_id: Whole
    tor_ip: Text
    is_shared: State = field(default=0, name="IsSharedTor")
    is_healthy: Bit = field(default=0, name="IsHealthy")
    server: list[_ServerEntry]


class _TorInfo(Struct, frozen=True):
    tor_count: Whole
    server_list: list[_LeafEntry]
    version: str = VERSION
    tor_level: str = DOUBLE


class _Metadata(Struct, frozen=True):
    name: str = NAME
    namespace: str = NAMESPACE


class _Content(Struct, frozen=True):
    tor_info: str
    tor_level: str = DOUBLE


class _ConfigMap(Struct, frozen=True):
    data: _Content
    kind: str = "ConfigMap"
    metadata: _Metadata = _Metadata()


_NAMED: Final = f"1 to {MAX_NAME} printable characters"
_WHOLE: Final = "a whole number"
_WANTED: Final = {
    "tor_info": "text that is JSON",
    "data.tor_info": "a JSON object with the key 'server_list'",
    "tor_level": f"{DOUBLE} or {SINGLE}",
    "tor_count": f"{_WHOLE}, the nodes per leaf",
    "server_list": "a list of leaf switches",
    "version": "text",
    "tor_id": _WHOLE,
    "tor_ip": _NAMED,
    "server": "a list of nodes",
    "server_ip": _NAMED,
    "npu_count": _WHOLE,
    "slice_id": _WHOLE,
    "IsSharedTor": "0, 1 or 2",
    "IsHealthy": "0 or 1",
    "data": "a mapping with the key 'tor_info'",
    "kind": "'ConfigMap'",
    "metadata": "a mapping",
    "name": quoted(NAME),
    "namespace": quoted(NAMESPACE),
}


def read_topology(document: object) -> tuple[Topology, list[str]]:
    """The topology of a ConfigMap or of the bare ``tor_info``, and warnings.

    Raises ``BadTopology`` when *document*, plain values, is neither.
    """
    if not isinstance(document, dict) or not {"data", "server_list"} & document.keys():
        raise BadTopology(
            f"the document is {_told(document)}, want the ConfigMap {NAME}, "
            "its tor_info, or CSV with a header",
            f"kubectl get configmap -n {NAMESPACE} {NAME} -o yaml",
        )
    if "server_list" in document:
        info = _tor_info(document)
        return _topology(info, info.tor_level), _warnings(info, info.tor_level)
    manifest = _converted(document, _ConfigMap)
    if manifest.kind != "ConfigMap":
        raise BadTopology(f"kind is {quoted(manifest.kind)}, want 'ConfigMap'")
    level = manifest.data.tor_level
    info = _tor_info(_parsed(manifest.data.tor_info), ("data.tor_info",))
    warnings = [*_name_warnings(manifest.metadata), *_warnings(info, level)]
    return _topology(info, level), warnings


def tor_info(topology: Topology, *, level: bool = True) -> str:
    """The bare JSON, a node per line; with *level* it tells a single layer too."""
    head: dict[str, object] = {"version": VERSION}
    if level and topology.single_layer:
        head["tor_level"] = SINGLE
    head["tor_count"] = topology.leaf_size
    leaves = ",\n".join(map(_leaf_text, topology.switches))
    return f'{_json(head)[:-1]},"server_list":[\n{leaves}\n]}}\n'


def config_map(topology: Topology) -> str:
    """The manifest in YAML, as ``kubectl apply`` takes it."""
    lines = tor_info(topology, level=False).splitlines()
    return (
        "apiVersion: v1\n"
        "kind: ConfigMap\n"
        f"metadata:\n  name: {NAME}\n  namespace: {NAMESPACE}\n"
        f"data:\n  tor_level: {SINGLE if topology.single_layer else DOUBLE}\n"
        "  tor_info: |\n" + "".join(f"    {line}\n" for line in lines)
    )


def _leaf_text(switch: Switch) -> str:
    head = _LeafEntry(
        tor_id=switch.number,
        tor_ip=switch.address,
        is_shared=int(switch.state),
        is_healthy=int(not switch.healthy),
        server=[],
    )
    servers = ",\n".join(
        "  "
        + _json(_ServerEntry(server_ip=s.address, npu_count=s.chips, slice_id=s.slot))
        for s in switch.servers
    )
    return f" {_json(head)[:-2]}\n{servers}]}}" if servers else f" {_json(head)}"


def _json(value: object) -> str:
    """JSON in one line of ASCII: no character in it ends a line of YAML."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def _topology(info: _TorInfo, level: str) -> Topology:
    return Topology(
        info.tor_count, level == SINGLE, tuple(map(_switch, info.server_list))
    )


def _switch(leaf: _LeafEntry) -> Switch:
    return Switch(
        leaf.tor_id,
        leaf.tor_ip,
        tuple(Server(s.server_ip, s.slice_id, s.npu_count) for s in leaf.server),
        LeafState(leaf.is_shared),
        healthy=not leaf.is_healthy,
    )


def _name_warnings(metadata: _Metadata) -> list[str]:
    found = {
        "name": (metadata.name, NAME),
        "namespace": (metadata.namespace, NAMESPACE),
    }
    return [
        f"metadata.{key} is {quoted(has)}, want {quoted(want)}: "
        "the vendor's scheduler reads no other"
        for key, (has, want) in found.items()
        if has != want
    ]


def _warnings(info: _TorInfo, level: str) -> list[str]:
    warnings = []
    if info.version != VERSION:
        warnings.append(f"version is {quoted(info.version)}, want {quoted(VERSION)}")
    if level not in (SINGLE, DOUBLE):
        wanted = f"want {DOUBLE} or {SINGLE}: two layers are assumed"
        warnings.append(f"tor_level is {quoted(level)}, {wanted}")
    return warnings


def _parsed(text: str) -> object:
    """The JSON of *text*; a key that stands twice is refused."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except BadTopology:
        raise
    except RecursionError:
        raise BadTopology(
            "data.tor_info is nested too deeply, want three lists"
        ) from None
    except ValueError as error:
        raise BadTopology(
            f"data.tor_info is no JSON ({error}), want JSON text"
        ) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        times = Counter(key for key, _value in pairs)
        twice = next(key for key, n_times in times.items() if n_times > 1)
        raise BadTopology(
            f"data.tor_info has the key {quoted(twice)} twice in one object, want once"
        )
    return unique


_AT: Final = re.compile(r" - at `(key` in `)?\$(?P<path>[^`]*)`$")
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]")
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")

_Path = tuple[str | int, ...]
_S = TypeVar("_S", bound=Struct)


def _tor_info(value: object, place: _Path = ()) -> _TorInfo:
    info = _converted(value, _TorInfo, place)
    for i, leaf in enumerate(info.server_list):
        path = (*place, "server_list", i)
        if not leaf.tor_ip.isprintable():
            _refuse((*path, "tor_ip"), leaf.tor_ip)
        for j, server in enumerate(leaf.server):
            if not server.server_ip.isprintable():
                _refuse((*path, "server", j, "server_ip"), server.server_ip)
    return info


def _converted(value: object, kind: type[_S], place: _Path = ()) -> _S:
    """*value* as *kind*, or what, where, found and wanted; msgspec finds the fault."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        _explain(value, place, str(error))


def _explain(value: Any, place: _Path, message: str) -> NoReturn:  # noqa: ANN401
    at = _AT.search(message)
    steps = _STEP.findall(at["path"]) if at else []
    path: _Path = tuple(key or int(index) for key, index in steps)
    if at and at[1]:
        where = _written((*place, *path)) or "the document"
        raise BadTopology(f"{where} has a key that is not text, want text keys")
    for step in path:
        value = value[step]
    if missing := _MISSING.match(message):
        path = (*path, missing[1])
        wanted = _WANTED[missing[1]]
        raise BadTopology(f"{_written((*place, *path))} is missing, want {wanted}")
    _refuse((*place, *path), value)


def _refuse(path: _Path, found: object) -> NoReturn:
    last = path[-1]
    wanted = "a mapping" if isinstance(last, int) else _WANTED[last]
    raise BadTopology(f"{_written(path)} is {_told(found)}, want {wanted}")


def _written(path: _Path) -> str:
    """*path* as people write it.

    >>> _written(("tor_info", "server_list", 0, "tor_ip"))
    'tor_info.server_list[0].tor_ip'
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def _told(value: object) -> str:
    """What was found, as people recognise it.

    >>> _told({"a": 1}), _told([]), _told(None), _told("four")
    ("a mapping with 'a'", 'an empty list', 'null', "'four'")
    """
    match value:
        case None | bool():
            return str(json.dumps(value))
        case str():
            return quoted(value)
        case dict():
            keys = ", ".join(quoted(str(key)) for key in islice(value, 4))
            return f"a mapping with {keys}" if keys else "an empty mapping"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return f"{value}"[:60]
