"""A pod as the scheduler keeps it: what it requests, where it is, and its gang."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.structs import replace

from ringleaf.kube import names
from ringleaf.kube.demand import BadPod, check_number, the_one
from ringleaf.kube.objects import Pod
from ringleaf.kube.pod_request import chips_named, held_by, read_request
from ringleaf.kube.quantity import whole_number
from ringleaf.kube.unstarted import refusal_of, runs
from ringleaf.model.demand import NOTHING
from ringleaf.model.placement import Placement
from ringleaf.model.topology import quoted

MAX_RANK: Final = 1_000_000
MAX_TEXT: Final = 1 << 12
"""Characters of a label or an annotation that are kept; 64 chips need 900."""
MAX_LABELS: Final = 200
"""Labels of a pod; each has at most 63 characters, and 317 in its key."""
MAX_CLAIMS: Final = 1000
"""Volume claims of a pod."""
MAX_TIME: Final = 40
"""Characters of a time."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})

JOB_LABELS: Final = (
    names.TOR_AFFINITY,
    names.SUPERPOD_AFFINITY,
    names.STRATEGY,
    names.DISTRIBUTED,
    names.DUO,
    names.FRAMEWORK,
    "ring-controller.atlas",
    names.MOVABLE,
)
"""Labels of a pod or its PodGroup that say what the job asks of the hardware."""
JOB_ANNOTATIONS: Final = (
    names.SP_BLOCK,
    names.QUEUE_NAME,
    names.ESTIMATE,
    names.POLICY,
    names.RESTART_SECONDS,
    names.CHECKPOINT_SECONDS,
    names.CHECKPOINTED_AT,
)
"""Annotations that do the same."""
KEPT_ANNOTATIONS: Final = frozenset(
    {
        *JOB_ANNOTATIONS,
        names.JOB_QUEUE,
        names.RANK,
        names.SHARED,
        names.HEALTHY,
        names.SUPERPOD_RANK,
        names.RECOVER_PATH,
        names.RECOVER_STRATEGY,
        names.POD_STATUS,
    }
)
"""Annotations that are looked at later; others may be large."""


class PodPhase(Enum):
    """What a pod means to the scheduler."""

    WAITING = "waiting"
    """It wants a node."""
    GATED = "gated"
    """It wants a node, and something else must happen first."""
    BOUND = "bound"
    """It holds what it was given, until it is gone."""
    DONE = "done"
    """It ended well."""
    FAILED = "failed"
    """It ended badly."""


class PodHealth(NamedTuple):
    """What is wrong with a pod by its own account, whatever its node says."""

    has_crashed: bool = False
    """Whether a container of it ended badly, the last time that it ended."""
    fault_type: str = ""
    """The fault that another program found, by its label."""
    is_replaced: bool = False
    """Whether another has taken its place, so that it may be deleted."""


HEALTHY: Final = PodHealth()


