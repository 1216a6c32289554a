"""Several policies on the same arrivals, whoever plays them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ringleaf.study.compare import MEASURES, Crew, Measure, compare, specs_of
from ringleaf.study.crew import NoCrew, in_processes, on_dask, one_by_one
from ringleaf.study.spec import Outcome, Spec, run

SMALL = Spec("leaf-spine-512:nodes=16", "kalos", load=0.8, jobs=60)
SPECS = specs_of(SMALL, ["ringleaf", "best-fit"], 2)


@pytest.fixture(scope="module")
def alone() -> list[bytes]:
    """What the runs come to, played here one by one."""
    return list(map(msgspec.json.encode, compare(SPECS, one_by_one).outcomes))


def test_every_policy_plays_every_seed_on_the_same_arrivals() -> None:
    found = compare(SPECS, one_by_one)

    assert [row.who for row in found.rows] == ["ringleaf", "best-fit"]
    seeds = [(each.spec.who, each.spec.seed) for each in found.outcomes]
    assert seeds == [
        ("ringleaf", 0),
        ("ringleaf", 1),
        ("best-fit", 0),
        ("best-fit", 1),
    ]
    arrived = [each.metrics["jobs"]["arrived"] for each in found.outcomes]
    assert arrived == [60] * 4
    spans = [each.about["workload"]["span_s"] for each in found.outcomes]
    assert spans[:2] == spans[2:]
    assert spans[0] != spans[1]


def test_differences_are_means_of_differences_seed_by_seed() -> None:
    found = compare(SPECS, one_by_one)
    use = MEASURES[0]
    values = [use.of(each.metrics) or 0.0 for each in found.outcomes]
    ours, theirs = values[:2], values[2:]

    first, second = found.rows
    assert first.means["utilisation"].mean == pytest.approx(sum(ours) / 2)
    assert first.differences["utilisation"].mean == 0.0
    assert first.differences["utilisation"].half == 0.0
    gap = [b - a for a, b in zip(ours, theirs, strict=True)]
    assert second.differences["utilisation"].mean == pytest.approx(sum(gap) / 2)
    half = 12.706 * abs(gap[0] - gap[1]) / 2  # t(1) * s / sqrt(2), s = |d| / sqrt(2)
    assert second.differences["utilisation"].half == pytest.approx(half)


def test_of_several_sizes_the_mean_counts_jobs() -> None:
    wait = Measure("w", "w", "s", (("a", "mean"), ("b", "mean"), ("c", "mean")))
    told = {"a": {"mean": 10.0, "n": 1}, "b": {"mean": 20.0, "n": 3}, "c": {"n": 0}}

    assert wait.of(told) == 17.5
    assert wait.of({}) is None


def test_processes_come_to_the_same_bytes(alone: list[bytes]) -> None:
    found = compare(SPECS, partial(in_processes, workers=2))

    assert list(map(msgspec.json.encode, found.outcomes)) == alone


def test_a_dask_cluster_of_two_workers_comes_to_the_same_bytes(
    alone: list[bytes],
) -> None:
    dask = pytest.importorskip("distributed")
    with dask.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        host="127.0.0.1",
    ) as cluster:
        crew = partial(on_dask, address=cluster.scheduler_address)
        found = compare(SPECS, crew)

    assert list(map(msgspec.json.encode, found.outcomes)) == alone


def test_nobody_at_the_address_is_one_line() -> None:
    with pytest.raises(NoCrew, match="no Dask scheduler answers at"):
        list(on_dask(run, SPECS, "tcp://127.0.0.1:1", patience_s=0.2))


def counted(played: list[Spec]) -> Crew:
    """Plays here, and notes what; the third run never comes."""

    def crew(
        play: Callable[[Spec], Outcome], asked: Sequence[Spec]
    ) -> Iterator[tuple[int, Outcome]]:
        for place, spec in enumerate(asked):
            if len(played) == 2:
                raise KeyboardInterrupt
            played.append(spec)
            yield place, play(spec)

    return crew


def test_what_was_interrupted_goes_on_and_comes_to_the_same_bytes(
    tmp_path: Path, alone: list[bytes]
) -> None:
    first: list[Spec] = []
    with pytest.raises(KeyboardInterrupt):
        compare(SPECS, counted(first), kept=tmp_path)
    damaged = next(tmp_path.glob("ringleaf-seed0-*.json"))
    damaged.write_text("{", encoding="utf-8")
    again: list[Spec] = []
    heard: list[Any] = []
    found = compare(SPECS[:3], counted(again), kept=tmp_path, heard=heard.append)

    assert again == [SPECS[0], SPECS[2]]
    assert len(heard) == 3
    assert list(map(msgspec.json.encode, found.outcomes)) == alone[:3]
