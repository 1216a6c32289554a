"""What fails inside is set aside; everything else goes on, wherever it failed."""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from ringleaf import actions, engine, framework, kube, plugins, policies
from ringleaf.actions.queue_iterator import QueueIterator
from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.framework.state import SchedulerState
from ringleaf.kube.api import Api
from ringleaf.kube.jobs import Group
from ringleaf.kube.leader import Elector
from ringleaf.kube.objects import NodeObject
from ringleaf.kube.quarantine import FIRST_S, MOST_S, Culprit, Quarantine
from ringleaf.kube.scheduler import Options, Scheduler
from ringleaf.kube.watch import Gone
from ringleaf.model.queue import Queue
from tests.kube.stage import NPU, Stage, node

EVIL = "evil"
CONTAIN = frozenset(
    f"ringleaf.kube.world.World.{name}"
    for name in (
        *("_not_taken", "_taken", "_set_aside", "set_aside", "_tell_aside"),
        *("_tell_culprit", "_tell_job_aside", "tell", "_close", "_open", "_look_at"),
        *("_heard_of", "_job_aside", "_close_all", "_withdraw", "_has_record"),
        "let_in",  # knows a name and nothing else
    )
) | {
    "ringleaf.kube.quarantine",
    "ringleaf.kube.world._is_held",
    "ringleaf.kube.world._nodes_of",
}
"""What sets something aside: nothing catches it where that fails itself."""


def all_actions() -> Conf:
    found = read_conf(
        {
            "actions": "enqueue, allocate, backfill, preempt, reclaim",
            "tiers": [
                {"plugins": [{"name": "priority"}, {"name": "gang"}]},
                {
                    "plugins": [
                        *({"name": "conformance"}, {"name": "overcommit"}),
                        *({"name": "drf"}, {"name": "predicates"}),
                        *({"name": "proportion"}, {"name": "nodeorder"}),
                        {"name": "binpack"},
                    ]
                },
            ],
        }
    )
    assert isinstance(found, Conf)
    return found


CONF = all_actions()


# The scenario: an evil gang, node and queue among others


def cluster() -> Stage:
    """Nodes, of which two are full, and a gang that is repaired when a node fails."""
    nodes = [node(name) for name in ("a", "b", "c", "d", "evil-node")]
    stage = Stage(nodes, CONF)
    stage.queue("default", weight=1)
    stage.queue("evil-queue", weight=1)
    labels = {"fault-scheduling": "grace"}
    for name, queue in (("low", "default"), ("evil-old", "evil-queue")):
        stage.gang(name, 1, queue=queue, labels=labels)
    stage.endure()
    return stage


def act(stage: Stage) -> None:
    """Evil objects come, a node fails, and a gang of two that asks for little."""
    stage.priority_class("high", 1000)
    likes = {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}}
    spec = {"affinity": likes, "tolerations": [{"operator": "Exists"}]}
    stage.group("evil", 3, queue="evil-queue", priorityClassName="high")
    for i in range(3):
        stage.pod(f"evil-{i}", 8, "evil", spec=spec, labels={"app": "evil"})
    stage.gang("canary", 2, 2)
    stage.put_node(node("a", ready="False"))


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"app": "evil"}},
}


def canary_is_bound(stage: Stage) -> bool:
    """Whether both pods of the canary are bound within two seconds."""
    for _tenth in range(20):
        stage.endure(0.1)
        if {"canary-0", "canary-1"} <= stage.bound.keys():
            return True
    return False


def chips_given_twice(stage: Stage) -> list[str]:
    """Chips of which two pods say that they are theirs."""
    seen, twice = set[tuple[str, str]](), []
    for plain in stage.pods.values():
        where = plain["spec"].get("nodeName")
        for chip in plain["metadata"]["annotations"].get(NPU, "").split(","):
            if where and chip:
                twice += [f"{where} {chip}"] if (where, chip) in seen else []
                seen.add((where, chip))
    return twice


# Failing anywhere


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


Wrap = Callable[[FunctionType], Callable[..., Any]]


def put_everywhere(
    patch: pytest.MonkeyPatch, where: object, name: str, found: FunctionType, wrap: Wrap
) -> None:
    """Wrap a function wherever it was imported to."""
    wrapped = wrap(found)
    patch.setattr(where, name, wrapped)
    for module in [*sys.modules.values()]:
        if module.__name__.startswith("ringleaf") and module is not where:
            for alias, value in [*vars(module).items()]:
                if value is found:
                    patch.setattr(module, alias, wrapped)


