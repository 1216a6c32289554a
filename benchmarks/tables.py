"""Tables of docs/results.md, from the files of docs/results that a study wrote.

No figure of that page is typed: ``make docs`` calls these.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ringleaf.report.measures import duration, measure_of, share
from ringleaf.report.results import Estimate

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "results"
OURS, FREE = "ringleaf", "best-fit"
NONE: Final = "\N{EN DASH}"
YES, NO = "yes", "**no**"
LARGE: Final = "wait_s.by_size.>64.mean"
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

SLIGHT: Final = 0.005
"""A difference that is less than this share of the value tells nothing."""
ONE_POINT, ONE_PERCENT, THIRTY_PERCENT = 0.01, 0.01, 0.30
Plain = dict[str, Any]


def read(name: str, folder: Path = FOLDER) -> Plain:
    """What a study wrote."""
    found: Plain = msgspec.json.decode((folder / f"{name}.json").read_bytes())
    return found


def command(study: Plain) -> str:
    """The command of a study, as a block."""
    return f"```text\n$ {study['command']}\n```"


def _rows(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# Comparisons.


def compared(study: Plain) -> str:
    """Policies by measures; bold is beyond chance, seed by seed, from the first."""
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
    is_much = abs(apart.mean) > SLIGHT * abs(found["value"]["mean"])
    return f"**{text}**" if apart.is_clear and is_much else text


SHORT: Final = {
    LARGE: "wait time, gangs > 64 chips",
    "wait_s.all.mean": "wait time, all jobs",
    WORK: "effective utilization",
    "leaves.conflicts": "spine conflicts",
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


# Goals.


def goals(folder: Path = FOLDER) -> str:
    """Every goal: where it was measured, what was found, whether it holds."""
    links = _goal_of_gangs(read("kalos-links", folder), WORK, "links cost time")
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
        found = (
            f"{conflicts:.3g} conflicts, {_points(below['mean'])} points below "
            f"({_points(below['low'])} to {_points(below['high'])})"
        )
        holds = conflicts == 0 and below["mean"] <= ONE_POINT
        where = f"{row['way']} fill, {row['mix']}, leaves of {row['leaf']}"
        yield [where, found, YES if holds else NO]


def _goal_of_gangs(study: Plain, use: str, links: str) -> list[str]:
    ours, theirs = (value(study, LARGE, who) for who in (OURS, FREE))
    mine, used = (value(study, use, who) for who in (OURS, FREE))
    pairs = zip(study["large"][OURS], study["large"][FREE], strict=True)
    each = ", ".join(_change(one, other) for one, other in pairs)
    found = (
        f"{duration(ours)} against {duration(theirs)}, {_change(ours, theirs)} % "
        f"(seed by seed {each} %); {TOLD[use]} {share(mine)} against {share(used)}"
    )
    less, as_many = 1 - ours / theirs, round(mine, 3) >= round(used, 3)
    holds = less >= THIRTY_PERCENT and as_many
    return [f"{len(study['seeds'])} seeds, {links}", found, YES if holds else NO]


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
