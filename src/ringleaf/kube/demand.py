"""What a pod asks besides chips, read from its spec.

Thousands of equal pods come at once, so a spec is read once: what was read is found
again by a digest of the parts that matter. Equal demands are one object. What is kept
for pods to come is bounded in bytes, and so is what one pod may ask
(docs/annotations.md, "Limits per object").

NB: Two readings of ours. ``matchFields`` on ``metadata.name`` becomes a requirement on
a label of that name, which ``ringleaf.kube.node_info`` gives to every node. Labels
that number the pods of one owner (``PER_POD_LABELS``) are left out: with them no two
pods would be alike, and selectors do not go by them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from enum import StrEnum
from hashlib import blake2b
from typing import Final, TypeVar

from msgspec.json import Encoder
from msgspec.structs import replace

from ringleaf.kube.objects import (
    AffinitySpec,
    Container,
    Expression,
    LabelSelectorSpec,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodToleration,
    PreferredNode,
    PreferredPod,
    Quantities,
    TopologySpread,
)
from ringleaf.kube.quantity import COUNTED, BadQuantity, quantity
from ringleaf.model.cache import Cache
from ringleaf.model.demand import (
    ANY_NAMESPACE,
    Demand,
    Effect,
    Match,
    Operator,
    PodTerm,
    Preferred,
    PreferredPods,
    Requirement,
    Selector,
    Spread,
    Toleration,
)
from ringleaf.model.topology import quoted

NAME_FIELD: Final = "metadata.name"
"""The one field of nodes that pods may select, and the label that stands for it."""

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label of every namespace that is its name; the API server sees to it."""

PODS: Final = "pods"

PER_POD_LABELS: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
        "training.kubeflow.org/replica-index",
        "volcano.sh/task-index",
    }
)
"""Labels by which pods that are otherwise alike differ."""

MAX_WEIGHT: Final = 100
MAX_PORT: Final = 65535
MAX_READ: Final = 1 << 15
"""Demands that are kept for pods to come."""
MAX_READ_BYTES: Final = 12 << 20
"""Bytes of those demands."""
MAX_BYTES: Final = 128 << 10
"""Bytes of what a pod asks, as it is written: containers, selectors, affinity."""
MAX_TERMS: Final = 500
"""Terms of node affinity, required or preferred, and tolerations."""
MAX_POD_TERMS: Final = 100
"""Terms of pod affinity of one kind, and constraints that spread pods."""
MAX_REQUIREMENTS: Final = 1000
"""Requirements on labels that a pod may have in all."""
MAX_RESOURCES: Final = 100
"""Names of resources that a pod, or a PodGroup, may ask for."""
MAX_ELSEWHERE: Final = 500
"""Labels and values that terms with several namespaces name, once a namespace."""

_ALWAYS: Final = "Always"
_NEVER: Final = (Requirement(NAME_FIELD, Operator.IN),)
"""What no node is: a node selector without a term that says something."""

_MUST: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_MAY: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_HARD, _SOFT = "DoNotSchedule", "ScheduleAnyway"
_OF_NODES: Final = tuple(Operator)
_OF_FIELDS: Final = (Operator.IN, Operator.NOT_IN)
_OF_LABELS: Final = (*_OF_FIELDS, Operator.EXISTS, Operator.DOES_NOT_EXIST)
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_E = TypeVar("_E", bound=StrEnum)


class BadPod(ValueError):  # noqa: N818 - it reads as what happened
    """A pod that cannot be placed as it is: what, where, found, wanted; one line."""

    def __init__(self, line: str, hint: str | None = None) -> None:
        super().__init__(f"{line}; hint: {hint}" if hint else line)


class Unsupported(BadPod):
    """A pod that Kubernetes would place and Ringleaf does not."""


_encoded: Final = Encoder().encode
_read: Final[Cache[tuple[bytes, frozenset[str]], Demand]] = Cache(
    MAX_READ, MAX_READ_BYTES
)
_one: Final[Cache[Demand, Demand]] = Cache(MAX_READ, MAX_READ_BYTES)


