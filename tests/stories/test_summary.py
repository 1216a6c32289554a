"""Process 2.0, steps 4 to 6 (seed 003): the fabric learns where jobs are.

The scheduler places, the device plugin annotates, a writer with the chart's own account
writes summaries, and a fabric controller reads them.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ringleaf_testbed.process import Child
from tests.deploy.helm import NAMESPACE, container, install_rights, objects
from tests.stories.stage import (
    GRACE_S,
    Stage,
    answer_of,
    has_told,
    lines_of,
    notes_of,
    vcjob,
)
from tests.stories.test_networks import CONF_2_0, LARGE
from tests.stories.test_used_rights import Right, asked
from tests.summary.fabric import Fabric, Network, Watcher, real_network

NAME: Final = "ringleaf-summary"
ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:{NAME}"
ENABLED: Final = "summary.enabled=true"
TORCH: Final = {**LARGE, "framework": "pytorch", "app": "pytorch"}
RARE: Final[dict[Right, str]] = {
    ("", "configmaps", "delete"): "a minute after the end of a job: tests/summary",
    ("", "events", "create"): "a bad job: tests/summary",
    (NAMESPACE, "leases.coordination.k8s.io", "get"): "a Lease that was not renewed",
}
"""Rights that this story does not need, and who does."""


@pytest.fixture
def account(stage: Stage) -> Path:
    """A kubeconfig of the writer's own account."""
    install_rights(stage.bed, ENABLED)
    return stage.bed.kubeconfig_of_account(NAMESPACE, NAME)


@pytest.fixture
def writer(stage: Stage, account: Path) -> Iterator[Child]:
    """As the Deployment calls it, but for its port."""
    words: list[str] = container("summary", ENABLED)["args"]
    named = [word for word in words if not word.startswith("--healthz-address")]
    command = [sys.executable, "-m", "ringleaf", *named]
    command += ["--healthz-address=127.0.0.1:0", f"--kubeconfig={account}"]
    child = stage.bed.run(f"summary-{stage.namespace}", command)
    child.wait_until(lambda: has_told(child, "leads"))
    yield child
    child.stop(GRACE_S)
    stage.bed.children.remove(child)
    stage.bed.client.ask("DELETE", f"/api/v1/namespaces/{stage.namespace}/configmaps")
    states = "/api/v1/namespaces/volcano-system/configmaps/tor-share-cm"
    stage.bed.request("DELETE", states)


def leaves(stage: Stage) -> dict[str, str]:
    """Which node is under which leaf, by the list of leaf switches."""
    path = "/api/v1/namespaces/kube-system/configmaps/basic-tor-node-cm"
    info = json.loads(stage.bed.client.ask("GET", path)["data"]["tor_info"])
    return {
        server["server_ip"]: leaf["tor_ip"]
        for leaf in info["server_list"]
        for server in leaf["server"]
    }


def states(stage: Stage) -> dict[str, Any]:
    """What tor-share-cm says."""
    path = "/api/v1/namespaces/volcano-system/configmaps/tor-share-cm"
    status, found = stage.bed.request("GET", path)
    told = found["data"]["global-tor-info"] if status == 200 else "{}"
    return dict(json.loads(told))


def said(stage: Stage, job: str) -> dict[str, str]:
    """What the summary of a job says."""
    path = f"/api/v1/namespaces/{stage.namespace}/configmaps/job-summary-{job}"
    status, found = stage.bed.request("GET", path)
    return dict(found["data"]) if status == 200 else {}


