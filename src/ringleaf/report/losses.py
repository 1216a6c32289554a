"""Where the reference is worse than a baseline, and what cannot be compared."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ringleaf.report.contest import (
    ComparisonOutcome,
    comparison_outcome,
    has_interval,
    is_relevant,
)
from ringleaf.report.measures import Better, Measure, MeasureTable, listed, tick
from ringleaf.report.results import Estimate, Results

FAR: Final = 0.1
"""Differences above this part of a value are told even if not significant."""
SIGNIFICANT: Final = "significant"
LIKELY: Final = f"not significant, but more than {tick(FAR)} of the larger value"

_TELLING: Final = (
    "leaves.conflicts",
    "leaves.at_risk_share_of_crossing",
    "chips.ring_violations_per_1000_pods",
    "superpods.split_blocks",
    "wait_s.by_size.>64.mean",
    "pending_s.by_size.>64.mean",
    "wait_s.all.mean",
    "pending_s.all.mean",
    "wait_s.by_size.1.mean",
    "bounded_slowdown.all.mean",
    "use.effective_utilisation",
    "chips.fragmentation",
    "faults.chip_hours_lost_to_faults",
    "faults.recovery_s.mean",
    "jobs.unstarted",
)
"""The measures that a verdict is about."""
ALIKE: Final = "the same with every seed"


def other_policies(table: MeasureTable) -> list[str]:
    """Every policy but the reference."""
    results = table.results
    return [policy for policy in results.policies if policy != results.reference]


def telling(table: MeasureTable) -> list[Measure]:
    """The measures that tell most, as far as the runs have them."""
    known = {measure.key: measure for measure in table.measures}
    found = [known[key] for key in _TELLING if key in known]
    return [measure for measure in found if table.tells(measure)]


def alike(results: Results) -> str:
    """A sentence about policies whose runs are the same for every seed, if any."""
    fixed = results.fixed
    if not fixed:
        return ""
    names = "every policy" if len(fixed) == len(results.policies) else listed(fixed)
    return (
        f"The same run for every seed: {names}. Nothing in it is random, so more seeds "
        "add nothing, and differences between such runs have no interval: they are "
        "those of these jobs."
    )


class Uncompared(Struct, frozen=True):
    """A measure that leaves out jobs that never start, so that it is no comparison.

    Args:
        measure: By which; lower is better.
        own: What the reference comes to, over the jobs that start under it.
        values: What baselines come to, each over the jobs that start under it.

    """

    measure: Measure
    own: float
    values: Mapping[str, float]

    @property
    def lower(self) -> list[str]:
        """The baselines that point to a worse reference."""
        return [
            policy
            for policy, value in self.values.items()
            if value < self.own
            and is_relevant(self.measure, self.own - value, self.own, value)
        ]


def not_compared(table: MeasureTable) -> list[Uncompared]:
    """Measures that are not over the same jobs, those with lower baselines first.

    Where the same measure of all jobs is compared, it is none of them.
    """
    found = []
    for measure in table.measures:
        own = table.value(measure.key, table.results.reference)
        if own is None or table.compared(measure.key) != measure.key:
            continue
        values = {
            other: value.mean
            for other in other_policies(table)
            if not table.of_same_jobs(measure.key, other)
            and (value := table.value(measure.key, other)) is not None
        }
        if values and table.tells(measure):
            found.append(Uncompared(measure, own.mean, values))
    return sorted(found, key=lambda each: not each.lower)


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
    table = MeasureTable(results)
    seeds = {run.spec.seed for run in results.runs}
    alike = ALIKE if len(seeds) > 1 else ""
    found: dict[str, list[Loss]] = {SIGNIFICANT: [], alike: [], LIKELY: []}
    for measure in table.measures:
        own = table.value(measure.key, results.reference)
        if own is None:
            continue
        values = {
            other: table.value(measure.key, other) for other in other_policies(table)
        }
        known = {other: value.mean for other, value in values.items() if value}
        better = {
            other: mean
            for other, mean in known.items()
            if comparison_outcome(table, measure, other) is ComparisonOutcome.WORSE
        }
        sure = {o: better[o] for o in better if has_interval(table, measure.key, o)}
        seen = {other: better[other] for other in better if other not in sure}
        same = {o: known[o] for o in known if table.of_same_jobs(measure.key, o)}
        best = _far_ahead(measure, own, same) if measure in telling(table) else None
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
    is_far = gap > FAR * max(abs(own.mean), abs(known[best]))
    return best if is_far and is_relevant(measure, gap, own.mean, known[best]) else None
