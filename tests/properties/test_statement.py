"""Transactions nest: an outer rollback takes back what inner statements committed."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import Demand
from ringleaf.model.placement import NO_MARK, JobType, LeafAnnotation, LeafState
from ringleaf.policies.products import PRODUCTS
from tests.effort import assert_reached, examples

A2 = PRODUCTS["atlas-800t-a2"]
NODES, JOBS = 3, ("a", "b", "c")


class Hold(Struct, frozen=True):
    """A pod of *job* holds what is free of *chips*."""

    job: str
    node: int
    chips: int
    mark: LeafAnnotation


class Release(Struct, frozen=True):
    """All pods of *job*, or those on even replicas, hold nothing any more."""

    job: str
    half: bool


class Nested(Struct, frozen=True):
    """Steps in a statement of their own."""

    steps: tuple[Any, ...]
    commits: bool


leaves_of_a_tree = st.one_of(
    st.builds(
        Hold,
        st.sampled_from(JOBS),
        st.integers(0, NODES - 1),
        st.integers(1, 255),
        st.sampled_from([NO_MARK, LeafAnnotation(JobType.COMMON, LeafState.SHARED)]),
    ),
    st.builds(Release, st.sampled_from(JOBS), st.booleans()),
)
trees = st.recursive(
    leaves_of_a_tree,
    lambda inner: st.builds(
        Nested, st.lists(inner, max_size=4).map(tuple), st.booleans()
    ),
    max_leaves=12,
)


def state(cluster: Cluster) -> tuple[Any, ...]:
    """All that a statement writes."""
    spine = cluster.uplinks
    return (
        cluster.free.tolist(),
        cluster.taken.tolist(),
        {job: list(held) for job, held in cluster.holdings.items()},
        spine.crossing.tolist(),
        spine.uncommon.tolist(),
        spine.state.tolist(),
        cluster.node_table.resources.room.tolist(),
    )


def play(cluster: Cluster, statement: Statement, step: Any) -> None:  # noqa: ANN401
    """Do *step*; what a statement leaves behind is what it committed."""
    match step:
        case Hold(job, node, chips, mark):
            chips &= cluster.free.item(node)
            replica = len(cluster.holdings.get(job, ()))
            demand = Demand(resources=(("cpu", 1),))
            statement.hold(job, node, chips, replica, mark, demand=demand)
        case Release(job, half) if job in cluster.holdings:
            replicas = {held.replica for held in cluster.holdings[job]}
            statement.release_pods(job, {n for n in replicas if not (half and n % 2)})
        case Nested(steps, commits):
            before = state(cluster)
            with Statement(cluster) as inner:
                for each in steps:
                    play(cluster, inner, each)
                kept = state(cluster)
                if commits:
                    inner.commit()
            assert state(cluster) == (kept if commits else before)


def depth_of(step: Any) -> int:  # noqa: ANN401
    if not isinstance(step, Nested):
        return 0
    return 1 + max(map(depth_of, step.steps), default=0)


def cases_of(steps: Sequence[Any], *, outer: bool) -> Counter[str]:
    """What is worth reaching in a tree."""
    seen: Counter[str] = Counter()
    for step in steps:
        if isinstance(step, Nested):
            seen["committed inside" if step.commits else "taken back inside"] += 1
            if step.commits and not outer and step.steps:
                seen["committed inside, taken back outside"] += 1
            seen += cases_of(step.steps, outer=outer and step.commits)
    return seen


def test_what_inner_statements_commit_is_part_of_the_outer_one() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples(800))
    @given(steps=st.lists(trees, min_size=1, max_size=5), commits=st.booleans())
    def nest(*, steps: list[Any], commits: bool) -> None:
        nodes = [
            Node(f"n{i}", A2, 8, 0xFF, leaf=f"l{i % 2}", slot=i, resources={"cpu": 64})
            for i in range(NODES)
        ]
        cluster = Cluster(nodes)
        before = state(cluster)
        with Statement(cluster) as statement:
            for step in steps:
                play(cluster, statement, step)
            kept = state(cluster)
            assert cluster.version == 0
            if commits:
                statement.commit()
        assert state(cluster) == (kept if commits else before)
        if kept != before:
            assert cluster.version == commits
        seen.update(cases_of(steps, outer=commits))
        seen[f"depth {max(map(depth_of, steps))}"] += 1

    nest()
    assert_reached(
        seen,
        "committed inside",
        "taken back inside",
        "committed inside, taken back outside",
        "depth 2",
        "depth 3",
        times=5,
    )
