"""Deciding jobs over the one cluster. Start reading here: ``Session.decide``."""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from ringleaf.framework.preference import Preference
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Placed, Reason, Waiting
from ringleaf.model.job import Job, Keep, Network
from ringleaf.model.placement import NO_MARK, Placement
from ringleaf.model.settings import Settings
from ringleaf.policies.admission import admit, is_legal, warnings_of
from ringleaf.policies.chips import NEVER, written_order
from ringleaf.policies.fit import (
    FITS,
    Request,
    capacity,
    counted,
    need_words,
    node_ranks,
    reach,
    reason_counts,
    request_of,
)
from ringleaf.policies.gang import Seat, superpod_seats, switch_seats
from ringleaf.policies.obstacles import (
    Obstacle,
    job_reasons,
    repair_obstacle,
    superpod_obstacle,
    switch_obstacle,
)
from ringleaf.policies.repair import (
    Level,
    barred_nodes,
    kept_seats,
    levels_of,
    missing_replicas,
    repaired_in_superpods,
    repaired_under_leaves,
    without_pods,
)
from ringleaf.policies.superpods import best_in_superpods

MANY: Final = 64
"""A gang of this many replicas asks for room before it takes any."""


MAX_ENDINGS: Final = 8
"""Jobs in the way that are tried, for the hint, as the one whose end is enough."""


