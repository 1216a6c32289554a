import asyncio
import contextlib
import gc
import socket
import ssl
from collections.abc import AsyncIterator, Callable

import pytest

from ringleaf.kube import api as api_module
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api, Lane, Refused, TooLarge, Unreachable
from ringleaf.kube.credentials import BadCredentials, Credentials
from tests.kube.server import Behaviour, Reply, Request, Server, anonymous_tls


@contextlib.asynccontextmanager
async def talking(
    behaviour: Behaviour, connections: int = 32
) -> AsyncIterator[tuple[Api, Server]]:
    async with (
        Server(behaviour) as server,
        Api(Credentials(server.url), connections) as api,
    ):
        yield api, server


def sockets_to(port: int) -> list[socket.socket]:
    """The open sockets of this process that are connected to a port."""
    found = []
    for each in gc.get_objects():
        if isinstance(each, socket.socket) and each.fileno() >= 0:
            with contextlib.suppress(OSError):
                peer = each.getpeername()
                found += [each] if peer[1:2] == (port,) else []
    return found


async def until(condition: Callable[[], object]) -> None:
    """Wait for something, not for ever."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - conditions of any sort
            await asyncio.sleep(0.001)


async def agreeing(_request: Request, reply: Reply) -> None:
    await reply.answer(201, b'{"ok": 1}')


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        pytest.param(
            b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}",
            Answer(201, b"{}"),
            id="a body with a length",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n",
            Answer(200, b""),
            id="headers in lower case, an empty body",
        ),
        pytest.param(
            b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, b""), id="no body at all"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            Answer(200, b"abc0123456789"),
            id="chunks",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"1\r\na\r\n0\r\nX-Trailer: 1\r\n\r\n",
            Answer(200, b"a"),
            id="chunks with a trailer",
        ),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
            Answer(200, b"a"),
            id="an answer that is still to come",
        ),
        pytest.param(
            b"HTTP/1.1 429 Too Many\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n",
            Answer(429, b"", 3.0),
            id="when to come again",
        ),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 4096])
def test_answers_are_read_however_they_arrive(
    raw: bytes, answer: Answer, step: int
) -> None:
    async def behaviour(_request: Request, reply: Reply) -> None:
        for start in range(0, len(raw), step):
            await reply.raw(raw[start : start + step])
            await asyncio.sleep(0)

    async def story() -> None:
        async with talking(behaviour) as (api, server):
            assert await api.call("GET", "/a") == answer
            assert await api.call("GET", "/a") == answer
            assert server.connections == 1

    asyncio.run(story())


@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize("framing", ["length", "chunks", "none"])
def test_of_an_answer_that_is_too_large_nothing_is_kept(
    *, proxied: bool, framing: str
) -> None:
    ok, body = b"HTTP/1.1 200 OK\r\n", b"x" * 200_000
    raw = {
        "length": ok + b"Content-Length: 200000\r\n\r\n" + body,
        "chunks": ok
        + b"Transfer-Encoding: chunked\r\n\r\n30d40\r\n"
        + body
        + b"\r\n0\r\n\r\n",
        "none": ok + b"\r\n" + body,
    }[framing]

    async def large(_request: Request, reply: Reply) -> None:
        await reply.raw(raw)
        reply.close()

    async def story() -> None:
        async with Server(large) as server:
            own = Credentials(server.url, proxy=server.url if proxied else None)
            async with Api(own) as api:
                with pytest.raises(TooLarge, match="more than 1000 bytes"):
                    await api.call("GET", "/a", most_bytes=1000)
                answer = await api.call("GET", "/a", most_bytes=201_000)
                assert answer == Answer(200, body)

    asyncio.run(story())


def test_a_body_without_length_ends_with_the_connection() -> None:
    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        reply.close()

    async def story() -> None:
        async with talking(behaviour) as (api, _server):
            assert (await api.call("GET", "/a")).body == b"all of it"

    asyncio.run(story())


def test_a_request_carries_path_body_and_authorization() -> None:
    async def story() -> None:
        async with Server(agreeing) as server:
            credentials = Credentials(server.url + "/k8s/", authorization="Bearer abc")
            async with Api(credentials) as api:
                await api.call("POST", "/api?x=1", b"{}", kind="application/merge")
            request = server.requests[0]
            assert (request.method, request.path) == ("POST", "/k8s/api?x=1")
            assert request.body == b"{}"
            assert request.headers["authorization"] == "bearer abc"
            assert request.headers["content-type"] == "application/merge"

    asyncio.run(story())


@pytest.mark.parametrize("head", ["Connection: close\r\n", ""])
def test_a_connection_that_the_server_closed_is_not_used_again(head: str) -> None:
    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.answer(201, more=head)
        if not head:
            reply.close()

    async def story() -> None:
        async with talking(behaviour) as (api, server):
            for _ in range(3):
                assert (await api.call("POST", "/a", b"{}")).status == 201
                await until(lambda: not sockets_to(server.port))
            assert server.connections == 3

    asyncio.run(story())


def closes_on_second_request(part: bytes = b"") -> Behaviour:
    async def behaviour(request: Request, reply: Reply) -> None:
        if request.path == "/first" or request.connection > 1:
            await reply.answer(200)
        else:
            await reply.raw(part)
            reply.close()

    return behaviour


def test_a_read_that_met_a_closing_connection_is_sent_once_more() -> None:
    async def story() -> None:
        async with talking(closes_on_second_request()) as (api, server):
            await api.call("GET", "/first")
            assert (await api.call("GET", "/second")).status == 200
            assert [r.path for r in server.requests] == ["/first", "/second", "/second"]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("method", "part"),
    [
        pytest.param("POST", b"", id="a write may have been carried out"),
        pytest.param("GET", b"HTTP/1.1 200 OK\r\n", id="the answer has begun"),
    ],
)
def test_what_may_have_been_done_is_not_done_again(method: str, part: bytes) -> None:
    async def story() -> None:
        async with talking(closes_on_second_request(part)) as (api, server):
            await api.call("GET", "/first")
            with pytest.raises(Unreachable) as caught:
                await api.call(method, "/second")
            assert caught.value.sent
            assert [r.path for r in server.requests] == ["/first", "/second"]
            assert (await api.call(method, "/first")).status == 200

    asyncio.run(story())


def test_a_connection_that_was_idle_too_long_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api_module, "KEEP_S", 0.0)

    async def story() -> None:
        async with talking(agreeing) as (api, server):
            await api.call("POST", "/a")
            await api.call("POST", "/a")
            assert server.connections == 2

    asyncio.run(story())


def test_an_answer_that_does_not_come_in_time_is_none() -> None:
    async def behaviour(request: Request, reply: Reply) -> None:
        if request.path == "/slow":
            await asyncio.sleep(10)
        await reply.answer(200, request.path.encode())

    async def story() -> None:
        async with talking(behaviour) as (api, _server):
            with pytest.raises(Unreachable, match="in time"):
                await api.call("GET", "/slow", timeout_s=0.05)
            assert (await api.call("GET", "/quick")).body == b"/quick"

    asyncio.run(story())


def test_the_answer_of_a_cancelled_call_is_nobody_elses() -> None:
    arrived, cancelled = asyncio.Event(), asyncio.Event()

    async def behaviour(request: Request, reply: Reply) -> None:
        if request.path == "/slow":
            arrived.set()
            await cancelled.wait()
        await reply.answer(200, request.path.encode())

    async def story() -> None:
        async with talking(behaviour, connections=1) as (api, _server):
            call = asyncio.create_task(api.call("GET", "/slow"))
            await arrived.wait()
            call.cancel()
            cancelled.set()
            assert (await api.call("GET", "/quick")).body == b"/quick"
            assert call.cancelled()

    asyncio.run(story())


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_connection_whose_answer_nobody_awaits_is_closed(*, cancelled: bool) -> None:
    arrived, left = asyncio.Event(), asyncio.Event()

    async def behaviour(request: Request, reply: Reply) -> None:
        if request.path == "/quick":
            await reply.answer(200)
            return
        arrived.set()
        await reply.left()
        left.set()

    async def story() -> None:
        async with talking(behaviour) as (api, server):
            await api.call("GET", "/quick")  # its connection is kept
            timeout_s = 30.0 if cancelled else 0.05
            call = asyncio.create_task(api.call("POST", "/slow", timeout_s=timeout_s))
            if cancelled:
                await arrived.wait()
                call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            async with asyncio.timeout(30):
                await left.wait()
            assert server.connections == 1

    asyncio.run(story())


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nbc",
    ],
)
def test_bytes_nobody_asked_for_end_a_connection(raw: bytes) -> None:
    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.raw(raw)

    async def story() -> None:
        async with talking(behaviour) as (api, server):
            for _ in range(3):
                assert (await api.call("POST", "/a")).body == b"a"
            assert server.connections == 3

    asyncio.run(story())


def test_an_answer_nobody_asked_for_ends_a_connection() -> None:
    heard = asyncio.Semaphore(0)

    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.answer(200)
        await heard.acquire()
        await reply.answer(408)

    async def story() -> None:
        async with talking(behaviour) as (api, server):
            for _ in range(3):
                assert (await api.call("POST", "/a")).status == 200
                heard.release()
                await until(lambda: not sockets_to(server.port))
            assert server.connections == 3

    asyncio.run(story())


def test_nobody_there_means_nothing_was_sent() -> None:
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        async with Api(Credentials(f"http://127.0.0.1:{port}")) as api:
            with pytest.raises(Unreachable, match=f"127.0.0.1:{port}") as caught:
                await api.call("POST", "/a")
            assert not caught.value.sent

    asyncio.run(story())


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabcdefgh",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabcdefgh",
        b"x" * 70_000,
    ],
)
def test_what_is_no_http_is_no_answer(garbage: bytes) -> None:
    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.raw(garbage)
        await asyncio.sleep(10)

    async def story() -> None:
        async with talking(behaviour) as (api, _server):
            with pytest.raises(Unreachable, match="no HTTP"):
                await api.call("GET", "/a")

    asyncio.run(story())


def test_what_is_told_never_delays_a_binding() -> None:
    full, release = asyncio.Event(), asyncio.Event()
    in_flight = {"tell": 0, "bind": 0}
    most = dict(in_flight)

    async def behaviour(request: Request, reply: Reply) -> None:
        lane = request.path[1:]
        in_flight[lane] += 1
        most[lane] = max(most[lane], in_flight[lane])
        if most == {"tell": 4, "bind": 8}:
            full.set()
        await (release if lane == "tell" else full).wait()
        await asyncio.sleep(0.001)
        in_flight[lane] -= 1
        await reply.answer(200)

    async def story() -> None:
        async with talking(behaviour, connections=8) as (api, _server):

            async def call(lane: Lane) -> Answer:
                return await api.call("POST", f"/{lane}", lane=lane)

            telling = [asyncio.create_task(call("tell")) for _ in range(20)]
            await until(lambda: in_flight["tell"] == 4)
            await asyncio.gather(*(call("bind") for _ in range(50)))
            assert not any(task.done() for task in telling)
            release.set()
            await asyncio.gather(*telling)
        assert most == {"tell": 4, "bind": 8}

    asyncio.run(story())


class Renewed(Credentials):
    async def renew(self, *, refused: bool = False) -> None:
        if refused:
            self.authorization = "Bearer new"


def test_credentials_are_renewed_after_a_refusal() -> None:
    async def behaviour(request: Request, reply: Reply) -> None:
        fresh = request.headers["authorization"] == "bearer new"
        await reply.answer(200 if fresh else 401)

    async def story() -> None:
        async with (
            Server(behaviour) as server,
            Api(Renewed(server.url, authorization="Bearer old")) as api,
        ):
            assert (await api.call("GET", "/a")).status == 401
            await until(lambda: api.credentials.authorization == "Bearer new")
            assert (await api.call("GET", "/a")).status == 200
            assert server.connections == 2  # the first may show an old certificate

    asyncio.run(story())


def test_a_proxy_is_gone_through() -> None:
    async def story() -> None:
        async with Server(agreeing) as proxy:
            far = Credentials("http://far.invalid:6443", proxy=proxy.url)
            async with Api(far) as api:
                assert (await api.call("GET", "/a?b=%2F")).status == 201
            assert proxy.requests[0].path == "http://far.invalid:6443/a?b=%2F"

    asyncio.run(story())


async def read_stream(api: Api, idle_s: float = 5.0) -> list[bytes]:
    blocks: list[bytes] = []
    async with contextlib.aclosing(api.stream("/w", idle_s=idle_s)) as stream:
        async for block in stream:
            blocks.append(block)  # noqa: PERF401 - what came before a failure counts
    return blocks


def test_a_stream_gives_whole_lines_and_drops_what_is_left() -> None:
    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.start_chunks()
        for part in (b"one\ntw", b"o", b"\nthree\nfour\n", b"fi"):
            await reply.chunk(part)
            await asyncio.sleep(0.01)
        await reply.end_chunks()

    async def story() -> None:
        async with talking(behaviour) as (api, _server):
            blocks = await read_stream(api)
        assert all(block.endswith(b"\n") for block in blocks)
        assert b"".join(blocks) == b"one\ntwo\nthree\nfour\n"

    asyncio.run(story())


@pytest.mark.parametrize("silent", [True, False])
def test_a_stream_that_is_silent_or_breaks_off_is_lost(*, silent: bool) -> None:
    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.start_chunks()
        await reply.chunk(b"one\ntw")
        if silent:
            await asyncio.sleep(10)
        reply.close()

    async def story() -> None:
        async with talking(behaviour) as (api, _server):
            with pytest.raises(Unreachable):
                await read_stream(api, idle_s=0.05)

    asyncio.run(story())


def test_a_stream_that_is_refused_says_why() -> None:
    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.answer(429, b"later", "Retry-After: 2\r\n")

    async def story() -> None:
        async with talking(behaviour) as (api, _server):
            with pytest.raises(Refused) as caught:
                await read_stream(api)
        assert caught.value.answer == Answer(429, b"later", 2.0)

    asyncio.run(story())


def test_calls_in_flight_end_when_the_api_is_left() -> None:
    async def behaviour(_request: Request, _reply: Reply) -> None:
        await asyncio.sleep(10)

    async def story() -> None:
        async with Server(behaviour) as server:
            async with Api(Credentials(server.url), connections=2) as api:
                calls = [asyncio.create_task(api.call("GET", "/a")) for _ in range(5)]
                await until(lambda: len(server.requests) == 2)
            for outcome in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(outcome, Unreachable)
            assert server.connections == 2

    asyncio.run(story())


async def watch(api: Api) -> None:
    async for _block in api.stream("/w", idle_s=60.0):
        pass


def test_leaving_waits_for_a_stream_that_was_cancelled_before_its_answer() -> None:
    """TLS ends when both sides say so, and the server does not."""
    arrived = asyncio.Event()

    async def behaviour(_request: Request, reply: Reply) -> None:
        arrived.set()
        await reply.ignore()

    async def story() -> None:
        async with Server(behaviour, anonymous_tls(ssl.PROTOCOL_TLS_SERVER)) as server:
            tls = anonymous_tls(ssl.PROTOCOL_TLS_CLIENT)
            async with Api(Credentials(server.url, tls=tls)) as api:
                watching = asyncio.create_task(watch(api))
                await arrived.wait()
                assert len(sockets_to(server.port)) == 1
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            assert sockets_to(server.port) == []

    asyncio.run(story())


def test_leaving_ends_connections_that_are_being_made() -> None:
    """The server accepts them, and says nothing in the TLS handshake."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.settimeout(0.0)
            port = listening.getsockname()[1]
            tls = anonymous_tls(ssl.PROTOCOL_TLS_CLIENT)
            there = []
            async with Api(Credentials(f"https://127.0.0.1:{port}", tls=tls)) as api:
                tasks = [
                    asyncio.create_task(api.call("POST", "/a")),
                    asyncio.create_task(watch(api)),
                ]
                for _task in tasks:
                    there.append((await loop.sock_accept(listening))[0])
                    assert await loop.sock_recv(there[-1], 1)  # of the handshake
            assert sockets_to(port) == []
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(outcome, Unreachable)
            for each in there:
                each.close()

    asyncio.run(story())


