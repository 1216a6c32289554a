"""Who uses the links between the leaf switches and the spine.

A job that holds chips under two leaves, or under one and elsewhere, *crosses* them.
Per leaf this counts the jobs that cross it and what the pods under it say; every count
is kept as pods come and go, and going takes back exactly what coming did.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ringleaf.model.placement import JobType, LeafState, Mark

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


class Spine:
    """Counts per leaf: jobs that cross it, and pods that say something of it."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.crossing = np.zeros(len(leaves), np.int64)
        self.foundation = np.zeros(len(leaves), np.int64)
        self.uncommon = np.zeros(len(leaves), np.int64)
        self._said = np.zeros((len(LeafState), len(leaves)), np.int64)
        self._sick = np.zeros(len(leaves), np.int64)
        self._pods: dict[str, dict[int, int]] = {}
        for i, leaf in enumerate(leaves):
            self.crossing[i] = len(leaf.crossed_by)
            self.foundation[i] = leaf.crossed_by.count(JobType.FOUNDATION)
            self.uncommon[i] = len(leaf.crossed_by)
            self.uncommon[i] -= leaf.crossed_by.count(JobType.COMMON)
            self._said[leaf.state, i] = 1
            self._sick[i] = not leaf.healthy

    @property
    def state(self) -> NDArray[np.int64]:
        """The state of every leaf: shared if any pod says so, else exclusive."""
        shared, exclusive = (
            self._said[LeafState.SHARED],
            self._said[LeafState.EXCLUSIVE],
        )
        return np.where(shared > 0, 1, np.where(exclusive > 0, 2, 0))

    @property
    def sick(self) -> NDArray[np.bool_]:
        """The leaves that are not healthy: some job there exceeds its budget."""
        return self._sick > 0

    def jobs_crossing(self, leaf: int) -> list[str]:
        """The names of the jobs that cross *leaf*, as far as they are known."""
        return self.crossings().get(leaf, [])

    def crossings(self) -> dict[int, list[str]]:
        """Leaf -> the names of the jobs that cross it, in their order."""
        found: dict[int, list[str]] = {}
        for job in sorted(job for job, own in self._pods.items() if len(own) > 1):
            for leaf in self._pods[job]:
                found.setdefault(leaf, []).append(job)
        return found

    def enter(self, job: str, leaf: int, mark: Mark) -> None:
        """A pod of *job* comes to a node under *leaf* (or under none)."""
        places = self._pods.setdefault(job, {})
        new = leaf not in places
        places[leaf] = places.get(leaf, 0) + 1
        if new:
            others = [other for other in places if other != leaf]
            self._change(leaf, others, mark, 1)
        self._say(leaf, mark, 1)

    def leave(self, job: str, leaf: int, mark: Mark) -> None:
        """A pod of *job* goes; the inverse of ``enter``."""
        places = self._pods[job]
        places[leaf] -= 1
        if not places[leaf]:
            del places[leaf]
            self._change(leaf, list(places), mark, -1)
        if not places:
            del self._pods[job]
        self._say(leaf, mark, -1)

    def _change(self, leaf: int, others: list[int], mark: Mark, by: int) -> None:
        """The job comes to *leaf*, or leaves it, while it holds *others*."""
        crossed = [leaf] * bool(others) + others * (len(others) == 1)
        for each in crossed:
            if each != NOWHERE:
                self.crossing[each] += by
                self.foundation[each] += by * (mark.job_type is JobType.FOUNDATION)
        if leaf != NOWHERE:
            self.uncommon[leaf] += by * (mark.job_type is not JobType.COMMON)

    def _say(self, leaf: int, mark: Mark, by: int) -> None:
        if leaf != NOWHERE:
            self._said[mark.state, leaf] += by
            self._sick[leaf] += by * (not mark.healthy)
