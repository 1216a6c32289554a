"""The queues that are always there, as Volcano's scheduler makes them."""

import asyncio
from contextlib import suppress
from typing import Final

from ringleaf.kube import encode
from ringleaf.kube.answers import NOT_ALLOWED
from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.queue_store import ROOT_QUEUE
from ringleaf.kube.status_writer import VOLCANO
from ringleaf.model.queue import DEFAULT_QUEUE

QUEUES_S: Final = 5.0
"""How long until the queues are created again, if they could not be."""


async def create_default_queues(api: Api) -> None:
    """Create the queues, however often that must be tried."""
    for name, spec in (
        (ROOT_QUEUE, {"reclaimable": False, "weight": 1}),
        (DEFAULT_QUEUE, {"reclaimable": True, "weight": 1}),
    ):
        body = encode.encode(
            {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
        while True:
            with suppress(Unreachable):
                answer = await api.call("POST", f"{VOLCANO}/queues", body, lane="tell")
                if not answer.is_transient and answer.status not in NOT_ALLOWED:
                    break
            await asyncio.sleep(QUEUES_S)
