"""Clusters to simulate: presets, topology files, and what scenario files say.

A preset may be varied: ``leaf-spine-512:leaf=8,product=atlas-800t-a2``. Names of nodes
and leaves have as many digits as they need, so that they sort as they count.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import cycle, islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.model.cluster import Node
from ringleaf.model.mask import full_mask, mask_of
from ringleaf.model.product import Product
from ringleaf.model.queue import DEFAULT_QUEUE, Queue
from ringleaf.model.spelling import did_you_mean
from ringleaf.model.topology import Topology, problems_of
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.products import PRODUCTS, find_product, similar_product
from ringleaf.simulator.format import MAX_NODES
from ringleaf.simulator.scenario import Scenario
from ringleaf.simulator.source import BadInput, brief
from ringleaf.simulator.trial import Site

A2: Final = PRODUCTS["atlas-800t-a2"]
RINGS: Final = PRODUCTS["atlas-800-9000"]
SUPERPOD: Final = PRODUCTS["atlas-900-a3"]

Option = int | str


class ClusterPreset(Struct, frozen=True):
    """A cluster that has a name.

    Args:
        name: What people call it.
        title: What it is, in one line.
        options: What may be varied, and what it is else.
        nodes: Its nodes, from the options.

    """

    name: str
    title: str
    options: Mapping[str, Option]
    nodes: Callable[..., Iterator[Node]]


def _leaf_spine(nodes: int, leaf: int, product: str) -> Iterator[Node]:
    """Nodes under leaves of *leaf* nodes each; the last may have fewer."""
    made_of = _product(product)
    name, under = _counted("node", nodes), _counted("leaf", -(-nodes // leaf))
    for i in range(nodes):
        yield _node(name(i), made_of, leaf=under(i // leaf), slot=i % leaf)


UNEVEN: Final = (8, 7, 8, 6, 8, 8, 5, 8, 7, 8, 8, 6, 8, 7, 8, 3, 8)
"""Nodes under one leaf after the other, over and over: as often each size as in
Alibaba's Lingjun cluster, where 57 of 100 leaves have 8 nodes and the others fewer."""


def _uneven(nodes: int, product: str) -> Iterator[Node]:
    """Nodes under leaves of different sizes; the last leaf has what is left."""
    made_of = _product(product)
    places = list(islice(_places(), nodes))
    name, under = _counted("node", nodes), _counted("leaf", places[-1][0] + 1)
    for i, (leaf, slot) in enumerate(places):
        yield _node(name(i), made_of, leaf=under(leaf), slot=slot)


def _places() -> Iterator[tuple[int, int]]:
    """The leaf and the slot of one node after the other, under uneven leaves.

    >>> [leaf for leaf, _slot in islice(_places(), 16)]
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2]
    """
    for leaf, size in enumerate(cycle(UNEVEN)):
        for slot in range(size):
            yield leaf, slot


