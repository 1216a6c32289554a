"""Reservations: an overdue job gets the next place where it fits."""

from typing import Any

import pytest

from ringleaf.actions import reserve
from ringleaf.actions.reserve import soonest_start
from ringleaf.config.conf import Conf
from ringleaf.engine.event import (
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodsEnding,
    PodsGone,
    QueueChanged,
    TimerFired,
)
from ringleaf.framework.job_state import Phase
from ringleaf.model.demand import Demand
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.model.owner import Hold
from tests.engine.story import NPU, PLAIN, Story, at, conf, job, node, queue


def soon(mode: str = "fair", **changes: Any) -> Conf:  # noqa: ANN401
    """A configuration in which ten seconds are too long, whatever it costs."""
    own = {"reservation": mode, "reservation-after-seconds": 10}
    return conf(allocate={**own, "reservation-idle-budget": 1, **changes})


BIG = job("big", 8, 2)


def busy(mode: str = "fair", **changes: Any) -> Story:  # noqa: ANN401
    """Node a is taken, node b is half taken, a job of two nodes waits since 0."""
    story = Story("a b", conf=soon(mode), **changes)
    story.arrives(job("one"))
    story.hears(JobArrived(job("half", 4), at("b 0123")))
    story.arrives(BIG)
    return story


def test_an_overdue_job_gets_a_reservation_of_the_whole_job() -> None:
    story = busy()

    assert story.wakes(9) == []
    assert story.wakes(10) == ["reserved big"]
    assert story.messages == [
        "job 'big' has a reservation: a, b; it waits for 'one', 'half' to end"
    ]


def test_what_is_free_of_a_reservation_is_held() -> None:
    story = busy()
    story.wakes(10)

    assert story.engine.view.cluster.free.tolist() == [0, 0]
    assert story.arrives(job("small", 1), now=11)[0] == "waiting small"


def test_what_becomes_free_of_a_reservation_is_held_too() -> None:
    story = busy()
    story.wakes(10)
    story.arrives(job("small", 1), now=11)

    assert story.hears(JobGone("half"), now=12) == []
    said = story.hears(JobGone("one"), now=13)
    assert said[0] == "bind big: 0 on a 01234567, 1 on b 01234567"


def test_a_reservation_costs_its_queue_nothing() -> None:
    story = busy()
    story.wakes(10)

    assert story.phase("big") is Phase.PENDING
    account = story.engine.view.queue_usage["default"]
    assert account.inqueue.get(NPU, 0) == 0
    assert account.allocated == {NPU: 12_000}


SHORT = job("short", 4, estimate_s=5.0)
FOREVER = job("forever", 4)


def ending(mode: str, estimate: float | None) -> Story:
    """The job in the way of the reservation ends after *estimate* seconds."""
    story = Story("a b", conf=soon(mode))
    story.hears(JobArrived(job("one", estimate_s=estimate), at("a 01234567")))
    story.hears(JobArrived(job("half", 4, estimate_s=estimate), at("b 0123")))
    story.arrives(BIG)
    assert "reserved big" in story.wakes(10)
    return story


@pytest.mark.parametrize(
    ("mode", "estimate", "small", "backfilled"),
    [
        pytest.param("fair", 20.0, SHORT, True, id="a job that ends in time may"),
        pytest.param("fair", 15.0, SHORT, False, id="one that ends late may not"),
        pytest.param("fair", 20.0, FOREVER, False, id="nor one without an estimate"),
        pytest.param("fair", None, SHORT, False, id="its start is unknown"),
        pytest.param("strict", None, SHORT, False, id="nor strictly"),
        pytest.param("strict", 20.0, SHORT, True, id="strict: ends in time"),
        pytest.param("fair", None, FOREVER, False, id="never one without an end"),
    ],
)
def test_others_in_a_reservation(
    mode: str, estimate: float | None, small: Job, *, backfilled: bool
) -> None:
    story = ending(mode, estimate)

    story.arrives(small, now=11)

    assert (small.name in story.running) == backfilled
    assert "big" in story.engine.reservations


