"""Reports of device plugins and daemons, in both layouts, sound and damaged."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.kube.objects import ConfigMap, Metadata
from ringleaf.kube.reports import (
    DeviceReport,
    NodeHealth,
    NodeReport,
    ReportMap,
    SwitchHealth,
    SwitchReport,
    check_code,
    is_report,
    read,
)

R = "huawei.com/Ascend910"
FAULT = (
    r"[{\"fault_type\":\"CardUnhealthy\",\"npu_name\":\"Ascend910-7\","
    r"\"large_model_fault_level\":\"SeparateNPU\",\"fault_level\":\"SeparateNPU\","
    r"\"fault_handling\":\"SeparateNPU\",\"fault_code\":\"80E01801\","
    r"\"fault_time_and_level_map\":{\"80E01801\":{\"fault_time\":1757000000000,"
    r"\"fault_level\":\"SeparateNPU\"}}}]"
)
DEVICE_INFO = (
    '{"DeviceInfo":{"DeviceList":{"huawei.com/Ascend910":"Ascend910-0,Ascend910-1,'
    'Ascend910-2,Ascend910-3,Ascend910-4,Ascend910-5,Ascend910-6",'
    f'"huawei.com/Ascend910-Fault":"{FAULT}",'
    '"huawei.com/Ascend910-NetworkUnhealthy":"","huawei.com/Ascend910-Recovering":"",'
    '"huawei.com/Ascend910-Unhealthy":"Ascend910-7"},"UpdateTime":1757000123},'
    '"SuperPodID":-2,"ServerIndex":-2,"CheckCode":'
    '"27908e628811bfae7325f20103291ee2954e9e629cdfbd3d78a61c753712ea54"}'
)
"""The worked example of the vendor's contract; its check code is right."""

NODE_INFO = (
    '{"NodeInfo":{"FaultDevList":[{"DeviceType":"PSU","DeviceId":1,'
    '"FaultCode":["03000009"],"FaultLevel":"SeparateFault"}],'
    '"NodeStatus":"UnHealthy"},"CheckCode":'
    '"900158990109ba182ecf9b0dde08e4115f417b71b3232ba5af06e045173cb67e"}'
)
SWITCH_INFO = (
    '{"FaultCode":["{}"],"FaultLevel":"SubHealthFault","UpdateTime":1757000123,'
    '"NodeStatus":"SubHealthy","FaultTimeAndLevelMap":{}}'
)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(Metadata(name, "mindx-dl"), data)


def shard(name: str, entries: object) -> ConfigMap:
    return config_map(name, **{name: json.dumps(entries)})


def devices(**lists: Any) -> dict[str, Any]:  # noqa: ANN401
    """What a shard says of a node, lists by the end of their keys."""
    listed = {f"{R}-{key}": value for key, value in lists.items()}
    return {"DeviceList": listed, "UpdateTime": 1, "CmName": "x"}


def of_node(entry: object, node: str = "n1") -> ReportMap:
    name = "cluster-info-device-0"
    return read(shard(name, {f"mindx-dl-deviceinfo-{node}": entry}))


def only(found: ReportMap) -> str:
    (line,) = found.problems
    assert "\n" not in line
    assert len(line) < 600
    return line


EIGHT = ",".join(f"Ascend910-{i}" for i in range(8))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (
            {"DeviceList": None, "UpdateTime": 0},
            "aaa60c794e2dbec298a2f3c18ea64dea9a1fd2ccdb0cc577b8dfe2c3c5966965",
        ),
        (
            {"FaultDevList": None, "NodeStatus": ""},
            "4c97cddcb947bd707778eb50b0986a69768afc2ef3e4f351db0b92e9d07d1fed",
        ),
        (
            "testHashCodeStr",
            "9f9046a094b85b781aca276c46c36956ed07f6de1ec1f94268bfce764e0a9606",
        ),
        (None, "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
        (
            {
                "DeviceList": {
                    f"{R}-Unhealthy": "",
                    f"{R}-NetworkUnhealthy": "",
                    R: EIGHT,
                },
                "UpdateTime": 1657527526,
            },
            "6b8de396fd9945be231d24720ca66ed950baf0a5972717f335aad7571cb6457a",
        ),
    ],
)
def test_check_codes_are_those_of_the_vendor(value: object, code: str) -> None:
    assert check_code(value) == code


