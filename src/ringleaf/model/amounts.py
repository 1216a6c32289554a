"""Amounts of resources: resource -> whole thousandths, as ``model.demand`` counts.

A resource that a mapping does not name is 0 where something is used or asked, and
without limit where something is allowed.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

Amounts = Mapping[str, int]
NONE: Final[Amounts] = MappingProxyType({})


def add(total: dict[str, int], amounts: Amounts, times: int = 1) -> None:
    """Put *amounts* on top of *total*, or take them off (``times`` -1)."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + times * amount


def take(total: dict[str, int], amounts: Amounts) -> None:
    """Take *amounts* off *total*; what comes to nothing is not named any more.

    >>> total = {"cpu": 500, "memory": 1}
    >>> take(total, {"cpu": 500})
    >>> total
    {'memory': 1}
    """
    for name, amount in amounts.items():
        left = total.get(name, 0) - amount
        if left:
            total[name] = left
        else:
            total.pop(name, None)


def scaled(amounts: Amounts, times: int) -> dict[str, int]:
    """*times* as much.

    >>> scaled({"cpu": 500}, 3)
    {'cpu': 1500}
    """
    return {name: amount * times for name, amount in amounts.items()}


def plus(one: Amounts, other: Amounts) -> dict[str, int]:
    """Both together.

    >>> plus({"cpu": 500}, {"cpu": 500, "memory": 1})
    {'cpu': 1000, 'memory': 1}
    """
    total = dict(one)
    add(total, other)
    return total
