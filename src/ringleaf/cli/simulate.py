"""``ringleaf simulate``: jobs on a cluster in virtual time, and what it comes to."""

import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

import ringleaf
from ringleaf.baselines.optimum import NotInstalled
from ringleaf.baselines.registry import BASELINES, OURS, UnknownName, baseline
from ringleaf.cli.failure import BadUse, report, warn
from ringleaf.cli.file import check_folder, one_line
from ringleaf.cli.output import TrimmedConsole, print_json, progress
from ringleaf.cli.simulation_screen import SimulationScreen, paced
from ringleaf.cli.simulation_summary import (
    print_summary,
)
from ringleaf.cli.site import simulated_cluster, warn_of_unused
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.engine.engine import Engine
from ringleaf.model.fault import FaultMode, Recovery
from ringleaf.model.moving import Moving
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.policies.counting import some_of
from ringleaf.report.duration import format_duration
from ringleaf.report.measures import (
    value_of,
)
from ringleaf.simulator import checkpoint
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.failures import FailureGenerator, read_rates, recovering
from ringleaf.simulator.ledger import Ledger
from ringleaf.simulator.metrics import SERIES, RunMetrics
from ringleaf.simulator.metrics.cost import TimedEngine
from ringleaf.simulator.metrics.regret import Regret
from ringleaf.simulator.movable import movable
from ringleaf.simulator.preset import USUAL, Knobs, check
from ringleaf.simulator.sites import with_queues
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.traces import DETECT, read_trace
from ringleaf.simulator.trial import Observer, Site, Trial, Workload
from ringleaf.simulator.workloads import (
    SUITS,
    USUAL_LOAD,
    WORKLOADS,
    suited,
    workload,
)

USUAL_WORKLOAD: Final = "kalos"
MOST_QUEUES: Final = 3
"""Queues that a warning names."""
BOOKMARK: Final = "unfinished.run"
"""Where in the folder of results a run is put away that is not over."""


class SimulationRequest(Struct, frozen=True):
    """What is to be simulated, as it was asked for."""

    cluster: str
    product: str | None = None
    workload: str = USUAL_WORKLOAD
    trace: str | None = None
    columns: str | None = None
    chips_each: int = 1
    queues: bool = False
    skip_bad: bool = False
    load: float | None = None
    jobs: int | None = None
    seed: int = 0
    conf: str | None = None
    policy: str = OURS
    order: str | None = None
    faults: str = "none"
    recovery: str = FaultMode.GRACE.value
    contention: float = 0.0
    checkpoint_s: float = 1800.0
    grace_s: float = 30.0
    knobs: Knobs = USUAL
    movable: float = 0.0
    """Share of the jobs that may be moved while they run."""
    restart_s: float = 60.0
    regret: int = 0
    """Look at one in so many of the moments at which a job is pending; 0: none."""

    def arguments(self) -> dict[str, Any]:
        """It as plain values, with what stands in its files."""
        files = (self.cluster, self.trace, self.conf)
        found: dict[str, Any] = msgspec.to_builtins(self)
        if not self.regret:
            del found["regret"]
        if not self.movable:
            del found["movable"], found["restart_s"]
        return found | {
            f"what is in {name}": _digest(name) for name in files if name is not None
        }


def _digest(name: str) -> str:
    """Which bytes the file *name* has; empty where there is none."""
    path = Path(name)
    return sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def simulate_jobs(
    wanted: SimulationRequest,
    *,
    out: str | None,
    resume: str | None,
    save_every_s: float,
    as_json: bool,
) -> int:
    """Simulate what is *wanted*, and tell what it comes to; the exit status."""
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
        return _put_away(course, folder, wanted, went)
    tally = course.clock.finish()
    told = _told(wanted, trial, course) | {"jobs": msgspec.to_builtins(tally)}
    load, chips = trial.workload.load, trial.site.chips
    for text in warnings_on([[told["measures"]]], load, chips, wanted):
        warn(text)
    if folder is not None:
        _write(folder, told, course)
    if as_json:
        print_json(told)
    else:
        took = time.perf_counter() - begun
        speed = (took, course.clock.steps - before)
        print_summary(TrimmedConsole(), told, speed, folder)
    return 0


