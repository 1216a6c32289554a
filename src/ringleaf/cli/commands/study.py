"""Commands that simulate, and list what can be simulated."""

from typing import TYPE_CHECKING, Annotated, Any

from ringleaf.cli.failure import BadUse, program
from ringleaf.cli.known_values import (
    known_clusters,
    known_policies,
    known_workloads,
)
from ringleaf.cli.options import (
    COMPARED,
    FaultOptions,
    Jobs,
    Json,
    Load,
    RuleOptions,
    Seed,
    TraceOptions,
    WorkloadOptions,
    simulation_request,
)
from ringleaf.cli.parameter import Option, Positional, given
from ringleaf.cli.registry import STUDY, TRY, command

if TYPE_CHECKING:
    from ringleaf.cli.fill import FillRequest

DEFAULT_WORKLOAD, DEFAULT_TRACE, DEFAULT_RULES, DEFAULT_FAULTS = (
    WorkloadOptions(),
    TraceOptions(),
    RuleOptions(),
    FaultOptions(),
)

SEEDS, FILL_SEEDS = 3, 10
FILL_DEMAND, FILL_LOAD, FILL_JOBS = 1.3, 1.1, 2000
"""Of --fill, where nothing else is asked."""


@command(
    STUDY,
    "ringleaf simulate",
    "ringleaf simulate --workload kalos --load 0.95 --faults usual --out results",
    "ringleaf simulate --trace jobs.csv --columns philly --policy best-fit",
    "ringleaf simulate cluster.json --jobs 2000",
    "ringleaf simulate --resume results/unfinished.run",
)
def simulate(
    scenario: Annotated[
        str | None,
        Positional(
            "SCENARIO",
            "Simulate the workload on the nodes of this scenario; the same as "
            "--cluster SCENARIO.",
        ),
    ] = None,
    *,
    jobs: WorkloadOptions = DEFAULT_WORKLOAD,
    trace: TraceOptions = DEFAULT_TRACE,
    policy: Annotated[
        str,
        Option(
            "NAME",
            "The policy that schedules (see ringleaf policies).",
            known=known_policies,
        ),
    ] = "ringleaf",
    rules: RuleOptions = DEFAULT_RULES,
    faults: FaultOptions = DEFAULT_FAULTS,
    out: Annotated[
        str | None,
        Option("DIR", "Write jobs.csv, series.csv and summary.json to this folder."),
    ] = None,
    resume: Annotated[
        str | None,
        Option("FILE", "Continue an interrupted run: DIR/unfinished.run of --out DIR."),
    ] = None,
    save_every: Annotated[
        float,
        Option("S", "With --out: seconds between two checkpoints of the run.", least=0),
    ] = 60.0,
    json: Json = False,
) -> int:
    """Simulate a workload and report the results.

    The engine that schedules a live cluster schedules this one, in virtual time. The
    same options give the same results. Ctrl-C saves a run that has --out.
    """
    from ringleaf.cli.simulate import simulate_jobs

    if scenario is not None:
        if jobs.cluster != DEFAULT_WORKLOAD.cluster:
            raise BadUse(
                f"SCENARIO is {scenario!r} and --cluster is {jobs.cluster!r}, want one "
                "of them; hint: leave --cluster out"
            )
        jobs = jobs._replace(cluster=scenario)
    return simulate_jobs(
        simulation_request(jobs, trace, rules, faults, policy),
        out=out,
        resume=resume,
        save_every_s=save_every,
        as_json=json,
    )


