"""The scheduler on a real cluster: watch, decide, bind, tell. Start at ``run``.

Reflectors tell the cache, the world tells the engine what is new, and what the engine
instructs is carried out. Nothing happens while nothing changes (D25).
"""

import asyncio
import gc
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from inspect import isawaitable
from itertools import islice
from math import inf
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.actions.unstarted import NEVER_RAN
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event, JobArrived, JobGone, TimerFired
from ringleaf.framework.instruction import (
    AskToExit,
    Bind,
    Delete,
    Evict,
    Instruction,
    PersistRepair,
    Repaired,
    Report,
    ReportFaultyPods,
    Verdict,
    WakeAt,
)
from ringleaf.framework.job_state import JobState
from ringleaf.framework.reservations import Reservations
from ringleaf.framework.run_times import RunTimes
from ringleaf.framework.state import SchedulerState
from ringleaf.kube import encode, names
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.binder import SERVER_ERROR, Binder, Bound
from ringleaf.kube.canary import Canary
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.comparer import (
    jobs_that_differ,
    nodes_that_differ,
    slices,
    strangers,
)
from ringleaf.kube.decider import Decider, Mind
from ringleaf.kube.faultbook import Faultbook
from ringleaf.kube.gang_members import place_of
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.idlenote import IdleNote
from ringleaf.kube.leader import LEASE_NAMESPACE, SEEN, Aside, Elector, at_once
from ringleaf.kube.mending import Mender
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.notestore import Note, NoteStore
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.quarantine import Culprit, told, trace_of
from ringleaf.kube.recordstore import RecordStore
from ringleaf.kube.runtimenote import RunTimeNote
from ringleaf.kube.special_jobs import OUTSIDE
from ringleaf.kube.teller import VOLCANO, Teller
from ringleaf.kube.toll import Toll
from ringleaf.kube.watch import Reflector
from ringleaf.kube.watched import reflectors
from ringleaf.model.decision import Waiting
from ringleaf.model.fault import Cause
from ringleaf.model.placement import Placement
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.policies.counting import some_of

SLICE: Final = 64
"""Jobs that are decided before their pods are sent off and the next are looked at."""
GATHER_S: Final = 0.002
"""How long a cycle waits for more of what happens at the same time."""
GATHER_BUSY_S, BUSY_S = 0.015, 0.1
"""How long it does where much happens: the last cycle is not longer ago than that."""
STOP_S: Final = 20.0
"""How long pods in flight may take when the scheduler is asked to end."""
SYNC_S: Final = 60.0
"""How long garbage may pile up before everything there was is known."""
STUCK_S: Final = 60.0
"""A cycle that takes longer is no sign of life."""
BEAT_S: Final = 1.0
"""How often to show that it is alive."""

LATER: Final = frozenset({401, 403, 429})
"""Refusals that may pass."""
REFRESH_S: Final = 5.0
"""How long after a change the reasons of waiting jobs are looked at again."""
REFRESH_COST_S: Final = 0.02
"""How long that may take at a time; the rest has its turn later."""
PODS: Final = "/api/v1/pods"
MARK_S: Final = 2.0
"""How long to wait for the Lease before looking at anything else."""
CATCH_UP_S: Final = 0.5
"""How long a watch may lag behind the leader before us."""
QUICK_S, FLUSH_S = 0.3, 2.0
"""How long the last words may take: while others wait to lead, and at most."""
COMPARE_S: Final = 60.0
"""How often the books are compared with the objects, while something happens."""
LOOK_AGAIN_S: Final = 0.01
"""How long after news that was not heard yet the comparison looks again."""
WRITING: Final = ("faults", "queues", "records", "run times", "idle time")
"""Parts of the work that only a leader has, besides what it tells."""
PART_AGAIN_S: Final = 1.0
"""How long after a failure a part is begun anew."""
QUIET_FAILURES: Final = 8
"""Cycles that may fail one after the other, each with a culprit, without a pause."""
FIRST_PAUSE_S: Final = 0.1
FIRST_STAND_S, MOST_STAND_S = 1.0, 60.0
"""How long after a failure a leader stands for the Lease again."""
QUEUES_S: Final = 5.0
"""How long until the queues that are always there are asked for again."""

MOST_DIGITS: Final = 19
"""Digits of a version that is believed."""
MAX_NAMED: Final = 3
"""Pods that are named in an event on their PodGroup."""

Say = Callable[..., None]
Part = Callable[[], Coroutine[Any, Any, None]]
"""Begins a part of the scheduler's work."""
Look = Callable[[ClusterCache, Engine], Iterable[str]]
"""A step of the comparison: the differences that it finds."""


class Options(Struct, frozen=True):
    """How the scheduler is run.

    Args:
        schedulers: The scheduler names of pods that are ours.
        conf: The configuration of the engine.
        release_s: Seconds after which a gang that was bound in part is released.
        workers: Bindings in flight at a time.
        name: The reporter of events.
        canary: The jobs that are placed, where not all of them are.
        namespace: Where records of repairs are kept: its own.

    """

    schedulers: tuple[str, ...] = (names.SCHEDULER,)
    conf: Conf = DEFAULT
    release_s: float = 60.0
    workers: int = 32
    name: str = "ringleaf"
    canary: Canary | None = None
    namespace: str = LEASE_NAMESPACE


