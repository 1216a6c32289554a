"""What nodes have besides chips: labels, taints, and resources that pods use up.

Labels are kept by key as columns of codes, taints as the kinds of lists that occur, so
that asking all nodes is asking arrays. Only what nodes have is kept: a label or a
resource that pods make up and no node names costs nothing here, however many there are.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ringleaf.model.cache import Cache
from ringleaf.model.demand import (
    UNLIMITED,
    Demand,
    Operator,
    Requirement,
    Taint,
    Toleration,
    is_whole,
)

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

ABSENT: Final = -1
"""The code of a label that a node does not have."""

MOST_SELECTED: Final = 1024
"""Demands of which is kept which nodes they select."""
MOST_SELECTED_BYTES: Final = 8 << 20


HALF: Final = 32
"""Bits of an amount that are added up by themselves."""
LOWEST: Final = -UNLIMITED
"""The least room that the arrays hold; what is below it is kept apart."""
SPARE: Final = 64
"""Values of a label, or kinds of taints, that no node has and that may be kept."""


def exact_sum(amounts: Ints) -> int:
    """The sum of amounts that are 0 or more, however large.

    >>> exact_sum(np.full(4, 1 << 61)) == 1 << 63
    True
    """
    low = int((amounts & ((1 << HALF) - 1)).sum())
    return (int((amounts >> HALF).sum()) << HALF) + low


class Column:
    """One label of every node: a code per node, and the value of each code."""

    def __init__(self, labels: Sequence[Mapping[str, str]], key: str) -> None:
        self._known: dict[str, int] = {}
        self._numbers: tuple[list[int], Ints] | None = None
        self.codes = np.array([self._code(own.get(key)) for own in labels], np.int64)

    def _code(self, value: str | None) -> int:
        return ABSENT if value is None else self._known.setdefault(value, self.size)

    @property
    def size(self) -> int:
        """How many values the label has had."""
        return len(self._known)

    def change(self, node: int, value: str | None) -> None:
        """The label of *node* is *value* from now on."""
        self.codes[node] = self._code(value)
        self._numbers = None

    def matches(self, requirement: Requirement) -> Flags:
        """The nodes whose label is as required."""
        # The last entry is that of nodes without the label: ABSENT counts from the end.
        fine = np.zeros(self.size + 1, np.bool_)
        match requirement.operator:
            case Operator.EXISTS:
                fine[:ABSENT] = True
            case Operator.DOES_NOT_EXIST:
                fine[ABSENT] = True
            case Operator.IN:
                fine[self._codes_of(requirement.values)] = True
            case Operator.NOT_IN:
                fine[:] = True
                fine[self._codes_of(requirement.values)] = False
            case _:
                fine[self._beyond(requirement)] = True
        return fine[self.codes]

    def _codes_of(self, values: Iterable[str]) -> list[int]:
        known = self._known
        return [known[value] for value in values if value in known]

    def _beyond(self, requirement: Requirement) -> Ints:
        """The codes of whole numbers that are greater or less than required."""
        if self._numbers is None:
            listed = sorted(
                (int(value), code)
                for value, code in self._known.items()
                if is_whole(value)
            )
            codes = np.array([code for _number, code in listed], np.int64)
            self._numbers = [number for number, _code in listed], codes
        numbers, codes = self._numbers
        bound = int(requirement.values[0])
        if requirement.operator is Operator.GREATER:
            return codes[bisect_right(numbers, bound) :]
        return codes[: bisect_left(numbers, bound)]


def _repelling(
    taints: Iterable[Taint], tolerations: Sequence[Toleration]
) -> list[Taint]:
    """The taints that keep a pod away that tolerates others only."""
    return [
        taint
        for taint in taints
        if taint.repels and not any(each.covers(taint) for each in tolerations)
    ]


def _disliked(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many taints ask a pod to go elsewhere, and it does not tolerate them."""
    return sum(
        not taint.repels and not any(each.covers(taint) for each in tolerations)
        for taint in taints
    )


