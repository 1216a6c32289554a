"""Faults carried out: remembered first, deleted by uid, and what others are told."""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec
import pytest

from ringleaf.engine.event import DeletionsKnown, RepairKnown
from ringleaf.framework.instruction import (
    AskToExit,
    Delete,
    PersistRepair,
    Repaired,
    Report,
    ReportFaultyPods,
    Verdict,
)
from ringleaf.kube import (
    binder,
    fault_store,
    fault_texts,
    names,
    record_store,
    records,
    repair_executor,
    reset_config,
)
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.binder import Binder, Bound
from ringleaf.kube.fault_history import FaultHistory, lives_in
from ringleaf.kube.fault_store import FaultStore
from ringleaf.kube.gang_state import RepairState
from ringleaf.kube.objects import ConfigMap
from ringleaf.kube.record_store import (
    LABEL,
    MOVED,
    RecordStore,
    Stored,
    name_of,
    watch_records,
)
from ringleaf.kube.repair_executor import RepairExecutor, RepairInstruction
from ringleaf.kube.reports import check_code
from ringleaf.kube.reset_config import Reset
from ringleaf.model.fault import Cause, Deletion, Fault, PodFault, Record, RestartScope
from ringleaf.model.placement import Placement
from tests.kube.stage import NPU, Plain, Stage, status_writer_of

UID = "-01234567-89ab-cdef-0123-456789abcdef"
PODS_ONLY = {"fault-scheduling": "force", "pod-rescheduling": "on"}
RECORD = Record(
    since=5.0,
    pod_faults=(PodFault(1, Cause.CHIP, "b"),),
    placements=(Placement(1, "b", tuple(range(8))),),
    deleted=(1,),
    deleted_at=6.0,
)


class Server:
    """Takes note of what is asked, and has ConfigMaps.

    ``refuse`` says the status of a request, 0 for no answer, None for what is usual.
    """

    def __init__(
        self, refuse: Callable[[str, str], int | None] = lambda _m, _p: None
    ) -> None:
        self.refuse = refuse
        self.words = b"refused"
        self.asked: list[str] = []
        self.bodies: list[tuple[str, Plain]] = []
        self.maps: dict[str, Plain] = {}
        self.namespaces = {"volcano-system", "mindx-dl", "default", OWN}
        self.n_written = 0

    async def call(
        self, method: str, path: str, body: bytes | None = None, **_more: object
    ) -> Answer:
        path, _mark, query = path.partition("?")
        what = f"{method} {'/'.join(path.split('/')[-2:])}"
        self.asked.append(what)
        await asyncio.sleep(0)
        status = self.refuse(method, path)
        if status == 0:
            raise Unreachable("away")
        if status is not None:
            return Answer(status, self.words)
        plain = json.loads(body) if body else {}
        self.bodies.append((what, plain))
        if "/configmaps" not in path:
            return OK
        return self._list(path) if query else self._map(method, path, plain)

    def _list(self, path: str) -> Answer:
        """All ConfigMaps of a namespace that have a label of ours."""
        found = [
            each
            for key, each in self.maps.items()
            if key.startswith(path) and LABEL in each["metadata"].get("labels", {})
        ]
        return Answer(200, json.dumps({"metadata": {}, "items": found}).encode())

    def _map(self, method: str, path: str, plain: Plain) -> Answer:
        namespace = path.split("/")[4]
        if namespace not in self.namespaces:
            return Answer(404, b'namespaces "x" not found')
        if method == "POST":
            return self._create(f"{path}/{plain['metadata']['name']}", plain)
        known = self.maps.get(path)
        if known is None:
            return Answer(404, b"")
        sure = plain.get("metadata", {}) | plain.get("preconditions", {})
        version = sure.get("resourceVersion")
        if version not in (None, known["metadata"].get("resourceVersion")):
            return Answer(409, b"")
        if method == "PATCH":
            known["data"] = known.get("data", {}) | plain["data"]
            known["metadata"] |= plain.get("metadata", {})
            return self._written(known)
        if method == "DELETE":
            del self.maps[path]
        return Answer(200, json.dumps(known).encode())

    def _create(self, path: str, plain: Plain) -> Answer:
        if path in self.maps:
            return Answer(409, b"it is there")
        self.maps[path] = plain
        return self._written(plain)

    def _written(self, plain: Plain) -> Answer:
        self.n_written += 1
        plain["metadata"]["resourceVersion"] = f"v{self.n_written}"
        return Answer(200, json.dumps(plain).encode())

    @property
    def records(self) -> dict[str, str]:
        """Job -> the record of its repair."""
        data = [each["data"] for key, each in self.maps.items() if f"/{OWN}/" in key]
        return {each["job"]: each["record"] for each in data if "job" in each}

    def write_record(self, job: str, uid: str, text: str) -> None:
        """Whoever led before has written a record."""
        name = name_of(job, uid)
        meta = {"name": name, "labels": {LABEL: "repair"}}
        data = {"job": job, "podgroup-uid": uid, "record": text}
        plain = {"metadata": meta, "data": data}
        self.maps[f"{OWN_MAPS}/{name}"] = plain
        self._written(plain)


OK = Answer(200, b"{}")
OWN = "ringleaf-system"
OWN_MAPS = f"/api/v1/namespaces/{OWN}/configmaps"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (binder, repair_executor, reset_config):
        monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.001)
    for module in (binder, repair_executor, fault_store):
        monkeypatch.setattr(module, "MOST_PAUSE_S", 0.002)
    monkeypatch.setattr(repair_executor, "SETTLE_S", 0.01)
    monkeypatch.setattr(record_store, "PAUSE_S", 0.001)
    monkeypatch.setattr(fault_store, "PAUSE_S", 0.001)
    monkeypatch.setattr(binder, "REFUSED_S", 0.001)


def running(labels: dict[str, str] | None = None, pods: int = 2) -> Stage:
    """A gang of pods that run, with a PodGroup that a job has made."""
    stage = Stage("a b c")
    stage.group(f"g{UID}", pods, labels=labels or PODS_ONLY)
    plain = stage.groups[f"g{UID}"]
    plain["metadata"]["ownerReferences"] = [{"name": "g", "uid": UID[1:]}]
    stage.put_group(plain)
    for i in range(pods):
        stage.pod(f"g-{i}", 8, f"g{UID}")
    stage.cycle()
    assert len(stage.bound) == pods
    return stage


JOB = f"default/g{UID}"
NAME = name_of(JOB, f"group-g{UID}")
WRITE = f"POST {OWN}/configmaps"
AGAIN, REMOVE = f"PATCH configmaps/{NAME}", f"DELETE configmaps/{NAME}"