class Scheduler:
    """One scheduler.

    Args:
        api: The API server.
        options: How it is run.
        say: Writes a line of the log: what happened, and its circumstances.
        mind: Wraps the engine that decides.
        elector: Says when it leads; without one it leads from the beginning.
        aside: Runs the elector's work.
        metrics: Counts what happens.

    """

    def __init__(
        self,
        api: Api,
        options: Options,
        say: Say,
        mind: Callable[[Engine], Mind] = lambda engine: engine,
        elector: Elector | None = None,
        *,
        aside: Aside = at_once,
        metrics: Metrics | None = None,
    ) -> None:
        self._api, self._options, self._say = api, options, say
        self.metrics = metrics or Metrics()
        self._epoch = time.time() - time.monotonic()
        self._elector, self._aside = elector, aside
        self.leads = elector is None
        """Whether it decides; one that does not keeps the books."""
        self.led = asyncio.Event()
        """Set while it leads and knows the cluster: others may write."""
        self._conf = options.conf
        self.refused_conf = ""
        """What is wrong with a newer configuration; the last good one counts."""
        self.cache = ClusterCache(options.schedulers, self._own_conf, options.canary)
        self.decider = Decider(self.cache, lambda: self._own_conf, mind)
        self.toll = Toll(self._engine.fault_log, self._engine.repairs)
        self._conflicts: dict[str, Report] = {}
        """What a leader is to be told of, by job."""
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        self._wake_at: float | None = None
        self.failure: BaseException | None = None
        """Why a part of it ended that should not have."""
        self._waiting: dict[str, None] = {}
        """Jobs that were told why they wait."""
        self._stale: dict[str, None] = {}
        """Of those, the ones whose reasons may no longer be true."""
        self._seen = -1
        self._refresh_at: float | None = None
        self._stamp = 0
        self._version = -1
        self._last_cycle = self.now()
        self._failures = 0
        """Cycles that failed, one after the other."""
        self._half: dict[str, float] = {}
        self._doubts = asyncio.Event()
        """Set when the books are to be compared with the objects soon."""
        self._compared = 0
        self._looks: list[Look] = []
        """Steps of the comparison that are left, the next one last."""
        self._reflectors = list(
            reflectors(
                api,
                self.cache.handlers,
                self._wake.set,
                lambda line: self._say("trouble", message=line),
            )
        )
        self._pods = next(r for r in self._reflectors if r.path == PODS)
        self._listed_after = ""
        """The version of a Lease whose holder's time was over when pods were listed."""
        self._listing = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.binder = Binder(
            api,
            self.cache,
            self.now,
            done=self._bound,
            changed=self._wake.set,
            say=say,
            ended=self._task_ended,
            workers=options.workers,
        )
        self.teller = Teller(
            api,
            self.cache,
            lambda: self._mind.view,
            self.now,
            is_binding=lambda: self.binder.in_flight > 0,
            name=options.name,
            say=say,
        )
        self.book = Faultbook(
            api,
            self.cache,
            lambda: self._engine.fault_log.everything,
            self.now,
            say,
            changed=self._wake.set,
            braked=self._braked,
            deletions=lambda: self._engine.deletions,
        )
        self._notes = [
            NoteStore(api, options.namespace, note, say) for note in self._kept()
        ]
        self._records = RecordStore(api, options.namespace, say)
        self._mender = Mender(
            api,
            self.cache,
            self.binder,
            self.teller,
            self.book,
            store=self._records,
            clock=self.now,
            say=say,
            ended=self._task_ended,
        )

    def now(self) -> float:
        """Seconds since 1970; it never goes backwards."""
        return self._epoch + time.monotonic()

    @property
    def _engine(self) -> Engine:
        return self.decider.engine

    @property
    def _mind(self) -> Mind:
        return self.decider.mind

    @property
    def _own_conf(self) -> Conf:
        """The configuration that counts for the engine."""
        return self._conf if self.leads else self._conf.quiet

    def reconfigure(self, conf: Conf) -> None:
        """Decide by *conf* from now on."""
        self._conf, self.refused_conf = conf, ""
        self.metrics.reloads["good"] += 1
        self._put_own_conf()
        self._wake.set()

    def refuse_conf(self, why: str) -> None:
        """A newer configuration is bad; the last good one counts."""
        self.refused_conf = why
        self.metrics.reloads["bad"] += 1

    @property
    def view(self) -> SchedulerState:
        """What the engine knows."""
        return self._mind.view

    @property
    def reservations(self) -> Reservations:
        """The reservations of the engine, and what they cost."""
        return self._engine.cycle.reservations

    @property
    def run_times(self) -> RunTimes:
        """How long jobs ran that have ended, as the engine knows it."""
        return self._engine.run_times

    def _kept(self) -> Iterator[Note]:
        """What is kept for the next leader."""
        decider, read = self.decider, self._note_read
        yield RunTimeNote(lambda: decider.run_times, read)
        yield IdleNote(lambda: decider.idle_account(self.now()), read)

    def _note_read(self, note: Event) -> None:
        """Have the engine hear what was read, though nothing else may happen."""
        self.cache.handover.put_note(note)
        self._wake.set()

    @property
    def reflectors(self) -> Sequence[Reflector[Any]]:
        """The reflectors, one for each kind."""
        return self._reflectors

    def remaining(self) -> float:
        """Seconds for which no other scheduler can lead."""
        return inf if self._elector is None else self._elector.remaining()

    @property
    def n_half_bound(self) -> int:
        """Gangs of which too few pods are bound."""
        return len(self._half)

    def stop(self) -> None:
        """End soon: nothing more is decided, what is in flight finishes."""
        self._stop.set()
        self._wake.set()

    @property
    def is_synced(self) -> bool:
        """Whether everything there was is known."""
        return all(reflector.synced for reflector in self._reflectors)

    def live(self) -> tuple[bool, dict[str, str]]:
        """Whether it does its work; it may be asked on any thread."""
        silent = self.now() - self._last_cycle
        stuck = self._wake.is_set() and silent > STUCK_S
        return not stuck, {"cycle": f"{silent:.0f} s ago"}

    def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether it may be relied on; it may be asked on any thread."""
        elector = self._elector
        lease = [] if elector is None else [elector.reflector]
        missing = [r.path for r in (*lease, *self._reflectors) if not r.synced]
        told = dict.fromkeys(missing, "not listed yet")
        if elector is not None and elector.trouble:
            told["lease"] = elector.trouble
        if self.refused_conf:
            told["configuration"] = self.refused_conf
        told["role"] = "leader" if self.leads else "standby"
        return not missing and not self._stop.is_set(), told

    async def run(self) -> None:
        """Schedule until asked to stop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        gc.disable()  # what is read at first stays
        loop.call_later(SYNC_S, gc.enable)
        try:
            await self._look_around()
            self._start(self.teller.run, "teller")
            await self._synced()
            await self._read_faults()
            await self._cycle()
            gc.freeze()
            gc.enable()
            self._start(self._compare, "comparer")
            if self._elector is None:
                self.led.set()
                self._begin_to_write()
            elif not self._stop.is_set():
                self._start(partial(self._stand, self._elector), "leader")
            while not self._stop.is_set():
                await self._cycle()
            await self._end()
        finally:
            gc.enable()
            self._mender.abandon()
            self.binder.abandon()
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
        self._say("stopped", bound=self.binder.n_bound)

    def _start(self, part: Part, name: str) -> None:
        """Begin a part of the work, which goes on as long as the scheduler."""
        task = asyncio.get_running_loop().create_task(part(), name=name)
        task.add_done_callback(partial(self._part_ended, part))
        self._tasks[name] = task

    def _part_ended(self, part: Part, task: "asyncio.Task[None]") -> None:
        """A part that fails is begun anew a moment later.

        The part that leads contains what fails in it; were it to end all the same, it
        would be unknown who leads, and we end.
        """
        name = task.get_name()
        if self._task_ended(task) and self._tasks.get(name) is task:
            if name == "leader":
                self.failure = task.exception()
                self.stop()
                return
            again = partial(self._begin_anew, part, task)
            asyncio.get_running_loop().call_later(PART_AGAIN_S, again)

    def _begin_anew(self, part: Part, ended: "asyncio.Task[None]") -> None:
        name = ended.get_name()
        if self._tasks.get(name) is ended and not self._stop.is_set():
            for reflector in self._reflectors:
                if name.startswith(f"{reflector.path} "):
                    reflector.renew()  # what it was about to pass on may be lost
            self._start(part, name)

    async def _look_around(self) -> None:
        """Begin to watch everything, the Lease first."""
        elector = self._elector
        if elector is not None:
            self._api.fence = elector.remaining
            self._start(partial(self._beat, elector), "beat")
            watched = elector.reflector
            self._start(lambda: self._aside(watched.run()), watched.path)
            with suppress(TimeoutError):
                async with asyncio.timeout(MARK_S):
                    await self._aside(elector.known())
            elector.mark()
        for number, reflector in enumerate(self._reflectors):
            self._start(reflector.run, f"{reflector.path} {number}")

    async def _beat(self, elector: Elector) -> None:
        """Show that something is done here; one that is stuck must not lead."""
        beat = time.monotonic()
        elector.well = lambda: time.monotonic() - beat < STUCK_S
        while True:
            beat = time.monotonic()
            await asyncio.sleep(BEAT_S)

    async def _end(self) -> None:
        """Finish what was begun, and release the Lease."""
        elector = self._elector
        self._say("stopping", in_flight=self.binder.in_flight)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._mender.drained()
                await self.binder.drained()
                await self._flush(QUICK_S if elector is not None else FLUSH_S)
        if elector is not None and "leader" in self._tasks:
            with suppress(TimeoutError):
                async with asyncio.timeout(CATCH_UP_S):
                    await _until(self._is_sure)
            self._tasks["leader"].cancel()
            # One that did not lead yet may not know what the leader before it bound.
            sure = self.leads and self._is_sure()
            seen = str(self._pods.latest) if sure else ""
            await self._aside(elector.release(seen))
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self.teller.flush(FLUSH_S)

    async def _flush(self, timeout_s: float) -> None:
        """Write, for a short while, what was not written yet of faults and statuses."""
        if self.leads:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    notes = (note.flush() for note in self._notes)
                    await asyncio.gather(self.book.flush(), *notes)
        await self.teller.flush(timeout_s)

    def _is_sure(self) -> bool:
        """Whether the watch has shown every pod where we sent it."""
        return all(pod.assumed is None for pod in self.cache.pods.values())

    # Leading.

    async def _stand(self, elector: Elector) -> None:
        """Stand by until no other scheduler leads, lead, and stand by again.

        If something fails inside, the Lease runs out, and another replica may do
        better. This one stands for it again after a pause, which doubles each time.
        """
        pause_s = FIRST_STAND_S
        while True:
            early = self._tasks.get("early")
            if early is None or early.done():
                self._start(partial(self._look_early, elector), "early")
            try:
                why = await self._lead(elector)
            except Exception as error:  # noqa: BLE001 - whatever it is, watches go on
                self._log_failed("leader", error)
                await self._step_down(elector, f"it failed: {told(error)}")
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, MOST_STAND_S)
            else:
                await self._step_down(elector, why)
                pause_s = FIRST_STAND_S

    async def _lead(self, elector: Elector) -> str:
        """Lead once no other scheduler does; return, in words, why we no longer do."""
        await self._aside(elector.acquire())
        kept = asyncio.create_task(self._keep(elector), name="lease")
        try:
            if not elector.was_vacant:
                await self._catch_up(elector)
                await self._read_faults()
            if elector.leads:
                self._take_the_lead(elector)
            return await kept
        finally:
            kept.cancel()

    async def _keep(self, elector: Elector) -> str:
        """Renew the Lease; return why we no longer lead."""
        return await self._aside(elector.keep())

    async def _step_down(self, elector: Elector, why: str) -> None:
        """Stand by: nothing more is sent, and what was decided counts for nothing.

        The watches go on, and so do the books. They hold what the objects say, as
        those of a scheduler that has never led. A step that fails is logged, and the
        others are taken.
        """
        led, self.leads = self.leads, False
        self.led.clear()
        await self._contain("requests", self._api.cut)
        await self._contain("configuration", self._put_own_conf)
        self._say("deposed", identity=elector.identity, why=why)
        writing = [self._tasks.pop(name, None) for name in (*WRITING, "teller")]
        for task in filter(None, writing):
            task.cancel()
        await self._contain("repairs", self._mender.abandoned)
        await self._contain("bindings", self.binder.abandoned)
        await asyncio.gather(*filter(None, writing), return_exceptions=True)
        if led:
            await self._contain("decisions", self._forget_decisions)
        self._start(self.teller.run, "teller")
        await self._contain("lease", lambda: self._aside(elector.step_down()))
        self._api.sign(elector.identity)

    async def _contain(self, what: str, step: Callable[[], object]) -> None:
        """Take a step; one that fails is logged, and stops no other."""
        try:
            found = step()
            if isawaitable(found):
                await found
        except Exception as error:  # noqa: BLE001 - whatever it is
            self._log_failed(what, error)

    def _put_own_conf(self) -> None:
        """Have the engine hear of the configuration that counts for it."""
        self.cache.reconfigure(self._own_conf)

    def _forget_decisions(self) -> None:
        """Know what one knows that has never led."""
        for kept in (self._waiting, self._stale, self._half, self._conflicts):
            kept.clear()
        self._refresh_at = None
        try:
            self.teller.forget()
            self.cache.stand_by(self._mind.view, self.toll.repairs)
            now = self.now()
            events = self.decider.news(now)
            self._follow()
            self.metrics.heard(events)
            self.toll.hear(events)
            self._keep_conflicts(events, self._mind.handle_all(events, now, SLICE))
        except Exception as error:  # noqa: BLE001 - as in a cycle
            self._recover(error)

    async def _catch_up(self, elector: Elector) -> None:
        """Know of every pod that the leader before us bound."""
        before = elector.taken_from
        given_up = before is not None and not before.holder
        noted = before.metadata.annotations if before and given_up else None
        seen = (noted or {}).get(SEEN, "")
        if seen.isdecimal() and len(seen) <= MOST_DIGITS:
            with suppress(TimeoutError):
                async with asyncio.timeout(CATCH_UP_S):
                    await _until(lambda: self._pods.version >= int(seen))
                    return
        await self._list_pods_after(before.metadata.resource_version if before else "")
        await _until(lambda: self._pods.synced or not elector.leads)

    async def _look_early(self, elector: Elector) -> None:
        """List pods anew as soon as another leader can bind no more.

        That is a moment before we may lead; where it leads on, nothing is lost.
        """
        while silent := await self._aside(elector.silent(self._listed_after)):
            await self._list_pods_after(silent)

    async def _list_pods_after(self, lease: str) -> None:
        """Begin to list pods anew, unless that was done for this version of a Lease."""
        async with self._listing:
            if lease and lease == self._listed_after:
                return
            name = next(n for n in self._tasks if n.startswith(f"{self._pods.path} "))
            self._tasks[name].cancel()
            await asyncio.gather(self._tasks[name], return_exceptions=True)
            self._pods.renew()
            self._start(self._pods.run, name)
            self._listed_after = lease

    def _take_the_lead(self, elector: Elector) -> None:
        """Decide from now on, and tell what a leader tells."""
        self.leads = True
        self.led.set()
        self._put_own_conf()
        now = self.now()
        for group in self.cache.gangs.values():
            self._tell_group(group, now)
        conflicts, self._conflicts = self._conflicts, {}
        for report in conflicts.values():
            try:
                self._report(report)
            except Exception as error:  # noqa: BLE001 - one bad job stops no other
                self._log_failed(f"Job {report.job}", error)
        self._doubts.set()
        self._begin_to_write()
        self._say("leads", identity=elector.identity)
        self._wake.set()

    async def _read_faults(self) -> None:
        """Read the records of repairs and faults that the last leader wrote.

        What fails is logged, and counts as not written: a scheduler without records
        is better than none.
        """
        try:
            await self._read_records()
        except Exception as error:  # noqa: BLE001 - records may be anything
            self._log_failed("records of repairs and faults", error)

    async def _read_records(self) -> None:
        records = await self._records.read(self._is_pointless)
        if records is not None:
            self.cache.checkpoints.put(records, moves=not self._records.is_moved)
        if self._options.canary is None:  # else another scheduler keeps that book
            await self.book.read()
            await asyncio.gather(*(note.read() for note in self._notes))

    def _is_pointless(self) -> bool:
        """Whether it is about to end, or leads no more after it began to."""
        is_leader = "leader" not in self._tasks or self.remaining() > 0
        return self._stop.is_set() or not is_leader

    def _begin_to_write(self) -> None:
        """Write what only a leader writes, and what is there for its own sake."""
        self._start(self._make_queues, "queues")
        self._start(self._mender.run, "records")
        if self._options.canary is None:
            self._start(self.book.run, "faults")
            for note in self._notes:
                self._start(note.run, note.title)

    def _task_ended(self, task: "asyncio.Task[None]") -> bool:
        """Say of a task that failed why; whether it did."""
        error = None if task.cancelled() else task.exception()
        if error is None:
            return False
        self._log_failed(task.get_name(), error)
        return True

    def _log_failed(self, culprit: str, error: BaseException) -> None:
        """Log and count a failure inside."""
        self._say("failed", culprit=culprit, why=told(error), trace=trace_of(error))
        self.metrics.failures += 1

    async def _synced(self) -> None:
        """Until everything there was is known."""
        while not (self.is_synced or self._stop.is_set()):
            await self._wake.wait()
            self._wake.clear()
        self._wake.set()
        if not self._stop.is_set():
            cache = self.cache
            self._say("synced", nodes=cache.n_nodes, pods=len(cache.pods))

    def _braked(self) -> list[str]:
        repairs = self._engine.repairs
        return [name for name, each in repairs.items() if each.rate_limited]

    async def _cycle(self) -> None:
        """Wait for something to happen, and decide; what fails is set aside."""
        try:
            await self._decide()
            self._failures = 0
        except Exception as error:  # noqa: BLE001 - whatever it is, others go on
            self._recover(error)
            self._failures += 1
            if self._failures > QUIET_FAILURES:
                pause = FIRST_PAUSE_S * 2 ** min(self._failures - QUIET_FAILURES, 6)
                await asyncio.sleep(pause)

    def _recover(self, error: Exception) -> None:
        """Set aside what *error* is about, and begin anew from the objects."""
        found = list[Culprit]()
        try:
            found = self.decider.recover(error, self.now())
        except Exception as another:  # noqa: BLE001 - it is tried again
            self._log_failed("recovery", another)
        named = ", ".join(f"{each.kind} {each.key}" for each in found) or "unknown"
        self._log_failed(named, error)
        others = [f for f in self.cache.isolation.failures if f.culprit not in found]
        self.cache.isolation.failures[:] = others
        self._note_rebuild()

    def _note_rebuild(self) -> None:
        """A new engine is to hear everything."""
        self.metrics.rebuilds += 1
        self._wake_at, self._seen, self._version = None, -1, -1
        self._wake.set()

    def _follow(self) -> None:
        """The engine may be a new one."""
        if self.toll.book is not self._engine.fault_log:
            self.toll.follow(self._engine.fault_log, self._engine.repairs)

    async def _hand_over(self) -> list[Instruction]:
        """Have the next engine hear everything; others have turns in between.

        What it says is carried out with what it decides then.
        """
        now = self._last_cycle = self.now()
        said, spent_s, n_heard = list[Instruction](), 0.0, 0
        parts = self.decider.hand_over(now)
        while True:
            began = time.perf_counter()
            events, found = next(parts, (None, []))
            spent_s += time.perf_counter() - began
            if events is None:
                break
            self.metrics.heard(events)
            self.toll.hear(events)
            said += found
            n_heard += len(events)
            await asyncio.sleep(0)
        self._follow()
        self.cache.isolation.engine_began(spent_s, self.now())
        self._say("rebuilt", events=n_heard, seconds=round(spent_s, 3))
        return said

    def _news_at(self, now: float) -> list[Event]:
        """What the engine has not heard yet."""
        events = self.decider.news(now)
        if self._wake_at is not None and self._wake_at <= now:
            self._wake_at = None
            events.append(TimerFired())
        return events

    async def _compare(self) -> None:
        """Hold the books against the objects now and then, while something happens.

        After a hand-over they are compared whether or not anything was heard since.
        """
        while True:
            doubted = False
            with suppress(TimeoutError):
                async with asyncio.timeout(COMPARE_S):
                    doubted = await self._doubts.wait()
            self._doubts.clear()
            if doubted or self.metrics.n_heard != self._compared:
                self._compared = self.metrics.n_heard
                await self._compare_once()

    async def _compare_once(self) -> None:
        """Compare everything, a few jobs at a time; others have turns in between.

        Steps are taken where all news was heard. While much happens there may be no
        such moment between two cycles, so cycles take steps at their end as well.
        """
        groups = slices(self.cache.gangs)
        jobs = [partial(jobs_that_differ, names=few) for few in groups]
        self._looks = [*reversed(jobs), strangers, nodes_that_differ]
        while self._looks:
            can_look = self.decider.may_be_compared
            self._compare_some()
            await asyncio.sleep(0 if can_look else LOOK_AGAIN_S)

    def _compare_some(self) -> bool:
        """Take one step, if one is due; whether the engine begins anew."""
        if not (self._looks and self.decider.may_be_compared):
            return False
        look = self._looks.pop()
        found = [*islice(look(self.cache, self._engine), MAX_NAMED)]
        if not found:
            return False
        self._looks.clear()
        self._say("cache differs from the objects", what="; ".join(found))
        self.metrics.differences += 1
        self.decider.begin_anew()
        self._note_rebuild()
        return True

    async def _decide(self) -> None:
        """Wait for something to happen, and decide."""
        await self._sleep()
        if not self._mind.is_cut_short:
            busy = self.now() - self._last_cycle < BUSY_S
            await asyncio.sleep(GATHER_BUSY_S if busy else GATHER_S)
        if self._stop.is_set():
            return
        self._wake.clear()
        said = await self._hand_over() if self.decider.begins_anew else []
        now = self._last_cycle = self.now()
        began = time.perf_counter()
        events = self._news_at(now)
        if events and self._refresh_at is None and self._waiting:
            self._refresh_at = now + REFRESH_S
        if events or self._mind.is_cut_short:
            news = self._news(events) if self.leads else {}
            self.metrics.heard(events)
            self.toll.hear(events)
            thinks = time.perf_counter()
            found = [*said, *self._mind.handle_all(events, now, SLICE)]
            thought_s = time.perf_counter() - thinks
            if not self.leads:
                self._keep_conflicts(events, found)
                self._compare_some()
                return
            self._tell_story(news, found)
            self._carry_out(found)
            self.book.heed(events, found)
            self._count(found, thought_s, time.perf_counter() - began)
            if self._compare_some():
                return
            if self._mind.is_cut_short:
                self._wake.set()
                await asyncio.sleep(0)
        if not self.leads:
            self._log_failures()
            return
        self._tell_news(now)
        if self._refresh_at is not None and self._refresh_at <= now:
            self._refresh_reasons(now)

    def _keep_conflicts(
        self, events: Iterable[Event], instructions: Iterable[Instruction]
    ) -> None:
        """Keep, on standby, only the reports of conflicts that still exist."""
        for event in events:
            if isinstance(event, JobGone):
                self._conflicts.pop(event.job, None)
        for each in instructions:
            if isinstance(each, Report):
                self._conflicts[each.job] = each
            elif isinstance(each, WakeAt):
                self._wake_at = each.at
        self.cache.problems.drop_solved()
        self.cache.take_changed()
        self.cache.checkpoints.orphaned.clear()
        self._log_failures()

    def _refresh_reasons(self, now: float) -> None:
        """Say anew why some jobs wait: what they were told may no longer be so.

        The engine looks at a waiting job again only when that may help it.
        """
        view = self._mind.view
        if self._seen != view.cluster.version:
            self._seen = view.cluster.version
            self._stale = dict.fromkeys(self._waiting)
        end = time.monotonic() + REFRESH_COST_S
        for name in list(self._stale):
            if time.monotonic() > end:
                break
            del self._stale[name]
            job_state = view.job_states.get(name)
            if job_state is None or not _lacks_nodes(job_state):
                self._waiting.pop(name, None)
                continue
            if job_state.history.why is not None:
                continue  # it waits for its queue, not for nodes
            found = self._mind.explain(name, hints=False)
            if isinstance(found, Waiting):
                lacking, n_nodes = (
                    job_state.facts.min_pods - job_state.ready,
                    len(view.cluster),
                )
                self.metrics.waits(name, found.reasons, n_nodes, lacking)
                self.teller.waits(name, found.message)
        self._refresh_at = now + REFRESH_S if self._stale else None

    async def _sleep(self) -> None:
        """Until something happens, or it is time."""
        times = (self._wake_at, self.cache.next_at, self._refresh_at)
        ends = [at for at in times if at is not None]
        ends += [since + self._options.release_s for since in self._half.values()]
        wait = max(0.0, min(ends) - self.now()) if ends else None
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._wake.wait()

    def _count(
        self, said: Iterable[Instruction], thought_s: float, took_s: float
    ) -> None:
        """Count what was decided, and how long it took."""
        view = self._mind.view
        self.metrics.decided(said, view.job_states, len(view.cluster), thought_s)
        self.metrics.cycle_ms.observe(1000 * took_s)
        self.toll.note(said, self._last_cycle)

    def _news(self, events: Iterable[Event]) -> dict[str, dict[str, object]]:
        """Jobs of ours that arrive or end, with what is to be said of each."""
        known, news = self._mind.view.job_states, dict[str, dict[str, object]]()
        for event in events:
            if isinstance(event, JobArrived):
                job = event.job
                news.pop(job.name, None)  # it has changed, and has not ended
                if job.name not in known and not event.placements:
                    facts = {"queue": job.queue, "pods": job.replicas or None}
                    news[job.name] = {"event": "arrived", **facts}
            elif isinstance(event, JobGone):
                job_state = known.get(event.job)
                if job_state is not None and job_state.job.queue != OUTSIDE:
                    began = job_state.started if job_state.placements else None
                    ran = None if began is None else round(self.now() - began, 1)
                    news[event.job] = {"event": "ended", "ran": ran}
        return news

    def _tell_story(
        self, news: dict[str, dict[str, object]], said: Iterable[Instruction]
    ) -> None:
        """Say of jobs that they arrived or ended; of those bound at once, that only."""
        at_once = {each.job for each in said if isinstance(each, Bind)}
        for job, facts in news.items():
            what = str(facts.pop("event"))
            if what == "ended" or job not in at_once:
                self._say(what, job=job, **facts)

    def _carry_out(self, instructions: Iterable[Instruction]) -> None:
        for each in instructions:
            match each:
                case Bind():
                    self._bind(each)
                case Evict():
                    self._evict(each)
                case Delete() if each.cause in (NEVER_RAN, Cause.REFUSAL):
                    self._take_back(each)
                case (
                    Delete()
                    | ReportFaultyPods()
                    | PersistRepair()
                    | AskToExit()
                    | Repaired()
                ):
                    self._mender.carry_out(each)
                case Report():
                    self._report(each)
                case WakeAt():
                    self._wake_at = each.at
        for job in self._mind.admitted:
            self.cache.assumed.admit(job)
            group = self.cache.gangs.get(job)
            # Its pods are made when its phase says so; with pods it soon says more.
            waits = group is not None and len(group.pods) < group.need
            if waits:
                self._say("admitted", job=job)
            self.teller.group_changed(job, is_urgent=waits)

    def _bind(self, each: Bind) -> None:
        self._waiting.pop(each.job, None)
        now, group = self.now(), self.cache.gangs[each.job]
        numbered, items = group.by_number(), list[Bound]()
        for placement, given in zip(each.placements, each.annotations, strict=True):
            pod = numbered[placement.replica]
            self._stamp = max(self._stamp + 1, time.time_ns())
            facts = self.cache.nodes[placement.node]
            written = encode.written(pod, placement, given, facts, self._stamp)
            if self._elector is not None:
                written[names.LEADER] = self._elector.identity
            items.append(Bound(pod, placement, written))
        # From here on its chips are held until the API server answers.
        self.cache.assumed.assume(each.job, each.placements)
        self.binder.bind(items)
        group.binding = replace(group.binding, sent_at=now)
        self.metrics.sent(now - self._mind.view.job_states[each.job].job.created)
        warnings = "; ".join(each.warnings)
        nodes = len({placement.node for placement in each.placements})
        self._say("bind", job=each.job, pods=len(items), nodes=nodes, warnings=warnings)
        self.teller.warns(each.job, each.warnings)
        self.teller.group_changed(each.job)

    def _bound(self, pod: PodState, placement: Placement) -> None:
        now, group = self.now(), self.cache.gangs.get(pod.job)
        sent_at = (group and group.binding.sent_at) or now
        self.metrics.bound(now - pod.created, now - sent_at)
        self.teller.placed(pod, placement)

    def _evict(self, each: Evict) -> None:
        group = self.cache.gangs.get(each.job)
        if group is None:
            return
        pods = self.cache.assumed.evict(each.job, each.replicas)
        why = f"Pod is evicted by {each.action} for job {each.by!r}"
        self._say("evict", job=each.job, pods=len(pods), by=each.by, action=each.action)
        self.teller.on_group(group, "Evict", why)
        refused = self.metrics.refused
        self.binder.evict(
            pods, why, self.teller.evicted, lambda: refused.update([each.action])
        )

    def _report(self, each: Report) -> None:
        message = _with_hint(each.message, each.hint)
        if each.verdict is Verdict.WAITING:
            self._waiting[each.job] = None
        self._say("report", job=each.job, verdict=each.verdict.value, message=message)
        self.teller.warns(each.job, each.warnings)
        group = self.cache.gangs.get(each.job)
        if each.verdict is Verdict.CONFLICT:
            if group is not None:
                self.teller.conflict(group, message)
            return
        if each.verdict is Verdict.QUARANTINED:
            self.teller.on_node(each.node, "Quarantined", message)
            return
        if each.verdict is Verdict.RELEASED:
            return  # it was said where it was done
        if each.verdict is Verdict.REPAIRING:
            if group is not None:
                self.teller.on_group(group, "Faulty", f"{message}{_names(group)}")
            return
        if each.verdict is Verdict.RATE_LIMITED:
            if group is not None:
                self.teller.on_job(group, "RateLimited", message)
            return
        self.teller.waits(each.job, message)

    def _take_back(self, each: Delete) -> None:
        """Delete pods that never ran, of which others are made then."""
        group = self.cache.gangs.get(each.job)
        if group is None:
            return
        refused = each.cause == Cause.REFUSAL
        pods = [
            pod
            for pod in group.pods.values()
            if pod.number in each.replicas
            and not pod.deleting
            and (pod.refused if refused else pod.holds or pod.assumed is not None)
        ]
        kept = [pod for pod in pods if not pod.owned]
        if kept:
            told = f"{_where(kept)}{each.why}"
            told = f"{told}; it stays, because no controller would create it again"
            hint = "delete it, and submit it again"
            self._say("not released", job=each.job, pods=len(kept), why=each.why)
            self.teller.on_job(group, "NotReleased", _with_hint(told, hint))
            pods = [pod for pod in pods if pod.owned] if refused else []
        if not pods:
            return
        self._say("release", job=each.job, pods=len(pods), why=each.why)
        self.metrics.releases += not refused
        told = f"{_where(pods)}{each.why}" if refused else each.why
        self.teller.on_job(group, "Refused" if refused else "Released", told)
        self.binder.delete(pods)

    def _tell_news(self, now: float) -> None:
        """What else has changed, and what is to be released."""
        cache = self.cache
        for problem in cache.problems.unreported:
            where = f"{problem.namespace}/{problem.name}".lstrip("/")
            pod = cache.pods.get(problem.uid)
            self._say(
                "problem",
                kind=problem.kind,
                object=where,
                job=pod and pod.job,
                message=problem.message,
            )
            self.metrics.problems[problem.kind] += 1
            if self._options.canary is None:
                self.teller.problem(problem)
        cache.problems.unreported.clear()
        self._mender.remove_records()
        for group in cache.take_changed():
            self._tell_group(group, now)
        if self._version != self._mind.view.version:
            self._version = self._mind.view.version
            if self._options.canary is None:
                self.teller.queues_changed()
        due = now - self._options.release_s
        for name in [name for name, since in self._half.items() if since <= due]:
            self._release(name, now)
        self._log_failures()

    def _log_failures(self) -> None:
        """Log and count what failed while objects were read, leader or standby."""
        for failure in self.cache.isolation.failures:
            where = f"{failure.culprit.kind} {failure.culprit.key}"
            self._say(
                "quarantined", culprit=where, why=failure.why, trace=failure.trace
            )
            self.metrics.failures += 1
        self.cache.isolation.failures.clear()

    def _tell_group(self, group: GangState, now: float) -> None:
        """Report what changed of a group; one that fails is set aside."""
        try:
            self._note_group(group, now)
        except Exception as error:  # noqa: BLE001 - one bad job stops no other
            self.cache.isolation.set_aside([Culprit("Job", group.name)], error)

    def _note_group(self, group: GangState, now: float) -> None:
        if group.status.not_ready:
            self.teller.waits(group.name, group.status.not_ready)
        self.teller.group_changed(group.name)
        self._note_half(group, now)
        self._note_arrival(group, now)
        self._mender.finish(group)

    def _note_arrival(self, group: GangState, now: float) -> None:
        """Say when all pods that were sent are known to be on their nodes."""
        if group.binding.sent_at and group.has_arrived:
            seconds = now - (group.binding.complete_since or group.binding.sent_at)
            group.binding = replace(group.binding, complete_since=0.0, sent_at=0.0)
            self.metrics.time_to_bind_s.observe(seconds)
            pods, seconds = sum(p.holds for p in group.pods.values()), round(seconds, 3)
            self._say("bound", job=group.name, pods=pods, seconds=seconds)

    def _note_half(self, group: GangState, now: float) -> None:
        if group.is_half_bound:
            self._half.setdefault(group.name, now)
        else:
            self._half.pop(group.name, None)

    def _release(self, name: str, now: float) -> None:
        """Give up a gang that was bound in part and cannot be completed."""
        group = self.cache.gangs.get(name)
        if group is None or not group.is_half_bound:
            del self._half[name]
            return
        self._half[name] = now  # released again if the deletions fail
        if any(pod.assumed is not None for pod in group.pods.values()):
            return  # others are on their way, and may make it whole
        pods = [pod for pod in group.pods.values() if pod.holds and not pod.deleting]
        bound = f"{len(pods)} of {group.need} pods were bound"
        why = f"{bound}, and there is no node for the others"
        self._say("release", job=name, pods=len(pods), why=why)
        self.metrics.releases += 1
        self.teller.on_group(group, "Released", why)
        self.binder.delete(pods)

    async def _make_queues(self) -> None:
        """The queues that are always there, as Volcano's scheduler makes them."""
        if self._options.canary is not None:
            return  # the scheduler of the other jobs has made them
        for name, spec in (
            ("root", {"reclaimable": False, "weight": 1}),
            (DEFAULT_QUEUE, {"reclaimable": True, "weight": 1}),
        ):
            body = encode.encode(
                {
                    "apiVersion": "scheduling.volcano.sh/v1beta1",
                    "kind": "Queue",
                    "metadata": {"name": name},
                    "spec": spec,
                }
            )
            while True:
                with suppress(Unreachable):
                    path = f"{VOLCANO}/queues"
                    answer = await self._api.call("POST", path, body, lane="tell")
                    if answer.status < SERVER_ERROR and answer.status not in LATER:
                        break
                await asyncio.sleep(QUEUES_S)


async def _until(condition: Callable[[], bool]) -> None:
    """Return when *condition* holds."""
    while not condition():  # noqa: ASYNC110 - it is rare, and short
        await asyncio.sleep(CATCH_UP_S / 50)


def _with_hint(message: str, hint: str) -> str:
    return f"{message}; hint: {hint}" if hint else message


def _names(group: GangState) -> str:
    """The names of the pods because of which a job is repaired, by their numbers."""
    numbers = (
        []
        if group.repair.record is None
        else [a.replica for a in group.repair.record.ailments]
    )
    known = group.by_number()
    told = [f"pod {n} is {known[n].name!r}" for n in numbers if n in known]
    return f"; {some_of(told, MAX_NAMED)}" if told else ""


def _lacks_nodes(job_state: JobState) -> bool:
    """Whether a job waits for nodes: for all its pods, or for some that it lacks."""
    runs = job_state.placements and not job_state.below_min_available
    return not (runs or job_state.job.podless)


def _where(pods: Iterable[PodState]) -> str:
    """Pods with their nodes, before what is said of them."""
    told = [f"pod {pod.name!r} on node {place_of(pod)!r}" for pod in pods]
    return f"{some_of(told, MAX_NAMED)}: "
