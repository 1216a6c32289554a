"""What in the network holds a waiting job back, in the user's words.

Causes are asked in the order in which they bind: too few nodes at all, leaves that are
closed to the job, the shape that its rule wants.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ringleaf.model.arrays import Flags, Ints
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Reason
from ringleaf.model.job import Job
from ringleaf.model.job_labels import FOUNDATION_FROM, Network, Schema
from ringleaf.model.placement import JobType, LeafState
from ringleaf.model.settings import LeafChoice, Settings, SwitchMode
from ringleaf.policies.fit import REASONS, Excluded, Request, node_ranks, node_reasons
from ringleaf.policies.switches import (
    LeafTable,
    capacity_2,
    choose_slices,
    leaf_table,
    looks_for_one_leaf,
    open_leaves,
    positions_of,
    shape,
)
from ringleaf.policies.validation import is_legal
from ringleaf.policies.words import counted, need_words, some_of

MAX_TRIES = 64
"""Smaller jobs that are tried for a hint."""

MAX_NAMED = 5


class Obstacle(Struct, frozen=True):
    """Why the rule refuses, what would help, and the jobs in the way.

    ``others`` are jobs that may be placed instead, each with its words; ``needs`` says
    how many nodes more must be free.
    """

    because: str = ""
    ways: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    others: tuple[tuple[str, Job], ...] = ()
    needs: str = ""


def job_reasons(
    cluster: Cluster, request: Request, job: Job, settings: Settings, excluded: Excluded
) -> NDArray[np.int8]:
    """For every node ``FITS`` or why *job* cannot use it, closed leaves included."""
    reasons = node_reasons(cluster, request, excluded)
    if request.network is Network.SWITCHES:
        table = leaf_table(cluster, node_ranks(cluster, request, excluded), settings)
        closed = table.nodes[closed_leaves(table, job, settings)[table.leaf]]
        reasons[closed] = REASONS.index(Reason.LEAF_CLOSED)
    return reasons


def switch_obstacle(
    cluster: Cluster,
    request: Request,
    job: Job,
    settings: Settings,
    ranks: Ints,
    *,
    hints: bool = True,
) -> Obstacle:
    """What holds back a job that is placed by switch affinity; what helps, if asked."""
    assert job.job_type is not None
    if not cluster.leaves:
        return Obstacle(
            "no leaf switch is known",
            ("list the leaf of each node, or remove tor-affinity from the job",),
        )
    table = leaf_table(cluster, ranks, settings)
    closed = closed_leaves(table, job, settings)
    because = _rule_words(cluster, table, closed, job, settings)
    if not hints:
        return Obstacle(because)
    needs = ""
    short = job.min_chip_pods - len(table.nodes)
    if short > 0 and not stays_inside(job, settings):
        more = counted(short, "more node")
        needs = f"needs {more} with {need_words(request, names_node=False)}"
    ways = tuple(_smaller(table, job, settings))
    jobs = _crossing(cluster, closed.nonzero()[0].tolist())
    return Obstacle(because, ways, tuple(jobs), needs=needs)


def closed_leaves(table: LeafTable, job: Job, settings: Settings) -> Flags:
    """Leaves with fitting nodes that the rule forbids to this job."""
    assert job.job_type is not None
    none = np.zeros(len(table.fitting), np.bool_)
    if stays_inside(job, settings):
        return none
    if settings.switch_mode is SwitchMode.SPINE_LEAF_1:
        open_ = open_leaves(table, job.min_chip_pods, job.job_type, settings)
        return ~open_ & np.greater(table.fitting, 0)
    if job.job_type is JobType.COMMON:
        if job.min_chip_pods <= capacity_2(table, settings.shared_leaves):
            return none
        shared = table.group(LeafState.SHARED) | table.group(LeafState.EXCLUSIVE)
        crossed = shared & table.foundation
    else:
        crossed = table.unhealthy | table.group(LeafState.EXCLUSIVE)
    inside = np.greater_equal(table.fitting, job.min_chip_pods)
    if not looks_for_one_leaf(table, job.min_chip_pods, settings):
        inside = none
    return crossed & ~inside & np.greater(table.fitting, 0)


def stays_inside(job: Job, settings: Settings) -> bool:
    """Whether the job may use one leaf only."""
    single = settings.switch_mode is SwitchMode.SINGLE_LAYER
    return single or job.job_type is JobType.PADDING


def _closed_words(
    cluster: Cluster, table: LeafTable, closed: Flags, job: Job, settings: Settings
) -> str:
    """Which leaves are closed to the job, the jobs that close them, what is left."""
    common = job.job_type is JobType.COMMON
    second = settings.switch_mode is SwitchMode.SPINE_LEAF_2
    kind = "foundation job" if common and second else "job"
    parts = []
    (crossed,) = (closed & ~table.unhealthy).nonzero()
    if len(crossed):
        jobs = _crossing(cluster, crossed.tolist())
        several = "s" * (len(jobs) > 1)
        uses = (
            f"{kind}{several} {some_of(jobs, MAX_NAMED)}" if jobs else f"another {kind}"
        )
        verb = "cross" if several else "crosses"
        them = "it" if len(crossed) == 1 else "them"
        parts.append(f"{_closed(cluster, crossed)}: {uses} {verb} {them}")
    (sick,) = (closed & table.unhealthy).nonzero()
    if len(sick):
        are = "it is" if len(sick) == 1 else "they are"
        parts.append(f"{_closed(cluster, sick)}: {are} unhealthy")
    left = int(table.fitting[~closed].sum())
    nodes = counted(left, "free node")
    parts.append(f"open leaves have {nodes} of the {job.min_chip_pods} needed")
    if left >= job.min_chip_pods:
        parts.append(_open_words(table, closed, job, settings))
    return "; ".join(parts)


def _closed(cluster: Cluster, leaves: NDArray[np.intp]) -> str:
    """The names of *leaves*, and that they are closed."""
    names = some_of((cluster.leaves[leaf].name for leaf in leaves.tolist()), MAX_NAMED)
    one = len(leaves) == 1
    return f"leaf {names} is closed" if one else f"leaves {names} are closed"


def _crossing(cluster: Cluster, leaves: Sequence[int]) -> list[str]:
    crossings = cluster.uplinks.crossings()
    return sorted({job for leaf in leaves for job in crossings.get(leaf, ())})


def rule_name(mode: SwitchMode) -> str:
    """The switch affinity in force, for people."""
    single = mode is SwitchMode.SINGLE_LAYER
    return "single-layer leaf rule" if single else f"leaf rule {mode}"


def _rule_words(
    cluster: Cluster, table: LeafTable, closed: Flags, job: Job, settings: Settings
) -> str:
    """The rule that refuses; nothing where there are too few nodes for any rule."""
    if stays_inside(job, settings):
        words = _inside_words(cluster, table, job, settings)
    elif closed.any():
        words = _closed_words(cluster, table, closed, job, settings)
    elif len(table.nodes) < job.min_chip_pods:
        return ""
    else:
        words = _open_words(table, closed, job, settings)
    return f"{rule_name(settings.switch_mode)}: {words}"


def _open_words(table: LeafTable, closed: Flags, job: Job, settings: Settings) -> str:
    """Why the leaves that are not *closed* do not suffice, with enough nodes."""
    if settings.switch_mode is SwitchMode.SPINE_LEAF_2:
        return _budget_words(table, job, settings)
    return _slot_words(table, job, settings, ~closed)


def _inside_words(
    cluster: Cluster, table: LeafTable, job: Job, settings: Settings
) -> str:
    """The leaf that comes closest, for a job that stays under one leaf."""
    single = settings.switch_mode is SwitchMode.SINGLE_LAYER
    which = (
        "a job of a single-layer network"
        if single
        else f"a padding job (large-model-schema, below {FOUNDATION_FROM} pods)"
    )
    stays = f"{which} stays under one leaf"
    largest = int(table.size.max())
    if job.min_chip_pods > largest:
        return f"{stays}, and the largest leaf has {counted(largest, 'node')} only"
    most = int(table.fitting.argmax())
    has = counted(table.fitting.item(most), "free node")
    return (
        f"{stays}, and none has {counted(job.min_chip_pods, 'free node')}; "
        f"leaf {cluster.leaves[most].name} has the most, {has}"
    )


def _budget_words(table: LeafTable, job: Job, settings: Settings) -> str:
    """2.0: the idle leaves and the shared ones that the job may use are too few."""
    idle = int(table.fitting[table.group(LeafState.IDLE)].sum())
    budget = settings.shared_leaves
    best = "the best shared leaf" if budget == 1 else f"the {budget} best shared leaves"
    together = capacity_2(table, budget)
    return (
        f"idle leaves have {counted(idle, 'free node')} and {best} {together - idle}, "
        f"together {together} of the {job.min_chip_pods} needed"
    )


def _slot_words(table: LeafTable, job: Job, settings: Settings, open_: Flags) -> str:
    """1.0: neither whole leaves nor evenly loaded slots."""
    needs = slot_needs(table, job, open_)
    if job.min_chip_pods < table.leaf_size:
        slots = sum(free > 0 for _slot, free, _needed in needs)
        return (
            f"no {_open(open_)}leaf has {counted(job.min_chip_pods, 'free node')}, "
            f"and free nodes are at {slots} different slots only"
        )
    (slot, has, want), *more = [each for each in needs if each[1] < each[2]]
    also = f", {counted(len(more), 'more slot')} short too" if more else ""
    return (
        f"{_whole_words(table, job.min_chip_pods, settings, open_)}; spread evenly "
        f"over the slots, slot {slot} has {has} of the {counted(want, 'free node')} "
        f"needed{also}"
    )


def _open(open_: Flags) -> str:
    """The word before leaves where some are closed."""
    return "" if open_.all() else "open "


def slot_needs(table: LeafTable, job: Job, open_: Flags) -> list[tuple[int, int, int]]:
    """Slot, free nodes there under open leaves, nodes needed there, by slot (1.0).

    The slots with the most free nodes carry the nodes that are left over.
    """
    positions = positions_of(table, open_)
    full, rest = shape(job.min_chip_pods, table.leaf_size)
    needed = [full + 1] * rest + [full] * (table.leaf_size - rest)
    slots, free = positions.slots.tolist(), positions.lengths.tolist()
    return sorted(zip(slots, free, needed, strict=True))


def complete_leaves(table: LeafTable, settings: Settings) -> Flags:
    """The leaves of which all nodes are free; to the vendor's guide, as many as M."""
    compact = settings.leaf_choice is LeafChoice.COMPACT
    size = table.size if compact else np.full_like(table.size, table.leaf_size)
    return np.equal(table.fitting, size) & np.greater(table.fitting, 0)


