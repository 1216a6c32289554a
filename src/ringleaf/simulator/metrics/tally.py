"""Statistics: means, quantiles, and areas over time."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

QUANTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


def spread_of(values: Sequence[float] | Floats) -> dict[str, Any]:
    """How many there are, their mean, quantiles and the largest; None without any.

    A quantile lies between two values in proportion, as numpy's default does.

    >>> spread_of([1.0, 3.0])["mean"], spread_of([])["max"]
    (2.0, None)
    """
    listed = np.asarray(values, np.float64)
    if not len(listed):
        return {"n": 0, "mean": None, **dict.fromkeys(QUANTILES), "max": None}
    found = np.percentile(listed, list(QUANTILES.values())).tolist()
    return {
        "n": len(listed),
        "mean": float(listed.mean()),
        **dict(zip(QUANTILES, found, strict=True)),
        "max": float(listed.max()),
    }


def share(part: float, whole: float) -> float | None:
    """What *part* is of *whole*; None of nothing."""
    return part / whole if whole else None


class Areas:
    """Levels and their areas over time: exact, because levels change in steps.

    Args:
        names: What the levels are called; they are written by their place.

    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.level: Floats = np.zeros(len(names))
        self.area: Floats = np.zeros(len(names))

    def at(self, name: str) -> int:
        """The place of a level."""
        return self.names.index(name)

    def pass_by(self, seconds: float) -> None:
        """Add the areas of *seconds* at the present levels."""
        self.area += seconds * self.level

    def named(self, values: Floats) -> dict[str, float]:
        """*values* of all levels by name."""
        return dict(zip(self.names, values.tolist(), strict=True))
