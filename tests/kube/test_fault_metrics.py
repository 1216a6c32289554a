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
from ringleaf.kube.fault_metrics import NEVER_RAN, FaultMetrics
from ringleaf.model.cluster import Node
from ringleaf.model.fault import Cause, FaultKey, Part, PartKind, Record, RestartScope
from ringleaf.policies.products import PRODUCTS
from tests.kube.test_collector import Scene

A2 = PRODUCTS["atlas-800t-a2"]
WELL = Node("n0", A2, 8, 0xFF)
ILL = Node("n0", A2, 8, 0xFF, faulty=0b11, unhealthy=0b11)
FOUND = Record(10.0, deleted=(0,))


def a_toll() -> FaultMetrics:
    return FaultMetrics(FaultLog(), {})


def test_pods_are_counted_by_cause_and_force() -> None:
    fault_metrics = a_toll()

    fault_metrics.note(
        [
            Delete("a", (0, 1), Cause.CHIP, ""),
            Delete("a", (2,), Cause.CHIP, "", force=True),
            Delete("b", (0,), NEVER_RAN, ""),
            Report("b", Verdict.RELEASED, ""),
        ],
        1.0,
    )

    assert fault_metrics.deleted == {
        (Cause.CHIP, False): 2,
        (Cause.CHIP, True): 1,
        (NEVER_RAN, False): 1,
    }
    assert fault_metrics.releases == 1


def test_a_repair_that_is_finished_counts_with_its_time() -> None:
    fault_metrics = a_toll()
    wider = Record(10.0, scope=RestartScope.JOB)

    fault_metrics.note([PersistRepair("a", FOUND)], 10.0)
    fault_metrics.note([PersistRepair("a", wider), PersistRepair("a", wider)], 12.0)
    fault_metrics.note([Repaired("a", wider), PersistRepair("a", None)], 25.0)

    assert fault_metrics.escalated == {RestartScope.JOB: 1}
    assert fault_metrics.finished == {RestartScope.JOB: 1}
    assert fault_metrics.repair_s.total == 15.0


def test_a_job_that_is_repaired_another_time_was_not_escalated() -> None:
    fault_metrics = a_toll()
    wider = Record(10.0, scope=RestartScope.JOB)
    over = Record(10.0, is_over=True)
    fault_metrics.note(
        [
            PersistRepair("a", wider),
            PersistRepair("a", over),
            PersistRepair("a", FOUND),
        ],
        10.0,
    )
    fault_metrics.note([PersistRepair("b", wider)], 10.0)
    fault_metrics.hear([JobGone("b"), RepairKnown("b", over)])
    fault_metrics.note([PersistRepair("b", FOUND)], 10.0)

    assert not fault_metrics.escalated


def test_a_repair_that_somebody_else_began_can_be_escalated() -> None:
    fault_metrics = a_toll()
    fault_metrics.hear([RepairKnown("a", FOUND), JobGone("a", returns=True)])

    fault_metrics.note(
        [PersistRepair("a", Record(10.0, scope=RestartScope.BLOCK))], 12.0
    )

    assert fault_metrics.escalated == {RestartScope.BLOCK: 1}


def test_the_brake_holds_back_a_job_once_until_its_pods_are_deleted() -> None:
    fault_metrics = a_toll()
    held = Report("a", Verdict.RATE_LIMITED, "")

    fault_metrics.note([held, held], 1.0)
    assert fault_metrics.held_back == 1
    fault_metrics.note([Delete("a", (0,), Cause.NODE, ""), held], 2.0)
    assert fault_metrics.held_back == 2


def test_lives_of_faults_are_counted_once() -> None:
    fault_metrics = a_toll()
    fault_metrics.book.nodes_changed(None, ILL, 1.0)
    chip = FaultKey("n0", Cause.CHIP, Part(PartKind.CHIP, 0))
    fault_metrics.book.mark_acted([chip], "a", 3.0)
    fault_metrics.note([], 3.0)
    fault_metrics.note([], 4.0)
    fault_metrics.book.nodes_changed(ILL, WELL, 11.0)
    fault_metrics.note([], 11.0)

    assert fault_metrics.acted_s[Cause.CHIP].total == 2.0
    assert fault_metrics.recovered_s[Cause.CHIP].total == 20.0


def test_it_is_all_served() -> None:
    scene = Scene()
    fault_metrics = scene.scheduler.loop.fault_metrics
    fault_metrics.book.nodes_changed(None, ILL, 1.0)
    fault_metrics.repairs = {"a": Repair.of("a", FOUND, None), "b": Repair("b", 20.0)}
    fault_metrics.repairs["b"].rate_limited = True
    fault_metrics.note(
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
