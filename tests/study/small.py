"""Runs that take little time, by names alone, so that other processes can play them."""

from msgspec import Struct

from ringleaf.baselines.registry import baseline
from ringleaf.report.results import RunResult, StudySpec
from ringleaf.simulator.clock import play
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.sites import site, with_queues
from ringleaf.simulator.trial import Trial
from ringleaf.simulator.workloads import workload


class Small(Struct, frozen=True):
    """Sixty jobs on sixteen nodes."""

    policy: str
    seed: int


def run(asked: Small) -> RunResult:
    """Play it."""
    place = site("leaf-spine-512:nodes=16")
    jobs = workload("kalos", place, seed=asked.seed, load=0.8, jobs=60)
    place = with_queues(place, jobs.queues)
    metrics = RunMetrics()
    scheduler = baseline(asked.policy)(place.nodes, place.leaves, place.queues)
    play(Trial(place, jobs), scheduler, [metrics])
    spec = StudySpec(
        site=place.name,
        nodes=len(place.nodes),
        chips=place.chips,
        workload=jobs.name,
        about=jobs.about,
        jobs=jobs.n_jobs,
        load=jobs.load,
        policy=asked.policy,
        seed=asked.seed,
    )
    return RunResult(spec, metrics.plain(), metrics.rows())
