"""The commands. Each imports what it needs when it is called: --help stays fast."""

import gc
import os
import sys
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import ringleaf
from ringleaf.cli.failure import BadUse, Interrupted, program, report
from ringleaf.cli.options import (
    COMPARED,
    Amplitude,
    Burst,
    CheckpointSeconds,
    ChipsEach,
    ClusterName,
    Columns,
    Common,
    Compared,
    ConfFile,
    Contention,
    EstimateBy,
    FaultRates,
    GraceSeconds,
    Jobs,
    Load,
    NodesAre,
    QueueOrder,
    Recovering,
    Recovers,
    RegretEvery,
    Seed,
    SkipBad,
    Trace,
    TraceQueues,
    Workers,
    WorkloadName,
)

if TYPE_CHECKING:
    from ringleaf.cli.live import Cluster

if TYPE_CHECKING:
    from ringleaf.cli.shadow import ShadowRun

app = typer.Typer(
    name="ringleaf",
    add_completion=False,
    rich_markup_mode=None,  # plain help: three times as fast to start
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
)


ScenarioFile = Annotated[
    str,
    typer.Argument(metavar="FILE", help="Scenario file, YAML or JSON; - for stdin."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
TopologyFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="ConfigMap basic-tor-node-cm, its tor_info, or CSV; - for stdin.",
    ),
]
NodeColumn = Annotated[
    str | None,
    typer.Option(
        "--node", metavar="COLUMN", help="CSV: the column of the node; else the first."
    ),
]
LeafColumns = Annotated[
    str | None,
    typer.Option(
        "--leaf",
        metavar="COLUMN[,COLUMN...]",
        help="CSV: the columns that together name the leaf; else the last.",
    ),
]

Kubeconfig = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Where the API server is; else $KUBECONFIG, the pod's service "
        "account, ~/.kube/config.",
    ),
]
Context = Annotated[
    str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig.")
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Where objects are; else that of the context.",
    ),
]
SchedulerNames = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="schedulerName of pods that are ours, several times if need be.  "
        "[default: ringleaf, volcano]",
    ),
]
LeaderElect = Annotated[
    bool, typer.Option(help="Work only while no other holds the Lease.")
]
LeaseDuration = Annotated[
    int,
    typer.Option(
        metavar="S",
        min=3,
        max=3600,
        help="Seconds after which another takes over from a leader that is gone.",
    ),
]
LeaseName = Annotated[str, typer.Option(metavar="NAME", help="Name of the Lease.")]
LeaseNamespace = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Namespace of the Lease and of records of repairs; else the pod's own, or "
        "kube-system.",
    ),
]
SchedulerConf = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="volcano-scheduler.conf; else the default."),
]


