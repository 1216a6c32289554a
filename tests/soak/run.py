"""Kill the scheduler, again and again, and look whether anything is lost.

    python -m tests.soak.run --kills 200 --restarts 5 --pods 5000 --seed 7

A real etcd (that writes to the disk), API server, controllers, Volcano's controllers
and KWOK; device plugins are simulated. While jobs come, the scheduler is killed at
moments that the seed decides, some of them while a big gang is being bound; nodes are
deleted, cordoned and not ready; the API server is killed. Waves of urgent jobs, and of
jobs of a second queue, evict others. Then one scheduler lives for some minutes, while
everything but the kills goes on, and its memory is measured. The checker decides.
"""

import argparse
import contextlib
import json
import math
import platform
import random
import re
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from ringleaf_testbed.actor import Actor, connect
from ringleaf_testbed.client import OK
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.process import Child
from ringleaf_testbed.source import TestbedError
from tests.deploy.helm import NAMESPACE, install_rights
from tests.soak import audit, checker, evictions, logs, workload
from tests.soak.evictions import Eviction, Shares, Usage
from tests.soak.memory import Memory, MemorySampler
from tests.soak.spectator import AWAY, Spectator
from tests.soak.tenant import IMPOSSIBLE, TOKEN, Tenant
from tests.soak.tenant import NAMESPACE as TENANT
from tests.soak.workload import Piece, Shape

RINGLEAF: Final = Path(sys.executable).with_name("ringleaf")
SYNCED: Final = re.compile(r'"event": ?"synced", ?"timestamp": ?"([^"]+)"')
RELEASE: Final = re.compile(r'"event": ?"release"')
RELEASE_S: Final = 4
PATIENCE_S: Final = 120.0
MESH: Final = "atlas-800t-a2"
"""How names of nodes begin that any pod may go to."""
EXISTS: Final = 409
FINISHED: Final = frozenset({"Completed", "Failed", "Aborted", "Terminated"})

VOLCANO_WORKERS: Final = "--worker-threads=16"
TOKENS: Final = {TOKEN: (TENANT, ())}

CALM: Final = 0.7
"""The part of the kills that come before the first wave, if there are waves: gangs that
are to be hit while they are bound need room."""
STEP_S: Final = 2.5
PODS_A_STEP: Final = 24
"""How fast jobs come while no scheduler is killed."""
WAVE_S: Final = 25.0
FILL_S: Final = 60.0
"""How long a wave waits at most for nodes to be full, and for evictions to begin."""
NUDGE_S: Final = 20.0
URGENT_S: Final = 60.0
"""How long an urgent job may wait while no scheduler is killed."""
CONF: Final = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: affinity
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""


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
    """Whether a tenant writes whatever the API server takes meanwhile."""
    waves: int = 0
    """Waves of evictions while schedulers are killed; with any, preempt and reclaim are
    on."""
    steady_s: float = 0.0
    """How long one scheduler then lives, with everything but kills going on."""


