"""What fails inside is set aside; everything else goes on, wherever it failed."""

import importlib
import inspect
import pkgutil
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, cast

import msgspec
import pytest

import ringleaf
from ringleaf import actions, engine, framework, kube, plugins, policies
from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.framework.job_state import JobState
from ringleaf.framework.placement_attempt import PlacementAttempt
from ringleaf.framework.repair import Repair
from ringleaf.framework.reservation import Reservation
from ringleaf.framework.state import SchedulerState
from ringleaf.kube import gang_events
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.objects import NodeObject
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.quarantine import FIRST_S, MOST_S, Culprit, ObjectQuarantine
from ringleaf.kube.scheduler import Scheduler
from ringleaf.kube.watch import Gone
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.queue import Queue
from tests.effort import examples
from tests.kube.scenes import CONF, EVIL, SCENES, act_where_it_is_full, full
from tests.kube.stage import NPU, Stage, node, scheduler_of
from tests.plugins.stage import A2

CONTAIN = frozenset(
    f"ringleaf.kube.{name}"
    for name in (
        *(
            f"isolation.Isolation.{name}"
            for name in (
                *("_reject", "_stored", "_quarantine", "set_aside", "is_quarantined"),
                *("quarantine_job", "quarantine_node", "_look_at"),
                *("_note", "_note_on_object", "_note_on_job"),
            )
        ),
        *("closed_nodes.ClosedNodes.close", "closed_nodes.ClosedNodes.open"),
        "closed_nodes.ClosedNodes.close_all",
        *("gang_events.GangEvents.changes", "gang_events.GangEvents._withdraw"),
        "job_reader.JobReader._held_in_quarantine",
        *("job_reader.JobReader._held", "gang_state.set_status"),
        "repair_checkpoints.RepairCheckpoints._has_record",
        "problems.Problems.note",
        "assumed_pods.AssumedPods.admit",  # knows a name and nothing else
        *("gang_members.is_held", "gang_members.nodes_of", "quarantine"),
    )
)
"""What sets something aside: nothing catches it where that fails itself."""


def canary_is_bound(stage: Stage) -> bool:
    """Whether both pods of the canary are bound within two seconds."""
    for _tenth in range(20):
        stage.endure(0.1)
        if {"canary-0", "canary-1"} <= stage.bound.keys():
            return True
    return False


def chips_given_twice(stage: Stage) -> list[str]:
    """Chips of which two pods that have not ended say that they are theirs."""
    seen, twice = set[tuple[str, str]](), []
    for plain in stage.pods.values():
        if plain["status"]["phase"] == "Failed":
            continue
        where = plain["spec"].get("nodeName")
        for chip in plain["metadata"]["annotations"].get(NPU, "").split(","):
            if where and chip:
                twice += [f"{where} {chip}"] if (where, chip) in seen else []
                seen.add((where, chip))
    return twice


# Failing anywhere


SOURCE = str(Path(ringleaf.__file__).parent)
SUBJECTS = (Job, JobState, Repair, Reservation, GangState, PodState, Node, Queue)
"""What a function may be about."""


def is_evil(value: object) -> bool:
    """Whether an argument is about something evil."""
    if isinstance(value, str):
        return EVIL in value[:40]
    for key in ("name", "key"):
        name = getattr(value, key, None)
        if isinstance(name, str) and EVIL in name:
            return True
    inner = getattr(value, "metadata", None) or getattr(value, "job", None)
    return inner is not None and inner is not value and is_evil(inner)


def is_about_evil(values: Iterable[object], caller: FrameType | None) -> bool:
    """Whether a call is about something evil, by its arguments or those of its callers.

    A rule of the network gets counts and no job: the function that knows a job says
    which one it is about, the nearest such function first.
    """
    given = [*values]
    while not any(map(is_evil, given)):
        if caller is None or any(isinstance(each, SUBJECTS) for each in given):
            return False
        code = caller.f_code
        is_wrapper = code.co_filename == __file__ and code.co_name == "call"
        if not (is_wrapper or code.co_filename.startswith(SOURCE)):
            return False
        own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = [caller.f_locals.get(name) for name in own]
        caller = caller.f_back
    return True


def modules() -> Iterator[ModuleType]:
    """Every module that reads objects or decides, those to come among them."""
    for package in (actions, engine, framework, kube, plugins, policies):
        for found in pkgutil.iter_modules(package.__path__):
            name = f"{package.__name__}.{found.name}"
            if name not in CONTAIN:
                yield importlib.import_module(name)


