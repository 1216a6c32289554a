"""What a summary says, by the rules: tables and properties."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.kube.config_map_store import SummaryMap
from ringleaf.kube.rank_table import (
    Group,
    JobSummary,
    Member,
    ServerPart,
    Status,
    Table,
    part_of,
    slices_of,
    status_of,
    summary_of,
)
from tests.summary.cast import part

RUNNING, PENDING, DONE, FAILED = "Running", "Pending", "Succeeded", "Failed"


def member(number: int = 0, at: int = 0, /, **facts: Any) -> Member:  # noqa: ANN401
    """A pod with chips on a node."""
    name = f"bert-worker-{number}"
    given = {
        "uid": f"u-{number}",
        "phase": RUNNING,
        "asks": True,
        "rank": str(number),
        "node": f"n{at}",
        "devices": part(name, at),
    }
    where = {"name": name, "namespace": "default", "group": "default/bert"}
    return Member(**{**where, **given, **facts})


def group(least: int, **facts: Any) -> Group:  # noqa: ANN401
    """A PodGroup of a Volcano Job."""
    given = {"framework": "pytorch", "sid": "", "is_npu": False, **facts}
    fixed = ("default/bert", "u", "2026", False, "id", "bert", "Job", least)
    return Group(*fixed, **given)


def summed(pods: list[Member], least: int | None = None, **facts: Any) -> JobSummary:  # noqa: ANN401
    """The summary of some pods."""
    parts = {pod.uid: part_of(pod, "") for pod in pods}
    found = group(len(pods) if least is None else least, **facts)
    what = ("id", "default", "bert")
    return summary_of(what, found, pods, parts, before=Status.PENDING)


def table_of(summary: JobSummary) -> dict[str, Any]:
    """The rank table of a summary of one slice."""
    (text,) = summary.slices
    found: dict[str, Any] = json.loads(text)
    return found


def pods_in(*phases: str) -> list[Member]:
    return [member(i, i, phase=phase) for i, phase in enumerate(phases)]


@pytest.mark.parametrize(
    ("before", "pods", "least", "status"),
    [
        pytest.param("pending", [], 2, "pending", id="no pods: pending stays"),
        pytest.param("running", [], 2, "failed", id="no pods: it ran"),
        pytest.param("complete", [], 2, "complete", id="no pods: it was complete"),
        pytest.param("failed", [], 2, "failed", id="no pods: it had failed"),
        pytest.param(
            "pending", pods_in(RUNNING, FAILED), 2, "failed", id="one has failed"
        ),
        pytest.param("running", pods_in(DONE, DONE), 2, "complete", id="all succeeded"),
        pytest.param(
            "running", pods_in(DONE), 2, "failed", id="succeeded, but too few"
        ),
        pytest.param(
            "pending", pods_in(RUNNING, DONE), 2, "running", id="some have succeeded"
        ),
        pytest.param(
            "pending", pods_in(RUNNING), 2, "pending", id="running, but too few"
        ),
        pytest.param(
            "running",
            pods_in(RUNNING, PENDING),
            2,
            "failed",
            id="one is placed anew: failed until it runs",
        ),
        pytest.param(
            "failed", pods_in(RUNNING, RUNNING), 2, "running", id="it runs again"
        ),
        pytest.param(
            "failed", pods_in(RUNNING, PENDING), 2, "failed", id="not yet again"
        ),
        pytest.param(
            "pending", pods_in(RUNNING), 0, "pending", id="no number of pods to run"
        ),
        pytest.param(
            "pending",
            [member(0, devices="")],
            1,
            "pending",
            id="runs without its chips",
        ),
        pytest.param(
            "pending",
            [member(0, devices="", asks=False)],
            1,
            "running",
            id="runs, and needs no chips",
        ),
    ],
)
def test_the_status_of_a_job(
    before: str, pods: list[Member], least: int, status: str
) -> None:
    assert status_of(Status(before), pods, least) == status


@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=60),
    most=st.integers(300, 2000),
    alone=st.booleans(),
)
def test_slices_are_the_table_cut_between_servers(
    sizes: list[int], most: int, *, alone: bool
) -> None:
    servers = [
        ServerPart(
            i,
            i,
            f"n{i if alone else 0}",
            f"h{i}",
            f"s{i}",
            f'{{"device":"{"é" * size}","server_id":',
            "}",
            (),
        )
        for i, size in enumerate(sizes)
    ]
    found = slices_of(servers, Table.COMPLETE, most)
    tables = [json.loads(text) for text in found]
    listed = [server for table in tables for server in table["server_list"]]

    names = [
        f"{'h' if alone or len(sizes) == 1 else 's'}{i}" for i in range(len(sizes))
    ]
    assert [server["server_id"] for server in listed] == names
    assert [len(server["device"]) for server in listed] == sizes
    for text, table in zip(found, tables, strict=True):
        assert len(text.encode()) <= most or len(table["server_list"]) == 1
        assert table["total"] == len(found)
        assert table["server_count"] == str(len(sizes))
        assert table["server_list"]


def test_slices_are_as_few_as_they_can_be() -> None:
    servers = [part_of(member(i, i), "") for i in range(100)]
    size = len(servers[50].text(alone=True)) + 1
    found = slices_of(servers, Table.COMPLETE, 10 * size + 200)

    assert [len(json.loads(text)["server_list"]) for text in found[:-1]] == [10] * 9


def test_a_job_with_more_pods_than_it_needs_is_listed_whole() -> None:
    found = table_of(summed([member(i, i) for i in range(3)], least=1))

    assert (found["status"], found["server_count"]) == ("complete", "3")


def test_a_pod_that_says_how_many_start_together_is_heeded() -> None:
    found = summed([member(0, 0, least=2)], least=1)

    assert found.table == "initializing"


def test_pods_without_chips_count_and_are_not_listed() -> None:
    helper = member(9, 9, uid="helper", devices="", asks=False, rank="")
    found = table_of(summed([member(0), helper], least=2))

    assert (found["status"], found["server_count"]) == ("complete", "1")


def test_a_table_without_servers_is_complete_where_nobody_needs_chips() -> None:
    found = summed([member(0, devices="", asks=False)])

    assert table_of(found) == {
        "status": "complete",
        "server_list": [],
        "server_count": "0",
        "total": 1,
    }
    assert table_of(summed([member(0, devices="")])) == {"status": "initializing"}


@pytest.mark.parametrize(
    "goes",
    [{"is_leaving": True}, {"phase": FAILED}, {"created": "2025"}],
    ids=["is being deleted", "has failed", "is older"],
)
def test_of_two_pods_of_one_rank_the_one_that_stays_is_listed(
    goes: dict[str, Any],
) -> None:
    old = member(0, 1, **{"created": "2026", **goes, "uid": "z-old"})
    new = member(0, 2, created="2026", uid="new")
    (server,) = table_of(summed([new, old], least=1))["server_list"]

    assert server["server_name"] == "n2"


def test_pods_of_different_sizes_keep_their_places() -> None:
    """Rank 1 of 8 chips and rank 2 of 4 both begin at 8: none of them is lost."""
    pods = [
        member(1, 1, devices=part("a", 1, 8)),
        member(2, 2, devices=part("b", 2, 4)),
    ]
    found = table_of(summed(pods))

    assert [s["device"][0]["rank_id"] for s in found["server_list"]] == ["8", "8"]


def test_ranks_count_the_chips_of_the_pods_before() -> None:
    found = table_of(summed([member(2, 5), member(0, 7), member(1, 6)]))

    ranks = [d["rank_id"] for s in found["server_list"] for d in s["device"]]
    assert ranks == [str(i) for i in range(6)]
    assert [s["server_name"] for s in found["server_list"]] == ["n7", "n6", "n5"]


def test_shared_leaves_are_told_once_and_only_of_pods_that_share() -> None:
    pods = [
        member(0, 0, shared="1", shared_leaf="10.0.0.2"),
        member(1, 1, shared="1", shared_leaf="10.0.0.1"),
        member(2, 2, shared="1", shared_leaf="10.0.0.2"),
        member(3, 3, shared="2", shared_leaf="10.0.0.9"),
        member(4, 4, shared="0"),
    ]

    assert summed(pods).shared == '["10.0.0.1","10.0.0.2"]'
    assert summed(pods[3:]).shared == ""


def test_master_and_shared_leaves_are_told_for_pytorch_alone() -> None:
    pods = [member(0, 0, shared="1", shared_leaf="10.0.0.2")]
    (torch,) = summed(pods).data(1, 2)
    (other,) = summed(pods, framework="mindspore").data(1, 2)

    assert (torch["sharedTorIp"], torch["masterAddr"]) == ('["10.0.0.2"]', "10.9.0.0")
    assert (other["sharedTorIp"], other["masterAddr"]) == (None, None)


@pytest.mark.parametrize(
    ("on_group", "on_pod", "sid", "framework"),
    [
        (("g", "pytorch"), ("p", "tf"), "g", "pytorch"),
        (("", ""), ("p", "tf"), "p", "tf"),
        (("", ""), ("", ""), "id", ""),
    ],
)
def test_labels_of_the_podgroup_come_before_those_of_pods(
    on_group: tuple[str, str], on_pod: tuple[str, str], sid: str, framework: str
) -> None:
    pods = [member(0, 0, sid=on_pod[0], framework=on_pod[1])]
    found = summed(pods, sid=on_group[0], framework=on_group[1])

    assert (found.sid, found.framework) == (sid, framework)


def test_times_are_not_part_of_the_version_and_everything_else_is() -> None:
    pods = [member(0, 0)]
    one = summed(pods)

    assert one.version == summed(pods).version
    others = [
        summed([member(0, 1)]),
        summed(pods, sid="x"),
        summed(pods, framework="x"),
        summed(pods, is_npu=True),
        summed([member(0, 0, phase=FAILED)]),
        summed([member(0, 0, containers=(("a", "b"),))]),
    ]
    assert len({one.version, *(each.version for each in others)}) == 7


def test_a_job_of_npus_has_ranks_of_version_two() -> None:
    nets = [
        {"level": 1, "info": {"UBG": {"net_layer": 1}, "UB": {"net_layer": 10}}},
        {"level": 0, "info": {"UB": {"net_layer": 0}}},
    ]
    text = json.loads(part("p", 0))
    for device in text["devices"]:
        device["levelList"] = nets
    pods = [member(i, i, is_npu=True, devices=json.dumps(text)) for i in range(2)]
    found = summed(pods)
    table = table_of(found)

    assert found.labels == {"outside-job-info": "true"}
    assert (table["version"], table["rank_count"]) == ("2.0", 4)
    assert table["rank_list"][3] == {
        "rank_id": 3,
        "local_id": 1,
        "device_id": 1,
        "level_list": [{"net_layer": 0}, {"net_layer": 10}],
    }


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"devices": "[]"}, "ascend-910-configuration is '[]', want a rank table"),
        ({"devices": '{"devices":[{"device_id":7}]}'}, "want a rank table"),
        ({"rank": "two"}, "hccl/rankIndex is 'two', want a whole number from 0"),
        ({"rank": "-1"}, "hccl/rankIndex is '-1'"),
        ({"rank": ""}, "hccl/rankIndex is ''"),
    ],
)
def test_what_cannot_be_read_is_told_and_not_listed(
    facts: dict[str, str], words: str
) -> None:
    found = summed([member(0, 0), member(1, 1, **facts)])

    (problem,) = found.problems
    assert words in problem
    assert problem.startswith("Pod 'bert-worker-1': ")
    assert table_of(found)["server_count"] == "1"
    assert found.table == "initializing"


def test_an_older_device_plugin_says_where_by_server_id_alone() -> None:
    plain = {"server_id": "10.0.0.5", "devices": [{"device_id": "0"}]}
    found = summed([member(0, 0, devices=json.dumps(plain))])
    (server,) = table_of(found)["server_list"]

    assert (server["server_id"], server["pod_name"]) == ("10.0.0.5", "bert-worker-0")
    assert found.master == "10.0.0.5"


def test_a_server_that_no_configmap_can_hold_is_not_listed() -> None:
    """An annotation has 256 KiB; thousands of chips that say nothing take more here."""
    devices = ",".join(["{}"] * 80_000)
    found = part_of(member(devices=f'{{"devices":[{devices}]}}'), "")

    assert found.rank == -1
    assert "'bert-worker-0': its 80000 chips take" in found.problem
    assert found.problem.endswith("want 819040 at most")


def test_a_chip_with_an_endless_number_is_still_one() -> None:
    devices = {"devices": [{"device_id": "9" * 5000}]}
    pod = member(0, is_npu=True, devices=json.dumps(devices))

    assert part_of(pod, "").rank == 0


def test_an_annotation_without_bottom_is_a_problem_of_its_pod() -> None:
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    level = f'{{"level":0,"info":{{"x":{deep}}}}}'
    pod = member(0, devices=f'{{"devices":[{{"levelList":[{level}]}}]}}')

    found = part_of(pod, "")

    assert found.rank == -1
    assert found.problem


def test_a_configmap_of_anybody_is_read_whatever_it_says() -> None:
    said = {"job_name": "bert", "cm_index": "9" * 5000}
    plain = {"metadata": {"name": "job-summary-bert"}, "data": said}

    assert msgspec.convert(plain, SummaryMap).index == -1
    said["cm_index"] = "0"
    assert msgspec.convert(plain, SummaryMap).index == 0
