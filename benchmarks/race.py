"""How fast pods are bound: Ringleaf, Volcano's scheduler, kube-scheduler, the ceiling.

Run by ``make race``, on a real API server and etcd, which are new for each figure.
Nodes are of ``atlas-800t-a2`` with eight chips. Ringleaf decides exact chips; the
others count them. The ceiling submits and binds without deciding anything.

Where RINGLEAF_VENDOR_SCHEDULER names a folder with ``vc-scheduler`` and the vendor's
plugin (docs/race.md says how to build them), it takes part as well and decides chips.

A backlog is there before the scheduler starts, and the clock runs from the start of
its process to the last bind. Live, the scheduler runs idle and then all pods are
submitted; the clock runs from the first submit to the last bind. Binds are seen by a
watch of our own, and no figure is given unless all pods are bound where they may be.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final, Self

import msgspec
from msgspec import Struct
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.post import Sent
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.credentials import load
from ringleaf_testbed.actor import Actor
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.hardware import fleet
from ringleaf_testbed.process import Child
from ringleaf_testbed.source import TestbedError

CEILING, RINGLEAF, VOLCANO, KUBE = "ceiling", "ringleaf", "volcano", "kube-scheduler"
VENDOR: Final = "volcano-vendor"
RIVALS: Final = (CEILING, RINGLEAF, VENDOR, VOLCANO, KUBE)
WITH_GROUPS: Final = (VOLCANO, VENDOR)
"""Schedulers for which a single pod has a PodGroup, too."""
SCHEDULER_NAMES: Final = {
    CEILING: "ceiling",
    RINGLEAF: "ringleaf",
    VENDOR: "volcano",
    VOLCANO: "volcano",
    KUBE: "default-scheduler",
}
FOLDER: Final = "RINGLEAF_VENDOR_SCHEDULER"
"""Names the folder of Volcano's scheduler with the vendor's plugin."""
VENDOR_CONF: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
    enableNodeOrder: false
  - name: {plugin}
  - name: priority
    enableNodeOrder: false
  - name: conformance
    enableNodeOrder: false
- plugins:
  - name: drf
    enableNodeOrder: false
  - name: predicates
    enableNodeOrder: false
  - name: proportion
    enableNodeOrder: false
  - name: nodeorder
  - name: binpack
    enableNodeOrder: false
configurations:
- name: init-params
  arguments: {{"grace-over-time": "900", "presetVirtualDevice": "true",
    "nslb-version": "1.0", "shared-tor-num": "2", "useClusterInfoManager": "true",
    "self-maintain-available-card": "true", "super-pod-size": "48",
    "reserve-nodes": "2", "forceEnqueue": "true", "prefer-previous-node": "true"}}
"""
"""The configuration that the vendor ships; *plugin* is the name of its file."""
BACKLOG, LIVE = "backlog", "live"
PRODUCT, CHIPS, LEAF = "atlas-800t-a2", 8, 10
RESOURCE: Final = "huawei.com/Ascend910"
PODS: Final = "/api/v1/namespaces/default/pods"
PODGROUPS: Final = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
PATIENCE_S: Final = 400.0
SETTLE_S: Final = 3.0
"""Seconds for an API server, or an idle scheduler, to come to rest."""
IDLE_S: Final = 60.0
ROUNDS: Final = 3
"""Rounds of the ceiling and of Ringleaf; the others, far behind, run in the first."""
N_WAITING: Final = 100
"""Pods that wait for a scheduler that starts."""
AFTER_S: Final = 1.0
"""Seconds after the last bind in which processor time still counts."""
POST: Final = Path(__file__).with_name("post.py")
BIN: Final = Path(sys.executable).parent

Request = tuple[str, str, object]
"""Method, path and body."""


class Case(Struct, frozen=True):
    """Pods to be bound, and how they come."""

    key: str
    n_nodes: int
    n_jobs: int
    size: int
    mode: str
    chips: int = 1
    affinity: bool = False

    @property
    def n_pods(self) -> int:
        """Pods of all jobs."""
        return self.n_jobs * self.size


class StartCase(Struct, frozen=True):
    """A large cluster on which Ringleaf starts, and what is wanted of it."""

    n_running: int
    most_first_s: float
    most_mib: float
    n_nodes: int = 5_000


STARTS: Final = {
    "start": StartCase(40_000, 5.0, 500.0),
    "start-100000": StartCase(100_000, 12.0, 700.0),
}


