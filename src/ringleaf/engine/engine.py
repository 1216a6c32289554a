"""The engine: events in, instructions out. Start reading at ``Engine.handle``.

It is a pure function of the events so far: no clock, no dice, no I/O. The same events
at the same times give the same instructions, byte for byte.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from ringleaf.actions import VERBS, Verb
from ringleaf.actions.mend import follow, mend
from ringleaf.actions.unstarted import next_look, release_unstarted, take_back_nodes
from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    DeletionsKnown,
    Event,
    FaultsKnown,
    JobArrived,
    JobGone,
    LeavesChanged,
    NodesChanged,
    NodesGone,
    PodsAil,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
    QueueChanged,
    QueueGone,
    RepairKnown,
    Woke,
)
from ringleaf.framework.asides import Aside
from ringleaf.framework.booking import Booking
from ringleaf.framework.conf import DEFAULT, Conf
from ringleaf.framework.cycle import Cycle, short_of_pods
from ringleaf.framework.faultbook import FaultBook
from ringleaf.framework.instruction import (
    Delete,
    Instruction,
    Report,
    Verdict,
    WakeAt,
)
from ringleaf.framework.preference import Score
from ringleaf.framework.repairs import Repair
from ringleaf.framework.session import Session
from ringleaf.framework.standing import Phase, Standing
from ringleaf.framework.statement import Statement
from ringleaf.framework.view import View
from ringleaf.framework.votes import Votes
from ringleaf.framework.waiting import beyond_quota
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Decision, Invalid, Placed
from ringleaf.model.fault import Cause, Deletion, Reach
from ringleaf.model.job import Job, Role
from ringleaf.model.mask import chips_of, mask_of
from ringleaf.model.placement import NO_MARK, Placement
from ringleaf.model.queue import Queue
from ringleaf.model.spine import Leaf
from ringleaf.plugins import PLUGINS
from ringleaf.plugins.predicates import Predicates, without_predicates
from ringleaf.policies.admission import admit, warnings_of
from ringleaf.policies.defaults import with_defaults
from ringleaf.policies.faults import is_sick
from ringleaf.policies.fit import some_of

SAME_PLACE: Final = ("product", "chips", "superpod", "leaf", "slot")
"""Where a node stands; one that moves is another node."""

MAX_ROUNDS: Final = 100
"""How often the actions run after one event, while what they do makes room for more."""
MAX_QUEUES: Final = 4
"""Queues that are named to somebody whose queue is not there."""
SOON_S: Final = 1.0
"""When to go on where that was not enough."""
EARLY_S: Final = 1.0
"""How much too early a wake-up may come, as timers do."""


class Engine:
    """A cluster being scheduled.

    Args:
        nodes: The nodes at the beginning.
        leaves: What is known of leaf switches besides the pods under them.
        queues: The queues at the beginning; there is always one named default.
        conf: The configuration.

    """

    verbs: Mapping[str, Verb] = VERBS
    """What the actions of a configuration do."""

    def __init__(
        self,
        nodes: Iterable[Node],
        leaves: Iterable[Leaf] = (),
        queues: Iterable[Queue] = (),
        conf: Conf = DEFAULT,
    ) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._leaves = tuple(leaves)
        self._given: dict[str, Job] = {}
        self._invalid: dict[str, Invalid] = {}
        self._arrived = 0
        self._wake = inf
        cluster = Cluster(self._nodes.values(), self._leaves)
        self.view = View(cluster, conf.settings, queues)
        votes = Votes(conf.tiers, self.view, PLUGINS)
        session = self._session(conf, votes)
        self.cycle = Cycle(self.view, session, votes, conf, self._nodes)
        self._sick = {node.name for node in self._nodes.values() if is_sick(node)}
        """Nodes on which pods may be faulty."""
        for node in self._nodes.values():
            self.cycle.repairs.book.nodes_changed(None, node, 0.0)
        self._apply: Mapping[type, Callable[[Any], None]] = {
            JobArrived: self._job_arrived,
            JobGone: self._job_gone,
            PodsGone: self._pods_gone,
            PodsEnding: self._pods_ending,
            BindFailed: self._bind_failed,
            PodsAil: self._pods_ail,
            RepairKnown: self._repair_known,
            FaultsKnown: self._faults_known,
            DeletionsKnown: self._deletions_known,
            PodsRun: self._pods_run,
            PodsRefused: self._pods_refused,
            NodesChanged: self._nodes_changed,
            NodesGone: self._nodes_gone,
            LeavesChanged: self._leaves_changed,
            QueueChanged: self._queue_changed,
            QueueGone: self._queue_gone,
            ConfChanged: self._conf_changed,
            Woke: self._woke,
        }

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """What is to be done after *event*."""
        return self.handle_all([event], now)

    def handle_all(
        self, events: Iterable[Event], now: float, most: float = inf
    ) -> list[Instruction]:
        """What is to be done after *events*, which happened together.

        After *most* jobs were started it stops, so that they can be bound while the
        next are decided. The search for victims stops as well, after as much work as
        *most* stands for, and goes on where it was. Call it again, with whatever has
        happened since, as long as it ``is_cut_short``.
        """
        cycle = self.cycle
        cycle.begin(now)
        cycle.most = most
        if cycle.hunt_at - now < EARLY_S:
            cycle.hunt_at = inf
            self._hunt_again()
        for event in events:
            self._apply[type(event)](event)
        take_back_nodes(cycle)
        release_unstarted(cycle)
        if cycle.conf.actions:
            mend(cycle)
            self._act(now)
        if not cycle.has_more:
            self._say_when(now)
        return cycle.out

    def _act(self, now: float) -> None:
        """Run the actions until they make no more room for each other."""
        cycle = self.cycle
        for _round in range(MAX_ROUNDS):
            if cycle.relief:
                cycle.relief = False
                cycle.pending.accounts_changed()
                cycle.waiting.accounts_changed()
                cycle.modest.accounts_changed()
            for action in cycle.conf.actions:
                self.verbs[action](cycle)
                if cycle.is_cut_short:
                    cycle.relief |= bool(cycle.turned_away)  # they come again
                    return
            cycle.tell_turned_away()
            if cycle.repairs.is_news:
                follow(cycle)
            if cycle.search is not None:
                return
            if not (cycle.relief or cycle.failed_since):
                break
            cycle.failed, cycle.failed_since = [*cycle.failed_since], {}
        else:
            cycle.wake_at(now + SOON_S)
        if cycle.untold:
            cycle.tell_the_others()

    def _say_when(self, now: float) -> None:
        """Say when to be called again, if that is news."""
        cycle = self.cycle
        wake = min(cycle.wake, cycle.hunt_at, next_look(cycle))
        if wake != inf and (wake != self._wake or self._wake <= now):
            cycle.out.append(WakeAt(wake))
            self._wake = wake

    @property
    def is_cut_short(self) -> bool:
        """Whether the last call stopped before everything was decided."""
        return self.cycle.has_more

    @property
    def let_in(self) -> Sequence[str]:
        """The jobs that the last call let in."""
        return self.cycle.let_in

    @property
    def set_aside(self) -> Mapping[str, Aside]:
        """The nodes that take no pods for a while, because they refused some."""
        return self.cycle.asides.nodes

    @property
    def bookings(self) -> Mapping[str, Booking]:
        """Reservations by the name of the job that waits."""
        return self.cycle.bookings

    @property
    def book(self) -> FaultBook:
        """Every fault with its life."""
        return self.cycle.repairs.book

    @property
    def deletions(self) -> Iterable[Deletion]:
        """What was deleted lately because of faults, which the brake counts."""
        return self.cycle.repairs.brake.deletions

    @property
    def repairs(self) -> Mapping[str, Repair]:
        """What is being repaired, by the name of the job."""
        return self.cycle.repairs.open

    def explain(self, name: str, *, hints: bool = True) -> Decision:
        """Where a job is, or why it waits, with what would help.

        Without *hints* a running job that lacks pods is told less, in less time.
        """
        if name in self._invalid:
            return self._invalid[name]
        cycle, standing = self.cycle, self.view.standings[name]
        job, cluster = standing.job, self.view.cluster
        if standing.placements and not standing.is_broken:
            warnings = warnings_of(job, self.view.settings)
            return Placed(job, tuple(standing.placements.values()), warnings)
        if standing.placements:
            if name in cycle.resting:
                found = short_of_pods(standing)
                found = replace(found, because=f"{found.because}{standing.why}")
                return cycle.with_reserved(standing, found)
            with Statement(cluster) as statement:
                cycle.repairs.let_go(name, statement, cluster)
                found = cycle.why_short(standing, hints=hints)
            return cycle.with_reserved(standing, found)
        why = standing.why.lstrip(",; ")
        with Statement(cluster) as statement:
            if name in cycle.bookings:
                cycle.bookings[name].let_go(statement, cluster)
            cycle.repairs.let_go(name, statement, cluster)
            if cycle.session.preview(job) is not None:
                held_back = beyond_quota(cycle.session, job, 0)
                hint = self._queue_hint(job.queue, why)
                held_back = replace(held_back, because=why, hint=hint)
                return cycle.with_reserved(standing, held_back)
            waiting = cycle.session.why_waiting(job)
        if why:
            hint = self._queue_hint(job.queue, why) or waiting.hint
            waiting = replace(waiting, because=why, hint=hint)
        return cycle.with_reserved(standing, waiting)

    def _queue_hint(self, name: str, why: str) -> str:
        """What helps a job that its queue holds back; empty if that is not why."""
        if name not in self.view.queues:
            there = some_of(sorted(self.view.queues), MAX_QUEUES) or "none"
            return f"create queue {name!r}, or use one that exists: {there}"
        if self.cycle.door_words(name):
            return f"open queue {name!r}, or use another one"
        if why == self.cycle.full_words(name).lstrip("; "):
            return f"admitted jobs of queue {name!r} must end first"
        return ""

    @property
    def nodes(self) -> Iterable[Node]:
        """The nodes as they were last heard of."""
        return self._nodes.values()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """What is known of leaf switches besides their pods."""
        return self._leaves

    # Jobs and pods.

    def _job_arrived(self, event: JobArrived) -> None:
        name = event.job.name
        standing = self.view.standings.get(name)
        known = {} if standing is None else standing.placements
        if standing is not None and any(
            p.replica not in known for p in event.placements
        ):
            self._found_running(standing, event)
        if self._given.get(name) == event.job:
            return
        self.cycle.repairs.heard_of(event.job)
        job = self._effective(event.job, event.placements or known.values())
        self._given[name] = event.job
        runs = event.placements or (standing is not None and standing.placements)
        never = None if runs else admit(job, self.view.settings)
        if never is not None:
            self._never(standing, never)
            return
        self._invalid.pop(name, None)
        if standing is not None:
            self._job_changed(standing, job)
            return
        self._somebody_comes(name)
        standing = Standing(job, self._arrived, self.view.now)
        if event.waiting_since is not None:
            standing.waiting_since = min(event.waiting_since, self.view.now)
        self.view.enter(standing)
        if event.placements:
            self._hold(standing, event)
        elif name in self.cycle.repairs:
            self.cycle.admit(standing)
        elif "enqueue" in self.cycle.conf.actions:
            self.cycle.newcomers[name] = standing
            self._shares_change(job.queue)
            return
        self._wait_if_short(standing)

    def _somebody_comes(self, name: str) -> None:
        """A new job is called *name*: others may be evicted, and nobody else is."""
        cycle, view = self.cycle, self.view
        self._arrived += 1
        cycle.arrivals += 1
        if cycle.spared:
            cycle.spared = False
            self._hunt_again()
        cycle.avoid(name)
        for repair in cycle.repairs.open.values():
            repair.avoid(name, view.cluster, view.standings.get(repair.name))

    def _found_running(self, standing: Standing, event: JobArrived) -> None:
        """Pods of a known job run of which nothing was known."""
        self._stop_waiting(standing)
        new = [p for p in event.placements if p.replica not in standing.placements]
        self._hold(standing, replace(event, placements=tuple(new)))
        self._wait_if_short(standing)

    def _never(self, standing: Standing | None, never: Invalid) -> None:
        """A job that can never be placed counts for nothing."""
        name = never.job.name
        if standing is not None:
            self._drop(standing)
        known = self._invalid.get(name)
        self._invalid[name] = never
        news = known is None or known.message != never.message
        if news and self.cycle.conf.actions:
            told = Report(
                name,
                Verdict.INVALID,
                never.message,
                never.hint,
                warnings=never.warnings,
            )
            self.cycle.out.append(told)

    def _hold(self, standing: Standing, event: JobArrived) -> None:
        """Pods of a new job run already; what was reserved there is theirs."""
        repairs = self.cycle.repairs
        known = self._nodes.keys()
        lost = {p.replica: p for p in event.placements if p.node not in known}
        if lost:
            repairs.lost(standing.job.name, lost)
        if repairs.vanished:
            here = {p.replica for p in event.placements} - lost.keys()
            repairs.running(standing.job.name, here)
        nodes = {placement.node for placement in event.placements}
        if self.cycle.bookings:
            self._give_up(nodes)
        meets = [r for r in repairs.open.values() if not r.nodes.isdisjoint(nodes)]
        for repair in meets:
            repair.drop(self.view.cluster)
        cluster, job = self.view.cluster, standing.job
        roles = standing.role_by_pod
        with Statement(cluster) as statement:
            for placement in event.placements:
                if placement.node in cluster.index:
                    asked = roles.get(placement.replica, job)
                    node = cluster.index[placement.node]
                    own = self._own_chips(job, placement)
                    # What is written on a pod may be other chips than it has, or none.
                    charged = min(asked.chips, cluster.size.item(node))
                    statement.hold(
                        job.name,
                        node,
                        own,
                        placement.replica,
                        placement.mark or NO_MARK,
                        demand=asked.demand,
                        charged=None if charged == own.bit_count() else charged,
                    )
                    standing.placements[placement.replica] = placement
            statement.commit()
        for repair in meets:
            repair.hold(cluster, self.view.standings.get(repair.name))
        if job.name in repairs or not nodes.isdisjoint(self._sick):
            repairs.suspects[job.name] = None
        standing.started = self.view.now if event.started is None else event.started
        self.cycle.starts.found(job.name)
        self.cycle.pods_came(job)

    def _own_chips(self, job: Job, placement: Placement) -> int:
        """The chips of a pod that nobody else holds; others are told, and stay put."""
        cluster, chips = self.view.cluster, mask_of(placement.chips)
        clash = chips & cluster.taken.item(cluster.index[placement.node])
        if clash:
            twice = ", ".join(map(str, chips_of(clash)))
            told = (
                f"job {job.name!r}: pod {placement.replica} is on chips {twice} of "
                f"node {placement.node!r}, which another pod holds already"
            )
            hint = "evict one of the two"
            self.cycle.out.append(Report(job.name, Verdict.CONFLICT, told, hint))
        return chips & ~clash

    def _job_changed(self, standing: Standing, job: Job) -> None:
        """A known job is another now; its pods stay where they are."""
        cycle = self.cycle
        self._stop_waiting(standing)
        asked = standing.ask
        cycle.become(standing, job)
        if standing.ask != asked:
            standing.before, standing.told = standing.told, ""
            standing.why = ""  # it began with what it wanted
        self._relabel_pods(job)
        cycle.relief = True
        self._hunt_again()
        self._wait_if_short(standing)

    def _relabel_pods(self, job: Job) -> None:
        """Pods that run have the labels that *job* says."""
        roles = job.role_by_pod
        demands = {number: role.demand for number, role in roles.items()}
        with Statement(self.view.cluster) as statement:
            if statement.relabel(job.name, demands):
                statement.commit()
                self.cycle.pods_came(job)

    def _effective(self, job: Job, held: Iterable[Placement]) -> Job:
        """*job* with what counts of its demands by the configuration.

        And with the labels that the configuration fills in; *held* is where its pods
        are.
        """
        plugin = self.cycle.votes.plugins.get("predicates")
        strip = (
            plugin.effective if isinstance(plugin, Predicates) else without_predicates
        )
        demand, roles = strip(job.demand), job.roles
        if any(strip(role.demand) != role.demand for role in roles):
            roles = tuple(replace(role, demand=strip(role.demand)) for role in roles)
        repair = self.cycle.repairs.get(job.name)
        if repair is not None and repair.reach is Reach.JOB and repair.deleted:
            job = replace(job, previous=repair.previous)
        if demand != job.demand or roles is not job.roles:
            job = replace(job, demand=demand, roles=roles)
        return with_defaults(job, self.view.settings, held)

    def _wait_if_short(self, standing: Standing) -> None:
        """A job waits for the pods it lacks, not while some of its pods are ending.

        One that has lost all its pods waits from the beginning.
        """
        name = standing.job.name
        self.cycle.stop_waiting(name)
        repair = self.cycle.repairs.get(name)
        awaited = repair is not None and repair.awaited
        if name in self.cycle.bookings or standing.terminating or awaited:
            return
        if standing.placements:
            self.view.move(standing, Phase.RUNNING)
            if standing.is_broken and standing.waiting_since <= (standing.started or 0):
                standing.waiting_since = self.view.now
        elif standing.phase is Phase.RUNNING:
            standing.started, standing.waiting_since = None, self.view.now
            self.view.move(standing, Phase.PENDING)
        if standing.phase is Phase.PENDING and name in self.cycle.repairs:
            self.cycle.admit(standing)
        if standing.missing:
            self.cycle.wait(standing)

    def _job_gone(self, event: JobGone) -> None:
        self._given.pop(event.job, None)
        self._invalid.pop(event.job, None)
        if not event.returns:
            self.cycle.starts.forget(event.job)
        standing = self.view.standings.get(event.job)
        if standing is not None:
            self._drop(standing)
        repairs = self.cycle.repairs
        repair = repairs.get(event.job)
        if event.returns:
            if repair is not None:
                repair.awaited = set()
                repair.hold(self.view.cluster, None)
            return
        repairs.forget(event.job)
        self.cycle.repairs.book.job_gone(event.job, self.view.now)
        if repair is not None:
            del repairs.open[event.job]
            repair.drop(self.view.cluster)
            self.cycle.freed(self.view.cluster.products)

    def _pods_ail(self, event: PodsAil) -> None:
        standing = self.view.standings.get(event.job)
        placements = {} if standing is None else standing.placements
        repairs = self.cycle.repairs
        before = repairs.ails.get(event.job, {}).keys()
        repairs.pods_ail(event.job, event.ailments, placements)
        gone = before - repairs.ails.get(event.job, {}).keys()
        if gone and repairs.gone(event.job, gone) and standing is not None:
            self._wait_if_short(standing)
        self.cycle.repairs.book.pods_ail(event.job, event.ailments, self.view.now)

    def _faults_known(self, event: FaultsKnown) -> None:
        self.cycle.repairs.book.known(event.faults, self.view.now)
        cluster, asides = self.view.cluster, self.cycle.asides
        for fault in event.faults:
            node, until = fault.where, fault.until or 0.0
            refuses = fault.cause is Cause.REFUSAL and fault.recovered is None
            known = node in asides.nodes or node not in cluster.index
            if refuses and not known and until > self.view.now:
                asides.adopt(node, fault.why, fault.seen, until)
                cluster.set_aside(cluster.index[node])

    def _deletions_known(self, event: DeletionsKnown) -> None:
        self.cycle.repairs.brake.known(event.deletions, self.view.now)

    def _repair_known(self, event: RepairKnown) -> None:
        """Somebody else began to repair a job, or did; who leads knows better."""
        repairs, name, record = self.cycle.repairs, event.job, event.record
        used = max(record.retries_used, repairs.retries_used.get(name, 0))
        if used:
            repairs.retries_used[name] = used
        repair = repairs.get(name)
        if repair is not None and self.cycle.conf.actions:
            return
        if repair is not None:
            del repairs.open[name]
            repair.drop(self.view.cluster)
        if record.is_over or not (record.ailments or record.deleted):
            return
        repair = Repair.of(name, record, self._given.get(name))
        repair.retries_used = used
        repairs.open[name] = repair
        if record.deleted_at is not None:
            repairs.brake.count_once(record.deleted_at, name, len(record.deleted))
        standing = self.view.standings.get(name)
        repair.hold(self.view.cluster, standing)
        self.cycle.ends.pop(name, None)
        if standing is not None:
            repairs.suspects[name] = None
            held = standing.placements.values()
            self.cycle.become(standing, self._effective(self._given[name], held))
            if standing.phase is Phase.PENDING:
                self.cycle.admit(standing)
                self._wait_if_short(standing)

    def _let_go_for_repairs(self) -> None:
        """Nothing is held for repairs: pods may be there that were not known."""
        for repair in self.cycle.repairs.open.values():
            repair.drop(self.view.cluster)

    def _hold_for_repairs(self) -> None:
        for repair in self.cycle.repairs.open.values():
            standing = self.view.standings.get(repair.name)
            repair.hold(self.view.cluster, standing)

    def _stop_waiting(self, standing: Standing) -> None:
        """A job waits for nothing, and has nothing reserved."""
        name = standing.job.name
        self.cycle.stop_waiting(name)
        if name in self.cycle.bookings:
            self.cycle.give_up(self.cycle.bookings[name])

    def _drop(self, standing: Standing) -> None:
        """A job is no more, nor what it held."""
        cycle, name = self.cycle, standing.job.name
        self._stop_waiting(standing)
        self._release(standing, (*standing.placements,))
        cycle.ends.pop(name, None)
        cycle.untold.pop(name, None)
        self.view.leave(standing)
        cycle.relief = True

    def _pods_gone(self, event: PodsGone) -> None:
        standing = self.view.standings.get(event.job)
        if standing is None:
            return
        gone = self._release(standing, event.replicas)
        repair = self.cycle.repairs.get(event.job)
        awaited = self.cycle.repairs.gone(event.job, event.replicas)
        done = event.succeeded and self.view.finish(standing, event.replicas)
        if done and repair is not None:
            repair.hold(self.view.cluster, standing)
        if gone or done or awaited:
            self._stop_waiting(standing)
            self.cycle.relief = True
            self._wait_if_short(standing)

    def _bind_failed(self, event: BindFailed) -> None:
        self.cycle.starts.came_back(event.job, event.replicas)
        self._pods_gone(PodsGone(event.job, event.replicas))

    def _pods_run(self, event: PodsRun) -> None:
        cycle, name = self.cycle, event.job
        standing = self.view.standings.get(name)
        if standing is None:
            return
        known = cycle.starts.runs_of(name)
        new = (*(n for n in event.replicas if n not in known),)
        cycle.starts.run(name, new, event.since, self.view.now)
        cycle.note_whole(standing)
        for placement in (standing.placements.get(n) for n in new):
            if placement is not None and cycle.asides.cleared_by(
                placement.node, chips=bool(placement.chips)
            ):
                cycle.asides.forget(placement.node)
                cycle.opened(placement.node)

    def _pods_refused(self, event: PodsRefused) -> None:
        """Pods are dead: others are to be made, and go elsewhere."""
        cycle, name = self.cycle, event.job
        standing = self.view.standings.get(name)
        held = {} if standing is None else standing.placements
        refused = [held[n] for n in event.replicas if n in held]
        if refused:
            self._pods_ending(PodsEnding(name, event.replicas))
            cycle.starts.came_back(name, event.replicas)
            cycle.starts.refused(name, self.view.now)
        if cycle.conf.actions:
            why = event.why or "its node refused it"
            pods = tuple(sorted(event.replicas))
            cycle.out.append(Delete(name, pods, Cause.REFUSAL, why))
        for node in sorted({placement.node for placement in refused}):
            chips = any(p.chips for p in refused if p.node == node)
            self._set_aside(name, node, event.why, chips=chips)

    def _set_aside(self, job: str, node: str, why: str, *, chips: bool) -> None:
        """A node that refused a pod of *job* takes no other for a while."""
        cycle, cluster, now = self.cycle, self.view.cluster, self.view.now
        first_s = self.view.settings.repairs.aside_s
        if not first_s:
            return
        known = node in cycle.asides.nodes
        found = cycle.asides.refused(node, why, now, first_s, chips=chips)
        cycle.repairs.book.set_aside(node, why, now, found.until)
        if known:
            return
        cluster.set_aside(cluster.index[node])
        cycle.structure += 1
        self._give_up({node})
        told = f"node {node!r} refused a pod of job {job!r}{f': {why}' * bool(why)}; "
        told += f"it is quarantined for {found.lasts_s:g} s"
        for other in cycle.asides.surplus(len(cluster)):
            cycle.take_back(other)
            told += f"; too many nodes are quarantined, {other!r} is released"
        if cycle.conf.actions:
            hint = f"check that the device plugin of {node!r} runs"
            report = Report(job, Verdict.SET_ASIDE, told, hint, node=node)
            cycle.out.append(report)

    def _pods_ending(self, event: PodsEnding) -> None:
        standing = self.view.standings.get(event.job)
        if standing is None:
            return
        self.view.end(standing, event.replicas)
        self.cycle.relief = True
        if standing.terminating:
            if event.job not in self.cycle.repairs:
                self.cycle.ends[event.job] = standing
            self.cycle.stop_waiting(event.job)

    def _release(self, standing: Standing, replicas: Iterable[int]) -> bool:
        """Pods hold nothing any more; whether they did before."""
        name, cluster = standing.job.name, self.view.cluster
        held = standing.placements.keys() & {*replicas}
        if not held:
            return False
        with Statement(cluster) as statement:
            statement.release_pods(name, held)
            statement.commit()
        repair = self.cycle.repairs.get(name)
        nodes = {standing.placements[replica].node for replica in held}
        for replica in held:
            del standing.placements[replica]
        standing.terminating -= held
        if not standing.terminating:
            self.cycle.ends.pop(name, None)
        if repair is not None:
            repair.deleted |= held & repair.ever
            repair.hold(cluster, standing)
        indexes = [cluster.index[node] for node in sorted(nodes)]
        products = {cluster.product_of(node): None for node in indexes}
        self.cycle.freed(products, nodes, name)
        return True

    # Nodes, leaves, queues, configuration, time.

    def _nodes_changed(self, event: NodesChanged) -> None:
        changed = [n for n in event.nodes if self._nodes.get(n.name) != n]
        if not changed:
            return
        moved = [n for n in changed if not self._in_place(n)]
        for node in changed:
            before = self._nodes.get(node.name)
            self.cycle.repairs.book.nodes_changed(before, node, self.view.now)
        self._nodes |= {node.name: node for node in changed}
        self._give_up({node.name for node in changed})
        self._suspect(changed)
        if moved:
            self._let_go_for_repairs()
            self._rebuild({node.name for node in changed})
            return
        cluster = self.view.cluster
        for node in changed:
            cluster.change(cluster.index[node.name], node)
        self._hold_for_repairs()
        self._nodes_are_new({node.product: None for node in changed})

    def _suspect(self, changed: Iterable[Node]) -> None:
        """Pods on nodes that changed may be faulty, or faulty no more."""
        names = {node.name for node in changed}
        sick = {node.name for node in changed if is_sick(node)}
        self._sick = self._sick - names | sick
        repairs = self.cycle.repairs
        suspects = repairs.suspects
        meets = [r.name for r in repairs.open.values() if r.concerns(names)]
        told = [
            name
            for name, ailments in repairs.pointed.items()
            if any(each.node in names for each in ailments)
        ]
        suspects |= dict.fromkeys([*meets, *told])
        for name, standing in self.view.standings.items() if sick else ():
            if any(each.node in sick for each in standing.placements.values()):
                suspects[name] = None

    def _in_place(self, node: Node) -> bool:
        """Whether *node* stands where it stood."""
        known = self._nodes.get(node.name)
        return known is not None and all(
            getattr(known, key) == getattr(node, key) for key in SAME_PLACE
        )

    def _nodes_gone(self, event: NodesGone) -> None:
        gone = self._nodes.keys() & {*event.names}
        if not gone:
            return
        for standing in list(self.view.standings.values()):
            lost = {r: p for r, p in standing.placements.items() if p.node in gone}
            if lost:
                self._lost(standing, lost)
                self._release(standing, lost)
                self._wait_if_short(standing)
        self._give_up(gone)
        self._let_go_for_repairs()
        for name in gone:
            self.book.nodes_changed(self._nodes.pop(name), None, self.view.now)
            self.cycle.asides.forget(name)
        self._sick -= gone
        self._rebuild()

    def _lost(self, standing: Standing, lost: Mapping[int, Placement]) -> None:
        """Pods vanish with their nodes; of those that end, only what we deleted."""
        repair = self.cycle.repairs.get(standing.job.name)
        ours = set() if repair is None else repair.deleted
        ending = standing.terminating - ours
        gone = {n: place for n, place in lost.items() if n not in ending}
        self.cycle.repairs.lost(standing.job.name, gone)

    def _leaves_changed(self, event: LeavesChanged) -> None:
        if self._leaves != event.leaves:
            self._leaves = event.leaves
            self._rebuild()

    def _give_up(self, nodes: Collection[str]) -> None:
        """Reservations on *nodes* are no more; they are no longer what they were."""
        cycle = self.cycle
        for booking in cycle.booked_on(nodes):
            cycle.give_up(booking)
            cycle.wait(self.view.standings[booking.job.name])

    def _rebuild(self, changed: Collection[str] = ()) -> None:
        """Nodes came, went or moved: the cluster is made anew; pods stay.

        Of nodes that are not *changed*, what is free is known better than they said.
        """
        old = self.view.cluster
        for name, at in old.index.items():
            if name in self._nodes:
                node, taken = self._nodes[name], old.taken.item(at)
                said = node.free if name in changed else old.pool.item(at)
                self._nodes[name] = replace(node, free=said | taken)
        cluster = Cluster(self._nodes.values(), self._leaves)
        with Statement(cluster) as statement:
            for job, holdings in old.holdings.items():
                for held in holdings:
                    statement.hold(
                        job,
                        cluster.index[old.names[held.node]],
                        held.chips,
                        held.replica,
                        held.mark,
                        demand=held.demand,
                        charged=held.charged,
                    )
            statement.commit()
        for name in self.cycle.asides.nodes:
            cluster.set_aside(cluster.index[name])
        self.view.watch(cluster)
        self.cycle.session = self._session(self.cycle.conf, self.cycle.votes)
        self._hold_for_repairs()
        self._nodes_are_new(cluster.products)

    def _nodes_are_new(self, products: Iterable[Any]) -> None:
        """Whatever was known of nodes is to be looked at again."""
        cycle = self.cycle
        self.view.count()
        cycle.structure += 1
        cycle.freed(products)

    def _queue_changed(self, event: QueueChanged) -> None:
        self.view.put(event.queue)
        self._accounts_are_new()

    def _queue_gone(self, event: QueueGone) -> None:
        self.view.drop(event.name)
        self._accounts_are_new()

    def _accounts_are_new(self) -> None:
        self._hunt_again()
        self.cycle.relief = True
        self.cycle.structure += 1
        self.cycle.moves += 1

    def _conf_changed(self, event: ConfChanged) -> None:
        cycle, conf = self.cycle, event.conf
        before = cycle.conf
        same_rules = (conf.settings, conf.tiers) == (before.settings, before.tiers)
        invalid = list(self._invalid)
        if not cycle.conf.actions:
            self._invalid.clear()  # who kept the books told nobody
        cycle.passed.clear()
        cycle.search, cycle.failed, cycle.failed_since = None, [], {}
        cycle.votes.retire()
        cycle.conf = conf
        self.view.settings = conf.settings
        cycle.votes = Votes(conf.tiers, self.view, PLUGINS)
        cycle.session = self._session(conf, cycle.votes)
        for booking in list(cycle.bookings.values()):
            cycle.give_up(booking)
        for standing in list(self.view.standings.values()):
            if same_rules and self._is_complete(standing):
                continue
            held = standing.placements.values()
            job = self._effective(self._given[standing.job.name], held)
            cycle.stop_waiting(job.name)
            never = None if standing.placements else admit(job, conf.settings)
            if never is not None:
                self._never(standing, never)
                continue
            if job.recovery != standing.job.recovery:
                cycle.repairs.suspects[job.name] = None
            if job != standing.job:
                self.view.leave(standing)
                standing.become(job)
                self.view.enter(standing)
            self._wait_if_short(standing)
        for name in invalid:
            self._job_arrived(JobArrived(self._given.pop(name)))
        cycle.structure += 1
        cycle.moves += 1
        cycle.relief = True

    def _is_complete(self, standing: Standing) -> bool:
        """Whether a job runs with all its pods, and nothing is wrong with it."""
        repaired = standing.job.name in self.cycle.repairs
        runs = standing.phase is Phase.RUNNING and not standing.terminating
        return runs and not repaired and not standing.missing

    def _woke(self, _event: Woke) -> None:
        """An hour that is due is asked for anew if it was too early."""
        if self._wake - self.view.now < EARLY_S:
            self._wake = inf

    def _shares_change(self, queue: str) -> None:
        """More is asked in *queue*: others may have more than their share now."""
        cycle = self.cycle
        if "reclaim" in cycle.conf.actions:
            cycle.moves += 1
            for waitlist in (cycle.waiting, cycle.pending):
                waitlist.reopen_others(queue)

    def _hunt_again(self) -> None:
        """Who may be evicted may have changed: look again for everybody."""
        if {"preempt", "reclaim"} & {*self.cycle.conf.actions}:
            self.cycle.moves += 1
            self.cycle.passed.clear()
            self.cycle.waiting.everything_changed()
            self.cycle.pending.everything_changed()

    def _session(self, conf: Conf, votes: Votes) -> Session:
        """A session that heeds what plugins say of nodes."""
        affinity = [p for tier in conf.tiers for p in tier if p.name == "affinity"]
        summed = any(p.arguments.get("sum-scores") is True for p in affinity)
        return Session(
            self.view.cluster,
            conf.settings,
            scorer=partial(_scorer, self.view, votes),
            bars=votes.predicate,
            sum_scores=summed,
        )


def _scorer(view: View, votes: Votes, job: Job, role: Role) -> Score | None:
    """How plugins score nodes for a pod of *role*; None where none does."""
    probe = np.zeros(min(1, len(view.cluster)), np.int64)
    if votes.node_scores(job, role, probe) is None:
        return None
    return partial(_scores, votes, job, role)


def _scores(votes: Votes, job: Job, role: Role, nodes: Any) -> Any:  # noqa: ANN401
    found = votes.node_scores(job, role, nodes)
    return np.zeros(len(nodes)) if found is None else found
