"""Simulates a trial in virtual time. Start reading at ``Clock.step``.

Jobs arrive one by one, whatever their number; of those that are over nothing is kept. A
job works while all the pods that it must have are placed, on nodes and chips that are
not broken; it is over when it has worked as long as it runs. When pods are evicted or
deleted, or break, the work since its last checkpoint is lost, and is done again once
the job is whole; a job that says how long its restart takes restarts first. Nothing
here decides where a pod goes: the scheduler does, as on a cluster.

Where jobs slow each other down, a job works at 1 / (1 - c + c * D) of its speed, with
the share c of its time that it communicates and its contention degree D: how many jobs
share its links. Source: definition 8 of the measures (docs/measures.md).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Any, Final

from ringleaf.engine.event import (
    Event,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodsGone,
    TimerFired,
)
from ringleaf.framework.instruction import (
    Bind,
    Delete,
    Evict,
    Instruction,
    Report,
    Verdict,
    WakeAt,
)
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause
from ringleaf.model.mask import full_mask, mask_of
from ringleaf.model.placement import Placement
from ringleaf.simulator.agenda import Agenda, gone_at
from ringleaf.simulator.job_run import (
    JobRun,
    Pods,
    RunProgress,
    chips_of_job,
    leaves_of,
    saved,
)
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import (
    JobSpec,
    Observer,
    SchedulingEngine,
    TimedEvent,
    Trial,
)
from ringleaf.simulator.uplinks import LinkDegrees

PATIENCE_S: Final = 7 * 86400.0
"""How long pending jobs may wait while no job runs and no job arrives."""
MAX_AT_ONCE: Final = 10_000
"""Steps at one and the same time after which a run is given up."""
MAX_IN_VAIN: Final = 1000
"""Times a job may stop before it has saved any more work; then a run is given up."""
Degrees = Callable[[Mapping[str, Pods], Mapping[str, str]], Mapping[str, float]]
"""The contention degree of every job that works under several leaves, by its name:
given the pods of all of them, and the leaf of every node."""


_ENDS, _GONE, _REFUSED, _WAKES = "ends", "gone", "refused", "wakes"
_FIRST, _LAST = range(2)
_Plan = tuple[str, str, tuple[int, ...], str]
"""What is planned: the word for it, the job, its pods, and why."""


class Clock:
    """A trial under way; a checkpoint has all of it but the trial itself.

    Args:
        trial: What is played.
        scheduler: Decides.
        observers: Receive everything that happens.
        degrees: How much jobs share links, where they slow each other down; without it
            as definition 7 (c) counts them.

    """

    def __init__(
        self,
        trial: Trial,
        scheduler: SchedulingEngine,
        observers: Sequence[Observer] = (),
        degrees: Degrees | None = None,
    ) -> None:
        self.scheduler, self.observers = scheduler, tuple(observers)
        self.now = 0.0
        self.tally = RunProgress()
        self.steps = 0
        self.is_over = False
        self._degrees = degrees or LinkDegrees(trial.site.nodes)
        self._agenda: Agenda[_Plan] = Agenda()
        self._runs: dict[str, JobRun] = {}
        self._crossing: dict[str, JobRun] = {}
        """Jobs that work under several leaves."""
        self._crossing_is_new = False
        self._wakes: set[float] = set()
        self._broken: dict[str, int] = {}
        """Nodes with a fault -> their unusable chips."""
        self._leaf_of = {n.name: n.leaf for n in trial.site.nodes if n.leaf is not None}
        self._at_once = 0
        self._last_progress_at = 0.0
        """When a job last arrived, started or ended."""
        self._told: list[tuple[str, tuple[Any, ...]]] = []
        self._taken = [0, 0]
        """How many works and happenings were taken from the trial."""
        self._next_spec: JobSpec | None = None
        self._next_timed_event: TimedEvent | None = None
        self._begin_at(trial)
        self._hardware(NodesChanged(trial.site.nodes))
        for observer in self.observers:
            observer.begin(trial, scheduler)
        self._take_spec()
        self._take_timed_event()

    def _begin_at(self, trial: Trial) -> None:
        """Go on with *trial* from where this clock is in it."""
        job_specs, timed_events = self._taken
        self.trial = trial
        self._specs: Iterator[JobSpec] = islice(
            trial.workload.job_specs(), job_specs, None
        )
        self._timed_events = islice(trial.timed_events, timed_events, None)

    def __getstate__(self) -> dict[str, Any]:
        gone = {"trial", "_specs", "_timed_events"}
        return {key: value for key, value in vars(self).items() if key not in gone}

    def resume(self, trial: Trial) -> None:
        """Resume from a checkpoint; *trial* must be the same as before."""
        self._begin_at(trial)

    @property
    def next_at(self) -> float:
        """When something happens next; never, when all is over.

        Once no job runs and no job arrives, pending jobs are given up after a while.
        """
        spec, happening = self._next_spec, self._next_timed_event
        at = self._agenda.next_at
        if spec is None and not self._runs:
            return inf
        if spec is not None:
            at = min(at, spec.arrives)
        if happening is not None:
            at = min(at, happening.at)
        given_up = at > self._last_progress_at + PATIENCE_S
        return inf if spec is None and not self.tally.working and given_up else at

    def step(self, until: float = inf) -> bool:
        """Let happen together what happens next, and do what the scheduler says.

        False, if nothing happens any more before *until*.
        """
        at = self.next_at
        if at > until or at == inf:
            return False
        self._pass_time(at)
        events = self._due()
        if not events:
            return True
        said = self.scheduler.handle_all(events, at)
        self._tell_all()
        for each in said:
            for observer in self.observers:
                observer.says(each, at)
            self._carry_out(each)
        if self._crossing_is_new:
            self._slow_down()
        return True

    def finish(self) -> RunProgress:
        """Tell the observers that nothing more happens; what became of the jobs."""
        if not self.is_over:
            self.is_over = True
            for observer in self.observers:
                observer.finish(self.now)
        return self.tally

    @property
    def left(self) -> list[str]:
        """The jobs that are not over, in the order in which they came."""
        return list(self._runs)

    # What happens.

    def _pass_time(self, at: float) -> None:
        self.steps += 1
        if at > self.now:
            for observer in self.observers:
                observer.passes(self.now, at)
            self.now = at
            self._at_once = 0
            return
        self._at_once += 1
        if self._at_once > MAX_AT_ONCE:
            raise BadInput(
                f"the run has not come to rest after {MAX_AT_ONCE} steps at {at:g} s",
                "jobs that evict each other without a grace period go on for ever",
            )

    def _due(self) -> list[Event]:
        """What happens now: ends, then the cluster, then arrivals, then wake-ups."""
        now, agenda, events = self.now, self._agenda, list[Event]()
        woken = False
        while agenda.next_at <= now:
            number, (word, name, pods, why) = agenda.pop()
            if word == _WAKES:
                self._wakes.discard(now)
                woken = True
            elif word == _ENDS:
                events.append(self._end(name))
            elif word == _REFUSED:
                events.append(self._refuse(name))
            else:
                events += self._pods_gone(number, name, pods, why)
        while (happening := self._next_timed_event) is not None and happening.at <= now:
            events.append(happening.event)
            self.tally.faults += self._hardware(happening.event)
            self._take_timed_event()
        while (spec := self._next_spec) is not None and spec.arrives <= now:
            events.append(self._arrive(spec))
            self._take_spec()
        if woken:
            events.append(TimerFired())
        return events

    def _take_spec(self) -> None:
        self._next_spec = next(self._specs, None)
        self._taken[0] += self._next_spec is not None

    def _take_timed_event(self) -> None:
        self._next_timed_event = next(self._timed_events, None)
        self._taken[1] += self._next_timed_event is not None

    def _tell(self, what: str, *arguments: object) -> None:
        """Notify the observers, once the scheduler has handled the events."""
        if self.observers:
            self._told.append((what, arguments))

    def _tell_all(self) -> None:
        for name, arguments in self._told:
            for observer in self.observers:
                getattr(observer, name)(*arguments, self.now)
        self._told.clear()

    def _arrive(self, spec: JobSpec) -> JobArrived:
        self._runs[spec.job.name] = JobRun(spec)
        self.tally.arrived += 1
        self._last_progress_at = self.now
        self._tell("arrives", spec)
        return JobArrived(spec.job)

    def _end(self, name: str) -> JobGone:
        run = self._runs.pop(name)
        self._stop_working(run)
        self.tally.over += 1
        self.tally.done_chip_s += chips_of_job(run.spec.job) * run.spec.runs_s
        self._tell("ends", run.spec)
        return JobGone(name)

    def _refuse(self, name: str) -> JobGone:
        """Remove a job that can never be placed."""
        if self._runs.pop(name, None) is not None:
            self.tally.refused += 1
        return JobGone(name)

    def _pods_gone(
        self, number: int, name: str, pods: tuple[int, ...], why: str
    ) -> list[Event]:
        """Pods that were to end are gone; those that came after them are not."""
        run = self._runs.get(name)
        if run is None:
            return []
        gone = tuple(n for n in pods if run.ending.get(n) == number)
        self._forget(run, gone, why)
        return [PodsGone(name, gone)] if gone else []

    def _forget(self, run: JobRun, gone: Sequence[int], why: str) -> None:
        """Pods are no more; they come back, and wait."""
        held = tuple(n for n in gone if run.held.pop(n, None) is not None)
        for pod in gone:
            run.ending.pop(pod, None)
            run.sick.discard(pod)
        if held:
            self._tell("stops", run.spec, held, why)
        self._start_or_interrupt(run)
        self._crosses(run)

    # Nodes and chips that break, and are repaired.

    def _hardware(self, event: Event) -> bool:
        """Apply a change of nodes; whether something broke that worked."""
        if isinstance(event, NodesGone):
            gone = {*event.names}
            for run, pods in self._pods_on(gone):
                self._forget(run, pods, Cause.NODE)
            for name in gone:
                self._broken.pop(name, None)
            return bool(gone)
        return isinstance(event, NodesChanged) and self._nodes_changed(event.nodes)

    def _nodes_changed(self, nodes: Sequence[Node]) -> bool:
        breaks = False
        for node in nodes:
            chips = node.faulty | node.unhealthy
            chips = chips if node.ready else full_mask(node.chips)
            breaks |= bool(chips & ~self._broken.get(node.name, 0))
            if chips:
                self._broken[node.name] = chips
            else:
                self._broken.pop(node.name, None)
            if node.leaf is not None:
                self._leaf_of[node.name] = node.leaf
        for run, pods in self._pods_on({node.name for node in nodes}):
            sick = {n for n in pods if self._is_broken(run.held[n])}
            run.sick = run.sick - {*pods} | sick
            self._start_or_interrupt(run)
            self._crosses(run)
        return breaks

    def _pods_on(self, nodes: set[str]) -> list[tuple[JobRun, list[int]]]:
        """The jobs with pods on *nodes*, and which."""
        found = (
            (run, [n for n, place in run.held.items() if place.node in nodes])
            for run in self._runs.values()
        )
        return [(run, pods) for run, pods in found if pods]

    def _is_broken(self, place: Placement) -> bool:
        broken = self._broken.get(place.node)
        return broken is not None and bool(
            broken & mask_of(place.chips) or not place.chips
        )

    # What the scheduler says.

    def _carry_out(self, said: Instruction) -> None:
        if isinstance(said, Bind):
            self._bind(said)
        elif isinstance(said, Evict | Delete):
            self._ask_to_end(said)
        elif isinstance(said, WakeAt):
            if said.at > self.now and said.at not in self._wakes:
                self._wakes.add(said.at)
                self._agenda.plan(said.at, _LAST, (_WAKES, "", (), ""))
        elif isinstance(said, Report) and said.verdict is Verdict.INVALID:
            self._agenda.plan(self.now, _FIRST, (_REFUSED, said.job, (), ""))

    def _bind(self, said: Bind) -> None:
        run = self._runs[said.job]
        for place in said.placements:
            run.held[place.replica] = place
            run.ending.pop(place.replica, None)
            if self._broken and self._is_broken(place):
                run.sick.add(place.replica)
        for observer in self.observers:
            observer.starts(run.spec, said.placements, self.now)
        self._last_progress_at = self.now
        self._start_or_interrupt(run)
        self._crosses(run)

    def _ask_to_end(self, said: Evict | Delete) -> None:
        run = self._runs[said.job]
        why = said.cause if isinstance(said, Delete) else said.action
        at = gone_at(said, self.now, self.trial.grace_s)
        number = self._agenda.plan(at, _FIRST, (_GONE, said.job, said.replicas, why))
        run.ending |= dict.fromkeys(said.replicas, number)
        self._start_or_interrupt(run)
        self._tell_all()

    # Work.

    def _start_or_interrupt(self, run: JobRun) -> None:
        """A job works when it is whole, and only then."""
        if run.is_whole == (run.since is not None):
            return
        if run.since is None:
            run.since, run.slow = self.now, 1.0
            self.tally.working += 1
            self._plan_end(run)
            return
        worked = run.worked(self.now)
        kept = max(run.saved_s, saved(max(0.0, worked), self.trial.checkpoint_s))
        self._agenda.call_off(run.end)
        run.in_vain = 0 if kept > run.saved_s else run.in_vain + 1
        if run.in_vain > MAX_IN_VAIN:
            raise BadInput(
                f"job {run.spec.job.name!r} of {chips_of_job(run.spec.job)} chips "
                f"stopped {MAX_IN_VAIN} times before it had saved any more work",
                "fewer faults, or work that is saved more often",
            )
        moving = run.spec.job.moving
        restart_s = 0.0 if moving is None else moving.restart_s
        lost_s = max(0.0, worked - kept) + restart_s
        run.saved_s, run.done_s = kept, kept - restart_s
        self._stop_working(run)
        self.tally.stops += 1
        self.tally.lost_chip_s += chips_of_job(run.spec.job) * lost_s
        self._tell("loses", run.spec, lost_s)

    def _plan_end(self, run: JobRun) -> None:
        left = (run.spec.runs_s - run.done_s) * run.slow
        plan = (_ENDS, run.spec.job.name, (), "")
        run.end = self._agenda.plan(self.now + left, _FIRST, plan)

    def _stop_working(self, run: JobRun) -> None:
        """A job works no more, for a while or for good."""
        run.since = None
        self.tally.working -= 1
        self._last_progress_at = self.now
        if self._crossing.pop(run.spec.job.name, None) is not None:
            self._crossing_is_new = True

    # Jobs that slow each other down.

    def _crosses(self, run: JobRun) -> None:
        """Pods of a job came or went: under several leaves it slows others down."""
        if not self.trial.contention:
            return
        name = run.spec.job.name
        if self._crossing.pop(name, None) is not None:
            self._crossing_is_new = True
        if run.since is None:
            return
        if len(leaves_of(run.held, self._leaf_of)) > 1:
            self._crossing[name] = run
            self._crossing_is_new = True
        else:
            self._work_at(run, 1.0)

    def _slow_down(self) -> None:
        """Update the speed, and so the end, of jobs that cross leaves."""
        self._crossing_is_new = False
        if not self._crossing:
            return
        pods = {name: run.held for name, run in self._crossing.items()}
        degrees = self._degrees(pods, self._leaf_of)
        share = self.trial.contention
        for name, run in self._crossing.items():
            self._work_at(run, 1 - share + share * degrees.get(name, 1.0))

    def _work_at(self, run: JobRun, slow: float) -> None:
        """A job that works takes *slow* seconds for one from now on."""
        if slow != run.slow:
            run.done_s, run.since = run.worked(self.now), self.now
            run.slow = slow
            self._agenda.call_off(run.end)
            self._plan_end(run)


def play(
    trial: Trial,
    scheduler: SchedulingEngine,
    observers: Sequence[Observer] = (),
    *,
    until: float = inf,
    degrees: Degrees | None = None,
) -> RunProgress:
    """Simulate *trial* to its end or *until* a time; what became of its jobs."""
    clock = Clock(trial, scheduler, observers, degrees)
    while clock.step(until):
        pass
    return clock.finish()
