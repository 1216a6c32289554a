"""The screen of a comparison that is under way."""

from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from ringleaf.cli import comparison_screen
from ringleaf.cli.comparison_screen import ComparisonScreen, play_telling
from ringleaf.cli.simulation_screen import SHARED, WELL, Map, Moment, moment_of
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.metrics import RunMetrics
from tests.report.made import plain_run
from tests.simulator.trials import engine, spec, trial

HALF = Moment(
    now=93_600,
    jobs=200,
    arrived=100,
    waiting=3,
    working=4,
    over=93,
    chips=64,
    used=48,
    conflicts=2,
    map=Map("4 leaves", "█▄·█", "wwwl"),
)
CASTS = {"ringleaf": ["a0", "a1"], "best-fit": ["b0", "b1"], "random": ["c0", "c1"]}


def console(height: int = 24, width: int = 80) -> Console:
    return Console(
        file=StringIO(),
        force_terminal=True,
        color_system=None,
        width=width,
        height=height,
    )


def leave(stage: ComparisonScreen, mark: str, moment: Moment) -> None:
    assert stage.folder is not None
    (Path(stage.folder) / mark).write_bytes(msgspec.json.encode(moment))


def lines(stage: ComparisonScreen, width: int = 80) -> list[str]:
    out = StringIO()
    Console(file=out, width=width).print(stage.drawn())
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_screen_tells_how_every_policy_stands() -> None:
    use, leaves = {"utilisation": 0.75}, {"conflicts": 0.5}
    with ComparisonScreen("small on small", CASTS, console()) as stage:
        for mark in ("a0", "a1"):
            stage.heard(mark, plain_run("ringleaf", use=use, leaves=leaves))
        stage.heard("b0", plain_run("best-fit"))
        leave(stage, "b1", HALF)

        found = lines(stage)

    assert found[0].startswith("small on small   0:")
    assert found[1:] == [
        "",
        "          arrived                          utilized  conflicts  pending",
        "ringleaf  ████████████ 100%  means           75.0 %        0.5",
        "best-fit  █████████░░░  75%  day 2, 02:00    75.0 %          2   3 jobs",
        "random    ░░░░░░░░░░░░   0%",
        "",
        "best-fit: 4 leaves, where several gangs share links",
        "█▄·█",
    ]


def test_a_low_terminal_has_no_room_for_maps_and_a_wide_one_for_longer_bars() -> None:
    with ComparisonScreen(
        "small on small", CASTS, console(height=13, width=120)
    ) as stage:
        leave(stage, "a0", HALF)

        found = lines(stage, 120)

    assert "█▄·█" not in found
    assert found[3].startswith(f"ringleaf  {'█' * 8}{'░' * 24}  25%")


def test_nothing_is_shown_nor_left_where_there_is_no_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with ComparisonScreen("small on small", CASTS) as stage:
        assert stage.folder is None
        stage.heard("a0", plain_run("ringleaf"))

    assert capfd.readouterr() == ("", "")


def test_the_folder_is_gone_afterwards() -> None:
    with ComparisonScreen("small on small", CASTS, console()) as stage:
        folder = Path(str(stage.folder))
        assert folder.is_dir()

    assert not folder.exists()


def crossing() -> Clock:
    """Two gangs that meet under a leaf, and a hundred small jobs after them."""
    job_specs = [spec("a", 0, 1e6, 8, 5), spec("b", 0, 1e6, 8, 5)]
    job_specs += [spec(f"c{n}", n + 1, 0.5, 1) for n in range(100)]
    played = trial(12, job_specs)
    return Clock(played, engine(played), [RunMetrics()])


def test_a_run_leaves_word_of_how_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison_screen, "LEAST_S", 0.0)
    play_telling(crossing(), tmp_path / "mark-1.0")

    (word,) = tmp_path.iterdir()
    assert word.name == "mark-1.0"
    last = msgspec.json.decode(word.read_bytes(), type=Moment)
    assert last.jobs == 102
    assert last.arrived > 60


def test_a_run_is_played_where_nobody_can_hear_of_it(tmp_path: Path) -> None:
    clock = crossing()
    play_telling(clock, tmp_path / "elsewhere" / "mark")

    assert clock.tally.over == 102


def test_a_moment_knows_the_leaves_whose_links_are_shared() -> None:
    clock = crossing()
    clock.step(0)
    seen = moment_of(clock)

    assert seen.map is not None
    assert (seen.map.title, seen.map.cells) == ("3 leaves", "██▄")
    assert seen.map.states == WELL + SHARED + WELL
    assert seen.conflicts == 1
