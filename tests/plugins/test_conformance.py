"""Pods of the system stay."""

import pytest

from tests.plugins.stage import Stage, as_text, pods


@pytest.mark.parametrize("vote", ["preemptable", "reclaimable"])
def test_pods_of_the_system_are_never_evicted(vote: str) -> None:
    stage = Stage()
    stage.runs("a", "0")
    stage.runs("s", "1", critical=True)
    evictor = stage.waits("j", priority=9)

    found = getattr(stage.votes("conformance"), vote)(evictor, pods("a0 s0"))
    assert as_text(found) == "a0"
