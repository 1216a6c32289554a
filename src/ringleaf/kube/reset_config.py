"""What the processes of a job are told: the ConfigMap ``reset-config-<job>``.

The operator makes it and mounts it into the pods; agents there read it. Where it is not
there, nothing is written.

Source: the vendor's scheduler writes the same keys in this order; the check code is
that of the whole of ``reset.json``.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ringleaf.kube import encode
from ringleaf.kube.answers import Answer
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.backoff import backoff_s
from ringleaf.kube.depth import decoded
from ringleaf.kube.objects import ConfigMap
from ringleaf.kube.reports import check_code
from ringleaf.model.fault import Record, RestartScope

PREFIX: Final = "reset-config-"
RESET, CODE, TYPE = "reset.json", "checkCode", "restartType"
TRIES: Final = 6
FIRST_PAUSE_S, MOST_PAUSE_S = 0.2, 10.0
_map: Final = msgspec.json.Decoder(ConfigMap).decode


class Rank(Struct):
    """A process whose chip is faulty."""

    rank: int = field(default=0, name="RankId")
    chip: int = field(default=0, name="LogicId")
    status: str = field(default="", name="Status")
    policy: str = field(default="", name="Policy")
    first_policy: str = field(default="", name="InitialPolicy")
    codes: list[int] | None = field(default=None, name="ErrorCode")
    codes_hex: str = field(default="", name="ErrorCodeHex")


class Reset(Struct):
    """What ``reset.json`` says; its order counts for the check code."""

    ranks: list[Rank] | None = field(default=None, name="RankList")
    update_time: int = field(default=0, name="UpdateTime")
    retry_time: int = field(default=0, name="RetryTime")
    fault_flushing: bool = field(default=False, name="FaultFlushing")
    graceful_exit: int = field(default=0, name="GracefulExit")
    restart_fault_process: bool = field(default=False, name="RestartFaultProcess")


class _Unread(Exception):  # noqa: N818 - it reads as what happened
    """Why a ConfigMap cannot be changed."""


class ResetConfig:
    """Writes what the processes of jobs are told."""

    def __init__(
        self, api: Api, clock: Callable[[], float], say: Callable[..., None]
    ) -> None:
        self._api, self._clock, self._say = api, clock, say
        self._refused: set[str] = set()
        """Namespaces in which we may not do it; that is said once."""

    async def write(
        self,
        namespace: str,
        owner: str,
        record: Record | None = None,
        *,
        exits: bool | None = None,
    ) -> None:
        """Tell the processes of the job *owner* to end, or that it is repaired."""
        # The name of an owner may be anything.
        name = quote(f"{PREFIX}{owner}", safe="")
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        why = ""
        for n_failures in range(TRIES):
            try:
                answer = await self._try(path, record, exits=exits)
            except _Unread as error:
                why = str(error)
                break
            except Unreachable as error:
                why = str(error)
            else:
                if answer.ok or answer.is_missing:
                    return
                why = answer.words(200)
                if answer.is_forbidden and namespace in self._refused:
                    return
                if answer.is_forbidden:
                    self._refused.add(namespace)
                if not (answer.is_transient or answer.is_conflict):
                    break
            await asyncio.sleep(backoff_s(FIRST_PAUSE_S, n_failures, MOST_PAUSE_S))
        self._say("processes not notified", object=path, why=why)

    async def _try(
        self, path: str, record: Record | None, *, exits: bool | None
    ) -> Answer:
        answer = await self._api.call("GET", path, lane="tell")
        if not answer.ok:
            return answer
        try:
            found = decoded(_map, answer.body)
            text = (found.data or {}).get(RESET)
            before = msgspec.json.decode(text, type=Reset) if text else Reset()
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise _Unread(f"{RESET} cannot be read: {str(error)[:200]}") from None
        body = changed(found, before, self._clock(), record, exits=exits)
        return await self._api.call("PATCH", path, body, kind=encode.MERGE, lane="tell")


def changed(
    found: ConfigMap,
    before: Reset,
    now: float,
    record: Record | None,
    *,
    exits: bool | None,
) -> bytes:
    """A merge patch of the ConfigMap *found*, for this very version of it."""
    after = replace(before, update_time=int(now))
    data: dict[str, str] = {}
    meta: dict[str, Any] = {"resourceVersion": found.metadata.resource_version}
    if exits is not None:
        after.graceful_exit = int(exits)
    if record is not None:
        whole = record.scope is RestartScope.JOB
        after.ranks = []
        after.retry_time = 0 if whole else before.retry_time + 1
        data[TYPE] = "podReschedule"
        meta["labels"] = {"reset": "true"}
    data[RESET] = msgspec.json.encode(after).decode()
    data[CODE] = check_code(after)
    return encode.encode({"metadata": meta, "data": data})