class Figure(Struct):
    """What one run gave.

    Args:
        case: Which case.
        rival: Who bound the pods.
        n_pods: How many.
        seconds: From the start of the clock to the last bind.
        first_s: From the start of the clock to the first bind.
        between_s: From the first to the last bind.
        arrived_s: From the start of the clock until the last pod was there.
        cpu_s: Processor time of the scheduler, user and system.
        rss_mib: Its memory at the peak.

    """

    case: str
    rival: str
    n_pods: int
    seconds: float
    first_s: float
    between_s: float
    arrived_s: float
    cpu_s: float
    rss_mib: float

    @property
    def rate(self) -> float:
        """Pods a second by the clock."""
        return self.n_pods / self.seconds

    @property
    def pace(self) -> float:
        """Pods a second from the first bind to the last."""
        return (self.n_pods - 1) / self.between_s

    @property
    def pace_of_mode(self) -> float:
        """The pace of a backlog; live, the rate, since pods come as they are bound."""
        return self.pace if self.case.endswith(BACKLOG) else self.rate


def cases() -> list[Case]:
    """Everything that is raced."""
    found = []
    for mode in (BACKLOG, LIVE):
        found += [
            Case(f"4000x1-{mode}", 1_000, 4_000, 1, mode),
            Case(f"4000x1-5000-{mode}", 5_000, 4_000, 1, mode),
            Case(f"200x20-{mode}", 1_000, 200, 20, mode),
            Case(f"4x1000-{mode}", 1_000, 4, 1_000, mode),
        ]
    for size in (200, 512):
        key = f"1x{size}-affinity"
        found.append(Case(key, 1_000, 1, size, LIVE, CHIPS, affinity=True))
    return found


def rivals_of(case: Case) -> tuple[str, ...]:
    """Who can take part: kube-scheduler knows no gangs."""
    if case.affinity:
        return RINGLEAF, VENDOR, VOLCANO
    return RIVALS if case.size == 1 else (CEILING, RINGLEAF, VENDOR, VOLCANO)


def vendor_plugin() -> Path | None:
    """The vendor's plugin in the folder that is named; None where none is.

    Raises:
        TestbedError: A folder is named that lacks something, in one line.

    """
    named = os.environ.get(FOLDER)
    if not named:
        return None
    folder = Path(named)
    plugins = sorted(folder.glob("*.so"))
    is_there = (folder / "vc-scheduler").is_file()
    if not is_there or len(plugins) != 1:
        raise TestbedError(
            f"{FOLDER} is {named!r}: {'a' if is_there else 'no'} vc-scheduler and "
            f"{len(plugins)} plugins (*.so), want one of each; hint: docs/race.md says "
            "how to build them"
        )
    return plugins[0].resolve()


# Objects.


def job_name(case: Case, number: int) -> str:
    """The name of a job and of its PodGroup."""
    return f"job-{number}" if case.size > 1 else f"single-{number}"


def podgroup(case: Case, number: int) -> dict[str, Any]:
    """The PodGroup of a job."""
    labels = {"tor-affinity": "large-model-schema"} if case.affinity else {}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": job_name(case, number), "labels": labels},
        "spec": {"minMember": case.size, "queue": "default"},
    }


def pod(
    name: str, scheduler: str, group: str | None, chips: int, node: str | None = None
) -> dict[str, Any]:
    """A pod that asks for chips, CPU and memory."""
    amounts = {"cpu": "1", "memory": "1Gi"}
    if chips:
        amounts[RESOURCE] = str(chips)
    spec: dict[str, Any] = {
        "schedulerName": scheduler,
        "containers": [
            {
                "name": "main",
                "image": "none",
                "resources": {"limits": amounts, "requests": amounts},
            }
        ],
    }
    if chips:
        spec["nodeSelector"] = {"accelerator-type": "module-910b-8"}
    if node is not None:
        spec["nodeName"] = node
    notes = {"scheduling.k8s.io/group-name": group} if group else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": notes},
        "spec": spec,
    }


def pods(case: Case, rival: str) -> Iterator[dict[str, Any]]:
    """The pods of a case, job after job."""
    grouped = case.size > 1 or rival in WITH_GROUPS
    for number in range(case.n_jobs):
        name = job_name(case, number)
        for i in range(case.size):
            group = name if grouped else None
            yield pod(f"{name}-{i}", SCHEDULER_NAMES[rival], group, case.chips)


