import json

import pytest

from ringleaf_testbed import report
from ringleaf_testbed.hardware import Machine, fleet
from ringleaf_testbed.report import ChipFault, ChipFaultKind, MachineHealth

R = "huawei.com/Ascend910"
EIGHT = ",".join(f"Ascend910-{chip}" for chip in range(8))


def machine(product: str = "atlas-800t-a2") -> Machine:
    return fleet(product, 1)[0]


@pytest.mark.parametrize(
    ("inner", "starts", "ends"),
    [
        ({"DeviceList": None, "UpdateTime": 0}, "aaa60c79", "5966965"),
        ({"FaultDevList": None, "NodeStatus": ""}, "4c97cddc", "d07d1fed"),
        ("testHashCodeStr", "9f9046a0", "4e0a9606"),
        (None, "74234e98", "982b90b"),
        (
            {
                "DeviceList": {
                    R: EIGHT,
                    f"{R}-NetworkUnhealthy": "",
                    f"{R}-Unhealthy": "",
                },
                "UpdateTime": 1657527526,
            },
            "6b8de396fd9945be231d24720ca66ed950baf0a5972717f335aad7571cb6457a",
            "",
        ),
    ],
)
def test_the_check_code_is_the_vendors(inner: object, starts: str, ends: str) -> None:
    code = report.check_code(inner)

    assert len(code) == 64
    assert code.startswith(starts)
    assert code.endswith(ends)


def test_the_device_report_is_the_published_example() -> None:
    health = MachineHealth(faults={7: ChipFault(since_ms=1757000000000)})

    made = report.device_report(machine(), health, set(), 1757000123)

    assert made["metadata"]["name"] == "mindx-dl-deviceinfo-atlas-800t-a2-0"
    assert made["metadata"]["namespace"] == "kube-system"
    assert json.loads(made["data"]["DeviceInfoCfg"])["CheckCode"] == (
        "27908e628811bfae7325f20103291ee2954e9e629cdfbd3d78a61c753712ea54"
    )


def test_the_node_report_is_the_published_example() -> None:
    health = MachineHealth(faults={}, node_status="UnHealthy")

    made = report.node_report(machine(), health, "2026-01-01T00:00:00Z")

    assert made["data"]["NodeInfo"] == (
        '{"NodeInfo":{"FaultDevList":[{"DeviceType":"PSU","DeviceId":1,"FaultCode":'
        '["03000009"],"FaultLevel":"SeparateFault"}],"NodeStatus":"UnHealthy"},'
        '"CheckCode":'
        '"900158990109ba182ecf9b0dde08e4115f417b71b3232ba5af06e045173cb67e"}'
    )


@pytest.mark.parametrize(
    ("fault", "used", "lists"),
    [
        pytest.param(ChipFault(), (), {"-Unhealthy"}, id="a broken chip is not free"),
        pytest.param(
            ChipFault(level="SubHealthFault"), (), {""}, id="a weak chip stays free"
        ),
        pytest.param(
            ChipFault(level="PreSeparateNPU"), (), {"-Unhealthy"}, id="idle: taken out"
        ),
        pytest.param(
            ChipFault(level="PreSeparateNPU"), (3,), set(), id="in use: left to its pod"
        ),
        pytest.param(
            ChipFault(kind=ChipFaultKind.NETWORK, level="PreSeparateNPU"),
            (),
            {"", "-NetworkUnhealthy"},
            id="a chip cut off stays free",
        ),
        pytest.param(
            ChipFault(recovering=True), (), {"-Recovering"}, id="being reset: not free"
        ),
    ],
)
def test_a_faulty_chip_stands_in_these_lists(
    fault: ChipFault, used: tuple[int, ...], lists: set[str]
) -> None:
    health = MachineHealth(faults={3: fault})

    made = report.device_list(machine(), health, used)

    names = {key.removeprefix(R): value.split(",") for key, value in made.items()}
    assert {k for k, chips in names.items() if "Ascend910-3" in chips} == lists
    assert json.loads(made[f"{R}-Fault"])[0]["npu_name"] == "Ascend910-3"
    assert list(made) == sorted(made)


def test_chips_in_use_are_not_free() -> None:
    made = report.device_list(machine(), MachineHealth(faults={}), {0, 1, 2, 3, 4, 5})

    assert made[R] == "Ascend910-6,Ascend910-7"
    assert made[f"{R}-Fault"] == "[]"


def test_inference_cards_have_fewer_lists() -> None:
    made = report.device_list(
        machine("atlas-300i-duo"), MachineHealth(faults={}), set()
    )

    short = {key.removeprefix("huawei.com/Ascend310P") for key in made}
    assert short == {"", "-Fault", "-Unhealthy"}


def test_only_a3_reports_its_switches() -> None:
    health = MachineHealth(faults={}, switch_status="SubHealthy")

    plain = report.device_report(machine(), health, set(), 1)
    a3 = report.device_report(machine("atlas-900-a3"), health, set(), 1)

    assert "SwitchInfoCfg" not in plain["data"]
    assert json.loads(a3["data"]["SwitchInfoCfg"])["NodeStatus"] == "SubHealthy"
    assert json.loads(a3["data"]["DeviceInfoCfg"])["SuperPodID"] == 0


def test_five_thousand_nodes_are_cut_into_shards() -> None:
    machines = fleet("atlas-800t-a2", 5000)
    health = MachineHealth(faults={})

    made = report.shards(report.collected_device(m, health, (), 1) for m in machines)

    assert len(made) > 1
    assert max(len(text.encode()) for text in made) <= 800 << 10
    names = [name for text in made for name in json.loads(text)]
    assert names == [f"mindx-dl-deviceinfo-{m.name}" for m in machines]
