"""The actions, by their names."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ringleaf.actions.allocate import allocate, backfill
from ringleaf.actions.enqueue import enqueue
from ringleaf.actions.evict import preempt, reclaim
from ringleaf.actions.rearrange import rearrange
from ringleaf.framework.context import ActionFunction

ACTION_FUNCTIONS: Final[Mapping[str, ActionFunction]] = MappingProxyType(
    {
        "enqueue": enqueue,
        "allocate": allocate,
        "backfill": backfill,
        "preempt": preempt,
        "reclaim": reclaim,
        "rearrange": rearrange,
    }
)
