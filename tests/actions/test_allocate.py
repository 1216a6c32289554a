"""Allocate: which jobs start, and in which order. One test a sentence of Volcano's."""

import pytest

from ringleaf.actions.allocate import attempt
from ringleaf.engine.event import JobGone, PodsGone, QueueChanged
from ringleaf.framework import placer
from ringleaf.framework.instruction import Report
from ringleaf.framework.job_state import Phase
from ringleaf.model.cluster import Node
from ringleaf.model.demand import Demand, Operator, Requirement
from ringleaf.model.job import Job, Role
from ringleaf.model.queue import Queue
from tests.engine.story import NPU, TIERS, Story, conf, job, node, queue

ALLOCATE = conf("allocate")

FIRST = [
    pytest.param(
        (job("b"), job("a", priority=1)),
        "a",
        id="in a queue the job with the higher priority goes first",
    ),
    pytest.param(
        (job("a", created=1.0), job("b", created=2.0)), "a", id="then the older one"
    ),
    pytest.param((job("b"), job("a")), "b", id="then the one that came first"),
]


@pytest.mark.parametrize(("jobs", "first"), FIRST)
def test_the_order_of_jobs(jobs: list[Job], first: str) -> None:
    story = Story("A", conf=ALLOCATE)
    story.arrives(job("old"))
    story.arrives(*jobs, now=1)

    story.hears(JobGone("old"), now=2)

    assert story.running == {first: [0]}


QUEUES = [
    pytest.param(
        (Queue("p"), Queue("q", priority=1)), "qp", id="the higher priority goes first"
    ),
    pytest.param(
        (Queue("p"), Queue("q", weight=9)), "pq", id="what it uses counts, not its part"
    ),
    pytest.param((Queue("q"), Queue("p")), "pq", id="then the name"),
]


@pytest.mark.parametrize(("queues", "order"), QUEUES)
def test_the_order_of_queues(queues: list[Queue], order: str) -> None:
    story = Story("A", queues=queues, conf=ALLOCATE)

    said = story.arrives(job("q", 4, queue="q"), job("p", 4, queue="p"))

    assert [line.split(":")[0] for line in said] == [f"bind {name}" for name in order]


def test_the_queue_that_uses_less_of_its_part_goes_first() -> None:
    story = Story("A B", queues=[queue("p"), queue("q")], conf=ALLOCATE)
    story.arrives(job("old", 4, queue="p"))

    said = story.arrives(job("p", 4, queue="p"), job("q", 4, queue="q"), now=1)

    assert [line.split(":")[0] for line in said] == ["bind q", "bind p"]


def test_the_order_of_queues_is_asked_anew_after_every_job() -> None:
    """Shares change: queues take turns."""
    story = Story("A B C D", queues=[queue("p"), queue("q")], conf=ALLOCATE)

    said = story.arrives(
        *(job(f"p{n}", queue="p") for n in range(2)),
        *(job(f"q{n}", queue="q") for n in range(2)),
    )

    assert [line.split(":")[0] for line in said] == [
        "bind p0",
        "bind q0",
        "bind p1",
        "bind q1",
    ]


def test_a_queue_that_uses_its_share_is_skipped() -> None:
    """Overused: the queue is dropped for this cycle."""
    story = Story("A B", queues=[queue("p"), queue("q")], conf=ALLOCATE)
    story.arrives(job("p0", queue="p"), job("q0", 8, 2, queue="q"))

    assert story.arrives(job("p1", 4, queue="p"), now=1)[0] == "waiting p1"
    (reported,) = story.messages
    assert reported == "job 'p1' waits: needs 1 x 4 chips; queue 'p' uses its share"


def test_the_first_pending_job_gets_a_reason_and_later_ones_are_behind_it() -> None:
    story = Story("A B", queues=[queue("p"), queue("q")], conf=ALLOCATE)
    story.arrives(job("p0", queue="p"), job("q0", 8, 2, queue="q"))

    story.arrives(job("p1", 4, queue="p"), job("p2", 2, queue="p"), now=1)

    reported = [
        (each.job, each.behind) for each in story.said if isinstance(each, Report)
    ]
    assert reported == [("p1", False), ("p2", True)]


def test_a_queue_takes_no_more_than_it_deserves() -> None:
    """Allocatable: allocated and asked are at most deserved."""
    story = Story("A B", queues=[queue("p"), queue("q")], conf=ALLOCATE)

    said = story.arrives(job("q0", 8, 2, queue="q"), job("p0", 4, queue="p"))

    assert said[0] == "bind p0: 0 on A 0123"
    assert "waiting q0" in said
    assert story.messages[-1].endswith(
        "queue 'q' has no room: 0 of 12 chips used, job wants 16"
    )


def test_what_a_queue_deserves_counts_only_in_what_is_asked() -> None:
    """Only on dimensions the task requests."""
    nodes = [node("A", resources={"cpu": 1000}), node("B", resources={"cpu": 1000})]
    cpu = Demand(resources=(("cpu", 2000),))
    story = Story(nodes, conf=ALLOCATE)
    story.arrives(job("greedy", 1, demand=cpu))
    assert story.running == {}

    assert story.arrives(job("j", 4), now=1) == ["bind j: 0 on A 0123"]


def test_all_pods_that_must_start_together_are_placed_or_none() -> None:
    """Neither ready nor pipelined: the statement is discarded."""
    story = Story("A B", conf=ALLOCATE)
    story.arrives(job("half", 4))

    story.arrives(job("j", 8, 2), now=1)

    assert story.running == {"half": [0]}
    assert story.engine.view.cluster.free.tolist() == [0xF0, 0xFF]


