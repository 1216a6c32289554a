"""After a failure another engine begins: in parts, and not too often for anybody.

Work is counted in events and rebuilds; nothing here looks at a clock.
"""

import asyncio
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import pytest

from ringleaf.actions.allocate import attempt
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import ConfChanged, Event, JobArrived
from ringleaf.framework.context import Context
from ringleaf.framework.instruction import Instruction
from ringleaf.kube import decider as decider_module
from ringleaf.kube.decider import Decider
from ringleaf.kube.jobs import namespace_of
from ringleaf.kube.quarantine import (
    FIRST_S,
    LATELY_S,
    LONGEST_S,
    MOST_S,
    MOST_SPENT_S,
    REST,
    Culprit,
    ObjectQuarantine,
)
from tests.kube.scenes import SCENES, Scene
from tests.kube.stage import Stage
from tests.kube.test_comparer import found as differences
from tests.kube.test_comparing import Searching, live, until
from tests.kube.test_stepdown import books

COST_S = 6.0
"""What a rebuild of a large cluster takes."""


# In parts


def handed(stage: Stage) -> list[list[Event]]:
    """What the next engine of a stage hears, part by part."""
    return [part for part, _said in stage.decider.hand_over(stage.now)]


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
@pytest.mark.parametrize("acts", [False, True], ids=["before", "after"])
def test_an_engine_that_hears_in_parts_decides_as_one_that_hears_all_at_once(
    monkeypatch: pytest.MonkeyPatch, scene: Scene, *, acts: bool
) -> None:
    monkeypatch.setattr(decider_module, "HANDED", 2)
    outcomes = []
    for in_parts in (False, True):
        stage = scene.cluster()
        if acts:
            scene.act(stage)
        stage.decider.begin_anew()
        if in_parts:
            assert len(handed(stage)) > 3
        words = [stage.cycle(), stage.cycle(700), stage.cycle(700)]
        assert differences(stage) == []
        outcomes.append((words, stage.bound, books(stage)))

    assert outcomes[0] == outcomes[1]


