"""Two pods that say they hold the same chip, as a restart may find them."""

from ringleaf.engine.event import JobArrived, JobGone
from ringleaf.framework.instruction import Report, Verdict
from ringleaf.model.placement import Placement
from tests.engine.story import PREEMPT, Story, at, conf, job


def test_a_chip_that_two_pods_claim_belongs_to_the_first_and_is_told() -> None:
    story = Story("a")
    engine = story.engine
    node = engine.view.cluster.names[0]
    engine.handle(JobArrived(job("first", 2), (Placement(0, node, (0, 1)),)), 0.0)
    said = engine.handle(
        JobArrived(job("second", 2), (Placement(0, node, (1, 2)),)), 0.0
    )

    assert said == [
        Report(
            "second",
            Verdict.CONFLICT,
            f"job 'second': pod 0 is on chips 1 of node {node!r}, "
            "which another pod holds already",
            "evict one of the two",
        )
    ]
    assert engine.view.cluster.free.item(0) == 0b1111_1000

    engine.handle(JobGone("second"), 1.0)
    assert engine.view.cluster.free.item(0) == 0b1111_1100


def test_pods_on_nodes_that_are_not_there_are_gone() -> None:
    story = Story("a")
    engine = story.engine
    said = engine.handle(
        JobArrived(job("lost", 2), (Placement(0, "gone", (0, 1)),)), 0.0
    )

    assert [type(each).__name__ for each in said] == ["Bind"]


def test_a_job_told_anew_keeps_its_chips_from_who_reserved_them() -> None:
    story = Story("a", conf=conf(PREEMPT))
    story.hears(JobArrived(job("low"), at("a 01234567"), 0.0))
    said = story.arrives(job("high", priority=9), now=10)
    assert "evict low: 0 for high (preempt)" in said

    told = story.hears(JobGone("low"), JobArrived(job("low"), at("a 01234567"), 0.0))

    assert not [each for each in told if each.startswith(("bind", "conflict"))]
    assert story.running == {"low": [0]}
