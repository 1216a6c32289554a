"""Pods, PodGroups and nodes, as far as a summary tells of them."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from ringleaf.kube import names
from ringleaf.kube.objects import Address, Metadata, Quantities
from ringleaf.kube.rank_table import Group, Member

SHARED_LEAF: Final = "sharedTorIp"
LEAST: Final = "huawei.com/schedule_minAvailable"
MASTER: Final = "MASTER_ADDR"
FRAMEWORK, APP = "framework", "app"
CUSTOM_KEY, CUSTOM_ID = "customJobKey", "custom-job-id"
NPU: Final = "huawei.com/npu"


class _Object(Struct, rename="camel", gc=False):
    """Everything is optional: the API server leaves out what is empty."""


class JobOwner(_Object):
    """An owner of an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class OwnedMetadata(Metadata):
    """The name of an object, and its owners."""

    owner_references: list[JobOwner] | None = None

    @property
    def controller(self) -> JobOwner | None:
        """The owner that controls it."""
        owners = self.owner_references or ()
        return next((owner for owner in owners if owner.controller), None)


class _Variable(_Object):
    name: str = ""
    value: str = ""


class _Resources(_Object):
    limits: Quantities | None = None


class _Container(_Object):
    env: list[_Variable] | None = None
    resources: _Resources | None = None


class _ContainerStatus(_Object):
    name: str = ""
    container_id: str = field(default="", name="containerID")


class _PodSpec(_Object):
    node_name: str = ""
    containers: list[_Container] | None = None


class _PodStatus(_Object):
    phase: str = "Pending"
    container_statuses: list[_ContainerStatus] | None = None


class JobPod(_Object):
    """A pod, as far as a summary tells of it."""

    metadata: OwnedMetadata = field(default_factory=OwnedMetadata)
    spec: _PodSpec = field(default_factory=_PodSpec)
    status: _PodStatus = field(default_factory=_PodStatus)


class _GroupSpec(_Object):
    min_member: int = 0
    min_resources: Quantities | None = None


class JobGroup(_Object):
    """A PodGroup, as far as a summary tells of it."""

    metadata: OwnedMetadata = field(default_factory=OwnedMetadata)
    spec: _GroupSpec = field(default_factory=_GroupSpec)


class _NodeStatus(_Object):
    addresses: list[Address] | None = None


class JobNode(_Object):
    """A node, as far as a summary tells of it."""

    metadata: Metadata = field(default_factory=Metadata)
    status: _NodeStatus = field(default_factory=_NodeStatus)


def member_of(pod: JobPod) -> Member | None:
    """What is used of a pod; None for one of no PodGroup."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    notes, labels = meta.annotations or {}, meta.labels or {}
    group = next((notes[key] for key in names.GROUP_NAMES if notes.get(key)), "")
    if not group:
        return None
    asked = {
        resource
        for container in spec.containers or ()
        if container.resources is not None
        for resource in container.resources.limits or ()
        if resource.startswith(names.VENDOR)
    }
    owner = meta.controller
    least = notes.get(LEAST, "")
    devices = notes.get(names.CONFIGURATION_910, "")
    return Member(
        uid=meta.uid,
        name=meta.name,
        namespace=meta.namespace,
        group=f"{meta.namespace}/{group}",
        owner=owner.uid if owner is not None else "",
        created=meta.creation_timestamp,
        is_leaving=meta.deletion_timestamp is not None,
        node=spec.node_name,
        phase=status.phase,
        asks=bool(asked),
        is_npu=NPU in asked,
        rank=notes.get(names.RANK, "").strip(),
        devices=devices or notes.get(names.CONFIGURATION_NPU, ""),
        shared=notes.get(names.SHARED, ""),
        healthy=notes.get(names.HEALTHY, ""),
        shared_leaf=notes.get(SHARED_LEAF, ""),
        framework=labels.get(APP, ""),
        sid=sid_of(labels),
        master=_master(spec),
        least=int(least) if least.isdecimal() and len(least) < 10 else 0,  # noqa: PLR2004
        containers=tuple(
            (each.name, each.container_id)
            for each in status.container_statuses or ()
            if each.container_id
        ),
    )


def _master(spec: _PodSpec) -> str:
    for container in spec.containers or ():
        for variable in container.env or ():
            if variable.name == MASTER and variable.value:
                return variable.value
    return ""


def group_of(found: JobGroup) -> Group:
    """What is used of a PodGroup."""
    meta = found.metadata
    owner = meta.controller or JobOwner("", meta.name, meta.uid)
    labels = meta.labels or {}
    return Group(
        key=meta.key,
        uid=meta.uid,
        created=meta.creation_timestamp,
        is_leaving=meta.deletion_timestamp is not None,
        job_id=owner.uid,
        job_name=owner.name,
        job_kind=owner.kind,
        least=max(0, found.spec.min_member),
        framework=labels.get(FRAMEWORK, ""),
        sid=sid_of(labels),
        is_npu=NPU in (found.spec.min_resources or {}),
    )


def sid_of(labels: Mapping[str, str]) -> str:
    """What users call their job: by the label that a label names, or by its own.

    >>> sid_of({"customJobKey": "team", "team": " blue ", "custom-job-id": "7"})
    'blue'
    >>> sid_of({"customJobKey": "team", "custom-job-id": "7"}), sid_of({})
    ('7', '')
    """
    named = labels.get(CUSTOM_KEY, "").strip()
    return (named and labels.get(named, "").strip()) or labels.get(
        CUSTOM_ID, ""
    ).strip()
