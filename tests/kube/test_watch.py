"""A reflector against a server that lists and watches as a script says."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ringleaf.kube import watch as watch_module
from ringleaf.kube.api import Api
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.objects import ConfigMap, Pod
from ringleaf.kube.watch import DOUBTS, Gone, Reflector
from tests.kube.server import Reply, Request, Server

Step = Callable[[dict[str, str], Reply], Awaitable[None]]
Told = list[tuple[str, ...]]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "FIRST_S", 0.001)
    monkeypatch.setattr(watch_module, "MOST_S", 0.01)
    monkeypatch.setattr(watch_module, "SLOW_S", 0.01)


def pod(name: str, version: object, uid: str = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    metadata = {"name": name, "namespace": "n", "resourceVersion": str(version)}
    return {"metadata": metadata | {"uid": uid or f"uid-{name}"}, **more}


def listing(
    *pods: dict[str, Any],
    version: object,
    more: str = "",
    at: str = "",
    page: int = 1000,
) -> Step:
    """Answers one list; *at* is the continue token that must be asked for."""

    async def step(query: dict[str, str], reply: Reply) -> None:
        assert "watch" not in query
        assert "resourceVersion" not in query
        assert query.get("continue", "") == at
        assert query["limit"] == str(page)
        metadata = {"resourceVersion": str(version), "continue": more}
        body = json.dumps({"metadata": metadata, "items": list(pods)}).encode()
        await reply.answer(200, body)

    return step


def refusing(status: int, more: str = "", message: str = "no") -> Step:
    async def step(_query: dict[str, str], reply: Reply) -> None:
        body = json.dumps({"kind": "Status", "code": status, "message": message})
        await reply.answer(status, body.encode(), more)

    return step


def event(what: str, thing: dict[str, Any]) -> bytes:
    return json.dumps({"type": what, "object": thing}).encode() + b"\n"


def watching(*blocks: bytes, version: object, end: str = "stay") -> Step:
    """Answers one watch from *version*; then it stays, ends or breaks off."""

    async def step(query: dict[str, str], reply: Reply) -> None:
        assert query["watch"] == "1"
        assert query["allowWatchBookmarks"] == "true"
        assert 300 <= int(query["timeoutSeconds"]) < 360
        assert query["resourceVersion"] == str(version)
        await reply.start_chunks()
        for block in blocks:
            await reply.chunk(block)
            await asyncio.sleep(0.01)
        if end == "stay":
            await asyncio.sleep(60)
        elif end == "finish":
            await reply.end_chunks()
        else:
            reply.close()

    return step


def run(
    *steps: Step, until: int, optional: bool = False, kind: type[Any] = Pod
) -> tuple[Told, list[str]]:
    """What was told until *until* words, and the troubles, when *steps* are answered.

    The reflector must ask for all steps, in their order and for nothing else.
    """
    return asyncio.run(_run(steps, until, optional=optional, kind=kind))


async def _run(
    steps: Sequence[Step],
    until: int,
    *,
    optional: bool,
    kind: type[Any],
    at_each: Callable[[], object] | None = None,
) -> tuple[Told, list[str]]:
    told: Told = []
    enough, asked = asyncio.Event(), asyncio.Event()
    troubles: list[str] = []
    faults: list[BaseException] = []
    script = iter(steps)

    async def behaviour(request: Request, reply: Reply) -> None:
        query = {k: v[0] for k, v in parse_qs(urlsplit(request.path).query).items()}
        try:
            step = next(script)
            if step is steps[-1]:
                asked.set()
            await step(query, reply)
        except (AssertionError, StopIteration) as fault:
            faults.append(fault)
            give_up()

    def give_up(_task: object = None) -> None:
        enough.set()
        asked.set()

    def tell(*words: str) -> None:
        told.append(words if at_each is None else (*words, str(at_each())))
        if len(told) == until:
            enough.set()

    def put(pods: list[Any]) -> None:
        found = [pod.metadata for pod in pods]
        tell("put", *(f"{one.key} {one.resource_version}" for one in found))

    def drop(gone: list[Gone]) -> None:
        tell("drop", *(f"{one.key} {one.uid}" for one in gone))

    async with Server(behaviour) as server, Api(Credentials(server.url)) as api:
        reflector: Reflector[Any] = Reflector(
            api,
            "/api/v1/pods",
            kind,
            put=put,
            drop=drop,
            listed=lambda: tell("listed"),
            optional=optional,
            trouble=troubles.append,
            unread=lambda key, _raw: tell("unread", key),
        )
        task = asyncio.create_task(reflector.run())
        task.add_done_callback(give_up)
        async with asyncio.timeout(60):
            await enough.wait()
            await asked.wait()
        await asyncio.sleep(0.03)  # time for what must not come
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled():
            task.result()
        assert all(words[0] != "listed" for words in told) or reflector.synced
    assert not faults, faults
    assert next(script, None) is None, "not all was asked for"
    return told, troubles


def test_a_list_in_pages_is_followed_by_a_watch_from_its_version() -> None:
    told, troubles = run(
        listing(pod("a", 3), pod("b", 4), version=9, more="t+1&="),
        listing(pod("c", 5), version=9, at="t+1&="),
        watching(event("MODIFIED", pod("a", 10)), version=9),
        until=4,
    )

    assert told == [
        ("put", "n/a 3", "n/b 4"),
        ("put", "n/c 5"),
        ("listed",),
        ("put", "n/a 10"),
    ]
    assert troubles == []


def test_a_page_is_passed_on_in_parts_between_which_others_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_module, "BATCH", 2)
    turns: list[int] = []

    async def count_turns() -> None:
        while True:
            turns.append(len(turns))
            await asyncio.sleep(0)

    async def story() -> Told:
        others = asyncio.create_task(count_turns())
        told, _ = await _run(
            [
                listing(*(pod(name, 3) for name in "abcde"), version=9),
                watching(version=9),
            ],
            4,
            optional=False,
            kind=Pod,
            at_each=lambda: turns[-1],
        )
        others.cancel()
        return told

    *puts, _listed = asyncio.run(story())

    words, moments = zip(*((words[:-1], words[-1]) for words in puts), strict=True)
    assert words == (
        ("put", "n/a 3", "n/b 3"),
        ("put", "n/c 3", "n/d 3"),
        ("put", "n/e 3"),
    )
    assert len({*moments}) == 3


def test_events_of_one_block_are_told_in_runs_and_in_order() -> None:
    block = (
        event("ADDED", pod("b", 10))
        + event("MODIFIED", pod("a", 11))
        + event("DELETED", pod("a", 12))
        + event("DELETED", pod("b", 13))
        + event("ADDED", pod("a", 14, "other"))
    )

    told, _ = run(listing(pod("a", 3), version=9), watching(block, version=9), until=5)

    assert told[2:] == [
        ("put", "n/b 10", "n/a 11"),
        ("drop", "n/a uid-a", "n/b uid-b"),
        ("put", "n/a 14"),
    ]


def test_repeated_and_belated_events_are_passed_over() -> None:
    told, troubles = run(
        listing(pod("a", 3), version=9),
        watching(
            event("ADDED", pod("a", 3)),
            event("MODIFIED", pod("a", 10)) * 2,
            event("DELETED", pod("b", 11)),
            event("DELETED", pod("a", 12)) * 2,
            event("MODIFIED", pod("a", 10)),
            version=9,
        ),
        until=4,
    )

    assert told[2:] == [("put", "n/a 10"), ("drop", "n/a uid-a")]
    assert troubles == []


def test_versions_need_not_be_numbers() -> None:
    told, _ = run(
        listing(pod("a", "x3"), version="x9"),
        watching(
            event("ADDED", pod("a", "x3")),
            event("MODIFIED", pod("a", "x10")) * 2,
            version="x9",
        ),
        until=3,
    )

    assert told == [("put", "n/a x3"), ("listed",), ("put", "n/a x10")]


def test_the_end_of_an_older_object_does_not_end_the_newer_one() -> None:
    told, _ = run(
        listing(version=9),
        watching(
            event("ADDED", pod("a", 10, "new")),
            event("DELETED", pod("a", 11, "old")),
            event("MODIFIED", pod("a", 12, "new")),
            version=9,
        ),
        until=3,
    )

    assert told == [("listed",), ("put", "n/a 10"), ("put", "n/a 12")]


def test_an_object_made_anew_under_its_name_is_dropped_first() -> None:
    told, _ = run(
        listing(pod("a", 3), version=9),
        watching(event("MODIFIED", pod("a", 10, "other")), version=9),
        until=4,
    )

    assert told[2:] == [("drop", "n/a uid-a"), ("put", "n/a 10")]


@pytest.mark.parametrize("end", ["break", "finish"])
def test_a_watch_that_ends_is_taken_up_from_the_last_version(end: str) -> None:
    bookmark = event("BOOKMARK", {"metadata": {"resourceVersion": "15"}})
    cut = event("ADDED", pod("z", 16))[:-20]

    told, _ = run(
        listing(version=9),
        watching(event("ADDED", pod("a", 10)), bookmark, cut, version=9, end=end),
        watching(event("ADDED", pod("z", 16)), version=15),
        until=3,
    )

    assert told == [("listed",), ("put", "n/a 10"), ("put", "n/z 16")]


def expired(what: str) -> list[Step]:
    status = {"kind": "Status", "metadata": {}, "status": "Failure", "code": 410}
    if what == "event":
        return [watching(event("ERROR", status), version=9)]
    return [refusing(410)]


@pytest.mark.parametrize("kind", [Pod, ConfigMap])
@pytest.mark.parametrize("what", ["event", "answer"])
def test_a_version_that_is_too_old_leads_to_a_list_that_tells_the_difference(
    what: str, kind: type[Any]
) -> None:
    told, troubles = run(
        listing(pod("a", 3), pod("b", 4), pod("c", 5), version=9),
        *expired(what),
        listing(pod("a", 3), pod("b", 20), pod("c", 21, "other"), version=30),
        watching(version=30),
        until=5,
        kind=kind,
    )

    assert told[2:] == [("drop", "n/c uid-c"), ("put", "n/b 20", "n/c 21"), ("listed",)]
    assert troubles == []


def failed(code: int, version: int) -> Step:
    """A watch that ends with an error."""
    status = {"kind": "Status", "metadata": {}, "status": "Failure", "code": code}
    return watching(event("ERROR", status | {"message": "no"}), version=version)


@pytest.mark.parametrize("code", [429, 500, 503])
def test_an_error_that_passes_is_no_reason_to_list_anew(code: int) -> None:
    told, troubles = run(
        listing(pod("a", 3), version=9),
        failed(code, 9),
        watching(event("ADDED", pod("b", 10)), version=9, end="finish"),
        failed(code, 10),
        watching(event("ADDED", pod("c", 11)), version=10),
        until=4,
    )

    assert told == [("put", "n/a 3"), ("listed",), ("put", "n/b 10"), ("put", "n/c 11")]
    assert troubles[0] == f"watch /api/v1/pods: status {code}, no"


def test_a_version_with_which_every_watch_fails_is_given_up() -> None:
    told, troubles = run(
        listing(version=9),
        *(failed(500, 9) for _try in range(DOUBTS)),
        listing(version=20),
        watching(version=20),
        until=2,
    )

    assert told == [("listed",), ("listed",)]
    assert troubles == ["watch /api/v1/pods: status 500, no"]


def test_what_vanished_between_two_lists_is_dropped() -> None:
    told, _ = run(
        listing(pod("b", 3), pod("a", 4), pod("c", 4), version=9),
        *expired("event"),
        listing(pod("c", 4), version=30),
        watching(version=30),
        until=4,
    )

    assert told[2:] == [("drop", "n/a uid-a", "n/b uid-b"), ("listed",)]


def test_a_continue_token_that_is_too_old_starts_the_list_over() -> None:
    told, _ = run(
        listing(pod("a", 3), version=9, more="old"),
        refusing(410),
        listing(pod("b", 12), version=20, page=4000),
        watching(version=20),
        until=4,
    )

    assert told == [
        ("put", "n/a 3"),
        ("put", "n/b 12"),
        ("drop", "n/a uid-a"),
        ("listed",),
    ]


def test_pages_with_too_many_bytes_are_asked_for_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thousand pods of a megabyte are more than the memory of a scheduler."""
    monkeypatch.setattr(watch_module, "MOST_BYTES", 10_000)
    fat = [pod(f"fat-{i}", 3, spec={"schedulerName": 20_000 * "x"}) for i in range(2)]

    told, troubles = run(
        listing(pod("a", 3), version=9, more="t"),
        listing(*fat, version=9, at="t"),
        listing(*fat, version=9, at="t", page=125),
        listing(*fat, version=9, at="t", page=15),
        listing(fat[0], version=9, at="t", page=1, more="u"),
        listing(fat[1], version=9, at="u", page=2),
        listing(fat[1], version=9, at="u", page=1, more="v"),
        listing(pod("b", 3), version=9, at="v", page=2, more="w"),
        listing(pod("c", 3), version=9, at="w", page=4),
        *expired("event"),
        listing(version=20),
        watching(version=20),
        until=8,
    )

    assert [words[1] for words in told[:5]] == [
        "n/a 3",
        "n/fat-0 3",
        "n/fat-1 3",
        "n/b 3",
        "n/c 3",
    ]
    assert troubles == []


