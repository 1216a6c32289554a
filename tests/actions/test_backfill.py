"""Backfill: jobs whose pods ask for nothing. One test a sentence of Volcano's."""

from typing import Any

from ringleaf.engine.event import ConfChanged, JobGone, NodesChanged, QueueGone
from ringleaf.model.demand import Demand, Operator, Requirement
from ringleaf.model.job import Job, Role
from tests.engine.story import Story, conf, job, node, queue

NOTHING = Demand()


def best_effort(
    name: str,
    pods: int = 1,
    demand: Demand = NOTHING,
    **changes: Any,  # noqa: ANN401
) -> Job:
    """A job whose pods ask for nothing."""
    roles = (Role("helper", 0, pods, demand=demand),)
    return job(name, 0, 0, roles=roles, **changes)


def test_pods_that_ask_for_nothing_are_placed_though_nothing_is_free() -> None:
    story = Story("a")
    story.arrives(job("all"))

    assert story.arrives(best_effort("m", 2), now=1) == ["bind m: 0 on a, 1 on a"]


def test_quotas_of_queues_are_ignored() -> None:
    story = Story("a", queues=[queue("q", 0)])

    assert story.arrives(best_effort("m", queue="q")) == ["bind m: 0 on a"]


def test_only_admitted_jobs_are_placed() -> None:
    """Of non-Pending jobs."""
    story = Story("a", queues=[queue("q", is_open=False)])

    assert story.arrives(best_effort("m", queue="q"))[0] == "waiting m"


def test_without_the_action_best_effort_jobs_wait() -> None:
    story = Story("a", conf=conf("enqueue, allocate"))
    story.arrives(best_effort("m"))

    assert story.running == {}


def test_nodes_are_chosen_by_predicate() -> None:
    wants = Demand(required=(Requirement("x", Operator.EXISTS),))
    story = Story([node("a"), node("b", labels={"x": "1"})])

    assert story.arrives(best_effort("m", demand=wants)) == ["bind m: 0 on b"]


def test_a_job_without_a_node_gets_a_reason_and_starts_when_one_comes() -> None:
    story = Story([node("a", cordoned=True)])

    assert story.arrives(best_effort("m"))[0] == "waiting m"
    assert story.hears(NodesChanged((node("a"),)), now=1) == ["bind m: 0 on a"]


def test_all_pods_of_a_job_or_none() -> None:
    story = Story("a")

    assert story.arrives(best_effort("m", 3, min_available=3)) == [
        "bind m: 0 on a, 1 on a, 2 on a"
    ]
    assert story.hears(JobGone("m"), now=1) == []
    assert story.running == {}


def test_a_queue_that_is_gone_starts_no_job() -> None:
    story = Story("a", queues=[queue("q")], conf=conf("allocate"))
    story.arrives(best_effort("m", queue="q"))
    story.hears(QueueGone("q"))

    story.hears(ConfChanged(conf("allocate, backfill")), now=1)

    assert story.running == {}
