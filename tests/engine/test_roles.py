"""Gangs whose pods are all different cost in proportion to their pods.

Work is counted in calls; nothing here looks at a clock.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived, PodsGone
from ringleaf.framework import session
from ringleaf.framework.instruction import Bind
from ringleaf.framework.node_ranking import NodeRanking
from ringleaf.framework.session import MAX_RANKINGS
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from tests.counting import n_calls
from tests.engine.story import A2, BOTH, TIERS, at, conf, job, node

FEW, MANY = 500, 2000
TIMES = MANY // FEW
SLACK = 1.5
"""What is neither in proportion nor worse: caches that fill up, logarithms."""


def gang(pods: int, *, alike: bool = False, least: int | None = None) -> Job:
    """A gang of pods of one chip each of which is a role of its own."""
    roles = tuple(
        Role(f"r{i}", 1, 1, 1, asks_cpu(1 if alike else 1 + i), ranks=(i,))
        for i in range(pods)
    )
    return job("g", 1, pods, roles=roles, min_available=least)


def asks_cpu(milli: int) -> Demand:
    return Demand(resources=(("cpu", milli),))


def engine_for(pods: int) -> Engine:
    """A cluster with a chip for each of *pods*, and some more."""
    have = {"cpu": 10**9, "pods": 10**9}
    names = [f"n{i:03}" for i in range(pods // 8 + 1)]
    nodes = [node(name, resources=have) for name in names]
    return Engine(nodes, conf=conf(BOTH, TIERS))


def work_of(pods: int, *, alike: bool, elastic: bool) -> int:
    """The work of a gang that arrives, changes, and loses half of its pods."""
    engine = engine_for(pods)
    first = gang(pods, alike=alike, least=pods - 8 if elastic else None)

    def story() -> None:
        (said, *_rest) = engine.handle_all([JobArrived(first)], 0.0, 64)
        assert isinstance(said, Bind)
        assert len(said.placements) == pods
        changed = replace(first, min_available=pods // 2)
        engine.handle_all([JobArrived(changed)], 1.0, 64)
        gone = tuple(range(0, pods, 2))
        engine.handle_all([PodsGone("g", gone)], 2.0, 64)

    return n_calls(story)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alike", "elastic"),
    [
        pytest.param(True, False, id="own tasks, whole"),
        pytest.param(False, True, id="own requests, elastic"),
    ],
)
def test_a_gang_costs_in_proportion_to_its_roles(*, alike: bool, elastic: bool) -> None:
    few, many = (work_of(n, alike=alike, elastic=elastic) for n in (FEW, MANY))

    assert many < SLACK * TIMES * few


def test_nodes_are_put_in_order_for_no_request_of_one_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would cost more than to look at them, and push out the order of others."""
    made = list[object]()

    class Counted(NodeRanking):
        def __init__(self, *args: Any, **keys: Any) -> None:  # noqa: ANN401
            made.append(args)
            super().__init__(*args, **keys)

    monkeypatch.setattr(session, "NodeRanking", Counted)
    engine = engine_for(2 * MAX_RANKINGS)
    engine.handle_all([JobArrived(job("alone", 1, demand=asks_cpu(1)))], 0.0)
    assert len(made) == 1

    engine.handle_all([JobArrived(gang(2 * MAX_RANKINGS))], 1.0)

    assert len(made) == 1


def full(nodes: int) -> Engine:
    """A cluster of nodes that are full of single pods of low priority."""
    have = {"cpu": 10**9, "pods": 10**9}
    names = [f"n{i:03}" for i in range(nodes)]
    tiers = (("priority", "gang", "conformance"), ("predicates",))
    engine = Engine([node(n, resources=have) for n in names], conf=conf(BOTH, tiers))
    low = [
        JobArrived(job(f"{name}-{half}", 4), at(f"{name} {chips}"), started=0.0)
        for name in names
        for half, chips in enumerate(("0123", "4567"))
    ]
    engine.handle_all(low, 0.0)
    return engine


def pods_tried(monkeypatch: pytest.MonkeyPatch, gang: Job, engine: Engine) -> int:
    """How many pods are placed in trials until victims are found for *gang*."""
    own, tried = engine.context.framework.session, 0
    real = own.best

    def best(*args: object) -> int | None:
        nonlocal tried
        tried += 1
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(own, "best", best)
    said = engine.handle_all([JobArrived(replace(gang, priority=9))], 1000.0)
    assert any(each.__class__.__name__ == "Evict" for each in said)
    return tried


def two_roles(pods: int) -> Job:
    """A gang with a launcher without chips."""
    workers = Role("worker", 1, pods, demand=asks_cpu(1), ranks=tuple(range(pods)))
    launcher = Role("launcher", 0, 1, demand=asks_cpu(1), ranks=(pods,))
    return Job("g", A2, 1, pods, roles=(workers, launcher), min_available=pods + 1)


@pytest.mark.parametrize("make", [two_roles, gang], ids=["two roles", "own requests"])
def test_a_gang_of_roles_finds_victims_in_few_trials(
    monkeypatch: pytest.MonkeyPatch, make: object
) -> None:
    """What frees too few chips for all roles is not tried pod by pod."""
    assert callable(make)
    tried = pods_tried(monkeypatch, make(200), full(28))

    assert tried < 5 * 200, tried
