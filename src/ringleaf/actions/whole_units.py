"""Moves after which leaves, SuperPoDs or nodes are whole again: no job runs there.

The unit with the fewest jobs is emptied first. Its jobs go to chips that are free
elsewhere, and to none of a unit that is whole already.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ringleaf.actions.emptying import numbered
from ringleaf.actions.move_search import keep_free, moved
from ringleaf.actions.moves import Move, Mover
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.uplinks import NOWHERE


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
