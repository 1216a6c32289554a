"""Plots as PNG files, for documents: the same figures and colours as the page.

They need matplotlib, the extra ``plots``; it is imported when a plot is asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ringleaf.report import chart
from ringleaf.report.duration import DAY_S, HOUR_S, MINUTE_S
from ringleaf.report.figures import SIZES, spreads
from ringleaf.report.measures import MeasureTable, number, share, tick
from ringleaf.report.results import Estimate, Results
from ringleaf.report.verdict import summary
from ringleaf.simulator.metrics import SERIES
from ringleaf.simulator.source import BadInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE: Final = (
    "#0b5fb8",
    "#bf4a0a",
    "#0d7a50",
    "#8138ad",
    "#8a6400",
    "#b8175c",
    "#0c7287",
    "#55504b",
)
"""Colours of policies: those of the page in the light."""
INK, DIM, LINE, SOFT = "#1c232b", "#57616d", "#d8dde3", "#eef1f4"
DPI: Final = 120
WIDTH_IN: Final = 9.0
CAPTION_SIGNS: Final = 150
"""Signs in a line of a caption."""

_STYLE: Final = {
    "axes.edgecolor": LINE,
    "axes.labelcolor": DIM,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "svg.hashsalt": "ringleaf",
}


def write_plots(folder: Path, results: Results) -> list[Path]:
    """Write every plot of *results* into *folder*; where they are.

    Raises:
        BadInput: matplotlib is not installed.

    """
    plots: dict[str, Callable[[Results], Figure | None]] = {
        "over-time": plot_over_time,
        "waiting": plot_waiting,
        "conflicts": plot_conflicts,
    }
    with _matplotlib().rc_context(_STYLE):
        drawn = {name: plot(results) for name, plot in plots.items()}
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, figure in drawn.items():
            if figure is not None:
                path = folder / f"{name}.png"
                figure.savefig(path, dpi=DPI, metadata={"Software": None})
                written.append(path)
    return written


def _matplotlib() -> Any:  # noqa: ANN401 - a module
    try:
        import matplotlib as mpl  # noqa: PLC0415 - only plots need it
    except ImportError:
        raise BadInput(
            "plots need matplotlib, which is not installed",
            "install it with: pip install 'ringleaf[plots]'",
        ) from None
    return mpl


def _sheet(
    height_in: float, caption: str, rows: int = 1
) -> "tuple[Figure, list[Axes]]":
    """An empty figure, white, with its caption below."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only plots need it

    figure = Figure(figsize=(WIDTH_IN, height_in), facecolor="white")
    words = fill(caption, CAPTION_SIGNS)
    foot = (0.18 * words.count("\n") + 0.34) / height_in
    figure.text(0.012, 0.012, words, color=DIM, fontsize=8.5, va="bottom")
    axes = figure.subplots(rows, 1, sharex=rows > 1, squeeze=False)
    figure.set_layout_engine("constrained", rect=(0, foot, 1, 1 - foot))
    return figure, [row[0] for row in axes]


def _played(results: Results, lines: str = "") -> str:
    """Of what figures are means, and what *lines* are if there are several seeds."""
    seeds = len({run.spec.seed for run in results.runs})
    return "one run each" if seeds == 1 else f"means over {seeds} seeds{lines}"


def _colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


def _dashes(number: int) -> Any:  # noqa: ANN401 - matplotlib takes many forms
    return ("-", "--", ":", "-.", (0, (4, 1.5)), (0, (7, 2)), (0, (1, 1)))[number % 7]


def _written(axis: Any, write: Callable[[float], str]) -> None:  # noqa: ANN401
    axis.set_major_formatter(lambda value, _place: write(value))


# Over time.


def plot_over_time(results: Results) -> "Figure | None":
    """Utilization and queue length over time, of the lowest seed."""
    return _lines(
        results,
        [
            ("utilisation", "Utilization", "share of all chips", tick, 1.0),
            ("queue_length", "Queue length", "pending jobs", number, None),
        ],
    )


def _lines(
    results: Results,
    panels: Sequence[tuple[str, str, str, Callable[[float], str], float | None]],
) -> "Figure | None":
    runs = [results.of(policy)[0] for policy in results.policies]
    if not any(run.series for run in runs):
        return None
    span = chart.axis_of(runs)
    seconds, unit = span.unit
    caption = (
        f"{summary(results)}; one run each, seed {runs[0].spec.seed}. "
        "Grey is not counted: warm-up, and the time after the last arrival."
    )
    figure, axes = _sheet(2.6 * len(panels) + 0.7, caption, len(panels))
    at = (np.arange(chart.BINS) + 0.5) * span.end / chart.BINS / seconds
    for axis, (key, title, label, write, most) in zip(axes, panels, strict=True):
        for number_, run in enumerate(runs):
            values = chart.binned(run.series, SERIES.index(key), span.end)
            axis.plot(
                at,
                values,
                color=_colour(number_),
                linestyle=_dashes(number_),
                linewidth=1.3 if number_ else 3.2,
                label=run.spec.policy,
            )
        for start, stop in ((0.0, span.warm), (span.last, span.end)):
            axis.axvspan(start / seconds, stop / seconds, color=SOFT, zorder=0)
        axis.set(title=title, ylabel=label, xlim=(0, span.end / seconds))
        axis.set_ylim(0, most)
        axis.grid(axis="y", color=LINE, linewidth=0.7)
        _written(axis.yaxis, write)
    axes[-1].set_xlabel(f"{unit} since the start")
    _legend(figure, axes[0])
    return figure


