"""Bound, but never running: jobs that are released, nodes that are quarantined."""

import pytest
from msgspec.structs import replace

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import (
    BindFailed,
    ConfChanged,
    FaultsKnown,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodsEnding,
    PodsGone,
    PodsRefused,
    PodsRun,
    TimerFired,
)
from ringleaf.framework.instruction import Report
from ringleaf.model.decision import Reason, Waiting
from ringleaf.model.fault import FaultMode, Recovery
from ringleaf.model.job import Job, Role
from ringleaf.model.settings import RepairSettings
from ringleaf.policies.products import NO_NPU
from tests.engine.story import Story, at, conf, job, node, words

WHY = "UnexpectedAdmissionError: no device"


def within(**repairs: int) -> Conf:
    """The default configuration, with other times."""
    settings = replace(DEFAULT.settings, repairs=RepairSettings(**repairs))
    return replace(DEFAULT, settings=settings)


def bound(pods: int = 2, nodes: str = "a b", **changes: int) -> Story:
    """A story in which job j was bound at 0 and none of its pods runs."""
    story = Story(nodes)
    story.arrives(job("j", pods=pods, **changes))
    story.hears(PodsRun("j", ()))
    return story


# Released.


def test_a_job_without_reports_of_running_pods_is_left_alone() -> None:
    story = Story("a")
    story.arrives(job("j"))

    assert story.wakes(10_000.0) == []


def test_a_job_whose_pods_do_not_all_run_in_time_is_released() -> None:
    story = bound()
    assert story.hears(PodsRun("j", (0,)), now=5.0) == []

    assert story.wakes(599.0) == []
    assert story.wakes(600.0) == ["delete j: 0,1 (NeverRan)", "released j", "wake 1200"]

    assert story.messages == [
        (
            "job 'j' is released: 1 of 2 pods did not run within 600 s; "
            "it is placed again in 10 s"
        )
    ]
    (report,) = (said for said in story.said if isinstance(said, Report))
    assert report.hint == "check the events of its pods on 'b'"


def test_the_engine_asks_to_be_woken_when_the_time_is_over() -> None:
    story = Story("a b")
    story.arrives(job("j", pods=2))

    assert story.hears(PodsRun("j", ()), now=3.0) == ["wake 600"]


def test_a_released_job_is_placed_again_when_its_time_has_come() -> None:
    story = bound()
    story.wakes(600.0)

    assert story.hears(PodsGone("j", (0, 1)), now=605.0) == ["waiting j", "wake 610"]
    assert story.messages[0].endswith("; its pods did not run, it is retried in 5 s")
    found = story.engine.explain("j")
    assert isinstance(found, Waiting)
    assert found.because == "its pods did not run, it is retried in 5 s"
    assert story.arrives(job("other", chips=1), now=606.0)[0] == "bind other: 0 on a 0"
    story.hears(JobGone("other"))

    assert story.wakes(610.0)[0] == "bind j: 0 on a 01234567, 1 on b 01234567"


def test_the_backoff_doubles_each_time_up_to_ten_minutes() -> None:
    story = bound(1, "a")
    rests = []
    now = 0.0
    for _try in range(9):
        now += 600.0
        story.wakes(now)
        assert story.said, now
        rests.append(story.engine.context.pods_ready.not_before("j") - now)
        story.hears(PodsGone("j", (0,)), now=now)
        now += rests[-1]
        assert story.wakes(now)[0] == "bind j: 0 on a 01234567"
        story.hears(PodsRun("j", ()))

    assert rests == [10, 20, 40, 80, 160, 320, 600, 600, 600]


def test_a_job_that_came_to_run_begins_with_the_first_rest_again() -> None:
    story = bound(1, "a")
    story.wakes(600.0)
    story.hears(PodsGone("j", (0,)))
    story.wakes(610.0)
    story.hears(PodsRun("j", (0,)))
    story.hears(PodsGone("j", (0,)))
    story.hears(PodsRun("j", ()))

    story.wakes(1210.0)

    assert story.messages[0].endswith("in 10 s")


def test_a_job_all_of_whose_pods_ran_once_is_not_released() -> None:
    story = bound()
    story.hears(PodsRun("j", (0, 1)), now=30.0)

    story.hears(PodsGone("j", (1,)), now=60.0)
    assert story.running == {"j": [0, 1]}

    assert story.wakes(10_000.0) == []


