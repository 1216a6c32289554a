"""Plain values as the scenario format writes them: times and amounts."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

Plain = dict[str, Any]
_NOTHING: Final[tuple[object, ...]] = (None, "", 0, [], {})


def whole(seconds: float) -> int | float:
    """A time, without a point where it needs none.

    >>> whole(60.0), whole(0.5)
    (60, 0.5)
    """
    return int(seconds) if float(seconds).is_integer() else seconds


def without_nothing(plain: Plain) -> Plain:
    """*plain* without the keys that say nothing."""
    return {key: value for key, value in plain.items() if value not in _NOTHING}


def amount(thousandths: int) -> int | str:
    """An amount as people write it.

    >>> amount(64_000), amount(500), amount(1_500)
    (64, '500m', '1500m')
    """
    whole, rest = divmod(thousandths, 1000)
    if not rest:
        return whole
    return f"{thousandths}m" if whole < 1 << 40 else f"{whole}.{rest:03}"


def amounts(given: Mapping[str, int] | Iterable[tuple[str, int]]) -> Plain:
    """Resource -> amount."""
    return {name: amount(n) for name, n in dict(given).items()}


def times(given: Mapping[str, float | None]) -> Plain:
    """The times that there are."""
    return {key: whole(at) for key, at in given.items() if at is not None}
