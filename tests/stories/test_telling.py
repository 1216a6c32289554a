"""What people and autoscalers are told, once per change."""

from collections.abc import Callable

from tests.stories.stage import (
    A2,
    VOLCANO,
    Object,
    Stage,
    chips_of,
    condition,
    node_of,
    nodes_of,
    pod,
    podgroup,
    scheduled,
    vcjob,
)
from tests.testbed.priority import create_priority_class

HERE = A2 | {"kubernetes.io/hostname": "a2-10"}
PREEMPT = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: affinity}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""


def others_are_bound(stage: Stage, n_pods: int = 4) -> None:
    """Some cycles in which nothing happens to the pod of the story."""
    for i in range(n_pods):
        stage.create(pod(f"other-{i}"))
        stage.wait_until_runs(f"other-{i}")


def phase_of(group: Object) -> str:
    return str(group.get("status", {}).get("phase", ""))


def wait_for_phase(stage: Stage, group: Callable[[], Object], phase: str) -> None:
    stage.wait(lambda: phase_of(group()) == phase, f"phase {phase}")


def test_a_pod_that_waits_says_why_once(stage: Stage) -> None:
    stage.schedule()

    stage.create(pod("large", 9))
    said = stage.wait_for_condition("large", "chips")
    event = stage.wait_for_event("large", "FailedScheduling")
    others_are_bound(stage)

    assert (said["status"], said["reason"]) == ("False", "Unschedulable")
    assert said["message"].startswith(event[:200])
    assert len(stage.events("large")) == 1
    assert "nominatedNodeName" not in stage.pod("large")["status"]


def test_a_pod_that_was_bound_says_where(stage: Stage) -> None:
    stage.schedule()

    stage.create(pod("small", 2, selector=HERE))
    (small,) = stage.wait_until_runs("small")
    said = stage.wait_for_event("small", "Scheduled")

    name = f"{stage.namespace}/small"
    assert said == f"Successfully assigned {name} to a2-10, chips 0, 1"
    assert scheduled(small)["status"] == "True"
    assert len(stage.events("small")) == 1


def test_another_reason_is_told_again(stage: Stage) -> None:
    stage.schedule()

    stage.create(podgroup("many", 13))
    for i in range(12):
        stage.create(pod(f"many-{i}", 8, group="many"))
    stage.wait_for_condition("many-0", "12 of 13 pods are there")
    stage.create(pod("many-12", 8, group="many"))
    room = "its 12 nodes of atlas-800t-a2 have room for 12 of 13 pods"
    said = stage.wait_for_condition("many-0", room)
    stage.wait(
        lambda: any(
            each.startswith(said["message"])
            for each in stage.events("many-0", "FailedScheduling")
        ),
        "another event",
    )

    stage.wait(
        lambda: len(stage.events("many", "Unschedulable")) == 2, "one on the PodGroup"
    )


def test_a_node_that_gets_the_label_is_looked_at(stage: Stage) -> None:
    stage.schedule()

    stage.create(pod("next", 4, selector=A2 | {"zone": "here"}))
    stage.wait_for_condition("next", "12 without the labels the job selects")
    path = "/api/v1/nodes/a2-10"
    stage.bed.client.ask("PATCH", path, {"metadata": {"labels": {"zone": "here"}}})
    try:
        (found,) = stage.wait_until_runs("next")

        assert node_of(found) == "a2-10"
    finally:
        stage.bed.client.ask("PATCH", path, {"metadata": {"labels": {"zone": None}}})


def test_the_phases_of_a_job_that_ends(stage: Stage) -> None:
    """Pending, Inqueue, Running, Completed; what the queue uses is told."""
    stage.schedule()
    queue = f"{VOLCANO}/queues/default"

    def allocated() -> str | None:
        status = stage.bed.client.ask("GET", queue).get("status", {})
        found = (status.get("allocated") or {}).get("huawei.com/Ascend910")
        return None if found is None else str(found)

    stage.create(podgroup("short", 2))
    names = ["short-0", "short-1"]
    for name in names:
        stage.create(pod(name, 8, group="short"))
    stage.wait_until_runs(*names)
    wait_for_phase(stage, lambda: stage.group_of("short"), "Running")
    stage.wait(lambda: allocated() == "16", "16 allocated chips")
    group = stage.group_of("short")
    for name in names:
        path = f"{stage.pod_path(name)}/status"
        stage.bed.client.ask("PATCH", path, {"status": {"phase": "Succeeded"}})
    wait_for_phase(stage, lambda: stage.group_of("short"), "Completed")
    stage.wait(lambda: allocated() in (None, "0"), "no allocated chips")

    assert group["status"]["running"] == 2
    assert condition(group, "Scheduled")["status"] == "True"
    assert condition(group, "Unschedulable") == {}
    assert stage.group_of("short")["status"]["succeeded"] == 2


