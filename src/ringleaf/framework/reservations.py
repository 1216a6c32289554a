"""All reservations: which jobs may use them, what they wait for, what they hold."""

from collections.abc import Callable, Collection, Iterator, Mapping
from math import inf
from operator import attrgetter

from ringleaf.framework.budget import Planning
from ringleaf.framework.changes import ADMISSION, Change, Changes, Memo
from ringleaf.framework.framework import Framework
from ringleaf.framework.idle_budget import (
    WINDOW_S,
    EndedReservation,
    IdleAccount,
    IdleBudget,
    Outcome,
)
from ringleaf.framework.job_state import NONE_OF_THEM, JobState
from ringleaf.framework.reservation import Reservation, ReservedSums
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.statement import release_all
from ringleaf.model.amounts import add


class Reservations:
    """Reservations by the job that they are for, the oldest first."""

    def __init__(
        self, state: SchedulerState, framework: Framework, changes: Changes
    ) -> None:
        self._state, self._framework, self._changes = state, framework, changes
        self.by_job: dict[str, Reservation] = {}
        self._sums = ReservedSums()
        self.idle = IdleTime(state, framework, self._sums)
        self.planning = Planning(changes)
        self._made = 0
        self._on_node: dict[str, dict[Reservation, None]] = {}
        self._waiting_for: dict[str, dict[Reservation, None]] = {}
        """Job -> the reservations that wait for it, whether or not it holds any."""
        self.tried: Memo[Reservation] = Memo(changes, Change.CAPACITY_FREED)
        """Those whose jobs find no places yet."""
        self.over_quota: Memo[Reservation] = Memo(changes, *ADMISSION)
        """Those whose jobs may not start yet, by the quota of their queues."""

    def begin(self, now: float) -> None:
        """A new cycle begins."""
        budget, self.planning.cost = self.idle.budget, 0
        if self.by_job or budget.used:
            self.idle.count(now)
        else:
            budget.now = max(now, budget.now)

    def __bool__(self) -> bool:
        return bool(self.by_job)

    def __iter__(self) -> Iterator[Reservation]:
        return iter(list(self.by_job.values()))

    def __contains__(self, job: object) -> bool:
        return job in self.by_job

    def get(self, job: str) -> Reservation | None:
        """The reservation for a job."""
        return self.by_job.get(job)

    @property
    def aged(self) -> list[Reservation]:
        """Those that were made because a job waited long, the oldest first."""
        return [*self._sums.aged]

    def n_nodes_beside(self, job: str) -> int:
        """How many nodes have reservations for other jobs than *job*."""
        own = self.by_job.get(job)
        alone = 0 if own is None else sum(len(self._on_node[n]) == 1 for n in own.nodes)
        return len(self._on_node) - alone

    def concerned(
        self, nodes: Collection[str] | None, job: str = ""
    ) -> list[Reservation]:
        """The reservations on *nodes* or that wait for *job*, the oldest first."""
        if nodes is None:
            return list(self.by_job.values())
        found = dict(self._waiting_for.get(job, {}))
        for node in nodes:
            found |= self._on_node.get(node, {})
        return sorted(found, key=attrgetter("number"))

    # Which jobs may use them.

    def lends(self, reservation: Reservation, job_state: JobState) -> bool:
        """Whether a job may use what another has reserved."""
        strict = self._framework.conf.reservation.is_strict
        return reservation.may_backfill(job_state, self._state.now, strict=strict)

    def lent_to(self, job_state: JobState) -> list[Reservation]:
        """What others have reserved that a job may use.

        Of those for which pods were evicted there may be thousands, and they are lent
        to none but a job that lacks pods it cannot do without.
        """
        every = (
            self.by_job.values() if job_state.below_min_available else self._sums.aged
        )
        name = job_state.job.name
        return [
            reservation
            for reservation in every
            if reservation.job.name != name and self.lends(reservation, job_state)
        ]

    def longest_backfill(self, job_state: JobState) -> float:
        """The running time with which a job may backfill what *job_state* may not.

        Without such a reservation it is negative infinity.
        """
        now, lent = self._state.now, self.lent_to(job_state)
        left = (
            reservation.ready_at(now) - now
            for reservation in self._sums.aged
            if reservation not in lent and reservation.job.name != job_state.job.name
        )
        return max((seconds for seconds in left if seconds != inf), default=-inf)

    def usable_by(self, job_state: JobState) -> list[Reservation]:
        """The reservations that a job may use, its own among them, the oldest first."""
        own = self.by_job.get(job_state.job.name)
        found = self.lent_to(job_state) + ([] if own is None else [own])
        return sorted(found, key=attrgetter("number"))

    # What they wait for.

    def blocked_by(self, but: Collection[Reservation]) -> Callable[[str], bool]:
        """Whether a reservation waits for a job to end, all *but* some."""
        apart, blockers = {*but}, self._sums.blockers
        aged = {n for b in self._sums.aged if b not in apart for n in b.blockers}
        if not apart:
            return lambda job: job in blockers or job in aged
        return lambda job: (
            job in aged or any(b not in apart for b in blockers.get(job, ()))
        )

    def unclaimed(self, ending: Mapping[str, JobState]) -> list[JobState]:
        """Of jobs with terminating pods, those that no reservation waits for."""
        found = ending.keys() - self._sums.blockers.keys()
        for reservation in self._sums.aged if found else ():
            found -= reservation.blockers.keys()
        return [job_state for name, job_state in ending.items() if name in found]

    def promised_to_others(self, job_state: JobState) -> dict[str, int]:
        """What others of a job's queue lack for which pods end, and it may not use."""
        own = self.by_job.get(job_state.job.name)
        if not job_state.below_min_available:  # else some of it may be lent
            return self._sums.promised(job_state.job.queue, own)
        promised: dict[str, int] = {}
        for reservation in self.by_job.values():
            if not reservation.aged and self._is_kept_from(reservation, job_state):
                add(promised, reservation.lacks)
        return promised

    def aged_of_others(self, job_state: JobState) -> Iterator[Reservation]:
        """Those of the aged of a job's queue that it may not use."""
        for reservation in self._sums.aged:
            if self._is_kept_from(reservation, job_state):
                yield reservation

    def _is_kept_from(self, reservation: Reservation, job_state: JobState) -> bool:
        """Whether another of its queue has reserved it, and a job may not use it."""
        same = reservation.job.queue == job_state.job.queue
        other = reservation.job.name != job_state.job.name
        return same and other and not self.lends(reservation, job_state)

    # How they come and go.

    def add(self, job_state: JobState, reservation: Reservation) -> None:
        """Make a reservation, and hold what of it is free."""
        self._made += 1
        reservation.number = self._made
        if not self.by_job:
            self._state.handlers.append(self._sums.job_changed)
        self.by_job[job_state.job.name] = reservation
        self._sums.add(reservation)
        for node in reservation.nodes:
            self._on_node.setdefault(node, {})[reservation] = None
        for name in reservation.elsewhere:
            self._waiting_for.setdefault(name, {})[reservation] = None
        if reservation.aged:
            job_state.pipelined = NONE_OF_THEM  # no job ends for it; it may still evict
        self.tried.add(reservation)  # not before something is freed
        reservation.hold(self._state.cluster)

    def remove(self, reservation: Reservation, outcome: Outcome) -> None:
        """Forget a reservation; what it holds stays held."""
        del self.by_job[reservation.job.name]
        self.idle.ended(reservation, outcome)
        if not self.by_job:
            self._state.handlers.remove(self._sums.job_changed)
        self.tried.discard(reservation)
        self.over_quota.discard(reservation)
        self._changes.note(Change.RESERVATION_ENDED)
        self._sums.remove(reservation)
        for names, where in (
            (reservation.nodes, self._on_node),
            (reservation.elsewhere, self._waiting_for),
        ):
            for name in names:
                del where[name][reservation]
                if not where[name]:
                    del where[name]

    def release(self, reservation: Reservation, outcome: Outcome) -> None:
        """Forget a reservation, and free what it held."""
        self.remove(reservation, outcome)
        self._state.job_states[reservation.job.name].pipelined = NONE_OF_THEM
        release_all(self._state.cluster, reservation.owner)

    def capacity_freed(self, nodes: Collection[str] | None, job: str) -> None:
        """Something is free on *nodes*, or anywhere, that *job* held."""
        for reservation in self.concerned(nodes, job):
            reservation.unblock(nodes)
            self._sums.changed(reservation)
            if nodes is None or not reservation.nodes.isdisjoint(nodes):
                reservation.hold(self._state.cluster)

    def borrowed(
        self, reservations: Collection[Reservation], job_state: JobState
    ) -> None:
        """A job uses some of what *reservations* hold; they wait for its end."""
        for reservation in reservations:
            reservation.hold(self._state.cluster)
            reservation.blocked_by([job_state])
            self._sums.changed(reservation)

    def job_changed(self, job_state: JobState) -> None:
        """A job has another spec."""
        self._sums.job_changed(job_state)
        for reservation in self._sums.aged:
            reservation.job_changed(job_state)


