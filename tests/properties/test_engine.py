"""The engine over random events: what must be true whatever happens.

``tests.engine.ledger`` models the state from events and instructions alone, and is
compared with the engine's after every event.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    Event,
    JobArrived,
    JobGone,
    LeavesChanged,
    NodesChanged,
    NodesGone,
    PodsEnding,
    PodsGone,
    QueueChanged,
    QueueGone,
    TimerFired,
)
from ringleaf.framework.instruction import Bind, Evict, Instruction, WakeAt
from ringleaf.framework.session import Session
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.moving import Moving
from ringleaf.model.placement import Placement
from ringleaf.model.queue import Queue
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import PRODUCTS
from tests.effort import assert_reached, examples
from tests.engine.ledger import Ledger, least_of
from tests.engine.memos import drop_memos
from tests.engine.story import BOTH, NPU, PREEMPT, RECLAIM, TIERS, conf, job, node

A3 = PRODUCTS["atlas-900-a3"]
SOON = {"reservation-after-seconds": 20}
NO_GANG_VOTE = (
    ("priority", {"name": "gang", "enablePreemptable": False}, "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder"),
)
MOVES = {
    "wait-seconds": 5,
    "least-benefit": 1,
    "look-every-seconds": 5,
    "moves-per-hour": 1000,
}
CONFS = {
    "default": DEFAULT,
    "fair": conf(tiers=TIERS, allocate=SOON),
    "strict": conf(tiers=TIERS, allocate={**SOON, "reservation": "strict"}),
    "off": conf(tiers=TIERS, allocate={"reservation": "off"}),
    "preempt": conf(PREEMPT, TIERS, allocate=SOON),
    "reclaim": conf(RECLAIM, TIERS, allocate=SOON, reclaim={"min-run-seconds": 15}),
    "learns": conf(tiers=TIERS, allocate={**SOON, "learn-run-times": True}),
    "both": conf(BOTH, NO_GANG_VOTE, allocate=SOON, preempt={"min-run-seconds": 5}),
    "preview": conf(BOTH, TIERS, allocate=SOON, preempt={"preview": True}),
    "rearrange": conf("enqueue, allocate, backfill, rearrange", TIERS, rearrange=MOVES),
    "rearrange, reclaim": conf(
        f"{BOTH}, rearrange", NO_GANG_VOTE, allocate=SOON, rearrange=MOVES
    ),
    "no enqueue": conf("allocate, preempt, reclaim", TIERS, allocate=SOON),
}
QUEUES = ("default", "p", "q")
NODES = [
    node(f"{leaf}{slot}", leaf=leaf, slot=slot) for leaf in "AB" for slot in range(2)
]
NODES += [node("C0"), *(Node(f"P{n}", A3, 16, 0xFFFF, superpod=0) for n in range(2))]
NODES = [replace(each, resources={"cpu": 8000}) for each in NODES]


SHAPES = st.tuples(
    st.sampled_from([1, 2, 4, 4, 8, 8, 8, 3]),
    st.sampled_from([1, 1, 1, 2, 2, 3, 4]),
    st.sampled_from([None, None, 1, 2]),
    st.sampled_from([None, None, None, Schema.LARGE_MODEL, Schema.NORMAL]),
    st.sampled_from([*QUEUES, "p"]),
    st.sampled_from([0, 0, 1, 2]),
    st.sampled_from([None, 10.0, 10.0, 60.0]),
    st.sampled_from([True] * 7 + [False]),
    st.sampled_from([True] * 7 + [False]),
    st.sampled_from(["plain"] * 5 + ["cpu", "driver", "modest", "superpod"]),
)
"""Chips, pods, least, affinity, queue, priority, estimate, preemptable, preempts, kind.

