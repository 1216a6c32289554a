"""``ringleaf summary-controller``: once, in turns, and with bad use."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from urllib.request import urlopen

import pytest

from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.process import Child
from tests.cli.inside import run_inside
from tests.stories.stage import GRACE_S, answer_of, has_told, lines_of
from tests.summary.cast import Cast, address_of
from tests.summary.test_job_index import leaves

RINGLEAF = (sys.executable, "-m", "ringleaf")


def run(bed: Testbed, *words: str, who: Path | None = None) -> "CompletedProcess[str]":
    """What comes of a command, with the kubeconfig *who* or that of the admin."""
    return run_inside(
        "summary-controller", f"--kubeconfig={who or bed.kubeconfig}", *words
    )


@contextmanager
def running(bed: Testbed, name: str, *words: str) -> Iterator[Child]:
    """A writer that runs until the end."""
    command = [*RINGLEAF, "summary-controller", f"--kubeconfig={bed.kubeconfig}"]
    command += ["--healthz-address=127.0.0.1:0", *words]
    child = bed.run(name, command)
    try:
        yield child
    finally:
        child.stop(GRACE_S)
        bed.children.remove(child)


def of(cast: Cast, text: str) -> list[str]:
    """The lines of a table that are about jobs of this namespace."""
    lines = text.splitlines()
    return [" ".join(line.split()) for line in lines if f"{cast.namespace}/" in line]


def test_once_says_what_was_written_and_again_that_it_was(cast: Cast) -> None:
    cast.job("bert", [0, 1])
    cast.group("wait", 2)
    first = run(cast.bed, "--once", "--no-leader-elect")
    again = run(cast.bed, "--once", "--no-leader-elect")
    lines = run(cast.bed, "--once", "--json", "--no-leader-elect")

    bert, wait = f"{cast.namespace}/bert", f"{cast.namespace}/wait"
    assert first.returncode == again.returncode == 0, first.stderr
    assert of(cast, first.stdout) == [
        f"{bert} running complete 2 1 written",
        f"{wait} pending initializing 0 1 written",
    ]
    assert of(cast, again.stdout) == [
        f"{bert} running complete 2 1 as it was",
        f"{wait} pending initializing 0 1 as it was",
    ]
    told = [json.loads(line) for line in lines.stdout.splitlines()]
    assert {
        "job": bert,
        "status": "running",
        "table": "complete",
        "servers": 2,
        "slices": 1,
        "outcome": "as it was",
    } in told


def test_once_ends_with_1_where_a_summary_is_not_written(cast: Cast) -> None:
    cast.group("x" * 250, 1, name="long")
    done = run(cast.bed, "--once", "--no-leader-elect", "--json")

    assert done.returncode == 1
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert "left alone" in {line["outcome"] for line in told}
    assert "want 253 at most" in done.stderr


def test_once_waits_for_nobody_who_leads(cast: Cast) -> None:
    name = f"summary-{cast.namespace}"
    words = [f"--leader-elect-resource-name={name}", "--leader-elect-lease-duration=6"]
    cast.group("bert", 1)
    alone = run(cast.bed, "--once", *words)
    with running(cast.bed, "summary-lead", *words) as first:
        first.wait_until(lambda: has_told(first, "leads"))
        (leads,) = [
            line for line in lines_of(first.log) if line.get("event") == "leads"
        ]
        done = run(cast.bed, "--once", *words)
    again = run(cast.bed, "--once", *words)

    assert alone.returncode == again.returncode == 0, alone.stderr
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = [each for each in done.stderr.splitlines() if not each.startswith("{")]
    assert line == (
        f"ringleaf: another writer leads: '{leads['identity']}' holds the Lease "
        f"'kube-system/{name}'; hint: end it first, or --no-leader-elect"
    )


def test_a_writer_that_loses_its_lease_stands_by_and_leads_again(cast: Cast) -> None:
    name = f"summary-{cast.namespace}"
    words = [f"--leader-elect-resource-name={name}", "--leader-elect-lease-duration=6"]
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}"
    with running(cast.bed, "summary-again", *words) as child:
        child.wait_until(lambda: has_told(child, "leads"))
        cast.bed.client.ask("PATCH", path, {"spec": {"holderIdentity": "thief"}})
        child.wait_until(lambda: has_told(child, "deposed"))
        cast.group("bert", 1)
        cast.bed.client.ask("PATCH", path, {"spec": {"holderIdentity": ""}})
        cast.wait_for("bert", job_status="pending")
        _status, ready = answer_of(child, "readyz")
    said = [line["event"] for line in lines_of(child.log)]

    assert child.status == 0, child.last_words()
    assert ready["reasons"]["role"] == "leader"
    assert [event for event in said if event in ("leads", "deposed")] == [
        "leads",
        "deposed",
        "leads",
    ]


def test_once_takes_over_from_a_writer_that_is_gone(cast: Cast) -> None:
    name = f"summary-{cast.namespace}"
    spec = {"holderIdentity": "gone", "leaseDurationSeconds": 3}
    lease = {"metadata": {"name": name}, "spec": spec}
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    cast.bed.client.ask("POST", path, lease)
    cast.group("bert", 1)
    words = [f"--leader-elect-resource-name={name}", "--leader-elect-lease-duration=3"]
    done = run(cast.bed, "--once", *words)

    assert done.returncode == 0, done.stderr
    assert of(cast, done.stdout) == [
        f"{cast.namespace}/bert pending initializing 0 1 written"
    ]


def test_once_does_not_wait_for_a_name_that_is_taken(cast: Cast) -> None:
    path = f"/api/v1/namespaces/{cast.namespace}/configmaps"
    body = {"metadata": {"name": "job-summary-bert"}, "data": {"mine": "yes"}}
    cast.bed.client.ask("POST", path, body)
    cast.group("bert", 1)
    done = run(cast.bed, "--once", "--no-leader-elect")

    assert done.returncode == 1
    assert of(cast, done.stdout)[0].endswith("not written")


@pytest.mark.parametrize("rule", ["", "pods", "configmaps,nodes,pods,podgroups"])
def test_once_waits_for_no_right_that_lacks(cast: Cast, rule: str) -> None:
    """Nor for that to its Lease."""
    bed, name = cast.bed, cast.namespace
    bed.kubectl("create", "serviceaccount", "clerk", "-n", name)
    if rule:
        verbs = "--verb=list,watch"
        words = [f"--resource={kind}" for kind in rule.split(",")]
        words = [
            w.replace("podgroups", "podgroups.scheduling.volcano.sh") for w in words
        ]
        bed.kubectl("create", "clusterrole", name, verbs, *words)
        account = f"--serviceaccount={name}:clerk"
        role = f"--clusterrole={name}"
        bed.kubectl("create", "clusterrolebinding", name, role, account)
    done = run(bed, "--once", who=bed.kubeconfig_of_account(name, "clerk"))
    gone = "clusterrole,clusterrolebinding"
    bed.kubectl("delete", gone, name, "--ignore-not-found")

    assert done.returncode == 1
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ringleaf: nothing is written: ")
    lacks = re.search(r'forbidden: .* cannot \w+ resource "(\w+)"', line)
    assert lacks is not None, line
    assert lacks[1] not in rule.split(",")  # of several the one that is heard first
    assert lacks[1] == "leases" or "nodes" not in rule


@pytest.fixture
def leaf_list(cast: Cast) -> Iterator[str]:
    """A node under a leaf; the path of the ConfigMap with the states of leaves."""
    client = cast.bed.client
    cast.bed.request(
        "POST", "/api/v1/namespaces", {"metadata": {"name": "volcano-system"}}
    )
    found = leaves(1)
    maps = "/api/v1/namespaces/kube-system/configmaps"
    meta = {"name": found.metadata.name}
    client.ask("POST", maps, {"metadata": meta, "data": dict(found.data or {})})
    client.ask("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
    addresses = [{"type": "InternalIP", "address": address_of(1)}]
    status = {"status": {"addresses": addresses}}
    client.ask("PATCH", "/api/v1/nodes/n1/status", status)
    states = "/api/v1/namespaces/volcano-system/configmaps"
    yield states
    client.ask("DELETE", "/api/v1/nodes/n1")
    client.ask("DELETE", f"{maps}/{found.metadata.name}")
    cast.bed.request("DELETE", f"{states}/tor-share-cm")


def test_once_writes_the_states_of_leaves_after_all_jobs(
    cast: Cast, leaf_list: str
) -> None:
    """Where they cannot be written the line says so, and the status is 1."""
    for number in range(6):
        cast.job(f"bert{number}", [1], shared="1")
    fixed = {"metadata": {"name": "tor-share-cm"}, "immutable": True, "data": {"a": ""}}
    cast.bed.client.ask("POST", leaf_list, fixed)
    refused = run(cast.bed, "--once", "--no-leader-elect")
    cast.bed.client.ask("DELETE", f"{leaf_list}/tor-share-cm")
    done = run(cast.bed, "--once", "--no-leader-elect")
    found = cast.bed.client.ask("GET", f"{leaf_list}/tor-share-cm")

    assert refused.returncode == 1
    assert len(of(cast, refused.stdout)) == 6
    told = refused.stderr.splitlines()[-1]
    assert "the states of leaves are not written" in told
    assert "immutable" in told
    assert done.returncode == 0, done.stderr
    (leaf,) = json.loads(found["data"]["global-tor-info"]).values()
    assert leaf["IsSharedTor"] == 1
    assert {f"bert{number}" for number in range(6)} <= {*leaf["nodes"][1]["JobName"]}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--healthz-address=here"], "health address is 'here', want HOST:PORT"),
        (["--context=none"], "context"),
    ],
)
def test_bad_use_is_one_line(testbed: Testbed, words: list[str], line: str) -> None:
    done = run(testbed, "--no-leader-elect", *words)

    assert done.returncode == 2
    told = [each for each in done.stderr.splitlines() if not each.startswith("{")]
    assert len(told) == 1
    assert line in told[0]


def test_of_two_one_writes_and_the_other_takes_over(cast: Cast) -> None:
    lease = f"--leader-elect-resource-name=summary-{cast.namespace}"
    with ExitStack() as on:
        first = on.enter_context(running(cast.bed, "summary-one", lease))
        first.wait_until(lambda: has_told(first, "leads"))
        second = on.enter_context(running(cast.bed, "summary-two", lease))
        second.wait_until(lambda: has_told(second, "standby"))
        cast.job("bert", [0])
        cast.wait_for("bert", job_status="running")
        role = answer_of(second, "readyz")[1]["reasons"]["role"]
        first.stop(GRACE_S)
        cast.become("bert-worker-0", "Failed")
        second.wait_until(lambda: has_told(second, "leads"))
        cast.wait_for("bert", job_status="failed")
        port = lines_of(second.log)[0]["health"]
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
            metrics = page.read().decode()

    assert role == "standby"
    assert first.status == second.status == 0
    assert "ringleaf_summary_leader 1.0" in metrics
    assert 'ringleaf_summary_writes_total{result="failed"} 0.0' in metrics
    assert "ringleaf_summary_seconds_count" in metrics
    assert "ringleaf_summary_strange_maps 0.0" in metrics
