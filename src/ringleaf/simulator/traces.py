"""Traces: jobs that ran on a real cluster, read from its log.

Two forms are read: CSV, with a mapping that says which column is what, and the Standard
Workload Format (SWF) of the Parallel Workloads Archive. Rows may come in any order. A
row that cannot be read is refused with its line; one without chips or running time is
left out, and counted.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, TextIO

import numpy as np
from msgspec import Struct

from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.run_time import Origin, base_name
from ringleaf.model.spelling import did_you_mean
from ringleaf.simulator.batch import Batch, workload_of
from ringleaf.simulator.preset import USUAL, Knobs, check, stream
from ringleaf.simulator.shapes import Ints, JobShaper, Reals, product_nodes
from ringleaf.simulator.source import BadInput, brief, brief_text
from ringleaf.simulator.swf import swf_about, swf_rows, take_swf
from ringleaf.simulator.trace_values import (
    BadRow,
    Log,
    Row,
    TraceColumns,
    chips_in,
    moment_in,
    number_in,
    seconds_between,
)
from ringleaf.simulator.trial import Site, Workload

MOST_TIMES: Final = 1000
UNITS: Final[Mapping[str, float]] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}
DETECT: Final = ""
SWF: Final = "swf"
HINT_BAD: Final = "--skip-bad leaves out rows that cannot be read"


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
        about = partial(swf_about, file.name, head)
        return swf_rows(lines, head), partial(take_swf, log), about
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
    """The index of each column; -1 for one that is not named."""
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
        moment_in(mapping.submit, row[at], unit),
        number_in(mapping.duration, row[ran])
        if ran >= 0
        else seconds_between(mapping, row[begin], row[end], unit),
        chips_in(mapping.chips, row[chips]),
        queue=row[queue] if queue >= 0 else "",
        status=row[status] if status >= 0 else "",
        kind=row[kind] if kind >= 0 else "",
        estimate=number_in(mapping.estimate, row[estimate]) if estimate >= 0 else 0.0,
        origin=Origin(
            row[user] if user >= 0 else "",
            base_name(row[program] if program >= 0 else ""),
        ),
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