def test_a_check_code_is_of_json_as_go_writes_it() -> None:
    """Computed once with Go's escapes: the letters stay, the five signs do not."""
    text = '{"a":"\\u003cé\\u003e\\u0026\\u2028\\u2029"}'
    value = {"a": "<é>&\u2028\u2029"}

    assert check_code(value) == _sha(text)


def _sha(text: str) -> str:
    import hashlib  # noqa: PLC0415 - the oracle's own

    return hashlib.sha256(text.encode()).hexdigest()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('aé<>&\u2028\\"\n\t'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab<é"), inner),
)


@given(PLAIN)
def test_a_check_code_depends_on_what_is_said_not_on_its_order(value: Any) -> None:  # noqa: ANN401
    turned = json.loads(
        json.dumps(value), object_pairs_hook=lambda pairs: dict(reversed(pairs))
    )
    sorted_text = json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    for sign in "<>&\u2028\u2029":
        sorted_text = sorted_text.replace(sign, f"\\u{ord(sign):04x}")

    assert check_code(turned) == check_code(value) == _sha(sorted_text)


def test_the_report_of_one_node() -> None:
    found = read(
        config_map(
            "mindx-dl-deviceinfo-n1",
            DeviceInfoCfg=DEVICE_INFO,
            SwitchInfoCfg=SWITCH_INFO,
            ManuallySeparateNPU="",
        )
    )

    assert found.problems == []
    assert found.switches == {"n1": SwitchReport(SwitchHealth.SUB_HEALTHY)}
    report = found.devices["n1"]
    assert report is not None
    assert report.unhealthy == {"Ascend910-7"}
    assert report.network_unhealthy == report.recovering == frozenset()
    assert report.sub_healthy == frozenset()
    assert (report.superpod, report.server_index) == (None, None)
    assert [fault["fault_code"] for fault in report.faults] == ["80E01801"]


def test_the_report_of_a_node_daemon() -> None:
    found = read(config_map("mindx-dl-nodeinfo-n1", NodeInfo=NODE_INFO, updateTime="x"))

    assert found == ReportMap(nodes={"n1": NodeReport(NodeHealth.UNHEALTHY)})


def test_a_check_code_does_not_depend_on_the_order_of_fields() -> None:
    turned = json.loads(NODE_INFO, object_pairs_hook=lambda p: dict(reversed(p)))

    found = read(config_map("mindx-dl-nodeinfo-n1", NodeInfo=json.dumps(turned)))

    assert found.problems == []


@pytest.mark.parametrize(
    ("name", "key", "text"),
    [
        (
            "mindx-dl-deviceinfo-n1",
            "DeviceInfoCfg",
            DEVICE_INFO.replace('Unhealthy":"Ascend910-7"', 'Unhealthy":""'),
        ),
        (
            "mindx-dl-nodeinfo-n1",
            "NodeInfo",
            NODE_INFO.replace("UnHealthy", "Healthy"),
        ),
    ],
)
def test_d23_what_does_not_fit_its_check_code_is_ignored(
    name: str, key: str, text: str
) -> None:
    """None tells to keep the last good one."""
    found = read(config_map(name, **{key: text}))

    assert {**found.devices, **found.nodes} == {"n1": None}
    assert f"'mindx-dl/{name}': {key} has CheckCode '" in only(found)


def test_without_a_check_code_nothing_is_verified() -> None:
    plain = json.loads(NODE_INFO)
    del plain["CheckCode"]

    found = read(config_map("mindx-dl-nodeinfo-n1", NodeInfo=json.dumps(plain)))

    assert found == ReportMap(nodes={"n1": NodeReport(NodeHealth.UNHEALTHY)})


def test_a_shard_of_devices() -> None:
    weak = [
        {"npu_name": "Ascend910-1", "fault_handling": "SubHealthFault"},
        {"npu_name": "Ascend910-2", "fault_handling": "NotHandleFault"},
        {"fault_handling": "SubHealthFault"},
    ]
    entry = devices(
        Unhealthy="Ascend910-3,Ascend910-4",
        NetworkUnhealthy="Ascend910-5",
        Recovering="Ascend910-6",
        Fault=json.dumps(weak),
    )
    entry["DeviceList"][R] = "Ascend910-0"
    entry["DeviceList"]["huawei.com/Ascend910-2c"] = "Ascend910-2c-100-1"

    found = of_node({**entry, "SuperPodID": 0, "ServerIndex": 3, "RackID": 1})

    assert found == ReportMap(
        devices={
            "n1": DeviceReport(
                unhealthy=frozenset({"Ascend910-3", "Ascend910-4"}),
                network_unhealthy=frozenset({"Ascend910-5"}),
                recovering=frozenset({"Ascend910-6"}),
                sub_healthy=frozenset({"Ascend910-1"}),
                superpod=0,
                server_index=3,
                faults=tuple(weak),
            )
        }
    )


