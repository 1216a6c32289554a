"""A node as the core knows it, from its object, the reports on it and the topology.

A chip is there when the annotation ``baseDeviceInfos`` lists it; every other chip of
the product counts as faulty, as do those that are reported unhealthy or recovering.
Which chips pods hold is not told here, but a node offers no more chips than Kubernetes
counts there as allocatable, and none where it is unclear which ones pods hold.

NB: Every node gets a label ``metadata.name``, its name, for pods that select nodes by
that field. A node of Kubernetes lists all it has: it has nothing of a resource that it
does not name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, field

from ringleaf.kube.demand import NAME_FIELD, digest_of
from ringleaf.kube.node_reports import NodeReports
from ringleaf.kube.objects import NodeObject
from ringleaf.kube.products import DEVICES, TYPE, is_npu, product_of_node
from ringleaf.kube.quantity import COUNTED, BadQuantity, quantity, whole_number
from ringleaf.kube.reports import NodeHealth, SwitchHealth
from ringleaf.model.cache import Cache
from ringleaf.model.cluster import Node
from ringleaf.model.demand import Effect, Taint
from ringleaf.model.fault import Down
from ringleaf.model.mask import MAX_CHIPS, chips_of, full_mask, mask_of
from ringleaf.model.product import Product
from ringleaf.model.topology import Topology, quoted, seats
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import NO_NPU
from ringleaf.policies.words import some_of

NO_SUPERPOD: Final = -2
"""What the vendor writes for a node that stands in no SuperPoD."""

MAX_TOLD: Final = 3
"""Names told at once."""

MAX_SUPERPOD: Final = 1 << 31

MAX_RESOURCES: Final = 100
"""Resources of a node that are counted, chips aside."""
COMMON: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""Resources that every node has."""


class Device(Struct, frozen=True):
    """What other chips must know of a chip to reach it."""

    ip: str = field(default="", name="IP")
    super_device_id: int = field(default=0, name="SuperDeviceID")
    device_id: int | None = field(default=None, name="DeviceID")


class Inventory(Struct, frozen=True):
    """The chips that a node lists: what they are called, and each by its number."""

    prefix: str | None = None
    devices: Mapping[int, Device] = MappingProxyType({})
    problems: tuple[str, ...] = ()


class NodeInfo(Struct, frozen=True):
    """A node as the core knows it, and what is written on pods that go there.

    Args:
        node: The node; its free chips are all that are listed.
        devices: Its chips that pods may get, by their numbers.
        address: Its InternalIP.
        allocatable: The chips that Kubernetes counts on it.
        superpod_id: The SuperPoD it stands in, as the vendor writes it.
        rack_id: The rack it stands in, as the vendor writes it.
        server_index: Its number in the SuperPoD, as it was given.
        is_unclear: The holders of its chips are not known, so none is given.
        is_short: Kubernetes counts fewer healthy chips than the node lists.
        faults: What is wrong with its chips, as the device plugin tells it.
        problems: What an operator should fix, one line each.

    """

    node: Node
    devices: Mapping[int, Device]
    address: str = ""
    allocatable: int = 0
    superpod_id: int = NO_SUPERPOD
    rack_id: int = 0
    server_index: str = ""
    is_unclear: bool = False
    is_short: bool = False
    faults: tuple[Mapping[str, Any], ...] = ()
    problems: tuple[str, ...] = ()


