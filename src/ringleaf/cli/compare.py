"""``ringleaf compare``: several policies on the same arrivals, and which is better."""

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, redirect_stderr
from functools import partial
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

import ringleaf
from ringleaf.baselines.optimum import NotInstalled
from ringleaf.baselines.registry import OURS
from ringleaf.cli.comparison_runs import (
    RunRequest,
    executor_of,
    plain_of,
    policy_label,
    run,
    run_requests,
)
from ringleaf.cli.comparison_screen import ComparisonScreen
from ringleaf.cli.failure import BadUse, Interrupted, program, warn
from ringleaf.cli.file import check_file, check_folder, one_line
from ringleaf.cli.output import print_json, so_many
from ringleaf.cli.run_warnings import warnings_on
from ringleaf.cli.simulate import metrics_of
from ringleaf.cli.simulation_request import SimulationRequest, trial_of
from ringleaf.cli.tables import print_tables, print_verdict
from ringleaf.report.measures import MeasureTable
from ringleaf.report.page import write_report
from ringleaf.report.plots import write_plots
from ringleaf.report.results import ResourceBound, Results
from ringleaf.report.verdict import in_short
from ringleaf.simulator.bounds import Bounds, bounds
from ringleaf.simulator.source import BadInput
from ringleaf.study.compare import Executor, compared, counted_alike, play_all
from ringleaf.study.executors import ExecutorUnavailable
from ringleaf.study.figures import CONFIDENCE, mean_of
from ringleaf.study.rows import table

TOLD: Final = (
    (
        "use.utilisation",
        "use.effective_utilisation",
        "chips.fragmentation",
        "leaves.conflicts",
        "leaves.at_risk_share_of_crossing",
        "chips.ring_violations_per_1000_pods",
        "regret.mean",
    ),
    (
        "wait_s.all.mean",
        "wait_s.all.p50",
        "wait_s.all.p95",
        "wait_s.by_size.>64.mean",
        "jct_s.all.mean",
        "bounded_slowdown.all.mean",
    ),
)
"""Measures that are shown on a terminal, of the cluster and of jobs; files have all."""

OFFERED: Final = "use.utilisation"
"""Bounded by the work on offer, unless jobs run longer than they would alone."""
LIMITS: Final[Sequence[tuple[str, str, Callable[[Bounds], float | None], str]]] = (
    (
        OFFERED,
        "offered work",
        lambda each: each.utilisation,
        "Chip-time that jobs request in the counted time, over that of all chips.",
    ),
    (
        "jct_s.all.mean",
        "shortest remaining time",
        lambda each: each.mean_jct_s,
        "One machine with all chips that may preempt jobs at any time.",
    ),
    (
        "work.makespan_s",
        "area",
        lambda each: each.makespan_s,
        "All work spread over all chips, or the longest jobs.",
    ),
)
"""Measure, name, value and reason of every bound."""


def compare_policies(
    wanted: SimulationRequest,
    policies: Sequence[str],
    *,
    seeds: int,
    workers: int | None,
    dask: str | None,
    out: str | None,
    report: str | None,
    plots: str | None,
    as_json: bool,
) -> int:
    """Run every policy with every seed, and compare them; the exit status."""
    kept = None if out is None else Path(out) / "runs"
    crew = executor_of(workers, dask)
    _check_targets(out, report, plots)
    if len(run_requests(wanted, policies, 1)) == 1:
        warn(
            "there is one policy, and nothing to compare it with; "
            f"hint: --policies {OURS},best-fit,random"
        )
    results = results_of(wanted, policies, seeds=seeds, crew=crew, kept=kept)
    by_policy = [results.of(policy) for policy in results.policies]
    measured = [[run.metrics for run in runs] for runs in by_policy]
    first = results.runs[0].spec
    told = warnings_on(measured, first.load, first.chips, wanted)
    results = replace(results, warnings=tuple(told))
    written = _write(results, out, report, plots)
    for text in told:
        warn(text)
    if as_json:
        print_json(plain_of(results))
    else:
        _show(Console(highlight=False), results, written)
    return 0


def _check_targets(out: str | None, report: str | None, plots: str | None) -> None:
    """Refuse targets that cannot be written, before the first run."""
    if plots is not None and find_spec("matplotlib") is None:
        raise BadUse(
            "--plots needs matplotlib, which is not installed; "
            "hint: pip install 'ringleaf[plots]'"
        )
    check_folder("--out", out)
    check_folder("--plots", plots)
    check_file("--report", report)


