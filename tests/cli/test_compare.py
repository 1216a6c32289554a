"""``ringleaf compare``: who is better on the same arrivals, and what is written."""

import csv
import json
import os
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ringleaf.baselines import optimum
from ringleaf.baselines.registry import BASELINES
from ringleaf.cli import compare, simulate
from ringleaf.cli.compare import crew_of
from ringleaf.report.measures import measure_of, value_of
from ringleaf.report.results import Results
from ringleaf.study.compare import compared
from tests.cli.conftest import Ringleaf
from tests.report.made import plain_run

SMALL = (
    "--cluster=leaf-spine-512:nodes=16",
    "--workload=philly",
    "--jobs=80",
    "--workers=1",
)


def test_a_table_has_a_column_a_policy_and_says_how_sure_it_is(
    ringleaf: Ringleaf,
) -> None:
    names = "ringleaf,random,best-fit+fifo"
    done = ringleaf("compare", *SMALL, "--seeds=2", "--policies", names)

    assert done.status == 0
    assert "80 jobs of philly at load 0.90 on leaf-spine-512:nodes=16" in done.lines[0]
    assert done.lines[0].endswith("2 seeds each")
    assert done.lines[2].split() == ["ringleaf", "random", "best-fit+fifo", "bound"]
    assert any(line.startswith("Chips in use ") for line in done.lines)
    assert "than ringleaf, seed by seed and beyond chance (95 %)" in done.out


def shown(results: Results, *, coloured: bool = False) -> str:
    out = StringIO()
    console = Console(
        file=out,
        width=88,
        highlight=False,
        force_terminal=coloured,
        color_system="standard" if coloured else None,
        no_color=not coloured,
    )
    compare._show(console, results, [])  # noqa: SLF001
    return out.getvalue()


def use_of(*seeds: tuple[float, float, float]) -> Results:
    """What three policies come to by chips in use, seed by seed."""
    runs = [
        plain_run(policy, seed, use={"utilisation": value})
        for seed, values in enumerate(seeds)
        for policy, value in zip(("ringleaf", "a", "b"), values, strict=True)
    ]
    return Results(runs, [*compared(runs, "ringleaf")])


def test_marks_stand_where_there_is_no_colour() -> None:
    given = use_of((0.5, 0.7, 0.3), (0.51, 0.711, 0.309))

    plain = shown(given)
    assert "Chips in use    50.5 %  *70.5 %  !30.4 %" in plain
    assert "* is better, ! is worse than ringleaf, seed by seed" in plain
    coloured = shown(given, coloured=True)
    assert "*" not in coloured
    assert "green is better, red is worse" in coloured


def test_the_same_run_for_every_seed_is_told_and_not_marked() -> None:
    plain = shown(use_of((0.5, 0.7, 0.3), (0.5, 0.7, 0.3)))

    assert "*70" not in plain
    assert "The same run for every seed: every policy." in plain


def test_lines_that_are_piped_have_no_blanks_at_their_ends(ringleaf: Ringleaf) -> None:
    done = ringleaf("compare", *SMALL, "--jobs=10", "--seeds=1", "--policies=random")

    assert [line for line in done.lines if line != line.rstrip()] == []


