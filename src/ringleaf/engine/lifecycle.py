"""What becomes of a job when its pods come or go: it waits, or holds nothing."""

from collections.abc import Collection, Iterable

from ringleaf.actions.reserved import give_up
from ringleaf.framework.changes import Change
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.statement import Statement


class JobLifecycle:
    """The steps that events have in common."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle, self._state = cycle, cycle.view

    def requeue_if_incomplete(self, job_state: JobState) -> None:
        """Put a job that lacks pods back into the queue.

        Not while it has a reservation, pods of it end, or deleted pods are awaited. A
        job that lost all pods waits from now on, and is admitted again.
        """
        name = job_state.job.name
        self._cycle.pending.remove(name)
        repair = self._cycle.failures.repairs.open.get(name)
        awaited = repair is not None and repair.deletion.awaited
        if name in self._cycle.reservations or job_state.terminating or awaited:
            return
        if job_state.placements:
            self._state.move(job_state, Phase.RUNNING)
            if job_state.below_min_available and job_state.waiting_since <= (
                job_state.started or 0
            ):
                job_state.waiting_since = self._state.now
        elif job_state.phase is Phase.RUNNING:
            job_state.started, job_state.waiting_since = None, self._state.now
            self._state.move(job_state, Phase.PENDING)
        if (
            job_state.phase is Phase.PENDING
            and name in self._cycle.failures.repairs.open
        ):
            self._cycle.pending.admit(job_state)
        if job_state.missing:
            self._cycle.pending.add(job_state)

    def dequeue_and_release_reservation(self, job_state: JobState) -> None:
        """Take a job out of the queue, and release its reservation."""
        name = job_state.job.name
        self._cycle.pending.remove(name)
        reservation = self._cycle.reservations.get(name)
        if reservation is not None:
            give_up(self._cycle, reservation)

    def release(self, job_state: JobState, replicas: Iterable[int]) -> bool:
        """Pods hold nothing any more; whether they did before."""
        name, cluster = job_state.job.name, self._state.cluster
        held = job_state.placements.keys() & {*replicas}
        if not held:
            return False
        with Statement(cluster) as statement:
            statement.release_pods(name, held)
            statement.commit()
        repair = self._cycle.failures.repairs.open.get(name)
        nodes = {job_state.placements[replica].node for replica in held}
        for replica in held:
            del job_state.placements[replica]
        job_state.terminating -= held
        if not job_state.terminating:
            self._cycle.victim_search.ending.pop(name, None)
        if repair is not None:
            repair.deletion.pods |= held & repair.deletion.ever
            repair.hold(cluster, job_state)
        indexes = [cluster.index[node] for node in sorted(nodes)]
        products = {cluster.product_of(node): None for node in indexes}
        self._cycle.wakeups.capacity_freed(products, nodes, name)
        return True

    def remove_job(self, job_state: JobState) -> None:
        """A job is no more, nor what it held."""
        cycle, name = self._cycle, job_state.job.name
        pending = not job_state.placements
        self.dequeue_and_release_reservation(job_state)
        self.release(job_state, (*job_state.placements,))
        cycle.victim_search.ending.pop(name, None)
        cycle.reports.unreported.pop(name, None)
        self._state.leave(job_state)
        cycle.changes.note(Change.USAGE_CHANGED)
        if pending:
            cycle.wakeups.shares_changed(job_state.job.queue)

    def give_up_on(self, nodes: Collection[str]) -> None:
        """Reservations on *nodes* are no more; they are no longer what they were."""
        cycle = self._cycle
        for reservation in cycle.reservations.concerned(nodes):
            give_up(cycle, reservation)
            cycle.pending.add(self._state.job_states[reservation.job.name])
