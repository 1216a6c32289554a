"""The studies of the best choice of leaves: their models, against what is known."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from benchmarks import slots
from benchmarks.choices import (
    LISTED,
    TIES,
    Gang,
    Leaves,
    allocated,
    can_stand,
    of_sets,
    place,
    total,
    under_rule,
)
from benchmarks.online import Small, ends, free_packing, jobs_of, legal, packs, solve
from benchmarks.results import churned

from ringleaf import Cluster, Job, Node, Placed, Session, Settings, Statement
from ringleaf.model.job_labels import Schema
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.sites import site

A2 = PRODUCTS["atlas-800t-a2"]
TINY = Small("any size", 2, 4, 6)


def kaufman(cluster: Small) -> float:
    """The part of all nodes that is allocated, by Kaufman's recursion."""
    odds = np.zeros(cluster.nodes + 1)
    odds[0] = 1
    for held in range(1, cluster.nodes + 1):
        odds[held] = sum(
            rate * n * odds[held - n] / held
            for n, rate in zip(cluster.sizes, cluster.rates.tolist(), strict=True)
            if n <= held
        )
    nodes = np.arange(cluster.nodes + 1)
    return float((odds * nodes).sum() / odds.sum() / cluster.nodes)


@pytest.mark.parametrize(
    "cluster", [TINY, Small("doublings", 3, 4, 8)], ids=lambda each: each.mix
)
def test_free_packing_is_what_the_formula_says(cluster: Small) -> None:
    assert free_packing(cluster) == pytest.approx(kaufman(cluster), abs=1e-6)


def test_a_better_choice_allocates_no_less() -> None:
    found = solve(TINY)

    names = ["compact", "best compact", "best", "moved", "free"]
    values = [found[name] for name in names]
    assert values == sorted(values)
    assert values[0] < values[-1]


def test_slots_cost_something_and_a_better_choice_allocates_no_less() -> None:
    found, without = slots.solve(TINY), solve(TINY)

    names = ["compact", "best compact", "best", "free"]
    values = [found[name] for name in names]
    assert values == sorted(values)
    assert found["compact"] < without["compact"]
    assert found["best"] <= without["best"]


def test_the_jobs_of_a_state_are_there_wherever_they_stand() -> None:
    """Seven nodes: four of a job that crosses, beside one job of two and one of one."""
    state = (((0, (1,)),), ((2, (2,)), (2, ())))

    assert jobs_of(state) == (1, 2, 4)
    assert ends(state).total() == 3
    assert {sum(jobs_of(after)) for after in ends(state)} == {3, 5, 6}
    for after in legal(Small("any size", 3, 4, 4), state, 1):
        assert jobs_of(after) == (1, 1, 2, 4)


def test_jobs_that_may_move_stand_together_where_any_order_places_them() -> None:
    fits = packs(TINY)

    assert fits((2, 6))
    assert fits((3, 5))
    assert fits((1, 1, 6))
    assert not fits((3, 3, 2))  # two are three nodes wide, and small ones do not cross
    assert not fits((4, 5))


def test_a_job_across_leaves_loads_the_slots_alike() -> None:
    choice = slots.Choice(TINY, compact=False, lowest=False)
    state = (((0, (0b0001,)),), ((0, (0b0010,)),))

    found = [*choice.even(state, 6)]

    assert found
    for takes in found:
        loads = Counter(
            slot for m in takes.values() for slot in range(4) if m >> slot & 1
        )
        assert max(loads.values()) - min(loads[slot] for slot in range(4)) <= 1
        assert sum(mask.bit_count() for mask in takes.values()) == 6


# The model of the churn.


@pytest.mark.parametrize("mix", ["any size", "doublings"])
@pytest.mark.parametrize("leaf", [4, 8])
def test_the_model_decides_as_ringleaf_does(mix: str, leaf: int) -> None:
    on = site(f"leaf-spine-512:leaf={leaf},nodes=128")
    session = Session(
        Cluster(
            Node(f"n{at:03}", A2, 8, 0xFF, leaf=f"L{at // leaf:03}", slot=at % leaf)
            for at in range(128)
        ),
        Settings(),
    )
    leaves, running = (
        Leaves(128 // leaf, leaf),
        list[tuple[float, str, dict[int, int]]](),
    )
    seen: Counter[str] = Counter()
    for number, gang in enumerate(churned(mix, on, 0)[:400]):
        for end, name, takes in [each for each in running if each[0] <= gang.at]:
            leaves.give(takes, end)
            with Statement(session.cluster) as statement:
                statement.release(name)
                statement.commit()
        running = [each for each in running if each[0] > gang.at]
        job = Job(f"{number}", A2, 8, gang.nodes, tor_affinity=Schema.LARGE_MODEL)

        decision, ours = session.decide(job), place(leaves, gang.nodes, LISTED)

        if ours is None:
            assert not isinstance(decision, Placed)
            seen["refused"] += 1
            continue
        assert isinstance(decision, Placed)
        assert {p.node for p in decision.placements} == {
            f"n{at * leaf + slot:03}"
            for at, mask in ours.items()
            for slot in range(leaf)
            if mask >> slot & 1
        }
        seen["across" if len(ours) > 1 else "inside"] += 1
        end = gang.at + gang.runs
        leaves.take(ours, end)
        running.append((end, job.name, ours))
    assert min(seen[way] for way in ("refused", "across", "inside")) >= 10


def test_every_choice_of_the_model_breaks_ties_alone() -> None:
    """Each leads to places of the same sort: as many leaves, as much room left."""
    leaves = Leaves(4, 4)
    leaves.take({0: 0b0001}, 9.0)
    leaves.take({1: 0b0001}, 7.0)

    found = {name: place(leaves, 1, tie) for name, tie in TIES.items()}

    assert {next(iter(takes or {})) for takes in found.values()} <= {0, 1}
    assert found["as Ringleaf"] == {1: 0b0010}
    assert found["first listed"] == found["latest end, known before"] == {0: 0b0010}


def test_a_leaf_is_as_before_when_its_jobs_have_ended() -> None:
    leaves = Leaves(3, 4)
    leaves.take({0: 0b1111, 1: 0b0011}, 5.0)
    leaves.take({1: 0b0100}, 6.0)
    leaves.give({0: 0b1111, 1: 0b0011}, 5.0)
    leaves.give({1: 0b0100}, 6.0)

    assert leaves.free == [4, 4, 4]
    assert not any(leaves.crossed)
    assert [leaves.jobs(at) for at in range(3)] == [0, 0, 0]


def test_jobs_stand_where_packing_anew_finds_room() -> None:
    assert can_stand(Counter([6, 2, 4]), 3, 4)
    assert not can_stand(Counter([6, 3, 4]), 3, 4)
    assert not can_stand(Counter([9]), 2, 4)
    for sizes in product((1, 2, 5), repeat=3):
        if can_stand(Counter(sizes), 2, 4):
            assert packs(TINY)(tuple(sorted(sizes)))


def test_nodes_are_counted_from_a_fifth_of_the_gangs_on() -> None:
    gangs = [Gang(2, at, 1.5) for at in (0.0, 1.0, 2.0, 3.0, 4.0)]
    free = of_sets(lambda counts: total(counts) <= 4)

    # From 1 to 4: both for half of the time.
    assert allocated(gangs, 4, free) == pytest.approx((2 + 4) / 2 / 4)
    assert allocated(gangs, 4, under_rule(1, 4, LISTED)) == pytest.approx(0.75)
