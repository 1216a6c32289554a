"""The checker catches what is planted, on a real API server, and nothing else."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from ringleaf_testbed.cluster import Testbed
from ringleaf_testbed.hardware import Machine, fleet, node_object
from tests.soak import checker
from tests.soak.evictions import Member
from tests.soak.spectator import Spectator
from tests.testbed.priority import create_priority_class

PODGROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
Plant = Callable[..., None]


@pytest.fixture
def machines(testbed: Testbed, namespace: str) -> Iterator[list[Machine]]:
    """Two nodes of each of three products, of this test alone."""
    found = [
        machine
        for product in ("atlas-800t-a2", "atlas-800-9000", "atlas-900-a3")
        for machine in fleet(product, 2, prefix=f"{namespace}-{product}")
    ]
    for machine in found:
        testbed.client.ask("POST", "/api/v1/nodes", node_object(machine))
    yield found
    for machine in found:
        testbed.client.ask("DELETE", f"/api/v1/nodes/{machine.name}")


@pytest.fixture
def plant(testbed: Testbed, namespace: str, machines: list[Machine]) -> Plant:
    """Makes a pod, on the node of that number and on those chips, or on none."""

    def make(
        name: str,
        node: int | None,
        chips: str,
        asked: int,
        *,
        kind: str = "module-910b-8",
        real: str = "",
        time: str = "",
        group: str = "",
        queue: str = "",
        preemptable: str = "",
        priority_class: str = "",
    ) -> None:
        notes = {
            "huawei.com/Ascend910": _names(chips),
            "huawei.com/AscendReal": _names(real),
            "predicate-time": time,
            "scheduling.k8s.io/group-name": group,
        }
        limits = {"huawei.com/Ascend910": str(asked)}
        spec: dict[str, Any] = {
            "schedulerName": "ringleaf",
            "nodeSelector": {"accelerator-type": kind},
            "containers": [
                {"name": "c", "image": "none", "resources": {"limits": limits}}
            ],
        }
        if node is not None:
            spec["nodeName"] = machines[node].name
        if priority_class:
            spec["priorityClassName"] = priority_class
        annotations = {key: text for key, text in notes.items() if text}
        tags = {"volcano.sh/queue-name": queue, "volcano.sh/preemptable": preemptable}
        labels = {key: text for key, text in tags.items() if text}
        metadata = {"name": name, "annotations": annotations, "labels": labels}
        body = {"metadata": metadata, "spec": spec}
        testbed.client.ask("POST", f"/api/v1/namespaces/{namespace}/pods", body)

    return make


@pytest.fixture
def gang(testbed: Testbed, namespace: str) -> Callable[[str, int], None]:
    """Makes a PodGroup."""

    def make(name: str, least: int) -> None:
        body = {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": least},
        }
        testbed.client.ask("POST", PODGROUPS.format(namespace), body)

    return make


@pytest.fixture
def found(testbed: Testbed, namespace: str) -> Callable[[], list[str]]:
    """What the checker says of this test's objects, without its namespace."""

    def look() -> list[str]:
        cluster = own_part(checker.read(testbed.client), namespace)
        lines = checker.mistakes(cluster) + checker.losses(cluster)
        return [_short(line, namespace) for line in lines]

    return look


def own_part(cluster: checker.Cluster, namespace: str) -> checker.Cluster:
    """What is there of one test; others use the same API server."""
    return checker.Cluster(
        nodes={k: n for k, n in cluster.nodes.items() if k.startswith(namespace)},
        pods=[pod for pod in cluster.pods if pod.name.startswith(namespace)],
        least={k: n for k, n in cluster.least.items() if k.startswith(namespace)},
        jobs={},
    )


def test_a_clean_cluster_passes(
    plant: Plant, gang: Callable[[str, int], None], found: Callable[[], list[str]]
) -> None:
    gang("g", 2)
    plant("a", 0, "0,1", 2, group="g")
    plant("b", 0, "2,3", 2, group="g", real="2,3")
    plant("swapped", 1, "0", 1, real="5")
    plant("ring", 2, "4,5,6,7", 4, kind="module")
    plant("module", 4, "2,3,8,9", 4, kind="module-a3-16-super-pod")
    plant("one", 4, "4", 1, kind="module-a3-16-super-pod")
    plant("full", 3, "0,1,2,3,4,5,6,7", 8, kind="module")

    assert found() == []


def test_a_chip_with_two_owners_is_caught(
    plant: Plant, found: Callable[[], list[str]]
) -> None:
    plant("a", 0, "0,1", 2)
    plant("b", 0, "1,2", 2)

    assert found() == ["Node atlas-800t-a2-0: Ascend910-1 has 2 owners, a, b"]


def test_what_the_device_plugin_handed_out_counts_before_what_was_planned(
    plant: Plant, found: Callable[[], list[str]]
) -> None:
    plant("a", 0, "0", 1, real="3")
    plant("b", 0, "3", 1)

    assert found() == ["Node atlas-800t-a2-0: Ascend910-3 has 2 owners, a, b"]


def test_a_pod_whose_annotation_was_used_up_for_another_has_no_chips_yet(
    plant: Plant, found: Callable[[], list[str]]
) -> None:
    plant("a", 0, "0", 1, real="3")
    plant("b", 0, "3", 1, time=str(2**64 - 1))

    assert found() == []


