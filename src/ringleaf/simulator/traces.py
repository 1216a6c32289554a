"""Traces: jobs that ran on a real cluster, read from its log.

Two forms are read: CSV, with a mapping that says which column is what, and the Standard
Workload Format (SWF) of the Parallel Workloads Archive. Rows may come in any order. A
row that cannot be read is refused with its line; one without chips or running time is
left out, and counted.
"""

import csv
import gzip
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from math import ceil, inf, nan
from pathlib import Path
from typing import Final, TextIO

import numpy as np
from msgspec import Struct

from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.run_time import NO_ORIGIN, Origin, base_name
from ringleaf.model.spelling import did_you_mean
from ringleaf.simulator.batch import Batch, workload_of
from ringleaf.simulator.preset import USUAL, Knobs, check, stream
from ringleaf.simulator.shapes import Ints, JobShaper, Reals, product_nodes
from ringleaf.simulator.source import BadInput, brief, brief_text
from ringleaf.simulator.trial import Site, Workload

MAX_CHIPS: Final = 1_000_000
MAX_SECONDS: Final = 1e12
MAX_RUN_S: Final = 300_000_000
"""Ten years: chip-seconds of many jobs together stay whole numbers of 64 bits."""
MOST_TIMES: Final = 1000
MOST_TOLD: Final = 3
"""Things of a sort that are told one by one."""
UNITS: Final[Mapping[str, float]] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}
DETECT: Final = ""
SWF: Final = "swf"
SWF_FIELDS: Final = 18
USUAL_KIND: Final = "job"
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_WITH_UNIT: Final = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?) ?({'|'.join(_SECONDS)})")
HINT_BAD: Final = "--skip-bad leaves out rows that cannot be read"

Row = list[str]


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


MAPPINGS: Final[Mapping[str, TraceColumns]] = {
    mapping.name: mapping
    for mapping in (
        TraceColumns(
            name="philly",
            submit="timestamp",
            duration="duration",
            chips="num_gpus",
            queue="cluster",
            about="Microsoft Philly, CC-BY-4.0, Jeon et al., ATC'19",
        ),
        TraceColumns(
            name="helios",
            submit="submit_time",
            duration="duration_s",
            chips="num_chips",
            queue="tenant",
            status="final_status",
            kind="class",
            user="user",
            unit="us",
            about="SenseTime Helios, CC-BY-4.0, Hu et al., SC'21",
        ),
        TraceColumns(
            name="helios-log",
            submit="submit_time",
            duration="duration",
            chips="gpu_num",
            queue="vc",
            status="state",
            about="SenseTime Helios, CC-BY-4.0, Hu et al., SC'21",
        ),
        TraceColumns(
            name="openb",
            submit="creation_time",
            begin="scheduled_time",
            end="deletion_time",
            chips="num_gpu",
            status="pod_phase",
            about="Alibaba openb, Weng et al., ATC'23",
        ),
        TraceColumns(name="plain", submit="submit", duration="duration", chips="chips"),
    )
}
"""Mappings that have a name."""

_ORIGIN: Final = ("user", "program")
_KEYS: Final = (
    *("submit", "duration", "chips", "queue", "status", "kind", "estimate"),
    *("begin", "end"),
    *_ORIGIN,
)

_ENDINGS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        ("completed", "complete", "done", "pass", "success", "succeeded", "1"), 0
    ),
    **dict.fromkeys(("failed", "fail", "error", "node_fail", "timeout", "0"), 1),
    **dict.fromkeys(("cancelled", "canceled", "cancel", "killed", "5"), 2),
}
"""How logs say that jobs end -> done, failed, cancelled."""


class BadRow(Exception):  # noqa: N818 - it reads as what happened
    """A row that cannot be read: what was found, what is wanted, and what helps."""

    def __init__(self, line: str, hint: str | None = None) -> None:
        super().__init__(line)
        self.hint = hint


class Log:
    """The rows of a trace, in columns."""

    def __init__(self) -> None:
        self.submit, self.estimate = array("d"), array("d")
        self.duration, self.chips = array("q"), array("q")
        self.ending, self.kind, self.queue = array("q"), array("q"), array("q")
        self.kinds: dict[str, int] = {}
        self.queues: dict[str, int] = {}
        self.origin = array("q")
        self.origins: dict[Origin, int] = {}
        self.idle = 0
        """Rows without chips or running time."""
        self.unknown: Counter[str] = Counter()
        """How jobs end of which it is not known what it means."""
        self.bad: list[str] = []
        """Rows that could not be read: the first few."""
        self.n_bad = 0

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
        ending = _ENDINGS.get(status.lower(), 0) if status else 0
        if status and status.lower() not in _ENDINGS:
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


