"""Nodes that change in part, and leaves that are named by a template."""

import pytest

from ringleaf.engine.event import NodesChanged
from ringleaf.model.cluster import Node
from ringleaf.simulator.scenario import Scenario, load
from ringleaf.simulator.source import BadInput

TWO = """
nodes:
- {name: "n{i}", count: 2, product: atlas-800t-a2, leaf: "L{i}", faulty: [7],
   labels: {zone: a}}
"""


def scenario(text: str) -> Scenario:
    (found,) = load(text.encode())
    return found


def changed(text: str) -> list[Node]:
    """The nodes that change in ``then``, in their order."""
    events = [each.event for each in scenario(text).then]
    return [node for e in events if isinstance(e, NodesChanged) for node in e.nodes]


def test_a_node_without_a_product_changes_what_it_says_and_nothing_else() -> None:
    then = "then: [{at: 5, nodes: [{name: n1, unschedulable: true}]}]"
    (before,) = [node for node in scenario(TWO).nodes if node.name == "n1"]

    (after,) = changed(TWO + then)

    assert after.cordoned
    assert not before.cordoned
    assert (after.product, after.leaf, after.faulty) == (before.product, "L1", 1 << 7)
    assert after.labels == {"zone": "a"}


def test_changes_add_up() -> None:
    first = "{at: 5, nodes: [{name: n0, faulty: [1]}]}"
    second = "{at: 6, nodes: [{name: n0, ready: false}, {name: n1, faulty: []}]}"

    one, two, other = changed(f"{TWO}then: [{first}, {second}]")

    assert (one.faulty, one.ready) == (1 << 1, True)
    assert (two.faulty, two.ready) == (1 << 1, False)
    assert other.faulty == 0


def test_a_node_with_a_product_is_told_anew() -> None:
    then = "then: [{at: 5, nodes: [{name: n0, product: atlas-800t-a2}]}]"

    (node,) = changed(TWO + then)

    assert (node.leaf, node.faulty, node.labels) == (None, 0, {})


def test_a_node_that_came_later_changes_in_part_too() -> None:
    new = "{at: 5, nodes: [{name: x, product: atlas-800t-a2, faulty: [2]}]}"
    then = f"then: [{new}, {{at: 6, nodes: [{{name: x, ready: false}}]}}]"

    _new, after = changed(TWO + then)

    assert (after.faulty, after.ready) == (1 << 2, False)


@pytest.mark.parametrize(
    ("then", "line"),
    [
        (
            "{at: 5, nodes: [{name: n9, ready: false}]}",
            (
                "then[0].nodes[0].name is 'n9', want the name of a node; "
                "hint: nodes are listed under nodes"
            ),
        ),
        (
            "{at: 5, nodes-gone: [n0]}, {at: 6, nodes: [{name: n0, ready: false}]}",
            "then[1].nodes[0].name is 'n0', want the name of a node",
        ),
        (
            "{at: 5, nodes: [{name: n0, redy: false}]}",
            "then[0].nodes[0] has the unknown key 'redy'",
        ),
        (
            "{at: 5, nodes: [{name: 'n{i}', count: 2, ready: false}]}",
            "then[0].nodes[0].product is missing",
        ),
    ],
)
def test_what_cannot_change_is_one_line(then: str, line: str) -> None:
    with pytest.raises(BadInput) as raised:
        load(f"{TWO}then: [{then}]".encode())

    assert str(raised.value).startswith(line)


@pytest.mark.parametrize("nodes", ["3", "[3, {name: 4}, {name: x, count: many}]"])
@pytest.mark.parametrize(
    "then", ["{at: 1, nodes: [{name: n0}]}", "3, {nodes: [{name: n0}], nodes-gone: 3}"]
)
def test_what_is_no_list_of_nodes_is_refused_when_it_is_read(
    nodes: str, then: str
) -> None:
    with pytest.raises(BadInput):
        load(f"nodes: {nodes}\nthen: [{then}]".encode())


def test_a_count_that_nobody_can_have_is_refused_and_not_counted_to() -> None:
    many = "nodes: [{name: 'n{i}', count: 1000000000000, product: atlas-800t-a2}]\n"
    with pytest.raises(BadInput, match=r"nodes\[0\].count is 1000000000000, want"):
        load(f"{many}then: [{{at: 1, nodes: [{{name: n0}}]}}]".encode())


@pytest.mark.parametrize(
    ("leaf", "leaves"),
    [
        ("L{i/2}", ["L0", "L0", "L1", "L1", "L2"]),
        ("L{i%2}", ["L0", "L1", "L0", "L1", "L0"]),
        ("{i}", ["0", "1", "2", "3", "4"]),
        ("{i/2}-{i%2}", ["0-0", "0-1", "1-0", "1-1", "2-0"]),
        ("L", ["L"] * 5),
        ("{j}", ["{j}"] * 5),
    ],
)
def test_a_template_names_the_leaf_of_each_node(leaf: str, leaves: list[str]) -> None:
    found = scenario(
        f"nodes: [{{name: 'n{{i}}', count: 5, product: atlas-800t-a2, leaf: '{leaf}'}}]"
    )

    assert [node.name for node in found.nodes] == ["n0", "n1", "n2", "n3", "n4"]
    assert [node.leaf for node in found.nodes] == leaves


@pytest.mark.parametrize("leaf", ["{i/0}", "L{i//4}", "L{i+1}", "L{i"])
def test_a_template_that_fills_in_nothing_is_refused(leaf: str) -> None:
    text = (
        f"nodes: [{{name: 'n{{i}}', count: 5, product: atlas-800t-a2, leaf: '{leaf}'}}]"
    )

    with pytest.raises(BadInput, match=r"nodes\[0\]\.leaf is .*, want \{i\}, \{i/N\}"):
        load(text.encode())


def test_slots_count_under_each_leaf() -> None:
    found = scenario(
        "nodes: [{name: 'n{i}', count: 4, product: atlas-800t-a2, leaf: 'L{i%2}'}]"
    )

    assert [node.slot for node in found.nodes] == [0, 0, 1, 1]


def test_a_leaf_without_count_is_no_template() -> None:
    found = scenario("nodes: [{name: n, product: atlas-800t-a2, leaf: 'L{i}'}]")

    assert [node.leaf for node in found.nodes] == ["L{i}"]


def test_running_jobs_stand_under_the_leaves_of_a_template() -> None:
    """The state of a leaf follows from the jobs that cross it."""
    found = scenario(
        """
settings: {nslb-version: "2.0"}
nodes: [{name: "n{i}", count: 4, product: atlas-800t-a2, leaf: "L{i/2}"}]
running:
- {name: old, replicas: 2, chips: 8, tor-affinity: normal-schema, placements: [
    {replica: 0, node: n0, chips: [0, 1, 2, 3, 4, 5, 6, 7]},
    {replica: 1, node: n2, chips: [0, 1, 2, 3, 4, 5, 6, 7]}]}
jobs: [{name: new, chips: 8}]
"""
    )

    assert found.open().cluster.leaf.tolist() == [0, 0, 1, 1]
