"""Lines of jobs that ask for the same."""

from math import inf

from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.pending_queue import EquivalenceClass, PendingQueue
from ringleaf.framework.reasons import PendingCause, QueueReason
from ringleaf.model.job import Job, Previous, Role
from ringleaf.model.placement import Placement
from ringleaf.policies.products import PRODUCTS

FULL = QueueReason(PendingCause.NO_ROOM, "default")
A2, DUO = PRODUCTS["atlas-800t-a2"], PRODUCTS["atlas-300i-duo"]


def waits(
    waitlist: PendingQueue, job: Job, key: int = 0, since: float = 0.0
) -> tuple[JobState, EquivalenceClass]:
    job_state = JobState(job, arrived=since)
    return job_state, waitlist.add(job_state, (key,))


def names(line: EquivalenceClass) -> set[str]:
    return {job_state.job.name for job_state in line}


def test_jobs_that_ask_the_same_wait_in_one_line() -> None:
    waitlist = PendingQueue()
    _one, line = waits(waitlist, Job("one", A2, 8, priority=1, created=5.0))
    _two, same = waits(waitlist, Job("two", A2, 8))
    _three, other = waits(waitlist, Job("three", A2, 4))
    _four, another = waits(waitlist, Job("four", A2, 8, queue="q"))

    assert line is same
    assert names(line) == {"one", "two"}
    assert len({line, other, another}) == 3
    assert len(waitlist) == 4
    assert {s.job.name for s in waitlist} == {"one", "two", "three", "four"}
    assert waitlist.line_of("three") is other


def test_jobs_that_run_or_ran_wait_alone() -> None:
    waitlist = PendingQueue()
    _plain, line = waits(waitlist, Job("plain", A2, 8))
    running = JobState(Job("running", A2, 8))
    running.placements[0] = Placement(0, "n", (0,))
    _again, again = waits(waitlist, Job("again", A2, 8, previous=Previous(())))

    assert len({line, again, waitlist.add(running, (0,))}) == 3


def test_the_lowest_key_is_in_front_then_who_came_first() -> None:
    waitlist = PendingQueue()
    waits(waitlist, Job("b", A2, 8), 2)
    waits(waitlist, Job("a", A2, 8), 1)
    _last, line = waits(waitlist, Job("c", A2, 8), 1)

    order = []
    while line:
        key, job_state = line.front
        order.append((key, job_state.job.name))
        waitlist.remove(job_state.job.name)

    assert order == [((1,), "a"), ((1,), "c"), ((2,), "b")]
    assert not waitlist
    assert "a" not in waitlist


def test_a_job_that_comes_back_stands_by_its_new_key() -> None:
    waitlist = PendingQueue()
    one, line = waits(waitlist, Job("one", A2, 8), 1)
    waits(waitlist, Job("two", A2, 8), 2)
    waitlist.remove("one")
    waitlist.add(one, (3,))

    assert line.front[1].job.name == "two"
    assert names(line) == {"one", "two"}


def test_a_closed_line_opens_when_its_product_is_free() -> None:
    waitlist = PendingQueue()
    _one, line = waits(waitlist, Job("one", A2, 8))
    _two, duo = waits(waitlist, Job("two", DUO, 1))
    waitlist.close(line)
    waitlist.close(duo)
    assert not waitlist.queues
    assert waitlist.queues == []

    waitlist.supply([A2])

    assert waitlist.is_open(line)
    assert not waitlist.is_open(duo)
    assert waitlist.queues == ["default"]


def test_a_line_with_pods_without_chips_opens_whatever_is_free() -> None:
    waitlist = PendingQueue()
    roles = (Role("driver", 0), Role("worker", 8))
    _one, line = waits(waitlist, Job("one", A2, 8, roles=roles))
    waitlist.close(line)

    waitlist.supply([DUO])

    assert waitlist.is_open(line)


def test_a_line_that_is_held_back_opens_with_the_accounts_only() -> None:
    waitlist = PendingQueue()
    _one, line = waits(waitlist, Job("one", A2, 8))
    waitlist.hold_back(line, FULL)
    assert line.why is FULL

    waitlist.supply([A2])
    assert not waitlist.is_open(line)
    waitlist.accounts_changed()
    assert waitlist.is_open(line)


def test_a_queue_that_asks_for_more_opens_the_lines_of_other_queues_only() -> None:
    waitlist = PendingQueue()
    _one, own = waits(waitlist, Job("one", A2, 8, queue="p"))
    _two, other = waits(waitlist, Job("two", A2, 8, queue="q"))
    waitlist.close(own)
    waitlist.close(other)

    waitlist.reopen_others("p")

    assert waitlist.queues == ["q"]
    assert waitlist.is_open(other)
    assert not waitlist.is_open(own)


