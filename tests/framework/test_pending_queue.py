"""Lines of jobs that ask for the same."""

import weakref
from math import inf

from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.pending_queue import (
    SPARE_ENTRIES,
    EquivalenceClass,
    PendingQueue,
    UnadmittedQueue,
)
from ringleaf.framework.reasons import PendingCause, QueueReason
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.placement import Placement
from ringleaf.policies.products import PRODUCTS

FULL = QueueReason(PendingCause.NO_ROOM, "default")
A2, DUO = PRODUCTS["atlas-800t-a2"], PRODUCTS["atlas-300i-duo"]


def waits(
    pending: PendingQueue, job: Job, key: int = 0, since: float = 0.0
) -> tuple[JobState, EquivalenceClass]:
    job_state = JobState(job, arrived=since)
    return job_state, pending.add(job_state, (key,))


def names(line: EquivalenceClass) -> set[str]:
    return {job_state.job.name for job_state in line}


def test_jobs_that_request_the_same_are_in_one_equivalence_class() -> None:
    pending = PendingQueue()
    _one, line = waits(pending, Job("one", A2, 8, priority=1, created=5.0))
    _two, same = waits(pending, Job("two", A2, 8))
    _three, other = waits(pending, Job("three", A2, 4))
    _four, another = waits(pending, Job("four", A2, 8, queue="q"))

    assert line is same
    assert names(line) == {"one", "two"}
    assert len({line, other, another}) == 3
    assert len(pending) == 4
    assert {s.job.name for s in pending} == {"one", "two", "three", "four"}
    assert pending.by_job["three"] is other


def test_jobs_that_differ_in_their_running_times_may_be_one_class() -> None:
    apart, together = PendingQueue(), UnadmittedQueue()
    jobs = Job("one", A2, 8, estimate_s=5.0), Job("two", A2, 8, estimate_s=6.0)

    assert len({waits(apart, job)[1] for job in jobs}) == 2
    assert len({waits(together, job)[1] for job in jobs}) == 1


def test_a_job_that_tells_its_running_time_opens_a_class_of_several() -> None:
    """It may backfill a reservation that the jobs before it may not."""
    pending = UnadmittedQueue()
    _one, line = waits(pending, Job("one", A2, 8), 1)
    pending.close_for_quota(line, FULL)

    waits(pending, Job("two", A2, 8), 2)
    assert not pending.is_open(line)
    waits(pending, Job("three", A2, 8, estimate_s=5.0), 3)
    assert pending.is_open(line)
    assert line.first_job.job.name == "one"


def test_the_first_job_behind_a_key_that_a_question_is_true_of() -> None:
    pending = UnadmittedQueue()
    for key, name in ((3, "c"), (1, "a"), (2, "b"), (4, "gone"), (5, "e")):
        _state, line = waits(pending, Job(name, A2, 8), key)
    pending.remove("gone")

    def first(key: int, but: str = "") -> str | None:
        found = line.first_after((key,), lambda each: each.job.name not in but)
        return found and found[1].job.name

    assert [first(0), first(1), first(1, "b"), first(3)] == ["a", "b", "c", "e"]
    assert first(5) is None
    assert first(0, "abce") is None


def test_jobs_that_run_or_ran_wait_alone() -> None:
    pending = PendingQueue()
    _plain, line = waits(pending, Job("plain", A2, 8))
    running = JobState(Job("running", A2, 8))
    running.placements[0] = Placement(0, "n", (0,))
    _again, again = waits(pending, Job("again", A2, 8, previous=Previous(())))

    assert len({line, again, pending.add(running, (0,))}) == 3


def test_the_lowest_key_is_in_front_then_the_job_that_came_first() -> None:
    pending = PendingQueue()
    waits(pending, Job("b", A2, 8), 2)
    waits(pending, Job("a", A2, 8), 1)
    _last, line = waits(pending, Job("c", A2, 8), 1)

    order = []
    while line:
        key, job_state = line.first_key, line.first_job
        order.append((key, job_state.job.name))
        pending.remove(job_state.job.name)

    assert order == [((1,), "a"), ((1,), "c"), ((2,), "b")]
    assert not pending
    assert "a" not in pending


def test_a_job_that_comes_back_stands_by_its_new_key() -> None:
    pending = PendingQueue()
    one, line = waits(pending, Job("one", A2, 8), 1)
    waits(pending, Job("two", A2, 8), 2)
    pending.remove("one")
    pending.add(one, (3,))

    assert line.first_job.job.name == "two"
    assert names(line) == {"one", "two"}


def test_a_closed_class_opens_when_its_product_is_free() -> None:
    pending = PendingQueue()
    _one, line = waits(pending, Job("one", A2, 8))
    _two, duo = waits(pending, Job("two", DUO, 1))
    pending.close_for_capacity(line)
    pending.close_for_capacity(duo)
    assert not pending.queues
    assert pending.queues == []

    pending.capacity_freed([A2])

    assert pending.is_open(line)
    assert not pending.is_open(duo)
    assert pending.queues == ["default"]


def test_a_class_with_pods_without_chips_opens_whatever_is_free() -> None:
    pending = PendingQueue()
    roles = (Role("driver", 0), Role("worker", 8))
    _one, line = waits(pending, Job("one", A2, 8, roles=roles))
    pending.close_for_capacity(line)

    pending.capacity_freed([DUO])

    assert pending.is_open(line)


def test_a_class_that_is_held_back_opens_only_when_queue_usage_changes() -> None:
    pending = PendingQueue()
    _one, line = waits(pending, Job("one", A2, 8))
    pending.close_for_quota(line, FULL)
    assert line.why is FULL

    pending.capacity_freed([A2])
    assert not pending.is_open(line)
    pending.usage_changed()
    assert pending.is_open(line)


