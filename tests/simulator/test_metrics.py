"""Every measure, worked out by hand on clusters of a few nodes."""

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from ringleaf.config.reader import DEFAULT
from ringleaf.framework.instruction import Delete, Evict, Repaired, Report, Verdict
from ringleaf.model.decision import Reason
from ringleaf.model.fault import Record
from ringleaf.model.job_labels import Schema
from ringleaf.model.placement import Placement
from ringleaf.model.settings import Settings, SwitchMode
from ringleaf.policies.products import PRODUCTS
from ringleaf.simulator.metrics import SERIES, RunMetrics
from tests.simulator.stage import Stage, nodes, spec

ALL = "01234567"
WAITS = Verdict.WAITING


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    """Five jobs on two leaves of two nodes of 8 chips: 32 chips.

    The first of five is warm-up, so the window is from 10 (the second) to 40 (the
    last).

    ==== ============================= =========== ==========
    time what happens                  chips used  who waits
    ==== ============================= =========== ==========
    0    w (1 chip) starts on A0        1
    10   a (2 x 8) starts on A1, B0    17
    20   w ends; b (4 chips) comes     16          b
    25   b starts on A0                20
    30   c (2 x 8) comes               20          c
    40   d (1 chip) starts on B1       21          c
    50   a ends, c starts on A1, B0    21
    60   b ends                        17
    70   c and d end                    0
    ==== ============================= =========== ==========
    """
    job_specs = [
        spec("w", 0, 1),
        spec("a", 10, 8, 2, runs_s=40.0),
        spec("b", 20, 4, runs_s=35.0),
        spec("c", 30, 8, 2, runs_s=20.0),
        spec("d", 40, 1, runs_s=30.0),
    ]
    stage = Stage(nodes("A 2", "B 2"), job_specs)
    stage.at(0).arrive("w").start("w", A0="0")
    stage.at(10).arrive("a").start("a", A1=ALL, B0=ALL)
    stage.at(20).end("w").arrive("b")
    stage.at(25).start("b", A0="0123")
    stage.at(30).arrive("c")
    stage.at(40).arrive("d").start("d", B1="0")
    stage.at(50).end("a").start("c", A1=ALL, B0=ALL)
    stage.at(60).end("b")
    stage.at(70).end("c").end("d")
    return stage.finish().plain()


def test_the_window_leaves_out_the_first_fifth_of_arrivals(
    small: dict[str, Any],
) -> None:
    assert small["window"] == {"from_s": 10, "to_s": 40}
    assert small["jobs"]["arrived"] == 5
    assert small["jobs"]["counted"] == 4
    assert small["jobs"]["started"] == small["jobs"]["ended"] == 5
    assert small["jobs"]["endings"] == {"done": 5}


def test_utilisation_is_the_area_of_chips_in_use(small: dict[str, Any]) -> None:
    # 17 chips for 10 s, 16 for 5, 20 for 15: 170 + 80 + 300.
    assert small["use"]["utilisation"] == pytest.approx(550 / (32 * 30))
    assert small["use"]["healthy_utilisation"] == pytest.approx(550 / (32 * 30))


def test_the_queue_is_who_waits(small: dict[str, Any]) -> None:
    # b with 4 chips for 5 s, c with 16 chips for 10 s.
    assert small["use"]["mean_queue_length"] == pytest.approx(15 / 30)
    assert small["use"]["mean_waiting_chips"] == pytest.approx((20 + 160) / 30)


