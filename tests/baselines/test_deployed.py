"""Schedulers as they are deployed: their own queues, and pods without gangs."""

import csv
from pathlib import Path

import pytest

from ringleaf.baselines.registry import baseline
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.event import ConfChanged, JobArrived, NodesGone, TimerFired
from ringleaf.framework.instruction import Bind, Report, Verdict
from ringleaf.model.job import Job
from ringleaf.simulator.clock import play as play_trial
from ringleaf.simulator.ledger import Ledger
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.trial import TimedEvent
from tests.baselines.stage import A2, A3, Stage, drawn, started, under_leaves
from tests.simulator.trials import spec, trial

FULL = "####|####"


def stage_of(name: str, nodes: int = 4, order: str | None = None) -> Stage:
    """An empty cluster of *nodes* nodes."""
    return Stage(name, drawn(*[FULL] * nodes, product=A2), order=order)


def gang(name: str, pods: int, priority: int = 0) -> Job:
    """A job of so many whole nodes."""
    return Job(name, A2, 8, pods, priority=priority)


def play(stage: Stage, *jobs: Job, now: float = 0.0) -> list[str]:
    """Who starts when jobs come together, in the order in which they are given."""
    return started(stage.happens(*map(JobArrived, jobs), now=now))


def half_nodes(stage: Stage) -> list[str]:
    """Two nodes are half full, a job of a whole node waits, a small one comes."""
    play(stage, Job("x", A2, 4), now=0)
    play(stage, Job("y", A2, 4), now=1)
    assert play(stage, gang("a", 1), now=2) == []
    return play(stage, Job("b", A2, 4), now=3)


@pytest.mark.parametrize("order", [None, "fifo-skip"])
def test_with_ringleafs_queue_a_job_starts_that_fits(order: str | None) -> None:
    assert half_nodes(stage_of("worst-fit", 2, order)) == ["b"]


def test_volcano_rejects_what_the_quota_has_no_room_for_beside_admitted_jobs() -> None:
    """Job a is admitted and counts, though no node can take it."""
    stage = stage_of("worst-fit", 2, "volcano")

    assert half_nodes(stage) == []
    assert "not admitted: running and admitted jobs fill the cluster" in stage.why("b")
    assert stage.goes("x", now=4) == ["a", "b"]


def test_the_vendors_plugin_admits_whatever_free_chips_are_enough_for() -> None:
    stage = stage_of("volcano-vendor-1.0", 1)
    play(stage, Job("x", A2, 2), now=0)

    assert play(stage, gang("a", 1), now=1) == []
    assert play(stage, Job("b", A2, 4), now=2) == ["b"]


@pytest.mark.parametrize(
    ("policy", "order", "starts"),
    [
        ("ringleaf", None, []),
        ("vendor-1.0", "volcano", ["c"]),
        ("volcano-vendor-1.0", None, ["c"]),
        ("volcano-vendor-2.0", None, ["c"]),
        ("kueue", None, ["c"]),
        ("kube-coscheduling", None, ["c"]),
    ],
)
def test_only_ringleaf_reserves_for_a_job_that_has_waited_long(
    policy: str, order: str | None, starts: list[str]
) -> None:
    """Job b waits for a; after ten minutes c would delay it."""
    stage = stage_of(policy, 4, order)

    assert play(stage, gang("a", 3), gang("b", 4)) == ["a"]
    stage.happens(TimerFired(), now=300)
    assert play(stage, gang("c", 1), now=600) == starts
    told = [each.verdict for each in stage.said if isinstance(each, Report)]
    assert (Verdict.RESERVED in told) == (not starts)


@pytest.mark.parametrize(
    "policy", ["volcano-vendor-1.0", "kueue", "kube-coscheduling", "kube-scheduler"]
)
def test_higher_priority_goes_first(policy: str) -> None:
    stage = stage_of(policy)
    play(stage, gang("a", 4))

    play(stage, gang("b", 4), gang("c", 4, priority=9), now=1)

    assert stage.goes("a", now=2) == ["c"]


