"""Which pods are where, as far as other pods ask: an index that follows the cluster.

Pods are neighbours where a label of their nodes, the topology key, has one value; the
nodes with one value are a domain. A pod can want neighbours (affinity), want none of
some kind (anti-affinity), want its like spread evenly over domains, and use ports of
its node. The index counts, for every node: the pods that a selector means, the pods
that carry a wish about others, the pods on a port. Counts follow every pod that comes
and goes, also those that are tried and taken back; a selector is counted when a pod
first asks for it. Answers are arrays over all nodes.

To a selector, pods of one namespace with the same labels are one *kind*. Selectors are
held against kinds, and wishes against the namespaces that they mean: a selector that
means few pods costs little, however many pods there are.

The rules are Kubernetes'. Where we differ, on purpose: a node without the label
``kubernetes.io/hostname``, which every kubelet sets, has its name for it; a pod that
was asked to end counts until it is gone, for spreading too.

Source: Kubernetes, "Assigning Pods to Nodes" and "Pod Topology Spread Constraints";
``S:pkg/scheduler/framework/plugins/{interpodaffinity,podtopologyspread,nodeports}``.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from ringleaf.model.arrays import Flags, Ints
from ringleaf.model.cluster import Cluster, Holding
from ringleaf.model.demand import Demand, Spread
from ringleaf.model.label_index import LabelIndex, PodKinds, Wishes
from ringleaf.model.node_labels import ABSENT
from ringleaf.model.owner import Owner
from ringleaf.model.pod_terms import (
    FORBIDS,
    HOSTNAME,
    NO_LABEL,
    Domains,
    Pick,
    PodKind,
    PodMoves,
    Scattered,
    Tally,
    any_of,
    is_bare,
    mean_of,
    pick_of,
    wishes_of,
)

MOST_KINDS: Final = 512
"""Selectors whose counts are kept up; of more, the one not asked for longest goes."""

MOST_MOVES: Final = 4096
"""Demands of which is known what they count for."""
MOST_MOVES_BYTES: Final = 8 << 20
"""Bytes of those demands."""


class Neighbours:
    """The pods of one cluster, counted as others ask for them.

    It is one of the cluster's watchers; ``neighbours_of`` finds it there. While
    ``version`` and the node table's stay, so do all answers about pods and ports.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kept: dict[tuple[Pick, ...], Tally] = {}
        self._kept_by_label = LabelIndex[tuple[Pick, ...]]()
        """The same selectors, each under its first pick."""
        self._kinds = PodKinds()
        self._wishes = Wishes()
        self._ports: dict[str, Scattered] = {}
        self._bare: dict[str, Tally] = {}
        self._moves: dict[Demand, PodMoves] = {}
        self._moves_weight = 0
        self._domains: dict[str, tuple[int, Domains]] = {}
        self.version = 0
        for holding in self._pods():
            self("", holding, 1)
        cluster.watchers.append(self)

    def __call__(self, _owner: Owner, holding: Holding, by: int) -> None:
        """A pod came (``by`` 1) or went (``by`` -1)."""
        moves = self._moves.get(holding.demand)
        if moves is None:
            moves = self._learn(holding.demand)
        kind = moves.kind
        self.version += bool(moves.wished or kind.picked)
        kind.move(holding.node, by)
        for wished in moves.wished:
            wished.move(holding.node, by)
        for tally in (*kind.picked, *moves.bare):
            tally.move(holding.node, by)

    def _pods(self) -> Iterator[Holding]:
        for holdings in self._cluster.holdings.values():
            yield from holdings

    def _learn(self, pod: Demand) -> PodMoves:
        """What *pod* counts for."""
        weight = pod.weight
        full = self._moves_weight + weight > MOST_MOVES_BYTES
        if full or len(self._moves) >= MOST_MOVES:
            self._forget_moves()
        self._moves_weight += weight
        n_nodes = len(self._cluster)
        wished = [self._wishes.tally(wish, n_nodes) for wish in wishes_of(pod)]
        for port in pod.ports:
            if port not in self._ports:
                self._ports[port] = Scattered(n_nodes)
            wished.append(self._ports[port])
        bare = [tally for name, tally in self._bare.items() if is_bare(pod, name)]
        moves = PodMoves(self._kind(pod), tuple(wished), tuple(bare))
        self._moves[pod] = moves
        return moves

    def _kind(self, pod: Demand) -> PodKind:
        """The pods that are the same as *pod* to every selector."""
        found = self._kinds.get(pod.namespace, pod.labels)
        if found is None:
            like = Demand(labels=pod.labels, namespace=pod.namespace)
            about = self._kept_by_label.about(like)
            means = (self._kept[picks] for picks in about if mean_of(picks, like))
            found = PodKind(len(self._cluster), like, tuple(means))
            self._kinds.add(found)
        return found

    def _kinds_of(self, picks: Sequence[Pick]) -> Iterator[PodKind]:
        """The kinds that every one of *picks* means."""
        for kind in self._kinds.meant_by(picks[0]):
            if mean_of(picks, kind.pod):
                yield kind

    def _forget_moves(self) -> None:
        """Learn anew what pods count for; what no pod has goes."""
        self._moves.clear()
        self._moves_weight = 0
        self._wishes.drop_empty()
        for port in [port for port, tally in self._ports.items() if not tally.total]:
            del self._ports[port]
        self._kinds.drop_empty()

    def counted(self, *picks: Pick) -> Tally:
        """The pods that every one of *picks* means, counted from now on."""
        tally = self._kept.pop(picks, None)
        if tally is None:
            if len(self._kept) >= MOST_KINDS:
                self._count_no_more(next(iter(self._kept)))
            tally = Tally(len(self._cluster))
            for kind in self._kinds_of(picks):
                kind.add_to(tally.counts)
                tally.total += kind.total
                kind.picked = (*kind.picked, tally)
            self._kept_by_label.add(picks[0], picks)
        self._kept[picks] = tally
        return tally

    def _count_no_more(self, picks: tuple[Pick, ...]) -> None:
        tally = self._kept.pop(picks)
        self._kept_by_label.drop(picks[0], picks)
        self.version += 1  # its pods will make no news
        for kind in self._kinds_of(picks):
            kind.picked = (*(each for each in kind.picked if each is not tally),)

    def bare(self, resource: str) -> Tally:
        """The pods that ask for nothing of *resource*, counted from now on."""
        if resource not in self._bare:
            tally = self._bare[resource] = Tally(len(self._cluster))
            for holding in self._pods():
                if is_bare(holding.demand, resource):
                    tally.move(holding.node, 1)
            self._forget_moves()
        return self._bare[resource]

    def domains(self, key: str) -> Domains:
        """The nodes by the value of the label *key*."""
        table = self._cluster.node_table
        if key != HOSTNAME and not table.labels.has_label(key):
            key = NO_LABEL  # pods may make up any number of them
        version, known = self._domains.get(key, (None, None))
        if known is None or version != table.version:
            known = self._read_domains(key)
            self._domains[key] = table.version, known
        return known

    def _read_domains(self, key: str) -> Domains:
        column = self._cluster.node_table.labels.labels_of(key)
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
        likes = pod.prefers_near or pod.prefers_apart
        return bool(asks or likes or (self._wishes.known and self._wishes.about(pod)))

    def is_indifferent(self, pod: Demand) -> bool:
        """Whether *pod* minds no pod, and no pod minds any other."""
        return not self._wishes.known and not pod.heeds_pods

    def port_taken(self, pod: Demand) -> Flags | None:
        """The nodes where a port that *pod* asks for is in use; None where nowhere."""
        taken = [self._ports[port] for port in pod.ports if port in self._ports]
        return any_of(tally.counts > 0 for tally in taken if tally.total)

    def affinity_unmet(self, pod: Demand) -> Flags | None:
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
        if not any(each.any() for each in found) and mean_of(picks, pod):
            return any_of(~each.present for each in domains)
        return any_of(each == 0 for each in found)

    def repelled(self, pod: Demand) -> Flags | None:
        """The nodes where *pod* and a neighbour exclude each other; None if nowhere.

        Either of the two may be the one that says so.
        """
        wanted: list[tuple[str, Tally | Scattered]] = [
            (term.key, self.counted(pick_of(term, pod))) for term in pod.apart
        ]
        wanted += [
            (wish.key, tally)
            for wish, tally in self._wishes.about(pod)
            if wish.weight == FORBIDS
        ]
        return any_of(
            self.domains(key).gather(tally.counts) > 0
            for key, tally in wanted
            if tally.total
        )

    def skew_exceeded(self, pod: Demand) -> Flags | None:
        """The nodes where *pod* would make a spread uneven; None where nowhere.

        Pods and domains count on nodes that *pod* selects and that have the labels of
        all its hard constraints.
        """
        hard = [each for each in pod.spread if each.hard]
        if not hard:
            return None
        counted_in = self._spread_over(pod, hard)
        keys = dict.fromkeys(each.key for each in hard)
        eligible = {key: self.domains(key).among(counted_in) for key in keys}
        return any_of(
            self._too_many(pod, each, counted_in, eligible[each.key]) for each in hard
        )

    def _spread_over(self, pod: Demand, constraints: Iterable[Spread]) -> Flags:
        """The nodes that *pod* selects and that have all the labels."""
        found = self._cluster.node_table.labels.selected(pod).copy()
        for each in constraints:
            found &= self.domains(each.key).present
        return found

    def _too_many(
        self, pod: Demand, spread: Spread, counted_in: Flags, eligible: Flags
    ) -> Flags:
        domains = self.domains(spread.key)
        pick = Pick((pod.namespace,), spread.selector)
        sums = domains.sums(self.counted(pick).counts * counted_in)
        fewest = int(sums[eligible].min(initial=sums.max()))
        if np.count_nonzero(eligible) < (spread.min_domains or 0):
            fewest = 0
        skew = sums + pick.means(pod) - fewest
        found: Flags = (skew > spread.max_skew)[domains.code] | ~domains.present
        return found

    def liking(self, pod: Demand) -> Ints | None:
        """The weights of neighbours that *pod* wants or is wanted by, less the others.

        None where no node has any.
        """
        weighed: list[tuple[str, int, Tally | Scattered]] = [
            (wish.key, wish.weight, self.counted(wish.pick))
            for wish in wishes_of(pod)
            if wish.weight != FORBIDS
        ]
        weighed += [
            (wish.key, wish.weight, tally)
            for wish, tally in self._wishes.about(pod)
            if wish.weight != FORBIDS
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
            size = np.count_nonzero(domains.among(counted_in))
            total += domains.gather(counts * counted_in) * np.log(size + 2)
            total += each.max_skew - 1
        return np.floor(total + 0.5).astype(np.int64), counted_in


def neighbours_of(cluster: Cluster) -> Neighbours:
    """The index of *cluster*, made when it is first asked for."""
    for watcher in cluster.watchers:
        if isinstance(watcher, Neighbours):
            return watcher
    return Neighbours(cluster)
