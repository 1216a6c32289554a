"""Jobs that are being repaired: where their pods were, and what is held for them.

The places of pods that were deleted though nothing is wrong with them are held for
their successors under a name of their own, so that nobody else finds them free.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ringleaf.framework.brake import Brake
from ringleaf.framework.faultbook import FaultBook
from ringleaf.framework.standing import Standing
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.fault import Ailment, Cause, Reach, Record
from ringleaf.model.job import Job, Keep, Previous
from ringleaf.model.mask import mask_of
from ringleaf.model.placement import NO_MARK, Placement
from ringleaf.policies.faults import asks_first
from ringleaf.policies.fit import eligible, has_request, request_of
from ringleaf.policies.repair import kept_seats

ORDER = tuple(Cause)
UNFIT = frozenset({Cause.RELATION})
"""Causes after which no pod of the job goes back to the node, whatever it looks like.
"""


class Repair:
    """One job that is being repaired."""

    def __init__(self, name: str, since: float, job: Job | None = None) -> None:
        self.name = name
        self.job = job
        """What it is, if that is known: its pods may not be there yet."""
        self.since = since
        self.reach = Reach.PODS
        """How much of it is deleted."""
        self.ailments: dict[int, Ailment] = {}
        """The pods that are or were faulty."""
        self.placements: dict[int, Placement] = {}
        """Where its pods were."""
        self.spare: dict[int, Placement] = {}
        """Where its pods can go as far as is known: home, or elsewhere."""
        self.moving: set[int] = set()
        """Pods that go elsewhere with others, though their places are healthy."""
        self.deleted: set[int] = set()
        """Pods that were deleted and are not back yet."""
        self.ever: set[int] = set()
        """All pods that were deleted, also those that are back."""
        self.deleted_at: float | None = None
        self.asked_at: float | None = None
        """When its processes were asked to end by themselves."""
        self.forced: set[int] = set()
        """Pods that were deleted at once and are not back yet."""
        self.stuck_at: float | None = None
        """Since when pods that came back find no place."""
        self.gone_at: float | None = None
        """When the last pod was gone of those that were deleted."""
        self.braked = False
        """Whether it waits for the brake."""
        self.awaited: set[int] = set()
        """Pods that hold nothing and were deleted, until it is said that they are gone.
        """
        self.is_adopted = False
        """Whether somebody else began it."""
        self.retries_used = 0
        self.holder = f"{name} (repair)"
        self.nodes: set[str] = set()
        """Where something is held for it."""

    @classmethod
    def of(cls, name: str, record: Record, job: Job | None) -> "Repair":
        """The repair that somebody else began."""
        found = cls(name, record.since, job)
        found.is_adopted = True
        found.reach = record.reach
        found.ailments = {each.replica: each for each in record.ailments}
        found.placements = {each.replica: each for each in record.placements}
        found.deleted, found.ever = {*record.deleted}, {*record.deleted}
        found.deleted_at = record.deleted_at
        if record.deleted and record.deleted_at is None:
            found.deleted_at = record.since  # sometime it was
        found.stuck_at = record.stuck_at
        found.retries_used = record.retries_used
        if not record.deleted:
            found.asked_at = record.since  # what else is there to remember
        return found

    @property
    def record(self) -> Record:
        """What must not be forgotten of it."""
        return Record(
            since=self.since,
            reach=self.reach,
            ailments=tuple(self.ailments[n] for n in sorted(self.ailments)),
            placements=tuple(self.placements[n] for n in sorted(self.placements)),
            deleted=tuple(sorted(self.deleted)),
            deleted_at=self.deleted_at,
            stuck_at=self.stuck_at,
            retries_used=self.retries_used,
        )

    @property
    def unfit(self) -> tuple[str, ...]:
        """The nodes to which none of its pods goes back."""
        ailments = self.ailments.values()
        return tuple(sorted({a.node for a in ailments if a.cause in UNFIT and a.node}))

    @property
    def previous(self) -> Previous:
        """Where its pods were, for the rules of repair."""
        placements = tuple(self.placements[n] for n in sorted(self.placements))
        return Previous(placements, self.unfit, Keep.JOB)

    @property
    def causes(self) -> set[Cause]:
        """What is or was wrong."""
        return {each.cause for each in self.ailments.values()}

    @property
    def was_asked(self) -> bool:
        """Whether its processes were asked to end by themselves, by anybody.

        Of what somebody else did it is known only what its job wants now.
        """
        if self.asked_at is not None or not self.is_adopted:
            return self.asked_at is not None
        return self.job is not None and asks_first(self.job.recovery, self.causes)

    def wanting(self, standing: Standing | None) -> set[int]:
        """The pods that were deleted and are neither back nor done."""
        if standing is None:
            return self.deleted
        back = standing.placements.keys() - standing.terminating
        return self.deleted - back - standing.finished

    def knows_more_than(self, job: Job) -> bool:
        """Whether pods of it are not in *job*: a job shrinks while its pods go."""
        if self.job is None:
            return False
        return bool(self.deleted & {*self.job.numbers} - {*job.numbers})

    def concerns(self, nodes: Collection[str]) -> bool:
        """Whether one of its faulty pods is or was on one of *nodes*."""
        return any(each.node in nodes for each in self.ailments.values())

    def hold(self, cluster: Cluster, standing: Standing | None) -> None:
        """Hold what is free of the places of pods that were deleted and are healthy.

        Of others, what is known to be free elsewhere.
        """
        wanting = self.wanting(standing)
        with Statement(cluster) as statement:
            self.let_go(statement, cluster)
            self.nodes = set()
            for takes, demand, own in self._kinds(cluster) if wanting else ():
                some = sorted(wanting.intersection(own))
                self._hold(statement, cluster, takes, demand, some)
            statement.commit()

    def _kinds(
        self, cluster: Cluster
    ) -> Iterator[tuple[NDArray[np.bool_], Demand, Collection[int]]]:
        """The nodes that take its pods, what they ask and which they are."""
        if self.job is None:
            yield cluster.ready & ~cluster.cordoned, NOTHING, self.deleted
            return
        if not has_request(self.job):
            return  # its pods came back with requests that no node can meet
        for role, own in self.job.crew:
            takes = eligible(cluster, request_of(self.job, role))
            yield takes, role.demand, own
        if others := self.deleted.difference(self.job.numbers):
            yield cluster.ready & ~cluster.cordoned, NOTHING, others

    def _hold(
        self,
        statement: Statement,
        cluster: Cluster,
        takes: NDArray[np.bool_],
        demand: Demand,
        replicas: Iterable[int],
    ) -> None:
        """The same, for pods that are alike, on nodes that take them."""
        unfit = self.unfit
        for replica in replicas:
            for place in (self.placements.get(replica), self.spare.get(replica)):
                if place is None or place.node in unfit:
                    continue
                node = cluster.index.get(place.node)
                if node is None or not takes.item(node):
                    continue
                if not is_free(cluster, node, place):
                    continue
                chips, mark = mask_of(place.chips), place.mark or NO_MARK
                self.nodes.add(place.node)
                statement.hold(self.holder, node, chips, replica, mark, demand=demand)
                if replica not in self.moving:
                    break

    def let_go(self, statement: Statement, cluster: Cluster) -> None:
        """Hold nothing."""
        if self.holder in cluster.holdings:
            statement.release(self.holder)

    def returning(self, cluster: Cluster, standing: Standing) -> tuple[Placement, ...]:
        """Where pods that a running job lacks were, if that is healthy and free."""
        missing = {*standing.missing} | standing.terminating & self.deleted
        places = {n: self.placements[n] for n in missing & self.placements.keys()}
        if not places or not has_request(standing.rest):
            return ()
        before = tuple(places[n] for n in sorted(places))
        past = Previous(before, self.unfit, Keep.JOB)
        kept = kept_seats(cluster, replace(standing.rest, previous=past))
        return tuple(places[seat.replica] for seat in kept)

    def barred(self, job: Job) -> Job:
        """*job*, none of whose pods goes back to where one was separated from."""
        unfit = self.unfit
        if job.previous is not None or not unfit:
            return job
        return replace(job, previous=Previous((), unfit))

    def lost(self, held: Iterable[Placement]) -> tuple[Placement, ...]:
        """Where those of its pods were that are not *held*."""
        there = {placement.replica for placement in held}
        return tuple(p for n, p in sorted(self.placements.items()) if n not in there)

    def drop(self, cluster: Cluster) -> None:
        """Hold nothing any more."""
        self.nodes = set()
        with Statement(cluster) as statement:
            self.let_go(statement, cluster)
            statement.commit()

    def avoid(self, name: str, cluster: Cluster, standing: Standing | None) -> None:
        """A job is called *name*: what is held is held under another one."""
        if name == self.holder:
            self.drop(cluster)
            self.holder += "'"
            self.hold(cluster, standing)


def is_free(cluster: Cluster, node: int, placement: Placement) -> bool:
    """Whether the chips of *node* are usable that a pod had or is to have."""
    chips = mask_of(placement.chips)
    return chips & cluster.free.item(node) & cluster.healthy.item(node) == chips


class Repairs:
    """All that is known of faulty pods and of jobs that are repaired."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        """The nodes as they were last heard of."""
        self.book = FaultBook()
        """Every fault with its life."""
        self.is_news = False
        """Whether repairs are to be looked at again in this cycle."""
        self.open: dict[str, Repair] = {}
        """By the name of the job."""
        self.ails: dict[str, dict[int, Ailment]] = {}
        """Job -> what is wrong with pods themselves."""
        self.vanished: dict[str, dict[int, Ailment]] = {}
        """Of those, what is wrong with pods that vanished with their nodes."""
        self.places: dict[str, dict[int, Placement]] = {}
        """Job -> where the pods were with which something is wrong themselves."""
        self.handled: set[tuple[str, int]] = set()
        """Pods with something wrong of their own that was dealt with."""
        self.suspects: dict[str, None] = {}
        """Jobs of which pods may have become faulty."""
        self.braked: dict[str, None] = {}
        """Jobs with faulty pods that wait for the brake."""
        self.retries_used: dict[str, int] = {}
        """How often pods of a job failed by themselves and were tried again."""
        self.pointed: dict[str, tuple[Ailment, ...]] = {}
        """What others were told of jobs whose pods they delete."""
        self.brake = Brake()
        self.n_pods: int | None = None
        """How many pods there are for the brake, once that was asked in a cycle."""

    def __contains__(self, name: object) -> bool:
        return name in self.open

    def get(self, name: str) -> Repair | None:
        """The repair of a job, if it is repaired."""
        return self.open.get(name)

    def let_go(self, name: str, statement: Statement, cluster: Cluster) -> None:
        """Hold nothing for the repair of a job, if it is repaired."""
        if name in self.open:
            self.open[name].let_go(statement, cluster)

    def heard_of(self, job: Job) -> None:
        """A job is there, or another than it was."""
        self.suspects[job.name] = None
        repair = self.open.get(job.name)
        if repair is not None and not repair.knows_more_than(job):
            repair.job = job

    def forget(self, name: str) -> None:
        """A job is gone for good."""
        self.retries_used.pop(name, None)
        self.pointed.pop(name, None)
        self.running(name, self.vanished.get(name, {}))
        self.pods_ail(name, (), {})
        self.suspects.pop(name, None)
        self.braked.pop(name, None)

    def pods_ail(
        self,
        name: str,
        ailments: Iterable[Ailment],
        placements: Mapping[int, Placement],
    ) -> None:
        """What is wrong with the pods of a job themselves, all of it.

        Nobody says again of pods that they vanished with their nodes.
        """
        before, places = self.ails.get(name, {}), self.places.get(name, {})
        told = [*ailments, *self.vanished.get(name, {}).values()]
        found: dict[int, Ailment] = {}
        for each in sorted(told, key=lambda each: ORDER.index(each.cause)):
            found.setdefault(each.replica, each)
        gone = before.keys() - found.keys()
        self.handled -= {(name, replica) for replica in gone}
        known = {
            n: place
            for n in found
            if (place := placements.get(n, places.get(n))) is not None
        }
        self.ails.pop(name, None)
        self.places.pop(name, None)
        if found:
            self.ails[name], self.places[name] = found, known
        self.suspects[name] = None

    def lost(self, name: str, placements: Mapping[int, Placement]) -> None:
        """The nodes of some pods are gone, and the pods with them."""
        new = {n: Ailment(n, Cause.NODE, p.node) for n, p in placements.items()}
        self.vanished[name] = self.vanished.get(name, {}) | new
        self.handled -= {(name, replica) for replica in new}
        self.pods_ail(name, self.ails.get(name, {}).values(), placements)

    def gone(self, name: str, replicas: Iterable[int]) -> bool:
        """Somebody says that pods are gone; whether their job waited for that."""
        repair = self.open.get(name)
        if repair is None:
            return False
        self.suspects[name] = None
        before = len(repair.awaited)
        repair.awaited -= {*replicas}
        return len(repair.awaited) < before

    def placed(self, name: str, replicas: Iterable[int]) -> None:
        """Pods have a place: what was wrong was wrong with those before them."""
        new = {*replicas}
        if new & self.ails.get(name, {}).keys():
            left = [a for n, a in self.ails[name].items() if n not in new]
            self.running(name, new)
            self.pods_ail(name, left, {})

    def running(self, name: str, replicas: Iterable[int]) -> None:
        """Pods are on nodes that are there."""
        known = self.vanished.pop(name, {})
        left = {n: each for n, each in known.items() if n not in {*replicas}}
        if left:
            self.vanished[name] = left
        if len(left) < len(known):
            ails = self.ails[name].items()
            rest = [each for n, each in ails if known.get(n) is not each]
            self.pods_ail(name, rest, {})