def test_pages_grow_to_a_limit_and_shrink_once_a_list_is_complete() -> None:
    steps: list[Step] = []
    for page in (1000, 4000, 16000, 16000):
        steps.append(listing(version=9, more="old", page=page))
        steps.append(refusing(410))
    told, _ = run(
        *steps,
        listing(version=20, page=16000),
        failed(410, 20),
        listing(version=30, page=4000),
        failed(410, 30),
        listing(version=40, page=1000),
        failed(410, 40),
        listing(version=50, page=1000),
        watching(version=50),
        until=4,
    )

    assert told == [("listed",)] * 4


def test_an_object_that_cannot_be_read_does_not_stop_the_others() -> None:
    bad = pod("bad", 4, spec={"priority": "high"})
    still_bad = pod("bad", 11, spec={"priority": "high"})

    told, troubles = run(
        listing(pod("a", 3), bad, pod("c", 5), version=9),
        watching(
            event("ADDED", pod("d", 10)) + event("MODIFIED", still_bad),
            event("MODIFIED", pod("bad", 12)),
            event("DELETED", pod("bad", 13, spec={"priority": "high"})),
            version=9,
        ),
        until=7,
    )

    assert told == [
        ("unread", "n/bad"),
        ("put", "n/a 3", "n/c 5"),
        ("listed",),
        ("put", "n/d 10"),
        ("unread", "n/bad"),
        ("put", "n/bad 12"),
        ("drop", "n/bad uid-bad"),
    ]
    assert len(troubles) == 2
    assert all("'n/bad'" in line and "priority" in line for line in troubles)


