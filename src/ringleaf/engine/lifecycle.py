"""What events of jobs, pods and nodes have in common: requeue, release, remove."""

from collections.abc import Collection, Iterable

from ringleaf.actions.start import give_up
from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.statement import Statement


class JobLifecycle:
    """The steps that events have in common."""

    def __init__(self, ctx: Context) -> None:
        self._ctx, self._state = ctx, ctx.state

    def requeue_if_incomplete(self, job_state: JobState) -> None:
        """Put a job that lacks pods back into the queue.

        Not while it has a reservation, pods of it end, or deleted pods are awaited. A
        job that lost all pods waits from now on, and is admitted again.
        """
        name = job_state.job.name
        self._ctx.pending.remove(name)
        repair = self._ctx.repairs.open.get(name)
        awaited = repair is not None and repair.deletion.deletion_unobserved
        if name in self._ctx.reservations or job_state.terminating or awaited:
            return
        if job_state.placements:
            self._state.set_phase(job_state, Phase.RUNNING)
            if job_state.below_min_available and job_state.waiting_since <= (
                job_state.started or 0
            ):
                job_state.waiting_since = self._state.now
        elif job_state.phase is Phase.RUNNING:
            job_state.started, job_state.waiting_since = None, self._state.now
            self._state.set_phase(job_state, Phase.PENDING)
        if job_state.phase is Phase.PENDING and name in self._ctx.repairs.open:
            self._ctx.pending.admit(job_state)
        if job_state.missing:
            self._ctx.pending.add(job_state)

    def dequeue_and_release_reservation(self, job_state: JobState) -> None:
        """Take a job out of the queue, and release its reservation."""
        name = job_state.job.name
        self._ctx.pending.remove(name)
        reservation = self._ctx.reservations.get(name)
        if reservation is not None:
            give_up(self._ctx, reservation)

    def release(self, job_state: JobState, replicas: Iterable[int]) -> bool:
        """Pods hold nothing any more; whether they did before."""
        name, cluster = job_state.job.name, self._state.cluster
        held = job_state.placements.keys() & {*replicas}
        if not held:
            return False
        with Statement(cluster) as statement:
            statement.release_pods(name, held)
            statement.commit()
        repair = self._ctx.repairs.open.get(name)
        nodes = {job_state.placements[replica].node for replica in held}
        for replica in held:
            del job_state.placements[replica]
        job_state.terminating -= held
        if not job_state.terminating:
            self._ctx.victim_search.ending.pop(name, None)
        if repair is not None:
            # A pod that was placed again after its deletion is gone once more.
            repair.deletion.awaiting_replacement |= held & repair.deletion.deleted
            repair.hold_places(cluster, job_state)
        indexes = [cluster.index[node] for node in sorted(nodes)]
        products = {cluster.product_of(node): None for node in indexes}
        self._ctx.wakeups.capacity_freed(products, nodes, name)
        return True

    def remove_job(self, job_state: JobState) -> None:
        """A job is no more, nor what it held."""
        ctx, name = self._ctx, job_state.job.name
        pending = not job_state.placements
        self.dequeue_and_release_reservation(job_state)
        self.release(job_state, (*job_state.placements,))
        ctx.victim_search.ending.pop(name, None)
        ctx.reports.unreported.pop(name, None)
        self._state.leave(job_state)
        ctx.wakeups.note(Change.USAGE_CHANGED)
        if pending:
            ctx.wakeups.shares_changed(job_state.job.queue)

    def give_up_reservations_on(self, nodes: Collection[str]) -> None:
        """Release the reservations on *nodes*, which have changed."""
        ctx = self._ctx
        for reservation in ctx.reservations.concerned(nodes):
            give_up(ctx, reservation)
            ctx.pending.add(self._state.job_states[reservation.job.name])
