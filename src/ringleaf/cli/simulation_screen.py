"""The screen of a simulation that is under way: time, jobs, chips, and a small map."""

import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from rich.console import Console, ConsoleRenderable, Group
from rich.live import Live
from rich.text import Text

from ringleaf.model.cluster import Cluster
from ringleaf.model.uplinks import NOWHERE
from ringleaf.report.duration import format_duration
from ringleaf.simulator.clock import Clock
from ringleaf.simulator.metrics import RunMetrics

LEAST_S: Final = 0.25
"""How long a screen stays at least."""
AT_A_TIME: Final = 64
"""Steps between looks at the clock on the wall."""
MOST_CELLS: Final = 256
"""Leaves or SuperPoDs that are drawn; of more, several share a cell."""
IN_A_ROW: Final = 64
"""Cells of a row of the map."""
BAR: Final = 40
LEVELS: Final = "·▁▂▃▄▅▆▇█"
"""How full a part of the cluster is, from empty to full."""
WELL, SHARED, SICK = "w", "l", "s"
STYLES: Final = {WELL: "green", SHARED: "magenta", SICK: "red"}
"""A part where nothing is wrong, whose links several gangs share, that is broken."""

Ints = NDArray[np.int64]


class Map(Struct, frozen=True):
    """How full every leaf or SuperPoD is, a sign each.

    Args:
        title: What the parts are, and how many.
        cells: Their levels.
        states: What is the matter with each, by ``STYLES``.

    """

    title: str
    cells: str
    states: str

    def rows(self) -> list[Text]:
        """The rows of the map."""
        text = Text()
        for cell, state in zip(self.cells, self.states, strict=True):
            text.append(cell, STYLES[state])
        return [text[at : at + IN_A_ROW] for at in range(0, len(text), IN_A_ROW)]


class Moment(Struct, frozen=True):
    """A run as it is, in plain values.

    Args:
        now: The time in the run.
        jobs: All jobs of the workload.
        arrived: Of them, those that came.
        waiting: Those that wait.
        working: Those that work.
        over: Those that are over.
        chips: Of the cluster.
        used: Of them, those in use.
        conflicts: Over all leaves, jobs that cross it beyond the first.
        map: The cluster; None where it has neither leaves nor SuperPoDs.

    """

    now: float
    jobs: int
    arrived: int
    waiting: int
    working: int
    over: int
    chips: int
    used: int
    conflicts: int = 0
    map: Map | None = None

    @property
    def hours(self) -> str:
        """The time for people."""
        day, second = divmod(int(self.now), 86400)
        return f"day {day + 1}, {second // 3600:02}:{second // 60 % 60:02}"


def moment_of(clock: Clock) -> Moment:
    """A run as it is now."""
    trial, tally = clock.trial, clock.tally
    cluster = clock.scheduler.view.cluster
    found = (each for each in clock.observers if isinstance(each, RunMetrics))
    metrics = next(found, None)
    shared = frozenset[str]() if metrics is None else metrics.shared_leaves
    return Moment(
        clock.now,
        trial.workload.n_jobs,
        tally.arrived,
        tally.waiting,
        tally.working,
        tally.over,
        trial.site.chips,
        int(np.bitwise_count(cluster.taken).sum()),
        0 if metrics is None else metrics.conflicts,
        _map(cluster, shared),
    )


def play_in_chunks(clock: Clock) -> Iterator[float]:
    """Play a run to its end; the time on the wall after every few steps."""
    while True:
        for _ in range(AT_A_TIME):
            if not clock.step():
                return
        yield time.perf_counter()


