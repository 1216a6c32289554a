"""What the engine instructs because of faults: remember first, then delete.

The instructions of a job are carried out in their order, one job beside the other. The
record of a repair is written before a pod is deleted because of it, so that the
next leader knows where the pods were. Where the PodGroup is gone, nothing is
deleted, and the record is removed; where it cannot be written, it is tried for ever.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

from ringleaf.framework.instruction import (
    AskToExit,
    Delete,
    PersistRepair,
    Repaired,
    ReportFaultyPods,
)
from ringleaf.kube import encode, names, records
from ringleaf.kube.answers import INVALID, Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.binder import Binder
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.fault_store import FaultStore
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.log_once import LogOnce
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.record_store import RecordStore, Stored
from ringleaf.kube.recovery import fault_mode
from ringleaf.kube.reset_config import ResetConfig
from ringleaf.kube.status_writer import VOLCANO, StatusWriter
from ringleaf.kube.tasks import drain
from ringleaf.model.fault import Down, FaultMode, Record

RepairInstruction = Delete | ReportFaultyPods | PersistRepair | AskToExit | Repaired
FIRST_PAUSE_S, MOST_PAUSE_S = 0.1, 30.0
UNHEALTHY: Final = "Unhealthy-"
"""How the status of a faulty pod begins, for the platform that deletes it."""
MOST_TOLD: Final = 16
"""Pods of a job that get an event of their own."""
PODS, RECORDS = "pods", "records"
BEGUN: Final = "it was begun before"
SETTLE_S: Final = 90.0
"""Seconds after which no write of the previous leader is under way any more.

