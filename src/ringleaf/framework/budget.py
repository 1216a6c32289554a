"""What one call of the engine may do, and what it records for the next."""

from math import inf
from typing import Final

from msgspec import Struct

from ringleaf.framework.changes import PLANNING, Change, Changes, Memo
from ringleaf.framework.job_state import JobState
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.reservation import Reservation
from ringleaf.framework.search_order import SearchOrder
from ringleaf.model.cache import Cache
from ringleaf.model.job import Job

WORK: Final = 64
"""What searching victims or planning reservations may cost for each job that may be
started, counted in pods that a trial evicts or places."""
TRIES: Final = 2048
"""What one action may spend on trying pending jobs, if the call limits binds."""
COST_TRIED, COST_REFUSED = 16, 2
"""The cost of trying to place a job, and of rejecting it without a try."""
EARLY_S: Final = 1.0
"""How much too early a wake-up may come, as timers do."""
PLAN_AGAIN_S: Final = 0.5
"""How long planning reservations rests after it has cost as much as it may."""


class CallBudget:
    """How much one call of the engine may do and has done; when the next is due."""

    def __init__(self) -> None:
        self.max_binds: float = inf
        """Jobs that may be started; searches for victims are limited in proportion."""
        self.bound: set[str] = set()
        """Jobs of which pods were bound."""
        self.binds_exhausted = False
        """Whether more jobs could start than may."""
        self.cost = 0
        """What tries of pending jobs have cost."""
        self.tries_exhausted = False
        """Whether pending jobs are left to try because tries cost as much as may."""
        self.resumed_action: str | None = None
        """The action whose search for victims continues where it was interrupted."""
        self.wake = inf
        """The earliest time at which something changes by itself."""
        self._announced = inf
        """The last ``WakeAt``."""

    def begin(self, max_binds: float, resumed_action: str | None) -> None:
        """A new call begins.

        One that resumes a search for victims does not look at all jobs again, so what
        the last call has to wake up for still counts.
        """
        self.max_binds, self.resumed_action = max_binds, resumed_action
        self.bound = set()
        self.binds_exhausted = self.tries_exhausted = False
        self.cost = 0
        if resumed_action is None:
            self.wake = inf

    @property
    def is_exhausted(self) -> bool:
        """Whether the call stops before everything is decided."""
        return self.binds_exhausted or self.tries_exhausted

    def announces(self, wake: float, now: float) -> bool:
        """Note *wake* as announced; whether it was not, or has come to pass."""
        is_news = wake != self._announced or self._announced <= now
        self._announced = wake
        return is_news

    def timer_fired(self, now: float) -> None:
        """A timer fired; one that was early is requested again."""
        if self._announced - now < EARLY_S:
            self._announced = inf

    def stop_binding(self) -> bool:
        """Note and return whether as many jobs have started as may."""
        self.binds_exhausted = len(self.bound) >= self.max_binds
        return self.binds_exhausted

    def allows_search(self, cost: int) -> bool:
        """Whether a search that has cost so much may continue."""
        return cost < WORK * self.max_binds

    def allows_tries(self, cost: float) -> bool:
        """Whether an action that has tried jobs at such a cost may try more."""
        return cost < TRIES or self.max_binds == inf


class InterruptedSearch(Struct, frozen=True):
    """Where a search for victims was interrupted.

    Args:
        action: The action that searches.
        classes: The classes that are left.
        seen: The jobs that it looked for victims for.
        reservations: The reservations that are left; None before it came to them.

    """

    action: str
    classes: SearchOrder
    seen: set[str]
    reservations: list[Reservation] | None = None


