"""Nodes drawn as their groups of chips, with the chips each job took marked."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ringleaf.cli.marks import (
    CHIP_MARKS,
    FAULTY,
    FREE,
    HELD,
    NETWORK_FAULTY,
    PARTLY,
    RESERVED,
    SEVERAL,
    UNIT_MARKS,
    marks,
    packed,
    print_legend,
)
from ringleaf.cli.output import so_many
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Placed
from ringleaf.model.job_labels import Network
from ringleaf.model.mask import mask_of, runs_of
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.products import PRODUCTS

MAX_NODES: Final = 32
"""Nodes drawn at most; small clusters are drawn whole."""

MAX_INDENT: Final = 28
"""Chips start here at the latest; a longer name stands on a line of its own."""

LEAF: Final = "leaf"
UNITS: Final = ((LEAF, "leaves"), ("SuperPoD", "SuperPoDs"))
"""What nodes stand in: one of it, several."""


def draw(
    console: Console,
    cluster: Cluster,
    decisions: Sequence[Decision],
    reserved: Collection[tuple[int, int]] = (),
) -> None:
    """Draw the nodes concerned, and say what the marks mean.

    *reserved* are nodes and chips that are free, but kept for a job that waits.
    A large cluster on which no job was placed is drawn in lines, with its totals.
    """
    if len(cluster) > MAX_NODES and not any(isinstance(d, Placed) for d in decisions):
        _draw_whole(console, cluster)
        return
    nodes = _concerned(cluster, decisions)
    given = marks(decisions)
    owners = _owners(cluster, decisions)
    if len(nodes) > MAX_NODES and _units(cluster):
        blocks = {
            cluster.products.index(decision.job.product)
            for decision in decisions
            if isinstance(decision, Placed)
            and decision.job.network is Network.SUPERPODS
        }
        unit = {
            node: unit_of(cluster, node, superpod=cluster.product.item(node) in blocks)
            for node in range(len(cluster))
        }
        _draw_units(console, cluster, nodes, unit, owners=owners, given=given)
        return
    shown = nodes[:MAX_NODES]
    if not shown:
        return
    kept = {place for place in reserved if place not in owners}
    indents = [cell_len(cluster.names[node]) + 4 for node in shown]
    indent = max((i for i in indents if i <= MAX_INDENT), default=4)
    product, heading, drawn = None, "", set[str]()
    for node in shown:
        if cluster.product_of(node) is not product:
            product = cluster.product_of(node)
            console.print(Text(f"{product.key}: {product.wiring}", style="dim"))
        cells = [
            Text(RESERVED.rjust(len(str(cluster.size.item(node) - 1))), style="yellow")
            if (node, chip) in kept
            else _cell(cluster, node, chip, owners, given)
            for chip in _chips(cluster, node)
        ]
        drawn |= {cell.plain.strip() for cell in cells}
        heading = _node(console, cluster, node, indent, cells, heading)
    if len(nodes) > len(shown):
        console.print(
            Text(f"  … and {len(nodes) - len(shown)} more nodes", style="dim")
        )
    seen = {name for (node, _chip), name in owners.items() if node in shown}
    last = max(cluster.size.item(node) for node in shown) - 1
    any_free = any(map(str.isdecimal, drawn))
    free = [(f"0-{last}" if last else "0", "", "free")] * any_free
    other = [*free, *(mark for mark in CHIP_MARKS if mark[0] in drawn)]
    print_legend(console, {name: given[name] for name in given if name in seen}, other)


def _draw_whole(console: Console, cluster: Cluster) -> None:
    """The totals, then a line per leaf or SuperPoD, else per product."""
    nodes = [node for node in range(len(cluster)) if cluster.size[node]]
    if not nodes:
        return
    unit = {node: unit_of(cluster, node) for node in nodes}
    units: dict[str, list[int]] = {}
    for node in nodes:
        units.setdefault(unit[node], []).append(node)
    chips = int(cluster.size.sum())
    totals = [so_many(len(nodes), "node"), f"{chips:,} chip{'s' * (chips != 1)}"]
    for one, several in UNITS:
        sizes = [len(units[each]) for each in units if each.startswith(f"{one} ")]
        if sizes:
            few = f"{min(sizes)} to " * (min(sizes) < max(sizes))
            found = so_many(len(sizes), one, several)
            totals.append(f"{found} of {few}{so_many(max(sizes), 'node')}")
    console.print(Text(", ".join(totals)))
    if _units(cluster):
        notes = {each: _contents(cluster, units[each]) for each in units}
        _draw_units(console, cluster, nodes, unit, owners={}, given={}, notes=notes)
        return
    for line in _contents(cluster, nodes).split(", "):
        console.print(Text(f"  {line}"))


def _contents(cluster: Cluster, nodes: Iterable[int]) -> str:
    """How many nodes of which products."""
    found = Counter(cluster.product_of(node).key for node in nodes)
    return ", ".join(f"{so_many(n, 'node')} {key}" for key, n in found.items())


def _concerned(cluster: Cluster, decisions: Sequence[Decision]) -> list[int]:
    """Every node of a small cluster, else the nodes that jobs were placed on.

    Nodes without chips have nothing to draw.
    """
    nodes = set(range(len(cluster)))
    if len(cluster) > MAX_NODES:
        placed = (d for d in decisions if isinstance(d, Placed))
        names = {p.node for decision in placed for p in decision.placements}
        nodes = {cluster.index[name] for name in names}
    catalogue = list(PRODUCTS)

    def key(node: int) -> tuple[int, ...]:
        """Products as in the catalogue; nodes by where they stand, then by name."""
        product = catalogue.index(cluster.product_of(node).key)
        leaf, slot = cluster.leaf.item(node), cluster.slot.item(node)
        superpod = cluster.superpod.item(node)
        return (product, superpod, leaf, slot if leaf != NOWHERE else 0, node)

    return sorted((node for node in nodes if cluster.size[node]), key=key)


def _units(cluster: Cluster) -> bool:
    """Whether nodes stand under leaves or in SuperPoDs."""
    return bool(len(cluster.leaves) or (cluster.superpod != NOWHERE).any())


def unit_of(cluster: Cluster, node: int, *, superpod: bool = False) -> str:
    """What the node stands in: its leaf, or its SuperPoD if that is what counts."""
    leaf, number = cluster.leaf_of(node), cluster.superpod.item(node)
    if number != NOWHERE and (superpod or leaf is None):
        return f"SuperPoD {number}"
    return "elsewhere" if leaf is None else f"leaf {leaf.name}"


def _draw_units(
    console: Console,
    cluster: Cluster,
    nodes: Sequence[int],
    unit_of_node: dict[int, str],
    *,
    owners: dict[tuple[int, int], str],
    given: dict[str, tuple[str, str]],
    notes: Mapping[str, str] | None = None,
) -> None:
    """One line per leaf or SuperPoD, one cell per node, after the *notes* on it."""
    concerned = {unit_of_node[node] for node in nodes}
    under = cluster.by_leaf.tolist()
    elsewhere = (cluster.leaf == NOWHERE).nonzero()[0].tolist()
    units: dict[str, list[int]] = {}
    for node in [*under, *elsewhere]:
        if (unit := unit_of_node[node]) in concerned:
            units.setdefault(unit, []).append(node)
    jobs: dict[int, set[str]] = {}
    for (node, _chip), name in owners.items():
        jobs.setdefault(node, set()).add(name)
    shown = list(units)[:MAX_NODES]
    width = max(len(unit) for unit in shown)
    told = notes or {}
    room = max((len(told[unit]) + 2 for unit in shown if unit in told), default=0)
    drawn = set[str]()
    for unit in shown:
        line = Text(f"  {unit.ljust(width)}  {told.get(unit, '').ljust(room)}")
        for i, node in enumerate(units[unit]):
            cell = _node_cell(cluster, node, jobs.get(node, set()), given)
            drawn.add(cell.plain)
            line.append(" " * (i > 0 and i % 8 == 0))
            line.append_text(cell)
        console.print(line, soft_wrap=True)
    if len(units) > len(shown):
        rest = [*units][len(shown) :]
        inside = so_many(sum(len(units[name]) for name in rest), "node")
        words = f"{so_many(len(rest), *_kind_of(rest))} with {inside}"
        console.print(Text(f"  … and {words}", style="dim"))
    named = {name: mark for name, mark in given.items() if mark[0] in drawn}
    print_legend(console, named, [mark for mark in UNIT_MARKS if mark[0] in drawn])


def _kind_of(units: Iterable[str]) -> tuple[str, str]:
    """What further units are called: one of them, and several."""
    if all(unit.startswith(f"{LEAF} ") for unit in units):
        return "more leaf", "more leaves"
    return "more leaf or SuperPoD", "more leaves or SuperPoDs"


def _node_cell(
    cluster: Cluster,
    node: int,
    jobs: set[str],
    given: dict[str, tuple[str, str]],
) -> Text:
    """One node as one character."""
    if len(jobs) == 1:
        letter, style = given[next(iter(jobs))]
        return Text(letter, style=style)
    if jobs:
        return Text(SEVERAL, style="bold")
    free = cluster.free.item(node) & cluster.healthy.item(node)
    if not cluster.ready.item(node):
        return Text(FAULTY, style="bold red")
    if free.bit_count() == cluster.size.item(node):
        return Text(FREE)
    return Text(PARTLY if free else HELD, style="dim")


def _owners(
    cluster: Cluster, decisions: Sequence[Decision]
) -> dict[tuple[int, int], str]:
    return {
        (cluster.index[placement.node], chip): decision.job.name
        for decision in decisions
        if isinstance(decision, Placed)
        for placement in decision.placements
        for chip in placement.chips
    }


def _chips(cluster: Cluster, node: int) -> range:
    return range(cluster.size.item(node))


def _cell(
    cluster: Cluster,
    node: int,
    chip: int,
    owners: dict[tuple[int, int], str],
    given: dict[str, tuple[str, str]],
) -> Text:
    bit = mask_of([chip])
    width = len(str(cluster.size.item(node) - 1))
    owner = owners.get((node, chip))
    if owner is not None:
        letter, style = given[owner]
        return Text(letter.rjust(width), style=style)
    if not cluster.healthy.item(node) & bit:
        return Text(FAULTY.rjust(width), style="bold red")
    if not cluster.free.item(node) & bit:
        return Text(HELD.rjust(width), style="dim")
    if not cluster.sound.item(node) & bit:
        return Text(NETWORK_FAULTY.rjust(width), style="red")
    return Text(str(chip).rjust(width))


def _node(  # noqa: PLR0917 - one line of the drawing
    console: Console,
    cluster: Cluster,
    node: int,
    indent: int,
    cells: list[Text],
    heading: str,
) -> str:
    """One node: its name, its groups in brackets, where it stands.

    What does not fit beside the groups is a heading, once for all nodes below it;
    returns the heading that holds after this node.
    """
    room = console.width - indent
    parts = list(_parts(cells, cluster.product_of(node).width, room))
    job_state = _standing(cluster, node)
    lines = list(packed(parts, room))
    if job_state and len(list(packed([*parts, job_state], room))) == len(lines):
        lines[-1] = lines[-1] + Text(" ") + job_state
        heading = ""
    elif job_state.plain != heading:
        heading = job_state.plain
        console.print(Text(f" {heading}" * bool(heading), style="dim"))
    name = Text(f"  {cluster.names[node]}", style="default")
    if name.cell_len > indent - 2:
        console.print(name, soft_wrap=True)
        name = Text()
    for line in lines:
        name.append(" " * (indent - name.cell_len))
        console.print(name + line, soft_wrap=True)
        name = Text()
    return heading


def _parts(cells: list[Text], width: int, room: int) -> Iterator[Text]:
    """The groups in brackets; one that is wider than *room* in several parts."""
    per_part = width
    while per_part > 1 and per_part * (len(cells[0]) + 1) + 1 > room:
        per_part //= 2
    for start in range(0, len(cells), width):
        group = cells[start : start + width]
        for at in range(0, len(group), per_part):
            opening = Text("[" if at == 0 else " ")
            closing = Text("]" if at + per_part >= len(group) else "")
            yield opening + Text(" ").join(group[at : at + per_part]) + closing


def _standing(cluster: Cluster, node: int) -> Text:
    """What else is to be known of the node."""
    superpod = cluster.superpod.item(node)
    leaf = cluster.leaf_of(node)
    known = [
        "" if leaf is None else f"leaf {leaf.name}",
        "" if superpod == NOWHERE else f"SuperPoD {superpod}",
        "" if cluster.ready.item(node) else "not ready",
        "sub-healthy" if cluster.sub_healthy.item(node) else "",
        "quarantined" if cluster.quarantined.item(node) else "",
    ]
    told = ", ".join(filter(None, known))
    return Text(f" {told}" if told else "", style="dim")


def chip_words(chips: Iterable[int]) -> str:
    """Chips as people write them.

    >>> chip_words([0, 8, 1, 9, 2, 10, 15])
    '0-2,8-10,15'
    """
    runs = runs_of(sorted(chips))
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
