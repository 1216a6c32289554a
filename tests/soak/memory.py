"""The resident memory of schedulers, sampled from outside while they run."""

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from ringleaf_testbed.process import Child

EVERY_S: Final = 1.0
MAX_GROWTH: Final = 1.10
"""More than this many times the early figure is not flat."""
WARM_UP, EARLY, LATE = 1 / 3, 1 / 2, 5 / 6
"""Parts of the phase: the early figure is of the samples between the first two, the
late one of those after the third."""

_RESIDENT: Final = re.compile(r"^VmRSS:\s+(\d+) kB$", re.MULTILINE)

Sample = tuple[float, float]
"""When, and how many MiB."""


class Memory(Struct, frozen=True):
    """What one process used in a phase that it lived through, in MiB."""

    name: str
    early: float
    late: float
    most: float

    @property
    def is_flat(self) -> bool:
        """Whether it has not grown by more than a tenth."""
        return self.late <= self.early * MAX_GROWTH


def resident_mib(pid: int, proc: Path = Path("/proc")) -> float | None:
    """The resident memory of a process; None when it has ended."""
    try:
        found = _RESIDENT.search((proc / str(pid) / "status").read_text("ascii"))
    except OSError:
        return None
    return int(found[1]) / 1024 if found else None


def memory_of(name: str, samples: Sequence[Sample]) -> Memory | None:
    """The figures of a phase; None where there are too few samples to say.

    Medians, as a list that is decoded at the moment of a sample is no growth.
    """
    if len(samples) < 2:
        return None
    began, ended = samples[0][0], samples[-1][0]

    def part(begin: float, end: float) -> list[float]:
        low, high = (began + (ended - began) * each for each in (begin, end))
        return [mib for at, mib in samples if low <= at <= high]

    early, late = part(WARM_UP, EARLY), part(LATE, 1)
    if not early or not late:
        return None
    return Memory(name, median(early), median(late), max(mib for _at, mib in samples))


class MemorySampler:
    """Samples some processes once a second while it is open."""

    def __init__(self, children: Callable[[], Iterable[Child]]) -> None:
        self._children = children
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: dict[str, list[Sample]] = {}

    def since(self, began: float) -> list[Memory]:
        """The figures of the processes that have lived since *began*."""
        found = []
        for name, samples in list(self.samples.items()):
            whole = samples[0][0] <= began and samples[-1][0] > began
            own = [each for each in samples if each[0] >= began]
            memory = memory_of(name, own) if whole else None
            if memory is not None:
                found.append(memory)
        return found

    @property
    def most(self) -> float:
        """The most that any process ever used, in MiB."""
        every = [mib for own in list(self.samples.values()) for _at, mib in own]
        return max(every, default=0.0)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stopping.wait(EVERY_S):
            for child in [*self._children()]:
                mib = resident_mib(child.pid)
                if mib is not None:
                    now = time.monotonic()
                    self.samples.setdefault(child.name, []).append((now, mib))
