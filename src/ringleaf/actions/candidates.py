"""The jobs that may be evicted for others, and what of them is enough."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from ringleaf.actions.reserve import report_reservation
from ringleaf.actions.start import give_up, reserve_for
from ringleaf.actions.victims import Choice, EvictionCandidate, Ranking
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState, filter_cost
from ringleaf.framework.plugin import Victim
from ringleaf.framework.reservation import Reservation
from ringleaf.framework.statement import Statement
from ringleaf.framework.votes import Ballot
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.policies.fit import of_product
from ringleaf.policies.room import min_chips

BIND_S: Final = 1.0
"""How long pods of a job are being bound; no job is evicted meanwhile."""

TRIAL: Final = 48
"""What a trial costs, in pods that go in one."""
PLACED: Final = 1 << 16
"""Pods that are placed in the trials for one job, before no cheaper victims are
looked for."""
SCANNED: Final = 8
"""What it costs to look at all nodes for pods that others ask nothing like, in pods."""
SELECTED: Final = 2
"""What ``selecting`` counts as 1, in pods."""
FOUND, ASKED = 4, 16
"""So many candidates and reservations cost one of these to be looked at, and so many
candidates to be voted on again."""
FEW_CANDIDATES: Final = 64
"""Candidates of which all choices may be looked at are voted on again each time."""


class VictimVote:
    """The victims that the plugins agree on, kept while others of them are evicted.

    Args:
        ballot: The plugins' votes.
        evictor: The job that they vote for.
        victims: The pods that they vote on.

    """

    def __init__(
        self, ballot: Ballot, evictor: JobState, victims: list[Victim]
    ) -> None:
        self._ballot, self._victims = ballot, victims
        self._agreed, self._lasts, self.by_rank = ballot.by_tier(evictor, victims)
        self.victims = ballot.by_sharers(evictor, self._agreed)
        """Those that may go."""
        self._gone: list[Victim] = []
        """The victims since the last vote."""
        self._is_partly_gone = False
        """Whether some of them stay in part, so that others may go that could not."""

    def is_due(self, *, few: bool) -> bool:
        """Whether to vote again before a search; in any case where there are *few*."""
        if not self._gone or self._ballot.per_job:
            return False
        return few or self._is_partly_gone or not self._lasts

    def still_holds(self, chosen: list[Victim]) -> bool:
        """Whether the plugins would agree on the *chosen* pods if they voted again."""
        if not self._gone or self._ballot.per_job:
            return True
        return self._ballot.still_agreed(chosen, self._gone)

    def vote_again(self, evictor: JobState) -> bool:
        """Ask those plugins again that do not judge each job by itself.

        Whether more changed than that some are gone.
        """
        ballot, gone = self._ballot, {victim.job for victim in self._gone}
        self._gone, self._is_partly_gone = [], False
        if self._lasts:
            self._agreed = [v for v in self._agreed if v.job not in gone]
        else:
            self._victims = [v for v in self._victims if v.job not in gone]
            self._agreed = ballot.by_tier(evictor, self._victims).victims
        left = [v for v in self.victims if v.job not in gone]
        self.victims = ballot.by_sharers(evictor, self._agreed)
        return self.victims != left

    @property
    def n_agreed(self) -> int:
        """The pods on which the first tier with an opinion agreed."""
        return len(self._agreed)

    def evicted(self, victims: list[Victim], *, partly: bool) -> None:
        """*victims* go, of some jobs only *partly*."""
        self._gone += victims
        self._is_partly_gone |= partly


class Candidates:
    """Candidates for evictors that ask the same, and what these may use besides.

    Where plugins look at nothing of an evictor but its queue and priority, they are
    those of evictors that ask for other things as well.

    It is right as long as nothing else moves than by ``keep`` and ``evicted``.
    """

    def __init__(
        self,
        ctx: Context,
        ballot: Ballot,
        job_state: JobState,
        pool: Sequence[JobState],
        min_run_s: float,
    ) -> None:
        self._ctx, self._min_run_s = ctx, min_run_s
        self._giving = ctx.reservations.usable_by(job_state)
        """The reservations that the evictor may use."""
        blocked = ctx.reservations.blocked_by(self._giving)
        self._completing = ctx.reservations.unclaimed(ctx.victim_search.ending)
        able = [each for each in pool if self._may_go(job_state, each, blocked)]
        self._able = {other.job.name: other for other in able}
        victims = [
            Victim(other.job.name, replica)
            for other in able
            for replica in sorted(other.placements, reverse=True)
        ]
        ctx.victim_search.cost += (len(pool) + len(ctx.reservations.by_job)) // FOUND
        self._vote = VictimVote(ballot, job_state, victims)
        self._vain: set[Job] = set()
        """What was asked, however long, and found no victims among those there are."""
        self._known: dict[str, EvictionCandidate] = {}
        self._ranking = self._rank()

    def serves(self, job_state: JobState) -> bool:
        """Whether an evictor of the same queue and priority has the same candidates."""
        return (
            self._vote.by_rank
            and self._ctx.reservations.usable_by(job_state) == self._giving
        )

    def _may_go(
        self, job_state: JobState, other: JobState, is_blocked: Callable[[str], bool]
    ) -> bool:
        """Whether pods of *other* may be asked to end for *job_state* at all.

        No job twice while no job has arrived since, no job that it was evicted for, no
        job in the way of another's reservation, unless that yields to it, and no job
        that is being bound.
        """
        name, ctx = other.job.name, self._ctx
        if other is job_state or other.terminating or is_blocked(name):
            return False
        if name in job_state.history.evicted_by:
            return False
        if other.history.evicted_in == ctx.victim_search.arrivals:
            ctx.victim_search.skipped_recently_evicted = True
            return False
        return self._ran_long_enough(other)

    def _ran_long_enough(self, other: JobState) -> bool:
        """Whether *other* is old enough to go; else it is noted when it will be."""
        ctx = self._ctx
        assert other.started is not None
        old_at = max(other.started + self._min_run_s, other.history.bound_at + BIND_S)
        ctx.wake_at(old_at)
        if old_at > ctx.state.now:
            ctx.victim_search.again_at = min(ctx.victim_search.again_at, old_at)
        return old_at <= ctx.state.now

    def fewest(self, job_state: JobState) -> tuple[list[Choice], Placed] | None:
        """The fewest pods after which *job_state* fits, and where."""
        if self._vote.is_due(few=self._ranking.n_jobs < FEW_CANDIDATES):
            self._vote_again(job_state)
        found = self._tried(job_state)
        if found is None or self._vote.still_holds(_victims_of(found[0])):
            return found
        self._vote_again(job_state)
        return self._tried(job_state)

    def _tried(self, job_state: JobState) -> tuple[list[Choice], Placed] | None:
        """The fewest pods by the last vote."""
        if not self._ranking or job_state.facts.key_without_run_time in self._vain:
            return None
        missing = self._missing_chips(job_state)

        def fits(chosen: Sequence[Choice]) -> Placed | None:
            freed = sum(choice.n_chips for choice in chosen)
            return self._fits_without(job_state, chosen) if freed >= missing else None

        found = self._ranking.fewest(
            fits, missing, PLACED // _work(job_state.remaining)
        )
        if found is None and job_state.job.name not in self._ctx.repairs.open:
            self._vain.add(job_state.facts.key_without_run_time)
        return found

    def _vote_again(self, job_state: JobState) -> None:
        self._vain.clear()
        self._ctx.victim_search.cost += self._vote.n_agreed // ASKED
        if self._vote.vote_again(job_state):
            self._ranking = self._rank()

    def _rank(self) -> Ranking:
        """What the candidates can give up, by the plugins' votes."""
        agreed: dict[str, list[int]] = {}
        for victim in self._vote.victims:
            agreed.setdefault(victim.job, []).append(victim.replica)
        found = []
        for name, other in self._able.items():
            pods = tuple(agreed.get(name, ()))
            known = self._known.get(name)
            if pods and (known is None or known.pods != pods):
                known = self._known[name] = _candidate_of(self._ctx, other, pods)
            if pods and known is not None and (known.whole or known.surplus):
                found.append(known)
        return Ranking(found)

    def _missing_chips(self, job_state: JobState) -> int:
        """Chips that must be free besides those that are, for the job to fit at all."""
        cluster, job = self._ctx.state.cluster, job_state.remaining
        free = np.bitwise_count(cluster.free[of_product(cluster, job.product)]).sum()
        ends = sum(
            len(other.placements[pod].chips)
            for other in self._completing
            for pod in other.terminating
        )
        return min_chips(job) - int(free) - ends

    def _fits_without(
        self, job_state: JobState, chosen: Sequence[Choice]
    ) -> Placed | None:
        """Where the job would be placed if the *chosen* pods were gone."""
        ctx, cluster = self._ctx, self._ctx.state.cluster
        ctx.victim_search.cost += sum(choice.n_pods for choice in chosen)
        ctx.victim_search.cost += max(TRIAL, _work(job_state.remaining))
        with Statement(cluster) as statement:
            for other in self._completing:
                statement.release_pods(other.job.name, other.terminating)
            for choice in chosen:
                statement.release_pods(choice.job, choice.pods)
            for reservation in self._giving:
                statement.drop(reservation.owner)
            if ctx.quota.limit(job_state) is None:
                return None
            return ctx.framework.session.place(
                job_state.remaining, job_state.remaining.effective_min
            )

    def keep(
        self, job_state: JobState, placed: Placed, chosen: Sequence[Choice]
    ) -> Reservation:
        """Reserve the place, in the way of which the victims still are.

        What was reserved before, by the job itself or by others that yield to it, is
        given up.
        """
        ctx = self._ctx
        gone = {choice.job for choice in chosen}
        nodes = {placement.node for placement in placed.placements}
        for other in self._giving:
            meets = not (
                other.nodes.isdisjoint(nodes) and gone.isdisjoint(other.blockers)
            )
            if other.job.name == job_state.job.name:
                give_up(ctx, other)
            elif meets:
                give_up(ctx, other)
                ctx.pending.add(ctx.state.job_states[other.job.name])
        reservation = Reservation(
            job_state.remaining,
            placed.placements,
            since=ctx.state.now,
            why="pods were evicted",
            aged=False,
        )
        for choice in chosen:
            reservation.blocked_elsewhere(ctx.state.job_states[choice.job])
        reservation.blocked_by(self._completing)
        reserve_for(ctx, job_state, reservation)
        report_reservation(ctx, job_state, reservation)
        return reservation

    def evicted(self, chosen: Sequence[Choice], reservation: Reservation) -> None:
        """The *chosen* pods go for *reservation*, which blocks the next evictor."""
        agreed = [len(self._ranking.drop(choice.job).pods) for choice in chosen]
        partly = any(c.n_pods < n for c, n in zip(chosen, agreed, strict=True))
        self._vote.evicted(_victims_of(chosen), partly=partly)
        self._vain.clear()
        self._completing = [
            each
            for each in self._completing
            if each.job.name not in reservation.blockers
        ]


