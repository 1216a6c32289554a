"""Leaf switches: which nodes a job takes that is placed by switch affinity.

Nodes under one leaf switch talk through it alone. Nodes under different leaves talk
over the spine, and two jobs that cross the same leaf fight for its links. So a job
stays inside one leaf if it can. Where it must cross, 1.0 takes leaves whole, or the
same number of nodes at every position (*slot*) under the leaves, so that every link to
the spine carries the same load; 2.0 leaves the links to a fabric controller and limits
how many leaves a job may share with others.

Everything works on counts per leaf and on arrays of fitting nodes; nothing walks the
nodes of the cluster. A choice is a list of slices: nodes of one leaf, or of one
*logical leaf* (at most one node at each slot, under any leaves), in the order in which
ranks are assigned. Inside a slice ranks go by slot.

Where a rule leaves several leaves equal, the nodes that would be taken decide: their
health, then the fragments that they leave, then the order of leaves (D35).

Sources: "Node Scoring", table 1; "Switch Affinity Scheduling 1.0"; "Solution
Description"; decisions D10 to D14, D28 to D31, D35, D36.
"""

from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.arrays import Flags, Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.placement import JobType, LeafState
from ringleaf.model.settings import LeafChoice, Settings, SwitchMode
from ringleaf.policies.chips import NEVER
from ringleaf.policies.costs import Costs, costs_of

Leaves = NDArray[np.intp]

LAST_LISTED_WINS: Final = True


class LeafTable(Struct, frozen=True):
    """What one request finds under the leaves.

    ``nodes`` are the fitting nodes under any leaf: by leaf, inside a leaf by chip rank
    and then by slot (D31). ``rank`` and ``slot`` are theirs; ``starts`` is where the
    nodes of each leaf begin (and, once more, end). ``costs`` are what they cost, None
    where all are alike. ``free`` nodes of a leaf fit, of the ``size`` that it has;
    ``slots`` are those of all nodes, leaf by leaf. ``crossed`` leaves carry a job that
    crosses them, ``foundation`` leaves a foundation job that does; ``common`` leaves
    have common jobs only; ``state`` and ``sick`` matter to 2.0.
    """

    nodes: Ints
    rank: Ints
    slot: Ints
    starts: Ints
    costs: Costs | None
    fitting: Ints
    size: Ints
    slots: Ints
    leaf_size: int
    crossed: Flags
    foundation: Flags
    common: Flags
    state: Ints
    unhealthy: Flags

    @property
    def leaf(self) -> Ints:
        """The leaf of each of ``nodes``."""
        return np.repeat(np.arange(len(self.fitting)), np.diff(self.starts))

    def under(self, leaf: int, count: int) -> Ints:
        """Where the best *count* nodes of *leaf* stand in ``nodes``."""
        start = self.starts.item(leaf)
        return np.arange(start, start + count)

    def slots_under(self, leaves: Ints) -> Ints:
        """How many of *leaves* have each slot."""
        leaf = np.repeat(np.arange(len(self.size)), self.size)
        return np.bincount(self.slots[np.isin(leaf, leaves)], minlength=self.leaf_size)

    def group(self, state: LeafState) -> Flags:
        """The healthy leaves in *state* (2.0)."""
        return ~self.unhealthy & np.equal(self.state, state)


def leaf_table(cluster: Cluster, ranks: Ints, settings: Settings) -> LeafTable:
    """The fitting nodes under the leaves, and the state of the leaves."""
    nodes = cluster.by_leaf[ranks[cluster.by_leaf] != NEVER]
    leaf, own = cluster.leaf[nodes], ranks[nodes]
    if len(own) and own.min() != own.max():
        nodes = nodes[np.lexsort((own, leaf))]  # stable: slots stay in order
    free = np.bincount(leaf, minlength=len(cluster.leaves))
    rank, uplinks = ranks[nodes], cluster.uplinks
    return LeafTable(
        nodes=nodes,
        rank=rank,
        slot=cluster.slot[nodes],
        starts=np.concatenate([[0], np.cumsum(free)]),
        costs=costs_of(rank),
        fitting=free,
        size=cluster.leaf_sizes,
        slots=cluster.slots_by_leaf,
        leaf_size=settings.nodes_per_leaf or cluster.largest_leaf,
        crossed=uplinks.crossing > 0,
        foundation=uplinks.foundation > 0,
        common=uplinks.uncommon == 0,
        state=uplinks.state,
        unhealthy=uplinks.unhealthy,
    )