def test_fragments_are_what_the_mix_cannot_use(small: dict[str, Any]) -> None:
    # Pods of the workload: 2 of 1 chip (w, d), 1 of 4 (b), 4 of 8 (a, c): 7.
    # A0 with 3 + 4 free: a pod of 4 leaves 3 over, one of 8 all 7: (3 + 4 * 7) / 7.
    # A0 with one ring free: pods of 8 leave 4 over: 4 * 4 / 7. Others: none.
    # 10 s of the first, 5 s of an empty A0, 15 s of the second.
    fragments = 10 * 31 / 7 + 15 * 16 / 7
    # Idle: 15 chips for 10 s, 16 for 5 s, 12 for 15 s.
    idle = 150 + 80 + 180

    assert small["chips"]["mix"] == {"atlas-800-9000": {1: 2, 4: 1, 8: 4}}
    assert small["chips"]["fragmentation"] == pytest.approx(fragments / (32 * 30))
    assert small["chips"]["fragmentation_of_idle"] == pytest.approx(fragments / idle)


def test_no_ring_is_torn_and_hops_are_counted(small: dict[str, Any]) -> None:
    # Seven pods. Those of 8: 12 pairs inside two rings and 16 across: 12 + 48 over
    # 28 pairs, four times; b: 1 for each pair; single chips have no pairs.
    assert small["chips"]["pods"] == 7
    assert small["chips"]["ring_violations"] == 0
    assert small["chips"]["hop_cost"] == pytest.approx((4 * 60 / 28 + 1) / 5)


def test_free_nodes_hold_gangs_as_rules_let_them(small: dict[str, Any]) -> None:
    # Wholly free: B1 for 10 s, A0 and B1 for 5 s, B1 for 15 s. Both leaves are crossed
    # by a, so that 1.0 lets no second job cross: a gang of 1 at most.
    found = small["nodes"]
    assert found["mean_free"] == pytest.approx(35 / 30)
    assert found["largest_gang"] == {"1.0": 1, "whole-leaves": 1}
    # 1 of 1, 1 of 2, 1 of 1.
    share = pytest.approx((10 + 5 / 2 + 15) / 30)
    assert found["largest_gang_of_free"] == {"1.0": share, "whole-leaves": share}
    fragmented = found["external_fragmentation"]
    # Of one free node a gang of 2 can use none, of two it can use both.
    assert fragmented["free"]["2"] == pytest.approx(25 / 30)
    assert fragmented["whole-leaves"]["2"] == 1
    assert fragmented["1.0"]["2"] == 1
    assert {rule["1"] for rule in fragmented.values()} == {0}


def test_jobs_that_cross_leaves_are_told(small: dict[str, Any]) -> None:
    # Of a, b, c, d the gangs a and c take a node under each leaf; one leaf has two.
    found = small["leaves"]
    assert (found["jobs"], found["gangs"], found["avoidable"]) == (2, 2, 2)
    assert (found["share_of_jobs"], found["share_of_gangs"]) == (2 / 4, 1)
    assert found["span_ratio"]["mean"] == 2
    assert (found["at_risk"], found["conflicts"]) == (0, 0)  # c came after a
    assert found["mean_crossing"] == 1
    # a sends over the spine from A1 to B0 and back; c the same, later.
    assert found["hashed_load"] == 1


def test_waits_are_told_by_size(small: dict[str, Any]) -> None:
    found = small["wait_s"]
    assert found["all"]["n"] == 4
    assert found["all"]["mean"] == (0 + 5 + 20 + 0) / 4
    means = {size: each["mean"] for size, each in found["by_size"].items()}
    assert means == {"1": 0, "2-4": 5, "9-64": 10}
    assert small["starvation"] == {"gangs": 2, "max_wait_s": 20}  # a and c: above 8


def test_completion_times_and_slowdown_are_told(small: dict[str, Any]) -> None:
    # a from 10 to 50, b from 20 to 60, c from 30 to 70, d from 40 to 70.
    assert small["jct_s"]["all"]["mean"] == (40 + 40 + 40 + 30) / 4
    # 40 / 40, 40 / 35, 40 / 20, 30 / 30
    slow = (1 + 40 / 35 + 2 + 1) / 4
    assert small["bounded_slowdown"]["all"]["mean"] == pytest.approx(slow)