class Edge:
    """All that carries out, before a server of the test's."""

    def __init__(self, stage: Stage, server: Server) -> None:
        api, self.said = cast(Api, server), list[str]()

        def say(what: str, **facts: object) -> None:
            self.said.append(f"{what} {facts.get('why', '')}".strip())

        self.binder = Binder(
            api,
            stage.cache,
            lambda: stage.now,
            done=lambda _pod, _place: None,
            changed=lambda: None,
            say=say,
        )
        self.faults: dict[Any, Fault] = {}
        clock = lambda: stage.now  # noqa: E731 - short
        self.braked: list[str] = []
        self.deletions: list[Deletion] = []
        self.book = FaultStore(
            *(api, stage.cache, self.faults.values, clock, say),
            braked=lambda: self.braked,
            deletions=lambda: self.deletions,
        )
        self.status_writer = status_writer_of(stage, server, clock)
        self.store = RecordStore(api, OWN, say)
        self.repair_executor = RepairExecutor(
            *(api, stage.cache, self.binder, self.status_writer, self.book),
            store=self.store,
            clock=clock,
            say=say,
        )


async def a_while() -> None:
    """Time for what is under way: a tenth of a second, and 100 turns of the loop.

    A busy machine may let the time pass without any turn.
    """
    for _turn in range(100):
        await asyncio.sleep(0.001)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something, not for ever."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - conditions of any sort
            await asyncio.sleep(0.001)


def carry_out(
    stage: Stage,
    server: Server,
    instructions: Iterable[RepairInstruction],
    *,
    ended: bool = True,
) -> list[str]:
    """Do what is instructed until all is done; what was said."""

    async def run() -> list[str]:
        edge = Edge(stage, server)
        for each in instructions:
            edge.repair_executor.carry_out(each)
        if ended:
            await asyncio.wait_for(edge.repair_executor.drained(), 30)
            await asyncio.wait_for(edge.binder.drained(), 30)
        else:
            await a_while()
            edge.repair_executor.abandon()
            edge.binder.abandon()
            await edge.repair_executor.drained()
        return edge.said

    return asyncio.run(run())


def delete(*replicas: int, force: bool = False) -> Delete:
    return Delete(JOB, replicas, Cause.CHIP.value, "chip 3 of node 'b'", force)


# Remember, then delete.


def test_a_repair_is_written_before_its_pods_are_deleted() -> None:
    stage, server = running(), Server()

    carry_out(stage, server, [PersistRepair(JOB, RECORD), delete(1, force=True)])

    assert server.asked == [WRITE, "DELETE pods/g-1"]
    (_what, note), (_then, options) = server.bodies
    assert note["metadata"]["name"] == NAME
    assert note["data"]["job"] == JOB
    assert note["data"]["podgroup-uid"] == f"group-g{UID}"
    assert records.read(note["data"]["record"]) == RECORD
    uid = stage.pods["default/g-1"]["metadata"]["uid"]
    assert options["preconditions"] == {"uid": uid}
    assert options["gracePeriodSeconds"] == 0


def test_a_deletion_is_told_on_the_pods_and_left_to_the_report_on_the_podgroup() -> (
    None
):
    stage, server = running(pods=3), Server()
    two = Delete(JOB, (1,), "CardUnhealthy", "faulty: pod 1 on b", force=True)
    three = Delete(JOB, (2,), "CardUnhealthy", "faulty: pod 1 on b")

    async def run() -> None:
        edge = Edge(stage, server)
        for each in (PersistRepair(JOB, RECORD), two, three):
            edge.repair_executor.carry_out(each)
        await asyncio.wait_for(edge.repair_executor.drained(), 30)
        await asyncio.wait_for(edge.binder.drained(), 30)
        await edge.status_writer.queue.flush(30)

    asyncio.run(run())

    events = [body for what, body in server.bodies if what == "POST default/events"]
    told = [(e["involvedObject"]["name"], e["reason"], e["message"]) for e in events]
    assert told == [
        ("g-1", "Faulty", "faulty: pod 1 on b"),
        ("g-2", "Faulty", "faulty: pod 1 on b"),
    ]


def test_only_pods_that_are_deleted_now_are_written_as_about_to_be() -> None:
    """Of those that were deleted before, some are back."""
    stage, server = running(), Server()
    both = msgspec.structs.replace(RECORD, deleted=(0, 1))

    carry_out(stage, server, [PersistRepair(JOB, both), delete(1)])

    text = server.records[JOB]
    uid = stage.pods["default/g-1"]["metadata"]["uid"]
    assert records.doomed_in(text) == {records.mark_of(uid)}


def test_pods_that_were_to_be_deleted_and_are_not_yet_stay_written() -> None:
    stage, server = running(), Server()
    note = PersistRepair(JOB, RECORD)

    carry_out(stage, server, [note, delete(0), note, delete(1)])

    text = server.records[JOB]
    uids = [stage.pods[f"default/g-{i}"]["metadata"]["uid"] for i in (0, 1)]
    assert records.doomed_in(text) == {records.mark_of(uid) for uid in uids}


def test_a_record_that_was_written_late_by_whoever_led_before_is_written_over() -> None:
    stage = running()
    server = Server()
    server.write_record(JOB, f"group-g{UID}", "late")

    said = carry_out(stage, server, [PersistRepair(JOB, RECORD), delete(1)])

    assert server.asked == [WRITE, AGAIN, "DELETE pods/g-1"]
    assert records.read(server.records[JOB]) == RECORD
    assert not [line for line in said if line.startswith("repair not written")]


def test_a_record_is_written_for_the_version_that_is_known() -> None:
    """So that a late write of whoever led before us fails."""
    stage, server = running(), Server()
    over = Record(since=5.0, retries_used=1, is_over=True)

    carry_out(stage, server, [PersistRepair(JOB, RECORD), PersistRepair(JOB, over)])

    assert server.asked == [WRITE, AGAIN]
    assert server.bodies[1][1]["metadata"]["resourceVersion"] == "v1"
    assert records.read(server.records[JOB]) == over


def test_what_somebody_was_about_to_delete_is_deleted_once() -> None:
    stage, server = running(), Server()
    doomed = stage.pods["default/g-1"]["metadata"]["uid"]
    stage.write_record(JOB, records.write(RECORD, doomed=[doomed]))
    stage.read_records()
    stage.cycle()
    group = stage.cache.gangs[JOB]

    async def run() -> None:
        edge = Edge(stage, server)
        for _time in range(2):
            edge.repair_executor.finish(group)
            await asyncio.wait_for(edge.repair_executor.drained(), 30)
            await asyncio.wait_for(edge.binder.drained(), 30)

    asyncio.run(run())
    assert server.asked == ["DELETE pods/g-1"]
    assert server.bodies[0][1]["preconditions"] == {"uid": doomed}


