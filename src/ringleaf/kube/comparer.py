"""Compares the engine's state with the objects: the chips of every pod.

Both say the same once all news has been heard; where they do not, something was missed,
and the engine begins anew from the objects. It is done a few jobs at a time.
"""

import asyncio
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ringleaf.engine.engine import Engine
from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.decider import Decider
from ringleaf.kube.gang_members import place_of
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.metrics import Metrics
from ringleaf.kube.pod_state import PodState
from ringleaf.model.cluster import Cluster, Holding
from ringleaf.model.mask import chips_of, mask_of
from ringleaf.model.topology import quoted

COMPARE_S: Final = 60.0
"""How often the engine is compared with the objects, while something happens."""
LOOK_AGAIN_S: Final = 0.01
"""How long after news that was not heard yet the comparison looks again."""
MAX_NAMED: Final = 3
"""Differences that are named."""
JOBS_AT_ONCE: Final = 200
"""Jobs that are compared before others have their turn."""


def nodes_that_differ(cache: ClusterCache, engine: Engine) -> Iterator[str]:
    """Nodes of which the engine knows something else; in one line each."""
    cluster = engine.view.cluster
    there = cluster.index.keys()
    for name in sorted(cache.nodes.keys() ^ there):
        knows = "knows" if name in there else "does not know"
        yield f"the engine {knows} node {quoted(name)}, the API server says otherwise"
    for node in engine.nodes:
        facts = cache.nodes.get(node.name)
        if facts is not None and _offer(facts.node) != _offer(node):
            yield f"node {quoted(node.name)} is not what its object and reports say"
    held = _held(cluster)
    for at in np.flatnonzero(cluster.taken & ~held).tolist():
        lost = list(chips_of(cluster.taken.item(at) & ~held.item(at)))
        yield f"chips {lost} of node {quoted(cluster.names[at])} are held by no pod"
    wrong = cluster.free != cluster.pool & cluster.offered & ~cluster.taken
    for at in np.flatnonzero(wrong).tolist():
        free = list(chips_of(cluster.free.item(at)))
        yield f"chips {free} of node {quoted(cluster.names[at])} count as free"


_offer: Final = attrgetter(
    *("product", "chips", "offers", "faulty", "network_faulty", "ready", "cordoned"),
    "allocatable",
)
"""What of a node decides which of its chips are given, and how many count."""


def _held(cluster: Cluster) -> NDArray[np.uint64]:
    """The chips of every node that pods and reservations hold."""
    masks = [0] * len(cluster)
    for holdings in cluster.holdings.values():
        for each in holdings:
            masks[each.node] |= each.chips
    return np.array(masks, np.uint64)


def jobs_that_differ(
    cache: ClusterCache, engine: Engine, names: Iterable[str]
) -> Iterator[str]:
    """What the engine has wrong of jobs; in one line each."""
    groups, nodes, cluster = cache.gangs, cache.nodes, engine.view.cluster
    for name in names:
        group = groups.get(name)
        if group is not None and not _is_one_pod_in_place(group, nodes, cluster):
            yield from _job_differs(group, cache, cluster)


def _is_one_pod_in_place(
    group: GangState, nodes: Container[str], cluster: Cluster
) -> bool:
    """Whether a job is one pod without chips that is where the engine knows it.

    Or with chips that it says are its own, and that are not free. Nearly all jobs are,
    so they are looked at in few steps; of any other job nothing is known by this.
    """
    held = cluster.holdings.get(group.name)
    if held is None or len(held) != 1 or len(group.pods) != 1 or not group.reported.job:
        return False
    (holding,), (pod,) = held, group.pods.values()
    if pod.assumed is not None or not pod.holds or pod.number != holding.replica:
        return False
    node = pod.node
    if cluster.names[holding.node] != node or node not in nodes:
        return False
    own = mask_of(pod.chips) if pod.chips else 0
    return holding.chips == own and not (own and cluster.free.item(holding.node) & own)


def strangers(cache: ClusterCache, engine: Engine) -> Iterator[str]:
    """Jobs that hold something in the engine, and of which there is no object."""
    for name in engine.view.cluster.holdings:
        if isinstance(name, str) and name not in cache.gangs:
            yield f"job {quoted(name)} holds chips, and is not there"


