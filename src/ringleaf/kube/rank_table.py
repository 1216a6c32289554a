"""What a job summary says of a job: its rank table, its status, and the ConfigMaps.

Everything here follows from the pods as they are now. Nothing is kept from the first
time it was known, so that a pod that moved never leaves a wrong leaf or master behind.

The rank table lists a server for every pod that has chips, by rank. The device plugin
(or the scheduler, for a pod that takes a whole node) has written the pod's part of it
on the pod; here the parts are numbered and put together. A table that is too large for
one ConfigMap is cut between servers.

Source: the vendor's cluster daemon, "job-summary-<JobName>"; docs/summary.md has the
differences.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from ringleaf.kube import names
from ringleaf.model.topology import quoted

PREFIX: Final = "job-summary-"
LABEL: Final = "outside-job-info"
ATLAS: Final = "ring-controller.atlas"
ASCEND_910: Final = "ascend-910"
MARK: Final = "ringleaf.io/summary"
"""The version of a summary that a ConfigMap is part of; only Ringleaf sets it."""
TABLE: Final = "hccl.json"
MOST_BYTES: Final = 800 * 1024
"""Bytes of a rank table from which on it is cut."""
MOST_NAME: Final = 253
"""Characters of the name of a ConfigMap."""
EMPTY: Final = '{"status":"initializing"}'
PYTORCH: Final = "pytorch"
VOLCANO_JOB: Final = "Job"
"""The kind of owner whose master is where its first server is."""
ADD, DELETE = "add", "delete"
MOST_DIGITS: Final = 9
"""Digits of a number of a chip that are read."""
_MOST_FRAME: Final = 160
"""Bytes of a table around its servers, at most."""
MOST_SERVER: Final = MOST_BYTES - _MOST_FRAME
"""Bytes of a server: it is never cut."""

encode: Final = msgspec.json.Encoder().encode


class Status(StrEnum):
    """How a job is, in the words of its summary."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, as far as can be seen."""
        return self in (Status.COMPLETE, Status.FAILED)


class Table(StrEnum):
    """Whether a rank table is whole."""

    INITIALIZING = "initializing"
    COMPLETE = "complete"


class Group(Struct, frozen=True):
    """What is used of a PodGroup."""

    key: str
    uid: str
    created: str
    is_leaving: bool
    job_id: str
    job_name: str
    job_kind: str
    least: int
    framework: str
    sid: str
    is_npu: bool

    @property
    def namespace(self) -> str:
        """Where it is."""
        return self.key.partition("/")[0]

    @property
    def job_key(self) -> str:
        """``namespace/id`` of its job."""
        return f"{self.namespace}/{self.job_id}"


