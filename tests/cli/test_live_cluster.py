"""Every question to a live cluster, asked of a real API server, also by kubectl."""

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest

from ringleaf.kube import records
from ringleaf.kube.record_store import LABEL, name_of
from ringleaf.model.fault import Cause, PodFault, Record
from ringleaf_testbed import build
from ringleaf_testbed.actor import Actor
from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.hardware import fleet
from tests.cli.inside import run_inside
from tests.stories.stage import vcjob

NODES = "/api/v1/nodes"
NPU = "huawei.com/Ascend910"
SCRIPT = Path(sys.executable).with_name("kubectl-ringleaf")
PATIENCE_S = 60.0
LEAVES_SCREEN = b"\x1b[?1049l"
Plain = dict[str, Any]


@pytest.fixture(scope="module", name="bed")
def _bed(new_testbed: type[Testbed]) -> Iterator[Testbed]:
    """Two nodes; on one runs a pod, and another one waits for both."""
    tokens: dict[str, tuple[str, list[str]]] = {
        who: (who, []) for who in ("stranger", "lister")
    }
    with new_testbed(open_queue=True, tokens=tokens) as bed, Actor(bed.client) as actor:
        machines = fleet("atlas-800t-a2", 2, first=10, prefix="n")
        actor.add_machines(machines)
        node = machines[0].name
        submit(bed, pod("runs", 8, nodeName=node))
        submit(bed, pod("waits", 8))
        submit(bed, pod("waits-too", 8))
        yield bed


def pod(name: str, chips: int, **spec: Any) -> Plain:  # noqa: ANN401
    chips_of = ",".join(f"Ascend910-{i}" for i in range(chips))
    asks = {"limits": {NPU: str(chips)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "annotations": {NPU: chips_of} if "nodeName" in spec else {},
        },
        "spec": {
            "schedulerName": "ringleaf",
            "nodeSelector": {"accelerator-type": "module-910b-8"},
            "containers": [{"name": "c", "image": "none", "resources": asks}],
            **spec,
        },
    }


def submit(bed: Testbed, plain: Plain) -> None:
    bed.client.ask("POST", "/api/v1/namespaces/default/pods", plain)


def ask(
    bed: Testbed,
    *arguments: str,
    stdin: str = "",
    kubeconfig: Path | None = None,
    plugin: bool = False,
) -> subprocess.CompletedProcess[str]:
    """The command; as a *plugin* kubectl calls it."""
    environment = {"KUBECONFIG": str(kubeconfig or bed.kubeconfig), "COLUMNS": "100"}
    if not plugin:
        return run_inside(*arguments, stdin=stdin, environment=environment)
    path = os.pathsep.join([str(SCRIPT.parent), os.environ["PATH"]])
    return subprocess.run(  # noqa: S603
        [build.command("kubectl"), "ringleaf", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **environment, "PATH": path, "HOME": str(bed.folder)},
        check=False,
    )


def test_plan_says_where_a_manifest_would_go_and_submits_nothing(bed: Testbed) -> None:
    small = json.dumps(pod("new", 9))

    never = ask(bed, "plan", "-f", "-", stdin=small)
    waits = ask(bed, "plan", "-f", "-", "--json", stdin=json.dumps(pod("new", 8)))

    assert never.returncode == 1
    assert "is invalid: 9 chips in one pod are more than the 8" in never.stdout
    (found,) = json.loads(waits.stdout)["decisions"]
    assert (waits.returncode, found["verdict"]) == (1, "waiting")
    status, _answer = bed.request("GET", "/api/v1/namespaces/default/pods/new")
    assert status == 404


def test_plan_says_which_namespace_is_not_there(bed: Testbed) -> None:
    given = pod("new", 8)
    given["metadata"].pop("namespace", None)
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nope"}}
    both = {"apiVersion": "v1", "kind": "List", "items": [made, given]}
    call = ("plan", "-f", "-", "-n", "nope")

    missing = ask(bed, *call, stdin=json.dumps(given))
    brought = ask(bed, *call, stdin=json.dumps(both))

    assert missing.stderr == "ringleaf: warning: there is no namespace 'nope' yet\n"
    assert "there is no namespace" not in brought.stderr