def test_a_job_with_fewer_pods_than_it_must_have_waits() -> None:
    """JobValid: not enough pods."""
    story = Story("A B", conf=ALLOCATE)
    story.arrives(job("j", 8, 1, min_available=2))

    assert story.messages == [
        "job 'j' waits: needs 1 x 8 chips; the job has 1 pods, needs 2"
    ]
    assert story.arrives(job("j", 8, 2, min_available=2), now=1) == [
        "bind j: 0 on A 01234567, 1 on B 01234567"
    ]


def test_a_role_with_too_few_pods_holds_its_job_back() -> None:
    """JobValid: not enough pods of a task."""
    roles = (Role("driver", 0, 1), Role("worker", 8, 1, min_available=2))
    story = Story("A B", conf=ALLOCATE)
    story.arrives(job("j", 8, 1, roles=roles, min_available=3))

    assert "needs 2" in story.messages[0]


def test_surplus_pods_are_placed_with_the_job() -> None:
    story = Story("A B C", conf=ALLOCATE)

    said = story.arrives(job("j", 8, 3, min_available=1))

    assert said == ["bind j: 0 on A 01234567, 1 on B 01234567, 2 on C 01234567"]


def test_surplus_pods_that_come_later_go_through_the_order_again() -> None:
    """Fairness is looked at again for every extra pod."""
    story = Story("A B", conf=conf("allocate", TIERS))
    story.arrives(job("old"), job("j", 8, 2, min_available=1))
    story.arrives(job("new"), now=1)

    said = story.hears(JobGone("old"), now=2)

    assert said[0] == "bind new: 0 on A 01234567"


def test_jobs_that_lack_pods_go_before_jobs_that_have_enough() -> None:
    story = Story("A B", conf=ALLOCATE)
    story.arrives(job("old"), job("j", 8, 2, min_available=1))
    story.arrives(job("new", created=99.0), now=1)

    story.hears(JobGone("old"), now=2)

    assert "new" in story.running


def test_a_job_is_tried_again_only_when_something_is_free_that_was_not() -> None:
    story = Story("A", conf=conf("allocate", (("gang",),)))
    story.arrives(job("old", 4, 2))
    story.arrives(job("j", 8), now=1)
    waiting = story.engine.context.pending.admitted
    assert not waiting.queues

    story.arrives(job("k", 3, queue="default"), now=2)
    assert not waiting.queues
    story.hears(PodsGone("old", (0,), succeeded=True), now=3)
    assert story.running == {"old": [1], "k": [0]}


def test_a_line_can_be_tried_alone() -> None:
    story = Story("a", conf=conf("allocate"))
    story.arrives(job("runs"), job("waits"))
    ctx = story.engine.context
    line = ctx.pending.admitted.by_job["waits"]

    assert attempt(ctx, line, {}) is False
    story.hears(JobGone("runs"))
    assert "waits" not in ctx.pending.admitted


def test_all_nodes_are_considered_and_ties_go_by_name() -> None:
    story = Story([node(f"n{i:03}") for i in range(150)], conf=ALLOCATE)

    assert story.arrives(job("j", 4)) == ["bind j: 0 on n000 0123"]


def test_best_effort_pods_of_a_job_are_placed_with_it() -> None:
    roles = (Role("driver", 0), Role("worker", 8))
    story = Story("A", conf=ALLOCATE)

    assert story.arrives(job("j", 8, roles=roles)) == [
        "bind j: 0 on A 01234567, 1 on A"
    ]


def test_a_pod_that_asks_resources_but_no_chips_is_allocated() -> None:
    asks = Demand(resources=(("cpu", 600),))
    roles = (Role("server", 0, 2, demand=asks),)
    nodes: list[Node] = [node(n, resources={"cpu": 1000}) for n in "AB"]
    story = Story(nodes, conf=ALLOCATE)

    said = story.arrives(job("j", 0, 0, roles=roles))

    assert said == ["bind j: 0 on A, 1 on B"]


def test_a_skipped_job_is_tried_when_its_queue_deserves_more() -> None:
    story = Story("A B", queues=[queue("p", 8), queue("q")], conf=ALLOCATE)
    story.arrives(job("p0", queue="p"))
    story.arrives(job("p1", queue="p"), now=1)

    said = story.hears(QueueChanged(queue("p", 16)), now=2)

    assert said == ["bind p1: 0 on B 01234567"]


def test_a_started_job_is_running() -> None:
    story = Story("A", conf=ALLOCATE)
    story.arrives(job("j", 8, 2, min_available=1), now=4)

    assert story.phase("j") is Phase.RUNNING
    assert story.engine.view.job_states["j"].started == 4
    assert story.engine.view.queue_usage["default"].inqueue.get(NPU, 0) == 0


def test_requests_that_find_no_place_are_kept_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While nothing changes in the cluster, others may come and go for ever."""
    monkeypatch.setattr(placer, "ROOM_ENTRIES", 20)
    story = Story("a")
    for i in range(100):
        wants = Requirement(f"label-{i}", Operator.EXISTS)
        story.arrives(job(f"j{i}", 8, demand=Demand(required=(wants,))))
        story.hears(JobGone(f"j{i}"))

    assert len(story.engine.context.placer._room) <= 20  # noqa: SLF001
    assert story.arrives(job("j")) == ["bind j: 0 on a 01234567"]
