"""What is not done because of faults, and what is done about pods that never run."""

import json
from pathlib import Path

from ringleaf_testbed.report import ChipFault
from tests.stories.detour import Detour
from tests.stories.stage import (
    A2,
    Object,
    Stage,
    has_told,
    node_of,
    nodes_of,
    pod,
    podgroup,
    vcjob,
)
from tests.stories.test_fault_memory import answer_of, faults_of
from tests.stories.test_standby import value_of
from tests.stories.ward import (
    COLLECTED,
    DIRECT,
    PARAMETERS,
    QUICK,
    SINGLE,
    WHOLE,
    Ward,
    names,
    on,
    places,
    uids,
)

BRAKED = PARAMETERS.format("fault-brake-percent: 30, fault-brake-seconds: 600")
IMPATIENT = PARAMETERS.format(f"{QUICK}, run-within-seconds: 3")


def test_a_storm_of_reports_stops_at_the_brake(ward: Ward) -> None:
    """One job is repaired, two wait: one recovers, one is let through by people.

    Somebody else schedules meanwhile, and knows what was deleted before.
    """
    stage = ward.stage
    ward.forget()  # what was deleted before would count
    scheduler = ward.start(BRAKED)
    jobs = {name: ward.run(name, 2, 8, WHOLE) for name in ("a", "b", "c")}
    for pods in jobs.values():
        ward.fail_chips(node_of(pods[1]), [1])
    ward.wait_for_others("a", jobs["a"])

    for name in ("b", "c"):
        why = " ".join(ward.told(name, "RateLimited"))
        assert "waits for the eviction rate limit: 2 pods to be deleted, 2 of" in why
    assert ward.deleted() == names("a", 0, 1)
    assert scheduler.says('"verdict": "rate-limited"') or scheduler.says(
        "waits for the eviction rate limit"
    )
    full = [stage.group_of(name)["metadata"]["name"] for name in ("b", "c")]
    held = [f"{stage.namespace}/{name}" for name in full]
    stage.wait(
        lambda: faults_of(ward)["rate-limit"]["held"] == held, "both to be named"
    )
    seen = faults_of(ward)
    assert seen["rate-limit"]["engaged"]
    counts = answer_of(ward, "status")["faults"]
    assert (counts["repairs"], counts["rate-limited"]) == (2, 2)
    assert [each["stage"] for each in seen["repairs"]] == ["rate-limited"] * 2
    assert seen["rate-limit"]["deleted"] == 2
    on_them = {each["where"] for each in seen["faults"]}
    assert {node_of(pods[1]) for pods in jobs.values()} <= on_them

    ward.stop()
    scheduler = ward.start(BRAKED)
    scheduler.wait_until(lambda: scheduler.says("waits for the eviction rate limit"))
    assert ward.deleted() == names("a", 0, 1)
    ward.actor.recover_chips(node_of(jobs["b"][1]))
    file = Path(scheduler.command[scheduler.command.index("--scheduler-conf") + 1])
    file.write_text(COLLECTED, encoding="utf-8")
    now = ward.wait_for_others("c", jobs["c"])
    ward.stop()

    assert places(now[:1]) == places(jobs["c"][:1])
    assert uids(stage.pods("b")) == uids(jobs["b"])
    assert ward.deleted() == sorted(names("a", 0, 1) + names("c", 0, 1))


def test_d23_a_damaged_report_starts_no_repair(ward: Ward) -> None:
    stage = ward.stage
    scheduler = stage.schedule(DIRECT)
    pods = ward.run("train", 2, 8, SINGLE)
    sick = node_of(pods[1])
    metric = "ringleaf_check_code_mismatches_total"
    n_before = value_of(scheduler, metric)

    path = f"/api/v1/namespaces/kube-system/configmaps/mindx-dl-deviceinfo-{sick}"
    told = stage.bed.client.ask("GET", path)["data"]["DeviceInfoCfg"]
    wrong = json.loads(told)
    wrong["DeviceInfo"]["DeviceList"]["huawei.com/Ascend910-Unhealthy"] = "Ascend910-2"
    damaged = {"data": {"DeviceInfoCfg": json.dumps(wrong)}}
    stage.bed.client.ask("PATCH", path, damaged)
    stage.wait(lambda: value_of(scheduler, metric) > n_before, "the report to be read")
    ward.fail_chips(sick, [5])
    now = ward.wait_for_others("train", pods[1:])

    assert uids(now[:1]) == uids(pods[:1])
    assert ward.deleted() == names("train", 1)
    parts = {each["part"] for each in faults_of(ward, "--node", sick)["faults"]}
    assert parts == {"chip 5"}


