"""The vendor's switch affinities, where they differ from Ringleaf's.

Sources: spec/network.md 3.1 and 3.2, steps in brackets.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import JobArrived
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.simulator.scenario import load
from tests.baselines.stage import A2, Stage, drawn, under_leaves
from tests.policies.test_network_vectors import mode_of
from tests.policies.test_network_vectors import vectors as leaf_vectors
from tests.policies.test_vectors import vectors as chip_vectors


def large(pods: int, name: str = "j", chips: int = 8) -> Job:
    return Job(name, A2, chips, pods, tor_affinity=Schema.LARGE_MODEL)


def common(pods: int, name: str = "j", chips: int = 8) -> Job:
    return Job(name, A2, chips, pods, tor_affinity=Schema.NORMAL)


def marks(stage: Stage, name: str) -> list[LeafAnnotation | None]:
    held = stage.engine.view.job_states[name].placements
    return [held[rank].mark for rank in sorted(held)]


def states(stage: Stage, name: str) -> list[LeafState]:
    return [mark.state for mark in marks(stage, name) if mark is not None]


def test_1_takes_the_tightest_leaf_the_last_listed_among_equals() -> None:
    """[B] Scan from the end."""
    stage = Stage("vendor-1.0", under_leaves("A ####", "B ###.", "C ###."))

    assert stage.comes(large(3)) == ["C0", "C1", "C2"]


def test_1_takes_complete_leaves_and_part_of_another_complete_one() -> None:
    """[D] Six nodes are one leaf and two nodes of the next."""
    stage = Stage("vendor-1.0", under_leaves("A ###.", "B ####", "C ####"))

    assert stage.comes(large(6)) == ["B0", "B1", "B2", "B3", "C0", "C1"]


def test_1_builds_logical_leaves_of_equal_slots() -> None:
    """[E] No leaf is complete: rows of one node at each slot."""
    stage = Stage("vendor-1.0", under_leaves("A ##..", "B ..##", "C ##.."))

    assert stage.comes(large(5)) == ["A0", "A1", "B2", "B3", "C0"]


def test_1_closes_a_leaf_that_a_job_crosses_to_others_that_would() -> None:
    """[A] Twelve nodes, two jobs of six: the second crosses no leaf of the first."""
    stage = Stage("vendor-1.0", under_leaves("A ####", "B ####", "C ####"))
    stage.comes(large(6, "first"))

    assert stage.comes(large(6, "second")) is None
    assert stage.comes(large(2, "inside")) == ["B2", "B3"]


def test_1_lets_common_jobs_cross_leaves_of_common_jobs() -> None:
    """[A, exception] Ringleaf does so only if the operator says so (D12)."""
    nodes = under_leaves("A ####", "B ####", "C ####")
    vendor, ours = Stage("vendor-1.0", nodes), Stage("ringleaf", nodes)
    for stage in (vendor, ours):
        stage.comes(common(6, "first"))

    assert vendor.comes(common(6, "second")) == ["C0", "C1", "C2", "C3", "B2", "B3"]
    assert ours.comes(common(6, "second")) is None


def test_1_takes_nodes_by_slot_whatever_their_chips() -> None:
    """Ringleaf prefers the node in use (D31)."""
    nodes = under_leaves("A ###-")

    assert Stage("vendor-1.0", nodes).comes(large(2, chips=4)) == ["A0", "A1"]
    assert Stage("ringleaf", nodes).comes(large(2, chips=4)) == ["A0", "A3"]


def test_1_lets_a_padding_job_cross_leaves_that_are_smaller_than_it() -> None:
    """Ringleaf keeps it under one leaf (D11)."""
    nodes = under_leaves("A ##", "B ##")

    assert Stage("vendor-1.0", nodes).comes(large(3)) == ["A0", "A1", "B0"]
    assert Stage("ringleaf", nodes).comes(large(3)) is None


def test_1_writes_no_state_on_pods() -> None:
    stage = Stage("vendor-1.0", under_leaves("A ####", "B ####"))

    stage.comes(large(6))

    assert set(marks(stage, "j")) == {LeafAnnotation(JobType.FOUNDATION)}


def test_1_refuses_what_ringleaf_refuses() -> None:
    """[F] A foundation job waits; a common one takes anything."""
    nodes = under_leaves("A #...", "B #...", "C #...", "D #...")

    assert Stage("vendor-1.0", nodes).comes(large(4)) is None
    assert Stage("vendor-1.0", nodes).comes(common(4)) == ["A0", "B0", "C0", "D0"]


def test_2_tries_exclusive_leaves_first_for_a_job_inside_one() -> None:
    """[1] B is exclusive after the first job; its last node goes before idle C."""
    stage = Stage("vendor-2.0", under_leaves("A ####", "B ####", "C #..."))
    stage.comes(large(6, "first"))

    assert stage.nodes_of("first") == ["A0", "A1", "A2", "A3", "B0", "B1"]
    assert states(stage, "first") == [LeafState.EXCLUSIVE] * 4 + [LeafState.SHARED] * 2
    assert stage.comes(large(1, "one")) == ["B2"]


def test_2_puts_the_remainder_on_a_shared_leaf_before_an_idle_one() -> None:
    """[4] Ringleaf takes the idle leaf (D14)."""
    two = replace(DEFAULT, settings=Settings(switch_mode=SwitchMode.SPINE_LEAF_2))
    nodes = under_leaves("A ####", "B ####", "C ####", "D ####")
    vendor = Stage("vendor-2.0", nodes, conf=two)
    ours = Stage("ringleaf", nodes, conf=two)
    for stage in (vendor, ours):
        stage.comes(large(6, "first"))

    assert vendor.comes(large(6, "second")) == ["C0", "C1", "C2", "C3", "B2", "B3"]
    assert ours.comes(large(6, "second")) == ["C0", "C1", "C2", "C3", "D0", "D1"]


def test_2_opens_the_next_idle_leaf_and_not_the_tightest() -> None:
    """[3] After A, B is next in the order of free nodes; C would be tighter."""
    stage = Stage("vendor-2.0", under_leaves("A ####", "B ###.", "C ##.."))

    assert stage.comes(large(5)) == ["A0", "A1", "A2", "A3", "B0"]


def test_2_lets_a_common_job_beyond_capacity_share_and_marks_it_unhealthy() -> None:
    """[5] What is shared beyond the budget turns unhealthy."""
    stage = Stage("vendor-2.0", under_leaves("A ####", "B ####", "C ####"))
    stage.comes(common(6, "first"))
    stage.comes(common(3, "second"))

    found = stage.comes(common(3, "third"))

    assert stage.nodes_of("second") == ["C0", "C1", "C2"]
    assert found == ["C3", "B2", "B3"]


def test_2_makes_a_foundation_job_beyond_capacity_wait() -> None:
    stage = Stage("vendor-2.0", under_leaves("A ####", "B ####"))
    stage.comes(large(6, "first"))

    assert stage.comes(large(4, "second")) is None


def test_labelled_jobs_wait_without_a_topology() -> None:
    nodes = drawn("####|####", product=A2)

    assert Stage("vendor-1.0", nodes).comes(large(1)) is None
    assert Stage("vendor-1.0", nodes).comes(Job("k", A2, 8)) == ["n00"]


# The answers of the vendor's own code, see ``tests.policies.test_vectors``.


def recorded(case: dict[str, Any], name: str) -> Stage:
    """A baseline that was given the one job of a recorded case."""
    (scenario,) = load(json.dumps(case["scenario"]).encode())
    conf = replace(DEFAULT, settings=scenario.settings)
    stage = Stage(name, scenario.nodes, leaves=scenario.leaves, conf=conf)
    stage.happens(*map(JobArrived, scenario.jobs))
    return stage


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_volcano_with_the_plugin_takes_the_nodes_that_the_vendor_took(
    version: str,
) -> None:
    cases = [case for case in leaf_vectors("leaves") if mode_of(case) == version]

    different = [
        case
        for case in cases
        if recorded(case, f"volcano-vendor-{version}").nodes_of("j")
        != case["expect"].get("nodes")
    ]

    assert len(cases) == 500
    assert not different[:1]


def test_volcano_with_the_plugin_takes_the_chips_that_the_vendor_took() -> None:
    def chips(case: dict[str, Any]) -> list[int] | None:
        states = recorded(case, "volcano-vendor-1.0").engine.view.job_states
        held = [p for state in states.values() for p in state.placements.values()]
        return sorted(held[0].chips) if held else None

    cases = chip_vectors()
    different = [c for c in cases if chips(c) != c["expect"].get("chips")]

    assert len(cases) == 1800
    assert not different[:1]
