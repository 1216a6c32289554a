"""The lives of faults as they are written down, for whoever schedules next.

They are JSON under a key of our own in a ConfigMap of the vendor's scheduler, beside
what other components read there.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from ringleaf.kube.api import Api, Unreachable
from ringleaf.model.fault import Fault

NAMESPACE: Final = "volcano-system"
NAME: Final = "vcjob-fault-npu-cm"
KEY: Final = "ringleaf-faults"
_NOT_ALLOWED: Final = 403


class Lives(Struct, frozen=True):
    """The lives that were written down; *trouble* says why none could be read."""

    faults: tuple[Fault, ...] = ()
    is_there: bool = False
    trouble: str = ""


class _ConfigMap(Struct):
    data: dict[str, str] | None = None


class _ConfigMaps(Struct):
    items: list[_ConfigMap] = []


def write(faults: Iterable[Fault]) -> str:
    """Lives as they are written."""
    return msgspec.json.encode([*faults]).decode()


def read(text: str) -> tuple[Fault, ...]:
    """Lives as they were written; raises ``msgspec.DecodeError`` where they are not."""
    return msgspec.json.decode(text, type=tuple[Fault, ...])


async def read_lives(api: Api) -> Lives:
    """What was written down; to be allowed to list is enough."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    try:
        said = await api.call(
            "GET", f"{path}?fieldSelector=metadata.name%3D{NAME}", lane="read"
        )
    except Unreachable as error:
        return Lives(trouble=str(error))
    if said.status == _NOT_ALLOWED:
        return Lives(trouble=f"not allowed to list configmaps in namespace {NAMESPACE}")
    if not said.ok:
        return Lives(trouble=f"status {said.status}")
    return lives_of(said.body)


def lives_of(body: bytes) -> Lives:
    """The lives in a list of ConfigMaps."""
    for each in msgspec.json.decode(body, type=_ConfigMaps).items:
        text = (each.data or {}).get(KEY)
        if text is None:
            continue
        try:
            return Lives(read(text), is_there=True)
        except msgspec.DecodeError as error:
            return Lives(trouble=f"ConfigMap {NAMESPACE}/{NAME}, {KEY}: {error}")
    return Lives()
