"""Options that several commands have, each written once.

The docstring of a tuple is the heading of its options in the help.
"""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from ringleaf.cli.parameter import Option, Positional

if TYPE_CHECKING:
    from ringleaf.cli.leader_election import Candidacy
    from ringleaf.cli.live import ClusterAccess
    from ringleaf.cli.simulation_request import SimulationRequest
from ringleaf.cli.known_values import (
    known_clusters,
    known_orders,
    known_workloads,
)

COMPARED: Final = "ringleaf,best-fit,first-fit,random"
"""The policies that are compared where none is named."""


Json = Annotated[bool, Option("", "Print JSON instead of tables.")]
Top = Annotated[int, Option("N", "Show the N best nodes.", least=1)]
Seeds = Annotated[int, Option("N", "Number of seeds, each of them one run.", least=1)]
Namespace = Annotated[
    str | None,
    Option(
        "NAME",
        "Namespace of the objects.",
        short="-n",
        default="that of the context",
    ),
]
Kubeconfig = Annotated[
    str | None,
    Option(
        "FILE",
        "Credentials of the API server.",
        default="$KUBECONFIG, the pod's service account, or ~/.kube/config",
    ),
]
Context = Annotated[str | None, Option("NAME", "Context of the kubeconfig.")]
Watch = Annotated[
    bool, Option("", "Keep the screen up to date; q ends it.", short="-w")
]


class LiveOptions(NamedTuple):
    """Live cluster."""

    kubeconfig: Kubeconfig = None
    context: Context = None
    scheduler_name: Annotated[
        list[str] | None,
        Option(
            "NAME",
            "schedulerName of the pods to consider. Repeatable.",
            default="ringleaf, volcano",
        ),
    ] = None
    scheduler_conf: Annotated[
        str | None,
        Option(
            "FILE",
            "The volcano-scheduler.conf to decide with.",
            default="the built-in one",
        ),
    ] = None

    def cluster(self) -> "ClusterAccess":
        """The cluster that is asked."""
        from ringleaf.cli.live import ClusterAccess

        names = self.scheduler_name
        if names:
            return ClusterAccess(
                self.kubeconfig, self.context, names, self.scheduler_conf
            )
        return ClusterAccess(
            self.kubeconfig, self.context, conf_file=self.scheduler_conf
        )


HealthAddress = Annotated[str, Option("HOST:PORT", "Address of probes and metrics.")]
LeaderElect = Annotated[
    bool, Option("", "Work only while holding the Lease.", default="on")
]
LeaseDuration = Annotated[
    int,
    Option(
        "S",
        "Seconds after which another replica takes over from a leader that is gone.",
        least=3,
        most=3600,
    ),
]
LeaseName = Annotated[str, Option("NAME", "Name of the Lease.")]
LeaseNamespace = Annotated[
    str | None,
    Option(
        "NAME",
        "Namespace of the Lease; the scheduler keeps its records there too.",
        default="the pod's own, else kube-system",
    ),
]


def candidacy(name: str, namespace: str | None, duration_s: int) -> "Candidacy":
    """The Lease under which a service runs."""
    from ringleaf.cli.leader_election import Candidacy

    return Candidacy(name, namespace, duration_s)


class Recovering(StrEnum):
    """What happens to a job with faulty pods that does not say it itself."""

    off = "off"
    grace = "grace"
    force = "force"


Load = Annotated[
    float | None,
    Option(
        "SHARE",
        "Offered load: requested chip-seconds as a share of those of the cluster; "
        "0.9 is 90 %.",
        default="0.9; a trace is not changed",
    ),
]
Jobs = Annotated[
    int | None,
    Option(
        "N",
        "Number of jobs; of a trace, the first N.",
        default="as many as the workload has",
    ),
]
Seed = Annotated[int, Option("N", "Random seed.", least=0)]


class TraceOptions(NamedTuple):
    """Trace."""

    columns: Annotated[
        str | None,
        Option(
            "MAPPING",
            "Columns of a CSV trace: philly, helios, helios-log, openb, plain, or "
            "submit=NAME,duration=NAME,chips=NAME.",
            default="found by the header",
            known=("philly", "helios", "helios-log", "openb", "plain"),
        ),
    ] = None
    chips_each: Annotated[
        int,
        Option(
            "N",
            "Chips for each GPU or processor that the trace counts.",
            least=1,
            most=1000,
        ),
    ] = 1
    queues: Annotated[bool, Option("", "Use the queues that the trace names.")] = False
    skip_bad: Annotated[
        bool, Option("", "Skip rows that cannot be read, and count them.")
    ] = False