def node_of(
    given: NodeObject,
    said: NodeReports,
    topology: Topology | None = None,
    *,
    is_unclear: bool = False,
    held: int = 0,
) -> NodeInfo:
    """What is known of a node on which pods hold the chips *held*."""
    metadata = given.metadata
    annotations = metadata.annotations or {}
    problems: list[str] = []
    inventory = _inventory(annotations.get(DEVICES))
    product = _product(given, inventory, problems)
    n_chips = _size(given, product, inventory.devices)
    # A pod that names a chip which is not there holds one that it does not name.
    is_unclear |= bool(held & ~full_mask(n_chips))
    devices = _devices(product, n_chips, inventory, problems)
    masks = _faults(said, product, n_chips, devices, problems)
    allocatable = _allocatable(given, product.resource)
    kept_back = _surplus(mask_of(devices) & ~masks.faulty, held, allocatable)
    if kept_back:
        problems.append(_short_words(product, allocatable, kept_back.bit_count()))
    down = _down(given, said)
    weak_switch = _has_weak_switch(said)
    address = _address(given)
    leaf, slot = _place(topology, address, problems)
    superpod = _superpod(said, annotations, problems)
    node = Node(
        name=metadata.name,
        product=product,
        chips=n_chips,
        free=mask_of(devices),
        faulty=masks.faulty,
        network_faulty=masks.network,
        ready=down is None,
        sub_healthy=weak_switch or bool(said.device and said.device.sub_healthy),
        superpod=superpod,
        leaf=leaf,
        slot=slot,
        cordoned=given.spec.unschedulable or _is_separated(said),
        labels={**(metadata.labels or {}), NAME_FIELD: metadata.name},
        taints=tuple(_taints(given, problems)),
        resources=_resources(given, problems),
        lists_all=True,
        unhealthy=masks.unhealthy,
        weak=masks.weak,
        weak_switch=weak_switch,
        down=down,
        offers=_offers(n_chips, kept_back, is_unclear=is_unclear),
        allocatable=allocatable if allocatable < n_chips else None,
    )
    return NodeInfo(
        node=node,
        devices=devices,
        address=address,
        allocatable=allocatable,
        superpod_id=NO_SUPERPOD if superpod is None else superpod,
        rack_id=_number(annotations.get("rackID")) or 0,
        server_index=_server_index(said, annotations),
        is_unclear=is_unclear,
        is_short=bool(kept_back),
        faults=() if said.device is None else said.device.faults,
        problems=tuple(f"Node {quoted(metadata.name)}: {line}" for line in problems),
    )


def leaves_of(topology: Topology | None) -> tuple[Leaf, ...]:
    """The leaf switches of a topology, by their addresses."""
    found: dict[str, Leaf] = {}
    for switch in () if topology is None else topology.switches:
        name = switch.address
        leaf = Leaf(name, name, switch.state, switch.healthy, order=len(found))
        found.setdefault(name, leaf)
    return tuple(found.values())


# The chips.


_inventories: Final[Cache[bytes, Inventory]] = Cache(1 << 15, 64 << 20)
_CHIP_BYTES: Final = 500


def _inventory(text: str | None) -> Inventory:
    """The chips listed in an annotation; nodes tell the same again and again."""
    if text is None:
        return Inventory()
    key = digest_of(text.encode(errors="surrogatepass"))
    found = _inventories.get(key)
    if found is None:
        found = _read_inventory(text)
        _inventories.put(key, found, _CHIP_BYTES * (1 + len(found.devices)))
    return found


def _read_inventory(text: str) -> Inventory:
    try:
        listed = msgspec.json.decode(text, type=dict[str, Device])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        line = f"annotation {DEVICES} cannot be read: {str(error)[:200]}"
        return Inventory(problems=(f"{line}; no chips are given",))
    problems = []
    prefixes = sorted({name.partition("-")[0] for name in listed})
    devices = {}
    virtual, unknown = [], []
    for name, device in listed.items():
        if found := _CHIP.fullmatch(name):
            devices[int(found[1])] = device
        elif name.count("-") > 1:
            virtual.append(name)
        else:
            unknown.append(name)
    if virtual:
        told = some_of(map(quoted, sorted(virtual)), MAX_TOLD)
        problems.append(
            f"annotation {DEVICES} lists {told}: virtual NPUs are not placed"
        )
    if unknown or len(prefixes) > 1:
        told = some_of(map(quoted, sorted(unknown or listed)), MAX_TOLD)
        problems.append(
            f"annotation {DEVICES} lists {told}, want names such as 'Ascend910-0'"
        )
    prefix = prefixes[0] if len(prefixes) == 1 else None
    return Inventory(prefix, devices if prefix else {}, tuple(problems))


_CHIP: Final = re.compile(r"(?:Ascend910|Ascend310P?|npu)-(0|[1-9][0-9]{0,3})")


def _product(given: NodeObject, inventory: Inventory, problems: list[str]) -> Product:
    """The product of a node; one that we do not know has no chips for us."""
    problems += inventory.problems
    product = product_of_node(given, inventory.prefix)
    if product is None:
        labels = given.metadata.labels or {}
        has = ", ".join(
            f"{key} {quoted(labels[key])}" if key in labels else f"no {key}"
            for key in ("accelerator", TYPE)
        )
        problems.append(
            f"its labels ({has}) name no product that is known; "
            "no chips are given; hint: ringleaf products lists them"
        )
        return NO_NPU
    listed = given.metadata.annotations or {}
    if product is not NO_NPU and DEVICES not in listed:
        problems.append(f"annotation {DEVICES} is missing; no chips are given")
    return product


