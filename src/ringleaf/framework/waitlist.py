"""Jobs that wait, kept so that nothing is looked at again for no reason.

Jobs of one queue that ask for the same stand in one *line*, the first in job order in
front. When the job in front finds no room, none behind it does: the line is closed. It
opens again when something is free that its jobs could use.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, Final

from msgspec.structs import replace

from ringleaf.framework.standing import Phase, Standing
from ringleaf.model.decision import Waiting
from ringleaf.model.job import Job, Network
from ringleaf.model.product import Product

Key = tuple[Any, ...]
SPARE: Final = 64
"""Entries of those who wait no longer that are worth no tidying up."""


class Line:
    """Jobs of one queue that ask for the same, the first in job order in front."""

    def __init__(self, ask: Job) -> None:
        self.ask = ask
        demands = [role.demand for role, _own in ask.crew]
        self.likes_company = any(d.near or d.spread for d in demands)
        """Whether pods that come may be what its jobs wait for."""
        minds = self.likes_company or any(d.apart for d in demands)
        without_chips = not all(role.chips for role, _own in ask.crew)
        anything = minds or without_chips or ask.network is not Network.NONE
        self.product = None if anything else ask.product
        """What must be free for its jobs; None if it may be anything."""
        self.why: Waiting | str = ""
        """Why it is closed: what its first job found, or words after its request."""
        self.hunted: dict[str, int] = {}
        """Action -> the moves at which victims were last looked for in vain."""
        self._heap: list[tuple[Key, int, Standing]] = []
        self._serial: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._serial)

    def __iter__(self) -> Iterator[Standing]:
        """Its jobs, in no particular order."""
        return (entry[2] for entry in self._heap if self._alive(entry))

    def entries(self) -> list[tuple[Key, Standing]]:
        """Its jobs with their keys, in no particular order."""
        serials = self._serial
        return [
            (key, standing)
            for key, serial, standing in self._heap
            if serials.get(standing.job.name) == serial
        ]

    def push(self, key: Key, serial: int, standing: Standing) -> None:
        """A job joins the line."""
        self._serial[standing.job.name] = serial
        heappush(self._heap, (key, serial, standing))

    def drop(self, name: str) -> None:
        """A job leaves the line."""
        del self._serial[name]

    @property
    def front(self) -> tuple[Key, Standing]:
        """The first of it, with its key; the line must not be empty."""
        heap, serials = self._heap, self._serial
        while True:
            key, serial, standing = heap[0]
            if serials.get(standing.job.name) == serial:
                return key, standing
            heappop(heap)

    def _alive(self, entry: tuple[Key, int, Standing]) -> bool:
        return self._serial.get(entry[2].job.name) == entry[1]


class Waitlist:
    """All lines, queue by queue, the open ones apart."""

    def __init__(self) -> None:
        self._lines: dict[Job, Line] = {}
        self._in_queue: dict[str, dict[Line, None]] = {}
        self._line: dict[str, Line] = {}
        self._open: dict[str, dict[Line, None]] = {}
        self._closed: dict[Product | None, dict[Line, None]] = {}
        self._held_back: dict[Line, None] = {}
        self._lonely: dict[Line, None] = {}
        self._serial = 0
        self._since: dict[str, list[tuple[float, int, Standing]]] = {}

    def __len__(self) -> int:
        return len(self._line)

    def __contains__(self, name: str) -> bool:
        return name in self._line

    def __iter__(self) -> Iterator[Standing]:
        """Everybody who waits, line by line."""
        return (standing for line in self._lines.values() for standing in line)

    def lines_in(self, queue: str) -> list[Line]:
        """The lines of *queue*."""
        return list(self._in_queue.get(queue, ()))

    def add(self, standing: Standing, key: Key) -> Line:
        """A job begins to wait; a new line is open."""
        job = standing.job
        alone = standing.placements or job.previous is not None
        ask = replace(standing.ask, name=job.name) if alone else standing.ask
        line = self._lines.get(ask)
        if line is None:
            line = self._lines[ask] = Line(ask)
            self._in_queue.setdefault(job.queue, {})[line] = None
            self._open.setdefault(job.queue, {})[line] = None
        self._serial += 1
        line.push(key, self._serial, standing)
        self._line[job.name] = line
        if standing.phase is not Phase.RUNNING or standing.is_broken:
            since = self._since.setdefault(job.queue, [])
            insort(since, (standing.waiting_since, self._serial, standing))
            if len(since) > 2 * len(self._line) + SPARE:
                self._tidy(since)
        if line.front[1] is standing and not self.is_open(line):
            self._forget(line)
            self._reopen([line])  # others may give way to it
        return line

    def oldest(self, queue: str) -> Standing | None:
        """Who of *queue* waits longest."""
        since = self._since.get(queue, [])
        gone = 0
        while gone < len(since) and not self._still_waits(since[gone]):
            gone += 1
        del since[:gone]
        return since[0][2] if since else None

    def next_due(self, queue: str, after: float, now: float) -> float:
        """When the next of *queue* has waited *after* seconds that has not yet."""
        since = self._since.get(queue, [])
        at = bisect_right(since, now, key=lambda entry: entry[0] + after)
        while at < len(since):
            if not self._still_waits(since[at]):
                del since[at]
            elif since[at][2].job.podless:
                at += 1  # nothing is reserved for pods that are not made yet
            else:
                return since[at][0] + after
        return inf

    def _still_waits(self, entry: tuple[float, int, Standing]) -> bool:
        since, _serial, standing = entry
        whole = standing.phase is Phase.RUNNING and not standing.is_broken
        waits = standing.job.name in self._line and not whole
        return waits and since == standing.waiting_since

    def _tidy(self, since: list[tuple[float, int, Standing]]) -> None:
        """Leave one entry for each who waits: nobody may ask for the oldest for long.

        One who keeps the books, and decides nothing, never does.
        """
        last = {each[2].job.name: each for each in sorted(since, key=lambda e: e[1])}
        since[:] = sorted(filter(self._still_waits, last.values()))

    def remove(self, name: str) -> None:
        """A job waits no longer."""
        line = self._line.pop(name)
        line.drop(name)
        if not line:
            del self._lines[line.ask]
            self._shut(line)
            self._forget(line)
            self._leave_queue(line)

    def _leave_queue(self, line: Line) -> None:
        """*line* is empty; a queue without lines is not kept, whatever its name."""
        queue = line.ask.queue
        del self._in_queue[queue][line]
        if not self._in_queue[queue]:
            del self._in_queue[queue]
            self._open.pop(queue, None)
            self._since.pop(queue, None)

    def _forget(self, line: Line) -> None:
        """*line* is not closed."""
        for closed in self._closed.values():
            closed.pop(line, None)
        self._held_back.pop(line, None)
        self._lonely.pop(line, None)
        line.hunted.clear()

    @property
    def lines(self) -> Iterable[Line]:
        """Every line, open or not."""
        return self._lines.values()

    def line_of(self, name: str) -> Line:
        """Where a job waits."""
        return self._line[name]

    @property
    def has_open(self) -> bool:
        """Whether any line is open."""
        return any(self._open.values())

    @property
    def queues(self) -> list[str]:
        """The queues with open lines."""
        return [name for name, lines in self._open.items() if lines]

    def is_open(self, line: Line) -> bool:
        """Whether *line* is open; an empty one is not."""
        return line in self._open.get(line.ask.queue, ())

    def open_lines(self, queue: str) -> list[tuple[Key, int, Line]]:
        """The open lines of *queue* as a heap by the job in front."""
        return heap_of(self._open.get(queue, ()))

    def close(self, line: Line, why: Waiting | str = "") -> None:
        """Nobody in *line* finds room until something of its product is free."""
        self._shut(line)
        line.why = why
        self._closed.setdefault(line.product, {})[line] = None
        if line.likes_company:
            self._lonely[line] = None

    def hold_back(self, line: Line, why: str) -> None:
        """Nobody in *line* may start until the accounts of queues have changed."""
        self._shut(line)
        line.why = why
        self._held_back[line] = None
        if line.likes_company:
            self._lonely[line] = None

    def _shut(self, line: Line) -> None:
        self._open.get(line.ask.queue, {}).pop(line, None)

    def supply(self, products: Iterable[Product]) -> None:
        """Something of *products* is free that was not."""
        for product in (None, *products):
            self._reopen(self._closed.pop(product, {}))

    def pods_came(self) -> bool:
        """Pods are there that were not; whether somebody may have waited for them."""
        if not self._lonely:
            return False
        lonely, self._lonely = self._lonely, {}
        for line in lonely:
            self._forget(line)
        self._reopen(lonely)
        return True

    def reopen_others(self, queue: str) -> None:
        """More is asked in *queue*: who waits in others may take back from it."""
        for line in [line for lines in self._closed.values() for line in lines]:
            if line.ask.queue != queue:
                self._forget(line)
                self._reopen([line])

    def reopen_above(self, job: Job) -> None:
        """*job* started: who has a higher priority in its queue may evict it."""
        closed = [self._held_back, *self._closed.values()]
        for line in [line for lines in closed for line in lines]:
            front = line.front[1].job
            if front.queue == job.queue and front.priority > job.priority:
                self._forget(line)
                self._reopen([line])

    def accounts_changed(self) -> None:
        """Queues use more or less than before."""
        held_back, self._held_back = self._held_back, {}
        self._reopen(held_back)

    def everything_changed(self) -> None:
        """Look at everybody again."""
        closed, self._closed = self._closed, {}
        for lines in closed.values():
            self._reopen(lines)
        self.accounts_changed()

    def _reopen(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._open.setdefault(line.ask.queue, {})[line] = None


def heap_of(lines: Iterable[Line]) -> list[tuple[Key, int, Line]]:
    """Lines that are not empty as a heap by the job in front."""
    heap = [(line.front[0], number, line) for number, line in enumerate(lines)]
    heapify(heap)
    return heap
