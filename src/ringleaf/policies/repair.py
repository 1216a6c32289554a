"""After a fault: pods that can stay do, the others move as little as possible.

A pod stays when its node takes pods, its chips are healthy and no other pod holds them.
Replacements keep the rule under which the job was placed: a padding job stays under its
leaf, no leaf gets a second cross-leaf job, a block stays in its SuperPoD. Where that is
impossible the answer depends on what was deleted: with the failed pods only, the job
waits; with every pod, first whole blocks move and then the whole job.

Sources: "Rescheduling Upon Faults"; decision D17.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Reason
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job, Previous
from ringleaf.model.job_labels import Network
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import Placement
from ringleaf.policies.fit import (
    NOT_EXCLUDED,
    Excluded,
    Request,
    allowed_chips,
    eligible,
    node_ranks,
    of_right_product,
    request_of,
)
from ringleaf.policies.gang import NodeAssignment, assign_blocks, cut_into, whole_first
from ringleaf.policies.superpods import (
    BlockLayout,
    Superpods,
    choose_parts,
    superpods_of,
)


def scopes_of(job: Job) -> tuple[RestartScope, ...]:
    """How much of *job* may restart, the least first."""
    if job.previous is None:
        return (RestartScope.JOB,)
    if job.previous.scope is RestartScope.POD:
        return (RestartScope.POD,)
    if job.network is Network.SUPERPODS:
        return (RestartScope.POD, RestartScope.BLOCK, RestartScope.JOB)
    return (RestartScope.POD, RestartScope.JOB)


def survivors(cluster: Cluster, job: Job) -> Iterator[Placement]:
    """The previous placements that are still usable, role by role.

    Node and chips are healthy and match the request of the pod; every pod and every
    chip counts once. If all pods were deleted (scope ``JOB``), the node must be
    eligible as for a new pod.
    """
    assert job.previous is not None
    past, back = job.previous, job.previous.scope is RestartScope.JOB
    claimed: dict[int, int] = {}
    for role, own in job.role_ranks:
        request, pods = request_of(job, role), set(own)
        right = of_right_product(cluster, request) & cluster.ready
        room = np.full(len(cluster), len(past.placements))
        if back:
            right = eligible(cluster, request)
            room = cluster.node_table.resources.pods_that_fit(request.demand).copy()
        for placement in past.placements:
            node = cluster.index.get(placement.node)
            if node is None or placement.node in past.failed_nodes:
                continue
            chips, taken = mask_of(placement.chips), claimed.get(node, 0)
            within = allowed_chips(cluster, request).item(node) & ~taken
            whole = chips.bit_count() == request.row.asked and chips & within == chips
            known = placement.replica in pods and right.item(node)
            if known and whole and room.item(node) > 0:
                pods.remove(placement.replica)
                room[node] -= 1
                claimed[node] = taken | chips
                yield placement


def kept_assignments(cluster: Cluster, job: Job) -> list[NodeAssignment]:
    """The replicas that stay: healthy, and no other pod holds their chips."""
    kept = []
    for placement in survivors(cluster, job):
        node, chips = cluster.index[placement.node], mask_of(placement.chips)
        if cluster.free.item(node) & chips == chips:
            kept.append(assignment_of(cluster, job, placement))
    return kept


def assignment_of(cluster: Cluster, job: Job, placement: Placement) -> NodeAssignment:
    """The assignment of a pod of *job* that stays where it is."""
    return NodeAssignment(
        placement.replica,
        cluster.index[placement.node],
        mask_of(placement.chips),
        _block_of(job, placement),
        placement.mark if job.network is Network.SWITCHES else None,
    )


def _block_of(job: Job, placement: Placement) -> int | None:
    if job.network is not Network.SUPERPODS or not placement.chips:
        return None
    if placement.block is not None:
        return placement.block
    return job.block_of(placement.replica)


def excluded_nodes(
    cluster: Cluster,
    job: Job,
    kept: Sequence[NodeAssignment],
    refused: Excluded = NOT_EXCLUDED,
) -> Excluded:
    """The nodes no further pod with chips may use; *refused* are those of plugins."""
    if job.previous is None:
        return refused
    failed = job.previous.failed_nodes
    excluded = {
        Reason.FAILED_BEFORE: [cluster.index[n] for n in failed if n in cluster.index],
        Reason.OWN_POD: [s.node for s in kept if job.network is not Network.NONE],
    }
    return {**refused, **{reason: nodes for reason, nodes in excluded.items() if nodes}}


def without_pods(job: Job) -> Previous | None:
    """What is left of the past of *job* when all its pods are placed anew."""
    if job.previous is None:
        return None
    return Previous((), job.previous.failed_nodes, RestartScope.JOB)


def missing_replicas(
    replicas: Sequence[int], kept: Sequence[NodeAssignment]
) -> list[int]:
    """Those of *replicas* that have no assignment."""
    seated = {assignment.replica for assignment in kept}
    return [replica for replica in replicas if replica not in seated]


class GangRequest(Struct, frozen=True):
    """The pods with chips that a job is to have, and those of them that stay.

    ``refused`` are nodes that plugins bar. ``grows`` says that pods may join that never
    ran before.
    """

    replicas: Sequence[int]
    kept: Sequence[NodeAssignment]
    refused: Excluded = NOT_EXCLUDED
    grows: bool = False

    @property
    def missing(self) -> list[int]:
        """The replicas that lack an assignment."""
        return missing_replicas(self.replicas, self.kept)


def repaired_in_superpods(
    cluster: Cluster,
    request: Request,
    job: Job,
    gang: GangRequest,
    layout: BlockLayout,
    *,
    scope: RestartScope,
) -> list[NodeAssignment] | None:
    """The kept replicas and new assignments for the others, block by block.

    A block that lost some of its pods is filled up in its SuperPoD; one that lost all
    of them is placed anew. With whole blocks, one that cannot be filled up is
    placed anew as well.
    """
    kept = list(gang.kept)
    while True:
        excluded = excluded_nodes(cluster, job, kept, gang.refused)
        superpods = superpods_of(cluster, node_ranks(cluster, request, excluded))
        repair = _Repair(cluster, superpods, _members(job, gang, layout), kept)
        short = repair.short
        if not short:
            return repair.assignments(layout, ended=bool(job.finished))
        if scope is RestartScope.POD:
            return None
        kept = [assignment for assignment in kept if assignment.block not in short]


def _members(job: Job, gang: GangRequest, layout: BlockLayout) -> dict[int, list[int]]:
    """Block -> its replicas.

    Replicas that are new to a job that grows fill up its blocks and form new ones;
    where blocks may be split, they form new ones at once. Of a job with pods that have
    ended well they go into the blocks of their ranks, which are not all full any more.
    """
    assert job.previous is not None
    wanted = set(gang.replicas)
    block = {
        p.replica: _block_of(job, p)
        for p in (*job.previous.lost, *job.previous.placements)
        if p.replica in wanted
    }
    members: dict[int, list[int]] = {}
    new = []
    grows = gang.grows and (layout.soft or not job.finished)
    for replica in gang.replicas:
        own = block.get(replica)
        if own is None and grows:
            new.append(replica)
            continue
        own = job.block_of(replica) if own is None else own
        members.setdefault(own, []).append(replica)
    for own in sorted(members) if not layout.soft else ():
        lost = max(0, layout.size - len(members[own]))
        members[own] += new[:lost]
        new = new[lost:]
    fresh = max(members, default=-1) + 1
    for place, replica in enumerate(new):
        members.setdefault(fresh + place // layout.size, []).append(replica)
    return dict(sorted(members.items()))


class _Repair:
    """The blocks of a job, those that stay and those that are placed anew."""

    def __init__(
        self,
        cluster: Cluster,
        superpods: Superpods,
        members: Mapping[int, list[int]],
        kept: Sequence[NodeAssignment],
    ) -> None:
        self._superpods, self._members = superpods, members
        self._kept = {assignment.replica: assignment for assignment in kept}
        self._taken = dict.fromkeys(superpods.nodes, 0)
        self._filled: list[NodeAssignment] = []
        self._moving: list[int] = []
        self.short: set[int] = set()
        """Blocks that cannot be filled up in their SuperPoD."""
        for block, replicas in members.items():
            missing = [r for r in replicas if r not in self._kept]
            if len(missing) == len(replicas):
                self._moving.append(block)
            elif missing:
                stays = next(r for r in replicas if r in self._kept)
                home = cluster.superpod.item(self._kept[stays].node)
                self._fill(block, home, missing)

    def _fill(self, block: int, home: int, missing: Sequence[int]) -> None:
        start = self._taken.get(home, 0)
        nodes = self._superpods.nodes.get(home, np.empty(0, np.int64))
        chosen = np.sort(nodes[start : start + len(missing)]).tolist()
        if len(chosen) < len(missing):
            self.short.add(block)
            return
        self._taken[home] = start + len(missing)
        self._filled += [
            NodeAssignment(replica, node, block=block)
            for replica, node in zip(missing, chosen, strict=True)
        ]

    def assignments(
        self, layout: BlockLayout, *, ended: bool = False
    ) -> list[NodeAssignment] | None:
        """Every replica's assignment, or None where the moving blocks find no room.

        Pods of the job may have *ended* well: then not all blocks are full.
        """
        moving = {block: self._members[block] for block in self._moving}
        if ended and not layout.soft:
            moving = {
                block: moving[block] for block in whole_first(moving, layout.size)
            }
        replicas = [replica for own in moving.values() for replica in own]
        left = Superpods(
            {s: nodes[self._taken[s] :] for s, nodes in self._superpods.nodes.items()},
            self._superpods.ranks,
        )
        blocks, rest = divmod(len(replicas), layout.size)
        if layout.soft or not ended:
            if rest and not layout.soft:
                return None  # what pods said of their blocks does not add up
            moved = replace(layout, blocks=blocks, rests=(rest,) * (rest > 0))
        else:
            moved = cut_into(moving, layout)
        parts = choose_parts(left.free, moved, left.price) if replicas else []
        if parts is None:
            return None
        new = max(self._members) + 1
        ids = [*moving, *range(new, new + len(parts))]
        dealt = assign_blocks(left, zip(ids, parts, strict=False), replicas)
        return sorted(
            [*self._kept.values(), *self._filled, *dealt], key=attrgetter("replica")
        )
