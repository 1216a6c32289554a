"""Leaf switches: which nodes a job takes that is placed by switch affinity.

Nodes under one leaf switch talk through it alone. Nodes under different leaves talk
over the spine, and two jobs that cross the same leaf fight for its links. So a job
stays inside one leaf if it can. Where it must cross, 1.0 takes leaves whole, or the
same number of nodes at every position (*slot*) under the leaves, so that every link to
the spine carries the same load; 2.0 leaves the links to a fabric controller and limits
how many leaves a job may share with others.

Everything works on counts per leaf and on arrays of fitting nodes; nothing walks the
nodes of the cluster. A choice is a list of rows: nodes of one leaf, or of one *logical
leaf* (at most one node at each slot, under any leaves), in the order in which ranks are
dealt. Inside a row ranks go by slot.

Sources: "Node Scoring", table 1; "Switch Affinity Scheduling 1.0"; "Solution
Description"; decisions D10 to D14, D28 to D31.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.cluster import Cluster
from ringleaf.model.placement import JobType, LeafState
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.policies.chips import NEVER, Ints

Flags = NDArray[np.bool_]

LAST_LISTED_WINS: Final = True


class Ground(Struct, frozen=True):
    """What one request finds under the leaves.

    ``nodes`` are the fitting nodes under any leaf: by leaf, inside a leaf by chip rank
    and then by slot (D31). ``rank`` and ``slot`` are theirs; ``starts`` is where the
    nodes of each leaf begin (and, once more, end). ``crossed`` leaves carry a job that
    crosses them, ``foundation`` leaves a foundation job that does; ``common`` leaves
    have common jobs only; ``state`` and ``sick`` matter to 2.0.
    """

    nodes: Ints
    rank: Ints
    slot: Ints
    starts: Ints
    free: Ints
    leaf_size: int
    crossed: Flags
    foundation: Flags
    common: Flags
    state: Ints
    sick: Flags

    @property
    def leaf(self) -> Ints:
        """The leaf of each of ``nodes``."""
        return np.repeat(np.arange(len(self.free)), np.diff(self.starts))

    def under(self, leaf: int, count: int) -> Ints:
        """Where the best *count* nodes of *leaf* stand in ``nodes``."""
        start = self.starts.item(leaf)
        return np.arange(start, start + count)

    def group(self, state: LeafState) -> Flags:
        """The healthy leaves in *state* (2.0)."""
        return ~self.sick & np.equal(self.state, state)


def ground_of(cluster: Cluster, ranks: Ints, settings: Settings) -> Ground:
    """The fitting nodes under the leaves, and the state of the leaves."""
    nodes = cluster.by_leaf[ranks[cluster.by_leaf] != NEVER]
    leaf, own = cluster.leaf[nodes], ranks[nodes]
    if len(own) and own.min() != own.max():
        nodes = nodes[np.lexsort((own, leaf))]  # stable: slots stay in order
    free = np.bincount(leaf, minlength=len(cluster.leaves))
    spine = cluster.spine
    return Ground(
        nodes=nodes,
        rank=ranks[nodes],
        slot=cluster.slot[nodes],
        starts=np.concatenate([[0], np.cumsum(free)]),
        free=free,
        leaf_size=settings.nodes_per_leaf or cluster.largest_leaf,
        crossed=spine.crossing > 0,
        foundation=spine.foundation > 0,
        common=spine.uncommon == 0,
        state=spine.state,
        sick=spine.sick,
    )


class Row(Struct, frozen=True):
    """Nodes of one (logical) leaf, and the state its leaf gets from the job."""

    at: Ints
    state: LeafState = LeafState.IDLE
    healthy: bool = True


Rows = list[Row]


def choose_rows(
    ground: Ground, n: int, job_type: JobType, settings: Settings
) -> Rows | None:
    """The nodes of a job of *n* pods under the switch affinity in force."""
    if not len(ground.free):
        return None  # no topology is known
    match settings.switch_mode:
        case SwitchMode.SINGLE_LAYER:
            return single_layer(ground, n)
        case SwitchMode.SPINE_LEAF_1:
            open_ = open_leaves(ground, n, job_type, settings)
            rows = affinity_1(ground, n, job_type, open_)
        case _:
            rows = affinity_2(ground, n, job_type, settings.shared_leaves)
    return rows and marked(ground, rows, settings.switch_mode)


def marked(ground: Ground, rows: Rows, mode: SwitchMode) -> Rows:
    """The rows with the state that is written on their pods (D13).

    A job inside one leaf changes no leaf's state; in 1.0 a job that crosses leaves has
    them for itself.
    """
    leaves = ground.leaf[np.concatenate([row.at for row in rows])]
    if (leaves == leaves[0]).all():
        return [Row(row.at) for row in rows]
    if mode is SwitchMode.SPINE_LEAF_1:
        return [Row(row.at, LeafState.EXCLUSIVE) for row in rows]
    return rows


def open_leaves(ground: Ground, n: int, job_type: JobType, settings: Settings) -> Flags:
    """The leaves a job of *n* pods may use in 1.0.

    A leaf that carries a cross-leaf job is closed to a job that would cross it too.
    Common jobs may share it where the operator says so (D12).
    """
    may_share = settings.share_common_leaves and job_type is JobType.COMMON
    spared = ground.common if may_share else np.zeros_like(ground.common)
    return ~ground.crossed | (ground.free >= n) | spared


def one_leaf(
    ground: Ground, n: int, allowed: Flags, *, last_wins: bool = False
) -> Rows | None:
    """The allowed leaf with the fewest sufficient nodes (D11)."""
    (enough,) = (allowed & (ground.free >= n)).nonzero()
    if not len(enough):
        return None
    if last_wins:
        enough = enough[::-1]
    leaf = int(enough[ground.free[enough].argmin()])
    return [Row(ground.under(leaf, n))]


def single_layer(ground: Ground, n: int) -> Rows | None:
    """One leaf or none: there is no spine."""
    if n > ground.leaf_size:
        return None
    every = np.ones(len(ground.free), np.bool_)
    return one_leaf(ground, n, every, last_wins=LAST_LISTED_WINS)


def affinity_1(ground: Ground, n: int, job_type: JobType, open_: Flags) -> Rows | None:
    """Switch affinity 1.0: one leaf, whole leaves, logical leaves, anything."""
    padding = job_type is JobType.PADDING
    if n < ground.leaf_size or padding:
        rows = one_leaf(ground, n, open_, last_wins=LAST_LISTED_WINS)
        if rows or padding:
            return rows
    rows = whole_leaves(ground, n, open_) or logical_leaves(ground, n, open_)
    if rows or job_type is JobType.FOUNDATION:
        return rows
    return anything(ground, n, open_)


def shape(n: int, leaf_size: int) -> tuple[int, int]:
    """Full rows, and the nodes of the row after them (from 1 to the leaf's size).

    >>> shape(4, 4), shape(13, 4), shape(22, 4)
    ((0, 4), (3, 1), (5, 2))
    """
    full, rest = divmod(n - 1, leaf_size)
    return full, rest + 1


def whole_leaves(ground: Ground, n: int, open_: Flags) -> Rows | None:
    """Complete leaves in their order, the last of them in part (D10)."""
    full, rest = shape(n, ground.leaf_size)
    (complete,) = (open_ & (ground.free == ground.leaf_size)).nonzero()
    if len(complete) <= full:
        return None
    counts = [ground.leaf_size] * full + [rest]
    chosen = zip(complete.tolist(), counts, strict=False)
    return [Row(ground.under(leaf, count)) for leaf, count in chosen]


class Positions(Struct, frozen=True):
    """The nodes of open leaves by slot, the slots with the most nodes first.

    Of one slot, nodes come in the order of their leaves: most free nodes first.
    """

    at: Ints
    starts: Ints
    lengths: Ints
    slots: Ints

    def row(self, number: int) -> Ints:
        """The nodes at *number* of every slot that has as many."""
        return self.at[self.starts[self.lengths > number] + number]


def positions_of(ground: Ground, open_: Flags) -> Positions:
    """The second of the two arrays: nodes by their relative position."""
    leaf = ground.leaf
    place = np.empty(len(ground.free), np.int64)
    place[np.argsort(-ground.free, kind="stable")] = np.arange(len(place))
    (at,) = open_[leaf].nonzero()
    at = at[np.lexsort((place[leaf[at]], ground.slot[at]))]
    lengths = np.bincount(ground.slot[at], minlength=ground.leaf_size)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    slots = np.argsort(-lengths, kind="stable")
    return Positions(at, starts[slots], lengths[slots], slots)


def logical_leaves(ground: Ground, n: int, open_: Flags) -> Rows | None:
    """Rows with one node at each slot, under any open leaves (D29, D30)."""
    positions, size = positions_of(ground, open_), ground.leaf_size
    lengths = positions.lengths
    if n < size:
        last = lengths.item(n - 1) - 1  # of the rows with n nodes, the shortest
        return [Row(best_of(ground, positions.row(last), n))] if last >= 0 else None
    full, rest = shape(n, size)
    if lengths.item(rest - 1) <= full or lengths.item(size - 1) < full:
        return None
    rows = [Row(positions.row(number)) for number in range(full)]
    return [*rows, Row(best_of(ground, positions.row(full), rest))]


def best_of(ground: Ground, row: Ints, count: int) -> Ints:
    """The *count* nodes of a logical leaf with the best chip rank (D31)."""
    return row[np.argsort(ground.rank[row], kind="stable")][:count]


def anything(ground: Ground, n: int, open_: Flags) -> Rows | None:
    """Nodes of open leaves, the emptiest leaves first."""
    rows, left = fill(ground, n, descending(ground, open_).tolist())
    return None if left else rows


def fill(
    ground: Ground,
    n: int,
    leaves: Iterable[int],
    state: LeafState = LeafState.IDLE,
    *,
    healthy: bool = True,
) -> tuple[Rows, int]:
    """Up to *n* nodes from *leaves* one after the other, and how many are missing."""
    rows: Rows = []
    for leaf in leaves:
        if not n:
            break
        if count := min(n, ground.free.item(leaf)):
            rows.append(Row(ground.under(leaf, count), state, healthy))
            n -= count
    return rows, n


def affinity_2(ground: Ground, n: int, job_type: JobType, budget: int) -> Rows | None:
    """Switch affinity 2.0: one leaf, else idle leaves whole and a shared remainder."""
    exclusive, shared, idle = (
        ground.group(state)
        for state in (LeafState.EXCLUSIVE, LeafState.SHARED, LeafState.IDLE)
    )
    padding = job_type is JobType.PADDING
    if n < ground.leaf_size or padding:
        for group in (exclusive, ground.sick, shared, idle):
            if rows := one_leaf(ground, n, group):
                return rows
        if padding:
            return None
    if n > capacity_2(ground, budget):
        return over_capacity(ground, n) if job_type is JobType.COMMON else None
    return within_capacity(ground, n, budget)


def capacity_2(ground: Ground, budget: int) -> int:
    """Nodes a job may cross to: all under idle leaves, and the best shared ones."""
    shared = np.sort(ground.free[ground.group(LeafState.SHARED)])
    best = shared[max(0, len(shared) - budget) :]
    return int(ground.free[ground.group(LeafState.IDLE)].sum() + best.sum())


def within_capacity(ground: Ground, n: int, budget: int) -> Rows:
    """Idle leaves whole while they fit in, then the remainder (D14)."""
    rows, rest, larger = idle_whole(ground, n)
    if not rest:
        return rows
    enough = larger[ground.free[larger] >= rest]
    if len(enough):
        tightest = enough[ground.free[enough] == ground.free[enough].min()].min()
        leaves = [int(tightest)]
    else:
        shared = ascending(ground, ground.group(LeafState.SHARED))
        leaves = shared_leaves(ground.free, shared, rest, budget)
    return rows + fill(ground, rest, leaves, LeafState.SHARED)[0]


def idle_whole(ground: Ground, n: int) -> tuple[Rows, int, NDArray[np.intp]]:
    """Idle leaves, most free nodes first, whole while they fit into *n*.

    With them comes what remains of *n*, and the idle leaves after them.
    """
    idle = descending(ground, ground.group(LeafState.IDLE))
    sums = np.cumsum(ground.free[idle])
    whole = int(np.searchsorted(sums, n, side="right"))
    rows, _none = fill(ground, n, idle[:whole].tolist(), LeafState.EXCLUSIVE)
    return rows, n - int(sums[whole - 1]) if whole else n, idle[whole:]


def ascending(ground: Ground, which: Flags) -> NDArray[np.intp]:
    """Leaves of a group that have free nodes, fewest first, in order among equals."""
    (leaves,) = (which & (ground.free > 0)).nonzero()
    return leaves[np.argsort(ground.free[leaves], kind="stable")]


def descending(ground: Ground, which: Flags) -> NDArray[np.intp]:
    """Leaves of a group that have free nodes, most first, in order among equals."""
    (leaves,) = (which & (ground.free > 0)).nonzero()
    return leaves[np.argsort(-ground.free[leaves], kind="stable")]


def shared_leaves(
    free: Ints, shared: NDArray[np.intp], rest: int, budget: int
) -> list[int]:
    """The one or two of *shared* (ascending) with the smallest sufficient sum.

    The second is listed after the first and used only if the first does not suffice.
    """
    sizes = free[shared]
    if budget == 1 or len(shared) == 1:
        return [int(shared[np.searchsorted(sizes, rest)])]
    first = np.arange(len(shared) - 1)
    second = np.maximum(np.searchsorted(sizes, rest - sizes[first]), first + 1)
    first, second = first[second < len(shared)], second[second < len(shared)]
    best = np.lexsort((first, sizes[first], sizes[first] + sizes[second]))[0]
    return [int(shared[first[best]]), int(shared[second[best]])]


def over_capacity(ground: Ground, n: int) -> Rows | None:
    """A common job that exceeds the shared budget: what it shares turns unhealthy."""
    spared = ~ground.foundation
    idle = descending(ground, ground.group(LeafState.IDLE))
    rows, n = fill(ground, n, idle.tolist(), LeafState.EXCLUSIVE)
    for group in (
        ground.sick,
        ground.group(LeafState.SHARED) & spared,
        ground.group(LeafState.EXCLUSIVE) & spared,
    ):
        leaves = ascending(ground, group).tolist()
        more, n = fill(ground, n, leaves, LeafState.SHARED, healthy=False)
        rows += more
    return None if n else rows
