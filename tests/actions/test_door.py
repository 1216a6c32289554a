"""Who was not let in and can start at once does: nobody keeps free chips from him."""

from collections.abc import Mapping
from typing import Any

import pytest

from ringleaf.engine.event import JobArrived, JobGone
from ringleaf.framework.instruction import Bind
from ringleaf.framework.standing import Phase
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.queue import Queue
from tests.engine.story import NPU, TIERS, Story, conf, job, queue

OFF = {"reservation": "off"}
USUAL = "enqueue, allocate, backfill"


def crowd(
    *queues: Queue, actions: str = USUAL, allocate: Mapping[str, Any] = OFF
) -> Story:
    """Two nodes, half of each in use, and a job let in that wants a whole one.

    What runs and what it needs is all there is; half of that is free.
    """
    story = Story("a b", queues=queues, conf=conf(actions, TIERS, allocate=allocate))
    story.arrives(job("left", 4), job("gone-1", 4))
    story.arrives(job("right", 4), job("gone-2", 4))
    story.hears(JobGone("gone-1"), JobGone("gone-2"))
    assert story.arrives(job("whole", 8))[0] == "waiting whole"
    assert story.phase("whole") is Phase.INQUEUE
    return story


def podless(name: str, chips: int) -> Job:
    """A job whose pods are made when it is let in."""
    asks = Demand(resources=((NPU, 1000 * chips),))
    return job(name, 0, 1, podless=True, roles=(Role("", 0, demand=asks),))


def test_who_fits_starts_although_a_job_was_promised_all_there_is() -> None:
    story = crowd()

    assert story.arrives(job("small", 4)) == ["bind small: 0 on a 4567"]
    assert "small" in story.engine.let_in
    assert story.arrives(job("tiny", 2), job("large", 4)) == [
        "bind tiny: 0 on b 45",
        "waiting large",
    ]
    assert story.told == [
        "job 'large' waits: wants 1 x 4 chips; no room beside the jobs before it"
    ]


def test_jobs_that_ask_the_same_start_as_long_as_there_is_room() -> None:
    story = crowd()

    said = story.arrives(*(job(f"s{n}", 4) for n in range(4)))

    assert said[:2] == ["bind s0: 0 on a 4567", "bind s1: 0 on b 4567"]
    assert [story.phase(f"s{n}") for n in (2, 3)] == [Phase.PENDING] * 2


def test_a_job_of_roles_starts_as_well() -> None:
    story = crowd()
    roles = (Role("chief", 1), Role("worker", 4))

    assert story.arrives(job("team", 0, 2, roles=roles)) == [
        "bind team: 0 on a 4, 1 on b 4567"
    ]


def test_who_was_let_in_has_the_first_say() -> None:
    story = crowd()

    assert story.hears(JobGone("left"), JobArrived(job("small", 4))) == [
        "bind whole: 0 on a 01234567",
        "bind small: 0 on b 4567",
    ]


@pytest.mark.parametrize("chips", [12, 16])
def test_the_queue_may_still_use_no_more_than_its_capability(chips: int) -> None:
    story = crowd(queue("default", 16))
    story.arrives(job("small", 4))
    assert story.phase("small") is Phase.RUNNING

    limited = Story(
        "a b", queues=[queue("default", chips)], conf=conf(allocate=dict(OFF))
    )
    limited.arrives(job("one", 8), job("two", 4))
    limited.arrives(job("three", 4))
    assert (limited.phase("three") is Phase.RUNNING) == (chips == 16)


def test_a_queue_that_has_its_share_starts_nobody() -> None:
    queues = Queue("p"), Queue("q")
    story = Story("a b", queues=queues, conf=conf(allocate=dict(OFF)))
    story.arrives(job("one", 8, queue="q"), job("pair", 8, 2, queue="p"))
    story.arrives(job("next", 8, queue="q"))
    assert story.phase("next") is Phase.INQUEUE

    assert story.arrives(job("last", 8, queue="q"))[0] == "waiting last"
    assert story.phase("last") is Phase.PENDING


