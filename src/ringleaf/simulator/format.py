"""The format of scenario files: what each mapping may have.

The structs are the format; docs/scenario.md describes it for people.
``wanted.read_entry`` turns a document's plain values into them, or says in one line
what, where, found and wanted.
"""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from ringleaf.framework.idle_budget import MOST_BUCKETS, Outcome
from ringleaf.model.demand import Effect, Match, Operator
from ringleaf.model.fault import Cause, Down, FaultMode, RestartScope, SubHealth
from ringleaf.model.job_labels import Firmness, Schema, Strategy
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.run_time import Similarity
from ringleaf.model.settings import DefaultAffinity, JobRequests, LeafChoice
from ringleaf.policies.faults import FAULT_CAUSES

MAX_NODES: Final = 100_000
OF_PODS: Final = FAULT_CAUSES
"""What can be wrong with a pod."""

Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Chips = Annotated[int, Meta(ge=0, le=1_000_000)]
Index = Annotated[int, Meta(ge=0, le=1_000_000)]
Weight = Annotated[int, Meta(ge=1, le=100)]
Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Amounts = dict[str, int | float | str]

MAX_SECONDS: Final = 1e12
Predicted = Annotated[int, Meta(gt=0, le=1 << 31)]
Moment = Annotated[
    float, Meta(ge=-MAX_SECONDS, le=MAX_SECONDS, description="a time in seconds")
]
Later = Annotated[
    float, Meta(ge=0, le=MAX_SECONDS, description="a time in seconds, from 0")
]
Seconds = Annotated[
    float, Meta(ge=0, le=MAX_SECONDS, description="a number of seconds from 0")
]
ChipSeconds = Annotated[
    float, Meta(ge=0, le=MAX_SECONDS, description="a number from 0")
]


class _Entry(Struct, forbid_unknown_fields=True, rename="kebab", frozen=True):
    """A mapping of the file; unknown keys are errors."""


class SettingsEntry(_Entry, frozen=True):
    """``settings``: names and defaults as in the scheduler's init-params."""

    nslb_version: Literal["1.0", "2.0"] | float | UnsetType = UNSET
    shared_tor_num: Literal[1, 2] | UnsetType = UNSET
    tor_level: Literal["double_layer", "single_layer"] | UnsetType = UNSET
    super_pod_size: Count | UnsetType = UNSET
    reserve_nodes: Index | UnsetType = UNSET
    nodes_per_leaf: Count | UnsetType | None = UNSET
    job_requests: JobRequests | UnsetType = UNSET
    leaf_choice: LeafChoice | UnsetType = UNSET
    share_common_leaves: bool | UnsetType = UNSET
    grace_over_time: Annotated[int, Meta(ge=2, le=3600)] | UnsetType = UNSET
    superpod_escalation_seconds: Index | UnsetType = UNSET
    job_escalation_seconds: Index | UnsetType = UNSET
    repair_hold_seconds: Index | UnsetType = UNSET
    fault_brake_percent: Annotated[int, Meta(ge=0, le=100)] | UnsetType = UNSET
    fault_brake_seconds: Count | UnsetType = UNSET
    run_within_seconds: Index | UnsetType = UNSET
    set_aside_seconds: Index | UnsetType = UNSET
    default_tor_affinity: DefaultAffinity | UnsetType = UNSET
    default_fault_scheduling: Literal["off", "grace", "force"] | UnsetType = UNSET


class TaintEntry(_Entry, frozen=True):
    """One of a node's ``taints``."""

    key: str
    effect: Effect
    value: str | None = None


class NodeEntry(_Entry, frozen=True):
    """One of ``nodes``, or ``count`` alike."""

    name: str
    product: str
    count: Annotated[int, Meta(ge=1, le=MAX_NODES)] | None = None
    free: list[Index] | None = None
    faulty: list[Index] = field(default_factory=list)
    network_faulty: list[Index] = field(default_factory=list)
    sub_healthy: bool = False
    chips: Count | None = None
    leaf: str | None = None
    slot: Index | None = None
    superpod: Index | None = None
    ready: bool = True
    unschedulable: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[TaintEntry] = field(default_factory=list)
    resources: Amounts = field(default_factory=dict)
    unhealthy: list[Index] | None = None
    weak: list[Index] = field(default_factory=list)
    weak_switch: bool | None = None
    down: Down | None = None
    offers: list[Index] | None = None
    lists_all: bool = False
    allocatable: Index | None = None