def test_volcanos_queue_stays_when_the_configuration_changes() -> None:
    stage = stage_of("worst-fit", 2, "volcano")
    stage.happens(ConfChanged(DEFAULT), now=0)

    assert half_nodes(stage) == []


def test_kueue_prefers_the_tightest_leaf() -> None:
    stage = Stage("kueue", under_leaves("A ####", "B ###.", "C ##.."))

    assert stage.comes(Job("j", A2, 8, 2)) == ["C0", "C1"]


def test_pods_of_kube_scheduler_hold_chips_while_their_gang_is_incomplete() -> None:
    stage = stage_of("kube-scheduler", 4)
    play(stage, gang("x", 2), now=0)

    said = stage.happens(JobArrived(gang("a", 3)), now=1)

    assert [len(each.placements) for each in said if isinstance(each, Bind)] == [2]
    assert play(stage, gang("b", 1), now=2) == []
    assert stage.goes("x", now=3) == ["a", "b"]
    assert len(stage.nodes_of("a") or ()) == 3


def test_coscheduling_starts_gangs_whole() -> None:
    stage = stage_of("kube-coscheduling", 4)
    play(stage, gang("x", 2), now=0)

    assert play(stage, gang("a", 3), gang("b", 1), now=1) == ["b"]


def test_pods_of_kube_scheduler_need_no_block_of_a_superpod() -> None:
    nodes = [f"{'#' * 16}", f"{'#' * 16}", "." * 16, "." * 16]
    stage = Stage("kube-scheduler", drawn(*nodes, product=A3))

    stage.happens(JobArrived(Job("j", A3, 16, 4, sp_block=64)))

    assert len(stage.nodes_of("j") or ()) == 2


def test_a_gang_waits_until_it_is_whole_and_its_pods_hold_chips_in_vain(
    tmp_path: Path,
) -> None:
    """On two nodes x runs until 100 s; a has one pod at 10 s and both at 100 s."""
    job_specs = [spec("x", 0, 100), spec("a", 10, 50, replicas=2), spec("z", 200, 1)]
    played = trial(2, job_specs, under=1)
    metrics, ledger, path = RunMetrics(), Ledger(), tmp_path / "jobs.csv"
    ledger.open(path)

    site = played.site
    scheduler = baseline("kube-scheduler")(site.nodes, site.leaves)
    play_trial(played, scheduler, [metrics, ledger])

    found = metrics.plain()
    # Of 16 chips for 200 s, x holds 8 for 100 s; a holds 8 for 90 s, 16 for 50 s.
    assert found["use"]["utilisation"] == pytest.approx((800 + 720 + 800) / 3200)
    assert found["use"]["held_by_incomplete"] == pytest.approx(720 / 3200)
    assert found["use"]["effective_utilisation"] == pytest.approx(1600 / 3200)
    assert found["wait_s"]["all"]["max"] == 90
    with path.open(newline="") as file:
        rows = {row["job"]: row for row in csv.DictReader(file)}
    assert rows["a"]["starts_s"] == "100.000"
    assert (rows["a"]["nodes"], rows["a"]["leaves"]) == ("2", "2")


def test_pods_that_are_lost_before_their_gang_is_whole_hold_nothing() -> None:
    """The node of the one pod of a that is placed goes at 50 s."""
    job_specs = [spec("x", 0, 300), spec("a", 10, 50, replicas=2), spec("z", 200, 1)]
    played = trial(2, job_specs, timed_events=[TimedEvent(50, NodesGone(("n001",)))])
    metrics = RunMetrics()

    site = played.site
    scheduler = baseline("kube-scheduler")(site.nodes, site.leaves)
    play_trial(played, scheduler, [metrics], until=250)

    found = metrics.plain()
    assert found["use"]["held_by_incomplete"] == pytest.approx(8 * 40 / 3200)
    assert found["jobs"]["started"] == 1
