"""Odd objects: whatever they say, chips stay taken and the others go on."""

import asyncio
import gc
import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from ringleaf.config.conf import Conf
from ringleaf.config.reader import read_conf
from ringleaf.engine.event import JobArrived
from ringleaf.framework.instruction import Report
from ringleaf.kube import gang_members, status_queue
from ringleaf.kube.answers import Answer
from ringleaf.kube.status_queue import MOST_EVENTS
from tests.kube.stage import GROUP, NPU, Stage, node, scheduler_of, status_writer_of

EVERY = ",".join(f"Ascend910-{i}" for i in range(8))
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}


def sent(_pod: object, _place: object) -> str:
    return "sent"


@pytest.mark.parametrize(
    "annotations", [{}, {NPU: "Ascend910-0,Ascend910-1"}], ids=["none", "too few"]
)
def test_a_node_gives_no_chips_until_it_is_known_who_has_them(
    annotations: dict[str, str],
) -> None:
    stage = Stage("a")
    where = {"nodeName": "a"}
    stage.pod("other", 8, scheduler="x", annotations=annotations, spec=where)
    stage.pod("p", 1)

    assert stage.cycle() == ["waiting pod default/p"]
    stage.ends("other")
    assert stage.cycle() == ["bind pod default/p: p on a 0"]


def test_a_pod_that_we_would_not_place_holds_its_chips_where_it_is() -> None:
    elsewhere = {
        "topologyKey": "zone",
        "namespaceSelector": {"matchLabels": {"team": "x"}},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [elsewhere]}
    spec = {"nodeName": "a", "affinity": {"podAffinity": required}}
    stage = Stage([node("a", allocatable={"cpu": "2"})])
    stage.pod("other", 8, scheduler="x", asks={"cpu": "2"}, spec=spec)
    stage.pod("p", 1)
    stage.pod("q", 0)

    assert sorted(stage.cycle()) == ["waiting pod default/p", "waiting pod default/q"]


def test_a_job_that_asks_for_two_kinds_of_chips_is_told() -> None:
    stage = Stage("a b")
    stage.group("g", 2)
    stage.pod("g-0", 8, "g")
    stage.pod("g-1", 0, "g", asks={"huawei.com/Ascend310P": "8"})

    assert stage.cycle() == []
    assert "want chips of one kind" in stage.reason("default/g")


def test_pods_that_get_their_group_on_the_way_are_bound_once() -> None:
    """Volcano's controller annotates pods that it finds alone."""
    stage = Stage("a b")
    pods = [stage.pod(f"p-{i}", 4) for i in range(2)]
    stage.cycle(outcome=sent)
    stage.group("g", 2)
    for plain in pods:
        plain["metadata"]["annotations"][GROUP] = "g"
        stage.put_pod(plain)

    assert stage.cycle(outcome=sent) == []
    placed = stage.engine.view.job_states["default/g"].placements
    assert {n: place.chips for n, place in placed.items()} == {
        0: (0, 1, 2, 3),
        1: (4, 5, 6, 7),
    }


def test_a_pod_that_is_seen_bound_and_in_its_group_at_once_is_in_its_group() -> None:
    stage = Stage("a")
    plain = stage.pod("p", 4)
    stage.cycle(outcome=lambda _pod, _place: "written")
    stage.group("g", 1)
    plain["metadata"]["annotations"][GROUP] = "g"
    stage.put_pod(plain)
    stage.cycle()

    assert [*stage.cache.gangs] == ["default/g"]


def test_a_pod_that_changes_its_group_still_waits_for_its_claim() -> None:
    stage = Stage("a")
    plain = stage.pod("p", 1, spec={"volumes": [CLAIM]})
    stage.cycle()
    stage.group("g", 1)
    plain["metadata"]["annotations"][GROUP] = "g"
    stage.put_pod(plain)
    assert stage.cycle() == []

    stage.claim("c", "Bound")
    assert stage.cycle() == ["bind default/g: p on a 0"]


