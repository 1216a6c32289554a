"""Probes, the Lease, watches and bindings go on while many jobs look for victims."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from ringleaf.kube.leader import RENEWALS
from ringleaf_testbed.process import Child
from tests.deploy.helm import NAME, NAMESPACE
from tests.effort import examples
from tests.stories.stage import (
    A3,
    PATIENCE_S,
    PATIENT,
    Stage,
    answer_of,
    has_told,
    lines_of,
    node_of,
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
N_INVENTED: Final = 300
"""Pods that each request a resource of their own, which no node has."""
LONGEST_S: Final = 2.5
"""No call of the engine is longer, on a machine that does other work as well.

Without it a call takes a tenth of a second: docs/benchmarks.md.
"""
SILENCE_S: Final = 3.0
"""No answer takes longer. Tests must not depend on how fast a machine is, but a
scheduler that is silent for seconds has to fail: before the search for victims was cut
into slices, it was for 4 to 6 s under this load. Without other work on the machine
answers take a tenth of the bound; what the API server itself takes to answer is added.
"""
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
RENEWAL_S: Final = int(PATIENT) / RENEWALS
"""How often the Lease is renewed."""


class Answers:
    """How soon a scheduler and its API server answer, while it is entered."""

    def __init__(self, stage: Stage, scheduler: Child) -> None:
        self._stage, self._scheduler = stage, scheduler
        self.probes: list[float] = []
        """Seconds until ``/livez`` has answered."""
        self.failed: list[str] = []
        """Probes without an answer, or with a bad one."""
        self.api: list[float] = []
        """Seconds until the API server has answered."""
        self.renewed: list[float] = []
        """When the Lease was renewed, as it says itself."""
        self.made: dict[str, float] = {}
        """Job of a small pod -> when the API server was asked to create it."""
        self.bound: dict[str, float] = {}
        """The same -> when it was seen on its node."""

    def probe(self) -> None:
        """Ask for ``/livez``."""
        began = time.time()
        try:
            status, _reasons = answer_of(self._scheduler, "livez")
        except (URLError, OSError) as error:
            self.failed.append(repr(error))
            return
        self.probes.append(time.time() - began)
        if status != 200:
            self.failed.append(f"status {status}")

    def look_at_lease(self) -> None:
        """Note when the Lease was renewed."""
        began = time.time()
        text = self._stage.bed.client.ask("GET", LEASE)["spec"]["renewTime"]
        self.api.append(time.time() - began)
        at = datetime.fromisoformat(text).timestamp()
        if at not in self.renewed[-1:]:
            self.renewed.append(at)

    def submit(self) -> None:
        """Submit a pod that any node has room for."""
        name = f"small-{len(self.made)}"
        self.made[f"pod {self._stage.namespace}/{name}"] = time.time()
        self._stage.create(pod(name, cpu="100m", selector={}))

    def look_at_pods(self) -> None:
        """Note which of these pods were bound."""
        for job in self.made.keys() - self.bound.keys():
            status, found = self._stage.bed.request(
                "GET", self._stage.pod_path(job.rpartition("/")[2])
            )
            if status == 200 and node_of(found):
                self.bound[job] = time.time()

    @contextmanager
    def measured(self) -> Iterator["Answers"]:
        """Until the end, all of this is done again and again."""
        with (
            again_and_again(self.probe, 0.05),
            again_and_again(self.look_at_lease, 0.2),
            again_and_again(self.look_at_pods, 0.05),
        ):
            with again_and_again(self.submit, 0.5):
                yield self
            self._stage.wait(
                lambda: self.bound.keys() == self.made.keys(), "all small pods"
            )

    @property
    def delivered(self) -> dict[str, float]:
        """Small pod -> when the scheduler first said anything of it."""
        found: dict[str, float] = {}
        for line in lines_of(self._scheduler.log):
            if (job := line.get("job")) in self.made:
                at = datetime.fromisoformat(line["timestamp"]).timestamp()
                found.setdefault(job, at)
        return found

    def longest(self) -> dict[str, float]:
        """What was asked of the scheduler -> the longest time that it took."""
        delivered = self.delivered
        renewals = [*self.renewed, time.time()]
        return {
            "/livez": max(self.probes),
            "renewal of the Lease": max(b - a for a, b in pairwise(renewals))
            - RENEWAL_S,
            "delivery of a watch": max(
                delivered[j] - at for j, at in self.made.items()
            ),
            "binding": max(self.bound[j] - at for j, at in self.made.items()),
        }


@contextmanager
def again_and_again(do: Callable[[], None], pause_s: float) -> Iterator[None]:
    """Do something on a thread of its own, with a pause in between."""
    stop = threading.Event()
    failed: list[Exception] = []

    def repeat() -> None:
        try:
            while not stop.wait(pause_s):
                do()
        except Exception as error:  # noqa: BLE001 - raised where the test sees it
            failed.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    for error in failed:
        raise error


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


def outrank(stage: Stage, priority: str) -> None:
    """Jobs of a higher priority arrive, each with another request."""
    for i in range(N_EVICTORS):
        name, notes = f"high-{i}", {"ringleaf.io/estimate-seconds": str(1000 + i)}
        stage.create(podgroup(name, 1, priorityClassName=priority))
        own = pod(name, 1, group=name, priorityClassName=priority, annotations=notes)
        stage.create(own)


def invent(stage: Stage) -> None:
    """Pods arrive that each request a resource of their own."""
    for i in range(N_INVENTED):
        stage.create(pod(f"odd-{i}", 1, resource=f"made.up/r{i}"))


def test_probes_the_lease_watches_and_bindings_go_on_while_jobs_preempt(
    stage: Stage,
) -> None:
    scheduler = stage.schedule(CONF)
    low, high = with_priority(stage, "low", 1), with_priority(stage, "high", 1000)
    run_on_every_chip(stage, scheduler, low)

    with Answers(stage, scheduler).measured() as answers:
        outrank(stage, high)
        stage.wait(lambda: has_told(scheduler, "evict"), "the first eviction")
        invent(stage)
        stage.create(pod("canary", 2, selector=A3))
        stage.wait_until_runs("canary")
        stage.wait(lambda: n_running(stage) == N_VICTIMS, "all evictors that fit")
    longest = answers.longest()

    calls = decisions(scheduler)
    told = [line["event"] for line in lines_of(scheduler.log)]
    assert answers.failed == []
    assert "deposed" not in told
    assert "failed" not in told
    assert calls[LONGEST_S] == calls[float("inf")] > 0
    assert told.count("evict") >= N_VICTIMS
    allowed = SILENCE_S + max(answers.api)
    assert {what: s for what, s in longest.items() if s > allowed} == {}


def n_running(stage: Stage) -> int:
    """The evictors that run."""
    return sum(
        each["metadata"]["name"].startswith("high-")
        and each["status"]["phase"] == "Running"
        for each in stage.pods()
    )
