"""``ringleaf simulate``: simulates a workload and reports the results."""

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

import ringleaf
from ringleaf.baselines.optimum import NotInstalled
from ringleaf.baselines.registry import BASELINES, UnknownName, baseline
from ringleaf.cli.failure import BadUse, report, warn
from ringleaf.cli.file import check_folder, one_line
from ringleaf.cli.output import TrimmedConsole, print_json, progress
from ringleaf.cli.run_warnings import warnings_on
from ringleaf.cli.simulation_request import SimulationRequest, trial_of
from ringleaf.cli.simulation_screen import SimulationScreen, play_in_chunks
from ringleaf.cli.simulation_summary import print_summary
from ringleaf.engine.engine import Engine
from ringleaf.simulator import checkpoint
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.ledger import Ledger
from ringleaf.simulator.metrics import SERIES, RunMetrics
from ringleaf.simulator.metrics.cost import TimedEngine
from ringleaf.simulator.metrics.regret import Regret
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import Observer, Trial

BOOKMARK: Final = "unfinished.run"
"""The checkpoint of an unfinished run, in the folder of results."""


def simulate_jobs(
    wanted: SimulationRequest,
    *,
    out: str | None,
    resume: str | None,
    save_every_s: float,
    as_json: bool,
) -> int:
    """Simulate what is *wanted*, and report the results; the exit status."""
    trial = trial_of(wanted)
    folder = _folder(out, resume)
    check_folder("--out", out)
    if resume is None and folder is not None:
        _spare_others(folder, wanted)
    begun = time.perf_counter()
    course = _begin(wanted, trial, folder, resume)
    before = course.clock.steps
    try:
        went = _go(course, folder, wanted, save_every_s)
    except BadInput as error:
        raise BadUse(f"{trial.workload.name}: {error}") from None
    if went:
        return _save_checkpoint(course, folder, wanted, went)
    tally = course.clock.finish()
    facts = _summary_plain(wanted, trial, course) | {"jobs": msgspec.to_builtins(tally)}
    load, chips = trial.workload.load, trial.site.chips
    for text in warnings_on([[facts["measures"]]], load, chips, wanted):
        warn(text)
    if folder is not None:
        _write(folder, facts, course)
    if as_json:
        print_json(facts)
    else:
        took = time.perf_counter() - begun
        speed = (took, course.clock.steps - before)
        print_summary(TrimmedConsole(), facts, speed, folder)
    return 0


class Course(Struct):
    """A run, and what measures it."""

    clock: Clock
    metrics: RunMetrics
    timed: TimedEngine


def _begin(
    wanted: SimulationRequest, trial: Trial, folder: Path | None, resume: str | None
) -> Course:
    """A run from its beginning, or from its checkpoint."""
    if resume is not None:
        assert folder is not None
        version = ringleaf.__version__
        with one_line("--resume", BadInput), progress(what="taking up the run"):
            clock = checkpoint.load(Path(resume), trial, version, wanted.arguments())
            metrics, ledger = clock.observers
            assert isinstance(metrics, RunMetrics)
            assert isinstance(ledger, Ledger)
            assert isinstance(clock.scheduler, TimedEngine)
            ledger.open(folder / "jobs.csv")
        return Course(clock, metrics, clock.scheduler)
    timed = TimedEngine(scheduler_of(wanted, trial))
    metrics = metrics_of(wanted)
    observers: list[Observer] = [metrics]
    if folder is not None:
        ledger = Ledger()
        with one_line(str(folder)):
            folder.mkdir(parents=True, exist_ok=True)
            ledger.open(folder / "jobs.csv")
        observers.append(ledger)
    with progress(what="reading the jobs"):
        return Course(Clock(trial, timed, observers), metrics, timed)


def scheduler_of(wanted: SimulationRequest, trial: Trial) -> Engine:
    """Return the engine that schedules the cluster of *trial*."""
    site = trial.site
    try:
        make = baseline(wanted.policy, order=wanted.order, seed=wanted.seed)
        return make(site.nodes, site.leaves, site.queues, trial.conf)
    except UnknownName as error:
        option = "--order" if wanted.policy in BASELINES else "--policy"
        raise BadUse(f"{option}: {error}") from None
    except NotInstalled as error:
        raise BadUse(f"--policy: {error}") from None


def metrics_of(wanted: SimulationRequest) -> RunMetrics:
    """Return the observer that measures the run."""
    if not wanted.regret:
        return RunMetrics()
    if find_spec("ortools") is None:
        raise BadUse(
            "--regret needs the extra optimum; hint: pip install 'ringleaf[optimum]'"
        )
    return Regret(wanted.regret)