def _job_differs(
    group: GangState, cache: ClusterCache, cluster: Cluster
) -> Iterator[str]:
    held = {
        pod.number: pod
        for pod in group.pods.values()
        if (pod.holds or pod.assumed is not None) and place_of(pod) in cache.nodes
    }
    if not group.reported.job:  # its pods are set aside, and their nodes give no chips
        held = {}
    known = {each.replica: each for each in cluster.holdings.get(group.name, ())}
    where = f"job {quoted(group.name)}"
    for number in sorted(known.keys() - held.keys()):
        node = cluster.names[known[number].node]
        yield f"{where}: pod {number} holds chips of node {quoted(node)}, and does not"
    for own, pod in held.items():
        told = _pod_differs(pod, None if own is None else known.get(own), cluster)
        if told:
            yield f"{where}: pod {quoted(pod.name)} {told}"


def _pod_differs(pod: PodState, holding: Holding | None, cluster: Cluster) -> str:
    node = place_of(pod)
    chips = pod.chips or () if pod.assumed is None else pod.assumed.chips
    if holding is None:
        return f"is on node {quoted(node)}, and is not in the books"
    if cluster.names[holding.node] != node:
        return f"is on node {quoted(node)}, and another in the books"
    own = mask_of(chips)
    if holding.chips & ~own or cluster.free.item(holding.node) & own:
        free = _listed(cluster.free.item(holding.node) & own)
        return f"holds chips {_listed(own)} of node {quoted(node)}, free: {free}"
    return ""


def _listed(mask: int) -> str:
    return ", ".join(map(str, chips_of(mask))) or "none"


def slices(names: Collection[str]) -> Iterator[list[str]]:
    """Names, a few at a time."""
    listed = list(names)
    for start in range(0, len(listed), JOBS_AT_ONCE):
        yield listed[start : start + JOBS_AT_ONCE]


Step = Callable[[ClusterCache, Engine], Iterable[str]]
"""A step of the comparison: the differences that it finds."""


class Comparison:
    """Compares the engine with the objects now and then, while something happens.

    Args:
        decider: Decides, over the cache of the objects.
        metrics: Counts differences.
        say: Writes a line of the log.
        rebuilt: Is called when the engine begins anew.

    """

    def __init__(
        self,
        decider: Decider,
        metrics: Metrics,
        say: Callable[..., None],
        rebuilt: Callable[[], None],
    ) -> None:
        self._decider, self._metrics = decider, metrics
        self._say, self._rebuilt = say, rebuilt
        self.is_urgent = asyncio.Event()
        """Set when the engine is to be compared with the objects soon."""
        self.compared = 0
        """What had been heard at the last comparison."""
        self.steps: list[Step] = []
        """Steps that are left, the next one last."""

    async def run(self) -> None:
        """Compare, for ever.

        After a hand-over they are compared whether or not anything was heard since.
        """
        while True:
            urgent = False
            with suppress(TimeoutError):
                async with asyncio.timeout(COMPARE_S):
                    urgent = await self.is_urgent.wait()
            self.is_urgent.clear()
            if urgent or self._metrics.n_heard != self.compared:
                self.compared = self._metrics.n_heard
                await self._compare_once()

    async def _compare_once(self) -> None:
        """Compare everything, a few jobs at a time; others have turns in between.

        Steps are taken where all news was heard. While much happens there may be no
        such moment between two cycles, so cycles take steps at their end as well.
        """
        groups = slices(self._decider.cache.gangs)
        jobs = [partial(jobs_that_differ, names=few) for few in groups]
        self.steps = [*reversed(jobs), strangers, nodes_that_differ]
        while self.steps:
            can_look = self._decider.may_be_compared
            self.take_step()
            await asyncio.sleep(0 if can_look else LOOK_AGAIN_S)

    def take_step(self) -> bool:
        """Take one step, if one is due; whether the engine begins anew."""
        if not (self.steps and self._decider.may_be_compared):
            return False
        step = self.steps.pop()
        found = [*islice(step(self._decider.cache, self._decider.engine), MAX_NAMED)]
        if not found:
            return False
        self.steps.clear()
        self._say("cache differs from the objects", what="; ".join(found))
        self._metrics.differences += 1
        self._decider.begin_anew()
        self._rebuilt()
        return True
