"""The reference against the other policies by one measure: which is better, if any."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ringleaf.report.measures import Better, Measure, Table, duration, measure_of, share
from ringleaf.report.results import Estimate

SAME: Final = 0.005
"""Differences below this part of a value are called none, however sure they are."""

SAME_S: Final = 1.0
"""Differences of times below this, in seconds, are called none."""
SAME_SHARE: Final = 0.0005
"""Differences of shares below this are called none: a twentieth of a point."""


class Standing(StrEnum):
    """How the reference stands against another policy by one measure."""

    BETTER = "better"
    WORSE = "worse"
    EVEN = "no significant difference"


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
    if is_slight(measure, gap.mean, own.mean, other.mean):
        return Standing.EVEN
    if gap.low is not None and not gap.is_clear:
        return Standing.EVEN
    less = gap.mean > 0
    good = less if measure.better is Better.DOWN else not less
    return Standing.BETTER if good else Standing.WORSE


def is_slight(measure: Measure, gap: float, *values: float) -> bool:
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
        is_sure: Whether that has an interval, so that it can be significant.
        tied: The baselines with exactly the value of the reference.

    """

    measure: Measure
    own: float
    known: Mapping[str, float]
    rival: str
    best: str
    worst: str
    standing: Standing
    is_sure: bool
    tied: Sequence[str]

    @property
    def gap(self) -> str:
        """How far the reference is from the rival; empty where it is not.

        A share is told in points, anything else in parts of the rival's value.
        """
        other = self.known[self.rival]
        if self.measure.written is share:
            points = 100 * (self.own - other)
            return f"{points:+.1f} points" if abs(points) >= 0.05 else ""  # noqa: PLR2004
        return relative(self.own, other) if self.own and self.own != other else ""

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


def contest_of(table: Table, key: str, rival: str | None = None) -> Contest | None:
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
        standing=standing_of(table, measure, against) or Standing.EVEN,
        is_sure=is_sure(table, key, against),
        tied=[other for other in ranked if known[other] == own.mean],
    )