def _version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    if value:
        print(f"ringleaf {ringleaf.__version__}")  # noqa: T201
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Place AI jobs on Ascend chips that are wired together, and say why.

    Exit status: 0 yes, 1 the answer is no, 2 bad use or bad input.

    \b
    Examples:
      ringleaf demo
      ringleaf plan examples/node-a-or-b.yaml
      ringleaf explain examples/why-waiting.yaml --job big --node n2
      ringleaf products atlas-800t-a2 --table
      ringleaf topology check examples/topology/basic-tor-node-cm.yaml
      ringleaf conf check examples/conf/vendor.yaml
      ringleaf simulate --workload kalos --jobs 2000
      ringleaf compare --jobs 1000 --seeds 2
      ringleaf status --watch
      ringleaf faults
    """  # noqa: D301 - \b keeps the lines apart
    del version
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201
        raise typer.Exit(2)


@app.command()
def plan(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="Scenario file, YAML or JSON; - for stdin."
        ),
    ] = None,
    *,
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="MANIFEST",
            help="Ask the live cluster: what would become of this manifest; several "
            "times if need be, - for stdin.",
        ),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option("--record", metavar="LOG", help="Write a log for replay."),
    ] = None,
    namespace: Namespace = None,
    server_dry_run: Annotated[
        bool,
        typer.Option(
            "--server-dry-run",
            help="Let the API server fill in what it would (a create that keeps "
            "nothing); needs the right to create.",
        ),
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    scheduler_name: SchedulerNames = None,
    scheduler_conf: SchedulerConf = None,
    json: AsJson = False,
) -> None:
    """Decide every job of a scenario, or of a manifest on the live cluster.

    Jobs of a scenario are decided in the order of the file; each sees what the earlier
    ones took. One with queues, a configuration or later events is run through time.
    With -f nothing is submitted: it says where the pods of the manifest would go now,
    with which chips, or why they would wait and when they could start.
    Exit status 0 when every job was placed or has ended, 1 when some job was not.

    \b
    Examples:
      ringleaf plan examples/node-a-or-b.yaml
      ringleaf plan examples/node-a-or-b.yaml --json | jq .decisions
      ringleaf plan examples/big-job-waits.yaml
      cat examples/node-a-or-b.yaml | ringleaf plan -
      ringleaf plan -f job.yaml -n research
    """  # noqa: D301
    if (file is None) == (not filename):
        raise BadUse(
            "plan wants a scenario, or a manifest with -f, one of the two; "
            f"hint: {program()} plan --help"
        )
    if filename:
        _alone({"--record": record}, "a scenario, and -f brings a manifest")
        from ringleaf.cli.submitted import plan_manifests

        cluster = _cluster(kubeconfig, context, scheduler_name, scheduler_conf)
        raise typer.Exit(
            plan_manifests(
                filename,
                cluster,
                namespace,
                server_dry_run=server_dry_run,
                as_json=json,
            )
        )
    live = _live_options(namespace, kubeconfig, context, scheduler_name, scheduler_conf)
    dry = {"--server-dry-run": server_dry_run}
    _alone(live | dry, "-f MANIFEST, and a scenario is decided without a cluster")
    from ringleaf.cli.plan import plan_file

    raise typer.Exit(plan_file(file or "", as_json=json, record=record))


def _live_options(
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    schedulers: list[str] | None,
    conf: str | None,
) -> dict[str, object]:
    """What only a question to a live cluster has a use for."""
    return {
        "--namespace": namespace,
        "--kubeconfig": kubeconfig,
        "--context": context,
        "--scheduler-name": schedulers,
        "--scheduler-conf": conf,
    }


def _alone(options: dict[str, object], wanted: str) -> None:
    """Refuse options that would have no effect; they go with what is *wanted*."""
    for option, value in options.items():
        if value:
            raise BadUse(f"{option} goes with {wanted}")


def _cluster(
    kubeconfig: str | None,
    context: str | None,
    schedulers: list[str] | None,
    conf: str | None,
) -> "Cluster":
    from ringleaf.cli.live import Cluster

    if schedulers:
        return Cluster(kubeconfig, context, schedulers, conf)
    return Cluster(kubeconfig, context, conf_file=conf)


@app.command()
def explain(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|KIND/NAME",
            help="Scenario file, - for stdin; or pod/NAME, job/NAME, podgroup/NAME "
            "of the live cluster.",
        ),
    ],
    *,
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="NAME", help="The job of the scenario."),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option("--node", metavar="NAME", help="What the job finds on this node."),
    ] = None,
    top: Annotated[
        int,
        typer.Option("--top", metavar="N", min=1, help="How many of the best nodes."),
    ] = 10,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    scheduler_name: SchedulerNames = None,
    scheduler_conf: SchedulerConf = None,
    json: AsJson = False,
) -> None:
    """Say why a job goes where it goes, or why it waits.

    Shows the best nodes in rank order with their rank spelled out, the refused nodes by
    reason, and for a waiting job what would be enough. With --node: the place of that
    node in the order, or the one rule that refuses it. Of the live cluster it takes
    pods, PodGroups and jobs: Volcano's, or those of batch/v1.
    Exit status 0 when the job (with --node: on that node) is placed, 1 when not.

    \b
    Examples:
      ringleaf explain examples/why-waiting.yaml --job big
      ringleaf explain examples/why-waiting.yaml --job big --node n2
      ringleaf explain pod/infer-0 -n research
      ringleaf explain job/train --node n2
    """  # noqa: D301
    is_file = file == "-" or Path(file).is_file()
    if job is None or not is_file:
        from ringleaf.cli.standing import explain_target, target_of

        target = target_of(file, namespace or "")
        if job is None and target is not None:
            cluster = _cluster(kubeconfig, context, scheduler_name, scheduler_conf)
            raise typer.Exit(explain_target(target, cluster, node, top, as_json=json))
        _refuse_target(file, job, is_file=is_file, is_target=target is not None)
    live = _live_options(namespace, kubeconfig, context, scheduler_name, scheduler_conf)
    _alone(live, "pod/NAME and the like, and a scenario is decided without a cluster")
    from ringleaf.cli.explain import explain_job

    raise typer.Exit(explain_job(file, job or "", node, top, as_json=json))


def _refuse_target(
    file: str, job: str | None, *, is_file: bool, is_target: bool
) -> None:
    """Say what is wrong with what is to be explained, if anything is."""
    if job is not None and is_target:
        raise BadUse(
            f"--job goes with a scenario, and {file} is of the live cluster; "
            "hint: without --job"
        )
    if job is None and "/" in file and not is_file:
        raise BadUse(
            f"{file!r} is no file, and of the live cluster explain wants pod/NAME, "
            "job/NAME or podgroup/NAME; hint: of other kinds, one of their pods"
        )
    if job is None:
        raise BadUse(
            f"explain of the scenario {file!r} wants --job NAME; of the live "
            "cluster it wants pod/NAME, job/NAME or podgroup/NAME"
        )


@app.command()
def status(
    *,
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Stay, and follow what changes; q ends it."),
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    scheduler_name: SchedulerNames = None,
    scheduler_conf: SchedulerConf = None,
    leader_elect_resource_name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the Lease of the leader.")
    ] = "ringleaf",
    leader_elect_resource_namespace: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Namespace of that Lease; else it is looked for."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show how the live cluster stands: chips, queues, leaves, who waits and why.

    Chips by product, queues with what they use and deserve, room under leaves and in
    SuperPoDs, jobs that wait and since when, gangs short of pods, objects with
    problems, and who leads.

    \b
    Examples:
      ringleaf status
      ringleaf status --watch
      ringleaf status --json | jq .waiting
    """  # noqa: D301
    from ringleaf.cli.status import Lead, show_status

    cluster = _cluster(kubeconfig, context, scheduler_name, scheduler_conf)
    lead = Lead(leader_elect_resource_name, leader_elect_resource_namespace)
    if watch:
        from ringleaf.cli.watching import watch_status

        raise typer.Exit(watch_status(cluster, lead))
    raise typer.Exit(show_status(cluster, lead, as_json=json))


