"""What an operator may set: ``settings``, ``configuration`` and ``queues``."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ringleaf.config.conf import NO_OTHERS, Conf, Others, RefusedConf, Remark
from ringleaf.config.reader import read_conf
from ringleaf.model.fault import FaultMode
from ringleaf.model.queue import Queue
from ringleaf.model.settings import RepairSettings, Settings, SwitchMode
from ringleaf.simulator.checks import good_name
from ringleaf.simulator.demands import resources_of
from ringleaf.simulator.fault import written
from ringleaf.simulator.format import QueueEntry, SettingsEntry
from ringleaf.simulator.source import BadInput, brief, documents
from ringleaf.simulator.wanted import WANTED

REPAIR_SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "grace_over_time": "grace_s",
        "superpod_escalation_seconds": "block_after_s",
        "job_escalation_seconds": "job_after_s",
        "repair_hold_seconds": "hold_s",
        "fault_brake_percent": "brake_percent",
        "fault_brake_seconds": "brake_s",
        "run_within_seconds": "run_within_s",
        "set_aside_seconds": "aside_s",
    }
)
"""Field of the entry ``settings`` -> field of ``RepairSettings``."""

MAX_HINT: Final = 120
"""Characters of a hint of a configuration; some name everything that may be said."""

_T = TypeVar("_T")


def settings_of(
    path: str, entry: SettingsEntry, base: Settings, warnings: list[str]
) -> Settings:
    """*base* with what *entry* says; an entry without a word changes nothing."""
    size = _or(entry.super_pod_size, base.superpod_size)
    reserve = _or(entry.reserve_nodes, base.reserve_nodes)
    if reserve >= size:
        kept = 2 if size > 2 else 0  # noqa: PLR2004 - the vendor's fallback
        if kept != reserve:
            warnings.append(
                f"{path}.reserve-nodes is {reserve}, not below super-pod-size {size}: "
                f"{kept} is used"
            )
        reserve = kept
    return Settings(
        job_requests=_or(entry.job_requests, base.job_requests),
        switch_mode=_mode(path, entry, base.switch_mode),
        shared_leaves=_or(entry.shared_tor_num, base.shared_leaves),
        nodes_per_leaf=_or(entry.nodes_per_leaf, base.nodes_per_leaf),
        leaf_choice=_or(entry.leaf_choice, base.leaf_choice),
        share_common_leaves=_or(entry.share_common_leaves, base.share_common_leaves),
        superpod_size=size,
        reserve_nodes=reserve,
        repairs=_repairs(entry, base.repairs),
        default_tor_affinity=_or(entry.default_tor_affinity, base.default_tor_affinity),
        default_fault_scheduling=FaultMode(
            _or(entry.default_fault_scheduling, base.default_fault_scheduling)
        ),
    )


def _repairs(entry: SettingsEntry, base: RepairSettings) -> RepairSettings:
    given = {own: getattr(entry, key) for key, own in REPAIR_SETTINGS.items()}
    return replace(base, **{k: v for k, v in given.items() if v is not UNSET})


def _mode(path: str, entry: SettingsEntry, base: SwitchMode) -> SwitchMode:
    version, level = entry.nslb_version, entry.tor_level
    if version not in (UNSET, "1.0", "2.0", 1.0, 2.0):
        raise BadInput(
            f"{path}.nslb-version is {brief(version)}, want {WANTED['nslb-version']}"
        )
    if level == "single_layer":
        return SwitchMode.SINGLE_LAYER
    if version in ("2.0", 2.0):
        return SwitchMode.SPINE_LEAF_2
    single = base is SwitchMode.SINGLE_LAYER
    if version is not UNSET or (single and level is not UNSET):
        return SwitchMode.SPINE_LEAF_1
    return base


def _or(given: _T | UnsetType, otherwise: _T) -> _T:
    return otherwise if isinstance(given, UnsetType) else given


def conf_of(
    path: str,
    given: Mapping[str, object] | str,
    settings: Sequence[tuple[str, SettingsEntry]],
    warnings: list[str],
    others: Others = NO_OTHERS,
) -> Conf:
    """The configuration, with what *settings* say instead of its init-params.

    It may name plugins of *others*.
    """
    plain = _parsed(path, given) if isinstance(given, str) else given
    conf = read_conf(plain, others)
    if isinstance(conf, RefusedConf):
        first, more = conf.problems[0], len(conf.problems) - 1
        also = f" (and {more} more: ringleaf check-conf lists them)" if more else ""
        hint = first.hint if first.hint is None else first.hint[:MAX_HINT]
        raise BadInput(f"{_placed(path, first)}{also}", hint)
    warnings += _remark_lines(path, conf.warnings)
    found = conf.settings
    for where, entry in settings:
        found = settings_of(where, entry, found, warnings)
    return replace(conf, settings=found)


def _placed(path: str, remark: Remark) -> str:
    """A remark with its place in the document, each once."""
    places = [written(tuple(map(_key, remark.path[:n]))) for n in (None, -1)]
    if any(place and remark.text.startswith(place) for place in places):
        return f"{path}.{remark.text}"
    return (
        f"{path}.{places[0]}: {remark.text}" if places[0] else f"{path}: {remark.text}"
    )


def _key(step: object) -> str | int:
    """A step of a path; a file may have any value as a key."""
    return step if isinstance(step, int) and step is not True else str(step)


def _remark_lines(path: str, remarks: Iterable[Remark]) -> list[str]:
    return [f"{path}: {remark}" for remark in remarks]


def _parsed(path: str, text: str) -> object:
    """The plain values of a configuration that is given as text."""
    if not text.strip():
        raise BadInput(f"{path} is {brief(text)}, want {WANTED['configuration']}")
    try:
        found = documents(text.encode())
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    if len(found) != 1:
        raise BadInput(f"{path} has {len(found)} documents, want one")
    return found[0]


def queues_of(entries: Iterable[QueueEntry]) -> tuple[Queue, ...]:
    """The queues, each name once."""
    found: dict[str, Queue] = {}
    for i, entry in enumerate(entries):
        path = f"queues[{i}]"
        queue = queue_of(path, entry)
        if queue.name in found:
            raise BadInput(
                f"{path}.name is {brief(queue.name)}, already the name of a queue"
            )
        found[queue.name] = queue
    return tuple(found.values())


def queue_of(path: str, entry: QueueEntry) -> Queue:
    """One queue."""
    return Queue(
        name=good_name(f"{path}.name", entry.name),
        weight=entry.weight,
        capability=resources_of(path, entry.capability, "capability"),
        guarantee=resources_of(path, entry.guarantee, "guarantee"),
        reclaimable=entry.reclaimable,
        priority=entry.priority,
        is_open=entry.state == "open",
        hierarchy=entry.hierarchy,
        hierarchy_weights=entry.hierarchy_weights,
    )
