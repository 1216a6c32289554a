"""Requests to the API server over connections that are kept.

Binding is thousands of small requests, so what one of them costs decides how fast
the scheduler is. A general HTTP client takes five times the processor time of the few
lines of HTTP/1.1 here, which know one request at a time on a connection, a length or
chunks, and nothing else. Watches are few and long, and go through aiohttp, as do all
requests when a proxy is between.

Nothing is tried twice, because only the caller knows what a second try would do. There
is one exception: a read on a kept connection that the server closed before a byte of
the answer came is sent once more on a new one. A write is not: it may have been carried
out. A kept connection is given up long before servers close it, so this is rare.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from math import inf
from struct import pack
from time import monotonic
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from ringleaf.kube.answers import UNAUTHORIZED, Answer
from ringleaf.kube.credentials import RENEW_S, Credentials

Lane = Literal["bind", "tell", "read", "lead"]
"""Pools of connections: for bindings, status and events, reads, and the Lease."""

BESIDE: Final = 4
"""Connections of each lane beside that of the bindings."""
KEEP_S: Final = 30.0
"""Seconds an unused connection is kept; the API server closes it after 90."""
CONNECT_S: Final = 10.0
AGAIN_S: Final = 5.0
"""Seconds between two attempts to get credentials that are not refused."""
CLOSED: Final = "closed by us"
MAX_HEAD: Final = 1 << 16
MAX_RETRY_S: Final = 60.0
READ_BYTES: Final = 1 << 20
_NO_BODY: Final = frozenset({204, 304})


class Unreachable(Exception):  # noqa: N818 - it reads as what happened
    """No answer. Unless *sent* is false, the request may have been carried out."""

    def __init__(self, line: str, *, sent: bool = True) -> None:
        super().__init__(line)
        self.sent = sent


class TooLarge(Unreachable):
    """The answer has more bytes than were asked for; none of it is kept."""


class Refused(Exception):  # noqa: N818 - it reads as what happened
    """A watch that the API server did not start."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"status {answer.status}")
        self.answer = answer
        self.status = answer.status


