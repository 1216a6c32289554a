"""What changed since: one counter for each kind of change, and memos of what failed.

A memo keeps what failed, so that it is not tried again without a change. It names the
changes that could make it wrong; when one of them happens, the memo is cleared. What is
known of a job that is gone is discarded with the job. Dropping memos changes no
instruction, only what it costs, with two exceptions: a reservation is first tried when
something is freed, and one that could not be planned is planned again only after
``PLANNING`` changes.
"""

from collections.abc import Container, Hashable
from enum import IntEnum, auto
from math import inf
from typing import Final, Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)


class Change(IntEnum):
    """The kinds of changes that a memo can depend on."""

    CAPACITY_FREED = auto()
    """Chips or resources are free that were not."""
    NODES_CHANGED = auto()
    """Nodes came, went, changed, or take pods again."""
    PODS_STARTED = auto()
    """Pods are there that were not: neighbours for some jobs, victims for others."""
    USAGE_CHANGED = auto()
    """Queues may admit or start more than when they were last looked at."""
    RULES_CHANGED = auto()
    """Queues or the configuration changed."""
    VICTIMS_CHANGED = auto()
    """Jobs may be evicted that could not be."""
    RESERVATION_ENDED = auto()
    """A reservation was used or given up."""
    REPAIR_PROGRESSED = auto()
    """Pods of a job that is repaired found a place, or found none."""


ADMISSION: Final = (Change.CAPACITY_FREED, Change.USAGE_CHANGED, Change.RULES_CHANGED)
"""After these, more jobs may be admitted or started."""
EVICTION: Final = (
    Change.CAPACITY_FREED,
    Change.PODS_STARTED,
    Change.RULES_CHANGED,
    Change.VICTIMS_CHANGED,
)
"""After these, victims may be found where there were none."""
PLANNING: Final = (Change.NODES_CHANGED, Change.RULES_CHANGED, Change.RESERVATION_ENDED)
"""After these, a reservation may be planned where none could be."""


class Changes:
    """How often each kind of change has happened."""

    def __init__(self) -> None:
        self._ticks = [0] * (len(Change) + 1)
        self.n_admission = 0
        """How often one of ``ADMISSION`` has happened."""

    def note(self, *changes: Change) -> None:
        """These changes happen now."""
        for change in changes:
            self._ticks[change] += 1
            self.n_admission += change in ADMISSION

    def generation(self, *changes: Change) -> int:
        """A number that moves when one of *changes* happens."""
        ticks = self._ticks
        return sum([ticks[change] for change in changes])


class Memo(Generic[_K]):
    """Keys that failed when tried, until one of some changes happens.

    Args:
        changes: Where changes are noted.
        on: Those after which nothing of it holds.

    """

    def __init__(self, changes: Changes, *on: Change) -> None:
        self._changes, self._on = changes, on
        self._until: dict[_K, float] = {}
        self._generation = -1

    def __len__(self) -> int:
        return len(self._until)

    def add(self, key: _K, until: float = inf) -> None:
        """*key* failed; trying it again before *until* gives the same result."""
        self._current()[key] = until

    def until(self, key: _K) -> float:
        """Until when *key* need not be tried; minus infinity if it is not known."""
        return self._current().get(key, -inf)

    def __contains__(self, key: _K) -> bool:
        return key in self._current()

    def shorten(self, key: _K, until: float) -> None:
        """*key*, if it is known, is to be tried again at *until*, or before."""
        if key in self._until and key in (known := self._current()):
            known[key] = min(known[key], until)

    def discard(self, key: _K) -> None:
        """Forget *key*: it is gone."""
        self._until.pop(key, None)

    def keep(self, keys: Container[_K]) -> None:
        """Forget all but *keys*: tenants may make up any number of others."""
        self._until = {k: until for k, until in self._until.items() if k in keys}

    def _current(self) -> dict[_K, float]:
        generation = self._changes.generation(*self._on)
        if generation != self._generation:
            self._generation = generation
            self._until.clear()
        return self._until
