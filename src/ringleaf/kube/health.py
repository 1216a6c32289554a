"""Probes: whether the scheduler lives, and whether it is ready to schedule.

``/livez`` and ``/healthz`` say whether it should be started anew, ``/readyz`` whether
it sees the cluster. The answer is JSON with the reasons, 200 for yes and 503 for no.
``/metrics`` is for Prometheus.

All of them are answered on a thread of their own: probes and metrics within a second,
whatever the loop does that decides. What that loop changes is read by that loop, at
most once a second; while it is busy, ``/metrics`` serves the page before, and other
pages wait for it. A loop that is stuck fails its probe.
"""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from time import monotonic
from types import MappingProxyType, TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

import msgspec
from aiohttp import web

from ringleaf.model.topology import quoted

Probe = Callable[[], tuple[bool, dict[str, str]]]
"""Whether all is well, and what is to be said about it; asked on another thread."""
Json = Callable[[], bytes]
"""A page of JSON as it is now."""

_ADDRESS: Final = re.compile(r"(?:\[(?P<six>[^]]*)\]|(?P<host>[^:]*)):(?P<port>\d+)")
MAX_PORT: Final = 65535
FRESH_S: Final = 1.0
"""How old a page of metrics may be before another is made."""
BUSY_S, FIRST_S = 0.5, 5.0
"""How long a scrape waits for a busy loop; and where there is no page before."""
PAGE_S: Final = 8.0
"""How long a page that a person asks for waits for a busy loop."""
BEAT_S, STUCK_S = 1.0, 60.0
"""How often a loop shows that it goes on, and for how long a stuck one does not."""
_BUSY: Final = "the loop that decides is busy; hint: ask again in a second\n"
T = TypeVar("T")


class Text(Protocol):
    """Metrics that no longer change."""

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The page in the form that is accepted, and what form that is."""


Metrics = Callable[[], Coroutine[Any, Any, Text]]
"""The metrics as they are now."""


class BadAddress(ValueError):  # noqa: N818 - it reads as what happened
    """An address on which probes cannot be answered, in one line."""


class Health:
    """Answers probes while it is entered with ``async with``.

    Args:
        address: ``HOST:PORT``; all hosts when HOST is empty, any port when it is 0.
        live: whether the process does its work; asked on another thread.
        ready: whether it may be relied on; asked on another thread.
        metrics: reads the metrics, on the loop that enters.
        pages: what else is answered: path -> JSON, made on the loop that enters.

    Raises:
        BadAddress: *address* is none, or, on entering, it cannot be had.
    """

    def __init__(
        self,
        address: str,
        live: Probe,
        ready: Probe,
        metrics: Metrics | None = None,
        pages: Mapping[str, Json] = MappingProxyType({}),
    ) -> None:
        self._address = address
        self._host, self.port = read_address(address)
        self._probes = {"/healthz": live, "/livez": live, "/readyz": ready}
        self._metrics, self._pages = metrics, pages

    async def __aenter__(self) -> Self:
        main = asyncio.get_running_loop()
        self._beat_at = monotonic()
        self._beating = asyncio.create_task(self._beat(), name="beat of probes")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="probes", daemon=True
        )
        self._thread.start()
        self._scrapes = None if self._metrics is None else _Scrapes(self._metrics, main)
        try:
            await self._aside(self._open(main))
        except BaseException:
            self._beating.cancel()
            self._end()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._beating.cancel()
        if self._scrapes is not None:
            self._scrapes.end()
        await self._aside(self._runner.cleanup())
        self._end()

    async def _aside(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of *work*, done on the thread of the probes."""
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        return await asyncio.wrap_future(done)

    async def _beat(self) -> None:
        """Show that the loop that enters goes on."""
        while True:
            self._beat_at = monotonic()
            await asyncio.sleep(BEAT_S)

    def _answer(self, probe: Probe) -> tuple[bool, dict[str, str]]:
        """What a probe says; that of a loop that is stuck says so."""
        ok, reasons = probe()
        silent = monotonic() - self._beat_at
        if silent > STUCK_S:
            return False, {**reasons, "loop": f"nothing was done for {silent:.0f} s"}
        return ok, reasons

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self, main: asyncio.AbstractEventLoop) -> None:
        """Listen, on the thread of the probes."""
        application = web.Application(middlewares=[_listing])
        application.add_routes(
            [
                *(
                    web.get(path, _answering(partial(self._answer, each)))
                    for path, each in self._probes.items()
                ),
                *(
                    web.get(path, _showing(page, main))
                    for path, page in self._pages.items()
                ),
            ]
        )
        if self._scrapes is not None:
            application.add_routes([web.get("/metrics", self._scrapes.answer)])
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host or None, self.port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise BadAddress(
                f"health address {quoted(self._address)}: {error.strerror}, "
                "want a free address of this machine"
            ) from None
        self.port = self._runner.addresses[0][1]


