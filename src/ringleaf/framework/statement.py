"""A transaction over the cluster: all of it or nothing of it.

A statement writes at once, so that what follows in the same statement sees it, and
remembers how to take every write back. Leaving the ``with`` block without ``commit``
takes everything back, bit by bit.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Self

from msgspec.structs import replace

from ringleaf.model.cluster import Cluster, Holding
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.placement import NO_MARK, Mark


class Statement:
    """Operations on one cluster that are kept or taken back together."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._undo: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.rollback()

    def allocate(
        self,
        job: str,
        node: int,
        chips: int,
        replica: int = 0,
        mark: Mark = NO_MARK,
        *,
        demand: Demand = NOTHING,
    ) -> None:
        """Give *chips* of *node* to *job*; they must be free and healthy (D18)."""
        usable = self._cluster.free.item(node) & self._cluster.healthy.item(node)
        assert chips & usable == chips, "a chip was given that is not usable"
        self.hold(job, node, chips, replica, mark, demand=demand)

    def hold(
        self,
        job: str,
        node: int,
        chips: int,
        replica: int = 0,
        mark: Mark = NO_MARK,
        *,
        demand: Demand = NOTHING,
        charged: int | None = None,
    ) -> None:
        """*job* holds *chips* of *node*, whatever their health.

        Its queue is charged for *charged* chips, or for those.
        """
        cluster = self._cluster
        taken = cluster.taken.item(node)
        cluster.fleet.use(node, demand, 1)
        cluster.take(node, taken | chips)
        holding = Holding(node, chips, replica, mark, demand, charged)
        cluster.holdings.setdefault(job, []).append(holding)
        if cluster.leaves and _speaks(holding):
            cluster.spine.enter(job, cluster.leaf.item(node), mark)
        self._undo.append(lambda: self._unhold(job, node, taken))
        if cluster.watchers:
            cluster.tell(job, holding, 1)

    def _unhold(self, job: str, node: int, taken: int) -> None:
        cluster, holdings = self._cluster, self._cluster.holdings
        holding = holdings[job].pop()
        if not holdings[job]:
            del holdings[job]
        cluster.fleet.use(node, holding.demand, -1)
        cluster.take(node, taken)
        if cluster.leaves and _speaks(holding):
            cluster.spine.leave(job, cluster.leaf.item(node), holding.mark)
        cluster.tell(job, holding, -1)

    def relabel(self, job: str, demands: Mapping[int, Demand]) -> bool:
        """Pods of *job* have other labels; whether any has.

        Pods that differ from their new demand in more than labels stay as they are.
        """
        before = self._cluster.holdings.get(job, [])
        after = [_relabelled(each, demands.get(each.replica)) for each in before]
        if after == before:
            return False
        self._exchange(job, before, after)
        self._undo.append(lambda: self._exchange(job, after, before))
        return True

    def _exchange(self, job: str, before: list[Holding], after: list[Holding]) -> None:
        for one, other in zip(before, after, strict=True):
            if one != other:
                self._go(job, one)
                self._come(job, other)
        self._cluster.holdings[job] = after

    def terminate(self, job: str) -> None:
        """*job* is asked to end; it keeps its chips until it is released (D20)."""
        terminating = self._cluster.terminating
        if job not in terminating:
            terminating.add(job)
            self._undo.append(lambda: terminating.discard(job))

    def release(self, job: str) -> None:
        """*job* is gone; its chips are free again."""
        cluster = self._cluster
        holdings = cluster.holdings.pop(job)
        was_terminating = job in cluster.terminating
        cluster.terminating.discard(job)
        for holding in holdings:
            self._go(job, holding)
        self._undo.append(lambda: self._unrelease(job, holdings, was_terminating))

    def _unrelease(
        self, job: str, holdings: list[Holding], was_terminating: object
    ) -> None:
        cluster = self._cluster
        for holding in holdings:
            self._come(job, holding)
        cluster.holdings[job] = holdings
        if was_terminating:
            cluster.terminating.add(job)

    def release_pods(self, job: str, replicas: Collection[int]) -> None:
        """Some pods of *job* are gone; what they held is free again."""
        cluster = self._cluster
        before = cluster.holdings[job]
        gone = [holding for holding in before if holding.replica in replicas]
        if len(gone) == len(before):
            self.release(job)
            return
        left = [holding for holding in before if holding.replica not in replicas]
        cluster.holdings[job] = left
        for holding in gone:
            self._go(job, holding)
        self._undo.append(lambda: self._unrelease_pods(job, before, gone))

    def _unrelease_pods(
        self, job: str, before: list[Holding], gone: Iterable[Holding]
    ) -> None:
        for holding in gone:
            self._come(job, holding)
        self._cluster.holdings[job] = before

    def _go(self, job: str, holding: Holding) -> None:
        """One pod goes."""
        cluster, node = self._cluster, holding.node
        cluster.fleet.use(node, holding.demand, -1)
        cluster.take(node, cluster.taken.item(node) & ~holding.chips)
        if cluster.leaves and _speaks(holding):
            cluster.spine.leave(job, cluster.leaf.item(node), holding.mark)
        cluster.tell(job, holding, -1)

    def _come(self, job: str, holding: Holding) -> None:
        """One pod that went comes back."""
        cluster, node = self._cluster, holding.node
        cluster.fleet.use(node, holding.demand, 1)
        cluster.take(node, cluster.taken.item(node) | holding.chips)
        if cluster.leaves and _speaks(holding):
            cluster.spine.enter(job, cluster.leaf.item(node), holding.mark)
        cluster.tell(job, holding, 1)

    def commit(self) -> None:
        """Keep everything; the cluster's version moves if anything changed."""
        self._cluster.version += bool(self._undo)
        self._undo.clear()

    def rollback(self) -> None:
        """Take back everything since the last commit, last first."""
        while self._undo:
            self._undo.pop()()


def _relabelled(holding: Holding, demand: Demand | None) -> Holding:
    """*holding* with *demand*, if that differs in labels alone."""
    if demand is None or demand == holding.demand or not demand.is_like(holding.demand):
        return holding
    return replace(holding, demand=demand)


def _speaks(holding: Holding) -> bool:
    """Whether a pod uses the links of its leaf: it has chips, or will have."""
    return holding.chips != 0 or holding.mark != NO_MARK
