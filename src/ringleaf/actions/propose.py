"""Plans of moves: for a pending job, or so that leaves and SuperPoDs are whole again.

Nothing is carried out here; a plan, or the reason why there is none, is a value.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from ringleaf.actions.emptying import numbered
from ringleaf.actions.move_search import MoveSearch, keep_free, moved
from ringleaf.actions.moves import (
    Move,
    MovePlan,
    Mover,
    NoMoves,
    WhyNot,
    cost_words,
    expected_s,
    movers_of,
    waited_s,
)
from ringleaf.framework.context import Context
from ringleaf.framework.job_state import JobState
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.fit import of_product
from ringleaf.policies.room import min_chips
from ringleaf.policies.words import counted


class Unit(NamedTuple):
    """Nodes that are whole together, and their name."""

    name: str
    nodes: tuple[int, ...]


def units_of(cluster: Cluster) -> list[Unit]:
    """The SuperPoDs of a cluster, or else its leaves, or else its nodes."""
    if (cluster.superpod != NOWHERE).any():
        unit, words = numbered(cluster.superpod), "SuperPoD"
        names = [str(n) for n in np.unique(cluster.superpod[unit != NOWHERE])]
    elif cluster.leaves:
        unit, words = cluster.leaf, "leaf"
        names = [leaf.name for leaf in cluster.leaves]
    else:
        unit, words, names = np.arange(len(cluster)), "node", cluster.names
    return [
        Unit(f"{words} {name}", tuple(np.flatnonzero(unit == i).tolist()))
        for i, name in enumerate(names)
    ]


class Emptied(NamedTuple):
    """A unit that is whole after some moves."""

    unit: Unit
    moves: tuple[Move, ...]


def emptied(
    session: Session, movers: Sequence[Mover], unit: Unit, most: int
) -> Emptied | None:
    """Moves of at most *most* jobs after which no job holds a chip of *unit*."""
    cluster = session.cluster
    inside = {cluster.names[node] for node in unit.nodes}
    chosen = [m for m in movers if any(p.node in inside for p in m.placements)]
    chosen.sort(key=lambda mover: (-mover.chips, mover.order))
    if not 0 < len(chosen) <= most:
        return None
    barred = _whole_nodes(cluster, [*unit.nodes])
    with Statement(cluster) as statement:
        for mover in chosen:
            statement.drop(mover.job.name)
        if not is_vacant(cluster, unit):
            return None
        keep_free(statement, cluster, chosen, barred)
        moves = moved(session, chosen)
    return None if isinstance(moves, Mover) else Emptied(unit, moves)


def take_over(statement: Statement, moves: Sequence[Move]) -> None:
    """Hold the cluster as it is after *moves*."""
    for move in moves:
        statement.drop(move.job)
    for move in moves:
        roles = move.mover.job.role_by_pod
        for place in move.after:
            statement.hold_placement(move.job, place, roles[place.replica].demand)


def is_vacant(cluster: Cluster, unit: Unit) -> bool:
    """Whether no job holds a chip of *unit*."""
    return not cluster.taken[[*unit.nodes]].any()


def units_left(cluster: Cluster) -> list[Unit]:
    """The units that are not whole."""
    return [unit for unit in units_of(cluster) if not is_vacant(cluster, unit)]


def _whole_nodes(cluster: Cluster, own: list[int]) -> list[int]:
    """The nodes of *own*, and those of units that are whole."""
    barred: Ints = np.zeros(len(cluster), np.int64)
    barred[own] = 1
    for unit in units_of(cluster):
        if is_vacant(cluster, unit):
            barred[[*unit.nodes]] = 1
    return np.flatnonzero(barred).tolist()


def waiting_jobs(ctx: Context) -> list[JobState]:
    """Jobs that wait for a place, of those that ask the same the first, in order."""
    pending = ctx.pending
    found = [
        job_class.first_job
        for queue in [*ctx.state.queue_usage]
        for job_class in chain(
            pending.admitted.classes_in(queue), pending.unadmitted.classes_in(queue)
        )
    ]
    states = ctx.state.job_states
    found += [states[each.job.name] for each in ctx.reservations.aged]
    waiting = [each for each in found if is_pending(ctx, each)]
    return sorted(waiting, key=pending.key_of)


def is_pending(ctx: Context, job_state: JobState) -> bool:
    """Whether a job waits for a place that others could leave to it."""
    job = job_state.job
    if job_state.placements or job_state.finished or job.podless or not job.preempts:
        return False
    reservation = ctx.reservations.get(job.name)
    return reservation is None or reservation.aged


def propose(
    ctx: Context, job_state: JobState | None, most: int, *, ratio: float = 1.0
) -> MovePlan | NoMoves:
    """The fewest moves after which a pending job starts, *most* at most.

    Only a plan is proposed that gains *ratio* times its cost.
    """
    if job_state is None or not is_pending(ctx, job_state):
        return NoMoves(WhyNot.UNKNOWN)
    job, cluster = job_state.remaining, ctx.state.cluster
    own, movers = ctx.reservations.get(job.name), movers_of(ctx, job)
    with Statement(cluster) as statement:
        if own is not None:
            statement.drop(own.owner)
        session = ctx.framework.session
        no = _why_not(ctx, job_state)
        if no is not None:
            return no
        search = MoveSearch(session, job, job.effective_min, movers, most)
        found = search.fewest()
    if found is None:
        words = f"of the {counted(len(movers), 'job')} that may be moved"
        why = WhyNot.TOO_MANY if search.exceeds_most else WhyNot.NO_ROOM
        words = (
            f"want {search.n_fewest}, at most {most}" if search.exceeds_most else words
        )
        return NoMoves(why, words, job=job.name)
    plan = MovePlan(
        moves=found.moves,
        job=job.name,
        places=tuple(sorted(found.places, key=lambda p: p.replica)),
        chips=sum(len(place.chips) for place in found.places),
        sooner_s=waited_s(ctx, job_state),
    )
    return _worth_it(plan, ratio)


def _why_not(ctx: Context, job_state: JobState) -> NoMoves | None:
    """Why no moves need be looked for, where that is known without a search."""
    job, cluster = job_state.remaining, ctx.state.cluster
    if ctx.framework.session.would_place(job):
        return NoMoves(WhyNot.FITS, job=job.name)
    own = of_product(cluster, job.product)
    free = int(np.bitwise_count((cluster.free & cluster.healthy)[own]).sum())
    if free < min_chips(job):
        words = f"{free} of {counted(min_chips(job), 'chip')}"
        return NoMoves(WhyNot.FEW_CHIPS, words, job=job.name)
    if ctx.quota.limit(job_state) is None:
        return NoMoves(WhyNot.QUOTA, job=job.name)
    if not movers_of(ctx, job):
        words = _movable_words(ctx, job_state)
        return NoMoves(WhyNot.NONE_MOVABLE, words, job=job.name)
    return None


def _worth_it(plan: MovePlan, ratio: float) -> MovePlan | NoMoves:
    if plan.benefit >= ratio * plan.cost and plan.benefit > 0:
        return plan
    words = cost_words(plan)
    if ratio > 1:
        words += f", want {ratio:g} times as much"
    return NoMoves(WhyNot.TOO_COSTLY, words, plan, plan.job)


def _movable_words(ctx: Context, job_state: JobState) -> str:
    """How many running jobs there are, and why none may be moved."""
    running = [s for s in ctx.state.job_states.values() if s.placements]
    movable = [s for s in running if s.job.moving is not None]
    above = [s for s in movable if s.job.priority > job_state.job.priority]
    if not movable:
        return f"none of {counted(len(running), 'job')} says that it is movable"
    return (
        f"of {counted(len(movable), 'movable job')}, {len(above)} of higher priority; "
        "the others end, are repaired, or may not be evicted"
    )


def propose_whole(ctx: Context, most: int) -> MovePlan | NoMoves:
    """Moves, *most* at most, after which leaves, SuperPoDs or nodes are whole.

    Those with the fewest jobs first, as long as each gains more than its moves cost.
    """
    movers = movers_of(ctx)
    if not movers:
        return NoMoves(WhyNot.NONE_MOVABLE)
    done: list[MovePlan] = []
    costly: MovePlan | None = None
    with Statement(ctx.state.cluster) as statement:
        while True:
            left = most - sum(len(plan.moves) for plan in done)
            gone = {move.job for plan in done for move in plan.moves}
            free = [mover for mover in movers if mover.job.name not in gone]
            plans = [_unit_plan(ctx, each) for each in _emptied(ctx, free, left)]
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


def _emptied(ctx: Context, movers: list[Mover], most: int) -> list[Emptied]:
    """Every unit that some of *movers* leave whole, with their moves."""
    session = ctx.framework.session
    found = (
        emptied(session, movers, unit, most) for unit in units_left(session.cluster)
    )
    return [each for each in found if each is not None]


def _unit_plan(ctx: Context, found: Emptied) -> MovePlan:
    """What it costs and gains to make one unit whole."""
    cluster, states = ctx.state.cluster, ctx.state.job_states
    chips = int(cluster.size[[*found.unit.nodes]].sum())
    after_s = expected_s(ctx, [states[move.job] for move in found.moves])
    return MovePlan(
        found.moves, units=(found.unit.name,), chips=chips, sooner_s=after_s
    )