def test_everything_opens_when_everything_changed() -> None:
    waitlist = PendingQueue()
    _one, line = waits(waitlist, Job("one", A2, 8))
    _two, held = waits(waitlist, Job("two", A2, 4))
    waitlist.close(line)
    waitlist.hold_back(held, FULL)

    waitlist.everything_changed()

    assert [entry[2] for entry in waitlist.open_lines("default")] == [line, held]


def test_who_joins_a_closed_line_in_front_opens_it() -> None:
    waitlist = PendingQueue()
    _one, line = waits(waitlist, Job("one", A2, 8), 5)
    waitlist.close(line)

    waits(waitlist, Job("behind", A2, 8), 6)
    assert not waitlist.is_open(line)
    waits(waitlist, Job("before", A2, 8), 4)
    assert waitlist.is_open(line)


def test_an_empty_line_is_forgotten() -> None:
    waitlist = PendingQueue()
    _one, line = waits(waitlist, Job("one", A2, 8))
    waitlist.close(line)
    waitlist.remove("one")
    assert not waitlist.is_open(line)

    waitlist.supply([A2])
    assert not waitlist.queues
    _two, fresh = waits(waitlist, Job("two", A2, 8))
    assert waitlist.is_open(fresh)


def test_who_waits_longest_is_known_by_queue() -> None:
    waitlist = PendingQueue()
    waits(waitlist, Job("late", A2, 8), since=9.0)
    early, _line = waits(waitlist, Job("early", A2, 4), since=3.0)
    waits(waitlist, Job("other", A2, 8, queue="q"), since=1.0)

    assert waitlist.since.oldest("default") is early
    waitlist.remove("early")
    found = waitlist.since.oldest("default")
    assert found is not None
    assert found.job.name == "late"
    assert waitlist.since.oldest("nobody") is None
    waitlist.remove("late")
    assert waitlist.since.oldest("default") is None


def test_running_jobs_do_not_count_among_those_who_wait_longest() -> None:
    waitlist = PendingQueue()
    running = JobState(Job("running", A2, 8))
    running.phase = Phase.RUNNING
    waitlist.add(running, (0,))

    assert waitlist.since.oldest("default") is None


def test_a_job_that_waits_anew_counts_from_then_on() -> None:
    waitlist = PendingQueue()
    one, _line = waits(waitlist, Job("one", A2, 8), since=1.0)
    two, _same = waits(waitlist, Job("two", A2, 8), since=2.0)
    waitlist.remove("one")
    one.waiting_since = 7.0
    waitlist.add(one, (0,))

    assert waitlist.since.oldest("default") is two


def test_when_the_next_has_waited_long_enough_is_known_by_queue() -> None:
    waitlist = PendingQueue()
    for name, since in (("due", 1.0), ("gone", 6.0), ("next", 7.0), ("last", 9.0)):
        waits(waitlist, Job(name, A2, 8), since=since)
    waits(waitlist, Job("podless", A2, 8, podless=True), since=5.0)
    waits(waitlist, Job("other", A2, 8, queue="q"), since=6.5)
    waitlist.remove("gone")

    assert waitlist.since.next_due("default", 10, now=11.0) == 17.0
    assert waitlist.since.next_due("default", 10, now=17.0) == 19.0
    assert waitlist.since.next_due("default", 10, now=19.0) == inf
    assert waitlist.since.next_due("q", 10, now=11.0) == 16.5
    assert waitlist.since.next_due("nobody", 10, now=0.0) == inf


def test_the_lines_of_a_queue_are_those_that_somebody_stands_in() -> None:
    waitlist = PendingQueue()
    _one, line = waits(waitlist, Job("one", A2, 8))
    waits(waitlist, Job("two", A2, 4))
    waits(waitlist, Job("three", A2, 4, queue="q"))
    waitlist.remove("two")

    assert waitlist.lines_in("default") == [line]
    assert waitlist.lines_in("nobody") == []


def test_nothing_is_kept_of_a_queue_without_lines() -> None:
    waitlist = PendingQueue()
    for i in range(10):
        waits(waitlist, Job(f"j{i}", A2, 8, queue=f"made up {i}"), since=1.0)
        waits(waitlist, Job(f"k{i}", A2, 4, queue=f"made up {i}"), since=2.0)
        waitlist.remove(f"j{i}")
        assert waitlist.queues == [f"made up {i}"]
        waitlist.remove(f"k{i}")

    assert waitlist.queues == []
    assert not waitlist._in_queue  # noqa: SLF001
    assert not waitlist.since._since  # noqa: SLF001
    assert waitlist.since.oldest("made up 0") is None
