"""What is remembered of repairs: the only place that writes it into the cache.

A record is a checkpoint: where the pods of a job were, and which of them are about to
be deleted. The leader before wrote it, and the engine hears of it; a leader writes its
own down itself (``RepairExecutor``).
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from ringleaf.engine.event import RepairKnown
from ringleaf.framework.job_state import NO_NAMES
from ringleaf.kube import names, records
from ringleaf.kube.cache_state import CacheState
from ringleaf.kube.gang_state import GangState, RepairState
from ringleaf.kube.isolation import Isolation
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.quarantine import Culprit
from ringleaf.kube.record_store import Stored
from ringleaf.kube.recovery import MAX_RETRIES
from ringleaf.kube.watch import Gone
from ringleaf.model.fault import Record

MOST_DELETED: Final = 4096
"""Pods of which it is believed that they were deleted, beside those that are there."""
OVER: Final = Record(since=0.0, is_over=True)
"""What there is to know of a repair whose record is gone."""


class RepairCheckpoints:
    """Records as they were read, by job.

    Args:
        state: What the stores of the cache share.
        isolation: Quarantines jobs whose records fail to be read.

    """

    def __init__(self, state: CacheState, isolation: Isolation) -> None:
        self._state, self._isolation = state, isolation
        self._stored: dict[tuple[str, str], str] = {}
        """Job and uid of its PodGroup -> the record of its repair, while that PodGroup
        was not heard of yet."""
        self.old: list[Stored] = []
        self.orphaned: list[Stored] = []

    # What a leader remembers.

    def set(self, job: str, record: Record | None) -> None:
        """What is remembered of the repair of *job*, which we write down ourselves."""
        gang = self._state.gangs.get(job)
        if gang is not None:
            is_open = record is not None and not record.is_over
            own = gang.repair.own_deletions if is_open else NO_NAMES
            gang.repair = RepairState(
                record, is_resumed=gang.repair.is_resumed, own_deletions=own
            )

    def set_retries(self, gang: GangState, record: Record) -> None:
        """Retries of a gang without a repair were counted as used."""
        gang.repair = replace(gang.repair, record=record)

    def mark_deletions(self, gang: GangState, pods: Iterable[PodState]) -> None:
        """Pods of a job are about to be deleted for its repair."""
        if gang.podgroup is not None:
            own = gang.repair.own_deletions | {pod.uid for pod in pods}
            gang.repair = replace(gang.repair, own_deletions=own)

    def mark_resumed(self, gang: GangState) -> None:
        """What the previous leader was about to delete is deleted again."""
        gang.repair = replace(gang.repair, is_resumed=True)

    def drop_deletions(self, gang: GangState) -> None:
        """What the previous leader was about to delete stays."""
        if gang.repair.deleting:
            gang.repair = replace(gang.repair, deleting=NO_NAMES)

    def drop_own_deletions(self) -> None:
        """Others lead: what is deleted is theirs to say."""
        for gang in self._state.gangs.values():
            if gang.repair.own_deletions:
                gang.repair = replace(gang.repair, own_deletions=NO_NAMES)

    def on_podgroups_deleted(self, gone: Iterable[Gone]) -> None:
        """PodGroups are gone, and the repairs of their gangs with them."""
        for each in gone:
            gang = self._state.gangs.get(each.key)
            if gang is not None:
                if gang.repair.record is not None:
                    self.orphaned.append(Stored(gang.name, each.uid, ""))
                gang.repair = replace(gang.repair, record=None, deleting=NO_NAMES)

    # Read by the repair executor.

    def take_old(self) -> list[Stored]:
        """Records that are on PodGroups, as they were written before, to be moved."""
        old, self.old = self.old, []
        return old

    def take_orphaned(self) -> list[Stored]:
        """Records whose PodGroup is gone; the leader removes them."""
        orphaned, self.orphaned = self.orphaned, []
        return orphaned

    # What was read.

    def put(self, found: Iterable[Stored], *, moves: bool = False) -> None:
        """Replace what is known of repairs by all records that a leader has written.

        If it *moves*, records that are on PodGroups count as well.
        """
        self._stored = {(each.job, each.uid): each.text for each in found}
        self.old = list(self._on_podgroups()) if moves else []
        self._stored |= {(old.job, old.uid): old.text for old in self.old}
        for gang in self._state.gangs.values():
            podgroup, known = gang.podgroup, gang.repair.record
            if podgroup is None or self._has_record(gang, podgroup):
                continue
            if known is not None and not known.is_over:
                self._forget(gang)
                self._state.deltas.gangs[gang.name] = None

    def take(self, gang: GangState, podgroup: PodGroup) -> bool:
        """Take over the record of a gang; whether there is one that was not read."""
        text = self._stored.pop((gang.name, podgroup.metadata.uid), None)
        if text is None:
            return False
        found, deltas = "", self._state.deltas
        if records.writer_of(text) in ("", *self._state.schedulers):
            try:
                record = records.read(text)
            except records.BadRecord as error:
                found = f"the record of its repair {error}"
            else:
                gang.repair = RepairState(record, records.doomed_in(text))
                deltas.repairs[gang.name] = deltas.gangs[gang.name] = None
        self._state.problems.note_podgroup(podgroup, found, "repair")
        return True

    def forget(self, gang: GangState, *, is_open: bool) -> None:
        """Forget a repair: records are read again before we lead."""
        if is_open or gang.repair.record is not None:
            self._forget(gang)

    def _forget(self, gang: GangState) -> None:
        gang.repair = replace(gang.repair, record=None, deleting=NO_NAMES)
        self._state.deltas.repairs[gang.name] = None

    def _has_record(self, gang: GangState, podgroup: PodGroup) -> bool:
        """Like ``take``; a record that fails to be read quarantines its job."""
        try:
            return self.take(gang, podgroup)
        except Exception as error:  # noqa: BLE001 - one bad record stops no other
            self._isolation.set_aside([Culprit("Job", gang.name)], error)
            return True

    def _on_podgroups(self) -> Iterator[Stored]:
        """Records that are on PodGroups of which there is no other record."""
        for gang in self._state.gangs.values():
            if gang.podgroup is not None:
                meta = gang.podgroup.metadata
                text = (meta.annotations or {}).get(names.REPAIR, "")
                is_ours = records.writer_of(text) in ("", *self._state.schedulers)
                if text and is_ours and (gang.name, meta.uid) not in self._stored:
                    yield Stored(gang.name, meta.uid, text)

    # What the engine hears.

    def changes(self, now: float) -> Iterator[RepairKnown]:
        """The records that were read since the last time, or are gone."""
        deltas = self._state.deltas
        marked, deltas.repairs = deltas.repairs, {}
        for gang in filter(None, map(self._state.gangs.get, marked)):
            if self._may_be_repaired(gang, now):
                yield _repair_known(gang, gang.repair.record or OVER, now)

    def everything(self, gang: GangState, now: float) -> Iterator[RepairKnown]:
        """The record of a gang, if there is one."""
        record = gang.repair.record
        if record is not None and self._may_be_repaired(gang, now):
            yield _repair_known(gang, record, now)

    def _may_be_repaired(self, gang: GangState, now: float) -> bool:
        """Whether the engine hears of a repair: not of a job in quarantine."""
        quarantined = self._isolation.reason(gang, now) is not None
        return not (quarantined or gang.status.outside_canary)


def _repair_known(gang: GangState, record: Record, now: float) -> RepairKnown:
    """What the engine hears of the repair of a gang, and remembers."""
    gang.reported.is_retained = True
    return RepairKnown(gang.name, _sound(record, now, len(gang.pods)))


def _sound(record: Record, now: float, n_pods: int) -> Record:
    """*record* as the engine takes it, which another version may have written.

    Nothing lies in the future, and nothing before 1970: clocks differ. What was deleted
    was deleted sometime. Of more pods than a job may have had, the first count: all
    that is remembered is looked at in every cycle.
    """
    since, deleted_at = _past(record.since, now), record.deleted_at
    if record.deleted and deleted_at is None:
        deleted_at = since
    most = MOST_DELETED + n_pods
    deleted, placements = record.deleted[:most], record.placements
    if len(placements) > most:  # successors return to where those were
        gone = {*deleted}
        placements = (*sorted(placements, key=lambda p: p.replica not in gone)[:most],)
    return replace(
        record,
        since=since,
        pod_faults=record.pod_faults[:most],
        placements=placements,
        deleted=deleted,
        deleted_at=None if deleted_at is None else _past(deleted_at, now),
        stuck_at=None if record.stuck_at is None else _past(record.stuck_at, now),
        retries_used=min(max(0, record.retries_used), MAX_RETRIES),
    )


def _past(moment: float, now: float) -> float:
    return max(0.0, min(moment, now))
