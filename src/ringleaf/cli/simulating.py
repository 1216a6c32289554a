"""The screen of a simulation that is under way: time, jobs, chips, and a small map."""

import sys
import time
from types import TracebackType
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, ConsoleRenderable, Group
from rich.live import Live
from rich.text import Text

from ringleaf.cli.simulated import lasting
from ringleaf.model.cluster import Cluster
from ringleaf.model.spine import NOWHERE
from ringleaf.simulator.clock import Clock

LEAST_S: Final = 0.25
"""How long a screen stays at least."""
MOST_CELLS: Final = 256
"""Leaves or SuperPoDs that are drawn; of more, several share a cell."""
BAR: Final = 40
LEVELS: Final = "·▁▂▃▄▅▆▇█"
"""How full a part of the cluster is, from empty to full."""

Ints = NDArray[np.int64]


class Screen:
    """What is shown of a run on a terminal; nothing where there is none."""

    def __init__(
        self, clock: Clock, policy: str, console: Console | None = None
    ) -> None:
        self._clock, self._policy = clock, policy
        self._began = self._shown = time.perf_counter()
        self._from = (clock.now, clock.tally.over)
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
        clock = self._clock
        trial, tally = clock.trial, clock.tally
        cluster = clock.scheduler.view.cluster
        site, jobs = trial.site, trial.workload
        took = max(now - self._began, 1e-9)
        day, second = divmod(int(clock.now), 86400)
        hours = f"day {day + 1}, {second // 3600:02}:{second // 60 % 60:02}"
        speed = (tally.over - self._from[1]) / took
        passes = (clock.now - self._from[0]) / took
        used = int(np.bitwise_count(cluster.taken).sum())
        head = f"{jobs.name} on {site.name}, {self._policy}"
        return Group(
            Text.assemble((head, "bold"), f"   {hours}"),
            _line("arrived", _bar(tally.arrived, jobs.n_jobs, "cyan")),
            _line("in use", _bar(used, site.chips, "green", "chips")),
            _line(
                "jobs",
                Text.assemble(
                    (f"{tally.waiting:,} wait", "yellow" if tally.waiting else ""),
                    f"   {tally.working:,} work   {tally.over:,} are over",
                ),
            ),
            _line(
                "speed", Text(f"{speed:,.0f} jobs a second, {lasting(passes)} in one")
            ),
            Text(),
            *_map(cluster),
        )


def _line(word: str, what: Text) -> Text:
    return Text.assemble((f"{word:>9}  ", "dim"), what)


def _bar(part: int, whole: int, style: str, of: str = "") -> Text:
    share = part / whole if whole else 0.0
    full = round(BAR * min(share, 1.0))
    told = f" {share:4.0%} of {whole:,} {of}".rstrip()
    return Text.assemble(("█" * full, style), ("░" * (BAR - full), "dim"), told)


def _map(cluster: Cluster) -> list[Text]:
    """How full every leaf or SuperPoD is; red where something is broken."""
    word, part = "leaves", cluster.leaf
    if not (part != NOWHERE).any():
        word, part = "SuperPoDs", cluster.superpod
    if not len(cluster) or not (part != NOWHERE).any():
        return []
    known = part != NOWHERE
    _names, number = np.unique(part[known], return_inverse=True)
    number = number.astype(np.int64)
    n_parts = int(number.max()) + 1
    fold = -(-n_parts // MOST_CELLS)
    number //= fold
    used = _sums(number, np.bitwise_count(cluster.taken[known]))
    size = _sums(number, cluster.size[known])
    broken = np.bitwise_count(cluster.healthy[known]) < cluster.size[known]
    sick = _sums(number, broken | ~cluster.ready[known]) > 0
    cells = Text()
    steps = len(LEVELS) - 1
    for each in range(len(used)):
        share = used[each] / max(size[each], 1)
        level = 0 if not used[each] else max(1, int(share * steps))
        style = "red" if sick[each] else "green"
        cells.append(LEVELS[level], style)
    title = f"{n_parts} {word}" + (f", {fold} in a cell" if fold > 1 else "")
    rows = [cells[start : start + 64] for start in range(0, len(cells), 64)]
    return [Text(f"{title:>11}", "dim"), *(Text.assemble(" " * 11, r) for r in rows)]


def _sums(number: Ints, values: NDArray[np.generic]) -> Ints:
    """The sum of *values* for every number."""
    return np.bincount(number, weights=values.astype(np.float64)).astype(np.int64)
