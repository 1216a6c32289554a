"""Keeping up with one kind of object: a list, then what changes, for ever.

The list is consistent (it asks for no old version) and comes in pages; each is decoded
into the fields that are used and forgotten. The watch goes on from the version of the
list and is taken up again from the last version seen, also after an error. When the
API server no longer knows that version, the list is read anew, and only what differs is
passed on.

Versions of one kind only grow, so an event that is not newer than the last one seen is
a repetition and is passed over; a list is the truth whatever its version.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from math import inf
from time import time
from typing import Any, Final, Generic, Protocol, TypeVar, cast
from urllib.parse import quote
from zlib import crc32

import msgspec
from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from ringleaf.kube.answers import GONE, NOT_ALLOWED, RELIST, Answer
from ringleaf.kube.api import Api, Refused, TooLarge, Unreachable
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.depth import decoded
from ringleaf.kube.objects import Metadata
from ringleaf.model.topology import quoted

WATCH_S: Final = 300
"""Seconds after which the API server is asked to end a watch; a little is added."""
IDLE_S: Final = 420.0
"""Seconds of silence after which a watch counts as lost.

A kind that does not change may be silent until the watch ends; connections whose other
side is gone are noticed by TCP.
"""
LIST_S: Final = 60.0
MOST_BYTES: Final = 32 << 20
"""Bytes of a page. An object may have some megabytes, and a page of them more than the
memory that we may have.
"""
BATCH: Final = 50
"""Objects of a page that are passed on at a time: a pod of the most words that it may
have takes 10 ms to read.
"""
GROWTH, MOST_GROWTH = 4, 16
"""By how much pages grow when a list takes too long, and how large they become."""
SHRINKAGE: Final = 8
"""By how much pages shrink that are too large."""
DOUBTS: Final = 5
"""Errors in a row with which watches ended before their version is doubted."""
SHORT_S: Final = 1.0
"""A watch that ends earlier counts as failed."""
FIRST_S, MOST_S = 0.1, 5.0
"""The first and the longest pause after a failure."""
SLOW_S: Final = 10.0
"""The longest pause when we are not allowed to look."""


class Object(Protocol):
    """Any object of Kubernetes."""

    @property
    def metadata(self) -> Metadata:
        """What every object has."""


T = TypeVar("T", bound=Object)
_Any = TypeVar("_Any")
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError)


class Gone(Struct, frozen=True):
    """An object that is no more."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone, as in ``Metadata``."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Reflector(Generic[T]):
    """Tells what there is of one kind, and what becomes of it.

    Args:
        api: the API server.
        path: of the list, as ``/api/v1/pods``.
        kind: the struct to decode into.
        query: more of the query, as ``fieldSelector=status.phase%21%3DSucceeded``.
        put: gets objects that are new or have changed, in order.
        drop: gets objects that are gone. Its calls and those of *put* are in the order
            of the events; an object made anew under its old name is dropped first.
        listed: called whenever a list is complete.
        page: objects per page of a list.
        optional: the kind may be unknown to the API server; then there are none.
        name: what the kind is called, where its path does not say it.
        trouble: is told, in one line, what does not work; not twice in a row.
        unread: is told of objects that are there and cannot be read, by their keys,
            with all that is written of them.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        kind: type[T],
        *,
        query: str = "",
        put: Callable[[list[T]], None],
        drop: Callable[[list[Gone]], None],
        listed: Callable[[], None] = lambda: None,
        page: int = 1000,
        optional: bool = False,
        name: str = "",
        trouble: Callable[[str], None] = lambda _line: None,
        unread: Callable[[str, bytes], None] = lambda _key, _raw: None,
    ) -> None:
        self._api = api
        self.path = path
        self.kind = name or path.rpartition("/")[2]
        self.n_lists = self.n_watches = self.n_failures = 0
        self.heard_at = 0.0
        """When the API server last said something of it, in seconds since 1970."""
        self.newest: tuple[str, float] | None = None
        """When the object was made that came last, and when it was heard of."""
        self._query = query
        self._put = put
        self._drop = drop
        self._listed = listed
        self._page = self._first_page = page
        self._optional = optional
        self._trouble, self._unread = trouble, unread
        self._known: dict[str, _Known] = {}
        self._puts: list[T] = []
        self._drops: list[Gone] = []
        self._version = ""
        self._newest = 0
        self.latest = 0
        """The version of the object that changed last, of all that were heard of.

        Other watches of the same kind receive it as well, unlike the version of a list
        or of a bookmark of this watch.
        """
        self._failures = self._errors = 0
        self._last_trouble = ""
        written: Any = kind  # a type that is a value is beyond mypy
        self._pages: Decoder[_Page[T]] = Decoder(_Page[written])
        self._events: Decoder[_Event[T]] = Decoder(_Event[written])
        self._one: Decoder[T] = Decoder(written)
        self.synced = False
        """Whether all there was has been passed on once."""

    @property
    def version(self) -> int:
        """Up to which version everything is known."""
        return self._newest

    def renew(self) -> None:
        """Have the next ``run`` begin with a list; it must not be running."""
        self._version = ""
        self.synced = False

    def __len__(self) -> int:
        return len(self._known)

    async def run(self) -> None:
        """List and watch, for ever."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except _Again as again:
                await asyncio.sleep(again.pause_s)

    async def _list(self) -> None:
        """Pass on what has changed since the last list or event.

        The next page is on its way while one is passed on.
        """
        self.n_lists += 1
        seen: set[str] = set()
        version = ""
        coming: asyncio.Task[bytes] | None = asyncio.create_task(self._fetch(""))
        try:
            while coming is not None:
                page = self._decoded_page(await coming, seen)
                token = page.metadata.continue_
                coming = asyncio.create_task(self._fetch(token)) if token else None
                await asyncio.sleep(0)
                version = version or page.metadata.resource_version
                items = page.items or []
                for at in range(0, len(items), BATCH):
                    self._pass_on_page(items[at : at + BATCH], seen)
                    await asyncio.sleep(0)
        finally:
            if coming is not None:
                coming.cancel()
        if not version:
            raise self._failed(f"list {self.path}: no resourceVersion, want one")
        self._vanish(sorted(self._known.keys() - seen))
        self._flush()
        self._version = version
        self._newest = _number(version)
        self._last_trouble = ""
        self._errors = 0
        self._page = max(self._first_page, self._page // GROWTH)
        self.heard_at = time()
        self.synced = True
        self._listed()

    async def _fetch(self, token: str) -> bytes:
        """A page of the list, as it is written."""
        more = f"&continue={quote(token, safe='')}" if token else ""
        url = self._url(f"limit={self._page}{more}")
        most = MOST_BYTES if self._page > 1 else inf
        try:
            answer = await self._api.call(
                "GET", url, timeout_s=LIST_S, lane="read", most_bytes=most
            )
        except TooLarge:
            self._page = max(1, self._page // SHRINKAGE)
            return await self._fetch(token)
        except Unreachable as error:
            raise self._failed(f"list {self.path}: {error}") from None
        if answer.ok:
            if self._page < self._first_page:  # pages that follow may be small again
                self._page = min(2 * self._page, self._first_page)
            return answer.body
        if answer.is_missing and self._optional:
            raise self._not_there()
        if answer.status == GONE:
            # The token was too old at the end: fewer and larger pages take less time.
            self._page = min(GROWTH * self._page, MOST_GROWTH * self._first_page)
        raise self._refused("list", answer)

    def _decoded_page(self, body: bytes, seen: set[str]) -> "_Page[T]":
        try:
            return decoded(self._pages.decode, body)
        except _UNREADABLE:
            pass
        try:
            page = decoded(_RAW_PAGES.decode, body)
        except _UNREADABLE as error:
            raise self._failed(f"list {self.path}: {error}, want a list") from None
        items = [self._decoded(item, seen) for item in page.items or []]
        return _Page(page.metadata, [item for item in items if item is not None])

    def _decoded(self, raw: Raw, seen: set[str]) -> T | None:
        """The object; of one that cannot be read, what was known stays."""
        try:
            return decoded(self._one.decode, raw)
        except _UNREADABLE as error:
            seen.add(self._pass_over(raw, error))
            return None

    def _pass_over(self, raw: Raw, error: Exception) -> str:
        """Tell about an object that cannot be read; its key, as far as it has one."""
        metadata = _bare(raw).metadata
        key = metadata.key
        if metadata.uid:
            known = self._known.get(key)
            if known is not None and known.uid != metadata.uid:
                self._vanish((key,))
            self._known[key] = _Known(metadata.resource_version, metadata.uid)
        self._flush()
        self._unread(key, bytes(raw))
        self._tell(f"{self.path}: object {quoted(key)} is skipped: {error}")
        return key

    def _pass_on_page(self, items: list[T], seen: set[str]) -> None:
        fresh: list[tuple[T, str]] = []
        replaced: list[str] = []
        for item in items:
            metadata = item.metadata
            self.latest = max(self.latest, _number(metadata.resource_version))
            key = metadata.key
            seen.add(key)
            if (known := self._known.get(key)) is not None:
                if known.version == metadata.resource_version:
                    continue
                if known.uid != metadata.uid:
                    replaced.append(key)
            fresh.append((item, key))
        self._vanish(replaced)
        for item, key in fresh:
            self._take(item, key)
        self._flush()

    def _not_there(self) -> "_Again":
        """The API server does not know the kind: there are no objects of it."""
        self.heard_at = time()
        self._vanish(sorted(self._known))
        self._flush()
        if not self.synced:
            self.synced = True
            self._listed()
        return _Again(MOST_S)

    async def _watch(self) -> None:
        """Pass on events until the watch ends."""
        self.n_watches += 1
        loop = asyncio.get_running_loop()
        started = loop.time()
        seconds = WATCH_S + crc32(self.path.encode()) % 60
        url = self._url(
            f"watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}"
            f"&resourceVersion={self._version}"
        )
        try:
            async with aclosing(self._api.stream(url, idle_s=IDLE_S)) as blocks:
                async for block in blocks:
                    self._pass_on_block(block)
                    self._well()
                    await asyncio.sleep(0)
        except Unreachable as error:
            raise self._failed(f"watch {self.path}: {error}") from None
        except Refused as refused:
            if refused.status in RELIST:
                self._version = ""
            raise self._refused("watch", refused.answer) from None
        if loop.time() - started < SHORT_S:
            raise self._failed(f"watch {self.path}: ended at once")
        self.heard_at = time()
        self._well()

    def _pass_on_block(self, block: bytes) -> None:
        """Pass on what has changed, in runs of objects to put and to drop."""
        self.heard_at = time()
        try:
            for event in self._read_events(block):
                self._heed(event.type, event.object)
        finally:
            self._flush()

    def _read_events(self, block: bytes) -> "Iterable[_Event[T]]":
        try:
            events = decoded(self._events.decode_lines, block)
        except _UNREADABLE:
            return self._one_by_one(block)
        if any(event.type == "ERROR" for event in events):
            return self._one_by_one(block)
        return events

    def _one_by_one(self, block: bytes) -> "Iterator[_Event[T]]":
        """The same with care: objects that cannot be read, errors, no events at all."""
        for line in block.splitlines():
            try:
                event = decoded(_RAW_EVENTS.decode, line)
            except _UNREADABLE as error:
                # It may have been any event: list again.
                self._version = ""
                raise self._failed(
                    f"watch {self.path}: {error}, want an event"
                ) from None
            if event.type == "ERROR":
                raise self._ended(event.object)
            try:
                yield _Event(event.type, decoded(self._one.decode, event.object))
            except _UNREADABLE as error:
                if event.type == "DELETED":
                    yield _Event(event.type, cast("T", _bare(event.object)))
                else:
                    self._pass_over(event.object, error)

    def _heed(self, what: str, item: T) -> None:
        metadata = item.metadata
        version = metadata.resource_version
        newest = _number(version)
        if 0 < newest <= self._newest:
            return
        if what != "BOOKMARK":
            self.latest = newest
            key = metadata.key
            known = self._known.get(key)
            if what == "DELETED":
                if known is not None and known.uid == metadata.uid:
                    self._vanish((key,))
            elif known is None:
                self.newest = metadata.creation_timestamp, self.heard_at
                self._take(item, key)
            elif known.version != version:
                if known.uid != metadata.uid:
                    self._vanish((key,))
                self._take(item, key)
        self._version = version
        self._newest = newest

    def _take(self, item: T, key: str) -> None:
        if self._drops:
            self._flush()
        self._known[key] = _Known(item.metadata.resource_version, item.metadata.uid)
        self._puts.append(item)

    def _vanish(self, keys: Iterable[str]) -> None:
        for key in keys:
            namespace, _slash, name = key.rpartition("/")
            self._drops.append(Gone(namespace, name, self._known.pop(key).uid))

    def _flush(self) -> None:
        """Pass on: puts first, since nothing is put while drops are held back."""
        if self._puts:
            puts, self._puts = self._puts, []
            self._put(puts)
        if self._drops:
            drops, self._drops = self._drops, []
            self._drop(drops)

    def _url(self, more: str) -> str:
        return f"{self.path}?{self._query}{'&' if self._query else ''}{more}"

    def _ended(self, raw: Raw) -> "_Again":
        """The watch ends with an error: only some make its version useless."""
        status = _status(raw)
        self._errors += 1
        if status.code in RELIST or self._errors == DOUBTS:
            self._version = ""
        return self._failed(
            f"watch {self.path}: {_reading(status)}", quiet=status.code == GONE
        )

    def _refused(self, verb: str, answer: Answer) -> "_Again":
        status = _status(answer.body)
        status.code = answer.status
        again = self._failed(
            f"{verb} {self.path}: {_reading(status)}",
            most_s=SLOW_S if answer.status in NOT_ALLOWED else MOST_S,
            quiet=answer.status == GONE or (answer.is_missing and self._optional),
        )
        return _Again(max(again.pause_s, answer.retry_after or 0.0))

    def _failed(
        self, line: str, *, most_s: float = MOST_S, quiet: bool = False
    ) -> "_Again":
        """The pause after a failure: it grows, and is not the same for all kinds."""
        if not quiet:
            self._tell(line)
        pause = backoff_s(FIRST_S, self._failures, most_s)
        self._failures += 1
        self.n_failures += 1
        spread = crc32(f"{self.path} {self._failures}".encode()) % 256 / 512
        return _Again(pause * (1.0 - spread))

    @property
    def failing(self) -> str:
        """Why it hears nothing at the moment; empty where it does."""
        return self._last_trouble if self._failures else ""

    def _well(self) -> None:
        self._failures = self._errors = 0
        self._last_trouble = ""

    def _tell(self, line: str) -> None:
        if line != self._last_trouble:
            self._last_trouble = line
            self._trouble(line)


class _Again(Exception):  # noqa: N818 - it reads as what happens
    """List or watch again after a pause."""

    def __init__(self, pause_s: float) -> None:
        super().__init__()
        self.pause_s = pause_s


class _ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class _Page(Struct, Generic[_Any]):
    metadata: _ListMeta
    items: list[_Any] | None = None


class _Event(Struct, Generic[_Any]):
    type: str
    object: _Any


class _Bare(Struct):
    """What is left of an object that cannot be decoded."""

    metadata: Metadata = field(default_factory=Metadata)


class _Status(Struct):
    """Why the API server said no."""

    code: int = 0
    message: str = ""


class _Known(Struct, frozen=True, gc=False):
    """What was passed on of an object."""

    version: str
    uid: str


_RAW_PAGES: Final = msgspec.json.Decoder(_Page[Raw])
_RAW_EVENTS: Final = msgspec.json.Decoder(_Event[Raw])


_BARE: Final = msgspec.json.Decoder(_Bare)


def _bare(raw: Raw) -> _Bare:
    try:
        return decoded(_BARE.decode, raw)
    except _UNREADABLE:
        return _Bare()


def _status(raw: Raw | bytes) -> _Status:
    try:
        return msgspec.json.decode(raw, type=_Status)
    except _UNREADABLE:
        return _Status()


def _reading(status: _Status) -> str:
    """A refusal in one line.

    >>> _reading(_Status(403, "pods is forbidden"))
    'status 403, pods is forbidden'
    """
    message = " ".join(status.message.split())
    return f"status {status.code}, {message}" if message else f"status {status.code}"


def refusal(status: int, body: bytes) -> str:
    """What the API server said instead of doing what it was asked, in one line.

    >>> refusal(404, b'{"message": "no such namespace"}'), refusal(502, b"<html>")
    ('status 404, no such namespace', 'status 502')
    """
    return _reading(_Status(status, _status(body).message))


def _number(version: str) -> int:
    """Versions of one kind compare as numbers; 0 for one that is none.

    Source: Kubernetes API concepts, "Resource versions".

    >>> _number("10") > _number("9"), _number("")
    (True, 0)
    """
    return int(version) if version.isdecimal() else 0