def test_half_a_gang_is_caught(
    plant: Plant, gang: Callable[[str, int], None], found: Callable[[], list[str]]
) -> None:
    gang("g", 3)
    plant("a", 0, "0", 1, group="g")
    plant("b", 1, "0", 1, group="g")

    assert found() == ["PodGroup g: 2 pods are bound, 3 must be"]


def test_a_wrong_number_of_chips_is_caught(
    plant: Plant, found: Callable[[], list[str]]
) -> None:
    plant("a", 0, "0,1,2", 4)
    plant("b", 1, "", 1)

    assert found() == [
        "Pod a: its chips are Ascend910-0,Ascend910-1,Ascend910-2, it asked for 4",
        "Pod b: its chips are none, it asked for 1",
    ]


def test_a_chip_that_the_node_has_not_is_caught(
    plant: Plant, found: Callable[[], list[str]]
) -> None:
    plant("a", 0, "7,8", 2)

    assert found() == ["Pod a: node atlas-800t-a2-0 has no Ascend910-8"]


@pytest.mark.parametrize(
    ("node", "chips", "kind"),
    [
        pytest.param(2, "3,4", "module", id="across two rings"),
        pytest.param(4, "1,2", "module-a3-16-super-pod", id="halves of two modules"),
    ],
)
def test_chips_that_are_not_wired_together_are_caught(
    plant: Plant, found: Callable[[], list[str]], node: int, chips: str, kind: str
) -> None:
    plant("a", node, chips, 2, kind=kind)

    assert [line.partition(" on ")[0] for line in found()] == [
        f"Pod a: {_names(chips)} are not wired together"
    ]


def test_chips_of_a_pod_without_a_node_are_caught(
    plant: Plant, found: Callable[[], list[str]]
) -> None:
    plant("a", None, "0", 1, kind="elsewhere")

    assert found() == ["Pod a: it has no node and Ascend910-0"]


def test_a_pod_on_a_node_that_is_gone_is_caught(
    testbed: Testbed,
    namespace: str,
    machines: list[Machine],
    found: Callable[[], list[str]],
    plant: Plant,
) -> None:
    gone = fleet("atlas-800t-a2", 1, prefix=f"{namespace}-gone")[0]
    machines.append(gone)
    testbed.client.ask("POST", "/api/v1/nodes", node_object(gone))
    plant("a", 6, "0", 1)
    testbed.client.ask("DELETE", f"/api/v1/nodes/{machines.pop().name}")

    assert found() == ["Pod a: it is bound to gone-0, which is not there"]


def test_a_gang_that_waits_beside_free_chips_is_caught(
    plant: Plant, gang: Callable[[str, int], None], found: Callable[[], list[str]]
) -> None:
    gang("g", 2)
    plant("a", None, "", 8, group="g")
    plant("b", None, "", 8, group="g")

    assert found() == ["g: 2 pods wait, and there is room for all"]


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        pytest.param(8, [], id="a whole node"),
        pytest.param(4, ["a: 1 pods wait, and there is room for all"], id="a ring"),
    ],
)
def test_what_does_not_fit_may_wait(
    plant: Plant, found: Callable[[], list[str]], asked: int, lines: list[str]
) -> None:
    for node in (2, 3):
        plant(f"there-{node}", node, "0", 1, kind="module")
    plant("a", None, "", asked, kind="module")

    assert [line.removeprefix("pod ") for line in found()] == lines


def test_whatever_does_not_run_is_told_where_all_should(
    testbed: Testbed, plant: Plant, namespace: str
) -> None:
    plant("a", 0, "0", 1)
    cluster = own_part(checker.read(testbed.client), namespace)

    lines = checker.unrun(
        msgspec.structs.replace(cluster, jobs={"j": "", "k": "Running"})
    )

    assert [_short(line, namespace) for line in lines] == [
        "Pod a: it is Pending, all should run",
        "Job j: it is not looked at, all should run",
    ]


def test_jobs_are_known_by_their_pods(
    testbed: Testbed, plant: Plant, namespace: str
) -> None:
    create_priority_class(testbed.client, namespace, namespace, 1000)
    plant("a", 0, "0,1", 2, group="g", queue="q", priority_class=namespace)
    plant("b", 0, "2", 1, preemptable="false")
    plant("waiting", None, "", 4)

    with Spectator(testbed.client) as seen:
        held = seen.usage.between(seen.jobs[f"{namespace}/g"].queue, 2e9, 2e9)
    path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{namespace}"
    testbed.client.ask("DELETE", path)

    assert seen.jobs[f"{namespace}/g"] == Member(1000, "q", 2, guarded=False)
    assert seen.jobs[f"pod {namespace}/b"] == Member(0, "default", 1, guarded=True)
    assert seen.job_of[f"{namespace}/a"] == f"{namespace}/g"
    assert held == [(2e9, 2)]


def _short(line: str, namespace: str) -> str:
    return line.replace(f"{namespace}/", "").replace(f"{namespace}-", "")


def _names(chips: str) -> str:
    return ",".join(f"Ascend910-{chip}" for chip in chips.split(",") if chip)


def test_a_job_with_fewer_pods_than_it_is_to_have_is_lost_by_volcano() -> None:
    wanted = dict.fromkeys(("default/a", "default/b", "default/c"), 1)
    phases = dict.fromkeys(wanted, "Restarting") | {"default/c": "Completed"}
    one = checker.Pod(
        *("default/b-0", "", "", "Pending", 1, (), ""),
        restricted=False,
        ours=True,
        job="default/b",
    )
    cluster = checker.Cluster({}, [one], {}, phases, wanted)

    assert checker.lost_by_volcano(cluster) == ["default/a"]
