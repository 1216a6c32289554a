"""Jobs that share links between leaf switches and the spine, and how much it costs.

The network has two layers. Under every leaf the node at slot *k* sends through the
uplink to spine *k*, whatever the destination, so a flow from a node at slot *k* to one
under leaf *b* loads the link from spine *k* down to leaf *b*. Each job sends along a
ring of its nodes in the order of its ranks; neighbours under the same leaf need no
spine. Two jobs on one link each get a part of it.

Sources: metric 7 (c), (d) and 8 of the definitions in docs/measures.md; the ring of
neighbours is that of a ring all-reduce, and what remains of a hierarchical one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ringleaf.model.cluster import Node
from ringleaf.model.placement import Placement

COMMUNICATION: Final = 0.3
"""Default share of a step in which jobs communicate.

Source: Arnold (arXiv 2509.15940) reports 30 to 50 %.
"""
WORST_COMMUNICATION: Final = 0.5
HASHES: Final = 200
"""Ways in which flows are hashed onto uplinks, of which the mean is taken."""

Flow = tuple[int, int, int]
"""From slot, from leaf, to leaf."""


def slowdown(degree: int, communication: float = COMMUNICATION) -> float:
    """How many times longer a step takes when *degree* jobs share the worst link.

    >>> slowdown(1), slowdown(3, 0.5)
    (1.0, 2.0)
    """
    return 1 - communication + communication * degree


class Uplinks:
    """Which jobs send over which link from a spine to a leaf.

    Args:
        nodes: The nodes of the cluster; those under no leaf send over no link.

    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        listed = list(nodes)
        named = dict.fromkeys(node.leaf for node in listed if node.leaf is not None)
        number = {name: i for i, name in enumerate(named)}
        self._place = {
            node.name: (node.slot, number[node.leaf])
            for node in listed
            if node.leaf is not None
        }
        self.n_leaves = len(number)
        self.n_spines = 1 + max(
            (slot for slot, _leaf in self._place.values()), default=0
        )
        self._jobs: dict[int, set[str]] = {}
        """Link -> the jobs on it."""
        self._links: dict[str, tuple[int, ...]] = {}
        """Job that crosses leaves -> its links."""
        self._flows: dict[str, list[Flow]] = {}
        self._degree: dict[str, int] = {}
        self.conflicts = 0
        """Over all links, the jobs on it beyond the first."""

    def come(self, job: str, nodes: Sequence[str]) -> set[str]:
        """*job* sends along *nodes*, in the order of ranks; whose degree changed.

        A job that is known already sends along these nodes instead.
        """
        changed = self.go(job) if job in self._links else set()
        flows = self._ring(nodes)
        if not flows:
            return changed - {job}
        links = tuple(dict.fromkeys(self._link(flow) for flow in flows))
        self._flows[job], self._links[job] = flows, links
        shared: set[str] = set()
        for link in links:
            others = self._jobs.setdefault(link, set())
            self.conflicts += bool(others)
            shared |= others
            others.add(job)
        return changed - {job} | self._recount({*shared, job})

    def go(self, job: str) -> set[str]:
        """*job* sends nothing any more; of the others, whose degree changed."""
        links = self._links.pop(job, None)
        if links is None:
            return set()
        del self._flows[job]
        self._degree.pop(job, None)
        shared: set[str] = set()
        for link in links:
            others = self._jobs[link]
            others.discard(job)
            self.conflicts -= bool(others)
            shared |= others
            if not others:
                del self._jobs[link]
        return self._recount(shared)

    def degree(self, job: str) -> int:
        """The most jobs on any link of *job*, itself among them; 1 without any."""
        return self._degree.get(job, 1)

    def slowdown(self, job: str, communication: float = COMMUNICATION) -> float:
        """How many times longer *job* takes now than it would alone."""
        return slowdown(self.degree(job), communication)

    @property
    def n_crossing(self) -> int:
        """Jobs that send over the spine."""
        return len(self._links)

    def loads(self) -> dict[tuple[int, int], int]:
        """Spine and leaf -> flows on the link between them, where there are any."""
        found: dict[tuple[int, int], int] = {}
        for flows in self._flows.values():
            for slot, _source, leaf in flows:
                found[slot, leaf] = found.get((slot, leaf), 0) + 1
        return found

    def hashed_load(self, hashes: int = HASHES) -> float:
        """The most flows on one link, if uplinks were chosen by hashes: their mean."""
        flows = [flow for own in self._flows.values() for flow in own]
        return hashed_load(flows, self.n_spines, self.n_leaves, hashes)

    def _recount(self, jobs: Iterable[str]) -> set[str]:
        """Recount the degrees of *jobs*; the jobs whose degree changed."""
        changed = set()
        on, known = self._jobs, self._degree
        for job in jobs:
            degree = max([len(on[link]) for link in self._links[job]])
            if known.get(job, 1) != degree:
                changed.add(job)
            known[job] = degree
        return changed

    def _link(self, flow: Flow) -> int:
        slot, _source, leaf = flow
        return slot * self.n_leaves + leaf

    def _ring(self, nodes: Sequence[str]) -> list[Flow]:
        """What a job sends over the spine along a ring of *nodes*, each once."""
        place = self._place
        ring = [place[node] for node in dict.fromkeys(nodes) if node in place]
        after = [*ring[1:], *ring[:1]]
        pairs = zip(ring, after, strict=True)
        return [(slot, leaf, to) for (slot, leaf), (_slot, to) in pairs if leaf != to]


