"""Reading rows: tables and single readings agree, and keep their promises."""

from random import Random
from typing import Final

import numpy as np
import pytest

from ringleaf.model.mask import mask_of
from ringleaf.model.product import ProductMode, Row, Term
from ringleaf.policies.chips import (
    BASE,
    MAX_RANK,
    NEVER,
    RowTable,
    rank_terms,
    read,
    table_of,
    written_order,
)
from ringleaf.policies.products import PRODUCTS
from ringleaf.policies.rules import halves_row
from tests.chips import chips

RING: Final = PRODUCTS["atlas-800-9000"].rules[ProductMode.ANY]
BOX16: Final = PRODUCTS["atlas-200t-a2-box16"].rules
CARDS: Final = PRODUCTS["atlas-300i"].rules
DUO: Final = PRODUCTS["atlas-300i-duo"].rules
PLAIN: Final = PRODUCTS["atlas-310p"].rules[ProductMode.ANY]


def mask(drawing: str) -> int:
    """The free chips of a drawing as a mask."""
    return mask_of(chips(drawing))


def test_a_table_answers_for_every_mask() -> None:
    table = table_of(RING[2], 8)

    assert table.rank(mask("01..|....")) == 0
    assert table.choose(mask("012.|4567")) == mask("....|45..")
    assert table.rank(mask("0...|4...")) == NEVER


def test_many_masks_are_answered_at_once() -> None:
    table = table_of(RING[2], 8)
    masks = np.array([mask("01..|...."), mask("0...|4..."), mask("0123|4567")])

    assert table.ranks(masks).tolist() == [0, NEVER, table.rank(255)]


@pytest.mark.parametrize(
    ("row", "n_chips"),
    [
        *((CARDS[ProductMode.CARD][asked], 64) for asked in (1, 2, 3, 4)),
        *((CARDS[ProductMode.CHIP][asked], 64) for asked in (1, 2, 5, 23, 64)),
        *((CARDS[ProductMode.UNLABELLED][asked], 64) for asked in (1, 2, 3, 4, 5)),
        *((DUO[ProductMode.CARD][asked], 32) for asked in (1, 2)),
        *((DUO[ProductMode.CHIP][asked], 32) for asked in (1, 2, 3, 8, 15, 16)),
        *((DUO[ProductMode.DISTRIBUTED][asked], 32) for asked in (1, 2, 3, 8, 15, 16)),
        *((PLAIN[asked], 64) for asked in (1, 5, 17, 33, 64)),
    ],
)
def test_a_large_node_is_answered_as_it_reads(row: Row, n_chips: int) -> None:
    """Up to 16 chips there is a table of masks; above it the row is read otherwise."""
    draw = Random(row.asked)  # noqa: S311 - chips, not keys
    full = (1 << n_chips) - 1
    sparse = [draw.getrandbits(n_chips) & draw.getrandbits(n_chips) for _ in range(150)]
    dense = [~one & full for one in sparse]
    masks = np.array([0, full, *sparse, *dense], np.uint64)

    found, table = read(row, n_chips, masks), table_of(row, n_chips)

    assert np.array_equal(table.ranks(masks), found.rank)
    assert (found.rank != NEVER).any()
    for at, one in enumerate(masks.tolist()):
        assert table.rank(one) == found.rank[at]
        if found.rank[at] != NEVER:
            assert table.choose(one) == found.taken[at]
    assert table.pods(masks).tolist() == [pods_one_by_one(table, n) for n in masks]


def pods_one_by_one(table: RowTable, free: np.uint64) -> int:
    left, pods = int(free), 0
    while table.rank(left) != NEVER:
        left &= ~table.choose(left)
        pods += 1
    return pods


def test_how_many_pods_fit_into_every_mask_is_counted_pod_by_pod() -> None:
    every = np.arange(1 << 8, dtype=np.uint64)
    for row in RING.values():
        table = table_of(row, 8)
        assert table.pods(every).tolist() == [pods_one_by_one(table, n) for n in every]


def test_chips_above_the_sixteenth_are_read_too() -> None:
    table = table_of(CARDS[ProductMode.CHIP][2], 64)

    assert table.choose(mask_of([3, 40, 41, 60])) == mask_of([3, 60])
    assert table.choose(mask_of([40, 41, 42, 61, 62])) == mask_of([61, 62])


def test_no_chip_is_taken_that_is_not_usable_and_as_many_as_asked() -> None:
    every = np.arange(1 << 16, dtype=np.uint64)
    for asked, row in BOX16[ProductMode.ANY].items():
        found = read(row, 16, every)
        fits = found.rank != NEVER

        assert not (found.taken & ~every).any()
        assert {*np.bitwise_count(found.taken[fits]).tolist()} == {asked}
        assert not found.taken[~fits].any()


@pytest.mark.parametrize(
    ("row", "drawing", "terms"),
    [
        pytest.param(
            RING[1],
            "01..|456.",
            {Term.POSITION: 1, Term.LEFT: 4},
            id="place in the walk, chips left",
        ),
        pytest.param(
            BOX16[ProductMode.ANY][10],
            "0123456.|89abcdef",
            {Term.POSITION: 0, Term.SPARE: 2, Term.LEFT: 5},
            id="aligned, pairs left, chips left",
        ),
        pytest.param(
            PRODUCTS["atlas-800t-a3"].rules[ProductMode.ANY][2],
            "01|23|45|6.|..|..|..|..",
            {Term.POSITION: 0, Term.WHOLE: 2, Term.LEFT: 5},
            id="whole modules left, chips left",
        ),
        pytest.param(
            PRODUCTS["atlas-350-4p-8"].rules[ProductMode.ANY][3],
            "012.|4567",
            {Term.SPARE: 1, Term.LEFT: 4},
            id="meshes that could serve it, chips left",
        ),
    ],
)
def test_a_rank_packs_its_terms_first_weighing_most(
    row: Row, drawing: str, terms: dict[Term, int]
) -> None:
    table = table_of(row, len(drawing.replace("|", "")))

    rank = table.rank(mask(drawing))

    assert rank_terms(row, rank) == terms
    packed = 0
    for term in row.rank_by:
        packed = packed * BASE + terms[term]
    assert rank == packed


def test_terms_fit_their_digits() -> None:
    """A node has at most 64 chips, and no row ranks by more than three terms."""
    rows = [
        row
        for product in PRODUCTS.values()
        for rule in product.rules.values()
        for row in rule.values()
    ]

    assert BASE > 64
    assert BASE ** max(len(row.rank_by) for row in rows) <= MAX_RANK


def test_a_table_is_made_once() -> None:
    assert table_of(RING[1], 8) is table_of(RING[1], 8)


@pytest.mark.parametrize(
    ("row", "taken", "written"),
    [
        pytest.param(RING[4], "....|4567", (4, 5, 6, 7), id="ascending"),
        pytest.param(
            halves_row(10, aligned=True),
            "01.34..7|89.bc..f",
            (0, 8, 1, 9, 3, 11, 4, 12, 7, 15),
            id="pairs one after the other",
        ),
        pytest.param(
            halves_row(10, aligned=False),
            "01234...|...bcdef",
            (0, 11, 1, 12, 2, 13, 3, 14, 4, 15),
            id="k-th of one ring with k-th of the other",
        ),
        pytest.param(
            BOX16[ProductMode.ANY][16],
            "01234567|89abcdef",
            tuple(range(16)),
            id="all sixteen ascending",
        ),
    ],
)
def test_chips_are_written_in_this_order(
    row: Row, taken: str, written: tuple[int, ...]
) -> None:
    assert written_order(row, mask(taken)) == written
