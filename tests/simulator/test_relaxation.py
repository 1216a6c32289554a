"""Upper bounds on what gangs can take: by hand, and against the exact optimum."""

import numpy as np
import pytest

from ringleaf.simulator.gang_model import LeafCapacity, WholeNodeGang, gangs_of
from ringleaf.simulator.optimum import best_placement
from ringleaf.simulator.relaxation import most_by_capacity, most_by_rule

pytest.importorskip("ortools")


def test_without_the_rule_any_nodes_will_do() -> None:
    # 3 + 3 fill the six nodes; 4 + 3 would be too many.
    asks = [WholeNodeGang(4), WholeNodeGang(3), WholeNodeGang(3)]

    assert most_by_capacity(LeafCapacity((2, 2, 2)), asks) == 6
    assert most_by_capacity(LeafCapacity((2, 2, 1)), asks) == 4


def test_gangs_that_stay_inside_leave_the_rest_of_a_leaf() -> None:
    asks = [WholeNodeGang(3, inside=True)] * 4

    assert most_by_rule(LeafCapacity((4, 4)), asks) == 6
    assert most_by_rule(LeafCapacity((4, 4)), asks, loose=1.5) == 7.5


def test_one_gang_crosses_a_leaf_or_as_many_as_may() -> None:
    # Two gangs of 4 would share the leaf in the middle.
    asks = [WholeNodeGang(4)] * 2

    assert most_by_rule(LeafCapacity((3, 2, 3), crossed=(1, 1, 1)), asks) == 0
    assert most_by_rule(LeafCapacity((3, 2, 3), cap=2), asks) == 8


def test_smaller_jobs_alone_take_what_there_is() -> None:
    assert most_by_rule(LeafCapacity((1, 2)), [], loose=2.25) == 2.25
    assert most_by_rule(LeafCapacity((1, 2)), [], loose=9.0) == 3


@pytest.mark.parametrize("cap", [1, 2])
def test_the_optimum_is_below_both_bounds(cap: int) -> None:
    rng = np.random.default_rng(12 + cap)
    tight = 0
    for _case in range(25):
        free = tuple(int(n) for n in rng.integers(0, 5, 5))
        ground = LeafCapacity(free, cap=cap)
        gangs = [int(n) for n in rng.integers(1, 8, 6)]
        asks = gangs_of(ground, gangs)

        best = best_placement(ground, gangs)
        rule, capacity = most_by_rule(ground, asks), most_by_capacity(ground, asks)

        assert best.is_proven
        assert best.nodes <= capacity
        assert best.nodes <= rule + 1e-6
        tight += best.nodes == int(min(rule, capacity) + 1e-6)
    assert tight >= 12


def test_a_large_cluster_is_bounded_at_once() -> None:
    """A thousand leaves and three thousand gangs are a few sorts of each."""
    rng = np.random.default_rng(5)
    free = tuple(int(n) for n in rng.integers(0, 9, 1000))
    gangs = [int(n) for n in rng.choice([1, 2, 3, 5, 8, 16, 64], 3000)]
    ground = LeafCapacity(free)

    found = most_by_rule(ground, gangs_of(ground, gangs))

    assert sum(free) * 0.9 < found <= sum(free)