class LeafEntry(_Entry, frozen=True):
    """One of ``leaves``: switch state that ``running`` does not already imply."""

    state: Literal["idle", "shared", "exclusive"] | None = None
    healthy: bool | None = None
    address: str | None = None
    cross_leaf_jobs: list[Schema] = field(default_factory=list)
    order: Index | None = None


class PlacementEntry(_Entry, frozen=True):
    """Where one replica is or was."""

    replica: Index
    node: str
    chips: list[Index]
    annotations: dict[str, str] = field(default_factory=dict)


class PreviousEntry(_Entry, frozen=True):
    """Where a job ran before a fault."""

    placements: list[PlacementEntry]
    failed_nodes: list[str] = field(default_factory=list)
    keep: Literal["pods", "job"] = "pods"


class RequirementEntry(_Entry, frozen=True):
    """One of a term's ``match-expressions``."""

    key: str
    operator: Operator
    values: list[str] = field(default_factory=list)


class TermEntry(_Entry, frozen=True):
    """One of a job's ``node-affinity``."""

    match_expressions: list[RequirementEntry]


class TolerationEntry(_Entry, frozen=True):
    """One of a job's ``tolerations``."""

    key: str | None = None
    operator: Match = Match.EQUAL
    value: str | None = None
    effect: Effect | None = None


class SelectorEntry(_Entry, frozen=True):
    """The pods that are meant; without a word in it, every pod."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: list[RequirementEntry] = field(default_factory=list)


class PodTermEntry(_Entry, frozen=True):
    """One of a job's ``pod-affinity`` or ``pod-anti-affinity``."""

    topology_key: str
    selector: SelectorEntry | None = None
    namespaces: list[str] = field(default_factory=list)


class PreferredPodTermEntry(PodTermEntry, frozen=True, kw_only=True):
    """One of ``preferred-pod-affinity`` or ``preferred-pod-anti-affinity``."""

    weight: Weight


class PreferredTermEntry(TermEntry, frozen=True, kw_only=True):
    """One of a job's ``preferred-node-affinity``."""

    weight: Weight


class SpreadEntry(_Entry, frozen=True):
    """One of a job's ``spread``: over what its pods are spread evenly."""

    topology_key: str
    max_skew: Count = 1
    selector: SelectorEntry | None = None
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    min_domains: Count | None = None


class PodEntry(_Entry, frozen=True, kw_only=True):
    """What pods ask besides chips, of a job or of a role."""

    resources: Amounts = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    node_affinity: list[TermEntry] = field(default_factory=list)
    tolerations: list[TolerationEntry] = field(default_factory=list)
    host_ports: list[int | str] = field(default_factory=list)
    pod_labels: dict[str, str] = field(default_factory=dict)
    namespace: str = "default"
    pod_affinity: list[PodTermEntry] = field(default_factory=list)
    pod_anti_affinity: list[PodTermEntry] = field(default_factory=list)
    spread: list[SpreadEntry] = field(default_factory=list)
    preferred_node_affinity: list[PreferredTermEntry] = field(default_factory=list)
    preferred_pod_affinity: list[PreferredPodTermEntry] = field(default_factory=list)
    preferred_pod_anti_affinity: list[PreferredPodTermEntry] = field(
        default_factory=list
    )


class RoleEntry(PodEntry, frozen=True, kw_only=True):
    """One of a job's ``roles``: pods that are alike."""

    name: str
    chips: Chips
    replicas: Count = 1
    min_member: Index | None = None
    rank_index: list[Index] = field(default_factory=list)


class RunTimeEntry(_Entry, frozen=True):
    """``run-time``: how long a job is predicted to run."""

    median_seconds: Predicted
    most_seconds: Predicted
    runs: Index = 0
    by: Similarity = Similarity.NAME