def test_results_are_kept_and_not_played_again(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    out = ("--policies=ringleaf,random", "--out", str(tmp_path))
    first = ringleaf("compare", *SMALL, "--seeds=1", *out, "--json")
    runs = sorted(tmp_path.glob("runs/*.json"))
    before = [(each.name, each.stat().st_mtime_ns) for each in runs]
    more = ringleaf("compare", *SMALL, "--seeds=2", *out, "--json")

    told, again = json.loads(first.out), json.loads(more.out)
    assert json.loads((tmp_path / "comparison.json").read_text()) == again
    assert told["policies"] == ["ringleaf", "random"]
    assert (told["seeds"], again["seeds"]) == ([0], [0, 1])
    assert told["measures"][0]["value"]["low"] is None
    use = next(each for each in told["bounds"] if each["measure"] == "use.utilisation")
    assert use["value"] >= told["measures"][0]["value"]["mean"]
    assert len(before) == 2
    for name, at in before:
        assert (tmp_path / "runs" / name).stat().st_mtime_ns == at
    assert len(list(tmp_path.glob("runs/*.json"))) == 4
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "random" in page


def test_every_run_is_a_row_with_every_measure(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    out = ("--policies=ringleaf,random+easy", "--out", str(tmp_path))
    ringleaf("compare", *SMALL, "--seeds=2", *out)
    with (tmp_path / "runs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    assert [(row["policy"], row["order"], row["seed"]) for row in rows] == [
        ("ringleaf", "", "0"),
        ("ringleaf", "", "1"),
        ("random+easy", "easy", "0"),
        ("random+easy", "easy", "1"),
    ]
    (kept,) = tmp_path.glob("runs/ringleaf-seed1-*.json")
    metrics = json.loads(kept.read_text(encoding="utf-8"))["run"]["metrics"]
    for key in ("use.utilisation", "wait_s.all.p99", "faults.unrecovered"):
        assert float(rows[1][key]) == value_of(metrics, key)
    assert (rows[0]["cluster"], rows[0]["workload"]) == (
        "leaf-spine-512:nodes=16",
        "philly",
    )


def test_work_on_offer_bounds_what_nobody_does_twice(ringleaf: Ringleaf) -> None:
    """Jobs that slow each other down hold chips longer; faults make work twice."""
    common = (*SMALL, "--seeds=1", "--policies=ringleaf", "--json")
    bounded = {}
    for word, more in (
        ("plain", ()),
        ("slow", ("--contention=0.5",)),
        ("faulty", ("--faults=usual", "--contention=0.5")),
    ):
        told = json.loads(ringleaf("compare", *common, *more).out)
        bounded[word] = {each["measure"] for each in told["bounds"]}

    others = {"jct_s.all.mean", "work.makespan_s"}
    assert bounded["plain"] == {"use.utilisation", *others}
    assert bounded["slow"] == {"use.effective_utilisation", *others}
    assert bounded["faulty"] == others


def test_what_could_be_held_is_told_where_it_is_asked(
    ringleaf: Ringleaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    gangs = ("--workload=helios-gang", "--load=1.5", "--regret=5")
    words = (*SMALL[:1], *gangs, "--jobs=80")
    told = json.loads(ringleaf("simulate", *words, "--json").out)["measures"]["regret"]
    shown = ringleaf("simulate", *words).out
    compared = ringleaf(
        "compare", *words, "--workers=1", "--seeds=1", "--policies=ringleaf"
    )
    monkeypatch.setattr(simulate, "find_spec", lambda _name: None)
    refused = [ringleaf(name, *words) for name in ("simulate", "compare")]

    assert told["n"] > 0
    assert 0 <= told["mean"] <= told["max"] < 1
    assert f"at {told['n']} moments" in shown
    (line,) = (each for each in compared.lines if each.startswith("Less than could"))
    assert line.endswith(measure_of("regret.mean").written(told["mean"]))
    for done in refused:
        assert done.status == 2
        assert "--regret wants the extra optimum; hint: pip install" in done.err


def test_policies_that_do_not_fit_side_by_side_come_below(ringleaf: Ringleaf) -> None:
    names = ",".join(BASELINES)
    done = ringleaf("compare", *SMALL, "--jobs=10", "--seeds=1", "--policies", names)
    heads = [line.split() for line in done.lines if line.endswith(" bound")]

    assert len(heads) > 1
    assert all(head[0] == "ringleaf" for head in heads)
    assert [name for head in heads for name in head[1:-1]] == list(BASELINES)[1:]
    assert "…" not in done.out


def test_one_seed_tells_little(ringleaf: Ringleaf, tmp_path: Path) -> None:
    report = tmp_path / "a.html"
    one = ("--seeds=1", "--policies=random", "--report", str(report))
    plots = ("--plots", str(tmp_path / "plots"))
    done = ringleaf("compare", *SMALL, *one, *plots)

    assert done.status == 0
    assert (
        "warning: one seed tells little; hint: ringleaf compare --seeds 5" in done.err
    )
    assert report.exists()
    assert (tmp_path / "plots" / "over-time.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "words", [("simulate", "--policy=cp-sat"), ("compare", "--policies=cp-sat")]
)
def test_without_the_solver_one_line_says_what_to_install(
    words: tuple[str, ...], ringleaf: Ringleaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimum, "find_spec", lambda _name: None)
    done = ringleaf(*words, "--jobs=5")

    assert done.status == 2
    assert "hint: pip install 'ringleaf[optimum]'" in done.err
    assert done.err.count("\n") == 1


def test_bad_use_is_one_line(ringleaf: Ringleaf) -> None:
    for words, told in (
        (("--policies=best",), "there is no policy 'best'; did you mean 'best-fit'?"),
        (("--policies=random+fif",), "there is no queue order 'fif'"),
        (("--policies=random,random",), "want every policy once"),
        (("--workers=2", "--dask=tcp://127.0.0.1:1"), "exclude each other"),
    ):
        done = ringleaf("compare", "--jobs=5", *words)
        assert done.status == 2
        assert told in done.err
        assert done.err.count("\n") == 1


def test_there_is_a_process_for_every_core_also_where_only_their_number_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def workers() -> object:
        crew = crew_of(None)
        return crew.keywords["workers"] if isinstance(crew, partial) else 1

    assert workers() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert workers() == 3


@pytest.mark.parametrize(
    ("option", "target", "wanted"),
    [
        ("--out", "file", "is a file, want a folder; hint: --out DIR"),
        ("--out", "file/deep", "Not a directory, want a folder; hint: --out DIR"),
        ("--plots", "file", "is a file, want a folder; hint: --plots DIR"),
        ("--plots", "file/deep", "Not a directory, want a folder; hint: --plots DIR"),
        ("--report", "", "is no file; hint: --report FILE"),
        ("--report", "file/r.html", "Not a directory; hint: --report FILE"),
        ("--report", "none/r.html", "No such file or directory; hint: --report FILE"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_first_run(
    ringleaf: Ringleaf,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    option: str,
    target: str,
    wanted: str,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(compare, "run", None)
    path = str(tmp_path / target)
    done = ringleaf("compare", *SMALL, option, path)

    assert done.status == 2
    assert done.err.startswith(f"ringleaf: {option}: {path}")
    assert wanted in done.err
    assert done.err.count("\n") == 1


def test_one_policy_alone_is_played_with_a_warning(ringleaf: Ringleaf) -> None:
    done = ringleaf("compare", *SMALL, "--seeds=2", "--policies=best-fit")

    assert done.status == 0
    assert "warning: one policy is compared with nobody; hint: --policies" in done.err


def test_plots_without_matplotlib_are_refused_before_the_first_run(
    ringleaf: Ringleaf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "find_spec", lambda _name: None)
    monkeypatch.setattr(compare, "run", None)
    done = ringleaf("compare", *SMALL, "--plots", str(tmp_path / "plots"))

    assert done.status == 2
    assert "--plots wants matplotlib" in done.err
    assert "hint: pip install 'ringleaf[plots]'" in done.err
    assert not (tmp_path / "plots").exists()
