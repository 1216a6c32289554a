"""A pod as the scheduler keeps it: what it asks, where it is, whose it is."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.msgpack import Encoder
from msgspec.structs import replace

from ringleaf.kube import names
from ringleaf.kube.demand import (
    BadPod,
    check_number,
    check_size,
    demand_of,
    digest_of,
    requests_of,
    the_one,
)
from ringleaf.kube.objects import Container, Pod, PodSpec, Quantities, Resources
from ringleaf.kube.quantity import whole_number
from ringleaf.kube.unstarted import refusal_of, runs
from ringleaf.model.cache import Cache
from ringleaf.model.demand import NOTHING, Demand
from ringleaf.model.mask import MAX_CHIPS
from ringleaf.model.placement import Placement
from ringleaf.model.topology import quoted

MAX_CHIPS_ASKED: Final = 1_000_000
MAX_RANK: Final = 1_000_000
MAX_TEXT: Final = 1 << 12
"""Characters of a label or an annotation that are kept; 64 chips need 900."""
MAX_LABELS: Final = 200
"""Labels of a pod; each has at most 63 characters, and 317 in its key."""
MAX_CLAIMS: Final = 1000
"""Volume claims of a pod."""
MAX_READ: Final = 1 << 14
"""Kinds of pods that are remembered."""
MAX_READ_BYTES: Final = 12 << 20
"""Bytes of what is remembered of them."""
MAX_TIME: Final = 40
"""Characters of a time."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_encoded: Final = Encoder().encode
_read: Final[Cache[bytes, tuple[int, str, Demand]]] = Cache(MAX_READ, MAX_READ_BYTES)
_chips_read: Final[Cache[str, tuple[tuple[int, ...] | None]]] = Cache(1 << 14, 4 << 20)

USUAL: Final = ("cpu", "memory", "ephemeral-storage", *sorted(names.NPU_RESOURCES))
"""Resources that count of pods which ask for more than is read."""

