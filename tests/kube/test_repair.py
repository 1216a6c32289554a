"""Faults from the report to the successor, with objects, a cache and a real engine."""

import json
import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import PodsEnding, RepairKnown
from ringleaf.framework.instruction import Delete, PersistRepair, Report
from ringleaf.kube import names, records
from ringleaf.kube.handover import RetriesLeft
from ringleaf.kube.job_reader import NODE_HEARD_S
from ringleaf.kube.recovery import MAX_RETRIES
from ringleaf.kube.repair_checkpoints import MOST_DELETED
from ringleaf.kube.reports import check_code
from ringleaf.kube.watch import Gone
from ringleaf.model.fault import Cause, PodFault, Record, RestartScope
from ringleaf.model.placement import Placement
from ringleaf.model.settings import RepairSettings
from tests.kube.stage import NPU, Stage, node
from tests.kube.test_unstarted import Hands

PODS_ONLY = {"fault-scheduling": "force", "pod-rescheduling": "on"}
LOOSE = replace(
    DEFAULT,
    settings=replace(DEFAULT.settings, repairs=RepairSettings(brake_percent=100)),
)


def report(stage: Stage, name: str, unhealthy: str = "", code: str = "") -> None:
    """A device plugin reports on its node, with a wrong check code if one is given."""
    listed = {f"{NPU}-Unhealthy": unhealthy}
    inner = {"DeviceList": listed, "UpdateTime": 1}
    cfg = {"DeviceInfo": inner, "CheckCode": code or check_code(inner)}
    stage.config_map(f"mindx-dl-deviceinfo-{name}", {"DeviceInfoCfg": json.dumps(cfg)})


def running(labels: dict[str, str], nodes: str = "a b c d") -> Stage:
    """A gang of three pods that run, and a node that is free."""
    stage = Stage(nodes, conf=LOOSE)
    stage.gang("g", 3, labels=labels)
    stage.cycle()
    assert len(stage.bound) == 3
    phase(stage, "Running")
    return stage


def phase(stage: Stage, word: str) -> None:
    plain = stage.groups["g"]
    plain["status"]["phase"] = word
    stage.put_group(plain)


def place(stage: Stage, name: str) -> str:
    return stage.bound[name]


def deleted(stage: Stage) -> list[str]:
    """The pods that are to be deleted now."""
    group = stage.cache.gangs["default/g"].by_number()
    said = [each for each in stage.said if isinstance(each, Delete)]
    return [group[n].name for each in said for n in each.replicas]


def obey(stage: Stage) -> None:
    """Pods that are to be deleted are gone, and others of their names come."""
    gone = deleted(stage)
    for name in gone:
        stage.drop_pod(name)
    stage.cycle()
    for name in gone:
        stage.pod(name, 8, "g")


def restarts(stage: Stage) -> None:
    """Another scheduler takes over."""
    stage.restart()


def known(stage: Stage, text: str) -> None:
    """Whoever scheduled before has written a record of the repair of a job."""
    stage.write_record("default/g", text)
    stage.read_records()


def goes_on(_stage: Stage) -> None:
    """The same scheduler goes on."""


def stands_by(stage: Stage) -> None:
    """It loses the lead, and leads again."""
    stage.step_down()
    stage.lead()


LIVES = pytest.mark.parametrize("between", [goes_on, restarts, stands_by])


@LIVES
def test_only_the_pod_of_a_faulty_chip_moves(
    between: Callable[[Stage], None],
) -> None:
    stage = running(PODS_ONLY)
    before = stage.bound
    sick = before["g-1"].split()[0]
    report(stage, sick, "Ascend910-3")

    assert "delete at once default/g: 1" in stage.cycle()
    between(stage)
    stage.cycle()
    stage.drop_pod("g-1")
    between(stage)
    stage.cycle()
    stage.pod("g-1", 8, "g")
    between(stage)
    stage.cycle()

    after = stage.bound
    assert (after["g-0"], after["g-2"]) == (before["g-0"], before["g-2"])
    assert after["g-1"].split()[0] not in {
        place.split()[0] for place in before.values()
    }