class IdleTime:
    """What aged reservations keep idle, and how much of it they may."""

    def __init__(
        self, state: SchedulerState, framework: Framework, sums: ReservedSums
    ) -> None:
        self._state, self._framework, self._sums = state, framework, sums
        self.budget = IdleBudget()
        self._kept: dict[Reservation, float] = {}
        """What each of them has kept idle, in chip-seconds."""

    def count(self, now: float) -> None:
        """Add up what was kept idle until *now*, in all and for each reservation."""
        seconds = self.budget.count(now, self.chips)
        for reservation in self._sums.aged:
            kept = reservation.n_held * seconds
            self._kept[reservation] = self._kept.get(reservation, 0.0) + kept

    def ended(self, reservation: Reservation, outcome: Outcome) -> None:
        """Remember a reservation that ends, if it was aged."""
        kept = self._kept.pop(reservation, 0.0)
        if reservation.aged:
            self.budget.note(
                EndedReservation(
                    reservation.job.name,
                    reservation.since,
                    self._state.now,
                    kept,
                    outcome,
                )
            )

    @property
    def chips(self) -> int:
        """The chips that aged reservations keep from other jobs."""
        return sum(reservation.n_held for reservation in self._sums.aged)

    @property
    def limit(self) -> float:
        """The chip-seconds that aged reservations may keep idle in 24 hours."""
        share = self._framework.conf.reservation.idle_budget
        if share >= 1:
            return inf
        cluster = self._state.cluster
        return share * int(cluster.size[cluster.ready].sum()) * WINDOW_S

    @property
    def share(self) -> float:
        """How much of the budget of aged reservations is used: 0 to 1."""
        limit = self.limit
        return self.budget.used / limit if limit else 0.0

    def account(self, now: float) -> IdleAccount:
        """What the next leader has to know."""
        return self.budget.account_at(now, self.chips)

    def kept(self, now: float) -> float:
        """The chip-seconds that aged reservations have kept idle since the start."""
        return self.budget.kept_until(now, self.chips)

    @property
    def suspended_until(self) -> float | None:
        """When reservations are made again, where their budget is used up."""
        if not self.budget.is_spent:
            return None
        until = self.budget.resumes_at(self.limit)
        return None if until == inf else until

    @property
    def left(self) -> float:
        """The chip-seconds that aged reservations may still keep idle."""
        return self.limit - self.budget.used
