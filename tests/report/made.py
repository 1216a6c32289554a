"""Results of small runs that were really played."""

from functools import cache

from msgspec.structs import replace

from ringleaf.baselines.registry import baseline
from ringleaf.report.measures import BY_KEY, value_of
from ringleaf.report.results import (
    Estimate,
    Measured,
    ResourceBound,
    Results,
    RunResult,
    StudySpec,
)
from ringleaf.simulator.clock import play
from ringleaf.simulator.film import Film
from ringleaf.simulator.metrics import RunMetrics
from ringleaf.simulator.sites import site
from ringleaf.simulator.trial import Trial
from ringleaf.simulator.workloads import workload

POLICIES = ("ringleaf", "best-fit", "random")


def run_of(policy: str, seed: int) -> RunResult:
    """Sixty jobs on sixteen nodes."""
    place = site("leaf-spine-512:nodes=16")
    jobs = workload("seren", place, seed=seed, jobs=60, load=1.0)
    made = baseline(policy, seed=seed)(place.nodes, place.leaves, place.queues)
    metrics, film = RunMetrics(), Film(40)
    trial = Trial(place, jobs, policy=policy, seed=seed)
    play(trial, made, [metrics, film])
    spec = StudySpec(
        place.name, len(place.nodes), place.chips, jobs.name, jobs.about, jobs.n_jobs,
        jobs.load, policy, seed, leaves=len(place.leaves), title=f"What {policy} does.",
        notes=jobs.notes,
    )  # fmt: skip
    return RunResult(spec, metrics.plain(), metrics.rows(), film.plain())


@cache
def real() -> Results:
    """Three policies with two seeds, compared."""
    runs = [run_of(policy, seed) for policy in POLICIES for seed in (0, 1)]
    return Results(
        runs, compared(runs), [ResourceBound("use.utilisation", "offered", 0.987)]
    )


def compared(runs: list[RunResult]) -> list[Measured]:
    """Means, and intervals that are told apart by eye: a tenth to either side."""
    found = []
    for key in BY_KEY:
        own = [value_of(r.metrics, key) for r in runs if r.spec.policy == "ringleaf"]
        for policy in dict.fromkeys(run.spec.policy for run in runs):
            values = [value_of(r.metrics, key) for r in runs if r.spec.policy == policy]
            pairs = [(a, b) for a, b in zip(values, own, strict=True)
                     if a is not None and b is not None]  # fmt: skip
            if pairs:
                gaps = [a - b for a, b in pairs]
                found.append(
                    Measured(
                        key,
                        policy,
                        around([a for a, _b in pairs]),
                        None if policy == "ringleaf" else around(gaps),
                    )
                )
    return found


def around(values: list[float]) -> Estimate:
    mean = sum(values) / len(values)
    far = abs(mean) / 10
    return Estimate(mean, mean - far, mean + far, len(values))


def plain_run(policy: str, seed: int = 0, **metrics: object) -> RunResult:
    """A run of which only some metrics are known."""
    spec = StudySpec("small", 2, 16, "made up", "by hand", 3, 0.5, policy, seed)
    return RunResult(spec, {"window": {"from_s": 0.0, "to_s": 100.0}, **metrics})


def renamed(results: Results, name: str) -> Results:
    """The same results with *name* wherever somebody else gives a name."""
    runs = []
    for run in results.runs:
        spec = replace(
            run.spec, site=name, workload=name, about=name, title=name, order=name,
            policy=f"{run.spec.policy} {name}", notes=(name,),
        )  # fmt: skip
        assert run.film is not None
        jobs = [[job[0], name, *job[2:]] for job in run.film["jobs"]]
        nodes = [name] * len(run.film["nodes"])
        groups = [[kind, name] for kind, _name in run.film["groups"]]
        film = run.film | {"jobs": jobs, "nodes": nodes, "groups": groups}
        runs.append(replace(run, spec=spec, film=film))
    comparison = [
        replace(each, policy=f"{each.policy} {name}") for each in results.comparison
    ]
    return replace(
        results, runs=runs, comparison=comparison, reference=f"ringleaf {name}",
        bounds=[ResourceBound("use.utilisation", name, 0.5, name)], title=name,
        command=name, version=name,
    )  # fmt: skip
