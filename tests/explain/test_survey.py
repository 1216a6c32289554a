"""What a job finds between nodes, taken apart."""

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from tests.leaves import A2, A3, TWO, before, common, hold, large, leaves, superpods

from ringleaf.explain.netview import LeafRule, LeafView, NodeState, SuperpodView
from ringleaf.explain.survey import (
    Candidate,
    RefusedNode,
    enough_to_end,
    look_at,
    network_view,
    survey,
)
from ringleaf.framework.session import Session
from ringleaf.model.arrays import Ints
from ringleaf.model.decision import Reason
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.mask import chips_of, full_mask
from ringleaf.model.placement import LeafState, Placement
from ringleaf.model.settings import Settings
from ringleaf.model.uplinks import Leaf


def _summed(view: LeafView) -> tuple[object, ...]:
    """A leaf in short."""
    word = "closed" * view.closed + "complete" * view.complete
    return view.leaf, view.fitting, view.state, view.crossed_by, word


def _superpod(
    number: int, free: int, *, queue: int, visited: int | None, blocks: int
) -> SuperpodView:
    """A SuperPoD of which all nodes are free."""
    nodes = {NodeState.FREE: free}
    return SuperpodView(number, free, queue, visited, blocks, nodes)


def test_leaves_are_told_with_who_crosses_them() -> None:
    cluster = leaves("A ####", "B ####", "C ####")
    hold(cluster, "other", "A0 B0")

    session, job = Session(cluster), large(5)
    found = survey(session, job, most=3)

    assert [_summed(view) for view in found.leaves] == [
        ("A", 3, "busy", ("other",), "closed"),
        ("B", 3, "busy", ("other",), "closed"),
        ("C", 4, "idle", (), "complete"),
    ]
    assert found.superpods == ()
    assert found.network == network_view(session, job)
    assert found.refused[Reason.LEAF_CLOSED] == ("A1", "A2", "A3", "B1", "B2", "B3")
    assert enough_to_end(session, job) == ("other",)


def test_states_of_leaves_are_told_in_2_0() -> None:
    known = (
        Leaf("A", state=LeafState.SHARED, healthy=False),
        Leaf("B", state=LeafState.EXCLUSIVE),
    )
    cluster = leaves("A ####", "B ####", "C ####", known=known)

    found = survey(Session(cluster, TWO), large(4), most=1)

    assert [view.state for view in found.leaves] == [
        "shared, unhealthy",
        "exclusive",
        "idle",
    ]


def test_superpods_are_told_in_the_order_of_visits() -> None:
    session = Session(superpods(26, 18, 17, 3), Settings(reserve_nodes=2))
    job = Job("j", A3, 16, 16, sp_block=128)

    found = survey(session, job, most=1)

    assert found.superpods == (
        _superpod(1, 18, queue=1, visited=1, blocks=2),
        _superpod(0, 26, queue=1, visited=2, blocks=3),
        _superpod(2, 17, queue=1, visited=None, blocks=2),
        _superpod(3, 3, queue=3, visited=None, blocks=0),
    )


def test_block_by_block_the_visits_are_told_until_nothing_is_wanted() -> None:
    session = Session(superpods(9, 3, 5), Settings(reserve_nodes=1))
    job = Job("j", A3, 16, 12, sp_block=64)

    found = survey(session, job, most=1)

    assert found.superpods == (
        _superpod(2, 5, queue=1, visited=1, blocks=1),
        _superpod(0, 9, queue=1, visited=2, blocks=2),
        _superpod(1, 3, queue=3, visited=None, blocks=0),
    )


def test_one_pod_and_plain_jobs_have_no_such_views() -> None:
    one = survey(Session(superpods(4)), Job("j", A3, 16), most=1)
    plain = survey(Session(leaves("A ##")), Job("j", A2, 8, 2), most=1)

    assert (one.superpods, one.leaves) == ((), ())
    assert (plain.superpods, plain.leaves) == ((), ())


def test_a_node_of_the_job_itself_is_told_as_such() -> None:
    cluster = leaves("A ####")
    hold(cluster, "j", "A0 A1")
    job = replace(large(3), previous=before("A0 A1 A2", failed="A2"))
    session = Session(cluster)

    found = [look_at(session, job, f"A{i}") for i in range(4)]

    reasons = [each.reason if isinstance(each, RefusedNode) else None for each in found]
    assert reasons == [Reason.OWN_POD, Reason.OWN_POD, Reason.FAILED_BEFORE, None]
    assert cluster.holdings.keys() == {"j"}


def test_a_closed_leaf_refuses_its_nodes_and_says_why() -> None:
    cluster = leaves("A ####", "B ####")
    hold(cluster, "other", "A0 B0")

    found = look_at(Session(cluster), large(5), "A1")

    assert found == RefusedNode(
        "A1",
        Reason.LEAF_CLOSED,
        "leaf A is closed to this job: 'other' crosses it, and a second job may not "
        "cross it too",
    )


