"""What pods ask besides chips, and what nodes have: read from a scenario."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ringleaf.model.demand import (
    Demand,
    Match,
    Operator,
    PodTerm,
    Preferred,
    PreferredPods,
    Requirement,
    Selector,
    Spread,
    Taint,
    Toleration,
)
from ringleaf.simulator.format import (
    NodeEntry,
    PodEntry,
    PodTermEntry,
    PreferredPodTermEntry,
    RequirementEntry,
    SelectorEntry,
    SpreadEntry,
    TolerationEntry,
)
from ringleaf.simulator.source import BadInput, brief
from ringleaf.simulator.wanted import ELEMENT_WANTED

_QUANTITY: Final = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,3}))?([A-Za-z]{0,2})")
_UNITS: Final[Mapping[str, int]] = {
    "m": 1,
    "": 1000,
    **{letter: 1000 ** (i + 2) for i, letter in enumerate("kMGTPE")},
    **{f"{letter}i": 1000 * 1024 ** (i + 1) for i, letter in enumerate("KMGTPE")},
}
MOST: Final = 1 << 61
"""The largest amount, in thousandths."""
_PORT: Final = re.compile(r"(?:(TCP|UDP|SCTP)/)?([1-9][0-9]{0,4})")
MAX_PORT: Final = 65535


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


def resources_of(
    path: str, given: Mapping[str, object], key: str = "resources"
) -> dict[str, int]:
    """Resource -> amount in thousandths, by name."""
    return {
        name: quantity(f"{path}.{key}[{name!r}]", value)
        for name, value in sorted(given.items())
    }


def taints_of(entry: NodeEntry) -> tuple[Taint, ...]:
    """The taints of a node."""
    return tuple(Taint(t.key, t.effect, t.value or "") for t in entry.taints)


def demand_of(path: str, entry: PodEntry) -> Demand:
    """What each pod of a job or of a role asks besides chips."""
    selector = sorted(entry.node_selector.items())
    return Demand(
        resources=tuple(resources_of(path, entry.resources).items()),
        required=tuple(
            Requirement(key, Operator.IN, (value,)) for key, value in selector
        ),
        terms=tuple(
            _requirements(f"{path}.node-affinity[{i}]", term.match_expressions)
            for i, term in enumerate(entry.node_affinity)
        ),
        tolerations=tuple(
            _toleration(f"{path}.tolerations[{i}]", each)
            for i, each in enumerate(entry.tolerations)
        ),
        ports=tuple(
            _port(f"{path}.host-ports[{i}]", each)
            for i, each in enumerate(entry.host_ports)
        ),
        labels=tuple(sorted(entry.pod_labels.items())),
        namespace=entry.namespace,
        near=_pod_terms(f"{path}.pod-affinity", entry.pod_affinity),
        apart=_pod_terms(f"{path}.pod-anti-affinity", entry.pod_anti_affinity),
        spread=tuple(
            _spread(f"{path}.spread[{i}]", each) for i, each in enumerate(entry.spread)
        ),
        prefers=tuple(
            Preferred(
                term.weight,
                _requirements(
                    f"{path}.preferred-node-affinity[{i}]", term.match_expressions
                ),
            )
            for i, term in enumerate(entry.preferred_node_affinity)
        ),
        prefers_near=_preferred_pods(
            f"{path}.preferred-pod-affinity", entry.preferred_pod_affinity
        ),
        prefers_apart=_preferred_pods(
            f"{path}.preferred-pod-anti-affinity", entry.preferred_pod_anti_affinity
        ),
    )


def _port(path: str, given: int | str) -> str:
    """A port of the node with its protocol, TCP unless it says otherwise."""
    found = _PORT.fullmatch(str(given))
    if found is None or int(found[2]) > MAX_PORT:
        want = ELEMENT_WANTED["host-ports"]
        raise BadInput(f"{path} is {brief(given)}, want {want}")
    return f"{found[1] or 'TCP'}/{found[2]}"


def _pod_terms(path: str, entries: Iterable[PodTermEntry]) -> tuple[PodTerm, ...]:
    return tuple(_pod_term(f"{path}[{i}]", each) for i, each in enumerate(entries))


def _pod_term(path: str, entry: PodTermEntry) -> PodTerm:
    selector = _selector(f"{path}.selector", entry.selector)
    return PodTerm(entry.topology_key, selector, tuple(entry.namespaces))


def _preferred_pods(
    path: str, entries: Iterable[PreferredPodTermEntry]
) -> tuple[PreferredPods, ...]:
    return tuple(
        PreferredPods(each.weight, _pod_term(f"{path}[{i}]", each))
        for i, each in enumerate(entries)
    )


def _spread(path: str, entry: SpreadEntry) -> Spread:
    return Spread(
        key=entry.topology_key,
        max_skew=entry.max_skew,
        selector=_selector(f"{path}.selector", entry.selector),
        hard=entry.when_unsatisfiable == "DoNotSchedule",
        min_domains=entry.min_domains,
    )


def _selector(path: str, entry: SelectorEntry | None) -> Selector:
    """The pods that are meant; no selector means no pod, as in Kubernetes."""
    if entry is None:
        return None
    labels = sorted(entry.match_labels.items())
    return (
        *(Requirement(key, Operator.IN, (value,)) for key, value in labels),
        *_requirements(path, entry.match_expressions),
    )


def _requirements(
    path: str, entries: Iterable[RequirementEntry]
) -> tuple[Requirement, ...]:
    return tuple(
        _requirement(f"{path}.match-expressions[{j}]", each)
        for j, each in enumerate(entries)
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
