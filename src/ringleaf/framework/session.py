"""Deciding jobs over the one cluster. Start reading here: ``Session.decide``."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Final

import numpy as np

from ringleaf.framework.explain_pending import beyond_quota, explain_pending
from ringleaf.framework.job_state import scheduling_key_of
from ringleaf.framework.node_ranking import NodeRanking, Score, best_by_scan
from ringleaf.framework.placement_attempt import (
    PlacementAttempt,
    as_running,
    is_placed_pod_by_pod,
    roles_with_chips,
)
from ringleaf.framework.statement import Statement
from ringleaf.model.arrays import Flags
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Placed, Reason, Waiting
from ringleaf.model.fault import RestartScope
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Network
from ringleaf.model.neighbours import neighbours_of
from ringleaf.model.placement import Placement
from ringleaf.model.settings import Settings
from ringleaf.policies.fit import (
    NOT_EXCLUDED,
    Excluded,
    Request,
    capacity,
    node_ranks,
    request_of,
)
from ringleaf.policies.gang import (
    NodeAssignment,
    block_layout,
    superpod_assignments,
    switch_assignments,
)
from ringleaf.policies.locality import leaf_for, one_pod_a_node, tightest_leaf
from ringleaf.policies.repair import (
    GangRequest,
    excluded_nodes,
    kept_assignments,
    repaired_in_superpods,
    scopes_of,
)
from ringleaf.policies.repair_leaves import repaired_under_leaves
from ringleaf.policies.room import (
    EmptyCluster,
    Impossible,
    is_varied,
    lacks_room_for_roles,
)
from ringleaf.policies.superpods import best_in_superpods
from ringleaf.policies.validation import is_legal, validate, warnings_of

MAX_RANKINGS: Final = 64
"""Requests whose order of nodes is kept."""

Scorer = Callable[[Job, Role], Score | None]
"""How other plugins score nodes for a pod of a role; it may depend on the role's chips
and demand, so that pods that ask the same share what is known of the nodes."""

NodeFilter = Callable[[Job, Role], Flags | None]
"""The nodes that other plugins allow to the next pod of a role; None: all of them."""


class Session:
    """Places jobs one after the other; unlike Volcano's, it outlives cycles.

    Args:
        cluster: Where they are placed.
        settings: What the operator chose.
        scorer: Decides where affinity ranks tie (D26), but under no network rule.
        node_filter: Keeps pods off nodes, for reasons of other plugins.
        filter_once_per_role: Whether *node_filter* is asked once for all pods of a
            role without pod affinity, if it keeps the first of them off no node.
        sum_scores: Whether the affinity rank is a score among others.

    """

    attempt_class: ClassVar[type[PlacementAttempt]] = PlacementAttempt
    """How pods are placed; baselines have another kind."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings | None = None,
        *,
        scorer: Scorer | None = None,
        node_filter: NodeFilter | None = None,
        filter_once_per_role: bool = False,
        sum_scores: bool = False,
    ) -> None:
        self.cluster = cluster
        self.settings = settings or Settings()
        self._scorer, self._node_filter = scorer, node_filter
        self.sums_scores = sum_scores
        self._filters_once_per_role = filter_once_per_role or node_filter is None
        self._rankings: dict[Request, NodeRanking] = {}
        self._node_table_version = cluster.node_table.version
        self._empty = EmptyCluster(cluster, self.settings)

    def decide(
        self,
        job: Job,
        limit: int | None = None,
        *,
        hints: bool = True,
        legal: bool = False,
    ) -> Decision:
        """Validate, choose nodes and chips for every pod, keep all or nothing.

        A job that may start with fewer pods gets as many as fit, up to *limit*. A job
        that ran before (``previous``) keeps what it can; how much may move is tried
        scope by scope. Without *hints* a pending job gets no hint. A job that is known
        to be *legal* is not judged again.
        """
        if job.previous is None and job.name in self.cluster.holdings:
            raise ValueError(f"job {job.name!r} holds chips already")
        if not legal and (never := validate(job, self.settings)) is not None:
            return never
        if limit is not None and limit < job.effective_min:
            return beyond_quota(self, job, limit)
        return self._place(job, limit) or self.explain_pending(job, hints=hints)

    def place(
        self, job: Job, limit: int | None = None, *, legal: bool = False
    ) -> Placed | None:
        """Place *job* as ``decide`` does; None, without reasons, where it cannot.

        In a statement that is not committed this says where the job would be placed.
        """
        beyond = limit is not None and limit < job.effective_min
        if beyond or not (legal or is_legal(job, self.settings)):
            return None
        return self._place(job, limit)

    def _place(self, job: Job, limit: int | None) -> Placed | None:
        """Place a valid job, scope by scope."""
        for scope in scopes_of(job):
            with Statement(self.cluster) as statement:
                placements = self.attempt(job, scope, limit).place(statement)
                if placements is not None:
                    statement.commit()
            if placements is not None:
                warnings = warnings_of(job, self.settings)
                return Placed(job, tuple(placements), warnings)
        return None

    def attempt(
        self,
        job: Job,
        scope: RestartScope,
        limit: int | None = None,
        *,
        running: bool = False,
    ) -> PlacementAttempt:
        """One attempt to place *job*."""
        return self.attempt_class(self, job, scope, limit, running=running)

    def explain_pending(
        self, job: Job, *, hints: bool = True, runs: bool = False
    ) -> Waiting:
        """Why *job* cannot be placed now; one that *runs* keeps its pods."""
        return explain_pending(self, job, request_of(job), hints=hints, runs=runs)

    def impossible(self, job: Job, key: Job | None = None) -> Impossible | None:
        """Why a legal *job* could not start if the cluster were empty; None if it may.

        What plugins say of nodes is left out: it may change with what runs there. Jobs
        with the same *key* get the same answer; without one, it is worked out.
        """
        return self._empty.refusal(job, key or scheduling_key_of(job))

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
            placing = self.attempt(running, RestartScope.POD, limit, running=True)
            placements = placing.place(statement)
            statement.commit()
        return tuple(placements or ())

    def why_none_join(self, job: Job, *, hints: bool = True) -> Waiting | None:
        """Why too few pods ``join`` a *job* ``as_running``; None if none ever can."""
        if not is_legal(job, self.settings):
            return None
        return self.explain_pending(job, hints=hints, runs=True)

    def fits_now(self, job: Job) -> bool:
        """Whether *job*, placed anew, would be placed now."""
        if job.roles or self._node_filter is not None:
            return self.would_place(job, RestartScope.JOB)
        if is_placed_pod_by_pod(job):
            return not self.lacks_room(job)
        replicas = job.ranks[: job.min_chip_pods]
        return (
            self.assignments(job, RestartScope.JOB, GangRequest(replicas, ()))
            is not None
        )

    def lacks_room(self, job: Job) -> bool:
        """Whether *job*, placed one by one, surely finds too few places.

        Of roles only those of many pods are looked at one by one, and the filter of
        nodes not at all.
        """
        if job.roles:
            return lacks_room_for_roles(self.cluster, job)
        excluded = NOT_EXCLUDED if self._node_filter is not None else self.excluded(job)
        return capacity(self.cluster, request_of(job), excluded) < job.min_chip_pods

    def would_place(self, job: Job, scope: RestartScope | None = None) -> bool:
        """Whether *job* would be placed now, at any scope or at *scope*."""
        for each in scopes_of(job) if scope is None else (scope,):
            with Statement(self.cluster) as statement:
                if self.attempt(job, each).place(statement) is not None:
                    return True
        return False

    @contextmanager
    def as_found_by(
        self, job: Job, *, runs: bool = False
    ) -> Iterator[list[NodeAssignment]]:
        """The cluster as the missing pods of *job* find it, and the pods that stay.

        What the job holds is released, unless it *runs*; where no network rule bars
        the nodes of its own pods, those that stay hold their chips. Leaving takes it
        all back.
        """
        if runs:
            yield self.attempt(
                job, RestartScope.POD, running=True
            ).running_assignments()
            return
        with Statement(self.cluster) as statement:
            statement.drop(job.name)
            kept = []
            if job.previous is not None and job.previous.scope is RestartScope.POD:
                kept = kept_assignments(self.cluster, job)
            if is_placed_pod_by_pod(job):
                placing = self.attempt(job, RestartScope.POD)
                for assignment in kept:
                    placing.take(statement, assignment)
            yield kept

    def assignments(
        self, job: Job, scope: RestartScope, gang: GangRequest
    ) -> list[NodeAssignment] | None:
        """The node of every replica of *gang*, by the network rule."""
        cluster, settings, request = self.cluster, self.settings, request_of(job)
        layout = None
        if job.network is Network.SUPERPODS:
            layout = block_layout(job, settings, gang.replicas)
        if scope is not RestartScope.JOB:
            if layout is not None:
                return repaired_in_superpods(
                    cluster, request, job, gang, layout, scope=scope
                )
            return repaired_under_leaves(cluster, request, job, settings, gang)
        excluded = excluded_nodes(cluster, job, (), gang.refused)
        if layout is not None:
            own = gang.replicas
            return superpod_assignments(
                cluster, request, job, layout, excluded, replicas=own
            )
        ranks = node_ranks(cluster, request, excluded)
        return switch_assignments(cluster, job, settings, ranks, gang.replicas)

    def leaf_for(
        self,
        job: Job,
        pods: int | None = None,
        known: tuple[Request, NodeRanking | None] | None = None,
    ) -> int | None:
        """The leaf inside which *pods* of a job, or all, stay where ranks tie (D38).

        Only jobs of several pods without a network rule prefer one. Summed scores leave
        no rank to tie. The request and the ranking of all its pods may be *known*.
        """
        several = job.replicas > 1 and not self.sums_scores
        if not (several and self.cluster.leaves):
            return None
        request, ranking = known or (request_of(job), None)
        if request.network is not Network.NONE:
            return None
        pods = job.replicas if pods is None else pods
        if ranking is not None and one_pod_a_node(request) and pods > 1:
            places = ranking.best_nodes_per_leaf()
            if places.sum() >= pods:
                return tightest_leaf(places[:-1], pods)
        return leaf_for(self.cluster, request, pods, self.excluded(job))

    def ranking(self, job: Job, role: Role, request: Request) -> NodeRanking | None:
        """The order in which all pods of *role* take their nodes.

        None where every one of them is to look for its ``best``.
        """
        if (
            not self._filters_once_per_role
            or job.previous is not None
            or role.demand.heeds_pods
            or request.network is Network.SUPERPODS
            or self._prefers_scan(job, role, request)
            or self.excluded_by_plugins(job, [role])
        ):
            return None
        return self._ranking_of(job, role, request)

    def best(
        self, job: Job, role: Role, request: Request, leaf: int | None = None
    ) -> int | None:
        """The node for the next pod of *role*; where ranks tie, one under *leaf*."""
        cluster, excluded = self.cluster, self.excluded_for(job, role)
        if request.network is Network.SUPERPODS:
            reserve = self.settings.reserve_nodes
            return best_in_superpods(cluster, request, reserve, excluded)
        if excluded or self._prefers_scan(job, role, request):
            score, summed = self.score(job, role), self.sums_scores
            return best_by_scan(
                cluster, request, excluded, score, summed=summed, leaf=leaf
            )
        return self._ranking_of(job, role, request).best(leaf)

    def _prefers_scan(self, job: Job, role: Role, request: Request) -> bool:
        """Whether each pod of *role* looks at all nodes, instead of at their order.

        So it is if few pods have the same request, or if scores depend on other pods:
        then one pod that starts changes the scores of many nodes.
        """
        rare = bool(job.roles) and is_varied(job) and request not in self._rankings
        if rare or self._scorer is None:
            return rare
        return neighbours_of(self.cluster).heeds_others(role.demand)

    def _ranking_of(self, job: Job, role: Role, request: Request) -> NodeRanking:
        """The order of nodes for a request, made when it is first asked for."""
        cluster = self.cluster
        if self._node_table_version != cluster.node_table.version:
            self._node_table_version = cluster.node_table.version
            self._rankings.clear()  # plugins may have something to say now
        preference = self._rankings.get(request)
        if preference is None:
            score, summed = self.score(job, role), self.sums_scores
            preference = NodeRanking(cluster, request, score, summed=summed)
            if len(self._rankings) == MAX_RANKINGS:
                del self._rankings[next(iter(self._rankings))]
            self._rankings[request] = preference
        return preference

    def score(self, job: Job, role: Role) -> Score | None:
        """How other plugins score nodes for a pod of *role*; None where none does."""
        return None if self._scorer is None else self._scorer(job, role)

    def excluded_by_plugins(self, job: Job, roles: Iterable[Role]) -> Excluded:
        """The nodes that plugins refuse to any of *roles*."""
        if self._node_filter is None:
            return NOT_EXCLUDED
        found = [self._node_filter(job, role) for role in roles]
        allowed = [flags for flags in found if flags is not None]
        if not allowed:
            return NOT_EXCLUDED
        return {Reason.REFUSED: (~np.logical_and.reduce(allowed)).nonzero()[0]}

    def excluded(self, job: Job, kept: Sequence[NodeAssignment] = ()) -> Excluded:
        """The nodes that no further pod with chips may use, and why."""
        refused = self.excluded_by_plugins(job, roles_with_chips(job))
        return excluded_nodes(self.cluster, job, kept, refused)

    def excluded_for(self, job: Job, role: Role) -> Excluded:
        """The nodes that no pod of *role* may use, where it is placed on its own."""
        return excluded_nodes(
            self.cluster, job, (), self.excluded_by_plugins(job, [role])
        )

    def stuck(
        self, statement: Statement, job: Job, *, runs: bool = False
    ) -> tuple[Role | None, int]:
        """Place what can be of a waiting *job*: the role that is short, pods placed."""
        placing = self.attempt(job, scopes_of(job)[-1], running=runs)
        placing.place(statement)
        return placing.short_role, len(self.cluster.holdings.get(job.name, ()))