def test_what_was_not_said_is_blamed_on_what_is_free(small: dict[str, Any]) -> None:
    # b waits 5 s for 4 chips while 16 are free; c 10 s for 16 while 12 are.
    seconds = {name: each["seconds"] for name, each in small["why"]["jobs"].items()}
    assert seconds == {
        "capacity": 10,
        "fragmentation": 5,
        "rule": 0,
        "quota": 0,
        "order": 0,
    }
    assert small["why"]["chips"]["capacity"]["share"] == pytest.approx(160 / 180)
    assert small["why"]["frag_wait_s"] == 5
    assert small["why"]["frag_wait_share"] == pytest.approx(5 / 30)


def test_work_done_is_told(small: dict[str, Any]) -> None:
    # w 1 x 10, a 16 x 40, b 4 x 35, c 16 x 20, d 1 x 30 chip-seconds in 70 s.
    done = (10 + 640 + 140 + 320 + 30) / 3600
    assert small["work"]["chip_hours_done"] == pytest.approx(done)
    assert small["work"]["makespan_s"] == 70
    assert small["work"]["chip_hours_per_day"] == pytest.approx(done * 86400 / 70)
    # Held: w 20 s, though its work was 10 s; all others as long as their work.
    assert small["work"]["chip_hours_held"] == pytest.approx(done + 10 / 3600)


def test_jobs_that_share_a_leaf_are_conflicts_and_slow_down() -> None:
    job_specs = [spec(name, 0, 8, 2) for name in "bcd"]
    stage = Stage(nodes("A 4", "B 4", "C 4"), job_specs)
    stage.at(0).arrive("b").arrive("c").arrive("d")
    stage.at(4)
    stage.start("b", A1=ALL, B1=ALL)  # spine 1 to A and to B
    stage.start("c", A2=ALL, B2=ALL)  # spine 2; leaves A and B are shared now
    stage.at(14)
    stage.start("d", C1=ALL, B3=ALL)  # spine 1 to B (with b), spine 3 to C
    assert stage.metrics.shared_leaves == {"A", "B"}
    assert stage.metrics.conflicts == 3
    plain = stage.at(24).finish().plain()

    # All come at once: between first and last arrival is no time, so all of it counts.
    assert plain["window"] == {"from_s": 0, "to_s": 24}
    # x: A 2, B 2 for 10 s: 2 beyond the first; then A 2, B 3, C 1 for 10 s: 3.
    assert plain["leaves"]["conflicts"] == pytest.approx((20 + 30) / 24)
    # Of the links only spine 1 to B has two jobs, for 10 s.
    assert plain["leaves"]["link_conflicts"] == pytest.approx(10 / 24)
    assert plain["leaves"]["worst_degree"] == 2
    assert (plain["leaves"]["at_risk"], plain["leaves"]["jobs"]) == (3, 3)
    assert plain["leaves"]["at_risk_share_of_jobs"] == 1  # of those that started
    assert plain["leaves"]["at_risk_share_of_chips"] == 1
    assert plain["leaves"]["cap"] == 1
    assert plain["leaves"]["conflicts_beyond_cap"] == plain["leaves"]["conflicts"]
    # 32 chips for 10 s, then 48 of which the 32 of b and d go at 1 / 1.3.
    used = 320 + 480
    assert plain["use"]["utilisation"] == pytest.approx(used / (96 * 24))
    effective = 320 + 10 * (16 + 32 / 1.3)
    assert plain["use"]["effective_utilisation"] == pytest.approx(effective / (96 * 24))
    worst = 320 + 10 * (16 + 32 / 1.5)
    assert plain["use"]["effective_utilisation_worst"] == pytest.approx(
        worst / (96 * 24)
    )


