"""What the actions of a cycle work on: who waits, what is reserved, what to say.

The actions decide whom to try; ``Cycle.attempt`` tries one job, with its quota and the
reservations of others, and writes down what comes of it.
"""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from math import ceil, inf
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.framework.asides import Asides
from ringleaf.framework.booking import Booking, Reserved
from ringleaf.framework.conf import Conf
from ringleaf.framework.instruction import (
    Bind,
    Evict,
    Instruction,
    Report,
    Verdict,
)
from ringleaf.framework.repairs import Repair, Repairs
from ringleaf.framework.session import Session, as_running
from ringleaf.framework.standing import (
    NONE_OF_THEM,
    Phase,
    Standing,
    pod_amounts,
)
from ringleaf.framework.starts import Starts
from ringleaf.framework.statement import Statement
from ringleaf.framework.view import View
from ringleaf.framework.votes import Votes
from ringleaf.framework.waitlist import Key, Line, Waitlist
from ringleaf.model.amounts import Amounts, add, plus
from ringleaf.model.cache import Cache
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Decision, Placed, Waiting
from ringleaf.model.fault import Reach
from ringleaf.model.job import Job
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import NO_MARK, Placement
from ringleaf.model.product import Product
from ringleaf.model.queue import Queue
from ringleaf.policies.admission import warnings_of
from ringleaf.policies.annotations import pod_annotations
from ringleaf.policies.fit import Request, counted, request_of, some_of

NEVER: Final = inf
SEARCH: Final = 64
"""What a search for victims may cost for each job that may be started, in pods that go
in a trial; see ``actions.evict`` for what the rest of it costs."""
PLAN_AGAIN_S: Final = 0.5
"""How long planning reservations rests after it has cost as much as it may."""
CROWDED: Final = "; not admitted: running and admitted jobs fill the cluster"
"""Why a job of a queue that may use all there is, is not let in."""


class Search(Struct, frozen=True):
    """Where a search for victims was interrupted.

    Args:
        action: Whose search it is.
        lines: The lines that are left, the first of them perhaps in part.
        seen: The jobs that it looked for victims for.
        bookings: The reservations that are left; None before it came to them.

    """

    action: str
    lines: list[Line]
    seen: set[str]
    bookings: list[Booking] | None = None


