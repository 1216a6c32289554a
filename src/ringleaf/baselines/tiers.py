"""Rules that look for the smallest part of the network that holds a whole job.

Tiers are leaves and, where nodes stand in them, SuperPoDs; above them is the cluster.
Chips are counted, rings are not known: the lowest free chips of a node go.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ringleaf.baselines.fitting import (
    LOOSE,
    Costs,
    FittingNodes,
    Spot,
    Spots,
    Wiring,
    cheapest,
    spots_on,
)
from ringleaf.baselines.packing import FULL, counts
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster, Masks
from ringleaf.model.job import Job
from ringleaf.model.uplinks import NOWHERE
from ringleaf.policies.fit import of_product

FADING: Final = 0.8
"""What a tier counts of the tier below it, for pods that come alone (Volcano)."""


@lru_cache(maxsize=8)
def tiers_of(cluster: Cluster) -> tuple[Ints, ...]:
    """The domain of every node at each tier, lowest tier first.

    Nodes that stand nowhere are a domain of their own, after the others.
    """
    places = [cluster.leaf, cluster.superpod]
    found = []
    for place in places:
        if (place != NOWHERE).any():
            names = np.unique(place[place != NOWHERE])
            number = np.searchsorted(names, place)
            found.append(np.where(place == NOWHERE, len(names), number))
    return tuple(found)


def room_in(domain: Ints, fitting: FittingNodes) -> Ints:
    """How many pods each domain of a tier can take."""
    rooms = np.bincount(domain[fitting.nodes], fitting.room, minlength=domain.max() + 1)
    return rooms.astype(np.int64)


def smallest(rooms: Ints, pods: int) -> int | None:
    """The domain with the least room that is enough, the first among equals."""
    (enough,) = (rooms >= pods).nonzero()
    return int(enough[rooms[enough].argmin()]) if len(enough) else None


Taken = list[tuple[int, int]]
"""Places and how many pods each takes."""
Several = Callable[[Ints, int], Taken]
"""Which places a job takes if none is enough, given their room."""


def fewest(rooms: Ints, pods: int) -> Taken:
    """As few places as can be: the largest ones whole, the last as tight as it gets.

    There must be enough room.

    >>> fewest(np.array([2, 4, 3, 4]), 10)
    [(1, 4), (3, 4), (0, 2)]
    """
    order = np.argsort(-rooms, kind="stable")
    sums = np.cumsum(rooms[order])
    whole = int(np.searchsorted(sums, pods))
    rest = pods - (int(sums[whole - 1]) if whole else 0)
    found = [(at, rooms.item(at)) for at in order[:whole].tolist()]
    others = order[whole:]
    enough = others[rooms[others] >= rest]
    return [*found, (int(enough[rooms[enough].argmin()]), rest)]


def smallest_first(rooms: Ints, pods: int) -> Taken:
    """The places with the least room first.

    >>> smallest_first(np.array([2, 4, 0, 3]), 6)
    [(0, 2), (3, 3), (1, 1)]
    """
    found = []
    order = np.argsort(rooms, kind="stable")
    for at in order[rooms[order] > 0].tolist():
        if not pods:
            break
        found.append((at, min(pods, rooms.item(at))))
        pods -= found[-1][1]
    return found


class Tas:
    """Kueue's topology-aware scheduling, with the leaf as the preferred level.

    The lowest level at which one domain holds the whole job, and there the domain with
    the least room; if none does, as few domains of the highest level as can be. Inside,
    level by level down to the nodes, again as few as can be. The variant *least free*
    takes the domains with the least room first where it needs several.
    """

    wiring: Wiring = LOOSE
    shape = ""

    def __init__(self, *, least_free: bool = False) -> None:
        self._several = smallest_first if least_free else fewest

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*, ranks in the order of names."""
        del job
        if fitting.room.sum() < pods:
            return None
        within, below = smallest_domain(fitting, pods)
        found: list[Spot] = []
        for part, count in parts(within, below, pods, self._several):
            found += spots_on(part, self._several(part.room, count))
        return sorted(found, key=lambda spot: spot.node)


def smallest_domain(
    fitting: FittingNodes, pods: int
) -> tuple[FittingNodes, tuple[Ints, ...]]:
    """The nodes of the lowest domain that holds a job, and the tiers below it.

    Of the domains of one tier, the one with the least room.
    """
    tiers = tiers_of(fitting.cluster)
    for tier, domain in enumerate(tiers):
        best = smallest(room_in(domain, fitting), pods)
        if best is not None:
            return fitting.only(domain[fitting.nodes] == best), tiers[:tier]
    return fitting, tiers


