"""Nodes as the core knows them, from objects, reports and the topology."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.kube.node_info import Device, NodeInfo, leaves_of, node_of
from ringleaf.kube.node_reports import NodeReports
from ringleaf.kube.objects import NodeObject
from ringleaf.kube.quantity import COUNTED
from ringleaf.kube.reports import (
    DeviceReport,
    NodeHealth,
    NodeReport,
    SwitchHealth,
    SwitchReport,
)
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import Effect, Taint
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import LeafState
from ringleaf.model.topology import Server, Switch, Topology
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import NO_NPU, PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]
R = "huawei.com/Ascend910"
LABELS = {"accelerator-type": "module-910b-8", "accelerator": "huawei-Ascend910"}
READY = [{"type": "Ready", "status": "True"}]
NOTHING = NodeReports()


def infos(chips: Any = range(8), prefix: str = "Ascend910") -> str:  # noqa: ANN401
    return json.dumps(
        {f"{prefix}-{i}": {"IP": f"10.0.0.{i}", "SuperDeviceID": i} for i in chips}
    )


def raw(
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, Any] | None = None,
    conditions: list[dict[str, str]] | None = None,
    addresses: list[dict[str, str]] | None = None,
    **spec: Any,  # noqa: ANN401
) -> NodeObject:
    """An A2 node of eight chips as it comes from the API server."""
    plain = {
        "metadata": {
            "name": "n1",
            "labels": LABELS if labels is None else labels,
            "annotations": (
                {"baseDeviceInfos": infos()} if annotations is None else annotations
            ),
        },
        "spec": spec,
        "status": {
            "allocatable": {R: "8"} if allocatable is None else allocatable,
            "conditions": READY if conditions is None else conditions,
            "addresses": addresses or [],
        },
    }
    return msgspec.convert(plain, NodeObject)


def device(**lists: Any) -> NodeReports:  # noqa: ANN401
    """A report in which chips are numbers."""
    given: dict[str, Any] = {
        key: frozenset(f"Ascend910-{chip}" for chip in value)
        if isinstance(value, list)
        else value
        for key, value in lists.items()
    }
    return NodeReports(device=DeviceReport(**given))


def read(given: NodeObject, said: NodeReports = NOTHING, **keys: Any) -> Node:  # noqa: ANN401
    """The node, which has no problems."""
    found = node_of(given, said, **keys)
    assert found.problems == ()
    return found.node


def only(found: NodeInfo) -> str:
    (line,) = found.problems
    assert "\n" not in line
    assert line.startswith("Node 'n1': ")
    return line.removeprefix("Node 'n1': ")


def test_a_healthy_node() -> None:
    found = node_of(raw(), NOTHING)

    assert found.node == Node(
        "n1", A2, 8, 0xFF, labels={**LABELS, "metadata.name": "n1"}, lists_all=True
    )
    assert found.devices == {i: Device(f"10.0.0.{i}", i) for i in range(8)}
    assert (found.allocatable, found.superpod_id, found.rack_id) == (8, -2, 0)
    assert (found.address, found.server_index) == ("", "")
    assert found.problems == ()


def test_a_node_without_npus() -> None:
    given = raw({}, {}, {"cpu": "4", "pods": "110"})

    assert read(given) == Node(
        "n1",
        NO_NPU,
        0,
        0,
        labels={"metadata.name": "n1"},
        resources={"cpu": 4000, "pods": 110_000},
        lists_all=True,
    )


def test_reported_chips() -> None:
    said = device(
        unhealthy=[0, 7], recovering=[1], network_unhealthy=[2], sub_healthy=[3]
    )

    found = read(raw(), said)

    assert found.free == 0xFF
    assert found.faulty == mask_of([0, 1, 7])
    assert found.network_faulty == mask_of([2])
    assert found.sub_healthy


def test_chips_that_are_not_listed_are_faulty() -> None:
    found = node_of(raw({"baseDeviceInfos": infos([0, 1, 5])}), device(unhealthy=[5]))

    assert found.node.free == mask_of([0, 1, 5])
    assert found.node.faulty == 0xFF ^ mask_of([0, 1])
    assert set(found.devices) == {0, 1, 5}
    assert found.problems == ()


def test_other_chips_of_atlas_350() -> None:
    text = '{"npu-0":{"DeviceID":3,"IP":"","SuperDeviceID":7,"levelList":[1]}}'
    given = raw(
        {"baseDeviceInfos": text},
        {"accelerator-type": "350-Atlas-4p-8"},
        {"huawei.com/npu": "8"},
    )

    found = node_of(given, NodeReports(DeviceReport(unhealthy=frozenset({"npu-0"}))))

    assert found.node.product is PRODUCTS["atlas-350-4p-8"]
    assert found.devices == {0: Device("", 7, 3)}
    assert found.node.faulty == 0xFF


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "{",
            (
                "annotation baseDeviceInfos cannot be read: "
                "Input data was truncated; no chips are given"
            ),
        ),
        (
            '{"Ascend910-0":5}',
            (
                "annotation baseDeviceInfos cannot be read: "
                "Expected `object`, got `int` - at `$[...]`; no chips are given"
            ),
        ),
        (
            '{"Ascend910-0":{"IP":5}}',
            (
                "annotation baseDeviceInfos cannot be read: "
                "Expected `str`, got `int` - at `$[...].IP`; no chips are given"
            ),
        ),
        (None, "annotation baseDeviceInfos is missing; no chips are given"),
        (
            '{"Ascend910-x":{}}',
            (
                "annotation baseDeviceInfos lists 'Ascend910-x', want names such as "
                "'Ascend910-0'"
            ),
        ),
        (
            '{"Ascend910-0":{},"Ascend310-1":{}}',
            (
                "annotation baseDeviceInfos lists 'Ascend310-1', 'Ascend910-0', want "
                "names such as 'Ascend910-0'"
            ),
        ),
        (
            '{"Ascend910-2c-100-1":{}}',
            (
                "annotation baseDeviceInfos lists 'Ascend910-2c-100-1': "
                "virtual NPUs are not placed"
            ),
        ),
        (
            '{"Ascend910-8":{},"Ascend910-99":{}}',
            "annotation baseDeviceInfos lists chip 8, 99, want 0 to 7 on atlas-800t-a2",
        ),
    ],
)
def test_chips_that_cannot_be_read_are_not_given(text: str | None, line: str) -> None:
    """The product is known all the same."""
    found = node_of(raw({} if text is None else {"baseDeviceInfos": text}), NOTHING)

    assert only(found) == line
    assert (found.node.product, found.node.chips) == (A2, 8)
    assert (found.node.free, found.node.faulty) == (0, 0xFF)
    assert found.devices == {}


@pytest.mark.parametrize("text", ["x" * (1 << 20), "[" * 100_000, '{"a":' * 50_000])
def test_garbage_is_told_in_one_line(text: str) -> None:
    assert len(only(node_of(raw({"baseDeviceInfos": text}), NOTHING))) < 300


def test_whole_chips_beside_virtual_ones_are_given() -> None:
    text = '{"Ascend910-0":{},"Ascend910-2c-100-1":{}}'

    found = node_of(raw({"baseDeviceInfos": text}), NOTHING)

    assert "virtual NPUs" in only(found)
    assert (found.node.free, found.node.faulty) == (0b1, 0xFE)


def test_a_node_of_an_unknown_product_has_no_chips() -> None:
    labels = {"accelerator-type": "850-Atlas-8p-8"}
    found = node_of(raw(labels=labels), device(unhealthy=[1]))

    assert found.node.product is NO_NPU
    assert (found.node.chips, found.node.free, found.devices) == (0, 0, {})
    assert found.problems[0] == (
        "Node 'n1': its labels (no accelerator, accelerator-type '850-Atlas-8p-8') "
        "name no product that is known; no chips are given; "
        "hint: ringleaf products lists them"
    )


def test_reports_on_chips_that_are_not_there_are_told() -> None:
    found = node_of(raw(), device(unhealthy=[8, 1], network_unhealthy=[9]))

    assert found.node.faulty == 0b10
    assert only(found) == (
        "the report on its chips names 'Ascend910-8', 'Ascend910-9', "
        "which it does not have"
    )


@pytest.mark.parametrize(
    ("resource", "labels", "chips", "size"),
    [
        pytest.param("Ascend310", {}, range(8), 8, id="two cards of 4"),
        pytest.param("Ascend310", {}, [0, 1, 2, 5], 8, id="whole cards"),
        pytest.param("Ascend310P", {}, range(5), 5, id="no cards: as many as listed"),
        pytest.param(
            "Ascend310P",
            {"infer-card-type": "card-300i-duo"},
            range(5),
            6,
            id="three Duo cards",
        ),
    ],
)
def test_products_that_come_in_sizes(
    resource: str,
    labels: dict[str, str],
    chips: Any,  # noqa: ANN401
    size: int,
) -> None:
    given = raw(
        {"baseDeviceInfos": infos(chips, resource)},
        labels,
        {f"huawei.com/{resource}": str(len([*chips]) or 4)},
    )

    found = read(given)

    assert found.chips == size
    assert found.free == mask_of(chips)
    assert found.faulty == ((1 << size) - 1) ^ mask_of(chips)


@pytest.mark.parametrize(("counted", "size"), [("6", 8), ("0", 64), ("x", 64)])
def test_a_size_that_is_not_listed_is_what_kubernetes_counts(
    counted: str, size: int
) -> None:
    found = node_of(raw({}, {}, {"huawei.com/Ascend310": counted}), NOTHING)

    assert "is missing" in only(found)
    assert (found.node.chips, found.node.free) == (size, 0)


@pytest.mark.parametrize(
    ("conditions", "said", "ready"),
    [
        (READY, NOTHING, True),
        ([], NOTHING, False),
        ([{"type": "Ready", "status": "Unknown"}], NOTHING, False),
        ([{"type": "DiskPressure", "status": "True"}], NOTHING, False),
        (READY, NodeReports(node=NodeReport(NodeHealth.UNHEALTHY)), False),
        (READY, NodeReports(node=NodeReport(NodeHealth.PRE_SEPARATE)), True),
        (READY, NodeReports(switch=SwitchReport(SwitchHealth.UNHEALTHY)), False),
        (READY, NodeReports(switch=SwitchReport(SwitchHealth.SUB_HEALTHY)), True),
    ],
)
def test_a_node_is_ready(
    conditions: list[dict[str, str]], said: NodeReports, *, ready: bool
) -> None:
    assert read(raw(conditions=conditions), said).ready is ready


def test_a_node_that_is_cordoned_or_to_be_separated_takes_no_new_pods() -> None:
    separated = NodeReports(node=NodeReport(NodeHealth.PRE_SEPARATE))

    assert read(raw(unschedulable=True)).cordoned
    assert read(raw(), separated).cordoned
    assert not read(raw(), NodeReports(node=NodeReport())).cordoned


def test_a_node_is_sub_healthy() -> None:
    assert read(
        raw(), NodeReports(switch=SwitchReport(SwitchHealth.SUB_HEALTHY))
    ).sub_healthy
    assert read(raw(), device(sub_healthy=[1])).sub_healthy
    assert not read(raw(), device(network_unhealthy=[1])).sub_healthy


def test_taints() -> None:
    taints = [
        {"key": "a", "effect": "NoSchedule", "value": "x"},
        {"key": "b", "effect": "Never"},
        {"key": "c", "effect": "NoExecute"},
    ]

    found = node_of(raw(taints=taints), NOTHING)

    assert found.node.taints == (
        Taint("a", Effect.NO_SCHEDULE, "x"),
        Taint("c", Effect.NO_EXECUTE),
    )
    assert only(found) == (
        "spec.taints[1].effect is 'Never', "
        "want NoSchedule, PreferNoSchedule or NoExecute"
    )


def test_resources_are_what_is_allocatable_besides_chips() -> None:
    has = {R: "8", "cpu": "3900m", "memory": "1Gi", "rdma/hca": 2, f"{R}-2c": "1"}

    found = read(raw(allocatable={**has, "pods": "110"}))

    assert found.resources == {
        "cpu": 3900,
        "memory": 2**30 * 1000,
        "rdma/hca": 2000,
        "pods": 110_000,
    }


def test_a_node_has_nothing_of_what_it_does_not_name() -> None:
    found = read(raw(allocatable={R: "8", "cpu": "1"}))

    assert found.resources == {"cpu": 1000}
    assert found.lists_all


def test_amounts_that_are_none() -> None:
    has = {R: "8", "cpu": "four", "memory": "-1", "disk": "9Ei"}

    found = node_of(raw(allocatable=has), NOTHING)

    assert found.node.resources == {"cpu": 0, "memory": 0, "disk": COUNTED - 1}
    assert only(found).startswith("status.allocatable['cpu'] is 'four', want an amount")


@pytest.mark.parametrize(
    ("said", "annotation", "superpod"),
    [
        (NOTHING, None, None),
        (NOTHING, "3", 3),
        (NOTHING, "0", 0),
        (NOTHING, "-1", None),
        (device(superpod=0), "3", 0),
        (device(), "3", 3),
        (device(superpod=1 << 70), None, None),
    ],
)
def test_the_superpod_of_a_node(
    said: NodeReports, annotation: str | None, superpod: int | None
) -> None:
    more = {} if annotation is None else {"superPodID": annotation}

    found = node_of(raw({"baseDeviceInfos": infos(), **more}), said)

    assert found.node.superpod == superpod
    assert found.superpod_id == (-2 if superpod is None else superpod)
    assert found.problems == ()


def test_a_superpod_that_is_no_number_is_told() -> None:
    found = node_of(raw({"baseDeviceInfos": infos(), "superPodID": "x"}), NOTHING)

    assert only(found) == "annotation superPodID is 'x', want a whole number"


@pytest.mark.parametrize(
    ("said", "annotations", "index", "rack"),
    [
        (NOTHING, {}, "", 0),
        (device(server_index=5), {}, "5", 0),
        (device(server_index=5), {"serverIndex": "7", "rackID": "2"}, "7", 2),
        (NOTHING, {"serverIndex": "7", "rackID": "x"}, "7", 0),
    ],
)
def test_what_rank_tables_say_of_a_node(
    said: NodeReports, annotations: dict[str, str], index: str, rack: int
) -> None:
    found = node_of(raw({"baseDeviceInfos": infos(), **annotations}), said)

    assert (found.server_index, found.rack_id) == (index, rack)


TOPOLOGY = Topology(
    4,
    switches=(
        Switch(0, "L0", (Server("10.1.0.0", 0), Server("10.1.0.1", 2))),
        Switch(
            1,
            "L1",
            (Server("10.1.0.2", 0), Server("10.1.0.3", 0), Server("10.1.0.4", 9)),
            LeafState.SHARED,
            healthy=False,
        ),
    ),
)


def at(address: str) -> NodeObject:
    return raw(
        addresses=[
            {"type": "ExternalIP", "address": "10.1.0.0"},
            {"type": "InternalIP", "address": address},
        ]
    )


@pytest.mark.parametrize(
    ("address", "leaf", "slot"),
    [("10.1.0.1", "L0", 2), ("10.1.0.2", "L1", 0), ("10.9.9.9", None, 0)],
)
def test_a_node_stands_under_the_leaf_that_lists_its_address(
    address: str, leaf: str | None, slot: int
) -> None:
    found = node_of(at(address), NOTHING, TOPOLOGY)

    assert (found.node.leaf, found.node.slot) == (leaf, slot)
    assert (found.address, found.problems) == (address, ())


@pytest.mark.parametrize("address", ["10.1.0.3", "10.1.0.4"])
def test_a_node_out_of_place_is_under_no_leaf(address: str) -> None:
    found = node_of(at(address), NOTHING, TOPOLOGY)

    assert (found.node.leaf, found.node.slot) == (None, 0)
    assert "its slot under leaf 'L1' is out of range or another node's" in only(found)


def test_another_topology_is_looked_at() -> None:
    other = Topology(4, switches=(Switch(0, "X", (Server("10.1.0.1", 1),)),))

    places = [node_of(at("10.1.0.1"), NOTHING, t).node for t in (TOPOLOGY, other, None)]

    assert [(node.leaf, node.slot) for node in places] == [
        ("L0", 2),
        ("X", 1),
        (None, 0),
    ]


def test_a_node_without_an_address_is_under_no_leaf() -> None:
    nameless = Topology(4, switches=(Switch(0, "X", (Server("", 1),)),))

    assert read(raw(), topology=TOPOLOGY).leaf is None
    assert read(raw(), topology=nameless).leaf is None


def test_leaves() -> None:
    assert leaves_of(TOPOLOGY) == (
        Leaf("L0", "L0", order=0),
        Leaf("L1", "L1", LeafState.SHARED, healthy=False, order=1),
    )
    assert leaves_of(None) == ()


def test_a_leaf_that_is_listed_twice_is_the_first() -> None:
    twice = Topology(
        4, switches=(Switch(0, "L"), Switch(1, "M"), Switch(2, "L", healthy=False))
    )

    assert leaves_of(twice) == (Leaf("L", "L", order=0), Leaf("M", "M", order=1))


def test_a_node_whose_holders_are_unclear_offers_no_chips() -> None:
    found = node_of(raw(), NOTHING, is_unclear=True)

    assert found.is_unclear
    assert (found.node.free, found.node.faulty, len(found.devices)) == (255, 0, 8)
    assert found.node.offers == 0


def test_a_node_offers_no_more_chips_than_kubernetes_counts() -> None:
    found = node_of(raw(allocatable={R: "5"}), NOTHING, held=0b11000000)

    assert found.is_short
    assert (found.node.offers, found.node.allocatable) == (0b11000111, 5)
    assert only(found) == (
        "status.allocatable counts 5 huawei.com/Ascend910, annotation "
        "baseDeviceInfos lists more that are healthy; 3 are not given; "
        "hint: see whether the device plugin runs"
    )


WORDS = st.text(max_size=8) | st.sampled_from(["Ascend910", "npu", "NoSchedule", "5"])
CHIPS = st.frozensets(st.integers(0, 9999).map(lambda i: f"Ascend910-{i}"))


@given(
    st.dictionaries(
        st.sampled_from(["baseDeviceInfos", "superPodID", "rackID", "serverIndex"]),
        WORDS | st.integers().map(str) | st.sets(st.integers(0, 99)).map(infos),
    ),
    st.dictionaries(
        st.sampled_from(["accelerator", "accelerator-type", "infer-card-type"]),
        WORDS | st.sampled_from(["module", "huawei-Ascend910", "module-a3-16", "card"]),
    ),
    st.dictionaries(st.sampled_from([R, "cpu", "huawei.com/Ascend310"]), WORDS),
    st.builds(
        DeviceReport, CHIPS, CHIPS, CHIPS, superpod=st.none() | st.integers(min_value=0)
    ),
)
def test_whatever_is_written_is_a_node_that_a_cluster_takes(
    annotations: dict[str, str],
    labels: dict[str, str],
    allocatable: dict[str, str],
    report: DeviceReport,
) -> None:
    given = raw(annotations, labels, allocatable)

    found = node_of(given, NodeReports(device=report), TOPOLOGY)

    node = found.node
    assert len(Cluster([node])) == 1
    assert (node.free | node.faulty | node.network_faulty) < 1 << node.chips
    assert node.free | node.faulty == (1 << node.chips) - 1
    assert node.chips <= max(1, node.product.chips)
    assert all("\n" not in line and len(line) < 500 for line in found.problems)
