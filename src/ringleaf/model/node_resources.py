"""Resources of nodes that pods use up.

Only what nodes have is kept: a resource that pods make up and no node names costs
nothing here, however many there are.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Final

import numpy as np

from ringleaf.model.arrays import Flags, Ints
from ringleaf.model.demand import UNLIMITED, Demand

HALF: Final = 32
"""Bits of an amount that are added up by themselves."""
LOWEST: Final = -UNLIMITED
"""The least room that the arrays hold; what is below it is kept apart."""


def exact_sum(amounts: Ints) -> int:
    """The sum of amounts that are 0 or more, however large.

    >>> exact_sum(np.full(4, 1 << 61)) == 1 << 63
    True
    """
    low = int((amounts & ((1 << HALF) - 1)).sum())
    return (int((amounts >> HALF).sum()) << HALF) + low


class NodeResources:
    """The resources of every node, in the order of the cluster.

    ``allocatable`` is what nodes have for pods, ``room`` what of it is left: one line
    per resource that some node names, one column per node.
    """

    def __init__(
        self, resources: Sequence[Mapping[str, int]], lists_all: Sequence[bool] = ()
    ) -> None:
        self.names = sorted({name for own in resources for name in own})
        self._row = {name: row for row, name in enumerate(self.names)}
        every = lists_all or [False] * len(resources)
        self.unnamed = np.array([0 if own else UNLIMITED for own in every], np.int64)
        """What each node has of a resource that it does not name."""
        have = list(zip(resources, self.unnamed.tolist(), strict=True))
        self.room = np.array(
            [[own.get(name, rest) for own, rest in have] for name in self.names],
            np.int64,
        ).reshape(len(self.names), len(resources))
        self.allocatable = self.room.copy()
        self._uncounted: dict[str, dict[int, int]] = {}
        """Resource -> node -> what pods use there of what is not counted."""
        self._below: dict[tuple[int, int], int] = {}
        """Row and node -> how much of the room is below what the arrays hold.

        A pod that another scheduler bound, or that came with its node, may ask for
        more than any node has, and so may many of them on one node.
        """

    def emptied(self) -> "NodeResources":
        """The same nodes with all of their resources left; to be read only."""
        found = copy(self)
        found.room = found.allocatable = self.allocatable.copy()
        return found

    def change(
        self, node: int, resources: Mapping[str, int], *, lists_all: bool
    ) -> None:
        """*node* has these resources from now on.

        What pods use there stays used, also of resources that were not counted yet.
        """
        self.unnamed[node] = rest = 0 if lists_all else UNLIMITED
        for name in sorted(resources):
            self._add_row(name)
        for name, row in self._row.items():
            self._resize(node, name, row, resources.get(name, rest))

    def _add_row(self, name: str) -> None:
        """Count a resource that no node had so far."""
        if name in self._row:
            return
        self._row[name] = len(self.names)
        self.names.append(name)
        self.room = np.concatenate([self.room, self.unnamed[None]])
        self.allocatable = np.concatenate([self.allocatable, self.unnamed[None]])
        for node, used in self._uncounted.pop(name, {}).items():
            self._take(node, name, used)

    def _resize(self, node: int, name: str, row: int, have: int) -> None:
        """*node* has *have* of a resource from now on."""
        used = self.allocatable.item(row, node) - self.room.item(row, node)
        used += self._uncount(node, name) + self._below.pop((row, node), 0)
        self.allocatable[row, node] = self.room[row, node] = have
        self._take(node, name, used)

    def roomy(self, demand: Demand) -> Flags:
        """The nodes that have what one more pod of *demand* uses up."""
        found = np.ones(len(self.unnamed), np.bool_)
        for name, amount in demand.resources:
            found &= self._room_of(name) >= amount
        return found

    def _room_of(self, name: str) -> Ints:
        """How much of a resource every node has left."""
        row = self._row.get(name)
        return self.unnamed if row is None else self.room[row]

    def pods_that_fit(self, demand: Demand) -> Ints:
        """How many pods of *demand* each node has room for."""
        most = np.full(len(self.unnamed), UNLIMITED, np.int64)
        for name, amount in demand.resources:
            if name not in self._row:
                most = np.where(self.unnamed >= amount, most, 0)
            elif amount:
                room = np.maximum(self.room[self._row[name]], 0)
                most = np.minimum(most, room // amount)
        return most

    def room_of(self, node: int, name: str) -> int:
        """How much of a resource *node* has left."""
        return self._room_of(name).item(node)

    def have(self, name: str) -> Ints | None:
        """What every node has of a resource, 0 where it does not say.

        None where no node says.
        """
        if name not in self._row:
            return None
        row = self.allocatable[self._row[name]]
        have = np.where(row < UNLIMITED, row, 0)
        return have if have.any() else None

    def used(self, name: str, nodes: Ints) -> Ints:
        """What pods use on *nodes* of a resource that some node has; 0 if unsaid."""
        row = self._row[name]
        found: Ints = self.allocatable[row][nodes] - self.room[row][nodes]
        return found

    def used_on(self, name: str, node: int) -> int:
        """What pods use on *node* of a resource that some node has; 0 if unsaid."""
        row = self._row[name]
        return self.allocatable.item(row, node) - self.room.item(row, node)

    def most(self, node: int, demand: Demand) -> tuple[tuple[str, int], ...] | None:
        """What a pod of *demand* can use of *node*; None if it can use all of it."""
        found, is_all = [], True
        for name, amount in demand.resources:
            row = self._row.get(name)
            have = (
                self.unnamed.item(node)
                if row is None
                else self.allocatable.item(row, node)
            )
            is_all = is_all and amount <= have
            found.append((name, min(amount, have)))
        return None if is_all else tuple(found)

    def has_room(self, node: int, demand: Demand) -> bool:
        """Whether *node* has room for one more pod of *demand*."""
        return all(
            self.room_of(node, name) >= amount for name, amount in demand.resources
        )

    def use(self, node: int, demand: Demand, by: int) -> None:
        """A pod of *demand* comes to *node* (``by`` 1) or goes (``by`` -1)."""
        for name, amount in demand.resources:
            self._take(node, name, by * amount)

    def use_many(self, nodes: Ints, demand: Demand) -> None:
        """Pods of *demand* come to *nodes*: one for each time a node is listed."""
        at, times = np.unique(nodes, return_counts=True)
        for name, amount in demand.resources:
            row = self._row.get(name)
            if row is None or self._below or amount * int(times.max()) > UNLIMITED:
                self._take_each(at, times, name, amount)
                continue
            left = self.room[row, at] - amount * times
            is_counted = self.allocatable[row, at] < UNLIMITED
            if is_counted.all() and (left >= LOWEST).all():
                self.room[row, at] = left
            else:
                self._take_each(at, times, name, amount)

    def _take_each(self, at: Ints, times: Ints, name: str, amount: int) -> None:
        for node, n_pods in zip(at.tolist(), times.tolist(), strict=True):
            self._take(node, name, n_pods * amount)

    def _take(self, node: int, name: str, amount: int) -> None:
        row = self._row.get(name)
        if row is not None and self.allocatable.item(row, node) < UNLIMITED:
            left = self.room.item(row, node) - amount
            if self._below or left < LOWEST:
                left -= self._below.pop((row, node), 0)
                if left < LOWEST:
                    self._below[row, node] = LOWEST - left
                    left = LOWEST
            self.room[row, node] = left
        elif amount:
            # Kept for the day the node says how much it has.
            used = self._uncount(node, name) + amount
            if used:
                self._uncounted.setdefault(name, {})[node] = used

    def _uncount(self, node: int, name: str) -> int:
        """What pods use on *node* of a resource that is not counted; no longer kept."""
        there = self._uncounted.get(name, {})
        used = there.pop(node, 0)
        if used and not there:
            del self._uncounted[name]
        return used