class PodState:
    """One pod; the cache alone writes to it."""

    __slots__ = (
        "accelerator",
        "annotations",
        "assumed",
        "base",
        "bind_error",
        "bound_at",
        "chip_text",
        "chips",
        "claims",
        "created",
        "critical",
        "deleting",
        "demand",
        "group",
        "health",
        "is_stranded",
        "job",
        "key",
        "labels",
        "name",
        "namespace",
        "node",
        "not_before",
        "number",
        "operated",
        "order",
        "ours",
        "owned",
        "phase",
        "preemptable",
        "preempts",
        "priority",
        "problem",
        "rank",
        "refusal_reported",
        "refused",
        "requested",
        "resource",
        "role",
        "runs",
        "started",
        "succeeded",
        "uid",
        "written_reason",
    )

    def __init__(self, pod: Pod, schedulers: frozenset[str]) -> None:
        metadata, spec = pod.metadata, pod.spec
        labels = _few(metadata.labels or _NONE)
        self.namespace, self.name = metadata.namespace, metadata.name
        self.key, self.uid = metadata.key, metadata.uid
        self.created = seconds_of(metadata.creation_timestamp)
        self.ours = spec.scheduler_name in schedulers
        self.labels = labels
        self.owned = any(o.controller for o in metadata.owner_references or ())
        """Whether a controller replaces it when it is deleted."""
        self.is_stranded = False
        """Whether its node is gone."""
        self.refusal_reported = False
        """Whether the engine knows that its node refused it."""
        self.assumed: Placement | None = None
        """Where it was sent; until the API server says the same."""
        self.not_before = 0.0
        """When it may be tried again."""
        self.bind_error = ""
        """Why it was not bound the last time; for people."""
        self.number: int | None = None
        """Its number among the pods of its job, which is its rank if it has chips."""
        self.job = ""
        self.written_reason = ""
        """What its condition says already of why it waits."""
        annotations = metadata.annotations or _NONE
        self.role = labels.get(names.TASK) or _text(annotations, names.TASK)
        self.order = _order(self.role, self.name, labels)
        self.operated = names.OPERATOR in labels
        self.priority = spec.priority
        self.preempts = spec.preemption_policy != "Never"
        self.critical = (
            self.namespace == names.KUBE_SYSTEM
            or spec.priority_class_name in names.CRITICAL_CLASSES
        )
        self.accelerator = (spec.node_selector or _NONE).get(names.ACCELERATOR_TYPE)
        """Of the labels it selects nodes by, the one that says what product it is."""
        self.claims = tuple(_claims(pod)) if spec.volumes else ()
        self.problem = ""
        """Why it cannot be placed as it is; for people."""
        self.requested, self.resource = 0, ""
        self.base = self.demand = NOTHING
        self._read_request(pod)
        if self.base.namespace == self.namespace:
            self.namespace = self.base.namespace  # one text for all pods alike
        self.problem = self.problem or _too_much(pod)
        self.update(pod)

    def _read_request(self, pod: Pod) -> None:
        """Set what it requests, which never changes."""
        try:
            self.requested, self.resource, self.base = read_request(pod)
        except BadPod as error:
            self.problem = str(error)
            self.requested, self.resource, self.base = held_by(pod)
            self.demand = self.base
            return
        self.demand = self.base
        if pod.spec.resource_claims:
            self.problem = (
                f"Pod {quoted(self.key)} has resource claims, which are ignored; "
                "hint: ask for chips as resources"
            )

    def update(self, pod: Pod) -> None:
        """What may change of a pod while it lives."""
        metadata, spec = pod.metadata, pod.spec
        annotations = metadata.annotations or _NONE
        self.annotations = _kept(annotations)
        one, other = names.GROUP_NAMES
        self.group = _text(annotations, one) or _text(annotations, other)
        self.deleting = metadata.deletion_timestamp is not None
        self.node = spec.node_name
        self.started = seconds_of(pod.status.start_time or "")
        self.bound_at = _bound_at(pod)
        self.refused = refusal_of(pod)
        """Why its node refused it, if it did."""
        self.runs = bool(self.node) and not self.refused and runs(pod)
        self.rank = _rank(annotations.get(names.RANK, ""))
        self.labels = labels = _few(metadata.labels or _NONE)
        may = annotations.get(names.PREEMPTABLE) or labels.get(names.PREEMPTABLE)
        self.preemptable = may != "false"
        chips = self.resource or "huawei.com/Ascend910"
        self.chip_text = _text(annotations, names.REAL) or _text(annotations, chips)
        self.chips = chips_named(self.chip_text) if self.requested else ()
        """The chips that it names; a pod that asks for none holds none."""
        self.phase = self._phase_of(pod)
        self.succeeded = self.phase is PodPhase.DONE
        self.health = _health(pod, labels, annotations)

    def _phase_of(self, pod: Pod) -> PodPhase:
        match pod.status.phase:
            case "Succeeded":
                return PodPhase.DONE
            case "Failed":
                return PodPhase.FAILED
        if self.node:
            return PodPhase.BOUND
        return PodPhase.GATED if pod.spec.scheduling_gates else PodPhase.WAITING

    @property
    def signature(self) -> tuple[PodPhase, str, bool, str, str, bool, PodHealth]:
        """The values whose changes are passed on."""
        return (
            self.phase,
            self.node,
            self.deleting,
            self.group,
            self.chip_text,
            self.preemptable,
            self.health,
        )

    @property
    def holds(self) -> bool:
        """Whether it holds what it was given."""
        return self.phase is PodPhase.BOUND

    @property
    def is_pending(self) -> bool:
        """Whether it has no node yet, and is to have one."""
        return self.phase in (PodPhase.WAITING, PodPhase.GATED)

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self.phase in (PodPhase.DONE, PodPhase.FAILED)

    @property
    def is_unclear(self) -> bool:
        """Whether it holds chips, and does not say which: as many as it asked for."""
        return self.holds and self.requested != len(self.chips or ())

    def count_labels(self, kept: tuple[tuple[str, str], ...]) -> bool:
        """Of its labels, *kept* count for others; whether others did before."""
        if kept == self.demand.labels:
            return False
        self.demand = the_one(replace(self.base, labels=kept)) if kept else self.base
        return True


