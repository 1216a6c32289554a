"""Plays the daemons of Ascend nodes: device plugin, node daemon, cluster daemon.

It makes the nodes, answers pods that were bound to them as the device plugin does,
and reports chips, nodes and switches in ConfigMaps. Told to, it breaks them.
"""

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from heapq import heappop, heappush
from http.client import HTTPException
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import yaml
from msgspec import Struct

from ringleaf_testbed.client import OK, STRATEGIC, Client, Watch
from ringleaf_testbed.device_plugin import (
    KUBELET_IDS,
    REAL,
    SERVED,
    TIME,
    Grant,
    Refusal,
    admit,
    chip_ids,
)
from ringleaf_testbed.hardware import (
    Machine,
    fleet,
    leaves_config_map,
    node_object,
    plain_node,
    ready_condition,
)
from ringleaf_testbed.machine_state import AssignedPod, MachineState
from ringleaf_testbed.report import ChipFault, ChipFaultKind
from ringleaf_testbed.reporter import Layout, Reporter
from ringleaf_testbed.source import TestbedError

NOT_READY: Final = "ringleaf.io/not-ready"
"""KWOK's stages leave a node with this annotation as it is."""

TRIES: Final = 3
WORKERS: Final = 8
GONE, EXISTS = 404, 409


class _Event(Struct):
    type: str
    object: msgspec.Raw


class _End(Struct, frozen=True):
    """Nothing of the pod runs any more."""


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
        self._retry_s = retry_s
        self._report_s = report_s
        self._runs_pods = runs_pods
        self._gives_chips = gives_chips
        self._sites: dict[str, MachineState] = {}
        self._stopping = threading.Event()
        self._queues: list[SimpleQueue[tuple[str, str]]] = [
            SimpleQueue() for _ in range(workers)
        ]
        self._threads: list[threading.Thread] = []
        self._watch: Watch | None = None
        self._reports = Reporter(client, layout, self._sites, workers)

    def __enter__(self) -> Self:
        self._watch_anew()
        names = ["watch", "report", *(f"worker-{i}" for i in range(len(self._queues)))]
        tasks: list[Callable[[], None]] = [
            self._keep_watching,
            lambda: self._reports.keep_writing(self._stopping, self._report_s),
        ]
        tasks += [partial(self._keep_serving, queue) for queue in self._queues]
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
            self._sites[machine.name] = MachineState(machine)
        new = {machine.name for machine in machines}
        # Of others there is newer news than this list.
        self._see(*(pod for pod in self._seen_pods() if pod.spec.node_name in new))
        self._reports.each(self._make_node, machines)
        if leaf_size is not None:
            self._reports.put(
                leaves_config_map(machines, leaf_size, single_layer=single_layer)
            )
        self._reports.mark(machine.name for machine in machines)
        self.write_reports()

    def add_plain_node(self, name: str, address: str = "10.250.0.1") -> None:
        """Make a node without chips."""
        self._create("/api/v1/nodes", plain_node(name, address))

    def remove_node(self, name: str) -> Machine:
        """Delete the node and its reports; gives back what ``add_machines`` takes."""
        machine = self._sites.pop(name).machine
        self._reports.delete(f"/api/v1/nodes/{name}")
        self._reports.remove(name)
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
        self._reports.mark(nodes)
        self.write_reports()

    def recover_node(self, node: str) -> None:
        """Let the node daemon report the node as healthy."""
        self.fail_node(node, "Healthy")

    def fail_switch(
        self, node: str, status: str = "UnHealthy", level: str = "SeparateFault"
    ) -> None:
        """Let the node's own switches be reported as broken."""
        with self._changing(node) as site:
            site.health.switch_status, site.health.switch_level = status, level

    def recover_switch(self, node: str) -> None:
        """Let the node's own switches be reported as healthy."""
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
        self._reports.write()

    @contextmanager
    def _changing(self, node: str) -> Iterator[MachineState]:
        site = self._sites[node]
        with site.lock:
            before = site.health.unhealthy(site.used)
            yield site
            after = site.health.unhealthy(site.used)
        if before != after:
            fresh = node_object(site.machine, unhealthy=len(after))["status"]
            amounts = {"status": {"allocatable": fresh["allocatable"]}}
            self.client.ask("PATCH", f"/api/v1/nodes/{node}/status", amounts)
        self._reports.mark([node])
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
                    self._reports.mark([name])
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
        """Record bound pods, and queue those that are not served yet."""
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
                self._reports.mark([site.machine.name])

    def _remember(self, site: MachineState, pod: AssignedPod) -> None:
        """A pod that was served before this actor was there keeps its chips."""
        named = pod.annotation(REAL) or pod.annotation(site.machine.product.resource)
        chips = chip_ids(site.machine, named or "")
        ids = chip_ids(site.machine, pod.annotation(KUBELET_IDS) or "") or chips
        site.held[pod.metadata.uid] = frozenset(chips or ())
        site.kubelet[pod.metadata.uid] = frozenset(ids or ())
        self._reports.mark([site.machine.name])

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
            case Refusal():
                self._refuse(site, pod, answer)
            case Grant():
                self._grant(site, pod, answer)
        return True

    def _answer(
        self, site: MachineState, pod: AssignedPod, attempt: int
    ) -> _End | Refusal | Grant | bool:
        """What becomes of a pod; else whether that is over already."""
        uid = pod.metadata.uid
        if uid in site.left_over:
            return _End() if attempt > 1 else False  # mostly it is gone by then
        if pod.metadata.deletion_timestamp and self._runs_pods:
            return _End()
        if uid in site.held or uid in site.refused:
            return True
        is_last = attempt == TRIES
        answer = admit(
            site, pod, self.clashes, gives_chips=self._gives_chips, is_last=is_last
        )
        return answer or False

    def _finish(self, pod: AssignedPod) -> None:
        """Delete a pod for good, as a kubelet does once nothing of it runs."""
        uid = pod.metadata.uid
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        status, words = self.client.request("DELETE", pod.path, body)
        if status not in OK and status not in {GONE, EXISTS}:
            raise TestbedError(f"DELETE {pod.path}: {status}, {words}")

    def _look_again(self, site: MachineState) -> None:
        """The last try is against the API server."""
        node = site.machine.name
        pods, _version = self._list_pods(fieldSelector=f"spec.nodeName={node}")
        with site.lock:
            for pod in pods:
                if pod.metadata.uid in site.pods and pod.is_active:
                    site.pods[pod.metadata.uid] = pod

    def _grant(self, site: MachineState, pod: AssignedPod, grant: Grant) -> None:
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
        self._reports.mark([site.machine.name])
        with site.lock:
            if uid not in site.pods:  # deleted meanwhile
                site.drop(uid)

    def _annotate(self, pod: AssignedPod, annotations: dict[str, str]) -> None:
        """Write annotations, unless the pod is gone or another has its name."""
        change = {"metadata": {"uid": pod.metadata.uid, "annotations": annotations}}
        status, words = self.client.request("PATCH", pod.path, change)
        if status not in OK and status not in {GONE, EXISTS}:
            raise TestbedError(f"PATCH {pod.path}: {status}, {words}")

    def _refuse(self, site: MachineState, pod: AssignedPod, refusal: Refusal) -> None:
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

    # The API server

    def _make_node(self, machine: Machine) -> None:
        self._create("/api/v1/nodes", node_object(machine))

    def _create(self, path: str, manifest: dict[str, Any]) -> None:
        status, answer = self.client.request("POST", path, manifest)
        if status not in OK and status != EXISTS:
            raise TestbedError(f"POST {path}: {status}, {answer}")


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
