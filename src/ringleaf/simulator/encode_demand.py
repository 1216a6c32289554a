"""What pods ask besides chips, as the scenario format writes it."""

from collections.abc import Iterable

from ringleaf.model.demand import (
    Demand,
    PodTerm,
    Requirement,
    Selector,
    Spread,
    Toleration,
)
from ringleaf.simulator.plain import Plain, amounts, without_nothing


def demand(value: Demand) -> Plain:
    """What pods ask besides chips, as keys of a job or of a role."""
    namespace = value.namespace
    return without_nothing(
        {
            "resources": amounts(value.resources),
            "node-selector": {each.key: each.values[0] for each in value.required},
            "node-affinity": [_term(term) for term in value.terms],
            "tolerations": [_toleration(each) for each in value.tolerations],
            "host-ports": [*value.ports],
            "pod-labels": dict(value.labels),
            "namespace": "" if namespace == Demand().namespace else namespace,
            "pod-affinity": [_pod_term(each) for each in value.near],
            "pod-anti-affinity": [_pod_term(each) for each in value.apart],
            "spread": [_spread(each) for each in value.spread],
            "preferred-node-affinity": [
                {"weight": each.weight} | _term(each.term) for each in value.prefers
            ],
            "preferred-pod-affinity": [
                {"weight": each.weight} | _pod_term(each.term)
                for each in value.prefers_near
            ],
            "preferred-pod-anti-affinity": [
                {"weight": each.weight} | _pod_term(each.term)
                for each in value.prefers_apart
            ],
        }
    )


def _toleration(value: Toleration) -> Plain:
    found = {} if value.key is None else {"key": value.key}
    effect = value.effect and str(value.effect)
    found |= {"operator": str(value.operator)}
    return found | without_nothing({"value": value.value, "effect": effect})


def _term(requirements: Iterable[Requirement]) -> Plain:
    return {
        "match-expressions": [
            {"key": each.key, "operator": str(each.operator)}
            | without_nothing({"values": [*each.values]})
            for each in requirements
        ]
    }


def _selector(value: Selector) -> Plain:
    return {} if value is None else {"selector": _term(value)}


def _pod_term(value: PodTerm) -> Plain:
    found = {"topology-key": value.key} | _selector(value.selector)
    return found | without_nothing({"namespaces": [*value.namespaces]})


def _spread(value: Spread) -> Plain:
    found: Plain = {"topology-key": value.key} | _selector(value.selector)
    found |= {} if value.max_skew == 1 else {"max-skew": value.max_skew}
    found |= {} if value.hard else {"when-unsatisfiable": "ScheduleAnyway"}
    return found | without_nothing({"min-domains": value.min_domains})
