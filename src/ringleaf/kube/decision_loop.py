"""The loop: wait for something to happen, decide, carry out. Start at ``cycle``."""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from msgspec import Struct

from ringleaf.engine.event import Event, JobGone, TimerFired
from ringleaf.framework.instruction import Instruction, Report, WakeAt
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.comparer import Comparison
from ringleaf.kube.decider import Decider
from ringleaf.kube.fault_metrics import FaultMetrics
from ringleaf.kube.gang_progress import GangProgress
from ringleaf.kube.instruction_executor import InstructionExecutor
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.narrator import Narrator
from ringleaf.kube.pending_reasons import PendingReasons
from ringleaf.kube.quarantine import Culprit
from ringleaf.kube.writers import Writers

SLICE: Final = 64
"""Jobs that are decided before their pods are sent off and the next are looked at."""
GATHER_S: Final = 0.002
"""How long a cycle waits for more of what happens at the same time."""
GATHER_BUSY_S, BUSY_S = 0.015, 0.1
"""How long it does where much happens: the last cycle is not longer ago than that."""
QUIET_FAILURES: Final = 8
"""Cycles that may fail one after the other, each with a culprit, without a pause."""
FIRST_PAUSE_S, MOST_PAUSE_S = 0.1, 6.4


class LoopState(Struct):
    """How far the loop is.

    Args:
        wake: Set when something has happened.
        stop: Set when the scheduler is to end.
        last_cycle: When the last cycle began.
        wake_at: When the engine wants to be called again.
        failures: Cycles that failed, one after the other.
        version: Of the engine's state when queues were last written.
        conflicts: What a leader is to report, by job.

    """

    wake: asyncio.Event
    stop: asyncio.Event
    last_cycle: float
    wake_at: float | None = None
    failures: int = 0
    version: int = -1
    conflicts: dict[str, Report] = {}


