"""What a report is made of: plain values that go through JSON and back.

The commands that run trials fill them in. Pages and plots show nothing else.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct


class StudySpec(Struct, frozen=True):
    """What one run was of.

    Args:
        site: The cluster's name.
        nodes: Its nodes.
        chips: Its chips.
        leaves: Its leaf switches; 0 where none are known.
        superpods: Its SuperPoDs.
        workload: The workload's name.
        about: Where the workload comes from, and its licence.
        jobs: How many jobs it has.
        load: Offered load: what they ask for, by what the cluster has meanwhile.
        policy: The policy that placed them.
        title: What that policy does, in a sentence.
        order: The order of the queue; empty is as configured.
        seed: Of everything that is drawn.
        notes: What else is to be known, a line each: what was done to the workload to
            suit the cluster, faults, contention.

    """

    site: str
    nodes: int
    chips: int
    workload: str
    about: str
    jobs: int
    load: float
    policy: str
    seed: int
    leaves: int = 0
    superpods: int = 0
    title: str = ""
    order: str = ""
    notes: tuple[str, ...] = ()


class RunResult(Struct, frozen=True):
    """One run.

    Args:
        spec: What it was of.
        metrics: What ``simulator.metrics.Metrics.plain`` gives.
        series: What ``Metrics.rows`` gives; columns as ``metrics.SERIES`` names them.
        film: What ``simulator.film.Film.plain`` gives, if it was filmed.
        cost: What ``simulator.metrics.cost.TimedEngine.plain`` gives, if it was timed.

    """

    spec: StudySpec
    metrics: dict[str, Any]
    series: Sequence[Sequence[float]] = ()
    film: dict[str, Any] | None = None
    cost: dict[str, Any] | None = None


class Estimate(Struct, frozen=True):
    """A mean over seeds, and where the true one is likely to be.

    Args:
        mean: The mean.
        low: Where the confidence interval begins; None with a single seed, and where
            all seeds come to the same.
        high: Where it ends.
        n: Of how many seeds.

    """

    mean: float
    low: float | None = None
    high: float | None = None
    n: int = 1

    @property
    def is_clear(self) -> bool:
        """Whether it is above 0, or below, significantly."""
        if self.low is None or self.high is None:
            return False
        return self.low > 0 or self.high < 0


class Measured(Struct, frozen=True):
    """The value of one measure under one policy.

    Args:
        measure: Its key, as ``report.measures.value_of`` understands it.
        policy: Whose.
        value: The mean over seeds.
        difference: This policy minus the reference, paired by seed; None of the
            reference itself.

    """

    measure: str
    policy: str
    value: Estimate
    difference: Estimate | None = None


class ResourceBound(Struct, frozen=True):
    """What no scheduler can do better than.

    Args:
        measure: The key of the measure that it bounds.
        name: What it is called in tables.
        value: The bound, a mean over seeds.
        title: Why it holds, in a sentence.

    """

    measure: str
    name: str
    value: float
    title: str = ""


class Results(Struct, frozen=True):
    """Everything that a report shows.

    Args:
        runs: Every policy with every seed.
        comparison: Every policy and measure, over seeds.
        bounds: What limits them.
        reference: The policy that the others are compared with.
        title: The heading.
        confidence: Of the intervals.
        command: What to type to have it again.
        version: Of Ringleaf.
        warnings: Why the figures may mislead, a sentence each.

    """

    runs: Sequence[RunResult]
    comparison: Sequence[Measured] = ()
    bounds: Sequence[ResourceBound] = ()
    reference: str = "ringleaf"
    title: str = "Ringleaf: a comparison of schedulers"
    confidence: float = 0.95
    command: str = ""
    version: str = ""
    warnings: Sequence[str] = ()

    @property
    def policies(self) -> list[str]:
        """Every policy once, the reference first."""
        found = dict.fromkeys(run.spec.policy for run in self.runs)
        return sorted(found, key=lambda policy: policy != self.reference)

    @property
    def baseline(self) -> str:
        """The first of the other policies, as the scheduler in use; empty of none."""
        return next((p for p in self.policies if p != self.reference), "")

    def of(self, policy: str) -> list[RunResult]:
        """The runs of *policy*, by seed."""
        own = [run for run in self.runs if run.spec.policy == policy]
        return sorted(own, key=lambda run: run.spec.seed)

    @property
    def fixed(self) -> list[str]:
        """The policies whose runs are the same for every seed, of several seeds."""
        found = []
        for policy in self.policies:
            first, *others = self.of(policy)
            if others and all(run.metrics == first.metrics for run in others):
                found.append(policy)
        return found
