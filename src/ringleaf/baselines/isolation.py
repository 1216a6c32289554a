"""Rules that give a job links of its own: whole leaves, and Jigsaw's shapes.

A node at a slot of its leaf has the uplink of that slot to itself. Jobs that fit under
one leaf use no uplink, and take the leaf with the fewest sufficient nodes.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Final

import numpy as np

from ringleaf.baselines.fitting import (
    TIGHT,
    Costs,
    FittingNodes,
    Spot,
    Spots,
    Wiring,
    cheapest,
)
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Masks
from ringleaf.model.job import Job
from ringleaf.model.placement import LeafAnnotation
from ringleaf.policies.chips import MAX_RANK, NEVER
from ringleaf.policies.switches import (
    LeafSlice,
    LeafSlices,
    LeafTable,
    leaf_table,
    one_leaf,
    whole_leaves,
)

MAX_EXACT: Final = 8
"""Leaves of up to so many nodes are searched for every set of slots."""


def ground_under(fitting: FittingNodes) -> LeafTable:
    """The nodes of *fitting* under leaves, in the order of slots, one pod a node."""
    ranks = np.full(len(fitting.cluster), NEVER, np.int64)
    ranks[fitting.nodes] = 0
    return leaf_table(fitting.cluster, ranks, fitting.settings)


def seated(
    fitting: FittingNodes, table: LeafTable, rows: Iterable[LeafSlice], job: Job
) -> list[Spot]:
    """The nodes of rows, by slot inside a row, with what is noted of their leaves."""
    found = []
    for row in rows:
        at = row.at[np.argsort(table.slot[row.at], kind="stable")]
        mark = LeafAnnotation(job.job_type, row.state, row.healthy)
        nodes = table.nodes[at]
        usable = fitting.usable[np.searchsorted(fitting.nodes, nodes)]
        for node, mask in zip(nodes.tolist(), usable.tolist(), strict=True):
            found.append(Spot(node, TIGHT.taken(fitting.request, mask), mark))
    return found


def alone(fitting: FittingNodes, pods: int) -> list[Spot] | None:
    """Pods one by one by the product's rule, then under the leaf with least room."""
    under = np.bincount(fitting.leaf + 1, fitting.room)[fitting.leaf + 1]
    health = fitting.cluster.health_penalty[fitting.nodes] * MAX_RANK

    def priced(at: Ints, usable: Masks) -> Costs:
        ranks = fitting.request.table.ranks(usable) + health[at]
        costs: Costs = under[at] / (1 + under.max()) + ranks
        return costs

    return cheapest(fitting, pods, priced)


class WholeLeaves:
    """Jobs larger than a leaf take leaves of which every node is free.

    The last leaf in part; others may use the rest of it if they stay inside it.
    """

    wiring: Wiring = TIGHT
    shape = "one leaf, or leaves that are wholly free"

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*."""
        if pods == 1 or not fitting.cluster.leaves:
            return alone(fitting, pods)
        table = ground_under(fitting)
        every = np.ones(len(table.fitting), np.bool_)
        inside = pods <= table.leaf_size
        rows = (one_leaf if inside else whole_leaves)(table, pods, every)
        return None if rows is None else seated(fitting, table, rows, job)


class Jigsaw:
    """Links that no other job uses: equal nodes at equal slots under every leaf.

    A job inside one leaf has no links to the spine. Otherwise it has the same set of
    slots under each of its leaves and, in one more leaf, part of that set for what
    remains. As many nodes of a leaf as can be, so as few leaves as can be.

    Source: Smith, Lowenthal: Jigsaw, HPDC 2021; Zahavi et al.: Links as a Service, ANCS
    2016. Both also handle fat trees of three levels, and LaaS rounds jobs up to whole
    shapes; here the spine is one level and nothing is rounded. Leaves of more than
    eight nodes are not searched for every set of slots, only for those that the free
    slots of one or two leaves suggest.
    """

    wiring: Wiring = TIGHT
    shape = "equal slots under all its leaves, with links of its own"

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*."""
        if pods == 1 or not fitting.cluster.leaves:
            return alone(fitting, pods)
        table = ground_under(fitting)
        every = np.ones(len(table.fitting), np.bool_)
        rows = one_leaf(table, pods, every) or _pieces(table, pods)
        return None if rows is None else seated(fitting, table, rows, job)


def _pieces(table: LeafTable, pods: int) -> LeafSlices | None:
    """The rows of a job that crosses leaves, most nodes of a leaf first."""
    slots = np.zeros(len(table.fitting), np.uint64)
    bits = np.uint64(1) << table.slot.astype(np.uint64)
    np.bitwise_or.at(slots, table.leaf, bits)
    for width in range(min(table.leaf_size, pods), 0, -1):
        full, rest = divmod(pods, width)
        if (table.fitting >= width).sum() < full or (
            rest and len(table.fitting) == full
        ):
            continue
        for chosen in _sets(slots, width, table.leaf_size, full):
            leaves = _leaves_for(slots, table.fitting, chosen, full, rest)
            if leaves is not None:
                return _rows(table, slots, leaves, chosen, rest)
    return None


def _sets(slots: Masks, width: int, leaf_size: int, full: int) -> Iterator[np.uint64]:
    """Sets of so many slots that are free under enough leaves, the scarcest first."""
    if leaf_size <= MAX_EXACT:
        masks = (
            sum(1 << s for s in each) for each in combinations(range(leaf_size), width)
        )
        sets = np.fromiter(masks, np.uint64)
    else:
        kinds = np.unique(slots)
        shared = np.unique(kinds[:, None] & kinds[None, :])
        wide = shared[np.bitwise_count(shared) >= width]
        sets = np.unique(
            np.array([_lowest(mask, width) for mask in wide.tolist()], np.uint64)
        )
    n_leaves = ((slots[None, :] & sets[:, None]) == sets[:, None]).sum(axis=1)
    order = np.argsort(n_leaves, kind="stable")
    yield from sets[order[n_leaves[order] >= full]]


def _lowest(mask: int, count: int) -> int:
    """The lowest *count* bits of *mask*."""
    found = 0
    for _bit in range(count):
        found |= mask & -mask
        mask &= mask - 1
    return found


def _leaves_for(
    slots: Masks, free: Ints, chosen: np.uint64, full: int, rest: int
) -> list[int] | None:
    """Leaves with all of the slots, the fullest first, and one more for the rest.

    For the rest a leaf that does not have all of them, if there is one.
    """
    whole = (slots & chosen) == chosen
    order = np.argsort(free, kind="stable")
    leaves: list[int] = order[whole[order]].tolist()
    if not rest:
        return leaves[:full]
    enough = np.bitwise_count(slots & chosen) >= rest
    others = order[(enough & ~whole)[order]].tolist()
    if others:
        return [*leaves[:full], others[0]]
    return leaves[: full + 1] if len(leaves) > full else None


def _rows(
    table: LeafTable, slots: Masks, leaves: list[int], chosen: np.uint64, rest: int
) -> LeafSlices:
    """The nodes at the chosen slots under each leaf; under the last, the rest."""
    rows = []
    for number, leaf in enumerate(leaves):
        own = int(slots[leaf] & chosen)
        if rest and number == len(leaves) - 1:
            own = _lowest(own, rest)
        at = table.under(leaf, table.fitting.item(leaf))
        bits = np.uint64(1) << table.slot[at].astype(np.uint64)
        rows.append(LeafSlice(at[(bits & np.uint64(own)) > 0]))
    return rows
