"""Shares of the cluster: jobs, and queues in a tree."""

import pytest

from ringleaf.framework.job_state import JobState
from ringleaf.framework.statement import Statement
from ringleaf.model.demand import Demand
from ringleaf.model.job import Role
from ringleaf.model.queue import Queue
from ringleaf.plugins.drf import is_no_more, share_of
from tests.plugins.stage import Stage, as_text, asks, pods

HIERARCHY = {
    "actions": "allocate",
    "tiers": [{"plugins": [{"name": "drf", "enableHierarchy": True}]}],
}


@pytest.mark.parametrize(
    ("amounts", "want"),
    [
        pytest.param({}, 0.0, id="nothing"),
        pytest.param({"cpu": 2, "chips": 1}, 0.25, id="the larger part: 2/8 over 1/16"),
        pytest.param({"cpu": 1, "chips": 8}, 0.5, id="the larger part: 8/16 over 1/8"),
        pytest.param({"disk": 99}, 0.0, id="what is not counted has no share"),
        pytest.param({"gpu": 1}, 0.0, id="nor what the cluster has none of"),
    ],
)
def test_the_share_is_the_largest_part_of_any_resource(
    amounts: dict[str, int], want: float
) -> None:
    assert share_of(amounts, {"cpu": 8, "chips": 16, "gpu": 0}) == want


def test_the_smaller_share_goes_first() -> None:
    stage = Stage(resources={"cpu": 4000})
    jobs = [
        stage.runs("chips", "0 1", replicas=3),
        stage.runs("cpu", "2", chips=1, demand=asks(cpu=4000)),
        stage.waits("none"),
    ]
    votes = stage.votes("drf")

    found = [s.job.name for s in sorted(jobs, key=votes.job_key)]
    assert [votes.job_key(job)[0] for job in jobs] == [0.5, 0.25, 0.0]
    assert found == ["none", "cpu", "chips"]


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        pytest.param(0.1, 0.2, True, id="less"),
        pytest.param(0.2, 0.2 - 9e-7, True, id="equal to a millionth"),
        pytest.param(0.2, 0.2 - 2e-6, False, id="more"),
    ],
)
def test_shares_compare_to_a_millionth(
    one: float,
    other: float,
    want: bool,  # noqa: FBT001
) -> None:
    assert is_no_more(one, other) is want


@pytest.mark.parametrize(
    ("evictor", "want"),
    [
        pytest.param(1, "a3 a2 a1", id="1/4 against 3/4, 2/4 and 1/4: equal is enough"),
        pytest.param(2, "a3 a2", id="2/4 against 3/4 and 2/4"),
        pytest.param(3, "a3", id="3/4 against 3/4"),
        pytest.param(4, "", id="4/4 is more than what would be left"),
    ],
)
def test_victims_have_no_less_without_them_than_the_evictor_with_its_pods(
    evictor: int, want: str
) -> None:
    """Job a has all four nodes; the evictor asks for some of them."""
    stage = Stage()
    stage.runs("a", "0 1 2 3")
    job_state = stage.waits("j", replicas=evictor)

    found = stage.votes("drf").preemptable(job_state, pods("a3 a2 a1 a0"))
    assert as_text(found) == want


def once_placed(job_state: JobState, stage: Stage) -> str:
    """Whose pods may go, of a job that has a half: tells the evictor's share."""
    return as_text(stage.votes("drf").preemptable(job_state, pods("a3 a2 a1 a0")))


def test_what_the_evictor_has_counts_with_what_it_still_needs() -> None:
    stage = Stage(nodes=8)
    stage.runs("a", "0 1 2 3")
    job_state = stage.runs("j", "4", replicas=3, min_available=3)

    assert once_placed(job_state, stage) == "a3"


def test_what_the_evictor_has_beyond_its_needs_counts_too() -> None:
    """It has 2 of 8 parts of the CPU for pods that help, and needs 1 of 8 nodes."""
    stage = Stage(nodes=8, resources={"cpu": 1000})
    stage.runs("a", "0 1 2 3")
    roles = Role("work", 8), Role("help", 0, 2, demand=asks(cpu=1000))
    job_state = stage.waits("j", replicas=1, roles=roles, min_available=1)
    with Statement(stage.cluster) as statement:
        statement.hold("j", 4, 0, 1, demand=asks(cpu=1000))
        statement.hold("j", 5, 0, 2, demand=asks(cpu=1000))
        statement.commit()

    assert once_placed(job_state, stage) == "a3 a2"