def test_a_job_that_uses_a_reservation_blocks_it_until_it_ends() -> None:
    story = ending("fair", 20.0)
    story.arrives(SHORT, now=11)
    reservation = story.engine.reservations["big"]
    assert [*reservation.blockers] == ["one", "half", "short"]

    story.hears(JobGone("one"), JobGone("half"), now=12)
    assert "big" in story.engine.reservations
    assert reservation.ready_at(4.0) == 16.0
    assert "bind big: 0 on a 01234567, 1 on b 01234567" in story.hears(
        JobGone("short"), now=13
    )


def test_fair_is_one_reservation_a_queue() -> None:
    story = Story("a b", queues=[queue("p"), queue("q")], conf=soon())
    story.arrives(job("p0", queue="p"), job("q0", queue="q"))
    for name in ("p1", "p2", "q1", "q2"):
        story.arrives(job(name, queue=name[0]))

    story.wakes(10)

    assert [*story.engine.reservations] == ["p1", "q1"]


def test_of_two_reservations_on_one_node_the_other_stays() -> None:
    story = Story("a", queues=[queue("p"), queue("q")], conf=soon())
    story.arrives(job("p0", 4, queue="p"), job("q0", 4, queue="q"))
    story.arrives(job("p1", 4, queue="p"), job("q1", 4, queue="q"))
    story.wakes(10)
    assert [*story.engine.reservations] == ["p1", "q1"]

    story.hears(JobGone("p1"), now=11)

    assert [*story.engine.reservations] == ["q1"]
    assert story.hears(JobGone("q0"), now=12) == ["bind q1: 0 on a 4567"]


def test_strict_is_one_reservation_in_all() -> None:
    story = Story("a b", queues=[queue("p"), queue("q")], conf=soon("strict"))
    story.arrives(job("p0", queue="p"), job("q0", queue="q"))
    for name in ("p1", "q1"):
        story.arrives(job(name, queue=name[0]))

    story.wakes(10)

    assert len(story.engine.reservations) == 1


def test_off_is_no_reservation() -> None:
    story = busy("off")

    assert story.wakes(10_000) == []
    assert not story.engine.reservations


def test_among_those_that_waited_too_long_the_job_order_decides() -> None:
    story = Story("a", conf=soon())
    story.arrives(job("one"))
    story.arrives(job("low"), job("high", 4, priority=3))

    story.wakes(10)

    assert [*story.engine.reservations] == ["high"]


def test_a_job_gets_a_reservation_as_soon_as_it_is_overdue() -> None:
    story = Story("a b", queues=[queue("p"), queue("q")], conf=soon())
    story.arrives(job("p0", queue="p"), job("q0", queue="q"))
    assert story.arrives(job("p1", queue="p"), now=1)[-1] == "wake 11"
    assert story.arrives(job("q1", queue="q"), now=5)[0] == "waiting q1"

    assert story.wakes(11) == ["reserved p1", "wake 15"]
    assert story.wakes(15) == ["reserved q1"]


def test_the_place_is_where_the_job_can_start_soonest() -> None:
    story = Story("a b", conf=soon())
    story.hears(
        JobArrived(job("late", estimate_s=500.0), at("a 01234567")),
        JobArrived(job("early", estimate_s=50.0), at("b 01234567")),
    )
    story.arrives(job("j"))

    assert story.wakes(10) == ["reserved j"]
    assert story.messages == [
        "job 'j' has a reservation: b; it waits for 'early' to end"
    ]


def test_jobs_that_say_nothing_are_thought_to_end_last() -> None:
    story = Story("a b", conf=soon())
    story.hears(JobArrived(job("silent"), at("a 01234567")))
    story.hears(JobArrived(job("late", estimate_s=500.0), at("b 01234567")))
    story.arrives(job("j"))

    story.wakes(10)

    assert story.engine.reservations["j"].nodes == {"b"}


