"""``ringleaf topology``: leaf switches and their nodes, checked, drawn, converted."""

import csv
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ringleaf.cli.draw import chip_words
from ringleaf.cli.failure import BadUse, program, report, warn
from ringleaf.cli.file import bytes_of, name_of, one_line
from ringleaf.cli.output import (
    TrimmedConsole,
    print_json,
    print_line,
    progress,
    shortened,
    so_many,
)
from ringleaf.cli.svg import drawing
from ringleaf.kube.topology import (
    DOUBLE,
    MAX_BYTES,
    MAX_NAME,
    SINGLE,
    BadTopology,
    config_map,
    read_topology,
    tor_info,
)
from ringleaf.model.placement import LeafState
from ringleaf.model.product import Product
from ringleaf.model.topology import (
    Server,
    Switch,
    Topology,
    problems_of,
    quoted,
    seats,
    topology_of,
    topology_warnings,
)
from ringleaf.policies.products import find_product, similar_product
from ringleaf.simulator import source
from ringleaf.simulator.scenario import load
from ringleaf.simulator.traces import apart_hint

DEFAULT_PRODUCT: Final = "atlas-800t-a2"
BAD: Final = (BadTopology, source.BadInput)
"""How reading fails."""

MAX_LEAVES: Final = 32
"""Leaves drawn at most."""

MAX_INDENT: Final = 28
"""Columns of a leaf's address at most."""

MAX_COLUMNS: Final = 5
"""Unused columns of a CSV file that are named."""

PLACES: Final = (
    *("region", "zone", "site", "datacenter", "building", "floor", "hall", "room"),
    *("row", "rack"),
)
"""Columns of a CSV file that say where a node stands, the wider place first."""

NODES: Final = ("node", "name", "host", "hostname", "ip", "server_ip")
"""Columns of a CSV file that name a node, the likeliest first."""

LEAVES: Final = ("leaf", "tor", "switch", "rack")
"""Columns of a CSV file that name a leaf, the likeliest first."""

LEAF_HINT: Final = "--leaf {}"

EMPTY: Final = "·"

SCENARIO: Final = {"nodes", "jobs", "running", "leaves"}
"""Keys of a scenario; any of them tells one."""


class TopologyColumns(Struct, frozen=True):
    """The columns of a CSV file that name a node and its leaf."""

    node: str | None = None
    leaf: str | None = None

    @property
    def given(self) -> bool:
        """Whether any was named."""
        return (self.node or self.leaf) is not None


def check_file(file: str, columns: TopologyColumns, *, as_json: bool) -> int:
    """Print what is wrong with a topology, and draw it; the exit status."""
    _shown, topology, noted = _read(file, columns)
    problems = problems_of(topology)
    warnings = [*noted, *topology_warnings(topology)]
    if as_json:
        print_json(_plain(topology, problems, warnings))
    else:
        console = TrimmedConsole()
        for line in problems:
            print_line(console, Text.assemble(("problem: ", "bold red"), line))
        for line in warnings:
            print_line(console, Text.assemble(("warning: ", "yellow"), line))
        verdict = so_many(len(problems), "problem") if problems else "no problems"
        also = f", {so_many(len(warnings), 'warning')}" if warnings else ""
        print_line(
            console, Text(f"{_summary(topology)}: {verdict}{also}", style="bold")
        )
        _draw(console, topology)
    return 1 if problems else 0


def draw_file(file: str, columns: TopologyColumns, svg: str | None) -> int:
    """Draw a topology on the terminal and, if asked, into a file; the exit status."""
    shown, topology, noted = _read(file, columns)
    for line in noted:
        warn(f"{shown}: {line}")
    if svg is not None:
        _write(svg, drawing(topology, _summary(topology)))
    console = TrimmedConsole()
    print_line(console, Text(_summary(topology), style="bold"))
    _draw(console, topology)
    return 0


