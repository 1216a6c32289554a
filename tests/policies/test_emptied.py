"""Jobs that cannot start on a cluster, however empty it is."""

import pytest
from msgspec.structs import replace

from ringleaf.framework.session import Session
from ringleaf.model.cluster import Cluster, Node
from ringleaf.model.demand import Demand, Effect, Taint
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.settings import Settings
from ringleaf.policies.room import EmptyCluster
from tests.leaves import A2, A3, SINGLE, common, hold, large, leaves, superpods

CPU = Demand(resources=(("cpu", 4000),))


def words_of(
    cluster: Cluster, job: Job, settings: Settings | None = None
) -> str | None:
    """What is said of a job; None if it may start."""
    found = Session(cluster, settings).impossible(job)
    if found is None:
        return None
    return found.words.removeprefix("cannot start on this cluster, however empty")


def nodes(count: int, **changes: object) -> Cluster:
    return Cluster([Node(f"n{i}", A2, 8, 0xFF, **changes) for i in range(count)])  # type: ignore[arg-type]


FEW = ": its 2 nodes of atlas-800t-a2 have room for 2 of 3 pods"


@pytest.mark.parametrize(
    ("job", "words"),
    [
        pytest.param(Job("j", A2, 8, 2), None, id="as many pods as nodes"),
        pytest.param(Job("j", A2, 8, 3), FEW, id="a pod too many"),
        pytest.param(Job("j", A2, 4, 4), None, id="several pods on a node"),
        pytest.param(
            Job("j", A2, 4, 9, min_available=5),
            ": its 2 nodes of atlas-800t-a2 have room for 4 of 5 pods",
            id="more than it needs to start",
        ),
        pytest.param(Job("j", A2, 8, 9, min_available=2), None, id="elastic"),
        pytest.param(
            Job("j", A3, 16), ": it has no node of atlas-900-a3", id="another product"
        ),
        pytest.param(
            Job("j", A2, 8, demand=CPU),
            ": its 2 nodes of atlas-800t-a2 have room for no pod",
            id="resources",
        ),
        pytest.param(
            Job("j", A2, 0, demand=CPU), ": its 2 nodes have room for no pod", id="cpu"
        ),
        pytest.param(
            Job("j", A2, 8, 3, previous=Previous(())), None, id="one that ran before"
        ),
        pytest.param(common(3), None, id="no leaf is known"),
        pytest.param(Job("j", A2, 0, 0, podless=True), None, id="without pods"),
    ],
)
def test_pods_are_counted_on_nodes_that_are_empty(job: Job, words: str | None) -> None:
    cluster = nodes(2, resources={"cpu": 3000})
    hold(cluster, "other", "n0")

    assert words_of(cluster, job) == words


@pytest.mark.parametrize(
    "away",
    [
        {"ready": False},
        {"cordoned": True},
        {"faulty": 1},
        {"network_faulty": 1},
        {"sub_healthy": True},
        {"offers": 0},
        {"taints": (Taint("gone", Effect.NO_SCHEDULE),)},
    ],
    ids=lambda away: next(iter(away)),
)
def test_what_is_wrong_with_nodes_may_pass(away: dict[str, object]) -> None:
    cluster = nodes(2, **away)
    cluster.set_quarantined(0, on=True)

    assert words_of(cluster, Job("j", A2, 8, 2)) is None
    assert words_of(cluster, Job("j", A2, 8, 3)) == FEW


def roles(*given: Role, **changes: object) -> Job:
    job = Job("j", A2, 8, sum(r.replicas for r in given if r.chips), roles=given)
    return replace(job, **changes)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        pytest.param(roles(Role("m", 8), Role("w", 8)), None, id="enough"),
        pytest.param(
            roles(Role("m", 8), Role("w", 8, 3)),
            ": role 'w': its 2 nodes of atlas-800t-a2 have room for 2 of 3 pods",
            id="one role",
        ),
        pytest.param(
            roles(Role("m", 8), Role("w", 8, 2)),
            ": its 2 nodes of atlas-800t-a2 have 16 chips, its pods need 24",
            id="all together",
        ),
        pytest.param(
            roles(Role("m", 8), Role("w", 8, 2, min_available=1), min_available=2),
            None,
            id="elastic",
        ),
    ],
)
def test_pods_that_differ_are_counted_by_role_and_by_chips(
    job: Job, words: str | None
) -> None:
    assert words_of(nodes(2), job) == words


@pytest.mark.parametrize(
    ("cluster", "job", "settings", "never"),
    [
        pytest.param(leaves("A ##", "B ##"), large(2), None, False, id="padding"),
        pytest.param(leaves("A ##", "B ##"), large(3), None, True, id="too wide"),
        pytest.param(leaves("A .#", "B #."), large(2), None, False, id="taken"),
        pytest.param(leaves("A ##", "B ##"), common(3), SINGLE, True, id="one leaf"),
        pytest.param(superpods(3, 3), Job("j", A3, 16, 4), None, True, id="one block"),
        pytest.param(
            superpods(3, 3), Job("j", A3, 16, 4, sp_block=32), None, False, id="two"
        ),
        pytest.param(superpods(1), Job("j", A3, 16), None, False, id="one pod"),
    ],
)
def test_a_network_rule_is_tried_with_nothing_on_the_nodes(
    cluster: Cluster, job: Job, settings: Settings | None, *, never: bool
) -> None:
    assert words_of(cluster, job, settings) == ("" if never else None)


def test_what_other_jobs_do_with_leaves_passes() -> None:
    cluster = leaves("A ####", "B ####")
    hold(cluster, "other", "A0 B0")

    assert words_of(cluster, large(8)) is None


def test_it_is_kept_until_a_node_changes() -> None:
    cluster = nodes(1)
    session, job = Session(cluster), Job("j", A2, 8)
    assert session.impossible(job) is None
    assert session.impossible(replace(job, name="other")) is None

    cluster.change(0, Node("n0", A2, 8, 0xFF, resources={"cpu": 1}, lists_all=True))

    assert session.impossible(job) is None
    assert session.impossible(replace(job, demand=CPU)) is not None


def test_it_is_kept_for_as_many_requests_as_may_be_pending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pending jobs are looked at in turn: what is kept for some only is never met."""
    looked: list[str] = []

    def refusal(_empty: Cluster, job: Job, _settings: Settings) -> None:
        looked.append(job.name)

    monkeypatch.setattr("ringleaf.policies.room._refusal", refusal)
    empty = EmptyCluster(nodes(1), Settings())
    jobs = [
        Job(f"j{i}", A2, 8, demand=Demand(resources=(("cpu", 1 + i),)))
        for i in range(6_000)
    ]

    for _turn in range(2):
        for job in jobs:
            empty.refusal(job, job)

    assert len(looked) == len(jobs)


def test_the_cluster_itself_stays_as_it_is() -> None:
    cluster = leaves("A #.")
    hold(cluster, "other", "A0")
    before = cluster.free.tolist(), cluster.version, cluster.epoch

    Session(cluster).impossible(large(2))

    assert (cluster.free.tolist(), cluster.version, cluster.epoch) == before
    assert list(cluster.holdings) == ["other"]
