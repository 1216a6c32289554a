"""Labels of jobs that say where their pods go."""

from enum import StrEnum
from typing import Final

from ringleaf.model.placement import JobType

FOUNDATION_FROM: Final = 4
"""Replicas from which ``large-model-schema`` means foundation, not padding."""


TOR_AFFINITY: Final = "tor-affinity"


FAULT_SCHEDULING: Final = "fault-scheduling"
"""Labels for which the operator's settings may have a default (D38, D39)."""


class Strategy(StrEnum):
    """How a pod on inference cards takes its chips (label ``npu-310-strategy``)."""

    CARD = "card"
    CHIP = "chip"


class Schema(StrEnum):
    """The values of the label ``tor-affinity``."""

    LARGE_MODEL = "large-model-schema"
    NORMAL = "normal-schema"


class Firmness(StrEnum):
    """The values of the label ``super-pod-affinity``."""

    HARD = "hard"
    SOFT = "soft"


def type_of(affinity: Schema | None, replicas: int) -> JobType | None:
    """Padding, common or foundation; None without a label.

    >>> [type_of(Schema.LARGE_MODEL, n).value for n in (3, 4)]
    ['padding', 'foundation']
    """
    if affinity is None:
        return None
    if affinity is Schema.NORMAL:
        return JobType.COMMON
    return JobType.PADDING if replicas < FOUNDATION_FROM else JobType.FOUNDATION


class Network(StrEnum):
    """The network by which the nodes of a job are chosen."""

    NONE = "none"
    SWITCHES = "switches"
    SUPERPODS = "superpods"
