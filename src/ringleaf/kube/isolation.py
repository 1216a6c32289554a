"""Objects that make the scheduler fail are quarantined, and everything else goes on.

An object that fails to be stored, or a job, node or queue that the engine fails at, is
left out for a while (``ObjectQuarantine``) and tried again. Users hear of it on the
object.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.closed_nodes import ClosedNodes
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.jobs import namespace_of
from ringleaf.kube.objects import Metadata
from ringleaf.kube.quarantine import Culprit, ObjectQuarantine, told, trace_of
from ringleaf.kube.watch import Gone
from ringleaf.model.topology import quoted

_T = TypeVar("_T")


class Failure(NamedTuple):
    """Something failed inside; the culprit is quarantined."""

    culprit: Culprit
    why: str
    trace: str


class _Rejected(NamedTuple):
    """An object that failed to be stored, and how it is stored."""

    store: Callable[[Any], None]
    reject: Callable[[Any], None]
    object: Any


class Isolation:
    """Quarantines what fails, and has it tried again.

    Args:
        state: What the stores of the cache share.

    """

    def __init__(self, state: CacheState) -> None:
        self._state, self.closed = state, ClosedNodes(state.deltas)
        """What the stores share, and pods that may hold any chips of their nodes."""
        self.quarantine = ObjectQuarantine()
        self.failures: list[Failure] = []
        """Failures to report; the reporter empties the list."""
        self._retry_at: dict[Culprit, float] = {}
        """What is quarantined -> when it is tried again."""
        self._rejected: dict[Culprit, _Rejected] = {}

    # Objects that fail to be stored.

    def store_each(
        self,
        kind: str,
        objects: Iterable[_T],
        store: Callable[[_T], None],
        reject: Callable[[_T], None] = lambda _object: None,
    ) -> None:
        """Store one object after the other; one that fails stops no other.

        *reject* is called with an object that failed.
        """
        for each in objects:
            try:
                store(each)
            except Exception as error:  # noqa: BLE001 - whatever it is
                self._reject(kind, _Rejected(store, reject, each), error)
            else:
                if self._rejected:
                    self._stored(kind, each)

    def _reject(self, kind: str, rejected: _Rejected, error: Exception) -> None:
        meta: Metadata = rejected.object.metadata
        culprit = Culprit(kind, meta.key)
        self._quarantine(culprit, error)
        self._rejected[culprit] = rejected
        self._note(culprit, meta.uid, told(error))
        rejected.reject(rejected.object)

    def _stored(self, kind: str, given: Any) -> None:  # noqa: ANN401 - any kind
        culprit = Culprit(kind, given.metadata.key)
        if self._rejected.pop(culprit, None) is not None:
            self._retry_at.pop(culprit, None)
            self._note(culprit, given.metadata.uid, "")

    def forget(self, kind: str, gone: Gone) -> None:
        """An object is gone: nothing of it is tried again."""
        if self._rejected or self._retry_at:
            for culprit in (Culprit(kind, gone.key), Culprit(kind, gone.name)):
                self._rejected.pop(culprit, None)
                self._retry_at.pop(culprit, None)
                self.quarantine.forget(culprit)

    # Jobs, nodes and queues that the engine fails at.

    def set_aside(self, culprits: Iterable[Culprit], error: BaseException) -> None:
        """Report jobs, nodes or queues that the engine failed at no more, for a while.

        Pods of such a job hold what they hold; where that fails as well, their nodes
        give no chips. With a queue that fails again its jobs are quarantined, too.
        """
        gangs = self._state.gangs
        for culprit in culprits:
            gang = gangs.get(culprit.key) if culprit.kind == "Job" else None
            if culprit.kind == "Job" and gang is None:
                continue
            again = self.is_quarantined(culprit)
            self._quarantine(culprit, error)
            if gang is not None and again:
                self.closed.close_all(gang)
            if culprit.kind == "Queue" and again:
                self.set_aside(self._jobs_in(culprit.key), error)
            self._look_at(culprit)

    def is_quarantined(self, culprit: Culprit) -> bool:
        """Whether something is quarantined now."""
        return self.quarantine.of(culprit, self._state.now) is not None

    def engine_began(self, cost_s: float, now: float) -> None:
        """Another engine took so long to begin; what it was for is left alone."""
        self._retry_at |= self.quarantine.begun(cost_s, now)

    def quarantine_job(self, gang: GangState, error: Exception) -> bool:
        """Quarantine the job of a gang; whether it was quarantined before."""
        culprit = Culprit("Job", gang.name)
        again = self.is_quarantined(culprit)
        self._quarantine(culprit, error)
        return again

    def quarantine_node(self, name: str, error: Exception) -> None:
        """Quarantine a node."""
        self._quarantine(Culprit("Node", name), error)

    def reason(self, gang: GangState, now: float) -> str | None:
        """What makes the scheduler fail, if a gang is quarantined for it, and why."""
        if not self.quarantine.asides:
            return None
        own = self.quarantine.of(Culprit("Job", gang.name), now)
        if own is not None:
            return f"it makes the scheduler fail ({own.why}) and"
        all_of_it = Culprit("Namespace", namespace_of(gang.name))
        others = self.quarantine.of(all_of_it, now)
        if others is None:
            return None
        return f"jobs of its namespace make the scheduler fail ({others.why}), so it"

    def _jobs_in(self, queue: str) -> list[Culprit]:
        """The jobs of a queue that the engine knows."""
        return [
            Culprit("Job", gang.name)
            for gang in self._state.gangs.values()
            if gang.reported.job is not None and gang.reported.job.queue == queue
        ]

    def _quarantine(self, culprit: Culprit, error: BaseException) -> None:
        """Quarantine something, report it, and try it again later."""
        entry = self.quarantine.put(culprit, told(error), self._state.now)
        self._retry_at[culprit] = entry.until
        self.failures.append(Failure(culprit, entry.why, trace_of(error)))
        self._note_on_object(culprit, entry.why)

    # Trying again.

    def changed(self, culprit: Culprit) -> None:
        """Something has changed: if it is quarantined, it is tried again soon."""
        if self._retry_at and culprit in self._retry_at:
            at = self.quarantine.changed(culprit, self._state.now)
            self._retry_at[culprit] = self._state.now if at is None else at

    def retry(self, now: float) -> None:
        """Try again what is due."""
        due = [culprit for culprit, at in self._retry_at.items() if at <= now]
        for culprit in due:
            del self._retry_at[culprit]
            rejected = self._rejected.get(culprit)
            if rejected is not None:
                store, reject, given = rejected
                self.store_each(culprit.kind, [given], store, reject)
            else:
                self._note_on_object(culprit, "")
                self._look_at(culprit)
        if due:
            self.quarantine.tidy(now)

    @property
    def next_at(self) -> float | None:
        """When something is tried again, if anything is."""
        return min(self._retry_at.values(), default=None)

    def _look_at(self, culprit: Culprit) -> None:
        state = self._state
        match culprit.kind:
            case "Job" if culprit.key in state.gangs:
                state.report_again(culprit.key)
                if state.gangs[culprit.key].repair.record is not None:
                    state.deltas.repairs[culprit.key] = None
            case "Namespace":
                for gang in state.gangs.values():
                    if namespace_of(gang.name) == culprit.key:
                        state.report_again(gang.name)
            case "Node" if culprit.key in state.node_objects:
                state.deltas.nodes[culprit.key] = None
                state.unreadable_nodes.discard(culprit.key)
            case "Queue":
                state.deltas.queues[culprit.key] = None

    # What users hear.

    def _note_on_object(self, culprit: Culprit, why: str) -> None:
        """Note on its object why a job, node or queue is quarantined; empty if not."""
        state = self._state
        match culprit.kind:
            case "Job":
                self._note_on_job(culprit.key, why)
            case "Node" if culprit.key in state.node_objects:
                uid = state.node_objects[culprit.key].metadata.uid
                self._note(culprit, uid, why)
            case "Queue" if culprit.key in state.queue_uids:
                self._note(culprit, state.queue_uids[culprit.key], why)

    def _note_on_job(self, name: str, why: str) -> None:
        """Note it on the PodGroup of a job, or on the pod that has none."""
        gang = self._state.gangs.get(name)
        if gang is None:
            return
        if gang.podgroup is not None:
            meta: Metadata = gang.podgroup.metadata
            self._note(Culprit("PodGroup", meta.key), meta.uid, why)
        elif gang.pods:
            pod = min(gang.pods.values(), key=lambda pod: pod.order)
            self._note(Culprit("Pod", pod.key), pod.uid, why)

    def _note(self, culprit: Culprit, uid: str, why: str) -> None:
        namespace, _slash, name = culprit.key.rpartition("/")
        line = (
            f"{culprit.kind} {quoted(culprit.key)} is quarantined for a while, because "
            f"it makes the scheduler fail ({why}); everything else goes on; hint: "
            "change or delete it, and report the trace in the scheduler's log"
        )
        message, problems = line if why else "", self._state.problems
        problems.note(culprit.kind, namespace, name, uid, message, about="quarantine")
