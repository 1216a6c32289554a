"""Waiting by size of job: a dot for the mean and a line to the 95th percentile."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import log10
from typing import Final, NamedTuple

from ringleaf.report.chart import (
    BOTTOM,
    RIGHT,
    SIZES,
    TOP,
    WIDE,
    Size,
    colour_of,
    dashes_of,
    in_px,
    svg_of,
    text_at,
)
from ringleaf.report.measures import duration

FLOOR_S: Final = 0.3
"""Where the axis, which is logarithmic, shows no wait at all."""
_TIMES: Final = {
    FLOOR_S: "0 s",
    1.0: "1 s",
    10.0: "10 s",
    60.0: "1 min",
    600.0: "10 min",
    3600.0: "1 h",
    21600.0: "6 h",
    86400.0: "1 d",
    864000.0: "10 d",
}
"""What the axis tells, in seconds; it is logarithmic."""
INSET: Final = 6
"""Before the first dot, so that it is whole, in pixels."""
ROOM: Final = 42
"""Between words of the axis, in pixels."""
MANY: Final = 6
"""Policies above which rows are closer together."""


class Spread(NamedTuple):
    """Waits of jobs of one size under one policy."""

    n: float
    mean: float
    p95: float


class SpreadChart(NamedTuple):
    """Sizes of jobs from top to bottom, and under each the policies."""

    title: str
    sizes: Sequence[str]
    policies: Sequence[str]
    found: Mapping[tuple[str, str], Spread]

    def svg(self) -> str:
        """The chart in all sizes of screens."""
        return "".join(_Sheet(self, size).svg() for size in SIZES)


class _Sheet:
    """The chart for one size of screens."""

    def __init__(self, chart: SpreadChart, size: Size) -> None:
        self.chart, self.size = chart, size
        n = len(chart.policies)
        self.row, self.gap = (11, 14) if n > MANY else (14, 16)
        self.left = 92 if size is WIDE else 82
        self.block = max(self.row * n, 30) + self.gap
        self.bottom = TOP + 8 + self.block * len(chart.sizes)
        self.width = size.width - self.left - RIGHT
        longest = max((own.p95 for own in chart.found.values()), default=0.0)
        self.end = min((t for t in _TIMES if t >= max(10.0, longest)), default=longest)

    def svg(self) -> str:
        words = "waiting (logarithmic)"
        edge = self.size.width - RIGHT
        parts = [
            *self.columns(),
            text_at(self.left - 10, TOP - 2, "chips", "dim", "end"),
            *(part for i in range(len(self.chart.sizes)) for part in self.rows(i)),
            text_at(edge, self.bottom + 33, words, "dim", "end"),
        ]
        return svg_of(self.size, self.bottom + BOTTOM, self.chart.title, parts)

    def x(self, seconds: float) -> float:
        share = log10(max(FLOOR_S, seconds) / FLOOR_S) / log10(self.end / FLOOR_S)
        return self.left + INSET + (self.width - INSET) * min(1.0, share)

    def columns(self) -> Iterator[str]:
        last = -float(ROOM)
        for seconds, words in _TIMES.items():
            if seconds > self.end:
                return
            at = self.x(seconds)
            px = in_px(at)
            where = f'x1="{px}" x2="{px}" y1="{TOP}" y2="{self.bottom}"'
            yield f'<line class="grid" {where}/>'
            if at - last > ROOM:
                last = at
                is_last = at > self.size.width - ROOM
                anchor = "end" if is_last else "middle"
                yield text_at(at, self.bottom + 16, words, "", anchor)

    def rows(self, i: int) -> Iterator[str]:
        """One size of jobs."""
        chart, top = self.chart, TOP + 8 + i * self.block
        size = chart.sizes[i]
        own = {
            p: chart.found[size, p] for p in chart.policies if (size, p) in chart.found
        }
        n = max((spread.n for spread in own.values()), default=0)
        yield text_at(self.left - 10, top + 12, size, "strong", "end")
        yield text_at(self.left - 10, top + 26, f"{n:,.0f} jobs", "dim", "end")
        if i:
            px, right = in_px(top - self.gap / 2), self.size.width - RIGHT
            yield f'<line class="tick" x1="4" x2="{right}" y1="{px}" y2="{px}"/>'
        for j, policy in enumerate(chart.policies):
            if policy in own:
                y = top + self.row * j + self.row / 2
                yield self.dot(j, y, f"{policy}, {size} chips", own[policy])

    def dot(self, number: int, y: float, who: str, own: Spread) -> str:
        """One policy."""
        mean, p95 = in_px(self.x(own.mean)), in_px(self.x(own.p95))
        at, up, down = in_px(y), in_px(y - 3), in_px(y + 3)
        words = f"{who}: mean {duration(own.mean)}, 95 % within {duration(own.p95)}"
        return (
            f'<g class="{colour_of(number)}"><title>{escape(words)}</title>'
            f'<rect class="hit" x="{self.left}" y="{in_px(y - self.row / 2)}" '
            f'width="{self.width}" height="{self.row}"/>'
            f'<line class="whisker" x1="{mean}" x2="{p95}" y1="{at}" y2="{at}"'
            f"{dashes_of(number)}/>"
            f'<line class="whisker" x1="{p95}" x2="{p95}" y1="{up}" y2="{down}"/>'
            f'<circle class="dot" cx="{mean}" cy="{at}" r="{3.5 if number else 4.5}"/>'
            "</g>"
        )