def test_an_object_that_became_unreadable_stays_as_it_was_known() -> None:
    told, _ = run(
        listing(pod("a", 3), version=9),
        *expired("event"),
        listing(pod("a", 12, spec={"priority": "high"}), version=20),
        watching(version=20),
        until=4,
    )

    assert told == [("put", "n/a 3"), ("listed",), ("unread", "n/a"), ("listed",)]


def too_deep(name: str, version: object) -> dict[str, Any]:
    """A pod as any of its owners may write it: the API server keeps 10,000 levels."""
    thing = pod(name, version)
    thing["metadata"]["managedFields"] = [{"fieldsV1": "deep"}]
    return thing


def deepened(text: bytes) -> bytes:
    return text.replace(b'"deep"', 1_500 * b'{"f:a":' + b"{}" + 1_500 * b"}")


def deep_listing(*pods: dict[str, Any], version: object) -> Step:
    async def step(_query: dict[str, str], reply: Reply) -> None:
        metadata = {"resourceVersion": str(version), "continue": ""}
        body = json.dumps({"metadata": metadata, "items": list(pods)}).encode()
        await reply.answer(200, deepened(body))

    return step


def test_an_object_that_is_nested_too_deep_is_read_like_any_other() -> None:
    """Python lets a decoder go down about a thousand levels, and no further."""
    bad = pod("bad", 4, spec={"priority": "high"})

    told, troubles = run(
        deep_listing(pod("a", 3), too_deep("b", 4), version=9),
        watching(
            deepened(
                event("ADDED", pod("c", 10))
                + event("MODIFIED", too_deep("b", 11))
                + event("ADDED", too_deep("d", 12))
            ),
            deepened(event("DELETED", too_deep("b", 13))),
            event("ADDED", pod("e", 14)),
            event("ERROR", {"code": 410}),
            version=9,
        ),
        deep_listing(pod("a", 3), too_deep("d", 12), bad, version=20),
        watching(version=20),
        until=8,
    )

    assert told == [
        ("put", "n/a 3", "n/b 4"),
        ("listed",),
        ("put", "n/c 10", "n/b 11", "n/d 12"),
        ("drop", "n/b uid-b"),
        ("put", "n/e 14"),
        ("unread", "n/bad"),
        ("drop", "n/c uid-c", "n/e uid-e"),
        ("listed",),
    ]
    assert len(troubles) == 1