def digest_of(text: bytes) -> bytes:
    """What stands for a text that would be long to keep."""
    return blake2b(text, digest_size=32).digest()


def the_one(demand: Demand) -> Demand:
    """The object that stands for all demands that equal *demand*."""
    known = _one.get(demand)
    if known is None:
        known = demand
        _one.put(demand, demand, demand.weight)
    return known


def demand_of(
    pod: Pod, ignore: frozenset[str], without: frozenset[str] = PER_POD_LABELS
) -> Demand:
    """What *pod* asks besides the resources to *ignore*, those that count chips.

    Its labels are all but those to go *without*. Raises ``BadPod``.
    """
    spec, labels = pod.spec, pod.metadata.labels
    if labels and not without.isdisjoint(labels):
        labels = {key: labels[key] for key in labels if key not in without}
    parts = (
        pod.metadata.namespace,
        labels,
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
    )
    key = digest_of(_encoded(parts)), ignore
    if (known := _read.get(key)) is not None:
        return known
    try:
        demand = the_one(_demand(spec, pod.metadata.namespace, labels or {}, ignore))
    except BadPod as error:
        raise type(error)(f"Pod {quoted(pod.metadata.key)}: {error}") from None
    _read.put(key, demand, demand.weight)
    return demand


def check_size(spec: PodSpec, n_bytes: int) -> None:
    """Refuse a pod that asks with more words than are read. Raises ``BadPod``.

    *n_bytes* is what all of it has as it is written.
    """
    affinity = spec.affinity or AffinitySpec()
    nodes = affinity.node_affinity or NodeAffinity()
    near = affinity.pod_affinity or PodAffinity()
    apart = affinity.pod_anti_affinity or PodAffinity()
    terms = (nodes.required or NodeSelector()).node_selector_terms
    own = "spec.affinity"
    one_label = "select one label that all these nodes have"
    fewer = "select with fewer terms"
    for path, given, most, hint in (
        (f"{own}.nodeAffinity.{_MUST}.nodeSelectorTerms", terms, MAX_TERMS, one_label),
        (f"{own}.nodeAffinity.{_MAY}", nodes.preferred, MAX_TERMS, one_label),
        (f"{own}.podAffinity.{_MUST}", near.required, MAX_POD_TERMS, fewer),
        (f"{own}.podAffinity.{_MAY}", near.preferred, MAX_POD_TERMS, fewer),
        (f"{own}.podAntiAffinity.{_MUST}", apart.required, MAX_POD_TERMS, fewer),
        (f"{own}.podAntiAffinity.{_MAY}", apart.preferred, MAX_POD_TERMS, fewer),
        (
            "spec.topologySpreadConstraints",
            spec.topology_spread_constraints,
            MAX_POD_TERMS,
            fewer,
        ),
        ("spec.tolerations", spec.tolerations, MAX_TERMS, "tolerate keys as a whole"),
    ):
        check_number(path, given, most, hint)
    if n_bytes > MAX_BYTES:
        raise BadPod(
            f"what it asks for (containers, selectors, affinity) has {n_bytes} bytes, "
            f"want at most {MAX_BYTES}",
            "ask with fewer values",
        )


def check_number(path: str, given: Sized | None, most: int, hint: str) -> None:
    """Refuse a list that is longer than is read. Raises ``BadPod``."""
    if given is not None and len(given) > most:
        raise BadPod(f"{path} has {len(given)} entries, want at most {most}", hint)


def requests_of(spec: PodSpec) -> dict[str, int]:
    """What all containers of a pod ask together, in thousandths, chips among it.

    As Kubernetes adds it up: containers run side by side, init containers one after
    the other before them, those that restart (sidecars) beside all that follow.
    """
    # Names and containers may be many, so nothing is copied. An init container counts
    # with the sidecars before it; of what it does not ask for, all sidecars have more.
    total: dict[str, int] = {}
    most: dict[str, int] = {}
    for path, each in _containers("initContainers", spec.init_containers):
        asks = _requests(path, each)
        if each.restart_policy == _ALWAYS:
            _add(total, asks)
            continue
        for name, amount in asks.items():
            most[name] = max(most.get(name, 0), total.get(name, 0) + amount)
    for path, each in _containers("containers", spec.containers):
        _add(total, _requests(path, each))
    for name, amount in most.items():
        total[name] = max(total.get(name, 0), amount)
    _add(total, _amounts("spec.overhead", spec.overhead))
    return total


