"""One job that is being repaired: where its pods were, and what is held for them.

The places of pods that were deleted though nothing is wrong with them are held for
their successors by a ``Hold``, so that no other job finds them free.
"""

from collections.abc import Collection, Iterable, Iterator

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ringleaf.framework.job_state import JobState
from ringleaf.framework.statement import Statement, release_all
from ringleaf.model.cluster import Cluster
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.fault import Cause, PodFault, Record, RestartScope
from ringleaf.model.job import Job, Previous
from ringleaf.model.mask import mask_of
from ringleaf.model.owner import Hold, Purpose
from ringleaf.model.placement import Placement
from ringleaf.policies.faults import requests_exit_first
from ringleaf.policies.fit import eligible, has_request, request_of, takes_pods
from ringleaf.policies.repair import kept_assignments

NEVER_RETURN = frozenset({Cause.RELATION})
"""Causes after which no pod of the job goes back to the node, whatever it looks like.
"""


class DeletedPods:
    """The pods of one job that were deleted because of faults."""

    def __init__(self) -> None:
        self.awaiting_replacement: set[int] = set()
        """Those that are not back yet."""
        self.deleted: set[int] = set()
        """All of them, also those that are back."""
        self.at: float | None = None
        """When the last of them were deleted."""
        self.forced: set[int] = set()
        """Those that were deleted at once and are not back yet."""
        self.gone_at: float | None = None
        """When the last of them was gone."""
        self.unschedulable_since: float | None = None
        """Since when the successors of deleted pods find no place."""
        self.deletion_unobserved: set[int] = set()
        """Those that hold nothing, until it is reported that they are gone."""


class HeldPlaces:
    """What is held for the pods of one job, under *owner*."""

    def __init__(self, owner: Hold) -> None:
        self.owner = owner
        self.nodes: set[str] = set()
        """Where something is held."""
        self.planned: dict[int, Placement] = {}
        """Where pods can go as far as is known: home, or elsewhere."""
        self.leaving: set[int] = set()
        """Pods that go elsewhere with others, though their places are healthy."""


