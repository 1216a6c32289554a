"""The verdict in words, from the figures alone: also where the reference is worse."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ringleaf.report.measures import (
    Better,
    Measure,
    Table,
    duration,
    listed,
    share,
    value_of,
)
from ringleaf.report.results import Estimate, Results

SAME: Final = 0.005
"""Differences below this part of a value are called none, however sure they are."""

FAR: Final = 0.1
"""Differences above this part of a value are told even if not significant."""

_TELLING: Final = (
    "leaves.conflicts",
    "leaves.at_risk_share_of_crossing",
    "chips.ring_violations_per_1000_pods",
    "superpods.split_blocks",
    "wait_s.by_size.>64.mean",
    "wait_s.all.mean",
    "wait_s.by_size.1.mean",
    "bounded_slowdown.all.mean",
    "use.utilisation",
    "use.effective_utilisation",
    "chips.fragmentation",
    "faults.chip_hours_lost_to_faults",
    "faults.recovery_s.mean",
    "jobs.unstarted",
)
"""The measures that a verdict is about."""


class Standing(StrEnum):
    """How the reference stands against another policy by one measure."""

    BETTER = "better"
    WORSE = "worse"
    EVEN = "no significant difference"


class Finding(Struct, frozen=True):
    """A sentence or two of the verdict.

    Args:
        head: What it is about.
        text: What was found.
        standing: How the reference stands by it.
        about: What the measure means.
        is_sure: Whether that standing is significant.

    """

    head: str
    text: str
    standing: Standing = Standing.EVEN
    about: str = ""
    is_sure: bool = False


def standing_of(table: Table, measure: Measure, policy: str) -> Standing | None:
    """How the reference stands against *policy*; None where one of them has no value.

    With several seeds only what is significant counts; with one, or where all seeds
    come to the same, what is seen.
    """
    own = table.value(measure.key, table.results.reference)
    other = table.value(measure.key, policy)
    if own is None or other is None or measure.better is Better.NEITHER:
        return None
    gap = table.difference(measure.key, policy) or Estimate(other.mean - own.mean)
    if abs(gap.mean) <= SAME * max(abs(own.mean), abs(other.mean)):
        return Standing.EVEN
    if gap.low is not None and not gap.is_clear:
        return Standing.EVEN
    less = gap.mean > 0
    good = less if measure.better is Better.DOWN else not less
    return Standing.BETTER if good else Standing.WORSE


def is_sure(table: Table, key: str, policy: str) -> bool:
    """Whether the difference of *policy* has an interval: it can be significant."""
    gap = table.difference(key, policy)
    return gap is not None and gap.low is not None


def relative(own: float, other: float) -> str:
    """How much more or less *own* is than *other*, in words.

    >>> relative(3.0, 4.0), relative(5.0, 4.0), relative(0.0, 4.0), relative(9.0, 2.0)
    ('25 % less', '25 % more', 'none of it', '4.5 times as much')
    """
    if not own:
        return "none of it"
    if not other:
        return "where there was none"
    ratio = own / other
    if ratio >= 2:  # noqa: PLR2004 - percentages beyond 100 are hard to read
        return f"{ratio:.1f} times as much"
    percent = round(100 * abs(ratio - 1), 1)
    written = f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}"  # noqa: PLR2004
    return f"{written} % {'less' if ratio < 1 else 'more'}"


def findings(results: Results) -> list[Finding]:
    """The verdict, the most telling first; then how significant it is."""
    table = Table(results)
    others = [p for p in results.policies if p != results.reference]
    if results.reference not in results.policies or not others:
        return [*_alone(table), _significance(results)]
    return [
        _in_short(table, others),
        *headlines(results),
        _worse(table, others),
        *(_tally(table, other) for other in others),
        _significance(results),
    ]


_SHORT: Final = (
    ("leaves.conflicts", "{} spine conflicts"),
    ("wait_s.by_size.>64.mean", "gangs > 64 chips wait {}"),
    ("use.utilisation", "{} utilization"),
    ("use.effective_utilisation", "{} effective utilization"),
)


def _in_short(table: Table, others: list[str]) -> Finding:
    """The reference beside the range of the baselines, in one sentence."""
    told = {measure.key: measure for measure in _telling(table)}
    parts = []
    for key, words in _SHORT:
        values = [table.value(key, other) for other in others]
        means = sorted(value.mean for value in values if value is not None)
        own = table.value(key, table.results.reference)
        if key in told and own is not None and means:
            written = told[key].written
            ends = dict.fromkeys([written(means[0]), written(means[-1])])
            range_ = " to ".join(ends)
            parts.append(f"{words.format(written(own.mean))} (baselines {range_})")
    text = "; ".join(parts) or "nothing to compare"
    worst = _worst(table, others)
    told_worst = f" At its worst: {'; '.join(worst)}." if worst else ""
    return Finding("In short", f"{table.results.reference}: {text}.{told_worst}")


def _worst(table: Table, others: list[str]) -> list[str]:
    """Where the reference is worst beside another, by the part of a value.

    Where that other has nothing of it no part tells how much that is, so that the worst
    of the rest is told as well.
    """
    found: list[tuple[float, str]] = []
    for measure in _telling(table):
        own = table.value(measure.key, table.results.reference)
        values = {other: table.value(measure.key, other) for other in others}
        known = {other: value.mean for other, value in values.items() if value}
        best = None if own is None else _far_ahead(measure, own, known, SAME)
        if own is None or best is None:
            continue
        far = abs(own.mean - known[best]) / max(abs(own.mean), abs(known[best]))
        is_even = standing_of(table, measure, best) is Standing.EVEN
        text = (
            f"{measure.noun} {measure.written(own.mean)}, {best} "
            f"{measure.written(known[best])}{' (not significant)' if is_even else ''}"
        )
        found.append((far, text))
    found.sort(key=lambda each: -each[0])
    n = 1 + sum(far >= 1 for far, _text in found[:1])
    return [text for _far, text in found[:n]]


def _alone(table: Table) -> list[Finding]:
    """What a run comes to that is compared with none."""
    return [
        Finding(f"{measure.title} under {policy}", f"{measure.written(value.mean)}.")
        for policy in table.results.policies
        for measure in _telling(table)
        if (value := table.value(measure.key, policy)) is not None
    ]


def _telling(table: Table) -> list[Measure]:
    known = {measure.key: measure for measure in table.measures}
    found = [known[key] for key in _TELLING if key in known]
    return [measure for measure in found if table.tells(measure)]


HEADLINES: Final = (
    "leaves.conflicts",
    "use.effective_utilisation",
    "chips.ring_violations_per_1000_pods",
    "wait_s.by_size.>64.mean",
    "wait_s.all.mean",
    "use.utilisation",
)


def headlines(results: Results, keys: Sequence[str] = HEADLINES) -> list[Finding]:
    """The reference against the best baseline, by the measures that tell most."""
    table = Table(results)
    others = [p for p in results.policies if p != results.reference]
    told = {measure.key: measure for measure in _telling(table)}
    found = []
    for key in keys:
        measure = told.get(key)
        if measure is not None and (one := _headline(table, measure, others)):
            found.append(one)
    return found


def _headline(table: Table, measure: Measure, others: list[str]) -> Finding | None:
    results = table.results
    own = table.value(measure.key, results.reference)
    values = {other: table.value(measure.key, other) for other in others}
    known = {other: value.mean for other, value in values.items() if value is not None}
    if own is None or not known:
        return None
    sign = -1 if measure.better is Better.UP else 1
    ranked = sorted(known, key=lambda other: (sign * known[other], other))
    best, last = ranked[0], ranked[-1]
    standing = standing_of(table, measure, best) or Standing.EVEN
    written = measure.written
    text = f"{results.reference} {written(own.mean)}; "
    text += f"best baseline {best} {written(known[best])}"
    if measure.written is share:
        points = 100 * (own.mean - known[best])
        text += f" ({points:+.1f} points)" if abs(points) >= 0.05 else ""  # noqa: PLR2004
    elif own.mean and own.mean != known[best]:
        text += f" ({results.reference}: {relative(own.mean, known[best])})"
    if last != best:
        text += f"; worst {last} {written(known[last])}"
    sure = is_sure(table, measure.key, best)
    how = "Significantly better" if sure else "Better"
    gap = table.difference(measure.key, best)
    alike = ", by the same with every seed" if gap and not sure and gap.n > 1 else ""
    tied = [other for other in ranked if known[other] == own.mean]
    text += {
        Standing.BETTER: f". {how}: {results.reference}{alike}.",
        Standing.WORSE: f". {how}: {best}{alike}.",
        Standing.EVEN: _unclear(table, measure, best, tied),
    }[standing]
    return Finding(measure.title, text, standing, measure.about, sure)


def _unclear(table: Table, measure: Measure, other: str, tied: Sequence[str]) -> str:
    """A tie, nearly one, or a difference that is not significant."""
    results = table.results
    values = [
        {
            run.spec.seed: value_of(run.metrics, measure.key)
            for run in results.of(policy)
        }
        for policy in (results.reference, other)
    ]
    gaps = [
        theirs - ours
        for seed, ours in values[0].items()
        if ours is not None and (theirs := values[1].get(seed)) is not None
    ]
    sign = -1 if measure.better is Better.UP else 1
    good, bad = sum(sign * g > 0 for g in gaps), sum(sign * g < 0 for g in gaps)
    if tied and not any(gaps):
        return f". A tie with {listed(tied)}."
    if len({*gaps}) <= 1:
        return f". Nearly a tie with {other}."
    told = f". The difference to {other} is not significant"
    if max(good, bad) == len(gaps) > 1:
        who = results.reference if good else other
        told += f", though {who} is better with every seed"
    return f"{told}."


def _worse(table: Table, others: list[str]) -> Finding:
    """Where the reference is worse than a baseline, significantly or not."""
    clear: list[str] = []
    seen: list[str] = []
    likely: list[str] = []
    for measure in table.measures:
        own = table.value(measure.key, table.results.reference)
        if own is None:
            continue
        values = {other: table.value(measure.key, other) for other in others}
        known = {other: value.mean for other, value in values.items() if value}
        head = f"{measure.noun} {measure.written(own.mean)}"
        better = {
            other: f"{other} {measure.written(mean)}"
            for other, mean in known.items()
            if standing_of(table, measure, other) is Standing.WORSE
        }
        sure = {other for other in better if is_sure(table, measure.key, other)}
        for found, whose in ((clear, sure), (seen, better.keys() - sure)):
            if whose:
                named = [text for other, text in better.items() if other in whose]
                found.append(f"{head} ({listed(named)})")
        if better:
            continue
        if measure in _telling(table) and (best := _far_ahead(measure, own, known)):
            likely.append(f"{head} ({best} {measure.written(known[best])})")
    n_seeds = len({run.spec.seed for run in table.results.runs})
    alike = "The same with every seed" if n_seeds > 1 else "In this run"
    told = f"Significantly: {'; '.join(clear)}." if clear else ""
    if seen:
        told += f"{' ' * bool(told)}{alike}: {'; '.join(seen)}."
    told = told or "By no measure significantly."
    if likely:
        told += (
            f" Not significantly, but by more than {FAR:.0%} of the mean: "
            f"{'; '.join(likely)}."
        )
    head = f"Where {table.results.reference} is worse"
    standing = Standing.WORSE if clear or seen else Standing.EVEN
    return Finding(head, told, standing, is_sure=bool(clear))


def _far_ahead(
    measure: Measure, own: Estimate, known: Mapping[str, float], part: float = FAR
) -> str | None:
    """Who is best, if that is better than the reference by *part* of the value."""
    if not known or measure.better is Better.NEITHER:
        return None
    sign = -1 if measure.better is Better.UP else 1
    best = min(known, key=lambda other: (sign * known[other], other))
    far = part * max(abs(own.mean), abs(known[best]))
    return best if sign * (own.mean - known[best]) > far else None


def _tally(table: Table, other: str) -> Finding:
    """How many measures speak for the reference, and how many against it."""
    words: dict[Standing, list[str]] = {each: [] for each in Standing}
    for measure in _telling(table):
        standing = standing_of(table, measure, other)
        if standing is not None:
            words[standing].append(measure.noun)
    parts = [
        f"{each.value} in {listed(nouns)}"
        for each, nouns in words.items()
        if nouns and each is not Standing.EVEN
    ]
    if even := words[Standing.EVEN]:
        parts.append(f"no significant difference in {listed(even)}")
    n_better, n_worse = len(words[Standing.BETTER]), len(words[Standing.WORSE])
    standing = (
        Standing.BETTER
        if n_better > n_worse
        else Standing.WORSE
        if n_worse > n_better
        else Standing.EVEN
    )
    text = "; ".join(parts) or "nothing to compare"
    sure = any(is_sure(table, measure.key, other) for measure in _telling(table))
    head = f"Against {other}"
    return Finding(head, f"{text[0].upper()}{text[1:]}.", standing, is_sure=sure)


def _significance(results: Results) -> Finding:
    """How significant differences are."""
    seeds = {run.spec.seed for run in results.runs}
    if len(seeds) <= 1:
        return Finding(
            "Significance",
            "There is one seed, so no difference is significant: figures are those of "
            "this run. Run several seeds before you decide anything.",
        )
    if len(results.fixed) == len(results.policies):
        return Finding("Significance", alike(results))
    told = f" {alike(results)}" if results.fixed else ""
    return Finding(
        "Significance",
        f"Figures are means over {len(seeds)} seeds, every policy with the same jobs "
        f"at the same times. A difference is significant where its "
        f"{results.confidence:.0%} confidence interval, paired by seed, excludes 0, "
        f"and it is more than {SAME:.1%} of the value.{told}",
    )


def alike(results: Results) -> str:
    """That the runs of some policies are the same for every seed; empty of none."""
    fixed = results.fixed
    if not fixed:
        return ""
    who = "every policy" if len(fixed) == len(results.policies) else listed(fixed)
    return (
        f"The same run for every seed: {who}. Nothing in it is random, so more seeds "
        "add nothing, and differences between such runs have no interval: they are "
        "those of these jobs."
    )


def summary(results: Results) -> str:
    """The run in a line: the window and what it was of."""
    spec, metrics = results.runs[0].spec, results.runs[0].metrics
    window = metrics.get("window", {})
    span = float(window.get("to_s", 0.0)) - float(window.get("from_s", 0.0))
    return (
        f"{spec.jobs:,} jobs of {spec.workload} on {spec.site} ({spec.chips:,} chips), "
        f"counted over {duration(span)}"
    )