class Course(Struct):
    """A run, and what measures it."""

    clock: Clock
    metrics: RunMetrics
    timed: TimedEngine


def _begin(
    wanted: SimulationRequest, trial: Trial, folder: Path | None, resume: str | None
) -> Course:
    """A run from its beginning, or from where it was put away."""
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
    """Where results go: of a run that is taken up, where they went before."""
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


LEAST_COUNTED: Final = 0.2
"""Share of the time in which jobs come that is counted, at least, without a warning."""


def warnings_on(
    measured: Sequence[Sequence[dict[str, Any]]],
    load: float,
    chips: int,
    wanted: SimulationRequest,
) -> list[str]:
    """Why the figures of runs may mislead, a sentence each with a hint.

    Args:
        measured: What the runs of every policy come to.
        load: The offered load.
        chips: Those of the cluster.
        wanted: What was asked for.

    """
    every = [each for runs in measured for each in runs]
    found = (
        on_window(every[0]["window"]),
        on_idle(every, load),
        on_long(measured, load, chips, wanted),
    )
    return [text for text in found if text]


def on_window(window: dict[str, float]) -> str:
    """What to say where little of the time in which jobs come is counted."""
    counted, comes = window["to_s"] - window["from_s"], window["to_s"]
    if counted >= LEAST_COUNTED * comes:
        return ""
    return (
        f"only {format_duration(counted)} of the {format_duration(comes)} in which "
        "jobs arrive are "
        "counted, as few of them arrive early; hint: more --jobs, or --load"
    )


def on_idle(measured: Sequence[dict[str, Any]], load: float) -> str:
    """What to say where no job ever waited: the run says nothing about scheduling."""
    if any(
        each["wait_s"]["all"]["max"] or each["jobs"]["unstarted"] for each in measured
    ):
        return ""
    return (
        f"no job waited, so wait time and utilization say nothing about the "
        f"policy; hint: a higher load, as --load {_higher(load)}, or a smaller "
        "--cluster"
    )


LONG_S: Final = 86400.0
"""Where jobs wait longer on average, the workload does not suit the cluster."""
FEW: Final = 3
"""A size class is judged by at least this many jobs, the mean over runs."""
CLASSES: Final = {
    (">64", (">256", "65-256")): "gangs > 64 chips",
    ("9-64", ("9-64",)): "jobs of 9 to 64 chips",
    ("5-8", ("5-8",)): "jobs of 5 to 8 chips",
    ("2-4", ("2-4",)): "jobs of 2 to 4 chips",
}
"""Sizes of jobs and their buckets, the largest first, and what they are called."""


def on_long(
    measured: Iterable[Sequence[dict[str, Any]]],
    load: float,
    chips: int,
    wanted: SimulationRequest,
) -> str:
    """What to say where jobs, or those of the largest size, wait for days.

    They do so under every policy.
    Jobs that never start count as pending until the last job ends, as in the tables,
    where another policy starts all jobs. Elsewhere they may be a few that no policy can
    start, and are not counted.

    Args:
        measured: What the runs of every policy come to.
        load: The offered load.
        chips: Those of the cluster.
        wanted: What was asked for.

    """
    every = [[*runs] for runs in measured]
    never = [any(each["jobs"]["unstarted"] for each in runs) for runs in every]
    waits = "wait_s" if all(never) or not any(never) else "pending_s"
    which, wait_s = "jobs", min(_mean_wait(runs, waits) for runs in every)
    if wait_s <= LONG_S:
        which, wait_s = _largest_wait(every, waits)
    if wait_s <= LONG_S:
        return ""
    several = len(every) > 1
    told = f"{format_duration(wait_s)} or more" if several else format_duration(wait_s)
    under = " with every policy" if several else ""
    hints = _suiting(load, chips, wanted)
    return (
        f"{which} wait {told} on average{under}, so the workload does not suit "
        "the cluster: the queue grows throughout the run, or single jobs request most "
        f"of the chips; hint: {', '.join(hints)}"
    )


