"""What a leader has learnt, kept for the next one, each thing in its own ConfigMap.

They are in the scheduler's own namespace, where tenants cannot write. Each is read when
a scheduler starts and before it leads, and written by the leader alone, at most once a
minute, and before it ends. What cannot be read is read again later, and not written
over before. That it cannot be read or written is logged, and stops nothing.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.config_maps import config_maps_path, patch_or_create
from ringleaf.kube.log_once import LogOnce
from ringleaf.kube.objects import ConfigMap
from ringleaf.kube.watch import Gone, Reflector, refusal

QUERY: Final = "fieldSelector=metadata.name%3D"
"""The scheduler may list ConfigMaps of its namespace, not read one by its name."""
PAUSE_S: Final = 60.0
READ_S: Final = 5.0
"""How long reading may take."""


class BadNote(ValueError):  # noqa: N818 - what was found
    """The ConfigMap has something else than what is kept in it."""


class _Maps(Struct):
    items: list[ConfigMap] | None = None


class Note(Protocol):
    """What is kept in one ConfigMap, under one key.

    Args:
        name: Of the ConfigMap.
        key: Under which it is in there.
        empty: The text where there is nothing to keep.

    """

    name: str
    key: str
    empty: str

    def text(self) -> str | None:
        """What is to be kept; None until the engine has heard what was read."""

    def read(self, text: str) -> None:
        """Take over what was kept. Raises ``BadNote``."""


class NoteStore:
    """Reads and writes a ConfigMap.

    Args:
        api: The API server.
        namespace: Where it is.
        note: What is in it.
        say: Writes a line of the log.

    """

    def __init__(
        self, api: Api, namespace: str, note: Note, say: Callable[..., None]
    ) -> None:
        self._api, self._namespace, self._note, self._say = api, namespace, note, say
        self._written = note.empty
        """What the ConfigMap has."""
        self._logged = LogOnce()
        self._writes = False
        """Whether this scheduler leads."""
        self._is_read = False
        """Whether it is known what was there; before, nothing is written over it."""
        self._turn = asyncio.Lock()

    @property
    def title(self) -> str:
        """What is kept, for people and tasks."""
        return self._note.key.replace("-", " ")

    async def read(self) -> None:
        """Read what the previous leader has written, as far as it can be read."""
        self._is_read = False
        try:
            async with asyncio.timeout(READ_S):
                path = f"{config_maps_path(self._namespace)}?{QUERY}{self._note.name}"
                answer = await self._api.call("GET", path, lane="read")
        except (Unreachable, TimeoutError):
            return
        if not answer.ok:
            self._tell("not read", refusal(answer.status, answer.body))
            return
        self._is_read = True
        try:
            self._written = self._found(answer) or self._note.empty
            self._note.read(self._written)
        except (BadNote, msgspec.MsgspecError) as error:
            self._tell("ignored", str(error))

    def _found(self, answer: Answer) -> str:
        """What is in the ConfigMap; nothing where there is none."""
        maps = msgspec.json.decode(answer.body, type=_Maps).items or ()
        own = (each for each in maps if each.metadata.name == self._note.name)
        return next(((each.data or {}).get(self._note.key, "") for each in own), "")

    async def run(self) -> None:
        """Write what changes, at most once a minute, as long as it leads."""
        self._writes = True
        try:
            while True:
                await asyncio.sleep(PAUSE_S)
                await self._write()
        finally:
            self._writes = False

    async def flush(self) -> None:
        """Write what a leader has not written yet, before it ends."""
        if self._writes:
            await self._write()

    async def _write(self) -> None:
        """Write what the engine knows, if that is another than was written.

        What could not be read before is read first, and the engine hears of it: else
        it would be lost.
        """
        async with self._turn:
            if not self._is_read:
                await self.read()
                return
            text = self._note.text()
            if text in (None, self._note.empty, self._written):
                return
            try:
                data = {self._note.key: text}
                where = self._namespace, self._note.name
                answer = await patch_or_create(self._api, *where, data)
            except Unreachable:
                return
            if answer.ok:
                self._written = text
                self._logged.forget(None)
            else:
                self._tell("not written", refusal(answer.status, answer.body))

    def _tell(self, what: str, why: str) -> None:
        """Log why it is not kept, once in a row."""
        if self._logged.is_new(None, why):
            where = f"{self._namespace}/{self._note.name}"
            with suppress(Exception):  # nothing of this may stop a scheduler
                self._say(f"{self.title} {what}", object=where, why=why[:300])


def watch_note(api: Api, namespace: str, note: Note) -> Reflector[ConfigMap]:
    """A reflector that reads what is kept whenever it changes."""

    def put(maps: list[ConfigMap]) -> None:
        for each in maps:
            with suppress(BadNote, msgspec.MsgspecError):
                note.read((each.data or {}).get(note.key) or note.empty)

    def drop(_gone: list[Gone]) -> None:
        return

    return Reflector(
        api,
        config_maps_path(namespace),
        ConfigMap,
        query=f"{QUERY}{note.name}",
        put=put,
        drop=drop,
        optional=True,
    )
