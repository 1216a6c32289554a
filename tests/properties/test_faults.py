"""Faults, recoveries, restarts, submissions in any order: which pods are deleted.

``tests.engine.wards`` knows the rules and complains of every deletion that they do not
allow, also beyond restarts; the ledger complains of a chip that is owned twice.
"""

import io
from collections import Counter
from typing import Any, ClassVar

import msgspec
from hypothesis import settings
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
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    DeletionsKnown,
    Event,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsEnding,
    PodsGone,
    RepairKnown,
    TimerFired,
)
from ringleaf.framework.instruction import Bind, Instruction, PersistRepair, WakeAt
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.model.cluster import Node
from ringleaf.model.fault import (
    Cause,
    Down,
    FaultMode,
    PodFault,
    Record,
    Recovery,
    SubHealth,
)
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.model.placement import Placement
from ringleaf.simulator.log import Recorder, replay
from tests.effort import assert_reached, examples
from tests.engine.ledger import Ledger
from tests.engine.story import PLAIN, conf, job, node
from tests.properties.test_engine import A3

NODES = [
    node(f"{leaf}{slot}", leaf=leaf, slot=slot) for leaf in "AB" for slot in range(3)
]
NODES += [
    Node(f"P{pod}{n}", A3, 16, 0xFFFF, superpod=pod)
    for pod in range(2)
    for n in range(2)
]


def rules(percent: int) -> Conf:
    """A configuration in which little time passes."""
    given = {
        "fault-brake-percent": percent,
        "fault-brake-seconds": 30,
        "grace-over-time": 20,
        "repair-hold-seconds": 60,
        "reserve-nodes": 0,
        "super-pod-size": 2,
    }
    return conf("enqueue, allocate, backfill", PLAIN, **{"init-params": given})


RECOVERIES = st.builds(
    Recovery,
    mode=st.sampled_from([FaultMode.GRACE] * 4 + [FaultMode.FORCE] * 2 + [*FaultMode]),
    retries=st.sampled_from([0, 1, 3]),
    pods_only=st.booleans(),
    process=st.sampled_from([False, False, True]),
    escalates=st.sampled_from([True, True, False]),
    sub_health=st.sampled_from([SubHealth.GRACE_EXIT, *SubHealth]),
    master=st.sampled_from([0, None]),
).map(lambda each: each if each.escalates else replace(each, pods_only=True))
SHAPES = st.tuples(
    st.sampled_from([2, 4, 8, 8]),
    st.sampled_from([1, 2, 2, 3]),
    st.sampled_from([None, None, 1]),
    st.sampled_from(["plain", "plain", "leaves", "blocks"]),
    st.sampled_from([0, 0, 5]),
)
Shape = tuple[int, int, int | None, str, int]
SICK: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"faulty": 1, "unhealthy": 1},
    {"faulty": 0x30, "unhealthy": 0x10},
    {"faulty": 0xFF, "unhealthy": 0xFF},
    {"ready": False, "down": Down.NOT_READY},
    {"ready": False, "down": Down.SWITCH},
    {"ready": False, "down": Down.DAEMON},
    {"weak": 2, "sub_healthy": True},
    {"weak_switch": True, "sub_healthy": True},
    {"network_faulty": 1},
    {"cordoned": True},
)
PICK = st.integers(0, 999)
OWN = st.sampled_from([Cause.POD, Cause.RELATION, Cause.SUB_HEALTH])


def job_of(name: str, shape: Shape, recovery: Recovery) -> Job:
    """A job of some kind, most of them gangs."""
    chips, pods, least, kind, priority = shape
    given: dict[str, Any] = {"recovery": recovery, "priority": priority}
    if kind == "blocks":
        return Job(name, A3, 16, 2, sp_block=16, **given)
    if kind == "leaves" and pods > 1:
        return job(name, 8, pods, tor_affinity=Schema.LARGE_MODEL, **given)
    fewest = None if least is None or least >= pods else least
    return job(name, chips, pods, min_available=fewest, **given)