class LeafSlice(Struct, frozen=True):
    """Nodes of one (logical) leaf, and the state its leaf gets from the job."""

    at: Ints
    state: LeafState = LeafState.IDLE
    healthy: bool = True


LeafSlices = list[LeafSlice]


def choose_slices(
    table: LeafTable, n: int, job_type: JobType, settings: Settings
) -> LeafSlices | None:
    """The nodes of a job of *n* pods under the switch affinity in force."""
    if not len(table.fitting):
        return None  # no topology is known
    match settings.switch_mode:
        case SwitchMode.SINGLE_LAYER:
            return single_layer(table, n)
        case SwitchMode.SPINE_LEAF_1:
            open_ = open_leaves(table, n, job_type, settings)
            slices = affinity_1(table, n, job_type, open_, settings.leaf_choice)
        case _:
            slices = affinity_2(table, n, job_type, settings)
    return slices and marked(table, slices, settings.switch_mode)


def marked(table: LeafTable, slices: LeafSlices, mode: SwitchMode) -> LeafSlices:
    """The slices with the state that is written on their pods (D13).

    A job inside one leaf changes no leaf's state; in 1.0 a job that crosses leaves has
    them for itself.
    """
    leaves = table.leaf[np.concatenate([each.at for each in slices])]
    if (leaves == leaves[0]).all():
        return [LeafSlice(each.at) for each in slices]
    if mode is SwitchMode.SPINE_LEAF_1:
        return [LeafSlice(each.at, LeafState.EXCLUSIVE) for each in slices]
    return slices


def open_leaves(
    table: LeafTable, n: int, job_type: JobType, settings: Settings
) -> Flags:
    """The leaves a job of *n* pods may use in 1.0.

    A leaf that carries a cross-leaf job is closed to a job that would cross it too.
    Common jobs may share it where the operator says so (D12).
    """
    may_share = settings.share_common_leaves and job_type is JobType.COMMON
    spared = table.common if may_share else np.zeros_like(table.common)
    return ~table.crossed | (table.fitting >= n) | spared


def one_leaf(
    table: LeafTable,
    n: int,
    allowed: Flags,
    *,
    last_wins: bool = False,
    first: Flags | None = None,
) -> LeafSlices | None:
    """The allowed leaf with the fewest sufficient nodes (D11); *first* among equals."""
    tied = tightest(table, n, allowed)
    if not len(tied):
        return None
    if first is not None and first[tied].any():
        tied = tied[first[tied]]
    leaf = cheapest(table, tied[::-1] if last_wins else tied, n)
    return [LeafSlice(table.under(leaf, n))]


def tightest(table: LeafTable, n: int, allowed: Flags) -> Leaves:
    """The allowed leaves that have the fewest nodes of those with at least *n*."""
    (enough,) = (allowed & (table.fitting >= n)).nonzero()
    free = table.fitting[enough]
    fewest = int(free.min(initial=table.fitting.max()))
    found: Leaves = enough[free == fewest]
    return found


def cheapest(table: LeafTable, leaves: Leaves, n: int) -> int:
    """Of equal *leaves* the one whose best *n* nodes cost least, else the first."""
    if table.costs is None or len(leaves) == 1:
        return int(leaves[0])
    health, fragments = table.costs.of(table.starts[leaves], n)
    return int(leaves[np.lexsort((fragments, health))[0]])