def test_what_was_to_be_deleted_on_a_lost_node_is_deleted_at_once() -> None:
    stage, server = running({"fault-scheduling": "grace"}), Server()
    uids = [stage.pods[f"default/g-{i}"]["metadata"]["uid"] for i in (0, 1)]
    stage.write_record(JOB, records.write(RECORD, doomed=uids))
    stage.read_records()
    lost = stage.pods["default/g-1"]["spec"]["nodeName"]
    sick = stage.nodes[lost]
    sick["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    stage.put_node(sick)
    stage.cycle()

    async def run() -> None:
        edge = Edge(stage, server)
        edge.repair_executor.finish(stage.cache.gangs[JOB])
        await asyncio.wait_for(edge.repair_executor.drained(), 30)
        await asyncio.wait_for(edge.binder.drained(), 30)

    asyncio.run(run())
    how = {what: body.get("gracePeriodSeconds") for what, body in server.bodies}
    assert how == {"DELETE pods/g-0": None, "DELETE pods/g-1": 0}


def test_pods_that_may_end_by_themselves_have_their_own_period() -> None:
    stage, server = running(), Server()

    carry_out(stage, server, [delete(0, 1)])

    assert server.asked == ["DELETE pods/g-0", "DELETE pods/g-1"]
    assert all("gracePeriodSeconds" not in body for _what, body in server.bodies)


@pytest.mark.parametrize("status", [0, 403, 404, 413, 422, 429, 500])
def test_while_a_repair_cannot_be_written_nothing_is_deleted(status: int) -> None:
    stage = running()
    server = Server(lambda _method, path: status if "/configmaps" in path else None)

    said = carry_out(
        stage, server, [PersistRepair(JOB, RECORD), delete(1)], ended=False
    )

    assert WRITE in server.asked
    assert {*server.asked} <= {WRITE, AGAIN}
    assert len(server.asked) > 5
    assert len([line for line in said if line.startswith("repair not written")]) == 1


def test_that_no_record_may_be_written_is_told_once() -> None:
    stage = running()
    stage.gang("other", 1)
    server = Server(lambda _method, _path: 403)

    steps = [PersistRepair(job, RECORD) for job in (JOB, "default/other")]
    said = carry_out(stage, server, steps, ended=False)

    assert len(server.asked) > 5
    assert len([line for line in said if line.startswith("repair not written")]) == 1


def test_once_it_can_be_written_they_are() -> None:
    stage = running()
    server = Server(
        lambda _method, _path: 500 if len(server.asked) < 10 else None,
    )

    carry_out(stage, server, [PersistRepair(JOB, RECORD), delete(1)])

    assert server.asked[-2:] == [WRITE, "DELETE pods/g-1"]


@pytest.mark.parametrize("returns", [False, True])
def test_where_the_podgroup_is_gone_nothing_is_deleted(*, returns: bool) -> None:
    stage = running()

    def gone(method: str, _path: str) -> int | None:
        if method == "POST":
            stage.drop_group(f"g{UID}")
            if returns:  # another one of that name
                stage.group(f"g{UID}", 2)
                plain = stage.groups[f"g{UID}"]
                plain["metadata"]["uid"] = "another"
                stage.put_group(plain)
        return None

    server = Server(gone)
    said = carry_out(stage, server, [PersistRepair(JOB, RECORD), delete(1)])

    assert server.asked == [WRITE, REMOVE]
    assert server.records == {}
    assert "not repaired its PodGroup is gone" in said


def test_where_it_is_known_to_be_gone_nobody_is_asked() -> None:
    stage, server = running(), Server()
    stage.drop_group(f"g{UID}")

    carry_out(stage, server, [PersistRepair(JOB, RECORD), delete(1)])

    assert server.asked == []


def test_a_pod_alone_is_deleted_at_once() -> None:
    stage, server = Stage("a"), Server()
    stage.pod("p", 8, labels={"fault-scheduling": "force"})
    stage.cycle()
    job = "pod default/p"

    carry_out(
        stage, server, [PersistRepair(job, RECORD), Delete(job, (0,), "x", "why")]
    )

    assert server.asked == ["DELETE pods/p"]


@pytest.mark.parametrize("status", [404, 409])
def test_a_pod_that_is_gone_is_deleted(status: int) -> None:
    stage = running()
    server = Server(lambda _method, _path: status)

    said = carry_out(stage, server, [delete(1)])

    assert server.asked == ["DELETE pods/g-1"]
    assert not any("refused" in line for line in said)


@pytest.mark.parametrize("status", [0, 429, 503])
def test_a_deletion_is_asked_for_until_the_answer_is_known(status: int) -> None:
    stage = running()
    silence = 3 * binder.TRIES
    server = Server(
        lambda _method, _path: status if len(server.asked) < silence else None
    )

    carry_out(stage, server, [delete(1)])

    assert len(server.asked) == silence


def test_a_deletion_that_is_refused_is_told_once_and_tried_again() -> None:
    stage = running()
    server = Server(lambda _m, _p: 403 if len(server.asked) < 9 else None)

    said = carry_out(stage, server, [delete(0, 1), delete(1)])

    assert [line for line in said if line.startswith("deletion refused")] == [
        "deletion refused 403 refused"
    ]
    assert len(server.bodies) == 2


def test_nobody_goes_on_deleting_a_pod_that_is_gone() -> None:
    stage = running()
    server = Server(lambda _m, _p: 403)

    async def run() -> None:
        edge = Edge(stage, server)
        edge.repair_executor.carry_out(delete(1))
        await asyncio.sleep(0.01)
        stage.drop_pod("g-1")
        await asyncio.wait_for(edge.binder.drained(), 30)

    asyncio.run(run())


def test_the_pod_meant_is_the_one_that_was_there_when_it_was_said() -> None:
    """While a repair is being written, the successor of a pod may come."""
    stage = running()
    before = stage.pods["default/g-1"]["metadata"]["uid"]

    def replaced(method: str, _path: str) -> int | None:
        if method == "POST" and len(server.asked) == 1:
            stage.drop_pod("g-1")
            stage.pod("g-1", 8, f"g{UID}")
            stage.cache.events(stage.now)
        return None

    server = Server(replaced)
    carry_out(stage, server, [PersistRepair(JOB, RECORD), delete(1)])

    assert server.bodies[-1][1]["preconditions"] == {"uid": before}


def test_a_pod_on_its_way_is_deleted_when_it_has_arrived() -> None:
    stage = running()
    server = Server(lambda method, _path: 0 if late(method) else None)
    pod = stage.cache.gangs[JOB].by_number()[1]

    def late(method: str) -> bool:
        return method == "POST" and len(server.asked) < 5

    async def run() -> None:
        edge = Edge(stage, server)
        edge.binder.bind([Bound(pod, Placement(1, "b", (0,)), {})])
        edge.repair_executor.carry_out(delete(1))
        await asyncio.wait_for(edge.repair_executor.drained(), 30)
        await asyncio.wait_for(edge.binder.drained(), 30)

    asyncio.run(run())
    assert server.asked == [*["POST g-1/binding"] * 5, "DELETE pods/g-1"]


def test_of_a_record_that_is_too_large_where_pods_were_is_left_out_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "MOST_BYTES", 150)
    stage, server = running(), Server()

    said = carry_out(stage, server, [PersistRepair(JOB, RECORD)])

    assert records.read(server.records[JOB]).placements == ()
    assert any(line.startswith("repair written in part") for line in said)


