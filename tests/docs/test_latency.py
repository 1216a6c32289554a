"""The benchmark of answers under load fails where a goal is missed."""

import pytest
from benchmarks.latency import (
    BINDING,
    DELIVERY,
    MOST_S,
    PROBE,
    RENEWAL,
    RENEWAL_S,
    late,
)

GOOD = {
    PROBE: [0.0, MOST_S],
    RENEWAL: [RENEWAL_S, RENEWAL_S + MOST_S],
    DELIVERY: [0.1, MOST_S],
    BINDING: [0.1, MOST_S],
}


def test_answers_within_the_goal_are_in_time() -> None:
    assert late(GOOD) == []


@pytest.mark.parametrize("what", GOOD)
def test_one_answer_that_is_late_misses_the_goal(what: str) -> None:
    longest = max(GOOD[what])

    assert late({**GOOD, what: [0.0, longest + 0.1, 0.0]}) == [what]