def test_a_node_full_of_the_job_itself_refuses_more() -> None:
    """Without a network rule its pods that stay hold their chips."""
    cluster = leaves("A ##")
    hold(cluster, "j", "A0")
    job = replace(Job("j", A2, 8, 2), previous=before("A0"))
    session = Session(cluster)

    found = look_at(session, job, "A0")
    waits = survey(session, replace(job, replicas=3), most=1)

    assert isinstance(found, RefusedNode)
    assert found.reason is Reason.TOO_FEW_CHIPS
    assert waits.refused == {Reason.TOO_FEW_CHIPS: ("A0",)}
    assert waits.fitting == 1


def test_a_repaired_job_finds_its_own_leaves_open() -> None:
    cluster = leaves("A ####", "B ####", "C ####")
    nodes = "A0 A1 A2 A3 B0 B1 B2 B3"
    job = replace(large(8), previous=before(nodes, "B0"))
    hold(cluster, "fix", nodes.replace("B0 ", ""))
    session = Session(cluster)
    job = replace(job, name="fix")

    found = survey(session, job, most=1)

    assert [_summed(view) for view in found.leaves] == [
        ("A", 0, "idle", (), ""),
        ("B", 0, "idle", (), ""),
        ("C", 4, "idle", (), "complete"),
    ]
    assert isinstance(found.network_rule, LeafRule)
    assert found.network_rule.slots == ()
    assert enough_to_end(session, job) == ()


def test_a_repaired_job_visits_no_superpods_in_order() -> None:
    cluster = superpods(2, 3)
    chips = chips_of(full_mask(16))
    placements = tuple(
        Placement(i, name, chips) for i, name in enumerate(("p0-00", "p0-01"))
    )
    job = Job("j", A3, 16, 2, previous=Previous(placements, ("p0-00",)))
    hold(cluster, "j", "p0-01")

    found = survey(Session(cluster), job, most=1)

    assert found.superpods == (
        SuperpodView(
            0,
            0,
            queue=3,
            visited=None,
            blocks=0,
            nodes={NodeState.EXCLUDED: 1, NodeState.PARTLY_FREE: 1},
        ),
        _superpod(1, 3, queue=2, visited=None, blocks=1),
    )


def test_the_end_of_a_job_can_make_room_for_a_repair() -> None:
    cluster = leaves("A ####")
    hold(cluster, "j", "A0")
    hold(cluster, "other", "A2")
    hold(cluster, "far", "A3")
    job = replace(large(2), previous=before("A0 A1", "A1"))

    assert enough_to_end(Session(cluster), job) == ("far", "other")


def test_a_job_whose_end_does_not_help_is_not_enough() -> None:
    """A padding job of two pods stays under one leaf."""
    cluster = leaves("A ##", "B #")
    hold(cluster, "beside", "A0")
    hold(cluster, "elsewhere", "B0")

    assert enough_to_end(Session(cluster), large(2)) == ("beside",)


def later(nodes: Ints) -> NDArray[np.float64]:
    """The later name is better."""
    return nodes.astype(np.float64)


def test_scores_are_part_of_the_order_but_not_under_a_network_rule() -> None:
    session = Session(leaves("A #-#"), scorer=lambda _job, _role: later)
    plain, switched = Job("j", A2, 4), common(1, chips=4)

    assert [c.node for c in survey(session, plain, 3).best] == ["A1", "A2", "A0"]
    assert [c.node for c in survey(session, switched, 3).best] == ["A1", "A0", "A2"]
    found = look_at(session, plain, "A0")
    assert isinstance(found, Candidate)
    assert found.place == 3


def test_a_job_of_pods_without_chips_likes_all_nodes_alike() -> None:
    driver = Role("driver", 0, demand=Demand(resources=(("cpu", 1),)))
    job = Job("j", A2, 0, 0, roles=(driver,))

    found = survey(Session(leaves("A .#")), job, most=1)

    assert found.fitting == 2
    assert found.best == (Candidate(1, "A0", ("all nodes are equally good",), ()),)


def test_nodes_that_a_plugin_refuses_are_told() -> None:
    allowed = np.array([True, False])
    session = Session(leaves("A ##"), node_filter=lambda _job, _role: allowed)

    found = survey(session, Job("j", A2, 8), most=1)

    assert found.refused == {Reason.REFUSED: ("A1",)}


def test_d38_the_leaf_of_a_job_without_a_label_is_told() -> None:
    session = Session(leaves("A ###", "B ##", "C #"))
    job = Job("j", A2, 8, 2)

    found = survey(session, job, most=3)

    words = "under B, which holds the whole job"
    assert [each.node for each in found.best] == ["B0", "B1", "A0"]
    assert [words in each.rank for each in found.best] == [True, True, False]
    assert look_at(session, job, "B0") == found.best[0]
