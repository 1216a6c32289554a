"""The tables of seeds 000 and 004, written out as they stand there."""

import re
from collections.abc import Iterator
from itertools import chain, combinations_with_replacement
from typing import Final, NamedTuple

import pytest

from ringleaf.framework.session import Session
from ringleaf.model.decision import Placed
from ringleaf.model.product import ProductMode
from ringleaf.policies.products import PRODUCTS, misfit
from tests.chips import a_cluster, a_job, given, is_the_order, ranks

# Seed 004, scenario classification: chips asked -> groups A to D. Left of ~ the ring
# that is taken from, right of it what the other ring may have, best first.
SCENARIOS: Final = {
    1: ("1~[0,1,2,3,4]", "3~[0,2,3,4]", "2~[0,2,4]", "4~[0,4]"),
    2: ("2~[0,1,2,3,4]", "4~[0,1,3,4]", "3~[0,1]"),
    4: ("4~[0,1,2,3,4]",),
}

# What the table leaves out, and decision D4 puts last in group C.
LEFT_OUT: Final = {1: (), 2: ("3~[3]",), 4: ()}

# Seed 000: affScoreList[i][j], i + 1 chips asked, j + 1 chips available; 8 is never.
# Rows [3] and [5] stand in the seed, the others follow "similarly" (D5).
AFF_SCORE_LIST: Final = (
    (0, 1, 2, 3, 4, 5, 6, 7),
    (8, 0, 1, 2, 3, 4, 5, 6),
    (8, 8, 0, 1, 2, 3, 4, 5),
    (8, 8, 8, 0, 1, 2, 3, 4),
    (8, 8, 8, 8, 0, 1, 2, 3),
    (8, 8, 8, 8, 8, 0, 1, 2),
    (8, 8, 8, 8, 8, 8, 0, 1),
    (8, 8, 8, 8, 8, 8, 8, 0),
)


class Cell(NamedTuple):
    """One node state of the scenario table."""

    asked: int
    group: str
    ring: int
    other: int

    def __str__(self) -> str:
        return f"{self.asked}: {self.group} {self.ring}~{self.other}"


def cells(asked: int) -> Iterator[Cell]:
    """The states of one row of the table, best first."""
    groups = zip("ABCD", SCENARIOS[asked], strict=False)
    texts = [*groups, *(("C", text) for text in LEFT_OUT[asked])]
    for group, text in texts:
        ring, _, others = text.partition("~")
        for other in re.findall(r"\d", others):
            yield Cell(asked, group, int(ring), int(other))


EVERY_CELL: Final = [cell for asked in SCENARIOS for cell in cells(asked)]


def drawn(left: int, right: int, *, bad: int = 0) -> str | None:
    """A node with so many chips free in each ring, *bad* of the others faulty.

    Chips in use come first in a ring, so that the lowest free chip is not the lowest
    chip. None where the node cannot have so many bad chips.
    """
    in_use = [*range(4 - left), *range(4, 8 - right)]
    if len(in_use) < bad:
        return None
    marks = [str(chip) for chip in range(8)]
    for chip in in_use:
        marks[chip] = "."
    for chip in in_use[:bad]:
        marks[chip] = "x"
    return "".join(marks[:4]) + "|" + "".join(marks[4:])


def drawn_cells(asked: int, *, bad: int = 0) -> list[str]:
    """The nodes of one row, best first; those that *bad* faulty chips allow."""
    every = (drawn(cell.ring, cell.other, bad=bad) for cell in cells(asked))
    return [drawing for drawing in every if drawing is not None]


@pytest.mark.parametrize("asked", SCENARIOS)
def test_nodes_come_in_the_order_of_the_scenario_table(asked: int) -> None:
    assert is_the_order(a_job("atlas-800-9000", asked), drawn_cells(asked))


@pytest.mark.parametrize(("asked", "n_cells"), [(1, 14), (2, 12), (4, 5)])
def test_the_table_and_d4_cover_every_state_that_fits(asked: int, n_cells: int) -> None:
    in_table = {tuple(sorted((cell.ring, cell.other))) for cell in cells(asked)}
    fitting = {
        state
        for state in combinations_with_replacement(range(5), 2)
        if ranks(a_job("atlas-800-9000", asked), [drawn(*state) or ""]) != [None]
    }

    assert in_table == fitting
    assert len(in_table) == len(list(cells(asked))) == n_cells


@pytest.mark.parametrize("asked", SCENARIOS)
@pytest.mark.parametrize("mirrored", [False, True], ids=["as drawn", "rings swapped"])
def test_which_of_the_rings_it_is_does_not_matter(
    asked: int,
    mirrored: bool,  # noqa: FBT001
) -> None:
    job = a_job("atlas-800-9000", asked)
    both = [
        (drawn(cell.ring, cell.other) or "", drawn(cell.other, cell.ring) or "")
        for cell in cells(asked)
    ]

    assert is_the_order(job, [pair[mirrored] for pair in both])
    for pair in both:
        one, other = ranks(job, pair)
        assert one == other


