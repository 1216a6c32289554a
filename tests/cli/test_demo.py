"""``ringleaf compare --demo``: what is simulated, its results, and the report."""

import json
import re
import shlex
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ringleaf.cli import demo
from ringleaf.cli.init import write_starter
from ringleaf.report.measures import MeasureTable
from ringleaf.report.results import Estimate, Measured, Results
from ringleaf.report.wait_verdict import in_a_sentence
from tests.cli.conftest import Ringleaf
from tests.report.made import plain_run

WAIT, USE = "wait_s.by_size.>64.mean", "use.effective_utilisation"
OTHERS = demo.POLICIES[1:]


@pytest.mark.slow
def test_a_demo_says_what_is_simulated_and_who_is_better(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    done = ringleaf("demo", "--jobs=60", "--out", str(tmp_path / "look"))

    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("60 jobs arrive at 512 nodes of 2 rings of 4 chips, ")
    assert "load 0.9, seed 1)." in " ".join(done.lines)
    assert "Ringleaf and 4 other schedulers" in done.out
    first = [line.partition(" ")[0] for line in done.lines]
    assert [word for word in first if word in demo.POLICIES] == [*demo.POLICIES]
    finished = [line for line in done.lines if ": done, " in line]
    assert {line.partition(":")[0] for line in finished} == {*demo.POLICIES}
    assert finished[-1].endswith(": done, 5 of 5")
    assert max(map(len, done.lines[:-2])) <= 80
    assert [line for line in done.lines if line != line.rstrip()] == []
    report = tmp_path / "look" / "report.html"
    assert done.lines[-1].endswith(str(report))
    page = report.read_text(encoding="utf-8")
    assert all(policy in page for policy in demo.POLICIES)
    assert "60 jobs of kalos on leaf-spine-uneven" in page


@pytest.mark.slow
def test_what_a_demo_prints_to_type_gives_the_same_figures(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    out = ("--jobs=40", "--out", str(tmp_path))
    told = ringleaf("demo", *out)
    (command,) = re.findall(r"^ +ringleaf (compare .*)$", told.out, re.MULTILINE)
    again = ringleaf(*shlex.split(command), "--seeds=1", "--json")

    assert json.loads(ringleaf("demo", *out, "--json").out) == json.loads(again.out)


@pytest.mark.parametrize(
    ("started", "shown"),
    [
        (".venv/bin/ringleaf", ".venv/bin/ringleaf"),
        ("my env/bin/ringleaf", "'my env/bin/ringleaf'"),
        ("ringleaf", "ringleaf"),
        (".venv/bin/kubectl-ringleaf", "kubectl ringleaf"),
        ("src/ringleaf/__main__.py", "ringleaf"),
    ],
)
def test_init_says_how_to_call_the_next_command(
    started: str,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [started])

    assert write_starter("conf", str(tmp_path / "new"), as_json=False) == 0

    assert f"next: {shown} check-conf {tmp_path}/new\n" in capsys.readouterr().out

    (tmp_path / "ringleaf").touch(mode=0o755)
    write_starter("conf", str(tmp_path / "newer"), as_json=False)
    plain = shown if shown.startswith("kubectl") else "ringleaf"
    assert f"next: {plain} check-conf" in capsys.readouterr().out


def test_a_folder_that_cannot_be_is_told_before_anything_is_played(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = ringleaf("demo", "--out", str(file / "below"))

    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "Not a directory" in done.err


def results(**means: tuple[float, ...]) -> Results:
    """Of every policy in order, what it comes to by waiting and use."""
    found = []
    for key, values in ((WAIT, means["waits"]), (USE, means["uses"])):
        for policy, value in zip(demo.POLICIES, values, strict=True):
            gap = Estimate(value - values[0]) if policy != "ringleaf" else None
            found.append(Measured(key, policy, Estimate(value), gap))
    return Results([plain_run(policy, 1) for policy in demo.POLICIES], found)


def test_where_others_are_better_the_demo_says_so() -> None:
    given = results(waits=(60, 30, 90, 90, 90), uses=(0.5, 0.5, 0.5, 0.5, 0.9))
    out = StringIO()
    console = Console(file=out, width=200, highlight=False)
    demo._show(console, given, demo.WANTED, Path("r.html"))  # noqa: SLF001

    told = " ".join(out.getvalue().split())
    assert "volcano-vendor-1.0 30 s (50 % less)" in told
    assert "Higher than volcano-vendor-1.0." in told
    assert "etter than" not in told
    assert "orse than" not in told
    assert told.count("one seed, significance unknown") == 1
    assert "best baseline kube-scheduler 90.0 %" in told
    assert "A tie with kube-coscheduling, kueue and volcano-vendor-1.0." in told
    assert "ignificantly" not in told


def test_the_first_sentence_tells_what_is_usual_and_the_best_baseline() -> None:
    use = (0.5,) * 5
    one, two = (
        in_a_sentence(MeasureTable(results(waits=waits, uses=use)))
        for waits in ((60, 60, 390, 90, 90), (60, 390, 45, 50, 90))
    )

    assert one == (
        "Gangs > 64 chips wait 60 s with ringleaf and 60 s with volcano-vendor-1.0, "
        "the best baseline (the same in this run; one seed, significance unknown)."
    )
    assert two == (
        "Gangs > 64 chips wait 60 s with ringleaf, 6.5 min with volcano-vendor-1.0 "
        "(6.5 times as much in this run; one seed, significance unknown) and 45 s "
        "with kueue, the best baseline (25 % less)."
    )
    nothing = Results([plain_run(policy, 1) for policy in demo.POLICIES])
    assert in_a_sentence(MeasureTable(nothing)) is None
