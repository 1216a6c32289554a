"""A scenario run through the engine in virtual time.

Running jobs are there, and the jobs of the file arrive, together at 0; what stands
under ``then`` happens at its time. Pods that are asked to end are gone after the grace
period; the engine is woken when it asked for it. Nothing here decides anything.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event, JobArrived, PodsGone, TimerFired
from ringleaf.framework.instruction import Bind, Delete, Evict, Instruction, WakeAt
from ringleaf.model.job import Job
from ringleaf.simulator.agenda import Agenda, gone_at
from ringleaf.simulator.answer import instruction_plain
from ringleaf.simulator.scenario import Scenario
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import SchedulingEngine

MAX_STEPS: Final = 100_000
"""Steps after which a run that does not come to rest is given up."""

_FIRST, _GIVEN, _WAKING = range(3)
"""Order inside one time: what evictions come to, what the file says, wake-ups."""


class Step(Struct, frozen=True):
    """What happened at a time, and what the engine said to it."""

    at: float
    events: tuple[Event, ...]
    instructions: tuple[Instruction, ...]
    plain: tuple[dict[str, Any], ...]
    """The instructions as plain values, with the nodes as they were."""


class ScenarioRun(Struct, frozen=True):
    """A scenario after its last event."""

    scenario: Scenario
    engine: Engine
    steps: tuple[Step, ...]
    jobs: Mapping[str, Job]
    """Every job that was ever there, in the order in which they came up."""
    written: Mapping[tuple[str, int], Mapping[str, str]]
    """Job and replica -> what was last written on the pod."""


def conf_of(scenario: Scenario) -> Conf:
    """The configuration in force: the default one where the scenario has none."""
    return scenario.conf or replace(DEFAULT, settings=scenario.settings, warnings=())


def engine_of(scenario: Scenario) -> Engine:
    """An engine for the scenario, before anything happened."""
    conf = conf_of(scenario)
    return Engine(scenario.nodes, scenario.leaves, scenario.queues, conf)


def run(
    scenario: Scenario,
    around: Callable[[Engine], SchedulingEngine] = lambda engine: engine,
) -> ScenarioRun:
    """Run *scenario*; *around* may listen in."""
    engine = engine_of(scenario)
    clock = _Clock(scenario, around(engine))
    first: list[Event] = [*scenario.tenants, *scenario.ending]
    clock.happen(0.0, [*first, *first_arrivals(scenario)])
    for later in scenario.then:
        clock.plan(later.at, _GIVEN, later.event)
    clock.go()
    return ScenarioRun(scenario, engine, tuple(clock.steps), clock.jobs, clock.written)


def first_arrivals(scenario: Scenario) -> tuple[JobArrived, ...]:
    """The jobs of the file; of those that ran before a fault, with the pods left."""
    since = scenario.since
    if not any(job.previous for job in scenario.jobs):
        return tuple(
            JobArrived(job, waiting_since=since.get(job.name)) for job in scenario.jobs
        )
    cluster = scenario.open().cluster
    return tuple(
        JobArrived(
            job,
            tuple(scenario.still_running(cluster, job)),
            waiting_since=since.get(job.name),
        )
        for job in scenario.jobs
    )


class _Clock:
    """What is to happen, earliest first; and what has happened."""

    def __init__(self, scenario: Scenario, scheduler: SchedulingEngine) -> None:
        self._until, self._grace = scenario.until, scenario.grace_s
        self._scheduler = scheduler
        self._agenda: Agenda[Event] = Agenda()
        self._wakes: set[float] = set()
        self._bound: Counter[tuple[str, int]] = Counter()
        """How often a pod was bound: its replacement has a higher count."""
        self._ends: dict[int, list[int]] = {}
        """What is to end -> how often its pods had been bound then."""
        self.steps: list[Step] = []
        self.jobs: dict[str, Job] = {}
        self.written: dict[tuple[str, int], Mapping[str, str]] = {}

    def plan(self, at: float, order: int, event: Event) -> int:
        """*event* is to happen; its number."""
        return self._agenda.plan(at, order, event)

    def go(self) -> None:
        """Let everything happen, up to the end."""
        while len(self._agenda) and (at := self._agenda.next_at) <= self._until:
            number, event = self._agenda.pop()
            if isinstance(event, PodsGone) and number in self._ends:
                event = self._left_of(event, self._ends.pop(number))
                if not event.replicas:
                    continue
            self.happen(at, (event,))

    def end(self, at: float, job: str, replicas: tuple[int, ...]) -> None:
        """Pods are to end; those that come after them are not."""
        number = self.plan(at, _FIRST, PodsGone(job, replicas))
        self._ends[number] = [self._bound[job, n] for n in replicas]

    def _left_of(self, event: PodsGone, bound: list[int]) -> PodsGone:
        """The pods of those asked to end that are still there."""
        pairs = zip(event.replicas, bound, strict=True)
        left = tuple(n for n, often in pairs if self._bound[event.job, n] == often)
        return PodsGone(event.job, left)

    def happen(self, now: float, events: Sequence[Event]) -> None:
        """*events* happen together, and what the engine says is carried out."""
        if not events:
            return
        if len(self.steps) == MAX_STEPS:
            raise BadInput(
                f"the run has not come to rest after {MAX_STEPS} steps, at {now:g} s",
                "jobs that evict each other go on for ever",
            )
        for event in events:
            if isinstance(event, JobArrived):
                self.jobs[event.job.name] = event.job
        said = self._scheduler.handle_all(events, now)
        cluster = self._scheduler.view.cluster
        plain = tuple(instruction_plain(cluster, each) for each in said)
        self.steps.append(Step(now, tuple(events), tuple(said), plain))
        for instruction in said:
            self._carry_out(now, instruction)

    def _carry_out(self, now: float, instruction: Instruction) -> None:
        match instruction:
            case Bind(job, placements, annotations):
                for placement, plain in zip(placements, annotations, strict=True):
                    self.written[job, placement.replica] = plain
                self._bound.update((job, placement.replica) for placement in placements)
            case Evict(job, replicas) | Delete(job, replicas):
                self.end(gone_at(instruction, now, self._grace), job, replicas)
            case WakeAt(at) if at > now and at not in self._wakes:
                self._wakes.add(at)
                self.plan(at, _WAKING, TimerFired())
            case _:
                pass
