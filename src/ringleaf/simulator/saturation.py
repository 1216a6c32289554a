"""How much of a cluster is allocated when more is asked than there is (metric 2).

Two ways to ask too much, both without a line to wait in: a job that finds no place at
once is gone. So they measure where jobs are put, and nothing of who goes first.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.engine.event import Event, JobArrived, JobGone
from ringleaf.framework.instruction import Bind
from ringleaf.model.placement import Placement
from ringleaf.simulator.bounds import WARM_UP, chips_at_least
from ringleaf.simulator.trial import Scheduler, Site, Work

DEMAND: Final = 1.3
"""Chips asked in a static fill, over those there are. Source: FGD (ATC 2023)."""
LOAD: Final = 1.1
"""Chip-seconds asked in a churn, over those there are."""
SAMPLE: Final = 20_000
"""Jobs of a workload from which a fill is drawn, at most."""


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
    works: Iterable[Work],
    scheduler: Scheduler,
    seed: int,
    *,
    demand: float = DEMAND,
) -> Fill:
    """Jobs come in a random order until they ask for *demand* of C; nobody leaves."""
    listed = list(islice(works, SAMPLE))
    order = _stream(seed, "static").permutation(len(listed)).tolist()
    floor = _Floor(site)
    asked = jobs = placed = 0
    for number, at in enumerate(order):
        if asked >= demand * site.chips:
            break
        work = listed[at]
        asked += chips_at_least(work.job)
        jobs += 1
        placed += _place(scheduler, floor, work, number, [], float(number))
    allocated = floor.chips / site.chips if site.chips else 0.0
    return Fill(allocated, jobs, placed, floor.conflicts)


def churn_fill(
    site: Site,
    works: Iterable[Work],
    scheduler: Scheduler,
    seed: int,
    *,
    load: float = LOAD,
    jobs: int = 2000,
) -> Fill:
    """Jobs come at random times, *load* of what could be served, and run their time.

    The mean is over the time after a fifth of them has come.
    """
    listed = list(islice(works, SAMPLE))
    if not listed or not site.chips:
        return Fill(0.0, 0, 0)
    work_s = sum(chips_at_least(w.job) * w.runs_s for w in listed) / len(listed)
    draws = _stream(seed, "churn")
    which = draws.integers(0, len(listed), jobs).tolist()
    gaps = draws.exponential(work_s / (load * site.chips), jobs).tolist()
    ends: list[tuple[float, str]] = []
    floor = _Floor(site)
    now = since = 0.0
    placed = 0
    warm = int(WARM_UP * jobs)
    for number, (at, gap) in enumerate(zip(which, gaps, strict=True)):
        now += gap
        gone: list[Event] = []
        while ends and ends[0][0] <= now:
            end, name = heappop(ends)
            floor.wait(end)
            floor.end(name)
            gone.append(JobGone(name))
        floor.wait(now)
        if number == warm:
            since = now
            floor.forget()
        work = listed[at]
        if _place(scheduler, floor, work, number, gone, now):
            placed += 1
            heappush(ends, (now + work.runs_s, _name(work, number)))
    span = now - since
    return Fill(
        floor.chip_s / (site.chips * span), jobs, placed, floor.conflict_s / span
    )


def _place(  # noqa: PLR0917 - who, where, which, when
    scheduler: Scheduler,
    floor: _Floor,
    work: Work,
    number: int,
    gone: list[Event],
    now: float,
) -> bool:
    """Whether a job finds a place at once; without one it is gone."""
    name = _name(work, number)
    job = replace(work.job, name=name, created=now)
    placements = [
        placement
        for said in scheduler.handle_all([*gone, JobArrived(job)], now)
        if isinstance(said, Bind) and said.job == name
        for placement in said.placements
    ]
    if placements:
        floor.begin(name, placements)
    else:
        scheduler.handle_all([JobGone(name)], now)
    return bool(placements)


def _name(work: Work, number: int) -> str:
    return f"{work.job.name}-{number}"


def _stream(seed: int, purpose: str) -> np.random.Generator:
    """Draws for one purpose."""
    return np.random.default_rng(np.random.SeedSequence([seed, *purpose.encode()]))