def test_as_many_as_may_share_a_leaf_by_the_rule_are_within_the_cap() -> None:
    settings = Settings(switch_mode=SwitchMode.SPINE_LEAF_2, shared_leaves=2)
    job_specs = [spec(name, 0, 8, 2) for name in "bcd"]
    stage = Stage(
        nodes("A 4", "B 4", "C 4"), job_specs, conf=replace(DEFAULT, settings=settings)
    )
    stage.at(0).arrive("b").arrive("c").arrive("d")
    stage.start("b", A1=ALL, B1=ALL).start("c", A2=ALL, B2=ALL)
    stage.at(10).start("d", C1=ALL, B3=ALL)
    found = stage.at(20).finish().plain()["leaves"]

    # x: A 2, B 2 for 10 s; then A 2, B 3, C 1 for 10 s, of which one is beyond 2.
    assert found["cap"] == 2
    assert found["conflicts"] == pytest.approx((2 * 10 + 3 * 10) / 20)
    assert found["conflicts_beyond_cap"] == pytest.approx(10 / 20)


def test_who_crosses_after_a_repair_only_is_among_those_at_risk() -> None:
    whole = "01234567"
    job_specs = [spec("a", 0, 8, 2), spec("b", 0, 8, 2), spec("c", 0, 8, 2)]
    stage = Stage(nodes("A 3", "B 3"), job_specs)
    stage.at(0).arrive("a").arrive("b").arrive("c")
    stage.start("a", A0=whole, A1=whole)  # under one leaf at first
    stage.start("b", A2=whole, B0=whole)
    stage.at(10).stop("a", 1).place("a", Placement(1, "B1", tuple(range(8))))
    stage.at(20)
    found = stage.finish().plain()["leaves"]

    assert (found["jobs"], found["ever_crossed"], found["at_risk"]) == (1, 2, 2)
    assert found["at_risk_share_of_crossing"] == 1
    assert found["at_risk_share_of_crossing_chips"] == 1


def test_torn_rings_are_counted() -> None:
    job_specs = [spec("a", 0, 4), spec("b", 1, 2)]
    stage = Stage(nodes("A 1"), job_specs)
    stage.at(0).arrive("a").start("a", A0="0145")
    stage.at(1).arrive("b").start("b", A0="23")
    found = stage.at(2).finish().plain()["chips"]

    assert (found["ring_violations"], found["ring_violations_per_1000_pods"]) == (
        1,
        500,
    )
    # a: two pairs inside rings, four across: (2 + 12) / 6; b: 1.
    assert found["hop_cost"] == pytest.approx((14 / 6 + 1) / 2)


def test_die_pairs_of_a3_are_rings() -> None:
    a3 = PRODUCTS["atlas-900-a3"]
    job_specs = [spec("a", 0, 2), spec("b", 1, 4)]
    stage = Stage(nodes("p 1", product=a3, superpod=True), job_specs)
    stage.at(0).arrive("a").start("a", p0="12")  # half of two modules
    stage.at(1).arrive("b").start("b", p0="4567")  # two modules
    found = stage.at(2).finish().plain()["chips"]

    assert found["ring_violations"] == 1
    # a: 1; b: two pairs of dies at 0, four at 1: 4 / 6.
    assert found["hop_cost"] == pytest.approx((1 + 4 / 6) / 2)


def test_superpods_are_counted() -> None:
    a3 = PRODUCTS["atlas-900-a3"]
    on = nodes("p 4", "q 4", product=a3, superpod=True)
    job_specs = [spec("a", 0, 16, 4, sp_block=32), spec("b", 1, 16, 2)]
    stage = Stage(on, job_specs)
    whole = tuple(range(16))
    stage.at(0).arrive("a")
    stage.place(
        "a",
        Placement(0, "p0", whole, block=0),
        Placement(1, "q0", whole, block=0),
        Placement(2, "q1", whole, block=1),
        Placement(3, "q2", whole, block=1),
    )
    stage.at(10).arrive("b")
    stage.place("b", Placement(0, "p1", whole), Placement(1, "p2", whole))
    found = stage.at(20).finish().plain()["superpods"]

    assert (found["blocks"], found["split_blocks"]) == (2, 1)
    # a uses 2 SuperPoDs where 1 of 48 would do, b one.
    assert found["excess_superpods"]["mean"] == 0.5
    # After a, q has 1 free node of 2 to be reserved; after b, p has 1 as well.
    assert found["reserve_breaches"] == 2
    # For all of it q is short, from 10 on p too. One of two jobs is counted until the
    # other comes, so the window is from 0 to 10: one.
    assert found["mean_below_reserve"] == 1
    # a: its first block is in two SuperPoDs, the nodes at the same place of blocks are
    # in p and q: 2 and 2. b is one block in p: 1 and 1.
    assert found["weighted_spread"]["mean"] == pytest.approx((2 + 1) / 2)