def make_again(stage: Stage, wanted: list[Object]) -> bool:
    """Make pods that are not there; whether all are and run."""
    there = {each["metadata"]["name"]: each for each in stage.pods()}
    for each in wanted:
        if each["metadata"]["name"] not in there:
            stage.create(each)
    return [each["status"]["phase"] for each in there.values()] == ["Running"] * 2


def reference(owner: Object) -> Object:
    """An object as the controller of another."""
    named = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    kind = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {**kind, **named, "controller": True}


def test_a_chip_fails_while_pods_are_on_their_way(ward: Ward) -> None:
    """Their kubelet refuses them, or they are deleted: they run elsewhere."""
    stage = ward.stage
    owner = stage.create(podgroup("gang", 2))
    wanted = [
        pod(f"gang-{n}", 8, group="gang", labels=WHOLE, scheduler="volcano")
        for n in range(2)
    ]
    for each in wanted:
        each["metadata"]["ownerReferences"] = [reference(owner)]
    port = int(stage.bed.url.rpartition(":")[2])
    with Detour(port) as detour:
        account = detour.kubeconfig(stage.account, stage.bed.folder)
        scheduler = ward.start(COLLECTED, "--kubeconfig", str(account))
        stage.wait(lambda: has_told(scheduler, "leads"), "it to lead")
        detour.hold()
        for each in wanted:
            stage.create(each)
        stage.wait(lambda: has_told(scheduler, "bind"), "the gang to be sent")
        for machine in stage.leaf_machines[:2]:
            ward.fail_chips(machine.name, [0])
        detour.deliver()
        stage.wait(lambda: make_again(stage, wanted), "both pods to run")
        ward.stop()

    sick = {each.name for each in stage.leaf_machines[:2]}
    assert sick.isdisjoint(nodes_of(stage.pods()))
    assert ward.witness.nodes() & sick
    ward.actor.failed.clear()


def test_a_gang_that_never_runs_is_released_and_tried_again(ward: Ward) -> None:
    stage = ward.stage
    stage.schedule(IMPATIENT)
    stuck = stage.leaf_machines[-1].name
    ward.actor.stall_pods(stuck)
    try:
        stage.apply(vcjob("train", 2, 4, labels=WHOLE, selector=A2 | on(stuck)))
        (why,) = ward.told("train", "Released")
    finally:
        ward.actor.stall_pods(stuck, stalls=False)
    stage.wait_until_running("train", 2)

    assert "2 of 2 pods did not run within 3 s" in why
    assert ward.deleted() == names("train", 0, 1)


def test_what_works_but_not_well_is_a_fault_for_who_minds(ward: Ward) -> None:
    stage = ward.stage
    stage.schedule(COLLECTED)
    minds = ward.run("minds", 2, 8, SINGLE | {"subHealthyStrategy": "forceExit"})
    ignores = ward.run("ignores", 2, 8, SINGLE)
    parted = ward.run("parted", 2, 8, SINGLE)
    for pods in (ignores, minds):
        ward.fail_chips(node_of(pods[1]), [3], ChipFault(level="SubHealthFault"))
    label = {"metadata": {"labels": {"fault-type": "Separate"}}}
    stage.bed.client.ask("PATCH", stage.pod_path("parted-worker-1"), label)
    minds_now = ward.wait_for_others("minds", minds[1:])
    parted_now = ward.wait_for_others("parted", parted[1:])

    assert uids(minds_now[:1]) == uids(minds[:1])
    assert node_of(minds_now[1]) != node_of(minds[1])
    assert node_of(parted_now[1]) != node_of(parted[1])
    assert uids(stage.pods("ignores")) == uids(ignores)
    assert ward.deleted() == sorted(names("minds", 1) + names("parted", 1))
    assert "SubHealthFault" in ward.told("minds", "Faulty")[0]
    assert "RelationFaultSeparate" in ward.told("parted", "Faulty")[0]
