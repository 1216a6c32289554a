"""An engine whose nodes and chips another rule chooses. Start at ``Seating``.

Everything else is Ringleaf's: events, instructions, queues, gangs, repairs, accounts.
"""

from collections.abc import Iterable, Sequence
from math import inf

import numpy as np
from msgspec.structs import replace

from ringleaf.baselines.fitting import (
    LOOSE,
    Chooser,
    FittingNodes,
    Planner,
    Spot,
    Spots,
    fitting_nodes,
    without_network,
)
from ringleaf.baselines.order import QueueOrder
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import ConfChanged, Event, JobArrived
from ringleaf.framework.instruction import Instruction
from ringleaf.framework.placement_attempt import PlacementAttempt
from ringleaf.framework.session import NodeFilter, Session
from ringleaf.framework.state import SchedulerState
from ringleaf.framework.statement import Statement
from ringleaf.framework.votes import Votes
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Reason, Waiting
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Network
from ringleaf.model.placement import NO_MARK, LeafAnnotation, Placement
from ringleaf.model.queue import Queue
from ringleaf.model.settings import Settings
from ringleaf.model.uplinks import Leaf
from ringleaf.policies.fit import (
    FITS,
    REASONS,
    Excluded,
    Request,
    allowed_chips,
    node_reasons,
    reason_counts,
    request_of,
)
from ringleaf.policies.gang import NodeAssignment
from ringleaf.policies.room import Impossible
from ringleaf.policies.validation import warnings_of
from ringleaf.policies.words import counted

_CHIPS = (Reason.FAULTY_CHIPS, Reason.NETWORK_FAULTY, Reason.NOT_WIRED_TOGETHER)
"""Reasons that depend on which chips may go together."""


class Baseline(Engine):
    """A cluster that is scheduled by another rule.

    Args:
        nodes: The nodes at the beginning.
        leaves: What is known of leaf switches besides the pods under them.
        queues: The queues at the beginning.
        conf: The configuration.
        chooser: The rule for nodes and chips; None is Ringleaf's own.
        order: Which job is next, and which may go before; None is as configured.
        by_pods: Whether each pod starts by itself, whatever its gang needs.

    """

    def __init__(
        self,
        nodes: Iterable[Node],
        leaves: Iterable[Leaf] = (),
        queues: Iterable[Queue] = (),
        conf: Conf = DEFAULT,
        *,
        chooser: Chooser | None = None,
        order: QueueOrder | None = None,
        by_pods: bool = False,
    ) -> None:
        self.chooser, self.order, self.by_pods = chooser, order, by_pods
        if order is not None:
            self.actions = {**Engine.actions, "allocate": order.action()}
            conf = order.configured(conf)
        if isinstance(chooser, Planner):
            self.actions = {**Engine.actions, "allocate": chooser.allocate}
        super().__init__(nodes, leaves, queues, conf)

    def _session(self, state: SchedulerState, conf: Conf, votes: Votes) -> Session:
        if self.chooser is None:
            return super()._session(state, conf, votes)
        return BaselineSession(
            state.cluster, conf.settings, self.chooser, votes.predicate
        )

    def handle_all(
        self, events: Iterable[Event], now: float, most: float = inf
    ) -> list[Instruction]:
        """What is to be done after *events*, as this scheduler sees them."""
        return super().handle_all(map(self._seen, events), now, most)

    def _seen(self, event: Event) -> Event:
        match event:
            case JobArrived() if self.by_pods:
                return replace(event, job=pod_by_pod(event.job))
            case ConfChanged() if self.order is not None:
                return ConfChanged(self.order.configured(event.conf))
        return event


def pod_by_pod(job: Job) -> Job:
    """*job* as a scheduler sees it that knows no gangs: any pod starts by itself.

    A logical SuperPoD is one pod.

    >>> from ringleaf.policies.products import PRODUCTS
    >>> pod_by_pod(Job("train", PRODUCTS["atlas-800t-a2"], 8, replicas=4)).min_chip_pods
    1
    """
    blocks = job.chips if job.network is Network.SUPERPODS else job.sp_block
    roles = tuple(replace(role, min_available=None) for role in job.roles)
    return replace(job, min_available=1, roles=roles, sp_block=blocks)