def test_plan_may_ask_the_api_server_to_fill_in_the_rest(bed: Testbed) -> None:
    stdin = json.dumps(pod("new", 8))

    done = ask(bed, "plan", "-f", "-", "--server-dry-run", stdin=stdin)
    bad = pod("new", 8) | {"spec": {"schedulerName": "ringleaf", "containers": []}}
    refused = ask(bed, "plan", "-f", "-", "--server-dry-run", stdin=json.dumps(bad))

    assert done.returncode == 1
    assert "pod default/new" in done.stdout
    assert refused.returncode == 2
    assert "the API server refuses it: Pod " in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_explain_says_where_a_pod_is_and_why_one_waits(bed: Testbed) -> None:
    runs = ask(bed, "explain", "pod/runs")
    first = ask(bed, "explain", "pod/waits", "--json")
    second = ask(bed, "explain", "pod/waits-too")

    assert runs.returncode == 0, runs.stderr
    assert ": choice 1 if the job were placed now" in runs.stdout
    told = json.loads(first.stdout)
    assert (first.returncode, told["bound"]) == (1, False)
    assert second.returncode == 1
    waits = "pod 'default/waits-too' (atlas-800t-a2, 1 x 8 chips): pending"
    assert waits in second.stdout


@pytest.mark.parametrize(
    ("queue", "told"),
    [
        ("nosuch", "; its queue 'nosuch' does not exist\n"),
        (
            "default",
            "; Volcano's job controller creates it; hint: kubectl -n ",
        ),
    ],
)
def test_a_volcano_job_without_a_podgroup_is_no_missing_job(
    bed: Testbed, queue: str, told: str
) -> None:
    name = f"in-{queue}"
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    job = vcjob(name, 2, 8)
    job["spec"]["queue"] = queue
    bed.client.ask("POST", path, job)

    done = ask(bed, "explain", f"job/{name}", "-n", "default")
    other = ask(bed, "explain", "job/no-such-job", "-n", "default")

    assert done.returncode == other.returncode == 2
    start = f"ringleaf: Volcano Job 'default/{name}' exists and has no PodGroup"
    assert done.stderr.startswith(f"{start}{told}")
    assert "there is no job 'default/no-such-job'" in other.stderr


@pytest.fixture
def set_aside(bed: Testbed) -> Iterator[str]:
    """A scheduler has written down that the node without pods is set aside."""
    spaces = "/api/v1/namespaces"
    bed.request("POST", spaces, {"metadata": {"name": "volcano-system"}})
    names = sorted(n["metadata"]["name"] for n in bed.client.list_all(NODES)[0])
    now = time.time()
    fault = {"where": names[1], "cause": "PodRefused", "seen": now, "until": now + 600}
    path = f"{spaces}/volcano-system/configmaps"
    data = {"ringleaf-faults": json.dumps([fault])}
    name = "vcjob-fault-npu-cm"
    bed.client.ask("POST", path, {"metadata": {"name": name}, "data": data})
    yield names[1]
    bed.client.ask("DELETE", f"{path}/{name}")


def test_nodes_that_are_set_aside_are_known_to_all_questions(
    bed: Testbed, set_aside: str
) -> None:
    del set_aside
    explained = ask(bed, "explain", "pod/waits")
    planned = ask(bed, "plan", "-f", "-", stdin=json.dumps(pod("new", 8)))
    (product,) = json.loads(ask(bed, "status", "--json").stdout)["products"]

    assert "1 quarantined" in explained.stdout
    assert "1 quarantined" in " ".join(planned.stdout.split())
    assert product["quarantined"] == 1


def test_status_counts_chips_and_jobs(bed: Testbed) -> None:
    told = json.loads(ask(bed, "status", "--json").stdout)
    shown = ask(bed, "status")

    (product,) = told["products"]
    assert (product["chips"], product["used"], product["free"]) == (16, 8, 8)
    names = [each["job"] for each in told["waiting"]]
    assert names == ["pod default/waits", "pod default/waits-too"]
    assert told["leader"]["state"] == "no lease"
    assert shown.returncode == 0
    assert "2 jobs pending, the oldest first:" in shown.stdout


def test_status_knows_who_leads(bed: Testbed) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    spec = {
        "holderIdentity": "somebody",
        "leaseDurationSeconds": 60,
        "renewTime": at,
    }
    lease = {"metadata": {"name": "other"}, "spec": spec}
    bed.client.ask("POST", path, lease)

    told = ask(bed, "status", "--json", "--leader-elect-resource-name", "other")

    assert json.loads(told.stdout)["leader"]["holder"] == "somebody"
    assert json.loads(told.stdout)["leader"]["state"] == "leads"


