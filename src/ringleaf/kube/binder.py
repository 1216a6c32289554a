"""Bindings and evictions carried out: many at once, each until its outcome is known.

A request without an answer may have been carried out, so it is asked again and a
refusal is checked against the pod itself. What fails for good goes back to the cache,
which lets the engine try again a little later.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from ringleaf.kube import encode, names
from ringleaf.kube.answers import NOT_FOUND, SERVER_ERROR, Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.depth import decoded
from ringleaf.kube.log_once import LogOnce
from ringleaf.kube.objects import Pod
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.quarantine import told, trace_of
from ringleaf.kube.tasks import drain
from ringleaf.model.placement import Placement

TRIES: Final = 8
FIRST_PAUSE_S, MOST_PAUSE_S = 0.1, 4.0
REFUSED_S: Final = 30.0
"""How long until a deletion that was refused is tried again."""
FENCED: Final = b"this Binding is by"
"""Words of the policy that refuses Bindings of a scheduler that does not lead."""

Say = Callable[..., None]
_pod: Final = msgspec.json.Decoder(Pod).decode


class Bound(NamedTuple):
    """A pod on its way to its node."""

    pod: PodState
    placement: Placement
    written: Mapping[str, str]


class Binder:
    """Carries out what the engine instructs.

    Args:
        api: The API server.
        cache: Is told of outcomes.
        clock: Seconds since 1970, never backwards.
        done: Is told of every pod that was bound.
        changed: Is called when the cache was told something.
        say: Writes a line of the log: what happened, and its circumstances.
        ended: Is told of every task that ended; an error in one is a bug.
        workers: Bindings in flight at a time.

    """

    def __init__(
        self,
        api: Api,
        cache: ClusterCache,
        clock: Callable[[], float],
        *,
        done: Callable[[PodState, Placement], None],
        changed: Callable[[], None],
        say: Say,
        ended: Callable[["asyncio.Task[None]"], object] = lambda _task: None,
        workers: int = 32,
    ) -> None:
        self._api, self._cache, self._clock = api, cache, clock
        self._done, self._changed, self._say = done, changed, say
        self._ended = ended
        self._queue: deque[Bound] = deque()
        self._lines: dict[tuple[str, int], deque[Bound]] = {}
        """Node and number of chips -> pods that wait for one on its way there."""
        self._n_workers = workers
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_way: dict[str, asyncio.Event] = {}
        """Pods that are being bound, and when it is known what became of them."""
        self._leaving = asyncio.Semaphore(max(1, workers // 2))
        """Pods that are asked to end at a time: thousands may be, and others begin."""
        self._deleting: set[tuple[str, bool]] = set()
        """Uids of pods that are being deleted, and whether by force."""
        self._refusals = LogOnce()
        """Job -> the status with which the deletion of its pods was refused."""
        self.n_bound = self.n_failed = 0

    @property
    def in_flight(self) -> int:
        """Pods whose outcome is not known yet."""
        in_line = sum(len(line) for line in self._lines.values())
        return self._busy + len(self._queue) + in_line

    def bind(self, pods: Iterable[Bound]) -> None:
        """Send pods to their nodes."""
        for item in pods:
            self._queue.append(item)
            self._on_way[item.pod.uid] = asyncio.Event()
        if self._queue:
            self._idle.clear()
        workers = min(self._n_workers, self._busy + len(self._queue))
        while self._busy < workers:
            self._busy += 1
            self._start(self._work())

    def evict(
        self,
        pods: Iterable[PodState],
        why: str,
        granted: Callable[[PodState, str], None],
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        """Ask pods to end; *granted* is told of those that do, *refused* of others."""
        for pod in pods:
            self._start(self._evict(pod, why, granted, refused))

    def move(
        self,
        pods: Iterable[PodState],
        why: str,
        granted: Callable[[PodState, str], None],
    ) -> None:
        """Ask pods to end until they do: what they move to is held for them."""
        for pod in pods:
            if (pod.uid, False) not in self._deleting:
                self._deleting.add((pod.uid, False))
                self._start(self._move(pod, why, granted))

    def delete(self, pods: Iterable[PodState], *, force: bool = False) -> None:
        """Delete pods, with their own grace period or without any (*force*)."""
        for pod in pods:
            if (pod.uid, force) not in self._deleting:
                self._deleting.add((pod.uid, force))
                self._start(self._delete(pod, force=force))

    def abandon(self) -> None:
        """Let go of everything: others decide now."""
        self._queue.clear()
        for line in self._lines.values():
            line.clear()
        self._on_way.clear()
        for task in self._tasks:
            task.cancel()

    async def abandoned(self) -> None:
        """Let go of everything, and return when none of it can be sent any more."""
        self.abandon()
        await drain(self._tasks)
        # A task that was cancelled before it began has not put its part in order.
        self._busy = 0
        self._lines.clear()
        self._deleting.clear()
        self._refusals.clear()
        self._idle.set()

    async def drained(self) -> None:
        """Return when nothing is in flight."""
        await self._idle.wait()
        await drain(self._tasks)

    def _start(self, work: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._ended)

    async def _work(self) -> None:
        """Bind one pod after the other while there are any."""
        try:
            while self._queue:
                item = self._queue.popleft()
                try:
                    await self._bind_in_order(item)
                except Exception as error:  # noqa: BLE001 - one pod stops no other
                    facts = {"pod": item.pod.key, "why": told(error)}
                    self._say("failed", **facts, trace=trace_of(error))
                    await self._ask_again(item)
        finally:
            self._busy -= 1
            if not self._busy and not self._queue:
                self._idle.set()

    async def _ask_again(self, item: Bound) -> None:
        """Bind a pod again after a bind with an unknown outcome."""
        await asyncio.sleep(MOST_PAUSE_S)
        if item.pod.uid in self._cache.pods and item.pod.assumed is not None:
            self._queue.append(item)

    async def _bind_in_order(self, item: Bound) -> None:
        """Bind a pod, and those that came meanwhile for as many chips of its node.

        The device plugin tells them apart by ``predicate-time`` alone: bound in another
        order they are handed each other's chips.
        """
        key = item.placement.node, len(item.placement.chips)
        if not item.placement.chips:
            await self._bind_for_good(item)
            return
        if key in self._lines:
            self._lines[key].append(item)
            return
        line = self._lines[key] = deque([item])
        try:
            while line:
                await self._bind_for_good(line.popleft())
        finally:
            del self._lines[key]

    async def _bind_for_good(self, item: Bound) -> None:
        try:
            await self._bind(item)
        finally:
            known = self._on_way.pop(item.pod.uid, None)
            if known is not None:
                known.set()

    async def _bind(self, item: Bound) -> None:
        pod, node = item.pod, item.placement.node
        try:
            body = encode.binding(pod, node, item.written)
            path = encode.pod_path(pod, "binding")
        except Exception as error:  # noqa: BLE001 - one pod stops no other
            self._not_bound(item, told(error), trace=trace_of(error))
            return
        answer = await self._ask("POST", path, body, is_bind=True)
        if answer is not None and (answer.is_conflict or answer.status >= SERVER_ERROR):
            answer = await self._look(item) or answer
        if answer is not None and answer.ok:
            self.n_bound += 1
            self._cache.assumed.bound(pod.uid)
            self._done(pod, item.placement)
            return
        self._not_bound(item, "no answer" if answer is None else answer.message)

    def _not_bound(self, item: Bound, why: str, **more: str) -> None:
        self.n_failed += 1
        pod, node = item.pod, item.placement.node
        self._say("bind failed", pod=pod.key, job=pod.job, node=node, why=why, **more)
        self._cache.assumed.forget(pod.uid, self._clock(), why)
        self._changed()

    async def _look(self, item: Bound) -> Answer | None:
        """After a conflict: whether the pod is where it was sent, by an earlier try."""
        pod = item.pod
        answer = await self._ask("GET", encode.pod_path(pod), None, is_bind=True)
        if answer is None or not answer.ok:
            return answer
        try:
            found = decoded(_pod, answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if found.metadata.uid != pod.uid:
            return Answer(NOT_FOUND, b"another pod has its name")
        if found.spec.node_name == item.placement.node and _is_ours(found, item):
            return answer
        if found.spec.node_name and pod.uid in self._cache.pods:
            self._cache.handlers["pods"].on_update([found])
            self._changed()
        return None

    async def _evict(
        self,
        pod: PodState,
        why: str,
        granted: Callable[[PodState, str], None],
        refused: Callable[[], None],
    ) -> None:
        """Evict a pod; one that is refused stays."""
        refusal = await self._request_eviction(pod, why, granted)
        if not refusal:
            return
        self._say("eviction refused", pod=pod.key, job=pod.job, why=refusal)
        refused()
        self._cache.assumed.not_evicted(pod.job, pod.uid, self._clock())
        self._changed()

    async def _move(
        self, pod: PodState, why: str, granted: Callable[[PodState, str], None]
    ) -> None:
        """Evict a pod; what refuses it, such as a disruption budget, may change."""
        said = ""
        try:
            while pod.uid in self._cache.pods:
                refusal = await self._request_eviction(pod, why, granted)
                if not refusal:
                    return
                if refusal != said:
                    self._say("eviction refused", pod=pod.key, job=pod.job, why=refusal)
                    said = refusal
                await asyncio.sleep(REFUSED_S)
        finally:
            self._deleting.discard((pod.uid, False))

    async def _request_eviction(
        self, pod: PodState, why: str, granted: Callable[[PodState, str], None]
    ) -> str:
        """Ask a pod to end, once; why that is refused, or empty if the pod goes.

        Only a pod that ends gets the condition ``DisruptionTarget``.
        """
        path = encode.pod_path(pod, "eviction")
        async with self._leaving:
            answer = await self._ask("POST", path, encode.eviction(pod))
            if answer is not None and answer.ok:
                granted(pod, why)
                await self._mark(pod, why)
                return ""
        if answer is None:
            return "no answer"
        return "" if answer.is_missing else answer.message

    async def _mark(self, pod: PodState, why: str) -> None:
        """Say on a pod that was asked to end why, as Volcano does."""
        now = self._clock()
        target = "DisruptionTarget", "True", "PreemptionByScheduler"
        conditions = [
            encode.condition("Ready", "False", "Evict", why, now),
            encode.condition(*target, why, now),
        ]
        status = encode.pod_conditions(conditions, pod.uid)
        path = encode.pod_path(pod, "status")
        await self._ask("PATCH", path, status, kind=encode.STRATEGIC)

    async def _delete(self, pod: PodState, *, force: bool) -> None:
        """Delete a pod, and no other of its name, once it is known where it is."""
        try:
            known = self._on_way.get(pod.uid)
            if known is not None:
                await known.wait()
            while not await self._is_deleted(pod, force=force):
                await asyncio.sleep(REFUSED_S)
                if pod.uid not in self._cache.pods:
                    break
        finally:
            self._deleting.discard((pod.uid, force))

    async def _is_deleted(self, pod: PodState, *, force: bool) -> bool:
        """Ask for the deletion of a pod; a refusal is told once for its job."""
        async with self._leaving:
            path, body = encode.pod_path(pod), encode.deletion(pod, force=force)
            answer = await self._ask("DELETE", path, body, is_bind=True)
        if answer is None or answer.ok or answer.is_missing or answer.is_conflict:
            self._refusals.forget(pod.job)
            return True
        if self._refusals.is_new(pod.job, answer.status):
            why = answer.message
            self._say("deletion refused", pod=pod.key, job=pod.job, why=why)
        return False

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        kind: str = "application/json",
        *,
        is_bind: bool = False,
    ) -> Answer | None:
        """The answer of a server that is there and not too busy; None without one.

        A bind is repeated until its outcome is known: the pod may be bound, so no other
        pod gets its chips before. So is a deletion, which is idempotent.
        """
        answer, tries, n_tries = None, TRIES, 0
        while tries > 0:
            tries -= 1
            try:
                answer = await self._api.call(method, path, body, kind=kind)
            except Unreachable:
                answer = None
            if answer is not None and not _is_passing(answer):
                return answer
            # Where a pod is must be known; whether it can be bound can wait.
            tries += is_bind and (answer is None or method in ("GET", "DELETE"))
            wait = None if answer is None else answer.retry_after
            pause = backoff_s(FIRST_PAUSE_S, n_tries, MOST_PAUSE_S)
            await asyncio.sleep(pause if wait is None else min(wait, MOST_PAUSE_S))
            n_tries += 1
        return answer


def _is_passing(answer: Answer) -> bool:
    """Whether asking again may help.

    The fence may not know the new leader yet; a scheduler that has lost the lead is
    stopped elsewhere.
    """
    if answer.is_forbidden:
        return FENCED in answer.body
    return answer.is_transient


def _is_ours(found: Pod, item: Bound) -> bool:
    """Whether a pod carries what we wrote."""
    there = found.metadata.annotations or {}
    stamp = item.written.get(names.PREDICATE_TIME)
    return stamp is None or there.get(names.PREDICATE_TIME) in (stamp, names.CONSUMED)