def read_trace(
    path: str | Path,
    site: Site,
    columns: str = DETECT,
    *,
    load: float | None = None,
    factor: float = 1.0,
    jobs: int | None = None,
    times: int = 1,
    seed: int = 0,
    queues: bool = False,
    skip_bad: bool = False,
    knobs: Knobs = USUAL,
) -> Workload:
    """The jobs of the file *path* on *site*.

    Args:
        path: CSV or SWF; packed with gzip where its name ends in ``.gz``.
        site: The cluster; sizes are rounded up to what it takes.
        columns: A mapping that has a name, ``submit=…,duration=…,chips=…``, or nothing:
            it is told by the header.
        load: Offered load; arrivals are moved together or apart until it is this.
        factor: Without *load*: time between arrivals, by what it was.
        jobs: Only the first so many.
        times: Chips for each that the file counts: 8 makes processors nodes of 8.
        seed: Of what the file does not tell: products, common jobs.
        queues: Whether jobs wait in the queues that the file names.
        skip_bad: Whether rows that cannot be read are left out.
        knobs: ``common`` and ``estimate`` are heeded.

    """
    check(seed, load, jobs, knobs)
    if not 0 < factor < inf:
        raise BadInput(f"factor is {factor}, want more than 0")
    if not 1 <= times <= MOST_TIMES:
        raise BadInput(f"times is {times}, want 1 to {MOST_TIMES}")
    file = Path(path)
    try:
        with _opened(file) as stream_:
            log, about = _read(stream_, file, columns, skip_bad=skip_bad)
    except gzip.BadGzipFile:
        raise BadInput(
            f"{file}: not packed with gzip, want what its name says",
            "without .gz at its end it is read as it is",
        ) from None
    except FileNotFoundError as error:
        raise BadInput(
            f"{file}: {error.strerror}", "a CSV or SWF file, by its path from here"
        ) from None
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise BadInput(f"{file}: not packed with gzip: {error}") from None
    except (ValueError, csv.Error) as error:  # a path with a NUL byte, no CSV
        raise BadInput(f"{file}: {error}") from None
    if not log.submit:
        raise BadInput(f"{file}: no jobs, want at least one row with chips and time")
    crowd = JobShaper(product_nodes(site))
    named = tuple(log.queues) if queues else (DEFAULT_QUEUE,)
    return workload_of(
        partial(_batches, _sorted(log, jobs, times), crowd, seed, knobs, queues=queues),
        site,
        crowd,
        name=file.name,
        about=about,
        kinds=tuple(log.kinds),
        load=load,
        factor=factor,
        queues=named,
        origins=tuple(log.origins),
        notes=tuple(log.notes),
    )


def _opened(file: Path) -> TextIO:
    """The text of *file*; bytes that are no text are refused where they matter."""
    if file.name.endswith(".gz"):
        return gzip.open(file, "rt", encoding="utf-8-sig", errors="replace", newline="")
    return file.open(encoding="utf-8-sig", errors="replace", newline="")


def _read(
    lines: TextIO, file: Path, columns: str, *, skip_bad: bool
) -> tuple[Log, str]:
    """The rows, and whose they are."""
    log = Log()
    rows, take, about = _form(lines, file, columns, log)
    for number, row in rows:
        try:
            take(row)
        except BadRow as error:
            line = f"{file}:{number}: {error}"
            if not skip_bad:
                raise BadInput(line, error.hint or HINT_BAD) from None
            log.n_bad += 1
            log.bad += [line] * (not log.bad)
    return log, about()


def _form(
    lines: TextIO, file: Path, columns: str, log: Log
) -> tuple[Iterator[tuple[int, Row]], Callable[[Row], None], Callable[[], str]]:
    """The numbered rows of a file, what becomes of one, and whose they are."""
    named = file.name.removesuffix(".gz").lower().endswith(".swf")
    if columns == SWF or (columns == DETECT and named):
        head: dict[str, str] = {}
        about = partial(_swf_about, file.name, head)
        return _swf_rows(lines, head), partial(_take_swf, log), about
    reader = csv.reader(_without_comments(lines), strict=True)
    header = next((row for row in reader if row), [])
    if not header:
        raise BadInput(f"{file}: the file is empty, want a header and rows")
    mapping = _mapping(columns, header, file)
    take = partial(_take_csv, log, _places(mapping, header, file), len(header), mapping)
    rows = ((reader.line_num, row) for row in reader if row)
    return rows, take, lambda: mapping.about or file.name


