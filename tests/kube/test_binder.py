"""Bindings: in which order they go out, and what becomes of those without an answer."""

import asyncio
from collections.abc import Callable, Iterable
from typing import cast

import msgspec
import pytest

from ringleaf.kube import binder
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.assumed_pods import AssumedPods
from ringleaf.kube.binder import Binder, Bound
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.objects import Pod
from ringleaf.kube.pod_state import PodState
from ringleaf.model.placement import Placement
from tests.kube import stage

Step = Callable[[str, str], Answer | None]


class Server:
    """Answers as it is told; None is no answer."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.asked: list[str] = []
        self.done: list[str] = []
        self.most = 0
        self._now = 0

    async def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        kind: str = "application/json",
    ) -> Answer:
        del body, kind
        name = path.split("/")[6]
        self.asked.append(f"{method} {name}")
        self._now += 1
        self.most = max(self.most, self._now)
        # Those that came first take longest.
        await asyncio.sleep(0.05 / len(self.asked))
        self._now -= 1
        answer = self.step(method, name)
        if answer is None:
            raise Unreachable("away")
        self.done.append(f"{method} {name}")
        return answer


class Outcomes(AssumedPods):
    """Takes note of outcomes."""

    def __init__(self, cache: ClusterCache) -> None:
        super().__init__(cache.state, cache.node_pods)
        self.outcomes: list[str] = []

    def bound(self, uid: str) -> None:
        """A pod is bound."""
        self.outcomes.append(f"{uid} bound")

    def forget(self, uid: str, now: float, why: str = "") -> None:
        """A pod is not bound."""
        del now, why
        self.outcomes.append(f"{uid} failed")

    def not_evicted(self, job: str, uid: str, now: float) -> None:
        """A pod was not evicted."""
        del uid, now
        self.outcomes.append(f"{job} stayed")


class Known(ClusterCache):
    """A cache that takes note of outcomes."""

    def __init__(self) -> None:
        super().__init__()
        self.assumed = Outcomes(self)

    @property
    def outcomes(self) -> list[str]:
        """What became of pods."""
        assert isinstance(self.assumed, Outcomes)
        return self.assumed.outcomes


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binder, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(binder, "MOST_PAUSE_S", 0.001)


def bind(server: Server, places: Iterable[tuple[str, str, tuple[int, ...]]]) -> Known:
    """Bind pods, each with its node and chips; what the cache heard."""
    cache = Known()
    items = [
        Bound(_record(name, len(chips)), Placement(0, node, chips), {})
        for name, node, chips in places
    ]

    async def run() -> None:
        own = _binder(server, cache)
        own.bind(items)
        await asyncio.wait_for(own.drained(), 30)
        assert own.in_flight == 0

    asyncio.run(run())
    return cache


def test_pods_of_one_node_with_equally_many_chips_are_bound_in_order() -> None:
    server = Server(lambda _method, _name: Answer(201, b""))

    cache = bind(server, [(f"p{i}", "a", (i,)) for i in range(5)])

    assert server.done == [f"POST p{i}" for i in range(5)]
    assert server.most == 1
    assert cache.outcomes == [f"p{i} bound" for i in range(5)]


def test_others_do_not_wait_for_each_other() -> None:
    server = Server(lambda _method, _name: Answer(201, b""))
    places = [("one", "a", (0,)), ("two", "a", (1, 2)), ("far", "b", (0,))]

    bind(server, [*places, ("plain", "a", ()), ("bare", "a", ())])

    assert server.most == 5


def test_a_pod_is_asked_for_until_there_is_an_answer() -> None:
    silence = 3 * binder.TRIES
    server = Server(
        lambda _method, _name: None if len(server.asked) < silence else Answer(201, b"")
    )

    cache = bind(server, [("p", "a", (0,))])

    assert len(server.asked) == silence
    assert cache.outcomes == ["p bound"]


@pytest.mark.parametrize("status", [409, 500, 504])
@pytest.mark.parametrize(
    ("node", "outcome"), [("a", "p bound"), ("", "p failed"), ("b", "p failed")]
)
def test_after_a_refusal_the_pod_itself_says_where_it_is(
    status: int, node: str, outcome: str
) -> None:
    found = stage.pod("p", 1, spec={"nodeName": node})
    body = msgspec.json.encode(found)
    server = Server(
        lambda method, _name: (
            Answer(status, b"") if method == "POST" else Answer(200, body)
        )
    )

    cache = bind(server, [("p", "a", (0,))])

    assert server.asked[-1] == "GET p"
    assert cache.outcomes == [outcome]


@pytest.mark.parametrize(
    ("status", "said", "tries", "outcome"),
    [
        (403, b"the leader is a, this Binding is by b", 3, "p bound"),
        (403, b"user may not bind", 1, "p failed"),
    ],
)
def test_a_fence_that_has_not_heard_who_leads_is_asked_again(
    status: int, said: bytes, tries: int, outcome: str
) -> None:
    server = Server(
        lambda _method, _name: (
            Answer(status, said) if len(server.asked) < 3 else Answer(201, b"")
        )
    )

    cache = bind(server, [("p", "a", (0,))])

    assert len(server.asked) == tries
    assert cache.outcomes == [outcome]


def test_a_pod_that_cannot_be_read_is_not_bound() -> None:
    server = Server(lambda method, _name: Answer(200 if method == "GET" else 409, b"?"))

    assert bind(server, [("p", "a", (0,))]).outcomes == ["p failed"]


@pytest.mark.parametrize(("status", "stays"), [(404, []), (409, ["p"]), (429, ["p"])])
def test_who_could_not_be_evicted_counts_as_running(
    status: int, stays: list[str]
) -> None:
    server = Server(lambda _method, _name: Answer(status, b""))
    cache, pod = Known(), _record("p", 1)
    pod.job = "p"

    async def run() -> None:
        own = _binder(server, cache)
        own.evict([pod], "why", lambda _pod, _why: None)
        await own.drained()

    asyncio.run(run())
    assert cache.outcomes == [f"{job} stayed" for job in stays]


def test_a_pod_that_is_moved_is_evicted_until_nothing_refuses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A disruption budget allows it later; the place that it moves to is held."""
    monkeypatch.setattr(binder, "REFUSED_S", 0.0)
    server = Server(
        lambda method, _name: Answer(
            403 if method == "POST" and server.asked.count("POST p") < 3 else 201, b""
        )
    )
    cache, pod, granted = Known(), _record("p", 1), list[str]()
    cache.state.pods[pod.uid] = pod

    async def run() -> None:
        own = _binder(server, cache)
        for _again in range(2):
            own.move([pod], "why", lambda each, _why: granted.append(each.name))
        await own.drained()

    asyncio.run(run())
    assert server.asked.count("POST p") == 3
    assert granted == ["p"]
    assert not cache.outcomes, "it does not count as running again"