class Fleet:
    """Labels, taints and resources of every node, in the order of the cluster.

    ``allocatable`` is what nodes have for pods, ``room`` what of it is left: one line
    per resource that some node names, one column per node. ``version`` moves when a
    node changes.
    """

    def __init__(
        self,
        labels: Sequence[Mapping[str, str]],
        taints: Sequence[tuple[Taint, ...]],
        resources: Sequence[Mapping[str, int]],
        lists_all: Sequence[bool] = (),
    ) -> None:
        self.version = 0
        self._labels = list(labels)
        self._labelled = Counter(key for own in labels for key in own)
        """Key -> how many nodes have such a label."""
        self._columns: dict[str, Column] = {}
        self._unlabelled = Column([{}] * len(self._labels), "")
        self._selected: Cache[Demand, Flags] = Cache(MOST_SELECTED, MOST_SELECTED_BYTES)
        self._kinds: dict[tuple[Taint, ...], int] = {}
        self._taint_kind = np.array([self._kind(own) for own in taints], np.int64)
        self._n_tainted = sum(map(bool, taints))
        self.names = sorted({name for own in resources for name in own})
        self._row = {name: row for row, name in enumerate(self.names)}
        every = lists_all or [False] * len(self._labels)
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

    def _kind(self, taints: tuple[Taint, ...]) -> int:
        return self._kinds.setdefault(taints, len(self._kinds))

    @property
    def tainted(self) -> bool:
        """Whether any node has a taint."""
        return self._n_tainted > 0

    def change(
        self,
        node: int,
        labels: Mapping[str, str],
        taints: tuple[Taint, ...],
        resources: Mapping[str, int],
        *,
        lists_all: bool = False,
    ) -> None:
        """*node* has these labels, taints and resources from now on.

        What pods use there stays used, also of resources that were not counted yet.
        """
        self.version += 1
        if labels != self._labels[node]:
            self._relabel(node, labels)
        self._n_tainted += bool(taints) - bool(self._taints_of(node))
        self._taint_kind[node] = self._kind(taints)
        if len(self._kinds) > 2 * len(self._labels) + SPARE:
            self._forget_kinds()
        self.unnamed[node] = rest = 0 if lists_all else UNLIMITED
        for name in sorted(resources):
            self._add_row(name)
        for name, row in self._row.items():
            self._resize(node, name, row, resources.get(name, rest))

    def _forget_kinds(self) -> None:
        """Keep the kinds of taints that some node has."""
        kinds = list(self._kinds)
        left, codes = np.unique(self._taint_kind, return_inverse=True)
        self._kinds = {kinds[old]: new for new, old in enumerate(left.tolist())}
        self._taint_kind = codes.astype(np.int64)

    def _relabel(self, node: int, labels: Mapping[str, str]) -> None:
        """*node* has other labels from now on."""
        before, self._labels[node] = self._labels[node], labels
        self._labelled.update(labels.keys())
        self._labelled.subtract(before.keys())
        self._selected.clear()
        for key in {**before, **labels}:
            if not self._labelled[key]:
                del self._labelled[key]
                self._columns.pop(key, None)
            elif key in self._columns:
                self._columns[key].change(node, labels.get(key))
                if self._columns[key].size > 2 * len(self._labels) + SPARE:
                    del self._columns[key]  # most of its values are no node's

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

    def has_label(self, key: str) -> bool:
        """Whether any node has such a label."""
        return key in self._labelled

    def labels_of(self, key: str) -> Column:
        """One label of every node."""
        if key not in self._labelled:
            return self._unlabelled
        if key not in self._columns:
            self._columns[key] = Column(self._labels, key)
        return self._columns[key]

    def selected(self, demand: Demand) -> Flags:
        """The nodes whose labels are as *demand* wants; not to be written to.

        Found once for all pods that ask the same, until a node has other labels.
        """
        if not (demand.required or demand.terms):
            return np.ones(len(self._labels), np.bool_)
        found = self._selected.get(demand)
        if found is None:
            found = self._select(demand)
            found.flags.writeable = False
            self._selected.put(demand, found, len(found) + demand.weight)
        return found

    def _select(self, demand: Demand) -> Flags:
        found = self._all(demand.required)
        if demand.terms:
            any_term = np.zeros(len(self._labels), np.bool_)
            for term in demand.terms:
                any_term |= self._all(term)
            found &= any_term
        return found

    def _all(self, requirements: Iterable[Requirement]) -> Flags:
        found = np.ones(len(self._labels), np.bool_)
        for requirement in requirements:
            found &= self.labels_of(requirement.key).matches(requirement)
        return found

    def liked(self, demand: Demand) -> Ints:
        """The weights of what *demand* prefers of nodes, added up for each.

        A preference without requirements is no preference.
        """
        found = np.zeros(len(self._labels), np.int64)
        for each in demand.prefers:
            if each.term:
                found += each.weight * self._all(each.term)
        return found

    def disliked(self, tolerations: Sequence[Toleration]) -> Ints:
        """How many taints of each node ask such a pod to go elsewhere."""
        counts = [_disliked(kind, tolerations) for kind in self._kinds]
        return np.array(counts, np.int64)[self._taint_kind]

    def tolerated(self, tolerations: Sequence[Toleration]) -> Flags:
        """The nodes whose taints keep no such pod away."""
        fine = [not _repelling(kind, tolerations) for kind in self._kinds]
        return np.array(fine, np.bool_)[self._taint_kind]

    def worst_taint(self, node: int, tolerations: Sequence[Toleration]) -> Taint:
        """The first taint of *node* that keeps such a pod away."""
        return _repelling(self._taints_of(node), tolerations)[0]

    def _taints_of(self, node: int) -> tuple[Taint, ...]:
        return list(self._kinds)[self._taint_kind.item(node)]

    def roomy(self, demand: Demand) -> Flags:
        """The nodes that have what one more pod of *demand* uses up."""
        found = np.ones(len(self._labels), np.bool_)
        for name, amount in demand.resources:
            found &= self._room_of(name) >= amount
        return found

    def _room_of(self, name: str) -> Ints:
        """How much of a resource every node has left."""
        row = self._row.get(name)
        return self.unnamed if row is None else self.room[row]

    def pods_that_fit(self, demand: Demand) -> NDArray[np.int64]:
        """How many pods of *demand* each node has room for."""
        most = np.full(len(self._labels), UNLIMITED, np.int64)
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

    def has_room(self, node: int, demand: Demand) -> bool:
        """Whether *node* has room for one more pod of *demand*."""
        return all(
            self.room_of(node, name) >= amount for name, amount in demand.resources
        )

    def use(self, node: int, demand: Demand, by: int) -> None:
        """A pod of *demand* comes to *node* (``by`` 1) or goes (``by`` -1)."""
        for name, amount in demand.resources:
            self._take(node, name, by * amount)

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
