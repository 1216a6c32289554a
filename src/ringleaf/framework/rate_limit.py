"""The eviction rate limit: how many pods may be deleted because of faults in a while.

A storm of reports must not empty a cluster: deletions beyond the limit wait.
"""

from collections import deque
from collections.abc import Iterable
from math import inf
from typing import Final

from ringleaf.model.fault import Deletion
from ringleaf.model.settings import RepairSettings

EVERYTHING: Final = 100
"""Percent that may be deleted where there is no limit."""


class EvictionRateLimit:
    """Counts deletions in a window of time that ends now."""

    def __init__(self) -> None:
        self.deletions: deque[Deletion] = deque()
        """Those of the window, and maybe older ones, the first of them first.

        One of no job is the sum of all up to then, of which there were too many.
        """
        self.waiting: dict[str, None] = {}
        """Jobs with faulty pods that wait for the limit."""
        self.n_pods: int | None = None
        """How many pods there are, once that was asked in a cycle."""

    def count(self, at: float, job: str, pods: int) -> None:
        """*pods* of *job* were deleted."""
        self.deletions.append(Deletion(at, job, pods))

    def restore(self, deletions: Iterable[Deletion], now: float) -> None:
        """Adopt deletions that were written down; idempotent.

        That is the number, whatever the record of a repair may have made believe.
        """
        told = [Deletion(min(d.at, now), d.job, d.pods) for d in deletions]
        same = {(each.at, each.job) for each in told}
        summed = _summed_until(told)
        others = [
            d
            for d in self.deletions
            if d.job and d.at > summed and (d.at, d.job) not in same
        ]
        self.deletions = deque(sorted([*others, *told]))

    def count_once(self, at: float, job: str, pods: int) -> None:
        """The record of a repair says that so many were; it may be known already."""
        known = any((each.at, each.job) == (at, job) for each in self.deletions)
        if not known and at > _summed_until(self.deletions):
            self.deletions = deque(sorted([*self.deletions, Deletion(at, job, pods)]))

    def recent(self, now: float, rules: RepairSettings) -> int:
        """Pods that were deleted within the window."""
        while self.deletions and self.deletions[0].at <= now - rules.brake_s:
            self.deletions.popleft()
        return sum(each.pods for each in self.deletions)

    def allows(self, pods: int, of: int, now: float, rules: RepairSettings) -> bool:
        """Whether *pods* more may be deleted, of the pods that there are.

        The first job in a window always may: one that is larger than the limit would
        never be repaired. With a limit of 100 % nothing is refused: more pods than
        exist can be deleted within the window.
        """
        recent = self.recent(now, rules)
        if not pods or not recent or rules.brake_percent >= EVERYTHING:
            return True
        return 100 * (recent + pods) <= rules.brake_percent * of

    def next_at(self, rules: RepairSettings) -> float:
        """When the first of those deletions is forgotten; only while there are any."""
        return self.deletions[0].at + rules.brake_s


def _summed_until(deletions: Iterable[Deletion]) -> float:
    """Until when deletions are a sum, and not told one by one."""
    return max((each.at for each in deletions if not each.job), default=-inf)
