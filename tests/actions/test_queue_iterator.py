"""Whose turn it is, and how many turns there are in one call."""

from importlib import import_module
from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.actions.allocate import attempt
from ringleaf.engine.event import JobArrived
from ringleaf.framework import budget, job_state
from ringleaf.framework.budget import COST_REFUSED, COST_TRIED
from ringleaf.framework.context import Context
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.placer import Placer
from ringleaf.model.demand import (
    Demand,
    Operator,
    PodTerm,
    Preferred,
    PreferredPods,
    Requirement,
    Spread,
)
from tests.engine.story import Story, conf, job, node, queue

FIVE = 5 * (COST_TRIED + COST_REFUSED)
ZONED = Requirement("zone", Operator.DOES_NOT_EXIST)
NEAR = PodTerm("zone", ())
LIKED = PreferredPods(1, NEAR)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs for which places were looked for; an action may try five."""
    names: list[str] = []
    place = Placer.place

    def noted(placer: Placer, job_state, limit, **how):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN003, ANN202
        names.append(job_state.job.name)
        return place(placer, job_state, limit, **how)

    monkeypatch.setattr(Placer, "place", noted)
    monkeypatch.setattr(budget, "TRIES", FIVE)
    return names


def distinct(prefix: str, count: int, queue: str) -> list[JobArrived]:
    """Jobs that each request something else, none of which a node of four chips has."""
    asks = [Demand(resources=(("cpu", 1000 + i),)) for i in range(count)]
    return [
        JobArrived(job(f"{prefix}{i:02}", demand=ask, queue=queue))
        for i, ask in enumerate(asks)
    ]


def story() -> Story:
    return Story(
        [node("n", range(4))],
        queues=[queue("p"), queue("q")],
        conf=conf("allocate"),
    )


def test_a_call_tries_a_few_jobs_and_the_next_call_the_others(tried: list[str]) -> None:
    found = story()

    found.hears(*distinct("p", 12, queue="p"), most=64)
    assert tried == [f"p{i:02}" for i in range(5)]
    while found.engine.has_more:
        found.hears(most=64)

    assert tried == [f"p{i:02}" for i in range(12)]


@pytest.mark.parametrize(
    ("says", "of_nodes", "of_pods"),
    [
        pytest.param(Demand(required=(ZONED,) * 16), 16, 0, id="required"),
        pytest.param(Demand(terms=((ZONED,) * 8,) * 2), 16, 0, id="terms"),
        pytest.param(
            Demand(prefers=(Preferred(1, (ZONED,) * 16),)), 16, 0, id="preferred"
        ),
        pytest.param(Demand(apart=(NEAR,) * 6), 0, 6, id="apart"),
        pytest.param(Demand(near=(NEAR,) * 6), 0, 6, id="near"),
        pytest.param(Demand(spread=(Spread("zone", 1, ()),) * 6), 0, 6, id="spread"),
        pytest.param(
            Demand(prefers_near=(LIKED,) * 3, prefers_apart=(LIKED,) * 3),
            0,
            6,
            id="preferred pods",
        ),
    ],
)
def test_a_call_tries_fewer_jobs_the_more_they_say_of_nodes_and_pods(
    tried: list[str],
    monkeypatch: pytest.MonkeyPatch,
    says: Demand,
    of_nodes: int,
    of_pods: int,
) -> None:
    """Such a try takes as long as several others."""
    monkeypatch.setattr(job_state, "OF_NODES", 16 / (COST_TRIED + COST_REFUSED))
    monkeypatch.setattr(job_state, "OF_PODS", 6 / (COST_TRIED + COST_REFUSED))
    found = story()
    asks = [replace(says, resources=(("cpu", 1000 + i),)) for i in range(12)]
    jobs = [
        JobArrived(job(f"p{i:02}", demand=ask, queue="p")) for i, ask in enumerate(asks)
    ]

    found.hears(*jobs, most=64)

    assert (says.n_of_nodes, says.n_of_pods) == (of_nodes, of_pods)
    assert tried == ["p00", "p01", "p02"]  # each costs twice as much, and five may


def test_without_a_limit_of_jobs_a_call_tries_all_of_them(tried: list[str]) -> None:
    found = story()

    found.hears(*distinct("p", 12, queue="p"))

    assert len(tried) == 12
    assert not found.engine.has_more


@pytest.mark.usefixtures("tried")
def test_every_queue_has_turns_however_many_jobs_another_has() -> None:
    found = story()

    late = job("late", 4, queue="q", created=9.0)
    said = found.hears(*distinct("p", 40, queue="p"), JobArrived(late), most=64)

    assert "bind late: 0 on n 0123" in said
    assert found.engine.has_more


def test_jobs_that_are_tried_again_and_again_leave_turns_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first jobs are looked at in every call, the others in turn."""
    found = story()
    found.hears(*distinct("p", 12, queue="p"), most=64)
    names: list[str] = []

    def noted(
        ctx: Context,
        line: EquivalenceClass,
        *rest: Any,  # noqa: ANN401
        **more: Any,  # noqa: ANN401
    ) -> bool:
        names.append(line.first_job.job.name)
        return attempt(ctx, line, *rest, **more)

    monkeypatch.setattr(import_module("ringleaf.actions.allocate"), "attempt", noted)
    monkeypatch.setattr(budget, "TRIES", 6 * COST_REFUSED)

    calls = []
    for _call in range(3):
        found.engine.context.pending.admitted.everything_changed()
        found.hears(most=64)
        calls.append([*names])
        names.clear()

    first = ["p00", "p01", "p02"]
    assert calls[0] == [*first, "p03", "p04", "p05"]
    assert calls[1] == [*first, "p06", "p07", "p08"]
    assert calls[2] == [*first, "p09", "p10", "p11"]
