"""The ConfigMaps that summaries are kept in: what is there, and how it is changed.

Every ConfigMap of ours carries the version of the summary that it is part of, so that
what was written can be read off it. Every write is for the very ConfigMap that is
known. So another writer is noticed: what it has written is left to it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from ringleaf.kube import encode
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api
from ringleaf.kube.depth import decoded
from ringleaf.kube.objects import Metadata
from ringleaf.kube.rank_table import LABEL, MARK, map_name
from ringleaf.kube.watch import Gone, refusal
from ringleaf.model.topology import quoted

MENDS: Final = 3
"""How often a ConfigMap that another program changed is rewritten."""
MOST_DIGITS: Final = 12

Values = Mapping[str, str | None]


class _Said(Struct):
    """What is read of a summary; never its rank table."""

    job_name: str = ""
    job_id: str = ""
    job_status: str = ""
    operator: str = ""
    time: str = ""
    delete_time: str = field(default="", name="deleteTime")
    cm_index: str = ""


class SummaryMap(Struct):
    """A ConfigMap that may be a summary."""

    metadata: Metadata = field(default_factory=Metadata)
    data: _Said | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self.metadata.key

    @property
    def said(self) -> _Said:
        """Its data."""
        return self.data or _Said()

    @property
    def mark(self) -> str:
        """The version of the summary that it is part of; empty for others' maps."""
        return (self.metadata.annotations or {}).get(MARK, "")

    @property
    def version(self) -> int:
        """How new it is."""
        version = self.metadata.resource_version
        return int(version) if version.isdecimal() else 0

    @property
    def index(self) -> int:
        """Which slice it is; -1 for what is none."""
        said = self.said
        index = whole(said.cm_index, -1)
        named = index >= 0 and self.metadata.name == map_name(said.job_name, index)
        return index if named else -1

    @property
    def job_key(self) -> str:
        """``namespace/id`` of its job."""
        return f"{self.metadata.namespace}/{self.said.job_id}"

    @property
    def job_full_name(self) -> str:
        """``namespace/name`` of its job."""
        return f"{self.metadata.namespace}/{self.said.job_name}"


def whole(text: str, otherwise: int = 0) -> int:
    """A whole number that any user may have written, of twelve digits at most.

    >>> whole("17"), whole("-1"), whole("9" * 5000, -1)
    (17, 0, -1)
    """
    good = text.isdecimal() and text.isascii() and len(text) <= MOST_DIGITS
    return int(text) if good else otherwise


class _Maps(Struct):
    items: list[SummaryMap] | None = None


_decode: Final = msgspec.json.Decoder(SummaryMap).decode
_decode_list: Final = msgspec.json.Decoder(_Maps).decode


class NotWritten(Exception):  # noqa: N818 - it reads as what happened
    """The API server did not do it; *soon* it may."""

    def __init__(self, why: str, *, soon: bool = False) -> None:
        super().__init__(why)
        self.soon = soon


class Taken(Exception):  # noqa: N818 - it reads as what happened
    """Something that is no summary has the name of one."""


