"""The record of a repair as text, small enough for thousands of pods.

A job of 4,096 pods has as many placements, and a ConfigMap takes 1 MiB. So placements
are columns: what they have in common is named once and counted from 0, and columns of
numbers are written as runs.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2s
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ringleaf.model.fault import Cause, PodFault, Record, RestartScope
from ringleaf.model.placement import JobType, LeafAnnotation, LeafState, Placement
from ringleaf.policies.faults import FAULT_CAUSES

VERSION: Final = 1
MOST_BYTES: Final = 900 * 1024
"""Bytes of a record; a ConfigMap takes 1 MiB with all that it has."""
MARK: Final = 10
"""Letters of the mark of a uid."""
MOST_NUMBERS: Final = 1 << 17
"""Numbers of a column; no job is larger."""
MOST_CHIPS: Final = 64
"""Chips of a node."""
MOST_PODS: Final = 1_000_000
"""Numbers of pods and blocks are below it, as everywhere."""
AILS: Final = frozenset(FAULT_CAUSES)
"""What can be wrong with a pod."""
_RUN: Final = re.compile(r"([0-9]{1,18})(?:([-*])([0-9]{1,18}))?")
_Mark = tuple[str | None, int, bool]


class BadRecord(ValueError):  # noqa: N818 - it reads as what it is
    """A record that cannot be read, and why."""


class _Ails(Struct, omit_defaults=True):
    causes: list[str] = field(default_factory=list)
    pods: str = ""
    cause: str = ""
    node: str = ""


class _Places(Struct, omit_defaults=True):
    """Placements by columns; every number is one of a table, or a replica."""

    pods: str = ""
    node: str = ""
    chips: str = ""
    block: str = ""
    """One more than the block, 0 for none."""
    mark: str = ""
    role: str = ""
    all_chips: list[str] = field(default_factory=list)
    marks: list[_Mark | None] = field(default_factory=list)
    roles: list[str | None] = field(default_factory=list)


class _Written(Struct, omit_defaults=True):
    """A record as it is written."""

    v: int
    since: float
    by: str = ""
    """The scheduler whose job it is, by the name that pods have; empty for any."""
    reach: str = RestartScope.POD.value
    nodes: list[str] = field(default_factory=list)
    ails: _Ails | None = None
    at: _Places | None = None
    deleted: str = ""
    doomed: str = ""
    """Marks of the pods that are about to be deleted, one after the other."""
    deleted_at: float | None = None
    stuck_at: float | None = None
    retries_used: int = 0
    is_over: bool = False
    moved_for: str = ""


class _Table:
    """Things by their numbers, in the order in which they come."""

    def __init__(self) -> None:
        self.known: dict[object, int] = {}

    def number(self, thing: object) -> int:
        return self.known.setdefault(thing, len(self.known))


def write(
    record: Record, room: int = MOST_BYTES, doomed: Iterable[str] = (), by: str = ""
) -> str:
    """The text of *record*, and of the uids of pods that are *doomed*.

    If that has more than *room* bytes, then without the uids; or else without its
    placements.

    >>> write(Record(since=5.0, deleted=(0, 1, 2, 3, 7)))
    '{"v":1,"since":5.0,"deleted":"0-3,7"}'
    """
    marks = "".join(map(mark_of, doomed))
    text = _text(record, by, marks)
    if len(text.encode()) > room:
        text = _text(record, by)
    if len(text.encode()) > room:
        text = _text(replace(record, placements=()), by, marks)
    return text


def mark_of(uid: str) -> str:
    """What is written of a uid: enough to tell pods of one job apart."""
    return blake2s(uid.encode(), digest_size=MARK // 2).hexdigest()


def doomed_in(text: str) -> frozenset[str]:
    """The marks of the pods that were about to be deleted.

    >>> text = write(Record(since=5.0), doomed=["a", "b"])
    >>> doomed_in(text) == {mark_of("a"), mark_of("b")}
    True
    """
    marks = _written(text).doomed
    return frozenset(marks[i : i + MARK] for i in range(0, len(marks), MARK))


def writer_of(text: str) -> str:
    """The scheduler that has written *text*; empty where it does not say so.

    >>> writer_of(write(Record(since=5.0), by="volcano")), writer_of("?")
    ('volcano', '')
    """
    return _written(text).by


def _written(text: str) -> _Written:
    """What is written, as far as it can be read."""
    try:
        return msgspec.json.decode(text, type=_Written)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _Written(VERSION, 0.0)


def has_places(text: str) -> bool:
    """Whether *text*, which we wrote, says where pods were.

    >>> has_places(write(Record(5.0, placements=(Placement(0, "a", (0,)),))))
    True
    >>> has_places(write(Record(5.0)))
    False
    """
    return '"at":' in text


def read(text: str) -> Record:
    """The record that *text* is. Raises ``BadRecord``."""
    try:
        return _record(msgspec.json.decode(text, type=_Written))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadRecord(f"cannot be read: {str(error)[:200]}") from None
    except (ValueError, IndexError) as error:
        raise BadRecord(f"is inconsistent: {str(error)[:200]}") from None


def _text(record: Record, by: str, marks: str = "") -> str:
    nodes = _Table()
    at = _places(record.placements, nodes) if record.placements else None
    ails = _ails(record.pod_faults, nodes) if record.pod_faults else None
    written = _Written(
        v=VERSION,
        since=record.since,
        by=by,
        reach=record.scope.value,
        nodes=[str(name) for name in nodes.known],
        ails=ails,
        at=at,
        deleted=pack(record.deleted),
        doomed=marks,
        deleted_at=record.deleted_at,
        stuck_at=record.stuck_at,
        retries_used=record.retries_used,
        is_over=record.is_over,
        moved_for=record.moved_for,
    )
    return msgspec.json.encode(written).decode()


def _record(given: _Written) -> Record:
    if given.v != VERSION:
        raise ValueError(f"its version is {given.v}, want {VERSION}")
    return Record(
        since=given.since,
        scope=RestartScope(given.reach),
        pod_faults=() if given.ails is None else tuple(_ailments(given.ails, given)),
        placements=() if given.at is None else tuple(_placements(given.at, given)),
        deleted=_pods(given.deleted),
        deleted_at=given.deleted_at,
        stuck_at=given.stuck_at,
        retries_used=given.retries_used,
        is_over=given.is_over,
        moved_for=given.moved_for,
    )


def _ails(pod_faults: Sequence[PodFault], nodes: _Table) -> _Ails:
    causes = _Table()
    return _Ails(
        pods=pack(each.replica for each in pod_faults),
        cause=pack(causes.number(each.cause.value) for each in pod_faults),
        node=pack(nodes.number(each.node) for each in pod_faults),
        causes=[str(cause) for cause in causes.known],
    )


def _ailments(given: _Ails, record: _Written) -> Iterator[PodFault]:
    causes = [_cause(word) for word in given.causes]
    _pods(given.pods)
    columns = given.pods, given.cause, given.node
    for replica, cause, node in _rows(*columns):
        yield PodFault(replica, causes[cause], record.nodes[node])


def _cause(word: str) -> Cause:
    """What is wrong with a pod."""
    cause = Cause(word)
    if cause not in AILS:
        raise ValueError(f"cause {word!r}, want one of {', '.join(sorted(AILS))}")
    return cause


def _places(placements: Sequence[Placement], nodes: _Table) -> _Places:
    chips, marks, roles = _Table(), _Table(), _Table()
    found = _Places(
        pods=pack(each.replica for each in placements),
        node=pack(nodes.number(each.node) for each in placements),
        chips=pack(chips.number(pack(each.chips)) for each in placements),
        block=pack(0 if p.block is None else p.block + 1 for p in placements),
        mark=pack(marks.number(_plain(each.mark)) for each in placements),
        role=pack(roles.number(each.role) for each in placements),
    )
    found.all_chips = [str(each) for each in chips.known]
    found.marks = msgspec.convert(list(marks.known), list[_Mark | None])
    found.roles = msgspec.convert(list(roles.known), list[str | None])
    return found


def _placements(given: _Places, record: _Written) -> Iterator[Placement]:
    chips = [_chips(text) for text in given.all_chips]
    marks = [None if each is None else _mark(each) for each in given.marks]
    _pods(given.pods)
    _pods(given.block, MOST_PODS + 1)
    columns = given.pods, given.node, given.chips, given.block, given.mark, given.role
    for replica, node, own, block, mark, role in _rows(*columns):
        yield Placement(
            replica=replica,
            node=record.nodes[node],
            chips=chips[own],
            block=block - 1 if block else None,
            mark=marks[mark],
            role=given.roles[role],
        )


def _pods(text: str, below: int = MOST_PODS) -> tuple[int, ...]:
    """Numbers of pods or blocks, which any user may have written."""
    found = tuple(unpack(text))
    if any(number >= below for number in found):
        raise ValueError(f"pods or blocks {text[:40]!r}, want numbers below {below}")
    return found


def _chips(text: str) -> tuple[int, ...]:
    """The chips of a pod, which any user may have written; a node has no others."""
    found = tuple(unpack(text, MOST_CHIPS))
    if any(chip >= MOST_CHIPS for chip in found):
        raise ValueError(f"chips {text[:40]!r}, want numbers below {MOST_CHIPS}")
    return found


def _plain(mark: LeafAnnotation | None) -> _Mark | None:
    if mark is None:
        return None
    kind = None if mark.job_type is None else mark.job_type.value
    return kind, int(mark.state), mark.healthy


def _mark(given: _Mark) -> LeafAnnotation:
    kind, state, healthy = given
    return LeafAnnotation(
        None if kind is None else JobType(kind), LeafState(state), healthy
    )


def _rows(*columns: str) -> Iterator[tuple[int, ...]]:
    return zip(*(list(unpack(text)) for text in columns), strict=True)


def pack(numbers: Iterable[int]) -> str:
    """Numbers from 0 as runs: those that follow each other, and those that repeat.

    >>> pack([0, 1, 2, 3, 7, 7, 7, 7, 5]), pack([1, 2]), pack([])
    ('0-3,7*4,5', '1-2', '')
    """
    runs: list[tuple[int, int, int]] = []
    for number in numbers:
        if runs:
            first, step, n = runs[-1]
            if n == 1 and number - first in (0, 1):
                runs[-1] = first, number - first, 2
                continue
            if n > 1 and number == first + step * n:
                runs[-1] = first, step, n + 1
                continue
        runs.append((number, 0, 1))
    return ",".join(_run(*each) for each in runs)


def _run(first: int, step: int, n: int) -> str:
    if n == 1:
        return str(first)
    return f"{first}-{first + n - 1}" if step else f"{first}*{n}"


def unpack(text: str, most: int = MOST_NUMBERS) -> Iterator[int]:
    """The numbers of *text*, *most* of them. Raises ``ValueError``.

    >>> list(unpack("0-3,7*4,5"))
    [0, 1, 2, 3, 7, 7, 7, 7, 5]
    """
    n_numbers = 0
    for run in text.split(",") if text else ():
        found = _RUN.fullmatch(run)
        if found is None:
            raise ValueError(f"{run[:40]!r} is no run of numbers")
        first, kind, other = int(found[1]), found[2], int(found[3] or 0)
        length = {None: 1, "-": other - first + 1, "*": other}[kind]
        n_numbers += length
        if length < 1 or n_numbers > most:
            raise ValueError(f"the run {run[:40]!r} is too long, or has no numbers")
        yield from range(first, first + length) if kind == "-" else [first] * length