def _suiting(load: float, chips: int, wanted: SimulationRequest) -> list[str]:
    """What would suit a cluster of so many chips better.

    A lower load does not help where single jobs request a good part of the chips.
    """
    found, own = [], "your own jobs with --trace"
    lower = min(round(load - 0.3, 1), USUAL_LOAD)
    is_preset = wanted.trace is None
    suits = SUITS.get(wanted.workload)
    if is_preset and (suits is None or suits.chips > chips):
        found.append(f"--workload {suited(chips)}, which suits {chips:,} chips")
    elif lower > 0:
        found.append(f"a lower load, as --load {lower}")
        own = f"another --workload, or {own}"
    found.append("a larger --cluster")
    return [*found, own] if is_preset else found


def _mean_wait(runs: Iterable[dict[str, Any]], waits: str) -> float:
    return fmean(each[waits]["all"]["mean"] or 0.0 for each in runs)


def _largest_wait(
    measured: Iterable[Sequence[dict[str, Any]]], waits: str
) -> tuple[str, float]:
    """The largest size of which there are a few jobs, and their shortest mean wait."""
    for (size, buckets), which in CLASSES.items():
        counts, means = [], []
        for runs in measured:
            sizes = [each[waits]["by_size"] for each in runs]
            counts.append(fmean(_jobs_of(each, buckets) for each in sizes))
            known = [value_of(e, f"{waits}.by_size.{size}.mean") for e in runs]
            means.append(fmean([each for each in known if each is not None] or [0.0]))
        if min(counts) >= FEW:
            return which, min(means)
    return "jobs", 0.0


def _jobs_of(by_size: dict[str, Any], buckets: Sequence[str]) -> int:
    return sum(by_size[each]["n"] for each in buckets if each in by_size)


def _higher(load: float) -> str:
    """A load at which jobs are likely to wait.

    >>> _higher(0.3), _higher(0.9), _higher(1.4)
    ('0.9', '1.2', '1.7')
    """
    return f"{0.9 if load < 0.6 else load + 0.3:.1f}"  # noqa: PLR2004


def trial_of(wanted: SimulationRequest) -> Trial:
    """Everything that the run depends on."""
    with _named_options():
        check(wanted.seed, wanted.load, wanted.jobs, wanted.knobs)
    place = simulated_cluster(wanted.cluster, wanted.product)
    conf = _conf(wanted.conf)
    if place.scenario is not None:
        warn_of_unused(wanted.cluster, place.scenario)
        if wanted.conf is None:
            own = replace(conf, settings=place.scenario.settings)
            conf = place.scenario.conf or own
    with one_line("--faults", BadInput):
        rates = read_rates(wanted.faults)
    if rates.is_never and wanted.faults != "none":
        warn(
            f"--faults {wanted.faults}: nothing ever fails, as 0 hours between faults "
            "is never; hint: --faults usual"
        )
    with progress(what="drawing the jobs"):
        jobs = _workload(wanted, place.site)
    for line in jobs.notes:
        warn(f"{jobs.name}: {line}")
    is_trace = wanted.trace is not None
    _warn_of_empty(wanted.cluster, place.site, jobs, is_trace=is_trace)
    site = with_queues(place.site, jobs.queues)
    if wanted.recovery != FaultMode.OFF:
        jobs = recovering(jobs, Recovery(FaultMode(wanted.recovery)))
    if wanted.movable:
        moving = Moving(wanted.restart_s, checkpoint_s=wanted.checkpoint_s)
        jobs = movable(jobs, wanted.movable, moving)
    return Trial(
        site=site,
        workload=jobs,
        conf=conf,
        policy=wanted.policy,
        seed=wanted.seed,
        timed_events=FailureGenerator(site, rates, wanted.seed),
        contention=wanted.contention,
        checkpoint_s=wanted.checkpoint_s,
        grace_s=wanted.grace_s,
    )


def _warn_of_empty(file: str, site: Site, jobs: Workload, *, is_trace: bool) -> None:
    """Name the queues of a file where all jobs are in another one."""
    empty = [queue.name for queue in site.queues if queue.name != DEFAULT_QUEUE]
    if empty and {*jobs.queues} <= {DEFAULT_QUEUE}:
        told = some_of(empty, MOST_QUEUES)
        own = "--queues, and --columns with queue=COLUMN"
        hint = own if is_trace else "your own jobs with --trace FILE --queues"
        warn(
            f"{file}: {'queues' if len(empty) > 1 else 'queue'} {told} "
            f"{'get' if len(empty) > 1 else 'gets'} no jobs, as those of "
            f"{jobs.name} are in queue {DEFAULT_QUEUE}; hint: {hint}"
        )


