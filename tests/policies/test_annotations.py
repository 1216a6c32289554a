"""What is written on the pods of a placed job."""

import pytest

from ringleaf.model.decision import Placed, Placement
from ringleaf.model.job import Job
from ringleaf.policies.annotations import chip_list, pod_annotations
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


def test_a_job_of_one_pod() -> None:
    placement = Placement(0, "n", (4, 5))
    placed = Placed(a_job("atlas-800-9000", 2), (placement,))

    assert pod_annotations(placed, placement, None) == {
        "huawei.com/Ascend910": "Ascend910-4,Ascend910-5",
        "distributed-job": "false",
        "hccl/rankIndex": "0",
    }


def test_a_job_of_several_pods_tells_the_rank_of_each() -> None:
    placements = (Placement(0, "a", (0,)), Placement(1, "b", (3,)))
    placed = Placed(a_job("atlas-310p", 1, pods=2), placements)

    assert pod_annotations(placed, placements[1], None) == {
        "huawei.com/Ascend310P": "Ascend310P-3",
        "distributed-job": "true",
        "hccl/rankIndex": "1",
    }


def test_a_job_in_a_superpod_tells_which() -> None:
    placement = Placement(0, "n", (2, 3))
    placed = Placed(a_job("atlas-900-a3", 2), (placement,))

    assert pod_annotations(placed, placement, 7) == {
        "huawei.com/Ascend910": "Ascend910-2,Ascend910-3",
        "distributed-job": "false",
        "hccl/rankIndex": "0",
        "super-pod-rank": "0",
        "super-pod-id": "7",
    }