@pytest.mark.parametrize("how", ["evict", "delete"])
def test_pods_are_bound_while_many_others_are_asked_to_end(how: str) -> None:
    """Pods that end may be thousands; connections are left for those that begin."""
    server = Lanes(workers=4)

    async def run() -> None:
        own = _binder(server, Known(), workers=4)
        leaving = [_record(f"old-{i}", 0) for i in range(50)]
        if how == "evict":
            own.evict(leaving, "why", lambda _pod, _why: None)
        else:
            own.delete(leaving)
        await asyncio.sleep(0)
        own.bind([Bound(_record("new", 0), Placement(0, "a", ()), {})])
        while "POST new" not in server.asked:  # noqa: ASYNC110 - others get no answer
            await asyncio.sleep(0.001)
        assert len(server.asked) <= 4
        await own.abandoned()

    asyncio.run(asyncio.wait_for(run(), 10))


class Lanes(Server):
    """Answers nothing, on so many connections."""

    def __init__(self, workers: int) -> None:
        super().__init__(lambda _method, _name: None)
        self._turns = asyncio.Semaphore(workers)

    async def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        kind: str = "application/json",
    ) -> Answer:
        del body, kind
        async with self._turns:
            self.asked.append(f"{method} {path.split('/')[6]}")
            await asyncio.sleep(60)
        raise Unreachable("away")


def test_a_pod_at_which_the_binder_fails_is_told_and_bound_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise it would be on its way for ever."""
    monkeypatch.setattr(binder, "MOST_PAUSE_S", 0.01)
    said: list[str] = []
    record, place = _record("p", 1), Placement(0, "a", (0,))
    record.assumed = place
    answers: list[Answer | Exception] = [ZeroDivisionError(), Answer(201, b"")]

    def broken(_method: str, _name: str) -> Answer:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def run() -> None:
        cache = Known()
        cache.state.pods[record.uid] = record
        own = _binder(
            Server(broken), cache, say=lambda what, **_more: said.append(what)
        )
        own.bind([Bound(record, place, {})])
        await own.drained()
        assert own.n_bound == 1

    asyncio.run(run())
    assert said == ["failed"]


def _binder(
    server: Server,
    cache: ClusterCache,
    say: Callable[..., None] = lambda *_words, **_more: None,
    workers: int = 32,
) -> Binder:
    return Binder(
        cast(Api, server),
        cache,
        lambda: 0.0,
        done=lambda _pod, _place: None,
        changed=lambda: None,
        say=say,
        workers=workers,
    )


def _record(name: str, chips: int) -> PodState:
    plain = stage.pod(name, chips)
    pod = msgspec.json.decode(msgspec.json.encode(plain), type=Pod)
    return PodState(pod, frozenset({"ringleaf"}))
