"""Failures in a scheduler's log are told apart from what bad input explains."""

import json
from datetime import datetime

import pytest

from tests.soak.evictions import Eviction
from tests.soak.logs import bugs, evictions, took_over

AT = "2026-01-01T00:00:01.500Z"


def line(event: str, **keys: object) -> str:
    return json.dumps({**keys, "event": event, "timestamp": AT})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            line("failed", culprit="Job a/b", why="KeyError: 'x'", trace="T\nat f\nE"),
            "failed: Job a/b; KeyError: 'x' | T | at f | E",
            id="a cycle that failed",
        ),
        pytest.param(
            line("failed", culprit="records", why="ValueError: 7", trace="T"),
            "failed: records; ValueError: 7 | T",
            id="a part that was started again",
        ),
        pytest.param(
            line("quarantined", culprit="Pod t/p", why="OverflowError: 9", trace="T"),
            "quarantined: Pod t/p; OverflowError: 9 | T",
            id="an object that a reader does not know",
        ),
        pytest.param(
            line("cache differs from the objects", what="Node n: 3 chips, not 4"),
            "cache differs from the objects: Node n: 3 chips, not 4",
            id="wrong accounts",
        ),
        pytest.param(
            line(
                "status not written", object="Pod t/p", why="TypeError: no", trace="T"
            ),
            "status not written: Pod t/p; TypeError: no | T",
            id="any event with a trace",
        ),
        pytest.param(
            "Traceback (most recent call last):\n  File x\nMemoryError",
            "it printed a trace: Traceback (most recent call last): |   File x | "
            "MemoryError",
            id="an interpreter that ends",
        ),
    ],
)
def test_what_only_a_bug_explains_is_caught(text: str, told: str) -> None:
    everyday = line("bind", job="a/b", pods=1, nodes=1)

    assert bugs(f"{everyday}\n{text}\n{everyday}") == [told]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(line("problem", kind="Pod", message="not a number"), id="problem"),
        pytest.param(line("trouble", message="connection refused"), id="trouble"),
        pytest.param(line("bind failed", pod="a/b", why="409"), id="bind failed"),
        pytest.param('{"event": "fai', id="a line that a kill cut off"),
        pytest.param("warning: no effect", id="plain words"),
    ],
)
def test_what_bad_input_and_kills_explain_passes(text: str) -> None:
    assert bugs(text) == []


def test_evictions_are_read_with_their_times() -> None:
    text = line("evict", job="a/v", pods=3, by="a/u", action="preempt")

    assert evictions(text) == [Eviction(1767225601.5, "a/v", 3, "a/u", "preempt")]


def test_a_standby_that_begins_to_lead_has_taken_over() -> None:
    at = datetime.fromisoformat(AT).timestamp()

    assert took_over(line("leads"), at)
    assert not took_over(line("leads"), at + 1)
    assert not took_over(line("standby"), at)