The API server gives up a request after 60 s.
"""
Say = Callable[..., None]


class _Note(NamedTuple):
    """The record that is to be written; nothing is None."""

    group: GangState
    podgroup: PodGroup
    record: Record | None


class _Removal(NamedTuple):
    """A record that is to be removed: its job is gone."""

    stored: Stored


class _Move(NamedTuple):
    """A record that is to be moved from the PodGroup that it was written on."""

    stored: Stored


class _Eviction(NamedTuple):
    """Pods of a job that is moved, and what they are told."""

    pods: list[PodState]
    why: str


class _Deletion(NamedTuple):
    pods: list[PodState]
    force: bool


class _Pointing(NamedTuple):
    """What is to be written on a pod; nothing is None."""

    pod: PodState
    status: str | None


class _Reset(NamedTuple):
    """What is to be written for the processes of a job."""

    namespace: str
    owner: str
    record: Record | None = None
    exits: bool | None = None


_Step = _Note | _Removal | _Move | _Eviction | _Deletion | _Pointing | _Reset


class RepairExecutor:
    """Carries out what the engine instructs because of faults.

    Args:
        api: The API server.
        cache: What there is.
        binder: Deletes pods.
        status_writer: Tells people.
        book: What is kept of faults for others, and for the next of us.
        store: Keeps the records of repairs.
        clock: Seconds since 1970.
        say: Writes a line of the log.
        ended: Is told of every task that ended; an error in one is a bug.

    """

    def __init__(
        self,
        api: Api,
        cache: ClusterCache,
        binder: Binder,
        status_writer: StatusWriter,
        book: FaultStore,
        *,
        store: RecordStore,
        clock: Callable[[], float],
        say: Say,
        ended: Callable[["asyncio.Task[None]"], object] = lambda _task: None,
    ) -> None:
        self._api, self._cache, self._binder = api, cache, binder
        self._status_writer, self._book, self._say = status_writer, book, say
        self._store = store
        self._resets = ResetConfig(api, clock, say)
        self._ended = ended
        self._lines: dict[str, deque[_Step]] = {}
        """Job -> what is to be done for it, in this order."""
        self._forbidden: set[str] = set()
        """Kinds of which we may not write on any object; that is said once."""
        self._tasks: set[asyncio.Task[None]] = set()

    def carry_out(self, each: RepairInstruction) -> None:
        """Do what is instructed, after what was instructed before for its job."""
        group = self._cache.gangs.get(each.job)
        if group is None:
            return
        match each:
            case PersistRepair():
                self._remember(group, each.record)
            case Delete():
                self._delete(group, each)
            case ReportFaultyPods():
                self._point(group, each)
            case AskToExit():
                self._say("ask to exit", job=each.job, exits=each.exits)
                self._reset(group, exits=each.exits)
            case Repaired():
                self._repaired(group, each.record, each.message)

    def abandon(self) -> None:
        """Let go of everything: others decide now."""
        for line in self._lines.values():
            line.clear()
        for task in self._tasks:
            task.cancel()

    async def abandoned(self) -> None:
        """Let go of everything, and return when none of it can be sent any more."""
        self.abandon()
        await drain(self._tasks)
        # A task that was cancelled before it began has not put its part in order.
        self._lines.clear()
        self._cache.checkpoints.drop_own_deletions()

    async def drained(self) -> None:
        """Return when nothing is left to be done."""
        await drain(self._tasks)

    def _remember(self, group: GangState, record: Record | None) -> None:
        if group.podgroup is None:
            return  # a pod alone, or the PodGroup was deleted
        self._cache.checkpoints.set(group.name, record)
        self._then(group.name, _Note(group, group.podgroup, record))

    def remove_records(self) -> None:
        """Remove the records of jobs that are gone."""
        for stored in self._cache.checkpoints.take_orphaned():
            self._then(stored.job, _Removal(stored))

    async def run(self) -> None:
        """Move records from PodGroups, once; later remove those of no job."""
        if not self._store.is_read:
            return  # we may not
        old = self._cache.checkpoints.take_old()
        for stored in old:
            self._then(stored.job, _Move(stored))
        while any(each.job in self._lines for each in old):  # noqa: ASYNC110 - rare
            await asyncio.sleep(FIRST_PAUSE_S)
        if not self._store.is_moved:
            await self._insist("", RECORDS, self._store.note_moved)
        await asyncio.sleep(SETTLE_S)
        for stored in await self._store.read(lambda: False) or ():
            if self._is_of_no_use(stored):
                self._then(stored.job, _Removal(stored))

    def _is_of_no_use(self, stored: Stored) -> bool:
        """Whether a record is of a job that is gone, or was written too late."""
        group = self._cache.gangs.get(stored.job)
        podgroup = None if group is None else group.podgroup
        if group is None or podgroup is None or podgroup.metadata.uid != stored.uid:
            return True
        is_ours = records.writer_of(stored.text) in ("", *self._cache.schedulers)
        return is_ours and group.repair.record is None

    def finish(self, group: GangState) -> None:
        """Delete the pods that the previous leader was about to delete."""
        pods = [
            p for p in group.pods.values() if group.was_deleting(p) and not p.deleting
        ]
        if (
            not pods
            or group.repair.is_resumed
            or group.reported.job is None
            or group.status.outside_canary
        ):
            return
        self._cache.checkpoints.mark_resumed(group)
        force = fault_mode(group.reported.job, self._cache.conf) is FaultMode.FORCE
        record = group.repair.record
        if record is not None and record.moved_for:
            self._say("evict", job=group.name, pods=len(pods), why=BEGUN)
            self.evict(
                group, pods, f"Pod is moved so that job {record.moved_for!r} starts"
            )
            return
        self._say("delete", job=group.name, pods=len(pods), why=BEGUN)
        for pod in pods:
            self._delete_marked(group, [pod], force=force or self._is_lost(pod))

    def _is_lost(self, pod: PodState) -> bool:
        """Whether no kubelet can end a pod: its node is gone or down."""
        facts = self._cache.nodes.get(pod.node)
        return facts is None or facts.node.down is Down.NOT_READY

    def _delete(self, group: GangState, each: Delete) -> None:
        if group.podgroup is None and not group.is_alone:
            return  # the PodGroup was deleted
        numbered = group.by_number()
        pods = [numbered[n] for n in each.replicas if n in numbered]
        if not pods:
            return
        facts = {"pods": len(pods), "cause": each.cause, "force": each.force or None}
        self._say("delete", job=each.job, **facts, why=each.why)
        for pod in pods[:MOST_TOLD]:
            self._status_writer.on_pod(pod, "Faulty", each.why)
        self._book.rescheduled(group, each.cause)
        self._delete_marked(group, pods, force=each.force)

    def _delete_marked(
        self, group: GangState, pods: list[PodState], *, force: bool
    ) -> None:
        """Delete pods; what is written before that says that they are about to be."""
        self._cache.checkpoints.mark_deletions(group, pods)
        self._then(group.name, _Deletion(pods, force))

    def evict(self, group: GangState, pods: list[PodState], why: str) -> None:
        """Evict the pods of a job that is moved, once its new place is written down."""
        self._cache.checkpoints.mark_deletions(group, pods)
        self._then(group.name, _Eviction(pods, why))

    def _point(self, group: GangState, each: ReportFaultyPods) -> None:
        """Mark faulty pods, and unmark pods that have recovered.

        The platform that deletes the pods reads the mark.
        """
        ailing = {ailment.replica: ailment for ailment in each.pod_faults}
        for pod in [*group.pods.values()]:
            before = pod.annotations.get(names.POD_STATUS, "")
            ailment = None if pod.number is None else ailing.get(pod.number)
            if ailment is None:
                if before.startswith(UNHEALTHY):
                    self._say("recovered", job=each.job, pod=pod.key)
                    self._then(group.name, _Pointing(pod, None))
                continue
            status = f"{UNHEALTHY}{ailment.cause.value}"
            if before != status:
                told = f"{ailment.cause.value} on node {ailment.node!r}"
                self._say("faulty", job=each.job, pod=pod.key, why=told)
                self._status_writer.on_pod(
                    pod, "Faulty", f"{told}; its controller is expected to delete it"
                )
                self._then(group.name, _Pointing(pod, status))

    def _repaired(self, group: GangState, record: Record, told: str) -> None:
        self._say("repaired", job=group.name, pods=len(record.deleted))
        self._status_writer.on_group(group, "Repaired", told)
        job = group.reported.job
        if job is not None and job.recovery.pods_only and not job.recovery.process:
            self._reset(group, record=record)

    def _reset(
        self,
        group: GangState,
        *,
        record: Record | None = None,
        exits: bool | None = None,
    ) -> None:
        if group.podgroup is None:
            return
        meta = group.podgroup.metadata
        owner = next((o.name for o in meta.owner_references or ()), "")
        name = owner or names.UID.sub("", meta.name)
        self._then(group.name, _Reset(meta.namespace, name, record, exits))

    def _then(self, job: str, step: _Step) -> None:
        line = self._lines.get(job)
        if line is not None:
            line.append(step)
            return
        self._lines[job] = deque([step])
        task = asyncio.get_running_loop().create_task(self._work(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._ended)

    async def _work(self, job: str) -> None:
        """Carry out what there is for a job, one after the other."""
        line, is_there = self._lines[job], True
        try:
            while line:
                match line.popleft():
                    case _Note() as note:
                        is_there = await self._write(job, note)
                    case _Removal(stored):
                        await self._remove(stored)
                    case _Move(stored):
                        await self._move(stored)
                    case _Eviction(pods, why) if is_there:
                        self._binder.move(pods, why, self._status_writer.evicted)
                    case _Deletion(pods, force) if is_there:
                        self._binder.delete(pods, force=force)
                    case _Pointing(pod, status):
                        # The status takes annotations too, and no more of a pod.
                        written = {names.POD_STATUS: status}
                        await self._annotate(
                            job, encode.pod_path(pod, "status"), pod.uid, written
                        )
                    case _Reset() as reset:
                        where = reset.namespace, reset.owner
                        await self._resets.write(
                            *where, reset.record, exits=reset.exits
                        )
        finally:
            del self._lines[job]

    async def _write(self, job: str, note: _Note) -> bool:
        """Write the record of a repair; whether its PodGroup is still there."""
        uid, text = note.podgroup.metadata.uid, self._text(note)
        if text is None:
            await self._remove(Stored(job, uid, ""))
        else:
            await self._insist(job, RECORDS, self._store.write, job, uid, text)
        podgroup = note.group.podgroup
        is_there = podgroup is not None and podgroup.metadata.uid == uid
        if not is_there:
            self._say("not repaired", job=job, why="its PodGroup is gone")
            await self._remove(Stored(job, uid, ""))
        return is_there

    async def _remove(self, stored: Stored) -> None:
        """Remove the record of a repair, if there is one."""
        own = stored.job, stored.uid
        await self._insist(stored.job, RECORDS, self._store.remove, *own)

    async def _move(self, stored: Stored) -> None:
        """Write a record that is on a PodGroup where records are, and take it off.

        It counts no more where it is, so that it does no harm if it stays.
        """
        job, uid, text = stored
        if not self._store.has(job, uid):
            await self._insist(job, RECORDS, self._store.write, job, uid, text)
        namespace, _slash, name = job.partition("/")
        path = f"{VOLCANO}/namespaces/{namespace}/podgroups/{name}"
        body = encode.annotated(uid, {names.REPAIR: None})
        with suppress(Unreachable):
            await self._api.call("PATCH", path, body, kind=encode.MERGE)

    def _text(self, note: _Note) -> str | None:
        """What is written of a repair, as far as there is room for it."""
        if note.record is None:
            return None
        group = note.group
        doomed = sorted(group.repair.own_deletions & group.pods.keys())
        most = records.MOST_BYTES
        text = records.write(note.record, most, doomed, min(self._cache.schedulers))
        if note.record.placements and not records.has_places(text):
            why = f"it has more than {most} bytes: where pods are is left out"
            self._say("repair written in part", job=group.name, why=why)
        return text

    async def _annotate(
        self, job: str, path: str, uid: str, written: Mapping[str, str | None]
    ) -> None:
        """Write annotations of a pod, however long it takes, while it is there."""
        body = encode.annotated(uid, written)

        async def patch() -> Answer:
            return await self._api.call("PATCH", path, body, kind=encode.MERGE)

        await self._insist(job, PODS, patch)

    async def _insist(
        self,
        job: str,
        kind: str,
        attempt: Callable[..., Awaitable[Answer]],
        *given: str,
    ) -> None:
        """Do something until it is done, or there is nothing it could be done to."""
        logged = LogOnce()
        for n_failures in count():
            is_known = False
            try:
                answer = await attempt(*given)
            except Unreachable as error:
                why = str(error)
            else:
                if answer.ok or (kind == PODS and _is_gone(answer)):
                    self._forbidden.discard(kind)
                    return
                why = answer.words()
                if answer.is_forbidden:
                    is_known = kind in self._forbidden
                    self._forbidden.add(kind)
            if logged.is_new(job, why) and not is_known:
                self._say("repair not written", job=job, kind=kind, why=why)
            await asyncio.sleep(backoff_s(FIRST_PAUSE_S, n_failures, MOST_PAUSE_S))


def _is_gone(answer: Answer) -> bool:
    """Whether the object is not there, or is another of its name by now.

    A conflict may also be that others write to it all the time; that passes.
    """
    if answer.is_conflict:
        return b"UID" in answer.body
    # A patch that is for another object of this name.
    another = answer.status == INVALID and b"metadata.uid" in answer.body
    return another or answer.is_missing
