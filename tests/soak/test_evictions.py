"""Each eviction that no rule allows is planted, and caught; what is allowed passes."""

import pytest
from msgspec.structs import replace

from tests.soak.evictions import (
    Eviction,
    Member,
    Shares,
    Usage,
    unannounced,
    violations,
)

FILLER = Member(priority=-10, queue="default", chips=2, guarded=False)
PLAIN = replace(FILLER, priority=0)
JOBS = {
    "filler": FILLER,
    "plain": PLAIN,
    "equal": PLAIN,
    "guarded": replace(PLAIN, guarded=True),
    "urgent": replace(PLAIN, priority=1000),
    "research": replace(PLAIN, queue="research"),
    "modest": replace(FILLER, queue="research"),
}
PREEMPTS = Eviction(at=100.0, job="filler", pods=8, by="urgent", action="preempt")
RECLAIMS = Eviction(at=100.0, job="plain", pods=8, by="research", action="reclaim")


def shares(held: int, offered: int = 200) -> Shares:
    """Two queues of the same weight; what default has held since long ago."""
    found = Shares(Usage(), Usage(), {"default": 1, "research": 1})
    found.held.note("default", 0.0, held)
    found.offered.note("", 0.0, offered)
    return found


@pytest.mark.parametrize(
    "eviction",
    [
        pytest.param(PREEMPTS, id="a lower priority in the same queue"),
        pytest.param(RECLAIMS, id="a queue above its share"),
        pytest.param(replace(RECLAIMS, job="urgent"), id="whatever the priority"),
    ],
)
def test_what_the_rules_allow_passes(eviction: Eviction) -> None:
    assert violations([eviction], JOBS, shares(held=101)) == []


@pytest.mark.parametrize(
    ("eviction", "why"),
    [
        pytest.param(
            replace(PREEMPTS, job="plain", by="equal"),
            "the priorities are 0 and 0",
            id="an equal priority",
        ),
        pytest.param(
            replace(PREEMPTS, job="urgent", by="plain"),
            "the priorities are 1000 and 0",
            id="a higher priority",
        ),
        pytest.param(
            replace(PREEMPTS, job="modest"),
            "the queues are research and default",
            id="preempt across queues",
        ),
        pytest.param(
            replace(RECLAIMS, by="urgent"),
            "both are of queue default",
            id="reclaim in one queue",
        ),
        pytest.param(
            replace(PREEMPTS, job="guarded"),
            "its pods must not be evicted",
            id="pods that are not preemptable",
        ),
        pytest.param(
            replace(PREEMPTS, action="shuffle"),
            "there is no such action",
            id="another action",
        ),
        pytest.param(
            replace(PREEMPTS, by="ghost"), "ghost has no pods", id="for no job"
        ),
    ],
)
def test_what_no_rule_allows_is_caught(eviction: Eviction, why: str) -> None:
    (line,) = violations([eviction], JOBS, shares(held=101))

    told = f"{eviction.action} evicted {eviction.job} for {eviction.by}"
    assert line == f"{told}: {why}"


def test_an_eviction_for_a_job_that_no_node_can_take_is_caught() -> None:
    (line,) = violations([PREEMPTS], JOBS, shares(held=101), {"urgent"})

    assert line.endswith("no node can take that job")


def test_a_queue_that_holds_no_more_than_its_share_loses_nothing() -> None:
    (line,) = violations([RECLAIMS], JOBS, shares(held=100))

    assert line.endswith("queue default held 100 chips, it is entitled to 100")


def test_what_a_queue_lost_a_moment_ago_counts_though_no_watch_has_told_it() -> None:
    first, second = RECLAIMS, replace(RECLAIMS, at=100.5, job="filler")

    allowed = violations([first, second], JOBS, shares(held=117))
    (line,) = violations([first, second], JOBS, shares(held=116))

    assert allowed == []
    assert line.endswith("queue default held 100 chips, it is entitled to 100")


def test_what_a_watch_tells_soon_after_counts() -> None:
    late = shares(held=90)
    late.held.note("default", 101.0, 110)

    assert violations([RECLAIMS], JOBS, late) == []


def test_a_share_is_of_the_nodes_that_are_open() -> None:
    fewer = shares(held=90)
    fewer.offered.note("", 98.0, 160)

    assert violations([RECLAIMS], JOBS, fewer) == []


def test_pods_that_are_evicted_without_a_word_are_caught() -> None:
    job_of = {"default/f-0": "filler", "default/f-1": "filler"}

    found = [
        *unannounced([*job_of, "default/f-0"], [replace(PREEMPTS, pods=2)], job_of)
    ]

    assert found == ["3 pods of filler were evicted, schedulers told of 2"]
    assert [*unannounced(job_of, [PREEMPTS], job_of)] == []
    assert [*unannounced(["a/b"], [], {})] == [
        "1 pods of pod a/b were evicted, schedulers told of 0"
    ]
