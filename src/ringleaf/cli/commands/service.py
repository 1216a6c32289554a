"""Commands that run as services, until they are asked to end."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

from ringleaf.cli.failure import BadUse, program
from ringleaf.cli.options import (
    Context,
    HealthAddress,
    Kubeconfig,
    LeaderElect,
    LeaseDuration,
    LeaseName,
    LeaseNamespace,
    candidacy,
)
from ringleaf.cli.parameter import Option, either, given
from ringleaf.cli.registry import RUN, command

if TYPE_CHECKING:
    from ringleaf.cli.shadow import ShadowRun

PATIENCE_S = 10.0


class Access(NamedTuple):
    """API server."""

    kubeconfig: Kubeconfig = None
    context: Context = None


class ShadowArguments(NamedTuple):
    """Shadow mode, beside another scheduler."""

    shadow: Annotated[
        bool,
        Option("", "Bind nothing; compare another scheduler's decisions with ours."),
    ] = False
    shadow_name: Annotated[
        list[str] | None,
        Option(
            "NAME",
            "schedulerName of the pods to compare. Repeatable.",
            default="volcano",
        ),
    ] = None
    shadow_log: Annotated[
        str | None, Option("FILE", "Append a line of JSON for each job to this file.")
    ] = None
    shadow_patience: Annotated[
        float | None,
        Option(
            "S",
            "Seconds for which a job may fit here and be pending there before it is a "
            "difference.",
            least=0.1,
            default="10",
        ),
    ] = None
    canary_queue: Annotated[
        list[str] | None,
        Option("QUEUE", "Bind our own pods in this queue. Repeatable."),
    ] = None
    canary_namespace: Annotated[
        list[str] | None,
        Option("NAMESPACE", "Bind our own pods in this namespace. Repeatable."),
    ] = None


NO_ACCESS, NO_SHADOW = Access(), ShadowArguments()


@command(
    RUN,
    "ringleaf scheduler --kubeconfig ~/.kube/config",
    "ringleaf scheduler --scheduler-name volcano --scheduler-conf volcano.conf",
    "ringleaf scheduler --shadow --shadow-log shadow.jsonl",
    "ringleaf scheduler --shadow --canary-queue research",
    "ringleaf scheduler --with-summary",
)
def scheduler(
    *,
    access: Access = NO_ACCESS,
    scheduler_name: Annotated[
        list[str] | None,
        Option(
            "NAME",
            "schedulerName of the pods to schedule; volcano replaces Volcano's "
            "scheduler. Repeatable.",
            default="ringleaf",
        ),
    ] = None,
    scheduler_conf: Annotated[
        str | None,
        Option(
            "FILE",
            "volcano-scheduler.conf. It is read again when it changes.",
            default="the built-in one",
        ),
    ] = None,
    healthz_address: HealthAddress = ":11251",
    record: Annotated[
        str | None, Option("FILE", "Write a log for ringleaf replay.")
    ] = None,
    release_seconds: Annotated[
        float,
        Option(
            "S",
            "Seconds after which a gang that was bound in part and cannot be "
            "completed is released.",
            least=1,
        ),
    ] = 60.0,
    connections: Annotated[
        int, Option("N", "Bindings in flight at a time.", least=1, most=1000)
    ] = 32,
    leader_elect: LeaderElect = True,
    leader_elect_lease_duration: LeaseDuration = 5,
    leader_elect_resource_name: LeaseName = "ringleaf",
    leader_elect_resource_namespace: LeaseNamespace = None,
    with_summary: Annotated[
        bool, Option("", "Also do the work of summary-controller, while leading.")
    ] = False,
    shadow: ShadowArguments = NO_SHADOW,
) -> int:
    """Schedule the pods of a Kubernetes cluster.

    Replaces Volcano's scheduler, or runs beside it. Ends on SIGTERM and Ctrl-C: pods
    that are being bound are bound, and nothing more is decided. The log goes to
    standard error, one line of JSON per event.

    With --shadow it writes nothing to the API server and compares another scheduler's
    decisions with its own; ringleaf shadow-report shows the result. With a canary it
    binds its own pods of some queues or namespaces.

    Exit status 0 when it was asked to end, 1 when another replica leads instead.
    """
    from ringleaf.cli.scheduler import SchedulerOptions, run

    lead = candidacy(
        leader_elect_resource_name,
        leader_elect_resource_namespace,
        leader_elect_lease_duration,
    )
    return run(
        SchedulerOptions(
            kubeconfig=access.kubeconfig,
            context=access.context,
            schedulers=scheduler_name or ["ringleaf"],
            conf_file=scheduler_conf,
            health=healthz_address,
            record=record,
            release_s=release_seconds,
            connections=connections,
            lead=lead if leader_elect else None,
            shadow=_shadow(shadow),
            canary_queues=shadow.canary_queue or [],
            canary_namespaces=shadow.canary_namespace or [],
            with_summary=with_summary,
            namespace=leader_elect_resource_namespace,
        )
    )


def _shadow(asked: ShadowArguments) -> "ShadowRun | None":
    """How the shadow is run, if there is one."""
    from ringleaf.cli.shadow import ShadowRun

    if not asked.shadow:
        if options := [*given(asked)]:
            raise BadUse(
                f"{either(options)} goes with --shadow, which is missing; "
                f"hint: {program()} scheduler --help"
            )
        return None
    names = tuple(asked.shadow_name or ["volcano"])
    return ShadowRun(names, asked.shadow_log, asked.shadow_patience or PATIENCE_S)


@command(
    RUN,
    "ringleaf summary-controller --kubeconfig ~/.kube/config",
    "ringleaf summary-controller --once",
)
def summary_controller(
    *,
    access: Access = NO_ACCESS,
    healthz_address: HealthAddress = ":11252",
    leader_elect: LeaderElect = True,
    leader_elect_lease_duration: LeaseDuration = 15,
    leader_elect_resource_name: LeaseName = "ringleaf-summary",
    leader_elect_resource_namespace: LeaseNamespace = None,
    once: Annotated[
        bool,
        Option(
            "",
            "Write what differs, list all summaries, and end; with status 1 while "
            "another replica leads.",
        ),
    ] = False,
    json: Annotated[
        bool, Option("", "Print JSON lines: the log, and the list of --once.")
    ] = False,
) -> int:
    """Keep the job summaries that a fabric controller reads.

    For every job with a PodGroup it keeps the ConfigMap job-summary-NAME in the job's
    namespace: its status, its rank table, and the leaf switches that it shares with
    other jobs. With switch affinity 2.0 it also keeps tor-share-cm in volcano-system.
    The log goes to standard error, one line of JSON per event.

    Exit status 1 when another replica leads instead, and with --once also when a
    summary is not up to date.
    """
    from ringleaf.cli.summary import SummaryRun, run

    lead = candidacy(
        leader_elect_resource_name,
        leader_elect_resource_namespace,
        leader_elect_lease_duration,
    )
    return run(
        SummaryRun(
            kubeconfig=access.kubeconfig,
            context=access.context,
            health=healthz_address,
            lead=lead if leader_elect else None,
            once=once,
            as_json=json,
        )
    )
