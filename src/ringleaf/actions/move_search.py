"""Which running jobs are moved, and where to: the fewest, then the cheapest.

A trial takes jobs away, places the pending job, and places those jobs elsewhere, on
chips that were free before: all by the rules of the session, inside a statement that is
taken back. So no rule of placement is known here.

Where few jobs may be moved, all choices of jobs are tried, the fewest and cheapest
first, and where the places of the moved jobs and of the pending one compete, all ways
to divide the free nodes between them. Where there are many, nodes are emptied one by
one, or leaf by leaf, or SuperPoD by SuperPoD: those with the fewest jobs for the nodes
that they yield. When the pending job fits, those jobs stay that can, the dearest first.
"""

from collections.abc import Collection, Sequence
from itertools import combinations, permutations, product
from math import comb
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.actions.emptying import Emptying, units_to_empty
from ringleaf.actions.moves import Move, Mover
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.job import Job
from ringleaf.model.mask import mask_of
from ringleaf.model.owner import Hold, Purpose
from ringleaf.model.placement import JobType, LeafAnnotation, Placement

MOST_CHOICES: Final = 4_000
"""The most choices of jobs of which each one is tried."""
MAX_DIVIDED: Final = 10
"""The most free nodes for which each way to divide them is tried."""
MAX_ORDERS: Final = 3
"""The most moved jobs for which each order of placing them is tried."""
MAX_WORK: Final = 1 << 16
"""Pods that are placed in trials before the search ends."""
MOVE_TRIAL: Final = 16
"""What a trial costs besides the pods that it places, in pods."""
MAX_BANNED: Final = 16
"""Jobs that find no other place, before no more choices are made without them."""

_COMMON: Final = LeafAnnotation(job_type=JobType.COMMON)
"""What is kept free crosses no leaf, and keeps no job from crossing it."""


class Found(Struct, frozen=True):
    """Moves, and where the pending job starts after them."""

    moves: tuple[Move, ...]
    places: tuple[Placement, ...]

    @property
    def order(self) -> tuple[int, float, list[str]]:
        """The fewest moves first, then the cheapest."""
        return (
            len(self.moves),
            sum(move.mover.cost for move in self.moves),
            [move.job for move in self.moves],
        )


