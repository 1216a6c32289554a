"""Who leads, against a real API server; the clock is the test's."""

import asyncio
import contextlib
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.credentials import load
from ringleaf.kube.leader import EARLY_S, MARGIN_S, SEEN, Elector, Terms, aside
from ringleaf.kube.scheduler import Options, Scheduler
from ringleaf_testbed.cluster import Testbed

DURATION_S = 5
TURNS = 50
"""Turns of the loop in which one that may go on does so, without an API server."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Election:
    """One Lease, those who want it, and the time that all of them read."""

    def __init__(self, bed: Testbed) -> None:
        self.bed = bed
        self.name = f"lease-{secrets.token_hex(3)}"
        self.path = f"{LEASES}/{self.name}"
        self.now = 1000.0
        self.apis: dict[str, Api] = {}
        self.asked = 0
        """Requests without an answer."""
        self._stack = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[Any]] = []

    async def stands(
        self, identity: str, namespace: str = "default", told: list[str] | None = None
    ) -> Elector:
        """Somebody who sees the Lease, and has marked what it is like."""

        def say(_what: str, message: str = "", leader: str = "") -> None:
            line = message or f"standby, {leader} leads"
            (told if told is not None else []).append(line)

        credentials = await load(str(self.bed.kubeconfig), None)
        api = await self._stack.enter_async_context(Api(credentials))
        self.apis[identity] = api
        self._count(api)
        terms = Terms(self.name, namespace, identity, DURATION_S)
        elector = Elector(api, terms, say, lambda: self.now)
        self._tasks.append(asyncio.create_task(elector.reflector.run()))
        await elector.known()
        elector.mark()
        return elector

    def _count(self, api: Api) -> None:
        """Keep count of the requests of *api* that have no answer yet."""
        call = api.call

        async def counted(*what: Any, **how: Any) -> Any:  # noqa: ANN401
            self.asked += 1
            try:
                return await call(*what, **how)
            finally:
                self.asked -= 1

        api.call = counted  # type: ignore[method-assign]

    def deafen(self) -> None:
        """Nobody hears of the Lease any more."""
        for task in self._tasks:
            task.cancel()

    async def leads(self, identity: str) -> Elector:
        elector = await self.stands(identity)
        await within(elector.acquire())
        return elector

    async def sees(self, elector: Elector, holder: str) -> None:
        """Until *elector* sees who holds the Lease."""
        async with asyncio.timeout(30):
            await until(lambda: elector.holder == holder)

    @property
    def lease(self) -> dict[str, Any]:
        status, found = self.bed.request("GET", self.path)
        assert status == 200
        return dict(found)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()


async def within(work: Awaitable[Any], seconds: float = 30) -> Any:  # noqa: ANN401
    async with asyncio.timeout(seconds):
        return await work


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def version_of(elector: Elector) -> str:
    seen = elector._seen  # noqa: SLF001
    return "" if seen is None else seen.metadata.resource_version


def has_moved(elector: Elector, version: str) -> bool:
    return version_of(elector) != version


async def is_waiting(election: Election, work: "asyncio.Task[Any]") -> bool:
    """Whether *work* is not done, although it had its turns and all its answers."""
    quiet = 0
    while quiet < TURNS and not work.done():
        await asyncio.sleep(0)
        quiet = 0 if election.asked else quiet + 1
    return not work.done()


def played(bed: Testbed, story: Callable[[Election], Awaitable[None]]) -> None:
    async def play() -> None:
        election = Election(bed)
        try:
            await within(story(election), 90)
        finally:
            await election.close()

    asyncio.run(play())


@contextlib.asynccontextmanager
async def started(work: Awaitable[Any]) -> AsyncIterator["asyncio.Task[Any]"]:
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_lease_that_is_not_there_is_made(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        elector = await election.leads("a")

        assert elector.leads
        assert elector.was_vacant
        assert election.lease["spec"]["holderIdentity"] == "a"
        assert election.lease["spec"]["leaseDurationSeconds"] == DURATION_S

    played(testbed, story)


def test_a_leader_stops_before_anybody_else_can_begin(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        a = await election.leads("a")
        b = await election.stands("b")
        async with started(b.acquire()) as wanting:
            election.now += DURATION_S - MARGIN_S
            stopped_first = not a.leads and await is_waiting(election, wanting)
            election.now += MARGIN_S
            b._changed.set()  # noqa: SLF001
            await within(wanting)

        assert stopped_first
        assert b.leads
        assert not b.was_vacant
        assert election.lease["spec"]["leaseTransitions"] == 1

    played(testbed, story)


def test_who_renews_goes_on(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        a = await election.leads("a")
        b = await election.stands("b")
        async with started(b.acquire()) as wanting:
            for _second in range(2 * DURATION_S):
                election.now += 1
                version = election.lease["metadata"]["resourceVersion"]
                assert await a._renew()  # noqa: SLF001
                await until(partial(has_moved, b, version))

            assert await is_waiting(election, wanting)
            assert a.leads

    played(testbed, story)


def test_a_lease_that_is_given_up_is_taken_at_once(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        a = await election.leads("a")
        b = await election.stands("b")
        async with started(b.acquire()) as wanting:
            await a.release("4711")
            await within(wanting)

        assert not a.leads
        assert b.leads
        assert not b.was_vacant
        assert b.taken_from is not None
        assert (b.taken_from.metadata.annotations or {})[SEEN] == "4711"
        assert SEEN not in election.lease["metadata"].get("annotations", {})

    played(testbed, story)


def test_who_sees_its_lease_with_another_stops_at_once(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        a = await election.leads("a")
        async with started(a.keep()) as keeping:
            stolen = {"spec": {"holderIdentity": "thief"}}
            election.bed.client.ask("PATCH", election.path, stolen)

            assert await within(keeping) == "thief holds the lease now"
            assert not a.leads

    played(testbed, story)


def test_a_deleted_lease_is_nobody_elses_for_a_while(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        a = await election.leads("a")
        b = await election.stands("b")
        async with started(a.keep()) as keeping, started(b.acquire()) as wanting:
            election.bed.client.ask("DELETE", election.path)

            assert await within(keeping) == "no replica holds the lease now"
            assert await is_waiting(election, wanting)
            election.now += DURATION_S
            b._changed.set()  # noqa: SLF001
            await within(wanting)

    played(testbed, story)


def test_a_leader_that_cannot_renew_ends_in_time(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(election: Election) -> None:
        a = await election.leads("a")

        tries = []

        async def away(*what: object, **_how: object) -> None:
            tries.append(what)
            raise Unreachable("away")

        monkeypatch.setattr(election.apis["a"], "call", away)
        began = election.now
        async with started(a.keep()) as keeping:
            while not keeping.done():
                election.now += 0.25
                a._changed.set()  # noqa: SLF001 - its timer reads another clock
                await asyncio.sleep(0.01)

        assert keeping.result() == "the lease was not renewed in time"
        assert election.now - began < DURATION_S
        assert len(tries) > 2

    played(testbed, story)


def test_renewals_that_get_no_answer_leave_time_for_two_more(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server that hangs; each try is given up in time for the next."""

    async def story(election: Election) -> None:
        a = await election.leads("a")
        limits: list[float] = []
        timeout = asyncio.timeout

        async def silent(*_what: object, timeout_s: float, **_how: object) -> None:
            limits.append(min(timeout_s, asked[-1], a.remaining()))
            election.now += limits[-1]
            raise Unreachable("no answer in time")

        asked: list[float] = []

        def noted(seconds: float) -> asyncio.Timeout:
            asked.append(seconds)
            return timeout(None)

        monkeypatch.setattr(election.apis["a"], "call", silent)
        monkeypatch.setattr("ringleaf.kube.leader.asyncio.timeout", noted)
        async with started(a.keep()) as keeping:
            while not keeping.done():
                a._changed.set()  # noqa: SLF001 - its timer reads another clock
                await asyncio.sleep(0.001)
                election.now += 0.01

        assert keeping.result() == "the lease was not renewed in time"
        assert len(limits) >= 3
        assert min(limits[:2]) >= 0.5

    played(testbed, story)


