"""What a shadow has found so far: counts for ever, the last differences in full.

A finding is one job. It is written as one line of JSON to the shadow's log, and all of
them together are what the shadow answers on ``/shadow``; a report is made of either.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from ringleaf.explain.match import AGREES, Agreement
from ringleaf.model.placement import Placement

MOST: Final = 10_000
"""Differences that are kept in full."""


class Place(Struct, frozen=True, omit_defaults=True):
    """One pod: its node, and its chips where they are known."""

    node: str
    chips: tuple[int, ...] = ()
    pod: str = ""


class Finding(Struct, frozen=True, omit_defaults=True):
    """What was found of one job.

    Args:
        at: Seconds since 1970.
        job: ``namespace/name`` of its PodGroup, or ``pod namespace/name``.
        verdict: How the two placements compare.
        wanted: What the job asks, in words.
        rule: The rule that makes the difference.
        why: How it makes it, in words.
        theirs: Where its pods are.
        ours: Where they would be; nowhere if the job would wait.
        meanwhile: Other jobs that came or went between its first pod and its last.
        aside: Of those, the ones that were left out of the comparison.

    """

    at: float
    job: str
    verdict: Agreement
    wanted: str = ""
    rule: str = ""
    why: str = ""
    theirs: tuple[Place, ...] = ()
    ours: tuple[Place, ...] = ()
    meanwhile: int = 0
    aside: tuple[str, ...] = ()


class Count(Struct, frozen=True):
    """How many jobs one rule parts."""

    verdict: Agreement
    rule: str
    jobs: int


class ShadowSummary(Struct, frozen=True):
    """All that was found.

    Args:
        since: When the shadow began, in seconds since 1970.
        shadowed: The scheduler names that it looks at.
        jobs: Jobs that were judged, once each.
        agreement: The share of them on which both agree; None without any.
        verdicts: Jobs by verdict; those that wait there are those that still do.
        rules: Differences by rule, most first.
        differences: The last ones in full, oldest first.
        waiting: Jobs that would start here, and wait there.

    """

    since: float
    shadowed: tuple[str, ...]
    jobs: int
    agreement: float | None
    verdicts: Mapping[Agreement, int]
    rules: tuple[Count, ...]
    differences: tuple[Finding, ...] = ()
    waiting: tuple[Finding, ...] = field(default=())


class ShadowResults:
    """What was found, as it comes in."""

    def __init__(self, since: float = 0.0, shadowed: Iterable[str] = ()) -> None:
        self.since, self.shadowed = since, tuple(shadowed)
        self.verdicts: Counter[Agreement] = Counter()
        self.rules: Counter[tuple[Agreement, str]] = Counter()
        self.differences: deque[Finding] = deque(maxlen=MOST)
        self.waiting: dict[str, Finding] = {}

    def add(self, finding: Finding) -> None:
        """A job was judged, and waits no more."""
        self.waiting.pop(finding.job, None)
        self.verdicts[finding.verdict] += 1
        if finding.verdict not in AGREES:
            self.rules[finding.verdict, finding.rule] += 1
            self.differences.append(finding)

    def wait(self, finding: Finding) -> None:
        """A job would start here, and waits there."""
        self.waiting[finding.job] = finding

    def forget(self, job: str) -> None:
        """A job waits no more, and is not counted: its pods are of another job."""
        self.waiting.pop(job, None)

    def give_up(self, job: str) -> Finding | None:
        """A job is gone that was never bound: it waited there to its end."""
        found = self.waiting.pop(job, None)
        if found is not None:
            self.add(found)
        return found

    def summary(self) -> ShadowSummary:
        """All of it."""
        jobs = self.verdicts.total()
        agreed = sum(self.verdicts[match] for match in AGREES)
        verdicts = {match: self.verdicts[match] for match in Agreement}
        verdicts[Agreement.WAITS_THERE] += len(self.waiting)
        ordered = sorted(self.rules.items(), key=lambda item: (-item[1], item[0]))
        return ShadowSummary(
            since=self.since,
            shadowed=self.shadowed,
            jobs=jobs,
            agreement=agreed / jobs if jobs else None,
            verdicts=verdicts,
            rules=tuple(Count(*which, jobs=n) for which, n in ordered),
            differences=tuple(self.differences),
            waiting=tuple(self.waiting.values()),
        )


def places(
    placements: Iterable[Placement], pods: Mapping[int, str] | None = None
) -> tuple[Place, ...]:
    """Placements as a finding tells them."""
    named = pods or {}
    return tuple(
        Place(each.node, each.chips, named.get(each.replica, "")) for each in placements
    )
