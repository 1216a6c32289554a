"""A job that enqueue rejected and that fits now starts: no free chip stays idle."""

from collections.abc import Iterable
from typing import Any

import pytest

from ringleaf.engine.event import JobArrived, JobGone, PodsGone
from ringleaf.framework import budget
from ringleaf.framework.budget import COST_REFUSED, COST_TRIED
from ringleaf.framework.instruction import Bind, Evict
from ringleaf.framework.job_state import Phase
from ringleaf.model.cluster import Node
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.placement import Placement
from ringleaf.model.queue import Queue
from tests.engine.story import (
    NPU,
    PREEMPT,
    RECLAIM,
    TIERS,
    Story,
    conf,
    job,
    node,
    queue,
)
from tests.engine.test_mishaps import NEAR

OFF = {"reservation": "off"}
USUAL = "enqueue, allocate, backfill"


def crowd(
    *queues: Queue,
    nodes: str | list[Node] = "a b",
    actions: str = USUAL,
    priority: int = 0,
    demand: Demand = NOTHING,
) -> Story:
    """Two nodes, half of each in use, and an admitted job that needs a whole one.

    What runs and what it needs is all there is; half of that is free.
    """
    story = Story(nodes, queues=queues, conf=conf(actions, TIERS, allocate=OFF))
    story.arrives(job("left", 4, priority=priority), job("gone-1", 4))
    story.arrives(job("right", 4, priority=priority), job("gone-2", 4))
    story.hears(JobGone("gone-1"), JobGone("gone-2"))
    whole = job("whole", 8, priority=priority, demand=demand)
    assert story.arrives(whole)[0] == "waiting whole"
    assert story.phase("whole") is Phase.INQUEUE
    return story


def podless(name: str, amount: int, resource: str = NPU, **changes: Any) -> Job:  # noqa: ANN401
    """A job whose pods are made when it is admitted."""
    asks = Demand(resources=((resource, 1000 * amount),))
    roles = (Role("", 0, demand=asks),)
    return job(name, 0, 1, podless=True, roles=roles, **changes)


