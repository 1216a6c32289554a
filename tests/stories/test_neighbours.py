"""Others on the same nodes: pods of kube-system, kube-scheduler, Volcano before us."""

from tests.stories.stage import (
    A2,
    Stage,
    chips_of,
    node_of,
    nodes_of,
    notes_of,
    pod,
    vcjob,
)

HERE = A2 | {"kubernetes.io/hostname": "a2-10"}


def test_a_pod_of_kube_system_is_left_alone_and_counts(stage: Stage) -> None:
    stage.schedule()
    system = pod("proxy", cpu="190", scheduler="default-scheduler", nodeName="a2-10")
    path = "/api/v1/namespaces/kube-system/pods"
    stage.bed.client.ask("POST", path, system)
    try:
        stage.create(pod("mine", 1, selector=HERE, cpu="4"))

        said = stage.wait_for_condition("mine", "too few other resources")
        proxy = stage.bed.client.ask("GET", f"{path}/proxy")

        assert said["reason"] == "Unschedulable"
        assert node_of(stage.pod("mine")) == ""
        assert notes_of(proxy) == {}
        assert "deletionTimestamp" not in proxy["metadata"]
        assert stage.events("proxy") == []
    finally:
        stage.bed.request("DELETE", f"{path}/proxy", {"gracePeriodSeconds": 0})
    (mine,) = stage.wait_until_runs("mine")
    assert chips_of(mine) == [0]


def test_kube_scheduler_works_on_the_same_nodes(stage: Stage) -> None:
    stage.schedule()
    other = stage.bed.start("kube-scheduler")
    try:
        stage.create(
            pod("theirs", cpu="150", scheduler="default-scheduler", selector=HERE)
        )
        stage.wait_until_runs("theirs")
        stage.create(pod("mine", 1, cpu="100"))
        stage.create(pod("here", 1, cpu="100", selector=HERE))
        (mine,) = stage.wait_until_runs("mine")
        stage.wait_for_condition("here", "too few other resources")
        stage.create(pod("small", cpu="92", scheduler="default-scheduler"))
        (small,) = stage.wait_until_runs("small")

        assert node_of(mine) != "a2-10"
        assert node_of(small) != "a2-10"
        assert notes_of(small) == {}
        assert stage.events("theirs") == stage.events("small") == []
    finally:
        other.stop()
        stage.bed.children.remove(other)


def test_only_the_scheduler_is_swapped(stage: Stage) -> None:
    """Jobs that ran under Volcano's scheduler go on, new ones are bound by us."""
    stage.stop_scheduler()
    volcano = stage.bed.start("vc-scheduler")
    big = vcjob("big", 2, 0, selector={"kubernetes.io/hostname": "plain"})
    more = vcjob("more", 2, 0, selector={"kubernetes.io/hostname": "plain"})
    for job in (big, more):
        (task,) = job["spec"]["tasks"]
        (container,) = task["template"]["spec"]["containers"]
        asks = {"cpu": "30"}
        container["resources"] = {"requests": asks, "limits": asks}
    try:
        stage.apply(big)
        before = stage.wait_until_running("big", 2)
        stage.apply(more)
        stage.wait(lambda: stage.group_of("more"), "the PodGroup of more")
    finally:
        volcano.stop()
        stage.bed.children.remove(volcano)

    stage.schedule(None, "--scheduler-name", "volcano")
    stage.apply(vcjob("chips", 2, 8))
    stage.wait_until_running("chips", 2)
    after = stage.pods("big")

    assert [p["metadata"]["uid"] for p in after] == [
        p["metadata"]["uid"] for p in before
    ]
    assert nodes_of(after) == nodes_of(before) == ["plain", "plain"]
    stage.wait(
        lambda: stage.group_of("big")["status"]["phase"] == "Running",
        "the phase of the group that ran before",
    )
    assert all(node == "" for node in nodes_of(stage.pods("more")))
    stage.bed.kubectl("delete", "-n", stage.namespace, "jobs.batch.volcano.sh", "big")
    stage.wait_until_running("more", 2)
