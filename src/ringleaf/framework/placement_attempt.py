"""One attempt to place a job, pod by pod or as a whole, inside a statement."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ringleaf.framework.node_ranking import NodeRanking
from ringleaf.framework.statement import Statement
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.job_labels import Network
from ringleaf.model.placement import NO_MARK, Placement
from ringleaf.policies.chips import written_order
from ringleaf.policies.fit import Request, allowed_chips, request_of
from ringleaf.policies.gang import NodeAssignment
from ringleaf.policies.repair import GangRequest, assignment_of, kept_assignments
from ringleaf.policies.room import MANY

if TYPE_CHECKING:
    from ringleaf.framework.session import Session

RoleRanks = Sequence[tuple[Role, tuple[int, ...]]]


class PlacementAttempt:
    """One try to place a job inside a statement.

    Args:
        session: Its cluster, settings and plugins.
        job: What is placed.
        scope: What may move of a job that ran before.
        limit: The most pods it may have.
        running: Whether its pods run and hold their chips, and others join them.

    """

    def __init__(
        self,
        session: "Session",
        job: Job,
        scope: RestartScope,
        limit: int | None = None,
        *,
        running: bool = False,
    ) -> None:
        self._session, self._job, self._scope = session, job, scope
        self._limit = job.n_pods if limit is None else limit
        self._running = running
        self._retained: list[NodeAssignment] = []
        self._readded: list[Placement] = []
        self._running_pods: set[int] = set()
        self._roles: Mapping[int, Role] = {}
        if job.roles:
            self._roles = job.role_by_pod
        self._leaf: int | None = None
        self._shared_order: tuple[Request, NodeRanking | None] | None = None
        """The request of all pods of a job without roles, and their order of nodes."""
        self.short_role: Role | None = None
        """The role of which a pod found no node, where each is placed on its own."""

    def place(self, statement: Statement) -> list[Placement] | None:
        """Hold chips for every pod, or return None with some of them held.

        Pods that run already are not among them.
        """
        job, pod_by_pod = self._job, is_placed_pod_by_pod(self._job)
        self._find_retained(statement)
        if self._retained and not self._running:
            staying = [
                assignment
                for assignment in self._retained
                if pod_by_pod or not assignment.chips
            ]
            self._readded = [self.take(statement, assignment) for assignment in staying]
        if not pod_by_pod:
            return self._together(statement)
        many = job.n_pods >= MANY and job.previous is None
        if many and self._session.lacks_room(job):
            return None
        role_ranks = job.role_ranks
        if self._retained and not self._session.sums_scores:
            self._leaf = self._kept_leaf()
        else:
            pods = min(self._limit, job.replicas)
            known = None if job.roles else self._order_for(role_ranks[0][0])
            self._leaf = self._session.leaf_for(job, pods, known)
        return self._pod_by_pod(statement, role_ranks, list(self._readded))

    def _kept_leaf(self) -> int | None:
        """The leaf of the pods that stay, if it is one."""
        leaf = self._session.cluster.leaf
        under = {
            leaf.item(assignment.node)
            for assignment in self._retained
            if assignment.chips
        }
        return under.pop() if len(under) == 1 else None

    def _order_for(self, role: Role) -> tuple[Request, NodeRanking | None]:
        """What pods of *role* ask, and the order in which all of them take nodes."""
        if self._shared_order is not None:
            return self._shared_order
        request = request_of(self._job, role)
        found = request, self._session.ranking(self._job, role, request)
        if not self._job.roles:
            self._shared_order = found
        return found

    def _find_retained(self, statement: Statement) -> None:
        """Find the pods that stay; unless they run, release what the job holds."""
        job, cluster = self._job, self._session.cluster
        if self._running:
            assert job.previous is not None
            self._running_pods = {each.replica for each in job.previous.placements}
            self._retained = self.running_assignments()
            return
        if job.name in cluster.holdings:
            statement.release(job.name)
        if self._scope is not RestartScope.JOB:
            self._retained = kept_assignments(cluster, job)
            self._running_pods = {assignment.replica for assignment in self._retained}

    def running_assignments(self) -> list[NodeAssignment]:
        """The assignments of the pods of a running job."""
        job, cluster = self._job, self._session.cluster
        assert job.previous is not None
        return [
            assignment_of(cluster, job, placement)
            for placement in job.previous.placements
            if placement.node in cluster.index and self._is_own(placement)
        ]

    def _is_own(self, placement: Placement) -> bool:
        """Whether a running pod is one of the job, whose spec may have changed."""
        job = self._job
        if not job.roles:
            return placement.replica < job.replicas and bool(placement.chips)
        role = self._roles.get(placement.replica)
        return role is not None and bool(role.chips) == bool(placement.chips)

    def _pod_by_pod(
        self, statement: Statement, role_ranks: RoleRanks, placed: list[Placement]
    ) -> list[Placement] | None:
        """The best node for one pod after the other, role by role, after *placed*."""
        rigid = not (self._running or self._job.is_elastic)
        for role, replicas, must in self._fill_order(role_ranks, rigid=rigid):
            if not self._fill(statement, role, replicas, placed) and must:
                return None
        if not (rigid or self._running or self._is_enough(placed)):
            return None
        return sorted(placed, key=lambda pod: (not pod.chips, pod.replica))

    def _is_enough(self, placed: Sequence[Placement]) -> bool:
        """Whether an elastic job can start with the pods *placed*."""
        job = self._job
        with_chips = sum(1 for pod in placed if pod.chips)
        return len(placed) >= job.min_pods and with_chips >= job.min_chip_pods

    def _fill_order(
        self, role_ranks: RoleRanks, *, rigid: bool
    ) -> Iterator[tuple[Role, Sequence[int], bool]]:
        """Which pods are placed when, and whether all of them must be.

        First the pods that each role cannot do without; of a *rigid* job, which starts
        whole, these are all.
        """
        later = []
        for role, own in role_ranks:
            missing: Sequence[int] = own
            if self._running_pods:
                missing = [
                    replica for replica in own if replica not in self._running_pods
                ]
            if rigid:
                yield role, missing, True
                continue
            need = max(0, self._job.min_available_of(role) - (len(own) - len(missing)))
            yield role, missing[:need], not self._running
            later.append((role, missing[need:], False))
        yield from later

    def _pods_left(self, placed: Sequence[Placement]) -> int:
        """How many pods more the job may have than are *placed*; below 0 for none."""
        return self._limit - len(placed) - self._running * len(self._running_pods)

    def _fill(
        self,
        statement: Statement,
        role: Role,
        replicas: Sequence[int],
        placed: list[Placement],
    ) -> bool:
        """Place pods of *role* one after the other; whether all of them were.

        The chips of each are held as soon as they are chosen (D18).
        """
        session, job, free = self._session, self._job, self._session.cluster.free
        room = self._pods_left(placed)
        if room <= 0 or not replicas:
            return len(replicas) <= room
        request, ranking = self._order_for(role)
        leaf = self._leaf if role.chips else None
        allowed = allowed_chips(session.cluster, request)
        blocks = request.network is Network.SUPERPODS
        for replica in replicas[:room]:
            node = (
                session.best(job, role, request, leaf)
                if ranking is None
                else ranking.best(leaf)
            )
            if node is None:
                self.short_role = self.short_role or role
                return False
            chips = request.table.choose(free.item(node) & allowed.item(node))
            block = job.block_of(replica) if blocks else None
            assignment = NodeAssignment(replica, node, block=block)
            placed.append(self._hold(statement, assignment, chips, request))
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
        kept = sum(bool(assignment.chips) for assignment in self._retained)
        least = sum(job.min_available_of(role) for role in job.roles if not role.chips)
        elsewhere = len(self._running_pods) - len(self._retained)
        most = self._limit - elsewhere - max(least, len(self._retained) - kept)
        step = job.block_nodes if job.network is Network.SUPERPODS else 1
        stands = [kept] if self._running and kept else []
        fewest = kept + 1 if stands else max(kept, job.min_chip_pods)
        every = len(self._placeable_ranks())
        wider = range(fewest, min(most, every) + 1)
        full = every if job.finished else 0
        return [*stands, *(n for n in wider if n % step == 0 or n == full)]

    def _accepts(self, size: int) -> bool:
        with Statement(self._session.cluster) as trial:
            return self._as_many(trial, size) is not None

    def _as_many(self, statement: Statement, size: int) -> list[Placement] | None:
        """Places for *size* pods with chips, and for the pods without."""
        job = self._job
        gang = GangRequest(
            self._chosen(size),
            [assignment for assignment in self._retained if assignment.chips],
            self._session.excluded_by_plugins(job, roles_with_chips(job)),
            grows=self._running or job.is_elastic,
        )
        assignments = self._assignments(gang)
        if assignments is None:
            return None
        if self._running:
            assignments = [
                assignment for assignment in assignments if assignment.chips is None
            ]
        placed = [
            *self._readded,
            *(self.take(statement, assignment) for assignment in assignments),
        ]
        if not job.roles:
            return placed
        without = [(role, own) for role, own in job.role_ranks if not role.chips]
        return self._pod_by_pod(statement, without, placed)

    def _assignments(self, gang: GangRequest) -> list[NodeAssignment] | None:
        """The assignments of *gang*, found without the pods that it retains."""
        session, job = self._session, self._job
        with Statement(session.cluster) as trial:
            if self._running and gang.kept:
                trial.release_pods(
                    job.name, {assignment.replica for assignment in gang.kept}
                )
            return session.assignments(job, self._scope, gang)

    def _chosen(self, size: int) -> Sequence[int]:
        """*size* pods with chips, by their ranks.

        Those that stay, those their role cannot do without, those that ran before.
        """
        job, able = self._job, self._placeable_ranks()
        if size == len(able):
            return able
        stays = {assignment.replica for assignment in self._retained}
        needs = {
            replica
            for role, own in job.role_ranks
            for replica in sorted(own, key=lambda n: n not in stays)[
                : job.min_available_of(role)
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

    def _placeable_ranks(self) -> Sequence[int]:
        """The pods with chips, without those that run on an unknown node."""
        lost = self._running_pods - {
            assignment.replica for assignment in self._retained
        }
        ranks = self._job.ranks
        return [rank for rank in ranks if rank not in lost] if lost else ranks

    def take(
        self,
        statement: Statement,
        assignment: NodeAssignment,
        request: Request | None = None,
    ) -> Placement:
        """Choose chips of the node, unless the pod has some, and hold them (D18)."""
        cluster, node = self._session.cluster, assignment.node
        request = request or request_of(self._job, self._roles.get(assignment.replica))
        chips = assignment.chips
        if chips is None:
            allowed = allowed_chips(cluster, request)
            usable = cluster.free.item(node) & allowed.item(node)
            chips = request.table.choose(usable)
        return self._hold(statement, assignment, chips, request)

    def _hold(
        self,
        statement: Statement,
        assignment: NodeAssignment,
        chips: int,
        request: Request,
    ) -> Placement:
        """A pod holds *chips* of its assigned node."""
        job, role = self._job, self._roles.get(assignment.replica)
        assert chips.bit_count() == request.row.asked, "an assignment without its chips"
        mark, demand = assignment.mark or NO_MARK, (role or job).demand
        written = written_order(request.row, chips)
        statement.allocate(
            job.name, assignment.node, chips, assignment.replica, mark, demand=demand
        )
        node = self._session.cluster.names[assignment.node]
        name = None if role is None else role.name
        return Placement(
            assignment.replica, node, written, assignment.block, assignment.mark, name
        )


def roles_with_chips(job: Job) -> list[Role]:
    """The roles of *job* whose pods ask for chips."""
    return [role for role, _own in job.role_ranks if role.chips]


def is_placed_pod_by_pod(job: Job) -> bool:
    """Whether pods with chips are placed one after the other, not as a whole.

    Without a network rule; a single pod in a SuperPoD needs no block.
    """
    network = job.network
    if network is Network.SWITCHES:
        return job.replicas == 0
    return job.replicas <= 1 or network is Network.NONE


def as_running(job: Job, held: Iterable[Placement], lost: Iterable[Placement]) -> Job:
    """*job* with the pods it has, and where those were that it has no more."""
    failed = () if job.previous is None else job.previous.failed_nodes
    previous = Previous(tuple(held), failed, RestartScope.POD, tuple(lost))
    return replace(job, previous=previous)
