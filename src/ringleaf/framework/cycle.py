"""One scheduling cycle: what its actions work on, and how jobs start and give way.

The engine begins a cycle for every batch of events and runs the actions of the
configuration: admit, start reserved jobs, allocate, backfill, preempt, reclaim,
reserve. The actions choose jobs; ``Cycle.attempt`` tries one.
"""

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from ringleaf.framework.budget import REFUSED, TRIED, Planning, Slice, VictimSearchState
from ringleaf.framework.changes import Change, Changes
from ringleaf.framework.failures import Failures
from ringleaf.framework.framework import Framework
from ringleaf.framework.instruction import Bind, Evict, Instruction
from ringleaf.framework.job_state import NONE_OF_THEM, JobState, Phase
from ringleaf.framework.pending import PendingJobs
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.placer import Placer
from ringleaf.framework.quota import Quota
from ringleaf.framework.reasons import PendingCause, QueueReason
from ringleaf.framework.repair import Repair
from ringleaf.framework.repairs import Repairs
from ringleaf.framework.reports import Reports
from ringleaf.framework.reservation import Reservation
from ringleaf.framework.reservations import Reservations
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed, Waiting
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.product import Product
from ringleaf.policies.admission import warnings_of
from ringleaf.policies.annotations import pod_annotations


