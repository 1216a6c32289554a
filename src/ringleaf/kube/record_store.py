"""The records of repairs: one ConfigMap a job, in the scheduler's own namespace.

A record says where the pods of a job were and which of them are about to be deleted, so
its writer decides over chips and pods. Tenants write PodGroups, where records were kept
before; they cannot write in the namespace of the scheduler.

The name of a ConfigMap is a digest of the job and of the uid of its PodGroup, which are
also in its data: a record is never taken for that of another job of the same name. The
leader alone writes. It lists all records before it begins to lead; every write is for
the version that it knows, so that a late write of the previous leader fails.
"""

import asyncio
from collections.abc import Callable
from hashlib import blake2s
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from ringleaf.kube import encode
from ringleaf.kube.answers import CONFLICT, GONE, SERVER_ERROR, Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.config_maps import config_maps_path
from ringleaf.kube.objects import ConfigMap, Metadata
from ringleaf.kube.watch import Gone, Reflector, refusal

LABEL: Final = "ringleaf.io/record"
"""The label of every ConfigMap of ours; its value is ``repair``."""
QUERY: Final = f"labelSelector={quote(LABEL, safe='')}"
PREFIX: Final = "ringleaf-repair-"
MOVED: Final = "ringleaf-repairs-moved"
"""The ConfigMap that says that records on PodGroups were moved, and count no more."""
JOB, UID, RECORD = "job", "podgroup-uid", "record"
PAGE: Final = 100
"""ConfigMaps that are listed at a time."""
PAUSE_S: Final = 0.25
TRIES: Final = 3
"""Requests of one write; the caller tries again."""
_DONE: Final = Answer(200, b"")
_LABELS: Final = {LABEL: "repair"}
ANY: Final = ""
"""A version of which nothing is known but that there may be one."""


class Stored(NamedTuple):
    """A record: of which job, by the uid of its PodGroup."""

    job: str
    uid: str
    text: str


class _ListMeta(Struct, rename="camel"):
    token: str = field(default="", name="continue")


class _Page(Struct):
    metadata: _ListMeta = field(default_factory=_ListMeta)
    items: list[ConfigMap] | None = None


class _Written(Struct):
    metadata: Metadata = field(default_factory=Metadata)


def name_of(job: str, uid: str) -> str:
    """The name of the ConfigMap for a job.

    >>> name_of("team/train", "1-2-3")
    'ringleaf-repair-b8ebe844d5e544e7d1b70af8f76072e10c0669a9'
    """
    return f"{PREFIX}{blake2s(f'{job} {uid}'.encode(), digest_size=20).hexdigest()}"


