"""Pods that run, end, are refused or could not be bound."""

from ringleaf.actions.unstarted import end_quarantine
from ringleaf.engine.event import (
    BindFailed,
    Handlers,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
)
from ringleaf.engine.lifecycle import JobLifecycle
from ringleaf.engine.run_recorder import RunRecorder
from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Delete, Report, Verdict
from ringleaf.model.fault import Cause


class PodEvents:
    """What is done after an event of pods."""

    def __init__(
        self, cycle: Cycle, lifecycle: JobLifecycle, runs: RunRecorder
    ) -> None:
        self._cycle, self._state, self._lifecycle = cycle, cycle.view, lifecycle
        self._runs = runs

    @property
    def handlers(self) -> Handlers:
        """What is done after each kind of event."""
        return {
            PodsGone: self._pods_gone,
            PodsEnding: self._pods_ending,
            BindFailed: self._bind_failed,
            PodsRun: self._pods_run,
            PodsRefused: self._pods_refused,
        }

    def _pods_gone(self, event: PodsGone) -> None:
        job_state = self._state.job_states.get(event.job)
        if job_state is None:
            return
        gone = self._lifecycle.release(job_state, event.replicas)
        repair = self._cycle.failures.repairs.open.get(event.job)
        awaited = self._cycle.failures.repairs.gone(event.job, event.replicas)
        done = event.succeeded and self._state.finish(job_state, event.replicas)
        if done and repair is not None:
            repair.hold(self._state.cluster, job_state)
        if done:
            is_over = not job_state.remaining.n_pods
        else:
            is_over = gone and event.ends_run and not job_state.placements
        if is_over:
            self._runs.ended(job_state)
        if gone or done or awaited:
            self._lifecycle.dequeue_and_release_reservation(job_state)
            self._cycle.changes.note(Change.USAGE_CHANGED)
            self._lifecycle.requeue_if_incomplete(job_state)

    def _bind_failed(self, event: BindFailed) -> None:
        self._cycle.failures.starts.came_back(event.job, event.replicas)
        self._pods_gone(PodsGone(event.job, event.replicas, ends_run=False))

    def _pods_run(self, event: PodsRun) -> None:
        cycle, name = self._cycle, event.job
        job_state = self._state.job_states.get(name)
        if job_state is None:
            return
        known = cycle.failures.starts.runs_of(name)
        new = (*(n for n in event.replicas if n not in known),)
        cycle.failures.starts.run(name, new, event.since, self._state.now)
        cycle.failures.starts.note_whole(job_state)
        for placement in (job_state.placements.get(n) for n in new):
            if placement is not None and cycle.failures.quarantine.cleared_by(
                placement.node, chips=bool(placement.chips)
            ):
                cycle.failures.quarantine.forget(placement.node)
                end_quarantine(cycle, placement.node)

    def _pods_refused(self, event: PodsRefused) -> None:
        """Pods are dead: others are to be made, and go elsewhere."""
        cycle, name = self._cycle, event.job
        job_state = self._state.job_states.get(name)
        held = {} if job_state is None else job_state.placements
        refused = [held[n] for n in event.replicas if n in held]
        if job_state is not None and refused:
            self._pods_ending(PodsEnding(name, event.replicas))
            job_state.history.interrupted = True
            cycle.failures.starts.came_back(name, event.replicas)
            cycle.failures.starts.refused(name, self._state.now)
        if cycle.framework.decides:
            why = event.why or "its node refused it"
            pods = tuple(sorted(event.replicas))
            cycle.reports.out.append(Delete(name, pods, Cause.REFUSAL, why))
        for node in sorted({placement.node for placement in refused}):
            chips = any(p.chips for p in refused if p.node == node)
            self._quarantine(name, node, event.why, chips=chips)

    def _quarantine(self, job: str, node: str, why: str, *, chips: bool) -> None:
        """A node that refused a pod of *job* takes no other for a while."""
        cycle, cluster, now = self._cycle, self._state.cluster, self._state.now
        first_s = self._state.settings.repairs.aside_s
        if not first_s:
            return
        known = node in cycle.failures.quarantine.nodes
        found = cycle.failures.quarantine.refused(node, why, now, first_s, chips=chips)
        cycle.failures.repairs.fault_log.node_quarantined(node, why, now, found.until)
        if known:
            return
        cluster.set_quarantined(cluster.index[node], on=True)
        cycle.changes.note(Change.NODES_CHANGED)
        self._lifecycle.give_up_on({node})
        told = f"node {node!r} refused a pod of job {job!r}{f': {why}' * bool(why)}; "
        told += f"it is quarantined for {found.lasts_s:g} s"
        for other in cycle.failures.quarantine.surplus(len(cluster)):
            cycle.failures.quarantine.release(other, now)
            end_quarantine(cycle, other)
            told += f"; too many nodes are quarantined, {other!r} is released"
        if cycle.framework.decides:
            hint = f"check that the device plugin of {node!r} runs"
            report = Report(job, Verdict.QUARANTINED, told, hint, node=node)
            cycle.reports.out.append(report)

    def _pods_ending(self, event: PodsEnding) -> None:
        job_state = self._state.job_states.get(event.job)
        if job_state is None:
            return
        if self._state.end(job_state, event.replicas):  # else the scheduler asked them
            self._cycle.changes.note(Change.USAGE_CHANGED, Change.VICTIMS_CHANGED)
            if job_state.arrived == self._state.now:  # an earlier leader may have
                job_state.history.interrupted = True
        if job_state.terminating:
            if event.job not in self._cycle.failures.repairs.open:
                self._cycle.victim_search.ending[event.job] = job_state
            self._cycle.pending.remove(event.job)
