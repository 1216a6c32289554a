"""What the engine hears of objects, and what becomes of its instructions."""

import json

import pytest

from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT, read_conf
from ringleaf.engine.event import JobArrived, JobGone, PodsGone
from ringleaf.framework.job_state import Phase
from ringleaf.kube import records
from ringleaf.kube.gang_state import NOT_SENT
from ringleaf.kube.objects import Metadata, QueueObject, QueueStatus
from ringleaf.kube.pod_state import seconds_of
from ringleaf.kube.reports import check_code
from ringleaf.kube.watch import Gone
from ringleaf.model.fault import Record
from ringleaf.model.placement import Placement
from tests.kube.stage import GROUP, NPU, Stage, node, pod

# Pods alone


def test_a_pod_without_a_group_is_placed_alone() -> None:
    stage = Stage("a")
    stage.pod("p", 2)

    assert stage.cycle() == ["bind pod default/p: p on a 01"]
    assert stage.cycle() == []


def test_a_pod_of_another_scheduler_is_left_alone_and_counts_once_it_is_bound() -> None:
    stage = Stage("a")
    stage.pod("other", 6, scheduler="default-scheduler")
    stage.pod("big", 8)

    assert stage.cycle() == ["bind pod default/big: big on a 01234567"]
    stage.drop_pod("big")
    stage.write("default/other", "a", {NPU: "Ascend910-0"})
    stage.pod("again", 8)
    assert stage.cycle() == ["waiting pod default/again"]


def test_what_other_pods_use_besides_chips_counts() -> None:
    stage = Stage([node("a", allocatable={"cpu": "2"})])
    stage.pod("system", 0, namespace="kube-system", asks={"cpu": "2"}, scheduler="x")
    stage.write("kube-system/system", "a", {})
    stage.pod("p", 1)

    assert stage.cycle() == ["waiting pod default/p"]
    stage.drop_pod("system", "kube-system")
    assert stage.cycle() == ["bind pod default/p: p on a 0"]


def test_nobody_evicts_the_pods_of_other_schedulers() -> None:
    stage = Stage("a", conf=PREEMPT)
    stage.pod("other", 8, scheduler="x", annotations={NPU: "Ascend910-0"})
    stage.write("default/other", "a", {})
    stage.pod("high", 8, spec={"priority": 100})

    assert stage.cycle() == ["waiting pod default/high"]


def test_a_pod_without_chips_goes_to_a_node_without_chips() -> None:
    stage = Stage([node("c", chips=0, labels={})])
    stage.pod("p", 0)

    assert stage.cycle() == ["bind pod default/p: p on c"]


def test_a_resource_that_no_node_has_keeps_a_pod_waiting() -> None:
    stage = Stage("a")
    stage.pod("p", 1, asks={"example.com/gpu": "1"})

    assert stage.cycle() == ["waiting pod default/p"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"schedulingGates": [{"name": "quota"}]}, "has scheduling gates"),
        ({"resourceClaims": [{"name": "x"}]}, "has resource claims"),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
            "has unbound volume claims: default/c",
        ),
        (
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]},
            "has unbound volume claims: default/p-v",
        ),
    ],
)
def test_what_must_happen_first_is_the_reason(
    spec: dict[str, object], told: str
) -> None:
    stage = Stage("a")
    stage.pod("p", 1, spec=spec)

    assert stage.cycle() == []
    assert told in stage.reason("pod default/p")


def test_a_pod_goes_on_when_its_claim_is_bound_and_its_gate_is_open() -> None:
    stage = Stage("a")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    gate = {"schedulingGates": [{"name": "g"}]}
    plain = stage.pod("p", 1, spec={"volumes": [volume], **gate})

    assert stage.cycle() == []
    stage.claim("c", "Bound")
    assert stage.cycle() == []
    del plain["spec"]["schedulingGates"]
    stage.put_pod(plain)
    assert stage.cycle() == ["bind pod default/p: p on a 0"]
    stage.claim("c", "Lost")
    assert stage.cycle() == []


@pytest.mark.parametrize("amount", ["-1", "1000000000000", "0.5"])
def test_a_pod_that_asks_for_nonsense_waits_with_the_reason(amount: str) -> None:
    stage = Stage("a")
    stage.pod("p", 1, asks={NPU: amount})
    stage.pod("good", 1)

    assert stage.cycle() == ["bind pod default/good: good on a 0"]
    assert "want" in stage.reason("pod default/p")


def test_a_pod_that_ended_holds_nothing() -> None:
    stage = Stage("a")
    stage.pod("p")
    stage.cycle()
    stage.pod("q")

    assert stage.cycle() == ["waiting pod default/q"]
    stage.ends("p")
    assert stage.cycle() == ["bind pod default/q: q on a 01234567"]


