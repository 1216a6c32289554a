"""Plain jobs on several products, and the contract with device plugins."""

import msgspec
import pytest

from ringleaf_testbed.client import Watch
from tests.stories.stage import (
    A2,
    A3,
    R910,
    Object,
    Stage,
    chips_of,
    node_of,
    nodes_of,
    notes_of,
    pod,
    podgroup,
    vcjob,
)

PRO = {"accelerator-type": "module"}
R310, R310P, NPU = "huawei.com/Ascend310", "huawei.com/Ascend310P", "huawei.com/npu"


@pytest.mark.parametrize(
    ("job", "resource", "node", "want"),
    [
        pytest.param(
            vcjob("ring", 1, 4, selector=PRO), R910, "pro", [0, 1, 2, 3], id="one ring"
        ),
        pytest.param(vcjob("mesh", 1, 3), R910, "a2", [0, 1, 2], id="full mesh"),
        pytest.param(
            vcjob("module", 1, 2, selector=A3), R910, "a3", [0, 1], id="one module"
        ),
        pytest.param(
            vcjob(
                "card",
                1,
                3,
                selector={},
                resource=R310,
                labels={"npu-310-strategy": "card"},
            ),
            R310,
            "i300",
            [0, 1, 2],
            id="one card",
        ),
        pytest.param(
            vcjob(
                "duo",
                1,
                2,
                selector={},
                resource=R310P,
                labels={"duo": "true", "npu-310-strategy": "card"},
            ),
            R310P,
            "duo",
            [0, 1],
            id="one Duo card",
        ),
        pytest.param(
            vcjob("p310", 1, 3, selector={}, resource=R310P),
            R310P,
            "p310",
            [0, 1, 2],
            id="no links",
        ),
        pytest.param(
            vcjob(
                "npu",
                1,
                4,
                selector={},
                resource=NPU,
                annotations={"huawei.com/schedule_policy": "chip4-node8"},
            ),
            NPU,
            "a350",
            [0, 1, 2, 3],
            id="4P mesh",
        ),
    ],
)
def test_a_plain_job_gets_chips_that_are_wired_together(
    stage: Stage, job: dict[str, object], resource: str, node: str, want: list[int]
) -> None:
    stage.schedule()

    stage.apply(job)
    assert isinstance(job["metadata"], dict)
    (found,) = stage.wait_until_running(job["metadata"]["name"], 1)

    assert node_of(found).rpartition("-")[0] == node
    assert chips_of(found, resource) == want
    assert notes_of(found)["hccl/rankIndex"] == "0"
    assert notes_of(found)["distributed-job"] == "false"


def test_a_job_of_whole_nodes_gets_its_part_of_the_rank_table(stage: Stage) -> None:
    stage.schedule()

    stage.apply(vcjob("whole", 2, 8, selector=PRO))
    pods = stage.wait_until_running("whole", 2)

    assert nodes_of(pods) == ["pro-30", "pro-31"]
    for rank, each in enumerate(pods):
        notes = notes_of(each)
        table = msgspec.json.decode(
            notes["ascend.kubectl.kubernetes.io/ascend-910-configuration"]
        )
        assert notes["hccl/rankIndex"] == str(rank)
        assert notes["distributed-job"] == "true"
        assert notes["huawei.com/AscendReal"] == notes[R910]
        assert table["pod_name"] == each["metadata"]["name"]
        assert table["server_id"] == each["metadata"]["uid"]
        assert [d["device_id"] for d in table["devices"]] == list("01234567")


def watch_pods(stage: Stage) -> Watch:
    """What happens to the pods of a story from now on."""
    path = f"/api/v1/namespaces/{stage.namespace}/pods"
    _items, version = stage.bed.client.list_all(path)
    return stage.bed.client.watch(path, version)


def bound_in_order(watch: Watch, n_pods: int) -> list[Object]:
    """As many pods as they were when they were bound, in that order."""
    found: dict[str, Object] = {}
    for line in watch:
        each = msgspec.json.decode(line)["object"]
        if each["kind"] == "Pod" and node_of(each):
            found.setdefault(each["metadata"]["uid"], each)
        if len(found) == n_pods:
            break
    watch.close()
    return list(found.values())


def test_pods_of_equal_size_on_one_node_are_served_in_their_order(
    stage: Stage,
) -> None:
    """Whose time is smaller is served first, and with what it was promised."""
    stage.schedule()
    here = A2 | {"kubernetes.io/hostname": "a2-10"}
    watch = watch_pods(stage)
    stage.create(podgroup("four", 4))

    for i in (3, 1, 0, 2):
        stage.create(pod(f"four-{i}", 2, group="four", selector=here))
    times = [int(notes_of(each)["predicate-time"]) for each in bound_in_order(watch, 4)]
    pods = stage.wait_until_runs(*(f"four-{i}" for i in range(4)))

    assert times == sorted({*times})
    assert {*nodes_of(pods)} == {"a2-10"}
    assert sorted(chip for each in pods for chip in chips_of(each)) == [*range(8)]
    assert stage.swapped() == []


def test_d19_chips_and_node_are_one_write(stage: Stage) -> None:
    stage.schedule()
    watch = watch_pods(stage)

    stage.create(pod("one", 2))
    seen = []
    for line in watch:
        found = msgspec.json.decode(line)["object"]
        if found["kind"] == "Pod":
            seen.append(found)
            if node_of(found):
                break
    watch.close()

    *before, bound = seen
    assert chips_of(bound) == [0, 1]
    assert notes_of(bound)["predicate-time"].isdigit()
    assert all(R910 not in notes_of(each) for each in before)


def test_d20_chips_of_a_pod_that_ends_are_held_until_it_is_gone(stage: Stage) -> None:
    stage.schedule()
    here = A2 | {"kubernetes.io/hostname": "a2-10"}
    old = pod("old", 8, selector=here)
    old["metadata"]["finalizers"] = ["ringleaf.io/story"]
    stage.create(old)
    stage.wait_until_runs("old")

    stage.bed.client.ask("DELETE", stage.pod_path("old"), {"gracePeriodSeconds": 0})
    stage.create(pod("new", 8, selector=here))
    stage.wait_for_condition("new", "/old' to end")
    assert node_of(stage.pod("new")) == ""
    stage.bed.client.ask(
        "PATCH", stage.pod_path("old"), {"metadata": {"finalizers": None}}
    )

    (new,) = stage.wait_until_runs("new")
    assert chips_of(new) == [*range(8)]
