import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from threading import Thread, get_ident
from time import sleep

import pytest

from ringleaf.kube.api import Api
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.health import BadAddress, Health
from ringleaf.kube.leader import Elector, Terms
from ringleaf.kube.scheduler import Options, Scheduler


def test_probes_answer_with_their_reasons() -> None:
    ready = [False]

    async def story() -> None:
        health = Health(
            "127.0.0.1:0",
            live=lambda: (True, {}),
            ready=lambda: (ready[0], {"pods": "not listed yet"}),
        )
        async with (
            health,
            Api(Credentials(f"http://127.0.0.1:{health.port}")) as api,
        ):
            assert (await api.call("GET", "/livez")).status == 200
            assert (await api.call("GET", "/healthz")).status == 200
            answer = await api.call("GET", "/readyz")
            assert answer.status == 503
            assert json.loads(answer.body)["reasons"] == {"pods": "not listed yet"}
            ready[0] = True
            assert (await api.call("GET", "/readyz")).status == 200
            other = await api.call("GET", "/other")
            assert other.status == 404
            pages = b"/healthz, /livez, /readyz"
            assert other.body == b"there is no /other, only " + pages + b"\n"
            assert answer.body.endswith(b"}\n")

    asyncio.run(story())


def asked(port: int, path: str) -> tuple[int, bytes]:
    """What is answered, as somebody outside of the loop hears it."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def well() -> tuple[bool, dict[str, str]]:
    return True, {}


class Text:
    """Metrics of one moment."""

    def __init__(self, words: bytes) -> None:
        self._words = words

    def text(self, accept: str = "") -> tuple[bytes, str]:
        return self._words + accept.encode(), "text/plain"


def test_probes_are_answered_while_the_loop_is_busy() -> None:
    """Whoever asks is on another thread, as a kubelet is; the loop never turns."""
    found: list[tuple[int, bytes]] = []

    async def story() -> None:
        async with Health("127.0.0.1:0", well, well) as health:
            asking = Thread(target=lambda: found.append(asked(health.port, "/livez")))
            asking.start()
            asking.join()  # all the while this loop does nothing else

    asyncio.run(story())

    assert [status for status, _body in found] == [200]


def test_a_loop_that_is_stuck_is_neither_alive_nor_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringleaf.kube.health.STUCK_S", -1.0)

    async def story() -> list[tuple[int, bytes]]:
        async with Health("127.0.0.1:0", well, well) as health:
            return [
                await asyncio.to_thread(asked, health.port, path)
                for path in ("/livez", "/readyz")
            ]

    found = asyncio.run(story())

    assert [status for status, _body in found] == [503, 503]
    assert b'"loop":"nothing was done for 0 s"' in found[0][1]


def test_metrics_are_read_by_the_loop_and_at_most_once_a_second() -> None:
    readers: list[int] = []

    async def read() -> Text:
        readers.append(get_ident())
        return Text(b"a 1\n")

    async def story() -> list[tuple[int, bytes]]:
        async with Health("127.0.0.1:0", well, well, read) as health:
            return [
                await asyncio.to_thread(asked, health.port, "/metrics")
                for _scrape in range(20)
            ]

    assert asyncio.run(story()) == [(200, b"a 1\n")] * 20
    assert len(readers) < 20
    assert {*readers} == {get_ident()}


def test_a_loop_that_is_busy_serves_the_metrics_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringleaf.kube.health.FRESH_S", 0.0)
    monkeypatch.setattr("ringleaf.kube.health.BUSY_S", 0.05)
    monkeypatch.setattr("ringleaf.kube.health.FIRST_S", 0.05)
    is_free = asyncio.Event()
    pages = iter(range(10))

    async def read() -> Text:
        page = next(pages)
        await is_free.wait()
        return Text(b"%d" % page)

    async def story() -> list[tuple[int, bytes]]:
        async with Health("127.0.0.1:0", well, well, read) as health:

            async def scrape() -> tuple[int, bytes]:
                return await asyncio.to_thread(asked, health.port, "/metrics")

            found = [await scrape()]
            is_free.set()
            await asyncio.sleep(0.01)
            found.append(await scrape())
            is_free.clear()
            return [*found, await scrape(), await scrape()]

    first, *others = asyncio.run(story())

    assert first[0] == 503
    assert b"busy" in first[1]
    assert others == [(200, b"0")] * 3
    assert next(pages) == 2, "who comes while one is being read waits for that one"


def test_pages_are_made_by_the_loop() -> None:
    async def story() -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()

        def page() -> bytes:
            assert asyncio.get_running_loop() is loop
            return b"{}"

        async with Health("127.0.0.1:0", well, well, pages={"/own": page}) as health:
            return await asyncio.to_thread(asked, health.port, "/own")

    assert asyncio.run(story()) == (200, b"{}")


def test_a_page_waits_for_a_busy_loop_as_long_as_a_person_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringleaf.kube.health.BUSY_S", 0.01)

    async def story() -> list[tuple[int, bytes]]:
        pages = {"/own": lambda: b"{}"}
        async with Health("127.0.0.1:0", well, well, pages=pages) as health:
            with ThreadPoolExecutor() as pool:
                asking = pool.submit(asked, health.port, "/own")
                sleep(0.3)  # noqa: ASYNC251 - the loop is busy
                first = await asyncio.wrap_future(asking)
                monkeypatch.setattr("ringleaf.kube.health.PAGE_S", 0.01)
                second = pool.submit(asked, health.port, "/own").result()  # and again
            return [first, second]

    first, second = asyncio.run(story())

    assert first == (200, b"{}")
    assert second[0] == 503
    assert b"busy" in second[1]


@pytest.mark.parametrize(
    "address", ["", "8080", "host", "host:port", "a:b:1", ":99999"]
)
def test_an_address_that_is_none_is_told(address: str) -> None:
    with pytest.raises(BadAddress, match="want HOST:PORT"):
        Health(address, live=lambda: (True, {}), ready=lambda: (True, {}))


def test_an_address_that_is_taken_is_told() -> None:
    def probe() -> tuple[bool, dict[str, str]]:
        return True, {}

    async def story() -> None:
        async with Health("127.0.0.1:0", probe, probe) as first:
            with pytest.raises(BadAddress, match="want a free address"):
                async with Health(f"127.0.0.1:{first.port}", probe, probe):
                    pass

    asyncio.run(story())


def test_one_that_has_not_seen_its_lease_is_not_ready() -> None:
    api = Api(Credentials("http://127.0.0.1:1"))

    def say(_what: str, **_facts: object) -> None:
        pass

    elector = Elector(api, Terms("ringleaf", "kube-system", "me"), say)
    scheduler = Scheduler(api, Options(), say, elector=elector)
    for each in scheduler.reflectors:
        each.synced = True
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

    assert scheduler.ready() == (False, {path: "not listed yet", "role": "standby"})

    elector.reflector.synced = True

    assert scheduler.ready() == (True, {"role": "standby"})
