"""A look at a cluster: everything there is, read once, and an engine that knows it.

The engine keeps its state and decides nothing, so what it says is what is so. When it
is told to ``decide`` it does what a scheduler would do now that had been there all
along: jobs have waited since they were made. The reservations of
the running scheduler are not on any object; they are computed anew, and may differ.
"""

import asyncio
import gc
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.actions.enqueue import admit_job
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import ConfChanged, Event, JobArrived
from ringleaf.framework.idle_budget import IdleAccount
from ringleaf.framework.instruction import Bind, Evict, Instruction, Report
from ringleaf.framework.run_times import RunTimes
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.event_handler import Handler
from ringleaf.kube.gang_members import NOT_BOUND
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.idle_note import IdleNote
from ringleaf.kube.leader import LEASE_NAMESPACE, Lease, leases_path
from ringleaf.kube.note_store import Note, NoteStore
from ringleaf.kube.objects import Condition, Pod
from ringleaf.kube.pod_state import seconds_of
from ringleaf.kube.record_store import RecordStore
from ringleaf.kube.reflectors import reflectors
from ringleaf.kube.run_time_note import RunTimeNote
from ringleaf.kube.watch import Gone

PATIENCE_S: Final = 5.0
"""How long an API server may be silent or in trouble before that is the answer."""
LOOK_S: Final = 0.2
"""How often it is looked whether trouble has passed."""
_NEVER: Final = re.compile(r": status 40[0-9]\b")
_SILENT: Final = re.compile(r"\w+ \S+: (https?://\S+): (.*)")
_UNKNOWN: Final = re.compile(r"\w+ \S+: status 401\b.*")
_FORBIDDEN: Final = re.compile(r"list (\S+): status 403, (.*)")
LEASE: Final = "ringleaf"
"""The Lease of the leader, unless it was named otherwise."""
SCHEDULERS: Final = ("ringleaf", "volcano")


class Trouble(Exception):  # noqa: N818 - it reads as what happened
    """The cluster cannot be looked at: one line that says what and why."""


class ReadOnlyCache(ClusterCache):
    """A cache that also keeps what the scheduler has written on pods that wait."""

    def __init__(
        self, schedulers: Iterable[str] = SCHEDULERS, conf: Conf = DEFAULT
    ) -> None:
        super().__init__(schedulers, conf)
        self.why: dict[str, str] = {}
        """By uid."""
        self._why_at: dict[str, float] = {}
        """When that was said."""
        self.passed_over: dict[str, str] = {}
        """Pods that hold nothing and are not ours: key -> their scheduler's name."""
        self._store = self.handlers["pods"]
        mine = Handler(self._pods_updated, self._pods_deleted, *self._store[2:])
        self.handlers = {**self.handlers, "pods": mine}

    def _pods_updated(self, pods: Sequence[Pod]) -> None:
        self._store.on_update(pods)
        for pod in pods:
            known = pod.metadata.uid in self.pods
            if known:
                self.passed_over.pop(pod.metadata.key, None)
            elif pod.spec.scheduler_name not in self.schedulers:
                self.passed_over[pod.metadata.key] = pod.spec.scheduler_name
            uid, said = pod.metadata.uid, _unscheduled(pod) if known else None
            if said is not None and said.message:
                self.why[uid] = said.message
                self._why_at[uid] = seconds_of(said.last_transition_time or "")
            else:
                self._drop_why(uid)

    def _pods_deleted(self, gone: Sequence[Gone]) -> None:
        self._store.on_delete(gone)
        for each in gone:
            self._drop_why(each.uid)
            self.passed_over.pop(each.key, None)

    def _drop_why(self, uid: str) -> None:
        self.why.pop(uid, None)
        self._why_at.pop(uid, None)

    def last_refusal(self, group: GangState) -> tuple[float, str] | None:
        """When a pod of a group was last not bound, and why; None if that is unknown.

        Of several pods the one that was said of last.
        """
        found = [
            (self._why_at[uid], self.why[uid].partition(NOT_BOUND)[2].lstrip(": "))
            for uid in group.pods
            if NOT_BOUND in self.why.get(uid, "")
        ]
        return max(found, default=None)

    def why_of(self, group: GangState) -> str:
        """Why a group is pending, as the cache or the scheduler says; empty if unknown.

        The condition of its PodGroup, or else of its first pod that has one.
        """
        if group.status.not_ready:
            return group.status.not_ready
        given = [self.why[uid] for uid in group.pods if uid in self.why]
        if given:
            return given[0]
        conditions = group.podgroup and group.podgroup.status.conditions
        for each in conditions or ():
            if each.type == "Unschedulable" and each.status == "True":
                return each.message
        return ""