@pytest.mark.parametrize(
    "garbage", [b"\xff\xfe\n", b"{}\n", b'{"type": "ADD\n', b"[]\n"]
)
def test_a_line_that_is_no_event_leads_to_a_list(garbage: bytes) -> None:
    told, troubles = run(
        listing(version=9),
        watching(event("ADDED", pod("a", 10)) + garbage, version=9),
        listing(pod("a", 10), pod("b", 11), version=20),
        watching(version=20),
        until=4,
    )

    assert told == [("listed",), ("put", "n/a 10"), ("put", "n/b 11"), ("listed",)]
    assert len(troubles) == 1
    assert "want an event" in troubles[0]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_a_refused_list_is_asked_for_again_and_told_once(status: int) -> None:
    told, troubles = run(
        refusing(status),
        refusing(status),
        listing(version=9),
        watching(version=9),
        until=1,
    )

    assert told == [("listed",)]
    assert troubles == [f"list /api/v1/pods: status {status}, no"]


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_refused_watch_goes_on_from_where_it_was(status: int) -> None:
    told, troubles = run(
        listing(version=9),
        refusing(status),
        watching(event("ADDED", pod("a", 10)), version=9),
        until=2,
    )

    assert told == [("listed",), ("put", "n/a 10")]
    assert troubles == [f"watch /api/v1/pods: status {status}, no"]


