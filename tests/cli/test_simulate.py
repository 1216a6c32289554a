"""``ringleaf simulate``: what it tells and writes, and how it is interrupted."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ringleaf.cli import simulate as module
from ringleaf.cli.simulation_screen import LEAST_S, SimulationScreen
from ringleaf.engine.event import NodesChanged
from ringleaf.report.duration import format_duration
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.trial import TimedEvent
from tests.cli.conftest import Ringleaf
from tests.docs.pages import ROOT
from tests.simulator.trials import engine, node, spec, trial

SMALL = (
    "--cluster",
    "leaf-spine-512:nodes=32",
    "--workload",
    "philly",
    "--jobs",
    "300",
)
IDLE = (
    "ringleaf: warning: no job waited, so wait time and utilization say nothing about "
    "the policy; hint: a higher load, as --load 1.2, or a smaller --cluster\n"
)
"""What is said of the small cluster, on which there is room for all jobs."""
RESULTS = ("jobs.csv", "series.csv", "summary.json")
TRACE = (
    "submit,duration,chips\n2024-01-01 00:00:00,60,8\n2024-01-01 00:00:10,30,16\n"
    "2024-01-01 00:00:20,600,1\n"
)


def results(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in RESULTS}


def test_a_summary_tells_what_was_simulated_and_what_came_of_it(
    ringleaf: Ringleaf,
) -> None:
    done = ringleaf("simulate", *SMALL)

    assert done.status == 0
    assert done.lines[0] == "philly on leaf-spine-512:nodes=32, ringleaf"
    assert done.lines[1].startswith("32 nodes, 256 chips, 8 leaves; 300 jobs in ")
    told = done.out
    for word in ("jobs  300 ended", "utilization", "wait time  mean", "stranded"):
        assert word in told
    assert "wait mean" in told
    assert done.err == IDLE


def test_the_json_is_the_summary_that_is_written(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    done = ringleaf("simulate", *SMALL, "--out", str(tmp_path), "--json")

    told = json.loads(done.out)
    assert told == json.loads((tmp_path / "summary.json").read_text())
    assert told["cluster"]["chips"] == 256
    assert told["jobs"]["over"] == 300
    assert told["options"]["seed"] == 0
    assert told["measures"]["jobs"]["ended"] == 300


def test_faults_are_counted_and_told_where_nobody_was_hit(ringleaf: Ringleaf) -> None:
    usual = ringleaf("simulate", *SMALL, "--faults", "leaf=20000")
    never = ringleaf("simulate", *SMALL, "--faults", "chip=0")

    told = [line.split() for line in usual.lines + never.lines]
    assert told.count(["faults", "none"]) == 2
    assert usual.err == IDLE
    assert "--faults chip=0: nothing ever fails" in never.err


def test_faults_that_come_too_often_are_refused_in_one_line(ringleaf: Ringleaf) -> None:
    done = ringleaf("simulate", *SMALL, "--faults", "chip=0.001")

    assert done.status == 2
    assert done.err.startswith("ringleaf: --faults: chip=0.001 is too often")
    assert "hint: chip=80000 is usual, chip=0 is never" in done.err


def test_every_job_and_the_course_of_time_are_written(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    ringleaf("simulate", *SMALL, "--out", str(tmp_path))

    with (tmp_path / "jobs.csv").open(newline="") as file:
        jobs = list(csv.DictReader(file))
    with (tmp_path / "series.csv").open(newline="") as file:
        series = list(csv.DictReader(file))
    assert len(jobs) == 300
    assert 10 < len(series) < 5000
    assert all(0 <= float(row["utilisation"]) <= 1 for row in series)
    assert json.loads((tmp_path / "cost.json").read_text())["pods_per_second"] > 0
    assert not (tmp_path / "unfinished.run").exists()


def test_the_same_options_give_the_same_bytes_and_another_seed_does_not(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    options = (*SMALL, "--faults", "node=50", "--contention", "0.3")
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        ringleaf("simulate", *options, "--seed", seed, "--out", str(tmp_path / name))

    one, same, other = (results(tmp_path / name) for name in "abc")
    assert one == same
    assert one["jobs.csv"] != other["jobs.csv"]


@pytest.mark.slow
def test_faults_cost_work(ringleaf: Ringleaf) -> None:
    done = ringleaf(
        "simulate", *SMALL, "--faults", "node=30", "--checkpoint-seconds=1e9"
    )

    assert "chip-hours" in done.out
    assert "deleted for faults" in " ".join(done.out.split())


def test_a_baseline_schedules_by_its_name(ringleaf: Ringleaf) -> None:
    ours = ringleaf("simulate", *SMALL, "--json")
    other = ringleaf("simulate", *SMALL, "--policy", "worst-fit", "--json")

    worse, usual = json.loads(other.out), json.loads(ours.out)
    frag = [t["measures"]["chips"]["fragmentation"] for t in (usual, worse)]
    assert frag[0] < frag[1]


def test_jobs_come_from_a_trace(ringleaf: Ringleaf, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE)

    done = ringleaf(
        *("simulate", "--cluster", "leaf-spine-512:nodes=4", "--trace", str(path)),
        *("--columns", "submit=submit,duration=duration,chips=chips", "--json"),
    )

    assert json.loads(done.out)["jobs"]["over"] == 3


def test_a_cluster_comes_from_a_dump_with_its_configuration(ringleaf: Ringleaf) -> None:
    cluster = str(ROOT / "examples" / "busy-leaves.yaml")

    done = ringleaf("simulate", "--cluster", cluster, "--jobs", "20", "--json")

    assert json.loads(done.out)["cluster"]["name"] == "busy-leaves.yaml"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--cluster", "nowhere"), "--cluster is 'nowhere', want a file or one of "),
        (("--workload", "kalas"), "--workload: workload 'kalas' is unknown"),
        (
            ("--policy", "bestfit"),
            "--policy: there is no policy 'bestfit'; hint: did you mean",
        ),
        (("--order", "lifo"), "there is no queue order 'lifo'"),
        (("--faults", "often"), "--faults: 'often' is no rate, want usual, none, or"),
        (("--load", "0"), "--load is 0.0, want more than 0"),
        (("--jobs", "0"), "--jobs is 0, want 1 to 10,000,000"),
        (("--estimate", "-1"), "--estimate is -1.0, want 0 or more"),
        (("--order", "easi"), "--order: there is no queue order 'easi'"),
        (("--columns", "philly"), "--columns goes with --trace"),
        (("--trace", "none.csv"), "--trace: none.csv: No such file or directory"),
        (("--trace", "a.csv", "--burst", "3"), "--burst goes without --trace, whose"),
        (
            ("--trace", "a.csv", "--workload", "seren"),
            "--workload goes without --trace",
        ),
        (("--resume", "x/y.run"), "--resume: x/y.run: No such file or directory"),
        (("--conf", "none.conf"), "--conf: none.conf: No such file or directory"),
        (("--contention", "2"), "--contention is 2, want a number from 0 to 1"),
        (
            ("--resume", "x/y.run", "--out", "z"),
            "--out is 'z', and the run of --resume writes to 'x'; hint: without --out",
        ),
    ],
)
def test_bad_use_is_one_line(
    arguments: tuple[str, ...], told: str, ringleaf: Ringleaf
) -> None:
    done = ringleaf("simulate", "--jobs", "10", *arguments)

    assert done.status == 2
    assert told in done.err
    assert done.err.count("\n") == 1
    assert not done.out


def test_results_that_cannot_be_written_are_one_line(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")

    done = ringleaf("simulate", *SMALL, "--out", str(tmp_path / "file" / "deep"))

    assert done.status == 2
    assert "Not a directory" in done.err


def test_a_run_that_is_not_over_is_never_overwritten(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    (tmp_path / module.BOOKMARK).write_bytes(b"of others")

    done = ringleaf("simulate", *SMALL, "--out", str(tmp_path))

    assert done.status == 2
    assert f"--resume {tmp_path / module.BOOKMARK}" in done.err
    assert (tmp_path / module.BOOKMARK).read_bytes() == b"of others"
    assert [each.name for each in tmp_path.iterdir()] == [module.BOOKMARK]


def test_results_of_other_options_are_overwritten_with_a_warning(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    out = ("--out", str(tmp_path))
    first = ringleaf("simulate", *SMALL, *out)
    same = ringleaf("simulate", *SMALL, *out)
    other = ringleaf("simulate", *SMALL, *out, "--seed", "1")

    assert first.err == IDLE
    assert same.err == IDLE
    assert "has results of other options, which are overwritten" in other.err


def test_a_window_of_little_of_the_time_is_told(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    file = tmp_path / "late.csv"
    late = "".join(f"{1_000_000 + n},60,8\n" for n in range(0, 1000, 10))
    file.write_text(f"submit,duration,chips\n0,60,8\n{late}")

    options = (*SMALL[:2], "--trace", str(file), "--columns")
    done = ringleaf("simulate", *options, "submit=submit,duration=duration,chips=chips")

    assert done.status == 0
    assert " of the 11.6 d in which jobs arrive are counted" in done.err


@pytest.mark.slow
def test_jobs_that_wait_for_their_turn_while_chips_are_free_give_a_hint(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    """Reservations may keep any number of chips idle here."""
    conf = tmp_path / "scheduler.conf"
    conf.write_text(
        'actions: "enqueue, allocate, backfill"\n'
        "configurations:\n"
        "- {name: allocate, arguments: {reservation-idle-budget: 1}}\n"
    )
    cluster = ("--cluster=leaf-spine-512:nodes=64", f"--conf={conf}")
    seren = (*cluster, "--workload=seren", "--jobs=800")
    silent = ringleaf("simulate", *seren)
    told = ringleaf("simulate", *seren, "--estimate=1.5")

    assert "while chips are free" in silent.out
    assert "try --estimate 1.5" in silent.out
    assert "try --estimate" not in told.out


# Interruptions.

OPTIONS = (*SMALL, "--faults", "node=100", "--contention", "0.3", "--jobs", "3000")
SAVING = ("--save-every", "0")
"""It saves itself all the time."""


def begun(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """A run in a process of its own."""
    return subprocess.Popen(  # noqa: S603 - our own
        [
            *(sys.executable, "-m", "ringleaf", "simulate", *OPTIONS),
            *("--out", str(folder), *more),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        if path.exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    assert path.exists(), process.communicate()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run writes that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    process = begun(folder)
    said = process.communicate()
    assert process.returncode == 0, said
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_was_interrupted_gives_the_same_bytes_in_the_end(
    number: signal.Signals, ringleaf: Ringleaf, whole: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    saved = cut / module.BOOKMARK
    process = begun(cut, *SAVING)
    wait_for(saved, process)
    process.send_signal(number)
    _out, told = process.communicate(timeout=60)
    assert not (cut / "summary.json").exists()

    resumed = ringleaf("simulate", *OPTIONS, "--resume", str(saved))

    assert resumed.status == 0, resumed.err
    assert results(cut) == results(whole)
    assert not saved.exists()
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert f"--resume {saved}" in told.decode()
        assert told.count(b"\n") == 1


def test_a_run_of_other_options_is_refused(ringleaf: Ringleaf, tmp_path: Path) -> None:
    process = begun(tmp_path, *SAVING)
    saved = tmp_path / module.BOOKMARK
    wait_for(saved, process)
    process.kill()
    process.communicate()

    done = ringleaf(
        *("simulate", *OPTIONS, "--seed", "7"),
        *("--resume", str(saved)),
    )

    assert done.status == 2
    assert "the run was started with seed 0, not 7; hint: give seed as it" in done.err


def test_without_results_an_interrupted_run_is_not_kept(
    ringleaf: Ringleaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Clock.step

    def interrupted(clock: Clock, until: float = float("inf")) -> bool:
        if clock.steps == 100:
            os.kill(os.getpid(), signal.SIGINT)
        return step(clock, until)

    monkeypatch.setattr(Clock, "step", interrupted)

    done = ringleaf("simulate", *SMALL)

    assert done.status == 130
    assert "hint: with --out DIR a run can be continued" in done.err


# The screen.


def drawn(clock: Clock, after_s: float = 1.0) -> str:
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=100, color_system=None)
    screen = SimulationScreen(clock, "ringleaf", console)
    console.print(screen.drawn(screen._began + after_s))  # noqa: SLF001
    return out.getvalue()


def test_the_screen_shows_time_jobs_chips_and_leaves() -> None:
    down = TimedEvent(5, NodesChanged((node(7, ready=False),)))
    job_specs = [spec("a", 0, 2e5, replicas=3), spec("b", 0, 10), spec("c", 1, 9, 8, 9)]
    played = trial(8, job_specs, timed_events=[down])
    clock = Clock(played, engine(played))
    while clock.step(100_000):
        pass

    lines = [line.rstrip() for line in drawn(clock).splitlines()]

    assert lines == [
        "small on small, ringleaf   day 1, 00:05",
        "  arrived  " + "█" * 40 + " 100% of 3",
        " utilized  " + "█" * 15 + "░" * 25 + "  38% of 64 chips",
        "     jobs  1 pending   1 running   1 ended",
        "    speed  0 jobs a second, 0 s in one",
        "     time  0:01",
        "",
        "   2 leaves",
        "           ▆·",
    ]


def test_a_screen_is_drawn_on_a_terminal_now_and_then() -> None:
    played = trial(2, [spec("a", 0, 10)])
    clock = Clock(played, engine(played))
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=100)

    with SimulationScreen(clock, "ringleaf", console) as screen:
        screen.show(screen._began + LEAST_S / 2)  # noqa: SLF001
        before = out.getvalue()
        screen.show(screen._began + LEAST_S)  # noqa: SLF001

    assert "small on small" not in before
    assert "small on small" in out.getvalue()


def test_time_is_told_in_units_that_suit_it() -> None:
    assert format_duration(59.4) == "59.4 s"
    assert format_duration(86400 * 12.5) == "12.5 d"


def test_a_scenario_gives_its_nodes_and_keys_that_are_not_used_are_named(
    ringleaf: Ringleaf, tmp_path: Path
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(
        "nodes: [{name: 'n{i}', count: 8, product: atlas-800t-a2, leaf: 'L{i/4}'}]\n"
        "jobs: [{name: j, chips: 8}]\nthen: [{at: 5, ends: j}]\n"
    )
    options = ("--workload", "packing", "--jobs", "20", "--json")
    done = ringleaf("simulate", str(file), *options)
    told = json.loads(done.out)

    assert done.status == 0
    assert (told["cluster"]["nodes"], told["cluster"]["leaves"]) == (8, 2)
    assert told["jobs"]["arrived"] == 20
    assert (
        f"{file}: jobs and then are not used, the jobs are those of the workload; "
        f"hint: ringleaf plan {file} runs the jobs of the file"
    ) in done.err


def test_a_scenario_and_a_cluster_exclude_each_other(ringleaf: Ringleaf) -> None:
    done = ringleaf("simulate", "a.yaml", "--cluster", "mixed")

    assert (done.status, done.out) == (2, "")
    assert "SCENARIO is 'a.yaml' and --cluster is 'mixed', want one" in done.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("--load", "90"),
            "--load is 90.0, want more than 0 and at most 10; hint: 0.9",
        ),
        (("--load", "90%"), "--load is '90%', want a number; hint: 0.9 is 90 %\n"),
        (("--jobs", "1k"), "--jobs is '1k', want a whole number; hint: 1000\n"),
        (("--load", "110"), "hint: 1.1 is 110 % of what the cluster can serve"),
        (
            ("--jobs", "1000000000000"),
            (
                "--jobs is 1,000,000,000,000, want 1 to 10,000,000; "
                "hint: a study has 1,000 to 100,000 jobs"
            ),
        ),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "compare", "fill"])
def test_what_was_hardly_meant_is_questioned(
    ringleaf: Ringleaf, command: str, arguments: tuple[str, str], line: str
) -> None:
    done = ringleaf(command, *arguments)

    assert (done.status, done.out) == (2, "")
    assert line in done.err


def test_one_job_is_one_and_what_is_the_same_is_told_once(ringleaf: Ringleaf) -> None:
    done = ringleaf(
        *("simulate", "--jobs", "1", "--cluster", "leaf-spine-512:nodes=16"),
        *("--load", "0.5"),
    )

    assert "; 1 job in " in done.out
    assert "of healthy chips" not in done.out
