"""Evictions for a whole job: who may go, who does, and the place that is kept.

Nothing is evicted before it is certain that the job then fits, all of it, where its
topology wants it. The place is reserved for it until those who hold it are gone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from ringleaf.actions.reserve import free_enders, tell_booking
from ringleaf.actions.victims import Choice, Prey, fewest_victims
from ringleaf.framework.booking import Booking
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.instruction import Report, Verdict
from ringleaf.framework.plugin import Victim
from ringleaf.framework.standing import Phase, Standing
from ringleaf.framework.statement import Statement
from ringleaf.model.decision import Placed
from ringleaf.policies.fit import counted, of_product, some_of

SOON_S: Final = 1.0
"""When to look again for victims among those that are being bound."""

Agree = Callable[[Standing, Sequence[Victim]], list[Victim]]


class Hunt(Struct, frozen=True):
    """How an action evicts: its name, its arguments, and the plugins' votes."""

    action: str
    agree: Agree
    min_run_s: float
    preview: bool


def hunt_of(cycle: Cycle, action: str, agree: Agree) -> Hunt:
    """The hunt of an action as it is configured."""
    arguments = cycle.arguments(action)
    min_run_s = arguments["min-run-seconds"]
    assert isinstance(min_run_s, int)
    return Hunt(action, agree, min_run_s, arguments["preview"] is True)


def fresh(cycle: Cycle, action: str) -> Iterator[Standing]:
    """Who was tried in vain, but those for whom nothing has moved since.

    The first of each line, the next when a place was found for the first; then those
    who have a reservation because they waited long.
    """
    for line in cycle.failed:
        if line.hunted.get(action) != cycle.moves:
            while line:
                _key, standing = line.front
                yield standing
                if standing.job.name not in cycle.bookings:
                    break
            line.hunted[action] = cycle.moves
    for booking in list(cycle.bookings.values()):
        if booking.aged and booking.hunted.get(action) != cycle.moves:
            booking.hunted[action] = cycle.moves
            yield cycle.view.standings[booking.job.name]


def evict_for(
    cycle: Cycle, standing: Standing, candidates: Iterable[Standing], hunt: Hunt
) -> bool:
    """Evict the fewest pods so that *standing* fits; whether a place is kept for it.

    Only for who has not started: a running job that lost pods evicts nobody.
    """
    if standing.phase is Phase.RUNNING or standing.job.podless:
        return False
    prey = list(_prey(cycle, standing, candidates, hunt))
    if not prey:
        return False

    missing = _missing_chips(cycle, standing)

    def fits(chosen: Sequence[Choice]) -> Placed | None:
        freed = sum(choice.n_chips for choice in chosen)
        return _fits_without(cycle, standing, chosen) if freed >= missing else None

    found = fewest_victims(prey, fits)
    if found is None:
        return False
    chosen, placed = found
    if hunt.preview:
        _preview(cycle, standing, chosen)
        return False
    if not cycle.is_promised(standing, placed):
        return False
    cycle.tell(standing, Verdict.EVICTS, _words(standing, chosen, "will"))
    _keep(cycle, standing, placed, chosen)
    for choice in chosen:
        victim = cycle.view.standings[choice.job]
        cycle.evict(victim, choice.pods, standing.job.name, hunt.action)
    return True


def _preview(cycle: Cycle, standing: Standing, chosen: Sequence[Choice]) -> None:
    """Say who would go, if it is news: what is lost grows with time, and is none.

    Nor is it which pods of a job would go.
    """
    whom = [(each.job, each.n_pods, bool(each.n_needed)) for each in chosen]
    if standing.previewed != whom:
        standing.previewed = whom
        told = _words(standing, chosen, "would")
        cycle.out.append(Report(standing.job.name, Verdict.WOULD_EVICT, told))