def _superpods(superpods: int, nodes: int, product: str) -> Iterator[Node]:
    """SuperPoDs of *nodes* nodes each."""
    made_of = _product(product)
    if not made_of.superpod:
        known = " or ".join(repr(p.key) for p in PRODUCTS.values() if p.superpod)
        raise BadInput(f"product is {brief(product)}, want one in SuperPoDs: {known}")
    if superpods * nodes > MAX_NODES:
        raise BadInput(f"{superpods * nodes} nodes, want at most {MAX_NODES}")
    name = _counted("node", superpods * nodes)
    for i in range(superpods * nodes):
        yield _node(name(i), made_of, superpod=i // nodes)


def _mixed() -> Iterator[Node]:
    """Three products; all leaves are of one size, as affinity 1.0 wants them."""
    for i in range(192):
        yield _node(f"pod-{i:03}", SUPERPOD, superpod=i // 48)
    for i in range(256):
        yield _node(f"mesh-{i:03}", A2, leaf=f"mesh-leaf-{i // 8:02}", slot=i % 8)
    for i in range(128):
        yield _node(f"ring-{i:03}", RINGS, leaf=f"ring-leaf-{i // 8:02}", slot=i % 8)


def _counted(word: str, n: int) -> Callable[[int], str]:
    """Names that sort as they count.

    >>> _counted("node", 12)(7)
    'node-07'
    """
    digits = len(str(max(0, n - 1)))
    return lambda i: f"{word}-{i:0{digits}}"


def _node(
    name: str,
    product: Product,
    *,
    chips: int | None = None,
    superpod: int | None = None,
    leaf: str | None = None,
    slot: int = 0,
) -> Node:
    size = product.chips if chips is None else chips
    free = full_mask(size)
    return Node(name, product, size, free, superpod=superpod, leaf=leaf, slot=slot)


_LEAF_SPINE: Final[dict[str, Option]] = {"nodes": 512, "leaf": 4, "product": RINGS.key}

_PRESETS: Final = (
    ClusterPreset(
        "superpod-48x8",
        "8 SuperPoDs of 48 nodes, 8 modules of 2 chips a node: 6,144 chips",
        {"superpods": 8, "nodes": 48, "product": SUPERPOD.key},
        _superpods,
    ),
    ClusterPreset(
        "leaf-spine-512",
        "512 nodes of 2 rings of 4 chips, 4 nodes under a leaf: 4,096 chips",
        _LEAF_SPINE,
        _leaf_spine,
    ),
    ClusterPreset(
        "leaf-spine-512x8",
        "the same nodes, 8 under a leaf",
        _LEAF_SPINE | {"leaf": 8},
        _leaf_spine,
    ),
    ClusterPreset(
        "leaf-spine-512x16",
        "the same nodes, 16 under a leaf",
        _LEAF_SPINE | {"leaf": 16},
        _leaf_spine,
    ),
    ClusterPreset(
        "leaf-spine-uneven",
        "512 nodes of 2 rings of 4 chips, 3 to 8 nodes under a leaf: 4,096 chips",
        {"nodes": 512, "product": RINGS.key},
        _uneven,
    ),
    ClusterPreset(
        "mixed",
        "4 SuperPoDs of 48 nodes; 256 nodes of one mesh of 8 chips and 128 of 2 rings "
        "of 4, under leaves of 8: 6,144 chips",
        {},
        _mixed,
    ),
)

SITES: Final[Mapping[str, ClusterPreset]] = {preset.name: preset for preset in _PRESETS}
"""Every preset by its name."""


def site(name: str) -> Site:
    """The preset that *name* says, as ``leaf-spine-512`` or ``leaf-spine-512:leaf=8``.

    >>> site("leaf-spine-512").chips, len(site("mixed").nodes)
    (4096, 576)
    """
    plain, _colon, given = name.partition(":")
    preset = SITES.get(plain)
    if preset is None:
        raise BadInput(
            f"cluster {brief(name)} is unknown, want {_wanted()}", _hint(plain, SITES)
        )
    try:
        options = dict(preset.options) | dict(_given(preset, given))
        nodes = tuple(preset.nodes(**options))
    except BadInput as error:
        raise BadInput(f"cluster {plain!r}: {error}") from None
    return Site(name, nodes, leaves_of(nodes))


def _wanted() -> str:
    return f"one of {', '.join(SITES)}"


def _hint(name: str, known: Iterable[str]) -> str | None:
    return did_you_mean(name, known) or None


def _given(preset: ClusterPreset, given: str) -> Iterator[tuple[str, Option]]:
    """The options of *given*, ``key=value,key=value``."""
    for each in filter(None, given.split(",")):
        key, _equals, value = (part.strip() for part in each.partition("="))
        usual = preset.options.get(key)
        if usual is None:
            known = [*preset.options]
            raise BadInput(
                f"option {brief(key)} is unknown, want {_either(known)}",
                _hint(key, known),
            )
        yield key, value if isinstance(usual, str) else _count(key, value)


def _either(words: list[str]) -> str:
    return (
        " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]])) or "no options"
    )


def _count(key: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= MAX_NODES):
        want = f"a whole number from 1 to {MAX_NODES}"
        raise BadInput(f"{key} is {brief(value)}, want {want}")
    return int(value)


def _product(name: str) -> Product:
    product = find_product(name)
    if product is None:
        raise BadInput(
            f"product is {brief(name)}, want a product of the catalogue",
            similar_product(name),
        )
    return product


def leaves_of(nodes: Iterable[Node]) -> tuple[Leaf, ...]:
    """The leaves that *nodes* name, in their order, idle."""
    named = dict.fromkeys(node.leaf for node in nodes if node.leaf is not None)
    return tuple(Leaf(name, order=i) for i, name in enumerate(named))


def site_of_topology(
    topology: Topology, name: str, product: str = A2.key, chips: int | None = None
) -> Site:
    """The cluster that a topology file describes; its leaves are idle.

    Nodes are *product*, which a topology does not tell; of products that come in sizes
    they have *chips* chips, unless the file says how many.
    """
    if problems := problems_of(topology):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise BadInput(f"{problems[0]}{more}", "ringleaf topology check")
    made_of = _product(product)
    size = partial(_size, made_of, chips)
    nodes = tuple(
        _node(
            server.address,
            made_of,
            chips=size(server.address, server.chips),
            leaf=switch.address,
            slot=server.slot,
        )
        for switch in topology.switches
        for server in switch.servers
    )
    leaves = tuple(
        Leaf(switch.address, switch.address, order=i)
        for i, switch in enumerate(topology.switches)
        if switch.servers
    )
    return Site(name, nodes, leaves)


def _size(product: Product, usual: int | None, node: str, told: int | None) -> int:
    """Chips of one node."""
    if not product.sized:
        if told not in (None, product.chips):
            raise BadInput(
                f"node {brief(node)} has {told} chips, want the {product.chips} of "
                f"{product.key}",
                "name the product of the nodes",
            )
        return product.chips
    size = usual or product.chips if told is None else told
    if not 1 <= size <= product.chips:
        raise BadInput(
            f"node {brief(node)} has {size} chips, want 1 to {product.chips}"
        )
    return size


def site_of_scenario(scenario: Scenario, name: str) -> Site:
    """The cluster of a scenario, or of what ``ringleaf dump`` wrote, without its jobs.

    What is faulty, cordoned or not ready stays so; what pods held is free, and leaves
    are idle.
    """
    held: dict[str, int] = {}
    for placements in scenario.running.values():
        for each in placements:
            held[each.node] = held.get(each.node, 0) | mask_of(each.chips)
    nodes = tuple(
        replace(node, free=node.free | held.get(node.name, 0))
        for node in scenario.nodes
    )
    known = {node.leaf for node in nodes}
    leaves = tuple(
        Leaf(leaf.name, leaf.address, order=leaf.order)
        for leaf in scenario.leaves
        if leaf.name in known
    )
    return Site(name, nodes, leaves, scenario.queues)


def with_queues(site: Site, names: Iterable[str]) -> Site:
    """*site* with a queue for each of *names*; those it has stay as they are."""
    known = {DEFAULT_QUEUE, *(queue.name for queue in site.queues)}
    new = tuple(Queue(name) for name in dict.fromkeys(names) if name not in known)
    return replace(site, queues=(*site.queues, *new)) if new else site
