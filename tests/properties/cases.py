"""Random small clusters and jobs, biased towards jobs that are placed.

A case speaks the oracle's language (sets of chips); ``cluster_of`` and ``job_of`` say
the same in Ringleaf's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Strategy
from ringleaf.model.mask import mask_of
from ringleaf.policies.products import PRODUCTS, rule_for
from tests.oracle import OracleJob, OracleNode

SIZES = {"atlas-300i": (4, 8, 12), "atlas-300i-duo": (2, 6, 10), "atlas-310p": (3, 8)}
ONE_POD = {"atlas-900-a3", "atlas-9000-a3"}

T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """A cluster and jobs for it, in order."""

    nodes: tuple[OracleNode, ...]
    jobs: tuple[OracleJob, ...]


def cluster_of(nodes: Sequence[OracleNode]) -> Cluster:
    return Cluster(
        Node(
            name=node.name,
            product=PRODUCTS[node.product],
            chips=node.chips,
            free=mask_of(node.free),
            faulty=mask_of(node.faulty),
            network_faulty=mask_of(node.network_faulty),
            ready=node.ready,
            sub_healthy=node.sub_healthy,
            superpod=node.superpod,
        )
        for node in nodes
    )


def job_of(job: OracleJob, name: str = "job") -> Job:
    return Job(
        name=name,
        product=PRODUCTS[job.product],
        chips=job.chips,
        replicas=job.replicas,
        strategy=Strategy(job.strategy) if job.strategy else None,
        distributed=job.distributed,
    )


def among(values: Sequence[T]) -> st.SearchStrategy[T]:
    """One of *values*; made once, for that takes longer than to draw."""
    key = tuple((type(value), value) for value in values)  # True is not 1
    if key not in _MADE:
        _MADE[key] = st.sampled_from(values)
    return _MADE[key]


_MADE: dict[tuple[Any, ...], st.SearchStrategy[Any]] = {}
NONE: Final = st.just(frozenset[int]())


@cache
def few(n_chips: int) -> st.SearchStrategy[frozenset[int]]:
    return st.one_of(NONE, st.frozensets(st.integers(0, n_chips - 1), max_size=2))


@cache
def scattered(n_chips: int) -> st.SearchStrategy[frozenset[int]]:
    steps = [(start, step) for start in (0, 1) for step in (2, 3)]
    return among([frozenset(range(start, n_chips, step)) for start, step in steps])


@cache
def taken(n_chips: int) -> st.SearchStrategy[frozenset[int]]:
    some = st.frozensets(among(range(n_chips)), max_size=n_chips)
    return st.one_of(NONE, NONE, few(n_chips), some, scattered(n_chips))


@cache
def cut_off(n_chips: int) -> st.SearchStrategy[frozenset[int]]:
    some = st.frozensets(st.integers(0, n_chips - 1), min_size=1, max_size=2)
    return st.one_of(few(n_chips), some, scattered(n_chips))


@st.composite
def nodes_of(draw: st.DrawFn, product: str, name: str) -> OracleNode:
    row = PRODUCTS[product]
    n_chips = draw(among(SIZES[product])) if row.sized else row.chips
    return OracleNode(
        name=name,
        product=product,
        chips=n_chips,
        free=frozenset(range(n_chips)) - draw(taken(n_chips)),
        faulty=draw(few(n_chips)),
        network_faulty=draw(cut_off(n_chips)),
        sub_healthy=draw(among([False, False, False, True])),
        ready=draw(among([True, True, True, True, False])),
        superpod=draw(among([0, 0, None])) if row.superpod else None,
    )


@cache
def requests(
    product: str, strategy: str, *, distributed: bool
) -> st.SearchStrategy[int]:
    """Chips of a pod; three times in four as many as one may ask for."""
    legal = sorted(rule_for(job_of(OracleJob(product, 1, 1, strategy, distributed))))
    anything = st.integers(1, PRODUCTS[product].chips + 1)
    small = among(legal[:4])
    most = max(SIZES.get(product, (PRODUCTS[product].chips,)))
    large = among([n for n in legal if most // 2 <= n <= most] or legal)
    return st.one_of(small, large, among(legal), small, anything)


@st.composite
def jobs_for(draw: st.DrawFn, product: str) -> OracleJob:
    """A job for *product*."""
    strategy, distributed = draw(among(["chip", "card", ""])), draw(st.booleans())
    chips = draw(requests(product, strategy, distributed=distributed))
    replicas = draw(among([1, 2, 3]))
    pods = 1 if product in ONE_POD else replicas
    return OracleJob(product, chips, pods, strategy, distributed)


@st.composite
def cases(draw: st.DrawFn, n_jobs: int = 1, product: str | None = None) -> Case:
    products = sorted(PRODUCTS)
    product = product or draw(among(products))
    names = draw(NAMES)
    n_nodes = draw(among([1, 2, 2, 3, 3, 4]))
    others = among([product] * 60 + products)
    nodes = tuple(draw(nodes_of(draw(others), name)) for name in names[:n_nodes])
    jobs = tuple(draw(jobs_for(product)) for _number in range(n_jobs))
    return Case(nodes, jobs)


NAMES: Final = st.permutations(["a", "b", "aa", "B"])
