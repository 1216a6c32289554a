"""A chip fails under a job that runs: from the report to the pod that comes after."""

import json
from collections.abc import Iterator

import pytest

from ringleaf.kube import names, records
from ringleaf.kube.record_store import MOVED
from ringleaf.model.fault import Record
from tests.deploy.helm import NAMESPACE
from tests.stories.stage import (
    JOBS,
    RECORDS,
    VOLCANO,
    Object,
    Stage,
    chips_of,
    node_of,
    notes_of,
    vcjob,
)

LOOSE = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: affinity}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
configurations:
- name: init-params
  arguments: {fault-brake-percent: 100}
"""
FAULTS = "/api/v1/namespaces/volcano-system/configmaps/vcjob-fault-npu-cm"
REASONS = "/api/v1/namespaces/mindx-dl/configmaps/job-reschedule-reason"


@pytest.fixture
def healed(stage: Stage) -> Iterator[Stage]:
    """A stage whose chips are well again at the end."""
    yield stage
    for machine in stage.leaf_machines:
        stage.actor.recover_chips(machine.name)


def place(pod: Object) -> tuple[str, tuple[int, ...]]:
    return node_of(pod), tuple(chips_of(pod))


def uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])


def kept(stage: Stage, path: str, key: str) -> str:
    """What a ConfigMap has; nothing where there is none."""
    status, found = stage.bed.client.request("GET", path)
    return found.get("data", {}).get(key, "") if status == 200 else ""


@pytest.mark.parametrize("restart", [False, True], ids=["one scheduler", "a restart"])
def test_only_the_pod_on_the_faulty_chip_moves(
    healed: Stage,
    restart: bool,  # noqa: FBT001 - a table
) -> None:
    stage = healed
    stage.schedule(LOOSE)
    labels = {"fault-scheduling": "force", "pod-rescheduling": "on"}
    stage.apply(vcjob("train", 3, 8, labels=labels))
    before = stage.wait_until_running("train", 3)
    sick, chips = place(before[1])

    if restart:
        stage.stop_scheduler()
    stage.actor.fail_chips(sick, [chips[3]])
    stage.schedule(LOOSE)
    stage.wait(
        lambda: (
            len(stage.pods("train")) == 3
            and uid(stage.pods("train")[1]) != uid(before[1])
        ),
        "another pod in place of the faulty one",
    )
    after = stage.wait_until_running("train", 3)

    assert [uid(after[n]) for n in (0, 2)] == [uid(before[n]) for n in (0, 2)]
    assert node_of(after[1]) != sick
    group = stage.group_of("train")
    stage.wait(lambda: not stage.record_of("train"), "the repair to be over")
    stage.wait(lambda: sick in kept(stage, FAULTS, "fault-node"), "a node with faults")
    name = f"{stage.namespace}/{group['metadata']['name']}"
    stage.wait(
        lambda: name in kept(stage, REASONS, "recent-reschedule-records"), "a reason"
    )
    records = json.loads(kept(stage, REASONS, "recent-reschedule-records"))
    (record,) = records[name]["RescheduleRecords"]
    assert record["ReasonOfTask"][0]["RescheduleReason"] == "CardUnhealthy"
    assert record["ReasonOfTask"][0]["NodeName"] == sick


def test_d17_healthy_pods_of_a_job_that_is_deleted_return_to_their_chips(
    healed: Stage,
) -> None:
    stage = healed
    stage.schedule(LOOSE)
    stage.apply(vcjob("train", 3, 8, labels={"fault-scheduling": "force"}))
    before = stage.wait_until_running("train", 3)
    sick, chips = place(before[0])

    stage.actor.fail_chips(sick, [chips[0]])
    old = {uid(each) for each in before}
    stage.wait(
        lambda: (
            len(stage.pods("train")) == 3
            and old.isdisjoint(uid(each) for each in stage.pods("train"))
        ),
        "other pods of the job",
    )
    after = stage.wait_until_running("train", 3)

    assert [place(each) for each in after[1:]] == [place(each) for each in before[1:]]
    assert node_of(after[0]) != sick


def test_a_record_of_an_earlier_version_is_moved_once(healed: Stage) -> None:
    """And removed with its job."""
    stage, ask = healed, healed.bed.client.ask
    stage.schedule(LOOSE)
    stage.apply(vcjob("train", 2, 8, labels={"fault-scheduling": "force"}))
    before = stage.wait_until_running("train", 2)
    stage.stop_scheduler()
    maps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    ask("DELETE", f"{maps}/{MOVED}")
    old = records.write(Record(since=1.0, retries_used=1, is_over=True))
    path = write_repair(stage, "train", old)

    stage.schedule(LOOSE)
    stage.wait(lambda: stage.record_of("train") == old, "the record to be moved")
    stage.wait(
        lambda: names.REPAIR not in notes_of(ask("GET", path)), "it to be taken off"
    )
    stage.wait(
        lambda: stage.bed.request("GET", f"{maps}/{MOVED}")[0] == 200, "a note of it"
    )
    stage.stop_scheduler()
    uids = [pod["metadata"]["uid"] for pod in before]
    everything = Record(since=1.0, deleted=(0, 1), deleted_at=1.0)
    forged = records.write(everything, doomed=uids)
    write_repair(stage, "train", forged)
    stage.schedule(LOOSE)
    stage.apply(vcjob("other", 1, 8))
    stage.wait_until_running("other", 1)

    assert [pod["metadata"]["uid"] for pod in stage.pods("train")] == uids
    assert stage.record_of("train") == old
    name = stage.group_of("train")["metadata"]["name"]
    ask("DELETE", f"{JOBS}/namespaces/{stage.namespace}/jobs/train")

    def is_removed() -> bool:
        found, _version = stage.bed.client.list_all(maps, labelSelector=RECORDS)
        return not any(name in str(each.get("data")) for each in found)

    stage.wait(is_removed, "the record to be removed")


def write_repair(stage: Stage, job: str, text: str) -> str:
    """Write a record on the PodGroup of a job, as earlier versions did; its path."""
    name = stage.group_of(job)["metadata"]["name"]
    path = f"{VOLCANO}/namespaces/{stage.namespace}/podgroups/{name}"
    notes = {"metadata": {"annotations": {names.REPAIR: text}}}
    stage.bed.client.ask("PATCH", path, notes)
    return path
