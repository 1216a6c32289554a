"""Faults as people see them: of a cluster in memory and of a run."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from ringleaf.cli.chronicle import Chronicle, looked_at
from ringleaf.cli.damage import Damage, Mending, damage_of
from ringleaf.cli.failure import BadUse
from ringleaf.cli.faults import Faults, Wanted, faults_in, rows_of
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    FaultsKnown,
    JobArrived,
    JobGone,
    NodesChanged,
    NodesGone,
    PodsAil,
    PodsEnding,
    RepairKnown,
)
from ringleaf.framework.faultbook import FaultBook
from ringleaf.framework.instruction import Delete, Remember, Report, Verdict
from ringleaf.kube.lives import KEY, Lives, lives_of, read, write
from ringleaf.kube.look import Look
from ringleaf.model.cluster import Node
from ringleaf.model.fault import (
    Ailment,
    Cause,
    Down,
    Fault,
    Mode,
    Reach,
    Record,
    Recovery,
    SubHealth,
)
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.policies.products import PRODUCTS
from tests.cli.conftest import Ringleaf
from tests.cli.test_status import observed
from tests.kube.stage import Stage, node

Plain = dict[str, Any]
A2 = PRODUCTS["atlas-800t-a2"]
A3 = PRODUCTS["atlas-900-a3"]
N0, N1 = (Node(name, A2, 8, 0xFF) for name in ("n0", "n1"))
ILL = replace(N0, faulty=0b1000, unhealthy=0b1000)
FORCED = Recovery(mode=Mode.FORCE, retries=2)


def engine_with(*jobs: Job, product_nodes: tuple[Node, ...] = (N0, N1)) -> Engine:
    """An engine in which *jobs* run, each on nodes of its own."""
    engine, free = Engine(product_nodes), iter(product_nodes)
    for job in jobs:
        places = tuple(
            Placement(i, next(free).name, tuple(range(job.chips)))
            for i in range(job.replicas)
        )
        engine.handle_all([JobArrived(job, places)], 0.0)
    return engine


def means(job: Job, fault: Fault, **more: Any) -> list[str]:  # noqa: ANN401
    """What is said of pods of *job*, which is on n0, of *fault*."""
    book = FaultBook()
    book.known([fault], 5.0)
    engine = engine_with(job)
    repairs, used = more.get("repairs", {}), more.get("used", {})
    (told,) = Damage(engine.view, book, repairs, used, 5.0).plain()["faults"]
    lines: list[str] = told["means"]
    return lines


CHIP = Fault("n0", Cause.CHIP, "chip 3", seen=1.0)


@pytest.mark.parametrize(
    ("recovery", "fault", "lot"),
    [
        (Recovery(), CHIP, "stays, fault-scheduling is off"),
        (FORCED, CHIP, "to be deleted, fault-scheduling is force"),
        (FORCED, replace(CHIP, cause=Cause.NODE, part=""), "to be deleted, "),
        (
            Recovery(mode=Mode.EXTERNAL_GRACE),
            CHIP,
            "left to others, fault-scheduling is external-grace",
        ),
        (FORCED, replace(CHIP, cause=Cause.NETWORK), "stays, nobody is moved"),
        (FORCED, replace(CHIP, cause=Cause.SUB_HEALTH), "stays, subHealthyStrategy"),
        (
            replace(FORCED, sub_health=SubHealth.FORCE_EXIT),
            replace(CHIP, cause=Cause.SUB_HEALTH),
            "to be deleted, ",
        ),
        (FORCED, Fault("a", Cause.POD, "pod 0"), "to be tried again, 2 retries left"),
        (
            FORCED,
            Fault("n0", Cause.REFUSAL, seen=1.0, until=99.0),
            "stays, it was there before",
        ),
    ],
)
def test_what_becomes_of_a_pod_follows_from_the_labels_of_its_job(
    recovery: Recovery, fault: Fault, lot: str
) -> None:
    told = means(Job("a", A2, 8, recovery=recovery), fault)

    assert told[-1].startswith(f"pod 0 of a: {lot}")


def test_a_job_that_is_repaired_says_so_and_one_that_is_held_back_why() -> None:
    job = Job("a", A2, 8, recovery=FORCED)

    assert means(job, CHIP, repairs={"a": Mending(2.0)}) == ["pod 0 of a: is repaired"]
    held = {"a": Mending(2.0, braked=True)}
    assert means(job, CHIP, repairs=held) == ["pod 0 of a: waits for the brake"]


def test_retries_that_are_used_up_are_counted() -> None:
    job, fault = Job("a", A2, 8, recovery=FORCED), Fault("a", Cause.POD, "pod 0")

    told = means(job, fault, used={"a": 1})
    assert told == ["pod 0 of a: to be tried again, 1 retry left"]
    assert means(job, fault, used={"a": 2}) == ["pod 0 of a: stays, all 2 retries used"]
    gone = Fault("b", Cause.POD, "pod 0")
    assert means(job, gone) == ["pod 0 of b: the job is not there"]


def test_only_pods_that_hold_the_chip_are_on_its_fault() -> None:
    job = Job("a", A2, 2, recovery=FORCED)

    assert means(job, CHIP) == ["no pod is on it"]
    assert means(job, replace(CHIP, part="chip 1")) != ["no pod is on it"]


def stage_of(mending: Mending, job: Job, now: float = 10.0) -> tuple[str, str]:
    engine = engine_with(job)
    told = Damage(engine.view, FaultBook(), {"a": mending}, {}, now).plain()
    (repair,) = told["repairs"]
    return repair["stage"], repair["waits-for"]


def test_a_repair_says_how_far_it_is_and_what_it_waits_for() -> None:
    job = Job("a", A2, 8, 1, recovery=FORCED)

    assert stage_of(Mending(1.0), job) == ("found", "its pods to be deleted")
    assert stage_of(Mending(1.0, braked=True), job) == ("braked", "the brake")
    assert stage_of(Mending(1.0, deleted=(0,)), job) == ("placed", "")
    assert stage_of(Mending(1.0, deleted=(0, 1)), job) == (
        "placing",
        "places for 1 pod",
    )
    gone = Damage(
        Engine((N0,)).view, FaultBook(), {"a": Mending(1.0, deleted=(0,))}, {}, 9
    )
    assert gone.plain()["repairs"][0]["stage"] == "gone"


def test_one_that_finds_no_place_says_what_is_deleted_next() -> None:
    stuck = Mending(1.0, deleted=(0, 1), stuck_at=6.0)
    job = Job("a", A2, 8, 1, recovery=FORCED)

    assert stage_of(stuck, job) == (
        "stuck",
        "a place for its pods, for 4 s; then all of it is deleted, in 8 s",
    )
    _stage, words = stage_of(stuck, replace(job, recovery=Recovery(escalates=False)))
    assert words == "a place for its pods, for 4 s"
    _stage, words = stage_of(replace(stuck, reach=Reach.JOB), job)
    assert words == "a place for its pods, for 4 s"
    node = Node("n0", A3, 16, 0xFFFF, superpod=0)
    engine = engine_with(Job("a", A3, 16, recovery=FORCED), product_nodes=(node,))
    told = Damage(engine.view, FaultBook(), {"a": stuck}, {}, 13.0).plain()
    assert told["repairs"][0]["waits-for"] == (
        "a place for its pods, for 7 s; then its logical SuperPoD is deleted, now"
    )


def test_one_whose_pods_end_says_when_they_are_made_to() -> None:
    job = Job("a", A2, 8, recovery=Recovery(mode=Mode.GRACE))
    engine = engine_with(job)
    engine.handle_all([PodsEnding("a", (0,))], 1.0)
    mending = Mending(1.0, deleted=(0,))

    told = Damage(engine.view, FaultBook(), {"a": mending}, {}, 801.0).plain()

    assert told["repairs"][0]["stage"] == "ending"
    assert told["repairs"][0]["waits-for"] == "1 pod to end, by force in 100 s"


def test_the_brake_counts_what_was_deleted_a_while_ago() -> None:
    engine = engine_with(Job("a", A2, 8), Job("b", A2, 8))
    repairs = {
        "a": Mending(1.0, deleted=(0,), deleted_at=50.0),
        "b": Mending(1.0, deleted=(0,), deleted_at=2.0),
    }

    brake = Damage(engine.view, FaultBook(), repairs, {}, 70.0).plain()["brake"]

    assert brake == {
        "engaged": False,
        "held": [],
        "deleted": 1,
        "pods": 2,
        "percent": 5,
        "seconds": 60,
    }


# What is heard and said.


def test_pods_are_deleted_because_of_the_faults_that_the_record_names() -> None:
    both = replace(ILL, faulty=0b11000, unhealthy=0b11000)
    told = Chronicle([N0, N1])
    told.hear([NodesChanged((both,)), PodsAil("b", (Ailment(0, Cause.POD),))], 3.0)
    record = Record(
        3.0,
        ailments=(Ailment(0, Cause.CHIP, "n0"),),
        placements=(Placement(0, "n0", (0, 1, 2, 3)),),
        retries_used=1,
    )
    told.note([Report("a", Verdict.BRAKED, "")], 3.0)
    assert told.braked == {"a"}
    told.note([Remember("a", record), Delete("a", (0,), "CardUnhealthy", "")], 4.0)

    acted = {f.part: (f.acted, f.jobs) for f in told.book.open.values()}
    assert acted == {"chip 3": (4.0, ("a",)), "chip 4": (None, ()), "pod 0": (None, ())}
    assert told.used == {"a": 1}
    assert not told.braked
    told.note([Delete("b", (0,), "pod-failed", "")], 5.0)
    told.note([Remember("a", None)], 5.0)
    assert not told.records


def test_jobs_and_nodes_that_go_are_heard_of() -> None:
    told = Chronicle([N0, N1])
    told.hear(
        [
            RepairKnown("a", Record(1.0)),
            RepairKnown("b", Record(1.0)),
            PodsAil("a", (Ailment(0, Cause.POD),)),
            JobGone("a"),
            JobGone("b", returns=True),
            NodesGone(("n1", "unknown")),
        ],
        2.0,
    )

    assert [*told.book.open] == [("n1", Cause.NODE, "")]
    assert [*told.records] == ["b"]
    told.hear([FaultsKnown((Fault("n1", Cause.NODE, seen=0.5),))], 3.0)
    assert [each.seen for each in told.book.open.values()] == [0.5]


def test_what_a_look_does_not_show_has_recovered() -> None:
    written = [
        CHIP,
        replace(CHIP, part="chip 4"),
        Fault("a", Cause.POD, "pod 0", seen=1.0),
        Fault("gone", Cause.POD, "pod 0", seen=1.0),
    ]
    told = looked_at([NodesChanged((ILL,)), JobArrived(Job("a", A2, 8))], written, 9.0)

    assert [*told.book.open.values()] == [CHIP]
    assert len(told.book.recent) == 3


def test_lives_are_read_as_they_were_written() -> None:
    faults = (CHIP, Fault("n1", Cause.REFUSAL, seen=2.5, why="no", until=9.0))
    assert read(write(faults)) == faults

    def listed(data: dict[str, str] | None) -> Lives:
        return lives_of(msgspec.json.encode({"items": [{"data": data}]}))

    assert listed({KEY: write(faults)}) == Lives(faults, is_there=True)
    assert listed({"fault-node": "[]"}) == listed(None) == Lives()
    bad = listed({KEY: '[{"where": 3}]'})
    assert bad.trouble.startswith("ConfigMap volcano-system/vcjob-fault-npu-cm, ringle")


# A cluster.


def look_of(stage: Stage, lives: Lives, wanted: Wanted | None = None) -> Plain:
    world = observed(stage)
    return faults_in(Look(world, stage.now), world, lives, wanted or Wanted())


def shown(found: Plain, **more: Any) -> list[str]:  # noqa: ANN401
    console = Console(width=80, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(Faults(found, **more))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_cluster_without_lives_has_faults_since_nobody_knows_when() -> None:
    stage = Stage([node("a"), node("b", ready="False")])

    found = look_of(stage, Lives())

    (fault,) = found["faults"]
    assert (fault["where"], fault["words"], fault["seen"]) == ("b", "not ready", None)
    lines = shown(found)
    assert lines[0].endswith("UTC  1 fault on 1 node")
    assert lines[1].startswith("since when is not known: no scheduler has written")


def test_lives_that_were_written_down_are_shown() -> None:
    stage = Stage([node("a"), node("b", ready="False")])
    now = stage.now
    lives = Lives(
        (
            Fault("b", Cause.NODE, seen=now - 300, acted=now - 299, jobs=("x/j",)),
            Fault("a", Cause.CHIP, "chip 1", seen=now - 9, recovered=now - 5),
            Fault("a", Cause.REFUSAL, seen=now - 60, why="no room", until=now + 240),
        ),
        is_there=True,
    )

    lines = shown(look_of(stage, lives, Wanted(recovered=True)))

    assert "2 faults on 2 nodes, 1 recovered, 1 node set aside" in lines[0]
    text = "\n".join(lines)
    assert "b      not ready         5 min ago  1 s later             x/j" in text
    assert "a      chip 1 unhealthy  9 s ago               4 s later" in text
    assert "  a, for 4 min more: no room" in text
    assert len(look_of(stage, lives)["faults"]) == 2


def test_faults_of_one_node_or_one_job_can_be_asked_for() -> None:
    stage = Stage([node("a"), node("b")])
    stage.pod("p", 8)
    stage.cycle()
    where = stage.bound["p"].split()[0]
    other = "b" if where == "a" else "a"
    lives = Lives(
        tuple(Fault(n, Cause.REFUSAL, seen=1.0, until=9e9) for n in ("a", "b")),
        is_there=True,
    )

    found = look_of(stage, lives, Wanted(node=other))
    assert [each["where"] for each in found["faults"]] == [other]
    assert [each["node"] for each in found["set-aside"]] == [other]
    for name in ("p", "job/p", "default/p", "pod default/p"):
        found = look_of(stage, lives, Wanted(job=name, namespace="default"))
        assert [each["where"] for each in found["faults"]] == [where]
        assert not found["set-aside"]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Wanted(node="nope"), "--node is 'nope', want the name of a node"),
        (Wanted(job="nope"), "--job is 'nope', want the name of a job; hint: there is"),
    ],
)
def test_names_that_nobody_has_are_refused(wanted: Wanted, told: str) -> None:
    with pytest.raises(BadUse, match=told):
        look_of(Stage("a"), Lives(), wanted)


def test_what_could_not_be_read_is_said() -> None:
    found = look_of(Stage("a"), Lives(trouble="not allowed"))

    assert shown(found)[1] == "lives are not known: not allowed"


# The screen.


def screen_of(told: Chronicle, *jobs: Job, now: float = 10.0) -> list[str]:
    engine = engine_with(*jobs)
    return shown(damage_of(engine.view, told, now).plain() | {"names": {"a": "A"}})


def test_a_storm_is_one_row_for_each_node_and_the_brake_says_so() -> None:
    told = Chronicle([N0, N1])
    ill = replace(N0, unhealthy=0xFF, faulty=0xFF)
    told.hear([NodesChanged((ill, replace(N1, down=Down.SWITCH)))], 4.0)
    told.hear(
        [RepairKnown("a", Record(4.0, ailments=(Ailment(0, Cause.CHIP, "n0"),)))], 4
    )
    told.note([Report("a", Verdict.BRAKED, "")], 4.0)

    lines = screen_of(told, Job("a", A2, 8, recovery=FORCED))

    assert lines[0].endswith("9 faults on 2 nodes, 1 job being repaired")
    assert lines[1].startswith("the brake is on: no more than 5 % of 1 pod are deleted")
    assert lines[1].endswith("in 60 s; it holds back A")
    assert "n0     chips 0-7 unhealthy      6 s ago" in lines
    assert "n1     its switch is unhealthy  6 s ago" in lines
    assert "  pod 0 of a, on n0: waits for the brake" in lines
    assert "  A: faulty pods, found 6 s ago; nothing deleted" in lines
    assert "    waits for: the brake" in lines


def test_a_job_being_repaired_shows_what_is_held_for_it() -> None:
    told = Chronicle([N0, N1])
    record = Record(4.0, reach=Reach.JOB, deleted=(0, 1, 2), deleted_at=5.0)
    told.hear([RepairKnown("a", record)], 4.0)

    lines = screen_of(told, Job("a", A2, 8, recovery=FORCED))

    assert "3 pods deleted in the last 60 s; the brake is at 5 % of 1 pod" in lines
    assert "  A: the whole job, found 6 s ago; pods 0-2 deleted, 0 back" in lines
    assert "    waits for: places for 2 pods" in lines
    assert "    its places are held for 4 min more" in lines


def test_a_repair_that_is_over_is_none() -> None:
    told = Chronicle([N0])
    told.hear([RepairKnown("a", Record(4.0, is_over=True, retries_used=1))], 4.0)

    assert screen_of(told, Job("a", A2, 8))[0].endswith("UTC  no faults")


def test_of_many_faults_some_are_shown() -> None:
    told = Chronicle(replace(N0, name=f"n{i:02}", down=Down.SWITCH) for i in range(50))
    engine = Engine(())

    found = damage_of(engine.view, told, 1.0).plain() | {"names": {}}

    assert "… and 10 more; --json has all" in shown(found)
    assert "… and 48 more; --json has all" in shown(found, rows=2)


def test_pods_on_chips_that_are_shown_together_are_too() -> None:
    common: Plain = {"where": "n0", "cause": "CardUnhealthy", "acted": None, "jobs": []}
    faults = [
        common
        | {
            "part": f"chip {i}",
            "words": f"chip {i} unhealthy",
            "seen": 1,
            "recovered": None,
            "pods": {"a": [i]},
            "means": [f"pod {i} of a: is repaired"],
        }
        for i in range(3)
    ]

    (row,) = rows_of(faults)

    assert row["words"] == "chips 0-2 unhealthy"
    assert row["means"] == ["pods 0-2 of a: is repaired"]


# A run.

RUN = """
about: A node is lost and comes back.
nodes:
- {name: "n{i}", count: 2, product: atlas-800t-a2}
jobs:
- {name: infer, chips: 4}
then:
- at: 10
  nodes: [{name: n1, product: atlas-800t-a2, faulty: [6, 7]}]
