"""What faults cost: pods that were deleted because of them, and how long it all took.

It is counted from what the engine says and from the news of the book of faults, in
plain numbers; ``page`` serves it.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ringleaf.engine.event import Event, JobGone
from ringleaf.framework.faultbook import FaultBook, Stage
from ringleaf.framework.instruction import (
    Delete,
    Instruction,
    Remember,
    Repaired,
    Report,
    Verdict,
)
from ringleaf.kube.metrics import LONG, Histogram
from ringleaf.model.fault import Cause, Reach, Record

NEVER_RAN: Final = "NeverRan"
"""Why pods are deleted that were bound and did not run."""
DELETED_FOR: Final = (*(cause.value for cause in Cause), NEVER_RAN)


class Toll:
    """What has happened to faults and because of them since the start.

    *book* is the engine's.
    """

    def __init__(self, book: FaultBook) -> None:
        self.book = book
        self._read = 0
        self.acted_s = {cause: Histogram(LONG) for cause in Cause}
        """From when a fault was seen until pods were deleted because of it."""
        self.recovered_s = {cause: Histogram(LONG) for cause in Cause}
        """From when a fault was seen until it was no longer there."""
        self.deleted: Counter[tuple[str, bool]] = Counter()
        """Cause, whether by force -> pods."""
        self.repairs: dict[str, Record] = {}
        """Jobs that are being repaired."""
        self.finished: Counter[Reach] = Counter()
        self.escalated: Counter[Reach] = Counter()
        """How much of a job was deleted in the end -> times."""
        self.repair_s = Histogram(LONG)
        self.braked: dict[str, None] = {}
        """Jobs that the brake holds back."""
        self.held_back = 0
        self.releases = 0

    def note(self, said: Iterable[Instruction], now: float) -> None:
        """The engine said something."""
        for each in said:
            match each:
                case Delete():
                    self._deleted(each)
                case Remember(job, record):
                    self._remembered(job, record)
                case Repaired(job, record):
                    self.finished[record.reach] += 1
                    self.repair_s.observe(max(0.0, now - record.since))
                    self._over(job)
                case Report(job=job, verdict=Verdict.BRAKED):
                    self.held_back += job not in self.braked
                    self.braked[job] = None
                case Report(verdict=Verdict.RELEASED):
                    self.releases += 1
        self._read_news()

    def hear(self, events: Iterable[Event]) -> None:
        """Something has happened: jobs that are gone for good are not repaired."""
        for event in events:
            if isinstance(event, JobGone) and not event.returns:
                self._over(event.job)

    def _deleted(self, each: Delete) -> None:
        self.deleted[each.cause, each.force] += len(each.replicas)
        self.braked.pop(each.job, None)

    def _remembered(self, job: str, record: Record | None) -> None:
        if record is None or record.is_over:
            self._over(job)
            return
        before = self.repairs.get(job)
        if before is not None and before.reach is not record.reach:
            self.escalated[record.reach] += 1
        self.repairs[job] = record

    def _over(self, job: str) -> None:
        self.repairs.pop(job, None)
        self.braked.pop(job, None)

    def _read_news(self) -> None:
        if self._read == self.book.version:
            return
        for each in self.book.news(self._read):
            if each.stage is Stage.ACTED:
                self.acted_s[each.fault.cause].observe(each.lasted_s)
            elif each.stage is Stage.RECOVERED:
                self.recovered_s[each.fault.cause].observe(each.lasted_s)
        self._read = self.book.version
