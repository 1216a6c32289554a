"""A job: pods that start together or not at all."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import count, islice
from typing import Final

from msgspec import Struct

from ringleaf.model.demand import NOTHING, WEIGHT, Demand, podless_words
from ringleaf.model.fault import NO_RECOVERY, Recovery, RestartScope
from ringleaf.model.job_labels import Firmness, Network, Schema, Strategy, type_of
from ringleaf.model.moving import Moving
from ringleaf.model.placement import JobType, Placement
from ringleaf.model.product import Product
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.run_time import NO_ORIGIN, Origin, RunTime

RANK: Final = 40
"""Bytes of the number of a pod in a tuple, roughly."""


class Previous(Struct, frozen=True):
    """Where the pods of a job are or were, for placing the ones that it lacks.

    With the ``scope`` ``POD``, the pods of ``placements`` run and keep their chips, and
    ``lost`` is where the missing ones were: their successors keep their blocks and,
    where they can, their slots. With ``JOB`` all pods were deleted, and ``placements``
    is where they were. No pod goes to ``failed_nodes``.
    """

    placements: tuple[Placement, ...]
    failed_nodes: tuple[str, ...] = ()
    scope: RestartScope = RestartScope.POD
    lost: tuple[Placement, ...] = ()


class Role(Struct, frozen=True):
    """Pods of a job that are alike.

    Args:
        name: Its name, unique in the job.
        chips: Chips of one pod; 0 for pods that only help.
        replicas: Pods.
        min_available: Pods of this role without which the job does not start.
        demand: What each pod asks of its node besides chips.
        ranks: The ranks its pods were given (``hccl/rankIndex``), if they were.

    """

    name: str
    chips: int
    replicas: int = 1
    min_available: int | None = None
    demand: Demand = NOTHING
    ranks: tuple[int, ...] = ()


class Job(Struct, frozen=True, dict=True, cache_hash=True):
    """*replicas* pods that each ask for *chips* chips of *product*.

    Replica numbers are ranks: the pod with ``hccl/rankIndex`` 3 is replica 3.
    A job of several ``roles`` has pods that differ; *chips*, *replicas* and *demand*
    are then those of its pods with chips.

    Args:
        name: Its name, unique in a cluster.
        product: The product its nodes must be.
        chips: Chips of one pod.
        replicas: Pods.
        strategy: Inference cards: whole cards or any chips.
        distributed: Distributed inference on Duo cards.
        tor_affinity: Its label for the leaf switches.
        sp_block: Chips of one logical SuperPoD.
        superpod_affinity: Whether logical SuperPoDs may be split (soft).
        vnpu: The template of the virtual NPU it asks for, if it asks for a part of one.
        demand: What each pod asks of its node besides chips.
        previous: Where it was before a fault.
        roles: Pods that differ, role by role; none where all pods are alike.
        min_available: Pods that must start together (``minMember``); none means all.
        finished: Ranks of further pods with chips, which have ended well.
        queue: The queue it waits in.
        priority: Higher goes first.
        created: When it was made, in seconds; the older goes first among equals.
        estimate_s: Seconds after which it is sure to have ended, once started.
        preemptable: Whether its pods may be evicted.
        preempts: Whether others may be evicted for it.
        critical: Pods of the system, which are never evicted.
        podless: Its pods are not made yet: it can be admitted, and nothing more.
        recovery: What it wants done when its pods are faulty.
        framework: The framework its pods run, by its label.
        alike: The products that it may be of, where ``product`` stands for several.
        declined: Labels for which it wants no default of the operator's settings.
        assumed: Labels whose values are those defaults.
        origin: Its user, and its name without its number.
        run_time: How long it is predicted to run, if it states no ``estimate_s``.
        moving: What is lost when it is moved, if it may be moved while it runs.

    """

    name: str
    product: Product
    chips: int
    replicas: int = 1
    strategy: Strategy | None = None
    distributed: bool = False
    tor_affinity: Schema | None = None
    sp_block: int | None = None
    superpod_affinity: Firmness | None = None
    vnpu: str | None = None
    demand: Demand = NOTHING
    previous: Previous | None = None
    roles: tuple[Role, ...] = ()
    min_available: int | None = None
    finished: tuple[int, ...] = ()
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    created: float = 0.0
    estimate_s: float | None = None
    preemptable: bool = True
    preempts: bool = True
    critical: bool = False
    podless: bool = False
    recovery: Recovery = NO_RECOVERY
    framework: str | None = None
    alike: tuple[str, ...] = ()
    declined: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    origin: Origin = NO_ORIGIN
    run_time: RunTime | None = None
    moving: Moving | None = None

    @property
    def wanted(self) -> str:
        """The request in words.

        >>> from ringleaf.policies.products import find_product
        >>> a2 = find_product("atlas-800t-a2")
        >>> Job("train", a2, chips=8, replicas=4).wanted
        '4 x 8 chips'
        >>> Job("train", a2, chips=8, replicas=4, min_available=2).wanted
        '4 x 8 chips (2 pods to start)'
        >>> Job("train", a2, 8, 2, roles=(Role("driver", 0), Role("w", 8, 2))).wanted
        "'driver' 1 x 0 and 'w' 2 x 8 chips"
        >>> asks = Role("", 0, demand=Demand(resources=(("cpu", 4000),)))
        >>> Job("j", a2, 0, 0, roles=(asks,), podless=True).wanted
        '4 cpu for pods that are not created yet'
        """
        if self.podless:
            return podless_words(self.roles[0].demand.resources if self.roles else ())
        said = " and ".join(
            f"{role.name!r} {role.replicas} x {role.chips}".removeprefix("'' ")
            for role in self.roles
        )
        said = f"{said or f'{self.replicas} x {self.chips}'} chips"
        pods = "pod" if self.min_pods == 1 else "pods"
        return f"{said} ({self.min_pods} {pods} to start)" if self.is_elastic else said

    @property
    def n_pods(self) -> int:
        """Pods of all roles."""
        return self._n_pods if self.roles else self.replicas

    @cached_property
    def _n_pods(self) -> int:
        return sum(role.replicas for role in self.roles)

    @property
    def is_elastic(self) -> bool:
        """Whether it may start with fewer pods than it has."""
        return self.min_available is not None and self.min_pods < self.n_pods

    def min_available_of(self, role: Role) -> int:
        """Pods of *role* without which it does not start.

        What roles say counts only if it is no more, all together, than what the job
        says, as in Volcano.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> worker = Role("worker", 8, 4, min_available=2)
        >>> roles = Role("driver", 0, min_available=1), worker
        >>> a2 = PRODUCTS["atlas-800t-a2"]
        >>> jobs = [Job("j", a2, 8, 4, roles=roles, min_available=n) for n in (2, 3)]
        >>> [job.min_available_of(roles[1]) for job in jobs]
        [0, 2]
        """
        if not role.min_available or not self._counts_minimums:
            return 0
        return min(role.min_available, role.replicas)

    @cached_property
    def _counts_minimums(self) -> bool:
        """Whether what roles say counts; summed up once, there may be many roles."""
        together = sum(min(r.min_available or 0, r.replicas) for r in self.roles)
        return together <= self.min_pods

    @property
    def min_chip_pods(self) -> int:
        """Pods with chips without which it does not start; in SuperPoDs whole blocks.

        One at least, if it has any.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> a2, a3 = PRODUCTS["atlas-800t-a2"], PRODUCTS["atlas-900-a3"]
        >>> Job("j", a2, 8, replicas=4, min_available=3).min_chip_pods
        3
        >>> roles = Role("driver", 0, 2), Role("worker", 8, 4, min_available=1)
        >>> Job("j", a2, 8, 4, roles=roles, min_available=4).min_chip_pods
        2
        >>> Job("j", a3, 16, 8, sp_block=64, min_available=3).min_chip_pods
        4
        """
        if not self.is_elastic:
            return self.replicas
        roles = [role for role in self.roles if role.chips]
        if self.roles and not roles:
            return 0
        least = sum(self.min_available_of(role) for role in roles)
        without_chips = self.n_pods - self.replicas
        fewest = max(1, least, self.min_pods - without_chips)
        if self.network is Network.SUPERPODS and self.replicas > 1:
            fewest = min(fewest + -fewest % self.block_nodes, self.replicas)
        return fewest

    @property
    def effective_min(self) -> int:
        """Pods it starts with at least, what roles and blocks need among them.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> roles = Role("driver", 0, 2, min_available=2), Role("worker", 8, 4)
        >>> a2 = PRODUCTS["atlas-800t-a2"]
        >>> Job("j", a2, 8, 4, roles=roles, min_available=2).effective_min
        3
        """
        if not self.is_elastic:
            return self.n_pods
        without_chips = [role for role in self.roles if not role.chips]
        least = sum(self.min_available_of(role) for role in without_chips)
        return max(self.min_pods, self.min_chip_pods + least)

    @property
    def ranks(self) -> Sequence[int]:
        """The numbers of the pods with chips, in the order of ranks."""
        if not self.roles:
            return range(self.replicas)
        return sorted(n for role, own in self.role_ranks if role.chips for n in own)

    @property
    def min_pods(self) -> int:
        """Pods that must start together; one at least.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> product = PRODUCTS["atlas-800t-a2"]
        >>> [Job("j", product, 8, 2, min_available=n).min_pods for n in (0, 3)]
        [1, 2]
        """
        if self.min_available is None:
            return self.n_pods
        return min(max(1, self.min_available), self.n_pods)

    @property
    def role_ranks(self) -> tuple[tuple[Role, tuple[int, ...]], ...]:
        """Every role with the numbers of its pods.

        Pods with chips come first, by their ranks; the others are numbered after them.
        A job without roles is one role without a name.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> roles = Role("driver", 0), Role("worker", 8, 2)
        >>> job = Job("j", PRODUCTS["atlas-800t-a2"], 8, 2, roles=roles)
        >>> [(role.name, replicas) for role, replicas in job.role_ranks]
        [('worker', (0, 1)), ('driver', (2,))]
        """
        if not self.roles:
            role = Role("", self.chips, self.replicas, self.min_available, self.demand)
            return ((role, tuple(range(self.replicas))),)
        numbered = []
        taken = {rank for role in self.roles for rank in role.ranks}
        free = (number for number in count() if number not in taken)
        for role in sorted(self.roles, key=lambda role: role.chips == 0):
            numbers = role.ranks or tuple(islice(free, role.replicas))
            numbered.append((role, numbers))
        return tuple(numbered)

    @cached_property
    def role_by_pod(self) -> Mapping[int, Role]:
        """The number of every pod with its role.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> roles = Role("driver", 0), Role("worker", 8, 2)
        >>> job = Job("j", PRODUCTS["atlas-800t-a2"], 8, 2, roles=roles)
        >>> {number: role.name for number, role in job.role_by_pod.items()}
        {0: 'worker', 1: 'worker', 2: 'driver'}
        """
        return {number: role for role, own in self.role_ranks for number in own}

    @property
    def n_requests(self) -> int:
        """How many different things its pods ask.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> roles = Role("driver", 0), Role("worker", 8), Role("standby", 8)
        >>> Job("j", PRODUCTS["atlas-800t-a2"], 8, 2, roles=roles).n_requests
        2
        """
        return self._n_requests if self.roles else 1

    @cached_property
    def _n_requests(self) -> int:
        return len({(role.chips, role.demand) for role in self.roles})

    @property
    def weight(self) -> int:
        """About how many bytes it takes with what it asks, for caches to go by."""
        asked = sum(role.demand.weight + WEIGHT for role in self.roles)
        ranks = sum(len(role.ranks) for role in self.roles)
        ranks += len(self.finished)
        return WEIGHT + self.demand.weight + asked + RANK * ranks

    @property
    def numbers(self) -> Collection[int]:
        """The numbers of all its pods."""
        return self.role_by_pod if self.roles else range(self.replicas)

    @property
    def network(self) -> Network:
        """Which network rule places it; the faster network first (D27)."""
        if self.product.superpod or (self.sp_block is not None and self.product.blocks):
            return Network.SUPERPODS
        return Network.NONE if self.tor_affinity is None else Network.SWITCHES

    @property
    def job_type(self) -> JobType | None:
        """Padding, common or foundation, for the leaf switches."""
        return type_of(self.tor_affinity, self.submitted)

    @property
    def submitted(self) -> int:
        """Pods with chips, those among them that have ended well.

        What is judged by the size of a job does not change when some of them end.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> a2 = PRODUCTS["atlas-800t-a2"]
        >>> job = Job("j", a2, 8, 3, tor_affinity=Schema.LARGE_MODEL, finished=(0,))
        >>> job.submitted, job.job_type.value
        (4, 'foundation')
        """
        return self.replicas + len(self.finished)

    @property
    def block_chips(self) -> int:
        """Chips of one logical SuperPoD: the whole job unless it says otherwise."""
        return self.replicas * self.chips if self.sp_block is None else self.sp_block

    @property
    def block_nodes(self) -> int:
        """Nodes of one logical SuperPoD."""
        return max(1, self.block_chips // self.product.chips)

    @property
    def n_blocks(self) -> int:
        """Logical SuperPoDs of the job."""
        if self.finished:
            return len({self.block_of(rank) for rank in self.ranks})
        return self.replicas // self.block_nodes

    def block_of(self, rank: int) -> int:
        """The logical SuperPoD of a pod, by its place among all pods with chips.

        Pods that have ended well keep their places.

        >>> from ringleaf.policies.products import PRODUCTS
        >>> left = Role("", 16, 3, ranks=(1, 2, 3))
        >>> a3 = PRODUCTS["atlas-900-a3"]
        >>> job = Job("j", a3, 16, 3, sp_block=32, roles=(left,), finished=(0,))
        >>> [job.block_of(rank) for rank in (1, 2, 3)], job.n_blocks
        ([0, 1, 1], 2)
        """
        if not self.roles and not self.finished:
            return rank // self.block_nodes
        return self._places[rank] // self.block_nodes

    @cached_property
    def _places(self) -> Mapping[int, int]:
        ranks = sorted({*self.ranks, *self.finished})
        return {rank: place for place, rank in enumerate(ranks)}
