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

import msgspec
from msgspec import Struct, field

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
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.handover import RetriesLeft
from ringleaf.kube.jobs import uids_of
from ringleaf.kube.log_once import LogOnce
from ringleaf.kube.node_info import NodeInfo
from ringleaf.kube.objects import ConfigMap
from ringleaf.model.fault import Cause, Deletion, Fault
from ringleaf.model.mask import chips_of

FAULTS: Final = "volcano-system", "vcjob-fault-npu-cm"
REASONS: Final = "mindx-dl", "job-reschedule-reason"
NODES, RETRIES, LIVES = "fault-node", "remain-retry-times", "ringleaf-faults"
BRAKED, DELETED = "ringleaf-braked", "ringleaf-deleted"
RECORDS: Final = "recent-reschedule-records"
MOST_RECORDS: Final = 10
"""Records of a job; older ones are dropped."""
MOST_BYTES: Final = 950 * 1024
"""Bytes of all that a ConfigMap has."""
MOST_BRAKED: Final = 100
"""Jobs that wait for the brake and are named."""
MOST_DELETIONS: Final = 100
"""Deletions that are named; earlier ones are one."""
MOST_LIVES: Final = 2000
"""Faults whose lives are kept; those that ended first are dropped first."""
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


class RescheduleReason(Struct):
    """Why a pod made its job be rescheduled."""

    reason: str = field(default="", name="RescheduleReason")
    pod: str = field(default="", name="PodName")
    node: str = field(default="", name="NodeName")
    rank: str = field(default="", name="NodeRankIndex")


class Rescheduling(Struct):
    """One time that a job was rescheduled."""

    logged: str = field(default="", name="LogFileFormatTime")
    at: int = field(default=0, name="RescheduleTimeStamp")
    reasons: list[RescheduleReason] | None = field(default=None, name="ReasonOfTask")


class History(Struct):
    """The last times that a job was rescheduled, the newest first."""

    job: str = field(default="", name="JobID")
    times: int = field(default=0, name="TotalRescheduleTimes")
    records: list[Rescheduling] | None = field(default=None, name="RescheduleRecords")


class _Left(Struct):
    uid: str = field(default="", name="UUID")
    times: int = field(default=0, name="Times")


