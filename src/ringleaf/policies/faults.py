"""Which pods are faulty, why, and how much of their job is deleted because of it.

Sources: the vendor's fault handling (labels, first cause that applies, pods that
are deleted); "Rescheduling Upon Faults"; decision D17.
"""

from collections.abc import Collection, Mapping
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


def _is_unhealthy_by_daemon(node: Node) -> bool:
    """Whether a daemon says of a node that it is unhealthy."""
    return not node.ready and node.down in (Down.DAEMON, Down.SWITCH)


def _is_weak(
    node: Node, chips: int, own: Collection[Cause], recovery: Recovery
) -> bool:
    """Whether a pod is on sub-healthy hardware, and its job does not ignore that.

    With ``hotSwitch`` it counts only if the pod's own label reports it.
    """
    if recovery.sub_health is SubHealth.IGNORE:
        return False
    if Cause.SUB_HEALTH in own:
        return True
    if recovery.sub_health is SubHealth.HOT_SWITCH:
        return False
    return node.weak_switch or bool(node.weak & chips)


FAULT_CAUSES: Final = (
    *(Cause.NODE, Cause.CHIP, Cause.POD, Cause.RELATION, Cause.SUB_HEALTH),
)
"""What can make a pod faulty."""


def cause_of(
    node: Node | None, placement: Placement, own: Collection[Cause], recovery: Recovery
) -> Cause | None:
    """Why the pod at *placement* is faulty, the first cause that applies; else None.

    *own* is what is wrong with the pod itself; *node* is None where it is gone.
    """
    if not own and node is not None and not may_fail_pods(node):
        return None
    chips = mask_of(placement.chips)
    if node is not None and _is_unhealthy_by_daemon(node):
        return Cause.NODE
    if node is not None and node.unhealthy & chips:
        return Cause.CHIP
    if node is None or not node.ready or Cause.NODE in own:
        return Cause.NODE
    for cause in (Cause.POD, Cause.RELATION):
        if cause in own:
            return cause
    is_weak = _is_weak(node, chips, own, recovery)
    return Cause.SUB_HEALTH if is_weak else None


def first_cause(causes: Collection[Cause]) -> Cause:
    """The cause that counts of several; ``NODE`` if none is known.

    >>> first_cause({Cause.POD, Cause.CHIP})
    <Cause.CHIP: 'CardUnhealthy'>
    """
    return min(causes, key=tuple(Cause).index, default=Cause.NODE)


def may_fail_pods(node: Node) -> bool:
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


def requests_exit_first(recovery: Recovery, causes: Collection[Cause]) -> bool:
    """Whether processes are asked to end by themselves before anything is deleted."""
    only = {*causes} == {Cause.SUB_HEALTH}
    return only and recovery.sub_health is SubHealth.GRACE_EXIT