def test_process_2_0_the_fabric_is_told_where_jobs_are(
    stage: Stage, writer: Child
) -> None:
    stage.schedule(CONF_2_0)
    under = leaves(stage)
    watcher = Watcher(stage.bed.client, Fabric(under))

    def configured(job: str) -> Network | None:
        return watcher.fabric.networks.get(f"{stage.namespace}/{job}")

    def is_right(job: str) -> bool:
        real = real_network(stage.pods(job), under)
        return real is not None and configured(job) == real

    with watcher:
        stage.apply(vcjob("first", 5, 8, labels=TORCH))
        stage.wait_until_running("first", 5)
        stage.apply(vcjob("second", 5, 8, labels=TORCH))
        stage.wait_until_running("second", 5)
        for job in ("first", "second"):
            stage.wait(lambda job=job: is_right(job), f"the network of {job}")  # type: ignore[misc]
            stage.wait(
                lambda job=job: said(stage, job)["job_status"] == "running",  # type: ignore[misc]
                f"{job} to run",
            )
        first, second = configured("first"), configured("second")
        assert first is not None
        assert second is not None
        table = json.loads(said(stage, "first")["hccl.json"])
        master = said(stage, "first")["masterAddr"]
        stage.wait(
            lambda: sum(s["IsSharedTor"] == 1 for s in states(stage).values()) == 1,
            "one shared leaf in tor-share-cm",
        )
        told = states(stage)
        pods = stage.pods()

        stage.bed.kubectl("delete", "vcjob", "first", "-n", stage.namespace)
        stage.wait(lambda: configured("first") is None, "first to be taken down")
        stage.wait(lambda: is_right("second"), "second to stay")
        gone = said(stage, "first")

    assert len(first.paths) == len(second.paths) == 1
    assert len(first.shared | second.shared) == 1
    assert first.hosts.isdisjoint(second.hosts)
    servers = table["server_list"]
    assert [server["server_sn"] for server in servers] == [
        f"SN-{server['server_name']}" for server in servers
    ]
    assert all(server["container_ids"]["main"] for server in servers)
    assert master == servers[0]["host_ip"]
    assert (gone["operator"], gone["job_status"]) == ("delete", "failed")
    for leaf, state in told.items():
        nodes = {n["NodeName"] for n in state["nodes"]}
        here = [p for p in pods if p["spec"].get("nodeName") in nodes]
        marks = {notes_of(p)["isSharedTor"] for p in here} - {"0"}
        assert {str(state["IsSharedTor"])} - {"0"} == marks, leaf
        jobs = {p["metadata"]["labels"]["volcano.sh/job-name"] for p in here}
        assert {job for n in state["nodes"] for job in n["JobName"]} == jobs
    assert answer_of(writer, "readyz")[1]["reasons"] == {"role": "leader"}
    assert [line for line in lines_of(writer.log) if line["event"] == "trouble"] == []


@pytest.mark.usefixtures("writer")
def test_a_pod_that_is_lost_moves_the_network(stage: Stage) -> None:
    stage.schedule(CONF_2_0)
    under = leaves(stage)
    policies = [{"event": "PodEvicted", "action": "RestartPod"}]
    with Watcher(stage.bed.client, Fabric(under)) as watcher:

        def is_right() -> bool:
            real = real_network(stage.pods("moves"), under)
            found = watcher.fabric.networks.get(f"{stage.namespace}/moves")
            return real is not None and found == real

        stage.apply(vcjob("moves", 3, 8, labels=TORCH, policies=policies))
        before = stage.wait_until_running("moves", 3)
        stage.wait(is_right, "its network")
        node, uid = before[0]["spec"]["nodeName"], before[0]["metadata"]["uid"]
        stage.bed.kubectl("cordon", node)
        try:
            stage.bed.kubectl(
                *("delete", "pod", before[0]["metadata"]["name"]),
                *("-n", stage.namespace, "--grace-period=0", "--force"),
            )
            stage.wait(
                lambda: uid not in {p["metadata"]["uid"] for p in stage.pods("moves")},
                "another pod",
            )
            after = stage.wait_until_running("moves", 3)
            stage.wait(is_right, "its network to move")
        finally:
            stage.bed.kubectl("uncordon", node)

    assert after[0]["spec"]["nodeName"] != node
    assert said(stage, "moves")["job_status"] == "running"


def test_the_writer_needs_every_right_of_its_role_and_no_other(stage: Stage) -> None:
    """By the API server's audit log of the stories before."""
    found = list(asked(stage.bed.audit_log, ACCOUNT))
    if not found:
        pytest.skip("needs the stories before")
    needed = {right for right, _allowed in found}
    anywhere = {("", *rest) for _namespace, *rest in needed}
    roles = [
        each
        for each in objects(ENABLED)
        if each["kind"] in ("Role", "ClusterRole") and NAME in each["metadata"]["name"]
    ]
    granted = {
        (role["metadata"].get("namespace", ""), f"{what}.{group}".rstrip("."), verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for what in rule["resources"]
        for verb in rule["verbs"]
    }

    assert len(roles) == 2
    assert [right for right, is_allowed in found if not is_allowed] == []
    assert granted - needed - anywhere <= {*RARE}


def test_the_writer_may_change_no_other_configmap(stage: Stage, account: Path) -> None:
    """Where roles end, a policy goes on."""
    where = f"/api/v1/namespaces/{stage.namespace}/configmaps"

    def try_to(name: str) -> str:
        body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}
        try:
            return stage.bed.kubectl(
                *(f"--kubeconfig={account}", "create", f"--raw={where}", "-f", "-"),
                input=json.dumps(body),
            )
        except Exception as error:  # noqa: BLE001 - what it says is compared
            return str(error)

    stage.wait(lambda: "is no job summary" in try_to("other"), "the policy to be known")

    assert "job-summary-x" in try_to("job-summary-x")
    stage.bed.client.ask("DELETE", where)
