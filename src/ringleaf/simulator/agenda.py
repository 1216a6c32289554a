"""What is to happen at which time, and when pods are gone that were asked to end."""

from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Generic, TypeVar

from ringleaf.framework.instruction import Delete, Evict
from ringleaf.model.fault import Cause

_What = TypeVar("_What")

SPARE: Final = 1024
"""Entries of what is called off that are worth no tidying up."""


class Agenda(Generic[_What]):
    """What is to happen, earliest first; together, by order and then as planned."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int]] = []
        self._planned: dict[int, _What] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._planned)

    def plan(self, at: float, order: int, what: _What) -> int:
        """The number under which *what* can be called off."""
        self._last += 1
        self._planned[self._last] = what
        heappush(self._heap, (at, order, self._last))
        return self._last

    def call_off(self, number: int) -> None:
        """What was planned under *number* does not happen."""
        del self._planned[number]
        if len(self._heap) > 2 * len(self._planned) + SPARE:
            self._heap = [entry for entry in self._heap if entry[2] in self._planned]
            heapify(self._heap)

    @property
    def next_at(self) -> float:
        """When something happens next; never, if nothing is planned."""
        heap, planned = self._heap, self._planned
        while heap and heap[0][2] not in planned:
            heappop(heap)
        return heap[0][0] if heap else inf

    def pop(self) -> tuple[int, _What]:
        """What happens next, with its number; something must be planned."""
        while (number := heappop(self._heap)[2]) not in self._planned:
            pass
        return number, self._planned.pop(number)


def gone_at(said: Evict | Delete, now: float, grace_s: float) -> float:
    """When the pods are gone that are asked to end *now*.

    >>> evicted = Evict("old", (0,), by="new", action="preempt")
    >>> gone_at(evicted, 100.0, grace_s=30.0)
    130.0
    >>> gone_at(Delete("job", (0,), Cause.NODE, "", force=True), 100.0, grace_s=30.0)
    100.0
    """
    if isinstance(said, Delete) and (said.force or said.cause == Cause.REFUSAL):
        return now  # of pods that were refused nothing ever ran
    return now + grace_s