def test_d20_a_pod_that_is_ending_holds_its_chips_until_it_is_gone() -> None:
    stage = Stage("a")
    plain = stage.pod("p")
    stage.cycle()
    plain["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    stage.put_pod(plain)
    stage.pod("q")

    assert "waiting pod default/q" in stage.cycle()
    stage.drop_pod("p")
    assert stage.cycle() == ["bind pod default/q: q on a 01234567"]


def test_a_pod_made_anew_under_its_name_is_another_pod() -> None:
    stage = Stage("a")
    stage.pod("p")
    stage.cycle()
    stage.pod("p")  # no word of the first one's end

    assert stage.cycle() == ["bind pod default/p: p on a 01234567"]


# Chips


def test_nobody_gets_chips_of_a_node_where_nobody_knows_which_are_held() -> None:
    stage = Stage("a")
    stage.pod("secret", 2, scheduler="x")
    stage.write("default/secret", "a", {})
    stage.pod("p", 1)

    assert stage.cycle() == ["waiting pod default/p"]
    assert [problem.name for problem in stage.cache.problems.unreported] == ["secret"]
    plain = stage.pods["default/secret"]
    real = {"huawei.com/AscendReal": "Ascend910-0,Ascend910-1"}
    plain["metadata"]["annotations"] |= real
    stage.put_pod(plain)
    assert stage.cycle() == ["bind pod default/p: p on a 2"]


def test_a_node_is_clear_again_when_the_pod_with_unknown_chips_is_gone() -> None:
    stage = Stage("a")
    stage.pod("secret", 2, scheduler="x", annotations={NPU: "Ascend910-99999"})
    stage.write("default/secret", "a", {})
    stage.pod("p", 1)

    assert stage.cycle() == ["waiting pod default/p"]
    stage.drop_pod("secret")
    assert stage.cycle() == ["bind pod default/p: p on a 0"]


def test_the_device_plugin_has_the_last_word_on_chips() -> None:
    stage = Stage("a")
    plain = stage.pod("p", 2)
    stage.cycle()
    plain["metadata"]["annotations"]["huawei.com/AscendReal"] = (
        "Ascend910-6,Ascend910-7"
    )
    stage.put_pod(plain)
    stage.pod("q", 6)

    assert stage.cycle() == ["bind pod default/q: q on a 012345"]


def test_unhealthy_chips_are_not_given() -> None:
    stage = Stage("a")
    report = {
        "mindx-dl-deviceinfo-a": {
            "DeviceList": {f"{NPU}-Unhealthy": "Ascend910-0", NPU: "Ascend910-1"},
            "UpdateTime": 1,
            "CmName": "mindx-dl-deviceinfo-a",
            "SuperPodID": -2,
            "ServerIndex": -2,
        }
    }
    stage.config_map(
        "cluster-info-device-0", {"cluster-info-device-0": json.dumps(report)}
    )
    stage.pod("p", 1)

    assert stage.cycle() == ["bind pod default/p: p on a 1"]


def test_d23_a_damaged_report_is_told_once_and_the_last_good_one_stays() -> None:
    stage = Stage("a")
    test = "mindx-dl-deviceinfo-a"
    stage.config_map("cluster-info-device-0", {"cluster-info-device-0": "{"})
    stage.config_map("cluster-info-device-0", {"cluster-info-device-0": "{"})
    stage.config_map(test, {"DeviceInfoCfg": '{"CheckCode": "x"}'}, "kube-system")
    stage.pod("p", 1)

    assert stage.cycle() == ["bind pod default/p: p on a 0"]
    assert [each.name for each in stage.cache.problems.unreported] == [
        "cluster-info-device-0",
        test,
    ]


# Gangs


def test_a_gang_waits_for_all_its_pods() -> None:
    stage = Stage("a b c")
    stage.group("g", 2)
    stage.pod("g-0", 8, "g")

    assert stage.cycle() == []
    assert "1 of 2 pods are there" in stage.reason("default/g")
    stage.pod("g-1", 8, "g")
    assert stage.cycle() == [
        "bind default/g: g-0 on a 01234567, g-1 on b 01234567",
    ]


def test_a_gang_waits_for_its_podgroup() -> None:
    stage = Stage("a")
    stage.pod("g-0", 8, "g")

    assert stage.cycle() == []
    assert "there is no PodGroup 'default/g'" in stage.reason("default/g")
    stage.group("g", 1)
    assert stage.cycle() == ["bind default/g: g-0 on a 01234567"]


def test_pods_are_numbered_by_their_index_and_not_by_when_they_came() -> None:
    stage = Stage("a b c d e f g h i j k")
    stage.group("g", 11)
    for i in (10, 2, 1, 0, 9, 8, 7, 6, 5, 4, 3):
        stage.pod(f"g-{i}", 8, "g")
    stage.cycle()

    ranks = {
        key.rpartition("-")[2]: plain["metadata"]["annotations"]["hccl/rankIndex"]
        for key, plain in stage.pods.items()
    }
    assert all(index == rank for index, rank in ranks.items())


def test_a_given_rank_is_kept() -> None:
    stage = Stage("a b")
    stage.group("g", 2)
    for i, rank in ((0, "1"), (1, "0")):
        stage.pod(f"g-{i}", 8, "g", annotations={"hccl/rankIndex": rank})

    assert stage.cycle() == ["bind default/g: g-1 on a 01234567, g-0 on b 01234567"]


def test_a_job_that_lost_its_pods_is_admitted_anew_beside_some_new_ones() -> None:
    """Volcano creates the others only once the phase of the PodGroup is Inqueue."""
    stage = Stage("a b")
    stage.gang("g", 4, 4, phase="Running")
    stage.cycle()
    for i in range(4):
        stage.drop_pod(f"g-{i}")
    stage.cycle()

    for i in range(2):
        stage.pod(f"g-{i}", 4, "g")
    stage.cycle()
    group = stage.groups["g"]
    stage.put_group({**group, "status": {"phase": "Pending"}})
    stage.cycle()

    assert [*stage.engine.admitted] == ["default/g"]
    assert stage.cache.gangs["default/g"].reported.is_admitted


def test_a_podgroup_without_pods_is_let_in() -> None:
    stage = Stage("a")
    stage.group("g", 1, minResources={NPU: "8"})

    assert stage.cycle() == []
    assert stage.cache.gangs["default/g"].reported.is_admitted
    stage.pod("g-0", 8, "g")
    assert stage.cycle() == ["bind default/g: g-0 on a 01234567"]


def test_a_podgroup_without_pods_keeps_its_place_when_its_phase_is_written() -> None:
    stage = Stage("a")
    plain = stage.group("g", 1, minResources={NPU: "8"})
    stage.cycle()
    plain["status"]["phase"] = "Inqueue"
    stage.put_group(plain)

    assert stage.cycle() == []
    assert stage.engine.view.job_states["default/g"].phase is Phase.INQUEUE


def test_bad_minimums_of_a_podgroup_are_told() -> None:
    stage = Stage("a")
    stage.group("g", 1, minResources={NPU: "many"})

    assert stage.cycle() == []
    assert "minResources" in stage.reason("default/g")


@pytest.mark.parametrize("amount", ["9E", "3Pi", "-1", "1e30"])
@pytest.mark.parametrize("is_repaired", [False, True])
def test_minimums_that_no_cluster_has_are_told_in_one_line(
    amount: str, *, is_repaired: bool
) -> None:
    stage = Stage("a")
    stage.group("g", 1, minResources={"cpu": amount})
    if is_repaired:
        record = Record(since=1.0, placements=(Placement(0, "a", (0,)),), deleted=(0,))
        stage.write_record("default/g", records.write(record))
        stage.read_records()

    assert stage.cycle() == []
    stage.put_node(node("b"))
    stage.cycle(later=1)
    assert stage.reason("default/g") == (
        f"PodGroup 'default/g': spec.minResources['cpu'] is '{amount}', want 0 to 2Pi; "
        "hint: no cluster has more"
    )


def test_a_gang_whose_pods_did_not_all_come_back_does_not_grow() -> None:
    stage = Stage("a b c")
    stage.gang("g", 3)
    stage.cycle()
    stage.drop_pod("g-1")
    stage.drop_pod("g-2")
    stage.pod("g-2", 8, "g")

    assert stage.cycle() == []
    stage.pod("g-1", 8, "g")
    assert stage.cycle() == [
        "bind default/g: g-1 on b 01234567, g-2 on c 01234567",
    ]


def test_who_comes_back_has_the_rank_of_its_name() -> None:
    stage = Stage("a b c")
    stage.gang("g", 3, least=1)
    stage.cycle()
    stage.drop_pod("g-1")
    stage.drop_pod("g-2")
    plain = stage.pod("g-2", 8, "g")
    stage.cycle()

    assert plain["metadata"]["annotations"]["hccl/rankIndex"] == "2"


def test_pods_that_ended_well_count_as_members() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle()
    stage.ends("g-0")
    stage.cycle()
    stage.drop_pod("g-1")
    stage.pod("g-1", 8, "g")

    assert stage.cycle() == ["bind default/g: g-1 on a 01234567"]


def test_tasks_of_a_gang_are_roles() -> None:
    stage = Stage([node("a"), node("c", chips=0, labels={})])
    stage.group("g", 2, minTaskMember={"driver": 1, "worker": 1})
    stage.pod("g-d", 0, "g", annotations={"volcano.sh/task-spec": "driver"})
    stage.pod("g-w", 8, "g", annotations={"volcano.sh/task-spec": "worker"})

    (said,) = stage.cycle()
    assert "g-w on a 01234567" in said
    assert "g-d on" in said


def test_pods_of_one_task_may_differ() -> None:
    stage = Stage("a b")
    stage.group("g", 2, minTaskMember={"w": 2})
    task = {"volcano.sh/task-spec": "w"}
    stage.pod("g-0", 8, "g", annotations=task, asks={"cpu": "2"})
    stage.pod("g-1", 8, "g", annotations=task, asks={"cpu": "3"})

    assert stage.cycle() == ["bind default/g: g-0 on a 01234567, g-1 on b 01234567"]


@pytest.mark.parametrize(
    ("labels", "annotations", "told"),
    [
        ({"tor-affinity": "big"}, {}, "label tor-affinity is 'big'"),
        ({"super-pod-affinity": "x"}, {}, "label super-pod-affinity is 'x'"),
        ({}, {"sp-block": "a lot"}, "annotation sp-block is 'a lot'"),
        ({}, {"huawei.com/schedule_policy": "multilevel"}, "multilevel"),
    ],
)
def test_labels_that_nobody_understands_are_told(
    labels: dict[str, str], annotations: dict[str, str], told: str
) -> None:
    stage = Stage("a")
    stage.group("g", 1, labels=labels, annotations=annotations)
    stage.pod("g-0", 8, "g")

    assert stage.cycle() == []
    assert told in stage.reason("default/g")


def test_a_running_gang_whose_labels_go_bad_stays() -> None:
    stage = Stage("a")
    plain = stage.group("g", 1)
    stage.pod("g-0", 8, "g")
    stage.cycle()
    plain["metadata"]["labels"] = {"tor-affinity": "big"}
    stage.put_group(plain)

    assert stage.cycle() == []
    assert stage.engine.view.job_states["default/g"].placements


def test_a_job_has_the_priority_of_its_class() -> None:
    stage = Stage("a", conf=PREEMPT)
    stage.priority_class("high", 100)
    stage.gang("low", 1)
    stage.cycle()
    stage.gang("high", 1, priorityClassName="high")

    assert "evict default/low: 0" in stage.cycle(later=10)


def test_a_budget_without_allowance_protects() -> None:
    stage = Stage("a", conf=PREEMPT)
    stage.pod("low", 8, labels={"app": "low"})
    stage.budget("keep", {"app": "low"}, 0)
    stage.cycle()
    stage.pod("high", 8, spec={"priority": 100})

    assert stage.cycle(later=10) == ["waiting pod default/high"]
    stage.budget("keep", {"app": "low"}, 1)
    assert "evict pod default/low: 0" in stage.cycle(later=10)


def test_who_could_not_be_asked_to_end_runs_on() -> None:
    stage = Stage("a", conf=PREEMPT)
    stage.pod("low", 8)
    stage.cycle()
    stage.pod("high", 8, spec={"priority": 100})
    assert "evict pod default/low: 0" in stage.cycle(later=10)

    uid = stage.pods["default/low"]["metadata"]["uid"]
    stage.cache.assumed.not_evicted("pod default/low", uid, stage.now)
    stage.cycle()
    job_state = stage.engine.view.job_states["pod default/low"]
    assert job_state.placements
    assert not job_state.terminating
    assert "evict pod default/low: 0" not in stage.cycle(later=59)
    assert "evict pod default/low: 0" in stage.cycle(later=1)


@pytest.mark.parametrize("refused", [False, True])
def test_a_pod_that_is_asked_to_end_is_not_asked_again_when_its_job_changes(
    *, refused: bool
) -> None:
    """Its job is told anew before the API server says that the pod ends."""
    stage = Stage("a", conf=PREEMPT)
    stage.gang("low", 2, 4)
    stage.cycle()
    stage.pod("high", 8, spec={"priority": 100})
    assert "evict default/low: 0,1" in stage.cycle(later=10)

    if refused:
        uid = stage.pods["default/low-0"]["metadata"]["uid"]
        stage.cache.assumed.not_evicted("default/low", uid, stage.now)
    else:  # the device plugin gave the two pods each other's chips
        for name, own in (("low-0", range(4, 8)), ("low-1", range(4))):
            plain = stage.pods[f"default/{name}"]
            names = ",".join(f"Ascend910-{n}" for n in own)
            plain["metadata"]["annotations"]["huawei.com/AscendReal"] = names
            stage.put_pod(plain)
    said = stage.cycle()

    assert not [each for each in said if each.startswith("evict ")]
    job_state = stage.engine.view.job_states["default/low"]
    assert job_state.terminating == ({1} if refused else {0, 1})


def test_a_gang_whose_podgroup_is_gone_is_not_evicted() -> None:
    """How many of its pods must stay together is unknown."""
    stage = Stage("a b", conf=PREEMPT)
    stage.gang("low", 2)
    stage.cycle()
    stage.pod("high", 8, spec={"priority": 100})
    stage.drop_group("low")

    assert stage.cycle(later=10) == ["waiting pod default/high"]

    stage.group("low", 2, phase="Running")
    assert "evict default/low: 0,1" in stage.cycle(later=10)


# Queues


def test_a_gang_whose_podgroup_is_gone_stays_in_its_queue() -> None:
    """Volcano's job controller deletes the PodGroup of a job that is complete."""
    stage = Stage("a b")
    stage.queue("q", capability={NPU: "8"})
    stage.group("one", 1, queue="q")
    stage.pod("one-0", 8, "one", annotations={"volcano.sh/queue-name": "q"})
    assert "bind default/one: one-0 on a 01234567" in stage.cycle()

    stage.drop_group("one")
    stage.gang("two", 1, queue="q")
    stage.cycle()

    assert stage.engine.view.job_states["default/one"].job.queue == "q"
    assert "two-0" not in stage.bound


def test_a_queue_limits_its_jobs_and_an_empty_state_is_open() -> None:
    stage = Stage("a b")
    stage.queue("q", capability={NPU: "8"}, state="")
    stage.gang("one", 1, queue="q")
    stage.gang("two", 1, queue="q")

    assert "bind default/one: one-0 on a 01234567" in stage.cycle()
    assert "two-0" not in stage.bound


def test_a_closed_queue_starts_nothing_until_it_is_open() -> None:
    stage = Stage("a")
    stage.queue("q", state="Closed")
    stage.gang("g", 1, queue="q")

    assert stage.cycle() == ["waiting default/g"]
    stage.queue("q", state="Open")
    assert stage.cycle() == ["bind default/g: g-0 on a 01234567"]


def test_a_queue_that_cannot_be_read_is_told_and_the_last_good_one_stays() -> None:
    stage = Stage("a")
    stage.queue("q", capability={NPU: "8"})
    stage.queue("q", capability={NPU: "lots"})
    stage.queue("q", capability={NPU: "-1"})
    stage.gang("g", 1, queue="q")

    assert stage.cycle() == ["bind default/g: g-0 on a 01234567"]
    assert len(stage.cache.problems.unreported) == 2


# Nodes


def test_pods_of_a_node_that_is_not_known_yet_hold_it_when_it_comes() -> None:
    stage = Stage("a")
    stage.pod("p")
    stage.write(
        "default/p", "late", {NPU: ",".join(f"Ascend910-{i}" for i in range(8))}
    )
    stage.cycle()
    stage.put_node(node("late"))
    stage.pod("q")
    stage.pod("r")

    said = stage.cycle()
    assert "bind pod default/q: q on a 01234567" in said
    assert "waiting pod default/r" in said


def test_a_pod_on_a_node_that_is_gone_is_not_bound_again() -> None:
    stage = Stage("a b")
    stage.gang("g", 1)
    stage.cycle()
    stage.drop_node("a")

    assert stage.cycle() == []
    stage.drop_pod("g-0")
    stage.pod("g-0", 8, "g")
    assert stage.cycle() == ["bind default/g: g-0 on b 01234567"]


def test_a_node_that_comes_back_has_its_pods() -> None:
    stage = Stage("a")
    stage.pod("p")
    stage.cycle()
    stage.drop_node("a")
    stage.cycle()
    stage.put_node(node("a"))
    stage.pod("q")

    assert stage.cycle() == ["waiting pod default/q"]


def test_a_cordoned_or_unready_node_gets_nothing() -> None:
    stage = Stage([node("a", spec={"unschedulable": True}), node("b", ready="False")])
    stage.pod("p")

    assert stage.cycle() == ["waiting pod default/p"]
    stage.put_node(node("a"))
    assert stage.cycle() == ["bind pod default/p: p on a 01234567"]


def test_a_node_without_labels_is_told_and_the_rest_goes_on() -> None:
    bad = node("bad", labels={"accelerator-type": "what"})
    stage = Stage([bad, node("a")])
    stage.pod("p")

    assert stage.cycle() == ["bind pod default/p: p on a 01234567"]
    assert [each.name for each in stage.cache.problems.unreported] == ["bad"]


# Pods around pods


def test_labels_count_when_some_pod_looks_for_them() -> None:
    near = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "metadata.name",
                    "labelSelector": {"matchLabels": {"app": "db"}},
                }
            ]
        }
    }
    stage = Stage("a b")
    stage.pod("db", 1, labels={"app": "db", "x": "1"})
    stage.cycle()
    stage.pod("lonely", 1, spec={"affinity": near})

    assert stage.cycle() == ["bind pod default/lonely: lonely on b 0"]