def binding(name: str, node: str, chips: Sequence[int]) -> dict[str, Any]:
    """A Binding with annotations like those of the scheduler."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {
                RESOURCE: ",".join(f"Ascend910-{chip}" for chip in chips),
                "hccl/rankIndex": "0",
                "predicate-time": str(time.time_ns()),
            },
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def bindings(case: Case) -> Iterator[Request]:
    """The pods of a case on one node after the other."""
    machines = fleet(PRODUCT, case.n_nodes)
    per_node = CHIPS // case.chips
    for i, each in enumerate(pods(case, CEILING)):
        node, place = machines[i // per_node].name, i % per_node * case.chips
        name = each["metadata"]["name"]
        chips = range(place, place + case.chips)
        yield "POST", f"{PODS}/{name}/binding", binding(name, node, chips)


# Processes beside the schedulers.


class Poster:
    """A process that sends prepared requests when told to."""

    def __init__(self, bed: Testbed, requests: Iterable[Request]) -> None:
        file = bed.folder / f"requests-{time.monotonic_ns()}.jsonl"
        file.write_bytes(msgspec.json.Encoder().encode_lines(requests))
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, str(POST), str(bed.kubeconfig), str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError("the process that sends requests did not get ready")

    def go(self) -> None:
        """Begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    def wait(self) -> Sent:
        """Until all is sent."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self._process.wait()
        if not line:
            raise RuntimeError("the process that sends requests broke off")
        sent = msgspec.json.decode(line, type=Sent)
        if sent.failed:
            raise RuntimeError(f"{sent.failed} requests were refused: {sent.why}")
        return sent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.communicate()


def post(bed: Testbed, requests: Iterable[Request]) -> Sent:
    """Send all requests now."""
    with Poster(bed, requests) as poster:
        poster.go()
        return poster.wait()


class Watcher:
    """Notes when pods get their nodes, in a thread of its own.

    A watch that the API server closes, as it does when the machine is too busy, is
    taken up where it ended.
    """

    def __init__(self, bed: Testbed) -> None:
        _items, self._version = bed.client.list_all(PODS, limit="1")
        self._kubeconfig = bed.kubeconfig
        self.times: list[float] = []
        self.n_watches = 0
        self._stop: Callable[[], object] = lambda: None
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._follow()), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        while not self.n_watches:
            time.sleep(0.01)
        time.sleep(0.1)
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()
        self._thread.join()

    async def _follow(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        async with Api(await load(self._kubeconfig)) as api:
            with suppress(asyncio.CancelledError):
                while True:
                    self.n_watches += 1
                    await self._watch(api)

    async def _watch(self, api: Api) -> None:
        query = "watch=1&fieldSelector=spec.nodeName%21%3D"
        path = f"{PODS}?{query}&resourceVersion={self._version}"
        block = b""
        with suppress(Unreachable):
            async with aclosing(api.stream(path, idle_s=PATIENCE_S)) as blocks:
                async for block in blocks:
                    new = block.count(b'\n{"type":"ADDED"')
                    new += block.startswith(b'{"type":"ADDED"')
                    self.times += [monotonic()] * new
        if block:
            last = block.splitlines()[-1]
            found = msgspec.json.decode(last)["object"]["metadata"]
            self._version = found["resourceVersion"]

    def wait(self, n_pods: int, child: Child | None = None) -> None:
        """Until so many pods have nodes."""
        deadline = monotonic() + PATIENCE_S
        while len(self.times) < n_pods:
            ended = child is not None and not child.is_running
            if ended or monotonic() > deadline:
                found = len(self.times)
                raise RuntimeError(f"{found} of {n_pods} pods are bound, and no more")
            time.sleep(0.02)


class Usage(Struct):
    """What a process has used since it started."""

    cpu_s: float
    rss_mib: float


def usage(pid: int) -> Usage:
    """The processor time of a process, and its memory at the peak."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return Usage(ticks / os.sysconf("SC_CLK_TCK"), int(line.split()[1]) / 1024)
    raise RuntimeError(f"process {pid} has ended")


# Clusters.


