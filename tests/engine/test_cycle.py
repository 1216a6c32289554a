"""One job is tried: its quota, the reservations of others, the plugins' last word."""

import pytest

from ringleaf.actions.evict import VictimSearch
from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    JobArrived,
    JobGone,
    NodesChanged,
    PodsEnding,
    TimerFired,
)
from ringleaf.framework.instruction import Bind, Report
from ringleaf.framework.job_state import JobState
from ringleaf.framework.plugin import Plugin, Vote
from ringleaf.model.demand import Demand, PodTerm
from ringleaf.model.job import Job
from ringleaf.model.job_labels import Schema
from ringleaf.model.queue import Queue
from tests.engine.story import NPU, PREEMPT, Story, at, conf, job, node, queue

QUOTAS = [
    pytest.param(100, 5, 1, 5, id="all pods where all may run"),
    pytest.param(5, 5, 1, 5, id="on the dot"),
    pytest.param(4, 5, 1, 4, id="fewer where fewer may"),
    pytest.param(3, 9, 2, 3, id="found by halves"),
    pytest.param(2, 9, 2, 2, id="down to those that must start together"),
    pytest.param(1, 9, 2, None, id="and no fewer"),
    pytest.param(4, 5, None, None, id="a gang has no fewer"),
]


@pytest.mark.parametrize(("most", "pods", "least", "want"), QUOTAS)
def test_how_many_pods_may_run(
    most: int, pods: int, least: int | None, want: int | None
) -> None:
    story = Story("a b", queues=[queue("q", most)], conf=conf("enqueue"))
    story.arrives(job("j", 1, pods, min_available=least, queue="q"))
    job_state = story.engine.view.job_states["j"]

    assert story.engine.context.quota.limit(job_state) == want


def test_pods_that_run_count_in_what_may_run() -> None:
    story = Story("a b", queues=[queue("q", 6)], conf=conf("enqueue"))
    story.hears(JobArrived(job("j", 2, 6, min_available=1, queue="q"), at("a 01")))
    job_state = story.engine.view.job_states["j"]

    assert story.engine.context.quota.limit(job_state) == 3
    story.hears(JobArrived(job("other", 4, queue="q"), at("b 0123")))
    assert story.engine.context.quota.limit(job_state) is None


def test_an_overdue_job_is_limited_by_the_capability_of_its_queue() -> None:
    kept = Queue("kept", guarantee={NPU: 4000})
    story = Story("a b", queues=[queue("q"), kept], conf=conf("enqueue"))
    story.arrives(
        job("default", 8, 2), job("j", 8, queue="q"), job("k", 8, 2, queue="q")
    )
    job_states, ctx = story.engine.view.job_states, story.engine.context

    assert ctx.quota.limit(job_states["j"], ignore_share=True) == 1
    assert ctx.quota.limit(job_states["k"]) is None
    assert ctx.quota.limit(job_states["k"], ignore_share=True) is None


class Strict(Plugin):
    """Lets no job start, or pipelines none, as its attributes say."""

    ready = True
    content = True

    def job_ready(self, job_state: JobState) -> bool:
        del job_state
        return type(self).ready

    def job_pipelined(self, job_state: JobState) -> Vote:
        del job_state
        return Vote.PERMIT if type(self).content else Vote.REJECT


def with_strict(actions: str) -> Conf:
    found = read_conf(
        {
            "actions": actions,
            "tiers": [
                {"plugins": [{"name": n} for n in ("strict", "priority", "gang")]},
                {"plugins": [{"name": "predicates"}]},
            ],
            "configurations": [
                {"name": "allocate", "arguments": {"reservation-after-seconds": 10}}
            ],
        },
        {"strict": Strict},
    )
    assert isinstance(found, Conf)
    return found


def strict_engine(actions: str = "allocate") -> Engine:
    return Engine([node("a")], conf=with_strict(actions))


def test_a_job_that_a_plugin_does_not_find_ready_holds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Strict, "ready", False)
    engine = strict_engine()

    said = engine.handle(JobArrived(job("j")), 0)

    assert not any(isinstance(each, Bind) for each in said)
    assert engine.view.cluster.free.tolist() == [0xFF]
    assert engine.view.queue_usage["default"].allocated == {NPU: 0}