def test_who_wants_more_than_is_left_of_the_share_of_his_queue_waits() -> None:
    queues = Queue("p"), Queue("q")
    story = Story("a b", queues=queues, conf=conf(allocate=dict(OFF)))
    story.arrives(job("one", 4, queue="q"), job("pair", 8, 2, queue="p"))
    story.arrives(job("next", 8, queue="q"))
    assert story.phase("next") is Phase.INQUEUE

    assert story.arrives(job("last", 8, queue="q"))[0] == "waiting last"
    assert story.arrives(job("small", 4, queue="q")) == ["bind small: 0 on a 4567"]


def test_a_job_without_all_its_pods_is_not_tried() -> None:
    story = crowd()

    assert story.arrives(job("half", 2, least=2))[0] == "waiting half"
    assert story.phase("half") is Phase.PENDING


def test_who_ends_in_time_uses_what_another_has_reserved() -> None:
    story = Story("a b", conf=conf(USUAL, TIERS))
    story.arrives(job("left", 4, estimate_s=900), job("right", 8, estimate_s=900))
    story.arrives(job("large", 8, 2))
    story.wakes(300)
    assert "large" in story.engine.bookings
    story.arrives(job("eight", 8))
    assert story.phase("eight") is Phase.PENDING

    said = story.arrives(job("short", 4, estimate_s=60), now=310)
    assert said == ["bind short: 0 on a 4567"]
    assert story.arrives(job("long", 2), now=320)[0] == "waiting long"


def test_a_cycle_that_is_cut_short_looks_at_them_in_the_next() -> None:
    story = crowd()
    events = [JobArrived(job(name, 4)) for name in ("one", "two")]

    first = story.engine.handle_all(events, 1, most=1)
    assert [each.job for each in first if isinstance(each, Bind)] == ["one"]
    assert story.engine.is_cut_short
    second = story.engine.handle_all([], 1, most=1)
    assert [each.job for each in second if isinstance(each, Bind)] == ["two"]


def test_without_allocate_who_is_not_let_in_is_told_so() -> None:
    story = Story("a", conf=conf("enqueue"))

    assert story.arrives(job("one"), job("two")) == ["waiting two", "waiting one"]
    assert story.phase("two") is Phase.PENDING


def test_pods_are_made_for_a_job_if_so_many_chips_are_free() -> None:
    story = crowd()

    story.arrives(podless("small", 4))
    assert story.engine.let_in == ["small"]
    story.arrives(podless("next", 4))
    assert story.engine.let_in == ["next"]
    assert story.arrives(podless("last", 4))[0] == "waiting last"
    assert story.phase("last") is Phase.PENDING


def test_who_was_let_in_and_has_no_pods_yet_keeps_his_room() -> None:
    story = Story("a b", conf=conf(USUAL, TIERS))
    story.arrives(podless("first", 16))
    assert story.engine.let_in == ["first"]

    assert story.arrives(job("small", 4))[0] == "waiting small"
    assert story.phase("small") is Phase.PENDING


def test_a_job_that_was_let_in_early_in_vain_keeps_out_others_who_were_not() -> None:
    story = crowd()
    story.arrives(podless("wide", 8))
    assert story.engine.let_in == ["wide"]

    assert story.arrives(job("wide", 8))[0] == "waiting wide"
    story.arrives(podless("next", 4))
    assert story.phase("next") is Phase.PENDING


def test_pods_are_made_for_no_job_that_its_queue_turns_away() -> None:
    story = crowd(queue("default", 16))
    story.arrives(podless("small", 4))
    assert story.engine.let_in == ["small"]

    limited = Story("a b", queues=[queue("default", 8)], conf=conf(USUAL, TIERS))
    limited.arrives(job("one", 8))
    limited.arrives(podless("two", 4))
    assert limited.phase("two") is Phase.PENDING


def test_a_short_job_that_was_turned_away_uses_what_another_has_reserved() -> None:
    story = Story("a b", conf=conf(USUAL, TIERS))
    story.arrives(job("left", 4, estimate_s=900), job("right", 8, estimate_s=900))
    story.arrives(job("large", 8, 2))
    story.wakes(300)
    story.arrives(job("eight", 8))
    said = story.arrives(job("first", 2), job("short", 4, estimate_s=60), now=310)

    assert "bind short: 0 on a 4567" in said
    assert story.phase("first") is not Phase.RUNNING
