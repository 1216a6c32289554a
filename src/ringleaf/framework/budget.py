"""How much one call of the engine may do, and where it goes on in the next."""

from math import inf
from typing import Final

from msgspec import Struct

from ringleaf.framework.changes import PLANNING, Changes
from ringleaf.framework.job_state import JobState
from ringleaf.framework.pending_queue import EquivalenceClass
from ringleaf.framework.reservation import Reservation
from ringleaf.framework.search_order import SearchOrder
from ringleaf.model.cache import Cache
from ringleaf.model.job import Job

WORK: Final = 64
"""What a search for victims, or planning reservations, may cost for each job that may
be started, in pods that go in a trial."""
TRIES: Final = 2048
"""What tries of pending jobs by one action may cost, where jobs that may be started are
limited."""
COST_TRIED, COST_REFUSED = 16, 2
"""What it costs to look for places of a job, and to refuse it without a look."""
EARLY_S: Final = 1.0
"""How much too early a wake-up may come, as timers do."""
PLAN_AGAIN_S: Final = 0.5
"""How long planning reservations rests after it has cost as much as it may."""


class Slice:
    """What one call of the engine has done, and when the next one is due."""

    def __init__(self) -> None:
        self.most: float = inf
        """Jobs that may be started; searches are as long."""
        self.bound: set[str] = set()
        """Jobs of which pods were bound."""
        self.is_cut_short = False
        """Whether more jobs could start than may."""
        self.cost = 0
        """What tries of pending jobs have cost."""
        self.is_spent = False
        """Whether pending jobs are left to try because tries cost as much as may."""
        self.resumed: str | None = None
        """The action whose search for victims goes on where it was interrupted."""
        self.wake = inf
        """The earliest time at which something changes by itself."""
        self._announced = inf
        """When to be called again, as it was last said."""

    def begin(self, most: float, resumed: str | None) -> None:
        """A new cycle begins.

        One that resumes a search for victims does not look at all jobs again, so what
        the last cycle has to wake up for still counts.
        """
        self.most, self.resumed = most, resumed
        self.bound = set()
        self.is_cut_short = self.is_spent = False
        self.cost = 0
        if resumed is None:
            self.wake = inf

    def is_news(self, wake: float, now: float) -> bool:
        """Whether *wake* was not said, or has come to pass; now it is said."""
        is_news = wake != self._announced or self._announced <= now
        self._announced = wake
        return is_news

    def woke(self, now: float) -> None:
        """A timer fired; one that was early is requested again."""
        if self._announced - now < EARLY_S:
            self._announced = inf

    def cut_short(self) -> bool:
        """Whether as many jobs have started as may; the others are for the next."""
        self.is_cut_short = len(self.bound) >= self.most
        return self.is_cut_short

    def allows(self, cost: int) -> bool:
        """Whether a search that has cost so much may go on."""
        return cost < WORK * self.most

    def allows_tries(self, cost: float) -> bool:
        """Whether an action that has tried jobs at such a cost may try more."""
        return cost < TRIES or self.most == inf


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
        self.spared = False
        """Whether a job was not evicted only because no job has arrived since."""
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
        self.failed_since: dict[EquivalenceClass, None] = {}
        """Such classes since a search was interrupted: they are for the next one."""
        self.passed_over: set[str] = set()
        """Queues that have their share, of which only the first class failed."""

    def begin(self, *, resumes: bool) -> None:
        """A new cycle begins; one that *resumes* the last keeps its failed classes."""
        self.cost = self.looked = 0
        if not resumes:
            self.failed, self.failed_since = {}, {}

    def fail(self, job_class: EquivalenceClass) -> None:
        """The first job of *job_class* found no place, or was not admitted."""
        if self.resume is None:
            self.failed[job_class] = None
        else:
            self.failed_since[job_class] = None

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
        return self._hopeless.get(key) == self._changes.tick(*PLANNING)

    def note_hopeless(self, key: Job) -> None:
        """No reservation can be made for jobs that request so, until a change."""
        self._hopeless.put(key, self._changes.tick(*PLANNING), key.weight)

    def pause(self, queue: str, now: float) -> float:
        """Go on with *queue* a moment later, at the time that is returned.

        Any number of overdue jobs may request what no node has.
        """
        self.first_queue, self.not_before = queue, now + PLAN_AGAIN_S
        return self.not_before