@app.command()
def faults(
    *,
    filename: Annotated[
        str | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Scenario that is run, and looked at after its last event; "
            "- for stdin.",
        ),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option("--node", metavar="NAME", help="Only what is wrong with it."),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option("--job", metavar="NAME", help="Only what concerns it."),
    ] = None,
    recovered: Annotated[
        bool, typer.Option("--all", help="Also faults that have recovered.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Stay, and follow what changes; q ends it."),
    ] = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    scheduler_name: SchedulerNames = None,
    scheduler_conf: SchedulerConf = None,
    json: AsJson = False,
) -> None:
    """Show what is wrong with nodes, chips and pods, and what is done about it.

    Every fault with its life: when it was seen, when pods were deleted because of it,
    when it recovered. Pods that are on it and what becomes of them, jobs that are being
    repaired, nodes that are set aside, and the brake.

    \b
    Examples:
      ringleaf faults
      ringleaf faults --watch
      ringleaf faults --all --node n3
      ringleaf faults --job train -n research
      ringleaf faults -f examples/lost-chip.yaml
    """  # noqa: D301
    from ringleaf.cli.faults import Wanted, show_faults, show_run

    wanted = Wanted(node, job, namespace or "", recovered=recovered)
    if filename is None:
        cluster = _cluster(kubeconfig, context, scheduler_name, scheduler_conf)
        if watch:
            from ringleaf.cli.faults import Followed
            from ringleaf.cli.status import Lead
            from ringleaf.cli.watching import watch as follow

            raise typer.Exit(follow(cluster, Lead("ringleaf"), Followed(wanted)))
        raise typer.Exit(show_faults(cluster, wanted, as_json=json))
    live = _live_options(namespace, kubeconfig, context, scheduler_name, scheduler_conf)
    live["--watch"] = watch
    _alone(live, "a live cluster, and a scenario is run without one")
    raise typer.Exit(show_run(filename, wanted, as_json=json))


@app.command()
def dump(
    *,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="Where to; - for stdout."),
    ] = "-",
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous",
            help="Without names of nodes, jobs, namespaces, queues, labels and leaves; "
            "decisions stay the same.",
        ),
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    scheduler_name: SchedulerNames = None,
    scheduler_conf: SchedulerConf = None,
    json: Annotated[  # noqa: ARG001 - there is nothing else
        bool,
        typer.Option("--json", help="Changes nothing: what is written is JSON."),
    ] = False,
) -> None:
    """Write the state of the live cluster as a scenario, for plan and explain.

    Nodes with their chips, leaves and SuperPoDs, queues, the configuration, jobs that
    run and where, jobs that wait and since when. It is JSON, a line for each.

    \b
    Examples:
      ringleaf dump -o cluster.json
      ringleaf dump --anonymous | ringleaf plan -
    """  # noqa: D301
    from ringleaf.cli.dump import dump_cluster

    cluster = _cluster(kubeconfig, context, scheduler_name, scheduler_conf)
    raise typer.Exit(dump_cluster(cluster, output, hide_names=anonymous))


@app.command()
def replay(
    file: Annotated[
        str,
        typer.Argument(
            metavar="LOG", help="Log of plan or scheduler --record; - for stdin."
        ),
    ],
    *,
    json: AsJson = False,
) -> None:
    """Play a recorded log again, and say where it comes out differently.

    Exit status 0 when every instruction is the same, 1 when one is not.

    \b
    Examples:
      ringleaf replay run.log
      ringleaf plan examples/big-job-waits.yaml --record run.log
    """  # noqa: D301
    from ringleaf.cli.replay import replay_file

    raise typer.Exit(replay_file(file, as_json=json))


