"""The state of a job: its spec, what it holds, how long it is pending."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import inf
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ringleaf.framework.reasons import QueueReason
from ringleaf.model.amounts import add, plus, scaled
from ringleaf.model.cache import Cache
from ringleaf.model.job import Job, Role
from ringleaf.model.placement import Placement
from ringleaf.model.run_time import NO_ORIGIN
from ringleaf.model.settings import Settings

NO_NAMES: Final[frozenset[str]] = frozenset()
NONE_OF_THEM: Final[frozenset[int]] = frozenset()
"""No pods; most jobs have none of most kinds, and share it."""
THE_FIRST: Final[frozenset[int]] = frozenset({0})
"""The first pod; most jobs have no other, and share it."""


def with_pods(known: frozenset[int], more: Iterable[int]) -> frozenset[int]:
    """*known* and *more* pods.

    >>> with_pods(NONE_OF_THEM, [0]) is with_pods(THE_FIRST, [0])
    True
    >>> sorted(with_pods(THE_FIRST, [1]))
    [0, 1]
    """
    found = known.union(more)
    return THE_FIRST if found == THE_FIRST else found


class Phase(StrEnum):
    """How far a job has come."""

    PENDING = "pending"
    """Not admitted."""
    INQUEUE = "inqueue"
    """Admitted, waits for chips."""
    RUNNING = "running"
    """Started, and holds at least one pod; it may be below its minimum."""


class JobHistory(Struct):
    """What was reported of a job, and done to it."""

    reported: str = ""
    """What was last said of it."""
    reported_before: str = ""
    """What had been said of it when it became another job."""
    previewed: object = None
    """What would be evicted for it, if that was said."""
    why: QueueReason | None = None
    """Why it is pending, if its queue is why, and that was reported last."""
    evicted_by: frozenset[str] = NO_NAMES
    """The jobs for which its pods were evicted."""
    evicted_in: int = -1
    """How many jobs had arrived when it was evicted last."""
    bound_at: float = -inf
    """When pods of it were last bound."""
    admitted_early: bool = False
    """Whether it was admitted before others that could not start."""
    interrupted: bool = False
    """Whether the scheduler ended pods of it since it started, or may have."""

    def is_news(self, message: str) -> bool:
        """Whether *message* was not the last that was said of the job; now it is."""
        known = message in (self.reported, self.reported_before)
        self.reported, self.reported_before = message, ""
        return not known


class JobState:
    """One job that the engine knows. Plugins read it only."""

    def __init__(self, job: Job, number: int = 0, arrived: float = 0.0) -> None:
        self._be(job)
        self._arrival = number, arrived
        self.waiting_since = arrived
        self.started: float | None = None
        self.phase = Phase.PENDING
        self.placements: dict[int, Placement] = {}
        """Replica -> where it is, for pods that hold something."""
        self.terminating: frozenset[int] = NONE_OF_THEM
        """Replicas that hold something still, and are asked to end."""
        self.pipelined: frozenset[int] = NONE_OF_THEM
        """Replicas for which room is held that is not free yet."""
        self.allocated: dict[str, int] = {}
        """What its pods use now."""
        self.history = JobHistory()

    def become(self, job: Job) -> None:
        """Be *job* from now on; its pods stay where they are."""
        done = self.finished
        self._be(job)
        if done:
            self.finish(done)

    def _be(self, job: Job) -> None:
        """Be *job*, of which no pod has ended."""
        self.job, self.facts = job, _facts_of(scheduling_key_of(job))
        self.validated_for: Settings | None = None
        """The settings by which it was admitted as legal, if it was."""

    @property
    def number(self) -> int:
        """Its place in the order of arrival."""
        return self._arrival[0]

    @property
    def arrived(self) -> float:
        """When it arrived."""
        return self._arrival[1]

    # What is left of it after pods ended well.

    @property
    def finished(self) -> frozenset[int]:
        """Replicas that ended well."""
        return self.facts.finished

    @property
    def remaining(self) -> Job:
        """The job without its pods that ended well."""
        return self.facts.remaining or self.job

    def finish(self, replicas: Iterable[int]) -> dict[str, int]:
        """Pods ended well; what they had asked."""
        known = {replica for _role, own in self.facts.role_ranks for replica in own}
        new = known & {*replicas} - self.finished
        asked: dict[str, int] = {}
        for role, own in self.facts.role_ranks:
            done = sum(replica in new for replica in own)
            add(asked, scaled(pod_amounts(self.job, role), done))
        finished = self.finished | new
        left = self._without(finished)
        total = plus(self.facts.total, scaled(asked, -1))
        least = min_amounts(left)
        self.facts = self.facts._replace(
            total=total, min_resources=least, remaining=left, finished=finished
        )
        return asked

    @property
    def ready(self) -> int:
        """Pods that run, are about to, or ended well."""
        ended = len(self.facts.finished)
        return len(self.placements) - len(self.terminating) + ended

    @property
    def below_min_available(self) -> bool:
        """Whether it runs with fewer pods than its minimum, and none is terminating."""
        runs = self.placements and not self.terminating
        return bool(runs) and self.ready < self.facts.effective_min

    @property
    def missing(self) -> list[int]:
        """Replicas that hold nothing and have not ended."""
        held, done = self.placements, self.facts.finished
        return [
            n
            for _role, own in self.facts.role_ranks
            for n in own
            if n not in held and n not in done
        ]

    def _without(self, finished: frozenset[int]) -> Job:
        """The job without pods that are *finished*."""
        left = []
        for role, own in self.facts.role_ranks:
            ranks = tuple(n for n in own if n not in finished)
            if ranks:
                need = role.min_available
                need = None if need is None else min(need, len(ranks))
                some = {"replicas": len(ranks), "ranks": ranks, "min_available": need}
                left.append(replace(role, **some))
        with_chips = sum(role.replicas for role in left if role.chips)
        ranks_of = [own for role, own in self.facts.role_ranks if role.chips]
        ended = sorted(n for own in ranks_of for n in own if n in finished)
        return replace(
            self.job,
            roles=tuple(left),
            replicas=with_chips,
            tor_affinity=self.job.tor_affinity if with_chips else None,
            sp_block=self.job.sp_block if with_chips else None,
            min_available=max(1, self.facts.effective_min - len(finished)),
            finished=(*self.job.finished, *ended),
        )

    @property
    def surplus(self) -> int:
        """Pods beyond those that must start together."""
        return max(0, self.ready - self.facts.effective_min)

    def ready_in(self, replicas: tuple[int, ...]) -> int:
        """How many of *replicas* run, are about to, or ended well."""
        alive = (self.placements.keys() - self.terminating) | self.finished
        return sum(replica in alive for replica in replicas)


class JobFacts(NamedTuple):
    """What follows from what a job requests; shared by all that request the same.

    Once pods of a job have ended well, it has facts of its own.
    """

    scheduling_key: Job
    """What it requests; jobs with the same key are in one equivalence class."""
    key_without_run_time: Job
    """The same for jobs that request the same, however long they run."""
    role_ranks: tuple[tuple[Role, tuple[int, ...]], ...]
    """Every role with the numbers of its pods."""
    role_by_pod: Mapping[int, Role]
    """The number of every pod with its role."""
    n_pods: int
    """Pods of all roles."""
    effective_min: int
    """Pods it starts with at least."""
    total: Mapping[str, int]
    """What all its pods request that have not ended."""
    min_resources: Mapping[str, int]
    """What the pods request that must start together."""
    filter_cost: int
    """What it costs to hold all nodes against what it says of nodes and pods."""
    remaining: Job | None = None
    """The job without its pods that ended well, if some have."""
    finished: frozenset[int] = NONE_OF_THEM
    """Replicas that ended well."""


def scheduling_key_of(job: Job) -> Job:
    """What *job* requests, without what tells it from jobs that request the same."""
    lasts = None if job.run_time is None else job.run_time.key
    same = {"name": "", "created": 0.0, "priority": 0, "origin": NO_ORIGIN}
    return replace(job, **same, run_time=lasts, moving=None)


POD: Final = 128
"""Bytes of one pod in the facts that are kept, roughly."""
_facts: Final[Cache[Job, JobFacts]] = Cache(4096, 8 << 20)


def _facts_of(key: Job) -> JobFacts:
    """Shared by jobs with the same key."""
    found = _facts.get(key)
    if found is None:
        role_ranks, amounts = key.role_ranks, job_amounts(key)
        n_pods = sum(len(own) for _role, own in role_ranks)
        fewest, least = key.effective_min, min_amounts(key)
        untimed = key
        if key.estimate_s is not None or key.run_time is not None:
            untimed = replace(key, estimate_s=None, run_time=None)
            untimed = _facts_of(untimed).scheduling_key
        found = JobFacts(
            scheduling_key=key,
            key_without_run_time=untimed,
            role_ranks=role_ranks,
            role_by_pod=key.role_by_pod,
            n_pods=n_pods,
            effective_min=fewest,
            total=amounts,
            min_resources=least,
            filter_cost=filter_cost(key),
        )
        _facts.put(key, found, key.weight + POD * n_pods)
    return found


OF_NODES, OF_PODS = 8, 3
"""How many requirements on labels of nodes, and how many terms about other pods for
each pod, cost 1: all nodes are held against each of them."""


def filter_cost(job: Job) -> int:
    """What it costs to hold all nodes against what *job* says of nodes and pods.

    >>> from ringleaf.model.demand import Demand, Operator, Requirement, Spread
    >>> from ringleaf.policies.products import PRODUCTS
    >>> zones = Demand(
    ...     required=(Requirement("zone", Operator.EXISTS),) * 80,
    ...     spread=(Spread("zone", 1, ()),) * 3,
    ... )
    >>> filter_cost(Job("j", PRODUCTS["atlas-800t-a2"], 8, 100, demand=zones))
    110
    """
    shapes = [(role.demand, role.replicas) for role in job.roles]
    shapes = shapes or [(job.demand, job.replicas)]
    of_nodes = sum(demand.n_of_nodes for demand, _pods in shapes)
    of_pods = sum(pods * demand.n_of_pods for demand, pods in shapes)
    return of_nodes // OF_NODES + of_pods // OF_PODS


def pod_amounts(job: Job, role: Role) -> dict[str, int]:
    """What one pod of *role* asks: its chips, as the product counts them, and the rest.

    >>> from ringleaf.policies.products import PRODUCTS
    >>> pod_amounts(Job("j", PRODUCTS["atlas-800t-a2"], 8), Role("", 8))
    {'huawei.com/Ascend910': 8000}
    """
    amounts = dict(role.demand.resources)
    if role.chips:
        chips = job.product.resource
        amounts[chips] = amounts.get(chips, 0) + 1000 * role.chips
    return amounts


def job_amounts(job: Job) -> dict[str, int]:
    """What all pods of *job* ask."""
    if not job.roles:
        role = Role("", job.chips, job.replicas, demand=job.demand)
        return scaled(pod_amounts(job, role), job.replicas)
    total: dict[str, int] = {}
    for role, replicas in job.role_ranks:
        add(total, scaled(pod_amounts(job, role), len(replicas)))
    return total


def min_amounts(job: Job) -> dict[str, int]:
    """What the pods ask that must start together (``minResources``).

    Of every role the pods it cannot do without, then pods with chips first.
    """
    left = job.min_pods
    if not job.roles:
        role = Role("", job.chips, job.replicas, demand=job.demand)
        return scaled(pod_amounts(job, role), left)
    total: dict[str, int] = {}
    needs = [(role, job.min_available_of(role)) for role, _own in job.role_ranks]
    for role, need in needs:
        add(total, scaled(pod_amounts(job, role), min(need, left)))
        left -= min(need, left)
    for role, own in job.role_ranks:
        more = min(len(own) - job.min_available_of(role), left)
        add(total, scaled(pod_amounts(job, role), more))
        left -= more
    return total