def test_a_bound_claim_mends_nothing_else() -> None:
    stage = Stage("a")
    asks = {"huawei.com/npu-core": "1"}
    stage.pod("p", 0, asks=asks, spec={"volumes": [CLAIM]})
    stage.cycle()
    stage.claim("c", "Bound")

    assert stage.cycle() == []
    assert "a part of a chip" in stage.reason("pod default/p")


def test_a_podgroup_whose_pods_have_ended_asks_for_nothing() -> None:
    stage = Stage("a b")
    stage.queue("q", capability={NPU: "8"})
    asks: dict[str, Any] = {"queue": "q", "minResources": {NPU: "8"}}
    stage.group("over", 1, **asks)
    stage.pod("over-0", 8, "over", phase="Failed", spec={"nodeName": "a"})
    stage.cycle()
    stage.gang("next", 1, **asks)

    assert stage.cycle() == ["bind default/next: next-0 on a 01234567"]


def test_a_node_that_moves_to_another_shard_keeps_its_faults() -> None:
    stage = Stage("a")
    faults: dict[str, Any] = {"DeviceList": {f"{NPU}-Unhealthy": "Ascend910-0"}}
    shard = json.dumps({"mindx-dl-deviceinfo-a": faults})
    one, other = "cluster-info-device-0", "cluster-info-device-1"
    stage.config_map(one, {one: shard})
    stage.config_map(other, {other: shard})
    stage.config_map(one, {one: ""})
    stage.pod("p", 8)

    assert stage.cycle() == ["waiting pod default/p"]
    stage.config_map(other, {other: ""})
    assert stage.cycle() == ["bind pod default/p: p on a 01234567"]


def test_who_was_not_bound_and_not_evicted_is_looked_at_again_for_both() -> None:
    stage = Stage("a b")
    stage.gang("g", 2, 4, least=1)
    stage.cycle(outcome=lambda pod, _place: "bound" if pod.name == "g-0" else "failed")
    stage.cache.assumed.not_evicted("default/g", "none", stage.now)
    stage.cycle()

    assert stage.cache.next_at == stage.now + 0.5
    assert stage.cycle(later=0.5) == ["bind default/g: g-1 on a 4567"]
    assert not stage.engine.view.job_states["default/g"].job.preemptable
    assert stage.cache.next_at is not None
    stage.cycle(later=stage.cache.next_at - stage.now)
    assert stage.engine.view.job_states["default/g"].job.preemptable


def test_names_of_pods_are_remembered_in_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gang_members, "MAX_NAMES", 3)
    stage = Stage("a")
    stage.group("g", 1)
    for i in range(9):
        stage.pod(f"p-{i}", 1, "g")
        stage.cycle()
        stage.drop_pod(f"p-{i}")
    stage.cycle()

    assert [*stage.cache.gangs["default/g"].numbers] == ["p-6", "p-7", "p-8"]


def test_a_gang_is_not_released_while_pods_of_it_are_on_their_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    deleted: list[str] = []
    stage = Stage("a b")
    scheduler = scheduler_of(stage, lambda what, **_more: said.append(what))
    monkeypatch.setattr(
        scheduler.writers.binder,
        "delete",
        lambda pods: deleted.extend(pod.name for pod in pods),
    )
    stage.gang("g", 2)
    stage.cycle(outcome=lambda pod, _place: "bound" if pod.name == "g-0" else "sent")
    stage.groups["g"]["spec"]["minMember"] = 3
    stage.put_group(stage.groups["g"])
    scheduler.loop.gangs.half_bound["default/g"] = 0.0

    scheduler.loop.gangs.release("default/g", 60.0)
    assert said == []
    (late,) = (pod for pod in stage.cache.pods.values() if pod.name == "g-1")
    stage.cache.assumed.forget(late.uid, stage.now)
    scheduler.loop.gangs.release("default/g", 120.0)
    assert (said, deleted) == (["release"], ["g-0"])


