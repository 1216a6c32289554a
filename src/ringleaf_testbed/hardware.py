"""Ascend machines as Kubernetes sees them: Node objects and the list of leaf switches.

What the device plugin and the installer of a real cluster write on a node: labels,
``baseDeviceInfos``, how many chips there are. Products come from the catalogue.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from ringleaf.model.product import Product
from ringleaf.policies.products import find_product, similar_product
from ringleaf_testbed.source import TestbedError

LEAVES: Final = "basic-tor-node-cm"
LEAVES_NAMESPACE: Final = "kube-system"
NO_SUPERPOD: Final = -2
"""What a machine that knows no SuperPoDs says of its place in one."""

USUAL_CHIPS: Final = 8
"""Chips of a machine whose product does not say how many it has."""

# Labels that tell one product from the next; the chip names are those of one model.
_LABELS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "atlas-800-9000": {"servertype": "Ascend910-32"},
        "atlas-800-9000-half": {"servertype": "Ascend910-32"},
        "atlas-300t": {"servertype": "Ascend910-32"},
        "atlas-800t-a2": {
            "servertype": "Ascend910-20",
            "node.kubernetes.io/npu.chip.name": "910B3",
        },
        "atlas-300i-duo": {
            "servertype": "Ascend310P-8",
            "infer-card-type": "card-300i-duo",
        },
        "atlas-310p": {"servertype": "Ascend310P-8"},
    }
)


class Machine(Struct, frozen=True):
    """One node of a product.

    Args:
        name: The node's name.
        product: The row of the catalogue.
        number: Its place in the fleet; addresses follow from it.
        chips: How many chips it has.
        superpod: The SuperPoD it stands in, where there is one.
        server_index: Its place in the SuperPoD.

    """

    name: str
    product: Product
    number: int
    chips: int
    superpod: int = NO_SUPERPOD
    server_index: int = NO_SUPERPOD

    @property
    def address(self) -> str:
        """The node's InternalIP."""
        high, low = divmod(self.number, 256)
        return f"10.{1 + high // 256}.{high % 256}.{low}"

    @property
    def chip_names(self) -> list[str]:
        """Its chips by name, in the order of their ids."""
        return [self.chip_name(chip) for chip in range(self.chips)]

    @property
    def has_switches(self) -> bool:
        """Whether its node daemon reports switches of its own (A3)."""
        return self.product.group == "module"

    def chip_name(self, chip: int) -> str:
        """The name of *chip* in reports and annotations."""
        return f"{self.product.chip_prefix}-{chip}"

    def chip_address(self, chip: int) -> str:
        """The network address of *chip*."""
        high, low = divmod(self.number, 256)
        return f"100.{64 + high % 64}.{low}.{10 + chip}"

    def super_device(self, chip: int) -> int:
        """The id of *chip* among those of its SuperPoD."""
        return max(self.server_index, 0) * self.chips + chip


def fleet(
    product: str,
    count: int,
    *,
    first: int = 0,
    prefix: str | None = None,
    chips: int | None = None,
    superpod_size: int | None = None,
) -> list[Machine]:
    """*count* machines of one product, numbered from *first*.

    Machines of SuperPoD products stand in SuperPoDs of *superpod_size*, else in one.

    >>> [m.name for m in fleet("atlas-800t-a2", 2)]
    ['atlas-800t-a2-0', 'atlas-800t-a2-1']
    """
    row = find_product(product)
    if row is None:
        raise TestbedError(f"no product {product!r}; hint: {similar_product(product)}")
    size = superpod_size or count
    placed = row.superpod or superpod_size is not None
    return [
        Machine(
            name=f"{prefix or row.key}-{number}",
            product=row,
            number=number,
            chips=chips or (USUAL_CHIPS if row.sized else row.chips),
            superpod=i // size if placed else NO_SUPERPOD,
            server_index=i % size if placed else NO_SUPERPOD,
        )
        for i, number in enumerate(range(first, first + count))
    ]


def node_object(machine: Machine, *, unhealthy: int = 0) -> dict[str, Any]:
    """The Node of *machine*, ready, with *unhealthy* chips not to be had."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "labels": _labels(machine),
            "annotations": _annotations(machine),
        },
        "status": {
            "phase": "Running",
            "addresses": [
                {"type": "InternalIP", "address": machine.address},
                {"type": "Hostname", "address": machine.name},
            ],
            "capacity": _amounts(machine, machine.chips),
            "allocatable": _amounts(machine, machine.chips - unhealthy),
            "conditions": [ready_condition(ready=True)],
        },
    }


def plain_node(name: str, address: str) -> dict[str, Any]:
    """A Node without chips."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "256"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
        },
        "status": {
            "phase": "Running",
            "addresses": [{"type": "InternalIP", "address": address}],
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [ready_condition(ready=True)],
        },
    }


def ready_condition(*, ready: bool) -> dict[str, str]:
    """The condition that says whether a node is ready."""
    return {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "KubeletReady" if ready else "KubeletNotReady",
        "message": "kubelet is posting ready status" if ready else "set to not ready",
    }


def leaves_config_map(
    machines: Sequence[Machine], leaf_size: int, *, single_layer: bool = False
) -> dict[str, Any]:
    """The ConfigMap of leaf switches: *leaf_size* machines after another under each."""
    leaves = [
        {
            "tor_id": leaf,
            "tor_ip": f"10.0.{leaf // 256}.{leaf % 256}",
            "server": [
                {
                    "server_ip": machine.address,
                    "npu_count": machine.chips,
                    "slice_id": slot,
                }
                for slot, machine in enumerate(machines[start : start + leaf_size])
            ],
        }
        for leaf, start in enumerate(range(0, len(machines), leaf_size))
    ]
    info = {"version": "1.0", "tor_count": leaf_size, "server_list": leaves}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": LEAVES, "namespace": LEAVES_NAMESPACE},
        "data": {
            "tor_level": "single_layer" if single_layer else "double_layer",
            "tor_info": json.dumps(info, separators=(",", ":")),
        },
    }


def _labels(machine: Machine) -> dict[str, str]:
    kinds = machine.product.selector.accelerator_type
    return {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "host-arch": "huawei-arm",
        "accelerator": f"huawei-{machine.product.chip_prefix}",
        **({"accelerator-type": kinds[0]} if kinds else {}),
        **_LABELS.get(machine.product.key, {}),
    }


def _annotations(machine: Machine) -> dict[str, str]:
    is_npu = machine.product.chip_prefix == "npu"
    devices = {
        machine.chip_name(chip): {
            **({"DeviceID": chip} if is_npu else {}),
            "IP": machine.chip_address(chip),
            "SuperDeviceID": machine.super_device(chip),
        }
        for chip in range(machine.chips)
    }
    place = {
        "superPodID": str(machine.superpod),
        "serverIndex": str(machine.server_index),
    }
    return {
        "baseDeviceInfos": json.dumps(devices, separators=(",", ":")),
        "product-serial-number": f"SN-{machine.name}",
        **(place if machine.superpod != NO_SUPERPOD else {}),
    }


def _amounts(machine: Machine, chips: int) -> dict[str, str]:
    return {
        "cpu": "192",
        "memory": "1536Gi",
        "ephemeral-storage": "4Ti",
        "pods": "256",
        machine.product.resource: str(chips),
    }