class JobEntry(PodEntry, frozen=True, kw_only=True):
    """One of ``jobs``."""

    name: str
    chips: Chips | UnsetType = UNSET
    replicas: Count | UnsetType = UNSET
    product: str | None = None
    tor_affinity: Literal["large-model-schema", "normal-schema", "null"] | None = None
    sp_block: Index | None = None
    super_pod_affinity: Firmness | None = None
    strategy: Strategy | None = None
    distributed: bool = False
    vnpu: str | None = None
    framework: str | None = None
    previous: PreviousEntry | None = None
    roles: list[RoleEntry] = field(default_factory=list)
    rank_index: list[Index] = field(default_factory=list)
    min_member: Index | None = None
    finished: list[Index] = field(default_factory=list)
    queue: str = DEFAULT_QUEUE
    priority: Priority = 0
    estimate_seconds: (
        Annotated[
            float, Meta(gt=0, le=MAX_SECONDS, description="a number of seconds above 0")
        ]
        | None
    ) = None
    user: str = ""
    program: str | None = None
    run_time: RunTimeEntry | None = None
    preemptable: bool = True
    preempts: bool = True
    critical: bool = False
    podless: bool = False
    movable: bool = False
    restart_seconds: Seconds = 0
    checkpointed_at: Moment | None = None
    checkpoint_seconds: Seconds | None = None
    created: Moment | None = None
    waiting_since: Moment | None = None
    fault_scheduling: FaultMode | UnsetType = UNSET
    fault_retry_times: Index = 0
    pod_rescheduling: bool = False
    process_recover_enable: bool = False
    sub_healthy_strategy: SubHealth = SubHealth.IGNORE
    recover_policy_path: Literal["pod", "pod,job", "job"] | None = None
    master: Index | None = 0

    @property
    def n_replicas(self) -> int:
        """Pods with chips, of every role."""
        if self.roles:
            return sum(role.replicas for role in self.roles if role.chips) or 1
        return 1 if self.replicas is UNSET else self.replicas


class RunningEntry(JobEntry, frozen=True, kw_only=True):
    """One of ``running``: a job that already holds chips."""

    placements: list[PlacementEntry]
    started: Moment = 0.0
    ending: list[Index] = field(default_factory=list)


class ArrivalEntry(JobEntry, frozen=True, kw_only=True):
    """``arrives``: a job, and those of its pods that run already."""

    placements: list[PlacementEntry] = field(default_factory=list)
    started: Moment | None = None


class QueueEntry(_Entry, frozen=True):
    """One of ``queues``: how much of the cluster its jobs may use."""

    name: str
    weight: Annotated[int, Meta(ge=1, le=65535)] = 1
    capability: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)
    reclaimable: bool = True
    priority: Priority = 0
    state: Literal["open", "closed"] = "open"
    hierarchy: str = ""
    hierarchy_weights: str = ""


class PodsEntry(_Entry, frozen=True):
    """``pods-ending`` and ``bind-fails``: some pods of a job."""

    job: str
    replicas: list[Index]


class PodsEndEntry(_Entry, frozen=True):
    """``pods-end``: some pods of a job are gone."""

    job: str
    replicas: list[Index]
    succeeded: bool = False
    ends_run: bool = True


class JobEndEntry(_Entry, frozen=True):
    """``ends`` of a job that returns: its pods are gone, and expected again."""

    job: str
    returns: bool = False
    ends_run: bool = True


class AilmentEntry(_Entry, frozen=True):
    """What is wrong with one pod."""

    replica: Index
    cause: Cause
    node: str = ""


class PodsAilEntry(_Entry, frozen=True):
    """``pods-ail``: what is wrong with the pods of a job, all of it."""

    job: str
    ailments: list[AilmentEntry]


class PodsRunEntry(_Entry, frozen=True):
    """``pods-run``: pods that their nodes have taken; the others must run soon."""

    job: str
    replicas: list[Index]
    since: Moment | None = None


class PodsRefusedEntry(_Entry, frozen=True):
    """``pods-refused``: pods that their nodes did not take."""

    job: str
    replicas: list[Index]
    why: str = ""


class RecordEntry(_Entry, frozen=True):
    """What was written down of the repair of a job."""

    since: Moment
    reach: RestartScope = RestartScope.POD
    ailments: list[AilmentEntry] = field(default_factory=list)
    placements: list[PlacementEntry] = field(default_factory=list)
    deleted: list[Index] = field(default_factory=list)
    retries_used: Index = 0
    is_over: bool = False
    moved_for: str = ""
    deleted_at: Moment | None = None
    stuck_at: Moment | None = None


class RepairEntry(_Entry, frozen=True):
    """``repair-known``: the repair of a job that another scheduler began."""

    job: str
    record: RecordEntry


class RunSeriesEntry(_Entry, frozen=True):
    """One of ``run-times-known``."""

    by: Similarity
    queue: str = DEFAULT_QUEUE
    user: str = ""
    name: str = ""
    chips: Index = 0
    steps: list[Index] = field(default_factory=list)