def _folder(out: str | None, resume: str | None) -> Path | None:
    """The folder of results; of a resumed run, its former folder."""
    if resume is None:
        return None if out is None else Path(out)
    folder = Path(resume).parent
    if out is not None and Path(out) != folder:
        raise BadUse(
            f"--out is {out!r}, and the run of --resume writes to {str(folder)!r}; "
            "hint: without --out"
        )
    return folder


def _spare_others(folder: Path, wanted: SimulationRequest) -> None:
    """Refuse a folder with a run that is not over; warn of other results there."""
    unfinished = folder / BOOKMARK
    if unfinished.exists():
        raise BadUse(
            f"--out: {unfinished} is an interrupted run; hint: continue it with "
            f"--resume {unfinished}, remove it, or name another folder"
        )
    try:
        before = msgspec.json.decode((folder / "summary.json").read_bytes())["options"]
    except (OSError, msgspec.DecodeError, LookupError, TypeError):
        return
    if before != msgspec.to_builtins(wanted):
        warn(f"--out: {folder} has results of other options, which are overwritten")


# On the way.


def _go(
    course: Course, folder: Path | None, wanted: SimulationRequest, save_every_s: float
) -> int:
    """Play to the end; the number of the signal that came before it, or 0."""
    clock = course.clock
    with _signals() as came, SimulationScreen(clock, wanted.policy) as screen:
        saved = time.perf_counter()
        for now in play_in_chunks(clock):
            if came:
                return came[0]
            screen.show(now)
            if folder is not None and now - saved >= save_every_s:
                _save(course, folder, wanted)
                saved = time.perf_counter()
    return 0


@contextmanager
def _signals() -> Iterator[Sequence[int]]:
    """The numbers of the signals to end that came, which are heeded in time."""
    came: list[int] = []

    def note(number: int, _frame: object) -> None:
        if came:  # the second signal ends at once
            sys.exit(128 + number)
        came.append(number)

    before: list[tuple[int, Any]] = [
        (each, signal.signal(each, note)) for each in (signal.SIGINT, signal.SIGTERM)
    ]
    try:
        yield came
    finally:
        for each, handler in before:
            signal.signal(each, handler)


def _save(course: Course, folder: Path, wanted: SimulationRequest) -> None:
    with one_line(str(folder / BOOKMARK)):
        checkpoint.save(
            folder / BOOKMARK, course.clock, ringleaf.__version__, wanted.arguments()
        )


def _save_checkpoint(
    course: Course, folder: Path | None, wanted: SimulationRequest, number: int
) -> int:
    """Say how a run that was interrupted can go on."""
    over = course.clock.tally.over
    facts = f"interrupted after {over} jobs"
    if folder is None:
        report(f"{facts}; hint: with --out DIR a run can be continued")
    else:
        _save(course, folder, wanted)
        for observer in course.clock.observers:
            if isinstance(observer, Ledger):
                observer.close()
        again = f"--resume {folder / BOOKMARK}"
        report(f"{facts}; hint: the same command with {again} continues it")
    return 128 + number


# What it comes to.


def _summary_plain(
    wanted: SimulationRequest, trial: Trial, course: Course
) -> dict[str, Any]:
    """All of it as plain values; the same arguments give the same."""
    site, jobs = trial.site, trial.workload
    return {
        "ringleaf": ringleaf.__version__,
        "options": msgspec.to_builtins(wanted),
        "cluster": {
            "name": site.name,
            "nodes": len(site.nodes),
            "chips": site.chips,
            "leaves": len({n.leaf for n in site.nodes} - {None}),
            "superpods": len({n.superpod for n in site.nodes} - {None}),
        },
        "workload": {
            "name": jobs.name,
            "about": jobs.about,
            "jobs": jobs.n_jobs,
            "span_s": jobs.span_s,
            "load": jobs.load,
            "notes": list(jobs.notes),
        },
        "ends_s": course.clock.now,
        "steps": course.clock.steps,
        "measures": course.metrics.plain(),
    }


def _write(folder: Path, facts: dict[str, Any], course: Course) -> None:
    """The files of results; what says how fast it went stands apart."""
    lines = [",".join(SERIES)]
    lines += [
        ",".join(f"{value:.6g}" for value in row) for row in course.metrics.rows()
    ]
    written: dict[str, bytes] = {
        "series.csv": "\n".join([*lines, ""]).encode(),
        "summary.json": _pretty(facts),
        "cost.json": _pretty(course.timed.plain()),
    }
    for name, data in written.items():
        with one_line(str(folder / name)):
            (folder / name).write_bytes(data)
    (folder / BOOKMARK).unlink(missing_ok=True)


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