class Stable:
    """Makes API servers with nodes: each begins with a copy of the same etcd."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._n_beds = 0

    @contextmanager
    def bed(self, n_nodes: int, *, running: int = 0) -> Iterator[Testbed]:
        """An API server with nodes and pods that run there."""
        origin = self._folder / f"origin-{n_nodes}-{running}"
        if not origin.exists():
            with Testbed(folder=origin, open_queue=True) as bed:
                furnish(bed, n_nodes, running)
        self._n_beds += 1
        folder = self._folder / f"bed-{self._n_beds}"
        folder.mkdir()
        shutil.copytree(origin / "etcd", folder / "etcd")
        try:
            with Testbed(folder=folder, open_queue=True) as bed:
                time.sleep(SETTLE_S)
                yield bed
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def furnish(bed: Testbed, n_nodes: int, running: int) -> None:
    """Make the nodes as the daemons of real ones do, and the pods that run there."""
    machines = fleet(PRODUCT, n_nodes)
    with Actor(bed.client) as actor:
        actor.add_machines(machines, leaf_size=LEAF)
    if not running:
        return
    made: list[Request] = []
    begun: list[Request] = []
    status = {"status": {"phase": "Running"}}
    for i in range(running):
        chip, at = divmod(i, n_nodes)
        asks = int(chip < CHIPS - 1)  # the last one on a node takes no chip
        each = pod(f"old-{i}", "ringleaf", None, asks, machines[at].name)
        if asks:
            notes = binding("", "", [chip])["metadata"]["annotations"]
            each["metadata"]["annotations"] = notes
        made.append(("POST", PODS, each))
        begun.append(("PATCH", f"{PODS}/old-{i}/status", status))
    post(bed, made)
    post(bed, begun)


def start(bed: Testbed, rival: str) -> Child:
    """Start a scheduler."""
    if rival == RINGLEAF:
        where = ["--kubeconfig", str(bed.kubeconfig)]
        command = [str(BIN / "ringleaf"), "scheduler", *where]
        return bed.run("ringleaf", [*command, "--healthz-address", "127.0.0.1:0"])
    if rival == VENDOR:
        return start_vendor(bed)
    return bed.start({VOLCANO: "vc-scheduler", KUBE: "kube-scheduler"}[rival])


def start_vendor(bed: Testbed) -> Child:
    """Start Volcano's scheduler with the vendor's plugin."""
    plugin = vendor_plugin()
    assert plugin is not None
    conf = bed.folder / "vendor.conf"
    conf.write_text(VENDOR_CONF.format(plugin=plugin.stem))
    return bed.start(
        "vc-scheduler",
        f"--plugins-dir={plugin.parent}",
        f"--scheduler-conf={conf}",
        "--percentage-nodes-to-find=100",
        binary=plugin.parent / "vc-scheduler",
    )


def check(bed: Testbed, case: Case, rival: str) -> None:
    """All pods are bound; no chip is given twice, no node gives more than it has."""
    found, _version = bed.client.list_all(PODS)
    per_node = Counter(each["spec"]["nodeName"] for each in found)
    assert len(found) == case.n_pods, "pods are missing"
    assert max(per_node.values()) * case.chips <= CHIPS, "a node is overcommitted"
    if rival in (CEILING, RINGLEAF):
        chips = Counter(
            (each["spec"]["nodeName"], chip)
            for each in found
            for chip in each["metadata"]["annotations"][RESOURCE].split(",")
        )
        assert len(chips) == case.n_pods * case.chips, "a chip is missing or shared"


# Runs.


def run(stable: Stable, case: Case, rival: str) -> Figure:
    """Let one rival bind the pods of a case."""
    with stable.bed(case.n_nodes) as bed:
        if case.size > 1 or rival in WITH_GROUPS:
            groups = (podgroup(case, number) for number in range(case.n_jobs))
            post(bed, (("POST", PODGROUPS, each) for each in groups))
        submits = (("POST", PODS, each) for each in pods(case, rival))
        if case.mode == BACKLOG:
            post(bed, submits)
            time.sleep(SETTLE_S)
            figure = run_backlog(bed, case, rival)
        else:
            with Poster(bed, submits) as submitter:
                figure = run_live(bed, case, rival, submitter)
        check(bed, case, rival)
        return figure


def run_backlog(bed: Testbed, case: Case, rival: str) -> Figure:
    """The pods are there; the clock runs from the start of the scheduler."""
    with Watcher(bed) as watcher:
        if rival == CEILING:
            with Poster(bed, bindings(case)) as binder:
                binder.go()
                bound = binder.wait()
                watcher.wait(case.n_pods)
            used = Usage(bound.cpu_s, bound.rss_mib)
            made = partial(figure_of, case, rival, watcher, used)
            return made(began=bound.first, arrived=bound.first)
        began = monotonic()
        child = start(bed, rival)
        watcher.wait(case.n_pods, child)
        time.sleep(AFTER_S)
        used = usage(child.pid)
        child.stop()
        made = partial(figure_of, case, rival, watcher, used)
        return made(began=began, arrived=began)


def run_live(bed: Testbed, case: Case, rival: str, submitter: Poster) -> Figure:
    """The scheduler runs; the clock runs from the first submit."""
    with Watcher(bed) as watcher:
        if rival == CEILING:
            with Poster(bed, bindings(case)) as binder:
                submitter.go()
                sent = submitter.wait()
                binder.go()
                bound = binder.wait()
                watcher.wait(case.n_pods)
            used = Usage(bound.cpu_s, bound.rss_mib)
            made = partial(figure_of, case, rival, watcher, used)
            return made(began=sent.first, arrived=sent.last)
        child = start(bed, rival)
        if rival == RINGLEAF:
            child.wait_until(lambda: child.says('"synced"'))
        time.sleep(SETTLE_S)
        before = usage(child.pid)
        submitter.go()
        sent = submitter.wait()
        watcher.wait(case.n_pods, child)
        time.sleep(AFTER_S)
        used = usage(child.pid)
        used.cpu_s -= before.cpu_s
        child.stop()
        made = partial(figure_of, case, rival, watcher, used)
        return made(began=sent.first, arrived=sent.last)


def figure_of(
    case: Case,
    rival: str,
    watcher: Watcher,
    used: Usage,
    *,
    began: float,
    arrived: float,
) -> Figure:
    """What was measured, from moments."""
    first, last = watcher.times[0], watcher.times[case.n_pods - 1]
    return Figure(
        case=case.key,
        rival=rival,
        n_pods=case.n_pods,
        seconds=last - began,
        first_s=first - began,
        between_s=last - first,
        arrived_s=arrived - began,
        cpu_s=used.cpu_s,
        rss_mib=used.rss_mib,
    )


class Start(Struct):
    """How Ringleaf starts on a large cluster, and what it does when nothing happens."""

    first_s: float
    rss_mib: float
    idle_cores: float


def run_start(stable: Stable, given: StartCase) -> Start:
    """Start beside nodes with running pods and a few that wait."""
    case = Case("start", given.n_nodes, N_WAITING, 1, BACKLOG)
    with stable.bed(case.n_nodes, running=given.n_running) as bed:
        post(bed, (("POST", PODS, each) for each in pods(case, RINGLEAF)))
        with Watcher(bed) as watcher:
            began = monotonic()
            child = start(bed, RINGLEAF)
            watcher.wait(case.n_pods, child)
        time.sleep(10.0)  # what there is to tell is told
        before = usage(child.pid)
        time.sleep(IDLE_S)
        after = usage(child.pid)
        child.stop()
        idle = (after.cpu_s - before.cpu_s) / IDLE_S
        return Start(watcher.times[0] - began, after.rss_mib, idle)


# Results.


class Results(Struct):
    """All figures of a run."""

    figures: dict[tuple[str, str], list[Figure]] = {}
    starts: dict[str, Start] = {}
    failed: list[str] = []

    @contextmanager
    def attempt(self, what: str, console: Console) -> Iterator[None]:
        """Go on when a run fails, and remember it."""
        try:
            yield
        except (RuntimeError, AssertionError, TestbedError, OSError) as error:
            self.failed.append(f"{what}: {error}")
            console.print(f"{what} failed: {error}")

    def of(self, case: Case, rival: str) -> list[Figure]:
        """The figures of one rival, round by round."""
        return self.figures.get((case.key, rival), [])

    def middle(self, case: Case, rival: str, what: Callable[[Figure], float]) -> float:
        """The median of something over the rounds."""
        return median(map(what, self.of(case, rival)))

    def ratio(
        self,
        one: tuple[Case, str],
        other: tuple[Case, str],
        what: Callable[[Figure], float],
    ) -> float | None:
        """How much larger something is, the median over rounds that both have."""
        pairs = zip(self.of(*one), self.of(*other), strict=False)
        found = [what(a) / what(b) for a, b in pairs]
        return median(found) if found else None


class Goal(Struct):
    """What is wanted and what was found, the worst case of all."""

    wanted: str
    found: str
    met: bool


def lead(results: Results, case: Case, rival: str) -> float | None:
    """How many times faster than a rival Ringleaf is; the ceiling by its pace."""
    what: Callable[[Figure], float] = lambda figure: figure.rate  # noqa: E731
    if rival == CEILING:
        what = lambda figure: figure.pace_of_mode  # noqa: E731
    return results.ratio((case, RINGLEAF), (case, rival), what)


def goals(results: Results) -> Iterator[Goal]:
    """Every goal for which there are figures."""
    for mode, rival, least, words in (
        (BACKLOG, CEILING, 0.8, "of the ceiling, first to last bind"),
        (LIVE, CEILING, 0.8, "of the ceiling"),
        (BACKLOG, VOLCANO, 8.0, "times Volcano"),
        (BACKLOG, KUBE, 3.0, "times kube-scheduler"),
        (LIVE, VOLCANO, 5.0, "times Volcano"),
        (LIVE, KUBE, 2.0, "times kube-scheduler"),
    ):
        raced = [c for c in cases() if c.mode == mode and not c.affinity]
        found = {c.key: lead(results, c, rival) for c in raced}
        yield from _at_least(f"{mode}: at least {least:g} {words}", least, found)
    by_key = {case.key: case for case in cases()}
    wide = {
        large.key: results.ratio(
            (large, RINGLEAF),
            (by_key[large.key.replace("-5000", "")], RINGLEAF),
            lambda figure: figure.pace_of_mode,
        )
        for large in cases()
        if large.n_nodes == 5_000
    }
    yield from _at_least("5,000 nodes: at least 0.9 of 1,000", 0.9, wide)
    gang = by_key["1x512-affinity"]
    if results.of(gang, RINGLEAF):
        late = results.middle(gang, RINGLEAF, lambda f: f.first_s - f.arrived_s)
        words = "512 whole nodes: first bind within 1 s of the last pod"
        yield Goal(words, f"{late:.2f} s", late <= 1.0)
    for key, begun in results.starts.items():
        case = STARTS[key]
        size = f"{case.n_nodes:,} nodes, {case.n_running:,} pods"
        words = f"{size}: first bind within {case.most_first_s:.0f} s of the start"
        is_met = begun.first_s <= case.most_first_s
        yield Goal(words, f"{begun.first_s:.2f} s", is_met)
        words = f"{size}: at most {case.most_mib:.0f} MiB"
        yield Goal(words, f"{begun.rss_mib:.0f} MiB", begun.rss_mib <= case.most_mib)
        words = f"{size}: idle at most 0.005 cores over 60 s"
        yield Goal(words, f"{begun.idle_cores:.4f}", begun.idle_cores <= 0.005)


def _at_least(
    words: str, least: float, found: Mapping[str, float | None]
) -> Iterator[Goal]:
    known = {key: ratio for key, ratio in found.items() if ratio is not None}
    if known:
        worst = min(known, key=lambda key: known[key])
        told = f"{known[worst]:.2f} ({worst})"
        yield Goal(words, told, known[worst] >= least)


def tables(results: Results, *, markdown: bool) -> Iterator[Table]:
    """What was measured, and which goals are met."""
    style = box.MARKDOWN if markdown else box.SIMPLE_HEAD
    raced = Table(
        *("case", "nodes", "scheduler", "pods/s", "first to last", "Ringleaf is"),
        *("first bind", "CPU", "memory"),
        box=style,
    )
    for case in cases():
        for rival in rivals_of(case):
            if results.of(case, rival):
                raced.add_row(*cells(results, case, rival))
    yield raced
    aims = Table("goal", "found", "", box=style)
    for goal in goals(results):
        aims.add_row(goal.wanted, goal.found, "PASS" if goal.met else "MISS")
    yield aims


def cells(results: Results, case: Case, rival: str) -> Iterator[str]:
    """One row of the table."""

    def middle(what: Callable[[Figure], float]) -> float:
        return results.middle(case, rival, what)

    shape = f"{case.n_jobs:,} x {case.size:,}, {case.mode}"
    yield f"{shape}, whole nodes" if case.affinity else shape
    yield f"{case.n_nodes:,}"
    yield rival
    yield f"{middle(lambda f: f.rate):,.0f}"
    yield f"{middle(lambda f: f.pace):,.0f}"
    ahead = None if rival == RINGLEAF else lead(results, case, rival)
    yield "" if ahead is None else f"{ahead:.2f}x"
    yield f"{middle(lambda f: f.first_s):.2f} s"
    yield f"{middle(lambda f: f.cpu_s):.1f} s"
    yield f"{middle(lambda f: f.rss_mib):.0f} MiB"


def race(asked: argparse.Namespace, console: Console) -> Results:
    """Run what was asked for, round by round, and show it as it goes."""
    results = Results()
    wanted = [case for case in cases() if asked.case is None or case.key in asked.case]
    modes = {case.mode for case in wanted}
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="ringleaf-race-"))
        stable = Stable(Path(folder))
        status = stack.enter_context(console.status("starting"))
        for mode, turn in product((BACKLOG, LIVE), range(asked.rounds)):
            for case in wanted if mode in modes else ():
                if case.mode != mode or (case.affinity and turn):
                    continue
                for rival in rivals_of(case):
                    later = turn and rival not in (CEILING, RINGLEAF)
                    if later or rival not in asked.only:
                        continue
                    status.update(f"{case.key}, {rival}, round {turn + 1}")
                    with results.attempt(f"{case.key}, {rival}", console):
                        figure = run(stable, case, rival)
                        own = results.figures.setdefault((case.key, rival), [])
                        own.append(figure)
                        console.print(progress(figure))
                    write(asked.json, results)
        for key, start_case in STARTS.items() if RINGLEAF in asked.only else ():
            if asked.case is None or key in asked.case:
                status.update(f"start beside {start_case.n_running:,} pods, and idle")
                with results.attempt(key, console):
                    results.starts[key] = run_start(stable, start_case)
    write(asked.json, results)
    return results


def write(file: Path | None, results: Results) -> None:
    """Write what there is so far."""
    if file is not None:
        figures = [each for own in results.figures.values() for each in own]
        told = {
            "figures": figures,
            "starts": results.starts,
            "goals": list(goals(results)),
            "failed": results.failed,
        }
        file.write_bytes(msgspec.json.format(msgspec.json.encode(told)))


def progress(figure: Figure) -> str:
    """A line for a run that has ended."""
    return (
        f"{figure.case:20} {figure.rival:14} {figure.rate:5,.0f} pods/s, "
        f"{figure.pace:5,.0f} first to last; first bind {figure.first_s:5.2f} s, "
        f"all submitted {figure.arrived_s:5.2f} s; CPU {figure.cpu_s:4.1f} s, "
        f"{figure.rss_mib:3.0f} MiB"
    )


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    keys = [*(case.key for case in cases()), *STARTS]
    for name, known in (("--only", RIVALS), ("--case", keys)):
        parser.add_argument(
            name,
            type=lambda text: text.split(","),
            metavar="NAME,...",
            help=f"some of {', '.join(known)}",
        )
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--quick", action="store_true", help="one round of 4,000 x 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures there")
    parser.add_argument("--markdown", action="store_true", help="tables for the docs")
    asked = parser.parse_args()
    for given, known in ((asked.only, RIVALS), (asked.case, keys)):
        if unknown := set(given or ()).difference(known):
            parser.error(f"no {', '.join(sorted(unknown))}; want {', '.join(known)}")
    try:
        there = vendor_plugin() is not None
    except TestbedError as error:
        parser.error(str(error))
    if VENDOR in (asked.only or ()) and not there:
        parser.error(
            f"{VENDOR} wants {FOLDER}; hint: docs/race.md says how to build it"
        )
    asked.only = asked.only or [each for each in RIVALS if each != VENDOR or there]
    if asked.quick:
        asked.rounds = 1
        asked.case = asked.case or [f"4000x1-{BACKLOG}", f"4000x1-{LIVE}"]
    return asked


def main() -> int:
    """Race, print the tables, and fail when a goal is missed."""
    asked = arguments()
    # Where Python may not keep what it compiled, each start would compile it again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    console = Console(highlight=False, soft_wrap=True)
    results = race(asked, console)
    wide = Console(highlight=False, width=130)
    for table in tables(results, markdown=asked.markdown):
        wide.print(table)
    met = all(goal.met for goal in goals(results))
    return 0 if met and not results.failed else 1


if __name__ == "__main__":
    sys.exit(main())
