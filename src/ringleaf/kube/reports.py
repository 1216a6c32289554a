"""What device plugins, node daemons and the cluster daemon report of nodes.

Reports come in ConfigMaps of two layouts: one for each node, with a check code, or
shards of many nodes (``cluster-info-…``) without. Either way the answer is the same:
what is known of each node. Nothing here raises: what cannot be read is told in one
line, and whatever else the ConfigMap has is still read.

Source: the ConfigMaps that the vendor's components write. Where we differ: check codes
are verified (decision D23); the vendor's scheduler leaves that to its cluster daemon.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from ringleaf.kube.objects import ConfigMap
from ringleaf.model.topology import quoted
from ringleaf.policies.words import some_of

DEVICE_OF: Final = "mindx-dl-deviceinfo-"
NODE_OF: Final = "mindx-dl-nodeinfo-"
SWITCH_OF: Final = "mindx-dl-switchinfo-"
DEVICES: Final = "cluster-info-device-"
NODES: Final = "cluster-info-node-cm"
SWITCHES: Final = "cluster-info-switch-"

SUB_HEALTH: Final = "SubHealthFault"
"""The ``fault_handling`` of a chip that works, but not well."""

MAX_TOLD: Final = 3
"""Names told at once."""


class NodeHealth(StrEnum):
    """What the node daemon says of a node."""

    HEALTHY = "Healthy"
    PRE_SEPARATE = "PreSeparate"
    UNHEALTHY = "UnHealthy"


class SwitchHealth(StrEnum):
    """What is said of the switch inside a node."""

    HEALTHY = "Healthy"
    SUB_HEALTHY = "SubHealthy"
    UNHEALTHY = "UnHealthy"


class DeviceReport(Struct, frozen=True):
    """What a device plugin says of the chips of a node, by their names.

    When it was written is left out: a report that says the same is the same.
    """

    unhealthy: frozenset[str] = frozenset()
    network_unhealthy: frozenset[str] = frozenset()
    recovering: frozenset[str] = frozenset()
    sub_healthy: frozenset[str] = frozenset()
    superpod: int | None = None
    server_index: int | None = None
    faults: tuple[Mapping[str, Any], ...] = ()


class NodeReport(Struct, frozen=True):
    """What the node daemon says of a node."""

    status: NodeHealth = NodeHealth.HEALTHY


class SwitchReport(Struct, frozen=True):
    """What is said of the switch inside a node."""

    status: SwitchHealth = SwitchHealth.HEALTHY


class ReportMap(Struct, frozen=True):
    """What one ConfigMap says, by node.

    None stands where a report is there and cannot be read: the last good one stays.
    So do all of a ConfigMap that is not ``readable`` as a whole. ``problems`` tells
    why, one line each.
    """

    devices: dict[str, DeviceReport | None] = field(default_factory=dict)
    nodes: dict[str, NodeReport | None] = field(default_factory=dict)
    switches: dict[str, SwitchReport | None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    readable: bool = True
    mismatches: int = 0
    """Reports that do not fit their check code."""


class _Unread(Exception):  # noqa: N818 - it reads as what happened
    """Why a report cannot be read."""


class _Mismatch(_Unread):
    """Its check code is that of something else."""


class _DeviceInfo(Struct):
    device_list: dict[str, str] | None = field(default=None, name="DeviceList")
    update_time: int = field(default=0, name="UpdateTime")


class _DeviceInfoCfg(Struct):
    device_info: _DeviceInfo = field(name="DeviceInfo")
    superpod: int = field(default=-1, name="SuperPodID")
    server_index: int = field(default=-1, name="ServerIndex")
    check_code: str = field(default="", name="CheckCode")


class _DeviceEntry(Struct):
    device_list: dict[str, str] | None = field(default=None, name="DeviceList")
    superpod: int = field(default=-1, name="SuperPodID")
    server_index: int = field(default=-1, name="ServerIndex")


class _FaultyDevice(Struct):
    device_type: str = field(default="", name="DeviceType")
    device_id: int = field(default=0, name="DeviceId")
    fault_code: list[str] | None = field(default=None, name="FaultCode")
    fault_level: str = field(default="", name="FaultLevel")


class _NodeInfo(Struct):
    faulty_devices: list[_FaultyDevice] | None = field(
        default=None, name="FaultDevList"
    )
    status: str = field(default="", name="NodeStatus")


class _NodeInfoCfg(Struct):
    node_info: _NodeInfo = field(name="NodeInfo")
    check_code: str = field(default="", name="CheckCode")


class _Status(Struct):
    """A node in a shard, or the switch inside one: only the verdict is read."""

    status: str = field(default="", name="NodeStatus")


_S = TypeVar("_S")
_H = TypeVar("_H", NodeHealth, SwitchHealth)


def check_code(value: object) -> str:
    """The check code of *value*: SHA-256 of its JSON as Go writes it.

    Structs keep the order of their fields, maps are sorted.

    >>> check_code({"b": 1, "a": "<é>"}) == check_code({"a": "<é>", "b": 1})
    True
    >>> check_code(None)[:8]
    '74234e98'
    """
    text = json.dumps(_ordered(value), ensure_ascii=False, separators=(",", ":"))
    escaped = text.translate(_ESCAPED)
    return hashlib.sha256(escaped.encode(errors="replace")).hexdigest()


# Outside strings JSON has none of these.
_ESCAPED: Final = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def _ordered(value: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    match value:
        case Struct():
            names = value.__struct_encode_fields__
            fields = zip(names, value.__struct_fields__, strict=True)
            return {name: _ordered(getattr(value, own)) for name, own in fields}
        case dict():
            return {key: _ordered(value[key]) for key in sorted(value)}
        case list():
            return [_ordered(each) for each in value]
    return value


def is_report(name: str) -> bool:
    """Whether a ConfigMap called *name* has reports."""
    return name == NODES or name.startswith((DEVICES, SWITCHES, DEVICE_OF, NODE_OF))


def read(config_map: ConfigMap) -> ReportMap:
    """What *config_map* says of nodes; its name tells its layout."""
    name, data = config_map.metadata.name, config_map.data or {}
    found = _Reader(f"ConfigMap {quoted(config_map.metadata.key)}")
    if name.startswith(DEVICE_OF):
        node = name.removeprefix(DEVICE_OF)
        found.devices[node] = found.device(data)
        if "SwitchInfoCfg" in data:
            found.switches[node] = found.switch(data["SwitchInfoCfg"])
    elif name.startswith(NODE_OF):
        found.nodes[name.removeprefix(NODE_OF)] = found.node(data)
    elif name.startswith(DEVICES):
        for node, raw in found.shard(data, name, DEVICE_OF):
            found.devices[node] = found.device_entry(node, raw)
    elif name.startswith(SWITCHES):
        for node, raw in found.shard(data, name, SWITCH_OF):
            status = found.status_entry(node, raw, SwitchHealth)
            found.switches[node] = None if status is None else SwitchReport(status)
    elif name == NODES:
        for node, raw in found.shard(data, name, NODE_OF):
            state = found.status_entry(node, raw, NodeHealth)
            found.nodes[node] = None if state is None else NodeReport(state)
    else:
        found.tell("has no reports by its name")
        found.readable = False
    return ReportMap(
        devices=found.devices,
        nodes=found.nodes,
        switches=found.switches,
        problems=found.problems,
        readable=found.readable,
        mismatches=found.mismatches,
    )


class _Reader:
    """What has been read of one ConfigMap so far, and what could not be."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.devices: dict[str, DeviceReport | None] = {}
        self.nodes: dict[str, NodeReport | None] = {}
        self.switches: dict[str, SwitchReport | None] = {}
        self.problems: list[str] = []
        self.readable = True
        self.mismatches = 0

    def tell(self, line: str) -> None:
        self.problems.append(f"{self._place}: {line}")

    def device(self, data: Mapping[str, str]) -> DeviceReport | None:
        try:
            cfg = _decoded(_value(data, "DeviceInfoCfg"), _DeviceInfoCfg)
            _verify(cfg.check_code, cfg.device_info)
        except _Unread as error:
            self._tell_unread("DeviceInfoCfg", error)
            return None
        return self._report(
            "", cfg.device_info.device_list, cfg.superpod, cfg.server_index
        )

    def _tell_unread(self, what: str, error: _Unread) -> None:
        self.mismatches += isinstance(error, _Mismatch)
        self.tell(f"{what} {error}")

    def switch(self, text: str) -> SwitchReport | None:
        try:
            status = _decoded(text, _Status).status
            return SwitchReport(_health(status, SwitchHealth))
        except _Unread as error:
            self.tell(f"SwitchInfoCfg {error}")
            return None

    def node(self, data: Mapping[str, str]) -> NodeReport | None:
        try:
            cfg = _decoded(_value(data, "NodeInfo"), _NodeInfoCfg)
            _verify(cfg.check_code, cfg.node_info)
            return NodeReport(_health(cfg.node_info.status, NodeHealth))
        except _Unread as error:
            self._tell_unread("NodeInfo", error)
            return None

    def shard(
        self, data: Mapping[str, str], name: str, prefix: str
    ) -> Iterator[tuple[str, Raw]]:
        """The nodes of a shard with what is said of them; an emptied one has none."""
        try:
            text = _value(data, name)
            entries = _decoded(text, dict[str, Raw]) if text else {}
        except _Unread as error:
            self.readable = False
            self.tell(f"{quoted(name)} {error}")
            return
        for key, raw in entries.items():
            node = key.removeprefix(prefix)
            if node == key or not node:
                self.tell(f"the key {quoted(key)} is not {quoted(prefix)} and a node")
            else:
                yield node, raw

    def device_entry(self, node: str, raw: Raw) -> DeviceReport | None:
        where = f"node {quoted(node)}: "
        try:
            entry = _decoded(raw, _DeviceEntry)
        except _Unread as error:
            self.tell(f"{where}{error}")
            return None
        return self._report(
            where, entry.device_list, entry.superpod, entry.server_index
        )

    def status_entry(self, node: str, raw: Raw, words: type[_H]) -> _H | None:
        try:
            return _health(_decoded(raw, _Status).status, words)
        except _Unread as error:
            self.tell(f"node {quoted(node)}: {error}")
            return None

    def _report(
        self,
        where: str,
        listed: Mapping[str, str] | None,
        superpod: int,
        server_index: int,
    ) -> DeviceReport:
        chips: dict[str, set[str]] = {}
        faults: list[dict[str, Any]] = []
        for key in sorted(_KEYS.keys() & (listed or {}).keys()):
            text = (listed or {})[key]
            if not text:
                continue
            prefix, kind = _KEYS[key]
            own = f"{where}DeviceList[{quoted(key)}]"
            if kind == "Fault":
                said = self._faults(own, text)
                faults += said
                kind, text = SUB_HEALTH, ",".join(_weak(said))
            chips.setdefault(kind, set()).update(self._names(own, prefix, text))
        return DeviceReport(
            unhealthy=frozenset(chips.get("Unhealthy", ())),
            network_unhealthy=frozenset(chips.get("NetworkUnhealthy", ())),
            recovering=frozenset(chips.get("Recovering", ())),
            sub_healthy=frozenset(chips.get(SUB_HEALTH, ())),
            superpod=superpod if superpod >= 0 else None,
            server_index=server_index if server_index >= 0 else None,
            faults=tuple(faults),
        )

    def _names(self, where: str, prefix: str, text: str) -> Iterable[str]:
        """The chips of a list; names that are none are told."""
        names = {name.strip() for name in text.split(",")} - {""}
        good = {n for n in names if _is_chip(n, prefix)}
        if unknown := sorted(names - good):
            told = some_of(map(quoted, unknown), MAX_TOLD)
            self.tell(f"{where} names {told}, want names such as '{prefix}-0'")
        return good

    def _faults(self, where: str, text: str) -> list[dict[str, Any]]:
        try:
            return [] if text == "null" else _decoded(text, list[dict[str, Any]])
        except _Unread as error:
            self.tell(f"{where} {error}")
            return []


