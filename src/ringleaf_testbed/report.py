"""What the daemons of Ascend nodes report, in both of their layouts.

Direct: one ConfigMap per node, written by the device plugin and the node daemon, each
with a check code. Collected: a few ConfigMaps for the whole cluster, written by the
cluster daemon, cut at 800 KiB. This is a second, independent spelling of what
``ringleaf.kube`` reads; the two are not to share code.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from ringleaf_testbed.hardware import Machine

SHARD_BYTES: Final = 800 << 10

DEVICES: Final = "mindx-dl-deviceinfo-"
NODES: Final = "mindx-dl-nodeinfo-"
SWITCHES: Final = "mindx-dl-switchinfo-"

DIRECT_LABEL: Final = {"mx-consumer-cim": "true"}
COLLECTED_LABEL: Final = {"mx-consumer-volcano": "true"}

# Go's encoder escapes these; Python's does not.
_ESCAPES: Final = str.maketrans(
    {c: f"\\u{ord(c):04x}" for c in ("<", ">", "&", "\u2028", "\u2029")}
)


class ChipFaultKind(StrEnum):
    """What is wrong with a chip; the word is the one of the report."""

    CARD = "CardUnhealthy"
    NETWORK = "CardNetworkUnhealthy"


class ChipFault(Struct, frozen=True):
    """What is wrong with one chip.

    Args:
        kind: The chip or its network port.
        level: What is to be done about it, in the vendor's words.
        code: The vendor's fault code.
        since_ms: When it began.
        recovering: The chip is being reset.

    """

    kind: ChipFaultKind = ChipFaultKind.CARD
    level: str = "SeparateNPU"
    code: str = "80E01801"
    since_ms: int = 0
    recovering: bool = False


def is_unhealthy(fault: ChipFault, *, used: bool) -> bool:
    """Whether the chip is listed as unhealthy, given whether a pod uses it."""
    harmless = {"NotHandleFault", "SubHealthFault"}
    if fault.kind is not ChipFaultKind.CARD or fault.recovering:
        return False
    return fault.level not in harmless and not (
        used and fault.level == "PreSeparateNPU"
    )


def is_network_unhealthy(fault: ChipFault) -> bool:
    """Whether the chip is listed as cut off from the network."""
    return fault.kind is ChipFaultKind.NETWORK and fault.level != "NotHandleFault"


class MachineHealth(Struct):
    """The faults of one machine."""

    faults: dict[int, ChipFault]
    node_status: str = "Healthy"
    node_level: str = "SeparateFault"
    switch_status: str = "Healthy"
    switch_level: str = "SeparateFault"

    def unhealthy(self, used: Collection[int]) -> list[int]:
        """The chips that the kubelet does not hand out."""
        return sorted(
            chip
            for chip, fault in self.faults.items()
            if is_unhealthy(fault, used=chip in used) or fault.recovering
        )


def go_json(value: object) -> str:
    r"""*value* as Go writes it; map keys are the caller's business.

    >>> print(go_json({"a": "<ä>"}))
    {"a":"\u003cä\u003e"}
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.translate(_ESCAPES)


def check_code(inner: object) -> str:
    """The check code of the inner object of a report: SHA-256 of Go's JSON.

    >>> check_code(None)[:8]
    '74234e98'
    """
    return hashlib.sha256(go_json(inner).encode()).hexdigest()


def device_list(
    machine: Machine, health: MachineHealth, used: Collection[int]
) -> dict[str, str]:
    """The lists of free and faulty chips, keys in Go's order."""
    resource = machine.product.resource
    faults = sorted(health.faults.items())
    broken = [c for c, fault in faults if is_unhealthy(fault, used=c in used)]
    recovering = [c for c, fault in faults if fault.recovering]
    cut_off = [c for c, fault in faults if is_network_unhealthy(fault)]
    gone = {*broken, *recovering, *used}
    lists = {
        resource: _names(machine, (c for c in range(machine.chips) if c not in gone)),
        f"{resource}-Fault": go_json([_fault_entry(machine, *f) for f in faults]),
        f"{resource}-Unhealthy": _names(machine, broken),
    }
    if machine.product.chip_prefix in {"Ascend910", "npu"}:
        lists[f"{resource}-NetworkUnhealthy"] = _names(machine, cut_off)
        lists[f"{resource}-Recovering"] = _names(machine, recovering)
    return dict(sorted(lists.items()))