class Api:
    """The API server, to be entered with ``async with``.

    Args:
        credentials: address and credentials; renewed in the background.
        connections: bindings in flight at a time.
        trouble: is told, in one line, why credentials could not be renewed.
        agent: the user agent, for the API server's log.
        answered: is told of every request: verb, lane, status (0 without an answer)
            and how many seconds it took.
    """

    def __init__(
        self,
        credentials: Credentials,
        connections: int = 32,
        trouble: Callable[[str], None] = lambda _line: None,
        agent: str = "ringleaf",
        answered: Callable[[str, str, int, float], None] = lambda *_what: None,
    ) -> None:
        self.credentials = credentials
        self._trouble = trouble
        self._agent = agent
        self._answered = answered
        self.fence: Callable[[], float] | None = None
        """For how many seconds we may change anything; without one, for ever."""
        sizes: dict[Lane, int] = {"bind": connections, "tell": BESIDE, "read": BESIDE}
        sizes["lead"] = 1
        self._turns = {lane: asyncio.Semaphore(n) for lane, n in sizes.items()}
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._connecting: set[asyncio.Timeout] = set()
        """Deadlines of the connections that are being made."""
        self._connected = asyncio.Event()
        """Set when the last of them is made or has failed."""
        self._sockets: set[_Socket] = set()
        """Open sockets of aiohttp."""
        self._refused = asyncio.Event()
        self._closed = False

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=KEEP_S, socket_factory=self._new_socket
            ),
            read_bufsize=READ_BYTES,
            auto_decompress=False,
            headers={
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": self._agent,
            },
        )
        self._heed()
        self._renewing = asyncio.create_task(self._renew(), name="credentials")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        self._renewing.cancel()
        with suppress(asyncio.CancelledError):
            await self._renewing
        await self._stop_connecting()
        open_now = list(self._open)
        for connection in open_now:
            connection.close()
        await self._session.close()
        await self._end_streams()
        for connection in open_now:
            await connection.gone.wait()

    async def _stop_connecting(self) -> None:
        """Fail every connection that is being made, and wait until it has failed."""
        self._connected.clear()
        for deadline in self._connecting:
            if not deadline.expired():
                deadline.reschedule(0.0)
        if self._connecting:
            await self._connected.wait()

    async def _end_streams(self) -> None:
        """Close every socket that aiohttp has not closed, and wait until it is.

        aiohttp does not wait for connections that are being made, nor for a request
        that was cancelled before its answer came: its transport waits up to 30 s for
        the server to end TLS.
        """
        open_now = list(self._sockets)
        for each in open_now:
            each.end()
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_S):
                for each in open_now:
                    await each.gone.wait()

    def _new_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        if self._closed:
            raise OSError(CLOSED)
        return _Socket(address, self._sockets)

    def _not_asked(self) -> Unreachable:
        return Unreachable(f"{self.credentials.server}: {CLOSED}", sent=False)

    async def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        kind: str = "application/json",
        timeout_s: float = 30.0,
        lane: Lane = "bind",
        fenced: bool = True,
        most_bytes: float = inf,
    ) -> Answer:
        """The answer to one request, whatever its status.

        *path* includes the query, and *kind* is the type of *body*. The timeout runs
        from when a connection of the lane is free; waiting for that is not part of it.
        A *fenced* request that changes something is sent inside the ``fence`` alone;
        events and the Lease itself need no fence.

        Raises ``Unreachable`` alone: refused or lost connections, TLS, time; and
        ``TooLarge``, which is one, if the answer has more than *most_bytes*.
        """
        fenced = fenced and method != "GET" and lane != "lead"
        asked = _Asked(method, path, body or b"", kind, timeout_s, fenced, most_bytes)
        async with self._turns[lane]:
            began = monotonic()
            try:
                answer = await self._ask(asked)
            except Unreachable:
                self._answered(method, lane, 0, monotonic() - began)
                raise
            self._answered(method, lane, answer.status, monotonic() - began)
        if answer.status == UNAUTHORIZED:
            self._refused.set()
        return answer

    async def _ask(self, asked: "_Asked") -> Answer:
        """The answer to a request: on a connection of our own, or through a proxy."""
        left = self._left() if asked.fenced else inf
        if not self.credentials.proxy:
            return await self._direct(asked)
        path = self._in_time(asked.path) if asked.fenced else asked.path
        timeout_s = min(asked.timeout_s, left)
        body = asked.body or None
        return await self._detour(asked, path, body, timeout_s)

    async def stream(self, path: str, *, idle_s: float) -> AsyncGenerator[bytes, None]:
        """What a watch says, as it comes: each block is one or more whole lines.

        Ends when the server ends it; what is left of a line then is dropped.

        Raises:
            Unreachable: no connection, or it was lost, or was silent for *idle_s*.
            Refused: an answer other than 200.
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_S, sock_read=idle_s
        )
        status = 0
        try:
            async with self._request("GET", path, None, None, timeout) as response:
                status = response.status
                self._answered("WATCH", "watch", status, 0.0)
                if response.status != 200:  # noqa: PLR2004 - HTTP
                    raise Refused(await self._answer(response))
                try:
                    async for lines in _whole_lines(response.content):
                        yield lines
                finally:
                    _hang_up(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if not status:
                self._answered("WATCH", "watch", status, 0.0)
            raise self._unreachable(error) from None

    def sign(self, name: str) -> None:
        """Be called *name* in the log of the API server from now on."""
        self._agent = f"{self._agent.partition('/')[0]}/{name}"
        self._session.headers["User-Agent"] = self._agent
        self._heed()

    def cut(self) -> None:
        """Let go of every connection at once, with what is still to be sent on it."""
        for connection in list(self._open):
            connection.cut()

    def _in_time(self, path: str) -> str:
        """*path* with a deadline that the API server heeds: the end of our time."""
        left = self._left()
        if left == inf:
            return path
        joint = "&" if "?" in path else "?"
        return f"{path}{joint}timeout={max(1, int(left * 1000))}ms"

    def _left(self) -> float:
        """For how many seconds we may change something."""
        left = inf if self.fence is None else self.fence()
        if left <= 0.0:
            told = f"{self.credentials.server}: not sent, this replica does not lead"
            raise Unreachable(told, sent=False)
        return left

    def _written(self, asked: "_Asked") -> bytes:
        """A request in bytes, to be sent at once."""
        path = self._in_time(asked.path) if asked.fenced else asked.path
        return (
            f"{asked.method} {self._prefix}{path} HTTP/1.1\r\n{self._head}"
            f"Content-Type: {asked.kind}\r\nContent-Length: {len(asked.body)}\r\n\r\n"
        ).encode("ascii") + asked.body

    async def _direct(self, asked: "_Asked") -> Answer:
        timeout_s = asked.timeout_s
        kept = self._kept()
        connection = kept or await self._connect(timeout_s)
        try:
            answer = await self._asked_on(connection, asked)
        except _TooLong:
            raise self._too_large(asked.most_bytes) from None
        except _Lost as lost:
            harmless = lost.unsent or asked.method == "GET"
            if kept is None or lost.begun or not harmless:
                raise Unreachable(
                    f"{self.credentials.server}: {lost}", sent=not lost.unsent
                ) from None
            connection = await self._connect(timeout_s)
            try:
                answer = await self._asked_on(connection, asked)
            except _TooLong:
                raise self._too_large(asked.most_bytes) from None
            except _Lost as again:
                raise Unreachable(
                    f"{self.credentials.server}: {again}", sent=not again.unsent
                ) from None
        self._keep(connection)
        return answer

    async def _asked_on(self, connection: "_Connection", asked: "_Asked") -> Answer:
        """The answer to a request that is written when its connection is there."""
        try:
            request = self._written(asked)
        except Unreachable:
            self._keep(connection)  # it was not used
            raise
        return await connection.ask(request, asked.timeout_s, asked.most_bytes)

    def _keep(self, connection: "_Connection") -> None:
        """Keep a connection for the next request, if it can be used."""
        if connection.usable and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()

    def _kept(self) -> "_Connection | None":
        """The connection used last, if it is fresh; those left over grow old."""
        oldest = asyncio.get_running_loop().time() - KEEP_S
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.used_at > oldest:
                return connection
            connection.close()
        return None

    async def _connect(self, timeout_s: float) -> "_Connection":
        if self._closed:
            raise self._not_asked()
        credentials = self.credentials
        server_name = credentials.server_name if credentials.tls else None
        deadline = asyncio.timeout(min(timeout_s, CONNECT_S))
        try:
            async with deadline:
                self._connecting.add(deadline)
                loop = asyncio.get_running_loop()
                _transport, connection = await loop.create_connection(
                    lambda: _Connection(self._open),
                    self._host,
                    self._port,
                    ssl=credentials.tls,
                    server_hostname=server_name or None,
                )
        except (OSError, TimeoutError, ssl.SSLError) as error:
            if self._closed:
                raise self._not_asked() from None
            raise self._unreachable(error, sent=False) from None
        finally:
            self._connecting.discard(deadline)
            if not self._connecting:
                self._connected.set()
        if self._closed:
            connection.close()
            raise self._not_asked()
        return connection

    async def _detour(
        self, asked: "_Asked", path: str, body: bytes | None, timeout_s: float
    ) -> Answer:
        """The same through aiohttp, which knows proxies."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_S)
        method, kind = asked.method, asked.kind
        try:
            async with self._request(method, path, body, kind, timeout) as response:
                return await self._answer(response, asked.most_bytes)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unreachable(error) from None

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        kind: str | None,
        timeout: aiohttp.ClientTimeout,
    ) -> "aiohttp.client._RequestContextManager":
        if self._closed:
            raise self._not_asked()
        credentials = self.credentials
        headers = {"Content-Type": kind} if kind else {}
        if credentials.authorization:
            headers["Authorization"] = credentials.authorization
        return self._session.request(
            method,
            URL(credentials.server + path, encoded=True),
            data=body,
            headers=headers,
            timeout=timeout,
            ssl=credentials.tls or True,
            server_hostname=credentials.server_name,
            proxy=credentials.proxy,
            allow_redirects=False,
        )

    async def _answer(
        self, response: aiohttp.ClientResponse, most_bytes: float = inf
    ) -> Answer:
        if response.status == UNAUTHORIZED:
            self._refused.set()
        wait = response.headers.get("Retry-After", "")
        body = bytearray()
        async for block in response.content.iter_any():
            body += block
            if len(body) > most_bytes:
                _hang_up(response)
                raise self._too_large(most_bytes)
        return Answer(response.status, bytes(body), _seconds(wait.encode()))

    def _too_large(self, most_bytes: float) -> TooLarge:
        line = f"an answer of more than {most_bytes:.0f} bytes"
        return TooLarge(f"{self.credentials.server}: {line}")

    def _unreachable(self, error: Exception, *, sent: bool = True) -> Unreachable:
        if isinstance(error, (ssl.SSLError, aiohttp.ClientSSLError)):
            # The authority's certificate may have been replaced.
            self._refused.set()
        if isinstance(error, aiohttp.ClientConnectorError):
            error = error.os_error  # aiohttp's own words differ each time
        line = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, TimeoutError):
            line = "no answer in time"
        return Unreachable(f"{self.credentials.server}: {line}", sent=sent)

    def _heed(self) -> None:
        """Take up what the credentials say now."""
        parts = urlsplit(self.credentials.server)
        self._prefix = parts.path
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self.credentials.tls else 80)
        self._head = (
            f"Host: {parts.netloc.rpartition('@')[2]}\r\n"
            f"Accept: application/json\r\nUser-Agent: {self._agent}\r\n"
        )
        if self.credentials.authorization:
            self._head += f"Authorization: {self.credentials.authorization}\r\n"

    async def _renew(self) -> None:
        """Keep the credentials fresh, for ever."""
        while True:
            refused = False
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW_S):
                    refused = await self._refused.wait()
            try:
                await self.credentials.renew(refused=refused)
            except Exception as error:  # noqa: BLE001 - the next minute may be better
                self._trouble(str(error))
            self._heed()
            if refused:
                while self._idle:  # they may go by the old certificate
                    self._idle.pop().close()
                await asyncio.sleep(AGAIN_S)
                self._refused.clear()