def test_repairs_are_known_by_their_records(bed: Testbed) -> None:
    """They are where the Lease is, or would be; elsewhere they mean nothing."""
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    spec = {"minMember": 1, "queue": "default"}
    made = {"metadata": {"name": "broken"}, "spec": spec}
    head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    uid = bed.client.ask("POST", groups, head | made)["metadata"]["uid"]
    record = Record(1.0, pod_faults=(PodFault(0, Cause.CHIP, "n-10"),), deleted=(0,))
    name = name_of("default/broken", uid)
    data = {
        "job": "default/broken",
        "podgroup-uid": uid,
        "record": records.write(record),
    }
    written = {"metadata": {"name": name, "labels": {LABEL: "repair"}}, "data": data}
    seen = []
    for namespace in ("default", "kube-system"):
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        bed.client.ask("POST", maps, written)
        found = json.loads(ask(bed, "faults", "--json").stdout)
        seen.append([each["job"] for each in found["repairs"]])
        bed.client.ask("DELETE", f"{maps}/{name}")
    bed.client.ask("DELETE", f"{groups}/broken")

    assert seen == [[], ["default/broken"]]


def test_faults_are_those_of_the_reports_with_the_lives_that_were_written_down(
    bed: Testbed,
) -> None:
    space = "/api/v1/namespaces/volcano-system"
    bed.request("POST", "/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
    before = ask(bed, "faults")
    lives = [{"where": "gone", "cause": "NodeUnhealthy", "seen": 1e9, "jobs": ["x/y"]}]
    written = {
        "metadata": {"name": "vcjob-fault-npu-cm"},
        "data": {"ringleaf-faults": json.dumps(lives)},
    }
    assert bed.request("POST", f"{space}/configmaps", written)[0] == 201

    done = ask(bed, "faults", plugin=True)
    plain = json.loads(ask(bed, "faults", "--json", "--node", "gone").stdout)
    unknown = ask(bed, "faults", "--job", "nope")
    bed.client.ask("DELETE", f"{space}/configmaps/vcjob-fault-npu-cm")

    assert (before.returncode, before.stderr) == (0, "")
    assert "no faults" in before.stdout
    assert "since when" not in before.stdout
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 fault on 1 node" in done.stdout
    assert plain["faults"][0]["seen"] == 1e9
    assert unknown.returncode == 2
    assert unknown.stderr.startswith(
        "ringleaf: --job is 'nope', want the name of a job"
    )


@pytest.mark.parametrize("options", [(), ("--anonymous",)], ids=["named", "anonymous"])
def test_a_dump_can_be_planned_and_explained(
    bed: Testbed, tmp_path: Path, options: tuple[str, ...]
) -> None:
    file = tmp_path / "dump.json"

    written = ask(bed, "dump", "-o", str(file), *options, "--json")
    planned = ask(bed, "plan", str(file), "--json")

    assert written.returncode == 0, written.stderr
    verdicts = [each["verdict"] for each in json.loads(planned.stdout)["decisions"]]
    assert sorted(verdicts) == ["placed", "placed", "waiting"]
    assert ("waits-too" in file.read_text()) is not bool(options)


def test_kubectl_finds_it_as_a_plugin(bed: Testbed) -> None:
    done = ask(bed, "explain", "pod/runs", plugin=True)
    usage = ask(bed, "status", "--help", plugin=True)
    bad = ask(bed, "explain", "pod/nobody", "--quux", plugin=True)

    assert done.returncode == 0, done.stderr
    assert "pod 'default/runs' (" in done.stdout
    assert "Usage: kubectl ringleaf status" in usage.stdout
    assert "hint: kubectl ringleaf explain --help" in bad.stderr


@pytest.mark.parametrize("command", ["status", "faults", "dump", "explain pod/runs"])
def test_who_may_not_list_is_told_which_right_is_missing(
    bed: Testbed, command: str
) -> None:
    stranger = bed.kubeconfig_of("stranger")

    done = ask(bed, *command.split(), kubeconfig=stranger)

    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("ringleaf: not allowed to list ")
    assert "; want a role with list of " in line


def test_the_lease_of_the_leader_is_found_wherever_it_is(bed: Testbed) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 3600, "renewTime": now}
    lease = {"metadata": {"name": "ringleaf"}, "spec": spec}
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert bed.request("POST", path, lease)[0] == 201

    found = json.loads(ask(bed, "status", "--json").stdout)["leader"]
    where = ("--leader-elect-resource-namespace", "kube-system")
    named = json.loads(ask(bed, "status", "--json", *where).stdout)["leader"]
    bed.client.ask("DELETE", f"{path}/ringleaf")

    assert (found["lease"], found["holder"]) == ("default/ringleaf", "me")
    assert named == {"lease": "kube-system/ringleaf", "state": "no lease"}


