"""Faults of pods, and what the previous leader wrote down of faults and repairs."""

from ringleaf.engine.event import (
    DeletionsKnown,
    FaultsKnown,
    PodFaultsReported,
    RepairKnown,
)
from ringleaf.engine.job_events import JobEvents
from ringleaf.engine.lifecycle import JobLifecycle
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import Phase
from ringleaf.framework.repair import Repair
from ringleaf.model.fault import Cause


class FaultEvents:
    """What is done after an event of faults."""

    def __init__(self, ctx: Context, lifecycle: JobLifecycle, jobs: JobEvents) -> None:
        self._ctx, self._state = ctx, ctx.state
        self._lifecycle, self._jobs = lifecycle, jobs

    def pod_faults_reported(self, event: PodFaultsReported) -> None:
        """Pods of a job are faulty themselves, or no longer."""
        job_state = self._state.job_states.get(event.job)
        placements = {} if job_state is None else job_state.placements
        repairs = self._ctx.repairs
        before = repairs.pod_faults.get(event.job, {}).keys()
        repairs.report_pod_faults(event.job, event.pod_faults, placements)
        gone = before - repairs.pod_faults.get(event.job, {}).keys()
        if gone and repairs.confirm_gone(event.job, gone) and job_state is not None:
            self._lifecycle.requeue_if_incomplete(job_state)
        self._ctx.repairs.fault_log.report_pod_faults(
            event.job, event.pod_faults, self._state.now
        )

    def faults_known(self, event: FaultsKnown) -> None:
        """Restore the fault log, and quarantines that are not over."""
        self._ctx.repairs.fault_log.restore(event.faults, self._state.now)
        cluster, quarantine = self._state.cluster, self._ctx.pods_ready.quarantine
        for fault in event.faults:
            node, until = fault.where, fault.until or 0.0
            refuses = fault.cause is Cause.REFUSAL and fault.recovered is None
            known = node in quarantine.nodes or node not in cluster.index
            if refuses and not known and until > self._state.now:
                quarantine.adopt(node, fault.why, fault.seen, until)
                cluster.set_quarantined(cluster.index[node], on=True)

    def deletions_known(self, event: DeletionsKnown) -> None:
        """Restore what the eviction rate limit counts."""
        self._ctx.repairs.rate_limit.restore(event.deletions, self._state.now)

    def repair_known(self, event: RepairKnown) -> None:
        """Another scheduler began to repair a job, or did; a leader knows better."""
        repairs, name, record = self._ctx.repairs, event.job, event.record
        used = max(record.retries_used, repairs.retries_used.get(name, 0))
        if used:
            repairs.retries_used[name] = used
        repair = repairs.open.get(name)
        if repair is not None and self._ctx.framework.has_actions:
            return
        if repair is not None:
            del repairs.open[name]
            repair.release_places(self._state.cluster)
        if record.is_over or not (record.pod_faults or record.deleted):
            return
        repair = Repair.of(name, record, self._jobs.submitted.get(name))
        repair.retries_used = used
        repairs.open[name] = repair
        if record.deleted_at is not None:
            repairs.rate_limit.count_once(record.deleted_at, name, len(record.deleted))
        job_state = self._state.job_states.get(name)
        repair.hold_places(self._state.cluster, job_state)
        self._ctx.victim_search.ending.pop(name, None)
        if job_state is not None:
            repairs.suspects[name] = None
            held = job_state.placements.values()
            self._ctx.wakeups.replace_spec(
                job_state, self._jobs.effective_job(self._jobs.submitted[name], held)
            )
            if job_state.phase is Phase.PENDING:
                self._ctx.pending.admit(job_state)
                self._lifecycle.requeue_if_incomplete(job_state)
