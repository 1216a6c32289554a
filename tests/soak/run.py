"""Kill the scheduler, again and again, and look whether anything is lost.

    python -m tests.soak.run --kills 200 --restarts 5 --pods 5000 --seed 7

A real etcd (that writes to the disk), API server, controllers, Volcano's controllers
and KWOK; device plugins are played. While jobs come, the scheduler is killed at moments
that the seed decides, some of them while a big gang is being bound; nodes are deleted,
cordoned and not ready; the API server is killed. The checker decides.
"""

import argparse
import contextlib
import json
import platform
import random
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from msgspec import Struct, field

from ringleaf.testbed.actor import Actor
from ringleaf.testbed.client import OK, Client, Watch
from ringleaf.testbed.cluster import Testbed
from ringleaf.testbed.process import Child
from ringleaf.testbed.source import TestbedError
from tests.deploy.helm import NAMESPACE, install_rights
from tests.soak import checker, workload
from tests.soak.tenant import Tenant
from tests.soak.workload import Piece

AWAY: Final = (OSError, HTTPException, TestbedError, msgspec.DecodeError)
"""What a request raises while the API server is down."""
RINGLEAF: Final = Path(sys.executable).with_name("ringleaf")
JOB_NAME: Final = "volcano.sh/job-name"
SYNCED: Final = re.compile(r'"event": ?"synced", ?"timestamp": ?"([^"]+)"')
RELEASE: Final = re.compile(r'"event": ?"release"')
RELEASE_S: Final = 4
PATIENCE_S: Final = 120.0
MESH: Final = "atlas-800t-a2"
"""How names of nodes begin that any pod may go to."""
EXISTS: Final = 409


class Plan(Struct, frozen=True):
    """How bad it gets."""

    kills: int = 20
    restarts: int = 1
    pods: int = 1000
    seed: int = 910
    aimed: int = 4
    """Kills while a big gang is being bound."""
    starved: int = 1
    """Of those, how often there is no room for its rest then, so it is released."""
    patience_s: float = PATIENCE_S
    """How long the cluster has in the end."""
    replicas: int = 1
    """Schedulers; of several the one that leads is hit."""
    tenant: bool = False
    """Whether somebody writes whatever the API server takes meanwhile."""


class Report(Struct):
    """What happened."""

    plan: Plan
    machine: str = ""
    nodes: int = 0
    pods: int = 0
    jobs: int = 0
    kills: int = 0
    restarts: int = 0
    binds: int = 0
    half_bound: int = 0
    """Gangs that a kill left bound in part."""
    completed: int = 0
    """Of those, how many then got the rest of their pods bound."""
    released: int = 0
    """Of those, how many gave up the pods that were bound."""
    leaders: int = 0
    """Schedulers that led at some time, where there are several."""
    handovers: dict[str, float] = field(default_factory=dict)
    """How a leader was hit -> the longest time until another led."""
    releases: int = 0
    """Times a scheduler said that it releases a gang."""
    deleted: int = 0
    cordoned: int = 0
    not_ready: int = 0
    unplugged: int = 0
    """Nodes whose device plugin was down for a while."""
    tenant: dict[str, int] = field(default_factory=dict)
    """What a hostile tenant did, and how often."""
    looks: int = 0
    """How often the checker looked while it went on."""
    recovery_s: float = 0.0
    """The longest time from a kill until the next scheduler knew everything."""
    repair_s: float = 0.0
    """The longest time that a gang was bound in part."""
    settle_s: float = 0.0
    """From the last mishap until the checker was content."""
    total_s: float = 0.0
    violations: list[str] = field(default_factory=list)


