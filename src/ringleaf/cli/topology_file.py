"""Topologies from files: ConfigMaps, their tor_info, and CSV."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from ringleaf.cli.failure import program
from ringleaf.cli.file import bytes_of, name_of, one_line
from ringleaf.cli.options import TopologyColumns
from ringleaf.cli.output import progress, shortened
from ringleaf.kube.topology import MAX_NAME, BadTopology, read_topology
from ringleaf.model.topology import Topology, quoted, topology_of
from ringleaf.simulator import source
from ringleaf.simulator.traces import apart_hint

BAD: Final = (BadTopology, source.BadInput)
"""How reading fails."""

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

SCENARIO: Final = {"nodes", "jobs", "running", "leaves"}
"""Keys of a scenario; any of them tells one."""


def topology_in(
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
        """Warnings: the first line may be no header, and columns are not used."""
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