class ConfigMapStore:
    """All ConfigMaps that may be summaries.

    Args:
        api: The API server.
        heard: Is told of every ConfigMap that is new or has changed.
        spoiled: Is told of one of ours that another program changed or deleted.
        left: Is told, in one line, of one that is left to others.

    """

    def __init__(
        self,
        api: Api,
        heard: Callable[[SummaryMap], None],
        spoiled: Callable[[SummaryMap], None],
        left: Callable[[str, str], None],
    ) -> None:
        self._api, self._heard, self._spoiled, self._left = api, heard, spoiled, left
        self.maps: dict[str, SummaryMap] = {}
        self.strange: dict[str, str] = {}
        """ConfigMaps that others write, and why we think so."""
        self.done: Counter[str] = Counter({"written": 0, "removed": 0, "failed": 0})
        self._slices: defaultdict[str, set[int]] = defaultdict(set)
        self._ours: dict[str, int] = {}
        """The versions of ConfigMaps that we wrote ourselves."""
        self._mends: Counter[str] = Counter()
        self._spoilt: set[str] = set()
        """ConfigMaps that another program changed, and that are not rewritten yet."""
        self._busy: dict[str, set[str]] = {}
        """ConfigMaps that are being written, with the uids of those of that name that
        were deleted meanwhile: the answer to a write may come after that news."""

    def slices(self, full_name: str) -> list[int]:
        """The slices of a job of this full name that are there, the last one first."""
        return sorted(self._slices.get(full_name, ()), reverse=True)

    def stand_by(self) -> None:
        """Others write from now on: no ConfigMap is ours."""
        self._ours.clear()
        self._mends.clear()
        self._spoilt.clear()
        self.strange.clear()

    # What the reflectors tell.

    def put_maps(self, maps: Iterable[SummaryMap]) -> None:
        """ConfigMaps are new or have changed."""
        for each in maps:
            self._heed(each)
            self._inspect(each.key)

    def drop_maps(self, gone: Iterable[Gone]) -> None:
        """ConfigMaps are gone."""
        for each in gone:
            self.strange.pop(each.key, None)
            if each.key in self._busy:
                self._busy[each.key].add(each.uid)
            known = self.maps.get(each.key)
            if known is not None and known.metadata.uid == each.uid:
                self._deleted(known)

    def _deleted(self, known: SummaryMap) -> None:
        self._forget(known.key)
        if self._ours.pop(known.key, None) is not None:
            self._mend(known, "deleted")

    def _heed(self, found: SummaryMap) -> None:
        """A ConfigMap is as it is, if that is news."""
        known = self.maps.get(found.key)
        if known is not None:
            same = known.metadata.uid == found.metadata.uid
            if same and found.version <= known.version:
                return
            self._forget(found.key)
        self.maps[found.key] = found
        if found.index >= 0:
            self._slices[found.job_full_name].add(found.index)
        self._heard(found)

    def _forget(self, key: str) -> SummaryMap | None:
        known = self.maps.pop(key, None)
        if known is not None and known.index >= 0:
            slices = self._slices[known.job_full_name]
            slices.discard(known.index)
            if not slices:
                del self._slices[known.job_full_name]
        return known

    def _inspect(self, key: str) -> None:
        """Handle a ConfigMap that another program has written since we did."""
        known, ours = self.maps.get(key), self._ours.get(key)
        if known is None or ours is None or known.version <= ours or key in self._busy:
            return
        if not known.mark:
            self._give_way(key, "another program has written it")
            return
        self._ours[key] = known.version
        known.metadata.annotations = {MARK: "changed"}
        self._mend(known, "changed")

    def _mend(self, known: SummaryMap, what: str) -> None:
        """A ConfigMap of ours was changed: it is written anew, not for ever.

        Changes that are mended by one write count once.
        """
        self._mends[known.key] += known.key not in self._spoilt
        self._spoilt.add(known.key)
        if self._mends[known.key] > MENDS:
            self._give_way(known.key, f"others have {what} it {MENDS + 1} times")
        else:
            self._spoiled(known)

    def _give_way(self, key: str, why: str) -> None:
        if key not in self.strange:
            self.strange[key] = why
            line = f"ConfigMap {quoted(key)}: {why}, it is left to others"
            hint = "hint: run one writer of summaries, this or the vendor's ClusterD"
            self._left(key, f"{line}; {hint}")

    def claim(self, key: str) -> None:
        """Treat a correct ConfigMap as ours, also if another replica wrote it."""
        self._ours.setdefault(key, self.maps[key].version)

    def forgive(self, key: str) -> None:
        """Forget what others did to a ConfigMap that is no longer there."""
        if key not in self.maps:
            self.strange.pop(key, None)
            self._mends.pop(key, None)
            self._spoilt.discard(key)
            self._ours.pop(key, None)

    # What is done.

    async def put(
        self, key: str, labels: Mapping[str, str], mark: str, data: Values
    ) -> None:
        """Write a ConfigMap, unless it is another than is known.

        Keys of *data* that are None are taken away; those that are not in it stay.

        Raises ``NotWritten``, ``Taken`` or ``Unreachable``.
        """
        known = self.maps.get(key)
        namespace, _slash, name = key.partition("/")
        metadata: dict[str, Any] = {"name": name, "namespace": namespace}
        metadata |= {"annotations": {MARK: mark}, "labels": labels}
        deleted = self._busy[key] = set[str]()
        try:
            if known is None:
                given = {k: value for k, value in data.items() if value is not None}
                body = {"metadata": metadata, "data": given}
                answer = await self._call("POST", key, body)
            else:
                metadata["uid"] = known.metadata.uid
                metadata["resourceVersion"] = known.metadata.resource_version
                body = {"metadata": metadata, "data": dict(data)}
                answer = await self._call("PATCH", key, body)
            if answer.ok:
                found = decoded(_decode, answer.body)
                self._ours[key] = found.version
                same = known is not None and found.version == known.version
                if same and key in self._spoilt:
                    self._mends[key] -= 1  # nothing of ours had been changed
                self._spoilt.discard(key)
                self._heed(found)
                self.done["written"] += 1
        finally:
            del self._busy[key]
        if not answer.ok:
            await self._look_after(key, answer)
        elif self.maps[key].metadata.uid in deleted:
            self._deleted(self.maps[key])
        self._inspect(key)

    async def remove(self, key: str) -> None:
        """Delete a ConfigMap, if it is the one that is known."""
        known = self.maps[key].metadata
        sure = {"uid": known.uid, "resourceVersion": known.resource_version}
        ours = self._ours.pop(key, None)
        answer = await self._call("DELETE", key, {"preconditions": sure})
        if answer.ok or answer.is_missing:
            self.done["removed"] += answer.ok
            self._forget(key)
            self._mends.pop(key, None)
            self._spoilt.discard(key)
            return
        if ours is not None:
            self._ours[key] = ours
        await self._look_after(key, answer)

    async def _call(self, method: str, key: str, body: object) -> Answer:
        namespace, _slash, name = key.partition("/")
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        if method != "POST":
            path = f"{path}/{quote(name, safe='')}"
        kind = encode.MERGE if method == "PATCH" else "application/json"
        return await self._api.call(method, path, encode.encode(body), kind=kind)

    async def _look_after(self, key: str, answer: Answer) -> None:
        """Something was not done: see what the ConfigMap is like, and raise."""
        why = f"ConfigMap {quoted(key)}: {refusal(answer.status, answer.body)}"
        if not (answer.is_conflict or answer.is_missing):
            raise NotWritten(why)
        found = await self._look(key)
        if found is None:
            raise NotWritten(why, soon=self._forget(key) is not None)
        labels = found.metadata.labels or {}
        if key not in self.maps and labels.get(LABEL) != "true" and not found.mark:
            raise Taken(
                f"ConfigMap {quoted(key)} is there and is no summary, want no other of "
                f"that name; hint: delete it, or label it {LABEL}=true"
            )
        self._forget(key)  # versions begin anew where a backup is restored
        self._heed(found)
        self._inspect(key)
        raise NotWritten(why, soon=True)

    async def _look(self, key: str) -> SummaryMap | None:
        """A ConfigMap as it is now; None where there is none."""
        namespace, _slash, name = key.partition("/")
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        query = f"fieldSelector=metadata.name%3D{quote(name, safe='')}"
        answer = await self._api.call("GET", f"{path}?{query}", lane="read")
        if not answer.ok:
            why = refusal(answer.status, answer.body)
            raise NotWritten(f"ConfigMap {quoted(key)}: {why}")
        found = decoded(_decode_list, answer.body).items or []
        return found[0] if found else None
