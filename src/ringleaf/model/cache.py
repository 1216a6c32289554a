"""What was worked out before, kept within a bound on entries and on bytes.

Keys and values hold what users write, which may be short or long: a bound on entries
alone bounds nothing. The caller says about how many bytes an entry keeps alive.

There are two generations. An entry that is asked for moves to the younger one; when
that has half of what may be kept, the older one goes and the younger takes its place.
So a hit costs one look-up, and what is not asked for any more goes first.
"""

from collections.abc import Hashable
from typing import Any, Final, Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")

ENTRY: Final = 256
"""Bytes that an entry costs besides what it was said to keep."""
_NOTHING: Final[tuple[Any, int]] = None, 0


class Cache(Generic[_K, _V]):
    """The values of keys, as long as there is room.

    Args:
        entries: The most entries.
        size: The most bytes of all entries; one that has more than a quarter of that
            is not kept at all.

    >>> cache: Cache[str, int] = Cache(entries=4, size=8192)
    >>> cache.put("a", 1, size=100), cache.get("a"), cache.get("b")
    (None, 1, None)
    """

    __slots__ = ("_most", "_most_size", "_old", "_old_size", "_size", "_young")

    def __init__(self, entries: int, size: int) -> None:
        self._most, self._most_size = entries // 2, size // 2
        self._young: dict[_K, tuple[_V, int]] = {}
        self._old: dict[_K, tuple[_V, int]] = {}
        self._size = self._old_size = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    @property
    def size(self) -> int:
        """The bytes that its entries keep, as they were said to."""
        return self._size + self._old_size

    def get(self, key: _K) -> _V | None:
        """The value of *key*, if it is kept."""
        found = self._young.get(key)
        if found is not None:
            return found[0]
        if key in self._old:
            value, size = self._old.pop(key)
            self._old_size -= size
            self._enter(key, value, size)
            return value
        return None

    def put(self, key: _K, value: _V, size: int) -> None:
        """Keep *value* for *key*; together they have about *size* bytes."""
        self._size -= self._young.pop(key, _NOTHING)[1]
        self._old_size -= self._old.pop(key, _NOTHING)[1]
        size += ENTRY
        if size <= self._most_size // 2:
            self._enter(key, value, size)

    def _enter(self, key: _K, value: _V, size: int) -> None:
        full = len(self._young) >= self._most
        if full or self._size + size > self._most_size:
            self._old, self._old_size = self._young, self._size
            self._young, self._size = {}, 0
        self._young[key] = value, size
        self._size += size

    def clear(self) -> None:
        """Keep nothing."""
        self._young, self._old = {}, {}
        self._size = self._old_size = 0
