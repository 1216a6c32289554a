"""What people are told: conditions, events, phases and the use of queues.

Telling comes after binding: while pods are on their way little else is sent, and what
has changed again in the meantime is told once, as it is then. Every message about a
waiting job is told when it has been true for a second.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import to_builtins

from ringleaf.framework.state import SchedulerState
from ringleaf.kube import encode
from ringleaf.kube.answers import UNAUTHORIZED, Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.gang_state import UNSTARTED, GangState, set_status
from ringleaf.kube.job_names import spoken
from ringleaf.kube.log_once import LogOnce
from ringleaf.kube.objects import PodGroupCondition
from ringleaf.kube.pod_state import PodPhase, PodState
from ringleaf.kube.problems import Problem
from ringleaf.kube.quarantine import told, trace_of
from ringleaf.model.demand import amount_words
from ringleaf.model.placement import Placement

HINT: Final = "; hint: "
SETTLE_S: Final = 1.0
"""How long something must be true before it is told."""
PER_SECOND: Final = 100
"""Messages a second at most, while nothing is being bound; then a tenth of it."""
BUSY_S: Final = 0.1
"""How long events wait, again and again, while pods are being bound."""
MOST_WAITING: Final = 100_000
"""Messages that are kept to be sent; the oldest events are dropped first."""
MOST_EVENTS: Final = 10_000
"""Events that are kept to be sent: while pods are being bound for minutes they wait.
The oldest are dropped first; each has at most a few kilobytes."""
TOLD: Final = frozenset({"events", "pods", "podgroups", "queues", "status"})
"""What is told: parts of paths."""
VOLCANO: Final = "/apis/scheduling.volcano.sh/v1beta1"
GOOD_NEWS: Final = frozenset({"Scheduled", "Repaired"})
"""Reasons of events that warn of nothing."""
SCHEDULED: Final = "tasks in gang are ready to be scheduled"
"""The reason that Volcano gives."""


_PHASE: Final = SETTLE_S / 4
"""How long the phase of a PodGroup must be true before it is told."""
_URGENT: Final = -1.0
"""The delay of what is told at once."""

_JSON: Final = "application/json"
_Request = tuple[str, str, bytes, str]
"""Method, path, body, kind of the body."""


class _Message(NamedTuple):
    due: float
    send: Callable[[], _Request | None]


_REFERENCE: Final = "apiVersion", "kind", "namespace", "name", "uid"
"""The fields that name the object of an event."""


class _Event(NamedTuple):
    """An event to be written; there may be thousands, so it is small."""

    number: int
    at: float
    about: tuple[str, ...]
    """What names its object: the values of ``_REFERENCE``."""
    reason: str
    message: str
    is_warning: bool


_Box = OrderedDict[tuple[str, ...], _Message]


class StatusWriter:
    """Sends what is to be told, one after the other, not too fast.

    Args:
        api: The API server.
        cache: What there is.
        view: What the engine knows.
        clock: Seconds since 1970.
        is_binding: Whether pods are on their way.
        name: The reporter of events.
        say: Writes a line of the log.

    """

    def __init__(
        self,
        api: Api,
        cache: ClusterCache,
        view: Callable[[], SchedulerState],
        clock: Callable[[], float],
        *,
        is_binding: Callable[[], bool],
        name: str,
        say: Callable[..., None] = lambda *_what, **_facts: None,
    ) -> None:
        self._api, self._cache, self._view = api, cache, view
        self._clock, self._is_binding, self._name = clock, is_binding, name
        # What is told with the same delay is due in the order in which it came.
        self._boxes: dict[float, _Box] = {
            delay: OrderedDict() for delay in (_URGENT, 0.0, _PHASE, SETTLE_S)
        }
        self._events: deque[_Event] = deque()
        self._wake = asyncio.Event()
        self._number = int(clock() * 1e6)
        self._used: dict[str, dict[str, str]] = {}
        self.sent = 0
        self.dropped = 0
        self._say = say
        self._refusals = LogOnce()
        self.refused = 0
        self.failed = 0
        """Messages that could not be written."""

    @property
    def n_waiting(self) -> int:
        """Messages that are to be sent."""
        return sum(map(len, self._boxes.values())) + len(self._events)

    # What there is to tell.

    def waits(self, job: str, message: str) -> None:
        """A job waits, and why."""
        group = self._cache.gangs.get(job)
        if group is None:
            return
        message = spoken(self._cache, message)
        key = ("waits", job)
        if group.status.pending_reason == message and key in self._boxes[SETTLE_S]:
            return  # it has been true for a while
        set_status(group, pending_reason=message)
        self._put(key, partial(self._tell_waits, job), SETTLE_S)

    def placed(self, pod: PodState, placement: Placement) -> None:
        """A pod was bound."""
        group = self._cache.gangs.get(pod.job)
        if group is not None:
            set_status(group, pending_reason="")
        said = f"Successfully assigned {pod.key} to {placement.node}"
        if placement.chips:
            chips = ", ".join(map(str, placement.chips))
            said = f"{said}, chips {chips}"
        self._event(_about_pod(pod), "Scheduled", said, is_warning=False)

    def evicted(self, pod: PodState, why: str) -> None:
        """A pod is asked to end."""
        self._event(_about_pod(pod), "Evict", why, is_warning=True)

    def on_pod(self, pod: PodState, reason: str, message: str) -> None:
        """Write a warning event on a pod."""
        self._event(_about_pod(pod), reason, message, is_warning=True)

    def conflict(self, group: GangState, message: str) -> None:
        """Pods of a job are where they cannot be."""
        first = min(group.pods.values(), key=lambda pod: pod.order, default=None)
        if first is not None:
            self._event(_about_pod(first), "Conflict", message, is_warning=True)

    def problem(self, problem: Problem) -> None:
        """Something is wrong with an object."""
        about = {"kind": problem.kind, "name": problem.name, "uid": problem.uid}
        about["apiVersion"] = _version(problem.kind)
        if problem.namespace:
            about["namespace"] = problem.namespace
        self._event(about, "Ignored", problem.message, is_warning=True)

    def on_node(self, name: str, reason: str, message: str) -> None:
        """A warning on a node."""
        about = {"kind": "Node", "name": name, "apiVersion": "v1"}
        about["uid"] = self._cache.uid_of_node(name)
        self._event(about, reason, message, is_warning=True)

    def on_job(self, group: GangState, reason: str, message: str) -> None:
        """A warning on a PodGroup, or on the pod that has none."""
        if group.is_alone:
            for pod in group.pods.values():
                self._event(_about_pod(pod), reason, message, is_warning=True)
            return
        self.on_group(group, reason, message)

    def warns(self, job: str, warnings: Iterable[str]) -> None:
        """What of a job has no effect, or is not as the vendor names it; said once."""
        message, group = "; ".join(warnings), self._cache.gangs.get(job)
        if group is not None and message and group.status.written_warning != message:
            set_status(group, written_warning=message)
            self.on_job(group, "SchedulingWarning", message)

    def on_group(self, group: GangState, reason: str, message: str) -> None:
        """An event on a PodGroup."""
        about = _about_group(group)
        if about is not None:
            self._event(about, reason, message, is_warning=reason not in GOOD_NEWS)

    def group_changed(self, job: str, *, is_urgent: bool = False) -> None:
        """The phase of a PodGroup may be another."""
        group = self._cache.gangs.get(job)
        if group is None or group.podgroup is None:
            return
        key = ("group", job)
        urgent = is_urgent or key in self._boxes[_URGENT]
        delay = _URGENT if urgent else _PHASE
        self._put(key, partial(self._tell_group, job), delay)

    def queues_changed(self) -> None:
        """What queues use may be another."""
        for name in self._view().queues:
            key = ("queue", name)
            if key not in self._boxes[SETTLE_S]:
                self._put(key, partial(self._tell_queue, name), SETTLE_S)

    def forget(self) -> None:
        """Others lead: what was not told is theirs to tell, and what was may change."""
        for box in self._boxes.values():
            box.clear()
        self._events.clear()
        self._used.clear()

    # How it is told.

    async def run(self) -> None:
        """Tell, for ever."""
        while True:
            self._wake.clear()
            now = self._clock()
            box = self._next(now)
            if box is not None:
                sent = await self._tell_first(box)
                sent = sent and box is not self._boxes[_URGENT]
            elif self._events and not self._is_binding():
                sent = await self._tell_event()
            else:
                await self._sleep(now)
                continue
            if sent:
                slow = 10 if self._is_binding() else 1
                await asyncio.sleep(slow / PER_SECOND)

    async def flush(self, timeout_s: float) -> None:
        """Tell what there is, for a short while, before the end."""
        end = self._clock() + timeout_s
        while self._clock() < end:
            box = next(filter(None, self._boxes.values()), None)
            if box is not None:
                await self._tell_first(box, again=False)
            elif self._events:
                await self._tell_event()
            else:
                return

    async def _tell_first(self, box: _Box, *, again: bool = True) -> bool:
        """Tell what is first in a box; whether there was anything to send."""
        key, message = box.popitem(last=False)
        found, is_sent = await self._tell(key, message.send)
        if again and not is_sent:
            self._again(key, message)
        return found

    async def _tell_event(self) -> bool:
        """Write the oldest event; whether there was anything to send."""
        event = self._events.popleft()
        key = "event", str(event.number)
        found, _is_sent = await self._tell(key, partial(self._request_of, event))
        return found

    async def _tell(
        self, key: tuple[str, ...], send: Callable[[], _Request | None]
    ) -> tuple[bool, bool]:
        """Whether there was anything to send, and whether nothing of it is left."""
        try:
            found = send()
        except Exception as error:  # noqa: BLE001 - one message stops no other
            self.failed += 1
            about = " ".join(key)
            self._say(
                "status not written",
                object=about,
                why=told(error),
                trace=trace_of(error),
            )
            return False, True
        return found is not None, found is None or await self._send(*found)

    def _again(self, key: tuple[str, ...], message: _Message) -> None:
        """What the API server did not hear is told a little later, as it is then.

        A job whose phase stays untold never gets its pods.
        """
        if key[0] == "queue":
            self._used.pop(key[1], None)
        if all(key not in box for box in self._boxes.values()):
            self._put(key, message.send, SETTLE_S)

    def _next(self, now: float) -> _Box | None:
        """Where the next message is: urgent ones, and those that are due.

        Of these, phases come first: of conditions there may be thousands.
        """
        boxes = self._boxes
        if boxes[_URGENT]:
            return boxes[_URGENT]
        due = [(at, delay) for at, delay in self._fronts() if at <= now]
        if due:
            phases = any(delay == _PHASE for _at, delay in due)
            return boxes[_PHASE if phases else min(due)[1]]
        return None

    def _fronts(self) -> Iterator[tuple[float, float]]:
        """When the first message of each box is due, for those that have a delay."""
        for delay, box in self._boxes.items():
            if delay >= 0.0 and box:
                yield box[next(iter(box))].due, delay

    async def _sleep(self, now: float) -> None:
        """Until something may be due, or there is more to tell."""
        wait: float | None = None
        first = min(self._fronts(), default=None)
        if first is not None:
            wait = max(0.02, first[0] - now)
        if self._events:  # they wait for the last binding
            wait = BUSY_S if wait is None else min(wait, BUSY_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._wake.wait()

    async def _send(self, method: str, path: str, body: bytes, kind: str) -> bool:
        """Send a message; whether the API server has heard it, and may have refused."""
        fenced = not path.endswith("/events")  # events need no fence
        call = partial(self._api.call, kind=kind, lane="tell", fenced=fenced)
        try:
            answer = await call(method, path, body)
            if answer.is_missing and "/podgroups/" in path:
                # Volcano's has no status of its own; others are gone.
                answer = await call(method, path.removesuffix("/status"), body)
        except Unreachable:
            self.refused += 1
            return False
        self.sent += answer.ok
        self.refused += not answer.ok
        if not answer.ok and "/queues/" in path:
            self._used.pop(path.split("/")[-2], None)  # it may be made yet
        if not (answer.ok or answer.is_missing):
            self._note_refusal(method, path, answer)
        return not (answer.is_transient or answer.status == UNAUTHORIZED)

    def _note_refusal(self, method: str, path: str, answer: Answer) -> None:
        """Say in the log what is not heard, of each kind of object once in a row."""
        what = [part for part in path.split("/") if part in TOLD]
        kind = "/".join(what) or path
        if self._refusals.is_new(kind, answer.status):
            why = answer.words()
            self._say(
                "status not written", object=kind, method=method, path=path, why=why
            )

    def _put(
        self,
        key: tuple[str, ...],
        send: Callable[[], _Request | None],
        delay: float,
    ) -> None:
        boxes = self._boxes
        for other in boxes.values():
            other.pop(key, None)
        if self.n_waiting >= MOST_WAITING:
            if self._events:
                self._events.popleft()
            else:
                max(boxes.values(), key=len).popitem(last=False)
            self.dropped += 1
        box = boxes[delay]
        if not box:
            self._wake.set()
        box[key] = _Message(self._clock() + max(0.0, delay), send)

    def _event(
        self, about: Mapping[str, str], reason: str, message: str, *, is_warning: bool
    ) -> None:
        self._number += 1
        events, now = self._events, self._clock()
        message = spoken(self._cache, message)[: encode.MAX_MESSAGE]
        if len(events) >= MOST_EVENTS:
            events.popleft()
            self.dropped += 1
        if not events:
            self._wake.set()
        names = tuple(about.get(each, "") for each in _REFERENCE)
        events.append(_Event(self._number, now, names, reason, message, is_warning))

    def _request_of(self, event: _Event) -> _Request:
        """How an event is written."""
        pairs = zip(_REFERENCE, event.about, strict=True)
        about = {field: value for field, value in pairs if value}
        body = encode.event(
            about,
            event.reason,
            event.message,
            event.at,
            number=event.number,
            is_warning=event.is_warning,
            reporter=self._name,
        )
        namespace = about.get("namespace") or "default"
        return "POST", f"/api/v1/namespaces/{namespace}/events", body, _JSON

    # What exactly is told, as it is when it is sent.

    def _tell_waits(self, job: str) -> _Request | None:
        """Why a job waits: on its pods and its PodGroup, each in its own message."""
        group = self._cache.gangs.get(job)
        if group is None or not group.status.pending_reason:
            return None
        message = group.status.pending_reason
        if not group.pods and group.status.written_reason != message:
            set_status(group, written_reason=message)
            self.on_group(group, "Unschedulable", message)
            self.group_changed(job)
        pods = [p for p in group.pods.values() if p.ours and _is_waiting(p)]
        news = [pod for pod in pods if pod.written_reason != message]
        for pod in news:
            pod.written_reason = message
            self._put(("condition", pod.uid), partial(self._tell_pod, pod), 0.0)
        if news and group.status.not_ready == message:
            self._say("not ready", job=job, message=message)
        if news:
            first = min(news, key=lambda pod: pod.order)
            about = _about_pod(first)
            told = _with_way(message, first)
            self._event(about, "FailedScheduling", told, is_warning=True)
            self.on_group(group, "Unschedulable", message)
            self.group_changed(job)
        return None

    def _tell_pod(self, pod: PodState) -> _Request | None:
        if not _is_waiting(pod) or pod.uid not in self._cache.pods:
            return None
        if pod.phase is PodPhase.GATED:
            return None  # the API server says SchedulingGated, which stays true
        told = encode.condition(
            "PodScheduled", "False", "Unschedulable", pod.written_reason, self._clock()
        )
        path = encode.pod_path(pod, "status")
        return "PATCH", path, encode.pod_conditions([told], pod.uid), encode.STRATEGIC

    def _tell_group(self, job: str) -> _Request | None:
        group = self._cache.gangs.get(job)
        if group is None or group.podgroup is None:
            return None
        known = group.podgroup.status
        started = known.phase not in UNSTARTED
        if not (group.pods or group.numbers) and (
            started or group.status.outside_canary
        ):
            return None  # another scheduler writes it, or will
        status = self._status(group)
        conditions = self._conditions(group, str(status["phase"]))
        if conditions is not None:
            status["conditions"] = conditions
        if all(getattr(known, key) == value for key, value in status.items()):
            return None
        meta = group.podgroup.metadata
        path = f"{VOLCANO}/namespaces/{meta.namespace}/podgroups/{meta.name}/status"
        body = encode.encode({"status": to_builtins(status)})
        return "PATCH", path, body, encode.MERGE

    def _status(self, group: GangState) -> dict[str, Any]:
        assert group.podgroup is not None
        # Others are made in the place of those that were refused.
        pods = [p for p in group.pods.values() if not (p.refused and p.owned)]
        # Not pods on their way: a gang that is called running is never released.
        alive = sum(pod.holds for pod in pods)
        done = sum(pod.succeeded for pod in pods)
        failed = sum(pod.phase is PodPhase.FAILED for pod in pods)
        before = group.podgroup.status.phase
        if pods and done + failed == len(pods):
            phase = "Completed"
        elif alive and alive + done >= group.need:
            phase = "Running"
        elif before not in UNSTARTED and (alive or done):
            phase = "Unknown" if alive else before
        else:
            phase = (
                "Inqueue"
                if group.reported.is_admitted or before == "Inqueue"
                else "Pending"
            )
        return {
            "phase": phase,
            "running": alive,
            "succeeded": done,
            "failed": failed,
        }

    def _conditions(
        self, group: GangState, phase: str
    ) -> list[PodGroupCondition] | None:
        """The conditions of a PodGroup, if one of ours is new."""
        assert group.podgroup is not None
        known = group.podgroup.status.conditions or []
        if phase == "Running":
            new = PodGroupCondition("Scheduled", "True", reason=SCHEDULED)
        elif group.status.pending_reason:
            new = PodGroupCondition(
                "Unschedulable",
                "True",
                reason="NotEnoughResources",
                message=group.status.pending_reason[: encode.MAX_CONDITION],
            )
        else:
            return None
        same = [
            each
            for each in known
            if (each.type, each.status, each.reason, each.message)
            == (new.type, new.status, new.reason, new.message)
        ]
        if same:
            return None
        self._number += 1
        new.transition_id = f"ringleaf-{self._number:x}"
        new.last_transition_time = encode.moment(self._clock())
        others = {"Scheduled", "Unschedulable"}
        return [each for each in known if each.type not in others] + [new]

    def _tell_queue(self, name: str) -> _Request | None:
        used = self._view().accounts[name].allocated
        told = {r: amount_words(n) for r, n in sorted(used.items()) if n}
        if self._used.get(name) == told:
            return None
        # What was told before us, or by us and not heard of yet.
        before = {
            *self._used.get(name, ()),
            *self._cache.queues.allocated.get(name, ()),
        }
        self._used[name] = told
        gone: Mapping[str, str | None] = dict.fromkeys(sorted(before - told.keys()))
        body = encode.encode({"status": {"allocated": {**gone, **told}}})
        return "PATCH", f"{VOLCANO}/queues/{name}/status", body, encode.MERGE


def _is_waiting(pod: PodState) -> bool:
    return pod.assumed is None and pod.phase in (PodPhase.WAITING, PodPhase.GATED)


def _with_way(message: str, pod: PodState) -> str:
    """*message* with the command that says what would help, if it has no hint."""
    if HINT in message:
        return message
    return f"{message}{HINT}ringleaf explain pod/{pod.name} -n {pod.namespace}"


def _about_pod(pod: PodState) -> dict[str, str]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }


def _about_group(group: GangState) -> dict[str, str] | None:
    if group.podgroup is None:
        return None
    meta = group.podgroup.metadata
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }


def _version(kind: str) -> str:
    volcano = kind in ("PodGroup", "Queue")
    return "scheduling.volcano.sh/v1beta1" if volcano else "v1"