@pytest.mark.parametrize("command", ["status", "faults", "dump", "explain pod/runs"])
def test_the_right_to_list_is_enough(bed: Testbed, command: str) -> None:
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}
    role = {"metadata": {"name": "lister"}, "rules": [rule]}
    to = {
        "metadata": {"name": "lister"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "lister"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "lister"}],
    }
    bed.request("POST", f"/apis/{group}/v1/clusterroles", role)
    bed.request("POST", f"/apis/{group}/v1/clusterrolebindings", to)

    done = ask(bed, *command.split(), kubeconfig=bed.kubeconfig_of("lister"))

    assert done.returncode == 0, done.stderr


def test_an_api_server_that_is_not_there_is_one_line(
    bed: Testbed, tmp_path: Path
) -> None:
    text = bed.kubeconfig.read_text().replace(bed.url, "https://127.0.0.1:1")
    away = tmp_path / "kubeconfig"
    away.write_text(text)

    done = ask(bed, "status", kubeconfig=away)

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "127.0.0.1:1" in line


def test_a_screen_that_may_not_be_seen_ends_with_one_line(bed: Testbed) -> None:
    stranger = bed.kubeconfig_of("stranger")
    options = ("status", "--watch", "--kubeconfig", str(stranger))

    with _Terminal(bed, *options) as terminal:
        assert terminal.status() == 2
        terminal.wait_for(b"ringleaf: not allowed to list ")


def test_the_screen_follows_the_cluster_until_q(bed: Testbed) -> None:
    with _Terminal(bed, "status", "--watch") as terminal:
        terminal.wait_for(b"2 jobs pending")
        submit(bed, pod("later", 8))
        try:
            terminal.wait_for(b"3 jobs pending")
        finally:
            path = "/api/v1/namespaces/default/pods/later"
            bed.client.ask("DELETE", path, {"gracePeriodSeconds": 0})
        terminal.press(b"q")

        assert terminal.status() == 0


def test_the_screen_of_faults_follows_the_lives_that_are_written_down(
    bed: Testbed,
) -> None:
    space = "/api/v1/namespaces/volcano-system"
    bed.request("POST", "/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
    lives = [{"where": "lost", "cause": "NodeUnhealthy", "seen": 1e9}]
    written = {
        "metadata": {"name": "vcjob-fault-npu-cm"},
        "data": {"ringleaf-faults": json.dumps(lives)},
    }
    with _Terminal(bed, "faults", "--watch") as terminal:
        terminal.wait_for(b"no faults")
        assert bed.request("POST", f"{space}/configmaps", written)[0] == 201
        try:
            terminal.wait_for(b"1 fault on 1 node")
        finally:
            bed.client.ask("DELETE", f"{space}/configmaps/vcjob-fault-npu-cm")
        terminal.press(b"q")

        assert terminal.status() == 0


def test_a_screen_that_is_ended_leaves_the_terminal_as_it_was(bed: Testbed) -> None:
    with _Terminal(bed, "status", "--watch") as terminal:
        terminal.wait_for(b"2 jobs pending")
        terminal.end()

        assert terminal.status() == 0
        terminal.wait_for(LEAVES_SCREEN)


def test_a_terminal_that_cannot_be_drawn_on_is_refused(bed: Testbed) -> None:
    with _Terminal(bed, "status", "--watch", kind="dumb") as terminal:
        assert terminal.status() == 2
        terminal.wait_for(b"TERM is 'dumb'; hint: without --watch")


class _Terminal:
    """A command on a terminal of its own."""

    def __init__(self, bed: Testbed, *arguments: str, kind: str = "xterm") -> None:
        self._bed, self._arguments, self._kind = bed, arguments, kind
        self._seen = b""

    def __enter__(self) -> Self:
        ours, theirs = pty.openpty()
        self._stream = ours
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "ringleaf", *self._arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={
                **os.environ,
                "KUBECONFIG": str(self._bed.kubeconfig),
                "COLUMNS": "80",
                "LINES": "40",
                "TERM": self._kind,
            },
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(ours, False)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE_S)
        os.close(self._stream)

    def press(self, keys: bytes) -> None:
        os.write(self._stream, keys)

    def end(self) -> None:
        self._process.terminate()

    def wait_for(self, text: bytes) -> None:
        end = time.monotonic() + PATIENCE_S
        while text not in self._seen:
            assert time.monotonic() < end, self._seen[-2000:]
            self._read()

    def _read(self) -> None:
        try:
            self._seen += os.read(self._stream, 1 << 16)
        except BlockingIOError:
            time.sleep(0.05)
        except OSError:  # the other side is closed
            time.sleep(0.05)

    def status(self) -> int:
        end = time.monotonic() + PATIENCE_S
        while self._process.poll() is None and time.monotonic() < end:
            self._read()
        return self._process.wait(1.0)
