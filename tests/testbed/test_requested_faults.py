import json
from collections.abc import Iterator

import pytest

from ringleaf_testbed.actor import Actor
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.hardware import fleet
from ringleaf_testbed.reporter import Layout
from ringleaf_testbed.requested_faults import BROKEN, Breaker

R = "huawei.com/Ascend910"


class Stage:
    """A machine, and somebody who annotates it."""

    def __init__(self, bed: Testbed, actor: Actor, node: str) -> None:
        self.bed, self.node = bed, node
        self.said: list[str] = []
        self.breaker = Breaker(actor, self.said.append)

    def write(self, text: str | None) -> list[str]:
        """What is said once the annotation of the node is *text*."""
        notes = {"metadata": {"annotations": {BROKEN: text}}}
        self.bed.client.ask("PATCH", f"/api/v1/nodes/{self.node}", notes)
        self.said.clear()
        self.breaker.look()
        self.breaker.look()
        return [line for line in self.said if self.node in line]

    def chips(self, kind: str) -> str:
        name = f"mindx-dl-deviceinfo-{self.node}"
        path = f"/api/v1/namespaces/kube-system/configmaps/{name}"
        report = json.loads(self.bed.client.ask("GET", path)["data"]["DeviceInfoCfg"])
        return str(report["DeviceInfo"]["DeviceList"][f"{R}-{kind}"])

    def has_node_report(self) -> bool:
        name = f"mindx-dl-nodeinfo-{self.node}"
        path = f"/api/v1/namespaces/mindx-dl/configmaps/{name}"
        return self.bed.request("GET", path)[0] == 200

    def is_ready(self) -> bool:
        node = self.bed.client.ask("GET", f"/api/v1/nodes/{self.node}")
        found = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        return bool(found["Ready"] == "True")


@pytest.fixture
def stage(testbed: Testbed, namespace: str) -> Iterator[Stage]:
    (machine,) = fleet("atlas-800t-a2", 1, prefix=namespace)
    with Actor(testbed.client, layout=Layout.DIRECT) as actor:
        actor.add_machines([machine])
        yield Stage(testbed, actor, machine.name)
        actor.remove_node(machine.name)


def test_chips_are_broken_and_mended_as_the_annotation_says(stage: Stage) -> None:
    assert stage.write("3, network-4") == [f"broken of {stage.node}: 3, network-4"]
    assert stage.chips("Unhealthy") == "Ascend910-3"
    assert stage.chips("NetworkUnhealthy") == "Ascend910-4"

    stage.write("4")
    assert stage.chips("Unhealthy") == "Ascend910-4"
    assert stage.chips("NetworkUnhealthy") == ""

    assert stage.write(None) == [f"{stage.node} is whole again"]
    assert stage.chips("Unhealthy") == ""


def test_a_node_is_broken_and_mended_as_the_annotation_says(stage: Stage) -> None:
    stage.write("node,not-ready")
    assert (stage.has_node_report(), stage.is_ready()) == (True, False)

    stage.write("not-ready")
    assert (stage.has_node_report(), stage.is_ready()) == (False, False)

    stage.write(None)
    assert stage.is_ready()


def test_what_cannot_be_broken_is_one_line_and_what_is_broken_stays(
    stage: Stage,
) -> None:
    stage.write("3")

    (line,) = stage.write("3,disk")

    assert line.startswith(f"annotation {BROKEN} of node {stage.node!r} is '3,disk', ")
    assert stage.chips("Unhealthy") == "Ascend910-3"
    stage.write(None)
    assert stage.chips("Unhealthy") == ""
