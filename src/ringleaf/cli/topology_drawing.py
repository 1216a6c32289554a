"""A topology on the terminal: leaves as rows under the spine, slots as columns."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ringleaf.cli.draw import chip_words
from ringleaf.cli.output import print_line, so_many
from ringleaf.model.placement import LeafState
from ringleaf.model.topology import Server, Switch, Topology, seats

MAX_LEAVES: Final = 32
"""Leaves drawn at most."""

MAX_INDENT: Final = 28
"""Columns of a leaf's address at most."""

EMPTY: Final = "·"


def draw_leaves(console: Console, topology: Topology) -> None:
    """Leaves as rows under the spine, slots as columns."""
    shown = topology.switches[:MAX_LEAVES]
    more = topology.switches[MAX_LEAVES:]
    if not shown:
        return
    names = ["leaf", *(switch.address for switch in shown)]
    indent = min(max(map(cell_len, names)), MAX_INDENT, console.width // 3)
    notes = [Text(), *(_notes(switch, topology.leaf_size) for switch in shown)]
    room = console.width - indent - len("├─ ") - 2
    room -= max(note.cell_len for note in notes)
    heads, rows = _rows(shown, topology.leaf_size, max(room, 1))
    single = topology.single_layer
    print_line(console, Text("one layer, no spine" if single else "spine", "dim"))
    for i, (name, row) in enumerate(zip(names, [heads, *rows], strict=True)):
        branch = "│  " if i == 0 else "├─ " if more or i < len(shown) else "└─ "
        branch = "   " if single else branch
        label = Text(name, "bold" if i else "dim")
        label.truncate(indent, overflow="ellipsis", pad=True)
        line = Text.assemble((branch, "dim"), label, "  ", row, notes[i])
        line.rstrip()
        line.truncate(console.width, overflow="ellipsis")
        print_line(console, line)
    if more:
        nodes = so_many(sum(len(switch.servers) for switch in more), "node")
        leaves = so_many(len(more), "more leaf", "more leaves")
        branch = "   " if single else "└─ "
        print_line(console, Text(f"{branch}… and {leaves} with {nodes}", "dim"))


def _notes(switch: Switch, leaf_size: int) -> Text:
    """What is to be said of a leaf beside its nodes."""
    told = []
    n_nodes = len(switch.servers)
    if n_nodes != leaf_size:
        told.append((f"{n_nodes} of {leaf_size}" if n_nodes else "no nodes", "dim"))
    if others := seats(switch, leaf_size)[1]:
        told.append((f"{len(others)} out of place", "bold red"))
    if switch.state is not LeafState.IDLE:
        told.append((switch.state_word, "yellow"))
    if not switch.healthy:
        told.append(("unhealthy", "red"))
    note = Text(", ").join(Text(*each) for each in told)
    return Text("  ") + note if told else note


def _rows(
    switches: Sequence[Switch], leaf_size: int, room: int
) -> tuple[Text, list[Text]]:
    """The head and the nodes of every leaf: names, else slots, else runs of slots."""
    seated = [seats(switch, leaf_size)[0] for switch in switches]
    n_slots = max(1, *map(len, seated))
    names = [s.address for row in seated for s in row if s is not None]
    for cut in (0, _common(names)):
        labels = [[_label(server, cut) for server in row] for row in seated]
        heads = [f"slot {i}" for i in range(n_slots)]
        width = max(cell_len(label) for row in [heads, *labels] for label in row)
        if n_slots * (width + 2) - 2 <= room:
            return _cells(heads, width, 2), [_cells(row, width, 2) for row in labels]
    slots = [[EMPTY if s is None else str(s.slot) for s in row] for row in seated]
    width = max(cell_len(label) for row in slots for label in row or [""])
    if n_slots * (width + 1) - 1 <= room:
        return Text("slots", "dim"), [_cells(row, width, 1) for row in slots]
    return Text("slots", "dim"), [
        Text(_clipped(chip_words({s.slot for s in switch.servers}), room))
        for switch in switches
    ]


def _cells(labels: Sequence[str], width: int, gap: int) -> Text:
    cells = []
    for label in labels:
        quiet = label == EMPTY or label.startswith("slot ")
        cell = Text(label, "dim" if quiet else "cyan")
        cell.truncate(width, pad=True)
        cells.append(cell)
    return Text(" " * gap).join(cells)


def _label(server: Server | None, cut: int) -> str:
    if server is None:
        return EMPTY
    return f"…{server.address[cut:]}" if cut else server.address


def _common(names: Sequence[str]) -> int:
    """Characters that all names begin with, up to a dot or the like.

    >>> _common(["10.1.0.1", "10.1.0.12"]), _common(["a", "ab"])
    (7, 0)
    """
    first, last = min(names, default=""), max(names, default="")
    marks = [i + 1 for i, letter in enumerate(first) if letter in ".-:/_"]
    return max((at for at in marks if last[:at] == first[:at]), default=0)


def _clipped(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"
