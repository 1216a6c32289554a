"""Which pods are where, as far as other pods ask: an index that follows the cluster.

Pods are neighbours where a label of their nodes, the topology key, has one value; the
nodes with one value are a domain. A pod can want neighbours (affinity), want none of
some kind (anti-affinity), want its like spread evenly over domains, and use ports of
its node. The index counts, for every node: the pods that a selector means, the pods
that carry a wish about others, the pods on a port. Counts follow every pod that comes
and goes, also those that are tried and taken back; a selector is counted when somebody
first asks for it. Answers are arrays over all nodes.

The rules are Kubernetes'. Where we differ, on purpose: a node without the label
``kubernetes.io/hostname``, which every kubelet sets, has its name for it; a pod that
was asked to end counts until it is gone, for spreading too.

Source: Kubernetes, "Assigning Pods to Nodes" and "Pod Topology Spread Constraints";
``S:pkg/scheduler/framework/plugins/{interpodaffinity,podtopologyspread,nodeports}``.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct

from ringleaf.model.cluster import Cluster, Holding
from ringleaf.model.demand import (
    ANY_NAMESPACE,
    Demand,
    PodTerm,
    Selector,
    Spread,
    selects,
)
from ringleaf.model.fleet import ABSENT, Flags, Ints

HOSTNAME: Final = "kubernetes.io/hostname"

MOST_KEPT: Final = 512
"""Selectors whose counts are kept up; of more, the one not asked for longest goes."""

MOST_MOVES: Final = 4096
"""Kinds of pods of which is known what they count for."""

_Key = TypeVar("_Key")


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
    """What a pod wants of others: a weight for each neighbour, or none of them."""

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


class _Moves(Struct, frozen=True):
    """What a pod counts for when it comes or goes."""

    wished: tuple[Tally, ...]
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


def pick_of(term: PodTerm, pod: Demand) -> Pick:
    """The pods that *term* of *pod* means; in its own namespace if it says nothing."""
    return Pick(term.namespaces or (pod.namespace,), term.selector)


def _wishes(pod: Demand) -> Iterator[Wish]:
    for term in pod.apart:
        yield Wish(term.key, pick_of(term, pod))
    for sign, preferred in ((1, pod.prefers_near), (-1, pod.prefers_apart)):
        for each in preferred:
            yield Wish(each.term.key, pick_of(each.term, pod), sign * each.weight)


class Neighbours:
    """The pods of one cluster, counted as others ask for them.

    It is one of the cluster's watchers; ``neighbours_of`` finds it there. While
    ``version`` and the fleet's stay, so do all answers about pods and ports.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kept: dict[tuple[Pick, ...], Tally] = {}
        self._wishes: dict[Wish, Tally] = {}
        self._ports: dict[str, Tally] = {}
        self._bare: dict[str, Tally] = {}
        self._moves: dict[Demand, _Moves] = {}
        self._domains: dict[str, tuple[int, Domains]] = {}
        self.version = 0
        for holding in self._pods():
            self("", holding, 1)
        cluster.watchers.append(self)

    def __call__(self, _job: str, holding: Holding, by: int) -> None:
        """A pod came (``by`` 1) or went (``by`` -1)."""
        moves = self._moves.get(holding.demand)
        if moves is None:
            moves = self._learn(holding.demand)
        self.version += bool(moves.wished)
        for tally in moves.wished:
            tally.move(holding.node, by)
        for tally in moves.bare:
            tally.move(holding.node, by)

    def _pods(self) -> Iterator[Holding]:
        for holdings in self._cluster.holdings.values():
            yield from holdings

    def _learn(self, pod: Demand) -> _Moves:
        """What *pod* counts for."""
        if len(self._moves) >= MOST_MOVES:
            self._forget_moves()
        wished = [tally for picks, tally in self._kept.items() if _mean(picks, pod)]
        wished += [self._tally(self._wishes, wish) for wish in _wishes(pod)]
        wished += [self._tally(self._ports, port) for port in pod.ports]
        bare = [tally for name, tally in self._bare.items() if _is_bare(pod, name)]
        moves = self._moves[pod] = _Moves(tuple(wished), tuple(bare))
        return moves

    def _tally(self, tallies: dict[_Key, Tally], key: _Key) -> Tally:
        if key not in tallies:
            tallies[key] = Tally(len(self._cluster))
        return tallies[key]

    def _forget_moves(self) -> None:
        """Learn anew what pods count for; wishes and ports that nobody has go too."""
        self._moves.clear()
        _drop_empty(self._wishes)
        _drop_empty(self._ports)

    def counted(self, *picks: Pick) -> Tally:
        """The pods that every one of *picks* means, counted from now on."""
        tally = self._kept.pop(picks, None)
        if tally is None:
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
                self.version += 1  # its pods will make no news
            tally = self._count(lambda pod: _mean(picks, pod))
        self._kept[picks] = tally
        return tally

    def bare(self, resource: str) -> Tally:
        """The pods that ask for nothing of *resource*, counted from now on."""
        if resource not in self._bare:
            self._bare[resource] = self._count(lambda pod: _is_bare(pod, resource))
        return self._bare[resource]

    def _count(self, counts: Callable[[Demand], bool]) -> Tally:
        """The pods for which *counts* holds."""
        tally = Tally(len(self._cluster))
        known: dict[Demand, bool] = {}
        for holding in self._pods():
            pod = holding.demand
            if pod not in known:
                known[pod] = counts(pod)
            if known[pod]:
                tally.move(holding.node, 1)
        self._forget_moves()
        return tally

    def domains(self, key: str) -> Domains:
        """The nodes by the value of the label *key*."""
        version, known = self._domains.get(key, (None, None))
        if known is None or version != self._cluster.fleet.version:
            known = self._read_domains(key)
            self._domains[key] = self._cluster.fleet.version, known
        return known

    def _read_domains(self, key: str) -> Domains:
        column = self._cluster.fleet.labels_of(key)
        code, size = column.codes.copy(), column.size
        missing = code == ABSENT
        if key == HOSTNAME:
            code[missing] = size + np.arange(missing.sum())
            size += int(missing.sum())
            missing[:] = False
        code[missing] = size
        nodes = np.bincount(code, minlength=size + 1)[:size]
        return Domains(code, size, ~missing, not (nodes > 1).any())

    def heeds_others(self, pod: Demand) -> bool:
        """Whether a pod elsewhere can change what *pod* may take or likes.

        Then one node's change is not the only news for *pod*.
        """
        asks = pod.near or pod.apart or pod.spread
        return bool(asks or pod.prefers_near or pod.prefers_apart) or any(
            tally.total and wish.pick.means(pod) for wish, tally in self._wishes.items()
        )

    def is_indifferent(self, pod: Demand) -> bool:
        """Whether *pod* minds nobody, and nobody minds any pod."""
        asks = pod.ports or pod.near or pod.apart or pod.spread
        return not asks and not self._wishes

    def port_taken(self, pod: Demand) -> Flags | None:
        """The nodes where a port that *pod* asks for is in use; None where nowhere."""
        taken = [self._ports[port] for port in pod.ports if port in self._ports]
        return _any(tally.counts > 0 for tally in taken if tally.total)

    def lonely(self, pod: Demand) -> Flags | None:
        """The nodes where *pod* lacks neighbours it needs; None where nowhere.

        Only pods that every term means count, each in the domain of its term. The
        first of its kind may go to any node that has the labels: no pod is meant by
        all terms yet, and *pod* itself is.
        """
        if not pod.near:
            return None
        picks = tuple(pick_of(term, pod) for term in pod.near)
        counts = self.counted(*picks).counts
        domains = [self.domains(term.key) for term in pod.near]
        found = [each.gather(counts) for each in domains]
        if not any(each.any() for each in found) and _mean(picks, pod):
            return _any(~each.present for each in domains)
        return _any(each == 0 for each in found)

    def repelled(self, pod: Demand) -> Flags | None:
        """The nodes where *pod* and a neighbour exclude each other; None if nowhere.

        Either of the two may be the one that says so.
        """
        wanted = [(term.key, self.counted(pick_of(term, pod))) for term in pod.apart]
        wanted += [
            (wish.key, tally)
            for wish, tally in self._wishes.items()
            if tally.total and wish.weight == FORBIDS and wish.pick.means(pod)
        ]
        return _any(
            self.domains(key).gather(tally.counts) > 0
            for key, tally in wanted
            if tally.total
        )

    def lopsided(self, pod: Demand) -> Flags | None:
        """The nodes where *pod* would make a spread uneven; None where nowhere.

        Pods and domains count on nodes that *pod* selects and that have the labels of
        all its hard constraints.
        """
        hard = [each for each in pod.spread if each.hard]
        if not hard:
            return None
        counted_in = self._spread_over(pod, hard)
        return _any(self._too_many(pod, each, counted_in) for each in hard)

    def _spread_over(self, pod: Demand, constraints: Iterable[Spread]) -> Flags:
        """The nodes that *pod* selects and that have all the labels."""
        found = self._cluster.fleet.selected(pod)
        for each in constraints:
            found &= self.domains(each.key).present
        return found

    def _too_many(self, pod: Demand, spread: Spread, counted_in: Flags) -> Flags:
        domains = self.domains(spread.key)
        pick = Pick((pod.namespace,), spread.selector)
        sums = domains.sums(self.counted(pick).counts * counted_in)
        eligible = np.unique(domains.code[counted_in])
        fewest = int(sums[eligible].min(initial=sums.max()))
        if len(eligible) < (spread.min_domains or 0):
            fewest = 0
        skew = sums + pick.means(pod) - fewest
        found: Flags = (skew > spread.max_skew)[domains.code] | ~domains.present
        return found

    def liking(self, pod: Demand) -> Ints | None:
        """The weights of neighbours that *pod* wants or is wanted by, less the others.

        None where no node has any.
        """
        weighed = [
            (wish.key, wish.weight, self.counted(wish.pick))
            for wish in _wishes(pod)
            if wish.weight != FORBIDS
        ]
        weighed += [
            (wish.key, wish.weight, tally)
            for wish, tally in self._wishes.items()
            if tally.total and wish.weight != FORBIDS and wish.pick.means(pod)
        ]
        if not weighed:
            return None
        found = np.zeros(len(self._cluster), np.int64)
        for key, weight, tally in weighed:
            found += weight * self.domains(key).gather(tally.counts)
        return found if found.any() else None

    def crowding(self, pod: Demand) -> tuple[Ints, Flags] | None:
        """How crowded nodes are to the soft constraints of *pod*, and which count.

        Every constraint adds the pods of the domain, times the logarithm of the number
        of domains and 2, and its skew less 1. None without such constraints.
        """
        soft = [each for each in pod.spread if not each.hard]
        if not soft:
            return None
        counted_in = self._spread_over(pod, soft)
        total = np.zeros(len(self._cluster), np.float64)
        for each in soft:
            domains = self.domains(each.key)
            counts = self.counted(Pick((pod.namespace,), each.selector)).counts
            size = len(np.unique(domains.code[counted_in]))
            total += domains.gather(counts * counted_in) * np.log(size + 2)
            total += each.max_skew - 1
        return np.floor(total + 0.5).astype(np.int64), counted_in


def neighbours_of(cluster: Cluster) -> Neighbours:
    """The index of *cluster*, made when it is first asked for."""
    for watcher in cluster.watchers:
        if isinstance(watcher, Neighbours):
            return watcher
    return Neighbours(cluster)


def _mean(picks: Iterable[Pick], pod: Demand) -> bool:
    return all(pick.means(pod) for pick in picks)


def _is_bare(pod: Demand, resource: str) -> bool:
    return not any(name == resource and amount for name, amount in pod.resources)


def _any(found: Iterable[Flags]) -> Flags | None:
    """The nodes in any of *found*; None where there are none."""
    listed = list(found)
    flags = np.logical_or.reduce(listed) if listed else None
    return flags if flags is not None and flags.any() else None


def _drop_empty(tallies: dict[_Key, Tally]) -> None:
    for key in [key for key, tally in tallies.items() if not tally.total]:
        del tallies[key]
