"""Bad objects: one event each, and the rest of the cluster goes on."""

import json
import time
from collections.abc import Iterator

import pytest

from ringleaf_testbed import report
from ringleaf_testbed.hardware import Machine, fleet, node_object
from tests.stories.stage import (
    A2,
    R910,
    Object,
    Stage,
    chips_of,
    node_of,
    pod,
    podgroup,
    vcjob,
)

NODES = "/api/v1/nodes"


@pytest.fixture
def machine(stage: Stage) -> Iterator[Machine]:
    """A node whose device plugin is not played."""
    (made,) = fleet("atlas-800t-a2", 1, first=90, prefix=f"bare-{stage.namespace}")
    stage.bed.client.ask("POST", NODES, node_object(made))
    yield made
    stage.bed.client.ask("DELETE", f"{NODES}/{made.name}")
    name = f"{report.DEVICES}{made.name}"
    stage.bed.request("DELETE", f"/api/v1/namespaces/kube-system/configmaps/{name}")


def device_map(machine: Machine, *broken: int) -> Object:
    health = report.MachineHealth(faults=dict.fromkeys(broken, report.ChipFault()))
    return report.device_report(machine, health, (), int(time.time()))


def there(machine: Machine) -> dict[str, str]:
    return A2 | {"kubernetes.io/hostname": machine.name}


def others_are_bound(stage: Stage) -> None:
    for i in range(3):
        stage.create(pod(f"other-{i}", 1))
        stage.wait_until_runs(f"other-{i}")


def wait_until_bound(stage: Stage, name: str) -> Object:
    stage.wait(lambda: node_of(stage.pod(name)), f"pod {name} to be bound")
    return stage.pod(name)


def test_damaged_json_of_a_report(stage: Stage, machine: Machine) -> None:
    stage.schedule()
    damaged = device_map(machine)
    damaged["data"]["DeviceInfoCfg"] = '{"DeviceInfo": {"DeviceList": {'

    stage.put_map(damaged)
    said = stage.wait_for_event(damaged["metadata"]["name"], "Ignored")
    others_are_bound(stage)

    assert "DeviceInfoCfg" in said
    assert len(stage.events(damaged["metadata"]["name"])) == 1


def test_d23_of_a_report_with_a_wrong_check_code_the_last_good_one_stays(
    stage: Stage, machine: Machine
) -> None:
    stage.schedule()
    stage.put_map(device_map(machine, 7))
    stage.create(pod("eight", 8, selector=there(machine)))
    stage.wait_for_condition("eight", "waits")

    wrong = device_map(machine)
    content = json.loads(wrong["data"]["DeviceInfoCfg"])
    content["CheckCode"] = "0" * 64
    wrong["data"]["DeviceInfoCfg"] = json.dumps(content)
    stage.put_map(wrong)
    said = stage.wait_for_event(wrong["metadata"]["name"], "Ignored")
    others_are_bound(stage)

    assert "check code" in said.lower() or "CheckCode" in said
    assert node_of(stage.pod("eight")) == ""
    assert len(stage.events(wrong["metadata"]["name"])) == 1
    stage.put_map(device_map(machine))
    assert chips_of(wait_until_bound(stage, "eight")) == [*range(8)]


def test_a_damaged_list_of_leaves_keeps_the_last_good_one(stage: Stage) -> None:
    stage.schedule()
    name = "basic-tor-node-cm"
    meta = {"name": name, "namespace": "kube-system"}
    try:
        stage.put_map({"metadata": meta, "data": {"tor_info": "{"}})
        said = stage.wait_for_event(name, "Ignored")
        labels = {"tor-affinity": "large-model-schema"}
        stage.create(podgroup("two", 2))
        for i in range(2):
            stage.create(pod(f"two-{i}", 8, group="two", labels=labels))
        stage.wait_until_runs("two-0", "two-1")

        assert "tor_info" in said
        assert len(stage.events(name)) == 1
    finally:
        stage.set_leaves()