def _prey(
    cycle: Cycle, standing: Standing, candidates: Iterable[Standing], hunt: Hunt
) -> Iterable[Prey]:
    """What the candidates can give up, by the plugins' votes."""
    able = [other for other in candidates if _may_go(cycle, standing, other, hunt)]
    able.sort(key=cycle.votes.job_key, reverse=True)
    victims = [
        Victim(other.job.name, replica)
        for other in able
        for replica in sorted(other.placements, reverse=True)
    ]
    agreed: dict[str, list[int]] = {}
    for victim in hunt.agree(standing, victims) if victims else ():
        agreed.setdefault(victim.job, []).append(victim.replica)
    for other in able:
        pods = tuple(agreed.get(other.job.name, ()))
        whole = len(pods) == len(other.placements)
        if pods and (whole or other.surplus):
            yield Prey(
                job=other.job.name,
                pods=pods,
                surplus=other.surplus,
                whole=whole,
                loss=_loss(cycle, other, pods),
                chips=tuple(len(other.placements[pod].chips) for pod in pods),
                kept=_kept(other, pods),
            )


def _may_go(cycle: Cycle, standing: Standing, other: Standing, hunt: Hunt) -> bool:
    """Whether pods of *other* may be asked to end for *standing* at all.

    Nobody twice while no job has arrived since, nobody for whom it was evicted itself,
    nobody who is in the way of another's reservation already, unless that yields to it,
    and nobody who is being bound.
    """
    name = other.job.name
    able = other.placements and not other.terminating and other.started is not None
    if other is standing or not able or not other.job.preemptable:
        return False
    if name in standing.evicted_by:
        return False
    own = standing.job.name
    blocked = [b for b in cycle.bookings.values() if name in b.blockers]
    if not all(b.job.name == own or cycle.yields(b, standing) for b in blocked):
        return False
    if other.evicted_in == cycle.arrivals:
        cycle.spared = True
        return False
    return _ran_long_enough(cycle, other, hunt)


def _ran_long_enough(cycle: Cycle, other: Standing, hunt: Hunt) -> bool:
    """Whether *other* is old enough to go; else it is noted when it will be."""
    assert other.started is not None
    old_at = other.started + hunt.min_run_s
    if other.job.name in cycle.bound:
        old_at = max(old_at, cycle.now + SOON_S)
    cycle.hunt_again_at(old_at)
    return old_at <= cycle.now


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


def _missing_chips(cycle: Cycle, standing: Standing) -> int:
    """Chips that must be free besides those that are, for the job to fit at all."""
    cluster, job = cycle.view.cluster, standing.rest
    free = np.bitwise_count(cluster.free[of_product(cluster, job.product)]).sum()
    ends = sum(
        len(other.placements[pod].chips)
        for other in free_enders(cycle)
        for pod in other.terminating
    )
    return job.needed * job.chips * (not job.roles) - int(free) - ends


def _fits_without(
    cycle: Cycle, standing: Standing, chosen: Sequence[Choice]
) -> Placed | None:
    """Where the job would be placed if the *chosen* pods were gone."""
    with Statement(cycle.view.cluster) as statement:
        for other in free_enders(cycle):
            statement.release_pods(other.job.name, other.terminating)
        for choice in chosen:
            statement.release_pods(choice.job, choice.pods)
        for booking in cycle.bookings.values():
            if booking.job.name == standing.job.name or cycle.yields(booking, standing):
                booking.let_go(statement, cycle.view.cluster)
        if cycle.quota(standing) is None:
            return None
        return cycle.session.preview(standing.rest, standing.rest.fewest)


def _keep(
    cycle: Cycle, standing: Standing, placed: Placed, chosen: Sequence[Choice]
) -> None:
    """Reserve the place, in the way of which the victims still are.

    What was reserved before, by the job itself or by others who yield to it, is given
    up.
    """
    gone = {choice.job for choice in chosen}
    nodes = {placement.node for placement in placed.placements}
    for other in list(cycle.bookings.values()):
        meets = not other.nodes.isdisjoint(nodes) or not gone.isdisjoint(other.blockers)
        if other.job.name == standing.job.name:
            cycle.give_up(other)
        elif meets and cycle.yields(other, standing):
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
    booking.blocked_by(free_enders(cycle))
    cycle.book(standing, booking)
    tell_booking(cycle, standing, booking)


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
