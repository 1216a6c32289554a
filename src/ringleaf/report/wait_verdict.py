"""Wait times in sentences: how long jobs wait, and which never start."""

from collections.abc import Iterator
from typing import Final

from ringleaf.report.contest import (
    ComparisonOutcome,
    comparison_outcome,
    has_interval,
    relative,
)
from ringleaf.report.duration import format_duration
from ringleaf.report.losses import ALIKE, SIGNIFICANT, not_compared, other_policies
from ringleaf.report.measures import Measure, MeasureTable, listed, measure_of
from ringleaf.report.results import Results
from ringleaf.report.unstarted import unstarted_words

CUT: Final = "cut to fit"
"""The end of the note on jobs that are larger than the cluster."""


UNKNOWN: Final = " in this run; one seed, significance unknown"


def has_one_seed(results: Results) -> bool:
    """Whether there is a single seed, so that nothing is known of significance."""
    return len({run.spec.seed for run in results.runs}) <= 1


def certainty(table: MeasureTable, measure: Measure, policy: str) -> str:
    """How sure the difference of *policy* to the reference is, with several seeds."""
    gap = table.difference(measure.key, policy)
    if gap is not None and gap.n > 1 and gap.low is None:
        return ALIKE
    is_even = comparison_outcome(table, measure, policy) in (
        None,
        ComparisonOutcome.EVEN,
    )
    is_clear = has_interval(table, measure.key, policy) and not is_even
    return SIGNIFICANT if is_clear else f"not {SIGNIFICANT}"


def notes_on(results: Results) -> list[str]:
    """What was done to jobs that are larger than the cluster, a sentence each."""
    return [f"{note}." for note in results.runs[0].spec.notes if note.endswith(CUT)]


POINTING: Final = ("wait_s.all.p95", "jct_s.all.mean", "bounded_slowdown.all.mean")
"""Measures that are not compared, and of which a sentence has the values."""


WAITING: Final = {
    "wait_s.by_size.>64.mean": "Gangs > 64 chips",
    "wait_s.all.mean": "Jobs",
}
"""The jobs whose wait time comes first; if there are none, the next."""


def _waits(table: MeasureTable, key: str) -> dict[str, float]:
    """Policy -> the wait time by *key*, of those that have one."""
    return {
        policy: value.mean
        for policy in table.results.policies
        if (value := table.value(table.compared(key), policy)) is not None
    }


def first_wait_key(table: MeasureTable) -> str:
    """The wait time that comes first; empty of none."""
    reference = table.results.reference
    known = ((key, _waits(table, key)) for key in WAITING)
    return next((k for k, own in known if reference in own and len(own) > 1), "")


def in_a_sentence(table: MeasureTable) -> str | None:
    """The wait time of the reference, of the rival, and of the best baseline."""
    results, key = table.results, first_wait_key(table)
    if not key:
        return None
    waits = _waits(table, key)
    own = waits.pop(results.reference)
    best = min(waits, key=lambda policy: (waits[policy], policy))
    measure, one = measure_of(table.compared(key)), UNKNOWN
    told = f"{WAITING[key]} wait {format_duration(own)} with {results.reference}"
    named = [p for p in dict.fromkeys((results.baseline, best)) if p in waits]
    for policy in named:
        is_best = policy == best and len(waits) > 1
        told += " and " if policy == named[-1] else ", "
        told += f"{format_duration(waits[policy])} with {policy}"
        told += ", the best baseline" if is_best else ""
        gap = "the same" if waits[policy] == own else relative(waits[policy], own)
        if has_one_seed(results):
            told += f" ({gap}{one})"
            one = ""
        elif waits[policy] == own:
            told += f" ({gap})"
        else:
            told += f" ({gap}, {certainty(table, measure, policy)})"
    return f"{told}."


def left_out(results: Results) -> str:
    """Which jobs never start, and how wait times count them; empty of none."""
    told = [
        f"{words} never {'starts' if words.split()[1] == 'job' else 'start'} with "
        f"{policy}"
        for policy, words in unstarted_of(results).items()
    ]
    if not told:
        return ""
    table = MeasureTable(results)
    seeds = ", means over seeds" if len(results.of(results.reference)) > 1 else ""
    left = f"{listed(told)}, of {results.runs[0].spec.jobs:,} jobs{seeds}."
    return " ".join((left, how_counted(table), *_pointing(table), *notes_on(results)))


def unstarted_of(results: Results) -> dict[str, str]:
    """Policy -> the jobs that never start under it in words, where there are some."""
    return {
        policy: unstarted_words([run.metrics for run in results.of(policy)])
        for policy in MeasureTable(results).unstarted
    }


def how_counted(table: MeasureTable) -> str:
    """How wait times count jobs that never start."""
    key = "wait_s.all.mean"
    counted = (
        "Wait times of all jobs count them as pending until the last job ends under "
        "any policy; other wait times"
        if table.compared(key) != key
        else "Wait times"
    )
    own = table.results.reference in table.unstarted
    told_of = ["other policies"] if own else [*table.unstarted]
    return (
        f"{counted}, completion time and slowdown leave them out, and are not compared "
        f"with {listed(told_of)}."
    )


def _pointing(table: MeasureTable) -> Iterator[str]:
    """The values of the reference and a baseline by measures that are not compared."""
    found = [each for each in not_compared(table) if each.measure.key in POINTING]
    others = {other for each in found for other in each.values}
    named = [
        p for p in (table.results.baseline, *other_policies(table)) if p in others
    ][:1]
    for other in named:
        told = [
            f"{each.measure.noun} {each.measure.written(each.own)} against "
            f"{each.measure.written(each.values[other])}"
            for each in found
            if other in each.values
        ]
        yield (
            f"Each over the jobs that start under it, {table.results.reference} "
            f"against {other}: {', '.join(told)}."
        )
