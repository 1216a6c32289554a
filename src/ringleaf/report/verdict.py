"""The verdict in words, from the figures alone: also where the reference is worse."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ringleaf.report.contest import (
    RELEVANT,
    ComparisonOutcome,
    Contest,
    comparison_outcome,
    contest_of,
    has_interval,
)
from ringleaf.report.duration import format_duration
from ringleaf.report.losses import ALIKE, alike, other_policies, telling
from ringleaf.report.measures import (
    Better,
    Measure,
    MeasureTable,
    listed,
    tick,
    value_of,
)
from ringleaf.report.results import Results
from ringleaf.report.wait_verdict import first_wait_key, has_one_seed, in_a_sentence

TWO: Final = 2
"""Policies; with more of them the best baseline may be another one."""


class VerdictSentence(Struct, frozen=True):
    """A sentence or two of the verdict.

    Args:
        head: What it is about.
        text: What was found.
        standing: How the reference stands by it.
        about: What the measure means.
        has_interval: Whether the differences have intervals, so can be significant.

    """

    head: str
    text: str
    standing: ComparisonOutcome = ComparisonOutcome.EVEN
    about: str = ""
    has_interval: bool = False


def findings(results: Results) -> list[VerdictSentence]:
    """The verdict, the most telling first; then how significant it is.

    With one seed the sentences in short say that this is unknown, and no other does.
    """
    table = MeasureTable(results)
    others = other_policies(table)
    if results.reference not in results.policies or not others:
        return [*_alone(table), _significance(results)]
    short = in_short(table) or ["There is nothing to compare."]
    found = [
        *(VerdictSentence("In short", text) for text in short),
        *headlines(results),
        *(_tally(table, other) for other in others),
    ]
    return found if has_one_seed(results) else [*found, _significance(results)]


MAIN: Final = (
    "leaves.conflicts",
    "wait_s.by_size.>64.mean",
    "wait_s.all.mean",
    "use.effective_utilisation",
    "chips.fragmentation",
    "jobs.unstarted",
)
"""The measures that a verdict in a sentence is about."""
ONE_SEED: Final = "One seed: figures are those of one run, significance unknown."
NO_DIFFERENCE: Final = "no significant difference"
LESS_MORE: Final = {
    "leaves.conflicts": "fewer|more spine conflicts",
    "wait_s.by_size.>64.mean": "shorter|longer waits of gangs > 64 chips",
    "pending_s.by_size.>64.mean": "shorter|longer waits of all gangs > 64 chips",
    "wait_s.all.mean": "shorter|longer waits",
    "pending_s.all.mean": "shorter|longer waits of all jobs",
    "use.effective_utilisation": "less|more effective utilization",
    "chips.fragmentation": "fewer|more stranded chips",
    "jobs.unstarted": "fewer|more jobs that never start",
}
"""How a lower value of a main measure is called, and a higher one."""


def in_short(table: MeasureTable) -> list[str]:
    """How the reference stands against the rival, and against the best baselines.

    With one seed one of the sentences says that significance is unknown.
    """
    results = table.results
    first = in_a_sentence(table)
    keys = [key for key in MAIN if first is None or key != first_wait_key(table)]
    contests = [
        contest_of(table, table.compared(key), results.baseline) for key in keys
    ]
    known = [each for each in contests if each is not None and _counts(table, each)]
    best = [each for each in known if each.known[each.best] != each.known[each.rival]]
    others = [contest_of(table, each.measure.key, "") for each in best]
    head = results.baseline
    if len(results.policies) > TWO and not best:
        head += ", the best baseline by each measure"
    told = [
        first or "",
        _against(table, head, known),
        _against(table, "the best baseline", [each for each in others if each]),
    ]
    if first is None and any(told) and has_one_seed(results):
        told.append(ONE_SEED)
    return [text for text in told if text]


def _counts(table: MeasureTable, contest: Contest) -> bool:
    return contest.of_same_jobs and table.tells(contest.measure)


def _against(table: MeasureTable, head: str, contests: Sequence[Contest]) -> str:
    """How the reference stands against others, with the figures; empty of none."""
    if not contests:
        return ""
    one = has_one_seed(table.results)
    differs = [each for each in contests if each.standing is not ComparisonOutcome.EVEN]
    rival = table.results.baseline
    told = [(each.has_interval, _differs(each, rival)) for each in differs]
    sure = [words for has_interval, words in told if has_interval]
    seen = [words for has_interval, words in told if not has_interval]
    even = [each.measure.noun for each in contests if each not in differs]
    parts = []
    if sure:
        parts.append(f"significantly {listed(sure)}")
    if seen:
        how = "" if one else f", {ALIKE}"
        parts.append(f"{listed(seen)}{how}")
    if even:
        is_tie = one or not any(each.has_interval for each in contests)
        words = "about equal" if is_tie else NO_DIFFERENCE
        parts.append(f"{words} in {listed(even)}")
    return f"Against {head}{' (one seed)' if one else ''}: {'; '.join(parts)}."


def _differs(contest: Contest, rival: str) -> str:
    """A difference in words, with both values, and whose the other one is.

    >>> from ringleaf.report.measures import measure_of
    >>> known = {"a": 0.208}
    >>> measure = measure_of("leaves.conflicts")
    >>> better = ComparisonOutcome.BETTER
    >>> each = Contest(
    ...     measure, 0.0, known, "a", "a", "a", better, has_interval=True, tied=()
    ... )
    >>> _differs(each, "b")
    'fewer spine conflicts (0, not 0.208 with a)'
    """
    measure, other = contest.measure, contest.known[contest.rival]
    less, _bar, rest = LESS_MORE[measure.key].partition("|")
    more, _space, what = rest.partition(" ")
    word = less if contest.own < other else more
    whose = "" if contest.rival == rival else f" with {contest.rival}"
    values = f"{measure.written(contest.own)}, not {measure.written(other)}{whose}"
    return f"{word} {what} ({values})"


EVEN: Final = ComparisonOutcome.EVEN.value


def _word(measure: Measure, standing: ComparisonOutcome, *, neutral: bool) -> str:
    """How the reference stands: better or worse, or *neutral*, lower or higher."""
    if not neutral or standing is ComparisonOutcome.EVEN:
        return standing.value
    return side_of(measure, standing)


def side_of(measure: Measure, standing: ComparisonOutcome) -> str:
    """Whether the value of the reference is lower or higher.

    >>> from ringleaf.report.measures import measure_of
    >>> side_of(measure_of("wait_s.all.mean"), ComparisonOutcome.BETTER)
    'lower'
    >>> side_of(measure_of("use.effective_utilisation"), ComparisonOutcome.BETTER)
    'higher'
    """
    is_up = (measure.better is Better.UP) == (standing is ComparisonOutcome.BETTER)
    return "higher" if is_up else "lower"


def _alone(table: MeasureTable) -> list[VerdictSentence]:
    """The results of a run without a comparison."""
    return [
        VerdictSentence(
            f"{measure.title} under {policy}", f"{measure.written(value.mean)}."
        )
        for policy in table.results.policies
        for measure in telling(table)
        if (value := table.value(measure.key, policy)) is not None
    ]


HEADLINES: Final = (
    "leaves.conflicts",
    "use.effective_utilisation",
    "chips.ring_violations_per_1000_pods",
    "wait_s.by_size.>64.mean",
    "wait_s.all.mean",
)


def headlines(
    results: Results, keys: Sequence[str] = HEADLINES
) -> list[VerdictSentence]:
    """The reference against the best baseline, by the measures that tell most."""
    table = MeasureTable(results)
    told = {measure.key: measure for measure in telling(table)}
    compared = [table.compared(key) for key in keys]
    found = [_headline(table, told[key]) for key in compared if key in told]
    return [each for each in found if each is not None]


def _headline(table: MeasureTable, measure: Measure) -> VerdictSentence | None:
    found = contest_of(table, measure.key)
    if found is None:
        return None
    reference, written = table.results.reference, measure.written
    text = f"{reference} {written(found.own)}"
    for what, policy in found.beside:
        text += f"; {what} {policy}" if what else f"; {policy}"
        text += f" {written(found.known[policy])}"
        if gap := found.gap_to(policy):
            text += f" ({gap})"
    apart = table.difference(measure.key, found.rival)
    repeated = apart is not None and not found.has_interval and apart.n > 1
    alike = ", by the same with every seed" if repeated else ""
    how = _word(measure, found.standing, neutral=has_one_seed(table.results))
    how = f"significantly {how}" if found.has_interval else how
    if not found.of_same_jobs:
        text += ". No comparison: not over the same jobs."
    elif found.standing is ComparisonOutcome.EVEN:
        text += _unclear(table, measure, found.rival, found.tied)
    else:
        text += f". {how.capitalize()} than {found.rival}{alike}."
    return VerdictSentence(
        measure.title, text, found.standing, measure.about, found.has_interval
    )


def _unclear(
    table: MeasureTable, measure: Measure, other: str, tied: Sequence[str]
) -> str:
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
        better = results.reference if good else other
        told += f", though {better} is better with every seed"
    return f"{told}."


def _tally(table: MeasureTable, other: str) -> VerdictSentence:
    """How many measures speak for the reference, and how many against it."""
    words: dict[str, list[str]] = {}
    counts = dict.fromkeys(ComparisonOutcome, 0)
    one = has_one_seed(table.results)
    for measure in telling(table):
        standing = comparison_outcome(table, measure, other)
        if standing is not None:
            counts[standing] += 1
            word = _word(measure, standing, neutral=one)
            words.setdefault(word, []).append(measure.noun)
    parts = [
        f"{word} in {listed(words[word])}"
        for word in ("better", "worse", "lower", "higher")
        if word in words
    ]
    sure = any(has_interval(table, measure.key, other) for measure in telling(table))
    if even := words.get(EVEN):
        what = "no significant difference" if sure else "nearly a tie"
        parts.append(f"{what} in {listed(even)}")
    n_better, n_worse = (
        counts[ComparisonOutcome.BETTER],
        counts[ComparisonOutcome.WORSE],
    )
    standing = (
        ComparisonOutcome.BETTER
        if n_better > n_worse
        else ComparisonOutcome.WORSE
        if n_worse > n_better
        else ComparisonOutcome.EVEN
    )
    text = "; ".join(parts) or "nothing to compare"
    head = f"Against {other}"
    return VerdictSentence(
        head, f"{text[0].upper()}{text[1:]}.", standing, has_interval=sure
    )


def _significance(results: Results) -> VerdictSentence:
    """How significant differences are."""
    if has_one_seed(results):
        told = f"{ONE_SEED} Run several seeds before you decide anything."
        return VerdictSentence("Significance", told)
    seeds = {run.spec.seed for run in results.runs}
    if len(results.fixed) == len(results.policies):
        return VerdictSentence("Significance", alike(results))
    told = f" {alike(results)}" if results.fixed else ""
    return VerdictSentence(
        "Significance",
        f"Figures are means over {len(seeds)} seeds, every policy with the same jobs "
        f"at the same times. A difference is significant where its "
        f"{tick(results.confidence)} confidence interval, paired by seed, excludes 0, "
        f"and it is at least the smallest relevant one: {RELEVANT}.{told}",
    )


def summary(results: Results) -> str:
    """The run in a line: the window and what it was of."""
    spec, metrics = results.runs[0].spec, results.runs[0].metrics
    window = metrics.get("window", {})
    span = float(window.get("to_s", 0.0)) - float(window.get("from_s", 0.0))
    return (
        f"{spec.jobs:,} jobs of {spec.workload} on {spec.site} ({spec.chips:,} chips), "
        f"counted over {format_duration(span)}"
    )
