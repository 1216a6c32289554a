"""The labels of nodes, as columns of codes: asking all nodes is asking arrays.

Only labels that some node has are kept: those that pods make up cost nothing here.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from ringleaf.model.arrays import SPARE_ROWS, Flags, Ints
from ringleaf.model.cache import Cache
from ringleaf.model.demand import Demand, Operator, Requirement, is_whole

ABSENT: Final = -1
"""The code of a label that a node does not have."""

MOST_SELECTED: Final = 1024
"""Demands of which is kept which nodes they select."""
MOST_SELECTED_BYTES: Final = 8 << 20


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


class NodeLabels:
    """The labels of every node, in the order of the cluster."""

    def __init__(self, labels: Sequence[Mapping[str, str]]) -> None:
        self._labels = list(labels)
        self._labelled = Counter(key for own in labels for key in own)
        """Key -> how many nodes have such a label."""
        self._columns: dict[str, Column] = {}
        self._unlabelled = Column([{}] * len(self._labels), "")
        self._selected: Cache[Demand, Flags] = Cache(MOST_SELECTED, MOST_SELECTED_BYTES)

    def change(self, node: int, labels: Mapping[str, str]) -> None:
        """*node* has other labels from now on."""
        before, self._labels[node] = self._labels[node], labels
        if labels == before:
            return
        self._labelled.update(labels.keys())
        self._labelled.subtract(before.keys())
        self._selected.clear()
        for key in {**before, **labels}:
            if not self._labelled[key]:
                del self._labelled[key]
                self._columns.pop(key, None)
            elif key in self._columns:
                self._columns[key].change(node, labels.get(key))
                if self._columns[key].size > 2 * len(self._labels) + SPARE_ROWS:
                    del self._columns[key]  # most of its values are no node's

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