def _without_comments(lines: Iterable[str]) -> Iterator[str]:
    """The lines; comments are blank, so that lines keep their numbers."""
    return ("\n" if line.startswith("#") else line for line in lines)


def _mapping(columns: str, header: Row, file: Path) -> TraceColumns:
    """The mapping that *columns* says, or that the *header* fits."""
    if columns == DETECT:
        for mapping in MAPPINGS.values():
            if {*mapping.needed} <= {*header}:
                return mapping
        has = brief_text(", ".join(header))
        raise BadInput(
            f"{file}: the header is {has!r}, which no mapping fits ({_known()})",
            apart_hint(header) or "--columns submit=…,duration=…,chips=…",
        )
    if columns in MAPPINGS:
        return MAPPINGS[columns]
    if "=" not in columns:
        raise BadInput(
            f"columns is {brief(columns)}, want {_known()}, {SWF} or "
            "submit=…,duration=…,chips=…",
            _near(columns, [*MAPPINGS, SWF]),
        )
    return _own(columns)


def apart_hint(header: Sequence[str]) -> str | None:
    """A hint where columns are separated by something else than commas."""
    signs = {";": "semicolons", "\t": "tabs", "|": "bars"}
    if len(header) > 1:
        return None
    for sign, word in signs.items():
        if sign in header[0]:
            return f"columns are separated by {word}, want commas"
    return None


def _known() -> str:
    return ", ".join(MAPPINGS)


def _own(columns: str) -> TraceColumns:
    """Read a mapping that a user wrote: ``submit=a,duration=b,chips=c``."""
    given: dict[str, str] = {}
    for each in filter(None, columns.split(",")):
        key, _equals, value = (part.strip() for part in each.partition("="))
        if key not in (*_KEYS, "unit"):
            raise BadInput(
                f"columns has {brief(key)}, want {', '.join(_KEYS)} or unit",
                _near(key, (*_KEYS, "unit")),
            )
        given[key] = value
    if given.get("unit", "s") not in UNITS:
        raise BadInput(f"columns: unit is {brief(given['unit'])}, want {_units()}")
    timed = ("begin", "end") if given.get("end") else ("duration",)
    missing = [key for key in ("submit", *timed, "chips") if not given.get(key)]
    if missing:
        raise BadInput(f"columns says nothing of {' or '.join(missing)}, want a column")
    return TraceColumns(**given)


def _units() -> str:
    return ", ".join(UNITS)


def _near(name: str, known: Iterable[str]) -> str | None:
    return did_you_mean(name, known) or None


def _places(mapping: TraceColumns, header: Row, file: Path) -> tuple[int, ...]:
    """Where each of the columns stands; -1 for one that is not told."""
    places = []
    for key in _KEYS:
        name = getattr(mapping, key)
        if key in _ORIGIN and mapping.name and name not in header:
            name = ""  # some copies of a log leave its users out
        if name and name not in header:
            raise BadInput(
                f"{file}: no column {brief(name)} for {key}, want one of "
                f"{brief_text(', '.join(header))}",
                apart_hint(header) or _near(name, header),
            )
        places.append(header.index(name) if name else -1)
    return tuple(places)


def _take_csv(
    log: Log, places: tuple[int, ...], width: int, mapping: TraceColumns, row: Row
) -> None:
    if len(row) != width:
        raise BadRow(f"{len(row)} columns, want {width}")
    at, ran, chips, queue, status, kind, estimate, begin, end, user, program = places
    unit = UNITS[mapping.unit]
    log.add(
        _moment(mapping.submit, row[at], unit),
        _number(mapping.duration, row[ran])
        if ran >= 0
        else _between(mapping, row[begin], row[end], unit),
        _whole(mapping.chips, row[chips]),
        queue=row[queue] if queue >= 0 else "",
        status=row[status] if status >= 0 else "",
        kind=row[kind] if kind >= 0 else "",
        estimate=_number(mapping.estimate, row[estimate]) if estimate >= 0 else 0.0,
        origin=Origin(
            row[user] if user >= 0 else "",
            base_name(row[program] if program >= 0 else ""),
        ),
    )


def _between(mapping: TraceColumns, begin: str, end: str, unit: float) -> float:
    """Seconds from its beginning to its end; nothing where it did not run."""
    if not begin or not end:
        return 0.0
    return _moment(mapping.end, end, unit) - _moment(mapping.begin, begin, unit)


