"""Preempt: jobs evict others of their queue. One test a sentence of Volcano's."""

from typing import Any

import pytest

from ringleaf.actions.evict import add_outranking
from ringleaf.config.conf import RefusedConf
from ringleaf.config.reader import read_conf
from ringleaf.engine.event import (
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodsEnding,
    PodsGone,
    QueueGone,
    TimerFired,
)
from ringleaf.framework.budget import InterruptedSearch
from ringleaf.framework.job_state import Phase
from ringleaf.framework.search_order import SearchOrder
from ringleaf.model.demand import Demand, Operator, Requirement
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from tests.engine.story import PREEMPT, Story, at, conf, job, node, queue

CONF = conf(PREEMPT)
LOW = job("low", priority=1)
HIGH = job("high", priority=5)

VICTIMS = [
    pytest.param(LOW, HIGH, True, id="a job evicts those of lower priority"),
    pytest.param(LOW, job("high", priority=1), False, id="not those of the same"),
    pytest.param(
        job("low", priority=1, preemptable=False),
        HIGH,
        False,
        id="not those that are not preemptable",
    ),
    pytest.param(
        job("low", priority=1, critical=True), HIGH, False, id="not those of the system"
    ),
    pytest.param(
        LOW,
        job("high", priority=5, preempts=False),
        False,
        id="a job whose policy is Never evicts no pod",
    ),
    pytest.param(
        job("low", priority=1, queue="p"), HIGH, False, id="not those of another queue"
    ),
    pytest.param(
        LOW,
        job("high", 8, 2, priority=5),
        False,
        id="no pod where it would not suffice",
    ),
    pytest.param(
        job("low", 4, priority=1),
        job("high", 4, priority=5),
        False,
        id="no pod where there is room",
    ),
]


@pytest.mark.parametrize(("old", "new", "evicts"), VICTIMS)
def test_whether_a_job_preempts_another(old: Job, new: Job, *, evicts: bool) -> None:
    story = Story("a", queues=[queue("p")], conf=CONF)
    story.arrives(old)

    said = story.arrives(new, now=1)

    assert ("evict low: 0 for high (preempt)" in said) == evicts


def test_the_place_is_kept_until_the_victims_are_gone() -> None:
    """The preemptor is pipelined; here its place lasts until it is redeemed."""
    story = Story("a", conf=CONF)
    story.arrives(LOW)

    assert story.arrives(HIGH, now=1)[1:4] == [
        "evicts high",
        "reserved high",
        "evict low: 0 for high (preempt)",
    ]
    story.arrives(job("equal", priority=5), now=2)
    said = story.hears(PodsGone("low", (0,)), now=3)
    assert "bind high: 0 on a 01234567" in said


def test_no_job_is_bound_and_evicted_in_one_cycle() -> None:
    story = Story("a", conf=CONF)
    story.arrives(LOW)
    story.arrives(HIGH, now=1)
    story.arrives(job("higher", priority=9), now=2)

    said = story.hears(PodsGone("low", (0,)), now=3)

    assert not {"bind high: 0 on a 01234567", "evict high: 0 for higher (preempt)"} <= {
        *said
    }


def test_a_job_that_is_being_bound_is_not_evicted() -> None:
    """Nor in the next call, if that comes at once."""
    story = Story("a", conf=CONF)
    story.arrives(LOW)

    assert evictions(story.arrives(HIGH, now=0.9)) == []

    said = story.hears(TimerFired(), now=1)
    assert evictions(said) == ["evict low: 0 for high (preempt)"]


def test_a_job_that_is_not_admitted_evicts_when_other_pods_are_asked_to_end() -> None:
    """The search for victims is repeated: what ends is as good as free."""
    story = Story("a b", conf=CONF)
    story.arrives(job("rock", preemptable=False), LOW)
    assert evictions(story.arrives(job("high", 8, 2, priority=5), now=2)) == []
    assert story.phase("high") is Phase.PENDING

    said = story.hears(PodsEnding("rock", (0,)), now=3)

    assert evictions(said) == ["evict low: 0 for high (preempt)"]