def test_a_report_that_says_the_same_later_is_the_same() -> None:
    entry = devices(Unhealthy="Ascend910-1")

    assert of_node(entry) == of_node({**entry, "UpdateTime": 2})


def test_other_chips_have_other_names() -> None:
    listed = {"huawei.com/npu-Unhealthy": "npu-3"}
    inference = {"huawei.com/Ascend310P-Unhealthy": "Ascend310P-0"}

    assert of_node({"DeviceList": listed}).devices == {
        "n1": DeviceReport(unhealthy=frozenset({"npu-3"}))
    }
    assert of_node({"DeviceList": inference}).devices == {
        "n1": DeviceReport(unhealthy=frozenset({"Ascend310P-0"}))
    }


def test_shards_of_nodes_and_switches() -> None:
    node = {"mindx-dl-nodeinfo-n1": {"FaultDevList": [], "NodeStatus": "PreSeparate"}}
    switch = {"mindx-dl-switchinfo-n1": {"FaultCode": [], "NodeStatus": "UnHealthy"}}

    assert read(shard("cluster-info-node-cm", node)) == ReportMap(
        nodes={"n1": NodeReport(NodeHealth.PRE_SEPARATE)}
    )
    assert read(shard("cluster-info-switch-2", switch)) == ReportMap(
        switches={"n1": SwitchReport(SwitchHealth.UNHEALTHY)}
    )


@pytest.mark.parametrize(
    "name", ["cluster-info-device-1", "cluster-info-node-cm", "cluster-info-switch-0"]
)
def test_an_emptied_shard_has_no_nodes(name: str) -> None:
    assert read(config_map(name, **{name: ""})) == ReportMap()


def test_a_damaged_node_leaves_the_others_of_its_shard_readable() -> None:
    entries = {
        "mindx-dl-deviceinfo-a": devices(Unhealthy="Ascend910-1"),
        "mindx-dl-deviceinfo-b": devices(Unhealthy=5),
        "mindx-dl-deviceinfo-c": "nothing",
        "somebody": {},
        "mindx-dl-deviceinfo-d": {"DeviceList": None},
    }

    found = read(shard("cluster-info-device-0", entries))

    assert found.readable
    assert found.devices == {
        "a": DeviceReport(unhealthy=frozenset({"Ascend910-1"})),
        "b": None,
        "c": None,
        "d": DeviceReport(),
    }
    assert found.problems == [
        (
            "ConfigMap 'mindx-dl/cluster-info-device-0': node 'b': cannot be read: "
            "Expected `str`, got `int` - at `$.DeviceList[...]`"
        ),
        (
            "ConfigMap 'mindx-dl/cluster-info-device-0': node 'c': cannot be read: "
            "Expected `object`, got `str`"
        ),
        (
            "ConfigMap 'mindx-dl/cluster-info-device-0': the key 'somebody' is not "
            "'mindx-dl-deviceinfo-' and a node"
        ),
    ]


def test_unknown_chips_are_told_and_the_others_stay_unhealthy() -> None:
    names = "Ascend910-1,Ascend310-2,seven,Ascend910-2c-1-0,Ascend910-07,Ascend910-"

    found = of_node(devices(Unhealthy=f"{names}, Ascend910-9"))

    assert found.devices == {
        "n1": DeviceReport(unhealthy=frozenset({"Ascend910-1", "Ascend910-9"}))
    }
    assert only(found) == (
        "ConfigMap 'mindx-dl/cluster-info-device-0': node 'n1': "
        "DeviceList['huawei.com/Ascend910-Unhealthy'] names 'Ascend310-2', "
        "'Ascend910-', 'Ascend910-07' and 2 more, want names such as 'Ascend910-0'"
    )