class Seating(PlacementAttempt):
    """One try to place a job: pods that stay do, the chooser places the others."""

    _session: "BaselineSession"

    def place(self, statement: Statement) -> list[Placement] | None:
        """Hold chips for every pod, or return None with some of them held."""
        self._find_retained(statement)
        if self._retained and not self._running:
            self._readded = [
                self.take(statement, assignment) for assignment in self._retained
            ]
        return self._pod_by_pod(statement, self._job.role_ranks, list(self._readded))

    def _fill(
        self,
        statement: Statement,
        role: Role,
        replicas: Sequence[int],
        placed: list[Placement],
    ) -> bool:
        """Place pods of *role*, all at once; whether all of them were."""
        if not role.chips:
            return super()._fill(statement, role, replicas, placed)
        room = self._pods_left(placed)
        wanted = replicas[: max(0, room)]
        spots = self._spots(role, len(wanted))
        request = request_of(self._job, role)
        for replica, spot in zip(wanted, spots, strict=False):
            placed.append(self.take(statement, self._seat(replica, spot), request))
        if len(spots) < len(wanted):
            self.short_role = self.short_role or role
        return len(spots) == len(replicas)

    def _spots(self, role: Role, pods: int) -> Spots:
        """Places for so many pods; of an elastic job, for as many as find one."""
        session, job = self._session, self._job
        if not pods:
            return ()
        found = session.spots(job, role, pods)
        if found is not None:
            return found
        few: Spots = ()
        low, high = 0, pods if self._running or job.is_elastic else 1
        while high - low > 1:
            middle = (low + high) // 2
            found = session.spots(job, role, middle)
            if found is None:
                high = middle
            else:
                low, few = middle, found
        return few

    def _seat(self, replica: int, spot: Spot) -> NodeAssignment:
        """The assignment of a pod, with what a network rule would note."""
        job = self._job
        block, mark = None, None
        if job.network is Network.SUPERPODS:
            place = job.ranks.index(replica) if job.roles else replica
            block = place // job.block_nodes
        if job.network is Network.SWITCHES:
            mark = spot.mark if spot.mark != NO_MARK else LeafAnnotation(job.job_type)
        return NodeAssignment(replica, spot.node, spot.chips, block, mark)


class BaselineSession(Session):
    """Decides jobs by a chooser's rule.

    Args:
        cluster: Where they are placed.
        settings: What the operator chose.
        chooser: The rule.
        node_filter: Keeps pods off nodes, for reasons of plugins.

    """

    attempt_class = Seating

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        chooser: Chooser,
        node_filter: NodeFilter | None = None,
    ) -> None:
        super().__init__(cluster, settings, node_filter=node_filter)
        self._chooser = chooser

    def room(self, request: Request) -> int:
        """How many pods of a request find room at most."""
        return int(self._fitting(without_network(request)).room.sum())

    def fits_now(self, job: Job) -> bool:
        """Whether *job*, placed anew, would be placed now."""
        return self.would_place(job, RestartScope.JOB)

    def impossible(self, job: Job, key: Job | None = None) -> Impossible | None:
        """Nothing: it follows other rules than those that would be tried."""
        del job, key
        return None

    def spots(self, job: Job, role: Role, pods: int) -> Spots | None:
        """Places for so many more pods of *role*."""
        excluded = self.excluded_for(job, role)
        fitting = self._fitting(without_network(request_of(job, role)), excluded)
        return self._chooser.choose(fitting, job, pods)

    def _fitting(
        self, request: Request, excluded: Excluded | None = None
    ) -> FittingNodes:
        wiring = self._chooser.wiring
        return fitting_nodes(
            self.cluster, request, wiring, self.settings, excluded or {}
        )

    def explain_pending(
        self, job: Job, *, hints: bool = True, runs: bool = False
    ) -> Waiting:
        """Why *job* cannot be placed now: nodes per reason, and the rule if it binds.

        There is no hint.
        """
        request = without_network(request_of(job))
        if job.roles or not request.row.asked:
            return super().explain_pending(job, hints=hints, runs=runs)
        with self.as_found_by(job, runs=runs) as kept:
            excluded = self.excluded(job, kept)
            reasons = self._reasons(request, excluded)
            room = int(self._fitting(request, excluded).room.sum())
        missing = job.min_chip_pods - len(kept) - room
        because, shape = "", self._chooser.shape
        if missing <= 0 and shape:
            because = (
                f"there is room for {counted(room, 'pod')}, its rule wants {shape}"
            )
            reasons[reasons == FITS] = REASONS.index(Reason.LEAF_CLOSED)
        return Waiting(
            job=job,
            missing=max(1, missing),
            fitting=int((reasons == FITS).sum()),
            reasons=reason_counts(reasons),
            hint="",
            because=because,
            warnings=warnings_of(job, self.settings),
        )

    def _reasons(
        self, request: Request, excluded: Excluded
    ) -> np.typing.NDArray[np.int8]:
        """Why each node cannot take a pod, with the chips that the chooser takes."""
        cluster = self.cluster
        reasons = node_reasons(cluster, request, excluded)
        if self._chooser.wiring is not LOOSE:
            return reasons
        chips = np.isin(reasons, [REASONS.index(reason) for reason in _CHIPS])
        usable = np.bitwise_count(cluster.free & allowed_chips(cluster, request))
        enough = usable >= request.row.asked
        roomy = cluster.node_table.resources.roomy(request.demand)
        reasons[chips & enough & roomy] = FITS
        reasons[chips & enough & ~roomy] = REASONS.index(Reason.TOO_FEW_RESOURCES)
        return reasons
