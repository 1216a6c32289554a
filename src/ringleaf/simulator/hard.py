"""A workload made up to be hard: many small jobs, then gangs that want all the rest.

Each round has four acts. In the first, as many one-chip jobs come as there are rings: a
scheduler that spreads them leaves no ring whole, one that packs them leaves nearly all.
In the second, as many jobs of a node as there are leaves. In the third the cluster is
filled with one-chip jobs, and all go but one of each ring's worth; in the fourth with
jobs of a node, and all go but one of each leaf's worth: how bad that is depends on
which jobs share a leaf. After each come gangs from two nodes to a quarter of the
cluster.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
from msgspec import Struct

from ringleaf.simulator.batch import Batch, workload_of
from ringleaf.simulator.preset import WorkloadParameters, WorkloadPreset, stream
from ringleaf.simulator.shapes import (
    Ints,
    JobShaper,
    ProductNodes,
    Reals,
    product_nodes,
)
from ringleaf.simulator.trial import Site, Workload

STAY_S: Final = 6 * 3600
"""Seconds that the jobs run which are in the way."""
GO_S: Final = 1200
"""Seconds that the jobs run which go."""
JITTER_S: Final = 300
"""Seconds by which running times differ."""
GANG_S: Final = 2 * 3600
REST_S: Final = 3600
"""Seconds after the last of an act before the next begins."""
GAP_S: Final = 0.05
"""Seconds between jobs that come one after the other."""
GANG_SHARE: Final = 0.6
"""Chips that the gangs of an act want, by those of the cluster."""

KINDS: Final = ("chip", "node", "gang")
_CHIP, _NODE, _GANG = range(3)


class Rows(Struct, frozen=True):
    """Jobs of an act, in seconds from its beginning; gangs come *then*."""

    at: Reals
    runs_s: Ints
    chips: Ints
    kind: int
    then: float = 0.0


def hard(preset: WorkloadPreset, site: Site, order: WorkloadParameters) -> Workload:
    """The workload on the products of *site*, one after the other."""
    crowd = JobShaper(product_nodes(site))
    return workload_of(
        partial(_cut, crowd, order),
        site,
        crowd,
        name=preset.name,
        about=f"made up: {preset.title}",
        kinds=KINDS,
        load=order.load,
    )


def _cut(crowd: JobShaper, order: WorkloadParameters) -> Iterator[Batch]:
    """The acts, up to the last job that is wanted, some jobs at a time."""
    left, size = order.jobs, order.knobs.at_a_time
    for batch in _acts(crowd, order):
        n = min(left, len(batch.at))
        for start in range(0, n, size):
            yield _slice(batch, start, min(n, start + size))
        left -= n
        if not left:
            return


def _slice(batch: Batch, start: int, stop: int) -> Batch:
    columns = {name: getattr(batch, name) for name in batch.__struct_fields__}
    known = {name: each for name, each in columns.items() if each is not None}
    return Batch(**{name: each[start:stop] for name, each in known.items()})


def _acts(crowd: JobShaper, order: WorkloadParameters) -> Iterator[Batch]:
    """Act after act, for ever."""
    draw, now = stream(order.seed, "adversarial"), 0.0
    while True:
        for number, ground in enumerate(crowd.grounds):
            n_rings = ground.n_nodes * max(1, ground.size // ground.product.width)
            n_leaves = -(-ground.n_nodes // ground.group)
            ring, leaf = ground.chips // n_rings, ground.group
            for fill in (
                _fill(draw, n_rings, 1, 1, _CHIP),
                _fill(draw, n_leaves, 1, ground.size, _NODE),
                _fill(draw, n_rings, ring, 1, _CHIP),
                _fill(draw, n_leaves, leaf, ground.size, _NODE),
            ):
                gangs = _gangs(draw, ground, fill.then)
                common = draw.random() < order.knobs.common
                yield _batch((fill, gangs), number, now, order, common=common)
                now += float(gangs.at[-1]) + STAY_S + REST_S


def _fill(
    draw: np.random.Generator, groups: int, of_each: int, chips: int, kind: int
) -> Rows:
    """Jobs of *chips* chips, *of_each* for every group; one of each group stays."""
    n = groups * of_each
    runs_s = GO_S + draw.integers(0, JITTER_S, n)
    staying = np.arange(groups) * of_each + draw.integers(0, of_each, groups)
    runs_s[staying] += STAY_S
    at = np.arange(n, dtype=np.float64) * GAP_S
    then = float(at[-1]) + (GO_S + JITTER_S if of_each > 1 else JITTER_S)
    return Rows(at, runs_s, np.full(n, chips), kind, then)


def _gangs(draw: np.random.Generator, ground: ProductNodes, then: float) -> Rows:
    """Gangs of 2, 4, 8 … nodes, up to a quarter of what there is."""
    most = max(1, ground.n_nodes // 4)
    powers = [2**i for i in range(1, most.bit_length()) if 2**i <= most] or [most]
    nodes: list[int] = []
    while sum(nodes) < GANG_SHARE * ground.n_nodes:
        nodes.append(powers[int(draw.integers(0, len(powers)))])
    n = len(nodes)
    at = then + np.arange(n, dtype=np.float64) * GAP_S
    runs_s = GANG_S + draw.integers(0, JITTER_S, n)
    return Rows(at, runs_s, np.array(nodes) * ground.size, _GANG)


def _batch(
    both: tuple[Rows, Rows],
    ground: int,
    now: float,
    order: WorkloadParameters,
    *,
    common: bool,
) -> Batch:
    """The jobs of an act that begins at *now*."""
    n = sum(len(rows.at) for rows in both)
    runs_s = np.concatenate([rows.runs_s for rows in both])
    none = np.zeros(n, np.int64)
    return Batch(
        at=now + np.concatenate([rows.at for rows in both]),
        runs_s=runs_s,
        chips=np.concatenate([rows.chips for rows in both]),
        ground=none + ground,
        kind=np.concatenate([np.full(len(rows.at), rows.kind) for rows in both]),
        ending=none,
        common=np.full(n, common),
        block=none,
        queue=none,
        estimate_s=runs_s.astype(np.float64) * order.knobs.estimate,
    )
