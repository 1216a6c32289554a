"""Random small clusters and jobs, biased towards jobs that are placed.

A case speaks the oracle's language (sets of chips); ``cluster_of`` and ``job_of`` say
the same in Ringleaf's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.job import Job, Strategy
from ringleaf.model.mask import mask_of
from ringleaf.policies.products import PRODUCTS, rule_for
from tests.oracle import OracleJob, OracleNode

SIZES = {"atlas-300i": (4, 8, 12), "atlas-300i-duo": (2, 6, 10), "atlas-310p": (3, 8)}
ONE_POD = {"atlas-900-a3", "atlas-9000-a3"}


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
        strategy=Strategy(job.strategy),
        distributed=job.distributed,
    )


@st.composite
def nodes_of(draw: st.DrawFn, product: str, name: str) -> OracleNode:
    row = PRODUCTS[product]
    n_chips = draw(st.sampled_from(SIZES[product])) if row.sized else row.chips
    everything = frozenset(range(n_chips))
    some = st.frozensets(st.sampled_from(sorted(everything)), max_size=n_chips)
    few = st.one_of(
        st.just(frozenset[int]()),
        st.frozensets(st.integers(0, n_chips - 1), max_size=2),
    )
    none = st.just(frozenset[int]())
    scattered = st.sampled_from(
        [frozenset(range(start, n_chips, step)) for start in (0, 1) for step in (2, 3)]
    )
    taken = draw(st.one_of(none, none, few, some, scattered))
    return OracleNode(
        name=name,
        product=product,
        chips=n_chips,
        free=everything - taken,
        faulty=draw(few),
        network_faulty=draw(st.one_of(few, scattered)),
        sub_healthy=draw(st.sampled_from([False, False, False, True])),
        ready=draw(st.sampled_from([True, True, True, True, False])),
        superpod=draw(st.sampled_from([0, 0, 0, None])) if row.superpod else None,
    )


@st.composite
def jobs_for(draw: st.DrawFn, product: str) -> OracleJob:
    """A job for *product*; three times in four its request is one a pod may make."""
    strategy = draw(st.sampled_from(["chip", "card"]))
    job = OracleJob(product, 1, 1, strategy, draw(st.booleans()))
    legal = sorted(rule_for(job_of(job)))
    anything = st.integers(1, PRODUCTS[product].chips + 1)
    small = st.sampled_from(legal[:4])
    most = max(SIZES.get(product, (PRODUCTS[product].chips,)))
    large = st.sampled_from([n for n in legal if most // 2 <= n <= most] or legal)
    chips = draw(st.one_of(small, large, st.sampled_from(legal), small, anything))
    replicas = draw(st.sampled_from([1, 1, 2, 3]))
    return replace(job, chips=chips, replicas=1 if product in ONE_POD else replicas)


@st.composite
def cases(draw: st.DrawFn, n_jobs: int = 1, product: str | None = None) -> Case:
    products = sorted(PRODUCTS)
    product = product or draw(st.sampled_from(products))
    names = draw(st.permutations(["a", "b", "aa", "B"]))
    n_nodes = draw(st.sampled_from([1, 2, 2, 3, 3, 4]))
    others = st.sampled_from([product] * 60 + products)
    nodes = tuple(draw(nodes_of(draw(others), name)) for name in names[:n_nodes])
    jobs = tuple(draw(jobs_for(product)) for _number in range(n_jobs))
    return Case(nodes, jobs)
