"""How a cluster stands, asked of one in memory; and the screen, on a terminal."""

from typing import Any

import msgspec
import pytest
from rich.console import Console

from ringleaf.cli.live import moment
from ringleaf.cli.status import NO_HISTORY, Lead, status_of
from ringleaf.cli.status_screen import HELD, StatusScreen
from ringleaf.cli.watch import StatusView, fitting
from ringleaf.engine.event import IdleAccountKnown
from ringleaf.framework.idle_budget import EndedReservation, IdleAccount, Outcome
from ringleaf.kube.fault_history import FaultHistory
from ringleaf.kube.leader import Lease, LeaseSpec
from ringleaf.kube.objects import Metadata, NodeObject, Pod, PodGroup
from ringleaf.kube.snapshot import ReadOnlyCache, Snapshot
from ringleaf.model.fault import Cause, Fault
from tests.kube.stage import NPU, Stage, node

Plain = dict[str, Any]


def observed(stage: Stage, account: IdleAccount | None = None) -> ReadOnlyCache:
    """The objects of *stage*, and what was written down of reservations."""
    cache = ReadOnlyCache(("ringleaf",))
    if account is not None:
        cache.handover.put_note(IdleAccountKnown(account))
    read = msgspec.convert
    cache.handlers["nodes"].on_update(read([*stage.nodes.values()], list[NodeObject]))
    cache.handlers["podgroups"].on_update(
        read([*stage.groups.values()], list[PodGroup])
    )
    cache.handlers["pods"].on_update(read([*stage.pods.values()], list[Pod]))
    return cache


def status(
    stage: Stage, lives: FaultHistory = NO_HISTORY, account: IdleAccount | None = None
) -> Plain:
    cache = observed(stage, account)
    found = status_of(Snapshot(cache, stage.now), cache, lives)
    return found | {"leader": lead().plain(0.0)}


def lead(holder: str = "me", renewed: str = "1970-01-01T00:16:40Z") -> Lead:
    found = Lead("ringleaf", "kube-system")
    spec = LeaseSpec(holder, lease_duration_seconds=5, renew_time=renewed)
    found.lease = Lease(Metadata(), spec)
    return found


def shown(status: Plain, width: int = 80, rows: int = 12) -> list[str]:
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(StatusScreen(status, rows=rows))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_chips_are_counted_by_product() -> None:
    stage = Stage([node("a"), node("b"), node("c", ready="False"), node("d", chips=7)])
    stage.pod("p", 3)
    stage.cycle()

    (found,) = status(stage)["products"]

    assert found == {
        "product": "atlas-800t-a2",
        "nodes": 4,
        "not-ready": 1,
        "cordoned": 0,
        "quarantined": 0,
        "chips": 32,
        "used": 3,
        "free": 8 + 8 + 7 - 3,
        "shut": 8,
        "faulty": 1,
        "free-nodes": found["free-nodes"],
    }
    assert found["free-nodes"] in (1, 2)


def test_a_queue_is_told_what_it_uses_and_who_waits_in_it() -> None:
    stage = Stage("a")
    stage.pod("p", 8)
    stage.pod("q", 8)
    stage.cycle()

    (found,) = status(stage)["queues"]

    assert (found["name"], found["running"], found["waiting"]) == ("default", 1, 1)
    assert found["uses"][NPU] == 8


def test_why_a_job_waits_is_what_the_scheduler_wrote_on_its_pods() -> None:
    stage = Stage("a")
    stage.pod("p", 8)
    stage.cycle()
    plain = stage.pod("q", 8)
    said = {"type": "PodScheduled", "status": "False", "message": "there is no room"}
    plain["status"]["conditions"] = [said]

    (found,) = status(stage)["waiting"]

    assert (found["job"], found["why"]) == ("pod default/q", "there is no room")
    assert found["wanted"] == "1 x 8 chips"


def test_a_gang_without_its_pods_waits_for_them() -> None:
    stage = Stage("a")
    stage.group("few", 3)
    stage.pod("few-0", 8, "few")

    (found,) = status(stage)["waiting"]

    assert "1 of 3 pods are there" in found["why"]


def test_a_gang_that_lost_pods_is_short_of_them() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle()
    stage.drop_pod("g-1")

    assert status(stage)["short"] == [
        {"job": "default/g", "running": 1, "needs": 2, "ending": 0}
    ]


