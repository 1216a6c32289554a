"""What metrics cost: a scrape of a large cluster, and each binding.

The cluster has 5,000 nodes of ``atlas-800t-a2`` with 40,000 pods of one chip that run,
every one a job of its own, and 1,000 jobs that wait. No API server is asked. Times are
those of the processor, because others work on the machine too.
"""

import json
import sys
from collections.abc import Callable
from math import inf
from statistics import median
from time import process_time
from typing import Any, Final

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

import ringleaf
from ringleaf.engine.engine import Engine
from ringleaf.kube.api import Api
from ringleaf.kube.collector import SchedulerCollector, SchedulerSample
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.objects import NodeObject, Pod
from ringleaf.kube.scheduler import Options, Scheduler
from ringleaf_testbed.hardware import fleet, node_object

NODES, CHIPS, WAITING = 5_000, 8, 1_000
RESOURCE: Final = "huawei.com/Ascend910"
ROUNDS: Final = 30
BINDS: Final = 100_000
MOST_STEP_MS, MOST_BIND_US = 5.0, 10.0


def pod(name: str, node: str = "", chip: int = 0, asked: int = 1) -> dict[str, Any]:
    """A pod, on its node where it has one."""
    asks = {"cpu": "1", RESOURCE: str(asked)}
    notes = {RESOURCE: f"Ascend910-{chip}"} if node else {}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": notes,
        },
        "spec": {
            "schedulerName": "ringleaf",
            "nodeName": node,
            "nodeSelector": {"accelerator-type": "module-910b-8"},
            "containers": [{"name": "c", "resources": {"requests": asks}}],
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def scheduler() -> Scheduler:
    """A scheduler that knows the cluster and has decided."""
    engines: list[Engine] = []

    def mind(engine: Engine) -> Engine:
        engines.append(engine)
        return engine

    api = Api(Credentials("http://127.0.0.1:9"))
    found = Scheduler(api, Options(), _silent, mind)
    machines = fleet("atlas-800t-a2", NODES)
    cache = found.cache
    cache.handlers["nodes"].on_update(
        _read([node_object(each) for each in machines], NodeObject)
    )
    pods = [
        pod(f"run-{i}-{chip}", machine.name, chip)
        for i, machine in enumerate(machines)
        for chip in range(CHIPS)
    ]
    pods += [pod(f"wait-{i}", asked=8) for i in range(WAITING)]
    cache.handlers["pods"].on_update(_read(pods, Pod))
    now = found.now()
    said = engines[0].handle_all(cache.events(now), now, inf)
    view = found.view
    found.metrics.decided(said, view.job_states, len(view.cluster), 0.1)
    return found


def _read(plain: list[dict[str, Any]], kind: Any) -> list[Any]:  # noqa: ANN401
    decode = msgspec.json.Decoder(kind).decode
    return [decode(json.dumps(each)) for each in plain]


def _silent(*_words: object, **_facts: object) -> None:
    pass


def timed_ms(work: Callable[[], object]) -> tuple[float, float]:
    """The median and the longest of some rounds."""
    taken = []
    for _round in range(ROUNDS):
        began = process_time()
        work()
        taken.append(1000 * (process_time() - began))
    return median(taken), max(taken)


def bind_us() -> float:
    """What is counted of one pod that is decided and bound."""
    metrics = Metrics()
    began = process_time()
    for _bind in range(BINDS):
        metrics.sent(1.0)
        metrics.answered("POST", "bind", 201, 0.004)
        metrics.bound(1.0, 0.005)
        metrics.time_to_bind_s.observe(0.1)
    return 1e6 * (process_time() - began) / BINDS


def steps_ms(of: Scheduler) -> tuple[float, float]:
    """The median of all steps of a page together, and of the longest of them."""
    sums, longest = [], []
    for _round in range(ROUNDS):
        taken, began = [], process_time()
        for _step in SchedulerSample(of, ringleaf.__version__).steps():
            taken.append(1000 * (process_time() - began))
            began = process_time()
        sums.append(sum(taken))
        longest.append(max(taken))
    return median(sums), median(longest)


def main() -> int:
    """Print the figures; status 1 where a goal is missed."""
    found = scheduler()
    page = SchedulerCollector(found, ringleaf.__version__)
    body, _kind = page.text()
    whole, _most = timed_ms(page.text)
    reading, step = steps_ms(found)
    bind = bind_us()
    table = Table("what", "measured", box=box.MARKDOWN)
    lines = [line for line in body.splitlines() if not line.startswith(b"#")]
    table.add_row("a scrape, median", f"{whole:.1f} ms")
    table.add_row("of which the loop that decides", f"{reading:.1f} ms")
    table.add_row("the longest step of it", f"{step:.1f} ms")
    table.add_row("series of the page", f"{len(lines):,}")
    table.add_row("size of the page", f"{len(body) / 1024:.0f} KiB")
    table.add_row("counting one binding", f"{bind:.2f} µs")
    Console().print(table)
    return int(step > MOST_STEP_MS or bind > MOST_BIND_US)


if __name__ == "__main__":
    sys.exit(main())
