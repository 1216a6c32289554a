"""Reading a row: does a node fit, how well, and which chips go.

One function reads a row for an array of free masks at once. For products of up to 16
chips it is read once for all 65,536 masks and kept as a table; a decision is then two
look-ups. Larger nodes are read mask by mask, or all nodes in one call.
"""

from functools import lru_cache
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.cluster import Masks
from ringleaf.model.mask import MAX_CHIPS, chips_of
from ringleaf.model.product import Row, Term

Ints = NDArray[np.int64]

TABLE_CHIPS: Final = 16
"""Nodes of up to this many chips are read from a table."""

BASE: Final = MAX_CHIPS + 1
"""Every term of a rank is below this, so terms pack into one integer."""

MAX_RANK: Final = BASE**3
NEVER: Final = -1
"""The packed rank of a mask that does not fit."""

REMEMBERED: Final = 1 << 14
"""Masks of larger nodes a table remembers before it forgets them all."""

_UNLISTED: Final = 255


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


class RowTable:
    """One row, ready for decisions: mask -> rank and chips taken."""

    def __init__(self, row: Row, n_chips: int) -> None:
        self.row = row
        self.n_chips = n_chips
        self._table: Reading | None = None
        self._read: dict[int, tuple[int, int]] = {}
        if n_chips <= TABLE_CHIPS:
            every_mask = np.arange(1 << n_chips, dtype=np.uint64)
            self._table = read(row, n_chips, every_mask)

    def ranks(self, usable: Masks) -> Ints:
        """The packed ranks of many masks."""
        if self._table is not None:
            return self._table.rank[usable]
        return read(self.row, self.n_chips, usable).rank

    def taken_many(self, usable: Masks) -> Masks:
        """The chips taken from many masks."""
        if self._table is not None:
            return self._table.taken[usable]
        return read(self.row, self.n_chips, usable).taken

    def rank(self, usable: int) -> int:
        """The packed rank of one mask."""
        if self._table is not None:
            return self._table.rank.item(usable)
        return self._read_one(usable)[0]

    def taken(self, usable: int) -> int:
        """The chips taken from one mask that fits."""
        if self._table is not None:
            return self._table.taken.item(usable)
        return self._read_one(usable)[1]

    def _read_one(self, usable: int) -> tuple[int, int]:
        known = self._read.get(usable)
        if known is None:
            reading = read(self.row, self.n_chips, np.array([usable], np.uint64))
            known = reading.rank.item(0), reading.taken.item(0)
            if len(self._read) >= REMEMBERED:
                self._read.clear()
            self._read[usable] = known
        return known

    def terms(self, rank: int) -> dict[Term, int]:
        """A packed rank, taken apart."""
        apart: dict[Term, int] = {}
        for term in reversed(self.row.rank_by):
            rank, apart[term] = divmod(rank, BASE)
        return apart


@lru_cache(maxsize=256)
def table_of(row: Row, n_chips: int) -> RowTable:
    """The table of *row*, made once."""
    return RowTable(row, n_chips)


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
