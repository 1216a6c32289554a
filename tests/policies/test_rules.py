"""Every walk of the rules: misfit, order between nodes, chips that are taken.

Drawings are explained in ``tests.chips``. A list of drawings is the order in which a
request likes the nodes; names never help, for a later drawing has an earlier name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pytest

from ringleaf.framework.session import Session
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.model.mask import mask_of
from ringleaf.model.product import ProductMode, Row
from ringleaf.policies.fit import node_ranks, request_of
from ringleaf.policies.products import PRODUCTS, misfit
from ringleaf.policies.rules import best_fit, one_row
from tests.chips import a_job, a_node, chips, given, is_the_order, ranks

RING, HALF, CARD_300T = "atlas-800-9000", "atlas-800-9000-half", "atlas-300t"
A2, BOX16, A3 = "atlas-800t-a2", "atlas-200t-a2-box16", "atlas-800t-a3"
A3_PODS, BOX8, A3_SMALL = "atlas-900-a3", "a200t-a3-box8", "atlas-9000-a3"
CARDS, DUO, PLAIN = "atlas-300i", "atlas-300i-duo", "atlas-310p"
MESH_8, MESH_16 = "atlas-350-4p-8", "atlas-350-4p-16"

Misfits = Mapping[int, tuple[int, ...]]

# Chips asked -> misfit of a group with 1, 2, 3, ... free chips; the width is never.
RING_MISFITS: Final[Misfits] = {
    1: (0, 2, 1, 3),
    2: (4, 0, 2, 1),
    3: (4, 4, 4, 4),
    4: (4, 4, 4, 0),
    5: (4, 4, 4, 4),
    6: (4, 4, 4, 4),
    7: (4, 4, 4, 4),
    8: (4, 4, 4, 0),
}
HALF_MISFITS: Final[Misfits] = {
    1: (0, 1, 2, 3),
    2: (4, 0, 1, 2),
    3: (4, 4, 4, 4),
    4: (4, 4, 4, 0),
}
PAIR_MISFITS: Final[Misfits] = {
    1: (0, 1),
    2: (2, 0),
    3: (2, 2),
}
BEST_FIT_OF_8: Final[Misfits] = {
    1: (0, 1, 2, 3, 4, 5, 6, 7),
    2: (8, 0, 1, 2, 3, 4, 5, 6),
    3: (8, 8, 0, 1, 2, 3, 4, 5),
    4: (8, 8, 8, 0, 1, 2, 3, 4),
    5: (8, 8, 8, 8, 0, 1, 2, 3),
    6: (8, 8, 8, 8, 8, 0, 1, 2),
    7: (8, 8, 8, 8, 8, 8, 0, 1),
    8: (8, 8, 8, 8, 8, 8, 8, 0),
    9: (8, 8, 8, 8, 8, 8, 8, 8),
}
BOX16_MISFITS: Final[Misfits] = {
    **BEST_FIT_OF_8,
    11: (8, 8, 8, 8, 8, 8, 8, 8),
    13: (8, 8, 8, 8, 8, 8, 8, 8),
    15: (8, 8, 8, 8, 8, 8, 8, 8),
    16: (8, 8, 8, 8, 8, 8, 8, 0),
}
MODULE_MISFITS: Final[Misfits] = {
    1: (0, 1),
    **dict.fromkeys((2, 4, 6, 8, 10, 12, 14, 16), (2, 0)),
    **dict.fromkeys((3, 5, 7, 9, 11, 13, 15), (2, 2)),
}
SMALL_MODULE_MISFITS: Final[Misfits] = {
    1: (0, 1),
    **dict.fromkeys((2, 4, 6, 8), (2, 0)),
    **dict.fromkeys((3, 5, 7, 10, 16), (2, 2)),
}
CARD_OF_4_MISFITS: Final[Misfits] = {
    1: (0, 2, 1, 3),
    2: (4, 0, 1, 2),
    3: (4, 4, 0, 1),
    4: (4, 4, 4, 0),
    5: (4, 4, 4, 4),
}
LEFTOVER_MISFITS: Final[Misfits] = dict.fromkeys(range(1, 65), (0, 1, 2, 3))
ONE_CARD_MISFITS: Final[Misfits] = {
    **LEFTOVER_MISFITS,
    2: (3, 0, 1, 2),
    3: (2, 3, 0, 1),
    4: (1, 2, 3, 0),
}
DUO_SOFT_MISFITS: Final[Misfits] = {
    **dict.fromkeys(range(1, 17, 2), (0, 1)),
    **dict.fromkeys(range(2, 17, 2), (1, 0)),
    17: (2, 2),
}
DUO_MISFITS: Final[Misfits] = {
    **dict.fromkeys(range(1, 17, 2), (0, 1)),
    **dict.fromkeys(range(2, 17, 2), (2, 0)),
    17: (2, 2),
}
MESH_MISFITS: Final[Misfits] = {
    1: (0, 1, 2, 3),
    2: (4, 0, 1, 2),
    3: (4, 4, 0, 1),
    4: (4, 4, 4, 0),
    8: (4, 4, 4, 0),
}


@pytest.mark.parametrize(
    ("product", "mode", "misfits"),
    [
        pytest.param(RING, "any", RING_MISFITS, id="module910x8, row 3 all 4s"),
        pytest.param(HALF, "any", HALF_MISFITS, id="half910x4: best fit, 3 illegal"),
        pytest.param(CARD_300T, "any", PAIR_MISFITS, id="card910x2: best fit of two"),
        pytest.param(A2, "any", BEST_FIT_OF_8, id="module910bx8: affScoreList"),
        pytest.param(BOX16, "any", BOX16_MISFITS, id="module910bx16, one pod"),
        pytest.param(BOX16, "several", BOX16_MISFITS, id="module910bx16, several"),
        pytest.param(A3, "any", MODULE_MISFITS, id="module910a3x16: half first, whole"),
        pytest.param(BOX8, "any", MODULE_MISFITS, id="Box8 as module910a3x16"),
        pytest.param(A3_PODS, "any", MODULE_MISFITS, id="superpod-a3x16"),
        pytest.param(A3_SMALL, "any", SMALL_MODULE_MISFITS, id="superpod-a3x8"),
        pytest.param(CARDS, "card", CARD_OF_4_MISFITS, id="card310x4: two is 2, 3, 4"),
        pytest.param(CARDS, "chip", LEFTOVER_MISFITS, id="chip310x4: fullest card"),
        pytest.param(CARDS, "unlabelled", ONE_CARD_MISFITS, id="300I, no label (D42)"),
        pytest.param(DUO, "card", PAIR_MISFITS, id="card310px2"),
        pytest.param(DUO, "chip", DUO_SOFT_MISFITS, id="chip310px2, plain (D8)"),
        pytest.param(DUO, "distributed", DUO_MISFITS, id="chip310px2, distributed"),
        pytest.param(MESH_8, "any", MESH_MISFITS, id="chip4-node8, mesh case"),
        pytest.param(
            MESH_16,
            "any",
            {**MESH_MISFITS, 12: (4, 4, 4, 0), 16: (4, 4, 4, 0)},
            id="chip4-node16, mesh case",
        ),
    ],
)
def test_the_walks_are_the_vendor_tables(
    product: str, mode: str, misfits: Misfits
) -> None:
    rule, width = PRODUCTS[product].rules[ProductMode(mode)], PRODUCTS[product].width

    assert misfits == {
        asked: tuple(_misfit(rule.get(asked), width, free + 1) for free in range(width))
        for asked in misfits
    }


def _misfit(row: Row | None, width: int, free: int) -> int:
    return width if row is None else misfit(row, free)


@pytest.mark.parametrize(
    ("product", "asked"),
    [(MESH_8, 5), (MESH_8, 6), (MESH_8, 7), (MESH_16, 5), (MESH_16, 9), (MESH_16, 15)],
)
def test_requests_that_are_no_meshes_see_the_node_as_one_group(
    product: str, asked: int
) -> None:
    row, size = PRODUCTS[product].rules[ProductMode.ANY][asked], PRODUCTS[product].chips

    assert row.width == size
    assert [misfit(row, free) for free in range(asked, size + 1)] == list(
        range(size - asked + 1)
    )
    assert [misfit(row, free) for free in range(asked)] == [size] * asked


@pytest.mark.parametrize("asked", [1, 13, 64])
def test_a_node_without_links_is_one_group(asked: int) -> None:
    row = PRODUCTS[PLAIN].rules[ProductMode.ANY][asked]

    found = [misfit(row, free) for free in range(1, 65)]

    assert found == [64] * (asked - 1) + list(range(65 - asked))


def test_the_requests_of_a_rule_are_listed_in_ascending_order() -> None:
    for product in PRODUCTS.values():
        for rule in product.rules.values():
            assert list(rule) == sorted(rule)
            assert all(rule[asked].asked == asked for asked in rule)


def test_best_fit_is_exactly_enough_then_one_more() -> None:
    assert best_fit(4, 8) == (4, 5, 6, 7, 8)
    assert best_fit(8, 8) == (8,)


def test_further_groups_follow_the_first_walk_by_default() -> None:
    assert one_row(3, 4, (1, 3)).rest == (1, 3)
    assert one_row(3, 4, (1, 3), rest=(4,)).rest == (4,)


ORDERS: Final = [
    pytest.param(
        a_job(RING, 1),
        ["0...|....", "0...|4567", "012.|....", "01..|4567", "0123|...."],
        id="ring, 1: place in 1, 3, 2, 4, then fewer chips left",
    ),
    pytest.param(
        a_job(HALF, 1), ["0...", "01..", "012.", "0123"], id="half, 1: best fit"
    ),
    pytest.param(a_job(HALF, 2), ["01..", "012.", "0123"], id="half, 2: best fit"),
    pytest.param(a_job(CARD_300T, 1), ["0.", "01"], id="300T, 1: best fit"),
    pytest.param(
        a_job(A2, 2),
        ["01......", ".123....", "0123....", "0123456.", "01234567"],
        id="A2, 2: best fit",
    ),
    pytest.param(
        a_job(BOX16, 3),
        [
            "012.....|........",
            "012.....|89......",
            "012.....|89abcdef",
            "0123....|........",
            "0123....|89abcdef",
            "01234567|89abcdef",
        ],
        id="Box16, 3: best fit of a ring, then fewer chips left",
    ),
    pytest.param(
        a_job(BOX16, 10),
        [
            "01234...|89abc...",
            "01234567|89abc...",
            "012345..|89abcd..",
            "01234567|89abcdef",
            "01234...|.9abcd..",
            "012345..|..abcde.",
            "012345..|..abcdef",
        ],
        id="Box16, 10: aligned first, fewest pairs left, fewest chips left",
    ),
    pytest.param(
        a_job(BOX16, 10, pods=2),
        [
            "01234...|..abcde.",
            "01234...|89abcd..",
            "01234567|.9abcd..",
            "012345..|89abcd..",
            "01234567|89abcdef",
        ],
        id="Box16, several pods of 10: fewest pairs left, aligned or not",
    ),
    pytest.param(
        a_job(BOX16, 14),
        ["0123456.|89abcde.", "01234567|89abcdef", "0123456.|.9abcdef"],
        id="Box16, 14: aligned first",
    ),
    pytest.param(
        a_job(A3, 1),
        [
            "0.|..|..|..|..|..|..|..",
            "0.|2.|..|..|..|..|..|..",
            "0.|2.|4.|..|..|..|..|..",
            "0.|23|..|..|..|..|..|..",
            "0.|23|4.|..|..|..|..|..",
            "0.|23|45|67|89|ab|cd|ef",
            "01|..|..|..|..|..|..|..",
            "01|23|..|..|..|..|..|..",
            "01|23|45|67|89|ab|cd|ef",
        ],
        id="A3, 1: a half-used module, then fewest whole ones, then chips (D7)",
    ),
    pytest.param(
        a_job(A3, 2),
        [
            "01|..|..|..|..|..|..|..",
            "01|2.|..|..|..|..|..|..",
            "01|2.|4.|6.|8.|a.|c.|e.",
            "01|23|..|..|..|..|..|..",
            "01|23|4.|..|..|..|..|..",
            "01|23|45|..|..|..|..|..",
            "01|23|45|67|89|ab|cd|ef",
        ],
        id="A3, 2: fewest whole modules left, then fewest chips (D7)",
    ),
    pytest.param(
        a_job(A3, 6),
        [
            "01|23|45|..|..|..|..|..",
            "01|23|45|6.|8.|a.|c.|e.",
            "01|23|45|67|..|..|..|..",
            "01|23|45|67|89|ab|cd|ef",
        ],
        id="A3, 6: fewest whole modules left, then fewest chips (D7)",
    ),
    pytest.param(
        a_job(A3_SMALL, 4),
        ["01|23|..|..", "01|23|4.|6.", "01|23|45|..", "01|23|45|67"],
        id="A3 of 8, 4: as the larger one",
    ),
    pytest.param(
        a_job(CARDS, 1, strategy="card"),
        [
            "0...|....|....",
            "0...|456.|89ab",
            "012.|....|....",
            "012.|45..|89ab",
            "01..|....|....",
            "01..|4567|89ab",
            "0123|....|....",
            "0123|4567|89ab",
        ],
        id="300I card, 1: place in 1, 3, 2, 4, then fewer chips left",
    ),
    pytest.param(
        a_job(CARDS, 2, strategy="card"),
        ["01..|....", "01..|4567", "012.|....", "012.|4567", "0123|....", "0123|4567"],
        id="300I card, 2: place in 2, 3, 4, then fewer chips left",
    ),
    pytest.param(
        a_job(CARDS, 3, strategy="card"),
        ["012.|....", "012.|4567", "0123|....", "0123|45.."],
        id="300I card, 3: place in 3, 4, then fewer chips left",
    ),
    pytest.param(
        a_job(CARDS, 2, strategy="chip"),
        ["0...|4...|....", "01..|4...|....", "0123|....|....", "0123|4567|...."],
        id="300I chip: best fit, wherever the chips are (D32)",
    ),
    pytest.param(
        a_job(CARDS, 3),
        [
            "012.|....|....",
            "012.|4567|89ab",
            "0123|....|....",
            "0123|45..|89..",
            "01..|4...|....",
            "0...|4...|89..",
            "01..|45..|89..",
        ],
        id="300I, 3: the tightest card, fewer left; then split, fewer left (D42)",
    ),
    pytest.param(
        a_job(CARDS, 5),
        ["0123|4...|....", "01..|45..|89..", "0123|4567|...."],
        id="300I, 5: no card holds it: best fit (D42)",
    ),
    pytest.param(
        a_job(DUO, 1, strategy="card"),
        ["0.|..|..", "0.|2.|..", "0.|23|45", "01|..|..", "01|23|.."],
        id="Duo card, 1: a half-used card, then fewer chips left",
    ),
    pytest.param(
        a_job(DUO, 2, strategy="card"),
        ["01|..|..", "01|2.|..", "01|23|.."],
        id="Duo card, 2: fewer chips left",
    ),
    pytest.param(
        a_job(DUO, 2),
        ["01|..|..|..", "01|2.|..|..", "0.|2.|4.|6.", "01|23|4.|..", "01|23|45|.."],
        id="Duo chip, even: best fit (D8)",
    ),
    pytest.param(
        a_job(DUO, 3),
        [
            "01|2.|..|..",
            "0.|2.|4.|6.",
            "01|23|4.|..",
            "01|23|45|6.",
            "01|23|..|..",
            "01|23|45|67",
        ],
        id="Duo chip, odd: a half-used card, then best fit (D8)",
    ),
    pytest.param(
        a_job(DUO, 3, distributed=True),
        ["01|2.|..|..", "01|2.|4.|..", "01|23|45|6.", "01|23|..|..", "01|23|45|.."],
        id="Duo distributed, odd: a half-used card, then best fit",
    ),
    pytest.param(
        a_job(DUO, 4, distributed=True),
        ["01|23|..|..", "01|23|4.|..", "01|23|4.|6.", "01|23|45|6.", "01|23|45|67"],
        id="Duo distributed, even: best fit",
    ),
    pytest.param(
        a_job(PLAIN, 2), ["01....", ".1.3.5", "012345"], id="310P, 2: best fit"
    ),
    pytest.param(
        a_job(MESH_8, 2),
        ["01..|....", "01..|4...", "0123|4...", "01..|45..", "01..|456.", "0123|4567"],
        id="350, 2: fewest other meshes that could serve it, then fewer chips left",
    ),
    pytest.param(
        a_job(MESH_16, 3),
        [
            "012.|....|....|....",
            "0123|45..|89..|cd..",
            "012.|456.|....|....",
            "012.|456.|89..|cd..",
            "012.|456.|89a.|....",
            "0123|4567|89ab|cdef",
        ],
        id="350 of 16, 3: fewest other meshes, then fewer chips left",
    ),
    pytest.param(
        a_job(MESH_16, 8),
        [
            "0123|4567|....|....",
            "0123|4567|89a.|cde.",
            "0123|4567|89ab|....",
            "0123|4567|89ab|cde.",
            "0123|4567|89ab|cdef",
        ],
        id="350 of 16, 8: fewest full meshes left, then fewer chips left",
    ),
    pytest.param(
        a_job(MESH_8, 5),
        ["01..|456.", "0123|45..", "0123|456.", "0123|4567"],
        id="350, 5: best fit without meshes",
    ),
]


@pytest.mark.parametrize(("job", "drawings"), ORDERS)
def test_nodes_come_in_this_order(job: Job, drawings: Sequence[str]) -> None:
    assert is_the_order(job, drawings)


@pytest.mark.parametrize(
    ("job", "one", "other"),
    [
        pytest.param(a_job(A2, 3), "012.....", ".....567", id="A2: wherever they are"),
        pytest.param(
            a_job(BOX16, 10, pods=2),
            "01234...|89abc...",
            "01234...|...bcdef",
            id="Box16, several pods: aligned is no better",
        ),
        pytest.param(
            a_job(BOX16, 4),
            "0123....|........",
            "........|.9.b.d.f",
            id="Box16: either ring",
        ),
        pytest.param(
            a_job(CARDS, 4, strategy="chip"),
            "0123|....|....|....",
            "0...|4...|8...|c...",
            id="300I chip: one card is no better than four (D32)",
        ),
        pytest.param(
            a_job(CARDS, 3),
            "0...|45..|8...|....",
            "01..|45..|....|....",
            id="300I: split as chip, wherever the chips are (D42)",
        ),
        pytest.param(
            a_job(DUO, 2), "01|..", "0.|2.", id="Duo chip, even: free - n, no more (D8)"
        ),
        pytest.param(
            a_job(MESH_8, 5), "0123|4...", "01..|456.", id="350, 5: no affinity"
        ),
    ],
)
def test_these_nodes_are_as_good_as_each_other(job: Job, one: str, other: str) -> None:
    first, second = ranks(job, [one, other])

    assert first is not None
    assert first == second


@pytest.mark.parametrize(
    ("job", "drawing"),
    [
        pytest.param(a_job(RING, 2), "0...|4...", id="ring: one and one is not two"),
        pytest.param(a_job(RING, 4), "012.|456.", id="ring: 3 and 3 is not four"),
        pytest.param(a_job(RING, 8), "0123|456.", id="ring: seven is not eight"),
        pytest.param(a_job(HALF, 4), "012.", id="half: three is not four"),
        pytest.param(a_job(CARD_300T, 2), "0.", id="300T: one is not two"),
        pytest.param(a_job(A2, 6), "01234...", id="A2: five is not six"),
        pytest.param(
            a_job(BOX16, 8), "0123456.|89abcde.", id="Box16: 7 and 7 is not eight"
        ),
        pytest.param(
            a_job(BOX16, 10), "01234567|89ab....", id="Box16: 8 and 4 is not 5 and 5"
        ),
        pytest.param(
            a_job(BOX16, 10, pods=2),
            "0123....|89abcdef",
            id="Box16, several pods: 4 and 8 is not 5 and 5",
        ),
        pytest.param(
            a_job(BOX16, 12), "012345..|89abc...", id="Box16: 6 and 5 is not 6 and 6"
        ),
        pytest.param(
            a_job(BOX16, 14), "01234567|89abcd..", id="Box16: 8 and 6 is not 7 and 7"
        ),
        pytest.param(
            a_job(BOX16, 16), "01234567|89abcde.", id="Box16: fifteen is not sixteen"
        ),
        pytest.param(
            a_job(A3, 2), "0.|.3|4.|..|..|..|..|..", id="A3: halves are no module"
        ),
        pytest.param(
            a_job(A3, 6), "01|23|4.|.7|..|..|..|..", id="A3: six are three modules"
        ),
        pytest.param(a_job(A3_SMALL, 8), "01|23|45|6.", id="A3 of 8: all four modules"),
        pytest.param(
            a_job(CARDS, 2, strategy="card"), "0...|4...", id="300I card: one card"
        ),
        pytest.param(a_job(CARDS, 4, strategy="card"), "012.|456.", id="300I card: 4"),
        pytest.param(a_job(CARDS, 3), "0...|4...", id="300I: two is not three"),
        pytest.param(
            a_job(DUO, 2, strategy="card"), "0.|2.|4.", id="Duo card: one card"
        ),
        pytest.param(a_job(DUO, 4), "0.|2.|4.", id="Duo chip: three is not four"),
        pytest.param(
            a_job(DUO, 2, distributed=True), "0.|2.|4.", id="Duo distributed: whole"
        ),
        pytest.param(
            a_job(DUO, 3, distributed=True),
            "0.|2.|4.",
            id="Duo distributed, odd: but one chip of a half-used card",
        ),
        pytest.param(
            a_job(DUO, 5, distributed=True),
            "01|2.|4.|6.",
            id="Duo distributed, odd: n - 1 from whole cards",
        ),
        pytest.param(a_job(PLAIN, 5), "0123", id="310P: four is not five"),
        pytest.param(a_job(MESH_8, 3), "01..|45..", id="350: two and two is not three"),
        pytest.param(a_job(MESH_8, 4), "012.|456.", id="350: four is one mesh"),
        pytest.param(a_job(MESH_8, 5), "01..|45..", id="350, 5: four is not five"),
        pytest.param(
            a_job(MESH_16, 8),
            "0123|456.|89a.|cde.",
            id="350 of 16: eight are two meshes",
        ),
    ],
)
def test_this_node_does_not_fit(job: Job, drawing: str) -> None:
    assert ranks(job, [drawing]) == [None]


@pytest.mark.parametrize(
    ("job", "drawing", "taken"),
    [
        # Two rings of four (seed 004; vendor's walk 1,3,2,4 / 2,4,3 / 4).
        pytest.param(a_job(RING, 1), "0...|4567", "0...|....", id="ring, 1: 1 free"),
        pytest.param(
            a_job(RING, 1), "01..|456.", "....|4...", id="ring, 1: 3 before 2"
        ),
        pytest.param(
            a_job(RING, 1), "0123|45..", "....|4...", id="ring, 1: 2 before 4"
        ),
        pytest.param(a_job(RING, 1), "0123|4567", "0...|....", id="ring, 1: ring 0"),
        pytest.param(
            a_job(RING, 2), "0123|.5.7", "....|.5.7", id="ring, 2: 2 before 4"
        ),
        pytest.param(
            a_job(RING, 2), "012.|4567", "....|45..", id="ring, 2: 4 before 3"
        ),
        pytest.param(a_job(RING, 2), ".123|4...", ".12.|....", id="ring, 2: 3 at last"),
        pytest.param(a_job(RING, 4), "012.|4567", "....|4567", id="ring, 4: full ring"),
        pytest.param(a_job(RING, 4), "0123|4567", "0123|....", id="ring, 4: ring 0"),
        pytest.param(a_job(RING, 8), "0123|4567", "0123|4567", id="ring, 8: the node"),
        # One group: the lowest chips.
        pytest.param(a_job(HALF, 2), ".123", ".12.", id="half: lowest"),
        pytest.param(a_job(HALF, 4), "0123", "0123", id="half: all"),
        pytest.param(a_job(CARD_300T, 1), "01", "0.", id="300T: lowest"),
        pytest.param(a_job(CARD_300T, 2), "01", "01", id="300T: both"),
        pytest.param(a_job(A2, 3), ".1.3.567", ".1.3.5..", id="A2: lowest"),
        pytest.param(a_job(A2, 8), "01234567", "01234567", id="A2: all"),
        pytest.param(
            a_job(PLAIN, 3), "...3..6..9a.", "...3..6..9..", id="310P: lowest"
        ),
        # Box16 up to eight: best fit of the rings.
        pytest.param(
            a_job(BOX16, 3),
            "0123....|..a.c.e.",
            "........|..a.c.e.",
            id="Box16, 3: exact ring before four",
        ),
        pytest.param(
            a_job(BOX16, 3),
            "..23456.|89abcdef",
            "..234...|........",
            id="Box16, 3: five before eight",
        ),
        pytest.param(
            a_job(BOX16, 3),
            "0123....|89ab....",
            "012.....|........",
            id="Box16, 3: ring 0 of equals",
        ),
        pytest.param(
            a_job(BOX16, 8),
            "0123456.|89abcdef",
            "........|89abcdef",
            id="Box16, 8: the full ring",
        ),
        pytest.param(
            a_job(BOX16, 16),
            "01234567|89abcdef",
            "01234567|89abcdef",
            id="Box16, 16: ascending",
        ),
        # A3: modules.
        pytest.param(
            a_job(A3, 1),
            "01|.3|45|6.|..|..|..|..",
            "..|.3|..|..|..|..|..|..",
            id="A3, 1: the lowest half-used module",
        ),
        pytest.param(
            a_job(A3, 1),
            "..|23|45|..|..|..|..|..",
            "..|2.|..|..|..|..|..|..",
            id="A3, 1: a whole module where no other is",
        ),
        pytest.param(
            a_job(A3, 2),
            "0.|23|4.|..|..|..|..|..",
            "..|23|..|..|..|..|..|..",
            id="A3, 2: free 0, 2, 3, 4 gives 2, 3",
        ),
        pytest.param(
            a_job(A3, 6),
            "0.|23|4.|67|89|.b|cd|ef",
            "..|23|..|67|89|..|..|..",
            id="A3, 6: the lowest whole modules",
        ),
        pytest.param(
            a_job(A3_PODS, 4),
            "0.|23|..|..|..|ab|cd|ef",
            "..|23|..|..|..|ab|..|..",
            id="A3 in a SuperPoD, 4: as A3",
        ),
        pytest.param(
            a_job(BOX8, 4),
            "0.|23|..|..|..|ab|cd|ef",
            "..|23|..|..|..|ab|..|..",
            id="Box8, 4: as A3",
        ),
        pytest.param(a_job(A3_SMALL, 4), "0.|23|45|67", "..|23|45|..", id="A3 of 8, 4"),
        pytest.param(a_job(A3_SMALL, 1), "01|23|45|.7", "..|..|..|.7", id="A3 of 8, 1"),
        # 300I: cards of four.
        pytest.param(
            a_job(CARDS, 1, strategy="card"),
            "0123|45..|89a.|.d..",
            "....|....|....|.d..",
            id="300I card, 1: 1 free",
        ),
        pytest.param(
            a_job(CARDS, 1, strategy="card"),
            "0123|45..|89a.",
            "....|....|8...",
            id="300I card, 1: 3 before 2",
        ),
        pytest.param(
            a_job(CARDS, 1, strategy="card"),
            "0123|45..",
            "....|4...",
            id="300I card, 1: 2 before 4",
        ),
        pytest.param(
            a_job(CARDS, 2, strategy="card"),
            "0123|456.",
            "....|45..",
            id="300I card, 2: 3 before 4, unlike rings",
        ),
        pytest.param(
            a_job(CARDS, 2, strategy="card"),
            "012.|4.6.",
            "....|4.6.",
            id="300I card, 2: 2 before 3",
        ),
        pytest.param(
            a_job(CARDS, 3, strategy="card"),
            "0123|.567",
            "....|.567",
            id="300I card, 3: 3 before 4",
        ),
        pytest.param(
            a_job(CARDS, 4, strategy="card"),
            "012.|4567|89ab",
            "....|4567|....",
            id="300I card, 4: the lowest full card",
        ),
        pytest.param(
            a_job(CARDS, 6, strategy="chip"),
            "0123|456.|89..|c...",
            "....|456.|89..|c...",
            id="300I chip: cards with 1, then 2, then 3 free (D32)",
        ),
        pytest.param(
            a_job(CARDS, 2, strategy="chip"),
            "0123|45..|89..",
            "....|45..|....",
            id="300I chip: the lower of equal cards",
        ),
        pytest.param(
            a_job(CARDS, 3, strategy="chip"),
            "0123|45..|89..",
            "....|45..|8...",
            id="300I chip: breaks the second of equal cards",
        ),
        pytest.param(
            a_job(CARDS, 8, strategy="chip"),
            "0123|456.|89..|c...",
            "01..|456.|89..|c...",
            id="300I chip: a full card at last",
        ),
        pytest.param(
            a_job(CARDS, 1),
            "0123|456.|89..",
            "....|....|8...",
            id="300I, 1: the tightest card (D42)",
        ),
        pytest.param(
            a_job(CARDS, 2),
            "0123|4...|89a.|c...",
            "....|....|89..|....",
            id="300I, 2: one card before leftovers (D42)",
        ),
        pytest.param(
            a_job(CARDS, 3),
            "01..|45..|8...",
            "01..|....|8...",
            id="300I, 3: no card holds it: leftovers first (D42)",
        ),
        pytest.param(
            a_job(CARDS, 6),
            "0123|456.|89..|c...",
            "....|456.|89..|c...",
            id="300I, 6: more than a card: as chip (D42)",
        ),
        # 300I Duo: cards of two.
        pytest.param(
            a_job(DUO, 1, strategy="card"),
            "01|.3|4.",
            "..|.3|..",
            id="Duo card, 1: half",
        ),
        pytest.param(
            a_job(DUO, 2, strategy="card"),
            "0.|23|45",
            "..|23|..",
            id="Duo card, 2: whole",
        ),
        pytest.param(
            a_job(DUO, 1), "01|.3|4.", "..|.3|..", id="Duo chip, 1: half first"
        ),
        pytest.param(
            a_job(DUO, 2), "0.|2.|45", "..|..|45", id="Duo chip, 2: whole first"
        ),
        pytest.param(
            a_job(DUO, 2), "0.|2.|4.", "0.|2.|..", id="Duo chip, 2: halves help"
        ),
        pytest.param(
            a_job(DUO, 3),
            "01|2.|4.|67",
            "01|2.|..|..",
            id="Duo chip, 3: one half, then whole cards",
        ),
        pytest.param(
            a_job(DUO, 4),
            "0.|23|4.|.7",
            "0.|23|4.|..",
            id="Duo chip, 4: whole cards, then halves (D8)",
        ),
        pytest.param(
            a_job(DUO, 5),
            "0.|23|4.|.7|..|a.",
            "0.|23|4.|.7|..|..",
            id="Duo chip, 5: one half, whole cards, then halves (D8)",
        ),
        pytest.param(
            a_job(DUO, 3), "01|23|45", "01|2.|..", id="Duo chip, 3: splits a whole card"
        ),
        pytest.param(
            a_job(DUO, 1, distributed=True), "01|.3", "..|.3", id="Duo distributed, 1"
        ),
        pytest.param(
            a_job(DUO, 2, distributed=True),
            "0.|2.|45",
            "..|..|45",
            id="Duo distributed, 2: whole",
        ),
        pytest.param(
            a_job(DUO, 3, distributed=True),
            "01|.3|45|6.",
            "01|.3|..|..",
            id="Duo distributed, 3: one half and a whole card",
        ),
        pytest.param(
            a_job(DUO, 3, distributed=True),
            "01|23|45",
            "01|2.|..",
            id="Duo distributed, 3: splits a whole card",
        ),
        pytest.param(
            a_job(DUO, 4, distributed=True),
            "0.|23|45|67",
            "..|23|45|..",
            id="Duo distributed, 4: whole cards in order",
        ),
        pytest.param(
            a_job(DUO, 16),
            "01|23|45|67|89|ab|cd|ef|01|23",
            "01|23|45|67|89|ab|cd|ef|..|..",
            id="Duo: more than 16 free chips is no reason to refuse",
        ),
        # Atlas 350: meshes of four.
        pytest.param(a_job(MESH_8, 1), "0123|.5.7", "....|.5..", id="350, 1: best fit"),
        pytest.param(a_job(MESH_8, 2), "0123|.567", "....|.56.", id="350, 2: best fit"),
        pytest.param(a_job(MESH_8, 3), "0123|4567", "012.|....", id="350, 3: mesh 0"),
        pytest.param(
            a_job(MESH_8, 4), "012.|4567", "....|4567", id="350, 4: full mesh"
        ),
        pytest.param(a_job(MESH_8, 5), "..23|4567", "..23|456.", id="350, 5: lowest"),
        pytest.param(a_job(MESH_8, 8), "0123|4567", "0123|4567", id="350, 8: both"),
        pytest.param(
            a_job(MESH_16, 8),
            "012.|4567|89ab|cdef",
            "....|4567|89ab|....",
            id="350 of 16, 8: the lowest full meshes",
        ),
        pytest.param(
            a_job(MESH_16, 12),
            "0123|4567|.9ab|cdef",
            "0123|4567|....|cdef",
            id="350 of 16, 12: three full meshes",
        ),
        pytest.param(
            a_job(MESH_16, 9),
            ".123|.567|.9ab|.def",
            ".123|.567|.9ab|....",
            id="350 of 16, 9: lowest",
        ),
    ],
)
def test_these_chips_are_taken(job: Job, drawing: str, taken: str) -> None:
    assert given(job, drawing) == chips(taken)


@pytest.mark.parametrize(
    ("job", "drawing", "written"),
    [
        pytest.param(
            a_job(BOX16, 10),
            "01234567|89abcdef",
            (0, 8, 1, 9, 2, 10, 3, 11, 4, 12),
            id="ten: the lowest pairs that face each other",
        ),
        pytest.param(
            a_job(BOX16, 10),
            "0123.567|89ab.def",
            (0, 8, 1, 9, 2, 10, 3, 11, 5, 13),
            id="ten: a pair in use is left out",
        ),
        pytest.param(
            a_job(BOX16, 12),
            ".1234567|8.abcdef",
            (2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15),
            id="twelve: only pairs of which both are free",
        ),
        pytest.param(
            a_job(BOX16, 14),
            "01234567|.9abcdef",
            (1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15),
            id="fourteen: seven pairs",
        ),
        pytest.param(
            a_job(BOX16, 10),
            "012345..|..abcdef",
            (0, 10, 1, 11, 2, 12, 3, 13, 4, 14),
            id="ten: equal halves where too few face each other (D6)",
        ),
        pytest.param(
            a_job(BOX16, 14),
            "0123456.|.9abcdef",
            (0, 9, 1, 10, 2, 11, 3, 12, 4, 13, 5, 14, 6, 15),
            id="fourteen: equal halves where too few face each other (D6)",
        ),
        pytest.param(
            a_job(BOX16, 10, pods=2),
            ".1234567|8.abcdef",
            (1, 8, 2, 10, 3, 11, 4, 12, 5, 13),
            id="several pods of ten: k-th of ring 0 with k-th of ring 1",
        ),
    ],
)
def test_box16_halves_are_written_pair_by_pair(
    job: Job, drawing: str, written: tuple[int, ...]
) -> None:
    assert given(job, drawing) == written


# The vendor's score of a node: (chips asked, its free chips) -> larger is better.
Score = Callable[[int, tuple[int, ...]], int]


def _sizes(free: tuple[int, ...], width: int) -> list[int]:
    found = [0] * (16 // width)
    for chip in free:
        found[chip // width] += 1
    return [size for size in found if size]


def _score_of_rings(asked: int, free: tuple[int, ...]) -> int:
    """module910x8 with all chips healthy."""
    table = RING_MISFITS[asked]
    aff = min(table[size - 1] for size in _sizes(free, 4))
    return 8 * (4 * 8 - aff) + (8 - len(free))


def _score_of_one_group(_asked: int, free: tuple[int, ...]) -> int:
    """module910bx8 with all chips healthy."""
    return 100 * 8 - len(free)


def _score_of_box16(asked: int, free: tuple[int, ...]) -> int:
    """module910bx16 up to eight chips, all chips healthy."""
    table = BEST_FIT_OF_8[asked]
    aff = min(table[size - 1] for size in _sizes(free, 8))
    return 16 * (16 - aff) + (16 - len(free))


def _score_of_meshes(size: int) -> Score:
    """chip4-node8 and chip4-node16."""

    def score(asked: int, free: tuple[int, ...]) -> int:
        left = len(free) - asked
        if asked > 4 and asked % 4:
            return size * (size - left)
        meshes = _sizes(free, 4)
        able = sum(mesh >= min(asked, 4) for mesh in meshes)
        spare = able - max(1, asked // 4)
        return size * size // 4 * (size * size // 4 - (size * spare + left))

    return score


@pytest.mark.parametrize(
    ("product", "asked", "score"),
    [
        *((RING, asked, _score_of_rings) for asked in (1, 2, 4)),
        *((A2, asked, _score_of_one_group) for asked in range(1, 9)),
        *((BOX16, asked, _score_of_box16) for asked in (1, 3, 6, 8)),
        *((MESH_8, asked, _score_of_meshes(8)) for asked in range(1, 9)),
        *((MESH_16, asked, _score_of_meshes(16)) for asked in (1, 2, 3, 4, 5, 8, 12)),
    ],
)
def test_ranks_order_nodes_as_the_vendor_scores_do(
    product: str, asked: int, score: Score
) -> None:
    """Every state of eight chips, every 31st of sixteen."""
    size = PRODUCTS[product].chips
    masks = range(1, 1 << size, 1 if size == 8 else 31)
    drawings = [
        "".join(f"{chip:x}" if mask >> chip & 1 else "." for chip in range(size))
        for mask in masks
    ]
    found = zip(ranks(a_job(product, asked), drawings), drawings, strict=True)
    fitting = [(rank, chips(drawing)) for rank, drawing in found if rank is not None]

    scores = {rank: -score(asked, free) for rank, free in fitting}

    assert fitting
    assert all(scores[rank] == -score(asked, free) for rank, free in fitting)
    assert sorted(scores) == sorted(scores, key=lambda rank: scores[rank])
    assert len({*scores.values()}) == len(scores)


# chip310px2 with ``distributed``: aff by free chips, lower is better.
DUO_EVEN: Final = {
    2: {2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 6, 8: 7},
    4: {4: 1, 5: 2, 6: 3, 7: 4, 8: 5},
    6: {6: 1, 7: 2, 8: 3},
    8: {8: 1},
}
DUO_ODD_WITH_A_HALF_CARD: Final = {
    1: {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7},
    3: {3: 1, 4: 2, 5: 3, 6: 4, 7: 5},
    5: {5: 1, 6: 2, 7: 3},
    7: {7: 1},
}
DUO_ODD_WITHOUT_ONE: Final = {
    1: {2: 9, 4: 10, 6: 11, 8: 12},
    3: {4: 9, 6: 10, 8: 11},
    5: {6: 9, 8: 10},
    7: {8: 9},
}


def _duo(free: int, *, half: bool) -> str:
    """A Duo node of eight cards: whole cards but for two halves, or one if odd."""
    halves = (2 - free % 2) * half
    whole = (free - halves) // 2
    assert 2 * whole + halves == free
    cards = ["01", "23", "45", "67", "89", "ab", "cd", "ef"]
    broken = [card[0] + "." for card in cards[whole : whole + halves]]
    return "|".join([*cards[:whole], *broken, *[".."] * (8 - whole - halves)])


@pytest.mark.parametrize("asked", DUO_EVEN)
def test_duo_distributed_even_orders_nodes_as_the_vendor_table(asked: int) -> None:
    aff = DUO_EVEN[asked]
    drawings = [
        _duo(free, half=free % 2 == 1) for free in sorted(aff, key=aff.__getitem__)
    ]

    assert is_the_order(a_job(DUO, asked, distributed=True), drawings)


@pytest.mark.parametrize("asked", DUO_ODD_WITHOUT_ONE)
@pytest.mark.parametrize("distributed", [True, False])
def test_duo_odd_orders_nodes_as_the_vendor_table(
    asked: int,
    distributed: bool,  # noqa: FBT001
) -> None:
    """Half-used cards first. D8 gives plain chip mode the order of distributed."""
    with_half, without = DUO_ODD_WITH_A_HALF_CARD[asked], DUO_ODD_WITHOUT_ONE[asked]
    by_aff = {aff: _duo(free, half=True) for free, aff in with_half.items()}
    by_aff |= {aff: _duo(free, half=False) for free, aff in without.items()}

    drawings = [by_aff[aff] for aff in sorted(by_aff)]

    assert is_the_order(a_job(DUO, asked, distributed=distributed), drawings)


SEVERAL: Final = {
    RING: (2, "~1~3|4567", "01..|....", ".1.3|...."),
    HALF: (2, "~123", "01..", ".12."),
    CARD_300T: (1, "~1", "0.", "0."),
    A2: (2, "~1~34567", "01......", ".1.3...."),
    BOX16: (8, "~1234567|89abcdef", "01234567|........", "........|89abcdef"),
    A3: (
        2,
        "~1|23|..|..|..|..|..|..",
        "01|..|..|..|..|..|..|..",
        "..|23|..|..|..|..|..|..",
    ),
    BOX8: (
        2,
        "~1|23|..|..|..|..|..|..",
        "01|..|..|..|..|..|..|..",
        "..|23|..|..|..|..|..|..",
    ),
    CARDS: (2, "~123|4567", "01..|....", "01..|...."),
    DUO: (2, "~1|23", "01|..", "01|.."),
    PLAIN: (2, "~123", "01..", "01.."),
    MESH_8: (4, "~123|4567", "0123|....", "....|4567"),
    MESH_16: (4, "~123|4567|....|....", "0123|....|....|....", "....|4567|....|...."),
}
"""Chips asked, a node with network-faulty chips, what one pod and two pods take."""


@pytest.mark.parametrize("product", SEVERAL)
def test_one_pod_takes_network_faulty_chips_as_any_others(product: str) -> None:
    asked, drawing, alone, _several = SEVERAL[product]

    assert given(a_job(product, asked), drawing) == chips(alone)


@pytest.mark.parametrize("product", SEVERAL)
def test_several_pods_avoid_network_faulty_chips_where_the_product_heeds_them(
    product: str,
) -> None:
    asked, drawing, _alone, several = SEVERAL[product]

    assert given(a_job(product, asked, pods=2), drawing) == chips(several)


@pytest.mark.parametrize("product", [RING, HALF, A2, BOX16, A3, BOX8, MESH_8, MESH_16])
def test_several_pods_wait_where_only_network_faulty_chips_are_left(
    product: str,
) -> None:
    size = PRODUCTS[product].chips
    job = a_job(product, size, pods=2)
    sick = "~" + "".join(f"{chip:x}" for chip in range(1, size))

    assert ranks(job, [sick]) == [None]
    assert given(a_job(product, size), sick) is not None


def test_network_faulty_chips_do_not_lower_the_capacity_of_a_node() -> None:
    """Healthy chips are those of the node minus the faulty ones (exact D2)."""
    job = a_job(A2, 2, pods=2)

    assert is_the_order(job, ["~~~~~~67", "01234567", "x123...."])


def test_free_counts_only_what_the_job_may_use() -> None:
    """Two usable chips of eight free ones fit two chips better than three do."""
    assert is_the_order(a_job(A2, 2, pods=2), ["~~~~~~67", "012....."])
    assert is_the_order(a_job(A2, 2), ["012.....", "~~~~~~67"])


WHOLE: Final = {
    RING: "0123|4567",
    HALF: "0123",
    CARD_300T: "01",
    A2: "01234567",
    BOX16: "01234567|89abcdef",
    A3: "01|23|45|67|89|ab|cd|ef",
    A3_PODS: "01|23|45|67|89|ab|cd|ef",
    BOX8: "01|23|45|67|89|ab|cd|ef",
    A3_SMALL: "01|23|45|67",
    CARDS: "0123|4567|89ab",
    DUO: "01|23|45",
    PLAIN: "012345",
    MESH_8: "0123|4567",
    MESH_16: "0123|4567|89ab|cdef",
}


@pytest.mark.parametrize("product", WHOLE)
def test_a_faulty_chip_is_never_given_even_where_it_is_listed_as_free(
    product: str,
) -> None:
    node = a_node("n", product, WHOLE[product])
    sick = Cluster(
        [type(node)("n", node.product, node.chips, node.free, faulty=1, superpod=0)]
    )

    decision = Session(sick).decide(a_job(product, 1))

    assert isinstance(decision, Placed)
    assert decision.placements[0].chips == (1,)


@pytest.mark.parametrize("product", WHOLE)
def test_more_healthy_chips_come_before_everything_but_sub_health(product: str) -> None:
    """The first is fresh, the second one chip short and otherwise a perfect fit."""
    fresh = WHOLE[product]
    perfect = "x1" + "." * (len(fresh.replace("|", "")) - 2)

    assert is_the_order(a_job(product, 1), [fresh, perfect])


@pytest.mark.parametrize("product", WHOLE)
def test_sub_healthy_nodes_come_last_even_after_faulty_ones(product: str) -> None:
    fresh = WHOLE[product]
    chips_ = len(fresh.replace("|", ""))
    nodes = [
        a_node("a", product, "0" + "." * (chips_ - 1), sub_healthy=True),
        a_node("b", product, "x1" + "." * (chips_ - 2)),
        a_node("c", product, fresh),
    ]

    found = node_ranks(Cluster(nodes), request_of(a_job(product, 1))).tolist()

    assert found[2] < found[1] < found[0]


def test_of_sub_healthy_nodes_the_one_with_more_healthy_chips_is_first() -> None:
    nodes = [
        a_node("a", A2, "x1......", sub_healthy=True),
        a_node("b", A2, "01234567", sub_healthy=True),
    ]

    found = node_ranks(Cluster(nodes), request_of(a_job(A2, 1))).tolist()

    assert found[1] < found[0]


def test_drawings_mean_what_they_say() -> None:
    node = a_node("n", A2, "01.x~5..")

    assert (node.free, node.faulty, node.network_faulty) == (
        mask_of([0, 1, 4, 5]),
        mask_of([3]),
        mask_of([4]),
    )