def test_a_job_that_fits_starts_although_admitted_jobs_fill_the_cluster() -> None:
    story = crowd()

    assert story.arrives(job("small", 4)) == ["bind small: 0 on a 4567"]
    assert "small" in story.engine.admitted
    assert story.arrives(job("tiny", 2), job("large", 4)) == [
        "bind tiny: 0 on b 45",
        "waiting large",
    ]
    assert story.messages == [
        (
            "job 'large' waits: needs 1 x 4 chips; not admitted: running and "
            "admitted jobs fill the cluster: 12 of 16 chips used, 8 kept for other "
            "jobs, job wants 4"
        )
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


def test_an_admitted_job_starts_before_a_rejected_one() -> None:
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


def test_a_queue_that_uses_its_share_starts_no_job() -> None:
    queues = Queue("p"), Queue("q")
    story = Story("a b", queues=queues, conf=conf(allocate=dict(OFF)))
    story.arrives(job("one", 8, queue="q"), job("pair", 8, 2, queue="p"))
    story.arrives(job("next", 8, queue="q"))
    assert story.phase("next") is Phase.INQUEUE

    assert story.arrives(job("last", 8, queue="q"))[0] == "waiting last"
    assert story.phase("last") is Phase.PENDING


def test_a_job_that_needs_more_than_the_rest_of_its_queues_share_waits() -> None:
    queues = Queue("p"), Queue("q")
    story = Story("a b", queues=queues, conf=conf(allocate=dict(OFF)))
    story.arrives(job("one", 4, queue="q"), job("pair", 8, 2, queue="p"))
    story.arrives(job("next", 8, queue="q"))
    assert story.phase("next") is Phase.INQUEUE

    assert story.arrives(job("last", 8, queue="q"))[0] == "waiting last"
    assert story.arrives(job("small", 4, queue="q")) == ["bind small: 0 on a 4567"]


def test_a_job_without_all_its_pods_is_not_tried() -> None:
    story = crowd()

    assert story.arrives(job("half", 2, min_available=2))[0] == "waiting half"
    assert story.phase("half") is Phase.PENDING


def test_a_job_that_ends_in_time_uses_what_another_has_reserved() -> None:
    story = Story("a b", conf=conf(USUAL, TIERS))
    story.arrives(job("left", 4, estimate_s=900), job("right", 8, estimate_s=900))
    story.arrives(job("large", 8, 2))
    story.wakes(300)
    assert "large" in story.engine.reservations
    story.arrives(job("eight", 8))
    assert story.phase("eight") is Phase.PENDING

    said = story.arrives(job("short", 4, estimate_s=60), now=310)
    assert said == ["bind short: 0 on a 4567"]
    assert story.arrives(job("long", 2), now=320)[0] == "waiting long"


def test_a_cycle_that_is_cut_short_tries_rejected_jobs_in_the_next() -> None:
    story = crowd()
    events = [JobArrived(job(name, 4)) for name in ("one", "two")]

    first = story.engine.handle_all(events, 1, max_binds=1)
    assert [each.job for each in first if isinstance(each, Bind)] == ["one"]
    assert story.engine.has_more
    second = story.engine.handle_all([], 1, max_binds=1)
    assert [each.job for each in second if isinstance(each, Bind)] == ["two"]


def test_without_allocate_a_rejected_job_gets_a_reason() -> None:
    story = Story("a", conf=conf("enqueue"))

    assert story.arrives(job("one"), job("two")) == ["waiting two", "waiting one"]
    assert story.phase("two") is Phase.PENDING


def test_pods_are_made_for_a_job_if_so_many_chips_are_free() -> None:
    story = crowd()

    story.arrives(podless("small", 4))
    assert story.engine.admitted == ["small"]
    story.arrives(podless("next", 4))
    assert story.engine.admitted == ["next"]
    assert story.arrives(podless("last", 4))[0] == "waiting last"
    assert story.phase("last") is Phase.PENDING


def test_chips_are_kept_for_an_admitted_job_that_has_no_pods_yet() -> None:
    story = Story("a b", conf=conf(USUAL, TIERS))
    story.arrives(podless("first", 16))
    assert story.engine.admitted == ["first"]

    assert story.arrives(job("small", 4))[0] == "waiting small"
    assert story.phase("small") is Phase.PENDING


def test_a_job_admitted_early_that_cannot_start_keeps_others_rejected() -> None:
    story = crowd()
    story.arrives(podless("wide", 8))
    assert story.engine.admitted == ["wide"]

    assert story.arrives(job("wide", 8))[0] == "waiting wide"
    story.arrives(podless("next", 4))
    assert story.phase("next") is Phase.PENDING


def test_pods_are_made_for_no_job_that_its_queue_turns_away() -> None:
    story = crowd(queue("default", 16))
    story.arrives(podless("small", 4))
    assert story.engine.admitted == ["small"]

    limited = Story("a b", queues=[queue("default", 8)], conf=conf(USUAL, TIERS))
    limited.arrives(job("one", 8))
    limited.arrives(podless("two", 4))
    assert limited.phase("two") is Phase.PENDING


def test_a_rejected_short_job_uses_what_another_has_reserved() -> None:
    story = Story("a b", conf=conf(USUAL, TIERS))
    story.arrives(job("left", 4, estimate_s=900), job("right", 8, estimate_s=900))
    story.arrives(job("large", 8, 2))
    story.wakes(300)
    story.arrives(job("eight", 8))
    said = story.arrives(job("first", 2), job("short", 4, estimate_s=60), now=310)

    assert "bind short: 0 on a 4567" in said
    assert story.phase("first") is not Phase.RUNNING


def test_of_one_request_the_first_job_that_ends_in_time_is_admitted() -> None:
    """Jobs that differ only in their running time are one class while rejected."""
    story = Story("a b", conf=conf(USUAL, TIERS))
    story.arrives(job("left", 4, estimate_s=900), job("right", 8, estimate_s=900))
    story.arrives(job("large", 8, 2))
    story.wakes(300)
    story.arrives(job("eight", 8), job("four", 4))
    assert story.phase("four") is Phase.INQUEUE

    said = story.arrives(
        job("slow", 4),
        job("late", 4, estimate_s=700),
        job("short-1", 4, estimate_s=60),
        job("short-2", 4, estimate_s=50),
        now=310,
    )

    assert [each for each in said if each.startswith("bind")] == [
        "bind short-1: 0 on a 4567"
    ]
    unadmitted = story.engine.context.pending.unadmitted
    assert unadmitted.by_job["slow"] is unadmitted.by_job["short-2"]
    said = story.hears(JobGone("short-1"), now=320)
    assert "bind short-2: 0 on a 4567" in said
    story.hears(JobGone("short-2"), now=330)
    assert story.phase("slow") is story.phase("late") is Phase.PENDING
    said = story.arrives(job("short-3", 4, estimate_s=40), now=340)
    assert "bind short-3: 0 on a 4567" in said


def test_rejected_jobs_are_admitted_in_job_order_whatever_they_request() -> None:
    story = crowd()
    jobs = job("x1", 4, priority=10), job("x2", 4), job("y1", 2, priority=5)

    assert story.arrives(*jobs)[:2] == ["bind x1: 0 on a 4567", "bind y1: 0 on b 45"]
    assert story.phase("x2") is Phase.PENDING


def test_rejected_jobs_are_tried_although_the_cycle_was_cut_short() -> None:
    story = Story("a b c", conf=conf(USUAL, TIERS, allocate=OFF))
    for name in "abc":
        story.arrives(job(f"runs-{name}", 4), job(f"gone-{name}", 4))
    story.hears(*(JobGone(f"gone-{name}") for name in "abc"))
    jobs = job("one", 2), job("two", 1), job("whole", 8), job("four", 4)

    bound = [*story.engine.handle_all([*map(JobArrived, jobs)], 1, max_binds=1)]
    while story.engine.has_more:
        bound += story.engine.handle_all([], 1, max_binds=1)

    assert [b.job for b in bound if isinstance(b, Bind)] == ["one", "two", "four"]


def test_victims_are_looked_for_although_the_cycle_was_cut_short() -> None:
    queues = Queue("p"), Queue("q")
    story = Story("a b c d", queues=queues, conf=conf(RECLAIM, allocate=OFF))
    story.arrives(*(job(f"q{n}", 8, queue="q") for n in range(3)))
    story.arrives(job("p0", 4, queue="p"))
    high = job("high", 8, queue="p", priority=5)
    jobs = high, job("one", 1, queue="p"), job("two", 2, queue="p")

    said = [*story.engine.handle_all([*map(JobArrived, jobs)], 100, max_binds=1)]
    while story.engine.has_more:
        said += story.engine.handle_all([], 100, max_binds=1)

    assert [each.by for each in said if isinstance(each, Evict)] == ["high"]


def test_a_gang_of_which_a_pod_has_finished_needs_no_place_for_that() -> None:
    story = crowd()
    story.arrives(job("gang", 4, 2, min_available=2))
    story.hears(PodsGone("gang", (0,), succeeded=True))
    story.arrives(job("other", 4))

    assert story.hears(PodsGone("gang", (1,))) == ["bind gang: 1 on b 4567"]


def test_a_rejected_job_with_pod_affinity_starts_when_its_peer_does() -> None:
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    story = crowd(nodes=nodes)
    assert story.arrives(job("fan", 2, demand=NEAR))[0] == "waiting fan"

    star = job("star", 2, demand=Demand(labels=(("app", "x"),)))
    assert story.arrives(star) == ["bind star: 0 on a 45", "bind fan: 0 on a 67"]


def test_of_jobs_that_differ_only_in_their_estimates_one_is_tried() -> None:
    """A pair must stand under one leaf, and under each one node is free."""
    nodes = [node(f"{leaf}{i}", leaf=leaf, slot=i) for leaf in "AB" for i in range(2)]
    story = Story(nodes, conf=conf(USUAL, TIERS, allocate=OFF))
    story.arrives(job("one", 8), job("two", 8), job("gone-1", 8), job("gone-2", 8))
    held = {p.node for name in ("one", "two") for p in _places(story, name)}
    assert {name[0] for name in held} == {"A"}
    story.hears(JobGone("one"), JobGone("gone-1"))
    pairs = [
        job(name, 8, 2, tor_affinity=Schema.LARGE_MODEL, estimate_s=estimate)
        for name, estimate in (("admitted", None), ("t1", 10.0), ("t2", 20.0))
    ]

    story.arrives(*pairs)

    assert story.phase("admitted") is Phase.INQUEUE
    assert [story.phase(name) for name in ("t1", "t2")] == [Phase.PENDING] * 2
    story.hears(JobGone("two"))
    assert story.phase("admitted") is Phase.RUNNING


def _places(story: Story, name: str) -> Iterable[Placement]:
    return story.engine.view.job_states[name].placements.values()


def test_a_job_without_pods_that_a_plugin_rejects_is_not_admitted() -> None:
    story = Story("a b", queues=[queue("default", 8)], conf=conf(USUAL, TIERS))
    story.arrives(job("one", 8))

    story.arrives(podless("next", 4))
    assert story.phase("next") is Phase.PENDING


def test_a_job_without_pods_is_not_admitted_above_its_queues_share() -> None:
    story = Story("a b", queues=(Queue("p"), Queue("q")), conf=conf(allocate=OFF))
    story.arrives(job("q1", 4, queue="q"))
    story.arrives(job("gang", 8, 2, queue="p"))
    story.arrives(job("q2", 8, queue="q"))
    assert story.phase("q2") is Phase.INQUEUE

    story.arrives(podless("q3", 8, queue="q"))
    assert story.phase("q3") is Phase.PENDING
    story.arrives(podless("p2", 8, queue="p"))
    assert story.phase("p2") is Phase.INQUEUE


def test_a_job_that_waits_for_its_queues_share_occupies_no_free_chips() -> None:
    story = Story("a b", queues=(Queue("p"), Queue("q")), conf=conf(allocate=OFF))
    story.arrives(job("q1", 8, queue="q"))
    story.arrives(job("gang", 8, 2, queue="p"))
    story.arrives(job("q2", 8, queue="q"))
    assert story.phase("q2") is Phase.INQUEUE

    story.arrives(podless("p2", 8, queue="p"))
    assert story.phase("p2") is Phase.INQUEUE


def test_a_started_job_that_others_may_evict_keeps_no_job_rejected() -> None:
    story = crowd(actions=PREEMPT, priority=5)

    story.arrives(job("tiny", 1), podless("next", 1))
    assert story.phase("next") is Phase.INQUEUE


def test_a_job_admitted_early_that_returns_later_is_like_other_jobs() -> None:
    story = crowd()
    story.arrives(podless("early", 4))
    assert story.arrives(job("early", 4)) == ["bind early: 0 on a 4567"]
    story.hears(JobGone("whole"))
    story.hears(PodsGone("early", (0,)), JobArrived(job("early", 8)))
    assert story.phase("early") is Phase.INQUEUE

    story.arrives(podless("next", 4))
    assert story.phase("next") is Phase.INQUEUE


def test_of_what_is_free_only_what_a_job_asks_matters() -> None:
    nodes = [node(name, resources={"cpu": 16_000}) for name in "ab"]
    story = crowd(nodes=nodes, demand=Demand(resources=(("cpu", 30_000),)))
    story.arrives(podless("wide", 8))
    story.arrives(job("wide", 8))
    story.arrives(job("taker", 4))

    story.arrives(podless("helper", 4, "cpu"))
    assert story.phase("helper") is Phase.INQUEUE


def test_no_pod_is_evicted_for_a_place_that_the_quota_forbids() -> None:
    """What others of the queue have reserved counts: else it is tried for ever."""
    waits = {"reservation": "fair", "reservation-after-seconds": 60}
    queues = [queue("default", 16)]
    story = Story(
        "a b c d e f", queues=queues, conf=conf(PREEMPT, TIERS, allocate=waits)
    )
    story.arrives(job("first", 4, 3, min_available=3), now=46)
    urgent = job("urgent", 4, 3, min_available=2, priority=5, estimate_s=50.0)
    story.arrives(job("low", 2), urgent, job("trio", 2, 3, priority=5), now=142)
    story.arrives(job("late", 4, priority=5), now=147)
    story.arrives(job("small", 1, 3, priority=5, estimate_s=50.0), now=207)
    story.arrives(job("gone", 1, priority=5), now=208)

    assert story.hears(JobGone("gone"), now=306) == []
    assert story.wakes(307) == []


def test_what_is_reserved_is_not_free_for_pods_that_are_to_be_made() -> None:
    story = Story("a b c d", conf=conf(USUAL, TIERS))
    story.arrives(job("one", 8), job("two", 8), job("half", 4))
    story.arrives(job("large", 8, 2))
    story.wakes(300)
    assert "large" in story.engine.reservations
    story.arrives(job("whole", 8))
    story.arrives(podless("first", 4))
    assert [story.phase(n) for n in ("whole", "first")] == [Phase.INQUEUE] * 2

    story.arrives(podless("next", 4))
    assert story.phase("next") is Phase.PENDING


def test_several_jobs_without_pods_are_admitted_in_one_call() -> None:
    story = crowd()
    arrivals = [JobArrived(podless("small", 4)), JobArrived(podless("other", 2))]

    story.hears(*arrivals)

    assert story.engine.admitted == ["small", "other"]


def test_a_call_tries_a_few_rejected_jobs_and_the_next_call_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "TRIES", COST_TRIED + COST_REFUSED)
    story = crowd()
    asks = [Demand(resources=(("cpu", 1000 + i),)) for i in range(4)]
    arrivals = [JobArrived(job(f"j{i}", 4, demand=ask)) for i, ask in enumerate(asks)]

    story.hears(*arrivals, most=64)
    assert story.engine.has_more
    while story.engine.has_more:
        story.hears(most=64)

    phases = [story.phase(f"j{i}") for i in range(4)]
    assert phases == [Phase.RUNNING] * 2 + [Phase.PENDING] * 2
