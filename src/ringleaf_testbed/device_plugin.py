"""What the device plugin answers to a kubelet that takes a pod in.

A kubelet asks for as many chips as the pod wants. The plugin does not know which pod
that is. It looks among the active pods of the node for those that carry exactly as many
chips in their annotation, takes the one with the smallest ``predicate-time``, marks
that one as served, and hands out the chips named there. So a scheduler that stamps
wrong times swaps chips between pods, and one that names the wrong number of chips gets
its pod failed.
"""

import json
import time
from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from ringleaf_testbed.hardware import Machine
from ringleaf_testbed.machine_state import AssignedPod, MachineState

SERVED: Final = str(2**64 - 1)
"""The predicate-time of a pod whose annotation was used up."""

TIME: Final = "predicate-time"
REAL: Final = "huawei.com/AscendReal"
KUBELET_IDS: Final = "huawei.com/kltDev"
RANK_TABLE: Final = "ascend.kubectl.kubernetes.io/ascend-{}-configuration"


class Refusal(Struct, frozen=True):
    """The kubelet does not take the pod."""

    reason: str
    words: str


class Grant(Struct, frozen=True):
    """The device plugin's answer: what to write on which pods."""

    writes: tuple[tuple[AssignedPod, dict[str, str]], ...]
    served: str
    """The uid of the pod whose annotation is used up."""


def admit(
    site: MachineState,
    pod: AssignedPod,
    clashes: list[str],
    *,
    gives_chips: bool,
    is_last: bool,
) -> Refusal | Grant | None:
    """What becomes of a pod; None when it is worth another try.

    With *gives_chips* a pod without an annotation gets chips all the same. Chips that
    are handed out twice, broken or unknown are added to *clashes*.
    """
    resource = site.machine.product.resource
    asked = pod.asked(resource)
    ids = site.free_ids()[:asked]
    if site.stalls:
        return None
    if site.refuses:
        words = "Allocate failed due to rpc error: code = Unavailable"
        return Refusal("UnexpectedAdmissionError", f"{words}, which is unexpected")
    if len(ids) < asked:
        words = f"Node didn't have enough resource: {resource}"
        return Refusal(f"OutOf{resource}", words)
    if gives_chips and not pod.annotation(resource):
        return _give(site, pod, ids)
    chosen = _oldest(site, asked)
    if chosen is not None:
        return _hand_out(site, pod, chosen, ids, clashes)
    words = f"Allocate failed due to no pod is annotated with {asked} of {resource}"
    return Refusal("UnexpectedAdmissionError", words) if is_last else None


def _hand_out(
    site: MachineState,
    pod: AssignedPod,
    chosen: AssignedPod,
    ids: list[int],
    clashes: list[str],
) -> Grant:
    """Use up the annotation of *chosen* for *pod*: mostly they are the same."""
    machine, uid = site.machine, pod.metadata.uid
    named = chosen.annotation(machine.product.resource) or ""
    chips = chip_ids(machine, named) or []
    clashes += _clashes(site, pod, named, chips)
    writes = {chosen.metadata.uid: (chosen, {TIME: SERVED})}
    if pod.annotation(REAL) is None:
        _pod, marks = writes.get(uid, (pod, {}))
        writes[uid] = (pod, {**marks, **_answer(machine, pod, chips, ids)})
    site.held[uid] = frozenset(chips)
    site.kubelet[uid] = frozenset(ids)
    site.served.add(chosen.metadata.uid)
    return Grant(tuple(writes.values()), chosen.metadata.uid)


def _give(site: MachineState, pod: AssignedPod, ids: list[int]) -> Refusal | Grant:
    """Grant the lowest chips that no pod holds and no annotation names."""
    machine, uid = site.machine, pod.metadata.uid
    gone = site.used.union(site.health.unhealthy(site.used))
    for other in site.pods.values():
        named = other.annotation(machine.product.resource) or ""
        gone |= {*(chip_ids(machine, named) or ())}
    chips = [chip for chip in range(machine.chips) if chip not in gone][: len(ids)]
    if len(chips) < len(ids):
        words = f"Node didn't have enough resource: {machine.product.resource}"
        return Refusal(f"OutOf{machine.product.resource}", words)
    site.held[uid] = frozenset(chips)
    site.kubelet[uid] = frozenset(ids)
    marks = {TIME: SERVED, **_answer(machine, pod, chips, ids)}
    return Grant(((pod, marks),), uid)


def _clashes(
    site: MachineState, pod: AssignedPod, named: str, chips: Collection[int]
) -> list[str]:
    """What is wrong with the *chips* that a pod is to get."""
    found = []
    where = f"{pod.metadata.namespace}/{pod.metadata.name} on {site.machine.name}"
    if len(set(chips)) != pod.asked(site.machine.product.resource):
        found.append(f"{where}: {named!r} are not the node's chips")
    if taken := sorted(site.used.intersection(chips)):
        owners = [
            site.pods[uid].path if uid in site.pods else uid
            for uid, held in site.held.items()
            if not held.isdisjoint(chips)
        ]
        now = time.strftime("%H:%M:%S", time.gmtime())
        held_by = f"of {', '.join(owners)} at {now}"
        found.append(f"{where}: chips {taken} are another pod's, {held_by}")
    if broken := sorted(set(site.health.unhealthy(site.used)).intersection(chips)):
        found.append(f"{where}: chips {broken} are broken")
    return found


def _oldest(site: MachineState, asked: int) -> AssignedPod | None:
    """The pod that the device plugin takes the kubelet to mean."""
    resource = site.machine.product.resource
    waiting = [
        pod
        for pod in site.pods.values()
        if pod.is_active
        and pod.asked(resource)
        and len((pod.annotation(resource) or "").split(",")) == asked
        and pod.annotation(resource)
        and pod.annotation(TIME) != SERVED
        and pod.metadata.uid not in site.served
    ]
    return min(waiting, key=_predicate_time, default=None)


def _predicate_time(pod: AssignedPod) -> int:
    text = pod.annotation(TIME) or ""
    return int(text) if text.isascii() and text.isdigit() else int(SERVED)


def chip_ids(machine: Machine, names: str) -> list[int] | None:
    """The chips that *names* lists; None when one of them is not the machine's."""
    known = {name: chip for chip, name in enumerate(machine.chip_names)}
    wanted = [name for name in names.split(",") if name]
    if not all(name in known for name in wanted):
        return None
    return [known[name] for name in wanted]


def _answer(
    machine: Machine, pod: AssignedPod, chips: Iterable[int], ids: Iterable[int]
) -> dict[str, str]:
    """The annotations that the device plugin writes, lists sorted as text."""
    chips = list(chips)
    devices = [
        {
            "device_id": str(chip),
            "device_ip": machine.chip_address(chip),
            "super_device_id": str(machine.super_device(chip)),
        }
        for chip in sorted(chips)
    ]
    table = {
        "pod_name": pod.metadata.name,
        "server_id": pod.metadata.uid,
        "server_ip": machine.address,
        "host_ip": machine.address,
        "super_pod_id": machine.superpod,
        "rack_id": 0,
        "devices": devices,
        "server_index": str(max(machine.server_index, 0)),
    }
    kind = "npu" if machine.product.chip_prefix == "npu" else "910"
    return {
        KUBELET_IDS: ",".join(sorted(map(machine.chip_name, ids))),
        REAL: ",".join(sorted(map(machine.chip_name, chips))),
        RANK_TABLE.format(kind): json.dumps(table, separators=(",", ":")),
    }
