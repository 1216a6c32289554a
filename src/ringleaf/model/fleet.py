"""What nodes have besides chips: labels, taints, and resources that pods use up.

Labels are kept by key as columns of codes, taints as the kinds of lists that occur, so
that asking all nodes is asking arrays.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ringleaf.model.demand import (
    UNLIMITED,
    Demand,
    Operator,
    Requirement,
    Taint,
    Toleration,
)

Flags = NDArray[np.bool_]

ABSENT = -1
"""The code of a label that a node does not have."""


class Column:
    """One label of every node: a code per node, and the value of each code."""

    def __init__(self, labels: Sequence[Mapping[str, str]], key: str) -> None:
        self.values: list[str] = []
        known: dict[str, int] = {}
        codes = []
        for own in labels:
            value = own.get(key)
            if value is None:
                codes.append(ABSENT)
                continue
            if value not in known:
                known[value] = len(known)
                self.values.append(value)
            codes.append(known[value])
        self.codes = np.array(codes, np.int64)

    def matches(self, requirement: Requirement) -> Flags:
        """The nodes whose label is as required."""
        match requirement.operator:
            case Operator.EXISTS:
                return np.not_equal(self.codes, ABSENT)
            case Operator.DOES_NOT_EXIST:
                return np.equal(self.codes, ABSENT)
            case Operator.NOT_IN:
                return ~self._among(requirement.values)
            case Operator.IN:
                return self._among(requirement.values)
        return self._compared(requirement)

    def _among(self, values: Iterable[str]) -> Flags:
        wanted = set(values)
        codes = [code for code, value in enumerate(self.values) if value in wanted]
        return np.isin(self.codes, codes)

    def _compared(self, requirement: Requirement) -> Flags:
        """Whole numbers only; any other label does not match."""
        bound = int(requirement.values[0])
        greater = requirement.operator is Operator.GREATER
        codes = [
            code
            for code, value in enumerate(self.values)
            if _is_whole(value)
            and (int(value) > bound if greater else int(value) < bound)
        ]
        return np.isin(self.codes, codes)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii()


def _repelling(
    taints: Iterable[Taint], tolerations: Sequence[Toleration]
) -> list[Taint]:
    """The taints that keep a pod away that tolerates others only."""
    return [
        taint
        for taint in taints
        if taint.repels and not any(each.covers(taint) for each in tolerations)
    ]


class Fleet:
    """Labels, taints and resources of every node, in the order of the cluster.

    ``allocatable`` is what nodes have for pods, ``room`` what of it is left: one line
    per resource, one column per node.
    """

    def __init__(
        self,
        labels: Sequence[Mapping[str, str]],
        taints: Sequence[tuple[Taint, ...]],
        resources: Sequence[Mapping[str, int]],
    ) -> None:
        self._labels = labels
        self._columns: dict[str, Column] = {}
        kinds = list(dict.fromkeys(taints))
        number = {kind: i for i, kind in enumerate(kinds)}
        self._taints = kinds
        self._taint_kind = np.array([number[kind] for kind in taints], np.int64)
        self.tainted = any(kinds)
        self.names = sorted({name for own in resources for name in own})
        self.room = np.array(
            [[own.get(name, UNLIMITED) for own in resources] for name in self.names],
            np.int64,
        ).reshape(len(self.names), len(resources))
        self.allocatable = self.room.copy()

    def selected(self, demand: Demand) -> Flags:
        """The nodes whose labels are as *demand* wants."""
        found = self._all(demand.required)
        if demand.terms:
            found &= np.logical_or.reduce([self._all(term) for term in demand.terms])
        return found

    def _all(self, requirements: Iterable[Requirement]) -> Flags:
        found = np.ones(len(self._labels), np.bool_)
        for requirement in requirements:
            found &= self._column(requirement.key).matches(requirement)
        return found

    def _column(self, key: str) -> Column:
        if key not in self._columns:
            self._columns[key] = Column(self._labels, key)
        return self._columns[key]

    def tolerated(self, tolerations: Sequence[Toleration]) -> Flags:
        """The nodes whose taints keep no such pod away."""
        fine = [not _repelling(kind, tolerations) for kind in self._taints]
        return np.array(fine, np.bool_)[self._taint_kind]

    def worst_taint(self, node: int, tolerations: Sequence[Toleration]) -> Taint:
        """The first taint of *node* that keeps such a pod away."""
        kind = self._taints[self._taint_kind.item(node)]
        return _repelling(kind, tolerations)[0]

    def roomy(self, demand: Demand) -> Flags:
        """The nodes that have what one more pod of *demand* uses up."""
        found = np.ones(len(self._labels), np.bool_)
        for name, amount in demand.resources:
            if name in self.names:
                found &= self.room[self.names.index(name)] >= amount
        return found

    def pods_that_fit(self, demand: Demand) -> NDArray[np.int64]:
        """How many pods of *demand* each node has room for."""
        most = np.full(len(self._labels), UNLIMITED, np.int64)
        for name, amount in demand.resources:
            if name in self.names and amount:
                room = np.maximum(self.room[self.names.index(name)], 0)
                most = np.minimum(most, room // amount)
        return most

    def room_of(self, node: int, name: str) -> int:
        """How much of a resource *node* has left."""
        if name not in self.names:
            return UNLIMITED
        return self.room.item(self.names.index(name), node)

    def has_room(self, node: int, demand: Demand) -> bool:
        """Whether *node* has room for one more pod of *demand*."""
        return all(
            self.room_of(node, name) >= amount for name, amount in demand.resources
        )

    def use(self, node: int, demand: Demand, by: int) -> None:
        """A pod of *demand* comes to *node* (``by`` 1) or goes (``by`` -1)."""
        for name, amount in demand.resources:
            if name in self.names:
                row = self.names.index(name)
                if self.room.item(row, node) < UNLIMITED // 2:
                    self.room[row, node] -= by * amount
