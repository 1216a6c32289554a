"""Queue orders: who starts when not everybody can."""

from math import inf

import pytest
from msgspec.structs import replace

from ringleaf.baselines.forecast import Profile
from ringleaf.baselines.order import DEPTH, ORDERS
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import JobArrived, NodesChanged
from ringleaf.model.job import Job
from ringleaf.model.run_time import Origin
from tests.baselines.stage import A2, Stage, drawn, started

FULL = "####|####"


def stage_of(order: str, nodes: int = 4, name: str = "best-fit") -> Stage:
    """An empty cluster of *nodes* nodes."""
    return Stage(name, drawn(*[FULL] * nodes, product=A2), order=order)


def job(name: str, pods: int, lasts: float | None = None, priority: int = 0) -> Job:
    """A job of so many whole nodes."""
    return Job(name, A2, 8, pods, estimate_s=lasts, priority=priority)


def play(stage: Stage, *jobs: Job, now: float = 0.0) -> list[str]:
    """Who starts when jobs come together, in the order in which they are given."""
    return started(stage.happens(*map(JobArrived, jobs), now=now))


def test_fifo_lets_nobody_pass_the_first() -> None:
    stage = stage_of("fifo")

    assert play(stage, job("a", 3), job("b", 2), job("c", 1)) == ["a"]
    assert play(stage, job("d", 1), now=1) == []
    assert stage.goes("a", now=2) == ["b", "c", "d"]


def test_fifo_goes_on_when_the_first_gives_up() -> None:
    stage = stage_of("fifo")
    play(stage, job("a", 3), job("b", 2), job("c", 1))

    assert stage.goes("b", now=1) == ["c"]


def test_fifo_with_skipping_starts_whoever_fits() -> None:
    stage = stage_of("fifo-skip")

    assert play(stage, job("a", 3), job("b", 2), job("c", 1)) == ["a", "c"]


def test_the_shortest_goes_first_and_who_says_nothing_last() -> None:
    stage = stage_of("sjf")
    play(stage, job("a", 4))

    play(stage, job("b", 2), job("c", 2, 500), job("d", 2, 100), now=1)

    assert stage.goes("a", now=2) == ["d", "c"]


def learned(order: str, **lasts: float) -> Stage:
    """A cluster on which nine jobs of each user have run, one after the other."""
    stage = stage_of(order)
    now = 0.0
    for user, seconds in lasts.items():
        for i in range(9):
            name = f"{user}-{i}"
            play(stage, by(user, name, 1), now=now)
            now += seconds
            stage.goes(name, now=now)
    return stage


def by(user: str, name: str, pods: int, lasts: float | None = None) -> Job:
    """A job of a user."""
    return replace(job(name, pods, lasts), origin=Origin(user, user))


def test_the_shortest_by_history_goes_first_and_unknown_jobs_last() -> None:
    stage = learned("sjf-learned", ann=500, bob=100)
    play(stage, job("a", 4), now=9000)

    jobs = job("x", 3), by("ann", "c", 1), by("bob", "d", 1), by("bob", "e", 2, 300)
    play(stage, *jobs, now=9001)

    assert stage.goes("a", now=9002) == ["d", "e", "c"]


def test_the_least_chip_time_by_history_goes_first() -> None:
    """Two nodes for 100 s are less than one for 500, three for 181 s are more."""
    stage = learned("qssf", ann=500, bob=100, eve=180)
    play(stage, job("a", 4), now=9000)

    jobs = job("x", 3), by("eve", "c", 3), by("ann", "d", 1), by("bob", "e", 2)
    play(stage, *jobs, now=9001)

    assert stage.goes("a", now=9002) == ["e", "d"]


def test_easy_knows_from_history_which_jobs_end_in_time() -> None:
    """As easy where the running times are stated: b waits for a until about 4,000 s."""
    stage = learned("easy-learned", ann=4000, bob=100)
    assert play(stage, by("ann", "a", 3), job("b", 4), now=50_000) == ["a"]

    assert play(stage, by("ann", "d", 1), now=50_010) == []
    assert play(stage, by("bob", "c", 1), now=50_020) == ["c"]


def test_without_learning_history_counts_for_nothing() -> None:
    stage = learned("sjf", ann=500, bob=100)
    play(stage, job("a", 4), now=9000)

    play(stage, by("ann", "c", 2), by("bob", "d", 2), now=9001)

    assert stage.goes("a", now=9002) == ["c", "d"]


def test_priority_goes_before_age() -> None:
    stage = stage_of("priority")
    play(stage, job("a", 4))

    play(stage, job("b", 2), job("c", 2), job("d", 2, priority=9), now=1)

    assert stage.goes("a", now=2) == ["d", "b"]


def test_without_that_order_priority_counts_for_nothing() -> None:
    stage = stage_of("fifo-skip")
    play(stage, job("a", 4))

    play(stage, job("b", 4), job("c", 4, priority=9), now=1)

    assert stage.goes("a", now=2) == ["b"]


def test_easy_starts_who_ends_before_the_first_can_start() -> None:
    """Job b waits for a, until 100 s; c ends before, d after, where b is to be."""
    stage = stage_of("easy")

    assert play(stage, job("a", 3, 100), job("b", 4, 50)) == ["a"]
    assert play(stage, job("d", 1, 200), now=10) == []
    assert play(stage, job("c", 1, 80), now=20) == ["c"]


