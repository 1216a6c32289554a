"""Reading a row: does a node fit, how well, and which chips go.

One function reads a row for an array of free masks at once. For products of up to 16
chips it is read once for all masks and kept as a table; a decision is then two
look-ups. Larger nodes have too many masks; their row is read for every way in which
their groups can be filled, which is all that a rank depends on.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Final, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Masks
from ringleaf.model.mask import MAX_CHIPS, chips_of, full_mask
from ringleaf.model.product import Row, Term

TABLE_CHIPS: Final = 16
"""Nodes of up to this many chips are read from a table."""

BASE: Final = MAX_CHIPS + 1
"""Every term of a rank is below this, so terms pack into one integer."""

MAX_RANK: Final = BASE**3
NEVER: Final = -1
"""The packed rank of a mask that does not fit."""

_UNLISTED: Final = 255
_CHUNK: Final = 16
_LOW_CHUNK: Final = (1 << _CHUNK) - 1


class Reading(Struct, frozen=True):
    """A row read for many masks: packed rank (``NEVER`` if it does not fit), chips."""

    rank: Ints
    taken: Masks


def read(row: Row, n_chips: int, usable: Masks) -> Reading:
    """Read *row* for nodes of up to *n_chips* chips whose usable chips are given."""
    columns = _halves(row, usable) if row.halves else _walk(row, n_chips, usable)
    fits, taken, terms = columns
    terms[Term.LEFT] = np.bitwise_count(usable).astype(np.int64) - row.asked
    rank = np.zeros(len(usable), np.int64)
    for term in row.rank_by:
        rank = rank * BASE + terms[term]
    return Reading(np.where(fits, rank, NEVER), np.where(fits, taken, np.uint64(0)))


_Columns = tuple[NDArray[np.bool_], Masks, dict[Term, Ints]]


def _walk(row: Row, n_chips: int, usable: Masks) -> _Columns:
    """Take groups one after the other, each time the one earliest in the walk."""
    groups = _split(usable, n_chips, row.width)
    counts = np.bitwise_count(groups).astype(np.int64)
    every = np.arange(len(usable))
    wanted = np.full(len(usable), row.asked)
    taken = np.zeros(len(usable), np.uint64)
    whole = (counts == row.width).sum(axis=0)
    n_used = np.zeros(len(usable), np.int64)
    position = np.zeros(len(usable), np.int64)
    places = _places(row.first, row.width)[counts]
    served = (places != _UNLISTED).sum(axis=0)
    for turn in range(len(groups)):
        best = places.argmin(axis=0)
        place = places[best, every]
        count = counts[best, every]
        take = np.where(place == _UNLISTED, 0, np.minimum(wanted, count))
        if turn == 0:
            position = place.astype(np.int64)
            places = _places(row.rest, row.width)[counts]
        places[best, every] = _UNLISTED
        shift = (best * row.width).astype(np.uint64)
        taken |= _lowest(groups[best, every], take, row.width) << shift
        wanted -= take
        n_used += take > 0
        whole -= (count == row.width) & (take > 0)
        if not wanted.any():
            break
    terms = {
        Term.POSITION: position,
        Term.WHOLE: whole,
        Term.SPARE: served - n_used,
        Term.HOLDER: np.minimum(position, sum(n >= row.asked for n in row.first)),
    }
    return wanted == 0, taken, terms


def _halves(row: Row, usable: Masks) -> _Columns:
    """Equal parts of two rings, facing each other where the row wants it."""
    width = np.uint64(row.width)
    left, right = _split(usable, 2 * row.width, row.width)
    part = row.asked // 2
    facing = left & right
    pairs = np.bitwise_count(facing).astype(np.int64)
    some = np.minimum(np.bitwise_count(left), np.bitwise_count(right)).astype(np.int64)
    aligned = (pairs >= part) & row.aligned
    take = np.full(len(usable), part)
    low = _lowest(np.where(aligned, facing, left), take, row.width)
    high = _lowest(np.where(aligned, facing, right), take, row.width)
    terms = {
        Term.POSITION: (~aligned & row.aligned).astype(np.int64),
        Term.SPARE: np.where(aligned, pairs, some) - part,
    }
    return some >= part, low | high << width, terms


def _split(usable: Masks, n_chips: int, width: int) -> Masks:
    """The groups of every mask: one line per group, one column per mask."""
    starts = np.arange(0, n_chips, width, dtype=np.uint64)[:, None]
    low = np.uint64((1 << width) - 1)
    return (usable[None, :] >> starts) & low


def _places(walk: tuple[int, ...], width: int) -> NDArray[np.uint8]:
    """Free chips in a group -> place in the walk."""
    places = np.full(width + 1, _UNLISTED, np.uint8)
    for place, free in enumerate(walk):
        places[free] = place
    return places


def _lowest_table() -> Masks:
    """The lowest *k* set bits of a byte: ``table[byte, k]``."""
    table = np.zeros((256, 9), np.uint64)
    for byte in range(256):
        for bit, chip in enumerate(chips_of(byte)):
            table[byte, bit + 1 :] |= np.uint64(1 << chip)
    return table


_LOWEST: Final = _lowest_table()


def _lowest(masks: Masks, count: Ints, width: int) -> Masks:
    """The lowest *count* set bits of each mask, byte by byte."""
    result = np.zeros(len(masks), np.uint64)
    wanted = count.copy()
    for shift in range(0, width, 8):
        byte = (masks >> np.uint64(shift)) & np.uint64(255)
        here = np.minimum(wanted, np.bitwise_count(byte))
        result |= _LOWEST[byte.astype(np.int64), here] << np.uint64(shift)
        wanted -= here
    return result


class RowTable(Protocol):
    """One row, ready for decisions: mask -> rank and chips taken."""

    def ranks(self, usable: Masks) -> Ints:
        """The packed ranks of many masks."""

    def rank(self, usable: int) -> int:
        """The packed rank of one mask."""

    def choose(self, usable: int) -> int:
        """The chips taken from one mask that fits."""

    def pods(self, usable: Masks) -> Ints:
        """How many pods fit into each of many masks, one after the other."""


class MaskTable:
    """Small nodes: the row read once for every mask there is."""

    def __init__(self, row: Row, n_chips: int) -> None:
        self._table = read(row, n_chips, np.arange(1 << n_chips, dtype=np.uint64))
        self._pods: Ints | None = None
        self.rank: Callable[[int], int] = self._table.rank.item
        self.choose: Callable[[int], int] = self._table.taken.item

    def ranks(self, usable: Masks) -> Ints:
        """The packed ranks of many masks."""
        return self._table.rank[usable]

    def pods(self, usable: Masks) -> Ints:
        """How many pods fit into each of many masks, one after the other."""
        if self._pods is None:
            masks = np.arange(len(self._table.rank), dtype=np.uint64)
            self._pods = _pods_in(masks, self.ranks, self._table.taken.__getitem__)
        return self._pods[usable]


class CountTable:
    """Large nodes: the row read once for every way groups can be filled.

    A rank depends on how many groups have how many free chips, not on which groups
    they are. One mask stands for all masks of the same *fill*; groups of the same
    count correspond in the order of their ids, because a row takes the lowest first.
    """

    def __init__(self, row: Row, n_chips: int) -> None:
        self._row, self._n_chips = row, n_chips
        self._width = row.width
        self._n_groups = n_chips // row.width
        self._fills = fills_of(row.width, self._n_groups)
        self._known: dict[int, dict[int, list[int]]] = {}
        stand_ins = np.array(list(self._fills.stand_ins.values()), np.uint64)
        reading = read(row, n_chips, stand_ins)
        size = 1 + max(self._fills.stand_ins)
        self._ranks = np.full(size, NEVER, np.int64)
        self._taken = np.zeros(size, np.uint64)
        fills = np.array(list(self._fills.stand_ins))
        self._ranks[fills] = reading.rank
        self._taken[fills] = reading.taken

    def ranks(self, usable: Masks) -> Ints:
        """The packed ranks of many masks."""
        return self._ranks[self._fills.of_many(usable)]

    def rank(self, usable: int) -> int:
        """The packed rank of one mask."""
        return self._ranks.item(self._fills.of(usable))

    def choose(self, usable: int) -> int:
        """The chips taken from one mask that fits."""
        takes = dict(self._takes(self._fills.of(usable)))
        taken = 0
        for number, group in enumerate(self._parts(usable)):
            count = group.bit_count()
            if not takes.get(count):
                continue
            keep, *takes[count] = takes[count]
            for _chip in range(count - keep):
                group ^= 1 << group.bit_length() - 1  # noqa: PLW2901 - the highest goes
            taken |= group << number * self._width
        return taken

    def pods(self, usable: Masks) -> Ints:
        """How many pods fit into each of many masks, one after the other."""
        masks, which = np.unique(usable, return_inverse=True)
        found = _pods_in(
            masks, self.ranks, lambda each: read(self._row, self._n_chips, each).taken
        )
        return found[which]

    def _takes(self, fill: int) -> dict[int, list[int]]:
        """Free chips in a group -> how many the first, second, ... such group gives."""
        takes = self._known.get(fill)
        if takes is None:
            groups = self._parts(self._fills.stand_ins[fill])
            parts = self._parts(self._taken.item(fill))
            takes = {}
            for group, part in zip(groups, parts, strict=True):
                if part:
                    takes.setdefault(group.bit_count(), []).append(part.bit_count())
            self._known[fill] = takes
        return takes

    def _parts(self, mask: int) -> list[int]:
        width, low = self._width, full_mask(self._width)
        return [mask >> at & low for at in range(0, width * self._n_groups, width)]


def _pods_in(
    masks: Masks, ranks: Callable[[Masks], Ints], taken: Callable[[Masks], Masks]
) -> Ints:
    """How many pods fit into each of *masks*, by their ranks and what each takes."""
    pods = np.zeros(len(masks), np.int64)
    while (fits := ranks(masks) != NEVER).any():
        pods += fits
        masks = np.where(fits, masks & ~taken(masks), masks)
    return pods


class Fills:
    """The ways in which equal groups can be filled, numbered.

    The number of a fill adds up over its groups, so it is the sum of four look-ups,
    one for every 16 chips.
    """

    def __init__(self, width: int, n_groups: int) -> None:
        # Counts of groups with 1, 2, ... free chips as digits; one group: its count.
        base = n_groups + 1
        one = n_groups == 1
        weights = [0, *(n if one else base ** (n - 1) for n in range(1, width + 1))]
        step = min(width, _CHUNK)
        low = full_mask(step)
        weigh = np.array(weights[: step + 1], np.int64)
        chunk = np.arange(1 << _CHUNK)
        self._chunk = np.zeros(1 << _CHUNK, np.int64)
        for at in range(0, _CHUNK, step):
            self._chunk += weigh[np.bitwise_count(chunk >> at & low)]
        self._listed: list[int] = self._chunk.tolist()
        self.stand_ins = {
            sum(weights[count] for count in fill): sum(
                full_mask(count) << number * width for number, count in enumerate(fill)
            )
            for fill in combinations_with_replacement(range(width + 1), n_groups)
        }

    def of(self, mask: int) -> int:
        """The number of one mask's fill."""
        listed, fill = self._listed, 0
        while mask:
            fill += listed[mask & _LOW_CHUNK]
            mask >>= _CHUNK
        return fill

    def of_many(self, masks: Masks) -> Ints:
        """The numbers of many masks' fills."""
        fill = np.zeros(len(masks), np.int64)
        for at in range(0, MAX_CHIPS, _CHUNK):
            fill += self._chunk[(masks >> np.uint64(at)) & np.uint64(_LOW_CHUNK)]
        return fill


@lru_cache(maxsize=16)
def fills_of(width: int, n_groups: int) -> Fills:
    """The fills of one wiring, made once."""
    return Fills(width, n_groups)


@lru_cache(maxsize=256)
def table_of(row: Row, n_chips: int) -> RowTable:
    """The table of *row*, made once."""
    small = n_chips <= TABLE_CHIPS
    return MaskTable(row, n_chips) if small else CountTable(row, n_chips)


def rank_terms(row: Row, rank: int) -> dict[Term, int]:
    """A packed rank, taken apart."""
    apart: dict[Term, int] = {}
    for term in reversed(row.rank_by):
        rank, apart[term] = divmod(rank, BASE)
    return apart


def written_order(row: Row, taken: int) -> tuple[int, ...]:
    """The chips as they are written down: ascending, of halves pair by pair.

    >>> from ringleaf.policies.rules import halves_row
    >>> written_order(halves_row(10, aligned=True), 0b11111_00011111)
    (0, 8, 1, 9, 2, 10, 3, 11, 4, 12)
    """
    chips = chips_of(taken)
    if not row.halves:
        return chips
    part = len(chips) // 2
    pairs = zip(chips[:part], chips[part:], strict=True)
    return tuple(chip for pair in pairs for chip in pair)
