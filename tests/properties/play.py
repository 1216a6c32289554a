"""A session and the oracle's world, kept in step."""

from dataclasses import dataclass

import numpy as np

from ringleaf.framework.session import Session
from ringleaf.framework.statement import Statement
from ringleaf.model.cluster import Cluster
from ringleaf.model.decision import Decision, Placed
from ringleaf.model.job import Job
from tests.network_oracle import (
    EXCLUSIVE,
    IDLE,
    NetJob,
    Pod,
    World,
    crossers,
    crossing_kinds,
    leaf_states,
    with_pods,
    without_job,
)
from tests.properties.network_cases import Case, scenario

Counts = list[tuple[str, int, int, int]]


@dataclass
class Play:
    """Decides jobs; the world learns what came of them."""

    session: Session
    jobs: dict[str, Job]
    world: World

    def decide(self, job: NetJob) -> Decision:
        decision = self.session.decide(self.jobs[job.name])
        if isinstance(decision, Placed):
            self.world = with_pods(self.world, pods_of(job, decision))
        return decision

    def end(self, job: NetJob | None) -> None:
        """The job ends, if it was placed and has not ended."""
        if job is None or job.name not in self.session.cluster.holdings:
            return
        with Statement(self.session.cluster) as statement:
            statement.release(job.name)
            statement.commit()
        self.world = without_job(self.world, job.name)


def play(case: Case) -> Play:
    opened = scenario(case)
    return Play(opened.open(), {job.name: job for job in opened.jobs}, case.world)


def pods_of(job: NetJob, placed: Placed) -> list[Pod]:
    """The pods of a decision, with what is written on them."""
    return [
        Pod(job, p.replica, p.node, p.chips)
        if p.mark is None
        else Pod(job, p.replica, p.node, p.chips, int(p.mark.state), p.mark.healthy)
        for p in placed.placements
    ]


def arrays(cluster: Cluster) -> dict[str, bytes]:
    """Every array of the cluster and of its spine, bit by bit."""
    spine = cluster.uplinks
    every = vars(cluster) | {
        f"spine {key}": value for key, value in vars(spine).items()
    }
    kept = {k: v.tobytes() for k, v in every.items() if isinstance(v, np.ndarray)}
    return kept | {"state": spine.state.tobytes(), "sick": spine.unhealthy.tobytes()}


def spine_of(cluster: Cluster) -> tuple[Counts, dict[str, tuple[int, bool]]]:
    """What the cluster keeps of every leaf: counts, then state and health."""
    spine, names = cluster.uplinks, [leaf.name for leaf in cluster.leaves]
    counts = (spine.crossing, spine.foundation, spine.uncommon)
    rows = zip(names, *(count.tolist() for count in counts), strict=True)
    states = zip(spine.state.tolist(), (~spine.unhealthy).tolist(), strict=True)
    return list(rows), dict(zip(names, states, strict=True))


def spine_from_scratch(
    world: World,
) -> tuple[Counts, dict[str, tuple[int, bool]]]:
    """The same, counted over the pods."""
    rows = []
    for leaf in world.leaves:
        kinds = crossing_kinds(world, leaf)
        here = {p.job.name: p.job.kind for p in world.pods
                if world.spot(p.node).leaf == leaf}  # fmt: skip
        noted = world.note(leaf).crossed_by.count("large-model-schema")
        uncommon = noted + sum(kind != "common" for kind in here.values())
        rows.append((leaf, len(kinds), kinds.count("foundation"), uncommon))
    states = leaf_states(world)
    if world.mode != "2.0":
        states = {leaf: (only_exclusive(world, leaf), True) for leaf in world.leaves}
    return rows, states


def only_exclusive(world: World, leaf: str) -> int:
    """1.0 and single layer: what a labelled job that crosses says (D13)."""
    labelled = any(job.kind for job in crossers(world, leaf))
    return EXCLUSIVE if labelled else IDLE
