"""Bounds worked out by hand, and never beaten by the scheduler or by any other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.engine.engine import Engine
from ringleaf.simulator.bounds import (
    bounds,
    makespan_bound,
    mean_jct_bound,
    utilisation_bound,
)
from ringleaf.simulator.clock import play
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.trial import JobSpec, Site, Trial, Workload
from tests.effort import examples
from tests.simulator.stage import nodes, spec

FOUR = Site("four", tuple(nodes("A 2", "B 2")))  # 4 nodes, 32 chips


def workload(job_specs: list[JobSpec]) -> Workload:
    span = job_specs[-1].arrives - job_specs[0].arrives
    return Workload("listed", "", lambda: iter(job_specs), len(job_specs), span)


MAKESPANS = [
    pytest.param(
        [spec("a", 5, 1, runs_s=100.0), spec("b", 15, 1, runs_s=50.0)],
        (100, "longest"),
        id="the longest job",
    ),
    pytest.param(
        # 4 chips for 80 s eight times are 2,560 chip-seconds on 32 chips.
        [spec(f"j{n}", 0, 4, runs_s=80.0) for n in range(9)],
        (90, "area"),
        id="all chips busy: 9 x 320 / 32",
    ),
    pytest.param(
        # From 100 on, 9 x 320 chip-seconds come to 32 chips.
        [spec("a", 0, 1), *(spec(f"j{n}", 100, 4, runs_s=80.0) for n in range(9))],
        (190, "area"),
        id="all chips busy from the second arrival on",
    ),
    pytest.param(
        # Pods of 8 chips on nodes of 8: five of them on four nodes, 50 s each.
        [spec(f"j{n}", 0, 8, runs_s=50.0) for n in range(5)],
        (62.5, "area"),
        id="nodes say no more than chips where pods fill them",
    ),
    pytest.param(
        [spec("a", 0, 8, 3, runs_s=30.0), spec("b", 10, 8, 3, runs_s=40.0)],
        (70, "single"),
        id="jobs of more than half the cluster run one at a time",
    ),
    pytest.param(
        # Six pods of 5 chips need a node each: 6 x 40 / 4, where chips say 37.5.
        [spec(f"j{n}", 0, 5, runs_s=40.0) for n in range(6)],
        (60, "nodes"),
        id="pods of more than half a node have it for themselves",
    ),
]


@pytest.mark.parametrize(("job_specs", "expected"), MAKESPANS)
def test_the_makespan_is_at_least(
    job_specs: list[JobSpec], expected: tuple[float, str]
) -> None:
    assert makespan_bound(FOUR, job_specs) == expected


def test_the_shortest_work_first_has_the_least_mean() -> None:
    """One machine of 32 chips: works of 320, 32 and 64 chip-seconds.

    a comes at 0 and would take 10 s. b comes at 1 with 1 s of work and goes first: it
    ends at 2. c comes at 2 with 2 s: it ends at 4. a has 9 s left and ends at 13. The
    mean of 13, 1 and 2 is 16 / 3. Alone they take 10, 1 and 2 s.
    """
    job_specs = [
        spec("a", 0, 8, 4, runs_s=10.0),
        spec("b", 1, 8, 4, runs_s=1.0),
        spec("c", 2, 8, 4, runs_s=2.0),
    ]

    assert mean_jct_bound(32, job_specs) == pytest.approx(16 / 3)


def test_nobody_is_faster_than_alone() -> None:
    assert mean_jct_bound(32, [spec("a", 0, 1, runs_s=10.0)]) == 10
    assert mean_jct_bound(32, []) is None


def test_use_is_at_most_what_is_asked_in_the_window() -> None:
    # The window is from 0 to 100. a holds 8 chips for 50 s of it; b comes at 90 and
    # holds 16 for 10 s of it, whatever it runs; c comes at its end.
    job_specs = [
        spec("a", 0, 8, runs_s=50.0),
        spec("b", 90, 8, 2, runs_s=500.0),
        spec("c", 100, 8, runs_s=500.0),
    ]

    found = utilisation_bound(FOUR, workload(job_specs), 0)

    assert found == pytest.approx((400 + 160) / (32 * 100))


def test_an_elastic_job_may_use_all_its_pods() -> None:
    job_specs = [
        spec("a", 0, 8, 2, runs_s=10.0, min_available=1),
        spec("b", 100, 8, runs_s=10.0),
    ]

    found = utilisation_bound(FOUR, workload(job_specs), 0)

    assert found == pytest.approx(2 * 8 * 10 / (32 * 100))


def test_use_is_at_most_all() -> None:
    job_specs = [spec(f"j{n}", 10.0 * n, 8, 4, runs_s=100.0) for n in range(4)]

    assert utilisation_bound(FOUR, workload(job_specs), 0) == 1


def test_a_workload_of_one_moment_has_no_load() -> None:
    found = bounds(FOUR, workload([spec("a", 0, 8, runs_s=10.0)]))

    assert (found.offered_load, found.utilisation, found.makespan_s) == (None, None, 10)


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(1, 4), st.floats(1, 100)),
        min_size=1,
        max_size=12,
    ),
    st.floats(0, 60),
)
@settings(max_examples=examples(40))
def test_the_scheduler_never_beats_a_bound(
    drawn: list[tuple[int, int, float]], gap: float
) -> None:
    job_specs = [
        # On rings of four a gang is whole nodes.
        spec(f"j{n:02}", gap * n, 8 if pods > 1 else chips, pods, runs_s=runs_s)
        for n, (chips, pods, runs_s) in enumerate(drawn)
    ]
    trial = Trial(FOUR, workload(job_specs))
    metrics = RunMetrics()
    play(trial, Engine(FOUR.nodes), [metrics])
    plain, least = metrics.plain(), bounds(FOUR, trial.workload)

    assert plain["jobs"]["ended"] == len(job_specs)
    assert plain["work"]["makespan_s"] >= least.makespan_s - 1e-6
    assert least.mean_jct_s is not None
    assert plain["jct_s"]["all"]["mean"] >= least.mean_jct_s - 1e-6
    if least.utilisation is not None:
        assert plain["use"]["utilisation"] <= least.utilisation + 1e-9
