"""A transaction over the cluster: all of it or nothing of it.

A statement writes at once, so that what follows in the same statement sees it, and
remembers how to take every write back. Leaving the ``with`` block without ``commit``
takes everything back, bit by bit.

Statements nest. What an inner statement commits becomes part of the outer one, and is
taken back with it. So ``with Statement(cluster):`` around any decision is a what-if.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Self

import numpy as np
from msgspec.structs import replace

from ringleaf.model.cluster import Cluster, Holding
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.mask import mask_of
from ringleaf.model.owner import Owner
from ringleaf.model.placement import NO_MARK, LeafAnnotation, Placement


class Statement:
    """Operations on one cluster that are kept or taken back together."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._undo: list[Callable[[], object]] = []
        self._outer: list[Callable[[], object]] | None = None

    def __enter__(self) -> Self:
        cluster = self._cluster
        self._outer, cluster.open_statement = cluster.open_statement, self._undo
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._undo:
            self.rollback()
        self._cluster.open_statement = self._outer

    def allocate(
        self,
        owner: Owner,
        node: int,
        chips: int,
        replica: int = 0,
        mark: LeafAnnotation = NO_MARK,
        *,
        demand: Demand = NOTHING,
    ) -> None:
        """Give *chips* of *node* to *owner*; they must be free and healthy (D18)."""
        usable = self._cluster.free.item(node) & self._cluster.healthy.item(node)
        assert chips & usable == chips, "a chip was given that is not usable"
        self.hold(owner, node, chips, replica, mark, demand=demand)

    def hold(
        self,
        owner: Owner,
        node: int,
        chips: int,
        replica: int = 0,
        mark: LeafAnnotation = NO_MARK,
        *,
        demand: Demand = NOTHING,
        charged: tuple[tuple[str, int], ...] | None = None,
    ) -> None:
        """*owner* holds *chips* of *node*, whatever their health.

        Its queue is charged for *charged*, or for what *owner* holds.
        """
        cluster = self._cluster
        taken = cluster.taken.item(node)
        holding = Holding(node, chips, replica, mark, demand, charged)
        cluster.holdings.setdefault(owner, []).append(holding)
        self._undo.append(lambda: self._unhold(owner, taken))
        # As _move does, without its calls: every pod of every decision comes here.
        if demand.resources:
            cluster.node_table.resources.use(node, demand, 1)
        cluster.take(node, taken | chips)
        if cluster.leaves:
            cluster.uplinks.count(owner, cluster.leaf.item(node), chips, mark, 1)
        for watcher in cluster.watchers:
            watcher(owner, holding, 1)

    def hold_placement(
        self,
        owner: Owner,
        placement: Placement,
        demand: Demand = NOTHING,
        *,
        chips: int | None = None,
        charged: tuple[tuple[str, int], ...] | None = None,
    ) -> None:
        """*owner* holds the place of a pod; only *chips* of it, if they are given."""
        node = self._cluster.index[placement.node]
        chips = mask_of(placement.chips) if chips is None else chips
        mark = placement.mark or NO_MARK
        self.hold(
            owner, node, chips, placement.replica, mark, demand=demand, charged=charged
        )

    def hold_many(self, held: Sequence[tuple[Owner, Holding]]) -> None:
        """Jobs hold something; like ``hold`` for each, with fewer writes to arrays.

        No chip is held by others, nor by two of them.
        """
        cluster = self._cluster
        nodes_of: dict[Demand, list[int]] = {}
        for owner, holding in held:
            nodes_of.setdefault(holding.demand, []).append(holding.node)
            cluster.holdings.setdefault(owner, []).append(holding)
        for demand, nodes in nodes_of.items():
            cluster.node_table.resources.use_many(np.array(nodes, np.intp), demand)
        cluster.take_many([h.node for _job, h in held], [h.chips for _job, h in held])
        self._undo.append(lambda: self._unhold_many(held))
        for owner, holding in held:
            self._notify(owner, holding, 1)

    def _unhold_many(self, held: Sequence[tuple[Owner, Holding]]) -> None:
        for owner, holding in reversed(held):
            self._unhold(owner, self._cluster.taken.item(holding.node) & ~holding.chips)

    def _unhold(self, owner: Owner, taken: int) -> None:
        """*owner* loses its last holding; pods hold *taken* chips of the node then."""
        holdings = self._cluster.holdings
        holding = holdings[owner].pop()
        if not holdings[owner]:
            del holdings[owner]
        self._move(owner, holding, -1, taken)

    def relabel(self, owner: Owner, demands: Mapping[int, Demand]) -> bool:
        """Pods of *owner* have other labels; whether any has.

        Pods that differ from their new demand in more than labels stay as they are.
        """
        before = self._cluster.holdings.get(owner, [])
        after = [_relabelled(each, demands.get(each.replica)) for each in before]
        if after == before:
            return False
        self._exchange(owner, before, after)
        self._undo.append(lambda: self._exchange(owner, after, before))
        return True

    def _exchange(
        self, owner: Owner, before: list[Holding], after: list[Holding]
    ) -> None:
        for one, other in zip(before, after, strict=True):
            if one != other:
                self._move(owner, one, -1)
                self._move(owner, other, 1)
        self._cluster.holdings[owner] = after

    def release(self, owner: Owner) -> None:
        """*owner* is gone; its chips are free again."""
        before = self._cluster.holdings.pop(owner)
        self._remove(owner, before, before)

    def drop(self, owner: Owner) -> None:
        """Release what *owner* holds, if it holds anything."""
        if owner in self._cluster.holdings:
            self.release(owner)

    def release_pods(self, owner: Owner, replicas: Collection[int]) -> None:
        """Some pods of *owner* are gone; what they held is free again."""
        holdings = self._cluster.holdings
        before = holdings[owner]
        gone = [holding for holding in before if holding.replica in replicas]
        if len(gone) == len(before):
            del holdings[owner]
        else:
            holdings[owner] = [h for h in before if h.replica not in replicas]
        self._remove(owner, gone, before)

    def _remove(
        self, owner: Owner, gone: Iterable[Holding], before: list[Holding]
    ) -> None:
        """The pods *gone* hold nothing any more, of those *before*."""
        for holding in gone:
            self._move(owner, holding, -1)

        def restore() -> None:
            for holding in gone:
                self._move(owner, holding, 1)
            self._cluster.holdings[owner] = before

        self._undo.append(restore)

    def _move(
        self, owner: Owner, holding: Holding, by: int, taken: int | None = None
    ) -> None:
        """A pod comes (``by`` 1) or goes; pods hold *taken* chips of its node then."""
        cluster, node = self._cluster, holding.node
        if holding.demand.resources:
            cluster.node_table.resources.use(node, holding.demand, by)
        if taken is None:
            held = cluster.taken.item(node)
            taken = held | holding.chips if by > 0 else held & ~holding.chips
        cluster.take(node, taken)
        self._notify(owner, holding, by)

    def _notify(self, owner: Owner, holding: Holding, by: int) -> None:
        """A pod came (``by`` 1) or went: count it under its leaf, and tell watchers."""
        cluster = self._cluster
        if cluster.leaves:
            leaf = cluster.leaf.item(holding.node)
            cluster.uplinks.count(owner, leaf, holding.chips, holding.mark, by)
        for watcher in cluster.watchers:
            watcher(owner, holding, by)

    def commit(self) -> None:
        """Keep everything, as far as an outer statement is kept; the statement ends.

        The cluster's version moves when the outermost statement commits a change.
        """
        if self._outer is None:
            self._cluster.version += bool(self._undo)
        else:
            self._outer += self._undo
        self._undo.clear()
        self._cluster.open_statement = self._outer

    def rollback(self) -> None:
        """Take back everything since the last commit, last first."""
        while self._undo:
            self._undo.pop()()


def release_all(cluster: Cluster, owner: Owner) -> None:
    """*owner* holds nothing any more."""
    with Statement(cluster) as statement:
        statement.drop(owner)
        statement.commit()


def _relabelled(holding: Holding, demand: Demand | None) -> Holding:
    """*holding* with *demand*, if that differs in labels alone."""
    if demand is None or demand == holding.demand or not demand.is_like(holding.demand):
        return holding
    return replace(holding, demand=demand)
