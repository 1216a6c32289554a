"""``ringleaf compare --demo``: Ringleaf and other schedulers on the same jobs."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.compare import results_of
from ringleaf.cli.comparison_runs import executor_of, plain_of
from ringleaf.cli.failure import typed
from ringleaf.cli.file import one_line
from ringleaf.cli.output import print_json, print_trimmed
from ringleaf.cli.simulation_request import SimulationRequest
from ringleaf.cli.tables import print_tables, print_verdict
from ringleaf.report import measures
from ringleaf.report.page import write_report
from ringleaf.report.results import Results
from ringleaf.report.verdict import ONE_SEED, headlines
from ringleaf.report.wait_verdict import in_a_sentence
from ringleaf.simulator.sites import SITES
from ringleaf.simulator.workloads import WORKLOADS

WANTED: Final = SimulationRequest(
    "leaf-spine-uneven", workload="kalos", load=0.9, jobs=3000, seed=1, contention=0.3
)
"""The usual workload on leaves of different sizes, with so many jobs that the cluster
is full most of the time."""
POLICIES: Final = (
    "ringleaf",
    "volcano-vendor-1.0",
    "kueue",
    "kube-coscheduling",
    "kube-scheduler",
)
"""Ringleaf, and other schedulers as they are deployed."""
SHOWN: Final = (
    "leaves.conflicts",
    "wait_s.by_size.>64.mean",
    "wait_s.all.mean",
    "chips.ring_violations_per_1000_pods",
    "use.effective_utilisation",
)
"""The measures of the table."""
POINTS: Final = (
    "leaves.conflicts",
    "wait_s.by_size.>64.mean",
    "use.effective_utilisation",
)
"""The measures of which a sentence is said."""

WHERE: Final = (
    "{jobs:,} jobs arrive at {site}. The workload is {workload}: {title} (drawn from "
    "published figures; load {load}, seed {seed})."
)
SCHEDULERS: Final = (
    "Ringleaf and {others} other schedulers, each as it is deployed with its own "
    "queue, get the same jobs at the same times. Gangs that share links between a "
    "leaf and the spine (a spine conflict) slow each other down and hold their chips "
    "longer: jobs communicate {communication:.0f} % of their time."
)
"""What is simulated, in words."""


def show_demo(*, jobs: int | None, out: str, as_json: bool) -> int:
    """Run the demo, write the report to the folder *out*, and print the results."""
    wanted = WANTED if jobs is None else replace(WANTED, jobs=jobs)
    console = Console(highlight=False)
    if not as_json:
        for text in (WHERE, SCHEDULERS):
            print_trimmed(console, _printed(text, wanted))
            console.print()
    report = Path(out) / "report.html"
    with one_line(out):
        report.parent.mkdir(parents=True, exist_ok=True)
    tell = None if as_json else partial(_tell, console)
    results = results_of(wanted, POLICIES, seeds=1, crew=executor_of(None), tell=tell)
    if tell is not None and not sys.stderr.isatty():
        console.print()
    with one_line(str(report)):
        write_report(report, results)
    if as_json:
        print_json(plain_of(results))
    else:
        _show(console, results, wanted, report)
    return 0


def _tell(console: Console, line: str) -> None:
    """Print a line at once, also to a file."""
    print_trimmed(console, line)
    console.file.flush()


def _printed(text: str, wanted: SimulationRequest) -> str:
    return text.format(
        jobs=wanted.jobs,
        site=SITES[wanted.cluster].title.replace(":", ","),
        workload=wanted.workload,
        title=WORKLOADS[wanted.workload].title,
        load=wanted.load,
        seed=wanted.seed,
        others=len(POLICIES) - 1,
        communication=100 * wanted.contention,
    )


def _show(
    console: Console, results: Results, wanted: SimulationRequest, report: Path
) -> None:
    sentence = in_a_sentence(measures.MeasureTable(results))
    print_verdict(console, [ONE_SEED if sentence is None else sentence])
    print_tables(console, results, [SHOWN])
    points = Table.grid(padding=(0, 2, 0, 0))
    points.add_column(width=26)
    for point in headlines(results, POINTS):
        points.add_row(Text(point.head, "bold"), point.text)
    print_trimmed(console, points)
    console.print()
    console.print("The same with five seeds, which shows what is significant:")
    console.print(Text(f"  {_again(wanted)}", "dim"), soft_wrap=True)
    told = Text.assemble("The report, to open in a browser: ", (str(report), "bold"))
    console.print(told, soft_wrap=True)


def _again(wanted: SimulationRequest, policies: Sequence[str] = POLICIES) -> str:
    """The command that repeats the demo with several seeds."""
    return (
        f"{typed()} compare --cluster {wanted.cluster} --jobs {wanted.jobs} "
        f"--contention {wanted.contention} --seed {wanted.seed} --seeds 5 "
        f"--policies {','.join(policies)}"
    )
