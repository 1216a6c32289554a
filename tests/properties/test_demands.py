"""Resources other than chips, under any sequence of jobs that come and go."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.decision import Placed
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job
from tests.effort import examples
from tests.leaves import A2

CPUS = st.sampled_from([0, 8, 16, 30, 64])
ASKED = st.sampled_from([0, 4, 8, 15, 32])
CHIPS = st.sampled_from([1, 2, 4, 8])
STEPS = st.lists(
    st.tuples(CHIPS, st.integers(1, 5), ASKED, st.booleans()), min_size=1, max_size=8
)


@settings(max_examples=examples(150))
@given(st.lists(CPUS, min_size=1, max_size=4), STEPS)
def test_resources_are_never_overdrawn_and_never_left_unused(
    cpus: list[int], steps: list[tuple[int, int, int, bool]]
) -> None:
    """Placed exactly when pods fit one by one, counted here with plain numbers."""
    cluster = Cluster(
        Node(f"n{i}", A2, 8, 0xFF, resources={"cpu": cpu}) for i, cpu in enumerate(cpus)
    )
    session = Session(cluster)
    running: list[str] = []
    for number, (chips, replicas, asked, ends) in enumerate(steps):
        room = [
            min(
                cluster.free.item(i).bit_count() // chips,
                left(cluster, cpus, i) // asked if asked else 8,
            )
            for i in range(len(cpus))
        ]
        demand = Demand(resources=(("cpu", asked),))
        job = Job(f"job-{number}", A2, chips, replicas, demand=demand)

        decision = session.decide(job)

        assert isinstance(decision, Placed) == (sum(room) >= replicas)
        if isinstance(decision, Placed):
            running.append(job.name)
        if ends and running:
            with Statement(cluster) as statement:
                statement.release(running.pop(0))
                statement.commit()
        for i in range(len(cpus)):
            assert (
                0
                <= cluster.node_table.resources.room_of(i, "cpu")
                == left(cluster, cpus, i)
            )


def left(cluster: Cluster, cpus: list[int], node: int) -> int:
    """What holdings leave of a node's CPUs."""
    used: Counter[int] = Counter()
    for holdings in cluster.holdings.values():
        for holding in holdings:
            used[holding.node] += dict(holding.demand.resources)["cpu"]
    return cpus[node] - used[node]
