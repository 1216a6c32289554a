"""Where one replica is, and what its pod says about the leaf it stands under."""

from enum import IntEnum, StrEnum

from msgspec import Struct


class JobType(StrEnum):
    """What a job asks of the leaf switches (label ``tor-affinity`` and replicas)."""

    PADDING = "padding"
    FOUNDATION = "foundation"
    COMMON = "common"


class LeafState(IntEnum):
    """How a leaf's links to the spine are used; the numbers are ``isSharedTor``."""

    IDLE = 0
    SHARED = 1
    EXCLUSIVE = 2


class LeafAnnotation(Struct, frozen=True):
    """What a pod says of its leaf: the type of its job, and the state written on it.

    The states of all leaves follow from the marks of the pods under them, so they
    survive a restart of the scheduler.
    """

    job_type: JobType | None = None
    state: LeafState = LeafState.IDLE
    healthy: bool = True


NO_MARK = LeafAnnotation()


class Placement(Struct, frozen=True, repr_omit_defaults=True):
    """One replica: its node and its chips, in the order they are written down.

    ``block`` is the logical SuperPoD of a job that has them; ``mark`` is there when a
    switch rule placed the job; ``role`` is its role in a job that has roles.
    """

    replica: int
    node: str
    chips: tuple[int, ...]
    block: int | None = None
    mark: LeafAnnotation | None = None
    role: str | None = None
