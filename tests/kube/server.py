"""A real HTTP server on loopback that does what a test says, also what is wrong."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from msgspec import Struct


class Request(Struct):
    """What came in, on which connection, counted from 1."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


class Reply:
    """The way back: whole answers, raw bytes, or the end of the connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self, status: int, body: bytes = b"", more: str = "") -> None:
        head = f"HTTP/1.1 {status} Some\r\n{more}Content-Length: {len(body)}\r\n\r\n"
        await self.raw(head.encode() + body)

    async def start_chunks(self) -> None:
        await self.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end_chunks(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def left(self) -> None:
        """Waits until the other side closes the connection."""
        while await self._reader.read(1 << 16):
            pass

    def close(self) -> None:
        self._writer.close()

    async def ignore(self) -> None:
        """Read nothing more, also not that the other side ends TLS."""
        transport = self._writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        try:
            await asyncio.Event().wait()
        finally:
            transport.abort()


def anonymous_tls(role: int) -> ssl.SSLContext:
    """TLS without certificates, of a server or a client."""
    tls = ssl.SSLContext(role)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    tls.set_ciphers("aNULL:@SECLEVEL=0")
    return tls


Behaviour = Callable[[Request, Reply], Awaitable[None]]


class Server:
    """Behaves as told, one task per connection."""

    def __init__(self, behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self._behaviour = behaviour
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []
        self.connections = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", 0, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        task = asyncio.create_task(self._talk(reader, writer, self.connections))
        self._tasks.add(task)

    async def _talk(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connection: int,
    ) -> None:
        lost = (ConnectionError, asyncio.IncompleteReadError)
        try:
            with suppress(*lost):
                while not writer.is_closing():
                    request = await _read_request(reader, connection)
                    self.requests.append(request)
                    await self._behaviour(request, Reply(reader, writer))
        finally:
            writer.close()
            with suppress(*lost):
                await writer.wait_closed()


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
    method, path, _version = head[0].split(" ")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body, connection)