class Cycle:
    """The state between actions; one for each engine, begun anew for every cycle.

    Args:
        state: The cluster, the queues and the state of every job.
        framework: Plugins and settings.
        nodes: The nodes as they were last heard of.

    """

    def __init__(
        self, state: SchedulerState, framework: Framework, nodes: Mapping[str, Node]
    ) -> None:
        self.view, self.framework = state, framework
        self.changes = changes = Changes()
        self.failures = failures = Failures(nodes)
        self.reports = Reports(state)
        self.victim_search = VictimSearchState()
        self.pending = PendingJobs(
            framework, failures, changes, self.reports, self.victim_search
        )
        self.reservations = Reservations(state, framework, changes)
        self.quota = Quota(state, framework, self.reservations, failures.repairs)
        self.placer = Placer(
            state, framework, changes, self.reservations, failures.repairs
        )
        self.planning = Planning(changes)
        self.slice = Slice()

    def begin(self, now: float, most: float, *, resumes: bool = False) -> None:
        """Begin a cycle of at most *most* starts, or one that *resumes* a search."""
        self.view.now = now
        self.reservations.idle.budget.count(now, self.reservations.idle.chips)
        self.reports.begin()
        self.victim_search.begin(resumes=self.has_more)
        self.pending.rejected = []
        self.slice.begin(resumes=resumes)
        self.slice.most = most
        self.planning.cost = 0

    @property
    def now(self) -> float:
        """The time of this cycle."""
        return self.view.now

    @property
    def out(self) -> list[Instruction]:
        """What is to be done, in order."""
        return self.reports.out

    @property
    def repairs(self) -> Repairs:
        """What is known of faults, and of jobs that are repaired."""
        return self.failures.repairs

    @property
    def has_more(self) -> bool:
        """Whether there is more to decide than may be in this cycle."""
        stopped = self.slice.is_cut_short or self.slice.is_spent
        return stopped or self.victim_search.resume is not None

    def wake_at(self, time: float) -> None:
        """Something changes by itself at *time*."""
        if time > self.now:
            self.slice.wake = min(self.slice.wake, time)

    # One job.

    def attempt(
        self, line: EquivalenceClass, refused: dict[Job, QueueReason] | None = None
    ) -> bool:
        """Try the first job of *line*; whether it was placed, or left the line.

        What was *refused* by the quota of a queue, and why, is kept there; as long as
        no job starts or reserves, the quota gives the same answer to the same request.
        """
        refused = {} if refused is None else refused
        _key, job_state = line.front
        waiting, reports = self.pending.waiting, self.reports
        if job_state.phase is not Phase.RUNNING:
            refusal = self.framework.votes.job_valid(job_state)
            if refusal is not None:
                why = QueueReason(PendingCause.REFUSED, detail=refusal)
                reports.report_pending(job_state, why)
                self.pending.remove(job_state.job.name)
                return True
        overdue = self.pending.lost_min_available(job_state)
        is_like_others = not (
            overdue
            or job_state.placements
            or job_state.finished
            or self.reservations.aged
            or job_state.job.name in self.reservations
        )
        self.slice.cost += REFUSED
        known = refused.get(job_state.untimed_key) if is_like_others else None
        limit = None if known else self.quota.limit(job_state, overdue=overdue)
        if limit is None:
            why = known or self.quota.no_room(job_state)
            if is_like_others:
                refused[job_state.untimed_key] = why
            waiting.hold_back(line, why)
            self.victim_search.fail(line)
            reports.report_pending(job_state, why)
            return False
        if isinstance(line.why, Waiting) and self.placer.lacks_room(job_state):
            waiting.close(line, line.why)  # what was reported still holds
            self.victim_search.fail(line)
            return False
        self.slice.cost += TRIED
        found = self.placer.place(job_state, limit)
        if isinstance(found, tuple):
            self.start(job_state, found)
            return True
        found = self.placer.with_reserved(job_state, found)
        self._note_stuck(job_state)
        waiting.close(line, found)
        self.victim_search.fail(line)
        reports.report_pending(job_state, found)
        return False

    def _note_stuck(self, job_state: JobState) -> None:
        """Pods of a job that is repaired find no place."""
        repair = self.repairs.get(job_state.job.name)
        if repair is not None and repair.stuck_at is None:
            repair.stuck_at = self.now
            self.changes.note(Change.REPAIR_MOVED)

    def start(self, job_state: JobState, placements: tuple[Placement, ...]) -> None:
        """Pods were placed: bind them; the job waits only for pods it still lacks."""
        job, starts = job_state.job, self.failures.starts
        self.pending.remove(job.name)
        job_state.placements |= {p.replica: p for p in placements}
        placed = Placed(job, placements)
        repair, cluster = self.repairs.get(job.name), self.view.cluster
        written = tuple(_written(cluster, placed, p, repair) for p in placements)
        warnings = warnings_of(job, self.view.settings)
        self.out.append(Bind(job.name, placements, written, warnings))
        self.slice.bound.add(job.name)
        if repair is None:
            self.pods_started()
        else:
            self.pods_found(job)  # no other job could use what was held for it
        job_state.history.reported = job_state.history.reported_before = ""
        job_state.history.why, job_state.history.bound_at = None, self.now
        job_state.promised = NONE_OF_THEM
        if job_state.phase is Phase.RUNNING:
            starts.join(job.name, [p.replica for p in placements], self.now)
        else:
            job_state.started, job_state.history.interrupted = self.now, False
            starts.begin(job.name, self.now)
            self.view.move(job_state, Phase.RUNNING)
        if job_state.missing:
            self.pending.add(job_state)
        self._repaired_pods(job_state, {p.replica for p in placements})

    def _repaired_pods(self, job_state: JobState, new: set[int]) -> None:
        """Pods of a job found a place; less is held for its repair."""
        name = job_state.job.name
        self.repairs.placed(name, new)
        repair = self.repairs.get(name)
        if repair is None:
            return
        repair.stuck_at = None
        repair.deletion.pods -= new
        repair.deletion.forced -= new
        nodes = repair.held.nodes
        repair.hold(self.view.cluster, job_state)
        if nodes - repair.held.nodes:
            self.capacity_freed(self.view.cluster.products, nodes)
        self.changes.note(Change.REPAIR_MOVED)

    def become(self, job_state: JobState, job: Job) -> None:
        """Replace the spec of a job; it waits as before, in its line or in none."""
        waits = self.pending.leave_line(job.name)
        self.view.leave(job_state)
        job_state.become(job)
        self.view.enter(job_state)
        self.reservations.job_changed(job_state)
        if waits:
            self.pending.add(job_state)

    # What gives way.

    def evict(
        self, victim: JobState, replicas: tuple[int, ...], by: str, action: str
    ) -> None:
        """Ask pods to end, for the job *by*."""
        name = victim.job.name
        self.view.end(victim, replicas)
        self.changes.note(Change.USAGE_CHANGED)
        victim.history.evicted_by |= {by}
        victim.history.interrupted = True
        victim.history.evicted_in = self.victim_search.arrivals
        self.victim_search.ending[name] = victim
        self.pending.remove(name)
        self.out.append(Evict(name, tuple(sorted(replicas)), by, action))

    def end_for_repair(
        self, job_state: JobState, replicas: Collection[int], repair: Repair
    ) -> None:
        """Pods are deleted because of faults; no other job waits for what they hold."""
        reservation = self.reservations.get(job_state.job.name)
        if reservation is not None:
            self.give_up(reservation)
        self.view.end(job_state, replicas)
        self.pending.remove(job_state.job.name)
        self.changes.note(Change.USAGE_CHANGED)
        if repair.scope is RestartScope.JOB:
            self.become(job_state, replace(job_state.job, previous=repair.previous))
        repair.held.spare = self.placer.spares(job_state, repair)
        repair.hold(self.view.cluster, job_state)
        if (
            job_state.missing
            and not job_state.terminating
            and not repair.deletion.awaited
        ):
            self.pending.add(job_state)

    # Reservations.

    def reserve(self, job_state: JobState, reservation: Reservation) -> None:
        """Make a reservation; its job waits for it and in no line.

        As long as it does, its queue keeps no room for it besides.
        """
        self.pending.remove(job_state.job.name)
        if not job_state.placements:
            self.view.move(job_state, Phase.PENDING)
        self.changes.note(Change.USAGE_CHANGED)
        self.reservations.add(job_state, reservation)

    def start_reserved(self) -> None:
        """Start jobs that have a reservation, as far as something is free since."""
        for reservation in self.reservations:
            if self.slice.cut_short():
                return
            tried, over_quota = self.reservations.tried, self.reservations.over_quota
            if reservation not in tried and reservation not in over_quota:
                self.start_with(reservation)

    def start_with(self, reservation: Reservation) -> bool:
        """Try a job with its reservation and everything else that is free.

        A reservation that is all free, and does not help, is given up.
        """
        job_state = self.view.job_states[reservation.job.name]
        found = self._placed_with(reservation, job_state)
        if found is not None:
            self.reservations.remove(reservation)
            self.start(job_state, found)
            self.capacity_freed(self.view.cluster.products, reservation.nodes)
            return True
        if not reservation.blockers:
            self.give_up(reservation)
            self.pending.add(job_state)
        return False

    def _placed_with(
        self, reservation: Reservation, job_state: JobState
    ) -> tuple[Placement, ...] | None:
        """Places for a job with what it reserved, which then holds nothing."""
        if self.placer.lacks_room_with(reservation, job_state):
            self.reservations.tried.add(reservation)
            return None
        limit = self.quota.limit(job_state, overdue=reservation.beyond)
        if limit is None:
            self.reservations.over_quota.add(reservation)
            return None
        cluster = self.view.cluster
        with Statement(cluster) as statement:
            statement.drop(reservation.owner)
            found = self.placer.place_beside_reservations(
                job_state, limit, reasons=False
            )
            if not isinstance(found, tuple):
                self.reservations.tried.add(reservation)
                return None
            statement.commit()
            return found

    def heed_budget(self) -> bool:
        """Whether reservations may be made; they end once their budget is used up."""
        reservations = self.reservations
        budget, idle = reservations.idle.budget, reservations.idle.chips
        if self.framework.conf.reservation.idle_budget and not (idle or budget.used):
            return True
        self.wake_at(budget.update(reservations.idle.limit, idle))
        for reservation in reservations.aged if budget.is_spent else ():
            self.give_up(reservation)
            self.pending.add(self.view.job_states[reservation.job.name])
        return not budget.is_spent

    def give_up(self, reservation: Reservation) -> None:
        """A reservation is no more; what it held is free."""
        self.reservations.release(reservation)
        self.capacity_freed(self.view.cluster.products, reservation.nodes)

    # What changes for pending jobs.

    def capacity_freed(
        self,
        products: Iterable[Product],
        nodes: Collection[str] | None = None,
        job: str = "",
    ) -> None:
        """Something is free that was not, on *nodes* or anywhere; *job* held it."""
        self.changes.note(Change.CAPACITY_FREED)
        listed = list(products)
        self.pending.waiting.supply(listed)
        self.pending.best_effort.supply(listed)
        self.reservations.capacity_freed(nodes, job)

    def pods_found(self, job: Job) -> None:
        """Pods of *job* are where no other job could start; some may evict them.

        Of pods that start on what was free this is not said: what others could not use
        with their victims before, they cannot use with these.
        """
        self.pods_started()
        if self.framework.preempts:
            self.victim_search.outranked_now(job)

    def pods_started(self) -> None:
        """Pods are there that were not: wake jobs with pod affinity."""
        pending = self.pending
        lists = pending.waiting, pending.best_effort, pending.gated
        woken = [waitlist.pods_came() for waitlist in lists]
        if any(woken):
            self.changes.note(Change.USAGE_CHANGED)
        self.changes.note(Change.PODS_STARTED)

    def victims_changed(self) -> None:
        """Jobs may be evicted that could not be: search again for every job."""
        if self.framework.evicts:
            self.changes.note(Change.VICTIMS_CHANGED)
            self.pending.waiting.everything_changed()
            self.pending.gated.everything_changed()

    def opened(self, node: str) -> None:
        """A node is not quarantined any longer."""
        cluster = self.view.cluster
        at = cluster.index[node]
        cluster.quarantine(at, aside=False)
        self.repairs.fault_log.taken_back(node, self.now)
        self.changes.note(Change.NODES_CHANGED)
        self.capacity_freed([cluster.product_of(at)])


def _written(
    cluster: Cluster, placed: Placed, placement: Placement, repair: Repair | None
) -> dict[str, str]:
    """What is written on a pod; of one whose job ran on, whether it returned."""
    found = pod_annotations(cluster, placed, placement)
    if repair is not None and repair.scope is not RestartScope.JOB and found:
        before = repair.placements.get(placement.replica)
        if before is not None and before.node == placement.node:
            found["reschedule-in-place"] = "true"
    return found
