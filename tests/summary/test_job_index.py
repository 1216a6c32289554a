"""Which pods are whose, in whatever order one hears of them."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ringleaf.kube.job_index import JobIndex
from ringleaf.kube.job_objects import JobGroup, JobNode, JobPod
from ringleaf.kube.objects import ConfigMap
from ringleaf.kube.rank_table import Status
from ringleaf.kube.watch import Gone
from tests.summary.cast import address_of, leaf_of, part
from tests.summary.fabric import CONFIGURATION

Event = tuple[str, Any]
N_LEAVES = 3


def podgroup(name: str, job: str, namespace: str = "ns", **meta: Any) -> JobGroup:  # noqa: ANN401
    owner = {"kind": "Job", "name": job, "uid": f"id-{job}", "controller": True}
    plain = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"u-{namespace}-{name}",
            "ownerReferences": [owner],
            **meta,
        },
        "spec": {"minMember": 1},
    }
    return msgspec.convert(plain, JobGroup)


def pod(
    name: str, group: str, owner: str, namespace: str = "ns", **notes: str
) -> JobPod:
    plain = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"u-{namespace}-{name}",
            "annotations": {
                "scheduling.k8s.io/group-name": group,
                "hccl/rankIndex": "0",
                CONFIGURATION: part(name, 1),
                **notes,
            },
            "ownerReferences": [{"kind": "Job", "uid": owner, "controller": True}],
        },
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running"},
    }
    return msgspec.convert(plain, JobPod)


def gone(name: str, namespace: str = "ns") -> Gone:
    return Gone(namespace, name, f"u-{namespace}-{name}")


def play(events: list[Event]) -> JobIndex:
    """A job index that has heard of all this."""
    job_index = JobIndex(lambda: 0.0)
    for what, thing in events:
        getattr(job_index, what)([thing])
    return job_index


def told(job_index: JobIndex) -> dict[str, tuple[str, list[str]]]:
    """Job -> version of its summary and its pods."""
    return {
        job.key: (job.summary(Status.PENDING, {}).version, sorted(job.pods))
        for job in job_index.jobs.values()
        if job.is_there
    }


def leaves(n: int = N_LEAVES) -> ConfigMap:
    servers = [
        {
            "tor_id": leaf,
            "tor_ip": leaf_of(4 * leaf),
            "server": [
                {"server_ip": address_of(4 * leaf + i), "slice_id": i} for i in range(4)
            ],
        }
        for leaf in range(n)
    ]
    info = json.dumps({"version": "1.0", "tor_count": 4, "server_list": servers})
    meta = {"name": "basic-tor-node-cm", "namespace": "kube-system"}
    return msgspec.convert({"metadata": meta, "data": {"tor_info": info}}, ConfigMap)


def node(number: int) -> JobNode:
    addresses = [{"type": "InternalIP", "address": address_of(number)}]
    plain = {"metadata": {"name": f"n{number}"}, "status": {"addresses": addresses}}
    return msgspec.convert(plain, JobNode)


STREAMS: list[list[Event]] = [
    [
        ("put_groups", podgroup("pg-a", "a")),
        ("put_groups", podgroup("pg-b", "b")),
        ("drop_groups", gone("pg-b")),
        ("put_groups", podgroup("pg-c", "c")),
    ],
    [
        ("put_pods", pod("a-0", "pg-a", "id-a")),
        ("put_pods", pod("b-0", "pg-b", "id-b")),
        ("put_pods", pod("a-1", "pg-a", "id-else")),
        ("put_pods", pod("c-0", "pg-c", "id-c")),
        ("drop_pods", gone("c-0")),
        ("put_pods", pod("lonely", "pg-none", "id-none")),
        ("put_pods", pod("a-0", "pg-a", "id-a", isSharedTor="1")),
    ],
]


@given(st.permutations([0] * len(STREAMS[0]) + [1] * len(STREAMS[1])))
def test_it_does_not_matter_which_kind_is_heard_of_first(order: list[int]) -> None:
    """Each kind is in order; between kinds there is none."""
    streams = [iter(stream) for stream in STREAMS]
    mixed = [next(streams[i]) for i in order]
    usual = told(play(STREAMS[0][:2] + STREAMS[1] + STREAMS[0][2:]))

    assert told(play(mixed)) == usual
    assert usual["ns/id-a"][1] == ["u-ns-a-0", "u-ns-a-1"]
    assert usual["ns/id-b"][1] == ["u-ns-b-0"]
    assert "ns/id-none" not in usual


def test_what_one_namespace_has_never_reaches_another() -> None:
    """Two tenants with the same ids and names, whoever is heard of first."""
    alone = told(play([event for stream in STREAMS for event in stream]))
    strange = [
        ("put_pods", pod("a-7", "pg-a", "id-a", "other")),
        ("put_pods", pod("b-7", "pg-none", "id-b", "other")),
        ("put_groups", podgroup("pg-a", "a", "other")),
        ("put_groups", podgroup("pg-x", "b", "other")),
        ("put_groups", podgroup("pg-y", "none", "other")),
    ]
    events = [event for stream in STREAMS for event in stream]

    for mixed in (strange + events, events + strange):
        found = told(play(mixed))

        ours = {key: what for key, what in found.items() if key.startswith("ns/")}
        theirs = {key: what[1] for key, what in found.items() if key not in ours}
        assert ours == alone
        assert theirs == {
            "other/id-a": ["u-other-a-7"],
            "other/id-b": ["u-other-b-7"],
            "other/id-none": [],
        }


def test_pods_wait_for_a_job_of_their_own_namespace() -> None:
    ours = pod("a-0", "pg-gone", "id-a")
    theirs = pod("a-0", "pg-gone", "id-a", "other")
    job_index = play([("put_pods", ours), ("put_pods", theirs)])
    assert not job_index.jobs

    job_index.put_groups([podgroup("pg-a", "a", "other")])
    assert {key: [*job.pods] for key, job in job_index.jobs.items()} == {
        "other/id-a": ["u-other-a-0"]
    }
    job_index.drop_pods([gone("a-0", "other")])
    job_index.put_groups([podgroup("pg-a", "a")])

    assert {key: [*job.pods] for key, job in job_index.jobs.items()} == {
        "other/id-a": [],
        "ns/id-a": ["u-ns-a-0"],
    }


def test_pods_that_say_the_same_change_nothing() -> None:
    job_index = play([STREAMS[0][0], STREAMS[1][0]])
    job_index.changed.clear()
    job_index.put_pods([pod("a-0", "pg-a", "id-a", unrelated="news")])
    job_index.put_groups([podgroup("pg-a", "a", resourceVersion="7")])
    assert not job_index.changed

    job_index.put_pods([pod("a-0", "pg-a", "id-a", isSharedTor="2")])

    assert [*job_index.changed] == ["ns/id-a"]


def test_one_pod_of_a_job_touches_no_other_job() -> None:
    job_index = play([STREAMS[0][0], STREAMS[0][1], *STREAMS[1][:2]])
    job_index.changed.clear()
    job_index.put_pods([pod("a-0", "pg-a", "id-a", isSharedTor="2")])

    assert [*job_index.changed] == ["ns/id-a"]


def test_nothing_is_kept_of_what_is_gone() -> None:
    job_index = play([STREAMS[0][0], STREAMS[1][0]])
    job_index.drop_pods([gone("a-0")])
    job_index.drop_groups([gone("pg-a")])
    job_index.forget(job_index.jobs["ns/id-a"])
    empty = JobIndex(lambda: 0.0)

    for name in ("jobs", "_pods", "_groups", "_waiting", "_in_group", "_named"):
        assert not getattr(job_index, name), name
    assert job_index.changed == empty.changed


def test_who_writes_nothing_keeps_no_jobs_that_are_gone() -> None:
    """Others write meanwhile, for months."""
    job_index = play([*STREAMS[0][:2], STREAMS[1][0]])
    job_index.drop_groups([gone("pg-a"), gone("pg-b")])
    job_index.rest()
    assert [*job_index.jobs] == ["ns/id-a"], "it has a pod"
    assert not job_index.changed

    job_index.drop_pods([gone("a-0")])
    job_index.rest()

    for name in ("jobs", "changed", "_pods", "_groups", "_waiting", "_named"):
        assert not getattr(job_index, name), name


def test_a_pod_that_goes_to_another_podgroup_leaves_nothing_behind() -> None:
    job_index = play([("put_pods", pod("a-0", "pg-a", "id-a"))])
    job_index.put_pods([pod("a-0", "pg-b", "id-a")])
    job_index.drop_pods([gone("a-0")])

    assert not job_index._in_group  # noqa: SLF001


def test_leaves_say_what_their_pods_say() -> None:
    shared = {"isSharedTor": "1", "isHealthy": "0"}
    job_index = play([("put_maps", leaves()), ("put_nodes", node(1)), STREAMS[0][0]])
    assert job_index.leaves() is None

    job_index.put_pods([pod("a-0", "pg-a", "id-a", **shared)])
    found = json.loads(job_index.leaves() or "")

    assert [*found] == [leaf_of(0), leaf_of(4), leaf_of(8)]
    first = found[leaf_of(0)]
    assert (first["IsSharedTor"], first["IsHealthy"]) == (1, 0)
    assert first["nodes"][1] == {
        "NodeIp": address_of(1),
        "NodeName": "n1",
        "JobName": ["a"],
    }
    assert first["nodes"][0] == {
        "NodeIp": address_of(0),
        "NodeName": "",
        "JobName": [],
    }
    assert found[leaf_of(4)]["IsSharedTor"] == 0


def test_a_leaf_is_unhealthy_as_soon_as_one_pod_says_so() -> None:
    job_index = play([("put_maps", leaves()), ("put_nodes", node(1)), *STREAMS[0][:2]])
    first = pod("a-0", "pg-a", "id-a", isSharedTor="0", isHealthy="0")
    second = pod("b-0", "pg-b", "id-b", isSharedTor="2", isHealthy="1")
    job_index.put_pods([first, second])
    found = json.loads(job_index.leaves() or "")[leaf_of(0)]

    assert (found["IsSharedTor"], found["IsHealthy"]) == (2, 1)
    assert found["nodes"][1]["JobName"] == ["a", "b"]


def test_pods_that_are_over_say_nothing_of_their_leaf() -> None:
    job_index = play([("put_maps", leaves()), ("put_nodes", node(1)), STREAMS[0][0]])
    over = pod("a-0", "pg-a", "id-a", isSharedTor="1")
    over.status.phase = "Succeeded"
    job_index.put_pods([over])

    assert job_index.leaves() is None


def test_a_list_of_leaves_that_cannot_be_read_is_told() -> None:
    bad = leaves()
    bad.data = {"tor_info": "{"}
    job_index = play([("put_maps", bad)])

    assert "data.tor_info is no JSON" in job_index.bad_topology
    assert job_index.idle_leaves() is None


def test_of_two_jobs_of_one_name_the_older_has_the_summary() -> None:
    """By the age of their PodGroups; of two of one second the smaller id."""

    def claimed(first: str, second: str) -> str:
        job_index = JobIndex(lambda: 0.0)
        for name, created in (("z-first", first), ("a-second", second)):
            owner = {"kind": "Job", "name": "alike", "uid": name, "controller": True}
            meta: Any = {"ownerReferences": [owner], "creationTimestamp": created}
            job_index.put_groups([podgroup(name, "alike", **meta)])
        found = job_index.job_named("ns", "alike")
        assert found is not None
        return found.id

    early, late = "2026-11-19T00:00:00Z", "2026-11-19T00:00:01Z"
    assert claimed(early, late) == "z-first"
    assert claimed(late, early) == "a-second"
    assert claimed(early, early) == "a-second"
