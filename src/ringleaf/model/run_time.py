"""How long a job is predicted to run, and what makes jobs similar.

Running times are rounded up to a grid whose steps are a factor of sqrt(2) apart: jobs
with predictions on the grid fall into few equivalence classes, and whole numbers
compare alike on every machine.
"""

import re
from bisect import bisect_left
from enum import StrEnum
from math import isqrt
from typing import Final

from msgspec import Struct

TOP: Final = 60
"""The last step of the grid: 34 years."""


def _on_grid(step: int) -> int:
    """The least whole number of seconds that is not below sqrt(2) ** *step*."""
    return isqrt((1 << step) - 1) + 1


GRID: Final = tuple(_on_grid(step) for step in range(TOP + 1))
"""Step -> seconds: 1, 2, 2, 3, 4, 6, 8, 12, 16, 23, 32 and so on."""


def step_of(seconds: float) -> int:
    """The first step of the grid that is at least *seconds*.

    >>> [(GRID[step_of(s)]) for s in (0, 1, 1.5, 5, 3600, 1e12)]
    [1, 1, 2, 6, 4096, 1073741824]
    """
    return min(bisect_left(GRID, seconds), TOP)


class Origin(Struct, frozen=True):
    """Where a job comes from.

    Args:
        user: Its owner: a person, or the namespace.
        name: Its name without its number.
        done_chips: All chips that those of its pods had that have ended well, if it
            is not the job itself that knows them.

    """

    user: str = ""
    name: str = ""
    done_chips: int = 0


NO_ORIGIN: Final = Origin()

MOST_NAME: Final = 253
"""Characters of a name that count: as many as names have in Kubernetes."""
_UID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UID_LENGTH: Final = 36
_SEPARATORS: Final = "-_./ "
_DIGITS: Final = "0123456789"
_GENERATED: Final = re.compile(
    r"[bcdfghjklmnpqrstvwxz2456789]{5}"
    r"|(?=.*[0-9])[bcdfghjklmnpqrstvwxz2456789]{8,10}"
)
"""What Kubernetes appends to names of pods and of their owners: no words, no vowels."""
_HASH: Final = re.compile(r"(?=.*[0-9])[0-9a-f]{7,64}")


def base_name(name: str) -> str:
    """*name* without the numbers and hashes at its end.

    >>> [base_name(f"llama-7b-{end}") for end in ("00017", "3.2", "x7k2p", "9f86d08")]
    ['llama-7b', 'llama-7b', 'llama-7b', 'llama-7b']
    >>> base_name("train17"), base_name("eval-1b4e28ba-2fa1-11d2-883f-0016d3cca427")
    ('train', 'eval')
    >>> base_name("train-v100"), base_name("2024")
    ('train-v', '')
    """
    left = name[:MOST_NAME].rstrip(_SEPARATORS)
    while left:
        cut = 1 + max(left.rfind(sign) for sign in _SEPARATORS)
        last = left[cut:]
        if _UID.fullmatch(left[-_UID_LENGTH:]):
            left = left[:-_UID_LENGTH]
        elif cut and (_GENERATED.fullmatch(last) or _HASH.fullmatch(last)):
            left = left[:cut]
        elif last[-1] in _DIGITS:
            left = left.rstrip(_DIGITS)
        else:
            break
        left = left.rstrip(_SEPARATORS)
    return left


class Similarity(StrEnum):
    """What jobs share by which a running time is predicted, the closest first."""

    NAME = "name"
    """Queue, user, name without number, chips."""
    USER_CHIPS = "user-chips"
    """Queue, user, chips."""
    USER = "user"
    """Queue, user."""
    CHIPS = "chips"
    """Queue, chips."""


class RunTime(Struct, frozen=True):
    """How long a job is predicted to run.

    Args:
        median_s: One in two similar jobs ran no longer.
        most_s: Nine in ten similar jobs ran no longer.
        n_runs: How many similar jobs were counted.
        by: What they share with it.

    """

    median_s: int
    most_s: int
    n_runs: int = 0
    by: Similarity = Similarity.NAME

    @property
    def key(self) -> "RunTime":
        """What of it a pending job is treated by: the longest time alone."""
        return RunTime(0, self.most_s)

    def ends_at(self, started: float, now: float) -> float:
        """When a job that *started* is expected to end.

        After the median; when it has run longer, after the longest time; then after
        twice as long, again and again.

        >>> found = RunTime(median_s=8, most_s=32)
        >>> [found.ends_at(100.0, now) for now in (104, 108, 131, 132, 250)]
        [108.0, 132.0, 132.0, 164.0, 356.0]
        """
        lasts_s = self.median_s
        while now >= started + lasts_s:
            lasts_s = 2 * lasts_s if lasts_s >= self.most_s else self.most_s
        return started + lasts_s