def _whole_words(table: LeafTable, n: int, settings: Settings, open_: Flags) -> str:
    """How far complete leaves get with *n* nodes."""
    complete = complete_leaves(table, settings) & open_
    if settings.leaf_choice is not LeafChoice.COMPACT:
        full, _rest = shape(n, table.leaf_size)
        found = int(complete.sum())
        leaves = counted(full + 1, "complete leaf")
        return f"it needs {leaves}, there {'is' if found == 1 else 'are'} {found}"
    left = n
    for size in sorted(table.fitting[complete].tolist(), reverse=True):
        left -= size * (size <= left)
    if left == n:
        return f"no {_open(open_)}leaf is complete"
    return (
        f"complete leaves have {n - left} of the {n} nodes, and no other leaf has the "
        f"remaining {left}"
    )


def _passes(table: LeafTable, job: Job, settings: Settings) -> bool:
    assert job.job_type is not None
    return choose_slices(table, job.min_chip_pods, job.job_type, settings) is not None


def _smaller(table: LeafTable, job: Job, settings: Settings) -> Iterator[str]:
    """What would be placed now instead."""
    job = replace(
        job, replicas=job.min_chip_pods, min_available=None, roles=(), previous=None
    )
    job = replace(job, finished=())
    common = replace(job, tor_affinity=Schema.NORMAL)
    if job.tor_affinity is not Schema.NORMAL and _passes(table, common, settings):
        yield "with tor-affinity: normal-schema it would be placed now"
    for n in _fewer(job.replicas):
        fewer = replace(job, replicas=n)
        if is_legal(fewer, settings) and _passes(table, fewer, settings):
            yield f"{fewer.wanted} would be placed now"
            return


def _fewer(n: int) -> list[int]:
    """Smaller numbers, from close by to far away.

    >>> _fewer(5), _fewer(300)[62:]
    ([4, 3, 2, 1], [237, 236, 118, 59, 29, 14, 7, 3, 1])
    """
    near = list(range(n - 1, max(0, n - 1 - MAX_TRIES), -1))
    far = near[-1] if near else 0
    while far > 1:
        far //= 2
        near.append(far)
    return near
