import asyncio
from collections.abc import Callable, Coroutine

import pytest

from ringleaf.kube.tasks import drain


async def nothing() -> None:
    """A task that ends in its first turn."""


async def more(start: Callable[[Coroutine[None, None, None]], None]) -> None:
    """A task that starts another one as it ends."""
    await asyncio.sleep(0)
    start(nothing())


async def fails() -> None:
    raise ValueError


@pytest.mark.parametrize("ended", [True, False])
def test_tasks_are_drained_whether_they_have_ended_or_not(*, ended: bool) -> None:
    """Those that have ended are still in the set until their callbacks run."""

    async def story() -> None:
        tasks: set[asyncio.Task[None]] = set()

        def start(work: Coroutine[None, None, None]) -> None:
            task = asyncio.get_running_loop().create_task(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        for work in (nothing(), more(start), fails()):
            start(work)
        failing = [*tasks]
        if ended:
            await asyncio.wait(tasks)

        await asyncio.wait_for(drain(tasks), 10)

        assert tasks == set()
        assert [type(t.exception()) for t in failing].count(ValueError) == 1

    asyncio.run(story())