def test_two_pods_on_one_chip_and_odd_objects_are_problems() -> None:
    odd = {"accelerator-type": "odd", "accelerator": "huawei-Ascend910"}
    stage = Stage([node("a"), node("odd", labels=odd)])
    for name in "pq":
        chips = {NPU: "Ascend910-0"}
        stage.pod(name, 1, annotations=chips, spec={"nodeName": "a"})

    found = status(stage)["problems"]

    assert [each["kind"] for each in found] == ["Node", "Job"]
    assert "which another pod holds already" in found[1]["message"]


def test_faults_are_counted_and_a_line_says_where_to_read_more() -> None:
    ill = Stage([node("a"), node("b", ready="False")])

    found = status(ill)
    assert found["faults"] == {"open": 1, "nodes": 1, "repairs": 0, "rate-limited": 0}
    assert "1 fault on 1 node; hint: ringleaf faults" in shown(found)
    well = status(Stage("a"))
    assert not any("ringleaf faults" in line for line in shown(well))


def test_the_leader_is_who_holds_the_lease_and_renews_it() -> None:
    assert lead().plain(1003.0)["state"] == "leads"
    assert lead().plain(1016.0)["state"] == HELD
    assert lead("").plain(1003.0)["state"] == HELD
    assert Lead("ringleaf", "x").plain(0.0) == {
        "lease": "x/ringleaf",
        "state": "no lease",
    }


def test_nobody_is_said_to_lead_no_more_while_the_api_server_is_silent() -> None:
    found = lead()
    found.silent_since = 1000.0

    told = found.plain(1016.0)

    assert told["state"] == "unknown"
    assert told["why"] == "the API server has not answered for 16 s"


def test_the_screen_says_it_all_in_80_columns() -> None:
    stage = Stage("a b")
    stage.gang("g", 2)
    stage.cycle()
    uid = "52ae36c2-1232-4865-998a-44e65f3c2e9f"
    stage.gang(f"train-{uid}", 3)
    stage.drop_pod("g-1")

    lines = shown(status(stage))

    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert "atlas-800t-a2      2     16     8     8" in text
    assert "leader: me (Lease kube-system/ringleaf)" in text
    assert "default/train " in text
    assert uid not in text
    assert "default/g: 1 of 2 pods run" in text


def test_a_long_list_is_cut_with_how_many_there_are() -> None:
    stage = Stage("a")
    stage.cycle()
    for i in range(9):
        stage.pod(f"p{i}", 8)

    lines = shown(status(stage), rows=4)

    assert "9 jobs pending, the oldest first:" in lines
    assert "… and 5 more" in lines


def test_a_screen_that_is_not_up_to_date_says_so() -> None:
    stage = Stage("a")

    lines = shown(status(stage) | {"trouble": "watch /api/v1/pods: no answer"})

    assert "not up to date: watch /api/v1/pods: no answer" in lines


UID = "52ae36c2-1232-4865-998a-44e65f3c2e9f"


def test_a_pod_group_that_volcano_made_for_pods_is_called_by_its_pods() -> None:
    stage = Stage("a")
    stage.group(f"podgroup-{UID}", 3)
    stage.pod("web-b", 8, f"podgroup-{UID}")
    stage.pod("web-a", 8, f"podgroup-{UID}")

    found = status(stage)

    assert found["names"] == {f"default/podgroup-{UID}": "pod default/web-a and 1 more"}
    assert "pod default/web-a and 1 more  " in "\n".join(shown(found, 120))


def test_why_a_job_waits_names_others_as_people_know_them() -> None:
    stage = Stage("a")
    stage.group(f"six-{UID}", 2)
    plain = stage.pod("q", 8)
    told = f"2 nodes reserved for 'default/six-{UID}'"
    said = {"type": "PodScheduled", "status": "False", "message": told}
    plain["status"]["conditions"] = [said]

    (found,) = (w for w in status(stage)["waiting"] if w["job"] == "pod default/q")

    assert found["why"] == "2 nodes reserved for 'default/six'"


def test_a_job_with_a_reservation_is_shown_with_what_says_when() -> None:
    stage = Stage("a")
    plain = stage.pod("big", 8)
    told = "job 'pod default/big' has a reservation: a; it waits for 'x' to end"
    said = {"type": "PodScheduled", "status": "False", "message": told}
    plain["status"]["conditions"] = [said]

    text = "\n".join(shown(status(stage), 120))

    assert "  has a reservation: a; it waits for 'x' to end" in text
    assert "hint: ringleaf explain 'pod default/big' says when it could start" in text


def test_chips_of_a_cordoned_node_are_shut() -> None:
    stage = Stage([node("a"), node("b", spec={"unschedulable": True})])
    stage.cycle()

    found = status(stage)

    (own,) = found["products"]
    assert (own["free"], own["shut"], own["cordoned"]) == (8, 8, 1)
    assert "2 (1 cordoned)" in "\n".join(shown(found))


