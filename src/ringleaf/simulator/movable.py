"""Jobs of a workload that may be moved while they run, and what that costs them."""

from collections.abc import Iterator
from functools import partial
from typing import Final
from zlib import crc32

from msgspec.structs import replace

from ringleaf.model.moving import Moving
from ringleaf.simulator.trial import JobSpec, Workload

_ALL: Final = 1 << 32


def movable(workload: Workload, share: float, moving: Moving) -> Workload:
    """*workload*, a *share* of whose jobs may be moved as *moving* says.

    Which jobs these are follows from their names.
    """
    return replace(workload, job_specs=partial(_movable, workload, share, moving))


def _movable(workload: Workload, share: float, moving: Moving) -> Iterator[JobSpec]:
    for spec in workload.job_specs():
        if crc32(spec.job.name.encode()) < share * _ALL:
            yield replace(spec, job=replace(spec.job, moving=moving))
        else:
            yield spec