def test_gangs_outside_superpods_use_none_and_are_spread_over_leaves() -> None:
    a3 = PRODUCTS["atlas-900-a3"]
    on = [*nodes("p 4", product=a3, superpod=True), *nodes("A 2", "B 2")]
    stage = Stage(on, [spec("a", 0, 8, 3)])
    stage.at(0).arrive("a")
    stage.start("a", A0="01234567", A1="01234567", B0="01234567")
    found = stage.at(10).finish().plain()["superpods"]

    assert (found["superpods"], found["gangs"]) == (1, 0)
    assert found["reserve_breaches"] == 0
    assert found["excess_superpods"]["n"] == 0
    # One block under two leaves; at each place of it one node: 0.5 * 2 + 0.5 * 1.
    assert found["weighted_spread"]["mean"] == 1.5


def test_faults_cost_work_and_time() -> None:
    job_specs = [spec("a", 0, 8, 2), spec("b", 100, 1)]
    stage = Stage(nodes("A 2", "B 2"), job_specs)
    stage.at(0).arrive("a").start("a", A0=ALL, A1=ALL)
    stage.at(50).say(Delete("a", (0, 1), "NodeUnhealthy", "")).lose("a", 20)
    stage.at(60).stop("a", 0, 1)
    stage.at(80).start("a", A0=ALL, B0=ALL).say(Repaired("a", Record(50)))
    stage.at(100).arrive("b").end("a")
    found = stage.at(110).finish().plain()["faults"]

    assert (found["deletions"], found["deleted_pods"], found["repaired"]) == (1, 2, 1)
    assert found["chip_hours_lost_to_faults"] == pytest.approx(16 * 20 / 3600)
    assert found["chip_hours_lost_to_evictions"] == 0
    assert (found["pods_returned"], found["pods_returned_in_place"]) == (2, 1)
    assert found["share_in_place"] == 0.5
    assert found["recovery_s"]["mean"] == 30  # deleted at 50, whole again at 80
    assert found["unrecovered"] == 0


def test_evictions_are_no_faults() -> None:
    job_specs = [spec("a", 0, 8), spec("b", 100, 1)]
    stage = Stage(nodes("A 2"), job_specs)
    stage.at(0).arrive("a").start("a", A0=ALL)
    stage.at(50).say(Evict("a", (0,), "b", "preempt")).lose("a", 20)
    stage.at(60).stop("a", 0)
    stage.at(80).start("a", A1=ALL)
    found = stage.at(90).finish().plain()

    assert (found["faults"]["evictions"], found["faults"]["deletions"]) == (1, 0)
    assert found["faults"]["evicted_pods"] == 1
    assert found["faults"]["chip_hours_lost_to_evictions"] == pytest.approx(160 / 3600)
    assert found["faults"]["chip_hours_lost_to_faults"] == 0
    assert found["faults"]["recovery_s"]["n"] == found["faults"]["pods_returned"] == 0
    assert found["use"]["mean_queue_length"] == pytest.approx(20 / 90)


GANG = {"tor_affinity": Schema.LARGE_MODEL}


