"""What the services have in common: a clock, parts that run beside each other, an end.

The scheduler, the writer of summaries and the shadow are services.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Final

from ringleaf.kube.quarantine import told, trace_of
from ringleaf.kube.watch import Reflector

PART_AGAIN_S: Final = 1.0
"""How long after a failure a part is begun anew."""

Say = Callable[..., None]
Part = Callable[[], Coroutine[Any, Any, None]]
"""Begins a part of a service's work."""


def steady_clock() -> Callable[[], float]:
    """A clock of seconds since 1970 that goes on as evenly as the machine's."""
    epoch = time.time() - time.monotonic()
    return lambda: epoch + time.monotonic()


class KubeService:
    """A loop around what reflectors hear.

    Args:
        say: Writes a line of the log: what happened, and its circumstances.
        clock: Seconds since 1970 that never go backwards.

    """

    part_ended = "a part ended"
    """What is logged of a part that ends by itself."""

    def __init__(self, say: Say, clock: Callable[[], float] | None = None) -> None:
        self._say = say
        self._clock = clock or steady_clock()
        self._wake, self._stop = asyncio.Event(), asyncio.Event()
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._reflectors: list[Reflector[Any]] = []
        self.failure: BaseException | None = None
        """Why a part of it ended that should not have."""
        self.refused_conf = ""
        """What is wrong with a newer configuration; the last good one counts."""

    def now(self) -> float:
        """Seconds since 1970; it never goes backwards."""
        return self._clock()

    def stop(self) -> None:
        """End soon: nothing more is begun, what is in flight finishes."""
        self._stop.set()
        self._wake.set()

    def refuse_conf(self, why: str) -> None:
        """A newer configuration is bad; the last good one counts."""
        self.refused_conf = why

    @property
    def reflectors(self) -> Sequence[Reflector[Any]]:
        """The reflectors, one for each kind."""
        return self._reflectors

    @property
    def is_synced(self) -> bool:
        """Whether everything there was is known."""
        return all(reflector.synced for reflector in self._reflectors)

    def _is_ready(
        self, role: str, *others: Reflector[Any], lease_trouble: str = ""
    ) -> tuple[bool, dict[str, str]]:
        """Whether it may be relied on, and why not; *others* must be listed, too."""
        missing = [r.path for r in (*others, *self._reflectors) if not r.synced]
        told = dict.fromkeys(missing, "not listed yet")
        if lease_trouble:
            told["lease"] = lease_trouble
        if self.refused_conf:
            told["configuration"] = self.refused_conf
        told["role"] = role
        return not missing and not self._stop.is_set(), told

    def _start(
        self,
        work: Coroutine[Any, Any, Any],
        name: str,
        ended: Callable[["asyncio.Task[Any]"], object] | None = None,
    ) -> "asyncio.Task[Any]":
        """Begin a part of the work."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(ended or self._part_ended)
        return task

    def start(self, part: Part, name: str) -> None:
        """Begin a part that is begun anew a moment later if it fails."""
        self._start(part(), name, partial(self._restart_later, part))

    async def list_anew(self, reflector: Reflector[Any]) -> None:
        """Have a reflector begin with a list again."""
        name = next(n for n in self._tasks if n.startswith(f"{reflector.path} "))
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        reflector.renew()
        self.start(reflector.run, name)

    def is_running(self, name: str) -> bool:
        """Whether a part goes on."""
        task = self._tasks.get(name)
        return task is not None and not task.done()

    def _restart_later(self, part: Part, task: "asyncio.Task[Any]") -> None:
        name = task.get_name()
        if self._log_if_failed(task) and self._tasks.get(name) is task:
            again = partial(self._restart, part, task)
            asyncio.get_running_loop().call_later(PART_AGAIN_S, again)

    def _restart(self, part: Part, ended: "asyncio.Task[Any]") -> None:
        name = ended.get_name()
        if self._tasks.get(name) is ended and not self._stop.is_set():
            for reflector in self._reflectors:
                if part == reflector.run:
                    reflector.renew()  # what it was about to pass on may be lost
            self.start(part, name)

    def _log_if_failed(self, task: "asyncio.Task[Any]") -> bool:
        """Say of a task that failed why; whether it did."""
        error = None if task.cancelled() else task.exception()
        if error is None:
            return False
        self.log_failed(task.get_name(), error)
        return True

    def log_failed(self, culprit: str, error: BaseException) -> None:
        """Log a failure inside."""
        self._say("failed", culprit=culprit, why=told(error), trace=trace_of(error))

    async def _end_parts(self, names: Iterable[str]) -> None:
        """End parts, and return when they have ended."""
        tasks = [*filter(None, (self._tasks.pop(name, None) for name in names))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _part_ended(self, task: "asyncio.Task[Any]") -> None:
        """A part that ends by itself is a bug: say so, and end."""
        if self._tasks.get(task.get_name()) is task and task.done():
            del self._tasks[task.get_name()]
        if not task.cancelled() and task.exception() is not None:
            self.failure = task.exception()
            self._say(self.part_ended, part=task.get_name(), why=self.failure)
            self.stop()