@pytest.mark.parametrize("cell", EVERY_CELL, ids=str)
def test_the_lowest_chips_of_the_ring_left_of_the_tilde_are_taken(cell: Cell) -> None:
    job = a_job("atlas-800-9000", cell.asked)
    low, high = drawn(cell.ring, cell.other), drawn(cell.other, cell.ring)
    assert low is not None
    assert high is not None

    first = tuple(range(4 - cell.ring, 4 - cell.ring + cell.asked))
    second = tuple(range(8 - cell.ring, 8 - cell.ring + cell.asked))
    tied = cell.ring == cell.other
    assert given(job, low) == first
    assert given(job, high) == (first if tied else second)


@pytest.mark.parametrize("asked", SCENARIOS)
def test_capacity_8_comes_before_7_and_7_before_6_whatever_the_cell(asked: int) -> None:
    """The table's last column, "Repeat from A to D", and lower capacities in turn."""
    in_turn = [drawn_cells(asked, bad=bad) for bad in range(5)]

    assert len(in_turn[1]) == len(in_turn[0]) - 1  # not 4~4
    assert is_the_order(a_job("atlas-800-9000", asked), [*chain(*in_turn)])


@pytest.mark.parametrize("asked", SCENARIOS)
def test_the_worst_node_of_capacity_8_beats_the_best_of_capacity_7(asked: int) -> None:
    worst, best = drawn_cells(asked)[-1], drawn_cells(asked, bad=1)[0]

    assert is_the_order(a_job("atlas-800-9000", asked), [worst, best])


def test_eight_chips_are_all_the_eight_of_a_node() -> None:
    job = a_job("atlas-800-9000", 8)

    assert given(job, "0123|4567") == (0, 1, 2, 3, 4, 5, 6, 7)
    assert ranks(job, ["0123|456.", "0123|456x", ".123|4567"]) == [None, None, None]


def test_eight_times_n_chips_are_all_the_eight_of_n_nodes() -> None:
    cluster = a_cluster("atlas-800-9000", ["0123|4567", "0123|456.", "0123|4567"])

    decision = Session(cluster).decide(a_job("atlas-800-9000", 8, pods=2))

    assert isinstance(decision, Placed)
    assert [(p.node, p.chips) for p in decision.placements] == [
        ("n00001", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("n00003", (0, 1, 2, 3, 4, 5, 6, 7)),
    ]


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        pytest.param(1, (1, 3, 2, 4), id="one: 1, then 3, 2, 4"),
        pytest.param(2, (2, 4, 3), id="two: 2, then 4, 3"),
        pytest.param(4, (4,), id="four: 4 must be selected"),
    ],
)
def test_policy_1_hccs_affinity(asked: int, order: tuple[int, ...]) -> None:
    row = PRODUCTS["atlas-800-9000"].rules[ProductMode.ANY][asked]

    fitting = [free for free in range(1, 5) if misfit(row, free) < 4]

    assert sorted(fitting, key=lambda free: misfit(row, free)) == list(order)


def test_policy_2_a_node_with_a_bad_chip_is_used_when_there_is_no_other() -> None:
    job = a_job("atlas-800-9000", 4)

    assert given(job, "x123|4567") == (4, 5, 6, 7)
    assert is_the_order(job, ["0123|4567", "x123|4567", "xx23|4567", "xxxx|4567"])


@pytest.mark.parametrize(
    ("asked", "used", "fresh"),
    [
        pytest.param(1, "0...|....", "0123|4567", id="one"),
        pytest.param(2, "01..|....", "0123|4567", id="two"),
        pytest.param(4, "0123|....", "0123|4567", id="four"),
    ],
)
def test_policy_3_nodes_in_use_before_fresh_ones(
    asked: int, used: str, fresh: str
) -> None:
    assert is_the_order(a_job("atlas-800-9000", asked), [used, fresh])


def test_the_predicate_example_of_two_chips_and_one_free_in_each_ring() -> None:
    assert ranks(a_job("atlas-800-9000", 2), ["0...|4..."]) == [None]


def test_seed_000_node_a_with_one_chip_before_node_b_with_two_and_three() -> None:
    assert is_the_order(a_job("atlas-800-9000", 1), ["0...|....", "01..|456."])


@pytest.mark.parametrize("asked", range(1, 9))
def test_seed_000_aff_score_list(asked: int) -> None:
    row = PRODUCTS["atlas-800t-a2"].rules[ProductMode.ANY][asked]

    assert tuple(misfit(row, free) for free in range(1, 9)) == AFF_SCORE_LIST[asked - 1]


@pytest.mark.parametrize("asked", range(1, 9))
def test_seed_000_nodes_come_in_the_order_of_aff_score_list(asked: int) -> None:
    """A misfit of 0 is best; 8 means that the node does not meet the requirements."""
    nodes = ["." * (8 - free) + "01234567"[8 - free :] for free in range(1, 9)]
    scores = AFF_SCORE_LIST[asked - 1]
    fitting = [node for node, score in zip(nodes, scores, strict=True) if score < 8]

    job = a_job("atlas-800t-a2", asked)

    assert is_the_order(job, fitting)
    assert [rank is None for rank in ranks(job, nodes)] == [s == 8 for s in scores]