def test_an_evictor_that_has_its_gang_evicts_for_one_more_pod() -> None:
    stage = Stage(nodes=8)
    stage.runs("a", "0 1 2 3")
    job_state = stage.runs("j", "4", replicas=3, min_available=1)

    assert once_placed(job_state, stage) == "a3 a2"


def test_the_next_pod_is_of_a_role_that_lacks_one() -> None:
    stage = Stage(nodes=8)
    stage.runs("a", "0 1 2 3")
    roles = Role("work", 8), Role("help", 1, 2)
    job_state = stage.runs("j", "4", replicas=1, roles=roles, min_available=1)

    # 9 of 64 chips, against 24, 16, 8 and 0 that would be left.
    assert once_placed(job_state, stage) == "a3 a2"


def test_an_evictor_that_lacks_nothing_has_what_it_has() -> None:
    stage = Stage(nodes=8)
    stage.runs("a", "0 1 2 3")
    job_state = stage.runs("j", "4")

    assert once_placed(job_state, stage) == "a3 a2 a1"


def tree(*rows: str) -> list[Queue]:
    """``"name root/a/b 1/2/3"``: queues with their place in the tree."""
    return [
        Queue(name, hierarchy=place, hierarchy_weights=weights)
        for name, place, weights in (row.split() for row in rows)
    ]


def order(stage: Stage) -> str:
    """The queues as hierarchical shares order them."""
    votes = stage.voting(HIERARCHY)
    queues = sorted(stage.view.queues.values(), key=votes.queue_key)
    return " ".join(queue.name for queue in queues if queue.name != "default")


def test_without_the_flag_drf_has_no_say_between_queues() -> None:
    stage = Stage(queues=tree("q root/q 1/1"))
    stage.runs("a", "0", queue="q")
    votes = stage.votes("drf")

    assert votes.queue_key(stage.view.queues["q"]) == ("q",)
    assert votes.reclaimable(stage.waits("j"), pods("a0")) == []


@pytest.mark.parametrize(
    ("queues", "want"),
    [
        pytest.param(
            ["p root/p 1/1", "q root/q 1/1"], "q p", id="2/4 of p over 1/4 of q"
        ),
        pytest.param(
            ["p root/p 1/4", "q root/q 1/1"],
            "p q",
            id="weight 4: (2/4) / 4 of p under (1/4) / 1 of q",
        ),
        pytest.param(
            ["p root/a/p 1/4/1", "q root/b/q 1/1/9"],
            "p q",
            id="the first fork decides, whatever is further out",
        ),
        pytest.param(
            ["p root/a/p 1/1/4", "q root/a/q 1/1/1"],
            "p q",
            id="on one branch the next fork decides",
        ),
        pytest.param(
            ["p root/p 1/0.5", "q root/q 1"], "q p", id="a weight is at least 1"
        ),
        pytest.param(
            ["p root/p 1/heavy", "q root/q 1/1"], "q p", id="what is no number is 1"
        ),
    ],
)
def test_the_branch_with_less_for_its_weight_goes_first(
    queues: list[str], want: str
) -> None:
    """P uses two of four nodes, q uses one; both want more."""
    stage = Stage(queues=tree(*queues))
    stage.runs("a", "0 1", queue="p", replicas=4)
    stage.runs("b", "2", queue="q", replicas=4)

    assert order(stage) == want


def test_a_branch_that_has_all_it_asks_goes_last() -> None:
    stage = Stage(queues=tree("p root/p 1/1", "q root/q 1/1"))
    stage.runs("a", "0", queue="p")
    stage.runs("b", "1 2", queue="q", replicas=4)

    assert order(stage) == "q p"


def test_a_branch_that_asks_what_is_used_up_goes_last() -> None:
    """Both chips and CPU are wanted by p; the CPU is gone."""
    stage = Stage(queues=tree("p root/p 1/1", "q root/q 1/1"), resources={"cpu": 1000})
    stage.runs("a", "0 1 2 3", chips=1, queue="q", replicas=9, demand=asks(cpu=1000))
    stage.runs("b", "0 1", chips=6, queue="q", replicas=4)
    stage.waits("c", queue="p", demand=asks(cpu=1))

    assert order(stage) == "q p"


