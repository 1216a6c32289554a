"""Transactions: what is held, taken back, released."""

import pytest
from msgspec.structs import replace

from ringleaf.framework.statement import Statement, release_all
from ringleaf.model.cluster import Cluster, Holding, Node
from ringleaf.model.demand import Demand
from ringleaf.model.placement import JobType, LeafAnnotation, Placement
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]


def one_node(free: int = 0xFF, faulty: int = 0) -> Cluster:
    return Cluster([Node("n", A2, 8, free, faulty)])


def test_a_chip_that_is_held_cannot_be_allocated() -> None:
    cluster = one_node()
    statement = Statement(cluster)
    statement.allocate("one", 0, 0b11)

    with pytest.raises(AssertionError, match="not usable"):
        statement.allocate("two", 0, 0b10)


def test_a_faulty_chip_cannot_be_allocated_but_may_be_held_already() -> None:
    cluster = one_node(faulty=0b1)
    with pytest.raises(AssertionError, match="not usable"):
        Statement(cluster).allocate("one", 0, 0b1)

    Statement(cluster).hold("one", 0, 0b1)

    assert cluster.free.item(0) == 0b1111_1110


def test_chips_that_are_given_back_are_free_if_the_node_offers_them() -> None:
    cluster = one_node()
    Statement(cluster).allocate("one", 0, 0b1111)

    cluster.change(0, Node("n", A2, 8, 0xFF, offers=0b0011_0011))
    assert cluster.free.item(0) == 0b0011_0000
    Statement(cluster).release("one")
    assert cluster.free.item(0) == 0b0011_0011

    cluster.change(0, Node("n", A2, 8, 0xFF))
    assert cluster.free.item(0) == 0xFF


def test_chips_of_a_pod_that_no_node_lists_as_free_are_free_after_it() -> None:
    cluster = one_node(free=0b1111_0000)
    Statement(cluster).hold("one", 0, 0b1111)
    Statement(cluster).release("one")

    assert cluster.free.item(0) == 0xFF


def test_leaving_the_block_without_commit_takes_everything_back() -> None:
    cluster = one_node()
    with Statement(cluster) as statement:
        statement.allocate("one", 0, 0b1111)
        statement.allocate("one", 0, 0b1111_0000)
        statement.release("one")
        statement.hold("two", 0, 0b1)

    assert cluster.free.item(0) == 0xFF
    assert not cluster.holdings
    assert cluster.version == 0


def test_the_version_moves_on_commit_of_a_change_only() -> None:
    cluster = one_node()
    with Statement(cluster) as empty:
        empty.commit()
    assert cluster.version == 0

    with Statement(cluster) as statement:
        statement.allocate("one", 0, 0b1)
        assert cluster.version == 0
        statement.commit()
        assert cluster.version == 1
        statement.rollback()

    assert cluster.version == 1
    assert cluster.free.item(0) == 0b1111_1110


def test_two_nodes_of_one_name_are_no_cluster() -> None:
    with pytest.raises(ValueError, match="same name"):
        Cluster([Node("n", A2, 8, 0xFF), Node("n", A2, 8, 0xFF)])


def test_pods_get_other_labels_where_they_are() -> None:
    cluster = one_node()
    notified: list[tuple[Demand, int]] = []
    cluster.watchers.append(lambda _job, held, by: notified.append((held.demand, by)))
    before = Demand(resources=(("cpu", 1),))
    after, other = replace(before, labels=(("a", "b"),)), Demand(ports=("TCP/1",))
    with Statement(cluster) as statement:
        statement.hold("one", 0, 0b1, 0, demand=before)
        statement.hold("one", 0, 0b10, 1, demand=before)
        statement.commit()
    held = list(cluster.holdings["one"])
    notified.clear()

    with Statement(cluster) as statement:
        assert statement.relabel("one", {0: after, 1: other})
        assert [each.demand for each in cluster.holdings["one"]] == [after, before]
        assert notified == [(before, -1), (after, 1)]

    assert cluster.holdings["one"] == held
    assert cluster.free.item(0) == 0xFC
    assert not Statement(cluster).relabel("one", {0: before})
    assert not Statement(cluster).relabel("none", {0: before})


def test_many_pods_are_held_like_one_after_the_other_and_taken_back() -> None:
    asks = Demand(resources=(("cpu", 1000),))
    held = [
        ("one", Holding(0, 0b1, 0, demand=asks)),
        ("one", Holding(1, 0b1, 1)),
        ("two", Holding(0, 0b10, demand=asks)),
        ("three", Holding(1, 0)),
    ]
    both = [
        Cluster(
            [
                Node(name, A2, 8, 0xF0, leaf=name, resources={"cpu": 4000})
                for name in "ab"
            ]
        )
        for _each in range(2)
    ]
    notified: list[tuple[str, Holding, int]] = []
    both[0].watchers.append(lambda *what: notified.append(what))

    with Statement(both[0]) as many, Statement(both[1]) as each:
        many.hold_many(held)
        for name, one in held:
            each.hold(name, one.node, one.chips, one.replica, demand=one.demand)

        assert both[0].free.tolist() == both[1].free.tolist() == [0xF0, 0xF0]
        assert both[0].taken.tolist() == both[1].taken.tolist() == [0b11, 0b1]
        assert both[0].pool.tolist() == both[1].pool.tolist() == [0xF3, 0xF1]
        assert (
            both[0].node_table.resources.room.tolist()
            == both[1].node_table.resources.room.tolist()
        )
        assert both[0].holdings == both[1].holdings
        assert both[0].changes == both[1].changes == [0, 1, 0, 1]
        assert both[0].uplinks.crossings() == both[1].uplinks.crossings()
        assert notified == [(name, one, 1) for name, one in held]

    assert both[0].holdings == {}
    assert both[0].free.tolist() == both[1].free.tolist()
    assert both[0].taken.tolist() == [0, 0]
    assert both[0].node_table.resources.room.tolist() == [[4000, 4000]]
    assert both[0].uplinks.crossings() == {}
    assert notified[len(held) :] == [(name, one, -1) for name, one in reversed(held)]


def test_the_log_of_changes_does_not_grow_for_ever() -> None:
    cluster = Cluster([Node("a", A2, 8, 0xFF)])
    pods = [("job", Holding(0, 0, n)) for n in range(cluster.most_changes + 1)]

    with Statement(cluster) as statement:
        statement.hold_many(pods)
        epoch = cluster.epoch

    assert epoch == 1
    assert len(cluster.changes) < len(pods)


def test_a_place_is_held_with_all_that_it_says_or_with_some_of_its_chips() -> None:
    cluster = one_node()
    asks, mark = Demand(resources=(("cpu", 1),)), LeafAnnotation(JobType.COMMON)
    place = Placement(3, "n", (0, 1, 2), mark=mark)
    with Statement(cluster) as statement:
        statement.hold_placement("one", place, asks)
        statement.hold_placement("two", replace(place, mark=None), chips=0b1000)
        statement.commit()

    assert cluster.holdings["one"] == [Holding(0, 0b111, 3, mark, asks)]
    assert cluster.holdings["two"] == [Holding(0, 0b1000, 3)]


def test_an_owner_that_releases_everything_holds_nothing_even_if_it_held_nothing() -> (
    None
):
    cluster = one_node()
    Statement(cluster).hold("one", 0, 0b11)

    release_all(cluster, "one")
    release_all(cluster, "one")

    assert cluster.free.item(0) == 0xFF
