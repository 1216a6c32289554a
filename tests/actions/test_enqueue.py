"""Enqueue: which jobs are admitted. One test a sentence of Volcano's action."""

import pytest

from ringleaf.engine.event import JobGone, QueueChanged
from ringleaf.framework.instruction import Report
from ringleaf.framework.job_state import Phase
from ringleaf.framework.votes import Votes
from ringleaf.model.job import Job
from ringleaf.model.queue import Queue
from tests.engine.story import NPU, PLAIN, Story, conf, job, queue

OVERCOMMIT = (("gang",), ("overcommit", "predicates"))

SENTENCES = [
    pytest.param(
        (queue("default", 16),),
        (job("a", 8), job("b", 8)),
        "ab",
        id="a job is admitted while its queue's capability has room for its minimum",
    ),
    pytest.param(
        (queue("default", 8),),
        (job("a", 8), job("b", 8)),
        "a",
        id="what admitted jobs still need counts against the queue",
    ),
    pytest.param(
        (queue("default", 8),),
        (job("a", 8, 4, min_available=1), job("b", 8)),
        "a",
        id="of an elastic job what must start together counts",
    ),
    pytest.param(
        (queue("default", 8),),
        (job("b", 8), job("a", 8, priority=1)),
        "a",
        id="in a queue the job order decides",
    ),
    pytest.param(
        (queue("p"), queue("q", is_open=False)),
        (job("a", queue="p"), job("b", queue="q")),
        "a",
        id="a closed queue admits no job",
    ),
    pytest.param(
        (),
        (job("a", queue="x"), job("b")),
        "b",
        id="a queue that is not there does not",
    ),
    pytest.param(
        (queue("p", 8), queue("q", 8)),
        (job("a", queue="p"), job("x", queue="p"), job("b", queue="q")),
        "ab",
        id="a full queue is in the way of no other",
    ),
    pytest.param(
        (queue("default", 16),),
        (job("x", 8, 3), job("a", 8)),
        "a",
        id="a job that is not admitted costs its queue nothing",
    ),
    pytest.param(
        (Queue("p", guarantee={NPU: 24_000}),),
        (job("a", 8), job("x", 8)),
        "a",
        id="what is guaranteed to other queues is not given away",
    ),
]


@pytest.mark.parametrize(("queues", "jobs", "admitted"), SENTENCES)
def test_enqueue(queues: list[Queue], jobs: list[Job], admitted: str) -> None:
    story = Story("A B C D", queues=queues, conf=conf("enqueue"))

    story.arrives(*jobs)

    assert {j.name for j in jobs if story.phase(j.name) is Phase.INQUEUE} == {*admitted}
    assert all(story.phase(j.name) is Phase.PENDING for j in jobs if j.name == "x")


def test_overcommit_admits_more_than_there_is() -> None:
    """Its factor is 1.2 unless it says otherwise."""
    story = Story("A B C D E", conf=conf("enqueue", OVERCOMMIT))

    story.arrives(*(job(f"{n}") for n in range(7)))

    inqueue = [n for n in range(7) if story.phase(f"{n}") is Phase.INQUEUE]
    assert inqueue == [0, 1, 2, 3, 4, 5]


def test_a_rejected_job_gets_a_reason_once() -> None:
    story = Story("A", queues=[queue("default", 8)], conf=conf())

    story.arrives(job("a"), job("b"))
    assert story.messages == [
        (
            "job 'b' waits: needs 1 x 8 chips; not admitted: queue 'default' has no "
            "room: 0 of 8 chips used, 8 kept for other jobs, job wants 8"
        )
    ]
    assert story.hears(QueueChanged(queue("default", 8, weight=2))) == []


def test_in_a_queue_without_limits_the_cluster_is_what_is_full() -> None:
    story = Story("A", conf=conf())

    story.arrives(job("a"), job("b"), job("c"))

    said = [each for each in story.said if isinstance(each, Report)]
    assert [(each.message, each.behind) for each in said] == [
        (
            (
                "job 'b' waits: needs 1 x 8 chips; not admitted: running and admitted "
                "jobs fill the cluster: 0 of 8 chips used, 8 kept for other jobs, "
                "job wants 8"
            ),
            True,
        ),
        (
            (
                "job 'c' waits: needs 1 x 8 chips; not admitted: running and admitted "
                "jobs fill the cluster: 0 of 8 chips used, 8 kept for other jobs, "
                "job wants 8"
            ),
            True,
        ),
    ]


def test_a_queue_from_which_others_are_guaranteed_a_part_is_full_itself() -> None:
    others = queue("b", guarantee={NPU: 8000})
    story = Story("A B", queues=[queue("a"), others], conf=conf())

    story.arrives(job("one", queue="a"), job("two", queue="a"))

    assert story.messages == [
        (
            "job 'two' waits: needs 1 x 8 chips; not admitted: queue 'a' has no room: "
            "0 of 8 chips used, 8 kept for other jobs, job wants 8"
        )
    ]


def test_a_rejected_job_is_retried_when_queue_usage_changes() -> None:
    story = Story("A B", queues=[queue("default", 8)], conf=conf())
    story.arrives(job("a"), job("b"))

    assert story.hears(JobGone("a"), now=1) == ["bind b: 0 on A 01234567"]


def test_no_job_is_placed_that_is_not_admitted() -> None:
    """Phase Pending: allocate skips the job if enqueue is configured."""
    story = Story("A B", queues=[queue("default", 8)], conf=conf("enqueue, allocate"))

    story.arrives(job("a"), job("b"))

    assert story.running == {"a": [0]}


def test_where_enqueue_is_not_configured_every_job_is_admitted() -> None:
    """Phase Pending: allocate promotes the job if enqueue is not configured."""
    story = Story("A", queues=[queue("default", 8)], conf=conf("allocate", PLAIN))

    story.arrives(job("a"), job("b"))

    assert story.phase("b") is Phase.INQUEUE


def test_plugins_are_notified_of_every_admitted_job() -> None:
    """JobEnqueued adds what the job needs to what its queue has promised."""
    story = Story("A B", conf=conf("enqueue"))

    story.arrives(job("a", 4))

    assert story.engine.view.queue_usage["default"].inqueue == {NPU: 4000}


def test_queues_that_do_not_exist_are_not_compared_with_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Jobs may name any number of queues; a comparison is made for every turn."""
    compared: list[str] = []
    real = Votes.queue_key

    def key(votes: Votes, queue: Queue) -> object:
        compared.append(queue.name)
        return real(votes, queue)

    monkeypatch.setattr(Votes, "queue_key", key)
    story = Story("a b", queues=[queue("p"), queue("q")])
    jobs = [job(f"j{i}", queue=f"made up {i}") for i in range(20)]

    said = story.arrives(*jobs, job("one", queue="p"), job("two", queue="q"))

    assert {*compared} == {"p", "q"}
    assert [each for each in said if each.startswith("bind")] == [
        "bind one: 0 on a 01234567",
        "bind two: 0 on b 01234567",
    ]
    assert len([each for each in said if each.startswith("waiting")]) == 20
    story.hears(*(JobGone(each.name) for each in jobs))
    assert sorted(story.engine.view.queue_usage) == ["p", "q"]
