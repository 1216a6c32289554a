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
    measure_of,
    share,
    value_of,
)
from ringleaf.report.results import Estimate, Results

SAME: Final = 0.005
"""Differences below this part of a value are called none, however sure they are."""

SAME_S: Final = 1.0
"""Differences of times below this, in seconds, are called none."""
SAME_SHARE: Final = 0.0005
"""Differences of shares below this are called none: a twentieth of a point."""

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
    if _is_slight(measure, gap.mean, own.mean, other.mean):
        return Standing.EVEN
    if gap.low is not None and not gap.is_clear:
        return Standing.EVEN
    less = gap.mean > 0
    good = less if measure.better is Better.DOWN else not less
    return Standing.BETTER if good else Standing.WORSE


def _is_slight(measure: Measure, gap: float, *values: float) -> bool:
    """Whether a difference is called none: small beside the value, or in itself."""
    least = {duration: SAME_S, share: SAME_SHARE}.get(measure.written, 0.0)
    return abs(gap) < least or abs(gap) <= SAME * max(map(abs, values))


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
        _in_short(table),
        *headlines(results),
        _worse(table, others),
        *(_tally(table, other) for other in others),
        _significance(results),
    ]


MAIN: Final = (
    "leaves.conflicts",
    "wait_s.by_size.>64.mean",
    "wait_s.all.mean",
    "use.effective_utilisation",
    "use.utilisation",
    "chips.fragmentation",
)
"""The measures that a verdict in a sentence is about."""


def _in_short(table: Table) -> Finding:
    """How the reference stands against the best baselines, in one sentence or two."""
    nouns: dict[Standing, list[str]] = {each: [] for each in Standing}
    any_sure = False
    for key in MAIN:
        contest = contest_of(table, key)
        if contest is not None and table.tells(contest.measure):
            nouns[contest.standing].append(contest.measure.noun)
            any_sure |= contest.is_sure
    words = (
        ("is better in", nouns[Standing.BETTER]),
        (
            "does not differ significantly in" if any_sure else "ties in",
            nouns[Standing.EVEN],
        ),
        ("is worse in", nouns[Standing.WORSE]),
    )
    parts = [f"{verb} {listed(own)}" for verb, own in words if own]
    if not parts:
        return Finding("In short", "There is nothing to compare.")
    reference = table.results.reference
    text = f"Against the best baseline by each measure, {reference} {'; '.join(parts)}."
    if not any_sure:
        text += " None of this is significant: there are no intervals."
    return Finding("In short", text)


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
    told = {measure.key: measure for measure in _telling(table)}
    found = [_headline(table, told[key]) for key in keys if key in told]
    return [each for each in found if each is not None]


class Contest(Struct, frozen=True):
    """The reference against the baselines by one measure.

    Args:
        measure: By which.
        own: What the reference comes to.
        known: What baselines come to.
        best: The best baseline.
        worst: The worst one.
        standing: How the reference stands against the best.
        is_sure: Whether that has an interval, so that it can be significant.
        tied: The baselines with exactly the value of the reference.

    """

    measure: Measure
    own: float
    known: Mapping[str, float]
    best: str
    worst: str
    standing: Standing
    is_sure: bool
    tied: Sequence[str]

    @property
    def gap(self) -> str:
        """How far the reference is from the best baseline; empty where it is not.

        A share is told in points, anything else in parts of the baseline's value.
        """
        best = self.known[self.best]
        if self.measure.written is share:
            points = 100 * (self.own - best)
            return f"{points:+.1f} points" if abs(points) >= 0.05 else ""  # noqa: PLR2004
        return relative(self.own, best) if self.own and self.own != best else ""


def contest_of(table: Table, key: str) -> Contest | None:
    """The contest by *key*; None where the reference or all baselines have no value."""
    reference = table.results.reference
    own = table.value(key, reference)
    values = {p: table.value(key, p) for p in table.results.policies if p != reference}
    known = {other: value.mean for other, value in values.items() if value is not None}
    if own is None or not known:
        return None
    measure = measure_of(key)
    sign = -1 if measure.better is Better.UP else 1
    ranked = sorted(known, key=lambda other: (sign * known[other], other))
    best, worst = ranked[0], ranked[-1]
    standing = standing_of(table, measure, best) or Standing.EVEN
    tied = [other for other in ranked if known[other] == own.mean]
    sure = is_sure(table, key, best)
    return Contest(measure, own.mean, known, best, worst, standing, sure, tied)


def _headline(table: Table, measure: Measure) -> Finding | None:
    found = contest_of(table, measure.key)
    if found is None:
        return None
    reference, written = table.results.reference, measure.written
    text = f"{reference} {written(found.own)}; "
    text += f"best baseline {found.best} {written(found.known[found.best])}"
    if found.gap:
        whose = "" if measure.written is share else f"{reference}: "
        text += f" ({whose}{found.gap})"
    if found.worst != found.best:
        text += f"; worst {found.worst} {written(found.known[found.worst])}"
    how = "Significantly better" if found.is_sure else "Better"
    gap = table.difference(measure.key, found.best)
    repeated = gap is not None and not found.is_sure and gap.n > 1
    alike = ", by the same with every seed" if repeated else ""
    text += {
        Standing.BETTER: f". {how}: {reference}{alike}.",
        Standing.WORSE: f". {how}: {found.best}{alike}.",
        Standing.EVEN: _unclear(table, measure, found.best, found.tied),
    }[found.standing]
    return Finding(measure.title, text, found.standing, measure.about, found.is_sure)


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
    measure: Measure, own: Estimate, known: Mapping[str, float]
) -> str | None:
    """The best baseline, if it is better than the reference by a good part."""
    if not known or measure.better is Better.NEITHER:
        return None
    sign = -1 if measure.better is Better.UP else 1
    best = min(known, key=lambda other: (sign * known[other], other))
    gap = sign * (own.mean - known[best])
    is_slight = _is_slight(measure, gap, own.mean, known[best])
    is_far = gap > FAR * max(abs(own.mean), abs(known[best]))
    return best if is_far and not is_slight else None


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
