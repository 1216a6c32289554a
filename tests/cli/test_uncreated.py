"""A Volcano Job that is not admitted has no pods yet; explain says what they find."""

import asyncio
import json
from typing import Any, cast

import pytest

from ringleaf.cli.explain_live import explain_in, target_of
from ringleaf.cli.uncreated import NONE_LACK, Uncreated, uncreated_pods
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.snapshot import Snapshot
from tests.kube.stage import NPU, Stage

Plain = dict[str, Any]
UID = "52ae36c2-1232-4865-998a-44e65f3c2e9f"
PATH = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/wide"


def volcano_job(pods: int, chips: int = 8, **spec: Any) -> Plain:  # noqa: ANN401
    """A job of one task, as the API server has it."""
    asks = {"limits": {NPU: str(chips)}}
    template = {
        "spec": {
            "nodeSelector": {"accelerator-type": "module-910b-8"},
            "containers": [{"name": "c", "resources": asks}],
            **spec,
        }
    }
    return {
        "metadata": {"name": "wide", "namespace": "default", "uid": UID},
        "spec": {
            "schedulerName": "ringleaf",
            "minAvailable": pods,
            "tasks": [{"name": "w", "replicas": pods, "template": template}],
        },
    }


class Server:
    """Knows one Volcano Job; other answers are an exception to raise."""

    def __init__(self, answer: Plain | Exception, status: int = 200) -> None:
        self._answer, self._status = answer, status

    async def call(self, method: str, path: str, *, lane: str) -> Answer:
        assert (method, path, lane) == ("GET", PATH, "tell")
        if isinstance(self._answer, Exception):
            raise self._answer
        return Answer(self._status, json.dumps(self._answer).encode())


def full_cluster(pods: int, owner: Plain | None = None) -> Stage:
    """Two nodes; a job runs on one, and the PodGroup of another has no pods."""
    stage = Stage("a b")
    stage.pod("runs", 8, spec={"nodeName": "a"}, annotations={NPU: _all_chips()})
    stage.group(f"wide-{UID}", pods, minResources={NPU: str(8 * pods)})
    group = stage.groups[f"wide-{UID}"]
    own = {"name": "wide", "uid": UID, "controller": True, **(owner or {})}
    group["metadata"]["ownerReferences"] = [own]
    stage.put_group(group)
    stage.cycle()
    return stage


def _all_chips() -> str:
    return ",".join(f"Ascend910-{i}" for i in range(8))


def found_of(stage: Stage, server: Server) -> tuple[Snapshot, Uncreated]:
    look = Snapshot(stage.cache, stage.now)
    group = stage.cache.gangs[f"default/wide-{UID}"]
    return look, asyncio.run(uncreated_pods(cast(Api, server), look, group))


def explained(
    stage: Stage, server: Server, capfd: pytest.CaptureFixture[str], *, json: bool
) -> str:
    look, found = found_of(stage, server)
    target = target_of("job/wide", "default")
    assert target is not None
    assert explain_in(look, target, None, 3, found, as_json=json) == 1
    return capfd.readouterr().out


def test_the_reason_of_a_job_without_pods_is_that_of_its_pods(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    stage = full_cluster(2)

    said = explained(stage, Server(volcano_job(2)), capfd, json=False)

    assert "job 'default/wide' (atlas-800t-a2, 2 x 8 chips): pending" in said
    assert "its pods are not created yet; Volcano Job 'default/wide' describes" in said
    assert "nodes: 1 fitting, 1 with too few free chips" in said
    assert "Would start if this job ended: pod default/runs" in said


def test_a_request_that_contradicts_the_hardware_is_invalid_before_it_has_pods(
    capfd: pytest.CaptureFixture[str],
) -> None:
    stage = full_cluster(2)

    said = json.loads(explained(stage, Server(volcano_job(2, 9)), capfd, json=True))

    assert said["decision"]["verdict"] == "invalid"
    assert said["uncreated"].startswith("its pods are not created yet")


def test_a_selector_that_no_product_has_is_named_before_there_are_pods(
    capfd: pytest.CaptureFixture[str],
) -> None:
    odd = {"accelerator-type": "module-910b-88"}
    stage = full_cluster(2)
    server = Server(volcano_job(2, nodeSelector=odd))

    said = json.loads(explained(stage, server, capfd, json=True))

    assert "did you mean 'module-910b-8'?" in said["decision"]["message"]
    assert said["uncreated"].startswith("its pods are not created yet")


def test_nothing_that_ends_is_offered_to_a_job_that_no_empty_cluster_fits(
    capfd: pytest.CaptureFixture[str],
) -> None:
    stage = full_cluster(3)

    said = explained(stage, Server(volcano_job(3)), capfd, json=False)

    words = " ".join(said.split())
    assert "its 2 nodes of atlas-800t-a2 have room for 2 of 3 pods" in words
    assert "ended" not in words
    assert "must end first" not in said


@pytest.mark.parametrize(
    "server",
    [
        pytest.param(Server({}, 404), id="the job is gone"),
        pytest.param(Server({}, 403), id="it may not be read"),
        pytest.param(Server(Unreachable("no answer")), id="no answer"),
        pytest.param(Server({"metadata": {"uid": "other"}}), id="another of its name"),
    ],
)
def test_without_its_volcano_job_a_podgroup_says_what_it_needs(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    said = explained(full_cluster(2), server, capfd, json=False)

    assert "needs 16 huawei.com/Ascend910" in said
    assert "describes them" not in said


def test_a_podgroup_that_nothing_controls_has_no_pods_to_try() -> None:
    stage = full_cluster(2, {"controller": False})

    _look, found = found_of(stage, Server(Unreachable("not asked")))

    assert found is NONE_LACK


def test_a_volcano_job_that_cannot_be_read_says_why() -> None:
    odd = volcano_job(2)
    odd["spec"]["tasks"] = []

    _look, found = found_of(full_cluster(2), Server(odd))

    assert found == Uncreated(
        (),
        "its pods are not created yet; its Volcano Job: Job 'wide': spec.tasks is "
        "empty, want a task",
    )


def test_pods_that_are_there_already_are_not_made_again() -> None:
    stage = full_cluster(2)
    stage.pod("wide-w-0", 8, f"wide-{UID}")
    stage.cycle()

    _look, found = found_of(stage, Server(volcano_job(2)))

    assert [pod.metadata.name for pod in found.pods] == ["wide-w-1"]
