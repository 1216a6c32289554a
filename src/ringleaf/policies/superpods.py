"""SuperPoDs: which of them hold the blocks of a job.

Nodes of one SuperPoD talk over a network that is faster than the switches. A job is
cut into *blocks* (logical SuperPoDs) of equal size; a block lies inside one SuperPoD,
unless the job's affinity is soft. A SuperPoD keeps some nodes in reserve for repairs
and is worth more the more of it is free in one piece.

First choice is a SuperPoD that holds the whole job and keeps its reserve. Otherwise the
job goes block by block: through queue 1, the SuperPoDs that hold a block besides their
reserve; queue 2, those that hold one by eating into it; and, if soft, queue 3, those
that hold part of one. Rules work on free nodes per SuperPoD, never on nodes.

Source: "Affinity Scheduling of Logical SuperPoDs", steps 1 to 4; decisions D15, D16.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.cluster import Cluster
from ringleaf.model.spine import NOWHERE
from ringleaf.policies.chips import NEVER, Ints
from ringleaf.policies.fit import NOBODY, Barred, Request, node_ranks

Flags = NDArray[np.bool_]


class Part(Struct, frozen=True):
    """Nodes of one block in one SuperPoD."""

    superpod: int
    nodes: int


class Cut(Struct, frozen=True):
    """How a job is cut: *blocks* of *size* nodes, *rest* nodes besides, a *reserve*."""

    blocks: int
    size: int
    reserve: int
    soft: bool = False
    rest: int = 0

    @property
    def nodes(self) -> int:
        """Nodes of the whole job."""
        return self.blocks * self.size + self.rest


def queue_of(free: int, cut: Cut) -> int:
    """The queue, 1, 2 or 3, of a SuperPoD with *free* nodes.

    >>> [queue_of(free, Cut(2, 16, 2)) for free in (48, 18, 17, 16, 15)]
    [1, 1, 2, 2, 3]
    """
    if free >= cut.size + cut.reserve:
        return 1
    return 2 if free >= cut.size else 3


def visit_order(free: Mapping[int, int], cut: Cut) -> list[int]:
    """The SuperPoDs that hold the whole job and keep their reserve, best first (D15).

    What would be left over is laid out in columns as high as a block; the first
    columns, as many as there are blocks, are read row by row, the others one after the
    other.

    >>> free = {n: n for n in range(10, 49)}
    >>> visit_order(free, Cut(blocks=2, size=8, reserve=2))[:6]
    [18, 26, 19, 27, 20, 28]
    """

    def key(superpod: int) -> tuple[int, int, int, int]:
        column, row = divmod(free[superpod] - cut.nodes - cut.reserve, cut.size)
        first = column < cut.blocks
        return (0, row, column, superpod) if first else (1, column, row, superpod)

    enough = [s for s in free if free[s] >= cut.nodes + cut.reserve]
    return sorted(enough, key=key)


def choose_parts(free: Mapping[int, int], cut: Cut) -> list[Part] | None:
    """Where the blocks of a job go, in the order of their ids; None: nowhere now."""
    if order := visit_order(free, cut):
        whole = [Part(order[0], cut.size)] * cut.blocks
        return whole + [Part(order[0], cut.rest)] * (cut.rest > 0)
    if not fits(free, cut):
        return None
    return [part for visit in visits(free, cut) for part in visit.parts]


def fits(free: Mapping[int, int], cut: Cut) -> bool:
    """Whether the blocks can lie somewhere at all, the reserve included."""
    if cut.soft:
        return sum(free.values()) >= cut.nodes
    return sum(nodes // cut.size for nodes in free.values()) >= cut.blocks


def cell_of(free: int, cut: Cut) -> tuple[int, int]:
    """Row and column of a SuperPoD in the grid of queues 1 and 2.

    >>> cut = Cut(blocks=3, size=14, reserve=2)
    >>> [cell_of(free, cut) for free in (47, 16, 31, 15)]
    [(3, 3), (0, 1), (1, 2), (13, 0)]
    """
    if free < cut.reserve:
        return free % cut.size, 0
    return (free - cut.reserve) % cut.size, (free - cut.reserve) // cut.size


class Visit(Struct, frozen=True):
    """A SuperPoD that was looked at, what it had free, and what was taken there."""

    superpod: int
    free: int
    parts: tuple[Part, ...]


def visits(free: Mapping[int, int], cut: Cut) -> Iterator[Visit]:
    """Block by block, for as long as something is wanted."""
    taker = _Taker(free, cut)
    yield from taker.beside_the_reserve()
    yield from taker.from_the_reserve()
    yield from taker.parts_of_blocks()


class _Taker:
    """Takes blocks from SuperPoDs until there are enough."""

    def __init__(self, free: Mapping[int, int], cut: Cut) -> None:
        self._free, self._cut, self._want = dict(free), cut, cut.blocks

    def _take(self, superpod: int, keep: int) -> Visit:
        had, size = self._free[superpod], self._cut.size
        count = min(self._want, max(0, had - keep) // size)
        self._free[superpod] -= count * size
        self._want -= count
        return Visit(superpod, had, (Part(superpod, size),) * count)

    def beside_the_reserve(self) -> Iterator[Visit]:
        """Where the least is left over, from SuperPoDs with no more than is wanted.

        Then from larger ones. A cell of the grid is entered if its column is not above
        the blocks still wanted, and then read to its end.
        """
        reserve = self._cut.reserve
        cells = {s: cell_of(nodes, self._cut) for s, nodes in self._free.items()}
        current, small = (-1, -1), False
        for superpod in sorted(cells, key=lambda s: (*cells[s], s)):
            if cells[superpod] != current:
                current = cells[superpod]
                small = 1 <= current[1] <= self._want
            if small and self._want:
                yield self._take(superpod, reserve)
        wide = [s for s in cells if cells[s][1] > self._want > 0]
        for superpod in sorted(wide, key=lambda s: (cells[s][1], cells[s][0], s)):
            if self._want:
                yield self._take(superpod, reserve)

    def from_the_reserve(self) -> Iterator[Visit]:
        """As many blocks as a SuperPoD can give, most free nodes first."""
        if not self._want:
            return
        for superpod in _most_first(self._free):
            if self._want and self._free[superpod] >= self._cut.size:
                yield self._take(superpod, 0)

    def parts_of_blocks(self) -> Iterator[Visit]:
        """What is still wanted, at most a block from each, most free nodes first."""
        left = self._want * self._cut.size + self._cut.rest
        if not left:
            return
        for superpod in _most_first(self._free):
            nodes = self._free[superpod]
            if count := min(left, nodes, self._cut.size):
                left -= count
                yield Visit(superpod, nodes, (Part(superpod, count),))


def _most_first(free: Mapping[int, int]) -> list[int]:
    return sorted(free, key=lambda superpod: (-free[superpod], superpod))


class Superpods(Struct, frozen=True):
    """The fitting nodes by SuperPoD; in each the best chip rank first, then by name."""

    nodes: Mapping[int, Ints]

    @property
    def free(self) -> dict[int, int]:
        """Fitting nodes of each SuperPoD that has any."""
        return {superpod: len(nodes) for superpod, nodes in self.nodes.items()}


def superpods_of(cluster: Cluster, ranks: Ints) -> Superpods:
    """The fitting nodes of every SuperPoD."""
    (nodes,) = (ranks != NEVER).nonzero()
    own = ranks[nodes]
    if len(own) and own.min() != own.max():
        nodes = nodes[np.argsort(own, kind="stable")]
    nodes = nodes[np.argsort(cluster.superpod[nodes], kind="stable")]
    where = cluster.superpod[nodes]
    last = np.flatnonzero(np.diff(where, append=NOWHERE))
    ends = (last + 1).tolist()
    bounds = zip(where[last].tolist(), [0, *ends], ends, strict=False)
    return Superpods({superpod: nodes[a:b] for superpod, a, b in bounds})


def best_in_superpods(
    cluster: Cluster, request: Request, reserve: int, barred: Barred = NOBODY
) -> int | None:
    """For one pod: the node with the best rank, in the SuperPoD that suits best."""
    ranks = node_ranks(cluster, request, barred)
    (fitting,) = (ranks != NEVER).nonzero()
    if not len(fitting):
        return None
    tied = fitting[ranks[fitting] == ranks[fitting].min()]
    return int(tied[superpod_order(ranks[tied], cluster.superpod[tied], reserve)[0]])


def superpod_order(ranks: Ints, superpods: Ints, reserve: int) -> NDArray[np.intp]:
    """The order of nodes for one pod: by rank, then SuperPoD, then name.

    >>> ranks = np.zeros(9, np.int64)
    >>> superpods = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2])
    >>> superpods[superpod_order(ranks, superpods, reserve=2)].tolist()
    [1, 1, 1, 0, 0, 0, 0, 0, 2]
    """
    lots, keeps = _fellows(ranks, superpods, reserve)
    return np.lexsort((superpods, np.where(keeps, lots, -lots), ~keeps, ranks))


def superpod_weights(
    ranks: Ints, superpods: Ints, reserve: int
) -> list[tuple[int, ...]]:
    """What that order compares before the number of the SuperPoD and the name.

    >>> superpod_weights(np.zeros(4, np.int64), np.array([0, 0, 0, 1]), reserve=2)
    [(0, 0, 3), (0, 0, 3), (0, 0, 3), (0, 1, -1)]
    """
    lots, keeps = _fellows(ranks, superpods, reserve)
    then = np.where(keeps, lots, -lots)
    return list(zip(ranks.tolist(), (~keeps * 1).tolist(), then.tolist(), strict=True))


def _fellows(ranks: Ints, superpods: Ints, reserve: int) -> tuple[Ints, Flags]:
    """Nodes of the same rank in the SuperPoD of each; whether the reserve is kept."""
    pairs = np.stack([ranks, superpods], axis=1)
    _pairs, which, sizes = np.unique(
        pairs, axis=0, return_inverse=True, return_counts=True
    )
    count = sizes[which.ravel()]
    return count, count > reserve
