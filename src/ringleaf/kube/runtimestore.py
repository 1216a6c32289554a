"""How long jobs ran that have ended, kept for the next leader in one ConfigMap.

It is in the scheduler's own namespace, where tenants cannot write: running times decide
which jobs start before others. It is read when a scheduler starts and before it leads,
and written by the leader alone, at most once a minute, and before it ends. What cannot
be read is read again later, and not written over before. That it cannot be read or
written is logged, and stops nothing: predictions come back with the jobs that end.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from ringleaf.framework.run_times import RunSeries, RunTimes
from ringleaf.kube import encode
from ringleaf.kube.api import Answer, Api, Unreachable
from ringleaf.kube.objects import ConfigMap
from ringleaf.kube.recordstore import maps_path
from ringleaf.kube.watch import refusal
from ringleaf.model.run_time import Similarity

NAME: Final = "ringleaf-run-times"
KEY: Final = "run-times"
QUERY: Final = f"fieldSelector=metadata.name%3D{NAME}"
"""The scheduler may list ConfigMaps of its namespace, not read one by its name."""
PAUSE_S: Final = 60.0
READ_S: Final = 5.0
"""How long reading may take."""
MOST_BYTES: Final = 900 * 1024
NOT_FOUND: Final = 404
NOTHING: Final = "[]"
"""No series, as the ConfigMap has them."""
STEPS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
"""Step of the grid -> the character that stands for it."""
_STEP: Final = {character: step for step, character in enumerate(STEPS)}

_Row = tuple[str, str, str, str, int, str]
"""What the jobs share: by what, queue, user, name, chips; and their running times."""


class BadRunTimes(ValueError):  # noqa: N818 - what was found
    """The ConfigMap has something else than running times."""


class _Maps(Struct):
    items: list[ConfigMap] | None = None


def text_of(series: Iterable[RunSeries]) -> str:
    """*series* as the ConfigMap has them, without the oldest where there is no room.

    >>> text_of([RunSeries(Similarity.CHIPS, "q", chips=8, steps=(0, 12, 60))])
    '[["chips","q","","",8,"0Cy"]]'
    """
    rows = [
        (
            *(str(each.by), each.queue, each.user, each.name, each.chips),
            "".join(STEPS[step] for step in each.steps),
        )
        for each in series
    ]
    while len(text := msgspec.json.encode(rows)) > MOST_BYTES:
        rows = rows[len(rows) // 8 + 1 :]
    return text.decode()


def series_in(text: str) -> tuple[RunSeries, ...]:
    """The series of a ConfigMap. Raises ``BadRunTimes``.

    >>> series_in('[["user","q","ann","",0,"AB"]]')[0].steps
    (10, 11)
    """
    try:
        rows = msgspec.json.decode(text, type=list[_Row])
        return tuple(
            RunSeries(
                *(Similarity(by), queue, user, name, chips),
                steps=tuple(_STEP[character] for character in steps),
            )
            for by, queue, user, name, chips, steps in rows
        )
    except (ValueError, KeyError, RecursionError) as error:
        raise BadRunTimes(f"{KEY} cannot be read: {error}") from None


class RunTimeStore:
    """Reads and writes the ConfigMap.

    Args:
        api: The API server.
        namespace: Where it is.
        run_times: What the engine knows; None until it has heard what was read.
        known: Takes over what was read.
        say: Writes a line of the log.

    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        run_times: Callable[[], RunTimes | None],
        known: Callable[[tuple[RunSeries, ...]], None],
        say: Callable[..., None],
    ) -> None:
        self._api, self._namespace = api, namespace
        self._run_times, self._known, self._say = run_times, known, say
        self._written = NOTHING
        """What the ConfigMap has."""
        self._seen: tuple[RunTimes, int] | None = None
        """What of the engine is in it, and how many jobs it had counted."""
        self._said = ""
        self._writes = False
        """Whether this scheduler leads."""
        self._is_read = False
        """Whether it is known what was there; before, nothing is written over it."""
        self._turn = asyncio.Lock()

    async def read(self) -> None:
        """Read what the previous leader has written, as far as it can be read."""
        self._is_read = False
        try:
            async with asyncio.timeout(READ_S):
                path = f"{maps_path(self._namespace)}?{QUERY}"
                answer = await self._api.call("GET", path, lane="read")
        except (Unreachable, TimeoutError):
            return
        if not answer.ok:
            self._tell("not read", refusal(answer.status, answer.body))
            return
        self._is_read = True
        try:
            self._written = self._found(answer) or NOTHING
            self._known(series_in(self._written))
        except (BadRunTimes, msgspec.MsgspecError) as error:
            self._tell("ignored", str(error))

    @staticmethod
    def _found(answer: Answer) -> str:
        """What is in the ConfigMap; nothing where there is none."""
        maps = msgspec.json.decode(answer.body, type=_Maps).items or ()
        own = (each for each in maps if each.metadata.name == NAME)
        return next(((each.data or {}).get(KEY, "") for each in own), "")

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
            known = self._run_times()
            if known is None or (known, known.learnt) == self._seen:
                return
            seen, text = (known, known.learnt), text_of(known.series)
            if text in (NOTHING, self._written):
                self._seen = seen
                return
            try:
                answer = await self._send({KEY: text})
            except Unreachable:
                return
            if answer.ok:
                self._written, self._seen, self._said = text, seen, ""
            else:
                self._tell("not written", refusal(answer.status, answer.body))

    async def _send(self, data: dict[str, str]) -> Answer:
        """Write *data*, whether the ConfigMap is there or not."""
        path = maps_path(self._namespace)
        body = encode.encode({"data": data})
        answer = await self._api.call(
            "PATCH", f"{path}/{NAME}", body, kind=encode.MERGE, lane="tell"
        )
        if answer.status != NOT_FOUND:
            return answer
        plain = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": self._namespace},
            "data": data,
        }
        return await self._api.call("POST", path, encode.encode(plain), lane="tell")

    def _tell(self, what: str, why: str) -> None:
        """Log why running times are not kept, once in a row."""
        if self._said != why:
            self._said = why
            where = f"{self._namespace}/{NAME}"
            with suppress(Exception):  # nothing of this may stop a scheduler
                self._say(f"run times {what}", object=where, why=why[:300])