def noting(reached: set[str]) -> Wrap:
    def wrap(found: FunctionType) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if any(map(is_evil, (*args, *kwargs.values()))):
                reached.add(named(found))
            return found(*args, **kwargs)

        return call

    return wrap


def failing(times: list[str]) -> Wrap:
    """Fail for what is evil, and note it."""

    def wrap(found: FunctionType) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            evil = [*filter(is_evil, (*args, *kwargs.values()))]
            if evil:
                subject = evil[0]  # as in the function itself
                times.append(named(found))
                raise ZeroDivisionError(type(subject))
            return found(*args, **kwargs)

        return call

    return wrap


def is_reported(stage: Stage) -> bool:
    """Whether the scheduler logs, counts and reports on an object what failed."""
    failures = [each for each in stage.world.failures if "Zero" in each.trace]
    told = [
        p for p in stage.world.problems if "is quarantined for a while" in p.message
    ]
    counted = sum(stage.world.quarantine.failures.values())
    return bool(failures and told and counted >= len(failures))


def named(found: FunctionType) -> str:
    return f"{found.__module__}.{found.__qualname__}"


@pytest.fixture(scope="module")
def reached() -> list[tuple[object, str, FunctionType]]:
    """The functions that are called with something evil."""
    names: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        for where, name, found in functions():
            put_everywhere(patch, where, name, found, noting(names))
        stage = cluster()
        act(stage)
        assert canary_is_bound(stage)
    return [each for each in functions() if named(each[2]) in names]


@pytest.mark.slow
def test_whatever_fails_for_one_object_the_others_are_bound(
    reached: list[tuple[object, str, FunctionType]],
) -> None:
    assert len(reached) > 150
    stopped, twice, silent = [], [], []
    for where, name, found in reached:
        with pytest.MonkeyPatch.context() as patch:
            stage, times = cluster(), list[str]()
            put_everywhere(patch, where, name, found, failing(times))
            act(stage)
            if not canary_is_bound(stage):
                stopped.append(named(found))
            if given := chips_given_twice(stage):
                twice.append((named(found), given))
            if times and not is_reported(stage):
                silent.append(named(found))
    assert (stopped, twice, silent) == ([], [], [])


