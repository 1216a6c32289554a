"""Ranks and refusals as people read them."""

from typing import Final

import pytest
from msgspec.structs import replace

from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Reason
from ringleaf.model.demand import NOTHING, Demand, Effect, Operator, Requirement, Taint
from ringleaf.model.job import Job
from ringleaf.model.product import Term
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.fit import REASONS, node_ranks, node_reasons, request_of
from ringleaf.policies.words import groups_free, rank_words, refusal_words
from tests.chips import a_job, a_node

EIGHT: Final = "8 of 8 chips healthy"
SIXTEEN: Final = "16 of 16 chips healthy"


def words_of(job: Job, node: Node) -> list[str]:
    """The rank of *node* for one pod of *job*, in words."""
    cluster, request = Cluster([node]), request_of(job)
    return rank_words(cluster, request, 0, node_ranks(cluster, request).item(0))


@pytest.mark.parametrize(
    ("job", "drawing", "words"),
    [
        pytest.param(
            a_job("atlas-800-9000", 1),
            "0...|4567",
            [EIGHT, "ring with 1 free (order 1, 3, 2, 4)", "4 free chips left over"],
            id="9000, 1",
        ),
        pytest.param(
            a_job("atlas-800-9000", 2),
            "012.|4567",
            [EIGHT, "ring with 4 free (order 2, 4, 3)", "5 free chips left over"],
            id="9000, 2",
        ),
        pytest.param(
            a_job("atlas-800-9000", 4),
            "0123|4...",
            [EIGHT, "ring with 4 free (order 4)", "1 free chip left over"],
            id="9000, 4",
        ),
        pytest.param(
            a_job("atlas-800-9000", 8),
            "0123|4567",
            [EIGHT, "ring with 4 free (order 4)", "no free chips left over"],
            id="9000, 8",
        ),
        pytest.param(
            a_job("atlas-800-9000-half", 2),
            "0123",
            ["4 of 4 chips healthy", "2 free chips left over"],
            id="half",
        ),
        pytest.param(
            a_job("atlas-300t", 1),
            "01",
            ["2 of 2 chips healthy", "1 free chip left over"],
            id="300T",
        ),
        pytest.param(
            a_job("atlas-800t-a2", 3),
            "x1234567",
            ["7 of 8 chips healthy", "4 free chips left over"],
            id="A2 with a faulty chip",
        ),
        pytest.param(
            a_job("atlas-200t-a2-box16", 6),
            "0123456.|........",
            [SIXTEEN, "ring with 7 free (order 6, 7, 8)", "1 free chip left over"],
            id="Box16, 6",
        ),
        pytest.param(
            a_job("atlas-200t-a2-box16", 10),
            "012345..|89abcd..",
            [
                SIXTEEN,
                "pairs that face each other",
                "1 pair left over",
                "2 free chips left over",
            ],
            id="Box16, 10, aligned",
        ),
        pytest.param(
            a_job("atlas-200t-a2-box16", 12),
            "0123456.|.9abcde.",
            [
                SIXTEEN,
                "pairs that face each other",
                "no pairs left over",
                "1 free chip left over",
            ],
            id="Box16, 12, aligned",
        ),
        pytest.param(
            a_job("atlas-200t-a2-box16", 14),
            "0123456.|.9abcdef",
            [
                SIXTEEN,
                "equal halves that do not face each other",
                "no pairs left over",
                "no free chips left over",
            ],
            id="Box16, 14, unaligned",
        ),
        pytest.param(
            a_job("atlas-200t-a2-box16", 10, pods=2),
            "01234567|..abcdef",
            [SIXTEEN, "equal halves", "1 pair left over", "4 free chips left over"],
            id="Box16, several pods of 10",
        ),
        pytest.param(
            a_job("atlas-200t-a2-box16", 16),
            "01234567|89abcdef",
            [SIXTEEN, "no free chips left over"],
            id="Box16, 16",
        ),
        pytest.param(
            a_job("atlas-800t-a3", 1),
            "0.|23|..|..|..|..|..|..",
            [
                SIXTEEN,
                "module with 1 free (order 1, 2)",
                "1 whole free module left over",
                "2 free chips left over",
            ],
            id="A3, 1",
        ),
        pytest.param(
            a_job("atlas-800t-a3", 4),
            "01|23|4.|..|..|..|..|..",
            [
                SIXTEEN,
                "module with 2 free (order 2)",
                "no whole free modules left over",
                "1 free chip left over",
            ],
            id="A3, 4",
        ),
        pytest.param(
            a_job("atlas-9000-a3", 2),
            "01|23|45|..",
            [
                EIGHT,
                "module with 2 free (order 2)",
                "2 whole free modules left over",
                "4 free chips left over",
            ],
            id="A3 of 8, 2",
        ),
        pytest.param(
            a_job("atlas-300i", 2, strategy="card"),
            "0123|456.",
            [EIGHT, "card with 3 free (order 2, 3, 4)", "5 free chips left over"],
            id="300I card",
        ),
        pytest.param(
            a_job("atlas-300i", 2, strategy="chip"),
            "0123|456.",
            [EIGHT, "5 free chips left over"],
            id="300I chip",
        ),
        pytest.param(
            a_job("atlas-300i", 2),
            "0123|45..",
            [EIGHT, "card with 2 free (order 2, 3, 4)", "4 free chips left over"],
            id="300I, one card",
        ),
        pytest.param(
            a_job("atlas-300i", 3),
            "01..|45..",
            [EIGHT, "no card holds it", "1 free chip left over"],
            id="300I, no card holds it",
        ),
        pytest.param(
            a_job("atlas-300i-duo", 1, strategy="card"),
            "01|2.",
            [
                "4 of 4 chips healthy",
                "card with 1 free (order 1, 2)",
                "2 free chips left over",
            ],
            id="Duo card",
        ),
        pytest.param(
            a_job("atlas-300i-duo", 3),
            "01|23",
            [
                "4 of 4 chips healthy",
                "card with 2 free (order 1, 2)",
                "1 free chip left over",
            ],
            id="Duo chip, odd",
        ),
        pytest.param(
            a_job("atlas-300i-duo", 2),
            "01|23",
            ["4 of 4 chips healthy", "2 free chips left over"],
            id="Duo chip, even",
        ),
        pytest.param(
            a_job("atlas-300i-duo", 3, distributed=True),
            "01|2.",
            [
                "4 of 4 chips healthy",
                "card with 1 free (order 1, 2)",
                "no free chips left over",
            ],
            id="Duo distributed, odd",
        ),
        pytest.param(
            a_job("atlas-310p", 2),
            "012",
            ["3 of 3 chips healthy", "1 free chip left over"],
            id="310P",
        ),
        pytest.param(
            a_job("atlas-350-4p-8", 2),
            "01..|45..",
            [EIGHT, "1 other mesh could serve it too", "2 free chips left over"],
            id="350, 2",
        ),
        pytest.param(
            a_job("atlas-350-4p-16", 3),
            "0123|4567|89ab|cd..",
            [SIXTEEN, "2 other meshes could serve it too", "11 free chips left over"],
            id="350 of 16, 3",
        ),
        pytest.param(
            a_job("atlas-350-4p-8", 4),
            "0123|45..",
            [EIGHT, "no other meshes could serve it too", "2 free chips left over"],
            id="350, 4",
        ),
        pytest.param(
            a_job("atlas-350-4p-16", 8),
            "0123|4567|89ab|cd..",
            [SIXTEEN, "1 other mesh could serve it too", "6 free chips left over"],
            id="350 of 16, 8",
        ),
        pytest.param(
            a_job("atlas-350-4p-8", 5),
            "0123|4567",
            [EIGHT, "3 free chips left over"],
            id="350, 5",
        ),
    ],
)
def test_a_rank_in_words(job: Job, drawing: str, words: list[str]) -> None:
    assert words_of(job, a_node("n", job.product.key, drawing)) == words


