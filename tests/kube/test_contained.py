"""A leader in which something fails inside goes on, or stands by and leads again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ringleaf.framework.instruction import Report, Verdict
from ringleaf.kube import leadership
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.decider import Decider
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.leadership import Leadership
from ringleaf.kube.quarantine import ObjectQuarantine
from ringleaf.kube.scheduler import Scheduler
from ringleaf.kube.status_writer import StatusWriter
from tests.kube.test_comparing import Live, live, until

FIRST_S, MOST_S = 0.0123, 0.0246
"""Pauses that no other part makes."""


class Fails:
    """A step that fails the first times it is taken, and is then what it was."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        owner: Any,  # noqa: ANN401
        name: str,
        times: int = 1,
    ) -> None:
        self.left, self._real = times, getattr(owner, name)
        patch.setattr(owner, name, self._wrapped())

    def _wrapped(self) -> Callable[..., Any]:
        def step(*args: Any, **keys: Any) -> Any:  # noqa: ANN401
            if self.left:
                self.left -= 1
                raise ZeroDivisionError("inside")
            return self._real(*args, **keys)

        return step


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing leader stands again at once."""
    monkeypatch.setattr(leadership, "FIRST_STAND_S", FIRST_S)
    monkeypatch.setattr(leadership, "MOST_STAND_S", MOST_S)


@asynccontextmanager
async def standby() -> AsyncIterator[Live]:
    """A standby that is well; at the end it has not ended by itself."""
    async with live(stands_by=True) as found:
        yield found
        assert found.scheduler.failure is None


def said(found: Live, *events: str) -> list[str]:
    """What the log says of these events, in order."""
    return [event for event, _facts in found.log if event in events]


def failed(found: Live) -> list[object]:
    """In what something failed, by the log."""
    return [facts["culprit"] for event, facts in found.log if event == "failed"]


def leads_if_it_can(found: Live, *fails: Fails) -> bool:
    """Whether a scheduler leads after all has failed; its Lease runs out meanwhile."""
    elector = found.scheduler.leadership.elector
    assert elector is not None
    if found.server.holder not in ("", elector.identity):
        found.server.give_up_the_lease()
    return found.scheduler.leads and not any(each.left for each in fails)


LEADING = [
    pytest.param(ClusterCache, "reconfigure", 1, id="the configuration"),
    pytest.param(Scheduler, "_begin_to_write", 1, id="its other parts"),
    pytest.param(Leadership, "_catch_up", 3, id="pods, three times"),
]


@pytest.mark.parametrize(("owner", "step", "times"), LEADING)
def test_one_that_fails_to_lead_stands_by_and_leads_again(
    monkeypatch: pytest.MonkeyPatch, owner: object, step: str, times: int
) -> None:
    async def story() -> None:
        async with standby() as found:
            fails = Fails(monkeypatch, owner, step, times)
            await until(lambda: leads_if_it_can(found, fails))

            told = said(found, "failed", "deposed")
            assert told == ["failed", "deposed"] * times
            assert failed(found) == ["leader"] * times
            assert found.scheduler.metrics.failures == times
            found.server.relabel("a")
            await until(lambda: not found.scheduler.cache.has_news)

    asyncio.run(story())


def test_one_that_fails_again_and_again_waits_longer_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with standby() as found:
            pauses, sleep = list[float](), asyncio.sleep

            async def pause(seconds: float) -> None:
                pauses.extend([seconds] if seconds in (FIRST_S, MOST_S) else [])
                await sleep(seconds)

            monkeypatch.setattr(asyncio, "sleep", pause)
            fails = Fails(monkeypatch, Scheduler, "_begin_to_write", 4)
            await until(lambda: leads_if_it_can(found, fails))

            assert pauses == [FIRST_S, MOST_S, MOST_S, MOST_S]

    asyncio.run(story())


STEPS = [
    pytest.param("_api.cut", "requests", id="requests"),
    pytest.param("writers.repair_executor.abandoned", "repairs", id="repairs"),
    pytest.param("writers.binder.abandoned", "bindings", id="bindings"),
    pytest.param("loop.forget_decisions", "decisions", id="decisions"),
    pytest.param("leadership.elector.step_down", "lease", id="the Lease"),
]


@pytest.mark.parametrize(("step", "culprit"), STEPS)
def test_a_step_down_that_fails_in_part_is_one_all_the_same(
    monkeypatch: pytest.MonkeyPatch, step: str, culprit: str
) -> None:
    async def story() -> None:
        async with standby() as found:
            *where, name = step.split(".")
            owner: object = found.scheduler
            for part in where:
                owner = getattr(owner, part)
            first = Fails(monkeypatch, Scheduler, "_begin_to_write")
            second = Fails(monkeypatch, owner, name)
            await until(lambda: leads_if_it_can(found, first, second))

            assert failed(found) == ["leader", culprit]

    asyncio.run(story())


def test_a_conflict_that_cannot_be_reported_leaves_the_others_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with standby() as found:
            for job in ("default/g", "pod default/p"):
                report = Report(job, Verdict.CONFLICT, f"{job} collides")
                found.scheduler.loop.state.conflicts[job] = report
            Fails(monkeypatch, StatusWriter, "warns")
            await until(lambda: leads_if_it_can(found))

            assert failed(found) == ["Job default/g"]
            reported = [f["job"] for event, f in found.log if event == "report"]
            assert reported == ["default/g", "pod default/p"]
            assert said(found, "deposed") == []

    asyncio.run(story())


RECOVERING = [
    pytest.param(ObjectQuarantine, "blame", id="the blame"),
    pytest.param(Isolation, "set_aside", id="the culprit"),
    pytest.param(Decider, "begin_anew", id="the new engine"),
]


@pytest.mark.parametrize(("owner", "step"), RECOVERING)
def test_a_recovery_that_fails_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, owner: object, step: str
) -> None:
    async def story() -> None:
        async with live() as found:
            first = Fails(monkeypatch, ClusterCache, "events")
            second = Fails(monkeypatch, owner, step)
            found.server.relabel("a")
            await until(lambda: not (first.left or second.left) and found.knows_chips)
            found.server.relabel("b")
            await until(lambda: not found.scheduler.cache.has_news)

            assert failed(found)[:2] == ["recovery", "unknown"]
            assert found.scheduler.failure is None

    asyncio.run(story())
