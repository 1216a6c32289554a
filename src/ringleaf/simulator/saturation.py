"""How much of a cluster is allocated when more is asked than there is (metric 2).

Two ways to ask too much, both without a line to wait in: a job that finds no place at
once is gone. So they measure where jobs are put, and nothing of who goes first.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import islice
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.engine.event import Event, JobArrived, JobGone
from ringleaf.framework.instruction import Bind
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

    """

    allocated: float
    jobs: int
    placed: int

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "allocated": self.allocated,
            "jobs": self.jobs,
            "placed": self.placed,
        }


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
    asked = held = jobs = placed = 0
    for number, at in enumerate(order):
        if asked >= demand * site.chips:
            break
        work = listed[at]
        asked += chips_at_least(work.job)
        jobs += 1
        got = _place(scheduler, work, number, [], float(number))
        placed += got > 0
        held += got
    return Fill(held / site.chips if site.chips else 0.0, jobs, placed)


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
    ends: list[tuple[float, str, int]] = []
    now = area = 0.0
    held = placed = 0
    since = 0.0
    warm = int(WARM_UP * jobs)
    for number, (at, gap) in enumerate(zip(which, gaps, strict=True)):
        until = now + gap
        gone: list[Event] = []
        while ends and ends[0][0] <= until:
            end, name, chips = heappop(ends)
            area += held * (end - now)
            now, held = end, held - chips
            gone.append(JobGone(name))
        area += held * (until - now)
        now = until
        if number == warm:
            since, area = now, 0.0
        work = listed[at]
        got = _place(scheduler, work, number, gone, now)
        if got:
            placed += 1
            held += got
            heappush(ends, (now + work.runs_s, _name(work, number), got))
    return Fill(area / (site.chips * (now - since)), jobs, placed)


def _place(
    scheduler: Scheduler, work: Work, number: int, gone: list[Event], now: float
) -> int:
    """The chips that a job gets at once; without a place it is gone."""
    name = _name(work, number)
    job = replace(work.job, name=name, created=now)
    got = 0
    for said in scheduler.handle_all([*gone, JobArrived(job)], now):
        if isinstance(said, Bind) and said.job == name:
            got += sum(len(each.chips) for each in said.placements)
    if not got:
        scheduler.handle_all([JobGone(name)], now)
    return got


def _name(work: Work, number: int) -> str:
    return f"{work.job.name}-{number}"


def _stream(seed: int, purpose: str) -> np.random.Generator:
    """Draws for one purpose."""
    return np.random.default_rng(np.random.SeedSequence([seed, *purpose.encode()]))
