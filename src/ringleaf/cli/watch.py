"""``--watch`` of ``status`` and ``faults``: redraws the screen on changes.

Watches tell what changes; nothing is asked again and again. While nothing changes the
screen is drawn anew now and then, for the ages on it, from what is known.
"""

import asyncio
import os
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

from rich.console import Console, ConsoleRenderable
from rich.live import Live
from rich.text import Text

from ringleaf.cli.failure import BadUse
from ringleaf.cli.live import ClusterAccess
from ringleaf.cli.status import Lead, status_of
from ringleaf.cli.status_screen import StatusScreen
from ringleaf.engine.event import IdleAccountKnown
from ringleaf.framework.idle_budget import IdleAccount
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.fault_history import FaultHistory, follow_lives
from ringleaf.kube.idle_note import IdleNote
from ringleaf.kube.leader import Lease
from ringleaf.kube.note_store import watch_note
from ringleaf.kube.record_store import Stored, watch_records
from ringleaf.kube.reflectors import reflectors
from ringleaf.kube.snapshot import ReadOnlyCache, Snapshot, clock, told
from ringleaf.kube.watch import Gone, Reflector

LEAST_S: Final = 0.3
"""How long a screen stays at least."""
REST: Final = 3
"""How many times as long as it took to draw a screen it stays."""
AGE_S: Final = 10.0
"""How long a screen stays at most, for the ages on it."""
SILENT_S: Final = 4.0
"""After how long without a word of the Lease the API server is asked for it."""
ANSWER_S: Final = 2.0
"""How long that may take."""
QUIT: Final = frozenset("qQ\x03\x04")


Plain = dict[str, Any]


class Show(Protocol):
    """What is shown of a cluster."""

    def facts(self, look: Snapshot, cache: ReadOnlyCache) -> Plain:
        """The result as plain values."""

    def screen(self, facts: Plain, now: float, rows: int) -> ConsoleRenderable:
        """The screen, with at most *rows* rows in its tables."""

    def more(self, api: Api, wake: Callable[[], None]) -> Iterable[Reflector[Any]]:
        """What is to be watched besides."""


class StatusView:
    """How a cluster stands."""

    def __init__(self) -> None:
        self._lives = FaultHistory()

    def facts(self, look: Snapshot, cache: ReadOnlyCache) -> Plain:
        """The result as plain values."""
        return status_of(look, cache, self._lives)

    def screen(self, facts: Plain, now: float, rows: int) -> ConsoleRenderable:
        """The screen, with at most *rows* rows in its tables."""
        return StatusScreen(facts, now, rows)

    def more(self, api: Api, wake: Callable[[], None]) -> Iterable[Reflector[Any]]:
        """What is known of its faults is written down elsewhere."""

        def heard(lives: FaultHistory) -> None:
            self._lives = lives
            wake()

        yield follow_lives(api, heard)


def watch_status(cluster: ClusterAccess, lead: Lead) -> int:
    """Show the status of the cluster until the user quits; the exit status."""
    return watch(cluster, lead, StatusView())