@contextmanager
def _named_options() -> Iterator[None]:
    """What is wrong with a number is said of its option, which has the same name."""
    try:
        yield
    except BadInput as error:
        raise BadUse(f"--{error}") from None


def _conf(file: str | None) -> Conf:
    if file is None:
        return DEFAULT
    from ringleaf.cli.conf import read_file  # noqa: PLC0415 - slow, rarely used

    try:
        conf, warnings = read_file(file)
    except BadUse as error:
        raise BadUse(f"--conf: {error}") from None
    for line in warnings:
        warn(f"{file}: {line}")
    return conf


def _workload(wanted: SimulationRequest, site: Site) -> Workload:
    if wanted.trace is None:
        of_trace = {
            "--columns": wanted.columns is not None,
            "--chips-each": wanted.chips_each != 1,
            "--queues": wanted.queues,
            "--skip-bad": wanted.skip_bad,
        }
        for option in (each for each, given in of_trace.items() if given):
            raise BadUse(f"{option} goes with --trace; hint: --trace FILE {option} …")
        load = USUAL_LOAD if wanted.load is None else wanted.load
        if Path(wanted.workload).suffix:
            raise BadUse(
                f"--workload is {wanted.workload!r}, want one of "
                f"{', '.join(WORKLOADS)}; hint: --trace {wanted.workload} reads a file"
            )
        with one_line("--workload", BadInput):
            return workload(
                wanted.workload,
                site,
                seed=wanted.seed,
                load=load,
                jobs=wanted.jobs,
                knobs=wanted.knobs,
            )
    of_presets = {
        "--workload": wanted.workload != USUAL_WORKLOAD,
        "--burst": wanted.knobs.burst != USUAL.burst,
        "--amplitude": wanted.knobs.amplitude != USUAL.amplitude,
    }
    for option in (each for each, given in of_presets.items() if given):
        raise BadUse(
            f"{option} goes without --trace, whose jobs come when they came; "
            "hint: --load moves them together or apart"
        )
    with one_line("--trace", BadInput):
        return read_trace(
            wanted.trace,
            site,
            DETECT if wanted.columns is None else wanted.columns,
            load=wanted.load,
            jobs=wanted.jobs,
            times=wanted.chips_each,
            seed=wanted.seed,
            queues=wanted.queues,
            skip_bad=wanted.skip_bad,
            knobs=wanted.knobs,
        )


# On the way.


def _go(
    course: Course, folder: Path | None, wanted: SimulationRequest, save_every_s: float
) -> int:
    """Play to the end; the number of the signal that came before it, or 0."""
    clock = course.clock
    with _signals() as came, SimulationScreen(clock, wanted.policy) as screen:
        saved = time.perf_counter()
        for now in paced(clock):
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


def _put_away(
    course: Course, folder: Path | None, wanted: SimulationRequest, number: int
) -> int:
    """Say how a run that was interrupted can go on."""
    over = course.clock.tally.over
    told = f"interrupted after {over} jobs"
    if folder is None:
        report(f"{told}; hint: with --out DIR a run can be continued")
    else:
        _save(course, folder, wanted)
        for observer in course.clock.observers:
            if isinstance(observer, Ledger):
                observer.close()
        again = f"--resume {folder / BOOKMARK}"
        report(f"{told}; hint: the same command with {again} continues it")
    return 128 + number


# What it comes to.


def _told(wanted: SimulationRequest, trial: Trial, course: Course) -> dict[str, Any]:
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


def _write(folder: Path, told: dict[str, Any], course: Course) -> None:
    """The files of results; what says how fast it went stands apart."""
    lines = [",".join(SERIES)]
    lines += [
        ",".join(f"{value:.6g}" for value in row) for row in course.metrics.rows()
    ]
    written: dict[str, bytes] = {
        "series.csv": "\n".join([*lines, ""]).encode(),
        "summary.json": _pretty(told),
        "cost.json": _pretty(course.timed.plain()),
    }
    for name, data in written.items():
        with one_line(str(folder / name)):
            (folder / name).write_bytes(data)
    (folder / BOOKMARK).unlink(missing_ok=True)


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
