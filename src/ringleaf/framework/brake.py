"""The brake: how many pods may be deleted because of faults in a while.

A storm of reports must not empty a cluster: whoever comes after the limit waits.
"""

from collections import deque
from typing import Final

from ringleaf.model.settings import Repairs

EVERYTHING: Final = 100
"""Percent that may be deleted where there is no brake."""


class Brake:
    """Counts deletions in a window of time that ends now."""

    def __init__(self) -> None:
        self._deleted: deque[tuple[float, str, int]] = deque()
        self.engaged = False
        """Whether somebody waits for it."""

    def count(self, at: float, job: str, pods: int) -> None:
        """*pods* of *job* were deleted."""
        self._deleted.append((at, job, pods))

    def known(self, at: float, job: str, pods: int) -> None:
        """It was written down that so many were; who hears it twice hears it once."""
        if all(each[:2] != (at, job) for each in self._deleted):
            self._deleted = deque(sorted([*self._deleted, (at, job, pods)]))

    def recent(self, now: float, rules: Repairs) -> int:
        """Pods that were deleted within the window."""
        while self._deleted and self._deleted[0][0] <= now - rules.brake_s:
            self._deleted.popleft()
        return sum(pods for _at, _job, pods in self._deleted)

    def allows(self, pods: int, of: int, now: float, rules: Repairs) -> bool:
        """Whether *pods* more may be deleted, of the pods that there are.

        The first job in a window always may: one that is larger than the limit would
        never be repaired. All of them may where all pods may be deleted: in a while
        that can be more pods than there are at once.
        """
        recent = self.recent(now, rules)
        if not pods or not recent or rules.brake_percent >= EVERYTHING:
            return True
        return 100 * (recent + pods) <= rules.brake_percent * of

    def next_at(self, rules: Repairs) -> float:
        """When the first of those deletions is forgotten; only while there are any."""
        return self._deleted[0][0] + rules.brake_s
