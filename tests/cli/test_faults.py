"""Faults as people see them: of a cluster in memory and of a run."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from ringleaf.cli.failure import BadUse
from ringleaf.cli.fault_screen import FaultScreen, rows_of
from ringleaf.cli.fault_view import FaultView, adopt
from ringleaf.cli.faults import FaultQuery, faults_in
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.engine.event import (
    ConfChanged,
    JobArrived,
    NodesChanged,
    NodesGone,
    PodFaultsReported,
    PodsEnding,
    RepairKnown,
)
from ringleaf.framework.fault_log import FaultLog
from ringleaf.framework.repair import Repair
from ringleaf.kube.fault_history import FaultHistory, lives_of
from ringleaf.kube.fault_store import BRAKED, DELETED
from ringleaf.kube.fault_texts import LIVES
from ringleaf.kube.snapshot import Snapshot
from ringleaf.model.cluster import Node
from ringleaf.model.fault import (
    Cause,
    Deletion,
    Down,
    Fault,
    FaultMode,
    PodFault,
    Record,
    Recovery,
    RestartScope,
    SubHealth,
)
from ringleaf.model.job import Job
from ringleaf.model.placement import Placement
from ringleaf.policies.products import PRODUCTS
from tests.cli.conftest import Ringleaf
from tests.cli.test_status import observed
from tests.engine.story import PLAIN, conf
from tests.kube.stage import Stage, node

Plain = dict[str, Any]
A2 = PRODUCTS["atlas-800t-a2"]
A3 = PRODUCTS["atlas-900-a3"]
N0, N1 = (Node(name, A2, 8, 0xFF) for name in ("n0", "n1"))
ILL = replace(N0, faulty=0b1000, unhealthy=0b1000)
FORCED = Recovery(mode=FaultMode.FORCE, retries=2)


def engine_with(*jobs: Job, nodes: tuple[Node, ...] = (N0, N1)) -> Engine:
    """An engine that decides nothing, in which *jobs* run on nodes of their own."""
    engine, free = Engine(nodes, conf=DEFAULT.quiet), iter(nodes)
    for job in jobs:
        places = tuple(
            Placement(i, next(free).name, tuple(range(job.chips)))
            for i in range(job.replicas)
        )
        engine.handle_all([JobArrived(job, places)], 0.0)
    return engine


def repair_in(engine: Engine, name: str = "a", **more: Any) -> Repair:  # noqa: ANN401
    """A repair of which the engine is told, with *more* said of it."""
    record = Record(1.0, deleted=(0,), placements=(Placement(0, "n1", (0,)),))
    engine.handle_all([RepairKnown(name, record)], 1.0)
    repair = engine.repairs[name]
    if "deleted" in more:
        repair.deletion.awaiting_replacement = more.pop("deleted")
    for key, value in more.items():
        owner = repair if hasattr(repair, key) else repair.deletion
        assert hasattr(owner, key)
        setattr(owner, key, value)
    return repair


def told_of(engine: Engine, fault: Fault) -> list[str]:
    """What one fault means for pods."""
    engine.fault_log.restore([fault], 5.0)
    (told,) = FaultView(engine, 5.0).plain()["faults"]
    lines: list[str] = told["means"]
    return lines


CHIP = Fault("n0", Cause.CHIP, "chip 3", seen=1.0)
A = Job("a", A2, 8, recovery=FORCED)


@pytest.mark.parametrize(
    ("recovery", "fault", "lot"),
    [
        (Recovery(), CHIP, "stays, fault-scheduling is off"),
        (FORCED, CHIP, "to be deleted, fault-scheduling is force"),
        (
            FORCED,
            Fault("n0", Cause.NODE, seen=1.0),
            "to be deleted, fault-scheduling is force",
        ),
        (
            Recovery(mode=FaultMode.EXTERNAL_GRACE),
            CHIP,
            "left to its controller, fault-scheduling is external-grace",
        ),
        (FORCED, replace(CHIP, cause=Cause.NETWORK), "stays, no pod is moved"),
        (FORCED, replace(CHIP, cause=Cause.SUB_HEALTH), "stays, subHealthyStrategy"),
        (
            replace(FORCED, sub_health=SubHealth.FORCE_EXIT),
            replace(CHIP, cause=Cause.SUB_HEALTH),
            "to be deleted, ",
        ),
        (FORCED, Fault("a", Cause.POD, "pod 0"), "to be restarted, 2 retries left"),
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
    engine = engine_with(replace(A, recovery=recovery), nodes=(N0,))
    book = engine.context.repairs.fault_log = FaultLog()

    told = told_of(engine, fault)

    assert book.open
    assert told[-1].startswith(f"pod 0 of a: {lot}")


def test_a_node_that_is_gone_is_more_than_not_ready() -> None:
    engine = engine_with(A)

    engine.handle_all([NodesGone(("n0",))], 2.0)

    (told,) = FaultView(engine, 2.0).plain()["faults"]
    assert (told["where"], told["words"]) == ("n0", "gone")


def test_a_pod_that_is_a_job_by_itself_is_named_once() -> None:
    engine = engine_with(replace(A, name="pod default/x", recovery=Recovery()))
    engine.handle_all([NodesChanged((ILL,))], 2.0)

    (line,) = told_of(engine, CHIP)

    assert line == "pod default/x: stays, fault-scheduling is off"


def test_a_job_that_is_repaired_says_so_and_one_that_is_held_back_why() -> None:
    engine = engine_with(A)
    engine.handle_all([NodesChanged((ILL,))], 2.0)
    repair = repair_in(engine)

    assert told_of(engine, CHIP) == ["pod 0 of a: is being repaired"]
    repair.rate_limited = True
    assert told_of(engine, CHIP) == ["pod 0 of a: waits for the eviction rate limit"]


def test_retries_that_are_used_up_are_counted() -> None:
    engine, fault = engine_with(A), Fault("a", Cause.POD, "pod 0")
    used = engine.context.repairs.retries_used

    used["a"] = 1
    told = told_of(engine, fault)
    assert told == ["pod 0 of a: to be restarted, 1 retry left"]
    used["a"] = 2
    assert told_of(engine, fault) == ["pod 0 of a: stays, all 2 retries used"]
    gone = told_of(engine_with(A), replace(fault, where="b"))
    assert gone == ["pod 0 of b: the job is gone"]


def test_only_pods_that_hold_the_chip_are_on_its_fault() -> None:
    engine = engine_with(Job("a", A2, 2, recovery=FORCED))

    engine.handle_all([NodesChanged((replace(N0, unhealthy=0b1010),))], 2.0)

    first, second = FaultView(engine, 5.0).plain()["faults"]
    assert (first["part"], first["pods"]) == ("chip 1", {"a": [0]})
    assert second["means"] == ["no pod is affected"]


def stage_of(job: Job = A, now: float = 10.0, **more: Any) -> tuple[str, str]:  # noqa: ANN401
    engine = engine_with(job)
    repair_in(engine, **more)
    (repair,) = FaultView(engine, now).plain()["repairs"]
    return repair["stage"], repair["waits-for"]


def test_a_repair_says_how_far_it_is_and_what_it_waits_for() -> None:
    assert stage_of(deleted=set()) == ("found", "its pods to be deleted")
    assert stage_of(rate_limited=True) == ("rate-limited", "the eviction rate limit")
    assert stage_of() == ("placed", "")
    assert stage_of(deleted={0, 1}) == ("placing", "places for 1 pod")
    gone = Engine((N0,), conf=DEFAULT.quiet)
    repair_in(gone)
    assert FaultView(gone, 9.0).plain()["repairs"][0]["stage"] == "gone"


def test_one_that_finds_no_place_says_what_is_deleted_next() -> None:
    stuck = "a place for its pods, for 4 s"

    assert stage_of(deleted={0, 1}, unschedulable_since=6.0) == (
        "stuck",
        f"{stuck}; then all of it is deleted, in 8 s",
    )
    stays = replace(A, recovery=Recovery(escalates=False))
    assert stage_of(stays, unschedulable_since=6.0) == ("stuck", stuck)
    assert stage_of(unschedulable_since=6.0, scope=RestartScope.JOB) == ("stuck", stuck)
    off = replace(A, recovery=Recovery(FaultMode.EXTERNAL_GRACE))
    assert stage_of(off, deleted={0, 1}, unschedulable_since=6.0) == ("stuck", stuck)
    nodes = tuple(Node(f"n{n}", A3, 16, 0xFFFF, superpod=0) for n in range(2))
    for block, next_one in ((16, "its logical SuperPoD"), (32, "all of it")):
        job = Job("a", A3, 16, 2, sp_block=block, recovery=FORCED)
        engine = engine_with(job, nodes=nodes)
        repair_in(engine, unschedulable_since=6.0)
        due = "now" if block == 16 else "in 5 s"
        assert FaultView(engine, 13.0).plain()["repairs"][0]["waits-for"] == (
            f"a place for its pods, for 7 s; then {next_one} is deleted, {due}"
        )


def test_one_whose_pods_end_says_when_they_are_made_to() -> None:
    engine = engine_with(replace(A, recovery=Recovery(mode=FaultMode.GRACE)))
    repair_in(engine)
    engine.handle_all([PodsEnding("a", (0,))], 1.0)

    (told,) = FaultView(engine, 801.0).plain()["repairs"]

    assert told["stage"] == "ending"
    assert told["waits-for"] == "1 pod to end, by force in 100 s"


def test_the_brake_counts_what_was_deleted_a_while_ago() -> None:
    engine = engine_with(A, Job("b", A2, 8))
    for name, at in (("a", 50.0), ("b", 2.0)):
        record = Record(1.0, deleted=(0,), deleted_at=at)
        engine.handle_all([RepairKnown(name, record)], 60.0)

    brake = FaultView(engine, 70.0).plain()["rate-limit"]

    assert brake == {
        "engaged": False,
        "held": [],
        "deleted": 1,
        "pods": 2,
        "percent": 5,
        "seconds": 60,
    }


def test_what_a_look_does_not_show_has_recovered() -> None:
    engine = engine_with(A)
    ails = PodFaultsReported("a", (PodFault(0, Cause.POD),))
    engine.handle_all([NodesChanged((ILL,)), ails], 8.0)
    ailing = Fault("a", Cause.POD, "pod 0", seen=1.0)
    gone = Fault("gone", Cause.POD, "pod 0", seen=1.0)

    adopt(engine, [CHIP, replace(CHIP, part="chip 4"), ailing, gone], 9.0)

    assert {*engine.fault_log.open.values()} == {CHIP, ailing}
    assert [each.where for each in engine.fault_log.recent] == ["n0", "gone"]


def test_lives_are_read_as_they_were_written() -> None:
    faults = (CHIP, Fault("n1", Cause.REFUSAL, seen=2.5, why="no", until=9.0))
    written = msgspec.json.encode(faults).decode()

    def listed(data: dict[str, str] | None) -> FaultHistory:
        return lives_of(msgspec.json.encode({"items": [{"data": data}]}))

    assert listed({LIVES: written}) == FaultHistory(faults, is_there=True)
    assert listed({"fault-node": "[]"}) == listed(None) == FaultHistory()
    waits = listed({LIVES: "[]", BRAKED: '["default/g"]'})
    assert waits == FaultHistory(is_there=True, braked=("default/g",))
    assert listed({LIVES: "[]", BRAKED: "?"}) == FaultHistory(is_there=True)
    assert listed({BRAKED: '["default/g"]'}) == FaultHistory(braked=("default/g",))
    deletion = Deletion(5.25, "default/g", 2)
    gone = msgspec.json.encode([deletion]).decode()
    assert listed({LIVES: "?", DELETED: gone}).deletions == (deletion,)
    bad = listed({LIVES: '[{"where": 3}]'})
    assert bad.trouble.startswith("ConfigMap volcano-system/vcjob-fault-npu-cm, ringle")


# A cluster.


def look_of(
    stage: Stage, lives: FaultHistory, wanted: FaultQuery | None = None
) -> Plain:
    cache = observed(stage)
    return faults_in(Snapshot(cache, stage.now), cache, lives, wanted or FaultQuery())


def shown(found: Plain, **more: Any) -> list[str]:  # noqa: ANN401
    console = Console(width=80, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(FaultScreen(found, **more))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_jobs_that_wait_for_the_brake_are_named() -> None:
    """As the scheduler has written it down: nobody who looks can count that."""
    stage = Stage("a b")
    stage.gang("g", 2, labels={"fault-scheduling": "force"})
    stage.cycle()

    found = look_of(
        stage, FaultHistory(is_there=True, braked=("default/g", "default/gone"))
    )

    assert found["rate-limit"]["engaged"]
    assert found["rate-limit"]["held"] == ["default/g"]
    assert [each["stage"] for each in found["repairs"]] == ["rate-limited"]
    assert "held back: default/g" in " ".join(" ".join(shown(found)).split())


def test_a_cluster_without_lives_has_faults_since_nobody_knows_when() -> None:
    stage = Stage([node("a"), node("b", ready="False")])

    found = look_of(stage, FaultHistory())

    (fault,) = found["faults"]
    assert (fault["where"], fault["words"], fault["seen"]) == ("b", "not ready", None)
    lines = shown(found)
    assert lines[0].endswith("UTC  1 fault on 1 node")
    assert lines[1].startswith("the history of faults is not known: no scheduler has")


def test_without_faults_nobody_is_told_that_lives_are_not_known() -> None:
    (line,) = shown(look_of(Stage([node("a")]), FaultHistory()))

    assert line.endswith("UTC  no faults")


def test_lives_that_were_written_down_are_shown() -> None:
    stage = Stage([node("a"), node("b", ready="False")])
    now = stage.now
    lives = FaultHistory(
        (
            Fault("b", Cause.NODE, seen=now - 300, acted=now - 299, jobs=("x/j",)),
            Fault("a", Cause.CHIP, "chip 1", seen=now - 9, recovered=now - 5),
            Fault("a", Cause.REFUSAL, seen=now - 60, why="no room", until=now + 240),
        ),
        is_there=True,
    )

    lines = shown(look_of(stage, lives, FaultQuery(recovered=True)))

    assert "2 faults on 2 nodes, 1 recovered, 1 node quarantined" in lines[0]
    text = "\n".join(lines)
    assert "b      not ready         5.0 min ago  1 s later             x/j" in text
    assert "a      chip 1 unhealthy  9 s ago                 4 s later" in text
    assert "  a, for 4.0 min more: no room" in text
    assert len(look_of(stage, lives)["faults"]) == 2


def test_faults_of_one_node_or_one_job_can_be_asked_for() -> None:
    stage = Stage([node("a"), node("b")])
    stage.pod("p", 8)
    stage.cycle()
    where = stage.bound["p"].split()[0]
    other = "b" if where == "a" else "a"
    lives = FaultHistory(
        tuple(Fault(n, Cause.REFUSAL, seen=1.0, until=9e9) for n in ("a", "b")),
        is_there=True,
    )

    found = look_of(stage, lives, FaultQuery(node=other))
    assert [each["where"] for each in found["faults"]] == [other]
    assert [each["node"] for each in found["quarantined"]] == [other]
    for name in ("p", "job/p", "default/p", "pod default/p"):
        found = look_of(stage, lives, FaultQuery(job=name, namespace="default"))
        assert [each["where"] for each in found["faults"]] == [where]
        assert not found["quarantined"]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (FaultQuery(node="nope"), "--node is 'nope', want the name of a node"),
        (
            FaultQuery(job="nope"),
            "--job is 'nope', want the name of a job; hint: there is",
        ),
    ],
)
def test_names_that_nobody_has_are_refused(wanted: FaultQuery, told: str) -> None:
    with pytest.raises(BadUse, match=told):
        look_of(Stage("a"), FaultHistory(), wanted)


def test_a_job_that_ends_while_somebody_looks_is_not_refused() -> None:
    wanted = FaultQuery(job="a")
    wanted.check({"faults": [], "repairs": []}, (), ["a"])

    wanted.check({"faults": [], "repairs": []}, (), [])

    assert wanted.job == "a"


def test_what_could_not_be_read_is_said() -> None:
    found = look_of(Stage("a"), FaultHistory(trouble="not allowed"))

    assert shown(found)[1] == "the history of faults is not known: not allowed"
    late = shown(found | {"trouble": "status 500"}, now=found["at"] + 60)
    assert late[:2] == [
        "1970-01-01 00:17:40 UTC  no faults",
        "not up to date: status 500",
    ]


# The screen.


def screen_of(engine: Engine, now: float = 10.0, **more: Any) -> list[str]:  # noqa: ANN401
    return shown(FaultView(engine, now).plain() | {"names": {"a": "A"}}, **more)


def test_a_storm_is_one_row_for_each_node_and_the_brake_says_so() -> None:
    engine = engine_with(A)
    ill = replace(N0, unhealthy=0xFF, faulty=0xFF)
    bad = replace(N1, down=Down.SWITCH, ready=False)
    engine.handle_all([NodesChanged((ill, bad))], 4.0)
    repair_in(engine, since=4.0, deleted=set(), rate_limited=True)

    lines = screen_of(engine)

    assert lines[0].endswith("9 faults on 2 nodes, 1 job being repaired")
    limit = "eviction rate limit: one job (5 % of 1 is below 1) in 60 s"
    assert lines[1] == f"{limit}; held back: A"
    assert "n0     chips 0-7 unhealthy      6 s ago" in lines
    assert "n1     its switch is unhealthy  6 s ago" in lines
    assert "  pod 0 of a, on n0: waits for the eviction rate limit" in lines
    assert "  A: faulty pods, found 6 s ago; no pod deleted" in lines
    assert "    waits for: the eviction rate limit" in lines


def test_a_job_being_repaired_shows_what_is_held_for_it() -> None:
    engine = engine_with()
    record = Record(
        4.0,
        scope=RestartScope.JOB,
        deleted=(0, 1, 2),
        deleted_at=5.0,
        placements=(Placement(0, "n1", (0,)), Placement(1, "n1", (1,))),
    )
    engine.handle_all([RepairKnown("a", record)], 6.0)

    lines = screen_of(engine)

    limit = "rate limit: one job (5 % of 3 is below 1)"
    assert f"3 pods deleted in the last 60 s; {limit}" in lines
    assert "  A: the whole job, found 6 s ago; pods 0-2 deleted" in lines
    assert "    waits for: its pods to be created again" in lines
    assert "    2 places held for it, for 4.9 min more" in lines


def test_a_repair_that_is_over_is_none() -> None:
    engine = engine_with(A)
    over = Record(4.0, is_over=True, retries_used=1)
    engine.handle_all([RepairKnown("a", over)], 4.0)

    assert screen_of(engine)[0].endswith("UTC  no faults")


def test_of_many_faults_some_are_shown() -> None:
    nodes = tuple(
        replace(N0, name=f"n{i:02}", down=Down.SWITCH, ready=False) for i in range(50)
    )
    engine = engine_with(nodes=nodes)

    assert "… and 10 more; --json has all" in screen_of(engine)
    assert "… and 48 more; --json has all" in screen_of(engine, rows=2)


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
            "means": [f"pod {i} of a: is being repaired"],
        }
        for i in range(3)
    ]

    (row,) = rows_of(faults)

    assert row["words"] == "chips 0-2 unhealthy"
    assert row["means"] == ["pods 0-2 of a: is being repaired"]


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
        "Affected pods:",
        "  pod 0 of infer, on n0: stays, no pod is moved for the network of a chip",
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
    done = ringleaf("faults", "-f", scenario(RUN), "--watch")
    assert "--watch goes with a live cluster" in done.err


def test_d39_where_the_default_counts_it_is_named() -> None:
    given = {"default-fault-scheduling": "force"}
    plain = replace(A, recovery=Recovery())
    engine = engine_with(plain, nodes=(N0,))
    engine.context.repairs.fault_log = FaultLog()
    changed = conf("allocate", PLAIN, **{"init-params": given})
    engine.handle_all([ConfChanged(changed.quiet)], 1.0)

    told = told_of(engine, CHIP)

    assert told[-1] == "pod 0 of a: to be deleted, default-fault-scheduling is force"
