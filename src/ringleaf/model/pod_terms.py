"""What pods require or prefer of neighbours, and how many pods are of each kind."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from msgspec import Struct

from ringleaf.model.arrays import Flags, Ints
from ringleaf.model.demand import ANY_NAMESPACE, Demand, PodTerm, Selector, selects

HOSTNAME: Final = "kubernetes.io/hostname"


NO_LABEL: Final = ""
"""Stands for every label that no node has."""


Labels = tuple[tuple[str, str], ...]


class Pick(Struct, frozen=True, cache_hash=True):
    """Pods of some namespaces that a selector means."""

    namespaces: tuple[str, ...]
    selector: Selector

    def means(self, pod: Demand) -> bool:
        """Whether *pod* is one of them."""
        wanted = self.namespaces
        here = pod.namespace in wanted or ANY_NAMESPACE in wanted
        return here and selects(self.selector, dict(pod.labels))


FORBIDS: Final = 0
"""The weight of a wish that must be met: no such neighbour."""


class Wish(Struct, frozen=True, cache_hash=True):
    """What a pod requires of others: a weight for each neighbour, or none of them."""

    key: str
    pick: Pick
    weight: int = FORBIDS


class Tally:
    """A number of pods for every node, and of all nodes together."""

    __slots__ = ("counts", "total")

    def __init__(self, n_nodes: int) -> None:
        self.counts = np.zeros(n_nodes, np.int64)
        self.total = 0

    def move(self, node: int, by: int) -> None:
        """A pod comes to *node* or goes."""
        self.counts[node] += by
        self.total += by


class Scattered:
    """The same, kept only of the nodes that have such pods."""

    __slots__ = ("at", "n_nodes", "total")

    def __init__(self, n_nodes: int) -> None:
        self.n_nodes = n_nodes
        self.at: dict[int, int] = {}
        self.total = 0

    def move(self, node: int, by: int) -> None:
        """A pod comes to *node* or goes."""
        self.total += by
        left = self.at.get(node, 0) + by
        if left:
            self.at[node] = left
        else:
            del self.at[node]

    @property
    def counts(self) -> Ints:
        """The number for every node, made anew."""
        found = np.zeros(self.n_nodes, np.int64)
        self.add_to(found)
        return found

    def add_to(self, counts: Ints) -> None:
        """Add its numbers to *counts*."""
        if self.at:
            counts[list(self.at)] += list(self.at.values())


class PodKind(Scattered):
    """Pods that are one to every selector.

    ``pod`` is like them as far as selectors see; ``picked`` are the counts of selectors
    that mean them.
    """

    __slots__ = ("picked", "pod")

    def __init__(self, n_nodes: int, pod: Demand, picked: tuple[Tally, ...]) -> None:
        super().__init__(n_nodes)
        self.pod, self.picked = pod, picked


class PodMoves(Struct, frozen=True):
    """What a pod counts for when it comes or goes."""

    kind: PodKind
    wished: tuple[Scattered, ...]
    bare: tuple[Tally, ...]


class Domains(Struct, frozen=True):
    """The nodes by the value of one label.

    ``code`` numbers the domains from 0; nodes without the label share the number
    ``size``. ``single`` says that no domain has two nodes.
    """

    code: Ints
    size: int
    present: Flags
    single: bool

    def gather(self, counts: Ints) -> Ints:
        """For every node the sum of *counts* over its domain; 0 without a label."""
        if self.single:
            return np.where(self.present, counts, 0)
        return self.sums(counts)[self.code]

    def sums(self, counts: Ints) -> Ints:
        """The sum of *counts* over each domain; the last, for no domain, is 0."""
        found = np.bincount(self.code, counts, self.size + 1).astype(np.int64)
        found[self.size] = 0
        return found

    def among(self, nodes: Flags) -> Flags:
        """Of every domain, whether any of *nodes* is in it; the last is no domain."""
        found = np.zeros(self.size + 1, np.bool_)
        found[self.code[nodes]] = True
        return found


def pick_of(term: PodTerm, pod: Demand) -> Pick:
    """The pods that *term* of *pod* means; in its own namespace if it says nothing."""
    return Pick(term.namespaces or (pod.namespace,), term.selector)


def wishes_of(pod: Demand) -> Iterator[Wish]:
    """What *pod* requires or prefers of pods that come after it."""
    for term in pod.apart:
        yield Wish(term.key, pick_of(term, pod))
    for sign, preferred in ((1, pod.prefers_near), (-1, pod.prefers_apart)):
        for each in preferred:
            yield Wish(each.term.key, pick_of(each.term, pod), sign * each.weight)


def mean_of(picks: Iterable[Pick], pod: Demand) -> bool:
    """Whether all *picks* mean *pod*."""
    return all(pick.means(pod) for pick in picks)


def is_bare(pod: Demand, resource: str) -> bool:
    """Whether *pod* requests nothing of a resource."""
    return not any(name == resource and amount for name, amount in pod.resources)


def any_of(found: Iterable[Flags]) -> Flags | None:
    """The nodes in any of *found*; None where there are none."""
    listed = list(found)
    flags = np.logical_or.reduce(listed) if listed else None
    return flags if flags is not None and flags.any() else None
