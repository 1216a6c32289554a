"""How much of a cluster is allocated when more is asked than there is (metric 2).

Two workloads ask for too much, both without a queue: a job that finds no place at once
is gone. So they measure where jobs are placed, not the order of jobs.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.engine.event import Event, JobArrived, JobGone
from ringleaf.framework.instruction import Bind
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.placement import JobType, Placement
from ringleaf.model.settings import Settings
from ringleaf.simulator.bounds import WARM_UP, chips_at_least
from ringleaf.simulator.gang_model import LeafCapacity, WholeNodeGang
from ringleaf.simulator.job_run import chips_of_job
from ringleaf.simulator.metrics.leaves import cap_of
from ringleaf.simulator.relaxation import largest_sum, most_by_rule
from ringleaf.simulator.trial import JobSpec, SchedulingEngine, Site

DEMAND: Final = 1.3
"""Chips asked in a static fill, over those there are. Source: FGD (ATC 2023)."""
LOAD: Final = 1.1
"""Chip-seconds asked in a churn, over those there are."""
SETTLING: Final = 2
"""Units of time, of which jobs stay one, in which a churn forgets its beginning."""
SAMPLE: Final = 20_000
"""Jobs of a workload from which a fill is drawn, at most."""


Draws = np.random.Generator


class Fill(Struct, frozen=True):
    """What came of it.

    Args:
        allocated: The part of all chips that jobs held; of a churn on average.
        jobs: Jobs that came.
        placed: Those of them that found a place.
        conflicts: Over all leaves, jobs that cross it beyond the first (measure 7a);
            of a churn on average.

    """

    allocated: float
    jobs: int
    placed: int
    conflicts: float = 0.0

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "allocated": self.allocated,
            "jobs": self.jobs,
            "placed": self.placed,
            "conflicts": self.conflicts,
        }


class _Floor:
    """What jobs hold, now and over time."""

    def __init__(self, site: Site) -> None:
        self.chips = 0
        self.conflicts = 0
        self.chip_s = self.conflict_s = 0.0
        self._leaf = {node.name: node.leaf for node in site.nodes}
        self._crossed: Counter[str] = Counter()
        self._jobs: dict[str, tuple[int, tuple[str, ...]]] = {}
        """Chips of each job, and the leaves that it crosses."""
        self._now = 0.0

    def wait(self, until: float) -> None:
        """Time passes, and nothing changes."""
        self.chip_s += self.chips * (until - self._now)
        self.conflict_s += self.conflicts * (until - self._now)
        self._now = until

    def forget(self) -> None:
        """What was before does not count."""
        self.chip_s = self.conflict_s = 0.0

    def begin(self, name: str, placements: Sequence[Placement]) -> None:
        """A job takes its chips."""
        under = {self._leaf[each.node] for each in placements}
        leaves = tuple(sorted(leaf for leaf in under if leaf is not None))
        own = sum(len(each.chips) for each in placements)
        self._jobs[name] = own, leaves if len(leaves) > 1 else ()
        self.chips += own
        self._cross(self._jobs[name][1], 1)

    def end(self, name: str) -> None:
        """A job gives them back."""
        own, leaves = self._jobs.pop(name)
        self.chips -= own
        self._cross(leaves, -1)

    def _cross(self, leaves: Sequence[str], by: int) -> None:
        for leaf in leaves:
            before = self._crossed[leaf]
            self._crossed[leaf] += by
            self.conflicts += max(0, before + by - 1) - max(0, before - 1)


def static_fill(
    site: Site,
    job_specs: Iterable[JobSpec],
    scheduler: SchedulingEngine,
    seed: int,
    *,
    demand: float = DEMAND,
) -> Fill:
    """Submit jobs in random order until they ask for *demand* of C; no job ends."""
    usage, placed = _Floor(site), 0
    came = comers(site, job_specs, seed, demand=demand)
    for number, spec in enumerate(came):
        placed += _place(scheduler, usage, spec, number, [], float(number))
    allocated = usage.chips / site.chips if site.chips else 0.0
    return Fill(allocated, len(came), placed, usage.conflicts)


def comers(
    site: Site, job_specs: Iterable[JobSpec], seed: int, *, demand: float = DEMAND
) -> list[JobSpec]:
    """The jobs of a static fill, in the order in which they come."""
    listed = list(islice(job_specs, SAMPLE))
    order = _stream(seed, "static").permutation(len(listed)).tolist()
    asked, found = 0, []
    for at in order:
        if asked >= demand * site.chips:
            break
        found.append(listed[at])
        asked += chips_at_least(listed[at].job)
    return found


def capacity_bound(site: Site, came: Sequence[JobSpec]) -> float:
    """The part of all chips that no choice among these jobs can hold more than.

    Every product by itself; elastic jobs may have any number of their pods.
    """
    held = 0
    for product in dict.fromkeys(node.product for node in site.nodes):
        room = sum(node.chips for node in site.nodes if node.product == product)
        jobs = [spec.job for spec in came if spec.job.product == product]
        whole = largest_sum((chips_at_least(job) for job in jobs), room)
        more = sum(chips_of_job(job) - chips_at_least(job) for job in jobs)
        held += min(room, whole + more)
    return held / site.chips if site.chips else 0.0


def rule_bound(site: Site, came: Sequence[JobSpec], settings: Settings) -> float:
    """Like ``capacity_bound``, for schedulers that keep the rule for leaves.

    Every product by itself. Jobs of whole nodes keep the rule for leaves, of which each
    may stand in parts under several; smaller ones fill what is left. Needs the extra
    ``optimum``.
    """
    held = 0.0
    for product in dict.fromkeys(node.product for node in site.nodes):
        nodes = [node for node in site.nodes if node.product == product]
        jobs = [spec.job for spec in came if spec.job.product == product]
        held += _most_chips(nodes, jobs, settings)
    return held / site.chips if site.chips else 0.0


def _most_chips(
    nodes: Sequence[Node], jobs: Sequence[Job], settings: Settings
) -> float:
    """The most chips that jobs of one product can take on its nodes."""
    size = max(node.chips for node in nodes)
    under = Counter(node.leaf for node in nodes)
    shared = settings.share_common_leaves or None in under
    capacity = LeafCapacity(
        tuple(under.values()), cap=len(jobs) if shared else cap_of(settings)
    )
    asks, loose = [], 0
    for job in jobs:
        if job.chips == size and not job.roles:
            inside = job.job_type is JobType.PADDING
            asks.append(WholeNodeGang(job.min_chip_pods, inside and not shared))
            loose += (job.replicas - job.min_chip_pods) * size
        else:
            loose += chips_of_job(job)
    return size * most_by_rule(capacity, asks, loose / size)


def churn_fill(
    site: Site,
    job_specs: Iterable[JobSpec],
    scheduler: SchedulingEngine,
    seed: int,
    *,
    load: float = LOAD,
    jobs: int = 2000,
    settled: bool = False,
) -> Fill:
    """Jobs come at random times, *load* of what could be served, and run their time.

    The mean is over the time after a fifth of them has come. It begins with an empty
    cluster, or *settled*, as it would be after a very long time (``_Churn.settle``).
    """
    listed = list(islice(job_specs, SAMPLE))
    if not listed or not site.chips:
        return Fill(0.0, 0, 0)
    draws, churn = _stream(seed, "churn"), _Churn(site, scheduler)
    runs_s = np.array([spec.runs_s for spec in listed])
    asked = np.array([chips_at_least(spec.job) for spec in listed])
    every_s = float((asked * runs_s).mean()) / (load * site.chips)
    if settled:
        churn.settle(listed, float(runs_s.mean()) / every_s, draws)
    which = draws.integers(0, len(listed), jobs).tolist()
    gaps = draws.exponential(every_s, jobs).tolist()
    warm, since, usage = int(WARM_UP * jobs), 0.0, churn.usage
    for number, (at, gap) in enumerate(zip(which, gaps, strict=True)):
        churn.pass_by(gap)
        if number == warm:
            since = churn.now
            usage.forget()
        churn.come(listed[at], listed[at].runs_s)
    span = churn.now - since
    allocated = usage.chip_s / (site.chips * span)
    return Fill(allocated, jobs, churn.placed, usage.conflict_s / span)


class _Churn:
    """Jobs that come and go."""

    def __init__(self, site: Site, scheduler: SchedulingEngine) -> None:
        self._scheduler = scheduler
        self.usage = _Floor(site)
        self._ends: list[tuple[float, str, float]] = []
        """When a job ends, its name, and its whole running time."""
        self._gone: list[Event] = []
        self._number = 0
        self.now = 0.0
        self.placed = 0

    def pass_by(self, seconds: float) -> None:
        """Time goes by, and jobs end."""
        self.now += seconds
        while self._ends and self._ends[0][0] <= self.now:
            end, name, _runs_s = heappop(self._ends)
            self.usage.wait(end)
            self.usage.end(name)
            self._gone.append(JobGone(name))
        self.usage.wait(self.now)

    def come(self, spec: JobSpec, stays_s: float) -> None:
        """A job comes, and stays so long if it finds a place."""
        gone, self._gone = self._gone, []
        number, self._number = self._number, self._number + 1
        if _place(self._scheduler, self.usage, spec, number, gone, self.now):
            self.placed += 1
            end = self.now + stays_s, _name(spec, number), spec.runs_s
            heappush(self._ends, end)

    def settle(self, job_specs: Sequence[JobSpec], n: float, draws: Draws) -> None:
        """Let as many jobs be there as there would be after a very long time.

        Were all placed, *n* would be there on average, those that run long more likely.
        How long jobs of a loss system run does not matter to how many of each are
        there, only how often they come times that (Erlang's formula is insensitive). So
        for a while they come as often as they would be there and all stay one unit of
        time on average; then every job is somewhere in the middle of its own time.
        """
        weights = np.array([spec.runs_s for spec in job_specs])
        first, more = int(draws.poisson(n)), int(draws.poisson(SETTLING * n))
        which = draws.choice(len(job_specs), first + more, p=weights / weights.sum())
        times = np.sort(draws.uniform(0, SETTLING, more)).tolist()
        for at, time in zip(which.tolist(), [*[0.0] * first, *times], strict=True):
            self.pass_by(time - self.now)
            self.come(job_specs[at], float(draws.exponential()))
        self.pass_by(SETTLING - self.now)
        there = sorted(self._ends, key=lambda end: end[1])
        parts = draws.random(len(there)).tolist()
        self._ends = [
            (self.now + part * runs_s, name, runs_s)
            for part, (_end, name, runs_s) in zip(parts, there, strict=True)
        ]
        heapify(self._ends)
        self.placed = 0


def _place(  # noqa: PLR0917 - by what, where, which, when
    scheduler: SchedulingEngine,
    usage: _Floor,
    spec: JobSpec,
    number: int,
    gone: list[Event],
    now: float,
) -> bool:
    """Whether a job finds a place at once; without one it is gone."""
    name = _name(spec, number)
    job = replace(spec.job, name=name, created=now)
    placements = [
        placement
        for said in scheduler.handle_all([*gone, JobArrived(job)], now)
        if isinstance(said, Bind) and said.job == name
        for placement in said.placements
    ]
    if placements:
        usage.begin(name, placements)
    else:
        scheduler.handle_all([JobGone(name)], now)
    return bool(placements)


def _name(spec: JobSpec, number: int) -> str:
    return f"{spec.job.name}-{number}"


def _stream(seed: int, purpose: str) -> Draws:
    """Draws for one purpose."""
    return np.random.default_rng(np.random.SeedSequence([seed, *purpose.encode()]))
