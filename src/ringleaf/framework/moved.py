"""How many jobs were moved lately, and for which jobs to look for moves again."""

from math import inf
from typing import Final

from ringleaf.framework.changes import Change, Changes, Memo

HOUR_S: Final = 3600.0


class MovedLately:
    """The moves of the last hour, which their limit counts; when to look for others."""

    def __init__(self, changes: Changes) -> None:
        self._moves: list[tuple[float, int]] = []
        self.look_at = -inf
        """When to look for moves again, at the earliest."""
        self.in_vain: Memo[str] = Memo(
            changes,
            Change.CAPACITY_FREED,
            Change.NODES_CHANGED,
            Change.PODS_STARTED,
            Change.USAGE_CHANGED,
            Change.RULES_CHANGED,
            Change.RESERVATION_ENDED,
        )
        """Pending jobs for which no moves were found."""

    def count(self, now: float, moves: int) -> None:
        """Note that a number of *moves* begins *now*."""
        self._moves.append((now, moves))

    def left(self, most: int, now: float) -> int:
        """How many more may begin *now* if *most* may within an hour."""
        self._moves = [each for each in self._moves if each[0] + HOUR_S > now]
        return max(0, most - sum(moves for _at, moves in self._moves))

    def next_at(self) -> float:
        """When the first of them counts no more."""
        return min((at + HOUR_S for at, _moves in self._moves), default=inf)