# What becomes of binds


def test_a_pod_that_could_not_be_bound_is_tried_a_little_later() -> None:
    stage = Stage("a")
    stage.pod("p")
    stage.cycle(outcome=lambda _pod, _place: "failed")

    assert stage.cycle() == []
    assert stage.cache.next_at == stage.now + 0.5
    assert stage.cycle(later=0.5) == ["bind pod default/p: p on a 01234567"]


def test_failing_again_takes_longer_and_longer() -> None:
    stage = Stage("a")
    stage.pod("p")
    pauses = []
    for _try in range(9):
        stage.cycle(outcome=lambda _pod, _place: "failed")
        assert stage.cache.next_at is not None
        pauses.append(stage.cache.next_at - stage.now)
        stage.now = stage.cache.next_at
    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0]
    assert pauses[-1] == 30.0


def test_the_rest_of_a_gang_is_placed_again_when_some_could_not_be_bound() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle(outcome=lambda pod, _place: "failed" if pod.name == "g-1" else "bound")
    stage.cycle()

    assert stage.cycle(later=1) == ["bind default/g: g-1 on b 01234567"]


def test_what_was_sent_is_held_until_the_api_server_says_otherwise() -> None:
    stage = Stage("a")
    stage.pod("p")
    stage.cycle(outcome=lambda _pod, _place: "sent")
    stage.pod("q")

    assert stage.cycle() == ["waiting pod default/q"]