def test_who_left_asks_nothing_more() -> None:
    async def story() -> None:
        async with Server(agreeing) as server:
            for proxy in (None, server.url):
                async with Api(Credentials(server.url, proxy=proxy)) as api:
                    pass
                with pytest.raises(Unreachable, match="closed by us") as caught:
                    await api.call("POST", "/a")
                assert not caught.value.sent
                with pytest.raises(Unreachable, match="closed by us"):
                    await watch(api)
            assert server.connections == 0

    asyncio.run(story())


def test_trouble_with_credentials_is_told_and_the_old_ones_stay() -> None:
    class Lost(Credentials):
        async def renew(self, *, refused: bool = False) -> None:
            raise BadCredentials(f"no token, refused: {refused}")

    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.answer(401)

    async def story() -> None:
        told: list[str] = []
        async with (
            Server(behaviour) as server,
            Api(
                Lost(server.url, authorization="Bearer old"), trouble=told.append
            ) as api,
        ):
            await api.call("GET", "/a")
            await until(lambda: told)
            await api.call("GET", "/a")
            assert server.requests[1].headers["authorization"] == "bearer old"
        assert told == ["no token, refused: True"]

    asyncio.run(story())


def test_who_does_not_lead_changes_nothing_and_may_look() -> None:
    async def story() -> None:
        async with talking(agreeing) as (api, server):
            api.fence = lambda: 0.0
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                with pytest.raises(Unreachable, match="does not lead") as refused:
                    await api.call(method, "/pods", b"{}")
                assert not refused.value.sent
            await api.call("GET", "/pods")
            await api.call("PUT", "/lease", b"{}", lane="lead")
            await api.call("POST", "/events", b"{}", lane="tell", fenced=False)

            seen = [(each.method, each.path) for each in server.requests]
            assert seen == [("GET", "/pods"), ("PUT", "/lease"), ("POST", "/events")]
            assert server.connections == 1

    asyncio.run(story())


