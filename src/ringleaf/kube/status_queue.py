"""What is to be written about objects waits here, and is sent not too fast.

Binding comes first: while pods are on their way little else is sent, and what has
changed again in the meantime is sent once, as it is then.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct

from ringleaf.kube import encode
from ringleaf.kube.answers import UNAUTHORIZED, Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.log_once import LogOnce
from ringleaf.kube.quarantine import told, trace_of

SETTLE_S: Final = 1.0
"""How long something must be true before it is written."""
PER_SECOND: Final = 100
"""Messages a second at most, while nothing is being bound; then a tenth of it."""
BUSY_S: Final = 0.1
"""How long events wait, again and again, while pods are being bound."""
MOST_WAITING: Final = 100_000
"""Messages that are kept to be sent; the oldest events are dropped first."""
MOST_EVENTS: Final = 10_000
"""Events that are kept to be sent: while pods are being bound for minutes they wait.
The oldest are dropped first; each has at most a few kilobytes."""
TOLD: Final = frozenset({"events", "pods", "podgroups", "queues", "status"})
"""What is written: parts of paths."""
_JSON: Final = "application/json"

Request = tuple[str, str, bytes, str]
"""Method, path, body, kind of the body."""
Key = tuple[str, ...]
"""What a message is about; a later message about the same replaces it."""


class Delay(Enum):
    """How long something must be true before it is written."""

    URGENT = "urgent"
    """Before everything else."""
    NONE = "none"
    PHASE = "phase"
    """The phase of a PodGroup: a quarter of ``SETTLE_S``."""
    SETTLED = "settled"
    """``SETTLE_S``."""


class _Message(NamedTuple):
    due: float
    send: Callable[[], Request | None]


_REFERENCE: Final = "apiVersion", "kind", "namespace", "name", "uid"
"""The fields that name the object of an event."""


class _Event(NamedTuple):
    """An event to be written; there may be thousands, so it is small."""

    number: int
    at: float
    about: tuple[str, ...]
    """What names its object: the values of ``_REFERENCE``."""
    reason: str
    message: str
    is_warning: bool


_Box = OrderedDict[Key, _Message]


class MessageCounts(Struct):
    """Messages that were sent, refused, dropped, and could not be written."""

    sent: int = 0
    refused: int = 0
    dropped: int = 0
    failed: int = 0


class StatusQueue:
    """Sends messages one after the other.

    Args:
        api: The API server.
        clock: Seconds since 1970.
        is_binding: Whether pods are on their way.
        name: The reporter of events.
        say: Writes a line of the log.
        lost: Is called with what a message was about that was not written.

    """

    def __init__(
        self,
        api: Api,
        clock: Callable[[], float],
        *,
        is_binding: Callable[[], bool],
        name: str,
        say: Callable[..., None],
        lost: Callable[[Key], None],
    ) -> None:
        self._api, self._clock, self._is_binding = api, clock, is_binding
        self._name, self._say, self._lost = name, say, lost
        # What is sent with the same delay is due in the order in which it came.
        self._boxes: dict[Delay, _Box] = {delay: OrderedDict() for delay in Delay}
        self._events: deque[_Event] = deque()
        self._wake = asyncio.Event()
        self._number = int(clock() * 1e6)
        self._refusals = LogOnce()
        self.counts = MessageCounts()

    @property
    def n_waiting(self) -> int:
        """Messages that are to be sent."""
        return sum(map(len, self._boxes.values())) + len(self._events)

    def has(self, key: Key, delay: Delay) -> bool:
        """Whether a message about *key* is to be sent with a *delay*."""
        return key in self._boxes[delay]

    def next_number(self) -> int:
        """A number that no event and no transition has."""
        self._number += 1
        return self._number

    def clear(self) -> None:
        """Others lead: what was not sent is theirs to write."""
        for box in self._boxes.values():
            box.clear()
        self._events.clear()

    def put(
        self,
        key: Key,
        send: Callable[[], Request | None],
        delay: Delay,
    ) -> None:
        """Have a message sent after a delay, in the place of one about the same."""
        boxes = self._boxes
        for other in boxes.values():
            other.pop(key, None)
        if self.n_waiting >= MOST_WAITING:
            if self._events:
                self._events.popleft()
            else:
                max(boxes.values(), key=len).popitem(last=False)
            self.counts.dropped += 1
        box = boxes[delay]
        if not box:
            self._wake.set()
        box[key] = _Message(self._clock() + _seconds(delay), send)

    def add_event(
        self, about: Mapping[str, str], reason: str, message: str, *, is_warning: bool
    ) -> None:
        """Have an event written on an object."""
        number, events, now = self.next_number(), self._events, self._clock()
        message = message[: encode.MAX_MESSAGE]
        if len(events) >= MOST_EVENTS:
            events.popleft()
            self.counts.dropped += 1
        if not events:
            self._wake.set()
        names = tuple(about.get(each, "") for each in _REFERENCE)
        events.append(_Event(number, now, names, reason, message, is_warning))

    async def run(self) -> None:
        """Tell, for ever."""
        while True:
            self._wake.clear()
            now = self._clock()
            box = self._next(now)
            if box is not None:
                sent = await self._tell_first(box)
                sent = sent and box is not self._boxes[Delay.URGENT]
            elif self._events and not self._is_binding():
                sent = await self._tell_event()
            else:
                await self._sleep(now)
                continue
            if sent:
                slow = 10 if self._is_binding() else 1
                await asyncio.sleep(slow / PER_SECOND)

    async def flush(self, timeout_s: float) -> None:
        """Tell what there is, for a short while, before the end."""
        end = self._clock() + timeout_s
        while self._clock() < end:
            box = next(filter(None, self._boxes.values()), None)
            if box is not None:
                await self._tell_first(box, again=False)
            elif self._events:
                await self._tell_event()
            else:
                return

    async def _tell_first(self, box: _Box, *, again: bool = True) -> bool:
        """Tell what is first in a box; whether there was anything to send."""
        key, message = box.popitem(last=False)
        found, is_sent = await self._tell(key, message.send)
        if again and not is_sent:
            self._again(key, message)
        return found

    async def _tell_event(self) -> bool:
        """Write the oldest event; whether there was anything to send."""
        event = self._events.popleft()
        key = "event", str(event.number)
        found, _is_sent = await self._tell(key, partial(self._request_of, event))
        return found

    async def _tell(
        self, key: Key, send: Callable[[], Request | None]
    ) -> tuple[bool, bool]:
        """Whether there was anything to send, and whether nothing of it is left."""
        try:
            found = send()
        except Exception as error:  # noqa: BLE001 - one message stops no other
            self.counts.failed += 1
            about = " ".join(key)
            self._say(
                "status not written",
                object=about,
                why=told(error),
                trace=trace_of(error),
            )
            return False, True
        return found is not None, found is None or await self._send(*found)

    def _again(self, key: Key, message: _Message) -> None:
        """What the API server did not hear is told a little later, as it is then.

        A job whose phase stays untold never gets its pods.
        """
        self._lost(key)
        if all(key not in box for box in self._boxes.values()):
            self.put(key, message.send, Delay.SETTLED)

    def _next(self, now: float) -> _Box | None:
        """Where the next message is: urgent ones, and those that are due.

        Of these, phases come first: of conditions there may be thousands.
        """
        boxes = self._boxes
        if boxes[Delay.URGENT]:
            return boxes[Delay.URGENT]
        due = [(at, delay) for at, delay in self._fronts() if at <= now]
        if due:
            phases = any(delay is Delay.PHASE for _at, delay in due)
            return boxes[Delay.PHASE if phases else min(due, key=_when)[1]]
        return None

    def _fronts(self) -> Iterator[tuple[float, Delay]]:
        """When the first message of each box is due, for those that have a delay."""
        for delay, box in self._boxes.items():
            if delay is not Delay.URGENT and box:
                yield box[next(iter(box))].due, delay

    async def _sleep(self, now: float) -> None:
        """Until something may be due, or there is more to tell."""
        wait: float | None = None
        first = min(self._fronts(), key=_when, default=None)
        if first is not None:
            wait = max(0.02, first[0] - now)
        if self._events:  # they wait for the last binding
            wait = BUSY_S if wait is None else min(wait, BUSY_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._wake.wait()

    async def _send(self, method: str, path: str, body: bytes, kind: str) -> bool:
        """Send a message; whether the API server has heard it, and may have refused."""
        fenced = not path.endswith("/events")  # events need no fence
        call = partial(self._api.call, kind=kind, lane="tell", fenced=fenced)
        try:
            answer = await call(method, path, body)
            if answer.is_missing and "/podgroups/" in path:
                # Volcano's has no status of its own; others are gone.
                answer = await call(method, path.removesuffix("/status"), body)
        except Unreachable:
            self.counts.refused += 1
            return False
        self.counts.sent += answer.ok
        self.counts.refused += not answer.ok
        if not answer.ok and "/queues/" in path:
            self._lost(("queue", path.split("/")[-2]))  # it may be made yet
        if not (answer.ok or answer.is_missing):
            self._note_refusal(method, path, answer)
        return not (answer.is_transient or answer.status == UNAUTHORIZED)

    def _note_refusal(self, method: str, path: str, answer: Answer) -> None:
        """Say in the log what is not heard, of each kind of object once in a row."""
        what = [part for part in path.split("/") if part in TOLD]
        kind = "/".join(what) or path
        if self._refusals.is_new(kind, answer.status):
            why = answer.words()
            self._say(
                "status not written", object=kind, method=method, path=path, why=why
            )

    def _request_of(self, event: _Event) -> Request:
        """How an event is written."""
        pairs = zip(_REFERENCE, event.about, strict=True)
        about = {field: value for field, value in pairs if value}
        body = encode.event(
            about,
            event.reason,
            event.message,
            event.at,
            number=event.number,
            is_warning=event.is_warning,
            reporter=self._name,
        )
        namespace = about.get("namespace") or "default"
        return "POST", f"/api/v1/namespaces/{namespace}/events", body, _JSON


def _seconds(delay: Delay) -> float:
    match delay:
        case Delay.PHASE:
            return SETTLE_S / 4
        case Delay.SETTLED:
            return SETTLE_S
    return 0.0


def _when(front: tuple[float, Delay]) -> float:
    return front[0]
