"""Kubernetes objects as the API server writes them, cut down to what is read here.

Unknown fields are passed over as they are decoded, so an object costs what is used of
it. Whatever users may write wrongly (quantities, selectors, annotations) stays as it is
written and is read where it can be reported.
"""

from typing import Any

from msgspec import Struct, field


class _Object(Struct, rename="camel", gc=False):
    """Everything is optional: the API server leaves out what is empty."""


class Metadata(_Object):
    """What every object has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Owner(_Object):
    """An owner of an object; its controller recreates it."""

    name: str = ""
    uid: str = ""
    controller: bool = False


class GroupMetadata(Metadata):
    """The metadata of a PodGroup or a pod, with its owners."""

    owner_references: list[Owner] | None = None


Quantities = dict[str, str | int | float]
"""Resource -> an amount as it was written."""


class Resources(_Object):
    """What a container asks."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Port(_Object):
    """A port of a container."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = field(default="", name="hostIP")


class Container(_Object):
    """A container, as far as it asks for something."""

    name: str = ""
    resources: Resources | None = None
    ports: list[Port] | None = None
    restart_policy: str = ""


class Expression(_Object):
    """A requirement on a label."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelectorSpec(_Object):
    """Which objects are meant."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class NodeSelectorTerm(_Object):
    """Requirements on a node that must all hold."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeSelector(_Object):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredNode(_Object):
    """A term that adds weight."""

    weight: int = 0
    preference: NodeSelectorTerm = field(default_factory=NodeSelectorTerm)


class NodeAffinity(_Object):
    """What a pod asks of the labels of its node."""

    required: NodeSelector | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredNode] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(_Object):
    """Other pods, and where they count as neighbours."""

    topology_key: str = ""
    label_selector: LabelSelectorSpec | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelectorSpec | None = None


class PreferredPod(_Object):
    """Neighbours that add weight."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = field(default_factory=PodAffinityTerm)


class PodAffinity(_Object):
    """What a pod asks of the pods around it."""

    required: list[PodAffinityTerm] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[PreferredPod] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class AffinitySpec(_Object):
    """What a pod asks of its node and of the pods around it."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class PodToleration(_Object):
    """A taint that does not keep a pod away."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class TopologySpread(_Object):
    """Over what pods are spread."""

    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelectorSpec | None = None
    min_domains: int | None = None


class ClaimSource(_Object):
    """A volume that is a claim."""

    claim_name: str = ""


class Volume(_Object):
    """A volume of a pod, as far as it is a claim."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None


class Gate(_Object):
    """Something a pod waits for before it may be scheduled."""

    name: str = ""


class PodSpec(_Object):
    """What a pod asks."""

    scheduler_name: str = ""
    node_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = ""
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Quantities | None = None
    node_selector: dict[str, str] | None = None
    affinity: AffinitySpec | None = None
    tolerations: list[PodToleration] | None = None
    topology_spread_constraints: list[TopologySpread] | None = None
    volumes: list[Volume] | None = None
    scheduling_gates: list[Gate] | None = None
    resource_claims: list[dict[str, Any]] | None = None


class Condition(_Object):
    """What is so of an object, and since when."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class Termination(_Object):
    """How a container ended."""

    exit_code: int = 0


class ContainerState(_Object):
    """What a container does or did: it runs, or has ended."""

    running: dict[str, Any] | None = None
    terminated: Termination | None = None


class ContainerStatus(_Object):
    """How a container is."""

    state: ContainerState | None = None
    last_state: ContainerState | None = None


class PodStatus(_Object):
    """How a pod is."""

    phase: str = "Pending"
    conditions: list[Condition] | None = None
    start_time: str | None = None
    reason: str = ""
    message: str = ""
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(_Object):
    """A pod."""

    metadata: GroupMetadata = field(default_factory=GroupMetadata)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)


class NodeTaint(_Object):
    """A node's refusal of pods."""

    key: str = ""
    effect: str = ""
    value: str = ""


class NodeSpec(_Object):
    """What an operator says of a node."""

    unschedulable: bool = False
    taints: list[NodeTaint] | None = None


class Address(_Object):
    """An address of a node."""

    type: str = ""
    address: str = ""


class NodeStatus(_Object):
    """How a node is."""

    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None
    addresses: list[Address] | None = None


class NodeObject(_Object):
    """A node."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class ConfigMap(_Object):
    """A ConfigMap."""

    metadata: Metadata = field(default_factory=Metadata)
    data: dict[str, str] | None = None


class PodGroupSpec(_Object):
    """Which pods start together."""

    min_member: int = 0
    min_task_member: dict[str, int] | None = None
    queue: str = ""
    priority_class_name: str = ""
    min_resources: Quantities | None = None


class PodGroupCondition(_Object, omit_defaults=True):
    """What is so of a PodGroup, and since when."""

    type: str = ""
    status: str = ""
    transition_id: str = field(default="", name="transitionID")
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(_Object):
    """How a PodGroup is."""

    phase: str = ""
    conditions: list[PodGroupCondition] | None = None
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(_Object):
    """Volcano's PodGroup."""

    metadata: GroupMetadata = field(default_factory=GroupMetadata)
    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)


class Guarantee(_Object):
    """What is kept for a queue."""

    resource: Quantities | None = None


class QueueSpec(_Object):
    """How much the jobs of a queue may use."""

    weight: int = 1
    capability: Quantities | None = None
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    priority: int = 0
    parent: str = ""


class QueueStatus(_Object):
    """How a queue is."""

    state: str = ""
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    unknown: int = 0
    completed: int = 0
    allocated: Quantities | None = None


class QueueObject(_Object):
    """Volcano's Queue."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: QueueSpec = field(default_factory=QueueSpec)
    status: QueueStatus = field(default_factory=QueueStatus)


class PriorityClass(_Object):
    """A priority by name."""

    metadata: Metadata = field(default_factory=Metadata)
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


class BudgetSpec(_Object):
    """Which pods are not to be disturbed too often."""

    selector: LabelSelectorSpec | None = None


class BudgetStatus(_Object):
    """How many of them may be disturbed now."""

    disruptions_allowed: int = 0


class Budget(_Object):
    """A PodDisruptionBudget."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: BudgetSpec = field(default_factory=BudgetSpec)
    status: BudgetStatus = field(default_factory=BudgetStatus)


class VolumeClaim(_Object):
    """A PersistentVolumeClaim."""

    metadata: Metadata = field(default_factory=Metadata)
    status: PodStatus = field(default_factory=PodStatus)