def _unscheduled(pod: Pod) -> Condition | None:
    """What is said of a pod that is not scheduled."""
    for each in pod.status.conditions or ():
        if each.type == "PodScheduled" and each.status == "False":
            return each
    return None


class Snapshot:
    """A cluster as it is now.

    Args:
        cache: Its objects.
        now: When that was, in seconds since 1970.

    """

    def __init__(self, cache: ClusterCache, now: float) -> None:
        self.cache, self.now = cache, now
        self.events = sorted(cache.everything(now), key=_waits)
        """Everything, as an engine hears it: jobs that wait come last."""
        self.conf = next(e.conf for e in self.events if isinstance(e, ConfChanged))
        self._engine: Engine | None = None
        self.reports: list[Report] = []
        """What is wrong with pods that run: two on one chip."""
        self.binds: dict[str, Bind] = {}
        """The jobs that would start now, once that was decided."""
        self.evicted: list[Evict] = []
        """The evictions that a scheduler would ask for."""

    @property
    def engine(self) -> Engine:
        """An engine that knows everything; it decides nothing before ``decide``."""
        if self._engine is None:
            self._engine = Engine((), conf=self.conf.quiet)
            events = [_quiet(each) for each in self.events]
            said = self._engine.handle_all(events, self.now)
            self.reports = [each for each in said if isinstance(each, Report)]
        return self._engine

    def leave_out(self, action: str) -> None:
        """Decide without an action of the configuration."""
        left = tuple(each for each in self.conf.actions if each != action)
        self.conf = replace(self.conf, actions=left)
        self.events = [
            ConfChanged(self.conf) if isinstance(each, ConfChanged) else each
            for each in self.events
        ]

    def decide(self) -> None:
        """Let an engine do what a scheduler would do now."""
        self._engine = engine = Engine((), conf=self.conf)
        self._heed(engine.handle_all(self.events, self.now))
        if self._keep_admitted(engine):
            self._heed(engine.handle_all((), self.now))

    def _keep_admitted(self, engine: Engine) -> bool:
        """Admit the jobs of which the PodGroup is ``Inqueue``; whether there are any.

        The engine admits jobs anew, and may reject one that is admitted already.
        """
        ctx, job_states = engine.context, engine.view.job_states
        rejected = [
            job_states[group.name]
            for group in self.cache.gangs.values()
            if group.name in ctx.pending.unadmitted
            and group.podgroup is not None
            and group.podgroup.status.phase == "Inqueue"
        ]
        for job_state in rejected:
            ctx.pending.leave_class(job_state.job.name)
            admit_job(ctx, job_state)
            job_state.history.why = None
        return bool(rejected)

    def submit(self) -> None:
        """Let the engine hear what was put into the cache since."""
        events = self.cache.events(self.now)
        self._heed(self.engine.handle_all(events, self.now))

    def _heed(self, said: Iterable[Instruction]) -> None:
        for each in said:
            if isinstance(each, Bind):
                self.binds[each.job] = each
            elif isinstance(each, Evict):
                self.evicted.append(each)


def podless_words(look: Snapshot, name: str) -> str:
    """Why a job waits whose pods are not made yet."""
    job_state = look.engine.view.job_states.get(name)
    if job_state is None:
        return "its pods are not created yet"
    words = f"needs {job_state.job.wanted}"
    return (
        words
        if job_state.history.why is None
        else f"{words}; {job_state.history.why.words}"
    )


def _waits(event: Event) -> bool:
    return isinstance(event, JobArrived) and not event.placements


def _quiet(event: Event) -> Event:
    return ConfChanged(event.conf.quiet) if isinstance(event, ConfChanged) else event


