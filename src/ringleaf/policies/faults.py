"""Which pods are faulty, why, and how much of their job is deleted because of it.

Sources: the vendor's fault handling (labels, first cause that applies, pods that
are deleted); "Rescheduling Upon Faults"; decision D17.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from ringleaf.model.cluster import Node
from ringleaf.model.fault import (
    Cause,
    Down,
    FaultMode,
    Recovery,
    RestartScope,
    SubHealth,
)
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import Placement


def _is_reported(node: Node) -> bool:
    """Whether a daemon says of a node that it is unhealthy."""
    return not node.ready and node.down in (Down.DAEMON, Down.SWITCH)


def _is_weak(
    node: Node | None, chips: int, own: Collection[Cause], recovery: Recovery
) -> bool:
    """Whether a pod is on what works, but not well, and its job minds.

    A pod that is switched while hot is moved when its own label asks for it.
    """
    if recovery.sub_health is SubHealth.IGNORE:
        return False
    if Cause.SUB_HEALTH in own:
        return True
    if recovery.sub_health is SubHealth.HOT_SWITCH or node is None:
        return False
    return node.weak_switch or bool(node.weak & chips)


Test = Callable[[Node | None, int, Collection[Cause], Recovery], bool]
"""Whether a pod is faulty: its node, its chips, what is wrong with it, what it wants.
"""

CAUSES: Final[tuple[tuple[Cause, Test], ...]] = (
    (Cause.NODE, lambda n, _c, _own, _r: n is not None and _is_reported(n)),
    (
        Cause.CHIP,
        lambda n, chips, _own, _r: n is not None and bool(n.unhealthy & chips),
    ),
    (Cause.NODE, lambda n, _c, own, _r: n is None or not n.ready or Cause.NODE in own),
    (Cause.POD, lambda _n, _c, own, _r: Cause.POD in own),
    (Cause.RELATION, lambda _n, _c, own, _r: Cause.RELATION in own),
    (Cause.SUB_HEALTH, _is_weak),
)
"""What makes a pod faulty, in the order in which it is asked; the first counts."""


def cause_of(
    node: Node | None, placement: Placement, own: Collection[Cause], recovery: Recovery
) -> Cause | None:
    """Why the pod at *placement* is faulty; None where it is not.

    *own* is what is wrong with the pod itself; *node* is None where it is gone.
    """
    if not own and node is not None and not is_sick(node):
        return None
    chips = mask_of(placement.chips)
    found = (cause for cause, test in CAUSES if test(node, chips, own, recovery))
    return next(found, None)


def first_cause(causes: Collection[Cause]) -> Cause:
    """The cause that counts of several; of a job of which nothing else is known, one.

    >>> first_cause({Cause.POD, Cause.CHIP})
    <Cause.CHIP: 'CardUnhealthy'>
    """
    return min(causes, key=tuple(Cause).index, default=Cause.NODE)


def is_sick(node: Node) -> bool:
    """Whether pods on *node* may be faulty because of it."""
    return bool(not node.ready or node.unhealthy or node.weak or node.weak_switch)


def first_scope(recovery: Recovery, faulty: Collection[int]) -> RestartScope:
    """How much of a job is deleted at first when these pods are *faulty*."""
    if not recovery.escalates:
        return RestartScope.POD
    if not (recovery.pods_only or recovery.process) or recovery.master in faulty:
        return RestartScope.JOB
    return RestartScope.POD


def next_scope(job: Job, scope: RestartScope) -> RestartScope | None:
    """How much is deleted when the pods of a job find no place; None: no more."""
    if not job.recovery.escalates or scope is RestartScope.JOB:
        return None
    blocks = job.network is Network.SUPERPODS and job.n_blocks > 1
    return (
        RestartScope.BLOCK if blocks and scope is RestartScope.POD else RestartScope.JOB
    )


def pods_to_delete(
    scope: RestartScope, faulty: Collection[int], placements: Mapping[int, Placement]
) -> set[int]:
    """The pods that are deleted, of those that are at *placements*."""
    if scope is RestartScope.JOB:
        return {*placements, *faulty}
    if scope is RestartScope.POD:
        return {*faulty}
    blocks = {placements[n].block for n in faulty if n in placements} - {None}
    return {n for n, p in placements.items() if p.block in blocks} | {*faulty}


def is_forced(recovery: Recovery, causes: Collection[Cause]) -> bool:
    """Whether pods are deleted without their grace period.

    Where all that is wrong is that something does not work well, the job says how.
    """
    if {*causes} == {Cause.SUB_HEALTH}:
        return recovery.sub_health is not SubHealth.GRACE_EXIT
    return recovery.mode is FaultMode.FORCE


def asks_first(recovery: Recovery, causes: Collection[Cause]) -> bool:
    """Whether processes are asked to end by themselves before anything is deleted."""
    only = {*causes} == {Cause.SUB_HEALTH}
    return only and recovery.sub_health is SubHealth.GRACE_EXIT
