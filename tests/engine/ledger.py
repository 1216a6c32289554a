"""A model of the state beside the engine: from events and instructions alone.

``hear`` writes down what happens outside, ``heed`` what the engine wants done, and
complains when that is not right; ``compare`` recounts what the engine keeps.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from ringleaf.actions.unstarted import NEVER_RAN
from ringleaf.config.conf import Conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    Event,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodsEnding,
    PodsGone,
    PodsRefused,
    QueueChanged,
    QueueGone,
)
from ringleaf.framework.context import Context
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
    WakeAt,
)
from ringleaf.framework.job_state import Phase
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, FaultMode, Recovery
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.queue import Queue
from ringleaf.plugins.proportion import Proportion
from tests.engine.wards import Wards

Pod = tuple[str, int]
NO_FAULTS = (NEVER_RAN, Cause.REFUSAL)
"""Why pods are deleted that are not repaired: they do not come to run."""


class Use(NamedTuple):
    """What a pod holds."""

    node: str
    chips: frozenset[int]
    resources: tuple[tuple[str, int], ...]
    counts: tuple[tuple[str, int], ...]


class Ledger:
    """What jobs and pods hold, and what they may."""

    def __init__(
        self, nodes: Iterable[Node], queues: Iterable[Queue], conf: Conf
    ) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.queues = {"default": Queue("default")} | {q.name: q for q in queues}
        self.conf = conf
        self.jobs: dict[str, Job] = {}
        self.pods: dict[Pod, Use] = {}
        self.ending: set[Pod] = set()
        self.done: set[Pod] = set()
        self.reported: dict[str, str] = {}
        self.unasked: set[str] = set()
        """Jobs that need not end by themselves any more, and got no report since.
        """
        self.invalid: set[str] = set()
        self.refused: set[str] = set()
        """Those of the invalid ones that never passed validation."""
        self.counts: Counter[str] = Counter()
        self.quiet: dict[str, set[str]] = {}
        """Victim -> its evictors, since a job arrived last."""
        self.evictors: dict[str, set[str]] = {}
        """Victim -> its evictors, ever."""
        self.moving: dict[str, tuple[Placement, ...]] = {}
        """Job -> where it is to start again."""
        self.wards = Wards()
        """What is wrong with pods, and which may be deleted because of it."""

    # What happens.

    def recovery(self, name: str) -> Recovery:
        """What a job wants done about faults, or what counts for all that say nothing.

        A default deletes no pods without chips, and none of the system's.
        """
        job, default = self.jobs[name], self.conf.settings.default_fault_scheduling
        says = (
            job.recovery.mode is not FaultMode.OFF or "fault-scheduling" in job.declined
        )
        if says or job.critical or not job.chips:
            return job.recovery
        return replace(job.recovery, mode=default)

    def hear(self, event: Event) -> None:
        """Write *event* down."""
        self.wards.hear(event, self)
        match event:
            case JobArrived():
                self._arrive(event)
            case JobGone():
                self._leave(event.job)
            case PodsGone() | BindFailed():
                self._pods_gone(event)
            case PodsEnding() | PodsRefused():
                pods = {(event.job, replica) for replica in event.replicas}
                self.ending |= pods & self.pods.keys()
            case NodesChanged():
                self.nodes |= {node.name: node for node in event.nodes}
            case NodesGone():
                self._nodes_gone(event.names)
            case _:
                self._hear_of_rules(event)

    def _hear_of_rules(self, event: Event) -> None:
        match event:
            case QueueChanged():
                self.queues[event.queue.name] = event.queue
            case QueueGone():
                self.queues.pop(event.name, None)
            case ConfChanged():
                self.conf = event.conf

    def _pods_gone(self, event: PodsGone | BindFailed) -> None:
        pods = {(event.job, replica) for replica in event.replicas}
        lost = pods & self.pods.keys()
        for pod in lost:
            self._drop(pod)
        if isinstance(event, PodsGone) and event.succeeded:
            self.done |= {pod for pod in pods if self._is_pod(pod)}

    def _nodes_gone(self, names: Iterable[str]) -> None:
        for name in names:
            self.nodes.pop(name, None)
        for pod, use in [*self.pods.items()]:
            if use.node not in self.nodes:
                self._drop(pod)

    def _leave(self, name: str) -> None:
        for pod in [pod for pod in self.pods if pod[0] == name]:
            self._drop(pod)
        self.done = {pod for pod in self.done if pod[0] != name}
        self._forget(name)

    def _arrive(self, event: JobArrived) -> None:
        name = event.job.name
        if name not in self.jobs:
            self.quiet = {}
            for placement in event.placements:
                if placement.node in self.nodes:
                    self.pods[name, placement.replica] = self._use(event.job, placement)
        self.jobs[name] = event.job

    def _use(self, job: Job, placement: Placement) -> Use:
        """What a pod holds; it counts as what it asked for, if its node has that."""
        chips = frozenset(placement.chips)
        assert len(chips) == len(placement.chips)
        role = job.role_by_pod.get(placement.replica, job)
        counts = Counter(dict(_resources(job, placement.replica)))
        n_chips = min(role.chips, self.nodes[placement.node].chips)
        counts[job.product.resource] += 1000 * n_chips
        return Use(
            placement.node,
            chips,
            _resources(job, placement.replica),
            tuple(sorted(counts.items())),
        )

    def _forget(self, name: str) -> None:
        self.jobs.pop(name, None)
        self.reported.pop(name, None)
        self.invalid.discard(name)
        self.quiet.pop(name, None)
        self.evictors.pop(name, None)

    def _drop(self, pod: Pod) -> None:
        del self.pods[pod]
        self.ending.discard(pod)

    def _is_pod(self, pod: Pod) -> bool:
        job = self.jobs.get(pod[0])
        return job is not None and 0 <= pod[1] < job.n_pods

    # What is to be done.

    def heed(self, said: Instruction) -> None:
        """Write *said* down, if it is right."""
        match said:
            case Bind():
                self._bind(said)
            case Evict():
                self._evict(said)
            case Report() if said.node:
                self.counts[said.verdict.value] += 1
            case Report():
                assert said.job in self.jobs, f"a report on no job: {said}"
                again = self.reported.get(said.job) == said.message
                assert not again or said.job in self.unasked, f"reported twice: {said}"
                self.unasked.discard(said.job)
                self.reported[said.job] = said.message
                self.counts[said.verdict.value] += 1
                if said.verdict.value == "invalid":
                    self.invalid.add(said.job)
            case WakeAt():
                self.counts["wake"] += 1
            case _:
                self._heed_of_faults(said)

    def _heed_of_faults(self, said: Instruction) -> None:
        match said:
            case Delete():
                if said.cause not in NO_FAULTS:
                    self.wards.delete(said, self)
                    pods = {(said.job, n) for n in said.replicas}
                    self.ending |= pods & self.pods.keys()
                self.counts["deleted"] += 1
            case PersistRepair(_job, record) if record and record.moved_for:
                self._move(said)
                self.wards.remember(said, self)
            case PersistRepair():
                self.moving.pop(said.job, None)
                self.wards.remember(said, self)
            case AskToExit():
                self.wards.ask(said, self)
                self.unasked |= set() if said.exits else {said.job}
                self.counts["asked"] += 1
            case ReportFaultyPods():
                recovery = self.recovery(said.job)
                assert recovery.mode.is_external, f"not for others: {said}"
                found = {each.replica: each.cause for each in said.pod_faults}
                assert found == self.wards.faulty(said.job, self), said
                self.counts["pointed"] += 1
            case Repaired():
                held = {
                    n for name, n in self.pods.keys() - self.ending if name == said.job
                }
                done = {n for name, n in self.done if name == said.job}
                assert {*said.record.deleted} <= held | done, f"not whole: {said}"
                self.counts["repaired"] += 1
            case _:
                raise AssertionError(said)

    def _bind(self, said: Bind) -> None:
        job = self.jobs[said.job]
        before = [pod for pod in self.pods if pod[0] == said.job]
        assert said.placements, "a bind of nothing"
        assert len(said.annotations) == len(said.placements)
        for placement in said.placements:
            pod = (said.job, placement.replica)
            assert self._is_pod(pod), f"no such pod: {pod}"
            assert pod not in self.pods, f"bound twice: {pod}"
            assert pod not in self.done, f"bound after it ended: {pod}"
            use = self._use(job, placement)
            self._is_free(use)
            self.pods[pod] = use
        if not before:
            done = sum(pod[0] == said.job for pod in self.done)
            assert len(said.placements) + done >= job.min_pods, f"half a gang: {said}"
        self.wards.bind(said)
        self._within_capability(job, said)
        self.counts["placed" if not before else "joined"] += 1
        self.reported.pop(said.job, None)

    def _is_free(self, use: Use) -> None:
        node = self.nodes[use.node]
        assert node.ready, f"not ready: {use}"
        assert not node.cordoned, f"cordoned: {use}"
        held = {
            chip
            for other in self.pods.values()
            if other.node == use.node
            for chip in other.chips
        }
        assert not use.chips & held, f"a chip twice: {use}"
        for chip in use.chips:
            assert not node.faulty >> chip & 1, f"a faulty chip: {use}"
            assert node.free >> chip & 1, f"a chip that is not free: {use}"

    def _within_capability(self, job: Job, said: Bind) -> None:
        if not any(p.name == "proportion" for tier in self.conf.tiers for p in tier):
            return
        queue = self.queues.get(job.queue)
        assert queue is not None, f"no queue {job.queue}"
        asks = {
            name for each in said.placements for name, _n in _counts(job, each.replica)
        }
        assert queue.is_open or not asks, f"queue {job.queue} is closed"
        used = self.used(job.queue)
        for name, most in queue.capability.items():
            assert used[name] <= most or name not in asks, (
                f"queue {queue.name}: {used[name]} of {most}"
            )

    def _evict(self, said: Evict) -> None:
        job, pods = self.jobs[said.job], {(said.job, n) for n in said.replicas}
        assert pods <= self.pods.keys(), f"no pod to evict: {said}"
        assert not pods & self.ending, f"evicted twice: {said}"
        assert job.preemptable, f"not to be evicted: {said}"
        assert not job.critical, f"of the system: {said}"
        evictor = self.jobs[said.by]
        if said.action == "rearrange":
            self._evict_moved(said)
        elif said.action == "preempt":
            assert evictor.queue == job.queue
            assert evictor.priority > job.priority
        else:
            assert evictor.queue != job.queue
        alive = {pod for pod in self.pods if pod[0] == said.job} - self.ending
        done = sum(pod[0] == said.job for pod in self.done)
        left = alive - pods
        whole = len(alive) + done >= job.min_pods
        assert not left or not whole or len(left) + done >= job.min_pods, (
            f"half a gang stays: {said}"
        )
        self.ending |= pods
        if said.action == "rearrange":
            return
        assert said.job not in self.quiet, f"evicted again: {said}"
        assert said.job not in self.evictors.get(said.by, ()), f"ping-pong: {said}"
        self.quiet.setdefault(said.job, set()).add(said.by)
        self.evictors.setdefault(said.job, set()).add(said.by)
        self.counts["evicted"] += 1

    def _move(self, said: PersistRepair) -> None:
        """A job is to be moved: all of its new place is free, and for no other job."""
        assert said.record is not None
        places = said.record.placements
        assert {place.replica for place in places} == {
            n for name, n in self.pods if name == said.job
        }, f"not all of it is moved: {said}"
        for place in places:
            self._is_free(self._use(self.jobs[said.job], place))
        mine = {(p.node, chip) for p in places for chip in p.chips}
        others = (p for own in self.moving.values() for p in own)
        assert not mine & {(p.node, chip) for p in others for chip in p.chips}
        self.moving[said.job] = places

    def _evict_moved(self, said: Evict) -> None:
        """A job that is moved says so, loses all its pods, and has its new place."""
        job, evictor = self.jobs[said.job], self.jobs[said.by]
        assert job.moving is not None, f"not movable: {said}"
        assert job.priority <= evictor.priority, f"of a higher priority: {said}"
        assert said.job in self.moving, f"no new place was written down: {said}"
        assert {*said.replicas} == {n for name, n in self.pods if name == said.job}
        self.counts["moved"] += 1

    # What it comes to.

    def used(self, queue: str) -> Counter[str]:
        """What the pods of a queue use that are not ending, in thousandths."""
        total: Counter[str] = Counter()
        for name, job in self.jobs.items():
            if job.queue == queue:
                total.update(self._used_by(name))
        return total

    def asked(self, queue: str) -> Counter[str]:
        """What the pods of a queue ask that have not ended well."""
        total: Counter[str] = Counter()
        for job in self._of(queue):
            for replica in range(job.n_pods):
                if (job.name, replica) not in self.done:
                    total.update(dict(_counts(job, replica)))
        return total

    def _of(self, queue: str) -> Iterator[Job]:
        for name, job in self.jobs.items():
            if job.queue == queue and name not in self.refused:
                yield job

    def compare(self, engine: Engine) -> None:
        """Recount what *engine* keeps."""
        self.refused = self.invalid - engine.view.job_states.keys()
        self.wards.settle()
        self._compare_chips(engine)
        self._compare_accounts(engine)
        self._compare_shares(engine)
        self._compare_lists(engine.context)

    def _compare_chips(self, engine: Engine) -> None:
        cluster = engine.view.cluster
        assert cluster.names == sorted(self.nodes)
        repairs = {each.held.owner: each for each in engine.repairs.values()}
        found = {
            (name, held.replica): (cluster.names[held.node], held.chips)
            for name, holdings in cluster.holdings.items()
            for held in holdings
            if name not in repairs
        }
        taken = dict.fromkeys(self.nodes, 0)
        for (name, replica), use in self.pods.items():
            mask = sum(1 << chip for chip in use.chips)
            assert found.pop((name, replica)) == (use.node, mask)
            taken[use.node] |= mask
        held_twice = Counter[tuple[str, int]]()
        for reservation in engine.reservations.values():
            for placement in reservation.placements:
                mask = sum(1 << chip for chip in placement.chips)
                where, kept = found.pop((reservation.owner, placement.replica))
                assert where == placement.node
                assert kept & ~mask == 0
                held_twice.update((where, c) for c in range(64) if kept >> c & 1)
                assert kept & taken[where] == 0, "reserved, and held by a pod"
        for holder, repair in repairs.items():
            alive = {
                n for name, n in self.pods.keys() - self.ending if name == repair.name
            }
            for held in cluster.holdings.get(holder, ()):
                where = cluster.names[held.node]
                assert held.replica in repair.deletion.awaiting_replacement - alive, (
                    "held for no pod"
                )
                held_twice.update((where, c) for c in range(64) if held.chips >> c & 1)
                assert held.chips & taken[where] == 0, "held for repair and by a pod"
        assert not found, f"chips are held that no pod was given: {found}"
        assert all(n == 1 for n in held_twice.values()), "reserved twice"
        for name, chip in held_twice:
            taken[name] |= 1 << chip
        for name, mask in taken.items():
            at = cluster.index[name]
            assert cluster.taken.item(at) == mask, name
            assert cluster.free.item(at) & mask == 0, name
            assert self.nodes[name].free & ~mask & ~cluster.free.item(at) == 0, name

    def _compare_accounts(self, engine: Engine) -> None:
        view = engine.view
        names = {job.queue for job in self.jobs.values()} | view.queue_usage.keys()
        for name in sorted(names):
            account = view.queue_usage[name]
            assert _some(account.allocated) == _some(self.used(name)), name
            assert _some(account.requested) == _some(self.asked(name)), name
            owed: Counter[str] = Counter()
            spare: Counter[str] = Counter()
            for job in self._of(name):
                used = self._used_by(job.name)
                least = least_of(job)
                if any(other == job.name for other, _n in self.done):
                    least = Counter(view.job_states[job.name].facts.min_resources)
                if view.job_states[job.name].phase is Phase.INQUEUE:
                    owed.update({r: max(0, n - used[r]) for r, n in least.items()})
                if job.is_elastic:
                    spare.update({r: max(0, n - least[r]) for r, n in used.items()})
            assert _some(account.inqueue) == _some(owed), name
            assert _some(account.elastic) == _some(spare), name

    def _used_by(self, name: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for pod, use in self.pods.items():
            if pod[0] == name and pod not in self.ending:
                total.update(dict(use.counts))
        return total

    def _compare_shares(self, engine: Engine) -> None:
        """All demand is met, or all of the cluster is given; never more than that."""
        plugin = engine.context.framework.votes.plugins.get("proportion")
        if not isinstance(plugin, Proportion):
            return
        total = Counter[str]()
        for node in self.nodes.values():
            if node.ready:
                total[node.product.resource] += 1000 * node.chips
        assert {k: v for k, v in engine.view.total.items() if k in total} == dict(total)
        names = self.queues.keys() | {job.queue for job in self.jobs.values()}
        for resource, amount in total.items():
            parts = {n: plugin.part(n).deserved.get(resource, 0) for n in names}
            assert sum(parts.values()) <= amount, parts
            low = {n: q.guarantee.get(resource, 0) for n, q in self.queues.items()}
            unmet = [
                name
                for name, queue in self.queues.items()
                if parts[name]
                < min(
                    self.asked(name)[resource],
                    queue.capability.get(resource, amount),
                    amount - sum(low.values()) + low[name],
                )
            ]
            given = sum(parts.values())
            assert not unmet or given > amount - len(names), (parts, unmet)

    def _compare_lists(self, ctx: Context) -> None:
        job_states = ctx.state.job_states
        assert job_states.keys() == self.jobs.keys() - self.refused
        for name, job_state in job_states.items():
            lists = [
                w
                for w in (
                    ctx.pending.unadmitted,
                    ctx.pending.admitted,
                    ctx.pending.best_effort,
                )
                if name in w
            ]
            assert len(lists) <= 1, f"{name} waits twice"
            booked = name in ctx.reservations
            assert not (booked and lists), f"{name} waits and has a reservation"
            held = {n for other, n in self.pods if other == name}
            done = {n for other, n in self.done if other == name}
            assert job_state.placements.keys() == held, name
            lacks = {*range(self.jobs[name].n_pods)} - held - done
            assert {*job_state.missing} == lacks, name
            if lists or booked:
                assert lacks, f"{name} waits for nothing"
            if lists and held:
                assert job_state.phase is Phase.RUNNING, name
            if booked:
                whole = held and len(held) + len(done) >= self.jobs[name].effective_min
                assert not whole, f"{name} runs whole and has a reservation"

    def untold(self, engine: Engine) -> list[str]:
        """Jobs that hold nothing, lack pods, and never got a reason."""
        return [
            name
            for name, job_state in engine.view.job_states.items()
            if not job_state.placements
            and job_state.missing
            and name not in self.reported
        ]


def _resources(job: Job, replica: int) -> tuple[tuple[str, int], ...]:
    for role, own in job.role_ranks:
        if replica in own:
            return tuple(role.demand.resources)
    return ()


def _counts(job: Job, replica: int) -> tuple[tuple[str, int], ...]:
    counts = Counter(dict(_resources(job, replica)))
    for role, own in job.role_ranks:
        if replica in own and role.chips:
            counts[job.product.resource] += 1000 * role.chips
    return tuple(counts.items())


def least_of(job: Job) -> Counter[str]:
    """What the pods ask that must start together.

    Of every role its least, then others, those with chips first.
    """
    total: Counter[str] = Counter()
    numbers = {role.name: list(own) for role, own in job.role_ranks}
    first, then = [], []
    for role, _own in job.role_ranks:
        own = numbers[role.name]
        need = (role.min_available or 0) if job.roles else 0
        first += own[:need]
        then += own[need:]
    for replica in (first + then)[: job.min_pods]:
        total.update(dict(_counts(job, replica)))
    return total


def _some(amounts: dict[str, int] | Counter[str]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount}
