"""Odd orders of events, and what each of them once broke."""

from typing import Final

import pytest
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    ConfChanged,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodsEnding,
    PodsGone,
    QueueGone,
    TimerFired,
)
from ringleaf.framework.instruction import Bind
from ringleaf.framework.job_state import JobState, Phase
from ringleaf.framework.plugin import Plugin
from ringleaf.model.cluster import Node
from ringleaf.model.demand import Demand, Effect, Operator, PodTerm, Requirement, Taint
from ringleaf.model.job import Job, Role
from ringleaf.model.job_labels import Schema
from ringleaf.model.settings import JobRequests
from ringleaf.policies.products import PRODUCTS
from tests.engine.story import (
    A2,
    NPU,
    PREEMPT,
    RECLAIM,
    TIERS,
    Story,
    at,
    conf,
    job,
    node,
    queue,
)

OTHER: Final = PRODUCTS["atlas-800-9000"]
IS_X: Final = (Requirement("app", Operator.IN, ("x",)),)
X: Final = Demand(labels=(("app", "x"),))
NEAR: Final = Demand(near=(PodTerm("kubernetes.io/hostname", IS_X),))
APART: Final = Demand(apart=(PodTerm("zone", IS_X),))


def soon(mode: str = "fair") -> Conf:
    """Reservations after a minute."""
    return conf(allocate={"reservation": mode, "reservation-after-seconds": 60})


def test_a_job_that_comes_and_goes_in_one_batch_leaves_no_trace() -> None:
    story = Story("a", conf=conf())

    assert story.hears(JobArrived(job("j")), JobGone("j")) == []
    assert story.arrives(job("k"), now=1) == ["bind k: 0 on a 01234567"]


def test_a_job_that_comes_with_another_configuration_is_admitted_once() -> None:
    story = Story("a", conf=conf())
    said = story.hears(JobArrived(job("j")), ConfChanged(conf("allocate")))

    assert said == ["bind j: 0 on a 01234567"]
    assert story.hears(ConfChanged(conf()), now=1) == []
    assert story.phase("j") is Phase.RUNNING


@pytest.mark.parametrize("mode", ["fair", "strict"])
def test_others_of_its_queue_leave_it_what_it_has_reserved(mode: str) -> None:
    """The queue may use two nodes of four; the big job wants both."""
    story = Story("a b c d", queues=[queue("q", 16)], conf=soon(mode))
    story.arrives(job("s0", queue="q"), job("s1", queue="q"))
    story.arrives(job("big", 8, 2, queue="q"), now=1)
    assert "reserved big" in story.wakes(61)
    for i in range(2, 5):
        story.arrives(job(f"s{i}", queue="q"), now=70 + 10 * i)
        story.hears(JobGone(f"s{i - 2}"), now=75 + 10 * i)

    assert story.running["big"] == [0, 1]


def test_no_other_job_takes_the_queue_share_that_an_eviction_freed() -> None:
    story = Story("a b c", queues=[queue("q", 8)], conf=conf(PREEMPT))
    story.arrives(job("low", queue="q"))
    story.arrives(job("high", priority=9, queue="q"), now=1)
    assert "waiting new" in story.arrives(job("new", queue="q"), now=2)

    said = story.hears(PodsGone("low", (0,)), now=3)
    assert any(line.startswith("bind high: ") for line in said)


def test_a_job_that_loses_its_reservation_waits_where_it_did_before() -> None:
    off = conf("allocate, preempt", allocate={"reservation": "off"})
    story = Story("a", conf=off)
    story.arrives(job("low"))
    story.arrives(job("high", priority=9), now=1)
    story.hears(NodesChanged((node("a", labels={"x": "y"}),)), now=2)

    said = story.hears(PodsGone("low", (0,)), now=3)
    assert said[0] == "bind high: 0 on a 01234567"


def test_what_is_left_of_a_job_gets_its_reservation() -> None:
    story = Story("a b", conf=soon())
    story.arrives(job("j", 8, 2))
    story.hears(PodsGone("j", (0,), succeeded=True), now=1)
    story.arrives(job("half", 4), now=2)
    story.hears(NodesChanged((node("b", [], ready=False),)), now=3)
    story.hears(PodsGone("j", (1,)), now=4)

    assert "reserved j" in story.wakes(64)
    said = story.hears(JobGone("half"), now=70)
    assert said == ["bind j: 1 on a 01234567"]


def test_what_is_left_of_a_job_evicts_no_more_than_it_needs() -> None:
    story = Story("a b c", conf=conf(PREEMPT))
    story.arrives(job("j", 8, 2, priority=5))
    story.hears(PodsGone("j", (0,), succeeded=True), now=1)
    story.arrives(job("l1"), job("l2"), now=2)

    assert story.hears(PodsGone("j", (1,)), now=3) == ["bind j: 1 on b 01234567"]


