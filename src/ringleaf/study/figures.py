"""Means of several seeds, how sure they are, and differences seed by seed.

Runs with the same seed had the same arrivals, so policies are compared by the mean of
their differences: what all runs of a seed have in common falls out.
"""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from msgspec import Struct

T_95: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t for 95 % of both sides, by degrees of freedom from 1."""
Z_95: Final = 1.960
"""The same for very many."""


class Mean(Struct, frozen=True):
    """A mean of *n* values; the true one lies within *half* of it, 19 times of 20.

    Args:
        mean: The mean.
        half: Half of the confidence interval; None of a single value.
        n: How many values there were.

    """

    mean: float
    half: float | None
    n: int

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves 0 out: something differs."""
        return self.half is not None and abs(self.mean) > self.half


def mean_of(values: Sequence[float]) -> Mean | None:
    """The mean with its 95 % confidence interval, by Student; None of nothing.

    >>> found = mean_of([1.0, 2.0, 3.0])
    >>> found.mean, round(found.half, 2), found.n
    (2.0, 2.48, 3)
    >>> mean_of([5.0]), mean_of([])
    (Mean(mean=5.0, half=None, n=1), None)
    """
    if not values:
        return None
    n = len(values)
    if n == 1:
        return Mean(values[0], None, 1)
    t = T_95[n - 2] if n - 2 < len(T_95) else Z_95
    return Mean(fmean(values), t * stdev(values) / sqrt(n), n)


def paired(values: Sequence[float], base: Sequence[float]) -> Mean | None:
    """The mean of the differences to *base*, seed by seed.

    >>> paired([3.0, 5.0], [1.0, 3.0])
    Mean(mean=2.0, half=0.0, n=2)
    """
    return mean_of([one - other for one, other in zip(values, base, strict=True)])