A job of the kind cpu asks for some besides; one with a driver has a pod without chips;
one that is modest asks for nothing at all; one in a SuperPoD is for other nodes.
"""
Shape = tuple[
    int, int, int | None, Schema | None, str, int, float | None, bool, bool, str
]
MOVABLE = Moving(0.5, checkpoint_s=1.0)
CPU = Demand(resources=(("cpu", 3000),))


def job_of(name: str, shape: Shape) -> Job:
    """A job that may well fit: mostly small ones, some gangs, some elastic."""
    chips, pods, least, affinity, queue, priority, estimate, *may, kind = shape
    fewest = None if least is None or least >= pods else least
    plain = job(
        name,
        chips,
        pods,
        min_available=fewest,
        tor_affinity=affinity if pods > 1 and fewest is None else None,
        queue=queue,
        priority=priority,
        estimate_s=estimate,
        preemptable=may[0],
        preempts=may[1],
        moving=MOVABLE if kind != "driver" else None,
    )
    match kind:
        case "cpu":
            return replace(plain, demand=CPU)
        case "driver":
            driver = Role("driver", 0, demand=CPU)
            worker = Role("worker", chips, pods, min_available=fewest)
            more = None if fewest is None else fewest + 1
            return replace(plain, roles=(driver, worker), min_available=more)
        case "modest":
            helper = (Role("helper", 0, pods),)
            return replace(plain, chips=0, replicas=0, roles=helper, tor_affinity=None)
        case "superpod":
            several = {"chips": 16, "replicas": 2} if pods > 1 else {}
            return replace(
                plain, product=A3, tor_affinity=None, min_available=None, **several
            )
    return plain


LIMITS = st.tuples(
    st.integers(1, 3),
    st.sampled_from([None, None, None, 8, 16, 24]),
    st.sampled_from([None, None, None, None, 4, 8]),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from([True] * 7 + [False]),
)
"""Weight, most, kept, reclaimable, priority, open."""
Limits = tuple[int, int | None, int | None, bool, int, bool]


def queue_of(name: str, limits: Limits) -> Queue:
    """A queue, most of them without limits."""
    weight, most, kept, reclaimable, priority, is_open = limits
    return Queue(
        name,
        weight,
        {} if most is None else {NPU: 1000 * most},
        {} if kept is None else {NPU: 1000 * kept},
        reclaimable=reclaimable,
        priority=priority,
        is_open=is_open,
    )


class World:
    """An engine, its ledger, and everything that was heard and said."""

    def __init__(
        self, conf: Conf, nodes: Sequence[Node], queues: Sequence[Queue]
    ) -> None:
        self._given = conf, nodes, queues
        self.engine = Engine(nodes, (), queues, conf)
        self.ledger = Ledger(nodes, queues, conf)
        self.now = 0.0
        self.wake: float | None = None
        self.trace: list[tuple[tuple[Event, ...], float, bytes]] = []
        self.evicted: list[Evict] = []
        self.ever_ran: set[str] = set()

    def hears(self, *events: Event) -> list[Instruction]:
        booked = {
            name: {(p.node, c) for p in reservation.placements for c in p.chips}
            for name, reservation in self.engine.reservations.items()
        }
        said = self.engine.handle_all(events, self.now)
        self.trace.append((events, self.now, msgspec.json.encode(said)))
        for event in events:
            self.ledger.hear(event)
        for each in said:
            self.ledger.heed(each)
            if isinstance(each, WakeAt):
                assert each.at > self.now
                self.wake = each.at
            elif isinstance(each, Evict):
                self.evicted.append(each)
            elif isinstance(each, Bind):
                self.ever_ran.add(each.job)
                chips = {(p.node, c) for p in each.placements for c in p.chips}
                others = (b for name, b in booked.items() if name != each.job)
                into = any(chips & other for other in others)
                self.ledger.counts["backfilled"] += into
        self.ledger.compare(self.engine)
        assert not self.ledger.untold(self.engine)
        return said

    def evictions_are_carried_out(self) -> None:
        gone = [PodsGone(each.job, each.replicas) for each in self.evicted]
        self.evicted = []
        if gone:
            self.hears(*gone)

    def sleeps(self) -> bool:
        """Until the engine wants to be woken; whether it does."""
        if self.wake is None:
            return False
        self.now, self.wake = max(self.now, self.wake), None
        self.hears(TimerFired())
        return True

    def replays(self) -> None:
        """The same events give the same instructions, byte for byte."""
        conf, nodes, queues = self._given
        again = Engine(nodes, (), queues, conf)
        for events, now, said in self.trace:
            assert msgspec.json.encode(again.handle_all(events, now)) == said

    def replays_without_memos(self) -> None:
        """What is tried again without need changes no instruction."""
        conf, nodes, queues = self._given
        again = Engine(nodes, (), queues, conf)
        for events, now, said in self.trace:
            drop_memos(again)
            assert msgspec.json.encode(again.handle_all(events, now)) == said

    @property
    def running(self) -> list[str]:
        return sorted({name for name, _replica in self.ledger.pods})


ILL: Sequence[dict[str, Any]] = (
    {},
    {},
    {"faulty": 0b11},
    {"faulty": 0xFE},
    {"faulty": 0x0F},
    {"ready": False},
    {"cordoned": True},
    {"network_faulty": 0b1},
    {"sub_healthy": True},
)
WELL = {
    "faulty": 0,
    "ready": True,
    "cordoned": False,
    "network_faulty": 0,
    "sub_healthy": False,
}
PICK = st.integers(0, 999)
"""Which of those there are, counted round and round."""


class Machine(RuleBasedStateMachine):
    """Anything that can happen, in any order."""

    begins_with: ClassVar[Sequence[str]]
    counts: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    @initialize(
        pick=PICK,
        limits=st.tuples(*[LIMITS] * len(QUEUES)),
        shapes=st.lists(SHAPES, min_size=5, max_size=9),
    )
    def begin(self, pick: int, limits: tuple[Limits, ...], shapes: list[Shape]) -> None:
        listed = [queue_of(*each) for each in zip(QUEUES, limits, strict=True)]
        name = self.begins_with[pick % len(self.begins_with)]
        self.world = World(CONFS[name], NODES, listed)
        self.jobs_arrive(shapes)

    def _some_pods(self, pick: int, how_many: int) -> tuple[str, tuple[int, ...]]:
        pods = sorted(self.world.ledger.pods)
        name, _replica = pods[pick % len(pods)]
        own = [replica for other, replica in pods if other == name]
        first = pick % len(own)
        some = (own[first:] + own[:first])[:how_many]
        return name, tuple(sorted(some))

    @rule(shapes=st.lists(SHAPES, min_size=1, max_size=3))
    def jobs_arrive(self, shapes: list[Shape]) -> None:
        came = []
        for shape in shapes:
            self.number += 1
            came.append(JobArrived(job_of(f"j{self.number}", shape)))
        self.world.hears(*came)

    @rule(
        chips=st.sampled_from([8, 4]),
        pods=st.integers(1, 3),
        queue=st.sampled_from(QUEUES),
        later=st.sampled_from([0.0, 20.0]),
    )
    def an_urgent_job_arrives(
        self, chips: int, pods: int, queue: str, later: float
    ) -> None:
        self.number += 1
        self.world.now += later
        urgent = job(f"j{self.number}", chips, pods, priority=5, queue=queue)
        self.world.hears(JobArrived(urgent))

    @precondition(lambda self: self.world.ledger.jobs)
    @rule(pick=PICK, queue=st.sampled_from([None, *QUEUES]))
    def a_job_changes(self, pick: int, queue: str | None) -> None:
        known = list(self.world.ledger.jobs.values())
        old = known[pick % len(known)]
        new = replace(old, queue=queue) if queue else replace(old, priority=3)
        self.world.hears(JobArrived(new))

    @precondition(lambda self: self.world.ledger.jobs)
    @rule(pick=PICK)
    def a_job_is_gone(self, pick: int) -> None:
        names = sorted(self.world.ledger.jobs)
        self.world.hears(JobGone(names[pick % len(names)]))

    @precondition(lambda self: self.world.ledger.pods)
    @rule(pick=PICK, how_many=st.integers(1, 4), succeeded=st.booleans())
    def pods_are_gone(self, pick: int, how_many: int, *, succeeded: bool) -> None:
        self.world.hears(PodsGone(*self._some_pods(pick, how_many), succeeded))

    @precondition(lambda self: self.world.ledger.pods)
    @rule(pick=PICK, how_many=st.integers(1, 4))
    def pods_are_ending(self, pick: int, how_many: int) -> None:
        self.world.hears(PodsEnding(*self._some_pods(pick, how_many)))

    @precondition(lambda self: self.world.ledger.pods)
    @rule(pick=PICK, how_many=st.integers(1, 4))
    def pods_cannot_be_bound(self, pick: int, how_many: int) -> None:
        self.world.hears(BindFailed(*self._some_pods(pick, how_many)))

    @precondition(lambda self: self.world.ledger.ending)
    @rule()
    def what_is_ending_is_gone(self) -> None:
        pods = sorted(self.world.ledger.ending)
        self.world.hears(*(PodsGone(name, (n,)) for name, n in pods))

    @rule(pick=PICK, ill=st.sampled_from(ILL))
    def a_node_changes(self, pick: int, ill: dict[str, Any]) -> None:
        known = list(self.world.ledger.nodes.values()) or NODES
        old = known[pick % len(known)]
        self.world.hears(NodesChanged((replace(old, **{**WELL, **ill}),)))

    @rule(pick=PICK, leaf=st.sampled_from(["A", "B", None]), goes=st.booleans())
    def a_node_comes_or_goes(self, pick: int, leaf: str | None, *, goes: bool) -> None:
        each = NODES[pick % len(NODES)]
        if each.name not in self.world.ledger.nodes:
            self.world.hears(NodesChanged((each,)))
        elif goes:
            self.world.hears(NodesGone((each.name,)))
        else:
            self.world.hears(NodesChanged((replace(each, leaf=leaf),)))

    @rule(name=st.sampled_from(QUEUES), limits=st.none() | LIMITS)
    def a_queue_changes(self, name: str, limits: Limits | None) -> None:
        if limits is None:
            self.world.hears(QueueGone(name))
        else:
            self.world.hears(QueueChanged(queue_of(name, limits)))

    @rule(name=st.sampled_from(sorted(CONFS)))
    def the_configuration_changes(self, name: str) -> None:
        self.world.hears(ConfChanged(CONFS[name]))

    @rule(address=st.sampled_from([None, "1.1.1.1"]))
    def leaves_change(self, address: str | None) -> None:
        self.world.hears(LeavesChanged((Leaf("A", address),)))

    @rule(seconds=st.sampled_from([1.0, 7.0, 25.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds
        self.world.hears(TimerFired())

    @rule()
    def the_engine_is_woken(self) -> None:
        self.world.sleeps()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            winds_down(self.world, [0])
            every_job_ran(self.world)
            self.world.replays()
            self.world.replays_without_memos()
            type(self).counts.update(self.world.ledger.counts)


class Patient(Machine):
    """Begins where no job is evicted."""

    begins_with: ClassVar[Sequence[str]] = (
        "default",
        "fair",
        "off",
        "preview",
        "strict",
    )


class Moved(Machine):
    """Begins where jobs are moved: every node is held in part, and gangs come."""

    begins_with: ClassVar[Sequence[str]] = ("rearrange", "rearrange, reclaim")

    @initialize(
        pick=PICK,
        limits=st.just(()),
        shapes=st.lists(st.integers(1, 5), min_size=5, max_size=5),
    )
    def begin(self, pick: int, limits: tuple[()], shapes: list[int]) -> None:
        del limits
        queues = [Queue(name) for name in QUEUES]
        name = self.begins_with[pick % len(self.begins_with)]
        self.world = World(CONFS[name], NODES, queues)
        self.world.now = 1000.0
        for each, chips in zip(NODES, shapes, strict=False):
            half = job(f"h{each.name}", chips, moving=MOVABLE)
            held = Placement(0, each.name, tuple(range(chips)))
            self.world.hears(JobArrived(half, (held,), 0.0))

    @rule(pods=st.integers(1, 3), later=st.sampled_from([6.0, 20.0]))
    def a_gang_waits(self, pods: int, later: float) -> None:
        self.number += 1
        gang = job(f"j{self.number}", 8, pods, queue="default", priority=1)
        self.world.hears(JobArrived(gang))
        self.world.now += later
        self.world.hears(TimerFired())


class Evicting(Machine):
    """Begins where jobs preempt and reclaim."""

    begins_with: ClassVar[Sequence[str]] = tuple(
        sorted(CONFS.keys() - {*Patient.begins_with, *Moved.begins_with})
    )


def test_the_ledger_and_the_engine_agree_whatever_happens() -> None:
    """Jobs are placed, wait, are evicted, reserve, start in other reservations."""
    seen: Counter[str] = Counter()

    for n_examples, machine in ((60, Patient), (100, Evicting), (100, Moved)):
        machine.counts = seen
        bounds = settings(max_examples=examples(n_examples), stateful_step_count=30)
        run_state_machine_as_test(machine, settings=bounds)

    assert_reached(seen, "placed", "joined", "waiting", "reserved", "wake")
    assert_reached(seen, "evicts", "evicted", "backfilled", "moved", "repaired")


# Liveness


def fits_alone(world: World, one: Job) -> bool:
    """Whether a job would run if it were alone, by its queue and the nodes."""
    ledger = world.ledger
    queue = ledger.queues.get(one.queue)
    ended = {name for name, _replica in ledger.done}
    if queue is None or one.name in ledger.invalid | ended:
        return False
    if not one.chips and "backfill" not in ledger.conf.actions:
        return False
    least = least_of(one)[NPU]
    kept = sum(q.guarantee.get(NPU, 0) for q in ledger.queues.values())
    total = sum(1000 * each.chips for each in ledger.nodes.values() if each.ready)
    most = min(
        queue.capability.get(NPU, total), total - kept + queue.guarantee.get(NPU, 0)
    )
    alone = Session(Cluster(ledger.nodes.values())).place(one)
    return queue.is_open and least <= most and alone is not None


def winds_down(world: World, order: Sequence[int]) -> None:
    """Running jobs end one after the other, and time passes, until nothing happens."""
    for step in range(200):
        world.evictions_are_carried_out()
        if world.wake is not None and world.wake <= world.now:
            world.sleeps()
        elif world.running:
            pick = order[step % len(order)]
            world.now += 5
            world.hears(JobGone(world.running[pick % len(world.running)]))
        elif not world.sleeps():
            return
    raise AssertionError("it never ends")


def every_job_ran(world: World) -> None:
    """All jobs that are left do not even fit alone."""
    if world.ledger.conf is not CONFS["off"]:
        left = [one for one in world.ledger.jobs.values() if fits_alone(world, one)]
        assert not left, [one.name for one in left]


PATIENT = ("fair", "strict", "preempt", "reclaim", "both", "no enqueue")


@settings(max_examples=examples(60))
@given(
    st.sampled_from(PATIENT),
    st.tuples(*[LIMITS] * len(QUEUES)),
    st.lists(st.sampled_from(ILL), min_size=len(NODES), max_size=len(NODES)),
    st.lists(SHAPES, min_size=4, max_size=12),
    st.lists(PICK, min_size=5, max_size=5),
)
def test_every_job_that_fits_alone_runs_in_the_end(
    name: str,
    limits: tuple[Limits, ...],
    ills: list[dict[str, Any]],
    shapes: list[Shape],
    order: list[int],
) -> None:
    nodes = [replace(n, **ill) for n, ill in zip(NODES, ills, strict=True)]
    listed = [queue_of(*each) for each in zip(QUEUES, limits, strict=True)]
    world = World(CONFS[name], nodes, listed)
    for number, shape in enumerate(shapes):
        world.now += 1
        world.hears(JobArrived(job_of(f"j{number}", shape)))

    winds_down(world, order)

    every_job_ran(world)


STEP = 5.0


@settings(max_examples=examples(30))
@given(
    st.sampled_from(("fair", "strict", "no enqueue")),
    st.sampled_from([(8, 4), (8, 5), (8, 3), (4, 9)]),
    st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 6), st.booleans(), st.booleans()),
        min_size=3,
        max_size=9,
    ),
)
def test_a_stream_of_small_jobs_does_not_starve_a_big_one(
    name: str, big: tuple[int, int], small: list[tuple[int, int, bool, bool]]
) -> None:
    """Two small jobs come at every step, and each runs for up to six of them."""
    world = World(CONFS[name], NODES, [Queue(each) for each in QUEUES])
    started: dict[str, tuple[float, int]] = {}
    number = 0
    for step in range(80):
        world.now = STEP * step
        ended = [
            n for n, (at, last) in started.items() if at + STEP * last <= world.now
        ]
        events: list[Event] = [JobGone(each) for each in ended]
        for each in ended:
            del started[each]
        for _twice in range(4):
            chips, last, says, other = small[number % len(small)]
            queue = "p" if other else "default"
            estimate = STEP * last if says else None
            new = job(f"s{number}", chips, queue=queue, estimate_s=estimate)
            events.append(JobArrived(new))
            number += 1
        if step == 3:
            events.append(JobArrived(job("big", *big)))
        for said in world.hears(*events, TimerFired()):
            if isinstance(said, Bind) and said.job != "big":
                last = small[int(said.job[1:]) % len(small)][1]
                started[said.job] = world.now, last
        if "big" in world.ever_ran:
            return
    raise AssertionError("it starves")


def digest() -> str:
    """What an engine says to a long story, in short."""
    world = World(CONFS["both"], NODES, [Queue(each) for each in QUEUES])
    kinds = ("plain", "driver", "cpu", "plain", "superpod", "modest", "plain")
    for n in range(60):
        world.now += 3
        queue = QUEUES[n % 3]
        least = 1 if n % 4 == 0 else None
        shape = 8 - n % 5, 1 + n % 3, least, None, queue, n % 4, 10.0 * (n % 2) or None
        world.hears(JobArrived(job_of(f"j{n}", (*shape, True, True, kinds[n % 7]))))
        world.evictions_are_carried_out()
        if n % 3 == 0:
            world.hears(JobGone(world.running[n % len(world.running)]), TimerFired())
    winds_down(world, [0])
    return sha256(b"".join(said for _events, _now, said in world.trace)).hexdigest()


@pytest.mark.slow
def test_the_same_events_say_the_same_in_another_process() -> None:
    """Sets of names have another order there."""
    code = "import tests.properties.test_engine as t; print(t.digest())"
    found = {
        subprocess.run(  # noqa: S603 - our own code
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert found == {f"{digest()}\n"}
