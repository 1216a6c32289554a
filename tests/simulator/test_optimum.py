"""The best placement and order of a few gangs, by hand and against the scheduler."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from ringleaf.engine.engine import Engine
from ringleaf.framework.session import Session
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.bounds import makespan_bound
from ringleaf.simulator.clock import play
from ringleaf.simulator.gang_model import LeafCapacity
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.metrics.regret import Regret
from ringleaf.simulator.metrics.wiring import most_in_pods
from ringleaf.simulator.optimum import TimedGang, best_order, best_placement
from ringleaf.simulator.trial import JobSpec, Site, Trial, Workload
from tests.simulator.stage import Stage, nodes, spec

pytest.importorskip("ortools")

A2 = PRODUCTS["atlas-800t-a2"]


def test_gangs_that_fill_the_leaves_are_chosen() -> None:
    # Two leaves of 4. 3 + 3 + 2 would be 8 nodes, but gangs below 4 stay inside one
    # leaf: 3 + 3, or 3 and 2 with 3 in the other. 4 and 3 are 7, 4 + 3 + ... no more.
    assert best_placement(LeafCapacity((4, 4)), [3, 3, 2]).nodes == 6
    assert best_placement(LeafCapacity((4, 4)), [3, 3, 2, 4]).nodes == 7


def test_one_gang_crosses_a_leaf() -> None:
    # Three leaves with 2 free: a gang of 4 takes two of them; a second would have to
    # cross a leaf that the first crosses.
    assert best_placement(LeafCapacity((2, 2, 2)), [4, 4]).nodes == 4
    assert best_placement(LeafCapacity((3, 2, 3)), [4, 4]).nodes == 4
    assert best_placement(LeafCapacity((3, 2, 3), cap=2), [4, 4]).nodes == 8


def test_leaves_that_are_crossed_are_closed() -> None:
    assert best_placement(LeafCapacity((2, 2), crossed=(1, 0)), [4, 2]).nodes == 2


def test_as_few_leaves_as_can_be_are_used() -> None:
    found = best_placement(LeafCapacity((4, 4, 4)), [4, 8])

    assert found.nodes == 12
    assert found.is_proven
    assert sum(n > 0 for own in found.leaves for n in own) == 3


def test_as_few_gangs_as_can_be_meet_where_several_may() -> None:
    # Each gang of 4 needs two leaves. Two of them can do so apart.
    found = best_placement(LeafCapacity((2, 2, 2, 2), cap=2), [4, 4])

    first, second = (frozenset(np.flatnonzero(own)) for own in found.leaves)
    assert found.nodes == 8
    assert not first & second


def test_the_best_is_that_of_trying_everything() -> None:
    rng = np.random.default_rng(910)
    for _case in range(12):
        free = tuple(int(n) for n in rng.integers(0, 4, 3))
        gangs = [int(n) for n in rng.integers(1, 6, 3)]

        found = best_placement(LeafCapacity(free), gangs)

        assert (found.nodes, found.is_proven) == (_tried(free, gangs), True)


def _tried(free: tuple[int, ...], gangs: list[int]) -> int:
    """The most nodes, over every way to give each gang nodes under leaves."""
    ways = [
        [
            way
            for way in product(*(range(min(n, f) + 1) for f in free))
            if sum(way) in {0, n} and (n >= 4 or sum(k > 0 for k in way) <= 1)
        ]
        for n in gangs
    ]
    best = 0
    for choice in product(*ways):
        crossing = [way for way in choice if sum(k > 0 for k in way) > 1]
        fits = all(sum(way[at] for way in choice) <= free[at] for at in range(3))
        alone = all(sum(way[at] > 0 for way in crossing) <= 1 for at in range(3))
        if fits and alone:
            best = max(best, sum(sum(way) for way in choice))
    return best


def test_ringleaf_places_no_more_than_the_best() -> None:
    rng = np.random.default_rng(7)
    ratios = []
    for _case in range(6):
        gangs = [int(n) for n in rng.integers(1, 9, 8)]
        session = Session(Cluster(_leaves(4, 4)))
        jobs = [_gang(f"j{n}", nodes) for n, nodes in enumerate(gangs)]
        placed = [isinstance(session.decide(job), Placed) for job in jobs]
        ours = sum(n for n, on in zip(gangs, placed, strict=True) if on)

        best = best_placement(LeafCapacity((4,) * 4), gangs)

        assert ours <= best.bound
        ratios.append(ours / best.nodes)
    assert max(ratios) == 1


def _leaves(n_leaves: int, size: int) -> list[Node]:
    return [
        Node(f"n{leaf}{slot}", A2, 8, 0xFF, leaf=f"L{leaf}", slot=slot)
        for leaf in range(n_leaves)
        for slot in range(size)
    ]


def _gang(name: str, nodes: int) -> Job:
    return Job(name, A2, 8, nodes, tor_affinity=Schema.LARGE_MODEL)


def test_the_best_order_is_known_for_a_few() -> None:
    # One leaf of 4: 3 nodes for 10 s, 2 for 10 s, 2 for 5 s, 1 for 10 s. 3 and 1 go
    # together for 10 s, then both of 2: 20 s, and 65 node-seconds need 17.
    gangs = [
        TimedGang(3, 0, 10),
        TimedGang(2, 0, 10),
        TimedGang(2, 0, 5),
        TimedGang(1, 0, 10),
    ]

    found = best_order(LeafCapacity((4,)), gangs)

    assert (found.makespan_s, found.is_proven) == (20, True)


def test_waiting_can_be_best() -> None:
    # The gang of 4 comes at 1; starting the gang of 1 before it costs nothing here, as
    # 4 nodes are free only when it has ended: 1 + 10 + 3 at best.
    gangs = [TimedGang(1, 0, 3), TimedGang(4, 1, 10)]

    assert best_order(LeafCapacity((4,)), gangs).makespan_s == 13


def test_too_many_gangs_are_refused() -> None:
    with pytest.raises(ValueError, match="13 gangs are too many, at most 12"):
        best_order(LeafCapacity((4,)), [TimedGang(1, 0, 1)] * 13)
    with pytest.raises(ValueError, match="no order"):
        best_order(LeafCapacity((4,)), [TimedGang(5, 0, 1)])


@pytest.mark.parametrize("seed", range(4))
def test_the_scheduler_is_between_the_best_order_and_its_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gangs = [
        TimedGang(
            int(rng.integers(1, 7)), int(rng.integers(0, 20)), int(rng.integers(1, 30))
        )
        for _gang in range(7)
    ]
    gangs.sort(key=lambda gang: gang.arrives)
    job_specs = [
        JobSpec(_gang(f"j{n}", gang.nodes), gang.arrives, gang.runs_s)
        for n, gang in enumerate(gangs)
    ]
    site = Site("two leaves", tuple(_leaves(2, 4)))
    span = job_specs[-1].arrives - job_specs[0].arrives
    trial = Trial(
        site, Workload("few", "", lambda: iter(job_specs), len(job_specs), span)
    )
    metrics = RunMetrics()
    play(trial, Engine(site.nodes), [metrics])
    makespan = metrics.plain()["work"]["makespan_s"]
    first = gangs[0].arrives

    best = best_order(LeafCapacity((4, 4)), gangs)

    assert best.is_proven
    assert makespan_bound(site, job_specs)[0] <= best.makespan_s - first <= makespan


def test_what_is_left_lying_is_regretted() -> None:
    """Two leaves of two nodes; b, a gang of two, waits from 10 to 20 in vain.

    While a holds one node of four, b could have another leaf: 1 - 8 / 24. From 20 on it
    runs, and nobody waits.
    """
    job_specs = [spec("a", 0, 8), spec("b", 10, 8, 2), spec("c", 30, 1)]
    stage = Stage(nodes("A 2", "B 2"), job_specs, metrics=Regret(every=1))
    stage.at(0).arrive("a").start("a", A0="01234567")
    stage.at(10).arrive("b")
    stage.at(20).start("b", B0="01234567", B1="01234567")
    stage.at(30).arrive("c")
    found = stage.finish().plain()["regret"]

    assert (found["n"], found["mean"]) == (1, pytest.approx(2 / 3))


def test_small_jobs_that_could_run_are_regretted() -> None:
    """Of a node three chips of one ring are left; b could have two of them, c none.

    Of the other node the gang of one takes all: 5 chips are held of 5 + 8 + 2.
    """
    job_specs = [spec("a", 0, 4), spec("a2", 0, 1), spec("b", 1, 2), spec("c", 1, 4)]
    job_specs += [spec("d", 1, 8), spec("e", 9, 1)]
    stage = Stage(nodes("A 2"), job_specs, metrics=Regret(every=1))
    stage.at(0).arrive("a").arrive("a2")
    stage.start("a", A0="0123").start("a2", A0="4")
    stage.at(1).arrive("b").arrive("c").arrive("d")
    found = stage.at(9).arrive("e").finish().plain()["regret"]

    assert (found["n"], found["max"]) == (1, pytest.approx(1 - 5 / 15))


def test_the_most_in_pods_is_that_of_trying_everything() -> None:
    rng = np.random.default_rng(3)
    rings = PRODUCTS["atlas-800-9000"]
    for _case in range(60):
        masks = [int(n) for n in rng.integers(0, 256, 2)]
        pods = [int(n) for n in rng.choice([1, 2, 4, 8], 5)]

        found = most_in_pods(rings, masks, Counter(pods))

        assert found == _packed(tuple(masks), tuple(pods))


def _packed(masks: tuple[int, ...], pods: tuple[int, ...]) -> int:
    """The most chips of *pods*, over every node and ring for every pod."""
    if not pods:
        return 0
    asked, rest = pods[0], pods[1:]
    best = _packed(masks, rest)
    for at, mask in enumerate(masks):
        parts = [mask] if asked == 8 else [mask & 0xF, mask & 0xF0]
        for part in parts:
            if part.bit_count() >= asked:
                chips = [1 << n for n in range(8) if part >> n & 1][:asked]
                left = (*masks[:at], mask & ~sum(chips), *masks[at + 1 :])
                best = max(best, asked + _packed(left, rest))
    return best


def test_who_finds_no_place_is_not_regretted() -> None:
    job_specs = [spec("a", 0, 8, 3), spec("b", 10, 8, 2), spec("c", 30, 1)]
    stage = Stage(nodes("A 2", "B 2"), job_specs, metrics=Regret(every=1))
    stage.at(0).arrive("a").start("a", A0="0", A1="0", B0="0")
    stage.at(10).arrive("b").at(30).arrive("c")

    assert stage.finish().plain()["regret"]["max"] == 0