def _containers(
    key: str, given: Sequence[Container] | None
) -> Iterator[tuple[str, Container]]:
    return ((f"spec.{key}[{i}]", each) for i, each in enumerate(given or ()))


def _requests(path: str, container: Container) -> dict[str, int]:
    """What one container asks; of what it only limits, the limit."""
    if (has := container.resources) is None:
        return {}
    limits = _amounts(f"{path}.resources.limits", has.limits)
    return limits | _amounts(f"{path}.resources.requests", has.requests)


def _amounts(path: str, given: Quantities | None) -> dict[str, int]:
    found = {}
    for name, value in (given or {}).items():
        try:
            amount = quantity(value)
        except BadQuantity as error:
            raise BadPod(f"{path}[{quoted(name)}] is {error}") from None
        if amount < 0:
            told = quoted(str(value))
            raise BadPod(f"{path}[{quoted(name)}] is {told}, want 0 or more")
        found[name] = amount
    return found


def _add(to: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        to[name] = to.get(name, 0) + amount


def _demand(
    spec: PodSpec, namespace: str, labels: Mapping[str, str], ignore: frozenset[str]
) -> Demand:
    amounts = requests_of(spec) | {PODS: 1000}
    few = "ask for fewer resources"
    check_number("spec.containers: resources", amounts, MAX_RESOURCES, few)
    plain = Demand(
        # More than any node is counted to have stays more.
        resources=tuple(
            (name, min(amounts[name], COUNTED + 1))
            for name in sorted(amounts)
            if amounts[name] and name not in ignore
        ),
        required=_labelled(spec.node_selector),
        tolerations=tuple(
            _toleration(f"spec.tolerations[{i}]", each)
            for i, each in enumerate(spec.tolerations or ())
        ),
        ports=tuple(sorted(set(_ports(spec)))),
        labels=tuple(sorted(labels.items())),
        namespace=namespace or "default",
        spread=tuple(
            _spread(f"spec.topologySpreadConstraints[{i}]", each)
            for i, each in enumerate(spec.topology_spread_constraints or ())
        ),
    )
    if spec.affinity is not None:
        plain = _with_affinity(plain, spec.affinity)
    n_required = sum(1 for _each in plain.requirements)
    if n_required > MAX_REQUIREMENTS:
        raise BadPod(
            f"spec has {n_required} requirements on labels of nodes and pods in all, "
            f"want at most {MAX_REQUIREMENTS}",
            "select one label that all these nodes have",
        )
    n_elsewhere = sum(map(_n_elsewhere, plain.pod_terms))
    if n_elsewhere > MAX_ELSEWHERE:
        raise BadPod(
            "spec.affinity names labels of pods and their values in several "
            f"namespaces, {n_elsewhere} counted in each namespace, "
            f"want at most {MAX_ELSEWHERE}",
            "name fewer namespaces, or select all of them: namespaceSelector: {}",
        )
    return plain


def _n_elsewhere(term: PodTerm) -> int:
    """Labels and values that *term* names, in each of several namespaces.

    Which labels count is kept by namespace, so a short list of namespaces beside a
    short list of values is kept as their product.
    """
    if len(term.namespaces) < 2:  # noqa: PLR2004 - several
        return 0
    named = sum(1 + len(each.values) for each in term.selector or ())
    return named * len(term.namespaces)


def _with_affinity(plain: Demand, affinity: AffinitySpec) -> Demand:
    nodes = affinity.node_affinity or NodeAffinity()
    near = affinity.pod_affinity or PodAffinity()
    apart = affinity.pod_anti_affinity or PodAffinity()
    own = "spec.affinity"
    return replace(
        plain,
        terms=_terms(f"{own}.nodeAffinity.{_MUST}", nodes.required),
        prefers=tuple(_preferred(f"{own}.nodeAffinity.{_MAY}", nodes.preferred or ())),
        near=_pod_terms(f"{own}.podAffinity.{_MUST}", near.required),
        apart=_pod_terms(f"{own}.podAntiAffinity.{_MUST}", apart.required),
        prefers_near=_preferred_pods(f"{own}.podAffinity.{_MAY}", near.preferred),
        prefers_apart=_preferred_pods(f"{own}.podAntiAffinity.{_MAY}", apart.preferred),
    )


def _terms(
    path: str, selector: NodeSelector | None
) -> tuple[tuple[Requirement, ...], ...]:
    """Terms of which one must hold; a term that says nothing holds nowhere."""
    if selector is None:
        return ()
    given = enumerate(selector.node_selector_terms or ())
    terms = [_term(f"{path}.nodeSelectorTerms[{i}]", term) for i, term in given]
    return tuple(filter(None, terms)) or (_NEVER,)


def _term(path: str, term: NodeSelectorTerm) -> tuple[Requirement, ...]:
    fields = enumerate(term.match_fields or ())
    return (
        *_requirements(f"{path}.matchExpressions", term.match_expressions, _OF_NODES),
        *(_field(f"{path}.matchFields[{i}]", each) for i, each in fields),
    )


def _field(path: str, entry: Expression) -> Requirement:
    if entry.key != NAME_FIELD:
        raise BadPod(f"{path}.key is {quoted(entry.key)}, want {quoted(NAME_FIELD)}")
    return _requirement(path, entry, _OF_FIELDS)


def _preferred(path: str, entries: Iterable[PreferredNode]) -> Iterator[Preferred]:
    for i, each in enumerate(entries):
        weight = _weight(f"{path}[{i}]", each.weight)
        if term := _term(f"{path}[{i}].preference", each.preference):
            yield Preferred(weight, term)


def _weight(path: str, weight: int) -> int:
    if not 1 <= weight <= MAX_WEIGHT:
        raise BadPod(f"{path}.weight is {weight}, want 1 to {MAX_WEIGHT}")
    return weight


def _pod_terms(
    path: str, entries: Iterable[PodAffinityTerm] | None
) -> tuple[PodTerm, ...]:
    given = enumerate(entries or ())
    return tuple(_pod_term(f"{path}[{i}]", each) for i, each in given)


def _preferred_pods(
    path: str, entries: Iterable[PreferredPod] | None
) -> tuple[PreferredPods, ...]:
    return tuple(
        PreferredPods(
            _weight(f"{path}[{i}]", each.weight),
            _pod_term(f"{path}[{i}].podAffinityTerm", each.pod_affinity_term),
        )
        for i, each in enumerate(entries or ())
    )


def _pod_term(path: str, entry: PodAffinityTerm) -> PodTerm:
    return PodTerm(
        key=_topology_key(path, entry.topology_key),
        selector=read_selector(f"{path}.labelSelector", entry.label_selector),
        namespaces=_namespaces(path, entry),
    )


def _namespaces(path: str, entry: PodAffinityTerm) -> tuple[str, ...]:
    """Where the pods of a term are, as far as that is known without namespaces."""
    named = set(entry.namespaces or ())
    selector = read_selector(f"{path}.namespaceSelector", entry.namespace_selector)
    if selector == ():
        return (ANY_NAMESPACE,)
    if selector is not None:
        first, *others = selector
        if others or (first.key, first.operator) != (NAMESPACE_NAME, Operator.IN):
            raise Unsupported(
                f"{path}.namespaceSelector goes by labels of namespaces, "
                "which are not known here",
                f"name them in namespaces, or select {NAMESPACE_NAME}",
            )
        named |= set(first.values)
    return tuple(sorted(named))


def _topology_key(path: str, key: str) -> str:
    if not key:
        raise BadPod(f"{path}.topologyKey is missing, want a label of nodes")
    return key


def _spread(path: str, entry: TopologySpread) -> Spread:
    if entry.max_skew < 1:
        raise BadPod(f"{path}.maxSkew is {entry.max_skew}, want 1 or more")
    if entry.min_domains is not None and entry.min_domains < 1:
        raise BadPod(f"{path}.minDomains is {entry.min_domains}, want 1 or more")
    if entry.when_unsatisfiable not in (_HARD, _SOFT):
        told = quoted(entry.when_unsatisfiable)
        raise BadPod(f"{path}.whenUnsatisfiable is {told}, want {_HARD} or {_SOFT}")
    return Spread(
        key=_topology_key(path, entry.topology_key),
        max_skew=entry.max_skew,
        selector=read_selector(f"{path}.labelSelector", entry.label_selector),
        hard=entry.when_unsatisfiable == _HARD,
        min_domains=entry.min_domains,
    )


def read_selector(path: str, entry: LabelSelectorSpec | None) -> Selector:
    """The objects that are meant; no selector means none of them."""
    if entry is None:
        return None
    expressions = entry.match_expressions
    fewer = "select fewer labels"
    check_number(f"{path}.matchLabels", entry.match_labels, MAX_TERMS, fewer)
    check_number(f"{path}.matchExpressions", expressions, MAX_TERMS, fewer)
    return (
        *_labelled(entry.match_labels),
        *_requirements(f"{path}.matchExpressions", expressions, _OF_LABELS),
    )


def _labelled(labels: Mapping[str, str] | None) -> tuple[Requirement, ...]:
    if not labels:
        return ()
    return tuple(
        Requirement(key, Operator.IN, (value,)) for key, value in sorted(labels.items())
    )


def _requirements(
    path: str, entries: Iterable[Expression] | None, allowed: Sequence[Operator]
) -> tuple[Requirement, ...]:
    given = enumerate(entries or ())
    return tuple(_requirement(f"{path}[{i}]", each, allowed) for i, each in given)


def _requirement(
    path: str, entry: Expression, allowed: Sequence[Operator]
) -> Requirement:
    """A requirement with as many values as its operator wants."""
    if not entry.key:
        raise BadPod(f"{path}.key is missing, want a label")
    operator = _word(f"{path}.operator", entry.operator, allowed)
    values = entry.values or []
    match operator:
        case Operator.IN | Operator.NOT_IN:
            good, want = len(values) > 0, "one or more values"
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            good, want = not values, "no values"
        case _:
            good = len(values) == 1 and _WHOLE.fullmatch(values[0]) is not None
            want = "one whole number"
    if not good:
        raise BadPod(f"{path}.values has {len(values)}, want {want} for {operator}")
    return Requirement(entry.key, operator, tuple(values))


def _toleration(path: str, entry: PodToleration) -> Toleration:
    """A toleration; without a key it must be of every taint."""
    operator = _word(f"{path}.operator", entry.operator or Match.EQUAL, tuple(Match))
    effect = (
        _word(f"{path}.effect", entry.effect, tuple(Effect)) if entry.effect else None
    )
    if not entry.key and operator is not Match.EXISTS:
        raise BadPod(f"{path}.key is missing, want a key, or operator: Exists")
    return Toleration(entry.key or None, operator, entry.value, effect)


def _word(path: str, given: str, words: Sequence[_E]) -> _E:
    for word in words:
        if word == given:
            return word
    *most, last = words
    raise BadPod(f"{path} is {quoted(given)}, want {', '.join(most)} or {last}")


def _ports(spec: PodSpec) -> Iterator[str]:
    """Ports of the node that the pod opens, of sidecars too."""
    listed = [*_containers("containers", spec.containers)]
    listed += [
        (path, each)
        for path, each in _containers("initContainers", spec.init_containers)
        if each.restart_policy == _ALWAYS
    ]
    for path, container in listed:
        for i, port in enumerate(container.ports or ()):
            if not port.host_port:
                continue
            own = f"{path}.ports[{i}]"
            if not 1 <= port.host_port <= MAX_PORT:
                raise BadPod(
                    f"{own}.hostPort is {port.host_port}, want 1 to {MAX_PORT}"
                )
            if port.protocol not in _PROTOCOLS:
                told = quoted(port.protocol)
                raise BadPod(f"{own}.protocol is {told}, want TCP, UDP or SCTP")
            yield f"{port.protocol}/{port.host_port}"