async def read_cache(
    api: Api,
    schedulers: Iterable[str] = SCHEDULERS,
    conf: Conf = DEFAULT,
    seen: Callable[[int], None] = lambda _objects: None,
) -> ReadOnlyCache:
    """All objects that count, in a cache. Raises ``Trouble``.

    *seen* is told how many objects there are so far.
    """
    cache = ReadOnlyCache(schedulers, conf)
    wake, troubles = asyncio.Event(), _Troubles()
    listed = list(reflectors(api, cache.handlers, wake.set, troubles.note))
    gc.disable()  # what is read stays
    tasks = [asyncio.create_task(each.run(), name=each.path) for each in listed]
    try:
        while not all(each.synced for each in listed):
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await wake.wait()
            wake.clear()
            seen(sum(map(len, listed)))
            troubles.must_pass()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        gc.freeze()
        gc.enable()
    await _read_records(api, cache)
    return cache


async def _read_records(api: Api, cache: ClusterCache) -> None:
    """Read what is repaired, where the scheduler has its Lease, as far as one may."""
    namespace = await lease_namespace(api, LEASE) or LEASE_NAMESPACE
    store = RecordStore(api, namespace, _silent)
    found = await store.read(lambda: True)
    if found is not None:
        cache.checkpoints.put(found)
    notes: tuple[Note, ...] = (
        RunTimeNote(RunTimes, cache.handover.put_note),
        IdleNote(IdleAccount, cache.handover.put_note),
    )
    for note in notes:
        await NoteStore(api, namespace, note, _silent).read()


def _silent(_what: str, **_facts: object) -> None:
    """Log nothing: a user may have no right to read all of a cluster."""


async def lease_namespace(api: Api, name: str) -> str | None:
    """Where a Lease of this *name* is: of several, the one that was written last.

    None where there is none, or one may not see.
    """
    path = f"{leases_path()}?fieldSelector=metadata.name%3D{name}"
    with suppress(Unreachable, msgspec.DecodeError):
        said = await api.call("GET", path, lane="read")
        found = msgspec.json.decode(said.body, type=_Leases).items if said.ok else []
        if found:
            last = max(found, key=lambda each: each.spec.renew_time or "")
            return last.metadata.namespace
    return None


class _Leases(Struct):
    items: list[Lease] = []


class _Troubles:
    """What does not work while lists are read; most of it passes, some never does."""

    def __init__(self) -> None:
        self._line, self._since = "", 0.0

    def note(self, line: str) -> None:
        """Something does not work."""
        if " is skipped: " in line or line.startswith("watch "):
            return  # the scheduler does not see it either; one look needs no watch
        if not self._line:
            self._since = time.monotonic()
        if not _NEVER.search(self._line):
            self._line = line

    def must_pass(self) -> None:
        """Raise ``Trouble`` if it does not."""
        late = time.monotonic() - self._since > PATIENCE_S
        if self._line and (late or _NEVER.search(self._line)):
            raise Trouble(told(self._line))


def told(line: str) -> str:
    """What does not work, and which right is missing where that is why.

    >>> told("list /api/v1/pods: status 403, pods is forbidden: no")
    'not allowed to list pods; want a role with list of pods; pods is forbidden: no'
    """
    if _UNKNOWN.fullmatch(line):
        return (
            "the API server does not know this user, status 401; "
            "hint: kubectl auth whoami"
        )
    if silent := _SILENT.fullmatch(line):
        return f"the API server {silent[1]} cannot be reached: {_cause(silent[2])}"
    found = _FORBIDDEN.fullmatch(line)
    if found is None:
        return line
    parts = found[1].split("/")
    where = f" in namespace {parts[-2]}" if "namespaces" in parts else ""
    what = f"{parts[-1]}{where}"
    return f"not allowed to list {what}; want a role with list of {what}; {found[2]}"


def _cause(why: str) -> str:
    """Why nothing is heard of a server, with a hint.

    >>> _cause("[Errno 111] Connect call failed ('127.0.0.1', 1)")
    'connection refused; hint: kubectl config view --minify shows which one is meant'
    """
    meant = "kubectl config view --minify shows which one is meant"
    if "CERTIFICATE_VERIFY_FAILED" in why:
        return (
            "its certificate is not of the authority that is trusted; "
            "hint: certificate-authority of the kubeconfig"
        )
    if "Errno 111" in why or "Connection refused" in why:
        why = "connection refused"
    elif "Name or service not known" in why or "name resolution" in why:
        why = "no address is known for its name"
    return f"{why}; hint: {meant}"


def clock() -> float:
    """Seconds since 1970, whole."""
    return float(int(time.time()))
