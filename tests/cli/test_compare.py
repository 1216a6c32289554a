"""``ringleaf compare``: who is better on the same arrivals, and what is written."""

import csv
import json
import os
import re
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ringleaf.baselines import optimum
from ringleaf.baselines.registry import BASELINES
from ringleaf.cli import compare, comparison_runs, simulate
from ringleaf.cli.comparison_runs import executor_of, run_requests
from ringleaf.cli.run_warnings import on_long
from ringleaf.cli.simulation_request import SimulationRequest
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


def test_a_table_has_a_row_a_policy_and_says_what_is_significant(
    ringleaf: Ringleaf,
) -> None:
    names = "ringleaf,random,best-fit+fifo"
    done = ringleaf("compare", *SMALL, "--seeds=2", "--policies", names)

    assert done.status == 0
    assert "80 jobs of philly at load 0.90 on leaf-spine-512:nodes=16" in done.lines[0]
    assert done.lines[0].endswith("; 2 seeds")
    rows = [line.split()[0] for line in done.lines if line]
    policies = [*names.split(","), "bound"]
    assert [word for word in rows if word in policies] == policies * 2
    assert "Utilization" in done.out
    assert "worse than ringleaf: significant, 95 %, paired by seed" in done.out


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
    """What three policies come to by effective utilization, seed by seed."""
    runs = [
        plain_run(policy, seed, use={"effective_utilisation": value})
        for seed, values in enumerate(seeds)
        for policy, value in zip(("ringleaf", "a", "b"), values, strict=True)
    ]
    return Results(runs, [*compared(runs, "ringleaf")])


def test_only_marks_that_occur_are_explained() -> None:
    worse = shown(use_of((0.5, 0.5, 0.3), (0.51, 0.51, 0.309)))
    none = shown(use_of((0.5, 0.5, 0.5), (0.51, 0.51, 0.51)))

    assert "\n! worse than ringleaf: significant, 95 %" in worse
    assert "better" not in worse
    assert "no significant difference from ringleaf (95 %, paired by seed)" in none


def test_jobs_that_never_start_are_counted_below_the_tables() -> None:
    runs = [
        plain_run(
            policy,
            seed,
            jobs={"unstarted": n},
            wait_s={"all": {"mean": wait, "p95": wait}},
            pending_s={"all": {"mean": pending}},
        )
        for seed in (0, 1)
        for policy, n, wait, pending in (
            ("ringleaf", 0, 4000.0 + seed, 4000.0 + seed),
            ("a", 7, 2000.0 + 2 * seed, 9000.0 + 2 * seed),
        )
    ]
    told = shown(Results(runs, [*compared(runs, "ringleaf")]))

    (row,) = [line.split() for line in told.splitlines() if line.startswith("a ")]
    assert row == ["a", "7", "!2.5", "h", "33.4", "min"]
    assert "all jobs" in told
    assert "Wait\nmean" not in told
    assert "\n7 jobs never start with a, of 3 jobs, means over seeds. Wait" in told
    without = shown(use_of((0.5, 0.5, 0.3)))
    assert "never start" not in without
    assert "Never" not in without


def test_marks_stand_where_there_is_no_colour() -> None:
    given = use_of((0.5, 0.7, 0.3), (0.51, 0.711, 0.309))

    plain = shown(given)
    table = plain.partition("Effective")[2].splitlines()
    values = [line.split()[1] for line in table if " %" in line][:3]
    assert values == ["50.5", "*70.5", "!30.4"]
    assert "* better, ! worse than ringleaf: significant, 95 %" in plain
    coloured = shown(given, coloured=True)
    assert "*" not in coloured
    assert "green better, red worse than ringleaf" in coloured


def test_with_one_seed_nothing_is_coloured() -> None:
    coloured = shown(use_of((0.5, 0.7, 0.3)), coloured=True)

    assert "\x1b[32m" not in coloured
    assert "\x1b[31m" not in coloured
    assert "significant," not in coloured


def waits_of(*seeds: tuple[float, float], key: str = "mean") -> Results:
    """What two policies come to by their mean wait time, seed by seed."""
    runs = [
        plain_run(policy, seed, wait_s={"all": {key: value}})
        for seed, values in enumerate(seeds)
        for policy, value in zip(("ringleaf", "a"), values, strict=True)
    ]
    return Results(runs, [*compared(runs, "ringleaf")])


