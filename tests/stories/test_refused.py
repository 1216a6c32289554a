"""A node whose device plugin fails: its pods go elsewhere, and it is set aside."""

from collections.abc import Iterator

import pytest

from tests.stories.stage import Stage, has_told, node_of, nodes_of, vcjob

KEPT = "/api/v1/namespaces/volcano-system/configmaps/vcjob-fault-npu-cm"


@pytest.fixture
def forgetful(stage: Stage) -> Iterator[Stage]:
    """A stage on which nobody knows afterwards that a node was set aside."""
    yield stage
    stage.stop_scheduler()
    stage.bed.client.request("DELETE", KEPT)


def test_a_pod_that_its_node_refuses_is_made_again_elsewhere(forgetful: Stage) -> None:
    stage = forgetful
    scheduler = stage.schedule()
    stage.apply(vcjob("first", 2, 8))
    broken = node_of(stage.wait_until_running("first", 2)[0])
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{stage.namespace}/jobs/first"
    stage.bed.client.ask("DELETE", path)
    stage.wait(lambda: not stage.pods(), "the first job to be gone")

    stage.actor.refuse_pods(broken)
    try:
        stage.apply(vcjob("train", 2, 8))
        pods = stage.wait_until_running("train", 2)
    finally:
        stage.actor.refuse_pods(broken, refuses=False)

    assert broken not in nodes_of(pods)
    (refusal,) = stage.actor.failed
    assert refusal.endswith(": UnexpectedAdmissionError")
    stage.actor.failed.clear()
    assert has_told(scheduler, "release")
    assert "UnexpectedAdmissionError" in stage.wait_for_event(broken, "Quarantined")