class _Scrapes:
    """Pages of metrics, each made once and at most one a second."""

    def __init__(self, read: Metrics, main: asyncio.AbstractEventLoop) -> None:
        self._read, self._main = read, main
        self._coming: Future[Text] | None = None
        self._latest: Text | None = None
        self._asked_at = -FRESH_S
        self._texts: dict[str, tuple[bytes, str]] = {}
        """What is accepted -> the latest page in that form."""

    async def answer(self, request: web.Request) -> web.Response:
        """The page in the form that is accepted."""
        await self._refresh()
        if self._latest is None:
            return web.Response(status=503, text=_BUSY)
        accept = request.headers.get("Accept", "")
        if accept not in self._texts:
            self._texts = {accept: self._latest.text(accept)}
        body, kind = self._texts[accept]
        return web.Response(body=body, headers={"Content-Type": kind})

    async def _refresh(self) -> None:
        """Have another page made, and wait for it, but not for long."""
        if self._coming is None and monotonic() - self._asked_at >= FRESH_S:
            self._asked_at = monotonic()
            self._coming = asyncio.run_coroutine_threadsafe(self._read(), self._main)
        coming = self._coming
        if coming is None:
            return
        wait_s = FIRST_S if self._latest is None else BUSY_S
        await asyncio.wait([asyncio.wrap_future(coming)], timeout=wait_s)
        if coming is self._coming and coming.done():
            self._coming = None
            self._latest, self._texts = coming.result(), {}

    def end(self) -> None:
        """Cancel the page that is being made."""
        if self._coming is not None:
            self._coming.cancel()


def read_address(address: str) -> tuple[str, int]:
    """Host and port.

    >>> read_address("0.0.0.0:8080"), read_address(":80"), read_address("[::1]:0")
    (('0.0.0.0', 8080), ('', 80), ('::1', 0))
    """
    found = _ADDRESS.fullmatch(address)
    if not found or int(found["port"]) > MAX_PORT:
        raise BadAddress(f"health address is {quoted(address)}, want HOST:PORT")
    return found["six"] or found["host"] or "", int(found["port"])


@web.middleware
async def _listing(
    request: web.Request,
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> web.StreamResponse:
    """The answer; of a page that is not there, which there are."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        pages = (r.canonical for r in request.app.router.resources())
        text = f"there is no {request.path}, only {', '.join(pages)}\n"
        return web.Response(status=404, text=text)


def _answering(probe: Probe) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_request: web.Request) -> web.Response:
        ok, reasons = probe()
        return web.Response(
            status=200 if ok else 503,
            body=msgspec.json.encode({"ok": ok, "reasons": reasons}) + b"\n",
            content_type="application/json",
        )

    return answer


def _showing(
    page: Json, main: asyncio.AbstractEventLoop
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def made() -> bytes:
        return page()

    async def answer(_request: web.Request) -> web.Response:
        coming = asyncio.run_coroutine_threadsafe(made(), main)
        with suppress(TimeoutError):
            async with asyncio.timeout(PAGE_S):
                body = await asyncio.wrap_future(coming)
                return web.Response(body=body, content_type="application/json")
        return web.Response(status=503, text=_BUSY)

    return answer