def _size(given: NodeObject, product: Product, listed: Mapping[int, Device]) -> int:
    """The chips of a node: the product's, or as many whole groups as it lists."""
    if not product.sized:
        return product.chips
    inside = [chip for chip in listed if chip < product.chips]
    n_chips = max(inside) + 1 if inside else _allocatable(given, product.resource)
    if product.width < product.chips:
        n_chips += -n_chips % product.width
    return n_chips if 0 < n_chips <= product.chips else product.chips


def _devices(
    product: Product, n_chips: int, inventory: Inventory, problems: list[str]
) -> Mapping[int, Device]:
    """The listed chips that such a node can have."""
    listed = inventory.devices if product.chips else {}
    if outside := sorted(chip for chip in listed if chip >= n_chips):
        told = some_of(map(str, outside), MAX_TOLD)
        problems.append(
            f"annotation {DEVICES} lists chip {told}, want 0 to {n_chips - 1} on "
            f"{product.key}"
        )
        return {chip: listed[chip] for chip in listed if chip < n_chips}
    return listed


class _Masks(NamedTuple):
    """What is said of the chips of a node."""

    faulty: int
    """Chips that are not given."""
    network: int = 0
    unhealthy: int = 0
    weak: int = 0


def _faults(
    said: NodeReports,
    product: Product,
    n_chips: int,
    devices: Mapping[int, Device],
    problems: list[str],
) -> _Masks:
    """The chips that are not given, and how others are."""
    everything = full_mask(n_chips)
    missing = everything & ~mask_of(devices)
    if (report := said.device) is None:
        return _Masks(missing)

    def mask(names: Iterable[str]) -> int:
        return _chip_mask(names, product.chip_prefix) & everything

    told = report.unhealthy | report.recovering | report.network_unhealthy
    if unknown := sorted(name for name in told if not mask([name])):
        told_names = some_of(map(quoted, unknown), MAX_TOLD)
        problems.append(
            f"the report on its chips names {told_names}, which it does not have"
        )
    unhealthy = mask(report.unhealthy)
    return _Masks(
        faulty=missing | unhealthy | mask(report.recovering),
        network=mask(report.network_unhealthy),
        unhealthy=unhealthy,
        weak=mask(report.sub_healthy),
    )


def _offers(n_chips: int, kept_back: int, *, is_unclear: bool) -> int | None:
    """The chips that a node gives now; None for all of them."""
    if is_unclear:
        return 0
    return full_mask(n_chips) & ~kept_back if kept_back else None


def _surplus(healthy: int, held: int, allocatable: int) -> int:
    """Healthy chips that the kubelet would give to no pod: it counts fewer.

    Which ones it does not say. Of those that no pod holds, the last are kept back.

    >>> bin(_surplus(0b1111, 0b0001, 2)), _surplus(0b1111, 0, 4)
    ('0b1100', 0)
    """
    surplus = healthy.bit_count() - allocatable
    idle = chips_of(healthy & ~held)
    return mask_of(idle[-surplus:]) if surplus > 0 else 0


def _short_words(product: Product, allocatable: int, kept_back: int) -> str:
    return (
        f"status.allocatable counts {allocatable} {product.resource}, annotation "
        f"{DEVICES} lists more that are healthy; {kept_back} are not given; "
        "hint: see whether the device plugin runs"
    )


def _chip_mask(names: Iterable[str], prefix: str) -> int:
    chips = (name.removeprefix(f"{prefix}-") for name in names)
    numbers = (whole_number(chip) for chip in chips)
    return mask_of(n for n in numbers if n is not None and n < MAX_CHIPS)


# How it is.


def _down(given: NodeObject, said: NodeReports) -> Down | None:
    """Why a node is not ready; None where it is."""
    if said.node is not None and said.node.status is NodeHealth.UNHEALTHY:
        return Down.DAEMON
    if said.switch is not None and said.switch.status is SwitchHealth.UNHEALTHY:
        return Down.SWITCH
    conditions = given.status.conditions or ()
    ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
    return None if ready else Down.NOT_READY


def _has_weak_switch(said: NodeReports) -> bool:
    return said.switch is not None and said.switch.status is SwitchHealth.SUB_HEALTHY


