"""SuperPoDs: which of them hold the blocks of a job.

Nodes of one SuperPoD talk over a network that is faster than the switches. A job is
cut into *blocks* (logical SuperPoDs) of equal size; a block lies inside one SuperPoD,
unless the job's affinity is soft. A SuperPoD keeps some nodes in reserve for repairs
and is worth more the more of it is free in one piece.

First choice is a SuperPoD that holds the whole job and keeps its reserve. Otherwise the
job goes block by block: through queue 1, the SuperPoDs that hold a block besides their
reserve; queue 2, those that hold one by eating into it; and, if soft, queue 3, those
that hold part of one. Rules work on free nodes per SuperPoD, never on nodes.

Of SuperPoDs with as many free nodes, those go first whose nodes are healthier and leave
fewer fragments, then those with the lowest id (D16, D35).

Source: "Affinity Scheduling of Logical SuperPoDs", steps 1 to 4; decisions D15, D16,
D35.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.arrays import Flags, Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.chips import NEVER
from ringleaf.policies.costs import costs_of
from ringleaf.policies.fit import NOT_EXCLUDED, Excluded, Request, node_ranks

Price = Callable[[int, int, int], tuple[int, int]]
"""SuperPoD, first node, number of nodes -> what these nodes cost: health, fragments.

Nodes of a SuperPoD are in their order, the best first. None stands for a price where
all nodes cost the same.
"""


class BlockShare(Struct, frozen=True):
    """Nodes of one block in one SuperPoD."""

    superpod: int
    nodes: int


class BlockLayout(Struct, frozen=True):
    """How a job is cut: *blocks* of *size* nodes, a *reserve*.

    ``rests`` are nodes besides: where blocks may not be split, what is left of blocks
    of which pods have ended well, the largest first.
    """

    blocks: int
    size: int
    reserve: int
    soft: bool = False
    rests: tuple[int, ...] = ()

    @property
    def nodes(self) -> int:
        """Nodes of the whole job."""
        return self.blocks * self.size + sum(self.rests)


def queue_of(free: int, layout: BlockLayout) -> int:
    """The queue, 1, 2 or 3, of a SuperPoD with *free* nodes.

    >>> [queue_of(free, BlockLayout(2, 16, 2)) for free in (48, 18, 17, 16, 15)]
    [1, 1, 2, 2, 3]
    """
    if free >= layout.size + layout.reserve:
        return 1
    return 2 if free >= layout.size else 3


def visit_order(
    free: Mapping[int, int], layout: BlockLayout, price: Price | None = None
) -> list[int]:
    """The SuperPoDs that hold the whole job and keep their reserve, best first (D15).

    What would be left over is laid out in columns as high as a block; the first
    columns, as many as there are blocks, are read row by row, the others one after the
    other.

    >>> free = {n: n for n in range(10, 49)}
    >>> visit_order(free, BlockLayout(blocks=2, size=8, reserve=2))[:6]
    [18, 26, 19, 27, 20, 28]
    """

    def key(superpod: int) -> tuple[int, ...]:
        column, row = divmod(
            free[superpod] - layout.nodes - layout.reserve, layout.size
        )
        first = column < layout.blocks
        place = (0, row, column) if first else (1, column, row)
        if price is None:
            return *place, superpod
        return *place, *price(superpod, 0, layout.nodes), superpod

    enough = [s for s in free if free[s] >= layout.nodes + layout.reserve]
    return sorted(enough, key=key)


def choose_parts(
    free: Mapping[int, int], layout: BlockLayout, price: Price | None = None
) -> list[BlockShare] | None:
    """Where the blocks of a job go, in the order of their ids; None: nowhere now."""
    if order := visit_order(free, layout, price):
        whole = [BlockShare(order[0], layout.size)] * layout.blocks
        return whole + [BlockShare(order[0], rest) for rest in layout.rests]
    if not fits(free, layout):
        return None
    parts = [part for visit in visits(free, layout, price) for part in visit.parts]
    return parts if sum(part.nodes for part in parts) == layout.nodes else None


def fits(free: Mapping[int, int], layout: BlockLayout) -> bool:
    """Whether whole blocks can lie somewhere at all, the reserve included."""
    if layout.soft:
        return sum(free.values()) >= layout.nodes
    return sum(nodes // layout.size for nodes in free.values()) >= layout.blocks


def cell_of(free: int, layout: BlockLayout) -> tuple[int, int]:
    """Row and column of a SuperPoD in the grid of queues 1 and 2.

    >>> layout = BlockLayout(blocks=3, size=14, reserve=2)
    >>> [cell_of(free, layout) for free in (47, 16, 31, 15)]
    [(3, 3), (0, 1), (1, 2), (13, 0)]
    """
    if free < layout.reserve:
        return free % layout.size, 0
    return (free - layout.reserve) % layout.size, (free - layout.reserve) // layout.size


class Visit(Struct, frozen=True):
    """A SuperPoD that was looked at, what it had free, and what was taken there."""

    superpod: int
    free: int
    parts: tuple[BlockShare, ...]


def visits(
    free: Mapping[int, int], layout: BlockLayout, price: Price | None = None
) -> Iterator[Visit]:
    """Block by block, for as long as something is wanted."""
    taker = _Taker(free, layout, price)
    yield from taker.beside_the_reserve()
    yield from taker.from_the_reserve()
    yield from (
        taker.parts_of_blocks() if layout.soft or not layout.rests else taker.rests()
    )


class _Taker:
    """Takes blocks from SuperPoDs until there are enough.

    Of each SuperPoD the nodes are taken in their order: ``_taken`` is how many.
    """

    def __init__(
        self, free: Mapping[int, int], layout: BlockLayout, price: Price | None
    ) -> None:
        self._free, self._layout, self._want = dict(free), layout, layout.blocks
        self._taken = dict.fromkeys(free, 0)
        self._price = price

    def _take(self, superpod: int, keep: int) -> Visit:
        had, size = self._free[superpod], self._layout.size
        count = min(self._want, max(0, had - keep) // size)
        self._free[superpod] -= count * size
        self._taken[superpod] += count * size
        self._want -= count
        return Visit(superpod, had, (BlockShare(superpod, size),) * count)

    def _arranged(self, tied: Sequence[int], each: int, wanted: int) -> list[int]:
        """*tied* SuperPoDs, which give *each* nodes or what is still *wanted*.

        Those go first that cost least together with the last of them, which gives what
        is left.
        """
        n_whole, rest = divmod(wanted - 1, each)
        price = self._price
        if price is None or n_whole >= len(tied):
            return list(tied)  # all of them give all

        def cost(superpod: int, count: int) -> tuple[int, int]:
            return price(superpod, self._taken[superpod], count)

        order = sorted(tied, key=lambda s: (cost(s, each), s))
        first, spare = {*order[:n_whole]}, cost(order[n_whole], each)

        def total(last: int) -> tuple[int, ...]:
            """What *last* adds if it gives the rest, and the next one all for it."""
            health, fragments = cost(last, rest + 1)
            if last not in first:
                return health, fragments, 0, last
            own = cost(last, each)
            return health + spare[0] - own[0], fragments + spare[1] - own[1], 1, last

        last = min(order, key=total)
        chosen = {*[s for s in order if s != last][:n_whole]}
        others = [s for s in tied if s != last and s not in chosen]
        if rest + 1 == each:
            return [*sorted({*chosen, last}), *others]
        return [*sorted(chosen), last, *others]

    def _in_turn(
        self, superpods: Iterable[int], keep: int
    ) -> Iterator[tuple[int, list[int]]]:
        """Stretches of *superpods* that have as many free nodes, each arranged."""
        for nodes, tied in groupby(superpods, key=self._free.__getitem__):
            each = (nodes - keep) // self._layout.size
            if not self._want or each < 1:
                continue
            size = self._layout.size
            yield each, self._arranged([*tied], each * size, self._want * size)

    def beside_the_reserve(self) -> Iterator[Visit]:
        """Where the least is left over, from SuperPoDs with no more than is wanted.

        Then from larger ones. A cell of the grid is entered if its column is not above
        the blocks still wanted, and then read to its end.
        """
        reserve = self._layout.reserve
        cells = {s: cell_of(nodes, self._layout) for s, nodes in self._free.items()}
        in_rows = sorted(cells, key=lambda s: (*cells[s], s))
        for column, cell in self._in_turn(in_rows, reserve):
            if column <= self._want:
                yield from self._from(cell, reserve)
        wide = [s for s in cells if cells[s][1] > self._want > 0]
        wide.sort(key=lambda s: (cells[s][1], cells[s][0], s))
        for _column, cell in self._in_turn(wide, reserve):
            yield from self._from(cell, reserve)

    def _from(self, superpods: Iterable[int], keep: int) -> Iterator[Visit]:
        for superpod in superpods:
            if self._want:
                yield self._take(superpod, keep)

    def from_the_reserve(self) -> Iterator[Visit]:
        """As many blocks as a SuperPoD can give, most free nodes first."""
        for _blocks, tied in self._in_turn(_most_first(self._free), 0):
            yield from self._from(tied, 0)

    def parts_of_blocks(self) -> Iterator[Visit]:
        """What is still wanted, at most a block from each, most free nodes first."""
        left = self._want * self._layout.size + sum(self._layout.rests)
        for nodes, tied in groupby(_most_first(self._free), self._free.__getitem__):
            each = min(nodes, self._layout.size)
            if not left or not each:
                return
            for superpod in self._arranged([*tied], each, left):
                if count := min(left, each):
                    left -= count
                    yield Visit(superpod, nodes, (BlockShare(superpod, count),))

    def rests(self) -> Iterator[Visit]:
        """What is left of blocks, each inside the SuperPoD that it fits most tightly.

        Those go first that keep their reserve.
        """
        reserve, price = self._layout.reserve, self._price
        for nodes in self._layout.rests:
            holds = [s for s in self._free if self._free[s] >= nodes]
            if not holds:
                return

            def key(s: int, nodes: int = nodes) -> tuple[object, ...]:
                had = self._free[s]
                cost = (0, 0) if price is None else price(s, self._taken[s], nodes)
                return had - nodes < reserve, had, cost, s

            best = min(holds, key=key)
            yield Visit(best, self._free[best], (BlockShare(best, nodes),))
            self._free[best] -= nodes
            self._taken[best] += nodes


def _most_first(free: Mapping[int, int]) -> list[int]:
    return sorted(free, key=lambda superpod: (-free[superpod], superpod))


class Superpods(Struct, frozen=True):
    """The fitting nodes by SuperPoD; in each the best chip rank first, then by name."""

    nodes: Mapping[int, Ints]
    ranks: Ints | None
    """The ranks of all nodes of the cluster; None where all that fit are alike."""

    @property
    def free(self) -> dict[int, int]:
        """Fitting nodes of each SuperPoD that has any."""
        return {superpod: len(nodes) for superpod, nodes in self.nodes.items()}

    @property
    def price(self) -> Price | None:
        """What nodes of a SuperPoD cost; None where all cost the same."""
        if self.ranks is None:
            return None
        starts: dict[int, int] = {}
        end = 0
        for superpod, nodes in self.nodes.items():
            starts[superpod], end = end, end + len(nodes)
        costs = costs_of(self.ranks[np.concatenate([*self.nodes.values()])])
        if costs is None:
            return None
        return lambda superpod, start, n: costs.one(starts[superpod] + start, n)


def superpods_of(cluster: Cluster, ranks: Ints) -> Superpods:
    """The fitting nodes of every SuperPoD."""
    (nodes,) = (ranks != NEVER).nonzero()
    own = ranks[nodes]
    alike = not len(own) or own.min() == own.max()
    if not alike:
        nodes = nodes[np.argsort(own, kind="stable")]
    nodes = nodes[np.argsort(cluster.superpod[nodes], kind="stable")]
    where = cluster.superpod[nodes]
    last = np.flatnonzero(np.diff(where, append=NOWHERE))
    ends = (last + 1).tolist()
    bounds = zip(where[last].tolist(), [0, *ends], ends, strict=False)
    return Superpods(
        {superpod: nodes[a:b] for superpod, a, b in bounds}, None if alike else ranks
    )


def best_in_superpods(
    cluster: Cluster, request: Request, reserve: int, excluded: Excluded = NOT_EXCLUDED
) -> int | None:
    """For one pod: the node with the best rank, in the SuperPoD that suits best."""
    ranks = node_ranks(cluster, request, excluded)
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