class World:
    """An engine, what an edge would know beside it, and what came of it all."""

    def __init__(self, conf: Conf) -> None:
        self.conf = conf
        self.now = 0.0
        self.wake: float | None = None
        self.records: dict[str, Record | None] = {}
        self.ailing: dict[str, tuple[PodFault, ...]] = {}
        self.ledger = Ledger(NODES, (), conf)
        self.counts = self.ledger.counts
        self.begin(NODES)

    def begin(self, nodes: list[Node]) -> None:
        """A new engine, which knows nothing but the nodes."""
        self.log = io.BytesIO()
        self.engine = Engine(nodes, (), (), self.conf)
        self.recorder = Recorder(self.engine, self.log)
        self.twin = Engine(nodes, (), (), self.conf)

    def hears(self, *events: Event) -> list[Instruction]:
        self.ledger.wards.now = self.now
        said = self.recorder.handle_all(events, self.now)
        again = self.twin.handle_all(events, self.now)
        assert msgspec.json.encode(again) == msgspec.json.encode(said)
        for event in events:
            self.ledger.hear(event)
        for each in said:
            self.ledger.heed(each)
            self._heed(each)
        self.ledger.compare(self.engine)
        assert not self.ledger.untold(self.engine)
        return said

    def _heed(self, said: Instruction) -> None:
        match said:
            case WakeAt():
                assert said.at > self.now
                self.wake = said.at
            case PersistRepair():
                self.records[said.job] = said.record
            case Bind():
                new = {p.replica for p in said.placements}
                left = [
                    a for a in self.ailing.get(said.job, ()) if a.replica not in new
                ]
                self.ailing[said.job] = tuple(left)
            case _:
                pass

    def pods_are_gone(self, most: int) -> None:
        """Of those that were deleted, up to so many are gone."""
        wards = self.ledger.wards
        pods = sorted({*self.ledger.ending, *(wards.gone.keys() - self.ledger.pods)})
        for name, replica in pods[:most]:
            pod = (name, replica)
            is_back = pod in self.ledger.pods and pod not in self.ledger.ending
            if name in self.ledger.jobs and not is_back:
                self._well(name, {replica})
                self.hears(PodsGone(name, (replica,)))

    def ends_well(self, name: str, replica: int) -> None:
        """A pod is done; nothing is wrong with it any more."""
        self._well(name, {replica})
        event = PodFaultsReported(name, self.ailing[name])
        self.hears(event, PodsGone(name, (replica,), succeeded=True))

    def _well(self, name: str, replicas: set[int]) -> None:
        left = [a for a in self.ailing.get(name, ()) if a.replica not in replicas]
        self.ailing[name] = tuple(left)

    def replays(self) -> None:
        """What was recorded is played again, byte for byte."""
        found = replay(io.BytesIO(self.log.getvalue()))
        assert found.difference is None, found.difference

    def restarts(self) -> None:
        """A new engine hears what an edge knows: jobs, pods, records, what ails."""
        self.replays()
        old, ledger = self.engine, self.ledger
        nodes = list(ledger.nodes.values())
        self.begin(nodes)
        self.wake = None
        self.ledger = Ledger(nodes, (), self.conf)
        self.ledger.wards, self.ledger.counts = ledger.wards, ledger.counts
        self.ledger.done = ledger.done
        events: list[Event] = [DeletionsKnown(tuple(old.deletions))]
        for name, one in ledger.jobs.items():
            record = self.records.get(name)
            if record is not None:
                events.append(RepairKnown(name, record))
            job_state = old.view.job_states.get(name)
            held = {} if job_state is None else job_state.placements
            listed: tuple[Placement, ...] = tuple(held[n] for n in sorted(held))
            events.append(JobArrived(one, listed))
            self._looks_again(name)
            if self.ailing.get(name):
                events.append(PodFaultsReported(name, self.ailing[name]))
            ending = tuple(sorted(n for other, n in ledger.ending if other == name))
            if ending:
                events.append(PodsEnding(name, ending))
            done = tuple(sorted(n for other, n in ledger.done if other == name))
            if done:
                events.append(PodsGone(name, done, succeeded=True))
        self._is_forgotten()
        self.hears(*events, TimerFired())
        self.counts["restarted"] += 1

    def _looks_again(self, name: str) -> None:
        """What ails the pods of a job after a restart: nodes may be gone by now.

        The engine before has counted what it was about to delete.
        """
        wards, nodes = self.ledger.wards, self.ledger.nodes
        pods_to_delete = {n for other, n in wards.deleted if other == name}
        lost = {n: node for (other, n), node in wards.lost.items() if other == name}
        gone = {n: node for n, node in lost.items() if node not in nodes}
        self._well(name, pods_to_delete | lost.keys())
        stranded = [
            PodFault(n, Cause.NODE, gone[n])
            for n in sorted(gone.keys() - pods_to_delete)
        ]
        self.ailing[name] = (*self.ailing[name], *stranded)

    def _is_forgotten(self) -> None:
        """Forced deletions, nodes that are back, deletions that were begun."""
        wards, nodes = self.ledger.wards, self.ledger.nodes
        gone = {pod: node for pod, node in wards.lost.items() if node not in nodes}
        wards.lost = {pod: gone[pod] for pod in gone.keys() - wards.deleted.keys()}
        wards.forced, wards.unsure = set(), {*self.ledger.jobs, *wards.written}

    def rests(self) -> None:
        """Everything that is asked for is done, and time passes, until it rests."""
        for _step in range(300):
            wards = self.ledger.wards
            if self.ledger.ending or wards.gone.keys() - self.ledger.pods:
                before = len(self.ledger.ending)
                self.pods_are_gone(99)
                if before:
                    continue
            if self.wake is None or self.wake > self.now + 200:
                return
            self.now, self.wake = max(self.now, self.wake), None
            self.hears(TimerFired())
        raise AssertionError("it never rests")

    def stranded(self) -> list[str]:
        """Jobs with faulty pods that are not repaired, or that fit and do not run."""
        found = []
        for name, one in self.ledger.jobs.items():
            if one.recovery.mode not in (FaultMode.GRACE, FaultMode.FORCE):
                continue
            job_state = self.engine.view.job_states.get(name)
            faulty = self.ledger.wards.faulty(name, self.ledger)
            asked = name in self.ledger.wards.asked
            if faulty and not asked:
                found.append(f"{name} is faulty: {faulty}")
            if job_state is None or not job_state.missing or job_state.terminating:
                continue
            if self._fits(job_state):
                found.append(f"{name} fits and does not run")
        return found

    def _fits(self, job_state: JobState) -> bool:
        """Whether an admitted job could have more pods than it has."""
        ctx = self.engine.context
        limit = ctx.quota.limit(
            job_state, ignore_share=ctx.pending.goes_first(job_state)
        )
        if limit is None or job_state.phase is Phase.PENDING:
            return False
        placed = ctx.placer.would_place(job_state, limit)
        return placed is not None and bool(placed.placements)


