"""``ringleaf compare --fill``: how many chips policies allocate to too many jobs."""

from collections.abc import Sequence
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.comparison_runs import executor_of, policy_label, run_requests
from ringleaf.cli.failure import program, warn
from ringleaf.cli.output import TrimmedConsole, print_json, print_trimmed, progress
from ringleaf.cli.simulate import scheduler_of
from ringleaf.cli.simulation_request import SimulationRequest, trial_of
from ringleaf.cli.tables import marks_of, marks_words
from ringleaf.report.contest import is_significant
from ringleaf.report.measures import Better, Measure, share
from ringleaf.report.results import Estimate
from ringleaf.simulator.saturation import (
    Fill,
    capacity_bound,
    churn_fill,
    comers,
    rule_bound,
    static_fill,
)
from ringleaf.study.figures import CONFIDENCE, mean_of, paired

STATIC, CHURN = "static", "churn"
TITLES: Final = {STATIC: "static fill", CHURN: "churn fill"}
ALLOCATED: Final = Measure("allocated", "Allocated", "", Better.UP, share)
CAPACITY, LEAVES = "capacity", "leaves"
BOUNDS: Final = {CAPACITY: "bound: capacity", LEAVES: "bound: leaf rule"}


class FillRequest(Struct, frozen=True):
    """The fills of one policy with one seed.

    Args:
        wanted: The cluster, the jobs and the rules.
        demand: Chips asked in the static fill, over those there are.
        load: Chip-seconds asked in the churn fill, over those there are.
        jobs: Jobs that come in the churn fill.
        bounded: Whether bounds are computed as well.

    """

    wanted: SimulationRequest
    demand: float
    load: float
    jobs: int
    bounded: bool = False


class Filled(Struct, frozen=True):
    """What came of it, and what bounds the static fill."""

    policy: str
    seed: int
    fills: dict[str, Fill]
    bounds: dict[str, float] = {}


def fill_cluster(
    asked: FillRequest,
    policies: Sequence[str],
    *,
    seeds: int,
    workers: int | None,
    as_json: bool,
) -> int:
    """Fill the cluster by every policy with every seed; the exit status."""
    wanted = run_requests(asked.wanted, policies, seeds)
    trial_of(wanted[0])  # what is to be said of the jobs is said once
    runs = [
        replace(
            asked, wanted=each, bounded=policy_label(each) == policy_label(wanted[0])
        )
        for each in wanted
    ]
    found: dict[int, Filled] = {}
    with progress(len(runs), what="filling the cluster") as shown:
        (task,) = shown.task_ids
        for place, filled in executor_of(workers)(run, runs):
            found[place] = filled
            shown.advance(task)
    fills = [found[place] for place in range(len(runs))]
    facts = _summary_plain(asked, fills, policy_label(wanted[0]))
    if as_json:
        print_json(facts)
    else:
        _show(TrimmedConsole(), facts)
        if LEAVES not in facts["bounds"]:
            warn("no bound by the rule; hint: pip install 'ringleaf[optimum]'")
    return 0


def run(asked: FillRequest) -> Filled:
    """Fill the cluster once in each way; nothing is printed."""
    wanted = asked.wanted
    with redirect_stderr(StringIO()):
        trial = trial_of(wanted)
    site, job_specs, seed = trial.site, trial.workload.job_specs, wanted.seed
    static = static_fill(
        site, job_specs(), scheduler_of(wanted, trial), seed, demand=asked.demand
    )
    churn = churn_fill(
        *(site, job_specs(), scheduler_of(wanted, trial), seed),
        load=asked.load,
        jobs=asked.jobs,
        settled=True,
    )
    bounds = {}
    if asked.bounded:
        came = comers(site, job_specs(), seed, demand=asked.demand)
        bounds[CAPACITY] = capacity_bound(site, came)
        if find_spec("ortools") is not None:
            bounds[LEAVES] = rule_bound(site, came, trial.conf.settings)
    return Filled(policy_label(wanted), seed, {STATIC: static, CHURN: churn}, bounds)


