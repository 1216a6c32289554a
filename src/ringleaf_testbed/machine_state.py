"""A machine of the actor: its health, its pods, and the chips of each pod."""

import threading
from typing import Final

from msgspec import Struct, field

from ringleaf_testbed.hardware import Machine
from ringleaf_testbed.report import MachineHealth

OVER: Final = frozenset({"Succeeded", "Failed"})


class _Object(Struct, rename="camel"):
    pass


class _Metadata(_Object):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    annotations: dict[str, str] | None = None


class _Resources(_Object):
    limits: dict[str, str] | None = None


class _Container(_Object):
    resources: _Resources = field(default_factory=_Resources)


class _Spec(_Object):
    node_name: str = ""
    containers: list[_Container] = []


class _Status(_Object):
    phase: str = "Pending"


class AssignedPod(_Object):
    """What the device plugin looks at."""

    metadata: _Metadata = field(default_factory=_Metadata)
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)

    @property
    def path(self) -> str:
        """Where it is in the API."""
        return f"/api/v1/namespaces/{self.metadata.namespace}/pods/{self.metadata.name}"

    @property
    def is_active(self) -> bool:
        """Whether it may still run."""
        return self.status.phase not in OVER

    @property
    def is_left_over(self) -> bool:
        """Whether only the kubelet keeps it: it is asked to end, and has no time left.

        An API server does both at once, unless it is interrupted.
        """
        meta = self.metadata
        no_time = meta.deletion_grace_period_seconds == 0 or not self.is_active
        return meta.deletion_timestamp is not None and no_time

    def annotation(self, key: str) -> str | None:
        """What its annotation *key* says."""
        return (self.metadata.annotations or {}).get(key)

    def asked(self, resource: str) -> int:
        """How many chips it wants."""
        limits = (
            container.resources.limits or {} for container in self.spec.containers
        )
        return sum(int(limit.get(resource, 0)) for limit in limits)


class MachineState:
    """One machine: its health, its pods, and the chips of each pod."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.health = MachineHealth(faults={})
        self.pods: dict[str, AssignedPod] = {}
        self.held: dict[str, frozenset[int]] = {}
        self.kubelet: dict[str, frozenset[int]] = {}
        self.refused: set[str] = set()
        self.served: set[str] = set()
        self.left_over: dict[str, AssignedPod] = {}
        self.gone: set[str] = set()
        """Uids of pods that are over: no older list must bring them back."""
        self.refuses = False
        """Whether the device plugin refuses all pods."""
        self.stalls = False
        """Whether pods are taken, and never come to run."""
        self.lock = threading.RLock()

    @property
    def used(self) -> set[int]:
        """The chips that pods hold."""
        return {chip for chips in self.held.values() for chip in chips}

    def free_ids(self) -> list[int]:
        """The ids that the kubelet may hand out; it knows nothing of real chips."""
        taken = {chip for chips in self.kubelet.values() for chip in chips}
        gone = taken.union(self.health.unhealthy(self.used))
        return [chip for chip in range(self.machine.chips) if chip not in gone]

    def drop(self, uid: str) -> bool:
        """Forget a pod; whether that freed chips."""
        self.pods.pop(uid, None)
        self.left_over.pop(uid, None)
        self.refused.discard(uid)
        self.served.discard(uid)
        return self.take_back(uid)

    def take_back(self, uid: str) -> bool:
        """Free what a pod holds; whether it held anything."""
        self.kubelet.pop(uid, None)
        return self.held.pop(uid, None) is not None
