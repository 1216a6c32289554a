"""The same trouble is logged once in a row."""

from collections.abc import Hashable


class LogOnce:
    """What was logged last of each object."""

    def __init__(self) -> None:
        self._last: dict[Hashable, object] = {}

    def is_new(self, about: Hashable, what: object) -> bool:
        """Whether *what* is to be logged: it is not what was logged last."""
        if self._last.get(about) == what:
            return False
        self._last[about] = what
        return True

    def forget(self, about: Hashable) -> None:
        """It is well again: the next trouble is logged, whatever it is."""
        self._last.pop(about, None)

    def clear(self) -> None:
        """Forget everything."""
        self._last.clear()
