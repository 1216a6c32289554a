"""What a job wants done when its pods are faulty, and what is wrong with them.

Labels and annotations stand on the PodGroup, which counts first, or on the pods. What
cannot be read counts as if it were not there, as in the vendor's scheduler, and is
reported.

Source: the labels of the vendor's ``internal/rescheduling``. Where we differ: a retry
budget below 0 is none.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ringleaf.config.conf import Conf
from ringleaf.kube import names
from ringleaf.kube.objects import PodGroup
from ringleaf.kube.pod_state import PodPhase, PodState
from ringleaf.model.fault import (
    NO_RECOVERY,
    Cause,
    FaultMode,
    PodFault,
    Recovery,
    SubHealth,
)
from ringleaf.model.job import Job
from ringleaf.model.spelling import did_you_mean
from ringleaf.model.topology import quoted
from ringleaf.policies.defaults import with_defaults

LABELS: Final = (
    names.FAULT_SCHEDULING,
    names.FAULT_RETRIES,
    names.POD_RESCHEDULING,
    names.PROCESS_RECOVER,
    names.SUB_HEALTHY,
    names.ELASTIC,
)
ANNOTATIONS: Final = (names.RECOVER_PATH, names.RECOVER_STRATEGY)
_SAID: Final = frozenset({*LABELS, *ANNOTATIONS})
MAX_RETRIES: Final = 1_000_000
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    names.FAULT_SCHEDULING: tuple(each.value for each in FaultMode),
    names.POD_RESCHEDULING: ("on", "off"),
    names.PROCESS_RECOVER: ("on", "pause", "off"),
    names.SUB_HEALTHY: tuple(each.value for each in SubHealth),
    names.RECOVER_PATH: ("pod", "pod,job", "job"),
}
"""What may be said."""
IN_VAIN: Final[Mapping[str, str]] = {
    names.FAULT_SCHEDULING: "its faulty pods are not replaced",
    names.FAULT_RETRIES: "failed pods are not restarted",
    names.POD_RESCHEDULING: "it counts as 'off'",
    names.PROCESS_RECOVER: "it counts as 'off'",
    names.SUB_HEALTHY: "it counts as 'ignore'",
    names.RECOVER_PATH: "it is ignored",
}
"""What follows from something else."""
LIKE: Final = 0.7
"""How alike a word must be to one that means something to be taken for it."""
MOST_FOUND: Final = 60
"""Characters that are shown of a value that a user wrote."""
SEPARATE, WEAK = "Separate", "SubHealth"
"""Values of the label ``fault-type``."""


def recovery_of(
    lead: PodState | None, pods: Iterable[PodState], podgroup: PodGroup | None
) -> Recovery:
    """What is done when pods of a job are faulty; *lead*, if any, speaks for all."""
    said = _said(lead, podgroup)
    if not said:
        return NO_RECOVERY
    listed = list(pods)
    path = said.get(names.RECOVER_PATH)
    if any(map(_stands_alone, listed)):
        path = "pod"
    process = said.get(names.PROCESS_RECOVER) == "on"
    pods_only = process or said.get(names.POD_RESCHEDULING) == "on"
    if path in ("pod", "job"):
        pods_only = path == "pod"
    return Recovery(
        mode=_mode(said, listed, podgroup),
        retries=_retries(said.get(names.FAULT_RETRIES, "")),
        pods_only=pods_only,
        process=process,
        escalates=path != "pod",
        sub_health=_strategy(said.get(names.SUB_HEALTHY)),
        master=None if path == "pod" else _master(listed),
    )


def fault_mode(job: Job, conf: Conf) -> FaultMode:
    """How pods of a faulty job are deleted, by its label or the configuration."""
    return with_defaults(job, conf.settings).recovery.mode


def sees_to_faults(lead: PodState | None, podgroup: PodGroup | None) -> bool:
    """Whether a job says what is done about faults, or that others see to it."""
    said = _said(lead, podgroup)
    others = names.RECOVER_STRATEGY in said or said.get(names.ELASTIC) == "on"
    return others or names.FAULT_SCHEDULING in said


def misread(podgroup: PodGroup) -> str:
    """What a PodGroup says of faults that means nothing, for people; empty if none."""
    said = _said(None, podgroup)
    return "; ".join(filter(None, (_flaw(key, said[key]) for key in said)))


def misread_of(
    lead: PodState, pods: Iterable[PodState], podgroup: PodGroup | None
) -> str:
    """The same of what pods say, as far as their PodGroup says nothing of it."""
    own = {} if podgroup is None else _said(None, podgroup)
    said = _said(lead, None)
    left = {key: text for key, text in said.items() if key not in own}
    of_pods = podgroup is not None
    told = [_flaw(key, text, of_pods=of_pods) for key, text in left.items()]
    if (said or own) and names.FAULT_SCHEDULING not in own:
        told += _discord(said, pods)
    return "; ".join(filter(None, told))


def _flaw(key: str, text: str, *, of_pods: bool = False) -> str:
    """What is wrong with one value, what is wanted and what follows, if it is wrong.

    >>> _flaw("fault-retry-times", "3"), _flaw("elastic-scheduling", "maybe")
    ('', '')
    >>> _flaw("pod-rescheduling", "yes")
    "label pod-rescheduling is 'yes', want on or off; it counts as 'off'"
    """
    wanted, hint = _wanted(key, text)
    if not wanted:
        return ""
    kind = "annotation" if key in ANNOTATIONS else "label"
    found = quoted(text[:MOST_FOUND])
    where = f"{key} of its pods" if of_pods else key
    told = f"{kind} {where} is {found}, want {wanted}; {IN_VAIN[key]}"
    return f"{told}; hint: {hint}" if hint else told


def _wanted(key: str, text: str) -> tuple[str, str]:
    """What is wanted instead of a value, and a hint; nothing where it is good."""
    if key == names.FAULT_RETRIES:
        return ("" if _is_number(text) else "a whole number"), ""
    words = WORDS.get(key, (text,))
    if text in words:
        return "", ""
    *most, last = words
    return f"{', '.join(most)} or {last}", did_you_mean(text, words, LIKE)


def _discord(said: Mapping[str, str], pods: Iterable[PodState]) -> Iterator[str]:
    """A message if the pods' ``fault-scheduling`` labels differ."""
    key, words = names.FAULT_SCHEDULING, _words(said, pods)
    if len(words) > 1:
        listed = sorted("" if word is None else word for word in words)
        found = " and ".join(quoted(word[:MOST_FOUND]) for word in listed[:3])
        yield f"label {key} of its pods is {found}, want one for all; {IN_VAIN[key]}"


