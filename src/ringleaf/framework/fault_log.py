"""The fault log: every fault with its life, from what nodes and pods are like.

A fault is seen when a node or a pod has it and had it not before, acted on when pods
are deleted because of it, and recovered when it is no longer there. What is reported
to the log is the present state, not what changed, so reports are idempotent; each costs
as much as its node or job has faults.

What was written down before a restart may come before the nodes or after them: a fault
that is still there goes on with the life that it had.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, Down, Fault, FaultKey, Part, PartKind, PodFault
from ringleaf.model.mask import chips_of

MOST_RECENT: Final = 1_000
"""Recovered faults that are kept, of the newest."""
RECENT_S: Final = 24 * 3600.0
"""How long they are; and how long a fault is believed that is not confirmed."""
MOST_NEWS: Final = 20_000
"""Changes that can be asked for."""

POD_CAUSES: Final = frozenset({Cause.POD, Cause.RELATION, Cause.SUB_HEALTH})
"""What pods have by themselves; everything else follows from their nodes."""
_WHOLE: Final = Part()
_SWITCH: Final = Part(PartKind.SWITCH)
_DOWN_PARTS: Final[Mapping[Down, Part]] = MappingProxyType(
    {Down.DAEMON: Part(PartKind.DAEMON), Down.SWITCH: _SWITCH}
)


class Stage(StrEnum):
    """How far the life of a fault is."""

    SEEN = "seen"
    ACTED = "acted"
    RECOVERED = "recovered"


class News(Struct, frozen=True):
    """Something happened to a fault; *fault* is how it was then.

    ``version`` is that of the fault log with it.
    """

    version: int
    stage: Stage
    fault: Fault

    @property
    def lasted_s(self) -> float:
        """How long after it was seen."""
        at = {
            Stage.SEEN: self.fault.seen,
            Stage.ACTED: self.fault.acted,
            Stage.RECOVERED: self.fault.recovered,
        }[self.stage]
        return (self.fault.seen if at is None else at) - self.fault.seen


def faults_of(node: Node) -> Iterator[FaultKey]:
    """What is wrong with a node, by what its edges say of it.

    A quarantine is not among them: it does not follow from the state of the node.
    """
    name = node.name
    if node.down is not None or not node.ready:
        part = _WHOLE if node.down is None else _DOWN_PARTS.get(node.down, _WHOLE)
        yield FaultKey(name, Cause.NODE, part)
    for cause, mask in (
        (Cause.CHIP, node.unhealthy),
        (Cause.NETWORK, node.network_faulty),
        (Cause.SUB_HEALTH, node.weak),
    ):
        for chip in chips_of(mask):
            yield FaultKey(name, cause, Part(PartKind.CHIP, chip))
    if node.weak_switch:
        yield FaultKey(name, Cause.SUB_HEALTH, _SWITCH)
    elif node.sub_healthy and not node.weak:
        yield FaultKey(name, Cause.SUB_HEALTH)


class FaultLog:
    """The faults there are, and those there were a while ago.

    ``version`` moves with every change of a fault.
    """

    def __init__(self) -> None:
        self.version = 0
        self.counts: Counter[tuple[Cause, Stage]] = Counter()
        """How many faults came so far, since this log was begun."""
        self._open: dict[FaultKey, Fault] = {}
        self._of: dict[str, dict[FaultKey, None]] = {}
        """Node or job -> what is open of it."""
        self._recent: deque[Fault] = deque()
        self._news: deque[News] = deque(maxlen=MOST_NEWS)
        self._reported: set[tuple[str, bool]] = set()
        """The nodes and the jobs (True) that were reported to the log."""
        self._unconfirmed: dict[FaultKey, float] = {}
        """What is not confirmed, and until when it is believed."""
        self._unconfirmed_heap: list[tuple[float, FaultKey]] = []
        """The same as a heap; some are believed for another reason by now."""

    # What there is.

    @property
    def open(self) -> Mapping[FaultKey, Fault]:
        """The faults there are, in the order in which they were seen."""
        return MappingProxyType(self._open)

    @property
    def recent(self) -> tuple[Fault, ...]:
        """Those that recovered, the oldest first."""
        return tuple(self._recent)

    @property
    def everything(self) -> tuple[Fault, ...]:
        """Those that recovered and those there are: what is to be written down."""
        return (*self._recent, *self._open.values())

    def of(self, where: str) -> tuple[Fault, ...]:
        """What is open of one node or job."""
        return tuple(self._open[key] for key in self._of.get(where, ()))

    def keys_about(
        self, job: str, pod_fault: PodFault, chips: Iterable[int] | None = None
    ) -> tuple[FaultKey, ...]:
        """The open faults because of which a pod is faulty; of chips, only its own."""
        own = FaultKey(job, pod_fault.cause, Part(PartKind.POD, pod_fault.replica))
        found = [own] if own in self._open else []
        held = None if chips is None else {*chips}
        for key in self._of.get(pod_fault.node, ()):
            is_chip = key.part.kind is PartKind.CHIP
            is_held = held is None or not is_chip or key.part.number in held
            if key.cause is pod_fault.cause and is_held and not key.is_of_pod:
                found.append(key)
        return tuple(found)

    def news(self, since: int) -> Iterator[News]:
        """What happened after *since*, in the order in which it did.

        Of more than ``MOST_NEWS`` changes the last; ``counts`` has them all.
        """
        found = []
        for each in reversed(self._news):
            if each.version <= since:
                break
            found.append(each)
        return reversed(found)

    # What it hears.

    def nodes_changed(
        self, before: Node | None, after: Node | None, now: float
    ) -> None:
        """One node is like *after* now; without, it is gone."""
        self._tidy(now)
        node = before if after is None else after
        if node is None:
            return
        name = node.name
        current = {key for key in self._of.get(name, ()) if not key.is_of_pod}
        if after is None:
            gone = FaultKey(name, Cause.NODE)
            self._settle(current, {gone}, now)
            self._believe_until(gone, now + RECENT_S)
        else:
            quarantines = {key for key in current if key.cause is Cause.REFUSAL}
            self._settle(current - quarantines, {*faults_of(after)}, now)
            for key in current - quarantines:
                self._unconfirmed.pop(key, None)
        self._reported.add((name, False))

    def report_pod_faults(
        self, job: str, pod_faults: Iterable[PodFault], now: float
    ) -> None:
        """What is wrong with the pods of *job* themselves, all of it.

        Of a job that is gone it is ``job_gone``.
        """
        self._tidy(now)
        current = {key for key in self._of.get(job, ()) if key.is_of_pod}
        wanted = {
            FaultKey(job, each.cause, Part(PartKind.POD, each.replica))
            for each in pod_faults
            if each.cause in POD_CAUSES
        }
        self._settle(current, wanted, now)
        for key in current:
            self._unconfirmed.pop(key, None)
        self._reported.add((job, True))

    def job_gone(self, job: str, now: float) -> None:
        """A job ended or was deleted: its pods have no faults any more."""
        self.report_pod_faults(job, (), now)
        self._reported.discard((job, True))

    def node_quarantined(
        self, node: str, why: str, now: float, until: float | None = None
    ) -> None:
        """A node refuses pods, and gets none until *until*."""
        self._tidy(now)
        key = FaultKey(node, Cause.REFUSAL)
        self._unconfirmed.pop(key, None)
        known = self._open.get(key)
        if known is None:
            self._begin(key, now, why=why, until=until)
        elif (known.why, known.until) != (why, until):
            self._change(replace(known, why=why, until=until))

    def quarantine_ended(self, node: str, now: float) -> None:
        """A node gets pods again."""
        self._tidy(now)
        self._settle({FaultKey(node, Cause.REFUSAL)} & self._open.keys(), set(), now)

    def mark_acted(self, keys: Iterable[FaultKey], job: str, now: float) -> None:
        """Pods of *job* are deleted because of faults; of those that are open."""
        for key in keys:
            fault = self._open.get(key)
            if fault is None or (fault.acted is not None and job in fault.jobs):
                continue
            jobs = fault.jobs if job in fault.jobs else (*fault.jobs, job)
            if fault.acted is None:
                acted = max(now, fault.seen)
                self._change(replace(fault, acted=acted, jobs=jobs), Stage.ACTED)
            else:
                self._change(replace(fault, jobs=jobs))

    def restore(self, faults: Iterable[Fault], now: float) -> None:
        """Adopt what was written down before.

        A fault that is there goes on with the life that it had. If its node or job was
        reported without it, it has recovered; if nothing was reported yet, it counts as
        open for a day.
        """
        self._tidy(now)
        ended = {(fault.key, fault.seen): fault for fault in self._recent}
        for fault in faults:
            if (fault.key, fault.seen) in ended:
                continue
            current = self._adopted(fault, now) if fault.recovered is None else fault
            if current.recovered is not None:
                ended[fault.key, fault.seen] = current
        before = self._recent
        self._recent = deque(sorted(ended.values(), key=_age))
        self._tidy(now)
        self.version += self._recent != before

    def _adopted(self, fault: Fault, now: float) -> Fault:
        """A fault of the past as it is now: open, and in the log, or recovered."""
        key = fault.key
        known = self._open.get(key)
        if known is not None:
            current = _merged(known, fault)
            if current != known:
                self._change(current)
            return current
        refuses = fault.cause is Cause.REFUSAL
        is_told = (fault.where, key.is_of_pod) in self._reported and not refuses
        if is_told or (refuses and fault.until is not None and fault.until <= now):
            latest = max(now, fault.seen, fault.acted or 0.0)
            return replace(fault, recovered=latest)
        self._put(fault)
        self.version += 1
        until = fault.until if refuses and fault.until is not None else now + RECENT_S
        self._believe_until(key, until)
        return fault

    # Lives.

    def _settle(
        self, current: set[FaultKey], wanted: set[FaultKey], now: float
    ) -> None:
        for key in sorted(current - wanted):
            self._end(key, now)
        for key in sorted(wanted - current):
            self._begin(key, now)

    def _begin(
        self, key: FaultKey, now: float, why: str = "", until: float | None = None
    ) -> None:
        where, cause, part = key
        self._change(
            Fault(where, cause, str(part), seen=now, why=why, until=until), Stage.SEEN
        )

    def _end(self, key: FaultKey, now: float) -> None:
        fault = self._open.pop(key)
        own = self._of[fault.where]
        del own[key]
        if not own:
            del self._of[fault.where]
        self._unconfirmed.pop(key, None)
        fault = replace(fault, recovered=max(now, fault.seen, fault.acted or 0.0))
        self._recent.append(fault)
        if len(self._recent) > MOST_RECENT:
            self._recent.popleft()
        self._record(fault, Stage.RECOVERED)

    def _change(self, fault: Fault, stage: Stage | None = None) -> None:
        self._put(fault)
        self._record(fault, stage)

    def _put(self, fault: Fault) -> None:
        self._open[fault.key] = fault
        self._of.setdefault(fault.where, {})[fault.key] = None

    def _record(self, fault: Fault, stage: Stage | None) -> None:
        self.version += 1
        if stage is not None:
            self.counts[fault.cause, stage] += 1
            self._news.append(News(self.version, stage, fault))

    # What is forgotten.

    def _believe_until(self, key: FaultKey, until: float) -> None:
        heappush(
            self._unconfirmed_heap, (self._unconfirmed.setdefault(key, until), key)
        )

    def _tidy(self, now: float) -> None:
        """Old faults are forgotten, and those given up that are not confirmed."""
        while self._unconfirmed_heap and self._unconfirmed_heap[0][0] <= now:
            until, key = heappop(self._unconfirmed_heap)
            if self._unconfirmed.get(key) == until:
                self._end(key, now)
                self._reported.discard((key.where, key.is_of_pod))
        recent = self._recent
        while recent and (
            len(recent) > MOST_RECENT or _age(recent[0]) < now - RECENT_S
        ):
            recent.popleft()


def _age(fault: Fault) -> float:
    assert fault.recovered is not None
    return fault.recovered


def _merged(known: Fault, older: Fault) -> Fault:
    """One life of two halves of it; it began when *older* did.

    The clocks of two observers differ, so that *known* may seem to be the earlier one.
    """
    acted = [max(at, older.seen) for at in (known.acted, older.acted) if at is not None]
    return replace(
        known,
        seen=older.seen,
        acted=min(acted, default=None),
        jobs=tuple(dict.fromkeys((*older.jobs, *known.jobs))),
        why=known.why or older.why,
        until=known.until if known.until is not None else older.until,
    )