class Cycle:
    """The state between actions; one per engine, begun anew for every cycle."""

    arrivals = 0
    """Jobs that have ever arrived."""
    spared = False
    """Whether somebody was not evicted only because no job has arrived since."""

    def __init__(  # noqa: PLR0915 - what there is, one by one
        self,
        view: View,
        session: Session,
        votes: Votes,
        conf: Conf,
        nodes: Mapping[str, Node],
    ) -> None:
        self.view, self.session, self.votes, self.conf = view, session, votes, conf
        self.repairs = Repairs(nodes)
        """What is known of faults, and of jobs that are repaired."""
        self.pending = Waitlist()
        """Jobs that are not let in yet."""
        self.newcomers: dict[str, Standing] = {}
        """Of those, the ones that have just arrived and stand in no line yet."""
        self.waiting = Waitlist()
        """Jobs that are let in and wait for chips, and running ones short of pods."""
        self.modest = Waitlist()
        """Jobs that are let in and ask for nothing, neither chips nor resources."""
        self.bookings: dict[str, Booking] = {}
        """Reservations by the name of the job that waits."""
        self.hopeless: Cache[Job, int] = Cache(4096, 4 << 20)
        """Asks for which no reservation could be made, and when: see ``structure``."""
        self.structure = 0
        """Moves when nodes change or a reservation ends."""
        self.barren: dict[str, tuple[int, float]] = {}
        """Queues without anybody to reserve for: since when, and until what time."""
        self.supply = 0
        """Moves whenever something is free that was not."""
        self.moves = 0
        """Moves whenever pods come or go, or who may do what changes."""
        self.relief = False
        """Whether queues may let in or start more than when they were last asked."""
        self._room: dict[Request, int] = {}
        """How many pods of a request fit at most, until something more is free."""
        self.out: list[Instruction] = []
        self.bound: set[str] = set()
        """Jobs of which pods were bound in this cycle."""
        self.untold: dict[str, Standing] = {}
        """Jobs that wait and were not told why."""
        self.failed: list[Line] = []
        """Lines whose first job was tried in this cycle in vain, or not let in."""
        self.failed_since: dict[Line, None] = {}
        """Such lines since a search for victims was interrupted: they are for the next.
        """
        self.search: Search | None = None
        """Where the search for victims goes on, if it was interrupted."""
        self.cost = 0
        """What the search for victims has cost in this cycle."""
        self.plan_cost = 0
        """What planning reservations has cost in this cycle."""
        self.plan_from = ("", -inf)
        """The queue whose reservation is planned first, and not before a time."""
        self.turned_away: list[Line] = []
        """Of those, the ones whose first job was not let in."""
        self.wake = NEVER
        """The earliest time at which something changes by itself."""
        self.passed: dict[str, int] = {}
        """Queues that had their share, and with which accounts."""
        self.hunt_at = NEVER
        """When somebody can be evicted who cannot be yet."""
        self.ends: dict[str, Standing] = {}
        """Jobs with pods that are asked to end."""
        self.starts = Starts()
        """Who was bound, and whether it came to run."""
        self.resting: dict[str, Standing] = {}
        """Jobs that would wait, and are not tried before a time."""
        self.asides = Asides()
        """Nodes that take no pods because they refused some."""
        self.let_in: list[str] = []
        """Jobs that were let in in this cycle."""
        self.most: float = inf
        """Jobs that may be started in this cycle; the search for victims is as long."""
        self.is_cut_short = False
        """Whether more jobs could start than may in this cycle."""
        self._reserved = Reserved()
        self.view.handlers.append(self._reserved.job_changed)
        self._booked = 0
        self._holders: dict[str, Booking] = {}
        """The reservations by the names under which they hold."""
        self._booked_on: dict[str, dict[Booking, None]] = {}
        """Node -> the reservations on it."""
        self._kept_by: dict[str, dict[Booking, None]] = {}
        """Job -> the reservations that wait for it, whether or not it holds any."""

    def begin(self, now: float) -> None:
        """A new cycle begins."""
        self.view.now = now
        self.out = []
        self.bound = set()
        if not self.has_more:
            self.failed = []
            self.failed_since = {}
        self.cost = self.plan_cost = 0
        self.turned_away = []
        self.let_in = []
        self.is_cut_short = False
        self.wake = NEVER

    @property
    def now(self) -> float:
        """The time of this cycle."""
        return self.view.now

    def cut_short(self) -> bool:
        """Whether as many jobs have started as may; the others are for the next."""
        self.is_cut_short = len(self.bound) >= self.most
        return self.is_cut_short

    def interrupted(self) -> bool:
        """Whether the search for victims has cost as much as it may."""
        return self.cost >= SEARCH * self.most

    def may_plan(self, queue: str) -> bool:
        """Whether a reservation may be planned in this cycle, of *queue*.

        If planning has cost as much as it may, it goes on with *queue* a moment later:
        any number of overdue jobs may ask for what no node has.
        """
        if self.plan_cost < SEARCH * self.most:
            return True
        self.plan_from = queue, self.now + PLAN_AGAIN_S
        self.wake_at(self.now + PLAN_AGAIN_S)
        return False

    @property
    def has_more(self) -> bool:
        """Whether there is more to decide than may be in this cycle."""
        return self.is_cut_short or self.search is not None

    def _fail(self, line: Line) -> None:
        """The first of *line* was tried in vain, or not let in."""
        if self.search is None:
            self.failed.append(line)
        else:
            self.failed_since[line] = None

    def arguments(self, action: str) -> dict[str, object]:
        """The arguments of an action, all of them."""
        return dict(self.conf.action_arguments.get(action, {}))

    def wake_at(self, time: float) -> None:
        """Something changes by itself at *time*."""
        if time > self.now:
            self.wake = min(self.wake, time)

    def hunt_again_at(self, time: float) -> None:
        """Somebody can be evicted from *time* on who cannot be yet."""
        self.wake_at(time)
        if time > self.now:
            self.hunt_at = min(self.hunt_at, time)

    def freed(
        self,
        products: Iterable[Product],
        nodes: Collection[str] | None = None,
        job: str = "",
    ) -> None:
        """Something is free that was not, on *nodes* or anywhere; *job* held it."""
        self.supply += 1
        self.moves += 1
        self.relief = True
        self._room.clear()
        listed = list(products)
        self.waiting.supply(listed)
        self.modest.supply(listed)
        for booking in self._concerned(nodes, job):
            booking.unblock(nodes)
            self._reserved.changed(booking)
            if nodes is None or not booking.nodes.isdisjoint(nodes):
                booking.hold(self.view.cluster)

    def _concerned(self, nodes: Collection[str] | None, job: str) -> list[Booking]:
        """The reservations on *nodes* or that wait for *job*, the oldest first."""
        if nodes is None:
            return list(self.bookings.values())
        found = dict(self._kept_by.get(job, {}))
        for node in nodes:
            found |= self._booked_on.get(node, {})
        return sorted(found, key=attrgetter("number"))

    def booked_on(self, nodes: Collection[str]) -> list[Booking]:
        """The reservations on *nodes*, the oldest first."""
        return self._concerned(nodes, "")

    def wait(self, standing: Standing) -> None:
        """A job waits: to be let in, or for chips."""
        actions = self.conf.actions
        if standing.phase is Phase.PENDING and actions and "enqueue" not in actions:
            self.admit(standing)
        if standing.job.podless and standing.phase is not Phase.PENDING:
            return
        if actions and self.starts.not_before(standing.job.name) > self.now:
            self._rest(standing)
            return
        self._waitlist(standing).add(standing, self.key_of(standing))
        self._note_due(standing)
        if not standing.told and not standing.placements:
            self.untold[standing.job.name] = standing

    def _rest(self, standing: Standing) -> None:
        """A job waits for its time to come."""
        name = standing.job.name
        self.resting[name] = standing
        again_s = ceil(self.starts.not_before(name) - self.now)
        self.tell_waits(
            standing, f"; its pods did not run, it is retried in {again_s} s"
        )

    def admit(self, standing: Standing) -> None:
        """A job is let in."""
        standing.let_in_early = False
        self.view.move(standing, Phase.INQUEUE)
        self.let_in.append(standing.job.name)

    def key_of(self, standing: Standing) -> Key:
        """Where a job stands in its queue: first who lost pods it cannot do without."""
        return (not self.is_stranded(standing), *self.votes.job_key(standing))

    def is_stranded(self, standing: Standing) -> bool:
        """Whether a job that ran lacks pods it cannot do without."""
        return standing.is_broken or standing.job.name in self.repairs

    def _note_due(self, standing: Standing) -> None:
        """Its queue had nobody to reserve for until a time: now it has, some time."""
        queue = standing.job.queue
        if queue in self.barren:
            after = self.arguments("allocate").get("reservation-after-seconds", 0)
            assert isinstance(after, int)
            structure, until = self.barren[queue]
            self.barren[queue] = structure, min(until, standing.waiting_since + after)

    def _waitlist(self, standing: Standing) -> Waitlist:
        if standing.phase is Phase.PENDING:
            return self.pending
        return self.modest if standing.asks_nothing else self.waiting

    def stop_waiting(self, name: str) -> None:
        """A job waits for nothing."""
        self.newcomers.pop(name, None)
        self.resting.pop(name, None)
        for waitlist in (self.pending, self.waiting, self.modest):
            if name in waitlist:
                waitlist.remove(name)

    def attempt(self, line: Line) -> bool:
        """Try the first job of *line*; whether it was placed, or left the line."""
        _key, standing = line.front
        job = standing.job
        if standing.phase is not Phase.RUNNING:
            refusal = self.votes.job_valid(standing)
            if refusal is not None:
                self.tell_waits(standing, f"; {refusal}")
                self.stop_waiting(job.name)
                return True
        limit = self.quota(standing, overdue=self.is_stranded(standing))
        if limit is None:
            why = self.share_words(standing)
            self.waiting.hold_back(line, why)
            self._fail(line)
            self.tell_waits(standing, why)
            return False
        if self._is_hopeless(line, standing):
            self.waiting.close(line, line.why)
            self._fail(line)
            return False
        found = self.place(standing, limit)
        if isinstance(found, tuple):
            self.start(standing, found)
            return True
        found = self.with_reserved(standing, found)
        repair = self.repairs.get(job.name)
        if repair is not None and repair.stuck_at is None:
            repair.stuck_at = self.now
            self.repairs.is_news = True
        self.waiting.close(line, found)
        self._fail(line)
        self.tell_waits(standing, found)
        return False

    def with_reserved(self, standing: Standing, found: Waiting) -> Waiting:
        """What was *found*, and how many nodes others have reserved."""
        own = standing.job.name
        others = {n: b for n, b in self.bookings.items() if n != own}
        if not others:
            return found
        nodes = frozenset[str]().union(*(b.nodes for b in others.values()))
        jobs = some_of(map(repr, others), 2)
        are = "is" if len(nodes) == 1 else "are"
        said = f"{counted(len(nodes), 'node')} {are} reserved for {jobs}"
        because = "; ".join(filter(None, (found.because, said)))
        return replace(found, because=because)

    def is_passed(self, queue: str) -> bool:
        """Whether *queue* had its share, and nothing has changed since."""
        return self.passed.get(queue) == self.view.version

    def _is_hopeless(self, line: Line, standing: Standing) -> bool:
        """Whether a job that was told why it waits cannot be placed now either.

        There is not even room for so many pods, whatever the network; what it was told
        stands.
        """
        job = standing.job
        if not isinstance(line.why, Waiting) or job.roles or standing.finished:
            return False
        if standing.placements or job.previous or self.yielding(standing):
            return False
        return self._most(_request(standing.ask)) < job.needed

    def _most(self, request: Request) -> int:
        """How many pods of *request* find room at most, whatever the network."""
        found = self._room.get(request)
        if found is None:
            found = self._room[request] = self.session.room(request)
        return found

    def pass_over(self, line: Line) -> None:
        """The queue of *line* has its share; nobody in it is tried."""
        _key, standing = line.front
        self.passed[standing.job.queue] = self.view.version
        self._fail(line)
        self.tell_waits(standing, f"; queue {standing.job.queue!r} uses its share")

    def quota(self, standing: Standing, *, overdue: bool = False) -> int | None:
        """How many pods may run by the accounts of the queue; None when too few.

        Who is *overdue* may use what his queue may ever use, whatever its share is now:
        two queues that each wait for all of the cluster would wait forever.
        """
        job = standing.job
        queue = self.view.queues.get(job.queue)
        if queue is None or not queue.is_open:
            return None
        allowed = self._allowance(standing, queue, overdue=overdue)
        held = len(standing.placements)
        if not held and allowed(standing.total):
            return standing.n_pods - len(standing.finished)
        asks = list(_asks(job, standing))
        if held and allowed(_sum(asks)):
            return held + len(asks)
        low, high = max(1, standing.min_pods - standing.ready), len(asks)
        if low >= high or not allowed(_sum(asks[:low])):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if allowed(_sum(asks[:middle])):
                low = middle
            else:
                high = middle
        return held + low

    def _allowance(
        self, standing: Standing, queue: Queue, *, overdue: bool
    ) -> Callable[[Amounts], bool]:
        """Whether a job may use so much more.

        What others of its queue have reserved it leaves to them: from the share of the
        queue what was promised to those for whom pods end, and from its capability all,
        with what those need who are repaired.
        """
        promised, reserved = self._kept_for_others(standing)

        def allowed(amounts: Amounts) -> bool:
            if reserved and not _below(
                queue.capability,
                self.view.account(queue.name).allocated,
                plus(amounts, reserved),
            ):
                return False
            if overdue:
                return self._capable(queue, amounts)
            asked = plus(amounts, promised) if promised else amounts
            return self.votes.allocatable(queue, asked)

        return allowed

    def _kept_for_others(
        self, standing: Standing
    ) -> tuple[dict[str, int], dict[str, int]]:
        """What others of its queue have been promised, and what they reserved in all.

        Those in their way who are of the same queue leave their part to them.
        """
        promised = self._promised_to_others(standing)
        reserved = dict(promised)
        if self.view.queues[standing.job.queue].capability:
            for booking in self._reserved.aged:
                if self._matters(booking, standing):
                    add(reserved, booking.lacks)
        for name, repair in self.repairs.open.items():
            if name == standing.job.name or repair.job is None:
                continue
            if repair.job.queue == standing.job.queue:
                lacks = repair.wanting(self.view.standings.get(name))
                add(reserved, _sum(_asks_of(repair.job, lacks)))
        return promised, reserved

    def _promised_to_others(self, standing: Standing) -> dict[str, int]:
        """What others of its queue lack for whom pods end, and a job may not use."""
        own = self.bookings.get(standing.job.name)
        if not standing.is_broken:  # else some of it may yield
            return self._reserved.promised(standing.job.queue, own)
        promised: dict[str, int] = {}
        for booking in self.bookings.values():
            if not booking.aged and self._matters(booking, standing):
                add(promised, booking.lacks)
        return promised

    def _matters(self, booking: Booking, standing: Standing) -> bool:
        """Whether another of its queue has reserved it, and a job may not use it."""
        same = booking.job.queue == standing.job.queue
        other = booking.job.name != standing.job.name
        return same and other and not self.yields(booking, standing)

    def yields(self, booking: Booking, standing: Standing) -> bool:
        """Whether a job may use what another has reserved."""
        arguments = self.conf.action_arguments.get("allocate", {})
        strict = arguments.get("reservation") == "strict"
        return booking.yields_to(standing, self.now, strict=strict)

    def _capable(self, queue: Queue, amounts: Amounts) -> bool:
        """Whether *queue* is open and may ever use *amounts* more than it does."""
        used = self.view.account(queue.name).allocated
        kept: dict[str, int] = {}
        for other in self.view.queues.values():
            if other.name != queue.name:
                add(kept, other.guarantee)
        total, most = self.view.total, queue.capability
        rest = inf if self.view.unnamed is None else self.view.unnamed
        return queue.is_open and all(
            used.get(name, 0) + amount <= most.get(name, inf)
            and used.get(name, 0) + amount <= total.get(name, rest) - kept.get(name, 0)
            for name, amount in amounts.items()
        )

    def share_words(self, standing: Standing) -> str:
        """Why a job may not start now by the accounts of its queue."""
        name = standing.job.queue
        return self.door_words(name) or f", more than queue {name!r} may use now"

    def door_words(self, name: str) -> str:
        """Why no job of the queue *name* starts, whatever it asks; empty if some do."""
        queue = self.view.queues.get(name)
        if queue is None:
            return f"; queue {name!r} does not exist"
        return "" if queue.is_open else f"; queue {name!r} is closed"

    def turn_away(self, line: Line, why: str) -> None:
        """Nobody in *line* is let in; who is in front may still fit."""
        self.pending.hold_back(line, why)
        self.turned_away.append(line)
        self._fail(line)

    def tell_turned_away(self) -> None:
        """Say why those wait who were not let in, and did not start all the same."""
        for line in self.turned_away:
            if line:
                self.tell_waits(line.front[1], str(line.why))
        self.turned_away = []

    def full_words(self, name: str) -> str:
        """Why a job of the open queue *name* is not let in: the queue, or the cluster.

        A queue that may use all there is, is full when the cluster is: by what runs,
        and by what those who were let in before will use.
        """
        queues = self.view.queues
        limited = queues[name].capability or any(
            queue.guarantee for queue in queues.values() if queue.name != name
        )
        return (
            f"; not admitted: queue {name!r} has too little quota left"
            if limited
            else CROWDED
        )

    def place(self, standing: Standing, limit: int) -> tuple[Placement, ...] | Waiting:
        """Places for the pods of a job, held; what others reserved only as they may."""
        found = self._placed(standing, limit)
        if isinstance(found, tuple):
            return found
        yielding = self.yielding(standing)
        return self._placed_among(standing, limit, yielding) if yielding else found

    def place_if_any(
        self, standing: Standing, limit: int
    ) -> tuple[Placement, ...] | None:
        """The same, of a job that has none; nobody asks why where there are none."""
        roomy, job = self._has_room(standing), standing.rest
        placed = self.session.preview(job, limit, holds=True) if roomy else None
        if placed is not None:
            ready = self._is_ready(standing, placed)
            return placed.placements if ready else None
        yielding = self.yielding(standing)
        found = self._placed_among(standing, limit, yielding) if yielding else None
        return found if isinstance(found, tuple) else None

    def may_fit(self, standing: Standing) -> bool:
        """Whether there may be places for a job that has none; false if surely not."""
        return self._has_room(standing) or bool(self.yielding(standing))

    def _has_room(self, standing: Standing) -> bool:
        """Whether enough is free for a job, whatever the network and its roles."""
        ask = standing.ask
        unclear = ask.roles or standing.finished
        return bool(unclear) or self._most(_request(ask)) >= ask.needed

    def yielding(self, standing: Standing) -> list[Booking]:
        """What others have reserved that a job may use."""
        return [
            booking
            for booking in self._may_yield(standing)
            if booking.job.name != standing.job.name and self.yields(booking, standing)
        ]

    def _may_yield(self, standing: Standing) -> Collection[Booking]:
        """The reservations that may yield to a job, the oldest first.

        Of those for which pods were evicted there may be thousands, and they yield to
        none but a job that lacks pods it cannot do without.
        """
        return self.bookings.values() if standing.is_broken else self._reserved.aged

    def usable(self, standing: Standing) -> list[Booking]:
        """The reservations that a job may use, its own among them, the oldest first."""
        own = self.bookings.get(standing.job.name)
        found = self.yielding(standing) + ([] if own is None else [own])
        return sorted(found, key=attrgetter("number"))

    def blocked(self, but: Collection[Booking]) -> Callable[[str], bool]:
        """Whether a reservation waits for a job to end, all *but* some."""
        apart, blockers = {*but}, self._reserved.blockers
        aged = {n for b in self._reserved.aged if b not in apart for n in b.blockers}
        if not apart:
            return lambda job: job in blockers or job in aged
        return lambda job: (
            job in aged or any(b not in apart for b in blockers.get(job, ()))
        )

    @property
    def free_enders(self) -> list[Standing]:
        """Jobs with terminating pods whose chips no reservation waits for."""
        names = self.ends.keys() - self._reserved.blockers.keys()
        for booking in self._reserved.aged if names else ():
            names -= booking.blockers.keys()
        return [s for name, s in self.ends.items() if name in names] if names else []

    def _placed(
        self, standing: Standing, limit: int
    ) -> tuple[Placement, ...] | Waiting:
        """Places for the pods of a job that has none, or has too few.

        What is held for its repair is its own.
        """
        repair = self.repairs.get(standing.job.name)
        if repair is None:
            return self._found(standing, limit)
        with Statement(self.view.cluster) as statement:
            self.repairs.let_go(repair.name, statement, self.view.cluster)
            found = self._found(standing, limit, repair)
            if isinstance(found, tuple):
                statement.commit()
            return found

    def _found(
        self, standing: Standing, limit: int, repair: Repair | None = None
    ) -> tuple[Placement, ...] | Waiting:
        """The same, of all that is free."""
        job, session = standing.rest, self.session
        if standing.placements:
            found = self._joined(standing, limit, repair)
            return found or self.why_short(standing)
        decision: Decision = session.decide(job, limit=limit, hints=False)
        if isinstance(decision, Waiting):
            return decision
        if isinstance(decision, Placed) and self._is_ready(standing, decision):
            return decision.placements
        return short_of_pods(standing)

    def _joined(
        self, standing: Standing, limit: int, repair: Repair | None
    ) -> tuple[Placement, ...]:
        """Further pods of a running job, held, if they are enough."""
        enough = max(1, standing.min_pods - standing.ready)
        alive, cluster = (*standing.placements.values(),), self.view.cluster
        back = () if repair is None else repair.returning(cluster, standing)
        found = self._further(
            standing, alive, back, repair, enough=enough, limit=limit, holds=True
        )
        return found if len(found) >= enough else ()

    def _further(
        self,
        standing: Standing,
        alive: Sequence[Placement],
        back: tuple[Placement, ...],
        repair: Repair | None,
        *,
        enough: int,
        limit: int | None = None,
        holds: bool = False,
    ) -> tuple[Placement, ...]:
        """Places for pods of a job beside those *alive*; held only if *enough* are.

        Pods that were deleted go *back* to their places. Where too few others find one
        then, those of whole blocks that were deleted go elsewhere with them.
        """
        job, cluster = standing.rest, self.view.cluster
        job = job if repair is None else repair.barred(job)
        several = [back]
        if back and repair is not None and repair.reach.is_wide:
            several.append(())
        first: tuple[Placement, ...] = ()
        for returning in several:
            with Statement(cluster) as statement:
                hold_all(statement, cluster, job, returning)
                held = (*alive, *returning)
                lost = () if repair is None else repair.lost(held)
                more = self.session.join(job, held, limit, lost)
                found = (*returning, *more)
                if holds and len(found) >= enough:
                    statement.commit()
                else:
                    self._take_back(standing, more)
            if len(found) >= enough:
                return found
            first = first or found
        return first

    def asking(self, standing: Standing, job: Job) -> Job:
        """*job* as its pods look for nodes, beside those of it that run."""
        repair = self.repairs.get(standing.job.name)
        held = (*standing.placements.values(),)
        if repair is None:
            return as_running(job, held, ())
        return as_running(repair.barred(job), held, repair.lost(held))

    def why_short(self, standing: Standing, *, hints: bool = False) -> Waiting:
        """Why a running job finds no room for the pods it lacks."""
        job, short = self.asking(standing, standing.rest), short_of_pods(standing)
        found = self.session.why_none_join(job, hints=hints)
        if found is None:
            return short
        because = "; ".join(filter(None, (found.because, short.because)))
        return replace(found, job=standing.job, missing=short.missing, because=because)

    def _is_ready(self, standing: Standing, placed: Placed) -> bool:
        """Whether every plugin lets the job start; else its pods hold nothing."""
        own = {p.replica: p for p in placed.placements}
        standing.placements |= own
        ready = self.votes.job_ready(standing)
        for replica in own:
            del standing.placements[replica]
        if not ready:
            self._take_back(standing, placed.placements)
        return ready

    def _take_back(self, standing: Standing, placements: Iterable[Placement]) -> None:
        """Pods that were placed hold nothing."""
        new = {placement.replica for placement in placements}
        if new:
            with Statement(self.view.cluster) as statement:
                statement.release_pods(standing.job.name, new)
                statement.commit()

    def preview(self, standing: Standing, limit: int) -> Placed | None:
        """Where the pods would be placed that a job lacks, all it cannot do without."""
        job, session = standing.rest, self.session
        repair = self.repairs.get(standing.job.name)
        with Statement(self.view.cluster) as statement:
            self.repairs.let_go(standing.job.name, statement, self.view.cluster)
            if not standing.placements:
                return session.preview(job, limit)
            more = self._joined(standing, limit, repair)
            self._take_back(standing, more)
        enough = len(more) >= standing.min_pods - standing.ready
        return Placed(job, more) if enough else None

    def is_promised(self, standing: Standing, placed: Placed) -> bool:
        """Whether every plugin is content with the places the job waits for."""
        standing.promised = frozenset(p.replica for p in placed.placements)
        content = self.votes.job_pipelined(standing)
        if not content:
            standing.promised = NONE_OF_THEM
        return content

    def _placed_among(
        self, standing: Standing, limit: int, bookings: Iterable[Booking]
    ) -> tuple[Placement, ...] | Waiting:
        """The same, with what the *bookings* hold free besides."""
        cluster = self.view.cluster
        with Statement(cluster) as statement:
            for booking in bookings:
                booking.let_go(statement, cluster)
            found = self._placed(standing, limit)
            if isinstance(found, tuple):
                statement.commit()
                standing.placements |= {p.replica: p for p in found}
                for booking in bookings:
                    booking.hold(cluster)
                    booking.blocked_by([standing])
                    self._reserved.changed(booking)
            return found

    def redeem_all(self) -> None:
        """Start who has a reservation and can, as far as something is free since."""
        for booking in list(self.bookings.values()):
            if self.cut_short():
                return
            if booking.failed_at != self.supply:
                self.redeem(booking)

    def redeem(self, booking: Booking) -> bool:
        """Try a job that has a reservation, with it and everything else that is free.

        A reservation that is all free, and does not help, is given up.
        """
        standing = self.view.standings[booking.job.name]
        cluster = self.view.cluster
        limit = None
        if not self._is_vain(booking, standing):
            limit = self.quota(standing, overdue=booking.beyond)
        if limit is not None:
            with Statement(cluster) as statement:
                booking.let_go(statement, cluster)
                found: object = None  # nobody asks why it does not help
                if self.preview(standing, limit) is not None:
                    found = self._placed(standing, limit)
                if isinstance(found, tuple):
                    statement.commit()
                    self._unbook(booking)
                    self.start(standing, found)
                    self.freed(cluster.products, booking.nodes)
                    return True
        booking.failed_at = self.supply
        if not booking.blockers:
            self.give_up(booking)
            self.wait(standing)
        return False

    def _is_vain(self, booking: Booking, standing: Standing) -> bool:
        """Whether there is too little room for a job, with its reservation.

        Only chips are counted, and only of a job that has not started yet.
        """
        job, cluster = standing.job, self.view.cluster
        began = standing.placements or standing.finished or job.previous
        if began or job.roles or not job.chips or job.name in self.repairs:
            return False
        most = self._most(_request(standing.ask)) + booking.room(cluster, job.chips)
        return most < job.needed

    def book(self, standing: Standing, booking: Booking) -> None:
        """A reservation is made; its job waits for it and in no line.

        As long as it does, its queue keeps no room for it besides.
        """
        while booking.holder in self.view.standings:
            booking.holder += "'"
        self.stop_waiting(standing.job.name)
        if not standing.placements:
            self.view.move(standing, Phase.PENDING)
        self.relief = True
        self._booked += 1
        booking.number = self._booked
        self.bookings[standing.job.name] = booking
        self._holders[booking.holder] = booking
        self._reserved.add(booking)
        for node in booking.nodes:
            self._booked_on.setdefault(node, {})[booking] = None
        for name in booking.elsewhere:
            self._kept_by.setdefault(name, {})[booking] = None
        if booking.aged:
            standing.promised = NONE_OF_THEM  # nobody ends for it; it may still evict
        booking.failed_at = self.supply
        booking.hold(self.view.cluster)

    def avoid(self, name: str) -> None:
        """A job is called *name*: no reservation holds anything under it."""
        booking = self._holders.pop(name, None)
        if booking is not None:
            booking.rename(self.view.cluster)
            self._holders[booking.holder] = booking

    def give_up(self, booking: Booking) -> None:
        """A reservation is no more; what it held is free."""
        self._unbook(booking)
        self.view.standings[booking.job.name].promised = NONE_OF_THEM
        cluster = self.view.cluster
        with Statement(cluster) as statement:
            booking.let_go(statement, cluster)
            statement.commit()
        self.freed(cluster.products, booking.nodes)

    def _unbook(self, booking: Booking) -> None:
        """A reservation is known no more."""
        del self.bookings[booking.job.name]
        self.structure += 1
        del self._holders[booking.holder]
        self._reserved.remove(booking)
        for names, where in (
            (booking.nodes, self._booked_on),
            (booking.elsewhere, self._kept_by),
        ):
            for name in names:
                del where[name][booking]
                if not where[name]:
                    del where[name]

    def start(self, standing: Standing, placements: tuple[Placement, ...]) -> None:
        """Pods were placed: bind them; the job waits only for pods it still lacks."""
        job = standing.job
        self.stop_waiting(job.name)
        standing.placements |= {p.replica: p for p in placements}
        placed = Placed(job, placements)
        written = tuple(self._written(placed, p) for p in placements)
        warnings = warnings_of(job, self.view.settings)
        self.out.append(Bind(job.name, placements, written, warnings))
        self.bound.add(job.name)
        self.pods_came(job)
        standing.told = standing.why = standing.before = ""
        standing.promised = NONE_OF_THEM
        if standing.phase is Phase.RUNNING:
            self.starts.join(job.name, [p.replica for p in placements], self.now)
        else:
            standing.started = self.now
            self.starts.begin(job.name, self.now)
            self.view.move(standing, Phase.RUNNING)
        if standing.missing:
            self.wait(standing)
        self.repairs.placed(job.name, {p.replica for p in placements})
        repair = self.repairs.get(job.name)
        if repair is not None:
            repair.stuck_at = None
            new = {placement.replica for placement in placements}
            repair.deleted -= new
            repair.forced -= new
            nodes = repair.nodes
            repair.hold(self.view.cluster, standing)
            if nodes - repair.nodes:
                self.freed(self.view.cluster.products, nodes)
            self.repairs.is_news = True

    def _written(self, placed: Placed, placement: Placement) -> dict[str, str]:
        """What is written on a pod; of one whose job ran on, whether it returned."""
        found = pod_annotations(self.view.cluster, placed, placement)
        repair = self.repairs.get(placed.job.name)
        if repair is not None and repair.reach is not Reach.JOB and found:
            before = repair.placements.get(placement.replica)
            if before is not None and before.node == placement.node:
                found["reschedule-in-place"] = "true"
        return found

    def end_for_repair(
        self, standing: Standing, replicas: Collection[int], repair: Repair
    ) -> None:
        """Pods are deleted because of faults; nobody else waits for what they hold."""
        name = standing.job.name
        if name in self.bookings:
            self.give_up(self.bookings[name])
        self.view.end(standing, replicas)
        self.stop_waiting(name)
        self.relief = True
        if repair.reach is Reach.JOB:
            self.become(standing, replace(standing.job, previous=repair.previous))
        repair.spare = self._spares(standing, repair)
        repair.hold(self.view.cluster, standing)
        if standing.missing and not standing.terminating and not repair.awaited:
            self.wait(standing)

    def _spares(self, standing: Standing, repair: Repair) -> dict[int, Placement]:
        """Where pods could go now if all were gone that were deleted."""
        name, cluster = standing.job.name, self.view.cluster
        job = repair.barred(standing.rest)
        with Statement(cluster) as statement:
            repair.let_go(statement, cluster)
            if gone := standing.terminating & standing.placements.keys():
                statement.release_pods(name, gone)
            alive = [p for n, p in standing.placements.items() if n not in gone]
            back = repair.returning(cluster, standing)
            if alive:
                enough = len(repair.wanting(standing))
                found = self._further(standing, alive, back, repair, enough=enough)
            else:
                placed = self.session.preview(job)
                found = () if placed is None else placed.placements
        spare = {p.replica: p for p in found if p.replica in repair.deleted}
        repair.moving = {p.replica for p in back if spare.get(p.replica, p) != p}
        return spare

    def become(self, standing: Standing, job: Job) -> None:
        """A job is another one from now on; whoever calls says if it waits."""
        waits = any(
            job.name in waitlist
            for waitlist in (self.pending, self.waiting, self.modest)
        )
        self.stop_waiting(job.name)
        self.view.leave(standing)
        standing.become(job)
        self.view.enter(standing)
        self._reserved.job_changed(standing)
        if waits:
            self.wait(standing)

    def note_whole(self, standing: Standing) -> bool:
        """Whether all pods have run that a job cannot do without, once they have."""
        start = self.starts[standing.job.name]
        if not start.was_whole:
            ran = start.runs & standing.placements.keys() | standing.finished
            if len(ran) >= standing.min_pods:
                self.starts.is_whole(standing.job.name)
        return start.was_whole

    def take_back(self, node: str) -> None:
        """A node that was set aside takes pods again."""
        self.asides.take_back(node, self.now)
        self.opened(node)

    def opened(self, node: str) -> None:
        """A node is set aside no longer."""
        cluster = self.view.cluster
        at = cluster.index[node]
        cluster.set_aside(at, aside=False)
        self.repairs.book.taken_back(node, self.now)
        self.structure += 1
        self.freed([cluster.product_of(at)])

    def pods_came(self, job: Job) -> None:
        """Pods of *job* are there: company for some, prey for others."""
        lists = self.waiting, self.modest, self.pending
        lonely = [waitlist.pods_came() for waitlist in lists]
        self.relief |= any(lonely)
        if "preempt" in self.conf.actions:
            for waitlist in (self.waiting, self.pending):
                waitlist.reopen_above(job)
        self.moves += 1

    def evict(
        self, victim: Standing, replicas: tuple[int, ...], by: str, action: str
    ) -> None:
        """Ask pods to end, for the job *by*."""
        name = victim.job.name
        self.view.end(victim, replicas)
        self.relief = True
        victim.evicted_by |= {by}
        victim.evicted_in = self.arrivals
        self.ends[name] = victim
        self.stop_waiting(name)
        self.out.append(Evict(name, tuple(sorted(replicas)), by, action))

    def tell_waits(
        self, standing: Standing, why: Waiting | str, *, behind: bool = False
    ) -> None:
        """Say why a job waits, if it is news: others before it, or something else."""
        job = standing.job
        if isinstance(why, str):
            if standing.why == why:
                return
            told = f"job {job.name!r} waits: needs {job.wanted}{why}"
            behind = behind or why == CROWDED
            self.tell(standing, Verdict.WAITING, told, behind=behind)
            standing.why = why
            return
        found = replace(why, job=job)
        standing.why = ""
        if standing.is_news(found.message):
            self.out.append(
                Report(
                    job.name,
                    Verdict.WAITING,
                    found.message,
                    found.hint,
                    found.missing,
                    found.reasons,
                    warnings=warnings_of(job, self.view.settings),
                )
            )

    def tell_the_others(self) -> None:
        """Say why those wait who stand behind somebody else."""
        for name, standing in self.untold.items():
            waitlist = self._waitlist(standing)
            if standing.told or standing.placements or name not in waitlist:
                continue
            why = waitlist.line_of(name).why
            others = f"; other jobs of queue {standing.job.queue!r} are ahead of it"
            self.tell_waits(standing, why or others, behind=not why)
        self.untold = {}

    def tell(
        self,
        standing: Standing,
        verdict: Verdict,
        message: str,
        hint: str = "",
        *,
        behind: bool = False,
    ) -> None:
        """Say something of a job, if it is news."""
        if standing.is_news(message):
            standing.why = ""
            name = standing.job.name
            waits = verdict is Verdict.WAITING
            said = warnings_of(standing.job, self.view.settings) if waits else ()
            self.out.append(
                Report(name, verdict, message, hint, behind=behind, warnings=said)
            )


