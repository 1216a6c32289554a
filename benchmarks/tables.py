"""Tables of docs/results.md, from the files of docs/results that a study wrote.

No figure of that page is typed: ``make docs`` calls these.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ringleaf.report.contest import is_significant
from ringleaf.report.duration import format_duration
from ringleaf.report.measures import measure_of, share
from ringleaf.report.results import Estimate
from ringleaf.study.figures import mean_of, paired

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "results"
OURS, GUIDE, FREE, NEAR = "ringleaf", "ringleaf-guide", "best-fit", "kueue-tas"
NONE: Final = "\N{EN DASH}"
YES, NO = "yes", "**no**"
LARGE: Final = "wait_s.by_size.>64.mean"
WAIT: Final = "wait_s.all.mean"
USE: Final = "use.utilisation"
WORK: Final = "use.effective_utilisation"
TOLD: Final = {
    USE: "utilization",
    WORK: "effective utilization",
    "wait_s.all.mean": "wait time (mean)",
    LARGE: "wait time, gangs > 64 chips (mean)",
    "bounded_slowdown.all.mean": "slowdown",
    "leaves.conflicts": "spine conflicts",
    "leaves.at_risk_share_of_crossing": "gangs that shared a leaf's links",
    "chips.ring_violations_per_1000_pods": "pods across rings, per 1,000",
}
"""Measures that have a column, and its head."""

ONE_POINT, ONE_PERCENT, THIRTY_PERCENT = 0.01, 0.01, 0.30
Plain = dict[str, Any]


def read(name: str, folder: Path = FOLDER) -> Plain:
    """What a study wrote."""
    found: Plain = msgspec.json.decode((folder / f"{name}.json").read_bytes())
    return found


def command(study: Plain) -> str:
    """The command of a study, as a block."""
    return f"```text\n{typed(study['command'])}\n```"


def _rows(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# Comparisons.


def compared(study: Plain) -> str:
    """Policies by measures; bold differs significantly from the first policy."""
    known = {(each["measure"], each["policy"]): each for each in study["measures"]}
    keys = [key for key in TOLD if any(measure == key for measure, _who in known)]

    def cells() -> Iterator[list[str]]:
        for policy in study["policies"]:
            found = [_cell(known.get((key, policy)), key) for key in keys]
            yield [f"`{policy}`", *found]

    return _rows(["policy", *(TOLD[key] for key in keys)], cells())


def _cell(found: Plain | None, key: str) -> str:
    if found is None:
        return NONE
    text = measure_of(key).written(found["value"]["mean"])
    if found["difference"] is None:
        return text
    apart = msgspec.convert(found["difference"], Estimate)
    value, measure = found["value"]["mean"], measure_of(key)
    is_apart = is_significant(measure, apart, value, value - apart.mean)
    return f"**{text}**" if is_apart and measure.better else text


SHORT: Final = {
    LARGE: "wait time, gangs > 64 chips",
    "wait_s.all.mean": "wait time, all jobs",
    WORK: "effective utilization",
    "leaves.conflicts": "spine conflicts",
    "chips.ring_violations_per_1000_pods": "pods across rings, per 1,000",
}
"""Measures of the table of schedulers as they are deployed."""


def deployed(**studies: Plain) -> str:
    """Schedulers by measures on each cluster, by the word for its leaves."""

    def cells() -> Iterator[list[str]]:
        for leaves, study in studies.items():
            known = {(e["measure"], e["policy"]): e for e in study["measures"]}
            for policy in study["policies"]:
                found = [_cell(known.get((key, policy)), key) for key in SHORT]
                yield [leaves, f"`{policy}`", *found]

    return _rows(["leaves", "scheduler", *SHORT.values()], cells())


WIDTH: Final = 100
"""Columns of a command on a page."""


def typed(command: str) -> str:
    r"""A command as it is typed, with a backslash where a line would be too long.

    >>> typed("ringleaf compare --seeds 5 --policies " + 30 * "a,b").partition("\n")[0]
    '$ ringleaf compare --seeds 5 \\'
    """
    first, *options = re.split(r" (?=--)", f"$ {command}")
    lines = [first]
    for option in options:
        if len(lines[-1]) + 1 + len(option) > WIDTH:
            lines[-1] += " \\"
            lines.append(f"    {option}")
        else:
            lines[-1] += f" {option}"
    return "\n".join(lines)


def about(study: Plain) -> str:
    """How much was played, in a sentence."""
    seeds = len(study["seeds"])
    return (
        f"{study['jobs']:,} jobs at an offered load of {study['load']:.2f}, "
        f"{seeds} seed{'s' * (seeds > 1)} each."
    )


def why(study: Plain, policies: Sequence[str]) -> str:
    """What jobs waited for, as shares of all waiting."""
    names = list(dict.fromkeys(name for own in study["why"].values() for name in own))

    def cells() -> Iterator[list[str]]:
        for policy in policies:
            own = study["why"][policy]
            yield [f"`{policy}`", *(_share(own.get(name)) for name in names)]

    return _rows(["policy", *names], cells())


def _share(value: float | None) -> str:
    return NONE if value is None else share(value)


def value(study: Plain, key: str, policy: str) -> float:
    """What a policy comes to, on average."""
    (found,) = (
        each["value"]["mean"]
        for each in study["measures"]
        if (each["measure"], each["policy"]) == (key, policy)
    )
    return float(found)


# Running times that are learnt.

TIMES: Final = {"none": "none", "learnt": "learnt", "true": "stated, exact"}
TOLD_OF_TIMES: Final = (USE, "wait_s.all.mean", LARGE)


def learnt(study: Plain) -> str:
    """Workloads by running times; bold is beyond chance, sample by sample."""
    rows = {(row["study"], row["times"]): row["runs"] for row in study["rows"]}

    def cells() -> Iterator[list[str]]:
        for (name, times), runs in rows.items():
            first = rows[name, "none"]
            share_of, within = (
                _portion(runs, *keys)
                for keys in (("predicted", "ended"), ("within", "predicted"))
            )
            found = [_beside(runs, first, key) for key in TOLD_OF_TIMES]
            yield [f"`{name}`", TIMES[times], share_of, within, *found]

    head = ["workload", "running times", "jobs predicted", "of these within p90"]
    return _rows([*head, *(TOLD[key] for key in TOLD_OF_TIMES)], cells())


def learnt_about(study: Plain) -> str:
    """How much was played of each workload, as a list."""
    return "\n".join(
        f"- `{each['name']}`: {each['source']} on {each['cluster']}, "
        + (
            f"{each['seeds']} times {each['jobs']:,} jobs at a load of {each['load']}"
            if each["jobs"]
            else "the whole file at its own load"
        )
        + (f", {each['times']} chips for each processor" if each["times"] > 1 else "")
        for each in study["studies"]
    )


def _portion(runs: Sequence[Plain], part: str, whole: str) -> str:
    """The share of one sum in another; nothing of nothing."""
    total = sum(run[whole] for run in runs)
    return share(sum(run[part] for run in runs) / total) if total else NONE


def _beside(runs: Sequence[Plain], first: Sequence[Plain], key: str) -> str:
    """The mean of a measure, bold where it differs from that of *first*."""
    own, others = ([run[key] for run in each] for each in (runs, first))
    mean, apart = mean_of(own), paired(own, others)
    assert mean is not None
    measure, value = measure_of(key), mean.mean
    text = measure.written(value)
    if apart is None or not is_significant(measure, apart, value, value - apart.mean):
        return text
    return f"**{text}**" if measure.better else text


# Fills and the optimum.


def filled(study: Plain) -> str:
    """Every fill by policy: allocated, and spine conflicts."""
    policies = [*study["rows"][0]["policies"]]

    def cells() -> Iterator[list[str]]:
        for row in study["rows"]:
            own = [_fill(row["policies"].get(policy)) for policy in policies]
            yield [row["way"], row["mix"], str(row["leaf"]), *own]

    return _rows(["fill", "jobs", "leaf", *(f"`{p}`" for p in policies)], cells())


def _fill(found: Plain | None) -> str:
    if found is None:
        return NONE
    return f"{100 * found['allocated']['mean']:.1f} / {found['conflicts']['mean']:.3g}"


def best(study: Plain) -> str:
    """Nodes that policies took, of what the optimum takes."""
    policies = [*study["rows"][0]["ratios"]]

    def cells() -> Iterator[list[str]]:
        for row in study["rows"]:
            own = [f"{100 * each['mean']:.1f}" for each in row["ratios"].values()]
            proven = f"{row['proven']} of {study['seeds']}"
            where = f"{row['leaves']} of {row['leaf']}"
            yield [row["mix"], where, *own, proven]

    return _rows(["jobs", "leaves", *(f"`{p}`" for p in policies), "proven"], cells())


# The best choice of leaves.

CHURN_GOALS: Final = {
    ("any size", 4): 1.5,
    ("any size", 8): 2.0,
    ("doublings", 4): 0.3,
    ("doublings", 8): 0.3,
}
"""Points below free packing in a churn, at most, by jobs and nodes of a leaf."""


def churned(study: Plain) -> str:
    """Both choices of leaves in the churn, and whether the goals hold."""

    def cells() -> Iterator[list[str]]:
        for row in study["rows"]:
            if row["way"] != "churn":
                continue
            goal = CHURN_GOALS[row["mix"], row["leaf"]]
            own = [row["policies"][name] for name in (FREE, GUIDE, OURS)]
            free, *others = (f"{100 * each['allocated']['mean']:.2f} %" for each in own)
            below = [_between(each["below"]) for each in own[1:]]
            found = [each for pair in zip(others, below, strict=True) for each in pair]
            holds = 100 * own[-1]["below"]["mean"] <= goal
            about = [row["mix"], str(row["leaf"]), free]
            yield [*about, *found, str(goal), YES if holds else NO]

    head = ["jobs", "leaves of", "free packing", f"`{GUIDE}`", "points below"]
    return _rows([*head, f"`{OURS}`", "points below", "goal", "holds"], cells())


def many(study: Plain) -> str:
    """How many seeds the means are of."""
    return f"Means of {study['seeds']} seeds."


def small(study: Plain) -> str:
    """The best online choice on small clusters, in points below free packing."""
    ways = {
        "moved": "jobs that move",
        "best": "best choice",
        "best compact": "best choice of `compact`",
        "compact": "`compact`",
    }

    def cells() -> Iterator[list[str]]:
        for row in study["small"]:
            own = row["allocated"]
            below = {name: own["free"] - own[name] for name in ways if name in own}
            told = [_points(below[name]) if name in below else NONE for name in ways]
            closed = [
                f"{1 - below[name] / below['compact']:.0%}".replace("%", " %")
                for name in ("best", "best compact")
            ]
            slots = "without" if "moved" in own else "with"
            about = f"{row['leaves']} of {row['leaf']}, {slots} slots"
            yield [row["mix"], about, f"{100 * own['free']:.2f} %", *told, *closed]

    head = ["jobs", "leaves", "free packing", *ways.values()]
    closed = ["best choice gains", "best of `compact` gains"]
    return _rows([*head, *closed], cells())


def choices(study: Plain) -> str:
    """Other choices of leaves in the churn, in points below free packing."""
    names = [*study["rows"][0]["below"]]

    def cells() -> Iterator[list[str]]:
        for name in names:
            own = [_between(row["below"][name]) for row in study["rows"]]
            yield [name, *own]

    where = [f"{row['mix']}, leaves of {row['leaf']}" for row in study["rows"]]
    return _rows(["choice", *where], cells())


def _between(below: Plain) -> str:
    """Points below, with the error that the interval leaves."""
    text = _points(below["mean"])
    if below["low"] is None:
        return text
    return f"{text} ± {_points((below['high'] - below['low']) / 2)}"


# Goals.


def goals(folder: Path = FOLDER) -> str:
    """Every goal: where it was measured, what was found, whether it holds."""
    links = _goal_of_gangs(read("kalos-links", folder), WORK, "links cost time")
    uneven = read("nasa-links", folder)
    told = {
        "No spine conflicts under affinity 1.0, at no more than one point of "
        "allocation below free packing, for leaves of 4 and 8 nodes": [
            *_goal_of_fills(read("fills", folder))
        ],
        "On `kalos` at load 0.9, gangs > 64 chips wait at least 30 % less than "
        "under best fit with the same queue, at the same utilization or more": [
            _goal_of_gangs(read("kalos", folder), USE, "links cost nothing"),
            links,
        ],
        "On the NASA log and the leaves of Lingjun, where links cost time, jobs wait "
        "less than under `kueue-tas`, with as many chips in use, without a spine "
        "conflict; *utilization* counts chips that wait for links, *effective "
        "utilization* does not": [_goal_of_uneven(uneven, use) for use in (WORK, USE)],
        "A saturated fill is within 1 % of the optimum": [
            *_goal_of_optimum(read("optimum", folder))
        ],
    }
    return "\n\n".join(
        f"{goal}:\n\n{_rows(['where', 'found', 'holds'], iter(rows))}"
        for goal, rows in told.items()
    )


def _goal_of_fills(study: Plain) -> Iterator[list[str]]:
    for row in study["rows"]:
        ours = row["policies"][OURS]
        below, conflicts = ours["below"], ours["conflicts"]["mean"]
        found = f"{conflicts:.3g} conflicts, {_between(below)} points below"
        holds = conflicts == 0 and below["mean"] <= ONE_POINT
        where = f"{row['way']} fill, {row['mix']}, leaves of {row['leaf']}"
        yield [where, found, YES if holds else NO]


def _goal_of_gangs(study: Plain, use: str, links: str) -> list[str]:
    ours, theirs = (value(study, LARGE, who) for who in (OURS, FREE))
    mine, used = (value(study, use, who) for who in (OURS, FREE))
    pairs = zip(study["large"][OURS], study["large"][FREE], strict=True)
    each = ", ".join(_change(one, other) for one, other in pairs)
    found = (
        f"{format_duration(ours)} against {format_duration(theirs)}, "
        f"{_change(ours, theirs)} % "
        f"(seed by seed {each} %); {TOLD[use]} {share(mine)} against {share(used)}"
    )
    less, as_many = 1 - ours / theirs, round(mine, 3) >= round(used, 3)
    holds = less >= THIRTY_PERCENT and as_many
    return [f"{len(study['seeds'])} seeds, {links}", found, YES if holds else NO]


def _goal_of_uneven(study: Plain, use: str) -> list[str]:
    ours, theirs = (value(study, WAIT, who) for who in (OURS, NEAR))
    mine, used = (value(study, use, who) for who in (OURS, NEAR))
    conflicts = value(study, "leaves.conflicts", OURS)
    found = (
        f"{format_duration(ours)} against {format_duration(theirs)}, "
        f"{_change(ours, theirs)} %; "
        f"{TOLD[use]} {share(mine)} against {share(used)}; {conflicts:.3g} conflicts"
    )
    holds = ours < theirs and round(mine, 3) >= round(used, 3) and conflicts == 0
    n_seeds = len(study["seeds"])
    seeds = f"{n_seeds} seed{'s' * (n_seeds > 1)}"
    return [f"{seeds}, by {TOLD[use]}", found, YES if holds else NO]


def _change(ours: float, theirs: float) -> str:
    return f"{100 * (ours / theirs - 1):+.0f}"


def _goal_of_optimum(study: Plain) -> Iterator[list[str]]:
    for row in study["rows"]:
        ratio = row["ratios"][OURS]["mean"]
        free = row["ratios"][study["free"]]["mean"]
        found = f"{100 * ratio:.1f} % of it; free packing {100 * free:.1f} %"
        where = f"{row['mix']}, {row['leaves']} leaves of {row['leaf']}"
        yield [where, found, YES if ratio >= 1 - ONE_PERCENT else NO]


def _points(value: float) -> str:
    return f"{100 * value:.2f}"
