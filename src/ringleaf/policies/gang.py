"""The nodes of a whole job at once, by a network rule: assignments in rank order.

An assignment is one replica's node before its chips are chosen; a replica that stays
where it was keeps its chips.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Firmness
from ringleaf.model.placement import JobType, LeafAnnotation
from ringleaf.model.settings import Settings
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import Excluded, Request, node_ranks
from ringleaf.policies.superpods import (
    BlockLayout,
    BlockShare,
    Superpods,
    choose_parts,
    superpods_of,
)
from ringleaf.policies.switches import LeafSlice, LeafTable, choose_slices, leaf_table


class NodeAssignment(Struct, frozen=True):
    """The node of one replica; ``chips`` is a mask where it keeps those it has."""

    replica: int
    node: int
    chips: int | None = None
    block: int | None = None
    mark: LeafAnnotation | None = None


def switch_assignments(
    cluster: Cluster, job: Job, settings: Settings, ranks: Ints, replicas: Sequence[int]
) -> list[NodeAssignment] | None:
    """The nodes of some *replicas* of *job* under the leaves, in their order.

    What type the job is of depends on all its pods.
    """
    assert job.job_type is not None
    if np.count_nonzero(ranks != NEVER) < len(replicas):
        return None  # whatever the leaves are like
    table = leaf_table(cluster, ranks, settings)
    slices = choose_slices(table, len(replicas), job.job_type, settings)
    if slices is None:
        return None
    return list(assign_ranks(table, slices, replicas, job.job_type))


def assign_ranks(
    table: LeafTable,
    slices: Iterable[LeafSlice],
    replicas: Iterable[int],
    job_type: JobType,
) -> Iterator[NodeAssignment]:
    """Give the nodes of the slices to *replicas*, one by one, inside each by slot."""
    numbers = iter(replicas)
    for each in slices:
        at = each.at[np.argsort(table.slot[each.at], kind="stable")]
        mark = LeafAnnotation(job_type, each.state, each.healthy)
        for node in table.nodes[at].tolist():
            yield NodeAssignment(next(numbers), node, mark=mark)


def block_layout(
    job: Job, settings: Settings, replicas: Sequence[int] | None = None
) -> BlockLayout:
    """How *job*, or some *replicas* of it, is cut into blocks."""
    ranks = job.ranks if replicas is None else replicas
    soft = job.superpod_affinity is Firmness.SOFT
    return _cut(job, ranks, settings.reserve_nodes, soft=soft)


def _cut(job: Job, replicas: Sequence[int], reserve: int, *, soft: bool) -> BlockLayout:
    size = job.block_nodes
    if not job.finished:
        return BlockLayout(len(replicas) // size, size, reserve, soft)
    if soft:
        blocks, rest = divmod(len(replicas), size)
        return BlockLayout(blocks, size, reserve, soft, (rest,) * (rest > 0))
    return cut_into(blocks_of(job, replicas), BlockLayout(0, size, reserve))


def blocks_of(job: Job, replicas: Iterable[int]) -> dict[int, list[int]]:
    """Block -> those of *replicas* that are in it, by their ranks."""
    found: dict[int, list[int]] = {}
    for replica in replicas:
        found.setdefault(job.block_of(replica), []).append(replica)
    return found


def cut_into(blocks: Mapping[int, Sequence[int]], like: BlockLayout) -> BlockLayout:
    """The cut into these *blocks*: whole ones, then what is left of others."""
    sizes = [len(blocks[block]) for block in whole_first(blocks, like.size)]
    n_whole = sizes.count(like.size)
    return replace(like, blocks=n_whole, rests=tuple(sizes[n_whole:]))


def whole_first(blocks: Mapping[int, Sequence[int]], size: int) -> list[int]:
    """The ids of *blocks* in the order in which a cut has them.

    >>> whole_first({0: [1], 1: [3, 4], 2: [6, 7, 8]}, 3)
    [2, 1, 0]
    """
    return sorted(blocks, key=lambda n: (len(blocks[n]) != size, -len(blocks[n]), n))


def superpod_assignments(
    cluster: Cluster,
    request: Request,
    job: Job,
    layout: BlockLayout,
    excluded: Excluded,
    *,
    replicas: Sequence[int],
) -> list[NodeAssignment] | None:
    """The nodes of *replicas* in SuperPoDs, block by block, inside a block by name.

    Parts of a block speak over the network: a job that does not heed it as a whole does
    so once its block is split.
    """
    ranks = node_ranks(cluster, request, excluded)
    if layout.soft and not request.avoids_network_faults:
        inside = _cut(job, replicas, layout.reserve, soft=False)
        whole = _chosen(cluster, job, replicas, inside, ranks)
        if whole is not None:
            return whole
        ranks = node_ranks(
            cluster, replace(request, avoids_network_faults=True), excluded
        )
    return _chosen(cluster, job, replicas, layout, ranks)


def _chosen(
    cluster: Cluster,
    job: Job,
    replicas: Sequence[int],
    layout: BlockLayout,
    ranks: Ints,
) -> list[NodeAssignment] | None:
    superpods = superpods_of(cluster, ranks)
    parts = choose_parts(superpods.free, layout, superpods.price)
    if parts is None:
        return None
    if layout.soft or not job.finished:
        return list(assign_blocks(superpods, enumerate(parts), replicas))
    blocks = blocks_of(job, replicas)
    ids = whole_first(blocks, layout.size)
    left = [replica for block in ids for replica in blocks[block]]
    dealt = assign_blocks(superpods, zip(ids, parts, strict=True), left)
    return sorted(dealt, key=lambda assignment: assignment.replica)


def assign_blocks(
    superpods: Superpods,
    parts: Iterable[tuple[int, BlockShare]],
    replicas: Iterable[int],
) -> Iterator[NodeAssignment]:
    """Give the best nodes of each part's SuperPoD to *replicas*, part after part."""
    numbers = iter(replicas)
    taken = dict.fromkeys(superpods.nodes, 0)
    for block, part in parts:
        start = taken[part.superpod]
        taken[part.superpod] = end = start + part.nodes
        for node in np.sort(superpods.nodes[part.superpod][start:end]).tolist():
            yield NodeAssignment(next(numbers), node, block=block)
