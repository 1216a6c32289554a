"""Nodes that change in ``then``: an entry without ``product`` says what is new.

What it does not say stays as it was. Entries are completed before they are read, as
plain values; what is wrong with these is found when they are read.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ringleaf.simulator.checks import unknown_node
from ringleaf.simulator.format import MAX_NODES
from ringleaf.simulator.nodes import filled

Plain = dict[str, Any]


def completed(document: object) -> object:
    """*document* with every key of the nodes that change in ``then``."""
    later = document.get("then") if isinstance(document, dict) else None
    if not isinstance(later, list) or not any(map(_is_partial, later)):
        return document
    assert isinstance(document, dict)
    known = dict(islice(_nodes(document.get("nodes")), MAX_NODES))
    return {**document, "then": [*_completed(later, known)]}


def _is_partial(entry: object) -> bool:
    nodes = entry.get("nodes") if isinstance(entry, dict) else None
    return isinstance(nodes, list) and any(map(_is_change, nodes))


def _is_change(node: object) -> bool:
    return (
        isinstance(node, dict)
        and not {"product", "count"} & node.keys()
        and isinstance(node.get("name"), str)
    )


def _completed(later: list[Any], known: dict[str, Plain]) -> Iterator[Any]:
    """The entries in their order; *known* are the nodes that are there."""
    for i, entry in enumerate(later):
        if not isinstance(entry, dict):
            yield entry
            continue
        gone = entry.get("nodes-gone")
        for name in gone if isinstance(gone, list) else ():
            if isinstance(name, str):
                known.pop(name, None)
        nodes = entry.get("nodes")
        if isinstance(nodes, list):
            path = f"then[{i}].nodes"
            whole = [_whole(f"{path}[{k}]", n, known) for k, n in enumerate(nodes)]
            known.update(islice(_nodes(whole), MAX_NODES))
            yield {**entry, "nodes": whole}
        else:
            yield entry


def _whole(path: str, node: Any, known: Mapping[str, Plain]) -> Any:  # noqa: ANN401
    """A node with the keys that it does not say, as it was."""
    if not _is_change(node):
        return node
    name = node["name"]
    if name not in known:
        unknown_node(f"{path}.name", name, known)
    return {**known[name], **node}


def _nodes(entries: object) -> Iterator[tuple[str, Plain]]:
    """Every node by itself, with its name."""
    for entry in entries if isinstance(entries, list) else ():
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            continue
        count = entry.get("count")
        if not isinstance(count, int):
            yield name, entry
            continue
        alone = {key: value for key, value in entry.items() if key != "count"}
        for i in range(count):
            own = name.replace("{i}", str(i))
            leaf = alone.get("leaf")
            under = {"leaf": filled(leaf, i)} if isinstance(leaf, str) else {}
            yield own, {**alone, "name": own, **under}
