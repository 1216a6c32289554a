"""Plays the daemons of Ascend nodes: device plugin, node daemon, cluster daemon.

It makes the nodes, answers pods that were bound to them as the device plugin does,
and reports chips, nodes and switches in ConfigMaps. Told to, it breaks them.

The device plugin's part, node by node: a kubelet that takes a pod in asks for as many
chips as the pod wants. The plugin does not know which pod that is. It looks among the
active pods of the node for those that carry exactly as many chips in their annotation,
takes the one with the smallest ``predicate-time``, marks that one as served, and hands
out the chips named there. So a scheduler that stamps wrong times swaps chips between
pods, and one that names the wrong number of chips gets its pod failed.
"""

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import StrEnum
from heapq import heappop, heappush
from http.client import HTTPException
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import yaml
from msgspec import Struct, field

from ringleaf_testbed import report
from ringleaf_testbed.client import OK, STRATEGIC, Client, Watch
from ringleaf_testbed.hardware import (
    Machine,
    fleet,
    leaves_config_map,
    node_object,
    plain_node,
    ready_condition,
)
from ringleaf_testbed.report import ChipFault, ChipFaultKind, MachineHealth
from ringleaf_testbed.source import TestbedError

SERVED: Final = str(2**64 - 1)
"""The predicate-time of a pod whose annotation was used up."""

TIME: Final = "predicate-time"
REAL: Final = "huawei.com/AscendReal"
KUBELET_IDS: Final = "huawei.com/kltDev"
RANK_TABLE: Final = "ascend.kubectl.kubernetes.io/ascend-{}-configuration"
NOT_READY: Final = "ringleaf.io/not-ready"
"""KWOK's stages leave a node with this annotation as it is."""

TRIES: Final = 3
WORKERS: Final = 8
OVER: Final = frozenset({"Succeeded", "Failed"})
GONE, EXISTS = 404, 409
REFRESH_S: Final = 300.0
"""Reports are written again after this long, changed or not."""


class Layout(StrEnum):
    """Which reports are written."""

    COLLECTED = "collected"
    DIRECT = "direct"
    BOTH = "both"


class _Object(Struct, rename="camel"):
    pass


class _Metadata(_Object):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    annotations: dict[str, str] | None = None


class _Resources(_Object):
    limits: dict[str, str] | None = None


class _Container(_Object):
    resources: _Resources = field(default_factory=_Resources)


class _Spec(_Object):
    node_name: str = ""
    containers: list[_Container] = []


class _Status(_Object):
    phase: str = "Pending"


class AssignedPod(_Object):
    """What the device plugin looks at."""

    metadata: _Metadata = field(default_factory=_Metadata)
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)

    @property
    def path(self) -> str:
        """Where it is in the API."""
        return f"/api/v1/namespaces/{self.metadata.namespace}/pods/{self.metadata.name}"

    @property
    def is_active(self) -> bool:
        """Whether it may still run."""
        return self.status.phase not in OVER

    @property
    def is_left_over(self) -> bool:
        """Whether only the kubelet keeps it: it is asked to end, and has no time left.

        An API server does both at once, unless it is interrupted.
        """
        meta = self.metadata
        no_time = meta.deletion_grace_period_seconds == 0 or not self.is_active
        return meta.deletion_timestamp is not None and no_time

    def annotation(self, key: str) -> str | None:
        """What its annotation *key* says."""
        return (self.metadata.annotations or {}).get(key)

    def asked(self, resource: str) -> int:
        """How many chips it wants."""
        limits = (
            container.resources.limits or {} for container in self.spec.containers
        )
        return sum(int(limit.get(resource, 0)) for limit in limits)


class _Event(_Object):
    type: str
    object: msgspec.Raw


class _End(Struct, frozen=True):
    """Nothing of the pod runs any more."""


class _Refusal(Struct, frozen=True):
    """The kubelet does not take the pod."""

    reason: str
    words: str


