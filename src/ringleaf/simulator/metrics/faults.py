"""What faults and evictions cost: lost work, kept places, time to recover."""

from array import array
from collections.abc import Sequence
from typing import Any, Final

from ringleaf.framework.instruction import Delete, Evict, Repaired
from ringleaf.model.placement import Placement
from ringleaf.simulator.metrics.job_record import JobRecord
from ringleaf.simulator.metrics.tally import share, spread_of

HOUR_S: Final = 3600.0
EVICTED, FAULTY = "evicted", "faulty"
REARRANGE: Final = "rearrange"
"""The action whose evictions are moves: the job starts elsewhere at once."""


class FaultMeasures:
    """Pods that were evicted or deleted, and what became of them."""

    def __init__(self) -> None:
        self.evictions = self.evicted_pods = self.moved = 0
        self.deletions = self.deleted_pods = 0
        self.repaired = 0
        self.returned = self.in_place = 0
        """Pods that a fault took and that run again; of them, on the same node."""
        self.lost = {EVICTED: 0.0, FAULTY: 0.0}
        """Chip-seconds of work that must be done again."""
        self._recovered = array("d")
        self.unrecovered = 0

    def evicts(self, said: Evict, record: JobRecord) -> None:
        """The scheduler asks pods to end for another job."""
        self.moved += said.action == REARRANGE
        self.evictions += said.action != REARRANGE
        self.evicted_pods += len(said.replicas)
        record.ended_by = EVICTED

    def deletes(self, said: Delete, record: JobRecord, now: float) -> None:
        """The scheduler deletes pods because of faults."""
        self.deletions += 1
        self.deleted_pods += len(said.replicas)
        record.ended_by = FAULTY
        if record.out_since is None:
            record.out_since = now

    def repairs(self, said: Repaired) -> None:
        """The scheduler has repaired a job, or moved it."""
        self.repaired += not said.record.moved_for

    def loses(self, record: JobRecord, seconds: float) -> None:
        """Work of a job is lost."""
        self.lost[record.ended_by or FAULTY] += record.chips * seconds

    def stops(self, record: JobRecord, pods: Sequence[int], now: float) -> None:
        """Pods are gone; their places are still in *record*."""
        if record.ended_by != EVICTED:
            if record.out_since is None:
                record.out_since = now
            for pod in pods:
                if pod in record.places:
                    record.lost[pod] = record.places[pod][0]

    def starts(self, record: JobRecord, placements: Sequence[Placement]) -> None:
        """Pods are placed, and stand in *record*."""
        for each in placements:
            before = record.lost.pop(each.replica, None)
            if before is not None:
                self.returned += 1
                self.in_place += record.places[each.replica][0] == before

    def whole(self, record: JobRecord, now: float) -> None:
        """No pod of the job is away any more."""
        record.ended_by = ""
        if record.out_since is not None:
            self._recovered.append(now - record.out_since)
            record.out_since = None

    def ends(self, record: JobRecord) -> None:
        """A job is over, or the run is, before it recovered."""
        self.unrecovered += record.out_since is not None

    def plain(self) -> dict[str, Any]:
        """The parts of metric 12 that come of faults and evictions."""
        return {
            "evictions": self.evictions,
            "evicted_pods": self.evicted_pods,
            "moved": self.moved,
            "deletions": self.deletions,
            "deleted_pods": self.deleted_pods,
            "repaired": self.repaired,
            "chip_hours_lost_to_faults": self.lost[FAULTY] / HOUR_S,
            "chip_hours_lost_to_evictions": self.lost[EVICTED] / HOUR_S,
            "pods_returned": self.returned,
            "pods_returned_in_place": self.in_place,
            "share_in_place": share(self.in_place, self.returned),
            "recovery_s": spread_of(self._recovered),
            "unrecovered": self.unrecovered,
        }
