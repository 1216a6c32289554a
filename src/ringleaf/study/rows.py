"""Every run as a row, for spreadsheets and other programs."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Final

from ringleaf.report.results import RunResult, StudySpec

SPEC: Final = (
    "workload",
    "site",
    "load",
    "policy",
    "seed",
    "jobs",
    "nodes",
    "chips",
    "leaves",
    "superpods",
    "order",
)
"""What a run was of; every measure follows."""


def table(runs: Sequence[RunResult]) -> str:
    """A row for every run: what it was of, and every measure by its key with dots.

    Nothing stands where a run has no such value.
    """
    measured = [dict(flat(run.metrics)) for run in runs]
    keys = list(dict.fromkeys(key for each in measured for key in each))
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*map(_column, SPEC), *keys])
    for run, values in zip(runs, measured, strict=True):
        spec = [getattr(run.spec, name) for name in SPEC]
        writer.writerow([*spec, *(values.get(key) for key in keys)])
    return text.getvalue()


def _column(name: str) -> str:
    """What a field of ``StudySpec`` is called: as the option is."""
    assert name in StudySpec.__struct_fields__
    return "cluster" if name == "site" else name


def flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its key; keys of keys are joined by dots.

    >>> list(flat({"use": {"chips": 8}, "why": {"jobs": {"quota": None}}}))
    [('use.chips', 8), ('why.jobs.quota', None)]
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
