"""What a pod asks besides chips: of its node, and of the pods around it.

The words are Kubernetes'. Amounts are whole thousandths (milli), so that "500m" of a
CPU is exact.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

MAX_DIGITS: Final = 63
"""Characters of the value of a label."""

WEIGHT: Final = 200
"""Bytes of a small object with a name, roughly."""

UNLIMITED: Final = 1 << 62
"""The amount of a resource that is not counted."""


class Effect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(Struct, frozen=True):
    """A node's refusal of pods."""

    key: str
    effect: Effect
    value: str = ""

    @property
    def repels(self) -> bool:
        """Whether it keeps pods away, or only asks them to go elsewhere."""
        return self.effect is not Effect.PREFER_NO_SCHEDULE

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class Match(StrEnum):
    """How a toleration compares."""

    EQUAL = "Equal"
    EXISTS = "Exists"


class Toleration(Struct, frozen=True):
    """A pod's leave to go to nodes with a taint; without a key, to all of them."""

    key: str | None = None
    operator: Match = Match.EQUAL
    value: str = ""
    effect: Effect | None = None

    def covers(self, taint: Taint) -> bool:
        """Whether the pod tolerates *taint*.

        >>> taint = Taint("npu", Effect.NO_SCHEDULE, "train")
        >>> Toleration("npu", value="train").covers(taint)
        True
        >>> Toleration("npu", Match.EXISTS, effect=Effect.NO_EXECUTE).covers(taint)
        False
        """
        if self.effect not in (None, taint.effect):
            return False
        if self.key is None:
            return self.operator is Match.EXISTS
        if self.key != taint.key:
            return False
        return self.operator is Match.EXISTS or self.value == taint.value


class Operator(StrEnum):
    """How a requirement compares a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


class Requirement(Struct, frozen=True):
    """What a label must be, of a node or of a pod."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def accepts(self, value: str | None) -> bool:
        """Whether a label with *value* is as required; None for no such label.

        >>> Requirement("rack", Operator.NOT_IN, ("7",)).accepts(None)
        True
        >>> Requirement("rack", Operator.LESS, ("7",)).accepts("-3")
        True
        """
        match self.operator:
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.IN:
                return value in self.values
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        """Whole numbers only; any other label does not match."""
        if not is_whole(value):
            return False
        bound = int(self.values[0])
        greater = self.operator is Operator.GREATER
        return int(value) > bound if greater else int(value) < bound


def is_whole(text: str) -> bool:
    """Whether a label is a whole number, of as many digits as a label may have."""
    digits = text.removeprefix("-")
    return digits.isdecimal() and text.isascii() and len(digits) <= MAX_DIGITS


