"""The order in which victims are searched for jobs."""

from ringleaf.framework.job_state import JobState
from ringleaf.framework.pending_queue import EquivalenceClass, PendingQueue
from ringleaf.framework.search_order import SearchOrder
from ringleaf.model.job import Job
from ringleaf.policies.products import PRODUCTS

A2 = PRODUCTS["atlas-800t-a2"]


def add(
    pending: PendingQueue, name: str, key: int, chips: int, queue: str = "q"
) -> EquivalenceClass:
    """A job waits; jobs with the same *chips* are in one equivalence class."""
    job_state = JobState(Job(name, A2, chips, queue=queue))
    return pending.add(job_state, (key,))


def first_jobs(order: SearchOrder) -> list[str]:
    """The first jobs of equivalence classes, as they are searched for."""
    found = []
    while (line := order.pop()) is not None:
        found.append(line.first_job.job.name)
    return found


def test_queues_have_their_turns_and_jobs_of_one_their_order() -> None:
    pending = PendingQueue()
    later = add(pending, "later", 2, 8)
    other = add(pending, "other", 0, 8, queue="p")
    sooner = add(pending, "sooner", 1, 4)

    order = SearchOrder([later, other, sooner])

    assert first_jobs(order) == ["sooner", "other", "later"]


def test_a_class_that_is_not_done_takes_its_place_by_its_next_job() -> None:
    pending = PendingQueue()
    line = add(pending, "first", 1, 8)
    add(pending, "third", 3, 8)
    other = add(pending, "second", 2, 4)
    order = SearchOrder([line, other])
    assert order.pop() is line
    assert line not in order

    pending.remove("first")
    order.push_first(line)

    assert line in order
    assert first_jobs(order) == ["second", "third"]


def test_jobs_that_left_and_classes_that_are_empty_are_skipped() -> None:
    pending = PendingQueue()
    line = add(pending, "first", 1, 8)
    add(pending, "third", 3, 8)
    empty = add(pending, "gone", 0, 2)
    order = SearchOrder([empty, line, add(pending, "second", 2, 4)])

    pending.remove("gone")
    pending.remove("first")

    assert first_jobs(order) == ["second", "third"]


def test_a_class_that_is_left_is_next_when_an_earlier_job_joins_it() -> None:
    pending = PendingQueue()
    line = add(pending, "third", 3, 8)
    order = SearchOrder([add(pending, "second", 2, 4), line])
    before = order.first_keys()
    add(pending, "first", 1, 8)

    assert line.first_key < before[line.scheduling_key.queue]
    order.push_first(line)

    assert first_jobs(order) == ["first", "second"]


def test_the_first_key_of_a_queue_is_that_of_the_job_that_is_next() -> None:
    pending = PendingQueue()
    line = add(pending, "second", 2, 8)
    add(pending, "other", 1, 4, queue="p")
    order = SearchOrder([line, add(pending, "third", 3, 4)])
    (queue,) = order.first_keys()

    assert order.first_keys() == {queue: line.first_key}
    pending.remove("second")
    assert order.first_keys() == {queue: pending.by_job["third"].first_key}
    pending.remove("third")
    assert order.first_keys() == {}