def convert_file(
    file: str,
    to: str,
    columns: TopologyColumns,
    product: str | None,
    leaf_size: int | None,
) -> int:
    """Print a topology in another form, unless it has problems; the exit status."""
    made_of = _product(product or DEFAULT_PRODUCT)
    shown, topology, noted = _read(file, columns, leaf_size, made_of.chips)
    for line in noted:
        warn(f"{shown}: {line}")
    problems = problems_of(topology)
    for line in problems:
        report(f"{shown}: {line}")
    if problems:
        return 1
    text = _FORMS[to](topology, made_of)
    _check_form(shown, to, text)
    sys.stdout.write(text)
    return 0


def _product(name: str) -> Product:
    product = find_product(name)
    if product is None:
        hint = similar_product(name)
        raise BadUse(
            f"--product is {name!r}, want a product of the catalogue; hint: {hint}"
        )
    return product


def _read(
    file: str,
    columns: TopologyColumns,
    leaf_size: int | None = None,
    chips: int | None = None,
) -> tuple[str, Topology, list[str]]:
    """How the file is called, its topology, and warnings about the file."""
    shown = name_of(file)
    with one_line(shown, *BAD), progress(what=f"reading {shown}"):
        data = bytes_of(file, "a topology")
        topology, warnings = read_bytes(data, file, columns, leaf_size, chips)
    return shown, topology, warnings


def read_bytes(
    data: bytes,
    file: str,
    columns: TopologyColumns,
    leaf_size: int | None = None,
    chips: int | None = None,
    *,
    leaf_hint: str = LEAF_HINT,
) -> tuple[Topology, list[str]]:
    """The topology of the bytes of *file*, and warnings about it.

    *leaf_hint* says how columns are named that together name a leaf. Raises one of
    ``BAD`` where it is none.
    """
    text = _text(data)
    if _is_csv(file, text, columns):
        return _from_csv(text, columns, leaf_size, chips, leaf_hint=leaf_hint)
    document = _document(text)
    if isinstance(document, dict) and SCENARIO & document.keys():
        _refuse_scenario(file, document)
    topology, warnings = read_topology(document)
    if leaf_size is not None:
        topology = msgspec.structs.replace(topology, leaf_size=leaf_size)
    return topology, warnings


def _refuse_scenario(file: str, document: dict[object, object]) -> None:
    """Say so if the file is one of Ringleaf's own."""
    if not {"data", "server_list", "apiVersion", "kind"} & document.keys():
        raise BadTopology(
            "it is a scenario or a cluster file, want the ConfigMap or CSV",
            f"{program()} plan {file} checks and draws it",
        )


def _text(data: bytes) -> str:
    text = source.decoded(data, "a topology is YAML, JSON or CSV")
    if not re.search(r"^\s*[^\s#-]", text, re.MULTILINE):
        raise BadTopology("the file is empty, want a ConfigMap, its tor_info, or CSV")
    return text


def _document(text: str) -> object:
    found = source.documents(text.encode())
    if len(found) > 1:
        raise BadTopology(f"{len(found)} documents, want one")
    return found[0]


def _is_csv(file: str, text: str, columns: TopologyColumns) -> bool:
    """Columns are named, or the file is, or its first line looks like a header."""
    first = text.lstrip().partition("\n")[0]
    header = "," in first and ":" not in first and first[0] not in "{[#"
    return columns.given or file.lower().endswith(".csv") or header


def _from_csv(
    text: str,
    columns: TopologyColumns,
    leaf_size: int | None,
    chips: int | None,
    *,
    leaf_hint: str,
) -> tuple[Topology, list[str]]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header: list[str] = next((row for row in rows if row), [])
        guess = _Guess(header, leaf_hint)
        node, leaf = guess.used(columns)
        topology = topology_of(_pairs(rows, header, node, leaf), leaf_size, chips)
    except csv.Error as error:
        raise BadTopology(f"line {rows.line_num}: no CSV: {error}") from None
    return topology, [] if columns.leaf else [*guess.warnings(node, leaf)]


