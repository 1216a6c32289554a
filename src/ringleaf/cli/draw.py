"""Nodes drawn as their groups of chips, with the chips each job took marked."""

from collections.abc import Iterable, Iterator, Sequence
from string import ascii_letters
from typing import Final

from rich.console import Console
from rich.text import Text

from ringleaf.model.cluster import NOWHERE, Cluster
from ringleaf.model.decision import Decision, Placed
from ringleaf.model.mask import mask_of
from ringleaf.policies.products import PRODUCTS

MAX_NODES: Final = 32
"""Nodes drawn at most; small clusters are drawn whole."""

JOB_STYLES: Final = (
    "bold cyan",
    "bold green",
    "bold yellow",
    "bold magenta",
    "bold blue",
    "bold bright_red",
)
HELD, FAULTY, NETWORK_FAULTY = "x", "!", "~"


def marks(decisions: Iterable[Decision]) -> dict[str, tuple[str, str]]:
    """Placed job -> the letter and style it is drawn with."""
    placed = [d.job.name for d in decisions if isinstance(d, Placed)]
    letters = ascii_letters.swapcase()
    return {
        name: (letters[i % len(letters)], JOB_STYLES[i % len(JOB_STYLES)])
        for i, name in enumerate(placed)
    }


def draw(console: Console, cluster: Cluster, decisions: Sequence[Decision]) -> None:
    """Draw the nodes concerned, and say what the marks mean."""
    nodes = _concerned(cluster, decisions)
    shown = nodes[:MAX_NODES]
    if not shown:
        return
    given = marks(decisions)
    owners = _owners(cluster, decisions)
    name_width = max(len(cluster.names[node]) for node in shown)
    product = None
    for node in shown:
        if cluster.product_of(node) is not product:
            product = cluster.product_of(node)
            console.print(Text(f"{product.key}: {product.wiring}", style="dim"))
        cells = [
            _cell(cluster, node, chip, owners, given) for chip in _chips(cluster, node)
        ]
        _line(console, cluster, node, name_width, cells)
    if len(nodes) > len(shown):
        console.print(
            Text(f"  … and {len(nodes) - len(shown)} more nodes", style="dim")
        )
    _legend(console, given)


def _concerned(cluster: Cluster, decisions: Sequence[Decision]) -> list[int]:
    """Every node of a small cluster, else the nodes that jobs were placed on."""
    nodes = set(range(len(cluster)))
    if len(cluster) > MAX_NODES:
        placed = (d for d in decisions if isinstance(d, Placed))
        names = {p.node for decision in placed for p in decision.placements}
        nodes = {cluster.index[name] for name in names}
    catalogue = list(PRODUCTS)
    return sorted(nodes, key=lambda n: (catalogue.index(cluster.product_of(n).key), n))


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


def _line(
    console: Console, cluster: Cluster, node: int, name_width: int, cells: list[Text]
) -> None:
    """One node: its name, its groups in brackets, where it stands."""
    groups = list(_groups(cells, cluster.product_of(node).width))
    standing = _standing(cluster, node)
    room = console.width - name_width - len(standing) - 3
    per_line = max(1, room // (len(groups[0]) + 1))
    for start in range(0, len(groups), per_line):
        name = "" if start else cluster.names[node]
        line = Text(f"  {name:<{name_width}} ", style="default")
        for group in groups[start : start + per_line]:
            line.append(" ")
            line.append_text(group)
        if start + per_line >= len(groups):
            line.append_text(standing)
        console.print(line, soft_wrap=True)


def _groups(cells: list[Text], width: int) -> Iterator[Text]:
    for start in range(0, len(cells), width):
        yield Text("[") + Text(" ").join(cells[start : start + width]) + Text("]")


def _standing(cluster: Cluster, node: int) -> Text:
    """What else is to be known of the node."""
    superpod = cluster.superpod.item(node)
    leaf = cluster.leaf[node]
    known = [
        "" if leaf is None else f"leaf {leaf}",
        "" if superpod == NOWHERE else f"SuperPoD {superpod}",
        "" if cluster.ready.item(node) else "not ready",
        "sub-healthy" if cluster.sub_healthy.item(node) else "",
    ]
    told = ", ".join(filter(None, known))
    return Text(f"  {told}" if told else "", style="dim")


def _legend(console: Console, given: dict[str, tuple[str, str]]) -> None:
    """What the marks mean, broken between entries only."""
    entries = [(letter, style, name) for name, (letter, style) in given.items()]
    entries += [
        ("0", "", "free"),
        (HELD, "dim", "held"),
        (FAULTY, "bold red", "faulty"),
        (NETWORK_FAULTY, "red", "network-faulty"),
    ]
    line = Text(" ")
    for mark, style, meaning in entries:
        entry = Text.assemble(" ", (mark, style), f" {meaning} ")
        if len(line) + len(entry) > console.width:
            console.print(line)
            line = Text(" ")
        line.append_text(entry)
    console.print(line)


def chip_words(chips: Iterable[int]) -> str:
    """Chips as people write them.

    >>> chip_words([0, 8, 1, 9, 2, 10, 15])
    '0-2,8-10,15'
    """
    runs: list[list[int]] = []
    for chip in sorted(chips):
        if runs and runs[-1][-1] == chip - 1:
            runs[-1].append(chip)
        else:
            runs.append([chip])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