@app.command()
def simulate(
    *,
    cluster: ClusterName = "leaf-spine-512",
    product: NodesAre = None,
    workload: WorkloadName = "kalos",
    trace: Trace = None,
    columns: Columns = None,
    chips_each: ChipsEach = 1,
    queues: TraceQueues = False,
    skip_bad: SkipBad = False,
    load: Load = None,
    jobs: Jobs = None,
    burst: Burst = 2.0,
    amplitude: Amplitude = 0.6,
    common: Common = 0.25,
    estimate: EstimateBy = 0.0,
    seed: Seed = 0,
    conf: ConfFile = None,
    policy: Annotated[
        str,
        typer.Option(metavar="NAME", help="Ringleaf's own, or a baseline: best-fit."),
    ] = "ringleaf",
    order: QueueOrder = None,
    faults: FaultRates = "none",
    recovery: Recovers = Recovering.grace,
    contention: Contention = 0.0,
    checkpoint_seconds: CheckpointSeconds = 1800.0,
    grace_seconds: GraceSeconds = 30.0,
    regret: RegretEvery = 0,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write jobs.csv, series.csv, summary.json."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Go on with a run: DIR/unfinished.run of --out DIR."
        ),
    ] = None,
    save_every: Annotated[
        float,
        typer.Option(
            metavar="S", min=0, help="With --out: seconds after which a run is saved."
        ),
    ] = 60.0,
    json: AsJson = False,
) -> None:
    """Let jobs come to a cluster in virtual time, and say what it comes to.

    The engine that schedules a live cluster schedules this one. The same options give
    the same results, byte by byte. Ctrl-C puts a run away that writes results.

    \b
    Examples:
      ringleaf simulate
      ringleaf simulate --workload kalos --load 0.95 --faults usual --out results
      ringleaf simulate --trace jobs.csv --columns philly --policy best-fit
      ringleaf simulate --out results --resume results/unfinished.run
    """  # noqa: D301
    from ringleaf.cli.simulate import Wanted, simulate_jobs
    from ringleaf.simulator.preset import Knobs

    wanted = Wanted(
        cluster=cluster,
        product=product,
        workload=workload,
        trace=trace,
        columns=columns,
        chips_each=chips_each,
        queues=queues,
        skip_bad=skip_bad,
        load=load,
        jobs=jobs,
        seed=seed,
        conf=conf,
        policy=policy,
        order=order,
        faults=faults,
        recovery=recovery.value,
        contention=contention,
        checkpoint_s=checkpoint_seconds,
        grace_s=grace_seconds,
        knobs=Knobs(amplitude, burst, common, estimate),
        regret=regret,
    )
    status = simulate_jobs(
        wanted, out=out, resume=resume, save_every_s=save_every, as_json=json
    )
    raise typer.Exit(status)