def test_an_engine_decides_nothing_before_it_has_heard_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chips of pods that it has not heard of yet seem to be free."""
    monkeypatch.setattr(decider_module, "HANDED", 1)
    stage = Stage("a")
    stage.pod("waits", 8)
    stage.pod("runs", 8, spec={"nodeName": "a"}, annotations=NAMED)
    stage.cycle()
    stage.decider.begin_anew()
    old = stage.engine

    for _part, said in stage.decider.hand_over(stage.now):
        assert said == []
        assert stage.decider.begins_anew
        assert stage.engine is old, "the last one is there to be read"

    assert stage.engine is not old
    assert stage.cycle() == ["waiting pod default/waits"]


NAMED = {"huawei.com/Ascend910": ",".join(f"Ascend910-{n}" for n in range(8))}


def test_one_that_fails_while_it_hears_is_followed_by_another() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle()
    stage.decider.begin_anew()
    parts = stage.decider.hand_over(stage.now)
    next(parts)
    stage.decider.begin_anew()

    assert [*parts] == []
    assert stage.decider.begins_anew
    assert handed(stage)
    assert differences(stage) == []


class Counted(Searching):
    """Counts what an engine hears, and the turns of others before each call."""

    heard: list[tuple[int, int]]
    turns = 0

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.has_more = False

    def handle_all(
        self, events: Iterable[Event], now: float, most: float
    ) -> list[Instruction]:
        given = [*events]
        type(self).heard.append((len(given), type(self).turns))
        return super().handle_all(given, now, most)


def test_others_have_their_turns_between_the_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decider_module, "HANDED", 2)
    Counted.heard = []

    async def others() -> None:
        while True:
            Counted.turns += 1
            await asyncio.sleep(0)

    async def story() -> None:
        async with live(Counted) as found:
            task = asyncio.create_task(others())
            await asyncio.sleep(0.05)
            Counted.heard.clear()
            scheduler = found.scheduler
            scheduler.loop.recover(ZeroDivisionError())
            await until(lambda: not scheduler.decider.begins_anew)
            task.cancel()
            (rebuilt,) = [facts for event, facts in found.log if event == "rebuilt"]
            assert rebuilt["events"] == sum(n for n, _turn in parts())

    def parts() -> list[tuple[int, int]]:
        return Counted.heard[: -1 if len(Counted.heard) > 4 else None]

    asyncio.run(story())

    assert len(Counted.heard) > 3
    assert max(n for n, _turn in Counted.heard) <= 2
    turns = [turn for _n, turn in Counted.heard]
    assert turns == sorted({*turns}), "there was a turn between any two"


def test_jobs_arrive_one_after_the_other() -> None:
    """The engine takes such over together."""
    stage = Stage("a b c")
    stage.gang("g", 2)
    stage.pod("p", 4)
    stage.cycle()
    for plain in stage.pods.values():
        plain["status"]["phase"] = "Running"
        stage.put_pod(plain)
    stage.cycle()

    kinds = [type(event) for event in stage.cache.everything(stage.now)]

    first = kinds.index(JobArrived)
    assert kinds[first:].count(JobArrived) == 2
    assert kinds[first : first + 2] == [JobArrived] * 2
    assert kinds.count(ConfChanged) == 1


# How often


def failing_for(patch: pytest.MonkeyPatch, is_odd: Callable[[str], bool]) -> None:
    """Fail where a job is tried that is odd by its name."""

    def failing(cycle: Context, line: Any, *args: Any, **named: Any) -> bool:  # noqa: ANN401
        job_state = line.first_job
        if is_odd(job_state.job.name):
            raise ZeroDivisionError(job_state.job.name)
        return attempt(cycle, line, *args, **named)

    patch.setattr(import_module("ringleaf.actions.allocate"), "attempt", failing)


def endure(stage: Stage, cost_s: float = COST_S) -> tuple[list[str], int]:
    """What is decided in the end, and how many engines had to begin until then."""
    for rebuilds in range(1000):
        try:
            return stage.cycle(), rebuilds
        except ZeroDivisionError as error:
            stage.decider.recover(error, stage.now)
            stage.cache.isolation.engine_began(cost_s, stage.now)
            stage.now += cost_s
    raise AssertionError("it fails again and again")


def with_odd_jobs(n_jobs: int) -> Stage:
    """Jobs of one namespace that make the scheduler fail, and one of another."""
    stage = Stage("a b")
    for i in range(n_jobs):
        stage.pod(f"odd-{i:03}", 1, namespace="odd")
    stage.pod("good", 8)
    return stage


@pytest.mark.parametrize("n_jobs", [10, 100])
def test_however_many_jobs_of_a_namespace_fail_few_engines_begin(
    monkeypatch: pytest.MonkeyPatch, n_jobs: int
) -> None:
    failing_for(monkeypatch, lambda name: namespace_of(name) == "odd")
    stage = with_odd_jobs(n_jobs)

    words, rebuilds = endure(stage)

    assert words == ["bind pod default/good: good on a 01234567"]
    assert rebuilds <= 1 + MOST_SPENT_S / COST_S
    spent, began = rebuilds * COST_S, stage.now
    for _minute in range(600):
        stage.now += 60
        _words, more = endure(stage)
        spent += more * COST_S
    assert 0.001 < spent / (stage.now - began) < 1 / REST


def test_pods_of_such_a_namespace_keep_what_they_hold_and_say_why_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a b c")
    stage.pod("runs", 8, namespace="odd")
    assert stage.cycle() == ["bind pod odd/runs: runs on a 01234567"]
    for i in range(3):
        stage.pod(f"odd-{i}", 1, namespace="odd")
    with monkeypatch.context() as patch:
        failing_for(patch, lambda name: "odd-" in name)
        endure(stage)
    stage.pod("late", 1, namespace="odd")
    stage.pod("good", 8)

    assert stage.cycle() == ["bind pod default/good: good on b 01234567"]
    assert stage.reason("pod odd/late") == (
        "jobs of its namespace make the scheduler fail (ZeroDivisionError: pod odd/"
        "odd-1), so it is quarantined for a while; hint: change or delete it, and "
        "report the trace in the scheduler's log"
    )
    assert stage.bound["odd/runs"] == "a 01234567"

    words = [*stage.cycle(LONGEST_S), *stage.cycle(1.0)]
    assert {word.split(":")[0] for word in words} >= {"bind pod odd/late"}


def test_one_job_that_fails_leaves_its_namespace_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing_for(monkeypatch, lambda name: name == "pod odd/odd-000")
    stage = with_odd_jobs(2)

    words, rebuilds = endure(stage)

    assert rebuilds == 1
    assert "bind pod odd/odd-001: odd-001 on a 0" in words


@pytest.mark.parametrize("changes", [False, True])
def test_a_job_is_left_alone_for_longer_than_a_rebuild_takes(
    monkeypatch: pytest.MonkeyPatch, *, changes: bool
) -> None:
    """Also if it changes all the time."""
    failing_for(monkeypatch, lambda name: name == "default/odd")
    stage = Stage("a")
    stage.cache.isolation.engine_began(COST_S, stage.now)
    stage.gang("odd", 1)
    rebuilds = 0
    for second in range(600):
        if changes:
            stage.group("odd", 1, labels={"second": str(second)})
        stage.now += 1
        _words, more = endure(stage, COST_S)
        rebuilds += more

    assert 1 < rebuilds <= 600 / (REST * COST_S) + 1


def test_on_a_small_cluster_all_jobs_that_fail_are_found_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing_for(monkeypatch, lambda name: "odd-00" in name)
    stage = with_odd_jobs(11)

    words, rebuilds = endure(stage, 0.001)

    assert rebuilds == 10
    assert len(words) == 2


def test_what_was_spent_long_ago_counts_no_more() -> None:
    quarantine = ObjectQuarantine()
    job = [Culprit("Job", "odd/j")]
    assert quarantine.spread(job, 0.0) == job
    quarantine.begun(MOST_SPENT_S, 0.0)

    assert quarantine.spread(job, 1.0) == [*job, Culprit("Namespace", "odd")]
    node = [Culprit("Node", "odd/j")]
    assert quarantine.spread(node, 1.0) == node
    quarantine.begun(0.0, LATELY_S)
    assert quarantine.spread(job, LATELY_S) == job


def test_pauses_grow_with_what_a_rebuild_takes_for_what_may_make_one_begin() -> None:
    quarantine = ObjectQuarantine()
    assert quarantine.put(Culprit("Job", "d/j"), "", 0.0).until == FIRST_S
    quarantine.begun(2.0, 0.0)

    assert quarantine.put(Culprit("Job", "d/j"), "", 0.0).until == REST * 2.0
    assert quarantine.put(Culprit("Pod", "d/p"), "", 0.0).until == FIRST_S
    quarantine.begun(1e9, 0.0)
    assert quarantine.put(Culprit("Node", "n"), "", 0.0).until == LONGEST_S > MOST_S


def test_the_decider_of_a_stage_begins_anew() -> None:
    """The last one is read only once."""
    stage = Stage("a")
    stage.cycle()
    decider: Decider = stage.decider
    decider.begin_anew()
    decider.begin_anew()

    assert stage.cycle() == []
    assert not decider.begins_anew