def test_a_pod_that_somebody_else_bound_is_where_it_is() -> None:
    stage = Stage("a b")
    stage.pod("p")
    stage.cycle(outcome=lambda _pod, _place: "sent")
    every = ",".join(f"Ascend910-{i}" for i in range(8))
    stage.write("default/p", "b", {NPU: every})
    stage.pod("q")

    assert stage.cycle() == ["bind pod default/q: q on a 01234567"]


def test_outcomes_of_pods_that_are_gone_are_no_news() -> None:
    stage = Stage("a")
    plain = stage.pod("p")
    stage.cycle(outcome=lambda _pod, _place: "sent")
    stage.drop_pod("p")
    stage.cache.assumed.forget(plain["metadata"]["uid"], stage.now)
    stage.cache.assumed.bound(plain["metadata"]["uid"])

    assert stage.cycle() == []
    assert stage.heard == [JobGone("pod default/p", ends_run=False)]


def test_a_gang_bound_in_part_is_known_as_such() -> None:
    stage = Stage("a")
    stage.group("g", 2)
    every = ",".join(f"Ascend910-{i}" for i in range(8))
    stage.pod("g-0", 8, "g", annotations={NPU: every}, spec={"nodeName": "a"})
    stage.pod("g-1", 8, "g")

    stage.cycle()
    group = stage.cache.gangs["default/g"]
    assert group.is_half_bound
    stage.put_node(node("b"))
    assert stage.cycle() == ["bind default/g: g-1 on b 01234567"]
    assert not group.is_half_bound