@pytest.mark.parametrize(
    "chips", ["Ascend910-99,Ascend910-0", "what,ever", "x" * (250 << 10)]
)
def test_a_pod_that_holds_unknown_chips(
    stage: Stage, machine: Machine, chips: str
) -> None:
    """No chips of its node are given until it is known which are free."""
    stage.schedule()
    holder = pod("holder", 2, annotations={R910: chips}, nodeName=machine.name)

    stage.create(holder)
    said = stage.wait_for_event("holder", "Ignored")
    stage.create(pod("next", 1, selector=there(machine)))
    stage.wait_for_condition("next", "waits")
    others_are_bound(stage)

    assert machine.name in said
    assert len(stage.events("holder")) == 1
    assert node_of(stage.pod("next")) == ""
    stage.bed.client.ask("DELETE", stage.pod_path("holder"), {"gracePeriodSeconds": 0})
    assert chips_of(wait_until_bound(stage, "next")) == [0]


def test_a_group_that_wants_more_pods_than_there_are(stage: Stage) -> None:
    stage.schedule()

    stage.create(podgroup("five", 5))
    for i in range(2):
        stage.create(pod(f"five-{i}", 1, group="five"))
    said = stage.wait_for_condition("five-1", "2 of 5 pods")
    stage.wait_for_event("five", "Unschedulable")
    others_are_bound(stage)

    assert said["reason"] == "Unschedulable"
    assert "minMember" in said["message"]
    assert len(stage.events("five-0") + stage.events("five-1")) == 1
    assert len(stage.events("five", "Unschedulable")) == 1
    for i in range(2, 5):
        stage.create(pod(f"five-{i}", 1, group="five"))
    stage.wait_until_runs(*(f"five-{i}" for i in range(5)))


def test_a_pod_with_as_many_annotations_as_the_api_server_takes(stage: Stage) -> None:
    """It takes 256 KiB in all; what is written on pods later must have room too."""
    stage.schedule()

    stage.create(pod("full", 1, annotations={"note": "x" * ((256 << 10) - 2048)}))
    (full,) = stage.wait_until_runs("full")

    assert chips_of(full) == [0]
    assert stage.events("full", "FailedScheduling") == []


def test_what_the_api_server_refuses_itself(stage: Stage) -> None:
    """Annotations of 1 MiB and negative amounts never reach a scheduler."""
    path = stage.pod_path("").removesuffix("/")
    large = pod("large", 1, annotations={"note": "x" * (1 << 20)})

    refused = [
        stage.bed.request("POST", path, large)[0],
        stage.bed.request("POST", path, pod("minus", "-1"))[0],
    ]

    assert refused == [422, 422]


def test_a_pod_that_asks_for_far_too_much(stage: Stage) -> None:
    stage.schedule()

    stage.create(pod("greedy", str(10**12)))
    said = stage.wait_for_condition("greedy", "1e+12")
    others_are_bound(stage)

    assert said["reason"] == "Unschedulable"
    assert len(stage.events("greedy")) == 1


def test_a_node_without_labels(stage: Stage) -> None:
    stage.schedule()
    (machine,) = fleet("atlas-350-4p-8", 1, first=91, prefix="nameless")
    node = node_object(machine)
    node["metadata"]["labels"] = {}
    stage.bed.client.ask("POST", NODES, node)
    try:
        said = stage.wait_for_event(machine.name, "Ignored")
        others_are_bound(stage)

        assert "accelerator-type" in said
        assert len(stage.events(machine.name)) == 1
    finally:
        stage.bed.client.ask("DELETE", f"{NODES}/{machine.name}")


def test_labels_about_faults_that_mean_nothing(stage: Stage) -> None:
    stage.schedule()
    stage.apply(vcjob("train", 1, 8, labels={"fault-scheduling": "Grace"}))
    stage.wait_until_running("train", 1)
    said = stage.wait_for_event(stage.group_of("train")["metadata"]["name"], "Ignored")

    assert "label fault-scheduling is 'Grace', want off, grace, force" in said
    assert said.endswith("hint: did you mean 'grace'?")
