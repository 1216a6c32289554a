"""Why a job finds no place in SuperPoDs, or beside pods of it that stay."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from msgspec.structs import replace

from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Firmness, Network
from ringleaf.model.placement import LeafState
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.fit import Request
from ringleaf.policies.gang import NodeAssignment, block_layout
from ringleaf.policies.obstacles import MAX_NAMED, MAX_TRIES, Obstacle, stays_inside
from ringleaf.policies.repair import missing_replicas, without_pods
from ringleaf.policies.superpods import BlockLayout, superpods_of
from ringleaf.policies.switches import leaf_table
from ringleaf.policies.validation import is_legal
from ringleaf.policies.words import counted, need_words, plural, some_of


def superpod_obstacle(
    cluster: Cluster,
    request: Request,
    job: Job,
    settings: Settings,
    ranks: Ints,
    *,
    hints: bool = True,
) -> Obstacle:
    """What holds back a job of several pods in SuperPoDs; what helps, if asked."""
    free = superpods_of(cluster, ranks).free
    layout = block_layout(job, settings, job.ranks[: job.min_chip_pods])
    because = "" if layout.soft else _room_for_blocks(free, layout)
    if not hints:
        return Obstacle(because)
    needs = ""
    if (short := layout.nodes - sum(free.values())) > 0:
        healthy = " with a healthy network" * request.avoids_network_faults
        more = counted(short, "more node")
        need = need_words(request, names_node=False)
        needs = f"needs {more} with {need}{healthy}"
    cuts = islice(_other_cuts(job, settings), MAX_TRIES)
    others = tuple((_cut_words(other), other) for other in cuts)
    return Obstacle(because, others=others, needs=needs)


def _room_for_blocks(free: Mapping[int, int], layout: BlockLayout) -> str:
    """The blocks that are needed, and the room for them (hard)."""
    room = sum(nodes // layout.size for nodes in free.values())
    most = sorted(free, key=lambda s: (-free[s], s))
    shown = some_of((f"SuperPoD {s} has {free[s]}" for s in most), MAX_NAMED)
    shown = f"{shown} free" if shown else "no SuperPoD has a free node"
    size = counted(layout.size, "node")
    if layout.rests:
        left = some_of((counted(nodes, "node") for nodes in layout.rests), MAX_NAMED)
        whole = counted(layout.blocks, "whole block")
        return (
            f"SuperPoD rule: needs {whole} of {size} and, "
            f"of blocks with pods that have succeeded, {left}, each block in one "
            f"SuperPoD; {shown}"
        )
    blocks, each = counted(layout.blocks, "block"), ", each" * (layout.blocks > 1)
    return (
        f"SuperPoD rule: needs {blocks} of {size}{each} in one "
        f"SuperPoD, there is room for {room}; {shown}"
    )


def _other_cuts(job: Job, settings: Settings) -> Iterator[Job]:
    """The same job with smaller blocks, split blocks, one block, or fewer of them."""
    if job.is_elastic:
        job = replace(
            job,
            replicas=job.min_chip_pods,
            sp_block=job.block_chips,
            min_available=None,
        )
    job = replace(job, roles=(), finished=(), previous=without_pods(job))
    for nodes in range(job.block_nodes - 1, 0, -1):
        smaller = replace(job, sp_block=nodes * job.product.chips)
        if is_legal(smaller, settings):
            yield smaller
    if job.superpod_affinity is not Firmness.SOFT:
        yield replace(job, superpod_affinity=Firmness.SOFT)
    if job.n_blocks > 1:
        yield replace(job, sp_block=job.replicas * job.chips)
    for blocks in range(job.n_blocks - 1, 0, -1):
        size = job.block_nodes
        yield replace(job, replicas=blocks * size, sp_block=size * job.product.chips)


def _cut_words(job: Job) -> str:
    soft = " and super-pod-affinity: soft" * (job.superpod_affinity is Firmness.SOFT)
    block = "" if job.sp_block is None else f" with sp-block: {job.sp_block}"
    return f"{job.wanted}{block}{soft}"


def repair_obstacle(
    cluster: Cluster,
    request: Request,
    job: Job,
    settings: Settings,
    ranks: Ints,
    *,
    kept: Sequence[NodeAssignment],
) -> Obstacle:
    """What holds the replacement of failed pods back; *ranks* of where they may go."""
    missing = missing_replicas(job.ranks, kept)
    lost = f"{counted(len(missing), 'pod')} must be replaced"
    if job.network is Network.SUPERPODS:
        return Obstacle(f"{lost}{_block_words(cluster, job, ranks, missing)}")
    if job.network is not Network.SWITCHES:
        return Obstacle(f"{lost}, each needs {need_words(request)}")
    table = leaf_table(cluster, ranks, settings)
    leaves = cluster.leaf[[assignment.node for assignment in kept]]
    if NOWHERE in leaves:
        return Obstacle(f"{lost}, but a pod that stays is under no known leaf switch")
    home = np.unique(leaves).tolist()
    names = some_of((cluster.leaves[leaf].name for leaf in home), MAX_NAMED)
    has = int(table.fitting[home].sum())
    rule = {
        SwitchMode.SINGLE_LAYER: "the job stays under its leaf",
        SwitchMode.SPINE_LEAF_1: "a slot that is used least, under a leaf that no "
        "other job crosses",
        SwitchMode.SPINE_LEAF_2: "a leaf the job uses, an idle one, or a shared one "
        "within its budget",
    }[settings.switch_mode]
    inside = {assignment.mark.state for assignment in kept if assignment.mark} == {
        LeafState.IDLE
    }
    second = settings.switch_mode is SwitchMode.SPINE_LEAF_2
    if stays_inside(job, settings) or (inside and second):
        rule = "the job stays under its leaf"
    under = f"{plural('leaf') if len(home) > 1 else 'leaf'} {names}"
    return Obstacle(
        f"{lost} ({rule}); the other pods are under {under}, "
        f"with {counted(has, 'other fitting node')}"
    )


def _block_words(
    cluster: Cluster, job: Job, ranks: Ints, missing: Sequence[int]
) -> str:
    """The SuperPoDs of the pods that are *missing*, and what they have left."""
    assert job.previous is not None
    free, away = superpods_of(cluster, ranks).free, {*missing}
    homes = {
        cluster.superpod.item(cluster.index[p.node])
        for p in (*job.previous.lost, *job.previous.placements)
        if p.replica in away and p.node in cluster.index
    }
    rooms = [
        f"SuperPoD {s} has {counted(free.get(s, 0), 'other fitting node')}"
        for s in sorted(homes)
    ]
    shown = some_of(rooms, MAX_NAMED)
    return f" in the SuperPoD of the block: {shown}" if rooms else ""
