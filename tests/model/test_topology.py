"""What is wrong with a list of leaf switches: one line for each problem."""

import pytest

from ringleaf.model.placement import LeafState
from ringleaf.model.topology import (
    MAX_SHOWN,
    Server,
    Switch,
    Topology,
    problems_of,
    quoted,
    seats,
    topology_of,
    topology_warnings,
)


def leaf(number: int, *slots: int, address: str = "", prefix: str = "") -> Switch:
    """Leaf ``L1`` with a node in each slot, ``1-0`` in slot 0."""
    name = prefix or f"{number}-"
    servers = tuple(Server(f"{name}{slot}", slot) for slot in slots)
    return Switch(number, address or f"L{number}", servers)


def nodes(*pairs: tuple[str, int]) -> Topology:
    """One leaf of four slots with the named nodes in their slots."""
    return Topology(4, switches=(Switch(0, "L0", tuple(Server(*p) for p in pairs)),))


def found(*switches: Switch, size: int = 4) -> list[str]:
    return problems_of(Topology(size, switches=switches))


def test_full_and_irregular_leaves_are_sound() -> None:
    switches = (leaf(0, 0, 1, 2, 3), leaf(1, 0, 1), leaf(2, 0))
    topology = Topology(4, switches=switches)

    assert problems_of(topology) == []
    assert topology_warnings(topology) == []
    assert topology.n_nodes == 7


def test_no_leaf_at_all() -> None:
    assert found() == ["no leaf is listed (server_list), want at least one"]


@pytest.mark.parametrize("size", [0, -1])
def test_a_leaf_size_that_holds_nothing_is_the_only_problem(size: int) -> None:
    assert found(leaf(0, 0, 1, 3), size=size) == [
        f"nodes per leaf (tor_count) are {size}, want 1 or more"
    ]


def test_an_address_of_two_leaves() -> None:
    assert found(leaf(0, 0, address="same"), leaf(3, 0, address="same")) == [
        (
            "leaf address 'same' (tor_ip) is listed 2 times, with tor_id 0 and 3, "
            "want one leaf per address"
        )
    ]


def test_a_number_of_three_leaves() -> None:
    switches = [leaf(7, 0, address=name, prefix=name) for name in "abc"]

    assert found(*switches) == [
        (
            "tor_id 7 is listed 3 times, at leaves 'a', 'b' and 'c', want one leaf per "
            "tor_id"
        )
    ]


def test_a_node_twice_under_one_leaf() -> None:
    assert problems_of(nodes(("a", 0), ("b", 1), ("a", 2))) == [
        "leaf 0 'L0': node 'a' is listed 2 times, in slots 0 and 2, want once"
    ]


def test_a_node_twice_in_its_own_slot_is_one_problem() -> None:
    assert problems_of(nodes(("a", 0), ("a", 0))) == [
        "leaf 0 'L0': node 'a' is listed 2 times, in slots 0 and 0, want once"
    ]


def test_a_node_under_two_leaves_names_both() -> None:
    assert found(leaf(0, 0, prefix="n"), leaf(1, 0, prefix="n")) == [
        "node 'n0' is under leaf 0 'L0' and leaf 1 'L1', want one leaf"
    ]


def test_a_node_twice_here_and_once_there_is_two_problems() -> None:
    twice = Switch(0, "L0", (Server("n", 0), Server("n", 1)))

    assert found(twice, Switch(1, "L1", (Server("n", 0),))) == [
        "leaf 0 'L0': node 'n' is listed 2 times, in slots 0 and 1, want once",
        "node 'n' is under leaf 0 'L0' and leaf 1 'L1', want one leaf",
    ]


def test_more_nodes_than_a_leaf_has_slots() -> None:
    assert found(leaf(0, 0, 1, 1, 2), size=3)[0] == (
        "leaf 0 'L0': node '0-1' is listed 2 times, in slots 1 and 1, want once"
    )
    assert found(leaf(0, 0, 1, 2), size=2) == [
        "leaf 0 'L0': 3 nodes, want at most 2 (tor_count, nodes per leaf)",
        "leaf 0 'L0': node '0-2' has slot 2 (slice_id), want 0 to 1",
    ]


@pytest.mark.parametrize("slot", [-1, 4, 2**31 - 1])
def test_a_slot_out_of_range_leaves_no_gap(slot: int) -> None:
    assert problems_of(nodes(("a", 0), ("b", slot))) == [
        f"leaf 0 'L0': node 'b' has slot {slot} (slice_id), want 0 to 3"
    ]


def test_two_nodes_in_one_slot() -> None:
    assert problems_of(nodes(("a", 0), ("b", 1), ("c", 1))) == [
        "leaf 0 'L0': nodes 'b' and 'c' are in slot 1, want one node per slot"
    ]


