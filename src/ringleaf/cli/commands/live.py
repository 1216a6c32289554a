"""Commands that ask a live cluster."""

from typing import Annotated

from ringleaf.cli.failure import BadUse
from ringleaf.cli.options import Json, LiveOptions, Namespace, Watch
from ringleaf.cli.parameter import Option, given
from ringleaf.cli.registry import ASK, command

NO_LIVE = LiveOptions()


@command(
    ASK,
    "ringleaf status",
    "ringleaf status --watch",
    "ringleaf status --json | jq .waiting",
)
def status(
    *,
    watch: Watch = False,
    leader_elect_resource_name: Annotated[
        str, Option("NAME", "Name of the leader's Lease.")
    ] = "ringleaf",
    leader_elect_resource_namespace: Annotated[
        str | None,
        Option("NAME", "Namespace of that Lease.", default="any namespace"),
    ] = None,
    json: Json = False,
    live: LiveOptions = NO_LIVE,
) -> int:
    """Show chips, queues, leaves, pending jobs and the leader.

    Chips by product, queues with their usage and fair share, free nodes under
    leaves and in SuperPoDs, pending jobs with their reasons, gangs that lack pods,
    objects with problems, and the replica that leads.
    """
    from ringleaf.cli.status import Lead, show_status

    lead = Lead(leader_elect_resource_name, leader_elect_resource_namespace)
    if watch:
        from ringleaf.cli.watch import watch_status

        return watch_status(live.cluster(), lead)
    return show_status(live.cluster(), lead, as_json=json)


@command(
    ASK,
    "ringleaf faults",
    "ringleaf faults --watch",
    "ringleaf faults --all --node n3",
    "ringleaf faults --job train -n research",
    "ringleaf faults -f examples/lost-chip.yaml",
)
def faults(
    *,
    filename: Annotated[
        str | None,
        Option(
            "FILE",
            "Run this scenario instead, and show its faults after the last event; "
            "- reads standard input.",
            short="-f",
        ),
    ] = None,
    node: Annotated[str | None, Option("NAME", "Show this node only.")] = None,
    job: Annotated[str | None, Option("NAME", "Show this job only.")] = None,
    recovered: Annotated[
        bool, Option("", "Show also faults that have recovered.", long="--all")
    ] = False,
    watch: Watch = False,
    json: Json = False,
    namespace: Namespace = None,
    live: LiveOptions = NO_LIVE,
) -> int:
    """Show faults, the pods they hit, and the repairs under way.

    Every fault with its history: when it was seen, when pods were deleted because of
    it, when it recovered. Faulty pods and what happens to them, jobs being
    repaired, quarantined nodes, and the eviction rate limit.
    """
    from ringleaf.cli.faults import FaultQuery, show_faults, show_run

    wanted = FaultQuery(node, job, namespace or "", recovered=recovered)
    if filename is None:
        if watch:
            from ringleaf.cli.faults import Followed
            from ringleaf.cli.status import Lead
            from ringleaf.cli.watch import watch as follow

            return follow(live.cluster(), Lead("ringleaf"), Followed(wanted))
        return show_faults(live.cluster(), wanted, as_json=json)
    refused = {"--namespace": namespace, **given(live), "--watch": watch}
    for option in (name for name, value in refused.items() if value):
        raise BadUse(
            f"{option} goes with a live cluster, and a scenario is run without one"
        )
    return show_run(filename, wanted, as_json=json)


@command(
    ASK,
    "ringleaf dump -o cluster.json",
    "ringleaf dump --anonymous | ringleaf plan -",
)
def dump(
    *,
    output: Annotated[
        str, Option("FILE", "Write to this file; - is standard output.", short="-o")
    ] = "-",
    anonymous: Annotated[
        bool,
        Option(
            "",
            "Replace the names of nodes, jobs, namespaces, queues, labels and leaves. "
            "Decisions stay the same.",
        ),
    ] = False,
    json: Annotated[  # noqa: ARG001 - there is nothing else
        bool, Option("", "No effect: the output is always JSON.")
    ] = False,
    live: LiveOptions = NO_LIVE,
) -> int:
    """Write the state of the cluster as a scenario.

    Nodes with their chips, leaves and SuperPoDs, queues, the configuration, running
    jobs with their placements, and pending jobs. The output is JSON, which plan,
    explain and simulate --cluster read.
    """
    from ringleaf.cli.dump import dump_cluster

    return dump_cluster(live.cluster(), output, hide_names=anonymous)


@command(
    ASK,
    "kubectl -n ringleaf-system port-forward deployment/ringleaf 11251 &",
    "ringleaf shadow-report",
    "ringleaf shadow-report --from shadow.jsonl --top 5",
    "ringleaf shadow-report --json | jq .rules",
)
def shadow_report(
    *,
    source: Annotated[
        str,
        Option(
            "URL|FILE",
            "Address of the shadow, or its --shadow-log; - reads standard input.",
            long="--from",
        ),
    ] = "http://127.0.0.1:11251",
    top: Annotated[int, Option("N", "Show the last N differences.", least=0)] = 20,
    json: Json = False,
) -> int:
    """Compare another scheduler's decisions with Ringleaf's.

    Reads a running ringleaf scheduler --shadow, or the log it wrote. Shows the share
    of jobs on which both agree, the jobs by verdict, the differences by the rule that
    makes them, and the last differences with both placements.

    Exit status 0 when both agree on every job, 1 when they differ or no job was
    compared yet.
    """
    from ringleaf.cli.shadow import report

    return report(source, most=top, as_json=json)
