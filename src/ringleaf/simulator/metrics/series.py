"""A run over time in a few rows: the means of equal spans, never too many."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from ringleaf.simulator.metrics.tally import Floats

ROWS: Final = 512
"""Rows for the time in which jobs arrive."""
MOST_ROWS: Final = 2048
"""Rows at most; when there are as many, every two become one."""
SHORTEST_S: Final = 0.001
"""The shortest span of a row."""


class Series:
    """Areas at the edges of equal spans; a row is a difference of two.

    Args:
        span_s: The time in which jobs arrive.

    """

    def __init__(self, span_s: float) -> None:
        self.width = max(span_s / ROWS, SHORTEST_S)
        self.edge = self.width
        """The end of the span that has begun."""
        self._areas: list[Floats] = []
        self._start: Floats | None = None
        self._end: tuple[float, Floats] | None = None

    def begin(self, area: Floats) -> None:
        """Nothing has happened yet."""
        self._start = area.copy()

    def cross(
        self,
        since: float,
        now: float,
        area: Floats,
        level: Floats,
        sample: Callable[[], None],
    ) -> None:
        """Time goes from *since* to *now*, over the edge, with *level* all the while.

        Something that is too dear for every moment is to be sampled then, once.
        """
        while now >= self.width * MOST_ROWS:
            self._areas = self._areas[1::2]
            self.width *= 2
        self.edge = self.width * (len(self._areas) + 1)
        while self.edge <= now:
            self._areas.append(area + (self.edge - since) * level)
            self.edge = self.width * (len(self._areas) + 1)
        sample()

    def finish(self, now: float, area: Floats) -> None:
        """The run is over; what is left is the last row."""
        if now > self.width * len(self._areas):
            self._end = now, area.copy()

    def means(self, columns: Sequence[int]) -> list[tuple[float, ...]]:
        """The end of every span, and the means of some levels over it."""
        ends = [self.width * (i + 1) for i in range(len(self._areas))]
        areas = [*self._areas]
        if self._end is not None:
            ends.append(self._end[0])
            areas.append(self._end[1])
        if not areas or self._start is None:
            return []
        stacked = np.array([self._start, *areas])[:, list(columns)]
        spans = np.diff([0.0, *ends])
        means = np.diff(stacked, axis=0) / spans[:, None]
        pairs = zip(ends, means.tolist(), strict=True)
        return [(end, *row) for end, row in pairs]
