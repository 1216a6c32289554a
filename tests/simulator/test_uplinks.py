"""Links between spine and leaves: who is on them, worked out by hand."""

from collections.abc import Iterable
from math import inf
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.engine.engine import Engine
from ringleaf.engine.event import Event, JobArrived
from ringleaf.framework.instruction import Bind, Instruction
from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.clock import play
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.trial import JobSpec, Site, Trial, Workload
from ringleaf.simulator.uplinks import LinkDegrees, Uplinks, hashed_load

A2 = PRODUCTS["atlas-800t-a2"]


def leaves(n_leaves: int, size: int) -> list[Node]:
    return [
        Node(f"n{leaf}{slot}", A2, 8, 0xFF, leaf=f"L{leaf}", slot=slot)
        for leaf in range(n_leaves)
        for slot in range(size)
    ]


def test_a_job_under_one_leaf_is_on_no_link() -> None:
    links = Uplinks(leaves(2, 4))

    assert links.come("a", ["n00", "n01", "n03"]) == set()
    assert (links.degree("a"), links.n_crossing, links.loads()) == (1, 0, {})


def test_a_ring_loads_the_link_from_its_slot_to_the_next_leaf() -> None:
    links = Uplinks(leaves(3, 4))

    links.come("a", ["n00", "n01", "n12", "n22"])

    # n00 -> n01 stays under L0. n01 -> n12 goes over spine 1 to L1, n12 -> n22 over
    # spine 2 to L2, and n22 -> n00 closes the ring over spine 2 to L0.
    assert links.loads() == {(1, 1): 1, (2, 2): 1, (2, 0): 1}


def test_jobs_on_one_link_conflict_and_slow_each_other_down() -> None:
    links = Uplinks(leaves(3, 4))
    links.come("a", ["n01", "n11"])  # links: spine 1 to L1, spine 1 to L0

    assert links.come("b", ["n02", "n12"]) == set()  # spine 2: nobody else
    assert (links.conflicts, links.degree("a")) == (0, 1)
    assert links.come("c", ["n21", "n13"]) == {"a", "c"}  # spine 1 to L1, 3 to L2
    assert (links.conflicts, links.degree("a"), links.degree("c")) == (1, 2, 2)
    assert links.degree("b") == 1
    assert links.slowdown("a", 0.3) == pytest.approx(1.3)  # 1 - 0.3 + 0.3 * 2
    assert links.slowdown("a", 0.5) == pytest.approx(1.5)
    assert links.go("c") == {"a"}
    assert (links.conflicts, links.degree("a")) == (0, 1)


def test_a_job_that_moves_is_on_its_new_links_only() -> None:
    links = Uplinks(leaves(3, 4))
    links.come("a", ["n01", "n11"])
    links.come("b", ["n21", "n13"])

    assert links.come("b", ["n22", "n12"]) == {"a"}
    assert links.loads() == {(1, 1): 1, (1, 0): 1, (2, 1): 1, (2, 2): 1}


def test_pods_on_one_node_are_one_stop_of_the_ring() -> None:
    links = Uplinks(leaves(2, 2))

    links.come("a", ["n00", "n00", "n10", "n10"])

    assert links.loads() == {(0, 1): 1, (0, 0): 1}


@pytest.mark.parametrize(
    ("n", "expected"), [(4, 2.13), (8, 2.61), (16, 3.08), (32, 3.54)]
)
def test_hashed_flows_pile_up_as_balls_in_bins(n: int, expected: float) -> None:
    """Flows of one leaf to as many other leaves: only its uplinks are shared.

    The figures are the expected fullest of n bins after n balls.
    """
    flows = [(slot, 0, 1 + slot) for slot in range(n)]

    found = hashed_load(flows, n_spines=n, n_leaves=n + 1, hashes=4000)

    assert found == pytest.approx(expected, abs=0.05)


def test_the_same_flows_are_hashed_alike() -> None:
    flows = [(0, 0, 1), (1, 0, 1), (2, 1, 0)]

    assert hashed_load(flows, 4, 2) == hashed_load(flows, 4, 2)


JOBS = st.dictionaries(
    st.sampled_from("abcdef"),
    st.lists(st.sampled_from([n.name for n in leaves(3, 3)]), min_size=1, unique=True),
)


@given(JOBS, st.data())
def test_coming_and_going_leaves_nothing_behind(
    jobs: dict[str, list[str]], data: st.DataObject
) -> None:
    links = Uplinks(leaves(3, 3))
    for job, nodes in jobs.items():
        links.come(job, nodes)
    users: dict[tuple[int, int], set[str]] = {}
    alone = {job: Uplinks(leaves(3, 3)) for job in jobs}
    for job, nodes in jobs.items():
        alone[job].come(job, nodes)
        for link in alone[job].loads():
            users.setdefault(link, set()).add(job)

    assert links.conflicts == sum(len(on) - 1 for on in users.values())
    for job in jobs:
        own = [len(users[link]) for link in alone[job].loads()]
        assert links.degree(job) == max(own, default=1)
    for job in data.draw(st.permutations(list(jobs))):
        links.go(job)
    assert (links.conflicts, links.loads(), links.n_crossing) == (0, {}, 0)


def test_a_clock_is_told_the_degree_of_every_job() -> None:
    degrees = LinkDegrees(leaves(3, 4))

    def pods(*nodes: str) -> dict[int, Placement]:
        return {n: Placement(n, node, ()) for n, node in enumerate(nodes)}

    jobs = {"a": pods("n01", "n11"), "c": pods("n21", "n13")}
    assert degrees(jobs, {}) == {"a": 2, "c": 2}  # both: spine 1 to L1
    assert degrees({"a": jobs["a"]}, {}) == {"a": 1}
    moved = {"a": pods("n02", "n12"), "c": jobs["c"]}
    assert degrees(moved, {}) == {"a": 1, "c": 1}


def test_jobs_on_one_link_take_longer_in_time() -> None:
    """A alone on its links for 10 s, with b for the rest: at 1 / 1.5 of its speed.

    Of its 40 s of work, 30 are left at 10: they take 45 s, and a ends at 55. b begins
    at 10 and has done 30 of its 60 s by then; alone it takes 30 s more.
    """
    nodes = tuple(leaves(3, 2))
    job_specs = [
        JobSpec(Job("a", A2, 8, 2), 0.0, 40.0),
        JobSpec(Job("b", A2, 8, 2), 10.0, 60.0),
    ]
    workload = Workload("two", "", lambda: iter(job_specs), 2, 10.0)
    trial = Trial(Site("three", nodes), workload, contention=0.5)
    ends = dict[str, float]()

    class Ends(RunMetrics):
        def ends(self, spec: JobSpec, now: float) -> None:
            super().ends(spec, now)
            ends[spec.job.name] = now

    play(trial, Placer(nodes), [Ends()], degrees=LinkDegrees(nodes))

    assert ends == {"a": 55, "b": 85}


class Placer(Engine):
    """Places a on slot 0 of two leaves, and b so that it shares one of their links.

    a goes back from n10 to n00, over spine 0 to L0; so does b from n20 to n01.
    """

    WHERE: ClassVar = {"a": ("n00", "n10"), "b": ("n20", "n01")}

    def handle_all(
        self, events: Iterable[Event], now: float, most: float = inf
    ) -> list[Instruction]:
        del now, most
        return [
            Bind(
                each.job.name,
                tuple(
                    Placement(n, node, tuple(range(8)))
                    for n, node in enumerate(self.WHERE[each.job.name])
                ),
                ({}, {}),
            )
            for each in events
            if isinstance(each, JobArrived)
        ]