def test_what_is_forgotten_is_removed() -> None:
    stage, server = running(), Server()

    carry_out(stage, server, [PersistRepair(JOB, RECORD), PersistRepair(JOB, None)])

    assert server.asked == [WRITE, REMOVE]
    assert server.bodies[-1][1]["preconditions"] == {"resourceVersion": "v1"}
    assert server.records == {}


def test_what_was_never_written_is_not_removed() -> None:
    stage, server = running(), Server()

    carry_out(stage, server, [PersistRepair(JOB, None)])

    assert server.asked == []


def test_the_record_of_a_job_that_is_gone_is_removed() -> None:
    stage, server = running(), Server()

    async def run() -> None:
        edge = Edge(stage, server)
        edge.repair_executor.carry_out(PersistRepair(JOB, RECORD))
        await asyncio.wait_for(edge.repair_executor.drained(), 30)
        stage.drop_group(f"g{UID}")
        edge.repair_executor.remove_records()
        await asyncio.wait_for(edge.repair_executor.drained(), 30)

    asyncio.run(run())
    assert server.asked == [WRITE, REMOVE]
    assert stage.cache.checkpoints.orphaned == []


# Who begins to lead.


def begin_to_lead(stage: Stage, server: Server) -> list[str]:
    """Read all records, move what is to be moved, and remove what is of no use."""

    async def run() -> list[str]:
        edge = Edge(stage, server)
        found = await edge.store.read(lambda: False)
        if found is not None:
            stage.cache.checkpoints.put(found, moves=not edge.store.is_moved)
        stage.cycle()
        await asyncio.wait_for(edge.repair_executor.run(), 30)
        await asyncio.wait_for(edge.repair_executor.drained(), 30)
        return edge.said

    return asyncio.run(run())


def old_record(stage: Stage, text: str) -> None:
    """A record is on a PodGroup, as it was written before."""
    plain = stage.groups[f"g{UID}"]
    plain["metadata"]["annotations"] = {names.REPAIR: text}
    stage.put_group(plain)


def test_records_on_podgroups_are_moved_once() -> None:
    stage, server = running(), Server()
    doomed = stage.pods["default/g-1"]["metadata"]["uid"]
    text = records.write(RECORD, doomed=[doomed])
    old_record(stage, text)

    begin_to_lead(stage, server)

    assert server.records == {JOB: text}
    (patch,) = (body for what, body in server.bodies if "podgroups" in what)
    assert patch["metadata"]["annotations"] == {names.REPAIR: None}
    assert patch["metadata"]["uid"] == f"group-g{UID}"
    assert f"{OWN_MAPS}/{MOVED}" in server.maps
    first = server.asked.index(WRITE)
    assert server.asked[first + 1] == f"PATCH podgroups/g{UID}"


@pytest.mark.parametrize("refusal", [0, 403, 404])
def test_a_record_that_cannot_be_taken_off_a_podgroup_is_moved_all_the_same(
    refusal: int,
) -> None:
    stage = running()
    server = Server(lambda _method, path: refusal if "podgroups" in path else None)
    uid = stage.pods["default/g-1"]["metadata"]["uid"]
    old_record(stage, records.write(RECORD, doomed=[uid]))

    begin_to_lead(stage, server)

    assert [*server.records] == [JOB]
    assert f"{OWN_MAPS}/{MOVED}" in server.maps


def test_a_record_that_is_written_on_a_podgroup_later_is_not_moved() -> None:
    stage, server = running(), Server()
    begin_to_lead(stage, server)
    old_record(stage, records.write(RECORD))
    stage.restart()

    begin_to_lead(stage, server)

    assert server.records == {}
    assert stage.cache.gangs[JOB].repair.record is None
    assert not [what for what in server.asked if "podgroups" in what]


def test_a_record_that_was_written_meanwhile_is_not_replaced_by_an_old_one() -> None:
    stage, server = running(), Server()
    old_record(stage, records.write(Record(since=1.0, deleted=(0,))))

    async def run() -> None:
        edge = Edge(stage, server)
        found = await edge.store.read(lambda: False)
        stage.cache.checkpoints.put(found or (), moves=True)
        edge.repair_executor.carry_out(PersistRepair(JOB, RECORD))
        await asyncio.wait_for(edge.repair_executor.run(), 30)
        await asyncio.wait_for(edge.repair_executor.drained(), 30)

    asyncio.run(run())
    assert records.read(server.records[JOB]) == RECORD


def test_where_records_cannot_be_read_nothing_is_moved_or_removed() -> None:
    stage, server = running(), Server(lambda _method, _path: 403)
    old_record(stage, records.write(RECORD))

    said = begin_to_lead(stage, server)

    assert server.asked == ["GET ringleaf-system/configmaps"]
    assert said == ["repairs not read status 403"]


@pytest.mark.parametrize("status", [0, 429, 500])
def test_records_are_asked_for_until_there_is_an_answer(status: int) -> None:
    stage = running()
    server = Server(lambda _m, _p: status if len(server.asked) < 4 else None)
    server.write_record(JOB, f"group-g{UID}", records.write(RECORD))

    begin_to_lead(stage, server)

    assert [e.job for e in stage.heard if isinstance(e, RepairKnown)] == [JOB]