@pytest.mark.parametrize("text", ["[", "{}", "[1]", "x" * (1 << 20), "[" * 100_000])
def test_damaged_faults_leave_the_lists_readable(text: str) -> None:
    found = of_node(devices(Unhealthy="Ascend910-1", Fault=text))

    assert found.devices == {"n1": DeviceReport(unhealthy=frozenset({"Ascend910-1"}))}
    assert "DeviceList['huawei.com/Ascend910-Fault'] " in only(found)


@pytest.mark.parametrize("text", ["", "null", "[]"])
def test_no_faults(text: str) -> None:
    assert of_node(devices(Fault=text)) == ReportMap(devices={"n1": DeviceReport()})


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"NodeStatus": "Sick"}, "Healthy, PreSeparate or UnHealthy"),
        ({"NodeStatus": 5}, "Expected `str`, got `int`"),
    ],
)
def test_an_unknown_status_is_told(entry: dict[str, Any], words: str) -> None:
    found = read(shard("cluster-info-node-cm", {"mindx-dl-nodeinfo-n1": entry}))

    assert found.nodes == {"n1": None}
    assert words in only(found)


GARBAGE = ["{", "[]", "5", "x" * (1 << 20), "[" * 100_000, '{"a":' * 50_000, "\ud800"]


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize(
    "name", ["cluster-info-device-0", "cluster-info-node-cm", "cluster-info-switch-0"]
)
def test_a_shard_of_garbage_is_told_in_one_line(name: str, text: str) -> None:
    found = read(config_map(name, **{name: text}))

    assert not found.readable
    assert not (found.devices)
    assert not (found.nodes)
    assert not (found.switches)
    assert f"ConfigMap 'mindx-dl/{name}': '{name}' " in only(found)


@pytest.mark.parametrize("text", ["", *GARBAGE], ids=range(len(GARBAGE) + 1))
def test_garbage_of_one_node_is_told_in_one_line_each(text: str) -> None:
    name = "mindx-dl-deviceinfo-n1"
    device = read(config_map(name, DeviceInfoCfg=text, SwitchInfoCfg=text))
    node = read(config_map("mindx-dl-nodeinfo-n1", NodeInfo=text))

    assert (device.devices, device.switches) == ({"n1": None}, {"n1": None})
    assert len(device.problems) == 2
    assert node.nodes == {"n1": None}
    assert "NodeInfo " in only(node)


def test_a_missing_key_is_told() -> None:
    assert only(read(config_map("mindx-dl-deviceinfo-n1"))).endswith(
        "DeviceInfoCfg is missing"
    )
    assert only(read(config_map("cluster-info-node-cm"))).endswith("is missing")
    assert not read(config_map("cluster-info-node-cm")).readable


def test_other_config_maps_are_told_apart_by_name() -> None:
    found = read(config_map("kube-root-ca.crt"))

    assert not is_report("kube-root-ca.crt")
    assert is_report("cluster-info-node-cm")
    assert is_report("mindx-dl-nodeinfo-n1")
    assert not found.readable
    assert "has no reports by its name" in only(found)


ANYTHING = st.recursive(
    st.none()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["UnHealthy", "Ascend910-1", "[{}]", "Ascend910-1,x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=3)
            | st.sampled_from(
                [
                    "DeviceInfo",
                    "DeviceList",
                    "NodeInfo",
                    "NodeStatus",
                    "FaultDevList",
                    "CheckCode",
                    "SuperPodID",
                    f"{R}-Unhealthy",
                    f"{R}-Fault",
                    "mindx-dl-deviceinfo-a",
                    "mindx-dl-nodeinfo-a",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
)


@given(
    st.sampled_from(
        [
            ("cluster-info-device-0", "cluster-info-device-0"),
            ("cluster-info-node-cm", "cluster-info-node-cm"),
            ("cluster-info-switch-0", "cluster-info-switch-0"),
            ("mindx-dl-deviceinfo-a", "DeviceInfoCfg"),
            ("mindx-dl-nodeinfo-a", "NodeInfo"),
        ]
    ),
    ANYTHING.map(json.dumps) | st.text(),
)
def test_nothing_raises(names: tuple[str, str], text: str) -> None:
    name, key = names

    found = read(config_map(name, **{key: text}))

    assert all("\n" not in line and len(line) < 1000 for line in found.problems)
    unread = None in {**found.devices, **found.nodes, **found.switches}.values()
    assert bool(found.problems) or not unread
