"""The vendor's switch affinity, as its scheduler does it.

Ringleaf's own rules (``policies.switches``) come from the same guides and decide some
questions otherwise. Here is what the vendor's scheduler does, with the defects left out
that lose pods. It differs from Ringleaf in this:

- Inside a leaf nodes go by their slot, whatever their chips (Ringleaf: chip rank).
- 1.0: common jobs may cross leaves on which all jobs are common.
- A padding job stays under one leaf only if it is smaller than a leaf.
- 2.0: what remains of a job goes to shared leaves if these have room for it, and only
  else opens an idle one: the next in the order of free nodes, not the tightest. Two
  shared leaves are the first neighbours in that order that are enough.
- 1.0 writes no state on pods.

Jobs without the label ``tor-affinity``, and those of one pod, are placed by the chip
rules alone; the vendor's have the same tables. SuperPoDs are not its business.

Source: the vendor's documentation and code as described in docs/policies/switches.md
and in the guides named there.
"""

import numpy as np

from ringleaf.baselines.fitting import TIGHT, FittingNodes, Spots, Wiring
from ringleaf.baselines.isolation import alone, ground_under, seated
from ringleaf.model.arrays import Ints
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network
from ringleaf.model.placement import JobType, LeafState
from ringleaf.model.settings import SwitchMode
from ringleaf.policies.switches import (
    LeafSlices,
    LeafTable,
    anything,
    ascending,
    capacity_2,
    fill,
    idle_whole,
    logical_leaves,
    marked,
    one_leaf,
    over_capacity,
    whole_leaves,
)


class Vendor:
    """One of the two switch affinities."""

    wiring: Wiring = TIGHT
    shape = "leaves that switch affinity opens to it"

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*."""
        kind = job.job_type
        if job.network is not Network.SWITCHES or kind is None:
            return alone(fitting, pods)
        if not fitting.cluster.leaves:
            return None
        table = ground_under(fitting)
        rows = self.rows(table, pods, kind, fitting.settings.shared_leaves)
        return None if rows is None else seated(fitting, table, rows, job)

    def rows(
        self, table: LeafTable, n: int, kind: JobType, budget: int
    ) -> LeafSlices | None:
        """The nodes of a job of *n* pods."""
        raise NotImplementedError


class SwitchAffinity1(Vendor):
    """Switch affinity 1.0: one leaf, whole leaves, logical leaves, anything."""

    def rows(
        self, table: LeafTable, n: int, kind: JobType, budget: int
    ) -> LeafSlices | None:
        """The nodes of a job of *n* pods; steps A to F of the guide."""
        del budget
        spared = table.common & (kind is JobType.COMMON)
        open_ = ~table.crossed | (table.fitting >= n) | spared
        if n < table.leaf_size:
            rows = one_leaf(table, n, open_, last_wins=True)
            if rows or kind is JobType.PADDING:
                return rows
        rows = whole_leaves(table, n, open_) or logical_leaves(table, n, open_)
        if rows or kind is not JobType.COMMON:
            return rows
        return anything(table, n, open_)


class SwitchAffinity2(Vendor):
    """Switch affinity 2.0: one leaf, else idle leaves whole and a shared remainder."""

    def rows(
        self, table: LeafTable, n: int, kind: JobType, budget: int
    ) -> LeafSlices | None:
        """The nodes of a job of *n* pods; steps 1 to 5 of the guide."""
        if n < table.leaf_size:
            for group in self._groups(table):
                if rows := one_leaf(table, n, group):
                    return rows
            if kind is JobType.PADDING:
                return None
        found: LeafSlices | None
        if n <= capacity_2(table, budget):
            found = _within(table, n, budget)
        else:
            found = over_capacity(table, n) if kind is JobType.COMMON else None
        return found and marked(table, found, SwitchMode.SPINE_LEAF_2)

    @staticmethod
    def _groups(table: LeafTable) -> tuple[np.typing.NDArray[np.bool_], ...]:
        """Exclusive, shared and unhealthy, shared, idle leaves."""
        return (
            table.group(LeafState.EXCLUSIVE),
            table.unhealthy,
            table.group(LeafState.SHARED),
            table.group(LeafState.IDLE),
        )


def _within(table: LeafTable, n: int, budget: int) -> LeafSlices:
    """Idle leaves whole while they fit in; the remainder on shared ones if they do."""
    rows, rest, larger = idle_whole(table, n)
    if not rest:
        return rows
    shared = ascending(table, table.group(LeafState.SHARED))
    best = int(table.fitting[shared[max(0, len(shared) - budget) :]].sum())
    opens = len(larger) > 0 and rest > best
    leaves = (
        [int(larger[0])] if opens else neighbours(table.fitting, shared, rest, budget)
    )
    return rows + fill(table, rest, np.array(leaves), LeafState.SHARED)[0]


def neighbours(free: Ints, shared: Ints, rest: int, budget: int) -> list[int]:
    """The first of *shared* (ascending) that is enough, or the first two that follow.

    >>> neighbours(np.array([1, 2, 4, 5]), np.array([0, 1, 2, 3]), 6, 2)
    [1, 2]
    >>> neighbours(np.array([1, 2, 4, 5]), np.array([0, 1, 2, 3]), 3, 1)
    [2]
    """
    sizes = free[shared]
    if budget == 1 or len(shared) == 1:
        return [int(shared[(sizes >= rest).argmax()])]
    at = int((sizes[:-1] + sizes[1:] >= rest).argmax())
    return [int(shared[at]), int(shared[at + 1])]
