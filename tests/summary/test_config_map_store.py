"""The ConfigMaps of summaries: what others do to them, and trouble before the first."""

import asyncio
import json
from typing import Any, cast

import msgspec
import pytest

from ringleaf.kube import summary as summary_module
from ringleaf.kube import watch as watch_module
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api
from ringleaf.kube.config_map_store import MENDS, ConfigMapStore, SummaryMap
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.summary import SummaryWriter
from ringleaf.kube.watch import Gone
from tests.kube.server import Behaviour, Reply, Request, Server

KEY = "n/job-summary-bert"


class Keeper:
    """An API server with one ConfigMap; a write that changes nothing is none."""

    def __init__(self) -> None:
        self.version = 0
        self.plain: dict[str, Any] = {}

    async def call(
        self, _method: str, _path: str, body: bytes, **_more: object
    ) -> Answer:
        given = json.loads(body)
        given["metadata"].pop("resourceVersion", None)
        self.change(given["data"], given["metadata"])
        return Answer(200, json.dumps(self.plain).encode())

    def change(self, data: dict[str, str], meta: dict[str, Any]) -> SummaryMap:
        """Somebody changes it; what is heard of that."""
        before = json.dumps(self.plain, sort_keys=True)
        known = self.plain.setdefault("metadata", {})
        for key, value in meta.items():
            old = known.get(key)
            known[key] = {**(old or {}), **value} if isinstance(value, dict) else value
        self.plain["data"] = self.plain.get("data", {}) | data
        if json.dumps(self.plain, sort_keys=True) != before:
            self.version += 1
            known["resourceVersion"] = str(self.version)
        return msgspec.convert(self.plain, SummaryMap)


def after(changes: list[str], turns: int) -> tuple[dict[str, str], str]:
    """What is left to others after *changes* before one write, so often; its data."""
    keeper, spoiled = Keeper(), list[str]()
    map_store = ConfigMapStore(
        cast(Api, keeper),
        heard=lambda _found: None,
        spoiled=lambda known: spoiled.append(known.key),
        left=lambda _key, _line: None,
    )

    async def run() -> None:
        data = {"job_status": "running"}
        await map_store.put(KEY, {"outputId": "true"}, "v1", data)
        for turn in range(turns):
            spoiled.clear()
            for number, what in enumerate(changes):
                label = {"labels": {"team": f"{turn}-{number}"}}
                found = keeper.change({"job_status": "odd"}, {})
                if what == "label":
                    found = keeper.change(data, label)
                map_store.put_maps([found])
            if spoiled:
                await map_store.put(KEY, {}, "v1", data)

    asyncio.run(run())
    return map_store.strange, keeper.plain["data"]["job_status"]


def test_labels_are_no_edits_however_many_come_before_one_write() -> None:
    assert after(["label"] * (2 * MENDS), turns=3) == ({}, "running")


def test_edits_that_one_write_mends_count_once() -> None:
    assert after(["edit"] * (2 * MENDS), turns=MENDS) == ({}, "running")

    strange, status = after(["edit"] * 2, turns=MENDS + 1)
    assert strange == {KEY: f"others have changed it {MENDS + 1} times"}
    assert status == "odd"


class Late(Keeper):
    """An API server whose answer comes after the news that somebody has deleted it."""

    def __init__(self) -> None:
        super().__init__()
        self.map_store: ConfigMapStore | None = None

    async def call(
        self, _method: str, _path: str, body: bytes, **_more: object
    ) -> Answer:
        self.plain = {}
        answer = await super().call(_method, _path, body)
        self.plain["metadata"]["uid"] = f"u{self.version}"
        found = msgspec.convert(self.plain, SummaryMap)
        if self.version == 1 and self.map_store is not None:
            self.map_store.put_maps([found])
            self.map_store.drop_maps([Gone("n", "job-summary-bert", "u1")])
        return Answer(answer.status, json.dumps(self.plain).encode())


def test_one_that_is_deleted_before_its_write_is_answered_is_written_anew() -> None:
    keeper, spoiled = Late(), list[str]()
    map_store = keeper.map_store = ConfigMapStore(
        cast(Api, keeper),
        heard=lambda _found: None,
        spoiled=lambda known: spoiled.append(known.key),
        left=lambda _key, _line: None,
    )
    asyncio.run(map_store.put(KEY, {}, "v1", {"job_status": "running"}))
    assert spoiled == [KEY]
    assert map_store.maps == {}

    asyncio.run(map_store.put(KEY, {}, "v1", {"job_status": "running"}))
    assert spoiled == [KEY]
    assert map_store.maps[KEY].metadata.uid == "u2"


def test_late_news_that_the_one_before_was_deleted_is_no_news_of_this_one() -> None:
    keeper, spoiled = Late(), list[str]()
    map_store = ConfigMapStore(
        cast(Api, keeper),
        heard=lambda _found: None,
        spoiled=lambda known: spoiled.append(known.key),
        left=lambda _key, _line: None,
    )
    asyncio.run(map_store.put(KEY, {}, "v1", {"job_status": "running"}))
    map_store.drop_maps([Gone("n", "job-summary-bert", "u0")])
    assert spoiled == []
    assert map_store.maps[KEY].metadata.uid == "u1"

    map_store.drop_maps([Gone("n", "job-summary-bert", "u1")])
    assert spoiled == [KEY]
    assert map_store.maps == {}


# Trouble before anything is known.


def server_of(status: int, times: int) -> Behaviour:
    """Nothing is there, and so many lists of nodes are answered with *status*."""
    asked = 0

    async def behave(request: Request, reply: Reply) -> None:
        nonlocal asked
        if "watch=1" in request.path:
            await reply.start_chunks()
            await reply.left()
        elif "/nodes?" in request.path and asked < times:
            asked += 1
            await reply.answer(status, b'{"message": "not now"}')
        else:
            body = {"metadata": {"resourceVersion": "5"}, "items": []}
            await reply.answer(200, json.dumps(body).encode())

    return behave


def in_vain(status: int, times: int) -> str:
    """Why a writer has given up that was to write once; empty where it has not."""

    async def run() -> str:
        async with (
            Server(server_of(status, times)) as server,
            Api(Credentials(server=server.url), 4) as api,
        ):
            writer = SummaryWriter(api, lambda _what, **_more: None)
            async with asyncio.timeout(60):
                await writer.run(once=True)
            return writer.in_vain

    return asyncio.run(run())


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "FIRST_S", 0.4)
    monkeypatch.setattr(summary_module, "PATIENCE_S", 99.0)


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("status", [429, 500, 503])
def test_once_lets_trouble_pass(status: int) -> None:
    assert in_vain(status, times=1) == ""


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize(("status", "patience_s"), [(503, 0.0), (401, 99), (403, 99)])
def test_once_gives_up_where_it_does_not(
    status: int, patience_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_module, "PATIENCE_S", patience_s)

    why = in_vain(status, times=10**6)

    assert f"list /api/v1/nodes: status {status}, not now" in why
