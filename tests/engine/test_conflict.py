"""Two pods that say they hold the same chip, as a restart may find them."""

import pytest

from ringleaf.engine.event import JobArrived, JobGone, NodesChanged
from ringleaf.framework.instruction import Report, Verdict
from ringleaf.model.cluster import Node
from ringleaf.model.placement import Placement
from ringleaf.policies.products import PRODUCTS
from tests.engine.story import PREEMPT, Story, at, conf, job


def test_a_chip_that_two_pods_claim_belongs_to_the_first_and_is_reported() -> None:
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


@pytest.mark.parametrize(
    ("asked", "named", "charged"),
    [
        pytest.param(2, (4, 5), 2, id="its chips"),
        pytest.param(2, (), 2, id="no chips"),
        pytest.param(2, (4,), 2, id="fewer"),
        pytest.param(2, (2, 3, 4, 5, 6, 7), 2, id="all that no other pod holds"),
        pytest.param(2, (0, 1), 2, id="those of another pod"),
        pytest.param(16, (4, 5), 8, id="more requested than a node has"),
    ],
)
def test_a_queue_is_charged_for_the_chips_that_its_pods_requested(
    asked: int, named: tuple[int, ...], charged: int
) -> None:
    """Whatever chips a pod names, it has as many as it requested."""
    story = Story("a")
    engine = story.engine
    node = engine.view.cluster.names[0]

    def usage() -> int:
        return (
            engine.view.queue_usage["default"].allocated["huawei.com/Ascend910"] // 1000
        )

    engine.handle(JobArrived(job("first", 2), (Placement(0, node, (0, 1)),)), 0.0)
    engine.handle(JobArrived(job("second", asked), (Placement(0, node, named),)), 0.0)
    assert usage() == 2 + charged

    another = Node("another", PRODUCTS["atlas-800t-a2"], 8, 0xFF)
    engine.handle(NodesChanged((another,)), 1.0)
    assert usage() == 2 + charged

    engine.handle(JobGone("second"), 2.0)
    assert usage() == 2


def test_pods_on_nodes_that_are_not_there_are_gone() -> None:
    story = Story("a")
    engine = story.engine
    said = engine.handle(
        JobArrived(job("lost", 2), (Placement(0, "gone", (0, 1)),)), 0.0
    )

    assert [type(each).__name__ for each in said] == ["Bind"]


def test_a_job_that_arrives_again_keeps_chips_that_another_reserved() -> None:
    story = Story("a", conf=conf(PREEMPT))
    story.hears(JobArrived(job("low"), at("a 01234567"), 0.0))
    said = story.arrives(job("high", priority=9), now=10)
    assert "evict low: 0 for high (preempt)" in said

    after = story.hears(JobGone("low"), JobArrived(job("low"), at("a 01234567"), 0.0))

    assert not [each for each in after if each.startswith(("bind", "conflict"))]
    assert story.running == {"low": [0]}
