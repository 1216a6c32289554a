"""The scheduler on a real cluster: watch, decide, bind, report. Start at ``run``.

Reflectors call the handlers of the cache, the cache tells the engine what is new, and
what the engine instructs is carried out: ``DecisionLoop``. ``Leadership`` stands for
the Lease and says when to lead; ``LeaderState`` is kept for the next leader.
"""

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import Struct

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event
from ringleaf.framework.state import SchedulerState
from ringleaf.kube import names
from ringleaf.kube.api import Api
from ringleaf.kube.binder import Binder
from ringleaf.kube.canary import Canary
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.decider import Decider, EngineInterface
from ringleaf.kube.decision_loop import DecisionLoop, LoopState
from ringleaf.kube.default_queues import create_default_queues
from ringleaf.kube.fault_store import FaultStore
from ringleaf.kube.idle_note import IdleNote
from ringleaf.kube.leader import LEASE_NAMESPACE, Elector, Runner, at_once
from ringleaf.kube.leader_state import LeaderState
from ringleaf.kube.leadership import CATCH_UP_S, STUCK_S, Contain, Leadership, until
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.note_store import Note, NoteStore
from ringleaf.kube.pod_state import PodState
from ringleaf.kube.record_store import RecordStore
from ringleaf.kube.reflectors import reflectors
from ringleaf.kube.repair_executor import RepairExecutor
from ringleaf.kube.run_time_note import RunTimeNote
from ringleaf.kube.service import KubeService, Say
from ringleaf.kube.status_writer import StatusWriter
from ringleaf.kube.writers import Writers
from ringleaf.model.placement import Placement

STOP_S: Final = 20.0
"""How long pods in flight may take when the scheduler is asked to end."""
SYNC_S: Final = 60.0
"""How long garbage may pile up before everything there was is known."""
PODS: Final = "/api/v1/pods"
QUICK_S, FLUSH_S = 0.3, 2.0
"""How long the last words may take: while others wait to lead, and at most."""


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


