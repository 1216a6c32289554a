"""Workloads that have a name: drawn from published figures, or made up to be hard.

Every property of a job is drawn from a stream of its own, so that the jobs are the same
however many are drawn at a time.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from ringleaf.model.spelling import did_you_mean
from ringleaf.simulator.batch import Batch, workload_of
from ringleaf.simulator.hard import hard
from ringleaf.simulator.mix import Mix, figures, mix, synthetic, synthetic_mix
from ringleaf.simulator.preset import (
    USUAL,
    Knobs,
    WorkloadParameters,
    WorkloadPreset,
    check,
    stream,
)
from ringleaf.simulator.shapes import (
    Ints,
    JobShaper,
    ProductNodes,
    Reals,
    product_nodes,
)
from ringleaf.simulator.source import BadInput, brief
from ringleaf.simulator.trial import Site, Workload

USUAL_LOAD: Final = 0.9


def _published(
    preset: WorkloadPreset, site: Site, order: WorkloadParameters, *, least: int = 1
) -> Workload:
    """A workload drawn from published figures; jobs of *least* chips or more."""
    told, table = figures(preset.figures), mix(preset.figures, least)
    about = f"{told.title}; {told.licence}, {told.cite}"
    return _on(product_nodes(site), site, table, preset.name, about, order)


def _on(  # noqa: PLR0917 - what is drawn, and where it goes
    grounds: tuple[ProductNodes, ...],
    site: Site,
    table: Mix,
    name: str,
    about: str,
    order: WorkloadParameters,
) -> Workload:
    """Jobs drawn from *table* for some of the nodes of *site*."""
    crowd = JobShaper(grounds)
    return workload_of(
        partial(_drawn, table, crowd, order),
        site,
        crowd,
        name=name,
        about=about,
        kinds=table.kinds,
        load=order.load,
        amplitude=order.knobs.amplitude,
    )


def _drawn(table: Mix, crowd: JobShaper, order: WorkloadParameters) -> Iterator[Batch]:
    """Jobs drawn from *table*, some at a time."""
    knobs = order.knobs
    draws = {
        purpose: stream(order.seed, purpose)
        for purpose in ("cell", "time", "ending", "product", "common", "arrival")
    }
    up_to = np.cumsum(table.chance)
    up_to[-1] = 1.0
    shape, now = 1 / knobs.burst**2, 0.0
    for start in range(0, order.jobs, knobs.at_a_time):
        n = min(knobs.at_a_time, order.jobs - start)
        gaps = draws["arrival"].standard_gamma(shape, n) / shape
        gaps[0] += now
        at = np.cumsum(gaps)
        now = float(at[-1])
        cell = np.searchsorted(up_to, draws["cell"].random(n), side="right")
        low, high = table.low[cell], table.high[cell]
        runs_s = np.ceil(low + (high - low) * draws["time"].random(n)).astype(np.int64)
        chips = table.chips[cell]
        yield Batch(
            at=at,
            runs_s=runs_s,
            chips=chips,
            ground=crowd.chosen(chips, draws["product"].random(n)),
            kind=table.kind[cell],
            ending=_ending(table, cell, draws["ending"].random(n)),
            common=draws["common"].random(n) < knobs.common,
            block=table.block[cell],
            queue=np.zeros(n, np.int64),
            estimate_s=runs_s.astype(np.float64) * knobs.estimate,
        )


def _ending(table: Mix, cell: Ints, draw: Reals) -> Ints:
    """How jobs end: 0 done, 1 failed, 2 cancelled."""
    failed, cancelled = table.failed[cell], table.cancelled[cell]
    return np.where(draw < failed, 1, np.where(draw < failed + cancelled, 2, 0))


def _made_up(
    preset: WorkloadPreset,
    site: Site,
    order: WorkloadParameters,
    *,
    superpods: bool = False,
) -> Workload:
    """A workload whose sizes are made up; *superpods*: only where there are some."""
    told, table = synthetic(preset.figures), synthetic_mix(preset.figures)
    grounds = product_nodes(site)
    if superpods:
        grounds = tuple(ground for ground in grounds if ground.superpods)
    if not grounds:
        raise BadInput(
            f"workload {preset.name!r} wants SuperPoDs, cluster {site.name!r} has none",
            "superpod-48x8 has some",
        )
    about = f"{told.title}; running times: {told.licence}, {told.cite}"
    return _on(grounds, site, table, preset.name, about, order)


_GANG: Final = 8

_PRESETS: Final = (
    WorkloadPreset(
        "kalos",
        "pretraining of large language models: many small evaluations, and a few jobs "
        "of 256 to 1,024 chips that take 95 % of the time",
        _published,
        figures="kalos",
    ),
    WorkloadPreset(
        "seren",
        "development of large language models: evaluation, fine-tuning, pretraining",
        _published,
        jobs=40_000,
        figures="seren",
    ),
    WorkloadPreset(
        "llm-superpod",
        "large language models in SuperPoDs, in blocks of 16, 32 and 48 nodes",
        partial(_made_up, superpods=True),
        figures="llm-superpod",
    ),
    WorkloadPreset(
        "adversarial",
        "fills that leave one chip in every ring, or one node under every leaf, and "
        "large gangs after them",
        hard,
        figures="",
    ),
    WorkloadPreset(
        "helios-gang",
        f"the jobs of {_GANG} chips or more of a cluster for deep learning",
        partial(_published, least=_GANG),
        figures="helios",
    ),
    WorkloadPreset(
        "philly",
        "a cluster for deep learning shared by many teams: most jobs take one chip",
        _published,
        jobs=40_000,
        figures="philly",
    ),
    WorkloadPreset(
        "packing",
        "jobs of 1, 2, 4 and 8 chips, half of them of more than one",
        _made_up,
        jobs=40_000,
        figures="packing",
    ),
    WorkloadPreset(
        "pai",
        "a cluster shared by many small jobs, none larger than a node",
        _published,
        jobs=40_000,
        figures="pai",
    ),
)

WORKLOADS: Final[Mapping[str, WorkloadPreset]] = {
    preset.name: preset for preset in _PRESETS
}
"""Every preset by its name."""


class Suits(NamedTuple):
    """The clusters that a workload suits, and a first run with it."""

    chips: int
    """Of the smallest cluster."""
    load: float
    """The load at which so many *jobs* wait for hours, on a cluster of middle size."""
    jobs: int


SUITS: Final[Mapping[str, Suits]] = {
    "kalos": Suits(2000, load=0.8, jobs=2000),
    "helios-gang": Suits(500, load=1.1, jobs=2000),
    "philly": Suits(128, load=0.9, jobs=6000),
    "pai": Suits(0, load=0.9, jobs=2000),
}
"""By workload, the one with the largest jobs first.

On a smaller cluster its largest jobs take so much of it that they wait for days.
docs/compare.md says what was measured with these loads.
"""


def suited(chips: int) -> str:
    """The workload with the largest jobs that suits a cluster of so many chips.

    >>> suited(4096), suited(1024), suited(192), suited(32)
    ('kalos', 'helios-gang', 'philly', 'pai')
    """
    return next(name for name, suits in SUITS.items() if chips >= suits.chips)


def workload(
    name: str,
    site: Site,
    *,
    seed: int = 0,
    load: float = USUAL_LOAD,
    jobs: int | None = None,
    knobs: Knobs = USUAL,
) -> Workload:
    """The workload *name* on *site*, of *jobs* jobs or as many as it usually has."""
    preset = WORKLOADS.get(name)
    if preset is None:
        raise BadInput(
            f"workload {brief(name)} is unknown, want one of {', '.join(WORKLOADS)}",
            did_you_mean(name, WORKLOADS) or None,
        )
    check(seed, load, jobs, knobs)
    order = WorkloadParameters(seed, load, jobs or preset.jobs, knobs)
    return preset.make(preset, site, order)