class Spectator:
    """Follows all pods: who is bound, which gangs are bound in part."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stopping = threading.Event()
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._job: dict[str, str] = {}
        self._bound: defaultdict[str, set[str]] = defaultdict(set)
        self._done: defaultdict[str, set[str]] = defaultdict(set)
        self._whole: set[str] = set()
        self._ever: set[str] = set()
        self._halves: dict[str, float] = {}
        self.least: dict[str, int] = {}
        """Job -> the pods that must start together."""
        self.changed = threading.Condition()
        self.half_bound = self.completed = self.released = 0
        self.repair_s = 0.0

    @property
    def binds(self) -> int:
        """Pods that were seen to be bound."""
        return len(self._ever)

    def n_bound(self, job: str) -> int:
        """Pods of *job* that are bound now."""
        return len(self._bound[job])

    def note_halves(self) -> int:
        """Take note of the gangs that are bound in part; how many that are."""
        with self.changed:
            halves = [
                job
                for job, least in self.least.items()
                if job not in self._whole | self._halves.keys()
                and 0 < len(self._bound[job]) < least
            ]
            self._halves |= dict.fromkeys(halves, time.monotonic())
            self.half_bound += len(halves)
            return len(halves)

    @property
    def halves(self) -> list[str]:
        """Gangs that a kill left bound in part, and still are."""
        with self.changed:
            return sorted(self._halves)

    def __enter__(self) -> Self:
        self._list()
        self._thread.start()
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
        self._thread.join(10)

    def _list(self) -> None:
        pods, version = self._client.list_all("/api/v1/pods")
        with self.changed:
            there = {pod["metadata"]["uid"] for pod in pods}
            for uid in [uid for uid in self._job if uid not in there]:
                self._gone(uid)
            for pod in pods:
                self._see(pod)
        self._watch = self._client.watch("/api/v1/pods", version)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._watch is None:
                    self._list()
                assert self._watch is not None
                for line in self._watch:
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        break
                    if event["type"] == "BOOKMARK":
                        continue
                    with self.changed:
                        if event["type"] == "DELETED":
                            self._gone(event["object"]["metadata"]["uid"])
                        else:
                            self._see(event["object"])
                        self.changed.notify_all()
            except AWAY:
                self._stopping.wait(0.1)
            self._watch = None

    def _see(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        uid, job = meta["uid"], meta.get("labels", {}).get(JOB_NAME, "")
        self._job[uid] = job
        phase = pod["status"].get("phase")
        if phase == "Succeeded":
            self._done[job].add(uid)
        if pod["spec"].get("nodeName"):
            self._ever.add(uid)
            (self._bound[job].discard if phase == "Failed" else self._bound[job].add)(
                uid
            )
        self._judge(job)

    def _gone(self, uid: str) -> None:
        job = self._job.pop(uid, "")
        self._bound[job].discard(uid)
        self._done[job].discard(uid)
        self._judge(job)

    def _judge(self, job: str) -> None:
        n_bound = len(self._bound[job])
        whole = n_bound >= self.least.get(job, 1)
        if whole:
            self._whole.add(job)
        since = self._halves.get(job)
        if since is None or (n_bound and not whole):
            return
        del self._halves[job]
        self.completed += whole
        self.released += not whole
        self.repair_s = max(self.repair_s, time.monotonic() - since)


class Soak:
    """One run."""

    def __init__(
        self,
        plan: Plan,
        say: Callable[[str], None],
        testbed: type[Testbed] = Testbed,
        folder: Path | None = None,
    ) -> None:
        self.plan = plan
        self.report = Report(plan, machine=_machine())
        self._say = say
        self._dice = random.Random(plan.seed)  # noqa: S311 - to be repeated
        self._bed = self._new_bed(testbed, folder)
        self._is_away = False
        self._tenant: Tenant | None = None
        self._stack = contextlib.ExitStack()
        self._scheduler: Child | None = None
        self._killed_at = 0.0
        self._schedulers = 0
        self._undo: list[tuple[int, Callable[[], None]]] = []
        self._down: set[str] = set()
        self._began = time.monotonic()

    def _new_bed(self, testbed: type[Testbed], folder: Path | None) -> Testbed:
        return testbed(fsync=True, folder=folder)

    def run(self) -> Report:
        """Do everything; the report says what came of it."""
        with self._stack:
            self._open()
            try:
                self._torment()
                self._settle()
            finally:
                self._count()
        return self.report

    def _open(self) -> None:
        bed = self._stack.enter_context(self._bed)
        # The schedulers are judged, not the fence that would refuse them.
        self._account = install_rights(bed, "fence.enabled=false")
        self._volcano = bed.start("vc-controller-manager")
        bed.start("kwok")
        bed.start(
            "kube-controller-manager",
            "--controllers=pod-garbage-collector-controller,"
            "garbage-collector-controller,node-lifecycle-controller",
        )
        self._actor = self._stack.enter_context(Actor(bed.client, retry_s=0.3))
        self._machines = workload.machines()
        self._actor.add_machines(self._machines, leaf_size=workload.LEAF)
        self.report.nodes = len(self._machines)
        self._spectator = self._stack.enter_context(Spectator(bed.client))
        self._start()
        if self.plan.tenant:
            mesh = [m.name for m in self._machines if m.name.startswith(MESH)]
            tenant = Tenant(bed.client, self.plan.seed, mesh)
            self._tenant = self._stack.enter_context(tenant)
        self._say(f"{len(self._machines)} nodes, seed {self.plan.seed}")

    # What happens to it

    def _torment(self) -> None:
        plan, dice = self.plan, self._dice
        steps = range(plan.kills - plan.restarts)  # a restart comes with a kill
        n_pods = plan.pods - plan.aimed * workload.BIG.pods
        pieces = workload.pieces(dice, n_pods)
        parts = list(workload.batches(pieces, max(1, len(steps) - 1)))
        aimed = dict.fromkeys(dice.sample(steps[1:], plan.aimed), False)
        aimed |= dict.fromkeys(dice.sample(sorted(aimed), plan.starved), True)
        restarts = {*dice.sample(steps[1:-1], plan.restarts)}
        for step in steps:
            self._submit(parts[step] if step < len(parts) else ())
            self._trouble_nodes(step)
            if step in restarts:
                self._restart_apiserver()
            if step in aimed:
                self._kill_amid_binding(step, starve=aimed[step])
            else:
                time.sleep(dice.expovariate(1 / 0.8))
                self._kill()
                self._start()
            self._look()

    def _submit(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if piece.body["kind"] != "Pod":
                with self._spectator.changed:
                    self._spectator.least[piece.name] = piece.least
            self._insist(partial(self._create, piece), f"making {piece.name}")
            self.report.jobs += 1
            self.report.pods += piece.shape.pods

    def _create(self, piece: Piece) -> None:
        status, answer = self._bed.request("POST", piece.path, piece.body)
        if status not in OK and status != EXISTS:
            raise TestbedError(f"{piece.name}: {status}, {answer}")

    def _kill_amid_binding(self, step: int, *, starve: bool) -> None:
        """Kill when some pods of a big gang are bound and some are not."""
        self._wait_synced()
        name = f"big-{step}"
        piece = workload.piece(workload.BIG, name, self._dice, keeps=True)
        wanted = self._dice.randint(1, 24)
        self._submit([piece])
        deadline = time.monotonic() + 30
        with self._spectator.changed:
            while self._spectator.n_bound(name) < wanted:
                if not self._spectator.changed.wait(deadline - time.monotonic()):
                    break
        self._kill()
        if not starve:
            self._start()
            return
        mesh = [m.name for m in self._machines if m.name not in self._down]
        mesh = [name for name in mesh if name.startswith(MESH)]
        for node in mesh:
            self._cordon(node, on=True)
        self._start()
        # As long as it takes to be released, where the kill came in time.
        deadline = time.monotonic() + 30
        while name in self._spectator.halves and time.monotonic() < deadline:
            time.sleep(0.1)
        for node in mesh:
            self._cordon(node, on=False)

    def _kill(self) -> None:
        child = self._scheduler
        assert child is not None
        if not child.is_running:
            self._fault(f"scheduler ended by itself: {child.last_words()}")
        child.kill()
        self._bed.children.remove(child)
        self._look_at_log(child)
        self._killed_at = time.time()
        self.report.kills += 1
        time.sleep(0.1)  # what was in flight
        if n_halves := self._spectator.note_halves():
            self._say(f"kill {self.report.kills}: {n_halves} gangs bound in part")

    def _start(self) -> None:
        self._schedulers += 1
        command: list[str | Path] = [
            *(RINGLEAF, "scheduler", f"--kubeconfig={self._account}"),
            *("--healthz-address=127.0.0.1:0", f"--release-seconds={RELEASE_S}"),
            "--no-leader-elect",  # there is one at a time
            f"--leader-elect-resource-namespace={NAMESPACE}",
        ]
        self._scheduler = self._bed.run(f"ringleaf-{self._schedulers}", command)

    def _wait_synced(self) -> None:
        """Until the scheduler knows everything."""
        child = self._scheduler
        assert child is not None
        child.wait_until(lambda: child.says('"synced"'))

    def _restart_apiserver(self) -> None:
        """End the API server while everything goes on, and start it again."""
        self._bed.kill_apiserver()
        self._is_away = True
        time.sleep(self._dice.uniform(0, 2))
        self._kill()
        self._start()
        self._bed.restart_apiserver()
        self._is_away = False
        # They give up jobs whose PodGroup they were making: nobody else's loss.
        self._volcano.stop()
        self._bed.children.remove(self._volcano)
        self._volcano = self._bed.start("vc-controller-manager")
        self.report.restarts += 1
        self._say(f"API server restarted after kill {self.report.kills}")

    # What happens to nodes

    def _trouble_nodes(self, step: int) -> None:
        for due, undo in [each for each in self._undo if each[0] <= step]:
            self._undo.remove((due, undo))
            undo()
        for _ in range(2):
            machine = self._dice.choice(self._machines)
            due = step + self._dice.randint(1, 5)
            kinds = [self._delete, self._close, self._unready]
            kinds += [self._unplug] if self.plan.tenant else []
            kind = self._dice.choice(kinds)
            if machine.name not in self._down:
                self._down.add(machine.name)
                self._undo.append((due, kind(machine.name)))

    def _delete(self, name: str) -> Callable[[], None]:
        self.report.deleted += 1
        machine = next(m for m in self._machines if m.name == name)

        def remove() -> None:
            with contextlib.suppress(KeyError):  # the second try after an outage
                self._actor.remove_node(name)

        def put_back() -> None:
            self._insist(
                lambda: self._actor.add_machines([machine]), f"making node {name}"
            )
            self._down.discard(name)

        self._insist(remove, f"deleting node {name}")
        return put_back

    def _close(self, name: str) -> Callable[[], None]:
        self.report.cordoned += 1
        self._cordon(name, on=True)

        def put_back() -> None:
            self._cordon(name, on=False)
            self._down.discard(name)

        return put_back

    def _unready(self, name: str) -> Callable[[], None]:
        self.report.not_ready += 1
        change = partial(self._actor.set_ready, name)
        self._insist(partial(change, ready=False), f"node {name} not ready")

        def put_back() -> None:
            self._insist(partial(change, ready=True), f"node {name} ready")
            self._down.discard(name)

        return put_back

    def _unplug(self, name: str) -> Callable[[], None]:
        """The device plugin of a node is down: its kubelet counts no chips."""
        self.report.unplugged += 1
        machine = next(m for m in self._machines if m.name == name)

        def count(chips: int) -> None:
            has = {machine.product.resource: str(chips)}
            body = {"status": {"allocatable": has}}
            path = f"/api/v1/nodes/{name}/status"
            ask = partial(self._bed.client.ask, "PATCH", path, body)
            self._insist(ask, f"{chips} chips of node {name}")

        def put_back() -> None:
            count(machine.chips)
            self._down.discard(name)

        count(0)
        return put_back

    def _cordon(self, name: str, *, on: bool) -> None:
        change = {"spec": {"unschedulable": on or None}}
        path = f"/api/v1/nodes/{name}"
        ask = partial(self._bed.client.ask, "PATCH", path, change)
        self._insist(ask, f"node {name} {'cordoned' if on else 'open'}")

    # What comes of it

    def _look(self) -> None:
        """What must never be is looked for after every kill."""
        with contextlib.suppress(*AWAY):
            for line in checker.mistakes(checker.read(self._bed.client)):
                self._fault(f"after kill {self.report.kills}: {line}")
            self.report.looks += 1

    def _settle(self) -> None:
        """Everything is well again; wait until the checker is content."""
        for _due, undo in self._undo:
            undo()
        self._undo.clear()
        if self._tenant is not None:
            self._insist(self._tenant.leave, "the tenant's leaving")
            self.report.tenant = dict(sorted(self._tenant.done.items()))
        began = time.monotonic()
        self._wait_synced()
        found = ["the API server does not answer"]
        while time.monotonic() - began < self.plan.patience_s:
            with contextlib.suppress(*AWAY):
                cluster = checker.read(self._bed.client)
                found = checker.mistakes(cluster) + checker.losses(cluster)
                found += checker.unrun(cluster)
            if not found:
                break
            time.sleep(1)
        self.report.settle_s = time.monotonic() - began
        for line in found:
            self._fault(f"in the end: {line}")
        for line in self._actor.clashes:
            self._fault(f"device plugin: {line}")
        for name in self._spectator.halves:
            self._fault(f"in the end: {name} is bound in part")

    def _count(self) -> None:
        child, report, seen = self._scheduler, self.report, self._spectator
        if child is not None:
            if not child.is_running:
                self._fault(f"scheduler ended by itself: {child.last_words()}")
            self._look_at_log(child)
            if report.violations:
                self._say(f"scheduler: {child.last_words()}")
        report.binds, report.half_bound = seen.binds, seen.half_bound
        report.completed, report.released = seen.completed, seen.released
        report.repair_s = seen.repair_s
        report.total_s = time.monotonic() - self._began

    def _look_at_log(self, child: Child) -> None:
        text = child.log.read_text(encoding="utf-8", errors="replace")
        self.report.releases += len(RELEASE.findall(text))
        if self._killed_at and (synced := SYNCED.search(text)):
            at = datetime.fromisoformat(synced[1]).timestamp()
            took = at - self._killed_at
            self.report.recovery_s = max(self.report.recovery_s, took)
        if "Traceback" in text:
            self._fault(f"scheduler failed: {child.last_words()}")

    def _fault(self, line: str) -> None:
        if line not in self.report.violations:
            self.report.violations.append(line)
            self._say(line)

    @staticmethod
    def _insist(act: Callable[[], object], what: str) -> None:
        """Do something although the API server may be away for a while."""
        deadline = time.monotonic() + 60
        while True:
            try:
                act()
            except AWAY as error:
                if time.monotonic() > deadline:
                    raise TestbedError(f"{what}: in vain for 60 s, {error}") from error
                time.sleep(0.2)
            else:
                return


def markdown(report: Report) -> str:
    """The report as a table."""
    plan = report.plan
    rows = [
        ("kills of the scheduler", report.kills),
        ("restarts of the API server", report.restarts),
        ("seed", plan.seed),
        ("nodes", report.nodes),
        *_leadership(report),
        ("jobs and pods submitted", f"{report.jobs} and {report.pods}"),
        ("pods bound", report.binds),
        ("gangs that a kill left bound in part", report.half_bound),
        ("of those completed / released", f"{report.completed} / {report.released}"),
        ("releases that schedulers told of", report.releases),
        (
            "nodes deleted / cordoned / not ready",
            f"{report.deleted} / {report.cordoned} / {report.not_ready}",
        ),
        *_hostility(report),
        ("looks of the checker meanwhile", report.looks),
        (
            "longest time until a new scheduler was in sync",
            f"{report.recovery_s:.1f} s",
        ),
        ("longest time a gang was bound in part", f"{report.repair_s:.1f} s"),
        ("until the checker was content in the end", f"{report.settle_s:.1f} s"),
        ("whole run", f"{report.total_s:.0f} s"),
        ("violations", len(report.violations)),
    ]
    lines = ["| what | |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)]
    lines += [f"- {line}" for line in report.violations]
    return "\n".join([*lines, ""])


def _hostility(report: Report) -> Iterable[tuple[str, object]]:
    """What a tenant did."""
    if report.plan.tenant:
        yield "nodes whose device plugin was down", report.unplugged
        for what, times in report.tenant.items():
            yield f"of a hostile tenant: {what}", times


def _leadership(report: Report) -> Iterable[tuple[str, object]]:
    """What there is to say of several schedulers."""
    if report.plan.replicas == 1:
        return
    yield "schedulers at a time", report.plan.replicas
    yield "schedulers that led", report.leaders
    for way, took in sorted(report.handovers.items()):
        yield f"longest hand-over, {way}", f"{took:.2f} s"


def _machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run it and print the report; the exit status says whether anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.run")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--seed", type=int, help="drawn, unless it is given")
    parser.add_argument("--tenant", action="store_true", help="with a hostile tenant")
    parser.add_argument("--aimed", type=int, default=20)
    parser.add_argument("--starved", type=int, default=4)
    parser.add_argument("--patience", type=float, default=300.0, metavar="S")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--out", type=Path, help="folder for soak.md and soak.json")
    parser.add_argument("--keep", type=Path, help="folder for data and logs")
    told = parser.parse_args(arguments)
    plan = Plan(
        kills=told.kills,
        restarts=told.restarts,
        pods=told.pods,
        seed=random.randrange(10**6) if told.seed is None else told.seed,  # noqa: S311
        aimed=told.aimed,
        starved=told.starved,
        patience_s=told.patience,
        replicas=told.replicas,
        tenant=told.tenant,
    )

    def say(line: str) -> None:
        sys.stderr.write(f"soak: {line}\n")
        sys.stderr.flush()

    kind = Soak
    if plan.replicas > 1:
        from tests.soak.replicas import Replicas as kind  # noqa: N813, PLC0415

    report = kind(plan, say, folder=told.keep).run()
    sys.stdout.write(markdown(report))
    if told.out is not None:
        told.out.mkdir(parents=True, exist_ok=True)
        (told.out / "soak.md").write_text(markdown(report), encoding="utf-8")
        plain = json.dumps(msgspec.to_builtins(report), indent=1)
        (told.out / "soak.json").write_text(f"{plain}\n", encoding="utf-8")
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
