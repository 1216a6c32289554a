"""What a job finds in the network, as values."""

import pytest
from msgspec import json
from msgspec.structs import replace
from tests.leaves import A2, A3, SINGLE, TWO, common, hold, large, leaves, superpods

from ringleaf.explain.netview import (
    LeafRule,
    NodeState,
    SlotNeed,
    SlotView,
    SuperpodRule,
)
from ringleaf.explain.survey import NetworkView, network_view
from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Firmness
from ringleaf.model.placement import JobType
from ringleaf.model.settings import LeafChoice, Settings, SwitchMode

MARKS = {
    NodeState.FREE: "#",
    NodeState.PARTLY_FREE: "-",
    NodeState.TAKEN: ".",
    NodeState.FAULTY: "!",
    NodeState.EXCLUDED: "/",
}


def found(cluster: Cluster, job: Job, settings: Settings | None = None) -> NetworkView:
    return network_view(Session(cluster, settings), job)


def leaf_rule(cluster: Cluster, job: Job, settings: Settings | None = None) -> LeafRule:
    rule = found(cluster, job, settings).rule
    assert isinstance(rule, LeafRule)
    return rule


def drawn(view: NetworkView) -> list[str]:
    """Every leaf as it is drawn in tests."""
    return [
        f"{leaf.leaf} {''.join(MARKS[slot.state] for slot in leaf.slots)}"
        for leaf in view.leaves
    ]


def test_leaves_are_drawn_by_slots_as_a_pod_finds_them() -> None:
    cluster = leaves("A #.-#", "B ####")

    assert drawn(found(cluster, large(4))) == ["A #.-#", "B ####"]
    assert drawn(found(cluster, large(4, chips=4))) == ["A #.##", "B ####"]


def test_faulty_nodes_differ_from_nodes_of_another_product() -> None:
    nodes = [
        Node("a0", A2, 8, 0xFF, leaf="A", slot=0, ready=False),
        Node("a1", A2, 8, 0xFE, faulty=1, leaf="A", slot=1),
        Node("a2", A3, 16, 0xFFFF, leaf="A", slot=2),
        Node("a3", A2, 8, 0xFF, leaf="A", slot=3),
    ]

    view = found(Cluster(nodes), large(2))

    assert drawn(view) == ["A !!/#"]
    assert [slot.slot for slot in view.leaves[0].slots] == [0, 1, 2, 3]


def test_a_slot_without_a_node_is_left_out() -> None:
    view = found(leaves("A # #", "B ###"), large(2))

    assert view.leaves[0].slots == (
        SlotView(0, "A0", NodeState.FREE),
        SlotView(2, "A2", NodeState.FREE),
    )


def test_nodes_of_cross_leaf_jobs_have_their_names() -> None:
    """Of two such jobs on one node the first by name; others have none."""
    cluster = leaves("A ####", "B ####")
    hold(cluster, "inside", "A3")
    with Statement(cluster) as statement:
        for job, chips in (("y", 0x0F), ("x", 0xF0)):
            for node in ("A0", "B0"):
                statement.hold(job, cluster.index[node], chips)
        statement.commit()

    view = found(cluster, large(5))

    assert [[slot.job for slot in leaf.slots] for leaf in view.leaves] == [
        ["x", "", "", ""],
        ["x", "", "", ""],
    ]
    assert [leaf.crossed_by for leaf in view.leaves] == [("x", "y"), ("x", "y")]
    assert [leaf.closed for leaf in view.leaves] == [True, True]


def test_the_rule_counts_slots_of_open_leaves() -> None:
    cluster = leaves("A .#.#", "B .###", "C ####", "D ####")
    hold(cluster, "x", "C0 D0")

    rule = leaf_rule(cluster, large(5))

    assert rule == LeafRule(
        mode=SwitchMode.SPINE_LEAF_1,
        job_type=JobType.FOUNDATION,
        needed=5,
        leaf_size=4,
        one_leaf=False,
        fitting_in_open_leaves=5,
        complete_leaves=0,
        slots=(
            SlotNeed(0, free=0, needed=1),
            SlotNeed(1, free=2, needed=2),
            SlotNeed(2, free=1, needed=1),
            SlotNeed(3, free=2, needed=1),
        ),
    )