def test_victims_and_lost_chip_seconds_are_reported() -> None:
    story = Story("a", conf=CONF)
    story.arrives(LOW)
    story.arrives(HIGH, now=10)

    assert story.messages[1:] == [
        "job 'high' will evict 1 pod of 'low'; 80 chip-seconds are lost",
        "job 'high' has a reservation: a; it waits for 'low' to end",
    ]


def test_more_than_four_victims_are_counted() -> None:
    story = Story("a", conf=CONF)
    story.arrives(*(job(f"low{n}", 1, priority=1) for n in range(8)))
    story.arrives(HIGH, now=1)

    assert (
        "8 pods of 'low7', 'low6', 'low5', 'low4' and 4 more; 8 chip"
        in story.messages[1]
    )


def test_a_gang_goes_whole() -> None:
    story = Story("a b", conf=CONF)
    story.arrives(job("low", 8, 2, priority=1))

    assert "evict low: 0,1 for high (preempt)" in story.arrives(HIGH, now=1)


def test_pods_beyond_those_that_must_run_together_go_first() -> None:
    story = Story("a b", conf=CONF)
    story.arrives(job("low", 8, 2, min_available=1, priority=1))

    said = story.arrives(HIGH, now=1)

    assert "evict low: 1 for high (preempt)" in said or (
        "evict low: 0 for high (preempt)" in said
    )
    assert "'low' (surplus)" in story.messages[1]


def test_the_fewest_pods_go() -> None:
    story = Story("a b c", conf=CONF)
    story.arrives(*(job(f"s{n}", 4, priority=1) for n in range(2)))
    story.arrives(job("one", 8, priority=1))
    story.arrives(job("two", 4, 2, priority=1))

    said = story.arrives(HIGH, now=1)

    assert [s for s in said if s.startswith("evict ")] == [
        "evict one: 0 for high (preempt)"
    ]


def test_pods_are_evicted_only_where_the_whole_job_then_fits_its_topology() -> None:
    nodes = [node(f"{leaf}{i}", leaf=leaf, slot=i) for leaf in "AB" for i in range(2)]
    story = Story(nodes, conf=CONF)
    for place in ("A0", "A1", "B0", "B1"):
        low = job(place.lower(), priority=1, preemptable=place != "A0")
        story.hears(JobArrived(low, at(f"{place} 01234567")))

    said = story.arrives(
        job("high", 8, 2, tor_affinity=Schema.LARGE_MODEL, priority=5), now=1
    )

    assert {s for s in said if s.startswith("evict ")} == {
        "evict b0: 0 for high (preempt)",
        "evict b1: 0 for high (preempt)",
    }


def test_a_job_runs_for_a_while_before_it_goes() -> None:
    story = Story("a", conf=conf(PREEMPT, preempt={"min-run-seconds": 60}))
    story.arrives(LOW)

    assert story.arrives(HIGH, now=10) == ["waiting high", "wake 60"]
    assert story.wakes(59) == []
    assert "evict low: 0 for high (preempt)" in story.wakes(60)


def test_a_preview_reports_victims_and_evicts_no_pod() -> None:
    story = Story("a", conf=conf(PREEMPT, preempt={"preview": True}))
    story.arrives(LOW)

    said = story.arrives(HIGH, now=10)

    assert said[:2] == ["waiting high", "would-evict high"]
    assert "would evict 1 pod of 'low'" in story.messages[1]
    assert not any(line.startswith("evict ") for line in said)
    assert not story.engine.reservations


def test_a_preview_is_reported_once() -> None:
    story = Story("a", conf=conf(PREEMPT, preempt={"preview": True}))
    story.arrives(LOW)
    story.arrives(HIGH, now=10)

    assert story.wakes(11) == []