def test_chips_of_a_node_that_is_set_aside_are_shut() -> None:
    stage = Stage("a b")
    stage.cycle()
    fault = Fault("b", Cause.REFUSAL, seen=stage.now, until=stage.now + 300)

    found = status(stage, FaultHistory((fault,), is_there=True))

    (own,) = found["products"]
    assert (own["free"], own["shut"], own["quarantined"]) == (8, 8, 1)
    assert "2 (1 quarantined)" in "\n".join(shown(found))


def test_jobs_that_wait_for_the_brake_are_counted() -> None:
    stage = Stage("a b")
    stage.gang("g", 2, labels={"fault-scheduling": "force"})
    stage.cycle()

    found = status(
        stage, FaultHistory(is_there=True, braked=("default/g", "default/gone"))
    )

    assert (found["faults"]["repairs"], found["faults"]["rate-limited"]) == (1, 1)
    told = "no faults, 1 job being repaired, 1 held back by the rate limit; hint: "
    assert told in "\n".join(shown(found))


def test_that_nobody_knows_who_waits_for_the_brake_is_told() -> None:
    found = status(Stage("a"), FaultHistory(trouble="not allowed to list configmaps"))

    (told,) = found["problems"]
    assert told["object"] == "volcano-system/vcjob-fault-npu-cm"
    assert told["message"].endswith("is not known: not allowed to list configmaps")
    assert found["faults"]["rate-limited"] == 0


def test_a_job_that_is_invalid_is_told_what_helps() -> None:
    stage = Stage("a")
    stage.cycle()
    stage.pod("nine", 9)

    (found,) = status(stage)["waiting"]

    assert found["why"].startswith("invalid: ")
    assert "; hint: " in found["why"]


def test_a_queue_that_gets_what_it_asks_has_no_part_on_the_screen() -> None:
    stage = Stage("a")
    stage.pod("p", 4)
    stage.cycle()
    assert any(line.endswith(" 4 Ascend910") for line in shown(status(stage)))

    stage.pod("q", 8)
    assert any(line.endswith(" 4 of 8 Ascend910") for line in shown(status(stage)))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_screen_fits_any_width(width: int) -> None:
    stage = Stage("a")
    stage.pod("a-name-that-is-rather-long-for-a-pod-of-anybody", 8)

    assert max(map(len, shown(status(stage), width))) <= width


@pytest.mark.parametrize("height", [16, 24, 200])
def test_a_screen_that_follows_the_cluster_shows_what_it_has_no_room_for(
    height: int,
) -> None:
    stage = Stage("a")
    for number in range(40):
        stage.gang(f"gang-{number}", 2, 8)
    console = Console(width=80, height=height, color_system=None)

    screen = fitting(StatusView(), status(stage), stage.now, console)
    with console.capture() as capture:
        console.print(screen)

    lines = capture.get().splitlines()
    assert len(lines) <= height
    assert any("more" in line for line in lines) == (height < 200)


def test_what_reservations_cost_and_what_became_of_them_is_shown() -> None:
    stage = Stage("a")
    stage.cycle()
    now = stage.now
    hours = [
        ("default/big", 2, 8 * 3600.0, Outcome.STARTED),
        ("default/all", 1, 3600.0, Outcome.SPENT),
    ]
    ended = [
        EndedReservation(job, now - 3600 * (ago + 1), now - 3600 * ago, kept, outcome)
        for job, ago, kept, outcome in hours
    ]
    account = IdleAccount(((now, 9 * 3600.0),), is_spent=True, ended=(*ended,))

    found = status(stage, account=account)

    assert found["reservations"]["chip-seconds"] == 9 * 3600
    assert found["reservations"]["budget-used"] == pytest.approx(
        9 / (0.05 * 8 * 24), 1e-3
    )
    lines = shown(found)
    start = next(i for i, line in enumerate(lines) if line.startswith("reservations"))
    kept = "reservations kept 9.0 chip-hours idle in the last 24 hours"
    assert lines[start : start + 2] == [
        f"{kept}: 94% of their budget,",
        f"none is made until {moment(now + 24 * 3600)}",
    ]
    rows = [line.split() for line in lines[start + 2 :] if "default/" in line]
    assert [(row[0], row[1]) for row in rows] == [
        ("default/all", "1.0"),
        ("default/big", "2.0"),
    ]
    assert any(line.endswith("started") for line in lines)
    assert any("used up" in line for line in lines)


def test_nothing_is_said_of_reservations_where_there_were_none() -> None:
    assert not any(line.startswith("reserv") for line in shown(status(Stage("a"))))