def test_complete_leaves_are_those_of_the_choice_in_force() -> None:
    cluster = leaves("A ####", "B ##", "C #.")
    guide = Settings(leaf_choice=LeafChoice.GUIDE)

    assert leaf_rule(cluster, large(6)).complete_leaves == 2
    assert leaf_rule(cluster, large(6), guide).complete_leaves == 1
    views = found(cluster, large(6), guide).leaves
    assert [view.complete for view in views] == [True, False, False]


@pytest.mark.parametrize(
    ("job", "settings"),
    [
        pytest.param(common(6), Settings(), id="common"),
        pytest.param(large(3), Settings(), id="padding"),
        pytest.param(large(6), TWO, id="2.0"),
        pytest.param(large(6), SINGLE, id="single-layer"),
    ],
)
def test_other_jobs_and_modes_count_no_slots(job: Job, settings: Settings) -> None:
    assert leaf_rule(leaves("A ####", "B ####"), job, settings).slots == ()


def test_padding_jobs_and_jobs_of_a_single_layer_stay_under_one_leaf() -> None:
    cluster = leaves("A ####", "B ####")

    assert leaf_rule(cluster, large(3)).one_leaf
    assert leaf_rule(cluster, large(6), SINGLE).one_leaf
    assert not leaf_rule(cluster, large(6)).one_leaf


def test_a_job_under_the_leaf_rule_finds_no_leaves_where_none_is_known() -> None:
    cluster = Cluster([Node("a", A2, 8, 0xFF)])

    assert found(cluster, large(4)) == NetworkView()


@pytest.mark.parametrize("firmness", list(Firmness))
def test_the_superpod_rule_counts_whole_blocks(firmness: Firmness) -> None:
    job = Job("j", A3, 16, 8, sp_block=64, superpod_affinity=firmness)

    rule = found(superpods(9, 3, 5), job, Settings(reserve_nodes=1)).rule

    assert rule == SuperpodRule(firmness, 8, blocks=2, block_nodes=4, reserve=1, room=3)


def test_superpods_count_their_nodes_by_state() -> None:
    nodes = [
        Node("a", A3, 16, 0xFFFF, superpod=0),
        Node("b", A3, 16, 0, superpod=0),
        Node("c", A3, 16, 0x00FF, superpod=0),
        Node("d", A3, 16, 0xFFFF, superpod=1, ready=False),
        Node("e", A2, 8, 0xFF, superpod=2),
        Node("f", A3, 16, 0xFFFF),
    ]

    views = found(Cluster(nodes), Job("j", A3, 16, 2)).superpods

    assert {view.superpod: dict(view.nodes) for view in views} == {
        0: {NodeState.FREE: 1, NodeState.TAKEN: 1, NodeState.PARTLY_FREE: 1},
        1: {NodeState.FAULTY: 1},
    }
    assert [view.fitting for view in views] == [1, 0]


def test_rules_and_views_have_plain_values() -> None:
    cluster = leaves("A ##", "B ##")
    hold(cluster, "x", "A0 B0")

    view = found(cluster, replace(large(4), name="big"))

    assert json.decode(json.encode(view.rule))["rule"] == "leaf"
    assert json.decode(json.encode(view.leaves[0])) == {
        "leaf": "A",
        "fitting": 1,
        "state": "busy",
        "crossed-by": ["x"],
        "closed": True,
        "complete": False,
        "slots": [
            {"slot": 0, "node": "A0", "state": "taken", "job": "x"},
            {"slot": 1, "node": "A1", "state": "free"},
        ],
    }
