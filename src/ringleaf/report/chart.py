"""What charts over time are made of: equal spans, and the axis of time."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringleaf.report.duration import DAY_S, HOUR_S, MINUTE_S
from ringleaf.report.results import RunResult

Floats = NDArray[np.float64]

BINS: Final = 400
"""Points of a line."""
AFTER_ARRIVALS: Final = 1.1
"""How far charts go, by the time in which jobs arrive."""


def binned(rows: Sequence[Sequence[float]], column: int, end: float) -> Floats:
    """The means of a column of the rows over time, over equal spans up to *end*.

    Rows tell means over the time since the row before; spans after the last are NaN.
    """
    edges = np.linspace(0.0, end, BINS + 1)
    if not rows:
        return np.full(BINS, np.nan)
    ends = np.array([0.0, *(row[0] for row in rows)])
    values = np.array([row[column] for row in rows])
    areas = np.concatenate([[0.0], np.cumsum(values * np.diff(ends))])
    at = np.interp(edges, ends, areas)
    reached = np.minimum(edges, ends[-1])
    spans = np.diff(reached)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spans > 0, np.diff(at) / spans, np.nan)


class Axis(NamedTuple):
    """Time along the bottom."""

    end: float
    """Where it ends, in seconds."""
    warm: float
    """Until when nothing is counted."""
    last: float
    """When the last job arrives."""

    @property
    def unit(self) -> tuple[float, str]:
        """Seconds of a unit, and its name."""
        if self.end >= 3 * DAY_S:
            return DAY_S, "days"
        return (HOUR_S, "hours") if self.end >= 3 * HOUR_S else (MINUTE_S, "minutes")


def axis_of(runs: Sequence[RunResult]) -> Axis:
    """Time as charts show it: all arrivals, and a little after them."""
    window = runs[0].metrics.get("window", {})
    ends = [run.series[-1][0] for run in runs if run.series]
    last = float(window.get("to_s", 0.0)) or max(ends, default=1.0)
    end = min(max(ends, default=last), last * AFTER_ARRIVALS)
    return Axis(end, float(window.get("from_s", 0.0)), last)