@LIVES
def test_d17_pods_that_were_healthy_return_to_their_nodes_and_chips(
    between: Callable[[Stage], None],
) -> None:
    stage = running({"fault-scheduling": "force"}, "a b c d e")
    before = stage.bound
    sick = before["g-1"].split()[0]
    report(stage, sick, "Ascend910-3")

    stage.cycle()
    assert deleted(stage) == ["g-0", "g-1", "g-2"]
    between(stage)
    stage.pod("thief", 8)
    stage.cycle()
    for name in before:
        stage.drop_pod(name)
        between(stage)
        stage.cycle()
    for name in before:
        stage.pod(name, 8, "g")
    between(stage)
    stage.cycle()
    stage.cycle()

    after = stage.bound
    assert (after["g-0"], after["g-2"]) == (before["g-0"], before["g-2"])


def test_what_is_remembered_is_written_before_anything_is_deleted() -> None:
    stage = running(PODS_ONLY)
    before = stage.bound
    report(stage, before["g-1"].split()[0], "Ascend910-3")
    stage.cycle()

    kinds = [type(e) for e in stage.said if isinstance(e, PersistRepair | Delete)]
    assert kinds == [PersistRepair, Delete]
    kept = records.read(stage.records["default/g"].text)
    assert kept.deleted == (1,)
    assert len(kept.placements) == 3


def test_one_event_on_the_podgroup_has_the_pod_the_node_and_the_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = running(PODS_ONLY)
    sick = place(stage, "g-1").split()[0]
    report(stage, sick, "Ascend910-3")
    stage.cycle()
    hands = Hands(stage, monkeypatch)

    hands.carry_out(Report)

    assert hands.told == [("default/g", "Faulty")]
    why = f"faulty: pod 1 on {sick} (CardUnhealthy); 1 of 3 pods is deleted"
    (told,) = hands.messages
    assert told == f"job 'default/g' is being repaired: {why}; pod 1 is 'g-1'"


def test_what_we_wrote_ourselves_is_no_news_but_what_others_wrote_is() -> None:
    stage = running(PODS_ONLY)
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
    stage.cycle()
    assert not [e for e in stage.cache.events(0.0) if isinstance(e, RepairKnown)]

    stage.restart()
    events = stage.cache.events(stage.now)
    (told,) = (e for e in events if isinstance(e, RepairKnown))
    assert told.record.deleted == (1,)
    assert not [e for e in stage.cache.events(0.0) if isinstance(e, RepairKnown)]
    again = stage.cache.everything(stage.now)
    assert [e for e in again if isinstance(e, RepairKnown)] == [told]


def test_a_repair_is_known_of_a_podgroup_without_pods() -> None:
    stage = Stage("a")
    record = Record(since=5.0, deleted=(0,), deleted_at=6.0)
    stage.group("g", 1, phase="Running")
    known(stage, records.write(record))

    events = stage.cache.events(9.0)

    assert [e for e in events if isinstance(e, RepairKnown)] == [
        RepairKnown("default/g", record)
    ]
    stage.records.clear()
    stage.read_records()
    (over,) = (e for e in stage.cache.events(0.0) if isinstance(e, RepairKnown))
    assert over.record.is_over


def test_a_record_that_cannot_be_read_is_told_and_means_nothing() -> None:
    stage = Stage("a")
    stage.group("g", 1, phase="Running")
    known(stage, "{}")

    events = stage.cache.events(0.0)

    assert not [e for e in events if isinstance(e, RepairKnown)]
    (problem,) = stage.cache.problems.unreported
    assert (problem.kind, problem.name) == ("PodGroup", "g")
    assert "the record of its repair cannot be read" in problem.message


def test_d23_a_damaged_report_deletes_nothing() -> None:
    stage = running(PODS_ONLY)
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3", code="0" * 64)

    assert stage.cycle() == []
    assert not [e for e in stage.said if isinstance(e, Delete | PersistRepair)]


