"""The reference against the other policies by one measure: which is better, if any."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ringleaf.report.duration import format_duration
from ringleaf.report.measures import Better, Measure, MeasureTable, measure_of, share
from ringleaf.report.results import Estimate

LEAST_SHARE: Final = 0.005
"""The smallest relevant difference of shares: half a percentage point."""
LEAST_PART: Final = 0.005
"""The smallest relevant difference of other measures, as a part of the larger value."""
LEAST_S: Final = 1.0
"""Times must differ by at least this many seconds, too."""
RELEVANT: Final = (
    "half a percentage point for shares; 0.5 % of the larger value for times, and at "
    "least a second; 0.5 % of the larger value for all other measures"
)
"""The smallest relevant differences, in words."""


class ComparisonOutcome(StrEnum):
    """How the reference stands against another policy by one measure."""

    BETTER = "better"
    WORSE = "worse"
    EVEN = "no significant difference"


def comparison_outcome(
    table: MeasureTable, measure: Measure, policy: str
) -> ComparisonOutcome | None:
    """How the reference stands against *policy*; None where that is no comparison.

    One of them has no value, or they are not over the same jobs.

    With several seeds only what is significant counts; with one, or where all seeds
    come to the same, what is seen.
    """
    own = table.value(measure.key, table.results.reference)
    other = table.value(measure.key, policy)
    if own is None or other is None or measure.better is Better.NEITHER:
        return None
    if not table.of_same_jobs(measure.key, policy):
        return None
    gap = table.difference(measure.key, policy) or Estimate(other.mean - own.mean)
    values = own.mean, other.mean
    counts = (
        is_significant(measure, gap, *values)
        if gap.low is not None
        else is_relevant(measure, gap.mean, *values)
    )
    if not counts:
        return ComparisonOutcome.EVEN
    less = gap.mean > 0
    good = less if measure.better is Better.DOWN else not less
    return ComparisonOutcome.BETTER if good else ComparisonOutcome.WORSE


def is_relevant(measure: Measure, gap: float, *values: float) -> bool:
    """Whether a difference of *values* is large enough to matter, see `RELEVANT`."""
    if measure.written is share:
        return abs(gap) >= LEAST_SHARE
    least = LEAST_S if measure.written is format_duration else 0.0
    return gap != 0 and abs(gap) >= max(least, LEAST_PART * max(map(abs, values)))


def is_significant(measure: Measure, gap: Estimate, *values: float) -> bool:
    """Whether a difference of *values* is significant.

    Its confidence interval excludes 0, and it is at least the smallest relevant one.
    docs/compare.md says so, too.
    """
    return gap.is_clear and is_relevant(measure, gap.mean, *values)


def has_interval(table: MeasureTable, key: str, policy: str) -> bool:
    """Whether the difference of *policy* has an interval: it can be significant."""
    gap = table.difference(key, policy)
    return gap is not None and gap.low is not None


def relative(own: float, other: float) -> str:
    """How much more or less *own* is than *other*, in words.

    >>> relative(3.0, 4.0), relative(5.0, 4.0), relative(0.0, 4.0), relative(9.0, 2.0)
    ('25 % less', '25 % more', 'none of it', '4.5 times as much')
    >>> relative(1.0, 1.0001)
    'nearly the same'
    """
    if not own:
        return "none of it"
    if not other:
        return "where there was none"
    ratio = own / other
    if ratio >= 2:  # noqa: PLR2004 - percentages beyond 100 are hard to read
        return f"{ratio:.1f} times as much"
    percent = round(100 * abs(ratio - 1), 1)
    if not percent:
        return "nearly the same"
    written = f"{percent:.0f}" if percent >= 10 else f"{percent:.1f}"  # noqa: PLR2004
    return f"{written} % {'less' if ratio < 1 else 'more'}"


class Contest(Struct, frozen=True):
    """The reference against the baselines by one measure.

    Args:
        measure: By which.
        own: What the reference comes to.
        known: What baselines come to.
        rival: The baseline that the reference is compared with.
        best: The best baseline.
        worst: The worst one.
        standing: How the reference stands against the rival.
        has_interval: Whether that has an interval, so that it can be significant.
        tied: The baselines with exactly the value of the reference.
        of_same_jobs: Whether the reference and the rival are over the same jobs.

    """

    measure: Measure
    own: float
    known: Mapping[str, float]
    rival: str
    best: str
    worst: str
    standing: ComparisonOutcome
    has_interval: bool
    tied: Sequence[str]
    of_same_jobs: bool = True

    def gap_to(self, policy: str) -> str:
        """How far *policy* is from the reference; empty where it is not.

        The rival and the best baseline are described.

        A share is given in points, any other figure in parts of the reference's value.
        """
        if policy not in (self.rival, self.best):
            return ""
        other = self.known[policy]
        if self.measure.written is share:
            points = 100 * (other - self.own)
            return f"{points:+.1f} points" if abs(points) >= 0.05 else ""  # noqa: PLR2004
        return relative(other, self.own) if self.own and self.own != other else ""

    @property
    def beside(self) -> list[tuple[str, str]]:
        """The baselines to name, each with what it is: the rival, the best, the worst.

        The best and the worst are named where they have another value.
        """
        found = [("", self.rival)]
        value = self.known[self.rival]
        if self.known[self.best] != value:
            found.append(("best baseline", self.best))
        if self.known[self.worst] not in (value, self.known[self.best]):
            found.append(("worst", self.worst))
        return found


def contest_of(
    table: MeasureTable, key: str, rival: str | None = None
) -> Contest | None:
    """The contest by *key*; None where the reference or all baselines have no value.

    Args:
        table: All values.
        key: The measure.
        rival: The baseline to compare with; by default the one of the results. Where
            it has no value, or is no baseline, the best one.

    """
    reference = table.results.reference
    own = table.value(key, reference)
    values = {p: table.value(key, p) for p in table.results.policies if p != reference}
    known = {other: value.mean for other, value in values.items() if value is not None}
    if own is None or not known:
        return None
    measure = measure_of(key)
    sign = -1 if measure.better is Better.UP else 1
    ranked = sorted(known, key=lambda other: (sign * known[other], other))
    wanted = table.results.baseline if rival is None else rival
    against = wanted if wanted in known else ranked[0]
    return Contest(
        measure=measure,
        own=own.mean,
        known=known,
        rival=against,
        best=ranked[0],
        worst=ranked[-1],
        standing=comparison_outcome(table, measure, against) or ComparisonOutcome.EVEN,
        has_interval=has_interval(table, key, against),
        tied=[other for other in ranked if known[other] == own.mean],
        of_same_jobs=table.of_same_jobs(key, against),
    )
