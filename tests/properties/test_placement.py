"""What must hold for every cluster and every job, against the oracle."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_struct

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Invalid, Placed, Reason, Waiting
from ringleaf.model.settings import JobRequests, Settings
from ringleaf.policies.fit import request_of
from ringleaf.policies.products import PRODUCTS
from tests.effort import assert_reached, examples
from tests.oracle import OracleJob, OracleNode, is_legal, legal_choices, place, usable
from tests.properties.cases import Case, cases, cluster_of, job_of, nodes_of

EXAMPLES = examples(300)
NOT_OF_CHIPS = {
    Reason.CORDONED,
    Reason.QUARANTINED,
    Reason.NOT_WELL,
    Reason.NOT_SELECTED,
    Reason.TAINTED,
    Reason.REFUSED,
    Reason.TOO_FEW_RESOURCES,
    Reason.NO_TOPOLOGY,
    Reason.FAILED_BEFORE,
    Reason.OWN_POD,
    Reason.LEAF_CLOSED,
}
PER_POD = Settings(job_requests=JobRequests.PER_POD)


def decide_each(case: Case, settings: Settings = PER_POD) -> list[Decision]:
    session = Session(cluster_of(case.nodes), settings)
    return [session.decide(job_of(job, f"job-{i}")) for i, job in enumerate(case.jobs)]


def arrays(cluster: Cluster) -> list[bytes]:
    every = vars(cluster).values()
    return [value.tobytes() for value in every if isinstance(value, np.ndarray)]


def take(node: OracleNode, chips: tuple[int, ...]) -> OracleNode:
    return replace(node, free=node.free - frozenset(chips))


@settings(max_examples=EXAMPLES)
@given(cases(n_jobs=4))
def test_chips_are_free_healthy_wired_and_given_once(case: Case) -> None:
    state = {node.name: node for node in case.nodes}
    for job, decision in zip(case.jobs, decide_each(case), strict=True):
        if not isinstance(decision, Placed):
            continue
        for placement in decision.placements:
            node = state[placement.node]
            chips = frozenset(placement.chips)
            assert len(chips) == len(placement.chips) == job.chips
            assert chips <= usable(node, job)
            assert not chips & node.faulty
            assert node.ready
            assert node.product == job.product
            assert chips in set(legal_choices(node, job))
            state[placement.node] = take(node, placement.chips)


@settings(max_examples=EXAMPLES)
@given(cases(n_jobs=3))
def test_all_replicas_or_none_and_only_placed_jobs_hold_chips(case: Case) -> None:
    session = Session(cluster_of(case.nodes), PER_POD)
    for number, oracle_job in enumerate(case.jobs):
        job = job_of(oracle_job, f"job-{number}")
        before, version = arrays(session.cluster), session.cluster.version

        decision = session.decide(job)

        if isinstance(decision, Placed):
            replicas = [placement.replica for placement in decision.placements]
            assert replicas == list(range(job.replicas))
            assert len(session.cluster.holdings[job.name]) == job.replicas
            assert session.cluster.version == version + 1
        else:
            assert arrays(session.cluster) == before
            assert session.cluster.version == version
            assert job.name not in session.cluster.holdings


def test_the_choice_is_the_oracles() -> None:
    """The best node for each replica, the exact chips, and no job left waiting.

    On every product jobs are placed, and they wait for every reason there is.
    """
    seen: Counter[str] = Counter()

    def compare(case: Case) -> None:
        nodes = list(case.nodes)
        for job, decision in zip(case.jobs, decide_each(case), strict=True):
            seen.update(circumstances(nodes, job, decision))
            legal = is_legal(job, "per-pod")
            assert isinstance(decision, Invalid) != legal
            wanted = place(nodes, job) if legal else None
            if wanted is None:
                assert not isinstance(decision, Placed)
                continue
            assert isinstance(decision, Placed), decision
            assert [(p.node, p.chips) for p in decision.placements] == wanted
            for name, chips in wanted:
                nodes = [take(n, chips) if n.name == name else n for n in nodes]

    for key in PRODUCTS:
        of_product = given(cases(n_jobs=3, product=key))
        settings(max_examples=examples(80))(of_product(compare))()
    assert_reached(seen, *PRODUCTS, *REASONS, *CIRCUMSTANCES, times=5)
    assert_reached(seen, "Placed", times=150)
    assert_reached(seen, "Waiting", times=100)
    assert_reached(seen, "Invalid", times=40)


REASONS = tuple(reason for reason in Reason if reason not in NOT_OF_CHIPS)
CIRCUMSTANCES = (
    "several nodes",
    "several pods on a node",
    "beside faulty",
    "beside network-faulty",
    "some replicas fit",
)


def circumstances(
    before: Sequence[OracleNode], job: OracleJob, decision: Decision
) -> Iterator[str]:
    """What sort of decision this is, on nodes as they were before it."""
    yield type(decision).__name__
    if isinstance(decision, Placed):
        yield job.product
        hit = {p.node for p in decision.placements}
        nodes = [node for node in before if node.name in hit]
        heeds = request_of(job_of(job)).avoids_network_faults
        held = {
            "several nodes": len(hit) > 1,
            "several pods on a node": len(hit) < job.replicas,
            "beside faulty": any(n.faulty & n.free for n in nodes),
            "beside network-faulty": heeds
            and any(n.network_faulty & n.free for n in nodes),
        }
        yield from (name for name, holds in held.items() if holds)
    if isinstance(decision, Waiting):
        yield from decision.reasons
        if 0 < decision.missing < job.replicas:
            yield "some replicas fit"


@settings(max_examples=EXAMPLES)
@given(cases(n_jobs=2), st.randoms(use_true_random=False))
def test_the_answer_ignores_the_order_of_nodes(case: Case, random: Random) -> None:
    shuffled = list(case.nodes)
    random.shuffle(shuffled)

    assert decide_each(replace(case, nodes=tuple(shuffled))) == decide_each(case)


@settings(max_examples=EXAMPLES)
@given(cases(n_jobs=2))
def test_a_statement_rolls_back_and_forward_bit_by_bit(case: Case) -> None:
    cluster = cluster_of(case.nodes)
    session = Session(cluster_of(case.nodes), PER_POD)
    first, second = (
        session.decide(job_of(job, f"job-{i}")) for i, job in enumerate(case.jobs)
    )
    before, version = arrays(cluster), cluster.version

    def apply() -> tuple[Statement, list[bytes]]:
        statement = Statement(cluster)
        for decision in (first, second):
            for placement in getattr(decision, "placements", ()):
                mask = sum(1 << chip for chip in placement.chips)
                statement.allocate(
                    decision.job.name, cluster.index[placement.node], mask
                )
        if isinstance(first, Placed):
            statement.release(first.job.name)
        return statement, arrays(cluster)

    statement, applied = apply()
    statement.rollback()
    assert arrays(cluster) == before
    assert not cluster.holdings
    assert cluster.version == version
    statement, again = apply()
    assert again == applied
    statement.commit()
    statement.rollback()
    assert arrays(cluster) == applied


@settings(max_examples=EXAMPLES)
@given(cases(n_jobs=2))
def test_placing_and_releasing_leaves_the_cluster_as_it_was(case: Case) -> None:
    session = Session(cluster_of(case.nodes), PER_POD)
    first = job_of(case.jobs[0], "first")
    before = arrays(session.cluster)
    decided = session.decide(first)
    if not isinstance(decided, Placed):
        return
    second = session.decide(job_of(case.jobs[1], "second"))

    with Statement(session.cluster) as statement:
        statement.release("first")
        if isinstance(second, Placed):
            statement.release("second")
        statement.commit()

    assert arrays(session.cluster) == before
    assert session.decide(first) == decided


@settings(max_examples=EXAMPLES)
@given(cases())
def test_a_waiting_job_accounts_for_every_node_and_every_replica(case: Case) -> None:
    (job,) = case.jobs
    (decision,) = decide_each(case)
    if not isinstance(decision, Waiting):
        return

    assert decision.fitting + sum(decision.reasons.values()) == len(case.nodes)
    alone = replace(job, replicas=1)
    fits = [n for n in case.nodes if place([with_sight(n, job)], alone) is not None]
    assert decision.fitting == len(fits)
    most = max(
        (k for k in range(1, job.replicas) if held(case, job, k) is not None), default=0
    )
    assert decision.missing == job.replicas - most


def with_sight(node: OracleNode, job: OracleJob) -> OracleNode:
    """The node as one pod of *job* sees it, whatever the number of pods asked."""
    return replace(node, free=usable(node, job), network_faulty=frozenset())


def held(case: Case, job: OracleJob, replicas: int) -> object:
    nodes = [with_sight(node, job) for node in case.nodes]
    return place(nodes, replace(job, replicas=replicas))


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_a_free_node_more_never_turns_placed_into_waiting(data: st.DataObject) -> None:
    case = data.draw(cases())
    (job,) = case.jobs
    extra = data.draw(nodes_of(job.product, "extra"))
    (before,) = decide_each(case)

    (after,) = decide_each(replace(case, nodes=(*case.nodes, extra)))

    if isinstance(before, Placed):
        assert isinstance(after, Placed)


@settings(max_examples=EXAMPLES)
@given(cases())
def test_a_hint_names_a_job_that_would_be_placed(case: Case) -> None:
    (decision,) = decide_each(case)
    if not isinstance(decision, Waiting) or "would be placed now" not in decision.hint:
        return
    wanted = decision.hint.rpartition("; ")[2].split()
    smaller = replace_struct(
        decision.job, replicas=int(wanted[0]), chips=int(wanted[2])
    )

    session = Session(cluster_of(case.nodes), PER_POD)

    assert isinstance(session.decide(smaller), Placed)
