"""A bar for every policy, in parts."""

from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import NamedTuple

from ringleaf.report.chart import (
    BOTTOM,
    NARROW,
    RIGHT,
    SIZES,
    TOP,
    Size,
    in_px,
    nice_ticks,
    svg_of,
    text_at,
)


class StackChart(NamedTuple):
    """Policy -> part -> value; parts have the colours ``b0``, ``b1``, ...."""

    title: str
    unit: str
    bars: Mapping[str, Mapping[str, float]]
    written: Callable[[float], str]

    def svg(self) -> str:
        """The chart in all sizes of screens."""
        return "".join(_Sheet(self, size).svg() for size in SIZES)


class _Sheet:
    """The chart for one size of screens; on narrow ones names stand above the bars."""

    def __init__(self, chart: StackChart, size: Size) -> None:
        self.chart, self.size = chart, size
        self.narrow = size is NARROW
        self.row, self.thick = (40, 16) if self.narrow else (28, 18)
        self.left = 8 if self.narrow else 150
        self.bottom = TOP + self.row * len(chart.bars)
        sums = [sum(parts.values()) for parts in chart.bars.values()]
        self.ticks = nice_ticks(max(sums, default=0.0), size.ticks)
        self.width = size.width - self.left - RIGHT - 56

    def svg(self) -> str:
        edge = self.size.width - RIGHT
        parts = [
            *self.columns(),
            *(
                p
                for i, policy in enumerate(self.chart.bars)
                for p in self.bar(i, policy)
            ),
            text_at(edge, self.bottom + 33, self.chart.unit, "dim", "end"),
        ]
        return svg_of(self.size, self.bottom + BOTTOM, self.chart.title, parts)

    def x(self, value: float) -> float:
        return self.left + self.width * value / self.ticks[-1]

    def columns(self) -> Iterator[str]:
        for tick in self.ticks:
            at = in_px(self.x(tick))
            where = f'x1="{at}" x2="{at}" y1="{TOP}" y2="{self.bottom}"'
            yield f'<line class="grid" {where}/>'
            words = self.chart.written(tick)
            yield text_at(self.x(tick), self.bottom + 16, words, "", "middle")

    def bar(self, i: int, policy: str) -> Iterator[str]:
        y = TOP + self.row * i + (18 if self.narrow else 4)
        if self.narrow:
            yield text_at(self.left, y - 4, policy, "strong")
        else:
            yield text_at(self.left - 8, y + 13, policy, "strong", "end")
        start = 0.0
        for j, (part, value) in enumerate(self.chart.bars[policy].items()):
            if value > 0:
                words = f"{policy}, {part}: {self.chart.written(value)}"
                left, right = self.x(start), self.x(start + value)
                yield (
                    f'<g><title>{escape(words)}</title><rect class="b{j}" '
                    f'x="{in_px(left)}" y="{in_px(y)}" height="{self.thick}" '
                    f'width="{in_px(max(0.5, right - left))}"/></g>'
                )
            start += value
        yield text_at(self.x(start) + 6, y + 13, self.chart.written(start), "dim")
