"""What a choice of nodes costs, where a network rule leaves several equal (D35).

The rules choose leaves and SuperPoDs by the number of their fitting nodes and by their
state. Where that leaves a choice, the nodes that would be taken decide: first their
health, then the fragments that they leave. Costs are running sums over nodes that are
listed best first, so what the best nodes of a leaf cost is one subtraction.
"""

from typing import Final

import numpy as np
from msgspec import Struct

from ringleaf.model.arrays import Ints
from ringleaf.model.mask import MAX_CHIPS
from ringleaf.policies.chips import MAX_RANK

_SUB_HEALTHY: Final = 1 << 32
"""One sub-healthy node costs more than any number of faulty chips."""


class Costs(Struct, frozen=True):
    """Running sums over listed nodes; each array begins with nothing.

    ``health`` has the sub-healthy nodes first and then the faulty chips; ``fragments``
    is the sum of chip ranks.
    """

    health: Ints
    fragments: Ints

    def of(self, start: Ints, count: Ints | int) -> tuple[Ints, Ints]:
        """Health and fragments of *count* nodes that stand at *start* and after."""
        end = start + count
        health = self.health[end] - self.health[start]
        return health, self.fragments[end] - self.fragments[start]

    def one(self, start: int, count: int) -> tuple[int, int]:
        """The same for one stretch of nodes."""
        health, fragments, end = self.health, self.fragments, start + count
        return (
            health.item(end) - health.item(start),
            fragments.item(end) - fragments.item(start),
        )


def costs_of(ranks: Ints) -> Costs | None:
    """The costs of nodes with these packed ranks; None where all of them are alike."""
    if not len(ranks) or ranks.min() == ranks.max():
        return None
    health, fragments = np.divmod(ranks, MAX_RANK)
    sub_healthy, faulty = np.divmod(health, MAX_CHIPS + 1)
    return Costs(_sums(sub_healthy * _SUB_HEALTHY + faulty), _sums(fragments))


def _sums(values: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
