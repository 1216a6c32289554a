"""What is called when objects of one kind come, change or go."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ringleaf.kube.watch import Gone

KINDS: Final = (
    *("nodes", "pods", "podgroups", "queues"),
    *("priorityclasses", "budgets", "claims", "configmaps"),
)
"""The kinds that the cache has handlers for."""


class Handler(NamedTuple):
    """The handler of one kind.

    Args:
        on_update: Gets objects that are new or changed, in order.
        on_delete: Gets objects that are gone.
        on_unreadable: Gets the key of an object that is there and cannot be read, and
            all that is written of it.

    """

    on_update: Callable[[Sequence[Any]], None]
    on_delete: Callable[[Sequence[Gone]], None]
    on_unreadable: Callable[[str, bytes], None] = lambda _key, _raw: None


Handlers = Mapping[str, Handler]
"""A handler for each of ``KINDS``."""