def test_a_preview_is_reported_once_though_the_search_is_repeated() -> None:
    story = Story("a b", conf=conf(PREEMPT, preempt={"preview": True}))
    story.arrives(LOW, job("rock", 4, preemptable=False), job("tiny", 2))
    assert "would-evict high" in story.arrives(HIGH, now=10)

    assert story.hears(JobGone("tiny"), now=11) == []


def test_a_preview_of_other_pods_of_the_same_job_is_no_news() -> None:
    story = Story("a b c", conf=conf(PREEMPT, preempt={"preview": True}))
    story.arrives(job("low", 8, 3, min_available=1))
    assert "would-evict high" in story.arrives(HIGH, now=10)

    said = story.hears(NodesGone(("c",)), now=10)
    assert "would-evict high" not in said


def test_a_victim_does_not_evict_its_evictor() -> None:
    story = Story("a", conf=CONF)
    story.arrives(LOW)
    story.arrives(HIGH, now=1)
    story.carry_out(now=2)
    assert story.running == {"high": [0]}

    said = story.arrives(job("low", priority=9), now=3)

    assert not any(line.startswith("evict ") for line in said)


def test_no_job_is_evicted_twice_while_no_job_arrives() -> None:
    story = Story("a b", conf=conf(PREEMPT, (("priority", "gang"), ("predicates",))))
    story.arrives(LOW, job("rock", preemptable=False))
    story.arrives(HIGH, job("wide", 8, 2, priority=4), now=1)
    story.carry_out(now=2)
    story.hears(JobGone("rock"), now=3)
    assert story.running == {"high": [0], "low": [0]}

    said = story.hears(JobGone("high"), now=4)
    assert not any(line.startswith("evict ") for line in said)

    said = story.arrives(job("another", 8, 3), now=5)
    assert "evict low: 0 for wide (preempt)" in said


def test_pods_that_are_ending_anyway_count_before_others_are_evicted() -> None:
    story = Story("a b", conf=CONF)
    story.arrives(LOW, job("other", priority=1))
    story.arrives(HIGH, now=1)
    story.hears(JobGone("high"), now=2)

    said = story.arrives(job("high2", priority=5), now=3)

    assert not any(line.startswith("evict ") for line in said)
    assert "high2" in story.engine.reservations


def test_a_reservation_elsewhere_stays_when_a_higher_job_evicts() -> None:
    """Also one of which the higher job could have made use."""
    soon = {"reservation": "fair", "reservation-after-seconds": 10}
    nodes = [node("a"), node("b", labels={"x": "1"})]
    story = Story(nodes, conf=conf(PREEMPT, allocate=soon))
    there = Demand(required=(Requirement("x", Operator.EXISTS),))
    elsewhere = Demand(required=(Requirement("x", Operator.DOES_NOT_EXIST),))
    story.arrives(
        job("rock", priority=1, demand=elsewhere, preemptable=False),
        job("low", priority=1, demand=there),
    )
    story.arrives(job("mid", priority=3, demand=elsewhere))
    assert story.wakes(10) == ["reserved mid"]

    said = story.arrives(job("high", priority=5, demand=there), now=11)

    assert evictions(said) == ["evict low: 0 for high (preempt)"]
    assert {*story.engine.reservations} == {"mid", "high"}


def test_a_job_of_a_queue_that_is_gone_evicts_no_pod() -> None:
    story = Story("a", queues=[queue("q")], conf=CONF)
    story.arrives(job("low", priority=1, queue="q"))
    story.hears(QueueGone("q"))

    said = story.arrives(job("high", priority=5, queue="q"), now=1)

    assert not any(line.startswith("evict ") for line in said)


def test_a_job_that_outranks_the_first_job_of_its_class_evicts() -> None:
    story = Story("a", conf=CONF)
    story.arrives(LOW)
    story.arrives(job("mid", priority=1), now=1)

    assert "evict low: 0 for high (preempt)" in story.arrives(HIGH, now=2)


def test_a_job_that_can_evict_no_pod_is_in_the_way_of_no_other() -> None:
    story = Story("a b", conf=CONF)
    story.arrives(LOW, job("rock", priority=1, preemptable=False))
    story.arrives(job("big", 8, 2, priority=9), now=1)

    said = story.arrives(HIGH, now=2)

    assert "evict low: 0 for high (preempt)" in said


