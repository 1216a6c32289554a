"""The writer of summaries against a real API server."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from ringleaf.kube.rank_table import LABEL
from ringleaf_testbed.cluster import Testbed
from tests.summary.cast import Beside, Cast, address_of, leaf_of, part
from tests.summary.fabric import CONFIGURATION, MARK

TORCH = {"framework": "pytorch"}


@pytest.fixture
def kubeconfig(testbed: Testbed) -> Path:
    return testbed.kubeconfig


def test_a_podgroup_without_pods_is_pending(cast: Cast, kubeconfig: Path) -> None:
    before = int(time.time())
    with Beside(kubeconfig):
        cast.group("bert", 2, labels={"custom-job-id": "seven"})
        said = cast.wait_for("bert", job_status="pending")
        (found,) = cast.maps().values()

    assert before <= int(said.pop("time")) <= time.time()
    assert said == {
        "job_name": "bert",
        "job_id": "id-bert",
        "framework": "",
        "sid": "seven",
        "job_status": "pending",
        "operator": "add",
        "cm_index": "0",
        "total": "1",
        "hccl.json": '{"status":"initializing"}',
    }
    assert found["metadata"]["name"] == "job-summary-bert"
    assert found["metadata"]["labels"] == {
        "outside-job-info": "true",
        "ring-controller.atlas": "ascend-910",
    }


def test_a_job_that_runs_says_where(cast: Cast, kubeconfig: Path) -> None:
    with Beside(kubeconfig):
        cast.job("bert", [5, 4], shared="1", labels=TORCH)
        said = cast.wait_for("bert", job_status="running")
        table = cast.wait_for_table("bert", [4, 5])

    assert said["sharedTorIp"] == json.dumps([leaf_of(4)])
    assert said["masterAddr"] == address_of(5)
    assert table["server_list"][1] == {
        "device": [
            {
                "device_id": str(chip),
                "device_ip": f"10.7.4.{chip}",
                "rank_id": str(2 + chip),
                "super_device_id": str(32 + chip),
            }
            for chip in (0, 1)
        ],
        "server_id": address_of(4),
        "host_ip": address_of(4),
        "super_pod_id": -1,
        "server_name": "n4",
        "server_sn": "",
        "pod_name": "bert-worker-1",
        "container_ids": {"ascend": "containerd://bert-worker-1"},
    }
    assert (table["server_count"], table["total"]) == ("2", 1)


def test_a_pod_that_moves_takes_its_leaf_and_the_master_along(
    cast: Cast, kubeconfig: Path
) -> None:
    with Beside(kubeconfig):
        cast.job("bert", [0, 4], shared="1", labels=TORCH)
        cast.wait_for("bert", job_status="running", masterAddr=address_of(0))
        cast.remove("bert-worker-0")
        cast.wait_for("bert", job_status="failed", sharedTorIp=f'["{leaf_of(4)}"]')
        pod = cast.pod("bert", 0)
        cast.seat(pod, 9, shared="1")
        cast.become(pod)
        said = cast.wait_for("bert", job_status="running", masterAddr=address_of(9))
        cast.wait_for_table("bert", [9, 4])

    assert json.loads(said["sharedTorIp"]) == [leaf_of(4), leaf_of(9)]
    assert "deleteTime" not in said


def test_a_job_that_is_gone_says_so_and_is_removed_later(
    cast: Cast, kubeconfig: Path
) -> None:
    with Beside(kubeconfig, keep_s=2.0):
        cast.job("bert", [0, 1])
        before = cast.wait_for("bert", job_status="running")
        cast.remove_group("bert")
        for pod in ("bert-worker-0", "bert-worker-1"):
            cast.remove(pod)
        said = cast.wait_for("bert", operator="delete")
        cast.wait(lambda: not cast.maps(), "the summary to be removed")
        gone_at = time.time()

    assert said["job_status"] == "failed"
    assert said["time"] == before["time"]
    assert gone_at - int(said["deleteTime"]) >= 2.0


def test_a_complete_job_stays_complete_when_it_is_gone(
    cast: Cast, kubeconfig: Path
) -> None:
    with Beside(kubeconfig, keep_s=60.0):
        cast.job("bert", [0])
        cast.wait_for("bert", job_status="running")
        cast.become("bert-worker-0", "Succeeded")
        said = cast.wait_for("bert", job_status="complete", operator="add")
        cast.remove("bert-worker-0")
        cast.remove_group("bert")
        cast.wait_for("bert", job_status="complete", operator="delete")

    assert "deleteTime" in said


def test_a_job_of_the_same_name_keeps_the_summary(cast: Cast, kubeconfig: Path) -> None:
    with Beside(kubeconfig, keep_s=60.0) as beside:
        cast.job("bert", [0])
        cast.wait_for("bert", job_status="running")
        cast.remove_group("bert")
        cast.remove("bert-worker-0")
        cast.wait_for("bert", operator="delete")
        cast.group("bert", 1, name="bert-2", job_id="id-second")
        cast.wait_for("bert", operator="add", job_id="id-second")
        beside.skip(61.0)
        said = cast.said("bert")

    assert said["job_id"] == "id-second"
    assert said["job_status"] == "pending"
    assert "deleteTime" not in said
    assert beside.lines("problem") == []


def test_a_writer_that_is_started_anew_writes_nothing_twice(
    cast: Cast, kubeconfig: Path
) -> None:
    with Beside(kubeconfig):
        cast.job("bert", [0, 1])
        cast.job("gone", [2])
        cast.wait_for("bert", job_status="running")
        first = cast.wait_for("gone", job_status="running")
    before = cast.maps()
    cast.remove_group("gone")
    cast.remove("gone-worker-0")
    with Beside(kubeconfig, once=True, ahead_s=5.0) as again:  # so that times differ
        again.wait()
    after = cast.maps()

    assert again.writer is not None
    outcomes = {line.job: line.outcome for line in again.writer.lines()}
    assert outcomes[f"{cast.namespace}/bert"] == "as it was"
    version = before["job-summary-bert"]["metadata"]["resourceVersion"]
    assert after["job-summary-bert"]["metadata"]["resourceVersion"] == version
    said = after["job-summary-gone"]["data"]
    assert (said["operator"], said["job_status"]) == ("delete", "failed")
    assert said["time"] == first["time"]
    assert said["hccl.json"] == first["hccl.json"]


def test_what_was_left_half_deleted_is_finished(cast: Cast, kubeconfig: Path) -> None:
    with Beside(kubeconfig):
        cast.job("bert", [0])
        cast.wait_for("bert", job_status="running")
        cast.remove_group("bert")
        cast.remove("bert-worker-0")
        cast.wait_for("bert", operator="delete")
    with Beside(kubeconfig, once=True) as early:
        early.wait()
    assert cast.said("bert")["operator"] == "delete", "its minute is not over"
    with Beside(kubeconfig, keep_s=1.0):
        cast.wait(lambda: not cast.maps(), "the summary to be removed")


def test_a_large_table_is_cut_and_slices_that_are_not_needed_go(
    cast: Cast, kubeconfig: Path
) -> None:
    nodes = [*range(9)]
    with Beside(kubeconfig, most=1200, keep_s=1.0):
        cast.job("bert", nodes)
        cast.wait_for("bert", job_status="running")
        many = cast.maps()
        for node in nodes[2:]:
            cast.remove(f"bert-worker-{node}")
        cast.wait(lambda: len(cast.maps()) == 1, "one slice")
        few = cast.said("bert")
        cast.remove_group("bert")
        for node in nodes[:2]:
            cast.remove(f"bert-worker-{node}")
        cast.wait(lambda: not cast.maps(), "no summary")

    assert len(many) > 2
    assert {*many} == {"job-summary-bert"} | {
        f"job-summary-bert-{i}" for i in range(1, len(many))
    }
    for each in many.values():
        assert each["data"]["total"] == str(len(many))
        assert len(each["data"]["hccl.json"]) <= 1200
        assert json.loads(each["data"]["hccl.json"])["server_count"] == "9"
    assert len({each["metadata"]["annotations"][MARK] for each in many.values()}) == 1
    assert few["total"] == "1"
    order = {
        name: int(each["metadata"]["resourceVersion"]) for name, each in many.items()
    }
    assert max(order, key=order.__getitem__) == "job-summary-bert", "the first is last"


def test_another_writer_is_given_way_and_said_once(
    cast: Cast, kubeconfig: Path
) -> None:
    path = f"/api/v1/namespaces/{cast.namespace}/configmaps/job-summary-bert"
    with Beside(kubeconfig) as beside:
        cast.job("bert", [0])
        cast.job("other", [1])
        cast.wait_for("bert", job_status="running")
        theirs = cast.bed.client.ask("GET", path)
        del theirs["metadata"]["annotations"]
        theirs["data"]["masterAddr"] = "theirs"
        cast.bed.client.ask("PUT", path, theirs)
        cast.wait(lambda: beside.lines("problem"), "a line about it")
        cast.become("bert-worker-0", "Failed")
        cast.become("other-worker-0", "Failed")
        cast.wait_for("other", job_status="failed")
        said = cast.said("bert")

    assert (said["masterAddr"], said["job_status"]) == ("theirs", "running")
    (line,) = beside.lines("problem")
    assert "another program has written it" in line["message"]
    assert "hint: run one writer" in line["message"]


def test_a_summary_of_another_writer_is_taken_over(
    cast: Cast, kubeconfig: Path
) -> None:
    path = f"/api/v1/namespaces/{cast.namespace}/configmaps"
    labels = {"outside-job-info": "true"}
    data = {"job_name": "bert", "job_id": "id-bert", "cm_index": "0", "time": "77"}
    for name, job in (("job-summary-bert", "bert"), ("job-summary-gone", "gone")):
        said = {**data, "job_name": job, "job_id": f"id-{job}"}
        body = {"metadata": {"name": name, "labels": labels}, "data": said}
        cast.bed.client.ask("POST", path, body)
    with Beside(kubeconfig):
        cast.job("bert", [0])
        said = cast.wait_for("bert", job_status="running")

    assert said["time"] == "77"
    assert "operator" not in cast.said("gone"), "not ours, and its job is not there"


def test_what_somebody_edits_is_mended_not_for_ever(
    cast: Cast, kubeconfig: Path
) -> None:
    path = f"/api/v1/namespaces/{cast.namespace}/configmaps/job-summary-bert"
    edit = {"data": {"job_status": "odd"}}
    with Beside(kubeconfig) as beside:
        cast.job("bert", [0])
        cast.wait_for("bert", job_status="running")
        for _time in range(3):
            cast.bed.client.ask("PATCH", path, edit)
            cast.wait_for("bert", job_status="running")
        cast.bed.client.ask("PATCH", path, edit)
        cast.wait(lambda: beside.lines("problem"), "a line about it")

    (line,) = beside.lines("problem")
    assert "others have changed it 4 times" in line["message"]


def test_what_does_not_change_a_summary_is_no_edit(
    cast: Cast, kubeconfig: Path
) -> None:
    """Programs that label every ConfigMap do not make us give it up."""
    path = f"/api/v1/namespaces/{cast.namespace}/configmaps/job-summary-bert"
    with Beside(kubeconfig) as beside:
        cast.job("bert", [0])
        cast.wait_for("bert", job_status="running")
        for number in range(6):
            before = beside.n_requests
            label = {"metadata": {"labels": {"team": f"t{number}"}}}
            cast.bed.client.ask("PATCH", path, label)
            cast.wait(lambda n=before: beside.n_requests > n, "a look at it")
        cast.become("bert-worker-0", "Failed")
        cast.wait_for("bert", job_status="failed")

    assert beside.lines("problem") == []
    labels = cast.maps()["job-summary-bert"]["metadata"]["labels"]
    assert labels["team"] == "t5"


def test_what_somebody_does_after_a_restart_is_mended_too(
    cast: Cast, kubeconfig: Path
) -> None:
    path = f"/api/v1/namespaces/{cast.namespace}/configmaps/job-summary-bert"
    with Beside(kubeconfig):
        cast.job("bert", [0])
        cast.wait_for("bert", job_status="running")
    with Beside(kubeconfig) as again:
        cast.wait(lambda: again.writer and again.writer.lines(), "it to look")
        cast.bed.client.ask("PATCH", path, {"data": {"job_status": "odd"}})
        cast.wait_for("bert", job_status="running")
        cast.bed.client.ask("DELETE", path)
        cast.wait_for("bert", job_status="running")


def settled(cast: Cast, beside: Beside) -> None:
    """Wait until a writer has nothing to do, and has seen what it has written."""
    writer = beside.writer
    assert writer is not None
    (summaries,) = [r for r in writer.reflectors if r.kind == f"configmaps/{LABEL}"]

    def is_so() -> bool:
        written = [each["metadata"]["resourceVersion"] for each in cast.maps().values()]
        return writer.is_done and summaries.version >= max(map(int, written))

    cast.wait(is_so, "the writer to be done")


def reflected(beside: Beside, path: str) -> int:
    """The version up to which a writer knows the objects of a path."""
    assert beside.writer is not None
    (found,) = [r for r in beside.writer.reflectors if r.path == path]
    return int(found.version)


def known(beside: Beside) -> set[str]:
    """The keys of jobs that a writer knows."""
    assert beside.writer is not None
    return {*beside.writer.job_index.jobs}


def test_a_job_made_again_and_again_with_its_namespace_keeps_its_summary(
    cast: Cast, kubeconfig: Path
) -> None:
    """Whoever deletes all of a namespace deletes the summary as well."""
    with Beside(kubeconfig) as beside:
        for number in range(6):
            job_id = cast.group("bert", 1, job_id=f"id-{number}")
            cast.wait_for("bert", job_id=job_id)
            cast.bed.client.ask(
                "DELETE",
                f"/api/v1/namespaces/{cast.namespace}/configmaps/job-summary-bert",
            )
            cast.wait_for("bert", job_id=job_id)
            cast.clear()
            key = f"{cast.namespace}/{job_id}"
            cast.wait(lambda key=key: key not in known(beside), "it to be forgotten")

    assert beside.lines("problem") == []


def test_versions_that_begin_anew_stop_nothing(cast: Cast, kubeconfig: Path) -> None:
    """As after a backup was restored."""
    with Beside(kubeconfig) as beside:
        cast.job("bert", [0])
        cast.wait_for("bert", job_status="running")
        settled(cast, beside)
        assert beside.writer is not None
        found = beside.writer.map_store.maps[f"{cast.namespace}/job-summary-bert"]
        found.metadata.resource_version = "9" * 12
        cast.become("bert-worker-0", "Failed")
        cast.wait_for("bert", job_status="failed")


def test_one_that_stands_by_keeps_nothing_of_jobs_that_are_gone(
    cast: Cast, kubeconfig: Path
) -> None:
    led = asyncio.Event()
    with Beside(kubeconfig, led=led) as beside:
        cast.wait(lambda: beside.lines("synced"), "it to know all")
        cast.group("bert", 1)
        cast.wait(lambda: f"{cast.namespace}/id-bert" in known(beside), "the job")
        cast.remove_group("bert")
        cast.wait(
            lambda: f"{cast.namespace}/id-bert" not in known(beside), "nothing of it"
        )

    assert cast.maps() == {}


def test_one_that_loses_the_lead_leaves_summaries_to_others_until_it_leads_again(
    cast: Cast, kubeconfig: Path
) -> None:
    led = asyncio.Event()
    with Beside(kubeconfig, led=led) as first:
        cast.wait(lambda: first.lines("synced"), "it to know all")
        first.call(led.set)
        cast.job("bert", [0])
        cast.wait_for("bert", job_status="running")
        first.call(led.clear)
        assert first.writer is not None
        cast.wait(lambda: first.writer and not first.writer.leads, "it to stand by")
        with Beside(kubeconfig) as second:
            for _round in range(3):
                cast.become("bert-worker-0", "Failed")
                cast.wait_for("bert", job_status="failed")
                cast.become("bert-worker-0")
                cast.wait_for("bert", job_status="running")
            settled(cast, second)
        first.call(led.set)
        cast.wait(lambda: first.writer and first.writer.leads, "it to lead again")
        settled(cast, first)
        cast.become("bert-worker-0", "Failed")
        cast.wait_for("bert", job_status="failed")

    assert first.lines("problem") == second.lines("problem") == []
    assert first.lines("not written") == []


def test_a_configmap_that_is_no_summary_is_not_touched(
    cast: Cast, kubeconfig: Path
) -> None:
    path = f"/api/v1/namespaces/{cast.namespace}/configmaps"
    body = {"metadata": {"name": "job-summary-bert"}, "data": {"mine": "yes"}}
    cast.bed.client.ask("POST", path, body)
    with Beside(kubeconfig) as beside:
        cast.job("bert", [0])
        cast.job("other", [1])
        cast.wait_for("other", job_status="running")
        cast.wait(lambda: beside.lines("problem"), "a line about it")
    kept = cast.bed.client.ask("GET", f"{path}/job-summary-bert")

    assert kept["data"] == {"mine": "yes"}
    (line,) = beside.lines("problem")
    assert "is there and is no summary" in line["message"]


def events_of(cast: Cast) -> list[str]:
    """What events say in the namespace."""
    found, _v = cast.bed.client.list_all(f"/api/v1/namespaces/{cast.namespace}/events")
    return [event["message"] for event in found]


def test_bad_jobs_are_told_once_and_the_others_go_on(
    cast: Cast, kubeconfig: Path
) -> None:
    long, odd = "x" * 250, "Über,metadata.name!=a/../b"
    with Beside(kubeconfig) as beside:
        cast.group(long, 1, name="long")
        cast.group(odd, 1, name="odd")
        cast.group("twice", 1, name="one")
        cast.group("twice", 1, name="two")
        # Of two of one second the id decides: "id-new" comes after "id-first".
        cast.group("alike", 1, name="older", job_id="id-first")
        cast.group("alike", 1, name="newer", job_id="id-new", kind="AscendJob")
        cast.group("bad", 1)
        cast.seat(cast.pod("bad", 0), 3, **{CONFIGURATION: "{"})
        cast.become("bad-worker-0")
        cast.job("good", [0])
        cast.wait_for("good", job_status="running")
        cast.wait_for("bad", job_status="running")
        cast.wait(lambda: len(beside.lines("problem")) >= 5, "five lines")
        cast.wait(lambda: len(events_of(cast)) >= 5, "five events")

    lines = sorted(str(line["message"]) for line in beside.lines("problem"))
    assert len(lines) == 5
    assert beside.lines("not written") == []
    assert "ascend-910-configuration is '{', want a rank table" in lines[0]
    assert "'alike' has the name of another job, 'id-first'" in lines[1]
    assert "'twice' has 2 PodGroups, want one" in lines[2]
    assert "would have 262 characters, want 253 at most" in lines[3]
    assert lines[4] == (
        f"job {odd!r}: no ConfigMap can be called 'job-summary-{odd}', want small "
        "letters, digits, '-' and '.'"
    )
    assert sorted(events_of(cast))[1:] == lines[1:]
    assert cast.said("alike")["job_id"] == "id-first"
    assert cast.said("bad")["hccl.json"] == '{"status":"initializing"}'


def test_a_slice_never_takes_the_name_of_a_job(cast: Cast, kubeconfig: Path) -> None:
    with Beside(kubeconfig, most=1500) as beside:
        cast.job("bert-1", [9])
        cast.wait_for("bert-1", job_status="running", job_name="bert-1")
        cast.job("bert", [0, 1, 2, 3, 4])
        cast.wait(lambda: beside.lines("problem"), "a line about it")
        said = cast.said("bert-1")

    assert said["job_name"] == "bert-1"
    (line,) = beside.lines("problem")
    assert "slice 1 of its summary would be called as that of job" in line["message"]


def test_two_namespaces_with_the_same_ids_and_names_have_their_own(
    cast: Cast, kubeconfig: Path, testbed: Testbed
) -> None:
    """Whoever writes in a namespace may write any uid into owners there."""
    name = f"{cast.namespace}-other"
    testbed.client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    other = Cast(testbed, name)
    try:
        cast.seat(cast.pod("bert", 0), 0)  # it waits for its job
        with Beside(kubeconfig, keep_s=0.5) as beside:
            other.job("bert", [4, 5])
            other.wait_for("bert", job_status="running")
            cast.group("bert", 1)
            cast.become("bert-worker-0")
            cast.wait_for("bert", job_status="running")
            cast.wait_for_table("bert", [0])
            first = other.said("bert")
            other.remove_group("bert")
            for pod in ("bert-worker-0", "bert-worker-1"):
                other.remove(pod)
            other.wait(lambda: not other.maps(), "the other's summary to go")
            second = cast.said("bert")
    finally:
        other.clear()

    assert (first["job_status"], first["job_id"]) == ("running", "id-bert")
    assert second["operator"] == "add"
    assert json.loads(second["hccl.json"])["server_count"] == "1"
    told = [line["job"] for line in beside.lines("gone")]
    assert told == [f"{name}/bert"]
    assert beside.lines("problem") == []


def test_a_podgroup_without_an_owner_stands_for_itself(
    cast: Cast, kubeconfig: Path
) -> None:
    with Beside(kubeconfig):
        uid = cast.group("own", 1, owned=False)
        cast.seat(cast.pod("own", 0), 2)
        cast.become("own-worker-0")
        said = cast.wait_for("own", job_status="running")

    assert (said["job_id"], said["sid"]) == (uid, uid)


def test_pods_of_one_node_keep_the_names_of_their_servers(
    cast: Cast, kubeconfig: Path
) -> None:
    with Beside(kubeconfig):
        cast.job("bert", [3, 3])
        cast.wait_for("bert", job_status="running")
        table = cast.wait_for_table("bert", [3, 3])

    names = [server["server_id"] for server in table["server_list"]]
    assert names == ["uid-bert-worker-0", "uid-bert-worker-1"]


def test_a_master_of_others_than_volcano_is_in_the_environment(
    cast: Cast, kubeconfig: Path
) -> None:
    with Beside(kubeconfig):
        cast.group("bert", 1, kind="AscendJob")
        env = {"MASTER_ADDR": "bert-master-0"}
        pod = cast.pod("bert", 0, env=env, labels={"app": "pytorch"})
        cast.seat(pod, 1)
        cast.become(pod)
        said = cast.wait_for("bert", job_status="running")

    assert said["masterAddr"] == "bert-master-0"
    assert said["framework"] == "pytorch"
    assert said["sharedTorIp"] == ""


def test_the_serial_number_of_the_node_is_told(cast: Cast, kubeconfig: Path) -> None:
    name = f"n{200}"
    node = {"metadata": {"name": name, "annotations": {"product-serial-number": "S1"}}}
    cast.bed.client.ask("POST", "/api/v1/nodes", node)
    try:
        with Beside(kubeconfig):
            cast.job("bert", [200])
            cast.wait_for("bert", job_status="running")
            first = cast.wait_for_table("bert", [200])["server_list"][0]["server_sn"]
            change = {"metadata": {"annotations": {"product-serial-number": "S2"}}}
            cast.bed.client.ask("PATCH", f"/api/v1/nodes/{name}", change)
            cast.wait(lambda: "S2" in cast.said("bert")["hccl.json"], "another number")
    finally:
        cast.bed.client.ask("DELETE", f"/api/v1/nodes/{name}")

    assert first == "S1"


def test_nothing_is_asked_while_nothing_changes(cast: Cast, kubeconfig: Path) -> None:
    with Beside(kubeconfig) as beside:
        cast.job("bert", [0, 1])
        cast.wait_for("bert", job_status="running")
        settled(cast, beside)
        beside.skip(3600.0)
        before = beside.n_requests, len(beside.log)
        cast.annotate("bert-worker-0", unrelated="news")
        (pod, _other) = cast.pods("bert")
        news = int(pod["metadata"]["resourceVersion"])
        cast.wait(lambda: reflected(beside, "/api/v1/pods") >= news, "the news")
        beside.skip(3600.0)
        after = beside.n_requests, len(beside.log)

    assert after == before


def test_a_job_that_never_was_written_leaves_nothing(
    cast: Cast, kubeconfig: Path
) -> None:
    cast.group("short", 1)
    cast.remove_group("short")
    with Beside(kubeconfig, once=True) as beside:
        beside.wait()

    assert cast.maps() == {}


def test_the_part_of_a_pod_is_as_the_device_plugin_writes_it() -> None:
    """What the tests say of pods, by the testbed's own device plugin."""
    assert json.loads(part("p", 1)).keys() == {
        "pod_name",
        "server_id",
        "server_ip",
        "host_ip",
        "super_pod_id",
        "rack_id",
        "devices",
        "server_index",
    }