class MoveSearch:
    """The search for moves after which one job fits.

    Args:
        session: Places jobs by the rules.
        job: The pending job.
        least: Pods with which it starts at least.
        movers: The jobs that may be moved, the cheapest first.
        most: The most moves.

    """

    def __init__(
        self,
        session: Session,
        job: Job,
        least: int,
        movers: Sequence[Mover],
        most: int,
    ) -> None:
        self._session, self._cluster = session, session.cluster
        self._job, self._least, self._movers = job, least, movers
        self._most = most
        self.n_fewest = 0
        """The fewest moves that were found, where that was more than may be."""
        self._work = 0
        self._best: Found | None = None

    def fewest(self) -> Found | None:
        """The fewest moves, and of these the cheapest; None where none are enough."""
        if self._fits(self._movers) is None:
            return None
        self._by_emptying()
        self._by_trying_all()
        return self._best

    @property
    def exceeds_most(self) -> bool:
        """Whether moves were found, but more than may be."""
        return self._best is None and self.n_fewest > self._most

    @property
    def is_spent(self) -> bool:
        """Whether trials have cost as much as they may."""
        return self._work >= MAX_WORK

    # Trials.

    def _fits(self, chosen: Collection[Mover]) -> tuple[Placement, ...] | None:
        """Where the job would be placed if *chosen* were gone."""
        self._work += MOVE_TRIAL + self._job.n_pods
        with Statement(self._cluster) as statement:
            for mover in chosen:
                statement.drop(mover.job.name)
            placed = self._session.place(self._job, self._least)
        return None if placed is None else placed.placements

    def _try(self, chosen: Sequence[Mover]) -> Mover | None:
        """Note the moves of *chosen* if all find places; else the one that does not.

        The pending job is placed before them, or they before it.
        """
        largest = sorted(chosen, key=lambda mover: (-mover.chips, mover.order))
        stuck = largest[0]
        for first in (True, False):
            found = self._together(largest, first=first)
            if isinstance(found, Found):
                self._note(found)
                return None
            stuck = found or stuck
        return stuck

    def _note(self, found: Found) -> None:
        n_moves = len(found.moves)
        if n_moves > self._most:
            self.n_fewest = min(self.n_fewest or n_moves, n_moves)
        elif self._best is None or found.order < self._best.order:
            self._best = found

    def _together(
        self, chosen: Sequence[Mover], *, first: bool, barred: Sequence[int] = ()
    ) -> Found | Mover | None:
        """All places, with the pending job placed *first* or last.

        No moved job goes to *barred* nodes. Else the job that finds none, or nothing if
        that is the pending one.
        """
        cluster, session = self._cluster, self._session
        self._work += (
            2 * MOVE_TRIAL + self._job.n_pods + sum(m.job.n_pods for m in chosen)
        )
        with Statement(cluster) as statement:
            for mover in chosen:
                statement.drop(mover.job.name)
            placed = session.place(self._job, self._least) if first else None
            kept = keep_free(statement, cluster, chosen, barred)
            moves = moved(session, chosen)
            if isinstance(moves, Mover):
                return moves
            for owner in kept:
                statement.drop(owner)
            if placed is None:
                placed = session.place(self._job, self._least)
        if placed is None:
            return None
        return Found(moves, placed.placements)

    # Few jobs: all choices.

    def _by_trying_all(self) -> None:
        """Try all choices that are better than the best so far, if they are few."""
        most = self._most if self._best is None else len(self._best.moves)
        choices = 0
        for n_moves in range(1, min(most, len(self._movers)) + 1):
            choices += comb(len(self._movers), n_moves)
            if choices > MOST_CHOICES:
                return
            chosen = [*combinations(self._movers, n_moves)]
            chosen.sort(key=_order_of)
            for each in chosen:
                if self.is_spent:
                    return
                if self._best is not None and _order_of(each) >= self._best.order:
                    break
                if self._fits(each) is not None and self._try(each) is not None:
                    self._try_divided(self._orders(each))
            if self._best is not None and len(self._best.moves) == n_moves:
                return

    def _orders(self, chosen: Sequence[Mover]) -> list[tuple[Mover, ...]]:
        """The orders in which *chosen* find places, as far as only they need any."""
        few = len(chosen) <= MAX_ORDERS
        orders = [*permutations(chosen)] if few else [tuple(chosen)]
        return [each for each in orders if self._elsewhere(each)]

    def _elsewhere(self, chosen: Sequence[Mover]) -> bool:
        """Whether *chosen* find other places if the pending job stays away."""
        self._work += MOVE_TRIAL + sum(mover.job.n_pods for mover in chosen)
        with Statement(self._cluster) as statement:
            for mover in chosen:
                statement.drop(mover.job.name)
            keep_free(statement, self._cluster, chosen, ())
            return not isinstance(moved(self._session, chosen), Mover)

    def _try_divided(self, orders: Sequence[Sequence[Mover]]) -> None:
        """Try all ways to divide the free nodes between moved and pending jobs."""
        cluster = self._cluster
        free = np.flatnonzero(cluster.free & cluster.healthy).tolist()
        if len(free) > MAX_DIVIDED:
            return
        ways = (
            (order, barred)
            for n_barred in range(1, len(free))
            for barred in combinations(free, n_barred)
            for order in orders
        )
        for order, barred in ways:
            found = self._together(order, first=False, barred=barred)
            if isinstance(found, Found):
                self._note(found)
            if isinstance(found, Found) or self.is_spent:
                return

    # Many jobs: empty what yields most.

    def _by_emptying(self) -> None:
        """Choices of jobs that empty nodes, leaves or SuperPoDs.

        First of jobs whose pods leave room on a node: others need as many whole nodes
        elsewhere as they leave.
        """
        banned: set[str] = set()
        whole = self._job.product.chips
        parts = [mover for mover in self._movers if mover.job.chips < whole]
        units = units_to_empty(self._cluster, self._job)
        for unit, able in product(units, (parts, self._movers)):
            while len(banned) <= MAX_BANNED and not self.is_spent:
                movers = [m for m in able if m.job.name not in banned]
                chosen = self._emptied(movers, unit)
                if not chosen:
                    break
                stuck = self._try(chosen)
                if stuck is None:
                    break
                banned.add(stuck.job.name)

    def _emptied(self, movers: Sequence[Mover], unit: Ints) -> list[Mover]:
        """Jobs without which the pending one fits; none where it does not."""
        plan = Emptying(self._cluster, self._job, movers, unit)
        needed = self._job.min_chip_pods
        chosen: list[Mover] = []
        while not self.is_spent and plan.advance():
            if plan.n_open < needed:
                continue
            chosen = plan.chosen
            if self._fits(chosen) is not None:
                return self._without_spare(chosen)
            needed = plan.n_open + max(1, (plan.n_open - needed) // 2)
        return []

    def _without_spare(self, chosen: list[Mover]) -> list[Mover]:
        """*chosen* without those that can stay: first those not in the way."""
        places = self._fits(chosen) or ()
        fewer = [each for each in chosen if _meets(each, places)]
        while len(fewer) < len(chosen) and (found := self._fits(fewer)):
            chosen, fewer = fewer, [each for each in fewer if _meets(each, found)]
        for each in sorted(chosen, key=lambda mover: mover.order, reverse=True):
            fewer = [other for other in chosen if other is not each]
            if fewer and not self.is_spent and self._fits(fewer) is not None:
                chosen = fewer
        return chosen


def moved(session: Session, chosen: Sequence[Mover]) -> tuple[Move, ...] | Mover:
    """Place all pods of jobs anew that hold nothing, one job after the other.

    Else the first job of which too few pods fit.
    """
    moves = []
    for mover in chosen:
        found = session.place(replace(mover.job, previous=None))
        if found is None or len(found.placements) < len(mover.placements):
            return mover
        after = sorted(found.placements, key=lambda place: place.replica)
        moves.append(Move(mover, tuple(after)))
    return tuple(sorted(moves, key=lambda move: move.mover.order))


def keep_free(
    statement: Statement,
    cluster: Cluster,
    chosen: Sequence[Mover],
    barred: Sequence[int],
) -> list[Hold]:
    """Hold what moved jobs may not take, and say under which owners.

    That is what of their old places is free now, with what their pods use there: it is
    not free before they have stopped; and what is free of *barred* nodes.
    """
    owners: dict[Hold, None] = {}

    def keep(node: int, chips: int, demand: Demand = NOTHING) -> None:
        owner = Hold(f"leaf {cluster.leaf.item(node)}", Purpose.MOVE)
        owners[owner] = None
        statement.hold(owner, node, chips, mark=_COMMON, demand=demand)

    for mover in chosen:
        roles = mover.job.role_by_pod
        for placement in mover.placements:
            node = cluster.index[placement.node]
            chips = mask_of(placement.chips) & cluster.free.item(node)
            demand = replace(
                NOTHING, resources=roles[placement.replica].demand.resources
            )
            keep(node, chips, demand)
    for node in barred:
        keep(node, cluster.free.item(node))
    return [*owners]


def _meets(mover: Mover, places: Sequence[Placement]) -> bool:
    """Whether a job holds chips that are in *places*."""
    own = {(p.node, chip) for p in mover.placements for chip in p.chips}
    return any((p.node, chip) in own for p in places for chip in p.chips)


def _order_of(chosen: Sequence[Mover]) -> tuple[int, float, list[str]]:
    """The fewest first, then the cheapest."""
    own = sorted(chosen, key=lambda mover: mover.order)
    return len(own), sum(mover.cost for mover in own), [m.job.name for m in own]
