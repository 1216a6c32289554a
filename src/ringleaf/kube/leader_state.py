"""What a leader keeps for the next one: records of repairs, faults, notes.

It is read when a scheduler starts and before it leads, and written by the leader alone.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from ringleaf.kube.cluster_cache import ClusterCache
from ringleaf.kube.fault_store import FaultStore
from ringleaf.kube.note_store import NoteStore
from ringleaf.kube.record_store import RecordStore
from ringleaf.kube.repair_executor import RepairExecutor
from ringleaf.kube.service import Part


class LeaderState:
    """Reads and writes it.

    Args:
        cache: Hears what was read.
        records: The records of repairs.
        repair_executor: Writes the records of repairs.
        faults: The fault history; None where another scheduler keeps it.
        notes: Running times and reservations.

    """

    def __init__(
        self,
        cache: ClusterCache,
        records: RecordStore,
        repair_executor: RepairExecutor,
        faults: FaultStore | None,
        notes: Sequence[NoteStore],
    ) -> None:
        self._cache, self._records, self._repair_executor = (
            cache,
            records,
            repair_executor,
        )
        self._faults, self._notes = faults, notes

    async def read(self, is_pointless: Callable[[], bool]) -> None:
        """Read what the last leader wrote."""
        found = await self._records.read(is_pointless)
        if found is not None:
            self._cache.checkpoints.put(found, moves=not self._records.is_moved)
        if self._faults is not None:
            await self._faults.read()
            await asyncio.gather(*(note.read() for note in self._notes))

    def parts(self) -> Iterator[tuple[Part, str]]:
        """The parts of the work that write it, and their names."""
        yield self._repair_executor.run, "records"
        if self._faults is not None:
            yield self._faults.run, "faults"
            for note in self._notes:
                yield note.run, note.title

    async def flush(self, timeout_s: float) -> None:
        """Write, for a short while, what was not written yet."""
        if self._faults is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                notes = (note.flush() for note in self._notes)
                await asyncio.gather(self._faults.flush(), *notes)
