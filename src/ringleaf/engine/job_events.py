"""Jobs that arrive, change or are gone."""

from collections.abc import Iterable

from msgspec.structs import replace

from ringleaf.engine.event import JobArrived, JobGone
from ringleaf.engine.lifecycle import JobLifecycle
from ringleaf.engine.node_events import NodeEvents
from ringleaf.engine.run_recorder import RunRecorder
from ringleaf.framework.changes import Change
from ringleaf.framework.context import Context
from ringleaf.framework.instruction import Report, Verdict
from ringleaf.framework.job_state import JobState
from ringleaf.framework.state import charged
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Holding
from ringleaf.model.decision import Invalid
from ringleaf.model.demand import Demand
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job
from ringleaf.model.mask import chips_of, mask_of
from ringleaf.model.owner import Owner
from ringleaf.model.placement import NO_MARK, Placement
from ringleaf.plugins.predicates import without_predicates
from ringleaf.policies.defaults import with_defaults
from ringleaf.policies.validation import validate


class AdoptedJobs:
    """Jobs that were found running, and what their pods hold.

    Args:
        cluster: Where they run; it does not change while jobs are added.

    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.events: dict[str, JobArrived] = {}
        """By the name of the job."""
        self.held: list[tuple[Owner, Holding]] = []
        """Every job with what one of its pods holds."""
        self._taken: dict[int, int] = {}
        """Node -> its chips that pods hold, those of *events* among them."""

    def add(self, event: JobArrived) -> bool:
        """Whether a new job is one of them.

        It is not if its node is unknown, or another pod holds one of its chips.
        """
        if event.job.name in self.events:
            return False
        index, taken = self._cluster.index, self._taken
        new: dict[int, int] = {}
        for placement in event.placements:
            node = index.get(placement.node)
            if node is None:
                return False
            held = new.get(node, taken.get(node))
            held = self._cluster.taken.item(node) if held is None else held
            chips = mask_of(placement.chips)
            if chips & held:
                return False
            new[node] = held | chips
        taken |= new
        self.events[event.job.name] = event
        return True

    def hold(self, job_state: JobState, event: JobArrived) -> None:
        """The pods of a job hold what *event* says."""
        cluster, job, roles = self._cluster, job_state.job, job_state.facts.role_by_pod
        for placement in event.placements:
            asked = roles.get(placement.replica, job)
            node, chips = cluster.index[placement.node], mask_of(placement.chips)
            holding = Holding(
                node,
                chips,
                placement.replica,
                placement.mark or NO_MARK,
                asked.demand,
                charged(cluster, node, chips, asked),
            )
            self.held.append((job.name, holding))
            job_state.placements[placement.replica] = placement


class JobEvents:
    """The jobs as they were submitted, and those that can never be placed."""

    def __init__(
        self,
        ctx: Context,
        lifecycle: JobLifecycle,
        nodes: NodeEvents,
        runs: RunRecorder,
    ) -> None:
        self._ctx, self._state = ctx, ctx.state
        self._lifecycle, self._nodes, self._runs = lifecycle, nodes, runs
        self.submitted: dict[str, Job] = {}
        """Every job as it was submitted, without defaults."""
        self.invalid: dict[str, Invalid] = {}
        self._arrived = 0

    def jobs_arrived(self, events: Iterable[JobArrived]) -> None:
        """Jobs arrive one by one; new ones that run well already, together."""
        found = None
        for event in events:
            if event.placements and self._is_new_and_healthy(event):
                found = found or AdoptedJobs(self._state.cluster)
                if found.add(event):
                    continue
            if found is not None:
                self._add_adopted(found)
                found = None
            self.job_arrived(event)
        if found is not None:
            self._add_adopted(found)

    def _is_new_and_healthy(self, event: JobArrived) -> bool:
        """Whether a job is new, its pods run, and nothing else is touched by it."""
        name, ctx, faulty = event.job.name, self._ctx, self._nodes.faulty
        if name in self.submitted:
            return False
        if (
            ctx.repairs.may_concern(name)
            or ctx.reservations
            or ctx.victim_search.skipped_recently_evicted
        ):
            return False
        return not faulty or all(each.node not in faulty for each in event.placements)

    def _add_adopted(self, found: AdoptedJobs) -> None:
        """Do for all jobs of *found* what ``job_arrived`` does for each.

        Jobs without faults, on nodes without faults, are not inspected.
        """
        ctx, state = self._ctx, self._state
        job_states = []
        for event in found.events.values():
            job = self.effective_job(event.job, event.placements)
            self.submitted[job.name] = event.job
            self._arrived += 1
            job_state = JobState(job, self._arrived, state.now)
            if event.waiting_since is not None:
                job_state.waiting_since = min(event.waiting_since, state.now)
            job_state.started = state.now if event.started is None else event.started
            found.hold(job_state, event)
            job_states.append(job_state)
        ctx.victim_search.arrivals += len(job_states)
        with Statement(state.cluster) as statement:
            statement.hold_many(found.held)
            statement.commit()
        for job_state in job_states:
            state.enter_running(job_state)
            ctx.pods_ready.adopt(job_state.job.name)
            if job_state.missing:
                self._lifecycle.requeue_if_incomplete(job_state)
        for job in {(s.job.queue, s.job.priority): s.job for s in job_states}.values():
            ctx.wakeups.victims_appeared(job)

    def job_arrived(self, event: JobArrived) -> None:
        """A job is new or changed, or runs pods that were not known."""
        name = event.job.name
        job_state = self._state.job_states.get(name)
        known = {} if job_state is None else job_state.placements
        if job_state is not None and any(
            p.replica not in known for p in event.placements
        ):
            self._adopt_pods(job_state, event)
        if self.submitted.get(name) == event.job:
            return
        self._ctx.repairs.job_changed(event.job)
        job = self.effective_job(event.job, event.placements or known.values())
        self.submitted[name] = event.job
        runs = event.placements or (job_state is not None and job_state.placements)
        settings = self._state.settings
        never = None if runs else validate(job, settings)
        if never is not None:
            self.reject_invalid(job_state, never)
            return
        self.invalid.pop(name, None)
        if job_state is not None:
            self._job_changed(job_state, job)
            return
        self._note_arrival()
        job_state = JobState(job, self._arrived, self._state.now)
        job_state.validated_for = None if runs else settings
        if event.waiting_since is not None:
            job_state.waiting_since = min(event.waiting_since, self._state.now)
        self._state.enter(job_state)
        if event.placements:
            self._hold(job_state, event)
        elif name in self._ctx.repairs.open:
            self._ctx.pending.admit(job_state)
        elif self._ctx.framework.has_enqueue:
            self._ctx.pending.just_arrived[name] = job_state
            self._ctx.wakeups.shares_changed(job.queue)
            return
        self._lifecycle.requeue_if_incomplete(job_state)

    def _note_arrival(self) -> None:
        """A new job is there: pods may be evicted that were spared."""
        ctx = self._ctx
        self._arrived += 1
        ctx.victim_search.arrivals += 1
        if ctx.victim_search.skipped_recently_evicted:
            ctx.victim_search.skipped_recently_evicted = False
            ctx.wakeups.victims_changed()

    def _adopt_pods(self, job_state: JobState, event: JobArrived) -> None:
        """Pods of a known job run of which nothing was known."""
        self._lifecycle.dequeue_and_release_reservation(job_state)
        new = [p for p in event.placements if p.replica not in job_state.placements]
        self._hold(job_state, replace(event, placements=tuple(new)))
        self._lifecycle.requeue_if_incomplete(job_state)

    def reject_invalid(self, job_state: JobState | None, never: Invalid) -> None:
        """Report a job that can never be placed; it uses and requests nothing."""
        name = never.job.name
        if job_state is not None:
            self._lifecycle.remove_job(job_state)
        known = self.invalid.get(name)
        self.invalid[name] = never
        news = known is None or known.message != never.message
        if news and self._ctx.framework.has_actions:
            message = Report(
                name,
                Verdict.INVALID,
                never.message,
                never.hint,
                warnings=never.warnings,
            )
            self._ctx.reports.emit(message)

    def _hold(self, job_state: JobState, event: JobArrived) -> None:
        """Pods of a new job run already; what was reserved there is theirs."""
        repairs = self._ctx.repairs
        known = self._nodes.by_name.keys()
        lost = {p.replica: p for p in event.placements if p.node not in known}
        if lost:
            repairs.note_lost_with_node(job_state.job.name, lost)
        if repairs.lost_with_node:
            here = {p.replica for p in event.placements} - lost.keys()
            repairs.clear_lost_with_node(job_state.job.name, here)
        nodes = {placement.node for placement in event.placements}
        if self._ctx.reservations:
            self._lifecycle.give_up_reservations_on(nodes)
        meets = [r for r in repairs.open.values() if not r.held.nodes.isdisjoint(nodes)]
        for repair in meets:
            repair.release_places(self._state.cluster)
        cluster, job = self._state.cluster, job_state.job
        roles = job_state.facts.role_by_pod
        with Statement(cluster) as statement:
            for placement in event.placements:
                if placement.node in cluster.index:
                    asked = roles.get(placement.replica, job)
                    node = cluster.index[placement.node]
                    own = self._own_chips(job, placement)
                    statement.hold_placement(
                        job.name,
                        placement,
                        asked.demand,
                        chips=own,
                        charged=charged(cluster, node, own, asked),
                    )
                    job_state.placements[placement.replica] = placement
            statement.commit()
        for repair in meets:
            repair.hold_places(cluster, self._state.job_states.get(repair.name))
        if job.name in repairs.open or not nodes.isdisjoint(self._nodes.faulty):
            repairs.suspects[job.name] = None
        job_state.started = self._state.now if event.started is None else event.started
        self._ctx.pods_ready.adopt(job.name)
        self._ctx.wakeups.victims_appeared(job)

    def _own_chips(self, job: Job, placement: Placement) -> int:
        """The chips of a pod that no other holds; others are reported, and stay put."""
        cluster, chips = self._state.cluster, mask_of(placement.chips)
        clash = chips & cluster.taken.item(cluster.index[placement.node])
        if clash:
            twice = ", ".join(map(str, chips_of(clash)))
            message = (
                f"job {job.name!r}: pod {placement.replica} is on chips {twice} of "
                f"node {placement.node!r}, which another pod holds already"
            )
            hint = "evict one of the two"
            self._ctx.reports.emit(Report(job.name, Verdict.CONFLICT, message, hint))
        return chips & ~clash

    def _job_changed(self, job_state: JobState, job: Job) -> None:
        """A known job is another now; its pods stay where they are."""
        ctx = self._ctx
        self._lifecycle.dequeue_and_release_reservation(job_state)
        asked = job_state.facts.scheduling_key
        ctx.wakeups.replace_spec(job_state, job)
        if job_state.facts.scheduling_key != asked:
            history = job_state.history
            history.reported_before, history.reported = history.reported, ""
            history.why = None  # its words named the old request
        self._relabel_pods(job)
        ctx.wakeups.note(Change.USAGE_CHANGED)
        ctx.wakeups.victims_changed()
        self._lifecycle.requeue_if_incomplete(job_state)

    def _relabel_pods(self, job: Job) -> None:
        """Pods that run have the labels that *job* says."""
        roles = job.role_by_pod
        demands = {number: role.demand for number, role in roles.items()}
        with Statement(self._state.cluster) as statement:
            if statement.relabel(job.name, demands):
                statement.commit()
                self._ctx.wakeups.victims_appeared(job)

    def effective_job(self, job: Job, held: Iterable[Placement]) -> Job:
        """*job* as it is scheduled; *held* is where its pods are.

        Demands that the configuration ignores are removed, defaults and a predicted
        running time are filled in.
        """
        votes = self._ctx.framework.votes

        def strip(demand: Demand) -> Demand:
            found = votes.effective_demand(demand)
            return without_predicates(demand) if found is None else found

        demand, roles = strip(job.demand), job.roles
        if [role for role in roles if strip(role.demand) != role.demand]:
            roles = tuple(replace(role, demand=strip(role.demand)) for role in roles)
        repair = self._ctx.repairs.open.get(job.name)
        if (
            repair is not None
            and repair.scope is RestartScope.JOB
            and repair.deletion.awaiting_replacement
        ):
            job = replace(job, previous=repair.previous)
        if demand != job.demand or roles is not job.roles:
            job = replace(job, demand=demand, roles=roles)
        job = self._runs.with_run_time(job)
        return with_defaults(job, self._state.settings, held)

    def job_gone(self, event: JobGone) -> None:
        """A job ended or was deleted."""
        self.submitted.pop(event.job, None)
        self.invalid.pop(event.job, None)
        if not event.returns:
            self._ctx.pods_ready.forget(event.job)
        job_state = self._state.job_states.get(event.job)
        if job_state is not None:
            if event.ends_run:
                self._runs.ended(job_state)
            self._lifecycle.remove_job(job_state)
        repairs = self._ctx.repairs
        repair = repairs.open.get(event.job)
        if event.returns:
            if repair is not None:
                repair.deletion.deletion_unobserved = set()
                repair.hold_places(self._state.cluster, None)
            return
        repairs.forget(event.job)
        self._ctx.repairs.fault_log.job_gone(event.job, self._state.now)
        if repair is not None:
            del repairs.open[event.job]
            repair.release_places(self._state.cluster)
            self._ctx.wakeups.capacity_freed(self._state.cluster.products)