def test_a_queue_that_requests_more_opens_only_classes_of_other_queues() -> None:
    pending = PendingQueue()
    _one, own = waits(pending, Job("one", A2, 8, queue="p"))
    _two, other = waits(pending, Job("two", A2, 8, queue="q"))
    pending.close_for_capacity(own)
    pending.close_for_capacity(other)

    pending.retry_other_queues("p")

    assert pending.queues == ["q"]
    assert pending.is_open(other)
    assert not pending.is_open(own)


def test_everything_opens_when_everything_changed() -> None:
    pending = PendingQueue()
    _one, line = waits(pending, Job("one", A2, 8))
    _two, held = waits(pending, Job("two", A2, 4))
    pending.close_for_capacity(line)
    pending.close_for_quota(held, FULL)

    pending.everything_changed()

    assert [entry[2] for entry in pending.open_classes("default")] == [line, held]


def test_a_job_that_joins_a_closed_class_in_front_opens_it() -> None:
    pending = PendingQueue()
    _one, line = waits(pending, Job("one", A2, 8), 5)
    pending.close_for_capacity(line)

    waits(pending, Job("behind", A2, 8), 6)
    assert not pending.is_open(line)
    waits(pending, Job("before", A2, 8), 4)
    assert pending.is_open(line)


def test_an_empty_class_is_forgotten() -> None:
    pending = PendingQueue()
    _one, line = waits(pending, Job("one", A2, 8))
    pending.close_for_capacity(line)
    pending.remove("one")
    assert not pending.is_open(line)

    pending.capacity_freed([A2])
    assert not pending.queues
    _two, fresh = waits(pending, Job("two", A2, 8))
    assert pending.is_open(fresh)


def test_the_job_that_waits_longest_is_known_by_queue() -> None:
    pending = PendingQueue()
    waits(pending, Job("late", A2, 8), since=9.0)
    early, _line = waits(pending, Job("early", A2, 4), since=3.0)
    waits(pending, Job("other", A2, 8, queue="q"), since=1.0)

    assert pending.since.oldest("default") is early
    pending.remove("early")
    found = pending.since.oldest("default")
    assert found is not None
    assert found.job.name == "late"
    assert pending.since.oldest("unknown") is None
    pending.remove("late")
    assert pending.since.oldest("default") is None


def test_a_running_job_is_not_the_job_that_waits_longest() -> None:
    pending = PendingQueue()
    running = JobState(Job("running", A2, 8))
    running.phase = Phase.RUNNING
    pending.add(running, (0,))

    assert pending.since.oldest("default") is None


def test_a_job_that_waits_anew_counts_from_then_on() -> None:
    pending = PendingQueue()
    one, _line = waits(pending, Job("one", A2, 8), since=1.0)
    two, _same = waits(pending, Job("two", A2, 8), since=2.0)
    pending.remove("one")
    one.waiting_since = 7.0
    pending.add(one, (0,))

    assert pending.since.oldest("default") is two


def test_when_the_next_has_waited_long_enough_is_known_by_queue() -> None:
    pending = PendingQueue()
    for name, since in (("due", 1.0), ("gone", 6.0), ("next", 7.0), ("last", 9.0)):
        waits(pending, Job(name, A2, 8), since=since)
    waits(pending, Job("podless", A2, 8, podless=True), since=5.0)
    waits(pending, Job("other", A2, 8, queue="q"), since=6.5)
    pending.remove("gone")

    assert pending.since.next_due("default", 10, now=11.0) == 17.0
    assert pending.since.next_due("default", 10, now=17.0) == 19.0
    assert pending.since.next_due("default", 10, now=19.0) == inf
    assert pending.since.next_due("q", 10, now=11.0) == 16.5
    assert pending.since.next_due("unknown", 10, now=0.0) == inf


def test_the_classes_of_a_queue_are_those_with_jobs() -> None:
    pending = PendingQueue()
    _one, line = waits(pending, Job("one", A2, 8))
    waits(pending, Job("two", A2, 4))
    waits(pending, Job("three", A2, 4, queue="q"))
    pending.remove("two")

    assert pending.classes_in("default") == [line]
    assert pending.classes_in("unknown") == []


def test_nothing_is_kept_of_a_queue_without_classes() -> None:
    pending = PendingQueue()
    for i in range(10):
        waits(pending, Job(f"j{i}", A2, 8, queue=f"made up {i}"), since=1.0)
        waits(pending, Job(f"k{i}", A2, 4, queue=f"made up {i}"), since=2.0)
        pending.remove(f"j{i}")
        assert pending.queues == [f"made up {i}"]
        pending.remove(f"k{i}")

    assert pending.queues == []
    assert not pending._in_queue  # noqa: SLF001
    assert not pending.since._since  # noqa: SLF001
    assert pending.since.oldest("made up 0") is None


def test_jobs_that_left_behind_the_first_are_not_kept() -> None:
    """Nothing but a new front asks for them: a job may wait in front for days."""
    pending = PendingQueue()
    _first, line = waits(pending, Job("first", A2, 8))
    gone = []
    for i in range(1000):
        job_state, _line = waits(pending, Job(f"j{i}", A2, 8), 1)
        pending.remove(f"j{i}")
        gone.append(weakref.ref(job_state))
    del job_state

    kept = [each for each in gone if each() is not None]

    assert len(kept) <= SPARE_ENTRIES + 2
    waits(pending, Job("last", A2, 8), 2)
    assert [s.job.name for s in line] == ["first", "last"]
    pending.remove("first")
    assert line.first_job.job.name == "last"