def test_a_gang_that_ran_whole_is_not_bound_in_part() -> None:
    stage = Stage("a b")
    stage.gang("g", 2, phase="Running")
    stage.cycle()
    stage.drop_pod("g-1")
    stage.cycle()

    assert isinstance(stage.heard[0], PodsGone)
    assert not stage.cache.gangs["default/g"].is_half_bound


# Again and again


def test_hearing_everything_twice_is_hearing_it_once() -> None:
    stage = Stage("a b c")
    stage.gang("g", 2)
    stage.pod("p", 2)
    stage.cycle()
    stage.cycle()
    stage.cache.handlers["nodes"].on_update([])
    for plain in stage.pods.values():
        stage.put_pod(plain)
    for plain in stage.nodes.values():
        stage.put_node(plain)
    for plain in stage.groups.values():
        stage.put_group(plain)

    assert stage.cycle() == []
    assert stage.heard == []


def test_after_a_restart_everything_is_where_it_was() -> None:
    stage = Stage("a b c")
    stage.gang("g", 2)
    stage.pod("p", 2)
    stage.cycle()
    stage.restart()
    stage.pod("q", 6)

    assert stage.cycle() == ["bind pod default/q: q on c 234567"]


def test_a_gang_that_a_crash_left_in_parts_is_completed_first() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle(outcome=lambda pod, _place: "written" if pod.name == "g-0" else "sent")
    stage.restart()
    stage.pod("p", 8)

    said = stage.cycle()
    assert said[0] == "bind default/g: g-1 on b 01234567"
    assert "waiting pod default/p" in said