@pytest.mark.parametrize(
    ("said", "blamed"),
    [
        pytest.param({"behind": True}, "order", id="others before it"),
        pytest.param({}, "quota", id="words, no counts: its queue"),
        pytest.param(
            {"missing": 1, "reasons": {Reason.TOO_FEW_CHIPS: 8}},
            "fragmentation",
            id="chips are free, but on too few nodes",
        ),
        pytest.param(
            {"missing": 3, "reasons": {Reason.TOO_FEW_CHIPS: 5, Reason.LEAF_CLOSED: 3}},
            "rule",
            id="enough nodes, under leaves that are closed",
        ),
        pytest.param(
            {"missing": 1, "reasons": {Reason.TOO_FEW_CHIPS: 4}},
            "rule",
            id="enough nodes fit, and the shape does not",
        ),
    ],
)
def test_what_the_scheduler_says_is_blamed(said: dict[str, Any], blamed: str) -> None:
    job_specs = [spec("a", 0, 8, 4, **GANG), spec("b", 100, 1)]
    stage = Stage(nodes("A 4", "B 4"), job_specs)
    stage.at(0).arrive("a").say(Report("a", WAITS, "", **said))
    found = stage.at(100).arrive("b").finish().plain()["why"]["jobs"]

    assert {name: each["seconds"] for name, each in found.items() if each["share"]} == {
        blamed: 100
    }


def test_too_few_chips_are_capacity_whatever_else_was_said() -> None:
    job_specs = [spec("a", 0, 8, 4, **GANG), spec("b", 0, 8, 2), spec("c", 100, 1)]
    stage = Stage(nodes("A 4"), job_specs)
    stage.at(0).arrive("b").arrive("a").start("b", A0=ALL, A1=ALL)
    stage.say(Report("a", WAITS, "", behind=True))
    stage.at(60).end("b")  # 16 of the 32 chips that a asks until here
    found = stage.at(100).arrive("c").finish().plain()["why"]

    seconds = {name: each["seconds"] for name, each in found["jobs"].items()}
    assert (seconds["capacity"], seconds["order"]) == (60, 40)
    assert found["frag_wait_s"] == 40


def test_a_queue_holds_back_only_who_would_find_chips() -> None:
    job_specs = [spec("a", 0, 8, 4), spec("b", 0, 8), spec("c", 100, 1)]
    stage = Stage(nodes("A 4"), job_specs)
    stage.at(0).arrive("b").arrive("a").start("b", A0=ALL)
    stage.say(Report("a", WAITS, ""))
    stage.at(60).end("b")
    found = stage.at(100).arrive("c").finish().plain()["why"]

    seconds = {name: each["seconds"] for name, each in found["jobs"].items()}
    assert (seconds["capacity"], seconds["quota"]) == (60, 40)
    assert found["frag_wait_s"] == 0


def test_of_what_nobody_spoke_the_first_is_blamed_on_fragments() -> None:
    job_specs = [spec("a", 0, 8), spec("b", 0, 4), spec("c", 10, 1)]
    stage = Stage(nodes("A 1"), job_specs)
    stage.at(0).arrive("a").arrive("b")
    found = stage.at(10).arrive("c").finish().plain()["why"]["jobs"]

    assert found["fragmentation"]["seconds"] == 10
    assert found["order"]["seconds"] == 10


def test_a_job_that_can_never_run_waits_for_nothing() -> None:
    stage = Stage(nodes("A 1"), [spec("a", 0, 8), spec("b", 10, 8)])
    stage.at(0).arrive("a").say(Report("a", Verdict.INVALID, ""))
    found = stage.at(10).arrive("b").finish().plain()

    assert (found["jobs"]["invalid"], found["use"]["mean_queue_length"]) == (1, 0)


def test_who_never_started_is_told() -> None:
    stage = Stage(nodes("A 1"), [spec("a", 0, 8), spec("b", 10, 8)])
    stage.at(0).arrive("a").at(10).arrive("b")
    found = stage.at(30).finish().plain()

    assert found["jobs"]["unstarted"] == 2
    assert found["jobs"]["longest_unstarted_s"] == 30
    assert found["starvation"]["max_wait_s"] == 30
    assert found["wait_s"]["all"]["n"] == 0


