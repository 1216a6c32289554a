"""Placing one job: what is held for its repair, and what others reserved, included."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ringleaf.framework.changes import Change, Changes
from ringleaf.framework.framework import Framework
from ringleaf.framework.job_state import NONE_OF_THEM, JobState
from ringleaf.framework.placement_attempt import as_running
from ringleaf.framework.repair import Repair, hold_all
from ringleaf.framework.repairs import Repairs
from ringleaf.framework.reservation import Reservation
from ringleaf.framework.reservations import Reservations
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.statement import Statement
from ringleaf.model.cache import Cache
from ringleaf.model.decision import Placed, Waiting
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.policies.fit import Request, capacity, request_of
from ringleaf.policies.words import counted, some_of

Placements = tuple[Placement, ...]

ROOM_ENTRIES: Final = 1 << 14
"""Requests of which it is kept how many pods fit; while nothing changes in a cluster,
any number of jobs may come, find no place and go."""
ROOM_BYTES: Final = 8 << 20
"""Bytes of those requests."""


class Placer:
    """Places the pods that a job lacks, within its quota."""

    def __init__(
        self,
        state: SchedulerState,
        framework: Framework,
        changes: Changes,
        reservations: Reservations,
        repairs: Repairs,
    ) -> None:
        self._state, self._framework, self._changes = state, framework, changes
        self._reservations, self._repairs = reservations, repairs
        self._room: Cache[Request, int] = Cache(ROOM_ENTRIES, ROOM_BYTES)
        """How many pods of a request fit at most, as the cluster is."""
        self._room_generation = -1, -1

    def place(
        self, job_state: JobState, limit: int, *, reasons: bool = True
    ) -> Placements | Waiting:
        """Places for the pods of a job, held; of reservations only what is lent to it.

        Without *reasons* a job that finds none gets no explanation, and costs less.
        """
        found: Placements | Waiting
        may_start = limit >= job_state.facts.effective_min
        if reasons and may_start and self._cached_lacks_room(job_state):
            session, job = self._framework.session, job_state.remaining
            found = session.explain_pending(job, hints=False)
        elif reasons or self.has_room(job_state):
            found = self.place_beside_reservations(job_state, limit, reasons=reasons)
            if reasons and not isinstance(found, tuple):
                self.lacks_room(job_state)  # caches the answer for similar jobs
        else:
            found = waiting_for_missing_pods(job_state)
        if isinstance(found, tuple):
            return found
        lent = self._reservations.lent_to(job_state)
        if not lent:
            return found
        return self._place_on_loan(job_state, limit, lent, reasons=reasons)

    def place_beside_reservations(
        self, job_state: JobState, limit: int, *, reasons: bool = True
    ) -> Placements | Waiting:
        """Like ``place``, without what others have reserved.

        What is held for the job's repair is its own. Its pods hold nothing unless every
        plugin lets the job start (of jobs that run already plugins are not asked).
        """
        cluster, session = self._state.cluster, self._framework.session
        with Statement(cluster) as statement:
            if job_state.job.name in self._repairs.open:
                self._repairs.drop_hold(job_state.job.name, statement)
            if job_state.placements:
                joined = self._place_joining_pods(job_state, limit)
                if joined:
                    statement.commit()
                    return joined
                return (
                    self.why_short(job_state)
                    if reasons
                    else waiting_for_missing_pods(job_state)
                )
            job, decision = job_state.remaining, None
            legal = job_state.validated_for is self._state.settings
            if reasons:
                decision = session.decide(job, limit, hints=False, legal=legal)
            else:
                decision = session.place(job, limit, legal=legal)
            if isinstance(decision, Placed) and self._is_ready(job_state, decision):
                statement.commit()
                return decision.placements
        return (
            decision
            if isinstance(decision, Waiting)
            else waiting_for_missing_pods(job_state)
        )

    def _place_on_loan(
        self,
        job_state: JobState,
        limit: int,
        lent: Sequence[Reservation],
        *,
        reasons: bool,
    ) -> Placements | Waiting:
        """Like ``place``, with what the reservations *lent* hold free besides."""
        cluster = self._state.cluster
        with Statement(cluster) as statement:
            for reservation in lent:
                statement.drop(reservation.owner)
            found = self.place_beside_reservations(job_state, limit, reasons=reasons)
            if isinstance(found, tuple):
                statement.commit()
                job_state.placements |= {p.replica: p for p in found}
                self._reservations.borrowed(lent, job_state)
            return found

    def would_place(self, job_state: JobState, limit: int) -> Placed | None:
        """Where the pods would be placed that a job lacks, all it cannot do without."""
        cluster = self._state.cluster
        with Statement(cluster) as statement:
            self._repairs.drop_hold(job_state.job.name, statement)
            if not job_state.placements:
                return self._framework.session.place(job_state.remaining, limit)
            more = self._place_joining_pods(job_state, limit)
        enough = len(more) >= job_state.facts.effective_min - job_state.ready
        return Placed(job_state.remaining, more) if enough else None

    # Whether a try is worth while, by an upper bound on the pods that fit. If
    # lacks_room, _cached_lacks_room or lacks_room_with is true, or has_room or may_fit
    # is false, the job finds no place. Otherwise it may; only would_place is exact.

    def may_fit(self, job_state: JobState) -> bool:
        """Whether there may be places for a job that has none; false if surely not."""
        return self.has_room(job_state) or bool(self._reservations.lent_to(job_state))

    def has_room(self, job_state: JobState) -> bool:
        """Whether enough is free for a job, whatever the network and its roles."""
        key = job_state.facts.scheduling_key
        unclear = key.roles or job_state.finished
        return bool(unclear) or self._max_pods_at_least(job_state, key.min_chip_pods)

    def lacks_room(self, job_state: JobState) -> bool:
        """Whether a job that has not started surely finds too few places."""
        if not self._is_fresh_and_uniform(job_state) or self._reservations.lent_to(
            job_state
        ):
            return False
        return not self._max_pods_at_least(job_state, job_state.job.min_chip_pods)

    def _cached_lacks_room(self, job_state: JobState) -> bool:
        """Whether too few chips are free for a job, as another found before it."""
        if self._room_generation[1] != self._state.cluster.version:
            return False
        if (
            not self._is_fresh_and_uniform(job_state)
            or job_state.job.name in self._repairs.open
        ):
            return False
        most = self._known_room().get(_request(job_state).node_filter_key)
        if most is None or most >= job_state.job.min_chip_pods:
            return False
        return self.lacks_room(job_state)

    @staticmethod
    def _is_fresh_and_uniform(job_state: JobState) -> bool:
        """Whether a job has not started yet, and all its pods are alike."""
        job = job_state.job
        began = job_state.finished or job_state.placements or job.previous
        return not (began or job.roles)

    def lacks_room_with(self, reservation: Reservation, job_state: JobState) -> bool:
        """Whether there is too little room for a job, with its reservation.

        Only chips are counted, and only of a job that has not started yet.
        """
        job, cluster = job_state.job, self._state.cluster
        began = job_state.placements or job_state.finished or job.previous
        if began or job.roles or not job.chips or job.name in self._repairs.open:
            return False
        most = self._max_pods(_request(job_state)) + reservation.room(
            cluster, job.chips
        )
        return most < job.min_chip_pods

    def _max_pods_at_least(self, job_state: JobState, times: int) -> bool:
        """Whether so many pods of a job may find room, whatever the network.

        Chips alone are counted first: most requests differ in resources and labels.
        """
        request = _request(job_state)
        if self._max_pods(request.node_filter_key) < times:
            return False
        return self._max_pods(request) >= times

    def _max_pods(self, request: Request) -> int:
        """How many pods of *request* find room at most, whatever the network."""
        known = self._known_room()
        found = known.get(request)
        if found is None:
            found = capacity(self._state.cluster, request)
            known.put(request, found, request.demand.weight)
        return found

    def _known_room(self) -> Cache[Request, int]:
        """What is known of room in the cluster as it is."""
        generation = (
            self._changes.generation(Change.CAPACITY_FREED),
            self._state.cluster.version,
        )
        if generation != self._room_generation:
            self._room_generation = generation
            self._room.clear()
        return self._room

    # Jobs that run, and lack pods.

    def _place_joining_pods(self, job_state: JobState, limit: int) -> Placements:
        """Further pods of a running job, held, if they are enough."""
        enough = max(1, job_state.facts.effective_min - job_state.ready)
        repair = self._repairs.open.get(job_state.job.name)
        alive, cluster = (*job_state.placements.values(),), self._state.cluster
        back = () if repair is None else repair.reusable_places(cluster, job_state)
        found = self._place_missing(
            job_state, alive, back, repair, enough=enough, limit=limit
        )
        return found if len(found) >= enough else ()

    def _place_missing(
        self,
        job_state: JobState,
        alive: Sequence[Placement],
        back: Placements,
        repair: Repair | None,
        *,
        enough: int,
        limit: int | None = None,
    ) -> Placements:
        """Places for pods of a job beside those *alive*; held only if *enough* are.

        Deleted pods go *back* to their old places. If too few of the other pods find a
        place then, and healthy pods of whole blocks were deleted too, all of them are
        placed elsewhere together.
        """
        job, cluster = job_state.remaining, self._state.cluster
        job = job if repair is None else repair.avoiding_barred_nodes(job)
        several = [back]
        if back and repair is not None and repair.scope.is_wide:
            several.append(())
        first: Placements = ()
        for returning in several:
            with Statement(cluster) as statement:
                hold_all(statement, cluster, job, returning)
                held = (*alive, *returning)
                lost = () if repair is None else repair.previous_places_of_missing(held)
                more = self._framework.session.join(job, held, limit, lost)
                found = (*returning, *more)
                if len(found) >= enough:
                    statement.commit()
                    return found
            first = first or found
        return first

    def plan_replacements(
        self, job_state: JobState, repair: Repair
    ) -> dict[int, Placement]:
        """Where pods could go now if all were gone that were deleted.

        Notes in ``repair.held.leaving`` which pods leave healthy places.
        """
        name, cluster = job_state.job.name, self._state.cluster
        job = repair.avoiding_barred_nodes(job_state.remaining)
        with Statement(cluster) as statement:
            statement.drop(repair.held.owner)
            if gone := job_state.terminating & job_state.placements.keys():
                statement.release_pods(name, gone)
            alive = [p for n, p in job_state.placements.items() if n not in gone]
            back = repair.reusable_places(cluster, job_state)
            if alive:
                enough = len(repair.missing_pods(job_state))
                found = self._place_missing(
                    job_state, alive, back, repair, enough=enough
                )
            else:
                placed = self._framework.session.place(job)
                found = () if placed is None else placed.placements
        spare = {
            p.replica: p
            for p in found
            if p.replica in repair.deletion.awaiting_replacement
        }
        repair.held.leaving = {p.replica for p in back if spare.get(p.replica, p) != p}
        return spare

    def asking(self, job_state: JobState, job: Job) -> Job:
        """*job* as its pods look for nodes, beside those of it that run."""
        repair = self._repairs.open.get(job_state.job.name)
        held = (*job_state.placements.values(),)
        if repair is None:
            return as_running(job, held, ())
        return as_running(
            repair.avoiding_barred_nodes(job),
            held,
            repair.previous_places_of_missing(held),
        )

    def why_short(self, job_state: JobState, *, hints: bool = False) -> Waiting:
        """Why a running job finds no room for the pods it lacks."""
        job, short = (
            self.asking(job_state, job_state.remaining),
            waiting_for_missing_pods(job_state),
        )
        found = self._framework.session.why_none_join(job, hints=hints)
        if found is None:
            return short
        because = "; ".join(filter(None, (found.because, short.because)))
        return replace(found, job=job_state.job, missing=short.missing, because=because)

    def with_reserved(self, job_state: JobState, found: Waiting) -> Waiting:
        """What was *found*, and how many nodes others have reserved."""
        own, reservations = job_state.job.name, self._reservations
        others = [name for name in reservations.by_job if name != own]
        if not others:
            return found
        n_nodes = reservations.n_nodes_beside(own)
        others[:2] = map(repr, others[:2])  # no more are named of thousands
        are = "is" if n_nodes == 1 else "are"
        said = f"{counted(n_nodes, 'node')} {are} reserved for {some_of(others, 2)}"
        because = "; ".join(filter(None, (found.because, said)))
        return replace(found, because=because)

    # What plugins say.

    def _is_ready(self, job_state: JobState, placed: Placed) -> bool:
        """Whether every plugin lets the job start with its pods there."""
        own = {p.replica: p for p in placed.placements}
        job_state.placements |= own
        ready = self._framework.votes.job_ready(job_state)
        for replica in own:
            del job_state.placements[replica]
        return ready

    def pipeline(self, job_state: JobState, placed: Placed) -> bool:
        """Whether every plugin accepts the places that the job waits for."""
        job_state.pipelined = frozenset(p.replica for p in placed.placements)
        accepted = self._framework.votes.job_pipelined(job_state)
        if not accepted:
            job_state.pipelined = NONE_OF_THEM
        return accepted


_requests: Final[Cache[Job, Request]] = Cache(4096, 8 << 20)


def _request(job_state: JobState) -> Request:
    """The request of jobs that ask the same, however long they run; found once."""
    key = job_state.facts.key_without_run_time
    found = _requests.get(key)
    if found is None:
        found = request_of(key)
        _requests.put(key, found, key.weight)
    return found


def waiting_for_missing_pods(job_state: JobState) -> Waiting:
    """A running job that lacks pods finds no room for more."""
    missing = len(job_state.missing)
    run = "runs" if job_state.ready == 1 else "run"
    return Waiting(
        job=job_state.job,
        missing=missing,
        fitting=0,
        reasons={},
        hint="",
        because=f"{counted(job_state.ready, 'pod')} of it {run}",
    )
