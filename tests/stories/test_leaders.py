"""Two schedulers, one of which leads."""

import json
import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

from ringleaf_testbed.process import Child
from tests.soak.audit import judged
from tests.stories.detour import Detour
from tests.stories.stage import (
    GRACE_S,
    Object,
    Stage,
    answer_of,
    has_told,
    lines_of,
    node_of,
    pod,
    podgroup,
)

PODS = 150
FORBIDDEN = 403
LOOKS = {"get", "list", "watch"}
BRIEF = ("--leader-elect-lease-duration", "6")


def wait_until_leads(stage: Stage, child: Child) -> None:
    stage.wait(lambda: has_told(child, "leads"), f"{child.name} to lead")


def bound(stage: Stage) -> int:
    return sum(bool(node_of(each)) for each in stage.pods())


def cordon(stage: Stage, *, on: bool) -> None:
    for node in stage.bed.client.ask("GET", "/api/v1/nodes")["items"]:
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        stage.bed.client.ask("PATCH", path, {"spec": {"unschedulable": on or None}})


def submit_gang(stage: Stage, name: str, pods: int) -> None:
    stage.create(podgroup(name, pods))
    for i in range(pods):
        stage.create(pod(f"{name}-{i}", 0, group=name, selector={}))


def test_a_standby_is_ready_and_binds_nothing(stage: Stage) -> None:
    leader = stage.schedule()
    wait_until_leads(stage, leader)
    standby = stage.start_scheduler(None)
    submit_gang(stage, "gang", 10)
    stage.wait(lambda: bound(stage) == 10, "the gang to be bound")

    roles = [answer_of(child, "readyz") for child in (leader, standby)]
    standby.stop(GRACE_S)

    assert [(status, told["reasons"]["role"]) for status, told in roles] == [
        (200, "leader"),
        (200, "standby"),
    ]
    assert not has_told(standby, "bind")
    assert standby.status == 0, standby.last_words()
    assert {each["verb"] for each in asked(stage, identity_of(leader, "leads"))} > LOOKS
    assert {each["verb"] for each in asked(stage, identity_of(standby))} == LOOKS


def test_a_leader_that_ends_hands_over_and_a_warm_standby_goes_on(
    stage: Stage,
) -> None:
    stage.stop_scheduler()
    first = stage.start_scheduler(None)
    wait_until_leads(stage, first)
    second = stage.start_scheduler(None)
    submit_gang(stage, "one", 20)
    stage.wait(lambda: bound(stage) > 0, "a pod to be bound")
    first.stop(GRACE_S)
    wait_until_leads(stage, second)
    submit_gang(stage, "two", 20)
    stage.wait(lambda: bound(stage) == 40, "both gangs to be bound")
    second.stop(GRACE_S)

    assert (first.status, second.status) == (0, 0)
    assert judged(stage.bed.audit_log).usurpers == []


def test_a_leader_that_was_stopped_binds_nothing_of_what_it_had_decided(
    stage: Stage,
) -> None:
    """It is stopped amid binding a gang; its successor finds no place for the rest.

    Whatever it had still to send would have been taken: the pods are free, and the API
    server heeds no cordon.
    """
    stage.stop_scheduler()
    first = stage.start_scheduler(None, *BRIEF, "--connections", "1")
    wait_until_leads(stage, first)
    submit_gang(stage, "gang", PODS)
    stage.wait(lambda: bound(stage) > 0, "the first pod to be bound")
    os.kill(first.pid, signal.SIGSTOP)
    second = stage.start_scheduler(None)
    cordon(stage, on=True)
    try:
        before = bound(stage)
        wait_until_leads(stage, second)
        os.kill(first.pid, signal.SIGCONT)
        stage.wait(lambda: has_told(first, "deposed"), "the first one to stand by")
        after = bound(stage)
    finally:
        cordon(stage, on=False)
    stage.wait(lambda: bound(stage) == PODS, "the gang to be whole")
    second.stop(GRACE_S)
    stage.wait(lambda: n_told(first, "leads") == 2, "the first one to lead again")
    first.stop(GRACE_S)

    assert first.status == 0, first.last_words()
    assert 0 < before < PODS
    assert after == before
    assert judged(stage.bed.audit_log).usurpers == []