def test_a_pod_on_another_product_may_be_what_keeps_a_job_away() -> None:
    zone = {"zone": "z"}
    story = Story([node("a", labels=zone), Node("b", OTHER, 8, 255, labels=zone)])
    story.hears(JobArrived(Job("x", OTHER, 8, demand=X)))
    assert "waiting w" in story.arrives(job("w", demand=APART), now=1)

    assert story.hears(JobGone("x"), now=2) == ["bind w: 0 on a 01234567"]


def test_a_job_of_another_product_may_be_what_closes_the_leaves() -> None:
    nodes = [
        *(Node(name, A2, 8, 255, leaf=leaf) for name, leaf in ("aA", "bB")),
        *(Node(name, OTHER, 8, 255, leaf=leaf) for name, leaf in ("cA", "dB")),
    ]
    story = Story(nodes)
    story.hears(JobArrived(Job("x", OTHER, 8, 2)))
    story.arrives(job("w", 8, 2, tor_affinity=Schema.NORMAL), now=1)

    assert story.hears(JobGone("x"), now=2)[0].startswith("bind w: ")


def test_pods_that_are_found_running_satisfy_pod_affinity() -> None:
    story = Story("a", conf=conf())
    story.arrives(job("n", 1, demand=NEAR))

    said = story.hears(JobArrived(job("x", 1, demand=X), at("a 0")), now=1)
    assert said == ["bind n: 0 on a 1"]


def test_pods_that_are_found_running_are_candidates_for_eviction() -> None:
    story = Story("a", conf=conf("allocate, preempt"))
    story.hears(NodesChanged((node("a", []),)))
    story.arrives(job("high", priority=9), now=1)

    said = story.hears(JobArrived(job("low"), at("a 01234567"), started=0.0), now=2)
    assert "evict low: 0 for high (preempt)" in said


def test_a_peer_also_starts_best_effort_jobs_with_pod_affinity() -> None:
    story = Story("a b", conf=conf("allocate, backfill"))
    story.arrives(job("chip", 8, 3, demand=NEAR))
    story.arrives(Job("modest", A2, 0, 0, roles=(Role("h", 0, demand=NEAR),)))

    said = story.arrives(job("x", 1, demand=X), now=1)
    assert said == ["bind x: 0 on a 0", "bind modest: 0 on a"]


def test_an_arrival_may_bring_another_queue_above_its_share() -> None:
    queues = [queue("p", weight=2), queue("q")]
    off = {"reservation": "off"}
    story = Story("a b", queues=queues, conf=conf(RECLAIM, allocate=off))
    story.hears(JobArrived(job("d1", 4), at("a 0123")))
    story.hears(JobArrived(job("d2", 4), at("b 0123")))
    story.arrives(job("p1", queue="p"), now=10)

    said = story.arrives(job("q1", queue="q"), now=20)
    assert any(line.startswith("evict d") for line in said)


def test_a_pod_that_is_only_reserved_is_nobodys_neighbour() -> None:
    story = Story("a b", conf=soon())
    story.arrives(job("s", 4))
    story.arrives(job("x", 8, 2, demand=X), now=1)
    assert "reserved x" in story.wakes(61)

    assert story.arrives(job("n", 1, demand=NEAR), now=62) == ["waiting n"]


def test_scores_begin_to_count_when_a_node_gives_them_a_reason() -> None:
    story = Story("a b", conf=conf(tiers=TIERS))
    story.arrives(job("j0"))
    story.hears(JobGone("j0"), now=1)
    taint = Taint("k", Effect.PREFER_NO_SCHEDULE)
    story.hears(NodesChanged((node("a", taints=(taint,)),)), now=2)

    assert story.arrives(job("j1"), now=3) == ["bind j1: 0 on b 01234567"]


def test_a_pod_that_ended_well_before_we_heard_of_it_is_not_run_again() -> None:
    story = Story("a b", conf=conf())
    said = story.hears(
        JobArrived(job("j", 8, 2), at("a 01234567")),
        PodsGone("j", (1,), succeeded=True),
    )

    assert said == []


def test_an_hour_that_is_called_too_early_is_asked_for_again() -> None:
    story = Story("a", conf=soon())
    story.arrives(job("runs"))
    story.arrives(job("waits"), now=1)

    assert story.wakes(60.5) == ["wake 61"]
    assert story.wakes(61) == ["reserved waits"]