def test_a_job_that_never_starts_is_pending_until_the_last_job_ends() -> None:
    job_specs = [spec("a", 0, 8), spec("b", 10, 8, 2), spec("c", 20, 1)]
    stage = Stage(nodes("A 1"), job_specs)
    stage.at(0).arrive("a").start("a", A0=ALL)
    stage.at(10).arrive("b").at(20).arrive("c")
    stage.at(60).end("a").start("c", A0="0").at(90).end("c")
    found = stage.at(5000).finish().plain()  # a scheduler that wakes up much later

    pending = found["pending_s"]
    assert pending["until_s"] == 90
    assert pending["all"] == {"n": 3, "unstarted": 1, "mean": (0 + 80 + 40) / 3}
    assert pending["by_size"]["9-64"] == {"n": 1, "unstarted": 1, "mean": 80}
    assert pending["by_size"]["1"] == {"n": 1, "unstarted": 0, "mean": 40}
    assert found["wait_s"]["all"]["mean"] == 20


def test_a_job_that_is_not_counted_is_not_counted_as_pending_either() -> None:
    job_specs = [spec(name, 10 * n, 8) for n, name in enumerate("abcdefghij")]
    stage = Stage(nodes("A 1"), job_specs)
    for n, each in enumerate(job_specs):
        stage.at(10 * n).arrive(each.job.name)
    found = stage.finish().plain()

    assert found["jobs"]["unstarted"] == 10
    assert found["pending_s"]["until_s"] == 90
    assert found["pending_s"]["all"] == {"n": 8, "unstarted": 8, "mean": 35}


def test_the_sizes_and_causes_of_jobs_that_never_start_are_told() -> None:
    job_specs = [
        spec(name, 0, chips, pods)
        for name, chips, pods in zip("abcd", (8, 8, 4, 2), (2, 1, 1, 1), strict=True)
    ]
    stage = Stage(nodes("A 1"), job_specs)
    for each in job_specs:
        stage.at(0).arrive(each.job.name)
    reasons = {Reason.LEAF_CLOSED: 1}
    stage.say(Report("b", WAITS, "", missing=1, reasons=reasons))
    stage.say(Report("c", WAITS, ""))
    jobs = stage.at(10).finish().plain()["jobs"]

    assert (jobs["smallest_unstarted_chips"], jobs["largest_unstarted_chips"]) == (
        2,
        16,
    )
    causes = {"capacity": 1, "rule": 1, "quota": 1, "order": 1, "fragmentation": 0}
    assert jobs["unstarted_causes"] == causes
    alone = Stage(nodes("A 1"), [spec("a", 0, 8)]).at(0).arrive("a").finish().plain()
    assert alone["jobs"]["unstarted_causes"]["fragmentation"] == 1


def test_jobs_that_request_the_same_never_start_for_the_cause_said_last() -> None:
    job_specs = [spec(name, 0, 8) for name in "abc"]
    stage = Stage(nodes("A 1"), job_specs)
    for each in job_specs:
        stage.at(0).arrive(each.job.name)
    reasons = {Reason.LEAF_CLOSED: 1}
    stage.say(Report("b", WAITS, ""))
    stage.say(Report("c", WAITS, "", behind=True))
    stage.say(Report("a", WAITS, "", missing=1, reasons=reasons))
    jobs = stage.at(10).finish().plain()["jobs"]

    assert {cause: n for cause, n in jobs["unstarted_causes"].items() if n} == {
        "rule": 3
    }