class KeptIdleEntry(_Entry, frozen=True):
    """One of ``kept-idle`` of ``idle-time-known``."""

    until: Moment
    chip_seconds: ChipSeconds


class EndedReservationEntry(_Entry, frozen=True):
    """One of ``reservations`` of ``idle-time-known``."""

    job: str
    outcome: Outcome
    since: Moment
    until: Moment
    chip_seconds: ChipSeconds = 0.0


class IdleTimeEntry(_Entry, frozen=True):
    """``idle-time-known``: what reservations kept idle."""

    kept_idle: Annotated[list[KeptIdleEntry], Meta(max_length=MOST_BUCKETS)] = field(
        default_factory=list
    )
    budget_spent: bool = False
    reservations: list[EndedReservationEntry] = field(default_factory=list)


class FaultEntry(_Entry, frozen=True):
    """One of ``faults-known``."""

    where: str
    cause: Cause
    part: str = ""
    jobs: list[str] = field(default_factory=list)
    why: str = ""
    seen: Moment = 0.0
    acted: Moment | None = None
    recovered: Moment | None = None
    until: Moment | None = None


class DeletionEntry(_Entry, frozen=True):
    """One of ``deletions-known``."""

    job: str
    pods: Index
    deleted_at: Moment


class EventEntry(_Entry, frozen=True):
    """One thing that happens, as logs have it."""

    arrives: ArrivalEntry | UnsetType = UNSET
    ends: str | JobEndEntry | UnsetType = UNSET
    pods_end: PodsEndEntry | UnsetType = UNSET
    pods_ending: PodsEntry | UnsetType = UNSET
    bind_fails: PodsEntry | UnsetType = UNSET
    pods_ail: PodsAilEntry | UnsetType = UNSET
    pods_run: PodsRunEntry | UnsetType = UNSET
    pods_refused: PodsRefusedEntry | UnsetType = UNSET
    repair_known: RepairEntry | UnsetType = UNSET
    faults_known: list[FaultEntry] | UnsetType = UNSET
    deletions_known: list[DeletionEntry] | UnsetType = UNSET
    run_times_known: list[RunSeriesEntry] | UnsetType = UNSET
    idle_time_known: IdleTimeEntry | UnsetType = UNSET
    nodes: list[NodeEntry] | UnsetType = UNSET
    nodes_gone: list[str] | UnsetType = UNSET
    leaves: dict[str, LeafEntry] | UnsetType = UNSET
    queue: QueueEntry | UnsetType = UNSET
    queue_gone: str | UnsetType = UNSET
    configuration: dict[str, object] | str | UnsetType = UNSET
    wakes: bool | UnsetType = UNSET
    settings: SettingsEntry | UnsetType = UNSET


class ThenEntry(EventEntry, frozen=True, kw_only=True):
    """One of ``then``: a time, and one thing that happens."""

    at: Later


class ScenarioEntry(_Entry, frozen=True):
    """One document."""

    nodes: Annotated[list[NodeEntry], Meta(max_length=MAX_NODES)]
    about: str | None = None
    settings: SettingsEntry = field(default_factory=SettingsEntry)
    leaves: dict[str, LeafEntry] = field(default_factory=dict)
    running: list[RunningEntry] = field(default_factory=list)
    jobs: list[JobEntry] = field(default_factory=list)
    queues: list[QueueEntry] | UnsetType = UNSET
    configuration: dict[str, object] | str | UnsetType = UNSET
    then: list[ThenEntry] | UnsetType = UNSET
    until: Later | None = None
    grace_seconds: Seconds = 0.0


class LogEntry(_Entry, frozen=True, kw_only=True):
    """The first line of a log: what there was, and by which rules."""

    ringleaf_log: Literal[1]
    version: str
    nodes: list[NodeEntry]
    leaves: dict[str, LeafEntry] = field(default_factory=dict)
    queues: list[QueueEntry] = field(default_factory=list)
    configuration: dict[str, object] | str
    settings: SettingsEntry = field(default_factory=SettingsEntry)


class StepEntry(_Entry, frozen=True):
    """Every further line of a log: what happened, and what was said to it."""

    at: Moment
    events: list[EventEntry]
    instructions: list[dict[str, object]]
    most: Count | None = None
