"""What faults cost: pods that were deleted because of them, and how long it all took.

It is counted from what the engine says and from the news of the book of faults, in
plain numbers; ``page`` serves it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from ringleaf.engine.event import Event, JobGone, RepairKnown
from ringleaf.framework.fault_log import FaultLog, Stage
from ringleaf.framework.instruction import (
    Delete,
    Instruction,
    PersistRepair,
    Repaired,
    Report,
    Verdict,
)
from ringleaf.framework.repair import Repair
from ringleaf.kube.metrics import LONG, Histogram
from ringleaf.model.fault import Cause, Record, RestartScope

NEVER_RAN: Final = "NeverRan"
"""Why pods are deleted that were bound and did not run."""
DELETED_FOR: Final = (*(cause.value for cause in Cause), NEVER_RAN)


class FaultMetrics:
    """What has happened to faults and because of them since the start.

    *book* and *repairs* are the engine's: what is so now is read there.
    """

    def __init__(self, book: FaultLog, repairs: Mapping[str, Repair]) -> None:
        self.book, self.repairs = book, repairs
        self._read = 0
        self._reach: dict[str, RestartScope] = {}
        """How much was deleted of jobs that are being repaired."""
        self.acted_s = {cause: Histogram(LONG) for cause in Cause}
        """From when a fault was seen until pods were deleted because of it."""
        self.recovered_s = {cause: Histogram(LONG) for cause in Cause}
        """From when a fault was seen until it was no longer there."""
        self.deleted: Counter[tuple[str, bool]] = Counter()
        """Cause, whether by force -> pods."""
        self.finished: Counter[RestartScope] = Counter()
        self.escalated: Counter[RestartScope] = Counter()
        """How much of a job was deleted in the end -> times."""
        self.repair_s = Histogram(LONG)
        self._braked: set[str] = set()
        """Jobs that were told that the brake holds them back."""
        self.held_back = 0
        self.releases = 0

    def follow(self, book: FaultLog, repairs: Mapping[str, Repair]) -> None:
        """The engine is another one; what was counted stays."""
        self.book, self.repairs, self._read = book, repairs, book.version

    def note(self, said: Iterable[Instruction], now: float) -> None:
        """The engine said something."""
        for each in said:
            match each:
                case Delete():
                    self._deleted(each)
                case PersistRepair(job, record):
                    self._remembered(job, record)
                case Repaired(job, record):
                    self.finished[record.scope] += 1
                    self.repair_s.observe(max(0.0, now - record.since))
                    self._over(job)
                case Report(job=job, verdict=Verdict.RATE_LIMITED):
                    self.held_back += job not in self._braked
                    self._braked.add(job)
                case Report(verdict=Verdict.RELEASED):
                    self.releases += 1
        self._read_news()

    def hear(self, events: Iterable[Event]) -> None:
        """Something has happened: jobs that are gone for good are not repaired."""
        for event in events:
            if isinstance(event, JobGone) and not event.returns:
                self._over(event.job)
            elif isinstance(event, RepairKnown) and not event.record.is_over:
                self._reach[event.job] = event.record.scope

    def _deleted(self, each: Delete) -> None:
        self.deleted[each.cause, each.force] += len(each.replicas)
        self._braked.discard(each.job)

    def _remembered(self, job: str, record: Record | None) -> None:
        if record is None or record.is_over:
            self._over(job)
            return
        if self._reach.get(job, record.scope) is not record.scope:
            self.escalated[record.scope] += 1
        self._reach[job] = record.scope

    def _over(self, job: str) -> None:
        self._reach.pop(job, None)
        self._braked.discard(job)

    def _read_news(self) -> None:
        if self._read == self.book.version:
            return
        for each in self.book.news(self._read):
            if each.stage is Stage.ACTED:
                self.acted_s[each.fault.cause].observe(each.lasted_s)
            elif each.stage is Stage.RECOVERED:
                self.recovered_s[each.fault.cause].observe(each.lasted_s)
        self._read = self.book.version