def split(
    table: LeafTable, tied: Leaves, n_whole: int, rest: int
) -> tuple[Leaves, int]:
    """Which of *tied* leaves, all of one size, are taken whole, and which in part.

    Together they cost least. Where all cost the same, the first are taken whole and the
    next one in part.
    """
    size = table.fitting.item(tied[0])
    if table.costs is None:
        return tied[:n_whole], int(tied[n_whole])
    starts = table.starts[tied]
    whole, part = table.costs.of(starts, size), table.costs.of(starts, rest)
    order = np.lexsort(whole[::-1])
    first = np.zeros(len(tied), np.bool_)
    first[order[:n_whole]] = True
    # Where one of the first is taken in part, the next one is taken whole for it.
    fragments, health = (
        in_part + np.where(first, all_of[order[n_whole]] - all_of, 0)
        for all_of, in_part in zip(whole[::-1], part[::-1], strict=True)
    )
    last = int(np.lexsort((first, fragments, health))[0])
    others = order[order != last][:n_whole]
    if rest == size:
        *listed, last = sorted([*others.tolist(), last])
        others = np.array(listed, np.intp)
    return tied[np.sort(others)], int(tied[last])


def arranged(table: LeafTable, leaves: Leaves, n: int) -> Leaves:
    """*leaves* in the order of their size, so that the first *n* nodes cost least.

    Only leaves of one size change places.
    """
    if table.costs is None:
        return leaves
    sums = np.cumsum(table.fitting[leaves])
    if not 0 < n < sums.max(initial=0):
        return leaves
    at = int(np.searchsorted(sums, n))
    size = table.fitting.item(leaves[at])
    tied = table.fitting[leaves] == size
    before = int(table.fitting[leaves[:at]][~tied[:at]].sum())
    n_whole, rest = shape(n - before, size)
    whole, part = split(table, leaves[tied], n_whole, rest)
    others = leaves[tied & ~np.isin(leaves, [*whole.tolist(), part])]
    found = leaves.copy()
    found[tied] = np.concatenate([whole, [part], others])
    return found


def single_layer(table: LeafTable, n: int) -> LeafSlices | None:
    """One leaf or none: there is no spine."""
    if n > table.leaf_size:
        return None
    every = np.ones(len(table.fitting), np.bool_)
    return one_leaf(table, n, every, last_wins=LAST_LISTED_WINS)


def affinity_1(
    table: LeafTable, n: int, job_type: JobType, open_: Flags, choice: LeafChoice
) -> LeafSlices | None:
    """Switch affinity 1.0: one leaf, whole leaves, logical leaves, anything.

    A job may go inside a leaf that another one crosses: no job that would cross the
    leaf could use these nodes.
    """
    padding, compact = job_type is JobType.PADDING, choice is LeafChoice.COMPACT
    if n < table.leaf_size or padding or compact:
        first = table.crossed if compact else None
        slices = one_leaf(table, n, open_, last_wins=LAST_LISTED_WINS, first=first)
        if slices or padding:
            return slices
    whole = (compact_leaves if compact else whole_leaves)(table, n, open_)
    slices = whole or logical_leaves(table, n, open_)
    if slices or job_type is JobType.FOUNDATION:
        return slices
    return anything(table, n, open_)


def shape(n: int, leaf_size: int) -> tuple[int, int]:
    """Full rows, and the nodes of the row after them (from 1 to the leaf's size).

    >>> shape(4, 4), shape(13, 4), shape(22, 4)
    ((0, 4), (3, 1), (5, 2))
    """
    full, rest = divmod(n - 1, leaf_size)
    return full, rest + 1


def whole_leaves(table: LeafTable, n: int, open_: Flags) -> LeafSlices | None:
    """Complete leaves in their order, the last of them in part (D10)."""
    full, rest = shape(n, table.leaf_size)
    (complete,) = (open_ & (table.fitting == table.leaf_size)).nonzero()
    if len(complete) <= full:
        return None
    whole, part = split(table, complete, full, rest)
    slices = [LeafSlice(table.under(leaf, table.leaf_size)) for leaf in whole.tolist()]
    return [*slices, LeafSlice(table.under(part, rest))]


