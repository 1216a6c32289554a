"""What people are told: conditions, events, phases and the use of queues.

Telling comes after binding: while pods are on their way little else is sent, and what
has changed again in the meantime is told once, as it is then. Every message about a
waiting job is told when it has been true for a second.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import to_builtins

from ringleaf.framework.view import View
from ringleaf.kube import encode
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.jobs import UNSTARTED, Group
from ringleaf.kube.objects import PodGroupCondition
from ringleaf.kube.pods import PodRecord, State
from ringleaf.kube.world import Problem, World
from ringleaf.model.demand import amount_words
from ringleaf.model.placement import Placement

SETTLE_S: Final = 1.0
"""How long something must be true before it is told."""
PER_SECOND: Final = 100
"""Messages a second at most, while nothing is being bound; then a tenth of it."""
MOST_WAITING: Final = 100_000
"""Messages that are kept to be sent; the oldest news is dropped first."""
VOLCANO: Final = "/apis/scheduling.volcano.sh/v1beta1"
NOT_FOUND: Final = 404
SCHEDULED: Final = "tasks in gang are ready to be scheduled"
"""The reason that Volcano gives."""


class _Message(NamedTuple):
    due: float
    send: Callable[[], "tuple[str, str, bytes, str] | None"]
    is_urgent: bool


class Teller:
    """Sends what is to be told, one after the other, not too fast.

    Args:
        api: The API server.
        world: What there is.
        view: What the engine knows.
        clock: Seconds since 1970.
        is_binding: Whether pods are on their way.
        name: Who says it, in events.

    """

    def __init__(
        self,
        api: Api,
        world: World,
        view: Callable[[], View],
        clock: Callable[[], float],
        *,
        is_binding: Callable[[], bool],
        name: str,
    ) -> None:
        self._api, self._world, self._view = api, world, view
        self._clock, self._is_binding, self._name = clock, is_binding, name
        self._box: dict[tuple[str, ...], _Message] = {}
        self._wake = asyncio.Event()
        self._number = int(clock() * 1e6)
        self._waits: dict[str, str] = {}
        self._used: dict[str, dict[str, str]] = {}
        self.sent = 0
        self.dropped = 0
        self.refused = 0

    # What there is to tell.

    def waits(self, job: str, message: str) -> None:
        """A job waits, and why."""
        self._waits[job] = message
        self._put(("waits", job), partial(self._tell_waits, job), SETTLE_S)

    def placed(self, pod: PodRecord, placement: Placement) -> None:
        """A pod was bound."""
        self._waits.pop(pod.job, None)
        said = f"Successfully assigned {pod.key} to {placement.node}"
        if placement.chips:
            chips = ", ".join(map(str, placement.chips))
            said = f"{said}, chips {chips}"
        self._event(_about_pod(pod), "Scheduled", said, is_warning=False)

    def evicted(self, pod: PodRecord, why: str) -> None:
        """A pod is asked to end."""
        self._event(_about_pod(pod), "Evict", why, is_warning=True)

    def conflict(self, group: Group, message: str) -> None:
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

    def on_group(self, group: Group, reason: str, message: str) -> None:
        """An event on a PodGroup."""
        about = _about_group(group)
        if about is not None:
            self._event(about, reason, message, is_warning=reason != "Scheduled")

    def group_changed(self, job: str, *, is_urgent: bool = False) -> None:
        """The phase of a PodGroup may be another."""
        delay = 0.0 if is_urgent else SETTLE_S / 4
        key = ("group", job)
        before = self._box.get(key)
        urgent = is_urgent or (before is not None and before.is_urgent)
        self._put(key, partial(self._tell_group, job), delay, is_urgent=urgent)

    def queues_changed(self) -> None:
        """What queues use may be another."""
        for name in self._view().queues:
            key = ("queue", name)
            if key not in self._box:
                self._put(key, partial(self._tell_queue, name), SETTLE_S)

    # How it is told.

    async def run(self) -> None:
        """Tell, for ever."""
        while True:
            self._wake.clear()
            now = self._clock()
            due = self._next(now)
            if due is None:
                await self._sleep(now)
                continue
            message = self._box.pop(due)
            found = message.send()
            if found is not None:
                await self._send(*found)
                if not message.is_urgent:
                    slow = 10 if self._is_binding() else 1
                    await asyncio.sleep(slow / PER_SECOND)

    async def flush(self, timeout_s: float) -> None:
        """Tell what is urgent or due, for a short while, before the end."""
        end = self._clock() + timeout_s
        while self._box and self._clock() < end:
            _key, message = self._box.popitem()
            found = message.send()
            if found is not None:
                await self._send(*found)

    def _next(self, now: float) -> tuple[str, ...] | None:
        """What is told next: what is urgent first, then what is due."""
        binding = self._is_binding()
        first = None
        for key, message in self._box.items():
            if message.is_urgent:
                return key
            if first is None and message.due <= now and not (binding and key[0] == "e"):
                first = key
                if len(self._box) > PER_SECOND:
                    break
        return first

    async def _sleep(self, now: float) -> None:
        """Until something may be due, or there is more to tell."""
        wait: float | None = None
        if self._box:
            wait = max(0.02, min(m.due for m in self._box.values()) - now)
            if self._is_binding():
                wait = max(wait, 0.1)
        try:
            async with asyncio.timeout(wait):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _send(self, method: str, path: str, body: bytes, kind: str) -> None:
        try:
            answer = await self._api.call(method, path, body, kind=kind, lane="tell")
        except Unreachable:
            self.refused += 1
            return
        if answer.status == NOT_FOUND and path.endswith("/status"):
            plain = path.removesuffix("/status")
            answer = await self._api.call(method, plain, body, kind=kind, lane="tell")
        self.sent += answer.ok
        self.refused += not answer.ok

    def _put(
        self,
        key: tuple[str, ...],
        send: Callable[[], tuple[str, str, bytes, str] | None],
        delay: float,
        *,
        is_urgent: bool = False,
    ) -> None:
        self._box.pop(key, None)
        if len(self._box) >= MOST_WAITING:
            self._box.pop(next(iter(self._box)))
            self.dropped += 1
        self._box[key] = _Message(self._clock() + delay, send, is_urgent)
        self._wake.set()

    def _event(
        self, about: Mapping[str, str], reason: str, message: str, *, is_warning: bool
    ) -> None:
        self._number += 1
        number, now = self._number, self._clock()

        def send() -> tuple[str, str, bytes, str]:
            namespace = about.get("namespace") or "default"
            body = encode.event(
                about,
                reason,
                message,
                now,
                number=number,
                is_warning=is_warning,
                reporter=self._name,
            )
            path = f"/api/v1/namespaces/{namespace}/events"
            return "POST", path, body, "application/json"

        self._put(("e", str(number)), send, 0.0)

    # What exactly is told, as it is when it is sent.

    def _tell_waits(self, job: str) -> tuple[str, str, bytes, str] | None:
        """Why a job waits: on its pods and its PodGroup, each in its own message."""
        group, message = self._world.groups.get(job), self._waits.get(job)
        if group is None or message is None:
            return None
        if not group.pods and group.said != message:
            group.said = message
            self.on_group(group, "Unschedulable", message)
            self.group_changed(job)
        pods = [p for p in group.pods.values() if p.ours and _is_waiting(p)]
        news = [pod for pod in pods if pod.said != message]
        for pod in news:
            pod.said = message
            self._put(("condition", pod.uid), partial(self._tell_pod, pod), 0.0)
        if news:
            first = min(news, key=lambda pod: pod.order)
            about = _about_pod(first)
            self._event(about, "FailedScheduling", message, is_warning=True)
            self.on_group(group, "Unschedulable", message)
            self.group_changed(job)
        return None

    def _tell_pod(self, pod: PodRecord) -> tuple[str, str, bytes, str] | None:
        if not _is_waiting(pod) or pod.uid not in self._world.pods:
            return None
        told = encode.condition(
            "PodScheduled", "False", "Unschedulable", pod.said, self._clock()
        )
        path = encode.pod_path(pod, "status")
        return "PATCH", path, encode.pod_conditions([told]), encode.STRATEGIC

    def _tell_group(self, job: str) -> tuple[str, str, bytes, str] | None:
        group = self._world.groups.get(job)
        if group is None or group.podgroup is None:
            return None
        known = group.podgroup.status
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

    def _status(self, group: Group) -> dict[str, Any]:
        assert group.podgroup is not None
        pods = group.pods.values()
        # Not pods on their way: a gang that is called running is never released.
        alive = sum(pod.holds for pod in pods)
        done = sum(pod.succeeded for pod in pods)
        failed = sum(pod.state is State.FAILED for pod in pods)
        before = group.podgroup.status.phase
        if pods and done == len(group.pods):
            phase = "Completed"
        elif alive and alive + done >= group.need:
            phase = "Running"
        elif before not in UNSTARTED:
            phase = before if not alive else "Unknown"
        else:
            phase = "Inqueue" if group.let_in or before == "Inqueue" else "Pending"
        return {
            "phase": phase,
            "running": alive,
            "succeeded": done,
            "failed": failed,
        }

    def _conditions(self, group: Group, phase: str) -> list[PodGroupCondition] | None:
        """The conditions of a PodGroup, if one of ours is new."""
        assert group.podgroup is not None
        known = group.podgroup.status.conditions or []
        waits = self._waits.get(group.name)
        if phase == "Running":
            new = PodGroupCondition("Scheduled", "True", reason=SCHEDULED)
        elif waits:
            new = PodGroupCondition(
                "Unschedulable",
                "True",
                reason="NotEnoughResources",
                message=waits[: encode.MAX_CONDITION],
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

    def _tell_queue(self, name: str) -> tuple[str, str, bytes, str] | None:
        used = self._view().account(name).allocated
        told = {r: amount_words(n) for r, n in sorted(used.items()) if n}
        if self._used.get(name) == told:
            return None
        before = self._used.get(name, {})
        self._used[name] = told
        gone: Mapping[str, str | None] = dict.fromkeys(before.keys() - told.keys())
        body = encode.encode({"status": {"allocated": {**gone, **told}}})
        return "PATCH", f"{VOLCANO}/queues/{name}/status", body, encode.MERGE


def _is_waiting(pod: PodRecord) -> bool:
    return pod.assumed is None and pod.state in (State.WAITING, State.BARRED)


def _about_pod(pod: PodRecord) -> dict[str, str]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }


def _about_group(group: Group) -> dict[str, str] | None:
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