@app.command()
def compare(
    *,
    policies: Compared = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Runs of each policy.")
    ] = 3,
    cluster: ClusterName = "leaf-spine-512",
    product: NodesAre = None,
    workload: WorkloadName = "kalos",
    trace: Trace = None,
    columns: Columns = None,
    chips_each: ChipsEach = 1,
    queues: TraceQueues = False,
    skip_bad: SkipBad = False,
    load: Load = None,
    jobs: Jobs = None,
    burst: Burst = 2.0,
    amplitude: Amplitude = 0.6,
    common: Common = 0.25,
    estimate: EstimateBy = 0.0,
    seed: Seed = 0,
    conf: ConfFile = None,
    order: QueueOrder = None,
    faults: FaultRates = "none",
    recovery: Recovers = Recovering.grace,
    contention: Contention = 0.0,
    checkpoint_seconds: CheckpointSeconds = 1800.0,
    grace_seconds: GraceSeconds = 30.0,
    regret: RegretEvery = 0,
    workers: Workers = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Of a Dask scheduler whose workers play the runs."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Write comparison.json, report.html, and every run: what is there is "
            "not played again.",
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the report there, one HTML file."),
    ] = None,
    plots: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write PNG plots there; wants matplotlib."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Play several policies on the same arrivals, and say who is better.

    Every policy plays every seed; runs of one seed have the same jobs at the same
    times, so policies are compared seed by seed. The same options give the same
    results, whoever plays them.

    \b
    Examples:
      ringleaf compare --jobs 1000 --seeds 2
      ringleaf compare --policies ringleaf,best-fit,random+easy --report out.html
      ringleaf compare --workload seren --load 0.95 --seeds 10 --out results
      ringleaf compare --dask tcp://10.0.0.1:8786 --seeds 50 --out results
    """  # noqa: D301
    from ringleaf.cli.compare import compare_policies
    from ringleaf.cli.simulate import Wanted
    from ringleaf.simulator.preset import Knobs

    wanted = Wanted(
        cluster=cluster,
        product=product,
        workload=workload,
        trace=trace,
        columns=columns,
        chips_each=chips_each,
        queues=queues,
        skip_bad=skip_bad,
        load=load,
        jobs=jobs,
        seed=seed,
        conf=conf,
        policy="ringleaf",
        order=order,
        faults=faults,
        recovery=recovery.value,
        contention=contention,
        checkpoint_s=checkpoint_seconds,
        grace_s=grace_seconds,
        knobs=Knobs(amplitude, burst, common, estimate),
        regret=regret,
    )
    status = compare_policies(
        wanted,
        policies or [COMPARED],
        seeds=seeds,
        workers=workers,
        dask=dask,
        out=out,
        report=report,
        plots=plots,
        as_json=json,
    )
    raise typer.Exit(status)


@app.command()
def fill(
    *,
    policies: Compared = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Fills by each policy.")
    ] = 10,
    cluster: ClusterName = "leaf-spine-512",
    product: NodesAre = None,
    workload: WorkloadName = "kalos",
    trace: Trace = None,
    columns: Columns = None,
    chips_each: ChipsEach = 1,
    skip_bad: SkipBad = False,
    common: Common = 0.25,
    demand: Annotated[
        float,
        typer.Option(
            metavar="SHARE", min=0, help="Of the static fill: chips asked, by chips."
        ),
    ] = 1.3,
    load: Annotated[
        float,
        typer.Option(
            metavar="SHARE", min=0.01, help="Of the churn: chip-seconds asked, by all."
        ),
    ] = 1.1,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=1, help="Of the churn: how many come.")
    ] = 2000,
    seed: Seed = 0,
    conf: ConfFile = None,
    order: QueueOrder = None,
    workers: Workers = None,
    json: AsJson = False,
) -> None:
    """Ask for more than there is, and say how much of a cluster is allocated.

    Nobody waits: a job that finds no place at once is gone, so that only the choice of
    nodes counts. Static: jobs come until they ask for 130 % of the chips, and nobody
    leaves. Churn: jobs come and go at 110 % of what could be served.

    \b
    Examples:
      ringleaf fill
      ringleaf fill --workload helios-gang --cluster leaf-spine-512x8 --seeds 5
      ringleaf fill --policies ringleaf,fgd,best-fit --workload packing --json
    """  # noqa: D301
    from ringleaf.cli.fill import Asked, fill_cluster
    from ringleaf.cli.simulate import Wanted
    from ringleaf.simulator.preset import Knobs

    wanted = Wanted(
        cluster=cluster,
        product=product,
        workload=workload,
        trace=trace,
        columns=columns,
        chips_each=chips_each,
        skip_bad=skip_bad,
        seed=seed,
        conf=conf,
        order=order,
        knobs=Knobs(common=common),
    )
    status = fill_cluster(
        Asked(wanted, demand, load, jobs),
        policies or [COMPARED],
        seeds=seeds,
        workers=workers,
        as_json=json,
    )
    raise typer.Exit(status)


@app.command()
def products(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One product, by any of its names."),
    ] = None,
    *,
    table: Annotated[
        bool, typer.Option("--table", help="Its misfit table: request x free chips.")
    ] = False,
    json: AsJson = False,
) -> None:
    """List the products Ringleaf knows, or one of them in full.

    \b
    Examples:
      ringleaf products
      ringleaf products "Atlas 800I A2"
      ringleaf products atlas-800t-a2 --table
    """  # noqa: D301
    from ringleaf.cli.products import show_products

    raise typer.Exit(show_products(name, table=table, as_json=json))


@app.command()
def workloads(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME|FILE", help="A workload, or a trace: CSV or SWF."),
    ] = None,
    *,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Where the jobs go: a preset, a topology file, or what ringleaf dump "
            "wrote; else leaf-spine-512.",
        ),
    ] = None,
    columns: Columns = None,
    chips_each: ChipsEach = 1,
    queues: TraceQueues = False,
    skip_bad: SkipBad = False,
    load: Load = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """List the clusters and workloads to simulate, or count the jobs of one.

    \b
    Examples:
      ringleaf workloads
      ringleaf workloads kalos --jobs 20000
      ringleaf workloads llm-superpod --cluster mixed --json
    """  # noqa: D301
    from ringleaf.cli.workloads import Asked, show_workloads

    told = (cluster, columns, load, jobs)
    of_trace = (chips_each, queues, skip_bad)
    if name is None and (told, of_trace) != ((None,) * 4, (1, False, False)):
        raise BadUse("NAME is missing, want a workload; hint: ringleaf workloads")
    asked = None if name is None else Asked(name, *told, seed, *of_trace)
    raise typer.Exit(show_workloads(asked, as_json=json))


@app.command()
def demo(
    *,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many; else 3,000, fewer are quick."),
    ] = None,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Where the report goes: report.html.")
    ] = "build/demo",
    json: AsJson = False,
) -> None:
    """Simulate Ringleaf and four others on the same jobs, and say who is better.

    Large language models on 4,096 chips. A terminal shows how the runs go; a table,
    what it means, and a report come of it. It takes half a minute on two cores.

    \b
    Examples:
      ringleaf demo
      ringleaf demo --jobs 500 --out quick
    """  # noqa: D301
    from ringleaf.cli.demo import show_demo

    raise typer.Exit(show_demo(jobs=jobs, out=out, as_json=json))


topology = typer.Typer(rich_markup_mode=None)
app.add_typer(topology, name="topology")


class Form(StrEnum):
    """What a topology can be converted to."""

    CONFIGMAP = "configmap"
    JSON = "json"
    SCENARIO = "scenario"
    CSV = "csv"


@topology.callback(invoke_without_command=True)
def topology_group(context: typer.Context) -> None:
    """Check, draw or convert a list of leaf switches and the nodes under them.

    \b
    Examples:
      ringleaf topology check examples/topology/basic-tor-node-cm.yaml
      ringleaf topology draw examples/topology/basic-tor-node-cm.yaml
      ringleaf topology convert examples/topology/racks.csv --to configmap
    """  # noqa: D301
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201
        raise typer.Exit(2)


@topology.command("check")
def topology_check(
    file: TopologyFile,
    *,
    node: NodeColumn = None,
    leaf: LeafColumns = None,
    json: AsJson = False,
) -> None:
    """Say what is wrong with a topology, one line each, and draw it.

    Exit status 0 when it has no problems (it may have warnings), 1 when it has some.

    \b
    Examples:
      ringleaf topology check examples/topology/basic-tor-node-cm.yaml
      ringleaf topology check examples/topology/broken.yaml
      ringleaf topology check examples/topology/racks.csv --leaf room,rack --json
    """  # noqa: D301
    from ringleaf.cli.topology import Columns, check_file

    raise typer.Exit(check_file(file, Columns(node, leaf), as_json=json))


@topology.command("draw")
def topology_draw(
    file: TopologyFile,
    *,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="OUT.svg", help="Write an SVG drawing too."),
    ] = None,
    node: NodeColumn = None,
    leaf: LeafColumns = None,
) -> None:
    """Draw a topology: leaves as rows below the spine, slots as columns.

    A topology with problems is drawn as far as it goes; check tells them.

    \b
    Examples:
      ringleaf topology draw examples/topology/basic-tor-node-cm.yaml
      ringleaf topology draw examples/topology/racks.csv --leaf room,rack
    """  # noqa: D301
    from ringleaf.cli.topology import Columns, draw_file

    raise typer.Exit(draw_file(file, Columns(node, leaf), svg))


@topology.command("convert")
def topology_convert(
    file: TopologyFile,
    *,
    to: Annotated[Form, typer.Option("--to", help="What to print.")],
    product: Annotated[
        str | None,
        typer.Option(
            "--product",
            metavar="NAME",
            help="Product of the nodes, for scenarios and CSV; else atlas-800t-a2.",
        ),
    ] = None,
    node: NodeColumn = None,
    leaf: LeafColumns = None,
    leaf_size: Annotated[
        int | None,
        typer.Option(
            "--leaf-size",
            metavar="N",
            min=1,
            help="Nodes per leaf; else what the file says, CSV: the largest leaf.",
        ),
    ] = None,
) -> None:
    """Print a topology as a ConfigMap, its tor_info, a scenario or CSV.

    Exit status 1 when the topology has problems: they are told, nothing is printed.

    \b
    Examples:
      ringleaf topology convert examples/topology/racks.csv --to configmap
      ringleaf topology convert examples/topology/basic-tor-node-cm.yaml --to scenario
      ringleaf topology convert examples/topology/basic-tor-node-cm.yaml --to csv
    """  # noqa: D301
    from ringleaf.cli.topology import Columns, convert_file

    columns = Columns(node, leaf)
    raise typer.Exit(convert_file(file, to.value, columns, product, leaf_size))


conf = typer.Typer(rich_markup_mode=None)
app.add_typer(conf, name="conf")


@conf.callback(invoke_without_command=True)
def conf_group(context: typer.Context) -> None:
    """Check and explain a scheduler configuration, volcano-scheduler.conf.

    \b
    Examples:
      ringleaf conf check examples/conf/vendor.yaml
      ringleaf conf check examples/conf/broken.conf
    """  # noqa: D301
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201
        raise typer.Exit(2)


@conf.command("check")
def conf_check(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="volcano-scheduler.conf, or a ConfigMap with it; - for stdin.",
        ),
    ],
    *,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Write it with its indentation mended, and Go around it taken out.",
        ),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --fix: where to, a new file; else standard output.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Say what is wrong with a configuration, one line each, or what it does.

    With --fix write one that YAML cannot read as it was meant. Exit status 0 when it
    has no problems (it may have warnings), 1 when it has some, and then nothing is
    written, 2 when it cannot be read.

    \b
    Examples:
      ringleaf conf check examples/conf/vendor.yaml
      ringleaf conf check examples/conf/broken.conf
      ringleaf conf check examples/conf/busy.conf --json
      ringleaf conf check examples/conf/guide-default.go --fix
    """  # noqa: D301
    from ringleaf.cli.conf import check_file, fix_file
    from ringleaf.cli.failure import BadUse

    if fix:
        raise typer.Exit(fix_file(file, output, as_json=json))
    if output is not None:
        raise BadUse("--output is for --fix; hint: ringleaf conf check FILE --fix")
    raise typer.Exit(check_file(file, as_json=json))


