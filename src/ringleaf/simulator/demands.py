"""What pods ask of nodes besides chips, and what nodes have: read from a scenario."""

import re
from collections.abc import Mapping
from typing import Final

from ringleaf.model.demand import (
    Demand,
    Match,
    Operator,
    Requirement,
    Taint,
    Toleration,
)
from ringleaf.simulator.format import (
    JobEntry,
    NodeEntry,
    RequirementEntry,
    TolerationEntry,
)
from ringleaf.simulator.source import BadInput, brief

_QUANTITY: Final = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,3}))?([A-Za-z]{0,2})")
_UNITS: Final[Mapping[str, int]] = {
    "m": 1,
    "": 1000,
    **{letter: 1000 ** (i + 2) for i, letter in enumerate("kMGTPE")},
    **{f"{letter}i": 1000 * 1024 ** (i + 1) for i, letter in enumerate("KMGTPE")},
}
MOST: Final = 1 << 61
"""The largest amount, in thousandths."""


def quantity(path: str, value: object) -> int:
    """An amount in thousandths, as Kubernetes writes it: 4, 500m, 1.5, 64Gi."""
    found = _QUANTITY.fullmatch(str(value)) if not isinstance(value, bool) else None
    if found is None or found[3] not in _UNITS:
        raise BadInput(
            f"{path} is {brief(value)}, want an amount such as 4, 500m, 64Gi"
        )
    whole, part, unit = found.groups()
    amount = int(f"{whole}{(part or '').ljust(3, '0')}") * _UNITS[unit]
    amount //= 1000
    if amount > MOST:
        raise BadInput(f"{path} is {brief(value)}, want less than 2^61 thousandths")
    return amount


def resources_of(path: str, given: Mapping[str, object]) -> dict[str, int]:
    """Resource -> amount in thousandths, by name."""
    return {
        name: quantity(f"{path}.resources[{name!r}]", value)
        for name, value in sorted(given.items())
    }


def taints_of(entry: NodeEntry) -> tuple[Taint, ...]:
    """The taints of a node."""
    return tuple(Taint(t.key, t.effect, t.value or "") for t in entry.taints)


def demand_of(path: str, entry: JobEntry) -> Demand:
    """What each pod of a job asks of its node besides chips."""
    selector = sorted(entry.node_selector.items())
    return Demand(
        resources=tuple(resources_of(path, entry.resources).items()),
        required=tuple(
            Requirement(key, Operator.IN, (value,)) for key, value in selector
        ),
        terms=tuple(
            tuple(
                _requirement(f"{path}.node-affinity[{i}].match-expressions[{j}]", each)
                for j, each in enumerate(term.match_expressions)
            )
            for i, term in enumerate(entry.node_affinity)
        ),
        tolerations=tuple(
            _toleration(f"{path}.tolerations[{i}]", each)
            for i, each in enumerate(entry.tolerations)
        ),
    )


def _toleration(path: str, entry: TolerationEntry) -> Toleration:
    """A toleration; without a key it must be of every taint."""
    if entry.key is None and entry.operator is not Match.EXISTS:
        raise BadInput(f"{path}.key is missing, want a key, or operator: Exists")
    return Toleration(entry.key, entry.operator, entry.value or "", entry.effect)


def _requirement(path: str, entry: RequirementEntry) -> Requirement:
    """A requirement with as many values as its operator wants."""
    count = len(entry.values)
    match entry.operator:
        case Operator.IN | Operator.NOT_IN:
            good, want = count > 0, "one or more values"
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            good, want = count == 0, "no values"
        case _:
            whole = count == 1 and re.fullmatch(r"-?[0-9]{1,18}", entry.values[0])
            good, want = bool(whole), "one whole number"
    if not good:
        raise BadInput(f"{path}.values has {count}, want {want} for {entry.operator}")
    return Requirement(entry.key, entry.operator, tuple(entry.values))
