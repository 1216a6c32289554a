"""What a pod asks of a node besides chips: resources, labels, tolerated taints.

The words are Kubernetes'. Amounts are whole thousandths (milli), so that "500m" of a
CPU is exact.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

UNLIMITED: Final = 1 << 62
"""The amount of a resource that nobody counts."""


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
    """What a label of the node must be."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


class Demand(Struct, frozen=True):
    """What each pod of a job asks of its node besides chips.

    Args:
        resources: Name and amount in thousandths, by name.
        required: Requirements that must all hold (``node-selector``).
        terms: Lists of requirements of which one must hold whole (node affinity).
        tolerations: Taints that do not keep the pod away.

    """

    resources: tuple[tuple[str, int], ...] = ()
    required: tuple[Requirement, ...] = ()
    terms: tuple[tuple[Requirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


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