def _summary_plain(
    asked: FillRequest, found: Sequence[Filled], reference: str
) -> dict[str, Any]:
    """All of it as plain values."""
    whose: dict[str, list[Filled]] = {}
    for each in found:
        whose.setdefault(each.policy, []).append(each)
    bounds = {
        name: mean_of([e.bounds[name] for e in whose[reference] if name in e.bounds])
        for name in BOUNDS
    }
    return {
        "cluster": asked.wanted.cluster,
        "workload": asked.wanted.trace or asked.wanted.workload,
        "reference": reference,
        "confidence": CONFIDENCE,
        "seeds": len(whose[reference]),
        "demand": asked.demand,
        "load": asked.load,
        "policies": [
            {
                "policy": policy,
                **{way: _compared(own, whose[reference], way) for way in TITLES},
            }
            for policy, own in whose.items()
        ],
        "bounds": {
            name: msgspec.to_builtins(mean)
            for name, mean in bounds.items()
            if mean is not None
        },
        "fills": [
            {
                "policy": each.policy,
                "seed": each.seed,
                **{way: each.fills[way].plain() for way in TITLES},
            }
            for each in found
        ],
    }


def _compared(
    own: Sequence[Filled], base: Sequence[Filled], way: str
) -> dict[str, Any]:
    """What is allocated, the mean over seeds, and the difference seed by seed."""
    values, others = (
        [each.fills[way].allocated for each in filled] for filled in (own, base)
    )
    difference = None if own is base else paired(values, others)
    return {
        "allocated": msgspec.to_builtins(mean_of(values)),
        "difference": msgspec.to_builtins(difference),
    }


# For people.


def _show(console: Console, facts: dict[str, Any]) -> None:
    seeds = facts["seeds"]
    console.print(
        f"allocated chips, {facts['workload']} in excess on {facts['cluster']}; "
        f"{seeds} seed{'s' * (seeds != 1)}",
        soft_wrap=True,
    )
    console.print()
    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    shown.add_column("", no_wrap=True)
    for title in TITLES.values():
        shown.add_column(title, justify="right", no_wrap=True)
    marks, seen = marks_of(console), set[str]()
    for row in facts["policies"]:
        cells = [_cell(row[way], marks) for way in TITLES]
        seen |= {str(cell.style) for cell in cells}
        shown.add_row(Text(row["policy"]), *cells)
    for name, mean in facts["bounds"].items():
        shown.add_row(Text(BOUNDS[name], "dim"), Text(_percent(mean), "dim"))
    print_trimmed(console, shown)
    console.print()
    if seeds > 1:
        words = marks_words(marks, seen, facts["reference"], "paired by seed")
        line = f"± {100 * CONFIDENCE:.0f} % confidence; {words}"
        console.print(Text(line, "dim"), soft_wrap=True)
    else:
        warn(
            "one seed shows no significance, so nothing is coloured; "
            f"hint: {program()} compare --fill --seeds 10"
        )


def _cell(facts: dict[str, Any], marks: dict[str, str]) -> Text:
    difference = msgspec.convert(facts["difference"], Estimate | None)
    if difference is None or not is_significant(ALLOCATED, difference):
        return Text(_percent(facts["allocated"]))
    colour = "green" if difference.mean > 0 else "red"
    return Text(f"{marks[colour]}{_percent(facts['allocated'])}", colour)


def _percent(facts: dict[str, Any]) -> str:
    """A mean with its interval, in percent.

    >>> _percent({"mean": 0.975, "low": 0.97, "high": 0.98, "n": 2})
    '97.5 % ± 0.5'
    >>> _percent({"mean": 1.0, "low": None, "high": None, "n": 2})
    '100.0 % ± 0.0'
    """
    value = f"{100 * facts['mean']:.1f} %"
    if facts["n"] == 1:
        return value
    half = 0.0 if facts["high"] is None else facts["high"] - facts["mean"]
    return f"{value} ± {100 * half:.1f}"
