"""What deciding costs is measured around a scheduler, and changes nothing."""

import pytest

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived
from ringleaf.framework.instruction import Bind
from ringleaf.simulator.metrics.cost import Durations, TimedEngine
from tests.simulator.stage import nodes, spec


def test_quantiles_are_right_to_two_per_cent() -> None:
    found = Durations()
    for microseconds in range(1, 1001):
        found.add(microseconds * 1000)

    assert found.quantile(0.5) == pytest.approx(500e-6, rel=0.03)
    assert found.quantile(0.99) == pytest.approx(990e-6, rel=0.03)
    assert found.plain()["max_s"] == 1000e-6
    assert found.plain()["mean_s"] == pytest.approx(500.5e-6)


def test_nothing_took_no_time() -> None:
    assert Durations().plain() == {
        "n": 0,
        "mean_s": None,
        "p50_s": None,
        "p99_s": None,
        "max_s": None,
    }


def test_a_timed_scheduler_says_what_the_scheduler_says() -> None:
    on = nodes("A 4")
    jobs = [JobArrived(spec("a", 0, 8, 3).job), JobArrived(spec("b", 0, 1).job)]
    timed = TimedEngine(Engine(on))

    said = timed.handle_all(jobs, 0.0)

    assert said == Engine(on).handle_all(jobs, 0.0)
    assert [each.job for each in said if isinstance(each, Bind)] == ["a", "b"]
    found = timed.plain()
    assert [found[key]["n"] for key in ("per_call", "per_gang", "per_pod")] == [1, 2, 4]
    assert found["deciding_s"] > 0
    assert found["pods_per_second"] == pytest.approx(4 / found["deciding_s"])
    assert found["peak_memory_bytes"] > 1 << 20
    assert timed.view.cluster.holdings.keys() == {"a", "b"}
