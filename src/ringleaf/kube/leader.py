"""Leader election: of several schedulers, the holder of the Lease decides.

The holder renews its Lease every second. A candidate takes a Lease that was not
renewed for its duration, and at once one that was given up. Clocks of
machines are never compared: each counts from when it saw the Lease change.

A leader counts its own time from *before* it asked to renew, and stops a second before
any other replica may begin: what it sends then is refused by its own side
(``remaining``), and carries a deadline that the API server holds it to. One that lost
the Lease stands for it again under another identity, so that whatever it sent before is
refused.
Sources: Kubernetes API reference, Lease v1; Kubernetes API concepts, timeouts of
requests.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ringleaf.kube import encode, names
from ringleaf.kube.answers import REFUSED, Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.objects import Metadata
from ringleaf.kube.watch import Gone, Reflector, refusal

MARGIN_S: Final = 1.0
"""How long before others may begin a leader stops."""
EARLY_S: Final = 0.75 * MARGIN_S
"""How long before we may begin another leader is sure to have stopped."""
RENEWALS: Final = 5
"""How often a Lease is written anew in the time it lasts."""
FURTHER_TRIES: Final = 2
"""How often a renewal without an answer is tried again before the Lease is lost."""
AGAIN_S: Final = 0.25
"""How long after a failure it is tried again."""
REFUSED_S: Final = 5.0
"""How long after the API server refused it for a reason that does not pass soon."""
TRIES: Final = 3
"""How often a Lease that others write as well is tried to be given up."""
GROUP: Final = "coordination.k8s.io/v1"
LEASE_NAMESPACE: Final = names.KUBE_SYSTEM
"""The namespace of the Lease, for a process outside of the cluster."""
SEEN: Final = "ringleaf.io/pods-seen"
"""Annotation of a Lease that was given up: the version of pods its holder had seen."""

Say = Callable[..., None]
T = TypeVar("T")


class Runner(Protocol):
    """Runs work, here or on another thread."""

    async def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of *work*."""


