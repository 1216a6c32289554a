"""What is kept of faults: for other components, for people, and for the next of us.

Two ConfigMaps, as the vendor's scheduler has them: ``vcjob-fault-npu-cm`` has the nodes
with faults and how often jobs may still fail, ``job-reschedule-reason`` why jobs were
rescheduled lately. Keys of our own have the lives of all faults, and what was deleted
because of them, for the brake of the next of us. They are written when they change, at
most once a second, and read before the first decision and again when we lead. Neither
waits for the other, and none is written that was not read.

Source: the vendor's ``internal/rescheduling``. Where we differ: what is written is read
back (decision D24), and nothing is written while nothing changes.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from ringleaf.engine.event import (
    Event,
    FaultsKnown,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsRefused,
    TimerFired,
)
from ringleaf.framework.instruction import (
    Delete,
    Instruction,
    PersistRepair,
    Repaired,
    Report,
    Verdict,
)
from ringleaf.kube.answers import SERVER_ERROR, Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.config_maps import config_maps_path, patch_or_create
from ringleaf.kube.fault_texts import (
    LIVES,
    MOST_RECORDS,
    RECORDS,
    RETRIES,
    History,
    RescheduleReason,
    Rescheduling,
    RetriesEntry,
    bounded,
    fault_node,
    fitted,
    joined,
    json_text,
    last_deletions,
    latest_faults,
    read_json,
)
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.handover import RetriesLeft
from ringleaf.kube.jobs import uids_of
from ringleaf.kube.log_once import LogOnce
from ringleaf.kube.objects import ConfigMap
from ringleaf.model.fault import Cause, Deletion, Fault

FAULTS: Final = "volcano-system", "vcjob-fault-npu-cm"
REASONS: Final = "mindx-dl", "job-reschedule-reason"
BRAKED, DELETED = "ringleaf-braked", "ringleaf-deleted"
MOST_BRAKED: Final = 100
"""Jobs that wait for the brake and are named."""
KEPT: Final = (
    FaultsKnown,
    JobGone,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsRefused,
    TimerFired,
)
"""What may change what is kept."""
PAUSE_S, MOST_PAUSE_S = 1.0, 60.0
READ_S: Final = 5.0
"""How long reading may take; what cannot be read is missed."""


class FaultStore:
    """Keeps the two ConfigMaps.

    Args:
        api: The API server.
        cache: What there is.
        faults: The faults that the engine knows.
        clock: Seconds since 1970.
        say: Writes a line of the log.
        changed: Is called when the cache was told something late.
        braked: The jobs that wait for the brake.
        deletions: What was deleted lately because of faults.

    """

    def __init__(
        self,
        api: Api,
        cache: ClusterCache,
        faults: Callable[[], Iterable[Fault]],
        clock: Callable[[], float],
        say: Callable[..., None],
        *,
        changed: Callable[[], None] = lambda: None,
        braked: Callable[[], Iterable[str]] = tuple,
        deletions: Callable[[], Iterable[Deletion]] = tuple,
    ) -> None:
        self._api, self._cache, self._faults = api, cache, faults
        self._clock, self._say, self._changed = clock, say, changed
        self._braked, self._deletions = braked, deletions
        self._wakes = {FAULTS: asyncio.Event(), REASONS: asyncio.Event()}
        self._unread = {FAULTS, REASONS}
        self._writes = False
        """Whether we write, and may know of more than was read."""
        self._histories: dict[str, History] = {}
        self._last: dict[str, tuple[float, object]] = {}
        """Job -> what was recorded last, so that it is not recorded twice."""
        self._since: dict[str, tuple[dict[str, Any], int]] = {}
        """Node -> what was written of it, and when it became so."""
        self._known: dict[tuple[str, str], dict[str, str]] = {FAULTS: {}, REASONS: {}}
        """What the ConfigMaps have, as far as we know."""
        self._logged = LogOnce()
        self._turns = {FAULTS: asyncio.Lock(), REASONS: asyncio.Lock()}
        """One write at a time, so that no older one comes last."""

    # What happens.

    def heed(
        self, events: Sequence[Event], instructions: Iterable[Instruction]
    ) -> None:
        """Write anew if something of this may change what is kept."""
        for event in events:
            if isinstance(event, JobGone) and not event.returns:
                self._last.pop(event.job, None)
        if any(map(_matters, events)) or any(map(_is_of_faults, instructions)):
            self._wakes[FAULTS].set()

    def rescheduled(self, group: GangState, cause: str) -> None:
        """Pods of a job are deleted, because of what is remembered of it."""
        record = group.repair.record
        if record is None or cause not in tuple(Cause):
            return
        key = record.since, (record.scope, record.pod_faults)
        if self._last.get(group.name) == key:
            return  # the same again, by force
        self._last[group.name] = key
        numbered, now = group.by_number(), self._clock()
        reasons = []
        for each in record.pod_faults:
            pod = numbered.get(each.replica)
            name = "" if pod is None else pod.name
            reasons.append(
                RescheduleReason(each.cause.value, name, each.node, str(each.replica))
            )
        logged = datetime.fromtimestamp(now, UTC).strftime("I%m%d %H:%M:%S")
        known = self._histories.setdefault(group.name, History(group.name))
        newest = Rescheduling(logged, int(now), reasons)
        known.records = [newest, *(known.records or ())][:MOST_RECORDS]
        known.times += 1
        self._wakes[REASONS].set()

    # Reading.

    async def read(self) -> None:
        """Read what the previous leader has written."""
        self._unread, self._histories = {FAULTS, REASONS}, {}
        self._writes = False
        self._last.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(READ_S):
                await asyncio.gather(self._learn(FAULTS), self._learn(REASONS))

    async def _learn(self, where: tuple[str, str]) -> None:
        """Learn what one of the ConfigMaps has."""
        data = await self._get(where)
        self._unread.discard(where)
        if where == FAULTS:
            lives = read_json(data.get(LIVES, ""), list[Fault]) or []
            left = read_json(data.get(RETRIES, ""), dict[str, RetriesEntry]) or {}
            known = {k: RetriesLeft(each.uid, each.times) for k, each in left.items()}
            deleted = read_json(data.get(DELETED, ""), list[Deletion]) or []
            told = [each for each in deleted if each.at >= 0 and each.pods > 0]
            self._cache.handover.put_faults(lives, known, told)
        else:
            found = read_json(data.get(RECORDS, ""), dict[str, History]) or {}
            own = self._histories if self._writes else {}
            self._histories = found | {k: joined(found.get(k), own[k]) for k in own}

    async def _get(self, where: tuple[str, str]) -> dict[str, str]:
        """What a ConfigMap has; nothing where there is none."""
        while True:
            try:
                answer = await self._api.call(
                    "GET", f"{config_maps_path(where[0])}/{where[1]}", lane="read"
                )
            except Unreachable:
                answer = Answer(SERVER_ERROR, b"")
            if answer.ok:
                break
            if not answer.is_transient:
                return {}  # missing rights are reported when it is written
            await asyncio.sleep(PAUSE_S / 4)
        found = read_json(answer.body.decode(errors="replace"), ConfigMap)
        self._known[where] = {} if found is None else dict(found.data or {})
        return self._known[where]

    # Writing.

    async def run(self) -> None:
        """Write what changes, for ever."""
        self._writes = True
        await asyncio.gather(self._keep(FAULTS), self._keep(REASONS))

    async def _keep(self, where: tuple[str, str]) -> None:
        """Write what changes of one ConfigMap, for ever."""
        if where in self._unread:
            await self._learn(where)
            self._changed()
            await asyncio.sleep(PAUSE_S)
        n_failures, wake = 0, self._wakes[where]
        wake.set()
        while True:
            await wake.wait()
            wake.clear()
            if await self._write(where):
                n_failures = 0
            else:
                wake.set()
                n_failures += 1
            await asyncio.sleep(backoff_s(PAUSE_S, n_failures, MOST_PAUSE_S))

    async def flush(self) -> None:
        """Write what a leader has not written yet, before it ends."""
        if self._writes:
            known = [where for where in self._turns if where not in self._unread]
            await asyncio.gather(*map(self._write, known))

    async def _write(self, where: tuple[str, str]) -> bool:
        """Write what has changed of a ConfigMap; whether it is written."""
        async with self._turns[where]:
            return await self._write_news(where)

    async def _write_news(self, where: tuple[str, str]) -> bool:
        data = self._data(where)
        known = self._known[where]
        news = {k: text for k, text in data.items() if known.get(k, "") != text}
        if not news:
            return True
        try:
            answer = await patch_or_create(
                self._api, *where, changes=news, everything=known | news
            )
        except Unreachable:
            return False
        if answer.ok:
            self._known[where] = known | news
            self._logged.forget(where)
        else:
            self._trouble(where, answer)
        return answer.ok

    def _trouble(self, where: tuple[str, str], answer: Answer) -> None:
        """Say why faults are not kept, once in a row."""
        why = answer.words()
        if self._logged.is_new(where, why):
            self._say("faults not written", object="/".join(where), why=why)

    def _data(self, where: tuple[str, str]) -> dict[str, str]:
        if where == REASONS:
            return {RECORDS: bounded(self._histories)}
        braked = sorted(self._braked())[:MOST_BRAKED]
        told = {
            BRAKED: json_text(braked),
            DELETED: json_text(last_deletions(self._deletions())),
        }
        found = fitted(self._fault_nodes(), self._left(), latest_faults(self._faults()))
        return found | told

    def _fault_nodes(self) -> list[dict[str, Any]]:
        """Nodes with faults, and since when they have these."""
        now, found = int(self._clock()), {}
        for name, facts in self._cache.nodes.items():
            entry = fault_node(facts)
            if entry is not None:
                before = self._since.get(name)
                same = before is not None and before[0] == entry
                found[name] = before if same and before else (entry, now)
        self._since = found
        return [{**entry, "UpdateTime": at} for entry, at in found.values()]

    def _left(self) -> dict[str, RetriesEntry]:
        """How often the pods of jobs may still fail, of those that may at all.

        Those come first that have not failed yet.
        """
        whole, spent = dict[str, RetriesEntry](), dict[str, RetriesEntry]()
        for group in self._cache.gangs.values():
            retries = (
                0 if group.reported.job is None else group.reported.job.recovery.retries
            )
            if retries and group.podgroup is not None:
                used = (
                    0
                    if group.repair.record is None
                    else group.repair.record.retries_used
                )
                uid = uids_of(group.podgroup)[0]
                found = spent if used else whole
                found[group.name] = RetriesEntry(uid, max(0, retries - used))
        return whole | spent


def _is_of_faults(each: Instruction) -> bool:
    """Whether an instruction is about a repair, or a job that waits for one."""
    if isinstance(each, Report):
        return each.verdict is Verdict.RATE_LIMITED
    return isinstance(each, Delete | PersistRepair | Repaired)


def _matters(event: Event) -> bool:
    """Whether what is kept may be another after *event*."""
    if isinstance(event, JobArrived):
        return bool(event.job.recovery.retries)
    return isinstance(event, KEPT)