def test_pods_that_succeeded_have_run() -> None:
    story = bound()
    story.hears(PodsRun("j", (0,)))
    story.hears(PodsGone("j", (1,), succeeded=True), now=20.0)

    assert story.wakes(600.0) == []


def test_an_elastic_job_may_do_without_its_surplus() -> None:
    story = bound(3, "a b c", min_available=2)
    story.hears(PodsRun("j", (0, 2)))

    assert story.wakes(600.0) == []


def test_an_elastic_job_with_too_few_is_released_whole() -> None:
    story = bound(3, "a b c", min_available=2)
    story.hears(PodsRun("j", (1,)))

    assert story.wakes(600.0)[0] == "delete j: 0,1,2 (NeverRan)"


def test_the_time_does_not_run_out_while_pods_end() -> None:
    story = bound()
    story.hears(PodsEnding("j", (1,)), now=500.0)

    assert story.wakes(600.0) == ["wake 1200"]
    assert story.hears(PodsGone("j", (1,)), now=700.0)[0].startswith("bind j: 1")
    assert story.wakes(1299.0) == []
    assert story.wakes(1300.0)[0] == "delete j: 0,1 (NeverRan)"


def test_pods_that_could_not_be_bound_get_no_new_time() -> None:
    story = bound()
    story.hears(BindFailed("j", (1,)), now=500.0)

    assert story.wakes(600.0)[0] == "delete j: 0,1 (NeverRan)"


def test_zero_is_never() -> None:
    story = Story("a", conf=within(run_within_s=0))
    story.arrives(job("j"))
    story.hears(PodsRun("j", ()))

    assert story.wakes(1e6) == []


def test_a_standby_releases_no_job_until_it_leads() -> None:
    story = Story("a", conf=DEFAULT.quiet)
    story.hears(JobArrived(job("j"), at("a 01234567"), 0.0), PodsRun("j", (), 0.0))
    assert story.wakes(700.0) == []

    assert story.hears(ConfChanged(DEFAULT), now=800.0)[0] == "delete j: 0 (NeverRan)"


def test_a_restart_does_not_begin_the_time_anew() -> None:
    story = Story("a")
    story.hears(
        JobArrived(job("j"), at("a 01234567"), 100.0),
        PodsRun("j", (), 150.0),
        now=700.0,
    )

    assert story.wakes(749.0) == []
    assert story.wakes(750.0)[0] == "delete j: 0 (NeverRan)"


def test_a_job_that_returns_keeps_its_backoff() -> None:
    story = bound(1, "a")
    story.wakes(600.0)
    story.hears(JobGone("j", returns=True), now=601.0)

    assert story.arrives(job("j"), now=602.0) == ["waiting j", "wake 610"]
    assert story.wakes(610.0)[0] == "bind j: 0 on a 01234567"


def test_another_job_of_its_name_does_not_rest() -> None:
    story = bound(1, "a")
    story.wakes(600.0)
    story.hears(JobGone("j"), now=601.0)

    assert story.arrives(job("j"), now=602.0) == ["bind j: 0 on a 01234567"]


# Quarantine.


def test_a_node_that_refuses_a_pod_is_quarantined_and_the_pod_moves() -> None:
    story = Story("a b")
    story.arrives(job("j"))

    said = story.hears(PodsRefused("j", (0,), WHY), PodsGone("j", (0,)), now=5.0)

    assert said == [
        "delete j: 0 (PodRefused)",
        "quarantined j",
        "bind j: 0 on b 01234567",
        "wake 305",
    ]
    assert story.messages == [
        f"node 'a' refused a pod of job 'j': {WHY}; it is quarantined for 300 s"
    ]
    assert {n: each.until for n, each in story.engine.quarantined.items()} == {
        "a": 305.0
    }


def test_a_quarantined_node_is_a_reason_of_pending_jobs() -> None:
    story = Story("a")
    story.arrives(job("j"))

    story.hears(PodsRefused("j", (0,)), PodsGone("j", (0,)))

    assert "nodes: 1 quarantined because they refused pods" in story.messages[-1]
    found = story.engine.explain("j")
    assert isinstance(found, Waiting)
    assert found.reasons == {Reason.QUARANTINED: 1}