def test_a_request_that_came_too_late_leaves_its_connection_to_others() -> None:
    """Its time was over when the connection was there."""

    async def story() -> None:
        async with talking(agreeing) as (api, server):
            for _late in range(3):
                left = iter([1.0])
                api.fence = lambda left=left: next(left, 0.0)
                with pytest.raises(Unreachable, match="does not lead"):
                    await api.call("POST", "/pods", b"{}")
            await api.call("GET", "/pods")

            assert server.connections == 1
            assert len(server.requests) == 1

    asyncio.run(story())


def test_through_a_proxy_nothing_goes_on_when_the_time_is_over() -> None:
    async def silent(_request: Request, reply: Reply) -> None:
        await reply.left()

    async def story() -> None:
        async with Server(silent) as proxy:
            credentials = Credentials("http://api.invalid", proxy=proxy.url)
            async with Api(credentials) as api, asyncio.timeout(10):
                api.fence = lambda: 0.2
                with pytest.raises(Unreachable):
                    await api.call("POST", "/binding", b"{}")

    asyncio.run(story())


def test_what_a_leader_changes_carries_the_end_of_its_time() -> None:
    async def story() -> None:
        async with talking(agreeing) as (api, server):
            api.fence = lambda: 2.5
            await api.call("POST", "/binding", b"{}")
            await api.call("PATCH", "/status?x=1", b"{}")

            seen = [each.path for each in server.requests]
            assert seen == ["/binding?timeout=2500ms", "/status?x=1&timeout=2500ms"]

    asyncio.run(story())