class RecordStore:
    """Reads and writes the ConfigMaps.

    Args:
        api: The API server.
        namespace: Where they are.
        say: Writes a line of the log.

    """

    def __init__(self, api: Api, namespace: str, say: Callable[..., None]) -> None:
        self._api, self._say = api, say
        self._path = config_maps_path(namespace)
        self._namespace = namespace
        self._versions: dict[str, str] = {}
        """Name -> version, of all that are there as far as we know."""
        self.is_read = False
        """Whether all were read, when they were last to be."""
        self.is_moved = False
        """Whether records that were on PodGroups count no more."""

    def has(self, job: str, uid: str) -> bool:
        """Whether there is a record of a job, as far as is known."""
        return name_of(job, uid) in self._versions

    async def read(self, is_pointless: Callable[[], bool]) -> list[Stored] | None:
        """All records; None where they cannot be read, or once that is pointless."""
        maps, token, self.is_read = list[ConfigMap](), "", False
        while True:
            answer = await self._page(token, is_pointless)
            if answer is None:
                return None
            if answer.status == GONE and token:
                maps, token = [], ""  # it took too long to read them all
                continue
            if not answer.ok:
                why = refusal(answer.status, answer.body)
                self._say("repairs not read", namespace=self._namespace, why=why)
                return None
            page = msgspec.json.decode(answer.body, type=_Page)
            maps += page.items or []
            token = page.metadata.token
            if not token:
                break
        self._versions = {
            each.metadata.name: each.metadata.resource_version for each in maps
        }
        self.is_read, self.is_moved = True, MOVED in self._versions
        return [stored for each in maps if (stored := _stored(each)) is not None]

    async def _page(
        self, token: str, is_pointless: Callable[[], bool]
    ) -> Answer | None:
        """A part of the list, however often it must be asked for."""
        query = f"{QUERY}&limit={PAGE}"
        more = f"&continue={quote(token, safe='')}" if token else ""
        while True:
            try:
                answer = await self._api.call(
                    "GET", f"{self._path}?{query}{more}", lane="read"
                )
            except Unreachable:
                answer = Answer(SERVER_ERROR, b"")
            if not answer.is_transient:
                return answer
            if is_pointless():
                return None
            await asyncio.sleep(PAUSE_S)

    async def write(self, job: str, uid: str, text: str) -> Answer:
        """Write the record of a job; raises ``Unreachable``."""
        return await self._put(name_of(job, uid), {JOB: job, UID: uid, RECORD: text})

    async def note_moved(self) -> Answer:
        """Write down that records on PodGroups count no more."""
        answer = await self._put(MOVED, {})
        self.is_moved = answer.ok
        return answer

    async def _put(self, name: str, data: dict[str, str]) -> Answer:
        """Write a ConfigMap, whether it is there or not."""
        answer = Answer(CONFLICT, b"")
        for _try in range(TRIES):
            version = self._versions.get(name)
            self._versions.setdefault(name, ANY)  # it may be, whatever the answer
            if version is None:
                answer = await self._create(name, data)
            else:
                answer = await self._change(name, data, version)
            if answer.ok:
                found = msgspec.json.decode(answer.body, type=_Written)
                self._versions[name] = found.metadata.resource_version
            elif answer.is_conflict:
                self._versions[name] = ANY  # a late write of the previous leader
                continue
            elif answer.is_missing and version is not None:
                del self._versions[name]
                continue
            break
        return answer

    async def _create(self, name: str, data: dict[str, str]) -> Answer:
        meta = {"name": name, "namespace": self._namespace, "labels": _LABELS}
        plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        body = encode.encode(plain | {"data": data})
        return await self._api.call("POST", self._path, body)

    async def _change(self, name: str, data: dict[str, str], version: str) -> Answer:
        meta: dict[str, object] = {"labels": _LABELS}
        if version != ANY:
            meta["resourceVersion"] = version
        body = encode.encode({"metadata": meta, "data": data})
        path = f"{self._path}/{name}"
        return await self._api.call("PATCH", path, body, kind=encode.MERGE)

    async def remove(self, job: str, uid: str) -> Answer:
        """Remove the record of a job, if there is one; raises ``Unreachable``."""
        name, answer = name_of(job, uid), _DONE
        for _try in range(TRIES):
            version = self._versions.get(name)
            if version is None:
                break
            sure = {"resourceVersion": version} if version != ANY else {}
            body = encode.encode({"preconditions": sure})
            answer = await self._api.call("DELETE", f"{self._path}/{name}", body)
            if answer.ok or answer.is_missing:
                del self._versions[name]
                return _DONE
            if answer.is_conflict:
                self._versions[name] = ANY
                continue
            break
        return answer


def watch_records(
    api: Api, namespace: str, heard: Callable[[list[Stored]], None]
) -> Reflector[ConfigMap]:
    """A reflector that tells all records whenever one of them changes."""
    known: dict[str, Stored] = {}

    def put(maps: list[ConfigMap]) -> None:
        for each in maps:
            stored = _stored(each)
            if stored is not None:
                known[each.metadata.key] = stored
        heard([*known.values()])

    def drop(gone: list[Gone]) -> None:
        for each in gone:
            known.pop(each.key, None)
        heard([*known.values()])

    return Reflector(
        api,
        config_maps_path(namespace),
        ConfigMap,
        query=QUERY,
        put=put,
        drop=drop,
        optional=True,
    )


def _stored(found: ConfigMap) -> Stored | None:
    """The record that a ConfigMap is; None for one that is none."""
    data = found.data or {}
    stored = Stored(data.get(JOB, ""), data.get(UID, ""), data.get(RECORD, ""))
    is_one = found.metadata.name == name_of(stored.job, stored.uid)
    return stored if is_one else None
