"""``ringleaf products``."""

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ringleaf.cli.failure import BadUse
from ringleaf.cli.output import TrimmedConsole, print_json
from ringleaf.model.product import Product, ProductMode, Rule
from ringleaf.policies.products import PRODUCTS, find_product, misfit, similar_product
from ringleaf.policies.validation import in_words

MAX_COLUMNS = 16
MODE_LABELS = {
    ProductMode.ANY: "asked per pod",
    ProductMode.CARD: "strategy card",
    ProductMode.CHIP: "strategy chip",
    ProductMode.UNLABELLED: "no strategy",
    ProductMode.DISTRIBUTED: "distributed mode",
}


def show_products(name: str | None, *, table: bool, as_json: bool) -> int:
    """Print the catalogue, one product, or its misfit table; the exit status."""
    console = TrimmedConsole()
    if name is None:
        if table:
            raise BadUse(
                "--table is for one product; hint: ringleaf products NAME --table"
            )
        if as_json:
            print_json([_plain(product) for product in PRODUCTS.values()])
        else:
            console.print(_catalogue())
            console.print(
                "\nringleaf products NAME shows one in full, with the labels and "
                "annotations that select it."
            )
        return 0
    product = _find(name)
    if as_json:
        print_json({**_plain(product), **(_plain_tables(product) if table else {})})
    elif table:
        _print_tables(console, product)
    else:
        _print_product(console, product)
    return 0


def _find(name: str) -> Product:
    product = find_product(name)
    if product is None or product.key not in PRODUCTS:
        hint = similar_product(name)
        raise BadUse(f"NAME is {name!r}, want a product of the catalogue; hint: {hint}")
    return product


def selected_by(product: Product) -> dict[str, list[str]]:
    """The labels and annotations that name the product, those that have a value."""
    selector = product.selector
    pairs = {
        "accelerator-type": selector.accelerator_type,
        "huawei.com/schedule_policy": selector.schedule_policy,
        "npu-310-strategy": selector.npu_310_strategy,
        "duo": (selector.duo,),
        "distributed": selector.distributed,
        "ring-controller.atlas": (selector.ring_controller,),
    }
    listed = {key: [v for v in values if v] for key, values in pairs.items()}
    return {key: values for key, values in listed.items() if values}


def requests(product: Product) -> dict[ProductMode, str]:
    """Chips one pod may ask for, by mode."""
    return {mode: in_words(sorted(rule)) for mode, rule in _rules(product)}


def _rules(product: Product) -> list[tuple[ProductMode, Rule]]:
    """The rules worth telling apart."""
    return [
        (mode, rule)
        for mode, rule in product.rules.items()
        if mode is not ProductMode.SEVERAL
    ]


def _plain(product: Product) -> dict[str, Any]:
    return {
        "product": product.key,
        "title": product.title,
        "other-names": product.other_names,
        "chips": product.chips,
        "sized": product.sized,
        "groups": product.groups,
        "group": product.group,
        "wiring": product.wiring,
        "requests": {mode: sorted(rule) for mode, rule in _rules(product)},
        "alone": sorted(product.alone),
        "heeds-network": product.heeds_network,
        "superpod": product.superpod,
        "switch-modes": product.switch_modes,
        "resource": product.resource,
        "selected-by": selected_by(product),
        "source": product.source,
    }


def _catalogue() -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("product", no_wrap=True)
    table.add_column("wiring", overflow="fold")
    table.add_column("chips per pod", overflow="fold")
    table.add_column("resource", no_wrap=True)
    for product in PRODUCTS.values():
        asked = requests(product)
        told = asked.get(ProductMode.ANY) or "; ".join(
            f"{m}: {r}" for m, r in asked.items()
        )
        table.add_row(
            Text(product.key, style="bold"), product.wiring, told, product.resource
        )
    return table


def _print_product(console: Console, product: Product) -> None:
    size = f"up to {product.chips}" if product.sized else str(product.chips)
    rows = {
        "product": product.key,
        "title": product.title,
        "also": "; ".join(product.other_names),
        "chips": f"{size} in groups of {product.width} ({product.group})",
        "wiring": product.wiring,
        **{MODE_LABELS[mode]: told for mode, told in requests(product).items()},
        "one pod only": in_words(sorted(product.alone)) if product.alone else "",
        "several pods": "avoid network-faulty chips" if product.heeds_network else "",
        "switch affinity": ", ".join(product.switch_modes),
        "resource": product.resource,
        **{key: " or ".join(values) for key, values in selected_by(product).items()},
        "source": product.source,
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, told in rows.items():
        if told:
            table.add_row(key, Text(told))
    console.print(table)


def misfits(product: Product, rule: Rule) -> dict[int, list[int]]:
    """Request -> misfit for 1, 2, ... free chips in a group; halves by their half."""
    columns = range(1, product.width + 1)
    rows = {asked: row for asked, row in rule.items() if row.width == product.width}
    return {
        asked: [
            misfit(rule[asked // 2] if row.halves else row, free) for free in columns
        ]
        for asked, row in rows.items()
    }


def _plain_tables(product: Product) -> dict[str, Any]:
    return {
        "never": product.width,
        "tables": {mode: misfits(product, rule) for mode, rule in _rules(product)},
    }


def _print_tables(console: Console, product: Product) -> None:
    for number, (mode, rule) in enumerate(_rules(product)):
        if number:
            console.print()
        strategy = "" if mode == ProductMode.ANY else f", {mode}"
        console.print(
            Text(
                f"{product.key}{strategy}: misfit by free chips in a {product.group}; "
            )
            + Text(f"0 is best, {product.width} is never")
        )
        console.print(_misfit_table(product, rule, console.width))
        if any(row.halves for row in rule.values()):
            halves = in_words(sorted(n for n, row in rule.items() if row.halves))
            console.print(f"{halves} chips: half from each ring, read by pairs")
        flat = sorted(n for n, row in rule.items() if row.width != product.width)
        if flat:
            console.print(f"{in_words(flat)} chips: no affinity, any free chips")


def _misfit_table(product: Product, rule: Rule, room: int) -> Table:
    """The vendor's name of a row is affScoreList[request - 1]."""
    column = len(str(product.width)) + 2
    beside = len("affScoreList[63]  request  … 64")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("row", no_wrap=True)
    table.add_column("request", justify="right", no_wrap=True)
    shown = min(product.width, MAX_COLUMNS, max(1, (room - beside) // column))
    for free in range(1, shown + 1):
        table.add_column(str(free), justify="right")
    if shown < product.width:
        table.add_column(f"… {product.width}", justify="right")
    for label, request, row in _grouped(misfits(product, rule)):
        cells = [str(value) for value in row[:shown]]
        if shown < product.width:
            cells.append(f"… {row[-1]}")
        table.add_row(label, request, *cells)
    return table


def _grouped(rows: dict[int, list[int]]) -> list[tuple[str, str, list[int]]]:
    """Equal rows that follow each other stand as one.

    The vendor's lists have a row for each request that one group can hold.
    """
    grouped: list[tuple[list[int], list[int]]] = []
    for asked, row in rows.items():
        if grouped and grouped[-1][1] == row:
            grouped[-1][0].append(asked)
        else:
            grouped.append(([asked], row))
    return [
        (
            f"affScoreList[{asked[0] - 1}]" if asked[-1] <= len(row) else "",
            in_words(asked),
            row,
        )
        for asked, row in grouped
    ]