@app.command("scheduler")
def scheduler(
    *,
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Where the API server is; else $KUBECONFIG, the pod's service "
            "account, ~/.kube/config.",
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig.")
    ] = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="schedulerName of pods that are ours, several times if need be; "
            "volcano to drop in for Volcano's.  [default: ringleaf]",
        ),
    ] = None,
    scheduler_conf: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="volcano-scheduler.conf; else the default."),
    ] = None,
    healthz_address: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where probes and metrics are."),
    ] = ":11251",
    record: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a log for ringleaf replay."),
    ] = None,
    release_seconds: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=1,
            help="A gang that was bound in part and cannot be completed is released "
            "after this.",
        ),
    ] = 60.0,
    connections: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Bindings at a time.")
    ] = 32,
    leader_elect: LeaderElect = True,
    leader_elect_lease_duration: LeaseDuration = 5,
    leader_elect_resource_name: LeaseName = "ringleaf",
    leader_elect_resource_namespace: LeaseNamespace = None,
    shadow: Annotated[
        bool,
        typer.Option(
            "--shadow",
            help="Bind nothing: judge what another scheduler does with its pods.",
        ),
    ] = False,
    shadow_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With --shadow: schedulerName of the pods to look at; repeatable, "
            "else volcano.",
        ),
    ] = None,
    shadow_log: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="With --shadow: a line of JSON for each job."
        ),
    ] = None,
    shadow_patience: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            min=0.1,
            help="With --shadow: how long a job may fit here and wait there.  "
            "[default: 10]",
        ),
    ] = None,
    canary_queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUEUE",
            help="With --shadow: bind our own pods in this queue; repeatable.",
        ),
    ] = None,
    canary_namespace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMESPACE",
            help="With --shadow: bind our own pods in this namespace; repeatable.",
        ),
    ] = None,
    with_summary: Annotated[
        bool,
        typer.Option(
            "--with-summary", help="Write job summaries as well, while it leads."
        ),
    ] = False,
) -> None:
    """Schedule the pods of a Kubernetes cluster, in place of Volcano's scheduler.

    Runs until it is asked to end (SIGTERM, Ctrl-C): pods that are being bound are
    bound, and nothing more is decided. The log goes to standard error, a line of JSON
    for each thing that happens.

    With --shadow it runs beside another scheduler, writes nothing to the API server,
    and tells what it would have done (ringleaf shadow report). With a canary it binds
    its own pods of some queues or namespaces besides.

    \b
    Examples:
      ringleaf scheduler --kubeconfig ~/.kube/config
      ringleaf scheduler --scheduler-name volcano --scheduler-conf volcano.conf
      ringleaf scheduler --shadow --shadow-name volcano --shadow-log shadow.jsonl
      ringleaf scheduler --shadow --canary-queue research
      ringleaf scheduler --with-summary
    """  # noqa: D301
    from ringleaf.cli.lead import Candidacy
    from ringleaf.cli.scheduler import Run, run

    lead = Candidacy(
        leader_elect_resource_name,
        leader_elect_resource_namespace,
        leader_elect_lease_duration,
    )
    asked = Run(
        kubeconfig=kubeconfig,
        context=context,
        schedulers=scheduler_name or ["ringleaf"],
        conf_file=scheduler_conf,
        health=healthz_address,
        record=record,
        release_s=release_seconds,
        connections=connections,
        lead=lead if leader_elect else None,
        shadow=_shadow(
            shadow_name,
            shadow_log,
            shadow_patience,
            is_on=shadow,
            canary=bool(canary_queue or canary_namespace),
        ),
        canary_queues=canary_queue or [],
        canary_namespaces=canary_namespace or [],
        with_summary=with_summary,
        namespace=leader_elect_resource_namespace,
    )
    raise typer.Exit(run(asked))