def test_a_job_over_the_limit_of_its_queue_is_not_let_in(stage: Stage) -> None:
    """Its PodGroup is Pending, its pods are not made; until there is room."""
    stage.schedule()
    name = stage.namespace
    limit = {"cpu": "100", "memory": "1Ti", "huawei.com/Ascend910": "8"}
    stage.bed.client.ask(
        "POST",
        f"{VOLCANO}/queues",
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, "capability": limit},
        },
    )

    stage.apply(vcjob("one", 1, 8, queue=name))
    stage.wait_until_running("one", 1)
    stage.apply(vcjob("two", 1, 8, queue=name))
    wait_for_phase(stage, lambda: stage.group_of("two"), "Pending")
    others_are_bound(stage, 2)
    made, phase = stage.pods("two"), phase_of(stage.group_of("two"))
    stage.bed.kubectl("delete", "-n", name, "jobs.batch.volcano.sh", "one")
    stage.wait_until_running("two", 1)

    assert (made, phase) == ([], "Pending")
    wait_for_phase(stage, lambda: stage.group_of("two"), "Running")


def test_a_group_that_waits_is_let_in_and_says_why(stage: Stage) -> None:
    stage.schedule()

    stage.apply(vcjob("much", 13, 8))
    stage.wait(lambda: len(stage.pods("much")) == 13, "the pods of much")
    said = stage.wait_for_condition("much-worker-0", "13 x 8 chips")
    name = stage.group_of("much")["metadata"]["name"]
    told = stage.wait_for_event(name, "Unschedulable")
    wait_for_phase(stage, lambda: stage.group_of("much"), "Inqueue")
    stage.wait(
        lambda: condition(stage.group_of("much"), "Unschedulable"), "a condition"
    )
    others_are_bound(stage)

    assert said["message"] == told
    assert condition(stage.group_of("much"), "Unschedulable")["message"] == told
    assert len(stage.events("much-worker-0", "FailedScheduling")) == 1
    assert all(
        scheduled(each)["reason"] == "Unschedulable" for each in stage.pods("much")
    )
    assert nodes_of(stage.pods("much")) == [""] * 13


def test_a_group_that_lost_a_pod_is_unknown(stage: Stage) -> None:
    stage.schedule()
    stage.create(podgroup("pair", 2))
    for i in range(2):
        stage.create(pod(f"pair-{i}", 8, group="pair"))
    stage.wait_until_runs("pair-0", "pair-1")
    wait_for_phase(stage, lambda: stage.group_of("pair"), "Running")

    stage.bed.client.ask("DELETE", stage.pod_path("pair-0"), {"gracePeriodSeconds": 0})

    wait_for_phase(stage, lambda: stage.group_of("pair"), "Unknown")
    stage.create(pod("pair-0", 8, group="pair"))
    stage.wait_until_runs("pair-0")
    wait_for_phase(stage, lambda: stage.group_of("pair"), "Running")


def test_a_gated_pod_waits_until_the_gate_is_lifted(stage: Stage) -> None:
    stage.schedule()

    gates = [{"name": "ringleaf.io/story"}]
    stage.create(pod("gated", 1, schedulingGates=gates))
    said = stage.wait_for_event("gated", "FailedScheduling")
    others_are_bound(stage, 2)
    gated = stage.pod("gated")
    stage.bed.client.ask(
        "PATCH", stage.pod_path("gated"), {"spec": {"schedulingGates": None}}
    )
    stage.wait_until_runs("gated")

    assert "scheduling gates" in said
    assert scheduled(gated)["reason"] == "SchedulingGated"
    assert len(stage.events("gated", "FailedScheduling")) == 1


def test_a_pod_waits_until_its_volume_is_bound(stage: Stage) -> None:
    stage.schedule()
    shape = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    size = {"storage": "1Gi"}
    name = stage.namespace
    stage.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {**shape, "volumeName": name, "resources": {"requests": size}},
        }
    )
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    stage.create(pod("reader", 1, volumes=volumes))
    said = stage.wait_for_condition("reader", "unbound volume claims")

    stage.bed.client.ask(
        "POST",
        "/api/v1/persistentvolumes",
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {**shape, "capacity": size, "hostPath": {"path": "/none"}},
        },
    )
    stage.wait_until_runs("reader")

    assert said["reason"] == "Unschedulable"
    assert "data" in said["message"]
    stage.bed.client.ask("DELETE", f"/api/v1/persistentvolumes/{name}")


