"""How much memory and time a cluster takes, and what tenants can make of it.

    python -m benchmarks.memory            everything, in about eight minutes
    python -m benchmarks.memory size 1000  one cluster, with twenty pods a node
    python -m benchmarks.memory churn      pods of hostile sizes that come and go

The objects are read page by page as from the API server: JSON is decoded, told to the
cache and forgotten. The engine hears all of it and decides; what it binds is told back.
Each measurement is a process of its own. Memory is what the process holds at its peak,
and for the churn what it holds then; no API server and no network take part.
"""

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.framework.instruction import Bind
from ringleaf.kube import encode
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.decider import Decider
from ringleaf.kube.objects import NodeObject, Pod
from ringleaf.kube.watch import Gone
from ringleaf_testbed.hardware import fleet, node_object

PRODUCT: Final = "atlas-800t-a2"
RESOURCE: Final = "huawei.com/Ascend910"
PAGE: Final = 1000
SIZES: Final = (100, 1_000, 5_000)
PODS_A_NODE: Final = 20
CHIPS: Final = 8
LARGEST: Final = SIZES[-1]
MOST_MIB, MOST_FIRST_S = 700.0, 12.0
CHURN, EARLY, ALIVE = 200_000, 20_000, 500
MOST_GROWTH: Final = 1.10
MUST: Final = "requiredDuringSchedulingIgnoredDuringExecution"
Plain = dict[str, Any]


