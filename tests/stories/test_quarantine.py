"""What fails inside on a real cluster: told, set aside, and nobody else notices."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ringleaf.engine import job_events
from ringleaf.framework.session import Session
from ringleaf.kube import job_reader
from ringleaf.kube.api import Api
from ringleaf.kube.credentials import load
from ringleaf.kube.leader import Elector, Terms
from ringleaf.kube.scheduler import Options, Scheduler
from ringleaf.kube.status_writer import StatusWriter
from tests.deploy.helm import NAMESPACE
from tests.stories.stage import Stage, pod, podgroup


class Beside:
    """A scheduler in this process, whose parts can be made to fail."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.log: list[dict[str, Any]] = []

    def run(self, story: Callable[[], None]) -> Scheduler:
        """Schedule while *story* goes on; who did it."""
        return asyncio.run(self._serve(story))

    async def _serve(self, story: Callable[[], None]) -> Scheduler:
        credentials = await load(str(self._stage.account), None)
        async with Api(credentials, 4, lambda _line: None) as api:
            terms = Terms("ringleaf", NAMESPACE, "beside")
            elector = Elector(api, terms, lambda *_words, **_more: None)
            options = Options(namespace=NAMESPACE)
            scheduler = Scheduler(api, options, self._say, elector=elector)
            task = asyncio.create_task(scheduler.run())
            try:
                await asyncio.to_thread(story)
                assert not task.done()
            finally:
                scheduler.stop()
                await task
        assert scheduler.failure is None
        return scheduler

    def _say(self, event: str, **facts: object) -> None:
        self.log.append({"event": event, **facts})

    def lines(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.log if line["event"] == event]


def gang(stage: Stage, name: str, pods: int, chips: int) -> None:
    stage.create(podgroup(name, pods))
    for i in range(pods):
        stage.create(pod(f"{name}-{i}", chips, group=name))


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], None]:
    """Makes a function fail whenever it is called with something evil."""

    def patch(where: Any, name: str) -> None:  # noqa: ANN401
        real = getattr(where, name)

        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            subject = next((each for each in args if _is_evil(each)), None)
            if subject is not None:
                raise ZeroDivisionError("for a test")
            return real(*args, **kwargs)

        monkeypatch.setattr(where, name, call)

    return patch


def _is_evil(value: object) -> bool:
    return "evil" in str(getattr(value, "name", value if type(value) is str else ""))


@pytest.mark.parametrize(
    ("where", "name"),
    [
        pytest.param(job_reader, "job_of", id="reading a job"),
        pytest.param(Session, "attempt", id="deciding"),
        pytest.param(job_events, "validate", id="hearing of it"),
    ],
)
def test_a_job_that_makes_it_fail_is_told_and_others_are_bound(
    stage: Stage,
    fails: Callable[[Any, str], None],
    where: Any,  # noqa: ANN401
    name: str,
) -> None:
    stage.stop_scheduler()
    fails(where, name)
    beside = Beside(stage)

    def story() -> None:
        gang(stage, "evil", 2, 1)
        gang(stage, "good", 2, 1)
        for i in range(2):
            stage.wait_until_runs(f"good-{i}")
        stage.wait_for_condition("evil-0", "is quarantined for a while")

    scheduler = beside.run(story)
    assert scheduler.metrics.failures > 0
    told = [*beside.lines("failed"), *beside.lines("quarantined")]
    assert any("/evil" in line["culprit"] for line in told), told
    assert all("ZeroDivisionError" in line["trace"] for line in told)


def test_a_message_that_cannot_be_written_stops_no_other(
    stage: Stage, fails: Callable[[Any, str], None]
) -> None:
    stage.stop_scheduler()
    fails(StatusWriter, "_tell_group")
    beside = Beside(stage)

    def story() -> None:
        gang(stage, "evil", 1, 1)
        stage.wait_until_runs("evil-0")
        gang(stage, "good", 1, 1)
        stage.wait_until_runs("good-0")

        def is_told() -> bool:
            phases = {
                g["metadata"]["name"]: g.get("status", {}) for g in stage.groups()
            }
            return bool(phases["good"].get("phase") == "Running")

        stage.wait(is_told, "the phase of the other")

    scheduler = beside.run(story)
    assert scheduler.writers.status_writer.queue.counts.failed > 0
