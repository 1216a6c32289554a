"""A scheduler that runs compares its state with the objects, however busy it is."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec import Struct

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event
from ringleaf.framework.instruction import Instruction
from ringleaf.framework.state import SchedulerState
from ringleaf.kube import comparer
from ringleaf.kube.api import Api
from ringleaf.kube.credentials import Credentials
from ringleaf.kube.decider import EngineInterface
from ringleaf.kube.leader import Elector, Terms, leases_path
from ringleaf.kube.scheduler import Options, Scheduler
from ringleaf.kube.status_writer import VOLCANO
from ringleaf.model.decision import Decision
from tests.kube.server import Reply, Request, Server
from tests.kube.stage import Plain, Stage

DIFFERS = "cache differs from the objects"
OFTEN_S, SELDOM_S = 0.05, 3600.0
PATIENCE_S = 20.0
LEASES = leases_path("default")
NODES = "/api/v1/nodes"


class ApiServer:
    """Lists the objects of a stage, passes on what changes, and grants all writes."""

    def __init__(self, stage: Stage, holder: str) -> None:
        self._version = 100
        self._watches: dict[str, list[asyncio.Queue[bytes]]] = {}
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 600}
        self._lease: Plain = {"metadata": {"name": "l", "uid": "l"}, "spec": spec}
        self._nodes = stage.nodes
        self._kinds = {
            NODES: stage.nodes.values(),
            "/api/v1/pods": stage.pods.values(),
            f"{VOLCANO}/podgroups": stage.groups.values(),
        }

    async def behave(self, request: Request, reply: Reply) -> None:
        """Answer a request."""
        url = urlsplit(request.path)
        if request.method != "GET":
            await reply.answer(200, self._write(url.path, request.body))
        elif "watch" in parse_qs(url.query):
            await self._watch(url.path, reply)
        elif "limit" in parse_qs(url.query):
            await reply.answer(200, self._list(url.path))
        else:
            await reply.answer(404, b"{}")

    def _list(self, path: str) -> bytes:
        found = [self._lease] if path == LEASES else self._kinds.get(path, ())
        items = [
            each | {"metadata": {"resourceVersion": "1", **each["metadata"]}}
            for each in found
        ]
        metadata = {"resourceVersion": str(self._version)}
        return json.dumps({"metadata": metadata, "items": items}).encode()

    def _write(self, path: str, body: bytes) -> bytes:
        if not path.startswith(LEASES):
            return b"{}"
        self._lease = json.loads(body)
        self._pass_on(LEASES, self._lease)
        return json.dumps(self._lease).encode()

    async def _watch(self, path: str, reply: Reply) -> None:
        events: asyncio.Queue[bytes] = asyncio.Queue()
        self._watches.setdefault(path, []).append(events)
        await reply.start_chunks()
        while True:
            await reply.chunk(await events.get())

    def _pass_on(self, path: str, plain: Plain) -> None:
        self._version += 1
        plain["metadata"]["resourceVersion"] = str(self._version)
        line = json.dumps({"type": "MODIFIED", "object": plain}).encode() + b"\n"
        for events in self._watches.get(path, ()):
            events.put_nowait(line)

    def relabel(self, name: str) -> None:
        """A node gets another label that decides nothing."""
        plain = self._nodes[name]
        plain["metadata"]["labels"] |= {"touched": str(self._version)}
        self._pass_on(NODES, plain)

    @property
    def holder(self) -> str:
        """The leader, or the last one."""
        return str(self._lease["spec"]["holderIdentity"])

    def give_up_the_lease(self) -> None:
        """The leader ends."""
        self._lease["spec"]["holderIdentity"] = ""
        self._pass_on(LEASES, self._lease)


class Live(Struct):
    """A scheduler that runs, its API server, and its log."""

    scheduler: Scheduler
    server: ApiServer
    log: list[tuple[str, dict[str, object]]]

    @property
    def differences(self) -> list[object]:
        """What the log says of differences."""
        return [facts["what"] for event, facts in self.log if event == DIFFERS]

    def forget_chips(self) -> None:
        """The engine loses what it knows of the chips that a pod on node c holds."""
        cluster = self.scheduler.view.cluster
        cluster.take(cluster.index["c"], 0)

    @property
    def knows_chips(self) -> bool:
        """Whether the engine knows them."""
        cluster = self.scheduler.view.cluster
        at = cluster.index.get("c")
        return at is not None and cluster.taken.item(at) == 0b1111

    @property
    def has_compared(self) -> bool:
        """Whether what was heard so far has been compared."""
        scheduler = self.scheduler
        is_known = scheduler.loop.comparison.compared == scheduler.metrics.n_heard
        return is_known and not scheduler.loop.comparison.steps


Wrap = Callable[[Engine], EngineInterface]


@asynccontextmanager
async def live(
    mind: Wrap = lambda engine: engine, *, stands_by: bool = False
) -> AsyncIterator[Live]:
    """A scheduler on a gang on nodes a and b and a pod on c, once all is decided."""
    stage = Stage("a b c")
    stage.gang("g", 2)
    stage.pod("p", 4)
    stage.cycle()
    stage.cycle()
    made = ApiServer(stage, "another")
    log: list[tuple[str, dict[str, object]]] = []

    def say(event: str, **facts: object) -> None:
        log.append((event, facts))

    async with Server(made.behave) as server, Api(Credentials(server.url)) as api:
        terms = Terms("l", "default", "own", duration_s=60)
        elector = Elector(api, terms, say) if stands_by else None
        scheduler = Scheduler(api, Options(), say, mind, elector)
        running = asyncio.create_task(scheduler.run())
        try:
            found = Live(scheduler, made, log)
            await until(lambda: found.knows_chips and "comparer" in scheduler._tasks)  # noqa: SLF001
            yield found
        finally:
            scheduler.stop()
            async with asyncio.timeout(PATIENCE_S):
                await running


async def until(condition: Callable[[], object]) -> None:
    """Return when *condition* holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def assert_begun_anew(found: Live) -> None:
    """The difference was logged and counted, and the state is rebuilt."""
    (told,) = found.differences
    assert "job 'pod default/p': pod 'p' holds chips 0, 1, 2, 3 of node 'c'" in str(
        told
    )
    metrics = found.scheduler.metrics
    assert (metrics.differences, metrics.rebuilds, metrics.failures) == (1, 1, 0)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is compared twenty times a second."""
    monkeypatch.setattr(comparer, "COMPARE_S", OFTEN_S)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("stands_by", [False, True], ids=["leader", "standby"])
def test_state_that_differs_is_logged_counted_and_rebuilt(*, stands_by: bool) -> None:
    async def story() -> None:
        async with live(stands_by=stands_by) as found:
            await until(lambda: found.has_compared)
            found.forget_chips()
            found.server.relabel("a")
            await until(lambda: found.differences and found.knows_chips)
            assert_begun_anew(found)
            found.server.relabel("a")
            await asyncio.sleep(4 * OFTEN_S)
            assert_begun_anew(found)

    asyncio.run(story())


@pytest.mark.usefixtures("often")
def test_while_nothing_happens_nothing_is_compared() -> None:
    async def story() -> None:
        async with live() as found:
            await until(lambda: found.has_compared)
            found.forget_chips()
            await asyncio.sleep(4 * OFTEN_S)
            assert found.differences == []

    asyncio.run(story())


def test_after_a_hand_over_the_state_is_compared_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if nothing was heard since the last comparison."""
    monkeypatch.setattr(comparer, "COMPARE_S", SELDOM_S)

    async def story() -> None:
        async with live(stands_by=True) as found:
            scheduler = found.scheduler
            scheduler.loop.comparison.compared = scheduler.metrics.n_heard
            found.forget_chips()
            found.server.give_up_the_lease()
            await until(lambda: found.differences and found.knows_chips)
            assert scheduler.leads
            assert_begun_anew(found)

    asyncio.run(story())


class Searching:
    """Decides, and always has more to decide, as while victims are searched for."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.has_more = True

    @property
    def view(self) -> SchedulerState:
        return self._engine.view

    @property
    def admitted(self) -> Iterable[str]:
        return self._engine.admitted

    def handle_all(
        self, events: Iterable[Event], now: float, most: float
    ) -> list[Instruction]:
        return self._engine.handle_all(events, now, most)

    def explain(self, name: str, *, hints: bool = True) -> Decision:
        return self._engine.explain(name, hints=hints)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("stands_by", [False, True], ids=["leader", "standby"])
def test_state_is_compared_while_a_search_and_news_go_on(*, stands_by: bool) -> None:
    """News comes before every cycle, and every cycle leaves something to decide."""

    async def news(scheduler: Scheduler) -> None:
        while True:
            scheduler.reconfigure(Options().conf)
            await asyncio.sleep(0)

    async def story() -> None:
        async with live(Searching, stands_by=stands_by) as found:
            coming = asyncio.create_task(news(found.scheduler))
            await asyncio.sleep(4 * OFTEN_S)
            found.forget_chips()
            await until(lambda: found.differences and found.knows_chips)
            assert_begun_anew(found)
            coming.cancel()

    asyncio.run(story())