class _Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    body: bytes
    kind: str
    timeout_s: float
    fenced: bool
    most_bytes: float


class _Lost(Exception):  # noqa: N818 - it reads as what happened
    """No whole answer: *begun* when a part came, *unsent* when nothing was written."""

    def __init__(self, line: str, *, begun: bool, unsent: bool = False) -> None:
        super().__init__(line)
        self.begun = begun
        self.unsent = unsent


class _TooLong(Exception):  # noqa: N818 - it reads as what happened
    """An answer that has more bytes than were asked for."""


class _Connection(asyncio.Protocol):
    """One kept connection: a request, its answer, the next request."""

    def __init__(self, open_now: "set[_Connection]") -> None:
        self._open = open_now
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[Answer] | None = None
        self._most_bytes = inf
        self._start()
        self.usable = True
        self.used_at = self._loop.time()
        self.gone = asyncio.Event()

    def _start(self) -> None:
        self._buffer = bytearray()
        self._status = 0
        self._at = 0
        self._length: int | None = None
        self._chunks: list[bytes] | None = None
        self._retry_after: float | None = None

    async def ask(
        self, request: bytes, timeout_s: float, most_bytes: float = inf
    ) -> Answer:
        """Send *request* and wait for the answer, or raise ``_Lost``.

        Of more than *most_bytes* nothing is kept; that raises ``_TooLong``.
        """
        if not self.usable or self._transport.is_closing():
            raise _Lost("connection closed", begun=False, unsent=True)
        self._waiter = self._loop.create_future()
        self._most_bytes = most_bytes
        alarm = self._loop.call_later(timeout_s, self._fail, "no answer in time")
        try:
            self._transport.write(request)
            return await self._waiter
        except BaseException:
            # Also when the caller is cancelled: the answer would be taken for the next.
            self.close()
            raise
        finally:
            alarm.cancel()
            self._waiter = None
            self.used_at = self._loop.time()

    def close(self) -> None:
        """Let go, at once."""
        self.usable = False
        self._transport.abort()

    def cut(self) -> None:
        """Let go, and have the system forget what it has not sent yet."""
        kept = self._transport.get_extra_info("socket")  # None where it is closed
        if kept is not None:
            with suppress(OSError):
                kept.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        self.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open.add(self)
        keep_alive(transport.get_extra_info("socket"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio.Protocol."""
        self.usable = False
        self._open.discard(self)
        self.gone.set()
        self._fail(" ".join(str(exc).split()) if exc else "connection closed")

    def eof_received(self) -> None:
        """Part of asyncio.Protocol: the end of an answer that names no length."""
        self.usable = False
        if self._status and self._length is None and self._chunks is None:
            self._done(bytes(self._buffer))

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        if self._waiter is None:  # no request is open
            self.close()
            return
        self._buffer += data
        if len(self._buffer) > self._most_bytes:
            if not self._waiter.done():
                self._waiter.set_exception(_TooLong())
            self.close()
            return
        try:
            self._read()
        except ValueError:
            self._fail("what came is no HTTP")
            self.close()

    def _read(self) -> None:
        while not self._status:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > MAX_HEAD:
                    raise ValueError
                return
            self._read_head(bytes(self._buffer[: end + 2]).lower())
            del self._buffer[: end + 4]
        if self._chunks is not None:
            self._read_chunks(self._chunks)
        elif self._length is not None and len(self._buffer) >= self._length:
            self.usable &= len(self._buffer) == self._length
            self._done(bytes(self._buffer[: self._length]))

    def _read_head(self, head: bytes) -> None:
        if not head.startswith(b"http/1."):
            raise ValueError
        status = int(head[9:12])
        if status < 200:  # noqa: PLR2004 - HTTP: the answer is still to come
            return
        self._status = status
        if _value(head, b"connection") == b"close" or head[7:8] == b"0":
            self.usable = False
        if b"chunked" in _value(head, b"transfer-encoding"):
            self._chunks = []
        elif length := _value(head, b"content-length"):
            self._length = _natural(length, 10)
        elif status in _NO_BODY:
            self._length = 0
        self._retry_after = _seconds(_value(head, b"retry-after"))

    def _read_chunks(self, chunks: list[bytes]) -> None:
        buffer = self._buffer
        while (end := buffer.find(b"\r\n", self._at)) >= 0:
            size = _natural(buffer[self._at : end].partition(b";")[0].strip(), 16)
            start = end + 2
            if size == 0:
                # Trailers end as a head does; most often there are none.
                if (last := buffer.find(b"\r\n\r\n", end)) >= 0:
                    self.usable &= len(buffer) == last + 4
                    self._done(b"".join(chunks))
                return
            if len(buffer) < start + size + 2:
                return
            chunks.append(bytes(buffer[start : start + size]))
            self._at = start + size + 2

    def _done(self, body: bytes) -> None:
        answer = Answer(self._status, body, self._retry_after)
        self._start()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(answer)

    def _fail(self, line: str) -> None:
        if self._waiter is not None and not self._waiter.done():
            begun = bool(self._status or self._buffer)
            self._waiter.set_exception(_Lost(line, begun=begun))


async def _whole_lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes, None]:
    rest = b""
    while block := await content.readany():
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Let go of a watch at once; TLS would wait for a server that goes on talking."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def keep_alive(kept: socket.socket) -> None:
    """Have a peer that vanished without a word noticed within half a minute."""
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        kept.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
        kept.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        kept.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)


class _Socket(socket.socket):
    """A socket of aiohttp; ``gone`` is set when it is closed."""

    def __init__(self, address: aiohttp.AddrInfoType, open_now: "set[_Socket]") -> None:
        family, kind, protocol, _name, _address = address
        super().__init__(family, kind, protocol)
        keep_alive(self)
        self.gone = asyncio.Event()
        self._open = open_now
        open_now.add(self)

    def end(self) -> None:
        """Have its transport read the end of the connection, and close it."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Part of socket.socket."""
        super().close()
        self._open.discard(self)
        self.gone.set()


def _value(head: bytes, name: bytes) -> bytes:
    r"""The value of a header in lower case, or nothing.

    >>> _value(b"http/1.1 200 ok\r\nretry-after:  1\r\n", b"retry-after")
    b'1'
    """
    at = head.find(b"\r\n" + name + b":")
    if at < 0:
        return b""
    start = at + len(name) + 3
    return head[start : head.find(b"\r\n", start)].strip()


def _natural(digits: bytes | bytearray, base: int) -> int:
    """A length; ``int`` alone would take signs and underscores."""
    if not digits.isalnum():
        raise ValueError
    return int(digits, base)


def _seconds(text: bytes) -> float | None:
    """Retry-After in seconds; dates and nonsense count as none.

    >>> _seconds(b"2"), _seconds(b""), _seconds(b"soon"), _seconds(b"86400")
    (2.0, None, None, 60.0)
    """
    return min(float(text), MAX_RETRY_S) if text.isdigit() else None
