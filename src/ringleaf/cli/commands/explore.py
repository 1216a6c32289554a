"""Commands to try Ringleaf with: a file, a decision, its reasons, a cluster."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from ringleaf.cli.failure import BadUse, program
from ringleaf.cli.options import Json, LiveOptions, Namespace, Top
from ringleaf.cli.parameter import Option, Positional, given
from ringleaf.cli.registry import ASK, TRY, command

NO_LIVE = LiveOptions()


class Starter(StrEnum):
    """What init writes."""

    SCENARIO = "scenario"
    CLUSTER = "cluster"
    CONF = "conf"


@command(
    TRY,
    "ringleaf init scenario > scenario.yaml",
    "ringleaf init cluster --output cluster.yaml",
    "ringleaf init conf --output volcano-scheduler.conf",
)
def init(
    what: Annotated[
        Starter,
        Positional(
            "WHAT",
            "scenario, cluster or conf. A scenario is a cluster with jobs, for plan "
            "and explain; a cluster has leaves and nodes, for compare and simulate; "
            "conf is a volcano-scheduler.conf, for check-conf and scheduler.",
            known=[*Starter],
        ),
    ],
    *,
    output: Annotated[
        str | None,
        Option(
            "FILE", "Write to this new file.", short="-o", default="standard output"
        ),
    ] = None,
    json: Annotated[
        bool, Option("", "Print JSON: the text, and the file that has it.")
    ] = False,
) -> int:
    """Write a commented scenario, cluster or configuration to start from.

    Every key that most files need is in it, with a comment that says what it does.
    """
    from ringleaf.cli.init import write_starter

    return write_starter(what.value, output, as_json=json)


@command(
    TRY,
    "ringleaf plan examples/node-a-or-b.yaml",
    "ringleaf plan examples/node-a-or-b.yaml --json",
    "ringleaf plan examples/big-job-waits.yaml",
    "ringleaf plan -f job.yaml -n research",
    forms=[(ASK, "plan -f MANIFEST", "Show where the pods of a manifest would go.")],
)
def plan(
    file: Annotated[
        str | None,
        Positional("FILE", "Scenario file, YAML or JSON; - reads standard input."),
    ] = None,
    *,
    filename: Annotated[
        list[str] | None,
        Option(
            "MANIFEST",
            "Plan this manifest on the live cluster; - reads standard input. "
            "Repeatable.",
            short="-f",
        ),
    ] = None,
    record: Annotated[
        str | None, Option("LOG", "Write a log of the run for ringleaf replay.")
    ] = None,
    json: Json = False,
    namespace: Namespace = None,
    server_dry_run: Annotated[
        bool,
        Option(
            "",
            "Let the API server fill in its defaults first, by a dry run that "
            "creates nothing. Needs permission to create.",
        ),
    ] = False,
    live: LiveOptions = NO_LIVE,
) -> int:
    """Decide where every job of a scenario goes.

    Jobs are decided in the order of the file; each job sees what the earlier ones
    took. A scenario with queues, a configuration or later events runs in virtual time.

    With -f, plan asks the live cluster where the pods of a manifest would go now and
    which chips they would get, or why they would be pending. Nothing is submitted.

    Exit status 0 when every job was placed or has ended, 1 when a job was not.
    """
    if (file is None) == (not filename):
        raise BadUse(
            "plan needs a scenario, or a manifest with -f; "
            f"hint: {program()} plan --help"
        )
    if filename:
        _refuse({"--record": record}, "a scenario, and -f brings a manifest")
        from ringleaf.cli.plan_manifest import plan_manifests

        return plan_manifests(
            filename,
            live.cluster(),
            namespace,
            server_dry_run=server_dry_run,
            as_json=json,
        )
    dry = {"--namespace": namespace, "--server-dry-run": server_dry_run}
    _refuse(
        dry | given(live), "-f MANIFEST, and a scenario is decided without a cluster"
    )
    from ringleaf.cli.plan import plan_file

    return plan_file(file or "", as_json=json, record=record)


def _refuse(options: dict[str, object], wanted: str) -> None:
    """Refuse options that would have no effect; they go with what is *wanted*."""
    for option, value in options.items():
        if value:
            raise BadUse(f"{option} goes with {wanted}")


@command(
    TRY,
    "ringleaf explain examples/why-waiting.yaml --job big",
    "ringleaf explain examples/why-waiting.yaml --job big --node n2",
    "ringleaf explain examples/big-job-waits.yaml --job big --at 400",
    "ringleaf explain pod/infer-0 -n research",
    "ringleaf explain job/train --node n2",
    forms=[(ASK, "explain KIND/NAME", "Explain why a pod or job is pending.")],
)
def explain(
    file: Annotated[
        str,
        Positional(
            "FILE|KIND/NAME",
            "Scenario file, - for standard input; or pod/NAME, job/NAME or "
            "podgroup/NAME of the live cluster.",
        ),
    ],
    *,
    job: Annotated[
        str | None, Option("NAME", "The job of the scenario to explain.")
    ] = None,
    node: Annotated[
        str | None, Option("NAME", "Explain this node: its rank, or why it is refused.")
    ] = None,
    at: Annotated[
        float | None,
        Option(
            "SECONDS",
            "Explain the job at this time of a scenario in virtual time.",
            default="its end",
        ),
    ] = None,
    top: Top = 10,
    json: Json = False,
    namespace: Namespace = None,
    live: LiveOptions = NO_LIVE,
) -> int:
    """Explain where a job goes and why, or why it is pending.

    Shows the best nodes by rank, the refused nodes by reason and, for a pending job,
    what it needs; for a job under a network rule it draws the leaves or SuperPoDs. On
    the live cluster it explains pods, PodGroups and jobs (Volcano's and those of
    batch/v1).

    Exit status 0 when the job is placed (with --node: when the node fits too), else 1.
    """
    is_file = file == "-" or Path(file).is_file()
    if job is None or not is_file:
        from ringleaf.cli.explain_live import explain_target, target_of

        target = target_of(file, namespace or "")
        if job is None and target is not None:
            if at is not None:
                raise BadUse("--at goes with a scenario; hint: FILE --job NAME --at 60")
            return explain_target(target, live.cluster(), node, top, as_json=json)
        _refuse_target(file, job, is_file=is_file, is_target=target is not None)
    _refuse(
        {"--namespace": namespace} | given(live),
        "pod/NAME and the like, and a scenario is decided without a cluster",
    )
    from ringleaf.cli.explain import explain_job

    return explain_job(file, job or "", node, top, at=at, as_json=json)


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
            f"{file!r} is no file, and of the live cluster explain takes pod/NAME, "
            "job/NAME or podgroup/NAME; hint: of other kinds, name one of their pods"
        )
    if job is None and not is_file and not Path(file).suffix:
        raise BadUse(
            f"there is no file {file!r}; hint: of the live cluster, {program()} "
            f"explain job/{file} or pod/{file}"
        )
    if job is None:
        from ringleaf.cli.explain import jobs_of

        raise BadUse(
            f"explain of the scenario {file!r} needs --job NAME; of the live "
            "cluster it takes pod/NAME, job/NAME or podgroup/NAME"
            f"{jobs_of(file) if Path(file).is_file() else ''}"
        )


@command(
    TRY,
    "ringleaf rearrange examples/rearrange.yaml",
    "ringleaf rearrange examples/rearrange.yaml --for big --json",
    "ringleaf rearrange examples/rearrange.yaml --whole",
    "ringleaf rearrange --for job/train -n research",
    forms=[
        (ASK, "rearrange", "Propose moves on the live cluster so that a job starts.")
    ],
)
def rearrange(
    file: Annotated[
        str | None,
        Positional(
            "FILE",
            "Scenario file, - for standard input. Without it, the live cluster.",
        ),
    ] = None,
    *,
    gains: Annotated[
        str | None,
        Option(
            "JOB",
            "The pending job that is to start; of the live cluster job/NAME, "
            "podgroup/NAME or pod/NAME.",
            long="--for",
            default="the first pending job that moves help",
        ),
    ] = None,
    whole: Annotated[
        bool,
        Option(
            "",
            "Make leaves, SuperPoDs or nodes whole instead, those with the fewest jobs "
            "first.",
        ),
    ] = False,
    moves: Annotated[int, Option("N", "Move at most N jobs.", least=1)] = 10,
    json: Json = False,
    namespace: Namespace = None,
    live: LiveOptions = NO_LIVE,
) -> int:
    """Propose moves of running jobs after which a pending job starts.

    A moved job is stopped and starts again elsewhere at once, on chips that are free
    before. Only jobs are moved that say they are movable, may be evicted, and have no
    higher priority than the job that starts. The plan has the fewest moves, then the
    least cost: work since the last checkpoint and restart, in chip-seconds. No plan is
    proposed that costs more than it gains.

    On the live cluster nothing is moved: the scheduler does that with the action
    rearrange of its configuration.

    Exit status 0 when there is a plan, 1 when there is none.
    """
    if whole and gains is not None:
        raise BadUse("--whole goes without --for: one of the two says what is gained")
    if file is None:
        from ringleaf.cli.rearrange_live import rearrange_live

        where = gains, namespace or ""
        return rearrange_live(
            live.cluster(), *where, moves, whole_units=whole, as_json=json
        )
    _refuse(
        {"--namespace": namespace} | given(live),
        "the live cluster, which is asked without FILE",
    )
    from ringleaf.cli.rearrange import rearrange_file

    return rearrange_file(file, gains, moves, whole_units=whole, as_json=json)


@command(TRY, "ringleaf dev", "ringleaf dev --once")
def dev(
    *,
    once: Annotated[
        bool, Option("", "End when the sample jobs run, and print their pods.")
    ] = False,
) -> int:
    """Run a small cluster with simulated nodes on this machine.

    Starts a real API server, Volcano's controllers, simulated nodes, ringleaf
    scheduler and sample jobs. It needs a checkout of the repository and no container
    engine. The first start builds the control plane, which takes 10 to 25 minutes.
    Ctrl-C ends it and removes everything but what was built.

    With --once, the exit status is 1 if a sample job did not run.
    """
    try:
        from ringleaf_testbed.dev import run_cluster
    except ModuleNotFoundError as error:
        if error.name != "ringleaf_testbed":
            raise
        raise BadUse(
            "dev needs the testbed, which is in the repository and not in the package; "
            "hint: run it from a checkout, after make testbed"
        ) from None

    return run_cluster(once=once)