def compact_leaves(table: LeafTable, n: int, open_: Flags) -> LeafSlices | None:
    """Complete leaves, the largest first, and what is left under one more leaf (D36).

    A leaf is complete when all of its own nodes fit. It is taken whole while it fits
    into what is left; what is left then goes to the open leaf with the fewest nodes
    that are enough, among equals by D35.
    """
    complete = open_ & (table.fitting == table.size) & (table.fitting > 0)
    unused = open_.copy()
    whole: dict[int, Leaves] = {}
    for size in np.unique(table.fitting[complete])[::-1].tolist():
        (tied,) = (complete & (table.fitting == size)).nonzero()
        n_whole = min(len(tied), n // size)
        n -= n_whole * size
        unused[tied] = n_whole < len(tied)
        whole[size] = arranged(table, tied, n_whole * size)[:n_whole]
    last: LeafSlices = []
    if n:
        tied = tightest(table, n, unused)
        if not len(tied):
            return None
        size = table.fitting.item(tied[0])
        own = whole.get(size, tied[:0])
        whole[size], part = with_part(table, own, tied, complete, n)
        last = [LeafSlice(table.under(part, n))]
    slices = [
        LeafSlice(table.under(leaf, size))
        for size, leaves in whole.items()
        for leaf in leaves.tolist()
    ]
    return [*slices, *last]


def with_part(
    table: LeafTable, whole: Leaves, tied: Leaves, complete: Flags, rest: int
) -> tuple[Leaves, int]:
    """The leaves of one size that are taken whole, and that of *tied* for the rest.

    Together they cost least. Where they cost the same, a leaf that is not *complete*
    holds the rest.
    """
    others, same = tied[~complete[tied]], tied[complete[tied]]
    ways = [(whole, cheapest(table, others, rest))] if len(others) else []
    if len(same):
        ways.append(split(table, same, len(whole), rest))

    def price(way: tuple[Leaves, int]) -> tuple[int, int]:
        if table.costs is None:
            return 0, 0
        leaves = np.append(*way)
        counts = np.append(table.fitting[way[0]], rest)
        health, fragments = table.costs.of(table.starts[leaves], counts)
        return int(health.sum()), int(fragments.sum())

    return min(ways, key=price)


class Positions(Struct, frozen=True):
    """The nodes of open leaves by slot, the slots with the most nodes first.

    Of one slot, nodes come in the order of their leaves: most free nodes first, and of
    leaves with as many the better node first (D35).
    """

    at: Ints
    starts: Ints
    lengths: Ints
    slots: Ints

    def row(self, number: int) -> Ints:
        """The nodes at *number* of every slot that has as many."""
        return self.at[self.starts[self.lengths > number] + number]


def positions_of(table: LeafTable, open_: Flags, *, listed: bool = False) -> Positions:
    """The nodes of open leaves by slot, the vendor's array of relative positions.

    *listed*: leaves with as many free nodes stay in their order.
    """
    leaf = table.leaf
    place = np.empty(len(table.fitting), np.int64)
    place[np.argsort(-table.fitting, kind="stable")] = np.arange(len(place))
    (at,) = open_[leaf].nonzero()
    keys: tuple[Ints, ...] = (place[leaf[at]], table.slot[at])
    if table.costs is not None and not listed:
        keys = (keys[0], table.rank[at], -table.fitting[leaf[at]], keys[1])
    at = at[np.lexsort(keys)]
    lengths = np.bincount(table.slot[at], minlength=table.leaf_size)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    slots = np.argsort(-lengths, kind="stable")
    return Positions(at, starts[slots], lengths[slots], slots)


def logical_leaves(table: LeafTable, n: int, open_: Flags) -> LeafSlices | None:
    """Rows with one node at each slot, under any open leaves (D29, D30)."""
    size = table.leaf_size
    if n < size:
        row = one_logical_leaf(table, n, open_)
        return None if row is None else [LeafSlice(row)]
    positions = positions_of(table, open_)
    lengths = positions.lengths
    full, rest = shape(n, size)
    if lengths.item(rest - 1) <= full or lengths.item(size - 1) < full:
        return None
    slices = [LeafSlice(positions.row(number)) for number in range(full)]
    return [*slices, LeafSlice(best_of(table, positions.row(full), rest))]


def one_logical_leaf(table: LeafTable, n: int, open_: Flags) -> Ints | None:
    """Of the rows with *n* nodes the shortest; of it the *n* best nodes.

    At a slot, a node may stand for that of the row if its leaf has as many free nodes
    and it is better (D35).
    """
    positions = positions_of(table, open_, listed=True)
    last = positions.lengths.item(n - 1) - 1
    if last < 0:
        return None
    row = positions.row(last)
    if table.costs is not None:
        leaf, slot = table.leaf, table.slot
        at = positions.at
        at = at[np.lexsort((~np.isin(at, row), table.rank[at]))]
        # The first that is found for a slot and a number of free nodes is the best.
        width = len(table.nodes) + 1
        kinds, first = np.unique(
            slot[at] * width + table.fitting[leaf[at]], return_index=True
        )
        own = slot[row] * width + table.fitting[leaf[row]]
        row = at[first[np.searchsorted(kinds, own)]]
    return best_of(table, row, n)


def best_of(table: LeafTable, row: Ints, count: int) -> Ints:
    """The *count* nodes of a logical leaf with the best chip rank (D31)."""
    return row[np.argsort(table.rank[row], kind="stable")][:count]


def anything(table: LeafTable, n: int, open_: Flags) -> LeafSlices | None:
    """Nodes of open leaves, the emptiest leaves first."""
    slices, left = fill(table, n, descending(table, open_))
    return None if left else slices


def fill(
    table: LeafTable,
    n: int,
    leaves: Leaves,
    state: LeafState = LeafState.IDLE,
    *,
    healthy: bool = True,
) -> tuple[LeafSlices, int]:
    """Up to *n* nodes from *leaves* one after the other, and how many are missing.

    Leaves are taken in the order of their size, leaves of one size by cost (D35).
    """
    slices: LeafSlices = []
    for leaf in arranged(table, leaves, n).tolist():
        if not n:
            break
        if count := min(n, table.fitting.item(leaf)):
            slices.append(LeafSlice(table.under(leaf, count), state, healthy))
            n -= count
    return slices, n


def looks_for_one_leaf(table: LeafTable, n: int, settings: Settings) -> bool:
    """Whether *n* pods may go inside one leaf in any state (2.0).

    To the vendor as many pods as a leaf has nodes are too many.
    """
    compact = settings.leaf_choice is LeafChoice.COMPACT
    return n < table.leaf_size or (compact and n == table.leaf_size)


def affinity_2(
    table: LeafTable, n: int, job_type: JobType, settings: Settings
) -> LeafSlices | None:
    """Switch affinity 2.0: one leaf, else idle leaves whole and a shared remainder."""
    budget = settings.shared_leaves
    exclusive, shared, idle = (
        table.group(state)
        for state in (LeafState.EXCLUSIVE, LeafState.SHARED, LeafState.IDLE)
    )
    padding = job_type is JobType.PADDING
    if padding or looks_for_one_leaf(table, n, settings):
        for group in (exclusive, table.unhealthy, shared, idle):
            if slices := one_leaf(table, n, group):
                return slices
        if padding:
            return None
    if n > capacity_2(table, budget):
        return over_capacity(table, n) if job_type is JobType.COMMON else None
    return within_capacity(table, n, budget)


def capacity_2(table: LeafTable, budget: int) -> int:
    """Nodes a job may cross to: all under idle leaves, and the best shared ones."""
    shared = np.sort(table.fitting[table.group(LeafState.SHARED)])
    best = shared[max(0, len(shared) - budget) :]
    return int(table.fitting[table.group(LeafState.IDLE)].sum() + best.sum())


def within_capacity(table: LeafTable, n: int, budget: int) -> LeafSlices:
    """Idle leaves whole while they fit in, then the remainder (D14)."""
    slices, rest, larger = idle_whole(table, n)
    if not rest:
        return slices
    under = np.zeros(len(table.fitting), np.bool_)
    under[larger] = True
    tied = tightest(table, rest, under)
    if not len(tied):
        shared = ascending(table, table.group(LeafState.SHARED))
        return slices + on_shared(table, rest, shared, budget)
    size = table.fitting.item(tied[0])
    if slices and len(slices[-1].at) == size:
        # Leaves of one size: which are taken whole, and which holds the remainder.
        n_whole = sum(len(each.at) == size for each in slices)
        own = table.group(LeafState.IDLE) & (table.fitting == size)
        whole, part = split(table, own.nonzero()[0], n_whole, rest)
        slices[-n_whole:] = fill(table, size * n_whole, whole, LeafState.EXCLUSIVE)[0]
    else:
        part = cheapest(table, tied, rest)
    return [*slices, LeafSlice(table.under(part, rest), LeafState.SHARED)]


def idle_whole(table: LeafTable, n: int) -> tuple[LeafSlices, int, Leaves]:
    """Idle leaves, most free nodes first, whole while they fit into *n*.

    With them comes what remains of *n*, and the idle leaves after them.
    """
    idle = descending(table, table.group(LeafState.IDLE))
    sums = np.cumsum(table.fitting[idle])
    whole = int(np.searchsorted(sums, n, side="right"))
    taken = int(sums[whole - 1]) if whole else 0
    idle = arranged(table, idle, taken)
    slices, _none = fill(table, taken, idle[:whole], LeafState.EXCLUSIVE)
    return slices, n - taken, idle[whole:]


def ascending(table: LeafTable, which: Flags) -> Leaves:
    """Leaves of a group that have free nodes, fewest first, in order among equals."""
    (leaves,) = (which & (table.fitting > 0)).nonzero()
    return leaves[np.argsort(table.fitting[leaves], kind="stable")]


def descending(table: LeafTable, which: Flags) -> Leaves:
    """Leaves of a group that have free nodes, most first, in order among equals."""
    (leaves,) = (which & (table.fitting > 0)).nonzero()
    return leaves[np.argsort(-table.fitting[leaves], kind="stable")]


def on_shared(table: LeafTable, rest: int, shared: Leaves, budget: int) -> LeafSlices:
    """*rest* nodes under one or two of *shared* (ascending), which stay shared."""
    leaves = shared_leaves(table, shared, rest, budget)
    sizes = [min(rest, table.fitting.item(leaves[0]))]
    sizes += [rest - sizes[0]] * (rest > sizes[0])
    return [
        LeafSlice(table.under(leaf, count), LeafState.SHARED)
        for leaf, count in zip(leaves, sizes, strict=False)
    ]


def shared_leaves(
    table: LeafTable, shared: Leaves, rest: int, budget: int
) -> list[int]:
    """The one or two of *shared* (ascending) with the smallest sufficient sum.

    The second is listed after the first and used only if the first does not suffice.
    """
    sizes = table.fitting[shared]
    if budget == 1 or len(shared) == 1:
        size = sizes[np.searchsorted(sizes, rest)]
        return [cheapest(table, shared[sizes == size], rest)]
    first = np.arange(len(shared) - 1)
    second = np.maximum(np.searchsorted(sizes, rest - sizes[first]), first + 1)
    first, second = first[second < len(shared)], second[second < len(shared)]
    best = np.lexsort((first, sizes[first], sizes[first] + sizes[second]))[0]
    small, large = sizes[first[best]], sizes[second[best]]
    tied, others = shared[sizes == small], shared[sizes == large]
    if rest <= small:
        return [cheapest(table, tied, rest)]
    if small == large:
        whole, part = split(table, tied, 1, int(rest - small))
        return [*whole.tolist(), part]
    return [
        cheapest(table, tied, int(small)),
        cheapest(table, others, int(rest - small)),
    ]


def over_capacity(table: LeafTable, n: int) -> LeafSlices | None:
    """A common job that exceeds the shared budget: what it shares turns unhealthy."""
    spared = ~table.foundation
    idle = descending(table, table.group(LeafState.IDLE))
    slices, n = fill(table, n, idle, LeafState.EXCLUSIVE)
    for group in (
        table.unhealthy,
        table.group(LeafState.SHARED) & spared,
        table.group(LeafState.EXCLUSIVE) & spared,
    ):
        leaves = ascending(table, group)
        more, n = fill(table, n, leaves, LeafState.SHARED, healthy=False)
        slices += more
    return None if n else slices
