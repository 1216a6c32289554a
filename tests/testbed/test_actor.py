import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from ringleaf_testbed.actor import Actor
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.device_plugin import SERVED
from ringleaf_testbed.hardware import Machine, fleet
from ringleaf_testbed.machine_state import AssignedPod
from ringleaf_testbed.report import ChipFault, check_code
from ringleaf_testbed.reporter import Layout

R = "huawei.com/Ascend910"
REAL = "huawei.com/AscendReal"


class Stage:
    """Two machines and a SuperPoD's, and the scheduler is us."""

    def __init__(self, bed: Testbed, actor: Actor, namespace: str) -> None:
        self.bed = bed
        self.actor = actor
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.machines: list[Machine] = []

    def submit(self, name: str, chips: int) -> None:
        limits = {R: str(chips)}
        container = {"name": "main", "image": "none", "resources": {"limits": limits}}
        manifest = {
            "metadata": {"name": name},
            "spec": {"schedulerName": "us", "containers": [container]},
        }
        self.bed.client.ask("POST", self.pods, manifest)

    def bind(self, name: str, node: str, chips: str, at: int, **more: str) -> None:
        names = ",".join(f"Ascend910-{chip}" for chip in chips.split(",") if chip)
        notes = {R: names, "predicate-time": str(at), **more}
        body = {
            "metadata": {"name": name, "annotations": notes},
            "target": {"kind": "Node", "name": node},
        }
        self.bed.client.ask("POST", f"{self.pods}/{name}/binding", body)

    def bind_bare(self, name: str, node: str) -> None:
        """Bind a pod as a scheduler does that knows nothing of chips."""
        target = {"kind": "Node", "name": node}
        body = {"metadata": {"name": name}, "target": target}
        self.bed.client.ask("POST", f"{self.pods}/{name}/binding", body)

    def pod(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.bed.client.ask("GET", f"{self.pods}/{name}")
        return found

    def note(self, name: str, key: str) -> str:
        notes = self.pod(name)["metadata"].get("annotations") or {}
        return str(notes.get(key, ""))

    def wait_served(self, name: str) -> None:
        self.bed.wait_for(lambda: self.note(name, REAL), f"{name} to be served")

    def wait_failed(self, name: str) -> str:
        self.bed.wait_for(
            lambda: self.pod(name)["status"]["phase"] == "Failed", f"{name} to fail"
        )
        return str(self.pod(name)["status"]["reason"])

    def config_map(self, namespace: str, name: str) -> dict[str, str] | None:
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        status, found = self.bed.request("GET", path)
        return found["data"] if status == 200 else None

    def devices(self, node: str) -> dict[str, str]:
        """The device lists of *node*; empty while the two layouts differ."""
        direct = self.config_map("kube-system", f"mindx-dl-deviceinfo-{node}")
        collected = self.config_map("mindx-dl", "cluster-info-device-0")
        assert direct is not None
        assert collected is not None
        report = json.loads(direct["DeviceInfoCfg"])
        assert report["CheckCode"] == check_code(report["DeviceInfo"])
        entries = json.loads(collected["cluster-info-device-0"])
        lists: dict[str, str] = report["DeviceInfo"]["DeviceList"]
        same = entries[f"mindx-dl-deviceinfo-{node}"]["DeviceList"] == lists
        return lists if same else {}

    def wait_free(self, node: str, chips: str) -> None:
        names = ",".join(f"Ascend910-{chip}" for chip in chips)
        self.bed.wait_for(lambda: self.devices(node).get(R) == names, "the report")


@pytest.fixture
def stage(testbed: Testbed, namespace: str) -> Iterator[Stage]:
    machines = [
        *fleet("atlas-800t-a2", 2, prefix=namespace),
        *fleet("atlas-900-a3", 1, first=2, prefix=namespace),
    ]
    with Actor(testbed.client, layout=Layout.BOTH, retry_s=0.2, report_s=0.1) as actor:
        made = Stage(testbed, actor, namespace)
        actor.add_machines(machines, leaf_size=2)
        made.machines = machines
        yield made
        for machine in machines:
            if testbed.request("GET", f"/api/v1/nodes/{machine.name}")[0] == 200:
                actor.remove_node(machine.name)


def test_a_pod_gets_the_chips_that_it_is_annotated_with(stage: Stage) -> None:
    node = stage.machines[0]
    stage.submit("p0", 2)

    stage.bind("p0", node.name, "5,3", at=100)

    stage.wait_served("p0")
    assert stage.note("p0", R) == "Ascend910-5,Ascend910-3"
    assert stage.note("p0", REAL) == "Ascend910-3,Ascend910-5"
    assert stage.note("p0", "huawei.com/kltDev") == "Ascend910-0,Ascend910-1"
    assert stage.note("p0", "predicate-time") == SERVED
    table = stage.note("p0", "ascend.kubectl.kubernetes.io/ascend-910-configuration")
    assert json.loads(table) == {
        "pod_name": "p0",
        "server_id": stage.pod("p0")["metadata"]["uid"],
        "server_ip": node.address,
        "host_ip": node.address,
        "super_pod_id": -2,
        "rack_id": 0,
        "devices": [
            {
                "device_id": "3",
                "device_ip": node.chip_address(3),
                "super_device_id": "3",
            },
            {
                "device_id": "5",
                "device_ip": node.chip_address(5),
                "super_device_id": "5",
            },
        ],
        "server_index": "0",
    }
    assert list(stage.actor.held(node.name).values()) == [{3, 5}]
    assert stage.actor.clashes == []


def test_the_real_chips_are_left_alone_when_they_are_there(stage: Stage) -> None:
    stage.submit("p0", 1)

    real = {REAL: "Ascend910-6"}
    stage.bind("p0", stage.machines[0].name, "6", at=100, **real)

    stage.bed.wait_for(
        lambda: stage.note("p0", "predicate-time") == SERVED, "p0 to be served"
    )
    assert stage.note("p0", "huawei.com/kltDev") == ""


def test_the_wrong_number_of_chips_fails_the_pod(stage: Stage) -> None:
    stage.submit("p0", 2)

    stage.bind("p0", stage.machines[0].name, "5", at=100)

    assert stage.wait_failed("p0") == "UnexpectedAdmissionError"
    assert stage.actor.held(stage.machines[0].name) == {}


def test_the_smallest_predicate_time_goes_first(stage: Stage) -> None:
    """Of two pods of a size the first to come gets the chips of the older stamp."""
    machine = fleet("atlas-800t-a2", 1, first=8, prefix=stage.machines[0].name)[0]
    stage.submit("a", 2)
    stage.submit("b", 2)
    stage.bind("a", machine.name, "0,1", at=200)
    stage.bind("b", machine.name, "2,3", at=100)

    with Actor(stage.bed.client) as late:  # it sees both at once
        late.add_machines([machine])

        stage.wait_served("a")
        stage.wait_served("b")
        assert stage.note("a", REAL) == "Ascend910-2,Ascend910-3"
        assert stage.note("b", REAL) == "Ascend910-0,Ascend910-1"
        late.remove_node(machine.name)


def test_more_chips_than_there_are_fail_the_pod(stage: Stage) -> None:
    node = stage.machines[0].name
    stage.submit("all", 8)
    stage.submit("more", 1)
    stage.bind("all", node, "0,1,2,3,4,5,6,7", at=100)
    stage.wait_served("all")

    stage.bind("more", node, "0", at=101)

    assert stage.wait_failed("more") == f"OutOf{R}"


def test_chips_handed_out_twice_are_noticed(stage: Stage) -> None:
    node = stage.machines[0].name
    stage.submit("p0", 1)
    stage.submit("p1", 1)
    stage.bind("p0", node, "4", at=100)
    stage.wait_served("p0")

    stage.bind("p1", node, "4", at=101)

    stage.wait_served("p1")
    assert len(stage.actor.clashes) == 1
    assert "chips [4] are another pod's" in stage.actor.clashes[0]


def test_free_lists_follow_the_pods(stage: Stage) -> None:
    node = stage.machines[0].name
    stage.submit("p0", 6)
    stage.bind("p0", node, "0,1,2,3,4,5", at=100)
    stage.wait_served("p0")
    stage.wait_free(node, "67")

    stage.bed.client.ask("DELETE", f"{stage.pods}/p0", {"gracePeriodSeconds": 0})

    stage.wait_free(node, "01234567")
    assert stage.actor.held(node) == {}


def test_broken_chips_are_reported_and_not_allocatable(stage: Stage) -> None:
    node = stage.machines[0].name

    stage.actor.fail_chips(node, [7])
    stage.actor.cut_off_chips(node, [6])
    stage.actor.fail_chips(node, [5], ChipFault(level="RestartNPU", recovering=True))

    lists = stage.devices(node)
    assert lists[f"{R}-Unhealthy"] == "Ascend910-7"
    assert lists[f"{R}-NetworkUnhealthy"] == "Ascend910-6"
    assert lists[f"{R}-Recovering"] == "Ascend910-5"
    assert lists[R].endswith("Ascend910-4,Ascend910-6")
    amounts = stage.bed.client.ask("GET", f"/api/v1/nodes/{node}")["status"]
    assert amounts["allocatable"][R] == "6"
    assert amounts["capacity"][R] == "8"

    stage.actor.recover_chips(node)

    assert stage.devices(node)[f"{R}-Fault"] == "[]"
    amounts = stage.bed.client.ask("GET", f"/api/v1/nodes/{node}")["status"]
    assert amounts["allocatable"][R] == "8"


def test_a_broken_node_is_reported_until_it_is_mended(stage: Stage) -> None:
    node = stage.machines[0].name
    name = f"mindx-dl-nodeinfo-{node}"

    stage.actor.fail_node(node)

    direct = stage.config_map("mindx-dl", name)
    collected = stage.config_map("mindx-dl", "cluster-info-node-cm")
    assert direct is not None
    assert collected is not None
    inner = json.loads(direct["NodeInfo"])
    assert inner["CheckCode"] == check_code(inner["NodeInfo"])
    entries = json.loads(collected["cluster-info-node-cm"])
    assert entries[name]["NodeStatus"] == "UnHealthy"

    stage.actor.recover_node(node)

    assert stage.config_map("mindx-dl", name) is None
    collected = stage.config_map("mindx-dl", "cluster-info-node-cm")
    assert collected == {"cluster-info-node-cm": ""}


def test_broken_switches_are_reported(stage: Stage) -> None:
    node = stage.machines[2].name

    stage.actor.fail_switch(node, "SubHealthy", "SubHealthFault")

    collected = stage.config_map("mindx-dl", "cluster-info-switch-0")
    assert collected is not None
    entries = json.loads(collected["cluster-info-switch-0"])
    assert list(entries) == [f"mindx-dl-switchinfo-{node}"]
    assert entries[f"mindx-dl-switchinfo-{node}"]["NodeStatus"] == "SubHealthy"


def test_a_node_can_be_unready_and_can_go_and_come_back(stage: Stage) -> None:
    name = stage.machines[1].name

    def ready() -> str:
        node = stage.bed.client.ask("GET", f"/api/v1/nodes/{name}")
        conditions = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        return str(conditions["Ready"])

    stage.actor.set_ready(name, ready=False)
    assert ready() == "False"
    stage.actor.set_ready(name, ready=True)
    assert ready() == "True"

    machine = stage.actor.remove_node(name)
    assert stage.bed.request("GET", f"/api/v1/nodes/{name}")[0] == 404
    assert stage.config_map("kube-system", f"mindx-dl-deviceinfo-{name}") is None

    stage.actor.add_machines([machine])
    assert ready() == "True"
    assert stage.devices(name)[f"{R}-Fault"] == "[]"


def test_a_new_actor_knows_who_holds_what(stage: Stage) -> None:
    node = stage.machines[0]
    stage.submit("p0", 2)
    stage.bind("p0", node.name, "2,3", at=100)
    stage.wait_served("p0")

    with Actor(stage.bed.client) as second:
        second.add_machines([node])

        assert list(second.held(node.name).values()) == [{2, 3}]


class Hesitant(Actor):
    """Lists pods, and looks at the list when the last of them is known to be gone."""

    before_looking: Callable[[], None]

    def _seen_pods(self) -> Iterable[AssignedPod]:
        listed = super()._seen_pods()
        self.before_looking()
        return listed


def test_a_pod_that_is_deleted_while_its_node_comes_back_holds_nothing(
    stage: Stage,
) -> None:
    node = stage.machines[0]
    stage.submit("p0", 2)
    stage.bind("p0", node.name, "2,3", at=100)
    stage.wait_served("p0")
    uid = stage.pod("p0")["metadata"]["uid"]

    with Hesitant(stage.bed.client) as second:

        def delete() -> None:
            path = f"{stage.pods}/p0?gracePeriodSeconds=0"
            stage.bed.client.ask("DELETE", path)
            site = second._sites[node.name]  # noqa: SLF001 - when it has heard
            stage.bed.wait_for(lambda: uid in site.gone, "the watch to tell")

        second.before_looking = delete
        second.add_machines([node])

        assert second.held(node.name) == {}


def test_the_actor_runs_pods_where_no_kubelet_does(stage: Stage) -> None:
    machine = fleet("atlas-800t-a2", 1, first=9, prefix=stage.machines[0].name)[0]
    with Actor(stage.bed.client, runs_pods=True) as second:
        second.add_machines([machine])
        stage.submit("p0", 1)
        stage.bind("p0", machine.name, "0", at=1)
        stage.bed.wait_for(
            lambda: stage.pod("p0")["status"]["phase"] == "Running", "p0 to run"
        )

        stage.bed.client.ask("DELETE", f"{stage.pods}/p0")

        path = f"{stage.pods}/p0"
        stage.bed.wait_for(lambda: stage.bed.request("GET", path)[0] == 404, "the end")
        second.remove_node(machine.name)


def test_a_pod_that_failed_while_it_was_asked_to_end_is_gone_in_the_end(
    stage: Stage,
) -> None:
    stage.submit("p0", 1)
    stage.bind("p0", stage.machines[0].name, "0", at=1)
    stage.wait_served("p0")
    path = f"{stage.pods}/p0"
    stage.bed.client.ask("DELETE", path)
    assert stage.pod("p0")["metadata"]["deletionGracePeriodSeconds"] == 30

    stage.bed.client.ask("PATCH", f"{path}/status", {"status": {"phase": "Failed"}})

    stage.bed.wait_for(lambda: stage.bed.request("GET", path)[0] == 404, "the end")


def test_pods_are_served_after_the_api_server_was_away(
    new_testbed: type[Testbed],
) -> None:
    with new_testbed(volcano=False) as bed, Actor(bed.client, retry_s=0.2) as actor:
        stage = Stage(bed, actor, "default")
        machine = fleet("atlas-800t-a2", 1)[0]
        actor.add_machines([machine])
        bed.restart_apiserver(kill=True)

        stage.submit("p0", 1)
        stage.bind("p0", machine.name, "0", at=1)

        stage.wait_served("p0")


def test_a_plugin_without_a_scheduler_gives_the_lowest_chips_that_nobody_has(
    testbed: Testbed, namespace: str
) -> None:
    (machine,) = machines = fleet("atlas-800t-a2", 1, prefix=namespace)
    with Actor(testbed.client, retry_s=0.2, report_s=0.1, gives_chips=True) as actor:
        stage = Stage(testbed, actor, namespace)
        actor.add_machines(machines)
        try:
            stage.submit("promised", 2)
            stage.bind("promised", machine.name, "0,2", at=100)
            stage.wait_served("promised")
            for name, chips in (("small", 2), ("large", 4), ("late", 2)):
                stage.submit(name, chips)
                stage.bind_bare(name, machine.name)
                if name != "late":
                    stage.wait_served(name)

            assert stage.note("small", REAL) == "Ascend910-1,Ascend910-3"
            assert stage.note("large", REAL) == ",".join(
                f"Ascend910-{chip}" for chip in (4, 5, 6, 7)
            )
            assert stage.wait_failed("late") == f"OutOf{R}"
            assert actor.clashes == []
        finally:
            actor.remove_node(machine.name)
