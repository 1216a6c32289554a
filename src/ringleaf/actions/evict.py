"""Evictions for a whole job: who may go, who does, and the place that is kept.

Nothing is evicted before it is certain that the job then fits, all of it, where its
topology wants it. The place is reserved for it until those who hold it are gone.

Jobs that ask the same evict one after the other. What is known of the candidates is
therefore kept from one evictor to the next, and only those leave that were evicted; a
search costs what its trials cost, however many candidates there are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from ringleaf.actions.reserve import tell_booking
from ringleaf.actions.victims import Choice, Prey, Ranking
from ringleaf.framework.booking import Booking
from ringleaf.framework.cycle import Cycle, Search
from ringleaf.framework.instruction import Report, Verdict
from ringleaf.framework.plugin import Victim
from ringleaf.framework.standing import Phase, Standing
from ringleaf.framework.statement import Statement
from ringleaf.framework.votes import Ballot
from ringleaf.framework.waitlist import Key, Line
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.policies.fit import counted, of_product, some_of

SOON_S: Final = 1.0
"""When to look again for victims among those that are being bound."""

TRIAL: Final = 32
"""What a trial costs, in pods that go in one."""
FOUND, ASKED = 4, 16
"""So many candidates and reservations cost one of these to be looked at, and so many
candidates to be voted on again."""
FEW: Final = 64
"""Candidates of whom all choices may be looked at are voted on again each time."""

Pool = Callable[[str], Iterable[Standing]]
"""The jobs that may be evicted for jobs of a queue, as far as queues matter."""


def evictors(cycle: Cycle, action: str) -> Iterator[Standing]:
    """Who was tried in vain, but those for whom nothing has moved since.

    The first of each line, the next when a place was found for the first; then those
    who have a reservation because they waited long. It stops when the search has cost
    as much as it may, and goes on from there in the next cycle.
    """
    search = cycle.search or Search(action, cycle.failed, set())
    if search.action != action:
        return
    lines = _resumed(cycle, search) if cycle.search else search.lines
    cycle.search = None
    for at, line in enumerate(lines):
        if line.hunted.get(action) == cycle.moves:
            continue
        before = None
        while line and line.front[1] is not before:
            if cycle.interrupted():
                cycle.search = replace(search, lines=lines[at:])
                return
            before = line.front[1]
            search.seen.add(before.job.name)
            yield before
        line.hunted[action] = cycle.moves
    bookings = search.bookings
    if bookings is None:
        bookings = [each for each in cycle.bookings.values() if each.aged]
    for at, booking in enumerate(bookings):
        standing = cycle.view.standings.get(booking.job.name)
        if standing is None or booking.hunted.get(action) == cycle.moves:
            continue
        if cycle.interrupted():
            cycle.search = replace(search, lines=[], bookings=bookings[at:])
            return
        booking.hunted[action] = cycle.moves
        yield standing


def _resumed(cycle: Cycle, search: Search) -> list[Line]:
    """The lines that are left, after those whose first job goes before them.

    A job that came or was let in meanwhile does, if it is before the others of its
    queue; so it does not matter to it where the search was interrupted. No job is
    looked at twice, so the search comes to its end whatever happens.
    """
    lines = [line for line in search.lines if line]
    heads: dict[str, Key] = {}
    for line in lines:
        heads.setdefault(line.ask.queue, line.front[0])
    first = [
        line
        for line in cycle.failed_since
        if line
        and line.front[1].job.name not in search.seen
        and line.ask.queue in heads
        and line.front[0] < heads[line.ask.queue]
    ]
    first.sort(key=lambda line: line.front[0])
    for line in first:
        del cycle.failed_since[line]
    cycle.failed += first
    return first + lines


class VictimSearch:
    """The search for victims of one action in one cycle.

    Args:
        cycle: What it works on.
        action: Its name, with its arguments in the configuration.
        ballot: The plugins' votes.
        pool: Whose pods may go, as far as queues matter.

    """

    def __init__(self, cycle: Cycle, action: str, ballot: Ballot, pool: Pool) -> None:
        arguments = cycle.arguments(action)
        min_run_s = arguments["min-run-seconds"]
        assert isinstance(min_run_s, int)
        self.cycle, self.action, self.ballot = cycle, action, ballot
        self.min_run_s = min_run_s
        self._preview = arguments["preview"] is True
        self._pool = pool
        self._moves = cycle.moves
        self._pools: dict[str, list[Standing]] = {}
        self._known: tuple[tuple[Job, int], Candidates] | None = None

    def evict_for(self, standing: Standing) -> bool:
        """Evict the fewest pods so that *standing* fits; whether a place is kept.

        Only for who has not started: a running job that lost pods evicts nobody.
        """
        cycle = self.cycle
        if standing.phase is Phase.RUNNING or standing.job.podless:
            return False
        candidates = self._candidates(standing)
        found = candidates.fewest(standing)
        if found is None:
            return False
        chosen, placed = found
        if self._preview:
            _preview(cycle, standing, chosen)
            return False
        if not cycle.is_promised(standing, placed):
            return False
        cycle.tell(standing, Verdict.EVICTS, _words(standing, chosen, "will"))
        booking = candidates.keep(standing, placed, chosen)
        for choice in chosen:
            victim = cycle.view.standings[choice.job]
            cycle.evict(victim, choice.pods, standing.job.name, self.action)
        candidates.evicted(chosen, booking)
        return True

    def _candidates(self, standing: Standing) -> "Candidates":
        """Who may go for *standing*: what was found for another who asks the same.

        Unless something has moved since, or one of both is known to others by name.
        """
        if self._moves != self.cycle.moves:
            self._moves = self.cycle.moves
            self._pools.clear()
            self._known = None
        key = _key_of(standing, self.cycle)
        if key is not None and self._known is not None:
            known, found = self._known
            if known == key or (_same_rank(known, key) and found.serves(standing)):
                return found
        found = Candidates(self, standing, self._running(standing.job.queue))
        self._known = None if key is None else (key, found)
        return found

    def _running(self, queue: str) -> list[Standing]:
        """The jobs that may go for one of *queue*, the last in their order first."""
        found = self._pools.get(queue)
        if found is None:
            everybody = [*self._pool(queue)]
            found = [
                other
                for other in everybody
                if other.placements
                and other.started is not None
                and other.job.preemptable
            ]
            found.sort(key=self.cycle.votes.job_key, reverse=True)
            self._pools[queue] = found
        return found


def _key_of(standing: Standing, cycle: Cycle) -> tuple[Job, int] | None:
    """Evictors with the same key have the same candidates; None: nobody else has."""
    known = standing.evicted_by or standing.job.name in cycle.bookings
    if known or standing.placements or standing.finished or standing.job.previous:
        return None
    return standing.ask, standing.job.priority


def _same_rank(one: tuple[Job, int], other: tuple[Job, int]) -> bool:
    """Whether two evictors are of the same queue and priority."""
    return (one[0].queue, one[1]) == (other[0].queue, other[1])


class Candidates:
    """Who may go for evictors that ask the same, and what they may use besides.

    Where plugins look at nothing of an evictor but its queue and priority, they are
    those of evictors that ask for other things as well.

    It is right as long as nothing else moves than by ``keep`` and ``evicted``.
    """

    def __init__(
        self, search: VictimSearch, standing: Standing, pool: Sequence[Standing]
    ) -> None:
        cycle = search.cycle
        self._search, self._cycle = search, cycle
        self._giving = cycle.usable(standing)
        """The reservations that the evictor may use."""
        blocked = cycle.blocked(self._giving)
        self._enders = cycle.free_enders
        able = [each for each in pool if self._may_go(standing, each, blocked)]
        self._able = {other.job.name: other for other in able}
        self._victims = [
            Victim(other.job.name, replica)
            for other in able
            for replica in sorted(other.placements, reverse=True)
        ]
        cycle.cost += (len(pool) + len(cycle.bookings)) // FOUND
        ballot = search.ballot
        self._agreed, self._lasts, self.by_rank = ballot.by_tier(
            standing, self._victims
        )
        self._ranked = ballot.by_sharers(standing, self._agreed)
        self._gone: list[Victim] = []
        """The victims since the last vote."""
        self._is_partly_gone = False
        """Whether some of them stay in part, so that others may go that could not."""
        self._prey: dict[str, Prey] = {}
        self._ranking = self._rank()

    def serves(self, standing: Standing) -> bool:
        """Whether an evictor of the same queue and priority has the same candidates."""
        return self.by_rank and self._cycle.usable(standing) == self._giving

    def _may_go(
        self, standing: Standing, other: Standing, is_blocked: Callable[[str], bool]
    ) -> bool:
        """Whether pods of *other* may be asked to end for *standing* at all.

        Nobody twice while no job has arrived since, nobody for whom it was evicted
        itself, nobody who is in the way of another's reservation already, unless that
        yields to it, and nobody who is being bound.
        """
        name, cycle = other.job.name, self._cycle
        if other is standing or other.terminating or is_blocked(name):
            return False
        if name in standing.evicted_by:
            return False
        if other.evicted_in == cycle.arrivals:
            cycle.spared = True
            return False
        return self._ran_long_enough(other)

    def _ran_long_enough(self, other: Standing) -> bool:
        """Whether *other* is old enough to go; else it is noted when it will be."""
        cycle = self._cycle
        assert other.started is not None
        old_at = other.started + self._search.min_run_s
        if other.job.name in cycle.bound:
            old_at = max(old_at, cycle.now + SOON_S)
        cycle.hunt_again_at(old_at)
        return old_at <= cycle.now

    def fewest(self, standing: Standing) -> tuple[list[Choice], Placed] | None:
        """The fewest pods after which *standing* fits, and where."""
        if self._gone and not self._search.ballot.per_job:
            few = self._ranking.n_jobs < FEW
            if few or self._is_partly_gone or not self._lasts:
                self._vote_again(standing)
        found = self._tried(standing)
        if found is None or self._still_agreed(found[0]):
            return found
        self._vote_again(standing)
        return self._tried(standing)

    def _tried(self, standing: Standing) -> tuple[list[Choice], Placed] | None:
        """The fewest pods by the last vote."""
        if not self._ranking:
            return None
        missing = self._missing_chips(standing)

        def fits(chosen: Sequence[Choice]) -> Placed | None:
            freed = sum(choice.n_chips for choice in chosen)
            return self._fits_without(standing, chosen) if freed >= missing else None

        return self._ranking.fewest(fits, missing)

    def _still_agreed(self, chosen: Sequence[Choice]) -> bool:
        """Whether the plugins would agree on the *chosen* pods if they voted again."""
        ballot = self._search.ballot
        if not self._gone or ballot.per_job:
            return True
        return ballot.still_agreed(_victims_of(chosen), self._gone)

    def _vote_again(self, standing: Standing) -> None:
        """Ask those plugins again that do not judge each job by itself."""
        ballot, gone = self._search.ballot, {victim.job for victim in self._gone}
        self._gone, self._is_partly_gone = [], False
        self._cycle.cost += len(self._agreed) // ASKED
        if self._lasts:
            self._agreed = [v for v in self._agreed if v.job not in gone]
        else:
            self._victims = [v for v in self._victims if v.job not in gone]
            self._agreed = ballot.by_tier(standing, self._victims).victims
        ranked = [v for v in self._ranked if v.job not in gone]
        self._ranked = ballot.by_sharers(standing, self._agreed)
        if self._ranked != ranked:
            self._ranking = self._rank()

    def _rank(self) -> Ranking:
        """What the candidates can give up, by the plugins' votes."""
        agreed: dict[str, list[int]] = {}
        for victim in self._ranked:
            agreed.setdefault(victim.job, []).append(victim.replica)
        found = []
        for name, other in self._able.items():
            pods = tuple(agreed.get(name, ()))
            known = self._prey.get(name)
            if pods and (known is None or known.pods != pods):
                known = self._prey[name] = _prey_of(self._cycle, other, pods)
            if pods and known is not None and (known.whole or known.surplus):
                found.append(known)
        return Ranking(found)

    def _missing_chips(self, standing: Standing) -> int:
        """Chips that must be free besides those that are, for the job to fit at all."""
        cluster, job = self._cycle.view.cluster, standing.rest
        free = np.bitwise_count(cluster.free[of_product(cluster, job.product)]).sum()
        ends = sum(
            len(other.placements[pod].chips)
            for other in self._enders
            for pod in other.terminating
        )
        return job.needed * job.chips * (not job.roles) - int(free) - ends

    def _fits_without(
        self, standing: Standing, chosen: Sequence[Choice]
    ) -> Placed | None:
        """Where the job would be placed if the *chosen* pods were gone."""
        cycle, cluster = self._cycle, self._cycle.view.cluster
        cycle.cost += TRIAL + sum(choice.n_pods for choice in chosen)
        with Statement(cluster) as statement:
            for other in self._enders:
                statement.release_pods(other.job.name, other.terminating)
            for choice in chosen:
                statement.release_pods(choice.job, choice.pods)
            for booking in self._giving:
                booking.let_go(statement, cluster)
            if cycle.quota(standing) is None:
                return None
            return cycle.session.preview(standing.rest, standing.rest.fewest)

    def keep(
        self, standing: Standing, placed: Placed, chosen: Sequence[Choice]
    ) -> Booking:
        """Reserve the place, in the way of which the victims still are.

        What was reserved before, by the job itself or by others who yield to it, is
        given up.
        """
        cycle = self._cycle
        gone = {choice.job for choice in chosen}
        nodes = {placement.node for placement in placed.placements}
        for other in self._giving:
            meets = not (
                other.nodes.isdisjoint(nodes) and gone.isdisjoint(other.blockers)
            )
            if other.job.name == standing.job.name:
                cycle.give_up(other)
            elif meets:
                cycle.give_up(other)
                cycle.wait(cycle.view.standings[other.job.name])
        booking = Booking(
            standing.rest,
            placed.placements,
            since=cycle.now,
            why="pods were evicted",
            aged=False,
        )
        for choice in chosen:
            booking.blocked_elsewhere(cycle.view.standings[choice.job])
        booking.blocked_by(self._enders)
        cycle.book(standing, booking)
        tell_booking(cycle, standing, booking)
        return booking

    def evicted(self, chosen: Sequence[Choice], booking: Booking) -> None:
        """The *chosen* pods go for *booking*: it is in the way of the next evictor."""
        for choice in chosen:
            n_agreed = len(self._ranking.drop(choice.job).pods)
            self._is_partly_gone |= choice.n_pods < n_agreed
        self._gone += _victims_of(chosen)
        self._enders = [
            each for each in self._enders if each.job.name not in booking.blockers
        ]