class Machine(RuleBasedStateMachine):
    """Anything that can happen to nodes, pods and the scheduler, in any order."""

    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    @initialize(
        percent=st.sampled_from([100, 40, 5]),
        jobs=st.lists(st.tuples(SHAPES, RECOVERIES), min_size=2, max_size=5),
    )
    def begin(self, percent: int, jobs: list[tuple[Shape, Recovery]]) -> None:
        self.world = World(rules(percent))
        gentle = Recovery(FaultMode.GRACE, sub_health=SubHealth.GRACE_EXIT)
        external = Recovery(FaultMode.EXTERNAL_GRACE, sub_health=SubHealth.GRACE_EXIT)
        first = [
            ((8, 2, None, "plain", 0), gentle),
            ((4, 1, None, "plain", 0), external),
        ]
        self.jobs_arrive([*first, *jobs])

    def _node(self, pick: int) -> Node:
        """One of the nodes; every other time a node with pods."""
        used = {use.node for use in self.world.ledger.pods.values()}
        nodes = [each for each in NODES if each.name in used] if pick % 2 else NODES
        return (nodes or NODES)[pick // 2 % len(nodes or NODES)]

    @rule(jobs=st.lists(st.tuples(SHAPES, RECOVERIES), min_size=1, max_size=2))
    def jobs_arrive(self, jobs: list[tuple[Shape, Recovery]]) -> None:
        for shape, recovery in jobs:
            self.number += 1
            one = job_of(f"j{self.number}", shape, recovery)
            self.world.hears(JobArrived(one))

    @precondition(lambda self: self.world.ledger.jobs)
    @rule(pick=PICK)
    def a_job_is_gone(self, pick: int) -> None:
        names = sorted(self.world.ledger.jobs)
        name = names[pick % len(names)]
        self.world.records.pop(name, None)
        self.world.ailing.pop(name, None)
        self.world.hears(JobGone(name))

    @precondition(lambda self: self.world.ledger.jobs)
    @rule(pick=PICK, recovery=RECOVERIES)
    def what_a_job_wants_changes(self, pick: int, recovery: Recovery) -> None:
        ledger = self.world.ledger
        names = sorted(self.world.engine.repairs.keys() & ledger.jobs.keys())
        names = names if names and pick % 3 else sorted(ledger.jobs)
        one = ledger.jobs[names[pick % len(names)]]
        self.world.hears(JobArrived(replace(one, recovery=recovery)))

    @precondition(lambda self: self.world.engine.repairs)
    @rule(pick=PICK)
    def a_job_without_pods_goes_and_comes_back(self, pick: int) -> None:
        ledger = self.world.ledger
        held = {name for name, _n in ledger.pods}
        away = sorted(self.world.engine.repairs.keys() & ledger.jobs.keys() - held)
        if away:
            name = away[pick % len(away)]
            one = ledger.jobs[name]
            # A pod that was found on a node that is gone is not found any more.
            for each in self.world.ailing.pop(name, ()):
                if each.cause is Cause.NODE:
                    ledger.wards.lost.pop((name, each.replica), None)
            self.world.hears(PodFaultsReported(name, ()), JobGone(name, returns=True))
            self.world.now += 1
            self.world.hears(JobArrived(one))

    @rule(picks=st.lists(PICK, min_size=1, max_size=3), sick=st.sampled_from(SICK))
    def nodes_change(self, picks: list[int], sick: dict[str, Any]) -> None:
        several = {n.name: n for n in map(self._node, picks)}
        self.world.hears(
            NodesChanged(tuple(replace(each, **sick) for each in several.values()))
        )

    @precondition(lambda self: len(self.world.ledger.nodes) > 5)
    @rule(pick=PICK)
    def a_node_is_gone(self, pick: int) -> None:
        known = sorted(self.world.ledger.nodes)
        self.world.hears(NodesGone((known[pick % len(known)],)))
        self.world.pods_are_gone(99 if pick % 2 else 0)

    @precondition(lambda self: self.world.ledger.pods)
    @rule(pick=PICK, cause=OWN)
    def a_pod_ails(self, pick: int, cause: Cause) -> None:
        pods = sorted(self.world.ledger.pods)
        name, replica = pods[pick % len(pods)]
        known = self.world.ailing.get(name, ())
        new = PodFault(replica, cause, self.world.ledger.pods[name, replica].node)
        rest = tuple(a for a in known if a.replica != replica)
        self.world.ailing[name] = (*rest, new)
        self.world.hears(PodFaultsReported(name, self.world.ailing[name]))

    @rule(most=st.integers(1, 4))
    def some_that_end_are_gone(self, most: int) -> None:
        self.world.pods_are_gone(most)

    @precondition(lambda self: self.world.ledger.pods)
    @rule(pick=PICK)
    def a_pod_ends_well(self, pick: int) -> None:
        ending = sorted(self.world.ledger.ending)
        pods = ending or sorted(self.world.ledger.pods)
        name, replica = pods[pick % len(pods)]
        self.world.ends_well(name, replica)

    @rule(seconds=st.sampled_from([1.0, 7.0, 25.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds
        self.world.hears(TimerFired())

    @rule()
    def the_scheduler_restarts(self) -> None:
        self.world.restarts()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            world = self.world
            world.rests()
            world.replays()
            assert not world.stranded(), world.stranded()
            type(self).counts.update(world.counts)


def test_only_pods_that_the_rules_name_are_deleted_whatever_happens() -> None:
    """Pods are deleted and repaired, deletions wait, the scheduler restarts."""

    class Counted(Machine):
        counts: ClassVar[Counter[str]] = Counter()

    bounds = settings(max_examples=examples(160), stateful_step_count=20)
    run_state_machine_as_test(Counted, settings=bounds)

    wanted = ("deleted", "repaired", "pointed", "asked", "rate-limited", "restarted")
    assert_reached(Counted.counts, *wanted)