def test_a_job_that_wants_nothing_done_stays() -> None:
    stage = running({})
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
    stage.cycle()

    assert deleted(stage) == []


@LIVES
def test_pods_that_fail_are_tried_again_as_often_as_they_may_be(
    between: Callable[[Stage], None],
) -> None:
    stage = running(PODS_ONLY | {"fault-retry-times": "2"})
    tries = 0
    for _turn in range(4):
        stage.ends("g-1", "Failed")
        stage.cycle()
        if not deleted(stage):
            break
        tries += 1
        assert deleted(stage) == ["g-1"]
        stage.drop_pod("g-1")
        between(stage)
        stage.cycle()
        stage.pod("g-1", 8, "g")
        between(stage)
        stage.cycle()
        assert "g-1" in stage.bound
        between(stage)
        stage.cycle()

    assert tries == 2


def test_a_pod_of_a_lost_node_is_deleted_at_once_and_placed_elsewhere() -> None:
    stage = running({"fault-scheduling": "grace", "pod-rescheduling": "on"})
    lost = place(stage, "g-2").split()[0]
    plain = stage.nodes[lost]
    plain["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    stage.put_node(plain)

    assert "delete at once default/g: 2" in stage.cycle()
    obey(stage)
    stage.cycle()
    assert place(stage, "g-2").split()[0] != lost


def test_what_was_deleted_in_part_is_finished_by_the_next_scheduler() -> None:
    stage = running({"fault-scheduling": "force"}, "a b c d e")
    before = stage.bound
    sick = before["g-1"].split()[0]
    report(stage, sick, "Ascend910-3")
    stage.cycle()
    stage.drop_pod("g-1")
    stage.restart()
    stage.cycle()

    group = stage.cache.gangs["default/g"]
    doomed = [pod for pod in group.pods.values() if group.was_deleting(pod)]
    assert sorted(pod.name for pod in doomed) == ["g-0", "g-2"]
    ending = stage.engine.view.job_states["default/g"].terminating
    assert ending == {pod.number for pod in doomed}

    for name in ("g-0", "g-2"):
        stage.drop_pod(name)
    stage.cycle()
    for name in ("g-0", "g-1", "g-2"):
        stage.pod(name, 8, "g")
    stage.cycle()

    assert not [pod for pod in group.pods.values() if group.was_deleting(pod)]
    after = stage.bound
    assert (after["g-0"], after["g-2"]) == (before["g-0"], before["g-2"])
    assert after["g-1"].split()[0] != sick


def test_successors_that_wait_or_run_are_not_doomed() -> None:
    stage = running(PODS_ONLY, "a b c d e f")
    report(stage, stage.bound["g-1"].split()[0], "Ascend910-3")
    stage.cycle()
    stage.drop_pod("g-1")
    stage.cycle()
    stage.pod("g-1", 8, "g")
    stage.cycle()
    report(stage, stage.bound["g-2"].split()[0], "Ascend910-3")
    stage.cycle()
    assert deleted(stage) == ["g-2"]
    stage.restart()
    stage.cycle()

    group = stage.cache.gangs["default/g"]
    doomed = [pod.name for pod in group.pods.values() if group.was_deleting(pod)]
    assert doomed == ["g-2"]


@LIVES
def test_a_job_all_of_whose_pods_failed_is_tried_again_as_often_as_it_may_be(
    between: Callable[[Stage], None],
) -> None:
    """Also where they failed while nobody looked."""
    stage = running({"fault-scheduling": "force", "fault-retry-times": "2"})
    before, tries = stage.bound, 0
    for _turn in range(4):
        for name in before:
            stage.ends(name, "Failed")
        between(stage)
        stage.cycle(later=100)
        if not deleted(stage):
            break
        tries += 1
        assert deleted(stage) == [*before]
        obey(stage)
        stage.cycle()
        assert stage.bound == before
        phase(stage, "Running")
        stage.cycle()

    assert tries == 2


def test_a_job_that_failed_and_is_not_tried_again_is_over() -> None:
    stage = running({"fault-scheduling": "force"})
    for name in stage.bound:
        stage.ends(name, "Failed")
    stage.cycle()

    assert deleted(stage) == []
    assert stage.cache.gangs["default/g"].reported.job is None


@pytest.mark.parametrize("times", ["1", "2"])
def test_d24_a_failure_that_was_counted_before_a_restart_is_not_counted_again(
    times: str,
) -> None:
    stage = running(PODS_ONLY | {"fault-retry-times": times})
    for name in stage.bound:
        stage.ends(name, "Failed")
    stage.cycle()
    assert len(deleted(stage)) == 3

    stage.restart()
    stage.cycle()

    group = stage.cache.gangs["default/g"]
    assert group.repair.record is not None
    assert group.repair.record.retries_used == 1
    assert deleted(stage) == []
    assert group.reported.job is not None, "who was about to be deleted is deleted"
    assert all(map(group.was_deleting, group.pods.values()))


@LIVES
@pytest.mark.parametrize("mode", ["grace", "force"])
def test_a_pod_on_a_node_that_is_gone_is_deleted_at_once(
    between: Callable[[Stage], None], mode: str
) -> None:
    """Also where the node was gone before anybody looked."""
    stage = running(PODS_ONLY | {"fault-scheduling": mode})
    before = stage.bound
    stage.drop_node(before["g-1"].split()[0])
    if between is restarts:
        stage.now = NODE_HEARD_S + max(p.created for p in stage.cache.pods.values())
    between(stage)

    assert "delete at once default/g: 1" in stage.cycle()
    obey(stage)
    stage.cycle()
    after = stage.bound
    assert (after["g-0"], after["g-2"]) == (before["g-0"], before["g-2"])
    assert after["g-1"].split()[0] not in before["g-1"]


def test_all_pods_of_a_job_are_on_nodes_that_are_gone() -> None:
    stage = running({"fault-scheduling": "grace"})
    for place in stage.bound.values():
        stage.drop_node(place.split()[0])

    assert "delete at once default/g: 0,1,2" in stage.cycle()


def test_a_node_may_be_heard_of_after_its_pods() -> None:
    stage = running(PODS_ONLY)
    stage.now = max(p.created for p in stage.cache.pods.values())
    late = stage.nodes.pop(stage.bound["g-1"].split()[0])
    stage.restart()

    assert not any("delete" in each for each in stage.cycle())
    assert stage.cache.next_at == stage.now + NODE_HEARD_S
    stage.put_node(late)
    stage.now += NODE_HEARD_S
    assert not any("delete" in each for each in stage.cycle())


def test_nothing_that_was_written_is_still_to_come() -> None:
    """Whoever scheduled before may have had another clock."""
    stage = Stage("a")
    early = Record(since=5e9, deleted=(0,), deleted_at=5e9, stuck_at=5e9)
    stage.group("g", 1)
    known(stage, records.write(early))

    told = [e for e in stage.cache.events(1000.0) if isinstance(e, RepairKnown)]
    sound = Record(since=1000.0, deleted=(0,), deleted_at=1000.0, stuck_at=1000.0)
    assert told == [RepairKnown("default/g", sound)]


def test_nothing_that_was_written_is_older_than_time() -> None:
    stage = Stage("a")
    old = Record(since=-1e300, deleted=(0,), deleted_at=-1e300, stuck_at=-1e300)
    stage.group("g", 1)
    known(stage, records.write(old))

    told = [e for e in stage.cache.events(1000.0) if isinstance(e, RepairKnown)]
    sound = Record(since=0.0, deleted=(0,), deleted_at=0.0, stuck_at=0.0)
    assert told == [RepairKnown("default/g", sound)]


def test_a_budget_that_is_raised_later_is_not_used_up_by_that() -> None:
    stage = running({"fault-scheduling": "force", "fault-retry-times": "3"})
    uid = stage.groups["g"]["metadata"]["uid"]
    stage.restart()
    stage.cache.handover.put_faults((), {"default/g": RetriesLeft(uid, 3)})
    stage.cycle()
    plain = stage.groups["g"]
    plain["metadata"]["labels"]["fault-retry-times"] = "5"
    stage.put_group(plain)
    stage.cycle()

    assert stage.cache.gangs["default/g"].repair.record is None


def test_what_was_to_be_deleted_of_a_podgroup_that_is_gone_is_not() -> None:
    stage = running(PODS_ONLY)
    (uid, *_others) = stage.cache.gangs["default/g"].pods
    known(stage, records.write(Record(since=1.0, deleted=(0,)), doomed=[uid]))
    assert stage.cache.gangs["default/g"].repair.deleting

    stage.drop_group("g")
    assert not stage.cache.gangs["default/g"].repair.deleting


# What people write on PodGroups.


EVERYTHING = Record(
    since=1.0,
    placements=tuple(Placement(n, "abcd"[n], tuple(range(8))) for n in range(4)),
    deleted=(0, 1, 2, 3),
    deleted_at=1.0,
)


def overwrite(stage: Stage, text: str) -> None:
    """Somebody writes a record on a PodGroup, as the scheduler once did."""
    plain = stage.groups["g"]
    plain["metadata"]["annotations"] = {names.REPAIR: text}
    stage.put_group(plain)


def told_of(stage: Stage) -> list[str]:
    """What is wrong with PodGroups now."""
    return [told for kind, _key, told in stage.cache.problems.known if kind != "Node"]


@LIVES
@pytest.mark.parametrize("by", ["", names.SCHEDULER, "nobody"])
def test_a_record_that_somebody_writes_on_a_podgroup_counts_for_nothing(
    between: Callable[[Stage], None], by: str
) -> None:
    stage = running(PODS_ONLY)
    group = stage.cache.gangs["default/g"]
    overwrite(stage, records.write(EVERYTHING, doomed=group.pods, by=by))
    between(stage)

    events = stage.cache.events(stage.now)

    assert not [e for e in events if isinstance(e, RepairKnown | PodsEnding)]
    group = stage.cache.gangs["default/g"]
    assert (group.repair.deleting, group.repair.record, told_of(stage)) == (
        frozenset(),
        None,
        [],
    )


@LIVES
def test_what_we_know_of_a_repair_survives_what_is_written_on_the_podgroup(
    between: Callable[[Stage], None],
) -> None:
    stage = running(PODS_ONLY)
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
    stage.cycle()
    ours = stage.cache.gangs["default/g"].repair.record
    assert ours is not None
    gone = deleted(stage)
    for record in (EVERYTHING, replace(EVERYTHING, is_over=True)):
        overwrite(stage, records.write(record))
        between(stage)
        stage.cycle()
        assert stage.cache.gangs["default/g"].repair.record == ours

    for name in gone:
        stage.drop_pod(name)
    stage.cycle()
    for name in gone:
        stage.pod(name, 8, "g")
    stage.cycle()
    assert deleted(stage) == []
    assert len(stage.bound) == 3


def test_a_podgroup_without_pods_that_says_it_is_repaired_holds_no_chips() -> None:
    stage = Stage("a b c d")
    text = records.write(EVERYTHING)
    stage.group("evil", 1, annotations={names.REPAIR: text})
    stage.restart()
    stage.cycle()
    stage.pod("other", 8)

    assert stage.cycle() == ["bind pod default/other: other on a 01234567"]
    assert not stage.engine.repairs


def test_a_repair_of_another_scheduler_means_nothing_to_who_begins() -> None:
    stage = running(PODS_ONLY)
    stage.write_record("default/g", records.write(EVERYTHING, by="nobody"))
    stage.restart()

    assert not [e for e in stage.cache.events(9.0) if isinstance(e, RepairKnown)]
    assert told_of(stage) == []


# Records that another version wrote on PodGroups.


def test_a_record_on_a_podgroup_is_read_when_records_are_moved() -> None:
    stage = Stage("a b c d")
    stage.group("g", 1, annotations={names.REPAIR: records.write(EVERYTHING)})
    stage.group("h", 1, annotations={names.REPAIR: records.write(EVERYTHING, by="x")})
    stage.read_records(moves=True)

    events = stage.cache.events(9.0)

    assert [e.job for e in events if isinstance(e, RepairKnown)] == ["default/g"]
    assert [old.job for old in stage.cache.checkpoints.old] == ["default/g"]


def test_a_record_that_was_moved_counts_before_that_on_the_podgroup() -> None:
    stage = running(PODS_ONLY)
    overwrite(stage, records.write(EVERYTHING))
    one = Record(since=5.0, deleted=(1,), deleted_at=6.0)
    stage.write_record("default/g", records.write(one))
    stage.read_records(moves=True)

    events = stage.cache.events(9.0)

    (told,) = (e for e in events if isinstance(e, RepairKnown))
    assert told.record == one
    assert stage.cache.checkpoints.old == []


def test_a_podgroup_that_comes_after_records_were_moved_is_not_looked_at() -> None:
    stage = Stage("a b c d")
    stage.read_records(moves=True)
    stage.group("g", 1, annotations={names.REPAIR: records.write(EVERYTHING)})

    events = stage.cache.events(9.0)

    assert not [e for e in events if isinstance(e, RepairKnown)]


# Successors that ask for something else.


@pytest.mark.parametrize("chips", [16, 3, 0])
@pytest.mark.parametrize("labels", [{"fault-scheduling": "force"}, PODS_ONLY])
@LIVES
def test_successors_may_ask_for_anything_and_the_scheduler_goes_on(
    between: Callable[[Stage], None], labels: dict[str, str], chips: int
) -> None:
    stage = running(labels, "a b c d e")
    report(stage, stage.bound["g-1"].split()[0], "Ascend910-3")
    stage.cycle()
    gone = deleted(stage)
    for name in gone:
        stage.drop_pod(name)
    stage.cycle()
    for name in gone:
        stage.pod(name, chips, "g")
    told = []
    for step in range(4):
        between(stage)
        stage.cycle(later=1)
        told += [each.message for each in stage.said if isinstance(each, Report)]
        stage.put_node(node(f"new-{step}"))
        stage.cycle(later=1)
    report(stage, "new-0", "Ascend910-1")
    stage.cycle(later=1)
    stage.drop_node("new-0")
    stage.cycle(later=400)

    assert chips != 16 or any("16 chips" in each for each in told)
    stage.pod("other", 8)
    stage.cycle()
    assert "other" in stage.bound


# Which job a record is of.


def test_a_record_of_another_podgroup_of_that_name_counts_for_nothing() -> None:
    stage = running(PODS_ONLY)
    stage.write_record("default/g", records.write(EVERYTHING))
    stage.records["default/g"] = stage.records["default/g"]._replace(uid="another")
    stage.restart()

    assert not [e for e in stage.cache.events(9.0) if isinstance(e, RepairKnown)]
    assert stage.cache.gangs["default/g"].repair.record is None


def test_a_record_may_be_read_before_its_podgroup_is_heard_of() -> None:
    stage = running(PODS_ONLY)
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
    stage.cycle()
    plain = stage.groups.pop("g")
    stage.restart()
    stage.cycle()
    stage.put_group(plain)

    (told,) = (e for e in stage.cache.events(9.0) if isinstance(e, RepairKnown))
    assert told.record.deleted == (1,)


@pytest.mark.parametrize("was_repaired", [False, True])
def test_the_record_of_a_job_that_is_gone_is_to_be_removed(
    *, was_repaired: bool
) -> None:
    stage = running(PODS_ONLY)
    if was_repaired:
        report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
        stage.cycle()
    stage.drop_group("g")

    left = [(each.job, each.uid) for each in stage.cache.checkpoints.orphaned]
    assert left == [("default/g", "group-g")] * was_repaired


@LIVES
def test_nothing_is_held_for_a_job_that_was_deleted_after_its_pods(
    between: Callable[[Stage], None],
) -> None:
    stage = running({"fault-scheduling": "force"}, "a b c")
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
    stage.cycle()
    for name in ("g-0", "g-1", "g-2"):
        stage.drop_pod(name)
    stage.cycle()
    between(stage)
    stage.cycle()
    assert stage.engine.repairs.keys() == {"default/g"}
    stage.pod("other", 8)
    assert stage.cycle() == ["waiting pod default/other"]

    stage.drop_group("g")

    assert [each[:22] for each in stage.cycle()] == ["bind pod default/other"]
    assert not stage.engine.repairs


def test_who_begins_to_lead_goes_by_the_records_and_not_by_what_it_knew() -> None:
    """A repair went on, and another was over, while somebody else led."""
    stage = running(PODS_ONLY)
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
    stage.cycle()
    quiet = stage.conf.quiet
    stage.cache.reconfigure(quiet)
    stage.cycle()
    assert "default/g" in stage.engine.repairs
    more = Record(since=5.0, deleted=(1, 2), deleted_at=6.0)
    stage.write_record("default/g", records.write(more))
    stage.read_records()
    stage.cache.reconfigure(stage.conf)
    stage.cycle()
    assert stage.engine.repairs["default/g"].deletion.awaiting_replacement == {1, 2}

    stage.cache.reconfigure(quiet)
    stage.cycle()
    stage.records.clear()
    stage.read_records()
    stage.cache.reconfigure(stage.conf)
    stage.cycle()
    (over,) = (e for e in stage.heard if isinstance(e, RepairKnown))
    assert over.record.is_over


def test_who_wants_it_no_longer_loses_no_more_pods_to_a_restart() -> None:
    stage = running({"fault-scheduling": "force"}, "a b c d e")
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
    stage.cycle()
    stage.drop_pod("g-1")
    plain = stage.groups["g"]
    plain["metadata"]["labels"] = {"fault-scheduling": "off"}
    stage.put_group(plain)
    stage.restart()
    stage.cycle()

    group = stage.cache.gangs["default/g"]
    assert not group.repair.deleting
    assert not stage.engine.view.job_states["default/g"].terminating
    stage.pod("g-1", 8, "g")
    stage.cycle()
    assert len(stage.bound) == 3
    assert not stage.engine.repairs


def test_of_more_pods_than_there_can_be_some_are_believed() -> None:
    stage = Stage("a")
    numbers = tuple(range(3 * MOST_DELETED))
    places = tuple(Placement(n, "a", (0,)) for n in numbers)
    ails = tuple(PodFault(n, Cause.CHIP, "a") for n in numbers)
    record = Record(-5.0, RestartScope.JOB, ails, places, numbers, retries_used=10**12)
    stage.group("g", 1, phase="Running")
    known(stage, records.write(record))

    (told,) = (e for e in stage.cache.events(9.0) if isinstance(e, RepairKnown))

    found = told.record
    sizes = {len(found.pod_faults), len(found.placements), len(found.deleted)}
    assert sizes == {MOST_DELETED}
    assert (found.since, found.deleted_at) == (0.0, 0.0)
    assert found.retries_used == MAX_RETRIES


def test_d17_where_the_last_pods_of_a_large_job_were_is_not_forgotten() -> None:
    stage = Stage("a")
    n_pods = MOST_DELETED + 1000
    places = tuple(Placement(n, "a", (0,)) for n in range(n_pods))
    lost = tuple(range(n_pods - 100, n_pods))
    record = Record(5.0, placements=places, deleted=lost, deleted_at=6.0)
    stage.group("g", n_pods, phase="Running")
    stage.pod("g-0", 8, "g")
    known(stage, records.write(record))

    (told,) = (e for e in stage.cache.events(9.0) if isinstance(e, RepairKnown))

    assert {*lost} <= {place.replica for place in told.record.placements}
    assert len(told.record.placements) == MOST_DELETED + 1


@pytest.mark.parametrize("unread", [False, True])
def test_pods_on_a_node_that_cannot_be_read_are_left_alone(*, unread: bool) -> None:
    stage = running({"fault-scheduling": "force"})
    where = stage.bound["g-1"].split()[0]
    del stage.nodes[where]
    stage.now = NODE_HEARD_S + max(p.created for p in stage.cache.pods.values())
    stage.begin()
    if unread:
        stage.cache.handlers["nodes"].on_unreadable(where, b"")
    stage.read_everything()
    stage.cycle()

    assert bool(deleted(stage)) is not unread


def test_pods_on_a_node_that_could_not_be_read_and_is_gone_are_stranded() -> None:
    stage = running({"fault-scheduling": "force"})
    where = stage.bound["g-1"].split()[0]
    del stage.nodes[where]
    stage.now = NODE_HEARD_S + max(p.created for p in stage.cache.pods.values())
    stage.begin()
    stage.cache.handlers["nodes"].on_unreadable(where, b"")
    stage.read_everything()
    stage.cycle()

    stage.cache.handlers["nodes"].on_delete([Gone("", where, f"node-{where}")])
    stage.cycle(later=1)

    assert "g-1" in deleted(stage)


def any_record(dice: random.Random) -> Record:
    """What anybody might write down of a repair."""
    times = (0.0, 1000.0, 1e12)
    places = [
        Placement(
            replica=dice.randrange(6),
            node=dice.choice("abcdx"),
            chips=tuple(dice.sample(range(dice.choice((8, 64))), dice.choice((0, 8)))),
            block=dice.choice((None, 0, 7)),
            role=dice.choice((None, "", "w")),
        )
        for _ in range(dice.randrange(5))
    ]
    pod_faults = [
        PodFault(dice.randrange(6), dice.choice([*Cause]), dice.choice("abx"))
        for _ in range(dice.randrange(3))
    ]
    return Record(
        since=dice.choice((*times, -5.0)),
        scope=dice.choice([*RestartScope]),
        pod_faults=tuple(pod_faults),
        placements=tuple(places),
        deleted=tuple(dice.sample(range(7), dice.randrange(5))),
        deleted_at=dice.choice((None, *times)),
        stuck_at=dice.choice((None, *times)),
        retries_used=dice.choice((0, 1, -3, 10**9)),
        is_over=dice.random() < 0.1,
    )


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_written_of_a_repair_the_scheduler_goes_on(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    stage = Stage("a b c d e", conf=LOOSE)
    mode = dice.choice(["force", "grace", "external-grace"])
    more = dice.choice([{}, {"pod-rescheduling": "on", "fault-retry-times": "2"}])
    stage.gang("g", 3, labels={"fault-scheduling": mode, **more})
    stage.cycle()
    for _step in range(6):
        uids = [plain["metadata"]["uid"] for plain in stage.pods.values()]
        doomed = dice.sample(uids, dice.randrange(len(uids) + 1))
        known(stage, records.write(any_record(dice), doomed=doomed))
        if dice.random() < 0.5:
            stage.restart()
        name = dice.choice([*stage.pods]).partition("/")[2]
        if dice.random() < 0.5:
            stage.drop_pod(name)
            stage.pod(name, 8, "g")
        else:
            stage.ends(name, "Failed")
        stage.now += dice.choice((0.0, 10.0, 400.0))
        stage.cycle()
        stage.cycle()


@LIVES
@pytest.mark.parametrize("order", ["012", "210"])
def test_the_places_of_pods_that_go_one_by_one_are_held(
    between: Callable[[Stage], None], order: str
) -> None:
    """Nobody else gets one of them, also while no pod of the job is there."""
    stage = running({"fault-scheduling": "force"})
    before = stage.bound
    sick = before["g-1"].split()[0]
    report(stage, sick, "Ascend910-3")
    stage.cycle()
    for n in range(4):
        stage.pod(f"rival-{n}", 8)
    for number in order:
        stage.drop_pod(f"g-{number}")
        between(stage)
        stage.cycle()

    taken = {place for name, place in stage.bound.items() if "rival" in name}
    assert taken.isdisjoint({before["g-0"], before["g-2"]})
