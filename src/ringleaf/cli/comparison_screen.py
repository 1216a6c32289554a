"""The screen of a comparison that is under way: every policy, and maps of the cluster.

Runs are simulated by other processes. Each writes its state to a folder, and the screen
reads it there: no run waits for the screen, and the screen waits for no run.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec
from rich.console import Console, ConsoleRenderable, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ringleaf.cli.simulation_screen import (
    LEAST_S,
    SHARED,
    STYLES,
    Moment,
    bar,
    moment_of,
    play_in_chunks,
    time_left,
)
from ringleaf.report.duration import format_duration
from ringleaf.report.measures import number, share, value_of
from ringleaf.report.results import RunResult
from ringleaf.simulator.clock import Clock
from ringleaf.study.compare import Executor

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

BAR, WIDE_BAR, WIDE = 12, 32, 100
"""Of a narrow terminal and of a wide one, and where that begins."""
MARGIN: Final = 8
"""Rows of a terminal that are left for other things than maps."""
HEADS: Final = ("", "arrived", "", "utilized", "conflicts", "pending")
MEANS: Final = ("use.utilisation", "leaves.conflicts", "wait_s.all.mean")
"""What is told of a policy that is through, as the heads say."""

SHARED_LINKS: Final = "where several gangs share links"


def play_telling(clock: Clock, told: Path | None) -> None:
    """Simulate a run to its end, and write its progress to the folder *told*.

    On another machine the folder is missing, and nothing is written.
    """
    left = time.perf_counter()
    for now in play_in_chunks(clock):
        if told is not None and now - left >= LEAST_S:
            with suppress(OSError):
                half = told.with_name(f"{told.name}.part")
                half.write_bytes(msgspec.json.encode(moment_of(clock)))
                half.replace(told)
            left = now


class ComparisonScreen:
    """What is shown of a comparison on a terminal; nothing where there is none.

    Args:
        title: What is compared.
        casts: Policy -> the marks of its runs.
        console: Where to; else standard error, if it is a terminal.
        tell: Where it is no terminal, is told of every policy that is complete.

    """

    def __init__(
        self,
        title: str,
        casts: Mapping[str, Sequence[str]],
        console: Console | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._title, self._casts, self._tell = title, casts, tell
        self._done: dict[str, RunResult] = {}
        self._began, self._kept = time.perf_counter(), 0
        if console is None and sys.stderr.isatty():
            console = Console(file=sys.stderr, highlight=False)
        self._console = console
        self._folder: TemporaryDirectory[str] | None = None
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console is not None:
            self._folder = TemporaryDirectory(prefix="ringleaf-")
            self._live = Live(
                console=self._console,
                transient=True,
                refresh_per_second=1 / LEAST_S,
                get_renderable=self.drawn,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._live is not None and self._folder is not None:
            self._live.stop()
            self._folder.cleanup()

    @property
    def folder(self) -> str | None:
        """The folder where runs write their progress, if a screen shows it."""
        return None if self._folder is None else self._folder.name

    @property
    def n_done(self) -> int:
        """How many runs are complete."""
        return len(self._done)

    def heard(self, mark: str, run: RunResult) -> None:
        """A run is complete."""
        self._done[mark] = run
        if self._console is None and self._tell is not None:
            whole = [p for p, own in self._casts.items() if {*own} <= {*self._done}]
            if (policy := run.spec.policy) in whole:
                self._tell(f"{policy}: done, {len(whole)} of {len(self._casts)}")

    def timed(self, crew: Executor) -> Executor:
        """*crew*; what was complete before it begins does not count as its work."""

        def begin(
            play: Callable[[Asked], Answer], asked: Sequence[Asked]
        ) -> Iterator[tuple[int, Answer]]:
            self._began, self._kept = time.perf_counter(), len(self._done)
            return crew(play, asked)

        return begin

    def drawn(self) -> ConsoleRenderable:
        """The comparison as it stands."""
        console = self._console or Console()
        took = time.perf_counter() - self._began
        progress = float(len(self._done))
        table = Table.grid(padding=(0, 2))
        for head in HEADS:
            table.add_column(justify="left" if head in HEADS[:3] else "right")
        table.add_row(*(Text(head, "dim") for head in HEADS))
        maps: list[Text] = []
        room = console.height - len(self._casts) - MARGIN
        width = WIDE_BAR if console.width >= WIDE else BAR
        for policy, marks in self._casts.items():
            seen = {mark: self._seen(mark) for mark in marks if mark not in self._done}
            moments = [moment for moment in seen.values() if moment is not None]
            progress += sum(map(_part, moments))
            table.add_row(Text(policy, "bold"), *self._row(marks, moments, width))
            for moment in moments[:1]:
                drawn = list(_map(policy, moment))
                if len(maps) + len(drawn) <= room:
                    maps += drawn
        n_runs = sum(map(len, self._casts.values()))
        clock = time_left(took, progress - self._kept, n_runs - self._kept)
        return Group(
            Text.assemble((self._title, "bold"), (f"   {clock}", "dim")),
            Text(),
            table,
            *maps,
        )

    def _row(
        self, marks: Sequence[str], moments: Sequence[Moment], width: int
    ) -> list[Text]:
        """How a policy stands: of several seeds, what the first one under way shows."""
        done = [self._done[mark] for mark in marks if mark in self._done]
        part = (len(done) + sum(map(_part, moments))) / len(marks)
        cells = [Text.assemble(bar(part, width, "cyan"), f" {part:4.0%}")]
        if len(done) == len(marks):
            means = [_mean(done, key) for key in MEANS]
            written = (share, number, format_duration)
            told = ["means"] + [
                "" if mean is None else write(mean)
                for mean, write in zip(means, written, strict=True)
            ]
            return cells + [Text(each, "dim") for each in told]
        if not moments:
            return [*cells, *[Text()] * 4]
        now = moments[0]
        return [
            *cells,
            Text(now.hours),
            Text(share(now.used / max(now.chips, 1)), "green"),
            Text(str(now.conflicts), "magenta" if now.conflicts else ""),
            Text(f"{now.waiting:,} jobs", "yellow" if now.waiting else ""),
        ]

    def _seen(self, mark: str) -> Moment | None:
        """The progress of a run; None before its first report."""
        if self._folder is None:
            return None
        try:
            text = (Path(self._folder.name) / mark).read_bytes()
        except OSError:
            return None
        return msgspec.json.decode(text, type=Moment)


def _part(moment: Moment) -> float:
    """How far a run is, by the jobs that have arrived."""
    return moment.arrived / max(moment.jobs, 1)


def _mean(runs: Sequence[RunResult], key: str) -> float | None:
    found = [value_of(run.metrics, key) for run in runs]
    values = [value for value in found if value is not None]
    return fmean(values) if values else None


def _map(policy: str, moment: Moment) -> Iterator[Text]:
    if moment.map is not None:
        yield Text()
        yield Text.assemble(
            (policy, "bold"),
            (f": {moment.map.title}", "dim"),
            *((", ", (SHARED_LINKS, STYLES[SHARED])) if moment.conflicts else ()),
        )
        yield from moment.map.rows()