def _victims_of(chosen: Iterable[Choice]) -> list[Victim]:
    return [Victim(choice.job, pod) for choice in chosen for pod in choice.pods]


def _prey_of(cycle: Cycle, other: Standing, pods: tuple[int, ...]) -> Prey:
    """What *other* can give up of the *pods* on whom the plugins agree."""
    return Prey(
        job=other.job.name,
        pods=pods,
        surplus=other.surplus,
        whole=len(pods) == len(other.placements),
        loss=_loss(cycle, other, pods),
        chips=tuple(len(other.placements[pod].chips) for pod in pods),
        kept=_kept(other, pods),
    )


def _preview(cycle: Cycle, standing: Standing, chosen: Sequence[Choice]) -> None:
    """Say who would go, if it is news: what is lost grows with time, and is none.

    Nor is it which pods of a job would go.
    """
    whom = [(each.job, each.n_pods, bool(each.n_needed)) for each in chosen]
    if standing.previewed != whom:
        standing.previewed = whom
        told = _words(standing, chosen, "would")
        cycle.out.append(Report(standing.job.name, Verdict.WOULD_EVICT, told))


def _kept(other: Standing, pods: Iterable[int]) -> frozenset[int]:
    """The pods that their roles cannot do without, the lowest numbers first."""
    kept: set[int] = set()
    for role, own in other.crew:
        least = other.job.least_of(role) if other.job.roles else 0
        if least:
            spare = max(0, other.ready_in(own) - least)
            kept |= {*sorted({*own} & {*pods}, reverse=True)[spare:]}
    return frozenset(kept)


def _loss(cycle: Cycle, other: Standing, pods: Iterable[int]) -> tuple[float, ...]:
    """Chip-seconds of work that each pod loses."""
    assert other.started is not None
    seconds = cycle.now - other.started
    return tuple(seconds * len(other.placements[pod].chips) for pod in pods)


def _words(standing: Standing, chosen: Sequence[Choice], verb: str) -> str:
    """Who goes, what is lost."""
    if not chosen:
        return f"job {standing.job.name!r} {verb} wait for pods that are ending"
    pods = sum(choice.n_pods for choice in chosen)
    lost = sum(choice.loss for choice in chosen)
    named = (f"{each.job!r}{' (surplus)' * (not each.n_needed)}" for each in chosen)
    who = some_of(named, 4)
    return (
        f"job {standing.job.name!r} {verb} evict {counted(pods, 'pod')} of "
        f"{who}; {lost:,.0f} chip-seconds are lost"
    )
