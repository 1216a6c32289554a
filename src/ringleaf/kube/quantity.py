"""Amounts as Kubernetes writes them: ``500m``, ``1.5``, ``64Gi``, ``1e3``.

Read into whole thousandths (milli), as the core counts. What is finer is rounded away
from zero, as Kubernetes does, so that nothing is asked for free.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from ringleaf.model.topology import quoted

MOST: Final = (1 << 63) - 1
"""The largest amount, in units: Kubernetes cuts larger ones down to it."""

COUNTED: Final = 1 << 61
"""An amount that the core counts is below this, in thousandths: 2 PiB and a bit."""

MAX_LENGTH: Final = 100
"""Characters of an amount that are read."""

WANTED: Final = "an amount such as 4, 500m, 1.5 or 64Gi"

_FORM: Final = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?"
    r"(?:[eE]([+-]?[0-9]{1,9})|([numkMGTPE]|[KMGTPE]i)?)"
)
_TENS: Final[Mapping[str, int]] = {
    letter: power for power, letter in zip(range(-9, 21, 3), "num kMGTPE", strict=True)
}
_TWOS: Final[Mapping[str, int]] = {
    f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", 1)
}


_DIGITS: Final = 9
"""Digits of a whole number that is read."""


def whole_number(text: str) -> int | None:
    """A whole number of nine digits at most, as any user may have written it.

    >>> [whole_number(text) for text in ("17", "007", "-1", "", "9" * 5000)]
    [17, 7, None, None, None]
    """
    good = text.isdecimal() and text.isascii() and len(text) <= _DIGITS
    return int(text) if good else None


class BadQuantity(ValueError):  # noqa: N818 - it reads as what happened
    """No amount: one line that says what was found and what is wanted."""


@lru_cache(maxsize=1 << 14, typed=True)
def quantity(value: str | float) -> int:
    """An amount in thousandths; it may be negative, for the caller to refuse.

    >>> [quantity(text) for text in ("4", "500m", "1.5", "1e3", "100n", "-2u")]
    [4000, 500, 1500, 1000000, 1, -1]
    >>> quantity("64Gi") == 64 * 2**30 * 1000
    True
    """
    text = str(value)
    found = _FORM.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if found is None:
        shown = quoted(text) if isinstance(value, str) else text
        raise BadQuantity(f"{shown}, want {WANTED}")
    sign, whole, part, exponent, unit = found.groups()
    part = part or ""
    unit = unit or ""
    power = int(exponent) if exponent else _TENS.get(unit, 0)
    amount = _rounded(int(whole + part) << _TWOS.get(unit, 0), power - len(part) + 3)
    amount = min(amount, 1000 * MOST)
    return -amount if sign == "-" else amount


def _rounded(digits: int, power: int) -> int:
    """*digits* times ten to the *power*, rounded up; huge ones are cut short."""
    tens: int = 10 ** min(abs(power), 3 * MAX_LENGTH)
    return digits * tens if power >= 0 else -(-digits // tens)


def resources(given: Mapping[str, str | int | float] | None) -> dict[str, int]:
    """Resource -> amount in thousandths, in the given order."""
    found = {}
    for name, value in (given or {}).items():
        try:
            found[name] = quantity(value)
        except BadQuantity as error:
            raise BadQuantity(f"{quoted(name)} is {error}") from None
    return found
