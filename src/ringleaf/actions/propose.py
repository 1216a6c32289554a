"""Plans of moves: for a pending job, or so that leaves and SuperPoDs are whole again.

Nothing is carried out here; a plan, or the reason why there is none, is a value.
"""

from itertools import chain

import numpy as np

from ringleaf.actions.move_search import MoveSearch
from ringleaf.actions.moves import (
    MovePlan,
    Mover,
    NoMoves,
    WhyNot,
    cost_words,
    expected_s,
    movers_of,
    waited_s,
)
from ringleaf.actions.whole_units import Emptied, emptied, take_over, units_left
from ringleaf.framework.cycle import Cycle
from ringleaf.framework.job_state import JobState
from ringleaf.framework.statement import Statement
from ringleaf.policies.counting import counted
from ringleaf.policies.fit import of_product
from ringleaf.policies.room import min_chips


def waiting_jobs(cycle: Cycle) -> list[JobState]:
    """Jobs that wait for a place, of those that ask the same the first, in order."""
    pending = cycle.pending
    found = [
        job_class.front[1]
        for queue in [*cycle.view.accounts]
        for job_class in chain(
            pending.waiting.classes_in(queue), pending.unadmitted.classes_in(queue)
        )
    ]
    states = cycle.view.job_states
    found += [states[each.job.name] for each in cycle.reservations.aged]
    waiting = [each for each in found if is_pending(cycle, each)]
    return sorted(waiting, key=pending.key_of)


def is_pending(cycle: Cycle, job_state: JobState) -> bool:
    """Whether a job waits for a place that others could leave to it."""
    job = job_state.job
    if job_state.placements or job_state.finished or job.podless or not job.preempts:
        return False
    reservation = cycle.reservations.get(job.name)
    return reservation is None or reservation.aged


def propose(
    cycle: Cycle, job_state: JobState | None, most: int, *, ratio: float = 1.0
) -> MovePlan | NoMoves:
    """The fewest moves after which a pending job starts, *most* at most.

    Only a plan is proposed that gains *ratio* times its cost.
    """
    if job_state is None or not is_pending(cycle, job_state):
        return NoMoves(WhyNot.UNKNOWN)
    job, cluster = job_state.remaining, cycle.view.cluster
    own, movers = cycle.reservations.get(job.name), movers_of(cycle, job)
    with Statement(cluster) as statement:
        if own is not None:
            statement.drop(own.owner)
        session = cycle.framework.session
        no = _why_not(cycle, job_state)
        if no is not None:
            return no
        search = MoveSearch(session, job, job.effective_min, movers, most)
        found = search.fewest()
    if found is None:
        told = f"of the {counted(len(movers), 'job')} that may be moved"
        why = WhyNot.TOO_MANY if search.exceeds_most else WhyNot.NO_ROOM
        told = (
            f"want {search.n_fewest}, at most {most}" if search.exceeds_most else told
        )
        return NoMoves(why, told, job=job.name)
    plan = MovePlan(
        moves=found.moves,
        job=job.name,
        places=tuple(sorted(found.places, key=lambda p: p.replica)),
        chips=sum(len(place.chips) for place in found.places),
        sooner_s=waited_s(cycle, job_state),
    )
    return _worth_it(plan, ratio)


def _why_not(cycle: Cycle, job_state: JobState) -> NoMoves | None:
    """Why no moves need be looked for, where that is known without a search."""
    job, cluster = job_state.remaining, cycle.view.cluster
    if cycle.framework.session.would_place(job):
        return NoMoves(WhyNot.FITS, job=job.name)
    own = of_product(cluster, job.product)
    free = int(np.bitwise_count((cluster.free & cluster.healthy)[own]).sum())
    if free < min_chips(job):
        told = f"{free} of {counted(min_chips(job), 'chip')}"
        return NoMoves(WhyNot.FEW_CHIPS, told, job=job.name)
    if cycle.quota.limit(job_state) is None:
        return NoMoves(WhyNot.QUOTA, job=job.name)
    if not movers_of(cycle, job):
        told = _movable_words(cycle, job_state)
        return NoMoves(WhyNot.NONE_MOVABLE, told, job=job.name)
    return None


def _worth_it(plan: MovePlan, ratio: float) -> MovePlan | NoMoves:
    if plan.benefit >= ratio * plan.cost and plan.benefit > 0:
        return plan
    told = cost_words(plan)
    if ratio > 1:
        told += f", want {ratio:g} times as much"
    return NoMoves(WhyNot.TOO_COSTLY, told, plan, plan.job)


def _movable_words(cycle: Cycle, job_state: JobState) -> str:
    """How many running jobs there are, and why none may be moved."""
    running = [s for s in cycle.view.job_states.values() if s.placements]
    movable = [s for s in running if s.job.moving is not None]
    above = [s for s in movable if s.job.priority > job_state.job.priority]
    if not movable:
        return f"none of {counted(len(running), 'job')} says that it is movable"
    return (
        f"of {counted(len(movable), 'movable job')}, {len(above)} of higher priority; "
        "the others end, are repaired, or may not be evicted"
    )


def propose_whole(cycle: Cycle, most: int) -> MovePlan | NoMoves:
    """Moves, *most* at most, after which leaves, SuperPoDs or nodes are whole.

    Those with the fewest jobs first, as long as each gains more than its moves cost.
    """
    movers = movers_of(cycle)
    if not movers:
        return NoMoves(WhyNot.NONE_MOVABLE)
    done: list[MovePlan] = []
    costly: MovePlan | None = None
    with Statement(cycle.view.cluster) as statement:
        while True:
            left = most - sum(len(plan.moves) for plan in done)
            gone = {move.job for plan in done for move in plan.moves}
            free = [mover for mover in movers if mover.job.name not in gone]
            plans = [_unit_plan(cycle, each) for each in _emptied(cycle, free, left)]
            paying = [plan for plan in plans if plan.pays]
            costly = next((plan for plan in plans if not plan.pays), costly)
            if not paying:
                break
            best = min(paying, key=lambda p: (len(p.moves), p.cost, p.units))
            take_over(statement, best.moves)
            done.append(best)
    if not done and costly is not None:
        return NoMoves(WhyNot.TOO_COSTLY, cost_words(costly), costly)
    if not done:
        return NoMoves(WhyNot.NO_ROOM, f"of the {counted(len(movers), 'movable job')}")
    chips = sum(plan.chips for plan in done)
    return MovePlan(
        tuple(move for plan in done for move in plan.moves),
        units=tuple(name for plan in done for name in plan.units),
        chips=chips,
        sooner_s=sum(plan.benefit for plan in done) / chips,
    )


def _emptied(cycle: Cycle, movers: list[Mover], most: int) -> list[Emptied]:
    """Every unit that some of *movers* leave whole, with their moves."""
    session = cycle.framework.session
    found = (
        emptied(session, movers, unit, most) for unit in units_left(session.cluster)
    )
    return [each for each in found if each is not None]


def _unit_plan(cycle: Cycle, found: Emptied) -> MovePlan:
    """What it costs and gains to make one unit whole."""
    cluster, states = cycle.view.cluster, cycle.view.job_states
    chips = int(cluster.size[[*found.unit.nodes]].sum())
    after_s = expected_s(cycle, [states[move.job] for move in found.moves])
    return MovePlan(
        found.moves, units=(found.unit.name,), chips=chips, sooner_s=after_s
    )
