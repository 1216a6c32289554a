"""Plots for documents."""

import re
import struct
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from ringleaf.report.plots import (
    PALETTE,
    plot_conflicts,
    plot_over_time,
    plot_waiting,
    write_plots,
)
from ringleaf.report.results import Results
from ringleaf.simulator.source import BadInput
from tests.report.made import POLICIES, plain_run, real


def with_conflicts() -> Results:
    """Results in which gangs meet, whatever the small runs came to."""
    runs = [
        plain_run(
            policy,
            seed,
            leaves={"conflicts": 2.0 * i + seed},
            use={"utilisation": 0.8, "effective_utilisation": 0.8 - 0.1 * i},
        )
        for i, policy in enumerate(POLICIES)
        for seed in (0, 1)
    ]
    return Results(runs)


def test_every_plot_is_a_picture_that_is_wide_enough(tmp_path: Path) -> None:
    written = write_plots(tmp_path / "new", real())

    assert [path.name for path in written] >= ["over-time.png", "waiting.png"]
    for path in written:
        head = path.read_bytes()[:24]
        assert head.startswith(b"\x89PNG")
        assert struct.unpack(">I", head[16:20])[0] == 1080
        assert path.stat().st_size < 300_000


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    once, again = (write_plots(tmp_path / name, real()) for name in "ab")

    assert [p.read_bytes() for p in once] == [p.read_bytes() for p in again]


@pytest.mark.parametrize("plot", [plot_over_time, plot_waiting])
def test_axes_have_words_and_every_policy_is_named(plot: object) -> None:
    figure = plot(real())  # type: ignore[operator]

    assert all(axis.get_ylabel() for axis in figure.axes)
    assert all(axis.get_title() for axis in figure.axes)
    assert figure.axes[-1].get_xlabel()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [*POLICIES]
    assert any("jobs of seren" in text.get_text() for text in figure.texts)


def test_bars_of_conflicts_are_as_long_as_the_figures_say() -> None:
    figure = plot_conflicts(with_conflicts())

    assert figure is not None
    left, right = figure.axes
    assert widths(left) == [0.5, 2.5, 4.5]
    assert widths(right) == [0.8, 0.8, 0.8, 0.8, 0.7, 0.6]
    assert [label.get_text() for label in left.get_yticklabels()] == [*POLICIES]


def test_a_caption_tells_how_many_runs_a_figure_is_the_mean_of() -> None:
    several = with_conflicts()
    one = Results([run for run in several.runs if run.spec.seed == 0])

    captions = []
    for results in (several, one):
        figure = plot_conflicts(results)
        assert figure is not None
        captions.append(" ".join(figure.texts[0].get_text().split()))
    assert "; means over 2 seeds, lines are 95 % confidence intervals. " in captions[0]
    assert "; one run each. " in captions[1]


def test_no_wait_is_drawn_as_none_and_whole() -> None:
    none = {"n": 3, "p50": 0.0, "mean": 0.0, "p95": 0.0}
    figure = plot_waiting(Results([plain_run("a", wait_s={"by_size": {"1": none}})]))

    assert figure is not None
    (axis,) = figure.axes
    (at,) = np.asarray(axis.lines[0].get_ydata(), float).tolist()
    words = dict(zip(axis.get_yticks(), axis.get_yticklabels(), strict=True))
    assert words[at].get_text() == "0 s"
    assert axis.get_ylim()[0] < at


def widths(axis: Axes) -> list[float]:
    return [round(b.get_width(), 3) for b in axis.patches if isinstance(b, Rectangle)]


def test_a_plot_that_would_show_nothing_is_not_written(tmp_path: Path) -> None:
    nothing = Results([plain_run("ringleaf", leaves={"conflicts": 0.0})])

    assert write_plots(tmp_path, nothing) == []


def test_without_matplotlib_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(BadInput, match="plots need matplotlib") as error:
        write_plots(tmp_path, real())

    assert "\n" not in str(error.value)


def test_colours_are_those_of_the_page_in_the_light() -> None:
    css = (files("ringleaf.report") / "web" / "page.css").read_text(encoding="utf-8")
    light = css[: css.index("}")]

    assert re.findall(r"--p\d:(#\w+)", light) == [*PALETTE]
