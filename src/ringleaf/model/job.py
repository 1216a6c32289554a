"""A job: identical pods that start together or not at all."""

from enum import StrEnum

from msgspec import Struct

from ringleaf.model.product import Product


class Strategy(StrEnum):
    """How a pod on inference cards takes its chips (label ``npu-310-strategy``)."""

    CARD = "card"
    CHIP = "chip"


class Job(Struct, frozen=True):
    """*replicas* pods that each ask for *chips* chips of *product*."""

    name: str
    product: Product
    chips: int
    replicas: int = 1
    strategy: Strategy | None = None
    distributed: bool = False

    @property
    def wanted(self) -> str:
        """The request in words.

        >>> from ringleaf.policies.products import find_product
        >>> Job("train", find_product("atlas-800t-a2"), chips=8, replicas=4).wanted
        '4 x 8 chips'
        """
        return f"{self.replicas} x {self.chips} chips"
