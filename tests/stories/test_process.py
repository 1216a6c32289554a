"""The process: probes, the end, the record, credentials, a bad configuration."""

import asyncio
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from ringleaf.kube.api import Api
from ringleaf.kube.credentials import load
from ringleaf.kube.leader import Elector, Terms
from ringleaf.kube.scheduler import Options, Scheduler
from tests.deploy.helm import NAMESPACE
from tests.stories.stage import (
    GRACE_S,
    LIMITED,
    Stage,
    answer_of,
    has_told,
    node_of,
    pod,
    podgroup,
    vcjob,
)


def test_probes_are_answered(stage: Stage) -> None:
    scheduler = stage.schedule()

    answers = {probe: answer_of(scheduler, probe) for probe in ("healthz", "readyz")}

    assert {status for status, _told in answers.values()} == {200}
    assert all(told["ok"] for _status, told in answers.values())


def test_a_scheduler_that_is_asked_to_end_leaves_no_gang_half_bound(
    stage: Stage,
) -> None:
    """Asked in the middle of binding 200 pods."""
    stage.stop_scheduler()
    for i in range(20):
        stage.create(podgroup(f"gang-{i}", 10))
        for j in range(10):
            stage.create(pod(f"gang-{i}-{j}", group=f"gang-{i}", selector={}))
    scheduler = stage.start_scheduler(None, "--connections", "1")

    def n_bound() -> int:
        return sum(bool(node_of(each)) for each in stage.pods())

    stage.wait(n_bound, "the first pod to be bound")
    scheduler.stop(GRACE_S)

    gangs = Counter(
        each["metadata"]["name"].rpartition("-")[0]
        for each in stage.pods()
        if node_of(each)
    )
    assert scheduler.status == 0
    assert gangs
    assert {*gangs.values()} == {10}


def test_a_gang_that_is_bound_in_part_is_released(stage: Stage) -> None:
    """As a crash may leave one; the place that its other pod wants is not there."""
    stage.stop_scheduler()
    stage.create(podgroup("half", 2))
    stage.create(pod("half-0", group="half", selector={}))
    stage.create(pod("half-1", group="half", selector={"no": "such-node"}))
    target = {"apiVersion": "v1", "kind": "Node", "name": "plain"}
    binding = {"metadata": {"name": "half-0"}, "target": target}
    stage.bed.client.ask("POST", f"{stage.pod_path('half-0')}/binding", binding)

    scheduler = stage.start_scheduler(None, "--release-seconds", "1")
    stage.wait(lambda: len(stage.pods()) == 1, "half a gang to be deleted")
    scheduler.stop(GRACE_S)

    assert [each["metadata"]["name"] for each in stage.pods()] == ["half-1"]
    assert stage.events("half", "Released")


def test_what_was_recorded_is_decided_the_same_again(
    stage: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "record.log"
    stage.schedule(None, "--record", str(file))
    stage.apply(vcjob("some", 2, 8, labels={"tor-affinity": "large-model-schema"}))
    stage.create(pod("never", 9))
    stage.create(pod("one", 1))
    stage.wait_until_running("some", 2)
    stage.wait_until_runs("one")
    stage.wait_for_condition("never", "chips")
    stage.stop_scheduler()

    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "ringleaf", "replay", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\bno\s+difference\b", done.stdout), done.stdout


def test_credentials_of_a_pod(stage: Stage, tmp_path: Path) -> None:
    """The files of a service account, and the address in the environment."""
    stage.stop_scheduler()
    account = yaml.safe_load(stage.account.read_text(encoding="utf-8"))
    token = account["users"][0]["user"]["token"]
    (tmp_path / "token").write_text(token, encoding="utf-8")
    (tmp_path / "ca.crt").write_bytes(stage.bed.ca.read_bytes())
    where = urlsplit(stage.bed.url)
    environ = {
        "KUBERNETES_SERVICE_HOST": str(where.hostname),
        "KUBERNETES_SERVICE_PORT": str(where.port),
    }
    stage.create(pod("one", 1))

    def silent(*_words: object, **_more: object) -> None:
        """Say nothing."""

    async def serve() -> int:
        """Schedule until the pod was seen to run."""
        credentials = await load(environ=environ, service_account=tmp_path)
        async with Api(credentials, 4, lambda _line: None) as api:
            elector = Elector(api, Terms("ringleaf", NAMESPACE, "a-pod"), silent)
            own = Options(namespace=NAMESPACE)
            scheduler = Scheduler(api, own, silent, elector=elector)
            task = asyncio.create_task(scheduler.run())
            try:
                await asyncio.to_thread(stage.wait_until_runs, "one")
            finally:
                scheduler.stop()
                await task
        return scheduler.writers.binder.n_bound

    assert asyncio.run(serve()) == 1


def test_a_scheduler_that_may_not_bind_says_so_on_the_pod(stage: Stage) -> None:
    """Once, however often it tries; and binds when it may."""
    stage.stop_scheduler()
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rules: list[dict[str, list[str]]] = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["*"], "resources": ["*/status", "events"], "verbs": ["*"]},
    ]
    name = stage.namespace
    role = {"metadata": {"name": name}, "rules": rules}
    stage.bed.client.ask("POST", roles, role)
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User"}
    binding = {
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": name,
        },
        "subjects": [{**subject, "name": "limited"}],
    }
    stage.bed.client.ask("POST", f"{roles[:-5]}rolebindings", binding)
    config = str(stage.bed.kubeconfig_of(LIMITED))
    scheduler = stage.start_scheduler(
        *(None, "--kubeconfig", config, "--no-leader-elect"), kubeconfig=False
    )

    stage.create(pod("one", 1))
    said = stage.wait_for_condition("one", "was not bound: 403")
    n_tries = 4
    stage.wait(
        lambda: scheduler.log.read_text().count("bind failed") >= n_tries, "four tries"
    )
    events = stage.events("one")
    more = {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]}
    stage.bed.client.ask("PATCH", f"{roles}/{name}", {"rules": [*rules, more]})
    stage.wait_until_runs("one")
    scheduler.stop(GRACE_S)

    assert said["reason"] == "Unschedulable"
    hint = f"hint: ringleaf explain pod/one -n {name}"
    assert events == [f"{said['message']}; {hint}"]


@pytest.mark.parametrize(
    ("conf", "word"),
    [
        ('actions: "enqueue, alocate"\ntiers: [{plugins: [{name: gang}]}]', "alocate"),
        ('actions: "allocate"\ntiers: [{plugins: [{name: ganng}]}]', "ganng"),
    ],
)
def test_d22_a_configuration_with_unknown_names_is_refused_at_start(
    stage: Stage, conf: str, word: str
) -> None:
    scheduler = stage.launch_scheduler(conf)

    stage.wait(lambda: not scheduler.is_running, "the scheduler to end")

    assert scheduler.status == 2
    assert scheduler.says(word)


def test_a_server_that_is_not_there_is_waited_for(stage: Stage) -> None:
    """The end comes when it is asked for, also before anything was listed."""
    nowhere = stage.bed.folder / "nowhere"
    text = stage.bed.kubeconfig.read_text(encoding="utf-8")
    nowhere.write_text(text.replace(stage.bed.url, "https://127.0.0.1:9"), "utf-8")
    scheduler = stage.launch_scheduler(
        None, "--kubeconfig", str(nowhere), kubeconfig=False
    )
    stage.wait(lambda: has_told(scheduler, "started"), "the start")

    scheduler.stop(GRACE_S)

    assert scheduler.status in (0, -signal.SIGTERM)