class Scheduler(KubeService):
    """One scheduler.

    Args:
        api: The API server.
        options: How it is run.
        say: Writes a line of the log: what happened, and its circumstances.
        mind: Wraps the engine that decides.
        elector: Says when it leads; without one it leads from the beginning.
        aside: Runs the elector's work.
        metrics: Counts what happens.
        decider: Decides; by default an engine over a cache of its own.

    """

    def __init__(
        self,
        api: Api,
        options: Options,
        say: Say,
        mind: Callable[[Engine], EngineInterface] = lambda engine: engine,
        elector: Elector | None = None,
        *,
        aside: Runner = at_once,
        metrics: Metrics | None = None,
        decider: Decider | None = None,
    ) -> None:
        super().__init__(say)
        self._api, self._options, self._conf = api, options, options.conf
        self.metrics = metrics or Metrics()
        conf = options.conf if elector is None else options.conf.quiet
        cache = ClusterCache(options.schedulers, conf, options.canary)
        self.decider = decider or Decider(cache, lambda: cache.conf, mind)
        self._reflectors = list(
            reflectors(
                api,
                self.cache.handlers,
                self._wake.set,
                lambda line: self._say("trouble", message=line),
            )
        )
        pods = next(r for r in self._reflectors if r.path == PODS)
        self.leadership = Leadership(self, pods, api, say, elector, aside=aside)
        self.writers = self._make_writers()
        self.loop = DecisionLoop(
            self.decider,
            self.writers,
            self.metrics,
            LoopState(self._wake, self._stop, self.now()),
            leads=lambda: self.leads,
            say=say,
            clock=self.now,
            identity=lambda: self.leadership.identity,
            release_s=options.release_s,
        )

    def _make_writers(self) -> Writers:
        """What writes to the API server; nothing of it has begun."""
        api, options, cache = self._api, self._options, self.cache
        say, now, is_alone = self._say, self.now, self._options.canary is None
        binder = Binder(
            api,
            cache,
            now,
            done=self._bound,
            changed=self._wake.set,
            say=say,
            ended=self._log_if_failed,
            workers=options.workers,
        )
        status_writer = StatusWriter(
            api,
            cache,
            lambda: self.view,
            now,
            is_binding=lambda: binder.in_flight > 0,
            name=options.name,
            say=say,
        )
        faults = FaultStore(
            api,
            cache,
            lambda: self.decider.engine.fault_log.everything,
            now,
            say,
            changed=self._wake.set,
            braked=self.decider.rate_limited,
            deletions=lambda: self.decider.engine.deletions,
        )
        records = RecordStore(api, options.namespace, say)
        repair_executor = RepairExecutor(
            api,
            cache,
            binder,
            status_writer,
            faults,
            store=records,
            clock=now,
            say=say,
            ended=self._log_if_failed,
        )
        notes = [NoteStore(api, options.namespace, note, say) for note in self.notes()]
        own = faults if is_alone else None
        state = LeaderState(cache, records, repair_executor, own, notes)
        return Writers(binder, status_writer, repair_executor, faults, state, is_alone)

    def _bound(self, pod: PodState, placement: Placement) -> None:
        self.loop.executor.bound(pod, placement)

    def notes(self) -> Iterator[Note]:
        """What is kept for the next leader of running times and reservations."""
        decider, read = self.decider, self._note_read
        yield RunTimeNote(lambda: decider.run_times, read)
        yield IdleNote(lambda: decider.idle_account(self.now()), read)

    def _note_read(self, note: Event) -> None:
        """Have the engine hear what was read, though nothing else may happen."""
        self.cache.handover.put_note(note)
        self._wake.set()

    # What there is.

    @property
    def cache(self) -> ClusterCache:
        """The objects of the cluster."""
        return self.decider.cache

    @property
    def view(self) -> SchedulerState:
        """What the engine knows."""
        return self.decider.mind.view

    @property
    def leads(self) -> bool:
        """Whether it decides; one that does not keeps the cache up to date."""
        return self.leadership.leads

    def live(self) -> tuple[bool, dict[str, str]]:
        """Whether it does its work; it may be asked on any thread."""
        silent = self.now() - self.loop.state.last_cycle
        stuck = self._wake.is_set() and silent > STUCK_S
        return not stuck, {"cycle": f"{silent:.0f} s ago"}

    def ready(self) -> tuple[bool, dict[str, str]]:
        """Whether it may be relied on; it may be asked on any thread."""
        role = "leader" if self.leads else "standby"
        lease, trouble = self.leadership.lease(), self.leadership.trouble
        return self._is_ready(role, *lease, lease_trouble=trouble)

    # The configuration.

    def _own_conf(self) -> Conf:
        """The configuration that counts for the engine."""
        return self._conf if self.leads else self._conf.quiet

    def reconfigure(self, conf: Conf) -> None:
        """Decide by *conf* from now on."""
        self._conf, self.refused_conf = conf, ""
        self.metrics.reloads["good"] += 1
        self.cache.reconfigure(self._own_conf())
        self._wake.set()

    def refuse_conf(self, why: str) -> None:
        """A newer configuration is bad; the last good one counts."""
        super().refuse_conf(why)
        self.metrics.reloads["bad"] += 1

    # Its life.

    async def run(self) -> None:
        """Schedule until asked to stop."""
        loop = asyncio.get_running_loop()
        for ending in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(ending, self.stop)
        gc.disable()  # what is read at first stays
        loop.call_later(SYNC_S, gc.enable)
        try:
            await self.leadership.watch_lease()
            for number, reflector in enumerate(self._reflectors):
                self.start(reflector.run, f"{reflector.path} {number}")
            self.start(self.writers.status_writer.queue.run, "status_writer")
            await self._synced()
            await self.read_leader_state()
            await self.loop.cycle()
            gc.freeze()
            gc.enable()
            self.start(self.loop.comparison.run, "comparer")
            if self.leadership.elector is None:
                self.leadership.led.set()
                self._begin_to_write()
            elif not self._stop.is_set():
                self._start(self.leadership.stand(), "leader", self._leader_ended)
            while not self._stop.is_set():
                await self.loop.cycle()
            await self._finish()
        finally:
            gc.enable()
            self.writers.repair_executor.abandon()
            self.writers.binder.abandon()
            await self._end_parts([*self._tasks])
            for ending in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(ending)
        self._say("stopped", bound=self.writers.binder.n_bound)

    async def _synced(self) -> None:
        """Until everything there was is known."""
        while not (self.is_synced or self._stop.is_set()):
            await self._wake.wait()
            self._wake.clear()
        self._wake.set()
        if not self._stop.is_set():
            cache = self.cache
            self._say("synced", nodes=cache.n_nodes, pods=len(cache.pods))

    async def _finish(self) -> None:
        """Finish what was begun, and release the Lease."""
        writers, elector = self.writers, self.leadership.elector
        self._say("stopping", in_flight=writers.binder.in_flight)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await writers.repair_executor.drained()
                await writers.binder.drained()
                timeout_s = QUICK_S if elector is not None else FLUSH_S
                if self.leads:
                    await writers.state.flush(timeout_s)
                await writers.status_writer.queue.flush(timeout_s)
        if elector is not None and "leader" in self._tasks:
            with suppress(TimeoutError):
                async with asyncio.timeout(CATCH_UP_S):
                    await until(self._is_sure)
            self._tasks["leader"].cancel()
            await self.leadership.release(self._is_sure)
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await writers.status_writer.queue.flush(FLUSH_S)

    def _is_sure(self) -> bool:
        """Whether the watch has shown every pod where we sent it."""
        return all(pod.assumed is None for pod in self.cache.pods.values())

    def _leader_ended(self, task: "asyncio.Task[None]") -> None:
        """End: without the part that leads it is unknown which replica leads."""
        if self._log_if_failed(task) and self._tasks.get("leader") is task:
            self.failure = task.exception()
            self.stop()

    def log_failed(self, culprit: str, error: BaseException) -> None:
        """Log and count a failure inside."""
        self.loop.narrator.log_failed(culprit, error)

    # Leading, as ``Leadership`` says.

    async def read_leader_state(self) -> None:
        """Read the records of repairs and faults that the last leader wrote.

        What fails is logged, and counts as not written: a scheduler without records
        is better than none.
        """
        try:
            await self.writers.state.read(self._is_pointless)
        except Exception as error:  # noqa: BLE001 - one bad job stops no other
            self.log_failed("records of repairs and faults", error)

    def _is_pointless(self) -> bool:
        """Whether it is about to end, or leads no more after it began to."""
        is_leader = "leader" not in self._tasks or self.leadership.remaining() > 0
        return self._stop.is_set() or not is_leader

    def begin_to_lead(self) -> None:
        """Decide from now on, and write what a leader writes."""
        self.cache.reconfigure(self._own_conf())
        self.loop.begin_to_lead()
        self._begin_to_write()
        self._say("leads", identity=self.leadership.identity)
        self._wake.set()

    def _begin_to_write(self) -> None:
        """Write what only a leader writes, and what is there for its own sake."""
        if self.writers.is_alone:  # else the scheduler of the other jobs creates them
            self.start(partial(create_default_queues, self._api), "queues")
        for part, name in self.writers.state.parts():
            self.start(part, name)

    def stop_deciding(self) -> None:
        """Have the engine decide nothing more."""
        self.cache.reconfigure(self._own_conf())

    async def stop_leading(self, *, led: bool, contain: Contain) -> None:
        """Write nothing more, and forget what was decided."""
        writers = self.writers
        writing = [
            "queues",
            "status_writer",
            *(name for _part, name in writers.state.parts()),
        ]
        tasks = [self._tasks.pop(name, None) for name in writing]
        for task in filter(None, tasks):
            task.cancel()
        await contain("repairs", writers.repair_executor.abandoned)
        await contain("bindings", writers.binder.abandoned)
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)
        if led:
            await contain("decisions", self.loop.forget_decisions)
        self.start(writers.status_writer.queue.run, "status_writer")