class Member(Struct, frozen=True):
    """What is used of a pod of a job; two that are equal say the same.

    Args:
        uid: Of the pod.
        name: Its own.
        namespace: Where it is.
        group: ``namespace/name`` of its PodGroup.
        owner: The uid of its controller.
        created: When it was made.
        is_leaving: Whether it is being deleted.
        node: Where it is bound to; empty where it is not.
        phase: As Kubernetes calls it.
        asks: Whether it asks for chips.
        is_npu: Whether it asks for them by the name ``huawei.com/npu``.
        rank: As it is written on it; empty where it is not.
        devices: Its part of the rank table, as it is written on it.
        shared: Whether its leaf is shared, as the scheduler wrote it.
        healthy: Whether its leaf is, as the scheduler wrote it.
        shared_leaf: The address of its leaf, where that is shared.
        framework: By its label.
        sid: By its labels.
        master: What its environment says of the master.
        least: How many pods start together, where it says so itself.
        containers: Name and id of each that was started.

    """

    uid: str
    name: str
    namespace: str
    group: str
    owner: str = ""
    created: str = ""
    is_leaving: bool = False
    node: str = ""
    phase: str = "Pending"
    asks: bool = False
    is_npu: bool = False
    rank: str = ""
    devices: str = ""
    shared: str = ""
    healthy: str = ""
    shared_leaf: str = ""
    framework: str = ""
    sid: str = ""
    master: str = ""
    least: int = 0
    containers: tuple[tuple[str, str], ...] = ()

    @property
    def owner_key(self) -> str:
        """``namespace/uid`` of its controller."""
        return f"{self.namespace}/{self.owner}"

    @property
    def has_chips(self) -> bool:
        """Whether it has what it asks for."""
        return bool(self.devices) or not self.asks

    @property
    def is_over(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")


class _Level(Struct):
    level: int = 0
    info: dict[str, dict[str, Any]] | None = None


class _Device(Struct):
    device_id: str = ""
    device_ip: str = ""
    super_device_id: str = ""
    levels: list[_Level] | None = field(default=None, name="levelList")


class _DevicePart(Struct):
    """A pod's part of the rank table, as the device plugin writes it."""

    devices: list[_Device]
    pod_name: str = ""
    server_id: str = ""
    server_ip: str = ""
    host_ip: str = ""
    super_pod_id: int = 0


class ServerPart(Struct, frozen=True):
    """A server of the rank table, but for the name it is given among the others."""

    rank: int
    """The pod's own; -1 for one that has no chips yet."""
    first: int
    """The rank of its first chip."""
    node: str
    host: str
    given: str
    before: str
    after: str
    ranks: tuple[str, ...]
    problem: str = ""

    def text(self, *, alone: bool) -> str:
        """The server in JSON; *alone* where no other pod of the job is on its node."""
        named = self.host if alone and self.host else self.given
        return f"{self.before}{_json(named)}{self.after}"


_NO_PART: Final = ServerPart(-1, -1, "", "", "", "", "", ())
_decode_part: Final = msgspec.json.Decoder(_DevicePart).decode


def part_of(pod: Member, serial: str) -> ServerPart:
    """The server of a pod whose node has this *serial* number.

    One that has no chips yet is nowhere in the table: its rank is -1. So is one that
    cannot be read; then there is a ``problem``.
    """
    if not pod.devices:
        return _NO_PART
    named = f"Pod {quoted(pod.name)}"
    try:
        found = _decode_part(pod.devices)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        where = names.CONFIGURATION_NPU if pod.is_npu else names.CONFIGURATION_910
        told = f"{named}: {where} is {quoted(pod.devices)}, want a rank table ({error})"
        return msgspec.structs.replace(_NO_PART, problem=told)
    if not found.devices:
        return _NO_PART
    if not (pod.rank.isdecimal() and pod.rank.isascii() and len(pod.rank) < 8):  # noqa: PLR2004
        rank = f"{names.RANK} is {quoted(pod.rank)}"
        told = f"{named}: {rank}, want a whole number from 0"
        return msgspec.structs.replace(_NO_PART, problem=told)
    first = int(pod.rank) * len(found.devices)
    devices = [_device(each, first + i) for i, each in enumerate(found.devices)]
    host = found.host_ip or found.server_ip
    rest = {
        "host_ip": host,
        "super_pod_id": found.super_pod_id,
        "server_name": pod.node,
        "server_sn": serial,
        "pod_name": found.pod_name or pod.name,
        "container_ids": dict(pod.containers),
    }
    part = ServerPart(
        int(pod.rank),
        first,
        pod.node,
        host,
        found.server_id or host,
        f'{{"device":{_json(devices)},"server_id":',
        f",{_json(rest)[1:]}",
        tuple(_ranks(found.devices, first)) if pod.is_npu else (),
    )
    if (size := _bytes(part.text(alone=False), *part.ranks)) > MOST_SERVER:
        told = f"{named}: its {len(found.devices)} chips take {size} bytes of the table"
        return msgspec.structs.replace(
            _NO_PART, problem=f"{told}, want {MOST_SERVER} at most"
        )
    return part


def _device(device: _Device, rank: int) -> dict[str, str]:
    """A chip of a server."""
    found = {
        "device_id": device.device_id,
        "device_ip": device.device_ip,
        "rank_id": str(rank),
    }
    if device.super_device_id:
        found["super_device_id"] = device.super_device_id
    return found


def _ranks(devices: Sequence[_Device], first: int) -> Iterable[str]:
    """The ranks of a table of version 2.0: a chip and the nets it is in, by level."""
    for i, device in enumerate(devices):
        named = device.device_id[:MOST_DIGITS]
        number = int(named) if named.isdecimal() else i
        nets = [
            level.info[min(level.info)]
            for level in sorted(device.levels or (), key=lambda each: each.level)
            if level.info
        ]
        yield _json(
            {
                "rank_id": first + i,
                "local_id": number,
                "device_id": number,
                "level_list": nets,
            }
        )


class JobSummary(Struct, frozen=True):
    """What is to be written of a job, but for times."""

    job_id: str
    name: str
    namespace: str
    status: Status
    framework: str
    sid: str
    is_npu: bool
    table: Table
    n_servers: int
    slices: tuple[str, ...]
    shared: str
    master: str
    problems: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Tells one content from another; the same on all ConfigMaps of it."""
        return digest(*self._words().values(), *sorted(self.labels), *self.slices)

    def data(self, since: int, now: int) -> list[dict[str, str | None]]:
        """The data of each ConfigMap; what must not be there any more is None.

        *since* is when the job was first seen.
        """
        rest: dict[str, str | None] = {"deleteTime": None}
        if self.status.is_over:
            rest["deleteTime"] = str(now)
        if self.framework != PYTORCH:
            rest |= {"sharedTorIp": None, "masterAddr": None}
        return [
            {
                **self._words(),
                **rest,
                "operator": ADD,
                "time": str(since),
                "cm_index": str(i),
                "total": str(len(self.slices)),
                TABLE: text,
            }
            for i, text in enumerate(self.slices)
        ]

    @property
    def labels(self) -> dict[str, str]:
        """The labels of each ConfigMap."""
        atlas = {} if self.is_npu else {ATLAS: ASCEND_910}
        return {LABEL: "true", **atlas}

    def _words(self) -> dict[str, str]:
        torch = {"sharedTorIp": self.shared, "masterAddr": self.master}
        return {
            "job_name": self.name,
            "job_id": self.job_id,
            "framework": self.framework,
            "sid": self.sid,
            "job_status": self.status.value,
            **(torch if self.framework == PYTORCH else {}),
        }


def summary_of(
    job: tuple[str, str, str],
    group: Group | None,
    pods: Sequence[Member],
    parts: Mapping[str, ServerPart],
    *,
    before: Status,
    most: int = MOST_BYTES,
) -> JobSummary:
    """The summary of a *job*: its id, namespace and name.

    *parts* has the server of each of its pods by uid, and *before* is what its status
    was. A slice has *most* bytes. Where no PodGroup was ever seen, all pods count as
    those that must start together.
    """
    job_id, namespace, name = job
    least = max([group.least if group else len(pods), *(pod.least for pod in pods)])
    seated = _by_rank(pods, parts)
    ready = sum(parts[pod.uid].rank >= 0 for pod in seated)
    ready += sum(not pod.asks for pod in pods)
    whole = bool(pods) and ready >= max(1, least)
    servers = [parts[pod.uid] for pod in seated]
    is_npu = bool(group and group.is_npu) or any(pod.is_npu for pod in pods)
    table = Table.COMPLETE if whole else Table.INITIALIZING
    first = servers[0].host or servers[0].given if servers else ""
    ordered = [*seated, *sorted(pods, key=lambda pod: pod.name)]
    said = (pod.master for pod in ordered if pod.master)
    volcano = group is not None and group.job_kind == VOLCANO_JOB
    return JobSummary(
        job_id,
        name,
        namespace,
        status_of(before, pods, least),
        (group.framework if group else "")
        or next((pod.framework for pod in ordered if pod.framework), ""),
        (group.sid if group else "")
        or next((pod.sid for pod in ordered if pod.sid), job_id),
        is_npu,
        table,
        len(servers),
        tuple(slices_of(servers, table, most, is_npu=is_npu)),
        shared_leaves(seated),
        first if volcano else next(said, ""),
        tuple(sorted({part.problem for part in parts.values() if part.problem})),
    )


def status_of(before: Status, pods: Sequence[Member], least: int) -> Status:
    """How a job is whose pods are these; *before* decides where they do not.

    >>> one = Member("u", "p", "n", "g", phase="Running")
    >>> status_of(Status.PENDING, [one], 1).value
    'running'
    >>> status_of(Status.RUNNING, [one], 2).value
    'failed'
    >>> status_of(Status.PENDING, [], 2).value
    'pending'
    """
    phases = {pod.phase for pod in pods}
    if "Failed" in phases:
        return Status.FAILED
    if pods and len(pods) >= least:
        if phases == {"Succeeded"}:
            return Status.COMPLETE
        runs = phases <= {"Running", "Succeeded"} and least > 0
        if runs and all(pod.has_chips for pod in pods):
            return Status.RUNNING
    return Status.FAILED if before is Status.RUNNING else before


def shared_leaves(pods: Iterable[Member]) -> str:
    """The addresses of the leaves that a job shares, as JSON; empty without any."""
    found = {pod.shared_leaf: None for pod in pods if pod.shared == "1"}
    found.pop("", None)
    return _json(sorted(found)) if found else ""


def _by_rank(pods: Iterable[Member], parts: Mapping[str, ServerPart]) -> list[Member]:
    """The pods with a server, one for each rank: of two, the one that stays."""
    best: dict[int, Member] = {}
    for pod in sorted(pods, key=_goes_first):
        rank = parts[pod.uid].rank
        if rank >= 0:
            best[rank] = pod
    return sorted(best.values(), key=lambda pod: (parts[pod.uid].first, pod.name))


def _goes_first(pod: Member) -> tuple[bool, str, str]:
    return not (pod.is_leaving or pod.phase == "Failed"), pod.created, pod.uid


def slices_of(
    servers: Sequence[ServerPart],
    table: Table,
    most: int = MOST_BYTES,
    *,
    is_npu: bool = False,
) -> list[str]:
    """The rank table in JSON, in as many pieces as it takes; each is one by itself."""
    if not servers and table is not Table.COMPLETE:
        return [EMPTY]
    nodes = [server.node for server in servers]
    alone = len({*nodes}) == len(nodes)
    cuts: list[tuple[list[str], list[str]]] = [([], [])]
    used = _MOST_FRAME
    for server in servers:
        text = server.text(alone=alone)
        size = _bytes(text, *server.ranks)
        if used + size > most and cuts[-1][0]:
            cuts.append(([], []))
            used = _MOST_FRAME
        used += size
        cuts[-1][0].append(text)
        cuts[-1][1].extend(server.ranks)
    n_ranks = sum(len(server.ranks) for server in servers)
    return [
        f'{{"status":"{table.value}","server_list":[{",".join(texts)}],'
        f'"server_count":"{len(servers)}","total":{len(cuts)}'
        + (
            f',"version":"2.0","rank_count":{n_ranks},"rank_list":[{",".join(ranks)}]'
            if is_npu
            else ""
        )
        + "}"
        for texts, ranks in cuts
    ]


def _bytes(*texts: str) -> int:
    """What parts of a list take, with their commas."""
    return sum(len(text.encode()) + 1 for text in texts)


def map_name(job: str, index: int) -> str:
    """The name of a ConfigMap of a job.

    >>> map_name("bert", 0), map_name("bert", 2)
    ('job-summary-bert', 'job-summary-bert-2')
    """
    return f"{PREFIX}{job}-{index}" if index else f"{PREFIX}{job}"


def digest(*texts: str) -> str:
    """Sixteen characters that tell texts from others."""
    seen = blake2b(digest_size=8)
    for text in texts:
        seen.update(text.encode())
        seen.update(b"\0")
    return seen.hexdigest()


def _json(value: object) -> str:
    return encode(value).decode()
