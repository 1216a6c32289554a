"""Probes: whether the scheduler lives, and whether it is ready to schedule.

``/livez`` and ``/healthz`` say whether it should be started anew, ``/readyz`` whether
it sees the cluster. The answer is JSON with the reasons, 200 for yes and 503 for no.
``/metrics`` is for Prometheus.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Final, Self

import msgspec
from aiohttp import web

from ringleaf.model.topology import quoted

Probe = Callable[[], tuple[bool, dict[str, str]]]
"""Whether all is well, and what is to be said about it."""
Metrics = Callable[[str], tuple[bytes, str]]
"""What is accepted -> the page and its type."""
Json = Callable[[], bytes]
"""A page of JSON as it is now."""

_ADDRESS: Final = re.compile(r"(?:\[(?P<six>[^]]*)\]|(?P<host>[^:]*)):(?P<port>\d+)")
MAX_PORT: Final = 65535


class BadAddress(ValueError):  # noqa: N818 - it reads as what happened
    """An address on which probes cannot be answered, in one line."""


class Health:
    """Answers probes while it is entered with ``async with``.

    Args:
        address: ``HOST:PORT``; all hosts when HOST is empty, any port when it is 0.
        live: whether the process does its work.
        ready: whether it may be relied on.
        metrics: the page of metrics in the form that is accepted, and which form.
        pages: what else is answered: path -> JSON.

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
        application = web.Application(middlewares=[_listing])
        application.add_routes(
            [
                web.get("/healthz", _answering(live)),
                web.get("/livez", _answering(live)),
                web.get("/readyz", _answering(ready)),
                *(web.get(path, _showing(page)) for path, page in pages.items()),
            ]
        )
        if metrics is not None:
            application.add_routes([web.get("/metrics", _serving(metrics))])
        self._runner = web.AppRunner(application, access_log=None)

    async def __aenter__(self) -> Self:
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
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()


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


def _serving(page: Metrics) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        body, kind = page(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": kind})

    return answer


def _showing(page: Json) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=page(), content_type="application/json")

    return answer
