"""Waiting for tasks that run beside each other."""

import asyncio


async def drain(tasks: "set[asyncio.Task[None]]") -> None:
    """Return when *tasks* is empty; a callback of each task removes it when it ends.

    Since Python 3.12 waiting for tasks that have ended returns at once, before their
    callbacks have run: the loop needs a turn besides.
    """
    while tasks:
        await asyncio.wait(tasks)
        await asyncio.sleep(0)
