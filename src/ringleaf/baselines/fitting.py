"""What a baseline chooses from: the nodes that can take a pod, and how many each.

*Loose* wiring takes any free chips of a node, lowest first, as schedulers do that count
chips. *Tight* wiring takes what the product's rule allows: the rows of the catalogue.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, Protocol, runtime_checkable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ringleaf.framework.context import Context
from ringleaf.model.arrays import Ints
from ringleaf.model.cluster import Cluster, Masks
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network
from ringleaf.model.placement import NO_MARK, LeafAnnotation
from ringleaf.model.product import Row
from ringleaf.model.settings import Settings
from ringleaf.policies.chips import NEVER, TABLE_CHIPS, read, table_of
from ringleaf.policies.fit import (
    NOT_EXCLUDED,
    Excluded,
    Request,
    allowed_chips,
    eligible,
)

Costs = NDArray[np.float64]
"""A number for each node, lower is better; infinite where no pod fits."""


class Wiring(Protocol):
    """Which chips of a node a pod may have together."""

    def room(self, request: Request, usable: Masks) -> Ints:
        """How many pods fit each of many masks."""

    def taken(self, request: Request, usable: int) -> int:
        """The chips of a pod on a node that fits it."""


class Loose:
    """Any free chips of a node."""

    def room(self, request: Request, usable: Masks) -> Ints:
        """The number of pods that there are chips for."""
        return np.bitwise_count(usable).astype(np.int64) // request.row.asked

    def taken(self, request: Request, usable: int) -> int:
        """The lowest chips."""
        taken = 0
        for _chip in range(request.row.asked):
            taken |= usable & -usable
            usable &= usable - 1
        return taken


@lru_cache(maxsize=256)
def rooms_of(row: Row, n_chips: int) -> Ints:
    """How many pods every mask of a node serves."""
    return served(row, n_chips, np.arange(1 << n_chips, dtype=np.uint64))


def served(row: Row, n_chips: int, masks: Masks) -> Ints:
    """How many pods a row serves of many masks, one after the other."""
    masks, table = masks.copy(), table_of(row, n_chips)
    pods = np.zeros(len(masks), np.int64)
    (open_,) = (table.ranks(masks) != NEVER).nonzero()
    while len(open_):
        pods[open_] += 1
        masks[open_] &= ~read(row, n_chips, masks[open_]).taken
        open_ = open_[table.ranks(masks[open_]) != NEVER]
    return pods


class Tight:
    """Chips that the product's rule allows together."""

    def room(self, request: Request, usable: Masks) -> Ints:
        """The number of pods that the rule can serve one after the other."""
        if request.product.chips <= TABLE_CHIPS:
            return rooms_of(request.row, request.product.chips)[usable]
        masks, which = np.unique(usable, return_inverse=True)
        return served(request.row, request.product.chips, masks)[which]

    def taken(self, request: Request, usable: int) -> int:
        """The chips that the rule likes best."""
        return request.table.choose(usable)


LOOSE: Final = Loose()
TIGHT: Final = Tight()


class FittingNodes(Struct, frozen=True):
    """The nodes of a cluster that can take pods of one request.

    Args:
        cluster: The cluster.
        request: What one pod asks, whatever the network.
        wiring: Which chips may go together.
        settings: What the operator chose.
        nodes: The nodes that can take a pod now, by name.
        usable: Their chips that are free and healthy.
        room: How many pods each can take.

    """

    cluster: Cluster
    request: Request
    wiring: Wiring
    settings: Settings
    nodes: Ints
    usable: Masks
    room: Ints

    @property
    def asked(self) -> int:
        """Chips of one pod."""
        return self.request.row.asked

    @property
    def healthy(self) -> Ints:
        """How many chips of each node work."""
        within = allowed_chips(self.cluster, self.request)[self.nodes]
        return np.bitwise_count(within).astype(np.int64)

    @property
    def leaf(self) -> Ints:
        """The leaf of each node."""
        return self.cluster.leaf[self.nodes]

    def only(self, where: NDArray[np.bool_] | NDArray[np.intp]) -> "FittingNodes":
        """These nodes without those that are not selected."""
        return replace(
            self,
            nodes=self.nodes[where],
            usable=self.usable[where],
            room=self.room[where],
        )


