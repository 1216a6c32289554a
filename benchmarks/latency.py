"""How soon a scheduler answers while it preempts: python -m benchmarks.latency.

On a real API server all chips of many nodes are held by pods of a low priority; then
2.5 times as many jobs of a high priority arrive, each with another request, and 300
pods that each request a resource that no node has. Until no job is evicted any more,
``/livez`` is asked for twenty times a second, the renewals of the Lease are watched,
and pods without chips are submitted, two a second: when the scheduler first says
something of one, its watch has delivered it.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.request import urlopen

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.race import CHIPS, PODS, PRODUCT, RINGLEAF, Stable, binding, pod, post
from ringleaf.kube.leader import RENEWALS
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.hardware import fleet
from ringleaf_testbed.process import Child

CONF: Final = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: affinity}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ringleaf"
PATIENCE_S: Final = 300.0
QUIET_S: Final = 5.0
"""The search is over when so long no pod was evicted and none was bound."""
MOST_S: Final = 1.0
"""The goal for every answer; the Lease is renewed so much later at most."""
N_INVENTED: Final = 300
LASTS_S: Final = 5
"""How long the Lease lasts after it was renewed."""
RENEWAL_S: Final = LASTS_S / RENEWALS
PROBE, RENEWAL = "/livez answers", "between renewals of the Lease"
DELIVERY, BINDING = "a watch delivers a pod", "a pod without chips is bound"


def low(name: str, node: str) -> dict[str, Any]:
    """A pod that holds a whole node and ends at once when it is asked to."""
    found = pod(name, RINGLEAF, None, CHIPS, node)
    found["metadata"]["annotations"] = binding("", "", range(CHIPS))["metadata"][
        "annotations"
    ]
    return ranked(found, "low")


def ranked(given: dict[str, Any], priority: str) -> dict[str, Any]:
    """A pod with a PriorityClass that ends at once when it is asked to."""
    given["spec"] |= {"priorityClassName": priority, "terminationGracePeriodSeconds": 0}
    return given


def high(number: int) -> dict[str, Any]:
    """A pod for a whole node that outranks others; each is another request."""
    found = ranked(pod(f"high-{number}", RINGLEAF, None, CHIPS), "high")
    found["metadata"]["annotations"] = {
        "ringleaf.io/estimate-seconds": str(1000 + number)
    }
    return found


def odd(number: int) -> dict[str, Any]:
    """A pod that requests a resource of its own."""
    found = pod(f"odd-{number}", RINGLEAF, None, 0)
    (container,) = found["spec"]["containers"]
    asks = {f"made.up/r{number}": "1"}
    container["resources"] = {"requests": asks, "limits": asks}
    return found


def furnish(bed: Testbed, n_nodes: int) -> None:
    """Classes, and a pod of a low priority on every node."""
    for name, value in (("low", 1), ("high", 1000)):
        bed.client.ask("POST", CLASSES, {"metadata": {"name": name}, "value": value})
    names = [each.name for each in fleet(PRODUCT, n_nodes)]
    post(bed, (("POST", PODS, low(f"low-{i}", n)) for i, n in enumerate(names)))
    running = {"status": {"phase": "Running"}}
    post(bed, (("PATCH", f"{PODS}/low-{i}/status", running) for i in range(n_nodes)))


@contextmanager
def again_and_again(do: Callable[[], None], pause_s: float) -> Iterator[None]:
    """Do something on a thread of its own, with a pause in between."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(pause_s):
            do()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class Watch:
    """Notes how long answers take."""

    def __init__(self, bed: Testbed, child: Child) -> None:
        self._bed, self._child = bed, child
        self.probes: list[float] = []
        self.renewals: list[float] = []
        self._renewed = ""
        self.made: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        ports = (e["health"] for e in self.events() if e["event"] == "started")
        self._url = f"http://127.0.0.1:{next(ports)}/livez"

    def events(self) -> list[dict[str, Any]]:
        """The scheduler's log so far."""
        found = []
        for line in self._child.log.read_text(errors="replace").splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return found

    def probe(self) -> None:
        """Ask whether it is alive."""
        began = time.monotonic()
        with urlopen(self._url, timeout=60) as answer:  # noqa: S310 - our own
            assert answer.status == 200
        self.probes.append(time.monotonic() - began)

    def look_at_lease(self) -> None:
        """Note when the Lease was renewed."""
        renewed = self._bed.client.ask("GET", LEASE)["spec"]["renewTime"]
        if renewed != self._renewed:
            self._renewed = renewed
            self.renewals.append(time.monotonic())

    def submit(self) -> None:
        """Submit a pod without chips."""
        name = f"plain-{len(self.made)}"
        began = time.time()  # as in the log
        self._bed.client.ask("POST", PODS, pod(name, RINGLEAF, None, 0))
        self.made[name] = began

    def look_at_pods(self) -> None:
        """Note which pods without chips were bound."""
        for name in self.made.keys() - self.bound.keys():
            if self._bed.client.ask("GET", f"{PODS}/{name}")["spec"].get("nodeName"):
                self.bound[name] = time.time()

    @property
    def delivered(self) -> dict[str, float]:
        """Pod without chips -> when the log first has it."""
        found: dict[str, float] = {}
        for line in self.events():
            name = str(line.get("job", "")).removeprefix("pod default/")
            if name in self.made:
                at = datetime.fromisoformat(line["timestamp"]).timestamp()
                found.setdefault(name, at)
        return found

    @property
    def n_done(self) -> int:
        """Evictions and bindings so far."""
        text = self._child.log.read_text(errors="replace")
        return text.count('"event":"evict"') + text.count('"event":"bind"')


