"""What reservations kept idle, as it is kept for the next leader.

Where it cannot be read, the budget of the last 24 hours begins anew.
"""

from collections.abc import Callable
from math import isfinite
from typing import Final

import msgspec

from ringleaf.engine.event import IdleAccountKnown
from ringleaf.framework.idle_budget import MOST_BUCKETS, MOST_ENDED, IdleAccount
from ringleaf.kube.note_store import BadNote

KEY: Final = "idle-time"


class IdleNote:
    """The account of reservations for a ``NoteStore``.

    Args:
        account: What the engine knows; None until it has heard what was read.
        known: Takes over what was read.

    """

    name, key, empty = "ringleaf-idle-time", KEY, "{}"

    def __init__(
        self,
        account: Callable[[], IdleAccount | None],
        known: Callable[[IdleAccountKnown], None],
    ) -> None:
        self._account, self._known = account, known

    def text(self) -> str | None:
        """What the engine knows."""
        account = self._account()
        if account is None or account == IdleAccount():
            return None if account is None else self.empty
        return msgspec.json.encode(account).decode()

    def read(self, text: str) -> None:
        """Take over what was kept. Raises ``BadNote``."""
        if text != self.empty:
            self._known(IdleAccountKnown(account_in(text)))


def account_in(text: str) -> IdleAccount:
    """The account in a ConfigMap. Raises ``BadNote``.

    >>> account_in('{"buckets":[[900.0,40.5]]}').buckets
    ((900.0, 40.5),)
    """
    try:
        account = msgspec.json.decode(text, type=IdleAccount)
    except (ValueError, RecursionError) as error:
        raise BadNote(f"{KEY} cannot be read: {error}") from None
    sizes = len(account.buckets) <= MOST_BUCKETS and len(account.ended) <= MOST_ENDED
    if not sizes or not all(isfinite(x) and y >= 0 for x, y in account.buckets):
        raise BadNote(f"{KEY} is out of bounds")
    return account
