"""One row for every job of a run, written as soon as it is over."""

import csv
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, TextIO

from ringleaf.framework.instruction import Instruction, Report, Verdict
from ringleaf.model.placement import Placement
from ringleaf.simulator.job_run import chips_of_job
from ringleaf.simulator.source import BadInput
from ringleaf.simulator.trial import JobSpec, SchedulingEngine, Trial

COLUMNS: Final = (
    "job",
    "kind",
    "queue",
    "priority",
    "chips",
    "pods",
    "arrives_s",
    "starts_s",
    "ends_s",
    "waits_s",
    "runs_s",
    "stops",
    "lost_s",
    "nodes",
    "leaves",
    "ending",
)
"""What is told of a job, as ``docs/simulate.md`` explains it."""
REFUSED: Final = "refused"
LEFT: Final = "left"


class _Entry:
    __slots__ = ("leaves", "lost_s", "nodes", "places", "spec", "starts", "stops")

    def __init__(self, spec: JobSpec) -> None:
        self.spec = spec
        self.starts: float | None = None
        self.places: dict[int, str] = {}
        """Replica -> its node, until the job has the pods to start with."""
        self.stops = 0
        self.lost_s = 0.0
        self.nodes = self.leaves = 0


class Ledger:
    """Writes ``jobs.csv``; a resumed run appends to it."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._file: TextIO | None = None
        self._at = 0
        self._leaf_of: dict[str, str] = {}

    def open(self, path: Path) -> None:
        """Write to *path*: from the beginning, or from the checkpoint."""
        if not self._at:
            self._file = path.open("w", encoding="utf-8", newline="")
            self._write(COLUMNS)
            return
        try:
            there = path.stat().st_size
        except OSError:
            there = 0
        if there < self._at:
            raise BadInput(
                f"{path}: {there} bytes, want at least the {self._at} that the run had "
                "written",
                "start again without --resume",
            )
        self._file = path.open("r+", encoding="utf-8", newline="")
        self._file.seek(self._at)
        self._file.truncate()

    def __getstate__(self) -> dict[str, Any]:
        if isinstance(self._file, TextIOWrapper):
            self._file.flush()
            self._at = self._file.buffer.tell()
        return vars(self) | {"_file": None}

    def _write(self, row: Sequence[object]) -> None:
        assert self._file is not None
        csv.writer(self._file, lineterminator="\n").writerow(row)

    def begin(self, trial: Trial, scheduler: SchedulingEngine) -> None:
        """A run begins."""
        del scheduler
        nodes = trial.site.nodes
        self._leaf_of = {n.name: n.leaf for n in nodes if n.leaf is not None}

    def passes(self, since: float, now: float) -> None:
        """Nothing is written of time alone."""

    def arrives(self, spec: JobSpec, now: float) -> None:
        """A job is submitted."""
        del now
        self._entries[spec.job.name] = _Entry(spec)

    def starts(
        self, spec: JobSpec, placements: Sequence[Placement], now: float
    ) -> None:
        """Pods of a job are placed."""
        entry = self._entries[spec.job.name]
        if entry.starts is not None:
            return
        entry.places |= {place.replica: place.node for place in placements}
        if len(entry.places) >= spec.job.effective_min:
            entry.starts = now
            names = {*entry.places.values()}
            entry.nodes = len(names)
            entry.leaves = len({self._leaf_of.get(name) for name in names} - {None})
            entry.places = {}

    def stops(self, spec: JobSpec, pods: Sequence[int], why: str, now: float) -> None:
        """Pods are gone; ``loses`` has counted their lost work."""
        del why, now
        for pod in pods:
            self._entries[spec.job.name].places.pop(pod, None)

    def loses(self, spec: JobSpec, seconds: float, now: float) -> None:
        """A job works no longer."""
        del now
        entry = self._entries[spec.job.name]
        entry.stops += 1
        entry.lost_s += seconds

    def ends(self, spec: JobSpec, now: float) -> None:
        """A job is over."""
        self._row(self._entries.pop(spec.job.name), now, spec.ending)

    def says(self, said: Instruction, now: float) -> None:
        """A job that can never be placed is over."""
        del now
        if isinstance(said, Report) and said.verdict is Verdict.INVALID:
            entry = self._entries.pop(said.job, None)
            if entry is not None:
                self._row(entry, None, REFUSED)

    def finish(self, now: float) -> None:
        """Write the jobs that are left, in the order of their arrival."""
        del now
        for entry in self._entries.values():
            self._row(entry, None, LEFT)
        self._entries.clear()
        self.close()

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _row(self, entry: _Entry, ends: float | None, ending: str) -> None:
        spec, job = entry.spec, entry.spec.job
        starts = entry.starts
        self._write(
            (
                job.name,
                spec.kind,
                job.queue,
                job.priority,
                chips_of_job(job),
                job.n_pods,
                _seconds(spec.arrives),
                _seconds(starts),
                _seconds(ends),
                _seconds(None if starts is None else starts - spec.arrives),
                _seconds(spec.runs_s),
                entry.stops,
                _seconds(entry.lost_s),
                entry.nodes,
                entry.leaves,
                ending,
            )
        )


def _seconds(value: float | None) -> str:
    """Seconds to the thousandth; empty where there are none.

    >>> _seconds(12.3456), _seconds(None)
    ('12.346', '')
    """
    return "" if value is None else f"{value:.3f}"