def test_the_time_is_looked_at_when_a_connection_is_there() -> None:
    """Not before waiting for one: it may be over by then."""

    async def story() -> None:
        left = [1.0]

        async def slow(_request: Request, reply: Reply) -> None:
            left[0] = 0.0
            await reply.answer(200)

        async with talking(slow, connections=1) as (api, server):
            api.fence = lambda: left[0]
            first = asyncio.create_task(api.call("POST", "/first"))
            second = asyncio.create_task(api.call("POST", "/second"))

            assert (await first).ok
            with pytest.raises(Unreachable):
                await second
            assert len(server.requests) == 1

    asyncio.run(story())


def test_what_was_not_sent_is_forgotten() -> None:
    """The other side reads nothing; what the system holds back is never sent."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.settimeout(0.0)
        port = listening.getsockname()[1]
        body = b"x" * (16 << 20)
        async with Api(Credentials(f"http://127.0.0.1:{port}")) as api:
            asked = asyncio.create_task(api.call("POST", "/big", body))
            there, _address = await loop.sock_accept(listening)
            read = len(await loop.sock_recv(there, 1))
            api.cut()
            with pytest.raises(Unreachable):
                await asked
        there.settimeout(30)
        with contextlib.suppress(ConnectionResetError):
            while got := there.recv(1 << 20):
                read += len(got)
        there.close()
        listening.close()

        assert read < len(body)

    asyncio.run(story())


def test_a_connection_that_is_just_closing_is_cut_as_well() -> None:
    """TLS gives up its socket before the connection is told that it is lost."""

    async def behaviour(_request: Request, reply: Reply) -> None:
        await reply.answer(200)

    async def story() -> None:
        async with Server(behaviour, anonymous_tls(ssl.PROTOCOL_TLS_SERVER)) as server:
            tls = anonymous_tls(ssl.PROTOCOL_TLS_CLIENT)
            async with Api(Credentials(server.url, tls=tls)) as api:
                for _turn in range(5):
                    await api.call("POST", "/any")
                    for _moment in range(5):
                        api.cut()
                        await asyncio.sleep(0)

    asyncio.run(story())


def test_every_request_is_told_of_with_its_outcome() -> None:
    told: list[tuple[str, str, int]] = []

    def answered(verb: str, lane: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        told.append((verb, lane, status))

    async def behaviour(request: Request, reply: Reply) -> None:
        if request.path == "/lost":
            reply.close()
        elif request.path == "/stream":
            await reply.start_chunks()
            await reply.chunk(b"line\n")
            await reply.end_chunks()
        else:
            await reply.answer(503 if request.path == "/busy" else 201)

    async def story() -> None:
        async with (
            Server(behaviour) as server,
            Api(Credentials(server.url), answered=answered) as api,
        ):
            await api.call("POST", "/fine")
            await api.call("PATCH", "/busy", lane="tell")
            with pytest.raises(Unreachable):
                await api.call("DELETE", "/lost")
            async for _lines in api.stream("/stream", idle_s=5.0):
                pass
            with pytest.raises(Refused):
                async for _lines in api.stream("/busy", idle_s=5.0):
                    pass
            with pytest.raises(Unreachable):
                async for _lines in api.stream("/lost", idle_s=5.0):
                    pass

    asyncio.run(story())

    assert told == [
        ("POST", "bind", 201),
        ("PATCH", "tell", 503),
        ("DELETE", "bind", 0),
        ("WATCH", "watch", 200),
        ("WATCH", "watch", 503),
        ("WATCH", "watch", 0),
    ]