def measure(folder: Path, n_nodes: int) -> dict[str, list[float]]:
    """Seconds until answers, by what was asked."""
    with Stable(folder).bed(n_nodes) as bed:
        furnish(bed, n_nodes)
        conf = bed.folder / "conf.yaml"
        conf.write_text(CONF)
        command = [str(Path(sys.executable).parent / "ringleaf"), "scheduler"]
        command += ["--kubeconfig", str(bed.kubeconfig), "--scheduler-conf", str(conf)]
        command += ["--leader-elect-lease-duration", str(LASTS_S)]
        child = bed.run("ringleaf", [*command, "--healthz-address", "127.0.0.1:0"])
        child.wait_until(lambda: child.says('"leads"'))
        watch = Watch(bed, child)
        with (
            again_and_again(watch.probe, 0.05),
            again_and_again(watch.look_at_lease, 0.1),
            again_and_again(watch.submit, 0.5),
            again_and_again(watch.look_at_pods, 0.02),
        ):
            post(bed, (("POST", PODS, high(i)) for i in range(5 * n_nodes // 2)))
            post(bed, (("POST", PODS, odd(i)) for i in range(N_INVENTED)))
            wait_until_quiet(watch)
        told = [each["event"] for each in watch.events()]
        assert "deposed" not in told
        assert "failed" not in told
        assert told.count("evict") >= n_nodes, "not all nodes were taken"
        child.stop()
        return {
            PROBE: watch.probes,
            RENEWAL: [after - before for before, after in pairwise(watch.renewals)],
            DELIVERY: [at - watch.made[name] for name, at in watch.delivered.items()],
            BINDING: [at - watch.made[name] for name, at in watch.bound.items()],
        }


def wait_until_quiet(watch: Watch) -> None:
    """Until nothing but pods without chips is evicted or bound."""
    end = time.monotonic() + PATIENCE_S
    before = -1
    while time.monotonic() < end:
        done = watch.n_done - len(watch.bound)
        if done > 0 and done - before <= 1:
            return
        before = done
        time.sleep(QUIET_S)
    raise RuntimeError("jobs are evicted still")


def main() -> int:
    """Print how long answers took; status 1 where one took too long."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("nodes", nargs="?", type=int, default=2000)
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="ringleaf-latency-") as folder:
        found = measure(Path(folder), asked.nodes)
    table = Table("what", "times", "median", "longest", box=box.MARKDOWN)
    for what, seconds in found.items():
        row = f"{median(seconds):.3f} s", f"{max(seconds):.3f} s"
        table.add_row(what, f"{len(seconds)}", *row)
    Console().print(table)
    return int(bool(late(found)))


def late(found: Mapping[str, list[float]]) -> list[str]:
    """What misses the goal."""
    allowed = {RENEWAL: RENEWAL_S + MOST_S}
    return [what for what, s in found.items() if max(s) > allowed.get(what, MOST_S)]


if __name__ == "__main__":
    sys.exit(main())
