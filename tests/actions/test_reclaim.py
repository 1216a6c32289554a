"""Reclaim: queues take back what they deserve. One test a sentence of Volcano's."""

from typing import Any

import pytest

from ringleaf.engine.event import JobGone, QueueChanged, QueueGone
from ringleaf.model.job import Job
from ringleaf.model.queue import Queue
from tests.engine.story import PLAIN, RECLAIM, Story, conf, job, queue

CONF = conf(RECLAIM)


def greedy(**changes: Any) -> list[Job]:  # noqa: ANN401
    """Four jobs of queue p that take all four nodes."""
    return [job(f"p{n}", queue="p", **changes) for n in range(4)]


VICTIMS = [
    pytest.param(
        Queue("p"), greedy(), job("q", queue="q"), 1, id="a queue above its share gives"
    ),
    pytest.param(
        Queue("p"),
        greedy(),
        job("q", 8, 2, queue="q"),
        2,
        id="as much as the other deserves",
    ),
    pytest.param(
        Queue("p"),
        greedy(),
        job("q", 8, 3, queue="q"),
        0,
        id="nothing for a job beyond the share of its queue",
    ),
    pytest.param(
        Queue("p", weight=3),
        greedy(),
        job("q", 8, 2, queue="q"),
        0,
        id="shares go by weight",
    ),
    pytest.param(
        Queue("p", reclaimable=False),
        greedy(),
        job("q", queue="q"),
        0,
        id="a queue that is not reclaimable gives nothing",
    ),
    pytest.param(
        Queue("p"),
        greedy(preemptable=False),
        job("q", queue="q"),
        0,
        id="jobs that are not preemptable stay",
    ),
    pytest.param(
        Queue("p"),
        greedy(critical=True),
        job("q", queue="q"),
        0,
        id="pods of the system stay",
    ),
    pytest.param(
        Queue("p"),
        greedy(),
        job("q", queue="p", priority=9),
        0,
        id="a queue does not take from itself",
    ),
    pytest.param(
        Queue("p"),
        greedy(priority=9),
        job("q", queue="q"),
        1,
        id="priority does not matter across queues",
    ),
]


@pytest.mark.parametrize(("own", "old", "new", "evicted"), VICTIMS)
def test_how_many_pods_are_reclaimed(
    own: Queue, old: list[Job], new: Job, evicted: int
) -> None:
    story = Story("a b c d", queues=[own, queue("q")], conf=CONF)
    story.arrives(*old)

    said = story.arrives(new, now=1)

    assert sum(line.startswith("evict p") for line in said) == evicted


def test_the_place_is_kept_for_the_queue_that_took_it_back() -> None:
    story = Story("a b c d", queues=[queue("p"), queue("q")], conf=CONF)
    story.arrives(*greedy())
    story.arrives(job("q", queue="q"), now=1)

    said = story.carry_out(now=2)

    assert "q" in story.running
    assert any(line.startswith("bind q: 0 on ") for line in said)


def test_a_gang_gives_its_surplus_or_all_of_its_pods() -> None:
    story = Story("a b c d", queues=[queue("p"), queue("q")], conf=CONF)
    story.arrives(job("p", 8, 4, min_available=3, queue="p"))

    said = story.arrives(job("q", queue="q"), now=1)

    (line,) = [s for s in said if s.startswith("evict ")]
    assert line.endswith(" for q (reclaim)")
    assert len(story.running["p"]) == 4


def test_a_gang_that_cannot_spare_a_pod_goes_whole() -> None:
    """Victims are named while their queue is above its share, but no half gangs."""
    tiers = (("gang", "conformance", "proportion"), ("predicates",))
    story = Story("a b c d", queues=[queue("p"), queue("q")], conf=conf(RECLAIM, tiers))
    story.arrives(job("p", 8, 4, queue="p"))

    said = story.arrives(job("q", queue="q"), now=1)

    assert "evict p: 0,1,2,3 for q (reclaim)" in said


def test_a_queue_that_has_its_share_takes_nothing_back() -> None:
    """Only queues that are not overused reclaim."""
    story = Story("a b", queues=[queue("p"), queue("q")], conf=CONF)
    story.arrives(job("q0", queue="q"), job("p0", queue="p"))

    said = story.arrives(job("q1", 4, queue="q"), now=1)

    assert not any(line.startswith("evict ") for line in said)


def test_a_queue_that_is_gone_neither_gives_nor_takes() -> None:
    story = Story("a b", queues=[queue("p"), queue("q")], conf=CONF)
    story.arrives(job("p0", queue="p"), job("p1", queue="p"))
    story.hears(QueueGone("p"))

    said = story.arrives(job("q", queue="q"), job("p2", queue="p"), now=1)
    assert not any(line.startswith("evict ") for line in said)


def test_a_queue_that_may_be_taken_from_again_gives() -> None:
    rock = queue("p", reclaimable=False)
    story = Story("a b", queues=[rock, queue("q")], conf=CONF)
    story.arrives(job("p0", queue="p"), job("p1", queue="p"))
    story.arrives(job("q", queue="q"), now=1)

    said = story.hears(QueueChanged(queue("p")), now=2)

    assert any(line.startswith("evict p") for line in said)


def test_an_elastic_job_that_has_enough_takes_nothing_back() -> None:
    """Starving: fewer pods than must start together."""
    story = Story("a b c d", queues=[queue("p"), queue("q")], conf=CONF)
    story.arrives(*greedy()[:3])
    story.arrives(job("q", 8, 2, min_available=1, queue="q"), now=1)

    assert not any(line.startswith("evict ") for line in story.wakes(2))
    assert len(story.running["q"]) == 1


def test_a_job_runs_for_a_while_before_it_goes() -> None:
    patient = conf(RECLAIM, PLAIN, reclaim={"min-run-seconds": 60})
    story = Story("a b", queues=[queue("p"), queue("q")], conf=patient)
    story.arrives(job("p0", queue="p"), job("p1", queue="p"))

    said = story.arrives(job("q", queue="q"), now=1)
    assert "wake 60" in said
    assert any(line.startswith("evict p") for line in story.wakes(60))


def test_guaranteed_shares_are_taken_back() -> None:
    kept = Queue("q", guarantee={"huawei.com/Ascend910": 16_000})
    story = Story("a b", queues=[queue("p"), kept], conf=conf(RECLAIM))
    story.hears(QueueChanged(queue("q")))
    story.arrives(job("p0", queue="p"), job("p1", queue="p"), now=1)
    story.hears(QueueChanged(kept), now=2)

    said = story.arrives(job("q", 8, 2, queue="q"), now=3)

    assert sum(line.startswith("evict p") for line in said) == 2


def test_victims_are_searched_for_again_when_a_pending_job_ends() -> None:
    """The end of a job moves the shares of all queues, though nothing is freed."""
    queues = [queue(name) for name in ("large", "other", "small")]
    rules = conf(RECLAIM, allocate={"reservation": "off"})
    story = Story("a b", queues=queues, conf=rules)
    story.arrives(job("victim", 8, 2, min_available=1, queue="large"))
    story.arrives(job("pending", 8, 2, queue="other"), now=1)
    story.arrives(job("evictor", 8, queue="small"), now=2)
    assert story.running.keys() == {"victim"}

    said = story.hears(JobGone("pending"), now=3)

    assert "evict victim: 1 for evictor (reclaim)" in said