def test_records_are_not_asked_for_by_one_that_ends() -> None:
    stage, server = running(), Server(lambda _m, _p: 500)

    async def run() -> list[Stored] | None:
        return await Edge(stage, server).store.read(lambda: True)

    assert asyncio.run(run()) is None
    assert len(server.asked) == 1


def test_records_of_jobs_that_are_not_there_are_removed_later() -> None:
    """Of a job that is gone, of another of its name, and one that came too late."""
    stage, server = running(), Server()
    text = records.write(RECORD)
    server.write_record("default/gone", "1", text)
    server.write_record(JOB, "another", text)
    stage.gang("late", 1)
    stage.gang("kept", 1)
    stage.gang("foreign", 1)
    server.write_record("default/kept", "group-kept", text)
    foreign = records.write(RECORD, by="another-scheduler")
    server.write_record("default/foreign", "group-foreign", foreign)

    def late(method: str, _path: str) -> int | None:
        if method == "POST":
            server.write_record("default/late", "group-late", text)
        return None

    server.refuse = late
    begin_to_lead(stage, server)

    assert {*server.records} == {"default/kept", "default/foreign"}


def test_a_screen_follows_the_records_as_they_come_and_go() -> None:
    told: list[list[str]] = []
    reflector = watch_records(
        cast(Api, Server()), OWN, lambda found: told.append([e.job for e in found])
    )
    server = Server()
    for job in ("default/a", "default/b"):
        server.write_record(job, "1", "text")
    odd: Plain = {"metadata": {"name": MOVED, "namespace": OWN}}
    plain = [
        each | {"metadata": each["metadata"] | {"namespace": OWN}}
        for each in server.maps.values()
    ]
    for number, each in enumerate([*plain, odd]):
        each["metadata"]["uid"] = str(number)
    events = [("ADDED", each) for each in [*plain, odd]]
    events.append(("DELETED", plain[0]))
    for version, (what, each) in enumerate(events, 1):
        item = each | {"metadata": each["metadata"] | {"resourceVersion": str(version)}}
        line = json.dumps({"type": what, "object": item}).encode() + b"\n"
        reflector._pass_on_block(line)  # noqa: SLF001 - as its watch does

    assert told == [
        ["default/a"],
        ["default/a", "default/b"],
        ["default/a", "default/b"],
        ["default/b"],
    ]


def test_a_configmap_that_is_no_record_of_its_name_is_passed_over() -> None:
    stage, server = running(), Server()
    server.write_record(JOB, f"group-g{UID}", records.write(RECORD))
    (plain,) = server.maps.values()
    plain["metadata"]["name"] = "ringleaf-repair-of-somebody"

    begin_to_lead(stage, server)

    assert stage.cache.gangs[JOB].repair.record is None


def test_whoever_deletes_pods_is_pointed_at_those_that_are_faulty() -> None:
    stage, server = running(), Server()

    carry_out(stage, server, [ReportFaultyPods(JOB, (PodFault(1, Cause.CHIP, "b"),))])

    (what, body), *others = server.bodies
    assert (what, others) == ("PATCH g-1/status", [])
    assert body["metadata"]["annotations"] == {
        "huawei.com/pod-status": "Unhealthy-CardUnhealthy"
    }
    assert body["metadata"]["uid"] == stage.pods["default/g-1"]["metadata"]["uid"]


def test_a_pod_that_says_so_already_is_not_pointed_at_again() -> None:
    stage, server = running(), Server()
    plain = stage.pods["default/g-1"]
    plain["metadata"]["annotations"][names.POD_STATUS] = "Unhealthy-CardUnhealthy"
    stage.put_pod(plain)

    pod_faults = tuple(PodFault(n, Cause.CHIP, "b") for n in (0, 1))
    carry_out(stage, server, [ReportFaultyPods(JOB, pod_faults)])

    assert server.asked == ["PATCH g-0/status"]


def test_nobody_is_pointed_at_a_pod_that_is_well_again() -> None:
    stage, server = running(), Server()
    for name, said in (("g-0", "Unhealthy-CardUnhealthy"), ("g-1", "Healthy")):
        plain = stage.pods[f"default/{name}"]
        plain["metadata"]["annotations"][names.POD_STATUS] = said
        stage.put_pod(plain)

    carry_out(stage, server, [ReportFaultyPods(JOB, ())])

    ((what, body),) = server.bodies
    assert what == "PATCH g-0/status"
    assert body["metadata"]["annotations"] == {names.POD_STATUS: None}


# What processes are told.


RESET = f"/api/v1/namespaces/default/configmaps/{reset_config.PREFIX}g"
RANK = {"RankId": 3, "LogicId": 3, "Status": "fault", "Policy": "reset"}


def put_reset_config(server: Server, text: str | None = None) -> None:
    before = {"RankList": [RANK], "UpdateTime": 1, "RetryTime": 2}
    data = {"reset.json": text or json.dumps(before), "other": "stays"}
    server.maps[RESET] = {"metadata": {"resourceVersion": "7"}, "data": data}


def told(server: Server) -> Reset:
    """What processes are told; it fits its check code."""
    data = server.maps[RESET]["data"]
    assert data["other"] == "stays"
    found = msgspec.json.decode(data["reset.json"], type=Reset)
    assert data["checkCode"] == check_code(found)
    return found


@pytest.mark.parametrize(("exits", "number"), [(True, 1), (False, 0)])
def test_processes_are_asked_to_exit_or_no_longer(
    exits: bool,  # noqa: FBT001 - a table
    number: int,
) -> None:
    stage, server = running(), Server()
    put_reset_config(server)

    carry_out(stage, server, [AskToExit(JOB, exits)])

    found = told(server)
    assert (found.graceful_exit, found.retry_time) == (number, 2)
    assert found.update_time == int(stage.now)
    assert [rank.rank for rank in found.ranks or ()] == [3]
    assert "restartType" not in server.maps[RESET]["data"]


@pytest.mark.parametrize(
    ("scope", "times"), [(RestartScope.POD, 3), (RestartScope.JOB, 0)]
)
def test_processes_are_told_that_all_pods_are_placed_again(
    scope: RestartScope, times: int
) -> None:
    stage, server = running(), Server()
    put_reset_config(server)

    carry_out(
        stage, server, [Repaired(JOB, msgspec.structs.replace(RECORD, scope=scope))]
    )

    found = told(server)
    assert (found.ranks, found.retry_time) == ([], times)
    assert server.maps[RESET]["data"]["restartType"] == "podReschedule"
    assert server.maps[RESET]["metadata"]["labels"] == {"reset": "true"}