@pytest.mark.parametrize(
    ("seeds", "sentence"),
    [
        pytest.param(
            ((3600.0, 4800.0), (3700.0, 4910.0)),
            "Jobs wait 1.0 h with ringleaf and 1.3 h with a (33 % more, significant).",
            id="significant",
        ),
        pytest.param(
            ((3600.0, 4800.0), (3600.0, 9600.0)),
            (
                "Jobs wait 1.0 h with ringleaf and 2.0 h with a (2.0 times as much, "
                "not significant)."
            ),
            id="not significant",
        ),
        pytest.param(
            ((3600.0, 3605.0), (3600.0, 3605.1)),
            (
                "Jobs wait 1.0 h with ringleaf and 1.0 h with a (0.1 % more, not "
                "significant)."
            ),
            id="too small to matter",
        ),
        pytest.param(
            ((3600.0, 4800.0),),
            (
                "Jobs wait 1.0 h with ringleaf and 1.3 h with a (33 % more in this "
                "run; one seed, significance unknown)."
            ),
            id="one seed",
        ),
    ],
)
def test_a_verdict_in_sentences_is_above_the_tables(
    seeds: tuple[tuple[float, float], ...], sentence: str
) -> None:
    told = " ".join(shown(waits_of(*seeds)).split())

    head, found, tables = told.partition(sentence)
    assert found
    assert head.endswith("seeds " if len(seeds) > 1 else "seed ")
    assert tables.startswith(" Wait mean")


def test_one_policy_alone_has_no_verdict() -> None:
    given = waits_of((3600.0, 4800.0))
    alone = [run for run in given.runs if run.spec.policy == "ringleaf"]

    assert "Jobs wait" not in shown(Results(alone, [*compared(alone, "ringleaf")]))


def test_what_the_report_does_not_call_significant_is_not_coloured() -> None:
    small = shown(use_of((0.5, 0.502, 0.504), (0.51, 0.5121, 0.5141)), coloured=True)
    large = shown(use_of((0.5, 0.506, 0.504), (0.51, 0.5161, 0.5141)), coloured=True)

    assert "\x1b[32m" not in small
    assert "51.1 %" in large
    assert large.count("\x1b[32m") == 1


def test_utilization_is_not_coloured() -> None:
    runs = [
        plain_run(policy, seed, use={"utilisation": value + seed / 100})
        for seed in (0, 1)
        for policy, value in (("ringleaf", 0.5), ("a", 0.7 + seed / 1000))
    ]
    told = shown(Results(runs, [*compared(runs, "ringleaf")]))

    assert "70.5 %" in told
    assert "*" not in told


def test_policies_with_the_same_values_are_called_a_tie() -> None:
    assert "a tie in every measure: a and b" in shown(use_of((0.5, 0.3, 0.3)))
    assert "tie" not in shown(use_of((0.5, 0.3, 0.31)))


def test_what_is_0_for_every_policy_is_a_line_and_no_column() -> None:
    runs = [
        plain_run(policy, leaves={"conflicts": 0.0}, use={"utilisation": 0.5})
        for policy in ("ringleaf", "a")
    ]
    told = shown(Results(runs, [*compared(runs, "ringleaf")])).splitlines()

    assert told[2].split() == ["Utilization"]
    assert "0 for every policy: spine conflicts" in told


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
    (line,) = (each for each in compared.lines if each.endswith(" Regret"))
    row = compared.lines[compared.lines.index(line) + 1]
    assert row.endswith(measure_of("regret.mean").written(told["mean"]))
    for done in refused:
        assert done.status == 2
        assert "--regret needs the extra optimum; hint: pip install" in done.err


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_table_is_no_wider_than_the_terminal(
    ringleaf: Ringleaf, columns: int
) -> None:
    names = ",".join(BASELINES)
    words = ("--jobs=10", "--seeds=1", "--policies", names)
    done = ringleaf("compare", *SMALL, *words, columns=columns)
    rows = [line for line in done.lines if line.split()[:1] == ["volcano-binpack"]]

    assert max(map(len, done.lines[1:])) <= columns
    assert (len(rows) > 2) is (columns == 40)
    assert "…" not in done.out