class TopologyColumns(NamedTuple):
    """CSV."""

    node: Annotated[
        str | None,
        Option(
            "COLUMN",
            "Column with the node.",
            default="node, name, host, hostname, ip or server_ip, else the first",
        ),
    ] = None
    leaf: Annotated[
        str | None,
        Option(
            "COLUMN[,COLUMN...]",
            "Columns that together name the leaf.",
            default="leaf, tor, switch or rack, with rooms and other wider locations",
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether any was named."""
        return (self.node or self.leaf) is not None


class WorkloadOptions(NamedTuple):
    """Cluster and workload."""

    cluster: Annotated[
        str,
        Option(
            "NAME|FILE",
            "A preset (see ringleaf workloads), a topology file, or a scenario, such "
            "as ringleaf dump writes.",
            known=known_clusters,
        ),
    ] = "leaf-spine-512"
    product: Annotated[
        str | None,
        Option(
            "NAME", "Product of the nodes of a topology file.", default="atlas-800t-a2"
        ),
    ] = None
    workload: Annotated[
        str,
        Option(
            "NAME", "A workload preset (see ringleaf workloads).", known=known_workloads
        ),
    ] = "kalos"
    trace: Annotated[
        str | None, Option("FILE", "Take the jobs of a CSV or SWF file instead.")
    ] = None
    load: Load = None
    jobs: Jobs = None
    burst: Annotated[
        float,
        Option("CV", "Coefficient of variation of arrivals; 1 is a Poisson process."),
    ] = 2.0
    amplitude: Annotated[
        float, Option("SHARE", "Amplitude of the daily cycle of arrivals.")
    ] = 0.6
    common: Annotated[
        float,
        Option(
            "SHARE",
            "Share of multi-node jobs that are common jobs (tor-affinity: "
            "normal-schema).",
        ),
    ] = 0.25
    estimate: Annotated[
        float,
        Option(
            "FACTOR",
            "Jobs state a running time: the true one times FACTOR. With 0 they state "
            "none.",
        ),
    ] = 0.0
    seed: Seed = 0


class RuleOptions(NamedTuple):
    """Policy."""

    conf: Annotated[
        str | None,
        Option("FILE", "volcano-scheduler.conf.", default="the built-in one"),
    ] = None
    order: Annotated[
        str | None,
        Option(
            "NAME",
            "Queue order: fifo or easy (see ringleaf policies).",
            default="as configured",
            known=known_orders,
        ),
    ] = None


class FaultOptions(NamedTuple):
    """Faults and contention."""

    faults: Annotated[
        str,
        Option(
            "RATES",
            "none, usual, or mean hours between faults of one part, such as "
            "chip=80000,node=20000,leaf=40000,node-repair=4; 0 is never.",
            known=("none", "usual"),
        ),
    ] = "none"
    recovery: Annotated[
        Recovering,
        Option("MODE", "fault-scheduling of jobs: off, grace or force."),
    ] = Recovering.grace
    contention: Annotated[
        float,
        Option(
            "SHARE",
            "Share of their time that jobs communicate; jobs that share links slow "
            "each other down.",
            least=0,
            most=1,
        ),
    ] = 0.0
    checkpoint_seconds: Annotated[
        float, Option("S", "Seconds between checkpoints of a job.", least=0)
    ] = 1800.0
    grace_seconds: Annotated[
        float, Option("S", "Seconds that a pod takes to end.", least=0)
    ] = 30.0
    movable: Annotated[
        float,
        Option(
            "SHARE",
            "Share of the jobs that may be moved while they run, by the action "
            "rearrange of --conf.",
            least=0,
            most=1,
        ),
    ] = 0.0
    restart_seconds: Annotated[
        float,
        Option(
            "S", "Seconds that a moved job takes to go on from its checkpoint.", least=0
        ),
    ] = 60.0
    regret: Annotated[
        int,
        Option(
            "N",
            "At every Nth decision with pending jobs, compute how many chips could be "
            "in use, by an exact solver. Needs the extra optimum; 0 is never.",
            least=0,
        ),
    ] = 0


def simulation_request(
    jobs: WorkloadOptions,
    trace: TraceOptions,
    rules: RuleOptions,
    faults: FaultOptions,
    policy: str,
) -> "SimulationRequest":
    """What is to be simulated."""
    from ringleaf.cli.simulation_request import SimulationRequest
    from ringleaf.simulator.preset import Knobs

    return SimulationRequest(
        cluster=jobs.cluster,
        product=jobs.product,
        workload=jobs.workload,
        trace=jobs.trace,
        **trace._asdict(),
        load=jobs.load,
        jobs=jobs.jobs,
        seed=jobs.seed,
        **rules._asdict(),
        faults=faults.faults,
        recovery=faults.recovery.value,
        contention=faults.contention,
        checkpoint_s=faults.checkpoint_seconds,
        grace_s=faults.grace_seconds,
        knobs=Knobs(jobs.amplitude, jobs.burst, jobs.common, jobs.estimate),
        movable=faults.movable,
        restart_s=faults.restart_seconds,
        regret=faults.regret,
        policy=policy,
    )


ScenarioFile = Annotated[
    str, Positional("FILE", "Scenario file, YAML or JSON; - reads standard input.")
]
Policies = Annotated[
    list[str] | None,
    Option(
        "NAMES",
        "Policies to compare, separated by commas (see ringleaf policies). The first "
        "is the reference; the second, the scheduler you run, is what the report "
        "compares it with. best-fit+easy sets the queue order of one policy.",
        default=COMPARED,
    ),
]
Workers = Annotated[
    int | None, Option("N", "Number of processes.", least=1, default="one per core")
]