class _Grant(Struct, frozen=True):
    """The device plugin's answer: what to write on which pods."""

    writes: tuple[tuple[AssignedPod, dict[str, str]], ...]
    served: str
    """The uid of the pod whose annotation is used up."""


class _Site:
    """One machine: its health, its pods, and the chips of each pod."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.health = MachineHealth(faults={})
        self.pods: dict[str, AssignedPod] = {}
        self.held: dict[str, frozenset[int]] = {}
        self.kubelet: dict[str, frozenset[int]] = {}
        self.refused: set[str] = set()
        self.served: set[str] = set()
        self.left_over: dict[str, AssignedPod] = {}
        self.gone: set[str] = set()
        """Uids of pods that are over: no older list must bring them back."""
        self.refuses = False
        """Whether the device plugin refuses all pods."""
        self.stalls = False
        """Whether pods are taken, and never come to run."""
        self.lock = threading.RLock()

    @property
    def used(self) -> set[int]:
        """The chips that pods hold."""
        return {chip for chips in self.held.values() for chip in chips}

    def free_ids(self) -> list[int]:
        """The ids that the kubelet may hand out; it knows nothing of real chips."""
        taken = {chip for chips in self.kubelet.values() for chip in chips}
        gone = taken.union(self.health.unhealthy(self.used))
        return [chip for chip in range(self.machine.chips) if chip not in gone]

    def drop(self, uid: str) -> bool:
        """Forget a pod; whether that freed chips."""
        self.pods.pop(uid, None)
        self.left_over.pop(uid, None)
        self.refused.discard(uid)
        self.served.discard(uid)
        return self.take_back(uid)

    def take_back(self, uid: str) -> bool:
        """Free what a pod holds; whether it held anything."""
        self.kubelet.pop(uid, None)
        return self.held.pop(uid, None) is not None


class Actor:
    """The daemons of a set of machines, as threads, for as long as it is open.

    Args:
        client: A connection to the API server, as an administrator.
        layout: Which reports are written.
        retry_s: How long the device plugin waits between its tries.
        report_s: How often changed reports are written.
        runs_pods: Say that served pods run, where no KWOK does.
        gives_chips: Choose chips for pods on which no scheduler has written any, as a
            device plugin does that is told to work without one.
        workers: How many threads answer pods and write reports.

    """

    def __init__(
        self,
        client: Client,
        *,
        layout: Layout = Layout.COLLECTED,
        retry_s: float = 1.0,
        report_s: float = 1.0,
        runs_pods: bool = False,
        gives_chips: bool = False,
        workers: int = WORKERS,
    ) -> None:
        self.client = client
        self.clashes: list[str] = []
        """Chips handed out twice, broken, or unheard of: the scheduler's mistakes."""
        self.failed: list[str] = []
        """Pods that were refused, and why."""
        self.served = 0
        self._layout = layout
        self._retry_s = retry_s
        self._report_s = report_s
        self._runs_pods = runs_pods
        self._gives_chips = gives_chips
        self._sites: dict[str, _Site] = {}
        self._stopping = threading.Event()
        self._queues: list[SimpleQueue[tuple[str, str]]] = [
            SimpleQueue() for _ in range(workers)
        ]
        self._threads: list[threading.Thread] = []
        self._watch: Watch | None = None
        self._changed: set[str] = set()
        self._changed_lock = threading.Lock()
        self._writing = threading.Lock()
        self._entries: dict[str, dict[str, str]] = {
            "device": {},
            "node": {},
            "switch": {},
        }
        self._written: dict[str, str] = {}
        self._node_reports: set[str] = set()

    def __enter__(self) -> Self:
        self._watch_anew()
        names = ["watch", "report", *(f"worker-{i}" for i in range(len(self._queues)))]
        tasks: list[Callable[[], None]] = [self._keep_watching, self._keep_reporting]
        tasks += [lambda q=queue: self._keep_serving(q) for queue in self._queues]  # type: ignore[misc]
        for name, task in zip(names, tasks, strict=True):
            thread = threading.Thread(target=task, name=f"actor-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        if self._watch is not None:
            self._watch.close()
        for thread in self._threads:
            thread.join(timeout=10)

    # Nodes

    def add_machines(
        self,
        machines: Sequence[Machine],
        *,
        leaf_size: int | None = None,
        single_layer: bool = False,
    ) -> None:
        """Make the nodes, many at once, report them, and list their leaves."""
        for machine in machines:
            self._sites[machine.name] = _Site(machine)
        new = {machine.name for machine in machines}
        # Of others there is newer news than this list.
        self._see(*(pod for pod in self._seen_pods() if pod.spec.node_name in new))
        self._each(self._make_node, machines)
        if leaf_size is not None:
            self._put(leaves_config_map(machines, leaf_size, single_layer=single_layer))
        self._mark(machine.name for machine in machines)
        self.write_reports()

    def add_plain_node(self, name: str, address: str = "10.250.0.1") -> None:
        """Make a node without chips."""
        self._create("/api/v1/nodes", plain_node(name, address))

    def remove_node(self, name: str) -> Machine:
        """Delete the node and its reports; gives back what ``add_machines`` takes."""
        machine = self._sites.pop(name).machine
        self._delete(f"/api/v1/nodes/{name}")
        with self._writing:
            for entries in self._entries.values():
                entries.pop(name, None)
        for namespace, prefix in (
            ("kube-system", report.DEVICES),
            ("mindx-dl", report.NODES),
        ):
            self._delete(f"/api/v1/namespaces/{namespace}/configmaps/{prefix}{name}")
        self._node_reports.discard(name)
        self.write_reports()
        return machine

    def set_ready(self, name: str, *, ready: bool) -> None:
        """Let the node be ready or not."""
        note = {"metadata": {"annotations": {NOT_READY: None if ready else "true"}}}
        self.client.ask("PATCH", f"/api/v1/nodes/{name}", note)
        condition = {"status": {"conditions": [ready_condition(ready=ready)]}}
        path = f"/api/v1/nodes/{name}/status"
        self.client.ask("PATCH", path, condition, content_type=STRATEGIC)

    # Faults

    def fail_chips(
        self, node: str, chips: Iterable[int], fault: ChipFault | None = None
    ) -> None:
        """Break chips of a node, and report it at once."""
        now_ms = time.time_ns() // 1_000_000
        fault = msgspec.structs.replace(fault or ChipFault(), since_ms=now_ms)
        with self._changing(node) as site:
            site.health.faults.update(dict.fromkeys(chips, fault))

    def cut_off_chips(self, node: str, chips: Iterable[int]) -> None:
        """Break the network of chips of a node, and report it at once."""
        fault = ChipFault(
            kind=ChipFaultKind.NETWORK, level="PreSeparateNPU", code="81078603"
        )
        self.fail_chips(node, chips, fault)

    def recover_chips(self, node: str, chips: Iterable[int] | None = None) -> None:
        """Mend the chips, or all of the node, and report it at once."""
        with self._changing(node) as site:
            for chip in list(site.health.faults) if chips is None else chips:
                site.health.faults.pop(chip, None)

    def fail_node(
        self, node: str, status: str = "UnHealthy", level: str = "SeparateFault"
    ) -> None:
        """Let the node daemon report the node as broken."""
        with self._changing(node) as site:
            site.health.node_status, site.health.node_level = status, level

    def fail_nodes_at_once(self, nodes: Collection[str]) -> None:
        """Let nodes be reported as broken; the cluster daemon does so in one write."""
        for site in (self._sites[node] for node in nodes):
            with site.lock:
                health = site.health
                health.node_status, health.node_level = "UnHealthy", "SeparateFault"
        self._mark(nodes)
        self.write_reports()

    def recover_node(self, node: str) -> None:
        """Let the node daemon report the node as well."""
        self.fail_node(node, "Healthy")

    def fail_switch(
        self, node: str, status: str = "UnHealthy", level: str = "SeparateFault"
    ) -> None:
        """Let the node's own switches be reported as broken."""
        with self._changing(node) as site:
            site.health.switch_status, site.health.switch_level = status, level

    def recover_switch(self, node: str) -> None:
        """Let the node's own switches be reported as well."""
        self.fail_switch(node, "Healthy")

    def refuse_pods(self, node: str, *, refuses: bool = True) -> None:
        """Let the kubelet refuse every new pod with chips, or take them again.

        Nothing reports it: the device plugin is there, and fails when it is asked.
        """
        with self._changing(node) as site:
            site.refuses = refuses

    def stall_pods(self, node: str, *, stalls: bool = True) -> None:
        """Let new pods with chips never come to run, or run at last."""
        with self._changing(node) as site:
            site.stalls = stalls

    # What it knows

    def chips_of(self, node: str) -> int:
        """How many chips a node of ours has; 0 for any other."""
        site = self._sites.get(node)
        return site.machine.chips if site else 0

    def held(self, node: str) -> dict[str, frozenset[int]]:
        """Pod uid -> the chips that it was handed on *node*."""
        site = self._sites[node]
        with site.lock:
            return dict(site.held)

    def write_reports(self) -> None:
        """Write the reports of the nodes that changed."""
        with self._writing:
            with self._changed_lock:
                names, self._changed = sorted(self._changed), set()
            sites = [self._sites[name] for name in names if name in self._sites]
            if self._layout is not Layout.COLLECTED:
                self._each(self._write_direct, sites)
            if self._layout is not Layout.DIRECT:
                self._collect(sites)
                self._write_collected()

    @contextmanager
    def _changing(self, node: str) -> Iterator[_Site]:
        site = self._sites[node]
        with site.lock:
            before = site.health.unhealthy(site.used)
            yield site
            after = site.health.unhealthy(site.used)
        if before != after:
            fresh = node_object(site.machine, unhealthy=len(after))["status"]
            amounts = {"status": {"allocatable": fresh["allocatable"]}}
            self.client.ask("PATCH", f"/api/v1/nodes/{node}/status", amounts)
        self._mark([node])
        self.write_reports()

    # Pods

    def _keep_watching(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except (OSError, HTTPException, TestbedError, msgspec.DecodeError):
                self._stopping.wait(0.2)  # the server is away, or the watch too old

    def _watch_anew(self) -> None:
        pods, version = self._list_pods()
        known = {pod.metadata.uid for pod in pods}
        for name, site in self._sites.items():
            with site.lock:
                gone = [uid for uid in site.pods if uid not in known]
                if sum(site.drop(uid) for uid in gone):
                    self._mark([name])
        self._see(*pods)
        self._watch = self.client.watch(
            "/api/v1/pods", version, fieldSelector="spec.nodeName!="
        )

    def _follow(self) -> None:
        if self._watch is None:
            self._watch_anew()
        assert self._watch is not None
        if self._stopping.is_set():
            self._watch.close()  # it was opened after ``close`` had looked for it
        decode = msgspec.json.Decoder(_Event).decode
        decode_pod = msgspec.json.Decoder(AssignedPod).decode
        try:
            for line in self._watch:
                event = decode(line)
                if event.type == "ERROR":
                    return
                if event.type == "BOOKMARK":
                    continue
                pod = decode_pod(event.object)
                if event.type == "DELETED":
                    self._forget(pod)
                else:
                    self._see(pod)
        finally:
            self._watch = None

    def _list_pods(self, **query: str) -> tuple[list[AssignedPod], str]:
        chosen = query or {"fieldSelector": "spec.nodeName!="}
        items, version = self.client.list_all("/api/v1/pods", **chosen)
        return msgspec.convert(items, list[AssignedPod]), version

    def _seen_pods(self) -> Iterable[AssignedPod]:
        """The pods that were bound before there was a machine for them."""
        return self._list_pods()[0] if self._threads else ()

    def _see(self, *pods: AssignedPod) -> None:
        """Take note of bound pods; those not served yet come to their worker."""
        for pod in [pod for pod in pods if self._note(pod)]:
            node = pod.spec.node_name
            queue = self._queues[hash(node) % len(self._queues)]
            queue.put((node, pod.metadata.uid))

    def _note(self, pod: AssignedPod) -> bool:
        """Take note of a bound pod; whether there is something to do for it."""
        uid = pod.metadata.uid
        site = self._sites.get(pod.spec.node_name)
        if site is None or not pod.asked(site.machine.product.resource):
            return False
        with site.lock:
            if not pod.is_active:
                self._forget(pod)
            if pod.is_left_over:
                site.left_over[uid] = pod
                return True
            if not pod.is_active or uid in site.gone:
                return False
            is_new = uid not in site.pods
            was_served = is_new and pod.annotation(TIME) == SERVED
            is_leaving = pod.metadata.deletion_timestamp is not None
            site.pods[uid] = pod
            if was_served:
                self._remember(site, pod)
            is_waiting = is_new and not was_served
            return is_waiting or (is_leaving and self._runs_pods)

    def _forget(self, pod: AssignedPod) -> None:
        site = self._sites.get(pod.spec.node_name)
        if site is None:
            return
        with site.lock:
            site.gone.add(pod.metadata.uid)
            if site.drop(pod.metadata.uid):
                self._mark([site.machine.name])

    def _remember(self, site: _Site, pod: AssignedPod) -> None:
        """A pod that was served before this actor was there keeps its chips."""
        named = pod.annotation(REAL) or pod.annotation(site.machine.product.resource)
        chips = _chip_ids(site.machine, named or "")
        ids = _chip_ids(site.machine, pod.annotation(KUBELET_IDS) or "") or chips
        site.held[pod.metadata.uid] = frozenset(chips or ())
        site.kubelet[pod.metadata.uid] = frozenset(ids or ())
        self._mark([site.machine.name])

    def _keep_serving(self, queue: SimpleQueue[tuple[str, str]]) -> None:
        """One worker: pods of a node in the order in which they came."""
        again: list[tuple[float, int, str, str]] = []
        while not self._stopping.is_set():
            now = time.monotonic()
            if again and again[0][0] <= now:
                _due, attempt, node, uid = heappop(again)
            else:
                wait_s = min(again[0][0] - now, 0.2) if again else 0.2
                try:
                    (node, uid), attempt = queue.get(timeout=wait_s), 1
                except Empty:
                    continue
            try:
                is_done = self._serve(node, uid, attempt)
            except (OSError, HTTPException, TestbedError):
                is_done, attempt = False, attempt - 1  # the server is away: no try
            if not is_done:
                due = time.monotonic() + self._retry_s
                heappush(again, (due, attempt + 1, node, uid))

    def _serve(self, node: str, uid: str, attempt: int) -> bool:
        """Play kubelet and device plugin for one pod; whether that is over.

        Only this worker serves the node, so nothing is locked while it writes.
        """
        site = self._sites.get(node)
        if site is None:
            return True
        if attempt == TRIES:
            self._look_again(site)
        with site.lock:
            pod = site.left_over.get(uid) or site.pods.get(uid)
            if pod is None:
                return True
            answer = self._answer(site, pod, attempt)
        match answer:
            case bool():
                return answer
            case _End():
                self._finish(pod)
            case _Refusal():
                self._refuse(site, pod, answer)
            case _Grant():
                self._grant(site, pod, answer)
        return True

    def _answer(
        self, site: _Site, pod: AssignedPod, attempt: int
    ) -> _End | _Refusal | _Grant | bool:
        """What becomes of a pod; else whether that is over already."""
        uid = pod.metadata.uid
        if uid in site.left_over:
            return _End() if attempt > 1 else False  # mostly it is gone by then
        if pod.metadata.deletion_timestamp and self._runs_pods:
            return _End()
        if uid in site.held or uid in site.refused:
            return True
        return self._admit(site, pod, is_last=attempt == TRIES) or False

    def _finish(self, pod: AssignedPod) -> None:
        """Delete a pod for good, as a kubelet does once nothing of it runs."""
        uid = pod.metadata.uid
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        status, words = self.client.request("DELETE", pod.path, body)
        if status not in OK and status not in {GONE, EXISTS}:
            raise TestbedError(f"DELETE {pod.path}: {status}, {words}")

    def _look_again(self, site: _Site) -> None:
        """The last try is against the API server."""
        node = site.machine.name
        pods, _version = self._list_pods(fieldSelector=f"spec.nodeName={node}")
        with site.lock:
            for pod in pods:
                if pod.metadata.uid in site.pods and pod.is_active:
                    site.pods[pod.metadata.uid] = pod

    def _admit(
        self, site: _Site, pod: AssignedPod, *, is_last: bool
    ) -> _Refusal | _Grant | None:
        """What becomes of a pod; None when it is worth another try."""
        resource = site.machine.product.resource
        asked = pod.asked(resource)
        ids = site.free_ids()[:asked]
        if site.stalls:
            return None
        if site.refuses:
            words = "Allocate failed due to rpc error: code = Unavailable"
            return _Refusal("UnexpectedAdmissionError", f"{words}, which is unexpected")
        if len(ids) < asked:
            words = f"Node didn't have enough resource: {resource}"
            return _Refusal(f"OutOf{resource}", words)
        if self._gives_chips and not pod.annotation(resource):
            return self._give(site, pod, ids)
        chosen = _oldest(site, asked)
        if chosen is not None:
            return self._hand_out(site, pod, chosen, ids)
        words = f"Allocate failed due to no pod is annotated with {asked} of {resource}"
        return _Refusal("UnexpectedAdmissionError", words) if is_last else None

    def _hand_out(
        self, site: _Site, pod: AssignedPod, chosen: AssignedPod, ids: list[int]
    ) -> _Grant:
        """Use up the annotation of *chosen* for *pod*: mostly they are the same."""
        machine, uid = site.machine, pod.metadata.uid
        named = chosen.annotation(machine.product.resource) or ""
        chips = _chip_ids(machine, named) or []
        self._note_clashes(site, pod, named, chips)
        writes = {chosen.metadata.uid: (chosen, {TIME: SERVED})}
        if pod.annotation(REAL) is None:
            _pod, marks = writes.get(uid, (pod, {}))
            writes[uid] = (pod, {**marks, **_answer(machine, pod, chips, ids)})
        site.held[uid] = frozenset(chips)
        site.kubelet[uid] = frozenset(ids)
        site.served.add(chosen.metadata.uid)
        return _Grant(tuple(writes.values()), chosen.metadata.uid)

    def _give(self, site: _Site, pod: AssignedPod, ids: list[int]) -> _Refusal | _Grant:
        """Grant the lowest chips that no pod holds and no annotation names."""
        machine, uid = site.machine, pod.metadata.uid
        gone = site.used.union(site.health.unhealthy(site.used))
        for other in site.pods.values():
            named = other.annotation(machine.product.resource) or ""
            gone |= {*(_chip_ids(machine, named) or ())}
        chips = [chip for chip in range(machine.chips) if chip not in gone][: len(ids)]
        if len(chips) < len(ids):
            words = f"Node didn't have enough resource: {machine.product.resource}"
            return _Refusal(f"OutOf{machine.product.resource}", words)
        site.held[uid] = frozenset(chips)
        site.kubelet[uid] = frozenset(ids)
        marks = {TIME: SERVED, **_answer(machine, pod, chips, ids)}
        return _Grant(((pod, marks),), uid)

    def _grant(self, site: _Site, pod: AssignedPod, grant: _Grant) -> None:
        uid = pod.metadata.uid
        try:
            for written, annotations in grant.writes:
                self._annotate(written, annotations)
            if self._runs_pods:
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                self._set_status(pod, {"phase": "Running", "startTime": now})
        except BaseException:
            with site.lock:
                site.take_back(uid)
                site.served.discard(grant.served)
            raise
        self.served += 1
        self._mark([site.machine.name])
        with site.lock:
            if uid not in site.pods:  # deleted meanwhile
                site.drop(uid)

    def _note_clashes(
        self, site: _Site, pod: AssignedPod, named: str, chips: Collection[int]
    ) -> None:
        where = f"{pod.metadata.namespace}/{pod.metadata.name} on {site.machine.name}"
        if len(set(chips)) != pod.asked(site.machine.product.resource):
            self.clashes.append(f"{where}: {named!r} are not the node's chips")
        if taken := sorted(site.used.intersection(chips)):
            owners = [
                site.pods[uid].path if uid in site.pods else uid
                for uid, held in site.held.items()
                if not held.isdisjoint(chips)
            ]
            now = time.strftime("%H:%M:%S", time.gmtime())
            held_by = f"of {', '.join(owners)} at {now}"
            self.clashes.append(f"{where}: chips {taken} are another pod's, {held_by}")
        if broken := sorted(set(site.health.unhealthy(site.used)).intersection(chips)):
            self.clashes.append(f"{where}: chips {broken} are broken")

    def _annotate(self, pod: AssignedPod, annotations: dict[str, str]) -> None:
        """Write annotations, unless the pod is gone or another has its name."""
        change = {"metadata": {"uid": pod.metadata.uid, "annotations": annotations}}
        status, words = self.client.request("PATCH", pod.path, change)
        if status not in OK and status not in {GONE, EXISTS}:
            raise TestbedError(f"PATCH {pod.path}: {status}, {words}")

    def _refuse(self, site: _Site, pod: AssignedPod, refusal: _Refusal) -> None:
        words = f"Pod was rejected: {refusal.words}"
        status = {"phase": "Failed", "reason": refusal.reason, "message": words}
        self._set_status(pod, status)
        with site.lock:
            site.refused.add(pod.metadata.uid)
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        self.failed.append(f"{name}: {refusal.reason}")

    def _set_status(self, pod: AssignedPod, status: dict[str, str]) -> None:
        change = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        answer, words = self.client.request("PATCH", f"{pod.path}/status", change)
        if answer not in OK and answer not in {GONE, EXISTS}:
            raise TestbedError(f"PATCH {pod.path}/status: {answer}, {words}")

    # Reports

    def _mark(self, names: Iterable[str]) -> None:
        with self._changed_lock:
            self._changed.update(names)

    def _keep_reporting(self) -> None:
        refreshed = time.monotonic()
        while not self._stopping.wait(self._report_s):
            if time.monotonic() - refreshed > REFRESH_S:
                self._mark(list(self._sites))
                refreshed = time.monotonic()
            with self._changed_lock:
                names = set(self._changed)
            if not names:
                continue
            try:
                self.write_reports()
            except (OSError, HTTPException, TestbedError):
                self._mark(names)  # the server is away

    def _write_direct(self, site: _Site) -> None:
        name = site.machine.name
        with site.lock:
            now_s = int(time.time())
            device = report.device_report(site.machine, site.health, site.used, now_s)
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s))
            node = report.node_report(site.machine, site.health, stamp)
            broken = site.health.node_status != "Healthy"
        self._put(device)
        if broken:
            self._node_reports.add(name)
            self._put(node)
        elif name in self._node_reports:
            self._node_reports.discard(name)
            path = f"/api/v1/namespaces/mindx-dl/configmaps/{report.NODES}{name}"
            self._delete(path)

    def _collect(self, sites: Iterable[_Site]) -> None:
        now_ms = time.time_ns() // 1_000_000
        for site in sites:
            machine, name = site.machine, site.machine.name
            with site.lock:
                health = site.health
                self._entries["device"][name] = report.collected_device(
                    machine, health, site.used, now_ms // 1000
                )
                self._entries["node"].pop(name, None)
                if health.node_status != "Healthy":
                    entry = report.collected_node(machine, health, now_ms)
                    self._entries["node"][name] = entry
                if machine.has_switches:
                    entry = report.collected_switch(machine, health, now_ms // 1000)
                    self._entries["switch"][name] = entry

    def _write_collected(self) -> None:
        texts: dict[str, str] = dict.fromkeys(self._written, "")
        for kind in ("device", "switch"):
            entries = self._entries[kind]
            cut = report.shards(entries[name] for name in sorted(entries))
            texts |= {f"cluster-info-{kind}-{i}": text for i, text in enumerate(cut)}
        nodes = self._entries["node"]
        whole = report.shards((nodes[name] for name in sorted(nodes)), limit=1 << 30)
        texts["cluster-info-node-cm"] = whole[0] if whole else ""
        for name, text in texts.items():
            if self._written.get(name) != text:
                self._put(report.collected_map(name, text))
                self._written[name] = text

    # The API server

    def _make_node(self, machine: Machine) -> None:
        self._create("/api/v1/nodes", node_object(machine))

    def _each(self, task: Callable[[Any], None], items: Collection[Any]) -> None:
        if len(items) <= 1:
            for item in items:
                task(item)
            return
        with ThreadPoolExecutor(len(self._queues)) as pool:
            for _done in pool.map(task, items):
                pass

    def _create(self, path: str, manifest: dict[str, Any]) -> None:
        status, answer = self.client.request("POST", path, manifest)
        if status not in OK and status != EXISTS:
            raise TestbedError(f"POST {path}: {status}, {answer}")

    def _put(self, manifest: dict[str, Any]) -> None:
        """Write a ConfigMap, whether it is there or not."""
        metadata = manifest["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/configmaps"
        status, answer = self.client.request(
            "PUT", f"{path}/{metadata['name']}", manifest
        )
        if status == GONE:
            status, answer = self.client.request("POST", path, manifest)
        if status not in OK:
            raise TestbedError(f"{path}/{metadata['name']}: {status}, {answer}")

    def _delete(self, path: str) -> None:
        status, answer = self.client.request("DELETE", path)
        if status not in OK and status != GONE:
            raise TestbedError(f"DELETE {path}: {status}, {answer}")


def _oldest(site: _Site, asked: int) -> AssignedPod | None:
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


def _chip_ids(machine: Machine, names: str) -> list[int] | None:
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


def connect(kubeconfig: Path) -> Client:
    """A connection as a kubeconfig of the testbed describes it."""
    content = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    cluster = content["clusters"][0]["cluster"]
    token = content["users"][0]["user"]["token"]
    return Client(cluster["server"], token, Path(cluster["certificate-authority"]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the daemons of some machines until a signal comes."""
    parser = argparse.ArgumentParser(prog="python -m ringleaf_testbed.actor")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--machines", nargs="+", metavar="PRODUCT=COUNT", required=True)
    parser.add_argument("--leaf-size", type=int, help="machines per leaf switch")
    parser.add_argument("--layout", type=Layout, default=Layout.COLLECTED)
    parser.add_argument("--runs-pods", action="store_true", help="where no KWOK does")
    told = parser.parse_args(arguments)
    machines: list[Machine] = []
    for part in told.machines:
        product, _sign, count = part.partition("=")
        machines += fleet(product, int(count), first=len(machines))
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    with Actor(
        connect(told.kubeconfig), layout=told.layout, runs_pods=told.runs_pods
    ) as actor:
        actor.add_machines(machines, leaf_size=told.leaf_size)
        sys.stdout.write(f"actor: {len(machines)} machines\n")
        sys.stdout.flush()
        done.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
