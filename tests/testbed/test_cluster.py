import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleaf_testbed.actor import Actor
from ringleaf_testbed.client import Client
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.hardware import fleet
from ringleaf_testbed.process import is_listening
from ringleaf_testbed.source import TestbedError, version
from tests.testbed.test_process import is_alive

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def bed(new_testbed: type[Testbed]) -> Iterator[Testbed]:
    """A control plane with all controllers, two machines and a node without chips."""
    with new_testbed(audit=True) as made:
        for name in ("kube-controller-manager", "kwok", "vc-controller-manager"):
            made.start(name)
        with Actor(made.client) as actor:
            actor.add_machines(fleet("atlas-800t-a2", 2))
            actor.add_plain_node("plain")
            yield made


def pod(name: str, scheduler: str, **annotations: str) -> dict[str, object]:
    container = {"name": "main", "image": "none", "resources": {"limits": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


def phase(bed: Testbed, name: str) -> str:
    status, found = bed.request("GET", f"{PODS}/{name}")
    return str(found["status"]["phase"]) if status == 200 else ""


def test_the_api_server_tells_its_version(testbed: Testbed) -> None:
    status, told = testbed.request("GET", "/version")

    assert status == 200
    assert told["gitVersion"] == version("kubernetes")


def test_the_certificate_can_be_verified(testbed: Testbed) -> None:
    client = Client(testbed.url, testbed.token, testbed.ca)

    assert client.request("GET", "/readyz")[0] == 200

    client.close()


def test_a_service_account_has_a_kubeconfig_and_the_audit_log_names_it(
    bed: Testbed,
) -> None:
    queue_usage = "/api/v1/namespaces/default/serviceaccounts"
    bed.client.ask("POST", queue_usage, {"metadata": {"name": "somebody"}})
    file = bed.kubeconfig_of_account("default", "somebody")

    with pytest.raises(TestbedError, match="cannot list resource"):
        bed.kubectl(f"--kubeconfig={file}", "get", "leases")

    lines = bed.audit_log.read_text(encoding="utf-8").splitlines()
    (line,) = [
        told
        for told in map(json.loads, lines)
        if told["user"]["username"] == "system:serviceaccount:default:somebody"
        and told.get("objectRef", {}).get("resource") == "leases"
    ]
    assert (line["verb"], line["responseStatus"]["code"]) == ("list", 403)
    assert line["level"] == "RequestResponse"


def test_helm_knows_the_api_server(testbed: Testbed) -> None:
    with pytest.raises(TestbedError, match="release: not found"):
        testbed.helm("status", "nothing")


def test_kubectl_takes_manifests_and_fails_in_one_line(testbed: Testbed) -> None:
    manifest = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine"}}'

    told = testbed.kubectl("apply", "-f", "-", input=manifest)

    assert told == "configmap/mine created\n"
    with pytest.raises(TestbedError, match='configmaps "yours" not found'):
        testbed.kubectl("get", "configmap", "yours")


def test_the_queue_is_open_when_asked_for(testbed: Testbed) -> None:
    path = "/apis/scheduling.volcano.sh/v1beta1/queues/default"

    assert testbed.request("GET", path)[1]["status"]["state"] == "Open"


def test_further_tokens_may_nothing_until_they_have_a_role(
    new_testbed: type[Testbed],
) -> None:
    tokens = {"secret": ("ringleaf", ("schedulers",)), "own": ("system:node:a", ())}
    with new_testbed(tokens=tokens, volcano=False) as bed:
        client = Client(bed.url, "secret", bed.ca)
        stranger = Client(bed.url, "wrong", bed.ca)

        status, told = client.request("GET", "/api/v1/pods")

        assert status == 403
        assert 'User "ringleaf" cannot list resource "pods"' in told["message"]
        assert "secret" in bed.kubeconfig_of("secret").read_text()
        assert ":" not in str(bed.kubeconfig_of("own")), "which would be two files"
        assert stranger.request("GET", "/api")[0] == 401
        client.close()
        stranger.close()


def test_a_killed_api_server_comes_back_with_its_data(
    new_testbed: type[Testbed],
) -> None:
    with new_testbed(fsync=True, volcano=False) as bed:
        url = bed.url
        bed.client.ask("POST", PODS, pod("before", "nobody"))

        bed.restart_apiserver(kill=True)

        assert bed.url == url
        assert phase(bed, "before") == "Pending"


def test_nothing_survives(new_testbed: type[Testbed]) -> None:
    with new_testbed(volcano=False) as bed:
        bed.start("kwok")
        pids = [child.pid for child in bed.children]
        assert len(pids) == 3
        assert all(map(is_alive, pids))

    assert not any(map(is_alive, pids))
    assert not bed.folder.exists()


def test_a_testbed_that_cannot_start_says_why_and_leaves_nothing(
    new_testbed: type[Testbed],
) -> None:
    bed = new_testbed(authorization="Nonsense")

    with pytest.raises(TestbedError, match="kube-apiserver ended with status 1"), bed:
        pass

    assert bed.children == []
    assert not bed.folder.exists()


def test_everything_dies_with_the_python_process(
    new_testbed: type[Testbed], tmp_path: Path
) -> None:
    del new_testbed
    code = """
import time
from pathlib import Path
from ringleaf_testbed.cluster import Testbed
with Testbed(volcano=False, folder=Path("bed")) as bed:
    print(*(child.pid for child in bed.children), flush=True)
    time.sleep(600)
"""
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        parent.kill()
        parent.wait()

    Testbed.wait_for(lambda: not any(map(is_alive, pids)), "all processes to die")


@pytest.mark.parametrize("name", ["kube-scheduler", "vc-scheduler"])
def test_other_schedulers_start_and_stop(bed: Testbed, name: str) -> None:
    child = bed.start(name)
    assert child.is_running

    child.stop()

    assert not is_alive(child.pid)


def test_an_unknown_component_is_refused(testbed: Testbed) -> None:
    with pytest.raises(TestbedError, match="no component is called 'kubelet'"):
        testbed.start("kubelet")


def test_a_taken_port_is_tried_again_elsewhere(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = int(testbed.url.rpartition(":")[2])
    ports = iter([taken, 19_999])
    monkeypatch.setattr("ringleaf_testbed.cluster.free_port", lambda: next(ports))

    # Somebody answers on the taken port, so only the log tells that it is not kwok.
    monkeypatch.setattr(
        "ringleaf_testbed.cluster.is_listening",
        lambda port: port != taken and is_listening(port),
    )
    child = testbed.start("kwok")

    assert f"--server-address=127.0.0.1:{19_999}" in child.command
    child.stop()


def test_the_kube_scheduler_and_kwok_run_a_pod_as_long_as_it_says(bed: Testbed) -> None:
    scheduler = bed.start("kube-scheduler")
    note = {"ringleaf.io/run-seconds": "0.5"}

    bed.client.ask("POST", PODS, pod("short", "default-scheduler", **note))
    bed.client.ask("POST", PODS, pod("long", "default-scheduler"))

    bed.wait_for(lambda: phase(bed, "short") == "Succeeded", "the short pod to end")
    bed.wait_for(lambda: phase(bed, "long") == "Running", "the long pod to run")
    bed.client.ask("DELETE", f"{PODS}/long")
    bed.wait_for(lambda: phase(bed, "long") == "", "the long pod to go")
    scheduler.stop()


def test_volcano_runs_a_job(bed: Testbed) -> None:
    scheduler = bed.start("vc-scheduler")
    task = {
        "name": "worker",
        "replicas": 2,
        "template": {
            "metadata": {"annotations": {"ringleaf.io/run-seconds": "0.5"}},
            "spec": {
                **pod("", "")["spec"],  # type: ignore[dict-item]
                "restartPolicy": "Never",
            },
        },
    }
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "pair"},
        "spec": {"schedulerName": "volcano", "minAvailable": 2, "tasks": [task]},
    }

    bed.client.ask("POST", JOBS, job)

    def state() -> str:
        found = bed.request("GET", f"{JOBS}/pair")[1]
        return str(found.get("status", {}).get("state", {}).get("phase"))

    bed.wait_for(lambda: state() == "Completed", "the job to complete", 60)
    scheduler.stop()
