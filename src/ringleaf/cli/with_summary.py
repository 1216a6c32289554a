"""``ringleaf scheduler --with-summary``: the leader also writes summaries."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ringleaf.kube.api import Api
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.scheduler import Scheduler
from ringleaf.kube.service import Say
from ringleaf.kube.summary import WRITERS, SummaryWriter


@asynccontextmanager
async def summing(
    credentials: Credentials, say: Say, scheduler: Scheduler
) -> AsyncIterator[SummaryWriter]:
    """A writer of summaries that writes while *scheduler* leads, and ends with it.

    It has connections of its own: a large summary does not keep bindings waiting.
    """
    trouble = lambda line: say("trouble", message=line)  # noqa: E731
    async with Api(credentials, WRITERS, trouble, "ringleaf-summary") as api:
        name = f"ringleaf-{socket.gethostname()}"
        writer = SummaryWriter(api, say, led=scheduler.leadership.led, name=name)
        api.fence = scheduler.leadership.remaining
        task = asyncio.create_task(writer.run(), name="summary")

        def ended(_task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and (task.exception() or writer.failure):
                scheduler.failure = task.exception() or writer.failure
                scheduler.stop()

        task.add_done_callback(ended)
        try:
            yield writer
        finally:
            writer.stop()
            await asyncio.wait([task])