@pytest.mark.parametrize(
    ("slots", "gaps"),
    [
        ((0, 1, 3), ["slot 2 is empty below slot 3, want slots 0 to 2"]),
        ((1, 2, 3), ["slot 0 is empty below slot 1, want slots 0 to 2"]),
        ((3,), ["slots 0 to 2 are empty below slot 3, want slots 0 to 0"]),
        (
            (1, 3),
            [
                "slot 0 is empty below slot 1, want slots 0 to 1",
                "slot 2 is empty below slot 3, want slots 0 to 1",
            ],
        ),
    ],
)
def test_every_gap_is_reported(slots: tuple[int, ...], gaps: list[str]) -> None:
    assert found(leaf(0, *slots)) == [
        f"leaf 0 'L0': {gap} without a gap" for gap in gaps
    ]


def test_a_wide_gap_takes_no_time() -> None:
    (line,) = found(leaf(0, 2**31 - 2), size=2**31 - 1)

    assert line.startswith("leaf 0 'L0': slots 0 to 2147483645 are empty below")


def test_many_names_are_cut() -> None:
    switches = [leaf(7, 0, address=f"L{i}", prefix=f"{i}-") for i in range(20)]
    (line,) = found(*switches)

    assert line.endswith("'L6', 'L7' and 12 more, want one leaf per tor_id")


def test_names_are_quoted_escaped_and_cut() -> None:
    assert quoted("a'\x1b\n") == '"a\'\\x1b\\n"'
    assert quoted("x" * MAX_SHOWN) == f"'{'x' * MAX_SHOWN}'"
    assert quoted("x" * (MAX_SHOWN + 1)) == f"'{'x' * (MAX_SHOWN - 1)}…'"


def test_an_empty_leaf_is_a_warning() -> None:
    topology = Topology(4, switches=(leaf(0, 0), leaf(1)))

    assert problems_of(topology) == []
    assert topology_warnings(topology) == ["leaf 1 'L1': no nodes"]


def test_a_list_out_of_slot_order_is_a_warning() -> None:
    topology = Topology(4, switches=(leaf(0, 1, 0, 2),))

    assert problems_of(topology) == []
    assert topology_warnings(topology) == [
        (
            "leaf 0 'L0': the nodes are listed by slot 1, 0 and 2, want ascending "
            "slots: the vendor's scheduler goes by their order in the list"
        )
    ]


@pytest.mark.parametrize(("size", "n_warnings"), [(128, 0), (129, 1)])
def test_a_leaf_of_more_than_128_nodes_is_a_warning(size: int, n_warnings: int) -> None:
    topology = Topology(size, switches=(leaf(0, 0),))

    assert len(topology_warnings(topology)) == n_warnings
    assert problems_of(topology) == []


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (LeafState.IDLE, "idle"),
        (LeafState.SHARED, "shared"),
        (LeafState.EXCLUSIVE, "exclusive"),
    ],
)
def test_a_leaf_spells_its_state_as_scenario_files_do(
    state: LeafState, word: str
) -> None:
    assert Switch(0, "L0", state=state).state_word == word


def test_pairs_become_leaves_and_slots_in_order_of_appearance() -> None:
    pairs = [("a", ("x", "1")), ("b", ("y", "1")), ("c", ("x", "1"))]
    topology = topology_of(pairs, chips=8)

    assert topology == Topology(
        2,
        switches=(
            Switch(0, "x/1", (Server("a", 0, 8), Server("c", 1, 8))),
            Switch(1, "y/1", (Server("b", 0, 8),)),
        ),
    )
    assert topology_of(pairs, leaf_size=5).leaf_size == 5
    assert topology_of([]) == Topology(1)


def test_leaves_with_similar_addresses_stay_apart_and_are_reported() -> None:
    topology = topology_of([("a", ("x/y", "z")), ("b", ("x", "y/z"))])

    assert len(topology.switches) == 2
    problem = problems_of(topology)[0]
    assert problem.startswith("leaf address 'x/y/z' (tor_ip) is listed 2")


def test_seats_are_slots_and_what_is_left_is_out_of_place() -> None:
    a, b, c, d = Server("a", 2), Server("b", 0), Server("c", 2), Server("d", 9)
    switch = Switch(0, "L", (a, b, c, d))

    assert seats(switch, 4) == ([b, None, a, None], [c, d])


@pytest.mark.parametrize("size", [0, 129])
def test_without_a_useful_leaf_size_nodes_stand_side_by_side(size: int) -> None:
    switch = leaf(0, 5, 3)

    assert seats(switch, size) == ([switch.servers[1], switch.servers[0]], [])
