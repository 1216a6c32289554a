"""A job: identical pods that start together or not at all."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.placement import JobType, Placement
from ringleaf.model.product import Product

FOUNDATION_FROM: Final = 4
"""Replicas from which ``large-model-schema`` means foundation, not padding."""


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


class Keep(StrEnum):
    """What was deleted after a fault: the failed pods only, or every pod."""

    PODS = "pods"
    JOB = "job"


class Previous(Struct, frozen=True):
    """Where a job ran before a fault, and what became of its pods."""

    placements: tuple[Placement, ...]
    failed_nodes: tuple[str, ...] = ()
    keep: Keep = Keep.PODS


class Job(Struct, frozen=True):
    """*replicas* pods that each ask for *chips* chips of *product*.

    Replica numbers are ranks: the pod with ``hccl/rankIndex`` 3 is replica 3.

    Args:
        name: Its name, unique in a cluster.
        product: The product its nodes must be.
        chips: Chips of one pod.
        replicas: Pods.
        strategy: Inference cards: whole cards or any chips.
        distributed: Distributed inference on Duo cards.
        tor_affinity: Its label for the leaf switches.
        sp_block: Chips of one logical SuperPoD.
        superpod_affinity: Whether logical SuperPoDs may be split (soft).
        vnpu: The template of the virtual NPU it asks for, if it asks for a part of one.
        demand: What each pod asks of its node besides chips.
        previous: Where it was before a fault.

    """

    name: str
    product: Product
    chips: int
    replicas: int = 1
    strategy: Strategy | None = None
    distributed: bool = False
    tor_affinity: Schema | None = None
    sp_block: int | None = None
    superpod_affinity: Firmness | None = None
    vnpu: str | None = None
    demand: Demand = NOTHING
    previous: Previous | None = None

    @property
    def wanted(self) -> str:
        """The request in words.

        >>> from ringleaf.policies.products import find_product
        >>> Job("train", find_product("atlas-800t-a2"), chips=8, replicas=4).wanted
        '4 x 8 chips'
        """
        return f"{self.replicas} x {self.chips} chips"

    @property
    def network(self) -> Network:
        """Which network rule places it; the faster network first (D27)."""
        if self.product.superpod or (self.sp_block is not None and self.product.blocks):
            return Network.SUPERPODS
        return Network.NONE if self.tor_affinity is None else Network.SWITCHES

    @property
    def job_type(self) -> JobType | None:
        """Padding, common or foundation, for the leaf switches."""
        return type_of(self.tor_affinity, self.replicas)

    @property
    def block_chips(self) -> int:
        """Chips of one logical SuperPoD: the whole job unless it says otherwise."""
        return self.replicas * self.chips if self.sp_block is None else self.sp_block

    @property
    def block_nodes(self) -> int:
        """Nodes of one logical SuperPoD."""
        return max(1, self.block_chips // self.product.chips)

    @property
    def n_blocks(self) -> int:
        """Logical SuperPoDs of the job."""
        return self.replicas // self.block_nodes
