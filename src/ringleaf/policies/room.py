"""Whether there is room for a job at all, now or on an empty cluster.

Any number of pods of a job with roles may find a place before the one that finds none,
so what a try would cost depends on the pods; what is counted here depends on the kinds
of pods.

Some jobs cannot start on a cluster, however empty it is. Chips that are held or faulty,
nodes that are not ready, cordoned, tainted or quarantined may all be free again. So a
job is tried on the same nodes with nothing on them and nothing wrong with them, by the
rules that place it. What is left are the number of nodes, their products, resources and
labels, and the network. Elastic jobs, and those that ran before, are only counted:
where they may go depends on more than the rule.
"""

from collections import Counter
from typing import Final

import numpy as np
from msgspec import Struct

from ringleaf.model.cache import Cache
from ringleaf.model.cluster import Cluster
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Network
from ringleaf.model.settings import Settings
from ringleaf.policies.fit import (
    NO_CHIPS,
    NOT_EXCLUDED,
    Request,
    capacity,
    node_ranks,
    of_product,
    of_right_product,
    request_of,
)
from ringleaf.policies.gang import (
    block_layout,
    superpod_assignments,
    switch_assignments,
)
from ringleaf.policies.words import counted

MANY: Final = 64
"""A gang of this many replicas asks for room before it takes any."""


def is_varied(job: Job) -> bool:
    """Whether a job has many pods, of which only one or two ask the same.

    To put nodes in order for such pods costs more than to look at all of them, and the
    orders of one job would push out those of all others.
    """
    return 2 * job.n_requests > max(job.n_pods, MANY)


def min_chips(job: Job) -> int:
    """Chips without which a job does not start, or fewer where its pods differ.

    >>> from ringleaf.model.job import Role
    >>> from ringleaf.policies.products import PRODUCTS
    >>> roles = Role("driver", 0), Role("small", 1, 2), Role("worker", 8, 4)
    >>> a2 = PRODUCTS["atlas-800t-a2"]
    >>> jobs = [Job("j", a2, 8, 6, roles=roles, min_available=n) for n in (7, 5)]
    >>> [min_chips(job) for job in jobs]
    [34, 4]
    """
    if not job.roles:
        return job.min_chip_pods * job.chips
    if not job.is_elastic:
        return sum(role.chips * role.replicas for role in job.roles)
    fewest = min((role.chips for role in job.roles if role.chips), default=0)
    return job.min_chip_pods * fewest


def lacks_room_for_roles(cluster: Cluster, job: Job) -> bool:
    """Whether chips are too few for all roles, or places for many pods of one kind."""
    free = cluster.free[of_product(cluster, job.product)]
    if min_chips(job) > int(np.bitwise_count(free).sum()):
        return True
    needs = Counter[Request]()
    for role in job.roles:
        pods = job.min_available_of(role) if job.is_elastic else role.replicas
        needs[request_of(job, role)] += pods
    return any(
        pods >= MANY and capacity(cluster, request) < pods
        for request, pods in needs.items()
    )


HOWEVER_EMPTY: Final = "cannot start on this cluster, however empty"

ENTRIES: Final = 1 << 15
"""Requests for which it is kept whether they can ever start: every pending job is
asked about in turn, so too few entries would keep none."""
BYTES: Final = 32 << 20
"""Bytes of those requests."""


class Impossible(Struct, frozen=True):
    """A job cannot start on these nodes: why if they are too few, and what helps.

    Where a network rule cannot be satisfied, the rule says why.
    """

    why: str = ""
    hint: str = ""

    @property
    def words(self) -> str:
        """The reason.

        >>> Impossible().words, Impossible("it has no node").words[-14:]
        ('cannot start on this cluster, however empty', 'it has no node')
        """
        return f"{HOWEVER_EMPTY}: {self.why}" if self.why else HOWEVER_EMPTY


class EmptyCluster:
    """The nodes of a cluster with nothing on them; what cannot start there.

    What is found is kept until a node changes.
    """

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self._cluster, self._settings = cluster, settings
        self._epoch, self._empty = -1, cluster
        self._known: Cache[Job, tuple[Impossible | None]] = Cache(ENTRIES, BYTES)

    def refusal(self, job: Job, key: Job) -> Impossible | None:
        """Why a legal *job* can never start; None if it may.

        Jobs with the same *key* get the same answer.
        """
        if self._epoch != self._cluster.epoch:
            self._epoch, self._empty = self._cluster.epoch, self._cluster.emptied()
            self._known.clear()
        found = self._known.get(key)
        if found is None:
            found = (_refusal(self._empty, job, self._settings),)
            self._known.put(key, found, key.weight)
        return found[0]


def _refusal(empty: Cluster, job: Job, settings: Settings) -> Impossible | None:
    """Why *job* finds no place on the *empty* cluster: its nodes, then its network."""
    if job.podless or job.previous is not None:
        return None
    if job.network is Network.SWITCHES and not empty.leaves:
        return None  # no topology is known yet
    if job.roles:
        return _lacks_for_roles(empty, job)
    request, pods = request_of(job), job.min_chip_pods
    room = capacity(empty, request)
    if room < pods:
        less = f", or request at most {counted(room, 'pod')}" * (room > 0)
        hint = f"add nodes{_of_product(request)}{less}"
        return Impossible(_room_words(empty, request, room, pods), hint)
    if job.is_elastic or job.finished:
        return None
    fits = _fits_network(empty, request, job, settings)
    return None if fits else Impossible()


def _lacks_for_roles(empty: Cluster, job: Job) -> Impossible | None:
    """Why a job whose pods differ has too few places: of one role, or chips for all."""
    for role in job.roles:
        pods = job.min_available_of(role) if job.is_elastic else role.replicas
        request = request_of(job, role)
        room = capacity(empty, request)
        if room < pods:
            why = f"role {role.name!r}: {_room_words(empty, request, room, pods)}"
            return Impossible(why, f"add nodes{_of_product(request)}")
    own = of_product(empty, job.product)
    chips, needed = int(np.bitwise_count(empty.free[own]).sum()), min_chips(job)
    if chips >= needed:
        return None
    nodes = counted(int(own.sum()), "node")
    why = f"its {nodes} of {job.product.key} have {chips} chips, its pods need {needed}"
    return Impossible(why, f"add nodes of {job.product.key}")


def _room_words(empty: Cluster, request: Request, room: int, pods: int) -> str:
    """How many nodes there are, and for how many of *pods* they have *room*."""
    number = int(of_right_product(empty, request).sum())
    of = _of_product(request)
    if not number:
        return f"it has no node{of}"
    has = "has" if number == 1 else "have"
    most = f"{room} of {counted(pods, 'pod')}" if room else "no pod"
    return f"its {counted(number, 'node')}{of} {has} room for {most}"


def _of_product(request: Request) -> str:
    """The product that the nodes must be of, as it reads after them."""
    return "" if request.row is NO_CHIPS else f" of {request.product.key}"


def _fits_network(
    empty: Cluster, request: Request, job: Job, settings: Settings
) -> bool:
    """Whether *job*, for which there are enough nodes, fits by its network rule."""
    replicas = job.ranks
    if request.network is Network.SWITCHES:
        ranks = node_ranks(empty, request)
        found = switch_assignments(empty, job, settings, ranks, replicas)
        return found is not None
    if request.network is not Network.SUPERPODS or job.replicas == 1:
        return True
    layout = block_layout(job, settings, replicas)
    found = superpod_assignments(
        empty, request, job, layout, NOT_EXCLUDED, replicas=replicas
    )
    return found is not None
