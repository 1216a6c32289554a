"""Parts of a service that fail are begun anew, and nothing else is."""

import asyncio
from typing import Any, cast

import pytest

from ringleaf.kube import service
from ringleaf.kube.service import KubeService
from ringleaf.kube.watch import Reflector


class Listing:
    """A reflector of one path, which fails at first or runs on."""

    path = "/api/v1/namespaces/mindx-dl/configmaps"

    def __init__(self, *, fails: bool) -> None:
        self._fails = fails
        self.synced = False
        self.lists = 0

    async def run(self) -> None:
        self.lists += 1
        self.synced = True
        if self._fails and self.lists == 1:
            raise ZeroDivisionError
        await asyncio.Event().wait()

    def renew(self) -> None:
        self.synced = False


def test_a_reflector_that_fails_lists_again_and_another_of_its_path_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two kinds of reports are ConfigMaps of one namespace."""
    monkeypatch.setattr(service, "PART_AGAIN_S", 0.0)

    async def story() -> None:
        one, other = Listing(fails=True), Listing(fails=False)
        played = KubeService(lambda *_what, **_facts: None, lambda: 0.0)
        played._reflectors = cast(list[Reflector[Any]], [one, other])  # noqa: SLF001
        for number, each in enumerate((one, other)):
            played.start(each.run, f"{each.path} {number}")
        async with asyncio.timeout(10):
            while one.lists < 2 or not one.synced:  # noqa: ASYNC110 - short
                await asyncio.sleep(0)

        assert (other.lists, other.synced) == (1, True)
        played.stop()
        for number in range(2):
            assert played.is_running(f"{one.path} {number}")
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    asyncio.run(story())