class Session:
    """Decides jobs one after the other; each sees what the earlier ones took."""

    def __init__(self, cluster: Cluster, settings: Settings | None = None) -> None:
        self.cluster = cluster
        self.settings = settings or Settings()
        self._preferences: dict[Request, Preference] = {}

    def decide(self, job: Job) -> Decision:
        """Admit, choose nodes and chips for every replica, keep all or nothing.

        A job that ran before (``previous``) keeps what it can; how much may move is
        tried level by level.
        """
        if job.previous is None and job.name in self.cluster.holdings:
            raise ValueError(f"job {job.name!r} holds chips already")
        if (never := admit(job, self.settings)) is not None:
            return never
        request = request_of(job)
        for level in levels_of(job):
            with Statement(self.cluster) as statement:
                placements = self._place(statement, job, request, level)
                if placements is not None:
                    statement.commit()
                    warnings = warnings_of(job, self.settings)
                    return Placed(job, tuple(placements), warnings)
        return self._waiting(job, request)

    def _place(
        self, statement: Statement, job: Job, request: Request, level: Level
    ) -> list[Placement] | None:
        """Hold chips for every replica, or return None with some of them held."""
        if job.name in self.cluster.holdings:
            statement.release(job.name)
        if request.network is Network.NONE or _one_pod(job):
            return self._one_by_one(statement, job, request, level)
        seats = self._seats(job, request, level)
        if seats is None:
            return None
        return [self._take(statement, job, request, seat) for seat in seats]

    def _seats(self, job: Job, request: Request, level: Level) -> list[Seat] | None:
        """The node of every replica, by the network rule."""
        cluster, settings = self.cluster, self.settings
        in_superpods = job.network is Network.SUPERPODS
        if level is not Level.JOB:
            if in_superpods:
                return repaired_in_superpods(cluster, request, job, settings, level)
            return repaired_under_leaves(cluster, request, job, settings)
        ranks = node_ranks(cluster, request, barred_nodes(cluster, job, ()))
        chosen = superpod_seats if in_superpods else switch_seats
        return chosen(cluster, job, settings, ranks)

    def _one_by_one(
        self, statement: Statement, job: Job, request: Request, level: Level
    ) -> list[Placement] | None:
        """The best node for one replica after the other."""
        if job.replicas >= MANY and job.previous is None and not self.fits_now(job):
            return None
        placements: list[Placement] = []
        replicas: Sequence[int] = range(job.replicas)
        if level is not Level.JOB:
            kept = kept_seats(self.cluster, request, job)
            placements = [self._take(statement, job, request, seat) for seat in kept]
            replicas = missing_replicas(job, kept)
        block = 0 if request.network is Network.SUPERPODS else None
        for replica in replicas:
            node = self._best(job, request)
            if node is None:
                return None
            seat = Seat(replica, node, block=block)
            placements.append(self._take(statement, job, request, seat))
        return sorted(placements, key=attrgetter("replica"))

    def _best(self, job: Job, request: Request) -> int | None:
        """The node for the next replica."""
        if job.previous is not None:
            return self._best_of(job, request)
        if request.network is Network.SUPERPODS:
            return best_in_superpods(self.cluster, request, self.settings.reserve_nodes)
        preference = self._preferences.get(request)
        if preference is None:
            preference = Preference(self.cluster, request)
            self._preferences[request] = preference
        return preference.best()

    def _best_of(self, job: Job, request: Request) -> int | None:
        """The node for the next replica of a job that may not use every node."""
        cluster, barred = self.cluster, barred_nodes(self.cluster, job, ())
        if request.network is Network.SUPERPODS:
            reserve = self.settings.reserve_nodes
            return best_in_superpods(cluster, request, reserve, barred)
        ranks = node_ranks(cluster, request, barred)
        (fitting,) = (ranks != NEVER).nonzero()
        return int(fitting[ranks[fitting].argmin()]) if len(fitting) else None

    def _take(
        self, statement: Statement, job: Job, request: Request, seat: Seat
    ) -> Placement:
        """Choose chips of the seat's node and hold them in the same breath (D18)."""
        cluster, node = self.cluster, seat.node
        taken = seat.chips
        if taken is None:
            usable = cluster.free.item(node) & reach(cluster, request).item(node)
            taken = request.table.taken(usable)
            assert taken.bit_count() == job.chips, "a seat without its chips"
        mark = seat.mark or NO_MARK
        statement.allocate(job.name, node, taken, seat.replica, mark)
        chips = written_order(request.row, taken)
        return Placement(
            seat.replica, cluster.names[node], chips, seat.block, seat.mark
        )

    def fits_now(self, job: Job) -> bool:
        """Whether *job*, placed anew, would be placed now."""
        request = request_of(job)
        if job.network is Network.NONE or _one_pod(job):
            barred = barred_nodes(self.cluster, job, ())
            return capacity(self.cluster, request, barred) >= job.replicas
        return self._seats(job, request, Level.JOB) is not None

    def _waiting(self, job: Job, request: Request) -> Waiting:
        with Statement(self.cluster) as statement:
            if job.name in self.cluster.holdings:
                statement.release(job.name)
            return self._explained(job, request)

    def _explained(self, job: Job, request: Request) -> Waiting:
        """Why *job* waits; what it holds itself is released for the moment."""
        cluster = self.cluster
        kept = kept_seats(cluster, request, job)
        reasons = job_reasons(cluster, request, job, self.settings, kept)
        obstacle = self._obstacle(job, request, kept)
        fitting = int((reasons == FITS).sum())
        room = fitting if request.network is not Network.NONE or kept else None
        if room is None:
            room = capacity(cluster, request)
        missing = max(1, job.replicas - len(kept) - room)
        counts = reason_counts(reasons)
        ways = [*self._endings(job, obstacle), *obstacle.ways]
        ways += self._other_ways(obstacle)
        if not ways:
            ways = [*self._ways_out(job, request, missing, counts)]
        return Waiting(
            job=job,
            missing=missing,
            fitting=fitting,
            reasons=counts,
            hint="; ".join(ways),
            because=obstacle.because,
            warnings=warnings_of(job, self.settings),
        )

    def _obstacle(self, job: Job, request: Request, kept: Sequence[Seat]) -> Obstacle:
        """What in the network, or in the repair, holds *job* back."""
        cluster, settings = self.cluster, self.settings
        if kept and job.previous is not None:
            ranks = node_ranks(cluster, request, barred_nodes(cluster, job, kept))
            found = repair_obstacle(cluster, request, job, settings, ranks)
            if job.previous.keep is Keep.PODS:
                return replace(found, ways=tuple(self._next_level(job)))
            anew = self._obstacle(job, request, ())
            because = "; placed anew: ".join(
                filter(None, [found.because, anew.because])
            )
            return replace(anew, because=because)
        if job.network is Network.NONE or _one_pod(job):
            return Obstacle()
        ranks = node_ranks(cluster, request, barred_nodes(cluster, job, ()))
        in_superpods = job.network is Network.SUPERPODS
        asked = superpod_obstacle if in_superpods else switch_obstacle
        return asked(cluster, request, job, settings, ranks)

    def _endings(self, job: Job, obstacle: Obstacle) -> Iterator[str]:
        """The first job in the way whose end would be enough."""
        for other in obstacle.jobs[:MAX_ENDINGS]:
            with Statement(self.cluster) as statement:
                statement.release(other)
                if self.fits_now(job):
                    yield f"the end of job {other!r} would be enough"
                    return

    def _other_ways(self, obstacle: Obstacle) -> Iterator[str]:
        """The first other job that would be placed now."""
        for words, other in obstacle.others:
            if is_legal(other, self.settings) and self.fits_now(other):
                yield f"{words} would be placed now"
                return

    def _next_level(self, job: Job) -> Iterator[str]:
        """What restarting more of the job would bring."""
        assert job.previous is not None
        whole = replace(job, previous=replace(job.previous, keep=Keep.JOB))
        request = request_of(job)
        for level in levels_of(whole)[1:]:
            with Statement(self.cluster) as statement:
                if self._place(statement, whole, request, level) is not None:
                    what = "its block" if level is Level.BLOCKS else "the whole job"
                    yield f"restarting {what} would place it now"
                    return
        yield "restarting the whole job would not place it now either"

    def _ways_out(
        self, job: Job, request: Request, missing: int, reasons: Mapping[Reason, int]
    ) -> Iterator[str]:
        """What would have been enough, and what fits now instead."""
        if request.network is not Network.NONE and not _one_pod(job):
            yield "nothing smaller would be placed now; other jobs must end first"
            return
        if reasons.get(Reason.OTHER_PRODUCT, 0) == len(self.cluster):
            yield f"no node is {job.product.key}"
        room = f"room for {counted(missing, 'more pod')}: " if job.replicas > 1 else ""
        network = " with a healthy network" if Reason.NETWORK_FAULTY in reasons else ""
        yield f"enough would be {room}{need_words(request)}{network}"
        anew = replace(job, previous=without_pods(job), sp_block=None)
        smaller = (replace(anew, chips=n) for n in reversed(range(1, job.chips)))
        fewer = replace(anew, replicas=max(1, job.replicas - missing))
        for other in (*smaller, fewer):
            if is_legal(other, self.settings) and self.fits_now(other):
                yield f"{other.wanted} would be placed now"
                return


def _one_pod(job: Job) -> bool:
    """A single pod in a SuperPoD needs no block."""
    return job.network is Network.SUPERPODS and job.replicas == 1