@pytest.mark.parametrize(
    "labels",
    [{"fault-scheduling": "force"}, PODS_ONLY | {"process-recover-enable": "on"}],
)
def test_processes_of_other_jobs_are_told_nothing(labels: dict[str, str]) -> None:
    stage, server = running(labels), Server()
    put_reset_config(server)

    carry_out(stage, server, [Repaired(JOB, RECORD)])

    assert server.asked == []


def test_where_nobody_reads_nothing_is_made() -> None:
    stage, server = running(), Server()

    said = carry_out(stage, server, [AskToExit(JOB, exits=True)])

    assert server.maps == {}
    assert not any("not notified" in line for line in said)


def test_the_name_of_an_owner_is_a_name_whatever_it_is() -> None:
    """Anybody who makes a PodGroup says who owns it."""
    stage, paths = running(), list[str]()

    def asked(_method: str, path: str) -> int:
        paths.append(path)
        return 404

    plain = stage.groups[f"g{UID}"]
    name = "../g?x é HTTP/1.1\r\nHost: h\r\n\r\nDELETE /"
    plain["metadata"]["ownerReferences"] = [{"name": name, "uid": "u"}]
    stage.put_group(plain)
    carry_out(stage, Server(asked), [AskToExit(JOB, exits=True)])

    (path,) = paths
    assert path.isascii()
    assert path.startswith("/api/v1/namespaces/default/configmaps/reset-config-..%2Fg")
    assert not set(path) & set(" ?\r\n")


def test_what_another_wrote_in_between_is_not_lost() -> None:
    stage, server = running(), Server()
    put_reset_config(server)

    def meddle(method: str, _path: str) -> int | None:
        if method == "PATCH" and len(server.asked) == 2:
            later = {"RetryTime": 8}
            server.maps[RESET]["data"]["reset.json"] = json.dumps(later)
            server.maps[RESET]["metadata"]["resourceVersion"] = "8"
        return None

    server.refuse = meddle
    carry_out(stage, server, [Repaired(JOB, RECORD)])

    assert told(server).retry_time == 9


@pytest.mark.parametrize(("text", "status"), [("?", None), (None, 403)])
def test_what_cannot_be_told_is_a_line_of_the_log(
    text: str | None, status: int | None
) -> None:
    stage, server = running(), Server(lambda _m, _p: status)
    put_reset_config(server, text)

    said = carry_out(stage, server, [AskToExit(JOB, exits=True)])

    assert [line for line in said if line.startswith("processes not notified")]


def test_a_right_that_is_missing_in_a_namespace_is_told_once() -> None:
    stage, server = running(), Server(lambda _m, _p: 403)

    said = carry_out(stage, server, [AskToExit(JOB, exits=e) for e in (True, False)])

    lines = [line for line in said if line.startswith("processes not notified")]
    assert lines == ["processes not notified 403 refused"]
    assert len(server.asked) == 2


# What is kept of faults.


FAULTS = "/api/v1/namespaces/volcano-system/configmaps/vcjob-fault-npu-cm"
REASONS = "/api/v1/namespaces/mindx-dl/configmaps/job-reschedule-reason"


def keep(
    stage: Stage,
    server: Server,
    doing: Callable[[Edge], None] = lambda _edge: None,
) -> list[str]:
    """Keep the book for a while; what was said."""

    async def run() -> list[str]:
        edge = Edge(stage, server)
        await edge.book.read()
        stage.cycle()
        doing(edge)
        task = asyncio.create_task(edge.book.run())
        await a_while()
        task.cancel()
        return edge.said

    return asyncio.run(run())


def sick(stage: Stage) -> None:
    """A chip of node b is unhealthy."""
    fault = {"npu_name": "Ascend910-3", "fault_type": "CardUnhealthy"}
    listed = {
        f"{NPU}-Unhealthy": "Ascend910-3",
        f"{NPU}-NetworkUnhealthy": "Ascend910-5",
        f"{NPU}-Fault": json.dumps([fault]),
    }
    inner = {"DeviceList": listed, "UpdateTime": 1}
    cfg = {"DeviceInfo": inner, "CheckCode": check_code(inner)}
    stage.config_map("mindx-dl-deviceinfo-b", {"DeviceInfoCfg": json.dumps(cfg)})


def test_without_faults_nothing_is_written() -> None:
    stage, server = running(), Server()
    keep(stage, server)

    assert {each.partition(" ")[0] for each in server.asked} == {"GET"}


def test_nodes_with_faults_are_kept_as_the_vendor_has_them() -> None:
    stage, server = running({"x": "y"}), Server()
    sick(stage)
    keep(stage, server)

    (entry,) = json.loads(server.maps[FAULTS]["data"]["fault-node"])
    assert entry == {
        "FaultDeviceList": [{"npu_name": "Ascend910-3", "fault_type": "CardUnhealthy"}],
        "NodeName": "b",
        "UnhealthyNPU": ["Ascend910-3"],
        "NetworkUnhealthyNPU": ["Ascend910-5"],
        "NodeHealthState": "CardUnhealthy",
        "UpdateTime": 1000,
    }


def test_old_keys_of_others_stay_and_what_is_over_is_taken_back() -> None:
    stage, server = running({"x": "y"}), Server()
    data = {"fault-node": "[1]", "checkCode": "abc", "remain-retry-times": "?"}
    server.maps[FAULTS] = {"metadata": {"resourceVersion": "1"}, "data": data}
    keep(stage, server)

    assert server.maps[FAULTS]["data"] == {
        "fault-node": "",
        "checkCode": "abc",
        "remain-retry-times": "",
    }


def test_what_has_not_changed_is_not_written_again() -> None:
    stage, server = running(), Server()
    sick(stage)

    keep(stage, server, lambda edge: edge.book.heed([], [PersistRepair(JOB, None)]))
    keep(stage, server)

    assert [each for each in server.asked if not each.startswith("GET")] == [
        "PATCH configmaps/vcjob-fault-npu-cm",
        "POST volcano-system/configmaps",
    ]


def test_d24_how_often_pods_may_still_fail_is_kept_and_read_back() -> None:
    labels = {"fault-scheduling": "force", "fault-retry-times": "5"}
    stage, server = running(labels), Server()
    record = Record(since=1.0, retries_used=2, is_over=True)

    def remember(edge: Edge) -> None:
        stage.cache.checkpoints.set(JOB, record)
        edge.book.heed([], [PersistRepair(JOB, record)])

    keep(stage, server, remember)
    kept = json.loads(server.maps[FAULTS]["data"]["remain-retry-times"])
    assert kept == {JOB: {"UUID": UID[1:], "Times": 3}}

    stage.restart()
    keep(stage, server)
    found = stage.cache.gangs[JOB].repair.record
    assert found is not None
    assert found.retries_used == 2
    assert found.is_over


