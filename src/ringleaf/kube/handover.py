"""What the previous leader wrote of faults, running times and reservations."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ringleaf.engine.event import DeletionsKnown, Event, FaultsKnown, RepairKnown
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.jobs import uids_of
from ringleaf.model.fault import Deletion, Fault, Record
from ringleaf.model.job import Job


class RetriesLeft(NamedTuple):
    """How often pods of a job may still fail; *uid* says of which job of its name."""

    uid: str
    times: int


class Handover:
    """What was read of it, until the engine has heard of it."""

    def __init__(self) -> None:
        self._faults: tuple[Fault, ...] = ()
        self._deletions: tuple[Deletion, ...] = ()
        self._has_faults = False
        """Whether the engine is to hear of the faults."""
        self._notes: dict[type[Event], Event] = {}
        """Running times and reservations."""
        self._unreported: dict[type[Event], None] = {}
        self._retries: dict[str, RetriesLeft] = {}
        """Job -> how often its pods may still fail.

        It counts against the budget of that time, so it is read once.
        """

    @property
    def has_news(self) -> bool:
        """Whether there is something that the engine has not heard of."""
        return self._has_faults or bool(self._unreported)

    def put_faults(
        self,
        faults: Iterable[Fault],
        retries: Mapping[str, RetriesLeft],
        deletions: Iterable[Deletion] = (),
    ) -> None:
        """Take over the fault history."""
        self._faults, self._retries = tuple(faults), dict(retries)
        self._deletions = tuple(deletions)
        self._has_faults = bool(self._faults or self._deletions)

    def put_note(self, note: Event) -> None:
        """Take over running times or reservations, as the engine hears of them."""
        self._notes[type(note)] = note
        self._unreported[type(note)] = None

    def is_unreported(self, kind: type[Event]) -> bool:
        """Whether the engine has not heard yet what was read of a *kind*."""
        return kind in self._unreported

    def carry_over(
        self,
        faults: Iterable[Fault],
        deletions: Iterable[Deletion],
        notes: Iterable[Event] = (),
    ) -> None:
        """What an engine knew, besides objects, that is followed by a new one."""
        self._faults, self._deletions = tuple(faults), tuple(deletions)
        self._notes |= {type(note): note for note in notes}

    def note_changes(self) -> list[Event]:
        """Running times and reservations that were read since the last time."""
        found = [self._notes[kind] for kind in self._unreported]
        self._unreported.clear()
        return found

    def notes(self) -> Iterable[Event]:
        """All running times and reservations."""
        return self._notes.values()

    def fault_changes(self) -> Iterator[Event]:
        """The faults, if they were read since the last time."""
        if self._has_faults:
            self._has_faults = False
            yield from self.faults()

    def faults(self) -> Iterator[Event]:
        """All faults, and what was deleted because of them."""
        if self._faults:
            yield FaultsKnown(self._faults)
        if self._deletions:
            yield DeletionsKnown(self._deletions)

    def retries(self, gang: GangState, job: Job) -> Iterator[RepairKnown]:
        """Report once the retries of a job that were counted as used."""
        left = self._retries.get(gang.name)
        if left is None or not job.recovery.retries or gang.repair.record is not None:
            return
        if gang.podgroup is None or left.uid not in uids_of(gang.podgroup):
            return
        del self._retries[gang.name]
        used = max(0, job.recovery.retries - max(0, left.times))
        if used:
            record = Record(since=0.0, retries_used=used, is_over=True)
            yield RepairKnown(gang.name, record)
