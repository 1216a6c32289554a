"""What pods say of their leaf when it is not written on them.

Of the jobs with a ``tor-affinity`` label, one that crosses a leaf has it for itself,
two or more share it; a shared leaf is unhealthy when one of them uses more shared
leaves than it may. In 1.0 a job that crosses leaves has them for itself (D13).
"""

from collections import Counter
from collections.abc import Mapping

from ringleaf.model.placement import LeafAnnotation, LeafState
from ringleaf.model.settings import Settings, SwitchMode

LeavesOfJob = frozenset[str | None]
"""Leaves by name; None is outside every leaf."""


def implied_marks(
    crossing: Mapping[str, LeavesOfJob], settings: Settings
) -> dict[str | None, LeafAnnotation]:
    """Leaf -> what pods of jobs that cross it say; *crossing* is job -> its leaves.

    >>> jobs = {"a": frozenset({"L1", "L2"}), "b": frozenset({"L2", "L3"})}
    >>> two = Settings(switch_mode=SwitchMode.SPINE_LEAF_2)
    >>> marks = implied_marks(jobs, two)
    >>> [marks[leaf].state.name for leaf in ("L1", "L2", "L3")]
    ['EXCLUSIVE', 'SHARED', 'EXCLUSIVE']
    """
    count = Counter(leaf for leaves in crossing.values() for leaf in leaves)
    if settings.switch_mode is not SwitchMode.SPINE_LEAF_2:
        return dict.fromkeys(count, LeafAnnotation(state=LeafState.EXCLUSIVE))
    shared = {leaf for leaf in count if count[leaf] > 1}
    sick: set[str | None] = set()
    for leaves in crossing.values():
        if len(leaves & shared) > settings.shared_leaves:
            sick |= leaves & shared
    return {
        leaf: LeafAnnotation(
            state=LeafState.SHARED if leaf in shared else LeafState.EXCLUSIVE,
            healthy=leaf not in sick,
        )
        for leaf in count
    }