def test_a_job_that_uses_up_another_resource_is_a_blocker() -> None:
    cpu = Demand(resources=(("cpu", 2),))
    story = Story([node("a", resources={"cpu": 2})], conf=conf("allocate"))
    story.arrives(job("e", 1, demand=cpu))
    story.hears(PodsEnding("e", (0,)), now=1)
    assert "reserved h" in story.arrives(job("h", 1, demand=cpu), now=2)

    assert [*story.engine.reservations["h"].blockers] == ["e"]


def test_a_job_that_a_new_configuration_forbids_is_reported_invalid() -> None:
    per_pod = replace(conf().settings, job_requests=JobRequests.PER_POD)
    loose = replace(conf(), settings=per_pod)
    story = Story([Node("a", OTHER, 8, 255)], conf=loose)
    story.hears(JobArrived(Job("r", OTHER, 8)))
    story.hears(JobArrived(Job("j", OTHER, 4, 3)), now=1)

    assert story.hears(ConfChanged(conf()), now=2) == ["invalid j"]


def test_free_chips_do_not_depend_on_when_nodes_and_jobs_joined() -> None:
    story = Story([node("a", range(4, 8))])
    cluster = story.engine.view.cluster
    story.engine.handle(JobArrived(job("j", 4), at("a 0123")), 0.0)
    story.engine.handle(JobGone("j"), 1.0)
    assert cluster.free.item(0) == 0xFF
    story.engine.handle(NodesChanged((node("b"),)), 2.0)

    assert story.engine.view.cluster.free.tolist() == [0xFF, 0xFF]


def test_accounts_follow_a_node_that_becomes_another_product() -> None:
    story = Story("a", conf=conf())
    story.arrives(job("j"))
    duo = PRODUCTS["atlas-300i-duo"]
    engine = story.engine
    engine.handle(NodesChanged((Node("a", duo, 8, 255),)), 1.0)
    engine.handle(PodsGone("j", (0,)), 2.0)
    used = engine.view.queue_usage["default"].allocated

    assert not any(used.values())


def test_a_job_may_be_called_like_a_reservation() -> None:
    story = Story("a b c", conf=soon())
    story.arrives(job("s"))
    story.arrives(job("big", 8, 3), now=1)
    assert "reserved big" in story.wakes(61)
    story.arrives(job("big (reserved)", 8, 3), now=62)

    assert [*map(str, story.engine.view.cluster.holdings)] == ["s", "big (reserved)"]
    said = story.hears(JobGone("s"), now=63)
    assert said[0].startswith("bind big: ")


def test_a_queue_that_is_gone_and_an_idle_hour_say_nothing() -> None:
    story = Story("a", queues=[queue("q")], conf=conf())
    story.hears(QueueGone("q"))

    assert story.hears(TimerFired(), now=9) == []
    assert story.engine.view.queue_usage["q"].allocated.get(NPU, 0) == 0


def test_an_empty_cluster_has_no_scores() -> None:
    packs = {"name": "binpack", "arguments": {"binpack.resources": NPU}}
    story = Story("a", conf=conf(tiers=[["gang"], [packs]]))
    story.hears(NodesGone(("a",)))

    assert story.arrives(job("j"))[0] == "waiting j"


def test_a_configuration_may_lack_allocate() -> None:
    story = Story("a", conf=soon())
    story.arrives(job("runs"))
    story.arrives(job("never", 8, 3), now=1)
    story.wakes(61)
    story.hears(ConfChanged(conf("enqueue, backfill")), now=62)

    assert story.arrives(job("late"), now=63)[0] == "waiting late"


@pytest.mark.parametrize("actions", ["allocate", "enqueue, allocate"])
def test_in_a_closed_queue_no_job_starts_whichever_plugins_vote(actions: str) -> None:
    closed = queue("q", is_open=False)
    story = Story("a", queues=[closed], conf=conf(actions, [["gang"]]))
    story.arrives(job("j", queue="q"))

    assert story.messages == ["job 'j' waits: needs 1 x 8 chips; queue 'q' is closed"]


@pytest.mark.parametrize("changed", [False, True])
def test_pods_that_are_found_running_later_hold_what_they_hold(
    changed: bool,  # noqa: FBT001 - a row
) -> None:
    story = Story("a b", conf=soon())
    story.arrives(job("runs"))
    story.arrives(job("j", 8, 2), now=1)
    assert "reserved j" in story.wakes(61)
    again = job("j", 8, 2, priority=int(changed))
    engine = story.engine
    said = engine.handle(JobArrived(again, at("b 01234567")), 62.0)

    assert not any(isinstance(each, Bind) for each in said)
    assert engine.view.cluster.free.tolist() == [0, 0]
    assert engine.view.job_states["j"].phase is Phase.RUNNING