class DecisionLoop:
    """Decides, again and again.

    Args:
        decider: Decides, over the cache of the objects.
        writers: What writes to the API server.
        metrics: Counts what happens.
        leads: Whether the scheduler leads; else the engine follows the objects only.
        say: Writes a line of the log.
        clock: Seconds since 1970.
        identity: The identity under which the scheduler leads.
        state: How far the loop is.
        release_s: Seconds after which a gang that was bound in part is released.

    """

    def __init__(
        self,
        decider: Decider,
        writers: Writers,
        metrics: Metrics,
        state: LoopState,
        *,
        leads: Callable[[], bool],
        say: Callable[..., None],
        clock: Callable[[], float],
        identity: Callable[[], str],
        release_s: float,
    ) -> None:
        self.decider, self.state, self.metrics = decider, state, metrics
        self._writers, self._leads, self._now = writers, leads, clock
        self.fault_metrics = FaultMetrics(
            decider.engine.fault_log, decider.engine.repairs
        )
        self.narrator = Narrator(decider, metrics, say, clock)
        self.comparison = Comparison(decider, metrics, say, self._note_rebuild)
        self.pending = PendingReasons(decider, writers.status_writer, metrics)
        self.executor = InstructionExecutor(
            decider,
            writers,
            self.pending,
            metrics,
            say=say,
            clock=clock,
            identity=identity,
        )
        self.gangs = GangProgress(
            decider.cache, writers, metrics, say=say, release_s=release_s
        )

    @property
    def _cache(self) -> ClusterCache:
        return self.decider.cache

    async def cycle(self) -> None:
        """Wait for something to happen, and decide; what fails is quarantined."""
        state = self.state
        try:
            await self._wait()
            await self._decide()
            state.failures = 0
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.recover(error)
            state.failures += 1
            if state.failures > QUIET_FAILURES:
                n_failures = state.failures - QUIET_FAILURES
                await asyncio.sleep(backoff_s(FIRST_PAUSE_S, n_failures, MOST_PAUSE_S))

    async def _wait(self) -> None:
        """Until something happens, or it is time, and all that comes with it is there.

        Nothing happens while nothing changes (D25).
        """
        state, pending = self.state, self.pending
        times = (state.wake_at, self._cache.next_at, pending.refresh_at)
        ends = [at for at in times if at is not None]
        ends += self.gangs.due()
        wait = max(0.0, min(ends) - self._now()) if ends else None
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await state.wake.wait()
        if not self.decider.mind.has_more:
            busy = self._now() - state.last_cycle < BUSY_S
            await asyncio.sleep(GATHER_BUSY_S if busy else GATHER_S)

    async def _decide(self) -> None:
        """Have the engine hear what is new, and carry out what it instructs."""
        state = self.state
        if state.stop.is_set():
            return
        state.wake.clear()
        found = await self._hand_over() if self.decider.begins_anew else []
        now = state.last_cycle = self._now()
        began = time.perf_counter()
        events = self._news(now)
        mind = self.decider.mind
        if events:
            self.pending.changed(now)
        if events or mind.has_more:
            news = self.narrator.news_of(events) if self._leads() else {}
            self._count_events(events)
            thinks = time.perf_counter()
            found += mind.handle_all(events, now, SLICE)
            thought_s = time.perf_counter() - thinks
            if not self._leads():
                self.keep_conflicts(events, found)
                self.comparison.take_step()
                return
            self.narrator.log_jobs(news, found)
            self._carry_out(found)
            self._writers.faults.heed(events, found)
            self._count(found, thought_s, time.perf_counter() - began)
            if self.comparison.take_step():
                return
            if mind.has_more:
                state.wake.set()
                await asyncio.sleep(0)
        if not self._leads():
            self.narrator.log_failures()
            return
        self._follow_up(now)
        self.pending.refresh_if_due(now)

    def _news(self, now: float) -> list[Event]:
        """What the engine has not heard yet."""
        events, state = self.decider.news(now), self.state
        if state.wake_at is not None and state.wake_at <= now:
            state.wake_at = None
            events.append(TimerFired())
        return events

    def _carry_out(self, found: Iterable[Instruction]) -> None:
        """Carry out what was instructed; when to wake is part of it."""
        for each in found:
            if isinstance(each, WakeAt):
                self.state.wake_at = each.at
        self.executor.carry_out(found)

    def _follow_up(self, now: float) -> None:
        """Report what else has changed, and release what is to be released."""
        writers, state = self._writers, self.state
        self.narrator.report_problems(
            writers.status_writer if writers.is_alone else None
        )
        writers.repair_executor.remove_records()
        for gang in self._cache.take_changed():
            self.gangs.follow(gang, now)
        version = self.decider.mind.view.version
        if state.version != version:
            state.version = version
            if writers.is_alone:
                writers.status_writer.queues_changed()
        self.gangs.release_due(now)
        self.narrator.log_failures()

    def keep_conflicts(
        self, events: Iterable[Event], instructions: Iterable[Instruction]
    ) -> None:
        """Keep, on standby, only the reports of conflicts that still exist."""
        state, cache = self.state, self._cache
        for event in events:
            if isinstance(event, JobGone):
                state.conflicts.pop(event.job, None)
        for each in instructions:
            if isinstance(each, Report):
                state.conflicts[each.job] = each
            elif isinstance(each, WakeAt):
                state.wake_at = each.at
        cache.problems.drop_solved()
        cache.take_changed()
        cache.checkpoints.take_orphaned()
        self.narrator.log_failures()

    # Leading.

    def begin_to_lead(self) -> None:
        """Report what a leader reports: all gangs, and conflicts that were kept."""
        now, state = self._now(), self.state
        for gang in self._cache.gangs.values():
            self.gangs.follow(gang, now)
        conflicts, state.conflicts = state.conflicts, {}
        for report in conflicts.values():
            try:
                self.executor.report(report)
            except Exception as error:  # noqa: BLE001 - whatever it is
                self.narrator.log_failed(f"Job {report.job}", error)
        self.comparison.is_urgent.set()

    def forget_decisions(self) -> None:
        """Know what a scheduler knows that has never led."""
        self.pending.clear()
        self.gangs.half_bound.clear()
        self.state.conflicts.clear()
        try:
            self._writers.status_writer.forget()
            self._cache.stand_by(self.decider.mind.view, self.fault_metrics.repairs)
            now = self._now()
            events = self.decider.news(now)
            self._follow_engine()
            self._count_events(events)
            found = self.decider.mind.handle_all(events, now, SLICE)
            self.keep_conflicts(events, found)
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.recover(error)

    # An engine that fails, and the next one.

    def recover(self, error: Exception) -> None:
        """Quarantine what *error* is about, and begin anew from the objects."""
        found = list[Culprit]()
        try:
            found = self.decider.recover(error, self._now())
        except Exception as another:  # noqa: BLE001 - it is tried again
            self.narrator.log_failed("recovery", another)
        named = ", ".join(f"{each.kind} {each.key}" for each in found) or "unknown"
        self.narrator.log_failed(named, error)
        failures = self._cache.isolation.failures
        failures[:] = [f for f in failures if f.culprit not in found]
        self._note_rebuild()

    def _note_rebuild(self) -> None:
        """A new engine is to hear everything."""
        self.metrics.rebuilds += 1
        self.state.wake_at, self.state.version = None, -1
        self.pending.forget_engine()
        self.state.wake.set()

    def _follow_engine(self) -> None:
        """The engine may be a new one."""
        engine = self.decider.engine
        if self.fault_metrics.book is not engine.fault_log:
            self.fault_metrics.follow(engine.fault_log, engine.repairs)

    async def _hand_over(self) -> list[Instruction]:
        """Have the next engine hear everything; others have turns in between.

        What it instructs is carried out with what it decides then.
        """
        now = self.state.last_cycle = self._now()
        instructed, spent_s, n_heard = list[Instruction](), 0.0, 0
        parts = self.decider.hand_over(now)
        while True:
            began = time.perf_counter()
            events, found = next(parts, (None, []))
            spent_s += time.perf_counter() - began
            if events is None:
                break
            self._count_events(events)
            instructed += found
            n_heard += len(events)
            await asyncio.sleep(0)
        self._follow_engine()
        self._cache.isolation.engine_began(spent_s, self._now())
        self.narrator.log_rebuilt(n_heard, spent_s)
        return instructed

    # Metrics.

    def _count_events(self, events: list[Event]) -> None:
        self.metrics.heard(events)
        self.fault_metrics.hear(events)

    def _count(self, found: list[Instruction], thought_s: float, took_s: float) -> None:
        """Count what was decided, and how long it took."""
        view = self.decider.mind.view
        self.metrics.decided(found, view.job_states, len(view.cluster), thought_s)
        self.metrics.cycle_ms.observe(1000 * took_s)
        self.fault_metrics.note(found, self.state.last_cycle)