class LeaseSpec(Struct, rename="camel", omit_defaults=True):
    """The holder of a Lease, and how long it lasts after it was renewed."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Struct, rename="camel"):
    """A Lease as the API server keeps it."""

    metadata: Metadata
    spec: LeaseSpec = field(default_factory=LeaseSpec)

    @property
    def holder(self) -> str:
        """The identity of the holder; empty if it is not held."""
        return self.spec.holder_identity or ""


_lease: Final = msgspec.json.Decoder(Lease).decode


class Terms(Struct, frozen=True):
    """Which Lease, and for how long.

    Args:
        name: Of the Lease.
        namespace: Where it is.
        identity: Our identity, which no other process has.
        duration_s: How long it lasts after it was renewed.

    """

    name: str
    namespace: str
    identity: str
    duration_s: int = 5

    @property
    def try_s(self) -> float:
        """How long a renewal may take, so that others can be tried in time.

        >>> Terms("ringleaf", "default", "a", duration_s=5).try_s
        1.0
        """
        first = self.duration_s / RENEWALS
        left = self.duration_s - MARGIN_S - first
        return max(AGAIN_S, left / (1 + FURTHER_TRIES))


def leases_path(namespace: str = "") -> str:
    """Where Leases are listed, of one namespace or of all.

    >>> leases_path("ml")
    '/apis/coordination.k8s.io/v1/namespaces/ml/leases'
    """
    return f"/apis/{GROUP}{f'/namespaces/{namespace}' if namespace else ''}/leases"


class Elector:
    """Wants to lead, leads, and gives up.

    Args:
        api: The API server.
        terms: Which Lease.
        say: Writes a line of the log.
        clock: Seconds that go on while the machine sleeps.

    """

    def __init__(
        self,
        api: Api,
        terms: Terms,
        say: Say,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._api, self._terms, self._say = api, terms, say
        self._clock = clock or since_boot
        self._path = leases_path(terms.namespace)
        self.reflector = Reflector(
            api,
            self._path,
            Lease,
            query=f"fieldSelector=metadata.name%3D{terms.name}",
            put=self._put,
            drop=self._dropped,
            listed=self._listed,
            trouble=lambda line: say("trouble", message=line),
        )
        self._changed = asyncio.Event()
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._until: float | None = None
        self._renewals: dict[str, float] = {}
        """Renewals without an answer: the time they write -> when we asked."""
        self._name, self._n_terms = terms.identity, 1
        self._mark: str | None = None
        self._free_at: float | None = None
        """When a deleted Lease may be taken; None where none was ever held."""
        self._told_of = ""
        """The leader that we last logged."""
        self._request_exit = False
        """Whether we asked for the Lease and do not know what came of it."""
        self._trouble = ""
        self.taken_from: Lease | None = None
        """What the Lease was like before we took it."""
        self.was_vacant = False
        """Whether no other process held the Lease from ``mark`` until we took it."""
        self.well: Callable[[], bool] = lambda: True
        """Whether the scheduling loop is alive; else others should lead."""

    @property
    def identity(self) -> str:
        """Our identity."""
        return self._terms.identity

    @property
    def lease(self) -> str:
        """``namespace/name`` of the Lease."""
        return f"{self._terms.namespace}/{self._terms.name}"

    @property
    def leads(self) -> bool:
        """Whether we hold the Lease, and for a while longer."""
        return self.remaining() > 0.0

    @property
    def holder(self) -> str:
        """The holder of the Lease, as far as we know."""
        return self._seen.holder if self._seen is not None else ""

    @property
    def trouble(self) -> str:
        """Why the Lease could not be written the last time; empty where it could."""
        return self._trouble

    def remaining(self) -> float:
        """Seconds for which no other process can lead; 0 while we do not lead.

        It may be asked on any thread.
        """
        until = self._until
        return 0.0 if until is None else max(0.0, until - self._clock())

    # Before.

    async def acquire(self) -> None:
        """Return when we lead; one that is stuck does not take the Lease."""
        while True:
            self._changed.clear()
            self._log_leader()
            wait = self._wait() if self.well() else AGAIN_S
            if wait is None or wait > 0.0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._changed.wait()
                continue
            answer = await self._take()
            if answer is not None and answer.ok:
                return
            refused = answer is not None and answer.status in REFUSED
            with suppress(TimeoutError):
                async with asyncio.timeout(REFUSED_S if refused else AGAIN_S):
                    await self._changed.wait()

    def _log_leader(self) -> None:
        """Log each new leader once."""
        holder = self.holder
        if holder not in ("", self.identity, self._told_of):
            self._say("standby", leader=holder)
            self._told_of = holder

    def _wait(self) -> float | None:
        """Seconds until the Lease may be taken; None while nothing is known of it."""
        if not self.reflector.synced:
            return None
        seen = self._seen
        if seen is not None and seen.holder in ("", self.identity):
            return 0.0
        if seen is not None:
            return self._seen_at + self._lasts(seen) - self._clock()
        if self._free_at is not None:  # deleted: its holder may not know yet
            return self._free_at - self._clock()
        return 0.0

    def _lasts(self, lease: Lease) -> float:
        """How long its holder may count on *lease*, also if a user edited it."""
        return max(self._terms.duration_s, lease.spec.lease_duration_seconds or 0)

    async def _take(self) -> Answer | None:
        """Try to take the Lease; what came of it, None when that is not known."""
        before, asked = self._seen, self._clock()
        untouched = before is not None or self._free_at is None
        now = _micro_time(time.time())
        moved = 0 if before is None else before.spec.lease_transitions or 0
        spec = LeaseSpec(
            self.identity,
            self._terms.duration_s,
            now,
            now,
            moved + (before is not None),
        )
        self._request_exit = True
        answer = await self._write(before, spec)
        if answer is None:
            return None
        if answer.ok:
            self.taken_from = before
            self.was_vacant = untouched and self._mark == _version(before)
            self._heed(_lease(answer.body))
            self._until = asked + self._terms.duration_s - MARGIN_S
        elif answer.is_conflict or answer.is_missing:
            await self._look()  # the watch may be lost, and what we saw long ago
        self._note(answer)
        self._request_exit = False
        return answer

    def _note(self, answer: Answer) -> None:
        """Say what is wrong with a Lease that cannot be written, not twice in a row."""
        fine = answer.ok or answer.is_conflict
        told = (
            "" if fine else f"lease {self._path}: {refusal(answer.status, answer.body)}"
        )
        if told and told != self._trouble:
            self._say("trouble", message=told)
        self._trouble = told

    async def silent(self, known: str = "") -> str:
        """Return when the time of another leader is over; the version of its Lease.

        It binds nothing more then, unless it renews the Lease after all; that is a
        moment before we may take it. The *known* version is not meant. Empty when we
        lead ourselves.
        """
        while not self.leads:
            wait, seen = self._wait(), self._seen
            held = seen is not None and seen.holder not in ("", self.identity)
            if held and _version(seen) != known:
                assert wait is not None, "what is seen was listed"
                if wait <= EARLY_S:
                    return _version(seen)
                await asyncio.sleep(wait - EARLY_S)
            else:
                await asyncio.sleep(AGAIN_S)
        return ""

    async def rival(self) -> str:
        """Return the identity of another leader once it renews the Lease.

        One that holds it and writes no more may be gone. Empty when we lead ourselves.
        """
        await self.known()
        first = _version(self._seen)
        while not self.leads:
            if _version(self._seen) != first and self.holder not in ("", self.identity):
                return self.holder
            await asyncio.sleep(AGAIN_S)
        return ""

    async def known(self) -> None:
        """Return when the holder of the Lease is known, if there is one."""
        while not self.reflector.synced:
            self._changed.clear()
            await self._changed.wait()

    def mark(self) -> None:
        """Remember whether the Lease is held now, when pods begin to be listed."""
        known = self.reflector.synced and not self.holder
        self._mark = _version(self._seen) if known else None

    # While we lead.

    async def keep(self) -> str:
        """Renew the Lease while we can; return, in words, why we no longer lead."""
        why = await self._keep()
        self._until = None
        return why

    async def step_down(self) -> None:
        """Get ready to stand for the Lease again, under another identity.

        What was sent before names the old identity. So the API server refuses it, even
        where it arrives when we lead again.
        """
        self._until = self._mark = None
        self._renewals.clear()
        self._told_of = self.identity
        self._n_terms += 1
        identity = f"{self._name}.{self._n_terms}"
        self._terms = replace(self._terms, identity=identity)

    async def _keep(self) -> str:
        pause = self._terms.duration_s / RENEWALS
        due = self._clock() + pause
        while True:
            self._changed.clear()
            if self.holder != self.identity:
                return f"{self.holder or 'no replica'} holds the lease now"
            if not self.well():
                return "the scheduler did no work for too long"
            if not self.leads:
                why = "the lease was not renewed in time"
                return f"{why}; {self._trouble}" if self._trouble else why
            wait = min(due - self._clock(), self.remaining())
            with suppress(TimeoutError):
                if wait > 0.0:
                    async with asyncio.timeout(wait):
                        await self._changed.wait()
                    continue
                due = self._clock()  # at once, where no answer comes in time
                # What is in flight is to be cut in time, whatever becomes of this.
                async with asyncio.timeout(min(self._terms.try_s, self.remaining())):
                    renewed = await self._renew()
                due = self._clock() + (pause if renewed else AGAIN_S)

    async def _renew(self) -> bool:
        mine, asked = self._seen, self._clock()
        assert mine is not None, "a leader has a lease"
        written = _micro_time(time.time())
        spec = replace(
            mine.spec,
            renew_time=written,
            lease_duration_seconds=self._terms.duration_s,
        )
        self._renewals[written] = asked
        answer = await self._write(mine, spec)
        if answer is None:
            return False
        self._note(answer)
        if answer.ok:
            self._heed(_lease(answer.body))
        elif answer.is_conflict or answer.is_missing:
            await self._look()
        return answer.ok

    async def _look(self) -> None:
        """See what the Lease is like now, whatever the watch has said before."""
        before = self._seen
        with suppress(Unreachable):
            path = f"{self._path}/{self._terms.name}"
            answer = await self._api.call("GET", path, timeout_s=MARGIN_S, lane="lead")
            if answer.ok:
                found = _lease(answer.body)
                if self._seen is before and _version(found) != _version(before):
                    self._seen = None  # versions begin anew where a backup is restored
                self._heed(found)
            elif answer.is_missing:
                self._dropped([])

    async def release(self, seen: str = "") -> None:
        """Give the Lease up; *seen* is the version of pods up to which we know all.

        A request of ours that was broken off may have been carried out: where that is
        so, or another process has written the Lease, it is looked at again.
        """
        self._until = None
        with suppress(TimeoutError):
            async with asyncio.timeout(self._terms.duration_s):
                await self._release(seen)

    async def _release(self, seen: str) -> None:
        if self._request_exit:
            await self._look()
        for _try in range(TRIES):
            mine = self._seen
            if mine is None or mine.holder != self.identity:
                return
            now = _micro_time(time.time())
            spec = LeaseSpec("", 1, now, now, mine.spec.lease_transitions)
            answer = await self._write(mine, spec, {SEEN: seen} if seen else {})
            if answer is not None and not answer.is_conflict:
                return
            await self._look()

    async def _write(
        self, before: Lease | None, spec: LeaseSpec, notes: dict[str, str] | None = None
    ) -> Answer | None:
        """Write the Lease if it is as it was *before*; None without an answer."""
        metadata: dict[str, object] = {
            "name": self._terms.name,
            "namespace": self._terms.namespace,
        }
        method, path = "POST", self._path
        if before is not None:
            given = before.metadata
            kept = {k: v for k, v in (given.annotations or {}).items() if k != SEEN}
            metadata["annotations"] = {**kept, **(notes or {})}
            metadata["labels"] = given.labels or {}
            metadata["resourceVersion"] = before.metadata.resource_version
            metadata["uid"] = before.metadata.uid
            method, path = "PUT", f"{self._path}/{self._terms.name}"
        kind = {"apiVersion": GROUP, "kind": "Lease"}
        body = encode.encode({**kind, "metadata": metadata, "spec": spec})
        try:
            return await self._api.call(
                method, path, body, timeout_s=self._terms.try_s, lane="lead"
            )
        except Unreachable:
            return None

    # What the watch says.

    def _put(self, leases: list[Lease]) -> None:
        for lease in leases:
            self._heed(lease)

    def _heed(self, lease: Lease) -> None:
        """The Lease is as it is; from now on, if that is news."""
        seen = self._seen
        version = int(lease.metadata.resource_version or 0)
        if seen is not None and version <= int(seen.metadata.resource_version or 0):
            return
        self._seen, self._seen_at = lease, self._clock()
        if lease.holder:
            self._free_at = self._seen_at + self._lasts(lease)
        if lease.holder == self.identity:
            self._confirm(lease.spec.renew_time or "")
        self._changed.set()

    def _confirm(self, written: str) -> None:
        """A renewal of ours was carried out, whether or not its answer came."""
        asked = self._renewals.get(written)
        if asked is not None and self._until is not None:
            self._until = max(self._until, asked + self._terms.duration_s - MARGIN_S)
            later = {k: at for k, at in self._renewals.items() if at > asked}
            self._renewals = later

    def _dropped(self, _gone: list[Gone]) -> None:
        self._until = None
        if self._seen is not None:
            self._seen = None
            self._changed.set()

    def _listed(self) -> None:
        self._changed.set()


@asynccontextmanager
async def aside(api: Api) -> AsyncIterator[Runner]:
    """Yield what runs work on a thread of its own, where *api* is entered.

    A decision may take longer than a Lease lasts: it must not keep us from renewing.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="lease", daemon=True)
    thread.start()

    async def run(work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    try:
        await run(api.__aenter__())
        try:
            yield run
        finally:
            await run(api.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What comes of *work*, done right here."""
    return await work


def _version(lease: Lease | None) -> str:
    return "" if lease is None else lease.metadata.resource_version


def since_boot() -> float:
    """Seconds that go on while the machine sleeps, where that can be told."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def _micro_time(now: float) -> str:
    """A time as a Lease has it.

    >>> _micro_time(0.25)
    '1970-01-01T00:00:00.250000Z'
    """
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
