"""Charts as SVG that needs nothing else; colours and fonts are the page's.

Every chart is drawn twice, wide and narrow, so that its words can be read on a phone:
the page shows the one that suits the screen.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor, isfinite, log10
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringleaf.report.measures import DAY_S, HOUR_S, MINUTE_S

Floats = NDArray[np.float64]

COLOURS: Final = 8
"""Colours of policies; the ninth has the first again, with other dashes."""
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 2 2")
BINS: Final = 180
"""Points of a line."""


class Size(NamedTuple):
    """What a chart is drawn for."""

    name: str
    width: int
    height: int
    left: int
    ticks: int


WIDE: Final = Size("wide", 940, 250, 62, 8)
NARROW: Final = Size("narrow", 370, 220, 48, 4)
SIZES: Final = (WIDE, NARROW)
TOP, RIGHT, BOTTOM = 14, 14, 40


def colour_of(number: int) -> str:
    """The class that gives policy *number* its colour."""
    return f"p{number % COLOURS}"


def dashes_of(number: int) -> str:
    """The attribute that gives the line of policy *number* its dashes."""
    dashes = DASHES[(number + number // COLOURS) % len(DASHES)] if number else ""
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def text_at(x: float, y: float, words: str, kind: str = "", anchor: str = "") -> str:
    """Words in a drawing."""
    where = f'x="{in_px(x)}" y="{in_px(y)}"'
    kind = f' class="{kind}"' if kind else ""
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f"<text {where}{kind}{anchor}>{escape(words)}</text>"


def nice_ticks(most: float, n: int) -> list[float]:
    """Round numbers from 0 to *most* or a little beyond, about *n* of them.

    >>> nice_ticks(9.3, 5), nice_ticks(0.0, 4)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [0.0, 1.0])
    """
    if not most > 0 or not isfinite(most):
        return [0.0, 1.0]
    rough = most / n
    size = 10.0 ** floor(log10(rough))
    step = min(s * size for s in (1, 2, 2.5, 5, 10) if s * size >= rough * 0.999)
    return [round(i * step, 12) for i in range(ceil(most / step - 1e-9) + 1)]


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


class LineChart(NamedTuple):
    """Lines over time.

    Args:
        key: What the page's script calls it.
        title: Its heading, and what is read out.
        unit: What the upright axis tells.
        axis: Time.
        lines: Policy -> means over equal spans.
        most: The top of the axis; None is what the lines need.
        written: How values are written.

    """

    key: str
    title: str
    unit: str
    axis: Axis
    lines: Mapping[str, Floats]
    most: float | None
    written: Callable[[float], str]

    def svg(self) -> str:
        """The chart in both sizes."""
        return "".join(self._drawn(size) for size in SIZES)

    def _drawn(self, size: Size) -> str:
        most = self.most
        if most is None:
            most = max(
                (
                    float(np.nanmax(v))
                    for v in self.lines.values()
                    if np.isfinite(v).any()
                ),
                default=0.0,
            )
        ticks = nice_ticks(most, 4)
        plot = _Plot(size, self.axis.end or 1.0, ticks[-1])
        parts = [
            *plot.spans(self.axis),
            *plot.rows(ticks, self.written),
            *plot.columns(self.axis),
            *(plot.line(i, values) for i, values in enumerate(self.lines.values())),
            f'<line class="cursor" y1="{TOP}" y2="{in_px(plot.bottom)}"/>',
        ]
        data = f'data-chart="{escape(self.key)}" data-left="{size.left}" '
        data += f'data-right="{size.width - RIGHT}"'
        return svg_of(size, size.height, f"{self.title}. {self.unit}", parts, data)


class _Plot(NamedTuple):
    """Where values are on a drawing."""

    size: Size
    end: float
    most: float

    @property
    def bottom(self) -> float:
        return self.size.height - BOTTOM

    def x(self, seconds: float) -> float:
        width = self.size.width - self.size.left - RIGHT
        return self.size.left + width * min(1.0, seconds / self.end)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - TOP) * value / self.most

    def spans(self, axis: Axis) -> Iterable[str]:
        """What is not counted."""
        for start, stop, words in (
            (0.0, axis.warm, "warm-up"),
            (axis.last, axis.end, "no more arrivals"),
        ):
            left, right = self.x(start), self.x(stop)
            if right - left > 1:
                yield (
                    f'<rect class="uncounted" x="{in_px(left)}" y="{TOP}" '
                    f'width="{in_px(right - left)}" '
                    f'height="{in_px(self.bottom - TOP)}"/>'
                )
            if right - left > 6 * len(words):
                yield text_at(left + 4, TOP + 12, words, "dim")

    def rows(
        self, ticks: Sequence[float], written: Callable[[float], str]
    ) -> Iterable[str]:
        for tick in ticks:
            y = in_px(self.y(tick))
            left, right = self.size.left, self.size.width - RIGHT
            yield f'<line class="grid" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>'
            yield text_at(left - 6, self.y(tick) + 4, written(tick), "", "end")

    def columns(self, axis: Axis) -> Iterable[str]:
        seconds, name = axis.unit
        for tick in nice_ticks(axis.end / seconds, self.size.ticks):
            if tick * seconds <= axis.end * 1.0001:
                x = self.x(tick * seconds)
                yield (
                    f'<line class="tick" x1="{in_px(x)}" x2="{in_px(x)}" '
                    f'y1="{in_px(self.bottom)}" y2="{in_px(self.bottom + 4)}"/>'
                )
                yield text_at(x, self.bottom + 17, f"{tick:g}", "", "middle")
        yield text_at(
            self.size.width - RIGHT, self.bottom + 33, f"{name} since the start",
            "dim", "end",
        )  # fmt: skip

    def line(self, number: int, values: Floats) -> str:
        n = len(values)
        step = 1 if self.size is WIDE else 2
        path, pen = [], "M"
        for i in range(0, n - step + 1, step):
            own = values[i : i + step]
            own = own[np.isfinite(own)]
            if not len(own):
                pen = "M"
                continue
            x = self.x((i + step / 2) / n * self.end)
            y = self.y(min(float(own.mean()), self.most))
            path.append(f"{pen}{in_px(x)} {in_px(y)}")
            pen = "L"
        return (
            f'<path class="line {colour_of(number)} s-{number}'
            f'{"" if number else " own"}" d="{"".join(path)}"{dashes_of(number)}/>'
        )


def svg_of(
    size: Size, height: float, title: str, parts: Iterable[str], data: str = ""
) -> str:
    """A drawing, with what is read out in its place."""
    return (
        f'<svg class="{size.name}" viewBox="0 0 {size.width} {in_px(height)}" '
        f'role="img" aria-label="{escape(title)}" {data}>{"".join(parts)}</svg>'
    )


def in_px(value: float) -> str:
    """A number in as few signs as a drawing needs."""
    return f"{value:.1f}".removesuffix(".0")