@pytest.mark.parametrize(
    "actions", ["allocate", "allocate, preempt"], ids=["overdue", "evicts"]
)
def test_no_place_is_kept_with_which_a_plugin_is_not_content(
    actions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = strict_engine(actions)
    engine.handle(JobArrived(job("low")), 0)
    monkeypatch.setattr(Strict, "content", False)

    engine.handle(JobArrived(job("high", priority=5)), 1)
    engine.handle(TimerFired(), 20)

    assert not engine.reservations
    assert engine.view.job_states["high"].pipelined == set()
    assert engine.view.job_states["low"].terminating == set()


def test_no_reservation_is_made_for_a_job_that_a_plugin_does_not_pipeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = strict_engine()
    engine.handle(JobArrived(job("low")), 0)
    engine.handle(PodsEnding("low", (0,)), 0)
    monkeypatch.setattr(Strict, "content", False)

    engine.handle(JobArrived(job("next")), 1)
    assert not engine.reservations
    monkeypatch.setattr(Strict, "content", True)
    engine.handle(JobArrived(job("other")), 2)
    assert not engine.view.job_states["other"].placements


FREELY = conf(
    "allocate",
    (("priority", "gang"), ("predicates",)),
    allocate={"reservation-after-seconds": 10},
)
"""No queue has a quota, and ten seconds are too long."""


def reserved() -> Story:
    """Node a is taken, b is half taken, and both are reserved for a big job."""
    story = Story("a b", conf=FREELY)
    story.arrives(job("one", estimate_s=100.0), job("half", 4, estimate_s=100.0))
    story.arrives(job("big", 8, 2))
    assert "reserved big" in story.wakes(10)
    return story


def test_what_others_reserved_may_not_be_enough() -> None:
    story = reserved()

    said = story.arrives(job("short", 8, estimate_s=1.0), now=11)

    assert said[0] == "waiting short"
    assert "big" in story.engine.reservations


def test_a_job_that_states_its_end_is_tried_though_nothing_seems_free() -> None:
    """It may find room in what others reserved."""
    story = reserved()
    story.arrives(job("short", 8, estimate_s=1.0), now=11)
    assert story.running.keys() == {"one", "half"}

    said = story.hears(JobGone("half"), now=12)

    assert said == ["bind short: 0 on b 01234567", "wake 8651"]
    assert "big" in story.engine.reservations


def test_what_ends_where_a_job_has_a_reservation_is_kept_for_no_other() -> None:
    story = reserved()
    story.hears(PodsEnding("one", (0,)), now=11)

    story.arrives(job("next"), now=12)

    assert [*story.engine.reservations] == ["big"]
    ctx = story.engine.context
    assert ctx.reservations.unclaimed(ctx.victim_search.ending) == []


def test_a_reservation_that_is_made_anew_where_it_was_is_no_news() -> None:
    story = reserved()
    story.arrives(job("big2", 8, 2), now=11)

    story.hears(NodesChanged((node("b", labels={"x": "1"}),)), now=12)

    assert story.messages == []
    assert [*story.engine.reservations] == ["big"]


@pytest.mark.parametrize(
    ("blocker_queue", "most", "starts"),
    [
        pytest.param("p", 16, False, id="another queue's blocker leaves it nothing"),
        pytest.param("p", 20, True, id="both fit into the capability"),
        pytest.param("q", 16, False, id="its own blocker is counted once"),
        pytest.param("q", 20, True, id="its own blocker leaves its part"),
    ],
)
def test_a_job_leaves_to_a_reservation_what_blockers_of_its_queue_will_not(
    blocker_queue: str,
    most: int,
    starts: bool,  # noqa: FBT001 - a row
) -> None:
    """Node c is too small for the reserved job; only the queue's capability counts."""
    nodes = [node("a"), node("b"), node("c", range(4))]
    story = Story(nodes, queues=[queue("p"), queue("q", most)], conf=FREELY)
    blocker = job("blocker", queue=blocker_queue)
    story.hears(JobArrived(blocker, at("a 01234567")))
    story.arrives(job("big", 8, 2, queue="q"))
    assert "reserved big" in story.wakes(10)

    story.arrives(job("small", 4, queue="q"), now=11)

    assert ("small" in story.running) == starts


def test_a_job_keeps_its_reservation_while_free_nodes_are_under_several_leaves() -> (
    None
):
    names = ("A0", "A1", "B0")
    nodes = [node(name, leaf=name[0], slot=int(name[1])) for name in names]
    story = Story(nodes, conf=FREELY)
    story.hears(JobArrived(job("one"), at("A0 01234567")))
    story.hears(JobArrived(job("two"), at("B0 01234567")))
    story.arrives(job("pair", 8, 2, tor_affinity=Schema.LARGE_MODEL))
    assert "reserved pair" in story.wakes(10)

    assert story.hears(JobGone("two"), now=11) == []
    assert story.engine.reservations["pair"].nodes == {"A0", "A1"}
    assert story.hears(JobGone("one"), now=12) == [
        "bind pair: 0 on A0 01234567, 1 on A1 01234567"
    ]


def test_a_job_that_starts_on_free_chips_makes_no_other_search_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a job could not use with its victims before, it cannot use with these."""
    searched: list[str] = []
    evict_for = VictimSearch.evict_for

    def noted(search: VictimSearch, job_state: JobState) -> bool:
        searched.append(job_state.job.name)
        return evict_for(search, job_state)

    monkeypatch.setattr(VictimSearch, "evict_for", noted)
    tiers = (("priority", "gang"), ("predicates",))
    story = Story("a b", conf=conf(PREEMPT, tiers))
    story.arrives(job("rock", preemptable=False))
    story.arrives(job("high", 8, 2, priority=5), now=1)
    assert searched == ["high"]

    assert story.arrives(job("low"), now=2)[0] == "bind low: 0 on b 01234567"
    story.wakes(3)
    assert searched == ["high"]


def test_a_job_that_outranks_pods_that_are_found_searches_again() -> None:
    """Also where many have been tried since, and in the order of jobs."""
    story = Story([node("a", ()), node("b", ())], conf=conf(PREEMPT))
    ranks = {"x": 3, "y": 5, "z": 4}
    story.arrives(*(job(name, priority=rank) for name, rank in ranks.items()), now=1)

    found = [JobArrived(job(f"on-{n}"), at(f"{n} 01234567"), started=0.0) for n in "ab"]
    said = story.hears(*found, now=2)

    evictors = [line.split()[4] for line in said if line.startswith("evict ")]
    assert evictors == ["y", "z"]


def test_a_job_with_pod_affinity_is_retried_when_another_job_starts() -> None:
    near = Demand(near=(PodTerm("host", ()),), labels=(("app", "x"),))
    nodes = [node("a", labels={"host": "a"}), node("b", labels={"host": "b"})]
    story = Story(nodes, conf=conf())
    alone = Demand(labels=(("app", "y"),))

    story.arrives(Job("j", node("a").product, 4, demand=near))
    story.arrives(Job("k", node("a").product, 4, demand=alone), now=1)

    assert {"j", "k"} == story.running.keys()


def test_a_job_that_still_cannot_fit_is_not_bound_after_other_events() -> None:
    tiers = (("priority", "gang"), ("predicates",))
    story = Story("a b", conf=conf("allocate", tiers))
    story.arrives(job("one", 4, 2), job("two", 8))
    assert story.arrives(job("big", 8, 2), now=1)[0] == "waiting big"

    said = story.hears(
        JobGone("unknown"), NodesChanged((node("c", ready=False),)), now=2
    )

    assert not any(line.startswith("bind") for line in said)


def test_a_report_is_said_only_if_it_is_news() -> None:
    story = Story("a", conf=conf(PREEMPT))
    story.arrives(job("one", priority=5))
    story.arrives(job("two"), now=1)
    said = [each for each in story.said if isinstance(each, Report)]
    assert len(said) == 1

    assert story.wakes(2) == []


@pytest.mark.parametrize("lists_all", [True, False])
def test_an_overdue_job_is_limited_to_resources_that_nodes_have(
    lists_all: bool,  # noqa: FBT001
) -> None:
    story = Story([node("a", lists_all=lists_all)], conf=conf("enqueue"))
    story.arrives(job("j", 8, demand=Demand(resources=(("made-up", 1000),))))
    job_state = story.engine.view.job_states["j"]

    quota = story.engine.context.quota.limit(job_state, ignore_share=True)
    assert quota == (None if lists_all else 1)
