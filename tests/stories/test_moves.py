"""Running jobs are moved so that a pending gang starts, also by two leaders."""

import time

import pytest

from ringleaf.actions.candidates import BIND_S
from ringleaf.kube import names
from tests.stories.stage import Stage, chips_of, lines_of, node_of, vcjob
from tests.stories.ward import shared

REARRANGING = """
actions: "enqueue, allocate, backfill, rearrange"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: affinity}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
configurations:
- name: rearrange
  arguments: {wait-seconds: 1}
"""
MOVABLE = {names.MOVABLE: "true"}
SAVING = {names.CHECKPOINT_SECONDS: "1"}
SMALL = [f"small-{i}" for i in range(4)]


@pytest.fixture
def halves(stage: Stage) -> Stage:
    """Four nodes of twelve have four free chips each, and no node has more."""
    stage.schedule(REARRANGING)
    stage.apply(vcjob("fill", 8, 8))
    stage.wait_until_running("fill", 8)
    for name in SMALL:
        stage.apply(vcjob(name, 1, 4, labels=MOVABLE, annotations=SAVING))
        stage.wait_until_running(name, 1)
        stage.apply(vcjob(f"beside-{name}", 1, 4))
        stage.wait_until_running(f"beside-{name}", 1)
    for name in SMALL:
        stage.bed.kubectl("delete", "-n", stage.namespace, "vcjob", f"beside-{name}")
    stage.wait(lambda: len(stage.pods()) == 12, "the pods beside the small jobs to go")
    assert len({node_of(stage.pods(name)[0]) for name in SMALL}) == 4
    time.sleep(BIND_S)  # pods that were just bound are not moved
    return stage


def is_done(stage: Stage) -> bool:
    """Whether all jobs run."""
    return stage.phases("gang") == ["Running"] * 2 and all(
        stage.phases(name) == ["Running"] for name in SMALL
    )


@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(False, id="one leader", marks=pytest.mark.long),
        pytest.param(True, id="killed in between"),
    ],
)
def test_a_gang_starts_where_running_jobs_were(
    halves: Stage,
    kill: bool,  # noqa: FBT001 - a table
) -> None:
    """Two jobs must be moved; a leader that is killed between them loses nothing."""
    stage = halves
    before = {name: node_of(stage.pods(name)[0]) for name in SMALL}
    scheduler = stage.schedule(REARRANGING)
    n_lines = len(lines_of(scheduler.log))

    stage.apply(vcjob("gang", 2, 8))
    if kill:
        scheduler.wait_until(
            lambda: any(
                e["event"] == "evict" for e in lines_of(scheduler.log)[n_lines:]
            )
        )
        scheduler.kill()
        stage.schedule(REARRANGING)
    stage.wait(lambda: is_done(stage), "the gang and all that were moved to run")

    after = {name: node_of(stage.pods(name)[0]) for name in SMALL}
    assert sum(after[name] != before[name] for name in SMALL) == 2
    assert not [*shared(stage.pods())]
    assert {len(chips_of(pod)) for pod in stage.pods("gang")} == {8}
    stage.wait(lambda: not any(map(stage.record_of, SMALL)), "the moves to be over")
