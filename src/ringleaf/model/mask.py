"""Chips of one node as the bits of an integer: chip 0 is bit 0.

A node has at most 64 chips, so a mask fits one ``uint64`` of a numpy array. The
scalar functions here work on plain Python integers.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

MAX_CHIPS: Final = 64


def mask_of(chips: Iterable[int]) -> int:
    """The mask in which exactly *chips* are set.

    >>> bin(mask_of([0, 1, 4]))
    '0b10011'
    """
    mask = 0
    for chip in chips:
        mask |= 1 << chip
    return mask


@lru_cache(maxsize=1 << 16)
def chips_of(mask: int) -> tuple[int, ...]:
    """The chips set in *mask*, ascending.

    >>> chips_of(0b10011)
    (0, 1, 4)
    """
    chips = []
    while mask:
        lowest = mask & -mask
        chips.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(chips)


def full_mask(n_chips: int) -> int:
    """The mask of a node whose *n_chips* chips are all set.

    >>> full_mask(4)
    15
    """
    return (1 << n_chips) - 1


def runs_of(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending *numbers*, those that follow each other together.

    >>> runs_of([0, 1, 2, 8, 10, 11])
    [[0, 1, 2], [8], [10, 11]]
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs
