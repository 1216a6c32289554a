"""Runs of the engine in time, measured: what must hold of every one of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ringleaf.engine.engine import Engine
from ringleaf.model.fault import FaultMode, Recovery
from ringleaf.simulator.bounds import bounds
from ringleaf.simulator.checkpoint import load, save
from ringleaf.simulator.clock import Clock, play
from ringleaf.simulator.failures import FailureGenerator, Rates
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.sites import site
from ringleaf.simulator.trial import JobSpec, Trial
from ringleaf.simulator.uplinks import LinkDegrees
from ringleaf.simulator.workloads import workload

SITE = site("leaf-spine-512")
JOBS = 400
WORKLOAD = workload("kalos", SITE, jobs=JOBS, load=3.0, seed=5)


def trial(**changes: Any) -> Trial:  # noqa: ANN401
    return Trial(SITE, WORKLOAD, **changes)


def engine(of: Trial) -> Engine:
    return Engine(of.site.nodes, of.site.leaves, of.site.queues, of.conf)


def measured(of: Trial) -> RunMetrics:
    metrics = RunMetrics()
    play(of, engine(of), [metrics], degrees=LinkDegrees(SITE.nodes))
    return metrics


def bytes_of(metrics: RunMetrics) -> bytes:
    return msgspec.json.encode([metrics.plain(), metrics.rows()])


@pytest.fixture(scope="module")
def quiet() -> RunMetrics:
    return measured(trial())


def test_what_jobs_hold_is_what_they_do(quiet: RunMetrics) -> None:
    """Without faults and contention no chip-second is held in vain."""
    found = quiet.plain()

    assert found["jobs"]["ended"] == found["jobs"]["arrived"] == JOBS
    spec = found["work"]
    assert spec["chip_hours_held"] == pytest.approx(spec["chip_hours_done"])
    assert found["faults"]["chip_hours_lost_to_faults"] == 0


def test_rows_add_up_to_what_was_held(quiet: RunMetrics) -> None:
    rows = quiet.rows()
    ends = [row[0] for row in rows]
    spans = [end - start for start, end in zip([0.0, *ends], ends, strict=False)]
    held = sum(row[1] * span for row, span in zip(rows, spans, strict=True))

    hours = quiet.plain()["work"]["chip_hours_held"]
    assert held * SITE.chips / 3600 == pytest.approx(hours)


def test_all_that_waits_is_blamed_on_something(quiet: RunMetrics) -> None:
    found = quiet.plain()
    window = found["window"]["to_s"] - found["window"]["from_s"]

    seconds = sum(each["seconds"] for each in found["why"]["jobs"].values())
    assert seconds == pytest.approx(found["use"]["mean_queue_length"] * window)
    chips = sum(each["seconds"] for each in found["why"]["chips"].values())
    assert chips == pytest.approx(found["use"]["mean_waiting_chips"] * window)
    assert found["why"]["jobs"]["capacity"]["seconds"] > 0


def test_hard_rules_are_kept(quiet: RunMetrics) -> None:
    found = quiet.plain()

    assert found["leaves"]["jobs"] > 0
    assert found["leaves"]["conflicts"] == found["leaves"]["link_conflicts"] == 0
    assert found["leaves"]["at_risk"] == found["chips"]["ring_violations"] == 0
    effective = found["use"]["effective_utilisation"]
    assert effective == pytest.approx(found["use"]["utilisation"])


def test_no_bound_is_beaten(quiet: RunMetrics) -> None:
    found, least = quiet.plain(), bounds(SITE, WORKLOAD)

    assert found["work"]["makespan_s"] >= least.makespan_s
    assert least.mean_jct_s is not None
    assert least.utilisation is not None
    assert found["jct_s"]["all"]["mean"] >= least.mean_jct_s
    assert found["use"]["utilisation"] <= least.utilisation + 1e-9


def test_nobody_starts_before_coming(quiet: RunMetrics) -> None:
    waits = quiet._waits._starts.columns["wait_s"]  # noqa: SLF001

    assert len(waits) == 320
    assert min(waits) >= 0


def test_the_same_seed_gives_the_same_bytes(quiet: RunMetrics) -> None:
    assert bytes_of(measured(trial())) == bytes_of(quiet)


def test_a_run_that_was_put_away_gives_the_same_bytes(
    quiet: RunMetrics, tmp_path: Path
) -> None:
    here = trial()
    clock = Clock(here, engine(here), [RunMetrics()], LinkDegrees(SITE.nodes))
    for _step in range(JOBS):
        clock.step()
    save(tmp_path / "run", clock, "1", {})
    again = load(tmp_path / "run", trial(), "1", {})
    while again.step():
        pass
    again.finish()
    (metrics,) = again.observers
    assert isinstance(metrics, RunMetrics)

    assert bytes_of(metrics) == bytes_of(quiet)


def test_with_faults_work_is_lost_and_pods_return() -> None:
    """Jobs that let themselves be repaired, on nodes that fail every 100 hours."""
    recovery = Recovery(FaultMode.FORCE)

    def job_specs() -> Iterator[JobSpec]:
        for each in WORKLOAD.job_specs():
            yield replace(each, job=replace(each.job, recovery=recovery))

    faults = FailureGenerator(
        SITE, Rates(chip=0, node=100, leaf=0, node_repair=1), seed=3
    )
    repaired = Trial(SITE, replace(WORKLOAD, job_specs=job_specs), timed_events=faults)

    found = measured(repaired).plain()

    assert found["jobs"]["ended"] == JOBS
    assert found["use"]["healthy_utilisation"] > found["use"]["utilisation"]
    lost, spec = found["faults"], found["work"]
    assert lost["deletions"] > 0
    assert lost["chip_hours_lost_to_faults"] > 0
    assert lost["pods_returned"] >= lost["pods_returned_in_place"] > 0
    assert lost["recovery_s"]["n"] > 0
    assert lost["unrecovered"] == 0
    done = spec["chip_hours_done"] + lost["chip_hours_lost_to_faults"]
    assert spec["chip_hours_held"] > done  # pods that are asked to end hold chips
