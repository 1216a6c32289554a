"""Which jobs use the links between the leaf switches and the spine.

A job that holds chips under two leaves, or under one and elsewhere, *crosses* them.
Per leaf this counts the jobs that cross it and what the pods under it say; every count
is kept as pods come and go, and going takes back exactly what coming did.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.owner import Owner
from ringleaf.model.placement import NO_MARK, JobType, LeafAnnotation, LeafState

NOWHERE: Final = -1
"""The index of the leaf or SuperPoD of a node that stands in none."""


class Leaf(Struct, frozen=True):
    """One leaf switch as it is described to the cluster.

    ``state``, ``healthy`` and ``crossed_by`` are what is known of it besides the pods
    that the cluster sees. ``order`` is its place among the leaves where those are
    listed; without one it comes after them, as its nodes come.
    """

    name: str
    address: str | None = None
    state: LeafState = LeafState.IDLE
    healthy: bool = True
    crossed_by: tuple[JobType, ...] = ()
    order: int | None = None


class _Pods:
    """The pods of one job: how many under each leaf, and what they say it is."""

    __slots__ = ("kinds", "n_common", "n_foundation", "n_pods", "places")

    def __init__(self) -> None:
        self.places: dict[int, int] = {}
        self.n_pods = self.n_common = self.n_foundation = 0
        self.kinds = False, False
        """Whether it counts as other than common, and as a foundation job."""

    @property
    def crosses(self) -> bool:
        """Whether it has pods in several places."""
        return len(self.places) > 1


class UplinkUsage:
    """Counts per leaf: jobs that cross it, and pods that say something of it."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.crossing = np.zeros(len(leaves), np.int64)
        self.foundation = np.zeros(len(leaves), np.int64)
        self.uncommon = np.zeros(len(leaves), np.int64)
        self._said = np.zeros((len(LeafState), len(leaves)), np.int64)
        self._n_unhealthy = np.zeros(len(leaves), np.int64)
        self._jobs: dict[Owner, _Pods] = {}
        for i, leaf in enumerate(leaves):
            self.crossing[i] = len(leaf.crossed_by)
            self.foundation[i] = leaf.crossed_by.count(JobType.FOUNDATION)
            self.uncommon[i] = len(leaf.crossed_by)
            self.uncommon[i] -= leaf.crossed_by.count(JobType.COMMON)
            self._said[leaf.state, i] = 1
            self._n_unhealthy[i] = not leaf.healthy

    @property
    def state(self) -> NDArray[np.int64]:
        """The state of every leaf: shared if any pod says so, else exclusive."""
        shared = self._said[LeafState.SHARED]
        exclusive = self._said[LeafState.EXCLUSIVE]
        return np.where(shared > 0, 1, np.where(exclusive > 0, 2, 0))

    @property
    def unhealthy(self) -> NDArray[np.bool_]:
        """The leaves that are not healthy: some job there exceeds its budget."""
        return self._n_unhealthy > 0

    def jobs_crossing(self, leaf: int) -> list[str]:
        """The names of what crosses *leaf*, as far as they are known."""
        return self.crossings().get(leaf, [])

    def crossings(self) -> dict[int, list[str]]:
        """Leaf -> the names of jobs and holds that cross it, in their order."""
        found: dict[int, list[str]] = {}
        crossing = (job for job, own in self._jobs.items() if own.crosses)
        for job in sorted(crossing, key=str):
            for leaf in self._jobs[job].places:
                found.setdefault(leaf, []).append(str(job))
        return found

    def count(
        self, job: Owner, leaf: int, chips: int, mark: LeafAnnotation, by: int
    ) -> None:
        """A pod of *job* comes to a node under *leaf* (``by`` 1), or goes (``by`` -1).

        It may be under no leaf. One without chips does not use the links, unless it
        says so. What its job is follows from the marks of all its pods.
        """
        if not chips and mark == NO_MARK:
            return
        own = self._jobs.get(job)
        if own is None:
            own = self._jobs[job] = _Pods()
        before = own.kinds
        own.n_pods += by
        own.n_common += by * (mark.job_type is JobType.COMMON)
        own.n_foundation += by * (mark.job_type is JobType.FOUNDATION)
        own.kinds = after = own.n_common < own.n_pods, own.n_foundation > 0
        if before != after:
            self._change_kinds(own, before, after)
        places = own.places
        pods = places.get(leaf, 0)
        if pods + by:
            places[leaf] = pods + by
        else:
            del places[leaf]
        if not (pods and pods + by):
            self._change_places(own, leaf, by)
        if leaf != NOWHERE:
            self._said[mark.state, leaf] += by
            self._n_unhealthy[leaf] += by * (not mark.healthy)
        if not places:
            del self._jobs[job]

    def _change_places(self, own: "_Pods", leaf: int, by: int) -> None:
        """A job has its first pod under *leaf*, or has none there any more."""
        uncommon, foundation = own.kinds
        others = [other for other in own.places if other != leaf]
        for each in [leaf] * bool(others) + others * (len(others) == 1):
            if each != NOWHERE:
                self.crossing[each] += by
                self.foundation[each] += by * foundation
        if leaf != NOWHERE:
            self.uncommon[leaf] += by * uncommon

    def _change_kinds(
        self, own: "_Pods", before: tuple[bool, bool], after: tuple[bool, bool]
    ) -> None:
        """What the marks of its pods make of a job has changed."""
        for leaf in own.places:
            if leaf != NOWHERE:
                self.uncommon[leaf] += after[0] - before[0]
                self.foundation[leaf] += (after[1] - before[1]) * own.crosses
