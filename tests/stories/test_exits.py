"""What works, but not well: who is asked to end, and whom others replace."""

import hashlib
import json
from typing import Any

import yaml

from ringleaf_testbed.report import ChipFault
from tests.deploy.helm import objects
from tests.stories.stage import Stage, node_of
from tests.stories.ward import COLLECTED, FAULTS, SINGLE, Ward, names, uids

WEAK = ChipFault(level="SubHealthFault")


def operator_maps(stage: Stage, job: str) -> None:
    """The operator makes what processes read, and the chart lets us write there."""
    words = objects(f"rbac.resetConfigNamespaces={{{stage.namespace}}}")
    own = [e for e in words if e["metadata"].get("namespace") == stage.namespace]
    stage.bed.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(own))
    meta = {"name": f"reset-config-{job}", "namespace": stage.namespace}
    told = {"RankList": [{"RankId": 8}], "UpdateTime": 1, "RetryTime": 0}
    stage.put_map({"metadata": meta, "data": {"reset.json": json.dumps(told)}})


def reset_of(ward: Ward, job: str) -> Any:  # noqa: ANN401 - JSON
    """What the processes of a job read."""
    where = ward.stage.namespace, f"reset-config-{job}"
    return ward.kept(where, "reset.json")


def test_processes_are_asked_to_end_and_pods_deleted_that_have_not(ward: Ward) -> None:
    stage = ward.stage
    stage.schedule(COLLECTED)
    operator_maps(stage, "train")
    pods = ward.run("train", 2, 8, SINGLE | {"subHealthyStrategy": "graceExit"})
    sick = node_of(pods[1])

    ward.fail_chips(sick, [3], WEAK)
    stage.wait(lambda: reset_of(ward, "train").get("GracefulExit"), "it to be asked")
    asked = reset_of(ward, "train")
    now = ward.wait_for_others("train", pods[1:])
    stage.wait(lambda: not reset_of(ward, "train")["GracefulExit"], "it to be over")

    assert asked["RankList"][0]["RankId"] == 8
    stage.wait(lambda: len(ward.told("train", "Faulty")) > 1, "both to be told")
    first, second = ward.told("train", "Faulty")
    assert "is asked to exit within 2 s; faulty: pod 1 on" in first
    assert f"pod 1 on {sick} (SubHealthFault)" in second
    assert uids(now[:1]) == uids(pods[:1])
    assert node_of(now[1]) != sick
    assert ward.deleted() == names("train", 1)
    stage.wait(lambda: reset_of(ward, "train")["RetryTime"], "the repair to be told")
    after = reset_of(ward, "train")
    assert (after["RankList"], after["RetryTime"]) == ([], 1)
    path = f"/api/v1/namespaces/{stage.namespace}/configmaps/reset-config-train"
    data = stage.bed.client.ask("GET", path)["data"]
    assert data["restartType"] == "podReschedule"
    whole = data["reset.json"].encode()
    assert data["checkCode"] == hashlib.sha256(whole).hexdigest()


def test_a_hot_switch_waits_for_whoever_has_a_backup(ward: Ward) -> None:
    stage = ward.stage
    stage.schedule(COLLECTED)
    pods = ward.run("train", 2, 8, SINGLE | {"subHealthyStrategy": "hotSwitch"})
    sick = node_of(pods[1])

    ward.fail_chips(sick, [3], WEAK)
    ward.wait_for_kept(FAULTS, "ringleaf-faults", sick)
    assert ward.deleted() == []
    note = {"metadata": {"annotations": {"needVolcanoOpe": "delete"}}}
    stage.bed.client.ask("PATCH", stage.pod_path("train-worker-1"), note)
    now = ward.wait_for_others("train", pods[1:])

    assert uids(now[:1]) == uids(pods[:1])
    assert node_of(now[1]) != sick
    assert ward.deleted() == names("train", 1)
    (told,) = ward.told("train", "Faulty")
    assert f"pod 1 on {sick} (SubHealthFault)" in told
