"""Queues share the cluster by weight, within guarantee and capability.

Two limits follow for each queue, resource by resource. Its *real capability* is the
most it may ever use: its capability, and what the guarantees of others leave. What it
*deserves* is its part now: the cluster is filled like vessels of different width, each
to the same level times its weight, but at least to its guarantee and at most to what
its jobs ask and its real capability allows. What a queue does not need so falls to the
others. A resource that the cluster does not count is limited by the capability alone.

Where we differ from Volcano: it raises queues to their guarantees after it has shared
the cluster out, and so gives away more than there is; here the guarantees are part of
the filling, also those of queues without jobs, and the parts never exceed the cluster.
A victim must use something of which its queue has too much.

Source: Volcano ``pkg/scheduler/plugins/proportion``.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct

from ringleaf.config.arguments import Value
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin, Victim, Vote, use_of
from ringleaf.framework.state import QueueUsage, SchedulerState
from ringleaf.model.amounts import NONE, Amounts, add
from ringleaf.model.queue import Queue


class QueueShare(Struct, frozen=True):
    """The limits of one queue; a resource that they do not name is not limited."""

    capability: Mapping[str, int]
    """The most it may ever use."""
    deserved: Mapping[str, int]
    """Its part of the cluster now."""


class Claim(Struct, frozen=True):
    """What a queue can be given of one resource; without a weight just the low."""

    weight: int
    low: int
    high: int


_UNLIMITED: Final = QueueShare(NONE, NONE)


class Proportion(Plugin):
    """Votes by what queues deserve."""

    by_rank: ClassVar[frozenset[str]] = frozenset({"Reclaimable"})

    def __init__(self, view: SchedulerState, arguments: Mapping[str, Value]) -> None:
        super().__init__(view, arguments)
        self._version = -1
        self._parts: dict[str, QueueShare] = {}
        self._named: dict[Victim, _Named] = {}
        """The victims that were named last."""
        self._lost: dict[str, dict[str, int]] = {}
        self._n_lost = 0

    def part(self, queue: str) -> QueueShare:
        """The limits of *queue* now."""
        if self._version != self.view.demand_version:
            self._version = self.view.demand_version
            self._catch_up()
        return self._parts.get(queue, _UNLIMITED)

    def _catch_up(self) -> None:
        """Share the cluster out again."""
        view = self.view
        asked = {name: each.requested for name, each in view.queue_usage.items()}
        self._parts = queue_shares(view.total, view.queues, asked)

    def share(self, queue: Queue) -> float:
        """How much of its part *queue* uses, of the resource it uses most."""
        used = self.view.queue_usage[queue.name].allocated
        deserved = self.part(queue.name).deserved
        return max((_ratio(used.get(r, 0), n) for r, n in deserved.items()), default=0)

    def queue_order(self, queue: Queue) -> tuple[int, float]:
        """Higher priority first, then the queue that uses less of its part."""
        return -queue.priority, self.share(queue)

    def overused(self, queue: Queue) -> bool:
        """Whether it uses its part or more of every resource that its jobs ask."""
        account = self.view.queue_usage[queue.name]
        asks = any(account.requested.values())
        deserved, used = self.part(queue.name).deserved, account.allocated
        rest = inf if self.view.unnamed is None else self.view.unnamed
        return asks and all(
            deserved.get(name, rest) <= used.get(name, 0)
            for name, amount in account.requested.items()
            if amount
        )

    def allocatable(self, queue: Queue, amounts: Amounts) -> bool:
        """Whether it is open, and its part has room for *amounts*."""
        used = self.view.queue_usage[queue.name].allocated
        deserved = self.part(queue.name).deserved
        rest = inf if self.view.unnamed is None else self.view.unnamed
        return queue.is_open and all(
            amount + used.get(name, 0) <= deserved.get(name, rest)
            for name, amount in amounts.items()
            if amount
        )

    def queue_limits(self, queue: Queue) -> Amounts:
        """What it deserves."""
        return self.part(queue.name).deserved

    def admission_limits(self, queue: Queue) -> Amounts:
        """The most it may ever use."""
        return self.part(queue.name).capability

    def preemptive(self, queue: Queue, amounts: Amounts) -> bool:
        """The same: a queue evicts for what it deserves."""
        return self.allocatable(queue, amounts)

    def job_enqueueable(self, job_state: JobState) -> Vote:
        """Permit while what is admitted stays within the real capability."""
        queue = self.view.queues.get(job_state.job.queue)
        if queue is None or not queue.is_open:
            return Vote.REJECT
        account = self.view.queue_usage[queue.name]
        limits = self.part(queue.name).capability
        # Of pods that are not made yet, quotas are named besides what nodes have.
        rest = None if job_state.job.podless else self.view.unnamed
        for name, amount in job_state.facts.min_resources.items():
            most = limits.get(name, rest)
            if amount and most is not None and amount + _taken(account, name) > most:
                return Vote.REJECT
        return Vote.PERMIT

    def reclaimable(self, evictor: JobState, victims: Sequence[Victim]) -> list[Victim]:
        """Pods of queues that use more than they deserve, until they do no more.

        A job that cannot do without the next of its pods gives up all of them: half a
        gang is of no use to its queue either.
        """
        del evictor
        job_states, left = self.view.job_states, dict[str, _Left]()
        self._named, self._lost, self._n_lost = {}, {}, 0
        spare: dict[str, int] = {}
        broken = set()
        chosen: list[Victim] = []
        for victim in victims:
            job = victim.job
            job_state = job_states[job]
            queue = job_state.job.queue
            have = left.get(queue)
            if have is None:
                used = self.view.queue_usage[queue].allocated
                have = left[queue] = _Left(
                    used, self.part(queue).deserved, self.view.unnamed
                )
            if not have.exceeds and job not in broken:
                continue
            uses = use_of(self.view.cluster, victim)
            over = have.exceeds_in(uses)
            if over and not spare.setdefault(job, job_state.surplus):
                broken.add(job)
            if over or job in broken:
                self._named[victim] = _Named(queue, uses, have.beyond(uses))
                have.lose(uses)
                spare[job] = max(0, spare.get(job, 0) - 1)
                chosen.append(victim)
        return chosen

    def still_reclaimable(
        self, victims: Sequence[Victim], gone: Sequence[Victim]
    ) -> bool:
        """Pods of queues that would have too much if those *gone* had gone first."""
        if not self._named.keys() >= {*victims, *gone[self._n_lost :]}:
            return False
        for named in map(self._named.__getitem__, gone[self._n_lost :]):
            add(self._lost.setdefault(named.queue, {}), named.uses)
        self._n_lost = len(gone)
        for named in map(self._named.__getitem__, victims):
            lost = self._lost.get(named.queue, NONE)
            if not any(named.beyond[name] > lost.get(name, 0) for name in named.uses):
                return False
        return True


class _Named(NamedTuple):
    """A pod that may go: what it uses, and how much its queue had too much of that."""

    queue: str
    uses: Amounts
    beyond: Amounts


class _Left:
    """What a queue uses while pods go one after the other, beside what it deserves.

    Of a resource that *deserved* does not name it deserves *rest*; None: any amount.
    """

    def __init__(self, used: Amounts, deserved: Amounts, rest: int | None) -> None:
        self._beyond = {
            name: amount - deserved.get(name, amount if rest is None else rest)
            for name, amount in used.items()
        }
        self.exceeds = self.exceeds_in(self._beyond)
        """Whether it uses more than it deserves of anything."""

    def exceeds_in(self, names: Iterable[str]) -> bool:
        """Whether it uses more than it deserves of any resource of *names*."""
        beyond = self._beyond
        for name in names:  # noqa: SIM110 - it is asked for every victim
            if beyond[name] > 0:
                return True
        return False

    def beyond(self, names: Iterable[str]) -> dict[str, int]:
        """How much more than it deserves it uses of each resource of *names*."""
        return {name: self._beyond[name] for name in names}

    def lose(self, amounts: Amounts) -> None:
        """A pod goes that uses *amounts*."""
        add(self._beyond, amounts, -1)
        self.exceeds = self.exceeds_in(amounts) or self.exceeds_in(self._beyond)


def _taken(account: QueueUsage, name: str) -> int:
    """What a queue uses of a resource and has promised, but for what it could spare."""
    used, owed = account.allocated.get(name, 0), account.inqueue.get(name, 0)
    return used + owed - account.elastic.get(name, 0)


def _ratio(used: int, most: int) -> float:
    return used / most if most else float(used > 0)


def queue_shares(
    total: Amounts, queues: Mapping[str, Queue], asked: Mapping[str, Amounts]
) -> dict[str, QueueShare]:
    """The limits of every queue; a queue that is gone deserves nothing.

    >>> queues = {"a": Queue("a", weight=3), "b": Queue("b")}
    >>> asked = {"a": {"cpu": 9000}, "b": {"cpu": 9000}}
    >>> parts = queue_shares({"cpu": 8000}, queues, asked)
    >>> [dict(parts[name].deserved) for name in "ab"]
    [{'cpu': 6000}, {'cpu': 2000}]
    """
    gone = [name for name in asked if name not in queues]
    listed = [*queues.values()]
    if len(listed) == 1 and not gone and _is_unlimited(listed[0]):
        asks = asked.get(listed[0].name, NONE)
        fair = {name: min(there, asks.get(name, 0)) for name, there in total.items()}
        return {listed[0].name: QueueShare(total, fair)}
    most = {each.name: dict(each.capability) for each in listed}
    deserved = {each.name: dict(each.capability) for each in listed}
    rest: dict[str, int] = {}
    for name, amount in total.items():
        kept = sum(each.guarantee.get(name, 0) for each in listed)
        rest[name] = max(0, amount - kept)
        claims = []
        for each in listed:
            own = each.guarantee.get(name, 0)
            real = max(0, amount - kept) + own
            real = most[each.name][name] = min(real, each.capability.get(name, real))
            # Guarantees beyond the cluster shrink alike.
            low = own * amount // kept if kept > amount else own
            wanted = min(real, asked.get(each.name, NONE).get(name, 0))
            claims.append(Claim(each.weight, low, max(low, wanted)))
        for each, part in zip(listed, filled(amount, claims), strict=True):
            deserved[each.name][name] = part
    parts = {
        each.name: QueueShare(most[each.name], deserved[each.name]) for each in listed
    }
    # Jobs may name any number of queues that are not there: one part for all of them.
    return parts | dict.fromkeys(gone, QueueShare(rest, dict.fromkeys(total, 0)))


def _is_unlimited(queue: Queue) -> bool:
    """Whether a queue, alone, may have all of the cluster."""
    return bool(queue.weight) and not queue.capability and not queue.guarantee


def filled(total: int, claims: Sequence[Claim]) -> list[int]:
    """How much of *total* each claim gets: the same level times its weight.

    No less than its low and no more than its high; in whole numbers, rounded down, so
    never more than *total* together.

    >>> filled(90, [Claim(1, 0, 100), Claim(2, 0, 100)])
    [30, 60]
    >>> filled(90, [Claim(1, 0, 100), Claim(2, 0, 10), Claim(1, 60, 60)])
    [20, 10, 60]
    """
    parts = [claim.high if claim.weight else claim.low for claim in claims]
    if sum(parts) <= total:
        return parts
    left = total - sum(claim.low for claim in claims if not claim.weight)
    rising = {i: claim for i, claim in enumerate(claims) if claim.weight}
    while rising:
        # At the level that shares out what is left, in parts of the sum of weights.
        weights = sum(claim.weight for claim in rising.values())
        wished = {i: left * claim.weight for i, claim in rising.items()}
        given = {
            i: max(claim.low * weights, min(claim.high * weights, wished[i]))
            for i, claim in rising.items()
        }
        # Bounds move the level: those that pull it the stronger way are settled first.
        pull = sum(given.values()) - left * weights
        for i, amount in given.items():
            if not pull or (amount - wished[i]) * pull > 0:
                parts[i] = amount // weights
                del rising[i]
                left -= parts[i]
    return parts
