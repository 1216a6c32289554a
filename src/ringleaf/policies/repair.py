"""After a fault: pods that can stay do, the others move as little as possible.

A pod stays when its node takes pods, its chips are healthy and nobody else holds them.
Replacements keep the rule under which the job was placed: a padding job stays under its
leaf, no leaf gets a second cross-leaf job, a block stays in its SuperPoD. Where that is
impossible the answer depends on what was deleted: with the failed pods only, the job
waits; with every pod, first whole blocks move and then the whole job.

Sources: "Rescheduling Upon Faults"; decision D17.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Reason
from ringleaf.model.job import Job, Keep, Network, Previous
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import NO_MARK, JobType, LeafState, Mark, Placement
from ringleaf.model.settings import LeafChoice, Settings, SwitchMode
from ringleaf.model.spine import NOWHERE
from ringleaf.policies.chips import Ints
from ringleaf.policies.fit import (
    NOBODY,
    Barred,
    Request,
    eligible,
    node_ranks,
    of_right_product,
    reach,
    request_of,
)
from ringleaf.policies.gang import (
    Seat,
    cut_into,
    deal_blocks,
    switch_seats,
    whole_first,
)
from ringleaf.policies.superpods import Cut, Superpods, choose_parts, superpods_of
from ringleaf.policies.switches import (
    Ground,
    Row,
    Rows,
    arranged,
    ascending,
    fill,
    ground_of,
    on_shared,
    one_leaf,
    open_leaves,
    over_capacity,
)


class Level(StrEnum):
    """What may move: the failed pods, whole blocks of them, or the whole job."""

    PODS = "pods"
    BLOCKS = "blocks"
    JOB = "job"


def levels_of(job: Job) -> tuple[Level, ...]:
    """The levels that may be tried, in their order."""
    if job.previous is None:
        return (Level.JOB,)
    if job.previous.keep is Keep.PODS:
        return (Level.PODS,)
    if job.network is Network.SUPERPODS:
        return (Level.PODS, Level.BLOCKS, Level.JOB)
    return (Level.PODS, Level.JOB)


def survivors(cluster: Cluster, job: Job) -> Iterator[Placement]:
    """The placements of before that are still good, role by role.

    Node and chips are healthy and what the pod asks; every pod and every chip counts
    once. Where all pods were deleted, a pod that returns is new to its node, which must
    take it.
    """
    assert job.previous is not None
    past, back = job.previous, job.previous.keep is Keep.JOB
    claimed: dict[int, int] = {}
    for role, own in job.crew:
        request, pods = request_of(job, role), set(own)
        right = of_right_product(cluster, request) & cluster.ready
        room = np.full(len(cluster), len(past.placements))
        if back:
            right = eligible(cluster, request)
            room = cluster.fleet.pods_that_fit(request.demand).copy()
        for placement in past.placements:
            node = cluster.index.get(placement.node)
            if node is None or placement.node in past.failed_nodes:
                continue
            chips, taken = mask_of(placement.chips), claimed.get(node, 0)
            within = reach(cluster, request).item(node) & ~taken
            whole = chips.bit_count() == request.row.asked and chips & within == chips
            known = placement.replica in pods and right.item(node)
            if known and whole and room.item(node) > 0:
                pods.remove(placement.replica)
                room[node] -= 1
                claimed[node] = taken | chips
                yield placement


def kept_seats(cluster: Cluster, job: Job) -> list[Seat]:
    """The replicas that stay: healthy, and nobody else holds their chips."""
    kept = []
    for placement in survivors(cluster, job):
        node, chips = cluster.index[placement.node], mask_of(placement.chips)
        if cluster.free.item(node) & chips == chips:
            kept.append(seat_of(cluster, job, placement))
    return kept


def seat_of(cluster: Cluster, job: Job, placement: Placement) -> Seat:
    """The seat of a pod of *job* that stays where it is."""
    return Seat(
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


def barred_nodes(
    cluster: Cluster, job: Job, kept: Sequence[Seat], refused: Barred = NOBODY
) -> Barred:
    """The nodes no further pod with chips may use; *refused* are those of plugins."""
    if job.previous is None:
        return refused
    failed = job.previous.failed_nodes
    barred = {
        Reason.FAILED_BEFORE: [cluster.index[n] for n in failed if n in cluster.index],
        Reason.OWN_POD: [s.node for s in kept if job.network is not Network.NONE],
    }
    return {**refused, **{reason: nodes for reason, nodes in barred.items() if nodes}}


def without_pods(job: Job) -> Previous | None:
    """What is left of the past of *job* when all its pods are placed anew."""
    if job.previous is None:
        return None
    return Previous((), job.previous.failed_nodes, Keep.JOB)


def missing_replicas(replicas: Sequence[int], kept: Sequence[Seat]) -> list[int]:
    """Those of *replicas* that have no seat."""
    seated = {seat.replica for seat in kept}
    return [replica for replica in replicas if replica not in seated]


class Stay(Struct, frozen=True):
    """Where the pods that stay stand, as the switch rules see it.

    ``running``: they never went, so nobody can have taken a leaf that they cross.
    """

    leaves: Ints
    slots: Ints
    marks: Sequence[Mark]
    running: bool

    @property
    def home(self) -> Ints:
        """The leaves they are under."""
        return np.unique(self.leaves)

    @property
    def crosses(self) -> bool:
        """Whether they cross leaves now."""
        return self.running and len(self.home) > 1

    def home_in(self, state: LeafState) -> Ints:
        """The leaves of which their pods say *state*."""
        said = [mark.state is state for mark in self.marks]
        return np.unique(self.leaves[np.array(said, np.bool_)])


class Lineup(Struct, frozen=True):
    """The pods with chips that a job is to have, and those of them that stay.

    ``refused`` are nodes that plugins bar. ``grows`` says that pods may join that never
    ran before.
    """

    replicas: Sequence[int]
    kept: Sequence[Seat]
    refused: Barred = NOBODY
    grows: bool = False

    @property
    def missing(self) -> list[int]:
        """The replicas that want a seat."""
        return missing_replicas(self.replicas, self.kept)


def repaired_under_leaves(
    cluster: Cluster, request: Request, job: Job, settings: Settings, lineup: Lineup
) -> list[Seat] | None:
    """The kept replicas and new seats for the others, by the switch rule."""
    assert job.previous is not None
    kept, missing = list(lineup.kept), lineup.missing
    barred = barred_nodes(cluster, job, kept, lineup.refused)
    ranks = node_ranks(cluster, request, barred)
    if not kept:
        return switch_seats(cluster, job, settings, ranks, lineup.replicas)
    if not missing and job.previous.keep is Keep.PODS:
        return kept  # nothing was lost
    ground = ground_of(cluster, ranks, settings)
    for seats in (kept, _marked_anew(cluster, ground, kept, job)):
        stay = _stay(cluster, seats, job)
        rows = _replacements(ground, stay, len(missing), job, settings)
        if rows is not None:
            every = [*seats, *_assigned(cluster, ground, rows, job, missing)]
            return sorted(
                _remarked(cluster, ground, every, job, settings), key=_replica
            )
        if stay.running or settings.switch_mode is not SwitchMode.SPINE_LEAF_2:
            break
    return None


def _stay(cluster: Cluster, kept: Sequence[Seat], job: Job) -> Stay:
    assert job.previous is not None
    nodes = np.array([seat.node for seat in kept], np.int64)
    return Stay(
        leaves=cluster.leaf[nodes],
        slots=cluster.slot[nodes],
        marks=[seat.mark or NO_MARK for seat in kept],
        running=job.previous.keep is Keep.PODS,
    )


def _marked_anew(
    cluster: Cluster, ground: Ground, kept: Sequence[Seat], job: Job
) -> list[Seat]:
    """The seats with what their pods would say today, whatever they said before.

    A leaf that nobody else crosses is the job's alone, so that its budget for shared
    leaves is free again. Pods of a job inside one leaf have nothing to say.
    """
    found = []
    for seat in kept:
        leaf = cluster.leaf.item(seat.node)
        inside = (seat.mark or NO_MARK).state is LeafState.IDLE
        if inside or leaf == NOWHERE:
            return list(kept)
        alone = ground.state.item(leaf) == LeafState.IDLE
        state = LeafState.EXCLUSIVE if alone else LeafState.SHARED
        mark = Mark(job.job_type, state, not ground.sick.item(leaf))
        found.append(replace(seat, mark=mark))
    return found


def _replica(seat: Seat) -> int:
    return seat.replica


def _replacements(
    ground: Ground, stay: Stay, n: int, job: Job, settings: Settings
) -> Rows | None:
    if NOWHERE in stay.leaves:
        return None
    match settings.switch_mode:
        case SwitchMode.SINGLE_LAYER:
            return _at_home(ground, stay, n) if len(stay.home) == 1 else None
        case SwitchMode.SPINE_LEAF_1:
            return repair_1(ground, stay, n, job, settings)
        case _:
            return repair_2(ground, stay, n, job, settings.shared_leaves)


def _at_home(ground: Ground, stay: Stay, n: int) -> Rows | None:
    """*n* more nodes under the one leaf of the job."""
    own = np.zeros(len(ground.free), np.bool_)
    own[stay.home] = True
    return one_leaf(ground, n, own) if n else []


def repair_1(
    ground: Ground, stay: Stay, n: int, job: Job, settings: Settings
) -> Rows | None:
    """1.0: at home, else at the least used slots under leaves nobody else crosses."""
    assert job.job_type is not None
    inside = len(stay.home) == 1
    if inside and (rows := _at_home(ground, stay, n)) is not None:
        return rows
    # A leaf is open if nobody crosses it: more pods than it has nodes say so.
    never_inside = int(ground.free.max(initial=0)) + 1
    open_ = open_leaves(ground, never_inside, job.job_type, settings)
    if stay.crosses:
        open_[stay.home] = True
    if job.job_type is JobType.PADDING or not open_[stay.home].all():
        return None
    allowed = np.flatnonzero(open_[ground.leaf])
    if len(allowed) < n:
        return None
    # Whole leaves of different sizes load a slot as often as they have it (D36).
    wanted = [np.zeros(ground.leaf_size, np.int64)]
    if settings.leaf_choice is LeafChoice.COMPACT:
        wanted.insert(0, ground.slots_under(stay.home))
    for slots in wanted:
        at = least_used(ground, stay, n, allowed, slots)
        if is_even(ground, stay, at, settings.leaf_choice):
            break
    else:
        if job.job_type is JobType.FOUNDATION:
            return None
    return [Row(np.array([one])) for one in at.tolist()]


def is_even(ground: Ground, stay: Stay, at: Ints, choice: LeafChoice) -> bool:
    """Whether the job loads the slots within one of each other (D29).

    With leaves of different sizes only the leaves of the job that have a slot count for
    it (D36).
    """
    slots = np.concatenate([stay.slots, ground.slot[at]])
    load = np.bincount(slots, minlength=ground.leaf_size)
    if load.max() - load.min() <= 1:
        return True
    leaves = np.concatenate([stay.leaves, ground.leaf[at]])
    there = ground.slots_under(leaves)
    short = (there - load)[there > 0]
    return choice is LeafChoice.COMPACT and bool(short.max() - short.min() <= 1)


def least_used(ground: Ground, stay: Stay, n: int, allowed: Ints, wanted: Ints) -> Ints:
    """*n* of the *allowed* nodes, one by one at the slot with the lowest load (D29).

    *wanted* is how often each slot is to be loaded: what is missing counts.

    Of slots with the same load, and at one slot, leaves of the job first (D43); then
    the leaf with the fewest free nodes, the better node (D35), the order of leaves.
    """
    leaf = ground.leaf
    away = ~np.isin(leaf, stay.home)
    keys = (
        leaf[allowed],
        ground.rank[allowed],
        ground.free[leaf[allowed]],
        away[allowed],
    )
    order = np.lexsort(keys)
    queues: dict[int, list[int]] = {}
    for at in allowed[order][::-1].tolist():
        queues.setdefault(ground.slot.item(at), []).append(at)
    load = np.bincount(stay.slots, minlength=ground.leaf_size) - wanted
    chosen = []
    for _pod in range(n):
        first = {slot: queue[-1] for slot, queue in queues.items() if queue}
        slot = min(
            first,
            key=lambda s: (load[s], away.item(first[s]), ground.rank[first[s]], s),
        )
        chosen.append(queues[slot].pop())
        load[slot] += 1
    return np.array(chosen, np.int64)


def repair_2(ground: Ground, stay: Stay, n: int, job: Job, budget: int) -> Rows | None:
    """2.0: under the leaves it uses, else under idle and then shared ones."""
    exclusive = stay.home_in(LeafState.EXCLUSIVE)
    shared = stay.home_in(LeafState.SHARED)
    if not len(exclusive) and not len(shared):
        return _at_home(ground, stay, n) if len(stay.home) == 1 else None
    if _taken(ground, stay, job):
        return None
    rows, n = _used(ground, n, exclusive, LeafState.EXCLUSIVE)
    more, n = _used(ground, n, shared, LeafState.SHARED)
    rows += more
    if n == 0:
        return rows
    unused = _without(ground, stay.home)
    further = _further(unused, n, max(0, budget - len(shared)))
    # Beyond its budget a common job shares no leaf with a foundation job.
    common = job.job_type is JobType.COMMON
    if further is None and common and not ground.foundation[shared].any():
        further = over_capacity(unused, n)
    return None if further is None else rows + further


def _taken(ground: Ground, stay: Stay, job: Job) -> bool:
    """Whether somebody else crosses a leaf so that the job may not return to it.

    A common job may return wherever no foundation job crosses.
    """
    exclusive = stay.home_in(LeafState.EXCLUSIVE)
    if stay.running:
        others = ground.state[exclusive] != LeafState.IDLE
        return bool(not stay.crosses and others.any())
    shared = stay.home_in(LeafState.SHARED)
    if job.job_type is JobType.COMMON:
        exclusive = exclusive[ground.foundation[exclusive]]
        shared = shared[ground.foundation[shared]]
    taken = (ground.state[exclusive] != LeafState.IDLE).any()
    return bool(taken or (ground.state[shared] == LeafState.EXCLUSIVE).any())


def _used(ground: Ground, n: int, leaves: Ints, state: LeafState) -> tuple[Rows, int]:
    """Up to *n* nodes under leaves the job uses already, fewest free first."""
    order = leaves[np.argsort(ground.free[leaves], kind="stable")]
    return fill(ground, n, order, state)


def _without(ground: Ground, leaves: Ints) -> Ground:
    """The ground with no free nodes under *leaves*; the others stand where they did."""
    free = ground.free.copy()
    free[leaves] = 0
    return replace(ground, free=free)


def _further(ground: Ground, n: int, budget: int) -> Rows | None:
    """Nodes under idle leaves the job does not use yet, then under shared ones."""
    idle = arranged(ground, ascending(ground, ground.group(LeafState.IDLE)), n)
    rows: Rows = []
    for leaf in idle.tolist():
        free = ground.free.item(leaf)
        if free >= n:
            whole = free == n or not budget
            state = LeafState.EXCLUSIVE if whole else LeafState.SHARED
            return [*rows, Row(ground.under(leaf, n), state)]
        rows.append(Row(ground.under(leaf, free), LeafState.EXCLUSIVE))
        n -= free
    shared = ascending(ground, ground.group(LeafState.SHARED))
    if budget == 0 or ground.free[shared][-budget:].sum() < n:
        return None
    return rows + on_shared(ground, n, shared, budget)


def _assigned(
    cluster: Cluster, ground: Ground, rows: Rows, job: Job, missing: Sequence[int]
) -> Iterator[Seat]:
    """New nodes for the missing replicas; the slot a replica had, if there is one."""
    by_slot: dict[int, deque[Seat]] = {}
    for row in rows:
        mark = Mark(job.job_type, row.state, row.healthy)
        for at in row.at.tolist():
            seat = Seat(0, ground.nodes.item(at), mark=mark)
            by_slot.setdefault(ground.slot.item(at), deque()).append(seat)
    before = _slots_before(cluster, job)
    left = []
    for replica in missing:
        same = by_slot.get(before.get(replica, NOWHERE))
        if same:
            yield replace(same.popleft(), replica=replica)
        else:
            left.append(replica)
    rest = (seat for seats in by_slot.values() for seat in seats)
    for replica, seat in zip(left, rest, strict=True):
        yield replace(seat, replica=replica)


def _slots_before(cluster: Cluster, job: Job) -> Mapping[int, int]:
    assert job.previous is not None
    return {
        placement.replica: cluster.slot.item(cluster.index[placement.node])
        for placement in (*job.previous.lost, *job.previous.placements)
        if placement.node in cluster.index
    }


def _remarked(
    cluster: Cluster,
    ground: Ground,
    seats: Sequence[Seat],
    job: Job,
    settings: Settings,
) -> Iterator[Seat]:
    """What the pods say once the job is whole again.

    In 1.0 they say whether it crosses leaves (D13). In 2.0 a job inside one leaf says
    nothing, unless pods that never went have said more before; a leaf that was the
    job's alone and is not any more is shared beyond the budget.
    """
    assert job.previous is not None
    crosses = len({cluster.leaf.item(seat.node) for seat in seats}) > 1
    first = settings.switch_mode is SwitchMode.SPINE_LEAF_1
    back = job.previous.keep is Keep.JOB
    for seat in seats:
        mark = seat.mark or NO_MARK
        others = ground.state.item(cluster.leaf.item(seat.node)) != LeafState.IDLE
        if first or (back and not crosses):
            state = LeafState.EXCLUSIVE if crosses else LeafState.IDLE
            mark = Mark(job.job_type, state)
        elif back and others and mark.state is LeafState.EXCLUSIVE:
            mark = Mark(job.job_type, LeafState.SHARED, healthy=False)
        yield Seat(seat.replica, seat.node, seat.chips, mark=mark)


def repaired_in_superpods(
    cluster: Cluster,
    request: Request,
    job: Job,
    lineup: Lineup,
    cut: Cut,
    *,
    level: Level,
) -> list[Seat] | None:
    """The kept replicas and new seats for the others, block by block.

    A block that lost some of its pods is filled up in its SuperPoD; one that lost all
    of them is placed anew. At the level of blocks, one that cannot be filled up is
    placed anew as well.
    """
    kept = list(lineup.kept)
    while True:
        barred = barred_nodes(cluster, job, kept, lineup.refused)
        superpods = superpods_of(cluster, node_ranks(cluster, request, barred))
        repair = _Repair(cluster, superpods, _members(job, lineup, cut), kept)
        short = repair.short
        if not short:
            return repair.seats(cut, ended=bool(job.finished))
        if level is Level.PODS:
            return None
        kept = [seat for seat in kept if seat.block not in short]


def _members(job: Job, lineup: Lineup, cut: Cut) -> dict[int, list[int]]:
    """Block -> its replicas.

    Replicas that are new to a job that grows fill up its blocks and form new ones;
    where blocks may be split, they form new ones at once. Of a job with pods that have
    ended well they go into the blocks of their ranks, which are not all full any more.
    """
    assert job.previous is not None
    wanted = set(lineup.replicas)
    block = {
        p.replica: _block_of(job, p)
        for p in (*job.previous.lost, *job.previous.placements)
        if p.replica in wanted
    }
    members: dict[int, list[int]] = {}
    new = []
    grows = lineup.grows and (cut.soft or not job.finished)
    for replica in lineup.replicas:
        own = block.get(replica)
        if own is None and grows:
            new.append(replica)
            continue
        own = job.block_of(replica) if own is None else own
        members.setdefault(own, []).append(replica)
    for own in sorted(members) if not cut.soft else ():
        lost = max(0, cut.size - len(members[own]))
        members[own] += new[:lost]
        new = new[lost:]
    fresh = max(members, default=-1) + 1
    for place, replica in enumerate(new):
        members.setdefault(fresh + place // cut.size, []).append(replica)
    return dict(sorted(members.items()))


class _Repair:
    """The blocks of a job, those that stay and those that are placed anew."""

    def __init__(
        self,
        cluster: Cluster,
        superpods: Superpods,
        members: Mapping[int, list[int]],
        kept: Sequence[Seat],
    ) -> None:
        self._superpods, self._members = superpods, members
        self._kept = {seat.replica: seat for seat in kept}
        self._taken = dict.fromkeys(superpods.nodes, 0)
        self._filled: list[Seat] = []
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
            Seat(replica, node, block=block)
            for replica, node in zip(missing, chosen, strict=True)
        ]

    def seats(self, cut: Cut, *, ended: bool = False) -> list[Seat] | None:
        """Every replica's seat, or None where the moving blocks find no room.

        Pods of the job may have *ended* well: then not all blocks are full.
        """
        moving = {block: self._members[block] for block in self._moving}
        if ended and not cut.soft:
            moving = {block: moving[block] for block in whole_first(moving, cut.size)}
        replicas = [replica for own in moving.values() for replica in own]
        left = Superpods(
            {s: nodes[self._taken[s] :] for s, nodes in self._superpods.nodes.items()},
            self._superpods.ranks,
        )
        blocks, rest = divmod(len(replicas), cut.size)
        if cut.soft or not ended:
            if rest and not cut.soft:
                return None  # what pods said of their blocks does not add up
            moved = replace(cut, blocks=blocks, rests=(rest,) * (rest > 0))
        else:
            moved = cut_into(moving, cut)
        parts = choose_parts(left.free, moved, left.price) if replicas else []
        if parts is None:
            return None
        new = max(self._members) + 1
        ids = [*moving, *range(new, new + len(parts))]
        dealt = deal_blocks(left, zip(ids, parts, strict=False), replicas)
        return sorted([*self._kept.values(), *self._filled, *dealt], key=_replica)