@app.command("summary")
def summary(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    healthz_address: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where probes and metrics are."),
    ] = ":11252",
    leader_elect: LeaderElect = True,
    leader_elect_lease_duration: LeaseDuration = 15,
    leader_elect_resource_name: LeaseName = "ringleaf-summary",
    leader_elect_resource_namespace: LeaseNamespace = None,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Write what differs, list all summaries, and end; with 1 while "
            "another leads.",
        ),
    ] = False,
    json: Annotated[
        bool,
        typer.Option("--json", help="Lines of JSON: the log, and the list of --once."),
    ] = False,
) -> None:
    """Write the summaries of jobs that a fabric controller reads.

    For every job with a PodGroup it keeps the ConfigMap job-summary-NAME in the job's
    namespace: its status, its rank table, and the leaf switches that it shares with
    others. With switch affinity 2.0 it keeps tor-share-cm in volcano-system as well.
    The log goes to standard error, a line of JSON for each thing that happens.

    Exit status 1 when another writer leads instead of it, with --once also when a
    summary is not as it should be.

    \b
    Examples:
      ringleaf summary --kubeconfig ~/.kube/config
      ringleaf summary --once
    """  # noqa: D301
    from ringleaf.cli.lead import Candidacy
    from ringleaf.cli.summary import SummaryRun, run

    lead = Candidacy(
        leader_elect_resource_name,
        leader_elect_resource_namespace,
        leader_elect_lease_duration,
    )
    asked = SummaryRun(
        kubeconfig=kubeconfig,
        context=context,
        health=healthz_address,
        lead=lead if leader_elect else None,
        once=once,
        as_json=json,
    )
    raise typer.Exit(run(asked))


