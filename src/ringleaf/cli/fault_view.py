"""Faults of a cluster, the pods they affect, and the repairs.

Plain values, from the books of an engine and the book of faults; ``faults`` shows them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import to_builtins

from ringleaf.actions.delete_faulty import count_pods
from ringleaf.cli.fault_words import Plain, pod_words, words_of
from ringleaf.cli.output import so_many
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import DeletionsKnown, FaultsKnown
from ringleaf.framework.job_state import JobState
from ringleaf.framework.repair import Repair
from ringleaf.kube.fault_history import FaultHistory
from ringleaf.kube.special_jobs import OUTSIDE
from ringleaf.model.fault import (
    Cause,
    Fault,
    FaultMode,
    Part,
    PartKind,
    RestartScope,
    SubHealth,
)
from ringleaf.model.job_labels import FAULT_SCHEDULING
from ringleaf.policies.faults import next_scope
from ringleaf.simulator.plain import whole


class FaultView:
    """What is wrong in a cluster.

    Args:
        engine: Knows the cluster.
        now: The time.
        has_history: Whether a fault history was read; without one the time when a
            fault began is not known.

    """

    def __init__(self, engine: Engine, now: float, *, has_history: bool = True) -> None:
        self._view, self._book, self._now = engine.view, engine.fault_log, now
        self._repairs, self._known = engine.repairs, engine.context.repairs
        self._ctx = engine.context
        self._has_history = has_history
        self._rules = engine.view.settings.repairs
        self._on = self._pods_on(
            {fault.where for fault in engine.fault_log.open.values()}
        )

    def _pods_on(self, nodes: Iterable[str]) -> Mapping[str, list[tuple[str, Any]]]:
        """Node -> the jobs and holdings on it, of the nodes that are asked for."""
        index = self._view.cluster.index
        wanted = {index[name]: name for name in nodes if name in index}
        found: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
        if wanted:
            for job in sorted(self._view.job_states):
                for holding in self._view.cluster.holdings.get(job, ()):
                    if holding.node in wanted:
                        found[wanted[holding.node]].append((job, holding))
        return found

    def plain(self) -> Plain:
        """All of it."""
        faults = [self._fault(each) for each in self._book.everything]
        repairs = [
            self.repair_plain(each) for _name, each in sorted(self._repairs.items())
        ]
        return {
            "at": whole(self._now),
            "history": self._has_history,
            "faults": faults,
            "repairs": repairs,
            "quarantined": [*self._aside()],
            "rate-limit": self._brake(),
        }

    # Faults.

    def _fault(self, fault: Fault) -> Plain:
        pods = {} if fault.recovered is not None else self.pods_of(fault)
        told: Plain = {
            "where": fault.where,
            "cause": fault.cause.value,
            "part": fault.part,
            "words": "gone" if self._is_gone(fault) else words_of(fault),
            "seen": whole(fault.seen) if self._knows(fault) else None,
            "acted": fault.acted,
            "recovered": fault.recovered,
            "jobs": list(fault.jobs),
            "pods": pods,
            "means": list(self._means(fault, pods)),
        }
        told |= {"why": fault.why} if fault.why else {}
        return told

    def _is_gone(self, fault: Fault) -> bool:
        """Whether the node is not there any more, which is more than not ready."""
        there = fault.where in self._view.cluster.index
        return fault.cause is Cause.NODE and fault.recovered is None and not there

    def _knows(self, fault: Fault) -> bool:
        return self._has_history or fault.recovered is not None

    def pods_of(self, fault: Fault) -> dict[str, list[int]]:
        """Job -> its pods that are on it."""
        part = fault.key.part
        if fault.key.is_of_pod:
            return {fault.where: [part.number]}
        chip = part.number if part.kind is PartKind.CHIP else None
        found: dict[str, list[int]] = {}
        for job, holding in self._on.get(fault.where, ()):
            if chip is None or holding.chips >> chip & 1:
                found.setdefault(job, []).append(holding.replica)
        return {job: sorted(own) for job, own in found.items()}

    def _means(self, fault: Fault, pods: Mapping[str, list[int]]) -> Iterator[str]:
        """What a fault means for each affected job, a line each."""
        if fault.recovered is not None:
            return
        if fault.cause is Cause.REFUSAL:
            yield f"quarantined: {fault.why}" if fault.why else "quarantined"
        elif not pods:
            yield "no pod is affected"
        for job, own in pods.items():
            named = job if job.startswith("pod ") else f"{pod_words(own)} of {job}"
            yield f"{named}: {self._lot(fault, job)}"

    def _lot(self, fault: Fault, job: str) -> str:
        """What becomes of the pods of a job that are on a fault."""
        job_state = self._view.job_states.get(job)
        if job_state is None:
            return "the job is gone"
        if fault.cause is Cause.NETWORK:
            return "stays, no pod is moved for the network of a chip"
        if fault.cause is Cause.REFUSAL:
            return "stays, it was there before"
        if job_state.job.queue == OUTSIDE:
            return "belongs to another scheduler"
        if job in self._repairs:
            repair = self._repairs[job]
            limited = "waits for the eviction rate limit"
            return limited if repair.rate_limited else "is being repaired"
        return self._lot_by_labels(fault, job_state)

    def _lot_by_labels(self, fault: Fault, job_state: JobState) -> str:
        wants = job_state.job.recovery
        if fault.cause is Cause.SUB_HEALTH and wants.sub_health is SubHealth.IGNORE:
            return "stays, subHealthyStrategy is ignore"
        if wants.mode is FaultMode.OFF:
            return "stays, fault-scheduling is off"
        if fault.cause is Cause.POD:
            left = max(
                0, wants.retries - self._known.retries_used.get(job_state.job.name, 0)
            )
            if not left:
                return f"stays, all {so_many(wants.retries, 'retry', 'retries')} used"
            return f"to be restarted, {so_many(left, 'retry', 'retries')} left"
        if wants.mode.is_external:
            return f"left to its controller, fault-scheduling is {wants.mode}"
        label = FAULT_SCHEDULING
        if label in job_state.job.assumed:
            label = f"default-{label}"
        return f"to be deleted, {label} is {wants.mode}"

    def _aside(self) -> Iterator[Plain]:
        for fault in self._book.open.values():
            if fault.cause is Cause.REFUSAL:
                until = fault.until
                if until is None:
                    until = fault.seen + self._rules.aside_s
                yield {
                    "node": fault.where,
                    "since": whole(fault.seen),
                    "until": whole(until),
                    "why": fault.why,
                }

    # Repairs.

    def repair_plain(self, repair: Repair) -> Plain:
        """One repair as plain values."""
        job_state = self._view.job_states.get(repair.name)
        wanting = sorted(repair.missing_pods(job_state))
        stage, waits = self._stage(job_state, repair, len(wanting))
        held = self._view.cluster.holdings.get(repair.held.owner, ())
        since = (
            repair.deletion.at
            if repair.deletion.gone_at is None
            else repair.deletion.gone_at
        )
        moved = {"moved-for": repair.moved_for} if repair.moved_for else {}
        return moved | {
            "job": repair.name,
            "since": whole(repair.since),
            "reach": repair.scope.value,
            "ailments": [to_builtins(each) for each in repair.pod_faults.values()],
            "deleted": sorted(repair.deletion.awaiting_replacement),
            "wanting": wanting,
            "held": len(held),
            "held-nodes": sorted(repair.held.nodes),
            "hold-until": None if since is None else whole(since + self._rules.hold_s),
            "rate-limited": repair.rate_limited,
            "stage": stage,
            "waits-for": waits,
        }

    def _stage(
        self, job_state: JobState | None, repair: Repair, missing: int
    ) -> tuple[str, str]:
        """How far it is, and what it waits for."""
        if repair.rate_limited or not repair.deletion.awaiting_replacement:
            braked = ("rate-limited", "the eviction rate limit")
            return (
                braked if repair.rate_limited else ("found", "its pods to be deleted")
            )
        if job_state is not None and job_state.terminating:
            return "ending", self._ending_words(job_state, repair)
        if repair.deletion.unschedulable_since is not None:
            return "stuck", self._stuck_words(job_state, repair)
        if not missing:
            return "placed", ""
        if job_state is None:
            return "gone", "its pods to be created again"
        return "placing", f"places for {so_many(missing, 'pod')}"

    def _ending_words(self, job_state: JobState, repair: Repair) -> str:
        told = f"{so_many(len(job_state.terminating), 'pod')} to end"
        if job_state.job.recovery.mode is not FaultMode.GRACE:
            return told
        since = repair.since if repair.deletion.at is None else repair.deletion.at
        left = since + self._rules.grace_s - self._now
        return f"{told}, by force {_until_words(left)}"

    def _stuck_words(self, job_state: JobState | None, repair: Repair) -> str:
        assert repair.deletion.unschedulable_since is not None
        ago = self._now - repair.deletion.unschedulable_since
        told = f"a place for its pods, for {ago:.0f} s"
        if job_state is None or not job_state.job.recovery.mode.scheduler_deletes:
            return told
        reach = next_scope(job_state.job, repair.scope)
        if reach is None:
            return told
        left, more = self._rules.job_after_s - ago, "all of it"
        if reach is RestartScope.BLOCK:
            left, more = self._rules.block_after_s - ago, "its logical SuperPoD"
        elif repair.scope is RestartScope.BLOCK:
            left -= self._rules.block_after_s
        return f"{told}; then {more} is deleted, {_until_words(left)}"

    def _brake(self) -> Plain:
        """The eviction rate limit: recent deletions, and the jobs it holds back."""
        rules = self._rules
        held = sorted(name for name, each in self._repairs.items() if each.rate_limited)
        return {
            "engaged": bool(held),
            "held": held,
            "deleted": self._known.rate_limit.recent(self._now, rules),
            "pods": count_pods(self._ctx),
            "percent": rules.brake_percent,
            "seconds": rules.brake_s,
        }


def _until_words(seconds: float) -> str:
    return f"in {seconds:.0f} s" if seconds >= 1 else "now"


def recall(engine: Engine, lives: FaultHistory, now: float) -> None:
    """Let an engine that knows everything there is know what was written down."""
    adopt(engine, lives.faults, now)
    engine.handle(DeletionsKnown(lives.deletions), now)
    hold_back(engine, lives.braked, now)


def adopt(engine: Engine, faults: Iterable[Fault], now: float) -> None:
    """Let an engine that knows everything there is know the lives that were written.

    What nothing tells of has recovered; nodes that were set aside still are.
    """
    book, written = engine.fault_log, (*faults,)
    for fault in written:
        told = book.of(fault.where)
        if is_of_pod(fault.part) and not any(is_of_pod(each.part) for each in told):
            book.report_pod_faults(fault.where, (), now)
    engine.handle(FaultsKnown(written), now)


def hold_back(engine: Engine, jobs: Iterable[str], now: float) -> None:
    """Let an engine that deletes nothing know which jobs wait for the brake."""
    open_repairs = engine.context.repairs.open
    job_states = engine.view.job_states
    for name in jobs:
        if name in job_states and name not in open_repairs:
            repair = Repair(name, now, job_states[name].job)
            repair.rate_limited = True
            open_repairs[name] = repair


def repair_of(engine: Engine, job: str, now: float) -> Plain | None:
    """How far the repair of a job is; None if it needs none."""
    repair = engine.repairs.get(job)
    return None if repair is None else FaultView(engine, now).repair_plain(repair)


def is_of_pod(part: str) -> bool:
    """Whether a pod has a fault, and not its node."""
    return Part.read(part).kind is PartKind.POD
