"""Policies on the same arrivals: their results and differences.

Runs that were played before and are kept in a folder are not played again, so that a
comparison that was interrupted goes on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.report.measures import MEASURES, value_of
from ringleaf.report.results import Measured, RunResult
from ringleaf.study.figures import mean_of, paired

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


class Executor(Protocol):
    """Plays runs, see ``crew``."""

    def __call__(
        self, play: Callable[[Asked], Answer], asked: Sequence[Asked], /
    ) -> Iterator[tuple[int, Answer]]:
        """What comes of each, with its place in the list, as they come."""


class _Kept(Struct, frozen=True):
    """A run as it is kept, with the name of what was asked for."""

    mark: str
    run: RunResult


def play_all(
    asked: Mapping[str, Asked],
    play: Callable[[Asked], RunResult],
    crew: Executor,
    *,
    kept: Path | None = None,
    heard: Callable[[str, RunResult], None] = lambda _mark, _run: None,
) -> list[RunResult]:
    """What comes of all that is *asked*, by marks that nothing else has.

    What is *kept* is not played again; *heard* is told of each.
    """
    found: dict[str, RunResult] = {}
    for mark in asked:
        before = None if kept is None else _read(kept, mark)
        if before is not None:
            found[mark] = before
            heard(mark, before)
    left = [mark for mark in asked if mark not in found]
    if left:
        for place, run in crew(play, [asked[mark] for mark in left]):
            mark = left[place]
            found[mark] = run
            if kept is not None:
                _write(kept, mark, run)
            heard(mark, run)
    return [found[mark] for mark in asked]


def counted_alike(runs: Sequence[RunResult]) -> list[RunResult]:
    """The runs, with jobs that never start as pending until one end for each seed.

    A run ends for such jobs when its own last job ends; here that is the latest of the
    runs with the same seed, so that their mean wait compares policies.
    """
    until: dict[int, float] = {}
    for run in runs:
        own = run.metrics.get("pending_s", {}).get("until_s", 0.0)
        until[run.spec.seed] = max(own, until.get(run.spec.seed, 0.0))
    return [_pending_until(run, until[run.spec.seed]) for run in runs]


def _pending_until(run: RunResult, until: float) -> RunResult:
    pending = run.metrics.get("pending_s")
    if not pending or not pending["all"]["unstarted"]:
        return run
    more = until - pending["until_s"]
    by_size = pending["by_size"].items()
    longer = {
        "until_s": until,
        "all": _longer(pending["all"], more),
        "by_size": {size: _longer(each, more) for size, each in by_size},
    }
    return replace(run, metrics={**run.metrics, "pending_s": longer})


def _longer(pending: Mapping[str, Any], more: float) -> dict[str, Any]:
    """A mean of which the jobs that never start wait so much longer."""
    if not pending["unstarted"]:
        return {**pending}
    mean = pending["mean"] + more * pending["unstarted"] / pending["n"]
    return {**pending, "mean": mean}


def compared(runs: Sequence[RunResult], reference: str) -> Iterator[Measured]:
    """Every policy by every measure that it has, the means of its seeds."""
    whose: dict[str, dict[int, RunResult]] = {}
    for run in runs:
        whose.setdefault(run.spec.policy, {})[run.spec.seed] = run
    base = whose[reference]
    for measure in MEASURES:
        first = _values(base, measure.key)
        for policy, own in whose.items():
            values = _values(own, measure.key)
            mean = mean_of([*values.values()])
            if mean is None:
                continue
            seeds = [seed for seed in values if seed in first]
            both = [values[seed] for seed in seeds], [first[seed] for seed in seeds]
            difference = None if policy == reference else paired(*both)
            yield Measured(measure.key, policy, mean, difference)


def _values(runs: Mapping[int, RunResult], key: str) -> dict[int, float]:
    """Seed -> the value of a measure, where it has one."""
    found = {seed: value_of(run.metrics, key) for seed, run in sorted(runs.items())}
    return {seed: value for seed, value in found.items() if value is not None}


def _read(kept: Path, mark: str) -> RunResult | None:
    """A kept run; None if it cannot be read or belongs to another request."""
    try:
        text = (kept / f"{mark}.json").read_bytes()
        found = msgspec.json.decode(text, type=_Kept)
    except (OSError, msgspec.MsgspecError):
        return None
    return found.run if found.mark == mark else None


def _write(kept: Path, mark: str, run: RunResult) -> None:
    """Keep a run: whole, or not at all."""
    kept.mkdir(parents=True, exist_ok=True)
    half = kept / f"{mark}.part"
    half.write_bytes(msgspec.json.encode(_Kept(mark, run)))
    half.replace(kept / f"{mark}.json")