def test_easy_starts_who_ends_late_where_the_first_will_not_be() -> None:
    """Job b will need three of four nodes, so one is anybody's."""
    stage = stage_of("easy")

    assert play(stage, job("a", 3, 100), job("b", 3, 50)) == ["a"]
    assert play(stage, job("d", 1, 1000), now=10) == ["d"]
    assert play(stage, job("e", 1, 1000), now=11) == []
    assert stage.goes("a", now=100) == ["b"]


def test_easy_goes_on_where_the_first_waits_for_a_repair() -> None:
    # a wants both nodes, of which one is down: nothing can be reserved for it. The next
    # gets the reservation, and can start at once.
    stage = stage_of("easy", nodes=2)
    (broken, *_others) = drawn(FULL, FULL, product=A2)
    stage.happens(NodesChanged((replace(broken, ready=False),)))

    assert play(stage, job("a", 2), job("b", 1), now=1) == ["b"]


def test_easy_reserves_for_the_first_only() -> None:
    """Job c, second in line, is delayed by d; b, the first, is not."""
    stage = stage_of("easy")
    play(stage, job("a", 3, 100), job("b", 3, 50), job("c", 4, 10))

    assert play(stage, job("d", 1, 1000), now=10) == ["d"]


def test_conservative_delays_nobody_who_came_before() -> None:
    """Job b starts at 100 s, c at 150 s on all nodes; d would delay c, e would not."""
    stage = stage_of("conservative")

    assert play(stage, job("a", 3, 100), job("b", 3, 50), job("c", 4, 10)) == ["a"]
    assert play(stage, job("d", 1, 1000), now=10) == []
    assert play(stage, job("e", 1, 140), now=10) == ["e"]


def test_conservative_starts_early_what_can() -> None:
    stage = stage_of("conservative")
    play(stage, job("a", 3, 100), job("b", 3, 50))

    assert stage.goes("a", now=5) == ["b"]


def test_conservative_waits_for_the_next_change_where_chips_are_in_pieces() -> None:
    """Eight chips are free, four on each of two nodes: b waits, c passes it."""
    nodes = drawn("####|....", "####|....", product=A2)
    stage = Stage("best-fit", nodes, order="conservative")

    assert stage.comes(Job("b", A2, 8, estimate_s=10)) is None
    assert stage.comes(Job("c", A2, 4, estimate_s=10)) == ["n00"]


def test_conservative_knows_that_pieces_are_no_nodes() -> None:
    """Eight chips are free in halves: b, of a whole node, starts at 100 s and not now.

    So c, of half a node, is in nobody's way, however long it stays.
    """
    stage = Stage("best-fit", drawn(FULL, FULL, product=A2), order="conservative")
    halves = [Job(f"half-{i}", A2, 4, estimate_s=100) for i in range(3)]
    stage.happens(*map(JobArrived, halves), now=0)
    stage.goes("half-0", now=1)

    assert stage.comes(Job("b", A2, 8, estimate_s=10), now=2) is None
    assert stage.comes(Job("c", A2, 4, estimate_s=1000), now=3) == ["n00"]


def test_who_says_no_time_is_never_passed_by_conservative_backfill_for_ever() -> None:
    """Without estimates nobody knows when b starts; c is not held back for it."""
    stage = stage_of("conservative")

    assert play(stage, job("a", 3), job("b", 2), job("c", 1)) == ["a", "c"]


def test_only_the_first_are_planned_for() -> None:
    stage = stage_of("conservative")
    play(stage, job("a", 3, 100))
    play(stage, *(job(f"w{i:03}", 4, 10) for i in range(DEPTH)), now=1)

    assert play(stage, job("late", 1, 10), now=2) == []


def test_a_profile_finds_the_first_time_that_is_long_enough() -> None:
    profile = Profile(0.0, 2, [(10.0, 3), (10.0, 1), (30.0, 2)])

    assert profile.earliest(2, 100, 0.0) == 0.0
    assert profile.earliest(6, 100, 0.0) == 10.0
    assert profile.earliest(8, 1, 0.0) == 30.0
    assert profile.earliest(9, 1, 0.0) == inf
    assert profile.next_change(0.0) == 10.0
    assert profile.next_change(30.0) == inf

    profile.take(5, 10.0, 5.0)

    assert profile.earliest(2, 100, 0.0) == 15.0
    assert profile.earliest(2, 10, 0.0) == 0.0
    assert profile.earliest(1, inf, 0.0) == 0.0
    assert profile.earliest(2, 1, 12.0) == 15.0


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_but_volcanos_admits_all_jobs(name: str) -> None:
    actions = ORDERS[name].configured(DEFAULT).actions

    assert ("enqueue" in actions) == (name == "volcano")


@pytest.mark.parametrize("name", ORDERS)
def test_as_many_jobs_start_in_one_go_as_may(name: str) -> None:
    stage = stage_of(name)
    jobs = [JobArrived(job(f"j{i}", 1, 100)) for i in range(4)]

    first = stage.engine.handle_all(jobs, 0.0, 2)

    assert started(first) == ["j0", "j1"]
    assert stage.engine.has_more
    assert started(stage.engine.handle_all([], 0.0)) == ["j2", "j3"]