def test_a_sub_healthy_node_says_so_first() -> None:
    node = a_node("n", "atlas-800t-a2", "x123....", sub_healthy=True)

    assert words_of(a_job("atlas-800t-a2", 1), node) == [
        "sub-healthy",
        "7 of 8 chips healthy",
        "2 free chips left over",
    ]


def test_terms_are_these_five() -> None:
    terms = ["position", "whole", "spare", "left", "holder"]

    assert [str(term) for term in Term] == terms


REFUSALS: Final = {
    Reason.OTHER_PRODUCT: (
        a_job("atlas-800-9000", 2),
        a_node("n", "atlas-800t-a2", "01234567"),
        "the job needs atlas-800-9000, the node is atlas-800t-a2",
    ),
    Reason.NOT_READY: (
        a_job("atlas-800-9000", 2),
        a_node("n", "atlas-800-9000", "0123|4567", ready=False),
        "the node is not ready and takes no pods",
    ),
    Reason.NO_SUPERPOD: (
        a_job("atlas-900-a3", 2),
        a_node("n", "atlas-900-a3", "01|23|45|67|89|ab|cd|ef", superpod=None),
        "the job is placed in SuperPoDs, the node is in none",
    ),
    Reason.TOO_SMALL: (
        a_job("atlas-310p", 5),
        a_node("n", "atlas-310p", "0123"),
        "a pod needs 5 free chips on one node, the node has 4 chips in all",
    ),
    Reason.FAULTY_CHIPS: (
        a_job("atlas-800-9000", 4),
        a_node("n", "atlas-800-9000", "x123|4x67"),
        (
            "a pod needs 4 free chips in one ring, "
            "which the node cannot give even when empty: faulty chips 0, 5"
        ),
    ),
    Reason.NETWORK_FAULTY: (
        a_job("atlas-800-9000", 8, pods=2),
        a_node("n", "atlas-800-9000", "0123|456~"),
        (
            "a pod of a job of several pods needs 2 completely free rings of one node "
            "with a healthy network: network-faulty chip 7"
        ),
    ),
    Reason.TOO_FEW_CHIPS: (
        a_job("atlas-800-9000", 2),
        a_node("n", "atlas-800-9000", "x...|...7"),
        "a pod needs 2 free chips in one ring, the node has 1 free chip",
    ),
    Reason.NOT_WIRED_TOGETHER: (
        a_job("atlas-800-9000", 4),
        a_node("n", "atlas-800-9000", "012.|45.."),
        (
            "a pod needs 4 free chips in one ring; of the node's 5 free chips "
            "its rings have 3, 2, so no 4 are wired together"
        ),
    ),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_a_refusal_says_wanted_against_found(reason: Reason) -> None:
    job, node, words = REFUSALS[reason]
    cluster, request = Cluster([node]), request_of(job)

    message = refusal_words(cluster, request, 0, reason)

    assert REASONS[node_reasons(cluster, request).item(0)] is reason
    assert message == words


def under(leaf: str | None) -> Cluster:
    nodes = [a_node("n", "atlas-800t-a2", "01234567")]
    return Cluster(replace(node, leaf=leaf) for node in nodes)


NETWORK_REFUSALS: Final = {
    Reason.NO_TOPOLOGY: (
        "a job with tor-affinity needs a leaf switch, the node is under none"
    ),
    Reason.CORDONED: "the node is cordoned and takes no new pods",
    Reason.QUARANTINED: "the node refused a pod and is quarantined for a while",
    Reason.NOT_WELL: "the node is sub-healthy, and the job avoids such nodes",
    Reason.NOT_SELECTED: "the node lacks labels that the job selects",
    Reason.REFUSED: "a plugin refuses the node for this job",
    Reason.FAILED_BEFORE: "the job ran here and failed; its pods go to other nodes",
    Reason.OWN_POD: "a pod of this job is here; under a network rule a node holds one",
    Reason.LEAF_CLOSED: (
        "leaf A is closed to this job: another job crosses it, and a second job may "
        "not cross it too"
    ),
}


@pytest.mark.parametrize("reason", NETWORK_REFUSALS)
def test_a_refusal_by_the_network_says_its_rule(reason: Reason) -> None:
    request = request_of(a_job("atlas-800t-a2", 8, pods=2))

    message = refusal_words(under("A"), request, 0, reason)

    assert message == NETWORK_REFUSALS[reason]


def test_a_closed_leaf_is_reported_with_the_jobs_that_close_it() -> None:
    nodes = [a_node(name, "atlas-800t-a2", "01234567") for name in "abc"]
    cluster = Cluster(
        replace(node, leaf=leaf) for node, leaf in zip(nodes, "AAB", strict=True)
    )
    with Statement(cluster) as statement:
        for job in ("zeta", "eta"):
            statement.hold(job, 0, 1)
            statement.hold(job, 2, 2)
        statement.commit()

    message = refusal_words(
        cluster, request_of(a_job("atlas-800t-a2", 8)), 1, Reason.LEAF_CLOSED
    )

    assert message == (
        "leaf A is closed to this job: 'eta', 'zeta' cross it, and a second job may "
        "not cross it too"
    )


def test_an_unhealthy_leaf_is_reported_as_such() -> None:
    known = (Leaf("A", healthy=False),)
    node = a_node("a", "atlas-800t-a2", "01234567")
    cluster = Cluster([replace(node, leaf="A")], known)

    message = refusal_words(
        cluster, request_of(a_job("atlas-800t-a2", 8)), 0, Reason.LEAF_CLOSED
    )

    assert message == "leaf A is closed to this job: it is unhealthy"


def demanding(node: Node, demand: Demand) -> str:
    """What *node* says to a pod of *demand*, and that it refuses it at all."""
    cluster, job = Cluster([node]), a_job("atlas-800t-a2", 1)
    request = request_of(replace(job, demand=demand))
    reason = REASONS[node_reasons(cluster, request).item(0)]
    return f"{reason}: {refusal_words(cluster, request, 0, reason)}"


def test_a_taint_is_named() -> None:
    taint = Taint("npu", Effect.NO_SCHEDULE, "train")
    node = replace(a_node("n", "atlas-800t-a2", "01234567"), taints=(taint,))

    assert demanding(node, NOTHING) == (
        "tainted: the job does not tolerate the taint npu=train:NoSchedule"
    )


def test_the_first_resource_that_is_short_is_named() -> None:
    node = a_node("n", "atlas-800t-a2", "01234567")
    node = replace(node, resources={"cpu": 4_000, "memory": 2**30 * 1000})
    pod = Demand(resources=(("cpu", 4_000), ("memory", 2**31 * 1000)))

    assert demanding(node, pod) == (
        "too-few-resources: a pod needs 2Gi memory, the node has 1Gi"
    )


def test_a_cordoned_node_and_one_that_is_not_selected_say_so() -> None:
    node = a_node("n", "atlas-800t-a2", "01234567")
    east = Demand(required=(Requirement("zone", Operator.IN, ("east",)),))

    assert demanding(replace(node, cordoned=True), NOTHING).startswith("cordoned: ")
    assert demanding(node, east).startswith("not-selected: ")
    assert demanding(replace(node, cordoned=True), east).startswith("cordoned: ")


def test_every_reason_has_a_refusal() -> None:
    message = {Reason.TAINTED, Reason.TOO_FEW_RESOURCES}
    assert {*REFUSALS, *NETWORK_REFUSALS} | message == {*Reason}


@pytest.mark.parametrize(
    ("job", "node", "words"),
    [
        pytest.param(
            a_job("atlas-800t-a2", 2),
            a_node("n", "atlas-800t-a2", "........"),
            "a pod needs 2 free chips on one node, the node has no free chips",
            id="nothing free",
        ),
        pytest.param(
            a_job("atlas-800t-a3", 4),
            a_node("n", "atlas-800t-a3", "01|2.|4.|..|..|..|..|.."),
            "a pod needs 2 completely free modules of one node; of the node's 4 free "
            "chips its "
            "modules have 2, 1, 1, 0, 0, 0, 0, 0, so no 4 are wired together",
            id="modules",
        ),
        pytest.param(
            a_job("atlas-300i", 3, strategy="card"),
            a_node("n", "atlas-300i", "01..|45"),
            "a pod needs 3 free chips in one card; of the node's 4 free chips its "
            "cards have 2, 2, so no 3 are wired together",
            id="the last card of a node may be short",
        ),
        pytest.param(
            a_job("atlas-350-4p-8", 4),
            a_node("n", "atlas-350-4p-8", "012.|456."),
            "a pod needs 4 free chips in one mesh; of the node's 6 free chips its "
            "meshes have 3, 3, so no 4 are wired together",
            id="meshes",
        ),
        pytest.param(
            a_job("atlas-800-9000", 2, pods=2),
            a_node("n", "atlas-800-9000", "~~..|...."),
            "a pod of a job of several pods needs 2 free chips in one ring with a "
            "healthy network: network-faulty chips 0, 1",
            id="several network-faulty chips",
        ),
        pytest.param(
            a_job("atlas-800t-a2", 4),
            replace(a_node("n", "atlas-800t-a2", "012....."), faulty=0b100),
            "a pod needs 4 free chips on one node, the node has 2 usable chips",
            id="faults make the two differ",
        ),
    ],
)
def test_refusals_count_what_is_usable(job: Job, node: Node, words: str) -> None:
    cluster, request = Cluster([node]), request_of(job)
    reason = REASONS[node_reasons(cluster, request).item(0)]

    assert refusal_words(cluster, request, 0, reason) == words


def test_groups_are_those_of_the_product_even_where_the_request_sees_none() -> None:
    request = request_of(a_job("atlas-350-4p-8", 5))

    assert groups_free(request, 0b0111_0001, 8) == (1, 3)