class Repair:
    """One job that is being repaired."""

    def __init__(self, name: str, since: float, job: Job | None = None) -> None:
        self.job = job
        """What it is, if that is known: its pods may not be there yet."""
        self.since = since
        self.scope = RestartScope.POD
        """How much of it is deleted."""
        self.pod_faults: dict[int, PodFault] = {}
        """The pods that are or were faulty."""
        self.placements: dict[int, Placement] = {}
        """Where its pods were."""
        self.deletion = DeletedPods()
        self.exit_requested_at: float | None = None
        """When its processes were asked to end by themselves."""
        self.rate_limited = False
        """Whether it waits for the eviction rate limit."""
        self.is_adopted = False
        """Whether another scheduler began it."""
        self.retries_used = 0
        self.moved_for = ""
        """The job that starts where it was, if it is moved and not faulty."""
        self.held = HeldPlaces(Hold(name, Purpose.REPAIR))

    @property
    def name(self) -> str:
        """The name of its job."""
        return self.held.owner.job

    @classmethod
    def of(cls, name: str, record: Record, job: Job | None) -> "Repair":
        """The repair that another scheduler began."""
        found = cls(name, record.since, job)
        found.is_adopted = True
        found.scope = record.scope
        found.pod_faults = {each.replica: each for each in record.pod_faults}
        found.placements = {each.replica: each for each in record.placements}
        found.deletion.awaiting_replacement = {*record.deleted}
        found.deletion.deleted = {*record.deleted}
        found.deletion.at = record.deleted_at
        if record.deleted and record.deleted_at is None:
            found.deletion.at = record.since  # sometime it was
        found.deletion.unschedulable_since = record.stuck_at
        found.retries_used = record.retries_used
        found.moved_for = record.moved_for
        if not record.deleted:
            found.exit_requested_at = record.since  # what else is there to remember
        return found

    @property
    def record(self) -> Record:
        """What must not be forgotten of it."""
        return Record(
            since=self.since,
            scope=self.scope,
            pod_faults=tuple(self.pod_faults[n] for n in sorted(self.pod_faults)),
            placements=tuple(self.placements[n] for n in sorted(self.placements)),
            deleted=tuple(sorted(self.deletion.awaiting_replacement)),
            deleted_at=self.deletion.at,
            stuck_at=self.deletion.unschedulable_since,
            retries_used=self.retries_used,
            moved_for=self.moved_for,
        )

    @property
    def barred_nodes(self) -> tuple[str, ...]:
        """The nodes to which none of its pods goes back."""
        pod_faults = self.pod_faults.values()
        return tuple(
            sorted({a.node for a in pod_faults if a.cause in NEVER_RETURN and a.node})
        )

    @property
    def previous(self) -> Previous:
        """Where its pods were, for the rules of repair."""
        placements = tuple(self.placements[n] for n in sorted(self.placements))
        return Previous(placements, self.barred_nodes, RestartScope.JOB)

    @property
    def causes(self) -> set[Cause]:
        """What is or was wrong."""
        return {each.cause for each in self.pod_faults.values()}

    @property
    def exit_requested(self) -> bool:
        """Whether its processes were asked to exit by themselves, by any scheduler.

        Of a repair that another scheduler began, only the job's present policy tells.
        """
        if self.exit_requested_at is not None or not self.is_adopted or self.moved_for:
            return self.exit_requested_at is not None
        return self.job is not None and requests_exit_first(
            self.job.recovery, self.causes
        )

    def missing_pods(self, job_state: JobState | None) -> set[int]:
        """The pods that were deleted and are neither back nor done."""
        if job_state is None:
            return self.deletion.awaiting_replacement
        back = job_state.placements.keys() - job_state.terminating
        return self.deletion.awaiting_replacement - back - job_state.finished

    def has_pods_missing_in(self, job: Job) -> bool:
        """Whether pods of it are not in *job*: a job shrinks while its pods go."""
        if self.job is None:
            return False
        return bool(
            self.deletion.awaiting_replacement & {*self.job.numbers} - {*job.numbers}
        )

    def concerns(self, nodes: Collection[str]) -> bool:
        """Whether one of its faulty pods is or was on one of *nodes*."""
        return any(each.node in nodes for each in self.pod_faults.values())

    def hold_places(self, cluster: Cluster, job_state: JobState | None) -> None:
        """Hold the old places of deleted pods that are free and healthy.

        For other deleted pods, the planned spare place.
        """
        wanting = self.missing_pods(job_state)
        with Statement(cluster) as statement:
            statement.drop(self.held.owner)
            self.held.nodes = set()
            for takes, demand, own in self._roles_to_hold(cluster) if wanting else ():
                some = sorted(wanting.intersection(own))
                self._hold(statement, cluster, takes, demand, some)
            statement.commit()

    def _roles_to_hold(
        self, cluster: Cluster
    ) -> Iterator[tuple[NDArray[np.bool_], Demand, Collection[int]]]:
        """For each role the eligible nodes, the demand, the numbers of its pods."""
        if self.job is None:
            yield takes_pods(cluster), NOTHING, self.deletion.awaiting_replacement
            return
        if not has_request(self.job):
            return  # its pods came back with requests that no node can meet
        for role, own in self.job.role_ranks:
            takes = eligible(cluster, request_of(self.job, role))
            yield takes, role.demand, own
        if others := self.deletion.awaiting_replacement.difference(self.job.numbers):
            yield takes_pods(cluster), NOTHING, others

    def _hold(
        self,
        statement: Statement,
        cluster: Cluster,
        takes: NDArray[np.bool_],
        demand: Demand,
        replicas: Iterable[int],
    ) -> None:
        """Like ``hold_places``, for pods that are alike, on nodes that take them."""
        unfit = self.barred_nodes
        for replica in replicas:
            for place in (self.placements.get(replica), self.held.planned.get(replica)):
                if place is None or place.node in unfit:
                    continue
                node = cluster.index.get(place.node)
                if node is None or not takes.item(node):
                    continue
                if not is_free(cluster, node, place):
                    continue
                self.held.nodes.add(place.node)
                statement.hold_placement(self.held.owner, place, demand)
                if replica not in self.held.leaving:
                    break

    def reusable_places(
        self, cluster: Cluster, job_state: JobState
    ) -> tuple[Placement, ...]:
        """Where pods that a running job lacks were, if that is healthy and free."""
        missing = {
            *job_state.missing
        } | job_state.terminating & self.deletion.awaiting_replacement
        places = {n: self.placements[n] for n in missing & self.placements.keys()}
        if not places or not has_request(job_state.remaining):
            return ()
        before = tuple(places[n] for n in sorted(places))
        past = Previous(before, self.barred_nodes, RestartScope.JOB)
        kept = kept_assignments(cluster, replace(job_state.remaining, previous=past))
        return tuple(places[assignment.replica] for assignment in kept)

    def avoiding_barred_nodes(self, job: Job) -> Job:
        """*job*, none of whose pods goes back to where one was separated from."""
        unfit = self.barred_nodes
        if job.previous is not None or not unfit:
            return job
        return replace(job, previous=Previous((), unfit))

    def previous_places_of_missing(
        self, held: Iterable[Placement]
    ) -> tuple[Placement, ...]:
        """Where those of its pods were that are not *held*."""
        there = {placement.replica for placement in held}
        return tuple(p for n, p in sorted(self.placements.items()) if n not in there)

    def release_places(self, cluster: Cluster) -> None:
        """Hold nothing any more."""
        self.held.nodes = set()
        release_all(cluster, self.held.owner)


def hold_all(
    statement: Statement, cluster: Cluster, job: Job, placements: Iterable[Placement]
) -> None:
    """Give pods of *job* the places they had."""
    roles = job.role_by_pod
    for each in placements:
        assert is_free(cluster, cluster.index[each.node], each), "a place is not free"
        statement.hold_placement(job.name, each, roles[each.replica].demand)


def is_free(cluster: Cluster, node: int, placement: Placement) -> bool:
    """Whether the chips of *node* are usable that a pod had or is to have."""
    chips = mask_of(placement.chips)
    return chips & cluster.free.item(node) & cluster.healthy.item(node) == chips