def test_one_seed_tells_little(ringleaf: Ringleaf, tmp_path: Path) -> None:
    report = tmp_path / "a.html"
    one = ("--seeds=1", "--policies=random", "--report", str(report))
    plots = ("--plots", str(tmp_path / "plots"))
    done = ringleaf("compare", *SMALL, *one, *plots)

    assert done.status == 0
    assert (
        "warning: with one seed nothing is coloured; hint: ringleaf compare --seeds 5"
        in done.err
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
        (
            ("--policies=best",),
            "there is no policy 'best'; hint: did you mean 'best-fit'?",
        ),
        (("--policies=random+fif",), "there is no queue order 'fif'"),
        (("--policies=random,random",), "want every policy once"),
        (("--workers=2", "--dask=tcp://127.0.0.1:1"), "exclude each other"),
    ):
        done = ringleaf("compare", "--jobs=5", *words)
        assert done.status == 2
        assert told in done.err
        assert done.err.count("\n") == 1


def test_blanks_between_policies_mean_nothing() -> None:
    found = run_requests(SimulationRequest("x"), ["ringleaf, best-fit ", " random"], 1)

    assert [each.policy for each in found] == ["ringleaf", "best-fit", "random"]


def test_there_is_a_process_for_every_core_also_where_only_their_number_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def workers() -> object:
        crew = executor_of(None)
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
        ("--report", "none/deep/r.html", "/none'; hint: --report FILE, in a folder"),
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
    assert "nothing to compare it with; hint: --policies" in done.err


def test_plots_without_matplotlib_are_refused_before_the_first_run(
    ringleaf: Ringleaf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "find_spec", lambda _name: None)
    monkeypatch.setattr(compare, "run", None)
    done = ringleaf("compare", *SMALL, "--plots", str(tmp_path / "plots"))

    assert done.status == 2
    assert "--plots needs matplotlib" in done.err
    assert "hint: pip install 'ringleaf[plots]'" in done.err
    assert not (tmp_path / "plots").exists()