def _is_separated(said: NodeReports) -> bool:
    """Whether the node daemon wants no new pods there."""
    return said.node is not None and said.node.status is NodeHealth.PRE_SEPARATE


def _taints(given: NodeObject, problems: list[str]) -> Iterator[Taint]:
    for i, taint in enumerate(given.spec.taints or ()):
        try:
            yield Taint(taint.key, Effect(taint.effect), taint.value)
        except ValueError:
            *most, last = Effect
            problems.append(
                f"spec.taints[{i}].effect is {quoted(taint.effect)}, "
                f"want {', '.join(most)} or {last}"
            )


def _resources(given: NodeObject, problems: list[str]) -> dict[str, int]:
    """What the node has for pods besides chips; what cannot be read is nothing.

    Every resource that any node names is counted for all nodes. Of more than
    ``MAX_RESOURCES`` the first by name count, after those that every pod asks for.
    """
    found = {}
    listed = {
        n: v for n, v in (given.status.allocatable or {}).items() if not is_npu(n)
    }
    if len(listed) > MAX_RESOURCES:
        problems.append(
            f"status.allocatable has {len(listed)} resources, want at most "
            f"{MAX_RESOURCES}; pods get nothing of the others"
        )
        first = sorted(listed, key=lambda name: (name not in COMMON, name))
        listed = {name: listed[name] for name in first[:MAX_RESOURCES]}
    for name, value in listed.items():
        try:
            found[name] = min(max(quantity(value), 0), COUNTED - 1)
        except BadQuantity as error:
            problems.append(f"status.allocatable[{quoted(name)}] is {error}")
            found[name] = 0
    return found


def _allocatable(given: NodeObject, resource: str) -> int:
    """The chips that Kubernetes counts; 0 where it counts none."""
    try:
        return (
            max(quantity((given.status.allocatable or {}).get(resource, 0)), 0) // 1000
        )
    except BadQuantity:
        return 0


# Where it stands.


def _address(given: NodeObject) -> str:
    addresses = given.status.addresses or ()
    own = (each.address for each in addresses if each.type == "InternalIP")
    return next(own, "")


class _Seats:
    """Where the nodes of a topology stand; one topology is asked for many nodes."""

    def __init__(self) -> None:
        self._topology: Topology | None = None
        self._places: dict[str, tuple[str, int | None]] = {}

    def of(self, topology: Topology, address: str) -> tuple[str, int | None] | None:
        """The leaf and the slot of a node; no slot where it is out of place."""
        if topology is not self._topology:
            self._places = {}
            for switch in topology.switches:
                seated, others = seats(switch, topology.leaf_size)
                for slot, server in enumerate(seated):
                    if server is not None:
                        place = switch.address, slot
                        self._places.setdefault(server.address, place)
                for server in others:
                    self._places.setdefault(server.address, (switch.address, None))
            self._topology = topology
        return self._places.get(address)


_seats: Final = _Seats()


def _place(
    topology: Topology | None, address: str, problems: list[str]
) -> tuple[str | None, int]:
    """The leaf of a node and its slot there; a node out of place is under none."""
    place = _seats.of(topology, address) if topology is not None and address else None
    if place is None:
        return None, 0
    leaf, slot = place
    if slot is None:
        problems.append(
            f"its slot under leaf {quoted(leaf)} is out of range or another node's; "
            "it counts as under no leaf; hint: ringleaf topology check"
        )
        return None, 0
    return leaf, slot


def _superpod(
    said: NodeReports, annotations: Mapping[str, str], problems: list[str]
) -> int | None:
    """The SuperPoD of a node: as reported, or else as its annotation says."""
    reported = None if said.device is None else said.device.superpod
    if reported is not None and reported < MAX_SUPERPOD:
        return reported
    text = annotations.get("superPodID")
    number = _number(text)
    if text and number is None:
        problems.append(f"annotation superPodID is {quoted(text)}, want a whole number")
    return number if number is not None and 0 <= number < MAX_SUPERPOD else None


def _server_index(said: NodeReports, annotations: Mapping[str, str]) -> str:
    own = annotations.get("serverIndex")
    if own is not None or said.device is None or said.device.server_index is None:
        return own or ""
    return str(said.device.server_index)


def _number(text: str | None) -> int | None:
    found = re.fullmatch(r"-?[0-9]{1,18}", text or "")
    return int(found[0]) if found else None