def device_report(
    machine: Machine, health: MachineHealth, used: Collection[int], now_s: int
) -> dict[str, Any]:
    """The device plugin's own ConfigMap."""
    inner = {"DeviceList": device_list(machine, health, used), "UpdateTime": now_s}
    content = {
        "DeviceInfo": inner,
        "SuperPodID": machine.superpod,
        "ServerIndex": machine.server_index,
        "CheckCode": check_code(inner),
    }
    data = {"DeviceInfoCfg": go_json(content)}
    if machine.has_switches:
        data["SwitchInfoCfg"] = go_json(_switch_entry(health, now_s))
    return _config_map(f"{DEVICES}{machine.name}", "kube-system", DIRECT_LABEL, data)


def node_report(machine: Machine, health: MachineHealth, now: str) -> dict[str, Any]:
    """The node daemon's own ConfigMap; it exists only while something is wrong."""
    inner = _node_entry(health)
    data = {
        "NodeInfo": go_json({"NodeInfo": inner, "CheckCode": check_code(inner)}),
        "updateTime": now,
    }
    return _config_map(f"{NODES}{machine.name}", "mindx-dl", DIRECT_LABEL, data)


def collected_device(
    machine: Machine, health: MachineHealth, used: Collection[int], now_s: int
) -> str:
    """The machine's entry in the cluster daemon's list of devices."""
    name = f"{DEVICES}{machine.name}"
    return _entry(
        name,
        {
            "DeviceList": device_list(machine, health, used),
            "UpdateTime": now_s,
            "CmName": name,
            "SuperPodID": machine.superpod,
            "RackID": 0,
            "ServerIndex": machine.server_index,
        },
    )


def collected_node(machine: Machine, health: MachineHealth, now_ms: int) -> str:
    """The machine's entry in the cluster daemon's list of faulty nodes."""
    name = f"{NODES}{machine.name}"
    entry = {**_node_entry(health), "CmName": name, "UpdateTime": now_ms}
    return _entry(name, entry)


def collected_switch(machine: Machine, health: MachineHealth, now_s: int) -> str:
    """The machine's entry in the cluster daemon's list of switches."""
    name = f"{SWITCHES}{machine.name}"
    return _entry(name, {**_switch_entry(health, now_s), "CmName": name})


def shards(entries: Iterable[str], limit: int = SHARD_BYTES) -> list[str]:
    """The entries as JSON objects of at most *limit* bytes each.

    >>> shards(['"a":1', '"b":2', '"c":3'], limit=13)
    ['{"a":1,"b":2}', '{"c":3}']
    """
    made: list[list[str]] = []
    size = limit
    for entry in entries:
        length = len(entry.encode()) + 1
        if not made or size + length > limit:
            made.append([])
            size = 1
        made[-1].append(entry)
        size += length
    return [f"{{{','.join(shard)}}}" for shard in made]


def collected_map(name: str, text: str) -> dict[str, Any]:
    """A ConfigMap of the cluster daemon: its one key is its name."""
    return _config_map(name, "mindx-dl", COLLECTED_LABEL, {name: text})


def _entry(name: str, value: object) -> str:
    return f"{go_json(name)}:{go_json(value)}"


def _names(machine: Machine, chips: Iterable[int]) -> str:
    return ",".join(machine.chip_name(chip) for chip in chips)


def _fault_entry(machine: Machine, chip: int, fault: ChipFault) -> dict[str, Any]:
    return {
        "fault_type": fault.kind.value,
        "npu_name": machine.chip_name(chip),
        "large_model_fault_level": fault.level,
        "fault_level": fault.level,
        "fault_handling": fault.level,
        "fault_code": fault.code,
        "fault_time_and_level_map": {
            fault.code: {"fault_time": fault.since_ms, "fault_level": fault.level}
        },
    }


def _node_entry(health: MachineHealth) -> dict[str, Any]:
    broken = health.node_status != "Healthy"
    device = {
        "DeviceType": "PSU",
        "DeviceId": 1,
        "FaultCode": ["03000009"],
        "FaultLevel": health.node_level,
    }
    return {
        "FaultDevList": [device] if broken else [],
        "NodeStatus": health.node_status,
    }


def _switch_entry(health: MachineHealth, now_s: int) -> dict[str, Any]:
    broken = health.switch_status != "Healthy"
    fault = {
        "EventType": 4,
        "AssembledFaultCode": "[0x00f1fef5,155904,na,na]",
        "PeerPortDevice": 0,
        "PeerPortId": 0,
        "SwitchChipId": 0,
        "SwitchPortId": 0,
        "Severity": 2,
        "Assertion": 1,
        "AlarmRaisedTime": now_s,
    }
    return {
        "FaultCode": [go_json(fault)] if broken else [],
        "FaultLevel": health.switch_level if broken else "",
        "UpdateTime": now_s,
        "NodeStatus": health.switch_status,
        "FaultTimeAndLevelMap": {},
    }


def _config_map(
    name: str, namespace: str, labels: Mapping[str, str], data: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "data": dict(data),
    }