def watch(cluster: ClusterAccess, lead: Lead, show: Show) -> int:
    """Show *show* until the user quits; the exit status."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadUse("--watch needs a terminal; hint: --json prints it once")
    if Console().is_dumb_terminal:
        kind = os.environ["TERM"]
        raise BadUse(
            f"--watch needs a terminal that can be drawn on, TERM is {kind!r}; "
            "hint: without --watch it is printed once"
        )
    with suppress(KeyboardInterrupt):
        asyncio.run(_watch(cluster, lead, show))
    return 0


async def _watch(cluster: ClusterAccess, lead: Lead, show: Show) -> None:
    async with cluster.reached() as api:
        await lead.find(api)
        watching = Watching(api, cluster, lead, show)
        console = Console(highlight=False)
        with (
            _keys(watching.key),
            Live(
                Text("reading the cluster"),
                console=console,
                screen=True,
                auto_refresh=False,
                vertical_overflow="crop",
            ) as live,
        ):
            await watching.run(live)
        if watching.trouble and not watching.is_synced:
            raise BadUse(told(watching.trouble))


class Watching:
    """What is known, and the screen that shows it."""

    def __init__(
        self, api: Api, cluster: ClusterAccess, lead: Lead, show: Show
    ) -> None:
        self._lead, self._api, self._show = lead, api, show
        self._heard = clock()
        self._cache = ReadOnlyCache(cluster.schedulers, cluster.conf())
        self._changed, self._quit = asyncio.Event(), asyncio.Event()
        self._is_new = False
        self.trouble = ""
        self._reflectors = list(
            reflectors(api, self._cache.handlers, self._wake, self._in_trouble)
        )
        self._lease = Reflector(
            api,
            lead.path,
            Lease,
            query=f"fieldSelector=metadata.name%3D{lead.name}",
            put=self._put_lease,
            drop=self._drop_lease,
            optional=True,
            trouble=self._lease_trouble,
        )
        self._more = list(show.more(api, self._wake))
        self._records = watch_records(api, lead.namespace, self._put_records)
        note = IdleNote(IdleAccount, self._put_note)
        self._notes = watch_note(api, lead.namespace, note)
        self._status: Plain | None = None

    @property
    def is_synced(self) -> bool:
        """Whether everything there was is known."""
        return all(each.synced for each in self._reflectors)

    def key(self, keys: str) -> None:
        """Keys were pressed."""
        if QUIT & {*keys}:
            self._quit.set()
            self._changed.set()

    async def run(self, live: Live) -> None:
        """Draw until the user quits."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._changed.set)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.key, "q")
        tasks = [
            asyncio.create_task(each.run(), name=each.path)
            for each in (
                *(*self._reflectors, *self._more),
                *(self._lease, self._records, self._notes),
            )
        ]
        tasks.append(asyncio.create_task(self._listen(), name="listen"))
        try:
            while not self._quit.is_set():
                began = time.monotonic()
                self._draw(live)
                if " status 40" in self.trouble and not self.is_synced:
                    return
                took = time.monotonic() - began
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(LEAST_S, REST * took)):
                        await self._quit.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(AGE_S):
                        await self._changed.wait()
                self._changed.clear()
        finally:
            for number in (signal.SIGWINCH, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        """Note when the Lease is silent because the API server does not answer."""
        while True:
            await asyncio.sleep(SILENT_S)
            if self._lead.lease is None or clock() - self._heard < SILENT_S:
                continue
            path = f"{self._lead.path}/{self._lead.name}"
            try:
                await self._api.call("GET", path, timeout_s=ANSWER_S, lane="lead")
            except Unreachable:
                self._lead.silent_since = self._heard
                self._changed.set()
            else:
                self._hear()

    def _hear(self) -> None:
        self._heard = clock()
        if self._lead.silent_since is not None:
            self._lead.silent_since = None
            self._changed.set()

    def _draw(self, live: Live) -> None:
        now = clock()
        if not self.is_synced:
            n_read = sum(map(len, self._reflectors))
            why = f"; {self.trouble}" if self.trouble else ""
            live.update(Text(f"reading the cluster: {n_read}{why}"), refresh=True)
            return
        if self._is_new or self._status is None:
            self._is_new = False
            self._status = self._show.facts(Snapshot(self._cache, now), self._cache)
        shown = self._status | {"leader": self._lead.plain(now)}
        shown |= {"trouble": self.trouble} if self.trouble else {}
        live.update(fitting(self._show, shown, now, live.console), refresh=True)

    def _wake(self) -> None:
        self._is_new = True
        if self.is_synced:
            self.trouble = ""
        self._changed.set()

    def _in_trouble(self, line: str) -> None:
        self.trouble = line
        self._changed.set()

    def _put_records(self, found: list[Stored]) -> None:
        self._cache.checkpoints.put(found)
        self._wake()

    def _put_note(self, note: IdleAccountKnown) -> None:
        self._cache.handover.put_note(note)
        self._wake()

    def _put_lease(self, leases: list[Lease]) -> None:
        self._hear()
        before, self._lead.trouble = self._lead.lease, ""
        self._lead.lease = leases[-1]
        if before is None or before.holder != self._lead.lease.holder:
            self._changed.set()

    def _drop_lease(self, _gone: list[Gone]) -> None:
        self._lead.lease = None
        self._changed.set()

    def _lease_trouble(self, line: str) -> None:
        self._lead.trouble = told(line)


def fitting(
    show: Show, shown: Plain, now: float, console: Console
) -> ConsoleRenderable:
    """The screen with as many rows of its tables as there is room for."""
    rows = max(1, console.height)
    while True:
        screen = show.screen(shown, now, rows)
        over = len(console.render_lines(screen, pad=False)) - console.height
        if over <= 0 or rows == 1:
            return screen
        rows = max(1, rows - max(1, over // 4))


@contextmanager
def _keys(heed: Any) -> Iterator[None]:  # noqa: ANN401 - a function of a text
    """Read keys as they are pressed."""
    stream = sys.stdin.fileno()
    before = termios.tcgetattr(stream)
    loop = asyncio.get_running_loop()
    tty.setcbreak(stream)
    loop.add_reader(stream, lambda: heed(sys.stdin.read(1)))
    try:
        yield
    finally:
        loop.remove_reader(stream)
        termios.tcsetattr(stream, termios.TCSADRAIN, before)
