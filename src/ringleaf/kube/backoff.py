"""Pauses that double with every failure."""

from typing import Final

MAX_DOUBLINGS: Final = 30


def backoff_s(first_s: float, n_failures: int, most_s: float) -> float:
    """How long to wait after *n_failures* that came after the first one.

    >>> [backoff_s(0.5, n, 3.0) for n in range(4)], backoff_s(1.0, 10_000, 60.0)
    ([0.5, 1.0, 2.0, 3.0], 60.0)
    """
    return min(first_s * 2.0 ** min(n_failures, MAX_DOUBLINGS), most_s)
