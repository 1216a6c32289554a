"""How soon a summary is there, and what its writer costs while nothing changes.

On a real API server: a job of 4,096 pods of 8 chips, each on a node of its own. Pods
are bound, and then get their device annotations, as fast as the API server takes them.
The figure is the time from the last annotation until the last ConfigMap of the whole
rank table is there, as somebody hears who watches summaries. Then nothing happens, and
the processor time of the writer is read; and one pod moves.

    python -m benchmarks.summary [--pods N] [--idle SECONDS]
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.hardware import Machine, fleet
from ringleaf_testbed.process import Child

PODS, CHIPS, IDLE_S = 4096, 8, 20.0
MOST_S: Final = 2.0
WORKERS: Final = 8
PATIENCE_S: Final = 300.0
MAPS: Final = "/api/v1/namespaces/default/configmaps"
HOME: Final = "/api/v1/namespaces/default/pods"
GROUPS: Final = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
ID: Final = "00000000-0000-0000-0000-000000000001"
LABEL: Final = "outside-job-info=true"
NOTE: Final = "ascend.kubectl.kubernetes.io/ascend-910-configuration"
OWNER: Final = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "large",
    "uid": ID,
    "controller": True,
}

Object = dict[str, Any]


class Reader:
    """Hears of summaries, and remembers when the table was whole on which nodes."""

    def __init__(self, bed: Testbed) -> None:
        self._bed = bed
        self._maps: dict[str, Object] = {}
        self.whole: list[tuple[float, frozenset[str], int]] = []
        """When, the addresses of all nodes, and how many ConfigMaps."""
        _items, version = bed.client.list_all(MAPS, labelSelector=LABEL)
        self._watch = bed.client.watch(MAPS, version, labelSelector=LABEL)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        with suppress(HTTPException, OSError):  # the API server ends before us
            for line in self._watch:
                at = time.time()
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    found = event["object"]
                    self._maps[found["data"]["cm_index"]] = found
                    self._read(at)

    def _read(self, at: float) -> None:
        if "0" not in self._maps:
            return
        total = int(self._maps["0"]["data"]["total"])
        slices = [self._maps.get(str(i)) for i in range(total)]
        marks = {
            each["metadata"]["annotations"]["ringleaf.io/summary"]
            for each in slices
            if each is not None
        }
        if None in slices or len(marks) > 1:
            return
        tables = [json.loads(each["data"]["hccl.json"]) for each in slices if each]
        if any(table["status"] != "complete" for table in tables):
            return
        hosts = frozenset(s["host_ip"] for t in tables for s in t["server_list"])
        self.whole.append((at, hosts, total))


def pod(number: int) -> Object:
    """A pod of the job."""
    asks = {"huawei.com/Ascend910": str(CHIPS), "cpu": "1"}
    return {
        "metadata": {
            "name": f"large-worker-{number}",
            "annotations": {
                "scheduling.k8s.io/group-name": "large",
                "hccl/rankIndex": str(number),
            },
            "ownerReferences": [OWNER],
        },
        "spec": {
            "schedulerName": "nobody",
            "containers": [
                {
                    "name": "ascend",
                    "image": "none",
                    "resources": {"limits": asks, "requests": asks},
                }
            ],
        },
    }


def part(name: str, machine: Machine) -> Object:
    """The annotation that the device plugin writes."""
    devices = [
        {
            "device_id": str(chip),
            "device_ip": machine.chip_address(chip),
            "super_device_id": str(machine.super_device(chip)),
        }
        for chip in range(CHIPS)
    ]
    table = {
        "pod_name": name,
        "server_id": f"uid-of-{name}",
        "host_ip": machine.address,
        "super_pod_id": machine.superpod,
        "devices": devices,
    }
    return {"metadata": {"annotations": {NOTE: json.dumps(table)}}}


def all_at_once(work: Callable[[int], object], numbers: Iterable[int]) -> None:
    """Do something for all numbers, several at a time."""
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, numbers))


def processor_s(process: int) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(bed: Testbed, n_pods: int, idle_s: float, folder: Path) -> Object:
    """The figures."""
    ask = bed.client.ask
    machines = fleet("atlas-800t-a2", n_pods + 1, first=1)
    words = [sys.executable, "-m", "ringleaf", "summary", "--healthz-address"]
    words += ["127.0.0.1:0", "--kubeconfig", str(bed.kubeconfig)]
    writer = Child("summary", words, folder / "summary.log")
    bed.children.append(writer)
    reader = Reader(bed)
    group = {"name": "large", "ownerReferences": [OWNER]}
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    ask("POST", GROUPS, {**kind, "metadata": group, "spec": {"minMember": n_pods}})
    all_at_once(lambda i: ask("POST", HOME, pod(i)), range(n_pods))

    def bind(i: int, name: str, machine: Machine) -> None:
        del i
        target = {"kind": "Node", "name": machine.name}
        body = {"metadata": {"name": name}, "target": target}
        ask("POST", f"{HOME}/{name}/binding", body)

    def give(i: int) -> None:
        name = f"large-worker-{i}"
        bind(i, name, machines[i])
        ask("PATCH", f"{HOME}/{name}", part(name, machines[i]))

    began = processor_s(writer.pid)
    all_at_once(give, range(n_pods - 1))
    busy_s = processor_s(writer.pid) - began
    give(n_pods - 1)
    last_at = time.time()
    wanted = frozenset(machine.address for machine in machines[:n_pods])
    first = wait_for(reader, wanted)

    time.sleep(2.0)
    began, writes = processor_s(writer.pid), len(reader.whole)
    time.sleep(idle_s)
    idle = processor_s(writer.pid) - began
    assert len(reader.whole) == writes, "something was written"

    name = "large-worker-0"
    ask("DELETE", f"{HOME}/{name}?gracePeriodSeconds=0")
    ask("POST", HOME, pod(0))
    bind(0, name, machines[-1])
    ask("PATCH", f"{HOME}/{name}", part(name, machines[-1]))
    moved_at = time.time()
    moved = frozenset(machine.address for machine in machines[1:])
    second = wait_for(reader, moved)
    writer.stop(20.0)
    return {
        "pods": n_pods,
        "slices": first[1],
        "last annotation to last slice, s": round(first[0] - last_at, 2),
        "one pod moved, s": round(second[0] - moved_at, 2),
        "processor time while pods were bound, s": round(busy_s, 2),
        "processor time idle, ms per s": round(1000 * idle / idle_s, 2),
    }


def wait_for(reader: Reader, hosts: frozenset[str]) -> tuple[float, int]:
    """When the table was whole on these nodes, and how many slices it has."""
    end = time.time() + PATIENCE_S
    while time.time() < end:
        for at, found, slices in [*reader.whole]:
            if found == hosts:
                return at, slices
        time.sleep(0.05)
    raise AssertionError(f"no whole table in {PATIENCE_S:.0f} s")


def main() -> int:
    """Print the figures; status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--idle", type=float, default=IDLE_S)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Testbed(open_queue=True) as bed:
        found = measure(bed, asked.pods, asked.idle, Path(folder))
    table = Table("figure", "value", box=box.SIMPLE_HEAD)
    for name, value in found.items():
        table.add_row(name, f"{value:,}")
    Console().print(table)
    return int(found["last annotation to last slice, s"] > MOST_S)


if __name__ == "__main__":
    sys.exit(main())
