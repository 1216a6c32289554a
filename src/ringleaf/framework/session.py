"""Deciding jobs over the one cluster. Start reading here: ``Session.decide``."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ringleaf.framework.preference import Preference, Score, best_by_scan, weighed
from ringleaf.framework.statement import Statement
from ringleaf.framework.waiting import beyond_quota, told_to_wait
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Placed, Reason, Waiting
from ringleaf.model.fleet import Flags
from ringleaf.model.job import Job, Keep, Network, Previous, Role
from ringleaf.model.neighbours import neighbours_of
from ringleaf.model.placement import NO_MARK, Placement
from ringleaf.model.settings import Settings
from ringleaf.policies.admission import admit, is_legal, warnings_of
from ringleaf.policies.chips import Ints, written_order
from ringleaf.policies.fit import (
    NOBODY,
    Barred,
    Request,
    capacity,
    node_ranks,
    reach,
    request_of,
)
from ringleaf.policies.gang import Seat, cut_of, superpod_seats, switch_seats
from ringleaf.policies.locality import leaf_for, one_pod_a_node, tightest
from ringleaf.policies.repair import (
    Level,
    Lineup,
    barred_nodes,
    kept_seats,
    levels_of,
    repaired_in_superpods,
    repaired_under_leaves,
    seat_of,
)
from ringleaf.policies.superpods import best_in_superpods, superpod_weights

Crew = Sequence[tuple[Role, tuple[int, ...]]]
Weight = tuple[int, ...]
"""Numbers that are compared one after the other; lower is better."""

MANY: Final = 64
"""A gang of this many replicas asks for room before it takes any."""

MAX_PREFERENCES: Final = 64
"""Requests whose order of nodes is kept."""

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
        self._fleet = cluster.fleet.version

    @property
    def sums_scores(self) -> bool:
        """Whether the affinity rank is a score among others."""
        return self._sum_scores

    def decide(
        self, job: Job, limit: int | None = None, *, hints: bool = True
    ) -> Decision:
        """Admit, choose nodes and chips for every pod, keep all or nothing.

        A job that may start with fewer pods gets as many as fit, up to *limit*. A job
        that ran before (``previous``) keeps what it can; how much may move is tried
        level by level. Without *hints* a waiting job is not told what would help.
        """
        if job.previous is None and job.name in self.cluster.holdings:
            raise ValueError(f"job {job.name!r} holds chips already")
        if (never := admit(job, self.settings)) is not None:
            return never
        if limit is not None and limit < job.fewest:
            return beyond_quota(self, job, limit)
        for level in levels_of(job):
            with Statement(self.cluster) as statement:
                placements = self.placing(job, level, limit).place(statement)
                if placements is not None:
                    statement.commit()
                    warnings = warnings_of(job, self.settings)
                    return Placed(job, tuple(placements), warnings)
        return self.why_waiting(job, hints=hints)

    def placing(
        self, job: Job, level: Level, limit: int | None = None, *, running: bool = False
    ) -> "Placing":
        """One try to place *job*; who places by another rule tries in another way."""
        return Placing(self, job, level, limit, running=running)

    def why_waiting(
        self, job: Job, *, hints: bool = True, runs: bool = False
    ) -> Waiting:
        """Why *job* cannot be placed now; one that *runs* keeps its pods."""
        return told_to_wait(self, job, request_of(job), hints=hints, runs=runs)

    def room(self, request: Request) -> int:
        """How many pods of a request find room at most, whatever the network."""
        return capacity(self.cluster, request)

    def join(
        self,
        job: Job,
        held: Sequence[Placement],
        limit: int | None = None,
        lost: Iterable[Placement] = (),
    ) -> tuple[Placement, ...]:
        """Further pods of a running job, as many as fit now; those *held* stay.

        *lost* is where pods were that it had and has no more.
        They keep the rule by which the job was placed. With *limit*, the job has no
        more pods than that in all. Pods that are held must hold in the cluster too.
        No pods join a job that could not be placed.
        """
        if not is_legal(job, self.settings):
            return ()
        running = as_running(job, held, lost)
        with Statement(self.cluster) as statement:
            placing = self.placing(running, Level.PODS, limit, running=True)
            placements = placing.place(statement)
            statement.commit()
        return tuple(placements or ())

    def why_none_join(self, job: Job, *, hints: bool = True) -> Waiting | None:
        """Why too few pods ``join`` a *job* ``as_running``; None if none ever can."""
        if not is_legal(job, self.settings):
            return None
        return self.why_waiting(job, hints=hints, runs=True)

    def preview(
        self, job: Job, limit: int | None = None, *, holds: bool = False
    ) -> Placed | None:
        """What ``decide`` would give *job* now if it placed it.

        Nothing is held, unless it *holds* what it finds.
        """
        beyond = limit is not None and limit < job.fewest
        if beyond or admit(job, self.settings) is not None:
            return None
        for level in levels_of(job):
            with Statement(self.cluster) as statement:
                placements = self.placing(job, level, limit).place(statement)
                if placements is not None:
                    if holds:
                        statement.commit()
                    warnings = warnings_of(job, self.settings)
                    return Placed(job, tuple(placements), warnings)
        return None

    def fits_now(self, job: Job) -> bool:
        """Whether *job*, placed anew, would be placed now."""
        if job.roles or self._bars is not None:
            return self.would_place(job, Level.JOB)
        if one_by_one(job):
            return not self.lacks_room(job)
        replicas = job.ranks[: job.needed]
        return self.seats(job, Level.JOB, Lineup(replicas, ())) is not None

    def lacks_room(self, job: Job) -> bool:
        """Whether *job*, placed one by one, finds too few places; not with bars."""
        if self._bars is not None:
            return False
        return capacity(self.cluster, request_of(job), self.barred(job)) < job.needed

    def would_place(self, job: Job, level: Level | None = None) -> bool:
        """Whether *job* would be placed now, at any level or at *level*."""
        for each in levels_of(job) if level is None else (level,):
            with Statement(self.cluster) as statement:
                if self.placing(job, each).place(statement) is not None:
                    return True
        return False

    @contextmanager
    def as_found_by(self, job: Job, *, runs: bool = False) -> Iterator[list[Seat]]:
        """The cluster as the missing pods of *job* find it, and the pods that stay.

        What the job holds is released, unless it *runs*; where no network rule bars
        the nodes of its own pods, those that stay hold their chips. Leaving takes it
        all back.
        """
        if runs:
            yield self.placing(job, Level.PODS, running=True).standing()
            return
        with Statement(self.cluster) as statement:
            if job.name in self.cluster.holdings:
                statement.release(job.name)
            kept = []
            if job.previous is not None and job.previous.keep is Keep.PODS:
                kept = kept_seats(self.cluster, job)
            if one_by_one(job):
                placing = self.placing(job, Level.PODS)
                for seat in kept:
                    placing.take(statement, seat)
            yield kept

    def seats(self, job: Job, level: Level, lineup: Lineup) -> list[Seat] | None:
        """The node of every replica of *lineup*, by the network rule."""
        cluster, settings, request = self.cluster, self.settings, request_of(job)
        cut = None
        if job.network is Network.SUPERPODS:
            cut = cut_of(job, settings, lineup.replicas)
        if level is not Level.JOB:
            if cut is not None:
                return repaired_in_superpods(
                    cluster, request, job, lineup, cut, level=level
                )
            return repaired_under_leaves(cluster, request, job, settings, lineup)
        barred = barred_nodes(cluster, job, (), lineup.refused)
        if cut is not None:
            own = lineup.replicas
            return superpod_seats(cluster, request, job, cut, barred, replicas=own)
        ranks = node_ranks(cluster, request, barred)
        return switch_seats(cluster, job, settings, ranks, lineup.replicas)

    def leaf_for(self, job: Job, pods: int | None = None) -> int | None:
        """The leaf inside which *pods* of a job, or all, stay where ranks tie (D38).

        Only jobs of several pods without a network rule prefer one. Summed scores leave
        no rank to tie.
        """
        cluster, several = self.cluster, job.replicas > 1 and not self._sum_scores
        if not several or job.network is not Network.NONE or not cluster.leaves:
            return None
        pods = job.replicas if pods is None else pods
        request, barred, role = request_of(job), self.barred(job), job.crew[0][0]
        plain = one_pod_a_node(request) and not (job.roles or barred)
        if plain and not self._minds(role):
            places = self._preference(job, role, request).places()
            if places.sum() >= pods > 1:
                return tightest(places[:-1], pods)
        return leaf_for(cluster, request, pods, barred)

    def best(
        self, job: Job, role: Role, request: Request, leaf: int | None = None
    ) -> int | None:
        """The node for the next pod of *role*; where ranks tie, one under *leaf*."""
        cluster, barred = self.cluster, NOBODY
        if job.previous is not None or self._bars is not None:
            barred = self.barred_for(job, role)
        if request.network is Network.SUPERPODS:
            reserve = self.settings.reserve_nodes
            return best_in_superpods(cluster, request, reserve, barred)
        summed = self._sum_scores
        if barred or self._minds(role):
            score = self._score(job, role)
            return best_by_scan(
                cluster, request, barred, score, summed=summed, leaf=leaf
            )
        preference = self._preference(job, role, request)
        return preference.best() if leaf is None else preference.best_under(leaf)

    def _minds(self, role: Role) -> bool:
        """Whether pods of *role* mind others: one that comes changes many scores."""
        if self._scorer is None:
            return False
        return neighbours_of(self.cluster).heeds_others(role.demand)

    def _preference(self, job: Job, role: Role, request: Request) -> Preference:
        """The order of nodes for a request, made when it is first asked for."""
        cluster = self.cluster
        if self._fleet != cluster.fleet.version:
            self._fleet = cluster.fleet.version
            self._preferences.clear()  # who has something to say may have changed
        preference = self._preferences.get(request)
        if preference is None:
            score, summed = self._score(job, role), self._sum_scores
            preference = Preference(cluster, request, score, summed=summed)
            if len(self._preferences) == MAX_PREFERENCES:
                del self._preferences[next(iter(self._preferences))]
            self._preferences[request] = preference
        return preference

    def order(self, job: Job, nodes: Ints, ranks: Ints) -> NDArray[np.intp]:
        """How fitting *nodes* of these ranks suit the next pod with chips, best first.

        Under a network rule scores play no part.
        """
        score = None
        if job.network is Network.NONE:
            score = self._score(job, job.crew[0][0])
        away = self._away(nodes, self.leaf_for(job))
        if score is None:
            return np.lexsort((away, ranks))
        summed, request = self._sum_scores, request_of(job)
        first, then = weighed(request, ranks, score(nodes), summed=summed)
        return np.lexsort((then, away, first))

    def _away(self, nodes: Ints, leaf: int | None) -> NDArray[np.bool_]:
        """Which of some *nodes* are not under *leaf*; none of them without one."""
        if leaf is None:
            return np.zeros(len(nodes), np.bool_)
        return np.not_equal(self.cluster.leaf[nodes], leaf)

    def weights(
        self, job: Job, role: Role, nodes: Ints, ranks: Ints, leaf: int | None = None
    ) -> list[Weight]:
        """How much some fitting *nodes* suit the next pod of *role*, lower is better.

        For each the rank, or with summed scores what stays first of it, whether it is
        away from *leaf*, and the score upside down; of equal ones the lower name goes
        first.
        """
        request = request_of(job, role)
        if request.network is Network.SUPERPODS:
            where, reserve = self.cluster.superpod[nodes], self.settings.reserve_nodes
            return superpod_weights(ranks, where, reserve)
        score = self._score(job, role)
        away = self._away(nodes, leaf).tolist()
        if score is None:
            return [(*pair, 0) for pair in zip(ranks.tolist(), away, strict=True)]
        summed = self._sum_scores
        first, then = weighed(request, ranks, score(nodes), summed=summed)
        return list(zip(first.tolist(), away, then.tolist(), strict=True))

    def _score(self, job: Job, role: Role) -> Score | None:
        return None if self._scorer is None else self._scorer(job, role)

    def refused(self, job: Job, roles: Iterable[Role]) -> Barred:
        """The nodes that plugins refuse to any of *roles*."""
        if self._bars is None:
            return NOBODY
        found = [self._bars(job, role) for role in roles]
        allowed = [flags for flags in found if flags is not None]
        if not allowed:
            return NOBODY
        return {Reason.REFUSED: (~np.logical_and.reduce(allowed)).nonzero()[0]}

    def barred(self, job: Job, kept: Sequence[Seat] = ()) -> Barred:
        """The nodes that no further pod with chips may use, and why."""
        refused = self.refused(job, roles_with_chips(job))
        return barred_nodes(self.cluster, job, kept, refused)

    def barred_for(self, job: Job, role: Role) -> Barred:
        """The nodes that no pod of *role* may use, where it is placed on its own."""
        return barred_nodes(self.cluster, job, (), self.refused(job, [role]))

    def stuck(
        self, statement: Statement, job: Job, *, runs: bool = False
    ) -> tuple[Role | None, int]:
        """Place what can be of a waiting *job*: the role that is short, pods placed."""
        placing = self.placing(job, levels_of(job)[-1], running=runs)
        placing.place(statement)
        return placing.short, len(self.cluster.holdings.get(job.name, ()))


class Placing:
    """One try to place a job inside a statement.

    Args:
        session: Whose cluster, settings and plugins.
        job: What is placed.
        level: What may move of a job that ran before.
        limit: The most pods it may have.
        running: Whether its pods stand and hold their chips, and others join them.

    """

    def __init__(
        self,
        session: Session,
        job: Job,
        level: Level,
        limit: int | None = None,
        *,
        running: bool = False,
    ) -> None:
        self._session, self._job, self._level = session, job, level
        self._limit = job.n_pods if limit is None else limit
        self._running = running
        self._kept: list[Seat] = []
        self._before: list[Placement] = []
        self._there: set[int] = set()
        self._roles: Mapping[int, Role] = {}
        if job.roles:
            self._roles = job.role_by_pod
        self._leaf: int | None = None
        self.short: Role | None = None
        """The role of which a pod found no node, where each is placed on its own."""

    def place(self, statement: Statement) -> list[Placement] | None:
        """Hold chips for every pod, or return None with some of them held.

        Pods that stand already are not among them.
        """
        job, alone = self._job, one_by_one(self._job)
        self._keep(statement)
        if self._kept and not self._running:
            staying = [seat for seat in self._kept if alone or not seat.chips]
            self._before = [self.take(statement, seat) for seat in staying]
        if not alone:
            return self._together(statement)
        many = job.replicas >= MANY and job.previous is None and not job.roles
        if many and self._session.lacks_room(job):
            return None
        self._leaf = self._one_leaf()
        return self._one_by_one(statement, job.crew, list(self._before))

    def _one_leaf(self) -> int | None:
        """The leaf inside which the pods stay where ranks tie (D38).

        That of the pods that stay, if there are any.
        """
        session, cluster = self._session, self._session.cluster
        if self._kept and not session.sums_scores:
            under = {cluster.leaf.item(seat.node) for seat in self._kept if seat.chips}
            return under.pop() if len(under) == 1 else None
        return session.leaf_for(self._job, min(self._limit, self._job.replicas))

    def _keep(self, statement: Statement) -> None:
        """Find the pods that stay; unless they stand, release what the job holds."""
        job, cluster = self._job, self._session.cluster
        if self._running:
            assert job.previous is not None
            self._there = {each.replica for each in job.previous.placements}
            self._kept = self.standing()
            return
        if job.name in cluster.holdings:
            statement.release(job.name)
        if self._level is not Level.JOB:
            self._kept = kept_seats(cluster, job)
            self._there = {seat.replica for seat in self._kept}

    def standing(self) -> list[Seat]:
        """The seats of the pods of a running job."""
        job, cluster = self._job, self._session.cluster
        assert job.previous is not None
        return [
            seat_of(cluster, job, placement)
            for placement in job.previous.placements
            if placement.node in cluster.index and self._is_own(placement)
        ]

    def _is_own(self, placement: Placement) -> bool:
        """Whether a pod that stands is one the job has; it may have changed since."""
        job = self._job
        if not job.roles:
            return placement.replica < job.replicas and bool(placement.chips)
        role = self._roles.get(placement.replica)
        return role is not None and bool(role.chips) == bool(placement.chips)

    def _one_by_one(
        self, statement: Statement, crew: Crew, placed: list[Placement]
    ) -> list[Placement] | None:
        """The best node for one pod after the other, role by role, after *placed*."""
        for role, replicas, must in self._turns(crew):
            if not self._fill(statement, role, replicas, placed) and must:
                return None
        if not self._running and not self._is_enough(placed):
            return None
        return sorted(placed, key=lambda pod: (not pod.chips, pod.replica))

    def _is_enough(self, placed: Sequence[Placement]) -> bool:
        """Whether the job can start with the pods *placed*."""
        job = self._job
        if len(placed) < job.min_pods or not job.is_elastic:
            return len(placed) >= job.min_pods
        return sum(1 for pod in placed if pod.chips) >= job.needed

    def _turns(self, crew: Crew) -> Iterator[tuple[Role, Sequence[int], bool]]:
        """Who is placed when, and whether all of them must be.

        First the pods that each role cannot do without; of a job that starts whole,
        these are all.
        """
        rigid = not (self._running or self._job.is_elastic)
        later = []
        for role, own in crew:
            missing: Sequence[int] = own
            if self._there:
                missing = [replica for replica in own if replica not in self._there]
            if rigid:
                yield role, missing, True
                continue
            need = max(0, self._job.least_of(role) - (len(own) - len(missing)))
            yield role, missing[:need], not self._running
            later.append((role, missing[need:], False))
        yield from later

    def _room(self, placed: Sequence[Placement]) -> int:
        """How many pods more the job may have than are *placed*; below 0 for none."""
        room = self._limit - len(placed)
        if self._running:
            room -= len(self._there)
        return room

    def _fill(
        self,
        statement: Statement,
        role: Role,
        replicas: Sequence[int],
        placed: list[Placement],
    ) -> bool:
        """Place pods of *role* one after the other; whether all of them were."""
        session, job = self._session, self._job
        request = request_of(job, role)
        blocks = request.network is Network.SUPERPODS
        room = self._room(placed)
        for replica in replicas[: max(0, room)]:
            node = session.best(job, role, request, self._leaf if role.chips else None)
            if node is None:
                self.short = self.short or role
                return False
            block = job.block_of(replica) if blocks else None
            seat = Seat(replica, node, block=block)
            placed.append(self.take(statement, seat, request))
        return len(replicas) <= room

    def _together(self, statement: Statement) -> list[Placement] | None:
        """As many pods with chips as the network rule takes, then the others."""
        sizes = self._sizes()
        low, high = 0, len(sizes)
        if high > 1 and self._accepts(sizes[-1]):
            low = high - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._accepts(sizes[middle]):
                low = middle
            else:
                high = middle
        return self._as_many(statement, sizes[low]) if sizes else None

    def _sizes(self) -> Sequence[int]:
        """How many pods with chips there may be, fewest first."""
        job = self._job
        if not (self._running or job.is_elastic):
            return (job.replicas,)
        kept = sum(bool(seat.chips) for seat in self._kept)
        least = sum(job.least_of(role) for role in job.roles if not role.chips)
        elsewhere = len(self._there) - len(self._kept)
        most = self._limit - elsewhere - max(least, len(self._kept) - kept)
        step = job.block_nodes if job.network is Network.SUPERPODS else 1
        stands = [kept] if self._running and kept else []
        fewest = kept + 1 if stands else max(kept, job.needed)
        every = len(self._able())
        wider = range(fewest, min(most, every) + 1)
        full = every if job.finished else 0
        return [*stands, *(n for n in wider if n % step == 0 or n == full)]

    def _accepts(self, size: int) -> bool:
        with Statement(self._session.cluster) as trial:
            return self._as_many(trial, size) is not None

    def _as_many(self, statement: Statement, size: int) -> list[Placement] | None:
        """Places for *size* pods with chips, and for the pods without."""
        job = self._job
        lineup = Lineup(
            self._chosen(size),
            [seat for seat in self._kept if seat.chips],
            self._session.refused(job, roles_with_chips(job)),
            grows=self._running or job.is_elastic,
        )
        seats = self._seats(lineup)
        if seats is None:
            return None
        if self._running:
            seats = [seat for seat in seats if seat.chips is None]
        placed = [*self._before, *(self.take(statement, seat) for seat in seats)]
        if not job.roles:
            return placed
        without = [(role, own) for role, own in job.crew if not role.chips]
        return self._one_by_one(statement, without, placed)

    def _seats(self, lineup: Lineup) -> list[Seat] | None:
        """The seats of *lineup*, found as if no pod with chips stood anywhere."""
        session, job = self._session, self._job
        with Statement(session.cluster) as aside:
            if self._running and lineup.kept:
                aside.release_pods(job.name, {seat.replica for seat in lineup.kept})
            return session.seats(job, self._level, lineup)

    def _chosen(self, size: int) -> Sequence[int]:
        """*size* pods with chips, by their ranks.

        Those that stay, those their role cannot do without, those that ran before.
        """
        job, able = self._job, self._able()
        if size == len(able):
            return able
        stays = {seat.replica for seat in self._kept}
        needs = {
            replica
            for role, own in job.crew
            for replica in sorted(own, key=lambda n: n not in stays)[
                : job.least_of(role)
            ]
        }
        past = job.previous.placements if job.previous else ()
        before = {placement.replica for placement in past}

        def late(replica: int) -> tuple[bool, bool, bool, int]:
            return (
                replica not in stays,
                replica not in needs,
                replica not in before,
                replica,
            )

        return sorted(sorted(able, key=late)[:size])

    def _able(self) -> Sequence[int]:
        """The pods with chips, without those that stand on a node nobody knows."""
        lost = self._there - {seat.replica for seat in self._kept}
        ranks = self._job.ranks
        return [rank for rank in ranks if rank not in lost] if lost else ranks

    def take(
        self, statement: Statement, seat: Seat, request: Request | None = None
    ) -> Placement:
        """Choose chips of the seat's node and hold them in the same breath (D18)."""
        cluster, job, node = self._session.cluster, self._job, seat.node
        role = self._roles.get(seat.replica)
        request = request or request_of(job, role)
        taken = seat.chips
        if taken is None:
            usable = cluster.free.item(node) & reach(cluster, request).item(node)
            taken = request.table.taken(usable)
            assert taken.bit_count() == request.row.asked, "a seat without its chips"
        mark, demand = seat.mark or NO_MARK, (role or job).demand
        statement.allocate(job.name, node, taken, seat.replica, mark, demand=demand)
        return Placement(
            seat.replica,
            cluster.names[node],
            written_order(request.row, taken),
            seat.block,
            seat.mark,
            None if role is None else role.name,
        )


def roles_with_chips(job: Job) -> list[Role]:
    """The roles of *job* whose pods ask for chips."""
    return [role for role, _own in job.crew if role.chips]


def one_by_one(job: Job) -> bool:
    """Whether pods with chips are placed one after the other, not as a whole.

    Without a network rule; a single pod in a SuperPoD needs no block.
    """
    if job.network is Network.SWITCHES:
        return job.replicas == 0
    return job.replicas <= 1 or job.network is Network.NONE


def as_running(job: Job, held: Iterable[Placement], lost: Iterable[Placement]) -> Job:
    """*job* with the pods it has, and where those were that it has no more."""
    failed = () if job.previous is None else job.previous.failed_nodes
    previous = Previous(tuple(held), failed, Keep.PODS, tuple(lost))
    return replace(job, previous=previous)