def _number(name: str, text: str) -> float:
    """A number of seconds; nothing where nothing is told."""
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
    """A hint: the seconds that a number with a unit stands for.

    >>> _in_seconds("1h"), _in_seconds("90 s"), _in_seconds("soon")
    ('3600 for 1h', '90 for 90 s', None)
    """
    found = _WITH_UNIT.fullmatch(text.strip())
    if found is None:
        return None
    return f"{float(found[1]) * _SECONDS[found[2]]:.15g} for {text.strip()}"


def _whole(name: str, text: str) -> int:
    """A number of chips; a part of one counts as one."""
    try:
        value = ceil(float(text or 0))
    except (ValueError, OverflowError):
        value = MAX_CHIPS + 1
    if value > MAX_CHIPS:
        raise BadRow(f"{name} is {brief(text)}, want a number up to {MAX_CHIPS}")
    return value


def _moment(name: str, text: str, unit: float) -> float:
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


def _swf_rows(lines: Iterable[str], head: dict[str, str]) -> Iterator[tuple[int, Row]]:
    """The numbered rows; what the comments tell comes into *head*."""
    for number, line in enumerate(lines, 1):
        if line.startswith(";"):
            key, _colon, value = line[1:].partition(":")
            head.setdefault(key.strip(), value.strip())
        elif row := line.split():
            yield number, row


def _swf_about(name: str, head: Mapping[str, str]) -> str:
    """Whose log it is, as its comments say."""
    told = [head[key] for key in ("Computer", "Installation") if head.get(key)]
    thanks = [f"thanks to {head['Acknowledge']}"] if head.get("Acknowledge") else []
    whose = ", ".join(told) or name
    return "; ".join([whose, "Parallel Workloads Archive", *thanks])


def _named(field: str) -> str:
    return "" if field == "-1" else field


def _take_swf(log: Log, row: Row) -> None:
    """One line of 18 numbers, -1 where something is not known."""
    if len(row) < SWF_FIELDS:
        raise BadRow(f"{len(row)} fields, want {SWF_FIELDS}")
    allocated, requested = (_whole(f"field {n}", row[n - 1]) for n in (5, 8))
    queue = row[14]
    log.add(
        _number("field 2", row[1]),
        _number("field 4", row[3]),
        allocated if allocated > 0 else requested,
        queue=queue if queue != "-1" else "",
        status=row[10] if row[10] in _ENDINGS else "",
        estimate=_number("field 9", row[8]),
        origin=Origin(_named(row[11]), _named(row[13])),
    )


class Sorted(Struct, frozen=True):
    """The rows of a log in the order in which they arrive."""

    submit: Reals
    duration: Ints
    chips: Ints
    ending: Ints
    kind: Ints
    queue: Ints
    estimate: Reals
    origin: Ints


def _sorted(log: Log, jobs: int | None, times: int) -> Sorted:
    """The first *jobs* rows by arrival; those that come together as in the file."""
    order = np.argsort(np.frombuffer(log.submit), kind="stable")[:jobs]
    reals = (np.frombuffer(each)[order] for each in (log.submit, log.estimate))
    submit, estimate = reals
    whole = log.duration, log.chips, log.ending, log.kind, log.queue, log.origin
    duration, chips, ending, kind, queue, origin = (
        np.frombuffer(each, np.int64)[order] for each in whole
    )
    chips = chips * times
    return Sorted(submit, duration, chips, ending, kind, queue, estimate, origin)


def _batches(
    rows: Sorted, crowd: JobShaper, seed: int, knobs: Knobs, *, queues: bool
) -> Iterator[Batch]:
    """The rows, some at a time, with what the file does not tell."""
    product, common = stream(seed, "product"), stream(seed, "common")
    for start in range(0, len(rows.submit), knobs.at_a_time):
        part = slice(start, start + knobs.at_a_time)
        chips, runs_s = rows.chips[part], rows.duration[part]
        n, none = len(chips), np.zeros(len(chips), np.int64)
        told = rows.estimate[part]
        if knobs.estimate:
            told = runs_s.astype(np.float64) * knobs.estimate
        yield Batch(
            at=rows.submit[part],
            runs_s=runs_s,
            chips=chips,
            ground=crowd.chosen(chips, product.random(n)),
            kind=rows.kind[part],
            ending=rows.ending[part],
            common=common.random(n) < knobs.common,
            block=none,
            queue=rows.queue[part] if queues else none,
            estimate_s=told,
            origin=rows.origin[part],
        )