def parts(
    fitting: FittingNodes, below: tuple[Ints, ...], pods: int, several: Several
) -> Iterator[tuple[FittingNodes, int]]:
    """The domains of the lowest tier that a job takes, each with so many of its pods.

    *several* says which domains, tier by tier down to the lowest.
    """
    if not below:
        yield fitting, pods
        return
    domain = below[-1]
    for each, count in several(room_in(domain, fitting), pods):
        inside = fitting.only(domain[fitting.nodes] == each)
        yield from parts(inside, below[:-1], count, several)


class HyperNode:
    """Volcano's network-topology-aware plugin with binpack.

    Tier by tier, the hypernodes that hold the whole job; of those of the lowest tier
    the one that would be fullest. A job that none holds goes to the leaf of the node
    that binpack likes best, then on in the same SuperPoD, then elsewhere: its pods like
    hypernodes in which the job already is. Pods that come alone weigh how full their
    node, their leaf and their SuperPoD would be, higher tiers fading.
    """

    wiring: Wiring = LOOSE
    shape = ""

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*."""
        del job
        if fitting.room.sum() < pods:
            return None
        tiers = tiers_of(fitting.cluster)
        if pods == 1:
            return cheapest(fitting, 1, _Alone(fitting, tiers))
        for domain in tiers:
            rooms = room_in(domain, fitting)
            if rooms.max() >= pods:
                fill = fullness(fitting, domain, pods * fitting.asked)
                best = int(np.where(rooms >= pods, fill, -1.0).argmax())
                inside = fitting.only(domain[fitting.nodes] == best)
                return cheapest(inside, pods, _Fullest(inside))
        if not tiers:
            return cheapest(fitting, pods, _Fullest(fitting))
        return _leaf_by_leaf(fitting, tiers, pods)


def fullness(fitting: FittingNodes, domain: Ints, chips: int) -> NDArray[np.float64]:
    """How full each domain would be with so many more chips in use."""
    cluster = fitting.cluster
    (own,) = of_product(cluster, fitting.request.product).nonzero()
    have, free = (
        np.bincount(domain[own], counts(masks[own]), minlength=domain.max() + 1)
        for masks in (cluster.healthy, cluster.healthy & cluster.free)
    )
    return (have - free + chips) / np.maximum(have, 1)


class _Fullest:
    """Binpack's costs of the nodes of a floor."""

    def __init__(self, fitting: FittingNodes) -> None:
        self._asked, self._have = fitting.asked, fitting.healthy

    def __call__(self, at: Ints, usable: Masks) -> Costs:
        have = self._have[at]
        return -(have - counts(usable) + self._asked) * FULL / have


class _Alone(_Fullest):
    """The same, with how full the parts of the network would be."""

    def __init__(self, fitting: FittingNodes, tiers: tuple[Ints, ...]) -> None:
        super().__init__(fitting)
        weights = FADING ** np.arange(len(tiers))
        self._above = np.zeros(len(fitting.nodes))
        for domain, weight in zip(tiers, weights, strict=True):
            fill = fullness(fitting, domain, fitting.asked)[domain[fitting.nodes]]
            self._above += FULL * weight / weights.sum() * fill

    def __call__(self, at: Ints, usable: Masks) -> Costs:
        return super().__call__(at, usable) - self._above[at]


def _leaf_by_leaf(
    fitting: FittingNodes, tiers: tuple[Ints, ...], pods: int
) -> list[Spot]:
    """The best node's lowest domain, then others, near ones first."""
    found: list[Spot] = []
    near = fitting
    while len(found) < pods:
        here = _around_best(near, tiers[0])
        wanted = min(pods - len(found), int(here.room.sum()))
        found += cheapest(here, wanted, _Fullest(here)) or ()
        last = here.nodes[:1]
        fitting = fitting.only(~np.isin(fitting.nodes, here.nodes))
        near = _nearest(fitting, tiers[1:], last)
    return found


def _around_best(fitting: FittingNodes, lowest: Ints) -> FittingNodes:
    """The nodes in the lowest domain of the best one."""
    best = int(
        _Fullest(fitting)(np.arange(len(fitting.nodes)), fitting.usable).argmin()
    )
    here = lowest[fitting.nodes]
    return fitting.only(here == here[best])


def _nearest(fitting: FittingNodes, above: Iterable[Ints], last: Ints) -> FittingNodes:
    """The nodes that share the lowest tier with *last*; all where none does."""
    for domain in above:
        near = domain[fitting.nodes] == domain[last]
        if near.any():
            return fitting.only(near)
    return fitting