def test_several_jobs_of_a_class_may_evict_at_once() -> None:
    story = Story("a b", conf=CONF)
    story.arrives(LOW, job("low2", priority=1))

    said = story.arrives(HIGH, job("high2", priority=5), now=1)

    assert [s for s in said if s.startswith("evict ")] == [
        "evict low: 0 for high (preempt)",
        "evict low2: 0 for high2 (preempt)",
    ]


def test_an_elastic_job_that_has_enough_pods_evicts_no_pod() -> None:
    """Starving: fewer pods than must start together."""
    story = Story("a b", conf=CONF)
    story.arrives(LOW)
    story.arrives(job("high", 8, 2, min_available=1, priority=5))

    assert not any(line.startswith("evict ") for line in story.wakes(5))
    assert story.running == {"low": [0], "high": [0]}


def test_a_gang_that_lost_a_pod_evicts_no_pod() -> None:
    story = Story("a b", conf=CONF)
    story.arrives(job("high", 8, 2, priority=5))
    story.hears(
        PodsGone("high", (1,)),
        JobArrived(LOW, at("b 01234567")),
        now=1,
    )

    assert not any(line.startswith("evict ") for line in story.wakes(9))
    assert story.running == {"low": [0], "high": [0]}


FLAGS: list[Any] = [
    pytest.param({"name": "priority"}, True, id="by default priority decides"),
    pytest.param(
        {"name": "priority", "enablePreemptable": False}, True, id="it may be silenced"
    ),
    pytest.param(
        {"name": "priority", "enableJobStarving": False}, True, id="gang knows it too"
    ),
]


@pytest.mark.parametrize(("priority", "evicts"), FLAGS)
def test_flags(priority: dict[str, Any], *, evicts: bool) -> None:
    tiers = ((priority, "gang", "conformance"), ("predicates", "proportion"))
    story = Story("a", conf=conf(PREEMPT, tiers))
    story.arrives(LOW)

    assert ("evict low: 0 for high (preempt)" in story.arrives(HIGH, now=1)) == evicts


def test_without_a_plugin_that_knows_starving_jobs_no_pod_is_evicted() -> None:
    tiers = (("conformance",), ("predicates", "proportion"))
    story = Story("a", conf=conf(PREEMPT, tiers))
    story.arrives(LOW)

    assert story.arrives(HIGH, now=1)[0] == "waiting high"
    assert not story.engine.reservations


def test_a_job_that_requests_nothing_evicts_no_pod() -> None:
    roles = (Role("helper", 0),)
    story = Story([node("a", cordoned=True)], conf=CONF)
    story.hears(JobArrived(LOW, at("a 01234567")))

    said = story.arrives(job("high", 0, 0, roles=roles, priority=9), now=1)

    assert said[0] == "waiting high"
    assert not any(line.startswith("evict ") for line in said)


def test_volcanos_other_actions_are_refused() -> None:
    for action in ("gangpreempt", "gangreclaim", "shuffle"):
        found = read_conf({"actions": f"enqueue, allocate, {action}"})
        assert isinstance(found, RefusedConf)
        assert action in found.problems[0].text


def test_an_unknown_plugin_is_an_error() -> None:
    found = read_conf({"tiers": [{"plugins": [{"name": "gnag"}]}]})

    assert isinstance(found, RefusedConf)


def evictions(said: list[str]) -> list[str]:
    return [line for line in said if line.startswith("evict ")]


