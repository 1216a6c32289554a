"""``ringleaf topology``: leaf switches and their nodes, checked, drawn, converted."""

import csv
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.text import Text

from ringleaf.cli.failure import BadUse, report, warn
from ringleaf.cli.options import TopologyColumns
from ringleaf.cli.output import TrimmedConsole, print_json, print_line, so_many
from ringleaf.cli.svg import drawing
from ringleaf.cli.topology_drawing import draw_leaves
from ringleaf.cli.topology_file import topology_in
from ringleaf.kube.topology import DOUBLE, MAX_BYTES, SINGLE, config_map, tor_info
from ringleaf.model.placement import LeafState
from ringleaf.model.product import Product
from ringleaf.model.topology import (
    Server,
    Switch,
    Topology,
    problems_of,
    topology_warnings,
)
from ringleaf.policies.products import find_product, similar_product
from ringleaf.simulator import source
from ringleaf.simulator.scenario import load

DEFAULT_PRODUCT: Final = "atlas-800t-a2"


def check_file(file: str, columns: TopologyColumns, *, as_json: bool) -> int:
    """Print what is wrong with a topology, and draw it; the exit status."""
    _shown, topology, noted = topology_in(file, columns)
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
        draw_leaves(console, topology)
    return 1 if problems else 0


def draw_file(file: str, columns: TopologyColumns, svg: str | None) -> int:
    """Draw a topology on the terminal and, if asked, into a file; the exit status."""
    shown, topology, noted = topology_in(file, columns)
    for line in noted:
        warn(f"{shown}: {line}")
    if svg is not None:
        _write(svg, drawing(topology, _summary(topology)))
    console = TrimmedConsole()
    print_line(console, Text(_summary(topology), style="bold"))
    draw_leaves(console, topology)
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
    shown, topology, noted = topology_in(file, columns, leaf_size, made_of.chips)
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