class LinkDegrees:
    """Contention degrees for a clock that slows jobs down; keeps the books itself.

    Args:
        nodes: The nodes of the cluster.

    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._links = Uplinks(nodes)
        self._known: dict[str, tuple[str, ...]] = {}

    def __call__(
        self,
        jobs: Mapping[str, Mapping[int, Placement]],
        leaf_of: Mapping[str, str],
    ) -> dict[str, float]:
        """The degree of every job, given the pods of all that cross leaves."""
        del leaf_of  # slots count as well
        for gone in self._known.keys() - jobs.keys():
            self._links.go(gone)
            del self._known[gone]
        for name, pods in jobs.items():
            nodes = tuple(pods[replica].node for replica in sorted(pods))
            if self._known.get(name) != nodes:
                self._links.come(name, nodes)
                self._known[name] = nodes
        return {name: self._links.degree(name) for name in jobs}


def hashed_load(
    flows: Sequence[Flow], n_spines: int, n_leaves: int, hashes: int = HASHES
) -> float:
    """The most flows on any link where flows are hashed onto spines: the mean.

    A flow goes up from its leaf to the spine that its hash says and down to the other
    leaf; both links count. The hashes are fixed, so the same flows give the same mean.

    >>> hashed_load([(0, 0, 1)], n_spines=4, n_leaves=2)
    1.0
    """
    if not flows:
        return 0.0
    table = np.array(flows, np.int64)
    numbers = np.arange(len(flows), dtype=np.uint64)
    seeds = np.arange(1, hashes + 1, dtype=np.uint64)[:, None]
    source, leaf = table[:, 1], table[:, 2]
    key = _mixed(numbers + (table[:, 0] * n_leaves + source).astype(np.uint64) * 65536)
    spine = (_mixed(key[None, :] ^ _mixed(seeds)) % np.uint64(n_spines)).astype(
        np.int64
    )
    most = np.zeros(hashes, np.int64)
    row = np.arange(hashes)[:, None] * (n_spines * n_leaves)
    for end in (source, leaf):
        link = row + spine * n_leaves + end[None, :]
        counts = np.bincount(link.ravel(), minlength=hashes * n_spines * n_leaves)
        most = np.maximum(most, counts.reshape(hashes, -1).max(axis=1))
    return float(most.mean())


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Well-mixed numbers, the same for the same *keys*.

    The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
    """
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
