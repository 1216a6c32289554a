"""What a simulation was asked for, and the trial that it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ringleaf.baselines.registry import OURS
from ringleaf.cli.failure import BadUse, warn
from ringleaf.cli.file import one_line
from ringleaf.cli.output import progress
from ringleaf.cli.site import simulated_cluster, warn_of_unused
from ringleaf.config.conf import Conf
from ringleaf.config.reader import DEFAULT
from ringleaf.model.fault import FaultMode, Recovery
from ringleaf.model.moving import Moving
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.policies.words import some_of
from ringleaf.simulator.failures import FailureGenerator, read_rates, recovering
from ringleaf.simulator.movable import movable
from ringleaf.simulator.preset import USUAL, Knobs, check
from ringleaf.simulator.sites import with_queues
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.traces import DETECT, read_trace
from ringleaf.simulator.trial import Site, Trial, Workload
from ringleaf.simulator.workloads import USUAL_LOAD, WORKLOADS, workload

USUAL_WORKLOAD: Final = "kalos"
MOST_QUEUES: Final = 3
"""Queues that a warning names."""


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
        """The request as plain values, with digests of the files."""
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
    from ringleaf.cli.conf_file import read_file  # noqa: PLC0415 - slow, rarely used

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