def test_a_renewal_whose_answer_was_lost_counts_from_when_it_was_asked(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server that is slow: the watch says what it has done."""

    async def story(election: Election) -> None:
        a = await election.leads("a")
        api, version = election.apis["a"], version_of(a)
        call = api.call

        async def lost(*what: Any, **how: Any) -> Any:  # noqa: ANN401
            await call(*what, **how)
            raise Unreachable("no answer in time")

        monkeypatch.setattr(api, "call", lost)
        election.now += DURATION_S - MARGIN_S - 1.0
        assert not await a._renew()  # noqa: SLF001
        await until(partial(has_moved, a, version))
        election.now += 2.0

        assert a.remaining() == DURATION_S - MARGIN_S - 2.0

    played(testbed, story)


def test_one_that_lost_the_lease_stands_for_it_as_somebody_else(
    testbed: Testbed,
) -> None:
    """So the API server refuses what it had sent, also when it leads again."""

    async def story(election: Election) -> None:
        a = await election.leads("a")
        first = a.identity
        async with started(a.keep()) as keeping:
            election.bed.client.ask(
                "PATCH", election.path, {"spec": {"holderIdentity": "thief"}}
            )
            await within(keeping)
        await a.step_down()
        election.bed.client.ask(
            "PATCH", election.path, {"spec": {"holderIdentity": ""}}
        )
        await election.sees(a, "")
        await within(a.acquire())

        assert first == "a"
        assert a.identity == "a.2"
        assert election.lease["spec"]["holderIdentity"] == "a.2"
        assert not a.was_vacant

    played(testbed, story)


def test_one_that_lost_the_lease_waits_for_its_own_to_run_out(
    testbed: Testbed,
) -> None:
    """What it had sent carries that deadline."""

    async def story(election: Election) -> None:
        a = await election.leads("a")
        election.now += DURATION_S - MARGIN_S
        await a.step_down()
        async with started(a.acquire()) as wanting:
            early = not await is_waiting(election, wanting)
            election.now += MARGIN_S
            a._changed.set()  # noqa: SLF001 - its timer reads another clock
            await within(wanting)

        assert not early
        assert a.leads

    played(testbed, story)


def test_one_that_is_stuck_does_not_take_the_lease(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        a = await election.stands("a")
        a.well = lambda: False
        async with started(a.acquire()) as wanting:
            assert await is_waiting(election, wanting)
            a.well = lambda: True
            await within(wanting)

    played(testbed, story)


WRITERS = ("faults", "idle time", "records", "run times")


def test_a_scheduler_that_loses_the_lead_stands_by_and_leads_again(
    testbed: Testbed,
) -> None:
    async def story(election: Election) -> None:
        said: list[str] = []

        def say(what: str, **_facts: object) -> None:
            said.append(what)

        def writing() -> list[str]:
            own = (each.get_name() for each in asyncio.all_tasks())
            return sorted(name for name in own if name in WRITERS)

        credentials = await load(str(election.bed.kubeconfig), None)
        async with Api(credentials, agent="ringleaf/a") as api:
            terms = Terms(election.name, "default", "a", DURATION_S)
            elector = Elector(api, terms, say, lambda: election.now)
            scheduler = Scheduler(api, Options(("nobody",)), say, elector=elector)
            async with started(scheduler.run()) as running:
                await until(lambda: scheduler.leads)
                lists = [each.n_lists for each in scheduler.reflectors]
                stolen = {"spec": {"holderIdentity": "thief"}}
                election.bed.client.ask("PATCH", election.path, stolen)
                await until(lambda: elector.identity == "a.2")
                stood_by = not scheduler.leads and not scheduler.leadership.led.is_set()
                wrote = writing()
                with pytest.raises(Unreachable, match="does not lead"):
                    await api.call("POST", "/api/v1/namespaces/default/pods", b"{}")
                given_up = {"spec": {"holderIdentity": ""}}
                election.bed.client.ask("PATCH", election.path, given_up)
                await until(lambda: scheduler.leads)
                writes = writing()
                more = [
                    (each.path, each.n_lists - before)
                    for each, before in zip(scheduler.reflectors, lists, strict=True)
                    if each.n_lists > before
                ]
                scheduler.stop()
                await within(running)

        assert stood_by
        assert not wrote, "only a leader writes"
        assert writes == [*WRITERS]
        assert scheduler.failure is None
        assert [line for line in said if line in ("leads", "deposed")] == [
            "leads",
            "deposed",
            "leads",
        ]
        assert more == [("/api/v1/pods", 1)]

    played(testbed, story)


def test_an_answer_that_was_lost_deposes_nobody(testbed: Testbed) -> None:
    """The Lease was renewed, and its holder does not know; then it looks."""

    async def story(election: Election) -> None:
        a = await election.leads("a")
        touched = {"metadata": {"annotations": {"note": "kept"}}}
        election.bed.client.ask("PATCH", election.path, touched)

        first = await a._renew()  # noqa: SLF001
        assert await a._renew() or first  # noqa: SLF001
        assert a.leads
        assert election.lease["metadata"]["annotations"]["note"] == "kept"

    played(testbed, story)


def test_a_lease_that_others_held_since_is_not_vacant(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        b = await election.stands("b")
        a = await election.leads("a")
        await election.sees(b, "a")
        await a.release()
        await within(b.acquire())

        assert not b.was_vacant

    played(testbed, story)


def test_a_lease_that_others_write_as_well_is_given_up_all_the_same(
    testbed: Testbed,
) -> None:
    """Also our own renewal that was broken off and carried out."""

    async def story(election: Election) -> None:
        a = await election.leads("a")
        touched = {"metadata": {"annotations": {"note": "kept"}}}
        election.bed.client.ask("PATCH", election.path, touched)
        await a.release("4711")

        assert not election.lease["spec"].get("holderIdentity")
        notes = election.lease["metadata"]["annotations"]
        assert notes == {"note": "kept", SEEN: "4711"}

    played(testbed, story)


def test_a_lease_that_was_taken_without_an_answer_is_given_up(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked to end between asking for the Lease and hearing that it has it."""

    async def story(election: Election) -> None:
        a = await election.stands("a")
        api, asked = election.apis["a"], asyncio.Event()
        call = api.call

        async def lost(*what: Any, **how: Any) -> Any:  # noqa: ANN401
            answer = await call(*what, **how)
            if what[0] == "POST":
                asked.set()
                await asyncio.Event().wait()
            return answer

        monkeypatch.setattr(api, "call", lost)
        election.deafen()
        async with started(a.acquire()):
            await within(asked.wait())
        await a.release()

        assert not election.lease["spec"].get("holderIdentity")

    played(testbed, story)


def test_an_edited_duration_lets_nobody_begin_earlier(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        a = await election.leads("a")
        b = await election.stands("b")
        shorter = {"spec": {"leaseDurationSeconds": 1}}
        election.bed.client.ask("PATCH", election.path, shorter)
        await until(lambda: brief(a) and brief(b))
        async with started(b.acquire()) as wanting:
            election.now += 1.5
            b._changed.set()  # noqa: SLF001

            assert await is_waiting(election, wanting)
        assert await a._renew()  # noqa: SLF001
        assert election.lease["spec"]["leaseDurationSeconds"] == DURATION_S

    def brief(elector: Elector) -> bool:
        seen = elector._seen  # noqa: SLF001
        return seen is not None and seen.spec.lease_duration_seconds == 1

    played(testbed, story)


def test_a_renewal_without_an_answer_does_not_outlast_the_lease(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(election: Election) -> None:
        a = await election.leads("a")
        asked = asyncio.Event()

        async def silent(*_what: object, **_how: object) -> None:
            asked.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(election.apis["a"], "call", silent)
        async with started(a.keep()) as keeping:
            await asyncio.sleep(0)  # it begins
            election.now += DURATION_S - MARGIN_S - 0.2
            a._changed.set()  # noqa: SLF001 - its timer reads another clock
            await within(asked.wait())
            election.now += 0.3

            assert await within(keeping) == "the lease was not renewed in time"

    played(testbed, story)


def test_who_no_longer_hears_of_the_lease_looks_at_it(testbed: Testbed) -> None:
    """The watch of the one who stands by is lost and nobody has noticed."""

    async def story(election: Election) -> None:
        a = await election.leads("a")
        b = await election.stands("b")
        await election.sees(b, "a")
        election.deafen()
        async with started(b.acquire()) as wanting:
            for _second in range(DURATION_S):
                election.now += 1
                assert await a._renew()  # noqa: SLF001
            b._changed.set()  # noqa: SLF001
            await until(lambda: version_of(b) == version_of(a))
            assert await is_waiting(election, wanting)
            election.now += DURATION_S
            b._changed.set()  # noqa: SLF001
            await within(wanting)

        assert b.leads

    played(testbed, story)


def test_a_lease_that_others_held_and_that_was_deleted_is_not_vacant(
    testbed: Testbed,
) -> None:
    async def story(election: Election) -> None:
        b = await election.stands("b")
        await election.leads("a")
        await election.sees(b, "a")
        election.bed.client.ask("DELETE", election.path)
        await election.sees(b, "")
        election.now += DURATION_S
        await within(b.acquire())

        assert not b.was_vacant

    played(testbed, story)


def test_a_lease_that_cannot_be_made_is_told_once(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(election: Election) -> None:
        told: list[str] = []
        elector = await election.stands("a", "nowhere", told)
        tries = []
        call = election.apis["a"].call

        async def counted(*what: Any, **how: Any) -> Any:  # noqa: ANN401
            tries.append(what)
            return await call(*what, **how)

        monkeypatch.setattr(election.apis["a"], "call", counted)
        async with started(elector.acquire()) as wanting:
            while len(tries) < 9:  # a try is a request, and a look after it
                elector._changed.set()  # noqa: SLF001 - its timer reads another clock
                await asyncio.sleep(0.005)

            assert not wanting.done()
        (line,) = told
        assert 'status 404, namespaces "nowhere" not found' in line

    played(testbed, story)


def test_one_who_stands_by_says_once_for_each_leader_who_leads(
    testbed: Testbed,
) -> None:
    async def story(election: Election) -> None:
        told: list[str] = []
        a = await election.leads("a")
        b = await election.stands("b", told=told)
        async with started(b.acquire()) as wanting:
            await until(lambda: bool(told))
            version = version_of(b)
            assert await a._renew()  # noqa: SLF001 - the loop waits in real time
            await until(partial(has_moved, b, version))
            stolen = {"spec": {"holderIdentity": "c"}}
            election.bed.client.ask("PATCH", election.path, stolen)
            await election.sees(b, "c")
            await until(lambda: len(told) > 1)
            given_up = {"spec": {"holderIdentity": ""}}
            election.bed.client.ask("PATCH", election.path, given_up)
            await within(wanting)

        assert told == ["standby, a leads", "standby, c leads"]

    played(testbed, story)


@pytest.mark.parametrize("caught_up", [True, False])
def test_only_who_has_caught_up_says_how_far_it_has_seen(
    testbed: Testbed, *, caught_up: bool
) -> None:
    """One that is asked to end before knows less than the leader that was killed."""

    async def story(election: Election) -> None:
        await election.leads("killed")
        credentials = await load(str(election.bed.kubeconfig), None)
        async with Api(credentials) as api:
            terms = Terms(election.name, "default", "next", DURATION_S)
            elector = Elector(api, terms, silent, lambda: election.now)
            scheduler = Scheduler(api, Options(("nobody",)), silent, elector=elector)
            async with started(scheduler.run()) as running:
                tasks = scheduler._tasks  # noqa: SLF001
                await until(lambda: scheduler.is_synced and "leader" in tasks)
                if not caught_up:
                    scheduler.reflectors[1]._list = never  # type: ignore[method-assign]  # noqa: SLF001
                election.now += DURATION_S
                elector._changed.set()  # noqa: SLF001 - its timer reads another clock
                await until(lambda: scheduler.leads if caught_up else elector.leads)
                scheduler.stop()
                await within(running)

        assert not election.lease["spec"].get("holderIdentity")
        notes = election.lease["metadata"].get("annotations", {})
        assert (SEEN in notes) is caught_up

    def silent(*_what: object, **_facts: object) -> None:
        """Say nothing."""

    async def never() -> None:
        await asyncio.Event().wait()

    played(testbed, story)


def test_a_decision_that_takes_longer_than_the_lease_does_not_cost_the_lead(
    testbed: Testbed,
) -> None:
    now = [1000.0]

    async def own_loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def renewals_of(elector: Elector) -> threading.Semaphore:
        done, renew = threading.Semaphore(0), elector._renew  # noqa: SLF001

        async def counted() -> bool:
            renewed = await renew()
            asyncio.get_running_loop().call_soon(done.release)  # it has gone on by then
            return renewed

        elector._renew = counted  # type: ignore[method-assign]  # noqa: SLF001
        return done

    async def story(name: str) -> None:
        api = Api(await load(str(testbed.kubeconfig), None))
        async with aside(api) as run:
            terms = Terms(name, "default", "a", DURATION_S)
            elector = Elector(api, terms, lambda *_what, **_facts: None, lambda: now[0])
            loop = await run(own_loop())
            async with started(run(elector.reflector.run())):
                await within(run(elector.acquire()))
                renewed = renewals_of(elector)
                async with started(run(elector.keep())) as keeping:
                    await asyncio.sleep(0)
                    await run(asyncio.sleep(0))  # it has begun
                    for _second in range(DURATION_S + 2):  # nothing else runs here
                        now[0] += 1.0
                        loop.call_soon_threadsafe(elector._changed.set)  # noqa: SLF001
                        assert renewed.acquire(timeout=30)

                    assert elector.leads
                    elector.well = lambda: False
                    assert "too long" in await within(keeping)
                    assert not elector.leads
            await run(elector.release())

    asyncio.run(story(f"lease-{secrets.token_hex(3)}"))


def test_only_who_writes_the_lease_anew_is_a_rival(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleaf.kube.leader.AGAIN_S", 0.0)

    async def story(election: Election) -> None:
        a = await election.leads("a")
        b = await election.stands("b")
        async with started(b.rival()) as looking:
            assert await is_waiting(election, looking), "it may be gone"
            assert await a._renew()  # noqa: SLF001 - the loop waits in real time
            assert await within(looking) == "a"
        c = await election.stands("c")
        async with started(c.rival()) as looking:
            election.now += DURATION_S
            await within(c.acquire())
            assert await within(looking) == "", "we lead ourselves"

    played(testbed, story)


def test_a_leader_that_is_silent_has_stopped_before_we_look(testbed: Testbed) -> None:
    async def story(election: Election) -> None:
        a = await election.leads("a")
        b = await election.stands("b")
        held = election.lease["metadata"]["resourceVersion"]
        async with started(b.silent()) as looking:
            election.now += DURATION_S - MARGIN_S
            early = a.leads or not await is_waiting(election, looking)
        election.now += MARGIN_S - EARLY_S

        assert not early
        assert await within(b.silent()) == held
        async with started(b.silent(held)) as looking:
            assert await is_waiting(election, looking)
        election.now += EARLY_S
        await within(b.acquire())
        assert await within(b.silent()) == ""

    played(testbed, story)
