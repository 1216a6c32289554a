"""What reservations may cost: a share of the chip-time of the last 24 hours.

A reservation keeps chips idle from the moment they are free until its job starts. Jobs
that do not state a running time make that long, and a cluster that is drained for one
large job after the other is hardly used. The budget adds up the chip-seconds; once they
reach the share that the configuration allows, reservations release what they keep, and
none is made until half of the budget is available again.
"""

from collections import deque
from copy import copy
from enum import StrEnum
from math import inf
from typing import Final

from msgspec import Struct

WINDOW_S: Final = 86_400.0
"""What was kept idle longer ago does not count."""
BUCKET_S: Final = 900.0
"""Chip-seconds are added up in buckets; one counts until all of it is too old."""
MOST_BUCKETS: Final = int(WINDOW_S / BUCKET_S) + 1
RESUME: Final = 0.5
"""The share of the budget that may be used when reservations are made again."""
CLOSE_S: Final = 0.001
"""A budget that lasts for a shorter time is used up: timers may be early."""
MOST_ENDED: Final = 100
"""The reservations that are remembered after they ended, the last ones."""


class Outcome(StrEnum):
    """How a reservation ended."""

    STARTED = "started"
    SPENT = "budget-spent"
    RELEASED = "released"
    """Its job is gone or needs it no more, or the rules or the nodes changed."""


class EndedReservation(Struct, frozen=True):
    """A reservation that was made because a job waited long, and has ended.

    Args:
        job: The job that it was for.
        since: When it was made.
        until: When it ended.
        kept_idle: The chip-seconds that it kept idle.
        outcome: How it ended.

    """

    job: str
    since: float
    until: float
    kept_idle: float
    outcome: Outcome


class IdleAccount(Struct, frozen=True):
    """What reservations kept idle, for the next leader.

    Args:
        buckets: The end of each bucket, and its chip-seconds; the oldest first.
        is_spent: Whether reservations are suspended.
        ended: The last reservations that ended, the oldest first.

    """

    buckets: tuple[tuple[float, float], ...] = ()
    is_spent: bool = False
    ended: tuple[EndedReservation, ...] = ()


class IdleBudget:
    """Chip-seconds that reservations kept idle in the last 24 hours."""

    def __init__(self) -> None:
        self._buckets: deque[tuple[float, float]] = deque()
        """The end of each bucket, and its chip-seconds; the oldest first."""
        self.now = -inf
        """Until when it was added up."""
        self.used = 0.0
        """The sum of all buckets."""
        self.kept_idle = 0.0
        """Chip-seconds kept idle since the start."""
        self.is_spent = False
        """Whether reservations are suspended."""
        self._ended: deque[EndedReservation] = deque(maxlen=MOST_ENDED)

    @property
    def account(self) -> IdleAccount:
        """What the next leader has to know."""
        return IdleAccount((*self._buckets,), self.is_spent, (*self._ended,))

    def account_at(self, now: float, idle: int) -> IdleAccount:
        """The same at *now*, if *idle* chips are kept since the last count."""
        then = copy(self)
        then._buckets = self._buckets.copy()  # noqa: SLF001 - its own
        then.count(now, idle)
        return then.account

    def restore(self, account: IdleAccount) -> None:
        """Take over what the previous leader has written.

        What it has of a bucket that is counted here as well may be the same; what is
        not over yet was written by another clock.
        """
        last = self.now + BUCKET_S
        buckets = {end: amount for end, amount in account.buckets if end <= last}
        for end, amount in self._buckets:
            buckets[end] = max(buckets.get(end, 0.0), amount)
        self._buckets = deque(sorted(buckets.items()))
        before = [each for each in account.ended if each not in self._ended]
        self._ended = deque([*before, *self._ended], maxlen=MOST_ENDED)
        self.is_spent |= account.is_spent
        self._forget()

    def note(self, ended: EndedReservation) -> None:
        """Remember a reservation that has ended."""
        self._ended.append(ended)

    def count(self, now: float, idle: int) -> float:
        """Add up: reservations kept *idle* chips from the last call until *now*.

        Gives the seconds between them.
        """
        begin, self.now = self.now, max(now, self.now)
        seconds = 0.0 if begin == -inf else self.now - begin
        if not (seconds and idle):
            self._forget()
            return seconds
        self.kept_idle += idle * seconds
        while begin < self.now:
            bucket = (begin // BUCKET_S + 1) * BUCKET_S
            end = min(bucket, self.now)
            self._add(bucket, idle * (end - begin))
            begin = end
        self._forget()
        return seconds

    def kept_until(self, now: float, idle: int) -> float:
        """Chip-seconds kept idle until *now*, if *idle* are since the last count."""
        return self.kept_idle + (idle * max(0.0, now - self.now) if idle else 0.0)

    def _add(self, bucket: float, amount: float) -> None:
        if self._buckets and self._buckets[-1][0] == bucket:
            amount += self._buckets.pop()[1]
        self._buckets.append((bucket, amount))

    def _forget(self) -> None:
        """Drop buckets that are too old."""
        while self._buckets and self._buckets[0][0] + WINDOW_S <= self.now:
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
        return self.now + (limit - self.used) / idle if idle else inf

    def resumes_at(self, limit: float) -> float:
        """When half of *limit* will be available again, if nothing is added."""
        left, until = self.used, inf
        for end, part in self._buckets:
            if left <= RESUME * limit:
                break
            left -= part
            until = end + WINDOW_S
        return until
