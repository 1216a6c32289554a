"""Faults, pods and repairs in words."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from ringleaf.cli.output import shortened, so_many
from ringleaf.engine.engine import Engine
from ringleaf.model.fault import Cause, Fault, RestartScope
from ringleaf.model.mask import runs_of

Plain = dict[str, Any]

MAX_TOLD: Final = 8
"""Pods and nodes that are told by name."""


_NODE_PARTS: Final = {
    "": "not ready",
    "daemon": "its daemon reports it unhealthy",
    "switch": "its switch is unhealthy",
}
_PART_WORDS: Final[Mapping[Cause, str]] = {
    Cause.CHIP: "{} unhealthy",
    Cause.NETWORK: "network of {} unhealthy",
    Cause.SUB_HEALTH: "{} sub-healthy",
    Cause.POD: "{} failed",
    Cause.RELATION: "{} to be separated",
}
_REACH_WORDS: Final[Mapping[RestartScope, str]] = {
    RestartScope.POD: "faulty pods",
    RestartScope.BLOCK: "logical SuperPoDs",
    RestartScope.JOB: "the whole job",
}


def words_of(fault: Fault) -> str:
    """What is wrong, for people.

    >>> words_of(Fault("n1", Cause.CHIP, "chip 3")), words_of(Fault("n1", Cause.NODE))
    ('chip 3 unhealthy', 'not ready')
    """
    if fault.cause is Cause.NODE:
        return _NODE_PARTS.get(fault.part, fault.part)
    if fault.cause is Cause.REFUSAL:
        return "refuses pods"
    return _PART_WORDS[fault.cause].format(fault.part or "a part of it")


def numbers_words(numbers: Iterable[int]) -> str:
    """Numbers, those that follow each other together.

    >>> numbers_words([0, 1, 2, 5])
    '0-2, 5'
    """
    runs = runs_of(sorted(numbers))
    return ", ".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs
    )


def pod_words(numbers: list[int]) -> str:
    """Pods by their numbers.

    >>> pod_words([3]), pod_words([0, 1])
    ('pod 3', 'pods 0-1')
    """
    return f"pod{'s' if len(numbers) > 1 else ''} {numbers_words(numbers)}"


def reach_words(reach: str) -> str:
    """How much of a job is replaced, for people."""
    return _REACH_WORDS[RestartScope(reach)]


def repair_lines(repair: Plain, clock: Callable[[float], str]) -> Iterator[str]:
    """How far a repair is, what happened and what is held, in sentences."""
    if gains := repair.get("moved-for"):
        words = f"it is being moved so that job {gains!r} starts"
    else:
        words = f"it is being repaired ({reach_words(repair['reach'])})"
    if repair["deleted"]:
        words += f": {pod_words(repair['deleted'])} deleted"
    if repair["waits-for"]:
        words += f"; waits for {repair['waits-for']}"
    yield words
    if repair["ailments"]:
        faulty = shortened(list(map(ailment_words, repair["ailments"])), MAX_TOLD)
        yield f"faulty since {clock(repair['since'])}: {faulty}"
    if repair["held"]:
        until = "its pods are back"
        if repair["stage"] != "ending":
            until += f", until {clock(repair['hold-until'])} at the latest"
        where = shortened(repair["held-nodes"], MAX_TOLD)
        held = so_many(repair["held"], "place")
        yield f"{held} on {where} held for it until {until}"


def ailment_words(ailment: Plain) -> str:
    """A faulty pod, where it was and why.

    >>> ailment_words({"replica": 3, "cause": "NodeUnhealthy", "node": "b1"})
    'pod 3 on b1 (NodeUnhealthy)'
    """
    where = f" on {ailment['node']}" if ailment["node"] else ""
    return f"pod {ailment['replica']}{where} ({ailment['cause']})"


def summary_of(engine: Engine) -> Plain:
    """How many faults there are, and how many repairs."""
    nodes = {key.where for key in engine.fault_log.open if not key.is_of_pod}
    braked = sum(each.rate_limited for each in engine.repairs.values())
    return {
        "open": len(engine.fault_log.open),
        "nodes": len(nodes),
        "repairs": len(engine.repairs),
        "rate-limited": braked,
    }
