"""SWF, the Standard Workload Format: lines of 18 numbers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ringleaf.model.run_time import Origin
from ringleaf.simulator.trace_values import (
    ENDINGS,
    BadRow,
    Log,
    Row,
    chips_in,
    number_in,
)

SWF_FIELDS: Final = 18


def swf_rows(lines: Iterable[str], head: dict[str, str]) -> Iterator[tuple[int, Row]]:
    """The numbered rows; comments are added to *head*."""
    for number, line in enumerate(lines, 1):
        if line.startswith(";"):
            key, _colon, value = line[1:].partition(":")
            head.setdefault(key.strip(), value.strip())
        elif row := line.split():
            yield number, row


def swf_about(name: str, head: Mapping[str, str]) -> str:
    """The origin of a log, from its comments."""
    told = [head[key] for key in ("Computer", "Installation") if head.get(key)]
    thanks = [f"thanks to {head['Acknowledge']}"] if head.get("Acknowledge") else []
    whose = ", ".join(told) or name
    return "; ".join([whose, "Parallel Workloads Archive", *thanks])


def _named(field: str) -> str:
    return "" if field == "-1" else field


def take_swf(log: Log, row: Row) -> None:
    """One line of 18 numbers, -1 where something is not known."""
    if len(row) < SWF_FIELDS:
        raise BadRow(f"{len(row)} fields, want {SWF_FIELDS}")
    allocated, requested = (chips_in(f"field {n}", row[n - 1]) for n in (5, 8))
    queue = row[14]
    log.add(
        number_in("field 2", row[1]),
        number_in("field 4", row[3]),
        allocated if allocated > 0 else requested,
        queue=queue if queue != "-1" else "",
        status=row[10] if row[10] in ENDINGS else "",
        estimate=number_in("field 9", row[8]),
        origin=Origin(_named(row[11]), _named(row[13])),
    )
