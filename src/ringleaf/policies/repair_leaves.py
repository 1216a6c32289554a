"""Replacements under leaf switches: pods that stay, and new nodes for the others."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job
from ringleaf.model.placement import NO_MARK, JobType, LeafAnnotation, LeafState
from ringleaf.model.settings import LeafChoice, Settings, SwitchMode
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.fit import Request, node_ranks
from ringleaf.policies.gang import NodeAssignment, switch_assignments
from ringleaf.policies.repair import GangRequest, excluded_nodes
from ringleaf.policies.switches import (
    LeafSlice,
    LeafSlices,
    LeafTable,
    arranged,
    ascending,
    fill,
    leaf_table,
    on_shared,
    one_leaf,
    open_leaves,
    over_capacity,
)


class Stay(Struct, frozen=True):
    """Where the pods that stay stand, as the switch rules see it.

    ``running``: they never went, so no job can have taken a leaf that they cross.
    """

    leaves: Ints
    slots: Ints
    marks: Sequence[LeafAnnotation]
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


def repaired_under_leaves(
    cluster: Cluster,
    request: Request,
    job: Job,
    settings: Settings,
    gang: GangRequest,
) -> list[NodeAssignment] | None:
    """The kept replicas and new assignments for the others, by the switch rule."""
    assert job.previous is not None
    kept, missing = list(gang.kept), gang.missing
    excluded = excluded_nodes(cluster, job, kept, gang.refused)
    ranks = node_ranks(cluster, request, excluded)
    if not kept:
        return switch_assignments(cluster, job, settings, ranks, gang.replicas)
    if not missing and job.previous.scope is RestartScope.POD:
        return kept  # nothing was lost
    table = leaf_table(cluster, ranks, settings)
    for assignments in (kept, _marked_anew(cluster, table, kept, job)):
        stay = _stay(cluster, assignments, job)
        slices = _replacements(table, stay, len(missing), job, settings)
        if slices is not None:
            every = [*assignments, *_assigned(cluster, table, slices, job, missing)]
            return sorted(_remarked(cluster, table, every, job, settings), key=_replica)
        if stay.running or settings.switch_mode is not SwitchMode.SPINE_LEAF_2:
            break
    return None


def _stay(cluster: Cluster, kept: Sequence[NodeAssignment], job: Job) -> Stay:
    assert job.previous is not None
    nodes = np.array([assignment.node for assignment in kept], np.int64)
    return Stay(
        leaves=cluster.leaf[nodes],
        slots=cluster.slot[nodes],
        marks=[assignment.mark or NO_MARK for assignment in kept],
        running=job.previous.scope is RestartScope.POD,
    )


def _marked_anew(
    cluster: Cluster, table: LeafTable, kept: Sequence[NodeAssignment], job: Job
) -> list[NodeAssignment]:
    """The assignments with what their pods would say today, whatever they said before.

    A leaf that no other job crosses is the job's alone, so that its budget for shared
    leaves is free again. Pods of a job inside one leaf have nothing to say.
    """
    found = []
    for assignment in kept:
        leaf = cluster.leaf.item(assignment.node)
        inside = (assignment.mark or NO_MARK).state is LeafState.IDLE
        if inside or leaf == NOWHERE:
            return list(kept)
        alone = table.state.item(leaf) == LeafState.IDLE
        state = LeafState.EXCLUSIVE if alone else LeafState.SHARED
        mark = LeafAnnotation(job.job_type, state, not table.unhealthy.item(leaf))
        found.append(replace(assignment, mark=mark))
    return found


def _replica(assignment: NodeAssignment) -> int:
    return assignment.replica


def _replacements(
    table: LeafTable, stay: Stay, n: int, job: Job, settings: Settings
) -> LeafSlices | None:
    if NOWHERE in stay.leaves:
        return None
    match settings.switch_mode:
        case SwitchMode.SINGLE_LAYER:
            return _at_home(table, stay, n) if len(stay.home) == 1 else None
        case SwitchMode.SPINE_LEAF_1:
            return repair_1(table, stay, n, job, settings)
        case _:
            return repair_2(table, stay, n, job, settings.shared_leaves)


def _at_home(table: LeafTable, stay: Stay, n: int) -> LeafSlices | None:
    """*n* more nodes under the one leaf of the job."""
    own = np.zeros(len(table.fitting), np.bool_)
    own[stay.home] = True
    return one_leaf(table, n, own) if n else []


def repair_1(
    table: LeafTable, stay: Stay, n: int, job: Job, settings: Settings
) -> LeafSlices | None:
    """1.0: at home, else at the least used slots under leaves no other job crosses."""
    assert job.job_type is not None
    inside = len(stay.home) == 1
    if inside and (slices := _at_home(table, stay, n)) is not None:
        return slices
    # A leaf is open if no job crosses it: more pods than it has nodes say so.
    never_inside = int(table.fitting.max(initial=0)) + 1
    open_ = open_leaves(table, never_inside, job.job_type, settings)
    if stay.crosses:
        open_[stay.home] = True
    if job.job_type is JobType.PADDING or not open_[stay.home].all():
        return None
    allowed = np.flatnonzero(open_[table.leaf])
    if len(allowed) < n:
        return None
    # Whole leaves of different sizes load a slot as often as they have it (D36).
    wanted = [np.zeros(table.leaf_size, np.int64)]
    if settings.leaf_choice is LeafChoice.COMPACT:
        wanted.insert(0, table.slots_under(stay.home))
    for slots in wanted:
        at = least_used(table, stay, n, allowed, slots)
        if is_even(table, stay, at, settings.leaf_choice):
            break
    else:
        if job.job_type is JobType.FOUNDATION:
            return None
    at = brought_home(table, stay, at, allowed, settings.leaf_choice)
    return [LeafSlice(np.array([one])) for one in at.tolist()]


def is_even(table: LeafTable, stay: Stay, at: Ints, choice: LeafChoice) -> bool:
    """Whether the job loads the slots within one of each other (D29).

    With leaves of different sizes only the leaves of the job that have a slot count for
    it (D36).
    """
    slots = np.concatenate([stay.slots, table.slot[at]])
    load = np.bincount(slots, minlength=table.leaf_size)
    if load.max() - load.min() <= 1:
        return True
    leaves = np.concatenate([stay.leaves, table.leaf[at]])
    there = table.slots_under(leaves)
    short = (there - load)[there > 0]
    return choice is LeafChoice.COMPACT and bool(short.max() - short.min() <= 1)


def least_used(
    table: LeafTable, stay: Stay, n: int, allowed: Ints, wanted: Ints
) -> Ints:
    """*n* of the *allowed* nodes, one by one at the slot with the lowest load (D29).

    *wanted* is how often each slot is to be loaded: what is missing counts.

    Of slots with the same load, and at one slot, leaves of the job first (D43); then
    the leaf with the fewest free nodes, the better node (D35), the order of leaves.
    """
    leaf = table.leaf
    away = ~np.isin(leaf, stay.home)
    keys = (
        leaf[allowed],
        table.rank[allowed],
        table.fitting[leaf[allowed]],
        away[allowed],
    )
    order = np.lexsort(keys)
    queues: dict[int, list[int]] = {}
    for at in allowed[order][::-1].tolist():
        queues.setdefault(table.slot.item(at), []).append(at)
    load = np.bincount(stay.slots, minlength=table.leaf_size) - wanted
    chosen = []
    for _pod in range(n):
        first = {slot: queue[-1] for slot, queue in queues.items() if queue}
        slot = min(
            first,
            key=lambda s: (load[s], away.item(first[s]), table.rank[first[s]], s),
        )
        chosen.append(queues[slot].pop())
        load[slot] += 1
    return np.array(chosen, np.int64)


def brought_home(
    table: LeafTable, stay: Stay, at: Ints, allowed: Ints, choice: LeafChoice
) -> Ints:
    """*at* with nodes at home for nodes away, as long as the slots stay even (D43).

    Leaves of one size need none of it: there the least used slots say it all. Of leaves
    of different sizes two sets may be even, each in another way (D36).
    """
    if choice is not LeafChoice.COMPACT or not np.ptp(table.size):
        return at
    leaf = table.leaf
    home = allowed[np.isin(leaf[allowed], stay.home)]
    home = home[np.lexsort((table.rank[home], table.fitting[leaf[home]]))]

    def swapped(at: Ints) -> Ints | None:
        unused = home[~np.isin(home, at)]
        _slots, first = np.unique(table.slot[unused], return_index=True)
        for gone in at[~np.isin(at, home)].tolist():
            for instead in unused[np.sort(first)].tolist():
                others = np.where(at == gone, instead, at)
                if is_even(table, stay, others, choice):
                    return others
        return None

    while (better := swapped(at)) is not None:
        at = better
    return at


def repair_2(
    table: LeafTable, stay: Stay, n: int, job: Job, budget: int
) -> LeafSlices | None:
    """2.0: under the leaves it uses, else under idle and then shared ones."""
    exclusive = stay.home_in(LeafState.EXCLUSIVE)
    shared = stay.home_in(LeafState.SHARED)
    if not len(exclusive) and not len(shared):
        return _at_home(table, stay, n) if len(stay.home) == 1 else None
    if _taken(table, stay, job):
        return None
    slices, n = _used(table, n, exclusive, LeafState.EXCLUSIVE)
    more, n = _used(table, n, shared, LeafState.SHARED)
    slices += more
    if n == 0:
        return slices
    unused = _without(table, stay.home)
    further = _further(unused, n, max(0, budget - len(shared)))
    # Beyond its budget a common job shares no leaf with a foundation job.
    common = job.job_type is JobType.COMMON
    if further is None and common and not table.foundation[shared].any():
        further = over_capacity(unused, n)
    return None if further is None else slices + further


def _taken(table: LeafTable, stay: Stay, job: Job) -> bool:
    """Whether another job crosses a leaf so that the job may not return to it.

    A common job may return wherever no foundation job crosses.
    """
    exclusive = stay.home_in(LeafState.EXCLUSIVE)
    if stay.running:
        others = table.state[exclusive] != LeafState.IDLE
        return bool(not stay.crosses and others.any())
    shared = stay.home_in(LeafState.SHARED)
    if job.job_type is JobType.COMMON:
        exclusive = exclusive[table.foundation[exclusive]]
        shared = shared[table.foundation[shared]]
    taken = (table.state[exclusive] != LeafState.IDLE).any()
    return bool(taken or (table.state[shared] == LeafState.EXCLUSIVE).any())


def _used(
    table: LeafTable, n: int, leaves: Ints, state: LeafState
) -> tuple[LeafSlices, int]:
    """Up to *n* nodes under leaves the job uses already, fewest free first."""
    order = leaves[np.argsort(table.fitting[leaves], kind="stable")]
    return fill(table, n, order, state)


def _without(table: LeafTable, leaves: Ints) -> LeafTable:
    """The table with no free nodes under *leaves*; the others stand where they did."""
    free = table.fitting.copy()
    free[leaves] = 0
    return replace(table, fitting=free)


def _further(table: LeafTable, n: int, budget: int) -> LeafSlices | None:
    """Nodes under idle leaves the job does not use yet, then under shared ones."""
    idle = arranged(table, ascending(table, table.group(LeafState.IDLE)), n)
    slices: LeafSlices = []
    for leaf in idle.tolist():
        free = table.fitting.item(leaf)
        if free >= n:
            whole = free == n or not budget
            state = LeafState.EXCLUSIVE if whole else LeafState.SHARED
            return [*slices, LeafSlice(table.under(leaf, n), state)]
        slices.append(LeafSlice(table.under(leaf, free), LeafState.EXCLUSIVE))
        n -= free
    shared = ascending(table, table.group(LeafState.SHARED))
    if budget == 0 or table.fitting[shared][-budget:].sum() < n:
        return None
    return slices + on_shared(table, n, shared, budget)


def _assigned(
    cluster: Cluster,
    table: LeafTable,
    slices: LeafSlices,
    job: Job,
    missing: Sequence[int],
) -> Iterator[NodeAssignment]:
    """New nodes for the missing replicas; the slot a replica had, if there is one."""
    by_slot: dict[int, deque[NodeAssignment]] = {}
    for each in slices:
        mark = LeafAnnotation(job.job_type, each.state, each.healthy)
        for at in each.at.tolist():
            assignment = NodeAssignment(0, table.nodes.item(at), mark=mark)
            by_slot.setdefault(table.slot.item(at), deque()).append(assignment)
    before = _slots_before(cluster, job)
    left = []
    for replica in missing:
        same = by_slot.get(before.get(replica, NOWHERE))
        if same:
            yield replace(same.popleft(), replica=replica)
        else:
            left.append(replica)
    rest = (each for several in by_slot.values() for each in several)
    for replica, assignment in zip(left, rest, strict=True):
        yield replace(assignment, replica=replica)


def _slots_before(cluster: Cluster, job: Job) -> Mapping[int, int]:
    assert job.previous is not None
    return {
        placement.replica: cluster.slot.item(cluster.index[placement.node])
        for placement in (*job.previous.lost, *job.previous.placements)
        if placement.node in cluster.index
    }


def _remarked(
    cluster: Cluster,
    table: LeafTable,
    assignments: Sequence[NodeAssignment],
    job: Job,
    settings: Settings,
) -> Iterator[NodeAssignment]:
    """What the pods say once the job is whole again.

    In 1.0 they say whether it crosses leaves (D13). In 2.0 a job inside one leaf says
    nothing, unless pods that never went have said more before; a leaf that was the
    job's alone and is not any more is shared beyond the budget.
    """
    assert job.previous is not None
    crosses = len({cluster.leaf.item(each.node) for each in assignments}) > 1
    first = settings.switch_mode is SwitchMode.SPINE_LEAF_1
    back = job.previous.scope is RestartScope.JOB
    for assignment in assignments:
        mark = assignment.mark or NO_MARK
        others = table.state.item(cluster.leaf.item(assignment.node)) != LeafState.IDLE
        if first or (back and not crosses):
            state = LeafState.EXCLUSIVE if crosses else LeafState.IDLE
            mark = LeafAnnotation(job.job_type, state)
        elif back and others and mark.state is LeafState.EXCLUSIVE:
            mark = LeafAnnotation(job.job_type, LeafState.SHARED, healthy=False)
        yield NodeAssignment(
            assignment.replica, assignment.node, assignment.chips, mark=mark
        )
