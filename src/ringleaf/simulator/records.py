"""What a scheduler wrote down for the next one: entries of the format, and back.

The fields of an entry are those of its struct, some under another name. A value that
says nothing is left out; a time is written wherever there is one.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from ringleaf.framework.idle_budget import EndedReservation
from ringleaf.framework.run_times import RunSeries
from ringleaf.model.fault import Fault, PodFault, Record, RestartScope
from ringleaf.model.placement import Placement
from ringleaf.simulator.format import (
    AilmentEntry,
    EndedReservationEntry,
    FaultEntry,
    RecordEntry,
    RunSeriesEntry,
)
from ringleaf.simulator.plain import Plain, whole
from ringleaf.simulator.running_jobs import BLOCK, HEALTH, STATE

_STRUCTS: Final[Mapping[type[Struct], tuple[type[Struct], Mapping[str, str]]]] = (
    MappingProxyType(
        {
            AilmentEntry: (PodFault, {}),
            EndedReservationEntry: (EndedReservation, {"chip_seconds": "kept_idle"}),
            FaultEntry: (Fault, {}),
            RecordEntry: (Record, {"reach": "scope", "ailments": "pod_faults"}),
            RunSeriesEntry: (RunSeries, {}),
        }
    )
)
"""Entry -> its struct, and the fields that have another name there."""

_ENTRIES: Final = {kind: (entry, names) for entry, (kind, names) in _STRUCTS.items()}
_NOTHING: Final = ("", 0, (), RestartScope.POD)


def struct_of(entry: Struct, **given: object) -> Any:  # noqa: ANN401 - of its kind
    """The struct that an *entry* writes down; *given* are fields that are read already.

    >>> from ringleaf.model.fault import Cause
    >>> struct_of(AilmentEntry(2, Cause.CHIP, "n1"))
    PodFault(replica=2, cause=<Cause.CHIP: 'CardUnhealthy'>, node='n1')
    """
    kind, names = _STRUCTS[type(entry)]
    found = {
        names.get(name, name): _read(getattr(entry, name))
        for name in entry.__struct_fields__
    }
    return kind(**{**found, **given})


def _read(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, list):
        return tuple(map(_read, value))
    return struct_of(value) if type(value) in _STRUCTS else value


def plain_of(value: Struct) -> Plain:
    """A struct as the entry that writes it down."""
    entry, names = _ENTRIES[type(value)]
    found = {}
    for field in fields(entry):
        own = getattr(value, names.get(field.name, field.name))
        if field.required or _says_something(own, field.default):
            found[field.encode_name] = _written(own)
    return found


def _says_something(value: object, default: object) -> bool:
    is_time = default is None or isinstance(default, float)
    return value is not None and (is_time or value not in _NOTHING)


def _written(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Placement):
        return placement(value)
    if isinstance(value, Struct):
        return plain_of(value)
    if isinstance(value, tuple):
        return [*map(_written, value)]
    if isinstance(value, StrEnum):
        return str(value)
    return whole(value) if isinstance(value, float) else value


def placement(value: Placement) -> Plain:
    """An entry of ``placements``."""
    said = {} if value.block is None else {BLOCK: str(value.block)}
    if value.mark is not None:
        said[STATE] = str(int(value.mark.state))
        said[HEALTH] = "0" if value.mark.healthy else "1"
    where: Plain = {
        "replica": value.replica,
        "node": value.node,
        "chips": [*value.chips],
    }
    return where | ({"annotations": said} if said else {})