def _preempt() -> Conf:
    found = read_conf(
        {
            "actions": "enqueue, allocate, backfill, preempt",
            "tiers": [
                {"plugins": [{"name": "priority"}, {"name": "conformance"}]},
                {"plugins": [{"name": "predicates"}, {"name": "proportion"}]},
            ],
        }
    )
    assert isinstance(found, Conf)
    return found


PREEMPT = _preempt()


def test_a_pod_that_is_not_ours_and_not_bound_is_nothing_to_us() -> None:
    stage = Stage("a")
    stage.put_pod(pod("x", 8, scheduler="other"))

    assert stage.cycle() == []
    assert not stage.cache.pods


def test_a_gang_in_parts_is_completed_whole_or_not_at_all() -> None:
    stage = Stage("a b c")
    stage.group("g", 4)
    every = ",".join(f"Ascend910-{i}" for i in range(8))
    stage.pod("g-0", 8, "g", annotations={NPU: every}, spec={"nodeName": "a"})
    for i in (1, 2, 3):
        stage.pod(f"g-{i}", 8, "g")

    assert not any(said.startswith("bind") for said in stage.cycle())
    stage.put_node(node("d"))
    assert stage.cycle() == [
        "bind default/g: g-1 on b 01234567, g-2 on c 01234567, g-3 on d 01234567",
    ]