def test_the_server_says_when_to_come_again() -> None:
    at: list[float] = []

    async def busy(_query: dict[str, str], reply: Reply) -> None:
        at.append(asyncio.get_running_loop().time())
        await reply.answer(429, more="Retry-After: 1\r\n")

    async def then(query: dict[str, str], reply: Reply) -> None:
        at.append(asyncio.get_running_loop().time())
        await listing(version=9)(query, reply)

    run(busy, then, watching(version=9), until=1)

    assert at[1] - at[0] >= 1.0


def test_an_optional_kind_that_is_unknown_has_no_objects() -> None:
    told, troubles = run(
        refusing(404),
        refusing(404),
        listing(pod("a", 3), version=9),
        refusing(404),
        refusing(404),
        listing(pod("a", 12, "other"), version=20),
        watching(version=20),
        until=6,
        optional=True,
    )

    assert told == [
        ("listed",),
        ("put", "n/a 3"),
        ("listed",),
        ("drop", "n/a uid-a"),
        ("put", "n/a 12"),
        ("listed",),
    ]
    assert troubles == []


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"metadata": {}, "items": []}'])
def test_a_list_that_is_none_is_asked_for_again(body: bytes) -> None:
    async def odd(_query: dict[str, str], reply: Reply) -> None:
        await reply.answer(200, body)

    told, troubles = run(odd, listing(version=9), watching(version=9), until=1)

    assert told == [("listed",)]
    assert len(troubles) == 1


def test_a_server_that_is_away_is_waited_for() -> None:
    async def away(_query: dict[str, str], reply: Reply) -> None:
        reply.close()

    told, troubles = run(away, away, listing(version=9), watching(version=9), until=1)

    assert told == [("listed",)]
    assert len(troubles) == 1


def test_lists_watches_and_failures_are_counted() -> None:
    """A watch that is refused, a list that is, and then all is well."""
    made = pod("b", 6)
    made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    steps = iter(
        [
            listing(pod("a", 5), version=5),
            refusing(410),
            refusing(500),
            listing(pod("a", 5), version=5),
            watching(event("ADDED", made), version=5),
        ]
    )
    enough = asyncio.Event()

    async def behaviour(request: Request, reply: Reply) -> None:
        query = {k: v[0] for k, v in parse_qs(urlsplit(request.path).query).items()}
        await next(steps)(query, reply)

    def put(pods: list[Pod]) -> None:
        if pods[0].metadata.name == "b":
            enough.set()

    async def story() -> Reflector[Pod]:
        async with Server(behaviour) as server, Api(Credentials(server.url)) as api:
            found = Reflector(
                api, "/api/v1/pods", Pod, put=put, drop=lambda _gone: None
            )
            task = asyncio.create_task(found.run())
            async with asyncio.timeout(60):
                await enough.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return found

    found = asyncio.run(story())

    assert found.kind == "pods"
    assert (found.n_lists, found.n_watches, found.n_failures) == (3, 2, 2)
    assert found.newest == ("2026-01-01T00:00:00Z", found.heard_at)
    assert found.heard_at > 0
