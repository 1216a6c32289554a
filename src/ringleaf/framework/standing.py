"""How a job stands: what it is, what it holds, how long it waits."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec.structs import replace

from ringleaf.model.amounts import add, plus, scaled
from ringleaf.model.cache import Cache
from ringleaf.model.job import Job, Role
from ringleaf.model.placement import Placement

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
    """Not let in yet: the queue is full."""
    INQUEUE = "inqueue"
    """Let in, waits for chips."""
    RUNNING = "running"
    """Started: at least the pods that must start together hold what they asked."""


class Standing:
    """One job that the engine knows; the engine alone writes to it."""

    def __init__(self, job: Job, number: int = 0, arrived: float = 0.0) -> None:
        self.finished: frozenset[int] = NONE_OF_THEM
        """Replicas that ended well."""
        self.become(job)
        self.number = number
        """Its place in the order of arrival."""
        self.arrived = arrived
        self.waiting_since = arrived
        self.started: float | None = None
        self.phase = Phase.PENDING
        self.placements: dict[int, Placement] = {}
        """Replica -> where it is, for pods that hold something."""
        self.terminating: frozenset[int] = NONE_OF_THEM
        """Replicas that hold something still, and are asked to end."""
        self.promised: frozenset[int] = NONE_OF_THEM
        """Replicas for which room is held that is not free yet."""
        self.let_in_early = False
        """Whether it was let in before others who could not start."""
        self.allocated: dict[str, int] = {}
        """What its pods use now."""
        self.evicted_by: frozenset[str] = NO_NAMES
        """The jobs for which its pods were evicted."""
        self.evicted_in: int = -1
        """How many jobs had arrived when it was evicted last."""
        self.told = ""
        """What was last said of it."""
        self.before = ""
        """What had been said of it when it became another job."""
        self.previewed: object = None
        """Who would be evicted for it, if that was said."""
        self.why = ""
        """Why it waits, if that was last said of it, in words after its request."""

    def become(self, job: Job) -> None:
        """Be *job* from now on; its pods stay where they are."""
        self.job = job
        shape = _shape(replace(job, name="", created=0.0, priority=0))
        self.ask = shape.ask
        """What it asks for; jobs that ask the same wait in one line."""
        self.crew = shape.crew
        self.n_pods = shape.n_pods
        self.min_pods = shape.min_pods
        """Pods it starts with at least."""
        self.role_by_pod = shape.role_by_pod
        self.total = shape.total
        """What all its pods ask that have not ended; shared, not to be written to."""
        self.rest = job
        """The job without its pods that ended well."""
        self.least = shape.least
        """What the pods ask that must start together."""
        self.asks_nothing = not self.total
        """Whether its pods ask for no chips and no resources at all."""
        if self.finished:
            done, self.finished = self.finished, NONE_OF_THEM
            self.finish(done)

    def is_news(self, message: str) -> bool:
        """Whether *message* was not the last that was said of it; now it is."""
        known = message in (self.told, self.before)
        self.told, self.before = message, ""
        return not known

    def finish(self, replicas: Iterable[int]) -> dict[str, int]:
        """Pods ended well; what they had asked."""
        known = {replica for _role, own in self.crew for replica in own}
        new = known & {*replicas} - self.finished
        asked: dict[str, int] = {}
        for role, own in self.crew:
            done = sum(replica in new for replica in own)
            add(asked, scaled(pod_amounts(self.job, role), done))
        self.finished |= new
        self.total = plus(self.total, scaled(asked, -1))
        self.rest = self._rest()
        self.least = min_amounts(self.rest)
        return asked

    @property
    def ready(self) -> int:
        """Pods that run, are about to, or ended well."""
        return len(self.placements) - len(self.terminating) + len(self.finished)

    @property
    def is_broken(self) -> bool:
        """Whether it runs, with fewer pods than it can do without, and none ending."""
        runs = self.placements and not self.terminating
        return bool(runs) and self.ready < self.min_pods

    @property
    def missing(self) -> list[int]:
        """Replicas that hold nothing and have not ended."""
        held, done = self.placements, self.finished
        return [
            n
            for _role, own in self.crew
            for n in own
            if n not in held and n not in done
        ]

    def _rest(self) -> Job:
        left = []
        for role, own in self.crew:
            ranks = tuple(n for n in own if n not in self.finished)
            if ranks:
                least = None if role.least is None else min(role.least, len(ranks))
                left.append(
                    replace(role, replicas=len(ranks), ranks=ranks, least=least)
                )
        with_chips = sum(role.replicas for role in left if role.chips)
        ended = (n for role, own in self.crew if role.chips for n in own)
        ended = (n for n in ended if n in self.finished)
        return replace(
            self.job,
            roles=tuple(left),
            replicas=with_chips,
            tor_affinity=self.job.tor_affinity if with_chips else None,
            sp_block=self.job.sp_block if with_chips else None,
            least=max(1, self.min_pods - len(self.finished)),
            finished=(*self.job.finished, *sorted(ended)),
        )

    @property
    def surplus(self) -> int:
        """Pods beyond those that must start together."""
        return max(0, self.ready - self.min_pods)

    def ready_in(self, replicas: tuple[int, ...]) -> int:
        """How many of *replicas* run, are about to, or ended well."""
        alive = (self.placements.keys() - self.terminating) | self.finished
        return sum(replica in alive for replica in replicas)


class _Shape(NamedTuple):
    """What follows from what a job asks."""

    ask: Job
    crew: tuple[tuple[Role, tuple[int, ...]], ...]
    role_by_pod: Mapping[int, Role]
    n_pods: int
    min_pods: int
    total: Mapping[str, int]
    least: Mapping[str, int]


POD: Final = 128
"""Bytes of one pod in what is kept of a shape, roughly."""
_shapes: Final[Cache[Job, _Shape]] = Cache(4096, 8 << 20)


def _shape(ask: Job) -> _Shape:
    """Jobs that ask the same share it."""
    found = _shapes.get(ask)
    if found is None:
        crew, amounts = ask.crew, job_amounts(ask)
        n_pods = sum(len(own) for _role, own in crew)
        fewest, least = ask.fewest, min_amounts(ask)
        found = _Shape(ask, crew, ask.role_by_pod, n_pods, fewest, amounts, least)
        _shapes.put(ask, found, ask.weight + POD * n_pods)
    return found


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
    for role, replicas in job.crew:
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
    needs = [(role, job.least_of(role)) for role, _own in job.crew]
    for role, need in needs:
        add(total, scaled(pod_amounts(job, role), min(need, left)))
        left -= min(need, left)
    for role, own in job.crew:
        more = min(len(own) - job.least_of(role), left)
        add(total, scaled(pod_amounts(job, role), more))
        left -= more
    return total
