"""How chips are taken from the groups of a node, as tables.

The problem in hardware terms: chips of one ring, card, module or mesh talk to each
other fast, chips of different ones slowly or not at all. A pod therefore takes its
chips from as few groups as the hardware allows, and from the group that leaves the
fewest fragments behind.

A *walk* lists the numbers of free chips a group may have, best first. ``(1, 3, 2, 4)``
reads: take from a group with one free chip; failing that three, two, four. A number
that is not listed is never used, so a walk is at once the rule of feasibility, the
order of preference and the choice of chips.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ringleaf.model.product import Row, Rule, Term, Walk

POSITION: Final = Term.POSITION
WHOLE: Final = Term.WHOLE
SPARE: Final = Term.SPARE
LEFT: Final = Term.LEFT
HOLDER: Final = Term.HOLDER

# Exact fit first; then the odd leftover before breaking a pair, a pair before a fresh
# ring: what remains is even where it can be (policy 4, "even number priority").
# Eight chips are two full rings.
# Source: Ascend 910 affinity policy 1, "HCCS affinity scheduling", and scenarios 1-5.
RING_OF_4: Final[Mapping[int, Walk]] = {
    1: (1, 3, 2, 4),
    2: (2, 4, 3),
    4: (4,),
    8: (4,),
}

# One ring of four that is the whole node: best fit.
# Source: half-populated Atlas 800, vendor behaviour ("3 illegal").
HALF_NODE: Final[Mapping[int, Walk]] = {
    1: (1, 2, 3, 4),
    2: (2, 3, 4),
    4: (4,),
}

# Cards of four that are not linked to each other: a pod stays on one card. Two chips
# go to a card with three before a fresh one, unlike on rings of four.
# Source: affinity table 1, 300I row; order of the vendor's card strategy.
CARD_OF_4: Final[Mapping[int, Walk]] = {
    1: (1, 3, 2, 4),
    2: (2, 3, 4),
    3: (3, 4),
    4: (4,),
}

# Use up fragments: the fullest cards first, across cards (decision D32).
LEFTOVERS_OF_4: Final[Walk] = (1, 2, 3, 4)

# Two cards on PCIe that are one group for us, and a Duo card: best fit.
PAIR: Final[Mapping[int, Walk]] = {
    1: (1, 2),
    2: (2,),
}

# A module is two chips: one chip finishes a half-used module first, everything else
# takes whole modules (decision D7).
HALF_MODULE_FIRST: Final[Walk] = (1, 2)
WHOLE_MODULES: Final[Walk] = (2,)

# Duo cards: an odd request takes one chip of a half-used card first, then whole cards.
# Source: affinity table 1, Duo row. Plain chip mode is the same, but where whole cards
# do not suffice half-used ones help out (decision D8).
HALF_CARD_FIRST: Final[Walk] = (1, 2)
WHOLE_CARDS: Final[Walk] = (2,)
WHOLE_CARDS_THEN_HALVES: Final[Walk] = (2, 1)

# Box16: more than one ring's worth goes evenly over both rings (decision D6).
# Source: affinity table 1, Box16 row.
BOX16_HALVES: Final[tuple[int, ...]] = (10, 12, 14)
BOX16_RING: Final = 8
BOX16_NODE: Final = 16

MESH: Final = 4


def best_fit(asked: int, width: int) -> Walk:
    """Exactly enough first, then one more, and so on.

    This is the guide's ``affScoreList[asked - 1]``: the position of a free count in
    the walk is its misfit, a count that is not listed is never used (decision D5).

    >>> best_fit(6, 8)
    (6, 7, 8)
    """
    return tuple(range(asked, width + 1))


def one_row(
    asked: int,
    width: int,
    first: Walk,
    *rank_by: Term,
    rest: Walk | None = None,
) -> Row:
    """A row whose further groups follow the same walk unless *rest* says otherwise."""
    return Row(asked, width, first, first if rest is None else rest, rank_by)


def rule_of(rows: Iterable[Row]) -> Rule:
    """The rule that consists of *rows*."""
    return {row.asked: row for row in rows}


def table_rule(table: Mapping[int, Walk], width: int, *rank_by: Term) -> Rule:
    """The rule of a written-out table of walks."""
    return rule_of(one_row(n, width, walk, *rank_by) for n, walk in table.items())


def flat_rule(chips: int) -> Rule:
    """The node is one group: any chips, the lowest first, nodes by best fit."""
    return rule_of(
        one_row(n, chips, best_fit(n, chips), LEFT) for n in range(1, chips + 1)
    )


def halves_row(asked: int, *, aligned: bool) -> Row:
    """Equal halves of both rings; of a single pod, chips that face each other."""
    return Row(
        asked,
        BOX16_RING,
        (),
        (),
        (POSITION, SPARE, LEFT),
        halves=True,
        aligned=aligned,
    )


def box16_rule(*, aligned: bool) -> Rule:
    """One ring up to eight chips, equal halves above, both rings for sixteen."""
    one_ring = (
        one_row(n, BOX16_RING, best_fit(n, BOX16_RING), POSITION, LEFT)
        for n in range(1, BOX16_RING + 1)
    )
    halves = (halves_row(n, aligned=aligned) for n in BOX16_HALVES)
    whole = one_row(BOX16_NODE, BOX16_RING, (BOX16_RING,), LEFT)
    return rule_of((*one_ring, *halves, whole))


def module_rule(modules: int) -> Rule:
    """One chip of a half-used module first; even requests take whole modules."""
    even = (
        one_row(2 * taken, 2, WHOLE_MODULES, POSITION, WHOLE, LEFT)
        for taken in range(1, modules + 1)
    )
    return rule_of((one_row(1, 2, HALF_MODULE_FIRST, POSITION, WHOLE, LEFT), *even))


def leftovers_rule(chips: int) -> Rule:
    """Chips of the fullest cards first, across cards; nodes by best fit."""
    return rule_of(one_row(n, 4, LEFTOVERS_OF_4, LEFT) for n in range(1, chips + 1))


def one_card_rule(chips: int) -> Rule:
    """One card where a card holds the request, the tightest; else leftovers (D42).

    >>> row = one_card_rule(64)[3]
    >>> row.first, row.rest
    ((3, 4, 1, 2), (1, 2, 3, 4))
    """
    holds = (
        one_row(n, 4, _tightest(n), HOLDER, LEFT, rest=LEFTOVERS_OF_4)
        for n in LEFTOVERS_OF_4
    )
    return {**leftovers_rule(chips), **rule_of(holds)}


def _tightest(asked: int) -> Walk:
    """Cards that hold the request, the tightest first, then the others."""
    return (*best_fit(asked, 4), *LEFTOVERS_OF_4[: asked - 1])


def duo_rule(chips: int, rest: Walk) -> Rule:
    """Whole cards, an odd chip from a half-used card; *rest* says what else helps."""
    return rule_of(
        one_row(n, 2, HALF_CARD_FIRST, POSITION, LEFT, rest=rest)
        if n % 2
        else one_row(n, 2, rest, LEFT)
        for n in range(1, chips + 1)
    )


def mesh_rule(chips: int) -> Rule:
    """Up to three chips inside one mesh, multiples of four as whole meshes.

    NB: other requests (5, 6, 7, 9, ...) have no affinity: the node is one group.
    """
    rows = []
    for n in range(1, chips + 1):
        if n < MESH:
            rows.append(one_row(n, MESH, best_fit(n, MESH), SPARE, LEFT))
        elif n % MESH == 0:
            rows.append(one_row(n, MESH, (MESH,), SPARE, LEFT))
        else:
            rows.append(one_row(n, chips, best_fit(n, chips), LEFT))
    return rule_of(rows)