def test_a_pod_with_resource_claims_says_that_they_are_not_heeded(
    stage: Stage,
) -> None:
    stage.schedule()

    claims = [{"name": "gpu", "resourceClaimName": "mine"}]
    stage.create(pod("claimant", resourceClaims=claims))
    said = stage.wait_for_condition("claimant", "resource claims")
    told = stage.wait_for_event("claimant", "FailedScheduling")

    assert said["reason"] == "Unschedulable"
    assert said["message"] == told


def with_priority(stage: Stage, name: str, value: int) -> str:
    found = f"{name}-{stage.namespace}"
    return create_priority_class(stage.bed.client, stage.namespace, found, value)


def victim(name: str, priority: str, node: str, label: str) -> Object:
    found = pod(
        name,
        8,
        group=f"{name}-group",
        selector=A2 | {"kubernetes.io/hostname": node},
        labels={"team": label},
        priorityClassName=priority,
    )
    found["metadata"]["finalizers"] = ["ringleaf.io/story"]
    return found


def drop_hold(stage: Stage, name: str) -> None:
    change = {"metadata": {"finalizers": None}}
    stage.bed.request("PATCH", stage.pod_path(name), change)


def budget(label: str, least: int = 1, suffix: str = "") -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{label}{suffix}"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"team": label}}},
    }


def urgent(stage: Stage, priority: str) -> None:
    """A job that fits only where the victims are."""
    stage.create(podgroup("urgent-group", 1, priorityClassName=priority))
    terms = [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [n]}
        for n in ("a2-10", "a2-11")
    ]
    either = [{"matchExpressions": [term]} for term in terms]
    near = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": either}
    }
    stage.create(
        pod(
            "urgent",
            8,
            group="urgent-group",
            priorityClassName=priority,
            affinity={"nodeAffinity": near},
        )
    )


def test_victims_are_told_and_budgets_are_heeded(stage: Stage) -> None:
    stage.schedule(PREEMPT)
    low, high = with_priority(stage, "low", 1), with_priority(stage, "high", 1000)
    stage.create(budget("safe"))
    for name, node, label in (("victim", "a2-10", "none"), ("safe", "a2-11", "safe")):
        stage.create(podgroup(f"{name}-group", 1, priorityClassName=low))
        stage.create(victim(name, low, node, label))
    stage.wait_until_runs("safe", "victim")
    path = f"/apis/policy/v1/namespaces/{stage.namespace}/poddisruptionbudgets/safe"
    stage.wait(
        lambda: stage.bed.client.ask("GET", path)["status"].get("currentHealthy") == 1,
        "the budget to know its pod",
    )
    try:
        urgent(stage, high)
        stage.wait(
            lambda: stage.pod("victim")["metadata"].get("deletionTimestamp"),
            "victim to be asked to end",
        )
        stage.wait(
            lambda: condition(stage.pod("victim"), "Ready").get("reason") == "Evict",
            "victim to say why",
        )
        told = condition(stage.pod("victim"), "DisruptionTarget")
        said = stage.wait_for_event("victim", "Evict")
        stage.wait_for_condition("urgent", "victim-group' to end")
        held = node_of(stage.pod("urgent"))
        drop_hold(stage, "victim")
        (found,) = stage.wait_until_runs("urgent")

        assert (told["status"], told["reason"]) == ("True", "PreemptionByScheduler")
        assert "preempt" in said
        assert "urgent" in said
        assert held == ""
        assert (node_of(found), chips_of(found)) == ("a2-10", [*range(8)])
        assert "deletionTimestamp" not in stage.pod("safe")["metadata"]
        assert condition(stage.pod("safe"), "DisruptionTarget") == {}
        assert stage.events("safe", "Evict") == []
    finally:
        drop_hold(stage, "safe")
        drop_hold(stage, "victim")


def test_nobody_is_evicted_where_budgets_protect_all(stage: Stage) -> None:
    """A pod under two budgets is never evicted, whatever they allow."""
    stage.schedule(PREEMPT)
    low, high = with_priority(stage, "low", 1), with_priority(stage, "high", 1000)
    stage.create(budget("safe"))
    for suffix in ("-one", "-two"):
        stage.create(budget("sound", 0, suffix))
    for name, node in (("safe", "a2-10"), ("sound", "a2-11")):
        stage.create(podgroup(f"{name}-group", 1, priorityClassName=low))
        stage.create(victim(name, low, node, name))
    stage.wait_until_runs("safe", "sound")
    try:
        urgent(stage, high)
        stage.wait_for_condition("urgent", "waits")
        others_are_bound(stage, 2)

        assert node_of(stage.pod("urgent")) == ""
        for name in ("safe", "sound"):
            assert "deletionTimestamp" not in stage.pod(name)["metadata"]
            assert stage.events(name, "Evict") == []
    finally:
        drop_hold(stage, "safe")
        drop_hold(stage, "sound")
