"""Whether a job whose pods differ has room at all, before its pods are tried.

Any number of its pods may find a place before the one that finds none, so what a try
would cost depends on the pods; what is counted here depends on the kinds of pods.
"""

from collections import Counter
from typing import Final

import numpy as np

from ringleaf.model.cluster import Cluster
from ringleaf.model.job import Job
from ringleaf.policies.fit import Request, capacity, of_product, request_of

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
