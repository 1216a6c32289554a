"""What faults cost, counted from what an engine says, and served as metrics."""

from ringleaf.engine.event import JobGone, RepairKnown
from ringleaf.framework.fault_log import FaultLog
from ringleaf.framework.instruction import (
    Delete,
    PersistRepair,
    Repaired,
    Report,
    Verdict,
)
from ringleaf.framework.repair import Repair
from ringleaf.kube.toll import NEVER_RAN, Toll
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, FaultKey, Part, PartKind, Record, RestartScope
from ringleaf.policies.products import PRODUCTS
from tests.kube.test_page import Scene

A2 = PRODUCTS["atlas-800t-a2"]
WELL = Node("n0", A2, 8, 0xFF)
ILL = Node("n0", A2, 8, 0xFF, faulty=0b11, unhealthy=0b11)
FOUND = Record(10.0, deleted=(0,))


def a_toll() -> Toll:
    return Toll(FaultLog(), {})


def test_pods_are_counted_by_cause_and_force() -> None:
    toll = a_toll()

    toll.note(
        [
            Delete("a", (0, 1), Cause.CHIP, ""),
            Delete("a", (2,), Cause.CHIP, "", force=True),
            Delete("b", (0,), NEVER_RAN, ""),
            Report("b", Verdict.RELEASED, ""),
        ],
        1.0,
    )

    assert toll.deleted == {
        (Cause.CHIP, False): 2,
        (Cause.CHIP, True): 1,
        (NEVER_RAN, False): 1,
    }
    assert toll.releases == 1


def test_a_repair_that_is_finished_counts_with_its_time() -> None:
    toll = a_toll()
    wider = Record(10.0, scope=RestartScope.JOB)

    toll.note([PersistRepair("a", FOUND)], 10.0)
    toll.note([PersistRepair("a", wider), PersistRepair("a", wider)], 12.0)
    toll.note([Repaired("a", wider), PersistRepair("a", None)], 25.0)

    assert toll.escalated == {RestartScope.JOB: 1}
    assert toll.finished == {RestartScope.JOB: 1}
    assert toll.repair_s.total == 15.0


def test_a_job_that_is_repaired_another_time_was_not_escalated() -> None:
    toll = a_toll()
    wider = Record(10.0, scope=RestartScope.JOB)
    over = Record(10.0, is_over=True)
    toll.note(
        [
            PersistRepair("a", wider),
            PersistRepair("a", over),
            PersistRepair("a", FOUND),
        ],
        10.0,
    )
    toll.note([PersistRepair("b", wider)], 10.0)
    toll.hear([JobGone("b"), RepairKnown("b", over)])
    toll.note([PersistRepair("b", FOUND)], 10.0)

    assert not toll.escalated


def test_a_repair_that_somebody_else_began_can_be_escalated() -> None:
    toll = a_toll()
    toll.hear([RepairKnown("a", FOUND), JobGone("a", returns=True)])

    toll.note([PersistRepair("a", Record(10.0, scope=RestartScope.BLOCK))], 12.0)

    assert toll.escalated == {RestartScope.BLOCK: 1}


def test_the_brake_holds_back_a_job_once_until_its_pods_are_deleted() -> None:
    toll = a_toll()
    held = Report("a", Verdict.RATE_LIMITED, "")

    toll.note([held, held], 1.0)
    assert toll.held_back == 1
    toll.note([Delete("a", (0,), Cause.NODE, ""), held], 2.0)
    assert toll.held_back == 2


def test_lives_of_faults_are_counted_once() -> None:
    toll = a_toll()
    toll.book.nodes_changed(None, ILL, 1.0)
    chip = FaultKey("n0", Cause.CHIP, Part(PartKind.CHIP, 0))
    toll.book.acted([chip], "a", 3.0)
    toll.note([], 3.0)
    toll.note([], 4.0)
    toll.book.nodes_changed(ILL, WELL, 11.0)
    toll.note([], 11.0)

    assert toll.acted_s[Cause.CHIP].total == 2.0
    assert toll.recovered_s[Cause.CHIP].total == 20.0


def test_it_is_all_served() -> None:
    scene = Scene()
    toll = scene.scheduler.loop.toll
    toll.book.nodes_changed(None, ILL, 1.0)
    toll.repairs = {"a": Repair.of("a", FOUND, None), "b": Repair("b", 20.0)}
    toll.repairs["b"].rate_limited = True
    toll.note(
        [
            Report("b", Verdict.RATE_LIMITED, ""),
            Delete("a", (0, 1), Cause.CHIP, "", force=True),
        ],
        1.0,
    )

    served = scene.values
    assert served("ringleaf_faults")[Cause.CHIP,] == 2
    assert served("ringleaf_fault_events_total")[Cause.CHIP, "seen"] == 2
    assert served("ringleaf_fault_deletions_total")[Cause.CHIP, "true"] == 2
    assert served("ringleaf_repairs")["pods",] == 2
    assert served("ringleaf_oldest_repair_seconds")[()] > 0
    assert served("ringleaf_brake_engaged")[()] == 1
    assert served("ringleaf_held_back_repairs_total")[()] == 1