@pytest.mark.parametrize(
    ("mode", "goes"),
    [
        pytest.param("strict", False, id="strictly nothing delays a reservation"),
        pytest.param(
            "fair", True, id="a job that outranks a reservation goes before it"
        ),
    ],
)
def test_whether_blockers_of_another_reservation_are_evicted(
    mode: str,
    goes: bool,  # noqa: FBT001
) -> None:
    arguments = {"reservation": mode, "reservation-after-seconds": 10}
    story = Story("a", conf=conf(PREEMPT, allocate=arguments))
    story.arrives(job("low", priority=1))
    story.arrives(job("equal", priority=1), now=1)
    assert "reserved equal" in story.wakes(11)

    gone = evictions(story.arrives(job("high", priority=5), now=12))
    assert gone == ["evict low: 0 for high (preempt)"] * goes
    assert ("equal" in story.engine.reservations) is not goes


def test_a_job_with_a_reservation_still_evicts_when_it_may() -> None:
    arguments = {"reservation-after-seconds": 10}
    old = {"min-run-seconds": 60}
    story = Story("a", conf=conf(PREEMPT, allocate=arguments, preempt=old))
    story.arrives(job("low"))
    story.arrives(job("high", priority=5), now=1)
    assert "reserved high" in story.wakes(11)

    said = story.wakes(60)
    assert evictions(said) == ["evict low: 0 for high (preempt)"]
    assert story.carry_out(now=61)[0] == "bind high: 0 on a 01234567"


def test_pods_that_a_role_cannot_do_without_stay_unless_all_go() -> None:
    roles = (
        Role("chief", 4, 1, min_available=1),
        Role("worker", 4, 3, min_available=1),
    )
    story = Story("a b", conf=CONF)
    story.arrives(job("low", 4, 4, roles=roles, min_available=2, priority=1))
    story.hears(NodesChanged((node("b"),)), now=1)

    said = story.arrives(job("high", 8, priority=5), now=2)

    (line,) = evictions(said)
    assert line == "evict low: 2,3 for high (preempt)"


def test_pods_ending_for_no_job_are_used_by_a_job_that_evicts() -> None:
    story = Story("a b", conf=CONF)
    story.arrives(job("one", priority=1), job("two", priority=1))
    story.hears(PodsEnding("one", (0,)), now=1)

    said = story.arrives(job("high", 8, 2, priority=5), now=2)

    assert evictions(said) == ["evict two: 0 for high (preempt)"]
    story.hears(PodsGone("one", (0,)), PodsGone("two", (0,)), now=3)
    assert story.running["high"] == [0, 1]


def test_the_next_job_of_a_class_waits_for_other_pods_that_are_ending() -> None:
    story = Story("a b c", conf=CONF)
    story.arrives(*(job(f"low{n}", priority=1) for n in range(3)))
    story.hears(PodsEnding("low0", (0,)), PodsEnding("low1", (0,)), now=1)

    said = story.arrives(HIGH, job("high2", priority=5), now=2)

    assert evictions(said) == []
    assert {*story.engine.reservations} == {"high", "high2"}


def test_a_job_that_starts_below_a_pending_one_is_a_candidate() -> None:
    """A closed equivalence class opens again when a job of lower priority starts."""
    story = Story("a b", conf=conf(PREEMPT, (("priority", "gang"), ("predicates",))))
    story.arrives(job("rock", preemptable=False, priority=9))
    story.hears(NodesChanged((node("b", ready=False),)), now=1)
    story.arrives(HIGH, now=2)
    story.hears(JobArrived(LOW, at("b 01234567")), now=3)

    said = story.hears(NodesChanged((node("b"),)), now=4)

    assert evictions(said) == ["evict low: 0 for high (preempt)"]


def test_a_search_that_was_interrupted_goes_on_with_those_that_were_found_since() -> (
    None
):
    story = Story("a", conf=conf(PREEMPT, (("priority", "gang"), ("predicates",))))
    story.arrives(job("rock", preemptable=False, priority=9))
    story.arrives(HIGH)
    ctx = story.engine.context
    (line,) = ctx.pending.admitted.classes
    ctx.victim_search.resume = InterruptedSearch("preempt", SearchOrder(()), set())
    ctx.victim_search.outranked_now(LOW)

    add_outranking(ctx)

    assert [*ctx.victim_search.failed_for_next_search] == [line]
    assert not ctx.victim_search.outranked