class _Guess(Struct, frozen=True):
    """The columns of a table, where some were not named; how to name that of the leaf.

    Args:
        header: Their names.
        leaf_hint: A hint, with a gap for the columns that together name the leaf.

    """

    header: Sequence[str]
    leaf_hint: str

    def used(self, columns: TopologyColumns) -> tuple[int, list[int]]:
        """The column of the node, and those that together name its leaf."""
        header = self.header
        if len(header) < 2:  # noqa: PLR2004 - a node and a leaf
            raise BadTopology(
                f"the header is {header}, want columns for node and leaf",
                apart_hint(header),
            )
        if columns.leaf:
            leaf = [_column(header, "--leaf", n) for n in columns.leaf.split(",")]
            return self._node(columns, leaf), leaf
        last = self._last_of_leaf(columns)
        node = self._node(columns, [last])
        return node, [*self._around(node, last), last]

    def _node(self, columns: TopologyColumns, leaf: Sequence[int]) -> int:
        """The column of the node: by its name, else the first that is left."""
        header = self.header
        known = [i for i in self._named(NODES) if i not in leaf]
        first = (known or [i for i in range(len(header)) if i not in leaf] or [0])[0]
        return _column(header, "--node", columns.node or header[first])

    def _last_of_leaf(self, columns: TopologyColumns) -> int:
        """The column of the leaf: by its name, else the only one beside the node's."""
        header = self.header
        others = [i for i, name in enumerate(header) if name != columns.node]
        known = [i for i in self._named(LEAVES) if i in others]
        if not known and header[-1].lower() in PLACES:
            known = [len(header) - 1]
        if not known:
            rest = [i for i in others if columns.node or i not in self._named(NODES)]
            if len(header) > 2:  # noqa: PLR2004 - a node and a leaf
                names = shortened([quoted(header[i]) for i in rest], MAX_COLUMNS)
                raise BadTopology(
                    f"cannot tell the leaf column from {names}, want a column named "
                    f"{', '.join(LEAVES[:-1])} or {LEAVES[-1]}",
                    self.leaf_hint.format("COLUMN"),
                )
            known = rest[-1:] or [len(header) - 1]
        return _column(header, "--leaf", header[known[0]])

    def _named(self, names: Sequence[str]) -> list[int]:
        """The columns with one of *names*, in the order of the names."""
        lower = [name.strip().lower() for name in self.header]
        return [lower.index(name) for name in names if name in lower]

    def _around(self, node: int, last: int) -> list[int]:
        """Columns of wider places: rack 1 of room A is not rack 1 of room B."""
        name = self.header[last].lower()
        if name not in PLACES:
            return []
        return [i for i in self._named(PLACES[: PLACES.index(name)]) if i != node]

    def warnings(self, node: int, leaf: Sequence[int]) -> Iterator[str]:
        """That the header may be none, and columns that nothing is taken from."""
        header = self.header
        if not self._named((*NODES, *LEAVES, *PLACES)):
            names = shortened([*map(quoted, header)], MAX_COLUMNS)
            yield f"the first line is taken as a header: {names}"
        unused = [i for i in range(len(header)) if i not in (node, *leaf)]
        if not unused:
            return
        names = shortened([quoted(header[i]) for i in unused], MAX_COLUMNS)
        listed = f"columns {names} are" if unused[1:] else f"column {names} is"
        named = ",".join(header[i] for i in leaf)
        told = f"{listed} not used: the leaf is named by {named}"
        also = [i for i in self._named((*LEAVES, *PLACES)) if i in unused]
        if also:
            both = self.leaf_hint.format(f"{header[also[0]]},{named}")
            told += f"; hint: {both} if the leaf is named by both"
        yield told


