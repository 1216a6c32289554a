"""A queue: jobs that share a part of the cluster."""

from typing import Final

from msgspec import Struct

from ringleaf.model.amounts import NONE, Amounts

DEFAULT_QUEUE: Final = "default"
"""Where a job waits that names no queue."""


class Queue(Struct, frozen=True):
    """How much of the cluster the jobs of a queue may use.

    Args:
        name: Its name.
        weight: Its part of the cluster, against the weights of the others.
        capability: The most it may ever use; a resource that is not named is unlimited.
        guarantee: What is kept for it, used or not.
        reclaimable: Whether other queues may take back what it uses beyond its share.
        priority: Higher goes first.
        is_open: Whether jobs may start.
        hierarchy: Its place among queues of queues, as ``root/a/b``, for drf.
        hierarchy_weights: The weight of every step of it, as ``1/2/1``.

    """

    name: str
    weight: int = 1
    capability: Amounts = NONE
    guarantee: Amounts = NONE
    reclaimable: bool = True
    priority: int = 0
    is_open: bool = True
    hierarchy: str = ""
    hierarchy_weights: str = ""
