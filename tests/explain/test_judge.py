"""What is thought of placements that another scheduler made."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from tests.chips import PER_POD, a_job, a_node
from tests.engine.story import NPU, TIERS, conf
from tests.leaves import A2, A3, TWO, large, leaves, superpods

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import JobArrived
from ringleaf.explain.judge import judge, would_start
from ringleaf.explain.match import (
    RULE_WORDS,
    Agreement,
    Because,
    Judgement,
)
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Reason
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Firmness
from ringleaf.model.mask import full_mask
from ringleaf.model.placement import LeafState, Placement
from ringleaf.model.queue import Queue
from ringleaf.model.settings import Settings
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import PRODUCTS

RING, BOX, DUO = "atlas-800-9000", "atlas-200t-a2-box16", "atlas-300i-duo"
CHIPS = "0123456789abcdef"


def at(drawn: str) -> tuple[Placement, ...]:
    """Where pods are: ``a 01; b`` has chips 0 and 1 of a, and chips of b unsaid."""
    found = []
    for replica, place in enumerate(drawn.split("; ")):
        node, _space, chips = place.partition(" ")
        found.append(Placement(replica, node, tuple(CHIPS.index(c) for c in chips)))
    return tuple(found)


def places(placements: Iterable[Placement]) -> str:
    """The same the other way round."""
    return "; ".join(
        f"{each.node} {''.join(CHIPS[chip] for chip in each.chips)}".strip()
        for each in placements
    )


def books(
    nodes: Iterable[Node],
    *,
    leaves: Iterable[Leaf] = (),
    queues: Iterable[Queue] = (),
    settings: Settings | None = None,
    conf: Conf = DEFAULT,
) -> Engine:
    """An engine that keeps the books and decides nothing."""
    used = conf if settings is None else replace(conf, settings=settings)
    return Engine(nodes, leaves, queues, used.quiet)


def rings(*drawings: str) -> Engine:
    """Nodes a, b, ... of two rings of four chips."""
    names = "abcdef"
    drawn = zip(names, drawings, strict=False)
    nodes = [a_node(name, RING, drawing) for name, drawing in drawn]
    return books(nodes, settings=PER_POD)


def judged(engine: Engine, job: Job, theirs: str) -> Judgement:
    """What is thought of *theirs*, in books that have heard of it."""
    placed = at(theirs)
    known = tuple(
        each if each.chips else replace(each, chips=_guess(engine, job, each))
        for each in placed
    )
    engine.handle(JobArrived(job, known), 0.0)
    before = _state(engine.view.cluster)

    found = judge(engine.context, engine.view.job_states[job.name].job, placed)

    assert _state(engine.view.cluster) == before
    return found


def _guess(engine: Engine, job: Job, placed: Placement) -> tuple[int, ...]:
    cluster = engine.view.cluster
    free = cluster.free.item(cluster.index[placed.node])
    return tuple(chip for chip in range(64) if free >> chip & 1)[: job.chips]


def _state(cluster: Cluster) -> Mapping[str, Any]:
    return {
        "free": cluster.free.tolist(),
        "taken": cluster.taken.tolist(),
        "holdings": {name: list(own) for name, own in cluster.holdings.items()},
    }


ONE_POD = [
    pytest.param(["0123|4567"], 2, "a 01", Agreement.SAME, "", id="the same chips"),
    pytest.param(["0123|4567"], 2, "a", Agreement.CHIPS_UNSAID, "", id="chips unsaid"),
    pytest.param(["0123|4567"], 2, "a 67", Agreement.TIE, "", id="a ring as free"),
    pytest.param(["0123|4567"], 2, "a 02", Agreement.TIE, "", id="chips of one ring"),
    pytest.param(
        ["0123|4567", "0123|4567"], 2, "b 01", Agreement.TIE, "", id="a node as good"
    ),
    pytest.param(
        ["0123|45.."],
        2,
        "a 01",
        Agreement.BETTER_RANK,
        "chips",
        id="a ring that suits less",
    ),
    pytest.param(
        ["0123|....", "01..|...."],
        *(2, "a 01", Agreement.BETTER_RANK, "position"),
        id="a node whose ring suits less",
    ),
    pytest.param(
        ["01..|4567", "01..|...."],
        *(2, "a 01", Agreement.BETTER_RANK, "left"),
        id="a node with more left over",
    ),
    pytest.param(
        ["0123|456x", "0123|4567"],
        *(2, "a 01", Agreement.BETTER_RANK, "healthy-chips"),
        id="a node with fewer healthy chips",
    ),
    pytest.param(
        ["01..|4567"], 2, "a 14", Agreement.RULE, "not-wired-together", id="two rings"
    ),
    pytest.param(
        ["0...|.5..", "0123|...."],
        *(2, "a", Agreement.RULE, "not-wired-together"),
        id="no ring of the node has two, and no annotation says which",
    ),
    pytest.param(["x123|4567"], 2, "a 01", Agreement.RULE, "faulty-chips", id="faulty"),
    pytest.param(
        ["0123|4567"], 2, "a 012", Agreement.RULE, "chips-miscounted", id="one too many"
    ),
    pytest.param(
        ["0...|....", "0123|4567"],
        *(2, "a", Agreement.RULE, "too-few-chips"),
        id="a node without room",
    ),
]


@pytest.mark.parametrize(("drawn", "asked", "theirs", "match", "rule"), ONE_POD)
def test_one_pod(
    drawn: list[str], asked: int, theirs: str, match: Agreement, rule: str
) -> None:
    found = judged(rings(*drawn), a_job(RING, asked), theirs)

    assert (found.match, found.rule) == (match, rule)
    assert bool(found.why) == bool(rule)
    assert found.theirs == at(theirs)


def test_a_difference_tells_both_values_in_the_words_of_explain() -> None:
    found = judged(rings("0123|....", "01..|...."), a_job(RING, 2), "a 01")

    assert places(found.ours) == "b 01"
    assert found.why == (
        "ours: ring with 2 free (order 2, 4, 3); "
        "theirs: ring with 4 free (order 2, 4, 3)"
    )


def test_chips_that_are_not_wired_together_are_told_by_group() -> None:
    found = judged(rings("0123|4567"), a_job(RING, 4), "a 0145")

    assert found.why == (
        "a pod needs 4 free chips in one ring, it has chips 0, 1, 4, 5; "
        "its rings have 2, 2 of them"
    )


def test_chips_of_two_rings_tell_how_free_each_is() -> None:
    engine = books([a_node("a", "atlas-300i", "0123|45..")])

    found = judged(engine, a_job("atlas-300i", 3, strategy="chip"), "a 014")

    assert (found.match, found.rule) == (Agreement.BETTER_RANK, "chips")
    assert found.why == (
        "ours: chips 0, 4, 5, 2 of a card with 2 free, 1 of a card with 4 free; "
        "theirs: chips 0, 1, 4, 1 of a card with 2 free, 2 of a card with 4 free"
    )


def test_halves_that_do_not_face_each_other_rank_behind() -> None:
    found = []
    for chips in ("0123489abc", "123459abcd", "012349abcd"):
        engine = books([a_node("a", BOX, "01234567|89abcdef")])
        found.append(judged(engine, a_job(BOX, 10), f"a {chips}"))

    assert [each.match for each in found] == [
        Agreement.SAME,
        Agreement.TIE,
        Agreement.BETTER_RANK,
    ]
    assert found[-1].why == (
        "ours: chips 0, 1, 2, 3, 4, 8, 9, 10, 11, 12, of which 5 pairs face each other;"
        " theirs: chips 0, 1, 2, 3, 4, 9, 10, 11, 12, 13, of which 4 pairs face each "
        "other"
    )


def test_a_sub_healthy_node_ranks_last() -> None:
    sick = a_node("a", RING, "0123|4567", sub_healthy=True)
    engine = books([sick, a_node("b", RING, "0123|4567")])

    found = judged(engine, a_job(RING, 2), "a 01")

    assert (found.match, found.rule) == (Agreement.BETTER_RANK, "sub-healthy")
    assert found.why == "ours: not sub-healthy; theirs: sub-healthy"


def test_chips_that_another_pod_holds_are_a_rule_broken() -> None:
    engine = rings("0123|4567")
    other = replace(a_job(RING, 2), name="other")
    engine.handle(JobArrived(other, at("a 01")), 0.0)

    found = judged(engine, a_job(RING, 2), "a 12")

    assert (found.match, found.rule) == (Agreement.RULE, "chips-taken")
    assert found.why.endswith("it has chips 1, 2, of which chip 1 another pod's")


def test_network_faulty_chips_are_for_jobs_of_one_pod() -> None:
    engine = rings("~123|4567", "0123|4567")
    job = a_job(RING, 4, pods=2)

    found = judged(engine, job, "a 0123; b 0123")

    assert (found.match, found.rule) == (Agreement.RULE, "network-faulty")


SEVERAL = [
    pytest.param("a 01; a 23", Agreement.SAME, "", id="pods that ask the same"),
    pytest.param("a 23; a 01", Agreement.SAME, "", id="in another order"),
    pytest.param("a 01; a", Agreement.CHIPS_UNSAID, "", id="chips unsaid of one"),
    pytest.param(
        "a 01; a 45", Agreement.BETTER_RANK, "chips", id="another ring is opened"
    ),
    pytest.param("b 01; b 23", Agreement.TIE, "", id="on a node as good"),
    pytest.param(
        "b 45; b 67", Agreement.TIE, "", id="on a node as good, with other chips"
    ),
    pytest.param("a 01; b 01", Agreement.BETTER_RANK, "position", id="apart"),
]


@pytest.mark.parametrize(("theirs", "match", "rule"), SEVERAL)
def test_pods_that_are_placed_one_by_one(
    theirs: str, match: Agreement, rule: str
) -> None:
    engine = rings("0123|4567", "0123|4567")

    found = judged(engine, a_job(RING, 2, pods=2), theirs)

    assert (found.match, found.rule) == (match, rule)


def test_roles_are_compared_each_for_itself() -> None:
    roles = Role("driver", 0), Role("worker", 8)
    job = Job("j", A2, 8, 1, roles=roles)
    nodes = [Node(name, A2, 8, full_mask(8)) for name in "ab"]

    same = judged(books(nodes), job, "a 01234567; a")
    tie = judged(books(nodes), replace(job, name="k"), "a 01234567; b")

    assert (same.match, tie.match) == (Agreement.SAME, Agreement.TIE)


def test_scores_of_plugins_decide_where_ranks_tie() -> None:
    room = {"cpu": 10_000, "memory": 10_000}
    nodes = [
        Node(name, A2, 8, full_mask(8), resources=room | {"cpu": cpu})
        for name, cpu in (("a", 10_000), ("b", 40_000))
    ]
    engine = books(nodes, conf=conf(tiers=TIERS))
    job = Job("j", A2, 8, demand=Demand(resources=(("cpu", 2000),)))

    found = judged(engine, job, "b 01234567")

    assert (found.match, found.rule) == (Agreement.BETTER_RANK, "score")
    ours, theirs = (float(each.split()[-1]) for each in found.why.split("; "))
    assert ours > theirs > 0
    assert places(found.ours) == "a 01234567"


def test_summed_scores_outweigh_terms_of_the_rank_and_not_health() -> None:
    affinity = {"name": "affinity", "arguments": {"sum-scores": True}}
    tiers = (("priority", "gang", affinity), ("predicates", "nodeorder"))
    room = {"cpu": 10_000, "memory": 10_000}
    nodes = [
        Node("a", A2, 8, full_mask(8), resources=room),
        Node("b", A2, 8, full_mask(4), resources=room),
        Node("c", A2, 8, full_mask(4), resources=room, sub_healthy=True),
    ]
    summed = conf(tiers=tiers)
    job = Job("j", A2, 4)

    left = judged(books(nodes, conf=summed), job, "a 0123")
    sick = judged(books(nodes, conf=summed), job, "c 0123")

    assert (left.match, left.rule) == (Agreement.BETTER_RANK, "score")
    assert (sick.match, sick.rule) == (Agreement.BETTER_RANK, "sub-healthy")


# Leaves.

ON_LEAVES = [
    pytest.param(3, "B0 B1 B2", Agreement.SAME, "", id="the same nodes"),
    pytest.param(3, "B2 B0 B1", Agreement.SAME, "", id="in another order"),
    pytest.param(3, "B1 B2 B3", Agreement.TIE, "", id="others under the leaf"),
    pytest.param(3, "A0 A1 A2", Agreement.TIE, "", id="under a leaf as free"),
    pytest.param(3, "C0 C1 C2", Agreement.BETTER_RANK, "leaves", id="a larger leaf"),
    pytest.param(3, "A0 B0 A1", Agreement.RULE, "leaf-rule", id="padding stays inside"),
    pytest.param(5, "A0 A1 B0 B1 C0", Agreement.RULE, "leaf-rule", id="uneven slots"),
]


def on_leaves(nodes: str, chips: str = "01234567") -> str:
    return "; ".join(f"{node} {chips}" for node in nodes.split())


def drawn(*rows: str, known: tuple[Leaf, ...] = ()) -> Cluster:
    return leaves(*rows, known=known)


def of(cluster: Cluster) -> list[Node]:
    """The nodes of a cluster, as they were described to it."""
    return [
        Node(
            name,
            cluster.product_of(i),
            cluster.size.item(i),
            cluster.free.item(i),
            leaf=None if (leaf := cluster.leaf_of(i)) is None else leaf.name,
            slot=cluster.slot.item(i),
            superpod=None if cluster.superpod.item(i) < 0 else cluster.superpod.item(i),
            sub_healthy=cluster.sub_healthy.item(i),
        )
        for i, name in enumerate(cluster.names)
    ]


@pytest.mark.parametrize(("pods", "nodes", "match", "rule"), ON_LEAVES)
def test_jobs_under_leaves(pods: int, nodes: str, match: Agreement, rule: str) -> None:
    engine = books(of(drawn("A ####", "B ####", "C ######")))

    found = judged(engine, large(pods), on_leaves(nodes))

    assert (found.match, found.rule) == (match, rule)


def test_leaves_are_told_with_their_fitting_nodes() -> None:
    engine = books(of(drawn("A ####", "B ####", "C ######")))

    found = judged(engine, large(3), on_leaves("C0 C1 C2"))

    assert found.why == (
        "ours: 1 leaf: 3 of 4 fitting nodes under B; "
        "theirs: 1 leaf: 3 of 6 fitting nodes under C"
    )


def test_a_leaf_that_another_job_crosses_is_closed() -> None:
    engine = books(of(drawn("A ####", "B ####", "C ####", "D ####")))
    other = replace(large(4), name="other")
    engine.handle(JobArrived(other, at(on_leaves("A0 A1 B2 B3"))), 0.0)

    found = judged(engine, large(4), on_leaves("A2 A3 C0 C1"))

    assert (found.match, found.rule) == (Agreement.RULE, "leaf-closed")
    assert "leaf A is closed: job other crosses it" in found.why


def test_nodes_of_a_leaf_that_suit_less_rank_behind() -> None:
    engine = books(of(drawn("A s###", "B #")))

    found = judged(engine, large(3), on_leaves("A0 A1 A2"))

    assert (found.match, found.rule) == (Agreement.BETTER_RANK, "sub-healthy")
    assert places(found.ours) == on_leaves("A1 A2 A3")


def test_two_pods_on_a_node_break_the_rule_of_the_network() -> None:
    engine = books(of(drawn("A ####")))

    found = judged(engine, large(2, chips=4), "A0 0123; A0 4567")

    assert (found.match, found.rule) == (Agreement.RULE, "own-pod")


CHIPS_UNDER_LEAVES = [
    pytest.param("A0 0123; A1 0123", Agreement.SAME, id="the same"),
    pytest.param("A0 0123; A1", Agreement.CHIPS_UNSAID, id="unsaid"),
    pytest.param("A0 0123; A1 4567", Agreement.TIE, id="others as good"),
]


@pytest.mark.parametrize(("theirs", "match"), CHIPS_UNDER_LEAVES)
def test_chips_of_jobs_under_leaves(theirs: str, match: Agreement) -> None:
    engine = books(of(drawn("A ##")))

    assert judged(engine, large(2, chips=4), theirs).match is match


def test_chips_under_leaves_that_suit_less_rank_behind() -> None:
    nodes = [
        replace(a_node(f"A{i}", RING, "0123|45.."), leaf="A", slot=i) for i in (0, 1)
    ]
    job = replace(large(2, chips=2), product=PRODUCTS[RING])

    found = judged(books(nodes, settings=PER_POD), job, "A0 45; A1 01")

    assert (found.match, found.rule) == (Agreement.BETTER_RANK, "chips")


IN_2_0 = [
    pytest.param("C0 C1", Agreement.SAME, "", id="the unhealthy leaf first"),
    pytest.param("A0 A1", Agreement.BETTER_RANK, "shared A", id="then a shared one"),
    pytest.param("B0 B1", Agreement.BETTER_RANK, "idle B", id="then an idle one"),
]


@pytest.mark.parametrize(("nodes", "match", "told"), IN_2_0)
def test_the_state_of_leaves_counts_in_2_0(
    nodes: str, match: Agreement, told: str
) -> None:
    known = Leaf("A", state=LeafState.SHARED), Leaf("C", healthy=False)
    engine = books(of(drawn("A ##..", "B ##..", "C ##..")), leaves=known, settings=TWO)

    found = judged(engine, large(2), on_leaves(nodes))

    assert found.match is match
    assert found.rule == ("leaves" if told else "")
    assert told in found.why
    assert not told or "under unhealthy C" in found.why


# SuperPoDs.

ALL = CHIPS
BLOCKS = [
    pytest.param("p0-00 p0-01", Agreement.SAME, "", id="the same nodes"),
    pytest.param("p0-02 p0-03", Agreement.TIE, "", id="others of the SuperPoD"),
    pytest.param("p1-00 p1-01", Agreement.TIE, "", id="of one as free"),
    pytest.param(
        "p2-00 p2-01", Agreement.BETTER_RANK, "superpods", id="of a larger one"
    ),
    pytest.param("p0-00 p1-00", Agreement.RULE, "superpod-rule", id="a block is split"),
]


@pytest.mark.parametrize(("nodes", "match", "rule"), BLOCKS)
def test_blocks_in_superpods(nodes: str, match: Agreement, rule: str) -> None:
    engine = books(of(superpods(4, 4, 6)))
    job = Job("j", A3, 16, 2, sp_block=32)

    found = judged(engine, job, on_leaves(nodes, ALL))

    assert (found.match, found.rule) == (match, rule)
    assert bool(found.why) == bool(rule)


def test_soft_blocks_may_be_split() -> None:
    engine = books(of(superpods(4, 4)))
    job = Job("j", A3, 16, 2, sp_block=32, superpod_affinity=Firmness.SOFT)

    found = judged(engine, job, on_leaves("p0-00 p1-00", ALL))

    assert (found.match, found.rule) == (Agreement.BETTER_RANK, "superpods")
    assert found.why == (
        "ours: 2 of 4 nodes in SuperPoD 0; "
        "theirs: 1 of 4 nodes in SuperPoD 0, 1 of 4 nodes in SuperPoD 1"
    )


ALONE = [
    pytest.param("p1-00", Agreement.SAME, "", id="the smaller SuperPoD"),
    pytest.param("p1-01", Agreement.TIE, "", id="another node of it"),
    pytest.param("p0-00", Agreement.BETTER_RANK, "superpods", id="the larger one"),
]


@pytest.mark.parametrize(("node", "match", "rule"), ALONE)
def test_a_single_pod_in_superpods(node: str, match: Agreement, rule: str) -> None:
    engine = books(of(superpods(6, 4)))

    found = judged(engine, Job("j", A3, 16), f"{node} {ALL}")

    assert (found.match, found.rule) == (match, rule)
    if rule:
        assert found.why == (
            "ours: SuperPoD 1 with 4 such nodes; theirs: SuperPoD 0 with 6 such nodes"
        )


# Jobs that would wait.


def test_a_request_that_contradicts_the_hardware_would_never_start() -> None:
    found = judged(rings("0123|4567"), a_job(RING, 3), "a 012")

    assert (found.match, found.rule) == (Agreement.WAITS_HERE, "never")
    assert found.ours == ()


def test_a_queue_that_has_what_it_may_use_keeps_the_job_waiting() -> None:
    few = Queue("few", capability={NPU: 4000})
    engine = books([Node("a", A2, 8, full_mask(8))], queues=[few])

    found = judged(engine, Job("j", A2, 8, queue="few"), "a 01234567")

    assert (found.match, found.rule) == (Agreement.WAITS_HERE, "queue")
    assert found.why == "queue 'few' has no room: 0 of 4 chips used, job wants 8"


def test_what_the_job_itself_uses_does_not_count_against_its_queue() -> None:
    enough = Queue("enough", capability={NPU: 8000})
    engine = books([Node("a", A2, 8, full_mask(8))], queues=[enough])

    found = judged(engine, Job("j", A2, 8, queue="enough"), "a 01234567")

    assert found.match is Agreement.SAME


def test_a_gang_that_lacks_pods_would_wait() -> None:
    found = judged(rings("0123|4567"), a_job(RING, 2, min_available=3), "a 01")

    assert (found.match, found.rule) == (Agreement.WAITS_HERE, "gang")


def test_a_legal_place_that_is_not_found_is_told_as_such() -> None:
    """Ours takes one pod after the other, and leaves no room for the last."""
    roles = (
        Role("small", 2, demand=Demand(resources=(("cpu", 2000),))),
        Role("large", 2, demand=Demand(resources=(("cpu", 4000),))),
    )
    nodes = [
        Node(name, A2, 8, full_mask(8), resources={"cpu": cpu})
        for name, cpu in (("a", 4000), ("b", 2000))
    ]

    found = judged(books(nodes), Job("j", A2, 2, 2, roles=roles), "b 01; a 01")

    assert (found.match, found.rule) == (Agreement.WAITS_HERE, "no-place")
    assert "a pod of role 'large' finds no node" in found.why


def test_pods_without_chips_are_parted_by_scores_alone() -> None:
    room = {"cpu": 10_000, "memory": 10_000}
    nodes = [
        Node(name, A2, 8, full_mask(8), resources=room | {"cpu": cpu})
        for name, cpu in (("a", 10_000), ("b", 40_000))
    ]
    engine = books(nodes, conf=conf(tiers=TIERS))
    role = Role("only", 0, demand=Demand(resources=(("cpu", 2000),)))

    found = judged(engine, Job("j", A2, 0, 0, roles=(role,)), "b")

    assert (found.match, found.rule) == (Agreement.BETTER_RANK, "score")


def test_jobs_that_came_later_are_left_out_on_demand() -> None:
    engine = rings("0123|4567", "0123|....")
    later = replace(a_job(RING, 2), name="later")
    engine.handle(JobArrived(later, at("b 23")), 0.0)
    job = a_job(RING, 4)

    with_it = judged(engine, job, "b")
    without = judge(engine.context, job, at("b 0123"), ["later", "unknown"])

    assert (with_it.match, with_it.rule) == (Agreement.RULE, "too-few-chips")
    assert without.match is Agreement.SAME


def test_an_elastic_job_is_compared_by_as_many_pods_as_it_has() -> None:
    engine = rings("0123|4567")
    job = a_job(RING, 2, pods=4, min_available=2)

    found = judged(engine, job, "a 01; a 23")

    assert found.match is Agreement.SAME
    assert places(found.ours) == "a 01; a 23"


def test_a_job_that_would_start_is_told_where() -> None:
    job = a_job(RING, 4)
    empty, full = rings("0123|4567"), rings("0...|....")
    for engine in (empty, full):
        engine.handle(JobArrived(job), 0.0)

    found = would_start(empty.context, job)

    assert found is not None
    assert places(found.placements) == "a 0123"
    assert would_start(empty.context, a_job(RING, 3)) is None
    assert would_start(full.context, job) is None


def test_every_rule_has_its_words() -> None:
    assert all(each.words for each in Because)
    assert {*RULE_WORDS} == {*map(str, Reason), *map(str, Because)}


@pytest.mark.parametrize(
    ("theirs", "match", "rule"),
    [
        pytest.param("B0 01234567; B1 01234567", Agreement.SAME, "", id="as ours"),
        pytest.param("C0 01234567; C2 01234567", Agreement.TIE, "", id="another leaf"),
        pytest.param(
            "A0 01234567; B0 01234567", Agreement.BETTER_RANK, "leaves", id="two"
        ),
        pytest.param(
            "B0 01234567; z 01234567", Agreement.BETTER_RANK, "leaves", id="none"
        ),
    ],
)
def test_d38_where_ranks_tie_one_leaf_is_better_than_two(
    theirs: str, match: Agreement, rule: str
) -> None:
    under = {"A": 1, "B": 2, "C": 3}
    nodes = [
        Node(f"{leaf}{i}", A2, 8, full_mask(8), leaf=leaf, slot=i)
        for leaf, size in under.items()
        for i in range(size)
    ]
    nodes.append(Node("z", A2, 8, full_mask(8)))

    found = judged(books(nodes), Job("j", A2, 8, 2), theirs)

    assert (found.match, found.rule) == (match, rule)
    if rule:
        whole = "ours: leaf B, which holds the whole job; theirs: "
        assert found.why.startswith(whole)