def test_a_queue_whose_turn_always_fails_is_set_aside_with_its_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No function of the trace has a job or a queue, only the name of the queue."""
    stage, times = cluster(), list[str]()
    heap = cast("FunctionType", QueueIterator._heap)  # noqa: SLF001
    monkeypatch.setattr(QueueIterator, "_heap", failing(times)(heap))
    act(stage)

    assert canary_is_bound(stage)
    assert times
    aside = stage.world.quarantine.asides
    assert {Culprit("Queue", "evil-queue"), Culprit("Job", "default/evil")} <= {*aside}


# What is set aside


def test_a_job_that_fails_is_told_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a")
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.world.job_of", _fail)
        stage.gang("g", 1)
        assert stage.endure() == []
    assert "it makes the scheduler fail (ZeroDivisionError" in stage.reason("default/g")
    (failure,) = stage.world.failures
    assert failure.culprit == Culprit("Job", "default/g")
    assert "ZeroDivisionError" in failure.trace
    assert stage.world.next_at == stage.now + FIRST_S

    assert stage.cycle(FIRST_S / 2) == []
    assert stage.cycle(FIRST_S / 2) == ["bind default/g: g-0 on a 01234567"]


def test_a_pod_that_fails_when_it_is_read_keeps_its_node_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a b")
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.pods._asked", _fail)
        asks = {"cpu": "77m"}  # pods alike are read once
        plain = stage.pod("odd", 1, spec={"nodeName": "a"}, asks=asks)
    assert stage.world.problems[0].kind == "Pod"
    assert "is quarantined for a while" in stage.world.problems[0].message
    stage.pod("good", 8)
    assert stage.cycle() == ["bind pod default/good: good on b 01234567"]

    plain["metadata"]["annotations"]["huawei.com/AscendReal"] = "Ascend910-7"
    stage.put_pod(plain)
    stage.pod("next", 4)
    assert stage.cycle() == ["bind pod default/next: next on a 0123"]
    assert stage.world.known_problems == []


def test_a_node_that_fails_when_it_is_read_gets_no_pods_and_loses_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a b", CONF)
    stage.gang("g", 1, labels={"fault-scheduling": "force"})
    stage.cycle()
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.world.node_of", _fail)
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
        patch.setattr(SchedulerState, "put", _fail_for(SchedulerState.put, "odd"))
        stage.queue("odd", weight=1)
        stage.pod("good", 8)
        assert stage.endure() == ["bind pod default/good: good on a 01234567"]
    stage.gang("late", 1, queue="odd")
    stage.cycle()
    assert stage.cycle(FIRST_S) == ["bind default/late: late-0 on b 01234567"]


def test_what_is_gone_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage("a")
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.pods._asked", _fail)
        stage.pod("odd", 4, spec={"nodeName": "a"}, asks={"cpu": "78m"})
        patch.setattr("ringleaf.kube.world.read_queue", _fail)
        stage.queue("odd", weight=1)
    stage.world.drop_queues([Gone("", "odd", "")])
    stage.drop_pod("odd")
    assert stage.world.next_at is None
    stage.pod("good", 8)
    assert stage.cycle() == ["bind pod default/good: good on a 01234567"]


# Beside the engine


def scheduler_of(stage: Stage, log: list[str]) -> Scheduler:
    """A scheduler over *stage* that sends nothing; names of its log lines."""
    api = cast(Api, None)
    found = Scheduler(api, Options(), lambda what, **_facts: log.append(what))
    found.world = found.teller._world = stage.world  # noqa: SLF001
    found.decider = stage.decider
    return found


def test_a_standby_logs_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    stage = Stage("a")
    scheduler = scheduler_of(stage, log)
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.pods._asked", _fail)
        stage.pod("odd", 1, asks={"cpu": "79m"})

    scheduler._keep_conflicts([], [])  # noqa: SLF001 - as while it stands by

    assert log == ["quarantined"]
    assert scheduler.metrics.failures == 1
    assert stage.world.failures == []


def test_a_binding_that_cannot_be_written_holds_no_chips(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage("a")
    scheduler = scheduler_of(stage, [])
    stage.gang("g", 1)
    said = stage.engine.handle_all(stage.decider.news(stage.now), stage.now)
    with monkeypatch.context() as patch:
        patch.setattr("ringleaf.kube.encode.written", _fail)
        with pytest.raises(ZeroDivisionError) as error:
            scheduler._carry_out(said)  # noqa: SLF001 - as in a cycle

    assert [pod.assumed for pod in stage.world.pods.values()] == [None]
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
    scheduler = scheduler_of(stage, log)
    real = vars(Group)["is_half_bound"].fget

    def half(group: Group) -> bool:
        return bool(1 // 0) if EVIL in group.name else real(group)

    monkeypatch.setattr(Group, "is_half_bound", property(half))
    monkeypatch.setattr(scheduler, "_begin_to_write", lambda: None)
    elector = cast(Elector, SimpleNamespace(identity="me"))

    scheduler._take_the_lead(elector)  # noqa: SLF001 - after the Lease is taken

    assert log == ["leads"]
    scheduler._log_failures()  # noqa: SLF001 - at the end of the next cycle
    assert log == ["leads", "quarantined"]
    assert scheduler.teller.n_waiting == 2
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
    quarantine = Quarantine()
    pauses = [quarantine.put(JOB, "why", 10.0).until - 10 for _time in range(12)]
    assert pauses[:4] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S]
    assert pauses[-1] == MOST_S
    assert quarantine.failures == {"Job": 12}


def test_what_changes_is_tried_again_at_once_the_first_time_only() -> None:
    quarantine = Quarantine()
    quarantine.put(JOB, "why", 10.0)
    assert quarantine.changed(JOB, 10.1) == 10.1
    assert quarantine.changed(JOB, 10.1) is None
    assert quarantine.of(JOB, 10.1) is None
    for _time in range(9):
        quarantine.put(JOB, "why", 20.0)
    assert quarantine.changed(JOB, 20.1) == 29
    assert quarantine.changed(OTHER, 20.1) is None


def test_what_has_been_well_for_long_is_forgotten() -> None:
    quarantine = Quarantine()
    quarantine.put(JOB, "why", 10.0)
    quarantine.tidy(10.0 + MOST_S)
    assert [*quarantine.asides] == [JOB]
    quarantine.tidy(11.0 + MOST_S)
    assert [*quarantine.asides] == []


def blamed(quarantine: Quarantine, now: float, outer: object, inner: object) -> str:
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
    quarantine = Quarantine()
    a, b, c = Queue("a"), Queue("b"), Queue("c")
    assert blamed(quarantine, 0, a, b) == "b"
    assert blamed(quarantine, 100, a, None) == "a"
    assert blamed(quarantine, 200, None, None) == ""
    assert blamed(quarantine, 300, a, b) == "b"
    assert blamed(quarantine, 301, a, c) == "a"


def test_objects_of_the_api_server_are_no_culprits() -> None:
    """They are set aside where they are read."""
    given = msgspec.convert(node("a"), NodeObject)
    assert blamed(Quarantine(), 0, None, given) == ""
