"""The PodGroups of gangs."""

from collections.abc import Iterable, Sequence

from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.quarantine import Culprit
from ringleaf.kube.repair_checkpoints import RepairCheckpoints
from ringleaf.kube.watch import Gone


class GangStore:
    """Stores PodGroups as reflectors tell of them.

    Args:
        state: What the stores of the cache share.
        checkpoints: The records of repairs that were read.
        isolation: Quarantines PodGroups that fail to be stored.

    """

    def __init__(
        self, state: CacheState, checkpoints: RepairCheckpoints, isolation: Isolation
    ) -> None:
        self._state, self._checkpoints = state, checkpoints
        self._isolation = isolation

    def on_update(self, podgroups: Iterable[PodGroup]) -> None:
        """Store PodGroups that are new or changed."""
        self._isolation.store_each("PodGroup", podgroups, self._store)

    def on_delete(self, gone: Sequence[Gone]) -> None:
        """Forget PodGroups that are gone."""
        self._checkpoints.on_podgroups_deleted(gone)
        for each in gone:
            self._isolation.forget("PodGroup", each)
            gang = self._state.gangs.get(each.key)
            if gang is not None:
                gang.podgroup = None
                self._state.deltas.gangs[gang.name] = None
            self._state.problems.forget("PodGroup", each.key)

    def _store(self, podgroup: PodGroup) -> None:
        gang = self._state.gang(podgroup.metadata.key)
        before, gang.podgroup = gang.podgroup, podgroup
        changed = before is None or not gang.pods or _differ(before, podgroup)
        if not changed and gang.reported.job is None and before is not None:
            # A job that ran, and of which Volcano has made some pods again, is admitted
            # anew once its phase says that it is pending: then come the others.
            changed = before.status.phase != podgroup.status.phase
        if changed:
            self._state.deltas.gangs[gang.name] = None
            self._isolation.changed(Culprit("Job", gang.name))
        self._checkpoints.take(gang, podgroup)


def _differ(one: PodGroup, other: PodGroup) -> bool:
    """Whether more than the status is another."""
    a, b = one.metadata, other.metadata
    same = a.labels == b.labels and a.annotations == b.annotations
    return not same or one.spec != other.spec
