import json

import pytest
import yaml

from ringleaf.kube.topology import read_topology
from ringleaf.policies.products import PRODUCTS
from ringleaf_testbed.hardware import fleet, leaves_config_map, node_object
from ringleaf_testbed.source import TestbedError


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_node_of_every_product_counts_its_chips(product: str) -> None:
    machine = fleet(product, 1)[0]

    node = node_object(machine)

    resource = PRODUCTS[product].resource
    infos = json.loads(node["metadata"]["annotations"]["baseDeviceInfos"])
    assert list(infos) == machine.chip_names
    assert node["status"]["capacity"][resource] == str(len(infos))
    assert node["status"]["allocatable"][resource] == str(len(infos))
    assert node["metadata"]["labels"]["accelerator"].startswith("huawei-")


def test_unhealthy_chips_are_not_allocatable() -> None:
    machine = fleet("atlas-800t-a2", 1)[0]

    status = node_object(machine, unhealthy=3)["status"]

    assert status["capacity"]["huawei.com/Ascend910"] == "8"
    assert status["allocatable"]["huawei.com/Ascend910"] == "5"


def test_machines_of_a_large_fleet_have_addresses_of_their_own() -> None:
    machines = fleet("atlas-800t-a2", 5000)

    assert len({m.address for m in machines}) == 5000
    assert len({m.chip_address(chip) for m in machines for chip in range(8)}) == 40000


def test_superpods_are_filled_one_after_another() -> None:
    machines = fleet("atlas-900-a3", 5, superpod_size=2)

    assert [(m.superpod, m.server_index) for m in machines] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (2, 0),
    ]
    assert machines[1].super_device(3) == 19


def test_the_list_of_leaves_is_one_that_ringleaf_reads() -> None:
    manifest = leaves_config_map(fleet("atlas-800t-a2", 8), 4)

    topology, warnings = read_topology(yaml.safe_load(yaml.safe_dump(manifest)))

    assert warnings == []
    assert topology.leaf_size == 4
    assert [len(switch.servers) for switch in topology.switches] == [4, 4]
    assert topology.switches[1].servers[0].address == "10.1.0.4"


def test_an_unknown_product_gets_a_hint() -> None:
    with pytest.raises(TestbedError, match="hint: did you mean 'atlas-300t'"):
        fleet("atlas-300tt", 1)