def test_ctrl_c_says_what_was_kept_and_what_was_not(
    ringleaf: Ringleaf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = comparison_runs.run
    played: list[object] = []

    def interrupted(*asked: object, **words: object) -> object:
        if len(played) == 1:
            raise KeyboardInterrupt
        played.append(asked)
        return play(*asked, **words)  # type: ignore[arg-type]

    monkeypatch.setattr(compare, "run", interrupted)
    words = ("compare", *SMALL, "--jobs=10", "--seeds=2", "--policies=ringleaf,random")
    lost = ringleaf(*words)
    played.clear()
    kept = ringleaf(*words, "--out", str(tmp_path))

    assert (lost.status, kept.status) == (130, 130)
    assert lost.err == (
        "ringleaf: interrupted after 1 of 4 runs; nothing was kept; hint: ringleaf "
        "compare --out DIR keeps the runs that are complete\n"
    )
    assert kept.err == (
        f"ringleaf: interrupted after 1 of 4 runs, kept in {tmp_path / 'runs'}; hint: "
        "the same command runs only the others\n"
    )
    assert len([*(tmp_path / "runs").iterdir()]) == 1


def test_ctrl_c_before_the_first_run_is_complete_keeps_none(
    ringleaf: Ringleaf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_asked: object, **_words: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "run", interrupted)
    done = ringleaf("compare", *SMALL, "--jobs=10", "--seeds=2", f"--out={tmp_path}")

    assert done.status == 130
    assert done.err.endswith("runs; no run is complete, so none was kept\n")


def test_where_jobs_wait_for_days_that_is_said_with_what_to_try(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    words = ("--cluster=leaf-spine-512:nodes=4", "--workload=helios-gang", "--load=3")
    long = "compare", *words, "--jobs=200", "--policies=ringleaf,random", "--workers=1"
    trace = tmp_path / "jobs.csv"
    trace.write_text("submit,duration,chips\n" + "0,900000,32\n" * 4)

    compared, one, own, short = (
        ringleaf(*long, "--seeds=2").err,
        ringleaf("simulate", *words, "--jobs=200").err,
        ringleaf("simulate", words[0], f"--trace={trace}").err,
        ringleaf(*long, "--seeds=1", "--load=0.2").err,
    )

    why = (
        "so the workload does not suit the cluster: the queue grows throughout the "
        "run, or single jobs request most of the chips; hint: "
    )
    hint = (
        f"{why}--workload pai, which suits 32 chips, a larger --cluster, your own jobs "
        "with --trace\n"
    )
    assert f" or more on average with every policy, {hint}" in compared
    assert f" on average, {hint}" in one
    assert "a larger --cluster\n" in own
    assert "does not suit" not in short


@pytest.mark.parametrize(
    ("name", "chips", "hint"),
    [
        ("kalos", 4096, "a lower load, as --load 0.6, a larger --cluster, another"),
        ("kalos", 1024, "--workload helios-gang, which suits 1,024 chips, a larger"),
        ("seren", 4096, "--workload kalos, which suits 4,096 chips, a larger"),
        ("helios-gang", 192, "--workload philly, which suits 192 chips, a larger"),
        ("philly", 192, "a lower load, as --load 0.6, a larger --cluster, another"),
    ],
)
def test_what_is_advised_depends_on_the_size_of_the_cluster(
    name: str, chips: int, hint: str
) -> None:
    wanted = SimulationRequest("x", workload=name)

    told = on_long([[sized(9e5, 9e5)]], 0.9, chips, wanted)

    assert f"; hint: {hint}" in told


def test_queues_of_a_file_that_get_no_jobs_are_named(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    cluster, jobs = tmp_path / "cluster.yaml", tmp_path / "jobs.csv"
    nodes = [{"name": "n{i}", "count": 2, "product": "atlas-800t-a2"}]
    queues = [{"name": "research"}, {"name": "product"}]
    cluster.write_text(json.dumps({"nodes": nodes, "queues": queues}))
    jobs.write_text("submit,duration,chips,queue\n0,60,8,research\n")
    words = ("simulate", f"--cluster={cluster}")

    preset = ringleaf(*words, "--workload=pai", "--jobs=5").err
    one = ringleaf(*words, f"--trace={jobs}").err
    columns = "submit=submit,duration=duration,chips=chips,queue=queue"
    own = ringleaf(*words, f"--trace={jobs}", f"--columns={columns}", "--queues").err

    told = f"{cluster}: queues research, product get no jobs, as those of"
    assert (
        f"{told} pai are in queue default; hint: your own jobs with --trace" in preset
    )
    assert f"{told} jobs.csv are in queue default; hint: --queues, and --columns" in one
    assert "get no jobs" not in own


def test_the_report_has_the_warning_of_the_terminal(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    words = ("--cluster=leaf-spine-512:nodes=4", "--workload=helios-gang", "--load=3")
    ringleaf(
        *("compare", *words, "--jobs=200", "--policies=ringleaf,random"),
        *("--workers=1", "--seeds=1", f"--report={report}"),
    )

    (warning,) = re.findall('<p class="warning">(.*?)</p>', report.read_text())
    assert "so the workload does not suit the cluster" in warning


def sized(
    mean: float, large: float | None, *, n: int = 3, unstarted: int = 0
) -> dict[str, Any]:
    """The wait time of all jobs, and of those of the two largest sizes.

    The wait times of jobs that start are a tenth where some never start.
    """
    by_size: dict[str, Any] = {"9-64": {"n": 9, "mean": 60.0}}
    if large is not None:
        by_size["65-256"] = {"n": n - 1, "mean": large}
        by_size[">256"] = {"n": 1, "mean": large}
    pending = {"all": {"mean": mean}, "by_size": by_size}
    started = pending
    if unstarted:
        sizes = {size: {**e, "mean": e["mean"] / 10} for size, e in by_size.items()}
        started = {"all": {"mean": mean / 10}, "by_size": sizes}
    return {
        "wait_s": started,
        "pending_s": pending,
        "jobs": {"unstarted": unstarted},
    }


@pytest.mark.parametrize(
    ("policies", "told"),
    [
        pytest.param(
            [[sized(60.0, 9e5)], [sized(60.0, 8e5)]],
            "gangs > 64 chips wait 9.3 d or more on average with every policy, so",
            id="the large gangs alone",
        ),
        pytest.param(
            [[sized(60.0, 9e5)]],
            "gangs > 64 chips wait 10.4 d on average, so the workload",
            id="one policy",
        ),
        pytest.param(
            [[sized(60.0, 8e5), sized(60.0, 10e5)]],
            "gangs > 64 chips wait 10.4 d on average",
            id="the mean over seeds, as the table has it",
        ),
        pytest.param([[sized(9e5, 9e5)]], "jobs wait 10.4 d on average", id="all jobs"),
        pytest.param([[sized(60.0, 9e5, n=2)]], "", id="too few"),
        pytest.param([[sized(60.0, 8e4)]], "", id="less than a day"),
        pytest.param([[sized(60.0, None)]], "", id="none so large"),
        pytest.param(
            [[sized(60.0, 9e5)], [sized(60.0, 8e4)]], "", id="not with every policy"
        ),
        pytest.param(
            [[sized(60.0, 9e5)], [sized(60.0, 8e5, unstarted=1)]],
            "gangs > 64 chips wait 9.3 d or more on average with every policy",
            id="jobs that never start under one policy count",
        ),
        pytest.param(
            [[sized(60.0, 9e4, unstarted=1)], [sized(60.0, 9e4, unstarted=2)]],
            "",
            id="jobs that no policy starts do not",
        ),
    ],
)
def test_where_only_large_gangs_wait_for_days_the_warning_names_them(
    policies: list[list[dict[str, Any]]], told: str
) -> None:
    warning = on_long(policies, 0.9, 4096, SimulationRequest("x"))

    assert told in warning
    assert bool(warning) is bool(told)


def test_a_simulation_says_which_jobs_never_start(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    leaves = {"a": ("a{i/4}", 8), "b": ("b", 6), "c": ("c", 3), "d": ("d", 3)}
    nodes = [
        {"name": f"{n}{{i}}", "count": count, "product": "atlas-800t-a2", "leaf": leaf}
        for n, (leaf, count) in leaves.items()
    ]
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(json.dumps({"nodes": nodes}))
    words = (f"--cluster={cluster}", "--workload=helios-gang", "--jobs=60", "--load=1")
    done = ringleaf("simulate", *words, "--policy=volcano-vendor-1.0")

    assert " of 120 chips (held back by a leaf or ring rule) " in done.out
    assert "with them, pending until the last job ended, the mean is " in done.out
    assert "never started" not in ringleaf("simulate", *words).out


def test_where_no_job_waits_that_is_said_with_what_to_try(ringleaf: Ringleaf) -> None:
    words = ("--cluster=leaf-spine-512", "--workload=philly", "--jobs=10")
    idle = [
        ringleaf("compare", *words, "--policies=ringleaf", "--seeds=2", "--workers=1"),
        ringleaf("simulate", *words),
    ]
    busy = ringleaf("simulate", SMALL[0], "--workload=helios-gang", "--jobs=80")

    for done in idle:
        assert "warning: no job waited, so wait time and utilization say" in done.err
        assert "hint: a higher load, as --load 1.2" in done.err
    assert "no job waited" not in busy.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("--demo --seeds 3", "--seeds"),
        ("--demo --load 0.5", "--load"),
        ("--demo --fill", "--fill"),
        ("--demo --report x", "--report"),
        ("--fill --out x", "--out"),
        ("--fill --faults usual", "--faults"),
        ("--fill --burst 1", "--burst"),
        ("--fill --queues", "--queues"),
    ],
)
def test_a_form_refuses_options_that_have_no_effect(
    ringleaf: Ringleaf, words: str, option: str
) -> None:
    form = words.split(maxsplit=1)[0]
    done = ringleaf("compare", *words.split())

    assert (done.status, done.out) == (2, "")
    assert f"ringleaf: {option} has no effect with {form}, want it without" in done.err


def test_demand_goes_with_fill(ringleaf: Ringleaf) -> None:
    done = ringleaf("compare", "--demand", "2")

    assert done.status == 2
    assert "--demand goes with --fill; hint: ringleaf compare --fill" in done.err
