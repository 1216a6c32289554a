"""What users say of a job: labels and annotations of its PodGroup or its pods."""

from collections.abc import Iterable, Mapping
from typing import Final

from ringleaf.kube import names
from ringleaf.kube.demand import BadPod
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.pod_state import JOB_ANNOTATIONS, JOB_LABELS, MAX_TEXT, PodState
from ringleaf.kube.products import TYPE, wanted_product
from ringleaf.kube.quantity import whole_number
from ringleaf.model.job_labels import Firmness, Schema, Strategy
from ringleaf.model.product import Product
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.topology import quoted
from ringleaf.policies.products import NO_NPU

MAX_MEMBERS: Final = 1_000_000


class JobContext:
    """What else there is to know of jobs: priorities by name, and the configuration."""

    def __init__(self) -> None:
        self.priorities: dict[str, int] = {}
        self.default_priority = 0
        self.has_defaults = False
        """Whether the configuration fills in labels that jobs do not have."""


def traits_of(pod: PodState, podgroup: PodGroup | None) -> dict[str, str]:
    """What is said of the job, on its PodGroup or else on its pods."""
    found: dict[str, str] = {}
    sources: list[tuple[Mapping[str, str], tuple[str, ...]]] = [
        (pod.labels, JOB_LABELS),
        (pod.annotations, JOB_ANNOTATIONS),
    ]
    if podgroup is not None:
        meta = podgroup.metadata
        sources += [
            (meta.labels or {}, JOB_LABELS),
            (meta.annotations or {}, JOB_ANNOTATIONS),
        ]
    for given, keys in sources:
        found |= {key: given[key][:MAX_TEXT] for key in keys if key in given}
    return found


def product_in(
    name: str, pods: Iterable[PodState], lead: PodState, traits: Mapping[str, str]
) -> Product:
    """The product that a job requests. Raises ``BadPod``."""
    if not lead.resource:
        if lead.requested:
            raise BadPod(lead.problem)  # parts of chips: its node says of which product
        return NO_NPU
    several = sorted({pod.resource for pod in pods if pod.resource})
    if len(several) > 1:
        told = " and ".join(several)
        raise BadPod(f"job {quoted(name)} asks for {told}, want chips of one kind")
    selected = {} if lead.accelerator is None else {TYPE: lead.accelerator}
    return wanted_product(traits, selected, lead.resource)


def strategy_in(traits: Mapping[str, str]) -> Strategy | None:
    """The strategy that the traits name, if they name one."""
    said = traits.get(names.STRATEGY)
    return Strategy(said) if said in tuple(Strategy) else None


def schema_in(name: str, traits: Mapping[str, str]) -> Schema | None:
    """The switch affinity of a job. Raises ``BadPod``."""
    said = traits.get(names.TOR_AFFINITY, "null")
    if said == "null":
        return None
    if said not in tuple(Schema):
        raise BadPod(
            f"job {quoted(name)}: label tor-affinity is {quoted(said)}, "
            "want large-model-schema, normal-schema or null"
        )
    return Schema(said)


def firmness_in(name: str, traits: Mapping[str, str]) -> Firmness | None:
    """Whether a job must stay in one SuperPoD. Raises ``BadPod``."""
    said = traits.get(names.SUPERPOD_AFFINITY)
    if said is None:
        return None
    if said not in tuple(Firmness):
        raise BadPod(
            f"job {quoted(name)}: label super-pod-affinity is {quoted(said)}, "
            "want hard or soft"
        )
    return Firmness(said)


def block_in(name: str, traits: Mapping[str, str]) -> int | None:
    """The chips of a block of a SuperPoD. Raises ``BadPod``."""
    said = traits.get(names.SP_BLOCK)
    if said is None:
        return None
    block = whole_number(said)
    if block is None or not 0 < block < MAX_MEMBERS:
        raise BadPod(
            f"job {quoted(name)}: annotation sp-block is {quoted(said)}, "
            "want a whole number of chips"
        )
    return block


def estimate_in(traits: Mapping[str, str]) -> float | None:
    """The running time that was estimated, in seconds."""
    seconds = whole_number(traits.get(names.ESTIMATE, ""))
    return float(seconds) if seconds else None


def queue_named(
    podgroup: PodGroup | None, traits: Mapping[str, str], lead: PodState | None
) -> str:
    """The queue; pods whose PodGroup is gone stay in theirs, if it is on them."""
    said = "" if podgroup is None else podgroup.spec.queue
    was = ""
    if podgroup is None and lead is not None:
        was = lead.annotations.get(names.JOB_QUEUE, "")[:MAX_TEXT]
    return said or traits.get(names.QUEUE_NAME) or was or DEFAULT_QUEUE


def queue_of(gang: GangState) -> str:
    """The queue of a gang, as its PodGroup says, or else its first pod."""
    lead = min(gang.pods.values(), key=lambda pod: pod.order, default=None)
    traits = {} if lead is None else traits_of(lead, gang.podgroup)
    return queue_named(gang.podgroup, traits, lead)


def priority_of(lead: PodState, podgroup: PodGroup | None, context: JobContext) -> int:
    """The priority of a job."""
    name = "" if podgroup is None else podgroup.spec.priority_class_name
    return context.priorities.get(name, lead.priority)