def _legend(figure: "Figure", axis: "Axes") -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper right",
        ncols=min(6, len(labels)),
        frameon=False,
        fontsize=9,
    )


# Waiting.

FLOOR_S: Final = 0.3
"""Where an axis that is logarithmic shows no wait at all."""
_TIMES: Final = {
    FLOOR_S: "0 s",
    1.0: "1 s",
    10.0: "10 s",
    MINUTE_S: "1 min",
    10 * MINUTE_S: "10 min",
    HOUR_S: "1 h",
    6 * HOUR_S: "6 h",
    DAY_S: "1 d",
    10 * DAY_S: "10 d",
}


def plot_waiting(results: Results) -> "Figure | None":
    """Wait time by size of job: means, and lines from p50 to p95."""
    found, policies = spreads(results), results.policies
    sizes = [size for size in SIZES if any(key[0] == size for key in found)]
    if not sizes:
        return None
    caption = (
        f"{summary(results)}; {_played(results)}. The dot is the mean of the "
        "wait time from submission to start, the line goes from p50 to p95. "
        "Lower is better; the axis is logarithmic."
    )
    figure, (axis,) = _sheet(4.4, caption)
    step = 0.8 / len(policies)
    for i, policy in enumerate(policies):
        own = [(j, found[size, policy]) for j, size in enumerate(sizes)
               if (size, policy) in found]  # fmt: skip
        at = [j + step * (i - (len(policies) - 1) / 2) for j, _spread in own]
        means = [max(FLOOR_S, spread.mean) for _j, spread in own]
        starts = [max(FLOOR_S, spread.p50) for _j, spread in own]
        ends = [max(FLOOR_S, spread.p95) for _j, spread in own]
        axis.vlines(at, starts, ends, color=_colour(i), linewidth=1.6)
        axis.plot(
            at, means, "o", color=_colour(i), markersize=5 if i else 7, label=policy
        )
    top = max((spread.p95 for spread in found.values()), default=1.0)
    axis.set_yscale("log")
    ticks = [t for t in _TIMES if t <= max(10.0, 3 * top)]
    axis.set_yticks(ticks, [_TIMES[t] for t in ticks])
    axis.minorticks_off()
    axis.set_ylim(0.6 * FLOOR_S, 1.4 * max(top, ticks[-1]))
    counts = [
        max(found[size, policy].n for policy in policies if (size, policy) in found)
        for size in sizes
    ]
    axis.set_xticks(
        range(len(sizes)),
        [f"{size}\n{n:,.0f} jobs" for size, n in zip(sizes, counts, strict=True)],
    )
    axis.set(
        title="Wait time by size of job", ylabel="wait time", xlabel="chips of a job"
    )
    axis.grid(axis="y", color=LINE, linewidth=0.7)
    _legend(figure, axis)
    return figure


# Conflicts.


def plot_conflicts(results: Results) -> "Figure | None":
    """Spine conflicts, utilization and effective utilization."""
    table, policies = MeasureTable(results), results.policies
    conflicts = _values(table, "leaves.conflicts", policies)
    if not any(value.mean for value in conflicts.values()):
        return None
    lines = f", lines are {tick(results.confidence)} confidence intervals"
    caption = (
        f"{summary(results)}; {_played(results, lines)}. Conflicts: over all leaves, "
        "jobs that use its links to the spine beyond the first. Effective: jobs that "
        "share links counted as slowed down."
    )
    figure, axes = _sheet(1.5 + 0.62 * len(policies), caption, 1)
    figure.delaxes(axes[0])
    left, right = figure.subplots(1, 2, sharey=True)
    _bars(left, policies, conflicts, number)
    left.set(title="Spine conflicts", xlabel="jobs, on average over time")
    held = _values(table, "use.utilisation", policies)
    for i, policy in enumerate(policies):
        if policy in held:
            right.barh(i, held[policy].mean, 0.6, color=_colour(i), alpha=0.3)
    effective = _values(table, "use.effective_utilisation", policies)
    _bars(right, policies, effective, share, most=1.0)
    right.set(title="Utilization: pale all, dark effective", xlabel="share of chips")
    right.set_xlim(0, 1.2)
    right.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    _written(right.xaxis, tick)
    return figure


def _values(
    table: MeasureTable, key: str, policies: Sequence[str]
) -> dict[str, Estimate]:
    found = {policy: table.value(key, policy) for policy in policies}
    return {policy: value for policy, value in found.items() if value is not None}


def _bars(
    axis: "Axes",
    policies: Sequence[str],
    values: Mapping[str, Estimate],
    write: Callable[[float], str],
    most: float = inf,
) -> None:
    """A bar for every policy, with its interval as far as it makes sense."""
    known = [(i, values[p]) for i, p in enumerate(policies) if p in values]
    for i, value in known:
        axis.barh(i, value.mean, 0.6, color=_colour(i))
        end = value.mean
        if value.low is not None and value.high is not None:
            end = min(most, value.high)
            axis.hlines(i, max(0.0, value.low), end, color=INK, linewidth=1.1)
        axis.annotate(
            write(value.mean),
            (end, i),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=INK,
        )
    axis.set_yticks(range(len(policies)), [*policies])
    axis.set_ylim(len(policies) - 0.5, -0.5)
    axis.margins(x=0.18)
    axis.grid(axis="x", color=LINE, linewidth=0.7)
    axis.set_axisbelow(True)