class VictimSearchState:
    """How far the search for victims is, over several calls."""

    def __init__(self) -> None:
        self.resume: InterruptedSearch | None = None
        """Where the search goes on, if it was interrupted."""
        self.cost = 0
        """What it has cost in this cycle."""
        self.looked = 0
        """What it has cost in this cycle to look at jobs, whatever was found."""
        self.again_at = inf
        """When a job can be evicted that cannot be yet."""
        self.skipped_recently_evicted = False
        """Whether a job was skipped because none arrived since its last eviction."""
        self.arrivals = 0
        """Jobs that have ever arrived."""
        self.ending: dict[str, JobState] = {}
        """Jobs with pods that are asked to end."""
        self.outranked: dict[str, int] = {}
        """Queue -> the lowest priority of pods that jobs of a higher one may evict now.

        What they hold was not free before, so these jobs could not use it.
        """
        self.failed: dict[EquivalenceClass, None] = {}
        """Classes whose first job failed in this cycle, or was not admitted."""
        self.failed_for_next_search: dict[EquivalenceClass, None] = {}
        """Such classes since a search was interrupted: they are for the next one."""
        self.passed_over: set[str] = set()
        """Queues that have their share, of which only the first class failed."""

    def begin(self, *, resumes: bool) -> None:
        """A new cycle begins; one that *resumes* the last keeps its failed classes."""
        self.cost = self.looked = 0
        if not resumes:
            self.failed, self.failed_for_next_search = {}, {}

    def fail(self, job_class: EquivalenceClass) -> None:
        """The first job of *job_class* found no place, or was not admitted."""
        if self.resume is None:
            self.failed[job_class] = None
        else:
            self.failed_for_next_search[job_class] = None

    def pass_over(self, job_class: EquivalenceClass) -> None:
        """The queue of *job_class* has its share; *job_class* would be its next."""
        self.passed_over.add(job_class.scheduling_key.queue)
        self.fail(job_class)

    def outranked_now(self, job: Job) -> None:
        """Jobs of a higher priority than *job* may evict its pods now."""
        known = self.outranked.get(job.queue, job.priority)
        self.outranked[job.queue] = min(job.priority, known)


class Planning:
    """Reservations being planned, over several calls."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._hopeless: Cache[Job, int] = Cache(4096, 4 << 20)
        self.cost = 0
        """What planning has cost in this cycle."""
        self.first_queue = ""
        """The queue that is planned for first."""
        self.not_before = -inf
        """When planning goes on."""

    def is_hopeless(self, key: Job) -> bool:
        """Whether no reservation can be made for jobs that request so."""
        return self._hopeless.get(key) == self._changes.generation(*PLANNING)

    def note_hopeless(self, key: Job) -> None:
        """No reservation can be made for jobs that request so, until a change."""
        self._hopeless.put(key, self._changes.generation(*PLANNING), key.weight)

    def pause(self, queue: str, now: float) -> float:
        """Go on with *queue* a moment later, at the time that is returned.

        Any number of overdue jobs may request what no node has.
        """
        self.first_queue, self.not_before = queue, now + PLAN_AGAIN_S
        return self.not_before


HOUR_S: Final = 3600.0


class MovedLately:
    """The moves of the last hour, which their limit counts; when to look for others."""

    def __init__(self, changes: Changes) -> None:
        self._moves: list[tuple[float, int]] = []
        self.look_at = -inf
        """When to look for moves again, at the earliest."""
        self.in_vain: Memo[str] = Memo(
            changes,
            Change.CAPACITY_FREED,
            Change.NODES_CHANGED,
            Change.PODS_STARTED,
            Change.USAGE_CHANGED,
            Change.RULES_CHANGED,
            Change.RESERVATION_ENDED,
        )
        """Pending jobs for which no moves were found."""

    def count(self, now: float, moves: int) -> None:
        """Note that a number of *moves* begins *now*."""
        self._moves.append((now, moves))

    def left(self, most: int, now: float) -> int:
        """How many more may begin *now* if *most* may within an hour."""
        self._moves = [each for each in self._moves if each[0] + HOUR_S > now]
        return max(0, most - sum(moves for _at, moves in self._moves))

    def next_at(self) -> float:
        """When the first of them counts no more."""
        return min((at + HOUR_S for at, _moves in self._moves), default=inf)
