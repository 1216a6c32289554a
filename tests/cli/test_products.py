"""``ringleaf products``."""

import json

import pytest

from ringleaf.model.product import Product
from ringleaf.policies.products import PRODUCTS
from tests.cli.conftest import Ringleaf


def test_every_product_is_listed(ringleaf: Ringleaf) -> None:
    done = ringleaf("products", columns=140)

    assert (done.status, done.err) == (0, "")
    *listed, empty, last = done.lines
    assert [line.split()[0] for line in listed] == ["product", *PRODUCTS]
    assert (empty, last.partition(" shows ")[0]) == ("", "ringleaf products NAME")


def test_the_list_as_json(ringleaf: Ringleaf) -> None:
    done = ringleaf("products", "--json")

    assert [product["product"] for product in json.loads(done.out)] == list(PRODUCTS)


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=lambda p: p.key)
def test_a_product_is_shown_by_any_of_its_names(
    ringleaf: Ringleaf, product: Product
) -> None:
    names = (product.key, product.title, *product.other_names)
    shown = {ringleaf("products", name, columns=200) for name in names}

    (done,) = shown
    assert done.status == 0
    assert done.lines[0].split() == ["product", product.key]
    assert any(line.startswith("resource") for line in done.lines)


def test_what_people_see_of_a_product(ringleaf: Ringleaf) -> None:
    lines = ringleaf("products", "atlas-300i-duo", columns=120).lines

    assert lines == [
        "product                atlas-300i-duo",
        f"title                  {PRODUCTS['atlas-300i-duo'].title}",
        "also                   Atlas 300I Duo inference card",
        "chips                  up to 32 in groups of 2 (card)",
        "wiring                 cards of 2 on HCCS, PCIe between cards",
        "strategy card          1 or 2",
        "strategy chip          1 to 16",
        "distributed mode       1 to 16",
        "resource               huawei.com/Ascend310P",
        "npu-310-strategy       card or chip",
        "duo                    true",
        "distributed            true or false",
        "ring-controller.atlas  ascend-310P",
        "source                 affinity table 1, row 5",
    ]


def test_the_table_has_the_rows_of_the_guide(ringleaf: Ringleaf) -> None:
    """affScoreList[5] and affScoreList[3] are printed in seed 000."""
    lines = ringleaf("products", "atlas-800t-a2", "--table").lines
    rows = {line.split()[0]: line.split()[1:] for line in lines}

    assert rows["affScoreList[5]"] == ["6", *"88888012"]
    assert rows["affScoreList[3]"] == ["4", *"88801234"]
    assert len(lines) == 10


def test_the_table_as_json(ringleaf: Ringleaf) -> None:
    done = json.loads(ringleaf("products", "Atlas 800I A2", "--table", "--json").out)

    assert done["product"] == "atlas-800i-a2"
    assert done["never"] == 8
    assert done["tables"]["any"]["6"] == [8, 8, 8, 8, 8, 0, 1, 2]


def test_rows_that_are_alike_are_named_one_by_one(ringleaf: Ringleaf) -> None:
    """5 to 7 chips have no row, so 4 and 8 are no range."""
    lines = ringleaf("products", "atlas-350-4p-8", "--table").lines

    assert lines[-2].split() == ["4", "or", "8", "4", "4", "4", "0"]
    assert lines[-1] == "5 to 7 chips: no affinity, any free chips"


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_a_wide_table_leaves_out_columns_rather_than_letters(
    ringleaf: Ringleaf, columns: int
) -> None:
    arguments = ["products", "atlas-310p", "--table"]
    lines = ringleaf(*arguments, columns=columns).lines
    (head,) = (i for i, line in enumerate(lines) if line.startswith("row"))

    assert max(map(len, lines)) <= columns
    assert lines[head].split()[:3] == ["row", "request", "1"]
    assert lines[head].endswith("… 64")
    assert [line.split()[0] for line in lines[head + 1 :]] == [
        f"affScoreList[{i}]" for i in range(64)
    ]


@pytest.mark.parametrize("product", PRODUCTS)
def test_every_product_has_a_table(ringleaf: Ringleaf, product: str) -> None:
    done = ringleaf("products", product, "--table")

    assert (done.status, done.err) == (0, "")
    assert "affScoreList[0]" in done.out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["atlas-800t-a4"],
            (
                "NAME is 'atlas-800t-a4', want a product of the catalogue; "
                "hint: did you mean 'atlas-800t-a3'?"
            ),
        ),
        (
            ["zzz"],
            (
                "NAME is 'zzz', want a product of the catalogue; "
                "hint: ringleaf products lists them"
            ),
        ),
        (
            ["no-npu"],
            (
                "NAME is 'no-npu', want a product of the catalogue; "
                "hint: ringleaf products lists them"
            ),
        ),
        (
            ["a\nb\x1b"],
            (
                r"NAME is 'a\nb\x1b', want a product of the catalogue; "
                "hint: ringleaf products lists them"
            ),
        ),
        (
            ["--table"],
            "--table is for one product; hint: ringleaf products NAME --table",
        ),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    ringleaf: Ringleaf, arguments: list[str], line: str
) -> None:
    assert ringleaf("products", *arguments) == (2, "", f"ringleaf: {line}\n")
