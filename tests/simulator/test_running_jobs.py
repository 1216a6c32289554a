"""What running jobs and jobs of before say of the leaves."""

import json

import pytest

from ringleaf.model.cluster import Cluster
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState
from ringleaf.simulator.scenario import Scenario, load

NODES = """
settings: {nslb-version: "2.0", nodes-per-leaf: 4}
nodes:
  - {name: "a{i}", count: 4, product: atlas-800t-a2, leaf: A}
  - {name: "b{i}", count: 4, product: atlas-800t-a2, leaf: B}
  - {name: "c{i}", count: 4, product: atlas-800t-a2, leaf: C}
  - {name: "d{i}", count: 4, product: atlas-800t-a2, leaf: D}
  - {name: x, product: atlas-800t-a2}
"""


def one(text: str) -> Scenario:
    (scenario,) = load(text.encode())
    return scenario


def running(name: str, nodes: str, label: str = "normal-schema", says: str = "") -> str:
    """A running job of whole nodes; *says* is written on every pod."""
    annotations = f", annotations: {{{says}}}" if says else ""
    placements = ", ".join(
        f"{{replica: {i}, node: {node}, chips: [0, 1, 2, 3, 4, 5, 6, 7]{annotations}}}"
        for i, node in enumerate(nodes.split())
    )
    count = len(nodes.split())
    return (
        f"  - {{name: {name}, chips: 8, replicas: {count}, tor-affinity: {label}, "
        f"placements: [{placements}]}}\n"
    )


def opened(*jobs: str, more: str = "") -> Cluster:
    return one(f"{NODES}{more}\nrunning:\n{''.join(jobs)}").open().cluster


def states(cluster: Cluster) -> str:
    """The state of every leaf: i, s or x, and a ! where it is unhealthy."""
    letters = ("isx"[state] for state in cluster.uplinks.state.tolist())
    sick = ("!" * bool(each) for each in cluster.uplinks.unhealthy.tolist())
    return " ".join(a + b for a, b in zip(letters, sick, strict=True))


def test_a_job_inside_one_leaf_leaves_it_idle() -> None:
    assert states(opened(running("r", "a0 a1"))) == "i i i i"


def test_one_job_that_crosses_makes_leaves_exclusive() -> None:
    assert states(opened(running("r", "a0 b0"))) == "x x i i"


def test_two_make_the_leaf_shared() -> None:
    jobs = running("r", "a0 b0"), running("s", "b1 c0")

    assert states(opened(*jobs)) == "x s x i"


def test_a_job_over_its_budget_makes_its_shared_leaves_unhealthy() -> None:
    jobs = (
        running("r", "a0 b0 c0"),
        running("s", "a1 b1"),
        running("t", "c1 d0"),
    )

    assert states(opened(*jobs)) == "s! s! s! x"


def test_the_budget_is_a_setting() -> None:
    jobs = running("r", "a0 b0"), running("s", "a1 b1")
    text = NODES.replace("nodes-per-leaf", "shared-tor-num: 1, nodes-per-leaf")

    found = one(f"{text}\nrunning:\n{''.join(jobs)}").open().cluster

    assert states(found) == "s! s! i i"


def test_a_job_without_a_label_says_nothing_but_crosses() -> None:
    found = opened(running("r", "a0 b0", label="null"))

    assert states(found) == "i i i i"
    assert found.uplinks.crossing.tolist() == [1, 1, 0, 0]


def test_a_pod_outside_every_leaf_makes_the_job_cross() -> None:
    found = opened(running("r", "a0 x"))

    assert states(found) == "x i i i"
    assert found.uplinks.crossing.tolist() == [1, 0, 0, 0]


def test_annotations_say_it_better_than_placements() -> None:
    says = 'isSharedTor: "1", isHealthy: "1"'

    assert states(opened(running("r", "a0 b0", says=says))) == "s! s! i i"
    assert states(opened(running("r", "a0 b0", says='isSharedTor: "0"'))) == "i i i i"
    assert states(opened(running("r", "a0", says='isHealthy: "1"'))) == "i! i i i"


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("{state: idle}", "i x i i"),
        ("{state: shared}", "s x i i"),
        ("{healthy: false}", "x! x i i"),
        ("{state: shared, healthy: false}", "s! x i i"),
        ("{address: 10.0.0.1}", "x x i i"),
        ("{cross-leaf-jobs: [normal-schema]}", "x x i i"),
    ],
)
def test_an_entry_under_leaves_wins_where_it_says_something(
    entry: str, found: str
) -> None:
    more = f"leaves: {{A: {entry}}}"

    assert states(opened(running("r", "a0 b0"), more=more)) == found