class Waits(Struct):
    """How long jobs waited until their pods were bound."""

    jobs: int = 0
    median_s: float = 0.0
    longest_s: float = 0.0


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
    waves: int = 0
    evicted: int = 0
    """Pods whose eviction the API server carried out, by its audit log."""
    asked: dict[str, int] = field(default_factory=dict)
    """Action -> pods that schedulers wanted to evict."""
    evicted_jobs: int = 0
    urgent: Waits = field(default_factory=Waits)
    """Urgent jobs, and those of the second queue, while schedulers are killed."""
    urgent_steady: Waits = field(default_factory=Waits)
    """The same while none is."""
    memory: list[Memory] = field(default_factory=list)
    """Of the schedulers that lived through the time without kills."""
    most_mib: float = 0.0
    steady_binds: int = 0
    """Pods bound in the time without kills."""
    nudged: int = 0
    """Times that KWOK had to be told of a pod again in the end."""
    lost: int = 0
    """Volcano Jobs for whose pods Volcano's controllers were restarted in the end."""
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
        self._short: set[str] = set()
        """Volcano Jobs that lacked pods at the last look."""
        self._began = time.monotonic()
        self._wave_dice = random.Random(f"{plan.seed} waves")  # noqa: S311
        self._evictors: dict[str, float] = {}
        """Jobs that have to evict -> when they were submitted."""
        self._steady_at = math.inf
        self._asked: list[Eviction] = []
        self._offers: dict[str, int] = {}
        self._offered = Usage()

    def _new_bed(self, testbed: type[Testbed], folder: Path | None) -> Testbed:
        audit = self.plan.waves > 0
        return testbed(fsync=True, audit=audit, folder=folder, tokens=TOKENS)

    def run(self) -> Report:
        """Do everything; the report says what came of it."""
        with self._stack:
            self._open()
            try:
                self._torment()
                self._live_on()
                self._settle()
            finally:
                self._count()
        return self.report

    def _open(self) -> None:
        bed = self._stack.enter_context(self._bed)
        # The schedulers are judged, not the fence that would refuse them.
        self._account = install_rights(bed, "fence.enabled=false")
        self._conf = bed.folder / "scheduler.conf"
        self._conf.write_text(CONF, encoding="utf-8")
        for path, body in workload.cluster_objects() if self.plan.waves else ():
            status, answer = bed.request("POST", path, body)
            if status not in OK and status != EXISTS:
                raise TestbedError(f"POST {path}: {status}, {answer}")
        self._volcano = bed.start("vc-controller-manager", VOLCANO_WORKERS)
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
        for machine in self._machines:
            self._offer(machine.name, machine.chips)
        self._spectator = self._stack.enter_context(Spectator(bed.client))
        self._memory = self._stack.enter_context(MemorySampler(self._alive))
        self._start()
        if self.plan.tenant:
            mesh = [m.name for m in self._machines if m.name.startswith(MESH)]
            ranks = ("urgent",) if self.plan.waves else ()
            account = connect(bed.kubeconfig_of(TOKEN))
            tenant = Tenant(bed.client, account, self.plan.seed, mesh, ranks)
            self._tenant = self._stack.enter_context(tenant)
        self._say(f"{len(self._machines)} nodes, seed {self.plan.seed}")

    # What happens to it

    def _torment(self) -> None:
        plan, dice = self.plan, self._dice
        steps = range(plan.kills - plan.restarts)  # a restart comes with a kill
        calm = steps if not plan.waves else steps[: round(len(steps) * CALM)]
        n_pods = plan.pods - plan.aimed * workload.BIG.pods
        pieces = workload.pieces(dice, n_pods)
        parts = list(workload.batches(pieces, max(1, len(steps) - 1)))
        aimed = dict.fromkeys(dice.sample(calm[1:], plan.aimed), False)
        aimed |= dict.fromkeys(dice.sample(sorted(aimed), plan.starved), True)
        restarts = {*dice.sample(steps[1:-1], plan.restarts)}
        rough = [step for step in steps if step not in calm]
        waves = {*self._wave_dice.sample(rough, plan.waves)}
        for step in steps:
            self._submit(parts[step] if step < len(parts) else ())
            self._trouble_nodes(step)
            if step in waves:
                self._make_wave()
                self._wait_for_evictions()
            if step in restarts:
                self._restart_apiserver()
            if step in aimed:
                self._kill_amid_binding(step, starve=aimed[step])
            else:
                time.sleep(dice.expovariate(1 / 0.8))
                self._kill()
                self._start()
            self._look()

    def _make_wave(self) -> None:
        """Fill the nodes; then jobs come that have to evict, in one of two ways."""
        self._wait_synced()
        lacking = workload.N_FILLERS - self._n_fillers()
        shapes = [workload.FILLERS[i % len(workload.FILLERS)] for i in range(lacking)]
        fillers = self._wave_pieces(shapes)
        self._submit(fillers)
        deadline = time.monotonic() + FILL_S
        with self._spectator.changed:
            while any(f.name not in self._spectator.whole_at for f in fillers):
                if not self._spectator.changed.wait(deadline - time.monotonic()):
                    break
        evictors = (
            [workload.URGENT] * workload.N_URGENT,
            [workload.RESEARCH] * workload.N_RESEARCH,
        )
        pieces = self._wave_pieces(evictors[self.report.waves % 2])
        self.report.waves += 1
        now = time.monotonic()
        self._evictors |= {piece.name: now for piece in pieces}
        self._submit(pieces)

    def _wait_for_evictions(self) -> None:
        """Until evictions have begun, so that the next kill comes in their midst."""
        before = self._n_evictions()
        deadline = time.monotonic() + FILL_S
        while self._n_evictions() == before and time.monotonic() < deadline:
            time.sleep(0.05)

    def _n_evictions(self) -> int:
        """Evictions that the schedulers of now have asked for."""
        return sum(len(logs.evictions(logs.read(c.log))) for c in self._alive())

    def _is_calm(self) -> bool:
        """Whether all jobs of the waves so far have been bound.

        Else urgent jobs would wait for those of the second queue, rightly so: these
        may keep what their queue deserves.
        """
        return self._evictors.keys() <= self._spectator.whole_at.keys()

    def _n_fillers(self) -> int:
        """Fillers that have not ended."""
        names = {shape.name for shape in workload.FILLERS}
        found: list[dict[str, Any]] = []

        def read() -> None:
            found[:] = self._bed.client.list_all(checker.JOBS)[0]

        self._insist(read, "the list of jobs")
        return sum(
            job["metadata"]["name"].partition("-")[0] in names
            and job.get("status", {}).get("state", {}).get("phase") not in FINISHED
            for job in found
        )

    def _wave_pieces(self, shapes: Iterable[Shape]) -> list[Piece]:
        wave, dice = self.report.waves, self._wave_dice
        return [
            workload.piece(shape, f"{shape.name}-{wave}-{i}", dice, keeps=False)
            for i, shape in enumerate(shapes)
        ]

    def _live_on(self) -> None:
        """Let the scheduler that is there live, with everything but kills going on."""
        if not self.plan.steady_s:
            return
        self._wait_synced()
        time.sleep(2)  # it has been seen to live before
        began = self._steady_at = time.monotonic()
        binds, wave_at = self._spectator.binds, began
        coming = workload.passing(self._wave_dice)
        step = self.plan.kills
        while time.monotonic() < began + self.plan.steady_s:
            n_pods = 0
            while n_pods < PODS_A_STEP:
                (piece,) = islice(coming, 1)
                self._submit([piece])
                n_pods += piece.shape.pods
            step += 1
            self._trouble_nodes(step)
            if self.plan.waves and time.monotonic() >= wave_at and self._is_calm():
                wave_at = time.monotonic() + WAVE_S
                self._make_wave()
            time.sleep(self._wave_dice.uniform(0.5, 1.5) * STEP_S)
            self._look()
        self.report.memory = self._memory.since(began)
        self.report.steady_binds = self._spectator.binds - binds
        # A standby that takes over has more to do from then on, which is no growth.
        since = time.time() - (time.monotonic() - began)
        roles = {c.name: logs.took_over(logs.read(c.log), since) for c in self._alive()}
        for memory in self.report.memory:
            if not memory.is_flat and not roles[memory.name]:
                early, late = f"{memory.early:.0f}", f"{memory.late:.0f}"
                self._fault(f"memory of {memory.name}: from {early} to {late} MiB")

    def _alive(self) -> list[Child]:
        """The schedulers."""
        return [] if self._scheduler is None else [self._scheduler]

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
        self._scheduler = self._run_scheduler("--no-leader-elect")  # one at a time

    def _run_scheduler(self, *options: str) -> Child:
        self._schedulers += 1
        if self.plan.waves:
            options = (*options, f"--scheduler-conf={self._conf}")
        command: list[str | Path] = [
            *(RINGLEAF, "scheduler", f"--kubeconfig={self._account}"),
            *("--healthz-address=127.0.0.1:0", f"--release-seconds={RELEASE_S}"),
            *(f"--leader-elect-resource-namespace={NAMESPACE}", *options),
        ]
        return self._bed.run(f"ringleaf-{self._schedulers}", command)

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
        self._restart_volcano()
        self.report.restarts += 1
        self._say(f"API server restarted after kill {self.report.kills}")

    def _restart_volcano(self) -> None:
        self._volcano.stop()
        self._bed.children.remove(self._volcano)
        self._volcano = self._bed.start("vc-controller-manager", VOLCANO_WORKERS)

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
            self._offer(name, machine.chips)
            self._down.discard(name)

        self._offer(name, 0)
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
        self._offer(name, 0)
        self._insist(partial(change, ready=False), f"node {name} not ready")

        def put_back() -> None:
            self._insist(partial(change, ready=True), f"node {name} ready")
            self._offer(name, self._actor.chips_of(name))
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
            self._offer(name, machine.chips)
            self._down.discard(name)

        self._offer(name, 0)
        count(0)
        return put_back

    def _cordon(self, name: str, *, on: bool) -> None:
        change = {"spec": {"unschedulable": on or None}}
        path = f"/api/v1/nodes/{name}"
        ask = partial(self._bed.client.ask, "PATCH", path, change)
        if on:
            self._offer(name, 0)
        self._insist(ask, f"node {name} {'cordoned' if on else 'open'}")
        if not on:
            self._offer(name, self._actor.chips_of(name))

    def _offer(self, name: str, chips: int) -> None:
        """Note what a node offers.

        Before chips go and after they are back, so never more than there are.
        """
        self._offers[name] = chips
        self._offered.note("", time.time(), sum(self._offers.values()))

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
            for line in self._tenant.believed:
                self._fault(f"the chip guard let the tenant write on {line}")
        began = time.monotonic()
        self._wait_synced()
        found = ["the API server does not answer"]
        nudge_at = began + NUDGE_S
        while time.monotonic() - began < self.plan.patience_s:
            if time.monotonic() >= nudge_at:
                nudge_at = time.monotonic() + NUDGE_S
                with contextlib.suppress(*AWAY):
                    self._nudge_kubelets()
                    self._nudge_volcano()
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

    def _nudge_kubelets(self) -> None:
        """Let KWOK look again at pods that have their chips, and do not run.

        It overlooks a pod now and then whose node has just come back. A scheduler has
        nothing left to do for such a pod; a kubelet would start it.
        """
        pods, _version = self._bed.client.list_all("/api/v1/namespaces/default/pods")
        for pod in pods:
            meta, phase = pod["metadata"], pod["status"].get("phase")
            has_chips = checker.REAL in meta.get("annotations", {})
            if phase == "Pending" and pod["spec"].get("nodeName") and has_chips:
                path = f"/api/v1/namespaces/default/pods/{meta['name']}"
                note = {"uid": meta["uid"], "annotations": {"nudged": str(time.time())}}
                self._bed.client.request("PATCH", path, {"metadata": note})
                self.report.nudged += 1

    def _nudge_volcano(self) -> None:
        """Restart Volcano's controllers where they have lost pods of a job.

        After many evictions they may stop making the pods that a job lacks: it stays
        ``Restarting`` with no pod left, or ``Pending`` with a few. A scheduler cannot
        place pods that are not there. Jobs count that lack pods in two looks.
        """
        short = {*checker.lost_by_volcano(checker.read(self._bed.client))}
        lost, self._short = sorted(short & self._short), short
        if lost:
            self._say(f"Volcano's controllers lost pods of {', '.join(lost)}")
            self.report.lost += len(lost)
            self._restart_volcano()

    def _count(self) -> None:
        report, seen = self.report, self._spectator
        for child in self._alive():
            self._look_at_log(child)
            if report.violations:
                self._say(f"scheduler: {child.last_words()}")
        for child in self._bed.children:
            if not child.is_running:
                self._fault(f"{child.name} ended by itself: {child.last_words()}")
        report.most_mib = self._memory.most
        self._judge_evictions()
        report.binds, report.half_bound = seen.binds, seen.half_bound
        report.completed, report.released = seen.completed, seen.released
        report.repair_s = seen.repair_s
        report.total_s = time.monotonic() - self._began

    def _judge_evictions(self) -> None:
        report, seen = self.report, self._spectator
        if not self.plan.waves:
            return
        for each in self._asked:
            report.asked[each.action] = report.asked.get(each.action, 0) + each.pods
        report.evicted_jobs = len({each.job for each in self._asked})
        shares = Shares(seen.usage, self._offered, workload.WEIGHTS)
        impossible = {
            job for job in seen.jobs if job.startswith(f"{TENANT}/{IMPOSSIBLE}-")
        }
        found = evictions.violations(self._asked, seen.jobs, shares, impossible)
        evicted = audit.evicted_pods(self._bed.audit_log)
        report.evicted = len(evicted)
        found += evictions.unannounced(evicted, self._asked, seen.job_of)
        for line in found:
            self._fault(line)
        self._judge_waits()

    def _judge_waits(self) -> None:
        """How long those waited that had to evict; each must have been bound.

        Volcano's controllers take their time on a busy machine, so it is counted from
        the moment that the pods are there.
        """
        rough, steady = list[float](), list[float]()
        for name, at in self._evictors.items():
            bound_at = self._spectator.whole_at.get(name)
            if bound_at is None:
                self._fault(f"{name} was never bound")
                continue
            wait_s = bound_at - self._spectator.made_at.get(name, at)
            is_steady = at >= self._steady_at
            (steady if is_steady else rough).append(wait_s)
            is_urgent = name.startswith(f"{workload.URGENT.name}-")
            if is_steady and is_urgent and wait_s > URGENT_S:
                self._fault(f"{name} waited {wait_s:.0f} s")
        self.report.urgent, self.report.urgent_steady = _waits(rough), _waits(steady)

    def _look_at_log(self, child: Child) -> None:
        text = logs.read(child.log)
        self._asked += logs.evictions(text)
        self.report.releases += len(RELEASE.findall(text))
        if self._killed_at and (synced := SYNCED.search(text)):
            at = datetime.fromisoformat(synced[1]).timestamp()
            took = at - self._killed_at
            self.report.recovery_s = max(self.report.recovery_s, took)
        for line in logs.bugs(text):
            self._fault(f"{child.name} failed: {line} (log: {child.log})")

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
        *_evictions(report),
        *_memory(report),
        ("looks of the checker meanwhile", report.looks),
        (
            "longest time until a new scheduler was in sync",
            f"{report.recovery_s:.1f} s",
        ),
        ("longest time a gang was bound in part", f"{report.repair_s:.1f} s"),
        ("pods that KWOK overlooked in the end", report.nudged),
        ("jobs of which Volcano's controllers lost pods", report.lost),
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