def test_chips_that_a_copied_pod_came_with_do_not_count() -> None:
    stage = Stage("a")
    stage.pod("first", 1)
    stage.cycle()
    copied = {"huawei.com/AscendReal": "Ascend910-0", "predicate-time": "1"}
    stage.pod("copy", 1, annotations=copied)
    assert stage.cycle() == ["bind pod default/copy: copy on a 1"]
    stage.pod("rest", 6)

    assert stage.cycle() == ["bind pod default/rest: rest on a 234567"]


def test_a_budget_disturbs_only_those_it_is_about() -> None:
    stage = Stage("a")
    stage.pod("mine", 1, labels={"app": "mine"})
    stage.pod("other", 1, labels={"app": "other"})
    stage.cycle()
    stage.cache.take_changed()
    for allowed in (0, 1):
        stage.budget("keep", {"app": "mine"}, allowed)
        stage.cycle()
        changed = stage.cache.take_changed()
        assert [group.name for group in changed] == ["pod default/mine"]

    stage.budget("keep", {"app": "other"}, 1)
    stage.cycle()
    assert len(stage.cache.take_changed()) == 2


def test_a_gang_does_not_start_without_one_of_its_tasks() -> None:
    stage = Stage("a b c")
    stage.group("g", 2, minTaskMember={"ps": 1, "worker": 1})
    worker, server = ({"volcano.sh/task-spec": task} for task in ("worker", "ps"))
    stage.pod("g-w0", 8, "g", annotations=worker)
    stage.pod("g-w1", 8, "g", annotations=worker)

    assert stage.cycle() == []
    assert "0 of 1 pods of task 'ps'" in stage.reason("default/g")
    stage.pod("g-ps", 8, "g", annotations=server)
    assert len(stage.cycle()) == 1
    assert len(stage.bound) == 3


def test_of_too_much_to_tell_events_are_dropped_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_queue, "MOST_WAITING", 3)
    stage = Stage("a")
    heard: list[str] = []

    class Server:
        async def call(self, _method: str, path: str, *_rest: Any, **_more: Any) -> Any:  # noqa: ANN401
            heard.append(path)
            return Answer(200, b"")

    async def run() -> None:
        own = status_writer_of(stage, Server(), lambda: 0.0)
        for name in ("g0", "g1", "g2"):
            stage.group(name, 1)
            stage.cache.assumed.admit(f"default/{name}")
            own.group_changed(f"default/{name}", is_urgent=True)
            if name == "g0":
                own.on_group(stage.cache.gangs["default/g0"], "Evict", "why")
        await own.queue.flush(5.0)

    asyncio.run(run())
    told = [path.partition("podgroups/")[2] for path in heard]
    assert told == ["g0/status", "g1/status", "g2/status"]


def test_events_that_wait_are_few_and_small() -> None:
    """While pods are bound without a pause, events wait: the newest are kept."""
    stage = Stage("a")
    stage.group("g", 1)
    stage.cycle()
    group = stage.cache.gangs["default/g"]
    assert group.podgroup is not None
    heard: list[Any] = []

    class Server:
        async def call(
            self,
            _method: str,
            _path: str,
            body: bytes,
            **_more: Any,  # noqa: ANN401
        ) -> Answer:
            heard.append(msgspec.json.decode(body))
            return Answer(200, b"")

    own = status_writer_of(stage, Server(), lambda: 60.0)
    own.on_group(group, "Evict", "the first")
    own.on_group(group, "Evict", "x" * 250_000)
    gc.collect()
    tracemalloc.start()
    try:
        for i in range(MOST_EVENTS + 100):
            own.on_group(group, "Evict", f"of old {i}")
        for i in range(MOST_EVENTS):
            own.on_group(group, "Evict", f"message {i}, which is as long as most are")
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < 700 * MOST_EVENTS
    assert own.queue.n_waiting == MOST_EVENTS
    assert own.queue.counts.dropped == MOST_EVENTS + 102

    asyncio.run(own.queue.flush(5.0))
    assert own.queue.n_waiting == 0
    first, last = heard[0], heard[-1]
    assert first["message"] == "message 0, which is as long as most are"
    assert last["message"].startswith(f"message {MOST_EVENTS - 1},")
    assert first["involvedObject"] == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "namespace": "default",
        "name": "g",
        "uid": group.podgroup.metadata.uid,
    }
    assert first["firstTimestamp"] == "1970-01-01T00:01:00Z"