- at: 12
  nodes: [{name: n0, product: atlas-800t-a2, network-faulty: [0]}]
- at: 30
  nodes: [{name: n1, product: atlas-800t-a2}]
"""


def test_a_scenario_is_looked_at_after_its_last_event(
    ringleaf: Ringleaf, scenario: Callable[[str], str]
) -> None:
    done = ringleaf("faults", "-f", scenario(RUN), "--all")

    assert (done.status, done.err) == (0, "")
    assert done.lines == [
        "A node is lost and comes back.",
        "",
        "30 s  1 fault on 1 node, 2 recovered",
        "",
        "where  what                         seen     acted on  recovered  jobs",
        "n0     network of chip 0 unhealthy  at 12 s",
        "n1     chips 6-7 unhealthy          at 10 s            at 30 s",
        "",
        "Pods that are on them:",
        "  pod 0 of infer, on n0: stays, nobody is moved for the network of a chip",
    ]


def test_json_has_one_line_for_each_document(
    ringleaf: Ringleaf, scenario: Callable[[str], str]
) -> None:
    file = scenario(f"{RUN}---{RUN}")

    done = ringleaf("faults", "-f", file, "--json", "--node", "n0")

    told = [json.loads(line) for line in done.out.splitlines()]
    assert [len(each["faults"]) for each in told] == [1, 1]
    assert told[0]["faults"][0]["cause"] == "CardNetworkUnhealthy"
    assert ringleaf("faults", "-f", file).out.count("1 fault on 1 node") == 2


def test_a_scenario_is_run_without_a_cluster(
    ringleaf: Ringleaf, scenario: Callable[[str], str]
) -> None:
    done = ringleaf("faults", "-f", scenario(RUN), "--context", "x")

    assert done.status == 2
    assert "--context goes with a live cluster" in done.err