def test_rows_over_time_are_means_of_equal_spans() -> None:
    job_specs = [spec("a", 0, 8), spec("b", 512, 4)]
    stage = Stage(nodes("A 1", "B 1"), job_specs)  # 512 rows: one for every second
    stage.at(0).arrive("a").start("a", A0=ALL)
    stage.at(1.5).end("a")
    stage.at(512).arrive("b").at(512.5)
    rows = stage.finish().rows()

    assert len(rows) == 513
    named = [dict(zip(SERIES, row, strict=True)) for row in rows]
    assert [row["time_s"] for row in named[:3]] == [1, 2, 3]
    # All of A0 is half the cluster: all of the first second, half of the second.
    assert [row["utilisation"] for row in named[:3]] == [0.5, 0.25, 0]
    # One node is free, then for half a second and from then on both; a gang of 2
    # crosses two leaves of one node each, which nobody else crosses.
    assert [row["largest_gang_nodes"] for row in named[:3]] == [1, 1.5, 2]
    assert (named[-1]["time_s"], named[-1]["queue_length"]) == (512.5, 1)


def test_rows_stay_few_however_long_the_run_is() -> None:
    stage = Stage(nodes("A 1"), [spec("a", 0, 8), spec("b", 100, 8)])
    stage.at(0).arrive("a").at(100).arrive("b").start("a", A0=ALL)
    stage.at(1e6)
    rows = stage.finish().rows()

    assert 1024 <= len(rows) <= 2048
    spans = [after[0] - row[0] for row, after in pairwise(rows[:-1])]
    assert max(spans) == pytest.approx(min(spans))
    used = sum(
        row[1] * (row[0] - before)
        for row, before in zip(rows, [0.0, *(row[0] for row in rows)], strict=False)
    )
    assert used == pytest.approx(1e6 - 100)  # nothing is lost by thinning


def test_rows_that_become_one_keep_their_time() -> None:
    """In use from 100 to 5,000 of 10,000 s, told in steps of 50 s."""
    stage = Stage(nodes("A 1"), [spec("a", 0, 8), spec("b", 100, 8)])
    stage.at(0).arrive("a").at(100).arrive("b").start("a", A0=ALL)
    for now in range(150, 5001, 50):
        stage.at(now)
    stage.end("a")
    for now in range(5050, 10001, 50):
        stage.at(now)
    rows = stage.finish().rows()

    before = 0.0
    for end, used, *_rest in rows:
        overlap = max(0.0, min(end, 5000) - max(before, 100))
        assert used == pytest.approx(overlap / (end - before), abs=1e-9)
        before = end


def test_a_short_job_counts_as_ten_seconds() -> None:
    stage = Stage(nodes("A 1"), [spec("a", 0, 8, runs_s=2.0)])
    stage.at(0).arrive("a").at(30).start("a", A0=ALL).at(32).end("a")
    found = stage.finish().plain()

    assert found["bounded_slowdown"]["all"]["mean"] == 3.2  # 32 / 10, not 32 / 2


def test_chips_that_do_not_work_are_no_capacity() -> None:
    on = nodes("A 2")
    stage = Stage(on, [spec("a", 0, 8), spec("b", 20, 8)])
    stage.at(0).arrive("a").start("a", A0=ALL)
    stage.at(10)
    cluster = stage.engine.view.cluster
    cluster.ready[1] = False
    cluster.epoch += 1
    found = stage.at(20).arrive("b").finish().plain()

    # 8 of 16 chips all the time; of those that work 16 for 10 s, then 8 for 10 s.
    assert found["use"]["utilisation"] == 0.5
    assert found["use"]["healthy_utilisation"] == pytest.approx(160 / (160 + 80))
    assert found["nodes"]["mean_free"] == 0.5


def test_the_plain_values_are_the_same_twice() -> None:
    def once() -> RunMetrics:
        stage = Stage(nodes("A 2", "B 2"), [spec("a", 0, 8, 2), spec("b", 10, 1)])
        stage.at(0).arrive("a").start("a", A1=ALL, B0=ALL)
        return stage.at(10).arrive("b").finish()

    assert once().plain() == once().plain()
    assert once().rows() == once().rows()