def _words(said: Mapping[str, str], pods: Iterable[PodState]) -> set[str | None]:
    """The pods' ``fault-scheduling`` labels; *said* is for pods without one."""
    key = names.FAULT_SCHEDULING
    word = said.get(key)
    return {pod.labels.get(key, word) for pod in pods}


def ailments_of(pods: Iterable[PodState], recovery: Recovery) -> tuple[PodFault, ...]:
    """What is wrong with the pods of a job by their own account, by their numbers."""
    found = []
    for pod in pods:
        cause = Cause.NODE if pod.is_stranded else _cause(pod, recovery)
        if cause is not None and pod.number is not None and pod.node:
            found.append(PodFault(pod.number, cause, pod.node))
    return tuple(sorted(found, key=lambda each: each.replica))


def _cause(pod: PodState, recovery: Recovery) -> Cause | None:
    """What is wrong with a pod; the first that applies."""
    health = pod.health
    failed = pod.phase is PodPhase.FAILED and not pod.refused  # such one never ran
    crashed = failed or (health.has_crashed and pod.holds)
    if crashed and recovery.retries:
        return Cause.POD
    if not pod.holds:
        return None
    if health.fault_type == SEPARATE:
        return Cause.RELATION
    match recovery.sub_health:
        case SubHealth.IGNORE:
            return None
        case SubHealth.HOT_SWITCH:
            return Cause.SUB_HEALTH if health.is_replaced else None
    return Cause.SUB_HEALTH if health.fault_type == WEAK else None


def words_of(pod: PodState) -> dict[str, str]:
    """What a pod says of faults."""
    return _said(pod, None)


def _said(lead: PodState | None, podgroup: PodGroup | None) -> dict[str, str]:
    """What is said of faults, on the PodGroup or else on its first pod."""
    found: dict[str, str] = {}
    sources: list[tuple[Mapping[str, str], tuple[str, ...]]] = []
    if lead is not None:
        sources += [(lead.labels, LABELS), (lead.annotations, ANNOTATIONS)]
    if podgroup is not None:
        meta = podgroup.metadata
        sources += [(meta.labels or {}, LABELS), (meta.annotations or {}, ANNOTATIONS)]
    for given, keys in sources:
        if not _SAID.isdisjoint(given):
            found |= {key: given[key] for key in keys if key in given}
    return found


def _mode(
    said: Mapping[str, str], pods: Iterable[PodState], podgroup: PodGroup | None
) -> FaultMode:
    """How pods are deleted; ``OFF`` if another platform does it, or pods disagree."""
    if names.RECOVER_STRATEGY in said or said.get(names.ELASTIC) == "on":
        return FaultMode.OFF
    word = said.get(names.FAULT_SCHEDULING)
    labels = None if podgroup is None else podgroup.metadata.labels
    if names.FAULT_SCHEDULING not in (labels or {}) and len(_words(said, pods)) > 1:
        return FaultMode.OFF
    return FaultMode(word) if word in tuple(FaultMode) else FaultMode.OFF


def _retries(text: str) -> int:
    """How often pods may fail; what is no number is never.

    >>> _retries("3"), _retries("-1"), _retries("often"), _retries("")
    (3, 0, 0, 0)
    """
    return min(int(text[:9]), MAX_RETRIES) if _is_number(text) else 0


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii()


def _strategy(said: str | None) -> SubHealth:
    return SubHealth(said) if said in tuple(SubHealth) else SubHealth.IGNORE


def _master(pods: Iterable[PodState]) -> int | None:
    """The pod without which no other goes on: the first, unless it is a worker."""
    first = next((pod for pod in pods if pod.number == 0), None)
    worker = first is not None and first.labels.get(names.REPLICA_TYPE) == "worker"
    return None if worker else 0


def _stands_alone(pod: PodState) -> bool:
    """Whether others of its job go on without it: a server, not a trainer."""
    labels = pod.labels
    return names.INFERENCE in labels or labels.get(names.APP) in names.SERVERS