_requests: Final[Cache[Job, Request]] = Cache(4096, 8 << 20)


def _request(ask: Job) -> Request:
    """The request of jobs that ask the same, found once."""
    found = _requests.get(ask)
    if found is None:
        found = request_of(ask)
        _requests.put(ask, found, ask.weight)
    return found


def hold_all(
    statement: Statement, cluster: Cluster, job: Job, placements: Iterable[Placement]
) -> None:
    """Give pods of *job* the places they had."""
    roles = job.role_by_pod
    for each in placements:
        statement.allocate(
            job.name,
            cluster.index[each.node],
            mask_of(each.chips),
            each.replica,
            each.mark or NO_MARK,
            demand=roles[each.replica].demand,
        )


def _below(most: Amounts, used: Amounts, amounts: Amounts) -> bool:
    """Whether *amounts* fit between what is *used* and the *most*."""
    return all(
        used.get(name, 0) + amounts.get(name, 0) <= limit
        for name, limit in most.items()
        if amounts.get(name, 0)
    )


def _asks(job: Job, standing: Standing) -> Iterator[dict[str, int]]:
    """What each pod asks that a job lacks."""
    return _asks_of(job, {*standing.missing})


def _asks_of(job: Job, replicas: Collection[int]) -> Iterator[dict[str, int]]:
    """What each of these pods asks."""
    for role, own in job.crew:
        for replica in own:
            if replica in replicas:
                yield pod_amounts(job, role)


def _sum(asks: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for ask in asks:
        add(total, ask)
    return total


def short_of_pods(standing: Standing) -> Waiting:
    """A running job that lacks pods finds no room for more."""
    missing = len(standing.missing)
    run = "runs" if standing.ready == 1 else "run"
    return Waiting(
        job=standing.job,
        missing=missing,
        fitting=0,
        reasons={},
        hint="",
        because=f"{counted(standing.ready, 'pod')} of it {run}",
    )
