"""Workloads that have a name, and the parameters that a user gives them."""

from collections.abc import Callable
from typing import Final
from zlib import crc32

import numpy as np
from msgspec import Struct

from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import Site, Workload

USUAL_JOBS: Final = 10_000
MOST_LOAD: Final = 10
"""Ten times what a cluster can serve."""
MOST_JOBS: Final = 10_000_000
"""More than any published trace has."""
MOST_BURST: Final = 100
PERCENT: Final = 100


class Knobs(Struct, frozen=True):
    """How jobs arrive and what they tell.

    Args:
        amplitude: How much more jobs arrive by day, and fewer by night; 0 to below 1.
        burst: Coefficient of variation of the time between arrivals; 1 is Poisson.
        common: Share of the jobs of whole nodes that are common, not foundation or
            padding (label ``tor-affinity``).
        estimate: Running times that jobs tell in advance, by what is so; 0 for none.
        at_a_time: Jobs that are drawn together; nothing else depends on it.

    """

    amplitude: float = 0.6
    burst: float = 2.0
    common: float = 0.25
    estimate: float = 0.0
    at_a_time: int = 8192


USUAL: Final = Knobs()


class WorkloadParameters(Struct, frozen=True):
    """The parameters of a preset: its seed, offered load, number of jobs."""

    seed: int
    load: float
    jobs: int
    knobs: Knobs


class WorkloadPreset(Struct, frozen=True):
    """A workload that has a name.

    Args:
        name: What people call it.
        title: What it is, in one line.
        make: The workload on a cluster.
        jobs: How many jobs it usually has.
        figures: The file its figures are in, if it has one.

    """

    name: str
    title: str
    make: Callable[["WorkloadPreset", Site, WorkloadParameters], Workload]
    jobs: int = USUAL_JOBS
    figures: str = ""


def stream(seed: int, purpose: str) -> np.random.Generator:
    """The numbers that are drawn for one *purpose*."""
    return np.random.Generator(
        np.random.PCG64(np.random.SeedSequence([seed, crc32(purpose.encode())]))
    )


def check(seed: int, load: float | None, jobs: int | None, knobs: Knobs) -> None:
    """Refuse what no workload can be asked for."""
    wanted_load = load is None or 0 < load <= MOST_LOAD
    wanted_jobs = jobs is None or 0 < jobs <= MOST_JOBS
    for what, given, good, want, hint in (
        ("seed", seed, seed >= 0, "a whole number, 0 or more", None),
        (
            *("load", load, wanted_load, f"more than 0 and at most {MOST_LOAD}"),
            _load_hint(load),
        ),
        (
            *("jobs", jobs, wanted_jobs, f"1 to {MOST_JOBS:,}"),
            "a study has 1,000 to 100,000 jobs",
        ),
        ("amplitude", knobs.amplitude, 0 <= knobs.amplitude < 1, "0 to below 1", None),
        (
            *("burst", knobs.burst, 0 < knobs.burst <= MOST_BURST),
            f"more than 0 and at most {MOST_BURST}",
            None,
        ),
        ("common", knobs.common, 0 <= knobs.common <= 1, "0 to 1", None),
        ("estimate", knobs.estimate, knobs.estimate >= 0, "0 or more", None),
    ):
        if not good:
            raise BadInput(f"{what} is {given:,}, want {want}", hint)


def _load_hint(load: float | None) -> str:
    """What was meant, where it may have been percent."""
    meant = load is not None and MOST_LOAD < load <= MOST_LOAD * PERCENT
    share = load / PERCENT if load is not None and meant else 0.9
    return f"{share:g} is {PERCENT * share:g} % of what the cluster can serve"
