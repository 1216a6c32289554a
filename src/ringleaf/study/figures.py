"""Means over seeds, how sure they are, and differences seed by seed.

Runs with the same seed had the same arrivals, so policies are compared by the mean of
their differences: what all runs of a seed have in common falls out.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from ringleaf.report.results import Estimate

CONFIDENCE: Final = 0.95
T: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t for 95 % of both sides, by degrees of freedom from 1."""
Z: Final = 1.960
"""The same for very many."""


def student(freedom: int) -> float:
    """Student's t for 95 % of both sides; beyond the table nearly, by its expansion.

    >>> student(1), student(30), round(student(40), 2), round(student(10_000), 2)
    (12.706, 2.042, 2.02, 1.96)
    """
    if freedom <= len(T):
        return T[freedom - 1]
    return Z + (Z**3 + Z) / (4 * freedom)


def mean_of(values: Sequence[float]) -> Estimate | None:
    """The mean with its confidence interval, by Student; None of nothing.

    Values that are all the same have no interval, as a single one has none: they tell
    nothing of chance.

    >>> found = mean_of([1.0, 2.0, 3.0])
    >>> found.mean, round(found.low, 2), round(found.high, 2), found.n
    (2.0, -0.48, 4.48, 3)
    >>> mean_of([5.0]), mean_of([])
    (Estimate(mean=5.0, low=None, high=None, n=1), None)
    >>> mean_of([5.0, 5.0])
    Estimate(mean=5.0, low=None, high=None, n=2)
    """
    if not values:
        return None
    n = len(values)
    if len({*values}) == 1:
        return Estimate(values[0], n=n)
    mean, half = fmean(values), student(n - 1) * stdev(values) / sqrt(n)
    return Estimate(mean, mean - half, mean + half, n)


def paired(values: Sequence[float], base: Sequence[float]) -> Estimate | None:
    """The mean of the differences to *base*, seed by seed.

    >>> paired([3.0, 5.0], [1.0, 3.0])
    Estimate(mean=2.0, low=None, high=None, n=2)
    """
    return mean_of([one - other for one, other in zip(values, base, strict=True)])