def test_a_healthy_leaf_wins_over_pods_that_say_otherwise() -> None:
    says = 'isSharedTor: "1", isHealthy: "1"'
    job = running("r", "a0 b0", says=says)

    assert states(opened(job, more="leaves: {A: {healthy: true}}")) == "s s! i i"


def test_types_follow_from_label_and_replicas() -> None:
    found = opened(running("r", "a0 a1 b0 b1", label="large-model-schema"))

    assert found.uplinks.foundation.tolist() == [1, 1, 0, 0]
    assert found.uplinks.uncommon.tolist() == [1, 1, 0, 0]
    assert {h.mark.job_type for h in found.holdings["r"]} == {JobType.FOUNDATION}


PREVIOUS = """
jobs:
  - name: j
    chips: 8
    replicas: 2
    tor-affinity: normal-schema
    previous:
      placements:
        - {replica: 0, node: a0, chips: [0, 1, 2, 3, 4, 5, 6, 7]%s}
        - {replica: 1, node: b0, chips: [0, 1, 2, 3, 4, 5, 6, 7]}
"""


def marks(text: str) -> list[LeafAnnotation | None]:
    (job,) = one(text).jobs
    assert job.previous is not None
    return [placement.mark for placement in job.previous.placements]


def test_pods_of_before_that_still_run_hold_their_chips() -> None:
    cluster = one(NODES + PREVIOUS % "").open().cluster

    assert [h.node for h in cluster.holdings["j"]] == [0, 4]
    assert states(cluster) == "x x i i"


def test_pods_that_were_deleted_hold_nothing() -> None:
    text = PREVIOUS % "" + "      keep: job\n"

    cluster = one(NODES + text).open().cluster

    assert cluster.holdings == {}
    assert states(cluster) == "i i i i"


def test_what_they_say_is_implied_beside_the_running_jobs() -> None:
    job = "running:\n" + running("r", "b1 c1")

    found = marks(NODES + job + PREVIOUS % "")

    exclusive = LeafAnnotation(JobType.COMMON, LeafState.EXCLUSIVE)
    assert found == [exclusive, LeafAnnotation(JobType.COMMON, LeafState.SHARED)]


def test_an_entry_is_believed_where_nothing_is_written() -> None:
    entries = "leaves: {A: {state: shared, healthy: false}, B: {state: idle}}"

    found = marks(NODES + entries + PREVIOUS % "")

    sick = LeafAnnotation(JobType.COMMON, LeafState.SHARED, healthy=False)
    assert found == [sick, LeafAnnotation(JobType.COMMON, LeafState.EXCLUSIVE)]


def test_what_is_written_on_pods_of_before_stands() -> None:
    entries = "leaves: {A: {state: idle}}"
    written = ', annotations: {isSharedTor: "1"}'

    assert marks(NODES + entries + PREVIOUS % written)[0] == LeafAnnotation(
        JobType.COMMON, LeafState.SHARED
    )


def test_the_rank_that_is_written_on_a_pod_is_its_replica() -> None:
    text = PREVIOUS.replace("replica: 1", "replica: 5") % (
        ', annotations: {hccl/rankIndex: "1", super-pod-rank: "3"}'
    )
    text = text.replace("replica: 5", "replica: 0")

    (job,) = one(NODES + text).jobs

    assert job.previous is not None
    assert [(p.replica, p.node, p.block) for p in job.previous.placements] == [
        (1, "a0", 3),
        (0, "b0", None),
    ]


def test_an_illegal_job_keeps_what_it_held() -> None:
    text = (PREVIOUS % "").replace("chips: 8", "chips: 99")

    cluster = one(NODES + text).open().cluster

    assert len(cluster.holdings["j"]) == 2


LARGE_SUPERPOD = """
settings: {super-pod-size: 3, reserve-nodes: 1}
nodes: [{name: 'a{i}', count: 4, product: atlas-900-a3, superpod: 7}]
"""


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "nodes: [{name: a, product: atlas-800t-a2, slot: 3}]",
            "nodes[0].slot has no effect without a leaf",
        ),
        (
            "nodes: [{name: a, product: atlas-800t-a2}]\nleaves: {Z: {}}",
            "leaves has 'Z', under which there is no node",
        ),
        (
            LARGE_SUPERPOD,
            "SuperPoD 7 has 4 nodes, more than super-pod-size 3: all of them are used",
        ),
    ],
    ids=["a slot", "a leaf", "a SuperPoD"],
)
def test_what_looks_wrong_is_warned_of(text: str, warning: str) -> None:
    assert one(text).warnings == (warning,)


def test_json_is_read_alike() -> None:
    nodes = [{"name": "a", "product": "atlas-800t-a2", "leaf": "A"}]

    assert one(json.dumps({"nodes": nodes})).nodes[0].leaf == "A"
