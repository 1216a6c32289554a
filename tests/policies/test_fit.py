"""All nodes at once: reasons, capacity, and what would be enough."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Reason
from ringleaf.model.demand import NOTHING, Demand, Toleration
from ringleaf.model.job import Job, Role
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import (
    BOUNDLESS,
    FITS,
    MAX_KNOWN,
    REASONS,
    Excluded,
    Request,
    capacity,
    eligible,
    node_ranks,
    node_reasons,
    of_product,
    reason_counts,
    request_of,
)
from ringleaf.policies.products import PRODUCTS
from ringleaf.policies.words import need_words
from tests.chips import a_cluster, a_job, a_node

NODE_8 = "0123|4567"
PAIRS_16 = "01|23|45|67|89|ab|cd|ef"


def reason_of(job: Job, node: Node) -> Reason | None:
    """Why *node* cannot hold one pod of *job*; None when it can."""
    (found,) = node_reasons(Cluster([node]), request_of(job)).tolist()
    return None if found == FITS else REASONS[found]


@pytest.mark.parametrize(
    ("job", "node", "reason"),
    [
        pytest.param(
            a_job("atlas-900-a3", 16),
            a_node("n", "atlas-800t-a2", "x.......", ready=False, superpod=None),
            Reason.OTHER_PRODUCT,
            id="another product, before everything",
        ),
        pytest.param(
            a_job("atlas-900-a3", 16),
            a_node("n", "atlas-900-a3", "x" + "." * 15, ready=False, superpod=None),
            Reason.NOT_READY,
            id="not ready, before no SuperPoD",
        ),
        pytest.param(
            a_job("atlas-900-a3", 16),
            a_node("n", "atlas-900-a3", "x" + "." * 15, superpod=None),
            Reason.NO_SUPERPOD,
            id="no SuperPoD, before faulty chips",
        ),
        pytest.param(
            a_job("atlas-800t-a3", 16),
            a_node("n", "atlas-800t-a3", PAIRS_16, superpod=None),
            None,
            id="a product outside SuperPoDs needs none",
        ),
        pytest.param(
            a_job("atlas-310p", 5),
            a_node("n", "atlas-310p", "x..."),
            Reason.TOO_SMALL,
            id="too small, before faulty chips",
        ),
        pytest.param(
            a_job("atlas-310p", 64),
            a_node("n", "atlas-310p", "0123456789abcdef" * 4),
            None,
            id="the largest node there is",
        ),
        pytest.param(
            a_job("atlas-300i", 4, strategy="card"),
            a_node("n", "atlas-300i", "012"),
            Reason.TOO_SMALL,
            id="too small for one card",
        ),
        pytest.param(
            a_job("atlas-800-9000", 8, pods=2),
            a_node("n", "atlas-800-9000", "x~..|4..."),
            Reason.FAULTY_CHIPS,
            id="faulty chips, before network-faulty ones",
        ),
        pytest.param(
            a_job("atlas-800-9000", 4),
            a_node("n", "atlas-800-9000", "x123|x567"),
            Reason.FAULTY_CHIPS,
            id="faulty chips that break both rings",
        ),
        pytest.param(
            a_job("atlas-800-9000", 8, pods=2),
            a_node("n", "atlas-800-9000", "~...|4..."),
            Reason.NETWORK_FAULTY,
            id="network-faulty even when empty, before too few chips",
        ),
        pytest.param(
            a_job("atlas-800t-a2", 2, pods=2),
            a_node("n", "atlas-800t-a2", "~1......"),
            Reason.NETWORK_FAULTY,
            id="network-faulty: the free chips would do but for their network",
        ),
        pytest.param(
            a_job("atlas-800t-a2", 2, pods=2),
            a_node("n", "atlas-800t-a2", "~......."),
            Reason.TOO_FEW_CHIPS,
            id="too few chips, whatever their network",
        ),
        pytest.param(
            a_job("atlas-800t-a2", 8),
            a_node("n", "atlas-800t-a2", "~1234567"),
            None,
            id="one pod does not mind the network",
        ),
        pytest.param(
            a_job("atlas-310p", 4, pods=2),
            a_node("n", "atlas-310p", "~123"),
            None,
            id="a product that does not heed the network does not mind it",
        ),
        pytest.param(
            a_job("atlas-800-9000", 4),
            a_node("n", "atlas-800-9000", "01..|4..."),
            Reason.TOO_FEW_CHIPS,
            id="too few chips, before not wired together",
        ),
        pytest.param(
            a_job("atlas-800-9000", 2),
            a_node("n", "atlas-800-9000", "x1..|4..."),
            Reason.NOT_WIRED_TOGETHER,
            id="enough, but one in each ring",
        ),
        pytest.param(
            a_job("atlas-800t-a3", 2),
            a_node("n", "atlas-800t-a3", "0.|2.|4.|..|..|..|..|.."),
            Reason.NOT_WIRED_TOGETHER,
            id="enough, but no module is whole",
        ),
        pytest.param(
            a_job("atlas-200t-a2-box16", 10),
            a_node("n", "atlas-200t-a2-box16", "01234567|89......"),
            Reason.NOT_WIRED_TOGETHER,
            id="enough, but not in equal halves",
        ),
        pytest.param(
            a_job("atlas-800-9000", 2),
            a_node("n", "atlas-800-9000", "0...|45.."),
            None,
            id="fits",
        ),
    ],
)
def test_the_first_reason_that_applies_is_reported(
    job: Job, node: Node, reason: Reason | None
) -> None:
    assert reason_of(job, node) == reason


def test_reasons_are_asked_in_this_order_and_read_so_after_a_count() -> None:
    assert [(str(reason), reason.words) for reason in REASONS] == [
        ("other-product", "of another product"),
        ("not-ready", "not ready"),
        ("cordoned", "cordoned"),
        ("quarantined", "quarantined because they refused pods"),
        ("not-well", "sub-healthy, which the job avoids"),
        ("not-selected", "without the labels the job selects"),
        ("tainted", "with a taint the job does not tolerate"),
        ("refused", "refused by a plugin"),
        ("no-superpod", "outside every SuperPoD"),
        ("no-topology", "under no known leaf switch"),
        ("failed-before", "on which this job failed"),
        ("own-pod", "with a pod of this job already"),
        ("too-small", "too small even when empty"),
        ("faulty-chips", "with too few healthy chips"),
        ("network-faulty", "with too few chips whose network is healthy"),
        ("too-few-chips", "with too few free chips"),
        ("not-wired-together", "with enough free chips, but not wired together"),
        ("too-few-resources", "with enough chips, but too few other resources"),
        ("leaf-closed", "under a leaf that is closed to this job"),
    ]


MIXED: Final = Cluster(
    [
        a_node("a", "atlas-800t-a2", "01234567"),
        a_node("b", "atlas-800-9000", NODE_8),
        a_node("c", "atlas-800-9000", NODE_8, ready=False),
        a_node("d", "atlas-800-9000", "x123|4567"),
        a_node("e", "atlas-800-9000", "~123|~567"),
        a_node("f", "atlas-800-9000", "0...|4..."),
        a_node("g", "atlas-800-9000", "012.|456."),
        a_node("h", "atlas-800-9000", "....|...."),
        a_node("i", "atlas-900-a3", PAIRS_16),
        a_node("j", "atlas-900-a3", PAIRS_16, superpod=None),
        a_node("k", "atlas-310p", "0123"),
        a_node("l", "atlas-310p", "0123456789"),
        a_node("m", "atlas-800-9000", "x123|x567"),
    ]
)
JOBS: Final = [
    a_job("atlas-800-9000", 1),
    a_job("atlas-800-9000", 2),
    a_job("atlas-800-9000", 4),
    a_job("atlas-800-9000", 8),
    a_job("atlas-800-9000", 8, pods=2),
    a_job("atlas-900-a3", 16),
    a_job("atlas-310p", 5),
    a_job("atlas-300t", 1),
]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.wanted} {job.product.key}")
def test_reasons_and_fitting_nodes_account_for_every_node(job: Job) -> None:
    request = request_of(job)

    reasons = node_reasons(MIXED, request)

    fitting = int((reasons == FITS).sum())
    assert sum(reason_counts(reasons).values()) + fitting == len(MIXED)
    assert np.array_equal(reasons == FITS, node_ranks(MIXED, request) != NEVER)


@pytest.mark.parametrize(
    ("job", "counts"),
    [
        (
            a_job("atlas-800-9000", 4),
            {"other-product": 5, "not-ready": 1, "faulty-chips": 1}
            | {"too-few-chips": 2, "not-wired-together": 1},
        ),
        (
            a_job("atlas-800-9000", 8, pods=2),
            {"other-product": 5, "not-ready": 1, "faulty-chips": 2}
            | {"network-faulty": 1, "too-few-chips": 3},
        ),
        (a_job("atlas-900-a3", 16), {"other-product": 11, "no-superpod": 1}),
        (a_job("atlas-310p", 5), {"other-product": 11, "too-small": 1}),
        (a_job("atlas-300t", 1), {"other-product": 13}),
    ],
    ids=["one ring", "two nodes", "SuperPoD", "sized", "no such product"],
)
def test_reasons_are_counted_in_their_order_and_zeros_left_out(
    job: Job, counts: dict[str, int]
) -> None:
    found = reason_counts(node_reasons(MIXED, request_of(job)))

    assert [(str(reason), n) for reason, n in found.items()] == [*counts.items()]


@pytest.mark.parametrize(
    ("job", "drawings", "pods"),
    [
        pytest.param(
            a_job("atlas-800-9000", 8, pods=2),
            [NODE_8, "0123|456.", NODE_8],
            2,
            id="whole nodes",
        ),
        pytest.param(
            a_job("atlas-800-9000", 2),
            ["012.|456.", "0...|4...", NODE_8],
            6,
            id="pairs inside rings",
        ),
        pytest.param(
            a_job("atlas-800t-a2", 3), ["01234567", "01......"], 2, id="any chips"
        ),
        pytest.param(
            a_job("atlas-800t-a2", 2, pods=2), ["~~234567"], 3, id="a healthy network"
        ),
        pytest.param(
            a_job("atlas-800t-a3", 4), ["01|23|4.|67|89|..|..|ef"], 2, id="modules"
        ),
        pytest.param(
            a_job("atlas-300i", 3, strategy="card"),
            ["0123|456.|89..", "0123"],
            3,
            id="cards",
        ),
        pytest.param(
            a_job("atlas-300i", 3), ["0123|456.|89..", "0123"], 4, id="leftovers"
        ),
        pytest.param(
            a_job("atlas-200t-a2-box16", 10, pods=2),
            ["01234567|89abcdef", "01234567|89......"],
            1,
            id="halves",
        ),
        pytest.param(a_job("atlas-800t-a2", 1), ["........"], 0, id="nothing free"),
    ],
)
def test_capacity_is_how_many_pods_fit_now(
    job: Job, drawings: Sequence[str], pods: int
) -> None:
    cluster = a_cluster(job.product.key, drawings)

    assert capacity(cluster, request_of(job)) == pods


def test_capacity_counts_only_nodes_that_take_pods() -> None:
    cluster = Cluster(
        [
            a_node("a", "atlas-900-a3", PAIRS_16),
            a_node("b", "atlas-900-a3", PAIRS_16, ready=False),
            a_node("c", "atlas-900-a3", PAIRS_16, superpod=None),
            a_node("d", "atlas-800t-a3", PAIRS_16),
        ]
    )
    request = request_of(a_job("atlas-900-a3", 16))

    assert capacity(cluster, request) == 1
    assert eligible(cluster, request).tolist() == [True, False, False, False]


def test_what_was_found_of_nodes_is_found_anew_when_one_changes() -> None:
    nodes = [a_node(name, "atlas-800t-a2", "01234567") for name in "ab"]
    cluster = Cluster(nodes)
    request = request_of(a_job("atlas-800t-a2", 8))
    assert capacity(cluster, request) == 2

    cluster.change(0, replace(nodes[0], ready=False))
    assert capacity(cluster, request) == 1
    assert node_ranks(cluster, request)[0] == NEVER
    cluster.set_quarantined(1, on=True)
    assert capacity(cluster, request) == 0


def test_only_so_many_requests_are_remembered() -> None:
    cluster = a_cluster("atlas-800t-a2", ["01234567"])
    for amount in range(2 * MAX_KNOWN):
        job = a_job("atlas-800t-a2", 8)
        job = replace(job, demand=Demand(tolerations=(Toleration(f"key-{amount}"),)))
        assert capacity(cluster, request_of(job)) == 1

    assert len(cluster.eligibility_cache) == MAX_KNOWN


def test_requests_that_differ_in_resources_and_labels_look_at_nodes_once() -> None:
    cluster = a_cluster("atlas-800t-a2", ["01234567"])
    for amount in range(8):
        labels = (("app", str(amount)),)
        demand = Demand(resources=(("cpu", 1000 * amount),), labels=labels)
        job = replace(a_job("atlas-800t-a2", 8), demand=demand)
        assert capacity(cluster, request_of(job)) == 1

    assert len(cluster.eligibility_cache) == 1


def test_a_product_that_no_node_has_is_found_nowhere() -> None:
    cluster = a_cluster("atlas-800t-a2", ["01234567"])

    assert of_product(cluster, PRODUCTS["atlas-300t"]).tolist() == [False]
    assert of_product(cluster, PRODUCTS["atlas-800t-a2"]).tolist() == [True]


def test_jobs_that_ask_the_same_share_one_request() -> None:
    one = request_of(a_job("atlas-800t-a2", 4, pods=2))
    same = request_of(Job("other", PRODUCTS["atlas-800t-a2"], 4, replicas=3))

    assert one is same
    assert one.table is same.table
    assert one.avoids_network_faults
    assert not request_of(a_job("atlas-800t-a2", 4)).avoids_network_faults


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (a_job("atlas-800-9000", 1), "1 free chip on one node"),
        (a_job("atlas-800-9000", 2), "2 free chips in one ring"),
        (a_job("atlas-800-9000", 4), "4 free chips in one ring"),
        (a_job("atlas-800-9000", 8), "2 completely free rings of one node"),
        (a_job("atlas-800-9000-half", 4), "4 free chips on one node"),
        (a_job("atlas-300t", 2), "2 free chips on one node"),
        (a_job("atlas-800t-a2", 6), "6 free chips on one node"),
        (a_job("atlas-200t-a2-box16", 8), "8 free chips in one ring"),
        (a_job("atlas-200t-a2-box16", 10), "5 free chips in each ring of one node"),
        (
            a_job("atlas-200t-a2-box16", 14, pods=2),
            "7 free chips in each ring of one node",
        ),
        (a_job("atlas-200t-a2-box16", 16), "2 completely free rings of one node"),
        (a_job("atlas-800t-a3", 1), "1 free chip on one node"),
        (a_job("atlas-800t-a3", 2), "2 free chips in one module"),
        (a_job("atlas-800t-a3", 6), "3 completely free modules of one node"),
        (a_job("atlas-300i", 3, strategy="card"), "3 free chips in one card"),
        (a_job("atlas-300i", 3), "3 free chips on one node"),
        (a_job("atlas-300i-duo", 2, strategy="card"), "2 free chips in one card"),
        (a_job("atlas-300i-duo", 3), "3 free chips on one node"),
        (a_job("atlas-300i-duo", 1, distributed=True), "1 free chip on one node"),
        (a_job("atlas-300i-duo", 2, distributed=True), "2 free chips in one card"),
        (
            a_job("atlas-300i-duo", 3, distributed=True),
            "1 completely free card and 1 free chip of one node",
        ),
        (
            a_job("atlas-300i-duo", 5, distributed=True),
            "2 completely free cards and 1 free chip of one node",
        ),
        (
            a_job("atlas-300i-duo", 6, distributed=True),
            "3 completely free cards of one node",
        ),
        (a_job("atlas-310p", 7), "7 free chips on one node"),
        (a_job("atlas-350-4p-8", 3), "3 free chips in one mesh"),
        (a_job("atlas-350-4p-8", 4), "4 free chips in one mesh"),
        (a_job("atlas-350-4p-16", 5), "5 free chips on one node"),
        (a_job("atlas-350-4p-16", 12), "3 completely free meshes of one node"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.product.key,
)
def test_what_one_pod_needs_in_words(job: Job, words: str) -> None:
    assert need_words(request_of(job)) == words


def helper(demand: Demand = NOTHING) -> Request:
    """What a pod without chips asks."""
    return request_of(a_job("atlas-800t-a2", 8), Role("driver", 0, demand=demand))


def test_a_pod_without_chips_fits_every_node_that_takes_pods_equally_well() -> None:
    cluster = Cluster(
        [
            a_node("busy", "atlas-800t-a2", "........"),
            replace(a_node("cordoned", "atlas-800t-a2", "01234567"), cordoned=True),
            a_node("down", "atlas-800t-a2", "01234567", ready=False),
            a_node("faulty", "atlas-800t-a2", "xxxxxxxx"),
            a_node("other", "atlas-310p", "01"),
            a_node("sick", "atlas-800t-a2", "01234567", sub_healthy=True),
        ]
    )

    ranks = node_ranks(cluster, helper())

    assert ranks.tolist() == [0, NEVER, NEVER, 0, 0, 0]
    assert reason_counts(node_reasons(cluster, helper())) == {
        Reason.NOT_READY: 1,
        Reason.CORDONED: 1,
    }
    assert capacity(cluster, helper()) == 4 * BOUNDLESS
    assert need_words(helper()) == "a node that takes pods"


def test_a_pod_without_chips_needs_its_other_resources() -> None:
    node = a_node("n", "atlas-800t-a2", "........")
    cluster = Cluster(
        replace(node, name=name, resources={"cpu": cpu}) for name, cpu in SMALL.items()
    )
    request = helper(Demand(resources=(("cpu", 3),)))

    assert node_ranks(cluster, request).tolist() == [NEVER, 0, 0]
    assert capacity(cluster, request) == 3
    assert reason_counts(node_reasons(cluster, request)) == {
        Reason.TOO_FEW_RESOURCES: 1
    }


SMALL = {"a": 2, "b": 3, "c": 8}


def test_a_plugin_refuses_before_the_network_and_after_taints() -> None:
    cluster = Cluster(a_node(name, "atlas-900-a3", PAIRS_16) for name in "abc")
    request = request_of(a_job("atlas-900-a3", 16))
    excluded: Excluded = {
        Reason.REFUSED: np.array([0, 1]),
        Reason.FAILED_BEFORE: [1, 2],
    }

    assert reason_counts(node_reasons(cluster, request, excluded)) == {
        Reason.REFUSED: 2,
        Reason.FAILED_BEFORE: 1,
    }