def pod(name: str, node: str = "", **more: Any) -> Plain:  # noqa: ANN401
    """A pod without chips as a controller makes it, on its node where it has one."""
    app = name.rpartition("-")[0]
    labels = {"app": app, "pod-template-hash": app[-5:], "tier": "x"}
    asks = {"cpu": "100m", "memory": "1Gi"} | more.pop("asks", {})
    return {
        "metadata": {
            "name": name,
            "namespace": more.pop("namespace", "default"),
            "uid": f"0b9f3c5e-0000-0000-{name}",
            "resourceVersion": "12345",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels | more.pop("labels", {}),
            "annotations": more.pop("annotations", {}),
            "ownerReferences": [{"name": app, "uid": app, "controller": True}],
        },
        "spec": {
            "schedulerName": more.pop("scheduler", "ringleaf"),
            "nodeName": node,
            "containers": [{"name": "c", "resources": {"requests": asks}}],
            **more.pop("spec", {}),
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def pods_of(nodes: list[str]) -> Iterator[Plain]:
    """Pods that run: one of each chip of every node, and others beside them."""
    for i, node in enumerate(nodes):
        for chip in range(CHIPS):
            yield pod(
                f"train-{i}-{chip}",
                node,
                asks={RESOURCE: "1"},
                annotations={RESOURCE: f"Ascend910-{chip}"},
            )
        for other in range(CHIPS, PODS_A_NODE):
            yield pod(f"web-{i}-{other}", node, scheduler="default-scheduler")


class Cluster:
    """A cache and an engine that are told of objects as by an API server."""

    def __init__(self, n_nodes: int) -> None:
        self.cache, self.engine = ClusterCache(), Engine(())
        self.now = 1000.0
        machines = fleet(PRODUCT, n_nodes)
        self.names = [each.name for each in machines]
        self._pages(
            map(node_object, machines),
            NodeObject,
            self.cache.handlers["nodes"].on_update,
        )

    def put_pods(self, pods: Iterator[Plain]) -> None:
        """Pods are there, or changed."""
        self._pages(pods, Pod, self.cache.handlers["pods"].on_update)

    def drop(self, name: str, namespace: str) -> None:
        """A pod is gone."""
        self.cache.handlers["pods"].on_delete(
            [Gone(namespace, name, f"0b9f3c5e-0000-0000-{name}")]
        )

    def decide(self) -> int:
        """Let the engine decide; how many pods it bound."""
        self.now += 1
        bound = 0
        for said in self.engine.handle_all(self.cache.events(self.now), self.now):
            if isinstance(said, Bind):
                bound += self._bind(said)
        self.cache.take_changed()  # as who tells of pods does
        self.cache.problems.unreported.clear()
        return bound

    def _bind(self, said: Bind) -> int:
        records = self.cache.assumed.assume(said.job, said.placements)
        for record, place, given in zip(
            records, said.placements, said.annotations, strict=True
        ):
            facts = self.cache.nodes[place.node]
            encode.written(record, place, given, facts, 1)
            self.cache.assumed.bound(record.uid)
        return len(records)

    def _pages(
        self,
        plain: Iterator[Plain],
        kind: Any,  # noqa: ANN401
        put: Callable[[Any], None],
    ) -> None:
        decode = msgspec.json.Decoder(list[kind]).decode
        while page := list(islice(plain, PAGE)):
            put(decode(json.dumps(page)))


def held_mib(what: str = "VmRSS") -> float:
    """What this process holds now, or held at its peak (``VmHWM``)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {what} in /proc/self/status")


def sized(n_nodes: int) -> Plain:
    """What one cluster takes, from its first object to the first bind, and idle."""
    gc.disable()  # as the scheduler does until it has read everything
    made_s, made_cpu_s = _cost_of_making(n_nodes)
    before, began = process_time(), perf_counter()
    cluster = Cluster(n_nodes)
    cluster.put_pods(pods_of(cluster.names))
    cluster.put_pods(iter([pod("new-0-0")]))
    assert cluster.decide() == 1
    first_s = perf_counter() - began - made_s
    cpu_s = process_time() - before - made_cpu_s
    gc.freeze()
    gc.enable()
    peak = held_mib("VmHWM")
    rounds = 200
    before = process_time()
    for i in range(rounds):
        cluster.put_pods(iter([pod(f"next-{i}-0")]))
        assert cluster.decide() == 1
    each_ms = 1000 * (process_time() - before) / rounds
    parts = _rebuilt(cluster)
    return {
        "nodes": n_nodes,
        "pods": n_nodes * PODS_A_NODE,
        "peak_mib": peak,
        "first_s": first_s,
        "cpu_s": cpu_s,
        "each_ms": each_ms,
        "rebuild_s": sum(parts),
        "part_s": max(parts),
    }


def _rebuilt(cluster: Cluster) -> list[float]:
    """Processor time of every part of a rebuild, as after a failure of the engine."""
    decider = Decider(cluster.cache, lambda: DEFAULT)
    decider.engine = cluster.engine
    decider.begin_anew()
    began, found = process_time(), list[float]()
    for _part in decider.hand_over(cluster.now):
        found.append(process_time() - began)
        began = process_time()
    decider.engine.handle_all(decider.news(cluster.now), cluster.now, 64)
    found.append(process_time() - began)
    known, heard = cluster.engine.view.job_states, decider.engine.view.job_states
    assert known.keys() == heard.keys()
    return found


def _cost_of_making(n_nodes: int) -> tuple[float, float]:
    """Seconds to make the objects' JSON, which an API server does in life.

    By the clock, and of the processor.
    """
    began, before = perf_counter(), process_time()
    machines = fleet(PRODUCT, n_nodes)
    for plain in (
        map(node_object, machines),
        pods_of([each.name for each in machines]),
    ):
        while page := list(islice(plain, PAGE)):
            json.dumps(page)
    return perf_counter() - began, process_time() - before


def hostile(i: int) -> Plain:
    """A pod that says much, each another one: what tenants may write."""
    name, namespace = f"evil-{i}-0", f"tenant-{i % 20}"
    exists = {"key": f"made.up/k{i}", "operator": "Exists"}
    hosts = {"key": "kubernetes.io/hostname", "operator": "In"}
    one = {"topologyKey": f"t{i}", "labelSelector": {"matchExpressions": [exists]}}
    term = {"matchExpressions": [hosts | {"values": [f"h{i}-{j}" for j in range(50)]}]}
    long: Plain
    match i % 40:
        case 0:
            long = {"annotations": {RESOURCE: f"{i}" + "x" * 50_000}}
        case 1:
            terms = {"nodeSelectorTerms": [term] * 20}
            affinity = {"nodeAffinity": {MUST: terms}}
            long = {"spec": {"affinity": affinity}}
        case 2:
            long = {"labels": {f"made.up/l{i}-{j}": "x" for j in range(100)}}
        case 3:
            long = {"asks": {f"made.up/r{i}-{j}": "1" for j in range(20)}}
        case 4:
            long = {"annotations": {"scheduling.k8s.io/group-name": f"{i}" * 5000}}
        case n if n < 12:
            long = {"asks": {f"made.up/r{i}": "1"}}
        case n if n < 20:
            long = {"spec": {"affinity": {"podAntiAffinity": {MUST: [one]}}}}
        case n if n < 28:
            long = {"spec": {"nodeSelector": {f"made.up/n{i}": "x"}}}
        case _:
            long = {"labels": {f"made.up/l{i}": f"v{i}"}}
    return pod(name, namespace=namespace, **long)


def churned() -> Plain:
    """Pods of hostile sizes come and go; what is held after some, and after all."""
    cluster = Cluster(100)
    early = 0.0
    for start in range(0, CHURN, ALIVE):
        cluster.put_pods(hostile(i) for i in range(start, start + ALIVE))
        cluster.decide()
        for i in range(start, start + ALIVE):
            cluster.drop(f"evil-{i}-0", f"tenant-{i % 20}")
        cluster.decide()
        if start + ALIVE == EARLY:
            gc.collect()
            early = held_mib()
    gc.collect()
    return {"early_mib": early, "late_mib": held_mib(), "cpu_s": process_time()}


def apart(*arguments: str) -> Plain:
    """What a measurement comes to in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", "--json", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    found: Plain = json.loads(run.stdout)
    return found


def shown(sizes: list[Plain], churn: Plain | None) -> Iterator[Table]:
    """The figures as tables."""
    table = Table(
        *("nodes", "pods", "memory at the peak", "first bind", "processor until then"),
        *("each further pod", "a rebuild", "its longest part"),
        box=box.MARKDOWN,
    )
    for each in sizes:
        table.add_row(
            f"{each['nodes']:,}",
            f"{each['pods']:,}",
            f"{each['peak_mib']:.0f} MiB",
            f"{each['first_s']:.1f} s",
            f"{each['cpu_s']:.1f} s",
            f"{each['each_ms']:.2f} ms",
            f"{each['rebuild_s']:.2f} s",
            f"{1000 * each['part_s']:.0f} ms",
        )
    if sizes:
        yield table
    if churn is not None:
        table = Table("hostile pods that came and went", "memory", box=box.MARKDOWN)
        table.add_row(f"{EARLY:,}", f"{churn['early_mib']:.0f} MiB")
        table.add_row(f"{CHURN:,}", f"{churn['late_mib']:.0f} MiB")
        yield table


def main() -> int:
    """Print the figures; status 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", nargs="?", choices=("size", "churn"))
    parser.add_argument("nodes", nargs="?", type=int, default=LARGEST)
    parser.add_argument("--json", action="store_true", help="figures alone")
    asked = parser.parse_args()
    if asked.json:
        print(json.dumps(sized(asked.nodes) if asked.what == "size" else churned()))
        return 0
    listed = {None: SIZES, "size": (asked.nodes,), "churn": ()}[asked.what]
    sizes = [apart("size", str(n)) for n in listed]
    churn = None if asked.what == "size" else apart("churn")
    for table in shown(sizes, churn):
        Console().print(table)
    missed = any(
        each["nodes"] == LARGEST
        and (each["peak_mib"] > MOST_MIB or each["first_s"] > MOST_FIRST_S)
        for each in sizes
    )
    grown = churn and churn["late_mib"] > MOST_GROWTH * churn["early_mib"]
    return int(missed or bool(grown))


if __name__ == "__main__":
    sys.exit(main())
