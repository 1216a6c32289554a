"""Packers that count chips: which node they take, and which chips of it."""

from collections import Counter

import pytest

from ringleaf.model.cluster import Node
from ringleaf.model.job import Job
from tests.baselines.stage import OLD, Stage, drawn

FULL, HALF, ODD, SCANT = "####|####", "####|....", "#..#|##..", "##..|...."


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("first-fit", "n00"),
        ("best-fit", "n03"),
        ("worst-fit", "n00"),
        ("least-allocated", "n00"),
        ("most-allocated", "n03"),
        ("volcano-binpack", "n03"),
    ],
)
def test_a_packer_takes_the_node_that_its_rule_likes(name: str, node: str) -> None:
    stage = Stage(name, drawn(FULL, HALF, ODD, SCANT))

    assert stage.comes(Job("j", OLD, 2)) == [node]


def test_chips_are_the_lowest_whatever_the_rings() -> None:
    stage = Stage("best-fit", drawn(ODD))

    stage.comes(Job("j", OLD, 2))

    assert stage.chips_of("j") == [(0, 3)]


def test_a_pod_crosses_rings_where_ringleaf_would_wait() -> None:
    nodes = drawn("##..|##..")

    assert Stage("ringleaf", nodes).comes(Job("j", OLD, 4)) is None
    assert Stage("first-fit", nodes).comes(Job("j", OLD, 4)) == ["n00"]


def test_pods_of_a_gang_see_what_the_pods_before_took() -> None:
    a2 = drawn(FULL, HALF, product=OLD)
    job = Job("j", OLD, 8, 1)

    stage = Stage("best-fit", a2)

    assert stage.comes(Job("small", OLD, 4)) == ["n01"]
    assert stage.comes(job) == ["n00"]
    assert stage.comes(Job("more", OLD, 1)) is None


def test_shares_count_chips_that_work() -> None:
    """Five of six used is more than six of eight: the ratio, not the number."""
    broken = Node("n00", OLD, 8, 0b0011_0000, faulty=0b1100_0000)
    whole = Node("n01", OLD, 8, 0b0011_0000)

    assert Stage("most-allocated", [broken, whole]).comes(Job("j", OLD, 1)) == ["n01"]
    assert Stage("least-allocated", [broken, whole]).comes(Job("j", OLD, 1)) == ["n00"]


def test_volcano_and_kubernetes_draw_among_equals_and_best_fit_does_not() -> None:
    nodes = drawn(*[FULL] * 16)

    def chosen(name: str) -> set[str]:
        found = [Stage(name, nodes, seed=s).comes(Job("j", OLD, 1)) for s in range(9)]
        return {nodes[0] for nodes in found if nodes}

    assert chosen("best-fit") == {"n00"}
    for name in ("least-allocated", "most-allocated", "volcano-binpack"):
        assert len(chosen(name)) > 3


def test_random_takes_every_node_about_as_often() -> None:
    nodes = drawn(FULL, FULL, "....|....", HALF)
    jobs = [Job(f"j{i}", OLD, 4) for i in range(300)]

    found = Counter(
        node for job in jobs for node in Stage("random", nodes).comes(job) or ()
    )

    assert set(found) == {"n00", "n01", "n03"}
    assert min(found.values()) > 70


def test_random_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    nodes = drawn(*[FULL] * 32)
    gang = Job("j", OLD, 8, 8)

    def chosen(seed: int) -> list[str] | None:
        return Stage("random", nodes, seed=seed).comes(gang)

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)
