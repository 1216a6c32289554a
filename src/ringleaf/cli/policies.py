"""``ringleaf policies``: what simulate and compare can schedule with."""

from collections.abc import Iterator
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.baselines.order import ORDERS
from ringleaf.baselines.registry import (
    BASELINES,
    DEPLOYED,
    OURS,
    Entry,
    UnknownName,
    entry_of,
)
from ringleaf.cli.failure import BadUse, program
from ringleaf.cli.output import TrimmedConsole, print_json, print_trimmed

NAMES: Final = 20
"""Columns for the names."""


def show_policies(name: str | None, *, as_json: bool) -> int:
    """Print the policies and queue orders, or one policy; the exit status."""
    console = TrimmedConsole()
    if name is not None:
        found = _plain(_entry(name))
        if as_json:
            print_json(found)
        else:
            _print_one(console, found)
        return 0
    policies = [_plain(entry) for entry in BASELINES.values()]
    orders = [
        {"order": o.name, "title": o.title, "source": o.source} for o in ORDERS.values()
    ]
    if as_json:
        print_json({"policies": policies, "orders": orders})
    else:
        for heading, group in _groups(policies):
            _print_table(console, "policy", heading, group)
        _print_table(console, "order", "Queue orders, for --order", orders)
        console.print(
            f"{program()} policies NAME shows what a policy respects and where it "
            "comes from."
        )
    return 0


def _entry(name: str) -> Entry:
    try:
        return entry_of(name)
    except UnknownName as error:
        raise BadUse(f"NAME: {error}") from None


def _plain(entry: Entry) -> dict[str, Any]:
    return {
        "policy": entry.name,
        "title": entry.title,
        "respects": entry.respects,
        "source": entry.source,
    }


def _groups(
    policies: list[dict[str, Any]],
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Headings and the policies below them: what people run today comes first."""
    ours, deployed, rules = [], [], []
    for each in policies:
        if each["policy"].startswith(OURS):
            ours.append(each)
        elif each["policy"] in DEPLOYED:
            deployed.append(each)
        else:
            rules.append(each)
    yield "Ringleaf", ours
    yield "Schedulers as they are deployed, each with its own queue", deployed
    yield "Rules for nodes and chips, behind Ringleaf's queue", rules


def _print_table(
    console: Console, word: str, heading: str, rows: list[dict[str, Any]]
) -> None:
    console.print(Text(heading, "bold"))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=NAMES + 2)
    table.add_column()
    for row in rows:
        table.add_row(Text(f"  {row[word]}", "bold"), Text(_unquoted(row["title"])))
    print_trimmed(console, table)
    console.print()


def _print_one(console: Console, found: dict[str, Any]) -> None:
    console.print(Text(found["policy"], "bold"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for word, key in (("does", "title"), ("respects", "respects"), ("from", "source")):
        grid.add_row(Text(f"  {word}", "dim"), Text(_unquoted(found[key])))
    print_trimmed(console, grid)


def _unquoted(text: str) -> str:
    """*text* as people read it on a terminal."""
    return text.replace("`", "")
