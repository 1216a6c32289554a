"""Higher priority first."""

import pytest

from tests.plugins.stage import Stage, as_text, pods


def test_higher_priority_goes_first() -> None:
    stage = Stage()
    jobs = [stage.waits("low", priority=1), stage.waits("high", priority=9)]
    votes = stage.votes("priority")

    assert [s.job.name for s in sorted(jobs, key=votes.job_key)] == ["high", "low"]


@pytest.mark.parametrize(
    ("evictor", "want"),
    [
        pytest.param(3, "a0 b0", id="victims of any lower priority"),
        pytest.param(2, "a0", id="equal priority is safe"),
        pytest.param(1, "", id="no job below: no victims"),
    ],
)
def test_victims_have_a_strictly_lower_priority(evictor: int, want: str) -> None:
    stage = Stage()
    stage.runs("a", "0", priority=1)
    stage.runs("b", "1", priority=2)
    job_state = stage.waits("j", priority=evictor)

    found = stage.votes("priority").preemptable(job_state, pods("a0 b0"))
    assert as_text(found) == want


@pytest.mark.parametrize(
    ("running", "promised", "want"),
    [
        pytest.param("", 0, True, id="no pod has a place"),
        pytest.param("0 1", 0, True, id="more than must start together, but not all"),
        pytest.param("0 1", 1, False, id="pods that await a place count"),
        pytest.param("0 1 2", 0, False, id="all pods have a place"),
    ],
)
def test_a_job_starves_until_all_its_pods_have_or_await_a_place(
    running: str,
    promised: int,
    want: bool,  # noqa: FBT001
) -> None:
    stage = Stage()
    job_state = stage.runs("j", running, replicas=3, min_available=1)
    job_state.pipelined = frozenset(range(3 - promised, 3))

    assert stage.votes("priority").job_starving(job_state) is want