JOB_LABELS: Final = (
    names.TOR_AFFINITY,
    names.SUPERPOD_AFFINITY,
    names.STRATEGY,
    names.DISTRIBUTED,
    names.DUO,
    names.FRAMEWORK,
    "ring-controller.atlas",
)
"""Labels of a pod or its PodGroup that say what the job asks of the hardware."""
JOB_ANNOTATIONS: Final = (
    names.SP_BLOCK,
    names.QUEUE_NAME,
    names.ESTIMATE,
    names.POLICY,
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


class State(Enum):
    """What a pod means to the scheduler."""

    WAITING = "waiting"
    """It wants a node."""
    BARRED = "barred"
    """It wants a node, and something else must happen first."""
    BOUND = "bound"
    """It holds what it was given, until it is gone."""
    DONE = "done"
    """It ended well."""
    FAILED = "failed"
    """It ended badly."""


class Signs(NamedTuple):
    """What is wrong with a pod by its own account, whatever its node says."""

    has_crashed: bool = False
    """Whether a container of it ended badly, the last time that it ended."""
    fault_type: str = ""
    """The fault that another program found, by its label."""
    is_replaced: bool = False
    """Whether another has taken its place, so that it may be deleted."""


WELL: Final = Signs()


class PodRecord:
    """One pod; the world alone writes to it."""

    __slots__ = (
        "accelerator",
        "annotations",
        "asked",
        "assumed",
        "base",
        "bound_at",
        "chip_text",
        "chips",
        "claims",
        "created",
        "critical",
        "deleting",
        "demand",
        "group",
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
        "preemptable",
        "preempts",
        "priority",
        "problem",
        "rank",
        "refusal",
        "refused",
        "refused_told",
        "resource",
        "role",
        "runs",
        "said",
        "signs",
        "started",
        "state",
        "succeeded",
        "uid",
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
        self.refused_told = False
        """Whether the engine knows that its node refused it."""
        self.assumed: Placement | None = None
        """Where it was sent; until the API server says the same."""
        self.not_before = 0.0
        """When it may be tried again."""
        self.refusal = ""
        """Why it was not bound the last time; for people."""
        self.number: int | None = None
        """Its number among the pods of its job, which is its rank if it has chips."""
        self.job = ""
        self.said = ""
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
        self.asked, self.resource = 0, ""
        self.base = self.demand = NOTHING
        self._ask(pod)
        if self.base.namespace == self.namespace:
            self.namespace = self.base.namespace  # one text for all pods alike
        self.problem = self.problem or _too_much(pod)
        self.update(pod)

    def _ask(self, pod: Pod) -> None:
        """What it asks, which never changes; pods alike are read once."""
        spec = pod.spec
        parts = (
            self.namespace,
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
        )
        text = _encoded(parts)
        key = digest_of(text)
        known = _read.get(key)
        if known is None:
            try:
                known = _asked(pod, len(text))
            except BadPod as error:
                self.problem = str(error)
                self.asked, self.resource, self.base = _held(pod)
                self.demand = self.base
                return
            _read.put(key, known, known[2].weight)
        self.asked, self.resource, self.base = known
        self.demand = self.base
        if spec.resource_claims:
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
        self.chips = chips_named(self.chip_text) if self.asked else ()
        """The chips that it names; a pod that asks for none holds none."""
        self.state = self._state(pod)
        self.succeeded = self.state is State.DONE
        self.signs = _signs(pod, labels, annotations)

    def _state(self, pod: Pod) -> State:
        match pod.status.phase:
            case "Succeeded":
                return State.DONE
            case "Failed":
                return State.FAILED
        if self.node:
            return State.BOUND
        return State.BARRED if pod.spec.scheduling_gates else State.WAITING

    @property
    def seen(self) -> tuple[State, str, bool, str, str, bool, Signs]:
        """The values whose changes are passed on."""
        return (
            self.state,
            self.node,
            self.deleting,
            self.group,
            self.chip_text,
            self.preemptable,
            self.signs,
        )

    @property
    def holds(self) -> bool:
        """Whether it holds what it was given."""
        return self.state is State.BOUND

    @property
    def waits(self) -> bool:
        """Whether it has no node yet, and is to have one."""
        return self.state in (State.WAITING, State.BARRED)

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self.state in (State.DONE, State.FAILED)

    @property
    def is_unclear(self) -> bool:
        """Whether it holds chips, and does not say which: as many as it asked for."""
        return self.holds and self.asked != len(self.chips or ())

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


def _signs(
    pod: Pod, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Signs:
    """What a pod says of itself; nearly all say nothing."""
    states = pod.status.container_statuses or ()
    crashed = any(
        state.last_state is not None
        and state.last_state.terminated is not None
        and state.last_state.terminated.exit_code != 0
        for state in states
    )
    if not (crashed or names.FAULT_TYPE in labels or names.OPERATION in annotations):
        return WELL
    replaced = annotations.get(names.OPERATION) == "delete"
    return Signs(crashed, labels.get(names.FAULT_TYPE, ""), replaced)


def _bound_at(pod: Pod) -> float:
    """When a pod was bound, as the API server says; 0 if it does not."""
    conditions = pod.status.conditions or ()
    times = (c.last_transition_time for c in conditions if c.type == "PodScheduled")
    return seconds_of(next(times, None) or "") if pod.spec.node_name else 0.0


def _asked(pod: Pod, n_bytes: int) -> tuple[int, str, Demand]:
    """Chips, the resource that counts them, and the rest."""
    try:
        check_size(pod.spec, n_bytes)
    except BadPod as error:
        raise BadPod(f"Pod {quoted(pod.metadata.key)}: {error}") from None
    chips, resource = _chips(pod.metadata.key, requests_of(pod.spec))
    labels = frozenset(pod.metadata.labels or ())
    return chips, resource, demand_of(pod, names.NPU_RESOURCES, labels)


def _held(pod: Pod) -> tuple[int, str, Demand]:
    """The same of a pod that cannot be placed as it is, and may be bound already."""
    spec = pod.spec
    kept = PodSpec(
        containers=spec.containers,
        init_containers=spec.init_containers,
        overhead=spec.overhead,
    )
    chips, resource, demand = 0, "", NOTHING
    labels = frozenset(pod.metadata.labels or ())
    for each in (kept, _plain(kept)):
        with suppress(BadPod):
            demand = demand_of(replace(pod, spec=each), names.NPU_RESOURCES, labels)
            chips, resource = _held_chips(requests_of(each))
            break
    return chips, resource, demand


def _held_chips(asks: Mapping[str, int]) -> tuple[int, str]:
    """Chips of a pod that may hold some, of several kinds or parts of them."""
    counts = {
        name: -(-n // 1000)
        for name, n in asks.items()
        if n > 0 and (name in names.NPU_RESOURCES or _is_part(name))
    }
    whole = sorted(names.NPU_RESOURCES & counts.keys())
    return min(sum(counts.values()), MAX_CHIPS_ASKED), whole[0] if whole else ""


def _plain(spec: PodSpec) -> PodSpec:
    """Containers without ports, and of what they ask the usual resources only."""
    return PodSpec(
        containers=[_plainly(each) for each in spec.containers or ()],
        init_containers=[_plainly(each) for each in spec.init_containers or ()],
    )


def _plainly(container: Container) -> Container:
    has = container.resources or Resources()
    asks = Resources(requests=_usual(has.requests), limits=_usual(has.limits))
    return Container(resources=asks, restart_policy=container.restart_policy)


def _usual(given: Quantities | None) -> Quantities:
    return {name: (given or {})[name] for name in USUAL if name in (given or {})}


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


def _chips(key: str, asks: Mapping[str, int]) -> tuple[int, str]:
    """Chips, and the resource that counts them."""
    vendor = [name for name, n in asks.items() if n and name.startswith(names.VENDOR)]
    counted = [name for name in vendor if name in names.NPU_RESOURCES]
    if len(counted) > 1:
        told = " and ".join(sorted(counted))
        raise BadPod(f"Pod {quoted(key)} asks for {told}, want chips of one kind")
    parts = sorted(name for name in vendor if _is_part(name))
    if parts:
        raise BadPod(
            f"Pod {quoted(key)} asks for {parts[0]}, a part of a chip, which is not "
            "placed",
            "ask for whole chips",
        )
    if not counted:
        return 0, ""
    (resource,) = counted
    chips, rest = divmod(asks[resource], 1000)
    if rest or chips > MAX_CHIPS_ASKED:
        found = f"{asks[resource] / 1000:g}"
        raise BadPod(
            f"Pod {quoted(key)} asks for {found} {resource}, "
            f"want a whole number up to {MAX_CHIPS_ASKED}",
            "a node has at most 64 chips",
        )
    return chips, resource


def _is_part(name: str) -> bool:
    """Whether a resource is a part of a chip: ``npu-core``, ``Ascend910-2c``."""
    return name == "huawei.com/npu-core" or any(
        name.startswith(f"{whole}-") for whole in names.NPU_RESOURCES
    )


def chips_named(text: str) -> tuple[int, ...] | None:
    """The ids in a list of chips; None where it is no such list.

    >>> chips_named("Ascend910-0,Ascend910-5"), chips_named("Ascend910-x")
    ((0, 5), None)
    >>> chips_named("Ascend910-0000100"), chips_named("Ascend910-00009999999999")
    (None, None)
    >>> chips_named("")
    ()
    """
    if not text:
        return ()
    known = _chips_read.get(text)
    if known is None:
        known = (_chips_in(text),)
        _chips_read.put(text, known, len(text))
    return known[0]


def _chips_in(text: str) -> tuple[int, ...] | None:
    found = []
    for name in text.split(","):
        prefix, dash, number = name.strip().rpartition("-")
        chip = whole_number(number) if dash and prefix else None
        if chip is None or chip >= MAX_CHIPS:
            return None
        found.append(chip)
    return tuple(dict.fromkeys(found))


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
