"""The runs of a comparison: the request of each, and how it is simulated."""

import os
from collections.abc import Sequence
from contextlib import redirect_stderr
from functools import partial
from hashlib import blake2s
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

import ringleaf
from ringleaf.baselines.optimum import NotInstalled
from ringleaf.baselines.registry import OURS, UnknownName, baseline, entry_of
from ringleaf.cli.comparison_screen import play_telling
from ringleaf.cli.failure import BadUse
from ringleaf.cli.simulate import metrics_of, scheduler_of
from ringleaf.cli.simulation_request import SimulationRequest, trial_of
from ringleaf.report.measures import MEASURES
from ringleaf.report.results import Results, RunResult, StudySpec
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.film import Film
from ringleaf.simulator.trial import Observer, Trial
from ringleaf.study.compare import Executor
from ringleaf.study.executors import in_processes, on_dask, one_by_one


def policy_label(wanted: SimulationRequest) -> str:
    """The policy, with its order where it has one."""
    order = "" if wanted.order is None else f"+{wanted.order}"
    return f"{wanted.policy}{order}"


class RunRequest(Struct, frozen=True):
    """A run as another process is asked for it."""

    wanted: SimulationRequest
    filmed: bool

    @property
    def mark(self) -> str:
        """A name of this run, and of no other."""
        measured = [measure.key for measure in MEASURES]
        about = [ringleaf.__version__, measured, self.filmed]
        asked = [*about, self.wanted.arguments()]
        text = msgspec.json.encode(asked)
        digest = blake2s(text, digest_size=6).hexdigest()
        return f"{policy_label(self.wanted)}-seed{self.wanted.seed}-{digest}"


def run_requests(
    wanted: SimulationRequest, policies: Sequence[str], seeds: int
) -> list[SimulationRequest]:
    """Every run, policy by policy; ``policy+order`` has an order of its own.

    Raises:
        BadUse: There is no such policy or order, or one is named twice.

    """
    given = [name.strip() for text in policies for name in text.split(",")]
    names = [*filter(None, given)]
    if len({*names}) < len(names) or not names:
        want = "every policy once" if names else "at least one policy"
        raise BadUse(
            f"--policies has {', '.join(names) or 'nothing'}, want {want}; "
            f"hint: --policies {OURS},best-fit,random"
        )
    found = []
    for name in names:
        policy, _plus, order = name.partition("+")
        own = replace(wanted, policy=policy, order=order or wanted.order)
        try:
            baseline(own.policy, order=own.order)(())
        except (UnknownName, NotInstalled) as error:
            raise BadUse(f"--policies: {error}") from None
        found += [replace(own, seed=wanted.seed + n) for n in range(seeds)]
    return found


def executor_of(workers: int | None, dask: str | None = None) -> Executor:
    """Return the executor of the runs: processes, or the workers of a Dask cluster."""
    if dask is not None:
        if workers is not None:
            raise BadUse("--workers and --dask exclude each other; hint: leave one")
        return partial(on_dask, address=dask)
    n = workers or _cores()
    return one_by_one if n == 1 else partial(in_processes, workers=n)


def _cores() -> int:
    """The cores that this process may use; all, where the system does not say."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def run(asked: RunRequest, told: str | None = None) -> RunResult:
    """Simulate a run to its end without printing; write its progress to *told*."""
    wanted = asked.wanted
    with redirect_stderr(StringIO()):
        trial = trial_of(wanted)
    metrics = metrics_of(wanted)
    film = Film() if asked.filmed else None
    observers: list[Observer] = [metrics] if film is None else [metrics, film]
    clock = Clock(trial, scheduler_of(wanted, trial), observers)
    play_telling(clock, None if told is None else Path(told) / asked.mark)
    clock.finish()
    filmed = None if film is None else film.plain()
    return RunResult(_spec(wanted, trial), metrics.plain(), metrics.rows(), filmed)


def _spec(wanted: SimulationRequest, trial: Trial) -> StudySpec:
    site, jobs = trial.site, trial.workload
    notes = [*jobs.notes]
    if wanted.faults != "none":
        notes.append(f"faults: {wanted.faults}, fault-scheduling: {wanted.recovery}")
    if wanted.contention:
        notes.append(
            f"jobs communicate {100 * wanted.contention:.0f} % of their time, and slow "
            "each other down where they share links to the spine"
        )
    return StudySpec(
        site=site.name,
        nodes=len(site.nodes),
        chips=site.chips,
        workload=jobs.name,
        about=jobs.about,
        jobs=jobs.n_jobs,
        load=jobs.load,
        policy=policy_label(wanted),
        seed=wanted.seed,
        leaves=len({node.leaf for node in site.nodes if node.leaf}),
        superpods=len({n.superpod for n in site.nodes if n.superpod is not None}),
        title=entry_of(wanted.policy).title,
        order=wanted.order or "",
        notes=tuple(notes),
    )


def plain_of(results: Results) -> dict[str, Any]:
    """The comparison as plain values, without the runs' own figures over time."""
    first = results.runs[0].spec
    return {
        "cluster": first.site,
        "workload": first.workload,
        "jobs": first.jobs,
        "load": first.load,
        "reference": results.reference,
        "confidence": results.confidence,
        "seeds": sorted({run.spec.seed for run in results.runs}),
        "policies": results.policies,
        "measures": [msgspec.to_builtins(each) for each in results.comparison],
        "bounds": [msgspec.to_builtins(each) for each in results.bounds],
    }
