"""Rules that look for the smallest part of the network: Volcano's and Kueue's."""

import pytest

from ringleaf.model.job import Job
from tests.baselines.stage import A2, OLD, Stage, drawn, under_leaves

BOTH = ["volcano-hypernode", "kueue-tas", "kueue-tas-least-free", "hived"]


@pytest.mark.parametrize("name", BOTH)
def test_a_job_goes_to_the_leaf_that_it_fills_most(name: str) -> None:
    stage = Stage(name, under_leaves("A ####", "B ###.", "C ##..", "D #..."))

    assert stage.comes(Job("two", A2, 8, 2)) == ["C0", "C1"]
    assert stage.comes(Job("three", A2, 8, 3)) == ["B0", "B1", "B2"]
    assert stage.comes(Job("one", A2, 8, 1)) == ["D0"]


@pytest.mark.parametrize("name", BOTH)
def test_a_job_that_no_leaf_holds_stays_in_one_superpod(name: str) -> None:
    nodes = under_leaves("A/1 ##", "B/2 ##", "C/2 ##", "D/3 ##", "E/3 ##", "F/3 ##")
    stage = Stage(name, nodes)

    assert stage.comes(Job("j", A2, 8, 4)) == ["B0", "B1", "C0", "C1"]


def test_kueue_takes_the_largest_leaves_whole_and_the_tightest_for_the_rest() -> None:
    """Nine pods: four, four, and the one that is left under the leaf with one node."""
    nodes = under_leaves("A #...", "B ####", "C ##..", "D ####")

    found = Stage("kueue-tas", nodes).comes(Job("j", A2, 8, 9))

    assert found == ["A0", "B0", "B1", "B2", "B3", "D0", "D1", "D2", "D3"]


def test_kueues_least_free_takes_the_smallest_leaves_first() -> None:
    nodes = under_leaves("A #...", "B ####", "C ##..", "D ####")

    found = Stage("kueue-tas-least-free", nodes).comes(Job("j", A2, 8, 5))

    assert found == ["A0", "B0", "B1", "C0", "C1"]


def test_kueue_counts_pods_that_share_a_node() -> None:
    """Two nodes under B take two pods each of four chips; A has room for three."""
    nodes = under_leaves("A #-", "B ##")

    found = Stage("kueue-tas", nodes).comes(Job("j", A2, 4, 4))

    assert found == ["B0", "B0", "B1", "B1"]


def test_volcano_goes_on_leaf_by_leaf_where_no_hypernode_holds_the_job() -> None:
    nodes = under_leaves("A ##..", "B ###.", "C ####")

    found = Stage("volcano-hypernode", nodes).comes(Job("j", A2, 8, 6))

    assert found == ["A0", "A1", "B0", "B1", "B2", "C0"]


def test_volcano_prefers_the_superpod_in_which_a_job_already_is() -> None:
    nodes = under_leaves("A/1 ##", "B/2 ##", "C/1 ##", "D/2 ##")

    found = Stage("volcano-hypernode", nodes).comes(Job("j", A2, 8, 6))

    assert found == ["A0", "A1", "C0", "C1", "B0", "B1"]


def test_volcano_weighs_the_leaf_of_a_pod_that_comes_alone() -> None:
    """A pod of one chip: both nodes are as full, but the leaf B is fuller."""
    nodes = under_leaves("A -###", "B -...")

    assert Stage("volcano-hypernode", nodes).comes(Job("j", A2, 1)) == ["B0"]


def test_volcano_weighs_a_leaf_more_than_a_superpod() -> None:
    """A is the leaf with room in a full SuperPoD, B the other way round.

    Without fading both would weigh the same, and A would go first.
    """
    nodes = under_leaves("A/2 -#", "B/1 -.", "C/1 ####", "D/2 ....")

    assert Stage("volcano-hypernode", nodes).comes(Job("j", A2, 1)) == ["B0"]


@pytest.mark.parametrize("name", BOTH)
def test_without_a_network_they_pack_nodes(name: str) -> None:
    nodes = drawn("####|####", "####|....", "##..|....", product=OLD)
    stage = Stage(name, nodes)

    assert stage.comes(Job("j", OLD, 2)) == ["n02"]
    assert stage.comes(Job("k", OLD, 4)) == ["n01"]
    assert stage.comes(Job("l", OLD, 8)) == ["n00"]
    assert stage.comes(Job("m", OLD, 1)) is None


@pytest.mark.parametrize("name", BOTH)
def test_nodes_outside_every_leaf_are_used_too(name: str) -> None:
    nodes = [*under_leaves("A #"), *drawn("####|####", product=A2)]

    assert Stage(name, nodes).comes(Job("j", A2, 8, 2)) is not None