def test_only_a_podgroup_may_be_without_a_status_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a pod 404 says that it is gone; nobody may patch pods themselves."""
    monkeypatch.setattr(status_queue, "SETTLE_S", 0.0)
    stage = Stage("a")
    stage.group("g", 2)
    stage.pod("g-0", 8, "g")
    stage.cycle()
    heard: list[str] = []

    class Server:
        async def call(self, _method: str, path: str, *_rest: Any, **_more: Any) -> Any:  # noqa: ANN401
            heard.append(path)
            return Answer(404, b"")

    async def run() -> None:
        own = status_writer_of(stage, Server(), lambda: 0.0)
        own.waits("default/g", "why")
        own.group_changed("default/g", is_urgent=True)
        await own.queue.flush(5.0)

    asyncio.run(run())
    groups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
    told = [path for path in heard if not path.endswith("/events")]
    assert [f"{groups}/g/status", f"{groups}/g"] == told[:2]
    assert "/api/v1/namespaces/default/pods/g-0/status" in told
    assert "/api/v1/namespaces/default/pods/g-0" not in told


UID = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("no node", "no node; hint: ringleaf explain pod/g-0 -n default"),
        ("no node; hint: ask for less", "no node; hint: ask for less"),
        (
            f"no node; hint: would start if job 'ml/bert-{UID}' ended",
            "no node; hint: would start if job 'ml/bert' ended",
        ),
    ],
)
def test_the_event_of_a_waiting_pod_has_a_hint(
    monkeypatch: pytest.MonkeyPatch, why: str, told: str
) -> None:
    monkeypatch.setattr(status_queue, "SETTLE_S", 0.0)
    stage = Stage("a")
    stage.group("g", 2)
    stage.pod("g-0", 8, "g")
    stage.cycle()
    bodies: list[Any] = []

    class Server:
        async def call(self, _method: str, _path: str, body: bytes, **_: Any) -> Any:  # noqa: ANN401
            bodies.append(json.loads(body))
            return Answer(200, b"")

    async def run() -> None:
        own = status_writer_of(stage, Server(), lambda: 0.0)
        own.waits("default/g", why)
        await own.queue.flush(5.0)

    asyncio.run(run())
    events = [each for each in bodies if each.get("reason") == "FailedScheduling"]
    assert [each["message"] for each in events] == [told]
    conditions = [
        c for each in bodies for c in each.get("status", {}).get("conditions", ())
    ]
    assert conditions
    assert not any(UID in each["message"] for each in conditions)


def test_phases_are_told_before_conditions_however_many_there_are() -> None:
    stage = Stage("a b")
    stage.group("big", 30)
    for i in range(30):
        stage.pod(f"big-{i}", 8, "big")
    stage.gang("small", 2)
    stage.cycle()
    heard: list[str] = []
    now = 0.0

    class Server:
        async def call(self, _method: str, path: str, *_rest: Any, **_more: Any) -> Any:  # noqa: ANN401
            heard.append(path)
            return Answer(200, b"")

    async def run() -> None:
        nonlocal now
        own = status_writer_of(stage, Server(), lambda: now)
        own.waits("default/big", "why")
        task = asyncio.create_task(own.queue.run())
        while len(heard) < 5:
            now += 1.0
            await asyncio.sleep(0.01)
        own.group_changed("default/small")
        n_before, now = len(heard), now + 10.0
        while len(heard) < n_before + 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        assert any("/podgroups/small" in path for path in heard[n_before:])

    asyncio.run(asyncio.wait_for(run(), 30))


def test_d21_pods_of_a_node_are_told_in_the_same_order_every_time() -> None:
    stage = Stage("a")
    pods = [stage.pod(f"p{i}", 0, spec={"nodeName": "late"}) for i in range(20)]
    stage.cycle()
    stage.put_node(node("late"))
    stage.cycle()

    told = [each.job.name for each in stage.heard if isinstance(each, JobArrived)]
    pods.sort(key=lambda plain: str(plain["metadata"]["uid"]))
    assert told == [f"pod default/{plain['metadata']['name']}" for plain in pods]


def test_what_stays_true_is_told_however_often_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(status_queue, "SETTLE_S", 0.1)
    stage = Stage("a")
    stage.group("g", 2)
    stage.pod("g-0", 8, "g")
    stage.cycle()
    told: list[str] = []

    class Server:
        async def call(self, _method: str, path: str, *_rest: Any, **_more: Any) -> Any:  # noqa: ANN401
            told.append(path)
            return Answer(200, b"")

    async def run() -> None:
        own = status_writer_of(stage, Server(), asyncio.get_running_loop().time)
        task = asyncio.create_task(own.queue.run())
        async with asyncio.timeout(30):
            while not told:
                own.waits("default/g", "why")
                await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(run())
    assert told[0] == "/api/v1/namespaces/default/pods/g-0/status"


def test_why_a_job_waits_follows_what_changes() -> None:
    tiers = [{"plugins": [{"name": "predicates"}]}]
    conf = read_conf({"actions": "allocate", "tiers": tiers})
    assert isinstance(conf, Conf)
    stage = Stage("a b c d", conf)
    scheduler = scheduler_of(stage)
    for name in "xyz":
        stage.pod(name, 8)
    stage.cycle()
    stage.gang("g", 4)
    stage.cycle()
    for said in stage.said:
        if isinstance(said, Report):
            scheduler.loop.executor.report(said)
    group = stage.cache.gangs["default/g"]
    assert "3 pods have no node" in group.status.pending_reason

    stage.drop_pod("x")
    assert stage.cycle() == []  # the engine knows that it does not fit
    scheduler.loop.pending.refresh(stage.now)
    assert "2 pods have no node" in group.status.pending_reason
    stage.drop_pod("y")
    stage.drop_pod("z")
    stage.cycle()
    scheduler.loop.pending.refresh(stage.now)
    assert not scheduler.loop.pending.jobs


def test_why_a_running_job_finds_no_place_for_a_pod_follows_what_changes() -> None:
    tiers = [{"plugins": [{"name": "predicates"}]}]
    conf = read_conf({"actions": "allocate", "tiers": tiers})
    assert isinstance(conf, Conf)
    stage = Stage("a b c d e f", conf)
    scheduler = scheduler_of(stage)
    stage.gang("g", 3)
    stage.cycle()
    for name in ("h0", "h1", "h2", "h3", "x"):
        stage.pod(name, 4 if name[0] == "h" else 8)
        stage.cycle()
    for name in ("g-1", "g-2", "h0", "h2"):  # the queue has room for two, nodes for one
        stage.drop_pod(name)
    stage.pod("y", 8)
    stage.cycle()
    for name in ("g-1", "g-2"):
        stage.pod(name, 8, "g")
    stage.cycle()
    for said in stage.said:
        if isinstance(said, Report):
            scheduler.loop.executor.report(said)
    group = stage.cache.gangs["default/g"]
    assert "1 fitting, 5 with too few free chips" in group.status.pending_reason

    stage.pod("z", 8)
    assert stage.cycle() == ["bind pod default/z: z on c 01234567"]
    scheduler.loop.pending.refresh(stage.now)
    assert "6 with too few free chips" in group.status.pending_reason
    for name in "yz":
        stage.drop_pod(name)
    stage.cycle()
    assert {"g-1", "g-2"} <= stage.bound.keys()
    scheduler.loop.pending.refresh(stage.now)
    assert not scheduler.loop.pending.jobs