def test_a_gang_that_lost_a_pod_and_a_reservation_do_not_wait_for_each_other() -> None:
    story = Story("a b", conf=soon())
    story.arrives(job("g1", 8, 2), job("g2", 8, 2))
    story.hears(NodesChanged((node("a", [], ready=False),)), now=1)
    story.hears(PodsGone("g1", (0,)), now=2)
    assert "reserved g2" not in story.wakes(60)
    story.wakes(62)

    said = story.hears(NodesChanged((node("a"),)), now=70)
    assert "bind g1: 0 on a 01234567" in said


def test_a_gang_that_lost_a_pod_goes_first_in_its_queue() -> None:
    """Also where its share of the cluster is larger than that of others."""
    story = Story("a b", conf=conf(tiers=TIERS))
    story.arrives(job("gang", 8, 2))
    story.arrives(job("k1", 4), job("k2", 4), now=1)

    said = story.hears(PodsGone("gang", (1,)), now=2)
    assert said[0] == "bind gang: 1 on b 01234567"


def test_a_gang_that_lost_a_pod_gets_a_reservation_for_it() -> None:
    story = Story("a b", conf=soon())
    story.arrives(job("gang", 8, 2))
    story.hears(NodesChanged((node("b", [], ready=False),)), now=1)
    story.hears(PodsGone("gang", (1,)), now=2)
    story.hears(JobArrived(job("k0", 4), at("b 0123")), now=3)
    story.hears(NodesChanged((node("b"),)), now=4)
    assert "reserved gang" in story.wakes(62)
    assert story.phase("gang") is Phase.RUNNING
    assert story.arrives(job("k1", 4), now=63)[0] == "waiting k1"

    said = story.hears(JobGone("k0"), now=70)
    assert said[0] == "bind gang: 1 on b 01234567"


def test_weights_also_count_for_overdue_jobs() -> None:
    """Queue p has three nodes of four, and its jobs end; q has one and waits."""
    story = Story("a b c d", queues=[queue("p", weight=3), queue("q")], conf=soon())
    for i in range(3):
        story.arrives(job(f"p{i}", queue="p"), now=i)
    story.arrives(job("q0", queue="q"), now=3)
    for i in range(3, 6):
        story.arrives(job(f"p{i}", queue="p"), job(f"q{i}", queue="q"), now=i)
    story.wakes(70)
    for i in range(3):
        story.hears(JobGone(f"p{i}"), now=80 + i)

    assert {name[0] for name in story.running} == {"p", "q"}
    assert sum(name[0] == "q" for name in story.running) == 1


def test_a_job_that_is_over_needs_no_reservation() -> None:
    story = Story("a", conf=soon())
    story.arrives(job("h", 4))
    story.arrives(job("j"), now=1)
    assert "reserved j" in story.wakes(61)
    story.hears(PodsGone("j", (0,), succeeded=True), now=62)

    assert not story.engine.reservations
    assert story.hears(JobGone("h"), now=63) == []


class Shy(Plugin):
    """Lets no job start."""

    def job_ready(self, job_state: JobState) -> bool:
        del job_state
        return False


def test_a_job_that_a_plugin_never_starts_gets_no_reservation() -> None:
    document = {
        "actions": "allocate",
        "tiers": [{"plugins": [{"name": "shy"}]}],
        "configurations": [
            {"name": "allocate", "arguments": {"reservation-after-seconds": 60}}
        ],
    }
    found = read_conf(document, {"shy": Shy})
    assert isinstance(found, Conf)
    engine = Engine([node("a")], conf=found)
    engine.handle(JobArrived(job("j")), 0.0)

    assert engine.handle(TimerFired(), 60.0) == []
    assert not engine.reservations
    assert engine.handle(TimerFired(), 61.0) == []


def test_where_rounds_run_out_it_goes_on_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleaf.engine.cycle.MAX_ROUNDS", 1)
    story = Story("a b", conf=conf("allocate"))
    story.arrives(job("n", 1, demand=NEAR))

    said = story.arrives(job("x", 1, demand=X), now=1)
    assert said == ["bind x: 0 on a 0", "wake 2"]
    assert story.wakes(2)[0] == "bind n: 0 on a 1"


def test_a_job_that_outranks_a_reservation_is_tried_on_reserved_chips() -> None:
    """Its reason was reported before there was a reservation to use."""
    tiers, after = [["priority", "gang"]], {"reservation-after-seconds": 60}
    story = Story("a b", conf=conf("allocate", tiers, allocate=after))
    story.arrives(job("one"), job("two"))
    story.arrives(job("big", 8, 2), now=1)
    story.arrives(job("high", priority=9), now=59)
    assert "reserved big" in story.wakes(61)

    said = story.hears(JobGone("one"), now=62)
    assert said[0] == "bind high: 0 on a 01234567"
