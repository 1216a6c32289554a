"""Chips that are free and of no use to a request: fragments.

A node with three free chips in each of two rings has six, and a pod that asks for four
in one ring can use none of them. What a request cannot use is what is free beyond as
many pods of it as the nodes can take now, by the same rules that place them.

Source: "Beware of Fragmentation" (FGD, ATC 2023) for the form, with the rules of our
products in place of its fractions of a GPU. With the mix of requests that a cluster
sees, the sum of these numbers weighted by it is FGD's measure.
"""

from typing import Final

import numpy as np

from ringleaf.model.cluster import Cluster
from ringleaf.model.product import Product
from ringleaf.policies.fit import Request, capacity, eligible

ASKED: Final = (1, 2, 4, 8, 16)
"""Chips of one pod for which fragments are counted, where the product takes so many."""


def fragments(cluster: Cluster, product: Product) -> dict[int, int]:
    """Chips asked by one pod -> free chips of *product* that such pods cannot use.

    Only nodes count that take pods, and only their healthy chips. Where a product has
    several rules, the first of them counts.
    """
    found: dict[int, int] = {}
    rule = next(iter(product.rules.values()))
    for asked in ASKED:
        if asked in rule:
            request = Request(product, rule[asked], avoids_network_faults=False)
            usable = cluster.free & cluster.healthy
            free = int(np.bitwise_count(usable[eligible(cluster, request)]).sum())
            found[asked] = free - asked * capacity(cluster, request)
    return found