def test_a_node_takes_pods_again_when_its_time_is_over() -> None:
    story = Story("a")
    story.arrives(job("j"))
    story.hears(PodsRefused("j", (0,)), PodsGone("j", (0,)))

    assert story.wakes(299.0) == []
    assert story.wakes(300.0) == ["bind j: 0 on a 01234567"]
    assert story.engine.quarantined == {}


def refused_at(story: Story, now: float, pods: int = 1) -> float:
    """How long the node is quarantined after the pods of j were refused."""
    story.hears(*(PodsRefused("j", (n,)) for n in range(pods)), now=now)
    (found,) = story.engine.quarantined.values()
    story.hears(PodsGone("j", tuple(range(pods))))
    return found.until - now


def test_a_node_that_refuses_again_soon_is_quarantined_twice_as_long() -> None:
    story = Story("a")
    story.arrives(job("j"))
    now, lasted = 0.0, []
    for _again in range(6):
        lasted.append(refused_at(story, now))
        now += lasted[-1]
        story.wakes(now)
        if not story.running:
            now = story.engine.context.pods_ready.not_before("j")
            story.wakes(now)

    assert lasted == [300, 600, 1200, 2400, 3600, 3600]


def test_a_node_that_refuses_again_much_later_is_as_good_as_new() -> None:
    story = Story("a")
    story.arrives(job("j"))
    refused_at(story, 0.0)
    story.wakes(300.0)

    assert refused_at(story, 1000.0) == 300


def test_pods_that_are_refused_together_count_once() -> None:
    story = Story("a b")
    story.arrives(job("j", chips=4, pods=2))

    assert refused_at(story, 0.0, pods=2) == 300


def test_a_pod_that_comes_to_run_there_ends_it() -> None:
    story = Story("a")
    story.arrives(job("j", chips=4), job("other", chips=4))
    story.hears(PodsRefused("j", (0,)), PodsGone("j", (0,)))

    assert story.hears(PodsRun("other", (0,)), now=9.0)[0] == "bind j: 0 on a 0123"
    assert story.engine.quarantined == {}


def test_a_pod_that_ran_before_says_nothing() -> None:
    story = Story("a")
    story.arrives(job("j", chips=4), job("other", chips=4))
    story.hears(PodsRun("other", (0,)))
    story.hears(PodsRefused("j", (0,)), PodsGone("j", (0,)))

    assert story.hears(PodsRun("other", (0,))) == []


def test_a_pod_without_chips_says_nothing_of_the_chips() -> None:
    story = Story("a")
    story.arrives(job("j"), Job("helper", NO_NPU, 0, 0, roles=(Role("", 0, 1),)))
    assert story.running == {"helper": [0], "j": [0]}
    story.hears(PodsRefused("j", (0,)), PodsGone("j", (0,)))

    assert story.hears(PodsRun("helper", (0,))) == []
    assert [*story.engine.quarantined] == ["a"]


def test_only_the_refused_pod_of_a_gang_is_replaced() -> None:
    story = bound(3, "a b c d")
    story.hears(PodsRun("j", (0, 2)))

    said = story.hears(PodsRefused("j", (1,)), PodsGone("j", (1,)), now=4.0)

    assert said[0] == "delete j: 1 (PodRefused)"
    assert "bind j: 1 on d 01234567" in said


def test_a_gang_with_repeated_refusals_backs_off_and_is_released() -> None:
    story = bound(2, "a b c d e f g h i j")
    story.hears(PodsRefused("j", (1,)), PodsGone("j", (1,)), now=100.0)
    assert story.running == {"j": [0, 1]}
    story.hears(PodsRefused("j", (1,)), PodsGone("j", (1,)), now=101.0)
    assert story.running == {"j": [0]}
    found = story.engine.explain("j")
    assert isinstance(found, Waiting)
    assert (
        found.because == "1 pod of it runs; its pods did not run, it is retried in 10 s"
    )

    assert story.wakes(111.0)[0] == "bind j: 1 on d 01234567"
    assert story.wakes(600.0)[0] == "delete j: 0,1 (NeverRan)"


