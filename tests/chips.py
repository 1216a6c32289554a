"""Clusters drawn as strings, so that a test shows the chips it is about.

One character per chip in the order of ids: the last hexadecimal digit of its id when
it is free, ``.`` when it is in use, ``x`` when it is faulty, ``~`` when it is free but
its network is faulty. ``|`` stands between groups and means nothing.
"""

from collections.abc import Iterable, Sequence

from ringleaf.framework.session import Session
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Strategy
from ringleaf.model.mask import mask_of
from ringleaf.model.settings import JobRequests, Settings
from ringleaf.policies.chips import NEVER
from ringleaf.policies.fit import node_ranks, request_of
from ringleaf.policies.products import PRODUCTS

PER_POD = Settings(job_requests=JobRequests.PER_POD)
SUPERPOD = 0


def chips(drawing: str) -> tuple[int, ...]:
    """The chips that are free in *drawing*.

    >>> chips("0.2.|45..")
    (0, 2, 4, 5)
    """
    return _marked(drawing, "0123456789abcdef~")


def _marked(drawing: str, marks: str) -> tuple[int, ...]:
    drawn = drawing.replace("|", "")
    for chip, mark in enumerate(drawn):
        assert mark in {f"{chip % 16:x}", ".", "x", "~"}, f"{drawing}: {mark!r}"
    return tuple(chip for chip, mark in enumerate(drawn) if mark in marks)


def a_job(
    product: str,
    asked: int,
    *,
    pods: int = 1,
    strategy: str | None = None,
    distributed: bool = False,
    min_available: int | None = None,
) -> Job:
    """A job called ``j``."""
    return Job(
        "j",
        PRODUCTS[product],
        asked,
        pods,
        None if strategy is None else Strategy(strategy),
        distributed,
        min_available=min_available,
    )


def a_node(
    name: str,
    product: str,
    drawing: str,
    *,
    ready: bool = True,
    sub_healthy: bool = False,
    superpod: int | None = SUPERPOD,
) -> Node:
    """A node as it is drawn; a product of fixed size is drawn whole."""
    n_chips = len(drawing.replace("|", ""))
    assert PRODUCTS[product].sized or n_chips == PRODUCTS[product].chips, drawing
    return Node(
        name=name,
        product=PRODUCTS[product],
        chips=n_chips,
        free=mask_of(chips(drawing)),
        faulty=mask_of(_marked(drawing, "x")),
        network_faulty=mask_of(_marked(drawing, "~")),
        ready=ready,
        sub_healthy=sub_healthy,
        superpod=superpod,
    )


def a_cluster(product: str, drawings: Iterable[str]) -> Cluster:
    """Nodes of one product, named so that a later drawing has an earlier name."""
    drawn = list(drawings)
    return Cluster(
        a_node(f"n{len(drawn) - at:05}", product, drawing)
        for at, drawing in enumerate(drawn)
    )


def ranks(job: Job, drawings: Sequence[str]) -> list[int | None]:
    """The rank of each drawn node for one pod of *job*; None where it does not fit."""
    cluster = a_cluster(job.product.key, drawings)
    found = reversed(node_ranks(cluster, request_of(job)).tolist())
    return [None if rank == NEVER else rank for rank in found]


def is_the_order(job: Job, drawings: Sequence[str]) -> bool:
    """Whether every drawn node fits and is strictly better than the next one."""
    found = [rank for rank in ranks(job, drawings) if rank is not None]
    return found == sorted(set(found)) and len(found) == len(drawings)


def given(job: Job, drawing: str) -> tuple[int, ...] | None:
    """The chips the first pod of *job* is given where every node is as drawn."""
    cluster = a_cluster(job.product.key, [drawing] * job.replicas)
    decision = Session(cluster, PER_POD).decide(job)
    return decision.placements[0].chips if isinstance(decision, Placed) else None
