"""Published figures of a workload, made into one table to draw jobs from.

Papers tell shares: of jobs and of chip-time, by type and by size, and how long the jobs
of each type run. A job has a type, a size and a running time together. Of all joint
tables that agree with the shares, the one is taken that is nearest to types, sizes and
times being independent but for what is told (iterative proportional fitting, with
exponential tilts where a share of chip-time is told).
"""

from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST_S: Final = 30 * 86400.0
"""Nothing runs longer."""
SHORTEST_S: Final = 1.0
ROUNDS: Final = 300
"""Rounds of fitting; the shares agree within some thousandths long before."""
TINY: Final = 1e-3
"""Share of jobs whose size the box of their type does not tell."""
SPLIT: Final = 4
"""Parts of a step of a published CDF, between which its logarithm is straight."""
BEND: Final = 1.0
SOFT: Final = 8.0
"""A step of a tilt: small, so that the fit does not swing."""


class JobTypeFigures(Struct, frozen=True):
    """Published figures of the jobs of one type.

    Args:
        jobs_percent: Of all jobs.
        chip_time_percent: Of all chip-time.
        chips_box: Chips of a job: lower whisker, quartiles, upper whisker.
        seconds_cdf_percent: Seconds, and percent of jobs that run no longer.

    """

    jobs_percent: float
    chip_time_percent: float
    chips_box: tuple[int, ...]
    seconds_cdf_percent: tuple[tuple[float, float], ...]


class Figures(Struct, frozen=True):
    """What was published of a workload; the files beside this module.

    Args:
        title: What it is.
        source: Where the figures come from.
        licence: Under which they may be used.
        cite: The authors to credit.
        changed: What was done to them.
        jobs: Jobs of the original.
        mean_chips: Chips of a job.
        sizes: Chips, percent of jobs, percent of chip-time.
        types: What is told of each type.
        mean_s: Seconds of a job.
        median_s: The same.
        chip_s_per_job: Chip-seconds of all jobs, by their number.
        endings: How jobs end: share of jobs, share of chip-time.

    """

    title: str
    source: str
    licence: str
    cite: str
    changed: str
    jobs: int
    mean_chips: float
    sizes: tuple[tuple[int, float, float], ...]
    types: dict[str, JobTypeFigures]
    mean_s: float | None = None
    median_s: float | None = None
    chip_s_per_job: float | None = None
    endings: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)


class SyntheticJobType(Struct, frozen=True):
    """What jobs of one type are made up to be like.

    Args:
        jobs_percent: Of all jobs.
        seconds_of: The workload and the type whose running times they have.
        chips_block_percent: Chips, nodes of a logical SuperPoD, percent of the type.

    """

    jobs_percent: float
    seconds_of: tuple[str, str]
    chips_block_percent: tuple[tuple[int, int, float], ...]


class SyntheticWorkload(Struct, frozen=True):
    """A workload of which only running times and endings were published."""

    title: str
    source: str
    licence: str
    cite: str
    changed: str
    endings_of: str
    types: dict[str, SyntheticJobType]


class Mix(Struct, frozen=True):
    """Cells to draw from: the chance of each, and what a job of it is like.

    ``low`` and ``high`` bound its running time, which is evenly spread between;
    ``failed`` and ``cancelled`` are the chances that it ends so. ``block`` are the
    nodes of a logical SuperPoD that it asks for, 0 where it does not say.
    """

    kinds: tuple[str, ...]
    chance: Reals
    kind: Ints
    chips: Ints
    low: Reals
    high: Reals
    failed: Reals
    cancelled: Reals
    block: Ints

    @property
    def mean_s(self) -> Reals:
        """Seconds that a job of each cell runs."""
        return (self.low + self.high) / 2


def _read(name: str) -> bytes:
    return (files("ringleaf.simulator") / "figures" / f"{name}.json").read_bytes()


@lru_cache
def figures(name: str) -> Figures:
    """What was published of the workload *name*."""
    return msgspec.json.decode(_read(name), type=Figures)


@lru_cache
def synthetic(name: str) -> SyntheticWorkload:
    """What the workload *name* is made up to be."""
    return msgspec.json.decode(_read(name), type=SyntheticWorkload)


def is_made_up(name: str) -> bool:
    """Whether the sizes of the workload *name* are made up, not published."""
    return b'"endings_of"' in _read(name)


@lru_cache
def mix(name: str, least: int = 1) -> Mix:
    """The table of the workload *name*; only jobs of *least* chips or more."""
    told = figures(name)
    edges = _edges(told)
    joint = _fitted(told, edges)
    sizes = np.array([row[0] for row in told.sizes])
    kind, size, step = (each.ravel() for each in np.indices(joint.shape))
    cells = joint.ravel(), kind, sizes[size], np.zeros(joint.size, np.int64)
    table = _table(told, tuple(told.types), cells, edges, step)
    return _only(table, (table.chance > 0) & (table.chips >= least))


@lru_cache
def synthetic_mix(name: str) -> Mix:
    """The table of a synthetic workload: sizes and running times are independent."""
    told = synthetic(name)
    edges = _edges(figures(told.endings_of))
    rows, steps = [], []
    for i, wish in enumerate(told.types.values()):
        seconds = figures(wish.seconds_of[0]).types[wish.seconds_of[1]]
        rises = _steps(seconds) * wish.jobs_percent / 100
        for chips, block, percent in wish.chips_block_percent:
            for step in np.flatnonzero(rises).tolist():
                rows.append((rises[step] * percent / 100, i, chips, block))
                steps.append(step)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    cells = columns[0] / columns[0].sum(), columns[1], columns[2], columns[3]
    own = figures(told.endings_of)
    return _table(own, tuple(told.types), cells, edges, np.array(steps))


