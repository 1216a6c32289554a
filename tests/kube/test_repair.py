"""Faults from the report to the successor, with objects, a world and a real engine."""

import json
import random
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ringleaf.engine.event import PodsEnding, RepairKnown
from ringleaf.framework.conf import DEFAULT
from ringleaf.framework.instruction import Delete, Remember, Report
from ringleaf.kube import names, records
from ringleaf.kube.recovery import MAX_RETRIES
from ringleaf.kube.reports import check_code
from ringleaf.kube.world import MOST_DELETED, NODE_HEARD_S, TRUST_S, RetriesLeft
from ringleaf.model.fault import Ailment, Cause, Reach, Record
from ringleaf.model.placement import Placement
from ringleaf.model.settings import Repairs
from tests.kube.stage import NPU, Stage
from tests.kube.test_unstarted import Hands

PODS_ONLY = {"fault-scheduling": "force", "pod-rescheduling": "on"}
LOOSE = replace(
    DEFAULT, settings=replace(DEFAULT.settings, repairs=Repairs(brake_percent=100))
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
    group = stage.world.groups["default/g"].by_number()
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

    kinds = [type(e) for e in stage.said if isinstance(e, Remember | Delete)]
    assert kinds == [Remember, Delete]
    text = stage.groups["g"]["metadata"]["annotations"][names.REPAIR]
    kept = records.read(text)
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
    assert not [e for e in stage.world.events(0.0) if isinstance(e, RepairKnown)]

    stage.restart()
    events = stage.world.events(stage.now)
    (known,) = (e for e in events if isinstance(e, RepairKnown))
    assert known.record.deleted == (1,)
    assert not [e for e in stage.world.events(0.0) if isinstance(e, RepairKnown)]
    again = stage.world.everything(stage.now)
    assert [e for e in again if isinstance(e, RepairKnown)] == [known]


def test_a_repair_is_known_of_a_podgroup_without_pods() -> None:
    stage = Stage("a")
    record = Record(since=5.0, deleted=(0,), deleted_at=6.0)
    text = records.write(record)
    stage.group("g", 1, annotations={names.REPAIR: text}, phase="Running")

    events = stage.world.events(9.0)

    assert [e for e in events if isinstance(e, RepairKnown)] == [
        RepairKnown("default/g", record)
    ]
    plain = stage.groups["g"]
    plain["metadata"]["annotations"] = {}
    stage.put_group(plain)
    (over,) = (e for e in stage.world.events(0.0) if isinstance(e, RepairKnown))
    assert over.record.is_over


def test_an_annotation_that_is_no_record_is_told_and_means_nothing() -> None:
    stage = Stage("a")
    stage.group("g", 1, annotations={names.REPAIR: "{}"}, phase="Running")

    events = stage.world.events(0.0)

    assert not [e for e in events if isinstance(e, RepairKnown)]
    (problem,) = stage.world.problems
    assert (problem.kind, problem.name) == ("PodGroup", "g")
    assert "annotation ringleaf.io/repair cannot be read" in problem.message


def test_d23_a_damaged_report_deletes_nothing() -> None:
    stage = running(PODS_ONLY)
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3", code="0" * 64)

    assert stage.cycle() == []
    assert not [e for e in stage.said if isinstance(e, Delete | Remember)]


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

    group = stage.world.groups["default/g"]
    doomed = [pod for pod in group.pods.values() if group.is_doomed(pod)]
    assert sorted(pod.name for pod in doomed) == ["g-0", "g-2"]
    ending = stage.engine.view.standings["default/g"].terminating
    assert ending == {pod.number for pod in doomed}

    for name in ("g-0", "g-2"):
        stage.drop_pod(name)
    stage.cycle()
    for name in ("g-0", "g-1", "g-2"):
        stage.pod(name, 8, "g")
    stage.cycle()

    assert not [pod for pod in group.pods.values() if group.is_doomed(pod)]
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

    group = stage.world.groups["default/g"]
    doomed = [pod.name for pod in group.pods.values() if group.is_doomed(pod)]
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
    assert stage.world.groups["default/g"].told is None


def test_what_we_wrote_and_hear_of_late_is_no_news() -> None:
    stage = running(PODS_ONLY)
    plain = stage.groups["g"]
    texts = [records.write(Record(since=at, deleted=(1,))) for at in (1.0, 2.0)]
    for text in texts:
        stage.world.remembered("default/g", records.read(text))
        stage.world.writing("default/g", text)
    for text in texts:
        plain["metadata"]["annotations"] = {names.REPAIR: text}
        stage.put_group(plain)
        events = stage.world.events(stage.now)
        assert not [e for e in events if isinstance(e, RepairKnown)]

    kept = stage.world.groups["default/g"].record
    assert kept is not None
    assert kept.since == 2.0


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

    group = stage.world.groups["default/g"]
    assert group.record is not None
    assert group.record.retries_used == 1
    assert deleted(stage) == []
    assert group.told is not None, "who was about to be deleted is deleted"
    assert all(map(group.is_doomed, group.pods.values()))


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
        stage.now = NODE_HEARD_S + max(p.created for p in stage.world.pods.values())
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
    stage.now = max(p.created for p in stage.world.pods.values())
    late = stage.nodes.pop(stage.bound["g-1"].split()[0])
    stage.restart()

    assert not any("delete" in each for each in stage.cycle())
    assert stage.world.next_at == stage.now + NODE_HEARD_S
    stage.put_node(late)
    stage.now += NODE_HEARD_S
    assert not any("delete" in each for each in stage.cycle())


def test_nothing_that_was_written_is_still_to_come() -> None:
    """Whoever scheduled before may have had another clock."""
    stage = Stage("a")
    early = Record(since=5e9, deleted=(0,), deleted_at=5e9, stuck_at=5e9)
    stage.group("g", 1, annotations={names.REPAIR: records.write(early)})

    told = [e for e in stage.world.events(1000.0) if isinstance(e, RepairKnown)]
    known = Record(since=1000.0, deleted=(0,), deleted_at=1000.0, stuck_at=1000.0)
    assert told == [RepairKnown("default/g", known)]


def test_nothing_that_was_written_is_older_than_time() -> None:
    stage = Stage("a")
    old = Record(since=-1e300, deleted=(0,), deleted_at=-1e300, stuck_at=-1e300)
    stage.group("g", 1, annotations={names.REPAIR: records.write(old)})

    told = [e for e in stage.world.events(1000.0) if isinstance(e, RepairKnown)]
    known = Record(since=0.0, deleted=(0,), deleted_at=0.0, stuck_at=0.0)
    assert told == [RepairKnown("default/g", known)]


def test_a_budget_that_is_raised_later_is_not_used_up_by_that() -> None:
    stage = running({"fault-scheduling": "force", "fault-retry-times": "3"})
    uid = stage.groups["g"]["metadata"]["uid"]
    stage.restart()
    stage.world.put_faults((), {"default/g": RetriesLeft(uid, 3)})
    stage.cycle()
    plain = stage.groups["g"]
    plain["metadata"]["labels"]["fault-retry-times"] = "5"
    stage.put_group(plain)
    stage.cycle()

    assert stage.world.groups["default/g"].record is None


def test_what_was_to_be_deleted_of_a_podgroup_that_is_gone_is_not() -> None:
    stage = running(PODS_ONLY)
    (uid, *_others) = stage.world.groups["default/g"].pods
    plain = stage.groups["g"]
    text = records.write(Record(since=1.0, deleted=(0,)), doomed=[uid])
    plain["metadata"]["annotations"] = {names.REPAIR: text}
    stage.put_group(plain)
    assert stage.world.groups["default/g"].doomed

    stage.drop_group("g")
    assert not stage.world.groups["default/g"].doomed


# What people write on PodGroups.


def write_repair(stage: Stage, record: Record) -> None:
    """Somebody writes that a job is repaired, and that its pods are to be deleted."""
    plain = stage.groups["g"]
    text = records.write(record, doomed=stage.world.groups["default/g"].pods)
    plain["metadata"]["annotations"] = {names.REPAIR: text}
    stage.put_group(plain)


EVERYTHING = Record(
    since=1.0,
    placements=tuple(Placement(n, "abcd"[n], tuple(range(8))) for n in range(4)),
    deleted=(0, 1, 2, 3),
    deleted_at=1.0,
)


@pytest.mark.parametrize("late", [False, True])
def test_what_is_written_while_we_lead_counts_for_nothing(*, late: bool) -> None:
    """Only who led before may be heard of late."""
    stage = running(PODS_ONLY)
    group = stage.world.groups["default/g"]
    stage.world.lead(stage.now)
    stage.now += TRUST_S if late else TRUST_S / 2
    write_repair(stage, EVERYTHING)
    assert group.doomed

    events = stage.world.events(stage.now)

    known = [e for e in events if isinstance(e, RepairKnown | PodsEnding)]
    told = [p.message for p in stage.world.problems if p.kind == "PodGroup"]
    if late:
        assert (known, group.doomed, group.record) == ([], frozenset(), None)
        assert told[0].startswith("PodGroup 'default/g': annotation ringleaf.io/repair")
        assert told[0].endswith("it counts for nothing; hint: take it off")
    else:
        assert (len(known), len(group.doomed), told) == (2, 3, [])


def test_what_we_know_of_a_repair_survives_what_is_written_over_it() -> None:
    stage = running(PODS_ONLY)
    stage.world.lead(stage.now)
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
    stage.cycle()
    group = stage.world.groups["default/g"]
    ours = group.record
    assert ours is not None
    stage.now += TRUST_S
    for record in (EVERYTHING, replace(EVERYTHING, is_over=True)):
        write_repair(stage, record)
        stage.cycle()
        assert group.record == ours

    obey(stage)
    stage.cycle()
    assert deleted(stage) == []
    assert len(stage.bound) == 3


def overwrite(stage: Stage, text: str) -> None:
    """Somebody writes something over what is written of a repair."""
    plain = stage.groups["g"]
    plain["metadata"]["annotations"] = {names.REPAIR: text} if text else {}
    stage.put_group(plain)


def told_of(stage: Stage) -> list[str]:
    """What is wrong with PodGroups now."""
    return [told for kind, _key, told in stage.world.known_problems if kind != "Node"]


def repairing() -> Stage:
    """A job that is repaired by who has led for a while."""
    stage = running(PODS_ONLY)
    stage.world.lead(stage.now)
    report(stage, place(stage, "g-1").split()[0], "Ascend910-3")
    stage.cycle()
    stage.now += TRUST_S
    return stage


FOREIGN = '{"v":1,"since":0,"by":"nobody"}'


@pytest.mark.parametrize("text", [FOREIGN, "?", "", records.write(EVERYTHING)])
def test_what_is_written_over_a_repair_counts_for_nothing_whoever_it_is_by(
    text: str,
) -> None:
    stage = repairing()
    group = stage.world.groups["default/g"]
    ours = group.record
    assert ours is not None

    overwrite(stage, text)
    stage.cycle()

    assert group.record == ours
    assert len(told_of(stage)) == (1 if text else 0)
    assert group.is_overwritten


def test_what_we_write_over_it_ends_the_trouble() -> None:
    stage = repairing()
    group = stage.world.groups["default/g"]
    ours, text = group.record, group.record_text
    for foreign in (FOREIGN, "?", records.write(EVERYTHING)):
        overwrite(stage, foreign)
        stage.cycle()
        assert told_of(stage)
        overwrite(stage, text)
        assert (told_of(stage), group.record, group.record_text) == ([], ours, text)

    overwrite(stage, FOREIGN)
    overwrite(stage, text)
    stage.cycle()
    assert (told_of(stage), group.record) == ([], ours)


def test_a_repair_of_another_scheduler_means_nothing_to_who_begins() -> None:
    stage = running(PODS_ONLY)
    overwrite(stage, records.write(EVERYTHING, by="nobody"))
    stage.restart()

    assert not [e for e in stage.world.events(9.0) if isinstance(e, RepairKnown)]
    assert told_of(stage) == []


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

    group = stage.world.groups["default/g"]
    assert not group.doomed
    assert not stage.engine.view.standings["default/g"].terminating
    stage.pod("g-1", 8, "g")
    stage.cycle()
    assert len(stage.bound) == 3
    assert not stage.engine.repairs


def test_of_more_pods_than_there_can_be_some_are_believed() -> None:
    stage = Stage("a")
    numbers = tuple(range(3 * MOST_DELETED))
    places = tuple(Placement(n, "a", (0,)) for n in numbers)
    ails = tuple(Ailment(n, Cause.CHIP, "a") for n in numbers)
    record = Record(-5.0, Reach.JOB, ails, places, numbers, retries_used=10**12)
    text = records.write(record)
    stage.group("g", 1, annotations={names.REPAIR: text}, phase="Running")

    (known,) = (e for e in stage.world.events(9.0) if isinstance(e, RepairKnown))

    found = known.record
    sizes = {len(found.ailments), len(found.placements), len(found.deleted)}
    assert sizes == {MOST_DELETED}
    assert (found.since, found.deleted_at) == (0.0, 0.0)
    assert found.retries_used == MAX_RETRIES


def test_d17_where_the_last_pods_of_a_large_job_were_is_not_forgotten() -> None:
    stage = Stage("a")
    n_pods = MOST_DELETED + 1000
    places = tuple(Placement(n, "a", (0,)) for n in range(n_pods))
    lost = tuple(range(n_pods - 100, n_pods))
    record = Record(5.0, placements=places, deleted=lost, deleted_at=6.0)
    annotations = {names.REPAIR: records.write(record)}
    stage.group("g", n_pods, annotations=annotations, phase="Running")
    stage.pod("g-0", 8, "g")

    (known,) = (e for e in stage.world.events(9.0) if isinstance(e, RepairKnown))

    assert {*lost} <= {place.replica for place in known.record.placements}
    assert len(known.record.placements) == MOST_DELETED + 1


@pytest.mark.parametrize("unread", [False, True])
def test_pods_on_a_node_that_cannot_be_read_are_left_alone(*, unread: bool) -> None:
    stage = running({"fault-scheduling": "force"})
    where = stage.bound["g-1"].split()[0]
    del stage.nodes[where]
    stage.now = NODE_HEARD_S + max(p.created for p in stage.world.pods.values())
    stage.begin()
    if unread:
        stage.world.unread_nodes(where, b"")
    stage.read_everything()
    stage.cycle()

    assert bool(deleted(stage)) is not unread


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
    ailments = [
        Ailment(dice.randrange(6), dice.choice([*Cause]), dice.choice("abx"))
        for _ in range(dice.randrange(3))
    ]
    return Record(
        since=dice.choice((*times, -5.0)),
        reach=dice.choice([*Reach]),
        ailments=tuple(ailments),
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
        plain = stage.groups["g"]
        text = records.write(any_record(dice), doomed=doomed)
        plain["metadata"]["annotations"] = {names.REPAIR: text}
        stage.put_group(plain)
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
