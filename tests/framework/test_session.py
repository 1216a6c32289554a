"""Deciding jobs one after the other."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray
from tests.leaves import (
    A2,
    A3,
    SINGLE,
    TWO,
    before,
    common,
    hold,
    large,
    leaves,
    superpods,
)

from ringleaf.framework.node_ranking import Score
from ringleaf.framework.session import MAX_RANKINGS, Session
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Flags, Ints
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Decision, Invalid, Placed, Reason, Waiting
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.job_labels import Firmness, Schema
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import LeafAnnotation, Placement
from ringleaf.model.product import Product
from ringleaf.model.settings import Settings
from ringleaf.policies.products import PRODUCTS
from ringleaf.policies.room import MANY

# Product, chips asked, and two nodes of the same network status: the groups the pod
# would take from look alike, but the second node is left with fewer free chips.
SAME_STATUS = [
    ("atlas-800-9000", 1, [0, 4, 5], [0, 4]),
    ("atlas-800-9000", 2, [0, 1, 4, 5, 6], [0, 1, 4]),
    ("atlas-800-9000", 4, [0, 1, 2, 3, 4], [0, 1, 2, 3]),
    ("atlas-800t-a2", 2, [0, 1, 2, 3], [5, 6, 7]),
    ("atlas-200t-a2-box16", 3, [0, 1, 2, 8], [0, 1, 2]),
    (
        "atlas-200t-a2-box16",
        10,
        [0, 1, 2, 3, 4, 5, *range(8, 13)],
        [*range(5), *range(8, 13)],
    ),
    ("atlas-800t-a3", 2, [0, 1, 2], [4, 5]),
    ("atlas-300i", 2, [0, 1, 4], [4, 5]),
    ("atlas-300i-duo", 1, [0, 2, 3], [0, 2]),
    ("atlas-310p", 2, [0, 1, 2, 3], [1, 2, 3]),
    ("atlas-350-4p-8", 2, [0, 1, 4], [4, 5]),
]


def node(name: str, product: Product, free: list[int]) -> Node:
    chips = min(product.chips, 16)
    return Node(name, product, chips, mask_of(free), superpod=0)


@pytest.mark.parametrize(("key", "asked", "more", "fewer"), SAME_STATUS)
def test_d31_same_network_status_fewer_fragments(
    key: str, asked: int, more: list[int], fewer: list[int]
) -> None:
    product = PRODUCTS[key]
    cluster = Cluster([node("a", product, more), node("b", product, fewer)])

    decision = Session(cluster).decide(Job("job", product, asked))

    assert isinstance(decision, Placed)
    assert decision.placements[0].node == "b"


def test_a_job_is_decided_once() -> None:
    product = PRODUCTS["atlas-800t-a2"]
    session = Session(Cluster([node("a", product, [0, 1])]))
    session.decide(Job("job", product, 1))

    with pytest.raises(ValueError, match="'job' holds chips already"):
        session.decide(Job("job", product, 1))


def test_a_large_gang_that_does_not_fit_waits_without_touching_the_cluster() -> None:
    product = PRODUCTS["atlas-800t-a2"]
    session = Session(Cluster([node(f"n{i:02}", product, [0, 1]) for i in range(40)]))

    large = session.decide(Job("large", product, 1, replicas=MANY + 17))

    assert isinstance(large, Waiting)
    assert (large.missing, large.fitting) == (1, 40)
    assert not session.cluster.changes
    assert isinstance(session.decide(Job("fits", product, 1, MANY + 16)), Placed)


def whole(*names: str) -> Cluster:
    return Cluster(node(name, A2, [*range(8)]) for name in names)


def nodes_of(session: Session, job: Job) -> list[str]:
    decision = session.decide(job)
    assert isinstance(decision, Placed)
    return [placement.node for placement in decision.placements]


def later(nodes: Ints) -> NDArray[np.float64]:
    """The later name is better."""
    return nodes.astype(np.float64)


def test_d26_scores_decide_where_ranks_tie() -> None:
    cluster = Cluster(
        [node("a", A2, [0, 1]), node("b", A2, [0, 1]), node("c", A2, [0])]
    )
    session = Session(cluster, scorer=lambda _job, _role: later)

    assert nodes_of(session, Job("one", A2, 1, 3)) == ["c", "b", "b"]


def test_d26_summed_scores_outweigh_the_rank_but_not_health() -> None:
    cluster = Cluster(
        [
            node("a", A2, [0]),
            node("b", A2, [0, 1]),
            replace(node("c", A2, [0, 1, 2]), faulty=0x80),
        ]
    )
    session = Session(
        cluster,
        scorer=lambda _job, _role: lambda nodes: 801 * later(nodes),
        sum_scores=True,
    )

    assert nodes_of(session, Job("one", A2, 1, 3)) == ["b", "b", "a"]


def test_pods_that_ask_the_same_share_one_score() -> None:
    asked = []

    def scorer(job: Job, role: Role) -> Score:
        asked.append((job.name, role.chips))
        return later

    session = Session(whole("a", "b"), scorer=scorer)

    assert nodes_of(session, Job("one", A2, 4, 2)) == ["b", "b"]
    assert nodes_of(session, Job("two", A2, 4, 2)) == ["a", "a"]
    assert asked == [("one", 4)]


def test_nodes_that_a_plugin_refuses_are_asked_before_every_pod() -> None:
    """No two pods on one node, as pod anti-affinity would have it."""
    cluster = whole("a", "b", "c")

    def node_filter(job: Job, _role: Role) -> Flags:
        own = [holding.node for holding in cluster.holdings.get(job.name, ())]
        return ~np.isin(np.arange(3), own)

    session = Session(
        cluster, scorer=lambda _job, _role: later, node_filter=node_filter
    )

    assert nodes_of(session, Job("apart", A2, 1, 3)) == ["c", "b", "a"]
    assert isinstance(session.decide(Job("many", A2, 1, 4)), Waiting)


def test_bars_that_allow_everything_change_nothing() -> None:
    session = Session(whole("a", "b"), node_filter=lambda _job, _role: None)

    assert nodes_of(session, Job("one", A2, 8, 2)) == ["a", "b"]


def pods(decision: Decision) -> str:
    """Number, node and role of every pod that was placed."""
    assert isinstance(decision, Placed)
    return drawn(decision.placements)


def drawn(placements: Iterable[Placement]) -> str:
    return " ".join(
        f"{p.replica}{'' if p.role is None else p.role[0]}:{p.node}" for p in placements
    )


def release(cluster: Cluster, job: str) -> None:
    with Statement(cluster) as statement:
        statement.release(job)
        statement.commit()


ELASTIC = Job("j", A2, 8, 5, min_available=2)


@pytest.mark.parametrize(
    ("rows", "limit", "placed"),
    [
        pytest.param("A #####", None, "0:A0 1:A1 2:A2 3:A3 4:A4", id="all of them"),
        pytest.param("A ##.#.", None, "0:A0 1:A1 2:A3", id="as many as fit"),
        pytest.param("A #####", 3, "0:A0 1:A1 2:A2", id="up to the limit"),
        pytest.param("A .#..#", 2, "0:A1 1:A4", id="the least"),
    ],
)
def test_an_elastic_job_gets_as_many_pods_as_fit(
    rows: str, limit: int | None, placed: str
) -> None:
    session = Session(leaves(rows))

    with Statement(session.cluster):
        preview = session.place(ELASTIC, limit)
    assert not session.cluster.holdings
    decision = session.decide(ELASTIC, limit)

    assert pods(decision) == placed
    assert preview == decision


def test_an_elastic_job_waits_below_its_least() -> None:
    session = Session(leaves("A #...."))

    decision = session.decide(ELASTIC)

    assert isinstance(decision, Waiting)
    assert (decision.missing, decision.fitting) == (1, 1)
    assert "needs 5 x 8 chips (2 pods to start), 1 pod has no node" in decision.message
    assert decision.hint == (
        "needs room for 1 more pod: 8 free chips on one node; "
        "2 x 4 chips would be placed now"
    )
    assert not session.cluster.holdings
    assert session.place(ELASTIC) is None


def test_a_quota_below_the_least_places_nothing() -> None:
    session = Session(leaves("A #####"))

    decision = session.decide(ELASTIC, limit=1)

    assert isinstance(decision, Waiting)
    assert (decision.missing, decision.fitting, decision.hint) == (1, 5, "")
    assert decision.because == "its queue allows 1 pod, it needs 2 to start"
    assert session.place(ELASTIC, limit=1) is None
    assert not session.cluster.changes


def elastic(job: Job, least: int) -> Job:
    return replace(job, min_available=least)


@pytest.mark.parametrize(
    ("rows", "job", "settings", "placed"),
    [
        pytest.param(
            ("A ####", "B ##.."),
            elastic(large(8), 4),
            Settings(),
            "0:A0 1:A1 2:A2 3:A3 4:B0 5:B1",
            id="1.0, every slot loaded alike",
        ),
        pytest.param(
            ("A ##..", "B ..#."),
            elastic(large(8), 3),
            Settings(),
            "0:A0 1:A1 2:B2",
            id="foundation by all its pods, so three may cross",
        ),
        pytest.param(
            ("A ##..", "B ..#."),
            elastic(large(3), 1),
            Settings(),
            "0:A0 1:A1",
            id="padding inside one leaf",
        ),
        pytest.param(
            ("A ##..", "B .##."),
            elastic(common(6), 1),
            Settings(),
            "0:A0 1:A1 2:B1 3:B2",
            id="common takes what is open",
        ),
        pytest.param(
            ("A ##..", "B .##."),
            elastic(large(6), 1),
            TWO,
            "0:A0 1:A1 2:B1 3:B2",
            id="2.0, idle leaves",
        ),
        pytest.param(
            ("A ##..", "B .###"),
            elastic(common(6), 2),
            SINGLE,
            "0:B1 1:B2 2:B3",
            id="single layer, one leaf",
        ),
    ],
)
def test_an_elastic_job_is_as_large_as_its_network_rule_allows(
    rows: tuple[str, ...], job: Job, settings: Settings, placed: str
) -> None:
    session = Session(leaves(*rows), settings)

    decision = session.decide(job)

    assert pods(decision) == placed
    assert isinstance(decision, Placed)
    assert {p.mark and p.mark.job_type for p in decision.placements} == {job.job_type}


def test_an_elastic_job_that_a_network_rule_refuses_waits_for_its_least() -> None:
    session = Session(leaves("A ##..", "B ##.."))

    decision = session.decide(elastic(large(3), 3))
    smaller = session.decide(elastic(large(8), 5), hints=False)

    assert isinstance(decision, Waiting)
    assert "stays under one leaf, and none has 3 free nodes" in decision.because
    assert isinstance(smaller, Waiting)
    assert smaller.missing == 1


def blocks(pods: int, least: int | None = None, block: int | None = 2) -> Job:
    """A job in SuperPoDs, *block* nodes a block."""
    chips = None if block is None else 16 * block
    return Job("j", A3, 16, pods, sp_block=chips, min_available=least)


@pytest.mark.parametrize(
    ("free", "job", "placed"),
    [
        ((5,), blocks(8, 3), 4),
        ((5, 2), blocks(8, 3), 6),
        ((3,), blocks(8, 3), None),
        ((3,), blocks(4, 2, None), None),
        ((4,), blocks(4, 2, None), 4),
        ((3, 2), replace(blocks(8, 1), superpod_affinity=Firmness.SOFT), 4),
    ],
    ids=["whole blocks", "two SuperPoDs", "rounded up", "one block", "whole", "soft"],
)
def test_an_elastic_job_in_superpods_is_whole_blocks(
    free: tuple[int, ...], job: Job, placed: int | None
) -> None:
    decision = Session(superpods(*free)).decide(job)

    if placed is None:
        assert isinstance(decision, Waiting)
    else:
        assert isinstance(decision, Placed)
        assert len(decision.placements) == placed


def test_an_elastic_job_is_warned_of_whole_blocks() -> None:
    decision = Session(superpods(5)).decide(blocks(8, 3))

    assert decision.warnings == ("it starts with 4 pods, not 3: whole blocks of 2",)


def test_the_reason_of_an_elastic_job_names_the_blocks_it_needs() -> None:
    decision = Session(superpods(3)).decide(blocks(8, 3))

    assert isinstance(decision, Waiting)
    assert "needs 2 blocks of 2 nodes" in decision.because
    assert "2 x 16 chips with sp-block: 32 would be placed now" in decision.hint


def test_more_pods_join_a_running_job() -> None:
    cluster = leaves("A ##.#")
    hold(cluster, "other", "A3")
    session = Session(cluster)
    first = session.decide(ELASTIC)
    assert isinstance(first, Placed)
    release(cluster, "other")

    assert session.join(ELASTIC, first.placements, limit=2) == ()
    more = session.join(ELASTIC, first.placements)

    assert (pods(first), drawn(more)) == ("0:A0 1:A1", "2:A3")
    assert session.join(ELASTIC, (*first.placements, *more)) == ()
    assert [h.replica for h in cluster.holdings["j"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("rows", "held", "job", "settings", "joined"),
    [
        pytest.param(
            ("A .##.", "B ####"),
            "A0",
            elastic(large(3), 1),
            Settings(),
            "1:A1 2:A2",
            id="padding under its leaf",
        ),
        pytest.param(
            ("A ....", "B ####"),
            "A0",
            elastic(large(3), 1),
            Settings(),
            "",
            id="padding nowhere else",
        ),
        pytest.param(
            ("A ....", "B ####"),
            "A0 A1 A2 A3",
            elastic(large(6), 4),
            Settings(),
            "4:B0 5:B1",
            id="foundation at the slots used least",
        ),
        pytest.param(
            ("A ....", "B ..##"),
            "A0 A1",
            elastic(large(6), 2),
            Settings(),
            "2:B2 3:B3",
            id="foundation evenly",
        ),
        pytest.param(
            ("A ...#", "B ####"),
            "A0 A1 A2",
            elastic(common(6), 2),
            TWO,
            "3:A3",
            id="2.0 under its leaf",
        ),
        pytest.param(
            ("A ...#", "B ####"),
            "A0 A1 A2",
            elastic(common(6), 2),
            SINGLE,
            "3:A3",
            id="single layer under its leaf",
        ),
    ],
)
def test_pods_join_under_the_rule_of_their_job(
    rows: tuple[str, ...], held: str, job: Job, settings: Settings, joined: str
) -> None:
    cluster = leaves(*rows)
    mark = LeafAnnotation(job.job_type)
    there = before(held, mark=mark).placements
    with Statement(cluster) as statement:
        for p in there:
            node, chips = cluster.index[p.node], mask_of(p.chips)
            statement.hold("j", node, chips, p.replica, mark)
        statement.commit()
    was = list(cluster.holdings["j"])

    more = Session(cluster, settings).join(job, there)

    assert drawn(more) == joined
    assert cluster.holdings["j"][: len(was)] == was


@pytest.mark.parametrize("soft", [Firmness.HARD, Firmness.SOFT])
def test_whole_blocks_join_in_superpods(soft: Firmness) -> None:
    cluster = superpods(4, 5)
    session = Session(cluster)
    job = replace(blocks(8, 2), superpod_affinity=soft)
    first = session.decide(job, limit=3)
    assert isinstance(first, Placed)
    assert drawn(first.placements) == "0:p0-00 1:p0-01"

    some = session.join(job, first.placements, limit=5)
    rest = session.join(job, (*first.placements, *some))

    assert drawn(some) == "2:p1-00 3:p1-01"
    assert [p.block for p in (*some, *rest)] == [1, 1, 2, 2, 3, 3]
    assert len(rest) == 4


def test_a_lost_pod_joins_its_block_and_a_block_is_never_half() -> None:
    cluster = superpods(3, 4)
    session = Session(cluster)
    job = blocks(6, 2)
    first = session.decide(job, limit=4)
    assert isinstance(first, Placed)
    assert drawn(first.placements) == "0:p1-00 1:p1-01 2:p0-00 3:p0-01"
    with Statement(cluster) as statement:
        statement.release_pods("j", {2})
        statement.commit()
    held = tuple(p for p in first.placements if p.replica != 2)

    assert drawn(session.join(job, held)) == "2:p0-00 4:p1-02 5:p1-03"


def test_a_pod_on_an_unknown_node_is_not_placed_again() -> None:
    session = Session(leaves("A ####"))
    held = before("gone").placements

    assert drawn(session.join(replace(ELASTIC, replicas=3), held)) == "1:A0 2:A1"
    assert drawn(Session(leaves("A ####")).join(elastic(large(4), 2), held)) == (
        "1:A0 2:A1 3:A2"
    )


def test_a_job_that_lost_pods_gets_back_as_many_as_fit() -> None:
    cluster = leaves("A .#..")

    more = Session(cluster).join(large(3), before("A0").placements[:0])
    hold(cluster, "j", "A0")
    some = Session(cluster).join(large(3), before("A0").placements)

    assert (drawn(more), drawn(some)) == ("", "1:A1")


def test_blocks_that_were_split_are_not_filled_up_by_those_that_join() -> None:
    cluster = superpods(3, 3, 2)
    hold(cluster, "other", "p2-00 p2-01")
    session = Session(cluster)
    job = replace(blocks(8, 2), superpod_affinity=Firmness.SOFT)
    first = session.decide(job)
    release(cluster, "other")
    assert isinstance(first, Placed)
    assert [p.block for p in first.placements] == [0, 0, 1, 1, 2, 3]

    more = session.join(job, first.placements)

    assert drawn(more) == "6:p2-00 7:p2-01"
    assert [p.block for p in more] == [4, 4]


def test_pods_on_sick_chips_stay_when_others_join() -> None:
    cluster = Cluster(
        replace(node(name, A2, [*range(8)]), faulty=name == "a") for name in "ab"
    )
    with Statement(cluster) as statement:
        statement.hold("j", 0, 0xFF)
        statement.commit()

    assert drawn(Session(cluster).join(ELASTIC, before("a").placements)) == "1:b"


DRIVER = Role("driver", 0, demand=Demand(resources=(("cpu", 4),)))
WORKERS = Role("worker", 8, 2, demand=Demand(resources=(("cpu", 8),)))


def team(
    *roles: Role,
    product: Product = A2,
    **more: Any,  # noqa: ANN401 - any field of a job
) -> Job:
    """A job of these roles; chips, replicas and demand are those of its chip pods."""
    with_chips = [role for role in roles if role.chips]
    chips = max((role.chips for role in with_chips), default=0)
    replicas = sum(role.replicas for role in with_chips)
    return Job("j", product, chips, replicas, roles=roles, **more)


def nodes_in(*rows: str) -> list[Node]:
    """The nodes under leaves as they are drawn."""
    cluster = leaves(*rows)
    return [
        Node(name, A2, 8, cluster.free.item(i), leaf=name[0], slot=int(name[1:]))
        for i, name in enumerate(cluster.names)
    ]


def cpus(*rows: str, cpu: int) -> Cluster:
    """Leaves as they are drawn, every node with *cpu* thousandths of a CPU."""
    return Cluster(replace(each, resources={"cpu": cpu}) for each in nodes_in(*rows))


def test_roles_are_placed_together_pods_with_chips_first() -> None:
    session = Session(cpus("A ##.", cpu=12))

    decision = session.decide(team(DRIVER, WORKERS))

    assert pods(decision) == "0w:A0 1w:A1 2d:A0"
    assert isinstance(decision, Placed)
    assert [len(p.chips) for p in decision.placements] == [8, 8, 0]
    assert [
        session.cluster.node_table.resources.room_of(n, "cpu") for n in range(3)
    ] == [
        0,
        4,
        12,
    ]


def test_roles_are_placed_all_or_not_at_all() -> None:
    session = Session(cpus("A ##", cpu=8))

    decision = session.decide(team(DRIVER, WORKERS))
    light = session.decide(team(DRIVER, WORKERS), hints=False)

    assert isinstance(decision, Waiting)
    assert light == replace(decision, hint="")
    assert (decision.missing, decision.fitting) == (1, 0)
    assert decision.reasons == {Reason.TOO_FEW_RESOURCES: 2}
    assert decision.because == "a pod of role 'driver' finds no node"
    assert decision.hint == (
        "needs room for 1 more pod: a node that takes pods and 4m cpu"
    )
    assert not session.cluster.holdings


def test_roles_may_ask_for_different_numbers_of_chips() -> None:
    session = Session(leaves("A #-"))
    job = team(Role("small", 4), Role("tall", 8), Role("late", 4))

    assert isinstance(session.decide(job), Waiting)
    assert pods(session.decide(team(Role("small", 4), Role("tall", 8)))) == (
        "0s:A1 1t:A0"
    )


def test_a_role_is_placed_down_to_its_least() -> None:
    roles = Role("worker", 8, 4, min_available=2), Role("driver", 8, 2, min_available=1)
    session = Session(leaves("A ####"))

    assert (
        pods(session.decide(team(*roles, min_available=3))) == "0w:A0 1w:A1 2w:A3 4d:A2"
    )


def test_what_roles_need_counts_only_within_what_the_job_needs() -> None:
    """As in Volcano: two pods may start, whatever their roles."""
    roles = Role("worker", 8, 4, min_available=2), Role("driver", 8, 2, min_available=1)
    session = Session(leaves("A ##"))

    assert pods(session.decide(team(*roles, min_available=2))) == "0w:A0 1w:A1"


def test_a_job_waits_while_a_role_has_less_than_its_least() -> None:
    roles = Role("worker", 8, 4, min_available=2), Role("driver", 8, 2, min_available=1)
    session = Session(leaves("A ##"))

    decision = session.decide(team(*roles, min_available=3))

    assert isinstance(decision, Waiting)
    assert decision.because == "a pod of role 'driver' finds no node"


def test_roles_together_must_reach_the_least_of_the_job() -> None:
    """Each role may be short, but four pods must start."""
    roles = Role("worker", 8, 3), Role("driver", 8, 3)
    session = Session(leaves("A ###"))

    decision = session.decide(team(*roles, min_available=4))

    assert isinstance(decision, Waiting)
    assert (decision.missing, decision.because) == (
        1,
        "a pod of role 'driver' finds no node",
    )
    assert pods(session.decide(team(*roles, min_available=3))) == "0w:A0 1w:A1 2w:A2"


def test_a_limit_below_the_least_of_all_roles_places_nothing() -> None:
    roles = Role("worker", 8, 4, min_available=2), Role("driver", 8, 2, min_available=1)
    session = Session(leaves("A ####"))

    decision = session.decide(team(*roles, min_available=3), limit=2)
    rounded = Session(superpods(8)).decide(blocks(8, 3), limit=3)

    assert isinstance(decision, Waiting)
    assert isinstance(rounded, Waiting)
    assert decision.because == "its queue allows 2 pods, it needs 3 to start"
    assert rounded.because == "its queue allows 3 pods, it needs 4 to start"
    assert not session.cluster.holdings


def test_roles_under_a_network_rule_are_one_set() -> None:
    """Each seat has room for the larger of the two."""
    cluster = Cluster(
        replace(each, resources={"cpu": 8 if each.name == "A0" else 16})
        for each in nodes_in("A ####", "B ##")
    )
    master = Role("master", 8, demand=Demand(resources=(("cpu", 16),)))
    job = team(master, WORKERS, DRIVER, tor_affinity=Schema.LARGE_MODEL)

    decision = Session(cluster).decide(job)

    assert pods(decision) == "0m:A1 1w:A2 2w:A3 3d:A0"
    assert isinstance(decision, Placed)
    assert [p.mark is None for p in decision.placements] == [False, False, False, True]
    assert [cluster.node_table.resources.room_of(n, "cpu") for n in range(4)] == [
        4,
        0,
        8,
        8,
    ]


def test_under_a_network_rule_pods_without_chips_may_hold_a_job_back() -> None:
    session = Session(cpus("A ##", cpu=8))
    job = team(DRIVER, WORKERS, tor_affinity=Schema.LARGE_MODEL)

    decision = session.decide(job)
    crowded = session.decide(
        team(replace(WORKERS, replicas=3), tor_affinity=Schema.NORMAL)
    )

    assert isinstance(decision, Waiting)
    assert decision.because == "a pod of role 'driver' finds no node"
    assert isinstance(crowded, Waiting)
    assert crowded.missing == 1
    assert not session.cluster.holdings


def test_an_elastic_gang_leaves_room_for_its_pods_without_chips() -> None:
    """A third worker would take the last CPUs, which the driver must have."""
    cluster = cpus("A ###", cpu=8)
    driver = replace(DRIVER, min_available=1)
    workers = replace(WORKERS, replicas=3, min_available=1)
    job = team(driver, workers, min_available=2, tor_affinity=Schema.LARGE_MODEL)

    assert pods(Session(cluster).decide(job)) == "0w:A0 1w:A1 3d:A2"


def test_under_a_network_rule_every_role_has_its_least() -> None:
    roles = Role("worker", 8, 4, min_available=1), Role("master", 8, 2, min_available=1)
    job = team(*roles, min_available=2, tor_affinity=Schema.NORMAL)

    assert isinstance(Session(leaves("A #")).decide(job), Waiting)
    assert pods(Session(leaves("A ##")).decide(job)) == "0w:A0 4m:A1"
    assert pods(Session(leaves("A ###")).decide(job)) == "0w:A0 1w:A1 4m:A2"


def test_pods_of_every_role_join() -> None:
    cluster = cpus("A ##.##", cpu=12)
    hold(cluster, "other", "A3 A4")
    session = Session(cluster)
    drivers = replace(DRIVER, replicas=2, min_available=1)
    workers = replace(WORKERS, replicas=4, min_available=1)
    job = team(drivers, workers, min_available=2, tor_affinity=Schema.NORMAL)
    first = session.decide(job, limit=3)
    release(cluster, "other")
    assert isinstance(first, Placed)
    assert pods(first) == "0w:A0 1w:A1 4d:A0"

    assert drawn(session.join(job, first.placements, limit=4)) == "2w:A3"
    held = (*first.placements, Placement(2, "A3", tuple(range(8)), role="worker"))
    assert drawn(session.join(job, held)) == "3w:A4 5d:A1"


def test_a_job_of_pods_without_chips_is_an_ordinary_one() -> None:
    session = Session(cpus("A ..", cpu=4))

    decision = session.decide(team(replace(DRIVER, replicas=2)))

    assert pods(decision) == "0d:A0 1d:A1"
    assert isinstance(session.decide(Job("none", A2, 0)), Invalid)
    assert session.place(Job("none", A2, 0)) is None


@pytest.mark.parametrize("product", [A2, A3], ids=["switches", "superpods"])
def test_pods_without_chips_follow_no_network_rule(product: Product) -> None:
    job = Job("j", product, 0, 0, tor_affinity=Schema.NORMAL, roles=(DRIVER,))

    assert pods(Session(whole("a")).decide(job)) == "0d:a"


def test_a_single_pod_in_a_superpod_may_have_help() -> None:
    job = Job("j", A3, 16, roles=(Role("one", 16), Role("driver", 0)))

    decision = Session(superpods(1)).decide(job)

    assert pods(decision) == "0o:p0-00 1d:p0-00"
    assert isinstance(decision, Placed)
    assert [p.block for p in decision.placements] == [0, None]


def test_given_ranks_are_dealt_in_their_order() -> None:
    first, second = Role("first", 8, 2, ranks=(7, 2)), Role("second", 8, ranks=(5,))
    job = team(first, second, Role("driver", 0), tor_affinity=Schema.LARGE_MODEL)

    decision = Session(leaves("A ###")).decide(job)

    assert pods(decision) == "2f:A0 5s:A1 7f:A2 0d:A0"


def test_roles_return_to_their_nodes_after_a_fault() -> None:
    cluster = cpus("A ####", cpu=12)
    session = Session(cluster)
    job = team(DRIVER, WORKERS)
    first = session.decide(job)
    assert isinstance(first, Placed)

    previous = Previous(first.placements, failed_nodes=("A1",))
    again = session.decide(replace(job, previous=previous))

    assert pods(again) == "0w:A0 1w:A2 2d:A0"


def test_pods_of_equal_roles_keep_their_own_places() -> None:
    session = Session(leaves("A ####"))
    job = team(Role("master", 8), Role("worker", 8, 2))
    first = session.decide(job)
    assert isinstance(first, Placed)

    previous = Previous(first.placements, failed_nodes=("A1",))
    again = session.decide(replace(job, previous=previous))

    assert pods(again) == "0m:A0 1w:A3 2w:A2"


def test_a_pod_without_chips_that_stays_is_in_no_block() -> None:
    session = Session(superpods(3))
    job = replace(blocks(2), roles=(Role("worker", 16, 2), Role("driver", 0)))
    first = session.decide(job)
    assert isinstance(first, Placed)

    again = session.decide(replace(job, previous=Previous(first.placements)))

    assert isinstance(again, Placed)
    assert again.placements == first.placements
    assert [p.block for p in again.placements] == [0, 0, None]


@pytest.mark.parametrize("keep", [RestartScope.POD, RestartScope.JOB])
def test_roles_under_a_network_rule_return_to_their_nodes_after_a_fault(
    keep: RestartScope,
) -> None:
    cluster = cpus("A ####", cpu=12)
    session = Session(cluster)
    ranked = replace(WORKERS, ranks=(4, 6))
    job = team(DRIVER, ranked, tor_affinity=Schema.LARGE_MODEL)
    first = session.decide(job)
    assert pods(first) == "4w:A0 6w:A1 0d:A0"
    assert isinstance(first, Placed)

    previous = Previous(first.placements, failed_nodes=("A1",), scope=keep)
    again = session.decide(replace(job, previous=previous))

    assert pods(again) == "4w:A0 6w:A2 0d:A0"


def test_given_ranks_keep_their_blocks_after_a_fault() -> None:
    session = Session(superpods(3, 3))
    role = Role("worker", 16, 4, ranks=(1, 3, 5, 7))
    job = replace(blocks(4), roles=(role,))
    first = session.decide(job)
    assert isinstance(first, Placed)
    silent = tuple(replace(p, block=None) for p in first.placements)
    assert pods(first) == "1w:p0-00 3w:p0-01 5w:p1-00 7w:p1-01"

    again = session.decide(replace(job, previous=Previous(silent, ("p1-01",))))

    assert pods(again) == "1w:p0-00 3w:p0-01 5w:p1-00 7w:p1-02"


def test_an_elastic_job_after_a_fault_keeps_what_it_can() -> None:
    session = Session(leaves("A ####"))
    job = elastic(large(4), 2)
    first = session.decide(job)
    assert isinstance(first, Placed)

    previous = Previous(first.placements, failed_nodes=("A1",))
    again = session.decide(replace(job, previous=previous))

    assert pods(again) == "0:A0 2:A2 3:A3"


def test_nodes_that_a_plugin_refuses_are_no_part_of_a_network() -> None:
    def node_filter(_job: Job, role: Role) -> Flags:
        return np.array([True, role.name != "master", True, True, True, True])

    session = Session(leaves("A ###", "B ###"), node_filter=node_filter)
    roles = Role("master", 8), Role("worker", 8, 2)

    decision = session.decide(team(*roles, tor_affinity=Schema.LARGE_MODEL))
    wide = replace(team(*roles, Role("more", 8, 3)), tor_affinity=Schema.LARGE_MODEL)
    waiting = session.decide(replace(wide, name="wide"))

    assert pods(decision) == "0m:B0 1w:B1 2w:B2"
    assert isinstance(waiting, Waiting)
    assert waiting.reasons[Reason.REFUSED] == 1


def test_a_large_gang_with_bars_is_tried() -> None:
    session = Session(whole("a"), node_filter=lambda _job, _role: np.array([True]))

    decision = session.decide(replace(Job("j", A2, 1, MANY), min_available=2))

    assert isinstance(decision, Placed)
    assert len(decision.placements) == 8
    assert session.fits_now(Job("k", A2, 1)) is False


def test_bars_may_open_as_pods_are_placed() -> None:
    """Each node is allowed when the one before it is full."""
    cluster = whole(*"abcdefgh")

    def node_filter(_job: Job, _role: Role) -> Flags:
        return np.arange(8) <= int((cluster.free == 0).sum())

    assert isinstance(
        Session(cluster, node_filter=node_filter).decide(Job("j", A2, 1, MANY)), Placed
    )


@pytest.mark.parametrize(
    ("per_role", "demand", "times"),
    [
        pytest.param(False, NOTHING, 3, id="for every pod"),
        pytest.param(True, NOTHING, 1, id="once for a role, if it says so"),
        pytest.param(True, Demand(ports=("TCP/1",)), 3, id="not where pods heed pods"),
    ],
)
def test_how_often_bars_are_asked_that_refuse_no_node(
    demand: Demand, times: int, *, per_role: bool
) -> None:
    asked = []

    def node_filter(_job: Job, role: Role) -> None:
        asked.append(role)

    session = Session(
        whole(*"abc"), node_filter=node_filter, filter_once_per_role=per_role
    )
    decision = session.decide(Job("j", A2, 8, 3, demand=demand))

    assert isinstance(decision, Placed)
    assert len(asked) == times


def test_only_so_many_orders_of_nodes_are_kept() -> None:
    asked = []

    def scorer(_job: Job, role: Role) -> None:
        asked.append(role.demand.resources[0][1])

    session = Session(whole("a"), scorer=scorer)
    for amount in (*range(MAX_RANKINGS + 1), 1, 0):
        demand = Demand(resources=(("cpu", amount),))
        with Statement(session.cluster):
            session.place(Job("j", A2, 1, demand=demand))

    assert asked == [*range(MAX_RANKINGS + 1), 0]


@pytest.mark.parametrize(
    "job",
    [Job("j", A2, 8, 3), large(3), large(4), common(4)],
    ids=["none", "padding", "foundation", "common"],
)
def test_without_hints_a_pending_job_gets_the_same_reason_and_no_hint(
    job: Job,
) -> None:
    cluster = leaves("A ##..", "B #...")
    hold(cluster, "across", "A0 B0")

    decision = Session(cluster).decide(job)
    light = Session(cluster).decide(job, hints=False)

    assert isinstance(decision, Waiting)
    assert decision.hint
    assert light == replace(decision, hint="")


def test_without_hints_jobs_in_superpods_and_repairs_get_only_a_reason() -> None:
    session = Session(superpods(3))
    broken = replace(large(4), previous=before("A0 A1 A2 A3", "A3"))

    for decision in (
        session.decide(blocks(4), hints=False),
        Session(leaves("A ####")).decide(broken, hints=False),
    ):
        assert isinstance(decision, Waiting)
        assert decision.because
        assert not decision.hint


def test_a_hint_for_roles_names_pods_with_chips_only() -> None:
    roles = Role("worker", 8, 6), Role("driver", 0)
    wide = team(*roles, tor_affinity=Schema.LARGE_MODEL)
    small = replace(team(Role("worker", 16, 4), product=A3), sp_block=64)

    under = Session(leaves("A ##..", "B ##..")).decide(wide)
    inside = Session(superpods(2, 2)).decide(small)

    assert isinstance(under, Waiting)
    assert under.hint.endswith("2 x 8 chips would be placed now")
    assert isinstance(inside, Waiting)
    assert inside.hint == "4 x 16 chips with sp-block: 32 would be placed now"


@pytest.mark.parametrize(
    ("products", "hint"),
    [
        pytest.param(
            [A3, A3],
            "add nodes of atlas-800t-a2",
            id="no node is of its product",
        ),
        pytest.param(
            [A3, A2],
            "needs 8 free chips on one node",
            id="a node of its product is taken",
        ),
    ],
)
def test_a_job_gets_a_hint_where_no_node_has_its_product(
    products: list[Product], hint: str
) -> None:
    cluster = Cluster(node(f"n{i}", product, []) for i, product in enumerate(products))

    decision = Session(cluster).decide(Job("j", A2, 8))

    assert isinstance(decision, Waiting)
    assert decision.hint == hint


def test_the_hint_of_an_elastic_job_is_about_its_min_available() -> None:
    session = Session(leaves("A ##..", "B ##..", "C ...."))

    decision = session.decide(elastic(large(8), 4))

    assert isinstance(decision, Waiting)
    assert decision.hint.startswith(
        "with tor-affinity: normal-schema it would be placed now"
    )


def test_no_pods_join_a_job_that_could_not_be_placed() -> None:
    cluster = Cluster([Node(name, A2, 8, 0xFF) for name in "ab"])
    hold(cluster, "j", "a")

    found = Session(cluster).join(
        Job("j", A2, 9, 2), [Placement(0, "a", tuple(range(8)))]
    )

    assert found == ()


@pytest.mark.parametrize(
    "roles",
    [(Role("w", 16, 2, ranks=(4, 5)),), (Role("w", 16), Role("h", 0, ranks=(1,))), ()],
    ids=["other ranks", "a helper now", "fewer pods"],
)
def test_pods_that_a_job_no_longer_has_are_no_base_for_others(
    roles: tuple[Role, ...],
) -> None:
    """The job changed while they ran; its controller ends them."""
    cluster = superpods(3)
    full = tuple(range(16))
    with Statement(cluster) as statement:
        statement.hold("j", 0, 0xFFFF, 1)
        statement.commit()
    job = Job("j", A3, 16, 1 + (len(roles) == 1), roles=roles)

    session, held = Session(cluster), [Placement(1, "p0-00", full)]

    assert session.join(job, held, limit=1) == ()
    found = session.join(job, held, limit=3)
    assert [p.replica for p in found] == list(job.ranks)


def test_a_job_that_may_start_with_no_pod_starts_with_one() -> None:
    helpers = Job("j", A2, 0, 0, roles=(Role("h", 0, 2),), min_available=0)

    found = Session(Cluster([Node("a", A2, 8, 0, ready=False)])).decide(helpers)

    assert isinstance(found, Waiting)
    assert found.missing == 1
    assert (helpers.effective_min, helpers.min_chip_pods) == (1, 0)


def test_d38_a_pod_that_is_placed_again_comes_to_the_leaf_of_the_others() -> None:
    cluster = leaves("A ####", "B ##")
    held = (Placement(0, "A1", tuple(range(8))),)
    job = Job("j", A2, 8, 2, previous=Previous(held, ("B0",)))

    decision = Session(cluster).decide(job)

    assert isinstance(decision, Placed)
    assert [each.node for each in decision.placements] == ["A1", "A0"]


def test_d38_pods_that_stand_under_two_leaves_prefer_none() -> None:
    cluster = leaves("A ###", "B ####")
    held = (Placement(0, "A1", tuple(range(8))), Placement(1, "B1", tuple(range(8))))
    job = Job("j", A2, 8, 3, previous=Previous(held))

    decision = Session(cluster).decide(job)

    assert isinstance(decision, Placed)
    assert decision.placements[2].node == "A0"


def test_d38_summed_scores_prefer_no_leaf() -> None:
    """As in Volcano; the name decides here."""
    for summed, nodes in ((False, ["B0", "B1"]), (True, ["A0", "B0"])):
        session = Session(leaves("A #", "B ##"), sum_scores=summed)

        decision = session.decide(Job("j", A2, 8, 2))

        assert isinstance(decision, Placed)
        assert [each.node for each in decision.placements] == nodes


def test_roles_for_which_there_are_too_few_nodes_get_no_hint_without_hints() -> None:
    cluster = Cluster([node("a", A2, [*range(8)])])
    roles = Role("m", 8), Role("w", 8)
    job = Job("j", A2, 8, 2, roles=roles)

    found = Session(cluster).decide(job)
    brief = Session(cluster).decide(job, hints=False)

    assert isinstance(found, Waiting)
    assert found.impossible.endswith("have 8 chips, its pods need 16")
    assert found.because == "a pod of role 'w' finds no node"
    assert found.hint == "add nodes of atlas-800t-a2"
    assert isinstance(brief, Waiting)
    assert brief.hint == ""