@command(
    STUDY,
    "ringleaf compare --demo",
    "ringleaf compare --jobs 1000 --seeds 2",
    "ringleaf compare --policies ringleaf,best-fit,random+easy --report out.html",
    "ringleaf compare --workload seren --load 0.95 --seeds 10 --out results",
    "ringleaf compare --fill --workload helios-gang --seeds 5",
    forms=[
        (
            TRY,
            "compare --demo",
            "Compare Ringleaf with other schedulers, in half a minute.",
        )
    ],
)
def compare(
    *,
    policies: Annotated[
        list[str] | None,
        Option(
            "NAMES",
            "Policies to compare, separated by commas (see ringleaf policies). The "
            "first is the reference; the report compares it with the second, the "
            "scheduler you run. best-fit+easy gives best-fit a queue order.",
            default=COMPARED,
            known=known_policies,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        Option(
            "N",
            "Number of seeds, which is the number of runs of each policy.",
            least=1,
            default="3; with --fill 10",
        ),
    ] = None,
    demo: Annotated[
        bool,
        Option(
            "",
            "Run the demo: five schedulers, 4,096 chips, a table and a report in "
            "build/demo. Takes --jobs, --out and --json only.",
        ),
    ] = False,
    fill: Annotated[
        bool,
        Option(
            "",
            "Offer more jobs than fit and report the share of chips that each policy "
            "allocates. A job that does not fit at once is dropped.",
        ),
    ] = False,
    demand: Annotated[
        float | None,
        Option(
            "SHARE",
            "With --fill: requested chips as a share of all chips, in the static fill.",
            least=0,
            default="1.3",
        ),
    ] = None,
    workers: Annotated[
        int | None, Option("N", "Number of processes.", least=1, default="one per core")
    ] = None,
    dask: Annotated[
        str | None,
        Option("ADDRESS", "Run on the workers of this Dask scheduler."),
    ] = None,
    out: Annotated[
        str | None,
        Option(
            "DIR",
            "Write comparison.json, report.html and every run to this folder. Runs "
            "that are there are not repeated.",
        ),
    ] = None,
    report: Annotated[
        str | None, Option("FILE", "Write the report to this HTML file.")
    ] = None,
    plots: Annotated[
        str | None,
        Option("DIR", "Write PNG plots to this folder. Needs matplotlib."),
    ] = None,
    json: Json = False,
    jobs: WorkloadOptions = DEFAULT_WORKLOAD,
    trace: TraceOptions = DEFAULT_TRACE,
    rules: RuleOptions = DEFAULT_RULES,
    faults: FaultOptions = DEFAULT_FAULTS,
) -> int:
    """Compare policies on the same workload.

    Every policy runs every seed. Runs of one seed have the same jobs at the same
    times, so that policies are compared seed by seed. The same options give the same
    results.
    """
    own = {
        "--policies": policies,
        "--seeds": seeds,
        "--workers": workers,
        "--demand": demand,
    }
    files = {"--dask": dask, "--out": out, "--report": report, "--plots": plots}
    study = given(jobs) | given(trace) | given(rules) | given(faults)
    if demo:
        del files["--out"]
        study.pop("--jobs", None)
        _refuse_with("--demo", own | {"--fill": fill} | files | study)
        from ringleaf.cli.demo import show_demo

        return show_demo(jobs=jobs.jobs, out=out or "build/demo", as_json=json)
    if fill:
        timed = given(faults) | given(jobs._replace(**_USED_BY_FILL))
        timed |= {"--queues": trace.queues}
        _refuse_with("--fill", files | timed)
        from ringleaf.cli.fill import fill_cluster

        return fill_cluster(
            _fill(jobs, trace, rules, FILL_DEMAND if demand is None else demand),
            policies or [COMPARED],
            seeds=seeds or FILL_SEEDS,
            workers=workers,
            as_json=json,
        )
    if demand is not None:
        raise BadUse(
            f"--demand goes with --fill; hint: {program()} compare --fill --demand 1.3"
        )
    from ringleaf.cli.compare import compare_policies

    return compare_policies(
        simulation_request(jobs, trace, rules, faults, "ringleaf"),
        policies or [COMPARED],
        seeds=seeds or SEEDS,
        workers=workers,
        dask=dask,
        out=out,
        report=report,
        plots=plots,
        as_json=json,
    )


_USED_BY_FILL: dict[str, Any] = {
    name: getattr(DEFAULT_WORKLOAD, name)
    for name in (
        *("cluster", "product", "workload", "trace", "load", "jobs", "common", "seed"),
    )
}
"""Options of the workload that --fill uses, at their defaults."""


def _refuse_with(form: str, options: dict[str, object]) -> None:
    for option in (name for name, value in options.items() if value):
        raise BadUse(
            f"{option} has no effect with {form}, want it without; "
            f"hint: {program()} compare --help"
        )


def _fill(
    jobs: WorkloadOptions, trace: TraceOptions, rules: RuleOptions, demand: float
) -> "FillRequest":
    """What --fill is asked."""
    from ringleaf.cli.fill import FillRequest
    from ringleaf.simulator.preset import check
    from ringleaf.simulator.source import BadInput

    wanted = simulation_request(
        jobs._replace(load=None, jobs=None), trace, rules, DEFAULT_FAULTS, "ringleaf"
    )
    load = FILL_LOAD if jobs.load is None else jobs.load
    n_jobs = FILL_JOBS if jobs.jobs is None else jobs.jobs
    try:
        check(jobs.seed, load, n_jobs, wanted.knobs)
    except BadInput as error:
        raise BadUse(f"--{error}") from None
    return FillRequest(wanted, demand, load, n_jobs)


@command(STUDY, "ringleaf policies", "ringleaf policies kueue-tas")
def policies(
    name: Annotated[
        str | None,
        Positional("NAME", "Show this policy only.", known=known_policies),
    ] = None,
    *,
    json: Json = False,
) -> int:
    """List the policies for simulate and compare.

    Ringleaf itself and baselines: rules of other schedulers and from the literature,
    with what each respects and where it comes from.
    """
    from ringleaf.cli.policies import show_policies

    return show_policies(name, as_json=json)


@command(
    STUDY,
    "ringleaf workloads",
    "ringleaf workloads kalos --jobs 20000",
    "ringleaf workloads llm-superpod --cluster mixed --json",
)
def workloads(
    name: Annotated[
        str | None,
        Positional(
            "NAME|FILE", "A workload, or a trace: CSV or SWF.", known=known_workloads
        ),
    ] = None,
    *,
    cluster: Annotated[
        str | None,
        Option(
            "NAME|FILE",
            "The cluster for the jobs: a preset, a topology file or a scenario.",
            default="leaf-spine-512; of llm-superpod superpod-48x8",
            known=known_clusters,
        ),
    ] = None,
    load: Load = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    trace: TraceOptions = DEFAULT_TRACE,
    json: Json = False,
) -> int:
    """List clusters and workloads, or count the jobs of one.

    With NAME it counts jobs by kind, size and ending, with their shares of chip-time.
    """
    from ringleaf.cli.workloads import WorkloadQuery, show_workloads

    told = (cluster, trace.columns, load, jobs)
    of_trace = (trace.chips_each, trace.queues, trace.skip_bad)
    if name is None and (told, trace) != ((None,) * 4, DEFAULT_TRACE):
        raise BadUse(f"NAME is missing, want a workload; hint: {program()} workloads")
    asked = None if name is None else WorkloadQuery(name, *told, seed, *of_trace)
    return show_workloads(asked, as_json=json)
