"""Pods that run, end, are refused or could not be bound."""

from ringleaf.actions.unstarted import end_quarantine
from ringleaf.engine.event import (
    BindFailed,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
)
from ringleaf.engine.lifecycle import JobLifecycle
from ringleaf.engine.run_recorder import RunRecorder
from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.instruction import Delete, Report, Verdict
from ringleaf.model.fault import Cause


class PodEvents:
    """What is done after an event of pods."""

    def __init__(
        self, ctx: Context, lifecycle: JobLifecycle, runs: RunRecorder
    ) -> None:
        self._ctx, self._state, self._lifecycle = ctx, ctx.state, lifecycle
        self._runs = runs

    def pods_gone(self, event: PodsGone) -> None:
        """Release what pods held; their job goes back into the queue."""
        job_state = self._state.job_states.get(event.job)
        if job_state is None:
            return
        gone = self._lifecycle.release(job_state, event.replicas)
        repair = self._ctx.repairs.open.get(event.job)
        awaited = self._ctx.repairs.confirm_gone(event.job, event.replicas)
        done = event.succeeded and self._state.mark_succeeded(job_state, event.replicas)
        if done and repair is not None:
            repair.hold_places(self._state.cluster, job_state)
        if done:
            is_over = not job_state.remaining.n_pods
        else:
            is_over = gone and event.ends_run and not job_state.placements
        if is_over:
            self._runs.ended(job_state)
        if gone or done or awaited:
            self._lifecycle.dequeue_and_release_reservation(job_state)
            self._ctx.wakeups.note(Change.USAGE_CHANGED)
            self._lifecycle.requeue_if_incomplete(job_state)

    def bind_failed(self, event: BindFailed) -> None:
        """Pods that were bound hold nothing."""
        self._ctx.pods_ready.came_back(event.job, event.replicas)
        self.pods_gone(PodsGone(event.job, event.replicas, ends_run=False))

    def pods_run(self, event: PodsRun) -> None:
        """Pods started; a node that refused others may take pods again."""
        ctx, name = self._ctx, event.job
        job_state = self._state.job_states.get(name)
        if job_state is None:
            return
        known = ctx.pods_ready.runs_of(name)
        new = (*(n for n in event.replicas if n not in known),)
        ctx.pods_ready.run(name, new, event.since, self._state.now)
        ctx.pods_ready.is_whole(job_state)
        for placement in (job_state.placements.get(n) for n in new):
            if placement is not None and ctx.pods_ready.quarantine.cleared_by(
                placement.node, chips=bool(placement.chips)
            ):
                ctx.pods_ready.quarantine.forget(placement.node)
                end_quarantine(ctx, placement.node)

    def pods_refused(self, event: PodsRefused) -> None:
        """Pods are dead: others are to be made, and go elsewhere."""
        ctx, name = self._ctx, event.job
        job_state = self._state.job_states.get(name)
        held = {} if job_state is None else job_state.placements
        refused = [held[n] for n in event.replicas if n in held]
        if job_state is not None and refused:
            self.pods_ending(PodsEnding(name, event.replicas))
            job_state.history.interrupted = True
            ctx.pods_ready.came_back(name, event.replicas)
            ctx.pods_ready.refused(name, self._state.now)
        if ctx.framework.has_actions:
            why = event.why or "its node refused it"
            pods = tuple(sorted(event.replicas))
            ctx.reports.emit(Delete(name, pods, Cause.REFUSAL, why))
        for node in sorted({placement.node for placement in refused}):
            chips = any(p.chips for p in refused if p.node == node)
            self._quarantine(name, node, event.why, chips=chips)

    def _quarantine(self, job: str, node: str, why: str, *, chips: bool) -> None:
        """A node that refused a pod of *job* takes no other for a while."""
        ctx, cluster, now = self._ctx, self._state.cluster, self._state.now
        first_s = self._state.settings.repairs.aside_s
        if not first_s:
            return
        known = node in ctx.pods_ready.quarantine.nodes
        found = ctx.pods_ready.quarantine.refused(node, why, now, first_s, chips=chips)
        ctx.repairs.fault_log.node_quarantined(node, why, now, found.until)
        if known:
            return
        cluster.set_quarantined(cluster.index[node], on=True)
        ctx.wakeups.note(Change.NODES_CHANGED)
        self._lifecycle.give_up_reservations_on({node})
        message = (
            f"node {node!r} refused a pod of job {job!r}{f': {why}' * bool(why)}; "
        )
        message += f"it is quarantined for {found.lasts_s:g} s"
        for other in ctx.pods_ready.quarantine.surplus(len(cluster)):
            ctx.pods_ready.quarantine.release(other, now)
            end_quarantine(ctx, other)
            message += f"; too many nodes are quarantined, {other!r} is released"
        if ctx.framework.has_actions:
            hint = f"check that the device plugin of {node!r} runs"
            report = Report(job, Verdict.QUARANTINED, message, hint, node=node)
            ctx.reports.emit(report)

    def pods_ending(self, event: PodsEnding) -> None:
        """Pods are terminating."""
        job_state = self._state.job_states.get(event.job)
        if job_state is None:
            return
        if self._state.mark_terminating(
            job_state, event.replicas
        ):  # else the scheduler asked them
            self._ctx.wakeups.note(Change.USAGE_CHANGED, Change.VICTIMS_CHANGED)
            if job_state.arrived == self._state.now:  # an earlier leader may have
                job_state.history.interrupted = True
        if job_state.terminating:
            if event.job not in self._ctx.repairs.open:
                self._ctx.victim_search.ending[event.job] = job_state
            self._ctx.pending.remove(event.job)