@pytest.mark.parametrize("uid", ["other", ""])
def test_the_budget_of_another_job_of_that_name_does_not_count(uid: str) -> None:
    labels = {"fault-scheduling": "force", "fault-retry-times": "5"}
    stage, server = running(labels), Server()
    text = json.dumps({JOB: {"UUID": uid, "Times": 1}})
    data = {"remain-retry-times": text}
    server.maps[FAULTS] = {"metadata": {"resourceVersion": "1"}, "data": data}

    stage.restart()
    keep(stage, server)

    assert stage.cache.gangs[JOB].repair.record is None


def test_d24_the_lives_of_faults_are_kept_and_read_back() -> None:
    stage, server = running(), Server()
    fault = Fault("b", Cause.CHIP, "chip 3", 5.0, 6.0, None, ("default/g",))

    def seen(edge: Edge) -> None:
        edge.faults[fault.key] = fault
        edge.book.heed([], [PersistRepair(JOB, None)])

    keep(stage, server, seen)
    stage.restart()
    keep(stage, server)

    known = stage.cache.everything(stage.now)
    assert [e.faults for e in known if hasattr(e, "faults")] == [(fault,)]


def test_who_waits_for_the_brake_is_written_down_until_nobody_does() -> None:
    stage, server = running(), Server()

    def waits(edge: Edge) -> None:
        edge.braked += ["default/z", JOB]
        edge.book.heed([], [Report(JOB, Verdict.RATE_LIMITED, "it waits")])

    keep(stage, server, waits)
    assert server.maps[FAULTS]["data"]["ringleaf-braked"] == f'["{JOB}","default/z"]'
    keep(stage, server)
    assert server.maps[FAULTS]["data"]["ringleaf-braked"] == ""


def test_what_was_deleted_is_written_down_for_the_brake_of_the_next() -> None:
    stage, server = running(), Server()
    deletion = Deletion(5.25, JOB, 2)

    def deletes(edge: Edge) -> None:
        edge.deletions.append(deletion)
        edge.book.heed([], [Delete(JOB, (0, 1), "", "", force=False)])

    keep(stage, server, deletes)
    stage.restart()
    keep(stage, server)

    known = stage.cache.everything(stage.now)
    assert [e for e in known if isinstance(e, DeletionsKnown)] == [
        DeletionsKnown((deletion,))
    ]


def test_who_looks_reads_what_was_written_once_no_fault_is_known_any_more() -> None:
    stage, server = running(), Server()
    fault = Fault("b", Cause.CHIP, "chip 3", 5.0)

    def seen(edge: Edge) -> None:
        edge.faults[fault.key] = fault
        edge.book.heed([], [PersistRepair(JOB, None)])

    def waits(edge: Edge) -> None:
        edge.braked.append(JOB)
        edge.deletions.append(Deletion(5.25, JOB, 2))
        edge.book.heed([], [Report(JOB, Verdict.RATE_LIMITED, "it waits")])

    keep(stage, server, seen)
    keep(stage, server, waits)

    data = server.maps[FAULTS]["data"]
    assert data["ringleaf-faults"] == ""
    assert lives_in(data) == FaultHistory(
        is_there=True, braked=(JOB,), deletions=(Deletion(5.25, JOB, 2),)
    )


def test_deletions_that_cannot_be_are_not_counted() -> None:
    stage, server = running(), Server()
    written = [Deletion(5.0, JOB, -9), Deletion(-1e300, JOB, 1), Deletion(6.0, JOB, 1)]
    data = {"ringleaf-deleted": msgspec.json.encode(written).decode()}
    server.maps[FAULTS] = {"metadata": {"resourceVersion": "1"}, "data": data}
    keep(stage, server)

    known = stage.cache.everything(stage.now)
    told = [e.deletions for e in known if isinstance(e, DeletionsKnown)]
    assert told == [(Deletion(6.0, JOB, 1),)]


def test_why_a_job_was_rescheduled_is_kept_for_the_last_ten_times() -> None:
    stage, server = running(), Server()

    def twelve(edge: Edge) -> None:
        group = stage.cache.gangs[JOB]
        for i in range(12):
            record = msgspec.structs.replace(RECORD, since=float(i))
            group.repair = RepairState(record)
            edge.book.rescheduled(group, Cause.CHIP.value)
            edge.book.rescheduled(group, Cause.CHIP.value)
            edge.book.rescheduled(group, "NeverRan")

    keep(stage, server, twelve)
    kept = json.loads(server.maps[REASONS]["data"]["recent-reschedule-records"])

    assert kept[JOB]["JobID"] == JOB
    assert kept[JOB]["TotalRescheduleTimes"] == 12
    assert len(kept[JOB]["RescheduleRecords"]) == 10
    assert kept[JOB]["RescheduleRecords"][0] == {
        "LogFileFormatTime": "I0101 00:16:40",
        "RescheduleTimeStamp": 1000,
        "ReasonOfTask": [
            {
                "RescheduleReason": "CardUnhealthy",
                "PodName": "g-1",
                "NodeName": "b",
                "NodeRankIndex": "1",
            }
        ],
    }


def test_after_a_restart_reasons_are_added_to_those_before() -> None:
    stage, server = running(), Server()

    def once(edge: Edge) -> None:
        group = stage.cache.gangs[JOB]
        group.repair = RepairState(RECORD)
        edge.book.rescheduled(group, Cause.CHIP.value)

    keep(stage, server, once)
    keep(stage, server, once)

    kept = json.loads(server.maps[REASONS]["data"]["recent-reschedule-records"])
    assert kept[JOB]["TotalRescheduleTimes"] == 2


def reasons(server: Server) -> Plain:
    text = server.maps[REASONS]["data"]["recent-reschedule-records"]
    return cast(Plain, json.loads(text))


def reschedule(stage: Stage) -> Callable[[Edge], None]:
    """A job is rescheduled."""

    def once(edge: Edge) -> None:
        group = stage.cache.gangs[JOB]
        record = msgspec.structs.replace(RECORD, since=stage.now)
        group.repair = RepairState(record)
        edge.book.rescheduled(group, Cause.CHIP.value)

    return once


