"""The nodes and leaves of a scenario, at its start or later."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.cluster import Node
from ringleaf.model.mask import full_mask, mask_of
from ringleaf.model.placement import LeafState
from ringleaf.model.product import Product
from ringleaf.model.uplinks import Leaf
from ringleaf.simulator.checks import good_chips, good_name, known_product
from ringleaf.simulator.demands import resources_of, taints_of
from ringleaf.simulator.format import MAX_NODES, LeafEntry, NodeEntry
from ringleaf.simulator.running_jobs import CROSSED_BY
from ringleaf.simulator.source import BadInput, brief, brief_text


class NodeGroup(Struct, frozen=True):
    """One entry of ``nodes`` with its names written out."""

    path: str
    entry: NodeEntry
    product: Product
    chips: int
    names: list[str]


def node_groups(path: str, entries: Sequence[NodeEntry]) -> list[NodeGroup]:
    """The entries of a list of nodes, each name once."""
    _check_total(path, entries)
    groups = [_group(f"{path}[{i}]", entry) for i, entry in enumerate(entries)]
    _check_names(groups)
    return [part for group in groups for part in _by_leaf(group)]


def _by_leaf(group: NodeGroup) -> Iterator[NodeGroup]:
    """The nodes of an entry by the leaf that its template names for each."""
    template = group.entry.leaf
    if template is None or group.entry.count is None or not _NUMBER.search(template):
        yield group
        return
    leaves = [filled(template, i) for i in range(len(group.names))]
    for leaf, nodes in groupby(zip(leaves, group.names, strict=True), itemgetter(0)):
        entry = replace(group.entry, leaf=good_name(f"{group.path}.leaf", leaf))
        yield replace(group, entry=entry, names=[name for _leaf, name in nodes])


_NUMBER: Final = re.compile(r"\{i(?:([/%])([1-9][0-9]{0,5}))?\}")
"""The number of a node in a template: as it is, divided, or what is left over."""


def filled(template: str, number: int) -> str:
    """A template with the number of a node in it.

    >>> [filled("L{i/4}", 7), filled("L{i%4}", 7), filled("L{i}", 7)]
    ['L1', 'L3', 'L7']
    """

    def of(found: re.Match[str]) -> str:
        sign, by = found.groups()
        if sign is None:
            return str(number)
        return str(number // int(by) if sign == "/" else number % int(by))

    return _NUMBER.sub(of, template)


def _group(path: str, entry: NodeEntry) -> NodeGroup:
    product = known_product(f"{path}.product", entry.product)
    names = [good_name(f"{path}.name", entry.name)]
    if entry.count is not None:
        if "{i}" not in entry.name and entry.count > 1:
            raise BadInput(
                f"{path}.name is {brief(entry.name)} for {entry.count} nodes, "
                "want '{i}' in it",
                f'name: "{brief_text(entry.name)}-{{i}}"',
            )
        good_name(f"{path}.name", entry.name.replace("{i}", str(entry.count - 1)))
        names = [entry.name.replace("{i}", str(i)) for i in range(entry.count)]
    if entry.leaf is not None:
        good_name(f"{path}.leaf", entry.leaf)
        _check_template(f"{path}.leaf", entry.leaf)
    chips = _size(path, entry, product)
    for key, listed in (
        ("free", entry.free or []),
        ("faulty", entry.faulty),
        ("network-faulty", entry.network_faulty),
        ("unhealthy", entry.unhealthy or []),
        ("weak", entry.weak),
        ("offers", entry.offers or []),
    ):
        good_chips(f"{path}.{key}", listed, chips)
    _check_health(path, entry)
    return NodeGroup(path, entry, product, chips, names)


def _check_template(path: str, leaf: str) -> None:
    """Refuse a template that fills in nothing: it would name one leaf for all nodes."""
    if "{i" in _NUMBER.sub("", leaf):
        raise BadInput(
            f"{path} is {brief(leaf)}, want {{i}}, {{i/N}} or {{i%N}} in it",
            'leaf: "L{i/4}" puts four nodes under each leaf',
        )


def _check_health(path: str, entry: NodeEntry) -> None:
    """Refuse a node that is down but ready, and ill chips that are not faulty."""
    if entry.down is not None and entry.ready:
        raise BadInput(
            f"{path}.down is {brief(str(entry.down))} where the node is ready, "
            "want no such key",
            "ready: false beside it says that the node is down",
        )
    for i, chip in enumerate(entry.unhealthy or ()):
        if chip not in entry.faulty:
            faulty = ", ".join(map(str, sorted(entry.faulty))) or "none"
            raise BadInput(
                f"{path}.unhealthy[{i}] is {chip}, want one of the faulty chips: "
                f"{faulty}",
                "chips under faulty are unhealthy unless this key says otherwise",
            )


def lost_chips(group: NodeGroup) -> frozenset[int]:
    """The chips that no pod can keep: faulty, or of a node that is not ready."""
    entry = group.entry
    if not entry.ready:
        return frozenset(range(group.chips))
    return frozenset([*entry.faulty, *entry.network_faulty])


def _size(path: str, entry: NodeEntry, product: Product) -> int:
    if not product.sized:
        if entry.chips not in (None, product.chips):
            raise BadInput(
                f"{path}.chips is {entry.chips}, want {product.chips} or no such key",
                f"every {product.key} has {product.chips} chips",
            )
        return product.chips
    want = f"a whole number from 1 to {product.chips}"
    if entry.chips is None:
        raise BadInput(
            f"{path}.chips is missing, want {want}", f"{product.key} has several sizes"
        )
    if entry.chips > product.chips:
        raise BadInput(f"{path}.chips is {entry.chips}, want {want}")
    return entry.chips


def _check_total(path: str, entries: Iterable[NodeEntry]) -> None:
    total = 0
    for i, entry in enumerate(entries):
        total += entry.count or 1
        if total > MAX_NODES:
            raise BadInput(
                f"{path}[{i}] brings the nodes to {total}, want at most {MAX_NODES}"
            )


def _check_names(groups: Iterable[NodeGroup]) -> None:
    seen: dict[str, str] = {}
    for group in groups:
        for name in group.names:
            if seen.setdefault(name, group.path) != group.path:
                raise BadInput(
                    f"{group.path}.name is {brief(name)}, "
                    f"already the name of {seen[name]}"
                )


def slots_of(groups: Iterable[NodeGroup], limit: int | None) -> dict[str, int]:
    """Node -> its slot; slots lie inside their leaf, one node in each."""
    leaves: dict[str, list[tuple[str, str, int]]] = {}
    for group in groups:
        slot = group.entry.slot
        if group.entry.leaf is None:
            continue
        under = leaves.setdefault(group.entry.leaf, [])
        first = len(under)
        under += [
            (group.path, name, first + i if slot is None else slot)
            for i, name in enumerate(group.names)
        ]
    most = limit or max((len(under) for under in leaves.values()), default=0)
    for leaf, under in leaves.items():
        if len(under) > most:
            raise BadInput(
                f"{under[most][0]}.leaf is {brief(leaf)}, which then has {len(under)} "
                f"nodes, want at most nodes-per-leaf, {most}"
            )
        taken: dict[int, str] = {}
        for path, _name, slot in under:
            if slot >= most:
                raise BadInput(f"{path}.slot is {slot}, want 0 to {most - 1}")
            if slot in taken:
                raise BadInput(
                    f"{path}.slot is {slot} under leaf {brief(leaf)}, "
                    f"already the slot of {taken[slot]}"
                )
            taken[slot] = path
    return {name: slot for under in leaves.values() for _path, name, slot in under}


def nodes_of(
    group: NodeGroup, held: Mapping[str, int], slots: Mapping[str, int]
) -> Iterator[Node]:
    """The nodes of one entry; chips that are *held* are not free."""
    entry, everything = group.entry, full_mask(group.chips)
    free = everything if entry.free is None else mask_of(entry.free)
    faulty, network_faulty = mask_of(entry.faulty), mask_of(entry.network_faulty)
    unhealthy = faulty if entry.unhealthy is None else mask_of(entry.unhealthy)
    offers = None if entry.offers is None else mask_of(entry.offers)
    weak_switch = entry.weak_switch
    if weak_switch is None:
        weak_switch = entry.sub_healthy and not entry.weak
    taints, resources = taints_of(entry), resources_of(group.path, entry.resources)
    for name in group.names:
        yield Node(
            name=name,
            product=group.product,
            chips=group.chips,
            free=free & ~held.get(name, 0),
            faulty=faulty,
            network_faulty=network_faulty,
            ready=entry.ready,
            sub_healthy=entry.sub_healthy or bool(entry.weak) or weak_switch,
            superpod=entry.superpod,
            leaf=entry.leaf,
            slot=slots.get(name, 0),
            cordoned=entry.unschedulable,
            labels=entry.labels,
            taints=taints,
            resources=resources,
            unhealthy=unhealthy,
            weak=mask_of(entry.weak),
            weak_switch=weak_switch,
            down=entry.down,
            offers=offers,
            lists_all=entry.lists_all,
            allocatable=entry.allocatable,
        )


def leaves_of(entries: Mapping[str, LeafEntry]) -> Iterator[Leaf]:
    """What is said of leaves; the order of leaves is that of the nodes."""
    for name, leaf in entries.items():
        yield Leaf(
            name=name,
            address=leaf.address,
            state=LeafState[(leaf.state or "idle").upper()],
            healthy=leaf.healthy is not False,
            crossed_by=tuple(CROSSED_BY[schema] for schema in leaf.cross_leaf_jobs),
            order=leaf.order,
        )
