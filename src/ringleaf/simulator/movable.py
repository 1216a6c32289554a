"""Jobs of a workload that may be moved while they run, and what that costs them."""

from collections.abc import Iterator
from functools import partial
from typing import Final
from zlib import crc32

from msgspec.structs import replace

from ringleaf.model.moving import Moving
from ringleaf.simulator.trial import Work, Workload

_ALL: Final = 1 << 32


def movable(workload: Workload, share: float, moving: Moving) -> Workload:
    """*workload*, a *share* of whose jobs may be moved as *moving* says.

    Which jobs these are follows from their names.
    """
    return replace(workload, works=partial(_movable, workload, share, moving))


def _movable(workload: Workload, share: float, moving: Moving) -> Iterator[Work]:
    for work in workload.works():
        if crc32(work.job.name.encode()) < share * _ALL:
            yield replace(work, job=replace(work.job, moving=moving))
        else:
            yield work