def test_a_queue_without_jobs_goes_last() -> None:
    stage = Stage(queues=tree("p root/p 1/1", "q root/q 1/1"))
    stage.runs("b", "1 2", queue="q", replicas=4)

    assert order(stage) == "q p"


def test_branches_that_want_more_are_scaled_to_the_least_of_them() -> None:
    """Below p one job has 2/8, in chips, and the other 1/8, in CPU.

    The first counts half, which with the one chip of the other is 9 of 64 chips. So p
    goes before q with 12, though it uses 17.
    """
    stage = Stage(
        nodes=8, queues=tree("p root/p 1/1", "q root/q 1/1"), resources={"cpu": 1000}
    )
    stage.runs("a", "0 1", queue="p", replicas=8)
    stage.runs("b", "2", chips=1, queue="p", replicas=8, demand=asks(cpu=1000))
    stage.runs("c", "3 4 5", chips=4, queue="q", replicas=8)
    votes = stage.voting(HIERARCHY)
    p, q = (votes.queue_key(stage.view.queues[name])[0][0][1] for name in "pq")

    assert (p, q) == ((8 + 1) / 64, 12 / 64)


def test_a_queue_outside_the_tree_is_a_branch_of_its_own() -> None:
    stage = Stage(queues=[*tree("p root/p 1/1"), Queue("q")])
    stage.runs("a", "0 1", queue="p", replicas=4)
    stage.runs("b", "2", queue="q", replicas=4)

    assert order(stage) == "q p"


def test_the_order_follows_what_pods_use() -> None:
    stage = Stage(queues=tree("p root/p 1/1", "q root/q 1/1"))
    stage.runs("a", "0", queue="p", replicas=4)
    votes = stage.voting(HIERARCHY)
    queues = [stage.view.queues[name] for name in "pq"]
    assert min(queues, key=votes.queue_key).name == "p"

    stage.runs("b", "", queue="q", replicas=4)
    assert min(queues, key=votes.queue_key).name == "q"


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        pytest.param(1, "a2 a1 a0", id="1/4 against the 2/4 that stay"),
        pytest.param(2, "", id="2/4 are not less than the 2/4 that stay"),
    ],
)
def test_queues_give_back_while_they_stay_behind_the_evictors(
    asked: int, want: str
) -> None:
    """P has three of four nodes; each victim is looked at by itself."""
    stage = Stage(queues=tree("p root/p 1/1", "q root/q 1/1"))
    stage.runs("a", "0 1 2", queue="p", replicas=4)
    job_state = stage.waits("j", queue="q", replicas=asked, min_available=None)
    stage.waits("more", queue="q", replicas=4)

    found = stage.voting(HIERARCHY).reclaimable(job_state, pods("a2 a1 a0"))
    assert as_text(found) == want


def test_jobs_of_a_queue_that_is_gone_are_on_a_branch_of_their_own() -> None:
    stage = Stage(queues=tree("q root/q 1/1"))
    stage.runs("a", "0 1 2", queue="gone", replicas=4)
    job_state = stage.waits("j", queue="q", replicas=1)
    stage.waits("more", queue="q", replicas=4)

    found = stage.voting(HIERARCHY).reclaimable(job_state, pods("a2"))
    assert as_text(found) == "a2"


def test_a_job_that_asks_for_nothing_is_never_sated() -> None:
    stage = Stage(queues=tree("p root/p 1/1", "q root/q 1/1"))
    stage.waits("a", chips=0, queue="p", demand=Demand())
    stage.runs("b", "0", queue="q", replicas=4)

    assert order(stage) == "p q"


def test_quotas_of_pods_that_are_not_made_yet_sate_no_branch() -> None:
    stage = Stage(queues=tree("p root/p 1/1", "q root/q 1/1"), lists_all=True)
    stage.runs("b", "0 1", queue="q", replicas=4)
    stage.waits("k", chips=0, queue="p", podless=True, demand=asks(quota=1))

    assert order(stage) == "p q"


def test_a_branch_that_asks_what_no_node_names_goes_last() -> None:
    for lists_all, want in ((True, "q p"), (False, "p q")):
        queues = tree("p root/p 1/1", "q root/q 1/1")
        stage = Stage(queues=queues, lists_all=lists_all)
        stage.runs("b", "0 1", queue="q", replicas=4)
        stage.waits("c", queue="p", demand=asks(made_up=1))

        assert order(stage) == want