def _pairs(
    rows: Any,  # noqa: ANN401 - csv's reader has no name
    header: Sequence[str],
    node: int,
    leaf: Sequence[int],
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Node and leaf of every row, blank rows left out."""
    for row in rows:
        if not row:
            continue
        if len(row) != len(header):
            raise BadTopology(
                f"line {rows.line_num} has {len(row)} columns, want {len(header)}"
            )
        for i in (node, *leaf):
            if not (row[i] and row[i].isprintable() and len(row[i]) <= MAX_NAME):
                raise BadTopology(
                    f"line {rows.line_num}: {header[i]} is {quoted(row[i])}, "
                    f"want 1 to {MAX_NAME} printable characters"
                )
        yield row[node], tuple(row[i] for i in leaf)


def _column(header: Sequence[str], option: str, name: str) -> int:
    if header.count(name) != 1:
        has = ", ".join(map(quoted, header))
        raise BadTopology(f"{option} is {quoted(name)}, want one column of {has}")
    return header.index(name)


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadUse(f"--svg {file or repr(file)}: {error.strerror or error}") from None
    except ValueError as error:  # a path with a NUL byte
        raise BadUse(f"--svg {file!r}: {error}") from None


def _summary(topology: Topology) -> str:
    sizes = [len(switch.servers) for switch in topology.switches] or [0]
    few, many = min(sizes), max(sizes)
    nodes_each = so_many(many, "node")
    each = f"{few} to {nodes_each}" if few != many else nodes_each
    leaves = so_many(len(topology.switches), "leaf", "leaves")
    nodes = so_many(topology.n_nodes, "node")
    layers = "one layer" if topology.single_layer else "two layers"
    slots = so_many(topology.leaf_size, "slot")
    return f"{leaves}, {nodes}, {each} per leaf, {slots} each, {layers}"


def _plain(
    topology: Topology, problems: list[str], warnings: list[str]
) -> dict[str, Any]:
    return {
        "leaf-size": topology.leaf_size,
        "leaves": len(topology.switches),
        "nodes": topology.n_nodes,
        "level": SINGLE if topology.single_layer else DOUBLE,
        "problems": problems,
        "warnings": warnings,
        "topology": [_plain_leaf(switch) for switch in topology.switches],
    }


def _plain_leaf(switch: Switch) -> dict[str, Any]:
    return {
        "leaf": switch.address,
        "id": switch.number,
        **_condition(switch),
        "nodes": [
            {"node": server.address, "slot": server.slot}
            | ({} if server.chips is None else {"chips": server.chips})
            for server in switch.servers
        ],
    }


def _condition(switch: Switch) -> dict[str, Any]:
    """What of the leaf is not as usual."""
    state = {} if switch.state is LeafState.IDLE else {"state": switch.state_word}
    return state | ({} if switch.healthy else {"healthy": False})


def _scenario(topology: Topology, product: Product) -> str:
    """A scenario in JSON, a node per line."""
    settings = {
        "nodes-per-leaf": topology.leaf_size,
        "tor-level": SINGLE if topology.single_layer else DOUBLE,
    }
    leaves = {
        switch.address: {"address": switch.address, **_condition(switch)}
        for switch in topology.switches
        if switch.servers
    }
    nodes = [
        _node(switch, server, product)
        for switch in topology.switches
        for server in switch.servers
    ]
    parts = [f'"settings":{_json(settings)}']
    if leaves:
        parts.append(f'"leaves":{_json(leaves)}')
    parts.append('"nodes":[\n  ' + ",\n  ".join(map(_json, nodes)) + "\n ]")
    return "{" + ",\n ".join(parts) + "}\n"


def _node(switch: Switch, server: Server, product: Product) -> dict[str, Any]:
    node: dict[str, Any] = {"name": server.address, "product": product.key}
    if product.sized or server.chips not in (None, product.chips):
        node["chips"] = product.chips if server.chips is None else server.chips
    return {**node, "leaf": switch.address, "slot": server.slot}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _csv(topology: Topology, _product: Product) -> str:
    """A node and its leaf per line, in slot order."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["node", "leaf"])
    for switch in topology.switches:
        for server in sorted(switch.servers, key=lambda server: server.slot):
            rows.writerow([server.address, switch.address])
    return out.getvalue()


_FORMS: Final[dict[str, Callable[[Topology, Product], str]]] = {
    "configmap": lambda topology, _product: config_map(topology),
    "json": lambda topology, _product: tor_info(topology),
    "scenario": _scenario,
    "csv": _csv,
}


def _check_form(shown: str, to: str, text: str) -> None:
    """What was made can be used: a scenario loads, a ConfigMap is small enough."""
    if to == "configmap" and len(text) > MAX_BYTES:
        warn(
            f"{shown}: the ConfigMap has {len(text)} bytes, "
            f"want at most {MAX_BYTES}: Kubernetes takes no larger one"
        )
    if to == "scenario":
        try:
            load(text.encode())
        except source.BadInput as error:
            raise BadUse(f"{shown}: as a scenario, {error}") from None


def _draw(console: Console, topology: Topology) -> None:
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