def test_jobs_that_are_ending_are_thought_to_end_first() -> None:
    story = Story("a b", conf=soon())
    story.hears(JobArrived(job("early", 8, estimate_s=1.0), at("a 01234567")))
    story.hears(JobArrived(job("other"), at("b 01234567")))
    story.arrives(job("big", 8, 2), now=1)
    story.hears(PodsEnding("other", (0,)), now=2)

    story.wakes(11)

    assert [*story.engine.reservations["big"].blockers] == ["other", "early"]


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 5, 8])
def test_the_fewest_that_must_end_are_found(n_nodes: int) -> None:
    """Whatever the number, by ever larger steps and halves of the last."""
    nodes = [node(f"n{i}") for i in range(8)]
    story = Story(nodes, conf=soon())
    for i in range(8):
        own = job(f"j{i}", estimate_s=100.0 + i)
        story.hears(JobArrived(own, at(f"n{i} 01234567")))
    story.arrives(job("big", 8, n_nodes))

    story.wakes(10)

    reservation = story.engine.reservations["big"]
    assert [*reservation.blockers] == [f"j{i}" for i in range(n_nodes)]


def test_a_reservation_has_the_shape_of_the_topology() -> None:
    nodes = [node(f"{leaf}{i}", leaf=leaf, slot=i) for leaf in "AB" for i in range(2)]
    story = Story(nodes, conf=soon())
    for i, name in enumerate(["A0", "B0", "B1", "A1"]):
        own = job(name.lower(), estimate_s=100.0 + i)
        story.hears(JobArrived(own, at(f"{name} 01234567")))
    story.arrives(job("pair", 8, 2, tor_affinity=Schema.LARGE_MODEL))

    story.wakes(10)

    assert story.engine.reservations["pair"].nodes == {"B0", "B1"}
    assert story.messages == [
        (
            "job 'pair' has a reservation: leaf 'B' (2 pods); "
            "it waits for 'b0', 'b1' to end"
        )
    ]


def test_a_job_that_would_fit_nowhere_gets_none() -> None:
    story = Story("a", conf=soon())
    story.arrives(job("one"), job("huge", 8, 2))

    assert story.wakes(10) == []
    assert story.wakes(20) == []
    said = story.hears(NodesChanged((node("b"),)), now=30)
    assert said == ["waiting huge", "reserved huge"]  # it is possible now


def test_a_job_that_would_fit_nowhere_is_in_nobodys_way() -> None:
    story = Story("a", conf=soon())
    story.arrives(job("one"))
    story.arrives(job("huge", 8, 2, priority=9), job("small"))

    story.wakes(10)

    assert [*story.engine.reservations] == ["small"]


def test_a_capability_that_is_too_small_gives_none_until_it_grows() -> None:
    story = Story("a b", queues=[queue("q", 8)], conf=soon())
    story.arrives(job("one"), job("two"))
    story.arrives(job("big", 8, 2, queue="q"))

    assert story.wakes(10) == []
    assert "reserved big" in story.hears(QueueChanged(queue("q", 16)), now=11)


def test_two_queues_that_each_want_everything_do_not_wait_forever() -> None:
    """An overdue job is limited by its queue's capability, not by its share."""
    story = Story("a b", queues=[queue("p"), queue("q")], conf=soon())
    story.arrives(job("p", 8, 2, queue="p"), job("q", 8, 2, queue="q"))
    assert story.running == {}

    story.wakes(10)
    running = [*story.running]
    assert len(running) == 1
    story.hears(JobGone(running[0]), now=12)
    story.wakes(40)

    assert len(story.running) == 1


def test_a_reservation_on_a_node_that_changes_is_made_anew() -> None:
    story = busy()
    story.wakes(10)

    said = story.hears(NodesChanged((node("b", cordoned=True),)), now=11)

    assert not story.engine.reservations
    assert said[0] == "waiting big"
    assert "reserved big" in story.hears(NodesChanged((node("b"),)), now=12)