class Spot(Struct, frozen=True):
    """The node and chips of one pod, and what is noted of its leaf."""

    node: int
    chips: int
    mark: LeafAnnotation = NO_MARK


Spots = Sequence[Spot]


class Chooser(Protocol):
    """Another scheduler's rule.

    It is a function of the floor and the job: asked the same it answers the same, and
    dice are made anew from a seed and the name of the job.
    """

    wiring: Wiring
    """Which chips it takes together."""
    shape: str
    """What it wants besides room, in words; empty where room is enough."""

    def choose(self, fitting: FittingNodes, job: Job, pods: int) -> Spots | None:
        """Places for so many pods of *job*, in the order of ranks; None if too few."""


@runtime_checkable
class Planner(Protocol):
    """A rule that also says which jobs to place, and not only where."""

    def allocate(self, ctx: Context) -> None:
        """Choose among the pending jobs, and place them."""


@lru_cache(maxsize=1024)
def without_network(request: Request) -> Request:
    """The same request of a job that no network rule places."""
    return replace(request, network=Network.NONE)


def fitting_nodes(
    cluster: Cluster,
    request: Request,
    wiring: Wiring,
    settings: Settings,
    excluded: Excluded = NOT_EXCLUDED,
) -> FittingNodes:
    """The nodes that can take pods of *request*, as *wiring* allows."""
    right = eligible(cluster, request)
    for nodes_barred in excluded.values():
        right[nodes_barred] = False
    (nodes,) = right.nonzero()
    usable = cluster.free[nodes] & allowed_chips(cluster, request)[nodes]
    room = wiring.room(request, usable)
    if request.demand.resources:
        room = np.minimum(
            room, cluster.node_table.resources.pods_that_fit(request.demand)[nodes]
        )
    (some,) = room.nonzero()
    nodes, usable, room = nodes[some], usable[some], room[some]
    return FittingNodes(cluster, request, wiring, settings, nodes, usable, room)


def spots_on(fitting: FittingNodes, counts: Iterable[tuple[int, int]]) -> list[Spot]:
    """So many pods on each of some nodes, given by their places on the floor."""
    found: list[Spot] = []
    for at, pods in counts:
        node, usable = fitting.nodes.item(at), fitting.usable.item(at)
        for _pod in range(pods):
            taken = fitting.wiring.taken(fitting.request, usable)
            usable &= ~taken
            found.append(Spot(node, taken))
    return found


def cheapest(
    fitting: FittingNodes, pods: int, costs: Callable[[Ints, Masks], Costs]
) -> list[Spot] | None:
    """One pod after the other where it costs least; None if too few find room.

    *costs* tells of some nodes, given by their places on the floor, and the masks that
    are usable there. Among equals the first node goes first.
    """
    if fitting.room.sum() < pods:
        return None
    now = costs(np.arange(len(fitting.nodes)), fitting.usable)
    if pods == 1:
        return spots_on(fitting, [(int(now.argmin()), 1)])
    if fitting.room.max() == 1:
        order = np.argsort(now, kind="stable")[:pods]
        return spots_on(fitting, ((at, 1) for at in order.tolist()))
    return _in_turn(fitting, pods, costs, now)


def _in_turn(
    fitting: FittingNodes, pods: int, costs: Callable[[Ints, Masks], Costs], now: Costs
) -> list[Spot]:
    """The same where a node can take several: what it has left costs something else."""
    usable, room = fitting.usable.copy(), fitting.room.copy()
    found = []
    for _pod in range(pods):
        at = int(now.argmin())
        taken = fitting.wiring.taken(fitting.request, usable.item(at))
        found.append(Spot(fitting.nodes.item(at), taken))
        usable[at] = usable.item(at) & ~taken
        room[at] -= 1
        here = np.array([at])
        now[at] = costs(here, usable[here]).item() if room.item(at) else np.inf
    return found
