"""Fills of a small cluster, by hand."""

import numpy as np
import pytest

from ringleaf.baselines.registry import baseline
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.model.job_labels import Schema
from ringleaf.simulator.saturation import (
    capacity_bound,
    churn_fill,
    rule_bound,
    static_fill,
)
from ringleaf.simulator.trial import Site
from tests.simulator.stage import nodes, spec

FOUR = Site("four", tuple(nodes("A 2", "B 2")))  # 4 nodes, 32 chips


def test_a_static_fill_ends_at_the_demand() -> None:
    # 130 % of 32 chips are 41.6: with jobs of 4 chips the eleventh is the last, and
    # eight of them find a place.
    job_specs = [spec(f"j{n}", 0, 4) for n in range(20)]

    found = static_fill(FOUR, job_specs, Engine(FOUR.nodes), seed=1)

    assert (found.allocated, found.jobs, found.placed) == (1, 11, 8)
    assert found.conflicts == 0


# 8 nodes under leaves of 2; three gangs of three nodes by name: A0 A1 B0, B1 C0 C1 and
# D0 D1 with nothing left for the third. Leaf B is crossed by two.
EIGHT = Site("eight", tuple(nodes("A 2", "B 2", "C 2", "D 2")))
THREE = [spec(f"g{n}", 0, 8, 3, runs_s=1e9) for n in range(3)]


def test_jobs_beyond_the_first_that_cross_a_leaf_are_counted() -> None:
    scheduler = baseline("first-fit")(EIGHT.nodes)

    found = static_fill(EIGHT, THREE, scheduler, seed=1)

    assert (found.placed, found.conflicts) == (2, 1)


def test_conflicts_of_a_churn_are_a_mean_over_time() -> None:
    # So many come that nobody leaves: the same two gangs are there all the time.
    scheduler = baseline("first-fit")(EIGHT.nodes)

    found = churn_fill(EIGHT, THREE, scheduler, seed=1, load=1000, jobs=50)

    assert found.placed == 2
    assert found.allocated == pytest.approx(0.75)
    assert found.conflicts == pytest.approx(1)


def test_conflicts_end_with_their_jobs() -> None:
    # Gangs of three nodes meet on leaf B only while both are there; a single gang at a
    # time meets nobody.
    job_specs = [spec("g", 0, 8, 3, runs_s=100.0)]
    busy, calm = (
        churn_fill(
            EIGHT,
            job_specs,
            baseline("first-fit")(EIGHT.nodes),
            1,
            load=load,
            jobs=2000,
        ).conflicts
        for load in (2.0, 0.01)
    )

    assert 0.5 < busy < 1
    assert calm < 0.01


def test_who_finds_no_place_stands_in_nobodys_way() -> None:
    # A gang of three nodes comes first or second; of two, one is too many.
    job_specs = [spec(f"g{n}", 0, 8, 3) for n in range(2)]
    job_specs += [spec(f"j{n}", 0, 1) for n in range(8)]

    found = static_fill(FOUR, job_specs, Engine(FOUR.nodes), seed=1, demand=2)

    assert (found.jobs, found.placed) == (10, 9)
    assert found.allocated == 1


def test_another_seed_is_another_order() -> None:
    job_specs = [spec(f"j{n}", 0, chips) for n, chips in enumerate([1, 2, 4, 8] * 5)]

    found = {
        static_fill(FOUR, job_specs, Engine(FOUR.nodes), seed=seed).jobs
        for seed in range(5)
    }

    assert len(found) > 1


def test_a_churn_of_whole_nodes_is_a_loss_system() -> None:
    """Jobs of a node each on four nodes: Erlang's loss formula.

    With an offered load of 4.4 nodes on 4, B = (4.4^4 / 4!) / sum 4.4^k / k! = 0.3479
    of the jobs are lost, and 4.4 (1 - B) = 2.869 nodes are busy: 71.7 %. It holds for
    any running times, so for equal ones.
    """
    job_specs = [spec("j", 0, 8, runs_s=100.0)]

    found = churn_fill(FOUR, job_specs, Engine(FOUR.nodes), seed=3, jobs=6000)

    assert found.allocated == pytest.approx(0.717, abs=0.015)
    assert found.placed / found.jobs == pytest.approx(1 - 0.3479, abs=0.02)


def test_a_settled_churn_begins_as_it_goes_on() -> None:
    """Most jobs are short, and a few very long ones take nearly all the time.

    Erlang's formula holds whatever the running times, and so does the mean over many
    short churns, none of which is as long as a long job.
    """
    short = [spec("s", 0, 8, runs_s=1.0)] * 99
    job_specs = [*short, spec("l", 0, 8, runs_s=10_000.0)]

    found = [
        churn_fill(
            FOUR, job_specs, Engine(FOUR.nodes), seed=seed, jobs=20, settled=True
        ).allocated
        for seed in range(120)
    ]

    assert np.mean(found) == pytest.approx(0.717, abs=0.06)


def test_no_fill_is_above_its_bound() -> None:
    """Gangs of 3 nodes that stay inside leave a node of every leaf to small jobs."""
    site = Site("by hand", tuple(nodes("A 4", "B 4")))
    gang = [spec("g", 0, 8, 3, tor_affinity=Schema.LARGE_MODEL)] * 4
    small = [spec("s", 0, 4)] * 2

    alone = rule_bound(site, gang, DEFAULT.settings)
    both = rule_bound(site, [*gang, *small], DEFAULT.settings)

    assert (alone, both) == (6 / 8, 7 / 8)
    for job_specs, bound in ((gang, alone), ([*gang, *small], both)):
        found = static_fill(site, job_specs, Engine(site.nodes), seed=1, demand=9)
        assert found.allocated == bound


def test_without_the_rule_capacity_is_the_bound() -> None:
    site = Site("by hand", tuple(nodes("A 4", "B 4")))
    gang = [spec("g", 0, 8, 3, tor_affinity=Schema.LARGE_MODEL)] * 4
    elastic = [spec("e", 0, 8, 4, min_available=1)]

    # Two gangs of three nodes are six of eight; two more pods go besides.
    assert capacity_bound(site, gang) == 6 / 8
    assert capacity_bound(site, [*gang, *elastic]) == 1
    assert capacity_bound(site, elastic) == 4 / 8


def test_common_jobs_may_cross_and_gangs_without_leaves_stand_anywhere() -> None:
    common = [spec("g", 0, 8, 3, tor_affinity=Schema.NORMAL)] * 4
    plain = [spec("g", 0, 8, 3)] * 4
    leaves = Site("by hand", tuple(nodes("A 4", "B 4")))
    flat = Site("by hand", tuple(nodes("A 4", "B 4", superpod=True)))

    assert rule_bound(leaves, common, DEFAULT.settings) == 1
    # Two gangs of three are six nodes of eight; a third finds no place.
    assert rule_bound(flat, plain, DEFAULT.settings) == 6 / 8


def test_the_same_seed_is_the_same_churn() -> None:
    job_specs = [spec("a", 0, 8, runs_s=50.0), spec("b", 0, 4, runs_s=20.0)]

    once, again = (
        churn_fill(FOUR, job_specs, Engine(FOUR.nodes), seed=3, jobs=200)
        for _ in range(2)
    )

    assert once == again