def test_a_reservation_elsewhere_stays_when_a_node_changes() -> None:
    story = busy()
    story.wakes(10)
    before = story.engine.reservations["big"]

    assert story.hears(NodesChanged((node("c", cordoned=True),)), now=11) == []
    assert story.engine.reservations["big"] is before


def test_a_reservation_on_a_node_that_goes_is_no_more() -> None:
    story = busy()
    story.wakes(10)

    story.hears(NodesGone(("b",)), now=11)

    assert not story.engine.reservations


def test_a_job_with_a_reservation_that_is_gone_frees_it() -> None:
    story = busy()
    story.wakes(10)
    story.arrives(job("small", 4), now=11)

    assert story.hears(JobGone("big"), now=12) == ["bind small: 0 on b 4567"]


def test_a_reservation_that_is_free_and_does_not_help_is_given_up() -> None:
    story = busy(queues=[queue("default", 100)])
    story.wakes(10)
    story.hears(QueueChanged(queue("default", 4)), now=11)

    story.hears(JobGone("one"), JobGone("half"), now=12)

    assert not story.engine.reservations
    assert story.hears(QueueChanged(queue("default", 16)), now=13) == [
        "bind big: 0 on a 01234567, 1 on b 01234567"
    ]


def test_a_job_may_start_elsewhere_than_it_has_reserved() -> None:
    story = busy()
    story.wakes(10)

    said = story.hears(NodesChanged((node("c"), node("d"))), now=11)

    assert any(line.startswith("bind big:") for line in said)


def test_a_blocker_of_one_reservation_ends_for_that_one_only() -> None:
    story = Story("a", queues=[queue("p"), queue("q")], conf=soon())
    story.arrives(job("one"))
    story.arrives(job("p", queue="p"), job("q", queue="q"))

    story.wakes(10)

    assert len(story.engine.reservations) == 1


def test_pods_without_chips_are_reserved_too() -> None:
    cpu = Demand(resources=(("cpu", 1000),))
    nodes = [node("a", resources={"cpu": 1000})]
    story = Story(nodes, conf=soon())
    story.arrives(job("one", 4, demand=cpu), job("two", 4, demand=cpu))

    assert story.wakes(10) == ["reserved two"]
    assert story.messages == [
        "job 'two' has a reservation: a; it waits for 'one' to end"
    ]
    assert story.hears(JobGone("one"), now=11) == ["bind two: 0 on a 0123"]


def test_a_running_job_that_lacks_pods_gets_no_reservation() -> None:
    story = Story("a b", conf=soon())
    story.arrives(job("one"), job("j", 8, 2, min_available=1))

    story.wakes(100)

    assert not story.engine.reservations


def test_an_elastic_job_is_reserved_the_pods_it_may_have() -> None:
    story = Story("a b", queues=[queue("q", 8)], conf=soon())
    story.arrives(job("one"), job("two"))
    story.arrives(job("j", 8, 2, min_available=1, queue="q"))

    story.wakes(10)

    assert len(story.engine.reservations["j"].placements) == 1


def test_more_than_three_in_the_way_are_counted() -> None:
    story = Story("a", conf=soon())
    story.arrives(*(job(f"j{i}", 1) for i in range(8)), job("big"))
    story.wakes(10)

    assert story.messages == [
        (
            "job 'big' has a reservation: a; "
            "it waits for 'j0', 'j1', 'j2' and 5 more to end"
        )
    ]


def test_a_reservation_and_a_job_of_its_name_are_two_owners() -> None:
    story = Story("a", conf=soon())
    story.arrives(job("one"), job("two"), job("two (reserved)", 4))
    story.wakes(10)

    owner = story.engine.reservations["two"].owner
    assert str(owner) == "two (reserved)"
    assert isinstance(owner, Hold)