_KEYS: Final[Mapping[str, tuple[str, str]]] = {
    f"huawei.com/{prefix}-{kind}": (prefix, kind)
    for prefix in ("Ascend910", "Ascend310", "Ascend310P", "npu")
    for kind in ("Fault", "NetworkUnhealthy", "Recovering", "Unhealthy")
}
"""What is read of a ``DeviceList``: the chips it is about, and what of them."""

_NUMBER: Final = re.compile("0|[1-9][0-9]{0,3}")


def _is_chip(name: str, prefix: str) -> bool:
    own, _dash, number = name.partition("-")
    return own == prefix and _NUMBER.fullmatch(number) is not None


def _weak(faults: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for fault in faults:
        name = fault.get("npu_name")
        if fault.get("fault_handling") == SUB_HEALTH and isinstance(name, str):
            yield name


def _value(data: Mapping[str, str], key: str) -> str:
    if key not in data:
        raise _Unread("is missing")
    return data[key]


def _decoded(text: str | Raw, kind: type[_S]) -> _S:
    try:
        return msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise _Unread("is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise _Unread(f"cannot be read: {str(error)[:200]}") from None


def _verify(code: str, inner: object) -> None:
    """Refuse an object that is not what its check code was made of (D23)."""
    if code and code != (own := check_code(inner)):
        raise _Mismatch(f"has CheckCode {quoted(code)}, want {quoted(own)}")


def _health(status: str, words: type[_H]) -> _H:
    if not status:
        return words.HEALTHY
    try:
        return words(status)
    except ValueError:
        *most, last = words
        want = f"{', '.join(most)} or {last}"
        raise _Unread(f"NodeStatus is {quoted(status)}, want {want}") from None
