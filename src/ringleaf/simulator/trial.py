"""The inputs of a simulation: a cluster, the jobs that arrive, and the policy.

These are nouns. Workloads make them, the clock plays them, observers measure them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import Event
from ringleaf.framework.instruction import Instruction
from ringleaf.framework.state import SchedulerState
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.model.queue import Queue
from ringleaf.model.uplinks import Leaf


class Ending(StrEnum):
    """How a job ends when nothing else ends it."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobSpec(Struct, frozen=True):
    """A job of a workload, and what the scheduler does not know: how long it runs.

    Args:
        job: What the scheduler is told.
        arrives: When it is submitted, in seconds since the beginning.
        runs_s: Seconds that it runs, alone and undisturbed.
        ending: How it ends then.
        kind: What sort of job it is, for tables: ``pretrain``, ``eval``.

    """

    job: Job
    arrives: float
    runs_s: float
    ending: Ending = Ending.DONE
    kind: str = ""


class Site(Struct, frozen=True):
    """A cluster as it is before the first job.

    Args:
        name: What people call it: ``leaf-spine-512``, or the name of a file.
        nodes: Its nodes, empty.
        leaves: What is known of its leaf switches besides pods.
        queues: Its queues.

    """

    name: str
    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...] = ()
    queues: tuple[Queue, ...] = ()

    @property
    def chips(self) -> int:
        """Chips of all its nodes."""
        return sum(node.chips for node in self.nodes)


class Workload(Struct, frozen=True):
    """Jobs that arrive at a cluster.

    Args:
        name: What people call it: ``kalos``, or the name of a file.
        about: Where its figures come from, and their licence.
        job_specs: Its jobs anew each time, in the order in which they arrive.
        n_jobs: How many they are.
        span_s: From the first arrival to the last.
        load: Offered load: chip-seconds of all jobs, by what the cluster has meanwhile.
        notes: What was done to them to suit the cluster, a line each.
        queues: The queues that they name; the cluster is to have them.

    """

    name: str
    about: str
    job_specs: Callable[[], Iterator[JobSpec]]
    n_jobs: int
    span_s: float
    load: float = 0.0
    notes: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


class TimedEvent(Struct, frozen=True):
    """An event of the engine, and when it happens."""

    at: float
    event: Event


class Trial(Struct, frozen=True):
    """One run: everything that it depends on.

    Args:
        site: The cluster.
        workload: The jobs.
        conf: The rules in force.
        policy: What they are called in tables.
        seed: Of everything that is drawn.
        timed_events: Faults and repairs of the cluster, in the order of time, made anew
            each time; there may be no end of them.
        contention: Share of the time that jobs communicate; they are slowed down by as
            much as they share links, where this is more than 0.
        checkpoint_s: How often jobs save their work; what came after is lost with a
            pod that fails; 0 is all the time.
        grace_s: How long pods take to end that are asked to.

    """

    site: Site
    workload: Workload
    conf: Conf = DEFAULT
    policy: str = "ringleaf"
    seed: int = 0
    timed_events: Iterable[TimedEvent] = ()
    contention: float = 0.0
    checkpoint_s: float = 1800.0
    grace_s: float = 30.0


class SchedulingEngine(Protocol):
    """The engine's port: Ringleaf's engine, or a baseline."""

    @property
    def view(self) -> SchedulerState:
        """What it knows."""

    def handle_all(self, events: Iterable[Event], now: float) -> list[Instruction]:
        """What is to be done after *events*, which happened together."""


class Observer(Protocol):
    """Measures a run without any effect on it.

    An observer hears of simultaneous events after the scheduler has handled all of
    them: jobs that ended, pods that are gone, jobs that arrived. Then it hears what the
    scheduler says, and what comes of it. The scheduler's view is already the new one.
    """

    def begin(self, trial: Trial, scheduler: SchedulingEngine) -> None:
        """A run begins."""

    def passes(self, since: float, now: float) -> None:
        """From *since* to *now* everything was as it still is."""

    def arrives(self, spec: JobSpec, now: float) -> None:
        """A job is submitted; it is not placed yet."""

    def starts(
        self, spec: JobSpec, placements: Sequence[Placement], now: float
    ) -> None:
        """Pods of a job are placed: all of them, or those that were away."""

    def stops(self, spec: JobSpec, pods: Sequence[int], why: str, now: float) -> None:
        """Pods of a job are gone before its end: evicted, or deleted for a fault."""

    def loses(self, spec: JobSpec, seconds: float, now: float) -> None:
        """A job that ran no longer does; so many seconds of its work are lost.

        They are to be done again. It is said when pods are asked to end, or break.
        """

    def ends(self, spec: JobSpec, now: float) -> None:
        """A job is over, and all its pods are gone."""

    def says(self, said: Instruction, now: float) -> None:
        """The scheduler has said something, before it is carried out."""

    def finish(self, now: float) -> None:
        """Nothing more happens."""
