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
OURS: Final = "ringleaf"
NONE: Final = "\N{EN DASH}"
YES, NO = "yes", "**no**"
LARGE: Final = "wait_s.by_size.>64.mean"
USE: Final = "use.utilisation"
WORK: Final = "use.effective_utilisation"
TOLD: Final = {
    USE: "chips in use",
    WORK: "chips in use less contention",
    "wait_s.all.mean": "waiting",
    LARGE: "waiting above 64 chips",
    "bounded_slowdown.all.mean": "slowdown",
    "leaves.conflicts": "spine conflicts",
    "leaves.at_risk_share_of_crossing": "gangs that ever shared a link",
    "chips.ring_violations_per_1000_pods": "pods across rings, of 1,000",
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
    difference = found["difference"]
    is_clear = difference is not None and msgspec.convert(difference, Estimate).is_clear
    return f"**{text}**" if is_clear else text


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


def difference(study: Plain, key: str, other: str) -> tuple[float, float, Plain]:
    """Ours, theirs, and the difference (theirs minus ours) with its interval."""
    known = {
        each["policy"]: each for each in study["measures"] if each["measure"] == key
    }
    ours, theirs = known[OURS]["value"]["mean"], known[other]["value"]["mean"]
    return ours, theirs, known[other]["difference"]


# Fills and the optimum.


def filled(study: Plain) -> str:
    """Every fill by policy: allocated, and spine conflicts."""
    policies = [*study["rows"][0]["policies"]]

    def cells() -> Iterator[list[str]]:
        for row in study["rows"]:
            own = [
                f"{100 * each['allocated']['mean']:.1f} / "
                f"{each['conflicts']['mean']:.3g}"
                for each in row["policies"].values()
            ]
            yield [row["way"], row["mix"], str(row["leaf"]), *own]

    return _rows(["fill", "jobs", "leaf", *(f"`{p}`" for p in policies)], cells())


def best(study: Plain) -> str:
    """Nodes that policies took, of what the optimum takes."""
    policies = [*study["rows"][0]["ratios"]]

    def cells() -> Iterator[list[str]]:
        for row in study["rows"]:
            own = [f"{100 * each['mean']:.1f}" for each in row["ratios"].values()]
            proven = f"{row['proven']} of {study['seeds']}"
            yield [row["mix"], str(row["leaf"]), *own, proven]

    return _rows(["jobs", "leaf", *(f"`{p}`" for p in policies), "proven"], cells())


# Goals.


def goals(folder: Path = FOLDER) -> str:
    """Every goal: where it was measured, what was found, whether it holds."""
    rows = [
        *_goal_of_fills(read("fills", folder)),
        *_goal_of_gangs(read("kalos-gangs", folder), USE, "links cost nothing"),
        *_goal_of_gangs(read("kalos-links", folder), WORK, "links cost time"),
        *_goal_of_optimum(read("optimum", folder)),
    ]
    return _rows(["goal", "where", "found", "holds"], iter(rows))


def _goal_of_fills(study: Plain) -> Iterator[list[str]]:
    goal = "no spine conflicts under 1.0, at most one point below free packing"
    for row in study["rows"]:
        ours = row["policies"][OURS]
        below, conflicts = ours["below"], ours["conflicts"]["mean"]
        found = (
            f"{conflicts:.3g} conflicts, {_points(below['mean'])} points below "
            f"({_points(below['low'])} to {_points(below['high'])})"
        )
        holds = conflicts == 0 and below["mean"] <= ONE_POINT
        where = f"{row['way']} fill, {row['mix']}, leaves of {row['leaf']}"
        yield [goal, where, found, YES if holds else NO]


def _goal_of_gangs(study: Plain, use: str, links: str) -> Iterator[list[str]]:
    goal = (
        "`kalos` at 0.9: gangs above 64 chips wait at least 30 % less than under "
        "best-fit, same use or better"
    )
    ours, theirs, apart = difference(study, LARGE, "best-fit")
    mine, used, _apart = difference(study, use, "best-fit")
    less = 1 - ours / theirs
    found = (
        f"{duration(ours)} against {duration(theirs)}, {100 * less:.0f} % less "
        f"(by {duration(apart['low'])} to {duration(apart['high'])}); "
        f"{TOLD[use]} {share(mine)} against {share(used)}"
    )
    holds = less >= THIRTY_PERCENT and round(mine, 3) >= round(used, 3)
    where = f"{len(study['seeds'])} seeds, {links}"
    yield [goal, where, found, YES if holds else NO]


def _goal_of_optimum(study: Plain) -> Iterator[list[str]]:
    goal = "a saturated fill within 1 % of the optimum"
    for row in study["rows"]:
        ratio = row["ratios"][OURS]["mean"]
        free = row["ratios"][study["free"]]["mean"]
        found = f"{100 * ratio:.1f} % of it; free packing {100 * free:.1f} %"
        where = f"{row['mix']}, {study['leaves']} leaves of {row['leaf']}"
        yield [goal, where, found, YES if ratio >= 1 - ONE_PERCENT else NO]


def _points(value: float) -> str:
    return f"{100 * value:.2f}"
