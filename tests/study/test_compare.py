"""Several policies on the same arrivals, whoever plays them."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from signal import SIG_BLOCK, SIGINT, pthread_sigmask
from typing import Any, TypeVar

import msgspec
import pytest
from msgspec.structs import replace

from ringleaf.report.measures import value_of
from ringleaf.report.results import RunResult
from ringleaf.study.compare import Executor, compared, counted_alike, play_all
from ringleaf.study.executors import (
    ExecutorUnavailable,
    in_processes,
    on_dask,
    one_by_one,
)
from tests.report.made import plain_run
from tests.study.small import Small, run

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

ASKED = {
    f"{policy}-{seed}": Small(policy, seed)
    for policy in ("ringleaf", "best-fit")
    for seed in (0, 1)
}
USE, ROOM = "use.utilisation", "nodes.largest_gang_of_free.1.0"


@pytest.fixture(scope="module")
def runs() -> list[RunResult]:
    """What the runs come to, played here one by one."""
    return play_all(ASKED, run, one_by_one)


@pytest.fixture(scope="module")
def alone(runs: list[RunResult]) -> list[bytes]:
    return list(map(msgspec.json.encode, runs))


def test_every_policy_plays_every_seed_on_the_same_arrivals(
    runs: list[RunResult],
) -> None:
    seeds = [(each.spec.policy, each.spec.seed) for each in runs]
    assert seeds == [(each.policy, each.seed) for each in ASKED.values()]
    arrived = [each.metrics["jobs"]["arrived"] for each in runs]
    assert arrived == [60] * 4
    windows = [each.metrics["window"]["to_s"] for each in runs]
    assert windows[:2] == windows[2:]
    assert windows[0] != windows[1]


def test_differences_are_means_of_differences_seed_by_seed(
    runs: list[RunResult],
) -> None:
    found = {
        each.policy: each for each in compared(runs, "ringleaf") if each.measure == ROOM
    }
    values = [value_of(each.metrics, ROOM) or 0.0 for each in runs]
    ours, theirs = values[:2], values[2:]

    assert found["ringleaf"].value.mean == pytest.approx(sum(ours) / 2)
    assert found["ringleaf"].difference is None
    difference = found["best-fit"].difference
    gap = [b - a for a, b in zip(ours, theirs, strict=True)]
    half = 12.706 * abs(gap[0] - gap[1]) / 2  # t(1) * s / sqrt(2), s = |d| / sqrt(2)
    assert difference is not None
    assert difference.mean == pytest.approx(sum(gap) / 2)
    assert difference.high == pytest.approx(sum(gap) / 2 + half)
    assert difference.n == 2


def test_a_difference_that_all_seeds_have_has_no_interval(
    runs: list[RunResult],
) -> None:
    again = [
        replace(each, spec=replace(each.spec, seed=seed))
        for each in runs
        for seed in (2, 3)
        if each.spec.seed == 1
    ]
    found = [each for each in compared(again, "ringleaf") if each.measure == ROOM]

    for each in (found[0].value, found[1].value, found[1].difference):
        assert each is not None
        assert (each.low, each.high, each.n) == (None, None, 2)
    assert found[1].difference is not None
    assert found[1].difference.mean


def pending(n: int, unstarted: int, mean: float) -> dict[str, Any]:
    return {"n": n, "unstarted": unstarted, "mean": mean}


def test_jobs_that_never_start_count_to_the_same_time_under_every_policy() -> None:
    size = ">256"
    sooner = {
        "until_s": 100.0,
        "all": pending(4, 2, 50.0),
        "by_size": {"1": pending(2, 0, 10.0), size: pending(2, 2, 90.0)},
    }
    later = {"until_s": 140.0, "all": pending(4, 0, 30.0), "by_size": {}}
    runs = [
        plain_run("ringleaf", 0, pending_s=later),
        plain_run("other", 0, pending_s=sooner),
        plain_run("other", 1, pending_s=sooner),
        plain_run("old", 0),
    ]
    found = counted_alike(runs)

    assert found[0] == runs[0]
    assert found[1].metrics["pending_s"] == {
        "until_s": 140.0,
        "all": pending(4, 2, 70.0),
        "by_size": {"1": pending(2, 0, 10.0), size: pending(2, 2, 130.0)},
    }
    assert found[2:] == runs[2:]
    assert runs[1].metrics["pending_s"] == sooner


def test_processes_come_to_the_same_bytes(alone: list[bytes]) -> None:
    found = play_all(ASKED, run, partial(in_processes, workers=2))

    assert list(map(msgspec.json.encode, found)) == alone


@pytest.mark.slow
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
        found = play_all(ASKED, run, crew)

    assert list(map(msgspec.json.encode, found)) == alone


def test_nobody_at_the_address_is_one_line() -> None:
    with pytest.raises(ExecutorUnavailable, match="no Dask scheduler answers at"):
        list(on_dask(run, [*ASKED.values()], "tcp://127.0.0.1:1", patience_s=0.2))


def tired(played: list[Any], most: int = 2) -> Executor:
    """Plays here, notes what, and stops before the next."""

    def crew(
        play: Callable[[Asked], Answer], asked: Sequence[Asked]
    ) -> Iterator[tuple[int, Answer]]:
        for place, each in enumerate(asked):
            if len(played) == most:
                raise KeyboardInterrupt
            played.append(each)
            yield place, play(each)

    return crew


def test_what_was_interrupted_goes_on_and_comes_to_the_same_bytes(
    tmp_path: Path, alone: list[bytes]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        play_all(ASKED, run, tired([]), kept=tmp_path)
    damaged = tmp_path / "ringleaf-0.json"
    damaged.write_text("{", encoding="utf-8")
    (tmp_path / "best-fit-0.json").write_bytes(
        (tmp_path / "ringleaf-1.json").read_bytes()
    )
    again: list[Small] = []
    heard: list[str] = []
    found = play_all(
        ASKED,
        run,
        tired(again, 9),
        kept=tmp_path,
        heard=lambda mark, _run: heard.append(mark),
    )

    assert again == [ASKED["ringleaf-0"], ASKED["best-fit-0"], ASKED["best-fit-1"]]
    assert sorted(heard) == sorted(ASKED)
    assert list(map(msgspec.json.encode, found)) == alone


def hears_ctrl_c(_asked: int) -> bool:
    """Whether Ctrl-C reaches this process."""
    return SIGINT not in pthread_sigmask(SIG_BLOCK, ())


def test_ctrl_c_reaches_this_process_only() -> None:
    """Others would print a trace each, and begin the next run."""
    (found,) = in_processes(hears_ctrl_c, [0], workers=1)

    assert found == (0, False)
    assert hears_ctrl_c(0)


def first_answers(asked: int) -> int:
    """0 at once, and anything else not before the test is long over."""
    time.sleep(600 * asked)
    return asked


def test_runs_that_are_under_way_end_at_once_with_the_listener() -> None:
    answers = in_processes(first_answers, [0, 1], workers=2)

    assert next(answers) == (0, 0)
    answers.close()  # type: ignore[attr-defined]

    assert active_children() == []