def test_no_more_than_a_fifth_of_the_nodes_is_quarantined() -> None:
    names = [f"n{i}" for i in range(10)]
    story = Story(" ".join(names))
    story.arrives(*(job(f"j{i}") for i in range(4)))

    for i in range(4):
        story.hears(PodsRefused(f"j{i}", (0,)), JobGone(f"j{i}"), now=float(i))

    assert [*story.engine.quarantined] == ["n2", "n3"]
    assert story.messages == [
        (
            "node 'n3' refused a pod of job 'j3'; it is quarantined for 300 s; "
            "too many nodes are quarantined, 'n1' is released"
        )
    ]


def test_a_refused_pod_is_deleted_also_where_nothing_else_is_known_of_it() -> None:
    story = Story("a")

    assert story.hears(PodsRefused("gone", (3,), WHY)) == [
        "delete gone: 3 (PodRefused)"
    ]


def test_nodes_are_not_quarantined_where_the_time_is_zero() -> None:
    story = Story("a b", conf=within(aside_s=0))
    story.arrives(job("j"))

    said = story.hears(PodsRefused("j", (0,)), PodsGone("j", (0,)))

    assert said == ["delete j: 0 (PodRefused)", "bind j: 0 on a 01234567"]


def test_a_standby_knows_the_quarantined_nodes() -> None:
    story = Story("a b", conf=DEFAULT.quiet)
    story.hears(JobArrived(job("j"), at("a 01234567")))

    assert story.hears(PodsRefused("j", (0,)), PodsGone("j", (0,))) == []
    assert story.hears(ConfChanged(DEFAULT), now=9.0)[0] == "bind j: 0 on b 01234567"


@pytest.mark.parametrize("moved", [False, True])
def test_a_node_that_changes_stays_quarantined(*, moved: bool) -> None:
    story = Story("a b")
    story.arrives(job("j"))
    story.hears(PodsRefused("j", (0,)), JobGone("j"))

    changed = node("a", leaf="l") if moved else node("a", sub_healthy=True)
    story.hears(NodesChanged((changed,)))

    assert story.arrives(job("k"))[0] == "bind k: 0 on b 01234567"


def test_a_node_that_is_gone_is_forgotten() -> None:
    story = Story("a b")
    story.arrives(job("j"))
    story.hears(PodsRefused("j", (0,)), PodsGone("j", (0,)))

    story.hears(NodesGone(("a",)))

    assert story.engine.quarantined == {}


def test_a_node_stays_quarantined_after_a_restart() -> None:
    before = Story("a b")
    before.arrives(job("j"))
    before.hears(PodsRefused("j", (0,), WHY), PodsGone("j", (0,)))
    written = before.engine.fault_log.everything

    story = Story("a b")
    story.hears(FaultsKnown(written), now=100.0)

    assert story.arrives(job("k"))[0] == "bind k: 0 on b 01234567"
    assert story.wakes(300.0) == []
    assert story.engine.quarantined == {}
    assert story.engine.fault_log.everything[-1].recovered == 300.0


def test_the_time_does_not_run_out_while_a_job_is_repaired() -> None:
    engine = Story("a b").engine  # the ledger of a story knows nothing of repairs
    recovery = Recovery(mode=FaultMode.GRACE, pods_only=True, escalates=False)
    engine.handle(JobArrived(job("j", pods=2, recovery=recovery)), 0.0)
    engine.handle(PodsRun("j", (0,)), 0.0)
    said = engine.handle(NodesChanged((node("b", unhealthy=1, faulty=1),)), 500.0)
    assert "delete j: 1 (CardUnhealthy)" in map(words, said)
    engine.handle(PodsGone("j", (1,)), 510.0)
    assert [*engine.view.job_states["j"].placements] == [0]

    said = engine.handle(TimerFired(), 600.0)

    assert not [each for each in map(words, said) if "NeverRan" in each]


def test_a_reservation_on_a_quarantined_node_is_dropped() -> None:
    rules = conf(allocate={"reservation-after-seconds": 1})
    story = Story("a b", conf=rules)
    story.arrives(job("small", chips=4, estimate_s=100.0), job("x", chips=4))
    story.arrives(job("large", chips=8, pods=2))
    story.wakes(5.0)
    assert "large" in story.engine.reservations

    story.hears(PodsRefused("x", (0,)), PodsGone("x", (0,)), now=6.0)

    assert all("a" not in b.nodes for b in story.engine.reservations.values())