def test_an_overdue_job_gets_a_reservation_though_no_timer_fired() -> None:
    story = Story("a", conf=soon())
    story.arrives(job("one"), job("two"))

    assert story.arrives(job("three", 4), now=50)[-1] != "wake 10"
    assert "two" in story.engine.reservations


def test_waking_without_anything_to_do_says_nothing() -> None:
    story = busy()
    story.wakes(10)

    assert story.hears(TimerFired(), now=20) == []
    assert story.hears(TimerFired(), now=2000) == []


def test_a_pod_of_a_job_in_the_way_that_ends_makes_room() -> None:
    story = Story("a b", conf=soon())
    story.arrives(job("two", 8, 2, min_available=1))
    story.arrives(job("j"))
    story.wakes(10)
    (node_name,) = story.engine.reservations["j"].nodes
    replica = next(
        n for (_j, n), use in story.ledger.pods.items() if use.node == node_name
    )

    said = story.hears(PodsGone("two", (replica,), succeeded=True), now=11)

    assert said == [f"bind j: 0 on {node_name} 01234567"]


@pytest.mark.parametrize("mode", ["fair", "strict"])
def test_small_jobs_do_not_starve_a_big_one(mode: str) -> None:
    story = Story("a b", conf=conf(tiers=PLAIN, allocate={"reservation": mode}))
    story.arrives(*(job(f"s{n}", 4) for n in range(4)))
    story.arrives(BIG)
    for n in range(4, 200):
        story.hears(
            JobGone(f"s{n - 4}"),
            JobArrived(job(f"s{n}", 4)),
            TimerFired(),
            now=10.0 * n,
        )
        if "big" in story.running:
            break

    assert "big" in story.running
    assert story.now <= 400


def test_a_queue_of_unschedulable_jobs_is_checked_when_the_next_is_due() -> None:
    story = Story("a", conf=soon())
    story.arrives(job("one"), job("huge", 8, 2))
    story.arrives(job("young"), now=5)
    assert story.wakes(10) == ["wake 15"]
    assert story.wakes(11) == []
    assert story.wakes(12) == []

    assert story.wakes(15) == ["reserved young"]


def test_a_job_that_uses_the_quota_is_a_blocker() -> None:
    """Though it holds nothing of the place."""
    story = Story("a b", queues=[queue("q", 8)], conf=soon())
    story.hears(JobArrived(job("own", 4, queue="q"), at("b 0123")))
    story.arrives(job("j", 8, queue="q"))

    assert story.wakes(10) == ["reserved j"]
    reservation = story.engine.reservations["j"]
    assert reservation.nodes == {"a"}
    assert [*reservation.blockers] == ["own"]
    assert story.hears(JobGone("own"), now=11) == ["bind j: 0 on a 01234567"]


def test_a_reservation_is_unaffected_by_jobs_that_end_on_other_nodes() -> None:
    story = Story("a b", queues=[queue("p"), queue("q")], conf=soon())
    story.arrives(job("p0", queue="p"), job("q0", queue="q"))
    story.arrives(job("p1", queue="p"), job("q1", queue="q"))
    story.wakes(10)
    assert len(story.engine.reservations) == 2

    said = story.hears(JobGone("p0"), now=11)

    assert len(story.engine.reservations) == 1
    assert sum(line.startswith("bind") for line in said) == 1


def test_a_job_after_an_unschedulable_one_is_helped_in_time() -> None:
    nodes = [node(f"{leaf}{i}", leaf=leaf, slot=i) for leaf in "AB" for i in range(2)]
    story = Story(nodes, queues=[queue("default", 16)], conf=soon())
    story.arrives(job("stuck", 4, 3, tor_affinity=Schema.LARGE_MODEL))
    story.wakes(10)
    story.wakes(11)

    said = story.arrives(job("j"), now=12)
    assert said[-1] == "wake 22"
    story.wakes(22)
    assert "j" in story.running


