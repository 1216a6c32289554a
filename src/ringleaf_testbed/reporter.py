"""Writes what the daemons of the machines report, in both layouts."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from http.client import HTTPException
from typing import Any, Final

from ringleaf_testbed import report
from ringleaf_testbed.client import OK, Client
from ringleaf_testbed.machine_state import MachineState
from ringleaf_testbed.source import TestbedError

GONE: Final = 404
REFRESH_S: Final = 300.0
"""Reports are written again after this long, changed or not."""


class Layout(StrEnum):
    """Which reports are written."""

    COLLECTED = "collected"
    DIRECT = "direct"
    BOTH = "both"


class Reporter:
    """The reports of all machines.

    Args:
        client: A connection to the API server.
        layout: Which reports are written.
        machines: The machines by name; the actor adds and removes them.
        workers: How many threads write.

    """

    def __init__(
        self,
        client: Client,
        layout: Layout,
        machines: Mapping[str, MachineState],
        workers: int,
    ) -> None:
        self._client = client
        self._layout = layout
        self._sites = machines
        self._workers = workers
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

    def mark(self, names: Iterable[str]) -> None:
        """The reports of these machines changed."""
        with self._changed_lock:
            self._changed.update(names)

    def write(self) -> None:
        """Write the reports of the nodes that changed."""
        with self._writing:
            with self._changed_lock:
                names, self._changed = sorted(self._changed), set()
            sites = [self._sites[name] for name in names if name in self._sites]
            if self._layout is not Layout.COLLECTED:
                self.each(self._write_direct, sites)
            if self._layout is not Layout.DIRECT:
                self._collect(sites)
                self._write_collected()

    def keep_writing(self, stopping: threading.Event, every_s: float) -> None:
        """Write what changed, time and again, until *stopping*."""
        refreshed = time.monotonic()
        while not stopping.wait(every_s):
            if time.monotonic() - refreshed > REFRESH_S:
                self.mark(list(self._sites))
                refreshed = time.monotonic()
            with self._changed_lock:
                names = set(self._changed)
            if not names:
                continue
            try:
                self.write()
            except (OSError, HTTPException, TestbedError):
                self.mark(names)  # the server is away

    def remove(self, name: str) -> None:
        """Delete the reports of a machine that is gone."""
        with self._writing:
            for entries in self._entries.values():
                entries.pop(name, None)
        for namespace, prefix in (
            ("kube-system", report.DEVICES),
            ("mindx-dl", report.NODES),
        ):
            self.delete(f"/api/v1/namespaces/{namespace}/configmaps/{prefix}{name}")
        self._node_reports.discard(name)
        self.write()

    def _write_direct(self, site: MachineState) -> None:
        name = site.machine.name
        with site.lock:
            now_s = int(time.time())
            device = report.device_report(site.machine, site.health, site.used, now_s)
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s))
            node = report.node_report(site.machine, site.health, stamp)
            broken = site.health.node_status != "Healthy"
        self.put(device)
        if broken:
            self._node_reports.add(name)
            self.put(node)
        elif name in self._node_reports:
            self._node_reports.discard(name)
            path = f"/api/v1/namespaces/mindx-dl/configmaps/{report.NODES}{name}"
            self.delete(path)

    def _collect(self, sites: Iterable[MachineState]) -> None:
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
                self.put(report.collected_map(name, text))
                self._written[name] = text

    def each(self, task: Callable[[Any], None], items: Collection[Any]) -> None:
        """Do the *task* for all *items*, several at a time."""
        if len(items) <= 1:
            for item in items:
                task(item)
            return
        with ThreadPoolExecutor(self._workers) as pool:
            for _done in pool.map(task, items):
                pass

    def put(self, manifest: dict[str, Any]) -> None:
        """Write a ConfigMap, whether it is there or not."""
        metadata = manifest["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/configmaps"
        status, answer = self._client.request(
            "PUT", f"{path}/{metadata['name']}", manifest
        )
        if status == GONE:
            status, answer = self._client.request("POST", path, manifest)
        if status not in OK:
            raise TestbedError(f"{path}/{metadata['name']}: {status}, {answer}")

    def delete(self, path: str) -> None:
        """Delete an object, whether it is there or not."""
        status, answer = self._client.request("DELETE", path)
        if status not in OK and status != GONE:
            raise TestbedError(f"DELETE {path}: {status}, {answer}")