def test_who_stood_by_knows_the_reasons_that_the_leader_wrote_meanwhile() -> None:
    stage, server = running(), Server()
    keep(stage, server, reschedule(stage))

    async def stand_by() -> None:
        edge = Edge(stage, server)
        await edge.book.read()
        kept = reasons(server)
        kept[JOB]["TotalRescheduleTimes"] = 7
        text = json.dumps(kept)
        server.maps[REASONS]["data"]["recent-reschedule-records"] = text
        await edge.book.read()
        reschedule(stage)(edge)
        task = asyncio.create_task(edge.book.run())
        await a_while()
        task.cancel()

    asyncio.run(stand_by())
    assert reasons(server)[JOB]["TotalRescheduleTimes"] == 8


def test_what_was_not_read_in_time_is_read_before_it_is_written_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fault_store, "READ_S", 0.01)
    stage, server = running(), Server()
    keep(stage, server, reschedule(stage))
    fault = Fault("b", Cause.CHIP, "chip 3", 5.0, 6.0, None, ("default/g",))
    text = msgspec.json.encode([fault]).decode()
    data = {"ringleaf-faults": text}
    server.maps[FAULTS] = {"metadata": {"resourceVersion": "1"}, "data": data}

    def back(edge: Edge) -> None:
        reschedule(stage)(edge)
        server.refuse = lambda _method, _path: None

    server.refuse = lambda _method, _path: 500
    keep(stage, server, back)

    assert reasons(server)[JOB]["TotalRescheduleTimes"] == 2
    known = stage.cache.everything(stage.now)
    assert [e.faults for e in known if hasattr(e, "faults")] == [(fault,)]


def test_one_book_does_not_wait_for_the_other() -> None:
    stage = running()
    silent = asyncio.Event()

    class Silent(Server):
        """Never answers to what is written into one of the books."""

        async def call(
            self, method: str, path: str, body: bytes | None = None, **more: object
        ) -> Answer:
            if method != "GET" and path == REASONS:
                silent.set()
                await asyncio.Event().wait()
            return await super().call(method, path, body, **more)

    server = Silent()

    async def run() -> None:
        edge = Edge(stage, server)
        await edge.book.read()
        reschedule(stage)(edge)
        task = asyncio.create_task(edge.book.run())
        await asyncio.wait_for(silent.wait(), 30)
        sick(stage)
        stage.cycle()
        edge.book.heed([], [PersistRepair(JOB, None)])
        await until(lambda: FAULTS in server.maps)
        task.cancel()

    asyncio.run(run())
    assert json.loads(server.maps[FAULTS]["data"]["fault-node"])


def test_a_leader_that_ends_writes_what_it_has_not_written_yet() -> None:
    stage, server = running(), Server()

    async def run() -> None:
        edge = Edge(stage, server)
        await edge.book.read()
        await edge.book.flush()
        assert FAULTS not in server.maps, "one that does not lead writes nothing"
        sick(stage)
        stage.cycle()
        task = asyncio.create_task(edge.book.run())
        await until(lambda: FAULTS in server.maps)
        fault = Fault("b", Cause.CHIP, "chip 3", 5.0, 6.0, None, ("default/g",))
        edge.faults[fault.key] = fault
        await edge.book.flush()
        task.cancel()

    asyncio.run(run())
    assert '"acted":6.0' in server.maps[FAULTS]["data"]["ringleaf-faults"]


def test_a_book_that_somebody_deletes_is_made_again_as_it_was() -> None:
    stage, server = running(), Server()
    fault = Fault("b", Cause.CHIP, "chip 3", 5.0, 6.0, None, ("default/g",))

    async def run() -> None:
        edge = Edge(stage, server)
        edge.faults[fault.key] = fault
        task = asyncio.create_task(edge.book.run())
        await until(lambda: FAULTS in server.maps)
        del server.maps[FAULTS]
        sick(stage)
        stage.cycle()
        edge.book.heed([], [PersistRepair(JOB, None)])
        await until(lambda: FAULTS in server.maps)
        task.cancel()

    asyncio.run(run())
    assert {*server.maps[FAULTS]["data"]} == {"fault-node", "ringleaf-faults"}


def test_of_more_than_a_configmap_takes_what_lasts_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fault_texts, "MOST_BYTES", 3000)
    stage, server = running(), Server()
    sick(stage)
    over = [Fault(f"n{i}", Cause.CHIP, "chip 3", 5.0, None, 9.0) for i in range(99)]
    lasts = Fault("b", Cause.CHIP, "chip 3", 5.0)

    def seen(edge: Edge) -> None:
        edge.faults |= {each.key: each for each in (lasts, *over)}

    keep(stage, server, seen)

    data = server.maps[FAULTS]["data"]
    assert sum(map(len, data.values())) <= 3000
    lives = msgspec.json.decode(data["ringleaf-faults"], type=list[Fault])
    assert lasts in lives
    assert len(lives) > 5
    (entry,) = json.loads(data["fault-node"])
    assert entry["UnhealthyNPU"] == ["Ascend910-3"]
    assert entry["FaultDeviceList"] == []


def test_reasons_that_are_too_many_are_trimmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fault_texts, "MOST_BYTES", 2000)
    stage, server = running(), Server()

    def many(edge: Edge) -> None:
        group = stage.cache.gangs[JOB]
        for i in range(12):
            record = msgspec.structs.replace(RECORD, since=float(i))
            group.repair = RepairState(record)
            edge.book.rescheduled(group, Cause.CHIP.value)

    keep(stage, server, many)

    text = server.maps[REASONS]["data"]["recent-reschedule-records"]
    assert 500 < len(text) <= 2000
    assert json.loads(text)[JOB]["TotalRescheduleTimes"] == 12


def test_a_namespace_that_is_missing_is_one_line_and_tried_again() -> None:
    stage, server = running(), Server()
    server.namespaces.remove("volcano-system")
    sick(stage)

    said = keep(stage, server)

    assert len([line for line in said if line.startswith("faults not written")]) == 1
    tries = [each for each in server.asked if each == "POST volcano-system/configmaps"]
    assert len(tries) > 2
    server.namespaces.add("volcano-system")
    keep(stage, server)
    assert FAULTS in server.maps


def test_what_cannot_be_read_is_as_if_it_were_not_there() -> None:
    stage, server = running(), Server()
    data = {"ringleaf-faults": "?", "remain-retry-times": "[3]"}
    for path in (FAULTS, REASONS):
        server.maps[path] = {"metadata": {}, "data": dict(data)}

    keep(stage, server)

    assert server.maps[FAULTS]["data"]["ringleaf-faults"] == ""


def test_a_config_map_is_decoded_with_nothing_in_it() -> None:
    assert msgspec.json.decode(b"{}", type=ConfigMap).data is None
