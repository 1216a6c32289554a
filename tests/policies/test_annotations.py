"""What is written on the pods of a placed job."""

from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job, Role
from ringleaf.model.placement import LeafAnnotation, LeafState, Placement
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.annotations import chip_list, pod_annotations
from ringleaf.policies.products import PRODUCTS
from tests.chips import a_job


@pytest.mark.parametrize(
    ("job", "chips", "listed"),
    [
        (a_job("atlas-800t-a2", 2), (0, 7), "Ascend910-0,Ascend910-7"),
        (a_job("atlas-300i", 1), (63,), "Ascend310-63"),
        (a_job("atlas-300i-duo", 2), (2, 3), "Ascend310P-2,Ascend310P-3"),
        (a_job("atlas-350-4p-8", 2), (0, 1), "npu-0,npu-1"),
    ],
    ids=["910", "310", "310P", "npu"],
)
def test_chips_are_listed_with_their_prefix_and_without_spaces(
    job: Job, chips: tuple[int, ...], listed: str
) -> None:
    assert chip_list(job, Placement(0, "n", chips)) == listed


def test_halves_are_listed_pair_by_pair() -> None:
    job = a_job("atlas-200t-a2-box16", 10)
    chips = (0, 8, 1, 9, 2, 10, 3, 11, 4, 12)

    listed = chip_list(job, Placement(0, "n", chips))

    assert listed.split(",")[:4] == [
        "Ascend910-0",
        "Ascend910-8",
        "Ascend910-1",
        "Ascend910-9",
    ]


def job_state(key: str, **where: Any) -> Cluster:  # noqa: ANN401
    """A cluster of two nodes, n and m."""
    product = PRODUCTS[key]
    nodes = [Node(n, product, product.chips, 0, **where) for n in ("n", "m")]
    return Cluster(nodes, [Leaf("L", address="10.0.0.1")])


def test_a_job_of_one_pod() -> None:
    placement = Placement(0, "n", (4, 5))
    placed = Placed(a_job("atlas-800-9000", 2), (placement,))

    assert pod_annotations(job_state("atlas-800-9000"), placed) == [
        {
            "huawei.com/Ascend910": "Ascend910-4,Ascend910-5",
            "distributed-job": "false",
            "hccl/rankIndex": "0",
        }
    ]


def test_a_job_of_several_pods_tells_the_rank_of_each() -> None:
    placements = (Placement(0, "n", (0,)), Placement(1, "m", (3,)))
    placed = Placed(a_job("atlas-310p", 1, pods=2), placements)

    assert pod_annotations(job_state("atlas-310p"), placed)[1] == {
        "huawei.com/Ascend310P": "Ascend310P-3",
        "distributed-job": "true",
        "hccl/rankIndex": "1",
    }


def test_a_job_in_a_superpod_tells_which_and_its_block() -> None:
    placement = Placement(0, "n", (2, 3), block=4)
    placed = Placed(a_job("atlas-900-a3", 2), (placement,))

    (found,) = pod_annotations(job_state("atlas-900-a3", superpod=7), placed)

    assert found == {
        "huawei.com/Ascend910": "Ascend910-2,Ascend910-3",
        "distributed-job": "false",
        "hccl/rankIndex": "0",
        "super-pod-rank": "4",
        "super-pod-id": "7",
    }


@pytest.mark.parametrize(
    ("mark", "written"),
    [
        (LeafAnnotation(), {"isSharedTor": "0", "isHealthy": "0"}),
        (
            LeafAnnotation(state=LeafState.EXCLUSIVE),
            {"isSharedTor": "2", "isHealthy": "0"},
        ),
        (
            LeafAnnotation(state=LeafState.SHARED),
            {"isSharedTor": "1", "isHealthy": "0", "sharedTorIp": "10.0.0.1"},
        ),
        (
            LeafAnnotation(state=LeafState.SHARED, healthy=False),
            {"isSharedTor": "1", "isHealthy": "1", "sharedTorIp": "10.0.0.1"},
        ),
    ],
    ids=["inside one leaf", "exclusive", "shared", "unhealthy"],
)
def test_a_job_under_leaves_tells_their_state(
    mark: LeafAnnotation, written: dict[str, str]
) -> None:
    placement = Placement(0, "n", (0,), mark=mark)
    placed = Placed(a_job("atlas-800t-a2", 1), (placement,))

    (found,) = pod_annotations(job_state("atlas-800t-a2", leaf="L"), placed)

    plain = ("huawei.com/Ascend910", "distributed-job", "hccl/rankIndex")
    assert {k: v for k, v in found.items() if k not in plain} == written


def test_a_shared_leaf_without_an_address_has_none_to_tell() -> None:
    placement = Placement(0, "n", (0,), mark=LeafAnnotation(state=LeafState.SHARED))
    placed = Placed(a_job("atlas-800t-a2", 1), (placement,))

    (found,) = pod_annotations(job_state("atlas-800t-a2", leaf="M"), placed)

    assert "sharedTorIp" not in found


def test_a_rank_that_was_given_is_not_written_and_helpers_get_nothing() -> None:
    given, driver = Role("given", 2, 2, ranks=(4, 6)), Role("driver", 0)
    job = replace(a_job("atlas-800t-a2", 2, pods=3), roles=(given, driver, LATE))
    pods = (
        Placement(0, "n", (2, 3), role="late"),
        Placement(4, "n", (0, 1), role="given"),
        Placement(1, "m", (), role="driver"),
    )
    cluster = job_state("atlas-800t-a2")

    late, ranked, helper = pod_annotations(cluster, Placed(job, pods))

    assert late["hccl/rankIndex"] == "0"
    assert set(ranked) == {"huawei.com/Ascend910", "distributed-job"}
    assert helper == {}


LATE = Role("late", 2)
