"""Small trials, and a diary of what is told of them."""

from collections.abc import Iterable, Sequence
from functools import partial

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT, read_conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import NodesChanged
from ringleaf.framework.instruction import Instruction
from ringleaf.model.cluster import Node
from ringleaf.model.fault import FaultMode, Recovery
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.trial import (
    JobSpec,
    SchedulingEngine,
    Site,
    TimedEvent,
    Trial,
    Workload,
)

A2 = PRODUCTS["atlas-800t-a2"]


def _preempting() -> Conf:
    plugins = [{"name": name} for name in ("priority", "gang", "affinity")]
    tiers = [{"plugins": plugins}]
    found = read_conf({"actions": "allocate, preempt", "tiers": tiers})
    assert isinstance(found, Conf)
    return found


PREEMPT = _preempting()


def node(number: int, *, under: int = 4, **more: object) -> Node:
    """Node *number* of eight chips; leaves have *under* nodes."""
    leaf, slot = divmod(number, under)
    given = {"leaf": f"leaf-{leaf}", "slot": slot} | more
    return Node(f"n{number:03}", A2, 8, 255, **given)  # type: ignore[arg-type]


def site(n_nodes: int, under: int = 4) -> Site:
    return Site("small", tuple(node(n, under=under) for n in range(n_nodes)))


def spec(
    name: str,
    arrives: float,
    runs_s: float,
    chips: int = 8,
    replicas: int = 1,
    **more: object,
) -> JobSpec:
    job = Job(name, A2, chips, replicas, created=arrives, **more)  # type: ignore[arg-type]
    return JobSpec(job, arrives, runs_s)


def _again(job_specs: tuple[JobSpec, ...]) -> Iterable[JobSpec]:
    return iter(job_specs)


def workload(job_specs: Sequence[JobSpec]) -> Workload:
    span = job_specs[-1].arrives if job_specs else 0.0
    again = partial(_again, tuple(job_specs))
    return Workload("small", "made by hand", again, len(job_specs), span)  # type: ignore[arg-type]


def trial(
    n_nodes: int, job_specs: Sequence[JobSpec], *, under: int = 4, **more: object
) -> Trial:
    return Trial(site(n_nodes, under), workload(job_specs), **more)  # type: ignore[arg-type]


def busy(n_nodes: int, most_pods: int, **more: object) -> Trial:
    """Ninety jobs, some of which are gangs, and a node that is broken for a while."""
    job_specs = [
        spec(
            f"j{n:02}",
            n * 3.0,
            40 + n * 7 % 50,
            chips=(1, 2, 4, 8)[n % 4],
            replicas=1 + n % most_pods * (n % 4 == 3),
            priority=n % 3,
            estimate_s=100.0 if n % 2 else None,
            recovery=Recovery(FaultMode.GRACE),
        )
        for n in range(90)
    ]
    chip = node(1, faulty=3, unhealthy=3)
    timed_events = [
        TimedEvent(60, NodesChanged((chip,))),
        TimedEvent(160, NodesChanged((node(1),))),
    ]
    return trial(n_nodes, job_specs, timed_events=timed_events, grace_s=5.0, **more)  # type: ignore[arg-type]


def engine(trial: Trial) -> Engine:
    site = trial.site
    return Engine(site.nodes, site.leaves, site.queues, trial.conf or DEFAULT)


class Diary:
    """Everything that is told of a run, in a line each."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.placed: dict[str, dict[int, Placement]] = {}

    def _note(self, now: float, *words: object) -> None:
        self.lines.append(" ".join([f"{now:g}", *map(str, words)]))

    def begin(self, trial: Trial, scheduler: SchedulingEngine) -> None:
        self._note(0, "begins", trial.site.name, len(scheduler.view.cluster))

    def passes(self, since: float, now: float) -> None:
        pass

    def arrives(self, spec: JobSpec, now: float) -> None:
        self._note(now, spec.job.name, "arrives")

    def starts(
        self, spec: JobSpec, placements: Sequence[Placement], now: float
    ) -> None:
        where = ",".join(p.node for p in placements)
        self._note(now, spec.job.name, "starts", where)
        own = self.placed.setdefault(spec.job.name, {})
        own |= {place.replica: place for place in placements}

    def stops(self, spec: JobSpec, pods: Sequence[int], why: str, now: float) -> None:
        self._note(now, spec.job.name, "stops", ",".join(map(str, pods)), why)

    def loses(self, spec: JobSpec, seconds: float, now: float) -> None:
        self._note(now, spec.job.name, "loses", f"{seconds:g}")

    def ends(self, spec: JobSpec, now: float) -> None:
        self._note(now, spec.job.name, "ends")

    def says(self, said: Instruction, now: float) -> None:
        pass

    def finish(self, now: float) -> None:
        self._note(now, "finishes")

    @property
    def story(self) -> list[str]:
        """The lines without the first and the last."""
        return self.lines[1:-1]


def lines(clock: Clock) -> list[str]:
    """What the diary of *clock* has in the end."""
    while clock.step():
        pass
    clock.finish()
    (diary,) = clock.observers
    assert isinstance(diary, Diary)
    return diary.lines
