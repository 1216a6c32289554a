"""What users are told: conditions, events, phases of PodGroups and the use of queues.

Every message about a pending job is written when it has been true for a second; the
``StatusQueue`` sends it.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from msgspec import to_builtins

from ringleaf.framework.state import SchedulerState
from ringleaf.kube import encode
from ringleaf.kube.api import Api
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.gang_state import UNSTARTED, GangState, set_status
from ringleaf.kube.job_names import spoken
from ringleaf.kube.pod_state import PodPhase, PodState
from ringleaf.kube.podgroup_status import conditions_of, status_of
from ringleaf.kube.problems import Problem
from ringleaf.kube.status_queue import Delay, Key, Request, StatusQueue
from ringleaf.model.demand import amount_words
from ringleaf.model.placement import Placement

HINT: Final = "; hint: "
VOLCANO: Final = "/apis/scheduling.volcano.sh/v1beta1"
GOOD_NEWS: Final = frozenset({"Scheduled", "Repaired"})
"""Reasons of events that warn of nothing."""


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
        self._cache, self._view, self._clock, self._say = cache, view, clock, say
        self.queue = StatusQueue(
            api, clock, is_binding=is_binding, name=name, say=say, lost=self._lost
        )
        self._used: dict[str, dict[str, str]] = {}
        """Queue -> what was written of its use."""

    # What there is to tell.

    def waits(self, job: str, message: str) -> None:
        """A job waits, and why."""
        group = self._cache.gangs.get(job)
        if group is None:
            return
        message = spoken(self._cache, message)
        key = ("waits", job)
        if group.status.pending_reason == message and self.queue.has(
            key, Delay.SETTLED
        ):
            return  # it has been true for a while
        set_status(group, pending_reason=message)
        self.queue.put(key, partial(self._tell_waits, job), Delay.SETTLED)

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
        urgent = is_urgent or self.queue.has(key, Delay.URGENT)
        delay = Delay.URGENT if urgent else Delay.PHASE
        self.queue.put(key, partial(self._tell_group, job), delay)

    def queues_changed(self) -> None:
        """What queues use may be another."""
        for name in self._view().queues:
            key = ("queue", name)
            if not self.queue.has(key, Delay.SETTLED):
                self.queue.put(key, partial(self._tell_queue, name), Delay.SETTLED)

    def forget(self) -> None:
        """Others lead: what was not told is theirs to tell, and what was may change."""
        self.queue.clear()
        self._used.clear()

    def _lost(self, key: Key) -> None:
        """Something was not written: what a queue uses is written again."""
        if key[0] == "queue":
            self._used.pop(key[1], None)

    def _event(
        self, about: Mapping[str, str], reason: str, message: str, *, is_warning: bool
    ) -> None:
        message = spoken(self._cache, message)
        self.queue.add_event(about, reason, message, is_warning=is_warning)

    # What exactly is told, as it is when it is sent.

    def _tell_waits(self, job: str) -> Request | None:
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
            self.queue.put(
                ("condition", pod.uid), partial(self._tell_pod, pod), Delay.NONE
            )
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

    def _tell_pod(self, pod: PodState) -> Request | None:
        if not _is_waiting(pod) or pod.uid not in self._cache.pods:
            return None
        if pod.phase is PodPhase.GATED:
            return None  # the API server says SchedulingGated, which stays true
        told = encode.condition(
            "PodScheduled", "False", "Unschedulable", pod.written_reason, self._clock()
        )
        path = encode.pod_path(pod, "status")
        return "PATCH", path, encode.pod_conditions([told], pod.uid), encode.STRATEGIC

    def _tell_group(self, job: str) -> Request | None:
        group = self._cache.gangs.get(job)
        if group is None or group.podgroup is None:
            return None
        known = group.podgroup.status
        started = known.phase not in UNSTARTED
        if not (group.pods or group.numbers) and (
            started or group.status.outside_canary
        ):
            return None  # another scheduler writes it, or will
        status = status_of(group)
        phase, number = str(status["phase"]), self.queue.next_number
        conditions = conditions_of(group, phase, self._clock(), number)
        if conditions is not None:
            status["conditions"] = conditions
        if all(getattr(known, key) == value for key, value in status.items()):
            return None
        meta = group.podgroup.metadata
        path = f"{VOLCANO}/namespaces/{meta.namespace}/podgroups/{meta.name}/status"
        body = encode.encode({"status": to_builtins(status)})
        return "PATCH", path, body, encode.MERGE

    def _tell_queue(self, name: str) -> Request | None:
        used = self._view().queue_usage[name].allocated
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