Selector = tuple[Requirement, ...] | None
"""Which pods are meant: those whose labels are all as required; None means no pod."""


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether a pod with *labels* is meant.

    >>> selects((), {}), selects(None, {})
    (True, False)
    """
    return selector is not None and all(
        each.accepts(labels.get(each.key)) for each in selector
    )


ANY_NAMESPACE: Final = "*"
"""Among the namespaces of a term: every namespace (an empty ``namespaceSelector``)."""


class PodTerm(Struct, frozen=True):
    """Other pods, and how far away they count as neighbours.

    Args:
        key: The label of nodes; where it is equal, pods are neighbours.
        selector: The pods that are meant.
        namespaces: Where they are; none means the namespace of the pod that asks.

    """

    key: str
    selector: Selector = ()
    namespaces: tuple[str, ...] = ()


class Spread(Struct, frozen=True):
    """A wish for pods to be spread evenly over the values of a node label.

    Args:
        key: The label of nodes.
        max_skew: How many more pods one value may have than the value with the fewest.
        selector: The pods that are counted, in the namespace of the pod that asks.
        hard: Whether other nodes are refused (``DoNotSchedule``), or only liked less
            (``ScheduleAnyway``).
        min_domains: With fewer values than this, the fewest pods count as 0.

    """

    key: str
    max_skew: int = 1
    selector: Selector = ()
    hard: bool = True
    min_domains: int | None = None


class Preferred(Struct, frozen=True):
    """Requirements on a node that add *weight* (1 to 100) where all of them hold."""

    weight: int
    term: tuple[Requirement, ...]


class PreferredPods(Struct, frozen=True):
    """Neighbours each of which adds *weight* (1 to 100), or takes it off."""

    weight: int
    term: PodTerm


class Demand(Struct, frozen=True, cache_hash=True):
    """What each pod of a job asks besides chips, and what it is to other pods.

    Args:
        resources: Name and amount in thousandths, by name.
        required: Requirements that must all hold (``node-selector``).
        terms: Lists of requirements of which one must hold whole (node affinity).
        tolerations: Taints that do not keep the pod away.
        ports: Ports of the node, as ``TCP/8080``.
        labels: Labels of the pod itself.
        namespace: Where the pod is.
        near: Pods of each term must be neighbours (pod affinity).
        apart: Pods of no term may be neighbours (pod anti-affinity).
        spread: Over what its like are spread.
        prefers: Nodes it would rather have (preferred node affinity).
        prefers_near: Neighbours it would rather have.
        prefers_apart: Neighbours it would rather not have.

    """

    resources: tuple[tuple[str, int], ...] = ()
    required: tuple[Requirement, ...] = ()
    terms: tuple[tuple[Requirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    ports: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    namespace: str = "default"
    near: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    prefers: tuple[Preferred, ...] = ()
    prefers_near: tuple[PreferredPods, ...] = ()
    prefers_apart: tuple[PreferredPods, ...] = ()

    @property
    def requirements(self) -> Iterator[Requirement]:
        """All that it requires or prefers of labels, of nodes and of pods."""
        yield from self.required
        for term in self.terms:
            yield from term
        for preferred in self.prefers:
            yield from preferred.term
        for selector in self.selectors:
            yield from selector or ()

    @property
    def n_of_nodes(self) -> int:
        """How many requirements it has on labels of nodes, required or preferred."""
        preferred = sum(len(each.term) for each in self.prefers)
        return len(self.required) + sum(map(len, self.terms)) + preferred

    @property
    def n_of_pods(self) -> int:
        """How many terms and constraints it has about other pods."""
        terms = len(self.near) + len(self.apart) + len(self.spread)
        return terms + len(self.prefers_near) + len(self.prefers_apart)

    @property
    def selectors(self) -> Iterator[Selector]:
        """The selectors by which it looks for other pods."""
        for term in self.pod_terms:
            yield term.selector
        for spread in self.spread:
            yield spread.selector

    @property
    def pod_terms(self) -> Iterator[PodTerm]:
        """The terms of pod affinity and anti-affinity, required or preferred."""
        yield from (*self.near, *self.apart)
        for preferred in (*self.prefers_near, *self.prefers_apart):
            yield preferred.term

    @property
    def heeds_pods(self) -> bool:
        """Whether the pods on a node or around it may keep it from being taken."""
        return bool(self.ports or self.near or self.apart or self.spread)

    def is_like(self, other: "Demand") -> bool:
        """Whether *other* is the same, but for the labels of the pod itself."""
        return self is other or replace(self, labels=other.labels) == other

    @property
    def weight(self) -> int:
        """About how many bytes it takes, for caches to go by."""
        parts = len(self.resources) + len(self.tolerations) + len(self.ports)
        around = len(self.near) + len(self.apart) + len(self.spread)
        likes = len(self.prefers_near) + len(self.prefers_apart) + len(self.prefers)
        weight = WEIGHT * (2 + parts + around + likes + len(self.terms))
        weight += sum(len(key) + len(value) + WEIGHT for key, value in self.labels)
        for each in self.requirements:
            weight += WEIGHT + len(each.key) + WEIGHT * len(each.values) // 2
            weight += sum(map(len, each.values))
        return weight


NOTHING: Final = Demand()


def amount_words(amount: int) -> str:
    """An amount of thousandths for people.

    >>> amount_words(32_000), amount_words(500), amount_words(64 * 2**30 * 1000)
    ('32', '500m', '64Gi')
    """
    whole, rest = divmod(amount, 1000)
    if rest:
        return f"{amount}m"
    for power, letter in ((50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi")):
        if whole and whole % (1 << power) == 0:
            return f"{whole >> power}{letter}"
    return str(whole)


_QUOTA: Final = ("requests.", "limits.")
"""What stands before resources that are named as quotas name them."""


def podless_words(asks: Iterable[tuple[str, int]]) -> str:
    """What pods ask that are not made yet; nothing twice under another name.

    >>> podless_words([("count/pods", 2000), ("cpu", 4000), ("requests.cpu", 4000)])
    '4 cpu for 2 pods that are not created yet'
    """
    told = {name: amount_words(n) for name, n in asks}
    counted = told.pop("count/pods", "")
    n_pods = told.pop("pods", counted)
    known = [
        name
        for name in told
        if not any(name.removeprefix(quota) in {*told} - {name} for quota in _QUOTA)
    ]
    rest = ", ".join(f"{told[name]} {name}" for name in known) or "nothing"
    pods = {"": "pods that are", "1": "1 pod that is"}.get(
        n_pods, f"{n_pods} pods that are"
    )
    return f"{rest} for {pods} not created yet"
