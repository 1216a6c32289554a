"""What is told while the API server is away is told again, as it is then."""

import asyncio
from collections.abc import Callable
from typing import cast

import msgspec
import pytest

from ringleaf.kube.api import Answer, Api, Unreachable
from ringleaf.kube.teller import Teller
from tests.kube.stage import Stage


class Server:
    """Answers from a list; None is no answer, and the last stays."""

    def __init__(self, *answers: int | None) -> None:
        self.answers = list(answers)
        self.heard: list[tuple[str, str]] = []

    async def call(
        self, method: str, path: str, body: bytes, *, kind: str, lane: str, fenced: bool
    ) -> Answer:
        assert (method, lane, fenced) == ("PATCH", "tell", True), kind
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if status is None:
            raise Unreachable("away")
        said = msgspec.json.decode(body)["status"]
        self.heard.append((path.rpartition("/")[2], said["phase"]))
        return Answer(status, b"")


def tell(server: Server, until: Callable[[], bool], stage: Stage) -> None:
    """Tell of the PodGroup ``g`` until something is so."""

    async def run() -> None:
        own = Teller(
            cast(Api, server),
            stage.world,
            lambda: stage.engine.view,
            asyncio.get_running_loop().time,
            is_binding=lambda: False,
            name="test",
        )
        own.group_changed("default/g", is_urgent=True)
        task = asyncio.create_task(own.run())
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
    assert found.world.groups["default/g"].let_in
    return found


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
