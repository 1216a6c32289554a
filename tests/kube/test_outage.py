"""What is told while the API server is away is told again, as it is then."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Unreachable
from ringleaf.kube.objects import Metadata, QueueObject, QueueStatus
from ringleaf.kube.status_writer import StatusWriter
from tests.kube.stage import NPU, Stage, status_writer_of


class Server:
    """Answers from a list; None is no answer, and the last stays."""

    def __init__(self, *answers: int | None) -> None:
        self.answers = list(answers)
        self.heard: list[tuple[str, str]] = []
        self.said: list[dict[str, Any]] = []

    async def call(
        self, method: str, path: str, body: bytes, *, kind: str, lane: str, fenced: bool
    ) -> Answer:
        assert (method, lane, fenced) == ("PATCH", "tell", True), kind
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if status is None:
            raise Unreachable("away")
        said = msgspec.json.decode(body)["status"]
        self.heard.append((path.rpartition("/")[2], said.get("phase", "")))
        self.said.append(said)
        return Answer(status, b"")


def status_writer(server: Server, stage: Stage) -> StatusWriter:
    return status_writer_of(stage, server, asyncio.get_running_loop().time)


def tell(server: Server, until: Callable[[], bool], stage: Stage) -> None:
    """Tell of the PodGroup ``g`` until something is so."""

    async def run() -> None:
        own = status_writer(server, stage)
        own.group_changed("default/g", is_urgent=True)
        task = asyncio.create_task(own.queue.run())
        async with asyncio.timeout(30):
            while not until():
                assert not task.done(), task.exception()
                await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(run())


@pytest.fixture
def stage() -> Stage:
    """A PodGroup without pods that was let in."""
    found = Stage("a")
    found.group("g", 2)
    found.cycle()
    assert found.cache.gangs["default/g"].reported.is_admitted
    return found


def test_a_queue_that_is_made_later_is_told_what_it_uses() -> None:
    stage = Stage("a")
    stage.pod("p", 8)
    stage.cycle()
    server = Server(404, 200)

    async def run() -> None:
        own = status_writer(server, stage)
        for _made in range(2):
            own.queues_changed()
            await own.queue.flush(5.0)
        own.queues_changed()
        await own.queue.flush(5.0)

    asyncio.run(run())

    assert len(server.said) == 2
    assert server.said[0] == server.said[1]


@pytest.mark.parametrize("trouble", [None, 401, 429, 503], ids=str)
def test_a_phase_that_nobody_heard_is_told_again(
    stage: Stage, trouble: int | None
) -> None:
    server = Server(trouble, 200)

    tell(
        server,
        lambda: ("status", "Inqueue") in server.heard[trouble is not None :],
        stage,
    )

    assert {phase for _path, phase in server.heard} == {"Inqueue"}


def test_an_outage_between_two_requests_ends_nothing(stage: Stage) -> None:
    """Where there is no subresource the object itself is asked."""
    server = Server(404, None, 404, 200)

    tell(server, lambda: server.heard[-1:] == [("g", "Inqueue")], stage)

    assert [path for path, _phase in server.heard] == ["status", "status", "g"]


def test_at_the_end_what_nobody_hears_is_not_told_over_and_over(stage: Stage) -> None:
    server = Server(503)

    async def run() -> None:
        own = status_writer(server, stage)
        own.group_changed("default/g", is_urgent=True)
        async with asyncio.timeout(30):
            await own.queue.flush(1e9)

    asyncio.run(run())

    assert server.heard == [("status", "Inqueue")]


def test_what_the_leader_before_us_said_of_a_queue_is_taken_back(stage: Stage) -> None:
    """Nothing is used any more; it was used when another led."""
    server = Server(200)
    status = QueueStatus(allocated={NPU: "8", "cpu": "1"})
    stage.cache.handlers["queues"].on_update(
        [QueueObject(Metadata(name="default"), status=status)]
    )
    stage.cycle()

    async def run() -> None:
        own = status_writer(server, stage)
        own.queues_changed()
        await own.queue.flush(10)

    asyncio.run(run())

    assert server.said == [{"allocated": {NPU: None, "cpu": None}}]
