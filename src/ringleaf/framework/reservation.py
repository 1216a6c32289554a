"""A reservation: the nodes and chips where a waiting job will start.

What of it is free already is held in the cluster by the owner of the
reservation, so that no other job finds it free, and the leaves that the job will cross
count as crossed. What is not free yet is held as soon as it is.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from math import inf
from typing import NamedTuple

from ringleaf.framework.job_state import JobState, pod_amounts
from ringleaf.framework.statement import Statement
from ringleaf.model.amounts import NONE, Amounts, add
from ringleaf.model.cluster import Cluster
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network
from ringleaf.model.mask import mask_of
from ringleaf.model.owner import Hold, Purpose
from ringleaf.model.placement import Placement
from ringleaf.policies.words import counted, some_of


class _Look(NamedTuple):
    """What was seen when it was last asked when a reservation begins."""

    begins_at: float = inf
    check_at: float = -inf
    """When it may begin later; at once, if what is in its way has changed."""


class Reservation:
    """Where *job* will start, and which jobs are there still."""

    def __init__(
        self,
        job: Job,
        placements: tuple[Placement, ...],
        *,
        since: float,
        why: str,
        aged: bool,
    ) -> None:
        self.job = job
        self.placements = placements
        self.since = since
        self.why = why
        self.aged = aged
        """Made because the job waited long, not because others end for it."""
        self.blockers: dict[str, JobState] = {}
        """The jobs that hold some of it."""
        self.elsewhere: set[str] = set()
        """Of the blockers, those that are in the way without holding any of it."""
        self.beyond = False
        """Whether its job needs more than the share of its queue, even alone."""
        self.searched: dict[str, int] = {}
        """Action -> the changes at which a search for victims last found none."""
        self.n_held = 0
        """The chips of it that are held: free, and kept from other jobs."""
        self.number = 0
        """Its place in the order in which reservations were made."""
        self._last = _Look()

    @cached_property
    def owner(self) -> Hold:
        """Under what its chips are held."""
        return Hold(self.job.name, Purpose.RESERVATION)

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The nodes it is on."""
        return frozenset(self._chips)

    @cached_property
    def _chips(self) -> dict[str, int]:
        """Node -> its chips that are reserved."""
        chips: dict[str, int] = {}
        for placement in self.placements:
            own = chips.get(placement.node, 0)
            chips[placement.node] = own | mask_of(placement.chips)
        return chips

    def ready_at(self, now: float) -> float:
        """When the last job that holds some of it is to have ended."""
        ends = (ends_at(other, now) for other in self.blockers.values())
        return max(ends, default=self.since)

    @cached_property
    def amounts(self) -> Amounts:
        """What its pods will use."""
        roles = self.job.role_by_pod
        total: dict[str, int] = {}
        for placement in self.placements:
            add(total, pod_amounts(self.job, roles[placement.replica]))
        return total

    @property
    def lacks(self) -> dict[str, int]:
        """What its pods will use beyond what blockers of its queue leave to them."""
        lacks = dict(self.amounts)
        for other in self.blockers.values():
            if other.job.queue == self.job.queue:
                add(lacks, other.allocated, -1)
        return {name: amount for name, amount in lacks.items() if amount > 0}

    def may_backfill(self, job_state: JobState, now: float, *, strict: bool) -> bool:
        """Whether *job_state* may use it.

        A job in its way that lacks pods it cannot do without may: else each would wait
        for the other. So may jobs that are to end in time, by the running time that
        they state, or else by the one that nine in ten similar jobs did not exceed;
        while it is not known when the reservation can begin, none is. Unless *strict*,
        it is also for any such broken job, and for jobs of higher priority in the same
        queue.
        """
        job = job_state.job
        if job_state.below_min_available and (job.name in self.blockers or not strict):
            return True
        if not self.aged:
            return False
        outranked = job.queue == self.job.queue and job.priority > self.job.priority
        if outranked and not strict:
            return True
        lasts_s = longest_run(job)
        if lasts_s is None:
            return False
        ready_at = self.ready_at(now)
        return now + lasts_s <= ready_at and ready_at != inf

    def hold(self, cluster: Cluster) -> None:
        """Hold what of it is free."""
        demands = _demands(self.job)
        self.n_held = 0
        with Statement(cluster) as statement:
            statement.drop(self.owner)
            for placement in self.placements:
                free = cluster.free.item(cluster.index[placement.node])
                chips = mask_of(placement.chips) & free
                self.n_held += chips.bit_count()
                demand = demands.get(placement.replica, NOTHING)
                statement.hold_placement(self.owner, placement, demand, chips=chips)
            statement.commit()

    def room(self, cluster: Cluster, asked: int) -> int:
        """How many pods of *asked* chips its nodes hold at most if it holds nothing."""
        chips: dict[int, int] = {}
        for held in cluster.holdings.get(self.owner, ()):
            there = chips.get(held.node, cluster.free.item(held.node))
            chips[held.node] = there | held.chips
        return sum(mask.bit_count() // asked for mask in chips.values())

    def blocked_by(self, job_states: Iterable[JobState]) -> None:
        """Note which of *job_states* hold some of it."""
        self.blockers |= {s.job.name: s for s in job_states if self._meets(s)}
        self._look_again()

    def blocked_elsewhere(self, job_state: JobState) -> None:
        """Note that *job_state* is in the way, whether it holds any of it or not."""
        self.elsewhere.add(job_state.job.name)
        self.blockers[job_state.job.name] = job_state
        self._look_again()

    def job_changed(self, job_state: JobState) -> None:
        """A job has another spec; if it is in the way, it may end at another time."""
        if job_state.job.name in self.blockers:
            self._look_again()

    def unblock(self, nodes: Collection[str] | None = None) -> None:
        """Forget jobs that hold none of it now, as something is free on *nodes*."""
        if nodes is not None and self.nodes.isdisjoint(nodes):
            waits_for = self.blockers.keys() & self.elsewhere
            if all(self.blockers[name].placements for name in waits_for):
                return
        self.blockers = {
            name: job_state
            for name, job_state in self.blockers.items()
            if job_state.placements
            and (name in self.elsewhere or self._meets(job_state))
        }
        self._look_again()

    @property
    def check_at(self) -> float:
        """When a job in its way may have run longer than was predicted."""
        return self._last.check_at

    def _look_again(self) -> None:
        """What is in its way has changed."""
        self._last = _Look(self._last.begins_at)

    def begins_later(self, now: float) -> bool:
        """Whether it begins later than at the last look, by what is predicted.

        Then more jobs may end before it begins. It does when the last job in its way
        runs longer than was predicted.
        """
        if now < self.check_at:
            return False
        before, begins_at = self._last.begins_at, self.ready_at(now)
        ends = [
            ends_at(other, now)
            for other in self.blockers.values()
            if other.job.estimate_s is None and other.job.run_time is not None
        ]
        check_at = min((end for end in ends if end > now), default=inf)
        self._last = _Look(begins_at, check_at)
        return bool(ends) and before < begins_at < inf

    def shared_chips(self, job_state: JobState) -> int:
        """How many chips of it the pods of a job hold."""
        own = self._chips
        return sum(
            (mask_of(p.chips) & own.get(p.node, 0)).bit_count()
            for p in job_state.placements.values()
        )

    def _meets(self, job_state: JobState) -> bool:
        """Whether pods of a job hold chips of it, or use resources beside them."""
        own, both_use = self._chips, _uses(self.job) and _uses(job_state.job)
        return any(
            p.node in own and (both_use or mask_of(p.chips) & own[p.node])
            for p in job_state.placements.values()
        )


class ReservedSums:
    """What reservations lack, added up for each queue as pods come and go."""

    def __init__(self) -> None:
        self.aged: dict[Reservation, None] = {}
        """Those that were made because a job waited long."""
        self._lacks: dict[Reservation, Amounts] = {}
        """For each of the others what of the sums is its own."""
        self._sums: dict[str, dict[str, int]] = {}
        self._blockers: dict[Reservation, tuple[str, ...]] = {}
        self._blocked_by: dict[str, dict[Reservation, None]] = {}
        self._stale: dict[Reservation, None] = {}

    def add(self, reservation: Reservation) -> None:
        """A reservation is made."""
        if reservation.aged:
            self.aged[reservation] = None
        else:
            self._lacks[reservation] = NONE
            self._blockers[reservation] = ()
            self.changed(reservation)

    def remove(self, reservation: Reservation) -> None:
        """A reservation is no more."""
        self.aged.pop(reservation, None)
        self._stale.pop(reservation, None)
        if reservation in self._lacks:
            self._look_at(reservation, ())
            del self._blockers[reservation]
            add(
                self._sums.get(reservation.job.queue, {}),
                self._lacks.pop(reservation),
                -1,
            )

    def changed(self, reservation: Reservation) -> None:
        """Other jobs than before may be in the way of a reservation."""
        if reservation in self._lacks:
            self._stale[reservation] = None
            self._look_at(reservation, (*reservation.blockers,))

    def _look_at(self, reservation: Reservation, blockers: tuple[str, ...]) -> None:
        """Heed the pods of *blockers* from now on, and of no others."""
        for name in self._blockers[reservation]:
            del self._blocked_by[name][reservation]
            if not self._blocked_by[name]:
                del self._blocked_by[name]
        self._blockers[reservation] = blockers
        for name in blockers:
            self._blocked_by.setdefault(name, {})[reservation] = None

    @property
    def blockers(self) -> Mapping[str, Collection[Reservation]]:
        """Job -> the reservations that are not aged and wait for it to end."""
        return self._blocked_by

    def job_changed(self, job_state: JobState, *_pod: object) -> None:
        """A job is another one, or a pod of it came or went, if only in a trial."""
        for reservation in self._blocked_by.get(job_state.job.name, ()):
            self._stale[reservation] = None

    def promised(self, queue: str, but: Reservation | None) -> dict[str, int]:
        """What reservations of *queue* lack that are not aged, all *but* one."""
        for reservation in self._stale:
            total = self._sums.setdefault(reservation.job.queue, {})
            add(total, self._lacks[reservation], -1)
            self._lacks[reservation] = reservation.lacks
            add(total, self._lacks[reservation])
        self._stale.clear()
        found = dict(self._sums.get(queue, NONE))
        if but in self._lacks:
            add(found, self._lacks[but], -1)
        return {name: amount for name, amount in found.items() if amount}


def _uses(job: Job) -> bool:
    """Whether pods of *job* use more than chips."""
    return any(role.demand.resources for role, _own in job.role_ranks)


def place_words(
    cluster: Cluster, job: Job, placements: Iterable[Placement], most: int = 4
) -> str:
    """Where pods are, in the shape of the job's topology."""
    nodes = [cluster.index[placement.node] for placement in placements]
    if job.network is Network.SUPERPODS:
        units = Counter(f"SuperPoD {cluster.superpod.item(node)}" for node in nodes)
    elif job.network is Network.SWITCHES:
        leaves = (cluster.leaf_of(node) for node in nodes)
        units = Counter(f"leaf {leaf.name!r}" for leaf in leaves if leaf)
    else:
        units = Counter(cluster.names[node] for node in nodes)
    places = [
        f"{unit} ({counted(n, 'pod')})" if n > 1 else unit for unit, n in units.items()
    ]
    return some_of(places, most)


def longest_run(job: Job) -> float | None:
    """Seconds that a job states, or else that nine in ten similar jobs did not exceed.

    None where neither is known.
    """
    if job.estimate_s is not None or job.run_time is None:
        return job.estimate_s
    return job.run_time.most_s


def ends_at(job_state: JobState, now: float) -> float:
    """When a job is sure to have ended, or is predicted to end; never, without either.

    Jobs that are asked to end do so at once.
    """
    started, job = job_state.started, job_state.job
    if job_state.terminating or started is None:
        return job_state.waiting_since if not job_state.placements else 0.0
    if job.estimate_s is not None:
        return started + job.estimate_s
    return inf if job.run_time is None else job.run_time.ends_at(started, now)


def expected_end(job_state: JobState, now: float) -> float:
    """When a job is expected to end: after as long again, where nothing is known."""
    end = ends_at(job_state, now)
    if end == inf:
        assert job_state.started is not None, "a job that did not start has ended"
        return 2 * now - job_state.started
    return max(end, now)


def _demands(job: Job) -> dict[int, Demand]:
    """Replica -> what its pod will use; as a neighbour it is not there yet."""
    return {
        n: Demand(resources=role.demand.resources, ports=role.demand.ports)
        for n, role in job.role_by_pod.items()
    }
