"""Policies on the same arrivals: what each comes to, and how they differ.

Every policy plays every seed. Runs that were played before and are kept in a folder are
not played again, so that a comparison that was interrupted goes on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from ringleaf.study.figures import Mean, mean_of, paired
from ringleaf.study.spec import Outcome, Spec, run

Plain = dict[str, Any]
Crew = Callable[
    [Callable[[Spec], Outcome], Sequence[Spec]], Iterator[tuple[int, Outcome]]
]
"""Who plays the runs."""

LARGE: Final = ("65-256", ">256")
"""Sizes of jobs of more than 64 chips."""


class Measure(Struct, frozen=True):
    """One figure of a run.

    Args:
        key: Its name in files.
        title: Its name for people.
        unit: What it is counted in; ``%`` of a share.
        path: Where it stands among the metrics; of several the mean, by how many jobs
            there were.
        more_is_better: Whether it should be large.

    """

    key: str
    title: str
    unit: str
    path: tuple[tuple[str, ...], ...]
    more_is_better: bool = False

    def of(self, metrics: Mapping[str, Any]) -> float | None:
        """The figure of a run; None where it has none."""
        found = [_at(metrics, path) for path in self.path]
        if len(found) == 1:
            return found[0]
        counts = [_at(metrics, (*path[:-1], "n")) or 0.0 for path in self.path]
        pairs = [
            (value, n)
            for value, n in zip(found, counts, strict=True)
            if value is not None and n
        ]
        total = sum(n for _value, n in pairs)
        return sum(value * n for value, n in pairs) / total if total else None


def _at(metrics: Mapping[str, Any], path: Sequence[str]) -> float | None:
    found: Any = metrics
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return None if found is None else float(found)


def _one(*path: str) -> tuple[tuple[str, ...], ...]:
    return (path,)


MEASURES: Final = (
    Measure(
        "utilisation",
        "chips in use",
        "%",
        _one("use", "utilisation"),
        more_is_better=True,
    ),
    Measure(
        "effective-utilisation",
        "less what jobs lose to each other's traffic",
        "%",
        _one("use", "effective_utilisation"),
        more_is_better=True,
    ),
    Measure("wait", "mean wait", "s", _one("wait_s", "all", "mean")),
    Measure("wait-p95", "wait of the slowest 5 %", "s", _one("wait_s", "all", "p95")),
    Measure(
        "wait-large",
        "mean wait, jobs above 64 chips",
        "s",
        tuple(("wait_s", "by_size", size, "mean") for size in LARGE),
    ),
    Measure(
        "jct", "mean time from submission to end", "s", _one("jct_s", "all", "mean")
    ),
    Measure(
        "slowdown", "bounded slowdown", "", _one("bounded_slowdown", "all", "mean")
    ),
    Measure("conflicts", "conflicts at leaves", "", _one("leaves", "conflicts")),
    Measure(
        "at-risk",
        "jobs across leaves that share one",
        "%",
        _one("leaves", "at_risk_share_of_crossing"),
    ),
    Measure(
        "rings",
        "pods torn across rings",
        "of 1,000",
        _one("chips", "ring_violations_per_1000_pods"),
    ),
    Measure("fragmentation", "chips in pieces", "%", _one("chips", "fragmentation")),
)
"""What is compared; docs/measures.md has the formulas."""


class Row(Struct, frozen=True):
    """A policy in a comparison.

    Args:
        who: The policy, with its order.
        means: Measure -> its mean over the seeds.
        differences: Measure -> the mean difference to the first policy.

    """

    who: str
    means: dict[str, Mean]
    differences: dict[str, Mean]


class Comparison(Struct, frozen=True):
    """Policies on the same arrivals; the others are compared with the first."""

    rows: tuple[Row, ...]
    outcomes: tuple[Outcome, ...]


def specs_of(base: Spec, policies: Iterable[str], seeds: int) -> list[Spec]:
    """Every run of a comparison; ``policy+order`` names an order too."""
    found = []
    for name in policies:
        policy, _plus, order = name.partition("+")
        found += [
            msgspec.structs.replace(
                base, policy=policy, order=order or base.order, seed=base.seed + n
            )
            for n in range(seeds)
        ]
    return found


def compare(
    specs: Sequence[Spec],
    crew: Crew,
    *,
    kept: Path | None = None,
    heard: Callable[[Outcome], None] = lambda _outcome: None,
) -> Comparison:
    """Play *specs*, or take what is *kept* of them; *heard* is told of each."""
    found: dict[Spec, Outcome] = {}
    for spec in specs:
        before = _read(kept, spec)
        if before is not None:
            found[spec] = before
            heard(before)
    left = [spec for spec in dict.fromkeys(specs) if spec not in found]
    if left:
        for place, outcome in crew(run, left):
            found[left[place]] = outcome
            _write(kept, outcome)
            heard(outcome)
    outcomes = tuple(found[spec] for spec in specs)
    return Comparison(tuple(_rows(outcomes)), outcomes)


def _rows(outcomes: Sequence[Outcome]) -> Iterator[Row]:
    """A row a policy, in the order in which they were asked for."""
    whose: dict[str, dict[int, Plain]] = {}
    for each in outcomes:
        whose.setdefault(each.spec.who, {})[each.spec.seed] = each.metrics
    first = next(iter(whose.values()), {})
    for who, runs in whose.items():
        means, differences = {}, {}
        for measure in MEASURES:
            values = {seed: measure.of(metrics) for seed, metrics in runs.items()}
            own = [value for value in values.values() if value is not None]
            if (mean := mean_of(own)) is not None:
                means[measure.key] = mean
            pairs = [
                (value, other)
                for seed, value in values.items()
                if value is not None
                and seed in first
                and (other := measure.of(first[seed])) is not None
            ]
            difference = paired([a for a, _b in pairs], [b for _a, b in pairs])
            if difference is not None:
                differences[measure.key] = difference
        yield Row(who, means, differences)


def _path(kept: Path, spec: Spec) -> Path:
    return kept / f"{spec.who}-seed{spec.seed}-{spec.mark}.json"


def _read(kept: Path | None, spec: Spec) -> Outcome | None:
    """What was played before; None where that cannot be read, or was another run."""
    if kept is None:
        return None
    try:
        found = msgspec.json.decode(_path(kept, spec).read_bytes(), type=Outcome)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.spec == spec else None


def _write(kept: Path | None, outcome: Outcome) -> None:
    if kept is None:
        return
    kept.mkdir(parents=True, exist_ok=True)
    path = _path(kept, outcome.spec)
    half = path.with_suffix(".part")
    half.write_bytes(msgspec.json.encode(outcome))
    half.replace(path)
