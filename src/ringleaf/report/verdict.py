"""The verdict in words, from the figures alone: also where the reference is worse."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ringleaf.report.contest import (
    SAME,
    Standing,
    contest_of,
    is_slight,
    is_sure,
    standing_of,
)
from ringleaf.report.measures import (
    Better,
    Measure,
    Table,
    duration,
    listed,
    number,
    share,
    value_of,
)
from ringleaf.report.results import Estimate, Results

FAR: Final = 0.1
"""Differences above this part of a value are told even if not significant."""
SIGNIFICANT: Final = "significant"
LIKELY: Final = f"not significant, but more than {FAR:.0%} of the mean"
TWO: Final = 2
"""Policies; with more of them the best baseline may be another one."""

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


def findings(results: Results) -> list[Finding]:
    """The verdict, the most telling first; then how significant it is."""
    table = Table(results)
    others = _others(table)
    if results.reference not in results.policies or not others:
        return [*_alone(table), _significance(results)]
    return [
        *_in_short(table),
        *headlines(results),
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


def _in_short(table: Table) -> list[Finding]:
    """How the reference stands against the rival, and against the best baselines."""
    results = table.results
    told = [_against(table, f"Against {results.baseline}", results.baseline)]
    if len(results.policies) > TWO:
        told.append(_against(table, "Against the best baseline by each measure", ""))
    if not any(told):
        return [Finding("In short", "There is nothing to compare.")]
    if not any(
        is_sure(table, key, policy) for key in MAIN for policy in _others(table)
    ):
        told.append("One seed: whether a difference is significant is unknown.")
    told.append(left_out(results))
    return [Finding("In short", text) for text in filter(None, told)]


def _others(table: Table) -> list[str]:
    results = table.results
    return [policy for policy in results.policies if policy != results.reference]


def _against(table: Table, head: str, rival: str) -> str:
    """How the reference stands by the main measures, in a sentence; empty of none."""
    nouns: dict[Standing, list[str]] = {each: [] for each in Standing}
    any_sure = False
    for key in MAIN:
        contest = contest_of(table, key, rival)
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
    return f"{head}, {table.results.reference} {'; '.join(parts)}." if parts else ""


def left_out(results: Results) -> str:
    """How many jobs never start, which wait times leave out; empty of none."""
    table = Table(results)
    found = {
        policy: value.mean
        for policy in results.policies
        if (value := table.value("jobs.unstarted", policy)) is not None and value.mean
    }
    if not found:
        return ""
    told = [f"{number(mean)} with {policy}" for policy, mean in found.items()]
    seeds = ", means over seeds" if len(results.of(results.reference)) > 1 else ""
    return (
        f"Wait times leave out jobs that never start: {listed(told)} "
        f"(of {results.runs[0].spec.jobs:,} jobs{seeds})."
    )


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


def _headline(table: Table, measure: Measure) -> Finding | None:
    found = contest_of(table, measure.key)
    if found is None:
        return None
    reference, written = table.results.reference, measure.written
    text = f"{reference} {written(found.own)}"
    for what, policy in found.beside:
        text += f"; {what} {policy}" if what else f"; {policy}"
        text += f" {written(found.known[policy])}"
        if policy == found.rival and found.gap:
            whose = "" if measure.written is share else f"{reference}: "
            text += f" ({whose}{found.gap})"
    gap = table.difference(measure.key, found.rival)
    repeated = gap is not None and not found.is_sure and gap.n > 1
    alike = ", by the same with every seed" if repeated else ""
    how = found.standing.value
    how = f"significantly {how}" if found.is_sure else how
    if found.standing is Standing.EVEN:
        text += _unclear(table, measure, found.rival, found.tied)
    else:
        text += f". {how.capitalize()} than {found.rival}{alike}."
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


class Loss(Struct, frozen=True):
    """A measure by which baselines are better than the reference.

    Args:
        measure: By which.
        own: What the reference comes to.
        better: What the better baselines come to.
        how: How sure that is, in words; empty with one seed.

    """

    measure: Measure
    own: float
    better: Mapping[str, float]
    how: str


def losses(results: Results) -> list[Loss]:
    """Where the reference is worse than a baseline, the significant ones first.

    What is not significant is in it if it is one of the telling measures, and the gap
    is a good part of the value.
    """
    table = Table(results)
    seeds = {run.spec.seed for run in results.runs}
    alike = "the same with every seed" if len(seeds) > 1 else ""
    found: dict[str, list[Loss]] = {SIGNIFICANT: [], alike: [], LIKELY: []}
    for measure in table.measures:
        own = table.value(measure.key, results.reference)
        if own is None:
            continue
        values = {other: table.value(measure.key, other) for other in _others(table)}
        known = {other: value.mean for other, value in values.items() if value}
        better = {
            other: mean
            for other, mean in known.items()
            if standing_of(table, measure, other) is Standing.WORSE
        }
        sure = {o: better[o] for o in better if is_sure(table, measure.key, o)}
        seen = {other: better[other] for other in better if other not in sure}
        best = _far_ahead(measure, own, known) if measure in _telling(table) else None
        likely = {best: known[best]} if best is not None and not better else {}
        for how, whose in ((SIGNIFICANT, sure), (alike, seen), (LIKELY, likely)):
            if whose:
                found[how].append(Loss(measure, own.mean, whose, how))
    return [each for own in found.values() for each in own]


def _far_ahead(
    measure: Measure, own: Estimate, known: Mapping[str, float]
) -> str | None:
    """The best baseline, if it is better than the reference by a good part."""
    if not known or measure.better is Better.NEITHER:
        return None
    sign = -1 if measure.better is Better.UP else 1
    best = min(known, key=lambda other: (sign * known[other], other))
    gap = sign * (own.mean - known[best])
    slight = is_slight(measure, gap, own.mean, known[best])
    is_far = gap > FAR * max(abs(own.mean), abs(known[best]))
    return best if is_far and not slight else None


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