def _shadow(
    schedulers: list[str] | None,
    log: str | None,
    patience_s: float | None,
    *,
    is_on: bool,
    canary: bool,
) -> "ShadowRun | None":
    """How the shadow is run, if there is one."""
    from ringleaf.cli.shadow import ShadowRun

    if is_on:
        return ShadowRun(tuple(schedulers or ["volcano"]), log, patience_s or 10.0)
    if schedulers or log is not None or canary or patience_s is not None:
        raise BadUse(
            "--shadow-name, --shadow-log, --shadow-patience, --canary-queue and "
            "--canary-namespace go with --shadow, which is not there; "
            "hint: ringleaf scheduler --help"
        )
    return None


shadow_app = typer.Typer(rich_markup_mode=None)
app.add_typer(shadow_app, name="shadow")


@shadow_app.callback(invoke_without_command=True)
def shadow_group(context: typer.Context) -> None:
    """Read what a shadow of another scheduler has found.

    \b
    Examples:
      ringleaf shadow report
    """  # noqa: D301
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201
        raise typer.Exit(2)


@shadow_app.command("report")
def shadow_report(
    *,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="URL|FILE",
            help="Where the shadow answers, or its --shadow-log; - for stdin.",
        ),
    ] = "http://127.0.0.1:11251",
    most: Annotated[
        int,
        typer.Option("--top", metavar="N", min=0, help="How many differences to show."),
    ] = 20,
    json: AsJson = False,
) -> None:
    """Say how another scheduler and Ringleaf agree, and what parts them.

    Reads a running ringleaf scheduler --shadow, or the log it wrote. Shows the share
    of jobs on which both agree, the jobs by verdict, the differences by the rule that
    makes them, and the last differences with both placements.
    Exit status 0 when they agree on every job, 1 when not, or when there is none yet.

    \b
    Examples:
      kubectl -n ringleaf-system port-forward deployment/ringleaf 11251 &
      ringleaf shadow report
      ringleaf shadow report --from shadow.jsonl --top 5
      ringleaf shadow report --json | jq .rules
    """  # noqa: D301
    from ringleaf.cli.shadow import report as print_report

    raise typer.Exit(print_report(source, most=most, as_json=json))


dev = typer.Typer(rich_markup_mode=None)
app.add_typer(dev, name="dev")


@dev.callback(invoke_without_command=True)
def dev_group(context: typer.Context) -> None:
    """Run a small Ascend cluster on this machine, scheduled by Ringleaf.

    \b
    Examples:
      ringleaf dev up
    """  # noqa: D301
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201
        raise typer.Exit(2)


@dev.command("up")
def dev_up(
    *,
    once: Annotated[
        bool,
        typer.Option("--once", help="End when the sample jobs run, with a table."),
    ] = False,
) -> None:
    """Start a real API server with Ascend nodes that are played, and sample jobs.

    The first time it builds what it needs, ten to 25 minutes. Runs until
    Ctrl-C; nothing is left behind. Exit status 1 when with --once a sample did not run.

    \b
    Examples:
      ringleaf dev up
      ringleaf dev up --once
    """  # noqa: D301
    from ringleaf.cli.dev import run_cluster

    raise typer.Exit(run_cluster(once=once))


COLLECT_AFTER = 50_000
"""Objects made before a look for garbage: what jobs and nodes are made of stays."""


def run() -> None:
    """Run the command line; bad input is one line and exit status 2."""
    gc.set_threshold(COLLECT_AFTER)
    _prepare_streams()
    try:
        sys.exit(app(prog_name=program(), standalone_mode=False))
    except BadUse as error:
        report(str(error))
        sys.exit(2)
    except typer.TyperException as error:
        report(_one_line(error))
        sys.exit(2)
    except Interrupted as error:
        report(str(error))
        sys.exit(130)
    except typer.Abort:
        sys.exit(130)
    except BrokenPipeError:
        _let_go()  # the reader left; nothing more to say
        sys.exit(0)
    except OSError as error:
        _let_go()
        report(f"standard output: {error.strerror or error}")
        sys.exit(2)


def _one_line(error: typer.TyperException) -> str:
    """What was wrong with the call, and where to read how it goes."""
    message = getattr(error, "format_message", error.__str__)()
    told = " ".join(message.split()).removesuffix(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else _called()
    return f"{told}; hint: {command} --help"


def _called() -> str:
    """The command that was called, as far as it is one."""
    words, known = [program()], typer.main.get_command(app)
    for word in sys.argv[1:]:
        commands = getattr(known, "commands", {})
        if word not in commands:
            break
        words, known = [*words, word], commands[word]
    return " ".join(words)


def _prepare_streams() -> None:
    """A closed stream swallows; what an encoding cannot show is escaped."""
    nowhere = Path(os.devnull)
    sys.stdout = sys.stdout or nowhere.open("w")
    sys.stderr = sys.stderr or nowhere.open("w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _let_go() -> None:
    """Send what is still buffered nowhere, so that leaving does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
