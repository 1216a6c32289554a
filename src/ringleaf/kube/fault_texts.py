"""What is kept of faults, as the ConfigMaps have it: as much as there is room for."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from ringleaf.kube.node_info import NodeInfo
from ringleaf.model.fault import Cause, Deletion, Fault
from ringleaf.model.mask import chips_of

NODES, RETRIES, LIVES = "fault-node", "remain-retry-times", "ringleaf-faults"
RECORDS: Final = "recent-reschedule-records"
MOST_RECORDS: Final = 10
"""Records of a job; older ones are dropped."""
MOST_BYTES: Final = 950 * 1024
"""Bytes of all that a ConfigMap has."""
MOST_DELETIONS: Final = 100
"""Deletions that are named; earlier ones are one."""
MOST_LIVES: Final = 2000
"""Faults whose lives are kept; those that ended first are dropped first."""


class RescheduleReason(Struct):
    """Why a pod made its job be rescheduled."""

    reason: str = field(default="", name="RescheduleReason")
    pod: str = field(default="", name="PodName")
    node: str = field(default="", name="NodeName")
    rank: str = field(default="", name="NodeRankIndex")


class Rescheduling(Struct):
    """One time that a job was rescheduled."""

    logged: str = field(default="", name="LogFileFormatTime")
    at: int = field(default=0, name="RescheduleTimeStamp")
    reasons: list[RescheduleReason] | None = field(default=None, name="ReasonOfTask")


class History(Struct):
    """The last times that a job was rescheduled, the newest first."""

    job: str = field(default="", name="JobID")
    times: int = field(default=0, name="TotalRescheduleTimes")
    records: list[Rescheduling] | None = field(default=None, name="RescheduleRecords")


class RetriesEntry(Struct):
    """How often the pods of a job may still fail."""

    uid: str = field(default="", name="UUID")
    times: int = field(default=0, name="Times")


def fault_node(facts: NodeInfo) -> dict[str, Any] | None:
    """What is written of a node with faults; None of one without."""
    node = facts.node
    prefix = node.product.chip_prefix
    unhealthy = [f"{prefix}-{chip}" for chip in chips_of(node.unhealthy)]
    network = [f"{prefix}-{chip}" for chip in chips_of(node.network_faulty)]
    if not (node.down or unhealthy or network or facts.faults):
        return None
    state = "Healthy"
    if node.down:
        state = Cause.NODE.value
    elif unhealthy:
        state = Cause.CHIP.value
    elif network:
        state = Cause.NETWORK.value
    return {
        "FaultDeviceList": list(facts.faults),
        "NodeName": node.name,
        "UnhealthyNPU": unhealthy,
        "NetworkUnhealthyNPU": network,
        "NodeHealthState": state,
    }


def latest_faults(faults: Iterable[Fault]) -> list[Fault]:
    """The faults that are kept: all that last, and of the others the last ones."""
    by_end = sorted(
        faults,
        key=lambda each: (each.recovered is None, each.recovered or 0.0, each.seen),
    )
    return by_end[-MOST_LIVES:]


def last_deletions(deletions: Iterable[Deletion]) -> list[Deletion]:
    """What was deleted; of many, the last ones, and before them the sum of the rest.

    >>> many = [Deletion(float(n), "j", 2) for n in range(102)]
    >>> last_deletions(many)[:2], len(last_deletions(many))
    ([Deletion(at=2.0, job='', pods=6), Deletion(at=3.0, job='j', pods=2)], 100)
    """
    found = [*deletions]
    if len(found) <= MOST_DELETIONS:
        return found
    first, last = found[: 1 - MOST_DELETIONS], found[1 - MOST_DELETIONS :]
    return [Deletion(first[-1].at, "", sum(each.pods for each in first)), *last]


def fitted(
    nodes: list[dict[str, Any]], left: dict[str, RetriesEntry], lives: list[Fault]
) -> dict[str, str]:
    """What is kept of faults, as much of it as a ConfigMap has room for.

    First the details of faults are left out, then what is needed least, which stands in
    front: lives that are over, jobs that have not failed yet.
    """
    least: list[list[Any]] = [lives, list(left.items()), nodes]
    while True:
        lives, left, nodes = least[0], dict(least[1]), least[2]
        data = {
            LIVES: json_text(lives),
            RETRIES: json_text(left),
            NODES: json_text(nodes),
        }
        sizes = [len(text.encode()) for text in data.values()]
        if sum(sizes) <= MOST_BYTES:
            return data
        if any(node["FaultDeviceList"] for node in nodes):
            least[2] = [node | {"FaultDeviceList": []} for node in nodes]
        else:
            most = sizes.index(max(sizes))
            least[most] = least[most][len(least[most]) // 4 + 1 :]


def joined(found: History | None, own: History) -> History:
    """What was written of a job, and before it what we know ourselves."""
    if found is None:
        return own
    records = [*(own.records or ()), *(found.records or ())][:MOST_RECORDS]
    return History(own.job, own.times + found.times, records)


def bounded(histories: dict[str, History]) -> str:
    """The text of *histories*, without the oldest records where it is too long."""
    text = json_text(histories)
    while len(text.encode()) > MOST_BYTES:
        longest = max(len(each.records or ()) for each in histories.values())
        if longest > 1:
            for each in histories.values():
                each.records = (each.records or [])[: longest - 1]
        else:
            oldest = sorted(histories, key=lambda job: _newest(histories[job]))
            for job in oldest[: max(1, len(oldest) // MOST_RECORDS)]:
                del histories[job]
        text = json_text(histories)
    return text


def _newest(history: History) -> int:
    return history.records[0].at if history.records else 0


def json_text(things: Any) -> str:  # noqa: ANN401 - whatever JSON has
    """JSON of *things*; nothing where there are none, as the vendor has it."""
    return msgspec.json.encode(things).decode() if things else ""


def read_json(text: str, kind: Any) -> Any:  # noqa: ANN401 - of that kind
    """What others wrote; None where it cannot be read."""
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