def functions() -> Iterator[tuple[object, str, FunctionType]]:
    """Every function of those modules, with where it is kept."""
    for module in modules():
        for name, found in [*vars(module).items()]:
            if getattr(found, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(found) and named(found) not in CONTAIN:
                yield module, name, found
            elif inspect.isclass(found):
                for own, method in [*vars(found).items()]:
                    is_plain = inspect.isfunction(method) and not own.startswith("__")
                    if is_plain and named(method) not in CONTAIN:
                        yield found, own, method


DECIDING = ("ringleaf.actions.", "ringleaf.plugins.", "ringleaf.policies.")
Wrap = Callable[[FunctionType], Callable[..., Any]]


@cache
def aliases() -> dict[FunctionType, list[tuple[ModuleType, str]]]:
    """Function -> where it was imported to."""
    found: dict[FunctionType, list[tuple[ModuleType, str]]] = {}
    for module in [*sys.modules.values()]:
        if module.__name__.startswith("ringleaf"):
            for name, value in vars(module).items():
                if inspect.isfunction(value) and value.__module__ != module.__name__:
                    found.setdefault(value, []).append((module, name))
    return found


def put_everywhere(
    patch: pytest.MonkeyPatch, where: object, name: str, found: FunctionType, wrap: Wrap
) -> None:
    """Wrap a function wherever it was imported to."""
    wrapped = wrap(found)
    for module, alias in [(where, name), *aliases().get(found, ())]:
        patch.setattr(module, alias, wrapped)


def noting(reached: set[str]) -> Wrap:
    def wrap(found: FunctionType) -> Callable[..., Any]:
        own = named(found)

        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if own not in reached:
                caller = sys._getframe(1)  # noqa: SLF001
                if is_about_evil((*args, *kwargs.values()), caller):
                    reached.add(own)
            return found(*args, **kwargs)

        return call

    return wrap


def fail_inside(
    function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Fail in a function with the same names and arguments, as it might itself."""
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    scope: dict[str, Any] = {}
    exec(f"def fails({', '.join(given)}): raise ZeroDivisionError", scope)  # noqa: S102
    scope["fails"](**given)


def failing(times: list[str]) -> Wrap:
    """Fail for what is evil, and note it."""

    def wrap(found: FunctionType) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            values = (*args, *kwargs.values())
            if is_about_evil(values, sys._getframe(1)):  # noqa: SLF001
                times.append(named(found))
                fail_inside(found, args, kwargs)
            return found(*args, **kwargs)

        return call

    return wrap


def is_reported(stage: Stage) -> bool:
    """Whether the scheduler logs, counts and reports on an object what failed."""
    failures = [each for each in stage.cache.isolation.failures if "Zero" in each.trace]
    told = [
        p
        for p in stage.cache.problems.unreported
        if "is quarantined for a while" in p.message
    ]
    counted = sum(stage.cache.isolation.quarantine.failures.values())
    return bool(failures and told and counted >= len(failures))


def named(found: FunctionType) -> str:
    return f"{found.__module__}.{found.__qualname__}"


Functions = list[tuple[object, str, FunctionType]]
Reached = dict[str, Functions]


@pytest.fixture(scope="module")
def reached() -> Reached:
    """Scene -> functions that are called about something evil, in no scene before."""
    names: set[str] = set()
    every, found = [*functions()], Reached()
    with pytest.MonkeyPatch.context() as patch:
        for where, name, function in every:
            put_everywhere(patch, where, name, function, noting(names))
        for key, scene in SCENES.items():
            before = frozenset(names)
            stage = scene.cluster()
            scene.act(stage)
            assert canary_is_bound(stage)
            new = names - before
            found[key] = [each for each in every if named(each[2]) in new]
    return found


TABLES = {"ringleaf.policies.products", "ringleaf.policies.rules"}
"""Modules that make tables once."""
EXPLAIN = {f"ringleaf.policies.{name}" for name in ("marks", "words")}
"""Modules that explain a decision where somebody asks, outside of the scheduler."""
METRICS = {"ringleaf.policies.fragments"}
ACTIONS = {
    f"ringleaf.actions.{name}"
    for name in ("allocate", "backfill", "handle_faults", "preempt")
}
"""Modules of which no function is given a job; what they call is."""
WHOLE = {"ringleaf.actions.propose"}
"""Modules that make leaves whole where no job is pending, which a command does."""


@pytest.mark.slow
def test_every_rule_plugin_and_action_is_reached(reached: Reached) -> None:
    known = {each.__module__ for found in reached.values() for _w, _n, each in found}
    wanted = {
        each.__module__
        for _where, _name, each in functions()
        if each.__module__.startswith(DECIDING)
    }

    assert wanted - known <= TABLES | EXPLAIN | METRICS | ACTIONS | WHOLE
    assert {"switches", "superpods", "repair_leaves"} <= {
        each.removeprefix("ringleaf.policies.") for each in known
    }
    assert "ringleaf.plugins.affinity" in known
    assert {key for key, found in reached.items() if not found} == set()
    assert sum(map(len, reached.values())) > 700


def drawn(reached: Reached, key: str) -> Functions:
    """The functions that fail in this run: of the first scene all, else some."""
    found = reached[key]
    if key == "full":
        return found
    chosen = min(len(found), examples(len(found)))
    return random.Random(key).sample(found, chosen)  # noqa: S311 - no secret


@pytest.mark.slow
@pytest.mark.parametrize("key", SCENES)
def test_whatever_fails_for_one_object_the_others_are_bound(
    reached: Reached, key: str
) -> None:
    stopped, twice, silent = [], [], []
    for where, name, found in drawn(reached, key):
        with pytest.MonkeyPatch.context() as patch:
            stage, times = SCENES[key].cluster(), list[str]()
            put_everywhere(patch, where, name, found, failing(times))
            SCENES[key].act(stage)
            if not canary_is_bound(stage):
                stopped.append(named(found))
            if given := chips_given_twice(stage):
                twice.append((named(found), given))
            if times and not is_reported(stage):
                silent.append(named(found))
    assert (stopped, twice, silent) == ([], [], [])


def test_jobs_of_one_queue_that_fail_leave_the_queue_and_other_jobs_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither the queue nor the job that was heard of last is blamed."""
    stage = Stage("a b c d")
    stage.gang("runs", 1)
    stage.cycle()
    stage.cycle()
    attempt, times = cast("FunctionType", PlacementAttempt.place), list[str]()
    monkeypatch.setattr(PlacementAttempt, "place", failing(times)(attempt))
    for i in range(5):
        stage.gang(f"evil-{i}", 1, 4, labels={"app": str(i)})
    stage.gang("good", 1)

    assert stage.endure() == ["bind default/good: good-0 on b 01234567"]
    assert len(times) == 5
    aside = stage.cache.isolation.quarantine.asides
    assert {*aside} == {Culprit("Job", f"default/evil-{i}") for i in range(5)}


def test_a_job_is_withdrawn_although_its_last_run_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What fails while a job ends does not fail again while it is quarantined."""
    stage = Stage("a b")
    stage.gang("evil", 1)
    stage.cycle()
    has_run, times = cast("FunctionType", gang_events._has_run), list[str]()  # noqa: SLF001
    monkeypatch.setattr(gang_events, "_has_run", failing(times)(has_run))
    stage.drop_pod("evil-0")
    stage.gang("good", 1)

    assert stage.endure() == ["bind default/good: good-0 on a 01234567"]
    assert times


def test_a_repair_that_fails_is_set_aside_with_its_job_and_known_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = SCENES["leaves 1.0"].cluster()
    hold, times = cast("FunctionType", Repair.hold_places), list[str]()
    with monkeypatch.context() as patch:
        patch.setattr(Repair, "hold_places", failing(times)(hold))
        stage.decider.begin_anew()
        stage.gang("good", 1, 4)
        (bound,) = [word for word in stage.endure() if word.startswith("bind")]
        assert bound.startswith("bind default/good: ")
        assert {*stage.engine.repairs} == set()

    stage.endure(FIRST_S)

    assert {*stage.engine.repairs} == {"default/evil-one", "default/evil-all"}


def test_a_queue_whose_turn_always_fails_is_set_aside_with_its_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No function of the trace has a job or a queue, only the name of the queue."""
    stage, times = full(), list[str]()
    heap = cast("FunctionType", QueueIterator._heap)  # noqa: SLF001
    monkeypatch.setattr(QueueIterator, "_heap", failing(times)(heap))
    act_where_it_is_full(stage)

    assert canary_is_bound(stage)
    assert times
    aside = stage.cache.isolation.quarantine.asides
    assert {Culprit("Queue", "evil-queue"), Culprit("Job", "default/evil")} <= {*aside}


# What is set aside


def test_a_job_that_fails_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a")
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.job_reader.job_of", _fail)
        stage.gang("g", 1)
        assert stage.endure() == []
    assert "it makes the scheduler fail (ZeroDivisionError" in stage.reason("default/g")
    (failure,) = stage.cache.isolation.failures
    assert failure.culprit == Culprit("Job", "default/g")
    assert "ZeroDivisionError" in failure.trace
    assert stage.cache.next_at == stage.now + FIRST_S

    assert stage.cycle(FIRST_S / 2) == []
    assert stage.cycle(FIRST_S / 2) == ["bind default/g: g-0 on a 01234567"]


def test_a_pod_that_fails_when_it_is_read_keeps_its_node_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a b")
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.pod_request._requested", _fail)
        asks = {"cpu": "77m"}  # pods alike are read once
        plain = stage.pod("odd", 1, spec={"nodeName": "a"}, asks=asks)
    assert stage.cache.problems.unreported[0].kind == "Pod"
    assert "is quarantined for a while" in stage.cache.problems.unreported[0].message
    stage.pod("good", 8)
    assert stage.cycle() == ["bind pod default/good: good on b 01234567"]

    plain["metadata"]["annotations"]["huawei.com/AscendReal"] = "Ascend910-7"
    stage.put_pod(plain)
    stage.pod("next", 4)
    assert stage.cycle() == ["bind pod default/next: next on a 0123"]
    assert stage.cache.problems.known == []


def test_a_node_that_fails_when_it_is_read_gets_no_pods_and_loses_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a b", CONF)
    stage.gang("g", 1, labels={"fault-scheduling": "force"})
    stage.cycle()
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.node_store.node_of", _fail)
        stage.put_node(node("a", spec={"unschedulable": False}))
        assert stage.endure() == []
        stage.pod("good", 8)
        assert stage.endure() == ["bind pod default/good: good on b 01234567"]

    assert stage.endure(FIRST_S) == []
    stage.drop_pod("g-0")
    stage.pod("g-0", 8, "g")
    assert stage.endure(1) == ["bind default/g: g-0 on a 01234567"]


def test_a_queue_that_fails_holds_up_its_own_jobs_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a b")
    with monkeypatch.context() as patch:
        patch.setattr(
            SchedulerState, "put_queue", _fail_for(SchedulerState.put_queue, "odd")
        )
        stage.queue("odd", weight=1)
        stage.pod("good", 8)
        assert stage.endure() == ["bind pod default/good: good on a 01234567"]
    stage.gang("late", 1, queue="odd")
    stage.cycle()
    assert stage.cycle(FIRST_S) == ["bind default/late: late-0 on b 01234567"]


def test_what_is_gone_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage("a")
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.pod_request._requested", _fail)
        stage.pod("odd", 4, spec={"nodeName": "a"}, asks={"cpu": "78m"})
        patch.setattr("ringleaf.kube.queue_store.read_queue", _fail)
        stage.queue("odd", weight=1)
    stage.cache.handlers["queues"].on_delete([Gone("", "odd", "")])
    stage.drop_pod("odd")
    assert stage.cache.next_at is None
    stage.pod("good", 8)
    assert stage.cycle() == ["bind pod default/good: good on a 01234567"]


# Beside the engine


def logged(stage: Stage, log: list[str]) -> Scheduler:
    """A scheduler over *stage* that sends nothing; names of its log lines."""
    return scheduler_of(stage, lambda what, **_facts: log.append(what))


def test_a_standby_logs_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    stage = Stage("a")
    scheduler = logged(stage, log)
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.pod_request._requested", _fail)
        stage.pod("odd", 1, asks={"cpu": "79m"})

    scheduler.loop.keep_conflicts([], [])  # as while it stands by

    assert log == ["quarantined"]
    assert scheduler.metrics.failures == 1
    assert stage.cache.isolation.failures == []


def test_a_binding_that_cannot_be_written_holds_no_chips(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a")
    scheduler = logged(stage, [])
    stage.gang("g", 1)
    said = stage.engine.handle_all(stage.decider.news(stage.now), stage.now)
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.encode.written", _fail)
        with pytest.raises(ZeroDivisionError) as error:
            scheduler.loop.executor.carry_out(said)  # as in a cycle

    assert [pod.assumed for pod in stage.cache.pods.values()] == [None]
    assert stage.decider.recover(error.value, stage.now) == [
        Culprit("Job", "default/g")
    ]
    stage.pod("good", 8)
    assert stage.cycle() == ["bind pod default/good: good on a 01234567"]


def test_a_group_that_cannot_be_reported_does_not_end_the_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: list[str] = []
    stage = Stage("a b")
    stage.gang("evil", 1)
    stage.gang("good", 1)
    stage.cycle()
    scheduler = logged(stage, log)
    real = vars(GangState)["is_half_bound"].fget

    def half(group: GangState) -> bool:
        return bool(1 // 0) if EVIL in group.name else real(group)

    monkeypatch.setattr(GangState, "is_half_bound", property(half))
    monkeypatch.setattr(scheduler, "_begin_to_write", lambda: None)

    scheduler.leadership.take_the_lead()  # after the Lease is taken

    assert log == ["leads"]
    scheduler.loop.narrator.log_failures()  # at the end of the next cycle
    assert log == ["leads", "quarantined"]
    assert scheduler.writers.status_writer.queue.n_waiting == 2
    assert stage.endure() == []


def _fail(*_args: object, **_kwargs: object) -> None:
    raise ZeroDivisionError("for a test")


def _fail_for(
    real: Callable[[SchedulerState, Queue], None], name: str
) -> Callable[..., None]:
    def call(view: SchedulerState, queue: Queue) -> None:
        if queue.name == name:
            raise ZeroDivisionError
        real(view, queue)

    return call


# How long


JOB, OTHER = Culprit("Job", "n/a"), Culprit("Job", "n/b")


def test_the_pause_doubles_up_to_a_limit() -> None:
    quarantine = ObjectQuarantine()
    pauses = [quarantine.put(JOB, "why", 10.0).until - 10 for _time in range(12)]
    assert pauses[:4] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S]
    assert pauses[-1] == MOST_S
    assert quarantine.failures == {"Job": 12}


def test_what_changes_is_tried_again_at_once_the_first_time_only() -> None:
    quarantine = ObjectQuarantine()
    quarantine.put(JOB, "why", 10.0)
    assert quarantine.changed(JOB, 10.1) == 10.1
    assert quarantine.changed(JOB, 10.1) is None
    assert quarantine.of(JOB, 10.1) is None
    for _time in range(9):
        quarantine.put(JOB, "why", 20.0)
    assert quarantine.changed(JOB, 20.1) == 29
    assert quarantine.changed(OTHER, 20.1) is None


def test_what_has_been_well_for_long_is_forgotten() -> None:
    quarantine = ObjectQuarantine()
    quarantine.put(JOB, "why", 10.0)
    quarantine.tidy(10.0 + MOST_S)
    assert [*quarantine.asides] == [JOB]
    quarantine.tidy(11.0 + MOST_S)
    assert [*quarantine.asides] == []


def blamed(
    quarantine: ObjectQuarantine, now: float, outer: object, inner: object
) -> str:
    """What is blamed for a failure in one function that another called."""

    def called(thing: object) -> None:
        raise ZeroDivisionError(thing)

    def calling(other: object) -> None:
        called(inner)
        assert other is outer

    try:
        calling(outer)
    except ZeroDivisionError as error:
        return " ".join(key for _kind, key in quarantine.blame(error, now))
    raise AssertionError


def test_the_innermost_function_that_knows_says_what_failed() -> None:
    quarantine = ObjectQuarantine()
    a, b, c = (Job(name, A2, 8) for name in "abc")
    assert blamed(quarantine, 0, a, b) == "b"
    assert blamed(quarantine, 100, a, None) == "a"
    assert blamed(quarantine, 200, None, None) == ""
    assert blamed(quarantine, 300, a, b) == "b"
    assert blamed(quarantine, 301, a, c) == "a"


def test_a_queue_is_no_culprit_where_two_jobs_of_it_fail() -> None:
    quarantine = ObjectQuarantine()
    a, b = Job("a", A2, 8), Job("b", A2, 8)
    queue = Queue("q")
    assert blamed(quarantine, 0, queue, a) == "a"
    assert blamed(quarantine, 1, queue, b) == "b"


def test_a_function_that_has_the_name_of_a_job_alone_says_which() -> None:
    def named_only(job: str) -> None:
        raise ZeroDivisionError(job)

    with pytest.raises(ZeroDivisionError) as error:
        named_only("n/a")

    assert ObjectQuarantine().blame(error.value, 0.0) == [JOB]


def test_objects_of_the_api_server_are_no_culprits() -> None:
    """They are set aside where they are read."""
    given = msgspec.convert(node("a"), NodeObject)
    assert blamed(ObjectQuarantine(), 0, None, given) == ""
