"""Values of a trace: times, numbers of chips, dates."""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from math import ceil, nan
from typing import Final

from msgspec import Struct, field

from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.run_time import NO_ORIGIN, Origin
from ringleaf.simulator.source import brief

MAX_RUN_S: Final = 300_000_000
"""Ten years: chip-seconds of many jobs together stay whole numbers of 64 bits."""
MOST_TOLD: Final = 3
"""Things of a sort that are told one by one."""
USUAL_KIND: Final = "job"


Row = list[str]

ENDINGS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        ("completed", "complete", "done", "pass", "success", "succeeded", "1"), 0
    ),
    **dict.fromkeys(("failed", "fail", "error", "node_fail", "timeout", "0"), 1),
    **dict.fromkeys(("cancelled", "canceled", "cancel", "killed", "5"), 2),
}
"""How logs say that jobs end -> done, failed, cancelled."""


def _reals() -> "array[float]":
    return array("d")


def _whole_numbers() -> "array[int]":
    return array("q")


class Log(Struct, eq=False):
    """The rows of a trace, in columns.

    Args:
        idle: Rows without chips or running time.
        unknown: How jobs end of which it is not known what it means.
        bad: Rows that could not be read: the first few.

    """

    submit: "array[float]" = field(default_factory=_reals)
    estimate: "array[float]" = field(default_factory=_reals)
    duration: "array[int]" = field(default_factory=_whole_numbers)
    chips: "array[int]" = field(default_factory=_whole_numbers)
    ending: "array[int]" = field(default_factory=_whole_numbers)
    kind: "array[int]" = field(default_factory=_whole_numbers)
    queue: "array[int]" = field(default_factory=_whole_numbers)
    origin: "array[int]" = field(default_factory=_whole_numbers)
    kinds: dict[str, int] = field(default_factory=dict)
    queues: dict[str, int] = field(default_factory=dict)
    origins: dict[Origin, int] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    idle: int = 0
    n_bad: int = 0

    def add(
        self,
        submit: float,
        duration: float,
        chips: int,
        *,
        queue: str = "",
        status: str = "",
        kind: str = "",
        estimate: float = 0.0,
        origin: Origin = NO_ORIGIN,
    ) -> None:
        """One more job, unless there is nothing to run."""
        if chips <= 0 or duration <= 0:
            self.idle += 1
            return
        if duration > MAX_RUN_S:
            raise BadRow(f"it ran {duration:g} seconds, want at most {MAX_RUN_S}")
        ending = ENDINGS.get(status.lower(), 0) if status else 0
        if status and status.lower() not in ENDINGS:
            self.unknown[status] += 1
        queue, kind = queue or DEFAULT_QUEUE, kind or USUAL_KIND
        self.submit.append(submit)
        self.duration.append(ceil(duration))
        self.chips.append(chips)
        self.ending.append(ending)
        self.kind.append(self.kinds.setdefault(kind, len(self.kinds)))
        self.queue.append(self.queues.setdefault(queue, len(self.queues)))
        self.estimate.append(max(0.0, estimate))
        self.origin.append(self.origins.setdefault(origin, len(self.origins)))

    @property
    def notes(self) -> Iterator[str]:
        """What was made of rows that are not as usual."""
        if self.n_bad:
            more = "" if self.n_bad == 1 else f" (and {self.n_bad - 1} more)"
            yield f"left out, cannot be read: {self.bad[0]}{more}"
        if self.idle:
            rows = "1 row has" if self.idle == 1 else f"{self.idle} rows have"
            yield f"{rows} no chips or no running time: left out"
        for status, n in sorted(self.unknown.items())[:MOST_TOLD]:
            rows = "1 row has" if n == 1 else f"{n} rows have"
            yield f"{rows} status {brief(status)}, which is unknown: taken as done"


MAX_CHIPS: Final = 1_000_000
MAX_SECONDS: Final = 1e12


class TraceColumns(Struct, frozen=True):
    """Which column of a CSV file says what.

    Args:
        submit: When a job came: seconds, or a date and time.
        duration: Seconds that it ran.
        chips: Chips, or whatever the file counts.
        queue: Its queue.
        status: How it ended.
        kind: What sort of job it is.
        estimate: Seconds that it was expected to run at most.
        begin: When it began to run, in files without ``duration``.
        end: When it ended, in files without ``duration``.
        user: Its owner.
        program: Its name; numbers at its end do not count.
        unit: Of moments where they are numbers: s, ms, us or min.
        name: What the mapping is called.
        about: The owner of the log, its licence, the authors to credit.

    """

    submit: str
    duration: str = ""
    chips: str = ""
    queue: str = ""
    status: str = ""
    kind: str = ""
    estimate: str = ""
    begin: str = ""
    end: str = ""
    user: str = ""
    program: str = ""
    unit: str = "s"
    name: str = ""
    about: str = ""

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns without which nothing is to be had."""
        named = self.submit, self.duration, self.chips, self.queue, self.begin, self.end
        return tuple(filter(None, named))


_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_WITH_UNIT: Final = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?) ?({'|'.join(_SECONDS)})")


class BadRow(Exception):  # noqa: N818 - it reads as what happened
    """A row that cannot be read: what was found, what is wanted, and what helps."""

    def __init__(self, line: str, hint: str | None = None) -> None:
        super().__init__(line)
        self.hint = hint


def seconds_between(mapping: TraceColumns, begin: str, end: str, unit: float) -> float:
    """Seconds from its beginning to its end; nothing where it did not run."""
    if not begin or not end:
        return 0.0
    return moment_in(mapping.end, end, unit) - moment_in(mapping.begin, begin, unit)


def number_in(name: str, text: str) -> float:
    """A number of seconds; NaN where there is none."""
    try:
        value = float(text or 0)
    except ValueError:
        value = nan
    if not -MAX_SECONDS <= value <= MAX_SECONDS:
        raise BadRow(
            f"{name} is {brief(text)}, want a number of seconds up to {MAX_SECONDS:g}",
            _in_seconds(text),
        )
    return value


def _in_seconds(text: str) -> str | None:
    """A hint: the seconds of a number with a unit.

    >>> _in_seconds("1h"), _in_seconds("90 s"), _in_seconds("soon")
    ('3600 for 1h', '90 for 90 s', None)
    """
    found = _WITH_UNIT.fullmatch(text.strip())
    if found is None:
        return None
    return f"{float(found[1]) * _SECONDS[found[2]]:.15g} for {text.strip()}"


def chips_in(name: str, text: str) -> int:
    """A number of chips; a part of one counts as one."""
    try:
        value = ceil(float(text or 0))
    except (ValueError, OverflowError):
        value = MAX_CHIPS + 1
    if value > MAX_CHIPS:
        raise BadRow(f"{name} is {brief(text)}, want a number up to {MAX_CHIPS}")
    return value


def moment_in(name: str, text: str, unit: float) -> float:
    """Seconds: a number of units, or a date and time (without a zone, UTC)."""
    for read in (_date, float) if ":" in text else (float, _date):
        try:
            value = read(text)
        except ValueError:
            continue
        value *= unit if read is float else 1.0
        if -MAX_SECONDS <= value <= MAX_SECONDS:
            return value
    wanted = "a number, or a time as 2026-01-31 12:00:00"
    raise BadRow(f"{name} is {brief(text)}, want {wanted}")


def _date(text: str) -> float:
    found = datetime.fromisoformat(text.strip())
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
