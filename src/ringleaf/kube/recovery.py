"""What a job wants done when its pods are faulty, and what is wrong with them.

Labels and annotations stand on the PodGroup, which counts first, or on the pods. What
cannot be read means that nothing is done, as in the vendor's scheduler.

Source: the labels of the vendor's ``internal/rescheduling``. Where we differ: a retry
budget below 0 is none.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ringleaf.kube import names
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.pods import PodRecord, State
from ringleaf.model.fault import (
    NO_RECOVERY,
    Ailment,
    Cause,
    Mode,
    Recovery,
    SubHealth,
)

LABELS: Final = (
    names.FAULT_SCHEDULING,
    names.FAULT_RETRIES,
    names.POD_RESCHEDULING,
    names.PROCESS_RECOVER,
    names.SUB_HEALTHY,
    names.ELASTIC,
)
ANNOTATIONS: Final = (names.RECOVER_PATH, names.RECOVER_STRATEGY)
MAX_RETRIES: Final = 1_000_000
SEPARATE, WEAK = "Separate", "SubHealth"
"""Values of the label ``fault-type``."""


def recovery_of(
    lead: PodRecord | None, pods: Iterable[PodRecord], podgroup: PodGroup | None
) -> Recovery:
    """What is done when pods of a job are faulty; *lead*, if any, speaks for all."""
    said = _said(lead, podgroup)
    if not said:
        return NO_RECOVERY
    everyone = list(pods)
    path = said.get(names.RECOVER_PATH)
    if any(map(_stands_alone, everyone)):
        path = "pod"
    process = said.get(names.PROCESS_RECOVER) == "on"
    pods_only = process or said.get(names.POD_RESCHEDULING) == "on"
    if path in ("pod", "job"):
        pods_only = path == "pod"
    return Recovery(
        mode=_mode(said, everyone, podgroup),
        retries=_retries(said.get(names.FAULT_RETRIES, "")),
        pods_only=pods_only,
        process=process,
        escalates=path != "pod",
        sub_health=_strategy(said.get(names.SUB_HEALTHY)),
        master=None if path == "pod" else _master(everyone),
    )


def ailments_of(pods: Iterable[PodRecord], recovery: Recovery) -> tuple[Ailment, ...]:
    """What is wrong with the pods of a job by their own account, by their numbers."""
    found = []
    for pod in pods:
        cause = Cause.NODE if pod.is_stranded else _cause(pod, recovery)
        if cause is not None and pod.number is not None and pod.node:
            found.append(Ailment(pod.number, cause, pod.node))
    return tuple(sorted(found, key=lambda each: each.replica))


def _cause(pod: PodRecord, recovery: Recovery) -> Cause | None:
    """What is wrong with a pod; the first that applies."""
    signs = pod.signs
    failed = pod.state is State.FAILED and not pod.refused  # such one never ran
    crashed = failed or (signs.has_crashed and pod.holds)
    if crashed and recovery.retries:
        return Cause.POD
    if not pod.holds:
        return None
    if signs.fault_type == SEPARATE:
        return Cause.RELATION
    match recovery.sub_health:
        case SubHealth.IGNORE:
            return None
        case SubHealth.HOT_SWITCH:
            return Cause.SUB_HEALTH if signs.is_replaced else None
    return Cause.SUB_HEALTH if signs.fault_type == WEAK else None


def _said(lead: PodRecord | None, podgroup: PodGroup | None) -> dict[str, str]:
    """What is said of faults, on the PodGroup or else on its first pod."""
    found: dict[str, str] = {}
    sources: list[tuple[Mapping[str, str], tuple[str, ...]]] = []
    if lead is not None:
        sources += [(lead.labels, LABELS), (lead.annotations, ANNOTATIONS)]
    if podgroup is not None:
        meta = podgroup.metadata
        sources += [(meta.labels or {}, LABELS), (meta.annotations or {}, ANNOTATIONS)]
    for given, keys in sources:
        found |= {key: given[key] for key in keys if key in given}
    return found


def _mode(
    said: Mapping[str, str], pods: Iterable[PodRecord], podgroup: PodGroup | None
) -> Mode:
    """Who deletes pods; nobody where others see to it, or pods disagree."""
    if names.RECOVER_STRATEGY in said or said.get(names.ELASTIC) == "on":
        return Mode.OFF
    word = said.get(names.FAULT_SCHEDULING)
    labels = None if podgroup is None else podgroup.metadata.labels
    if names.FAULT_SCHEDULING not in (labels or {}):
        words = {pod.labels.get(names.FAULT_SCHEDULING, word) for pod in pods}
        if len(words) > 1:
            return Mode.OFF
    return Mode(word) if word in tuple(Mode) else Mode.OFF


def _retries(text: str) -> int:
    """How often pods may fail; what is no number is never.

    >>> _retries("3"), _retries("-1"), _retries("often"), _retries("")
    (3, 0, 0, 0)
    """
    whole = text.isdecimal() and text.isascii()
    return min(int(text[:9]), MAX_RETRIES) if whole else 0


def _strategy(said: str | None) -> SubHealth:
    return SubHealth(said) if said in tuple(SubHealth) else SubHealth.IGNORE


def _master(pods: Iterable[PodRecord]) -> int | None:
    """The pod without which no other goes on: the first, unless it is a worker."""
    first = next((pod for pod in pods if pod.number == 0), None)
    worker = first is not None and first.labels.get(names.REPLICA_TYPE) == "worker"
    return None if worker else 0


def _stands_alone(pod: PodRecord) -> bool:
    """Whether others of its job go on without it: a server, not a trainer."""
    labels = pod.labels
    return names.INFERENCE in labels or labels.get(names.APP) in names.SERVERS
