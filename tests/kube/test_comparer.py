"""Books that are not as the objects are, and how that is found."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ringleaf.kube.comparer import (
    JOBS_AT_ONCE,
    jobs_that_differ,
    nodes_that_differ,
    slices,
    strangers,
)
from tests.kube.stage import Stage
from tests.kube.test_stepdown import with_preemption


def stage_of() -> Stage:
    """A gang of two on a and b, and a pod alone on c."""
    stage = Stage("a b c")
    stage.gang("g", 2)
    stage.pod("p", 4)
    stage.cycle()
    stage.cycle()
    return stage


def found(stage: Stage) -> list[str]:
    cache, engine = stage.cache, stage.engine
    return [
        *nodes_that_differ(cache, engine),
        *strangers(cache, engine),
        *jobs_that_differ(cache, engine, cache.gangs),
    ]


def test_books_that_are_right_differ_in_nothing() -> None:
    stage = stage_of()
    assert found(stage) == []
    assert stage.decider.may_be_compared


def lose_a_node(stage: Stage) -> None:
    del stage.cache.state.nodes["c"]


def count_a_chip_as_free(stage: Stage) -> None:
    stage.engine.view.cluster.free[0] = 1


def forget_chips(stage: Stage) -> None:
    stage.engine.view.cluster.take(2, 0)


def forget_a_pod(stage: Stage) -> None:
    stage.engine.view.cluster.holdings["default/g"].pop()


def forget_an_object(stage: Stage) -> None:
    del stage.cache.state.gangs["default/g"]


def lose_a_pod(stage: Stage) -> None:
    pods = stage.cache.gangs["default/g"].pods
    del pods[min(pods)]


def move_a_pod(stage: Stage) -> None:
    for pod in stage.cache.gangs["pod default/p"].pods.values():
        pod.node = "a"


def hold_a_chip_for_nobody(stage: Stage) -> None:
    stage.engine.view.cluster.take(2, 0b11111)


def miss_a_report(stage: Stage) -> None:
    facts = stage.cache.nodes["b"]
    stage.cache.state.nodes["b"] = replace(facts, node=replace(facts.node, offers=0b1))


DIFFERENCES: dict[Callable[[Stage], None], str] = {
    lose_a_node: "the engine knows node 'c', the API server says otherwise",
    count_a_chip_as_free: "chips [0] of node 'a' count as free",
    forget_chips: "job 'pod default/p': pod 'p' holds chips 0, 1, 2, 3 of node 'c', "
    "free: 0, 1, 2, 3",
    hold_a_chip_for_nobody: "chips [4] of node 'c' are held by no pod",
    miss_a_report: "node 'b' is not what its object and reports say",
    forget_a_pod: "job 'default/g': pod 'g-1' is on node 'b', and is not in the books",
    forget_an_object: "job 'default/g' holds chips, and is not there",
    lose_a_pod: "job 'default/g': pod 0 holds chips of node 'a', and does not",
    move_a_pod: "job 'pod default/p': pod 'p' is on node 'a', and another in the books",
}


@pytest.mark.parametrize("change", DIFFERENCES, ids=lambda each: each.__name__)
def test_a_difference_is_found_and_gone_after_a_new_beginning(
    change: Callable[[Stage], None],
) -> None:
    stage = stage_of()
    change(stage)
    assert DIFFERENCES[change] in found(stage)


CHANGES_OF_THE_ENGINE = [
    count_a_chip_as_free,
    forget_chips,
    forget_a_pod,
    hold_a_chip_for_nobody,
]


@pytest.mark.parametrize("change", CHANGES_OF_THE_ENGINE)
def test_a_new_engine_has_the_books_right(change: Callable[[Stage], None]) -> None:
    stage = stage_of()
    change(stage)
    stage.decider.begin_anew()
    assert not stage.decider.may_be_compared
    assert stage.cycle() == []
    assert found(stage) == []


def test_what_is_reserved_is_no_difference() -> None:
    stage = stage_of()
    stage.gang("big", 3)
    stage.cycle(1)
    stage.cycle(600)
    assert found(stage) == []


def test_nothing_differs_while_a_search_for_victims_is_interrupted() -> None:
    stage = Stage("a b c d e f g h", with_preemption())
    for i in range(8):
        stage.pod(f"low-{i}", 8)
    stage.cycle()
    for i in range(20):
        asks = {"cpu": f"{1000 + i}m"}
        stage.pod(f"high-{i}", 8, asks=asks, spec={"priority": 100})

    interrupted = 0
    for _slice in range(100):
        words = stage.cycle(later=0.1, most=1)
        assert found(stage) == []
        interrupted += stage.engine.has_more
        for word in words:
            if word.startswith("evict"):
                stage.drop_pod(word.split("/")[1].partition(":")[0])

    assert interrupted > 1
    assert sum(pod.startswith("high") for pod in stage.bound) == 8


def test_jobs_are_looked_at_a_few_at_a_time() -> None:
    names = [str(i) for i in range(2 * JOBS_AT_ONCE + 1)]
    assert [len(each) for each in slices(names)] == [JOBS_AT_ONCE, JOBS_AT_ONCE, 1]