@pytest.mark.parametrize("part", ["huawei.com/npu-core", "huawei.com/Ascend910-2c"])
def test_a_pod_that_asks_for_a_part_of_a_chip_is_refused(part: str) -> None:
    stage = Stage("a")
    stage.pod("p", 0, asks={part: "1"})

    assert stage.cycle() == []
    assert "a part of a chip" in stage.reason("pod default/p")


def test_a_podgroup_keeps_its_place_while_its_pods_come_one_by_one() -> None:
    stage = Stage("a")
    stage.queue("q", capability={NPU: "8"})
    stage.group("g", 2, queue="q", minResources={NPU: "8"})
    stage.cycle()
    stage.pod("g-0", 4, "g")
    stage.gang("late", 1, queue="q")

    assert stage.cycle() == ["waiting default/late"]
    stage.pod("g-1", 4, "g")
    assert stage.cycle() == ["bind default/g: g-0 on a 0123, g-1 on a 4567"]


def test_a_gang_that_lost_all_its_pods_begins_anew() -> None:
    stage = Stage("a")
    plain = stage.group("g", 1, phase="Running")
    stage.pod("g-0", 8, "g")
    stage.cycle()
    stage.drop_pod("g-0")
    stage.cycle()

    assert not stage.cache.gangs["default/g"].reported.is_admitted
    plain["status"]["phase"] = "Pending"
    stage.put_group(plain)
    stage.cycle()
    assert stage.cache.gangs["default/g"].reported.is_admitted


def test_unlike_pods_without_tasks_are_roles_with_names() -> None:
    stage = Stage("a b")
    stage.group("g", 2)
    stage.pod("g-0", 8, "g")
    stage.pod("g-1", 4, "g")
    stage.cycle()

    arrived = [each for each in stage.heard if isinstance(each, JobArrived)]
    assert [role.name for role in arrived[0].job.roles] == ["pods", "pods-2"]


def test_direct_reports_count_where_it_is_configured() -> None:
    direct = {"name": "init-params", "arguments": {"useClusterInfoManager": "false"}}
    conf = read_conf({"actions": "allocate", "tiers": [], "configurations": [direct]})
    assert isinstance(conf, Conf), conf
    stage = Stage("a", conf=conf)
    info = {"DeviceList": {f"{NPU}-Unhealthy": "Ascend910-0"}, "UpdateTime": 1}
    body = {"DeviceInfo": info, "SuperPodID": -2, "ServerIndex": -2}
    body["CheckCode"] = check_code(info)
    name = "mindx-dl-deviceinfo-a"
    stage.config_map(name, {"DeviceInfoCfg": json.dumps(body)}, "kube-system")
    healthy = {name: {**body["DeviceInfo"], "DeviceList": {}, "CmName": name}}  # type: ignore[dict-item]
    shard = "cluster-info-device-0"
    stage.config_map(shard, {shard: json.dumps(healthy)})
    stage.pod("p", 1)

    assert stage.cycle() == ["bind pod default/p: p on a 1"]
    stage.cache.reconfigure(DEFAULT)
    stage.pod("q", 1)
    assert stage.cycle() == ["bind pod default/q: q on a 0"]


def test_a_running_gang_whose_labels_went_bad_holds_its_chips_after_a_restart() -> None:
    stage = Stage("a")
    plain = stage.group("g", 1)
    stage.pod("g-0", 8, "g")
    stage.cycle()
    plain["metadata"]["labels"] = {"tor-affinity": "big"}
    stage.restart()
    stage.pod("p", 1)

    assert stage.cycle() == ["waiting pod default/p"]
    assert "tor-affinity" in stage.reason("default/g")


