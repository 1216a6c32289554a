"""The oracle: which jobs it starts, and where."""

from importlib import util

import numpy as np
import pytest

from ringleaf.baselines import optimum
from ringleaf.baselines.optimum import (
    Leaves,
    NotInstalled,
    Optimum,
    best_together,
    one_by_one,
)
from ringleaf.baselines.registry import baseline
from ringleaf.baselines.tiers import Taken
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import JobArrived
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.simulator.gang_model import WholeNodeGang
from tests.baselines.stage import A2, Stage, started, under_leaves


def gang(name: str, pods: int, chips: int = 8) -> Job:
    return Job(name, A2, chips, pods)


def leaves(*free: int, crossed: tuple[int, ...] = ()) -> Leaves:
    flags = np.zeros(len(free), np.bool_)
    flags[list(crossed)] = True
    return Leaves(np.array(free), flags)


def nodes(plans: list[Taken | None]) -> int:
    return sum(count for taken in plans if taken for _leaf, count in taken)


def test_it_starts_the_jobs_that_are_most_together() -> None:
    """Five nodes: first come first served is 3 and 1; 3 and 2 is all there is."""
    stage = Stage("cp-sat", under_leaves("A ###.", "B ##.."))
    come = (gang("one", 1), gang("three", 3), gang("two", 2))

    said = stage.happens(*map(JobArrived, come))

    assert sorted(started(said)) == ["three", "two"]


def test_first_come_first_served_leaves_nodes_that_it_uses() -> None:
    free = leaves(4, 3)
    gangs = [
        WholeNodeGang(3, inside=True),
        WholeNodeGang(1, inside=True),
        WholeNodeGang(4, inside=True),
    ]

    assert nodes(one_by_one(leaves(4, 2), gangs)) < nodes(
        best_together(leaves(4, 2), gangs)
    )
    assert nodes(best_together(free, gangs)) == 7


def test_no_leaf_is_crossed_by_two_jobs() -> None:
    """Two jobs of six cross; they share no leaf of four, so only one starts."""
    gangs = [WholeNodeGang(6, inside=False), WholeNodeGang(6, inside=False)]

    assert nodes(best_together(leaves(4, 4, 4), gangs)) == 6
    assert nodes(best_together(leaves(4, 4, 4, 4), gangs)) == 12
    assert nodes(best_together(leaves(4, 4, 4, 4, crossed=(0,)), gangs)) == 6


def test_a_padding_job_stays_under_one_leaf() -> None:
    stage = Stage("cp-sat", under_leaves("A ##..", "B ##.."))
    padding = Job("j", A2, 8, 3, tor_affinity=Schema.LARGE_MODEL)

    assert stage.comes(padding) is None
    assert stage.comes(gang("k", 3)) == ["A0", "A1", "B0"]


def test_parts_of_nodes_are_placed_by_the_chip_rules() -> None:
    stage = Stage("cp-sat", under_leaves("A ###-", "B ####"))

    assert stage.comes(gang("part", 1, 4)) == ["A3"]
    assert stage.comes(gang("whole", 3)) == ["A0", "A1", "A2"]


@pytest.mark.parametrize("seed", range(5))
def test_it_is_never_worse_than_first_come_first_served(seed: int) -> None:
    draw = np.random.default_rng(seed)
    free = leaves(*draw.integers(0, 5, 8).tolist())
    gangs = [WholeNodeGang(int(n), inside=n < 4) for n in draw.integers(1, 9, 12)]

    together = best_together(free, gangs)

    assert nodes(together) >= nodes(one_by_one(free, gangs))
    assert together == best_together(free, gangs)
    used = np.zeros(8, np.int64)
    crossed = np.zeros(8, np.int64)
    for plan, each in zip(together, gangs, strict=True):
        taken = plan or []
        assert sum(count for _leaf, count in taken) in {0, each.nodes}
        assert len(taken) <= 1 or not each.inside
        for leaf, count in taken:
            used[leaf] += count
            crossed[leaf] += len(taken) > 1
    assert (used <= free.free).all()
    assert (crossed <= 1).all()


def test_the_solver_is_asked_so_often_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(optimum, "MAX_DECISIONS", 1)
    stage = Stage("cp-sat", under_leaves("A ###.", "B ##.."))
    come = (gang("one", 1), gang("three", 3), gang("two", 2))
    stage.happens(*map(JobArrived, come))
    chooser = stage.engine.chooser  # type: ignore[attr-defined]
    assert isinstance(chooser, Optimum)
    assert chooser.decisions == 1

    stage.happens(*(JobArrived(gang(f"again-{i}", i)) for i in (1, 3, 2)))
    stage.goes("three")
    stage.goes("two")

    assert chooser.decisions == 1


def test_without_the_extra_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(optimum, "find_spec", lambda _name: None)

    with pytest.raises(NotInstalled, match=r"pip install 'ringleaf\[optimum\]'"):
        baseline("cp-sat")([], (), (), DEFAULT)

    assert util.find_spec("ortools") is not None
