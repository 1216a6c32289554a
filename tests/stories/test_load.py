"""Probes, the Lease and bindings go on while many jobs look for victims."""

import re
import threading
import time
from typing import Final, Self
from urllib.error import URLError
from urllib.request import urlopen

from ringleaf.testbed.process import Child
from tests.effort import examples
from tests.stories.stage import (
    A3,
    PATIENCE_S,
    Stage,
    answer_of,
    has_told,
    lines_of,
    pod,
    podgroup,
)
from tests.stories.test_telling import with_priority

CONF: Final = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: affinity}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
N_VICTIMS, N_EVICTORS = 96, 96 + examples(144)
"""All chips of the A2 nodes, and up to 2.5 times as many jobs that outrank them."""
LONGEST_S: Final = 2.5
"""No call of the engine is longer, on a machine that does other work as well.

Without it a call takes a tenth of a second: docs/benchmarks.md.
"""


class Prober:
    """Asks for ``/livez`` again and again, on a thread of its own."""

    def __init__(self, scheduler: Child) -> None:
        self._scheduler = scheduler
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.answers: list[int] = []
        self.failed: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._stop.wait(0.05):
            try:
                self.answers.append(answer_of(self._scheduler, "livez")[0])
            except (URLError, OSError) as error:
                self.failed.append(repr(error))


def decisions(scheduler: Child) -> dict[float, int]:
    """Seconds -> calls of the engine that took no longer."""
    (started,) = [
        each for each in lines_of(scheduler.log) if each["event"] == "started"
    ]
    url = f"http://127.0.0.1:{started['health']}/metrics"
    with urlopen(url, timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    form = r'^ringleaf_decision_seconds_bucket\{le="([^"]+)"\} (\S+)'
    found = re.findall(form, text, re.MULTILINE)
    return {float(bound): int(float(count)) for bound, count in found}


def run_on_every_chip(stage: Stage, scheduler: Child, priority: str) -> None:
    """Each chip of the A2 nodes has a pod of its own."""
    for i in range(N_VICTIMS):
        stage.create(podgroup(f"low-{i}", 1, priorityClassName=priority))
        stage.create(pod(f"low-{i}", 1, group=f"low-{i}", priorityClassName=priority))
    jobs = {f"{stage.namespace}/low-{i}" for i in range(N_VICTIMS)}
    stage.wait(
        lambda: (
            jobs <= {x["job"] for x in lines_of(scheduler.log) if x["event"] == "bound"}
        ),
        "all chips to be held",
    )


def test_probes_the_lease_and_bindings_go_on_while_jobs_preempt(stage: Stage) -> None:
    scheduler = stage.schedule(CONF)
    low, high = with_priority(stage, "low", 1), with_priority(stage, "high", 1000)
    run_on_every_chip(stage, scheduler, low)

    with Prober(scheduler) as prober:
        for i in range(N_EVICTORS):  # each of another kind
            stage.create(podgroup(f"high-{i}", 1, priorityClassName=high))
            notes = {"ringleaf.io/estimate-seconds": str(1000 + i)}
            name = f"high-{i}"
            stage.create(
                pod(name, 1, group=name, priorityClassName=high, annotations=notes)
            )
        stage.wait(lambda: has_told(scheduler, "evict"), "the first eviction")
        stage.create(pod("canary", 2, selector=A3))
        stage.wait_until_runs("canary")
        stage.wait(lambda: n_running(stage) == N_VICTIMS, "all evictors that fit")
        time.sleep(0.2)

    calls = decisions(scheduler)
    told = [line["event"] for line in lines_of(scheduler.log)]
    assert prober.failed == []
    assert prober.answers
    assert {*prober.answers} == {200}
    assert "deposed" not in told
    assert "failed" not in told
    assert calls[LONGEST_S] == calls[float("inf")] > 0
    assert told.count("evict") >= N_VICTIMS


def n_running(stage: Stage) -> int:
    """The evictors that run."""
    return sum(
        each["metadata"]["name"].startswith("high-")
        and each["status"]["phase"] == "Running"
        for each in stage.pods()
    )