class FaultStore:
    """Keeps the two ConfigMaps.

    Args:
        api: The API server.
        cache: What there is.
        faults: The faults that the engine knows.
        clock: Seconds since 1970.
        say: Writes a line of the log.
        changed: Is called when the world was told something late.
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
            lives = _read(data.get(LIVES, ""), list[Fault]) or []
            left = _read(data.get(RETRIES, ""), dict[str, _Left]) or {}
            known = {k: RetriesLeft(each.uid, each.times) for k, each in left.items()}
            deleted = _read(data.get(DELETED, ""), list[Deletion]) or []
            told = [each for each in deleted if each.at >= 0 and each.pods > 0]
            self._cache.handover.put_faults(lives, known, told)
        else:
            found = _read(data.get(RECORDS, ""), dict[str, History]) or {}
            own = self._histories if self._writes else {}
            self._histories = found | {k: _joined(found.get(k), own[k]) for k in own}

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
        found = _read(answer.body.decode(errors="replace"), ConfigMap)
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
            return {RECORDS: _bounded(self._histories)}
        braked = sorted(self._braked())[:MOST_BRAKED]
        told = {BRAKED: _text(braked), DELETED: _text(_last_of(self._deletions()))}
        found = _fitted(self._fault_nodes(), self._left(), _latest(self._faults()))
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

    def _left(self) -> dict[str, _Left]:
        """How often the pods of jobs may still fail, of those that may at all.

        Those come first that have not failed yet.
        """
        whole, spent = dict[str, _Left](), dict[str, _Left]()
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
                found[group.name] = _Left(uid, max(0, retries - used))
        return whole | spent


def _is_of_faults(each: Instruction) -> bool:
    """Whether an instruction is about a repair, or a job that waits for one."""
    if isinstance(each, Report):
        return each.verdict is Verdict.RATE_LIMITED
    return isinstance(each, Delete | PersistRepair | Repaired)


def fault_node(facts: NodeInfo) -> dict[str, Any] | None:
    """What is written of a node with faults; None of one without."""
    node = facts.node
    prefix = node.product.chip_prefix
    unhealthy = [f"{prefix}-{chip}" for chip in chips_of(node.unhealthy)]
    network = [f"{prefix}-{chip}" for chip in chips_of(node.network_faulty)]
    if not (node.down or unhealthy or network or facts.faults):
        return None
    state = "Healthy"
    if node.down:
        state = Cause.NODE.value
    elif unhealthy:
        state = Cause.CHIP.value
    elif network:
        state = Cause.NETWORK.value
    return {
        "FaultDeviceList": list(facts.faults),
        "NodeName": node.name,
        "UnhealthyNPU": unhealthy,
        "NetworkUnhealthyNPU": network,
        "NodeHealthState": state,
    }


def _matters(event: Event) -> bool:
    """Whether what is kept may be another after *event*."""
    if isinstance(event, JobArrived):
        return bool(event.job.recovery.retries)
    return isinstance(event, KEPT)


def _latest(faults: Iterable[Fault]) -> list[Fault]:
    """The faults that are kept: all that last, and of the others the last ones."""
    by_end = sorted(
        faults,
        key=lambda each: (each.recovered is None, each.recovered or 0.0, each.seen),
    )
    return by_end[-MOST_LIVES:]


def _last_of(deletions: Iterable[Deletion]) -> list[Deletion]:
    """What was deleted; of many, the last ones, and before them the sum of the rest.

    >>> many = [Deletion(float(n), "j", 2) for n in range(102)]
    >>> _last_of(many)[:2], len(_last_of(many))
    ([Deletion(at=2.0, job='', pods=6), Deletion(at=3.0, job='j', pods=2)], 100)
    """
    found = [*deletions]
    if len(found) <= MOST_DELETIONS:
        return found
    first, last = found[: 1 - MOST_DELETIONS], found[1 - MOST_DELETIONS :]
    return [Deletion(first[-1].at, "", sum(each.pods for each in first)), *last]


def _fitted(
    nodes: list[dict[str, Any]], left: dict[str, _Left], lives: list[Fault]
) -> dict[str, str]:
    """What is kept of faults, as much of it as a ConfigMap has room for.

    First the details of faults are left out, then what is needed least, which stands in
    front: lives that are over, jobs that have not failed yet.
    """
    least: list[list[Any]] = [lives, list(left.items()), nodes]
    while True:
        lives, left, nodes = least[0], dict(least[1]), least[2]
        data = {LIVES: _text(lives), RETRIES: _text(left), NODES: _text(nodes)}
        sizes = [len(text.encode()) for text in data.values()]
        if sum(sizes) <= MOST_BYTES:
            return data
        if any(node["FaultDeviceList"] for node in nodes):
            least[2] = [node | {"FaultDeviceList": []} for node in nodes]
        else:
            most = sizes.index(max(sizes))
            least[most] = least[most][len(least[most]) // 4 + 1 :]


def _joined(found: History | None, own: History) -> History:
    """What was written of a job, and before it what we know ourselves."""
    if found is None:
        return own
    records = [*(own.records or ()), *(found.records or ())][:MOST_RECORDS]
    return History(own.job, own.times + found.times, records)


def _bounded(histories: dict[str, History]) -> str:
    """The text of *histories*, without the oldest records where it is too long."""
    text = _text(histories)
    while len(text.encode()) > MOST_BYTES:
        longest = max(len(each.records or ()) for each in histories.values())
        if longest > 1:
            for each in histories.values():
                each.records = (each.records or [])[: longest - 1]
        else:
            oldest = sorted(histories, key=lambda job: _newest(histories[job]))
            for job in oldest[: max(1, len(oldest) // MOST_RECORDS)]:
                del histories[job]
        text = _text(histories)
    return text


def _newest(history: History) -> int:
    return history.records[0].at if history.records else 0


def _text(things: Any) -> str:  # noqa: ANN401 - whatever JSON has
    """JSON of *things*; nothing where there are none, as the vendor has it."""
    return msgspec.json.encode(things).decode() if things else ""


def _read(text: str, kind: Any) -> Any:  # noqa: ANN401 - of that kind
    """What others wrote; None where it cannot be read."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
