"""Deciding jobs over the one cluster. Start reading here: ``Session.decide``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Final

from ringleaf.framework.preference import Preference, Score, best_by_scan
from ringleaf.framework.statement import Statement
from ringleaf.framework.waiting import told_to_wait
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Placed, Reason
from ringleaf.model.fleet import Flags
from ringleaf.model.job import Job, Keep, Network, Role
from ringleaf.model.placement import NO_MARK, Placement
from ringleaf.model.settings import Settings
from ringleaf.policies.admission import admit, warnings_of
from ringleaf.policies.chips import written_order
from ringleaf.policies.fit import (
    Barred,
    Request,
    capacity,
    node_ranks,
    reach,
    request_of,
)
from ringleaf.policies.gang import Seat, superpod_seats, switch_seats
from ringleaf.policies.repair import (
    Level,
    barred_nodes,
    kept_seats,
    levels_of,
    missing_replicas,
    repaired_in_superpods,
    repaired_under_leaves,
)
from ringleaf.policies.superpods import best_in_superpods

MANY: Final = 64
"""A gang of this many replicas asks for room before it takes any."""


Scorer = Callable[[Job, Role], Score | None]
"""How other plugins score nodes for a pod of a role; it may depend on the role's chips
and demand, so that pods that ask the same share what is known of the nodes."""

Bars = Callable[[Job, Role], Flags | None]
"""The nodes that other plugins allow to the next pod of a role; None: all of them."""


class Session:
    """Decides jobs one after the other; each sees what the earlier ones took.

    Args:
        cluster: Where they are placed.
        settings: What the operator chose.
        scorer: Decides where affinity ranks tie (D26), but under no network rule.
        bars: Keeps pods off nodes, for reasons of other plugins.
        sum_scores: Whether the affinity rank is a score among others.

    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings | None = None,
        *,
        scorer: Scorer | None = None,
        bars: Bars | None = None,
        sum_scores: bool = False,
    ) -> None:
        self.cluster = cluster
        self.settings = settings or Settings()
        self._scorer, self._bars, self._sum_scores = scorer, bars, sum_scores
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
        return told_to_wait(self, job, request)

    def _place(
        self, statement: Statement, job: Job, request: Request, level: Level
    ) -> list[Placement] | None:
        """Hold chips for every replica, or return None with some of them held."""
        if job.name in self.cluster.holdings:
            statement.release(job.name)
        if one_by_one(job):
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
        barred = self.barred(job)
        if in_superpods:
            return superpod_seats(cluster, request, job, settings, barred)
        ranks = node_ranks(cluster, request, barred)
        return switch_seats(cluster, job, settings, ranks)

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
        cluster, barred = self.cluster, self.barred(job)
        if request.network is Network.SUPERPODS:
            reserve = self.settings.reserve_nodes
            return best_in_superpods(cluster, request, reserve, barred)
        summed = self._sum_scores
        if barred:
            score = self._score(job)
            return best_by_scan(cluster, request, barred, score, summed=summed)
        preference = self._preferences.get(request)
        if preference is None:
            preference = Preference(cluster, request, self._score(job), summed=summed)
            self._preferences[request] = preference
        return preference.best()

    def _score(self, job: Job) -> Score | None:
        return None if self._scorer is None else self._scorer(job, job.crew[0][0])

    def barred(self, job: Job, kept: Sequence[Seat] = ()) -> Barred:
        """The nodes that *job* may not use, whatever they have free, and why."""
        barred = barred_nodes(self.cluster, job, kept)
        if self._bars is None:
            return barred
        allowed = self._bars(job, job.crew[0][0])
        if allowed is None:
            return barred
        return {Reason.REFUSED: (~allowed).nonzero()[0], **barred}

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
        statement.allocate(job.name, node, taken, seat.replica, mark, demand=job.demand)
        chips = written_order(request.row, taken)
        return Placement(
            seat.replica, cluster.names[node], chips, seat.block, seat.mark
        )

    def fits_now(self, job: Job) -> bool:
        """Whether *job*, placed anew, would be placed now."""
        request = request_of(job)
        if one_by_one(job):
            barred = self.barred(job)
            return capacity(self.cluster, request, barred) >= job.replicas
        return self._seats(job, request, Level.JOB) is not None

    def would_place(self, job: Job, level: Level | None = None) -> bool:
        """Whether *job* would be placed now, at any level or at *level*."""
        request = request_of(job)
        for each in levels_of(job) if level is None else (level,):
            with Statement(self.cluster) as statement:
                if self._place(statement, job, request, each) is not None:
                    return True
        return False

    @contextmanager
    def as_found_by(self, job: Job) -> Iterator[list[Seat]]:
        """The cluster as the missing pods of *job* find it, and the pods that stay.

        What the job holds is released; where no network rule bars the nodes of its own
        pods, those that stay hold their chips. Leaving takes it all back.
        """
        with Statement(self.cluster) as statement:
            if job.name in self.cluster.holdings:
                statement.release(job.name)
            request = request_of(job)
            kept = []
            if job.previous is not None and job.previous.keep is Keep.PODS:
                kept = kept_seats(self.cluster, request, job)
            if one_by_one(job):
                for seat in kept:
                    self._take(statement, job, request, seat)
            yield kept


def one_by_one(job: Job) -> bool:
    """Whether replicas are placed one after the other, not as a whole.

    Without a network rule; a single pod in a SuperPoD needs no block.
    """
    single = job.network is Network.SUPERPODS and job.replicas == 1
    return single or job.network is Network.NONE
