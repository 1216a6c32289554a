"""What reservations may cost: a share of the chip-time of the last 24 hours.

A reservation keeps chips idle from the moment they are free until its job starts. Jobs
that do not state a running time make that long, and a cluster that is drained for one
large job after the other is hardly used. The budget adds up the chip-seconds; once they
reach the share that the configuration allows, reservations release what they keep, and
none is made until half of the budget is available again.
"""

from collections import deque
from math import inf
from typing import Final

WINDOW_S: Final = 86_400.0
"""What was kept idle longer ago does not count."""
BUCKET_S: Final = 900.0
"""Chip-seconds are added up in buckets; one counts until all of it is too old."""
RESUME: Final = 0.5
"""The share of the budget that may be used when reservations are made again."""
CLOSE_S: Final = 0.001
"""A budget that lasts for a shorter time is used up: timers may be early."""


class IdleBudget:
    """Chip-seconds that reservations kept idle in the last 24 hours."""

    def __init__(self) -> None:
        self._buckets: deque[tuple[float, float]] = deque()
        """The end of each bucket, and its chip-seconds; the oldest first."""
        self._now = -inf
        self.used = 0.0
        """The sum of all buckets."""
        self.kept_idle = 0.0
        """Chip-seconds kept idle since the start."""
        self.is_spent = False
        """Whether reservations are suspended."""

    def count(self, now: float, idle: int) -> None:
        """Add up: reservations kept *idle* chips from the last call until *now*."""
        begin, self._now = self._now, max(now, self._now)
        if begin == -inf or not idle:
            self._forget()
            return
        self.kept_idle += idle * (self._now - begin)
        while begin < self._now:
            bucket = (begin // BUCKET_S + 1) * BUCKET_S
            end = min(bucket, self._now)
            self._add(bucket, idle * (end - begin))
            begin = end
        self._forget()

    def kept_until(self, now: float, idle: int) -> float:
        """Chip-seconds kept idle until *now*, if *idle* are since the last count."""
        return self.kept_idle + (idle * max(0.0, now - self._now) if idle else 0.0)

    def _add(self, bucket: float, amount: float) -> None:
        if self._buckets and self._buckets[-1][0] == bucket:
            amount += self._buckets.pop()[1]
        self._buckets.append((bucket, amount))

    def _forget(self) -> None:
        """Drop buckets that are too old."""
        while self._buckets and self._buckets[0][0] + WINDOW_S <= self._now:
            self._buckets.popleft()
        self.used = sum(amount for _end, amount in self._buckets)

    def update(self, limit: float, idle: int) -> float:
        """Suspend reservations, or allow them again; gives when to look again.

        Args:
            limit: The chip-seconds that may be kept idle in 24 hours.
            idle: The chips that reservations keep idle now.

        """
        if self.is_spent:
            self.is_spent = self.used > RESUME * limit or not limit
        elif self.used >= limit - idle * CLOSE_S:
            self.is_spent = True
        if self.is_spent:
            return self.resumes_at(limit)
        return self._now + (limit - self.used) / idle if idle else inf

    def resumes_at(self, limit: float) -> float:
        """When half of *limit* will be available again, if nothing is added."""
        left, until = self.used, inf
        for end, part in self._buckets:
            if left <= RESUME * limit:
                break
            left -= part
            until = end + WINDOW_S
        return until