def test_one_that_has_waited_before_it_was_heard_of_is_overdue_at_once() -> None:
    story = Story("a b", conf=soon())
    story.arrives(job("one"))

    said = story.hears(JobArrived(BIG, waiting_since=-20.0))

    assert "reserved big" in said
    assert story.engine.view.job_states["big"].waiting_since == -20.0


def test_no_job_has_waited_since_later_than_now() -> None:
    story = Story("a", conf=soon())

    story.hears(JobArrived(BIG, waiting_since=99.0), now=5.0)

    assert story.engine.view.job_states["big"].waiting_since == 5.0


def test_where_one_could_start_soonest_is_found_without_reserving_it() -> None:
    story = busy()
    job_state = story.engine.view.job_states["big"]
    free = story.engine.view.cluster.free.tolist()

    found = soonest_start(story.engine.context, job_state)

    assert found is not None
    assert found.nodes == {"a", "b"}
    assert list(found.blockers) == ["one", "half"]
    assert not story.engine.reservations
    assert story.engine.view.cluster.free.tolist() == free
    assert not job_state.pipelined


def test_a_job_that_no_ending_job_would_help_has_no_soonest_start() -> None:
    story = Story("a", conf=soon())
    story.arrives(BIG)

    job_state = story.engine.view.job_states["big"]

    assert soonest_start(story.engine.context, job_state) is None


def test_nothing_is_planned_for_jobs_of_queues_that_do_not_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned: list[str] = []
    monkeypatch.setattr(
        reserve, "_plan", lambda _cycle, job_state: planned.append(job_state.job.name)
    )
    story = Story("a", conf=soon())
    story.arrives(job("one"))
    for i in range(100):
        story.arrives(job(f"j{i}", queue=f"made up {i}"))
        for later in (0.0, 1.0):
            story.wakes(20.0 + 20 * i + later)
        story.hears(JobGone(f"j{i}"))

    assert planned == []
    assert 0 < len(story.engine.context.pending.none_overdue) < 80


def unschedulable(count: int, **changes: Any) -> list[Job]:  # noqa: ANN401 - fields of Job
    """Jobs that each ask for another amount that no node has."""
    return [
        job(f"j{i}", demand=Demand(resources=(("cpu", 1000 + i),)), **changes)
        for i in range(count)
    ]


@pytest.mark.parametrize("mode", ["fair", "strict"])
def test_reservations_are_planned_a_few_in_each_call(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story([node("a", resources={"cpu": 9})], conf=soon(mode))
    story.arrives(job("one"), *unschedulable(50))
    planned: list[str] = []
    real = reserve._plan  # noqa: SLF001

    def plan(ctx: Any, job_state: Any) -> Any:  # noqa: ANN401
        planned.append(job_state.job.name)
        return real(ctx, job_state)

    monkeypatch.setattr(reserve, "_plan", plan)

    said = story.hears(TimerFired(), now=20, most=1)
    first = len(planned)
    assert 0 < first < 50
    assert said == ["wake 20.5"]
    assert story.hears(TimerFired(), now=20.1, most=1) == ["wake 20.5"]
    assert len(planned) == first

    for turn in range(1, 10):
        story.hears(TimerFired(), now=20 + turn / 2, most=1)
    assert sorted(planned) == sorted(f"j{i}" for i in range(50))


def test_a_queue_of_unschedulable_jobs_leaves_reservations_to_others() -> None:
    """Also where nodes change all the time, after which all is planned anew."""
    plain = node("a", resources={"cpu": 9})
    story = Story([plain], queues=[queue("q")], conf=soon())
    story.arrives(job("one"), *unschedulable(50))
    story.arrives(job("late", queue="q"))

    said = story.hears(TimerFired(), now=20, most=1)
    assert "reserved late" not in said
    for turn in range(1, 3):
        changed = node("a", resources={"cpu": 9 + turn})
        said += story.hears(NodesChanged((changed,)), now=20.5 + turn, most=1)

    assert "reserved late" in said
