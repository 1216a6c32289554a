"""What no scheduler can beat: bounds on makespan, use and completion times.

Every bound drops something that a real schedule must heed: that a job starts whole,
that chips are wired, that nodes stand somewhere. What is left is solved exactly. So a
bound may be out of reach, but never wrong, for jobs that run undisturbed.

Source: the bounds of docs/measures.md.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import islice
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from ringleaf.model.job import Job
from ringleaf.model.product import Product
from ringleaf.simulator.job_run import chips_of_job
from ringleaf.simulator.trial import JobSpec, Site, Workload

WARM_UP: Final = 0.2
"""The part of all arrivals that come before anything is counted."""


class Bounds(Struct, frozen=True):
    """What a workload allows on a cluster at best.

    Args:
        makespan_s: From the first arrival to the last end, at least.
        by: Which of the bounds on the makespan is the largest.
        offered_load: Chip-seconds asked, over those there are while jobs arrive.
        utilisation: Of the window, at most.
        mean_jct_s: Over the jobs that count, at least.

    """

    makespan_s: float
    by: str
    offered_load: float | None
    utilisation: float | None
    mean_jct_s: float | None

    def plain(self) -> dict[str, Any]:
        """The bounds as plain values."""
        return asdict(self)


def bounds(site: Site, workload: Workload) -> Bounds:
    """The bounds of *workload* on *site*; reads its jobs a few times."""
    warm = int(WARM_UP * workload.n_jobs)
    makespan, by = makespan_bound(site, workload.job_specs())
    return Bounds(
        makespan,
        by,
        offered_load(site, workload),
        utilisation_bound(site, workload, warm),
        mean_jct_bound(site.chips, islice(workload.job_specs(), warm, None)),
    )


def chips_at_least(job: Job) -> int:
    """Chips that a job holds while it runs: of an elastic one, the fewest."""
    return job.chips * job.min_chip_pods if job.is_elastic else chips_of_job(job)


class _Area:
    """The largest of ``t + work that comes from t on / room``, over all t.

    Nothing that comes from *t* on can be done before *t*, nor faster than all of the
    room allows.
    """

    def __init__(self, room: float) -> None:
        self._room = room
        self._before = 0.0
        self._most = 0.0

    def add(self, at: float, amount: float) -> None:
        self._most = max(self._most, at * self._room - self._before)
        self._before += amount

    @property
    def bound(self) -> float:
        return (self._most + self._before) / self._room if self._room else 0.0


class _Class:
    """The bounds on the makespan of the jobs of one product."""

    def __init__(self, chips: int, nodes: int, node_chips: int) -> None:
        self._chips, self._node_chips = chips, node_chips
        self.area = _Area(chips)
        self.nodes = _Area(nodes)
        self.single = _Area(1.0)

    def add(self, spec: JobSpec, at: float) -> None:
        job, chips = spec.job, chips_at_least(spec.job)
        self.area.add(at, chips * spec.runs_s)
        if 2 * chips > self._chips:  # no two of them run at the same time
            self.single.add(at, spec.runs_s)
        if 2 * job.chips > self._node_chips:  # one pod a node
            self.nodes.add(at, chips / job.chips * spec.runs_s)


def makespan_bound(site: Site, job_specs: Iterable[JobSpec]) -> tuple[float, str]:
    """Seconds from the first arrival to the last end, at least, and why.

    ``area``: all chips busy from some arrival on. ``nodes``: pods of more than half a
    node have it for themselves. ``single``: jobs of more than half the cluster run one
    at a time. ``longest``: no job ends before its running time.
    """
    classes: dict[Product, _Class] = {}
    for product in {node.product for node in site.nodes}:
        own = [node.chips for node in site.nodes if node.product == product]
        classes[product] = _Class(sum(own), len(own), max(own))
    first: float | None = None
    longest = 0.0
    for spec in job_specs:
        if first is None:
            first = spec.arrives
        at = spec.arrives - first
        longest = max(longest, at + spec.runs_s)
        if spec.job.product in classes:
            classes[spec.job.product].add(spec, at)
    found = {"longest": longest, "area": 0.0, "nodes": 0.0, "single": 0.0}
    for each in classes.values():
        for name in ("area", "nodes", "single"):
            found[name] = max(found[name], getattr(each, name).bound)
    by = max(found, key=lambda name: found[name])
    return found[by], by


def offered_load(site: Site, workload: Workload) -> float | None:
    """Chip-seconds that jobs ask for, over what there is from first to last arrival."""
    if not (workload.span_s and site.chips):
        return None
    asked = sum(chips_at_least(w.job) * w.runs_s for w in workload.job_specs())
    return asked / (site.chips * workload.span_s)


def utilisation_bound(site: Site, workload: Workload, warm: int) -> float | None:
    """The most of the chips that jobs can hold in the window, on average.

    A job holds its chips no longer than it runs, nor before it arrives: so this is for
    jobs that neither do work twice nor slow each other down. It is at most the offered
    load where no job came before the window.
    """
    start = stop = None
    for number, spec in enumerate(workload.job_specs()):
        if number == warm:
            start = spec.arrives
        stop = spec.arrives
    if start is None or stop is None or stop <= start or not site.chips:
        return None
    held = 0.0
    for spec in workload.job_specs():
        room = stop - max(start, spec.arrives)
        held += chips_of_job(spec.job) * min(spec.runs_s, room)
    return min(1.0, held / (site.chips * (stop - start)))


def mean_jct_bound(chips: int, job_specs: Iterable[JobSpec]) -> float | None:
    """The least mean time from arrival to end.

    One machine as fast as all chips together serves the job with the least work left:
    no schedule has a smaller mean. Nor is any job faster than alone.
    """
    alone = total = 0.0
    n = 0
    now = 0.0
    left: list[tuple[float, float]] = []
    for spec in job_specs:
        total += _served(left, now, spec.arrives, chips)
        now = max(now, spec.arrives)
        heappush(left, (chips_at_least(spec.job) * spec.runs_s, spec.arrives))
        alone += spec.runs_s
        n += 1
    total += _served(left, now, float("inf"), chips)
    return max(total, alone) / n if n else None


def _served(
    left: list[tuple[float, float]], since: float, until: float, chips: int
) -> float:
    """Serve the shortest job first; the summed completion times of jobs that end."""
    total, now = 0.0, since
    while left:
        spec, arrived = left[0]
        end = now + spec / chips
        if end > until:
            heappop(left)
            heappush(left, (spec - (until - now) * chips, arrived))
            break
        heappop(left)
        now = end
        total += end - arrived
    return total