def _evictions(report: Report) -> Iterable[tuple[str, object]]:
    """What preempt and reclaim did."""
    if not report.plan.waves:
        return
    yield "waves of jobs that have to evict", report.waves
    asked = " / ".join(f"{report.asked.get(a, 0)}" for a in ("preempt", "reclaim"))
    yield "pods that schedulers asked to evict, preempt / reclaim", asked
    yield "pods that the API server evicted", report.evicted
    yield "jobs that lost pods", report.evicted_jobs
    for when, waits in (
        ("with kills", report.urgent),
        ("without kills", report.urgent_steady),
    ):
        told = f"{waits.jobs}; {waits.median_s:.1f} s, {waits.longest_s:.1f} s"
        yield f"jobs that had to evict, {when}; median and longest wait", told


def _memory(report: Report) -> Iterable[tuple[str, object]]:
    yield "most memory of a scheduler", f"{report.most_mib:.0f} MiB"
    if report.plan.steady_s:
        yield "time without kills", f"{report.plan.steady_s:.0f} s"
        yield "pods bound in it", report.steady_binds
    for each in report.memory:
        told = f"{each.early:.0f}, {each.late:.0f}, {each.most:.0f} MiB"
        yield f"memory of {each.name} in it: early, late, most", told


def _waits(found: list[float]) -> Waits:
    return Waits(len(found), median(found), max(found)) if found else Waits()


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
    parser.add_argument("--waves", type=int, default=8, help="0: without evictions")
    parser.add_argument("--steady", type=float, default=300.0, metavar="S")
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
        waves=told.waves,
        steady_s=told.steady,
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