def _work(job: Job) -> int:
    """What it costs to place *job*, in pods."""
    scans = SCANNED * (job.n_requests - 1) + SELECTED * filter_cost(job)
    return max(1, job.n_pods + scans)


def _victims_of(chosen: Iterable[Choice]) -> list[Victim]:
    return [Victim(choice.job, pod) for choice in chosen for pod in choice.pods]


def _candidate_of(
    ctx: Context, other: JobState, pods: tuple[int, ...]
) -> EvictionCandidate:
    """What *other* can give up of the *pods* that the plugins agree on."""
    return EvictionCandidate(
        job=other.job.name,
        pods=pods,
        surplus=other.surplus,
        whole=len(pods) == len(other.placements),
        loss=_loss(ctx, other, pods),
        chips=tuple(len(other.placements[pod].chips) for pod in pods),
        kept=_kept(other, pods),
    )


def _kept(other: JobState, pods: Iterable[int]) -> frozenset[int]:
    """The pods that their roles cannot do without, the lowest numbers first."""
    kept: set[int] = set()
    for role, own in other.facts.role_ranks:
        least = other.job.min_available_of(role) if other.job.roles else 0
        if least:
            spare = max(0, other.ready_in(own) - least)
            kept |= {*sorted({*own} & {*pods}, reverse=True)[spare:]}
    return frozenset(kept)


def _loss(ctx: Context, other: JobState, pods: Iterable[int]) -> tuple[float, ...]:
    """Chip-seconds of work that each pod loses."""
    assert other.started is not None
    seconds = ctx.state.now - other.started
    return tuple(seconds * len(other.placements[pod].chips) for pod in pods)
