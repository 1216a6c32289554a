"""Manifests as the objects that the scheduler would see."""

from typing import Any

import pytest

from ringleaf.kube.manifest import BadManifest, Reader, Submitted, documents_of
from ringleaf.kube.objects import Metadata, PriorityClass

NOW = 1_000_000.0
GROUPS = "scheduling.volcano.sh/v1beta1"
A2 = {"accelerator-type": "module-910b-8"}
CLASSES = {
    "high": PriorityClass(Metadata(name="high"), 100, preemption_policy="Never"),
    "usual": PriorityClass(Metadata(name="usual"), 7, global_default=True),
}


def read(*documents: dict[str, Any], namespace: str = "ml") -> Submitted:
    reader = Reader(namespace, ("ringleaf", "volcano"), CLASSES, NOW)
    return reader.read(documents_of(documents))


def spec(chips: int = 8, scheduler: str = "ringleaf", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    asks = {"limits": {"huawei.com/Ascend910": chips}}
    named = {"schedulerName": scheduler} if scheduler else {}
    container = {"name": "c", "resources": asks}
    return {**named, "nodeSelector": A2, "containers": [container], **more}


def manifest(
    kind: str,
    version: str,
    spec: dict[str, Any],
    **meta: Any,  # noqa: ANN401
) -> dict[str, Any]:
    named = {"name": "x", **meta}
    return {"apiVersion": version, "kind": kind, "metadata": named, "spec": spec}


def pod(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    return manifest("Pod", "v1", spec(**more))


def asking(chips: object) -> dict[str, Any]:
    asks = {"limits": {"huawei.com/Ascend910": chips}}
    return spec(containers=[{"name": "c", "resources": asks}])


def test_a_pod_gets_what_the_api_server_would_fill_in() -> None:
    (found,) = read(pod()).pods

    assert found.metadata.key == "ml/x"
    assert found.spec.priority == 7
    assert found.status.phase == "Pending"


def test_the_name_of_a_priority_class_becomes_its_value_and_policy() -> None:
    (found,) = read(pod(priorityClassName="high")).pods

    assert (found.spec.priority, found.spec.preemption_policy) == (100, "Never")


def test_a_class_of_the_same_manifest_counts_wherever_it_stands() -> None:
    new = manifest("PriorityClass", "scheduling.k8s.io/v1", {}, name="new")
    found = read(pod(priorityClassName="new"), new | {"value": 3})

    assert found.pods[0].spec.priority == 3


def test_a_volcano_job_is_a_group_and_its_pods_task_by_task() -> None:
    tasks = [
        {"name": "lead", "replicas": 1, "template": {"spec": spec(0, "")}},
        {"replicas": 2, "minAvailable": 1, "template": {"spec": spec(8, "")}},
    ]
    job = manifest(
        "Job",
        "batch.volcano.sh/v1alpha1",
        {"tasks": tasks, "queue": "q", "minAvailable": 2},
        annotations={"sp-block": "16"},
        labels={"tor-affinity": "normal-schema"},
    )

    found = read(job)

    (group,) = found.groups
    assert group.metadata.key == "ml/x"
    assert group.metadata.labels == {"tor-affinity": "normal-schema"}
    assert (group.spec.min_member, group.spec.queue) == (2, "q")
    assert group.spec.min_task_member == {"lead": 1, "default1": 1}
    names = [each.metadata.name for each in found.pods]
    assert names == ["x-lead-0", "x-default1-0", "x-default1-1"]
    last = found.pods[-1]
    assert last.spec.scheduler_name == "volcano"
    assert last.metadata.annotations == {
        "scheduling.k8s.io/group-name": "x",
        "volcano.sh/task-spec": "default1",
        "sp-block": "16",
    }
    assert last.metadata.labels == {
        "volcano.sh/task-spec": "default1",
        "volcano.sh/task-index": "1",
    }
    assert list(found.jobs) == ["ml/x"]


@pytest.mark.parametrize(
    ("kind", "version", "owner", "pods"),
    [
        ("Job", "batch/v1", {"parallelism": 3, "completions": 2}, 2),
        ("Job", "batch/v1", {"parallelism": 3}, 3),
        ("Job", "batch/v1", {}, 1),
        ("Deployment", "apps/v1", {"replicas": 2}, 2),
        ("StatefulSet", "apps/v1", {"replicas": 0}, 0),
    ],
)
def test_owners_come_to_the_pods_that_run_at_a_time(
    kind: str, version: str, owner: dict[str, Any], pods: int
) -> None:
    found = read(manifest(kind, version, owner | {"template": {"spec": spec()}}))

    assert len(found.pods) == pods
    assert not found.groups


def test_an_owner_that_says_so_makes_a_gang() -> None:
    owner = {"replicas": 2, "template": {"spec": spec()}}
    said = {"scheduling.volcano.sh/group-min-member": "2"}

    found = read(manifest("Deployment", "apps/v1", owner, annotations=said))

    assert [group.spec.min_member for group in found.groups] == [2]
    assert list(found.jobs) == ["ml/x"]


@pytest.mark.parametrize("said", ["²", "-1", "two", "9" * 5000])
def test_a_minimum_that_is_no_whole_number_is_refused(said: str) -> None:
    owner = {"replicas": 2, "template": {"spec": spec()}}
    least = {"scheduling.volcano.sh/group-min-member": said}

    with pytest.raises(BadManifest, match="want a whole number"):
        read(manifest("Deployment", "apps/v1", owner, annotations=least))


def test_lists_are_opened_and_what_brings_no_pods_is_passed_over() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}

    found = read({"apiVersion": "v1", "kind": "List", "items": [service, pod()]})

    assert len(found.pods) == 1
    assert found.notes == ["Service 's' has no effect here"]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"nodes": []}, "document 1 has no kind, want a manifest such as kind: Pod"),
        (
            pod(scheduler="other"),
            "document 1: Pod 'x': spec.schedulerName is 'other', want ringleaf or",
        ),
        (pod(scheduler=""), "spec.schedulerName is 'default-scheduler', want"),
        (pod(nodeName="n"), "spec.nodeName is 'n', want none: no scheduler decides"),
        (pod(priorityClassName="odd"), "priorityClassName is 'odd', want a"),
        (manifest("DaemonSet", "apps/v1", {}), "is a DaemonSet of apps/v1, want one"),
        (
            {"kind": "Pod", "metadata": {"name": "x"}},
            "document 1: apiVersion of the Pod is missing, want v1",
        ),
        (
            manifest("Job", "batch/v2", {}),
            "of the Job is 'batch/v2', want batch.volcano.sh/v1alpha1 or batch/v1",
        ),
        (
            manifest("Pod", "v1", asking("two")),
            "['huawei.com/Ascend910'] is 'two', want an amount such as 4",
        ),
        (manifest("Pod", "v1", asking(-1)), "is '-1', want 0 or more"),
        (
            manifest("PodGroup", GROUPS, {"minResources": {"cpu": "x"}}),
            "spec.minResources: 'cpu' is 'x', want an amount",
        ),
        (
            manifest("Queue", GROUPS, {"capability": {"cpu": "x"}}),
            "spec.capability: 'cpu' is 'x', want an amount",
        ),
        (manifest("Job", "batch/v1", {}), "the template has no spec, want that of"),
        (
            manifest("Job", "batch/v1", {"parallelism": -1}),
            "parallelism is '-1', want a whole number from 0",
        ),
        (
            manifest("Job", "batch.volcano.sh/v1alpha1", {}),
            "spec.tasks is empty, want a task",
        ),
        ({"apiVersion": "v1", "kind": "Pod"}, "metadata.name is missing, want a name"),
        (pod(containers=7), "Expected `array | null`, got `int`"),
    ],
)
def test_what_cannot_be_understood_is_one_line(
    document: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadManifest) as caught:
        read(document)

    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
