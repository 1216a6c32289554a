"""Jobs of every kind in "Solution Description" (seed 003), from kubectl to running."""

from tests.stories.stage import (
    A3,
    Object,
    Stage,
    chips_of,
    leaf_of,
    nodes_of,
    notes_of,
    vcjob,
)

COMMON = {"tor-affinity": "normal-schema"}
LARGE = {"tor-affinity": "large-model-schema"}
CONF_2_0 = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: affinity}]
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
configurations:
- name: init-params
  arguments: {nslb-version: "2.0"}
"""


def leaves_of(pods: list[Object]) -> list[int]:
    return [leaf_of(node) for node in nodes_of(pods)]


def marks_of(pods: list[Object]) -> list[tuple[str | None, str | None]]:
    notes = [notes_of(pod) for pod in pods]
    return [(each.get("isSharedTor"), each.get("isHealthy")) for each in notes]


def test_process_1_0_step_by_step(stage: Stage) -> None:
    """Reads basic-tor-node-cm, places by it, writes the switch state on the pods."""
    stage.schedule()

    stage.apply(vcjob("padding", 2, 8, labels=LARGE))
    padding = stage.wait_until_running("padding", 2)
    stage.apply(vcjob("foundation", 6, 8, labels=LARGE))
    foundation = stage.wait_until_running("foundation", 6)
    stage.apply(vcjob("common", 2, 8, labels=COMMON))
    common = stage.wait_until_running("common", 2)

    assert leaves_of(padding) == [2, 2]
    assert marks_of(padding) == [("0", "0")] * 2
    assert sorted(leaves_of(foundation)) == [0, 0, 0, 0, 2, 2]  # the tightest (D36)
    assert marks_of(foundation) == [("2", "0")] * 6
    assert [notes_of(p)["hccl/rankIndex"] for p in foundation] == list("012345")
    assert leaves_of(common) == [1, 1]
    assert marks_of(common) == [("0", "0")] * 2
    assert all(chips_of(pod) == [*range(8)] for pod in padding + foundation + common)


def test_process_2_0_step_by_step(stage: Stage) -> None:
    """After a restart the state of switches is what the pods say."""
    stage.schedule(CONF_2_0)
    stage.apply(vcjob("first", 9, 8, labels=LARGE))
    first = stage.wait_until_running("first", 9)
    stage.stop_scheduler()
    stage.schedule(CONF_2_0)

    ended = first[0]["metadata"]["name"]
    path = f"{stage.pod_path(ended)}/status"
    stage.bed.client.ask("PATCH", path, {"status": {"phase": "Succeeded"}})
    stage.apply(vcjob("second", 4, 8, labels=LARGE))
    stage.apply(vcjob("padding", 1, 8, labels=LARGE))
    padding = stage.wait_until_running("padding", 1)

    assert leaves_of(first) == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert marks_of(first) == [("2", "0")] * 8 + [("1", "0")]
    assert notes_of(first[8])["sharedTorIp"] == "10.0.0.2"
    assert leaves_of(padding) == [0]
    assert marks_of(padding) == [("0", "0")]
    stage.wait(lambda: len(stage.pods("second")) == 4, "the pods of second")
    said = stage.wait_for_condition("second-worker-0", "nodes: 3 fitting")
    assert said["reason"] == "Unschedulable"
    assert nodes_of(stage.pods("second")) == [""] * 4


def test_jobs_of_every_kind_in_2_0(stage: Stage) -> None:
    stage.schedule(CONF_2_0)

    stage.apply(vcjob("padding", 3, 8, labels=LARGE))
    padding = stage.wait_until_running("padding", 3)
    stage.apply(vcjob("foundation", 5, 8, labels=LARGE))
    foundation = stage.wait_until_running("foundation", 5)
    stage.apply(vcjob("common", 4, 8, labels=COMMON))
    common = stage.wait_until_running("common", 4)

    assert (leaves_of(padding), marks_of(padding)) == ([0] * 3, [("0", "0")] * 3)
    assert leaves_of(foundation) == [1, 1, 1, 1, 0]
    assert marks_of(foundation) == [("2", "0")] * 4 + [("1", "0")]
    assert (leaves_of(common), marks_of(common)) == ([2] * 4, [("0", "0")] * 4)


def test_a_single_layer_keeps_jobs_under_one_leaf(stage: Stage) -> None:
    stage.schedule()
    stage.set_leaves(single_layer=True)
    try:
        stage.apply(
            vcjob("three", 3, 8, labels=LARGE), vcjob("five", 5, 8, labels=COMMON)
        )
        three = stage.wait_until_running("three", 3)
        stage.wait(lambda: len(stage.pods("five")) == 5, "the pods of five")
        said = stage.wait_for_condition("five-worker-0", "leaf")

        assert leaves_of(three) == [2, 2, 2]
        assert marks_of(three) == [("0", "0")] * 3
        assert said["reason"] == "Unschedulable"
        assert nodes_of(stage.pods("five")) == [""] * 5
    finally:
        stage.set_leaves()


def test_logical_superpods_hold_a_block_each(stage: Stage) -> None:
    stage.schedule()

    stage.apply(vcjob("blocks", 4, 16, selector=A3, annotations={"sp-block": "32"}))
    pods = stage.wait_until_running("blocks", 4)

    notes = [notes_of(pod) for pod in pods]
    assert [each["super-pod-rank"] for each in notes] == ["0", "0", "1", "1"]
    assert [each["super-pod-id"] for each in notes] == ["0", "0", "1", "1"]
    assert nodes_of(pods) == ["a3-22", "a3-23", "a3-26", "a3-27"]
    assert all(chips_of(pod) == [*range(16)] for pod in pods)


def test_d13_the_switch_state_is_on_pods_in_1_0(stage: Stage) -> None:
    stage.schedule()

    stage.apply(vcjob("inside", 1, 8, labels=COMMON))
    stage.apply(vcjob("across", 5, 8, labels=COMMON))

    assert marks_of(stage.wait_until_running("inside", 1)) == [("0", "0")]
    assert marks_of(stage.wait_until_running("across", 5)) == [("2", "0")] * 5
