"""Faults while nobody schedules, and what is known of them after a restart (D24)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ringleaf_testbed.source import TestbedError
from tests.deploy.helm import ACCOUNT, NAMESPACE
from tests.stories.stage import Stage, has_told, node_of
from tests.stories.ward import (
    COLLECTED,
    FAULTS,
    REASONS,
    SINGLE,
    WHOLE,
    Ward,
    names,
    place,
    places,
    uids,
)

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/ringleaf"


@contextmanager
def only_first_pods_may_go(stage: Stage, other: str) -> Iterator[None]:
    """The API server refuses to delete pods for the scheduler, but those named -0."""
    name = stage.namespace
    rule = f"request.userInfo.username != '{ACCOUNT}' || request.name.endsWith('-0')"
    here = {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [{**pods, "operations": ["DELETE"]}],
                "namespaceSelector": here,
            },
            "validations": [{"expression": rule}],
        },
    }
    binding = {
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    ask = stage.bed.client.ask
    ask("POST", POLICIES, policy)
    ask("POST", f"{POLICIES[:-3]}ybindings", binding)

    def is_refused() -> bool:
        words = ("delete", "pod", other, "--dry-run=server", f"--as={ACCOUNT}")
        try:
            stage.bed.kubectl(*words, f"--namespace={stage.namespace}")
        except TestbedError:
            return True
        return False

    stage.wait(is_refused, "the API server to refuse")
    try:
        yield
    finally:
        ask("DELETE", f"{POLICIES[:-3]}ybindings/{name}")
        ask("DELETE", f"{POLICIES}/{name}")
        stage.wait(lambda: not is_refused(), "the API server to allow")


def faults_of(ward: Ward, *words: str) -> Any:  # noqa: ANN401 - JSON
    """What ``ringleaf faults`` says."""
    return answer_of(ward, "faults", *words)


def answer_of(ward: Ward, *words: str) -> Any:  # noqa: ANN401 - JSON
    """What a command of ``ringleaf`` says of the cluster."""
    command = [sys.executable, "-m", "ringleaf"]
    where = ["--kubeconfig", str(ward.stage.bed.kubeconfig)]
    done = subprocess.run(  # noqa: S603 - our own command
        [*command, *words, "--json", *where],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_one_who_was_killed_has_half_deleted_is_finished(ward: Ward) -> None:
    """And a chip that failed while nobody scheduled is found."""
    stage = ward.stage
    first = ward.start(COLLECTED)
    half = ward.run("half", 3, 8, WHOLE)
    late = ward.run("late", 2, 8, SINGLE)
    with only_first_pods_may_go(stage, "half-worker-1"):
        ward.fail_chips(node_of(half[1]), [4])
        stage.wait(
            lambda: uids(half[:1]) != uids(stage.pods("half")[:1]), "one pod to go"
        )
        first.kill()
        nobody = {"spec": {"holderIdentity": ""}}  # who waited for would take 20 s
        stage.bed.client.ask("PATCH", LEASE, nobody)
        assert ward.is_repaired("half")
        assert uids(half[1:]) == uids(stage.pods("half")[-2:])
    ward.fail_chips(node_of(late[1]), [0])
    ward.start(COLLECTED)
    half_now = ward.wait_for_others("half", half)
    late_now = ward.wait_for_others("late", late[1:])
    ward.stop()

    assert places(half_now[::2]) == places(half[::2])
    assert node_of(half_now[1]) != node_of(half[1])
    assert uids(late_now[:1]) == uids(late[:1])
    assert node_of(late_now[1]) != node_of(late[1])
    wanted = names("half", 0, 1, 2) + names("late", 1)
    assert {*ward.deleted()} == {*wanted}  # some twice: begun before, and overdue


def test_what_a_leader_has_half_deleted_is_finished_by_a_standby(ward: Ward) -> None:
    """One that knew nothing of the repair until it led."""
    stage = ward.stage
    first = ward.start(COLLECTED)
    first.wait_until(lambda: has_told(first, "leads"))
    half = ward.run("half", 3, 8, WHOLE)
    second = ward.start(COLLECTED)
    with only_first_pods_may_go(stage, "half-worker-1"):
        ward.fail_chips(node_of(half[1]), [4])
        stage.wait(
            lambda: uids(half[:1]) != uids(stage.pods("half")[:1]), "one pod to go"
        )
        assert ward.is_repaired("half")
        first.kill()
        stage.bed.client.ask("PATCH", LEASE, {"spec": {"holderIdentity": ""}})
        second.wait_until(lambda: has_told(second, "leads"))
        assert uids(half[1:]) == uids(stage.pods("half")[-2:])
    half_now = ward.wait_for_others("half", half)
    ward.wait_until_over("half")
    ward.stop()

    assert places(half_now[::2]) == places(half[::2])
    assert node_of(half_now[1]) != node_of(half[1])


def test_d24_how_often_pods_may_fail_is_not_forgotten(ward: Ward) -> None:
    stage = ward.stage
    stage.schedule(COLLECTED)
    pods = ward.run("train", 2, 8, SINGLE | {"fault-retry-times": "1"})
    other = ward.run("other", 2, 8, SINGLE)
    full = stage.group_of("train")["metadata"]["name"]
    name = f"{stage.namespace}/{full}"

    ward.fail_pod(pods[1])
    once = ward.wait_for_others("train", pods[1:])
    assert place(once[1]) == place(pods[1])
    ward.wait_for_kept(FAULTS, "remain-retry-times", f'"{name}": {{"UUID"')
    stage.wait(
        lambda: ward.kept(FAULTS, "remain-retry-times")[name]["Times"] == 0,
        "no retry to be left",
    )
    records = ward.wait_for_kept(REASONS, "recent-reschedule-records", name)
    (record,) = records[name]["RescheduleRecords"]
    reasons = record["ReasonOfTask"]
    assert [each["RescheduleReason"] for each in reasons] == ["pod-failed"]
    assert reasons[0]["PodName"] == "train-worker-1"

    stage.stop_scheduler()
    stage.schedule(COLLECTED)
    ward.fail_pod(once[1])
    ward.fail_chips(node_of(other[1]), [6])
    ward.wait_for_others("other", other[1:])
    assert uids(stage.pods("train")) == uids(once)
    assert ward.deleted() == sorted(names("train", 1) + names("other", 1))
    assert ward.kept(REASONS, "recent-reschedule-records")[name] == records[name]

    sick = node_of(other[1])
    nodes = ward.wait_for_kept(FAULTS, "fault-node", sick)
    (entry,) = [each for each in nodes if each["NodeName"] == sick]
    assert entry["UnhealthyNPU"] == ["Ascend910-6"]
    stage.stop_scheduler()
    (before,) = faults_of(ward, "--node", sick)["faults"]
    assert before["acted"] is not None
    stage.schedule(COLLECTED)
    (after,) = faults_of(ward, "--node", sick)["faults"]
    assert after == before
