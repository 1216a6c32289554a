"""A chip fails under a job that runs: from the report to the pod that comes after."""

import json
from collections.abc import Iterator

import pytest

from tests.stories.stage import Object, Stage, chips_of, node_of, notes_of, vcjob

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
    stage.wait(
        lambda: "ringleaf.io/repair" not in notes_of(stage.group_of("train")),
        "the repair to be over",
    )
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
