"""Carries out what the engine instructs."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from ringleaf.actions.rearrange import ACTION as REARRANGE
from ringleaf.actions.unstarted import NEVER_RAN
from ringleaf.framework.instruction import (
    AskToExit,
    Bind,
    Delete,
    Evict,
    Instruction,
    PersistRepair,
    Repaired,
    Report,
    ReportFaultyPods,
    Verdict,
)
from ringleaf.kube import encode, names
from ringleaf.kube.binder import Bound
from ringleaf.kube.decider import Decider
from ringleaf.kube.gang_members import place_of
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.pending_reasons import PendingReasons
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.writers import Writers
from ringleaf.model.fault import Cause
from ringleaf.model.placement import Placement
from ringleaf.policies.words import some_of

MAX_NAMED: Final = 3
"""Pods that are named in an event on their PodGroup."""


class InstructionExecutor:
    """Carries out instructions.

    Args:
        decider: Decides, over the cache of the objects.
        writers: What writes to the API server.
        pending: Knows the jobs of which it was written why they are pending.
        metrics: Counts what happens.
        say: Writes a line of the log.
        clock: Seconds since 1970.
        identity: The identity of the leader, where there are several replicas.

    """

    def __init__(
        self,
        decider: Decider,
        writers: Writers,
        pending: PendingReasons,
        metrics: Metrics,
        *,
        say: Callable[..., None],
        clock: Callable[[], float],
        identity: Callable[[], str],
    ) -> None:
        self._decider, self._cache = decider, decider.cache
        self._binder, self._status_writer = writers.binder, writers.status_writer
        self._repair_executor = writers.repair_executor
        self._pending, self._metrics, self._say = pending, metrics, say
        self._clock, self._identity = clock, identity
        self._stamp = 0
        """The last ``predicate-time``: no two pods have the same."""

    def carry_out(self, instructions: Iterable[Instruction]) -> None:
        """Carry out *instructions*, in their order."""
        for each in instructions:
            match each:
                case Bind():
                    self._bind(each)
                case Evict():
                    self._evict(each)
                case Delete() if each.cause in (NEVER_RAN, Cause.REFUSAL):
                    self._delete_unstarted(each)
                case (
                    Delete()
                    | ReportFaultyPods()
                    | PersistRepair()
                    | AskToExit()
                    | Repaired()
                ):
                    self._repair_executor.carry_out(each)
                case Report():
                    self.report(each)
        for job in self._decider.mind.admitted:
            self._admit(job)

    def _admit(self, job: str) -> None:
        self._cache.assumed.admit(job)
        gang = self._cache.gangs.get(job)
        # Its pods are made when its phase says so; with pods it soon says more.
        waits = gang is not None and len(gang.pods) < gang.need
        if waits:
            self._say("admitted", job=job)
        self._status_writer.group_changed(job, is_urgent=waits)

    def _bind(self, each: Bind) -> None:
        self._pending.jobs.pop(each.job, None)
        now, gang = self._clock(), self._cache.gangs[each.job]
        numbered, items = gang.by_number(), list[Bound]()
        identity = self._identity()
        for placement, given in zip(each.placements, each.annotations, strict=True):
            pod = numbered[placement.replica]
            self._stamp = max(self._stamp + 1, time.time_ns())
            node = self._cache.nodes[placement.node]
            written = encode.written(pod, placement, given, node, self._stamp)
            if identity:
                written[names.LEADER] = identity
            items.append(Bound(pod, placement, written))
        # From here on its chips are held until the API server answers.
        self._cache.assumed.assume(each.job, each.placements)
        self._binder.bind(items)
        gang.binding = replace(gang.binding, sent_at=now)
        job = self._decider.mind.view.job_states[each.job].job
        self._metrics.sent(now - job.created)
        warnings = "; ".join(each.warnings)
        nodes = len({placement.node for placement in each.placements})
        self._say("bind", job=each.job, pods=len(items), nodes=nodes, warnings=warnings)
        self._status_writer.warns(each.job, each.warnings)
        self._status_writer.group_changed(each.job)

    def bound(self, pod: PodState, placement: Placement) -> None:
        """A pod was bound: count it, and report it."""
        now, gang = self._clock(), self._cache.gangs.get(pod.job)
        sent_at = (gang and gang.binding.sent_at) or now
        self._metrics.bound(now - pod.created, now - sent_at)
        self._status_writer.placed(pod, placement)

    def _evict(self, each: Evict) -> None:
        gang = self._cache.gangs.get(each.job)
        if gang is None:
            return
        pods = self._cache.assumed.evict(each.job, each.replicas)
        why = f"Pod is evicted by {each.action} for job {each.by!r}"
        self._say("evict", job=each.job, pods=len(pods), by=each.by, action=each.action)
        self._status_writer.on_group(gang, "Evict", why)
        if each.action == REARRANGE:
            self._repair_executor.evict(gang, pods, why)
            return
        refused = self._metrics.refused
        self._binder.evict(
            pods,
            why,
            self._status_writer.evicted,
            lambda: refused.update([each.action]),
        )

    def report(self, each: Report) -> None:
        """Log a report, and write it on the object that it is about."""
        message = _with_hint(each.message, each.hint)
        if each.verdict is Verdict.WAITING:
            self._pending.jobs[each.job] = None
        self._say("report", job=each.job, verdict=each.verdict.value, message=message)
        self._status_writer.warns(each.job, each.warnings)
        gang = self._cache.gangs.get(each.job)
        match each.verdict:
            case Verdict.CONFLICT:
                if gang is not None:
                    self._status_writer.conflict(gang, message)
            case Verdict.QUARANTINED:
                self._status_writer.on_node(each.node, "Quarantined", message)
            case Verdict.RELEASED:
                pass  # it was said where it was done
            case Verdict.REPAIRING:
                if gang is not None:
                    message = f"{message}{_names(gang)}"
                    self._status_writer.on_group(gang, "Faulty", message)
            case Verdict.RATE_LIMITED:
                if gang is not None:
                    self._status_writer.on_job(gang, "RateLimited", message)
            case _:
                self._status_writer.waits(each.job, message)

    def _delete_unstarted(self, each: Delete) -> None:
        """Delete pods that never ran, of which others are made then."""
        gang = self._cache.gangs.get(each.job)
        if gang is None:
            return
        refused = each.cause == Cause.REFUSAL
        pods = [
            pod
            for pod in gang.pods.values()
            if pod.number in each.replicas
            and not pod.deleting
            and (pod.refused if refused else pod.holds or pod.assumed is not None)
        ]
        kept = [pod for pod in pods if not pod.owned]
        if kept:
            told = f"{_where(kept)}{each.why}"
            told = f"{told}; it stays, because no controller would create it again"
            hint = "delete it, and submit it again"
            self._say("not released", job=each.job, pods=len(kept), why=each.why)
            self._status_writer.on_job(gang, "NotReleased", _with_hint(told, hint))
            pods = [pod for pod in pods if pod.owned] if refused else []
        if not pods:
            return
        self._say("release", job=each.job, pods=len(pods), why=each.why)
        self._metrics.releases += not refused
        told = f"{_where(pods)}{each.why}" if refused else each.why
        self._status_writer.on_job(gang, "Refused" if refused else "Released", told)
        self._binder.delete(pods)


def _with_hint(message: str, hint: str) -> str:
    return f"{message}; hint: {hint}" if hint else message


def _names(gang: GangState) -> str:
    """The names of the pods because of which a job is repaired, by their numbers."""
    record = gang.repair.record
    numbers = [] if record is None else [each.replica for each in record.pod_faults]
    known = gang.by_number()
    told = [f"pod {n} is {known[n].name!r}" for n in numbers if n in known]
    return f"; {some_of(told, MAX_NAMED)}" if told else ""


def _where(pods: Iterable[PodState]) -> str:
    """Pods with their nodes, before what is said of them."""
    told = [f"pod {pod.name!r} on node {place_of(pod)!r}" for pod in pods]
    return f"{some_of(told, MAX_NAMED)}: "