def _kept(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Those of *annotations* that are looked at later."""
    if KEPT_ANNOTATIONS.isdisjoint(annotations):
        return _NONE
    return {
        key: value[:MAX_TEXT]
        for key, value in annotations.items()
        if key in KEPT_ANNOTATIONS
    }


def _few(labels: Mapping[str, str]) -> Mapping[str, str]:
    """As many of *labels* as are kept of a pod, the first by their keys."""
    if len(labels) <= MAX_LABELS:
        return labels
    return {key: labels[key] for key in sorted(labels)[:MAX_LABELS]}


def _text(given: Mapping[str, str], key: str) -> str:
    """A value, cut to the length that is kept."""
    return given.get(key, "")[:MAX_TEXT]


def _too_much(pod: Pod) -> str:
    """What a pod has more of than is kept, for people; empty if there is nothing."""
    try:
        fewer = "set fewer labels"
        check_number("metadata.labels", pod.metadata.labels, MAX_LABELS, fewer)
        check_number("spec.volumes", pod.spec.volumes, MAX_CLAIMS, "use fewer volumes")
    except BadPod as error:
        return f"Pod {quoted(pod.metadata.key)}: {error}"
    return ""


def _health(
    pod: Pod, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> PodHealth:
    """What a pod says of itself; nearly all say nothing."""
    states = pod.status.container_statuses or ()
    crashed = any(
        state.last_state is not None
        and state.last_state.terminated is not None
        and state.last_state.terminated.exit_code != 0
        for state in states
    )
    if not (crashed or names.FAULT_TYPE in labels or names.OPERATION in annotations):
        return HEALTHY
    replaced = annotations.get(names.OPERATION) == "delete"
    return PodHealth(crashed, labels.get(names.FAULT_TYPE, ""), replaced)


def _bound_at(pod: Pod) -> float:
    """When a pod was bound, as the API server says; 0 if it does not."""
    conditions = pod.status.conditions or ()
    times = (c.last_transition_time for c in conditions if c.type == "PodScheduled")
    return seconds_of(next(times, None) or "") if pod.spec.node_name else 0.0


def _order(
    role: str, name: str, labels: Mapping[str, str]
) -> tuple[str, int, int, str]:
    """Where a pod stands among its like: by its index, however it has one."""
    for key in (names.TASK_INDEX, names.COMPLETION_INDEX):
        if (index := labels.get(key, "")).isdecimal() and index.isascii():
            return role, 0, int(index[:9]), name
    tail = labels.get(names.STATEFUL_POD, name).rpartition("-")[2]
    if tail.isdecimal() and tail.isascii():
        return role, 0, int(tail[:9]), name
    return role, 1, 0, name


def _rank(text: str) -> int | None:
    rank = whole_number(text)
    return rank if rank is not None and rank < MAX_RANK else None


def _claims(pod: Pod) -> list[str]:
    """The keys of the volume claims that must be bound first."""
    found = []
    for volume in (pod.spec.volumes or ())[:MAX_CLAIMS]:
        if volume.persistent_volume_claim is not None:
            found.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            found.append(f"{pod.metadata.name}-{volume.name}")
    return [f"{pod.metadata.namespace}/{name}" for name in found]


def seconds_of(text: str) -> float:
    """A time of Kubernetes in seconds since 1970; 0 where there is none.

    >>> seconds_of("1970-01-01T00:01:00Z")
    60.0
    """
    return _seconds_in(text) if len(text) <= MAX_TIME else 0.0


@lru_cache(maxsize=1 << 12)
def _seconds_in(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