def test_a_pod_of_volcanos_waits_a_moment_for_its_podgroup() -> None:
    stage = Stage("a")
    stage.begin(["volcano"])
    for plain in stage.nodes.values():
        stage.put_node(plain)
    stage.now = seconds_of("2026-01-01T00:00:00Z")
    annotated = stage.pod("p", 1, scheduler="volcano")
    stage.pod("q", 1, scheduler="volcano")

    assert stage.cycle() == []
    stage.group("g", 1)
    annotated["metadata"]["annotations"][GROUP] = "g"
    stage.put_pod(annotated)
    assert stage.cycle(later=1) == ["bind default/g: p on a 0"]
    assert stage.cycle(later=2) == ["bind pod default/q: q on a 1"]


def test_a_job_is_complete_since_its_pods_wait_and_not_for_those_that_run() -> None:
    stage = Stage("a b")
    stage.gang("some", 2)
    stage.cycle()
    group = stage.cache.gangs["default/some"]
    first = group.binding.complete_since
    group.binding = NOT_SENT  # they have arrived, says the scheduler

    stage.now += 100
    stage.put_group(stage.groups["some"] | {"spec": {"minMember": 1}})
    stage.cycle()
    unchanged = group.binding.complete_since
    stage.drop_pod("some-1")
    stage.cycle()
    stage.pod("some-1", 8, "some")
    stage.cycle(later=5)

    assert first == 1000.0
    assert unchanged == 0.0
    assert group.binding.complete_since == 1105.0


def test_groups_whose_pods_wait_for_something_else_are_known() -> None:
    stage = Stage("a b")
    stage.group("few", 2)
    stage.pod("few-0", 8, "few")
    stage.cycle()
    before = [*stage.cache.gang_events.not_ready]
    stage.pod("few-1", 8, "few")
    stage.cycle()
    between = [*stage.cache.gang_events.not_ready]
    stage.pod("alone", 8, "nothing")
    stage.cycle()
    lost = [*stage.cache.gang_events.not_ready]
    stage.drop_pod("alone")
    stage.cycle()

    assert before == ["default/few"]
    assert between == []
    assert lost == ["default/nothing"]
    assert [*stage.cache.gang_events.not_ready] == []


def test_a_gang_whose_pods_are_there_at_last_is_told_anew_why_it_waits() -> None:
    """Meanwhile it was told of the pods that it lacks."""
    stage = Stage("a")
    stage.group("wide", 2, queue="nowhere")
    before = stage.cycle()
    for name in ("wide-0", "wide-1"):
        stage.pod(name, 0, "wide")

    assert before == stage.cycle() == ["waiting default/wide"]
    assert stage.cycle() == []


def test_what_is_no_longer_wrong_is_not_left_to_be_told() -> None:
    """One who stands by tells nothing, and does not keep what others mend."""
    stage = Stage("a")
    for name in ("gone", "stays"):
        stage.pod(name, 2, scheduler="x")
        stage.write(f"default/{name}", "a", {})
    name = "cluster-info-device-0"
    stage.config_map(name, {name: "{"})
    stage.cycle()
    stage.drop_pod("gone")
    stage.cache.handlers["configmaps"].on_delete([Gone("mindx-dl", name, name)])
    stage.cycle()
    stage.cache.problems.drop_solved()

    assert [each.name for each in stage.cache.problems.unreported] == ["stays"]
    stage.config_map(name, {name: "{"})
    assert [each.name for each in stage.cache.problems.unreported] == ["stays", name]


def test_what_a_queue_is_said_to_use_is_known_from_its_status() -> None:
    stage = Stage("a")
    status = QueueStatus(allocated={NPU: "8", "cpu": "1"})
    there = QueueObject(Metadata(name="q"), status=status)
    stage.cache.handlers["queues"].on_update([there])

    assert stage.cache.queues.allocated == {"q": (NPU, "cpu")}
    stage.cache.handlers["queues"].on_delete([Gone("", "q", "")])
    assert stage.cache.queues.allocated == {}


def test_a_restart_does_not_change_since_when_a_job_waits() -> None:
    stage = Stage("a")
    stage.pod("first", 8)
    stage.cycle()
    plain = stage.pod("late", 8)
    plain["metadata"]["creationTimestamp"] = "1970-01-01T00:10:00Z"
    stage.restart()
    stage.cycle()
    before = stage.engine.view.job_states["pod default/late"].waiting_since
    stage.now += 1000

    stage.restart()
    stage.cycle()

    after = stage.engine.view.job_states["pod default/late"].waiting_since
    assert before == after == 600