def test_what_the_network_delivers_late_is_refused_by_the_api_server(
    stage: Stage, tmp_path: Path
) -> None:
    """Requests that the first leader had sent arrive when another leads."""
    stage.stop_scheduler()
    port = urlsplit(stage.bed.url).port
    assert port is not None
    with Detour(port) as detour:
        config = detour.kubeconfig(stage.account, tmp_path)
        first = stage.start_scheduler(
            None, *BRIEF, "--kubeconfig", str(config), "--connections", "4"
        )
        wait_until_leads(stage, first)
        second = stage.start_scheduler(None)
        submit_gang(stage, "gang", PODS)
        stage.wait(lambda: bound(stage) > 0, "the first pod to be bound")
        detour.hold()
        cordon(stage, on=True)
        try:
            wait_until_leads(stage, second)
            before = bound(stage)
            stage.wait(lambda: has_told(first, "deposed"), "the first one to stand by")
            detour.deliver()
            identity = identity_of(first)
            stage.wait(lambda: refusals(stage, identity), "what was held to arrive")
            after = bound(stage)
        finally:
            cordon(stage, on=False)
        stage.wait(lambda: bound(stage) == PODS, "the gang to be whole")
        first.stop(GRACE_S)
        second.stop(GRACE_S)

    assert detour.held > 0
    assert 0 < before == after < PODS
    assert judged(stage.bed.audit_log).usurpers == []


def test_an_outage_that_is_longer_than_the_lease_ends_nobody(
    stage: Stage, tmp_path: Path
) -> None:
    """The API server cannot be reached while a gang is being bound."""
    stage.stop_scheduler()
    port = urlsplit(stage.bed.url).port
    assert port is not None
    with Detour(port) as detour:
        config = detour.kubeconfig(stage.account, tmp_path)
        words = (*BRIEF, "--kubeconfig", str(config), "--connections", "4")
        replicas = [stage.start_scheduler(None, *words) for _replica in range(2)]
        pids = [each.pid for each in replicas]
        stage.wait(lambda: leader_of(replicas), "one of them to lead")
        first = leader_of(replicas)
        assert first is not None
        submit_gang(stage, "gang", PODS)
        stage.wait(lambda: bound(stage) > 0, "the first pod to be bound")
        detour.cut()
        stage.wait(lambda: has_told(first, "deposed"), "the leader to stand by")
        before = bound(stage)
        submit_gang(stage, "late", 10)
        detour.mend()
        stage.wait(lambda: bound(stage) == PODS + 10, "both gangs to be whole")
        again = leader_of(replicas)
        roles = sorted(
            answer_of(each, "readyz")[1]["reasons"]["role"] for each in replicas
        )
        running = [each.pid for each in replicas if each.is_running]
        for each in replicas:
            each.stop(GRACE_S)

    assert 0 < before < PODS
    assert again is not None
    assert roles == ["leader", "standby"]
    assert running == pids
    assert [each.status for each in replicas] == [0, 0]
    assert judged(stage.bed.audit_log).usurpers == []


def leader_of(replicas: list[Child]) -> Child | None:
    """Who has said last that it leads, and not since that it does not."""
    for each in replicas:
        said = [line["event"] for line in lines_of(each.log)]
        roles = [event for event in said if event in ("leads", "deposed")]
        if roles[-1:] == ["leads"]:
            return each
    return None


def n_told(child: Child, event: str) -> int:
    return sum(line["event"] == event for line in lines_of(child.log))


def identity_of(child: Child, event: str = "started") -> str:
    (line,) = [each for each in lines_of(child.log) if each["event"] == event]
    return str(line["identity"])


def asked(stage: Stage, identity: str) -> list[Object]:
    """What somebody asked of the API server."""
    lines = stage.bed.audit_log.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if f"ringleaf/{identity}" in line]


def refusals(stage: Stage, identity: str) -> list[str]:
    """Bindings by somebody that the fence refused."""
    return [
        each["objectRef"]["name"]
        for each in asked(stage, identity)
        if each["objectRef"].get("subresource") == "binding"
        and each["responseStatus"]["code"] == FORBIDDEN
    ]
