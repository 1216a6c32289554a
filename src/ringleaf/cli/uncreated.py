"""Pods that Volcano creates once their job is admitted, as ``explain`` tries them.

A Volcano Job that is not admitted has a PodGroup and no pods. What its pods would
find is decided as for a manifest: they are made from the job, as its controller would.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from ringleaf.kube.api import Api, Unreachable
from ringleaf.kube.gang_state import GangState
from ringleaf.kube.manifest import PATHS, BadManifest, Reader
from ringleaf.kube.names import GROUP_NAMES
from ringleaf.kube.objects import Pod
from ringleaf.kube.snapshot import Snapshot
from ringleaf.model.queue import DEFAULT_QUEUE
from ringleaf.model.topology import quoted

VOLCANO_JOB: Final = "batch.volcano.sh/v1alpha1", "Job"
NOT_CREATED: Final = "its pods are not created yet"


class Uncreated(NamedTuple):
    """Pods that a group still lacks, and in words where they are described."""

    pods: Sequence[Pod] = ()
    words: str = ""


NONE_LACK: Final = Uncreated()


async def uncreated_pods(api: Api, look: Snapshot, group: GangState) -> Uncreated:
    """The pods of *group* that Volcano has not created yet.

    None, if the group has all of its pods, or if no Volcano Job describes them.
    """
    podgroup = group.podgroup
    if podgroup is None or group.reported.job is None or not group.reported.job.podless:
        return NONE_LACK
    meta = podgroup.metadata
    owner = next(
        (each for each in meta.owner_references or () if each.controller), None
    )
    if owner is None:
        return NONE_LACK
    plain = await _job(api, meta.namespace, owner.name)
    if (plain.get("metadata") or {}).get("uid") != owner.uid:
        return NONE_LACK
    version, kind = VOLCANO_JOB
    what = f"Volcano Job {quoted(f'{meta.namespace}/{owner.name}')}"
    cache = look.cache
    reader = Reader(meta.namespace, cache.schedulers, cache.priority_classes, look.now)
    try:
        found = reader.read(
            [("its Volcano Job", plain | {"apiVersion": version, "kind": kind})]
        )
    except BadManifest as error:
        return Uncreated((), f"{NOT_CREATED}; {error}")
    known = {pod.key for pod in group.pods.values()}
    pods = [pod for pod in found.pods if pod.metadata.key not in known]
    for pod in pods:
        assert pod.metadata.annotations is not None
        pod.metadata.annotations[GROUP_NAMES[0]] = meta.name
    return Uncreated(pods, f"{NOT_CREATED}; {what} describes them")


async def queue_of_job(api: Api, namespace: str, name: str) -> str | None:
    """The queue of a Volcano Job; None if there is no such job, or it is not read."""
    plain = await _job(api, namespace, name)
    return str(plain["spec"].get("queue") or DEFAULT_QUEUE) if "spec" in plain else None


async def _job(api: Api, namespace: str, name: str) -> dict[str, Any]:
    """A Volcano Job as plain values; empty if it is not read."""
    url = f"{PATHS[VOLCANO_JOB].format(namespace)}/{quote(name, safe='')}"
    try:
        said = await api.call("GET", url, lane="tell")
        found: dict[str, Any] = msgspec.json.decode(said.body) if said.ok else {}
    except (TimeoutError, Unreachable, msgspec.DecodeError):
        return {}
    return found