def _table(
    told: Figures,
    kinds: tuple[str, ...],
    cells: tuple[Reals, Ints, Ints, Ints],
    edges: Reals,
    step: Ints,
) -> Mix:
    """Chance, kind, chips and block of *cells* with their times and endings."""
    chance, kind, chips, block = cells
    low, high = edges[step], edges[step + 1]
    failed, cancelled = _endings(told, chance, chips * (low + high))
    return Mix(kinds, chance, kind, chips, low, high, failed, cancelled, block)


def _only(table: Mix, keep: NDArray[np.bool_]) -> Mix:
    """The cells of *table* to *keep*."""
    columns = (getattr(table, name)[keep] for name in table.__struct_fields__[1:])
    kept = Mix(table.kinds, *columns)
    return replace(kept, chance=kept.chance / kept.chance.sum())


def _edges(told: Figures) -> Reals:
    """Seconds between which running times are drawn."""
    points = next(iter(told.types.values())).seconds_cdf_percent
    marks = [0.0, *(seconds for seconds, _percent in points)]
    steps = [marks[0]]
    for low, high in pairwise(marks):
        start = low or high / 2
        steps += [
            start * (high / start) ** (part / SPLIT) for part in range(1, SPLIT + 1)
        ]
    return np.clip(steps, SHORTEST_S, LONGEST_S)


def _fitted(told: Figures, edges: Reals) -> Reals:
    """Chances by type, size and step of running time."""
    kinds = list(told.types.values())
    sizes = np.array([float(row[0]) for row in told.sizes])
    by_size, time_by_size = (
        np.array([row[i] for row in told.sizes]) / 100 for i in (1, 2)
    )
    by_type = np.array([kind.jobs_percent * _steps(kind) for kind in kinds])
    by_type /= by_type.sum()
    time_by_type = np.array([kind.chip_time_percent for kind in kinds]) / 100
    joint = np.array([_sizes(kind, sizes) for kind in kinds])[:, :, None]
    joint = joint * by_type[:, None, :]
    cost = (sizes[:, None] * (edges[:-1] + edges[1:]))[None]
    for _round in range(ROUNDS):
        total = float((joint * cost).sum())
        joint = _tilted(joint, cost, time_by_type * total, axis=0)
        joint = _tilted(joint, cost, time_by_size * total, axis=1)
        joint *= _ratio(by_size, joint.sum((0, 2)))[None, :, None]
        joint *= _ratio(by_type, joint.sum(1))[:, None, :]
    return np.asarray(joint / joint.sum())


def _endings(told: Figures, chance: Reals, cost: Reals) -> tuple[Reals, Reals]:
    """The chances of every cell to fail and to be cancelled.

    There are two of each, one for the cells that cost most and one for the others, so
    that the shares of jobs and of chip-time are as told. Where to divide the cells is
    free; it is done where the two differ least.
    """
    order = np.argsort(cost, kind="stable")
    jobs = np.cumsum(chance[order])
    time = np.cumsum((chance * cost)[order]) / (chance * cost).sum()
    cut = int(np.argmax(jobs - time))
    a, b = jobs[cut], time[cut]
    costly = np.ones(len(cost), bool)
    costly[order[: cut + 1]] = False
    found = []
    for ending in ("failed", "cancelled"):
        of_jobs, of_time = told.endings.get(ending, (0.0, 0.0))
        cheap = (of_jobs * (1 - b) - of_time * (1 - a)) / (a - b)
        dear = (a * of_time - b * of_jobs) / (a - b)
        found.append(np.clip(np.where(costly, dear, cheap), 0.0, 1.0))
    return found[0], found[1]


def _ratio(wanted: Reals, found: Reals) -> Reals:
    return np.divide(wanted, found, out=np.zeros_like(found), where=found > 0)


def _tilted(joint: Reals, cost: Reals, wanted: Reals, axis: int) -> Reals:
    """*joint* with more weight on what costs more, or less, slice by slice.

    Each slice keeps its sum, and its cost comes nearer to what is *wanted*.
    """
    others = tuple(each for each in range(joint.ndim) if each != axis)
    shape = [1] * joint.ndim
    shape[axis] = -1
    weight = joint.sum(others)
    costs = np.log(np.broadcast_to(cost, joint.shape))
    found = (joint * np.exp(costs)).sum(others)
    bend = np.clip(np.log(_ratio(wanted, found) + (found == 0)), -BEND, BEND)
    tilted: Reals = joint * np.exp(bend.reshape(shape) * (costs - costs.max()) / SOFT)
    return np.asarray(tilted * _ratio(weight, tilted.sum(others)).reshape(shape))


def _steps(kind: JobTypeFigures) -> Reals:
    """The chance of every step of running time of one type."""
    heights = [0.0, *(percent for _seconds, percent in kind.seconds_cdf_percent)]
    heights[-1] = 100.0
    rises: Reals = np.diff(heights) / 100
    return np.repeat(rises / SPLIT, SPLIT)


def _sizes(kind: JobTypeFigures, sizes: Reals) -> Reals:
    """The probability of every size, as far as the box plot of the type gives it."""
    marks = np.log2(np.array(kind.chips_box, float))
    at = np.interp((np.arange(400) + 0.5) / 400, np.linspace(0, 1, len(marks)), marks)
    nearest = np.abs(at[:, None] - np.log2(sizes)[None, :]).argmin(1)
    counted = np.bincount(nearest, minlength=len(sizes)) / len(nearest)
    return np.asarray((1 - TINY) * counted + TINY / len(sizes))