def results_of(
    wanted: SimulationRequest,
    policies: Sequence[str],
    *,
    seeds: int,
    crew: Executor,
    kept: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> Results:
    """What comes of every policy with every seed; a terminal shows how it goes.

    Where there is none, *tell* is told of every policy that is complete.
    """
    films = [
        RunRequest(each, filmed=each.seed == wanted.seed)
        for each in run_requests(wanted, policies, seeds)
    ]
    asked = {each.mark: each for each in films}
    first = next(iter(asked.values())).wanted
    metrics_of(first)  # what is missing is told before anything is played
    limits = list(_bounds(first, seeds))
    casts: dict[str, list[str]] = {}
    for mark, each in asked.items():
        casts.setdefault(policy_label(each.wanted), []).append(mark)
    with ComparisonScreen(_title(first), casts, tell=tell) as stage:
        play = partial(run, told=stage.folder)
        try:
            runs = counted_alike(
                play_all(asked, play, stage.timed(crew), kept=kept, heard=stage.heard)
            )
        except (ExecutorUnavailable, NotInstalled, BadInput) as error:
            raise BadUse(str(error)) from None
        except KeyboardInterrupt:
            raise Interrupted(_left(stage.n_done, len(asked), kept)) from None
    return Results(
        runs,
        tuple(compared(runs, policy_label(first))),
        limits,
        reference=policy_label(first),
        confidence=CONFIDENCE,
        command=f"ringleaf {shlex.join(sys.argv[1:])}",
        version=ringleaf.__version__,
    )


def _left(done: int, runs: int, kept: Path | None) -> str:
    """What is left of a comparison that was interrupted."""
    told = f"interrupted after {done} of {so_many(runs, 'run')}"
    if kept is None:
        hint = f"hint: {program()} compare --out DIR keeps the runs that are complete"
        return f"{told}; nothing was kept; {hint}"
    if not done:
        return f"{told}; no run is complete, so none was kept"
    return f"{told}, kept in {kept}; hint: the same command runs only the others"


def _title(wanted: SimulationRequest) -> str:
    return f"{wanted.trace or wanted.workload} on {wanted.cluster}"


def _bounds(wanted: SimulationRequest, seeds: int) -> Iterator[ResourceBound]:
    """What no policy can do better than, the means of the seeds.

    What was done to the jobs is said once, of the first seed.
    """
    found: list[Bounds] = []
    for n in range(seeds):
        with redirect_stderr(StringIO()) if n else nullcontext():
            trial = trial_of(replace(wanted, seed=wanted.seed + n))
        found.append(bounds(trial.site, trial.workload))
    for key, name, of, title in LIMITS:
        mean = mean_of([value for each in found if (value := of(each)) is not None])
        bounded = _bounded(key, wanted)
        if mean is not None and bounded is not None:
            yield ResourceBound(bounded, name, mean.mean, title)


def _bounded(key: str, wanted: SimulationRequest) -> str | None:
    """What a bound is of in runs as *wanted*; None of nothing.

    Jobs that slow each other down hold chips longer than their work takes, but do no
    more work; jobs that lose work to faults do some of it twice.
    """
    if key != OFFERED:
        return key
    if wanted.faults != "none":
        return None
    return "use.effective_utilisation" if wanted.contention else key


def _write(
    results: Results, out: str | None, report: str | None, plots: str | None
) -> list[Path]:
    """Write what was asked for; where it is."""
    found = []
    if out is not None:
        folder = Path(out)
        with one_line(out):
            folder.mkdir(parents=True, exist_ok=True)
            comparison = folder / "comparison.json"
            comparison.write_bytes(
                msgspec.json.format(msgspec.json.encode(plain_of(results))) + b"\n"
            )
            found.append(comparison)
            (folder / "runs.csv").write_text(table(results.runs), encoding="utf-8")
            found.append(folder / "runs.csv")
            write_report(folder / "report.html", results)
            found.append(folder / "report.html")
    if report is not None:
        with one_line(report):
            write_report(Path(report), results)
        found.append(Path(report))
    if plots is not None:
        folder = Path(plots)
        with one_line("--plots", BadInput):
            folder.mkdir(parents=True, exist_ok=True)
            found += write_plots(folder, results)
    return found


# For people.


def _show(console: Console, results: Results, written: Sequence[Path]) -> None:
    first = results.runs[0].spec
    seeds = len(results.of(results.reference))
    console.print(
        f"{first.jobs:,} jobs of {first.workload} at load {first.load:.2f} on "
        f"{first.site}: {first.nodes:,} nodes, {first.chips:,} chips; "
        f"{so_many(seeds, 'seed')}",
        soft_wrap=True,
    )
    console.print()
    found = MeasureTable(results)
    if len(results.policies) > 1:
        print_verdict(console, in_short(found))
    print_tables(console, results, _measures_to_show(found))
    if seeds == 1:
        warn(f"with one seed nothing is coloured; hint: {program()} compare --seeds 5")
    for path in written:
        console.print(Text(f"written: {path}", "dim"), soft_wrap=True)


def _measures_to_show(table: MeasureTable) -> Sequence[Sequence[str]]:
    """The measures to show; where some job never starts, those that count all jobs."""
    of_cluster, of_jobs = TOLD
    first = ["jobs.unstarted"] if table.unstarted else []
    return of_cluster, [*first, *map(table.compared, of_jobs)]
