"""The fault history that a scheduler has written, for commands that show it."""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.fault_store import BRAKED, DELETED, FAULTS
from ringleaf.kube.fault_texts import LIVES
from ringleaf.kube.objects import ConfigMap
from ringleaf.kube.snapshot import told
from ringleaf.kube.watch import Gone, Reflector
from ringleaf.model.fault import Deletion, Fault

NAMESPACE, NAME = FAULTS
PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
QUERY: Final = f"fieldSelector=metadata.name%3D{NAME}"


class FaultHistory(Struct, frozen=True):
    """The lives that were written down; *trouble* says why none could be read."""

    faults: tuple[Fault, ...] = ()
    is_there: bool = False
    trouble: str = ""
    braked: tuple[str, ...] = ()
    """Jobs that wait for the brake."""
    deletions: tuple[Deletion, ...] = ()
    """What was deleted lately because of faults."""


Thing = TypeVar("Thing")


class _ConfigMap(Struct):
    data: dict[str, str] | None = None


class _ConfigMaps(Struct):
    items: list[_ConfigMap] = []


async def read_lives(api: Api) -> FaultHistory:
    """What was written down; to be allowed to list is enough."""
    try:
        said = await api.call("GET", f"{PATH}?{QUERY}", lane="read")
    except Unreachable as error:
        return FaultHistory(trouble=str(error))
    if said.is_forbidden:
        return FaultHistory(
            trouble=f"not allowed to list configmaps in namespace {NAMESPACE}"
        )
    if not said.ok:
        return FaultHistory(trouble=f"status {said.status}")
    return lives_of(said.body)


def follow_lives(
    api: Api, heard: Callable[[FaultHistory], None]
) -> Reflector[ConfigMap]:
    """Return a reflector that passes the fault history to *heard* on every change."""

    def put(found: list[ConfigMap]) -> None:
        heard(lives_in(found[-1].data))

    def drop(_gone: list[Gone]) -> None:
        heard(FaultHistory())

    def fail(line: str) -> None:
        heard(FaultHistory(trouble=told(line)))

    return Reflector(
        api,
        PATH,
        ConfigMap,
        query=QUERY,
        put=put,
        drop=drop,
        optional=True,
        trouble=fail,
    )


def lives_of(body: bytes) -> FaultHistory:
    """The lives in a list of ConfigMaps, of which there is one at most."""
    for each in msgspec.json.decode(body, type=_ConfigMaps).items:
        return lives_in(each.data)
    return FaultHistory()


def lives_in(data: Mapping[str, str] | None) -> FaultHistory:
    """The lives in what a ConfigMap has; what is empty or not there is none.

    What one key has does not depend on the others.
    """
    given = data or {}
    faults, trouble = _listed(given, LIVES, Fault)
    braked, _why = _listed(given, BRAKED, str)
    deletions, _why = _listed(given, DELETED, Deletion)
    is_there = LIVES in given and not trouble
    return FaultHistory(faults, is_there, trouble, braked, deletions)


def _listed(
    data: Mapping[str, str], key: str, kind: type[Thing]
) -> tuple[tuple[Thing, ...], str]:
    """What a key has, or nothing and why that cannot be read."""
    try:
        text = data.get(key) or "[]"
        return msgspec.json.decode(text, type=tuple[kind, ...]), ""  # type: ignore[valid-type]
    except (msgspec.DecodeError, RecursionError) as error:
        return (), f"ConfigMap {NAMESPACE}/{NAME}, {key}: {error}"
