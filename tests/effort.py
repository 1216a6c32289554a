"""How much the tests try: ``RINGLEAF_EFFORT`` is quick, test or long.

Properties draw as many examples as ``examples`` allows. ``make quick`` and
``make test`` draw the same examples in every run; ``make test-long`` draws new ones.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

EFFORT: Final = "RINGLEAF_EFFORT"


class Effort(StrEnum):
    """What a run of the tests is for."""

    QUICK = "quick"
    """Every save: no control plane, few examples."""
    TEST = "test"
    """Every commit and CI: everything, with a quarter of the examples."""
    LONG = "long"
    """Before an issue is resolved: all examples, and tests that take minutes."""


SHARES: Final = {Effort.QUICK: 0.05, Effort.TEST: 0.25, Effort.LONG: 1.0}
"""The share of its examples that a property draws."""

FEWEST: Final = 5


def effort() -> Effort:
    """The effort of this process; raises ``ValueError`` where it is misspelt."""
    said = os.environ.get(EFFORT) or Effort.TEST
    if said not in list(Effort):
        raise ValueError(f"{EFFORT} is {said!r}, want quick, test or long")
    return Effort(said)


def examples(n: int) -> int:
    """How many of *n* examples this run draws."""
    return max(min(n, FEWEST), round(n * SHARES[effort()]))


def assert_reached(counts: Mapping[str, int], *wanted: str, times: int = 1) -> None:
    """Assert that a property counted each outcome so many times.

    A quick run draws too few examples to tell, and asserts nothing.
    """
    if effort() is Effort.QUICK:
        return
    rare = {key: counts.get(key, 0) for key in wanted if counts.get(key, 0) < times}
    assert not rare, f"{rare} below {times}, of {dict(counts)}"
