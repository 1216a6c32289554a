"""Which node is under which leaf switch, and what is wrong with such a description.

A topology is what an operator wrote down; nothing here knows the cluster. A *problem*
is a contradiction: two places for one node, two nodes in one place. A *warning* is what
holds together but is not read, or not read as meant.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from msgspec import Struct

from ringleaf.model.placement import LeafState

MAX_LEAF_SIZE: Final = 128
"""Nodes per leaf up to which the vendor's scheduler builds logical leaves."""

MAX_SHOWN: Final = 100
"""Characters of a name in a message."""

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Server(Struct, frozen=True):
    """One node: its address, its slot under the leaf, its chips if they are listed."""

    address: str
    slot: int
    chips: int | None = None


class Switch(Struct, frozen=True):
    """One leaf switch and the nodes under it, in the order of the file."""

    number: int
    address: str
    servers: tuple[Server, ...] = ()
    state: LeafState = LeafState.IDLE
    healthy: bool = True

    def __str__(self) -> str:
        return f"leaf {self.number} {quoted(self.address)}"

    @property
    def state_word(self) -> str:
        """The state as scenario files spell it."""
        return self.state.name.lower()


class Topology(Struct, frozen=True):
    """The leaf switches below one spine; *leaf_size* is the most nodes of a leaf."""

    leaf_size: int
    single_layer: bool = False
    switches: tuple[Switch, ...] = ()

    @property
    def n_nodes(self) -> int:
        """Nodes under all leaves."""
        return sum(len(switch.servers) for switch in self.switches)


def topology_of(
    pairs: Iterable[tuple[str, tuple[str, ...]]],
    leaf_size: int | None = None,
    chips: int | None = None,
) -> Topology:
    """The topology of (node, names of its leaf) pairs.

    Leaves are numbered by first appearance, slots by appearance under the leaf. A leaf
    holds *leaf_size* nodes, or as many as the largest has.

    >>> topology_of([("a", ("P1", "S1")), ("b", ("P1", "S2"))]).switches[1].address
    'P1/S2'
    """
    under = _grouped((leaf, node) for node, leaf in pairs)
    switches = tuple(
        Switch(
            number,
            "/".join(leaf),
            tuple(Server(node, slot, chips) for slot, node in enumerate(nodes)),
        )
        for number, (leaf, nodes) in enumerate(under.items())
    )
    largest = max(map(len, under.values()), default=1)
    return Topology(leaf_size or largest, switches=switches)


def seats(switch: Switch, leaf_size: int) -> tuple[list[Server | None], list[Server]]:
    """The nodes of a leaf by slot, None for an empty slot, and those out of place.

    Where the leaf size is no use, the nodes stand side by side.
    """
    ordered = sorted(switch.servers, key=lambda server: server.slot)
    if not 1 <= leaf_size <= MAX_LEAF_SIZE:
        return [*ordered], []
    seated: list[Server | None] = [None] * leaf_size
    others = []
    for server in ordered:
        if 0 <= server.slot < leaf_size and seated[server.slot] is None:
            seated[server.slot] = server
        else:
            others.append(server)
    return seated, others


def problems_of(topology: Topology) -> list[str]:
    """What contradicts itself, one line each; empty for a sound topology."""
    size, switches = topology.leaf_size, topology.switches
    problems = []
    if size < 1:
        problems.append(f"nodes per leaf (tor_count) are {size}, want 1 or more")
    if not switches:
        problems.append("no leaf is listed (server_list), want at least one")
    problems += _leaves_alike(switches)
    for switch in switches:
        problems += _listed_twice(switch)
        problems += _too_many(switch, size) if size > 0 else ()
        problems += _slots(switch, size) if size > 0 else ()
    problems += _nodes_apart(switches)
    return problems


def topology_warnings(topology: Topology) -> list[str]:
    """What is not read, or not read as meant, one line each."""
    warnings = []
    if topology.leaf_size > MAX_LEAF_SIZE:
        warnings.append(
            f"nodes per leaf (tor_count) are {topology.leaf_size}, want at most "
            f"{MAX_LEAF_SIZE}: above, the vendor's scheduler finds no logical leaves"
        )
    for switch in topology.switches:
        if not switch.servers:
            warnings.append(f"{switch}: no nodes")
        elif any(b.slot < a.slot for a, b in pairwise(switch.servers)):
            slots = _shortened([str(server.slot) for server in switch.servers])
            warnings.append(
                f"{switch}: the nodes are listed by slot {slots}, want ascending "
                "slots: the vendor's scheduler goes by their order in the list"
            )
    return warnings


def _leaves_alike(switches: Sequence[Switch]) -> Iterator[str]:
    addresses = _grouped((switch.address, str(switch.number)) for switch in switches)
    for address, numbers in _repeated(addresses):
        yield (
            f"leaf address {quoted(address)} (tor_ip) is listed {len(numbers)} times, "
            f"with tor_id {_shortened(numbers)}, want one leaf per address"
        )
    numbers_of = _grouped(
        (switch.number, quoted(switch.address)) for switch in switches
    )
    for number, found in _repeated(numbers_of):
        yield (
            f"tor_id {number} is listed {len(found)} times, at leaves "
            f"{_shortened(found)}, want one leaf per tor_id"
        )


def _listed_twice(switch: Switch) -> Iterator[str]:
    slots = _grouped((server.address, str(server.slot)) for server in switch.servers)
    for address, found in _repeated(slots):
        yield (
            f"{switch}: node {quoted(address)} is listed {len(found)} times, in slots "
            f"{_shortened(found)}, want once"
        )


def _too_many(switch: Switch, size: int) -> Iterator[str]:
    if len(switch.servers) > size:
        yield (
            f"{switch}: {len(switch.servers)} nodes, want at most {size} "
            "(tor_count, nodes per leaf)"
        )


def _slots(switch: Switch, size: int) -> Iterator[str]:
    """Slots out of range, slots with several nodes, and gaps."""
    for server in switch.servers:
        if not 0 <= server.slot < size:
            yield (
                f"{switch}: node {quoted(server.address)} has slot {server.slot} "
                f"(slice_id), want 0 to {size - 1}"
            )
    inside = [server for server in switch.servers if 0 <= server.slot < size]
    nodes = _grouped((server.slot, server.address) for server in inside)
    for slot, listed in nodes.items():
        if len(apart := dict.fromkeys(listed)) > 1:
            names = _shortened([quoted(name) for name in apart])
            yield f"{switch}: nodes {names} are in slot {slot}, want one node per slot"
    for before, after in pairwise([-1, *sorted(nodes)]):
        if after - before > 1:
            yield (
                f"{switch}: {_span(before + 1, after - 1)} empty below slot {after}, "
                f"want slots 0 to {len(nodes) - 1} without a gap"
            )


def _nodes_apart(switches: Sequence[Switch]) -> Iterator[str]:
    leaves = _grouped(
        (address, switch)
        for switch in switches
        for address in dict.fromkeys(server.address for server in switch.servers)
    )
    for address, found in _repeated(leaves):
        names = _shortened([str(switch) for switch in found])
        yield f"node {quoted(address)} is under {names}, want one leaf"


def _grouped(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    groups: dict[_K, list[_V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def _repeated(groups: Mapping[_K, list[_V]]) -> Iterator[tuple[_K, list[_V]]]:
    return ((key, values) for key, values in groups.items() if len(values) > 1)


def _span(first: int, last: int) -> str:
    """Slots in words.

    >>> _span(2, 2), _span(2, 4)
    ('slot 2 is', 'slots 2 to 4 are')
    """
    return f"slot {first} is" if first == last else f"slots {first} to {last} are"


def _shortened(words: Sequence[str], most: int = 8) -> str:
    """The words as people list them, the first few of many.

    >>> _shortened(["a", "b", "c"]), _shortened("abcd", most=2)
    ('a, b and c', 'a, b and 2 more')
    """
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return f"{', '.join(words[:-1])} and {words[-1]}"


def quoted(name: str) -> str:
    """The name in quotes, its unprintable characters escaped, cut when it is long."""
    return repr(name if len(name) <= MAX_SHOWN else name[: MAX_SHOWN - 1] + "…")