class SimulationScreen:
    """What is shown of a run on a terminal; nothing where there is none."""

    def __init__(
        self, clock: Clock, policy: str, console: Console | None = None
    ) -> None:
        self._clock, self._policy = clock, policy
        self._began = self._shown = time.perf_counter()
        self._from = (clock.now, clock.tally.over, clock.tally.arrived)
        self._live: Live | None = None
        self._console = console
        if console is None and sys.stderr.isatty():
            self._console = Console(stderr=True, highlight=False)

    def __enter__(self) -> Self:
        if self._console is not None:
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, now: float) -> None:
        """Draw the run as it is, unless that was done just before."""
        if self._live is not None and now - self._shown >= LEAST_S:
            self._shown = now
            self._live.update(self.drawn(now), refresh=True)

    def drawn(self, now: float) -> ConsoleRenderable:
        """The run as it is."""
        trial, seen = self._clock.trial, moment_of(self._clock)
        took = max(now - self._began, 1e-9)
        speed = (seen.over - self._from[1]) / took
        passes = (seen.now - self._from[0]) / took
        head = f"{trial.workload.name} on {trial.site.name}, {self._policy}"
        came = self._from[2]
        left = time_left(took, seen.arrived - came, seen.jobs - came)
        return Group(
            Text.assemble((head, "bold"), f"   {seen.hours}"),
            _line("arrived", _bar(seen.arrived, seen.jobs, "cyan")),
            _line("utilized", _bar(seen.used, seen.chips, "green", "chips")),
            _line(
                "jobs",
                Text.assemble(
                    (f"{seen.waiting:,} pending", "yellow" if seen.waiting else ""),
                    f"   {seen.working:,} running   {seen.over:,} ended",
                ),
            ),
            _line(
                "speed",
                Text(f"{speed:,.0f} jobs a second, {format_duration(passes)} in one"),
            ),
            _line("time", Text(left)),
            *_drawn(seen.map),
        )


SURE_S: Final = 2.0
"""How long something takes before its speed says when it ends."""


def time_left(took_s: float, done: float, total: float) -> str:
    """The time since the start and, once it can be estimated, the time left.

    >>> time_left(71.0, 3.0, 12.0), time_left(71.0, 0.0, 12.0)
    ('1:11, about 3:33 left', '1:11')
    """
    told = _clock(took_s)
    if done <= 0 or took_s < SURE_S or done >= total:
        return told
    return f"{told}, about {_clock(took_s * (total - done) / done)} left"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _line(word: str, what: Text) -> Text:
    return Text.assemble((f"{word:>9}  ", "dim"), what)


def _bar(part: int, whole: int, style: str, of: str = "") -> Text:
    share = part / whole if whole else 0.0
    told = f" {share:4.0%} of {whole:,} {of}".rstrip()
    return Text.assemble(bar(share, BAR, style), told)


def bar(share: float, width: int, style: str) -> Text:
    """A bar that is full as far as *share*."""
    full = round(width * min(share, 1.0))
    return Text.assemble(("█" * full, style), ("░" * (width - full), "dim"))


def _drawn(parts: Map | None) -> list[Text]:
    if parts is None:
        return [Text()]
    rows = (Text.assemble(" " * 11, row) for row in parts.rows())
    return [Text(), Text(f"{parts.title:>11}", "dim"), *rows]


def _map(cluster: Cluster, shared: frozenset[str]) -> Map | None:
    """How full every leaf or SuperPoD is, and where several gangs share links."""
    word, part = "leaves", cluster.leaf
    if not (part != NOWHERE).any():
        word, part = "SuperPoDs", cluster.superpod
    if not len(cluster) or not (part != NOWHERE).any():
        return None
    known = part != NOWHERE
    names, number = np.unique(part[known], return_inverse=True)
    number = number.astype(np.int64)
    n_parts = int(number.max()) + 1
    fold = -(-n_parts // MOST_CELLS)
    number //= fold
    used = _sums(number, np.bitwise_count(cluster.taken[known]))
    size = _sums(number, cluster.size[known])
    broken = np.bitwise_count(cluster.healthy[known]) < cluster.size[known]
    sick = _sums(number, broken | ~cluster.ready[known]) > 0
    crowded = np.zeros(len(used), dtype=bool)
    if word == "leaves":
        for at, leaf in enumerate(names.tolist()):
            crowded[at // fold] |= cluster.leaves[leaf].name in shared
    steps = len(LEVELS) - 1
    levels = np.where(used > 0, np.maximum(1, used * steps // np.maximum(size, 1)), 0)
    states = np.where(sick, SICK, np.where(crowded, SHARED, WELL))
    title = f"{n_parts} {word}" + (f", {fold} in a cell" if fold > 1 else "")
    cells = "".join(LEVELS[level] for level in levels.tolist())
    return Map(title, cells, "".join(states.tolist()))


def _sums(number: Ints, values: NDArray[np.generic]) -> Ints:
    """The sum of *values* for every number."""
    return np.bincount(number, weights=values.astype(np.float64)).astype(np.int64)
